/* SPDX-License-Identifier: MIT */
/* What one call on a file looks at has a bound, whatever the file holds: pruning, claims, counts of what is kept back. */
#include <stdlib.h>

#include "jobs/views.h"
#include "support/sqlite_fixture.h"

struct file {
    struct hfi_store *port;
    struct hfi_sqlite *store;
    int64_t node;
};

static struct file open_file(const char *name) {
    struct file file = {0};
    assert_int_equal(open_store(hf_test_path(name), &file.port, NULL), 0);
    file.store = hfi_sqlite_of(file.port);
    assert_int_equal(join_node(file.port, &file.node), 0);
    return file;
}

static void close_file(struct file *file) {
    file->port->ops->close(file->port);
}

static int64_t number(const struct file *file, const char *sql) {
    int64_t value = -1;
    assert_int_equal(hfi_sqlite_number(file->store->db, sql, &value), SQLITE_OK);
    return value;
}

static void run(const struct file *file, const char *sql) {
    assert_int_equal(sqlite3_exec(file->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* ------------------------------------------------------------------ pruning */

enum { HELD = 3000, GOES = 300, PAGE = 100 };

/* Settled letters with an alert each: one that nobody got for the first HELD of them, sent ones for the others. */
static void fill_letters(const struct file *file) {
    char sql[600];
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
             "INSERT INTO dead_letters(id, job_id, status, type, dead_at_us, settled_at_us) SELECT i, i, 2, 't', 5, i FROM n;"
             "INSERT INTO alerts(dead_id, sink, state, next_at_us) SELECT id, 'ops', iif(id <= %d, 0, 1), 9 FROM dead_letters",
             HELD + GOES, HELD);
    run(file, sql);
}

/* Letters that an alert holds back are walked past by and by, each call a bounded stretch; alerts go with their letter. */
static void a_page_of_pruning_looks_at_so_many_letters(void **state) {
    (void)state;
    struct file file = open_file("letters.db");
    uint32_t pruned = 0, calls = 0;
    fill_letters(&file);
    struct hfi_op_prune op = {.op = {.kind = HFI_OP_PRUNE}, .dead_letters_before = HELD + GOES + 1, .now = {T0}, .limit = PAGE};
    do {
        uint64_t before = file.store->rows_read;
        assert_int_equal(DO(file.port, &op), 0);
        assert_true(file.store->rows_read - before <= 1010);
        pruned += op.pruned;
        calls++;
    } while (op.more && calls < 100);
    assert_int_equal(pruned, GOES);
    assert_in_range(calls, 4, 10);
    assert_int_equal(number(&file, "SELECT count(*) FROM dead_letters"), HELD);
    assert_int_equal(number(&file, "SELECT count(*) FROM alerts WHERE state = 1"), 0);
    run(&file, "UPDATE alerts SET state = 1 WHERE dead_id = 7"); /* the walk comes around */
    for (calls = 0; calls < 10 && number(&file, "SELECT count(*) FROM dead_letters WHERE id = 7") > 0; calls++)
        assert_int_equal(DO(file.port, &op), 0);
    assert_int_equal(number(&file, "SELECT count(*) FROM alerts"), HELD - 1);
    close_file(&file);
}

/* ------------------------------------------------------------------ claims */

static void put_expired(struct hfi_store *store, size_t count) {
    struct hfi_put *items = calloc(count, sizeof *items);
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = items, .count = count};
    for (size_t i = 0; i < count; i++) {
        items[i].job = plain_job("work", T0 - 9 * S + (int64_t)i);
        items[i].job.expires_at_us = T0 - S;
    }
    assert_int_equal(DO(store, &op), 0);
    free(items);
}

static size_t claim(const struct file *file, struct hfi_admitted *lane, uint32_t max) {
    static struct hfi_curve curve;
    struct hfi_job *jobs[16];
    hfi_curve_default(&curve);
    lane->policy = &curve;
    lane->max = max;
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = file->node, .now = {T0}, .start = true,
                              .lanes = lane, .lane_count = 1, .max = max, .jobs = jobs};
    uint64_t before = file->store->rows_read;
    assert_int_equal(DO(file->port, &op), 0);
    assert_true(file->store->rows_read - before <= 2 * 66 + 60);
    for (size_t i = 0; i < op.count; i++)
        hfi_free(jobs[i]);
    return op.count;
}

/* Rows past their time stand before and behind what may be claimed: no claim walks them all, and none is lost. */
static void check_expired(const char *name, int64_t aging_us) {
    struct file file = open_file(name);
    struct hfi_job first = plain_job("work", T0 - 10 * S), last = plain_job("work", T0 - 2 * S), urgent = plain_job("work", T0 - S);
    urgent.priority = 5;
    put_expired(file.port, 2000);
    assert_int_equal(put_job(file.port, &first, NULL), 0);
    assert_int_equal(put_job(file.port, &last, NULL), 0);
    assert_int_equal(put_job(file.port, &urgent, NULL), 0);
    struct hfi_admitted lane = {.lane = 1, .aging_us = aging_us};
    assert_int_equal(claim(&file, &lane, 2), 2);
    assert_true(lane.more);
    assert_int_equal(claim(&file, &lane, 2), 0);
    assert_true(lane.more); /* the last one stands behind too many */
    struct hfi_op_expire expire = {.op = {.kind = HFI_OP_EXPIRE}, .now = {T0}, .limit = 1990};
    assert_int_equal(DO(file.port, &expire), 0);
    assert_int_equal(expire.ended, 1990);
    assert_int_equal(claim(&file, &lane, 2), 1);
    assert_false(lane.more);
    close_file(&file);
}

static void a_claim_passes_few_rows_past_their_time(void **state) {
    (void)state;
    check_expired("expired.db", 0);
    check_expired("expired-aged.db", 60 * S);
}

/* ------------------------------------------------------------------ counts */

enum { KEPT_LANES = 4, KEPT_EACH = 4000 };

/* What is kept back is counted up to one bound over all lanes. */
static void kept_lanes_share_one_bound(void **state) {
    (void)state;
    struct file file = open_file("kept.db");
    int64_t lanes[KEPT_LANES];
    for (int i = 0; i < KEPT_LANES; i++) {
        char type[8];
        snprintf(type, sizeof type, "t%d", i);
        assert_int_equal(put_many(file.port, type, KEPT_EACH), 0);
        lanes[i] = i + 1;
    }
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = {T0 + S}, .kept = lanes, .kept_count = 2};
    assert_int_equal(DO(file.port, &op), 0);
    assert_int_equal(op.kept_due, 2 * KEPT_EACH);
    hfi_free(op.rows);
    op.kept_count = KEPT_LANES;
    assert_int_equal(DO(file.port, &op), 0);
    assert_int_equal(op.kept_due, HFI_KEPT_MAX);
    hfi_free(op.rows);
    close_file(&file);
}

/* So many jobs of one lane, and so many names. */
static void limits_are_listed_with_bounds(void **state) {
    (void)state;
    enum { JOBS = HFI_LIMIT_PENDING_MAX + 5, NAMES = HFI_LIMIT_NAMES_MAX + 5 };
    struct file file = open_file("limits.db");
    struct hf_limit_list *list = NULL;
    struct hfi_put *items = calloc(JOBS + NAMES, sizeof *items);
    char(*keys)[16] = calloc(NAMES, sizeof *keys);
    struct hfi_op_put put = {.op = {.kind = HFI_OP_PUT}, .items = items, .count = JOBS + NAMES};
    for (int i = 0; i < JOBS + NAMES; i++) {
        items[i].job = plain_job("work", T0);
        if (i >= JOBS)
            snprintf(keys[i - JOBS], sizeof *keys, "n%05d:k", i);
        items[i].job.limit_key = i < JOBS ? "a:k" : keys[i - JOBS];
    }
    assert_int_equal(DO(file.port, &put), 0);
    assert_int_equal(file.port->ops->list_limits(file.port, &list, NULL), 0);
    assert_int_equal(hf_limit_list_count(list), HFI_LIMIT_NAMES_MAX);
    assert_string_equal(hf_limit_list_at(list, 0)->name, "a");
    assert_int_equal(hf_limit_list_at(list, 0)->pending, HFI_LIMIT_PENDING_MAX);
    assert_int_equal(hf_limit_list_at(list, 1)->pending, 1);
    hf_limit_list_free(list);
    free(items);
    free(keys);
    close_file(&file);
}

/* ------------------------------------------------------------------ curves */

enum { CURVES = 4 * HFI_POLICIES_KEPT, BATCH = 64 };

static int64_t wait_of(int number) {
    return 1000 + number;
}

static void put_curves(const struct file *file, int first) {
    static struct hfi_put items[BATCH];
    static struct hfi_curve curves[BATCH];
    struct hfi_op_put put = {.op = {.kind = HFI_OP_PUT}, .items = items, .count = BATCH};
    for (int i = 0; i < BATCH; i++) {
        curves[i] = (struct hfi_curve){.max_executions = 3, .length = 1, .waits_ms = {wait_of(first + i)}};
        items[i] = (struct hfi_put){.job = plain_job("a", T0 + first + i), .curve = &curves[i]};
    }
    assert_int_equal(DO(file->port, &put), 0);
}

/* Of ever new curves few are kept, and each job has its own all the same: those that are held, and those that are claimed or
 * fail when theirs was forgotten long ago. */
static void few_of_ever_new_curves_are_kept(void **state) {
    (void)state;
    struct file file = open_file("curves.db");
    struct hfi_job **jobs = calloc(CURVES, sizeof *jobs);
    struct hf_outcome transient = failure_of(HF_CLASS_TRANSIENT);
    for (int i = 0; i < CURVES; i += BATCH) {
        put_curves(&file, i);
        assert_in_range(file.store->policies_kept, 1, HFI_POLICIES_KEPT);
    }
    assert_int_equal(number(&file, "SELECT count(*) FROM policies"), CURVES);
    for (int i = 0; i < CURVES; i += BATCH) {
        size_t count = 0;
        assert_int_equal(claim_jobs(file.port, file.node, T0 + S, BATCH, &jobs[i], &count), 0);
        assert_int_equal(count, BATCH);
        assert_in_range(file.store->policies_kept, 1, HFI_POLICIES_KEPT);
    }
    for (int i = 0; i < CURVES; i++) {
        assert_int_equal(jobs[i]->policy->waits_ms[0], wait_of(i));
        struct hfi_op_apply end = end_of(jobs[i], T0 + 2 * S, &transient);
        assert_int_equal(DO(file.port, &end), 0);
        assert_int_equal(end.change.job.run_at_us, T0 + 2 * S + wait_of(i) * 1000);
        hfi_free(jobs[i]);
    }
    free(jobs);
    close_file(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_pruning_looks_at_so_many_letters),
        cmocka_unit_test(a_claim_passes_few_rows_past_their_time),
        cmocka_unit_test(kept_lanes_share_one_bound),
        cmocka_unit_test(limits_are_listed_with_bounds),
        cmocka_unit_test(few_of_ever_new_curves_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
