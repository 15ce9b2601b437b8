/* SPDX-License-Identifier: MIT */
/* Calls under a rate limit, on virtual time: refused, or waiting in the bulkhead's queue for a token; B19, A1, A2, R8, R21, R23. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/call_world.h"

static uint64_t samples(void) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    return view.window_calls;
}

/* B19: without a queue they are refused at once, with the exact wait, and are no samples. */
static void b19_refused_without_a_queue(void **state) {
    (void)state;
    struct hf_request request = call_get();
    world->policy.rate_per_s = 10;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    assert_int_equal(call_once(&request).outcome.kind, HF_OUTCOME_SUCCESS);
    struct call_end end = call_once(&request);
    assert_string_equal(end.outcome.error_type, "rate.limited");
    assert_int_equal(end.outcome.retry_after_ms, 99); /* a millisecond is over */
    assert_int_equal(end.outcome.attempts, 0);
    assert_int_equal(end.outcome.sent, HF_SENT_NO);
    assert_int_equal(hfi_scripted_started(world->script), 1);
    assert_int_equal(samples(), 1);
}

/* With one they wait in turn, each for its token, none early (A2); the queue counts all that wait. */
static void tokens_come_in_turn(void **state) {
    (void)state;
    struct hf_request request = call_get();
    struct call_end ends[5];
    world->policy.rate_per_s = 10;
    world->policy.bulkhead_queue = 3;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    for (int i = 0; i < 5; i++)
        assert_int_equal(call_start(&ends[i], &request), 0);
    call_run();
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ends[i].count, 1);
        assert_int_equal(ends[i].outcome.kind, HF_OUTCOME_SUCCESS);
        assert_int_equal(ends[i].at_ms, 1 + 100 * i);
    }
    assert_string_equal(ends[4].outcome.error_type, "rate.limited"); /* the queue was full */
    assert_int_equal(ends[4].outcome.retry_after_ms, 100);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.calls, 5); /* R23: who waits asks often, and is one call */
    assert_int_equal(view.rejections, 1);
    assert_int_equal(view.rate_limited, 1);
    assert_true(hfi_downstream_adds_up(world->d));
    assert_int_equal(samples(), 4);
    assert_int_equal(atomic_load(&world->d->bulkhead.queued), 0);
}

/* A1: a token that comes after the total is told now, not waited for. */
static void a1_too_late_is_told_now(void **state) {
    (void)state;
    struct hf_request request = call_get();
    world->policy.rate_per_s = 10;
    world->policy.bulkhead_queue = 3;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    call_once(&request);
    int64_t before_ms = call_now_ms();
    request.total_timeout_ms = 50;
    struct call_end end = call_once(&request);
    assert_string_equal(end.outcome.error_type, "rate.limited");
    assert_int_equal(end.at_ms, before_ms);
}

/* R8, R21: one that is cancelled while it waits takes no token along. */
static void r8_r21_cancelled_while_waiting(void **state) {
    (void)state;
    struct hf_request request = call_get();
    struct call_end ends[3];
    world->policy.rate_per_s = 10;
    world->policy.bulkhead_queue = 3;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    for (int i = 0; i < 3; i++)
        assert_int_equal(call_start(&ends[i], &request), 0);
    call_cancel(&ends[1]);
    call_run();
    assert_string_equal(ends[1].outcome.error_type, "call.cancelled");
    assert_int_equal(ends[2].outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(ends[2].at_ms, 101); /* the token that the cancelled one waited for */
    assert_int_equal(samples(), 2);
    assert_int_equal(atomic_load(&world->d->bulkhead.queued), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(b19_refused_without_a_queue),
        TEST(tokens_come_in_turn),
        TEST(a1_too_late_is_told_now),
        TEST(r8_r21_cancelled_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
