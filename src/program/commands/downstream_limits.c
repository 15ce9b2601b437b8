/* SPDX-License-Identifier: MIT */
/*
 * What a downstream's policy says, for `downstream show`: its limits in one line each, and when it is next tested. From
 * the configuration alone; must never ask the store. The main thread's.
 */
#include "program/commands/downstream_limits.h"

#include <stdio.h>

#include "holdfast/units.h"
#include "program/output.h"

#define SPAN(ms) hfi_show_span(ms, (char[HFI_SPAN_LENGTH]){0})

static const char *backoff_name(enum hf_backoff backoff) {
    static const char *const names[] = {
#define NAME(name, text) [HF_BACKOFF_##name] = text,
        HF_BACKOFF_MAP(NAME)
#undef NAME
    };
    return (size_t)backoff < sizeof names / sizeof *names ? names[backoff] : "unknown";
}

static const char *jitter_name(enum hf_jitter jitter) {
    static const char *const names[] = {
#define NAME(name, text) [HF_JITTER_##name] = text,
        HF_JITTER_MAP(NAME)
#undef NAME
    };
    return (size_t)jitter < sizeof names / sizeof *names ? names[jitter] : "unknown";
}

static void print_trips(const struct hf_policy_options *policy) {
    char run[64] = "", slow[96] = "";
    if (policy->breaker_consecutive > 0)
        snprintf(run, sizeof run, ", %u failures in a row", policy->breaker_consecutive);
    if (policy->breaker_slow_ratio > 0)
        snprintf(slow, sizeof slow, ", %g %% slower than %s", policy->breaker_slow_ratio * 100,
                 SPAN(policy->breaker_slow_after_ms));
    hfi_field("opens at", "%g %% failed of at least %u attempts in %s%s%s", policy->breaker_ratio * 100,
              policy->breaker_min_calls, SPAN(policy->breaker_window_ms), run, slow);
    hfi_field("breaks", "%s to %s, then %u probe%s (%u may fail) and a ramp of %s", SPAN(policy->breaker_break_ms),
              SPAN(policy->breaker_max_break_ms), policy->breaker_probes, policy->breaker_probes == 1 ? "" : "s",
              policy->breaker_tolerated, SPAN(policy->breaker_ramp_ms));
}

void hfi_limits_print(const struct hf_policy_options *policy) {
    hfi_field("limits", "connect %s, attempt %s, total %s", SPAN(policy->connect_timeout_ms),
              SPAN(policy->attempt_timeout_ms), SPAN(policy->total_timeout_ms));
    if (policy->retry_max > 0)
        hfi_field("retries", "%u, %s from %s up to %s, jitter %s; of all calls of %s %g %%, or %u", policy->retry_max,
                  backoff_name(policy->retry_backoff), SPAN(policy->retry_base_ms), SPAN(policy->retry_cap_ms),
                  jitter_name(policy->retry_jitter), SPAN(policy->budget_window_ms), policy->budget_ratio * 100,
                  policy->budget_floor);
    else
        hfi_field("retries", "none");
    print_trips(policy);
    hfi_field("at once", "%u attempts, %u calls may wait", policy->bulkhead_max, policy->bulkhead_queue);
}

json_t *hfi_limits_json(const struct hf_policy_options *policy) {
    json_t *object = json_object();
    hfi_json_number(object, "connect_timeout_ms", policy->connect_timeout_ms);
    hfi_json_number(object, "attempt_timeout_ms", policy->attempt_timeout_ms);
    hfi_json_number(object, "total_timeout_ms", policy->total_timeout_ms);
    hfi_json_number(object, "retry_max", policy->retry_max);
    hfi_json_number(object, "breaker_window_ms", policy->breaker_window_ms);
    hfi_json_real(object, "breaker_ratio", policy->breaker_ratio);
    hfi_json_number(object, "breaker_min_calls", policy->breaker_min_calls);
    hfi_json_number(object, "breaker_consecutive", policy->breaker_consecutive);
    hfi_json_number(object, "breaker_break_ms", policy->breaker_break_ms);
    hfi_json_number(object, "breaker_max_break_ms", policy->breaker_max_break_ms);
    hfi_json_number(object, "breaker_probes", policy->breaker_probes);
    hfi_json_number(object, "bulkhead_max", policy->bulkhead_max);
    hfi_json_number(object, "bulkhead_queue", policy->bulkhead_queue);
    return object;
}
