/* SPDX-License-Identifier: MIT */
/* How large an answer may be: body and headers at their limits to the byte, and bodies that grow when decoded (2.8). */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "holdfast/guard.h"
#include "holdfast/http.h"
#include "support/peer.h"

#define STATUS "HTTP/1.1 200 OK\r\n"
#define GZIP STATUS "Content-Encoding: gzip\r\n"
/* 100 MiB of zeros, packed twice: 331 bytes. */
static const char bomb[] =
    "H4sIAAAAAAACA+3cK04EURCG0Z5HSAfBQ4xCQIJhCRiSwWAwCLAQFsAa6ISgMBgSdoFiATgkbsDNAggCMQpopnsZ9z9HXV3uVirf9l1ddYajz5fBYPlo"
    "7v+evurVCgAAAChc83Ez6pYB1U47Ozo5AwAAAEp3ub427pcCPxdbh8YBAAAAxbs92N/oLwS+r6/GxgEAAADFmyzm034X8No+b56aBwAAABTvXTAAAAAAoggG"
    "AAAAQBbBAAAAAMgiGAAAAABhBAMAAAAgi2AAAAAAZBEMAAAAgCyCAQAAABBGMAAAAACyCAYAAABAFsEAAAAAyCIYAAAAAGEEAwAAACCLYAAAAABkEQwAAACA"
    "LIIBAAAAEEYwAAAAALIIBgAAAEAWwQAAAADI8rCYN91hwPStnf3WkwoAAKBA58PH3b3j5ddn5R+GjKQJNY4BAA==";
/* A thousand times `a`. */
static const char packed[] = "H4sIAAAAAAACA0tMHAWjYBQMdwAAA9o4mugDAAA=";
static const char deflated[] = "eNpLTBwFo2AUDHcAAPnYevg=";

static struct peer *peer;
static struct hf_client *client;
static struct hf_downstream_options options;
static struct hf_policy_options policy;
static char url[64];

static int set_up(void **state) {
    (void)state;
    hf_policy_options_init(&policy);
    policy.retry_max = 0;
    options = hf_downstream_at("d", url);
    options.policy = &policy;
    return 0;
}

static void end_peer(void) {
    hf_client_close(client);
    client = NULL;
    peer_free(peer);
    peer = NULL;
}

static int tear_down(void **state) {
    (void)state;
    end_peer();
    return 0;
}

/* Answers every call with these bytes. */
static void serve(const void *answer, size_t length) {
    struct peer_step step = {.answer = answer, .length = length};
    end_peer();
    peer = peer_new(&step, 1);
    assert_non_null(peer);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
}

/* `head` and a body from base64 behind its Content-Length. */
static void serve_packed(const char *head, const char *base64) {
    static unsigned char answer[2048]; /* the peer sends from it */
    end_peer(); /* the last one may send from it still */
    size_t at = (size_t)snprintf((char *)answer, sizeof answer, "%sContent-Length: %ld\r\n\r\n", head,
                                 hfi_base64_decode(base64, NULL));
    at += (size_t)hfi_base64_decode(base64, answer + at);
    serve(answer, at);
}

static struct hf_response *call(void) {
    struct hf_request request = hf_request_to("d", "GET", "/");
    struct hf_response *response = NULL;
    assert_int_equal(hf_call(client, &request, &response, NULL), 0);
    return response;
}

static void expect_body(const char *byte, size_t wanted) {
    struct hf_response *response = call();
    size_t length = 0;
    const char *body = hf_response_body(response, &length);
    assert_string_equal(hf_outcome_get_error_type(hf_response_outcome(response)), "");
    assert_int_equal(hf_response_status(response), 200);
    assert_int_equal(length, wanted);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(body[i], *byte);
    hf_response_free(response);
}

/* Permanent: the next answer would be as large. No word about the breaker. */
static void expect_too_large(const char *error_type) {
    struct hf_response *response = call();
    const struct hf_outcome *outcome = hf_response_outcome(response);
    size_t length = 0;
    hf_response_body(response, &length);
    assert_string_equal(hf_outcome_get_error_type(outcome), error_type);
    assert_int_equal(hf_outcome_get_class(outcome), HF_CLASS_PERMANENT);
    assert_int_equal(hf_outcome_get_verdict(outcome), HF_VERDICT_NEUTRAL);
    assert_true(length <= (size_t)options.response_limit);
    hf_response_free(response);
}

static void test_body(void **state) {
    (void)state;
    static const struct {
        int64_t limit;
        size_t body;
    } rows[] = {{1000, 999}, {1000, 1000}, {1000, 1001}, {1, 1}, {1, 2}, {0, 0}, {0, 1}, {1048576, 1048576}, {1048576, 1048577}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *answer = malloc(rows[i].body + 100);
        size_t head = (size_t)sprintf(answer, STATUS "Content-Length: %zu\r\n\r\n", rows[i].body);
        memset(answer + head, 'b', rows[i].body);
        options.response_limit = rows[i].limit;
        serve(answer, head + rows[i].body);
        if (rows[i].body <= (size_t)rows[i].limit)
            expect_body("b", rows[i].body);
        else
            expect_too_large("http.body_too_large");
        end_peer(); /* it sends from the answer, perhaps still */
        free(answer);
    }
}

/* Every line counts, the status line and the empty one too: of other answers before it and of trailers after it as well. */
static void test_headers(void **state) {
    (void)state;
    static const char *const answers[] = {
        STATUS "Content-Length: 0\r\n\r\n",
        STATUS "X-A: 1\r\nX-B: \r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" STATUS "Content-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" STATUS "Content-Length: 0\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        options.header_limit = (int64_t)strlen(answers[i]);
        serve(answers[i], 0);
        expect_body("", 0);
        options.header_limit--;
        serve(answers[i], 0);
        expect_too_large("http.headers_too_large");
    }
    static const char head[] = STATUS "Transfer-Encoding: chunked\r\n\r\n", trailer[] = "X-Late: 123\r\n";
    static char answer[256];
    snprintf(answer, sizeof answer, "%s1\r\nb\r\n0\r\n%s\r\n", head, trailer);
    options.header_limit = (int64_t)(sizeof head - 1 + sizeof trailer - 1 + 2);
    serve(answer, 0);
    expect_body("b", 1);
    options.header_limit = (int64_t)(sizeof head - 1 + 5);
    serve(answer, 0);
    expect_too_large("http.headers_too_large");
}

/* Very many small ones: all are there, up to the largest limit, and no further. */
static void test_many_headers(void **state) {
    (void)state;
    char *answer = malloc(300000), *at = stpcpy(answer, STATUS);
    for (int i = 0; i < 25000; i++)
        at += sprintf(at, "x%d:%d\r\n", i % 1000, i % 10);
    strcpy(at, "Last: 1\r\nContent-Length: 0\r\n\r\n");
    options.header_limit = 262144;
    serve(answer, 0);
    struct hf_response *response = call();
    assert_string_equal(hf_outcome_get_error_type(hf_response_outcome(response)), "");
    assert_string_equal(hf_response_header(response, "last"), "1");
    hf_response_free(response);
    options.header_limit = 65536;
    serve(answer, 0);
    expect_too_large("http.headers_too_large");
    end_peer();
    free(answer);
}

/* Not asked for: bytes are handed on as they came. */
static void test_packed_as_it_is(void **state) {
    (void)state;
    char request[4096];
    serve_packed(GZIP, packed);
    struct hf_response *response = call();
    size_t length = 0;
    assert_memory_equal(hf_response_body(response, &length), "\x1f\x8b", 2);
    assert_int_equal(length, hfi_base64_decode(packed, NULL));
    assert_string_equal(hf_response_header(response, "content-encoding"), "gzip");
    hf_response_free(response);
    peer_last(peer, request, sizeof request);
    assert_null(strcasestr(request, "accept-encoding"));
}

/* The limit is of what comes out. */
static void test_unpacked(void **state) {
    (void)state;
    char request[4096];
    options.accept_compressed = true;
    options.response_limit = 1000;
    serve_packed(GZIP, packed);
    expect_body("a", 1000);
    peer_last(peer, request, sizeof request);
    assert_non_null(strcasestr(request, "accept-encoding: gzip, deflate\r\n"));
    serve_packed(STATUS "Content-Encoding: deflate\r\n", deflated);
    expect_body("a", 1000);
    serve_packed(STATUS, packed); /* it need not */
    struct hf_response *response = call();
    assert_int_equal(hf_response_status(response), 200);
    hf_response_free(response);
    options.response_limit = 999;
    serve_packed(GZIP, packed);
    expect_too_large("http.body_too_large");
}

static void test_bomb(void **state) {
    (void)state;
    options.accept_compressed = true;
    serve_packed(STATUS "Content-Encoding: gzip, gzip\r\n", bomb);
    expect_too_large("http.body_too_large");
    serve_packed(STATUS "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", bomb);
    expect_too_large("http.body_too_large");
}

/* A stream that is no gzip, or stops within, is a failure of the downstream and not an answer. */
static void test_broken_packing(void **state) {
    (void)state;
    options.accept_compressed = true;
    serve(GZIP "Content-Length: 5\r\n\r\nhello", 0);
    struct hf_response *response = call();
    assert_string_equal(hf_outcome_get_error_type(hf_response_outcome(response)), "curl.bad_content_encoding");
    assert_int_equal(hf_outcome_get_class(hf_response_outcome(response)), HF_CLASS_TRANSIENT);
    hf_response_free(response);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_body),     T(test_headers), T(test_many_headers),  T(test_packed_as_it_is),
                                       T(test_unpacked), T(test_bomb),    T(test_broken_packing)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
