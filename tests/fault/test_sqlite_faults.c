/* SPDX-License-Identifier: MIT */
/*
 * The SQLite store on a disk that fails: the Nth write, sync or truncate of a put-claim-apply script, for every N, once
 * or from then on, as an I/O error or a full disk; and every allocation. Afterwards the file is whole, each job in one
 * legal state, each death with one letter, and what was acknowledged is there (I19, I70, I93, S0.18).
 */
#include <stdlib.h>
#include <unistd.h>

#include "jobs/store/codes.h"
#include "support/fault_vfs.h"
#include "support/sqlite_fixture.h"

#define JOBS 6

struct script {
    char path[600];
    int64_t put, succeeded, dead; /* acknowledged */
    int first_code;
    struct hfi_store *store;
    bool only_made; /* no jobs: the making of the file */
};

static void remove_store(const char *path) {
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".node-1", ".node-2"};
    char whole[700];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(whole, sizeof whole, "%s%s", path, suffixes[i]);
        unlink(whole);
    }
}

/* A store made beforehand: making one takes most of the calls, and is swept by itself. */
static void lay_store(const char *path) {
    static char *bytes;
    static size_t length;
    FILE *file;
    if (!bytes) {
        struct hfi_store *store;
        assert_int_equal(open_store(path, &store, NULL), 0);
        store->ops->close(store);
        assert_non_null(bytes = malloc((size_t)1 << 20));
        assert_non_null(file = fopen(path, "rb"));
        length = fread(bytes, 1, (size_t)1 << 20, file);
        fclose(file);
    }
    remove_store(path);
    assert_non_null(file = fopen(path, "wb"));
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void note(struct script *script, int code) {
    if (code != 0 && script->first_code == 0)
        script->first_code = code;
}

static void end_all(struct script *script, struct hfi_job **jobs, size_t count) {
    struct hf_outcome outcome = failure_of(HF_CLASS_PERMANENT);
    for (size_t i = 0; i < count; i++) {
        bool dies = i % 3 == 0;
        struct hfi_op_apply op = end_of(jobs[i], T0 + 2 * S, dies ? &outcome : NULL);
        int code = DO(script->store, &op);
        note(script, code);
        if (code == 0 && dies)
            script->dead++;
        else if (code == 0)
            script->succeeded++;
        hfi_free(jobs[i]);
    }
}

/* The last job of a lane goes, the lane with it, while this store has it in its cache; then it is wanted again. */
static void forget_and_come_back(struct script *script) {
    struct hfi_store *store = script->store;
    int64_t id = 0;
    struct hfi_job job = plain_job("gone", T0);
    note(script, put_job(store, &job, &id));
    struct hfi_op_cancel cancel = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "x", .now = {T0 + 3 * S}};
    if (id != 0)
        note(script, DO(store, &cancel));
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .cancelled_before = INT64_MAX, .limit = 10, .now = {T0 + 3 * S}};
    note(script, DO(store, &prune));
    struct hfi_op_unused walk = {.op = {.kind = HFI_OP_UNUSED}, .now = {T0 + 3 * S}, .limit = 2};
    for (int i = 0; i < 20 && (i == 0 || walk.walk.number != 0); i++)
        note(script, DO(store, &walk));
    int code = put_job(store, &job, &id);
    note(script, code);
    script->put += code == 0;
}

/* Put, claim, end, checkpoint; whatever fails, the rest is tried. */
static void run_script(struct script *script) {
    struct hfi_job *jobs[JOBS];
    int64_t node = 0;
    script->put = script->succeeded = script->dead = 0;
    script->first_code = 0;
    int code = open_store(script->path, &script->store, NULL);
    note(script, code);
    if (code != 0)
        return;
    if (script->only_made) {
        script->store->ops->close(script->store);
        return;
    }
    for (int i = 0; i < 3; i++) {
        code = put_many(script->store, "a", JOBS / 3);
        note(script, code);
        script->put += code == 0 ? JOBS / 3 : 0;
    }
    note(script, join_node(script->store, &node));
    for (int i = 0; i < 2 && node != 0; i++) {
        size_t count = 0;
        note(script, claim_jobs(script->store, node, T0 + S, JOBS / 2, jobs, &count));
        end_all(script, jobs, count);
        for (int quiet = 0; quiet < 9; quiet++)
            script->store->ops->housekeep(script->store, true);
    }
    forget_and_come_back(script);
    script->store->ops->close(script->store);
}

/* What was answered with success is there; what was not may be (a commit whose sync failed), but whole. */
static void check(const struct script *script, const char *what, long nth) {
    if (access(script->path, F_OK) != 0 && script->put == 0)
        return;
    struct hfi_store *store;
    struct hf_error error;
    hf_error_init(&error);
    int code = open_store(script->path, &store, &error);
    if (code != 0)
        fail_msg("%s %ld: does not open again: %d %s", what, nth, code, error.why);
    store->ops->close(store);
    const char *broken = broken_invariant(script->path);
    if (broken)
        fail_msg("%s %ld: %s", what, nth, broken);
    if (ask_number(script->path, "SELECT count(*) FROM jobs") < script->put)
        fail_msg("%s %ld: an acknowledged job is lost", what, nth);
    if (ask_number(script->path, "SELECT count(*) FROM jobs WHERE state = 3") < script->succeeded ||
        ask_number(script->path, "SELECT count(*) FROM dead_letters") < script->dead)
        fail_msg("%s %ld: an acknowledged outcome is lost", what, nth);
}

static void sweep(enum fault_kind kind, int native, int forever, bool only_made, const char *what) {
    struct script script = {.only_made = only_made};
    int64_t jobs = only_made ? 0 : JOBS;
    snprintf(script.path, sizeof script.path, "%s", hf_test_path("faults.db"));
    for (long nth = 1;; nth += forever ? 3 : 1) {
        fault_arm(FAULT_ANY, 0, 0, 0);
        if (only_made)
            remove_store(script.path);
        else
            lay_store(script.path);
        fault_arm(kind, nth, native, forever);
        run_script(&script);
        int struck = fault_struck();
        fault_arm(kind, 0, 0, 0);
        check(&script, what, nth);
        if (struck == 0) {
            assert_int_equal(script.first_code, 0);
            assert_int_equal(script.put, only_made ? 0 : jobs + 1);
            assert_int_equal(script.succeeded + script.dead, jobs);
            assert_true(nth > 3);
            return;
        }
    }
}

static void failing_writes(void **state) {
    (void)state;
    sweep(FAULT_WRITE, SQLITE_IOERR_WRITE, 0, false, "write, once");
    sweep(FAULT_WRITE, SQLITE_IOERR_WRITE, 1, false, "write, for good");
}

static void a_full_disk(void **state) {
    (void)state;
    assert_int_equal(hfi_sqlite_code(SQLITE_IOERR_SHMSIZE), HF_ENOSPC); /* how a full disk shows at the opening */
    sweep(FAULT_WRITE, SQLITE_FULL, 0, false, "full, once");
    sweep(FAULT_WRITE, SQLITE_FULL, 1, false, "full, for good");
}

static void failing_syncs(void **state) {
    (void)state;
    sweep(FAULT_SYNC, SQLITE_IOERR_FSYNC, 0, false, "sync, once");
    sweep(FAULT_SYNC, SQLITE_IOERR_FSYNC, 1, false, "sync, for good");
}

/* What cannot be made whole is not there at all. */
static void making_a_store(void **state) {
    (void)state;
    sweep(FAULT_WRITE, SQLITE_FULL, 0, true, "making, write");
    sweep(FAULT_SYNC, SQLITE_IOERR_FSYNC, 1, true, "making, sync");
}

/* One failed write takes down its batch and nobody else: all are tried again alone, and the claim's jobs come whole. */
static void a_batch_survives_one_bad_moment(void **state) {
    (void)state;
    struct hfi_store *store;
    char path[600];
    struct hfi_put items[2] = {{.job = plain_job("a", T0)}, {.job = plain_job("b", T0)}};
    struct hfi_op_put first = {.op = {.kind = HFI_OP_PUT}, .items = &items[0], .count = 1};
    struct hfi_op_put second = {.op = {.kind = HFI_OP_PUT}, .items = &items[1], .count = 1};
    struct hfi_op *ops[] = {&first.op, &second.op};
    snprintf(path, sizeof path, "%s", hf_test_path("batch.db"));
    assert_int_equal(open_store(path, &store, NULL), 0);
    fault_arm(FAULT_SYNC, 1, SQLITE_IOERR_FSYNC, 0);
    store->ops->commit(store, ops, 2);
    assert_int_equal(fault_struck(), 1);
    fault_arm(FAULT_SYNC, 0, 0, 0);
    assert_int_equal(first.op.code, 0);
    assert_int_equal(second.op.code, 0);
    store->ops->close(store);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), 2);
    assert_null(broken_invariant(path));
}

static int attempt(void *user) {
    struct script *script = user;
    lay_store(script->path);
    run_script(script);
    return script->first_code == 0 || script->first_code == HF_ENOMEM ? script->first_code : HF_ESTATE;
}

static void no_memory(void **state) {
    (void)state;
    struct script script = {.only_made = false};
    snprintf(script.path, sizeof script.path, "%s", hf_test_path("memory.db"));
    fault_arm(FAULT_ANY, 0, 0, 0);
    lay_store(script.path); /* before allocations fail */
    assert_true(hf_test_alloc_sweep(attempt, &script) > JOBS);
    check(&script, "memory", 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_survives_one_bad_moment),
        cmocka_unit_test(making_a_store),
        cmocka_unit_test(failing_writes),
        cmocka_unit_test(failing_syncs),
        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(no_memory),
    };
    fault_arm(FAULT_ANY, 0, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
