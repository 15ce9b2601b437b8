/* SPDX-License-Identifier: MIT */
/* Whether a loop hangs, in virtual time: S4.7, S4.8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "jobs/wards.h"
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
    case HFI_WATCHDOG_RESTARTED:
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

/* ------------------------------------------------------------------ the roll */

struct herd {
    struct hfi_wards *wards;
    int64_t now_ms;
    unsigned words[HFI_WATCHDOG_STILL + 1];
    char hung[200]; /* the one that was said to hang last */
};

static void begin_herd(struct herd *herd) {
    *herd = (struct herd){.now_ms = 1000};
    assert_int_equal(hfi_wards_new(&herd->wards), 0);
}

static void look_for(struct herd *herd, int64_t ms) {
    struct hfi_ward_word words[HFI_WARD_WORDS];
    for (int64_t end = herd->now_ms + ms; herd->now_ms < end;) {
        herd->now_ms += hfi_watchdog_round_ms(&limits);
        size_t count = hfi_wards_look(herd->wards, &limits, (struct hf_mono){herd->now_ms * 1000}, words);
        for (size_t i = 0; i < count; i++) {
            herd->words[words[i].word]++;
            if (words[i].word == HFI_WATCHDOG_HUNG)
                snprintf(herd->hung, sizeof herd->hung, "%s", words[i].name);
        }
    }
}

static struct hfi_wards_counts count_herd(const struct herd *herd) {
    struct hfi_wards_counts counts;
    hfi_wards_count(herd->wards, &counts);
    return counts;
}

static int restarts;
static enum hfi_restart restart_as(struct hfi_ward *ward) {
    restarts++;
    return *(enum hfi_restart *)ward->user;
}

/* S4.7, S4.8: one that can be begun again is, within 60 s of its deadline, once until its next beat; if that was in vain
 * it hangs. It is late all that time, for the health check (S4.13). */
static void one_that_can_be_is_begun_again_and_once_only(void **state) {
    (void)state;
    struct herd herd;
    struct hfi_pulse pulse = {0};
    enum hfi_restart how = HFI_RESTART_AGAIN;
    struct hfi_ward ward = {.name = "sweep", .pulse = &pulse, .restart = restart_as, .user = &how};
    begin_herd(&herd);
    restarts = 0;
    hfi_wards_add(herd.wards, &ward);
    hfi_pulse_beat(&pulse);
    look_for(&herd, 15000);
    for (int round = 1; round <= 3; round++) { /* it hangs, is begun again, and beats */
        hfi_pulse_beat(&pulse);
        look_for(&herd, MINUTE);
        assert_int_equal(restarts, round - 1);
        look_for(&herd, MINUTE);
        assert_int_equal(restarts, round);
        assert_int_equal(count_herd(&herd).late, 1);
        hfi_pulse_beat(&pulse);
        look_for(&herd, 15000);
        assert_int_equal(count_herd(&herd).late, 0);
        assert_int_equal(herd.words[HFI_WATCHDOG_BACK], round);
    }
    assert_int_equal(herd.words[HFI_WATCHDOG_HUNG], 0);
    assert_int_equal(herd.words[HFI_WATCHDOG_RESTARTED], 3);
    look_for(&herd, 4 * MINUTE); /* now it stays silent */
    assert_int_equal(restarts, 4);
    assert_int_equal(herd.words[HFI_WATCHDOG_HUNG], 1);
    assert_string_equal(herd.hung, "sweep");
    assert_int_equal(count_herd(&herd).restarted, 4);
    hfi_wards_remove(herd.wards, &ward);
    assert_int_equal(count_herd(&herd).late, 0);
    hfi_wards_free(herd.wards);
}

/* S4.7: whoever was replaced is off the roll; who cannot be begun again, as the writer, or not now, hangs. */
static void one_that_cannot_be_hangs_and_one_replaced_is_gone(void **state) {
    (void)state;
    struct herd herd;
    struct hfi_pulse writer_pulse = {0}, stuck_pulse = {0}, worker_pulse = {0};
    enum hfi_restart never = HFI_RESTART_NO, replaced = HFI_RESTART_REPLACED;
    struct hfi_ward writer = {.name = "writer", .pulse = &writer_pulse};
    struct hfi_ward stuck = {.name = "stuck", .pulse = &stuck_pulse, .restart = restart_as, .user = &never};
    struct hfi_ward worker = {.name = "worker 1", .pulse = &worker_pulse, .restart = restart_as, .user = &replaced};
    begin_herd(&herd);
    hfi_wards_add(herd.wards, &worker);
    hfi_pulse_beat(&worker_pulse);
    look_for(&herd, 3 * MINUTE);
    assert_int_equal(herd.words[HFI_WATCHDOG_RESTARTED], 1);
    assert_int_equal(count_herd(&herd).late, 0);
    hfi_wards_remove(herd.wards, &worker); /* should it come back, it leaves as any other */
    for (int i = 0; i < 2; i++) {
        struct hfi_ward *ward = i == 0 ? &writer : &stuck;
        hfi_wards_add(herd.wards, ward);
        hfi_pulse_beat(i == 0 ? &writer_pulse : &stuck_pulse);
        look_for(&herd, 3 * MINUTE);
        assert_int_equal(herd.words[HFI_WATCHDOG_HUNG], i + 1);
        assert_string_equal(herd.hung, ward->name);
        hfi_wards_remove(herd.wards, ward);
    }
    assert_int_equal(herd.words[HFI_WATCHDOG_RESTARTED], 1);
    hfi_wards_free(herd.wards);
}

/* S4.8, S1.5: a worker in a handler that takes a day is no hang of the worker; nor is one that is silent by its plan. */
static void a_long_handler_is_no_hang(void **state) {
    (void)state;
    struct herd herd;
    struct hfi_pulse pulse = {0}, slow_pulse = {0};
    struct hfi_ward ward = {.name = "worker 1", .pulse = &pulse};
    struct hfi_ward slow = {.name = "slow", .pulse = &slow_pulse, .period_ms = 10 * MINUTE};
    begin_herd(&herd);
    hfi_wards_add(herd.wards, &ward);
    hfi_wards_add(herd.wards, &slow);
    for (int i = 0; i < 144; i++) {
        hfi_pulse_beat(&slow_pulse);
        hfi_pulse_beat(&pulse);
        hfi_pulse_lend(&pulse);
        look_for(&herd, 10 * MINUTE);
    }
    for (int word = HFI_WATCHDOG_FINE + 1; word <= HFI_WATCHDOG_STILL; word++)
        assert_int_equal(herd.words[word], 0);
    hfi_pulse_beat(&slow_pulse);
    hfi_pulse_beat(&pulse); /* the handler has returned, and what comes after it hangs */
    look_for(&herd, 2 * MINUTE);
    assert_int_equal(herd.words[HFI_WATCHDOG_HUNG], 1);
    assert_string_equal(herd.hung, "worker 1");
    hfi_wards_remove(herd.wards, &slow);
    hfi_wards_remove(herd.wards, &ward);
    hfi_wards_free(herd.wards);
}

/* More than fit into one look: each is told, none twice, and who hangs is acted on. */
static void many_are_all_told(void **state) {
    (void)state;
    enum { MANY = 100 };
    struct herd herd;
    static struct hfi_pulse pulses[MANY];
    static struct hfi_ward wards[MANY];
    begin_herd(&herd);
    for (int i = 0; i < MANY; i++) {
        wards[i] = (struct hfi_ward){.pulse = &pulses[i]};
        snprintf(wards[i].name, sizeof wards[i].name, "worker %d", i);
        hfi_pulse_beat(&pulses[i]);
        hfi_wards_add(herd.wards, &wards[i]);
    }
    look_for(&herd, 10 * MINUTE);
    assert_int_equal(herd.words[HFI_WATCHDOG_LATE], MANY);
    assert_int_equal(herd.words[HFI_WATCHDOG_HUNG], MANY);
    assert_int_equal(count_herd(&herd).late, MANY);
    for (int i = 0; i < MANY; i++)
        hfi_wards_remove(herd.wards, &wards[i]);
    assert_int_equal(count_herd(&herd).late, 0);
    hfi_wards_free(herd.wards);
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
        cmocka_unit_test(one_that_can_be_is_begun_again_and_once_only),
        cmocka_unit_test(one_that_cannot_be_hangs_and_one_replaced_is_gone),
        cmocka_unit_test(a_long_handler_is_no_hang),
        cmocka_unit_test(many_are_all_told),
        cmocka_unit_test(rounds_fit_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
