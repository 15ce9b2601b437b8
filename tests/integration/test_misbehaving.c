/* SPDX-License-Identifier: MIT */
/*
 * hf_call against a peer that misbehaves, at every stage and in every framing of an answer: what it reports, what the
 * breaker is told, and that requests seen == attempts reported (L1, R19). A table; tests/support/wire.c runs it.
 */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "support/wire.h"

#define LIMIT_MS 60000 /* nothing here may run into it */

/* Type and verdicts: the words of src/resilience/effect.h. */
#define FINE "", HF_CLASS_OK, HF_VERDICT_SUCCESS, HF_RETRY_NONE
#define DOWN(type) type, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_RETRY_NOW
#define DOWN_FRESH(type) type, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_RETRY_FRESH
#define BUSY(type) type, HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_RETRY_NOW
#define BUSY_FRESH(type) type, HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_RETRY_FRESH
#define REFUSED(type) type, HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_RETRY_NONE
#define AT(at, proof) .stage = HF_STAGE_##at, .sent = HF_SENT_##proof
#define ANSWER(text)                                                                                                   \
    { .answer = text, .length = sizeof(text) - 1, .then = PEER_FIN }
#define ANSWER_KEEP(text)                                                                                              \
    { .answer = text, .length = sizeof(text) - 1, .then = PEER_KEEP }
#define ANSWER_RESET(text)                                                                                             \
    { .answer = text, .length = sizeof(text) - 1, .then = PEER_RESET }
#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define TEN(text) text text text text text text text text text text
#define THOUSAND TEN(TEN(TEN("x")))
#define CHUNKED OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"

/* The connection ends, with a reset or in good order, at every stage of the request and of the answer. */
static const struct wire_case ends[] = {
    {"reset when accepted",
     {.at = PEER_ACCEPT, .then = PEER_RESET},
     DOWN("curl.recv_error"),
     AT(WAIT, MAYBE),
     .unread = true,
     .races = true},
    {"reset before reading",
     {.at = PEER_ARRIVED, .then = PEER_RESET},
     DOWN("curl.recv_error"),
     AT(WAIT, MAYBE),
     .unread = true},
    {"reset after the headers", {.at = PEER_HEADERS, .then = PEER_RESET}, DOWN("curl.recv_error"), AT(WAIT, MAYBE)},
    {"reset after half the body", {.at = PEER_HALF, .then = PEER_RESET}, DOWN("curl.recv_error"), AT(WAIT, MAYBE)},
    {"reset after the request", {.then = PEER_RESET}, DOWN("curl.recv_error"), AT(WAIT, MAYBE)},
    {"reset after the status line", ANSWER_RESET(OK_HEAD), DOWN("curl.recv_error"), AT(RECEIVE, MAYBE)},
    {"reset in the headers", ANSWER_RESET(OK_HEAD "Content-Le"), DOWN("curl.recv_error"), AT(RECEIVE, MAYBE)},
    {"reset in the body", ANSWER_RESET(OK_HEAD "Content-Length: 9\r\n\r\nabc"), DOWN("curl.recv_error"),
     AT(RECEIVE, YES)},
    {"closed when accepted", {.at = PEER_ACCEPT, .then = PEER_FIN}, DOWN("curl.got_nothing"), AT(WAIT, MAYBE)},
    {"closed before reading", {.at = PEER_ARRIVED, .then = PEER_FIN}, DOWN("curl.got_nothing"), AT(WAIT, MAYBE)},
    {"closed after the headers", {.at = PEER_HEADERS, .then = PEER_FIN}, DOWN("curl.got_nothing"), AT(WAIT, MAYBE)},
    {"closed after half the body", {.at = PEER_HALF, .then = PEER_FIN}, DOWN("curl.got_nothing"), AT(WAIT, MAYBE)},
    {"closed after the request", {.then = PEER_FIN}, DOWN("curl.got_nothing"), AT(WAIT, MAYBE)},
    {"closed after the status line", ANSWER(OK_HEAD), DOWN("http.truncated_headers"), AT(RECEIVE, MAYBE)},
    {"closed in the headers", ANSWER(OK_HEAD "Content-Le"), DOWN("http.truncated_headers"), AT(RECEIVE, MAYBE)},
    {"closed in the body", ANSWER(OK_HEAD "Content-Length: 9\r\n\r\nabc"), DOWN("curl.partial_file"), AT(RECEIVE, YES)},
    {"refused",
     {.then = PEER_FIN},
     DOWN("curl.couldnt_connect"),
     AT(CONNECT, NO),
     .unread = true,
     .peer = WIRE_REFUSES},
    {"answered before the body was read",
     {.at = PEER_HEADERS, .answer = PEER_OK, .then = PEER_FIN},
     FINE,
     AT(RECEIVE, YES)},
};

/* Lengths that do not fit, and bodies where none may be. */
static const struct wire_case lengths[] = {
    {"short body", ANSWER(OK_HEAD "Content-Length: 3\r\n\r\nab"), DOWN("curl.partial_file"), AT(RECEIVE, YES)},
    {"long body", ANSWER(OK_HEAD "Content-Length: 3\r\n\r\nabcde"), FINE, AT(RECEIVE, YES)},
    {"long body, kept", ANSWER_KEEP(OK_HEAD "Content-Length: 3\r\n\r\nabcde"), FINE, AT(RECEIVE, YES)},
    {"no length, closed", ANSWER(OK_HEAD "\r\nabc"), FINE, AT(RECEIVE, YES)},
    {"two lengths, equal", ANSWER(OK_HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok"), FINE, AT(RECEIVE, YES)},
    {"two lengths, different", ANSWER(OK_HEAD "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
     DOWN("curl.partial_file"), AT(RECEIVE, YES)},
    {"length below zero", ANSWER(OK_HEAD "Content-Length: -1\r\n\r\nok"), DOWN("curl.weird_server_reply"),
     AT(RECEIVE, MAYBE)},
    {"length too large to be one", ANSWER(OK_HEAD "Content-Length: 99999999999999999999999\r\n\r\nok"),
     DOWN("curl.partial_file"), AT(RECEIVE, YES)},
    {"204 with a body", ANSWER_KEEP("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok"), FINE, AT(RECEIVE, YES)},
    {"304 with a body", ANSWER_KEEP("HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\nok"), REFUSED("http.304"),
     AT(RECEIVE, YES)},
    {"HEAD with a body", ANSWER_KEEP(PEER_OK), FINE, AT(RECEIVE, YES), .kinds = WIRE_GET, .method = "HEAD"},
    {"chunked", ANSWER_KEEP(CHUNKED "2\r\nok\r\n0\r\n\r\n"), FINE, AT(RECEIVE, YES)},
    {"chunk of no size", ANSWER(CHUNKED "zz\r\nok\r\n0\r\n\r\n"), DOWN("curl.recv_error"), AT(RECEIVE, YES)},
    {"chunk longer than its size", ANSWER(CHUNKED "2\r\nokay\r\n0\r\n\r\n"), DOWN("curl.recv_error"), AT(RECEIVE, YES)},
    {"chunk too large to be one", ANSWER(CHUNKED "fffffffffffffffff\r\nok"), DOWN("curl.recv_error"), AT(RECEIVE, YES)},
    {"no last chunk", ANSWER(CHUNKED "2\r\nok\r\n"), DOWN("curl.partial_file"), AT(RECEIVE, YES)},
    {"last chunk without its end", ANSWER(CHUNKED "2\r\nok\r\n0\r\n"), DOWN("curl.partial_file"), AT(RECEIVE, YES)},
    {"unknown coding passed on", ANSWER_KEEP(OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\0\0"),
     FINE, AT(RECEIVE, YES)},
};

/* Headers that are none, and statuses that are not final. */
static const struct wire_case heads[] = {
    {"no status line", ANSWER("hello\r\n\r\n"), DOWN_FRESH("curl.unsupported_protocol"), AT(WAIT, MAYBE)},
    {"an old HTTP", ANSWER("<html>ok</html>"), DOWN_FRESH("curl.unsupported_protocol"), AT(WAIT, MAYBE)},
    {"binary", ANSWER("\0\1\2\3\377\376\r\n\r\n"), DOWN_FRESH("curl.unsupported_protocol"), AT(WAIT, MAYBE)},
    {"a TLS alert", ANSWER("\25\3\1\0\2\2\50"), DOWN_FRESH("curl.unsupported_protocol"), AT(WAIT, MAYBE)},
    {"a version that is none", ANSWER("HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n"),
     DOWN_FRESH("curl.unsupported_protocol"), AT(WAIT, MAYBE)},
    {"a status that is none", ANSWER("HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n"),
     DOWN_FRESH("curl.unsupported_protocol"), AT(WAIT, MAYBE)},
    {"header without a colon", ANSWER(OK_HEAD "nonsense\r\nContent-Length: 2\r\n\r\nok"),
     DOWN("curl.weird_server_reply"), AT(RECEIVE, MAYBE)},
    {"NUL in a header", ANSWER(OK_HEAD "X-A: a\0b\r\nContent-Length: 2\r\n\r\nok"), DOWN("curl.weird_server_reply"),
     AT(RECEIVE, MAYBE)},
    {"bare line feeds", ANSWER("HTTP/1.1 200 OK\nContent-Length: 2\n\nok"), FINE, AT(RECEIVE, YES)},
    {"a lone 100, then closed", ANSWER("HTTP/1.1 100 Continue\r\n\r\n"), DOWN("curl.got_nothing"), AT(RECEIVE, MAYBE)},
    {"a lone 102, then closed", ANSWER("HTTP/1.1 102 Processing\r\n\r\n"), DOWN("curl.got_nothing"),
     AT(RECEIVE, MAYBE)},
    {"a lone 103, then reset", ANSWER_RESET("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), DOWN("curl.recv_error"),
     AT(RECEIVE, MAYBE)},
    {"101 unasked", ANSWER("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nbytes"),
     DOWN("curl.weird_server_reply"), AT(RECEIVE, MAYBE)},
    {"421", ANSWER_KEEP("HTTP/1.1 421 Elsewhere\r\nContent-Length: 0\r\n\r\n"), BUSY_FRESH("http.421"),
     AT(RECEIVE, YES)},
    {"408", ANSWER_KEEP("HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"), BUSY("http.408"), AT(RECEIVE, MAYBE)},
    {"417 though nothing was expected", ANSWER_KEEP("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"),
     REFUSED("http.417"), AT(RECEIVE, YES)},
    {"503", ANSWER_KEEP("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), DOWN("http.503"), AT(RECEIVE, YES)},
    {"a redirect, unfollowed", ANSWER_KEEP("HTTP/1.1 302 Go\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"),
     REFUSED("http.302"), AT(RECEIVE, YES)},
    {"a redirect to a file",
     ANSWER_KEEP("HTTP/1.1 301 Go\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"), REFUSED("http.301"),
     AT(RECEIVE, YES)},
    {"status 999", ANSWER_KEEP("HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"), DOWN("http.999"), AT(RECEIVE, YES)},
};

/* On a connection that served one good answer before. What came on it unasked is nobody's answer (pitfalls 1.1-4). */
#define IDLE_408 "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
static const struct wire_case pooled[] = {
    {"closed under the next request",
     {.then = PEER_CLOSE},
     DOWN("http.resend_stopped"),
     AT(WAIT, MAYBE),
     .warm = true,
     .recovers = true},
    {"reset under the next request",
     {.then = PEER_RESET},
     DOWN("http.resend_stopped"),
     AT(WAIT, MAYBE),
     .warm = true,
     .recovers = true},
    {"closed in the next headers", ANSWER(OK_HEAD "Content-Le"), DOWN("http.truncated_headers"), AT(RECEIVE, MAYBE),
     .warm = true, .recovers = true},
    {"408 to the next request", ANSWER(IDLE_408), BUSY("http.408"), AT(RECEIVE, MAYBE), .warm = true, .recovers = true},
    {"closed while idle", {.answer = PEER_OK}, FINE, AT(RECEIVE, YES), .warm = true, .poke = "", .poke_closes = true},
    {"408 while idle", {.answer = PEER_OK}, FINE, AT(RECEIVE, YES), .warm = true, .poke = IDLE_408},
    {"408 while idle, closed",
     {.answer = PEER_OK},
     FINE,
     AT(RECEIVE, YES),
     .warm = true,
     .poke = IDLE_408,
     .poke_closes = true},
    {"an answer while idle", {.answer = PEER_OK}, FINE, AT(RECEIVE, YES), .warm = true, .poke = PEER_OK PEER_OK},
    {"garbage while idle", {.answer = PEER_OK}, FINE, AT(RECEIVE, YES), .warm = true, .poke = "what?"},
    {"closed behind its answer",
     {.answer = OK_HEAD "Connection: close\r\nContent-Length: 2\r\n\r\nok", .then = PEER_FIN},
     FINE,
     AT(RECEIVE, YES),
     .warm = true},
};

/* 100,000 zeros, as gzip packs them. */
#define BOMB                                                                                                           \
    "\037\213\010\000\000\000\000\000\002\003\355\301\061\001\000\000\000\302\240\365\117\155\015\017\240"             \
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"             \
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"             \
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"             \
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\200\127\003\175"             \
    "\225\021\324\240\206\001\000"

/* More than anybody needs. The texts are made in main. */
#define LONG_TEXT 700000
static char many_1xx[LONG_TEXT], many_headers[LONG_TEXT], long_header[LONG_TEXT], long_extension[LONG_TEXT];
static const struct wire_case sizes[] = {
    {"a body over the limit", ANSWER(OK_HEAD "Content-Length: 1001\r\n\r\n" THOUSAND "1"),
     REFUSED("http.body_too_large"), AT(RECEIVE, YES)},
    {"a compressed body over the limit", /* nothing is unpacked unasked: its bytes are counted as they come */
     ANSWER(OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 1001\r\n\r\n" THOUSAND "1"),
     REFUSED("http.body_too_large"), AT(RECEIVE, YES)},
    {"a compressed bomb, unpacked", ANSWER(OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 132\r\n\r\n" BOMB),
     REFUSED("http.body_too_large"), AT(RECEIVE, YES), .compressed = true},
    {"a compressed bomb, passed on", ANSWER(OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 132\r\n\r\n" BOMB), FINE,
     AT(RECEIVE, YES)},
    {"a bomb that is cut", ANSWER(OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 132\r\n\r\n\037\213"),
     DOWN("curl.partial_file"), AT(RECEIVE, YES), .compressed = true},
    {"chunks over the limit", ANSWER(CHUNKED "3e8\r\n" THOUSAND "\r\n1\r\n1\r\n0\r\n\r\n"),
     REFUSED("http.body_too_large"), AT(RECEIVE, YES)},
    {"a body at the limit", ANSWER_KEEP(OK_HEAD "Content-Length: 1000\r\n\r\n" THOUSAND), FINE, AT(RECEIVE, YES)},
    {"a body without end", ANSWER(OK_HEAD "\r\n" THOUSAND THOUSAND), REFUSED("http.body_too_large"), AT(RECEIVE, YES)},
    {"a thousand 1xx, then the answer", {.answer = many_1xx, .then = PEER_FIN}, FINE, AT(RECEIVE, YES)},
    {"headers of 600 KB",
     {.answer = many_headers, .then = PEER_FIN},
     REFUSED("http.headers_too_large"),
     AT(RECEIVE, MAYBE)},
    {"one header of 600 KB", {.answer = long_header, .then = PEER_FIN}, REFUSED("curl.recv_error"), AT(RECEIVE, MAYBE)},
    {"a chunk extension of 600 KB", {.answer = long_extension, .then = PEER_FIN}, FINE, AT(RECEIVE, YES)},
};

static void make_texts(void) {
    char *at = many_1xx;
    for (int i = 0; i < 1000; i++)
        at = stpcpy(at, i % 2 ? "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" : "HTTP/1.1 100 Continue\r\n\r\n");
    stpcpy(at, PEER_OK);
    at = stpcpy(many_headers, OK_HEAD);
    for (int i = 0; i < 6000; i++)
        at += sprintf(at, "X-%04d: %091d\r\n", i, i);
    stpcpy(at, "Content-Length: 2\r\n\r\nok");
    at = stpcpy(long_header, OK_HEAD "X-Long: ");
    memset(at, 'a', 600000);
    stpcpy(at + 600000, "\r\nContent-Length: 2\r\n\r\nok");
    at = stpcpy(long_extension, CHUNKED "2;");
    memset(at, 'a', 600000);
    stpcpy(at + 600000, "\r\nok\r\n0\r\n\r\n");
}

#define RUN(table) wire_run(table, sizeof table / sizeof *table, false, LIMIT_MS)

static void test_ends(void **state) { /* L1 R19 */
    (void)state;
    assert_int_equal(RUN(ends), 0);
}

static void test_lengths(void **state) {
    (void)state;
    assert_int_equal(RUN(lengths), 0);
}

static void test_heads(void **state) {
    (void)state;
    assert_int_equal(RUN(heads), 0);
}

static void test_pooled(void **state) {
    (void)state;
    assert_int_equal(RUN(pooled), 0);
}

static void test_sizes(void **state) { /* L8: what we do not take is our refusal, no failure of the peer */
    (void)state;
    assert_int_equal(RUN(sizes), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends), cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_heads), cmocka_unit_test(test_pooled),
                                       cmocka_unit_test(test_sizes)};
    make_texts();
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
