/* SPDX-License-Identifier: MIT */
/*
 * One more try? Asks hfi_decide, and the retry budget last, so that only what is really scheduled is charged (R9). The
 * one place where a token is paid for. Must never wait by itself, nor count a refusal as a sample. Any thread.
 */
#include "resilience/again.h"

#include "base/text.h"
#include "resilience/decide.h"

void hfi_again_init(struct hfi_again *again, struct hf_downstream *downstream, const struct hf_policy *policy,
                    struct hf_mono deadline, bool no_retry) {
    *again = (struct hfi_again){.downstream = downstream,
                                .policy = policy,
                                .deadline = deadline,
                                .retry_max = no_retry ? 0 : policy->options.retry_max};
}

/* The failure stays what the peer made it; but that it was not tried again is our own doing, and says so (R14). */
static void refuse(struct hf_downstream *downstream, struct hf_mono now, struct hf_outcome *outcome) {
    int64_t refill_ms = hfi_budget_refill_ms(&downstream->budget, now);
    hfi_budget_count(&downstream->budget, HFI_BUDGET_REFUSED);
    outcome->retry_refused = true;
    outcome->retry_after_ms = refill_ms > outcome->retry_after_ms ? refill_ms : outcome->retry_after_ms;
    hfi_outcome_message(outcome, "%s%snot tried again: our own retry budget for %s is used up", outcome->message,
                        outcome->message[0] != '\0' ? "; " : "", downstream->name);
}

bool hfi_again(struct hfi_again *again, struct hf_outcome *outcome, bool repeatable, struct hf_mono now,
               uint64_t random) {
    struct hf_downstream *downstream = again->downstream;
    struct hfi_decide_in in = {.outcome = outcome,
                               .backoff = &again->policy->backoff,
                               .retries_done = again->retries,
                               .retry_max = again->retry_max,
                               .repeatable = repeatable,
                               .body_rewinds = true, /* it is in memory, or the function brings its own */
                               .fresh_used = again->fresh_used,
                               .now = now,
                               .deadline = again->deadline,
                               .min_attempt_ms = 1,
                               .last_wait_ms = again->last_wait_ms,
                               .random = random};
    struct hfi_decide_out out;
    hfi_decide(&in, &out);
    if (out.decision == HFI_RETURN) {
        outcome->retry_after_ms = out.not_before_ms;
        return false;
    }
    if (!hfi_budget_take(&downstream->budget, now)) {
        refuse(downstream, now, outcome);
        return false;
    }
    hfi_budget_count(&downstream->budget, HFI_BUDGET_RETRIES);
    again->retries++;
    again->last_wait_ms = out.wait_ms;
    again->fresh = out.fresh_connection;
    again->fresh_used = again->fresh_used || out.fresh_connection;
    return true;
}

void hfi_again_refused(struct hf_outcome *outcome, uint32_t attempts, const struct hf_outcome *rejection) {
    if (attempts == 0) {
        hfi_outcome_copy(outcome, rejection);
        return;
    }
    outcome->retry = HF_RETRY_LATER;
    if (rejection->retry_after_ms > outcome->retry_after_ms)
        outcome->retry_after_ms = rejection->retry_after_ms;
}
