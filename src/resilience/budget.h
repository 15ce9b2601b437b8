/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BUDGET_H
#define HFI_RESILIENCE_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "resilience/window.h"

/*
 * The retry budget of one downstream: retries scheduled in the window ≤ max(floor, ratio × first tries of the window).
 * Charged when a retry is scheduled (R9) and never given back: a retry that was sent has cost the peer what it costs,
 * however it ended, and time refills it (R11, R12). Any thread; a call takes no lock but once a slice, a retry does, so
 * that no crowd overdraws it.
 */
struct hfi_budget {
    _Atomic uint64_t calls;   /* first tries since the start */
    _Atomic int64_t turn_us;  /* from then on the window has to be turned before a call */
    pthread_mutex_t lock;     /* guards what follows */
    uint64_t retries;
    struct hfi_window window; /* calls, retries */
    int64_t window_ms;
    uint32_t ratio_permille, floor;
};
int hfi_budget_init(struct hfi_budget *budget, int64_t window_ms, uint32_t ratio_permille, uint32_t floor); /* 0 or HF_ENOMEM */
void hfi_budget_end(struct hfi_budget *budget);
/* Goes on with other numbers, in two steps: `fresh` gets the memory that another window needs (0, or HF_ENOMEM), then they
   are taken over for good, with `fresh`. What was counted stays unless the window's length changed (R16). */
int hfi_budget_prepare(struct hfi_budget *budget, int64_t window_ms, struct hfi_window *fresh);
void hfi_budget_reload(struct hfi_budget *budget, struct hf_mono now, struct hfi_window *fresh, int64_t window_ms,
                       uint32_t ratio_permille, uint32_t floor);
void hfi_budget_call(struct hfi_budget *budget, struct hf_mono now);       /* a first try */
bool hfi_budget_take(struct hfi_budget *budget, struct hf_mono now);       /* a retry; false: refused, nothing charged */
bool hfi_budget_could(struct hfi_budget *budget, struct hf_mono now);      /* would a take succeed? Charges nothing */
int64_t hfi_budget_refill_ms(struct hfi_budget *budget, struct hf_mono now); /* until a take could succeed again, ≥ 1 */

#endif
