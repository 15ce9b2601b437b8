/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BUDGET_H
#define HFI_RESILIENCE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"
#include "resilience/window.h"

/*
 * The retry budget of one downstream: retries scheduled in the window ≤ max(floor, ratio × first tries of the window).
 * Charged when a retry is scheduled (R9) and never given back: a retry that was sent has cost the peer what it costs,
 * however it ended, and time refills it (R11, R12). Any thread; a call takes no lock but once a slice, a retry does, so
 * that no crowd overdraws it. What only retries need is allocated with the first of them: without memory there is none.
 */
enum hfi_budget_count { HFI_BUDGET_RETRIES, HFI_BUDGET_REFUSED, HFI_BUDGET_HEDGES, HFI_BUDGET_COUNTS };

struct hfi_budget_more {
    uint64_t charged;                             /* under the lock */
    _Atomic uint64_t counts[HFI_BUDGET_COUNTS];   /* what came of it: told, not decided by */
    uint32_t charged_window[HFI_WINDOW_WORDS(HFI_WINDOW_SLICES, 1)];
};

struct hfi_budget {
    _Atomic uint64_t calls;  /* first tries since the start */
    _Atomic int64_t turn_us; /* from then on the windows have to be turned before a call */
    struct hfi_budget_more *_Atomic more;
    int64_t slice_us;        /* guarded by the lock, as what follows */
    uint32_t floor;
    uint16_t ratio_permille;
    struct hfi_lock lock;
    uint32_t calls_window[HFI_WINDOW_WORDS(HFI_WINDOW_SLICES, 1)];
};
void hfi_budget_init(struct hfi_budget *budget, int64_t window_ms, uint32_t ratio_permille, uint32_t floor);
void hfi_budget_end(struct hfi_budget *budget);
/* Goes on with other numbers. What was counted stays unless the window's length changed (R16). */
void hfi_budget_reload(struct hfi_budget *budget, struct hf_mono now, int64_t window_ms, uint32_t ratio_permille,
                       uint32_t floor);
void hfi_budget_call(struct hfi_budget *budget, struct hf_mono now);       /* a first try */
bool hfi_budget_take(struct hfi_budget *budget, struct hf_mono now);       /* a retry; false: refused, nothing charged */
bool hfi_budget_could(struct hfi_budget *budget, struct hf_mono now);      /* would a take succeed? Charges nothing */
int64_t hfi_budget_refill_ms(struct hfi_budget *budget, struct hf_mono now); /* until a take could succeed again, ≥ 1 */
double hfi_budget_left(struct hfi_budget *budget, struct hf_mono now); /* share of what may be charged now, 0 … 1 */

uint64_t hfi_budget_charged(struct hfi_budget *budget); /* takes that succeeded since the start */
/* What came of a take. A refusal for want of memory may be missing. */
void hfi_budget_count(struct hfi_budget *budget, enum hfi_budget_count what);
uint64_t hfi_budget_counted(const struct hfi_budget *budget, enum hfi_budget_count what);

#endif
