/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_RECENT_H
#define HFI_RESILIENCE_RECENT_H

#include "base/clock.h"
#include "resilience/histogram.h"

/*
 * What of a histogram, which only ever grows, is recent: how it stood at the beginning of this window and of the last
 * one is remembered, so a quantile covers the last one to two windows. 9 KB, made on the first question. Any thread.
 */
struct hfi_recent;
/*
 * The quantile of what came to `whole` within the last one to two windows, -1 when that is fewer than `at_least`, as it
 * is right after the first question. `place` holds NULL before it; without memory it goes on doing so, and the answer is -1.
 */
int64_t hfi_recent_quantile(struct hfi_recent *_Atomic *place, const struct hfi_histogram *whole, struct hf_mono now,
                            int64_t window_ms, uint32_t permille, uint64_t at_least);
/* The answer that was given to this question within the last sixteenth of a window: it costs no merging. -1 none. */
int64_t hfi_recent_known(struct hfi_recent *_Atomic *place, struct hf_mono now, int64_t window_ms, uint32_t permille,
                         uint64_t at_least);
void hfi_recent_free(struct hfi_recent *recent); /* NULL is fine */

#endif
