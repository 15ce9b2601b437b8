/* SPDX-License-Identifier: MIT */
/* The program's small parts: words, suggestions, base64, JSON cut out of text, printable text; policies by the configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "program/base64.h"
#include "program/compact.h"
#include "program/config/config.h"
#include "program/memory.h"
#include "program/nearest.h"
#include "program/output.h"
#include "program/words.h"

#define READ(config, text) hfi_config_read(config, "c.yaml", text, strlen(text), HFI_CONFIG_SECRETS | HFI_CONFIG_STORE)

static void numbers_are_plain_decimal(void **state) {
    int64_t whole = 0;
    double real = 0;
    (void)state;
    assert_true(hfi_word_number("-9223372036854775808", &whole) && whole == INT64_MIN);
    assert_true(hfi_word_number("9223372036854775807", &whole) && whole == INT64_MAX);
    const char *const bad[] = {"", "-", "9223372036854775808", " 1", "1 ", "0x10", "1e3", "+1", "1.0", "١"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hfi_word_number(bad[i], &whole));
    assert_true(hfi_word_real("0.3", &real) && real == 0.3);
    assert_true(hfi_word_real("10", &real) && real == 10);
    const char *const bad_reals[] = {"", ".5", "5.", "1e3", "-1", "inf", "nan", "0,5", "1.2.3", "0x1p3"};
    for (size_t i = 0; i < sizeof bad_reals / sizeof *bad_reals; i++)
        assert_false(hfi_word_real(bad_reals[i], &real));
}

static const char *best(const char *typed, const char *a, const char *b) {
    struct hfi_nearest nearest;
    hfi_nearest_init(&nearest, typed);
    hfi_nearest_offer(&nearest, a);
    hfi_nearest_offer(&nearest, b);
    return nearest.best ? nearest.best : "";
}

static void suggestions_are_near_or_none(void **state) {
    (void)state;
    assert_string_equal(best("breakre", "bulkhead", "breaker"), "breaker");
    assert_string_equal(best("lsit", "list", "show"), "list");
    assert_string_equal(best("zebra", "list", "show"), "");
    assert_string_equal(best("", "list", "show"), "");
}

static void base64_has_one_spelling(void **state) {
    unsigned char all[256], *back = NULL;
    size_t length = 0;
    (void)state;
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    for (size_t n = 0; n <= 256; n++) {
        char *text = hfi_base64(all, n);
        assert_int_equal(hfi_base64_parse(text, strlen(text), &back, &length), 0);
        assert_int_equal(length, n);
        assert_memory_equal(back, all, n);
        hfi_release(back);
        hfi_release(text);
    }
    const char *const bad[] = {"A", "AA", "AAA", "AA=A", "====", "AB==", "AAB=", "AA==AA==", "A A=", "AA-="};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_not_equal(hfi_base64_parse(bad[i], strlen(bad[i]), &back, &length), 0);
}

static void compact(const char *text, const char *wanted) {
    struct hfi_arena arena = {0};
    size_t length = 0;
    char *value = hfi_json_compact(&arena, text, strlen(text), "payload", &length);
    if (!wanted) {
        assert_null(value);
    } else {
        assert_non_null(value);
        assert_int_equal(length, strlen(wanted));
        assert_memory_equal(value, wanted, length);
    }
    hfi_arena_free(&arena);
}

static void payloads_keep_their_numbers(void **state) {
    (void)state;
    compact("{\"a\": {\"payload\": 1}, \"payload\" : { \"x\": 0.10, \"y\": [18446744073709551616, 1e2 ] } , \"b\":2}",
            "{\"x\":0.10,\"y\":[18446744073709551616,1e2]}");
    compact("{\"payload\":\"a b\\\" } c\"}", "\"a b\\\" } c\"");
    compact("  {\"x\":\"payload\",\"payload\":null}\n", "null");
    compact("{\"payload2\":1,\"ayload\":2}", NULL);
    compact("{}", NULL);
}

static void control_characters_do_not_reach_a_terminal(void **state) {
    char text[64];
    (void)state;
    assert_string_equal(hfi_printable(text, sizeof text, "a\033[2Jb\nc\x7f"), "a\\u001b[2Jb\\u000ac\\u007f");
    assert_string_equal(hfi_printable(text, sizeof text, "\xc2\x9b"), "\\u009b");
    assert_string_equal(hfi_printable(text, sizeof text, "\xe2\x80\xaegpj \xe2\x81\xa7"), "\\u202egpj \\u2067");
    assert_string_equal(hfi_printable(text, sizeof text, "\xe2\x80\xa6\xe2\x80\x8f"), "\xe2\x80\xa6\xe2\x80\x8f");
    assert_string_equal(hfi_printable(text, 6, "ab\xc3\xa4\xe2\x82\xac"), "ab\xc3\xa4"); /* cut on a code point */
    assert_string_equal(hfi_printable(text, sizeof text, "a\xe2\x82"), "a"); /* it was cut before it came here */
    assert_string_equal(hfi_printable(text, sizeof text, "a\xf0\x9f\x92"), "a");
    assert_string_equal(hfi_printable(text, sizeof text, "a\xe2\x82\xac"), "a\xe2\x82\xac");
}

static void spans_have_two_units(void **state) {
    char text[HFI_SPAN_LENGTH];
    (void)state;
    assert_string_equal(hfi_show_span(16560000, text), "4h36m");
    assert_string_equal(hfi_show_span(0, text), "0ms");
    assert_string_equal(hfi_show_span(1500, text), "1s500ms");
    assert_string_equal(hfi_show_span(86400000, text), "1d");
}

/* S2.1, S2.3, S2.13: a formula says how long to wait, not how often: whoever stands behind it does, 6 in the end [S0.6]. */
static void a_formula_keeps_the_number_of_executions_S2_3(void **state) {
    static const struct {
        const char *text, *queue;
        uint32_t executions;
    } cases[] = {
        {"jobs: {j: {kind: noop, curve: {base: 1s}}}\n", "default", 6}, /* and not one more than there are waits in a table */
        {"jobs: {j: {kind: noop, curve: {base: 2s, cap: 5m}}}\n", "default", 6},
        {"jobs: {j: {kind: noop, curve: {poly: 4, plus: 15s}}}\n", "default", 6},
        {"defaults: {max_executions: 10}\njobs: {j: {kind: noop, curve: {base: 1s}}}\n", "default", 10},
        {"defaults: {curve: [1s, 2s]}\njobs: {j: {kind: noop, curve: {base: 1s}}}\n", "default", 3},
        {"defaults: {curve: {base: 1s}, max_executions: 9}\njobs: {j: {kind: noop}}\n", "default", 9},
        {"defaults: {max_executions: 10}\nqueues: {q: {max_executions: 4}}\njobs: {j: {kind: noop, curve: {base: 1s}}}\n", "q", 4},
        {"queues: {q: {curve: {base: 1s}}}\ndefaults: {max_executions: 7}\njobs: {j: {kind: noop}}\n", "q", 7},
        {"jobs: {j: {kind: noop, max_executions: 3, curve: {base: 1s}}}\n", "default", 3},
        {"defaults: {max_executions: 10}\njobs: {j: {kind: noop, curve: [5s, 5m, 5h]}}\n", "default", 4}, /* S4.1: a list is whole */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hfi_config config;
        struct hf_curve_options policy;
        assert_int_equal(READ(&config, cases[i].text), 0);
        hfi_config_policy(&config, hfi_config_job(&config, "j"), cases[i].queue, &policy);
        assert_int_equal(policy.max_executions > 0 ? policy.max_executions : policy.curve_length + 1, cases[i].executions);
        hfi_config_free(&config);
    }
}

/* A node's name has the bounds of all names. */
static void the_name_of_a_node_is_bounded(void **state) {
    char text[200];
    (void)state;
    snprintf(text, sizeof text, "node: {name: %0121d}\n", 0);
    const char *const texts[] = {text, "node: {name: \"\"}\n"};
    for (size_t i = 0; i < 2; i++) {
        struct hfi_config config;
        assert_int_equal(READ(&config, texts[i]), HF_ECONFIG);
        assert_string_equal(config.problems.first->rule, "config.name");
        assert_int_equal(config.problems.first->column, 14);
        hfi_config_free(&config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_plain_decimal),      cmocka_unit_test(suggestions_are_near_or_none),
        cmocka_unit_test(base64_has_one_spelling),        cmocka_unit_test(payloads_keep_their_numbers),
        cmocka_unit_test(control_characters_do_not_reach_a_terminal), cmocka_unit_test(spans_have_two_units),
        cmocka_unit_test(a_formula_keeps_the_number_of_executions_S2_3), cmocka_unit_test(the_name_of_a_node_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
