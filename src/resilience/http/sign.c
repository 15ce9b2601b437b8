/* SPDX-License-Identifier: MIT */
/*
 * Signs what is sent, in the form of Standard Webhooks. The only file that uses OpenSSL. Must never put a secret or a
 * signature anywhere but into the text it is asked for. Any thread.
 */
#include "resilience/http/sign.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"

#define DIGEST_LENGTH 32
_Static_assert(HFI_BASE64_LENGTH(DIGEST_LENGTH) == HFI_SIGN_ONE - 2, "`v1,` takes three, its NUL is not counted");

static bool feed(EVP_MAC_CTX *mac, const char *head, const void *body, size_t length) {
    if (EVP_MAC_update(mac, (const unsigned char *)head, strlen(head)) != 1)
        return false;
    return length == 0 || EVP_MAC_update(mac, body, length) == 1;
}

static bool sign_one(EVP_MAC *hmac, const struct hfi_signing_key *key, const char *head, const void *body,
                     size_t length, unsigned char *digest) {
    char name[] = "SHA256";
    const OSSL_PARAM parameters[] = {OSSL_PARAM_utf8_string("digest", name, sizeof name - 1), OSSL_PARAM_END};
    EVP_MAC_CTX *mac = EVP_MAC_CTX_new(hmac);
    size_t made = 0;
    bool good = mac && EVP_MAC_init(mac, key->bytes, key->length, parameters) == 1 && feed(mac, head, body, length) &&
                EVP_MAC_final(mac, digest, &made, DIGEST_LENGTH) == 1 && made == DIGEST_LENGTH;
    EVP_MAC_CTX_free(mac);
    return good;
}

int hfi_sign(const struct hfi_signing *signing, const char *id, int64_t timestamp_s, const void *body, size_t length,
             char *text) {
    char head[320]; /* an id is an idempotency key: 255 bytes at most */
    unsigned char digest[DIGEST_LENGTH];
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    int rc = hmac ? 0 : HF_ENOMEM;
    snprintf(head, sizeof head, "%s.%" PRId64 ".", id, timestamp_s);
    *text = '\0';
    for (size_t i = 0; rc == 0 && i < signing->count; i++) {
        if (sign_one(hmac, &signing->keys[i], head, body, length, digest))
            text = hfi_base64(digest, sizeof digest, stpcpy(text, i == 0 ? "v1," : " v1,"));
        else
            rc = HF_ENOMEM;
    }
    EVP_MAC_free(hmac);
    return rc;
}
