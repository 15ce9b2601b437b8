/* SPDX-License-Identifier: MIT */
/*
 * Sliding sums: what totals grew by in each of the last slices. Decides nothing; never reads a clock; never lets time run
 * backward. The owner's thread, under the owner's lock.
 *
 * A slice keeps a count in 16 bits: exactly up to 4,095, above that its twelve leading bits. What these leave out, less
 * than 1 in 2,048, is not lost but counts in the slice after it: all together the slices hold every sample.
 */
#include "resilience/window.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

#define MANTISSA_BITS 11
#define MANTISSA ((1u << MANTISSA_BITS) - 1)

/* The largest that fits and is no more than `count`. */
static uint16_t packed(uint32_t count) {
    if (count <= MANTISSA)
        return (uint16_t)count;
    unsigned shift = 31u - (unsigned)__builtin_clz(count) - MANTISSA_BITS;
    return (uint16_t)((shift + 1) << MANTISSA_BITS | (count >> shift & MANTISSA));
}

static uint32_t unpacked(uint16_t code) {
    uint32_t exponent = code >> MANTISSA_BITS, mantissa = code & MANTISSA;
    return exponent == 0 ? mantissa : (mantissa | 1u << MANTISSA_BITS) << (exponent - 1);
}

/* Where the slice of `tick` is. */
static uint16_t *slice(const struct hfi_window *window, int64_t tick) {
    return (uint16_t *)(window->memory + window->width) + (size_t)(tick % window->slices) * window->width;
}

static int64_t tick_of(const struct hfi_window *window, struct hf_mono at) {
    return at.us > 0 ? at.us / window->slice_us : 0;
}

/* -1 before the first turn. */
static int64_t newest_of(const struct hfi_window *window, int64_t turn_us) {
    return turn_us / window->slice_us - 1;
}

uint32_t *hfi_window_memory(uint32_t slices, uint32_t width) {
    return hfi_alloc_array(HFI_WINDOW_WORDS(slices, width), sizeof(uint32_t));
}

/* Keeps what came in the newest slice; the next one begins here. */
static void close_slice(const struct hfi_window *window, int64_t newest, const uint64_t *totals) {
    uint16_t *own = slice(window, newest);
    for (unsigned column = 0; column < window->width; column++) {
        own[column] = packed((uint32_t)totals[column] - window->memory[column]);
        window->memory[column] += unpacked(own[column]);
    }
}

void hfi_window_clear(const struct hfi_window *window, const uint64_t *totals) {
    memset(slice(window, 0), 0, (size_t)window->slices * window->width * sizeof(uint16_t));
    for (unsigned column = 0; column < window->width; column++)
        window->memory[column] = (uint32_t)totals[column];
}

int64_t hfi_window_turn(const struct hfi_window *window, int64_t turn_us, struct hf_mono now, const uint64_t *totals) {
    int64_t tick = tick_of(window, now), newest = newest_of(window, turn_us);
    if (tick <= newest)
        return turn_us; /* the clock of another thread is ahead, or time ran backward: clamped (W2) */
    if (newest < 0 || tick - newest >= window->slices) {
        hfi_window_clear(window, totals); /* longer ago than the window is long (W1) */
    } else {
        close_slice(window, newest, totals);
        for (int64_t passed = newest + 1; passed <= tick; passed++)
            memset(slice(window, passed), 0, window->width * sizeof(uint16_t));
    }
    return hfi_mul(tick + 1, window->slice_us);
}

void hfi_window_peek(const struct hfi_window *window, int64_t turn_us, struct hf_mono at, const uint64_t *totals,
                     uint64_t *sums) {
    int64_t tick = tick_of(window, at), newest = newest_of(window, turn_us);
    bool gone = newest < 0 || tick - newest >= window->slices;
    tick = tick > newest ? tick : newest;
    int64_t oldest = tick - window->slices + 1;
    for (unsigned column = 0; column < window->width; column++) {
        sums[column] = gone ? 0 : (uint32_t)((uint32_t)totals[column] - window->memory[column]);
        for (int64_t passed = oldest > 0 ? oldest : 0; passed < newest && !gone; passed++)
            sums[column] += unpacked(slice(window, passed)[column]);
    }
}
