/* SPDX-License-Identifier: MIT */
/* Leases by node beat, on the watcher's own clock: S1.10, I2, I30. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs/lease.h"

#define LEASE 60000
#define GAP 30000

static struct hf_mono at(int64_t ms) {
    return (struct hf_mono){ms * 1000};
}

static void lapses_after_a_whole_lease_of_watching(void **state) {
    (void)state;
    struct hfi_lease_watch watch;
    hfi_lease_first(&watch, 7, 3, at(1000));
    for (int64_t ms = 11000; ms < 61000; ms += 10000)
        assert_false(hfi_lease_look(&watch, 3, at(ms), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 3, at(60999), LEASE, GAP));
    assert_true(hfi_lease_look(&watch, 3, at(61000), LEASE, GAP));
    assert_int_equal(watch.node, 7);
}

static void a_beat_begins_a_new_lease(void **state) {
    (void)state;
    struct hfi_lease_watch watch;
    hfi_lease_first(&watch, 7, 3, at(0));
    assert_false(hfi_lease_look(&watch, 3, at(29000), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 4, at(58000), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 4, at(80000), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 4, at(100000), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 4, at(117999), LEASE, GAP));
    assert_true(hfi_lease_look(&watch, 4, at(118000), LEASE, GAP));
    /* a beat that goes back is another beat: numbers are compared, not ordered */
    assert_false(hfi_lease_look(&watch, 1, at(118001), LEASE, GAP));
}

static void a_gap_counts_again(void **state) {
    (void)state;
    struct hfi_lease_watch watch;
    hfi_lease_first(&watch, 7, 3, at(0));
    assert_false(hfi_lease_look(&watch, 3, at(30000), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 3, at(60001), LEASE, GAP)); /* 30.001 s unseen: a suspend, a dead store */
    assert_false(hfi_lease_look(&watch, 3, at(90000), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 3, at(120000), LEASE, GAP));
    assert_true(hfi_lease_look(&watch, 3, at(120001), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 3, at(5000000), LEASE, GAP));
    assert_false(hfi_lease_look(&watch, 3, at(1), LEASE, GAP)); /* a clock that went back is a gap too */
}

static void owner_stops_before_others_take_over_I2(void **state) {
    (void)state;
    assert_int_equal(hfi_lease_self_stop(at(1000), LEASE, 5000).us, at(56000).us);
    assert_int_equal(hfi_lease_self_stop(at(1000), LEASE, 0).us, at(61000).us);
    assert_int_equal(hfi_lease_self_stop(at(1000), LEASE, 90000).us, at(1000).us);
    assert_int_equal(hfi_lease_self_stop(at(1000), INT64_MAX, 0).us, INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lapses_after_a_whole_lease_of_watching),
        cmocka_unit_test(a_beat_begins_a_new_lease),
        cmocka_unit_test(a_gap_counts_again),
        cmocka_unit_test(owner_stops_before_others_take_over_I2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
