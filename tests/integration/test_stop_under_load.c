/* SPDX-License-Identifier: MIT */
/*
 * I91: a node is stopped and its store closed at a random moment, while jobs are enqueued, an outbox is relayed and
 * handlers run. Afterwards no job is left running, every acknowledged enqueue is there, and each job ran as often as
 * its handler was called. Under sanitizers: nothing is used after the close, nothing is left. 10 rounds, HF_FULL=1: 100.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

#include "base/random.h"
#include "holdfast/holdfast.h"

#define LOAD 150 /* as many handlers at most before the stop */
#define OUTBOX_ROWS 100 /* in the SQL as well */

struct round {
    struct hf_store *store;
    struct hf_runner *runner;
    char store_path[600], outbox_path[600];
    atomic_bool enough;         /* for who enqueues */
    int put;                    /* acknowledged */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int called;                 /* handlers; with the lock */
    int stop_at;
};

static int64_t number(const char *path, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

static enum hf_result count_call(struct hf_work *work, void *user) {
    struct round *round = user;
    pthread_mutex_lock(&round->lock);
    round->called++;
    pthread_cond_broadcast(&round->moved);
    pthread_mutex_unlock(&round->lock);
    return hf_work_ok(work, "done", 4);
}

/* Goes on until after the runner has ended: the writer has work all the time. */
static void *enqueue_all(void *user) {
    struct round *round = user;
    for (int i = 0; !atomic_load(&round->enough); i++) {
        struct hf_job_spec spec = hf_job_of(i % 2 == 0 ? "native" : "noop", "payload");
        round->put += hf_enqueue(round->store, &spec, NULL, NULL, NULL) == 0;
    }
    return NULL;
}

static void fill_outbox(struct round *round) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(round->outbox_path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(hf_outbox_create_in_sqlite(db, NULL), 0);
    assert_int_equal(sqlite3_exec(db, "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
                                      "INSERT INTO holdfast_outbox(type, payload) SELECT 'native', 'row' FROM n",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
}

static void open_round(struct round *round, int nth) {
    struct hf_store_options options;
    char name[40], url[700];
    snprintf(name, sizeof name, "jobs-%d.db", nth);
    snprintf(round->store_path, sizeof round->store_path, "%s", hf_test_path(name));
    snprintf(name, sizeof name, "shop-%d.db", nth);
    snprintf(round->outbox_path, sizeof round->outbox_path, "%s", hf_test_path(name));
    snprintf(url, sizeof url, "sqlite:%s", round->store_path);
    fill_outbox(round);
    hf_store_options_init(&options);
    options.normal_sync = true; /* no power is cut here, and there is more load so */
    assert_int_equal(hf_store_open(url, &options, &round->store, NULL), 0);
}

static void begin_runner(struct round *round) {
    struct hf_outbox_options outbox;
    struct hf_runner_options options;
    struct hf_type_options noop, native = hf_type_native("native");
    hf_outbox_options_init(&outbox);
    outbox.name = "shop";
    outbox.file = round->outbox_path;
    hf_type_options_init(&noop);
    noop.kind = HF_KIND_NOOP;
    noop.name = "noop";
    hf_runner_options_init(&options);
    options.types = &noop;
    options.type_count = 1;
    options.outboxes = &outbox;
    options.outbox_count = 1;
    options.workers = 4;
    assert_int_equal(hf_runner_new(round->store, &options, &round->runner, NULL), 0);
    assert_int_equal(hf_runner_register(round->runner, &native, count_call, round, NULL), 0);
    assert_int_equal(hf_runner_start(round->runner, NULL), 0);
}

static void check_round(struct round *round, int64_t relayed) {
    const char *path = round->store_path;
    assert_int_equal(number(path, "SELECT count(*) FROM jobs WHERE state = 2 OR owner IS NOT NULL"), 0);
    assert_int_equal(number(path, "SELECT count(*) FROM jobs WHERE state NOT IN (0, 3)"), 0);
    assert_int_equal(number(path, "SELECT count(*) FROM nodes WHERE gone = 0"), 0); /* it has left */
    assert_int_equal(number(path, "SELECT count(*) FROM counts c WHERE c.jobs <> (SELECT count(*) FROM jobs j WHERE "
                                  "j.state = c.state)"),
                     0);
    assert_int_equal(number(path, "SELECT count(*) FROM jobs"), round->put + relayed);
    assert_true(relayed <= OUTBOX_ROWS); /* stopped between the two files, rows may be in both: never in none */
    assert_true(number(round->outbox_path, "SELECT count(*) FROM holdfast_outbox") + relayed >= OUTBOX_ROWS);
    assert_int_equal(number(path, "SELECT count(*) FROM jobs j JOIN lanes l ON l.id = j.lane WHERE j.state = 3 AND "
                                  "l.type = 'native'"),
                     round->called);
    assert_int_equal(number(path, "SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check <> 'ok'"), 0);
}

/* `how` 0: it is asked and waited for; 1: hurried; 2: nothing but freed. */
static void stop_and_close(int nth, int stop_at, int how) {
    struct round round = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER, .stop_at = stop_at};
    pthread_t enqueuer;
    open_round(&round, nth);
    assert_int_equal(pthread_create(&enqueuer, NULL, enqueue_all, &round), 0);
    begin_runner(&round);
    pthread_mutex_lock(&round.lock);
    while (round.called < round.stop_at)
        pthread_cond_wait(&round.moved, &round.lock);
    pthread_mutex_unlock(&round.lock);
    if (how == 1)
        hf_runner_stop(round.runner);
    if (how != 2)
        assert_int_equal(hf_runner_drain(round.runner), 0);
    hf_runner_free(round.runner);
    atomic_store(&round.enough, true);
    pthread_join(enqueuer, NULL);
    hf_store_close(round.store);
    check_round(&round, number(round.store_path, "SELECT count(*) FROM inbox"));
}

static void i91_a_stop_at_any_moment_leaves_nothing_behind(void **state) {
    (void)state;
    int rounds = getenv("HF_FULL") != NULL ? 100 : 10;
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    for (int i = 0; i < rounds; i++)
        stop_and_close(i, (int)hfi_random_below(&random, LOAD), i % 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(i91_a_stop_at_any_moment_leaves_nothing_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
