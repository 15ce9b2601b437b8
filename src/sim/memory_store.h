/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_MEMORY_STORE_H
#define HFI_SIM_MEMORY_STORE_H

#include "base/scheduler.h"
#include "jobs/store.h"

/*
 * The store port in memory: the reference for what every operation means, and the store of tests and the simulator.
 * Nothing survives it. HF_ENOMEM.
 */
int hfi_memory_store_new(const struct hf_store_options *options, struct hfi_store **store);
/* Lists say what is due by this scheduler's wall clock instead of the system's. It must outlive the store. */
void hfi_memory_store_clock(struct hfi_store *store, struct hfi_scheduler *scheduler);

#endif
