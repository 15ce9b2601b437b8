/* SPDX-License-Identifier: MIT */
/* Outcomes: an untouched one is never a success [S0.1], names, text hygiene. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/outcome.h"

static void s0_1_untouched_is_no_success(void **state) {
    (void)state;
    struct hf_outcome *outcome = hf_outcome_new();
    assert_non_null(outcome);
    assert_int_equal(hf_outcome_get_kind(outcome), HF_OUTCOME_NEUTRAL);
    assert_int_equal(hf_outcome_get_class(outcome), HF_CLASS_TRANSIENT);
    assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_MAYBE);
    assert_int_equal(hf_outcome_get_retry_after_ms(outcome), -1);
    assert_int_equal(hf_outcome_get_total_us(outcome), -1);
    assert_false(outcome->touched);
    hf_outcome_free(outcome);
    hf_outcome_free(NULL);
}

static void set_keeps_facts_and_resets_verdicts(void **state) {
    (void)state;
    struct hf_outcome outcome;
    hfi_outcome_init(&outcome);
    outcome.attempts = 3;
    outcome.phases.total_us = 17;
    outcome.gate_downstream = outcome.life = true;
    outcome.retry_after_ms = 5;
    hfi_outcome_message(&outcome, "old");
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NOW, HF_VERDICT_FAILURE, HF_CLASS_TRANSIENT, "x.y", "rule");
    assert_true(outcome.touched);
    assert_int_equal(outcome.attempts, 3);
    assert_int_equal(outcome.phases.total_us, 17);
    assert_int_equal(outcome.retry_after_ms, -1);
    assert_false(outcome.gate_downstream || outcome.life);
    assert_string_equal(outcome.message, "");
    struct hf_outcome copy;
    hf_outcome_copy(&copy, &outcome);
    assert_string_equal(hf_outcome_get_error_type(&copy), "x.y");
    assert_string_equal(hf_outcome_get_rule(&copy), "rule");
}

static void rejected_was_never_sent(void **state) {
    (void)state;
    struct hf_outcome outcome;
    hfi_outcome_init(&outcome);
    hfi_outcome_rejected(&outcome, "breaker.open", 250);
    assert_int_equal(outcome.kind, HF_OUTCOME_REJECTED);
    assert_int_equal(outcome.verdict, HF_VERDICT_NEUTRAL);
    assert_int_equal(outcome.klass, HF_CLASS_TRANSIENT);
    assert_int_equal(outcome.sent, HF_SENT_NO);
    assert_int_equal(outcome.retry_after_ms, 250);
}

static void message_is_cleaned_and_cut(void **state) {
    (void)state;
    struct hf_outcome outcome;
    char text[2000];
    hfi_outcome_init(&outcome);
    hfi_outcome_message(&outcome, "bad \xff byte");
    assert_true(hfi_text_valid(outcome.message, strlen(outcome.message)));
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[1998] = '\0';
    for (size_t shift = 0; shift < 2; shift++) {
        hfi_outcome_message(&outcome, "%s%s", shift ? "x" : "", text);
        assert_true(strlen(outcome.message) < sizeof outcome.message);
        assert_true(hfi_text_valid(outcome.message, strlen(outcome.message)));
    }
}

static void names_cover_every_member_and_nothing_else(void **state) {
    (void)state;
    assert_string_equal(hf_outcome_kind_name(HF_OUTCOME_REJECTED), "rejected");
    assert_string_equal(hf_retry_name(HF_RETRY_FRESH), "fresh");
    assert_string_equal(hf_verdict_name(HF_VERDICT_NEUTRAL), "neutral");
    assert_string_equal(hf_class_name(HF_CLASS_POISON), "poison");
    assert_string_equal(hf_stage_name(HF_STAGE_HANDLER), "handler");
    assert_string_equal(hf_sent_name(HF_SENT_MAYBE), "maybe");
    assert_string_equal(hf_class_name((enum hf_class)99), "unknown");
}

static void print_gives_the_whole_length(void **state) {
    (void)state;
    struct hf_outcome outcome;
    char whole[1024], cut[16];
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NOW, HF_VERDICT_FAILURE, HF_CLASS_TRANSIENT, "http.503",
                    "http.5xx");
    outcome.retry_after_ms = 1500;
    outcome.attempts = 2;
    size_t length = hf_outcome_print(&outcome, whole, sizeof whole);
    assert_int_equal(length, strlen(whole));
    assert_non_null(strstr(whole, "http.503"));
    assert_non_null(strstr(whole, "1500 ms"));
    assert_non_null(strstr(whole, "2 attempts"));
    assert_int_equal(hf_outcome_print(&outcome, cut, sizeof cut), length);
    assert_int_equal(strlen(cut), sizeof cut - 1);
    assert_int_equal(hf_outcome_print(&outcome, NULL, 0), length);
}

static void no_memory_gives_null(void **state) {
    (void)state;
    hfi_alloc_fail(1, 0);
    assert_null(hf_outcome_new());
    hfi_alloc_fail(0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s0_1_untouched_is_no_success),
        cmocka_unit_test(set_keeps_facts_and_resets_verdicts),
        cmocka_unit_test(rejected_was_never_sent),
        cmocka_unit_test(message_is_cleaned_and_cut),
        cmocka_unit_test(names_cover_every_member_and_nothing_else),
        cmocka_unit_test(print_gives_the_whole_length),
        cmocka_unit_test(no_memory_gives_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
