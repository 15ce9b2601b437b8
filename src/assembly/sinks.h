/* SPDX-License-Identifier: MIT */
#ifndef HFI_ASSEMBLY_SINKS_H
#define HFI_ASSEMBLY_SINKS_H

#include "holdfast/runner.h"
#include "jobs/type_options.h"

/* The sinks of `given`, whole and with all their texts, in `to`; they live as long as `keep`. 0 or HF_ENOMEM. */
int hfi_sinks_copy(struct hfi_keep *keep, const struct hf_runner_options *given, struct hf_runner_options *to);

#endif
