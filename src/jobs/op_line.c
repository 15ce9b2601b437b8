/* SPDX-License-Identifier: MIT */
/* Operations in the order in which they are to be committed. Under the lock of their writer. */
#include "jobs/op_line.h"

void hfi_op_append(struct hfi_op_line *line, struct hfi_op *op) {
    op->next = NULL;
    if (line->last)
        line->last->next = op;
    else
        line->first = op;
    line->last = op;
}

void hfi_op_prepend(struct hfi_op_line *line, struct hfi_op *op) {
    op->next = line->first;
    line->first = op;
    if (!line->last)
        line->last = op;
}

struct hfi_op *hfi_op_take(struct hfi_op_line *line) {
    struct hfi_op *op = line->first;
    line->first = op->next;
    if (!line->first)
        line->last = NULL;
    return op;
}

uint64_t hfi_op_weight(const struct hfi_op *op) {
    switch (op->kind) {
    case HFI_OP_PUT:
        return ((const struct hfi_op_put *)(const void *)op)->count;
    case HFI_OP_IMPORT:
        return ((const struct hfi_op_import *)(const void *)op)->count;
    case HFI_OP_REDRIVE_STEP:
        return HFI_REDRIVE_STEP;
    case HFI_OP_CLAIM:
        return ((const struct hfi_op_claim *)(const void *)op)->max;
    case HFI_OP_SWEEP:
        return ((const struct hfi_op_sweep *)(const void *)op)->limit;
    case HFI_OP_EXPIRE:
        return ((const struct hfi_op_expire *)(const void *)op)->limit;
    case HFI_OP_QUARANTINE:
        return ((const struct hfi_op_quarantine *)(const void *)op)->limit;
    case HFI_OP_RELEASE:
        return ((const struct hfi_op_release *)(const void *)op)->limit;
    case HFI_OP_READMIT:
        return ((const struct hfi_op_readmit *)(const void *)op)->limit;
    case HFI_OP_PRUNE:
        return ((const struct hfi_op_prune *)(const void *)op)->limit;
    default:
        return 1;
    }
}
