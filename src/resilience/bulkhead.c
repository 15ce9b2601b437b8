/* SPDX-License-Identifier: MIT */
/* Counts what is in flight against a maximum. Never waits. Any thread, no lock. */
#include "resilience/bulkhead.h"

void hfi_bulkhead_init(struct hfi_bulkhead *bulkhead, uint32_t max) {
    atomic_init(&bulkhead->in_flight, 0);
    atomic_init(&bulkhead->queued, 0);
    atomic_init(&bulkhead->max, max);
}

bool hfi_bulkhead_enter(struct hfi_bulkhead *bulkhead) {
    uint32_t in_flight = atomic_load_explicit(&bulkhead->in_flight, memory_order_relaxed);
    do {
        if (in_flight >= atomic_load_explicit(&bulkhead->max, memory_order_relaxed))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&bulkhead->in_flight, &in_flight, in_flight + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

void hfi_bulkhead_leave(struct hfi_bulkhead *bulkhead) {
    atomic_fetch_sub(&bulkhead->in_flight, 1); /* before the look at who waits (waiting.h): sequentially consistent */
}

bool hfi_bulkhead_queue(struct hfi_bulkhead *bulkhead, uint32_t room) {
    uint32_t queued = atomic_load_explicit(&bulkhead->queued, memory_order_relaxed);
    do {
        if (queued >= room)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&bulkhead->queued, &queued, queued + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void hfi_bulkhead_unqueue(struct hfi_bulkhead *bulkhead) {
    atomic_fetch_sub_explicit(&bulkhead->queued, 1, memory_order_relaxed);
}
