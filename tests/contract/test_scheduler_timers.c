/* SPDX-License-Identifier: MIT */
/* What every scheduler keeps, on libuv's real time and on virtual time alike: clocks and timers. */
#include "scheduler_world.h"

static void timers_fire_in_time_then_arming_order(void **state) {
    (void)state;
    struct hfi_timer a = timer_of("a"), b = timer_of("b"), c = timer_of("c"), d = timer_of("d"), e = timer_of("e");
    struct hf_mono later = in_us(3000), soon = in_us(1000);
    w->goal = 5;
    arm_at(&c, later);
    arm_at(&d, later);
    arm_at(&a, soon);
    arm_at(&e, later);
    arm_at(&b, soon);
    run();
    assert_string_equal(w->log, "abcde");
}

static void no_timer_is_early(void **state) {
    (void)state;
    static struct hfi_timer timers[200];
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
    w->goal = 200;
    for (int i = 0; i < 200; i++) {
        timers[i] = timer_of("x"); /* on_timer compares */
        arm_at(&timers[i], in_us((int64_t)hfi_random_below(&random, 20000)));
    }
    run();
    assert_int_equal(w->count, 200);
}

static void the_past_is_now_and_never_inside_arm(void **state) {
    (void)state;
    struct hfi_timer a = timer_of("a"), b = timer_of("b"), c = timer_of("c");
    w->goal = 3;
    arm_at(&a, in_us(-5));
    arm_at(&b, (struct hf_mono){INT64_MIN});
    arm_at(&c, in_us(0));
    run();
    assert_int_equal(w->count, 3);
}

static void greedy(struct hfi_timer *timer, void *user) {
    (void)user;
    note('g');
    if (w->count < w->goal)
        arm_at(timer, (struct hf_mono){0});
}

static void a_timer_that_rearms_in_the_past_starves_nobody(void **state) {
    (void)state;
    struct hfi_timer timer, other = timer_of("o");
    hfi_timer_init(&timer, greedy, NULL);
    w->goal = 3;
    arm_at(&timer, now());
    arm_at(&other, now());
    run();
    assert_memory_equal(w->log, "gog", 3);
    w->s->ops->disarm(w->s, &timer);
}

static void periodic(struct hfi_timer *timer, void *user) {
    int64_t *last = user;
    assert_true(now().us >= *last + 500);
    *last = now().us;
    note('p');
    arm_at(timer, (struct hf_mono){*last + 500});
}

static void a_timer_rearms_itself(void **state) {
    (void)state;
    struct hfi_timer timer;
    int64_t last = now().us - 500;
    hfi_timer_init(&timer, periodic, &last);
    w->goal = 20;
    arm_at(&timer, now());
    run();
    assert_int_equal(w->count, 20);
    assert_true(hfi_timer_armed(&timer));
    w->s->ops->disarm(w->s, &timer);
    assert_false(hfi_timer_armed(&timer));
    w->s->ops->disarm(w->s, &timer); /* a no-op */
}

static void moving_and_disarming(void **state) {
    (void)state;
    struct hfi_timer a = timer_of("a"), b = timer_of("b"), never = timer_of("!"), end = timer_of("e");
    w->goal = 3;
    arm_at(&a, in_us(500));
    arm_at(&b, in_us(60 * 1000000));
    arm_at(&never, in_us(700));
    arm_at(&end, in_us(9000));
    arm_at(&a, in_us(6000)); /* later */
    arm_at(&b, in_us(3000)); /* earlier */
    w->s->ops->disarm(w->s, &never);
    run();
    assert_string_equal(w->log, "bae");
}

static void disarm_user(struct hfi_timer *timer, void *user) {
    (void)timer;
    note('d');
    w->s->ops->disarm(w->s, user);
}

static void disarmed_by_a_neighbour_of_the_same_time(void **state) {
    (void)state;
    struct hfi_timer first, second = timer_of("!"), end = timer_of("e");
    hfi_timer_init(&first, disarm_user, &second);
    w->goal = 2;
    struct hf_mono at = in_us(500);
    arm_at(&first, at);
    arm_at(&second, at);
    arm_at(&end, in_us(3000));
    run();
    assert_string_equal(w->log, "de");
}

static void clocks_go_together(void **state) {
    (void)state;
    struct hfi_timer a = timer_of("a");
    struct hf_mono mono = now();
    struct hf_wall wall = w->s->ops->wall(w->s);
    w->goal = 1;
    arm_at(&a, in_us(2000));
    run();
    assert_true(now().us >= mono.us + 2000);
    assert_true(wall.us > INT64_C(1500000000000000));
    if (w->kind == VIRTUAL)
        assert_int_equal(w->s->ops->wall(w->s).us - wall.us, now().us - mono.us);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(timers_fire_in_time_then_arming_order),
        BOTH(no_timer_is_early),
        BOTH(the_past_is_now_and_never_inside_arm),
        BOTH(a_timer_that_rearms_in_the_past_starves_nobody),
        BOTH(a_timer_rearms_itself),
        BOTH(moving_and_disarming),
        BOTH(disarmed_by_a_neighbour_of_the_same_time),
        BOTH(clocks_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
