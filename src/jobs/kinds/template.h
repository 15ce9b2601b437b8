/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_TEMPLATE_H
#define HFI_JOBS_KINDS_TEMPLATE_H

#include "holdfast/runner.h"
#include "jobs/type_options.h"

/*
 * `{name}` in what an http type says about its calls: the payload's top-level field of that name. The type decides where
 * a value may stand, the payload only what it is; no value can leave its place.
 */
bool hfi_templates_used(const struct hf_type_options *type);
/* Are the braces of path, query and url fields? Those of headers that are none stay as they are. 0 or HF_EINVAL. */
int hfi_templates_check(const struct hf_type_options *type, struct hf_error *error);
/*
 * Replaces path, query, url, body and those of the `headers` that are the type's. The new texts hang on `keep`. 0,
 * HF_ENOMEM, or HF_EINVAL: the payload is at fault, `error->what` is the error type. Values are never shown.
 */
int hfi_templates_fill(const struct hf_type_options *type, const void *payload, size_t length, struct hfi_keep *keep,
                       struct hf_request *request, struct hf_header *headers, struct hf_error *error);

#endif
