/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_SHARDS_H
#define HFI_RESILIENCE_SHARDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread_number.h"
#include "resilience/histogram.h"

/*
 * What every attempt counts, in a form that threads do not fight for. There is a shard of the first thread that came (its
 * owner), one shared by all others, and, once others come often or two of them collide, one for each of those (allocated
 * then). A shard that one thread alone writes needs plain additions only; the shared one atomic ones. Sums over all are
 * exact whenever no thread is on its way through.
 *
 * Places in flight: a shard may have as many permits out as places were granted to it, and all grants together are the
 * bulkhead's maximum; who has none left gets some from another's spare ones (bulkhead.c). A permit may be given back to
 * another shard than it was taken from: only the sum has to be right. Permits are told apart by the parity of the term in
 * which they were taken, so that those of a term long past, never given back, can be found.
 */
#define HFI_PLACE_BITS 20
#define HFI_ENTERED_BITS (64 - HFI_PLACE_BITS)
#define HFI_PLACES_MAX ((INT32_C(1) << (HFI_PLACE_BITS - 1)) - 1)

struct hfi_shard {
    _Atomic uint64_t word;        /* places granted (signed) in the upper bits, permits taken in the lower */
    _Atomic uint32_t entered[2];  /* the same by the parity of their term */
    _Atomic uint32_t left[2];     /* permits given back, by the parity of their term */
    _Atomic uint32_t peak;        /* most in flight at once since it was last asked for */
    _Atomic uint64_t successes;   /* samples of the breaker that passed */
    _Atomic uint64_t neutrals;
    _Atomic uint64_t rejections;
};

struct hfi_thread_shard {
    _Alignas(64) struct hfi_shard shard;
    struct hfi_histogram histogram;
};
struct hfi_shard_table {
    struct hfi_thread_shard *_Atomic of[HFI_THREADS];
};

struct hfi_shards {
    struct hfi_shard_table *_Atomic table;
    _Atomic int owner;            /* number + 1 of the thread whose `own` is; 0: nobody came yet */
    _Atomic uint32_t shared_from; /* permits taken from `shared` when the slice began */
    struct hfi_shard own;         /* on a line of its own but for `shared`: who shares often gets another shard */
    struct hfi_shard shared;
};

/* The shard of the calling thread, and whether it is the only one that writes it. */
struct hfi_shard_use {
    struct hfi_shard *shard;
    struct hfi_histogram *histogram; /* NULL: the downstream's own */
    bool alone;
};

void hfi_shards_end(struct hfi_shards *shards);
/* For threads that are neither owner nor have a shard of their own. */
struct hfi_shard_use hfi_shards_other(struct hfi_shards *shards, int number);
/* Two threads have collided in the shared one: the caller gets a shard of its own, if there is memory. */
struct hfi_shard_use hfi_shards_split(struct hfi_shards *shards);

static inline struct hfi_shard_use hfi_shards_mine(struct hfi_shards *shards) {
    int number = hfi_thread_number();
    if (number >= 0 && number + 1 == atomic_load_explicit(&shards->owner, memory_order_relaxed))
        return (struct hfi_shard_use){&shards->own, NULL, true};
    return hfi_shards_other(shards, number);
}

/* The shard that the calling thread alone writes, or NULL when it has none; `histogram` as in hfi_shard_use. */
static inline struct hfi_shard *hfi_shards_alone(struct hfi_shards *shards, struct hfi_histogram **histogram) {
    int number = hfi_thread_number_kept;
    *histogram = NULL;
    if (number != 0 && number == atomic_load_explicit(&shards->owner, memory_order_relaxed))
        return &shards->own;
    struct hfi_shard_table *table = atomic_load_explicit(&shards->table, memory_order_acquire);
    if (number == 0 || table == NULL)
        return NULL;
    struct hfi_thread_shard *own = atomic_load_explicit(&table->of[number - 1], memory_order_acquire);
    if (own == NULL)
        return NULL;
    *histogram = &own->histogram;
    return &own->shard;
}
#define HFI_SHARD_ADD_ALONE(shard, field, n)                                                                           \
    atomic_store_explicit(&(shard)->field, atomic_load_explicit(&(shard)->field, memory_order_relaxed) + (n),          \
                          memory_order_relaxed)

#define HFI_SHARD_ADD(use, field, n)                                                                                   \
    do {                                                                                                               \
        if ((use).alone)                                                                                               \
            HFI_SHARD_ADD_ALONE((use).shard, field, n);                                                                \
        else                                                                                                           \
            atomic_fetch_add_explicit(&(use).shard->field, (n), memory_order_relaxed);                                 \
    } while (0)

static inline int32_t hfi_word_places(uint64_t word) {
    return (int32_t)((int64_t)word >> HFI_ENTERED_BITS);
}
static inline uint64_t hfi_word_next(uint64_t word) { /* one more taken; the places stay when the count comes round */
    uint64_t entered = UINT64_MAX >> HFI_PLACE_BITS;
    return (word & ~entered) | ((word + 1) & entered);
}
static inline uint64_t hfi_word_entered(uint64_t word) {
    return word & ((UINT64_C(1) << HFI_ENTERED_BITS) - 1);
}
/* Permits taken here less those given back here, as of a word read before; below zero when others' came back here. */
static inline int32_t hfi_shard_in_flight(const struct hfi_shard *shard, uint64_t word) {
    return (int32_t)((uint32_t)word - atomic_load_explicit(&shard->left[0], memory_order_relaxed) -
                     atomic_load_explicit(&shard->left[1], memory_order_relaxed));
}

/* Goes over all shards there are, until NULL. */
struct hfi_shards_walk {
    struct hfi_shards *shards;
    int at;
};
struct hfi_shard *hfi_shards_next(struct hfi_shards_walk *walk);

struct hfi_shards_sum {
    uint64_t entered, successes, neutrals, rejections;
    int64_t in_flight, held[2]; /* the same by the parity of the term */
};
void hfi_shards_sum(struct hfi_shards *shards, struct hfi_shards_sum *sum);
uint64_t hfi_shards_successes(const struct hfi_shards *shards);
/* The most in flight at once since the last call, from below the sum of the shards' own peaks. */
uint32_t hfi_shards_peak(struct hfi_shards *shards);
/* Begins a slice: what is shared often within one gets shards of its own. */
void hfi_shards_slice(struct hfi_shards *shards);

#endif
