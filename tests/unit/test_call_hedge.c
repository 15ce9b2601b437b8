/* SPDX-License-Identifier: MIT */
/* Hedging on virtual time: when a second attempt of a try goes, what it costs, who wins, and what stays (2.4, R17, R18). */
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

static int64_t started_ms(uint64_t number) {
    return (attempt(number)->started.us - attempt(0)->started.us) / 1000;
}

static void hedged(uint32_t max, int64_t delay_ms) {
    world->policy.hedge_max = max;
    world->policy.hedge_delay_ms = delay_ms;
    world->policy.allow_truncated = true;
}

/* The first answer wins; the loser is cancelled, and is no sample of anything. */
static void test_second_attempt_wins(void **state) {
    (void)state;
    hedged(1, 100);
    CALL_WORLD_OPEN(hfi_script_hang(true), hfi_script_status(30, 200));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.status, 200);
    assert_int_equal(end.at_ms, 130);
    assert_int_equal(started_ms(1), 100);
    assert_int_equal(attempt(0)->end, HFI_SCRIPT_CANCELLED);
    assert_int_equal(end.outcome.attempts, 2);
    assert_int_equal(end.outcome.hedges, 1);
    assert_int_equal(end.outcome.retries, 0);
    assert_int_equal(end.outcome.phases.total_us, 30000); /* of the winner */
    struct hf_downstream_view view = look();
    assert_int_equal(view.hedges, 1);
    assert_int_equal(view.window_calls, 1); /* a lost race says nothing of the peer (B28) */
    assert_int_equal(view.window_failures, 0);
    assert_int_equal(view.in_flight, 0);
    assert_int_equal(call_now_ms(), 130); /* and no timer is left */
}

static void test_first_attempt_wins(void **state) {
    (void)state;
    hedged(1, 100);
    CALL_WORLD_OPEN(hfi_script_status(150, 200), hfi_script_status(500, 200), hfi_script_status(99, 200));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.at_ms, 150);
    assert_int_equal(attempt(1)->end, HFI_SCRIPT_CANCELLED);
    assert_int_equal(end.outcome.hedges, 1);
    end = call_once(&request); /* faster than the delay: no second one at all */
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(end.outcome.hedges, 0);
    assert_int_equal(look().in_flight, 0);
}

/* Off unless asked for; never for what may not be repeated; a request may do without (F5). */
static void test_who_is_hedged(void **state) {
    (void)state;
    hedged(1, 100);
    CALL_WORLD_OPEN(hfi_script_status(1000, 200));
    struct hf_request request = call_get();
    assert_int_equal(call_once(&request).outcome.hedges, 1);
    request.no_hedge = true;
    assert_int_equal(call_once(&request).outcome.hedges, 0);
    request = call_get();
    request.no_retry = true; /* exactly one attempt */
    assert_int_equal(call_once(&request).outcome.attempts, 1);
    request = call_post(NULL);
    assert_int_equal(call_once(&request).outcome.attempts, 1);
    request = call_post("key");
    assert_int_equal(call_once(&request).outcome.hedges, 1);
    assert_int_equal(look().retries, 0); /* a hedge is no retry */
}

/* R17: a failure sends the next hedge at once, without backoff; the tries after it count for themselves. */
static void test_failure_sends_it_at_once(void **state) {
    (void)state;
    hedged(1, 5000);
    CALL_WORLD_OPEN(hfi_script_status(10, 503), hfi_script_status(10, 200));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(started_ms(1), 10);
    assert_int_equal(end.at_ms, 20);
    assert_int_equal(end.outcome.hedges, 1);
    assert_int_equal(end.outcome.retries, 0);
    assert_int_equal(look().window_failures, 1); /* that one did answer */
}

/* A2: not when the peer asked for a wait, whoever of the try was told so. */
static void test_asked_to_wait(void **state) {
    (void)state;
    struct hfi_script_step busy = hfi_script_status(150, 503);
    busy.facts.retry_after = "7";
    hedged(2, 100);
    world->policy.gate_scope = HF_GATE_CALL; /* so that nothing but the call itself keeps it away */
    CALL_WORLD_OPEN(busy, hfi_script_status(400, 503), hfi_script_status(10, 200));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(started_ms(1), 100);
    assert_in_range(started_ms(2), 150 + 7000, 150 + 7001); /* neither the second hedge nor the retry was early */
    assert_int_equal(end.outcome.hedges, 1);
    assert_int_equal(end.outcome.retries, 1);
    assert_int_equal(end.status, 200);
}

/* What waiting cannot mend ends the call, whatever else is on the wire. */
static void test_a_final_answer_settles_it(void **state) {
    (void)state;
    struct hfi_script_step missing = hfi_script_status(150, 404);
    missing.facts.body = "no such thing";
    missing.facts.body_length = 13;
    hedged(1, 100);
    CALL_WORLD_OPEN(missing, hfi_script_hang(true));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.at_ms, 150);
    assert_int_equal(end.status, 404);
    assert_string_equal(end.body, "no such thing");
}

/* All of a try have failed: the last one's answer decides, and the try after it has hedges of its own. */
static void test_all_fail(void **state) {
    (void)state;
    struct hfi_script_step steps[] = {hfi_script_status(300, 500), hfi_script_status(100, 502), hfi_script_status(100, 503),
                                      hfi_script_code(100, CURLE_RECV_ERROR, HF_SENT_MAYBE)};
    steps[2].facts.body = "busy";
    steps[2].facts.body_length = 4;
    hedged(1, 100);
    world->policy.retry_max = 1;
    call_world_open(steps, 4);
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 4);
    assert_int_equal(end.outcome.hedges, 2);
    assert_int_equal(end.outcome.retries, 1);
    assert_int_equal(started_ms(1), 100);
    assert_true(started_ms(2) >= 300); /* the try was over with its last attempt */
    assert_int_equal(end.outcome.kind, HF_OUTCOME_FAILURE);
    assert_string_equal(end.outcome.error_type, "curl.recv_error");
    assert_int_equal(end.status, 0); /* the answer of the last one, who had none */
    assert_string_equal(end.body, "");
    assert_int_equal(look().window_failures, 4); /* each attempt is a sample (B29) */
    assert_int_equal(look().in_flight, 0);
}

/* R18: no token: no hedge, and the call does not notice. R17: nor does a refused one hang. */
static void test_no_budget(void **state) {
    (void)state;
    hedged(1, 100);
    world->policy.retry_max = 0;
    world->policy.budget_floor = 0;
    world->policy.budget_ratio = 0;
    CALL_WORLD_OPEN(hfi_script_status(200, 200), hfi_script_status(10, 503));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.status, 200);
    assert_int_equal(end.at_ms, 200);
    assert_int_equal(end.outcome.hedges, 0);
    assert_false(end.outcome.retry_refused);
    end = call_once(&request); /* the failure would have sent it at once */
    assert_string_equal(end.outcome.error_type, "http.503");
    assert_int_equal(end.at_ms, 210);
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(look().hedges, 0);
    assert_int_equal(look().calls, 2); /* R23 */
}

/* Each hedge takes one token, which a retry cannot have any more. */
static void test_pays_from_the_budget(void **state) {
    (void)state;
    hedged(1, 100);
    world->policy.budget_floor = 1;
    world->policy.budget_ratio = 0;
    CALL_WORLD_OPEN(hfi_script_status(200, 500));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.hedges, 1);
    assert_int_equal(end.outcome.retries, 0);
    assert_true(end.outcome.retry_refused);
}

/* R18: neither a full bulkhead nor a breaker that opened meanwhile turns a slow success into a failure. */
static void test_refused_hedge(void **state) {
    (void)state;
    hedged(1, 100);
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 1;
    CALL_WORLD_OPEN(hfi_script_status(200, 200), hfi_script_status(20, 200));
    struct hf_request request = call_get();
    struct call_end waits, end = call_once(&request);
    assert_int_equal(end.status, 200);
    assert_int_equal(end.outcome.hedges, 0);
    assert_int_equal(look().calls, 1); /* R23: a hedge without a place was no call */
    assert_int_equal(look().rejections, 0);
    assert_int_equal(call_start(&end, &request), 0);
    assert_int_equal(call_start(&waits, &request), 0);
    call_run();
    assert_int_equal(waits.status, 200);
    int64_t from = call_now_ms();
    hfi_breaker_isolate(&world->d->breaker, world->s->ops->mono(world->s), 0, "test");
    assert_int_equal(call_start(&end, &request), 0);
    call_run();
    assert_string_equal(end.outcome.error_type, "breaker.isolated"); /* the first attempt is refused as ever */
    assert_int_equal(end.at_ms, from);
    assert_int_equal(look().in_flight, 0);
}

static void test_breaker_opens_before_the_hedge(void **state) {
    (void)state;
    hedged(1, 100);
    CALL_WORLD_OPEN(hfi_script_status(200, 200));
    struct hf_request request = call_get();
    struct call_end end;
    assert_int_equal(call_start(&end, &request), 0);
    hfi_virtual_advance(world->s, 50);
    hfi_breaker_isolate(&world->d->breaker, world->s->ops->mono(world->s), 0, "test");
    call_run();
    assert_int_equal(end.status, 200);
    assert_int_equal(end.outcome.attempts, 1);
}

/* A transport without room for the hedge: it was none. */
static void test_no_room_for_the_hedge(void **state) {
    (void)state;
    struct hfi_script_step refused = hfi_script_status(0, 0), lookups = hfi_script_code(1, 6, HF_SENT_NO);
    refused.refuse = HF_ENOMEM;
    lookups.facts.error_type = "local.lookups";
    lookups.facts.stage = HF_STAGE_LOCAL;
    hedged(1, 100);
    world->policy.retry_max = 0;
    CALL_WORLD_OPEN(hfi_script_status(200, 200), refused, hfi_script_status(200, 200), lookups, hfi_script_status(50, 503),
                    lookups);
    struct hf_request request = call_get();
    for (int i = 0; i < 2; i++) {
        struct call_end end = call_once(&request);
        assert_int_equal(end.status, 200);
        assert_int_equal(end.outcome.attempts, 1);
        assert_int_equal(end.outcome.hedges, 0);
    }
    struct call_end end = call_once(&request);
    assert_string_equal(end.outcome.error_type, "http.503"); /* the failure of the peer, not our shortage */
    assert_int_equal(end.status, 503);
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(look().window_calls, 3);
}

/* The total ends them all at once, and so does a cancel. */
static void test_limits_and_cancel(void **state) {
    (void)state;
    hedged(2, 100);
    CALL_WORLD_OPEN(hfi_script_hang(true));
    struct hf_request request = call_get();
    request.total_timeout_ms = 1000;
    struct call_end end = call_once(&request);
    assert_int_equal(end.at_ms, 1000);
    assert_string_equal(end.outcome.error_type, "timeout.total");
    assert_int_equal(end.outcome.attempts, 3);
    assert_int_equal(end.outcome.hedges, 2);
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(call_start(&end, &request), 0);
    hfi_virtual_advance(world->s, 150);
    assert_int_equal(hfi_scripted_open(world->script), 2);
    call_cancel(&end);
    assert_int_equal(hfi_scripted_open(world->script), 0);
    call_run();
    assert_string_equal(end.outcome.error_type, "call.cancelled");
    assert_int_equal(end.at_ms, 1150);
    assert_int_equal(end.outcome.attempts, 2);
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(look().window_calls, 0);
}

/* Each attempt has its own limit, counted from its own start. */
static void test_own_limits(void **state) {
    (void)state;
    hedged(1, 100);
    world->policy.retry_max = 0;
    CALL_WORLD_OPEN(hfi_script_hang(false), hfi_script_hang(true));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(attempt(0)->ended.us - attempt(0)->started.us, 5000000);  /* connect */
    assert_int_equal(attempt(1)->ended.us - attempt(1)->started.us, 20000000); /* attempt */
    assert_int_equal(end.at_ms, 20100);
    assert_string_equal(end.outcome.error_type, "timeout.attempt");
    assert_int_equal(look().window_failures, 2);
}

static int64_t answer_ms;
static struct hfi_script_step answer_later(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)number;
    (void)user;
    return hfi_script_status(answer_ms, 200);
}

/* The delay follows the downstream, as soon as enough is known of it, and never goes under its floor. */
static void test_live_p95(void **state) {
    (void)state;
    hedged(1, 2000);
    world->policy.hedge_p95 = true;
    world->policy.bulkhead_max = 1000;
    struct hfi_script_step steps[164];
    for (int i = 0; i < 163; i++)
        steps[i] = hfi_script_status(i < 63 ? 40 : 1, 200);
    steps[163] = hfi_script_status(3000, 200);
    call_world_open(steps, 164);
    struct hf_request request = call_get();
    for (int i = 0; i < 63; i++)
        call_once(&request);
    struct call_end end;
    assert_int_equal(call_start(&end, &request), 0); /* 63 known: the fixed delay */
    call_run();
    assert_int_equal(end.outcome.hedges, 0);
    uint64_t next = hfi_scripted_started(world->script);
    while (next < 163) {
        call_once(&request);
        next = hfi_scripted_started(world->script);
    }
    end = call_once(&request);
    assert_int_equal(end.outcome.hedges, 1);
    int64_t after_ms = (attempt(164)->started.us - attempt(163)->started.us) / 1000;
    assert_in_range(after_ms, 40, 43); /* a bucket's width above 40 ms */
}

/* One call per second: how long did the hedge of the last one wait? -1: there was none. */
static int64_t one_per_second(int64_t seconds, int64_t answers_ms, int64_t then_ms) {
    struct hf_request request = call_get();
    struct call_end end = {.count = 0};
    uint64_t number = 0;
    for (int64_t i = 0; i <= seconds; i++) {
        int64_t wait_ms = 1000 - call_now_ms() % 1000;
        hfi_virtual_advance(world->s, wait_ms);
        answer_ms = i < seconds ? answers_ms : then_ms;
        number = hfi_scripted_started(world->script);
        end = call_once(&request);
        assert_int_equal(end.status, 200);
    }
    return end.outcome.hedges > 0 ? started_ms(number + 1) - started_ms(number) : -1;
}

/* The p95 is the live one: an hour of fast answers does not hide that the last window was slow, nor the other way round. */
static void test_live_p95_forgets(void **state) {
    (void)state;
    hedged(1, 2000);
    world->policy.hedge_p95 = true;
    world->policy.breaker_window_ms = 90000;
    call_world_open_with(answer_later, NULL);
    assert_in_range(one_per_second(3600, 40, 900), 40, 43);
    assert_in_range(one_per_second(180, 500, 900), 500, 532); /* two windows later nothing else is left */
    assert_in_range(one_per_second(180, 40, 900), 40, 43);
    hfi_virtual_advance(world->s, 181000); /* what is older than two windows is not known any more */
    assert_int_equal(one_per_second(0, 0, 900), -1);
    assert_int_equal(one_per_second(62, 20, 900), -1);
    assert_in_range(one_per_second(3, 20, 900), 20, 22);
}

static void test_floor_of_the_live_delay(void **state) {
    (void)state;
    hedged(1, 2000);
    world->policy.hedge_p95 = true;
    struct hfi_script_step steps[65];
    for (int i = 0; i < 64; i++)
        steps[i] = hfi_script_status(1, 200);
    steps[64] = hfi_script_status(300, 200);
    call_world_open(steps, 65);
    struct hf_request request = call_get();
    for (int i = 0; i < 64; i++)
        call_once(&request);
    assert_int_equal(call_once(&request).outcome.hedges, 1);
    assert_int_equal(attempt(65)->started.us - attempt(64)->started.us, 10000);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
    const struct CMUnitTest tests[] = {
        T(test_second_attempt_wins),
        T(test_first_attempt_wins),
        T(test_who_is_hedged),
        T(test_failure_sends_it_at_once),
        T(test_asked_to_wait),
        T(test_a_final_answer_settles_it),
        T(test_all_fail),
        T(test_no_budget),
        T(test_pays_from_the_budget),
        T(test_refused_hedge),
        T(test_breaker_opens_before_the_hedge),
        T(test_no_room_for_the_hedge),
        T(test_limits_and_cancel),
        T(test_own_limits),
        T(test_live_p95),
        T(test_live_p95_forgets),
        T(test_floor_of_the_live_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
