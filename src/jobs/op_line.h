/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_OP_LINE_H
#define HFI_JOBS_OP_LINE_H

#include "jobs/store.h"

/* Operations that wait for the writer, linked through themselves. */
struct hfi_op_line {
    struct hfi_op *first, *last;
};
void hfi_op_append(struct hfi_op_line *line, struct hfi_op *op);
void hfi_op_prepend(struct hfi_op_line *line, struct hfi_op *op);
struct hfi_op *hfi_op_take(struct hfi_op_line *line); /* the first; there is one */
uint64_t hfi_op_weight(const struct hfi_op *op);      /* rows it may touch, about */

#endif
