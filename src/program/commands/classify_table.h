/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_CLASSIFY_TABLE_H
#define HFI_PROGRAM_CLASSIFY_TABLE_H

#include "holdfast/classify.h"

/* The library's tables, for `classify --table` and `classify --explain`. */

/* The table `name`, or all of them (NULL): Markdown, or a list in JSON. 0, or the exit code after a complaint. */
int hfi_classify_tables(const char *name);
/*
 * Which row of table `name` decided `outcome`, the rows before it that did not, and where the table comes from.
 * `subject` says what was asked: "404".
 */
void hfi_classify_reason(const char *name, const char *subject, const struct hf_outcome *outcome);

#endif
