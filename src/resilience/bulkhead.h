/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BULKHEAD_H
#define HFI_RESILIENCE_BULKHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"
#include "resilience/shards.h"

/*
 * At most `max` in flight, exactly: never more, and none is refused while a place is free anywhere. Waiting in a queue is
 * the call's business. A place whose permit never came back is taken back between one and two leases after it
 * was given: time goes in terms of at least a lease, and when a term ends, what is left of the one before has lapsed (B3, R21).
 * Any thread; takes `lock` only when the thread's shard has no place left, when a term ends, and after a lower
 * maximum until enough have come back.
 */
struct hfi_bulkhead {
    _Atomic int64_t term_end_us;
    int64_t lease_us;         /* the longest that a permit of this term may have */
    _Atomic uint64_t expired;
    _Atomic uint32_t term;
    _Atomic uint32_t max;
    _Atomic uint32_t queued;  /* callers of all kinds that wait for a place or a token */
    int32_t pool;             /* places granted to no shard; the sum of all is max */
    struct hfi_lock lock;     /* guards pool, max and the ends of terms */
    _Atomic bool owes;        /* `pool` is below zero: more are in flight than a lower maximum allows */
};
/* `shards` here and below: always the same, with places for no other bulkhead. */
void hfi_bulkhead_init(struct hfi_bulkhead *bulkhead, uint32_t max, int64_t lease_ms);
static inline uint32_t hfi_bulkhead_max(const struct hfi_bulkhead *bulkhead) {
    return atomic_load_explicit(&bulkhead->max, memory_order_relaxed);
}
/* A lower maximum lets those in flight end; no new one starts until there is room. */
void hfi_bulkhead_reload(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, uint32_t max, int64_t lease_ms);
/* Ends terms that are over; `lease_ms` is for those that begin. Call it when `now` has reached term_end_us. */
void hfi_bulkhead_turn(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, struct hf_mono now, int64_t lease_ms);
/* The way of a thread whose shard has no place left, or that met another there. `use` may become another. */
bool hfi_bulkhead_enter_slowly(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, struct hfi_shard_use use,
                               uint32_t *term);

/* One more permit taken from the shard, in flight beside `in_flight` others; gives its term. The word first: a permit is
   never missed, and never lapses half taken. */
static inline uint32_t hfi_bulkhead_taken(const struct hfi_bulkhead *bulkhead, struct hfi_shard_use use,
                                          int32_t in_flight) {
    uint32_t term = atomic_load_explicit(&bulkhead->term, memory_order_relaxed);
    HFI_SHARD_ADD(use, entered[term & 1], 1);
    if (in_flight >= (int32_t)atomic_load_explicit(&use.shard->peak, memory_order_relaxed))
        atomic_store_explicit(&use.shard->peak, (uint32_t)in_flight + 1, memory_order_relaxed);
    return term;
}
/* `use` as hfi_shards_mine gave it; `term` gets the term that the place belongs to. */
static inline bool hfi_bulkhead_enter(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, struct hfi_shard_use use,
                                      uint32_t *term) {
    uint64_t word = atomic_load_explicit(&use.shard->word, memory_order_relaxed);
    int32_t in_flight = hfi_shard_in_flight(use.shard, word);
    if (in_flight >= hfi_word_places(word) || atomic_load_explicit(&bulkhead->owes, memory_order_relaxed) ||
        !atomic_compare_exchange_strong_explicit(&use.shard->word, &word, hfi_word_next(word), memory_order_acq_rel,
                                                 memory_order_relaxed))
        return hfi_bulkhead_enter_slowly(bulkhead, shards, use, term);
    *term = hfi_bulkhead_taken(bulkhead, use, in_flight);
    return true;
}
/* False: it has lapsed, and its place is another's by now. */
static inline bool hfi_bulkhead_holds(const struct hfi_bulkhead *bulkhead, uint32_t term) {
    return atomic_load_explicit(&bulkhead->term, memory_order_acquire) - term < 2;
}
static inline void hfi_bulkhead_leave(struct hfi_shard_use use, uint32_t term) {
    HFI_SHARD_ADD(use, left[term & 1], 1);
}
/* One more may wait if fewer than `room` do. */
bool hfi_bulkhead_queue(struct hfi_bulkhead *bulkhead, uint32_t room);
void hfi_bulkhead_unqueue(struct hfi_bulkhead *bulkhead);

#endif
