/* SPDX-License-Identifier: MIT */
/* A call on virtual time: its limits, its queue and its cancellation (2.3, 2.6, R5, R8, R21, B19, B28). */
#include "support/support.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/call_world.h"

static void test_attempt_limit(void **state) {
    (void)state;
    world->policy.retry_max = 1;
    CALL_WORLD_OPEN(hfi_script_hang(true));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    const struct hfi_script_record *first = hfi_scripted_record(world->script, 0);
    assert_int_equal(first->end, HFI_SCRIPT_CANCELLED);
    assert_int_equal(first->ended.us - first->started.us, 20000000);
    assert_string_equal(end.outcome.error_type, "timeout.attempt");
    assert_int_equal(end.outcome.verdict, HF_VERDICT_FAILURE);
    assert_int_equal(end.outcome.sent, HF_SENT_MAYBE);
    assert_int_equal(end.outcome.attempts, 2);
    assert_int_equal(end.outcome.phases.total_us, 20000000);
}

static void test_connect_limit(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_hang(false), hfi_script_status(10, 200));
    struct hf_request request = call_post(NULL); /* nothing was sent: even a bare POST may go again */
    struct call_end end = call_once(&request);
    const struct hfi_script_record *first = hfi_scripted_record(world->script, 0);
    assert_int_equal(first->ended.us - first->started.us, 5000000);
    assert_int_equal(end.status, 200);
    assert_int_equal(end.outcome.attempts, 2);
}

/* Connected just in time: the connect limit is over for good. */
static void test_connected_in_time(void **state) {
    (void)state;
    struct hfi_script_step slow = hfi_script_status(19999, 200);
    slow.connect_ms = 5000;
    call_world_open(&slow, 1);
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.status, 200);
    assert_int_equal(end.at_ms, 19999);
}

/* S0.31: 4 × 15 s do not fit 50 s: the total wins, to the millisecond. */
static void test_total_wins(void **state) {
    (void)state;
    world->policy.attempt_timeout_ms = 15000;
    world->policy.total_timeout_ms = 50000;
    world->policy.allow_truncated = true;
    CALL_WORLD_OPEN(hfi_script_hang(true));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.at_ms, 50000);
    assert_int_equal(end.outcome.attempts, 4);
    assert_string_equal(end.outcome.error_type, "timeout.total");
    assert_int_equal(end.outcome.verdict, HF_VERDICT_NEUTRAL); /* it was cut short: no sample against the peer */
    assert_non_null(strstr(end.outcome.message, "timeout.attempt"));
    request.total_timeout_ms = 300;
    end = call_once(&request);
    assert_int_equal(end.at_ms, 50300);
    assert_int_equal(end.outcome.attempts, 1);
    assert_non_null(strstr(end.outcome.error_type, "timeout.total"));
}

static void test_remaining_time_header(void **state) {
    (void)state;
    world->options.send_remaining_time = true;
    CALL_WORLD_OPEN(hfi_script_status(400, 500));
    struct hf_request request = call_get();
    struct call_end end;
    request.total_timeout_ms = 60000;
    assert_int_equal(call_start(&end, &request), 0);
    assert_string_equal(hfi_scripted_header(world->script, "Holdfast-Timeout-Ms"), "60000");
    while (hfi_scripted_started(world->script) < 2)
        hfi_virtual_advance(world->s, 1);
    long left = strtol(hfi_scripted_header(world->script, "Holdfast-Timeout-Ms"), NULL, 10);
    assert_int_equal(left, 60000 - (hfi_scripted_record(world->script, 1)->started.us -
                                    hfi_scripted_record(world->script, 0)->started.us) /
                                       1000);
    call_run();
}

/* B19: what the bulkhead refuses is no sample, however often. */
static void test_bulkhead_full(void **state) {
    (void)state;
    world->policy.bulkhead_max = 1;
    CALL_WORLD_OPEN(hfi_script_status(1000, 200));
    struct hf_request request = call_get();
    struct call_end first, more;
    assert_int_equal(call_start(&first, &request), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(call_start(&more, &request), 0);
        hfi_virtual_advance(world->s, 0);
        assert_int_equal(more.count, 1);
        assert_string_equal(more.outcome.error_type, "bulkhead.full");
        assert_true(more.outcome.retry_after_ms >= 1);
    }
    call_run();
    assert_int_equal(first.status, 200);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.window_calls, 1);
    assert_int_equal(view.window_failures, 0);
    assert_int_equal(view.state, HF_BREAKER_CLOSED);
}

/* R21: first come, first served; the wait counts; who gives up takes no slot along. */
static void test_queue(void **state) {
    (void)state;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 3;
    CALL_WORLD_OPEN(hfi_script_status(100, 200));
    struct hf_request request = call_get(), hurried = call_get();
    struct call_end ends[6];
    hurried.total_timeout_ms = 150;
    assert_int_equal(call_start(&ends[0], &request), 0);
    assert_int_equal(call_start(&ends[1], &request), 0);
    assert_int_equal(call_start(&ends[2], &hurried), 0);
    assert_int_equal(call_start(&ends[3], &request), 0);
    assert_int_equal(call_start(&ends[4], &request), 0); /* no room in the queue */
    call_run();
    assert_int_equal(ends[0].at_ms, 100);
    assert_int_equal(ends[1].at_ms, 200);
    assert_string_equal(ends[2].outcome.error_type, "timeout.total");
    assert_int_equal(ends[2].at_ms, 150);
    assert_int_equal(ends[2].outcome.attempts, 0);
    assert_int_equal(ends[2].outcome.sent, HF_SENT_NO);
    assert_int_equal(ends[3].at_ms, 300);
    assert_string_equal(ends[4].outcome.error_type, "bulkhead.full");
    assert_int_equal(call_once(&request).status, 200); /* the slot is free again */
}

static void test_queue_when_the_breaker_opens(void **state) {
    (void)state;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 10;
    world->policy.breaker_consecutive = 2;
    CALL_WORLD_OPEN(hfi_script_status(100, 500));
    struct hf_request request = call_get();
    struct call_end ends[6];
    request.no_retry = true;
    for (int i = 0; i < 6; i++)
        assert_int_equal(call_start(&ends[i], &request), 0);
    call_run();
    for (int i = 0; i < 6; i++) {
        assert_int_equal(ends[i].count, 1);
        assert_string_equal(ends[i].outcome.error_type, i < 2 ? "http.500" : "breaker.open");
        assert_int_equal(ends[i].at_ms, i == 0 ? 100 : 200);
    }
}

/* A guard on another thread holds the slot: the queue finds out by itself. */
static void test_slot_held_by_a_guard(void **state) {
    (void)state;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 1;
    CALL_WORLD_OPEN(hfi_script_status(10, 200));
    struct hf_request request = call_get();
    struct hf_permit permit;
    struct call_end end;
    assert_int_equal(hfi_downstream_enter(world->d, world->s->ops->mono(world->s), &permit, NULL), 0);
    assert_int_equal(call_start(&end, &request), 0);
    hfi_virtual_advance(world->s, 500);
    assert_int_equal(end.count, 0);
    assert_int_equal(hfi_downstream_leave_as(world->d, world->s->ops->mono(world->s), &permit, HF_VERDICT_SUCCESS), 0);
    call_run();
    assert_int_equal(end.status, 200);
    assert_in_range(end.at_ms, 510, 530);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.rejections, 0); /* R23: to wait is none, and the call was let in */
}

/* … also while one of our own is in flight, of which we would hear. */
static void test_slot_freed_elsewhere(void **state) {
    (void)state;
    world->policy.bulkhead_max = 2;
    world->policy.bulkhead_queue = 1;
    CALL_WORLD_OPEN(hfi_script_status(15000, 200), hfi_script_status(10, 200));
    struct hf_request request = call_get();
    struct hf_permit permit;
    struct call_end slow, end;
    assert_int_equal(hfi_downstream_enter(world->d, world->s->ops->mono(world->s), &permit, NULL), 0);
    assert_int_equal(call_start(&slow, &request), 0);
    assert_int_equal(call_start(&end, &request), 0);
    hfi_virtual_advance(world->s, 500);
    assert_int_equal(end.count, 0);
    assert_int_equal(hfi_downstream_leave_as(world->d, world->s->ops->mono(world->s), &permit, HF_VERDICT_SUCCESS), 0);
    call_run();
    assert_int_equal(end.status, 200);
    assert_in_range(end.at_ms, 510, 530);
    assert_int_equal(slow.at_ms, 15000);
}

/* libcurl's own limit comes after ours; when it is noticed first all the same, it is ours that is named. */
static void test_limit_noticed_late(void **state) {
    (void)state;
    static const struct {
        int64_t at_ms, connect_ms, attempt_ms, total_ms;
        enum hf_sent sent;
        const char *type;
    } rows[] = {
        {5000, 5000, 20000, 90000, HF_SENT_NO, "timeout.connect"},
        {4999, 5000, 20000, 90000, HF_SENT_NO, "curl.operation_timedout"},
        {5000, 5000, 20000, 90000, HF_SENT_MAYBE, "curl.operation_timedout"}, /* connected */
        {20000, 5000, 20000, 90000, HF_SENT_MAYBE, "timeout.attempt"},
        {20000, 5000, 20000, 20000, HF_SENT_MAYBE, "timeout.total"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world->policy.connect_timeout_ms = rows[i].connect_ms;
        world->policy.attempt_timeout_ms = rows[i].attempt_ms;
        world->policy.total_timeout_ms = rows[i].total_ms;
        world->policy.allow_truncated = true;
        CALL_WORLD_OPEN(hfi_script_code(rows[i].at_ms, CURLE_OPERATION_TIMEDOUT, rows[i].sent));
        struct hf_request request = call_get();
        request.no_retry = true;
        struct call_end end = call_once(&request);
        assert_string_equal(end.outcome.error_type, rows[i].type);
        assert_int_equal(end.outcome.sent, rows[i].sent);
        assert_int_equal(end.outcome.attempts, 1);
        assert_int_equal(end.at_ms, rows[i].at_ms);
        assert_int_equal(hfi_scripted_record(world->script, 0)->end, HFI_SCRIPT_ANSWERED); /* libcurl's was first */
        call_world_tear_down(NULL);
        call_world_set_up(NULL);
    }
}

/* R8, B28: cancelled within the turn wherever it is; no timer is left, and it is no sample. */
static void test_cancel(void **state) {
    (void)state;
    enum { QUEUED, WIRE, BACKOFF, ENDING, STATES };
    for (int at = 0; at < STATES; at++) {
        struct hfi_script_step busy = hfi_script_status(10, 503);
        struct call_end end, other;
        struct hf_request request = call_get();
        busy.facts.retry_after = "3600"; /* an hour's backoff */
        world->policy.total_timeout_ms = 7200000;
        world->policy.bulkhead_max = 1;
        world->policy.bulkhead_queue = at == QUEUED ? 1 : 0;
        call_world_open(at == BACKOFF ? &busy : (struct hfi_script_step[]){hfi_script_hang(true)}, 1);
        if (at == QUEUED || at == ENDING)
            assert_int_equal(call_start(&other, &request), 0);
        assert_int_equal(call_start(&end, &request), 0);
        if (at != ENDING)
            hfi_virtual_advance(world->s, 20);
        assert_int_equal(end.count, 0);
        int64_t from = call_now_ms();
        call_cancel(&end);
        call_cancel(&end); /* twice is once */
        if (at == QUEUED || at == ENDING)
            call_cancel(&other);
        call_run();
        assert_int_equal(end.count, 1);
        assert_int_equal(end.at_ms, from);
        assert_int_equal(call_now_ms(), from); /* nothing was left that time could have run on to */
        assert_string_equal(end.outcome.error_type, at == ENDING ? "bulkhead.full" : "call.cancelled");
        if (at != ENDING)
            assert_int_equal(end.outcome.kind, HF_OUTCOME_NEUTRAL);
        assert_int_equal(end.outcome.sent, at == BACKOFF ? HF_SENT_YES : at == WIRE ? HF_SENT_MAYBE : HF_SENT_NO);
        assert_int_equal(end.outcome.attempts, at == BACKOFF || at == WIRE ? 1 : 0);
        struct hf_downstream_view view = {.size = sizeof view};
        hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
        assert_int_equal(view.window_failures, 0);
        assert_int_equal(view.in_flight, 0);
        call_world_tear_down(NULL);
        call_world_set_up(NULL);
    }
}

/* The end of a caller tells everybody, at once. */
static void test_end_of_the_caller(void **state) {
    (void)state;
    world->policy.bulkhead_max = 2;
    world->policy.bulkhead_queue = 2;
    CALL_WORLD_OPEN(hfi_script_hang(true));
    struct hf_request request = call_get();
    struct call_end ends[5];
    for (int i = 0; i < 5; i++)
        assert_int_equal(call_start(&ends[i], &request), 0);
    hfi_caller_end(world->caller);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ends[i].count, 1);
        assert_string_equal(ends[i].outcome.error_type, i < 4 ? "call.cancelled" : "bulkhead.full");
    }
    call_run();
    assert_int_equal(call_now_ms(), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
    const struct CMUnitTest tests[] = {
        T(test_attempt_limit),
        T(test_connect_limit),
        T(test_connected_in_time),
        T(test_total_wins),
        T(test_remaining_time_header),
        T(test_bulkhead_full),
        T(test_queue),
        T(test_queue_when_the_breaker_opens),
        T(test_slot_held_by_a_guard),
        T(test_slot_freed_elsewhere),
        T(test_limit_noticed_late),
        T(test_cancel),
        T(test_end_of_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
