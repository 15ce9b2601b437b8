/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_KEY_H
#define HFI_RESILIENCE_KEY_H

#include <stddef.h>

#include "resilience/url.h"

/*
 * The key of a server (B30): scheme, host and port in one spelling for all URLs that lead to it, such as
 * `https://api.example.com:8443`. Lower case, no default port, no dot at the end of the host, IPv6 in its shortest form
 * (RFC 5952); userinfo, path and query are no part of it. IDN stays as given. Several policies for one server are
 * several downstreams: each keeps its own registry of hosts, so its name is the label that tells them apart.
 */
#define HFI_RESILIENCE_KEY_H

#include <stddef.h>

#include "resilience/url.h"

/*
 * The key of a downstream (B30): scheme, host and port, in one spelling for all URLs that lead to one server, and a
 * label when several policies share the server: `https://api.example.com:8443#label`. Lower case, no default port, no
 * dot at the end of the host, IPv6 in its shortest form (RFC 5952); userinfo, path and query are no part of it. IDN
 * stays as given.
 */
#define HFI_KEY_LENGTH (8 + HFI_HOST_MAX + 2 + 6 + 1) /* with NUL */

/* Writes the key of a URL that hfi_url_split took: `text` has HFI_KEY_LENGTH bytes. Its length.
 */
size_t hfi_key_print(const struct hfi_url *url, char *text);

#endif
