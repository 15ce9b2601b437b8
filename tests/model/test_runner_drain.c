/* SPDX-License-Identifier: MIT */
/*
 * How a node ends, step by step (3.6), and what the next one finds: S3.4, S2.10, I11, I26, I82. In virtual time.
 */
#include "handler_stage.h"

static void told(struct hf_work *work, enum hf_stop why, void *user) {
    (void)user;
    play.stops++;
    play.why = why;
    hf_work_finish(work, hf_work_failed(work, "stopped", "told to stop"));
}

static void snooze(struct hf_work *work, enum hf_stop why, void *user) {
    (void)why;
    (void)user;
    play.stops++;
    hf_work_finish(work, hf_work_snooze(work, 60000));
}

static void begin_some(size_t count) {
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    stage_enqueue_many(&stage, "mail", NULL, count);
    stage_advance(&stage, 300);
    assert_int_equal(play.held_count, count);
}

/* S3.4: 25 s for what runs; who needs less ends as usual; the rest is told then, not before, and given back uncounted. */
static void running_jobs_get_their_time_S3_4(void **state) {
    (void)state;
    hf_runner_options_init_sized(&options, (uint32_t)sizeof options);
    assert_int_equal(options.drain_timeout_ms, 25000);
    stage_options(&options);
    options.drain_timeout_ms = 25000;
    begin_some(3);
    for (size_t i = 0; i < 3; i++)
        hf_work_on_stop(held(i), told, NULL);
    stage_drain(&stage, 0);
    int64_t late = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 24000);
    hf_work_finish(held(0), hf_work_ok(held(0), NULL, 0));
    stage_advance(&stage, 900);
    assert_int_equal(play.stops, 0);
    assert_false(stage_over(&stage, 0));
    stage_advance(&stage, 200);
    assert_int_equal(play.stops, 2);
    assert_int_equal(play.why, HF_STOP_DRAIN);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage.nodes[0].code, 0);
    assert_int_equal(play.starts, 3); /* none was claimed after the signal */
    assert_int_equal(stage_jobs(&stage).succeeded, 1);
    assert_int_equal(stage_jobs(&stage).pending, 3);
    assert_int_equal(stage_counts(&stage, 0).given_back, 2);
    assert_int_equal(look(late)->executions, 0);
    assert_int_equal(look(2)->executions, 0);
    assert_int_equal(look(2)->failures, 0);
    assert_string_equal(past(2, 0)->event, "given_back"); /* I11: it is told in the history */
}

static void signal_comes(struct hfi_op *op, void *user) {
    (void)user;
    if (op->kind == HFI_OP_CLAIM) {
        stage.nodes[0].door.hook = NULL;
        stage_drain(&stage, 0);
    }
}

/* I11: a claim was on its way when the signal came: its jobs are given back at once, none is started, nothing is counted. */
static void what_was_just_claimed_is_given_back_at_once_I11(void **state) {
    (void)state;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    stage.nodes[0].door.hook = signal_comes;
    stage_enqueue_many(&stage, "mail", NULL, 5);
    stage_advance(&stage, 1300); /* not the drain's time */
    assert_true(stage_over(&stage, 0));
    assert_int_equal(play.starts, 0);
    assert_int_equal(stage_jobs(&stage).pending, 5);
    for (int64_t id = 1; id <= 5; id++) {
        assert_int_equal(look(id)->executions, 0);
        assert_int_equal(look(id)->failures, 0);
        assert_true(look(id)->run_at_us <= wall_us());
    }
    stage_begin(&stage, 1, &options); /* and the next node has them all */
    stage_advance(&stage, 1000);
    assert_int_equal(play.starts, 5);
    for (size_t i = 0; i < 5; i++)
        hf_work_finish(held(i), hf_work_ok(held(i), NULL, 0));
    stage_advance(&stage, 300);
    assert_int_equal(stage_jobs(&stage).succeeded, 5);
}

/* 3.6: a job that must not be repeated and may have sent something ends for a person to decide. */
static void a_payment_that_was_cut_is_unknown(void **state) {
    (void)state;
    play.options.repeatable = false;
    begin_some(1);
    hf_work_on_stop(held(0), told, NULL);
    stage_drain(&stage, 0);
    stage_advance(&stage, options.drain_timeout_ms + 100);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(look(1)->state, HF_JOB_DEAD);
    assert_string_equal(look(1)->error_type, "outcome.unknown");
    assert_int_equal(stage_jobs(&stage).pending, 0);
}

/* I26: a handler that says snooze while the node closes does not hold it. */
static void a_snooze_while_it_closes_does_not_hold_it_I26(void **state) {
    (void)state;
    begin_some(1);
    hf_work_on_stop(held(0), snooze, NULL);
    stage_drain(&stage, 0);
    stage_advance(&stage, options.drain_timeout_ms + 1000);
    assert_int_equal(play.stops, 1);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage.nodes[0].code, 0);
    assert_int_equal(look(1)->state, HF_JOB_PENDING);
}

static void drain_twice(struct hfi_task *task, void *user) {
    (void)task;
    (void)user;
    stage_drain(&stage, 0);
    stage_drain(&stage, 0);
}

/* A second signal does not wait for the drain's time, a third changes nothing. */
static void a_second_signal_hurries(void **state) {
    (void)state;
    options.drain_timeout_ms = 600000;
    begin_some(2);
    hf_work_on_stop(held(0), told, NULL);
    hf_work_on_stop(held(1), told, NULL);
    stage_drain(&stage, 0);
    stage_advance(&stage, 1000);
    assert_int_equal(play.stops, 0);
    struct hfi_task again = {.run = drain_twice}; /* on the loop's thread, where handlers are told */
    stage.scheduler->ops->post(stage.scheduler, &again);
    stage_advance(&stage, 100);
    assert_int_equal(play.stops, 2);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage_jobs(&stage).pending, 2);
}

/* I82: another curve is for jobs that have not begun; those that have keep the one that was stored with them. */
static void a_changed_curve_is_for_new_jobs_I82(void **state) {
    (void)state;
    struct hf_curve_options slow, fast;
    hf_curve_options_init(&slow);
    hf_curve_options_init(&fast);
    slow.curve_length = fast.curve_length = 1;
    slow.curve_ms[0] = 300000;
    fast.curve_ms[0] = 2000;
    slow.max_executions = fast.max_executions = 9;
    play.options.curve = &slow;
    int64_t old = begin_one();
    hf_work_finish(held(0), hf_work_failed(held(0), "x", "y"));
    stage_advance(&stage, 100);
    assert_int_equal(look(old)->run_at_us - past(old, 0)->ended_at_us, 300 * SECOND);
    stage_drain(&stage, 0);
    stage_advance(&stage, 100);
    assert_true(stage_over(&stage, 0));
    int64_t waiting = stage_enqueue(&stage, "mail", NULL);
    play.options.curve = &fast;
    stage_begin(&stage, 1, &options);
    stage_advance(&stage, 1000);
    hf_work_finish(held(1), hf_work_failed(held(1), "x", "y"));
    stage_advance(&stage, 100);
    assert_int_equal(look(waiting)->run_at_us - past(waiting, 0)->ended_at_us, 2 * SECOND);
    stage_advance(&stage, 2000);
    hf_work_finish(held(2), hf_work_ok(held(2), NULL, 0));
    stage_advance(&stage, 300000);
    assert_int_equal(play.starts, 4);
    hf_work_finish(held(3), hf_work_failed(held(3), "x", "y"));
    stage_advance(&stage, 100);
    assert_int_equal(look(old)->failures, 2);
    assert_int_equal(look(old)->run_at_us - past(old, 1)->ended_at_us, 300 * SECOND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(running_jobs_get_their_time_S3_4),
        TEST(what_was_just_claimed_is_given_back_at_once_I11),
        TEST(a_payment_that_was_cut_is_unknown),
        TEST(a_snooze_while_it_closes_does_not_hold_it_I26),
        TEST(a_second_signal_hurries),
        TEST(a_changed_curve_is_for_new_jobs_I82),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
