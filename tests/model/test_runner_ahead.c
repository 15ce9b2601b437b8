/* SPDX-License-Identifier: MIT */
/*
 * Jobs reserved ahead of their slots (3.4, `prefetch`), on the store that is named on the command line, in virtual time.
 * One slot, and a handler that holds its work until the test ends it.
 */
#include "handler_stage.h"

#include <stdio.h>

static bool on_sqlite;
static struct hf_queue_options queue;
static struct hf_policy_options policy;
static struct hf_downstream_options shop;
static size_t finished;

static int begin_test(void **state) {
    set_up(state);
    if (on_sqlite) {
        stage_close(&stage);
        stage_open_sqlite(&stage, NULL, NULL);
        stage.prepare = prepare;
    }
    hf_queue_options_init(&queue);
    queue.name = "default";
    queue.concurrency = 1;
    options.queue_options = &queue;
    options.queue_count = 1;
    options.prefetch = 3;
    finished = 0;
    return 0;
}

static int64_t enqueue(int priority) {
    struct hf_job_spec spec = hf_job_of("mail", "");
    spec.priority = priority;
    return stage_put(&stage, &spec);
}

/* Ends what the handler holds, the one that began first. */
static void finish(void) {
    struct hf_work *work = held(finished++);
    hf_work_finish(work, hf_work_ok(work, NULL, 0));
    stage_advance(&stage, 20);
}

static bool is_reserved(int64_t id) {
    return look(id)->state == HF_JOB_RUNNING && look(id)->executions == 0;
}

static int count_reserved(int64_t last) {
    int count = 0;
    for (int64_t id = 1; id <= last; id++)
        count += is_reserved(id);
    return count;
}

/* Node 0 runs job 5, has reserved 6 to 8, and 9 and 10 wait. */
static void begin_ahead(void) {
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    for (int i = 0; i < 10; i++)
        stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 300);
    while (play.starts < 5)
        finish();
    assert_int_equal(look(5)->executions, 1);
    assert_int_equal(count_reserved(10), 3);
    for (int64_t id = 6; id <= 8; id++)
        assert_true(is_reserved(id));
}

/* They wait as if nobody had ever touched them. */
static void assert_untouched(int64_t from, int64_t to) {
    for (int64_t id = from; id <= to; id++) {
        const struct hf_job_view *view = look(id);
        if (view->state != HF_JOB_PENDING)
            fail_msg("job %lld is %d", (long long)id, view->state);
        assert_int_equal(view->executions, 0);
        assert_int_equal(view->failures, 0);
        assert_int_equal(view->started_at_us, 0);
        assert_true(view->run_at_us <= wall_us());
        struct hf_job *job = stage_job(&stage, id);
        assert_int_equal(hf_job_history_count(job), 0);
        hf_job_free(job);
    }
    assert_int_equal(stage_counts(&stage, 0).given_back, 0);
}

/* One by one to the end; each has run once. */
static void finish_all(int64_t last) {
    for (int i = 0; i < 60 && stage_jobs(&stage).succeeded < (uint64_t)last; i++) {
        if (play.held_count > finished)
            finish();
        else
            stage_advance(&stage, 500);
    }
    for (int64_t id = 1; id <= last; id++) {
        assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
        assert_int_equal(look(id)->executions, 1);
    }
    assert_int_equal(play.starts, last);
}

static void executions_are_real_starts(void **state) {
    (void)state;
    begin_ahead();
    for (int at = 6; at <= 10; at++) {
        uint64_t claims = stage.nodes[0].door.seen[HFI_OP_CLAIM];
        bool reserved = is_reserved(at);
        finish();
        assert_int_equal(play.starts, at); /* in order */
        assert_int_equal(held((size_t)at - 1)->job->id, at);
        assert_int_equal(held((size_t)at - 1)->job->executions, 1);
        assert_true(held((size_t)at - 1)->job->started_at_us > 0);
        assert_int_equal(look(at)->executions, 1);
        assert_true(at > 8 || reserved);
        assert_true(at > 6 || stage.nodes[0].door.seen[HFI_OP_CLAIM] <= claims + 1); /* that reserves the next */
    }
    finish();
    struct hf_runner_counts counts = stage_counts(&stage, 0);
    assert_int_equal(counts.started, 10);
    assert_int_equal(counts.succeeded, 10);
    assert_int_equal(counts.given_back, 0);
}

static void nothing_is_reserved_by_a_node_that_ends_nothing(void **state) {
    (void)state;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    stage_enqueue_many(&stage, "mail", NULL, 5);
    for (int i = 0; i < 100; i++) {
        stage_advance(&stage, 50);
        assert_int_equal(count_reserved(5), 0);
    }
    finish(); /* one in a second: one ahead */
    assert_int_equal(count_reserved(5), 1);
    finish_all(5);
}

static void what_goes_first_is_started_first(void **state) {
    (void)state;
    begin_ahead();
    int64_t urgent = enqueue(9);
    stage_advance(&stage, 300); /* the node has heard of it */
    finish();
    assert_int_equal(held(5)->job->id, urgent);
    assert_untouched(6, 10); /* and none is reserved for a while */
    finish();
    assert_int_equal(held(6)->job->id, 6);
    finish_all(11);
}

static void a_pause_keeps_what_is_reserved(void **state) {
    (void)state;
    begin_ahead();
    struct hfi_op_pause pause = {.queue = "default", .actor = "me", .pause = true, .now = {wall_us()}};
    assert_int_equal(stage_do(&stage, &pause.op, HFI_OP_PAUSE), 0);
    finish(); /* before the node has heard of it */
    assert_int_equal(play.starts, 5);
    stage_advance(&stage, 300);
    assert_untouched(6, 10);
    stage_advance(&stage, 5000);
    assert_int_equal(play.starts, 5);
    assert_untouched(6, 10);
    pause.pause = false;
    assert_int_equal(stage_do(&stage, &pause.op, HFI_OP_PAUSE), 0);
    stage_advance(&stage, 500);
    finish_all(10);
}

/* Also when nothing of the queue is pending, so that the store says nothing about its lanes. */
static void a_pause_gives_back_what_is_reserved(void **state) {
    (void)state;
    begin_ahead();
    for (int64_t id = 9; id <= 10; id++) {
        struct hfi_op_cancel cancel = {.id = id, .actor = "me", .reason = "", .now = {wall_us()}};
        assert_int_equal(stage_do(&stage, &cancel.op, HFI_OP_CANCEL), 0);
    }
    struct hfi_op_pause pause = {.queue = "default", .actor = "me", .pause = true, .now = {wall_us()}};
    assert_int_equal(stage_do(&stage, &pause.op, HFI_OP_PAUSE), 0);
    stage_advance(&stage, 300);
    assert_untouched(6, 8);
    assert_int_equal(look(5)->state, HF_JOB_RUNNING);
}

static void cancelling_a_reserved_job_is_immediate(void **state) {
    (void)state;
    begin_ahead();
    struct hfi_op_cancel op = {.id = 6, .actor = "me", .reason = "no", .now = {wall_us()}};
    assert_int_equal(stage_do(&stage, &op.op, HFI_OP_CANCEL), 0);
    assert_false(op.requested);
    assert_int_equal(look(6)->state, HF_JOB_CANCELLED);
    finish();
    stage_advance(&stage, 1000);
    assert_int_equal(look(6)->state, HF_JOB_CANCELLED);
    assert_int_equal(look(6)->executions, 0);
    assert_int_equal(play.starts, 6);
    assert_int_not_equal(held(5)->job->id, 6);
}

static void a_drain_gives_back_at_once(void **state) {
    (void)state;
    begin_ahead();
    stage_drain(&stage, 0);
    stage_advance(&stage, 50);
    assert_untouched(6, 10);
    assert_false(stage_over(&stage, 0)); /* job 5 has its time */
    finish();
    stage_advance(&stage, 1000);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(play.starts, 5);
}

static void a_store_that_refuses_gets_them_back_later(void **state) {
    (void)state;
    begin_ahead();
    stage.nodes[0].door.refuse = HF_EIO;
    finish();
    stage_advance(&stage, 3000);
    assert_int_equal(play.starts, 5);
    stage_drain(&stage, 0);
    stage_advance(&stage, 1000);
    assert_false(stage_over(&stage, 0));
    stage.nodes[0].door.refuse = 0;
    stage_advance(&stage, 6000);
    assert_true(stage_over(&stage, 0));
    assert_untouched(6, 10);
    assert_int_equal(look(5)->state, HF_JOB_SUCCEEDED);
}

/* The store takes a start, and nobody hears of it. */
static void take_starts(struct hfi_op *op, void *user) {
    struct hfi_store *inner = stage.nodes[0].door.inner;
    (void)user;
    if (op->kind == HFI_OP_APPLY && ((struct hfi_op_apply *)(void *)op)->event.kind == HFI_EVENT_STARTED)
        inner->ops->commit(inner, &op, 1);
}

static void a_start_that_was_stored_unheard_counts_nothing(void **state) {
    (void)state;
    begin_ahead();
    stage.nodes[0].door.hook = take_starts;
    stage.nodes[0].door.refuse_kinds = UINT64_C(1) << HFI_OP_APPLY;
    stage.nodes[0].door.refuse = HF_EIO;
    finish();
    assert_int_equal(look(6)->executions, 1);
    for (size_t i = finished; i < play.held_count; i++)
        assert_int_not_equal(held(i)->job->id, 6);
    stage.nodes[0].door.refuse = 0;
    stage_advance(&stage, 6000);
    finish_all(10);
    assert_int_equal(stage_counts(&stage, 0).started, 10);
}

static void other_options_begin_anew(void **state) {
    (void)state;
    struct hf_runner_options next;
    begin_ahead();
    next = options;
    stage_renew(&stage, 0, &next);
    stage_advance(&stage, 50);
    assert_untouched(6, 10);
    finish_all(10);
}

static void nobody_waits_for_long_for_a_node_that_hoards(void **state) {
    (void)state;
    begin_ahead(); /* job 5 hangs */
    stage_begin(&stage, 1, &options);
    stage_advance(&stage, 1300);
    assert_int_equal(count_reserved(10), 0);
    assert_true(play.starts >= 6);
    finish_all(10);
}

static void a_lapse_of_what_is_reserved_counts_nothing(void **state) {
    (void)state;
    begin_ahead();
    stage.nodes[0].door.refuse = HF_EIO;
    stage_begin(&stage, 1, &options);
    stage_advance(&stage, 150000);
    assert_true(play.starts >= 6);
    for (int64_t id = 6; id <= 10; id++) {
        assert_int_equal(look(id)->crashes, 0);
        assert_int_equal(look(id)->failures, 0);
        assert_true(look(id)->executions <= 1);
    }
    stage.nodes[0].door.refuse = 0; /* its give-backs are stale */
    stage_advance(&stage, 10000);
    assert_int_equal(stage_counts(&stage, 0).given_back, 0);
}

static void what_expires_is_not_started(void **state) {
    (void)state;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    struct hf_job_spec spec = hf_job_of("mail", "");
    stage_enqueue_many(&stage, "mail", NULL, 2);
    spec.expires_at_us = wall_us() + 800000;
    int64_t id = stage_put(&stage, &spec);
    stage_advance(&stage, 300);
    finish();
    assert_true(is_reserved(id));
    stage_advance(&stage, 520);
    assert_false(is_reserved(id));
    finish();
    stage_advance(&stage, 60000);
    assert_int_equal(look(id)->state, HF_JOB_CANCELLED);
    assert_string_equal(look(id)->cancel_reason, "expired");
    assert_int_equal(look(id)->executions, 0);
    assert_int_equal(play.starts, 2);
}

static void what_calls_a_broken_downstream_is_given_back(void **state) {
    (void)state;
    hf_policy_options_init(&policy);
    hf_downstream_options_init(&shop);
    shop.name = "shop";
    shop.url = "http://shop.example";
    shop.policy = &policy;
    options.downstreams = &shop;
    options.downstream_count = 1;
    play.options.downstream = "shop";
    begin_ahead();
    assert_int_equal(hf_downstream_isolate(stage_downstream(&stage, 0, "shop"), 0, "it is down"), 0);
    stage_advance(&stage, 300);
    assert_untouched(6, 10);
    finish();
    stage_advance(&stage, 3000);
    assert_int_equal(play.starts, 5);
    assert_untouched(6, 10);
}

static void a_limit_of_the_whole_store_keeps_nothing_ahead(void **state) {
    (void)state;
    queue.global_concurrency = 2;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    stage_enqueue_many(&stage, "mail", NULL, 10);
    stage_advance(&stage, 300);
    for (int i = 0; i < 9; i++) {
        finish();
        assert_int_equal(count_reserved(10), 0);
    }
}

/* What is held to the end would be leaked with its node. */
static int end_test(void **state) {
    for (int i = 0; i < 200 && finished < play.held_count; i++)
        finish();
    return forget(state);
}

#define AHEAD(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        AHEAD(executions_are_real_starts),
        AHEAD(nothing_is_reserved_by_a_node_that_ends_nothing),
        AHEAD(what_goes_first_is_started_first),
        AHEAD(a_pause_keeps_what_is_reserved),
        AHEAD(a_pause_gives_back_what_is_reserved),
        AHEAD(cancelling_a_reserved_job_is_immediate),
        AHEAD(a_drain_gives_back_at_once),
        AHEAD(a_store_that_refuses_gets_them_back_later),
        AHEAD(a_start_that_was_stored_unheard_counts_nothing),
        AHEAD(other_options_begin_anew),
        AHEAD(nobody_waits_for_long_for_a_node_that_hoards),
        AHEAD(a_lapse_of_what_is_reserved_counts_nothing),
        AHEAD(what_expires_is_not_started),
        AHEAD(what_calls_a_broken_downstream_is_given_back),
        AHEAD(a_limit_of_the_whole_store_keeps_nothing_ahead),
    };
    on_sqlite = argc > 1 && strcmp(argv[1], "sqlite") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
