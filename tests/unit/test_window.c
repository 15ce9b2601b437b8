/* SPDX-License-Identifier: MIT */
/* The sliding window: W1, W2, W5, W6, W9, W10, S0.29. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "resilience/window.h"
#include "seed.h"

#define S INT64_C(1000000)
#define SLICE (5 * S) /* of 60 s */

static struct hf_mono at(int64_t us) {
    return (struct hf_mono){us};
}

static void w1_an_hour_idle_forgets_all(void **state) {
    (void)state;
    struct hfi_window w;
    hfi_window_init(&w, 60000);
    for (int i = 0; i < 30; i++)
        hfi_window_add(&w, at(1000 * S), true, true);
    assert_int_equal(hfi_window_read(&w, at(1000 * S)).failures, 30);
    hfi_window_add(&w, at(4600 * S), true, false);
    struct hfi_window_sum sum = hfi_window_read(&w, at(4600 * S));
    assert_int_equal(sum.calls, 1);
    assert_int_equal(sum.failures, 1);
    assert_int_equal(sum.slow, 0);
}

static void w10_reading_expires_too(void **state) {
    (void)state;
    struct hfi_window w;
    hfi_window_init(&w, 60000);
    hfi_window_add(&w, at(1000 * S), true, false);
    assert_int_equal(hfi_window_read(&w, at(1059 * S)).calls, 1);
    assert_int_equal(hfi_window_read(&w, at(1060 * S)).calls, 0);
    assert_int_equal(hfi_window_read(&w, at(1060 * S)).failures, 0);
}

static void w2_backward_time_is_clamped(void **state) {
    (void)state;
    struct hfi_window w;
    hfi_window_init(&w, 60000);
    for (int i = 0; i < 100; i++)
        hfi_window_add(&w, at(1000 * S + i * S / 2), false, false);
    for (int i = 0; i < 10; i++)
        hfi_window_add(&w, at(1045 * S), true, false); /* five seconds back */
    assert_int_equal(hfi_window_read(&w, at(1044 * S)).calls, 110);
    assert_int_equal(hfi_window_read(&w, at(0)).calls, 110);
    assert_int_equal(hfi_window_read(&w, at(-5)).calls, 110);
}

/* GOB#21: at the edge of a tumbling window one failure of ten looks like nine of ten. Ours slides. */
static void w9_no_spike_at_an_edge(void **state) {
    (void)state;
    struct hfi_window w;
    hfi_window_init(&w, 60000);
    int64_t now = 6000 * S;
    for (int i = 0; i < 600; i++, now += S / 10)
        hfi_window_add(&w, at(now), i % 11 == 0, false);
    for (int i = 0; i < 600; i++, now += S / 10) {
        hfi_window_add(&w, at(now), i % 11 == 0, false);
        struct hfi_window_sum sum = hfi_window_read(&w, at(now));
        assert_true(sum.calls >= 540); /* eleven whole slices at least */
        assert_true(sum.failures * 100 <= sum.calls * 12);
    }
}

static void peek_changes_nothing(void **state) {
    (void)state;
    struct hfi_window w, before;
    hfi_window_init(&w, 60000);
    hfi_window_add(&w, at(1000 * S), true, true);
    memcpy(&before, &w, sizeof w);
    assert_int_equal(hfi_window_peek(&w, at(1030 * S)).failures, 1);
    assert_int_equal(hfi_window_peek(&w, at(1060 * S)).failures, 0);
    assert_int_equal(hfi_window_peek(&w, at(9999 * S)).calls, 0);
    assert_memory_equal(&w, &before, sizeof w);
}

static void clear_empties(void **state) {
    (void)state;
    struct hfi_window w;
    hfi_window_init(&w, 60000);
    for (int64_t s = 1000; s < 1100; s++)
        hfi_window_add(&w, at(s * S), true, true);
    hfi_window_clear(&w);
    struct hfi_window_sum sum = hfi_window_read(&w, at(1099 * S));
    assert_int_equal(sum.calls + sum.failures + sum.slow, 0);
    hfi_window_add(&w, at(1099 * S), true, true);
    assert_int_equal(hfi_window_read(&w, at(1099 * S)).slow, 1);
}

/* A stamp comes round after 65,536 slices: what is that old must not look fresh. */
static void old_stamps_never_come_back(void **state) {
    (void)state;
    for (int64_t turns = 1; turns <= 3; turns++) {
        for (int64_t off = -13; off <= 13; off++) {
            struct hfi_window w;
            hfi_window_init(&w, 60000);
            hfi_window_add(&w, at(1000 * SLICE), true, false);
            int64_t later = (1000 + turns * 65536 + off) * SLICE;
            assert_int_equal(hfi_window_peek(&w, at(later)).calls, 0);
            assert_int_equal(hfi_window_read(&w, at(later)).calls, 0);
        }
    }
    /* Used once in every twelve slices, so that one slice is never written and its neighbours stay. */
    struct hfi_window w;
    hfi_window_init(&w, 60000);
    for (int64_t tick = 1001; tick < 1012; tick++)
        hfi_window_add(&w, at(tick * SLICE), true, false);
    for (int64_t tick = 1200; tick < 1200 + 66000; tick += 12)
        hfi_window_add(&w, at(tick * SLICE), false, false);
    assert_int_equal(hfi_window_read(&w, at((1200 + 66000) * SLICE)).failures, 0);
}

static void full_slice_keeps_its_ratio(void **state) {
    (void)state;
    struct hfi_window w;
    hfi_window_init(&w, 60000);
    for (int64_t i = 0; i < 17000000; i++)
        hfi_window_add(&w, at(0), i % 4 == 0, false);
    struct hfi_window_sum sum = hfi_window_read(&w, at(0));
    assert_true(sum.calls > 8000000);
    assert_in_range(sum.failures * 1000 / sum.calls, 249, 251);
}

/* Against a plain list of samples, for windows of 1 ms to 64 s: total = Σ slices, nothing negative (W5, W6). */
static void agrees_with_a_list_of_samples(void **state) {
    (void)state;
    enum { SAMPLES = 4000 };
    static struct {
        int64_t tick;
        bool failure, slow;
    } list[SAMPLES];
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("window"));
    for (int round = 0; round < 60; round++) {
        struct hfi_window w;
        int64_t window_ms = 1 + (int64_t)hfi_random_below(&random, round % 2 ? 64 : 64000);
        hfi_window_init(&w, window_ms);
        int64_t now = (int64_t)hfi_random_below(&random, INT64_C(1) << 40), newest = 0;
        for (int i = 0; i < SAMPLES; i++) {
            now += (int64_t)hfi_random_below(&random, (uint64_t)(w.slice_us * (hfi_random_below(&random, 50) ? 1 : 40)));
            int64_t jitter = (int64_t)hfi_random_below(&random, 20) == 0 ? -w.slice_us * 3 : 0;
            int64_t tick = (now + jitter > 0 ? now + jitter : 0) / w.slice_us;
            newest = tick > newest ? tick : newest;
            list[i].tick = newest;
            list[i].failure = hfi_random_below(&random, 2) != 0;
            list[i].slow = hfi_random_below(&random, 2) != 0;
            hfi_window_add(&w, at(now + jitter), list[i].failure, list[i].slow);
            struct hfi_window_sum expected = {0, 0, 0};
            int64_t seen = now / w.slice_us > newest ? now / w.slice_us : newest;
            for (int k = i; k >= 0 && list[k].tick > seen - HFI_WINDOW_SLICES; k--) {
                expected.calls++;
                expected.failures += list[k].failure;
                expected.slow += list[k].slow;
            }
            struct hfi_window_sum sum = hfi_window_peek(&w, at(now));
            assert_int_equal(sum.calls, expected.calls);
            assert_int_equal(sum.failures, expected.failures);
            assert_int_equal(sum.slow, expected.slow);
        }
    }
}

enum { THREADS = 8, EACH = 50000 };
static struct hfi_window shared;
static pthread_barrier_t gate;

static void *hammer(void *user) {
    int64_t id = (int64_t)(intptr_t)user;
    pthread_barrier_wait(&gate);
    for (int i = 0; i < EACH; i++)
        hfi_window_add(&shared, at(1000 * S + (i * id) % (50 * S)), i % 2 == 0, false);
    return NULL;
}

static void threads_lose_nothing(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    hfi_window_init(&shared, 60000);
    pthread_barrier_init(&gate, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
    struct hfi_window_sum sum = hfi_window_read(&shared, at(1050 * S));
    assert_int_equal(sum.calls, THREADS * EACH);
    assert_int_equal(sum.failures, THREADS * EACH / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w1_an_hour_idle_forgets_all), cmocka_unit_test(w10_reading_expires_too),
        cmocka_unit_test(w2_backward_time_is_clamped), cmocka_unit_test(w9_no_spike_at_an_edge),
        cmocka_unit_test(peek_changes_nothing),        cmocka_unit_test(clear_empties),
        cmocka_unit_test(old_stamps_never_come_back),  cmocka_unit_test(full_slice_keeps_its_ratio),
        cmocka_unit_test(agrees_with_a_list_of_samples), cmocka_unit_test(threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
