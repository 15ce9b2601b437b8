/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_WINDOW_H
#define HFI_RESILIENCE_WINDOW_H

#include <stdint.h>

#include "base/clock.h"

/*
 * Sliding sums over the last `slices` slices of a time span, on the monotonic clock. It counts nothing itself: its owner
 * keeps totals that only grow, one for each of `width` columns, and hands them in; the window remembers what they were
 * when the slices began. So counting costs the owner one addition, wherever it likes to do it, and only a turn to
 * the next slice comes here. Expiry happens on read and turn (W1, W10); time that runs backward is clamped to the newest
 * seen (W2). Its owner's lock guards it.
 */
#define HFI_WINDOW_SLICES 12 /* by default */
#define HFI_WINDOW_SLICES_MIN 10
#define HFI_WINDOW_SLICES_MAX 60
#define HFI_WINDOW_WIDTH_MAX 8

struct hfi_window {
    int64_t slice_us;
    int64_t newest; /* newest slice seen, counted from time 0; -1 before the first turn */
    uint16_t slices, width;
    uint32_t *memory; /* width × what the newest slice began with, width × the sum of the older ones, the slices */
};

/* 1…1000 slices, 1…8 columns. 0 or HF_ENOMEM, and then it may be ended but not used. */
int hfi_window_init(struct hfi_window *window, int64_t window_ms, uint32_t slices, uint32_t width);
void hfi_window_end(struct hfi_window *window);
/* Lets time catch up. Call it before counting what happened at `now`. */
void hfi_window_turn(struct hfi_window *window, struct hf_mono now, const uint64_t *totals);
/* From this time on a turn has something to do; before it none is needed. */
int64_t hfi_window_turn_us(const struct hfi_window *window);
/* Forgets what was counted until now. */
void hfi_window_clear(struct hfi_window *window, const uint64_t *totals);
/* The sums as a turn at `at`, now or later, would leave them; changes nothing. */
void hfi_window_peek(const struct hfi_window *window, struct hf_mono at, const uint64_t *totals, uint64_t *sums);

#endif
