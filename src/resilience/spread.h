/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_SPREAD_H
#define HFI_RESILIENCE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How a duration is spread, in µs: log-linear with 128 steps per power of two, exact below 256 µs, up to 2^42 µs (50 days).
 * The upper edge of a bucket is less than 1/128 (0.8 %) above anything in it. One thread; counts saturate. Merging is adding,
 * so it is associative and loses nothing.
 */
#define HFI_SPREAD_STEP_BITS 7
#define HFI_SPREAD_STEPS (1u << HFI_SPREAD_STEP_BITS)
#define HFI_SPREAD_PAGES 36u /* of one power of two each; the first one is below all of them */
#define HFI_SPREAD_BUCKETS (HFI_SPREAD_PAGES * HFI_SPREAD_STEPS)

struct hfi_spread {
    uint64_t counts[HFI_SPREAD_BUCKETS];
};

unsigned hfi_spread_bucket(int64_t us);       /* below 0 as 0, beyond the last one in the last one */
int64_t hfi_spread_edge(unsigned bucket);     /* the largest duration in it */
static inline int64_t hfi_spread_floor(unsigned bucket) { /* the smallest */
    return bucket == 0 ? 0 : hfi_spread_edge(bucket - 1) + 1;
}
uint64_t hfi_spread_sum(uint64_t a, uint64_t b); /* saturating */
void hfi_spread_add(struct hfi_spread *spread, int64_t us, uint64_t count);
void hfi_spread_merge(struct hfi_spread *into, const struct hfi_spread *from);
uint64_t hfi_spread_total(const struct hfi_spread *spread);
int64_t hfi_spread_quantile(const struct hfi_spread *spread, double share); /* upper edge; -1 when empty */

/*
 * Several spreads as one text of bytes, to be kept: version, then one entry for each bucket that is not empty, rising.
 * `key` is spread × HFI_SPREAD_BUCKETS + bucket.
 */
struct hfi_packed {
    unsigned char *bytes;
    size_t length, room;
    uint64_t last; /* key + 1 of the last entry; 0: none */
    bool failed;   /* no memory: the rest is missing */
};
void hfi_packed_begin(struct hfi_packed *packed);                          /* `bytes` is then the caller's to hfi_free */
void hfi_packed_put(struct hfi_packed *packed, uint64_t key, uint64_t count); /* keys rise; 0 is left out */
void hfi_packed_end(struct hfi_packed *packed); /* frees the bytes */
bool hfi_packed_empty(const struct hfi_packed *packed);
/* The sum of both, begun here. HF_ENOMEM; HF_EINVAL: one of them is not such bytes. Then there is nothing to free. */
int hfi_packed_merge(const void *a, size_t a_length, const void *b, size_t b_length, struct hfi_packed *sum);
/* Tells each entry, until `each` says false (HF_ENOMEM). HF_EINVAL: not such bytes, nothing was told. */
typedef bool (*hfi_packed_fn)(uint64_t key, uint64_t count, void *user);
int hfi_packed_each(const void *bytes, size_t length, hfi_packed_fn each, void *user);
/* Adds to `count` spreads; entries of others are passed over. HF_EINVAL: not such bytes, nothing was added. */
int hfi_packed_add(const void *bytes, size_t length, struct hfi_spread *spreads, size_t count);

#endif
