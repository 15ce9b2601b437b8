/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_SCHEDULER_H
#define HFI_BASE_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * The scheduler port: time, timers, file descriptors and the way back from other threads. Implementations: libuv
 * (src/loop) and virtual time (src/sim). One thread runs a scheduler; everything but `post`, `stop`, `mono` and
 * `wall` is called on that thread only. Callbacks run on that thread, one after another, never inside the call
 * that caused them.
 */
#define HFI_SCHEDULER_VERSION 1

struct hfi_timer;
typedef void (*hfi_timer_fn)(struct hfi_timer *timer, void *user);

/* Embedded in its owner, who keeps it alive while armed. One-shot; may be re-armed from its own callback. */
struct hfi_timer {
    hfi_timer_fn fire;
    void *user;
    struct hf_mono at;
    uint64_t order; /* equal times fire in arming order */
    size_t index;   /* in the heap, + 1; 0 = not armed */
};
static inline void hfi_timer_init(struct hfi_timer *timer, hfi_timer_fn fire, void *user) {
    timer->fire = fire;
    timer->user = user;
    timer->at.us = 0;
    timer->order = 0;
    timer->index = 0;
}
static inline bool hfi_timer_armed(const struct hfi_timer *timer) {
    return timer->index != 0;
}

/* A note from another thread: embedded in its owner, runs once on the scheduler's thread. */
struct hfi_task {
    void (*run)(struct hfi_task *task, void *user);
    void *user;
    struct hfi_task *next;
};

#define HFI_READABLE 1u
#define HFI_WRITABLE 2u
#define HFI_BROKEN 4u /* reported only: error or hang-up; find out by reading or writing */
struct hfi_watch;
typedef void (*hfi_watch_fn)(struct hfi_watch *watch, unsigned events, void *user);

struct hfi_scheduler;
struct hfi_scheduler_ops {
    uint32_t version;
    struct hf_mono (*mono)(struct hfi_scheduler *self);
    struct hf_wall (*wall)(struct hfi_scheduler *self);
    /* Arms or moves; a time in the past counts as now and fires in the next turn. Never early. HF_ENOMEM leaves it
     * disarmed. */
    int (*arm)(struct hfi_scheduler *self, struct hfi_timer *timer, struct hf_mono at);
    void (*disarm)(struct hfi_scheduler *self, struct hfi_timer *timer); /* not armed: a no-op */
    /*
     * `fd` stays the caller's, must outlive the watch and becomes non-blocking. Level-triggered. events 0 is legal:
     * nothing reported until changed. HF_EEXIST: it is watched already; HF_ENOTSUP: a regular file; HF_EINVAL: no fd.
     */
    int (*watch)(struct hfi_scheduler *self, int fd, unsigned events, hfi_watch_fn ready, void *user,
                 struct hfi_watch **watch);
    int (*change)(struct hfi_scheduler *self, struct hfi_watch *watch, unsigned events);
    void (*unwatch)(struct hfi_scheduler *self, struct hfi_watch *watch); /* no callback after it; NULL is fine */
    void (*post)(struct hfi_scheduler *self, struct hfi_task *task);      /* any thread; in order; cannot fail */
    int (*run)(struct hfi_scheduler *self);   /* until stop; returns 0. May be called again */
    void (*stop)(struct hfi_scheduler *self); /* any thread; ends the run after this turn, or the next one at once */
    bool (*on_thread)(struct hfi_scheduler *self); /* is this the thread that runs it just now? */
    /* Frees it, watches included; not while it runs, and no post or stop after it. Tasks that did not run are dropped.
     */
    void (*close)(struct hfi_scheduler *self);
};
struct hfi_scheduler {
    const struct hfi_scheduler_ops *ops;
};
static inline struct hf_mono hfi_now(struct hfi_scheduler *scheduler) {
    return scheduler->ops->mono(scheduler);
}

#endif
