/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_MEASURING_H
#define HFI_JOBS_MEASURING_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* What both stores do with measured attempts: one row for each downstream and hour, kept for a week. */
#define HFI_MEASURED_HOURS (7 * 24)
#define HFI_MEASURED_FORGET 500 /* rows that one operation removes at most */
int64_t hfi_measured_hour(int64_t wall_us); /* hours since 1970 */
/*
 * The row's bytes and these, as one (hfi_free). A row that is damaged is given up for what is new. `stored` NULL: none.
 * HF_EINVAL: `bytes` are none of the recorder's; HF_ENOMEM.
 */
int hfi_measured_merge(const void *stored, size_t stored_length, const void *bytes, size_t length, unsigned char **sum,
                       size_t *sum_length);

#endif
