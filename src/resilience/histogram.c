/* SPDX-License-Identifier: MIT */
/*
 * Latencies in log-linear buckets: exact below 16 µs, then 16 steps per power of two up to six days. Quantiles give
 * the upper edge of a bucket, so they never promise less than was seen. Any thread, no lock.
 */
#include "resilience/histogram.h"

#define STEP_BITS 4
#define STEPS (1 << STEP_BITS)

static unsigned bucket_of(uint64_t us) {
    if (us < STEPS)
        return (unsigned)us;
    unsigned power = 63 - (unsigned)__builtin_clzll(us);
    unsigned bucket = (power - STEP_BITS + 1) * STEPS + (unsigned)(us >> (power - STEP_BITS) & (STEPS - 1));
    return bucket < HFI_HISTOGRAM_BUCKETS ? bucket : HFI_HISTOGRAM_BUCKETS - 1;
}

static int64_t upper_edge(unsigned bucket) {
    if (bucket < STEPS)
        return bucket;
    unsigned shift = bucket / STEPS - 1;
    return ((int64_t)(STEPS + bucket % STEPS + 1) << shift) - 1;
}

void hfi_histogram_add(struct hfi_histogram *histogram, int64_t us) {
    atomic_fetch_add_explicit(&histogram->counts[bucket_of(us > 0 ? (uint64_t)us : 0)], 1, memory_order_relaxed);
}

void hfi_histogram_add_many(struct hfi_histogram *histogram, int64_t us, uint64_t count) {
    atomic_fetch_add_explicit(&histogram->counts[bucket_of(us > 0 ? (uint64_t)us : 0)], count, memory_order_relaxed);
}

void hfi_histogram_add_alone(struct hfi_histogram *histogram, int64_t us) {
    _Atomic uint64_t *count = &histogram->counts[bucket_of(us > 0 ? (uint64_t)us : 0)];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

void hfi_histogram_merge(struct hfi_histogram *into, const struct hfi_histogram *from) {
    for (unsigned i = 0; i < HFI_HISTOGRAM_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&from->counts[i], memory_order_relaxed);
        if (count > 0)
            atomic_fetch_add_explicit(&into->counts[i], count, memory_order_relaxed);
    }
}

uint64_t hfi_histogram_total(const struct hfi_histogram *histogram) {
    uint64_t total = 0;
    for (unsigned i = 0; i < HFI_HISTOGRAM_BUCKETS; i++)
        total += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
    return total;
}

int64_t hfi_histogram_quantile(const struct hfi_histogram *histogram, uint32_t permille) {
    uint64_t total = hfi_histogram_total(histogram);
    uint64_t share = permille < 1000 ? permille : 1000;
    uint64_t rank = total / 1000 * share + (total % 1000 * share + 999) / 1000;
    uint64_t seen = 0;
    if (total == 0)
        return -1;
    for (unsigned i = 0; i < HFI_HISTOGRAM_BUCKETS; i++) {
        seen += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        if (seen >= (rank > 0 ? rank : 1))
            return upper_edge(i);
    }
    return upper_edge(HFI_HISTOGRAM_BUCKETS - 1);
}
