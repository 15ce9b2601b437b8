/* SPDX-License-Identifier: MIT */
/* Both schedulers with every allocation failing in turn: an error, nothing left behind, and they go on working. */
#include "support/support.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "holdfast/error.h"
#include "loop/loop.h"
#include "sim/virtual.h"

#define TIMERS 40

struct attempt {
    bool real;
    struct hfi_scheduler *s;
    int fired;
    int tasks;
};

static void on_timer(struct hfi_timer *timer, void *user) {
    struct attempt *attempt = user;
    (void)timer;
    attempt->fired++;
}
static void on_ready(struct hfi_watch *watch, unsigned events, void *user) {
    (void)watch;
    (void)events;
    (void)user;
}
static void on_task(struct hfi_task *task, void *user) {
    struct attempt *attempt = user;
    (void)task;
    attempt->tasks++;
    attempt->s->ops->stop(attempt->s);
}

/* What could be armed fires, what could not is disarmed; a post needs no memory. */
static int with_scheduler(struct attempt *attempt, const int *pair) {
    struct hfi_scheduler *s = attempt->s;
    struct hfi_timer timers[TIMERS];
    struct hfi_watch *watch = NULL;
    struct hfi_task task = {on_task, attempt, NULL};
    int code = s->ops->watch(s, pair[0], HFI_READABLE, on_ready, attempt, &watch);
    int armed = 0;
    attempt->fired = 0;
    attempt->tasks = 0;
    for (int i = 0; i < TIMERS; i++) {
        hfi_timer_init(&timers[i], on_timer, attempt);
        int arming = s->ops->arm(s, &timers[i], s->ops->mono(s));
        if ((arming == 0) != hfi_timer_armed(&timers[i]))
            return HF_ESTATE;
        armed += arming == 0;
        code = code != 0 ? code : arming;
    }
    while (attempt->fired < armed || attempt->tasks == 0) {
        s->ops->post(s, &task);
        if (s->ops->run(s) != 0)
            return HF_ESTATE;
    }
    s->ops->unwatch(s, watch);
    return code;
}

static int attempt_all(void *user) {
    struct attempt *attempt = user;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return HF_EIO;
    int code = attempt->real ? hfi_loop_new(&attempt->s)
                             : hfi_virtual_new((struct hf_mono){1}, (struct hf_wall){1}, &attempt->s);
    if (code == 0) {
        code = with_scheduler(attempt, pair);
        attempt->s->ops->close(attempt->s);
    }
    close(pair[0]);
    close(pair[1]);
    return code;
}

static void the_loop_survives(void **state) {
    (void)state;
    struct attempt attempt = {.real = true};
    assert_true(hf_test_alloc_sweep(attempt_all, &attempt) >= 4); /* itself, the watch, the heap twice */
}

static void virtual_time_survives(void **state) {
    (void)state;
    struct attempt attempt = {.real = false};
    assert_true(hf_test_alloc_sweep(attempt_all, &attempt) >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_survives),
        cmocka_unit_test(virtual_time_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
