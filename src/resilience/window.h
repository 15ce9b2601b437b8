/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_WINDOW_H
#define HFI_RESILIENCE_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Sliding sums over the last `slices` slices of a time span, on the monotonic clock. It counts nothing itself: its owner
 * keeps totals that only grow, one for each of `width` columns, and hands them in; the window remembers what they were
 * when the slices began. So counting costs the owner one addition, wherever it likes to do it, and only a turn to
 * the next slice comes here. Expiry happens on read and turn (W1, W10); time that runs backward is clamped to the newest
 * slice seen (W2), which its owner keeps as `turn_us`: the end of that slice, from which on a turn has something to do; 0
 * before the first. The owner's lock guards all of it, and one `turn_us` serves all windows of one shape that it has.
 *
 * The struct is a view, made where it is needed: what lasts is the memory, and it is small.
 */
#define HFI_WINDOW_SLICES 12 /* by default */
#define HFI_WINDOW_SLICES_MIN 10
#define HFI_WINDOW_SLICES_MAX 60
#define HFI_WINDOW_WIDTH_MAX 8
/* Of 32 bits: for each column what its newest slice began with, and 16 bits for each slice of each column. */
#define HFI_WINDOW_WORDS(slices, width) ((width) + ((size_t)(slices) * (width) + 1) / 2)

struct hfi_window {
    int64_t slice_us;
    uint32_t slices, width;
    uint32_t *memory; /* HFI_WINDOW_WORDS, zero at first */
};

static inline int64_t hfi_window_slice_us(int64_t window_ms, uint32_t slices) {
    int64_t slice_us = hfi_ms_to_us(window_ms) / slices;
    return slice_us > 0 ? slice_us : 1;
}
/* Memory for one; NULL: there is none. */
uint32_t *hfi_window_memory(uint32_t slices, uint32_t width);
/* Lets time catch up and gives the new turn_us. Call it before counting what happened at `now`, and when now.us ≥ turn_us;
   else nothing happens. */
int64_t hfi_window_turn(const struct hfi_window *window, int64_t turn_us, struct hf_mono now, const uint64_t *totals);
/* Forgets what was counted until now. */
void hfi_window_clear(const struct hfi_window *window, const uint64_t *totals);
/* The total of `column` grew by one that is not of the window's business. */
static inline void hfi_window_ignore(const struct hfi_window *window, unsigned column) {
    window->memory[column]++;
}
/* The sums as a turn at `at`, now or later, would leave them; changes nothing. */
void hfi_window_peek(const struct hfi_window *window, int64_t turn_us, struct hf_mono at, const uint64_t *totals,
                     uint64_t *sums);

#endif
