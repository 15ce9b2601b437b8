/* SPDX-License-Identifier: MIT */
/* State events: after the locks, in order, re-entrant: B22, B23. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "holdfast/event.h"
#include "resilience/downstream.h"
#include "support/support.h"

#define S INT64_C(1000000)

static struct hf_downstream *d;
static struct hf_mono now;

static int set_up(void **state) {
    struct hf_policy_options options;
    struct hf_policy *policy;
    (void)state;
    hf_policy_options_init(&options);
    options.breaker_break_jitter = 0;
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    assert_int_equal(hf_downstream_new("d", policy, &d, NULL), 0);
    hf_policy_unref(policy);
    now.us = 1000 * S;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_downstream_unref(d);
    return 0;
}

/* What was heard, as text: `closed>open` … */
struct heard {
    char text[512];
    unsigned count;
    struct hf_downstream_event last;
    char reason[200];
};

static void hear(const struct hf_downstream_event *event, void *user) {
    struct heard *heard = user;
    size_t length = strlen(heard->text);
    snprintf(heard->text + length, sizeof heard->text - length, "%s>%s ", hf_breaker_state_name(event->from),
             hf_breaker_state_name(event->to));
    heard->count++;
    heard->last = *event;
    snprintf(heard->reason, sizeof heard->reason, "%s", event->reason);
}

static void leave(enum hf_verdict verdict) {
    struct hf_permit permit;
    if (hfi_downstream_enter(d, now, &permit, NULL) == 0)
        hfi_downstream_leave_as(d, now, &permit, verdict);
}

static void trip(void) {
    for (int i = 0; i < 20; i++)
        leave(HF_VERDICT_FAILURE);
}

static void a_whole_life_is_told(void **state) {
    (void)state;
    struct heard heard = {0};
    assert_int_equal(hf_downstream_observe(d, hear, &heard), 0);
    trip();
    assert_int_equal(heard.last.size, sizeof heard.last);
    assert_ptr_equal(heard.last.downstream, d);
    assert_int_equal(heard.last.for_ms, 5000);
    assert_int_equal(heard.last.trips, 1);
    assert_int_equal(heard.last.window_calls, 20);
    assert_int_equal(heard.last.window_failures, 20);
    assert_string_equal(heard.reason, "ratio: 20 of 20 failed");
    uint64_t generation = heard.last.generation;
    now.us += 5 * S;
    for (int i = 0; i < 3; i++)
        leave(HF_VERDICT_SUCCESS);
    assert_string_equal(heard.reason, "probes_passed");
    assert_int_equal(heard.last.for_ms, 0);
    assert_int_equal(heard.last.generation, generation + 2);
    now.us += 10 * S;
    leave(HF_VERDICT_SUCCESS);
    assert_string_equal(heard.text, "closed>open open>half_open half_open>ramp ramp>closed ");
    hfi_breaker_isolate(&d->breaker, now, 0, "by hand");
    assert_true(heard.last.for_ms == INT64_MAX);
    assert_string_equal(heard.reason, "isolated: by hand");
    hfi_breaker_close(&d->breaker, now);
    hfi_breaker_isolate(&d->breaker, now, 1500, "short");
    assert_int_equal(heard.last.for_ms, 1500);
    hf_downstream_unobserve(d, hear, &heard);
    hfi_breaker_close(&d->breaker, now);
    assert_int_equal(heard.count, 7);
}

static void several_and_their_ends(void **state) {
    (void)state;
    struct heard heard[3] = {{.count = 0}, {.count = 0}, {.count = 0}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_downstream_observe(d, hear, &heard[i]), 0);
    hf_downstream_unobserve(d, hear, &heard[1]);
    hf_downstream_unobserve(d, hear, &now); /* unknown */
    trip();
    assert_int_equal(heard[0].count, 1);
    assert_int_equal(heard[1].count, 0);
    assert_int_equal(heard[2].count, 1);
    assert_int_equal(hf_downstream_observe(d, hear, &heard[1]), 0); /* again */
    hfi_breaker_close(&d->breaker, now);
    assert_int_equal(heard[1].count, 1);
    assert_int_equal(hf_downstream_observe(NULL, hear, NULL), HF_EINVAL);
    assert_int_equal(hf_downstream_observe(d, NULL, NULL), HF_EINVAL);
    hfi_alloc_fail(1, 0);
    assert_int_equal(hf_downstream_observe(d, hear, NULL), HF_ENOMEM);
    hfi_alloc_fail(0, 0);
}

/* B22: the callback reads everything, enters and leaves, and makes more changes; what it makes comes after it. */
struct meddler {
    struct heard heard;
    unsigned depth, deepest, closes;
};

static void meddle(const struct hf_downstream_event *event, void *user) {
    struct meddler *meddler = user;
    struct hf_downstream_view view = {.size = sizeof view};
    struct hf_downstream_saved saved;
    struct hf_permit permit;
    meddler->depth++;
    meddler->deepest = meddler->depth > meddler->deepest ? meddler->depth : meddler->deepest;
    hear(event, &meddler->heard);
    hf_downstream_look(event->downstream, &view);
    assert_int_equal(view.state, event->to);
    hf_downstream_saved_init(&saved);
    assert_int_equal(hf_downstream_save(event->downstream, &saved), 0);
    assert_string_equal(hf_downstream_name(event->downstream), "d");
    assert_null(hf_downstream_host(event->downstream));
    if (hf_guard_enter(event->downstream, &permit, NULL) == 0)
        assert_int_equal(hf_guard_leave(event->downstream, &permit, HF_VERDICT_SUCCESS), 0);
    hf_downstream_unobserve(event->downstream, hear, user); /* unknown */
    if (event->to == HF_BREAKER_ISOLATED && meddler->closes-- > 0)
        assert_int_equal(hf_downstream_close(event->downstream), 0);
    else if (event->to == HF_BREAKER_CLOSED && meddler->closes > 0)
        assert_int_equal(hf_downstream_isolate(event->downstream, 0, "again"), 0);
    meddler->depth--;
}

static void b22_an_observer_may_call_everything(void **state) {
    (void)state;
    struct meddler meddler = {.closes = 3};
    struct heard after = {0};
    assert_int_equal(hf_downstream_observe(d, meddle, &meddler), 0);
    assert_int_equal(hf_downstream_observe(d, hear, &after), 0);
    assert_int_equal(hf_downstream_isolate(d, 0, "first"), 0);
    assert_int_equal(meddler.deepest, 1); /* never one inside another */
    assert_string_equal(meddler.heard.text, "closed>isolated isolated>closed closed>isolated isolated>closed "
                                            "closed>isolated isolated>closed ");
    assert_string_equal(after.text, meddler.heard.text); /* the same order for all */
}

/* B23: two threads change it all the while, the observer is slow: every chain joins up, nobody waits for nobody. */
struct chain {
    _Atomic unsigned inside;
    enum hf_breaker_state state;
    uint64_t generation;
    unsigned told, broken;
};

static void reload(const struct hf_downstream_event *event, void *user) {
    assert_int_equal(hfi_downstream_reload(event->downstream, now, user), 0);
}

/* B22: a reload changes the state, too, and whoever hears of it may reload. */
static void b22_an_observer_of_a_reload_may_reload(void **state) {
    (void)state;
    struct heard heard = {0};
    struct hf_policy *policy = hf_policy_ref(hfi_downstream_counted_policy(d));
    assert_int_equal(hf_downstream_observe(d, reload, policy), 0);
    assert_int_equal(hf_downstream_observe(d, hear, &heard), 0);
    trip();
    now.us += 6 * S;
    for (int i = 0; i < 3; i++)
        leave(HF_VERDICT_SUCCESS);
    assert_string_equal(heard.text, "closed>open open>half_open half_open>ramp ");
    now.us += 20 * S;
    assert_int_equal(hfi_downstream_reload(d, now, policy), 0);
    assert_string_equal(heard.text, "closed>open open>half_open half_open>ramp ramp>closed ");
    hf_policy_unref(policy);
}

static void check_chain(const struct hf_downstream_event *event, void *user) {
    struct chain *chain = user;
    chain->broken += atomic_fetch_add(&chain->inside, 1) != 0;
    chain->broken += event->from != chain->state || event->generation <= chain->generation;
    chain->state = event->to;
    chain->generation = event->generation;
    chain->told++;
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(event->downstream, &view);
    atomic_fetch_sub(&chain->inside, 1);
}

static void *change_all_the_while(void *user) {
    for (int i = 0; i < 3000; i++) {
        hf_downstream_isolate(user, 0, "i");
        hf_downstream_close(user);
    }
    return NULL;
}

static void b23_two_threads_one_order(void **state) {
    (void)state;
    struct chain chain = {.state = HF_BREAKER_CLOSED};
    pthread_t threads[2];
    assert_int_equal(hf_downstream_observe(d, check_chain, &chain), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_all_the_while, d), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    assert_int_equal(chain.broken, 0);
    assert_true(chain.told >= 2);
    assert_int_equal(chain.state, view.state); /* the last one was told */
    assert_int_equal(chain.generation, view.generation);
}

/* The observer of a per_host downstream hears of all its hosts. */
static void a_parent_hears_of_its_hosts(void **state) {
    (void)state;
    struct heard heard = {0}, own = {0};
    struct hf_downstream *host = NULL;
    assert_int_equal(hfi_downstream_of_host(d, "https://a.test", &host), 0);
    assert_int_equal(hf_downstream_observe(d, hear, &heard), 0);
    assert_int_equal(hf_downstream_observe(host, hear, &own), 0);
    hfi_breaker_isolate(&host->breaker, now, 0, "it");
    assert_ptr_equal(heard.last.downstream, host);
    assert_int_equal(own.count, 1);
    hfi_breaker_isolate(&d->breaker, now, 0, "all");
    assert_ptr_equal(heard.last.downstream, d);
    assert_int_equal(heard.count, 2);
    assert_int_equal(own.count, 1);
    hf_downstream_unref(host);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_whole_life_is_told),      TEST(several_and_their_ends),      TEST(b22_an_observer_may_call_everything),
        TEST(b23_two_threads_one_order), TEST(a_parent_hears_of_its_hosts), TEST(b22_an_observer_of_a_reload_may_reload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
