/* SPDX-License-Identifier: MIT */
/* Other downstreams while calls run: V15, F2, R16. On virtual time and a scripted transport. */
#include <string.h>

#include "base/alloc.h"
#include "resilience/call_internal.h"
#include "support/call_world.h"
#include "support/support.h"

static struct hfi_script_step answer(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)number;
    (void)user;
    return hfi_script_status(10, strstr(spec->url, "bad") ? 500 : strstr(spec->url, "busy") ? 429 : 200);
}

static int reload(const struct hf_downstream_options *options, size_t count, char *text, size_t room) {
    struct hf_error error;
    hf_error_init(&error);
    int rc = hfi_caller_reload(world->caller, options, count, &error);
    if (text)
        hf_error_print(&error, text, room);
    return rc;
}

static struct hf_downstream_view look(struct hf_downstream *downstream) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(downstream, world->s->ops->mono(world->s), &view);
    return view;
}

static const struct hf_policy_options *look_policy(const struct hf_downstream *downstream) {
    return &hfi_downstream_policy(downstream)->options;
}

static struct call_end call(const char *name, const char *path) {
    struct hf_request request = hf_request_to(name, "GET", path);
    request.no_retry = true;
    return call_once(&request);
}

static void open_breaker(void) {
    for (int i = 0; i < 20; i++)
        assert_int_equal(call("d", "/bad").status, 500);
    assert_int_equal(look(world->d).state, HF_BREAKER_OPEN);
}

/* F2 V15: another threshold while it is open: `until` and generation stay, and the threshold holds when it has closed. */
static void f2_v15_an_open_breaker_stays_as_it_is(void **state) {
    (void)state;
    call_world_open_with(answer, NULL);
    open_breaker();
    hfi_virtual_advance(world->s, 1000);
    struct hf_downstream_view before = look(world->d);
    world->policy.breaker_min_calls = 3;
    world->policy.breaker_ratio = 0.9;
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    struct hf_downstream_view after = look(world->d);
    assert_ptr_equal(call_downstream_of(world->caller, 0), world->d);
    assert_int_equal(after.state, HF_BREAKER_OPEN);
    assert_int_equal(after.generation, before.generation);
    assert_int_equal(after.open_for_ms, before.open_for_ms);
    assert_int_equal(after.trips, before.trips);
    assert_string_equal(call("d", "/x").outcome.error_type, "breaker.open");
    hfi_virtual_advance(world->s, 5000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(call("d", "/x").status, 200);
    hfi_virtual_advance(world->s, 11000);
    assert_int_equal(call("d", "/x").status, 200);
    assert_int_equal(look(world->d).state, HF_BREAKER_CLOSED);
    hf_downstream_close(world->d); /* an empty window */
    for (int i = 0; i < 3; i++)
        call("d", "/bad");
    assert_int_equal(look(world->d).state, HF_BREAKER_OPEN); /* by three, not twenty */
}

/* R16: the retry budget of a live downstream can be changed. */
static void r16_the_budget_is_changed(void **state) {
    (void)state;
    world->policy.budget_floor = 0;
    world->policy.budget_ratio = 0.01;
    world->policy.breaker_min_calls = 1000;
    call_world_open_with(answer, NULL);
    struct hf_request request = hf_request_to("d", "GET", "/bad");
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 1);
    assert_true(end.outcome.retry_refused);
    world->policy.budget_floor = 100;
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 4);
}

/* V15: what is wrong anywhere changes nothing anywhere. */
static void v15_all_or_nothing(void **state) {
    (void)state;
    char text[512];
    struct hf_downstream_options list[3];
    struct hf_policy_options bad;
    call_world_open_with(answer, NULL);
    world->options.url = "http://elsewhere.test";
    list[0] = world->options;
    list[1] = hf_downstream_at("new", "http://new.test");
    list[2] = hf_downstream_at("wrong", "ftp://x");
    assert_int_equal(reload(list, 3, text, sizeof text), HF_EINVAL);
    assert_non_null(strstr(text, "http://"));
    list[2] = hf_downstream_at("new", "http://twice.test");
    assert_int_equal(reload(list, 3, text, sizeof text), HF_EINVAL);
    hf_policy_options_init(&bad);
    bad.attempt_timeout_ms = bad.total_timeout_ms + 1;
    list[2] = hf_downstream_at("third", "http://third.test");
    list[2].policy = &bad;
    assert_int_equal(reload(list, 3, text, sizeof text), HF_ECONFIG);
    assert_int_equal(call_count_of(world->caller), 1);
    assert_int_equal(call("d", "/x").status, 200);
    assert_string_equal(hfi_scripted_record(world->script, 0)->url, "http://example.test/base/x");
    struct hf_request request = hf_request_to("new", "GET", "/");
    assert_int_equal(hfi_caller_check(world->caller, &request, NULL), HF_ENOENT);
}

/* New ones appear, vanished ones take no new calls, those under way end as they began; a url counts for the next call. */
static void calls_under_way_end_as_they_began(void **state) {
    (void)state;
    struct call_end flying, waiting, next;
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 5;
    call_world_open_with(answer, NULL);
    struct hf_request request = hf_request_to("d", "GET", "/x");
    assert_int_equal(call_start(&flying, &request), 0);
    assert_int_equal(call_start(&waiting, &request), 0);
    world->options.url = "http://moved.test";
    struct hf_downstream_options list[2] = {world->options, hf_downstream_at("new", "http://new.test")};
    assert_int_equal(reload(list, 2, NULL, 0), 0);
    assert_int_equal(call_start(&next, &request), 0);
    call_run();
    assert_int_equal(flying.status, 200);
    assert_int_equal(waiting.status, 200);
    assert_int_equal(next.status, 200);
    assert_string_equal(hfi_scripted_record(world->script, 1)->url, "http://example.test/base/x");
    assert_string_equal(hfi_scripted_record(world->script, 2)->url, "http://moved.test/x");
    assert_int_equal(look(world->d).in_flight, 0);
    assert_int_equal(call("new", "/").status, 200);
    assert_int_equal(call_start(&flying, &request), 0);
    assert_int_equal(reload(&list[1], 1, NULL, 0), 0); /* d is gone, its call is not */
    assert_int_equal(call_start(&next, &request), HF_ENOENT);
    call_run();
    assert_int_equal(flying.status, 200);
    assert_int_equal(reload(NULL, 0, NULL, 0), 0);
    assert_int_equal(call_count_of(world->caller), 0);
}

static int64_t started_ms(uint64_t number) {
    return hfi_scripted_record(world->script, number)->started.us / 1000;
}

/* A call that is between two attempts goes on by the limits, waits and judgements it began with; the next has the new ones. */
static void calls_keep_the_limits_they_began_with(void **state) {
    (void)state;
    struct call_end end, busy;
    struct hf_request request = hf_request_to("d", "GET", "/bad"), limited = hf_request_to("d", "GET", "/busy");
    limited.no_retry = true;
    world->policy.retry_backoff = HF_BACKOFF_CONSTANT;
    world->policy.retry_jitter = HF_JITTER_NONE;
    world->policy.breaker_min_calls = 1000;
    call_world_open_with(answer, NULL);
    assert_int_equal(call_start(&end, &request), 0);
    hfi_virtual_advance(world->s, 50);
    assert_int_equal(call_start(&busy, &limited), 0);
    world->policy.retry_base_ms = world->policy.retry_cap_ms = 7;
    world->policy.retry_max = 1;
    world->policy.connect_timeout_ms = 1234;
    world->policy.breaker_429_failure = true;
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    call_run();
    assert_int_equal(end.outcome.attempts, 4);
    assert_int_equal(started_ms(2) - started_ms(0), 10 + 500); /* number 1 was the other call's */
    assert_int_equal(started_ms(3) - started_ms(2), 10 + 500);
    assert_int_equal(hfi_scripted_record(world->script, 4)->connect_timeout_ms, 5000);
    assert_int_equal(busy.outcome.verdict, HF_VERDICT_NEUTRAL);
    end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 2);
    assert_int_equal(started_ms(6) - started_ms(5), 10 + 7);
    assert_int_equal(hfi_scripted_record(world->script, 6)->connect_timeout_ms, 1234);
    assert_int_equal(call_once(&limited).outcome.verdict, HF_VERDICT_FAILURE);
}

/* Two failures, a second try that hangs, and whatever is well. */
static struct hfi_script_step hang_at_the_third(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)user;
    return number < 2 ? hfi_script_status(10, 500) : number == 2 ? hfi_script_hang(true) : hfi_script_status(10, 200);
}

static void hedges_keep_their_delay(void **state) {
    (void)state;
    struct call_end end;
    struct hf_request request = call_get();
    world->policy.hedge_max = 1;
    world->policy.hedge_delay_ms = 100;
    call_world_open_with(hang_at_the_third, NULL);
    assert_int_equal(call_start(&end, &request), 0);
    hfi_virtual_advance(world->s, 15);
    world->policy.hedge_delay_ms = 900;
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    call_run();
    assert_int_equal(end.status, 200);
    assert_int_equal(started_ms(3) - started_ms(2), 100);
}

/* A wider bulkhead is for those who wait already, even while what is in flight stays. */
static void a_wider_bulkhead_is_used(void **state) {
    (void)state;
    struct call_end flying, waiting;
    struct hf_request request = call_get();
    world->policy.bulkhead_max = 1;
    world->policy.bulkhead_queue = 1;
    CALL_WORLD_OPEN(hfi_script_status(10000, 200), hfi_script_status(10, 200));
    assert_int_equal(call_start(&flying, &request), 0);
    assert_int_equal(call_start(&waiting, &request), 0);
    hfi_virtual_advance(world->s, 500);
    world->policy.bulkhead_max = 2;
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    call_run();
    assert_int_equal(waiting.status, 200);
    assert_true(waiting.at_ms <= 500 + HFI_SLOT_POLL_MS + 10);
    assert_int_equal(flying.at_ms, 10000);
}

/* The hosts of a per_host downstream go on with their breakers, under the new policy. */
static void v15_hosts_go_on(void **state) {
    (void)state;
    world->options = hf_downstream_at("hooks", NULL);
    world->options.policy = &world->policy;
    world->options.per_host = true;
    call_world_open_with(answer, NULL);
    struct hf_request request = hf_request_to("hooks", "GET", "");
    struct hf_downstream *host = NULL, *same = NULL, *well = NULL;
    request.no_retry = true;
    request.url = "http://bad.test/";
    for (int i = 0; i < 20; i++)
        call_once(&request);
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://bad.test", &host, NULL), 0);
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://well.test", &well, NULL), 0);
    struct hf_downstream_view before = look(host);
    assert_int_equal(before.state, HF_BREAKER_OPEN);
    world->policy.bulkhead_max = 1;
    world->options.hosts_max = 1; /* fewer than there are: none is thrown out */
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://bad.test", &same, NULL), 0);
    assert_ptr_equal(same, host);
    assert_int_equal(look(host).generation, before.generation);
    assert_int_equal(look(host).open_for_ms, before.open_for_ms);
    struct hf_permit permit, second;
    assert_int_equal(hfi_downstream_enter(well, world->s->ops->mono(world->s), &permit, NULL), 0);
    assert_int_equal(hfi_downstream_enter(well, world->s->ops->mono(world->s), &second, NULL), HF_EREJECTED);
    hfi_downstream_give_back(well, world->s->ops->mono(world->s), &permit);
    hf_downstream_unref(host);
    hf_downstream_unref(same);
    hf_downstream_unref(well);
    world->options.per_host = false; /* and a downstream may become another kind */
    world->options.url = "http://one.test";
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    request.url = NULL;
    request.path = "/x";
    assert_int_equal(call_once(&request).status, 200);
}

static uint32_t bulkhead_of(const char *host) {
    struct hf_downstream *downstream = NULL;
    assert_int_equal(hfi_caller_host(world->caller, "hooks", host, &downstream, NULL), 0);
    uint32_t max = look_policy(downstream)->bulkhead_max;
    hf_downstream_unref(downstream);
    return max;
}

static void open_hooks(void) {
    world->options = hf_downstream_at("hooks", NULL);
    world->options.policy = &world->policy;
    world->options.per_host = true;
    call_world_open_with(answer, NULL);
}

/* Makes a host that is new, in the middle of the reload: another thread could. */
static void make_host(const struct hf_downstream_event *event, void *user) {
    char *made = user;
    bool of_host = hf_downstream_host(event->downstream) != NULL;
    made[of_host] = 1;
    bulkhead_of(of_host ? "http://while-hosts.test" : "http://while-parent.test");
}

/* V15: a host that is made while the policies change gets the new one, whether before or after its downstream has it. */
static void v15_a_host_made_meanwhile_follows(void **state) {
    (void)state;
    char made[2] = {0};
    struct hf_downstream *host = NULL;
    open_hooks();
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://old.test", &host, NULL), 0);
    struct hf_mono now = world->s->ops->mono(world->s);
    hfi_breaker_isolate(&world->d->breaker, now, 1000, "test"); /* whose end is told in the reload, as that of a break */
    hfi_breaker_isolate(&host->breaker, now, 1000, "test");
    hf_downstream_unref(host);
    hfi_virtual_advance(world->s, 2000);
    assert_int_equal(hf_downstream_observe(world->d, make_host, made), 0);
    world->policy.bulkhead_max = 3;
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0);
    assert_int_equal(made[0], 1);
    assert_int_equal(made[1], 1);
    hf_downstream_unobserve(world->d, make_host, made);
    assert_int_equal(look_policy(world->d)->bulkhead_max, 3);
    assert_int_equal(bulkhead_of("http://old.test"), 3);
    assert_int_equal(bulkhead_of("http://while-parent.test"), 3);
    assert_int_equal(bulkhead_of("http://while-hosts.test"), 3);
}

/* V15: what counts is the policy that a downstream has, not what the last reload of the client said. */
static void v15_after_a_reload_by_hand(void **state) {
    (void)state;
    struct hf_policy_options other = world->policy;
    struct hf_policy *by_hand;
    struct hf_downstream *host = NULL;
    open_hooks();
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://old.test", &host, NULL), 0);
    other.bulkhead_max = 2;
    assert_int_equal(hf_policy_new(&other, &by_hand, NULL), 0);
    assert_int_equal(hf_downstream_reload(world->d, by_hand), 0);
    assert_int_equal(hf_downstream_reload(host, by_hand), 0);
    hf_policy_unref(by_hand);
    hf_downstream_unref(host);
    assert_int_equal(bulkhead_of("http://old.test"), 2);
    assert_int_equal(bulkhead_of("http://new.test"), 2);
    assert_int_equal(reload(&world->options, 1, NULL, 0), 0); /* the options it began with */
    assert_int_equal(look_policy(world->d)->bulkhead_max, 64);
    assert_int_equal(bulkhead_of("http://old.test"), 64);
    assert_int_equal(bulkhead_of("http://new.test"), 64);
}

/* Without memory hosts keep their policy too, those with one of their own as well. */
static void no_memory_changes_no_host(void **state) {
    (void)state;
    struct hf_policy_options other = world->policy;
    struct hf_policy *by_hand;
    struct hf_downstream *host = NULL;
    int failures = 0;
    open_hooks();
    assert_int_equal(bulkhead_of("http://other.test"), 64);
    assert_int_equal(hfi_caller_host(world->caller, "hooks", "http://own.test", &host, NULL), 0);
    other.bulkhead_max = 2;
    assert_int_equal(hf_policy_new(&other, &by_hand, NULL), 0);
    assert_int_equal(hf_downstream_reload(host, by_hand), 0);
    hf_policy_unref(by_hand);
    hf_downstream_unref(host);
    world->policy.bulkhead_max = 7;
    for (long nth = 1;; nth++) {
        hfi_alloc_fail(nth, 0);
        int rc = reload(&world->options, 1, NULL, 0);
        long count = hfi_alloc_count();
        hfi_alloc_fail(0, 0);
        if (rc == 0 && count < nth)
            break;
        if (rc == 0)
            continue;
        failures++;
        assert_int_equal(rc, HF_ENOMEM);
        assert_int_equal(look_policy(world->d)->bulkhead_max, 64);
        assert_int_equal(bulkhead_of("http://other.test"), 64);
        assert_int_equal(bulkhead_of("http://own.test"), 2);
    }
    assert_true(failures > 10);
    assert_int_equal(bulkhead_of("http://other.test"), 7);
    assert_int_equal(bulkhead_of("http://own.test"), 7);
}

/* Without memory the old ones stay, whole: their policy too. */
static void no_memory_changes_nothing(void **state) {
    (void)state;
    call_world_open_with(answer, NULL);
    struct hf_downstream_options list[2] = {world->options, hf_downstream_at("new", "http://new.test")};
    world->policy.bulkhead_max = 7;
    int failures = 0;
    for (long nth = 1;; nth++) {
        hfi_alloc_fail(nth, 0);
        int rc = reload(list, 2, NULL, 0);
        long count = hfi_alloc_count();
        hfi_alloc_fail(0, 0);
        if (rc == 0 && count < nth)
            break;
        if (rc == 0)
            continue; /* something that could do without */
        failures++;
        assert_int_equal(rc, HF_ENOMEM);
        assert_int_equal(call_count_of(world->caller), 1);
        assert_int_equal(hfi_downstream_policy(world->d)->options.bulkhead_max, 64);
        assert_int_equal(call("d", "/x").status, 200);
    }
    assert_true(failures > 5);
    assert_int_equal(hfi_downstream_policy(world->d)->options.bulkhead_max, 7);
    assert_int_equal(call("new", "/").status, 200);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(f2_v15_an_open_breaker_stays_as_it_is),
        TEST(r16_the_budget_is_changed),
        TEST(v15_all_or_nothing),
        TEST(calls_under_way_end_as_they_began),
        TEST(calls_keep_the_limits_they_began_with),
        TEST(hedges_keep_their_delay),
        TEST(a_wider_bulkhead_is_used),
        TEST(v15_hosts_go_on),
        TEST(v15_a_host_made_meanwhile_follows),
        TEST(v15_after_a_reload_by_hand),
        TEST(no_memory_changes_no_host),
        TEST(no_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
