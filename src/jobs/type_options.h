/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_TYPE_OPTIONS_H
#define HFI_JOBS_TYPE_OPTIONS_H

#include "holdfast/runner.h"

/*
 * Deep copies and checks of a job type's options, for the rulebook. Copies hang on a keep and go with it at once, so a
 * copy that fails half-way needs no undoing.
 */
struct hfi_keep {
    struct hfi_kept *first;
};
void *hfi_keep_alloc(struct hfi_keep *keep, size_t size); /* zeroed; NULL when out of memory */
const char *hfi_keep_text(struct hfi_keep *keep, const char *text); /* NULL stays NULL, and is a failure otherwise */
void hfi_keep_free(struct hfi_keep *keep);

/* A copy of `count` texts; NULL for 0 or out of memory. */
const char *const *hfi_keep_texts(struct hfi_keep *keep, const char *const *texts, size_t count);

/* Checks `given` and copies it into `options` of this library's size. 0, HF_EINVAL, HF_ETEXT, HF_ETOOBIG, HF_ENOMEM. */
int hfi_type_options_copy(struct hfi_keep *keep, const struct hf_type_options *given, bool has_handler,
                          struct hf_type_options *options, struct hf_error *error);
/* The same for a curve of any size; NULL gives NULL. */
int hfi_curve_options_copy(struct hfi_keep *keep, const char *what, const struct hf_curve_options *given,
                           const struct hf_curve_options **options, struct hf_error *error);
/* Error types of a list of never_retry: dotted words [S2.16]. */
int hfi_never_retry_check(const char *const *list, size_t count, struct hf_error *error);

#endif
