/* SPDX-License-Identifier: MIT */
/*
 * The shards of a downstream: who has which, and the sums over all. Decides only when a thread gets one of its own. Must
 * never move a thread away from a shard that holds counts: counts stay where they were made. Any thread; no lock.
 */
#include "resilience/shards.h"

#include <stddef.h>

#include "base/alloc.h"

#define OFTEN 4096 /* permits from the shared shard within one slice: worth 5 KB to those who take them */

void hfi_shards_end(struct hfi_shards *shards) {
    struct hfi_shard_table *table = atomic_load(&shards->table);
    for (int i = 0; table != NULL && i < HFI_THREADS; i++)
        hfi_free(atomic_load(&table->of[i]));
    hfi_free(table);
    atomic_store(&shards->table, NULL);
}

static struct hfi_shard_use shared_use(struct hfi_shards *shards) {
    return (struct hfi_shard_use){&shards->shared, NULL, false};
}

static struct hfi_shard_use thread_use(struct hfi_thread_shard *own) {
    return (struct hfi_shard_use){&own->shard, &own->histogram, true};
}

static struct hfi_shard_table *table_of(struct hfi_shards *shards) {
    struct hfi_shard_table *table = atomic_load_explicit(&shards->table, memory_order_acquire);
    if (table != NULL)
        return table;
    struct hfi_shard_table *made = hfi_alloc(sizeof *made);
    if (made == NULL || atomic_compare_exchange_strong_explicit(&shards->table, &table, made, memory_order_acq_rel,
                                                                memory_order_acquire))
        return made;
    hfi_free(made); /* another was faster */
    return table;
}

struct hfi_shard_use hfi_shards_split(struct hfi_shards *shards) {
    int number = hfi_thread_number();
    struct hfi_shard_table *table = number >= 0 ? table_of(shards) : NULL;
    if (table == NULL)
        return shared_use(shards);
    struct hfi_thread_shard *own = atomic_load_explicit(&table->of[number], memory_order_acquire);
    if (own == NULL) { /* nobody else has this number: nobody else fills this place */
        own = hfi_alloc_lines(sizeof *own);
        if (own == NULL)
            return shared_use(shards);
        atomic_store_explicit(&table->of[number], own, memory_order_release);
    }
    return thread_use(own);
}

struct hfi_shard_use hfi_shards_other(struct hfi_shards *shards, int number) {
    struct hfi_shard_table *table = atomic_load_explicit(&shards->table, memory_order_acquire);
    if (table != NULL && number >= 0) {
        struct hfi_thread_shard *own = atomic_load_explicit(&table->of[number], memory_order_acquire);
        if (own != NULL)
            return thread_use(own);
    }
    int nobody = 0;
    if (number >= 0 && atomic_load_explicit(&shards->owner, memory_order_relaxed) == 0 &&
        atomic_compare_exchange_strong_explicit(&shards->owner, &nobody, number + 1, memory_order_relaxed,
                                                memory_order_relaxed))
        return (struct hfi_shard_use){&shards->own, NULL, true};
    uint32_t taken = (uint32_t)atomic_load_explicit(&shards->shared.word, memory_order_relaxed) -
                     atomic_load_explicit(&shards->shared_from, memory_order_relaxed);
    return taken < OFTEN ? shared_use(shards) : hfi_shards_split(shards);
}

void hfi_shards_slice(struct hfi_shards *shards) {
    atomic_store_explicit(&shards->shared_from,
                          (uint32_t)atomic_load_explicit(&shards->shared.word, memory_order_relaxed),
                          memory_order_relaxed);
}

struct hfi_shard *hfi_shards_next(struct hfi_shards_walk *walk) {
    struct hfi_shards *shards = walk->shards;
    if (walk->at < 2)
        return walk->at++ == 0 ? &shards->own : &shards->shared;
    struct hfi_shard_table *table = atomic_load_explicit(&shards->table, memory_order_acquire);
    while (table != NULL && walk->at - 2 < HFI_THREADS) {
        struct hfi_thread_shard *own = atomic_load_explicit(&table->of[walk->at++ - 2], memory_order_acquire);
        if (own != NULL)
            return &own->shard;
    }
    return NULL;
}

void hfi_shards_sum(struct hfi_shards *shards, struct hfi_shards_sum *sum) {
    struct hfi_shards_walk walk = {shards, 0};
    uint32_t held[2] = {0, 0}, in_flight = 0;
    *sum = (struct hfi_shards_sum){.entered = 0};
    for (struct hfi_shard *shard; (shard = hfi_shards_next(&walk)) != NULL;) {
        /* What was given back first: who is counted as gone is counted as come as well. */
        uint32_t even_left = atomic_load_explicit(&shard->left[0], memory_order_relaxed);
        uint32_t odd_left = atomic_load_explicit(&shard->left[1], memory_order_relaxed);
        uint64_t word = atomic_load_explicit(&shard->word, memory_order_relaxed);
        held[0] += atomic_load_explicit(&shard->entered[0], memory_order_relaxed) - even_left;
        held[1] += atomic_load_explicit(&shard->entered[1], memory_order_relaxed) - odd_left;
        in_flight += (uint32_t)word - even_left - odd_left;
        sum->entered += hfi_word_entered(word);
        sum->successes += atomic_load_explicit(&shard->successes, memory_order_relaxed);
        sum->neutrals += atomic_load_explicit(&shard->neutrals, memory_order_relaxed);
        sum->rejections += atomic_load_explicit(&shard->rejections, memory_order_relaxed);
    }
    sum->held[0] = (int32_t)held[0];
    sum->held[1] = (int32_t)held[1];
    sum->in_flight = (int32_t)in_flight;
}

uint64_t hfi_shards_successes(const struct hfi_shards *shards) {
    struct hfi_shards_walk walk = {(struct hfi_shards *)(uintptr_t)shards, 0};
    uint64_t total = 0;
    for (struct hfi_shard *shard; (shard = hfi_shards_next(&walk)) != NULL;)
        total += atomic_load_explicit(&shard->successes, memory_order_relaxed);
    return total;
}

uint32_t hfi_shards_peak(struct hfi_shards *shards) {
    struct hfi_shards_walk walk = {shards, 0};
    uint64_t total = 0;
    for (struct hfi_shard *shard; (shard = hfi_shards_next(&walk)) != NULL;)
        total += atomic_exchange_explicit(&shard->peak, 0, memory_order_relaxed);
    return total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
}
