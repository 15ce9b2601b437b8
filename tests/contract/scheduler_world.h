/* SPDX-License-Identifier: MIT */
#ifndef HF_TESTS_SCHEDULER_WORLD_H
#define HF_TESTS_SCHEDULER_WORLD_H

/* A scheduler of either kind, and what the contract suites note about it. Each suite is one file and includes this. */
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

static inline int set_up(void **state) {
    w = calloc(1, sizeof *w);
    w->kind = *(enum kind *)*state;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w->pair) != 0)
        return -1;
    if (w->kind == REAL)
        return hfi_loop_new(&w->s);
    return hfi_virtual_new((struct hf_mono){1000000}, (struct hf_wall){INT64_C(1700000000000000)}, &w->s);
}

static inline int tear_down(void **state) {
    (void)state;
    if (w->s)
        w->s->ops->close(w->s);
    close(w->pair[0]);
    close(w->pair[1]);
    free(w);
    return 0;
}

static inline struct hf_mono now(void) {
    return w->s->ops->mono(w->s);
}
static inline struct hf_mono in_us(int64_t us) {
    return (struct hf_mono){now().us + us};
}
static inline void arm_at(struct hfi_timer *timer, struct hf_mono at) {
    w->inside = true;
    assert_int_equal(w->s->ops->arm(w->s, timer, at), 0);
    w->inside = false;
}
static inline void run(void) {
    assert_int_equal(w->s->ops->run(w->s), 0);
}
static inline void stop(void) {
    w->s->ops->stop(w->s);
}

/* Appends one letter; stops when the goal is reached. */
static inline void note(char letter) {
    assert_false(w->inside);
    w->log[w->logged++] = letter;
    if (++w->count == w->goal)
        stop();
}
static inline void on_timer(struct hfi_timer *timer, void *user) {
    assert_false(hfi_timer_armed(timer));
    assert_true(now().us >= timer->at.us);
    note(*(const char *)user);
}
static inline struct hfi_timer timer_of(const char *letter) {
    struct hfi_timer timer;
    hfi_timer_init(&timer, on_timer, (void *)(uintptr_t)letter);
    return timer;
}

#define BOTH(function)                                                                                                 \
    {"loop: " #function, function, set_up, tear_down, &kinds[REAL]}, {                                                 \
        "virtual: " #function, function, set_up, tear_down, &kinds[VIRTUAL]                                            \
    }

#endif
