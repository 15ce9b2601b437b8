/* SPDX-License-Identifier: MIT */
/*
 * The retry budget of a downstream: how many retries may be scheduled beside the calls of the last seconds. A refusal
 * charges nothing and is no sample of anything. Must never be asked for a first try, nor for a job's next execution.
 * Any thread.
 */
#include "resilience/budget.h"

#include "holdfast/error.h"

enum { CALLS, RETRIES, COLUMNS };

int hfi_budget_init(struct hfi_budget *budget, int64_t window_ms, uint32_t ratio_permille, uint32_t floor) {
    if (hfi_window_init(&budget->window, window_ms, HFI_WINDOW_SLICES, COLUMNS) != 0)
        return HF_ENOMEM;
    atomic_init(&budget->calls, 0);
    atomic_init(&budget->turn_us, 0);
    budget->retries = 0;
    budget->window_ms = window_ms;
    budget->ratio_permille = ratio_permille;
    budget->floor = floor;
    pthread_mutex_init(&budget->lock, NULL);
    return 0;
}

void hfi_budget_end(struct hfi_budget *budget) {
    hfi_window_end(&budget->window);
    pthread_mutex_destroy(&budget->lock);
}

static void totals_of(const struct hfi_budget *budget, uint64_t *totals) {
    totals[CALLS] = atomic_load_explicit(&budget->calls, memory_order_relaxed);
    totals[RETRIES] = budget->retries;
}

static void turn_locked(struct hfi_budget *budget, struct hf_mono now) {
    uint64_t totals[COLUMNS];
    totals_of(budget, totals);
    hfi_window_turn(&budget->window, now, totals);
    atomic_store_explicit(&budget->turn_us, hfi_window_turn_us(&budget->window), memory_order_relaxed);
}

int hfi_budget_prepare(struct hfi_budget *budget, int64_t window_ms, struct hfi_window *fresh) {
    *fresh = (struct hfi_window){.memory = NULL};
    pthread_mutex_lock(&budget->lock);
    bool same = window_ms == budget->window_ms;
    pthread_mutex_unlock(&budget->lock);
    return same ? 0 : hfi_window_init(fresh, window_ms, HFI_WINDOW_SLICES, COLUMNS);
}

void hfi_budget_reload(struct hfi_budget *budget, struct hf_mono now, struct hfi_window *fresh, int64_t window_ms,
                       uint32_t ratio_permille, uint32_t floor) {
    pthread_mutex_lock(&budget->lock);
    if (fresh->memory != NULL) {
        hfi_window_end(&budget->window);
        budget->window = *fresh;
        turn_locked(budget, now);
    }
    budget->window_ms = window_ms;
    budget->ratio_permille = ratio_permille;
    budget->floor = floor;
    pthread_mutex_unlock(&budget->lock);
}

void hfi_budget_call(struct hfi_budget *budget, struct hf_mono now) {
    if (now.us >= atomic_load_explicit(&budget->turn_us, memory_order_relaxed)) {
        pthread_mutex_lock(&budget->lock);
        turn_locked(budget, now);
        pthread_mutex_unlock(&budget->lock);
    }
    atomic_fetch_add_explicit(&budget->calls, 1, memory_order_relaxed);
}

static bool has_room(const struct hfi_budget *budget, struct hf_mono at) {
    uint64_t totals[COLUMNS], sums[COLUMNS];
    totals_of(budget, totals);
    hfi_window_peek(&budget->window, at, totals, sums);
    uint64_t share = sums[CALLS] * budget->ratio_permille / 1000;
    return sums[RETRIES] < (share > budget->floor ? share : budget->floor);
}

bool hfi_budget_could(struct hfi_budget *budget, struct hf_mono now) {
    pthread_mutex_lock(&budget->lock);
    turn_locked(budget, now);
    bool could = has_room(budget, now);
    pthread_mutex_unlock(&budget->lock);
    return could;
}

bool hfi_budget_take(struct hfi_budget *budget, struct hf_mono now) {
    pthread_mutex_lock(&budget->lock);
    turn_locked(budget, now);
    bool granted = has_room(budget, now);
    budget->retries += granted ? 1 : 0;
    pthread_mutex_unlock(&budget->lock);
    return granted;
}

int64_t hfi_budget_refill_ms(struct hfi_budget *budget, struct hf_mono now) {
    pthread_mutex_lock(&budget->lock);
    int64_t slice_us = budget->window.slice_us;
    int64_t at_us = now.us > 0 ? now.us : 0;
    for (int slice = 0; slice < HFI_WINDOW_SLICES; slice++) {
        if (has_room(budget, (struct hf_mono){at_us}))
            break;
        at_us = hfi_mul(at_us / slice_us + 1, slice_us); /* counts change only when a slice leaves */
    }
    pthread_mutex_unlock(&budget->lock);
    int64_t wait_ms = hfi_us_to_ms_up(hfi_sub(at_us, now.us));
    return wait_ms > 0 ? wait_ms : 1;
}
