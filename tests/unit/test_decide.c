/* SPDX-License-Identifier: MIT */
/* Return or retry: S0.28, A1, A2, A5, R5, R13, R19, R20 and the order of 2.4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "resilience/classify.h"
#include "resilience/decide.h"
#include "seed.h"

static const struct hfi_backoff_rules backoff = {
    .backoff = HF_BACKOFF_EXPONENTIAL, .factor_permille = 2000, .base_ms = 500, .cap_ms = 5000};

static struct hfi_decide_in input(const struct hf_outcome *outcome) {
    return (struct hfi_decide_in){.outcome = outcome,
                                  .backoff = &backoff,
                                  .retries_done = 0,
                                  .retry_max = 3,
                                  .repeatable = true,
                                  .body_rewinds = true,
                                  .now = {1000000},
                                  .deadline = {1000000 + 90000000},
                                  .min_attempt_ms = 1};
}

static struct hfi_decide_out decide(const struct hfi_decide_in *in) {
    struct hfi_decide_out out;
    memset(&out, 0xaa, sizeof out);
    hfi_decide(in, &out);
    return out;
}

static void each_reason_to_return(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(200, NULL, 0, &o);
    struct hfi_decide_in in = input(&o);
    assert_string_equal(decide(&in).why, "success");
    hfi_classify_cancelled(HF_SENT_MAYBE, HF_STAGE_WAIT, &o);
    assert_string_equal(decide(&in).why, "neutral");
    hfi_outcome_rejected(&o, "breaker.open", 4000);
    assert_string_equal(decide(&in).why, "rejected");
    assert_int_equal(decide(&in).not_before_ms, 4000);
    hf_classify_http(404, NULL, 0, &o);
    assert_string_equal(decide(&in).why, "verdict");
    hfi_classify_timeout("timeout.total", HF_SENT_MAYBE, HF_STAGE_WAIT, &o);
    assert_string_equal(decide(&in).why, "later");
    hf_classify_http(500, NULL, 0, &o);
    in.repeatable = false;
    assert_string_equal(decide(&in).why, "not_repeatable");
    in.repeatable = true;
    in.body_rewinds = false; /* R20 */
    assert_string_equal(decide(&in).why, "body");
    in.body_rewinds = true;
    in.retries_done = 3;
    assert_string_equal(decide(&in).why, "tries");
    in.retry_max = 0;
    in.retries_done = 0;
    assert_string_equal(decide(&in).why, "tries");
    assert_int_equal(decide(&in).decision, HFI_RETURN);
}

static void s0_28_three_retries_with_growing_waits(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(503, NULL, 0, &o);
    struct hfi_decide_in in = input(&o);
    static const int64_t waits[] = {500, 1000, 2000};
    for (in.retries_done = 0; in.retries_done < 3; in.retries_done++) {
        struct hfi_decide_out out = decide(&in);
        assert_int_equal(out.decision, HFI_RETRY);
        assert_int_equal(out.wait_ms, waits[in.retries_done]);
        assert_int_equal(out.not_before_ms, -1);
        assert_false(out.fresh_connection);
    }
    assert_int_equal(decide(&in).decision, HFI_RETURN);
}

static void a421_is_tried_once_on_a_fresh_connection(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(421, NULL, 0, &o);
    struct hfi_decide_in in = input(&o);
    assert_int_equal(decide(&in).decision, HFI_RETRY);
    assert_true(decide(&in).fresh_connection);
    in.fresh_used = true;
    assert_string_equal(decide(&in).why, "fresh_used");
}

static void a1_wait_that_does_not_fit_returns_now(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(503, "100", 0, &o);
    struct hfi_decide_in in = input(&o);
    in.deadline.us = in.now.us + 30000000;
    struct hfi_decide_out out = decide(&in);
    assert_int_equal(out.decision, HFI_RETURN);
    assert_string_equal(out.why, "retry_after");
    assert_int_equal(out.not_before_ms, 100000);
    in.deadline.us = in.now.us + 100001000; /* just room for a try of 1 ms */
    assert_int_equal(decide(&in).decision, HFI_RETRY);
    in.deadline.us -= 1;
    assert_int_equal(decide(&in).decision, HFI_RETURN);
}

static void a5_the_longer_wait_wins(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(503, "2", 0, &o);
    struct hfi_decide_in in = input(&o);
    assert_int_equal(decide(&in).wait_ms, 2000);
    hf_classify_http(503, "0", 0, &o); /* a short header never shortens our own wait */
    assert_int_equal(decide(&in).wait_ms, 500);
}

static void r5_no_time_left_means_no_try(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(500, NULL, 0, &o);
    struct hfi_decide_in in = input(&o);
    for (int64_t left = -5000000; left <= 500000; left += 250000) {
        in.deadline.us = in.now.us + left;
        struct hfi_decide_out out = decide(&in);
        assert_int_equal(out.decision, HFI_RETURN);
        assert_string_equal(out.why, "deadline");
        assert_int_equal(out.not_before_ms, -1);
    }
}

static void exhausted_tries_hand_on_the_wait(void **state) {
    (void)state;
    struct hf_outcome o;
    hf_classify_http(503, "7", 0, &o);
    struct hfi_decide_in in = input(&o);
    in.retries_done = 3;
    assert_int_equal(decide(&in).not_before_ms, 7000);
}

/* Whatever comes in: a retry fits the deadline, is never early and never follows a final outcome. */
static void decisions_hold_for_any_input(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("decide"));
    for (int i = 0; i < 200000; i++) {
        struct hf_outcome o;
        hfi_outcome_init(&o);
        hfi_outcome_set(&o, (enum hf_outcome_kind)hfi_random_below(&random, 4),
                        (enum hf_retry)hfi_random_below(&random, 4), (enum hf_verdict)hfi_random_below(&random, 3),
                        (enum hf_class)hfi_random_below(&random, 4), "t", "r");
        o.retry_after_ms = (int64_t)hfi_random_below(&random, 200000) - 100000;
        if (o.retry_after_ms < -1)
            o.retry_after_ms = -1;
        struct hfi_backoff_rules rules = backoff;
        rules.jitter = (enum hf_jitter)hfi_random_below(&random, 5);
        struct hfi_decide_in in = input(&o);
        in.backoff = &rules;
        in.retries_done = (uint32_t)hfi_random_below(&random, 6);
        in.repeatable = hfi_random_below(&random, 4) != 0;
        in.body_rewinds = hfi_random_below(&random, 4) != 0;
        in.fresh_used = hfi_random_below(&random, 2) != 0;
        in.deadline.us = in.now.us + (int64_t)hfi_random_below(&random, 120000000) - 10000000;
        in.random = hfi_random_next(&random);
        struct hfi_decide_out out = decide(&in);
        if (out.decision == HFI_RETRY) {
            assert_int_equal(o.kind, HF_OUTCOME_FAILURE);
            assert_true(o.retry == HF_RETRY_NOW || o.retry == HF_RETRY_FRESH);
            assert_true(in.repeatable && in.body_rewinds && in.retries_done < in.retry_max);
            assert_true(out.wait_ms >= o.retry_after_ms && out.wait_ms >= 0);
            assert_true(in.now.us + (out.wait_ms + 1) * 1000 <= in.deadline.us);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_to_return),
        cmocka_unit_test(s0_28_three_retries_with_growing_waits),
        cmocka_unit_test(a421_is_tried_once_on_a_fresh_connection),
        cmocka_unit_test(a1_wait_that_does_not_fit_returns_now),
        cmocka_unit_test(a5_the_longer_wait_wins),
        cmocka_unit_test(r5_no_time_left_means_no_try),
        cmocka_unit_test(exhausted_tries_hand_on_the_wait),
        cmocka_unit_test(decisions_hold_for_any_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
