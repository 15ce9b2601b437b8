/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "holdfast/error.h"

static void clocks_run(void **state) {
    (void)state;
    struct hf_mono coarse = hfi_mono_now_coarse();
    struct hf_mono before = hfi_mono_now();
    struct hf_mono after = hfi_mono_now();
    assert_true(coarse.us > 0 && coarse.us <= before.us && before.us <= after.us);
    assert_true(hfi_wall_now().us > INT64_C(1700000000000000));
}

static void sums_saturate(void **state) {
    (void)state;
    assert_int_equal(hfi_add(1, 2), 3);
    assert_true(hfi_add(INT64_MAX, 1) == INT64_MAX);
    assert_true(hfi_add(INT64_MIN, -1) == INT64_MIN);
    assert_true(hfi_add(INT64_MAX, INT64_MIN) == -1);
    assert_true(hfi_sub(INT64_MIN, 1) == INT64_MIN);
    assert_true(hfi_sub(INT64_MAX, -1) == INT64_MAX);
    assert_true(hfi_sub(0, INT64_MIN) == INT64_MAX);
    assert_true(hfi_mul(INT64_MAX, 2) == INT64_MAX);
    assert_true(hfi_mul(INT64_MAX, -2) == INT64_MIN);
    assert_true(hfi_mul(INT64_MIN, -1) == INT64_MAX);
    assert_true(hfi_mul(-3, 4) == -12);
    assert_true(hfi_ms_to_us(INT64_MAX / 10) == INT64_MAX);
    assert_true(hfi_mono_after_ms((struct hf_mono){5}, INT64_MAX).us == INT64_MAX);
    assert_true(hfi_mono_after_ms((struct hf_mono){5}, 2).us == 2005);
}

static void milliseconds_round_up(void **state) {
    (void)state;
    assert_int_equal(hfi_us_to_ms_up(0), 0);
    assert_int_equal(hfi_us_to_ms_up(1), 1);
    assert_int_equal(hfi_us_to_ms_up(999), 1);
    assert_int_equal(hfi_us_to_ms_up(1000), 1);
    assert_int_equal(hfi_us_to_ms_up(1001), 2);
    assert_int_equal(hfi_us_to_ms_up(-1), 0);
    assert_int_equal(hfi_us_to_ms_up(-1000), -1);
    assert_int_equal(hfi_us_to_ms_up(-1001), -1);
    assert_true(hfi_us_to_ms_up(INT64_MAX) == INT64_MAX / 1000 + 1);
}

/* Against the C library's calendar, every day of 800 years and random times around them. */
static void the_calendar_agrees_with_timegm(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
    char text[HFI_RFC3339_LENGTH], expected[64];
    for (int64_t day = -146097; day < 146097; day++) {
        int64_t us = (day * 86400 + (int64_t)hfi_random_below(&random, 86400)) * 1000000 +
                     (int64_t)hfi_random_below(&random, 1000000);
        time_t second = (time_t)((us - (us % 1000000 + 1000000) % 1000000) / 1000000);
        struct tm tm;
        gmtime_r(&second, &tm);
        assert_int_equal(hfi_days_from_civil(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday), day);
        size_t length = strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(expected + length, sizeof expected - length, ".%06dZ", (int)((us % 1000000 + 1000000) % 1000000));
        if (us == 0)
            continue;
        assert_string_equal(hfi_rfc3339(us, text), expected);
        int64_t back;
        assert_int_equal(hfi_rfc3339_parse(text, &back), 0);
        assert_int_equal(back, us);
    }
}

static void printing_is_total(void **state) {
    (void)state;
    char text[HFI_RFC3339_LENGTH];
    assert_string_equal(hfi_rfc3339(0, text), "");
    assert_string_equal(hfi_rfc3339(1, text), "1970-01-01T00:00:00.000001Z");
    assert_string_equal(hfi_rfc3339(-1, text), "1969-12-31T23:59:59.999999Z");
    assert_string_equal(hfi_rfc3339(INT64_MAX, text), "9999-12-31T23:59:59.999999Z");
    assert_string_equal(hfi_rfc3339(INT64_MIN, text), "0000-01-01T00:00:00.000000Z");
}

static void parsing_never_guesses(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t us; /* -1: refused */
    } table[] = {
        {"2026-11-30T10:05:00Z", INT64_C(1796033100000000)},
        {"2026-11-30t10:05:00z", INT64_C(1796033100000000)},
        {"2026-11-30T10:05:00.5Z", INT64_C(1796033100500000)},
        {"2026-11-30T10:05:00.1234567899Z", INT64_C(1796033100123456)},
        {"2026-11-30T12:05:00+02:00", INT64_C(1796033100000000)},
        {"2026-11-30T04:35:00-05:30", INT64_C(1796033100000000)},
        {"2026-12-01T00:05:00+14:00", INT64_C(1796033100000000)},
        {"2026-11-30T10:05:00-00:00", INT64_C(1796033100000000)},
        {"2024-02-29T00:00:00Z", INT64_C(1709164800000000)},
        {"1990-12-31T23:59:60Z", INT64_C(662688000000000)},
        {"1990-12-31T15:59:60-08:00", INT64_C(662688000000000)},
        {"1990-12-31T23:58:60Z", -1},
        {"2023-02-29T00:00:00Z", -1},
        {"1900-02-29T00:00:00Z", -1},
        {"2026-11-31T00:00:00Z", -1},
        {"2026-13-01T00:00:00Z", -1},
        {"2026-00-01T00:00:00Z", -1},
        {"2026-01-00T00:00:00Z", -1},
        {"2026-11-30T24:00:00Z", -1},
        {"2026-11-30T10:60:00Z", -1},
        {"2026-11-30T10:05:61Z", -1},
        {"2026-11-30T10:05:00", -1}, /* no zone */
        {"2026-11-30 10:05:00Z", -1},
        {"2026-11-30", -1},
        {"2026-11-30T10:05Z", -1},
        {"2026-11-30T10:05:00.Z", -1},
        {"2026-11-30T10:05:00,5Z", -1},
        {"2026-11-30T10:05:00+0200", -1},
        {"2026-11-30T10:05:00+24:00", -1},
        {"2026-11-30T10:05:00+02:60", -1},
        {"2026-11-30T10:05:00Zx", -1},
        {"2026-11-30T10:05:00Z ", -1},
        {" 2026-11-30T10:05:00Z", -1},
        {"+026-11-30T10:05:00Z", -1},
        {"26-11-30T10:05:00Z", -1},
        {"1796033100", -1},
        {"tomorrow", -1},
        {"", -1},
        {NULL, -1},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int64_t us = -1;
        int code = hfi_rfc3339_parse(table[i].text, &us);
        if (us != table[i].us || code != (table[i].us == -1 ? HF_EINVAL : 0))
            fail_msg("'%s': %d, %lld", table[i].text ? table[i].text : "NULL", code, (long long)us);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_run),
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(milliseconds_round_up),
        cmocka_unit_test(the_calendar_agrees_with_timegm),
        cmocka_unit_test(printing_is_total),
        cmocka_unit_test(parsing_never_guesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
