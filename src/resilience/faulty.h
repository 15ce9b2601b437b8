/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_FAULTY_H
#define HFI_RESILIENCE_FAULTY_H

#include "base/scheduler.h"
#include "resilience/transport.h"

/*
 * A transport around another one: attempts whose spec brings faults may be struck by one, all others go straight
 * through. Takes `inner` over, its close closes both; when this fails `inner` stays the caller's. HF_ENOMEM.
 */
int hfi_faulty_new(struct hfi_scheduler *scheduler, struct hfi_transport *inner, uint64_t seed,
                   struct hfi_transport **transport);

#endif
