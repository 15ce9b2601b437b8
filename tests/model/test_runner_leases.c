/* SPDX-License-Identifier: MIT */
/*
 * Two nodes on one store, and one of them loses it: who may run a job, and when.
 */
#include "runner_stage.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

#define SECOND INT64_C(1000)

struct pair {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type;
    struct hfi_script_step step;
};

static struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    struct pair *pair = user;
    (void)spec;
    (void)number;
    return pair->step;
}

static void open_pair(struct pair *pair) {
    memset(pair, 0, sizeof *pair);
    pair->step = hfi_script_hang(true);
    stage_open(&pair->stage, decide, pair);
    hf_policy_options_init(&pair->policy);
    pair->policy.retry_max = 0;
    pair->policy.attempt_timeout_ms = 1200 * SECOND;
    pair->policy.total_timeout_ms = 1201 * SECOND;
    pair->policy.breaker_window_ms = 2400 * SECOND;
    hf_downstream_options_init(&pair->downstream);
    pair->downstream.name = "shop";
    pair->downstream.url = "http://shop.example";
    pair->downstream.policy = &pair->policy;
    pair->type = stage_http("order", "shop");
    pair->type.execution_timeout_ms = 0;
    stage_options(&pair->options);
    pair->options.types = &pair->type;
    pair->options.type_count = 1;
    pair->options.downstreams = &pair->downstream;
    pair->options.downstream_count = 1;
}

/* I2, S1.11, S1.13, I46: the one that cannot renew stops before the other may begin; its late word is refused. */
static void a_node_that_cannot_renew_stops_before_another_begins(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    stage_begin(&pair.stage, 0, &pair.options);
    stage_advance(&pair.stage, 1000);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_RUNNING);
    stage_begin(&pair.stage, 1, &pair.options);
    stage_advance(&pair.stage, 1000);
    pair.stage.nodes[0].door.refuse = HF_EIO;
    pair.step = hfi_script_status(10, 200); /* of later attempts */
    stage_advance(&pair.stage, 200 * SECOND);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    const struct hfi_script_record *first = hfi_scripted_record(pair.stage.scripted, 0);
    const struct hfi_script_record *second = hfi_scripted_record(pair.stage.scripted, 1);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 2);
    assert_int_equal(first->end, HFI_SCRIPT_CANCELLED);
    assert_true(first->ended.us < second->started.us); /* side effects never overlap */
    assert_int_equal(stage_logged(&pair.stage, "node.lease_lost"), 1);
    assert_int_equal(stage_counts(&pair.stage, 1).lapsed, 1);
    struct hf_job *job = stage_job(&pair.stage, id);
    assert_int_equal(hf_job_look(job)->executions, 2); /* S1.10: a lapse is a failure on the same curve */
    assert_int_equal(hf_job_look(job)->failures, 1);
    assert_int_equal(hf_job_look(job)->crashes, 0);
    hf_job_free(job);
    pair.stage.nodes[0].door.refuse = 0;
    stage_advance(&pair.stage, 60 * SECOND);
    assert_int_equal(stage_counts(&pair.stage, 0).lost, 1);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED); /* S1.16 */
    int64_t again = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    assert_int_equal(stage_state(&pair.stage, again), HF_JOB_SUCCEEDED);
    stage_close(&pair.stage);
}

/* I10, I2: a commit that never returns (a disk that hangs in the kernel) answers nothing; the lease runs out all the same. */
static void a_node_whose_commit_never_returns_stops_before_another_begins(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    pair.stage.own_writers = true;
    stage_begin(&pair.stage, 0, &pair.options);
    stage_advance(&pair.stage, 1000);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_RUNNING);
    stage_begin(&pair.stage, 1, &pair.options);
    stage_advance(&pair.stage, 1000);
    struct hf_mono hung = pair.stage.scheduler->ops->mono(pair.stage.scheduler);
    pair.stage.nodes[0].writer_hangs = true; /* no refusal either: nobody is told anything */
    pair.step = hfi_script_status(10, 200);
    stage_advance(&pair.stage, 200 * SECOND);
    const struct hfi_script_record *first = hfi_scripted_record(pair.stage.scripted, 0);
    const struct hfi_script_record *second = hfi_scripted_record(pair.stage.scripted, 1);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 2);
    assert_int_equal(first->end, HFI_SCRIPT_CANCELLED);
    assert_true(first->ended.us - hung.us < pair.options.lease_ms * 1000);
    assert_true(first->ended.us < second->started.us);
    assert_int_equal(stage_logged(&pair.stage, "node.lease_lost"), 1);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    pair.stage.nodes[0].writer_hangs = false; /* the disk is back: what was said then comes too late */
    stage_advance(&pair.stage, 60 * SECOND);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    assert_int_equal(stage_counts(&pair.stage, 0).lost, 1);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 2);
    int64_t again = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    assert_int_equal(stage_state(&pair.stage, again), HF_JOB_SUCCEEDED);
    stage_close(&pair.stage);
}

/* I2, S1.11: one that was stopped between its claim and the start may have lost the job by now, whatever its timers say. */
static void a_node_that_stood_still_after_its_claim_starts_nothing(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    pair.step = hfi_script_status(10, 200);
    pair.stage.own_writers = true;
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_begin(&pair.stage, 0, &pair.options);
    for (int i = 0; i < 5000 && pair.stage.nodes[0].door.seen[HFI_OP_CLAIM] == 0; i++)
        stage_advance(&pair.stage, 1);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_RUNNING); /* in the store: the loop has not heard of it */
    assert_int_equal(stage_counts(&pair.stage, 0).claimed, 0);
    hfi_virtual_stand_still(pair.stage.scheduler, pair.options.lease_ms);
    stage_advance(&pair.stage, 1);
    assert_int_equal(stage_counts(&pair.stage, 0).claimed, 1);
    stage_advance(&pair.stage, 1);
    assert_int_equal(stage_counts(&pair.stage, 0).given_back, 1);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 0);
    stage_advance(&pair.stage, 60 * SECOND); /* it is heard of again, and goes on */
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 1);
    stage_close(&pair.stage);
}

/* I16: beats go on until the last job of a drain has ended: no second run. */
static void a_draining_node_keeps_its_jobs(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    pair.options.lease_ms = 10 * SECOND;
    pair.options.heartbeat_ms = 3 * SECOND;
    pair.step = hfi_script_status(20 * SECOND, 200);
    stage_begin(&pair.stage, 0, &pair.options);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    stage_begin(&pair.stage, 1, &pair.options);
    stage_drain(&pair.stage, 0);
    stage_advance(&pair.stage, 40 * SECOND);
    assert_true(stage_over(&pair.stage, 0));
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 1);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    stage_close(&pair.stage);
}

/* I7: a job without a limit that lives for hours is nobody's but its owner's. */
static void a_long_job_of_a_living_node_is_left_alone(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    pair.step = hfi_script_status(1100 * SECOND, 200);
    stage_begin(&pair.stage, 0, &pair.options);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    stage_begin(&pair.stage, 1, &pair.options);
    stage_advance(&pair.stage, 1200 * SECOND);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 1);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    assert_int_equal(stage_counts(&pair.stage, 1).lapsed, 0);
    stage_close(&pair.stage);
}

/* 3.5: the store is away for all of them: nobody lapses anybody, no crash is counted, everything goes on. */
static void a_store_outage_is_no_crash(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    stage_begin(&pair.stage, 0, &pair.options);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    stage_begin(&pair.stage, 1, &pair.options);
    stage_advance(&pair.stage, 1000);
    pair.stage.nodes[0].door.refuse = pair.stage.nodes[1].door.refuse = HF_EIO;
    pair.step = hfi_script_status(10, 200);
    stage_advance(&pair.stage, 300 * SECOND);
    pair.stage.nodes[0].door.refuse = pair.stage.nodes[1].door.refuse = 0;
    stage_advance(&pair.stage, 120 * SECOND);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    struct hf_job *job = stage_job(&pair.stage, id);
    assert_int_equal(hf_job_look(job)->crashes, 0);
    assert_int_equal(hf_job_look(job)->failures, 1); /* it was stopped by its own node, which said so itself */
    hf_job_free(job);
    assert_int_equal(stage_counts(&pair.stage, 0).lapsed + stage_counts(&pair.stage, 1).lapsed, 0);
    stage_close(&pair.stage);
}

/* I67: an outcome that could not be written in time is written when the store is back, if nobody else has the job. */
static void a_late_success_counts_if_the_job_is_still_ours(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    pair.step = hfi_script_status(10 * SECOND, 200);
    stage_begin(&pair.stage, 0, &pair.options);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 5000);
    pair.stage.nodes[0].door.refuse = HF_EIO;
    stage_advance(&pair.stage, 300 * SECOND);
    pair.stage.nodes[0].door.refuse = 0;
    stage_advance(&pair.stage, 10 * SECOND);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_SUCCEEDED);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 1);
    stage_close(&pair.stage);
}

/* I48: the lease begins with the claim: a job that was due a day ago is as safe as any. */
static void an_old_due_time_lapses_nothing(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    stage_begin(&pair.stage, 1, &pair.options);
    struct hf_job_spec spec = hf_job_of("order", "x");
    spec.run_at_us = pair.stage.scheduler->ops->wall(pair.stage.scheduler).us - INT64_C(86400000000);
    int64_t id = stage_put(&pair.stage, &spec);
    stage_begin(&pair.stage, 0, &pair.options);
    stage_advance(&pair.stage, 300 * SECOND);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_RUNNING);
    assert_int_equal(hfi_scripted_started(pair.stage.scripted), 1);
    assert_int_equal(stage_counts(&pair.stage, 0).lapsed + stage_counts(&pair.stage, 1).lapsed, 0);
    stage_close(&pair.stage);
}

/* I17, I61: the wall clock steps a day forward, an hour back, mid-run: nobody lapses, nothing times out, due jobs run. */
static void a_step_of_the_wall_clock_lapses_nothing(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    pair.type.execution_timeout_ms = 600 * SECOND;
    stage_begin(&pair.stage, 0, &pair.options);
    stage_begin(&pair.stage, 1, &pair.options);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    static const int64_t steps_ms[] = {86400 * SECOND, -90000 * SECOND, 7200 * SECOND, -3600 * SECOND};
    pair.step = hfi_script_status(10, 200);
    for (size_t i = 0; i < sizeof steps_ms / sizeof *steps_ms; i++) {
        hfi_virtual_step_wall(pair.stage.scheduler, steps_ms[i] * 1000);
        int64_t now_due = stage_enqueue(&pair.stage, "order", NULL);
        stage_advance(&pair.stage, 100 * SECOND); /* more than a lease */
        assert_int_equal(stage_state(&pair.stage, id), HF_JOB_RUNNING);
        assert_int_equal(stage_state(&pair.stage, now_due), HF_JOB_SUCCEEDED);
    }
    assert_int_equal(stage_counts(&pair.stage, 0).lapsed + stage_counts(&pair.stage, 1).lapsed, 0);
    assert_int_equal(stage_logged(&pair.stage, "node.lease_lost") + stage_logged(&pair.stage, "node.gone"), 0);
    stage_close(&pair.stage);
}

/* I8, I29: the row is gone when the outcome comes: said once, and never tried again. */
static void an_outcome_of_a_row_that_is_gone_is_said_once(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    pair.step = hfi_script_status(5 * SECOND, 200);
    stage_begin(&pair.stage, 0, &pair.options);
    stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    pair.stage.nodes[0].door.refuse = HF_ENOENT;
    pair.stage.nodes[0].door.refuse_kinds = UINT64_C(1) << HFI_OP_APPLY;
    stage_advance(&pair.stage, 10 * SECOND);
    assert_int_equal(pair.stage.nodes[0].door.seen[HFI_OP_APPLY], 1);
    assert_int_equal(stage_logged(&pair.stage, "job.stale"), 1);
    assert_int_equal(stage_counts(&pair.stage, 0).lost, 1);
    pair.stage.nodes[0].door.refuse = 0;
    stage_close(&pair.stage);
}

/* I9: whoever takes a lapsed job need not know its type: it goes by its curve, and is put aside once, not for ever. */
static void a_lapsed_job_of_an_unknown_type_is_put_aside_once(void **state) {
    (void)state;
    static struct pair pair;
    struct hf_type_options tick = stage_noop("tick");
    open_pair(&pair);
    stage_begin(&pair.stage, 0, &pair.options);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    struct hf_runner_options others = pair.options;
    others.types = &tick;
    stage_begin(&pair.stage, 1, &others);
    stage_advance(&pair.stage, 1000);
    pair.stage.nodes[0].door.refuse = HF_EIO;
    stage_advance(&pair.stage, 600 * SECOND);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_QUARANTINED);
    assert_int_equal(stage_logged(&pair.stage, "job.dead"), 1);
    assert_int_equal(stage_counts(&pair.stage, 1).lapsed, 1);
    assert_int_equal(stage_counts(&pair.stage, 1).quarantined, 1);
    pair.stage.nodes[0].door.refuse = 0;
    stage_close(&pair.stage);
}

#define SWEEP_BIT (UINT64_C(1) << HFI_OP_SWEEP)
#define CLAIM_BIT (UINT64_C(1) << HFI_OP_CLAIM)

/* I2, I6: a sweep that comes late, when its owner beats again, takes nothing of what that one has claimed since. */
static void a_late_sweep_takes_nothing_of_who_beats_again(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    stage_begin(&pair.stage, 0, &pair.options);
    stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    stage_begin(&pair.stage, 1, &pair.options);
    stage_advance(&pair.stage, 1000);
    pair.stage.nodes[0].door.refuse = pair.stage.nodes[1].door.refuse = HF_EIO;
    pair.stage.nodes[1].door.refuse_kinds = SWEEP_BIT | CLAIM_BIT;
    stage_advance(&pair.stage, pair.options.lease_ms + 5 * SECOND);
    assert_int_equal(stage_logged(&pair.stage, "node.gone"), 1);
    pair.stage.nodes[0].door.refuse = 0;
    stage_advance(&pair.stage, 20 * SECOND);
    assert_int_equal(stage_logged(&pair.stage, "node.lease_back"), 1);
    int64_t fresh = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    assert_int_equal(stage_state(&pair.stage, fresh), HF_JOB_RUNNING);
    pair.stage.nodes[1].door.refuse = 0;
    stage_advance(&pair.stage, 20 * SECOND);
    struct hf_job *job = stage_job(&pair.stage, fresh);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_RUNNING);
    assert_int_equal(hf_job_look(job)->executions, 1);
    hf_job_free(job);
    assert_int_equal(stage_counts(&pair.stage, 1).lapsed, 0);
    assert_int_equal(stage_logged(&pair.stage, "node.watched_again"), 1);
    stage_close(&pair.stage);
}

/* The silent one is heard of once more, in the last moment before its jobs are taken. */
static void beat_before_sweep(struct hfi_op *op, void *user) {
    struct stage_door *door = user;
    if (op->kind != HFI_OP_SWEEP)
        return;
    struct hfi_op_sweep *sweep = (struct hfi_op_sweep *)(void *)op;
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = sweep->owner, .beat = 1000, .now = sweep->now};
    struct hfi_op *only = &beat.op;
    door->hook = NULL;
    door->inner->ops->commit(door->inner, &only, 1);
    assert_true(beat.known);
    hfi_free(beat.owned);
}

static void a_beat_just_before_the_sweep_counts(void **state) {
    (void)state;
    static struct pair pair;
    open_pair(&pair);
    stage_begin(&pair.stage, 0, &pair.options);
    int64_t id = stage_enqueue(&pair.stage, "order", NULL);
    stage_advance(&pair.stage, 1000);
    stage_begin(&pair.stage, 1, &pair.options);
    stage_advance(&pair.stage, 1000);
    pair.stage.nodes[1].door.hook = beat_before_sweep;
    pair.stage.nodes[1].door.hook_user = &pair.stage.nodes[1].door;
    pair.stage.nodes[0].door.refuse = HF_EIO;
    stage_advance(&pair.stage, pair.options.lease_ms + 5 * SECOND);
    assert_null(pair.stage.nodes[1].door.hook);
    assert_int_equal(stage_logged(&pair.stage, "node.gone"), 1);
    assert_int_equal(stage_logged(&pair.stage, "node.watched_again"), 1);
    assert_int_equal(stage_counts(&pair.stage, 1).lapsed, 0);
    assert_int_equal(stage_state(&pair.stage, id), HF_JOB_RUNNING);
    stage_advance(&pair.stage, pair.options.lease_ms + 5 * SECOND); /* silent for a whole lease again: now it is true */
    assert_int_equal(stage_logged(&pair.stage, "node.gone"), 2);
    assert_int_equal(stage_counts(&pair.stage, 1).lapsed, 1);
    pair.stage.nodes[0].door.refuse = 0;
    stage_close(&pair.stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_cannot_renew_stops_before_another_begins),
        cmocka_unit_test(a_node_whose_commit_never_returns_stops_before_another_begins),
        cmocka_unit_test(a_node_that_stood_still_after_its_claim_starts_nothing),
        cmocka_unit_test(a_draining_node_keeps_its_jobs),
        cmocka_unit_test(a_long_job_of_a_living_node_is_left_alone),
        cmocka_unit_test(a_store_outage_is_no_crash),
        cmocka_unit_test(a_late_success_counts_if_the_job_is_still_ours),
        cmocka_unit_test(an_old_due_time_lapses_nothing),
        cmocka_unit_test(a_step_of_the_wall_clock_lapses_nothing),
        cmocka_unit_test(an_outcome_of_a_row_that_is_gone_is_said_once),
        cmocka_unit_test(a_lapsed_job_of_an_unknown_type_is_put_aside_once),
        cmocka_unit_test(a_late_sweep_takes_nothing_of_who_beats_again),
        cmocka_unit_test(a_beat_just_before_the_sweep_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
