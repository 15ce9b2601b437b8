/* SPDX-License-Identifier: MIT */
#ifndef HFI_LOOP_LOOP_INTERNAL_H
#define HFI_LOOP_LOOP_INTERNAL_H

#include <stdatomic.h>
#include <uv.h>

#include "base/scheduler.h"
#include "base/task_queue.h"
#include "base/timer_heap.h"

/* What loop.c and watch.c share. `base` first: a scheduler is cast to it. */
struct hfi_loop {
    struct hfi_scheduler base;
    uv_loop_t uv;
    uv_timer_t timer;
    uv_prepare_t prepare;
    uv_async_t async;
    struct hfi_timer_heap heap;
    struct hfi_task_queue tasks;
    struct hfi_watch *watches; /* not the closing ones */
    struct hf_mono turn;       /* when timers were fired last */
    unsigned events;           /* of descriptors, in this turn */
    int64_t set_for;           /* what the uv_timer is set for; HFI_FOREVER_US = stopped */
    bool own_tasks;            /* the loop's thread itself posted; of that thread only */
    atomic_bool stopping;
    _Atomic(void *) thread; /* of the run; NULL when none */
};

/*
 * A turn is at most so many events: what they asked for "now" and posted comes then. So few stay in the processor's
 * cache from being read to being answered, and many enough do the same one after the other.
 */
#define HFI_LOOP_EVENTS 32
void hfi_loop_end_turn(struct hfi_loop *loop);

int hfi_loop_watch(struct hfi_scheduler *self, int fd, unsigned events, hfi_watch_fn ready, void *user,
                   struct hfi_watch **watch);
int hfi_loop_change(struct hfi_scheduler *self, struct hfi_watch *watch, unsigned events);
void hfi_loop_unwatch(struct hfi_scheduler *self, struct hfi_watch *watch);

#endif
