/* SPDX-License-Identifier: MIT */
/*
 * The retry budget of a downstream: how many retries may be scheduled beside the calls of the last seconds. A refusal
 * charges nothing and is no sample of anything. Must never be asked for a first try, nor for a job's next execution.
 * Any thread; only taking locks.
 */
#include "resilience/budget.h"

void hfi_budget_init(struct hfi_budget *budget, int64_t window_ms, uint32_t ratio_permille, uint32_t floor) {
    hfi_window_init(&budget->window, window_ms);
    budget->ratio_permille = ratio_permille;
    budget->floor = floor;
    pthread_mutex_init(&budget->taking, NULL);
}

void hfi_budget_end(struct hfi_budget *budget) {
    pthread_mutex_destroy(&budget->taking);
}

void hfi_budget_call(struct hfi_budget *budget, struct hf_mono now) {
    hfi_window_add(&budget->window, now, false, false);
}

static bool has_room(const struct hfi_budget *budget, const struct hfi_window_sum *sum) {
    uint64_t calls = sum->calls - sum->failures;
    uint64_t share = calls * budget->ratio_permille / 1000;
    return sum->failures < (share > budget->floor ? share : budget->floor);
}

bool hfi_budget_take(struct hfi_budget *budget, struct hf_mono now) {
    pthread_mutex_lock(&budget->taking);
    struct hfi_window_sum sum = hfi_window_read(&budget->window, now);
    bool granted = has_room(budget, &sum);
    if (granted)
        hfi_window_add(&budget->window, now, true, false);
    pthread_mutex_unlock(&budget->taking);
    return granted;
}

int64_t hfi_budget_refill_ms(struct hfi_budget *budget, struct hf_mono now) {
    int64_t slice_us = budget->window.slice_us;
    int64_t at_us = now.us > 0 ? now.us : 0;
    for (int slice = 0; slice < HFI_WINDOW_SLICES; slice++) {
        struct hfi_window_sum sum = hfi_window_peek(&budget->window, (struct hf_mono){at_us});
        if (has_room(budget, &sum))
            break;
        at_us = hfi_mul(at_us / slice_us + 1, slice_us); /* counts change only when a slice leaves */
    }
    int64_t wait_ms = hfi_us_to_ms_up(hfi_sub(at_us, now.us));
    return wait_ms > 0 ? wait_ms : 1;
}
