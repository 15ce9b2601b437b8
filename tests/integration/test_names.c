/* SPDX-License-Identifier: MIT */
/* Name lookups that hang, on the transport (L2, pitfalls 1.1-1). */
#include "support/support.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loop/loop.h"
#include "resilience/http/http.h"
#include "resilience/http/lookups.h"
#include "support/names.h"
#include "support/peer.h"

struct result {
    bool done;
    int native, status, order;
    char error_type[64];
    enum hf_stage stage;
    enum hf_sent sent;
};
static struct hfi_scheduler *s;
static struct hfi_transport *t;
static struct peer *peer;
static int open_attempts, ended;
static const char *downstream; /* of the attempts that begin; NULL: none */

static int set_up(void **state) {
    (void)state;
    static const struct peer_step ok = {.answer = PEER_OK};
    names_hang();
    open_attempts = ended = 0;
    downstream = NULL;
    peer = peer_new(&ok, 1);
    return peer && hfi_loop_new(&s) == 0 && hfi_curl_transport_new(s, &t, NULL) == 0 ? 0 : -1;
}

/* After every test: the detached threads end, and the count of lookups comes back to none. */
static int tear_down(void **state) {
    (void)state;
    t->ops->close(t);
    s->ops->close(s);
    peer_free(peer);
    names_let_go();
    names_wait();
    return hfi_lookup_count(hfi_mono_now()) == 0 ? 0 : -1;
}

static void keep(const struct hfi_attempt_facts *facts, void *user) {
    struct result *result = user;
    result->done = true;
    result->native = facts->native;
    result->status = facts->status;
    result->stage = facts->stage;
    result->sent = facts->sent;
    result->order = ++ended;
    snprintf(result->error_type, sizeof result->error_type, "%s", facts->error_type ? facts->error_type : "");
    if (--open_attempts == 0)
        s->ops->stop(s);
}

static struct hfi_attempt *begin(struct result *result, const char *host) {
    char url[128];
    struct hfi_attempt_spec spec = {
        .url = url, .method = "GET", .connect_timeout_ms = 60000, .backstop_ms = 120000, .response_limit = 1024,
        .downstream = downstream};
    struct hfi_attempt *attempt = NULL;
    snprintf(url, sizeof url, "http://%s:%d/", host, peer_port(peer));
    memset(result, 0, sizeof *result);
    assert_int_equal(t->ops->start(t, &spec, keep, result, &attempt), 0);
    open_attempts++;
    return attempt;
}

static enum hf_sent cancel(struct hfi_attempt *attempt, enum hf_stage *stage) {
    struct hfi_phases phases;
    open_attempts--;
    return t->ops->cancel(t, attempt, stage, &phases);
}

static void on_stop(struct hfi_timer *timer, void *user) {
    (void)timer;
    (void)user;
    s->ops->stop(s);
}
/* Runs until `count` lookups are inside getaddrinfo. */
static void run_until_inside(unsigned count) {
    struct hfi_timer timer;
    hfi_timer_init(&timer, on_stop, NULL);
    for (int i = 0; i < 10000 && names_inside() < count; i++) {
        s->ops->arm(s, &timer, hfi_mono_after_ms(s->ops->mono(s), 1));
        s->ops->run(s);
    }
    assert_int_equal(names_inside(), count);
}

/* L2: what hangs holds up nobody, and giving it up does not wait for the resolver. */
static void test_hang(void **state) {
    (void)state;
    struct result hung, other;
    enum hf_stage stage;
    struct hfi_attempt *attempt = begin(&hung, "slow.test");
    run_until_inside(1);
    begin(&other, "127.0.0.1");
    assert_int_equal(t->ops->stage(t, attempt), HF_STAGE_RESOLVE);
    assert_int_equal(cancel(attempt, &stage), HF_SENT_NO);
    assert_int_equal(stage, HF_STAGE_RESOLVE);
    s->ops->run(s);
    assert_int_equal(other.status, 200);
    assert_false(hung.done);
    assert_int_equal(names_inside(), 1);                   /* all this while the resolver hung */
    assert_int_equal(hfi_lookup_count(hfi_mono_now()), 1); /* its thread lives on, and is counted */
}

/* One lookup serves all who start at once; none of them is refused. */
static void test_shared(void **state) {
    (void)state;
    struct result results[50];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 50; i++)
            begin(&results[i], "Fast.test");
        s->ops->run(s);
        for (size_t i = 0; i < 50; i++)
            assert_int_equal(results[i].status, 200);
    }
    assert_int_equal(names_count(), 1);
    assert_int_equal(hfi_lookup_count(hfi_mono_now()), 0);
}

static void test_shared_failure(void **state) {
    (void)state;
    struct result results[10];
    for (size_t i = 0; i < 10; i++)
        begin(&results[i], "bad.test");
    s->ops->run(s);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(results[i].native, CURLE_COULDNT_RESOLVE_HOST);
        assert_int_equal(results[i].stage, HF_STAGE_RESOLVE);
        assert_int_equal(results[i].sent, HF_SENT_NO);
        assert_string_equal(results[i].error_type, "");
    }
    assert_int_equal(names_count(), 1);
}

/* Who waited for a lookup that was given up asks by itself. */
static void test_next_in_line(void **state) {
    (void)state;
    struct result first, second;
    enum hf_stage stage;
    struct hfi_attempt *leader = begin(&first, "slow.test");
    begin(&second, "slow.test");
    run_until_inside(1);
    cancel(leader, &stage);
    run_until_inside(2);
    names_let_go();
    s->ops->run(s);
    assert_int_equal(second.status, 200);
}

/* At most 4 unresolved lookups for one host; one more is refused here, and others are not harmed. */
static void test_limit_per_host(void **state) {
    (void)state;
    struct result results[5], other;
    enum hf_stage stage;
    for (unsigned i = 0; i < HFI_LOOKUPS_PER_HOST; i++) {
        struct hfi_attempt *attempt = begin(&results[i], "slow.test");
        run_until_inside(i + 1);
        cancel(attempt, &stage);
    }
    begin(&results[4], "slow.test");
    s->ops->run(s);
    assert_string_equal(results[4].error_type, "local.lookups");
    assert_int_equal(results[4].sent, HF_SENT_NO);
    assert_int_equal(results[4].stage, HF_STAGE_LOCAL);
    begin(&other, "fast.test");
    s->ops->run(s);
    assert_int_equal(other.status, 200);
    assert_int_equal(names_count(), HFI_LOOKUPS_PER_HOST + 1);
    names_let_go();
    while (hfi_lookup_count(hfi_mono_now()) > 0) /* all threads gone */
        continue;
    begin(&results[4], "slow.test");
    s->ops->run(s);
    assert_int_equal(results[4].status, 200);
}

/* One downstream with many dead names leaves lookups for the others. */
static void test_limit_per_downstream(void **state) {
    (void)state;
    static struct result results[HFI_LOOKUPS_PER_DOWNSTREAM], refused, other;
    struct hfi_attempt *attempts[HFI_LOOKUPS_PER_DOWNSTREAM];
    char host[32];
    enum hf_stage stage;
    downstream = "hooks";
    for (int i = 0; i < HFI_LOOKUPS_PER_DOWNSTREAM; i++) {
        snprintf(host, sizeof host, "slow%d.test", i);
        attempts[i] = begin(&results[i], host);
    }
    run_until_inside(HFI_LOOKUPS_PER_DOWNSTREAM);
    for (int i = 0; i < HFI_LOOKUPS_PER_DOWNSTREAM; i++)
        cancel(attempts[i], &stage);
    begin(&refused, "fast.test");
    s->ops->run(s);
    assert_string_equal(refused.error_type, "local.lookups");
    downstream = "api";
    begin(&other, "fast.test");
    s->ops->run(s);
    assert_int_equal(other.status, 200);
    downstream = "hooks";
    begin(&refused, "fast.test"); /* known by now */
    s->ops->run(s);
    assert_int_equal(refused.status, 200);
}

static void test_limit_per_process(void **state) {
    (void)state;
    static struct result results[HFI_LOOKUPS_MAX + 1];
    struct hfi_attempt *attempts[HFI_LOOKUPS_MAX];
    char host[32];
    enum hf_stage stage;
    for (int i = 0; i < HFI_LOOKUPS_MAX; i++) {
        snprintf(host, sizeof host, "slow%d.test", i);
        attempts[i] = begin(&results[i], host);
    }
    run_until_inside(HFI_LOOKUPS_MAX);
    for (int i = 0; i < HFI_LOOKUPS_MAX; i++)
        cancel(attempts[i], &stage);
    begin(&results[HFI_LOOKUPS_MAX], "fast.test");
    s->ops->run(s);
    assert_string_equal(results[HFI_LOOKUPS_MAX].error_type, "local.lookups");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_hang),         T(test_shared),         T(test_shared_failure),
                                       T(test_next_in_line), T(test_limit_per_host), T(test_limit_per_downstream),
                                       T(test_limit_per_process)};
    if (names_start())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
