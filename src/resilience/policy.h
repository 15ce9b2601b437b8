/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_POLICY_H
#define HFI_RESILIENCE_POLICY_H

#include <stdatomic.h>

#include "holdfast/policy.h"
#include "resilience/backoff.h"
#include "resilience/breaker.h"

/* Frozen options with what the machines need worked out. Immutable after hf_policy_new: any thread reads. */
struct hf_policy {
    _Atomic uint32_t references;
    struct hf_policy_options options;
    struct hfi_backoff_rules backoff;
    struct hfi_breaker_rules breaker;
    uint32_t budget_ratio_permille;
    int64_t backstop_ms; /* total + 30 s */
};
/* Options of any age as a whole struct of today: what the caller's does not have gets its default. 0 or HF_EINVAL. */
int hfi_policy_take(const struct hf_policy_options *given, struct hf_policy_options *options);
/* The rules an option struct gives; used by policy_new and the ladder check. */
void hfi_policy_backoff(const struct hf_policy_options *options, struct hfi_backoff_rules *rules);
/* The figures of options that passed the range checks. */
void hfi_policy_fit(const struct hf_policy_options *options, struct hf_policy_figures *figures);
void hfi_policy_breaker(const struct hf_policy_options *options, struct hfi_breaker_rules *rules);

#endif
