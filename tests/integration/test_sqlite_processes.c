/* SPDX-License-Identifier: MIT */
/*
 * Several processes on one file, and processes that are killed: no acknowledged job is lost, none is run twice, the dead
 * are known at once. The parent holds no handle while it forks.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "support/sqlite_fixture.h"

#define ROUND_JOBS 8
#define KILLS 20
#define WORKERS 2
#define OWN_JOBS 400

static char path[600];

static const char *at(const char *name) {
    snprintf(path, sizeof path, "%s", hf_test_path(name));
    return path;
}

/* What a child has been told is done, after each commit. */
struct told {
    int64_t put, ended, died;
};

static void say(int pipe, const struct told *told) {
    if (write(pipe, told, sizeof *told) != (ssize_t)sizeof *told)
        _exit(0);
}

static void end_some(struct hfi_store *store, struct hfi_job **jobs, size_t count, struct told *told) {
    struct hf_outcome permanent = failure_of(HF_CLASS_PERMANENT), transient = failure_of(HF_CLASS_TRANSIENT);
    struct hfi_op_apply applies[ROUND_JOBS];
    struct hfi_op *ops[ROUND_JOBS];
    for (size_t i = 0; i < count; i++) {
        applies[i] = end_of(jobs[i], T0 + 2 * S, jobs[i]->id % 5 == 0 ? &permanent : jobs[i]->id % 5 == 1 ? &transient : NULL);
        ops[i] = &applies[i].op;
    }
    store->ops->commit(store, ops, count);
    for (size_t i = 0; i < count; i++) {
        told->ended += applies[i].op.code == 0 && jobs[i]->id % 5 != 1;
        told->died += applies[i].op.code == 0 && jobs[i]->id % 5 == 0;
        hfi_free(jobs[i]);
    }
}

/* Works until it is killed. */
static void work_for_ever(int pipe) {
    struct hfi_store *store;
    struct hfi_job *jobs[ROUND_JOBS];
    struct told told = {0};
    int64_t node;
    if (open_store(path, &store, NULL) != 0 || join_node(store, &node) != 0)
        _exit(1);
    for (;;) {
        size_t count = 0;
        if (put_many(store, "a", ROUND_JOBS) == 0)
            told.put += ROUND_JOBS;
        say(pipe, &told);
        if (claim_jobs(store, node, T0 + S, ROUND_JOBS, jobs, &count) == 0)
            end_some(store, jobs, count, &told);
        say(pipe, &told);
        for (int i = 0; i < 9; i++)
            store->ops->housekeep(store, true);
    }
}

/* Kills the worker after some of its reports; adds what it was told. */
static void kill_one(uint64_t rounds, struct told *sum) {
    int pipes[2];
    struct told told = {0}, last = {0};
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        work_for_ever(pipes[1]);
    }
    close(pipes[1]);
    for (uint64_t i = 0; i < rounds && read(pipes[0], &told, sizeof told) == (ssize_t)sizeof told; i++)
        last = told;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (read(pipes[0], &told, sizeof told) == (ssize_t)sizeof told)
        last = told;
    close(pipes[0]);
    sum->put += last.put;
    sum->ended += last.ended;
    sum->died += last.died;
}

/* The next run on the host lapses what the dead have left, without waiting for a lease [3.5]. */
static uint32_t take_up(struct hfi_store *store, int64_t self) {
    struct hfi_op_nodes nodes = {.op = {.kind = HFI_OP_NODES}, .self = self};
    uint32_t lapsed = 0;
    struct hf_runner_options options;
    struct hfi_rulebook *book;
    hf_runner_options_init(&options);
    assert_int_equal(hfi_rulebook_new(&options, &book, NULL), 0);
    assert_int_equal(DO(store, &nodes), 0);
    for (size_t i = 0; i < nodes.count; i++) {
        struct hfi_op_sweep sweep = {.op = {.kind = HFI_OP_SWEEP}, .book = book, .owner = nodes.rows[i].node, .by = self,
                                     .beat = nodes.rows[i].beat,
                                     .crash = true, .now = {T0 + 5 * S}, .limit = 3};
        assert_true(nodes.rows[i].dead_on_host);
        while (!sweep.finished) {
            assert_int_equal(DO(store, &sweep), 0);
            lapsed += sweep.lapsed;
            hfi_free(sweep.notes);
        }
    }
    hfi_free(nodes.rows);
    hfi_rulebook_free(book);
    return lapsed;
}

static void killed_at_any_moment_nothing_is_lost(void **state) {
    (void)state;
    struct hfi_random random;
    struct told sum = {0};
    hfi_random_seed(&random, hf_test_seed());
    at("killed.db");
    for (int i = 0; i < KILLS; i++) {
        kill_one(1 + hfi_random_below(&random, 12), &sum);
        const char *broken = broken_invariant(path);
        if (broken)
            fail_msg("after kill %d: %s", i, broken);
        assert_true(ask_number(path, "SELECT count(*) FROM jobs") >= sum.put);
        assert_true(ask_number(path, "SELECT count(*) FROM jobs WHERE state IN (3, 4)") >= sum.ended);
        assert_true(ask_number(path, "SELECT count(*) FROM dead_letters") >= sum.died);
    }
    int64_t running = ask_number(path, "SELECT count(*) FROM jobs WHERE state = 2"), self;
    struct hfi_store *store;
    assert_int_equal(open_store(path, &store, NULL), 0);
    assert_int_equal(join_node(store, &self), 0);
    assert_int_equal(take_up(store, self), running);
    struct hfi_op_nodes nodes = {.op = {.kind = HFI_OP_NODES}, .self = self};
    assert_int_equal(DO(store, &nodes), 0);
    assert_int_equal(nodes.count, 0);
    hfi_free(nodes.rows);
    store->ops->close(store);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs WHERE state = 2"), 0);
    assert_null(broken_invariant(path));
}

/* Runs what is due in all lanes until nothing is, and counts each job it ran. */
static int drain(struct hfi_store *store, int64_t node, uint8_t *ran) {
    static struct hfi_curve curve;
    struct hfi_job *jobs[ROUND_JOBS];
    hfi_curve_default(&curve);
    for (;;) {
        struct hfi_op_lanes lanes = {.op = {.kind = HFI_OP_LANES}, .now = {T0 + S}};
        struct hfi_admitted admitted[WORKERS] = {{0}};
        size_t many = 0;
        if (DO(store, &lanes) != 0)
            return 1;
        for (size_t i = 0; i < lanes.count && many < WORKERS; i++)
            if (lanes.rows[i].next_due_us <= T0 + S)
                admitted[many++] = (struct hfi_admitted){.lane = lanes.rows[i].lane, .max = ROUND_JOBS, .policy = &curve};
        hfi_free(lanes.rows);
        struct hfi_op_claim claim = {.op = {.kind = HFI_OP_CLAIM}, .node = node, .now = {T0 + S}, .start = true,
                                     .lanes = admitted, .lane_count = many, .max = ROUND_JOBS, .jobs = jobs};
        if (DO(store, &claim) != 0)
            return 2;
        for (size_t i = 0; i < claim.count; i++) {
            struct hfi_op_apply end = end_of(jobs[i], T0 + 2 * S, NULL);
            __atomic_add_fetch(&ran[jobs[i]->id], 1, __ATOMIC_RELAXED);
            if (DO(store, &end) != 0)
                return 3;
            hfi_free(jobs[i]);
        }
        for (int i = 0; i < 9; i++)
            store->ops->housekeep(store, true); /* checkpoints among each other's writes */
        if (many == 0)
            return 0;
    }
}

static int be_worker(int number, uint8_t *ran) {
    static const char *const types[WORKERS] = {"mine", "theirs"};
    struct hfi_store *store;
    int64_t node;
    if (open_store(path, &store, NULL) != 0 || join_node(store, &node) != 0)
        return 10;
    for (int i = 0; i < OWN_JOBS / 20; i++) {
        if (put_many(store, types[number], 20) != 0)
            return 11;
        if (i % 4 == 3 && drain(store, node, ran) != 0)
            return 12;
    }
    int code = drain(store, node, ran);
    struct hfi_op_leave leave = {.op = {.kind = HFI_OP_LEAVE}, .node = node};
    if (code == 0 && DO(store, &leave) != 0)
        code = 13;
    store->ops->close(store);
    return code;
}

static void two_at_once_run_each_job_once(void **state) {
    (void)state;
    size_t ids = WORKERS * OWN_JOBS + 1;
    uint8_t *ran = mmap(NULL, ids, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[WORKERS];
    assert_true(ran != MAP_FAILED);
    at("two.db"); /* both make it, too: one of them is first */
    for (int i = 0; i < WORKERS; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(be_worker(i, ran));
    }
    for (int i = 0; i < WORKERS; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    for (size_t id = 1; id < ids; id++)
        assert_int_equal(ran[id], 1);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs WHERE state = 3"), WORKERS * OWN_JOBS);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM lanes"), WORKERS);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM policies"), 1);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM nodes WHERE gone = 0"), 0);
    assert_null(broken_invariant(path));
    munmap(ran, ids);
}

static void a_live_node_is_not_taken_for_dead(void **state) {
    (void)state;
    struct hfi_store *one, *two;
    int64_t first, second;
    at("nodes.db");
    assert_int_equal(open_store(path, &one, NULL), 0);
    assert_int_equal(open_store(path, &two, NULL), 0);
    assert_int_equal(join_node(one, &first), 0);
    assert_int_equal(join_node(two, &second), 0);
    struct hfi_op_nodes nodes = {.op = {.kind = HFI_OP_NODES}, .self = second};
    assert_int_equal(DO(two, &nodes), 0);
    assert_int_equal(nodes.count, 1);
    assert_int_equal(nodes.rows[0].node, first);
    assert_false(nodes.rows[0].dead_on_host);
    hfi_free(nodes.rows);
    one->ops->close(one); /* without leaving: as if it had died */
    assert_int_equal(DO(two, &nodes), 0);
    assert_int_equal(nodes.count, 1);
    assert_true(nodes.rows[0].dead_on_host);
    hfi_free(nodes.rows);
    two->ops->close(two);
}

static void another_process_is_heard_of(void **state) {
    (void)state;
    struct hfi_store *store;
    at("wake.db");
    assert_int_equal(open_store(path, &store, NULL), 0);
    int fd = store->ops->wake_fd(store);
    assert_true(fd >= 0);
    store->ops->wake_drain(store);
    char byte[64];
    assert_int_equal(read(fd, byte, sizeof byte), -1); /* nothing */
    struct hfi_store *other;
    assert_int_equal(open_store(path, &other, NULL), 0);
    assert_int_equal(put_many(other, "a", 1), 0);
    other->ops->close(other);
    assert_true(read(fd, byte, sizeof byte) > 0);
    store->ops->close(store);
}

/* ------------------------------------------------------------------ what is removed under others' hands */

static void walk_once(struct hfi_store *store) {
    struct hfi_op_unused op = {.op = {.kind = HFI_OP_UNUSED}, .now = {T0}, .limit = 100};
    do
        assert_int_equal(DO(store, &op), 0);
    while (op.more);
}

static void put_and_end(struct hfi_store *store) {
    int64_t id;
    struct hfi_job job = plain_job("a", T0);
    assert_int_equal(put_job(store, &job, &id), 0);
    struct hfi_op_cancel cancel = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "x", .now = {T0}};
    assert_int_equal(DO(store, &cancel), 0);
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .cancelled_before = INT64_MAX, .limit = 10, .now = {T0}};
    assert_int_equal(DO(store, &prune), 0);
    assert_int_equal(prune.pruned, 1);
}

/* One has the lane in its cache, another removes it, and perhaps makes it again: the next job has a lane all the same. */
static void a_cached_lane_that_is_gone_is_made_again(void **state) {
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct hfi_store *one, *two;
        at(again ? "again.db" : "gone.db");
        assert_int_equal(open_store(path, &one, NULL), 0);
        assert_int_equal(open_store(path, &two, NULL), 0);
        put_and_end(one);
        put_and_end(two);
        walk_once(two);
        assert_int_equal(ask_number(path, "SELECT count(*) FROM lanes"), 0);
        if (again)
            assert_int_equal(put_many(two, "a", 1), 0);
        assert_int_equal(put_many(one, "a", 1), 0);
        assert_int_equal(put_many(two, "a", 1), 0);
        assert_int_equal(ask_number(path, "SELECT count(*) FROM lanes"), 1);
        assert_null(broken_invariant(path));
        one->ops->close(one);
        two->ops->close(two);
    }
}

static void fill_table(const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

/*
 * I73: four pruners in turn, and what may be in their way: a job with 12,000 executions, one with 9,000 children, letters
 * with many alerts, a great deal of messages and audit rows. No call takes more than its rows, each row goes once, and a
 * claim between any two of them gets its job.
 */
static void pruning_keeps_to_its_bounds_whatever_it_finds(void **state) {
    (void)state;
    enum { PRUNERS = 4 };
    struct hfi_store *stores[PRUNERS];
    int64_t node, pruned = 0;
    at("bounds.db");
    for (int i = 0; i < PRUNERS; i++)
        assert_int_equal(open_store(path, &stores[i], NULL), 0);
    assert_int_equal(put_many(stores[0], "a", 1), 0);
    assert_int_equal(join_node(stores[0], &node), 0);
    fill_table("WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 6001) INSERT INTO jobs(id, state, priority, "
               "lane, run_at_us, epoch, executions, failures, finished_at_us, created_at_us, has_spec) "
               "SELECT i, 3, 0, 1, 0, iif(i = 500, 12000, 1), 1, 0, 5, 1, 0 FROM n; INSERT INTO counts VALUES (3, 6000);"
               "UPDATE meta SET value = 6002 WHERE key = 'next_job';"
               "INSERT INTO history(job_id, epoch, ended_at_us, event, execution) SELECT id, 1, 2, 2, 1 FROM jobs WHERE state = 3;"
               "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) "
               "INSERT INTO history(job_id, epoch, ended_at_us, event, execution) SELECT 500, i, i, 3, i FROM n;"
               "INSERT INTO history_errors SELECT job_id, epoch, ended_at_us, event, 'x', 'y', 'z', 'm' FROM history WHERE job_id = 500;"
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) INSERT INTO deps SELECT 700, 100000 + i, 1 FROM n;"
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700) INSERT INTO dead_letters(id, job_id, status, type, "
               "dead_at_us, settled_at_us) SELECT i, i, 2, 'a', 1, 2 FROM n;"
               "INSERT INTO alerts(dead_id, sink, state, next_at_us) SELECT d.id, s.value, 1, 0 FROM dead_letters d, "
               "json_each('[1,2,3,4,5,6,7,8,9,10,11,12]') s;"
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO inbox SELECT 's', i, 1, 1 FROM n;"
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
               "INSERT INTO audit(at_us, actor, action, subject) SELECT 1, 'x', 'y', 'z' FROM n;");
    for (int turn = 0, quiet = 0; quiet < PRUNERS; turn++) {
        struct hfi_op_prune op = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = 10, .dead_letters_before = 10, .inbox_before = 10,
                                  .audit_before = 10, .limit = 700, .now = {T0}};
        struct hfi_job *job = NULL;
        size_t count = 0;
        assert_true(turn < 500);
        assert_int_equal(DO(stores[turn % PRUNERS], &op), 0);
        assert_in_range(op.rows, 0, HFI_PRUNE_ROWS);
        assert_in_range(op.pruned, 0, op.limit);
        pruned += op.pruned;
        quiet = op.more || op.pruned > 0 ? 0 : quiet + 1;
        assert_int_equal(claim_jobs(stores[0], node, T0 + S, 1, &job, &count), 0);
        assert_int_equal(count, turn == 0);
        hfi_free(count > 0 ? job : NULL);
    }
    assert_int_equal(pruned, 6000 + 700 + 5000 + 5000);
    assert_int_equal(ask_number(path, "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM history) + (SELECT count(*) FROM "
                                      "history_errors) + (SELECT count(*) FROM deps) + (SELECT count(*) FROM alerts)"), 1);
    assert_int_equal(ask_number(path, "SELECT jobs FROM counts WHERE state = 3"), 0);
    assert_null(broken_invariant(path));
    for (int i = 0; i < PRUNERS; i++)
        stores[i]->ops->close(stores[i]);
}

/* ------------------------------------------------------------------ turns to write */

struct waited {
    sqlite3 *writer;
    int lock, times, refused;
};

/* The lock of a turn, asked for by another open file. */
static int ask_for_turn(int lock, short type) {
    struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
    return fcntl(lock, F_OFD_SETLK, &byte);
}

/* In a pause of one that waits for the writer. */
static void end_the_writer(void *user) {
    struct waited *waited = user;
    waited->refused += ask_for_turn(waited->lock, F_WRLCK) != 0;
    if (++waited->times == 3)
        sqlite3_exec(waited->writer, "COMMIT", NULL, NULL, NULL);
}

static void begin_to_write(sqlite3 **writer) {
    assert_int_equal(sqlite3_open_v2(path, writer, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(*writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
}

static int open_turn_file(void) {
    char name[sizeof path + 8];
    snprintf(name, sizeof name, "%s.ckpt", path);
    return open(name, O_RDWR | O_CLOEXEC);
}

/* I73: who waits for the write lock has the turn, so nobody who asks later is first; with the lock in hand it gives it on. */
static void who_waits_to_write_is_next(void **state) {
    (void)state;
    struct hfi_store *store;
    struct waited waited = {0};
    at("turn.db");
    assert_int_equal(open_store(path, &store, NULL), 0);
    assert_int_equal(put_many(store, "a", 1), 0);
    waited.lock = open_turn_file();
    assert_true(waited.lock >= 0);
    begin_to_write(&waited.writer);
    hfi_sqlite_of(store)->turn.waits = end_the_writer;
    hfi_sqlite_of(store)->turn.user = &waited;
    assert_int_equal(put_many(store, "a", 1), 0);
    assert_int_equal(waited.times, 3);
    assert_int_equal(waited.refused, 3);
    assert_int_equal(ask_for_turn(waited.lock, F_WRLCK), 0);
    sqlite3_close(waited.writer);
    close(waited.lock);
    store->ops->close(store);
}

/* I10, I73: a process that was stopped with the turn stops nobody; once it is free again turns are taken again. */
static void a_turn_that_is_kept_stops_nobody(void **state) {
    (void)state;
    struct hfi_store *store;
    at("kept.db");
    assert_int_equal(open_store(path, &store, NULL), 0);
    assert_int_equal(put_many(store, "a", 1), 0);
    int lock = open_turn_file();
    assert_int_equal(ask_for_turn(lock, F_WRLCK), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(put_many(store, "a", 1), 0);
        assert_true(hfi_sqlite_of(store)->turn.stuck);
    }
    assert_int_equal(ask_for_turn(lock, F_UNLCK), 0);
    assert_int_equal(put_many(store, "a", 1), 0);
    assert_false(hfi_sqlite_of(store)->turn.stuck);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), 5);
    close(lock);
    store->ops->close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cached_lane_that_is_gone_is_made_again),
        cmocka_unit_test(pruning_keeps_to_its_bounds_whatever_it_finds),
        cmocka_unit_test(who_waits_to_write_is_next),
        cmocka_unit_test(a_turn_that_is_kept_stops_nobody),
        cmocka_unit_test(killed_at_any_moment_nothing_is_lost),
        cmocka_unit_test(two_at_once_run_each_job_once),
        cmocka_unit_test(a_live_node_is_not_taken_for_dead),
        cmocka_unit_test(another_process_is_heard_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
