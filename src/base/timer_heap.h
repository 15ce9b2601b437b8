/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_TIMER_HEAP_H
#define HFI_BASE_TIMER_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/scheduler.h"

/*
 * The timers of one scheduler, earliest first, equal times in arming order. It holds pointers only: a timer knows its
 * place, so moving and disarming need no search. One thread.
 */
struct hfi_timer_heap {
    struct hfi_timer **items;
    size_t count;
    size_t room;
    uint64_t order; /* of the next timer armed */
};
void hfi_timer_heap_init(struct hfi_timer_heap *heap);
void hfi_timer_heap_free(struct hfi_timer_heap *heap); /* timers still in it are not touched */

/* Arms, or moves to the end of those with the same time. HF_ENOMEM leaves it disarmed; moving never needs memory. */
int hfi_timer_heap_arm(struct hfi_timer_heap *heap, struct hfi_timer *timer, struct hf_mono at);
void hfi_timer_heap_disarm(struct hfi_timer_heap *heap, struct hfi_timer *timer);
struct hfi_timer *hfi_timer_heap_head(const struct hfi_timer_heap *heap); /* NULL when empty */

/*
 * Fires, in order, what is due at `now` and was armed before the call; returns how many. A scheduler must not arm a
 * timer earlier than the `now` of its latest call, or one that re-arms itself in the past could starve the others.
 */
size_t hfi_timer_heap_fire(struct hfi_timer_heap *heap, struct hf_mono now);

#endif
