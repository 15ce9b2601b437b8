/* SPDX-License-Identifier: MIT */
/*
 * Sliding sums: what totals grew by in each of the last slices. Decides nothing; never reads a clock; never lets time run
 * backward. The owner's thread, under the owner's lock.
 *
 * A slice holds what came in it as 32 bits: a window in which more than 4 · 10^9 would count is halved as a whole, which
 * keeps its ratios.
 */
#include "resilience/window.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "holdfast/error.h"

/* Where the parts of `memory` are. */
static uint32_t *began(const struct hfi_window *window) {
    return window->memory;
}

static uint32_t *older(const struct hfi_window *window) {
    return window->memory + window->width;
}

static uint32_t *slice(const struct hfi_window *window, int64_t tick) {
    return window->memory + (2 + (size_t)(tick % window->slices)) * window->width;
}

static int64_t tick_of(const struct hfi_window *window, struct hf_mono at) {
    return at.us > 0 ? at.us / window->slice_us : 0;
}

int hfi_window_init(struct hfi_window *window, int64_t window_ms, uint32_t slices, uint32_t width) {
    int64_t slice_us = hfi_ms_to_us(window_ms) / slices;
    window->slice_us = slice_us > 0 ? slice_us : 1;
    window->newest = -1;
    window->slices = (uint16_t)slices;
    window->width = (uint16_t)width;
    window->memory = hfi_alloc_array((2 + (size_t)slices) * width, sizeof *window->memory);
    return window->memory != NULL ? 0 : HF_ENOMEM;
}

void hfi_window_end(struct hfi_window *window) {
    hfi_free(window->memory);
    window->memory = NULL;
}

int64_t hfi_window_turn_us(const struct hfi_window *window) {
    return hfi_mul(window->newest + 1, window->slice_us);
}

/* What the slices hold together, anew. */
static void add_up(const struct hfi_window *window, unsigned column) {
    older(window)[column] = 0;
    for (int64_t tick = 0; tick < window->slices; tick++)
        older(window)[column] += slice(window, tick)[column];
}

/* Puts what came in the newest slice to the older ones. */
static void close_slice(const struct hfi_window *window, const uint64_t *totals) {
    uint32_t *own = slice(window, window->newest);
    bool fits = true;
    for (unsigned column = 0; column < window->width; column++) {
        own[column] = (uint32_t)totals[column] - began(window)[column];
        fits = fits && own[column] <= UINT32_MAX - older(window)[column];
    }
    for (size_t i = 0; i < (size_t)window->slices * window->width && !fits; i++)
        slice(window, 0)[i] /= 2;
    for (unsigned column = 0; column < window->width; column++) {
        if (fits)
            older(window)[column] += own[column];
        else
            add_up(window, column);
    }
}

static void begin_at(const struct hfi_window *window, const uint64_t *totals) {
    for (unsigned column = 0; column < window->width; column++)
        began(window)[column] = (uint32_t)totals[column];
}

void hfi_window_clear(struct hfi_window *window, const uint64_t *totals) {
    memset(older(window), 0, (1 + (size_t)window->slices) * window->width * sizeof *window->memory);
    begin_at(window, totals);
}

void hfi_window_turn(struct hfi_window *window, struct hf_mono now, const uint64_t *totals) {
    int64_t tick = tick_of(window, now);
    if (tick <= window->newest)
        return; /* the clock of another thread is ahead, or time ran backward: clamped (W2) */
    if (window->newest < 0 || tick - window->newest >= window->slices) {
        hfi_window_clear(window, totals); /* longer ago than the window is long (W1) */
    } else {
        close_slice(window, totals);
        for (int64_t passed = window->newest + 1; passed <= tick; passed++) {
            for (unsigned column = 0; column < window->width; column++) {
                older(window)[column] -= slice(window, passed)[column];
                slice(window, passed)[column] = 0;
            }
        }
        begin_at(window, totals);
    }
    window->newest = tick;
}

void hfi_window_peek(const struct hfi_window *window, struct hf_mono at, const uint64_t *totals, uint64_t *sums) {
    int64_t tick = tick_of(window, at);
    bool gone = window->newest < 0 || tick - window->newest >= window->slices;
    for (unsigned column = 0; column < window->width; column++) {
        sums[column] = 0;
        if (gone)
            continue;
        sums[column] = (uint64_t)older(window)[column] + (uint32_t)((uint32_t)totals[column] - began(window)[column]);
        for (int64_t passed = window->newest + 1; passed <= tick; passed++)
            sums[column] -= slice(window, passed)[column];
    }
}
