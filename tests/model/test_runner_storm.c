/* SPDX-License-Identifier: MIT */
/*
 * Everything at once, on the store that is named on the command line: nodes come, drain and come again, are paused, lose
 * their store for longer than a lease; commits hang, wall clocks step, queues are paused, jobs are cancelled, calls fail
 * and hang, rows are pruned and lanes removed between. What must hold all the same:
 *   - no bound of a limit key or a queue is ever passed, measured on the calls themselves,
 *   - no job has two calls out at once, and none succeeds twice,
 *   - no job is lost: in the end each has succeeded, or was cancelled,
 *   - executions are the calls that were made, less those given back.
 */
#include "limited.h"

#include <stdlib.h>

#include "support/sqlite_fixture.h"

#define JOBS_MAX 4096
#define LEASE (6 * SECOND)

static struct limited world;
static int64_t ids[JOBS_MAX]; /* by serial number */
static bool cancelled[JOBS_MAX];
static bool on_sqlite;
static int64_t skew_ms;
static struct hfi_walk walk;

static const char *const queues[] = {"default", "reports", "critical"};

static uint64_t draw(uint64_t below) {
    return hfi_random_below(&world.random, below);
}

static void enqueue_some(void) {
    static const char *const limits[] = {"tenant", "api", NULL};
    for (uint64_t n = draw(6); n > 0 && world.put < JOBS_MAX; n--) {
        size_t limit = (size_t)draw(3);
        int serial = world.put;
        ids[serial] = put(&world, draw(2) ? "order" : "parcel", queues[draw(3)], limits[limit],
                          (int)draw(4) + 4 * (limit == 1));
    }
}

static void cancel_one(void) {
    if (world.put == 0)
        return;
    size_t serial = (size_t)draw((uint64_t)world.put);
    struct hfi_op_cancel op = {.id = ids[serial], .actor = "me", .reason = "", .now = {wall(&world)}};
    if (stage_do(&world.stage, &op.op, HFI_OP_CANCEL) == 0)
        cancelled[serial] = true; /* asked: it may succeed before it hears of it */
}

static void step_wall(void) {
    int64_t by_ms = (int64_t)draw(120 * SECOND) - 60 * SECOND;
    skew_ms += by_ms;
    hfi_virtual_step_wall(world.stage.scheduler, by_ms * 1000);
}

/* As any node does once in a while; jobs that are needed for the reckoning stay. */
static void tidy(void) {
    struct hfi_op_unused unused = {.walk = walk, .now = {wall(&world)}, .limit = 5};
    assert_int_equal(stage_do(&world.stage, &unused.op, HFI_OP_UNUSED), 0);
    walk = unused.more ? unused.walk : (struct hfi_walk){0};
    struct hfi_op_prune prune = {.inbox_before = 1, .nodes_before = wall(&world), .now = {wall(&world)}, .limit = 100};
    assert_int_equal(stage_do(&world.stage, &prune.op, HFI_OP_PRUNE), 0);
}

static void begin(size_t at) {
    stage_begin(&world.stage, at, &world.options);
}

static void disturb(void) {
    size_t at = (size_t)draw(STAGE_NODES);
    struct stage_node *node = &world.stage.nodes[at];
    struct hfi_op_pause pause = {.queue = queues[draw(3)], .actor = "me", .pause = draw(3) == 0, .now = {wall(&world)}};
    uint64_t what = draw(20);
    if (node->runner == NULL && what < 6) {
        begin(at);
    } else if (what == 0 && draw(4) == 0) {
        node->door.refuse = 0;
        node->writer_hangs = false;
        stage_end(&world.stage, at);
    } else if (what == 1 || what == 2) {
        if (node->runner != NULL)
            node->door.refuse = draw(2) ? HF_EIO : HF_EBUSY;
    } else if (what == 3 || what == 4) {
        node->door.refuse = 0;
        node->writer_hangs = false;
    } else if (what == 5) {
        if (node->runner != NULL)
            node->writer_hangs = true;
    } else if (what == 6) {
        pause.until_us = wall(&world) + (int64_t)draw(5000000);
        stage_do(&world.stage, &pause.op, HFI_OP_PAUSE);
    } else if (what == 7 && draw(3) == 0) {
        step_wall();
    } else if (what == 8) {
        cancel_one();
    } else if (what == 9) {
        tidy();
    } else {
        enqueue_some();
    }
}

/* The weather clears: everybody is well, and there is time. */
static void settle(void) {
    hfi_virtual_step_wall(world.stage.scheduler, -skew_ms * 1000);
    for (size_t i = 0; i < STAGE_NODES; i++) {
        world.stage.nodes[i].door.refuse = 0;
        world.stage.nodes[i].writer_hangs = false;
        if (world.stage.nodes[i].runner == NULL)
            begin(i);
    }
    for (size_t i = 0; i < 3; i++) {
        struct hfi_op_pause resume = {.queue = queues[i], .actor = "me", .now = {wall(&world)}};
        stage_do(&world.stage, &resume.op, HFI_OP_PAUSE);
    }
    world.hang_one_in = 0;
    for (int i = 0; i < 60; i++) {
        struct hf_job_counts counts = stage_jobs(&world.stage);
        if (counts.pending + counts.running == 0)
            break;
        stage_advance(&world.stage, 20 * SECOND);
    }
}

/* ------------------------------------------------------------------ the reckoning */

static uint32_t calls_of(int serial) {
    uint32_t calls = 0;
    int64_t free_at = 0;
    for (uint64_t i = 0; i < hfi_scripted_started(world.stage.scripted); i++) {
        const struct hfi_script_record *call = hfi_scripted_record(world.stage.scripted, i);
        if (world.serial[i] != serial)
            continue;
        calls++;
        if (call->started.us < free_at)
            fail_msg("job %d has two calls out at once", serial);
        free_at = call->end == HFI_SCRIPT_OPEN ? INT64_MAX : call->ended.us;
    }
    return calls;
}

struct reckoning {
    uint32_t jobs, succeeded, cancelled, calls, executions, lapses;
};

static void reckon_job(int serial, struct reckoning *sum) {
    struct hf_job *job = stage_job(&world.stage, ids[serial]);
    const struct hf_job_view *view = hf_job_look(job);
    uint32_t successes = 0, given_back = 0, lapses = 0, calls = calls_of(serial);
    for (size_t i = 0; i < hf_job_history_count(job); i++) {
        const struct hf_history_view *past = hf_job_history_at(job, i);
        successes += strcmp(past->event, "succeeded") == 0;
        given_back += strcmp(past->event, "given_back") == 0;
        lapses += strcmp(past->event, "lapsed") == 0;
    }
    if (view->state != HF_JOB_SUCCEEDED && !(view->state == HF_JOB_CANCELLED && cancelled[serial]))
        fail_msg("job %d is %d: %s %s", serial, view->state, view->error_type, view->error_message);
    assert_int_equal(successes, view->state == HF_JOB_SUCCEEDED);
    /* One call each; those that were interrupted before it, or given back, are told by the history. */
    if (calls > view->executions + given_back || calls + given_back + lapses < view->executions)
        fail_msg("job %d: %u calls, %u executions, %u given back, %u lapses", serial, calls, view->executions, given_back, lapses);
    if (given_back + lapses == 0 && view->state == HF_JOB_SUCCEEDED)
        assert_int_equal(calls, view->executions);
    sum->jobs++;
    sum->succeeded += successes;
    sum->cancelled += view->state == HF_JOB_CANCELLED;
    sum->calls += calls;
    sum->executions += view->executions;
    sum->lapses += lapses;
    hf_job_free(job);
}

static void reckon(void) {
    struct reckoning sum = {0};
    for (int serial = 0; serial < world.put; serial++)
        reckon_job(serial, &sum);
    for (int key = 0; key < 4; key++)
        assert_true(most_at_once(&world, key, 0) <= 2);
    assert_true(most_at_once(&world, -1, 'r') <= 3);
    printf("%u jobs, %u succeeded, %u cancelled, %u calls, %u executions, %u lapses\n", sum.jobs, sum.succeeded,
           sum.cancelled, sum.calls, sum.executions, sum.lapses);
    if (on_sqlite) {
        const char *broken = broken_invariant(world.stage.path);
        if (broken != NULL)
            fail_msg("%s", broken);
    }
}

static void open_storm(uint64_t seed) {
    memset(&world, 0, sizeof world);
    memset(cancelled, 0, sizeof cancelled);
    skew_ms = 0;
    walk = (struct hfi_walk){0};
    hfi_random_seed(&world.random, seed);
    if (on_sqlite)
        stage_open_sqlite(&world.stage, decide, &world);
    else
        stage_open(&world.stage, decide, &world);
    world.stage.own_writers = true;
    set_world(&world);
    world.fails = true;
    world.longest_ms = 400;
    world.hang_one_in = 40;
    world.policy.connect_timeout_ms = 1 * SECOND;
    world.policy.attempt_timeout_ms = 3 * SECOND;
    world.policy.total_timeout_ms = 4 * SECOND;
    world.queues[1].global_concurrency = 3;
    world.queues[1].aging_ms = 5 * SECOND;
    world.queues[2].order = 1;
    world.queues[2].concurrency = 2;
    world.options.lease_ms = LEASE;
    world.options.heartbeat_ms = LEASE / 4;
    world.options.prefetch = draw(3) == 0 ? 0 : 1 + (uint32_t)draw(20);
    world.queues[0].concurrency = 3 * (uint32_t)draw(2); /* few slots: then jobs are reserved ahead of them */
}

/* I14, I34, I83, I92, S1.11, S1.16, S4.3 */
static void what_must_hold_holds_in_any_weather(void **state) {
    (void)state;
    struct hf_curve_options curve;
    struct hfi_random seeds;
    int rounds = getenv("HF_FULL") != NULL ? 30 : 1;
    hfi_random_seed(&seeds, test_seed(on_sqlite ? "storm on sqlite" : "storm on memory"));
    hf_curve_options_init(&curve);
    curve.curve_ms[0] = 1000;
    curve.curve_length = 1;
    curve.max_executions = 90;
    for (int round = 0; round < rounds; round++) {
        open_storm(hfi_random_next(&seeds));
        world.options.curve = &curve;
        for (int step = 0; step < 250; step++) {
            disturb();
            stage_advance(&world.stage, (int64_t)draw(400));
        }
        settle();
        reckon();
        stage_close(&world.stage);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_must_hold_holds_in_any_weather)};
    on_sqlite = argc > 1 && strcmp(argv[1], "sqlite") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
