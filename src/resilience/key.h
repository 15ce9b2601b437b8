/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_KEY_H
#define HFI_RESILIENCE_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "resilience/url.h"

/*
 * The key of a server (B30): scheme, host and port in one spelling for all URLs that lead to it, such as
 * `https://api.example.com:8443`. Lower case, no default port, no dot at the end of the host, IPv6 in its shortest form
 * (RFC 5952); userinfo, path and query are no part of it. IDN stays as given. Several policies for one server are
 * several downstreams: each keeps its own registry of hosts, so its name is the label that tells them apart.
 */
#define HFI_KEY_LENGTH (8 + HFI_HOST_MAX + 2 + 6 + 1) /* with NUL */

/* Writes the key of a URL that hfi_url_split took: `text` has HFI_KEY_LENGTH bytes. Its length. */
size_t hfi_key_print(const struct hfi_url *url, char *text);

/*
 * The same with its label, as jobs and stores name the breaker of one host of a `per_host` downstream:
 * `https://api.example.com:8443#hooks`. A host has no #, so the first one ends it.
 */
#define HFI_HOST_KEY_LENGTH (HFI_KEY_LENGTH + 1 + 120) /* with NUL; HFI_DOWNSTREAM_NAME_MAX */
/* `text` has HFI_HOST_KEY_LENGTH bytes. */
void hfi_host_key_print(const struct hfi_url *url, const char *downstream, char *text);
/* Takes one apart: `host` has HFI_KEY_LENGTH bytes. NULL: it is none; else the downstream's name, within it. */
const char *hfi_host_key_split(const char *key, char *host);

#endif
