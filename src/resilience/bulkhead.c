/* SPDX-License-Identifier: MIT */
/*
 * Places in flight, granted to shards and taken back from those that have some to spare. Must never let the grants add up
 * to more than the maximum, and never refuse while anybody has a place to spare. Never waits but for its lock. Any
 * thread.
 */
#include "resilience/bulkhead.h"

void hfi_bulkhead_init(struct hfi_bulkhead *bulkhead, uint32_t max, int64_t lease_ms) {
    *bulkhead = (struct hfi_bulkhead){.pool = (int32_t)max, .lease_us = hfi_ms_to_us(lease_ms)};
    atomic_init(&bulkhead->term_end_us, INT64_MIN);
    atomic_init(&bulkhead->term, 1);
    atomic_init(&bulkhead->max, max);
}

/* ------------------------------------------------------------------ granting and taking back, under the lock */

static uint64_t grant(struct hfi_shard *shard, int32_t places) {
    return atomic_fetch_add_explicit(&shard->word, (uint64_t)(int64_t)places << HFI_ENTERED_BITS, memory_order_acq_rel);
}

static int32_t room_for(const struct hfi_shard *shard) {
    return HFI_PLACES_MAX - hfi_word_places(atomic_load_explicit(&shard->word, memory_order_relaxed));
}

/* Takes up to `wanted` places that the shard does not need: it takes some itself only by changing the word. */
static int32_t take_spare(struct hfi_shard *shard, int64_t wanted) {
    uint64_t word = atomic_load_explicit(&shard->word, memory_order_acquire);
    for (;;) {
        int32_t spare = hfi_word_places(word) - hfi_shard_in_flight(shard, word); /* what comes back meanwhile is more */
        int32_t most = hfi_word_places(word) + HFI_PLACES_MAX; /* a word holds no less than that below zero */
        int32_t taken = spare < most ? spare : most;
        if (taken <= 0)
            return 0;
        taken = taken < wanted ? taken : (int32_t)wanted;
        uint64_t next = word - ((uint64_t)(uint32_t)taken << HFI_ENTERED_BITS);
        if (atomic_compare_exchange_weak_explicit(&shard->word, &word, next, memory_order_acq_rel, memory_order_acquire))
            return taken;
    }
}

static int32_t spare_of(const struct hfi_shard *shard) {
    uint64_t word = atomic_load_explicit(&shard->word, memory_order_acquire);
    return hfi_word_places(word) - hfi_shard_in_flight(shard, word);
}

/* Brings places to `shard`: from the pool, or half of what the richest other has to spare. False: all are in use. */
static bool bring_locked(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, struct hfi_shard *shard) {
    int32_t room = room_for(shard);
    if (spare_of(shard) > 0 || room <= 0)
        return room > 0;
    if (bulkhead->pool > 0) {
        bool first = shard == &shards->own;
        int32_t some = first ? bulkhead->pool : (bulkhead->pool + 1) / 2;
        some = some < room ? some : room;
        bulkhead->pool -= some;
        grant(shard, some);
        return true;
    }
    struct hfi_shards_walk walk = {shards, 0};
    struct hfi_shard *richest = NULL;
    int32_t most = 0;
    for (struct hfi_shard *other; (other = hfi_shards_next(&walk)) != NULL;) {
        int32_t spare = other != shard ? spare_of(other) : 0;
        if (spare > most) {
            most = spare;
            richest = other;
        }
    }
    if (richest == NULL)
        return false;
    int64_t wanted = ((int64_t)most + 1) / 2;
    grant(shard, take_spare(richest, wanted < room ? wanted : room));
    return true; /* perhaps with nothing, when it was used up just now: the caller tries again */
}

/* Takes back what the shards have to spare, until the pool owes nothing. */
static void collect_locked(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards) {
    struct hfi_shards_walk walk = {shards, 0};
    for (struct hfi_shard *shard; bulkhead->pool < 0 && (shard = hfi_shards_next(&walk)) != NULL;)
        bulkhead->pool += take_spare(shard, -bulkhead->pool);
    atomic_store_explicit(&bulkhead->owes, bulkhead->pool < 0, memory_order_relaxed);
}

/* After a lower maximum: have enough come back by now? Else more are in flight than it allows, whatever one shard has. */
static bool settle(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards) {
    hfi_lock(&bulkhead->lock);
    collect_locked(bulkhead, shards);
    bool settled = bulkhead->pool >= 0;
    hfi_unlock(&bulkhead->lock);
    return settled;
}

bool hfi_bulkhead_enter_slowly(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, struct hfi_shard_use use,
                               uint32_t *term) {
    if (atomic_load_explicit(&bulkhead->owes, memory_order_relaxed) && !settle(bulkhead, shards))
        return false;
    uint64_t word = atomic_load_explicit(&use.shard->word, memory_order_relaxed);
    for (;;) {
        int32_t in_flight = hfi_shard_in_flight(use.shard, word);
        if (in_flight >= hfi_word_places(word)) {
            hfi_lock(&bulkhead->lock);
            bool brought = bring_locked(bulkhead, shards, use.shard);
            hfi_unlock(&bulkhead->lock);
            if (!brought)
                return false;
            word = atomic_load_explicit(&use.shard->word, memory_order_relaxed);
            continue;
        }
        if (atomic_compare_exchange_strong_explicit(&use.shard->word, &word, hfi_word_next(word), memory_order_acq_rel,
                                                    memory_order_relaxed)) {
            *term = hfi_bulkhead_taken(bulkhead, use, in_flight);
            return true;
        }
        if (!use.alone) { /* two at once: from now on it has a shard of its own */
            use = hfi_shards_split(shards);
            word = atomic_load_explicit(&use.shard->word, memory_order_relaxed);
        }
    }
}

/* ------------------------------------------------------------------ terms */

/* What is left of the terms of one parity has lapsed. When one of them was given back in that very moment, it comes out
   below zero the next time, and is put right then. */
static void lapse_locked(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, uint32_t parity) {
    struct hfi_shards_sum sum;
    hfi_shards_sum(shards, &sum);
    int64_t lapsed = sum.held[parity];
    if (lapsed == 0)
        return;
    atomic_fetch_add_explicit(&shards->shared.left[parity], (uint32_t)lapsed, memory_order_relaxed);
    atomic_fetch_add_explicit(&shards->shared.neutrals, (uint64_t)lapsed, memory_order_relaxed);
    atomic_fetch_add_explicit(&bulkhead->expired, (uint64_t)lapsed, memory_order_relaxed);
}

void hfi_bulkhead_turn(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, struct hf_mono now, int64_t lease_ms) {
    hfi_lock(&bulkhead->lock);
    int64_t end_us = atomic_load_explicit(&bulkhead->term_end_us, memory_order_relaxed);
    if (now.us >= end_us) {
        int64_t next_us = hfi_ms_to_us(lease_ms);
        int64_t length_us = next_us > bulkhead->lease_us ? next_us : bulkhead->lease_us;
        uint32_t term = atomic_load_explicit(&bulkhead->term, memory_order_relaxed);
        bool both = end_us != INT64_MIN && hfi_sub(now.us, end_us) >= length_us;
        /* First the number: who gives back a permit of a term that has lapsed must know it. */
        atomic_store_explicit(&bulkhead->term, term + (both ? 2 : 1), memory_order_seq_cst);
        atomic_store_explicit(&bulkhead->term_end_us, hfi_add(now.us, length_us), memory_order_relaxed);
        bulkhead->lease_us = next_us;
        if (end_us != INT64_MIN)
            lapse_locked(bulkhead, shards, (term + 1) & 1);
        if (both)
            lapse_locked(bulkhead, shards, term & 1);
    }
    hfi_unlock(&bulkhead->lock);
}

void hfi_bulkhead_reload(struct hfi_bulkhead *bulkhead, struct hfi_shards *shards, uint32_t max, int64_t lease_ms) {
    hfi_lock(&bulkhead->lock);
    bulkhead->pool += (int32_t)max - (int32_t)hfi_bulkhead_max(bulkhead);
    atomic_store_explicit(&bulkhead->max, max, memory_order_relaxed);
    if (hfi_ms_to_us(lease_ms) > bulkhead->lease_us)
        bulkhead->lease_us = hfi_ms_to_us(lease_ms);
    collect_locked(bulkhead, shards);
    hfi_unlock(&bulkhead->lock);
}

/* ------------------------------------------------------------------ who waits */

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
