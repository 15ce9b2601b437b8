/* SPDX-License-Identifier: MIT */
#ifndef HFI_ASSEMBLY_CLIENT_H
#define HFI_ASSEMBLY_CLIENT_H

#include "base/scheduler.h"
#include "holdfast/http.h"
#include "resilience/call.h"

/*
 * A client on a scheduler that somebody else runs, for a runner that calls and keeps jobs on one loop. `scheduler`
 * outlives it. Closed (hf_client_close) on the scheduler's thread or when that runs no more: then the callbacks of
 * calls still open run before close returns. Errors as hf_client_new.
 */
int hfi_client_borrow(struct hfi_scheduler *scheduler, const struct hf_downstream_options *downstreams, size_t count,
                      struct hf_client **client, struct hf_error *error);
struct hfi_caller *hfi_client_caller(struct hf_client *client); /* borrowed; on the scheduler's thread */
struct hfi_transport *hfi_client_transport(struct hf_client *client); /* the same; for requests that no breaker guards */

#endif
