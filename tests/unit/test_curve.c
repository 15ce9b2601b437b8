/* SPDX-License-Identifier: MIT */
/* The long curve: S0.6, S0.7, S1.3, S1.5, S1.6, S2.2, S2.3, S4.1, I34, I37, I68, C5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/runner.h"
#include "jobs/curve.h"
#include "seed.h"

/* Seconds of the gaps a job of that curve sees until it dies. */
static int64_t gaps(const struct hfi_curve *curve, int64_t *seconds, size_t room) {
    int64_t sum = 0;
    for (uint32_t failures = 1; failures < curve->max_executions; failures++) {
        int64_t wait = hfi_curve_wait_ms(curve, failures, 99);
        assert_int_equal(wait % 1000, 0);
        assert_true(failures - 1 < room);
        seconds[failures - 1] = wait / 1000;
        sum += wait / 1000;
    }
    return sum;
}

static void default_gaps_are_exact_S0_6(void **state) {
    (void)state;
    struct hfi_curve curve;
    int64_t seconds[8];
    hfi_curve_default(&curve);
    assert_int_equal(curve.max_executions, 6);
    assert_int_equal(gaps(&curve, seconds, 8), 16560);
    const int64_t expected[] = {60, 300, 1800, 7200, 7200};
    assert_memory_equal(seconds, expected, sizeof expected);
    assert_int_equal(hfi_curve_time_to_death_ms(&curve, curve.max_executions), 16560000);
    assert_int_equal(hfi_curve_time_to_death_ms(&curve, 1), 0);
    assert_int_equal(hfi_curve_time_to_death_ms(&curve, 0), 0);
}

static void five_seconds_minutes_hours_S4_1(void **state) {
    (void)state;
    struct hfi_curve curve;
    assert_int_equal(hfi_curve_parse("5s,5m,5h", &curve), 0);
    assert_int_equal(curve.max_executions, 4);
    assert_int_equal(hfi_curve_time_to_death_ms(&curve, 4), 18305000);
}

static void powers_of_two_up_to_300_S1_5(void **state) {
    (void)state;
    struct hfi_curve curve;
    int64_t seconds[16];
    hfi_curve_exponential(&curve, 10, 2000, 2000, 300000);
    gaps(&curve, seconds, 16);
    const int64_t expected[] = {2, 4, 8, 16, 32, 64, 128, 256, 300};
    assert_memory_equal(seconds, expected, sizeof expected);
    assert_int_equal(curve.length, 9); /* a pure table: the cap ends it [S1.6] */
}

static void doubling_from_30_s_S2_3(void **state) {
    (void)state;
    struct hfi_curve curve;
    int64_t seconds[8];
    hfi_curve_exponential(&curve, 5, 30000, 2000, 0);
    gaps(&curve, seconds, 8);
    const int64_t expected[] = {30, 60, 120, 240};
    assert_memory_equal(seconds, expected, sizeof expected);
    hfi_curve_exponential(&curve, 5, 500, 1000, 0); /* a constant [S1.3] */
    assert_int_equal(curve.length, 1);
    for (uint64_t n = 1; n < 9; n++)
        assert_int_equal(hfi_curve_wait_ms(&curve, n, n), 500);
}

static void fourth_power_plus_15_S2_2(void **state) {
    (void)state;
    struct hfi_curve curve;
    hfi_curve_polynomial(&curve, 10, 4, 15000);
    assert_int_equal(hfi_curve_wait_ms(&curve, 1, 7), 16000);
    assert_int_equal(hfi_curve_wait_ms(&curve, 4, 7), 271000);
    assert_int_equal(hfi_curve_wait_ms(&curve, 64, 7), (16777216 + 15) * INT64_C(1000));
}

/* F9: 25 retries over three weeks are a curve like any other: a table, and a due time in the store. */
static void three_weeks_F9(void **state) {
    (void)state;
    struct hfi_curve curve;
    hfi_curve_polynomial(&curve, 26, 4, 15000);
    int64_t sum_ms = 0;
    for (uint64_t failures = 1; failures <= 25; failures++)
        sum_ms += hfi_curve_wait_ms(&curve, failures, 0);
    assert_int_equal(sum_ms, (2153645 + 25 * 15) * INT64_C(1000)); /* 1^4 + … + 25^4 s, and 15 s each: 24.9 days */
    assert_int_equal(hfi_curve_time_to_death_ms(&curve, 26), sum_ms);
}

static void cap_comes_after_jitter_S2_3(void **state) {
    (void)state;
    struct hfi_curve curve;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("cap_comes_after_jitter"));
    hfi_curve_exponential(&curve, 9, 1000, 2000, 8000);
    curve.jitter_permille = 100;
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 20000; i++) {
        int64_t wait = hfi_curve_wait_ms(&curve, 2, hfi_random_next(&random));
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
        assert_in_range(hfi_curve_wait_ms(&curve, 50, hfi_random_next(&random)), 7200, 8000);
    }
    assert_in_range(least, 1800, 1810); /* 2 s ± 10 %, both ends reached */
    assert_in_range(most, 2190, 2200);
}

static void shorter_list_reuses_the_last_S0_7(void **state) {
    (void)state;
    struct hfi_curve curve;
    assert_int_equal(hfi_curve_parse("1s, 2s", &curve), 0);
    curve.max_executions = 6;
    assert_int_equal(hfi_curve_wait_ms(&curve, 0, 0), 1000);
    assert_int_equal(hfi_curve_wait_ms(&curve, 2, 0), 2000);
    assert_int_equal(hfi_curve_wait_ms(&curve, 5, 0), 2000);
    assert_int_equal(hfi_curve_time_to_death_ms(&curve, 6), 9000);
    curve.length = 0; /* no waits at all */
    assert_int_equal(hfi_curve_wait_ms(&curve, 3, 0), 0);
    assert_int_equal(hfi_curve_time_to_death_ms(&curve, 6), 0);
}

static void no_number_of_failures_overflows_I68(void **state) {
    (void)state;
    struct hfi_curve curves[5];
    hfi_curve_default(&curves[0]);
    hfi_curve_exponential(&curves[1], 10, 2000, 2000, 300000);
    hfi_curve_exponential(&curves[2], 10, 60000, 1000000, 0);
    hfi_curve_polynomial(&curves[3], 10, 8, INT64_MAX);
    hfi_curve_exponential(&curves[4], 10, 1, 1100, 0);
    assert_int_equal(hfi_curve_wait_ms(&curves[4], 1, 0), 1); /* the first is the base exactly */
    for (size_t c = 0; c < 5; c++) {
        int64_t last = 0;
        for (uint64_t n = 1; n <= 1000000; n++) {
            int64_t wait = hfi_curve_wait_ms(&curves[c], n, 0);
            if (wait < last)
                fail_msg("curve %zu falls at %u", c, (unsigned)n);
            last = wait;
        }
        assert_int_equal(hfi_curve_wait_ms(&curves[c], UINT64_MAX, 0), last);
        assert_true(hfi_curve_time_to_death_ms(&curves[c], UINT32_MAX) >= last);
        curves[c].jitter_permille = 1000;
        assert_true(hfi_curve_wait_ms(&curves[c], UINT64_MAX, UINT64_MAX) >= 0);
        assert_true(hfi_curve_wait_ms(&curves[c], UINT64_MAX, INT64_MAX) >= 0);
    }
    assert_int_equal(hfi_curve_time_to_death_ms(&curves[2], UINT32_MAX), INT64_MAX);
}

static void wrong_texts_are_refused(void **state) {
    (void)state;
    struct hfi_curve curve;
    static const char *const wrong[] = {"", ",", "5s,", "5", "5s;6s", "5s 6s", "-5s", "5s,,6s", "5 s", "s"};
    memset(&curve, 7, sizeof curve);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(hfi_curve_parse(wrong[i], &curve), HF_EINVAL);
    assert_int_equal(hfi_curve_parse("99999999999999999d", &curve), HF_ETOOBIG);
    char many[65 * 3 + 1] = "";
    for (int i = 0; i < 65; i++)
        strcat(many, i < 64 ? "1s," : "1s");
    assert_int_equal(hfi_curve_parse(many, &curve), HF_ETOOBIG);
    assert_int_equal(curve.length, 0x07070707); /* untouched */
    many[64 * 3 - 1] = '\0';
    assert_int_equal(hfi_curve_parse(many, &curve), 0);
    assert_int_equal(curve.length, 64);
}

static void equal_but_for_the_id(void **state) {
    (void)state;
    struct hfi_curve a, b;
    hfi_curve_default(&a);
    hfi_curve_default(&b);
    b.id = 9;
    b.waits_ms[10] = 5; /* beyond its length */
    assert_true(hfi_curve_equal(&a, &b));
    b.waits_ms[3]++;
    assert_false(hfi_curve_equal(&a, &b));
    b = a;
    b.max_executions++;
    assert_false(hfi_curve_equal(&a, &b));
    b = a;
    b.cap_ms = 1;
    assert_false(hfi_curve_equal(&a, &b));
}

struct asked {
    uint32_t calls, first, last;
};

static int64_t seven_times_n(uint32_t failures, void *user) {
    struct asked *asked = user;
    asked->first = asked->calls == 0 ? failures : asked->first;
    asked->last = failures;
    asked->calls++;
    return failures < 20 ? 7000 * (int64_t)failures : 140000;
}

static int64_t negative_late(uint32_t failures, void *user) {
    (void)user;
    return failures < 60 ? 1 : -1;
}

/* S2.17: a function of the failures made, 1 first. S1.6, C15: asked once for each and never again. */
static void a_function_becomes_a_table_S1_6_S2_17(void **state) {
    (void)state;
    struct hf_curve_options options;
    struct asked asked = {0};
    hf_curve_options_init(&options);
    assert_int_equal(hf_curve_from(&options, seven_times_n, &asked), 0);
    assert_int_equal(asked.calls, HF_CURVE_MAX);
    assert_int_equal(asked.first, 1);
    assert_int_equal(asked.last, HF_CURVE_MAX);
    assert_int_equal(options.curve_length, 20); /* the rest repeats the last */
    assert_int_equal(options.curve_ms[0], 7000);
    assert_int_equal(options.curve_ms[18], 19 * 7000);
    assert_int_equal(options.curve_ms[19], 140000);
    assert_int_equal(options.max_executions, 0); /* as set, or not */
    assert_true(options.formula);
    struct hf_curve_options before = options;
    assert_int_equal(hf_curve_from(&options, negative_late, NULL), HF_EINVAL);
    assert_int_equal(hf_curve_from(&options, NULL, NULL), HF_EINVAL);
    assert_int_equal(hf_curve_from(NULL, seven_times_n, &asked), HF_EINVAL);
    assert_memory_equal(&options, &before, sizeof before);
}

/* S1.3: a constant, however it is said. I64: half a second stays half a second. */
static void a_constant_of_half_a_second_S1_3_I64(void **state) {
    (void)state;
    struct hfi_curve said, made;
    struct hf_curve_options options;
    assert_int_equal(hfi_curve_parse("500ms", &said), 0);
    hfi_curve_exponential(&made, 9, 500, 1000, 0);
    hf_curve_options_init(&options);
    assert_int_equal(hf_curve_exponential(&options, 500, 1, 0), 0);
    assert_int_equal(options.curve_length, 1);
    for (uint64_t n = 1; n <= 20; n++) {
        assert_int_equal(hfi_curve_wait_ms(&said, n, n), 500);
        assert_int_equal(hfi_curve_wait_ms(&made, n, n), 500);
    }
}

/* I68: with jitter too: within its share of the plain wait, and within the cap, for any n and any chance. */
static void jitter_stays_within_its_share_and_the_cap_I68(void **state) {
    (void)state;
    struct hfi_curve curves[5];
    struct hf_curve_options own;
    struct asked asked = {0};
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("jitter_stays_within_its_share_and_the_cap"));
    hf_curve_options_init(&own);
    assert_int_equal(hf_curve_from(&own, seven_times_n, &asked), 0);
    hfi_curve_default(&curves[0]);
    hfi_curve_exponential(&curves[1], 10, 2000, 2000, 300000);
    hfi_curve_polynomial(&curves[2], 10, 4, 15000);
    assert_int_equal(hfi_curve_parse("5s,5m,5h", &curves[3]), 0);
    hfi_curve_default(&curves[4]);
    curves[4].length = own.curve_length;
    memcpy(curves[4].waits_ms, own.curve_ms, sizeof own.curve_ms);
    for (size_t c = 0; c < 5; c++)
        for (int i = 0; i < 20000; i++) {
            struct hfi_curve plain = curves[c];
            uint64_t n = 1 + hfi_random_below(&random, i % 2 == 0 ? 100 : 1000000);
            plain.cap_ms = plain.jitter_permille = 0;
            int64_t wait = hfi_curve_wait_ms(&plain, n, 0);
            curves[c].jitter_permille = (uint32_t)hfi_random_below(&random, 1001);
            curves[c].cap_ms = (int64_t)hfi_random_below(&random, 400000);
            int64_t spread = hfi_curve_wait_ms(&curves[c], n, hfi_random_below(&random, UINT64_MAX));
            double most = (double)wait * (1 + curves[c].jitter_permille / 1000.0) + 1, cap = (double)curves[c].cap_ms;
            assert_true(spread >= 0 && (double)spread <= most && (cap == 0 || (double)spread <= cap));
            assert_true((cap > 0 && (double)spread >= cap) ||
                        (double)spread >= (double)wait * (1 - curves[c].jitter_permille / 1000.0) - 1);
        }
}

static void public_fillers_check_their_arguments(void **state) {
    (void)state;
    struct hf_curve_options options;
    hf_curve_options_init(&options);
    assert_int_equal(hf_curve_exponential(&options, 2000, 2, 300000), 0);
    assert_int_equal(options.curve_length, 9);
    assert_int_equal(options.curve_ms[8], 300000);
    assert_int_equal(options.cap_ms, 300000);
    assert_int_equal(hf_curve_exponential(&options, 0, 2, 0), HF_EINVAL);
    assert_int_equal(hf_curve_exponential(&options, 10, 0.5, 0), HF_EINVAL);
    assert_int_equal(hf_curve_exponential(&options, 10, 2, 9), HF_EINVAL);
    assert_int_equal(hf_curve_exponential(&options, 10, 2000, 0), HF_EINVAL);
    assert_int_equal(hf_curve_polynomial(&options, 4, 15000, 0.1), 0);
    assert_int_equal(options.curve_ms[0], 16000);
    assert_int_equal(hf_curve_polynomial(&options, 0, 0, 0), HF_EINVAL);
    assert_int_equal(hf_curve_polynomial(&options, 9, 0, 0), HF_EINVAL);
    assert_int_equal(hf_curve_polynomial(&options, 4, -1, 0), HF_EINVAL);
    assert_int_equal(hf_curve_polynomial(&options, 4, 0, 1.5), HF_EINVAL);
    struct hf_curve_options shorter = options; /* a caller's of an older header: no cap */
    shorter.size = offsetof(struct hf_curve_options, cap_ms);
    shorter.cap_ms = 77;
    assert_int_equal(hf_curve_exponential(&shorter, 1000, 2, 5000), 0);
    assert_int_equal(shorter.cap_ms, 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_gaps_are_exact_S0_6),
        cmocka_unit_test(five_seconds_minutes_hours_S4_1),
        cmocka_unit_test(powers_of_two_up_to_300_S1_5),
        cmocka_unit_test(doubling_from_30_s_S2_3),
        cmocka_unit_test(fourth_power_plus_15_S2_2),
        cmocka_unit_test(cap_comes_after_jitter_S2_3),
        cmocka_unit_test(shorter_list_reuses_the_last_S0_7),
        cmocka_unit_test(no_number_of_failures_overflows_I68),
        cmocka_unit_test(wrong_texts_are_refused),
        cmocka_unit_test(equal_but_for_the_id),
        cmocka_unit_test(a_function_becomes_a_table_S1_6_S2_17),
        cmocka_unit_test(a_constant_of_half_a_second_S1_3_I64),
        cmocka_unit_test(jitter_stays_within_its_share_and_the_cap_I68),
        cmocka_unit_test(three_weeks_F9),
        cmocka_unit_test(public_fillers_check_their_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
