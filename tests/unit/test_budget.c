/* SPDX-License-Identifier: MIT */
/* The retry budget and the bulkhead: R9, R10, R11, R13, R21, B19. */
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
#include "resilience/budget.h"
#include "resilience/bulkhead.h"
#include "seed.h"

#define S INT64_C(1000000)

static struct hf_mono at(int64_t us) {
    return (struct hf_mono){us};
}

static void r9_a_thousand_failures_at_once(void **state) {
    (void)state;
    struct hfi_budget b;
    hfi_budget_init(&b, 10000, 200, 10);
    for (int i = 0; i < 1000; i++)
        hfi_budget_call(&b, at(100 * S));
    int granted = 0;
    for (int i = 0; i < 1000; i++)
        granted += hfi_budget_take(&b, at(100 * S + 1));
    assert_int_equal(granted, 200);
    hfi_budget_end(&b);
}

static void r10_floor_at_low_rates(void **state) {
    (void)state;
    struct hfi_budget b;
    hfi_budget_init(&b, 10000, 200, 10);
    hfi_budget_call(&b, at(100 * S));
    int granted = 0;
    for (int i = 0; i < 100; i++)
        granted += hfi_budget_take(&b, at(100 * S));
    assert_int_equal(granted, 10);
    hfi_budget_end(&b);
}

static void r11_refills_with_time(void **state) {
    (void)state;
    struct hfi_budget b;
    hfi_budget_init(&b, 10000, 200, 10);
    for (int round = 0; round < 5; round++) {
        int64_t now = (100 + round * 11) * S;
        int granted = 0;
        for (int i = 0; i < 50; i++)
            granted += hfi_budget_take(&b, at(now));
        assert_int_equal(granted, 10);
    }
    hfi_budget_end(&b);
}

/* R13: a refusal names a wait, and after that wait a take succeeds; a millisecond before it does not. */
static void r13_refill_is_exact(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("budget"));
    for (int round = 0; round < 500; round++) {
        struct hfi_budget b;
        int64_t now = (int64_t)hfi_random_below(&random, 1000 * S);
        hfi_budget_init(&b, 10000, 200, 1 + (uint32_t)hfi_random_below(&random, 10));
        while (hfi_budget_take(&b, at(now)))
            now += (int64_t)hfi_random_below(&random, S / 2);
        int64_t wait_ms = hfi_budget_refill_ms(&b, at(now));
        assert_in_range(wait_ms, 1, 10001);
        if (wait_ms > 1)
            assert_false(hfi_budget_take(&b, at(now + (wait_ms - 1) * 1000 - 1000)));
        assert_true(hfi_budget_take(&b, at(now + wait_ms * 1000)));
        hfi_budget_end(&b);
    }
}

static void nothing_to_give_waits_a_window(void **state) {
    (void)state;
    struct hfi_budget b;
    hfi_budget_init(&b, 10000, 0, 0);
    assert_false(hfi_budget_take(&b, at(S)));
    assert_in_range(hfi_budget_refill_ms(&b, at(S)), 1, 10001);
    hfi_budget_end(&b);
}

/* R10: the share counts the calls that came before the first retry too, and those alone that are still in the window. */
static void r10_calls_before_the_first_retry_count(void **state) {
    (void)state;
    struct hfi_budget b;
    hfi_budget_init(&b, 12000, 200, 10);
    for (int second = 0; second < 60; second++)
        for (int i = 0; i < 1000; i++)
            hfi_budget_call(&b, at((100 + second) * S));
    int granted = 0;
    while (hfi_budget_take(&b, at(159 * S)))
        granted++;
    assert_int_equal(granted, 2400); /* of twelve seconds */
    assert_int_equal(hfi_budget_charged(&b), 2400);
    assert_false(hfi_budget_take(&b, at(170 * S))); /* a thousand calls are left in the window, all retries too */
    assert_true(hfi_budget_take(&b, at(171 * S)));
    hfi_budget_end(&b);
}

/* Without memory to count it in there is no retry; with it again all is as it was. */
static void no_memory_no_retry(void **state) {
    (void)state;
    struct hfi_budget b;
    hfi_budget_init(&b, 10000, 200, 10);
    hfi_budget_call(&b, at(S));
    hfi_alloc_fail(1, 1);
    assert_false(hfi_budget_take(&b, at(S)));
    hfi_budget_count(&b, HFI_BUDGET_REFUSED);
    assert_int_equal(hfi_budget_counted(&b, HFI_BUDGET_REFUSED), 0);
    assert_in_range(hfi_budget_refill_ms(&b, at(S)), 1, 10001);
    hfi_alloc_fail(0, 0);
    assert_true(hfi_budget_could(&b, at(S)));
    assert_true(hfi_budget_take(&b, at(S)));
    hfi_budget_count(&b, HFI_BUDGET_RETRIES);
    assert_int_equal(hfi_budget_counted(&b, HFI_BUDGET_RETRIES), 1);
    assert_int_equal(hfi_alloc_count(), 1);
    hfi_budget_end(&b);
}

/* R16: other numbers count on; another length begins anew, for calls and retries alike. */
static void r16_other_numbers(void **state) {
    (void)state;
    struct hfi_budget b;
    hfi_budget_init(&b, 10000, 200, 10);
    for (int i = 0; i < 100; i++)
        hfi_budget_call(&b, at(S));
    for (int i = 0; i < 20; i++)
        assert_true(hfi_budget_take(&b, at(S)));
    assert_false(hfi_budget_take(&b, at(S)));
    hfi_budget_reload(&b, at(S), 10000, 300, 10);
    for (int i = 0; i < 10; i++)
        assert_true(hfi_budget_take(&b, at(S)));
    assert_false(hfi_budget_take(&b, at(S)));
    hfi_budget_reload(&b, at(S), 5000, 300, 2);
    assert_true(hfi_budget_take(&b, at(S)));
    assert_true(hfi_budget_take(&b, at(S)));
    assert_false(hfi_budget_take(&b, at(S))); /* the floor only: the calls are forgotten */
    hfi_budget_end(&b);
}

enum { THREADS = 16, EACH = 300 };
static struct hfi_budget shared;
static struct hfi_bulkhead bulkhead;
static struct hfi_shards shards;
static _Atomic int inside;

static bool take_place(uint32_t *term) {
    struct hfi_shard_use use = hfi_shards_mine(&shards);
    return hfi_bulkhead_enter(&bulkhead, &shards, use, term);
}

static void give_place(uint32_t term) {
    hfi_bulkhead_leave(hfi_shards_mine(&shards), term);
}

static int64_t in_flight(void) {
    struct hfi_shards_sum sum;
    hfi_shards_sum(&shards, &sum);
    return sum.in_flight;
}

static void open_bulkhead(uint32_t max) {
    hfi_shards_end(&shards);
    memset(&shards, 0, sizeof shards);
    hfi_bulkhead_init(&bulkhead, max, 30000);
}
static pthread_barrier_t gate;
static _Atomic int granted, over;

static void *take_many(void *user) {
    (void)user;
    pthread_barrier_wait(&gate);
    for (int i = 0; i < EACH; i++)
        if (hfi_budget_take(&shared, at(100 * S)))
            atomic_fetch_add(&granted, 1);
    return NULL;
}

static void *enter_many(void *user) {
    (void)user;
    pthread_barrier_wait(&gate);
    for (int i = 0; i < EACH; i++) {
        uint32_t term;
        if (!take_place(&term))
            continue;
        if (atomic_fetch_add(&inside, 1) >= (int)hfi_bulkhead_max(&bulkhead))
            atomic_fetch_add(&over, 1);
        if (i % 7 == 0)
            sched_yield(); /* let others find it full */
        atomic_fetch_sub(&inside, 1);
        give_place(term);
    }
    return NULL;
}

static void crowd(void *(*run)(void *)) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&gate, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
}

static void r9_no_crowd_overdraws_it(void **state) {
    (void)state;
    for (int round = 0; round < 100; round++) {
        hfi_budget_init(&shared, 10000, 200, 10);
        for (int i = 0; i < 5000; i++)
            hfi_budget_call(&shared, at(100 * S));
        atomic_store(&granted, 0);
        crowd(take_many);
        assert_int_equal(atomic_load(&granted), 1000);
        hfi_budget_end(&shared);
    }
}

static void bulkhead_holds_its_maximum(void **state) {
    (void)state;
    uint32_t terms[3], term;
    for (int round = 0; round < 20; round++) {
        open_bulkhead(3);
        for (int i = 0; i < 3; i++)
            assert_true(take_place(&terms[i]));
        for (int i = 0; i < 1000; i++)
            assert_false(take_place(&term));
        for (int i = 0; i < 3; i++)
            give_place(terms[i]);
        crowd(enter_many);
        assert_int_equal(atomic_load(&over), 0);
        assert_int_equal(in_flight(), 0); /* R21, W11: nothing is eaten, nothing is lost */
        for (int i = 0; i < 3; i++) /* wherever the places ended up, all can be had */
            assert_true(take_place(&terms[i]));
        assert_false(take_place(&term));
    }
    hfi_shards_end(&shards);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r9_a_thousand_failures_at_once), cmocka_unit_test(r10_floor_at_low_rates),
        cmocka_unit_test(r10_calls_before_the_first_retry_count),
        cmocka_unit_test(no_memory_no_retry),             cmocka_unit_test(r16_other_numbers),
        cmocka_unit_test(r11_refills_with_time),          cmocka_unit_test(r13_refill_is_exact),
        cmocka_unit_test(nothing_to_give_waits_a_window), cmocka_unit_test(r9_no_crowd_overdraws_it),
        cmocka_unit_test(bulkhead_holds_its_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
