/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_REACH_H
#define HFI_RESILIENCE_REACH_H

#include "holdfast/http.h"
#include "resilience/transport.h"

/* How a downstream is reached beyond its URL: certificates, TLS, HTTP/2, proxy and redirects. */

/*
 * Are these options right, and are the files they name there, readable and PEM? Reads them. HF_EINVAL; never quotes
 * the proxy, for it may hold a password. Any thread.
 */
int hfi_reach_check(const struct hf_downstream_options *options, struct hf_error *error);
/* A copy of checked options; HF_ENOMEM leaves what hfi_reach_end frees. */
int hfi_reach_init(struct hfi_reach *reach, const struct hf_downstream_options *options);
void hfi_reach_end(struct hfi_reach *reach);

#endif
