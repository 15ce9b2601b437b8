/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/text.h"

#define FFFD "\xef\xbf\xbd"

/* The same rules, written a second time: decode, then look at the number. */
static size_t decode(const unsigned char *s, size_t left) {
    uint32_t number;
    size_t length;
    if (s[0] < 0x80)
        return 1;
    if ((s[0] & 0xe0) == 0xc0)
        number = s[0] & 0x1f, length = 2;
    else if ((s[0] & 0xf0) == 0xe0)
        number = s[0] & 0x0f, length = 3;
    else if ((s[0] & 0xf8) == 0xf0)
        number = s[0] & 0x07, length = 4;
    else
        return 0;
    if (length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        number = number << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (number < least[length] || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
        return 0;
    return length;
}

static void valid_text_table(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        bool valid;
    } table[] = {
        {"", 0, true},
        {"plain", 5, true},
        {"a\0b", 3, false},
        {"\xc3\xa9", 2, true},
        {"\xc3", 1, false},
        {"\xc0\x80", 2, false},         /* overlong NUL */
        {"\xc1\xbf", 2, false},         /* overlong */
        {"\xe0\x9f\xbf", 3, false},     /* overlong */
        {"\xe0\xa0\x80", 3, true},      /* U+0800 */
        {"\xed\x9f\xbf", 3, true},      /* U+D7FF */
        {"\xed\xa0\x80", 3, false},     /* a surrogate */
        {"\xee\x80\x80", 3, true},      /* U+E000 */
        {"\xf0\x8f\xbf\xbf", 4, false}, /* overlong */
        {"\xf0\x90\x80\x80", 4, true},  /* U+10000 */
        {"\xf4\x8f\xbf\xbf", 4, true},  /* U+10FFFF */
        {"\xf4\x90\x80\x80", 4, false}, /* above */
        {"\xf5\x80\x80\x80", 4, false},
        {"\x80", 1, false},
        {"\xff", 1, false},
        {"\xf0\x9f\x98\x80", 4, true}, /* an emoji */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (hfi_text_valid(table[i].text, table[i].length) != table[i].valid)
            fail_msg("row %zu", i);
}

/* I65, I66: whatever comes in, valid text comes out, cut on a code point, nothing valid lost before the cut. */
static void cleaning_any_bytes_gives_valid_text(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
    static const unsigned char likely[] = {0, 'a', 0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xed, 0xa0, 0xef, 0xf0, 0xf4, 0x90};
    for (int round = 0; round < 50000; round++) {
        unsigned char from[24];
        char to[100], expected[100];
        size_t length = hfi_random_below(&random, sizeof from + 1);
        size_t room = hfi_random_below(&random, sizeof to + 1);
        for (size_t i = 0; i < length; i++)
            from[i] = hfi_random_below(&random, 2) ? likely[hfi_random_below(&random, sizeof likely)]
                                                   : (unsigned char)hfi_random_below(&random, 256);
        size_t whole = 0;
        bool valid = true;
        memset(expected, 0, sizeof expected);
        for (size_t i = 0; i < length;) {
            size_t step = from[i] == 0 ? 0 : decode(from + i, length - i);
            valid &= step > 0;
            size_t size = step > 0 ? step : 3;
            if (room == 0 || whole + size >= room)
                break;
            memcpy(expected + whole, step > 0 ? (const char *)from + i : FFFD, size);
            whole += size;
            i += step > 0 ? step : 1;
        }
        memset(to, 'Z', sizeof to);
        size_t written = hfi_text_clean(to, room, (const char *)from, length);
        assert_int_equal(written, whole);
        if (room > 0)
            assert_memory_equal(to, expected, whole + 1);
        for (size_t i = room > 0 ? whole + 1 : 0; i < sizeof to; i++)
            assert_int_equal(to[i], 'Z');
        assert_true(hfi_text_valid(to, written));
        if (room == sizeof to)
            assert_int_equal(hfi_text_valid((const char *)from, length), valid);
    }
}

static void copying_cuts_on_a_code_point(void **state) {
    (void)state;
    char to[8];
    assert_int_equal(hfi_text_copy(to, 8, "1234567"), 7);
    assert_string_equal(to, "1234567");
    assert_int_equal(hfi_text_copy(to, 8, "123456\xc3\xa9"), 6);
    assert_string_equal(to, "123456");
    assert_int_equal(hfi_text_copy(to, 8,
                                   "123\xff"
                                   "4"),
                     7);
    assert_string_equal(to, "123" FFFD "4");
    assert_int_equal(hfi_text_copy(to, 8, NULL), 0);
    assert_string_equal(to, "");
    assert_int_equal(hfi_text_clean(to, 1, "abc", 3), 0);
    assert_string_equal(to, "");
}

/* S2.14 */
static void dotted_prefixes(void **state) {
    (void)state;
    assert_true(hfi_dotted_prefix("sql", "sql.40P01"));
    assert_true(hfi_dotted_prefix("sql", "sql"));
    assert_true(hfi_dotted_prefix("sql.40P01", "sql.40P01"));
    assert_false(hfi_dotted_prefix("sql", "sqlx"));
    assert_false(hfi_dotted_prefix("sql.4", "sql.40P01"));
    assert_false(hfi_dotted_prefix("sql.40P01", "sql"));
    assert_false(hfi_dotted_prefix("", "sql"));
    assert_true(hfi_text_equal_nocase("Retry-After", "rETRY-aFTER"));
    assert_false(hfi_text_equal_nocase("Retry", "Retry-After"));
    assert_false(hfi_text_equal_nocase("Retry-After", "Retry"));
    assert_false(hfi_text_equal_nocase("[", "{")); /* differ by the case bit, and are no letters */
    assert_false(hfi_text_equal_nocase("\xc3\x89", "\xc3\xa9"));
}

static void durations_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int code;
        int64_t ms;
    } table[] = {
        {"250ms", 0, 250},
        {"5s", 0, 5000},
        {"2m", 0, 120000},
        {"1h", 0, 3600000},
        {"7d", 0, 604800000},
        {"0s", 0, 0},
        {"007s", 0, 7000},
        {"9223372036854775807ms", 0, INT64_MAX},
        {"9223372036854775808ms", HF_ETOOBIG, 0},
        {"106751991167d", 0, INT64_C(9223372036828800000)},
        {"106751991168d", HF_ETOOBIG, 0},
        {"99999999999999999999999s", HF_ETOOBIG, 0},
        {"99999999999999999999999", HF_EINVAL, 0},
        {"5", HF_EINVAL, 0},
        {"", HF_EINVAL, 0},
        {"s", HF_EINVAL, 0},
        {"5 s", HF_EINVAL, 0},
        {" 5s", HF_EINVAL, 0},
        {"5s ", HF_EINVAL, 0},
        {"5S", HF_EINVAL, 0},
        {"+5s", HF_EINVAL, 0},
        {"-5s", HF_EINVAL, 0},
        {"1.5s", HF_EINVAL, 0},
        {"1e3s", HF_EINVAL, 0},
        {"0x5s", HF_EINVAL, 0},
        {"5sec", HF_EINVAL, 0},
        {"1h30m", HF_EINVAL, 0},
        {NULL, HF_EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int64_t ms = 0;
        int code = hfi_duration_parse(table[i].text, &ms);
        if (code != table[i].code || ms != table[i].ms)
            fail_msg("'%s': %d, %lld", table[i].text ? table[i].text : "NULL", code, (long long)ms);
    }
}

static void durations_go_round(void **state) {
    (void)state;
    char text[24];
    assert_string_equal(hfi_duration_print(0, text), "0s");
    assert_string_equal(hfi_duration_print(1, text), "1ms");
    assert_string_equal(hfi_duration_print(90000, text), "90s");
    assert_string_equal(hfi_duration_print(120000, text), "2m");
    assert_string_equal(hfi_duration_print(86400000, text), "1d");
    assert_string_equal(hfi_duration_print(90000000, text), "25h");
    assert_string_equal(hfi_duration_print(-1500, text), "-1500ms");
    assert_string_equal(hfi_duration_print(INT64_MIN, text), "-9223372036854775808ms");
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
    static const int64_t units[] = {1, 1000, 60000, 3600000, 86400000};
    for (int i = 0; i < 20000; i++) {
        int64_t back, ms = (int64_t)(hfi_random_next(&random) >> hfi_random_below(&random, 60) >> 28);
        ms *= units[hfi_random_below(&random, 5)];
        assert_int_equal(hfi_duration_parse(hfi_duration_print(ms, text), &back), 0);
        assert_int_equal(back, ms);
    }
}

static void bytes_grow_to_their_ceiling(void **state) {
    (void)state;
    struct hfi_bytes bytes;
    hfi_bytes_init(&bytes, 10);
    assert_string_equal(bytes.data, "");
    hfi_bytes_text(&bytes, "12345");
    hfi_bytes_print(&bytes, "%d", 678);
    hfi_bytes_add(&bytes, "9\0", 2);
    assert_int_equal(bytes.length, 10);
    assert_memory_equal(bytes.data, "123456789\0\0", 11);
    assert_false(bytes.failed);
    hfi_bytes_text(&bytes, "");
    assert_false(bytes.failed);
    hfi_bytes_text(&bytes, "x");
    assert_true(bytes.failed);
    assert_int_equal(bytes.length, 10);
    hfi_bytes_free(&bytes);
    assert_string_equal(bytes.data, "");
    hfi_bytes_text(&bytes, "again");
    assert_string_equal(bytes.data, "again");
    hfi_bytes_print(&bytes, "%s", "123456"); /* all or nothing */
    assert_true(bytes.failed);
    assert_string_equal(bytes.data, "again");
    hfi_bytes_text(&bytes, "x");
    assert_string_equal(bytes.data, "again");
    hfi_bytes_free(&bytes);
    hfi_bytes_free(&bytes);
}

static void bytes_say_when_memory_is_gone(void **state) {
    (void)state;
    struct hfi_bytes bytes;
    hfi_bytes_init(&bytes, 1000);
    hfi_alloc_fail(1, 0);
    hfi_bytes_text(&bytes, "lost");
    hfi_alloc_fail(0, 0);
    assert_true(bytes.failed);
    assert_string_equal(bytes.data, "");
    hfi_bytes_text(&bytes, "dropped");
    assert_int_equal(bytes.length, 0);
    hfi_bytes_free(&bytes);
    hfi_bytes_text(&bytes, "kept");
    hfi_alloc_fail(1, 0);
    for (int i = 0; i < 100; i++)
        hfi_bytes_text(&bytes, "x");
    hfi_alloc_fail(0, 0);
    assert_true(bytes.failed);
    assert_memory_equal(bytes.data, "keptx", 5);
    hfi_bytes_free(&bytes);
}

static void json_strings(void **state) {
    (void)state;
    struct hfi_bytes bytes;
    hfi_bytes_init(&bytes, 100000);
    hfi_bytes_json(&bytes, "a\"b\\c\n\r\t\b\x7f\x1f/\xc3\xa9\xff");
    assert_string_equal(bytes.data, "\"a\\\"b\\\\c\\n\\r\\t\\u0008\\u007f\\u001f/\xc3\xa9" FFFD "\"");
    hfi_bytes_free(&bytes);
    hfi_bytes_json(&bytes, NULL);
    hfi_bytes_json(&bytes, "");
    assert_string_equal(bytes.data, "null\"\"");
    hfi_bytes_free(&bytes);
    hfi_bytes_json_n(&bytes, "a\0b", 3);
    assert_string_equal(bytes.data, "\"a" FFFD "b\"");
    hfi_bytes_free(&bytes);
    /* Long ones are worked on in pieces: no code point may be torn at their edges. */
    for (size_t shift = 0; shift < 4; shift++) {
        char text[2004];
        memset(text, 'x', shift);
        for (size_t i = 0; i < 500; i++)
            memcpy(text + shift + 4 * i, "\xf0\x9f\x98\x80", 4);
        hfi_bytes_json_n(&bytes, text, shift + 2000);
        assert_int_equal(bytes.length, shift + 2002);
        assert_memory_equal(bytes.data + 1, text, shift + 2000);
        hfi_bytes_free(&bytes);
    }
    /* Continuation bytes without end must not stop it. */
    char wild[1000];
    memset(wild, 0x80, sizeof wild);
    hfi_bytes_json_n(&bytes, wild, sizeof wild);
    assert_int_equal(bytes.length, 3002);
    hfi_bytes_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_table),
        cmocka_unit_test(cleaning_any_bytes_gives_valid_text),
        cmocka_unit_test(copying_cuts_on_a_code_point),
        cmocka_unit_test(dotted_prefixes),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(durations_go_round),
        cmocka_unit_test(bytes_grow_to_their_ceiling),
        cmocka_unit_test(bytes_say_when_memory_is_gone),
        cmocka_unit_test(json_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
