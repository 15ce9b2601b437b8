/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_RECIPIENTS_H
#define HFI_JOBS_DEATHS_RECIPIENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/store.h"

/*
 * Whom the next try of a mail need not ask again: those who have it, and those who were refused for good. It stands in the
 * alert's row (`had`) as a mark of the list of addresses and a bit for each; with another list all are asked. Pure.
 */
#define HFI_RECIPIENTS_MAX 100
struct hfi_recipients {
    bool settled[HFI_RECIPIENTS_MAX]; /* by their place in `to` */
};
void hfi_recipients_read(struct hfi_recipients *recipients, const char *const *to, size_t count, const char *had);
void hfi_recipients_print(const struct hfi_recipients *recipients, const char *const *to, size_t count,
                          char had[HFI_ALERT_HAD_MAX + 1]);

#endif
