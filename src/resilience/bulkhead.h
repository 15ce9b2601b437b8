/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BULKHEAD_H
#define HFI_RESILIENCE_BULKHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* At most `max` in flight; waiting in a queue is the call's business (call.c), counted here. Any thread, no lock. */
struct hfi_bulkhead {
    _Atomic uint32_t in_flight;
    _Atomic uint32_t max;
    _Atomic uint32_t queued; /* callers of all kinds that wait for a place or a token */
};
/* A lower maximum lets those in flight end; no new one starts until there is room. */
void hfi_bulkhead_init(struct hfi_bulkhead *bulkhead, uint32_t max);
static inline uint32_t hfi_bulkhead_max(const struct hfi_bulkhead *bulkhead) {
    return atomic_load_explicit(&bulkhead->max, memory_order_relaxed);
}
bool hfi_bulkhead_enter(struct hfi_bulkhead *bulkhead);
void hfi_bulkhead_leave(struct hfi_bulkhead *bulkhead);
/* One more may wait if fewer than `room` do. */
bool hfi_bulkhead_queue(struct hfi_bulkhead *bulkhead, uint32_t room);
void hfi_bulkhead_unqueue(struct hfi_bulkhead *bulkhead);

#endif
