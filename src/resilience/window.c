/* SPDX-License-Identifier: MIT */
/*
 * Sliding counts in slices that carry their own tick, so that a slice left over from an earlier turn is never read as
 * a fresh one. Decides nothing; never reads a clock; never lets time run backward. Any thread, no lock.
 *
 * A slice's stamp is its tick modulo 2^16. Whoever moves `newest` forward renews every slice it passes, so no slice
 * ever grows old enough for its stamp to come round again.
 */
#include "resilience/window.h"

#include "base/clock.h"

#define SLICES ((int64_t)HFI_WINDOW_SLICES)
#define STAMP_BITS 16
#define COUNT_BITS 24
#define COUNT_MAX ((UINT64_C(1) << COUNT_BITS) - 1)
#define SLOW_MAX (UINT64_MAX >> STAMP_BITS)
#define STAMP_TURN (INT64_C(1) << STAMP_BITS)

static uint64_t stamp_of(int64_t tick) {
    return (uint64_t)tick & (STAMP_TURN - 1);
}

static uint64_t stamp_in(uint64_t word) {
    return word >> (64 - STAMP_BITS);
}

static uint64_t pack(int64_t tick, uint64_t calls, uint64_t failures) {
    return stamp_of(tick) << (64 - STAMP_BITS) | calls << COUNT_BITS | failures;
}

static uint64_t calls_in(uint64_t word) {
    return word >> COUNT_BITS & COUNT_MAX;
}

static uint64_t failures_in(uint64_t word) {
    return word & COUNT_MAX;
}

static int64_t tick_of(const struct hfi_window *window, struct hf_mono at) {
    return at.us > 0 ? at.us / window->slice_us : 0;
}

void hfi_window_init(struct hfi_window *window, int64_t window_ms) {
    int64_t slice_us = hfi_ms_to_us(window_ms) / SLICES;
    window->slice_us = slice_us > 0 ? slice_us : 1;
    atomic_init(&window->newest, -1);
    for (int i = 0; i < HFI_WINDOW_SLICES; i++) {
        /* A stamp no tick of the first turn in this slice has: nothing here is fresh. */
        atomic_init(&window->slices[i].counts, pack(i - SLICES, 0, 0));
        atomic_init(&window->slices[i].slow, pack(i - SLICES, 0, 0));
    }
}

void hfi_window_clear(struct hfi_window *window) {
    for (int i = 0; i < HFI_WINDOW_SLICES; i++) {
        uint64_t counts = atomic_load_explicit(&window->slices[i].counts, memory_order_relaxed);
        atomic_store_explicit(&window->slices[i].counts, stamp_in(counts) << (64 - STAMP_BITS), memory_order_relaxed);
        uint64_t slow = atomic_load_explicit(&window->slices[i].slow, memory_order_relaxed);
        atomic_store_explicit(&window->slices[i].slow, stamp_in(slow) << (64 - STAMP_BITS), memory_order_relaxed);
    }
}

/* Gives a slice to `tick` with nothing in it, unless somebody did so already. */
static void renew(_Atomic uint64_t *word, int64_t tick, bool by_force) {
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    while ((by_force || stamp_in(seen) != stamp_of(tick)) &&
           !atomic_compare_exchange_weak_explicit(word, &seen, pack(tick, 0, 0), memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* Moves `newest` up to the tick of `now`; the one thread that does it renews what was passed. Gives the tick to use. */
static int64_t advance(struct hfi_window *window, struct hf_mono now) {
    int64_t tick = tick_of(window, now);
    int64_t newest = atomic_load_explicit(&window->newest, memory_order_relaxed);
    while (tick > newest) {
        if (!atomic_compare_exchange_weak_explicit(&window->newest, &newest, tick, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        /* After a pause of half a turn of the stamps they prove nothing any more: renew all, even if a sample of
           another thread that arrives in this moment is lost. */
        bool by_force = newest >= 0 && tick - newest >= STAMP_TURN / 2;
        for (int64_t passed = tick - newest < SLICES ? newest + 1 : tick - SLICES + 1; passed <= tick; passed++) {
            if (passed < 0)
                continue;
            renew(&window->slices[passed % SLICES].counts, passed, by_force);
            renew(&window->slices[passed % SLICES].slow, passed, by_force);
        }
        return tick;
    }
    return newest; /* the clock of another thread is ahead, or time ran backward: clamped (W2) */
}

/* One more call in the slice of `tick`. A full slice is halved, which keeps its ratio. */
static bool count(const struct hfi_window *window, _Atomic uint64_t *word, int64_t tick, bool failure) {
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t next;
    do {
        uint64_t calls = 0, failures = 0;
        if (stamp_in(seen) == stamp_of(tick)) {
            calls = calls_in(seen);
            failures = failures_in(seen);
        } else if (atomic_load_explicit(&window->newest, memory_order_relaxed) - tick >= SLICES) {
            return false; /* others went a whole window ahead meanwhile: the slice is theirs */
        }
        if (calls == COUNT_MAX) {
            calls /= 2;
            failures /= 2;
        }
        next = pack(tick, calls + 1, failures + (failure ? 1 : 0));
    } while (!atomic_compare_exchange_weak_explicit(word, &seen, next, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void count_slow(_Atomic uint64_t *word, int64_t tick) {
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t next;
    do {
        uint64_t slow = stamp_in(seen) == stamp_of(tick) ? seen & SLOW_MAX : 0;
        next = stamp_of(tick) << (64 - STAMP_BITS) | (slow < SLOW_MAX ? slow + 1 : slow);
    } while (!atomic_compare_exchange_weak_explicit(word, &seen, next, memory_order_relaxed, memory_order_relaxed));
}

void hfi_window_add(struct hfi_window *window, struct hf_mono now, bool failure, bool slow) {
    int64_t tick = advance(window, now);
    struct hfi_window_slice *slice = &window->slices[tick % SLICES];
    if (count(window, &slice->counts, tick, failure) && slow)
        count_slow(&slice->slow, tick);
}

static struct hfi_window_sum sum_at(const struct hfi_window *window, int64_t tick) {
    struct hfi_window_sum sum = {0, 0, 0};
    int64_t newest = atomic_load_explicit(&window->newest, memory_order_relaxed);
    for (int64_t age = 0; age < SLICES; age++) {
        int64_t at = tick - age;
        if (at < 0 || at > newest || newest - at >= SLICES)
            continue;
        const struct hfi_window_slice *slice = &window->slices[at % SLICES];
        uint64_t counts = atomic_load_explicit(&slice->counts, memory_order_relaxed);
        uint64_t slow = atomic_load_explicit(&slice->slow, memory_order_relaxed);
        if (stamp_in(counts) != stamp_of(at))
            continue;
        uint64_t calls = calls_in(counts);
        uint64_t slow_calls = stamp_in(slow) == stamp_of(at) ? slow & SLOW_MAX : 0;
        sum.calls += calls;
        sum.failures += failures_in(counts);
        sum.slow += slow_calls < calls ? slow_calls : calls; /* the two words are not written as one */
    }
    return sum;
}

struct hfi_window_sum hfi_window_read(struct hfi_window *window, struct hf_mono now) {
    return sum_at(window, advance(window, now));
}

struct hfi_window_sum hfi_window_peek(const struct hfi_window *window, struct hf_mono at) {
    int64_t tick = tick_of(window, at);
    int64_t newest = atomic_load_explicit(&window->newest, memory_order_relaxed);
    return sum_at(window, tick > newest ? tick : newest);
}
