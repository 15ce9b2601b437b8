/* SPDX-License-Identifier: MIT */
/* A call on virtual time: waits, budgets and what one request may change, bug by bug of the field (2.3, 2.4, R, A, F5). */
#include "support/support.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/call_world.h"

static struct hf_downstream_view look(void) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    return view;
}

static const struct hfi_script_record *attempt(uint64_t number) {
    return hfi_scripted_record(world->script, number);
}

static void again(void) {
    call_world_tear_down(NULL);
    call_world_set_up(NULL);
}

/* F5: one call may narrow what its downstream allows, and never widen it. */
static void f5_the_smaller_limit_wins(void **state) {
    (void)state;
    static const struct {
        int64_t policy_ms, asked_ms, want_ms;
    } rows[] = {{20000, 0, 20000}, {20000, 700, 700}, {20000, 20000, 20000}, {20000, 20001, 20000}, {300, 5000, 300}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world->policy.connect_timeout_ms = 100;
        world->policy.attempt_timeout_ms = rows[i].policy_ms;
        CALL_WORLD_OPEN(hfi_script_hang(true));
        struct hf_request request = call_get();
        request.no_retry = true;
        request.attempt_timeout_ms = rows[i].asked_ms;
        struct call_end end = call_once(&request);
        assert_string_equal(end.outcome.error_type, "timeout.attempt");
        assert_int_equal(end.at_ms, rows[i].want_ms);
        again();
    }
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    struct hf_request request = call_get();
    struct hf_error error = hf_error_none();
    struct call_end end;
    request.attempt_timeout_ms = -1;
    assert_int_equal(call_start(&end, &request), HF_EINVAL);
    assert_int_equal(hfi_request_check(&request, &error), HF_EINVAL);
    assert_string_equal(error.what, "attempt_timeout_ms");
}

/* R22: the peer sees which attempt of its call each one is; nothing unless asked for. */
static void r22_attempts_are_numbered(void **state) {
    (void)state;
    world->options.send_attempt = true;
    CALL_WORLD_OPEN(hfi_script_status(10, 500));
    struct hf_request request = call_get();
    struct call_end end;
    assert_int_equal(call_start(&end, &request), 0);
    for (uint64_t n = 1; n <= 4; n++) {
        char want[8];
        while (hfi_scripted_started(world->script) < n)
            hfi_virtual_advance(world->s, 1);
        snprintf(want, sizeof want, "%d", (int)n);
        assert_string_equal(hfi_scripted_header(world->script, "Holdfast-Attempt"), want);
    }
    call_run();
    again();
    CALL_WORLD_OPEN(hfi_script_status(10, 200));
    call_once(&request);
    assert_null(hfi_scripted_header(world->script, "Holdfast-Attempt"));
}

/* R5: nothing left: no further try, and no timer that would fire at once. */
static void r5_nothing_left(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_status(300, 500));
    struct hf_request request = call_get();
    request.total_timeout_ms = 300; /* the answer comes with the end */
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(end.at_ms, 300);
    assert_int_equal(call_now_ms(), 300);
    assert_int_equal(look().retries, 0);
}

/* A2: a thousand waits for a peer that named one, none of them early; A8: our jitter only makes them longer. */
static void a2_a_thousand_waits(void **state) {
    (void)state;
    struct hfi_script_step busy = hfi_script_status(0, 503), fine = hfi_script_status(0, 200);
    busy.facts.retry_after = "1";
    struct hfi_script_step steps[2000];
    for (int i = 0; i < 2000; i++) {
        steps[i] = i % 2 ? fine : busy;
        steps[i].delay_ms = i % 7; /* so that they do not all begin on a full millisecond's boundary of a second */
    }
    world->policy.retry_base_ms = 2000; /* full jitter: from 0 to 2 s, on both sides of the second that was asked for */
    world->policy.retry_max = 1;
    world->policy.budget_ratio = 1;
    call_world_open(steps, 2000);
    struct hf_request request = call_get();
    unsigned longer = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        call_once(&request);
        int64_t waited_us = attempt(2 * i + 1)->started.us - attempt(2 * i)->ended.us;
        assert_true(waited_us >= 1000000);
        assert_true(waited_us <= 2001000);
        longer += waited_us > 1000000;
    }
    assert_in_range(longer, 300, 700); /* half of the jittered waits are longer than what was asked for */
}

/* A3: 114 hours are not waited for, not forgotten either: the caller is told. A4: nor do digits wrap. */
static void a3_a4_absurd_waits(void **state) {
    (void)state;
    static const char *const values[] = {"410400", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct hfi_script_step busy = hfi_script_status(10, 503);
        busy.facts.retry_after = values[i];
        call_world_open(&busy, 1);
        struct hf_request request = call_get();
        struct call_end end = call_once(&request);
        assert_int_equal(end.outcome.attempts, 1);
        assert_int_equal(end.at_ms, 10);
        assert_true(end.outcome.retry_after_ms >= 410400000);
        again();
    }
}

/* A2: the cap is what a job takes over from a Retry-After. A retry within the call waits for all of it, or is not made. */
static void a2_no_cap_makes_a_retry_early(void **state) {
    (void)state;
    struct hfi_script_step steps[] = {hfi_script_status(10, 503), hfi_script_status(10, 200)};
    steps[0].facts.retry_after = "30";
    world->policy.retry_after_cap_ms = 2000;
    world->policy.retry_max = 1;
    call_world_open(steps, 2);
    struct hf_request request = call_get();
    assert_int_equal(call_once(&request).outcome.attempts, 2);
    assert_int_equal(attempt(1)->started.us - attempt(0)->ended.us, 30000000);
}

/* A5: a wait of nothing, or a date gone by, does not shorten our own backoff. */
static void a5_own_backoff_stays(void **state) {
    (void)state;
    static const char *const values[] = {"0", "Sun, 06 Nov 1994 08:49:37 GMT", "-5", "soon", "1.5"}; /* A7: and no junk */
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct hfi_script_step busy = hfi_script_status(10, 503);
        busy.facts.retry_after = values[i];
        world->policy.retry_jitter = HF_JITTER_NONE;
        world->policy.retry_max = 1;
        call_world_open(&busy, 1);
        struct hf_request request = call_get();
        call_once(&request);
        assert_int_equal(attempt(1)->started.us - attempt(0)->ended.us, 500000);
        again();
    }
}

/* R24, W4: a date is read against the clock that was handed in, wherever the machine's own stands. */
static void r24_the_injected_clock(void **state) {
    (void)state;
    struct hfi_script_step busy = hfi_script_status(0, 503);
    busy.facts.retry_after = "Tue, 14 Nov 2023 22:13:30 GMT"; /* ten seconds after the world begins */
    CALL_WORLD_OPEN(busy, hfi_script_status(0, 200));
    struct hf_request request = call_get();
    assert_int_equal(call_once(&request).at_ms, 10000);
}

/* R9 with calls: a thousand fail at once, and wait for nothing: at most a fifth of them is scheduled. */
static void r9_a_thousand_calls_fail(void **state) {
    (void)state;
    enum { CALLS = 1000 };
    static struct call_end ends[CALLS];
    world->policy.bulkhead_max = CALLS;
    world->policy.breaker_min_calls = 100000;
    world->policy.retry_jitter = HF_JITTER_NONE;
    world->policy.retry_max = 1;
    CALL_WORLD_OPEN(hfi_script_status(10, 500));
    struct hf_request request = call_get();
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(call_start(&ends[i], &request), 0);
    hfi_virtual_advance(world->s, 10);
    assert_int_equal(look().retries, 200); /* while all of them wait in their backoff */
    assert_int_equal(look().retries_refused, 800);
    call_run();
    assert_int_equal(hfi_scripted_started(world->script), 1200);
    for (int i = 0; i < CALLS; i++) /* R13: nobody is sent away without a time */
        assert_true(!ends[i].outcome.retry_refused || ends[i].outcome.retry_after_ms > 0);
}

/* R10: one call a second has its ten retries in ten seconds. R11, R12: a token is never kept, whatever its retry ended in. */
static void r10_r11_r12_low_rate_and_refill(void **state) {
    (void)state;
    world->policy.retry_max = 1;
    world->policy.breaker_min_calls = 100000;
    struct hfi_script_step steps[400];
    static const int ends[] = {404, 200, 500, 400};
    for (int i = 0; i < 400; i++)
        steps[i] = hfi_script_status(1, i % 2 ? ends[i / 2 % 4] : 503);
    call_world_open(steps, 400);
    struct hf_request request = call_get();
    for (int i = 0; i < 60; i++) {
        struct call_end end = call_once(&request);
        assert_false(end.outcome.retry_refused);
        assert_int_equal(end.outcome.attempts, 2);
        hfi_virtual_advance(world->s, 1000);
    }
}

static void expect_counts(uint64_t called, uint64_t rejections) {
    assert_int_equal(look().calls, called);
    assert_int_equal(look().rejections, rejections);
    assert_true(hfi_downstream_adds_up(world->d));
}

/* R23: to ask again while it waits is no call; to be refused is one, also for who comes behind those that wait. */
static void r23_waiting_is_no_rejection(void **state) {
    (void)state;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 1;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    struct hf_request request = call_get();
    struct hf_permit held;
    struct call_end waits, late;
    assert_int_equal(hfi_downstream_enter(world->d, world->s->ops->mono(world->s), &held, NULL), 0);
    assert_int_equal(call_start(&waits, &request), 0);
    hfi_virtual_advance(world->s, 300);
    expect_counts(1, 0);
    assert_int_equal(call_start(&late, &request), 0); /* the queue is full: not even asked */
    expect_counts(2, 1);
    hfi_downstream_leave_as(world->d, world->s->ops->mono(world->s), &held, HF_VERDICT_SUCCESS);
    call_run();
    assert_string_equal(late.outcome.error_type, "bulkhead.full");
    assert_int_equal(waits.outcome.kind, HF_OUTCOME_SUCCESS);
    expect_counts(3, 1);
    assert_int_equal(hfi_downstream_enter(world->d, world->s->ops->mono(world->s), &held, NULL), 0);
    assert_int_equal(call_start(&waits, &request), 0);
    hfi_virtual_advance(world->s, 300);
    hfi_breaker_isolate(&world->d->breaker, world->s->ops->mono(world->s), 0, "test");
    call_run(); /* refused in the end, after it has waited */
    assert_string_equal(waits.outcome.error_type, "breaker.isolated");
    expect_counts(5, 2);
}

/* R23: one rejection is counted once, however many layers it passed. B19: and is no sample. */
static void r23_a_rejection_counts_once(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    hfi_breaker_isolate(&world->d->breaker, world->s->ops->mono(world->s), 0, "test");
    struct hf_request request = call_get();
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(call_once(&request).outcome.kind, HF_OUTCOME_REJECTED);
        assert_int_equal(look().rejections, i);
        assert_int_equal(look().window_calls, 0);
        assert_int_equal(look().retries_refused, 0);
    }
}

/* R3: a call that was begun is not begun again by mistake: double schedules cannot be said, refusals cost nothing. */
static void r3_a_refused_start_costs_nothing(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    struct hf_request wrong = call_get();
    struct call_end end;
    wrong.path = "no slash";
    for (int i = 0; i < 100; i++)
        assert_int_equal(call_start(&end, &wrong), HF_EINVAL);
    wrong = hf_request_to("unknown", "GET", "/");
    assert_int_equal(call_start(&end, &wrong), HF_ENOENT);
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(look().attempts, 0);
    assert_int_equal(hfi_scripted_started(world->script), 0);
    call_run();
    assert_int_equal(call_now_ms(), 0); /* no timer is left */
}

/* 2.3: the total covers the wait in the queue, the backoff and all attempts; what is left falls from attempt to attempt. */
static void the_total_covers_everything(void **state) {
    (void)state;
    world->options.send_remaining_time = true;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 1;
    world->policy.allow_truncated = true;
    world->policy.retry_jitter = HF_JITTER_NONE;
    CALL_WORLD_OPEN(hfi_script_status(4000, 200), hfi_script_status(1000, 500));
    struct hf_request request = call_get();
    struct call_end first, end;
    assert_int_equal(call_start(&first, &request), 0);
    request.total_timeout_ms = 6800; /* of an execution that has no more left, say */
    assert_int_equal(call_start(&end, &request), 0);
    long left = 6801;
    for (uint64_t n = 2; n <= 3; n++) {
        while (hfi_scripted_started(world->script) < n)
            hfi_virtual_advance(world->s, 1);
        long now_left = strtol(hfi_scripted_header(world->script, "Holdfast-Timeout-Ms"), NULL, 10);
        assert_int_equal(now_left, 6800 - call_now_ms());
        assert_true(now_left < left);
        left = now_left;
    }
    call_run();
    assert_int_equal(attempt(1)->started.us - attempt(0)->started.us, 4000000); /* waited for its place */
    assert_int_equal(end.outcome.attempts, 2); /* 4 s queued + 1 s + 0.5 s + 1 s; a third after 1 s more has no time */
    assert_int_equal(end.at_ms, 6500);
    assert_string_equal(end.outcome.error_type, "http.500");
}

/* 2.5: a permit's lease runs from the attempt's start, not from the call's: who waited long is no lost probe. */
static void the_lease_runs_from_the_start(void **state) {
    (void)state;
    world->policy.breaker_consecutive = 1;
    world->policy.breaker_probes = 1;
    world->policy.breaker_break_ms = world->policy.breaker_max_break_ms = 1000;
    world->policy.breaker_break_jitter = 0;
    world->policy.breaker_lease_ms = 20000;
    world->policy.breaker_ramp_ms = 0;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 1;
    CALL_WORLD_OPEN(hfi_script_status(1, 500), hfi_script_status(19000, 200));
    struct hf_request request = call_get();
    struct call_end end;
    request.no_retry = true;
    call_once(&request);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    uint32_t term; /* the only place is taken by somebody else, for 15 s */
    struct hfi_shard_use use = hfi_shards_mine(&world->d->breaker.shards);
    assert_true(hfi_bulkhead_enter(&world->d->bulkhead, &world->d->breaker.shards, use, &term));
    hfi_virtual_advance(world->s, 1000);
    assert_int_equal(call_start(&end, &request), 0);
    hfi_virtual_advance(world->s, 15000);
    assert_int_equal(end.count, 0);
    hfi_bulkhead_leave(use, term);
    call_run();
    assert_int_equal(end.status, 200); /* 15 + 19 s after it asked first, 19 s after its probe began */
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
    const struct CMUnitTest tests[] = {
        T(f5_the_smaller_limit_wins),
        T(r22_attempts_are_numbered),
        T(r5_nothing_left),
        T(a2_a_thousand_waits),
        T(a3_a4_absurd_waits),
        T(a2_no_cap_makes_a_retry_early),
        T(a5_own_backoff_stays),
        T(r24_the_injected_clock),
        T(r9_a_thousand_calls_fail),
        T(r10_r11_r12_low_rate_and_refill),
        T(r23_a_rejection_counts_once),
        T(r23_waiting_is_no_rejection),
        T(r3_a_refused_start_costs_nothing),
        T(the_total_covers_everything),
        T(the_lease_runs_from_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
