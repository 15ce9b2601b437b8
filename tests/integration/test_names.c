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
static bool per_host;          /* … and whether it is one of many hosts */

static int set_up(void **state) {
    (void)state;
    static const struct peer_step ok = {.answer = PEER_OK};
    names_hang();
    open_attempts = ended = 0;
    downstream = NULL;
    per_host = false;
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
    struct hfi_attempt_spec spec = {.url = url,
                                    .method = "GET",
                                    .connect_timeout_ms = 60000,
                                    .backstop_ms = 120000,
                                    .response_limit = 1024,
                                    .downstream = downstream,
                                    .per_host = per_host};
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

/* Begins lookups of slow<first>.test … until as many hang as shall, and gives them up: their threads live on. */
static void hang(const char *whose, int first, int count) {
    static struct result results[HFI_LOOKUPS_MAX];
    struct hfi_attempt *attempts[HFI_LOOKUPS_MAX];
    unsigned before = names_inside();
    char host[32];
    enum hf_stage stage;
    downstream = whose;
    for (int i = 0; i < count; i++) {
        snprintf(host, sizeof host, "slow%d.test", first + i);
        attempts[i] = begin(&results[i], host);
    }
    run_until_inside(before + (unsigned)count);
    for (int i = 0; i < count; i++) {
        assert_false(results[i].done);
        cancel(attempts[i], &stage);
    }
}

static void expect_end(const char *whose, const char *host, const char *error_type) {
    struct result result;
    downstream = whose;
    begin(&result, host);
    s->ops->run(s);
    assert_string_equal(result.error_type, error_type);
    assert_int_equal(result.status, error_type[0] ? 0 : 200);
    assert_int_equal(result.sent, error_type[0] ? HF_SENT_NO : HF_SENT_YES);
    if (error_type[0])
        assert_int_equal(result.stage, HF_STAGE_LOCAL);
}

/* 2.3: at most 4 unresolved lookups of one downstream, whatever the names; one more is refused, and others are not
   harmed. */
static void test_limit_per_downstream(void **state) {
    (void)state;
    hang("api", 0, 3);
    hang("api", 7, HFI_LOOKUPS_PER_DOWNSTREAM - 3);
    expect_end("api", "fast.test", "local.lookups");
    expect_end("api", "slow0.test", "local.lookups");
    expect_end("shop", "fast.test", "");
    expect_end("api", "fast.test", ""); /* known by now */
    assert_int_equal(names_count(), HFI_LOOKUPS_PER_DOWNSTREAM + 1);
    names_let_go();
    while (hfi_lookup_count(hfi_mono_now()) > 0) /* all threads gone */
        continue;
    expect_end("api", "slow0.test", "");
}

/* … and 4 of one host, of none or of a downstream with many, where each is one of its own. */
static void test_limit_per_host(void **state) {
    (void)state;
    static const char *const whose[] = {NULL, "hooks"};
    for (size_t i = 0; i < 2; i++) {
        per_host = i == 1;
        for (unsigned n = 0; n < HFI_LOOKUPS_PER_DOWNSTREAM; n++)
            hang(whose[i], 0, 1);
        expect_end(whose[i], "slow0.test", "local.lookups");
        expect_end(whose[i], i == 0 ? "fast0.test" : "fast1.test", "");
    }
    assert_int_equal(names_inside(), 2 * HFI_LOOKUPS_PER_DOWNSTREAM);
}

/* All hosts of one per_host downstream have 16, all such downstreams 24: full of dead names, they leave 8 to others. */
static void test_limit_of_many_hosts(void **state) {
    (void)state;
    per_host = true;
    hang("hooks", 0, HFI_LOOKUPS_PER_GROUP);
    expect_end("hooks", "fast.test", "local.lookups");
    expect_end("mails", "fast2.test", "");
    hang("mails", 100, HFI_LOOKUPS_OF_GROUPS - HFI_LOOKUPS_PER_GROUP);
    expect_end("mails", "fast.test", "local.lookups");
    expect_end("other", "fast.test", "local.lookups");
    per_host = false;
    hang("api", 200, HFI_LOOKUPS_PER_DOWNSTREAM);
    expect_end("shop", "fast.test", "");
    hang("shop", 300, HFI_LOOKUPS_PER_DOWNSTREAM);
    assert_int_equal(names_inside(), HFI_LOOKUPS_MAX);
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
                                       T(test_next_in_line), T(test_limit_per_downstream), T(test_limit_per_host),
                                       T(test_limit_of_many_hosts), T(test_limit_per_process)};
    if (names_start())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
