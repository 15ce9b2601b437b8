/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_FINDING_H
#define HFI_RESILIENCE_FINDING_H

#include "holdfast/policy.h"

/* How the checks tell what they find. */
struct hfi_findings {
    hf_finding_fn report; /* NULL: only counted */
    void *user;
    int errors;
};

#define HFI_DURATION_ROOM 24
/* Ten years: above it no sum of ours can be trusted to mean anything. */
#define HFI_DURATION_MAX_MS INT64_C(315360000000)

/* `format` gives the why, with the numbers; `key` as in the configuration. */
void hfi_find(struct hfi_findings *findings, bool is_error, const char *rule, const char *key, const char *fix,
              const char *format, ...) HF_PRINTF(6, 7);

#endif
