/* SPDX-License-Identifier: MIT */
/*
 * What an enqueue has answered holds: over kill -9 at any moment, on a disk that fails, against a transaction that is
 * rolled back. No call is silent, and nothing is stored that was answered as an error.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "holdfast/holdfast.h"
#include "support/fault_vfs.h"
#include "support/sqlite_fixture.h"

#define KILLS 25
#define KILLS_FULL 500
#define ACKED_MAX 20000

static char path[600], url[700];

static void at(const char *name) {
    snprintf(path, sizeof path, "%s", hf_test_path(name));
    snprintf(url, sizeof url, "sqlite:%s", path);
}

/* ------------------------------------------------------------------ killed */

static int acks;

static void ack(int64_t id) {
    if (write(acks, &id, sizeof id) != (ssize_t)sizeof id)
        _exit(0);
}

static void started(int code, int64_t id, bool existed, void *user) { /* on the writer's thread, after the commit */
    (void)existed;
    (void)user;
    if (code == 0)
        ack(id);
}

/* Enqueues in all three ways until it is killed; every id is told as soon as it is answered. */
static void enqueue_for_ever(int64_t round) {
    struct hf_store *store = NULL;
    struct hf_job_spec specs[3];
    int64_t ids[3];
    char payload[60];
    if (hf_store_open(url, NULL, &store, NULL) != 0)
        _exit(1);
    for (long i = 0;; i++) {
        snprintf(payload, sizeof payload, "%lld/%ld", (long long)round, i);
        for (int n = 0; n < 3; n++)
            specs[n] = hf_job_of("bulk", payload);
        if (hf_enqueue_start(store, &specs[0], started, NULL) != 0)
            _exit(1);
        specs[0].type = "one";
        if (hf_enqueue(store, &specs[0], &ids[0], NULL, NULL) != 0)
            _exit(1);
        ack(ids[0]);
        specs[0].type = specs[1].type = specs[2].type = "three";
        if (hf_enqueue_many(store, specs, 3, ids, NULL, NULL) != 0)
            _exit(1);
        for (int n = 0; n < 3; n++)
            ack(ids[n]);
    }
}

/* Adds the ids that the child was given before it was killed. */
static void kill_one(int64_t round, uint64_t patience, int64_t *acked, size_t *count) {
    int pipes[2];
    int64_t id;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        acks = pipes[1];
        enqueue_for_ever(round);
    }
    close(pipes[1]);
    while (read(pipes[0], &id, sizeof id) == (ssize_t)sizeof id && *count < ACKED_MAX) {
        acked[(*count)++] = id;
        if (patience-- == 0)
            kill(child, SIGKILL);
    }
    close(pipes[0]);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void what_was_answered_is_there_after_a_kill(void **state) { /* S3.2 I70 I93 */
    (void)state;
    static int64_t acked[ACKED_MAX];
    struct hfi_random random;
    size_t count = 0;
    int kills = getenv("HF_FULL") ? KILLS_FULL : KILLS;
    hfi_random_seed(&random, hf_test_seed());
    at("killed.db");
    for (int i = 0; i < kills; i++)
        kill_one(i, hfi_random_below(&random, 25), acked, &count);
    const char *broken = broken_invariant(path);
    if (broken)
        fail_msg("%s", broken);
    assert_true(count >= (size_t)kills);
    for (size_t i = 0; i < count; i++) {
        char sql[80];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM jobs WHERE id = %lld", (long long)acked[i]);
        if (ask_number(path, sql) != 1)
            fail_msg("job %lld was answered and is not there", (long long)acked[i]);
    }
    /* A bulk is there as a whole or not at all. */
    assert_int_equal(ask_number(path, "SELECT count(*) FROM (SELECT 1 FROM jobs j JOIN lanes l ON l.id = j.lane WHERE l.type = 'three' "
                                      "GROUP BY payload HAVING count(*) <> 3)"),
                     0);
}

/* ------------------------------------------------------------------ a disk that fails */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int ended, stored;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void count_end(int code, int64_t id, bool existed, void *user) {
    (void)user;
    pthread_mutex_lock(&told.lock);
    told.ended++;
    told.stored += code == 0 && id > 0 && !existed;
    pthread_cond_signal(&told.moved);
    pthread_mutex_unlock(&told.lock);
}

static void await_ends(int count) {
    pthread_mutex_lock(&told.lock);
    while (told.ended < count)
        pthread_cond_wait(&told.moved, &told.lock);
    pthread_mutex_unlock(&told.lock);
}

static void every_call_on_a_failing_disk_says_so(void **state) { /* I93 */
    (void)state;
    struct hf_store *store = NULL;
    struct hf_job_spec spec = hf_job_of("t", "x");
    int stored = 0, asked = 0, waited = 0;
    at("failing.db");
    fault_arm(FAULT_WRITE, 0, 0, 0);
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    for (int phase = 0; phase < 3; phase++) {
        if (phase == 1)
            fault_arm(FAULT_ANY, 1, SQLITE_IOERR_WRITE, 1);
        if (phase == 2)
            fault_arm(FAULT_WRITE, 0, 0, 0);
        for (int i = 0; i < 20; i++) {
            int code = hf_enqueue(store, &spec, NULL, NULL, NULL);
            assert_true(phase == 1 ? code < 0 : code == 0);
            stored += code == 0;
            waited += hf_enqueue_start(store, &spec, count_end, NULL) == 0;
            asked += 2;
        }
        await_ends(waited); /* exactly once for each start, with its code */
    }
    assert_int_equal(waited * 2, asked);
    assert_int_equal(told.ended, waited);
    assert_int_equal(told.stored, 40);
    hf_store_close(store);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), stored + told.stored);
}

/* ------------------------------------------------------------------ a transaction that is undone */

static void a_key_is_free_again_when_the_other_transaction_is_undone(void **state) { /* I35 */
    (void)state;
    struct hf_store *store = NULL;
    struct hf_job_spec spec = hf_job_of("t", "x");
    sqlite3 *other;
    int64_t first = 0, id = 0;
    bool existed = true;
    at("undone.db");
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    spec.unique_key = "one";
    assert_int_equal(hf_enqueue(store, &spec, &first, NULL, NULL), 0);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    for (int undo = 1; undo >= 0; undo--) {
        told.ended = told.stored = 0;
        /* T1 takes the key, T2 asks for it while T1 is open. */
        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE; UPDATE jobs SET unique_scope = replace(unique_scope, 'one', 'two') WHERE id = 1", NULL, NULL, NULL), SQLITE_OK);
        spec.unique_key = "two";
        assert_int_equal(hf_enqueue_start(store, &spec, count_end, NULL), 0);
        assert_int_equal(sqlite3_exec(other, undo ? "ROLLBACK" : "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        await_ends(1);
        assert_int_equal(told.stored, undo);
        if (undo) { /* away with it, for the other half */
            assert_int_equal(hf_enqueue(store, &spec, &id, &existed, NULL), 0);
            assert_true(existed);
            assert_int_equal(hf_store_cancel_job(store, id, "test", "", NULL), 0);
        }
    }
    assert_int_equal(hf_enqueue(store, &spec, &id, &existed, NULL), 0);
    assert_true(existed);
    assert_int_equal(id, first);
    sqlite3_close(other);
    hf_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_answered_is_there_after_a_kill),
        cmocka_unit_test(every_call_on_a_failing_disk_says_so),
        cmocka_unit_test(a_key_is_free_again_when_the_other_transaction_is_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
