/* SPDX-License-Identifier: MIT */
/*
 * What a claim reads of a file with much around it: at most 4 rows for each job it takes and 10 for each lane it was
 * given, whatever else lies there (I42, I44, S4.6); two connections on one file (S3.10); odd rows and great numbers.
 */
#include <stdlib.h>

#include "jobs/limit.h"
#include "support/sqlite_fixture.h"

#define KEYS 100
#define FULL 10
#define LANES (KEYS + FULL)

static const struct hfi_limit two = {.concurrency = 2};
static struct hfi_curve curve;

/* `count` jobs spread over so many keys from `first` on; NULL limit: none, and parked behind a breaker. */
static void put(struct hfi_store *store, size_t count, const char *limit, size_t first, size_t keys, int priority,
                int64_t run_at_us) {
    struct hfi_put *items = calloc(count, sizeof *items);
    char(*texts)[32] = calloc(count, sizeof *texts);
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = items, .count = count};
    for (size_t i = 0; i < count; i++) {
        items[i].job = plain_job("work", run_at_us + (int64_t)i);
        items[i].job.priority = priority;
        if (limit)
            snprintf(texts[i], sizeof texts[i], "%s:%zu", limit, first + i % keys);
        items[i].job.limit_key = texts[i];
        items[i].job.breaker_key = limit ? "" : "down";
    }
    assert_int_equal(DO(store, &op), 0);
    free(items);
    free(texts);
}

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
    hfi_curve_default(&curve);
    return file;
}

static int64_t lane_of(const struct file *file, const char *limit_key) {
    char sql[128];
    int64_t lane = 0;
    snprintf(sql, sizeof sql, "SELECT id FROM lanes WHERE limit_key = '%s'", limit_key);
    assert_int_equal(hfi_sqlite_number(file->store->db, sql, &lane), SQLITE_OK);
    return lane;
}

static int64_t steps(struct hfi_sqlite *store) {
    int64_t sum = 0;
    for (int i = 0; i < HFI_SQL_COUNT; i++)
        if (store->statements[i])
            sum += sqlite3_stmt_status(store->statements[i], SQLITE_STMTSTATUS_VM_STEP, 1);
    return sum;
}

/* A claim of these lanes; the jobs are freed, their rows keep running. */
static size_t claim(const struct file *file, struct hfi_admitted *lanes, size_t lane_count, uint32_t max) {
    struct hfi_job *jobs[256];
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = file->node, .now = {T0}, .start = true,
                              .lanes = lanes, .lane_count = lane_count, .max = max, .jobs = jobs};
    assert_int_equal(DO(file->port, &op), 0);
    for (size_t i = 0; i < op.count; i++)
        hfi_free(jobs[i]);
    return op.count;
}

static struct hfi_admitted ask(int64_t lane, uint32_t max, const struct hfi_limit *limit) {
    return (struct hfi_admitted){.lane = lane, .max = max, .policy = &curve, .limit = limit};
}

/* Claims everything that is to be had; the bound is checked on each claim. Returns the machine steps for each job. */
static double claim_all(const struct file *file, const int64_t *lane_ids, size_t expected) {
    struct hfi_admitted lanes[LANES];
    size_t claimed = 0, got;
    steps(file->store);
    do {
        for (size_t i = 0; i < LANES; i++)
            lanes[i] = ask(lane_ids[i], 5, i < FULL ? &two : NULL);
        uint64_t before = file->store->rows_read;
        got = claim(file, lanes, LANES, 64);
        assert_true(file->store->rows_read - before <= 4 * got + 10 * LANES);
        claimed += got;
    } while (got > 0);
    assert_int_equal(claimed, expected);
    return (double)steps(file->store) / (double)claimed;
}

static double claims_beside(const char *name, size_t around) {
    struct file file = open_file(name);
    int64_t lanes[LANES];
    put(file.port, FULL * 50, "tenant", 0, FULL, 5, T0 - 2 * S);
    for (size_t i = 0; i < FULL; i++) {
        char key[32];
        snprintf(key, sizeof key, "tenant:%zu", i);
        struct hfi_admitted full = ask(lane_of(&file, key), 5, &two);
        assert_int_equal(claim(&file, &full, 1, 5), 2);
        assert_true(full.more);
    }
    put(file.port, around, "tenant", 0, LANES, 9, T0 + 3600 * S); /* to come, and above all others */
    put(file.port, around, NULL, 0, 1, 5, T0 - 9 * S);
    put(file.port, KEYS * 20, "tenant", FULL, KEYS, 0, T0 - S);
    for (size_t i = 0; i < LANES; i++) {
        char key[32];
        snprintf(key, sizeof key, "tenant:%zu", i);
        lanes[i] = lane_of(&file, key);
    }
    double each = claim_all(&file, lanes, KEYS * 20);
    /* keys that are full are not read at all: one row says that nobody else wrote, one that the node lives */
    struct hfi_admitted full[FULL];
    for (size_t i = 0; i < FULL; i++)
        full[i] = ask(lanes[i], 5, &two);
    uint64_t before = file.store->rows_read;
    assert_int_equal(claim(&file, full, FULL, 64), 0);
    assert_int_equal(file.store->rows_read - before, 2);
    file.port->ops->close(file.port);
    assert_null(broken_invariant(hf_test_path(name)));
    return each;
}

/* I44, S4.6, I42: ten times as much around it makes a claim no dearer. */
static void a_claim_reads_what_it_takes(void **state) {
    (void)state;
    double few = claims_beside("few.db", 1000), many = claims_beside("many.db", 10000);
    assert_true(many <= few * 1.1);
}

static struct hfi_job *take_within(const struct file *file, int64_t lane, const struct hfi_limit *limit) {
    struct hfi_job *job = NULL;
    struct hfi_admitted one = ask(lane, 1, limit);
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = file->node, .now = {T0}, .start = true,
                              .lanes = &one, .lane_count = 1, .max = 1, .jobs = &job};
    assert_int_equal(DO(file->port, &op), 0);
    return op.count == 1 ? job : NULL;
}

static struct hfi_job *take_one(const struct file *file, int64_t lane) {
    return take_within(file, lane, &two);
}

/* S3.10: two claimers on one file never get the same row, and each sees what the other has taken of a key. */
static void two_connections_share_a_key(void **state) {
    (void)state;
    struct file a = open_file("shared.db"), b = {0};
    assert_int_equal(open_store(hf_test_path("shared.db"), &b.port, NULL), 0);
    b.store = hfi_sqlite_of(b.port);
    assert_int_equal(join_node(b.port, &b.node), 0);
    put(a.port, 40, "tenant", 7, 1, 0, T0 - S);
    int64_t lane = lane_of(&a, "tenant:7"), last = 0;
    struct hfi_job *first = take_one(&a, lane), *second = take_one(&b, lane);
    for (int round = 0; round < 15; round++) {
        assert_non_null(first);
        assert_non_null(second);
        assert_true(second->id > first->id && first->id > last);
        assert_null(take_one(&a, lane));
        assert_null(take_one(&b, lane));
        struct hfi_op_apply done = end_of(first, T0, NULL);
        assert_int_equal(DO(a.port, &done), 0);
        last = first->id;
        hfi_free(first);
        first = second;
        second = take_one(round % 2 ? &a : &b, lane); /* whoever ended it: its place is free for both */
        assert_null(take_one(round % 2 ? &b : &a, lane));
    }
    uint64_t reads = a.store->gauge_reads;
    assert_true(reads > 1); /* counted anew, because the other one wrote */
    hfi_free(first);
    hfi_free(second);
    a.port->ops->close(a.port);
    b.port->ops->close(b.port);
}

static int run_sql(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* S3.10: two claimers take disjoint rows while a third one's transaction looks at a claimed row and is not over, and while
 * its job runs: neither waits, for a wait is refused here. */
static void s3_10_claimers_wait_for_nobody_who_holds_a_claimed_row(void **state) {
    (void)state;
    struct file files[2] = {open_file("apart.db")};
    sqlite3 *third = NULL;
    int64_t held = 0, last = 0;
    assert_int_equal(open_store(hf_test_path("apart.db"), &files[1].port, NULL), 0);
    files[1].store = hfi_sqlite_of(files[1].port);
    assert_int_equal(join_node(files[1].port, &files[1].node), 0);
    put(files[0].port, 40, "tenant", 7, 1, 0, T0 - S);
    int64_t lane = lane_of(&files[0], "tenant:7");
    for (int i = 0; i < 2; i++)
        sqlite3_busy_timeout(files[i].store->db, 0);
    struct hfi_job *first = take_one(&files[0], lane);
    assert_non_null(first);
    assert_int_equal(sqlite3_open_v2(hf_test_path("apart.db"), &third, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(run_sql(third, "BEGIN"), SQLITE_OK);
    assert_int_equal(hfi_sqlite_number(third, "SELECT id FROM jobs WHERE state = 2", &held), SQLITE_OK);
    assert_true(held == first->id);
    last = held;
    for (int i = 0; i < 30; i++) {
        struct hfi_job *job = take_within(&files[i % 2], lane, NULL); /* asserts that it was not refused */
        assert_true(job != NULL && job->id > last);
        last = job->id;
        hfi_free(job);
    }
    assert_int_equal(hfi_sqlite_number(third, "SELECT count(*) FROM jobs WHERE state = 2", &held), SQLITE_OK);
    assert_int_equal(held, 1); /* it stood there all the time */
    assert_int_equal(run_sql(third, "COMMIT"), SQLITE_OK);
    sqlite3_close(third);
    hfi_free(first);
    files[0].port->ops->close(files[0].port);
    files[1].port->ops->close(files[1].port);
}

/* S3.10: nodes that find nothing to do take no lock that a writer waits for, and wait for none: what they ask at each poll
 * is answered while another one is in the middle of its write, and that one's lock is its own all the time. */
static void s3_10_idle_nodes_add_no_lock_wait(void **state) {
    (void)state;
    struct file idle[10] = {open_file("idle.db")};
    sqlite3 *writer = NULL;
    for (int i = 1; i < 10; i++) {
        assert_int_equal(open_store(hf_test_path("idle.db"), &idle[i].port, NULL), 0);
        idle[i].store = hfi_sqlite_of(idle[i].port);
        assert_int_equal(join_node(idle[i].port, &idle[i].node), 0);
    }
    put(idle[0].port, 5, "tenant", 7, 1, 0, T0 + 60 * S);
    assert_int_equal(sqlite3_open_v2(hf_test_path("idle.db"), &writer, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(run_sql(writer, "BEGIN IMMEDIATE; UPDATE jobs SET progress = 1 WHERE id = 1"), SQLITE_OK);
    for (int poll = 0; poll < 20; poll++) {
        for (int i = 0; i < 10; i++) {
            struct hfi_op_lanes lanes = {.op = {.kind = HFI_OP_LANES}, .now = {T0 + poll * S / 2}};
            struct hfi_op_nodes nodes = {.op = {.kind = HFI_OP_NODES}, .self = idle[i].node};
            struct hfi_op_redrive_step tasks = {.op = {.kind = HFI_OP_REDRIVE_STEP}, .look = true, .now = lanes.now};
            struct hfi_op *all[] = {&lanes.op, &nodes.op, &tasks.op};
            sqlite3_busy_timeout(idle[i].store->db, 0);
            idle[i].port->ops->commit(idle[i].port, all, 3);
            assert_int_equal(tasks.op.code, 0);
            assert_true(tasks.next_due_us == INT64_MAX);
            assert_int_equal(lanes.op.code, 0);
            assert_int_equal(nodes.op.code, 0);
            assert_int_equal(nodes.count, 9);
            hfi_free(lanes.rows);
            hfi_free(nodes.rows);
        }
    }
    assert_int_equal(run_sql(writer, "COMMIT"), SQLITE_OK);
    sqlite3_close(writer);
    for (int i = 9; i >= 0; i--)
        idle[i].port->ops->close(idle[i].port);
}

/* I33: one row that says impossible things among fifty: the others are claimed. */
static void one_odd_row_holds_no_claim_up(void **state) {
    (void)state;
    struct file file = open_file("odd.db");
    put(file.port, 50, "tenant", 1, 1, 0, T0 - S);
    sqlite3_exec(file.store->db, "UPDATE jobs SET executions = 2147483647, failures = -1, policy_id = 77 WHERE id = 25",
                 NULL, NULL, NULL);
    struct hfi_admitted lane = ask(lane_of(&file, "tenant:1"), 60, NULL);
    assert_true(claim(&file, &lane, 1, 60) >= 49);
    assert_false(lane.more);
    file.port->ops->close(file.port);
}

/* I39: ids beyond 2^31 and 2^53 through enqueue, claim, outcome and death. */
static void ids_are_64_bits_wide(void **state) {
    (void)state;
    static const int64_t starts[] = {INT64_C(2147483647), INT64_C(9007199254740993)};
    struct file file = open_file("great.db");
    for (size_t i = 0; i < 2; i++) {
        char sql[128];
        int64_t ids[2], dead = 0;
        snprintf(sql, sizeof sql, "UPDATE meta SET value = %lld WHERE key = 'next_job'", (long long)starts[i]);
        assert_int_equal(sqlite3_exec(file.store->db, sql, NULL, NULL, NULL), SQLITE_OK);
        for (int j = 0; j < 2; j++) {
            struct hfi_job job = plain_job("great", T0);
            assert_int_equal(put_job(file.port, &job, &ids[j]), 0);
            assert_true(ids[j] == starts[i] + j);
        }
        int64_t lane = lane_of(&file, "");
        struct hfi_job *first = take_one(&file, lane), *second = take_one(&file, lane);
        assert_true(first->id == ids[0] && second->id == ids[1]);
        struct hf_outcome failure = failure_of(HF_CLASS_PERMANENT);
        struct hfi_op_apply done = end_of(first, T0, NULL), died = end_of(second, T0, &failure);
        assert_int_equal(DO(file.port, &done), 0);
        assert_int_equal(DO(file.port, &died), 0);
        snprintf(sql, sizeof sql, "SELECT id FROM dead_letters WHERE job_id = %lld", (long long)ids[1]);
        assert_int_equal(hfi_sqlite_number(file.store->db, sql, &dead), SQLITE_OK);
        struct hf_dead_action action;
        hf_dead_action_init(&action);
        action.actor = "me";
        struct hfi_op_redrive redrive = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = dead, .action = &action, .now = {T0}};
        assert_int_equal(DO(file.port, &redrive), 0);
        assert_true(redrive.new_job == ids[1] + 1);
        struct hfi_job *again = take_one(&file, lane);
        assert_true(again->id == redrive.new_job && again->root_id == ids[1]);
        hfi_free(first);
        hfi_free(second);
        hfi_free(again);
    }
    file.port->ops->close(file.port);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_reads_what_it_takes),
        cmocka_unit_test(two_connections_share_a_key),
        cmocka_unit_test(s3_10_claimers_wait_for_nobody_who_holds_a_claimed_row),
        cmocka_unit_test(s3_10_idle_nodes_add_no_lock_wait),
        cmocka_unit_test(one_odd_row_holds_no_claim_up),
        cmocka_unit_test(ids_are_64_bits_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
