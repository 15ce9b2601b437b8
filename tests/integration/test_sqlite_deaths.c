/* SPDX-License-Identifier: MIT */
/* Deaths in a file whose rows another hand has changed: what the store does when a death is there already. */
#include "support/sqlite_fixture.h"

static char path[600];

static void change_file(const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* A store with one job that runs. */
static struct hfi_store *open_running(const char *name, struct hfi_job **job) {
    struct hfi_store *store;
    int64_t node;
    size_t count;
    snprintf(path, sizeof path, "%s", hf_test_path(name));
    assert_int_equal(open_store(path, &store, NULL), 0);
    assert_int_equal(join_node(store, &node), 0);
    assert_int_equal(put_many(store, "a", 1), 0);
    assert_int_equal(claim_jobs(store, node, T0 + S, 1, job, &count), 0);
    assert_int_equal(count, 1);
    return store;
}

/* S0.19: the loser of a race for one death gets the letter that is there; nobody is alerted twice. */
static void a_second_record_of_one_death_finds_the_first(void **state) {
    (void)state;
    struct hfi_job *job;
    struct hfi_store *store = open_running("twice.db", &job);
    struct hf_outcome gone = failure_of(HF_CLASS_PERMANENT);
    struct hfi_op_apply first = end_of(job, T0 + 2 * S, &gone);
    assert_int_equal(DO(store, &first), 0);
    assert_true(first.change.has_death && first.dead_id > 0);
    char again[200]; /* as a restored copy, or a hand in the file, would have it */
    snprintf(again, sizeof again, "UPDATE jobs SET state = 2, owner = %lld, deaths = 0 WHERE id = %lld", (long long)job->owner,
             (long long)job->id);
    change_file(again);
    gone = failure_of(HF_CLASS_TRANSIENT);
    gone.klass = HF_CLASS_POISON;
    struct hfi_op_apply second = end_of(job, T0 + 3 * S, &gone);
    assert_int_equal(DO(store, &second), 0);
    assert_int_equal(second.dead_id, first.dead_id);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM dead_letters"), 1);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM dead_letters WHERE death_class = 1"), 1); /* as it was [S0.17] */
    assert_int_equal(ask_number(path, "SELECT count(*) FROM alerts"), 1);
    hfi_free(job);
    store->ops->close(store);
}

/* S1.19: from the top; nothing of the earlier executions is handed on. */
static void a_requeue_discards_the_checkpoint(void **state) {
    (void)state;
    struct hfi_job *job;
    struct hfi_store *store = open_running("checkpoint.db", &job);
    struct hf_outcome gone = failure_of(HF_CLASS_PERMANENT);
    struct hfi_op_apply end = end_of(job, T0 + 2 * S, &gone);
    assert_int_equal(DO(store, &end), 0);
    change_file("UPDATE jobs SET progress_text = 'half of it'");
    change_file("INSERT INTO checkpoints SELECT id, x'0102' FROM jobs");
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = job->id, .actor = "ada", .now = {T0 + 3 * S}};
    assert_int_equal(DO(store, &requeue), 0);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs WHERE state = 0 AND progress_text IS NULL"), 1);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM checkpoints"), 0);
    hfi_free(job);
    store->ops->close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_record_of_one_death_finds_the_first),
        cmocka_unit_test(a_requeue_discards_the_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
