/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_UNDO_H
#define HFI_JOBS_STORE_UNDO_H

#include "jobs/store.h"

/* Puts operations back as they were handed in, after their transaction was rolled back. */
struct hfi_undo_entry;
struct hfi_undo {
    struct hfi_undo_entry *entries;
    size_t count, room;
};
int hfi_undo_note(struct hfi_undo *undo, struct hfi_op *op); /* before it runs; 0 or HF_ENOMEM */
void hfi_undo_all(struct hfi_undo *undo);
void hfi_undo_free(struct hfi_undo *undo);

#endif
