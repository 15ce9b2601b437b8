/* SPDX-License-Identifier: MIT */
/* The latency histogram: quantiles within 6.25 %, never below what was seen. The fine one of ladders: within 1 %. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "holdfast/error.h"
#include "resilience/histogram.h"
#include "resilience/spread.h"
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

/* ------------------------------------------------------------------ spreads */

enum { SPREADS = 3 };
static struct hfi_spread some[SPREADS], others[SPREADS];

static int64_t any_duration(struct hfi_random *random) {
    return (int64_t)(hfi_random_next(random) >> (22 + hfi_random_below(random, 42)));
}

/* at most 1 % above, never below, over the whole range; buckets follow each other without gap. */
static void a_spread_is_within_one_percent_everywhere(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("spread"));
    for (unsigned bucket = 0; bucket < HFI_SPREAD_BUCKETS; bucket++) {
        assert_int_equal(hfi_spread_bucket(hfi_spread_edge(bucket)), bucket);
        assert_int_equal(hfi_spread_bucket(hfi_spread_floor(bucket)), bucket);
        double low = (double)hfi_spread_floor(bucket), high = (double)hfi_spread_edge(bucket);
        assert_true(high - low <= low * 0.01);
    }
    assert_true(hfi_spread_edge(HFI_SPREAD_BUCKETS - 1) >= INT64_C(40) * 24 * 3600 * 1000000);
    for (int i = 0; i < 20000; i++) {
        int64_t us = any_duration(&random), edge = hfi_spread_edge(hfi_spread_bucket(us));
        assert_true(edge >= us);
        assert_true((double)(edge - us) <= (double)us * 0.01);
    }
    assert_int_equal(hfi_spread_bucket(-5), 0);
    assert_int_equal(hfi_spread_bucket(INT64_MAX), HFI_SPREAD_BUCKETS - 1);
}

static void fill(struct hfi_spread *spreads, struct hfi_random *random, int count) {
    memset(spreads, 0, SPREADS * sizeof *spreads);
    for (int i = 0; i < count; i++)
        hfi_spread_add(&spreads[hfi_random_below(random, SPREADS)], any_duration(random),
                       hfi_random_below(random, 20) > 0 ? 1 + hfi_random_below(random, 1000) : UINT64_MAX / 3);
}

static struct hfi_packed pack(const struct hfi_spread *spreads) {
    struct hfi_packed packed;
    hfi_packed_begin(&packed);
    for (uint64_t key = 0; key < (uint64_t)SPREADS * HFI_SPREAD_BUCKETS; key++)
        hfi_packed_put(&packed, key, spreads[key / HFI_SPREAD_BUCKETS].counts[key % HFI_SPREAD_BUCKETS]);
    assert_false(packed.failed);
    return packed;
}

static struct hfi_packed sum_of(const struct hfi_packed *a, const struct hfi_packed *b) {
    struct hfi_packed sum;
    assert_int_equal(hfi_packed_merge(a->bytes, a->length, b->bytes, b->length, &sum), 0);
    assert_true(sum.length <= a->length + b->length);
    return sum;
}

/* bytes merge as the spreads do, in any order and any grouping; unpacked they are the same again. */
static void merging_is_associative_and_loses_nothing(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("packed"));
    for (int round = 0; round < 20; round++) {
        struct hfi_packed a, b, c;
        fill(others, &random, (int)hfi_random_below(&random, 300));
        a = pack(others);
        fill(some, &random, (int)hfi_random_below(&random, 300));
        b = pack(some);
        for (int i = 0; i < SPREADS; i++)
            hfi_spread_merge(&others[i], &some[i]);
        fill(some, &random, (int)hfi_random_below(&random, 300));
        c = pack(some);
        for (int i = 0; i < SPREADS; i++)
            hfi_spread_merge(&others[i], &some[i]);
        struct hfi_packed ab = sum_of(&a, &b), ab_c = sum_of(&ab, &c), bc = sum_of(&c, &b), a_bc = sum_of(&a, &bc);
        struct hfi_packed *all[] = {&a, &b, &c, &ab, &bc, &ab_c, &a_bc};
        assert_int_equal(ab_c.length, a_bc.length);
        assert_memory_equal(ab_c.bytes, a_bc.bytes, ab_c.length);
        memset(some, 0, sizeof some);
        assert_int_equal(hfi_packed_add(ab_c.bytes, ab_c.length, some, SPREADS), 0);
        assert_memory_equal(some, others, sizeof some);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            hfi_free(all[i]->bytes);
    }
}

/* Bytes of a file may be anything: refused whole, or understood; never read beyond their end. */
static void damaged_bytes_are_refused_whole(void **state) {
    (void)state;
    static struct hfi_spread before[SPREADS];
    struct hfi_packed sum;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("damaged"));
    assert_int_equal(hfi_packed_add("", 0, some, SPREADS), HF_EINVAL);
    assert_int_equal(hfi_packed_add("\002", 1, some, SPREADS), HF_EINVAL);
    assert_int_equal(hfi_packed_add("\001\000\001", 3, some, SPREADS), HF_EINVAL);                /* no gap */
    assert_int_equal(hfi_packed_add("\001\001\000", 3, some, SPREADS), HF_EINVAL);                /* no count */
    assert_int_equal(hfi_packed_add("\001\001", 2, some, SPREADS), HF_EINVAL);                    /* no end */
    assert_int_equal(hfi_packed_add("\001\001\377\377\377\377\377\377\377\377\377\177", 12, some, SPREADS), HF_EINVAL); /* too big */
    assert_int_equal(hfi_packed_merge("\001\001\001", 3, "\002", 1, &sum), HF_EINVAL);
    assert_null(sum.bytes);
    fill(others, &random, 200);
    struct hfi_packed whole = pack(others);
    for (int i = 0; i < 2000; i++) {
        size_t length = hfi_random_below(&random, whole.length + 1);
        unsigned char *copy = malloc(length > 0 ? length : 1); /* AddressSanitizer watches its end */
        assert_non_null(copy);
        memcpy(copy, whole.bytes, length);
        if (length > 0)
            copy[hfi_random_below(&random, length)] ^= (unsigned char)(1 + hfi_random_below(&random, 255));
        memcpy(before, some, sizeof some);
        if (hfi_packed_add(copy, length, some, SPREADS) != 0)
            assert_memory_equal(before, some, sizeof some);
        free(copy);
    }
    hfi_free(whole.bytes);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    struct hfi_packed packed, sum;
    hfi_alloc_fail(1, 1);
    hfi_packed_begin(&packed);
    hfi_packed_put(&packed, 7, 1);
    assert_true(packed.failed);
    assert_int_equal(hfi_packed_merge("\001\001\001", 3, "\001\001\001", 3, &sum), HF_ENOMEM);
    hfi_alloc_fail(0, 0);
    assert_null(sum.bytes);
    hfi_free(packed.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_has_no_quantile),
        cmocka_unit_test(edges),
        cmocka_unit_test(quantiles_agree_with_the_sorted_list),
        cmocka_unit_test(a_spread_is_within_one_percent_everywhere),
        cmocka_unit_test(merging_is_associative_and_loses_nothing),
        cmocka_unit_test(damaged_bytes_are_refused_whole),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
