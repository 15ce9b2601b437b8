/* SPDX-License-Identifier: MIT */
/*
 * What handlers can say and how long they are waited for, in virtual time: asynchronous handlers that the test ends when
 * it likes. A real handler on a thread is in tests/integration/test_handlers.c.
 */
#include "handler_stage.h"

#include "base/alloc.h"

/* ------------------------------------------------------------------ the last word */

static void a_second_finish_changes_nothing(void **state) {
    (void)state;
    int64_t id = begin_one();
    struct hf_work *work = held(0);
    stage_advance(&stage, 5000); /* it waits for its handler */
    assert_int_equal(look(id)->state, HF_JOB_RUNNING);
    assert_int_equal(hf_work_finish(work, hf_work_ok(work, "done", 4)), 0);
    assert_int_equal(hf_work_failed(work, "late", "too late"), 0); /* says nothing any more */
    assert_int_equal(hf_work_finish(work, HF_RESULT_FAILED), HF_ESTATE);
    stage_advance(&stage, 1000);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_memory_equal(look(id)->result, "done", 4);
    assert_int_equal(hf_work_finish(work, HF_RESULT_OK), HF_ESTATE); /* recorded long ago */
    assert_int_equal(stage_counts(&stage, 0).succeeded, 1);
}

/* S0.1: an asynchronous handler cannot make a success up either. */
static void what_was_never_said_is_a_failure(void **state) {
    (void)state;
    int64_t id = begin_one();
    assert_int_equal(hf_work_finish(held(0), HF_RESULT_OK), 0);
    stage_advance(&stage, 100);
    assert_string_equal(look(id)->error_type, "handler.unknown_result");
    int64_t other = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 300);
    hf_work_failed(held(1), "real", "it failed");
    assert_int_equal(hf_work_finish(held(1), HF_RESULT_OK), 0);
    stage_advance(&stage, 100);
    assert_string_equal(look(other)->error_type, "handler.unknown_result");
    assert_int_equal(stage_jobs(&stage).succeeded, 0);
}

static void finishes_at_once(struct hf_work *work) {
    assert_int_equal(hf_work_finish(work, hf_work_ok(work, NULL, 0)), 0);
    assert_int_equal(hf_work_finish(work, HF_RESULT_OK), HF_ESTATE);
}

static void a_handler_may_finish_before_it_returns(void **state) {
    (void)state;
    play.act = finishes_at_once;
    stage_begin(&stage, 0, &options);
    stage_enqueue_many(&stage, "mail", NULL, 600); /* more than are kept for a second finish */
    stage_advance(&stage, 5000);
    assert_int_equal(stage_jobs(&stage).succeeded, 600);
}

/* ------------------------------------------------------------------ told to stop */

static void stopped(struct hf_work *work, enum hf_stop why, void *user) {
    (void)user;
    play.stops++;
    play.why = why;
    hf_work_finish(work, hf_work_failed(work, "stopped", "told to stop"));
}

static void only_told(struct hf_work *work, enum hf_stop why, void *user) {
    (void)work;
    (void)user;
    play.stops++;
    play.why = why;
}

/* I12: nobody notifies the node: the request stands in the row that its next beat reads. S1.12: an operator's wish. */
static void a_cancel_is_told_within_one_heartbeat(void **state) {
    (void)state;
    int64_t id = begin_one();
    hf_work_on_stop(held(0), stopped, NULL);
    struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "no need",
                               .now = {wall_us()}};
    assert_int_equal(stage_do(&stage, &op.op, HFI_OP_CANCEL), 0);
    stage_advance(&stage, options.heartbeat_ms + 100);
    assert_int_equal(play.stops, 1);
    assert_int_equal(play.why, HF_STOP_CANCEL);
    assert_int_equal(look(id)->state, HF_JOB_CANCELLED);
    assert_string_equal(look(id)->cancel_reason, "no need");
}

/* S1.12: a handler that says it was cancelled when nobody asked for that has failed, and is retried. */
static void a_cancellation_nobody_asked_for_is_a_failure(void **state) {
    (void)state;
    int64_t id = begin_one();
    assert_int_equal(hf_work_finish(held(0), hf_work_failed(held(0), "local.cancelled", "operation cancelled")), 0);
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_PENDING);
    assert_int_equal(look(id)->failures, 1);
}

static void a_timeout_and_a_drain_are_told_once(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 5000;
    int64_t id = begin_one();
    hf_work_on_stop(held(0), only_told, NULL);
    assert_false(hf_work_is_cancelled(held(0)));
    assert_in_range(hf_work_remaining_ms(held(0)), 4600, 5000);
    stage_advance(&stage, 5000);
    assert_int_equal(play.stops, 1);
    assert_int_equal(play.why, HF_STOP_TIMEOUT);
    assert_true(hf_work_is_cancelled(held(0)));
    stage_drain(&stage, 0);
    stage_advance(&stage, options.drain_timeout_ms + 100);
    assert_int_equal(play.stops, 1);
    hf_work_on_stop(held(0), stopped, NULL); /* told already */
    stage_advance(&stage, 10);
    assert_int_equal(play.stops, 1);
    assert_int_equal(hf_work_finish(held(0), hf_work_failed(held(0), "x", "y")), 0);
    stage_advance(&stage, 100);
    assert_true(stage_over(&stage, 0));
    assert_string_equal(past(id, 0)->error_type, "timeout.execution"); /* the limit came first */
}

/* S2.10 for asynchronous ones; a callback that comes after the stop is called at once. */
static void a_drain_gives_back_what_stops(void **state) {
    (void)state;
    int64_t id = begin_one();
    stage_drain(&stage, 0);
    stage_advance(&stage, options.drain_timeout_ms + 100);
    assert_int_equal(play.stops, 0);
    hf_work_on_stop(held(0), stopped, NULL);
    stage_advance(&stage, 100);
    assert_int_equal(play.stops, 1);
    assert_int_equal(play.why, HF_STOP_DRAIN);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(look(id)->state, HF_JOB_PENDING);
    assert_int_equal(look(id)->executions, 0);
    assert_int_equal(look(id)->give_backs, 1);
}

/* ------------------------------------------------------------------ past the limit */

/* S2.8: 3 s late is a success, flagged; no warning. */
static void an_ok_3_s_late_is_ok_and_flagged(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 10000;
    int64_t id = begin_one();
    stage_advance(&stage, 13000 - 300);
    assert_int_equal(hf_work_finish(held(0), hf_work_ok(held(0), NULL, 0)), 0);
    stage_advance(&stage, 20000);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_string_equal(past(id, 0)->event, "succeeded");
    assert_string_equal(past(id, 0)->rule, "job.late");
    assert_non_null(strstr(past(id, 0)->error_message, "ms after its execution timeout"));
    assert_int_equal(stage_logged(&stage, "job.overdue"), 0);
    assert_int_equal(stage_counts(&stage, 0).late, 1);
    assert_int_equal(stage_counts(&stage, 0).overdue, 0);
}

/* S2.8: 12 s late: one warning, one count, the outcome as it is. */
static void an_ok_12_s_late_was_warned_about_once(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 10000;
    int64_t id = begin_one();
    stage_advance(&stage, 22000 - 300);
    assert_int_equal(stage_logged(&stage, "job.overdue"), 1);
    assert_int_equal(hf_work_finish(held(0), hf_work_ok(held(0), NULL, 0)), 0);
    stage_advance(&stage, 60000);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(stage_logged(&stage, "job.overdue"), 1);
    assert_int_equal(stage_counts(&stage, 0).overdue, 1);
    assert_int_equal(stage_counts(&stage, 0).abandoned, 0);
}

/* S2.7, S2.8: an error after the limit, permanent or not, is the timeout. */
static void an_error_after_the_limit_is_the_timeout(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 10000;
    int64_t id = begin_one();
    stage_advance(&stage, 11000);
    assert_int_equal(hf_work_finish(held(0), hf_work_permanent(held(0), "mine", "never")), 0);
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_PENDING);
    assert_string_equal(look(id)->error_type, "timeout.execution");
    assert_int_equal(look(id)->failures, 1);
}

/* S2.8, 3.6: beyond abandon_after the slot is freed and the job goes on by its curve; its type waits for the handler. */
static void beyond_abandon_after_the_job_goes_on(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 10000;
    struct hf_queue_options queue;
    hf_queue_options_init(&queue);
    queue.name = "default";
    queue.concurrency = 1; /* its only slot */
    options.queue_options = &queue;
    options.queue_count = 1;
    struct hf_type_options tick = stage_noop("tick");
    options.types = &tick;
    options.type_count = 1;
    int64_t id = begin_one();
    int64_t tick_id = stage_enqueue(&stage, "tick", NULL);
    stage_advance(&stage, 300000); /* 10 s short of it */
    assert_int_equal(look(id)->state, HF_JOB_RUNNING);
    assert_int_equal(stage_state(&stage, tick_id), HF_JOB_PENDING);
    stage_advance(&stage, 10000);
    assert_int_equal(stage_counts(&stage, 0).abandoned, 1);
    assert_int_equal(stage_counts(&stage, 0).abandoned_live, 1);
    assert_int_equal(stage_logged(&stage, "job.abandoned"), 1);
    assert_int_equal(stage_state(&stage, tick_id), HF_JOB_SUCCEEDED); /* the slot is free */
    assert_string_equal(look(id)->error_type, "lease.lapsed");
    assert_int_equal(look(id)->failures, 1);
    assert_int_equal(look(id)->crashes, 0);
    assert_string_equal(past(id, 0)->event, "lapsed");
    stage_advance(&stage, 600000); /* its wait is long over */
    assert_int_equal(play.starts, 1);
    assert_int_equal(look(id)->state, HF_JOB_PENDING);
    assert_int_equal(hf_work_progress(held(0), 1, "still here"), HF_ESTALE);
    assert_int_equal(hf_work_checkpoint(held(0), "x", 1), HF_ESTALE);
    assert_int_equal(hf_work_finish(held(0), hf_work_ok(held(0), NULL, 0)), HF_ESTALE);
    stage_advance(&stage, 1000);
    assert_int_equal(stage_counts(&stage, 0).abandoned_live, 0);
    assert_int_equal(play.starts, 2);
    assert_int_equal(hf_work_finish(held(1), hf_work_ok(held(1), NULL, 0)), 0);
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(look(id)->executions, 2);
    options.types = NULL;
    options.type_count = 0;
}

/* The handlers end just before the node does, or the test could not free it all. */
static void end_them(struct hfi_op *op, void *user) {
    (void)user;
    for (size_t i = 0; op->kind == HFI_OP_LEAVE && i < play.held_count; i++)
        assert_int_equal(hf_work_finish(held(i), hf_work_ok(held(i), NULL, 0)), HF_ESTALE);
}

/* 3.6: at max_abandoned the node drains and ends with 1; what still lives is left alone. */
static void too_many_abandoned_end_the_node(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 10000;
    play.options.abandon_after_ms = 2000; /* before the warning */
    options.max_abandoned = 2;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    int64_t first = stage_enqueue(&stage, "mail", NULL);
    int64_t second = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 11000);
    assert_int_equal(stage_counts(&stage, 0).abandoned, 0);
    stage.nodes[0].door.hook = end_them;
    stage_advance(&stage, 2000);
    assert_int_equal(stage_counts(&stage, 0).abandoned, 2);
    assert_int_equal(stage_logged(&stage, "job.overdue"), 0);
    assert_int_equal(stage_logged(&stage, "node.abandoned"), 1);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage.nodes[0].code, 1);
    assert_int_equal(look(first)->failures, 1);
    assert_int_equal(look(second)->failures, 1);
}

/* C10: silent for the type's heartbeat_timeout: lapsed on the curve. I34: as long a wait as any failure has. */
static void a_silent_handler_is_lapsed(void **state) {
    (void)state;
    play.options.heartbeat_timeout_ms = 3000;
    play.options.execution_timeout_ms = 0;
    int64_t id = begin_one();
    for (int i = 0; i < 20; i++) {
        stage_advance(&stage, 2000);
        hf_work_heartbeat(held(0));
    }
    assert_int_equal(look(id)->state, HF_JOB_RUNNING);
    stage_advance(&stage, 2000);
    assert_int_equal(hf_work_progress(held(0), 1, NULL), 0); /* a sign of life too */
    stage_advance(&stage, 2000);
    assert_int_equal(look(id)->state, HF_JOB_RUNNING);
    stage_advance(&stage, 1500);
    assert_int_equal(look(id)->state, HF_JOB_PENDING);
    assert_string_equal(look(id)->error_type, "heartbeat.lapsed");
    assert_int_equal(look(id)->run_at_us - past(id, 0)->ended_at_us, 60 * SECOND);
    assert_int_equal(stage_counts(&stage, 0).silent, 1);
    assert_int_equal(stage_counts(&stage, 0).abandoned_live, 1);
    assert_true(hf_work_is_cancelled(held(0)));
    assert_int_equal(hf_work_finish(held(0), hf_work_ok(held(0), NULL, 0)), HF_ESTALE);
    stage_advance(&stage, 61000);
    assert_int_equal(play.starts, 2);
    assert_int_equal(hf_work_finish(held(1), hf_work_ok(held(1), NULL, 0)), 0);
    stage_advance(&stage, 100);
}

/* I34: error, timeout, lapse: the same next run. */
static void every_failure_waits_the_same(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 5000;
    int64_t id = begin_one();
    hf_work_finish(held(0), hf_work_failed(held(0), "x", "y"));
    stage_advance(&stage, 1000);
    assert_int_equal(look(id)->run_at_us - past(id, 0)->ended_at_us, 60 * SECOND);
    int64_t late = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 6000);
    hf_work_finish(held(1), hf_work_failed(held(1), "x", "y"));
    stage_advance(&stage, 1000);
    assert_string_equal(look(late)->error_type, "timeout.execution");
    assert_int_equal(look(late)->run_at_us - past(late, 0)->ended_at_us, 60 * SECOND);
}

/* S2.6: the type's limit wins over the node's. S2.9: it runs from when its slots are held, not from the enqueue. */
static void the_limit_runs_from_the_start_and_the_types_wins(void **state) {
    (void)state;
    struct hf_queue_options queue;
    hf_queue_options_init(&queue);
    queue.name = "default";
    queue.concurrency = 1;
    options.queue_options = &queue;
    options.queue_count = 1;
    options.execution_timeout_ms = 3000;
    play.options.execution_timeout_ms = 10000;
    int64_t first = begin_one();
    int64_t second = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 9000); /* the second waits for the slot all the while */
    assert_int_equal(play.starts, 1);
    hf_work_finish(held(0), hf_work_ok(held(0), NULL, 0));
    stage_advance(&stage, 300);
    assert_int_equal(play.starts, 2);
    assert_in_range(hf_work_remaining_ms(held(1)), 9600, 10000);
    assert_int_equal(hf_work_deadline_ms(held(1)),
                     (stage.scheduler->ops->mono(stage.scheduler).us / 1000) + hf_work_remaining_ms(held(1)));
    stage_advance(&stage, 9000);
    assert_false(hf_work_is_cancelled(held(1)));
    hf_work_finish(held(1), hf_work_ok(held(1), NULL, 0));
    stage_advance(&stage, 300);
    assert_int_equal(look(first)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(look(second)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(stage_counts(&stage, 0).late, 0);
}

/* ------------------------------------------------------------------ checkpoints that nobody waits for */

static void finish(struct hf_work *work, enum hf_result result) {
    assert_int_equal(hf_work_finish(work, result), 0);
}

struct stored {
    int count, code[4];
};

static void was_stored(int code, void *user) {
    struct stored *stored = user;
    stored->code[stored->count++ % 4] = code;
}

/* S1.7: begun on the loop thread, durable in its order and before the end that follows; the next execution has the last one. */
static void an_async_checkpoint_is_told_when_durable(void **state) {
    (void)state;
    static unsigned char big[HF_CHECKPOINT_MAX + 1];
    struct stored stored = {0};
    char bytes[] = "one";
    size_t length;
    int64_t id = begin_one();
    assert_int_equal(hf_work_checkpoint(held(0), "x", 1), 0); /* virtual time has no other thread */
    assert_int_equal(hf_work_checkpoint_start(held(0), big, sizeof big, was_stored, &stored), HF_ETOOBIG);
    assert_int_equal(hf_work_checkpoint_start(held(0), bytes, 3, was_stored, &stored), 0);
    memcpy(bytes, "xxx", 3); /* copied */
    assert_int_equal(stored.count, 0); /* never inside */
    stage_advance(&stage, 10);
    assert_int_equal(stored.count, 1);
    assert_int_equal(stored.code[0], 0);
    memset(big, 0xa5, sizeof big);
    assert_int_equal(hf_work_checkpoint_start(held(0), "two", 3, was_stored, &stored), 0);
    assert_int_equal(hf_work_checkpoint_start(held(0), big, HF_CHECKPOINT_MAX, NULL, NULL), 0);
    finish(held(0), hf_work_failed(held(0), "test.again", "once more"));
    assert_int_equal(hf_work_checkpoint_start(held(0), "late", 4, was_stored, &stored), HF_ESTALE);
    stage_advance(&stage, 10);
    assert_int_equal(stored.count, 2); /* told after the end, too */
    assert_int_equal(stored.code[1], 0);
    stage_advance(&stage, 61000);
    assert_int_equal(play.starts, 2);
    assert_int_equal(look(id)->executions, 2);
    const void *last = hf_work_last_checkpoint(held(1), &length);
    assert_int_equal(length, HF_CHECKPOINT_MAX);
    assert_memory_equal(last, big, HF_CHECKPOINT_MAX);
    struct hfi_op_sweep op = {.book = stage.nodes[0].book, .owner = 1, .by = 99, .only = id, .epoch = 2, .now = {wall_us()}, .limit = 1};
    assert_int_equal(stage_do(&stage, &op.op, HFI_OP_SWEEP), 0);
    assert_int_equal(op.lapsed, 1);
    assert_int_equal(hf_work_checkpoint_start(held(1), "z", 1, was_stored, &stored), 0); /* it is not known yet: I8, I50 */
    stage_advance(&stage, 10);
    assert_int_equal(stored.count, 3);
    assert_int_equal(stored.code[2], HF_ESTALE);
    hfi_free(op.notes);
    finish(held(1), hf_work_ok(held(1), NULL, 0));
    stage_advance(&stage, 100);
}

/* The same on the store of every day. */
static int set_up_sqlite(void **state) {
    set_up(state);
    stage_close(&stage);
    stage_open_sqlite(&stage, NULL, NULL);
    stage.prepare = prepare;
    stage_options(&options);
    return 0;
}
#define SQLITE_TEST(name) {#name " on sqlite", name, set_up_sqlite, forget, NULL}

/* S2.31: begun before, stored before, though nobody waited for it. */
static void an_older_checkpoint_never_lands_on_a_newer_one(void **state) {
    (void)state;
    struct stored stored = {0};
    size_t length;
    int64_t id = begin_one();
    assert_int_equal(hf_work_checkpoint_start(held(0), "a", 1, was_stored, &stored), 0);
    assert_int_equal(hf_work_checkpoint(held(0), "b", 1), 0);
    stage_advance(&stage, 10);
    assert_int_equal(stored.count, 1);
    assert_int_equal(stored.code[0], 0);
    assert_memory_equal(look(id)->checkpoint, "b", 1);
    finish(held(0), hf_work_failed(held(0), "test.again", "once more"));
    stage_advance(&stage, 61000);
    assert_memory_equal(hf_work_last_checkpoint(held(1), &length), "b", 1);
    assert_int_equal(length, 1);
    finish(held(1), hf_work_ok(held(1), NULL, 0));
    stage_advance(&stage, 100);
}

/* Said on the loop in the turn of the end, as the last words of a process are: stored before it. */
static void a_checkpoint_in_the_turn_of_the_end_goes_before_it(void **state) {
    (void)state;
    struct stored stored = {0};
    int64_t id = begin_one();
    struct hf_work *work = held(0);
    assert_int_equal(hf_work_checkpoint_start(work, "last", 4, was_stored, &stored), 0);
    hf_work_failed(work, "test.killed", "a moment later");
    work->ending.result = HF_RESULT_FAILED;
    assert_true(hfi_work_close(work));
    work->ended(work, work->user);
    stage_advance(&stage, 100);
    assert_int_equal(stored.count, 1);
    assert_int_equal(stored.code[0], 0);
    assert_int_equal(look(id)->state, HF_JOB_PENDING);
    assert_int_equal(look(id)->checkpoint_length, 4);
    assert_int_equal(stage_logged(&stage, "job.stale"), 0);
}

/* Its handler does not end, the node goes without it: what it said until then is still answered, and the node ends after that. */
static void a_node_that_ends_answers_every_checkpoint(void **state) {
    (void)state;
    struct stored stored = {0};
    begin_one();
    stage_drain(&stage, 0);
    for (int i = 0; i < 1000 && !stage_over(&stage, 0); i++) {
        int before = stored.count;
        if (hf_work_checkpoint_start(held(0), "x", 1, was_stored, &stored) != 0)
            break;
        stage_advance(&stage, 100);
        assert_int_equal(stored.count, before + 1);
    }
    assert_int_equal(hf_work_checkpoint_start(held(0), "y", 1, was_stored, &stored), HF_ESTALE);
    stage_advance(&stage, 100);
    assert_true(stage_over(&stage, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_second_finish_changes_nothing),
        TEST(what_was_never_said_is_a_failure),
        TEST(a_handler_may_finish_before_it_returns),
        TEST(a_cancel_is_told_within_one_heartbeat),
        TEST(a_cancellation_nobody_asked_for_is_a_failure),
        TEST(a_timeout_and_a_drain_are_told_once),
        TEST(a_drain_gives_back_what_stops),
        TEST(an_ok_3_s_late_is_ok_and_flagged),
        TEST(an_ok_12_s_late_was_warned_about_once),
        TEST(an_error_after_the_limit_is_the_timeout),
        TEST(beyond_abandon_after_the_job_goes_on),
        TEST(too_many_abandoned_end_the_node),
        TEST(a_silent_handler_is_lapsed),
        TEST(every_failure_waits_the_same),
        TEST(the_limit_runs_from_the_start_and_the_types_wins),
        TEST(an_async_checkpoint_is_told_when_durable),
        TEST(an_older_checkpoint_never_lands_on_a_newer_one),
        SQLITE_TEST(an_older_checkpoint_never_lands_on_a_newer_one),
        TEST(a_checkpoint_in_the_turn_of_the_end_goes_before_it),
        SQLITE_TEST(a_checkpoint_in_the_turn_of_the_end_goes_before_it),
        TEST(a_node_that_ends_answers_every_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
