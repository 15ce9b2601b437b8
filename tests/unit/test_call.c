/* SPDX-License-Identifier: MIT */
/* A call on virtual time: what is sent, what is tried again, and what is not (2.1, 2.4). */
#include "support/support.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/call_world.h"

static void test_one_attempt(void **state) {
    (void)state;
    static const struct hf_header answered[] = {{"X-Test", "yes"}, {"Date", "now"}};
    static const struct hf_header sent[] = {{"X-A", "2"}};
    static const struct hf_header always[] = {{"x-a", "1"}, {"X-B", "b"}};
    struct hfi_script_step step = hfi_script_status(30, 200);
    step.facts.headers = answered;
    step.facts.header_count = 2;
    step.facts.body = "hello";
    step.facts.body_length = 5;
    world->options.headers = always;
    world->options.header_count = 2;
    call_world_open(&step, 1);
    struct hf_request request = call_post("k 1");
    request.headers = sent;
    request.header_count = 1;
    request.query = "a=b&c";
    struct call_end end = call_once(&request);
    const struct hfi_script_record *record = hfi_scripted_record(world->script, 0);
    assert_string_equal(record->url, "http://example.test/base/x?a=b&c");
    assert_string_equal(record->method, "POST");
    assert_int_equal(record->body_length, 3);
    assert_false(record->repeatable); /* libcurl must not send again by itself (L1) */
    assert_string_equal(hfi_scripted_header(world->script, "X-A"), "2"); /* the call's own wins */
    assert_string_equal(hfi_scripted_header(world->script, "X-B"), "b");
    assert_string_equal(hfi_scripted_header(world->script, "Idempotency-Key"), "k 1");
    assert_null(hfi_scripted_header(world->script, "Holdfast-Timeout-Ms"));
    assert_int_equal(end.outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(end.outcome.retries, 0);
    assert_int_equal(end.outcome.sent, HF_SENT_YES);
    assert_int_equal(end.outcome.retry_after_ms, -1);
    assert_int_equal(end.status, 200);
    assert_string_equal(end.body, "hello");
    assert_string_equal(end.header, "yes");
    assert_int_equal(end.at_ms, 30);
}

static void test_retries(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_status(10, 503), hfi_script_code(10, CURLE_RECV_ERROR, HF_SENT_MAYBE),
                    hfi_script_status(10, 200));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(end.outcome.attempts, 3);
    assert_int_equal(end.outcome.retries, 2);
    const struct hfi_script_record *first = hfi_scripted_record(world->script, 0);
    const struct hfi_script_record *second = hfi_scripted_record(world->script, 1);
    const struct hfi_script_record *third = hfi_scripted_record(world->script, 2);
    assert_true(second->started.us - first->ended.us <= 500000);
    assert_true(third->started.us - second->ended.us <= 1000000);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.attempts, 3);
    assert_int_equal(view.retries, 2);
    assert_int_equal(view.window_calls, 3); /* one sample per attempt (B29) */
    assert_int_equal(view.window_failures, 2);
    assert_int_equal(view.connect.count, 3); /* the phases of every attempt, not of the last one */
    assert_int_equal(view.first_byte.count, 2); /* one was cut before */
}

static void test_tries_used_up(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_status(10, 500));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 4);
    assert_string_equal(end.outcome.error_type, "http.500");
    assert_int_equal(end.status, 500);
    request.no_retry = true;
    end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 1);
}

/*
 * R19: a method that is not safe, each way to fail, with and without a key. The method is that of the call: a failure
 * without an answer is retried no more than one with.
 */
static void test_unsafe_methods(void **state) {
    (void)state;
    static const char *const methods[] = {"POST", "PATCH"};
    const struct {
        struct hfi_script_step step;
        bool retried_without_key, retried_with_key;
    } rows[] = {
        {hfi_script_code(1, CURLE_COULDNT_CONNECT, HF_SENT_NO), true, true},   /* refused */
        {hfi_script_code(1, CURLE_RECV_ERROR, HF_SENT_MAYBE), false, true},    /* reset after the send */
        {hfi_script_code(1, CURLE_SEND_ERROR, HF_SENT_MAYBE), false, true},
        {hfi_script_code(1, CURLE_GOT_NOTHING, HF_SENT_YES), false, true},
        {hfi_script_hang(false), true, true},                                  /* timeout.connect */
        {hfi_script_hang(true), false, true},                                  /* timeout.attempt */
        {hfi_script_status(1, 503), false, true},
        {hfi_script_status(1, 408), false, true},
        {hfi_script_status(1, 404), false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows * 4; i++) {
        bool key = i % 2;
        call_world_open(&rows[i / 4].step, 1);
        struct hf_request request = call_post(key ? "same" : NULL);
        request.method = methods[i / 2 % 2];
        struct call_end end = call_once(&request);
        bool retried = key ? rows[i / 4].retried_with_key : rows[i / 4].retried_without_key;
        assert_int_equal(end.outcome.attempts, retried ? 4 : 1);
        assert_int_equal(hfi_scripted_started(world->script), end.outcome.attempts);
        if (key)
            assert_string_equal(hfi_scripted_header(world->script, "Idempotency-Key"), "same");
        call_world_tear_down(NULL);
        call_world_set_up(NULL);
    }
}

/* What was perhaps sent stays perhaps sent, even if the last attempt sent nothing. */
static void test_sent_of_all_attempts(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_code(1, CURLE_RECV_ERROR, HF_SENT_MAYBE),
                    hfi_script_code(1, CURLE_COULDNT_CONNECT, HF_SENT_NO));
    struct hf_request request = call_get();
    assert_int_equal(call_once(&request).outcome.sent, HF_SENT_MAYBE);
}

/* A2, A5: never early, and the longer of both waits. */
static void test_retry_after_fits(void **state) {
    (void)state;
    struct hfi_script_step busy = hfi_script_status(10, 503);
    busy.facts.retry_after = "7";
    CALL_WORLD_OPEN(busy, hfi_script_status(10, 200));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 2);
    assert_int_equal(end.at_ms, 10 + 7000 + 10);
}

/* A1: a wait that does not fit is handed on at once; and everybody waits, for at most the cap of the gate. */
static void test_retry_after_does_not_fit(void **state) {
    (void)state;
    struct hfi_script_step busy = hfi_script_status(10, 503);
    busy.facts.retry_after = "100";
    CALL_WORLD_OPEN(busy, hfi_script_status(10, 200));
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(end.at_ms, 10);
    assert_int_equal(end.outcome.retry_after_ms, 100000);
    assert_string_equal(end.outcome.error_type, "http.503");
    end = call_once(&request);
    assert_int_equal(end.outcome.kind, HF_OUTCOME_REJECTED);
    assert_string_equal(end.outcome.error_type, "downstream.gate");
    assert_int_equal(end.outcome.attempts, 0);
    assert_int_equal(end.at_ms, 10);
    hfi_virtual_advance(world->s, 60000);
    assert_int_equal(call_once(&request).status, 200);
}

/* 2.2: a 429 keeps back who made the call, if he has a limit of his own, else everybody. */
static void test_own_limit(void **state) {
    (void)state;
    struct hfi_script_step throttled = hfi_script_status(10, 429);
    throttled.facts.retry_after = "100";
    CALL_WORLD_OPEN(throttled);
    struct hf_request request = call_get(), own = call_get();
    own.own_limit = true;
    struct call_end end = call_once(&own);
    assert_string_equal(end.outcome.error_type, "http.429");
    assert_int_equal(end.outcome.retry_after_ms, 100000);
    assert_string_equal(call_once(&request).outcome.error_type, "http.429"); /* nobody was kept back by it */
    assert_string_equal(call_once(&request).outcome.error_type, "downstream.gate");
}

/* R9, R13-R15: charged when scheduled; a refusal leaves the failure as it is and says when to come back. */
static void test_budget(void **state) {
    (void)state;
    world->policy.budget_floor = 2;
    world->policy.budget_ratio = 0;
    world->policy.breaker_min_calls = 1000;
    CALL_WORLD_OPEN(hfi_script_status(10, 500));
    struct hf_request request = call_get();
    struct call_end ends[20];
    for (int i = 0; i < 20; i++)
        assert_int_equal(call_start(&ends[i], &request), 0);
    call_run();
    unsigned attempts = 0, refused = 0;
    for (int i = 0; i < 20; i++) {
        attempts += ends[i].outcome.attempts;
        if (ends[i].outcome.retry_refused) {
            refused++;
            assert_string_equal(ends[i].outcome.error_type, "http.500");
            assert_in_range(ends[i].outcome.retry_after_ms, 1, 10000);
            assert_non_null(strstr(ends[i].outcome.message, "our own retry budget for d"));
        }
    }
    assert_int_equal(attempts, 22);
    assert_int_equal(refused, 20);
    assert_int_equal(hfi_scripted_started(world->script), 22);
}

/* B29, S0.30: it opens inside a call; what the call saw stays; the next is refused at once without an attempt. */
static void test_breaker_opens_inside(void **state) {
    (void)state;
    world->policy.breaker_consecutive = 5;
    CALL_WORLD_OPEN(hfi_script_status(10, 500));
    struct hf_request request = call_get();
    assert_int_equal(call_once(&request).outcome.attempts, 4);
    struct call_end second = call_once(&request);
    assert_int_equal(second.outcome.attempts, 1);
    assert_int_equal(second.outcome.kind, HF_OUTCOME_FAILURE);
    assert_string_equal(second.outcome.error_type, "http.500");
    assert_int_equal(second.outcome.retry, HF_RETRY_LATER);
    assert_true(second.outcome.retry_after_ms > 0); /* when the break ends */
    int64_t from = call_now_ms();
    struct call_end third = call_once(&request);
    assert_int_equal(third.outcome.kind, HF_OUTCOME_REJECTED);
    assert_string_equal(third.outcome.error_type, "breaker.open");
    assert_int_equal(third.outcome.attempts, 0);
    assert_int_equal(third.outcome.sent, HF_SENT_NO);
    assert_int_equal(third.at_ms, from);
    assert_int_equal(hfi_scripted_started(world->script), 5);
}

/* The transport could not even start, or refused for a shortage of ours: retried, and no sample (B19). */
static void test_local_shortage(void **state) {
    (void)state;
    struct hfi_script_step refused = hfi_script_status(0, 0), lookups = hfi_script_code(1, 6, HF_SENT_NO);
    refused.refuse = HF_ENOMEM;
    lookups.facts.error_type = "local.lookups";
    lookups.facts.stage = HF_STAGE_LOCAL;
    CALL_WORLD_OPEN(refused, hfi_script_status(10, 200), lookups);
    struct hf_request request = call_get();
    struct call_end end = call_once(&request);
    assert_int_equal(end.status, 200);
    assert_int_equal(end.outcome.attempts, 1);
    end = call_once(&request);
    assert_int_equal(end.outcome.kind, HF_OUTCOME_REJECTED);
    assert_string_equal(end.outcome.error_type, "local.lookups");
    assert_int_equal(end.outcome.attempts, 0);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.attempts, 1);
    assert_int_equal(view.window_calls, 1);
    assert_int_equal(view.in_flight, 0);
}

static int one_call(void *user) {
    (void)user;
    struct hfi_script_step step = hfi_script_status(10, 500);
    static const struct hf_header headers[] = {{"X-Test", "yes"}};
    struct hfi_scripted *script = NULL;
    struct hfi_caller *caller = NULL;
    struct call_end end = {0};
    struct hf_request request = call_post("key");
    step.facts.body = "hello";
    step.facts.body_length = 5;
    step.facts.headers = headers;
    step.facts.header_count = 1;
    int rc = hfi_scripted_new(world->s, &step, 1, &script);
    struct hfi_caller_options options = {world->s, script ? hfi_scripted_transport(script) : NULL, 1};
    if (rc == 0)
        rc = hfi_caller_new(&options, &world->options, 1, &caller, NULL);
    if (rc == 0) {
        world->caller = caller;
        rc = call_start(&end, &request);
        world->caller = NULL;
    }
    if (rc == 0) {
        call_run();
        if (end.count != 1 || end.outcome.kind == HF_OUTCOME_SUCCESS)
            rc = HF_ESTATE; /* never lost, never a success that was none */
        else if (strcmp(end.outcome.error_type, "local.memory") == 0)
            rc = HF_ENOMEM;
    }
    hfi_caller_free(caller);
    if (script)
        hfi_scripted_transport(script)->ops->close(hfi_scripted_transport(script));
    return rc;
}

static void test_no_memory(void **state) {
    (void)state;
    assert_true(hf_test_alloc_sweep(one_call, NULL) > 5);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
    const struct CMUnitTest tests[] = {
        T(test_one_attempt),
        T(test_retries),
        T(test_tries_used_up),
        T(test_unsafe_methods),
        T(test_sent_of_all_attempts),
        T(test_retry_after_fits),
        T(test_retry_after_does_not_fit),
        T(test_own_limit),
        T(test_budget),
        T(test_breaker_opens_inside),
        T(test_local_shortage),
        T(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
