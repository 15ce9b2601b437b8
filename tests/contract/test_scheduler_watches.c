/* SPDX-License-Identifier: MIT */
/* What every scheduler keeps, on libuv's real time and on virtual time alike: descriptors, and closing. */
#include "scheduler_world.h"

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

static void on_task(struct hfi_task *task, void *user) {
    (void)task;
    (void)user;
    note('!');
}

static void close_with_everything_left(void **state) {
    (void)state;
    struct hfi_timer a = timer_of("!");
    struct hfi_task b = {on_task, w, NULL};
    watch(HFI_READABLE, on_ready);
    make_readable();
    arm_at(&a, now());
    w->s->ops->post(w->s, &b);
    w->s->ops->close(w->s);
    w->s = NULL;
    assert_int_equal(w->count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(a_watch_reports_what_was_asked), BOTH(nothing_is_reported_while_nothing_is_asked),
        BOTH(no_report_after_unwatch),        BOTH(wrong_descriptors_are_refused),
        BOTH(close_with_everything_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
