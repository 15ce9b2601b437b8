/* SPDX-License-Identifier: MIT */
/* What chance found in the model test: lost probes that nobody asks after, clocks that are behind at the wrong moment. */
#include "breaker_rig.h"

#include "resilience/downstream.h"

/* B3, B26: the last probe that the ramp waited for is lost, and that is tolerated: the ramp admits, and so it claims. */
static void b3_a_tolerated_loss_lets_the_ramp_begin(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    struct hf_permit lost, permit;
    rules.tolerated = 1;
    start_with(&rules);
    trip();
    pass_break();
    assert_int_equal(enter(&lost), HFI_ADMITTED);
    calls(2, HF_VERDICT_SUCCESS);
    assert_int_equal(look().allowance, 0);
    clock_us += rules.lease_ms * MS + 1;
    assert_int_equal(look().allowance, 7); /* a tenth of 64, rounded up */
    for (int i = 0; i < 7; i++)
        assert_int_equal(enter(&permit), HFI_ADMITTED);
    assert_int_equal(enter(&permit), HFI_REFUSED_RAMP);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

/* B3: jobs go by the allowance alone. When the last probe is lost, they must not wait for somebody else to find out. */
static void b3_a_lost_probe_is_found_by_who_only_asks(void **state) {
    (void)state;
    struct hf_downstream *d;
    struct hf_permit permit;
    int64_t at_us = START, wait_ms = 0;
    assert_int_equal(hf_downstream_new("peer", NULL, &d, NULL), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hfi_downstream_enter(d, (struct hf_mono){at_us}, &permit, NULL), 0);
        assert_int_equal(hfi_downstream_leave_as(d, (struct hf_mono){at_us}, &permit, HF_VERDICT_FAILURE), 0);
    }
    at_us += 6 * S; /* after the break, whatever its jitter */
    assert_int_equal(hfi_downstream_allowance(d, (struct hf_mono){at_us}, NULL), 3);
    assert_int_equal(hfi_downstream_enter(d, (struct hf_mono){at_us}, &permit, NULL), 0); /* and never again */
    at_us += 3600 * S;
    assert_int_equal(hfi_downstream_allowance(d, (struct hf_mono){at_us}, &wait_ms), 0);
    at_us += wait_ms * MS;
    assert_true(wait_ms > 1000); /* a new break */
    assert_int_equal(hfi_downstream_allowance(d, (struct hf_mono){at_us}, &wait_ms), 3);
    hf_downstream_unref(d);
}

/* W2, V15: a reload takes the ramp away while a thread comes whose clock is behind its beginning. */
static void w2_a_ramp_taken_away_from_a_clock_behind(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults(), flat = defaults();
    struct hf_permit permit;
    flat.ramp_ms = 0;
    start_with(&rules);
    trip();
    recover();
    clock_us -= 5 * MS;
    assert_int_equal(hfi_breaker_reload(&b, now(), &flat), 0);
    assert_true(look().allowance > 0);
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    clock_us += 5 * MS;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    start(); /* no rules of this function stay behind */
}

/* W2: the first failure comes from a thread that is a slice behind: its cause leaves the window when it does. */
static void w2_causes_keep_step_with_the_window(void **state) {
    (void)state;
    struct hf_permit late;
    start();
    assert_int_equal(enter(&late), HFI_ADMITTED);
    clock_us += 10 * S;
    call(HF_VERDICT_SUCCESS);
    clock_us -= 10 * S;
    leave(&late, HF_VERDICT_FAILURE);
    clock_us += 69 * S;
    assert_int_equal(look().window.failures, 1);
    assert_int_equal(look().causes.counts[HF_CAUSE_OTHER], 1);
}

/* W7, W12: failures too long ago to be in a row do not bring the trip any nearer. */
static void w7_w12_an_old_run_is_no_run(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.consecutive = 3;
    start_with(&rules);
    calls(2, HF_VERDICT_FAILURE);
    assert_int_equal(look().failures_to_trip, 1);
    clock_us += 2 * 3600 * S;
    assert_int_equal(look().failures_to_trip, 3);
    calls(2, HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    calls(1, HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b3_a_tolerated_loss_lets_the_ramp_begin),
        cmocka_unit_test(b3_a_lost_probe_is_found_by_who_only_asks),
        cmocka_unit_test(w2_a_ramp_taken_away_from_a_clock_behind),
        cmocka_unit_test(w2_causes_keep_step_with_the_window),
        cmocka_unit_test(w7_w12_an_old_run_is_no_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
