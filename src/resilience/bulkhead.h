/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BULKHEAD_H
#define HFI_RESILIENCE_BULKHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* At most `max` in flight; waiting in a queue is the call's business (call.c), counted here. Any thread, no lock. */
struct hfi_bulkhead {
    _Atomic uint32_t in_flight;
    uint32_t max;
    _Atomic uint32_t queued; /* callers of all kinds that wait for a place or a token */
};
void hfi_bulkhead_init(struct hfi_bulkhead *bulkhead, uint32_t max);
bool hfi_bulkhead_enter(struct hfi_bulkhead *bulkhead);
void hfi_bulkhead_leave(struct hfi_bulkhead *bulkhead);
/* One more may wait if fewer than `room` do. */
bool hfi_bulkhead_queue(struct hfi_bulkhead *bulkhead, uint32_t room);
void hfi_bulkhead_unqueue(struct hfi_bulkhead *bulkhead);

#endif
