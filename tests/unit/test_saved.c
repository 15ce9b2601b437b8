/* SPDX-License-Identifier: MIT */
/* Saving and restoring what a breaker knows: B27, F6. */
#include <string.h>

#include "resilience/downstream.h"
#include "support/support.h"

#define S INT64_C(1000000)
#define WALL (INT64_C(1700000000) * S)

static struct hf_policy *policy;
static struct hf_mono mono;
static struct hf_wall wall;

static int set_up(void **state) {
    struct hf_policy_options options;
    (void)state;
    hf_policy_options_init(&options);
    options.breaker_break_jitter = 0;
    options.breaker_break_ms = 20000;
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    mono.us = 1000 * S;
    wall.us = WALL;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_policy_unref(policy);
    return 0;
}

static struct hf_downstream *fresh(void) {
    struct hf_downstream *made = NULL;
    assert_int_equal(hf_downstream_new("d", policy, &made, NULL), 0);
    return made;
}

static void pass(int64_t seconds) {
    mono.us += seconds * S;
    wall.us += seconds * S;
}

static bool enter(struct hf_downstream *d, struct hf_permit *permit) {
    return hfi_downstream_enter(d, mono, permit, NULL) == 0;
}

static void fail_until_open(struct hf_downstream *d) {
    struct hf_permit permit;
    for (int i = 0; i < 20; i++) {
        assert_true(enter(d, &permit));
        hfi_downstream_leave_as(d, mono, &permit, HF_VERDICT_FAILURE);
    }
    assert_false(enter(d, &permit));
}

static struct hf_downstream_view look(struct hf_downstream *d) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(d, mono, &view);
    return view;
}

/* Another process: its own monotonic clock, the same wall clock. */
static struct hf_downstream *restart(struct hf_downstream *d, struct hf_downstream_saved *saved) {
    hf_downstream_saved_init(saved);
    hfi_downstream_save(d, mono, wall, saved);
    hf_downstream_unref(d);
    mono.us = 7 * S;
    struct hf_downstream *made = fresh();
    assert_int_equal(hfi_downstream_restore(made, mono, wall, saved), 0);
    return made;
}

/* B27: save at half of the break, restore, and only the other half has to pass. */
static void b27_a_break_goes_on_where_it_was(void **state) {
    (void)state;
    struct hf_downstream_saved saved;
    struct hf_permit permit;
    struct hf_downstream *d = fresh();
    fail_until_open(d);
    pass(10);
    d = restart(d, &saved);
    assert_int_equal(saved.state, HF_BREAKER_OPEN);
    assert_int_equal(saved.until_us, WALL + 20 * S);
    assert_int_equal(saved.trips, 1);
    assert_string_equal(saved.reason, "ratio: 20 of 20 failed");
    assert_int_equal(look(d).state, HF_BREAKER_OPEN);
    assert_int_equal(look(d).open_for_ms, 10000);
    assert_string_equal(look(d).reason, saved.reason);
    assert_int_equal(look(d).trips, 1);
    pass(9);
    assert_false(enter(d, &permit));
    pass(1);
    assert_true(enter(d, &permit));
    assert_int_equal(look(d).state, HF_BREAKER_HALF_OPEN);
    hf_downstream_unref(d);
}

/* B27: no wall clock makes a break longer than the longest, nor hurts when it went forward. */
static void b27_a_clock_that_was_set_is_clamped(void **state) {
    (void)state;
    struct hf_downstream_saved saved;
    struct hf_permit permit;
    struct hf_downstream *d = fresh();
    fail_until_open(d);
    hf_downstream_saved_init(&saved);
    hfi_downstream_save(d, mono, wall, &saved);
    hf_downstream_unref(d);
    wall.us -= 3600 * S; /* an hour back */
    d = fresh();
    assert_int_equal(hfi_downstream_restore(d, mono, wall, &saved), 0);
    assert_int_equal(look(d).open_for_ms, 60000);
    hf_downstream_unref(d);
    wall.us += 7200 * S;
    d = fresh();
    assert_int_equal(hfi_downstream_restore(d, mono, wall, &saved), 0);
    assert_true(enter(d, &permit)); /* over: a probe */
    assert_int_equal(look(d).state, HF_BREAKER_HALF_OPEN);
    hf_downstream_unref(d);
}

/* Half-open and ramp do not come back as closed: what restarts begins with probes. */
static void b27_a_recovery_begins_with_probes_again(void **state) {
    (void)state;
    struct hf_downstream_saved saved;
    struct hf_permit permit[4];
    struct hf_downstream *d = fresh();
    fail_until_open(d);
    pass(20);
    assert_true(enter(d, &permit[0]));
    d = restart(d, &saved);
    assert_int_equal(saved.state, HF_BREAKER_OPEN);
    for (int i = 0; i < 3; i++)
        assert_true(enter(d, &permit[i]));
    assert_false(enter(d, &permit[3])); /* exactly the probes */
    for (int i = 0; i < 3; i++)
        hfi_downstream_leave_as(d, mono, &permit[i], HF_VERDICT_SUCCESS);
    assert_int_equal(look(d).state, HF_BREAKER_RAMP);
    d = restart(d, &saved);
    assert_true(enter(d, &permit[0]));
    assert_int_equal(look(d).state, HF_BREAKER_HALF_OPEN);
    hf_downstream_unref(d);
}

/* F6: what was isolated by hand is isolated after a restart, with its reason and expiry; no probe runs meanwhile. */
static void f6_isolation_survives_a_restart(void **state) {
    (void)state;
    struct hf_downstream_saved saved;
    struct hf_permit permit;
    struct hf_downstream *d = fresh();
    hfi_breaker_isolate(&d->breaker, mono, 0, "ticket 4711");
    d = restart(d, &saved);
    assert_int_equal(saved.until_us, 0);
    for (int day = 0; day < 100; day++) {
        pass(86400);
        assert_false(enter(d, &permit));
    }
    assert_int_equal(look(d).state, HF_BREAKER_ISOLATED);
    assert_string_equal(look(d).reason, "ticket 4711");
    hfi_breaker_isolate(&d->breaker, mono, 7200000, "two hours"); /* longer than any break: not clamped */
    pass(3600);
    d = restart(d, &saved);
    assert_int_equal(look(d).open_for_ms, 3600000);
    pass(3599);
    assert_false(enter(d, &permit));
    pass(1);
    assert_true(enter(d, &permit)); /* over: then with probes */
    assert_int_equal(look(d).state, HF_BREAKER_HALF_OPEN);
    hf_downstream_unref(d);
}

/* The not-before gate comes back too, for at most the policy's cap. */
static void a_gate_is_restored(void **state) {
    (void)state;
    struct hf_downstream_saved saved;
    struct hf_permit permit;
    struct hf_downstream *d = fresh();
    hfi_breaker_gate(&d->breaker, (struct hf_mono){mono.us + 30 * S});
    pass(10);
    d = restart(d, &saved);
    assert_int_equal(saved.state, HF_BREAKER_CLOSED);
    assert_int_equal(look(d).gate_for_ms, 20000);
    assert_false(enter(d, &permit));
    hf_downstream_unref(d);
    wall.us -= 3600 * S;
    d = fresh();
    assert_int_equal(hfi_downstream_restore(d, mono, wall, &saved), 0);
    assert_int_equal(look(d).gate_for_ms, 60000);
    hf_downstream_unref(d);
}

/* B10: what is open already keeps its own end. */
static void b10_restoring_never_moves_a_running_break(void **state) {
    (void)state;
    struct hf_downstream_saved saved;
    struct hf_downstream *d = fresh();
    fail_until_open(d);
    hf_downstream_saved_init(&saved);
    saved.state = HF_BREAKER_OPEN;
    saved.until_us = wall.us + 50 * S;
    saved.trips = 4;
    assert_int_equal(hfi_downstream_restore(d, mono, wall, &saved), 0);
    assert_int_equal(look(d).open_for_ms, 20000);
    assert_int_equal(look(d).trips, 4);
    hf_downstream_unref(d);
}

static void what_was_not_saved_is_refused(void **state) {
    (void)state;
    struct hf_downstream_saved saved;
    struct hf_downstream *d = fresh();
    hf_downstream_saved_init(&saved);
    assert_int_equal(hf_downstream_save(NULL, &saved), HF_EINVAL);
    assert_int_equal(hf_downstream_save(d, NULL), HF_EINVAL);
    assert_int_equal(hf_downstream_restore(d, NULL), HF_EINVAL);
    saved.state = HF_BREAKER_RAMP;
    assert_int_equal(hf_downstream_restore(d, &saved), HF_EINVAL);
    saved.state = (enum hf_breaker_state)77;
    assert_int_equal(hf_downstream_restore(d, &saved), HF_EINVAL);
    saved.state = HF_BREAKER_OPEN;
    saved.until_us = -1;
    assert_int_equal(hf_downstream_restore(d, &saved), HF_EINVAL);
    saved.until_us = INT64_MAX;
    saved.trips = UINT32_MAX;
    memset(saved.reason, 'x', sizeof saved.reason); /* no end */
    assert_int_equal(hf_downstream_restore(d, &saved), 0);
    assert_int_equal(hf_downstream_save(d, &saved), 0);
    assert_int_equal(saved.state, HF_BREAKER_OPEN);
    assert_int_equal(strlen(saved.reason), sizeof saved.reason - 1);
    saved.size = 0;
    assert_int_equal(hf_downstream_restore(d, &saved), HF_EINVAL);
    hf_downstream_unref(d);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(b27_a_break_goes_on_where_it_was),
        TEST(b27_a_clock_that_was_set_is_clamped),
        TEST(b27_a_recovery_begins_with_probes_again),
        TEST(f6_isolation_survives_a_restart),
        TEST(a_gate_is_restored),
        TEST(b10_restoring_never_moves_a_running_break),
        TEST(what_was_not_saved_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
