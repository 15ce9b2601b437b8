/* SPDX-License-Identifier: MIT */
/*
 * I10: statements that never end, made so by a view without an end under a table's name or a trigger. They are ended by
 * the store's deadline, which is no time at all here, so that the first look at the clock is the last: what was cut
 * leaves nothing behind, is tried again, and comes through as soon as it can.
 */
#include <pthread.h>

#include "holdfast/holdfast.h"
#include "jobs/writer.h"
#include "support/sqlite_fixture.h"

/* Reads a table as well: a statement that reads none does not see that the schema has changed. */
#define ENDLESS                                                                                                        \
    "WITH RECURSIVE n(i) AS (SELECT count(*) FROM meta UNION ALL SELECT i + 1 FROM n) SELECT i AS state, i AS jobs FROM n"

static int run_sql(const char *path, const char *sql) {
    sqlite3 *db;
    int native = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    sqlite3_busy_timeout(db, 60000);
    if (native == SQLITE_OK)
        native = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (native != SQLITE_OK)
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
    return native;
}

static struct hfi_sqlite *open_hasty(const char *name, char *path, size_t room) {
    struct hf_store_options options;
    struct hfi_store *store = NULL;
    hf_store_options_init(&options);
    options.normal_sync = true; /* no power is cut here */
    snprintf(path, room, "%s", hf_test_path(name));
    assert_int_equal(hfi_sqlite_store_open(path, &options, &store, NULL), 0);
    struct hfi_sqlite *made = hfi_sqlite_of(store);
    assert_int_equal(made->deadline.limit_us, 10000000); /* what stands in the header and the documents */
    assert_int_equal(made->read_deadline.limit_us, 10000000);
    made->deadline.limit_us = made->read_deadline.limit_us = 0;
    return made;
}

static void i10_a_read_without_an_end_is_ended_and_the_next_one_works(void **state) {
    (void)state;
    char path[600];
    struct hf_error error;
    struct hfi_sqlite *store = open_hasty("read.db", path, sizeof path);
    struct hf_job_counts counts = {.size = sizeof counts};
    hf_error_init(&error);
    assert_int_equal(put_many(&store->base, "a", 5), 0);
    assert_int_equal(run_sql(path, "ALTER TABLE counts RENAME TO kept; CREATE VIEW counts AS " ENDLESS), SQLITE_OK);
    assert_int_equal(store->base.ops->count_jobs(&store->base, &counts, &error), HF_EBUSY);
    assert_string_equal(error.what, "counts");
    assert_non_null(strstr(error.why, "took longer than 10 s"));
    assert_int_equal(counts.pending, 0);
    assert_int_equal(run_sql(path, "DROP VIEW counts; ALTER TABLE kept RENAME TO counts"), SQLITE_OK);
    if (store->base.ops->count_jobs(&store->base, &counts, &error) != 0)
        fail_msg("%s: %s (%d)", error.what, error.why, error.native);
    assert_int_equal(counts.pending, 5);
    store->base.ops->close(&store->base);
}

/* What looks at every row for good reason is not cut: the same amount of work in a read is. */
static void i10_a_doctor_may_take_its_time(void **state) {
    (void)state;
    char path[600];
    struct hfi_sqlite *store = open_hasty("doctor.db", path, sizeof path);
    struct hf_queue_list *queues = NULL;
    store->deadline.limit_us = INT64_C(1000000000000);
    assert_int_equal(put_many(&store->base, "a", 4000), 0);
    assert_int_equal(run_sql(path, "DELETE FROM counts"), SQLITE_OK);
    assert_int_equal(store->base.ops->list_queues(&store->base, &queues, NULL), HF_EBUSY);
    assert_null(queues);
    assert_int_equal(store->base.ops->doctor(&store->base, NULL, NULL, NULL), 1); /* it came to the end, and found that */
    store->base.ops->close(&store->base);
}

static void i10_a_transaction_that_is_cut_leaves_nothing_and_comes_again(void **state) {
    (void)state;
    char path[600];
    struct hfi_sqlite *store = open_hasty("write.db", path, sizeof path);
    struct hfi_put items[3] = {0};
    struct hfi_op_put puts[3];
    struct hfi_op *ops[3];
    assert_int_equal(run_sql(path, "CREATE VIEW endless AS " ENDLESS "; CREATE TRIGGER stall BEFORE INSERT ON job_specs WHEN "
                                   "new.correlation_id = 'stall' BEGIN SELECT count(*) FROM endless; END"),
                     SQLITE_OK);
    for (size_t i = 0; i < 3; i++) {
        items[i].job = plain_job("a", T0);
        puts[i] = (struct hfi_op_put){.op = {.kind = HFI_OP_PUT}, .items = &items[i], .count = 1};
        ops[i] = &puts[i].op;
    }
    items[1].job.correlation_id = "stall";
    for (int again = 0; again < 3; again++) {
        store->base.ops->commit(&store->base, ops, 3);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(ops[i]->code, HF_EBUSY); /* for now: the writer brings them again, none was tried alone */
        assert_true(sqlite3_get_autocommit(store->db));
        assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), 0);
    }
    assert_int_equal(run_sql(path, "DROP TRIGGER stall"), SQLITE_OK);
    store->base.ops->commit(&store->base, ops, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ops[i]->code, 0);
    assert_int_equal(ask_number(path, "SELECT count(DISTINCT id) FROM jobs"), 3);
    assert_null(broken_invariant(path));
    store->base.ops->close(&store->base);
}

/* What was answered with success is there, and what was cut is not: wherever in a transaction the clock was asked. */
static void i10_what_is_cut_is_not_there_and_what_is_not_is(void **state) {
    (void)state;
    char path[600];
    struct hfi_sqlite *store = open_hasty("commit.db", path, sizeof path);
    int done = 0, cut = 0;
    for (int i = 0; i < 12000; i++) {
        struct hfi_job job = plain_job("a", T0);
        int code = put_job(&store->base, &job, NULL);
        assert_true(code == 0 || code == HF_EBUSY);
        done += code == 0;
        cut += code != 0;
    }
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), done);
    assert_true(cut > 0 && cut < 1200);
    store->base.ops->close(&store->base);
}

static int64_t looks; /* at the clock: a second passes between two */
static struct hf_mono counted(void) {
    return (struct hf_mono){++looks * 1000000};
}

/* I10: 10 s are the bound of a whole group, not of each try of it: here one of its operations is refused, so that each is
 * tried alone, and several of them stall. Who waits for less is answered by then. */
static void i10_a_group_has_one_deadline(void **state) {
    (void)state;
    char path[600];
    struct hfi_sqlite *store = open_hasty("group.db", path, sizeof path);
    struct hfi_put items[6] = {0};
    struct hfi_op_put puts[6];
    struct hfi_op *ops[6];
    assert_int_equal(run_sql(path, "CREATE VIEW endless AS " ENDLESS "; CREATE TRIGGER stall BEFORE INSERT ON job_specs WHEN "
                                   "new.correlation_id = 'stall' BEGIN SELECT count(*) FROM endless; END; CREATE TRIGGER "
                                   "refuse BEFORE INSERT ON job_specs WHEN new.correlation_id = 'refuse' BEGIN SELECT "
                                   "raise(ROLLBACK, 'no'); END"),
                     SQLITE_OK);
    for (size_t i = 0; i < 6; i++) {
        items[i].job = plain_job("a", T0);
        items[i].job.correlation_id = i == 0 ? "refuse" : i < 5 ? "stall" : "fine";
        puts[i] = (struct hfi_op_put){.op = {.kind = HFI_OP_PUT}, .items = &items[i], .count = 1};
        ops[i] = &puts[i].op;
    }
    store->deadline.limit_us = 10000000;
    store->deadline.now = counted;
    looks = 0;
    store->base.ops->commit(&store->base, ops, 6);
    assert_in_range(looks, 10, 15); /* the start, ten seconds, and one look of each that stalls and came later */
    assert_true(puts[0].op.code != 0 && puts[0].op.code != HF_EBUSY);
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(puts[i].op.code, HF_EBUSY);
    assert_int_equal(puts[5].op.code, 0); /* it is short */
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), 1);
    looks = 0;
    store->base.budget_us = 3000000;
    store->base.ops->commit(&store->base, &ops[1], 1);
    assert_in_range(looks, 3, 5);
    assert_int_equal(puts[1].op.code, HF_EBUSY);
    store->deadline.now = NULL;
    store->base.ops->close(&store->base);
    assert_null(broken_invariant(path));
}

/* ------------------------------------------------------------------ a runner */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int cuts;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void note_cut(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)level;
    (void)fields;
    (void)user;
    if (strcmp(event, "store.slow") != 0)
        return;
    pthread_mutex_lock(&seen.lock);
    seen.cuts++;
    pthread_cond_broadcast(&seen.moved);
    pthread_mutex_unlock(&seen.lock);
}

/* The stall ends after three cuts; that another process gets the lock between two tries is part of the proof. */
struct mender {
    pthread_t thread;
    const char *path;
    int64_t pending;
    int native;
};

static void *mend(void *user) {
    struct mender *mender = user;
    pthread_mutex_lock(&seen.lock);
    while (seen.cuts < 3)
        pthread_cond_wait(&seen.moved, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
    mender->pending = ask_number(mender->path, "SELECT count(*) FROM jobs WHERE state = 0");
    mender->native = run_sql(mender->path, "DROP TRIGGER stall");
    return NULL;
}

static void i10_a_runner_goes_on_after_its_claims_were_cut(void **state) {
    (void)state;
    char path[600], url[700];
    struct hf_store *store = NULL;
    struct hf_runner *runner = NULL;
    struct hf_runner_options options;
    struct hf_type_options type;
    struct mender mender = {.path = path};
    snprintf(path, sizeof path, "%s", hf_test_path("runner.db"));
    snprintf(url, sizeof url, "sqlite:%s", path);
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    hfi_sqlite_of(store->port)->deadline.limit_us = 0; /* before the writer has anything to do */
    assert_int_equal(run_sql(path, "CREATE VIEW endless AS " ENDLESS "; CREATE TRIGGER stall BEFORE UPDATE ON jobs WHEN "
                                   "new.state = 2 BEGIN SELECT count(*) FROM endless; END"),
                     SQLITE_OK);
    hf_log_set(HF_LOG_WARNING, note_cut, NULL);
    for (int i = 0; i < 20; i++) {
        struct hf_job_spec spec = hf_job_of("tick", "x");
        assert_int_equal(hf_enqueue(store, &spec, NULL, NULL, NULL), 0);
    }
    hf_type_options_init(&type);
    type.kind = HF_KIND_NOOP;
    type.name = "tick";
    hf_runner_options_init(&options);
    options.types = &type;
    options.type_count = 1;
    options.until_idle = true;
    assert_int_equal(hf_runner_new(store, &options, &runner, NULL), 0);
    assert_int_equal(pthread_create(&mender.thread, NULL, mend, &mender), 0);
    assert_int_equal(hf_runner_run(runner, NULL), 0);
    pthread_join(mender.thread, NULL);
    assert_int_equal(mender.native, SQLITE_OK);
    assert_int_equal(mender.pending, 20); /* nothing of what was cut was there */
    hf_runner_free(runner);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    hf_store_close(store);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs WHERE state = 3 AND executions = 1"), 20);
    assert_null(broken_invariant(path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i10_a_read_without_an_end_is_ended_and_the_next_one_works),
        cmocka_unit_test(i10_a_doctor_may_take_its_time),
        cmocka_unit_test(i10_a_transaction_that_is_cut_leaves_nothing_and_comes_again),
        cmocka_unit_test(i10_what_is_cut_is_not_there_and_what_is_not_is),
        cmocka_unit_test(i10_a_group_has_one_deadline),
        cmocka_unit_test(i10_a_runner_goes_on_after_its_claims_were_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
