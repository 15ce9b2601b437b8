/* SPDX-License-Identifier: MIT */
/*
 * The ladder check of a job type together with its downstream: do the call's limits fit the execution, and how many
 * real calls and how much time can one job cost at worst? It only looks. Pure, any thread.
 */
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "resilience/finding.h"
#include "resilience/policy.h"

#define TEXT(ms) hfi_duration_print(ms, (char[HFI_DURATION_ROOM]){0})

/* The waits between all executions, the last one of the curve reused [S0.7]. */
static int64_t waits_ms(const struct hf_ladder *ladder) {
    int64_t sum = 0;
    uint64_t gaps = ladder->max_executions > 0 ? ladder->max_executions - 1 : 0;
    uint64_t listed = gaps < ladder->curve_length ? gaps : ladder->curve_length;
    for (uint64_t i = 0; i < listed; i++)
        sum = hfi_add(sum, ladder->curve_ms[i]);
    if (ladder->curve_length > 0 && gaps > listed)
        sum = hfi_add(sum, hfi_mul((int64_t)(gaps - listed), ladder->curve_ms[ladder->curve_length - 1]));
    return sum;
}

/* The longest one execution can take, 0 when nothing limits it. */
static int64_t execution_ms(const struct hf_ladder *ladder, const struct hf_policy_options *policy) {
    int64_t limit = ladder->execution_timeout_ms;
    if (policy == NULL)
        return limit;
    return limit > 0 && limit < policy->total_timeout_ms ? limit : policy->total_timeout_ms;
}

/* Saturating: the widest factors of all layers do not fit. */
static uint64_t multiply(uint64_t a, uint64_t b) {
    return a > 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

/* Of one execution, at most (V12). */
static uint64_t attempts_of(const struct hf_policy_options *policy) {
    return multiply((uint64_t)policy->retry_max + 1, (uint64_t)policy->hedge_max + 1);
}

static void work_out(struct hf_ladder *ladder, const struct hf_policy_options *policy) {
    uint64_t attempts = policy == NULL ? 0 : attempts_of(policy);
    /* What may not be repeated reaches the peer once: every further try needs proof that nothing was sent. */
    uint64_t sent = ladder->repeatable ? multiply(ladder->max_executions, attempts) : attempts > 0 ? 1 : 0;
    ladder->worst_calls = multiply(sent, (uint64_t)ladder->redirects + 1); /* each hop is a request */
    ladder->time_to_death_ms = hfi_add(waits_ms(ladder), hfi_mul(ladder->max_executions, execution_ms(ladder, policy)));
}

static bool check_own(const struct hf_ladder *ladder, struct hfi_findings *f) {
    int before = f->errors;
    if (ladder->max_executions < 1)
        hfi_find(f, true, "job.max_executions", "max_executions", "at least 1", "0 executions never run the job");
    if (ladder->execution_timeout_ms < 0 || ladder->execution_timeout_ms > HFI_DURATION_MAX_MS)
        hfi_find(f, true, "ladder.range", "execution_timeout", "a duration below ten years, 0 for none",
                 "it is %lld ms", (long long)ladder->execution_timeout_ms);
    if (ladder->curve_length > 0 && ladder->curve_ms == NULL)
        hfi_find(f, true, "job.curve", "curve", "give the waits", "it has a length but no waits");
    for (uint32_t i = 0; ladder->curve_ms != NULL && i < ladder->curve_length; i++)
        /* the table of a formula goes on beyond the waits that its executions have */
        if (ladder->curve_ms[i] < 0 || (i + 1 < ladder->max_executions && ladder->curve_ms[i] > HFI_DURATION_MAX_MS))
            hfi_find(f, true, "job.curve", "curve", "each wait from 0 to ten years", "wait %u is %lld ms", i + 1,
                     (long long)ladder->curve_ms[i]);
    return f->errors == before;
}

static void find_too_many(const struct hf_ladder *ladder, const struct hf_policy_options *policy,
                          struct hfi_findings *f) {
    char hops[80] = "";
    uint64_t each = (uint64_t)ladder->redirects + 1, executions = ladder->repeatable ? ladder->max_executions : 1;
    if (each > 1)
        snprintf(hops, sizeof hops, ", each of %llu requests with its redirects,", (unsigned long long)each);
    hfi_find(f, true, "ladder.calls", "max_calls_per_job",
             "lower max_executions, retry.max, hedge.max or redirects.max, or raise max_calls_per_job if the downstream "
             "can bear it",
             "%llu execution%s of %llu attempt%s%s make %llu real calls for one job, %llu are allowed",
             (unsigned long long)executions, executions == 1 ? "" : "s",
             (unsigned long long)(ladder->repeatable ? attempts_of(policy) : 1),
             ladder->repeatable && attempts_of(policy) > 1 ? "s" : "", hops, (unsigned long long)ladder->worst_calls,
             (unsigned long long)ladder->max_calls_per_job);
}

static void check_both(const struct hf_ladder *ladder, const struct hf_policy_options *policy, struct hfi_findings *f) {
    if (ladder->execution_timeout_ms > 0 && policy->total_timeout_ms >= ladder->execution_timeout_ms)
        hfi_find(f, true, "ladder.execution", "execution_timeout", "above the downstream's total_timeout",
                 "a call may take %s, the execution only %s: it would be cut before its outcome is known",
                 TEXT(policy->total_timeout_ms), TEXT(ladder->execution_timeout_ms));
    if (ladder->worst_calls > ladder->max_calls_per_job)
        find_too_many(ladder, policy, f);
    if (!ladder->repeatable && policy->hedge_max > 0) /* V11 */
        hfi_find(f, true, "ladder.hedge", "repeatable", "set hedge.max of the downstream to 0, or repeatable to true",
                 "a hedge is a second call, and this type must not make one");
    int64_t last_ms = ladder->curve_length > 0 ? ladder->curve_ms[ladder->curve_length - 1] : INT64_MAX;
    if (policy->retry_after_cap_ms > last_ms)
        hfi_find(f, false, "ladder.retry_after", "retry_after.cap",
                 "lower it to the curve's last wait, or add a longer wait to the curve",
                 "a Retry-After may move a job by %s, the curve's last wait is %s: it is clamped to %s",
                 TEXT(policy->retry_after_cap_ms), TEXT(last_ms), TEXT(last_ms));
}

int hf_ladder_check(struct hf_ladder *ladder, hf_finding_fn report, void *user) {
    struct hf_ladder whole;
    struct hf_policy_options policy;
    struct hfi_findings findings = {report, user, 0};
    if (ladder == NULL || ladder->size < offsetof(struct hf_ladder, worst_calls))
        return HF_EINVAL;
    hf_ladder_init(&whole);
    memcpy(&whole, ladder, ladder->size < sizeof whole ? ladder->size : sizeof whole);
    if (whole.policy != NULL && hfi_policy_take(whole.policy, &policy) != 0)
        return HF_EINVAL;
    const struct hf_policy_options *called = whole.policy != NULL ? &policy : NULL;
    if (check_own(&whole, &findings)) {
        work_out(&whole, called);
        if (called != NULL)
            check_both(&whole, called, &findings);
    }
    uint32_t size = ladder->size;
    memcpy(ladder, &whole, size < sizeof whole ? size : sizeof whole);
    ladder->size = size;
    return findings.errors;
}
