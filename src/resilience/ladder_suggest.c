/* SPDX-License-Identifier: MIT */
/*
 * Proposes the limits of a downstream from what its attempts took. Decides how a bound becomes a limit, and what the rest
 * of the ladder needs then; must never propose a number for which there are too few samples. Pure; any thread.
 */
#include "holdfast/ladder.h"

#include <math.h>

#include "base/clock.h"
#include "resilience/measured.h"
#include "resilience/policy.h"

#define STEP_UP 1.5               /* when the tail was never seen; also what is "a little later" */
#define CONNECT_LEAST_MS 1100     /* a lost SYN is sent again after a second: below that it costs the attempt */
#define ATTEMPT_LEAST_MS 100      /* below that a busy machine is taken for a sick downstream */
#define SLOW_KEEP 0.99
#define SLOW_RATIO 0.5
#define WINDOW_LEAST_MS 10000
#define WINDOW_MOST_MS 600000
#define WINDOW_CALLS 2            /* times min_calls: a window that is only just filled trips late */

/* Up, to two digits: 1234 to 1300. */
static int64_t round_up(double ms) {
    double step = ms < 100 ? 1 : pow(10, floor(log10(ms)) - 1);
    return (int64_t)(ceil(ms / step - 1e-9) * step);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void propose(const struct hf_measured *measured, enum hf_phase phase, double keep, int64_t now_ms, int64_t least_ms,
                    struct hf_proposal *proposal) {
    struct hfi_survival survival = hfi_measured_survival(measured, phase);
    *proposal = (struct hf_proposal){.basis = HF_BASIS_TOO_FEW, .now_ms = now_ms, .value_ms = now_ms, .quantile_us = -1,
                                     .bound_us = -1, .kept_now = -1};
    proposal->samples = hfi_survival_samples(&survival);
    proposal->needed = hfi_survival_needed(keep);
    if (proposal->samples < proposal->needed)
        return;
    proposal->kept_now = hfi_survival_share(&survival, hfi_ms_to_us(now_ms));
    proposal->quantile_us = hfi_survival_quantile(&survival, keep);
    proposal->bound_us = hfi_survival_bound(&survival, keep);
    if (proposal->bound_us >= 0) {
        proposal->basis = HF_BASIS_MEASURED;
        proposal->value_ms = larger(round_up((double)proposal->bound_us / 1000), least_ms);
    } else if (hfi_spread_total(survival.cut) > 0) {
        proposal->basis = HF_BASIS_CUT;
        proposal->value_ms = larger(round_up((double)now_ms * STEP_UP), least_ms);
    }
}

static struct hf_proposal derived(int64_t now_ms, int64_t value_ms) {
    return (struct hf_proposal){.basis = HF_BASIS_DERIVED, .now_ms = now_ms, .value_ms = value_ms, .quantile_us = -1,
                                .bound_us = -1, .kept_now = -1};
}

/* Nothing is known of the attempts: what follows from them stays too. */
static struct hf_proposal kept(const struct hf_suggestion *s, int64_t now_ms) {
    struct hf_proposal proposal = derived(now_ms, now_ms);
    proposal.basis = HF_BASIS_TOO_FEW;
    proposal.samples = s->attempt.samples;
    proposal.needed = s->attempt.needed;
    return proposal;
}

/* connect <= attempt: what was measured wins over what was kept for want of samples. */
static void put_in_order(struct hf_suggestion *s) {
    if (s->connect.value_ms <= s->attempt.value_ms)
        return;
    if (s->attempt.basis != HF_BASIS_TOO_FEW)
        s->connect.value_ms = s->attempt.value_ms;
    else
        s->attempt.value_ms = s->connect.value_ms;
}

static void fit_total(struct hf_suggestion *s) {
    struct hf_policy_figures figures;
    int64_t now_ms = s->policy.total_timeout_ms;
    if (s->attempt.basis == HF_BASIS_TOO_FEW && s->attempt.value_ms == s->attempt.now_ms) {
        s->total = kept(s, now_ms);
        return;
    }
    s->policy.total_timeout_ms = INT64_MAX / 4;
    hfi_policy_fit(&s->policy, &figures);
    int64_t need_ms = larger(round_up((double)figures.need_ms), s->policy.attempt_timeout_ms);
    if (s->policy.retry_max > 0)
        need_ms = larger(need_ms, s->policy.retry_cap_ms + s->policy.attempt_timeout_ms);
    s->total = derived(now_ms, need_ms);
    s->policy.total_timeout_ms = need_ms;
}

static void fit_window(const struct hf_measured *measured, struct hf_suggestion *s) {
    struct hf_policy_options *policy = &s->policy;
    uint64_t attempts = 0;
    for (int fate = 0; fate < HF_FATES; fate++)
        attempts = hfi_spread_sum(attempts, hf_measured_count(measured, HF_PHASE_ATTEMPT, (enum hf_fate)fate));
    s->rate_per_s = measured->hours > 0 ? (double)attempts / (double)measured->hours / 3600 : 0;
    if (s->attempt.basis == HF_BASIS_TOO_FEW && s->attempt.value_ms == s->attempt.now_ms) {
        s->window = kept(s, policy->breaker_window_ms);
        return;
    }
    double ms = 2 * (double)policy->attempt_timeout_ms, least = ms > WINDOW_LEAST_MS ? ms : WINDOW_LEAST_MS;
    if (s->rate_per_s > 0)
        ms = WINDOW_CALLS * (double)policy->breaker_min_calls / s->rate_per_s * 1000;
    else
        ms = (double)policy->breaker_window_ms;
    ms = ms < WINDOW_MOST_MS ? ms : WINDOW_MOST_MS;
    s->window = derived(policy->breaker_window_ms, round_up(ms > least ? ms : least));
    policy->breaker_window_ms = s->window.value_ms;
    if (policy->breaker_lease_ms > 0 && policy->breaker_lease_ms < policy->attempt_timeout_ms)
        policy->breaker_lease_ms = policy->attempt_timeout_ms + 10000;
}

/* Slow is what 99 % of the good ones are not, when that leaves room below the limit; else as it was. */
static void fit_slow(const struct hf_measured *measured, struct hf_suggestion *s) {
    struct hf_policy_options *policy = &s->policy;
    propose(measured, HF_PHASE_ATTEMPT, SLOW_KEEP, policy->breaker_slow_after_ms, 1, &s->slow_after);
    s->slow_ratio = policy->breaker_slow_ratio;
    if (s->slow_after.basis == HF_BASIS_MEASURED && s->slow_after.value_ms < policy->attempt_timeout_ms) {
        s->slow_ratio = s->slow_ratio > 0 ? s->slow_ratio : SLOW_RATIO;
    } else if (s->slow_after.basis != HF_BASIS_TOO_FEW) {
        s->slow_after.basis = HF_BASIS_CUT;
        s->slow_after.value_ms = s->slow_after.now_ms;
    }
    policy->breaker_slow_after_ms = s->slow_after.value_ms;
    policy->breaker_slow_ratio = s->slow_ratio;
}

int hf_ladder_suggest(const struct hf_measured *measured, const struct hf_policy_options *policy, double keep,
                      struct hf_suggestion *suggestion) {
    struct hf_suggestion s;
    if (measured == NULL || suggestion == NULL || suggestion->size < sizeof s || !(keep > 0 && keep < 1))
        return HF_EINVAL;
    hf_suggestion_init(&s);
    if (hfi_policy_take(policy, &s.policy) != 0)
        return HF_EINVAL;
    propose(measured, HF_PHASE_SETUP, keep, s.policy.connect_timeout_ms, CONNECT_LEAST_MS, &s.connect);
    propose(measured, HF_PHASE_ATTEMPT, keep, s.policy.attempt_timeout_ms, ATTEMPT_LEAST_MS, &s.attempt);
    put_in_order(&s);
    s.policy.connect_timeout_ms = s.connect.value_ms;
    s.policy.attempt_timeout_ms = s.attempt.value_ms;
    fit_total(&s);
    fit_window(measured, &s);
    fit_slow(measured, &s);
    *suggestion = s;
    return 0;
}

int hf_ladder_cut(const struct hf_measured *measured, const struct hf_policy_options *policy, enum hf_fate fate,
                  struct hf_cut *cut) {
    struct hf_policy_options whole;
    struct hfi_later later;
    if (measured == NULL || cut == NULL || cut->size < sizeof *cut || fate < HF_FATE_CUT_CONNECT || fate > HF_FATE_CUT_TOTAL)
        return HF_EINVAL;
    if (policy != NULL && hfi_policy_take(policy, &whole) != 0)
        return HF_EINVAL;
    hf_cut_init(cut);
    for (int i = 0; i < HF_FATES; i++)
        cut->attempts = hfi_spread_sum(cut->attempts, hf_measured_count(measured, HF_PHASE_ATTEMPT, (enum hf_fate)i));
    cut->cut = hf_measured_count(measured, HF_PHASE_ATTEMPT, fate);
    cut->later = cut->low = cut->high = -1;
    if (policy == NULL || fate == HF_FATE_CUT_TOTAL) /* it falls anywhere within an attempt: there is no one place to look before */
        return 0;
    bool connects = fate == HF_FATE_CUT_CONNECT;
    struct hfi_survival survival = hfi_measured_survival(measured, connects ? HF_PHASE_SETUP : HF_PHASE_ATTEMPT);
    int64_t limit_ms = connects ? whole.connect_timeout_ms : whole.attempt_timeout_ms;
    if (hfi_survival_later(&survival, hfi_ms_to_us(limit_ms), STEP_UP, &later)) {
        cut->later = later.share;
        cut->low = later.low;
        cut->high = later.high;
    }
    cut->reached = later.reached;
    cut->ended = later.ended;
    return 0;
}

#define NAME(name, text)                                                                                               \
    case HF_BASIS_##name:                                                                                              \
        return text;
const char *hf_basis_name(enum hf_basis basis) {
    switch (basis) { HF_BASIS_MAP(NAME) }
    return "unknown";
}
