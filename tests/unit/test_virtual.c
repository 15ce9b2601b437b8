/* SPDX-License-Identifier: MIT */
/* What only virtual time must keep: jumps, standing still, the same run twice. */
#include "support/support.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "holdfast/error.h"
#include "sim/virtual.h"

#define START_US INT64_C(5000000)
#define WALL_US INT64_C(1700000000000000)

static struct hfi_scheduler *s;
static int fired;

static int set_up(void **state) {
    (void)state;
    fired = 0;
    return hfi_virtual_new((struct hf_mono){START_US}, (struct hf_wall){WALL_US}, &s);
}
static int tear_down(void **state) {
    (void)state;
    s->ops->close(s);
    return 0;
}
static int64_t passed(void) {
    return s->ops->mono(s).us - START_US;
}
static int64_t wall_passed(void) {
    return s->ops->wall(s).us - WALL_US;
}
static void count(struct hfi_timer *timer, void *user) {
    (void)user;
    assert_int_equal(s->ops->mono(s).us, timer->at.us); /* to the microsecond */
    fired++;
}
static void arm_in(struct hfi_timer *timer, int64_t us) {
    hfi_timer_init(timer, count, NULL);
    assert_int_equal(s->ops->arm(s, timer, (struct hf_mono){s->ops->mono(s).us + us}), 0);
}

static void a_year_takes_no_time(void **state) {
    (void)state;
    struct hfi_timer year;
    const int64_t us = INT64_C(365) * 86400 * 1000000 + 1;
    arm_in(&year, us);
    assert_int_equal(s->ops->run(s), 0); /* and returns by itself */
    assert_int_equal(fired, 1);
    assert_int_equal(passed(), us);
    assert_int_equal(wall_passed(), us);
}

static void advancing_stops_exactly_there(void **state) {
    (void)state;
    struct hfi_timer at, after;
    arm_in(&at, 10000);
    arm_in(&after, 10001);
    hfi_virtual_advance(s, 9);
    assert_int_equal(fired, 0);
    assert_int_equal(passed(), 9000);
    hfi_virtual_advance(s, 1);
    assert_int_equal(fired, 1);
    assert_int_equal(passed(), 10000);
    hfi_virtual_run_until(s, (struct hf_mono){START_US + 5}); /* the past: nothing, and never back */
    assert_int_equal(passed(), 10000);
    hfi_virtual_run_until(s, (struct hf_mono){START_US + 10001});
    assert_int_equal(fired, 2);
    hfi_virtual_advance(s, 1000);
    assert_int_equal(passed(), 1010001);
    assert_int_equal(wall_passed(), 1010001);
}

static void the_wall_may_jump(void **state) {
    (void)state;
    struct hfi_timer timer;
    arm_in(&timer, 1000);
    hfi_virtual_step_wall(s, -INT64_C(3600) * 1000000);
    assert_int_equal(passed(), 0);
    assert_int_equal(wall_passed(), -INT64_C(3600) * 1000000);
    assert_int_equal(s->ops->run(s), 0);
    assert_int_equal(passed(), 1000);
    assert_int_equal(wall_passed(), 1000 - INT64_C(3600) * 1000000);
}

static void stop_it(struct hfi_timer *timer, void *user) {
    count(timer, user);
    s->ops->stop(s);
}

static void stopping_leaves_time_where_it_is(void **state) {
    (void)state;
    struct hfi_timer first, second;
    arm_in(&first, 1000);
    first.fire = stop_it;
    arm_in(&second, 2000);
    hfi_virtual_advance(s, 10);
    assert_int_equal(fired, 1);
    assert_int_equal(passed(), 1000);
    hfi_virtual_advance(s, 10);
    assert_int_equal(fired, 2);
    assert_int_equal(passed(), 11000);
}

static void a_timer_at_forever_never_fires(void **state) {
    (void)state;
    struct hfi_timer timer;
    hfi_timer_init(&timer, count, NULL);
    assert_int_equal(s->ops->arm(s, &timer, (struct hf_mono){HFI_FOREVER_US}), 0);
    assert_int_equal(s->ops->run(s), 0);
    assert_int_equal(fired, 0);
    assert_int_equal(passed(), 0);
    assert_true(hfi_timer_armed(&timer));
}

static void ready(struct hfi_watch *watch, unsigned events, void *user) {
    unsigned *seen = user;
    (void)watch;
    *seen = *seen * 16 + events;
}

static void readiness_waits_until_it_is_asked_for(void **state) {
    (void)state;
    struct hfi_watch *watch;
    unsigned seen = 0;
    assert_int_equal(hfi_virtual_ready(s, 7, HFI_READABLE), HF_ENOENT);
    assert_int_equal(s->ops->watch(s, 7, HFI_READABLE, ready, &seen, &watch), 0);
    assert_int_equal(hfi_virtual_ready(s, 7, HFI_READABLE | HFI_WRITABLE), 0);
    assert_int_equal(seen, 0);
    s->ops->run(s);
    assert_int_equal(seen, 0x1);
    s->ops->change(s, watch, HFI_WRITABLE);
    s->ops->run(s);
    assert_int_equal(seen, 0x12);
    assert_int_equal(hfi_virtual_ready(s, 7, HFI_BROKEN), 0); /* is never asked for, always told */
    s->ops->run(s);
    assert_int_equal(seen, 0x124);
    s->ops->unwatch(s, watch);
    assert_int_equal(hfi_virtual_ready(s, 7, HFI_READABLE), HF_ENOENT);
}

/* A little world of timers that arm each other at random: the same seed gives the same history. */
#define TIMERS 50
static struct {
    struct hfi_random random;
    struct hfi_timer timers[TIMERS];
    uint64_t digest;
    int left;
} play;

static void turn(struct hfi_timer *timer, void *user) {
    uint64_t number = (uint64_t)(timer - play.timers);
    (void)user;
    play.digest = (play.digest ^ number ^ (uint64_t)s->ops->mono(s).us) * UINT64_C(1099511628211);
    if (play.left-- <= 0)
        return;
    for (int i = 0; i < 2; i++) {
        struct hfi_timer *other = &play.timers[hfi_random_below(&play.random, TIMERS)];
        int64_t at = s->ops->mono(s).us + (int64_t)hfi_random_below(&play.random, 50) - 5;
        assert_int_equal(s->ops->arm(s, other, (struct hf_mono){at}), 0);
    }
}

static uint64_t history(uint64_t seed) {
    memset(&play, 0, sizeof play);
    hfi_random_seed(&play.random, seed);
    play.left = 5000;
    assert_int_equal(hfi_virtual_new((struct hf_mono){0}, (struct hf_wall){0}, &s), 0);
    for (int i = 0; i < TIMERS; i++)
        hfi_timer_init(&play.timers[i], turn, NULL);
    assert_int_equal(s->ops->arm(s, &play.timers[0], (struct hf_mono){1}), 0);
    s->ops->run(s);
    s->ops->close(s);
    return play.digest;
}

static void the_same_seed_gives_the_same_history(void **state) {
    (void)state;
    uint64_t seed = hf_test_seed();
    uint64_t first = history(seed);
    assert_true(first == history(seed));
    assert_true(first != history(seed + 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_year_takes_no_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(advancing_stops_exactly_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_wall_may_jump, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stopping_leaves_time_where_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_timer_at_forever_never_fires, set_up, tear_down),
        cmocka_unit_test_setup_teardown(readiness_waits_until_it_is_asked_for, set_up, tear_down),
        cmocka_unit_test(the_same_seed_gives_the_same_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
