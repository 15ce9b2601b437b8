/* SPDX-License-Identifier: MIT */
/*
 * Jobs that call a downstream, in virtual time: the ride along the curve, permanent failures, the breaker that parks
 * jobs, probes and ramp, refusals after the claim, limits, hostages.
 */
#include "calls_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "jobs/views.h"
#include "resilience/downstream.h"
#include "resilience/measured.h"

static int64_t wall(struct world *world) {
    return world->stage.scheduler->ops->wall(world->stage.scheduler).us;
}

/* S0.6, S0.7, S0.9, S0.15: six executions, exact gaps, one death at 16,560 s; no thread, no slot held meanwhile. */
static void the_curve_is_ridden_to_its_end(void **state) {
    (void)state;
    static const int64_t gaps[] = {60, 300, 1800, 7200, 7200};
    static struct world world;
    open_world(&world);
    world.step = hfi_script_status(0, 500);
    world.options.poll_ms = 60 * SECOND; /* due times alone have to wake it */
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    int64_t id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 61 * SECOND);
    stage_advance(&world.stage, 5 * 3600 * SECOND);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), 6);
    for (size_t i = 0; i < 5; i++) {
        const struct hfi_script_record *a = hfi_scripted_record(world.stage.scripted, i);
        const struct hfi_script_record *b = hfi_scripted_record(world.stage.scripted, i + 1);
        assert_in_range((uint64_t)(b->started.us - a->started.us - gaps[i] * 1000000), 0, 3000);
    }
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_DEAD);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 1);
    assert_int_equal(stage_logged(&world.stage, "job.retry"), 5);
    struct hf_runner_counts counts = stage_counts(&world.stage, 0);
    assert_int_equal(counts.started, 6);
    assert_int_equal(counts.attempts, 6);
    assert_int_equal(counts.died, 1);
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, 1);
    assert_int_equal(world.keys_changed, 1); /* S3.17: one key over all executions */
    stage_close(&world.stage);
}

/* S0.12, S0.23 */
static void a_permanent_failure_dies_at_once(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.step = hfi_script_status(5, 404);
    stage_begin(&world.stage, 0, &world.options);
    int64_t id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 1000);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_DEAD);
    assert_int_equal(stage_counts(&world.stage, 0).started, 1);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 1);
    assert_int_equal(stage_logged(&world.stage, "job.retry"), 0);
    assert_non_null(strstr(stage_last(&world.stage, "job.dead"), "http.404"));
    stage_close(&world.stage);
}

/* 3.4, 2.5, S0.36: the breaker opens, due jobs are parked and nothing is counted, a few probe, the rest ramp up. */
static void an_outage_parks_jobs_and_the_ramp_lets_them_go(void **state) {
    (void)state;
    static struct world world;
    static const int64_t curve[] = {5000};
    struct hf_job_spec spec;
    int64_t ids[400];
    open_world(&world);
    world.step = hfi_script_code(5, 7, HF_SENT_NO); /* refused */
    world.policy.breaker_min_calls = 10;
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 500);
    for (int i = 0; i < 400; i++) {
        spec = hf_job_of("order", "x");
        spec.curve_ms = curve;
        spec.curve_length = 1;
        spec.max_executions = 50;
        ids[i] = stage_put(&world.stage, &spec);
    }
    for (int i = 0; i < 120; i++) { /* kept back all the time, also while probes are out */
        stage_advance(&world.stage, 5 * SECOND / 2);
        assert_in_range(stage_counts(&world.stage, 0).parked, i < 4 ? 0 : 200, 400);
    }
    struct hf_runner_counts counts = stage_counts(&world.stage, 0);
    uint64_t tries = hfi_scripted_started(world.stage.scripted);
    assert_int_equal(counts.attempts, tries);
    assert_in_range(tries, 10, 200); /* 64 at the start, then probes: not 400 jobs × 60 tries */
    assert_int_equal(counts.died, 0);
    assert_in_range(counts.parked, 200, 400);
    size_t untouched = 0;
    for (int i = 0; i < 400; i++) {
        struct hf_job *job = stage_job(&world.stage, ids[i]);
        untouched += hf_job_look(job)->executions == 0;
        hf_job_free(job);
    }
    assert_true(untouched > 200); /* parking costs no execution */
    uint64_t executions = counts.started - counts.rejected;
    assert_int_equal(executions, tries);
    world.step = hfi_script_status(20, 200);
    stage_advance(&world.stage, 120 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 400);
    counts = stage_counts(&world.stage, 0);
    assert_int_equal(counts.parked, 0);
    assert_int_equal(counts.attempts, hfi_scripted_started(world.stage.scripted));
    /* The ramp: in no 100 ms more starts than its end allows, and far fewer at its beginning. */
    int64_t first = hfi_scripted_record(world.stage.scripted, tries)->started.us;
    uint64_t early = 0;
    for (uint64_t i = tries; i < hfi_scripted_started(world.stage.scripted); i++) {
        const struct hfi_script_record *record = hfi_scripted_record(world.stage.scripted, i);
        uint64_t within = 0;
        for (uint64_t j = i; j < hfi_scripted_started(world.stage.scripted) &&
                             hfi_scripted_record(world.stage.scripted, j)->started.us < record->started.us + 100000; j++)
            within++;
        assert_true(within <= 2 * 64);
        early += record->started.us < first + 200000;
    }
    assert_in_range(early, 3, 30);
    stage_close(&world.stage);
}

static void isolate_at_claim(struct hfi_op *op, void *user) {
    struct world *world = user;
    if (op->kind == HFI_OP_CLAIM)
        hfi_breaker_isolate(&stage_downstream(&world->stage, 0, "shop")->breaker,
                            world->stage.scheduler->ops->mono(world->stage.scheduler), 5000, "test");
}

/* 3.3, 3.4: refused between claim and call: uncounted, and not at once again. */
static void a_rejection_after_the_claim_is_not_counted(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 100);
    world.stage.nodes[0].door.hook = isolate_at_claim;
    world.stage.nodes[0].door.hook_user = &world;
    int64_t now = wall(&world), id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 300);
    world.stage.nodes[0].door.hook = NULL;
    struct hf_job *job = stage_job(&world.stage, id);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_PENDING);
    assert_int_equal(hf_job_look(job)->executions, 0);
    assert_int_equal(hf_job_look(job)->failures, 0);
    assert_true(hf_job_look(job)->run_at_us >= now + 250000);
    hf_job_free(job);
    assert_int_equal(stage_counts(&world.stage, 0).rejected, 1);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), 0);
    stage_advance(&world.stage, 30 * SECOND);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_SUCCEEDED);
    stage_close(&world.stage);
}

/* S0.30: on_open fail: within 50 ms, nothing on the wire, the next execution on the curve. */
static void on_open_fail_is_the_plain_behaviour(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.policy.on_open = HF_ON_OPEN_FAIL;
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 100);
    hf_downstream_isolate(stage_downstream(&world.stage, 0, "shop"), 0, "test");
    int64_t id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 300);
    struct hf_job *job = stage_job(&world.stage, id);
    const struct hf_job_view *view = hf_job_look(job);
    assert_int_equal(view->state, HF_JOB_PENDING);
    assert_int_equal(view->executions, 1);
    assert_int_equal(view->failures, 1);
    const struct hf_history_view *history = hf_job_history_at(job, 0);
    assert_in_range(history->ended_at_us - history->started_at_us, 0, 50000);
    assert_int_equal(view->run_at_us - history->ended_at_us, 60 * 1000000);
    hf_job_free(job);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), 0);
    stage_close(&world.stage);
}

/* 3.11, 3.2: the key is the job's, by default sent; what is not repeatable is tried once and ends in doubt. */
static void keys_and_what_is_not_repeatable(void **state) {
    (void)state;
    static struct world world;
    char expected[HFI_IDEMPOTENCY_ROOM];
    open_world(&world);
    world.policy.retry_max = 3;
    struct hf_type_options types[3] = {world.type, stage_http("quiet", "shop"), stage_http("charge", "shop")};
    types[1].no_idempotency_key = true;
    types[2].repeatable = false;
    world.options.types = types;
    world.options.type_count = 3;
    stage_begin(&world.stage, 0, &world.options);
    int64_t id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 500);
    snprintf(expected, sizeof expected, "%s-%lld", world.stage.port->uuid, (long long)id);
    assert_string_equal(world.key, expected);
    const char *job_header = hfi_scripted_header(world.stage.scripted, "Holdfast-Job");
    assert_non_null(job_header);
    assert_int_equal(strtoll(job_header, NULL, 10), id);
    assert_string_equal(hfi_scripted_header(world.stage.scripted, "Content-Type"), "application/octet-stream");
    stage_enqueue(&world.stage, "quiet", NULL);
    stage_advance(&world.stage, 500);
    assert_string_equal(world.key, "");
    world.step = hfi_script_status(10, 503);
    uint64_t before = hfi_scripted_started(world.stage.scripted);
    int64_t money = stage_enqueue(&world.stage, "charge", NULL);
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(hfi_scripted_started(world.stage.scripted) - before, 1);
    assert_string_equal(world.key, "");
    assert_int_equal(stage_state(&world.stage, money), HF_JOB_DEAD);
    assert_non_null(strstr(stage_last(&world.stage, "job.dead"), "outcome.unknown"));
    stage_close(&world.stage);
}

/* 2.3, S2.7: the call is cut to what the execution has left, and fails as its timeout. */
static void an_execution_timeout_cuts_the_call(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.step = hfi_script_hang(true);
    world.type.execution_timeout_ms = 2000;
    stage_begin(&world.stage, 0, &world.options);
    int64_t id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 3000);
    struct hf_job *job = stage_job(&world.stage, id);
    assert_int_equal(hf_job_look(job)->executions, 1);
    assert_string_equal(hf_job_look(job)->error_type, "timeout.execution");
    assert_in_range(hf_job_history_at(job, 0)->ended_at_us - hf_job_history_at(job, 0)->started_at_us, 1990000,
                    2010000);
    hf_job_free(job);
    stage_close(&world.stage);
}

/* S3.3, S3.15, 3.14: 500 jobs hang on one downstream; a job of another queue starts at once. */
static void hanging_jobs_take_no_other_queue_hostage(void **state) {
    (void)state;
    static struct world world;
    struct hf_downstream_options downstreams[2];
    struct hf_type_options types[2];
    open_world(&world);
    world.step = hfi_script_hang(true);
    world.policy.bulkhead_max = 2000; /* not what saves them */
    downstreams[0] = downstreams[1] = world.downstream;
    downstreams[1].name = "mail";
    downstreams[1].url = "http://other.example";
    types[0] = world.type;
    types[1] = stage_http("reset", "mail");
    world.options.downstreams = downstreams;
    world.options.downstream_count = 2;
    world.options.types = types;
    world.options.type_count = 2;
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue_many(&world.stage, "order", "reports", 1500);
    stage_advance(&world.stage, 3000);
    assert_int_equal(stage_counts(&world.stage, 0).running, 1024);
    for (int i = 0; i < 20; i++) {
        int64_t now = wall(&world), id = stage_enqueue(&world.stage, "reset", "critical");
        stage_advance(&world.stage, 290);
        struct hf_job *job = stage_job(&world.stage, id);
        assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
        assert_in_range(hf_job_look(job)->started_at_us - now, 0, 251000);
        hf_job_free(job);
    }
    stage_close(&world.stage);
}

/* S2.10, S3.4, I11, I26: what hangs is given back uncounted after the drain timeout, and the node is gone in time. */
static void a_drain_gives_back_what_it_cannot_finish(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.policy.attempt_timeout_ms = 60 * SECOND;
    world.policy.breaker_window_ms = 120 * SECOND;
    world.step = hfi_script_hang(true);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue_many(&world.stage, "order", NULL, 5);
    stage_advance(&world.stage, 5000);
    assert_int_equal(stage_counts(&world.stage, 0).running, 5);
    stage_enqueue_many(&world.stage, "order", NULL, 5);
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 24500);
    assert_false(stage_over(&world.stage, 0));
    assert_int_equal(stage_jobs(&world.stage).running, 5);
    stage_advance(&world.stage, 4000);
    assert_true(stage_over(&world.stage, 0));
    assert_int_equal(world.stage.nodes[0].code, 0);
    assert_int_equal(stage_jobs(&world.stage).pending, 10);
    assert_int_equal(stage_counts(&world.stage, 0).given_back, 5);
    for (int64_t id = 1; id <= 10; id++) {
        struct hf_job *job = stage_job(&world.stage, id);
        assert_int_equal(hf_job_look(job)->executions, 0);
        assert_true(hf_job_look(job)->run_at_us <= wall(&world));
        hf_job_free(job);
    }
    stage_close(&world.stage);
}

static void a_second_stop_hurries(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.step = hfi_script_hang(true);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue_many(&world.stage, "order", NULL, 5);
    stage_advance(&world.stage, 1000);
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 1000);
    assert_false(stage_over(&world.stage, 0));
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 100);
    assert_true(stage_over(&world.stage, 0));
    assert_int_equal(stage_jobs(&world.stage).pending, 5);
    stage_close(&world.stage);
}

/* I12, S1.12: a cancel reaches a running job within one heartbeat, without any notification. */
static void a_cancel_reaches_a_running_job_within_a_heartbeat(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.policy.attempt_timeout_ms = 60 * SECOND;
    world.policy.breaker_window_ms = 120 * SECOND;
    world.step = hfi_script_hang(true);
    stage_begin(&world.stage, 0, &world.options);
    int64_t id = stage_enqueue(&world.stage, "order", NULL), other = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 1000);
    struct hfi_op_cancel cancel = {.id = id, .actor = "ann", .reason = "wrong address"};
    cancel.now = world.stage.scheduler->ops->wall(world.stage.scheduler);
    assert_int_equal(stage_do(&world.stage, &cancel.op, HFI_OP_CANCEL), 0);
    assert_true(cancel.requested);
    stage_advance(&world.stage, 15100);
    struct hf_job *job = stage_job(&world.stage, id);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_CANCELLED);
    assert_string_equal(hf_job_look(job)->cancel_reason, "wrong address");
    hf_job_free(job);
    assert_int_equal(stage_state(&world.stage, other), HF_JOB_RUNNING);
    assert_int_equal(stage_counts(&world.stage, 0).cancelled, 1);
    stage_close(&world.stage);
}

/* 3.14: what a command writes is adopted within a poll. */
static void a_forced_state_is_adopted_within_a_poll(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    struct hfi_op_downstream force = {.key = "shop", .set = HFI_DOWNSTREAM_FORCED};
    force.state.forced = 1;
    force.state.version = -1;
    snprintf(force.state.reason, sizeof force.state.reason, "maintenance");
    assert_int_equal(stage_do(&world.stage, &force.op, HFI_OP_DOWNSTREAM), 0);
    stage_advance(&world.stage, 300);
    int64_t id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 5000);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_PENDING);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), 0);
    assert_int_equal(stage_counts(&world.stage, 0).parked, 1);
    force.state.forced = 0;
    force.state.version = -1;
    assert_int_equal(stage_do(&world.stage, &force.op, HFI_OP_DOWNSTREAM), 0);
    stage_advance(&world.stage, 1000);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_SUCCEEDED);
    stage_close(&world.stage);
}

/* 2.5, 3.14: `downstream close` ends a break that the breaker began by itself. */
static void a_break_is_closed_by_hand(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.policy.breaker_min_calls = 5;
    world.policy.breaker_break_ms = 50 * SECOND;
    world.step = hfi_script_code(5, 7, HF_SENT_NO);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue_many(&world.stage, "order", NULL, 50);
    stage_advance(&world.stage, 2000);
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(stage_downstream(&world.stage, 0, "shop"), &view);
    assert_int_equal(view.state, HF_BREAKER_OPEN);
    world.step = hfi_script_status(5, 200);
    struct hfi_op_downstream close = {.key = "shop", .set = HFI_DOWNSTREAM_FORCED | HFI_DOWNSTREAM_PHASE};
    close.state.version = -1;
    assert_int_equal(stage_do(&world.stage, &close.op, HFI_OP_DOWNSTREAM), 0);
    stage_advance(&world.stage, 1000);
    hf_downstream_look(stage_downstream(&world.stage, 0, "shop"), &view);
    assert_int_equal(view.state, HF_BREAKER_CLOSED);
    stage_close(&world.stage);
}

/* B27, 3.14: a break outlives its node; another node, or the next life, does not begin with everything. */
static void an_open_break_is_taken_up_after_a_restart(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.policy.breaker_min_calls = 5;
    world.policy.breaker_break_ms = 60 * SECOND;
    world.step = hfi_script_code(5, 7, HF_SENT_NO);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue_many(&world.stage, "order", NULL, 200);
    stage_advance(&world.stage, 5000);
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 1000);
    assert_true(stage_over(&world.stage, 0));
    uint64_t before = hfi_scripted_started(world.stage.scripted);
    stage_begin(&world.stage, 1, &world.options);
    stage_advance(&world.stage, 20 * SECOND);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), before); /* the break goes on */
    world.step = hfi_script_status(10, 200);
    stage_advance(&world.stage, 300 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 200);
    stage_close(&world.stage);
}

/* 3.4: a job whose downstream stays away for give_up_after dies of it, without a single execution counted. */
static void parked_jobs_give_up_in_the_end(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.policy.give_up_after_ms = 3600 * SECOND;
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 100);
    hf_downstream_isolate(stage_downstream(&world.stage, 0, "shop"), 0, "gone");
    stage_advance(&world.stage, 100);
    stage_enqueue_many(&world.stage, "order", NULL, 40);
    stage_advance(&world.stage, 3500 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).pending, 40);
    stage_advance(&world.stage, 200 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).dead, 40);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), 0);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 40);
    stage_close(&world.stage);
}
/* ------------------------------------------------------------------ what attempts took */

static bool add_row(int64_t hour, const void *bytes, size_t length, void *user) {
    (void)hour;
    return hfi_measured_add(user, bytes, length) == 0;
}

/* How many attempts ended so, as stored. */
static uint64_t stored(struct world *world, enum hf_fate fate) {
    struct hf_measured *measured;
    assert_int_equal(hfi_measured_new(&measured), 0);
    assert_int_equal(world->stage.port->ops->look_measured(world->stage.port, "shop", 0, add_row, measured, NULL), 0);
    uint64_t count = hf_measured_count(measured, HF_PHASE_ATTEMPT, fate);
    hf_measured_free(measured);
    return count;
}

/* Every attempt, short retries too, once a minute and with the drain; what the store refuses is told the next time. */
static void what_attempts_took_comes_into_the_store(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.step = hfi_script_status(30, 503);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 50 * SECOND);
    uint64_t tries = hfi_scripted_started(world.stage.scripted);
    assert_true(tries >= 1);
    assert_int_equal(stored(&world, HF_FATE_FAILED), 0); /* rarely */
    assert_int_equal(world.stage.nodes[0].door.seen[HFI_OP_MEASURE], 0);
    stage_advance(&world.stage, 15 * SECOND);
    assert_in_range(stored(&world, HF_FATE_FAILED), tries, hfi_scripted_started(world.stage.scripted));
    assert_int_equal(world.stage.nodes[0].door.seen[HFI_OP_MEASURE], 1);
    world.stage.nodes[0].door.refuse = HF_EIO;
    world.stage.nodes[0].door.refuse_kinds = UINT64_C(1) << HFI_OP_MEASURE;
    world.step = hfi_script_status(70, 200);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 70 * SECOND);
    assert_true(world.stage.nodes[0].door.seen[HFI_OP_MEASURE] >= 2);
    assert_int_equal(stored(&world, HF_FATE_ENDED), 0);
    world.stage.nodes[0].door.refuse = 0;
    uint64_t before = world.stage.nodes[0].door.seen[HFI_OP_MEASURE];
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 1000);
    assert_true(stage_over(&world.stage, 0));
    assert_int_equal(world.stage.nodes[0].door.seen[HFI_OP_MEASURE], before + 1);
    assert_true(stored(&world, HF_FATE_ENDED) >= 1);
    assert_int_equal(stored(&world, HF_FATE_ENDED) + stored(&world, HF_FATE_FAILED), hfi_scripted_started(world.stage.scripted));
    stage_close(&world.stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_attempts_took_comes_into_the_store),
        cmocka_unit_test(the_curve_is_ridden_to_its_end),
        cmocka_unit_test(a_permanent_failure_dies_at_once),
        cmocka_unit_test(an_outage_parks_jobs_and_the_ramp_lets_them_go),
        cmocka_unit_test(a_rejection_after_the_claim_is_not_counted),
        cmocka_unit_test(on_open_fail_is_the_plain_behaviour),
        cmocka_unit_test(keys_and_what_is_not_repeatable),
        cmocka_unit_test(an_execution_timeout_cuts_the_call),
        cmocka_unit_test(hanging_jobs_take_no_other_queue_hostage),
        cmocka_unit_test(a_drain_gives_back_what_it_cannot_finish),
        cmocka_unit_test(a_second_stop_hurries),
        cmocka_unit_test(a_cancel_reaches_a_running_job_within_a_heartbeat),
        cmocka_unit_test(a_forced_state_is_adopted_within_a_poll),
        cmocka_unit_test(a_break_is_closed_by_hand),
        cmocka_unit_test(an_open_break_is_taken_up_after_a_restart),
        cmocka_unit_test(parked_jobs_give_up_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
