/* SPDX-License-Identifier: MIT */
/* The latency histogram: quantiles within 6.25 %, never below what was seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "resilience/histogram.h"
#include "seed.h"

static struct hfi_histogram histogram;

static void empty_has_no_quantile(void **state) {
    (void)state;
    memset(&histogram, 0, sizeof histogram);
    assert_int_equal(hfi_histogram_total(&histogram), 0);
    assert_int_equal(hfi_histogram_quantile(&histogram, 500), -1);
}

static void edges(void **state) {
    (void)state;
    static const int64_t values[] = {-5, 0, 1, 15, 16, 17, 31, 32, 33, 1000, 1000000, INT64_C(1) << 38, INT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        memset(&histogram, 0, sizeof histogram);
        hfi_histogram_add(&histogram, values[i]);
        assert_int_equal(hfi_histogram_total(&histogram), 1);
        int64_t got = hfi_histogram_quantile(&histogram, 0);
        int64_t least = values[i] < 0 ? 0 : values[i];
        if (values[i] != INT64_MAX) {
            assert_true(got >= least);
            assert_true(got - least <= least / 16);
        }
        assert_int_equal(hfi_histogram_quantile(&histogram, 1000), got);
    }
}

static int order(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static void quantiles_agree_with_the_sorted_list(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    static int64_t list[COUNT];
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("histogram"));
    for (int round = 0; round < 30; round++) {
        memset(&histogram, 0, sizeof histogram);
        int count = 1 + (int)hfi_random_below(&random, COUNT);
        for (int i = 0; i < count; i++) {
            list[i] = (int64_t)(hfi_random_next(&random) >> (25 + hfi_random_below(&random, 39)));
            hfi_histogram_add(&histogram, list[i]);
        }
        qsort(list, (size_t)count, sizeof *list, order);
        for (uint32_t permille = 1; permille <= 1000; permille += 37) {
            int64_t exact = list[(count * (int64_t)permille + 999) / 1000 - 1];
            int64_t got = hfi_histogram_quantile(&histogram, permille);
            assert_true(got >= exact);
            assert_true(got - exact <= exact / 16);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_has_no_quantile),
        cmocka_unit_test(edges),
        cmocka_unit_test(quantiles_agree_with_the_sorted_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
