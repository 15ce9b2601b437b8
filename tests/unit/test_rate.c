/* SPDX-License-Identifier: MIT */
/* The rate limit: never more than burst + rate × t in any span, exact waits, no drift; W2, W3, W11, R1, B19. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "resilience/rate.h"
#include "seed.h"

#define S INT64_C(1000000)

static struct hf_mono at(int64_t us) {
    return (struct hf_mono){us};
}

static struct hfi_rate make(double per_s, uint32_t burst) {
    struct hfi_rate rate = {0};
    hfi_rate_set(&rate, per_s, burst);
    return rate;
}

static void off_is_off(void **state) {
    (void)state;
    struct hfi_rate rate = make(0, 5);
    int64_t wait_us = 7;
    assert_false(hfi_rate_on(&rate));
    assert_int_equal(hfi_rate_left(&rate, at(S), &wait_us), UINT32_MAX);
    assert_int_equal(wait_us, 0);
    hfi_rate_give_back(&rate);
    assert_int_equal(atomic_load(&rate.full_at), 0);
}

static void default_bursts(void **state) {
    (void)state;
    assert_int_equal(hfi_rate_burst(0.001), 1);
    assert_int_equal(hfi_rate_burst(10), 1);
    assert_int_equal(hfi_rate_burst(11), 2);
    assert_int_equal(hfi_rate_burst(1000), 100);
    struct hfi_rate rate = make(1000, 0);
    int64_t wait_us;
    assert_int_equal(hfi_rate_left(&rate, at(S), &wait_us), 100);
}

static void the_wait_is_exact(void **state) {
    (void)state;
    struct hfi_rate rate = make(10, 3);
    int64_t wait_us = -1;
    for (int i = 0; i < 3; i++)
        assert_true(hfi_rate_take(&rate, at(5 * S), &wait_us));
    assert_false(hfi_rate_take(&rate, at(5 * S), &wait_us));
    assert_int_equal(wait_us, 100000);
    assert_false(hfi_rate_take(&rate, at(5 * S + 99999), &wait_us));
    assert_int_equal(wait_us, 1);
    assert_int_equal(hfi_rate_left(&rate, at(5 * S + 99999), &wait_us), 0);
    assert_int_equal(wait_us, 1);
    assert_int_equal(hfi_rate_left(&rate, at(5 * S + 250000), &wait_us), 2);
    assert_true(hfi_rate_take(&rate, at(5 * S + 100000), &wait_us));
    assert_false(hfi_rate_take(&rate, at(5 * S + 100000), &wait_us));
    hfi_rate_give_back(&rate); /* it never started: somebody else may */
    assert_true(hfi_rate_take(&rate, at(5 * S + 100000), &wait_us));
    assert_false(hfi_rate_take(&rate, at(5 * S + 100000), &wait_us));
}

/* However long it runs: one an interval, to the microsecond. */
static void no_drift(void **state) {
    (void)state;
    struct hfi_rate rate = make(8, 1); /* 125 ms */
    int64_t now_us = 3 * S, wait_us;
    for (int i = 0; i < 1000000; i++) {
        assert_true(hfi_rate_take(&rate, at(now_us), &wait_us));
        assert_false(hfi_rate_take(&rate, at(now_us), &wait_us));
        now_us += wait_us;
    }
    assert_int_equal(now_us, 3 * S + INT64_C(125000) * 1000000);
    rate = make(3, 1); /* 333333.33 ms, rounded up to a tick: after a million never fast, and 16 µs late at most */
    now_us = 3 * S;
    for (int i = 0; i <= 1000000; i++)
        if (!hfi_rate_take(&rate, at(now_us), &wait_us))
            now_us += wait_us, i--;
    assert_true(now_us >= 3 * S + S * 1000000 / 3);
}

/* Asked all the time at times of its own, 3/s gives what it promises over days. */
static void no_drift_when_asked_all_the_time(void **state) {
    (void)state;
    struct hfi_rate rate = make(3, 1);
    int64_t wait_us, taken = 0;
    for (int64_t now_us = S; now_us <= S + 100000 * S; now_us += 50000)
        taken += hfi_rate_take(&rate, at(now_us), &wait_us);
    assert_in_range(taken, 285000, 300001); /* a token waits for the next question: up to 50 of 333 ms */
    struct hfi_rate idle = make(3, 10);
    for (int64_t now_us = S, i = 0; i < 10; i++)
        assert_true(hfi_rate_take(&idle, at(now_us), &wait_us));
    assert_false(hfi_rate_take(&idle, at(S), &wait_us));
    int full = 0;
    while (hfi_rate_take(&idle, at(1000 * S), &wait_us))
        full++;
    assert_int_equal(full, 10); /* it fills up to the burst and no further */
}

/* W2, W3: a reading that steps back admits nothing more and loses nothing; one far ahead finds a full bucket. */
static void clocks_that_step(void **state) {
    (void)state;
    struct hfi_rate rate = make(10, 5);
    int64_t wait_us;
    for (int i = 0; i < 5; i++)
        assert_true(hfi_rate_take(&rate, at(100000 * S), &wait_us));
    assert_false(hfi_rate_take(&rate, at(100000 * S - 86400 * S), &wait_us));
    assert_int_equal(wait_us, 86400 * S + 100000);
    assert_false(hfi_rate_take(&rate, at(0), &wait_us));
    assert_int_equal(hfi_rate_left(&rate, at(100000 * S + 100000), &wait_us), 1);
    int taken = 0;
    while (hfi_rate_take(&rate, at(100000 * S + 3650 * 86400 * S), &wait_us))
        taken++;
    assert_int_equal(taken, 5);
    taken = 0;
    while (hfi_rate_take(&rate, at(INT64_MAX), &wait_us) && taken < 100)
        taken++;
    assert_in_range(taken, 0, 5);
}

static void extremes(void **state) {
    (void)state;
    struct hfi_rate slow = make(1.0 / HFI_RATE_FILL_MAX_S, 1), fast = make(HFI_RATE_MAX, 0);
    int64_t wait_us;
    assert_true(hfi_rate_take(&slow, at(S), &wait_us));
    assert_false(hfi_rate_take(&slow, at(S), &wait_us));
    assert_in_range(wait_us, INT64_C(31535999) * S, INT64_C(31536001) * S);
    uint32_t taken = 0;
    while (hfi_rate_take(&fast, at(S), &wait_us))
        taken++;
    assert_int_equal(taken, HFI_RATE_MAX / 10);
    assert_int_equal(wait_us, 1);
}

/* A new limit keeps what was taken: no free burst by reloading. */
static void changing_it_gives_nothing_away(void **state) {
    (void)state;
    struct hfi_rate rate = make(10, 10);
    int64_t wait_us;
    while (hfi_rate_take(&rate, at(S), &wait_us))
        ;
    hfi_rate_set(&rate, 10, 10);
    assert_false(hfi_rate_take(&rate, at(S), &wait_us));
    hfi_rate_set(&rate, 0, 0);
    assert_false(hfi_rate_on(&rate));
    hfi_rate_set(&rate, 10, 10);
    assert_false(hfi_rate_take(&rate, at(S), &wait_us));
}

#define STARTS 300
/* The promise itself, for every pair of starts of random schedules. */
static void never_more_than_burst_plus_rate_times_t(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("rate"));
    for (int round = 0; round < 200; round++) {
        double per_s = (double)(1 + hfi_random_below(&random, 1000000)) / (double)(1 + hfi_random_below(&random, 1000));
        uint32_t burst = 1 + (uint32_t)hfi_random_below(&random, 50);
        struct hfi_rate rate = make(per_s > HFI_RATE_MAX ? HFI_RATE_MAX : per_s, burst);
        int64_t interval_us = (int64_t)(1e6 / per_s) + 1, now_us = (int64_t)hfi_random_below(&random, 1000 * S);
        int64_t starts[STARTS], wait_us = 0;
        int count = 0;
        for (int step = 0; step < 2000 && count < STARTS; step++) {
            uint64_t kind = hfi_random_below(&random, 10);
            now_us += kind == 0 ? (int64_t)hfi_random_below(&random, (uint64_t)(interval_us * burst * 2))
                                : (int64_t)hfi_random_below(&random, (uint64_t)interval_us);
            int64_t reading_us = now_us - (kind == 1 ? (int64_t)hfi_random_below(&random, 1000) : 0); /* read late */
            if (hfi_rate_take(&rate, at(reading_us), &wait_us)) {
                starts[count++] = now_us;
                continue;
            }
            assert_true(wait_us > 0);
            struct hfi_rate early = {rate.full_at, rate.interval, rate.slack},
                            exact = {rate.full_at, rate.interval, rate.slack};
            int64_t dummy_us;
            assert_false(hfi_rate_take(&early, at(reading_us + wait_us - 1), &dummy_us));
            assert_true(hfi_rate_take(&exact, at(reading_us + wait_us), &dummy_us));
        }
        for (int from = 0; from < count; from++)
            for (int to = from; to < count; to++)
                assert_true(to - from + 1 <= burst + per_s * (double)(starts[to] - starts[from] + 1000) / 1e6);
    }
}

/* W11: a crowd on one bucket loses no token and makes none up. */
#define CROWD 8
#define ASKS 20000
static struct {
    struct hfi_rate rate;
    _Atomic int64_t clock_us, taken, given_back;
} crowd;

static void *ask(void *user) {
    (void)user;
    for (int i = 0; i < ASKS; i++) {
        int64_t wait_us, now_us = atomic_fetch_add(&crowd.clock_us, 1);
        if (!hfi_rate_take(&crowd.rate, at(now_us), &wait_us))
            continue;
        atomic_fetch_add(&crowd.taken, 1);
        if (i % 3 == 0) {
            hfi_rate_give_back(&crowd.rate);
            atomic_fetch_add(&crowd.given_back, 1);
        }
    }
    return NULL;
}

static void w11_a_crowd(void **state) {
    (void)state;
    pthread_t threads[CROWD];
    hfi_rate_set(&crowd.rate, 100000, 50); /* one in 10 µs */
    atomic_store(&crowd.clock_us, S);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    int64_t span_us = atomic_load(&crowd.clock_us) - S,
            net = atomic_load(&crowd.taken) - atomic_load(&crowd.given_back);
    assert_int_equal(span_us, CROWD * ASKS);
    assert_in_range(net, 1, 50 + span_us / 10);
    /* What is ahead is what was taken and not yet refilled: never more than all of it. */
    int64_t wait_us;
    assert_true(hfi_rate_left(&crowd.rate, at(S + 2 * span_us), &wait_us) == 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_is_off),
        cmocka_unit_test(default_bursts),
        cmocka_unit_test(the_wait_is_exact),
        cmocka_unit_test(no_drift),
        cmocka_unit_test(no_drift_when_asked_all_the_time),
        cmocka_unit_test(clocks_that_step),
        cmocka_unit_test(extremes),
        cmocka_unit_test(changing_it_gives_nothing_away),
        cmocka_unit_test(never_more_than_burst_plus_rate_times_t),
        cmocka_unit_test(w11_a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
