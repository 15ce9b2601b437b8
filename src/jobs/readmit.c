/* SPDX-License-Identifier: MIT */
/*
 * Which quarantined jobs are let in again. Must never let in what would be quarantined again for the same reason: that
 * would go round for ever. Any thread.
 */
#include "jobs/readmit.h"

#include <stdio.h>
#include <string.h>

bool hfi_readmits(const struct hfi_rulebook *book, const char *type_name, const char *cause, const char *schema) {
    const struct hfi_type *type = hfi_rulebook_type(book, type_name);
    if (!type || !type->options.release_quarantined)
        return false;
    return strcmp(cause, "unknown_type") == 0 || strcmp(schema, type->options.schema) != 0;
}

bool hfi_readmits_any(const struct hfi_rulebook *book) {
    for (size_t i = 0; i < hfi_rulebook_type_count(book); i++)
        if (hfi_rulebook_type_at(book, i)->options.release_quarantined)
            return true;
    return false;
}

void hfi_readmit_requeue(const struct hfi_op_readmit *op, int64_t id, const char *type, const char *cause,
                         struct hfi_readmit_room *room, struct hfi_op_requeue *requeue) {
    if (strcmp(cause, "unknown_type") == 0)
        snprintf(room->reason, sizeof room->reason, "its type is known now");
    else
        snprintf(room->reason, sizeof room->reason, "its type has schema `%.100s` now",
                 hfi_rulebook_type(op->book, type)->options.schema);
    *requeue = (struct hfi_op_requeue){.op = {.kind = HFI_OP_REQUEUE},
                                       .id = id,
                                       .actor = HFI_BY_HOLDFAST,
                                       .reason = room->reason,
                                       .now = op->now};
}
