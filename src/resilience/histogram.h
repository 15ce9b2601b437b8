/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_HISTOGRAM_H
#define HFI_RESILIENCE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

/* Latencies in µs, log-linear: 16 steps per power of two, so a quantile is within 6.25 %. Any thread, no lock. */
#define HFI_HISTOGRAM_BUCKETS 576
struct hfi_histogram {
    _Atomic uint64_t counts[HFI_HISTOGRAM_BUCKETS];
};
/* The same for a histogram that one thread alone adds to. */
void hfi_histogram_add_alone(struct hfi_histogram *histogram, int64_t us);
void hfi_histogram_add_many(struct hfi_histogram *histogram, int64_t us, uint64_t count);
void hfi_histogram_merge(struct hfi_histogram *into, const struct hfi_histogram *from);
void hfi_histogram_add(struct hfi_histogram *histogram, int64_t us);
uint64_t hfi_histogram_total(const struct hfi_histogram *histogram);
int64_t hfi_histogram_quantile(const struct hfi_histogram *histogram, uint32_t permille); /* upper edge; -1 when empty */

#endif
