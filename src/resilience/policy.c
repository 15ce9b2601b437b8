/* SPDX-License-Identifier: MIT */
/*
 * Option structs of any age to a frozen policy: defaults, the rules for the machines, and the shared object. Refuses
 * what the ladder check calls an error; must never correct an option silently. Any thread.
 */
#include "resilience/policy.h"

#include <math.h>

#include "base/alloc.h"
#include "base/text.h"

#define LEASE_GRACE_MS 10000
#define BACKSTOP_GRACE_MS 30000

static const struct hf_policy_options defaults = {
    .size = sizeof(struct hf_policy_options),
    .connect_timeout_ms = 5000,
    .attempt_timeout_ms = 20000, /* [S0.28] */
    .total_timeout_ms = 90000,
    .retry_max = 3,
    .retry_backoff = HF_BACKOFF_EXPONENTIAL,
    .retry_jitter = HF_JITTER_FULL,
    .retry_jitter_factor = 0.1,
    .retry_factor = 2,
    .retry_base_ms = 500,
    .retry_cap_ms = 5000,
    .budget_ratio = 0.2,
    .budget_floor = 10,
    .budget_window_ms = 10000,
    .hedge_delay_ms = 2000,
    .retry_after_cap_ms = 3600000,
    .gate_cap_ms = 60000,
    .gate_scope = HF_GATE_DOWNSTREAM,
    .breaker_window_ms = 60000, /* [S0.29] */
    .breaker_slices = 12,
    .breaker_ratio = 0.5,
    .breaker_min_calls = 20,
    .breaker_break_ms = 5000,
    .breaker_max_break_ms = 60000,
    .breaker_break_factor = 2,
    .breaker_break_jitter = 0.1,
    .breaker_probes = 3,
    .breaker_ramp_ms = 10000,
    .bulkhead_max = 64,
    .on_open = HF_ON_OPEN_PARK,
    .give_up_after_ms = 86400000,
};

void hf_policy_options_init_sized(struct hf_policy_options *options, uint32_t size) {
    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
    if (size >= sizeof options->size)
        options->size = size;
}

int hfi_policy_take(const struct hf_policy_options *given, struct hf_policy_options *options) {
    if (given == NULL || given->size < sizeof given->size)
        return HF_EINVAL;
    *options = defaults;
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    options->size = sizeof *options;
    return 0;
}

static uint32_t permille(double ratio) {
    double value = round(ratio * 1000);
    return !(value > 0) ? 0 : value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* A small ratio must not become 0, which would be reached by nothing at all. */
static uint32_t permille_or_more(double ratio) {
    uint32_t value = permille(ratio);
    return value == 0 && ratio > 0 ? 1 : value;
}

void hfi_policy_backoff(const struct hf_policy_options *options, struct hfi_backoff_rules *rules) {
    rules->backoff = options->retry_backoff;
    rules->jitter = options->retry_jitter;
    rules->factor_permille = permille(options->retry_factor);
    rules->jitter_permille = permille(options->retry_jitter_factor);
    rules->base_ms = options->retry_base_ms;
    rules->cap_ms = options->retry_cap_ms;
    rules->table_length = options->retry_table_length;
    memcpy(rules->table_ms, options->retry_table_ms, sizeof rules->table_ms);
}

void hfi_policy_breaker(const struct hf_policy_options *options, struct hfi_breaker_rules *rules) {
    rules->window_ms = options->breaker_window_ms;
    rules->slices = options->breaker_slices;
    rules->slow_after_ms = options->breaker_slow_after_ms;
    rules->break_ms = options->breaker_break_ms;
    rules->max_break_ms = options->breaker_max_break_ms;
    rules->ramp_ms = options->breaker_ramp_ms;
    rules->lease_ms = options->breaker_lease_ms > 0 ? options->breaker_lease_ms
                                                    : hfi_add(options->attempt_timeout_ms, LEASE_GRACE_MS);
    rules->ratio_permille = permille_or_more(options->breaker_ratio);
    rules->slow_permille = permille_or_more(options->breaker_slow_ratio);
    rules->break_jitter_permille = permille(options->breaker_break_jitter);
    rules->break_factor_permille = permille(options->breaker_break_factor);
    rules->min_calls = options->breaker_min_calls;
    rules->consecutive = options->breaker_consecutive;
    rules->probes = options->breaker_probes;
    rules->tolerated = options->breaker_tolerated;
    rules->ramp_cap = options->bulkhead_max;
}

/* The first error found, as hf_policy_new tells it. */
static void first_error(const struct hf_finding *finding, void *user) {
    struct hf_error *error = user;
    if (finding->is_error && error != NULL && error->code == 0)
        hfi_fail(error, HF_ECONFIG, finding->key, finding->fix, "%s", finding->why);
}

int hf_policy_new(const struct hf_policy_options *options, struct hf_policy **policy, struct hf_error *error) {
    struct hf_error scratch;
    if (policy == NULL)
        return hfi_fail(error, HF_EINVAL, "policy", "give a place for it", "there is nowhere to put it");
    *policy = NULL;
    if (error == NULL) {
        hf_error_init(&scratch);
        error = &scratch;
    }
    error->code = 0;
    int errors = hf_policy_check(options, first_error, error);
    if (errors < 0)
        return hfi_fail(error, errors, "options", "call hf_policy_options_init first", "they have no size");
    if (errors > 0)
        return HF_ECONFIG;
    struct hf_policy *made = hfi_alloc(sizeof *made);
    if (made == NULL)
        return hfi_fail(error, HF_ENOMEM, "policy", NULL, "out of memory");
    atomic_init(&made->references, 1);
    hfi_policy_take(options, &made->options);
    hfi_policy_backoff(&made->options, &made->backoff);
    hfi_policy_breaker(&made->options, &made->breaker);
    made->budget_ratio_permille = permille(made->options.budget_ratio);
    made->backstop_ms = hfi_add(made->options.total_timeout_ms, BACKSTOP_GRACE_MS);
    *policy = made;
    return 0;
}

struct hf_policy *hf_policy_ref(struct hf_policy *policy) {
    atomic_fetch_add_explicit(&policy->references, 1, memory_order_relaxed);
    return policy;
}

void hf_policy_unref(struct hf_policy *policy) {
    if (policy != NULL && atomic_fetch_sub_explicit(&policy->references, 1, memory_order_acq_rel) == 1)
        hfi_free(policy);
}
