/* SPDX-License-Identifier: MIT */
/*
 * The pipeline for any function, on the caller's own thread: enter and leave for one attempt, and the whole of total,
 * retries, budget, breaker and bulkhead around a function. The one place of this half that reads the clock, because its
 * callers have no scheduler. Must never run on a thread that turns a loop. Any other thread.
 */
#include "holdfast/guard.h"

#include <errno.h>
#include <time.h>

#include "base/blocking.h"
#include "base/random.h"
#include "base/text.h"
#include "resilience/again.h"

int hf_guard_enter(struct hf_downstream *downstream, struct hf_permit *permit, struct hf_outcome *rejection) {
    if (downstream == NULL || permit == NULL)
        return HF_EINVAL;
    return hfi_downstream_enter(downstream, hfi_mono_now(), permit, rejection);
}

int hf_guard_leave(struct hf_downstream *downstream, struct hf_permit *permit, enum hf_verdict verdict) {
    if (downstream == NULL || permit == NULL)
        return HF_EINVAL;
    return hfi_downstream_leave_as(downstream, hfi_mono_now(), permit, verdict);
}

static void sleep_until(int64_t at_us) {
    struct timespec at = {.tv_sec = (time_t)(at_us / 1000000), .tv_nsec = (long)(at_us % 1000000) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

/* One attempt: permission, the function, the report. */
static int attempt(struct hf_downstream *downstream, int64_t deadline_us, hf_guarded_fn run, struct hf_outcome *outcome,
                   void *user) {
    struct hf_permit permit;
    struct hf_mono now = hfi_mono_now();
    int code = hfi_downstream_enter(downstream, now, &permit, outcome);
    if (code != 0)
        return code;
    int64_t limit_us = hfi_mono_after_ms(now, downstream->policy->options.attempt_timeout_ms).us;
    hfi_outcome_init(outcome);
    run(limit_us < deadline_us ? limit_us : deadline_us, outcome, user);
    if (!outcome->touched) { /* who says nothing has failed [S0.1] */
        hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_NOW, HF_VERDICT_FAILURE, HF_CLASS_TRANSIENT,
                        "guard.no_outcome", "guard.no_outcome");
        hfi_outcome_message(outcome, "the guarded function returned without an outcome");
        outcome->stage = HF_STAGE_HANDLER;
    }
    struct hf_mono end = hfi_mono_now();
    outcome->phases.total_us = hfi_sub(end.us, now.us);
    return hfi_downstream_leave(downstream, end, &permit, outcome);
}

int hf_guard_run(struct hf_downstream *downstream, hf_guarded_fn run, struct hf_outcome *outcome, void *user) {
    if (downstream == NULL || run == NULL || outcome == NULL)
        return HF_EINVAL;
    if (!hfi_may_block())
        return HF_EDEADLK;
    const struct hf_policy_options *policy = &downstream->policy->options;
    struct hf_mono start = hfi_mono_now();
    struct hfi_again again;
    struct hfi_random random;
    uint32_t attempts = 0;
    hfi_again_init(&again, downstream, hfi_mono_after_ms(start, policy->total_timeout_ms), policy->retry_max);
    /* Any two runs differ: their time, their place on the stack. Jitter needs no more. */
    hfi_random_seed(&random, (uint64_t)start.us ^ (uint64_t)(uintptr_t)&again ^ (uint64_t)(uintptr_t)downstream);
    hfi_budget_call(&downstream->budget, start);
    while (attempt(downstream, again.deadline.us, run, outcome, user) != HF_EREJECTED) {
        struct hf_mono now = hfi_mono_now();
        attempts++;
        if (!hfi_again(&again, outcome, true, now, hfi_random_next(&random)))
            break;
        sleep_until(hfi_mono_after_ms(now, again.last_wait_ms).us);
    }
    outcome->attempts = attempts;
    outcome->retries = again.retries;
    return 0;
}

void hf_downstream_look(const struct hf_downstream *downstream, struct hf_downstream_view *view) {
    /* The lock inside is taken and given back: to the caller nothing changes. */
    hfi_downstream_view((struct hf_downstream *)(uintptr_t)downstream, hfi_mono_now(), view);
}

int hf_downstream_isolate(struct hf_downstream *downstream, int64_t for_ms, const char *reason) {
    if (downstream == NULL || for_ms < 0 || reason == NULL || reason[0] == '\0')
        return HF_EINVAL;
    hfi_breaker_isolate(&downstream->breaker, hfi_mono_now(), for_ms, reason);
    return 0;
}

int hf_downstream_close(struct hf_downstream *downstream) {
    if (downstream == NULL)
        return HF_EINVAL;
    hfi_breaker_close(&downstream->breaker, hfi_mono_now());
    return 0;
}
