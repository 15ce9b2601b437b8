/* SPDX-License-Identifier: MIT */
/* Guards of many threads: the line before the bulkhead (R21), cancel in every wait (R8, B28), 64 threads on one
 * downstream. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/classify.h"
#include "holdfast/log.h"
#include "resilience/downstream.h"

static struct hf_policy_options policy;
static struct hf_guard_options options;
static struct hf_downstream *d;

static int set_up(void **state) {
    (void)state;
    hf_policy_options_init(&policy);
    hf_guard_options_init(&options);
    policy.retry_base_ms = policy.retry_cap_ms = 1;
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_guard_cancel_free(options.cancel);
    hf_downstream_unref(d);
    d = NULL;
    return 0;
}

static void make(void) {
    struct hf_policy *frozen;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_policy_new(&policy, &frozen, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    assert_int_equal(hf_downstream_new("peer", frozen, &d, &error), 0);
    hf_policy_unref(frozen);
}

static struct hf_downstream_view look(void) {
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    return view;
}

static uint32_t waiting(void) {
    struct hfi_downstream_extra *extra = hfi_downstream_extra(d);
    struct hfi_line *line = extra != NULL ? atomic_load(&extra->line) : NULL;
    return line != NULL ? atomic_load(&line->waiting) : 0;
}

static void until_waiting(uint32_t count) {
    while (waiting() != count)
        sched_yield();
}

/* One guard on a thread of its own. */
struct guard {
    pthread_t thread;
    struct hf_guard_options options;
    struct hf_outcome outcome;
    int code, number; /* errno that its function ends with */
    _Atomic int runs;
};

static void work(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    struct guard *guard = user;
    (void)deadline_us;
    atomic_fetch_add(&guard->runs, 1);
    hf_classify_errno(guard->number, outcome);
}

static void *run(void *user) {
    struct guard *guard = user;
    guard->code = hf_guard_run_with(d, &guard->options, work, &guard->outcome, guard);
    return NULL;
}

static void start(struct guard *guard) {
    guard->options = options;
    assert_int_equal(pthread_create(&guard->thread, NULL, run, guard), 0);
}

static void join(struct guard *guard) {
    pthread_join(guard->thread, NULL);
    assert_int_equal(guard->code, 0);
}

/* R21: eight that wait in vain take no place along; the ninth is refused at once. */
static void r21_eight_waiters_time_out(void **state) {
    (void)state;
    struct hf_permit held[2], more;
    struct guard guards[8] = {{0}}, ninth = {0};
    policy.bulkhead_max = 2;
    policy.bulkhead_queue = 8;
    make();
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_guard_enter(d, &held[i], NULL), 0);
    options.total_timeout_ms = 2000; /* enough for eight threads to begin, also under ThreadSanitizer */
    for (int i = 0; i < 8; i++)
        start(&guards[i]);
    while (atomic_load(&d->bulkhead.queued) != 8)
        sched_yield();
    start(&ninth);
    join(&ninth);
    assert_string_equal(ninth.outcome.error_type, "bulkhead.full");
    assert_int_equal(look().rejections, 1); /* R23: of the nine that asked, one is refused */
    for (int i = 0; i < 8; i++) {
        join(&guards[i]);
        assert_string_equal(guards[i].outcome.error_type, "timeout.total");
        assert_int_equal(guards[i].outcome.verdict, HF_VERDICT_NEUTRAL);
        assert_int_equal(guards[i].outcome.sent, HF_SENT_NO);
        assert_int_equal(guards[i].runs, 0);
    }
    assert_int_equal(waiting(), 0);
    assert_int_equal(atomic_load(&d->bulkhead.queued), 0);
    assert_int_equal(look().calls, 3); /* who gave up was neither let in nor refused */
    assert_int_equal(look().rejections, 1);
    assert_true(hfi_downstream_adds_up(d));
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_guard_leave(d, &held[i], HF_VERDICT_SUCCESS), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_guard_enter(d, &held[i], NULL), 0); /* capacity == max */
    assert_int_equal(hf_guard_enter(d, &more, NULL), HF_EREJECTED);
    for (int i = 0; i < 2; i++)
        hf_guard_leave(d, &held[i], HF_VERDICT_SUCCESS);
    assert_int_equal(look().window_calls, 4);
}

/* A reload that widens the bulkhead lets those in who wait; they need not stand until somebody leaves. */
static void a_wider_bulkhead_is_told(void **state) {
    (void)state;
    struct hf_permit held;
    struct guard guards[3] = {{0}};
    struct hf_policy *wider;
    policy.bulkhead_max = 1;
    policy.bulkhead_queue = 4;
    options.total_timeout_ms = 30000;
    make();
    assert_int_equal(hf_guard_enter(d, &held, NULL), 0);
    for (int i = 0; i < 3; i++)
        start(&guards[i]);
    until_waiting(3);
    policy.bulkhead_max = 2;
    assert_int_equal(hf_policy_new(&policy, &wider, NULL), 0);
    assert_int_equal(hf_downstream_reload(d, wider), 0);
    hf_policy_unref(wider);
    for (int i = 0; i < 3; i++) {
        join(&guards[i]);
        assert_int_equal(guards[i].outcome.kind, HF_OUTCOME_SUCCESS);
    }
    assert_int_equal(hf_guard_leave(d, &held, HF_VERDICT_SUCCESS), 0);
    assert_int_equal(look().in_flight, 0);
}

/* One place for all: each that leaves lets the next one in, and none is forgotten. */
static void no_wake_is_lost(void **state) {
    (void)state;
    struct hf_permit held;
    struct guard guards[16] = {{0}};
    policy.bulkhead_max = 1;
    policy.bulkhead_queue = 16;
    options.total_timeout_ms = 30000; /* the end of one that is forgotten */
    make();
    for (int round = 0; round < 20; round++) {
        assert_int_equal(hf_guard_enter(d, &held, NULL), 0);
        for (int i = 0; i < 16; i++)
            start(&guards[i]);
        until_waiting(16);
        assert_int_equal(hf_guard_leave(d, &held, HF_VERDICT_SUCCESS), 0);
        for (int i = 0; i < 16; i++) {
            join(&guards[i]);
            assert_int_equal(guards[i].outcome.kind, HF_OUTCOME_SUCCESS);
        }
        assert_int_equal(look().in_flight, 0);
        assert_int_equal(waiting(), 0);
    }
}

/* R21: the first in the line is told of a place and is cancelled at that moment: the next one gets it. */
static void r21_who_cannot_use_a_place_hands_it_on(void **state) {
    (void)state;
    struct hf_permit held;
    policy.bulkhead_max = 1;
    policy.bulkhead_queue = 4;
    options.total_timeout_ms = 30000;
    make();
    for (int round = 0; round < 200; round++) {
        struct guard first = {0}, second = {0};
        assert_int_equal(hf_guard_enter(d, &held, NULL), 0);
        options.cancel = hf_guard_cancel_new();
        start(&first);
        until_waiting(1);
        struct hf_guard_cancel *cancel = options.cancel;
        options.cancel = NULL;
        start(&second);
        until_waiting(2);
        if (round % 2)
            hf_guard_cancel_fire(cancel);
        assert_int_equal(hf_guard_leave(d, &held, HF_VERDICT_SUCCESS), 0);
        if (round % 2 == 0)
            hf_guard_cancel_fire(cancel);
        join(&first);
        join(&second);
        assert_int_equal(second.outcome.kind, HF_OUTCOME_SUCCESS);
        assert_int_equal(look().in_flight, 0);
        hf_guard_cancel_free(cancel);
    }
}

/* R8, B28: cancelled in the line, in backoff and during an injected wait: at once, without a sample, with nothing left
 * behind. */
static void r8_b28_cancel_in_the_line(void **state) {
    (void)state;
    struct hf_permit held;
    struct guard guard = {0};
    policy.bulkhead_max = 1;
    policy.bulkhead_queue = 1;
    make();
    assert_int_equal(hf_guard_enter(d, &held, NULL), 0);
    options.cancel = hf_guard_cancel_new();
    start(&guard);
    until_waiting(1);
    hf_guard_cancel_fire(options.cancel);
    join(&guard);
    assert_string_equal(guard.outcome.error_type, "call.cancelled");
    assert_int_equal(guard.outcome.sent, HF_SENT_NO);
    assert_int_equal(guard.runs, 0);
    assert_int_equal(waiting(), 0);
    assert_int_equal(hf_guard_leave(d, &held, HF_VERDICT_SUCCESS), 0);
    assert_int_equal(look().window_calls, 1);
}

static void r8_cancel_in_backoff(void **state) {
    (void)state;
    struct guard guard = {.number = ECONNREFUSED};
    policy.retry_jitter = HF_JITTER_NONE;
    policy.retry_base_ms = policy.retry_cap_ms = 5000; /* the longest wait there is */
    policy.total_timeout_ms = 200000;
    make();
    options.cancel = hf_guard_cancel_new();
    int64_t before_us = hfi_mono_now().us;
    start(&guard);
    while (look().retries == 0)
        sched_yield();
    hf_guard_cancel_fire(options.cancel);
    join(&guard);
    assert_true(hfi_mono_now().us - before_us < 5000000); /* not after the wait */
    assert_string_equal(guard.outcome.error_type, "call.cancelled");
    assert_non_null(strstr(guard.outcome.message, "errno.ECONNREFUSED"));
    assert_int_equal(guard.outcome.kind, HF_OUTCOME_NEUTRAL);
    assert_int_equal(guard.outcome.sent, HF_SENT_NO);
    assert_int_equal(guard.outcome.attempts, 1);
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(look().window_calls, 1);
}

/* B28: a cancelled probe frees its slot. */
static void b28_cancel_of_a_probe(void **state) {
    (void)state;
    struct hf_fault fault;
    struct guard probe = {0};
    struct hf_permit permit;
    policy.breaker_consecutive = 1;
    policy.breaker_break_ms = 1;
    policy.breaker_max_break_ms = 1;
    policy.breaker_break_jitter = 0;
    policy.breaker_probes = 1;
    policy.allow_fault_injection = true;
    make();
    assert_int_equal(hf_guard_enter(d, &permit, NULL), 0);
    assert_int_equal(hf_guard_leave(d, &permit, HF_VERDICT_FAILURE), 0);
    hf_fault_init(&fault, HF_FAULT_DROP);
    assert_int_equal(hf_downstream_inject(d, &fault, 1, NULL), 0);
    options.cancel = hf_guard_cancel_new();
    while (look().open_for_ms > 0)
        sched_yield();
    start(&probe);
    while (look().faults == 0)
        sched_yield();
    assert_int_equal(look().probes_in_flight, 1);
    hf_guard_cancel_fire(options.cancel);
    join(&probe);
    assert_string_equal(probe.outcome.error_type, "call.cancelled");
    assert_int_equal(look().probes_in_flight, 0);
    assert_int_equal(look().state, HF_BREAKER_HALF_OPEN);
    assert_int_equal(hf_guard_enter(d, &permit, NULL), 0); /* the slot is there again */
    assert_int_equal(hf_guard_leave(d, &permit, HF_VERDICT_SUCCESS), 0);
}

/* Waiting for a token of the rate limit, in the same queue: all come through, none too early. */
static void tokens_are_waited_for_in_the_same_queue(void **state) {
    (void)state;
    struct guard guards[12] = {{0}};
    policy.bulkhead_max = 2;
    policy.bulkhead_queue = 12;
    policy.rate_per_s = 200;
    policy.rate_burst = 2;
    make();
    int64_t before_us = hfi_mono_now().us;
    for (int i = 0; i < 12; i++)
        start(&guards[i]);
    for (int i = 0; i < 12; i++) {
        join(&guards[i]);
        assert_int_equal(guards[i].outcome.kind, HF_OUTCOME_SUCCESS);
    }
    assert_int_equal(look().calls, 12);
    assert_int_equal(look().rejections, 0); /* R23 */
    assert_int_equal(look().rate_limited, 0);
    assert_true(hfi_mono_now().us - before_us >= 50000); /* ten intervals of 5 ms after the burst */
    assert_int_equal(atomic_load(&d->bulkhead.queued), 0);
    assert_int_equal(waiting(), 0);
}

/* 64 threads of every kind on one downstream with few places: the sums come out. */
static void *crowd(void *user) {
    struct guard *guard = user;
    for (int i = 0; i < 50; i++) {
        struct hf_permit permit;
        struct hf_outcome outcome;
        int code = hf_guard_run_with(d, &guard->options, work, &outcome, guard);
        guard->code = guard->code != 0 ? guard->code : code;
        if (hf_guard_enter(d, &permit, NULL) == 0)
            hf_guard_leave(d, &permit, HF_VERDICT_SUCCESS);
    }
    return NULL;
}

static void sixty_four_threads(void **state) {
    (void)state;
    static struct guard guards[64];
    memset(guards, 0, sizeof guards);
    policy.bulkhead_max = 4;
    policy.bulkhead_queue = 48;
    policy.breaker_ratio = 1;
    policy.breaker_min_calls = 1000000;
    make();
    options.cancel = hf_guard_cancel_new();
    for (int i = 0; i < 64; i++) {
        guards[i].options = options;
        guards[i].options.cancel = i % 8 == 0 ? options.cancel : NULL;
        guards[i].number = i % 5 == 0 ? ECONNREFUSED : 0;
        assert_int_equal(pthread_create(&guards[i].thread, NULL, crowd, &guards[i]), 0);
    }
    hf_guard_cancel_fire(options.cancel);
    uint64_t runs = 0;
    for (int i = 0; i < 64; i++) {
        join(&guards[i]);
        runs += (uint64_t)guards[i].runs;
    }
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(waiting(), 0);
    assert_int_equal(atomic_load(&d->bulkhead.queued), 0);
    assert_true(look().attempts >= runs);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(r21_eight_waiters_time_out),
        TEST(a_wider_bulkhead_is_told),
        TEST(no_wake_is_lost),
        TEST(r21_who_cannot_use_a_place_hands_it_on),
        TEST(r8_b28_cancel_in_the_line),
        TEST(r8_cancel_in_backoff),
        TEST(b28_cancel_of_a_probe),
        TEST(tokens_are_waited_for_in_the_same_queue),
        TEST(sixty_four_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
