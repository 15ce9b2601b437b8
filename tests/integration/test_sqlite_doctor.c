/* SPDX-License-Identifier: MIT */
/* What the doctor finds in a file that was tampered with, and that a healthy one passes (R16, I47). */
#include "support/sqlite_fixture.h"

static char path[600];
static char found[2048];
static char named[256]; /* the text about what is overdue */

static void note(bool is_error, const char *check, const char *text, const char *fix, void *user) {
    (void)user;
    assert_true(text[0] != '\0' && fix[0] != '\0');
    size_t length = strlen(found);
    if (strcmp(check, "overdue") == 0)
        snprintf(named, sizeof named, "%s", text);
    snprintf(found + length, sizeof found - length, "%s:%s;", is_error ? "error" : "note", check);
}

static int examine(struct hfi_store *store) {
    struct hf_error error;
    found[0] = '\0';
    hf_error_init(&error);
    int code = store->ops->doctor(store, note, NULL, &error);
    if (code < 0)
        fail_msg("the doctor failed: %s", error.why);
    return code;
}

static void healthy_then_not(void **state) {
    (void)state;
    static const char *const harms[][2] = {
        {"UPDATE jobs SET state = 9 WHERE id = 1", "error:unreachable;"},
        {"UPDATE jobs SET state = 2, owner = 77 WHERE id = 2", "error:owner;"},
        {"UPDATE jobs SET lane = 99 WHERE id = 3", "error:lane;"},
        {"UPDATE lanes SET next_due_us = 9223372036854775807", "error:next_due;"},
        {"UPDATE jobs SET state = 4 WHERE id = 4", "error:letters;"},
        {"INSERT INTO job_specs(id) VALUES (1234)", "error:specs;"},
        {"UPDATE counts SET jobs = jobs + 1", "error:counts;"},
        {"INSERT INTO alerts(dead_id, sink, state, next_at_us) VALUES (1, 'x', 2, 0)", "note:undelivered;"},
        {"INSERT INTO dead_letters(id, job_id, type, dead_at_us) VALUES (1, 1, 'a', 5)", ""},
        {"INSERT INTO alerts(dead_id, sink, state, next_at_us) VALUES (1, 'fresh', 0, (unixepoch() - 3000) * 1000000)", ""},
        {"INSERT INTO alerts(dead_id, sink, state, next_at_us) VALUES (1, 'renamed', 0, 5)", "note:overdue;"},
    };
    struct hfi_store *store;
    sqlite3 *db;
    snprintf(path, sizeof path, "%s", hf_test_path("doctor.db"));
    assert_int_equal(open_store(path, &store, NULL), 0);
    assert_int_equal(put_many(store, "a", 10), 0);
    assert_int_equal(examine(store), 0);
    assert_null(strstr(found, "error"));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t i = 0; i < sizeof harms / sizeof *harms; i++) {
        assert_int_equal(sqlite3_exec(db, harms[i][0], NULL, NULL, NULL), SQLITE_OK);
        bool overdue = strcmp(harms[i][1], "note:overdue;") == 0;
        examine(store);
        assert_true(overdue == (strstr(found, "overdue") != NULL)); /* not 3,000 s late */
        assert_true(!overdue || strstr(named, "1 alerts of sink renamed "));
        if (!strstr(found, harms[i][1]))
            fail_msg("after %s only: %s", harms[i][0], found);
    }
    assert_true(examine(store) >= 7);
    sqlite3_close(db);
    store->ops->close(store);
}

/* Free pages go back when there are many (I96). */
static void a_file_shrinks_after_pruning(void **state) {
    (void)state;
    struct hfi_store *store;
    static char payload[60000];
    struct hfi_job job = plain_job("a", T0), *jobs[16];
    size_t count;
    int64_t node;
    job.payload = payload;
    job.payload_length = sizeof payload;
    snprintf(path, sizeof path, "%s", hf_test_path("shrink.db"));
    assert_int_equal(open_store(path, &store, NULL), 0);
    assert_int_equal(join_node(store, &node), 0);
    for (int i = 0; i < 256; i++)
        assert_int_equal(put_job(store, &job, NULL), 0);
    do {
        assert_int_equal(claim_jobs(store, node, T0 + S, 16, jobs, &count), 0);
        for (size_t i = 0; i < count; i++) {
            struct hfi_op_apply end = end_of(jobs[i], T0 + S, NULL);
            assert_int_equal(DO(store, &end), 0);
            hfi_free(jobs[i]);
        }
    } while (count > 0);
    int64_t before = ask_number(path, "PRAGMA page_count");
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = T0 + 2 * S, .limit = 1000};
    assert_int_equal(DO(store, &prune), 0);
    assert_int_equal(prune.pruned, 256);
    for (int round = 0; round < 20; round++) {
        assert_int_equal(put_many(store, "b", 1), 0);
        for (int i = 0; i < 10; i++)
            store->ops->housekeep(store, true);
    }
    assert_true(ask_number(path, "PRAGMA page_count") < before * 3 / 4);
    store->ops->close(store);
    assert_null(broken_invariant(path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_then_not),
        cmocka_unit_test(a_file_shrinks_after_pruning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
