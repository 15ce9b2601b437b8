/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_FORWARD_OPTIONS_H
#define HFI_JOBS_FORWARD_OPTIONS_H

#include "holdfast/forward.h"
#include "holdfast/runner.h"
#include "jobs/forward.h"
#include "jobs/type_options.h"

/*
 * Checks a forwarder's options and keeps them. `type`: the job type that its copies to a downstream or a command have;
 * its name is NULL when they go to a queue. Its texts are borrowed from `given` and `keep`. 0, HF_EINVAL, HF_ETEXT,
 * HF_ETOOBIG, HF_ENOMEM.
 */
int hfi_forward_options_copy(struct hfi_keep *keep, const struct hf_forward_options *given, struct hfi_forward *forward,
                             struct hf_type_options *type, struct hf_error *error);
/* The handler of a type's deaths: the same from its options, whose name is that type. */
int hfi_death_options_copy(struct hfi_keep *keep, const struct hf_type_options *given, struct hfi_forward *forward,
                           struct hf_type_options *type, struct hf_error *error);

#endif
