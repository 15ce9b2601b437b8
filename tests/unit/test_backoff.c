/* SPDX-License-Identifier: MIT */
/* Waits between short retries: R1, R2, R4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "resilience/backoff.h"
#include "seed.h"

static struct hfi_backoff_rules rules(enum hf_backoff backoff, enum hf_jitter jitter) {
    return (struct hfi_backoff_rules){.backoff = backoff,
                                      .jitter = jitter,
                                      .factor_permille = 2000,
                                      .jitter_permille = 100,
                                      .base_ms = 500,
                                      .cap_ms = 5000,
                                      .table_length = 3,
                                      .table_ms = {100, 700, 900}};
}

static void plain_kinds(void **state) {
    (void)state;
    static const int64_t expected[4][6] = {{500, 500, 500, 500, 500, 500},
                                           {500, 1000, 1500, 2000, 2500, 3000},
                                           {500, 1000, 2000, 4000, 5000, 5000},
                                           {100, 700, 900, 900, 900, 900}};
    for (int kind = 0; kind < 4; kind++) {
        struct hfi_backoff_rules r = rules((enum hf_backoff)kind, HF_JITTER_NONE);
        for (uint64_t retry = 0; retry < 6; retry++) {
            assert_int_equal(hfi_backoff_ms(&r, retry, 0, 12345), expected[kind][retry]);
            assert_int_equal(hfi_backoff_max_ms(&r, retry), expected[kind][retry]);
        }
    }
    struct hfi_backoff_rules r = rules(HF_BACKOFF_EXPONENTIAL, HF_JITTER_NONE);
    r.factor_permille = 1100;
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, 0), 550);
    assert_int_equal(hfi_backoff_ms(&r, 2, 0, 0), 605);
}

static void jitter_ranges(void **state) {
    (void)state;
    struct hfi_backoff_rules r = rules(HF_BACKOFF_EXPONENTIAL, HF_JITTER_FULL);
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, 0), 0);
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, UINT64_MAX), 1000);
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, UINT64_MAX / 2), 500);
    r.jitter = HF_JITTER_EQUAL;
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, 0), 500);
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, UINT64_MAX), 1000);
    r.jitter = HF_JITTER_FACTOR;
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, 0), 900);
    assert_int_equal(hfi_backoff_ms(&r, 1, 0, UINT64_MAX), 1100);
    assert_int_equal(hfi_backoff_max_ms(&r, 1), 1100);
    r.jitter = HF_JITTER_DECORRELATED;
    assert_int_equal(hfi_backoff_ms(&r, 0, 0, 0), 500);
    assert_int_equal(hfi_backoff_ms(&r, 0, 0, UINT64_MAX), 1500);
    assert_int_equal(hfi_backoff_ms(&r, 1, 900, UINT64_MAX), 2700);
    assert_int_equal(hfi_backoff_max_ms(&r, 0), 1500);
    assert_int_equal(hfi_backoff_max_ms(&r, 5), 5000);
}

static void r2_collapsed_range_is_the_base(void **state) {
    (void)state;
    struct hfi_backoff_rules r = rules(HF_BACKOFF_EXPONENTIAL, HF_JITTER_DECORRELATED);
    r.cap_ms = 500;
    for (uint64_t random = 0; random < 100; random++)
        assert_int_equal(hfi_backoff_ms(&r, random, (int64_t)random, random * (UINT64_MAX / 100)), 500);
    r.cap_ms = 5000;
    assert_int_equal(hfi_backoff_ms(&r, 3, 1, 0), 500); /* 3 × last below the base: still the base */
}

static void r4_clamped_last(void **state) {
    (void)state;
    for (int jitter = 0; jitter <= HF_JITTER_DECORRELATED; jitter++) {
        struct hfi_backoff_rules r = rules(HF_BACKOFF_EXPONENTIAL, (enum hf_jitter)jitter);
        r.jitter_permille = 1000;
        assert_int_equal(hfi_backoff_ms(&r, 20, 5000, UINT64_MAX), 5000);
    }
}

static void r1_always_within_bounds(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("backoff"));
    for (int i = 0; i < 300000; i++) {
        struct hfi_backoff_rules r = {0};
        r.backoff = (enum hf_backoff)hfi_random_below(&random, 4);
        r.jitter = (enum hf_jitter)hfi_random_below(&random, 5);
        r.factor_permille = (uint32_t)hfi_random_next(&random) >> hfi_random_below(&random, 32);
        r.jitter_permille = (uint32_t)hfi_random_below(&random, 1001);
        r.cap_ms = (int64_t)(hfi_random_next(&random) >> (1 + hfi_random_below(&random, 62)));
        r.base_ms = (int64_t)hfi_random_below(&random, (uint64_t)r.cap_ms + 1);
        r.table_length = (uint32_t)hfi_random_below(&random, HF_BACKOFF_TABLE_MAX + 1);
        for (uint32_t k = 0; k < r.table_length; k++)
            r.table_ms[k] = (int64_t)hfi_random_below(&random, (uint64_t)r.cap_ms + 1);
        uint64_t retry = hfi_random_next(&random) >> (31 + hfi_random_below(&random, 33)); /* 0 … 2^32 */
        int64_t last = (int64_t)hfi_random_below(&random, (uint64_t)r.cap_ms + 1);
        int64_t wait = hfi_backoff_ms(&r, retry, last, hfi_random_next(&random));
        assert_true(wait >= 0 && wait <= r.cap_ms);
        int64_t most = hfi_backoff_max_ms(&r, retry);
        assert_true(most >= 0 && most <= r.cap_ms);
        if (r.jitter != HF_JITTER_DECORRELATED)
            assert_true(wait <= most);
        if (r.jitter == HF_JITTER_DECORRELATED)
            assert_true(wait >= r.base_ms);
    }
    struct hfi_backoff_rules r = rules(HF_BACKOFF_EXPONENTIAL, HF_JITTER_NONE);
    for (uint64_t retry = 0; retry < UINT64_C(1) << 32; retry = retry * 3 / 2 + 1)
        assert_true(hfi_backoff_ms(&r, retry, 0, 0) >= 500); /* Polly#2163: no try number wraps */
    assert_int_equal(hfi_backoff_ms(&r, UINT64_MAX, 0, 0), 5000);
    r.backoff = HF_BACKOFF_LINEAR;
    assert_int_equal(hfi_backoff_ms(&r, UINT64_MAX, 0, 0), 5000);
}

static void full_jitter_is_uniform(void **state) {
    (void)state;
    struct hfi_random random;
    struct hfi_backoff_rules r = rules(HF_BACKOFF_CONSTANT, HF_JITTER_FULL);
    int counts[10] = {0};
    r.base_ms = 9;
    hfi_random_seed(&random, 7);
    for (int i = 0; i < 100000; i++)
        counts[hfi_backoff_ms(&r, 0, 0, hfi_random_next(&random))]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(counts[i], 9400, 10600); /* 6 sigma */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_kinds),
        cmocka_unit_test(jitter_ranges),
        cmocka_unit_test(r2_collapsed_range_is_the_base),
        cmocka_unit_test(r4_clamped_last),
        cmocka_unit_test(r1_always_within_bounds),
        cmocka_unit_test(full_jitter_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
