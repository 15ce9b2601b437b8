/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_HTTP_SIGN_H
#define HFI_RESILIENCE_HTTP_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include "resilience/signing.h"

/* Bytes of `v1,` and a signature in base64 for each secret, with blanks between and a NUL at the end. */
#define HFI_SIGN_ONE 47
#define HFI_SIGN_ROOM(count) ((count) * (HFI_SIGN_ONE + 1) + 1)

/*
 * The value of `webhook-signature` for a message: HMAC-SHA256 of `id.timestamp.body` by every secret, into `text` of
 * HFI_SIGN_ROOM(count) bytes. 0 or HF_ENOMEM. Any thread.
 */
int hfi_sign(const struct hfi_signing *signing, const char *id, int64_t timestamp_s, const void *body, size_t length,
             char *text);

#endif
