/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_DOWNSTREAM_H
#define HFI_RESILIENCE_DOWNSTREAM_H

#include <stdatomic.h>

#include "base/clock.h"
#include "resilience/breaker.h"
#include "resilience/budget.h"
#include "resilience/bulkhead.h"
#include "resilience/histogram.h"
#include "resilience/outcome.h"
#include "resilience/policy.h"

/* All that is shared by the calls to one downstream. Reference counted; any thread. */
struct hf_downstream {
    _Atomic uint32_t references;
    struct hf_policy *policy;
    struct hfi_breaker breaker;
    struct hfi_budget budget;
    struct hfi_bulkhead bulkhead;
    struct hfi_histogram histogram;
    _Atomic uint64_t rejections, retries, retries_refused; /* attempts: the histogram's total */
    hfi_breaker_fn _Atomic on_change; /* one observer besides the log: the runner. Set before calls start */
    void *user;
    char name[121];
};

/* The rejection as an outcome: `breaker.open`, `breaker.half_open`, `breaker.ramp`, `breaker.isolated`, `downstream.gate`. */
void hfi_admission_outcome(enum hfi_admission admission, int64_t retry_after_ms, struct hf_outcome *outcome);

/* The pair every attempt goes through, with the clock handed in: breaker, then bulkhead. 0 or HF_EREJECTED (`rejection` filled). */
int hfi_downstream_enter(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         struct hf_outcome *rejection);
int hfi_downstream_leave(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         const struct hf_outcome *outcome);
/* The same for who knows a verdict only. */
int hfi_downstream_leave_as(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                            enum hf_verdict verdict);
/* An attempt that was entered and never started: neutral, no latency. */
void hfi_downstream_give_back(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit);
/* hf_downstream_look with the clock handed in. */
void hfi_downstream_view(struct hf_downstream *downstream, struct hf_mono now, struct hf_downstream_view *view);
/* How many attempts it would admit now: min of breaker allowance and free bulkhead slots; 0 while gated. `retry_after_ms` when 0. */
uint32_t hfi_downstream_allowance(struct hf_downstream *downstream, struct hf_mono now, int64_t *retry_after_ms);

#endif
