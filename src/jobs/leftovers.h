/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_LEFTOVERS_H
#define HFI_JOBS_LEFTOVERS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Processes of exec jobs carry whose they are in their environment, and hand it down: a node that was killed cannot end
 * them, so whoever takes its jobs on this host does, before they are run again.
 */
#define HFI_MARK_NAME "HOLDFAST_NODE"
#define HFI_MARK_ROOM 80
/* `<store uuid>-<node>`, into HFI_MARK_ROOM bytes. */
char *hfi_leftovers_mark(char *mark, const char *uuid, int64_t node);
/* Kills every process of this user that carries the mark; returns how many there were. Some milliseconds. */
size_t hfi_leftovers_kill(const char *uuid, int64_t node);

/* The same of one execution: `HOLDFAST_RUN=<store uuid>-<job>.<epoch>`, into HFI_RUN_MARK_ROOM bytes. */
#define HFI_RUN_MARK_NAME "HOLDFAST_RUN"
#define HFI_RUN_MARK_ROOM 112
char *hfi_leftovers_run(char *entry, const char *uuid, int64_t job, int64_t epoch);
/* Kills every process of this user whose environment holds one of the entries `NAME=value`; returns how many were. */
size_t hfi_leftovers_kill_marked(const char *const *entries, size_t count);

#endif
