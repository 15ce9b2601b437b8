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

#define NAME_OF(map, value, enumerator)                                                                                \
    ((size_t)(value) < sizeof (const char *[]){map(enumerator)} / sizeof(char *)                                       \
         ? (const char *[]){map(enumerator)}[value]                                                                    \
         : "unknown")
#define TEXT(name, text) text,

static const char *backoff_name(enum hf_backoff backoff) {
    return NAME_OF(HF_BACKOFF_MAP, backoff, TEXT);
}

static const char *jitter_name(enum hf_jitter jitter) {
    return NAME_OF(HF_JITTER_MAP, jitter, TEXT);
}

static void print_retries(const struct hf_policy_options *policy) {
    char waits[HF_BACKOFF_TABLE_MAX * (HFI_SPAN_LENGTH + 2)] = "";
    size_t at = 0;
    if (policy->retry_max == 0) {
        hfi_field("retries", "none");
        return;
    }
    if (policy->retry_backoff == HF_BACKOFF_TABLE)
        for (uint32_t i = 0; i < policy->retry_table_length && i < HF_BACKOFF_TABLE_MAX; i++)
            at += (size_t)snprintf(waits + at, sizeof waits - at, "%s%s", i > 0 ? ", " : "", SPAN(policy->retry_table_ms[i]));
    else
        snprintf(waits, sizeof waits, "from %s up to %s", SPAN(policy->retry_base_ms), SPAN(policy->retry_cap_ms));
    hfi_field("retries", "%u, %s %s, jitter %s; of all calls of %s %g %%, or %u", policy->retry_max,
              backoff_name(policy->retry_backoff), waits, jitter_name(policy->retry_jitter), SPAN(policy->budget_window_ms),
              policy->budget_ratio * 100, policy->budget_floor);
}

static void print_hedges(const struct hf_policy_options *policy) {
    if (policy->hedge_max == 0)
        hfi_field("hedges", "none");
    else
        hfi_field("hedges", "%u beside each try, after %s%s", policy->hedge_max, policy->hedge_p95 ? "its p95, until known " : "",
                  SPAN(policy->hedge_delay_ms));
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

static void print_rate(const struct hf_policy_options *policy) {
    char burst[32] = "a tenth of a second's worth";
    if (policy->rate_burst > 0)
        snprintf(burst, sizeof burst, "%u", policy->rate_burst);
    if (policy->rate_per_s > 0)
        hfi_field("rate", "%g/s, a burst of %s", policy->rate_per_s, burst);
    else
        hfi_field("rate", "no limit");
}

void hfi_limits_print(const struct hf_policy_options *policy) {
    hfi_field("limits", "connect %s, attempt %s, total %s", SPAN(policy->connect_timeout_ms),
              SPAN(policy->attempt_timeout_ms), SPAN(policy->total_timeout_ms));
    print_retries(policy);
    print_hedges(policy);
    print_trips(policy);
    hfi_field("at once", "%u attempts, %u calls may wait", policy->bulkhead_max, policy->bulkhead_queue);
    print_rate(policy);
    if (policy->gate_scope == HF_GATE_CALL)
        hfi_field("retry after", "a job waits up to %s, nobody else does", SPAN(policy->retry_after_cap_ms));
    else
        hfi_field("retry after", "a job waits up to %s, everybody up to %s", SPAN(policy->retry_after_cap_ms),
                  SPAN(policy->gate_cap_ms));
    hfi_field("jobs", "%s while it is open; one kept back for %s is dead",
              policy->on_open == HF_ON_OPEN_PARK ? "parked" : "fail along their curve", SPAN(policy->give_up_after_ms));
}

static void add_breaker(json_t *object, const struct hf_policy_options *policy) {
    hfi_json_number(object, "breaker_window_ms", policy->breaker_window_ms);
    hfi_json_number(object, "breaker_slices", policy->breaker_slices);
    hfi_json_real(object, "breaker_ratio", policy->breaker_ratio);
    hfi_json_number(object, "breaker_min_calls", policy->breaker_min_calls);
    hfi_json_number(object, "breaker_consecutive", policy->breaker_consecutive);
    hfi_json_real(object, "breaker_slow_ratio", policy->breaker_slow_ratio);
    hfi_json_number(object, "breaker_slow_after_ms", policy->breaker_slow_after_ms);
    hfi_json_number(object, "breaker_break_ms", policy->breaker_break_ms);
    hfi_json_number(object, "breaker_max_break_ms", policy->breaker_max_break_ms);
    hfi_json_real(object, "breaker_break_factor", policy->breaker_break_factor);
    hfi_json_real(object, "breaker_break_jitter", policy->breaker_break_jitter);
    hfi_json_number(object, "breaker_probes", policy->breaker_probes);
    hfi_json_number(object, "breaker_tolerated", policy->breaker_tolerated);
    hfi_json_number(object, "breaker_ramp_ms", policy->breaker_ramp_ms);
    hfi_json_number(object, "breaker_lease_ms",
                    policy->breaker_lease_ms > 0 ? policy->breaker_lease_ms : policy->attempt_timeout_ms + 10000);
    hfi_json_flag(object, "breaker_429_failure", policy->breaker_429_failure);
}

static void add_retries(json_t *object, const struct hf_policy_options *policy) {
    json_t *waits = json_array();
    hfi_json_number(object, "retry_max", policy->retry_max);
    hfi_json_text(object, "retry_backoff", backoff_name(policy->retry_backoff));
    hfi_json_number(object, "retry_base_ms", policy->retry_base_ms);
    hfi_json_real(object, "retry_factor", policy->retry_factor);
    hfi_json_number(object, "retry_cap_ms", policy->retry_cap_ms);
    for (uint32_t i = 0; i < policy->retry_table_length && i < HF_BACKOFF_TABLE_MAX; i++)
        json_array_append_new(waits, json_integer(policy->retry_table_ms[i]));
    json_object_set_new(object, "retry_table_ms", waits);
    hfi_json_text(object, "retry_jitter", jitter_name(policy->retry_jitter));
    hfi_json_real(object, "retry_jitter_factor", policy->retry_jitter_factor);
    hfi_json_real(object, "budget_ratio", policy->budget_ratio);
    hfi_json_number(object, "budget_floor", policy->budget_floor);
    hfi_json_number(object, "budget_window_ms", policy->budget_window_ms);
    hfi_json_number(object, "hedge_max", policy->hedge_max);
    hfi_json_number(object, "hedge_delay_ms", policy->hedge_delay_ms);
    hfi_json_flag(object, "hedge_p95", policy->hedge_p95);
    hfi_json_number(object, "retry_after_cap_ms", policy->retry_after_cap_ms);
    hfi_json_number(object, "gate_cap_ms", policy->gate_cap_ms);
    hfi_json_text(object, "gate_scope", policy->gate_scope == HF_GATE_CALL ? "call" : "downstream");
}

json_t *hfi_limits_json(const struct hf_policy_options *policy) {
    json_t *object = json_object();
    hfi_json_number(object, "connect_timeout_ms", policy->connect_timeout_ms);
    hfi_json_number(object, "attempt_timeout_ms", policy->attempt_timeout_ms);
    hfi_json_number(object, "total_timeout_ms", policy->total_timeout_ms);
    hfi_json_flag(object, "allow_truncated", policy->allow_truncated);
    add_retries(object, policy);
    add_breaker(object, policy);
    hfi_json_number(object, "bulkhead_max", policy->bulkhead_max);
    hfi_json_number(object, "bulkhead_queue", policy->bulkhead_queue);
    hfi_json_real(object, "rate_per_s", policy->rate_per_s);
    hfi_json_number(object, "rate_burst", policy->rate_burst);
    hfi_json_text(object, "on_open", policy->on_open == HF_ON_OPEN_PARK ? "park" : "fail");
    hfi_json_number(object, "give_up_after_ms", policy->give_up_after_ms);
    hfi_json_real(object, "declared_rate", policy->declared_rate);
    hfi_json_text(object, "latency", policy->latency == HF_LATENCY_COARSE ? "coarse" : "exact");
    hfi_json_flag(object, "allow_fault_injection", policy->allow_fault_injection);
    return object;
}
