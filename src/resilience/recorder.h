/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_RECORDER_H
#define HFI_RESILIENCE_RECORDER_H

#include <stdatomic.h>

#include "holdfast/measured.h"
#include "resilience/outcome.h"
#include "resilience/spread.h"

/*
 * What the attempts of one downstream took, until somebody takes it away. Any thread, no lock. Memory comes page by page
 * for durations that occur: some 20 to 60 KB, 1.3 MB when every duration there is occurs in every phase and fate.
 */
#define HFI_MEASURED_SPREADS ((size_t)HF_PHASES * HF_FATES)
static inline size_t hfi_measured_at(enum hf_phase phase, enum hf_fate fate) {
    return (size_t)phase * HF_FATES + fate;
}
struct hfi_recorder;

/* One attempt. `place` holds NULL before the first; what there is no memory for is not counted. */
void hfi_recorder_add(struct hfi_recorder *_Atomic *place, const struct hf_outcome *outcome);
void hfi_recorder_free(struct hfi_recorder *recorder); /* NULL is fine */
/* Takes all of it away (begun here; what there is no memory for stays in it), or gives it back. */
void hfi_recorder_take(struct hfi_recorder *recorder, struct hfi_packed *packed);
int hfi_recorder_put_back(struct hfi_recorder *recorder, const void *bytes, size_t length); /* HF_EINVAL, HF_ENOMEM */
/* Adds it to HFI_MEASURED_SPREADS spreads and leaves it where it is. */
void hfi_recorder_look(const struct hfi_recorder *recorder, struct hfi_spread *spreads);

#endif
