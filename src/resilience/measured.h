/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_MEASURED_H
#define HFI_RESILIENCE_MEASURED_H

#include "holdfast/measured.h"
#include "resilience/recorder.h"
#include "resilience/survival.h"

struct hf_measured {
    struct hfi_spread spreads[HFI_MEASURED_SPREADS];
    struct hfi_spread cut[HF_PHASES]; /* what was cut, whatever did it */
    uint64_t hours;                   /* of a store: those that something was measured in */
};
int hfi_measured_new(struct hf_measured **measured); /* HF_ENOMEM */
int hfi_measured_add(struct hf_measured *measured, const void *bytes, size_t length); /* HF_EINVAL, nothing was added */
/* All is added. What the connect limit cut says nothing of the attempt limit, and is not in `cut` of the attempts. */
void hfi_measured_settle(struct hf_measured *measured);
struct hfi_survival hfi_measured_survival(const struct hf_measured *measured, enum hf_phase phase);

#endif
