/* SPDX-License-Identifier: MIT */
/*
 * What a policy amounts to: the longest call, the try that is cut, the earliest trip (W12). Only adds up; what is wrong
 * with an option is policy_check.c's to say. Pure, any thread.
 */
#include "resilience/policy.h"

#include <math.h>

#include "base/clock.h"
#include "resilience/finding.h"

/* So many attempts, all of them failing, open it: the ratio needs min_calls first, a run of failures does not. */
static uint32_t trip_attempts(const struct hf_policy_options *options) {
    uint32_t by_ratio = options->breaker_min_calls;
    uint32_t by_run = options->breaker_consecutive;
    return by_run > 0 && by_run < by_ratio ? by_run : by_ratio;
}

/* The first of them fails at once in the best case, so n attempts are n - 1 gaps apart. */
static int64_t trip_ms(const struct hf_policy_options *options, uint32_t attempts) {
    if (!(options->declared_rate > 0))
        return -1;
    double ms = ceil((attempts - 1) * 1000.0 / options->declared_rate);
    return ms < (double)HFI_DURATION_MAX_MS ? (int64_t)ms : HFI_DURATION_MAX_MS;
}

/* The longest one try can take: a hedge starts with its delay, or as soon as the attempt before it has failed. */
static int64_t try_ms(const struct hf_policy_options *o) {
    bool later = o->hedge_p95 || o->hedge_delay_ms > o->attempt_timeout_ms;
    int64_t apart_ms = later ? o->attempt_timeout_ms : o->hedge_delay_ms;
    return hfi_add(o->attempt_timeout_ms, hfi_mul(o->hedge_max, apart_ms));
}

void hfi_policy_fit(const struct hf_policy_options *options, struct hf_policy_figures *figures) {
    struct hfi_backoff_rules rules;
    int64_t begin_ms = 0;
    hf_policy_figures_init(figures);
    figures->tries = options->retry_max + 1;
    figures->attempts = figures->tries * (1 + options->hedge_max);
    figures->try_ms = try_ms(options);
    figures->cut_at_ms = -1;
    hfi_policy_backoff(options, &rules);
    for (uint32_t try = 1; try <= figures->tries; try++) {
        if (try > 1)
            begin_ms = hfi_add(begin_ms, hfi_add(figures->try_ms, hfi_backoff_max_ms(&rules, try - 2)));
        if (figures->cut_try == 0 && hfi_add(begin_ms, figures->try_ms) > options->total_timeout_ms) {
            figures->cut_try = try;
            figures->cut_at_ms = begin_ms;
        }
    }
    figures->need_ms = hfi_add(begin_ms, figures->try_ms);
    figures->longest_call_ms =
        figures->need_ms < options->total_timeout_ms ? figures->need_ms : options->total_timeout_ms;
    figures->trip_attempts = trip_attempts(options);
    figures->trip_ms = trip_ms(options, figures->trip_attempts);
}

int hf_policy_figures(const struct hf_policy_options *options, struct hf_policy_figures *figures) {
    struct hf_policy_options whole;
    struct hf_policy_figures known;
    if (figures == NULL || figures->size < sizeof figures->size || hfi_policy_take(options, &whole) != 0)
        return HF_EINVAL;
    if (hf_policy_check(&whole, NULL, NULL) != 0)
        return HF_ECONFIG;
    hfi_policy_fit(&whole, &known);
    uint32_t size = figures->size < sizeof known ? figures->size : sizeof known;
    memcpy(figures, &known, size);
    figures->size = size;
    return 0;
}
