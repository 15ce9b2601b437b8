/* SPDX-License-Identifier: MIT */
/* The libcurl transport against a server that does exactly what it is told: pitfalls 1.1 (1-10), 1.3, 1.4, L1-L8. */
#include "support/support.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"
#include "resilience/http/http.h"
#include "support/peer.h"

#define WATCHDOG_MS 30000

struct result {
    bool done;
    int native, native_errno, status;
    char error_type[64], message[256], retry_after[64], header[64], body[256];
    size_t body_length;
    enum hf_stage stage;
    enum hf_sent sent;
    bool reused;
    struct hfi_phases phases;
};

struct world {
    struct hfi_scheduler *s;
    struct hfi_transport *t;
    struct peer *peer;
    struct hfi_timer watchdog;
    int open; /* attempts that have not ended */
    bool late;
    char url[128];
    struct hfi_attempt_spec spec;
};
static struct world *w;

static void on_watchdog(struct hfi_timer *timer, void *user) {
    (void)timer;
    (void)user;
    w->late = true;
    w->s->ops->stop(w->s);
}

static int set_up(void **state) {
    (void)state;
    w = calloc(1, sizeof *w);
    if (hfi_loop_new(&w->s) || hfi_curl_transport_new(w->s, &w->t, NULL))
        return -1;
    hfi_timer_init(&w->watchdog, on_watchdog, NULL);
    w->spec = (struct hfi_attempt_spec){
        .url = w->url, .method = "GET", .connect_timeout_ms = 60000, .backstop_ms = 120000, .response_limit = 1024};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    w->t->ops->close(w->t);
    w->s->ops->disarm(w->s, &w->watchdog);
    w->s->ops->close(w->s);
    peer_free(w->peer);
    free(w);
    return 0;
}

static void serve(const struct peer_step *steps, size_t count) {
    w->peer = peer_new(steps, count);
    assert_non_null(w->peer);
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/", peer_port(w->peer));
}
#define SERVE(...)                                                                                                     \
    serve((struct peer_step[]){__VA_ARGS__}, sizeof(struct peer_step[]){__VA_ARGS__} / sizeof(struct peer_step))

static void keep(const struct hfi_attempt_facts *facts, void *user) {
    struct result *result = user;
    result->done = true;
    result->native = facts->native;
    result->native_errno = facts->native_errno;
    result->status = facts->status;
    snprintf(result->error_type, sizeof result->error_type, "%s", facts->error_type ? facts->error_type : "");
    snprintf(result->message, sizeof result->message, "%s", facts->message ? facts->message : "(null)");
    snprintf(result->retry_after, sizeof result->retry_after, "%s", facts->retry_after ? facts->retry_after : "");
    for (size_t i = 0; i < facts->header_count; i++)
        if (strcasecmp(facts->headers[i].name, "X-Test") == 0)
            snprintf(result->header, sizeof result->header, "%s", facts->headers[i].value);
    result->body_length = facts->body_length;
    snprintf(result->body, sizeof result->body, "%.*s", (int)facts->body_length, (const char *)facts->body);
    result->stage = facts->stage;
    result->sent = facts->sent;
    result->reused = facts->reused;
    result->phases = facts->phases;
    if (--w->open == 0)
        w->s->ops->stop(w->s);
}

static struct hfi_attempt *begin(struct result *result) {
    struct hfi_attempt *attempt = NULL;
    memset(result, 0, sizeof *result);
    w->open++;
    assert_int_equal(w->t->ops->start(w->t, &w->spec, keep, result, &attempt), 0);
    assert_false(result->done); /* never inside start */
    return attempt;
}

static void run(void) {
    w->late = false;
    assert_int_equal(w->s->ops->arm(w->s, &w->watchdog, hfi_mono_after_ms(w->s->ops->mono(w->s), WATCHDOG_MS)), 0);
    w->s->ops->run(w->s);
    assert_false(w->late);
}

static struct result get(void) {
    struct result result;
    begin(&result);
    run();
    return result;
}

static void turn(struct hfi_timer *timer, void *user) {
    (void)timer;
    (void)user;
    w->s->ops->stop(w->s);
}
/* Runs the loop for `ms`. */
static void run_for(int64_t ms) {
    struct hfi_timer timer;
    hfi_timer_init(&timer, turn, NULL);
    w->s->ops->arm(w->s, &timer, hfi_mono_after_ms(w->s->ops->mono(w->s), ms));
    w->s->ops->run(w->s);
}

static void test_answer(void **state) {
    (void)state;
    SERVE({.answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After:  7 \r\nX-Test: a\r\n b\r\n"
                     "Content-Length: 5\r\n\r\nsorry"});
    struct result result = get();
    assert_int_equal(result.native, 0);
    assert_int_equal(result.status, 503);
    assert_string_equal(result.error_type, "");
    assert_string_equal(result.retry_after, "7"); /* A7: the raw header */
    assert_string_equal(result.header, "a b");
    assert_string_equal(result.body, "sorry");
    assert_int_equal(result.sent, HF_SENT_YES);
    assert_int_equal(result.stage, HF_STAGE_RECEIVE);
    assert_false(result.reused);
    assert_true(result.phases.connect_us >= 0 && result.phases.total_us >= result.phases.first_byte_us);
    struct result again = get();
    assert_true(again.reused);
    assert_int_equal(again.phases.connect_us, -1);
    assert_int_equal(peer_connections(w->peer), 1);
}

/* Nothing of one attempt is left for the next on the same pooled handle. */
static void test_request_lines(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    char request[2048];
    static const struct hf_header headers[] = {{"X-A", "1"}, {"X-Empty", ""}, {"Content-Type", "text/plain"}};
    w->spec.method = "POST";
    w->spec.headers = headers;
    w->spec.header_count = 3;
    w->spec.body = "hello";
    w->spec.body_length = 5;
    assert_int_equal(get().status, 200);
    peer_last(w->peer, request, sizeof request);
    assert_non_null(strstr(request, "POST / HTTP/1.1\r\n"));
    assert_non_null(strstr(request, "X-A: 1\r\n"));
    assert_non_null(strstr(request, "X-Empty:\r\n"));
    assert_non_null(strstr(request, "Content-Type: text/plain\r\n"));
    assert_non_null(strstr(request, "Content-Length: 5\r\n"));
    assert_non_null(strstr(request, "\r\n\r\nhello"));
    w->spec.header_count = 0;
    w->spec.body = NULL;
    w->spec.body_length = 0;
    assert_int_equal(get().status, 200);
    peer_last(w->peer, request, sizeof request);
    assert_non_null(strstr(request, "Content-Length: 0\r\n"));
    assert_null(strstr(request, "Content-Type"));
    assert_null(strstr(request, "X-A"));
    for (int i = 0; i < 2; i++) {
        w->spec.method = i ? "DELETE" : "GET";
        assert_int_equal(get().status, 200);
        peer_last(w->peer, request, sizeof request);
        assert_int_equal(strncmp(request, w->spec.method, strlen(w->spec.method)), 0);
        assert_null(strstr(request, "Content-Length"));
        assert_null(strstr(request, "Expect"));
    }
    w->spec.method = "HEAD";
    assert_int_equal(get().body_length, 0);
    peer_last(w->peer, request, sizeof request);
    assert_int_equal(strncmp(request, "HEAD / ", 7), 0);
}

/* L1: the server reads the whole POST on a reused connection and drops it. libcurl alone would send it again. */
static void test_no_silent_resend(void **state) {
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        SERVE({.answer = PEER_OK}, {.then = reset ? PEER_RESET : PEER_CLOSE}, {.answer = PEER_OK});
        w->spec.method = "POST";
        w->spec.body = "pay";
        w->spec.body_length = 3;
        assert_int_equal(get().status, 200);
        struct result second = get();
        assert_true(second.native != 0 || second.error_type[0]);
        assert_int_equal(second.status, 0);
        assert_int_equal(second.sent, HF_SENT_MAYBE);
        assert_int_equal(peer_requests(w->peer), 2); /* requests seen == attempts made */
        if (!reset)
            assert_string_equal(second.error_type, "http.resend_stopped");
        w->spec.repeatable = true; /* declared: libcurl may */
        assert_int_equal(get().status, 200);
        w->spec.repeatable = false;
        peer_free(w->peer);
        w->peer = NULL;
    }
}

/* pitfalls 1.1-5: libcurl calls this a success with an empty body. */
static void test_truncated_headers(void **state) {
    (void)state;
    SERVE({.answer = "HTTP/1.1 200 OK\r\nContent-Le", .then = PEER_CLOSE},
          {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", .then = PEER_CLOSE});
    struct result cut = get();
    assert_string_equal(cut.error_type, "http.truncated_headers");
    assert_int_equal(cut.sent, HF_SENT_MAYBE);
    struct result partial = get();
    assert_int_equal(partial.native, CURLE_PARTIAL_FILE);
    assert_int_equal(partial.sent, HF_SENT_YES);
}

/* pitfalls 1.1-4: a 408 that came unasked on an idle connection is not the answer of the next request. */
static void test_idle_408(void **state) {
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        SERVE({.answer = PEER_OK});
        w->spec.method = "POST";
        w->spec.body = "pay";
        w->spec.body_length = 3;
        assert_int_equal(get().status, 200);
        peer_poke(w->peer, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", closes);
        if (closes)
            run_for(5);
        struct result next = get();
        assert_int_equal(next.status, 200);
        assert_false(next.reused);
        assert_int_equal(peer_requests(w->peer), 2);
        peer_free(w->peer);
        w->peer = NULL;
    }
}

/* The body limit counts what arrives, however it is framed. */
static void test_body_limit(void **state) {
    (void)state;
    SERVE(
        {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345"},
        {.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n"},
        {.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n1\r\n4\r\n0\r\nX-Test: t\r\n\r\n"},
        {.answer = PEER_OK});
    w->spec.response_limit = 4;
    for (int i = 0; i < 2; i++) {
        struct result over = get();
        assert_string_equal(over.error_type, "http.body_too_large");
        assert_int_equal(over.status, 200);
        assert_int_equal(over.sent, HF_SENT_YES);
        assert_true(over.body_length <= 4);
    }
    struct result fits = get();
    assert_int_equal(fits.native, 0);
    assert_string_equal(fits.body, "1234");
    assert_string_equal(fits.header, ""); /* a trailer is not a header */
    assert_string_equal(get().body, "ok");
}

static void test_refused(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    int port = peer_port(w->peer);
    peer_free(w->peer);
    w->peer = NULL;
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/", port);
    struct result result = get();
    assert_int_equal(result.native, CURLE_COULDNT_CONNECT);
    assert_int_equal(result.native_errno, ECONNREFUSED);
    assert_int_equal(result.stage, HF_STAGE_CONNECT);
    assert_int_equal(result.sent, HF_SENT_NO);
    assert_string_equal(result.error_type, "");
}

/* Running out of descriptors is our trouble: it must not look like a dead server (1.5, code 7). */
static void test_descriptors(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = dup(0);
    close(next);
    none = limit;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct result result = get();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_string_equal(result.error_type, "local.descriptors");
    assert_int_equal(result.native_errno, EMFILE);
    assert_int_equal(result.stage, HF_STAGE_LOCAL);
    assert_int_equal(result.sent, HF_SENT_NO);
    assert_int_equal(get().status, 200);
}

static void test_cancel(void **state) {
    (void)state;
    SERVE({.then = PEER_HANG}, {.answer = PEER_OK});
    struct result hung, other;
    struct hfi_attempt *attempt = begin(&hung);
    enum hf_stage stage;
    struct hfi_phases phases;
    while (peer_requests(w->peer) == 0)
        run_for(1);
    assert_int_equal(w->t->ops->stage(w->t, attempt), HF_STAGE_WAIT);
    assert_int_equal(w->t->ops->cancel(w->t, attempt, &stage, &phases), HF_SENT_MAYBE);
    assert_int_equal(stage, HF_STAGE_WAIT);
    assert_true(phases.connect_us >= 0 && phases.first_byte_us == -1 && phases.total_us > 0);
    w->open--;
    attempt = begin(&other); /* and one that has not even begun */
    assert_int_equal(w->t->ops->cancel(w->t, attempt, &stage, &phases), HF_SENT_NO);
    w->open--;
    assert_int_equal(get().status, 200);
    assert_false(hung.done || other.done);
    assert_int_equal(peer_requests(w->peer), 2);
}

/* L3, L4: far more than any pool, all at once; the requests are as many as the attempts. */
static void test_many(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    static struct result results[200];
    snprintf(w->url, sizeof w->url, "http://localhost:%d/", peer_port(w->peer));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 200; i++)
            begin(&results[i]);
        run();
        for (size_t i = 0; i < 200; i++)
            assert_int_equal(results[i].status, 200);
    }
    assert_int_equal(peer_requests(w->peer), 600);
    assert_true(peer_connections(w->peer) <= 200); /* the second round reuses */
}

/* A peer that takes the connection and never speaks TLS: nothing was sent, and the stage says where it hangs. */
static void test_silent_tls(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    struct result hung;
    enum hf_stage stage;
    struct hfi_phases phases;
    snprintf(w->url, sizeof w->url, "https://127.0.0.1:%d/", peer_port(w->peer));
    struct hfi_attempt *attempt = begin(&hung);
    for (int i = 0; i < 10000 && w->t->ops->stage(w->t, attempt) != HF_STAGE_TLS; i++)
        run_for(1);
    assert_int_equal(w->t->ops->cancel(w->t, attempt, &stage, &phases), HF_SENT_NO);
    assert_int_equal(stage, HF_STAGE_TLS);
    assert_int_equal(phases.tls_us, -1);
    assert_int_equal(peer_requests(w->peer), 0);
}

/*
 * A peer whose queue of connections is full: the kernel drops each SYN. libcurl closes such a socket without a word,
 * and a watch that stayed on it would end the process. The next attempts get the same descriptor number.
 */
static void test_connect_unanswered(void **state) {
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[4];
    assert_int_equal(bind(full, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(full, 0), 0);
    assert_int_equal(getsockname(full, (struct sockaddr *)&address, &length), 0);
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(fill[i], (struct sockaddr *)&address, length);
    }
    SERVE({.answer = PEER_OK});
    w->spec.connect_timeout_ms = 50;
    for (int i = 0; i < 3; i++) {
        snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
        struct result unanswered = get();
        assert_int_equal(unanswered.native, CURLE_OPERATION_TIMEDOUT);
        assert_int_equal(unanswered.stage, HF_STAGE_CONNECT);
        assert_int_equal(unanswered.sent, HF_SENT_NO);
        run_for(1); /* a round of the loop with whatever watch is left */
        w->spec.connect_timeout_ms = i == 2 ? 5000 : 50;
    }
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/", peer_port(w->peer));
    assert_int_equal(get().status, 200);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(full);
}

/* libcurl says "out of memory" to a header line beyond its limit: it is the peer's fault, and the same next time. */
static void test_long_header_line(void **state) {
    (void)state;
    static char answer[200001] = "HTTP/1.1 200 OK\r\nX-Long: ";
    memset(answer + strlen(answer), 'a', sizeof answer - strlen(answer) - 1);
    SERVE({.answer = answer, .then = PEER_CLOSE});
    struct result result = get();
    assert_int_equal(result.native, CURLE_RECV_ERROR);
    assert_memory_equal(result.message, "Too large response headers", 26);
    assert_string_equal(result.error_type, "");
}

static void test_garbage(void **state) {
    (void)state;
    SERVE({.answer = "what?\r\n\r\n", .then = PEER_CLOSE}, {.then = PEER_CLOSE}, {.then = PEER_RESET});
    assert_int_equal(get().native, CURLE_UNSUPPORTED_PROTOCOL); /* HTTP/0.9 is refused */
    struct result nothing = get();
    assert_int_equal(nothing.native, CURLE_GOT_NOTHING);
    assert_int_equal(nothing.sent, HF_SENT_MAYBE);
    assert_int_equal(get().native, CURLE_RECV_ERROR);
}

static void test_redirect_is_an_answer(void **state) {
    (void)state;
    SERVE({.answer = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"});
    assert_int_equal(get().status, 302);
    assert_int_equal(peer_requests(w->peer), 1);
}

static void test_other_protocols(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    snprintf(w->url, sizeof w->url, "file:///etc/hostname");
    struct result result = get();
    assert_int_equal(result.native, CURLE_UNSUPPORTED_PROTOCOL);
    assert_int_equal(result.sent, HF_SENT_NO);
}

static void test_environment_proxy(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    setenv("http_proxy", "http://127.0.0.1:1/", 1);
    setenv("all_proxy", "http://127.0.0.1:1/", 1);
    assert_int_equal(get().status, 200);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_answer),
        T(test_request_lines),
        T(test_no_silent_resend),
        T(test_truncated_headers),
        T(test_idle_408),
        T(test_body_limit),
        T(test_refused),
        T(test_descriptors),
        T(test_cancel),
        T(test_many),
        T(test_garbage),
        T(test_silent_tls),
        T(test_connect_unanswered),
        T(test_long_header_line),
        T(test_redirect_is_an_answer),
        T(test_other_protocols),
        T(test_environment_proxy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
