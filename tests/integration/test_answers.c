/* SPDX-License-Identifier: MIT */
/*
 * What a whole answer means for the call, over a socket: Retry-After in all its forms (A1, A2, A5 to A8) and the body
 * of the second attempt (R20).
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "holdfast/http.h"
#include "support/peer.h"
#include "support/seed.h"

#define AGES INT64_C(1000000000000) /* or more: nobody but a job cuts it */
#define NONE (-1)

static struct peer *peer;
static struct hf_client *client;
static struct hf_policy_options policy;

static int set_up(void **state) {
    (void)state;
    hf_policy_options_init(&policy);
    policy.retry_base_ms = policy.retry_cap_ms = 1;
    policy.gate_scope = HF_GATE_CALL; /* one call's Retry-After must not stop the next one of the test */
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_client_close(client);
    peer_free(peer);
    client = NULL;
    peer = NULL;
    return 0;
}

static void serve(const struct peer_step *steps, size_t count) {
    char url[64];
    struct hf_downstream_options options = hf_downstream_at("peer", url);
    options.policy = &policy;
    peer = peer_new(steps, count);
    assert_non_null(peer);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
}

static struct hf_response *get(void) {
    struct hf_request request = hf_request_to("peer", "GET", "/");
    struct hf_response *response = NULL;
    assert_int_equal(hf_call(client, &request, &response, NULL), 0);
    return response;
}

/* The wait that one GET reports, -1 none. */
static int64_t wait_of_get(void) {
    struct hf_response *response = get();
    int64_t wait_ms = hf_outcome_get_retry_after_ms(hf_response_outcome(response));
    assert_int_equal(hf_outcome_get_attempts(hf_response_outcome(response)), 1);
    hf_response_free(response);
    return wait_ms;
}

/* A4, A5, A7: read as RFC 9110 has it or not at all; never by libcurl, never 0 for what cannot be read. */
static void test_forms(void **state) {
    (void)state;
    static const struct {
        const char *value;
        int64_t wait_ms;
    } forms[] = {
        {"7", 7000},
        {"  7\t ", 7000},
        {"0", 0},
        {"-5", NONE},
        {"", NONE},
        {"120abc", NONE},
        {"1.5", NONE},
        {"soon", NONE},
        {"99999999999999999999", AGES},
        {"9223372036854775807", AGES},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 0},
        {"Sun Nov  6 08:49:37 1994", 0},
        {"Thu, 31 Dec 2099 23:59:59 GMT", AGES},
        {"Thu Dec 31 23:59:59 2099", AGES},
        {"31 Dec 2099 23:59:59 GMT", NONE},
        {"Thu, 32 Dec 2099 23:59:59 GMT", NONE},
        {"7\r\nRetry-After: 9", 7000}, /* the first of two */
    };
    enum { FORMS = sizeof forms / sizeof *forms };
    static const int statuses[] = {429, 503, 500, 404};
    static char answers[FORMS * 4][256];
    static struct peer_step steps[FORMS * 4];
    for (size_t i = 0; i < FORMS * 4; i++) {
        snprintf(answers[i], sizeof answers[i], "HTTP/1.1 %d No\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
                 statuses[i / FORMS], forms[i % FORMS].value);
        steps[i].answer = answers[i];
    }
    policy.retry_max = 0;
    policy.breaker_min_calls = 1000;
    serve(steps, FORMS * 4);
    for (size_t i = 0; i < FORMS * 4; i++) {
        int64_t wait_ms = wait_of_get(), expected_ms = i < FORMS * 2 ? forms[i % FORMS].wait_ms : NONE;
        if (expected_ms == AGES ? wait_ms < AGES : wait_ms != expected_ms)
            fail_msg("%d with Retry-After '%s': %lld ms instead of %lld", statuses[i / FORMS], forms[i % FORMS].value,
                     (long long)wait_ms, (long long)expected_ms);
    }
    assert_int_equal(peer_seen(peer), FORMS * 4);
    assert_int_equal(peer_connections(peer), 1); /* all of it on one handle: nothing of one answer is left (A6) */
}

/* A6: a value does not live on with the handle, and no status hides it. */
static void test_not_stale(void **state) {
    (void)state;
    policy.retry_max = 0;
    serve((struct peer_step[]){{.answer = "HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"},
                               {.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"},
                               {.answer = "HTTP/1.1 503 No\r\nContent-Le", .then = PEER_CLOSE}},
          3);
    assert_int_equal(wait_of_get(), 7000);
    assert_int_equal(wait_of_get(), NONE);
    assert_int_equal(wait_of_get(), NONE);
}

/* A date in the near future is a wait until then, at most. */
static void test_near_date(void **state) {
    (void)state;
    char answer[128], date[64];
    time_t then = time(NULL) + 100;
    struct tm parts;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&then, &parts));
    snprintf(answer, sizeof answer, "HTTP/1.1 429 No\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", date);
    policy.retry_max = 0;
    serve((struct peer_step[]){{.answer = answer}}, 1);
    int64_t wait_ms = wait_of_get();
    assert_true(wait_ms > 0 && wait_ms <= 100000);
}

/* A2, A8: never asked again early, neither by the peer's wait nor by our own backoff, which a short one does not beat.
 */
static void test_never_early(void **state) {
    (void)state;
    for (int own = 0; own < 2; own++) {
        policy.retry_base_ms = policy.retry_cap_ms = own ? 300 : 1;
        policy.retry_jitter = own ? HF_JITTER_NONE : HF_JITTER_FULL;
        serve((struct peer_step[]){{.answer = own ? "HTTP/1.1 429 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
                                                  : "HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"},
                                   {.answer = PEER_OK}},
              2);
        int64_t from_us = hfi_mono_now().us;
        struct hf_response *response = get();
        assert_true(hfi_mono_now().us - from_us >= (own ? 300000 : 1000000));
        assert_int_equal(hf_response_status(response), 200);
        assert_int_equal(hf_outcome_get_attempts(hf_response_outcome(response)), 2);
        hf_response_free(response);
        assert_int_equal(peer_seen(peer), 2);
        tear_down(NULL);
    }
}

/* A1, A3: a wait that does not fit the total is handed to the caller, not waited for. */
static void test_too_long(void **state) {
    (void)state;
    serve((struct peer_step[]){{.answer = "HTTP/1.1 503 No\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n"}}, 1);
    assert_int_equal(wait_of_get(), 100000);
    assert_int_equal(peer_seen(peer), 1);
}

/* R20: every attempt carries the same body, whatever happened to the one before. */
static void test_same_body(void **state) {
    (void)state;
    enum { LENGTH = 50000 };
    static char body[LENGTH], request_text[65536];
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("same body"));
    for (size_t i = 0; i < LENGTH; i++)
        body[i] = (char)('!' + hfi_random_next(&random) % 90);
    static const struct peer_step firsts[] = {
        {.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"},
        {.answer = "HTTP/1.1 421 No\r\nContent-Length: 0\r\n\r\n"},
        {.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", .at = PEER_HEADERS, .then = PEER_FIN},
        {.then = PEER_RESET, .at = PEER_HALF},
        {.then = PEER_FIN, .at = PEER_HALF},
        {.then = PEER_CLOSE},
    };
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        struct hf_request request = hf_request_to("peer", i % 2 ? "POST" : "PUT", "/");
        struct hf_response *response = NULL;
        request.idempotency_key = i % 2 ? "key" : NULL;
        request.body = body;
        request.body_length = LENGTH;
        serve((struct peer_step[]){firsts[i], {.answer = PEER_OK}}, 2);
        assert_int_equal(hf_call(client, &request, &response, NULL), 0);
        assert_int_equal(hf_response_status(response), 200);
        assert_int_equal(hf_outcome_get_attempts(hf_response_outcome(response)), 2);
        hf_response_free(response);
        peer_last(peer, request_text, sizeof request_text);
        const char *sent = strstr(request_text, "\r\n\r\n");
        assert_non_null(sent);
        assert_int_equal(strlen(sent + 4), LENGTH);
        assert_memory_equal(sent + 4, body, LENGTH);
        assert_int_equal(peer_seen(peer), 2);
        tear_down(NULL);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_forms),       T(test_not_stale), T(test_near_date),
                                       T(test_never_early), T(test_too_long),  T(test_same_body)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
