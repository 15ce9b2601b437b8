/* SPDX-License-Identifier: MIT */
/*
 * Compressed answers: a stream that is cut or damaged is never an answer, whatever its Content-Length says; what is
 * whole arrives whole, however it is split, wrapped and joined (2.8).
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "holdfast/http.h"
#include "support/peer.h"

#define OK "HTTP/1.1 200 OK\r\n"
enum { GZIP = 31, ZLIB = 15, BARE = -15 }; /* as zlib numbers them */

struct bytes {
    size_t length;
    unsigned char data[65536];
};

static char text[600];
static struct peer *peer;
static struct hf_client *client;
static struct hf_downstream_options options;
static struct hf_policy_options policy;
static char url[64];

static int set_up(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * i / 7 % 11);
    hf_policy_options_init(&policy);
    policy.retry_max = 0;
    policy.breaker_min_calls = 100000;
    options = hf_downstream_at("d", url);
    options.policy = &policy;
    options.accept_compressed = true;
    return 0;
}

static void end_peer(void) {
    hf_client_close(client);
    peer_free(peer);
    client = NULL;
    peer = NULL;
}

static int tear_down(void **state) {
    (void)state;
    end_peer();
    return 0;
}

static struct bytes pack(int form, const void *data, size_t length) {
    struct bytes out = {0};
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, form, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (uInt)length;
    stream.next_out = out.data;
    stream.avail_out = sizeof out.data;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.length = stream.total_out;
    deflateEnd(&stream);
    return out;
}

static void join(struct bytes *to, const void *data, size_t length) {
    assert_true(to->length + length <= sizeof to->data);
    memcpy(to->data + to->length, data, length);
    to->length += length;
}

/* Each of `count` requests gets the next answer. */
static void serve(const struct peer_step *steps, size_t count) {
    end_peer();
    peer = peer_new(steps, count);
    assert_non_null(peer);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
}

static struct peer_step answer_of(const char *coding, const void *body, size_t length) {
    static struct bytes answers[512];
    static size_t turn;
    struct bytes *answer = &answers[turn++ % 512];
    answer->length = (size_t)snprintf((char *)answer->data, sizeof answer->data,
                                      OK "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n", coding, length);
    join(answer, body, length);
    return (struct peer_step){.answer = (const char *)answer->data, .length = answer->length};
}

static struct hf_response *call(const char *method) {
    struct hf_request request = hf_request_to("d", method, "/");
    struct hf_response *response = NULL;
    assert_int_equal(hf_call(client, &request, &response, NULL), 0);
    return response;
}

static void expect_body(const void *wanted, size_t length) {
    struct hf_response *response = call("GET");
    size_t got = 0;
    const void *body = hf_response_body(response, &got);
    assert_string_equal(hf_outcome_get_error_type(hf_response_outcome(response)), "");
    assert_int_equal(got, length);
    assert_memory_equal(got > 0 ? body : "", wanted, length);
    hf_response_free(response);
}

/* Transient, and a failure of the downstream: as for any body that is broken. */
static void expect_broken(const char *error_type) {
    struct hf_response *response = call("GET");
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_string_equal(hf_outcome_get_error_type(outcome), error_type);
    assert_int_equal(hf_outcome_get_class(outcome), HF_CLASS_TRANSIENT);
    assert_int_equal(hf_outcome_get_verdict(outcome), HF_VERDICT_FAILURE);
    assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_YES);
    assert_non_null(strstr(hf_outcome_get_message(outcome), "the compressed body"));
    hf_response_free(response);
}

static const int forms[] = {GZIP, ZLIB, BARE};
static const char *coding_of(int form) {
    return form == GZIP ? "gzip" : "deflate";
}

/* A stream that ends anywhere within is no answer, although the Content-Length is that of what came. */
static void test_cut(void **state) {
    (void)state;
    static struct peer_step steps[512];
    for (size_t f = 0; f < 3; f++) {
        struct bytes body = pack(forms[f], text, 100);
        for (size_t cut = 0; cut <= body.length; cut++)
            steps[cut] = answer_of(coding_of(forms[f]), body.data, cut);
        serve(steps, body.length + 1);
        expect_body("", 0); /* no stream at all is an empty body */
        for (size_t cut = 1; cut < body.length; cut++)
            expect_broken("curl.partial_file");
        expect_body(text, 100);
    }
}

/* A damaged byte is found, or does not matter: the body is the right one or there is none. */
static void test_damage(void **state) {
    (void)state;
    static struct peer_step steps[512];
    struct bytes body = pack(GZIP, text, 100);
    for (size_t at = 0; at < body.length; at++) {
        body.data[at] ^= 0x55;
        steps[at] = answer_of("gzip", body.data, body.length);
        body.data[at] ^= 0x55;
    }
    serve(steps, body.length);
    for (size_t at = 0; at < body.length; at++) {
        struct hf_response *response = call("GET");
        const char *type = hf_outcome_get_error_type(hf_response_outcome(response));
        size_t length = 0;
        const void *got = hf_response_body(response, &length);
        if (type[0] == '\0') { /* a time, a system: nothing that is checked */
            assert_in_range(at, 4, 9);
            assert_int_equal(length, 100);
            assert_memory_equal(got, text, 100);
        } else if (strcmp(type, "curl.partial_file") != 0) {
            assert_string_equal(type, "curl.bad_content_encoding");
        }
        hf_response_free(response);
    }
}

/* gzip may have several members; nothing else may follow a stream. */
static void test_what_follows(void **state) {
    (void)state;
    struct bytes one = pack(GZIP, text, 100), two = pack(GZIP, text + 100, 500), none = pack(GZIP, "", 0);
    struct bytes wrapped = pack(ZLIB, text, 100), bare = pack(BARE, text, 100), members = one;
    join(&members, none.data, none.length);
    join(&members, two.data, two.length);
    struct bytes cut = members, garbage = members, zeros = members;
    cut.length--;
    join(&garbage, "\x1fgarbage", 8);
    join(&zeros, "\0\0", 2);
    join(&wrapped, wrapped.data, wrapped.length);
    join(&bare, "x", 1);
    struct peer_step steps[] = {
        answer_of("gzip", members.data, members.length), answer_of("gzip", none.data, none.length),
        answer_of("gzip", cut.data, cut.length),         answer_of("gzip", garbage.data, garbage.length),
        answer_of("gzip", zeros.data, zeros.length),     answer_of("deflate", wrapped.data, wrapped.length),
        answer_of("deflate", bare.data, bare.length)};
    serve(steps, sizeof steps / sizeof *steps);
    expect_body(text, 600);
    expect_body("", 0);
    expect_broken("curl.partial_file");
    for (int i = 0; i < 4; i++)
        expect_broken("curl.bad_content_encoding");
}

static void test_codings(void **state) {
    (void)state;
    struct bytes gzip = pack(GZIP, text, 600), zlib = pack(ZLIB, text, 600);
    struct bytes twice = pack(GZIP, zlib.data, zlib.length), thrice = pack(BARE, twice.data, twice.length);
    struct bytes inner = zlib;
    inner.length /= 2;
    struct bytes cut_within = pack(GZIP, inner.data, inner.length);
    struct peer_step good[] = {answer_of("identity", text, 600),
                               answer_of("", text, 600),
                               answer_of("X-GZip", gzip.data, gzip.length),
                               answer_of("identity , gzip,, identity", gzip.data, gzip.length),
                               answer_of("deflate,gzip", twice.data, twice.length),
                               answer_of("deflate\r\nContent-Encoding: gzip", twice.data, twice.length),
                               answer_of("deflate, gzip, deflate", thrice.data, thrice.length),
                               {.answer = OK "Content-Length: 2\r\n\r\nok"}};
    serve(good, sizeof good / sizeof *good);
    for (int i = 0; i < 7; i++)
        expect_body(text, 600);
    expect_body("ok", 2);
    struct peer_step bad[] = {answer_of("br", text, 600),
                              answer_of("gzip;q=1", gzip.data, gzip.length),
                              answer_of("gzip, deflate, gzip, deflate", thrice.data, thrice.length),
                              answer_of("gzipped", gzip.data, gzip.length),
                              answer_of("gzip", text, 600),
                              answer_of("deflate", text, 600),
                              answer_of("deflate, gzip", cut_within.data, cut_within.length)};
    serve(bad, sizeof bad / sizeof *bad);
    for (int i = 0; i < 6; i++)
        expect_broken("curl.bad_content_encoding");
    expect_broken("curl.partial_file");
}

/* A byte at a time, in chunks that end or just stop; and an end of the connection is no end of a stream. */
static void test_split(void **state) {
    (void)state;
    static struct bytes chunked, whole, cut;
    struct bytes body = pack(GZIP, text, 600);
    chunked.length =
        (size_t)sprintf((char *)chunked.data, OK "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < body.length; i++) {
        join(&chunked, "1\r\n", 3);
        join(&chunked, body.data + i, 1);
        join(&chunked, "\r\n", 2);
    }
    join(&chunked, "0\r\n\r\n", 5);
    whole.length = (size_t)sprintf((char *)whole.data, OK "Content-Encoding: gzip\r\nConnection: close\r\n\r\n");
    cut = whole;
    join(&whole, body.data, body.length);
    join(&cut, body.data, body.length - 1);
    struct peer_step steps[] = {{.answer = (char *)chunked.data, .length = chunked.length},
                                {.answer = (char *)whole.data, .length = whole.length, .then = PEER_CLOSE},
                                {.answer = (char *)cut.data, .length = cut.length, .then = PEER_CLOSE}};
    serve(steps, 3);
    expect_body(text, 600);
    expect_body(text, 600);
    expect_broken("curl.partial_file");
}

/* An answer without a body has no stream to be whole. */
static void test_no_body(void **state) {
    (void)state;
    static const char *const answers[] = {OK "Content-Encoding: gzip\r\nContent-Length: 500\r\n\r\n",
                                          "HTTP/1.1 204 None\r\nContent-Encoding: gzip\r\n\r\n",
                                          "HTTP/1.1 304 Same\r\nContent-Encoding: gzip\r\nContent-Length: 500\r\n\r\n"};
    static const int statuses[] = {200, 204, 304};
    struct peer_step steps[3];
    for (int i = 0; i < 3; i++)
        steps[i] = (struct peer_step){.answer = answers[i]};
    serve(steps, 3);
    for (int i = 0; i < 3; i++) {
        struct hf_response *response = call(i == 0 ? "HEAD" : "GET");
        size_t length = 1;
        hf_response_body(response, &length);
        assert_int_equal(hf_response_status(response), statuses[i]);
        assert_int_equal(length, 0);
        hf_response_free(response);
    }
}

/* Work without end: streams that are empty within, packed so that few bytes make many of them. */
static void test_empty_bomb(void **state) {
    (void)state;
    struct bytes none = pack(GZIP, "", 0);
    size_t count = 100000;
    unsigned char *many = malloc(count * none.length);
    for (size_t i = 0; many && i < count; i++)
        memcpy(many + i * none.length, none.data, none.length);
    struct bytes packed = pack(GZIP, many, count * none.length);
    free(many);
    options.response_limit = 100000;
    struct peer_step steps[] = {answer_of("gzip, gzip", packed.data, packed.length)};
    serve(steps, 1);
    struct hf_response *response = call("GET");
    assert_string_equal(hf_outcome_get_error_type(hf_response_outcome(response)), "http.body_too_large");
    assert_int_equal(hf_outcome_get_class(hf_response_outcome(response)), HF_CLASS_PERMANENT);
    hf_response_free(response);
    options.response_limit = 1 << 21; /* room for all of them: an empty body, as it was sent */
    serve(steps, 1);
    expect_body("", 0);
}

/* The next try begins with nothing of the last one, and one's own Accept-Encoding is the only one. */
static void test_tries(void **state) {
    (void)state;
    static const struct hf_header own = {"Accept-Encoding", "gzip"};
    char request[4096];
    struct bytes body = pack(GZIP, text, 600);
    struct peer_step steps[] = {answer_of("gzip", body.data, body.length - 9),
                                answer_of("gzip", body.data, body.length)};
    policy.retry_max = 1;
    policy.retry_base_ms = 1;
    options.headers = &own;
    options.header_count = 1;
    serve(steps, 2);
    struct hf_response *response = call("GET");
    size_t length = 0;
    assert_memory_equal(hf_response_body(response, &length), text, 600);
    assert_int_equal(length, 600);
    assert_int_equal(hf_outcome_get_attempts(hf_response_outcome(response)), 2);
    hf_response_free(response);
    peer_last(peer, request, sizeof request);
    const char *first = strcasestr(request, "accept-encoding: gzip\r\n");
    assert_non_null(first);
    assert_null(strcasestr(first + 1, "accept-encoding"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_cut),   T(test_damage),  T(test_what_follows), T(test_codings),
                                       T(test_split), T(test_no_body), T(test_empty_bomb),   T(test_tries)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
