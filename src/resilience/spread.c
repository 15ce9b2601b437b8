/* SPDX-License-Identifier: MIT */
/*
 * Durations in fine log-linear buckets. A quantile is the upper edge of its bucket, so it never promises less than was
 * seen. Pure; one thread.
 */
#include "resilience/spread.h"

#include <math.h>

unsigned hfi_spread_bucket(int64_t us) {
    if (us < (int64_t)HFI_SPREAD_STEPS)
        return us > 0 ? (unsigned)us : 0;
    unsigned power = 63 - (unsigned)__builtin_clzll((uint64_t)us);
    unsigned page = power - HFI_SPREAD_STEP_BITS + 1;
    if (page >= HFI_SPREAD_PAGES)
        return HFI_SPREAD_BUCKETS - 1;
    return page * HFI_SPREAD_STEPS + (unsigned)((uint64_t)us >> (power - HFI_SPREAD_STEP_BITS) & (HFI_SPREAD_STEPS - 1));
}

int64_t hfi_spread_edge(unsigned bucket) {
    if (bucket < HFI_SPREAD_STEPS)
        return bucket;
    unsigned shift = bucket / HFI_SPREAD_STEPS - 1;
    return ((int64_t)(HFI_SPREAD_STEPS + bucket % HFI_SPREAD_STEPS + 1) << shift) - 1;
}

uint64_t hfi_spread_sum(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void hfi_spread_add(struct hfi_spread *spread, int64_t us, uint64_t count) {
    uint64_t *place = &spread->counts[hfi_spread_bucket(us)];
    *place = hfi_spread_sum(*place, count);
}

void hfi_spread_merge(struct hfi_spread *into, const struct hfi_spread *from) {
    for (unsigned i = 0; i < HFI_SPREAD_BUCKETS; i++)
        into->counts[i] = hfi_spread_sum(into->counts[i], from->counts[i]);
}

uint64_t hfi_spread_total(const struct hfi_spread *spread) {
    uint64_t total = 0;
    for (unsigned i = 0; i < HFI_SPREAD_BUCKETS; i++)
        total = hfi_spread_sum(total, spread->counts[i]);
    return total;
}

int64_t hfi_spread_quantile(const struct hfi_spread *spread, double share) {
    uint64_t total = hfi_spread_total(spread), seen = 0;
    if (total == 0)
        return -1;
    double rank = ceil((share > 0 ? share < 1 ? share : 1 : 0) * (double)total);
    unsigned last = 0;
    for (unsigned i = 0; i < HFI_SPREAD_BUCKETS; i++) {
        if (spread->counts[i] == 0)
            continue;
        last = i;
        seen = hfi_spread_sum(seen, spread->counts[i]);
        if ((double)seen >= rank)
            break;
    }
    return hfi_spread_edge(last);
}
