/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_DOWNSTREAM_FIND_H
#define HFI_PROGRAM_DOWNSTREAM_FIND_H

#include "program/session.h"

/* A downstream that the configuration or the store knows; `setting` NULL: only the store. 0, or the exit code after a
   complaint, which names the nearest one. */
int hfi_downstream_find(struct hfi_session *session, const char *name, const struct hfi_downstream_setting **setting);

#endif
