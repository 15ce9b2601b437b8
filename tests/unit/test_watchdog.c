/* SPDX-License-Identifier: MIT */
/* Whether a loop hangs, in virtual time: S4.7, S4.8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs/watchdog.h"
#include "seed.h"

#define MINUTE INT64_C(60000)

static const struct hfi_watchdog_limits limits = {.deadline_ms = MINUTE, .grace_ms = 5 * MINUTE};

struct world {
    struct hfi_watched watched;
    struct hfi_pulse pulse;
    int64_t now_ms, next_ms;
    unsigned late, again, hung, back;
    int64_t late_ms, hung_ms;
};

static void begin(struct world *world) {
    *world = (struct world){.now_ms = 1000};
    hfi_watched_begin(&world->watched, (struct hf_mono){world->now_ms * 1000});
    world->next_ms = world->now_ms + hfi_watchdog_round_ms(&limits);
}

static void look(struct world *world) {
    switch (hfi_watched_look(&world->watched, &limits, &world->pulse, (struct hf_mono){world->now_ms * 1000})) {
    case HFI_WATCHDOG_FINE:
    case HFI_WATCHDOG_STILL:
        break;
    case HFI_WATCHDOG_LATE:
        world->late++;
        world->late_ms = world->now_ms;
        break;
    case HFI_WATCHDOG_AGAIN:
        world->again++;
        break;
    case HFI_WATCHDOG_HUNG:
        world->hung++;
        world->hung_ms = world->now_ms;
        break;
    case HFI_WATCHDOG_BACK:
        world->back++;
        break;
    }
}

/* Goes to `ms`, looking once a round. */
static void go(struct world *world, int64_t ms) {
    while (world->next_ms <= ms) {
        world->now_ms = world->next_ms;
        world->next_ms += hfi_watchdog_round_ms(&limits);
        look(world);
    }
    world->now_ms = ms;
}

/* S4.8: a slow first run is no hang. */
static void a_first_beat_at_nine_tenths_of_the_grace_is_fine(void **state) {
    (void)state;
    struct world world;
    begin(&world);
    go(&world, 1000 + 5 * MINUTE * 9 / 10);
    assert_int_equal(world.late + world.hung, 0);
    hfi_pulse_beat(&world.pulse);
    go(&world, world.now_ms + MINUTE);
    assert_int_equal(world.late + world.hung + world.back, 0);
}

/* S4.8: 24 hours of a loop under load, whose beats come at any time within the deadline: nothing is ever said. */
static void a_healthy_day_is_left_alone(void **state) {
    (void)state;
    struct world world;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("a_healthy_day_is_left_alone"));
    begin(&world);
    while (world.now_ms < 24 * 60 * MINUTE) {
        go(&world, world.now_ms + 1 + (int64_t)hfi_random_below(&random, (uint64_t)MINUTE - 1));
        hfi_pulse_beat(&world.pulse);
        if (hfi_random_below(&random, 8) == 0) { /* and sometimes it has nothing to do for hours */
            hfi_pulse_rest(&world.pulse);
            go(&world, world.now_ms + (int64_t)hfi_random_below(&random, 180 * (uint64_t)MINUTE));
            hfi_pulse_beat(&world.pulse);
        }
    }
    assert_int_equal(world.late + world.again + world.hung + world.back, 0);
}

/* S4.8: acted on within 60 s of the deadline, wherever in a round the last beat was; said once a minute (S4.7). */
static void a_hang_is_acted_on_within_a_minute_of_its_deadline(void **state) {
    (void)state;
    for (int64_t at = 0; at < 40000; at += 777) {
        struct world world;
        begin(&world);
        go(&world, 200000 + at);
        hfi_pulse_beat(&world.pulse);
        int64_t hangs = world.now_ms;
        go(&world, hangs + MINUTE);
        assert_int_equal(world.late + world.hung, 0); /* and not before it */
        go(&world, hangs + 11 * MINUTE);
        assert_int_equal(world.late, 1);
        assert_int_equal(world.hung, 1);
        assert_in_range(world.late_ms, hangs + MINUTE + 1, hangs + MINUTE + 2 * hfi_watchdog_round_ms(&limits));
        assert_in_range(world.hung_ms, world.late_ms + 1, hangs + 2 * MINUTE);
        assert_in_range(world.again, 7, 10);
        hfi_pulse_beat(&world.pulse);
        go(&world, world.now_ms + MINUTE);
        assert_int_equal(world.back, 1);
    }
}

/* One that never begins is found after the grace. */
static void one_that_never_begins_is_found_after_the_grace(void **state) {
    (void)state;
    struct world world;
    begin(&world);
    go(&world, 1000 + 5 * MINUTE);
    assert_int_equal(world.late, 0);
    go(&world, 1000 + 6 * MINUTE);
    assert_int_equal(world.late, 1);
    assert_int_equal(world.hung, 1);
}

/* The whole process was stopped (SIGSTOP) for an hour: its loops are not to blame. */
static void a_stopped_process_has_no_late_loops(void **state) {
    (void)state;
    struct world world;
    begin(&world);
    hfi_pulse_beat(&world.pulse);
    go(&world, 40000);
    hfi_pulse_beat(&world.pulse);
    go(&world, 60000);
    world.now_ms += 3600000;
    look(&world);
    world.next_ms = world.now_ms + hfi_watchdog_round_ms(&limits);
    assert_int_equal(world.late, 0);
    hfi_pulse_beat(&world.pulse);
    go(&world, world.now_ms + MINUTE);
    assert_int_equal(world.late + world.hung, 0);
}

static void rounds_fit_the_deadline(void **state) {
    (void)state;
    struct hfi_watchdog_limits some = {.deadline_ms = 1};
    assert_int_equal(hfi_watchdog_round_ms(&some), 1);
    some.deadline_ms = 1000;
    assert_int_equal(hfi_watchdog_round_ms(&some), 250);
    assert_int_equal(hfi_watchdog_round_ms(&limits), 15000);
    some.deadline_ms = INT64_MAX;
    assert_int_equal(hfi_watchdog_round_ms(&some), 15000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_beat_at_nine_tenths_of_the_grace_is_fine),
        cmocka_unit_test(a_healthy_day_is_left_alone),
        cmocka_unit_test(a_hang_is_acted_on_within_a_minute_of_its_deadline),
        cmocka_unit_test(one_that_never_begins_is_found_after_the_grace),
        cmocka_unit_test(a_stopped_process_has_no_late_loops),
        cmocka_unit_test(rounds_fit_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
