/* SPDX-License-Identifier: MIT */
/*
 * Requests seen == attempts reported, call by call, over random misbehaviour at concurrency 8 (L1, R19). Every step
 * reads something of the request, and goes on reading where it ends in good order: nothing is on the way uncounted.
 */
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "holdfast/http.h"
#include "support/peer.h"
#include "support/seed.h"

#define CALLS 1200
#define THREADS 8
#define STEPS 500
#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static const struct peer_step catalogue[] = {
    {.answer = PEER_OK},
    {.answer = PEER_OK},
    {.answer = PEER_OK},
    {.answer = PEER_OK, .delay_ms = 2},
    {.answer = PEER_OK, .then = PEER_FIN}, /* closes behind its answer without saying so */
    {.answer = OK_HEAD "Connection: close\r\nContent-Length: 2\r\n\r\nok", .then = PEER_FIN},
    {.answer = PEER_OK "surplus"},
    {.answer = PEER_OK, .at = PEER_HEADERS, .then = PEER_FIN},
    {.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"},
    {.answer = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"},
    {.answer = "HTTP/1.1 408 Late\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", .then = PEER_FIN},
    {.answer = "HTTP/1.1 421 Elsewhere\r\nContent-Length: 0\r\n\r\n"},
    {.answer = "HTTP/1.1 100 Continue\r\n\r\n", .then = PEER_FIN},
    {.answer = "HTTP/1.1 103 Early Hints\r\n\r\n" PEER_OK},
    {.answer = OK_HEAD "Content-Le", .then = PEER_FIN},
    {.answer = OK_HEAD "Content-Length: 9\r\n\r\nabc", .then = PEER_FIN},
    {.answer = OK_HEAD "Content-Length: 9\r\n\r\nabc", .then = PEER_RESET},
    {.answer = OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n", .then = PEER_FIN},
    {.answer = "garbage", .then = PEER_FIN},
    {.then = PEER_FIN},
    {.then = PEER_RESET},
    {.then = PEER_RESET, .at = PEER_HEADERS},
    {.then = PEER_RESET, .at = PEER_HALF},
    {.then = PEER_FIN, .at = PEER_HALF},
    {.then = PEER_HANG}, /* until the attempt's limit */
};

static struct hf_client *client;
static atomic_uint next_call, repeated;
static unsigned attempts[CALLS];
static uint64_t seed;

static void call_once(unsigned number) {
    struct hfi_random random;
    char text[16];
    struct hf_header header = {"X-Call", text};
    struct hf_response *response = NULL;
    hfi_random_seed(&random, seed + number);
    unsigned kind = (unsigned)(hfi_random_next(&random) % 3);
    struct hf_request request = hf_request_to("peer", kind ? "POST" : "GET", "/");
    static const char body[3000];
    snprintf(text, sizeof text, "%u", number);
    request.headers = &header;
    request.header_count = 1;
    request.body = body;
    request.body_length = kind ? hfi_random_next(&random) % sizeof body : 0;
    request.idempotency_key = kind == 2 ? text : NULL;
    request.no_retry = hfi_random_next(&random) % 4 == 0;
    if (hf_call(client, &request, &response, NULL))
        return; /* attempts stay 0, which no peer saw: told below */
    const struct hf_outcome *outcome = hf_response_outcome(response);
    attempts[number] = hf_outcome_get_attempts(outcome);
    if (attempts[number] > 1 && (request.no_retry || kind == 1))
        atomic_fetch_add(&repeated, 1);
    hf_response_free(response);
}

static void *call_many(void *user) {
    unsigned number;
    (void)user;
    while ((number = atomic_fetch_add(&next_call, 1)) < CALLS)
        call_once(number);
    return NULL;
}

static struct peer *open_all(void) {
    static struct peer_step steps[STEPS];
    struct hfi_random random;
    struct hf_policy_options policy;
    char url[64];
    struct hf_downstream_options options = hf_downstream_at("peer", url);
    hfi_random_seed(&random, seed);
    for (size_t i = 0; i < STEPS; i++)
        steps[i] = catalogue[hfi_random_next(&random) % (sizeof catalogue / sizeof *catalogue)];
    steps[STEPS - 1] = catalogue[0]; /* for all that come later */
    struct peer *peer = peer_new(steps, STEPS);
    assert_non_null(peer);
    hf_policy_options_init(&policy);
    policy.connect_timeout_ms = policy.attempt_timeout_ms = 1000;
    policy.retry_max = 2;
    policy.retry_base_ms = policy.retry_cap_ms = 1;
    policy.budget_floor = CALLS * 2;
    policy.breaker_min_calls = CALLS * 4; /* it stays closed: this is about the wire */
    options.policy = &policy;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
    return peer;
}

static void test_mixed(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    unsigned total = 0;
    seed = test_seed("mixed");
    struct peer *peer = open_all();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    hf_client_close(client);
    peer_settle(peer);
    assert_int_equal(atomic_load(&repeated), 0); /* L1: without a key, or told not to: once */
    for (unsigned i = 0; i < CALLS; i++) {
        if (attempts[i] == 0 || peer_seen_of(peer, i) != attempts[i])
            fail_msg("call %u: %u attempts reported, %u requests seen", i, attempts[i], peer_seen_of(peer, i));
        total += attempts[i];
    }
    assert_int_equal(peer_seen(peer), total);
    assert_int_equal(peer_open(peer), 0);
    peer_free(peer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mixed)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
