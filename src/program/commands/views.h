/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_VIEWS_H
#define HFI_PROGRAM_VIEWS_H

#include <jansson.h>

#include "holdfast/dead.h"
#include "holdfast/job.h"
#include "holdfast/store.h"

/* Jobs and dead letters as JSON, and as lines for people. `whole`: with payload and result. */
json_t *hfi_job_json(const struct hf_job_view *job, bool whole);
void hfi_show_job(const struct hf_job_view *job);
json_t *hfi_dead_json(const struct hf_dead_view *dead, bool whole);
void hfi_show_dead(const struct hf_dead_view *dead);

/* µs UTC of `ms` before now. */
int64_t hfi_ago_us(int64_t ms);

#endif
