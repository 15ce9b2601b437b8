/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_BULK_H
#define HFI_PROGRAM_BULK_H

#include "program/commands/spec.h"
#include "program/session.h"

/* Enqueues every line of the NDJSON file `path` ("-" = stdin), with `defaults` under each line; an exit code. */
int hfi_bulk_enqueue(struct hfi_session *session, const char *path, const struct hfi_spec *defaults);

#endif
