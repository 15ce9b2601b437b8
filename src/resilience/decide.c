/* SPDX-License-Identifier: MIT */
/*
 * Decides after each attempt whether the call returns or tries again, and after what wait. The only place that does.
 * Must never charge the budget: the caller asks it after HFI_RETRY, as the last question. Pure, any thread.
 */
#include "resilience/decide.h"

static void end(struct hfi_decide_out *out, const char *why, int64_t not_before_ms) {
    out->decision = HFI_RETURN;
    out->wait_ms = 0;
    out->fresh_connection = false;
    out->not_before_ms = not_before_ms;
    out->why = why;
}

/* Why this end is final, NULL when it is a failure worth another try. */
static const char * final(const struct hfi_decide_in *in) {
    switch (in->outcome->kind) {
    case HF_OUTCOME_SUCCESS:
        return "success";
    case HF_OUTCOME_NEUTRAL:
        return "neutral";
    case HF_OUTCOME_REJECTED:
        return "rejected"; /* waiting for a breaker is the job's business, not a call's (S0.30) */
    case HF_OUTCOME_FAILURE:
        break;
    }
    if (in->outcome->retry == HF_RETRY_LATER)
        return "later";
    if (in->outcome->retry != HF_RETRY_NOW && in->outcome->retry != HF_RETRY_FRESH)
        return "verdict";
    if (!in->repeatable)
        return "not_repeatable";
    if (!in->body_rewinds)
        return "body";
    if (in->outcome->retry == HF_RETRY_FRESH && in->fresh_used)
        return "fresh_used";
    if (in->retries_done >= in->retry_max)
        return "tries";
    return NULL;
}

bool hfi_decide_settles(const struct hf_outcome *outcome) {
    if (outcome->kind == HF_OUTCOME_FAILURE)
        return outcome->retry == HF_RETRY_NONE;
    return outcome->kind != HF_OUTCOME_REJECTED;
}

bool hfi_decide_hedge(const struct hf_outcome *outcome) {
    return outcome->kind == HF_OUTCOME_FAILURE && outcome->retry == HF_RETRY_NOW && outcome->retry_after_ms <= 0;
}

void hfi_decide(const struct hfi_decide_in *in, struct hfi_decide_out *out) {
    int64_t asked_ms = in->outcome->retry_after_ms;
    const char *why = final(in);
    if (why != NULL) {
        end(out, why, in->outcome->kind == HF_OUTCOME_SUCCESS ? -1 : asked_ms);
        return;
    }
    int64_t own_ms = hfi_backoff_ms(in->backoff, in->retries_done, in->last_wait_ms, in->random);
    int64_t wait_ms = asked_ms > own_ms ? asked_ms : own_ms; /* never early (A2), a short header never wins (A5) */
    int64_t need_ms = hfi_add(wait_ms, in->min_attempt_ms > 0 ? in->min_attempt_ms : 1);
    int64_t left_us = hfi_sub(in->deadline.us, in->now.us);
    if (left_us < hfi_ms_to_us(need_ms)) {
        end(out, asked_ms >= own_ms ? "retry_after" : "deadline", asked_ms);
        return;
    }
    out->decision = HFI_RETRY;
    out->wait_ms = wait_ms;
    out->fresh_connection = in->outcome->retry == HF_RETRY_FRESH;
    out->not_before_ms = -1;
    out->why = "retry";
}
