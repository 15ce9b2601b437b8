/* SPDX-License-Identifier: MIT */
/*
 * The retry budget of a downstream: how many retries may be scheduled beside the calls of the last seconds. A refusal
 * charges nothing and is no sample of anything. Must never be asked for a first try, nor for a job's next execution.
 * Any thread.
 */
#include "resilience/budget.h"

#include <string.h>

#include "base/alloc.h"

void hfi_budget_init(struct hfi_budget *budget, int64_t window_ms, uint32_t ratio_permille, uint32_t floor) {
    *budget = (struct hfi_budget){.slice_us = hfi_window_slice_us(window_ms, HFI_WINDOW_SLICES),
                                  .ratio_permille = (uint16_t)ratio_permille,
                                  .floor = floor};
}

void hfi_budget_end(struct hfi_budget *budget) {
    hfi_free(atomic_load(&budget->more));
}

static struct hfi_budget_more *more_of(const struct hfi_budget *budget) {
    return atomic_load_explicit(&budget->more, memory_order_acquire);
}

static struct hfi_window window_over(const struct hfi_budget *budget, uint32_t *memory) {
    return (struct hfi_window){budget->slice_us, HFI_WINDOW_SLICES, 1, memory};
}

static void turn_locked(struct hfi_budget *budget, struct hf_mono now) {
    int64_t turn_us = atomic_load_explicit(&budget->turn_us, memory_order_relaxed);
    uint64_t calls = atomic_load_explicit(&budget->calls, memory_order_relaxed);
    struct hfi_budget_more *more = more_of(budget);
    struct hfi_window window = window_over(budget, budget->calls_window);
    if (more != NULL) {
        struct hfi_window charged = window_over(budget, more->charged_window);
        hfi_window_turn(&charged, turn_us, now, &more->charged);
    }
    atomic_store_explicit(&budget->turn_us, hfi_window_turn(&window, turn_us, now, &calls), memory_order_relaxed);
}

void hfi_budget_reload(struct hfi_budget *budget, struct hf_mono now, int64_t window_ms, uint32_t ratio_permille,
                       uint32_t floor) {
    int64_t slice_us = hfi_window_slice_us(window_ms, HFI_WINDOW_SLICES);
    hfi_lock(&budget->lock);
    if (slice_us != budget->slice_us) {
        budget->slice_us = slice_us;
        atomic_store_explicit(&budget->turn_us, 0, memory_order_relaxed);
        turn_locked(budget, now); /* the first turn forgets all */
    }
    budget->ratio_permille = (uint16_t)ratio_permille;
    budget->floor = floor;
    hfi_unlock(&budget->lock);
}

void hfi_budget_call(struct hfi_budget *budget, struct hf_mono now) {
    if (now.us >= atomic_load_explicit(&budget->turn_us, memory_order_relaxed)) {
        hfi_lock(&budget->lock);
        turn_locked(budget, now);
        hfi_unlock(&budget->lock);
    }
    atomic_fetch_add_explicit(&budget->calls, 1, memory_order_relaxed);
}

/* Retries that the window allows, and those charged in it. */
static uint64_t room_at(struct hfi_budget *budget, struct hf_mono at, uint64_t *charged) {
    int64_t turn_us = atomic_load_explicit(&budget->turn_us, memory_order_relaxed);
    uint64_t total = atomic_load_explicit(&budget->calls, memory_order_relaxed), calls;
    struct hfi_budget_more *more = more_of(budget);
    struct hfi_window window = window_over(budget, budget->calls_window);
    *charged = 0;
    hfi_window_peek(&window, turn_us, at, &total, &calls);
    if (more != NULL) {
        window = window_over(budget, more->charged_window);
        hfi_window_peek(&window, turn_us, at, &more->charged, charged);
    }
    uint64_t share = calls * budget->ratio_permille / 1000;
    return share > budget->floor ? share : budget->floor;
}

static bool has_room(struct hfi_budget *budget, struct hf_mono at) {
    uint64_t charged, room = room_at(budget, at, &charged);
    return charged < room;
}

double hfi_budget_left(struct hfi_budget *budget, struct hf_mono now) {
    uint64_t charged;
    hfi_lock(&budget->lock);
    turn_locked(budget, now);
    uint64_t room = room_at(budget, now, &charged);
    hfi_unlock(&budget->lock);
    return charged < room ? (double)(room - charged) / (double)room : 0;
}

bool hfi_budget_could(struct hfi_budget *budget, struct hf_mono now) {
    hfi_lock(&budget->lock);
    turn_locked(budget, now);
    bool could = has_room(budget, now);
    hfi_unlock(&budget->lock);
    return could;
}

/* NULL: no memory. Fresh, it is in step with the windows that were turned before: nothing was charged until now. */
static struct hfi_budget_more *make_more_locked(struct hfi_budget *budget) {
    struct hfi_budget_more *more = more_of(budget);
    if (more == NULL) {
        more = hfi_alloc(sizeof *more);
        atomic_store_explicit(&budget->more, more, memory_order_release);
    }
    return more;
}

bool hfi_budget_take(struct hfi_budget *budget, struct hf_mono now) {
    hfi_lock(&budget->lock);
    turn_locked(budget, now);
    struct hfi_budget_more *more = make_more_locked(budget);
    bool granted = more != NULL && has_room(budget, now);
    if (granted)
        more->charged++;
    hfi_unlock(&budget->lock);
    return granted;
}

int64_t hfi_budget_refill_ms(struct hfi_budget *budget, struct hf_mono now) {
    hfi_lock(&budget->lock);
    int64_t slice_us = budget->slice_us;
    int64_t at_us = now.us > 0 ? now.us : 0;
    for (int slice = 0; slice < HFI_WINDOW_SLICES; slice++) {
        if (has_room(budget, (struct hf_mono){at_us}))
            break;
        at_us = hfi_mul(at_us / slice_us + 1, slice_us); /* counts change only when a slice leaves */
    }
    hfi_unlock(&budget->lock);
    int64_t wait_ms = hfi_us_to_ms_up(hfi_sub(at_us, now.us));
    return wait_ms > 0 ? wait_ms : 1;
}

uint64_t hfi_budget_charged(struct hfi_budget *budget) {
    hfi_lock(&budget->lock);
    struct hfi_budget_more *more = more_of(budget);
    uint64_t charged = more != NULL ? more->charged : 0;
    hfi_unlock(&budget->lock);
    return charged;
}

void hfi_budget_count(struct hfi_budget *budget, enum hfi_budget_count what) {
    struct hfi_budget_more *more = more_of(budget);
    if (more != NULL)
        atomic_fetch_add_explicit(&more->counts[what], 1, memory_order_relaxed);
}

uint64_t hfi_budget_counted(const struct hfi_budget *budget, enum hfi_budget_count what) {
    const struct hfi_budget_more *more = more_of(budget);
    return more != NULL ? atomic_load_explicit(&more->counts[what], memory_order_relaxed) : 0;
}
