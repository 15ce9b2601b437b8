/* SPDX-License-Identifier: MIT */
#ifndef HFI_ASSEMBLY_OUTBOXES_H
#define HFI_ASSEMBLY_OUTBOXES_H

#include "assembly/watchdog.h"
#include "base/scheduler.h"
#include "holdfast/runner.h"
#include "jobs/runner/runner.h"

/* The relays of a runner, a thread each. Made with it, started with its run, ended before its loop is closed. */
struct hfi_outboxes;

int hfi_outboxes_new(const struct hf_runner_options *options, struct hf_store *store, struct hfi_rulebook *book,
                     struct hfi_outboxes **outboxes, struct hf_error *error); /* *outboxes NULL: there are none. HF_EEXIST: one file twice */
/* What they relay wakes `node` on the loop. One that gets no thread is logged and tried again. NULL is fine, here and below.
 * Loop thread, as the next. */
void hfi_outboxes_start(struct hfi_outboxes *outboxes, struct hfi_scheduler *loop, struct hfi_runner *node);
int hfi_outboxes_watch(const struct hfi_outboxes *outboxes, struct hfi_watchdog *dog); /* before its start; HF_ENOMEM */
void hfi_outboxes_renew(struct hfi_outboxes *outboxes, struct hfi_rulebook *book); /* other types; they take references */
void hfi_outboxes_stop(struct hfi_outboxes *outboxes); /* asks; does not wait */
void hfi_outboxes_join(struct hfi_outboxes *outboxes); /* stops and waits; the counts stay */
void hfi_outboxes_free(struct hfi_outboxes *outboxes); /* joins */
bool hfi_outboxes_busy(void *outboxes); /* rows wait, or one has not looked yet; false when stopped. Any thread */
void hfi_outboxes_count(const struct hfi_outboxes *outboxes, int64_t now_us, struct hf_runner_counts *counts); /* any thread */

#endif
