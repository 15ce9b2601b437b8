/* SPDX-License-Identifier: MIT */
/*
 * Reads the secrets of webhook signatures. Must never put one, or a part of one, into an error, and leaves none in
 * memory that was given back. Pure, any thread.
 */
#include "resilience/signing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/text.h"

#define PREFIX "whsec_"

/* Bytes the secret has, -1 when its base64 is none. Written to `bytes` unless that is NULL. */
static long decode(const char *secret, unsigned char *bytes) {
    if (strncmp(secret, PREFIX, sizeof PREFIX - 1) == 0)
        return hfi_base64_decode(secret + sizeof PREFIX - 1, bytes);
    size_t length = strlen(secret);
    if (bytes)
        memcpy(bytes, secret, length);
    return (long)length;
}

static int check(const char *const *secrets, size_t count, const char *name, size_t *bytes, struct hf_error *error) {
    if (count > 0 && !secrets)
        return hfi_fail(error, HF_EINVAL, name, "give an array, or a count of 0", "signing_secrets: NULL with a count of %zu", count);
    if (count > HFI_SIGNING_SECRETS_MAX)
        return hfi_fail(error, HF_EINVAL, name, "keep the old and the new one", "signing: %zu secrets, %d at most", count,
                        HFI_SIGNING_SECRETS_MAX);
    for (size_t i = 0; i < count; i++) {
        long length = secrets[i] ? decode(secrets[i], NULL) : 0;
        if (length < 0)
            return hfi_fail(error, HF_EINVAL, name, "write whsec_ and base64 with its padding, or a plain text",
                            "signing: what follows whsec_ in secret %zu is not base64", i + 1);
        if (length < HFI_SIGNING_BYTES_MIN || length > HFI_SIGNING_BYTES_MAX)
            return hfi_fail(error, HF_EINVAL, name, "make one with: openssl rand -base64 32",
                            "signing: secret %zu has %ld bytes, not %d to %d", i + 1, length, HFI_SIGNING_BYTES_MIN,
                            HFI_SIGNING_BYTES_MAX);
        *bytes += (size_t)length;
    }
    return 0;
}

int hfi_signing_new(const char *const *secrets, size_t count, const char *name, struct hfi_signing **out,
                    struct hf_error *error) {
    size_t bytes = 0;
    int rc = check(secrets, count, name, &bytes, error);
    if (rc || !out || count == 0)
        return rc;
    struct hfi_signing *signing = hfi_alloc(sizeof *signing + count * sizeof *signing->keys + bytes);
    if (!signing)
        return hfi_fail(error, HF_ENOMEM, name, NULL, "out of memory");
    unsigned char *at = (unsigned char *)(signing->keys + count);
    signing->room = sizeof *signing + count * sizeof *signing->keys + bytes;
    signing->count = count;
    for (size_t i = 0; i < count; i++) {
        signing->keys[i].bytes = at;
        signing->keys[i].length = (size_t)decode(secrets[i], at);
        at += signing->keys[i].length;
    }
    *out = signing;
    return 0;
}

void hfi_signing_free(struct hfi_signing *signing) {
    if (signing)
        explicit_bzero(signing, signing->room);
    hfi_free(signing);
}
