/* SPDX-License-Identifier: MIT */
/*
 * Hedging: further attempts of the same try, after a delay without an answer or at once after a failure (R17). Only for
 * what may be repeated anyway, each paid from the retry budget. Must never fail a call: whatever stands in the way of
 * a hedge, the attempt it would have helped goes on (R18). On the scheduler's thread.
 */
#include "resilience/call_internal.h"

#define LIVE_SAMPLES 64 /* below it a p95 is the second slowest of a few */
#define LIVE_FLOOR_MS 10 /* however fast the peer: no shower of second attempts over a scheduler's hiccup */

uint32_t hfi_call_hedges(const struct hf_policy *policy, const struct hf_request *request, bool repeatable) {
    return repeatable && !request->no_hedge && !request->no_retry ? policy->options.hedge_max : 0;
}

static int64_t delay_ms(const struct hfi_call *call, struct hf_mono now) {
    const struct hf_policy_options *policy = &call->policy->options;
    int64_t live_us = policy->hedge_p95 ? hfi_downstream_recent(call->target->downstream, now, 950, LIVE_SAMPLES) : -1;
    if (live_us < 0)
        return policy->hedge_delay_ms;
    int64_t live_ms = hfi_us_to_ms_up(live_us);
    return live_ms > LIVE_FLOOR_MS ? live_ms : LIVE_FLOOR_MS;
}

void hfi_call_hedge_plan(struct hfi_call *call, struct hf_mono now) {
    call->not_before = now;
    call->hedges_left = call->slot_count - 1;
    if (call->hedges_left > 0)
        call->hedge_at = hfi_mono_after_ms(now, delay_ms(call, now));
}

/* A place that somebody waits for is not ours, a peer that asked to be left alone is. One that may not go is no
   call (R23), so the budget is looked at first, and charged last. */
static bool admit(struct hfi_call *call, struct hf_mono now, struct hf_permit *permit) {
    struct hf_downstream *downstream = call->target->downstream;
    if (now.us >= call->deadline.us || now.us < call->not_before.us || call->target->queued > 0 ||
        !hfi_budget_could(&downstream->budget, now))
        return false;
    if (hfi_downstream_ask(downstream, now, permit, NULL) != 0)
        return false;
    if (hfi_budget_take(&downstream->budget, now))
        return true;
    hfi_downstream_give_back(downstream, now, permit);
    return false;
}

void hfi_call_hedge(struct hfi_call *call, struct hf_mono now) {
    struct hf_downstream *downstream = call->target->downstream;
    struct hf_permit permit;
    if (call->hedges_left == 0)
        return;
    call->hedges_left--; /* one that may not go is not made up for */
    call->hedge_at = hfi_mono_after_ms(now, delay_ms(call, now));
    if (!admit(call, now, &permit))
        return;
    if (hfi_call_send(call, &permit, true, now) == 0)
        hfi_budget_count(&downstream->budget, HFI_BUDGET_HEDGES);
    else
        hfi_downstream_give_back(downstream, now, &permit);
}
