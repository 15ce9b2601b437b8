/* SPDX-License-Identifier: MIT */
/*
 * hf_call against a peer that stops, or goes on for ever, at every stage: it ends by the limit that is meant for it and
 * says how far it came (L5, L6). All at once, so that the limits pass once and can be generous.
 */
#include "support/support.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/wire.h"

#define LIMIT_MS 2500
#define DOWN(type) type, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_RETRY_NOW
#define CUT(type) type, HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_RETRY_LATER
#define AT(at, proof) .stage = HF_STAGE_##at, .sent = HF_SENT_##proof
#define LONG_BODY 8000000 /* more than the kernel takes off us */
#define TEN(text) text text text text text text text text text text
#define THOUSAND TEN(TEN(TEN("x")))
#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define DRIPPED .drip_ms = 5, .then = PEER_FIN /* a thousand bytes take two limits */

static const struct wire_case stalls[] = {
    {"a connect never answered", {.then = PEER_HANG}, DOWN("timeout.connect"), AT(CONNECT, NO), .peer = WIRE_FULL},
    {"a handshake never answered",
     {.at = PEER_ARRIVED, .then = PEER_HANG},
     DOWN("timeout.connect"),
     AT(TLS, NO),
     .unread = true,
     .tls = true},
    {"accepted and silent",
     {.at = PEER_ACCEPT, .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(WAIT, MAYBE),
     .unread = true},
    {"read and silent", {.then = PEER_HANG}, DOWN("timeout.attempt"), AT(WAIT, MAYBE)},
    {"an upload that nobody reads",
     {.at = PEER_ARRIVED, .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(SEND, MAYBE),
     .unread = true,
     .kinds = WIRE_BODY,
     .body = LONG_BODY},
    {"an upload that stops",
     {.at = PEER_HEADERS, .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(SEND, MAYBE),
     .kinds = WIRE_BODY,
     .body = LONG_BODY},
    {"a lone 100",
     {.answer = "HTTP/1.1 100 Continue\r\n\r\n", .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(RECEIVE, MAYBE)},
    {"a lone 102",
     {.answer = "HTTP/1.1 102 Processing\r\n\r\n", .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(RECEIVE, MAYBE)},
    {"a lone 103",
     {.answer = "HTTP/1.1 103 Early Hints\r\n\r\n", .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(RECEIVE, MAYBE)},
    {"101 and silent",
     {.answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(RECEIVE, MAYBE)},
    {"silent in the headers",
     {.answer = OK_HEAD "Content-Le", .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(RECEIVE, MAYBE)},
    {"silent in the body",
     {.answer = OK_HEAD "Content-Length: 9\r\n\r\nabc", .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(RECEIVE, YES)},
    {"silent in a chunk",
     {.answer = OK_HEAD "Transfer-Encoding: chunked\r\n\r\n9\r\nabc", .then = PEER_HANG},
     DOWN("timeout.attempt"),
     AT(RECEIVE, YES)},
    {"headers byte by byte",
     {.answer = OK_HEAD "X-Long: " THOUSAND "\r\n\r\n", DRIPPED},
     DOWN("timeout.attempt"),
     AT(RECEIVE, MAYBE)},
    {"a body byte by byte",
     {.answer = OK_HEAD "Content-Length: 1000\r\n\r\n" THOUSAND, DRIPPED},
     DOWN("timeout.attempt"),
     AT(RECEIVE, YES)},
    {"a body without end, byte by byte",
     {.answer = OK_HEAD "\r\n" THOUSAND, DRIPPED},
     DOWN("timeout.attempt"),
     AT(RECEIVE, YES)},
    {"silent on a pooled connection", {.then = PEER_HANG}, DOWN("timeout.attempt"), AT(WAIT, MAYBE), .warm = true},
    /* The total is the outermost: it cuts the attempt short, which says nothing of the peer. */
    {"a connect, cut by the total",
     {.then = PEER_HANG},
     CUT("timeout.total"),
     AT(CONNECT, NO),
     .peer = WIRE_FULL,
     .total_ms = 500},
    {"a handshake, cut by the total",
     {.at = PEER_ARRIVED, .then = PEER_HANG},
     CUT("timeout.total"),
     AT(TLS, NO),
     .unread = true,
     .tls = true,
     .total_ms = 500},
    {"silent, cut by the total", {.then = PEER_HANG}, CUT("timeout.total"), AT(WAIT, MAYBE), .total_ms = 500},
    {"an upload, cut by the total",
     {.at = PEER_HEADERS, .then = PEER_HANG},
     CUT("timeout.total"),
     AT(SEND, MAYBE),
     .kinds = WIRE_BODY,
     .body = LONG_BODY,
     .total_ms = 500},
    {"a body, cut by the total",
     {.answer = OK_HEAD "Content-Length: 9\r\n\r\nabc", .then = PEER_HANG},
     CUT("timeout.total"),
     AT(RECEIVE, YES),
     .total_ms = 500},
};

static void test_stalls(void **state) { /* L5 L6 */
    (void)state;
    assert_int_equal(wire_run(stalls, sizeof stalls / sizeof *stalls, true, LIMIT_MS), 0);
}

/* L7: a total of 10^9 s, and a policy's of ten years, the longest it takes, are far away and not a moment ago. */
static void test_far_limits(void **state) {
    (void)state;
    static const struct wire_case slow[] = {{"an answer that takes a while",
                                             {.answer = PEER_OK, .delay_ms = 20, .then = PEER_KEEP},
                                             "",
                                             HF_CLASS_OK,
                                             HF_VERDICT_SUCCESS,
                                             HF_RETRY_NONE,
                                             AT(RECEIVE, YES),
                                             .total_ms = 1000000000000}};
    assert_int_equal(wire_run(slow, 1, true, 31500000000), 0);
}

static sem_t ended;
static atomic_uint good;

static void on_done(struct hf_response *response, void *user) {
    (void)user;
    if (hf_response_status(response) == 200 && hf_outcome_get_attempts(hf_response_outcome(response)) == 1)
        atomic_fetch_add(&good, 1);
    hf_response_free(response);
    sem_post(&ended);
}

/* L3: calls queue here and never inside libcurl, so that the attempt's limit does not run out before the attempt. */
static void test_queue(void **state) {
    (void)state;
    enum { CALLS = 3, ANSWER_MS = 800, ATTEMPT_MS = 1500 };
    static const struct peer_step slow = {.answer = PEER_OK, .delay_ms = ANSWER_MS};
    char url[64];
    struct peer *peer = peer_new(&slow, 1);
    struct hf_client *client = NULL;
    struct hf_policy_options policy;
    struct hf_downstream_options options = hf_downstream_at("peer", url);
    struct hf_request request = hf_request_to("peer", "POST", "/");
    assert_non_null(peer);
    assert_int_equal(sem_init(&ended, 0, 0), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    hf_policy_options_init(&policy);
    policy.connect_timeout_ms = policy.attempt_timeout_ms = ATTEMPT_MS;
    policy.bulkhead_max = 1;
    policy.bulkhead_queue = CALLS;
    options.policy = &policy;
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(hf_call_start(client, &request, NULL, on_done, NULL, NULL), 0);
    for (int i = 0; i < CALLS; i++)
        while (sem_wait(&ended))
            continue; /* a signal */
    hf_client_close(client);
    assert_int_equal(atomic_load(&good), CALLS);
    sem_destroy(&ended);
    assert_int_equal(peer_seen(peer), CALLS);
    assert_int_equal(peer_connections(peer), 1);
    peer_free(peer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stalls), cmocka_unit_test(test_far_limits),
                                       cmocka_unit_test(test_queue)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
