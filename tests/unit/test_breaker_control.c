/* SPDX-License-Identifier: MIT */
/* The breaker's ramp, and looking at, forcing, gating and restoring it: B22, B25-B27, J4, W3, W12, F2, F6, V15. */
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

/* J4: what never started uses up nothing of the ramp, nor does it make room for more than that. */
static void j4_what_never_started_is_no_start(void **state) {
    (void)state;
    struct hf_permit permit, held[7];
    start();
    trip();
    recover();
    for (int i = 0; i < 100; i++) {
        clock_us += MS / 10;
        assert_int_equal(enter(&permit), HFI_ADMITTED);
        i % 2 ? hfi_breaker_forgo(&b, now(), &permit) : hfi_breaker_drop(&b, now(), &permit);
        hfi_breaker_drop(&b, now(), &permit); /* once only */
    }
    for (int i = 0; i < 7; i++)
        assert_int_equal(enter(&held[i]), HFI_ADMITTED);
    for (int i = 0; i < 7; i++)
        leave(&held[i], HF_VERDICT_SUCCESS);
    assert_int_equal(enter(&permit), HFI_REFUSED_RAMP); /* 7 in 100 ms have started */
    clock_us += 110 * MS;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    clock_us += 500 * MS;
    assert_int_equal(enter(&held[0]), HFI_ADMITTED);
    hfi_breaker_drop(&b, now(), &permit); /* long past: takes back no start of another's */
    int started = 1;
    while (started < 64 && enter(&permit) == HFI_ADMITTED)
        started++;
    assert_int_equal(started, 10); /* 64 × 0.155 */
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
    start();
    b.on_change = nosy;
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

/* F2, V15: other rules while open move neither its end nor its generation, and keep what was counted. */
static void f2_v15_a_reload_keeps_the_state(void **state) {
    (void)state;
    static struct hfi_breaker_rules other;
    start();
    other = defaults();
    other.break_ms = 1000;
    other.min_calls = 10;
    other.ratio_permille = 900;
    calls(5, HF_VERDICT_FAILURE);
    assert_int_equal(hfi_breaker_reload(&b, now(), &other), 0);
    assert_int_equal(look().window.failures, 5); /* the same shape */
    calls(4, HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    call(HF_VERDICT_FAILURE); /* by the new minimum */
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    int64_t until = look().until_us;
    uint64_t generation = look().generation;
    assert_int_equal(until, clock_us + 1 * S);
    other.window_ms = 30000;
    static struct hfi_breaker_rules third;
    third = other;
    third.break_ms = 5000;
    other.window_ms = 60000;
    assert_int_equal(hfi_breaker_reload(&b, now(), &third), 0);
    assert_int_equal(look().until_us, until);
    assert_int_equal(look().generation, generation);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
    assert_int_equal(look().trips, 1);
    assert_int_equal(look().window.failures, 0); /* another shape: anew */
    assert_int_equal(seen.count, 1);
    clock_us = until;
    calls(3, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

static void f2_half_open_is_judged_by_the_new_numbers(void **state) {
    (void)state;
    static struct hfi_breaker_rules other;
    struct hf_permit permits[3], extra;
    other = defaults();
    other.probes = 1;
    start();
    trip();
    pass_break();
    for (int i = 0; i < 3; i++)
        assert_int_equal(enter(&permits[i]), HFI_ADMITTED);
    leave(&permits[0], HF_VERDICT_SUCCESS);
    assert_int_equal(hfi_breaker_reload(&b, now(), &other), 0); /* one passed is enough now */
    assert_int_equal(look().state, HF_BREAKER_RAMP);
    leave(&permits[1], HF_VERDICT_FAILURE);
    leave(&permits[2], HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_RAMP);

    start();
    trip();
    pass_break();
    for (int i = 0; i < 3; i++)
        assert_int_equal(enter(&permits[i]), HFI_ADMITTED);
    assert_int_equal(hfi_breaker_reload(&b, now(), &other), 0);
    assert_int_equal(look().probes_in_flight, 3); /* those under way stay; no more join them */
    leave(&permits[1], HF_VERDICT_NEUTRAL);
    assert_int_equal(enter(&extra), HFI_REFUSED_HALF_OPEN);
    leave(&permits[0], HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

static void a_reload_without_memory_changes_nothing(void **state) {
    (void)state;
    static struct hfi_breaker_rules other;
    other = defaults();
    other.window_ms = 120000;
    other.slow_permille = 500;
    other.slow_after_ms = 1;
    for (long nth = 1;; nth++) {
        start();
        calls(19, HF_VERDICT_FAILURE);
        hfi_alloc_fail(nth, 0);
        int code = hfi_breaker_reload(&b, now(), &other);
        hfi_alloc_fail(0, 0);
        if (code == 0)
            break;
        assert_int_equal(code, HF_ENOMEM);
        assert_int_equal(look().window.failures, 19);
        call(HF_VERDICT_FAILURE);
        assert_int_equal(look().state, HF_BREAKER_OPEN);
    }
    assert_int_equal(look().window.failures, 0);
}

/* A trip needs no memory: then it names no causes, probes one at a time, and tells of the newest change. */
static void a_breaker_without_memory_trips_all_the_same(void **state) {
    (void)state;
    struct hf_permit permit, extra;
    start();
    hfi_alloc_fail(1, 1);
    trip();
    assert_string_equal(look().reason, "ratio");
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.reasons[0], "ratio");
    assert_int_equal(seen.list[0].to, HF_BREAKER_OPEN);
    pass_break();
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    assert_int_equal(enter(&extra), HFI_REFUSED_HALF_OPEN);
    leave(&permit, HF_VERDICT_SUCCESS);
    calls(2, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
    call(HF_VERDICT_SUCCESS);
    clock_us += 10 * S;
    call(HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_CLOSED);
    for (int i = 1; i < seen.count; i++)
        assert_int_equal(seen.list[i].from, seen.list[i - 1].to);
    hfi_alloc_fail(0, 0);
}

/* Why it opened, by what the failures were of; and how far it is from opening (W12). */
static void causes_are_counted_in_the_window(void **state) {
    (void)state;
    struct hf_permit permit;
    start();
    calls(6, HF_VERDICT_SUCCESS);
    assert_int_equal(look().failures_to_trip, 14); /* W12: min_calls first */
    for (int i = 0; i < 14; i++) {
        assert_int_equal(look().failures_to_trip, 14 - i);
        assert_int_equal(enter(&permit), HFI_ADMITTED);
        assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_FAILURE,
                                           i < 2 ? HF_CAUSE_HTTP_5XX : HF_CAUSE_CONNECT, false),
                         0);
    }
    assert_string_equal(look().reason, "ratio: 14 of 20 failed (12 connect, 2 http 5xx)");
    assert_string_equal(seen.reasons[0], "ratio: 14 of 20 failed (12 connect, 2 http 5xx)");
    assert_int_equal(seen.list[0].causes.counts[HF_CAUSE_CONNECT], 12);
    assert_int_equal(look().causes.counts[HF_CAUSE_HTTP_5XX], 2);
    assert_int_equal(look().failures_to_trip, 0);
    pass_break();
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    assert_int_equal(hfi_breaker_leave(&b, now(), &permit, HF_VERDICT_FAILURE, HF_CAUSE_TLS, false), 0);
    assert_string_equal(look().reason, "probe_failed: tls");
    clock_us += 120 * S;
    assert_int_equal(look().causes.counts[HF_CAUSE_CONNECT], 0);
}

static void w12_what_failures_alone_can_do(void **state) {
    (void)state;
    struct hfi_breaker_rules rules = defaults();
    rules.ratio_permille = 1000;
    start_with(&rules);
    assert_int_equal(look().failures_to_trip, 20);
    call(HF_VERDICT_SUCCESS);
    assert_int_equal(look().failures_to_trip, UINT64_MAX); /* one of the window passed: never all */
    clock_us += 60 * S;
    assert_int_equal(look().failures_to_trip, 20);
    rules.consecutive = 4;
    start_with(&rules);
    calls(100, HF_VERDICT_SUCCESS);
    calls(3, HF_VERDICT_FAILURE);
    assert_int_equal(look().failures_to_trip, 1);
    rules.ratio_permille = 300;
    rules.consecutive = 0;
    start_with(&rules);
    calls(70, HF_VERDICT_SUCCESS);
    assert_int_equal(look().failures_to_trip, 30);
    calls(29, HF_VERDICT_FAILURE);
    assert_int_equal(look().failures_to_trip, 1);
    call(HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
}

static void state_names(void **state) {
    (void)state;
    assert_string_equal(hf_breaker_state_name(HF_BREAKER_HALF_OPEN), "half_open");
    assert_string_equal(hf_breaker_state_name((enum hf_breaker_state)77), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(j4_ramp_shapes_a_herd),
        cmocka_unit_test(j4_what_never_started_is_no_start),
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
        cmocka_unit_test(f2_v15_a_reload_keeps_the_state),
        cmocka_unit_test(f2_half_open_is_judged_by_the_new_numbers),
        cmocka_unit_test(a_reload_without_memory_changes_nothing),
        cmocka_unit_test(a_breaker_without_memory_trips_all_the_same),
        cmocka_unit_test(causes_are_counted_in_the_window),
        cmocka_unit_test(w12_what_failures_alone_can_do),
        cmocka_unit_test(state_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
