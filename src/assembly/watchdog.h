/* SPDX-License-Identifier: MIT */
#ifndef HFI_ASSEMBLY_WATCHDOG_H
#define HFI_ASSEMBLY_WATCHDOG_H

#include "base/scheduler.h"
#include "holdfast/runner.h"
#include "jobs/wards.h"

/* The watchdog of a runner: a thread that looks after its loop, the store's writer, the relays, and all who put themselves on
 * its roll (S4.7). */
struct hfi_watchdog;

/* NULL in *dog: it is off. Options and `loop` are borrowed. HF_ENOMEM. */
int hfi_watchdog_new(const struct hf_runner_options *options, struct hfi_scheduler *loop, struct hfi_watchdog **dog);
/* A loop that beats by itself; before the start. `name` and `pulse` are borrowed. HF_ENOMEM. NULL is fine, here and below. */
int hfi_watchdog_add(struct hfi_watchdog *dog, const char *name, const struct hfi_pulse *pulse);
struct hfi_wards *hfi_watchdog_wards(struct hfi_watchdog *dog); /* borrowed; NULL: it is off */
int hfi_watchdog_start(struct hfi_watchdog *dog);
void hfi_watchdog_stop(struct hfi_watchdog *dog); /* before the loop is closed; waits for its thread */
void hfi_watchdog_free(struct hfi_watchdog *dog); /* after the loop was closed */

/* Any thread. */
bool hfi_watchdog_healthy(const struct hfi_watchdog *dog); /* no loop is late; true without one */
void hfi_watchdog_count(const struct hfi_watchdog *dog, struct hf_runner_counts *counts);

#endif
