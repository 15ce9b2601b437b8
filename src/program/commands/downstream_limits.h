/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_DOWNSTREAM_LIMITS_H
#define HFI_PROGRAM_DOWNSTREAM_LIMITS_H

#include <jansson.h>

#include "holdfast/policy.h"

/* The policy of a downstream as fields for people, and as an object with units in its keys. */
void hfi_limits_print(const struct hf_policy_options *policy);
json_t *hfi_limits_json(const struct hf_policy_options *policy);

#endif
