/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_PAST_H
#define HFI_PROGRAM_PAST_H

#include <jansson.h>

#include "holdfast/store.h"

/* Relatives and history of a job: added to its JSON object, and as lines for people. */
void hfi_past_json(json_t *object, const struct hf_job *job);
void hfi_show_past(const struct hf_job *job);

#endif
