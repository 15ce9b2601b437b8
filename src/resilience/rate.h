/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_RATE_H
#define HFI_RESILIENCE_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define HFI_RATE_MAX 1000000         /* a second; above it a limit costs more than it bounds */
#define HFI_RATE_FILL_MAX_S 31536000 /* burst / rate: an empty bucket is full again within a year */

/*
 * A token bucket: in any span t at most burst + rate × t starts. Kept as the one instant at which the bucket would be
 * full but for what was taken (GCRA), so there is nothing to refill and nothing that drifts. All zero: off. Any thread,
 * no lock.
 */
struct hfi_rate {
    _Atomic uint64_t full_at;  /* ticks, wrapping; 0: never used */
    _Atomic uint64_t interval; /* ticks from token to token; 0: off */
    _Atomic uint64_t slack;    /* (burst - 1) × interval */
};

/* Sets or changes the limit and keeps what was taken. `per_s` 0 switches it off; `burst` 0: hfi_rate_burst. */
void hfi_rate_set(struct hfi_rate *rate, double per_s, uint32_t burst);
/* What a burst of 0 means: a tenth of a second's worth, at least one. */
uint32_t hfi_rate_burst(double per_s);

static inline bool hfi_rate_on(const struct hfi_rate *rate) {
    return atomic_load_explicit(&rate->interval, memory_order_relaxed) != 0;
}
/* Takes a token. False: none is there, and `wait_us` says when the next one is. Only when it is on. */
bool hfi_rate_take(struct hfi_rate *rate, struct hf_mono now, int64_t *wait_us);
/* A token that was taken for an attempt that never started. No-op when it is off. */
void hfi_rate_give_back(struct hfi_rate *rate);
/* Tokens that are there; UINT32_MAX when it is off. `wait_us` until the next one, 0 when there is one. */
uint32_t hfi_rate_left(const struct hfi_rate *rate, struct hf_mono now, int64_t *wait_us);

#endif
