/* SPDX-License-Identifier: MIT */
/*
 * What threads count on one downstream: nothing is lost, nothing allocated while all is well, places come back from those
 * who forgot them, and the sums come out. B3, B6, B19, R12, R21, R23, W11. Also run under ThreadSanitizer.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/thread_number.h"
#include "holdfast/classify.h"
#include "holdfast/log.h"
#include "resilience/downstream.h"
#include "seed.h"

#define S INT64_C(1000000)
#define T0 (1000 * S)

static struct hf_policy_options options;
static struct hf_downstream *d;

static int set_up(void **state) {
    (void)state;
    hf_policy_options_init(&options);
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_downstream_unref(d);
    d = NULL;
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    return 0;
}

static void make(void) {
    struct hf_policy *policy;
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    assert_int_equal(hf_downstream_new("d", policy, &d, NULL), 0);
    hf_policy_unref(policy);
}

static struct hf_downstream_view view_at(int64_t us) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(d, (struct hf_mono){us}, &view);
    return view;
}

static int enter(int64_t us, struct hf_permit *permit) {
    return hfi_downstream_enter(d, (struct hf_mono){us}, permit, NULL);
}

static int leave(int64_t us, struct hf_permit *permit, enum hf_verdict verdict) {
    return hfi_downstream_leave_as(d, (struct hf_mono){us}, permit, verdict);
}

static void success_allocates_nothing(void **state) {
    (void)state;
    struct hf_permit permit;
    make();
    assert_int_equal(hf_guard_enter(d, &permit, NULL), 0);
    assert_int_equal(hf_guard_leave(d, &permit, HF_VERDICT_SUCCESS), 0);
    hfi_alloc_fail(0, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(hf_guard_enter(d, &permit, NULL), 0);
        assert_int_equal(hf_guard_leave(d, &permit, i % 10 == 0 ? HF_VERDICT_NEUTRAL : HF_VERDICT_SUCCESS), 0);
    }
    assert_int_equal(hfi_alloc_count(), 0);
    assert_int_equal(view_at(T0).successes, 901);
    assert_int_equal(view_at(T0).neutrals, 100);
    assert_true(hfi_downstream_adds_up(d));
}

static void end_well(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    (void)deadline_us;
    (void)user;
    hf_classify_exit(0, outcome);
}

/* 2.5: an ordinary downstream takes 512 bytes at most besides the histogram, its name, its windows and what malloc adds to
   each block in, however much it is used. */
static void an_ordinary_downstream_is_small(void **state) {
    (void)state;
    enum { BLOCK = 16 };
    struct hf_permit permit;
    struct hf_policy *policy;
    struct hf_outcome *outcome = hf_outcome_new();
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    hfi_alloc_fail(0, 0);
    assert_int_equal(hf_downstream_new("sixteen-letters!", policy, &d, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(hf_guard_enter(d, &permit, NULL), 0);
        assert_int_equal(hf_guard_leave(d, &permit, HF_VERDICT_SUCCESS), 0);
        assert_int_equal(enter(T0 + i * S, &permit), 0); /* through many slices and windows */
        assert_int_equal(leave(T0 + i * S, &permit, HF_VERDICT_SUCCESS), 0);
        assert_int_equal(hf_guard_run(d, end_well, outcome, NULL), 0);
    }
    size_t all = hfi_alloc_bytes() + BLOCK * (size_t)hfi_alloc_count();
    assert_int_equal(view_at(T0 + 1000 * S).successes, 3000);
    assert_true(all > sizeof(struct hfi_histogram));
    assert_in_range(all - sizeof(struct hfi_histogram), 300, 512);
    hf_outcome_free(outcome);
    hf_policy_unref(policy);
}

/* B3, R21: permits of a closed breaker that nobody ever reports lapse, and give their places back, once. */
static void b3_r21_forgotten_places_come_back(void **state) {
    (void)state;
    struct hf_permit lost[64], late, permit;
    options.breaker_lease_ms = 30000;
    make();
    for (int i = 0; i < 64; i++)
        assert_int_equal(enter(T0 + i, &lost[i]), 0);
    assert_int_equal(enter(T0 + 29 * S, &permit), HF_EREJECTED); /* their lease still runs */
    assert_int_equal(enter(T0 + 60 * S, &permit), 0);
    assert_int_equal(view_at(T0 + 60 * S).permits_expired, 64);
    assert_int_equal(view_at(T0 + 60 * S).in_flight, 1);
    assert_int_equal(view_at(T0 + 60 * S).window_calls, 0); /* an unknown end is no sample */
    for (int i = 0; i < 64; i++) {
        late = lost[i];
        assert_int_equal(leave(T0 + 61 * S, &late, HF_VERDICT_FAILURE), HF_ESTATE);
        assert_int_equal(leave(T0 + 61 * S, &late, HF_VERDICT_FAILURE), HF_ESTATE);
    }
    assert_int_equal(view_at(T0 + 61 * S).failures, 0);
    assert_int_equal(view_at(T0 + 61 * S).in_flight, 1); /* never released twice */
    assert_true(hfi_downstream_adds_up(d));
    assert_int_equal(hfi_downstream_allowance(d, (struct hf_mono){T0 + 61 * S}, NULL), 63);
    for (int i = 0; i < 63; i++)
        assert_int_equal(enter(T0 + 61 * S, &lost[i]), 0);
    assert_int_equal(enter(T0 + 61 * S, &late), HF_EREJECTED);
    assert_int_equal(leave(T0 + 62 * S, &permit, HF_VERDICT_SUCCESS), 0);
    for (int i = 0; i < 63; i++)
        assert_int_equal(leave(T0 + 62 * S, &lost[i], HF_VERDICT_SUCCESS), 0);
    assert_int_equal(view_at(T0 + 62 * S).in_flight, 0);
    assert_true(hfi_downstream_adds_up(d));
}

/* The same for who only asks how many it would admit, and enters none until it is more than none. */
static void places_come_back_to_who_only_asks(void **state) {
    (void)state;
    struct hf_permit lost;
    options.bulkhead_max = 1;
    options.breaker_lease_ms = 30000;
    make();
    assert_int_equal(enter(T0, &lost), 0);
    assert_int_equal(hfi_downstream_allowance(d, (struct hf_mono){T0 + 30 * S - 1}, NULL), 0);
    for (int s = 30; s < 60; s++)
        hfi_downstream_allowance(d, (struct hf_mono){T0 + s * S}, NULL);
    assert_int_equal(hfi_downstream_allowance(d, (struct hf_mono){T0 + 60 * S}, NULL), 1);
}

/* A long call is not lapsed while its lease runs, however many terms begin and end around it. */
static void a_lease_is_never_cut_short(void **state) {
    (void)state;
    struct hfi_random random;
    options.breaker_lease_ms = 30000;
    options.bulkhead_max = 8;
    hfi_random_seed(&random, test_seed("leases"));
    make();
    struct hf_permit held[8];
    int64_t since[8] = {0}, now = T0;
    for (int step = 0; step < 20000; step++) {
        unsigned i = (unsigned)hfi_random_below(&random, 8);
        now += (int64_t)hfi_random_below(&random, 8 * S);
        if (since[i] != 0 && now - since[i] > 30 * S) {
            int code = leave(now, &held[i], HF_VERDICT_SUCCESS); /* late: may have lapsed */
            assert_true(code == 0 || code == HF_ESTATE);
            assert_true(code == 0 || now - since[i] >= 30 * S);
            since[i] = 0;
        } else if (since[i] != 0) {
            assert_int_equal(leave(now, &held[i], HF_VERDICT_SUCCESS), 0);
            since[i] = 0;
        } else if (enter(now, &held[i]) == 0) {
            since[i] = now;
        }
        assert_true(view_at(now).in_flight <= 8);
    }
    assert_true(hfi_downstream_adds_up(d));
}

/* B6, R12, R23: a rejection counts once, a report once, and every permit ends in exactly one way. */
static void r12_r23_every_call_ends_once(void **state) {
    (void)state;
    struct hf_permit permits[4], extra;
    struct hf_outcome outcome;
    options.bulkhead_max = 4;
    options.breaker_min_calls = 1000;
    make();
    for (int i = 0; i < 4; i++)
        assert_int_equal(enter(T0, &permits[i]), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(enter(T0, &extra), HF_EREJECTED);
    assert_int_equal(leave(T0, &extra, HF_VERDICT_FAILURE), HF_ESTATE);
    assert_int_equal(leave(T0, &permits[0], HF_VERDICT_SUCCESS), 0);
    assert_int_equal(leave(T0, &permits[0], HF_VERDICT_FAILURE), HF_ESTATE);
    assert_int_equal(leave(T0, &permits[1], HF_VERDICT_FAILURE), 0);
    hf_classify_http(404, NULL, 0, &outcome);
    assert_int_equal(hfi_downstream_leave(d, (struct hf_mono){T0}, &permits[2], &outcome), 0);
    hfi_downstream_give_back(d, (struct hf_mono){T0}, &permits[3]);
    struct hf_downstream_view view = view_at(T0);
    assert_int_equal(view.calls, 14);
    assert_int_equal(view.rejections, 10);
    assert_int_equal(view.successes, 1);
    assert_int_equal(view.failures, 1);
    assert_int_equal(view.neutrals, 2);
    assert_int_equal(view.attempts, 3);
    assert_int_equal(view.permits_issued, 4);
    assert_int_equal(view.permits_returned, 4);
    assert_true(hfi_downstream_adds_up(d));
}

/* 2.5: the ramp goes up to what the last healthy window had in flight, not to all that the bulkhead would take. */
static void the_ramp_ends_where_a_healthy_window_was(void **state) {
    (void)state;
    struct hf_permit permits[64];
    options.breaker_break_jitter = 0;
    make();
    int64_t now = T0;
    for (int round = 0; round < 30; round++, now += 5 * S) {
        for (int i = 0; i < 10; i++)
            assert_int_equal(enter(now, &permits[i]), 0);
        for (int i = 0; i < 10; i++)
            assert_int_equal(leave(now, &permits[i], HF_VERDICT_SUCCESS), 0);
    }
    for (int i = 0; view_at(now).state == HF_BREAKER_CLOSED; i++) {
        assert_int_equal(enter(now, &permits[0]), 0);
        assert_int_equal(leave(now, &permits[0], HF_VERDICT_FAILURE), 0);
    }
    now += 5 * S;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(enter(now, &permits[0]), 0);
        assert_int_equal(leave(now, &permits[0], HF_VERDICT_SUCCESS), 0);
    }
    assert_int_equal(view_at(now).state, HF_BREAKER_RAMP);
    now += 9999000; /* a millisecond before its end */
    int held = 0;
    while (held < 64 && enter(now, &permits[held]) == 0)
        held++;
    assert_int_equal(held, 10);
}

static void coarse_latencies_promise_no_less(void **state) {
    (void)state;
    struct hf_permit permit;
    options.latency = HF_LATENCY_COARSE;
    make();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(enter(T0, &permit), 0);
        assert_int_equal(leave(T0, &permit, HF_VERDICT_SUCCESS), 0);
    }
    assert_int_equal(view_at(T0).attempts, 100);
    assert_true(view_at(T0).p50_us >= hfi_mono_coarse_step_us());
}

enum { THREADS = 16, EACH = 4000 };
static pthread_barrier_t gate;
static _Atomic int inside, over, wrong;
static _Atomic uint64_t seen[3], refused;

static void *call_many(void *user) {
    struct hfi_random random;
    hfi_random_seed(&random, (uint64_t)(uintptr_t)user);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < EACH; i++) {
        struct hf_permit permit;
        enum hf_verdict verdict = (enum hf_verdict)hfi_random_below(&random, 3);
        if (hf_guard_enter(d, &permit, NULL) != 0) {
            atomic_fetch_add(&refused, 1);
            continue;
        }
        if (atomic_fetch_add(&inside, 1) >= 6)
            atomic_fetch_add(&over, 1);
        if (hfi_random_below(&random, 16) == 0)
            sched_yield();
        atomic_fetch_sub(&inside, 1);
        if (hf_guard_leave(d, &permit, verdict) != 0)
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&seen[verdict], 1);
    }
    return NULL;
}

/* W11: sixteen threads, three generations of them; every count comes out, and never more than `max` are in flight. */
static void w11_threads_lose_nothing(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    options.bulkhead_max = 6;
    options.breaker_min_calls = 1000000000;
    make();
    for (int round = 0; round < 3; round++) {
        pthread_barrier_init(&gate, NULL, THREADS);
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, call_many, (void *)(i + 1)), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&gate);
        assert_true(hfi_downstream_adds_up(d));
    }
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    assert_int_equal(atomic_load(&over), 0);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(view.calls, 3 * THREADS * EACH);
    assert_int_equal(view.successes, atomic_load(&seen[HF_VERDICT_SUCCESS]));
    assert_int_equal(view.failures, atomic_load(&seen[HF_VERDICT_FAILURE]));
    assert_int_equal(view.neutrals, atomic_load(&seen[HF_VERDICT_NEUTRAL]));
    assert_int_equal(view.rejections, atomic_load(&refused));
    assert_int_equal(view.in_flight, 0);
    struct hf_permit permits[6], extra; /* wherever the places are by now, all can be had */
    for (int i = 0; i < 6; i++)
        assert_int_equal(hf_guard_enter(d, &permits[i], NULL), 0);
    assert_int_equal(hf_guard_enter(d, &extra, NULL), HF_EREJECTED);
}

static _Atomic int numbers[HFI_THREADS + 1];

static void *number_of(void *user) {
    (void)user;
    int number = hfi_thread_number();
    atomic_fetch_add(&numbers[number + 1], 1);
    pthread_barrier_wait(&gate);
    return NULL;
}

static void numbers_are_of_living_threads(void **state) {
    (void)state;
    enum { CROWD = 40 };
    pthread_t threads[CROWD];
    int highest = 0;
    for (int round = 0; round < 10; round++) {
        memset(numbers, 0, sizeof numbers);
        pthread_barrier_init(&gate, NULL, CROWD);
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, number_of, NULL), 0);
        for (int i = 0; i < CROWD; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&gate);
        for (int i = 1; i <= HFI_THREADS; i++) {
            assert_true(atomic_load(&numbers[i]) <= 1); /* all of them lived at once */
            highest = atomic_load(&numbers[i]) && i > highest ? i : highest;
        }
    }
    assert_true(highest <= CROWD + 2); /* used again and again */
    assert_int_equal(hfi_thread_number(), hfi_thread_number());
}

/* The quick clock stays by CLOCK_MONOTONIC, through many renewals of its rate. */
static void the_quick_clock_keeps_time(void **state) {
    (void)state;
    int far = 0;
    struct hf_mono start = hfi_mono_now();
    while (hfi_mono_now().us - start.us < 50000) { /* past its first measure */
        struct hf_mono before = hfi_mono_now();
        struct hf_mono quick = hfi_mono_now_quick();
        struct hf_mono after = hfi_mono_now();
        far += quick.us < before.us - 1000 || quick.us > after.us + 1000;
    }
    assert_int_equal(far, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(success_allocates_nothing),
        TEST(an_ordinary_downstream_is_small),
        TEST(b3_r21_forgotten_places_come_back),
        TEST(places_come_back_to_who_only_asks),
        TEST(a_lease_is_never_cut_short),
        TEST(r12_r23_every_call_ends_once),
        TEST(the_ramp_ends_where_a_healthy_window_was),
        TEST(coarse_latencies_promise_no_less),
        TEST(w11_threads_lose_nothing),
        TEST(numbers_are_of_living_threads),
        TEST(the_quick_clock_keeps_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
