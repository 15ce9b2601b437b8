/* SPDX-License-Identifier: MIT */
/* `per_host` downstreams through the call, on virtual time and a scripted transport: B30, B31, B32. */
#include <string.h>

#include "base/alloc.h"
#include "resilience/call_internal.h"
#include "support/call_world.h"
#include "support/support.h"

static struct hf_request at(const char *url) {
    struct hf_request request = hf_request_to("hooks", "POST", "");
    request.url = url;
    request.idempotency_key = "k";
    request.no_retry = true;
    return request;
}

static struct call_end call(const char *url) {
    struct hf_request request = at(url);
    return call_once(&request);
}

/* dead.test is dead, all others are well. */
static struct hfi_script_step one_is_dead(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)number;
    (void)user;
    return hfi_script_status(1, strcasestr(spec->url, "//dead.test") ? 500 : 200);
}

static void open_world(void) {
    world->options = hf_downstream_at("hooks", NULL);
    world->options.policy = &world->policy;
    world->options.per_host = true;
    call_world_open_with(one_is_dead, NULL);
}

static struct hf_downstream *host(const char *url) {
    struct hf_downstream *downstream = NULL;
    assert_int_equal(hfi_caller_host(world->caller, "hooks", url, &downstream, NULL), 0);
    return downstream;
}

static enum hf_breaker_state state_of(struct hf_downstream *downstream) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(downstream, world->s->ops->mono(world->s), &view);
    return view.state;
}

/* B30: one dead host opens its own breaker; all spellings of it are one; the others go on. */
static void b30_a_dead_host_hurts_no_other(void **state) {
    (void)state;
    static const char *const spellings[] = {"http://dead.test/a", "HTTP://Dead.Test:80/b?c", "http://dead.test./"};
    open_world();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(call(spellings[i % 3]).status, 500);
        assert_int_equal(call("http://well.test/x?y=z").status, 200);
    }
    struct call_end end = call("http://dead.test/");
    assert_string_equal(end.outcome.error_type, "breaker.open");
    assert_int_equal(end.outcome.attempts, 0);
    assert_int_equal(call("http://well.test/").status, 200);
    assert_int_equal(call("http://other.test/").status, 200);
    assert_string_equal(call("http://dead.test:81/").outcome.error_type, "http.500"); /* another port, another server */
    struct hf_downstream *dead = host("http://dead.test"), *well = host("http://well.test");
    assert_int_equal(state_of(dead), HF_BREAKER_OPEN);
    assert_int_equal(state_of(well), HF_BREAKER_CLOSED);
    assert_int_equal(state_of(world->d), HF_BREAKER_CLOSED);
    assert_string_equal(hf_downstream_host(dead), "http://dead.test");
    hf_downstream_unref(dead);
    hf_downstream_unref(well);
    assert_string_equal(hfi_scripted_record(world->script, 1)->url, "http://well.test/x?y=z"); /* as given */
}

static void count_end(struct hf_response *response, void *user) {
    ++*(int *)user;
    hf_response_free(response);
}

static int refused(const struct hf_request *request, char *text, size_t room) {
    struct hfi_call *made = NULL;
    struct hf_error error;
    hf_error_init(&error);
    int rc = hfi_call_new(world->caller, request, count_end, NULL, &made, &error);
    hf_error_print(&error, text, room);
    hfi_call_discard(made);
    return rc;
}

static void what_is_no_target_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {NULL, "", "/x", "ftp://h.test", "http://user:secret@h.test", "http://secret@h.test",
                                      "http://h.test/#secret", "http://h.test/\r\nX: secret", "http://[fe80::1%25lo]/",
                                      "http://2130706433/secret", "http://0x7f.1", "http://h.test:99999"};
    char text[512];
    open_world();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_request request = at(bad[i]);
        if (refused(&request, text, sizeof text) != HF_EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_null(strstr(text, "secret"));
    }
    struct hf_request request = at("http://h.test");
    request.path = "/x";
    assert_int_equal(refused(&request, text, sizeof text), HF_EINVAL);
    request.path = "";
    request.query = "a=b";
    assert_int_equal(refused(&request, text, sizeof text), HF_EINVAL);
    struct hf_downstream *downstream;
    assert_int_equal(hfi_caller_host(world->caller, "nobody", "http://h", &downstream, NULL), HF_ENOENT);
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://", &downstream, NULL), HF_EINVAL);
    assert_int_equal(hfi_scripted_started(world->script), 0);
}

static void a_url_needs_per_host(void **state) {
    (void)state;
    char text[512];
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    struct hf_request request = call_get();
    struct hf_downstream *downstream;
    request.url = "http://elsewhere.test/";
    assert_int_equal(refused(&request, text, sizeof text), HF_EINVAL);
    assert_non_null(strstr(text, "per_host"));
    assert_int_equal(hfi_caller_host(world->caller, "d", "http://h", &downstream, NULL), HF_EINVAL);
}

static void options_are_checked(void **state) {
    (void)state;
    struct hf_downstream_options options = hf_downstream_at("hooks", NULL);
    assert_int_equal(hf_downstream_check(&options, NULL), HF_EINVAL); /* no url */
    options.per_host = true;
    assert_int_equal(hf_downstream_check(&options, NULL), 0);
    options.url = "http://h.test";
    assert_int_equal(hf_downstream_check(&options, NULL), HF_EINVAL);
    options.url = NULL;
    options.probe_path = "/healthz";
    assert_int_equal(hf_downstream_check(&options, NULL), HF_EINVAL);
    options.probe_path = NULL;
    options.hosts_max = 0;
    assert_int_equal(hf_downstream_check(&options, NULL), HF_EINVAL);
    options.hosts_max = 1000001;
    assert_int_equal(hf_downstream_check(&options, NULL), HF_EINVAL);
    options.hosts_max = 1000000;
    assert_int_equal(hf_downstream_check(&options, NULL), 0);
}

/* The downstream's headers go to every host, without a copy for each. */
static void headers_go_to_every_host(void **state) {
    (void)state;
    struct hf_header header = {"X-Source", "shop"};
    world->options = hf_downstream_at("hooks", NULL);
    world->options.policy = &world->policy;
    world->options.per_host = true;
    world->options.headers = &header;
    world->options.header_count = 1;
    call_world_open_with(one_is_dead, NULL);
    call("http://a.test");
    assert_string_equal(hfi_scripted_header(world->script, "X-Source"), "shop");
    call("http://b.test");
    assert_string_equal(hfi_scripted_header(world->script, "X-Source"), "shop");
    assert_string_equal(hfi_scripted_header(world->script, "Idempotency-Key"), "k");
}

/* Isolating the downstream isolates its hosts, also new ones, until it is over; breakers of hosts stay as they are. */
static void isolating_the_downstream_isolates_all_hosts(void **state) {
    (void)state;
    open_world();
    assert_int_equal(call("http://a.test").status, 200);
    hfi_breaker_isolate(&world->d->breaker, world->s->ops->mono(world->s), 60000, "maintenance");
    struct call_end end = call("http://a.test");
    assert_string_equal(end.outcome.error_type, "breaker.isolated");
    assert_in_range(end.outcome.retry_after_ms, 59000, 60000);
    assert_string_equal(call("http://new.test").outcome.error_type, "breaker.isolated");
    assert_int_equal(hfi_scripted_started(world->script), 1);
    hfi_virtual_advance(world->s, 60001);
    assert_int_equal(call("http://a.test").status, 200);
    hfi_breaker_isolate(&world->d->breaker, world->s->ops->mono(world->s), 0, "by hand");
    assert_string_equal(call("http://a.test").outcome.error_type, "breaker.isolated");
    hfi_breaker_close(&world->d->breaker, world->s->ops->mono(world->s));
    assert_int_equal(call("http://a.test").status, 200);
    /* One host alone. */
    struct hf_downstream *a = host("http://a.test");
    hfi_breaker_isolate(&a->breaker, world->s->ops->mono(world->s), 0, "this one");
    hf_downstream_unref(a);
    assert_string_equal(call("http://a.test").outcome.error_type, "breaker.isolated");
    assert_int_equal(call("http://b.test").status, 200);
}

/* B31: at the cap further hosts share one breaker, and are served. */
static void b31_overflow_shares_one_breaker(void **state) {
    (void)state;
    world->options = hf_downstream_at("hooks", NULL);
    world->options.policy = &world->policy;
    world->options.per_host = true;
    world->options.hosts_max = 2;
    call_world_open_with(one_is_dead, NULL);
    assert_int_equal(call("http://a.test").status, 200);
    assert_int_equal(call("http://b.test").status, 200);
    for (int i = 0; i < 20; i++)
        assert_int_equal(call("http://dead.test").status, 500);
    assert_int_equal(state_of(world->d), HF_BREAKER_OPEN);
    assert_string_equal(call("http://c.test").outcome.error_type, "breaker.open");
    assert_int_equal(call("http://a.test").status, 200); /* it has its own */
    struct hf_downstream *downstream = NULL;
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://c.test", &downstream, NULL), HF_EBUSY);
    hfi_virtual_advance(world->s, 61000); /* a and b are idle */
    assert_int_equal(call("http://c.test").status, 200);
    downstream = host("http://c.test");
    hf_downstream_unref(downstream);
}

/* Every host has its own bulkhead, with its own queue. */
static void hosts_have_their_own_bulkhead(void **state) {
    (void)state;
    struct call_end hanging, waiting, other;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 1;
    open_world();
    struct hf_request a = at("http://a.test"), b = at("http://b.test");
    assert_int_equal(call_start(&hanging, &a), 0);
    assert_int_equal(call_start(&waiting, &a), 0);
    assert_int_equal(call_start(&other, &b), 0);
    assert_int_equal(hfi_scripted_open(world->script), 2);
    call_run();
    assert_int_equal(hanging.status, 200);
    assert_int_equal(waiting.status, 200);
    assert_int_equal(other.status, 200);
}

static void collect(struct hf_downstream *downstream, void *user) {
    char *text = user;
    const char *of = hf_downstream_host(downstream);
    strcat(strcat(text, of ? of : hf_downstream_name(downstream)), " ");
    /* It may call everything. */
    struct hf_downstream *again = hfi_caller_downstream(world->caller, "hooks");
    assert_ptr_equal(again, world->d);
    hf_downstream_unref(again);
}

static void each_walks_the_hosts(void **state) {
    (void)state;
    char text[256] = "";
    open_world();
    call("http://a.test");
    call("https://b.test:8443/x");
    call("http://a.test");
    assert_int_equal(hfi_caller_each(world->caller, collect, text), 0);
    assert_string_equal(text, "hooks http://a.test https://b.test:8443 ");
    hfi_alloc_fail(1, 0);
    assert_int_equal(hfi_caller_each(world->caller, collect, text), HF_ENOMEM);
    hfi_alloc_fail(0, 0);
}

/* B32: no memory at any place of a call to a new host: nothing is lost, nothing used after it went. */
static int attempt(void *user) {
    struct hfi_caller_options options = {world->s, hfi_scripted_transport(world->script), 1};
    static const char *const urls[] = {"http://a.test", "http://b.test", "http://c.test", "http://a.test"};
    struct hfi_caller *caller = NULL;
    int ended = 0, begun = 0;
    (void)user;
    int rc = hfi_caller_new(&options, &world->options, 1, &caller, NULL);
    for (size_t i = 0; rc == 0 && i < 4; i++) {
        struct hf_request request = at(urls[i]);
        rc = hfi_call_start(caller, &request, count_end, &ended, NULL, NULL);
        begun += rc == 0;
    }
    if (caller)
        hfi_caller_end(caller);
    hfi_caller_free(caller);
    return ended == begun ? rc : HF_ESTATE;
}

static void b32_calls_without_memory(void **state) {
    (void)state;
    world->options = hf_downstream_at("hooks", NULL);
    world->options.policy = &world->policy;
    world->options.per_host = true;
    world->options.hosts_max = 2;
    call_world_open_with(one_is_dead, NULL);
    assert_true(hf_test_alloc_sweep(attempt, NULL) > 10);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(b30_a_dead_host_hurts_no_other),
        TEST(what_is_no_target_is_refused),
        TEST(a_url_needs_per_host),
        TEST(options_are_checked),
        TEST(headers_go_to_every_host),
        TEST(isolating_the_downstream_isolates_all_hosts),
        TEST(b31_overflow_shares_one_breaker),
        TEST(hosts_have_their_own_bulkhead),
        TEST(each_walks_the_hosts),
        TEST(b32_calls_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
