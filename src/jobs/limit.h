/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_LIMIT_H
#define HFI_JOBS_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/runner.h"

/*
 * The rules by which jobs wait for their turn: limits by key and aging. Pure: stores run them on what they have stored,
 * the runner on what it was told last, to ask for no more than it may get.
 *
 * A rate is a bucket of `burst` starts that fills by one each interval, kept as one instant (GCRA): when it would be full
 * again. So there is nothing to refill, and a key that was not used for a while needs no row.
 */
#define HFI_LIMIT_RATE_MAX 10000   /* a second: intervals are whole µs */
#define HFI_LIMIT_INTERVAL_MAX_S 2592000 /* 30 days from start to start */

struct hfi_limit {
    uint32_t concurrency; /* jobs of a key at once; 0 no bound */
    uint32_t burst;
    int64_t interval_us;  /* from start to start; 0 no bound */
};

/* All limits of a runner: each by itself, and no name twice (HF_EEXIST). */
int hfi_limits_check(const struct hf_runner_options *options, struct hf_error *error);
/* The limit of that index, whatever the size of the caller's structs. */
const struct hf_limit_options *hfi_limits_at(const struct hf_runner_options *options, size_t index);
void hfi_limit_from(const struct hf_limit_options *options, struct hfi_limit *limit); /* of options that hf_limit_check took */

/* What is left of a bound of 0 = none. */
static inline uint32_t hfi_limit_room(uint32_t bound, uint32_t running) {
    return bound == 0 ? UINT32_MAX : running < bound ? bound - running : 0;
}
/*
 * Starts that the rate allows now. `full_at_us`: 0 = never used. `ready_at_us` (may be NULL): when the next one is
 * allowed, now or later. A `full_at_us` further ahead than any bucket takes to fill comes from a clock that was set back
 * or a limit that was raised: it counts as an empty bucket.
 */
uint32_t hfi_limit_tokens(const struct hfi_limit *limit, int64_t full_at_us, int64_t now_us, int64_t *ready_at_us);
/* When the bucket is full again after `count` more starts. */
int64_t hfi_limit_take(const struct hfi_limit *limit, int64_t full_at_us, int64_t now_us, uint32_t count);

/* The priority that a job has aged to: one more for each `aging_us` it has been due; 0 = off. */
int64_t hfi_aged_priority(int priority, int64_t run_at_us, int64_t now_us, int64_t aging_us);

#endif
