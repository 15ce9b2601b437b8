/* SPDX-License-Identifier: MIT */
/* What every scheduler keeps, on libuv's real time and on virtual time alike. */
#include "support/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "base/scheduler.h"
#include "holdfast/error.h"
#include "loop/loop.h"
#include "sim/virtual.h"

enum kind { REAL, VIRTUAL };
static enum kind kinds[] = {REAL, VIRTUAL};

struct world {
    enum kind kind;
    struct hfi_scheduler *s;
    int pair[2]; /* a socket pair */
    char log[4096];
    size_t logged;
    int count;
    int goal;
    bool inside; /* a call into the scheduler is going on: no callback may run */
};
static struct world *w;

static int set_up(void **state) {
    w = calloc(1, sizeof *w);
    w->kind = *(enum kind *)*state;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w->pair) != 0)
        return -1;
    if (w->kind == REAL)
        return hfi_loop_new(&w->s);
    return hfi_virtual_new((struct hf_mono){1000000}, (struct hf_wall){INT64_C(1700000000000000)}, &w->s);
}

static int tear_down(void **state) {
    (void)state;
    if (w->s)
        w->s->ops->close(w->s);
    close(w->pair[0]);
    close(w->pair[1]);
    free(w);
    return 0;
}

static struct hf_mono now(void) {
    return w->s->ops->mono(w->s);
}
static struct hf_mono in_us(int64_t us) {
    return (struct hf_mono){now().us + us};
}
static void arm_at(struct hfi_timer *timer, struct hf_mono at) {
    w->inside = true;
    assert_int_equal(w->s->ops->arm(w->s, timer, at), 0);
    w->inside = false;
}
static void run(void) {
    assert_int_equal(w->s->ops->run(w->s), 0);
}
static void stop(void) {
    w->s->ops->stop(w->s);
}

/* Appends one letter; stops when the goal is reached. */
static void note(char letter) {
    assert_false(w->inside);
    w->log[w->logged++] = letter;
    if (++w->count == w->goal)
        stop();
}
static void on_timer(struct hfi_timer *timer, void *user) {
    assert_false(hfi_timer_armed(timer));
    assert_true(now().us >= timer->at.us);
    note(*(const char *)user);
}
static struct hfi_timer timer_of(const char *letter) {
    struct hfi_timer timer;
    hfi_timer_init(&timer, on_timer, (void *)(uintptr_t)letter);
    return timer;
}

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
    w->goal = 100000; /* the other one ends it */
    w->count = 0;
    arm_at(&timer, now());
    arm_at(&other, now());
    w->goal = 3;
    run();
    assert_non_null(strchr(w->log, 'o'));
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

/* Descriptors: on the real loop a byte in the socket, on the virtual one a word. */
static void make_readable(void) {
    if (w->kind == REAL)
        assert_int_equal(write(w->pair[1], "x", 1), 1);
    else
        assert_int_equal(hfi_virtual_ready(w->s, w->pair[0], HFI_READABLE), 0);
}
static void make_writable(void) {
    if (w->kind == VIRTUAL)
        assert_int_equal(hfi_virtual_ready(w->s, w->pair[0], HFI_WRITABLE), 0);
}
static void swallow(void) {
    char c;
    if (w->kind == REAL)
        assert_int_equal(read(w->pair[0], &c, 1), 1);
}
static struct hfi_watch *watched;
static void watch(unsigned events, hfi_watch_fn ready) {
    w->inside = true;
    assert_int_equal(w->s->ops->watch(w->s, w->pair[0], events, ready, w, &watched), 0);
    w->inside = false;
}
static void on_ready(struct hfi_watch *watch, unsigned events, void *user) {
    assert_ptr_equal(watch, watched);
    assert_ptr_equal(user, w);
    if (events & HFI_READABLE) {
        note('r');
        swallow();
    }
    if (events & HFI_WRITABLE) {
        note('w');
        w->s->ops->change(w->s, watch, HFI_READABLE);
    }
}

static void a_watch_reports_what_was_asked(void **state) {
    (void)state;
    struct hfi_timer end = timer_of("e"), again = timer_of("f");
    watch(HFI_READABLE, on_ready);
    w->goal = 2;
    make_writable(); /* not asked for */
    make_readable();
    arm_at(&end, in_us(20000));
    run();
    assert_string_equal(w->log, "re");
    w->goal = 4;
    assert_int_equal(w->s->ops->change(w->s, watched, HFI_WRITABLE), 0);
    arm_at(&again, in_us(20000));
    run();
    assert_string_equal(w->log, "rewf");
    w->s->ops->unwatch(w->s, watched);
}

static void nothing_is_reported_while_nothing_is_asked(void **state) {
    (void)state;
    struct hfi_timer end = timer_of("e");
    watch(0, on_ready);
    make_readable();
    w->goal = 1;
    arm_at(&end, in_us(3000));
    run();
    assert_string_equal(w->log, "e");
    w->goal = 2;
    assert_int_equal(w->s->ops->change(w->s, watched, HFI_READABLE), 0);
    run();
    assert_string_equal(w->log, "er");
    w->s->ops->unwatch(w->s, watched);
}

static void unwatch_self(struct hfi_watch *watch, unsigned events, void *user) {
    (void)events;
    (void)user;
    note('u');
    w->s->ops->unwatch(w->s, watch); /* the byte stays in the socket: it would be reported for ever */
}

static void no_report_after_unwatch(void **state) {
    (void)state;
    struct hfi_timer end = timer_of("e"), end2 = timer_of("f");
    watch(HFI_READABLE, unwatch_self);
    make_readable();
    w->goal = 2;
    arm_at(&end, in_us(3000));
    run();
    assert_string_equal(w->log, "ue");
    /* At once again, on the same descriptor, which is still readable on the real loop. */
    watch(HFI_READABLE, on_ready);
    w->s->ops->unwatch(w->s, watched);
    watch(HFI_READABLE, on_ready);
    if (w->kind == VIRTUAL)
        make_readable();
    w->goal = 4;
    arm_at(&end2, in_us(3000));
    run();
    assert_int_equal(w->count, 4);
    assert_non_null(strchr(w->log, 'r'));
    w->s->ops->unwatch(w->s, watched);
    w->s->ops->unwatch(w->s, NULL);
}

static void wrong_descriptors_are_refused(void **state) {
    (void)state;
    struct hfi_watch *second = NULL;
    watch(HFI_READABLE, on_ready);
    assert_int_equal(w->s->ops->watch(w->s, w->pair[0], HFI_READABLE, on_ready, w, &second), HF_EEXIST);
    assert_int_equal(w->s->ops->watch(w->s, -1, HFI_READABLE, on_ready, w, &second), HF_EINVAL);
    assert_null(second);
}

static void close_with_everything_left(void **state) {
    (void)state;
    struct hfi_timer a = timer_of("!");
    struct letter b;
    init_letter(&b, '!', NULL);
    watch(HFI_READABLE, on_ready);
    make_readable();
    arm_at(&a, now());
    post(&b.task);
    w->s->ops->close(w->s);
    w->s = NULL;
    assert_int_equal(w->count, 0);
}

#define BOTH(function)                                                                                                 \
    {"loop: " #function, function, set_up, tear_down, &kinds[REAL]}, {                                                 \
        "virtual: " #function, function, set_up, tear_down, &kinds[VIRTUAL]                                            \
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
        BOTH(tasks_run_in_order_and_never_inside_post),
        BOTH(a_task_may_post_itself),
        BOTH(posts_of_many_threads_arrive_once_in_order),
        BOTH(stop_before_run_counts_once),
        BOTH(another_thread_stops_it),
        BOTH(stop_does_not_race_close),
        BOTH(it_knows_its_thread),
        BOTH(clocks_go_together),
        BOTH(a_watch_reports_what_was_asked),
        BOTH(nothing_is_reported_while_nothing_is_asked),
        BOTH(no_report_after_unwatch),
        BOTH(wrong_descriptors_are_refused),
        BOTH(close_with_everything_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
