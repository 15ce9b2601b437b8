/* SPDX-License-Identifier: MIT */
/* What every transport keeps: libcurl against a real socket, and the scripted one on virtual time. */
#include "support/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop.h"
#include "resilience/http/http.h"
#include "sim/scripted.h"
#include "sim/virtual.h"
#include "support/peer.h"

enum kind { CURL_KIND, SCRIPTED_KIND };
static enum kind kinds[] = {CURL_KIND, SCRIPTED_KIND};

enum step { ANSWER, BUSY, CUT, HANG };

struct world {
    enum kind kind;
    struct hfi_scheduler *s;
    struct hfi_transport *t;
    struct peer *peer;
    char url[64];
    bool inside; /* a call into the transport is on the stack: no callback may run */
    int open;
};
static struct world *w;

static int set_up(void **state) {
    w = calloc(1, sizeof *w);
    w->kind = *(enum kind *)*state;
    if (w->kind == CURL_KIND)
        return hfi_loop_new(&w->s) == 0 ? hfi_curl_transport_new(w->s, &w->t, NULL) : -1;
    return hfi_virtual_new((struct hf_mono){1000000}, (struct hf_wall){INT64_C(1700000000000000)}, &w->s);
}

static int tear_down(void **state) {
    (void)state;
    w->t->ops->close(w->t);
    w->s->ops->close(w->s);
    peer_free(w->peer);
    free(w);
    return 0;
}

static void play(const enum step *steps, size_t count) {
    static const char busy[] = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nX-Test: yes\r\nContent-Length: 3\r\n\r\nno!";
    static const struct hf_header headers[] = {{"Retry-After", "7"}, {"X-Test", "yes"}, {"Content-Length", "3"}};
    struct peer_step told[8] = {0};
    struct hfi_script_step script[8];
    for (size_t i = 0; i < count; i++) {
        told[i].answer = steps[i] == ANSWER ? PEER_OK : steps[i] == BUSY ? busy : NULL;
        told[i].then = steps[i] == CUT ? PEER_CLOSE : steps[i] == HANG ? PEER_HANG : PEER_KEEP;
        script[i] = hfi_script_status(1, steps[i] == ANSWER ? 200 : 503);
        script[i].facts.body = steps[i] == ANSWER ? "ok" : "no!";
        script[i].facts.body_length = steps[i] == ANSWER ? 2 : 3;
        if (steps[i] == BUSY) {
            script[i].facts.headers = headers;
            script[i].facts.header_count = 3;
            script[i].facts.retry_after = "7";
        }
        if (steps[i] == CUT)
            script[i] = hfi_script_code(1, 52, HF_SENT_MAYBE);
        if (steps[i] == HANG)
            script[i] = hfi_script_hang(true);
    }
    if (w->kind == SCRIPTED_KIND) {
        struct hfi_scripted *scripted = NULL;
        assert_int_equal(hfi_scripted_new(w->s, script, count, &scripted), 0);
        w->t = hfi_scripted_transport(scripted);
        snprintf(w->url, sizeof w->url, "http://example.test/");
        return;
    }
    w->peer = peer_new(told, count);
    assert_non_null(w->peer);
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/", peer_port(w->peer));
}
#define PLAY(...) play((enum step[]){__VA_ARGS__}, sizeof(enum step[]){__VA_ARGS__} / sizeof(enum step))

struct seen {
    int count, status, native;
    enum hf_sent sent;
    enum hf_stage stage;
    char body[16], retry_after[16], header[16];
    int64_t total_us;
    void (*then)(struct seen *seen);
    struct hfi_attempt *attempt;
};

static void keep(const struct hfi_attempt_facts *facts, void *user) {
    struct seen *seen = user;
    assert_false(w->inside);
    seen->count++;
    seen->status = facts->status;
    seen->native = facts->native;
    seen->sent = facts->sent;
    seen->stage = facts->stage;
    seen->total_us = facts->phases.total_us;
    snprintf(seen->body, sizeof seen->body, "%.*s", (int)facts->body_length,
             facts->body_length ? (const char *)facts->body : "");
    snprintf(seen->retry_after, sizeof seen->retry_after, "%s", facts->retry_after ? facts->retry_after : "");
    for (size_t i = 0; i < facts->header_count; i++)
        if (strcmp(facts->headers[i].name, "X-Test") == 0)
            snprintf(seen->header, sizeof seen->header, "%s", facts->headers[i].value);
    w->open--;
    if (seen->then)
        seen->then(seen);
    if (w->open == 0)
        w->s->ops->stop(w->s);
}

static void begin(struct seen *seen) {
    struct hfi_attempt_spec spec = {
        .url = w->url, .method = "GET", .connect_timeout_ms = 20000, .backstop_ms = 60000, .response_limit = 1000};
    w->inside = true;
    w->open++;
    assert_int_equal(w->t->ops->start(w->t, &spec, keep, seen, &seen->attempt), 0);
    w->inside = false;
}

static enum hf_sent cancel(struct seen *seen, enum hf_stage *stage) {
    struct hfi_phases phases;
    w->inside = true;
    w->open--;
    enum hf_sent sent = w->t->ops->cancel(w->t, seen->attempt, stage, &phases);
    w->inside = false;
    assert_true(phases.total_us >= 0);
    return sent;
}

static void test_answers(void **state) {
    (void)state;
    PLAY(ANSWER, BUSY);
    struct seen first = {0}, second = {0};
    begin(&first);
    w->s->ops->run(w->s);
    begin(&second);
    w->s->ops->run(w->s);
    assert_int_equal(first.count, 1);
    assert_int_equal(first.status, 200);
    assert_string_equal(first.body, "ok");
    assert_int_equal(first.sent, HF_SENT_YES);
    assert_true(first.total_us > 0);
    assert_int_equal(second.status, 503);
    assert_string_equal(second.body, "no!");
    assert_string_equal(second.retry_after, "7");
    assert_string_equal(second.header, "yes");
    assert_int_equal(second.stage, HF_STAGE_RECEIVE);
}

static void test_cut(void **state) {
    (void)state;
    PLAY(CUT);
    struct seen seen = {0};
    begin(&seen);
    w->s->ops->run(w->s);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.native, 52);
    assert_int_equal(seen.status, 0);
    assert_int_equal(seen.sent, HF_SENT_MAYBE);
    assert_int_equal(seen.stage, HF_STAGE_WAIT);
}

static void begin_next(struct seen *seen) {
    begin(seen + 1);
}

/* From inside `done` the next one may start. */
static void test_start_from_done(void **state) {
    (void)state;
    PLAY(BUSY, ANSWER);
    struct seen seen[2] = {{.then = begin_next}, {0}};
    begin(&seen[0]);
    w->s->ops->run(w->s);
    assert_int_equal(seen[0].status, 503);
    assert_int_equal(seen[1].status, 200);
}

static struct seen *pair;
static void cancel_other(struct seen *seen) {
    enum hf_stage stage;
    cancel(seen == &pair[0] ? &pair[1] : &pair[0], &stage);
}

static void on_stop(struct hfi_timer *timer, void *user) {
    (void)timer;
    (void)user;
    w->s->ops->stop(w->s);
}
static void run_for(int64_t ms) {
    struct hfi_timer timer;
    hfi_timer_init(&timer, on_stop, NULL);
    assert_int_equal(w->s->ops->arm(w->s, &timer, hfi_mono_after_ms(w->s->ops->mono(w->s), ms)), 0);
    w->s->ops->run(w->s);
}

/* From inside `done` another one may be cancelled: it is never heard of again. */
static void test_cancel_from_done(void **state) {
    (void)state;
    PLAY(ANSWER, HANG);
    struct seen seen[2] = {{.then = cancel_other}, {.then = cancel_other}};
    pair = seen;
    begin(&seen[0]);
    begin(&seen[1]);
    w->s->ops->run(w->s);
    run_for(5);
    assert_int_equal(seen[0].count + seen[1].count, 1);
}

/* One that has not begun to do anything sent nothing. */
static void test_cancel_at_once(void **state) {
    (void)state;
    PLAY(ANSWER, ANSWER);
    struct seen seen = {0}, next = {0};
    enum hf_stage stage;
    begin(&seen);
    enum hf_sent sent = cancel(&seen, &stage);
    if (w->kind == CURL_KIND) {
        assert_int_equal(sent, HF_SENT_NO);
        assert_true(stage < HF_STAGE_SEND);
    }
    begin(&next);
    w->s->ops->run(w->s);
    assert_int_equal(next.count, 1);
    assert_int_equal(seen.count, 0);
}

/* It hangs until it is cancelled, which says how far it came; asking for the stage changes nothing. */
static void test_hang(void **state) {
    (void)state;
    PLAY(HANG);
    struct seen seen = {0};
    enum hf_stage stage;
    begin(&seen);
    for (int i = 0; i < 10000 && w->t->ops->stage(w->t, seen.attempt) != HF_STAGE_WAIT; i++)
        run_for(1);
    assert_int_equal(w->t->ops->stage(w->t, seen.attempt), HF_STAGE_WAIT);
    assert_int_equal(w->t->ops->stage(w->t, seen.attempt), HF_STAGE_WAIT);
    assert_int_equal(cancel(&seen, &stage), HF_SENT_MAYBE);
    assert_int_equal(stage, HF_STAGE_WAIT);
    assert_int_equal(seen.count, 0);
}

int main(void) {
#define ON(name, kind)                                                                                                 \
    { #name " " #kind, name, set_up, tear_down, &kinds[kind] }
#define BOTH(name) ON(name, CURL_KIND), ON(name, SCRIPTED_KIND)
    const struct CMUnitTest tests[] = {
        BOTH(test_answers),        BOTH(test_cut),  BOTH(test_start_from_done), BOTH(test_cancel_from_done),
        BOTH(test_cancel_at_once), BOTH(test_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
