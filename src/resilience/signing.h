/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_SIGNING_H
#define HFI_RESILIENCE_SIGNING_H

#include <stddef.h>

#include "holdfast/error.h"

/*
 * The secrets that requests are signed with in the form of Standard Webhooks (standardwebhooks.com): every one of them
 * signs, so that a receiver may know the old or the new one while they are exchanged. Read-only, any thread.
 */
#define HFI_SIGNING_SECRETS_MAX 8
#define HFI_SIGNING_BYTES_MIN 16
#define HFI_SIGNING_BYTES_MAX 512

struct hfi_signing_key {
    const unsigned char *bytes;
    size_t length;
};
struct hfi_signing {
    size_t room; /* of the whole block, which is wiped at its end */
    size_t count;
    struct hfi_signing_key keys[];
};

/*
 * `whsec_` and base64, or plain text whose bytes are the secret. HF_EINVAL says which one is wrong and why, about
 * `name`, never what it is; HF_ENOMEM. `signing` may be NULL: only looks.
 */
int hfi_signing_new(const char *const *secrets, size_t count, const char *name, struct hfi_signing **signing,
                    struct hf_error *error);
void hfi_signing_free(struct hfi_signing *signing); /* NULL is fine */

#endif
