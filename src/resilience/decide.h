/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_DECIDE_H
#define HFI_RESILIENCE_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "resilience/backoff.h"
#include "resilience/outcome.h"

/*
 * After an attempt ended: return the outcome, or try again after a wait? The one place that decides it. Pure.
 * In this order: success or neutral or rejected ends it; verdict NONE or LATER ends it; not repeatable and maybe sent
 * ends it; tries used up end it; a wait (max of backoff and Retry-After) that leaves no time for an attempt within the
 * deadline ends it now with not_before; the budget is asked last and only then charged.
 */
struct hfi_decide_in {
    const struct hf_outcome *outcome;
    const struct hfi_backoff_rules *backoff;
    uint32_t retries_done, retry_max;
    bool repeatable;        /* hf_may_repeat with the facts of this attempt */
    bool body_rewinds;
    bool fresh_used;        /* a try on a fresh connection was made already */
    struct hf_mono now, deadline;
    int64_t min_attempt_ms; /* a try is not worth starting with less left: 1 */
    int64_t last_wait_ms;
    uint64_t random;
};
enum hfi_decision { HFI_RETURN, HFI_RETRY };
struct hfi_decide_out {
    enum hfi_decision decision;
    int64_t wait_ms;        /* RETRY: before the next try */
    bool fresh_connection;
    int64_t not_before_ms;  /* RETURN: -1 or the wait handed to the job's curve */
    const char *why;        /* stable id: "success", "verdict", "not_repeatable", "tries", "deadline", "retry_after" … */
};
void hfi_decide(const struct hfi_decide_in *in, struct hfi_decide_out *out);
/* With hedges, several attempts of one try are on the wire. Does this end of one of them end the try? Only a failure that
   may be tried again waits for the others, and a refusal of our own. */
bool hfi_decide_settles(const struct hf_outcome *outcome);
/* Is it a failure after which the next hedge goes at once? Not after one that names a wait. */
bool hfi_decide_hedge(const struct hf_outcome *outcome);

#endif
