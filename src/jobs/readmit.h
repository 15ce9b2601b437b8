/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_READMIT_H
#define HFI_JOBS_READMIT_H

#include "jobs/store.h"

/*
 * Quarantined jobs that can be run now go back to work by themselves, where their type says so (R9): those whose type was
 * unknown, and those whose payload was unreadable under another schema than the type has now.
 */
bool hfi_readmits(const struct hfi_rulebook *book, const char *type, const char *cause, const char *schema);
/* Does any type say so at all? */
bool hfi_readmits_any(const struct hfi_rulebook *book);
/* Its requeue. The texts live as long as `room` and the book. */
struct hfi_readmit_room {
    char reason[160];
};
void hfi_readmit_requeue(const struct hfi_op_readmit *op, int64_t id, const char *type, const char *cause,
                         struct hfi_readmit_room *room, struct hfi_op_requeue *requeue);

#endif
