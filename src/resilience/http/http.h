/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_HTTP_HTTP_H
#define HFI_RESILIENCE_HTTP_HTTP_H

#include "base/scheduler.h"
#include "holdfast/error.h"
#include "resilience/transport.h"

/*
 * The transport port on libcurl's multi interface, driven by `scheduler` (borrowed, outlives it). HF_ENOTSUP: a
 * libcurl without asynchronous name resolving or older than 7.87. Everything else on the scheduler's thread; SIGPIPE
 * must be blocked or ignored there.
 */
int hfi_curl_transport_new(struct hfi_scheduler *scheduler, struct hfi_transport **transport, struct hf_error *error);

#endif
