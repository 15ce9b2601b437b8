/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BUDGET_H
#define HFI_RESILIENCE_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "resilience/window.h"

/*
 * The retry budget of one downstream: retries scheduled in the window ≤ max(floor, ratio × calls of the window).
 * Charged when a retry is scheduled (R9). Any thread; calls take no lock, takes one, so that no crowd overdraws it. In the
 * window `calls` are first tries and retries together, `failures` the retries.
 */
struct hfi_budget {
    struct hfi_window window;
    uint32_t ratio_permille, floor;
    pthread_mutex_t taking;
};
void hfi_budget_init(struct hfi_budget *budget, int64_t window_ms, uint32_t ratio_permille, uint32_t floor);
void hfi_budget_end(struct hfi_budget *budget);
void hfi_budget_call(struct hfi_budget *budget, struct hf_mono now);       /* a first try */
bool hfi_budget_take(struct hfi_budget *budget, struct hf_mono now);       /* a retry; false: refused, nothing charged */
int64_t hfi_budget_refill_ms(struct hfi_budget *budget, struct hf_mono now); /* until a take could succeed again, ≥ 1 */

#endif
