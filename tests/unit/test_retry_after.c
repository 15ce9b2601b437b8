/* SPDX-License-Identifier: MIT */
/* Retry-After, raw: the same verdicts on every libcurl (A2, A4, A5, A7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "holdfast/classify.h"
#include "seed.h"

#define T1994 INT64_C(784111777) /* Sun, 06 Nov 1994 08:49:37 GMT */

static int64_t wait_at(const char *value, int64_t now_s) {
    return hf_retry_after_ms(value, now_s * 1000000);
}

static void delta_seconds(void **state) {
    (void)state;
    assert_int_equal(wait_at("0", 0), 0);
    assert_int_equal(wait_at("120", 0), 120000);
    assert_int_equal(wait_at("  120\t", 0), 120000);
    assert_int_equal(wait_at("007", 0), 7000);
    assert_int_equal(wait_at("9223372036854775", 0), INT64_C(9223372036854775000));
    assert_int_equal(wait_at("9223372036854776", 0), INT64_MAX); /* A4: saturates, never wraps to "now" */
    assert_int_equal(wait_at("99999999999999999999999999999999999999", 0), INT64_MAX);
}

static void a7_junk_is_none(void **state) {
    (void)state;
    static const char *const junk[] = {
        "", " ", "-5", "+5", "1.5", "120abc", "abc", "1 2", "0x10", "1e3", "21 Oct 2099 07:28:00 GMT", "soon", "5s",
        "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMTx", "Xyz, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT", "Sun Nov 06 08:49:37 1994 GMT",
        "Sun Nov  06 08:49:37 1994", "Sun Nov   6 08:49:37 1994", "Sun, 06 Nov 1994  08:49:37 GMT", "\xff\xff"};
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++)
        if (wait_at(junk[i], 0) != -1)
            fail_msg("\"%s\" was taken for a wait", junk[i]);
    assert_int_equal(hf_retry_after_ms(NULL, 0), -1);
}

static void all_three_date_forms(void **state) {
    (void)state;
    static const char *const forms[] = {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994", " Sun, 06 Nov 1994 08:49:37 GMT "};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        assert_int_equal(wait_at(forms[i], T1994 - 90), 90000);
        assert_int_equal(wait_at(forms[i], T1994), 0);
        assert_int_equal(wait_at(forms[i], T1994 + 5), 0); /* A5: past means no wait, never a negative one */
    }
    assert_int_equal(wait_at("Wed Nov 16 08:49:37 1994", T1994), 864000000);
    assert_int_equal(wait_at("Thu, 29 Feb 2024 12:00:00 GMT", 1709207999), 1000);
    assert_int_equal(wait_at("Sat, 31 Dec 2016 23:59:60 GMT", 1483228799), 1000); /* a leap second */
    assert_true(wait_at("Fri, 31 Dec 9999 23:59:59 GMT", 0) > 0);
}

static void a2_rounded_up(void **state) {
    (void)state;
    assert_int_equal(hf_retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", T1994 * 1000000 - 1), 1);
    assert_int_equal(hf_retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", T1994 * 1000000 - 1001), 2);
    assert_int_equal(hf_retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", T1994 * 1000000 - 1000), 1);
}

/* Two digits: the latest such year that is not more than 50 years ahead. */
static void rfc850_fifty_years(void **state) {
    (void)state;
    const int64_t y2026 = INT64_C(1767225600); /* 2026-01-01 */
    assert_int_equal(wait_at("Thursday, 01-Jan-26 00:00:01 GMT", y2026), 1000);
    assert_int_equal(wait_at("Wednesday, 01-Jan-76 00:00:00 GMT", y2026), INT64_C(3345062400) * 1000 - y2026 * 1000);
    assert_int_equal(wait_at("Wednesday, 01-Jan-76 00:00:01 GMT", y2026), 0); /* 50 years and a second: 1976 */
    assert_int_equal(wait_at("Friday, 01-Jan-99 00:00:00 GMT", y2026), 0);    /* 1999 */
    const int64_t y2090 = INT64_C(3786912000); /* 2090-01-01 */
    assert_int_equal(wait_at("Thursday, 01-Jan-05 00:00:00 GMT", y2090), INT64_C(4260211200) * 1000 - y2090 * 1000);
    const int64_t y2100 = INT64_C(4102444800); /* the turn of a century, and no leap year */
    assert_int_equal(wait_at("Friday, 01-Jan-00 00:00:02 GMT", y2100 - 1), 3000);
    assert_int_equal(wait_at("Monday, 29-Feb-00 00:00:00 GMT", y2100), -1);
}

/* Every second a date can name reads the same in all forms, and equals what the C library makes of it. */
static void dates_agree_with_the_calendar(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("retry_after"));
    for (int i = 0; i < 20000; i++) {
        time_t at = (time_t)hfi_random_below(&random, UINT64_C(253402300800));
        struct tm tm;
        char text[3][80];
        gmtime_r(&at, &tm);
        strftime(text[0], sizeof text[0], "%a, %d %b %Y %H:%M:%S GMT", &tm);
        strftime(text[1], sizeof text[1], "%a %b %e %H:%M:%S %Y", &tm);
        char day[32], clock[32];
        strftime(day, sizeof day, "%A, %d-%b-", &tm);
        strftime(clock, sizeof clock, " %H:%M:%S GMT", &tm);
        snprintf(text[2], sizeof text[2], "%s%02d%s", day, tm.tm_year % 100, clock);
        int64_t early = (int64_t)hfi_random_below(&random, 1000000);
        int64_t now_s = (int64_t)at - early;
        assert_int_equal(wait_at(text[0], now_s), early * 1000);
        assert_int_equal(wait_at(text[1], now_s), early * 1000);
        assert_int_equal(wait_at(text[2], now_s), early * 1000);
    }
}

static void random_bytes_never_give_a_negative(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("retry_after bytes"));
    static const char alphabet[] = "0123456789 ,:-GMTSunNovJaFeb\t\xff";
    for (int i = 0; i < 100000; i++) {
        char text[40];
        size_t length = (size_t)hfi_random_below(&random, sizeof text);
        for (size_t k = 0; k < length; k++)
            text[k] = alphabet[hfi_random_below(&random, sizeof alphabet - 1)];
        text[length] = '\0';
        assert_true(hf_retry_after_ms(text, (int64_t)hfi_random_next(&random)) >= -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_seconds),
        cmocka_unit_test(a7_junk_is_none),
        cmocka_unit_test(all_three_date_forms),
        cmocka_unit_test(a2_rounded_up),
        cmocka_unit_test(rfc850_fifty_years),
        cmocka_unit_test(dates_agree_with_the_calendar),
        cmocka_unit_test(random_bytes_never_give_a_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
