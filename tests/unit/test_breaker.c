/* SPDX-License-Identifier: MIT */
/* The breaker's trips, breaks and probes: S0.29, S0.30, B1-B6, B8-B11, B14-B18, B20, B21, B24, B28, W7, W8, F1. */
#include "breaker_rig.h"

static void ratio_trips_with_enough_calls(void **state) {
    (void)state;
    start();
    calls(10, HF_VERDICT_SUCCESS);
    calls(9, HF_VERDICT_FAILURE); /* B21: 9 of 19 and below min_calls */
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    call(HF_VERDICT_FAILURE); /* 10 of 20, not "more than" half */
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.reasons[0], "ratio: 10 of 20 failed");
    assert_int_equal(seen.list[0].window.calls, 20);
    assert_int_equal(seen.list[0].window.failures, 10);
    assert_int_equal(seen.list[0].until_us, START + 5 * S);
}

static void b20_in_flight_calls_do_not_dilute(void **state) {
    (void)state;
    static struct hf_permit permits[115];
    start();
    for (int i = 0; i < 115; i++)
        assert_int_equal(enter(&permits[i]), HFI_ADMITTED);
    for (int i = 0; i < 20; i++)
        leave(&permits[i], HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
}

static void b10_b15_a_break_is_never_moved(void **state) {
    (void)state;
    static struct hf_permit permits[50];
    struct hf_permit permit;
    start();
    for (int i = 0; i < 50; i++)
        assert_int_equal(enter(&permits[i]), HFI_ADMITTED);
    for (int i = 0; i < 50; i++) {
        leave(&permits[i], HF_VERDICT_FAILURE); /* thirty of them after it opened */
        clock_us += MS;
    }
    int64_t until = seen.list[0].until_us;
    assert_int_equal(until, START + 19 * MS + 5 * S);
    for (int i = 0; clock_us < until; i++, clock_us += MS) {
        assert_int_equal(enter(&permit), HFI_REFUSED_OPEN); /* at 1 kHz */
        assert_int_equal(look().until_us, until);
    }
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    assert_int_equal(seen.count, 2);
}

static void refusals_say_how_long(void **state) {
    (void)state;
    struct hf_permit permit;
    int64_t wait;
    start();
    trip();
    clock_us += 1500 * MS + 1;
    assert_int_equal(hfi_breaker_enter(&b, now(), &permit, &wait), HFI_REFUSED_OPEN);
    assert_int_equal(wait, 3500);
    assert_int_equal(permit.state, 0);
    assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_FAILURE, HF_CAUSE_OTHER, false), HF_ESTATE);
}

static void b1_b2_b28_neutral_probe_decides_nothing(void **state) {
    (void)state;
    struct hf_permit permit;
    start();
    trip();
    pass_break();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(enter(&permit), HFI_ADMITTED);
        leave(&permit, HF_VERDICT_NEUTRAL);
        assert_int_equal(look().state, HF_BREAKER_HALF_OPEN);
    }
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    hfi_breaker_drop(&b, now(), &permit);
    assert_int_equal(look().probes_in_flight, 0);
    calls(3, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

static void b9_evidence_of_life_after_ten_times_probes(void **state) {
    (void)state;
    struct hf_permit permit;
    start();
    trip();
    pass_break();
    for (int i = 0; i < 30; i++) {
        assert_int_equal(look().state, HF_BREAKER_OPEN + (i > 0 ? 1 : 0));
        assert_int_equal(enter(&permit), HFI_ADMITTED);
        assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_NEUTRAL, HF_CAUSE_OTHER, true), 0);
    }
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

static void b9_4xx_neither_trips_nor_resets_a_run(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.consecutive = 3;
    start_with(&rules);
    calls(10, HF_VERDICT_NEUTRAL);
    assert_int_equal(look().window.calls, 0);
    call(HF_VERDICT_FAILURE);
    call(HF_VERDICT_NEUTRAL);
    call(HF_VERDICT_FAILURE);
    call(HF_VERDICT_NEUTRAL);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    assert_string_equal(seen.reasons[0], "consecutive: 3 of 3 failed in a row");
}

static void success_resets_a_run(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.consecutive = 3;
    start_with(&rules);
    for (int i = 0; i < 5; i++) {
        calls(2, HF_VERDICT_FAILURE);
        calls(5, HF_VERDICT_SUCCESS);
    }
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
}

static void w8_slow_outage_opens_at_n(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.consecutive = 6;
    rules.window_ms = 100;
    start_with(&rules);
    for (int i = 0; i < 5; i++, clock_us += 60 * S)
        call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
}

static void w7_old_failures_decay(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.consecutive = 3;
    start_with(&rules);
    calls(2, HF_VERDICT_FAILURE);
    clock_us += 86400 * S;
    call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
}

/* B3, B4: probes that never report are lost at their lease; after the new break exactly N pass again. */
static void b3_lost_probes(void **state) {
    (void)state;
    for (uint32_t probes = 1; probes <= 16; probes += 5) {
        struct hfi_breaker_rules rules = defaults();
        struct hf_permit permits[16], extra;
        rules.probes = probes;
        start_with(&rules);
        trip();
        pass_break();
        for (uint32_t i = 0; i < probes; i++)
            assert_int_equal(enter(&permits[i]), HFI_ADMITTED);
        assert_int_equal(enter(&extra), HFI_REFUSED_HALF_OPEN);
        clock_us += 30 * S + MS;
        assert_int_equal(enter(&extra), HFI_REFUSED_OPEN);
        assert_string_equal(look().reason, "probe_lost");
        assert_int_equal(look().until_us, clock_us + 10 * S); /* fresh, and grown */
        for (uint32_t i = 0; i < probes; i++)
            leave(&permits[i], HF_VERDICT_SUCCESS); /* too late: telemetry */
        assert_int_equal(look().state, HF_BREAKER_OPEN);
        pass_break();
        for (uint32_t i = 0; i < probes; i++)
            assert_int_equal(enter(&permits[i]), HFI_ADMITTED);
        assert_int_equal(enter(&extra), HFI_REFUSED_HALF_OPEN);
    }
}

static void lapsed_probe_never_frees_its_successor(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    struct hf_permit lapsed, next, extra;
    rules.probes = 2;
    rules.tolerated = 1;
    start_with(&rules);
    trip();
    pass_break();
    assert_int_equal(enter(&lapsed), HFI_ADMITTED);
    clock_us += 30 * S + MS;
    assert_int_equal(enter(&next), HFI_ADMITTED);            /* the lost one was tolerated; this takes its slot */
    assert_int_equal(look().probes_in_flight, 1);
    leave(&lapsed, HF_VERDICT_SUCCESS);
    assert_int_equal(look().probes_in_flight, 1);
    assert_int_equal(enter(&extra), HFI_REFUSED_HALF_OPEN);  /* one lost, one in flight: both counted */
    leave(&next, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

static void b6_b8_older_generations_change_nothing(void **state) {
    (void)state;
    static struct hf_permit old[25];
    struct hf_permit permits[3], extra;
    start();
    for (int i = 0; i < 25; i++)
        assert_int_equal(enter(&old[i]), HFI_ADMITTED);
    for (int i = 0; i < 20; i++)
        leave(&old[i], HF_VERDICT_FAILURE);
    pass_break();
    for (int i = 0; i < 3; i++)
        assert_int_equal(enter(&permits[i]), HFI_ADMITTED);
    leave(&old[20], HF_VERDICT_SUCCESS);
    leave(&old[21], HF_VERDICT_FAILURE);
    hfi_breaker_drop(&b, now(), &old[22]);
    assert_int_equal(look().state, HF_BREAKER_HALF_OPEN);
    assert_int_equal(enter(&extra), HFI_REFUSED_HALF_OPEN);
    for (int i = 0; i < 3; i++)
        leave(&permits[i], HF_VERDICT_SUCCESS);
    leave(&old[23], HF_VERDICT_FAILURE);
    assert_int_equal(look().window.calls, 0);
}

static void second_report_is_an_error(void **state) {
    (void)state;
    struct hf_permit permit, copy;
    start();
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    leave(&permit, HF_VERDICT_FAILURE);
    assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_FAILURE, HF_CAUSE_OTHER, false), HF_ESTATE);
    assert_int_equal(look().window.calls, 1);
    calls(19, HF_VERDICT_FAILURE);
    pass_break();
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    copy = permit;
    leave(&permit, HF_VERDICT_NEUTRAL);
    assert_int_equal(enter(&permit), HFI_ADMITTED); /* the same slot, another permit */
    leave(&copy, HF_VERDICT_FAILURE);               /* a copy of the reported one frees nothing */
    assert_int_equal(look().probes_in_flight, 1);
    assert_int_equal(look().state, HF_BREAKER_HALF_OPEN);
}

static void b11_min_calls_does_not_gate_half_open(void **state) {
    (void)state;
    start();
    trip();
    pass_break();
    call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    assert_string_equal(look().reason, "probe_failed");
}

static void f1_tolerated_failures(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.probes = 10;
    rules.tolerated = 3;
    start_with(&rules);
    trip();
    pass_break();
    calls(3, HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_HALF_OPEN);
    call(HF_VERDICT_FAILURE); /* the fourth opens at once */
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    pass_break();
    calls(3, HF_VERDICT_FAILURE);
    calls(7, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

static void b14_no_recursion_with_a_frozen_clock(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    struct hf_permit permit;
    int64_t wait;
    rules.break_ms = rules.max_break_ms = 0;
    start_with(&rules);
    trip();
    for (int i = 0; i < 1000000; i++)
        if (hfi_breaker_enter(&b, now(), &permit, &wait) == HFI_ADMITTED)
            leave(&permit, HF_VERDICT_FAILURE);
    clock_us += MS;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
}

static void b16_b17_the_second_trip_needs_no_more_than_the_first(void **state) {
    (void)state;
    start();
    for (int round = 0; round < 4; round++) {
        calls(19, HF_VERDICT_FAILURE);
        assert_int_not_equal(look().state, HF_BREAKER_OPEN);
        call(HF_VERDICT_FAILURE);
        assert_int_equal(look().state, HF_BREAKER_OPEN);
        recover();
        clock_us += 10 * S;
    }
}

static void b18_breaks_grow_and_shrink(void **state) {
    (void)state;
    static const int64_t lengths[] = {5, 10, 20, 40, 60, 60, 60, 60};
    start();
    trip();
    for (int i = 0; i < 8; i++) {
        assert_int_equal(look().until_us - clock_us, lengths[i] * S);
        assert_int_equal(look().trips, i + 1);
        pass_break();
        call(HF_VERDICT_FAILURE);
    }
    recover();
    clock_us += 59 * S; /* not a whole healthy window */
    hfi_breaker_tick(&b, now());
    trip();
    assert_int_equal(look().until_us - clock_us, 60 * S);
    recover();
    clock_us += 60 * S;
    assert_int_equal(look().trips, 0);
    hfi_breaker_tick(&b, now());
    trip();
    assert_int_equal(look().until_us - clock_us, 5 * S);
}

static void break_jitter_is_bounded(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.break_jitter_permille = 100;
    int64_t least = INT64_MAX, most = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        rules.break_jitter_permille = 100;
        start_with(&rules);
        b.seed = (uint32_t)seed;

        trip();
        int64_t length = look().until_us - clock_us;
        assert_in_range(length, 4500 * MS, 5500 * MS);
        least = length < least ? length : least;
        most = length > most ? length : most;
    }
    assert_true(least < 4600 * MS && most > 5400 * MS);
}

static void b24_closing_clears_the_window(void **state) {
    (void)state;
    start();
    trip();
    recover();
    assert_int_equal(look().window.calls, 0);
    call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

static void slow_calls_trip(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.slow_permille = 500;
    rules.slow_after_ms = 100;
    start_with(&rules);
    for (int i = 0; i < 20; i++) {
        struct hf_permit permit;
        assert_int_equal(enter(&permit), HFI_ADMITTED);
        clock_us += 101 * MS;
        leave(&permit, HF_VERDICT_SUCCESS);
    }
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    assert_string_equal(look().reason, "slow: 20 of 20 were slow (20 slow)");
    pass_break();
    struct hf_permit permit;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    clock_us += 101 * MS;
    leave(&permit, HF_VERDICT_SUCCESS); /* a slow probe proves no recovery */
    assert_int_equal(look().state, HF_BREAKER_OPEN);
}

/* 2.5: complete neutral answers are evidence of life only in a row: a failed and a lost probe end the row. */
static void a_failure_ends_a_row_of_neutral_answers(void **state) {
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct hfi_breaker_rules rules = defaults();
        struct hf_permit permit;
        rules.tolerated = 1;
        start_with(&rules);
        trip();
        pass_break();
        for (int i = 0; i < 29; i++) {
            assert_int_equal(enter(&permit), HFI_ADMITTED);
            assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_NEUTRAL, HF_CAUSE_OTHER, true), 0);
        }
        assert_int_equal(enter(&permit), HFI_ADMITTED);
        if (lost)
            clock_us = permit.lease_us + 1;
        else
            leave(&permit, HF_VERDICT_FAILURE);
        for (int i = 0; i < 29; i++) {
            assert_int_equal(enter(&permit), HFI_ADMITTED);
            assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_NEUTRAL, HF_CAUSE_OTHER, true), 0);
            assert_int_equal(look().state, HF_BREAKER_HALF_OPEN);
        }
        assert_int_equal(enter(&permit), HFI_ADMITTED);
        assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_NEUTRAL, HF_CAUSE_OTHER, true), 0);
        assert_int_equal(look().state, HF_BREAKER_RAMP);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratio_trips_with_enough_calls),
        cmocka_unit_test(b20_in_flight_calls_do_not_dilute),
        cmocka_unit_test(b10_b15_a_break_is_never_moved),
        cmocka_unit_test(refusals_say_how_long),
        cmocka_unit_test(b1_b2_b28_neutral_probe_decides_nothing),
        cmocka_unit_test(a_failure_ends_a_row_of_neutral_answers),
        cmocka_unit_test(b9_evidence_of_life_after_ten_times_probes),
        cmocka_unit_test(b9_4xx_neither_trips_nor_resets_a_run),
        cmocka_unit_test(success_resets_a_run),
        cmocka_unit_test(w8_slow_outage_opens_at_n),
        cmocka_unit_test(w7_old_failures_decay),
        cmocka_unit_test(b3_lost_probes),
        cmocka_unit_test(lapsed_probe_never_frees_its_successor),
        cmocka_unit_test(b6_b8_older_generations_change_nothing),
        cmocka_unit_test(second_report_is_an_error),
        cmocka_unit_test(b11_min_calls_does_not_gate_half_open),
        cmocka_unit_test(f1_tolerated_failures),
        cmocka_unit_test(b14_no_recursion_with_a_frozen_clock),
        cmocka_unit_test(b16_b17_the_second_trip_needs_no_more_than_the_first),
        cmocka_unit_test(b18_breaks_grow_and_shrink),
        cmocka_unit_test(break_jitter_is_bounded),
        cmocka_unit_test(b24_closing_clears_the_window),
        cmocka_unit_test(slow_calls_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
