/* SPDX-License-Identifier: MIT */
/* What every scheduler keeps, on libuv's real time and on virtual time alike: tasks, threads and stopping. */
#include "scheduler_world.h"

struct letter {
    struct hfi_task task;
    char letter;
    struct letter *also; /* posted from within */
};
static void post(struct hfi_task *task) {
    w->inside = true;
    w->s->ops->post(w->s, task);
    w->inside = false;
}
static void on_letter(struct hfi_task *task, void *user) {
    struct letter *letter = user;
    (void)task;
    note(letter->letter);
    if (letter->also)
        post(&letter->also->task);
}
static void init_letter(struct letter *letter, char c, struct letter *also) {
    *letter = (struct letter){{on_letter, letter, NULL}, c, also};
}

static void tasks_run_in_order_and_never_inside_post(void **state) {
    (void)state;
    struct letter a, b, c, d;
    init_letter(&d, 'd', NULL);
    init_letter(&a, 'a', &d);
    init_letter(&b, 'b', NULL);
    init_letter(&c, 'c', NULL);
    w->goal = 4;
    post(&a.task);
    post(&b.task);
    post(&c.task);
    run();
    assert_string_equal(w->log, "abcd");
}

static void a_task_may_post_itself(void **state) {
    (void)state;
    struct letter a;
    init_letter(&a, 'a', &a);
    w->goal = 50;
    post(&a.task);
    run();
    assert_int_equal(w->count, 50);
}

#define THREADS 4
#define EACH 2000
struct crowd {
    struct hfi_scheduler *s;
    struct numbered {
        struct hfi_task task;
        int number;
        struct crowd *crowd;
    } tasks[EACH];
    int next;     /* expected by the scheduler's thread */
    int disorder; /* read after the run */
};
static int crowd_total;
static void on_number(struct hfi_task *task, void *user) {
    struct numbered *numbered = user;
    (void)task;
    numbered->crowd->disorder += numbered->number != numbered->crowd->next++;
    if (++crowd_total == THREADS * EACH)
        numbered->crowd->s->ops->stop(numbered->crowd->s);
}
static void *post_all(void *user) {
    struct crowd *crowd = user;
    for (int i = 0; i < EACH; i++) {
        crowd->tasks[i] = (struct numbered){{on_number, &crowd->tasks[i], NULL}, i, crowd};
        crowd->s->ops->post(crowd->s, &crowd->tasks[i].task);
    }
    return NULL;
}

static void posts_of_many_threads_arrive_once_in_order(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    static struct crowd crowds[THREADS];
    memset(crowds, 0, sizeof crowds);
    crowd_total = 0;
    for (int i = 0; i < THREADS; i++) {
        crowds[i].s = w->s;
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &crowds[i]), 0);
    }
    while (crowd_total < THREADS * EACH)
        run(); /* virtual time returns whenever nothing is there yet */
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(crowds[i].next, EACH);
        assert_int_equal(crowds[i].disorder, 0);
    }
}

static void stop_before_run_counts_once(void **state) {
    (void)state;
    struct hfi_timer a = timer_of("a");
    w->goal = 1;
    arm_at(&a, now());
    stop();
    run();
    assert_int_equal(w->count, 0);
    run();
    assert_string_equal(w->log, "a");
}

static void *stop_from_outside(void *user) {
    struct hfi_scheduler *s = user;
    s->ops->stop(s);
    return NULL;
}
static void keep_alive(struct hfi_timer *timer, void *user) {
    (void)user;
    w->s->ops->arm(w->s, timer, in_us(1000));
}

static void another_thread_stops_it(void **state) {
    (void)state;
    struct hfi_timer timer;
    pthread_t thread;
    hfi_timer_init(&timer, keep_alive, NULL);
    arm_at(&timer, now());
    assert_int_equal(pthread_create(&thread, NULL, stop_from_outside, w->s), 0);
    run();
    pthread_join(thread, NULL);
    w->s->ops->disarm(w->s, &timer);
}

/* close may follow the run at once, while the other thread is still on its way out of stop. */
static void stop_does_not_race_close(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct hfi_timer timer;
        pthread_t thread;
        hfi_timer_init(&timer, keep_alive, NULL);
        arm_at(&timer, now());
        assert_int_equal(pthread_create(&thread, NULL, stop_from_outside, w->s), 0);
        run();
        w->s->ops->close(w->s);
        pthread_join(thread, NULL);
        w->s = NULL;
        assert_int_equal(w->kind == REAL ? hfi_loop_new(&w->s)
                                         : hfi_virtual_new((struct hf_mono){0}, (struct hf_wall){0}, &w->s),
                         0);
    }
}

static void *ask_thread(void *user) {
    struct hfi_scheduler *s = user;
    return s->ops->on_thread(s) ? user : NULL;
}
static void check_thread(struct hfi_task *task, void *user) {
    pthread_t thread;
    void *other = user;
    (void)task;
    assert_true(w->s->ops->on_thread(w->s));
    assert_int_equal(pthread_create(&thread, NULL, ask_thread, w->s), 0);
    pthread_join(thread, &other);
    assert_null(other);
    note('t');
}

static void it_knows_its_thread(void **state) {
    (void)state;
    struct hfi_task task = {check_thread, w, NULL};
    w->goal = 1;
    assert_false(w->s->ops->on_thread(w->s));
    post(&task);
    run();
    assert_int_equal(w->count, 1);
    assert_false(w->s->ops->on_thread(w->s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(tasks_run_in_order_and_never_inside_post),
        BOTH(a_task_may_post_itself),
        BOTH(posts_of_many_threads_arrive_once_in_order),
        BOTH(stop_before_run_counts_once),
        BOTH(another_thread_stops_it),
        BOTH(stop_does_not_race_close),
        BOTH(it_knows_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
