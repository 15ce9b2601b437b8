/* SPDX-License-Identifier: MIT */
#ifndef HFI_ASSEMBLY_LADDER_H
#define HFI_ASSEMBLY_LADDER_H

#include "jobs/rulebook.h"

/*
 * The ladder check of every type of the book with its downstream among these (each passed hf_policy_check).
 * `max_calls_per_job` 0: unlimited. 0, or HF_ECONFIG with the first error; warnings are logged as `ladder.warning`.
 */
int hfi_ladder_prove(const struct hfi_rulebook *book, const struct hf_downstream_options *downstreams, size_t count,
                     uint32_t max_calls_per_job, struct hf_error *error);

#endif
