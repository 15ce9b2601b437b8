/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_WINDOW_H
#define HFI_RESILIENCE_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Sliding counts over a window of HFI_WINDOW_SLICES slices on the monotonic clock. Each slice is self-describing (its
 * tick stands in it), so adding takes no lock and reading is always consistent; expiry happens on read and write
 * (W1, W10); time that runs backward is clamped to the newest seen (W2). Any thread.
 */
#define HFI_WINDOW_SLICES 12

struct hfi_window_slice {
    _Atomic uint64_t counts; /* tick, calls, failures */
    _Atomic uint64_t slow;   /* tick, slow calls */
};
struct hfi_window {
    int64_t slice_us;
    _Atomic int64_t newest; /* newest tick seen */
    struct hfi_window_slice slices[HFI_WINDOW_SLICES];
};
struct hfi_window_sum {
    uint64_t calls, failures, slow;
};
void hfi_window_init(struct hfi_window *window, int64_t window_ms);
void hfi_window_clear(struct hfi_window *window);
void hfi_window_add(struct hfi_window *window, struct hf_mono now, bool failure, bool slow);
struct hfi_window_sum hfi_window_read(struct hfi_window *window, struct hf_mono now);
/* What a read at `at`, now or later, would give; changes nothing. */
struct hfi_window_sum hfi_window_peek(const struct hfi_window *window, struct hf_mono at);

#endif
