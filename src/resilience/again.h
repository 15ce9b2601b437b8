/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_AGAIN_H
#define HFI_RESILIENCE_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "resilience/downstream.h"

/*
 * What the tries of one call have in common: hfi_decide's question, then the retry budget's, and what both leave
 * behind in the outcome and the counters. The call and hf_guard_run ask here and nowhere else. One thread at a time.
 */
struct hfi_again {
    struct hf_downstream *downstream; /* borrowed */
    const struct hf_policy *policy;   /* the one the call began with; its downstream keeps it */
    struct hf_mono deadline;          /* of the whole call */
    uint32_t retry_max;
    uint32_t retries;     /* scheduled so far */
    int64_t last_wait_ms; /* before the newest of them */
    bool fresh;           /* the newest wants a fresh connection */
    bool fresh_used;
};
void hfi_again_init(struct hfi_again *again, struct hf_downstream *downstream, const struct hf_policy *policy,
                    struct hf_mono deadline, bool no_retry);

/*
 * An attempt ended with `outcome`: another one? True: it is scheduled and paid for, `last_wait_ms` from now. False: the
 * outcome stands, its retry_after_ms is when to come back, and retry_refused says whether the budget was the reason
 * (R13, R14). `repeatable`: hf_may_repeat with the facts of all attempts.
 */
bool hfi_again(struct hfi_again *again, struct hf_outcome *outcome, bool repeatable, struct hf_mono now,
               uint64_t random);

/*
 * It is not let through, after `attempts` real ones. The failure they saw stays what it is, to be tried again when it
 * may; without any the rejection is the outcome.
 */
void hfi_again_refused(struct hf_outcome *outcome, uint32_t attempts, const struct hf_outcome *rejection);

#endif
