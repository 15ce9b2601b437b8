/* SPDX-License-Identifier: MIT */
/* The breaker's ramp, and looking at, forcing, gating and restoring it: B22, B25-B27, J4, W3, F6. */
#include "breaker_rig.h"

/* J4, B25: in the ramp no 100 ms see more starts than ceil(cap × (0.1 + 0.9 t / ramp)), nor so many in flight. */
static void j4_ramp_shapes_a_herd(void **state) {
    (void)state;
    enum { MAX = 20000 };
    static int64_t starts[MAX];
    int count = 0;
    start();
    trip();
    recover();
    int64_t from = clock_us;
    struct hf_permit permit;
    for (; clock_us < from + 10 * S; clock_us += 1 * MS) {
        while (enter(&permit) == HFI_ADMITTED) {
            starts[count++] = clock_us - from;
            leave(&permit, HF_VERDICT_SUCCESS);
        }
    }
    for (int i = 0; i < count; i++) {
        int in_window = 0;
        for (int k = i; k >= 0 && starts[i] - starts[k] < 100 * MS; k--)
            in_window++;
        int64_t limit = (64 * (10 * S + 9 * starts[i]) + 100 * S - 1) / (100 * S);
        assert_true(in_window <= limit);
    }
    assert_true(count > 2500); /* and it does let them in: 35 in 100 ms on average at best */
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
}

static void ramp_limits_what_is_in_flight(void **state) {
    (void)state;
    static struct hf_permit permits[64];
    struct hf_permit extra;
    start();
    trip();
    recover();
    int held = 0;
    while (held < 64 && enter(&permits[held]) == HFI_ADMITTED)
        held++;
    assert_int_equal(held, 7); /* ceil(6.4) */
    assert_int_equal(look().allowance, 0);
    clock_us += 5 * S; /* 64 × 0.55 = 35.2 */
    while (held < 64 && enter(&permits[held]) == HFI_ADMITTED)
        held++;
    assert_int_equal(held, 36);
    assert_int_equal(enter(&extra), HFI_REFUSED_RAMP);
    leave(&permits[0], HF_VERDICT_SUCCESS);
    clock_us += 110 * MS;
    assert_int_equal(enter(&extra), HFI_ADMITTED);
}

static void samples_of_the_ramp_go_on_counting(void **state) {
    (void)state;
    struct hf_permit permit;
    start();
    trip();
    recover();
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    calls(2, HF_VERDICT_SUCCESS);
    uint64_t generation = look().generation;
    clock_us += 10 * S;
    hfi_breaker_tick(&b, now());
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    assert_int_equal(look().generation, generation);
    leave(&permit, HF_VERDICT_SUCCESS);
    assert_int_equal(look().window.calls, 3);
}

static void ramp_may_trip_again(void **state) {
    (void)state;
    start();
    trip();
    recover();
    for (int i = 0; i < 20; i++, clock_us += 110 * MS)
        call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    assert_int_equal(look().trips, 2);
}

static void no_ramp_closes_at_once(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.ramp_ms = 0;
    start_with(&rules);
    trip();
    pass_break();
    calls(3, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
}

static void isolation_and_close(void **state) {
    (void)state;
    struct hf_permit permit;
    start();
    hfi_breaker_isolate(&b, now(), 0, "maintenance");
    assert_string_equal(seen.reasons[0], "isolated: maintenance");
    clock_us += 10000000 * S;
    assert_int_equal(enter(&permit), HFI_REFUSED_ISOLATED);
    assert_false(look().probe_ready);
    hfi_breaker_close(&b, now());
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    assert_string_equal(look().reason, "");
    hfi_breaker_isolate(&b, now(), 60000, "one minute");
    hfi_breaker_isolate(&b, now(), 120000, "two minutes");
    assert_string_equal(look().reason, "two minutes");
    clock_us += 60 * S;
    assert_int_equal(enter(&permit), HFI_REFUSED_ISOLATED);
    clock_us += 60 * S;
    assert_true(look().probe_ready);
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    assert_int_equal(look().state, HF_BREAKER_HALF_OPEN);
    hfi_breaker_close(&b, now());
    leave(&permit, HF_VERDICT_FAILURE);
    assert_int_equal(look().window.calls, 0);
}

static void gate_holds_and_only_grows(void **state) {
    (void)state;
    struct hf_permit permit;
    int64_t wait;
    start();
    hfi_breaker_gate(&b, (struct hf_mono){clock_us + 2 * S});
    hfi_breaker_gate(&b, (struct hf_mono){clock_us + 1 * S});
    assert_int_equal(hfi_breaker_enter(&b, now(), &permit, &wait), HFI_REFUSED_GATE);
    assert_int_equal(wait, 2000);
    assert_int_equal(look().allowance, 0);
    clock_us += 2 * S;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    hfi_breaker_gate(&b, (struct hf_mono){clock_us + 3600 * S});
    hfi_breaker_close(&b, now());
    assert_int_equal(enter(&permit), HFI_ADMITTED);
}

static void b26_looking_changes_nothing(void **state) {
    (void)state;
    struct hf_permit permit;
    start();
    trip();
    assert_false(look().probe_ready);
    pass_break();
    for (int i = 0; i < 100; i++) {
        assert_true(look().probe_ready);
        assert_int_equal(look().allowance, 3);
        assert_int_equal(look().state, HF_BREAKER_OPEN);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(look().allowance, 3 - i);
        assert_int_equal(enter(&permit), HFI_ADMITTED);
    }
    assert_int_equal(look().allowance, 0);
    assert_int_equal(look().probes_in_flight, 3);
    assert_false(look().probe_ready);
}

static void b27_restored_breaks_go_on(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hfi_breaker_saved saved = {.state = HF_BREAKER_OPEN, .trips = 3, .reason = "ratio"};
    start();
    saved.until_us = clock_us + 2500 * MS; /* half of it is over */
    hfi_breaker_restore(&b, now(), &saved);
    assert_int_equal(look().trips, 3);
    assert_string_equal(look().reason, "ratio");
    clock_us += 2499 * MS;
    assert_int_equal(enter(&permit), HFI_REFUSED_OPEN);
    clock_us += MS;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    leave(&permit, HF_VERDICT_FAILURE);
    assert_int_equal(look().until_us - clock_us, 40 * S); /* the fourth trip */
    saved.until_us = clock_us + 3600 * S;
    hfi_breaker_restore(&b, now(), &saved);
    assert_int_equal(look().until_us - clock_us, 40 * S); /* open to open moves nothing */
    start();
    saved.until_us = clock_us + 3600 * S; /* a clock gone wrong: no longer than the longest break */
    hfi_breaker_restore(&b, now(), &saved);
    assert_int_equal(look().until_us - clock_us, 60 * S);
    start();
    saved.state = HF_BREAKER_ISOLATED;
    saved.until_us = HFI_FOREVER_US;
    hfi_breaker_restore(&b, now(), &saved);
    assert_int_equal(enter(&permit), HFI_REFUSED_ISOLATED);
    saved.state = HF_BREAKER_CLOSED;
    hfi_breaker_restore(&b, now(), &saved);
    assert_int_equal(enter(&permit), HFI_ADMITTED);
}

static int depth;
static void nosy(const struct hfi_breaker_event *event, void *user) {
    struct hfi_breaker_look l;
    struct hf_permit permit;
    int64_t wait;
    assert_int_equal(depth, 0); /* never nested */
    depth++;
    record(event, user);
    hfi_breaker_look(&b, now(), &l);
    if (hfi_breaker_enter(&b, now(), &permit, &wait) == HFI_ADMITTED)
        hfi_breaker_drop(&b, now(), &permit);
    if (event->to == HF_BREAKER_OPEN)
        hfi_breaker_isolate(&b, now(), 0, "from inside");
    hfi_breaker_tick(&b, now());
    depth--;
}

static void b22_callbacks_may_call_everything(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    start();
    hfi_breaker_init(&b, &rules, 1, nosy, NULL);
    calls(20, HF_VERDICT_FAILURE);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.list[0].to, HF_BREAKER_OPEN);
    assert_int_equal(seen.list[1].from, HF_BREAKER_OPEN);
    assert_int_equal(seen.list[1].to, HF_BREAKER_ISOLATED);
    assert_string_equal(seen.reasons[1], "isolated: from inside");
}

/* W3: nothing but the time handed in counts; running backward neither shortens nor lengthens a break. */
static void w3_backward_time_moves_no_break(void **state) {
    (void)state;
    struct hf_permit permit;
    start();
    trip();
    int64_t until = look().until_us;
    clock_us -= 86400 * S;
    assert_int_equal(enter(&permit), HFI_REFUSED_OPEN);
    assert_int_equal(look().until_us, until);
    clock_us = until;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
}

static void state_names(void **state) {
    (void)state;
    assert_string_equal(hf_breaker_state_name(HF_BREAKER_HALF_OPEN), "half_open");
    assert_string_equal(hf_breaker_state_name((enum hf_breaker_state)77), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(j4_ramp_shapes_a_herd),
        cmocka_unit_test(ramp_limits_what_is_in_flight),
        cmocka_unit_test(samples_of_the_ramp_go_on_counting),
        cmocka_unit_test(ramp_may_trip_again),
        cmocka_unit_test(no_ramp_closes_at_once),
        cmocka_unit_test(isolation_and_close),
        cmocka_unit_test(gate_holds_and_only_grows),
        cmocka_unit_test(b26_looking_changes_nothing),
        cmocka_unit_test(b27_restored_breaks_go_on),
        cmocka_unit_test(b22_callbacks_may_call_everything),
        cmocka_unit_test(w3_backward_time_moves_no_break),
        cmocka_unit_test(state_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
