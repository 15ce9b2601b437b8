/* SPDX-License-Identifier: MIT */
/*
 * The engine when the loop below it fails: all attempts end with a reason of our own, nothing is sent twice, and the
 * next attempts run on a handle made anew. The scheduler is the real one with operations that fail when told to.
 */
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop.h"
#include "resilience/classify.h"
#include "resilience/http/http.h"
#include "support/peer.h"

#define WATCHDOG_MS 30000

struct result {
    bool done;
    int status;
    char error_type[64], message[128];
    enum hf_stage stage;
    enum hf_sent sent;
    struct hf_outcome outcome;
};

struct world {
    struct hfi_scheduler *s;
    const struct hfi_scheduler_ops *real;
    struct hfi_scheduler_ops ops;
    struct hfi_transport *t;
    struct peer *peer;
    struct hfi_timer timer;
    bool late;
    int open, bad_watches, bad_changes, bad_arms; /* so many of the next ones fail */
    char url[64];
};
static struct world *w;

static int bad_watch(struct hfi_scheduler *self, int fd, unsigned events, hfi_watch_fn ready, void *user,
                     struct hfi_watch **watch) {
    if (w->bad_watches > 0 && w->bad_watches--)
        return HF_ENOMEM;
    return w->real->watch(self, fd, events, ready, user, watch);
}

static int bad_change(struct hfi_scheduler *self, struct hfi_watch *watch, unsigned events) {
    if (w->bad_changes > 0 && w->bad_changes--)
        return HF_EIO;
    return w->real->change(self, watch, events);
}

static int bad_arm(struct hfi_scheduler *self, struct hfi_timer *timer, struct hf_mono at) {
    if (w->bad_arms > 0 && timer != &w->timer && w->bad_arms--)
        return HF_ENOMEM;
    return w->real->arm(self, timer, at);
}

static void on_timer(struct hfi_timer *timer, void *user) {
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
    w->real = w->s->ops;
    w->ops = *w->real;
    w->ops.watch = bad_watch;
    w->ops.change = bad_change;
    w->ops.arm = bad_arm;
    w->s->ops = &w->ops;
    hfi_timer_init(&w->timer, on_timer, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    w->t->ops->close(w->t);
    w->s->ops->disarm(w->s, &w->timer);
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
    assert_false(result->done); /* once */
    result->done = true;
    result->status = facts->status;
    snprintf(result->error_type, sizeof result->error_type, "%s", facts->error_type ? facts->error_type : "");
    snprintf(result->message, sizeof result->message, "%s", facts->message);
    result->stage = facts->stage;
    result->sent = facts->sent;
    hfi_classify_attempt(facts, (struct hf_wall){0}, false, &result->outcome);
    if (--w->open == 0)
        w->s->ops->stop(w->s);
}

static void begin(struct result *result) {
    struct hfi_attempt_spec spec = {
        .url = w->url, .method = "GET", .connect_timeout_ms = 5000, .backstop_ms = 120000, .response_limit = 1024};
    struct hfi_attempt *attempt = NULL;
    memset(result, 0, sizeof *result);
    w->open++;
    assert_int_equal(w->t->ops->start(w->t, &spec, keep, result, &attempt), 0);
    assert_false(result->done); /* never inside start */
}

/* Runs until all attempts have ended, or for `ms` if that is given. */
static void run(int64_t ms) {
    w->late = false;
    w->s->ops->arm(w->s, &w->timer, hfi_mono_after_ms(w->s->ops->mono(w->s), ms ? ms : WATCHDOG_MS));
    w->s->ops->run(w->s);
    w->s->ops->disarm(w->s, &w->timer);
    assert_true(ms > 0 || !w->late);
}

static void assert_ours(const struct result *result, enum hf_sent sent) {
    assert_true(result->done);
    assert_string_equal(result->error_type, "local.engine");
    assert_string_equal(result->message, "the HTTP engine failed and was rebuilt");
    assert_int_equal(result->sent, sent);
    assert_int_equal(result->outcome.klass, HF_CLASS_TRANSIENT);
    assert_int_equal(result->outcome.verdict, HF_VERDICT_NEUTRAL); /* never the peer's fault */
}

static unsigned open_descriptors(void) {
    unsigned count = 0;
    for (int fd = 0; fd < 512; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* One hangs at its peer, three are on their way: all are lost with the handle, each once, each with what it sent. */
static void test_a_watch_fails(void **state) {
    (void)state;
    struct result hung, next[3], after;
    SERVE({.then = PEER_HANG}, {.answer = PEER_OK});
    begin(&hung);
    for (int i = 0; i < 10000 && peer_requests(w->peer) == 0; i++)
        run(1);
    assert_int_equal(peer_requests(w->peer), 1);
    w->bad_watches = 1;
    for (int i = 0; i < 3; i++)
        begin(&next[i]);
    run(0);
    assert_ours(&hung, HF_SENT_MAYBE);
    assert_int_equal(hung.stage, HF_STAGE_WAIT);
    for (int i = 0; i < 3; i++) {
        assert_ours(&next[i], HF_SENT_NO);
        assert_int_equal(next[i].stage, HF_STAGE_LOCAL);
    }
    for (int round = 0; round < 2; round++) {
        begin(&after);
        run(0);
        assert_int_equal(after.status, 200);
    }
    assert_int_equal(peer_requests(w->peer), 3); /* requests seen == attempts that were sent */
    assert_int_equal(peer_connections(w->peer) >= 2, 1);
}

/* The watch of an open connection cannot be changed: as above, though the request was answered or is on its way. */
static void test_a_change_fails(void **state) {
    (void)state;
    struct result result;
    SERVE({.answer = PEER_OK});
    unsigned failed = 0;
    for (int i = 0; i < 20; i++) {
        w->bad_changes = i < 10; /* of a fresh connection: an open one is watched already */
        begin(&result);
        run(0);
        w->bad_changes = 0;
        if (result.error_type[0])
            assert_ours(&result, result.sent);
        else
            assert_int_equal(result.status, 200);
        failed += result.status != 200;
    }
    assert_true(failed > 0);
    assert_true(peer_requests(w->peer) <= 20);
}

/* libcurl's own timer cannot be armed: told in the same way, never waited for in vain. */
static void test_a_timer_fails(void **state) {
    (void)state;
    struct result results[2];
    SERVE({.answer = PEER_OK});
    w->bad_arms = 1;
    begin(&results[0]);
    run(0);
    assert_ours(&results[0], HF_SENT_NO);
    begin(&results[1]);
    run(0);
    assert_int_equal(results[1].status, 200);
    assert_int_equal(peer_requests(w->peer), 1);
}

/* A hundred rebuilds leave no descriptor behind. */
static void test_nothing_leaks(void **state) {
    (void)state;
    struct result result;
    unsigned before = open_descriptors();
    SERVE({.answer = PEER_OK});
    for (int i = 0; i < 100; i++) {
        w->bad_watches = 1;
        begin(&result);
        run(0);
        assert_ours(&result, HF_SENT_NO);
    }
    assert_int_equal(peer_requests(w->peer), 0);
    peer_free(w->peer); /* it has descriptors of its own in this process */
    w->peer = NULL;
    assert_int_equal(open_descriptors(), before);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_a_watch_fails), T(test_a_change_fails), T(test_a_timer_fails),
                                       T(test_nothing_leaks)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
