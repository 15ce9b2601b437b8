/* SPDX-License-Identifier: MIT */
/*
 * Decodes certificates and keys as TLS will, so that a broken one, or a key of another certificate, is told at the
 * start. Must never ask for a passphrase, and leave nothing in the thread's queue of OpenSSL errors, which libcurl reads.
 * Any thread.
 */
#include "resilience/pem_decode.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>

static int no_passphrase(char *to, int room, int writes, void *user) {
    (void)to;
    (void)room;
    (void)writes;
    (void)user;
    return -1;
}

static BIO *open_text(const char *text, size_t length) {
    return length <= INT_MAX ? BIO_new_mem_buf(text, (int)length) : NULL;
}

/* The last error is the nearest to the cause that has words. */
static bool refuse(char *why, const char *what) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(why, HFI_PEM_FAULT_MAX, "%s cannot be decoded: %s", what, reason ? reason : "unknown reason");
    ERR_clear_error();
    return false;
}

bool hfi_pem_decode_certificates(const char *text, size_t length, char why[HFI_PEM_FAULT_MAX]) {
    BIO *bio = open_text(text, length);
    size_t count = 0;
    char what[48];
    bool good = false;
    for (X509 *certificate; bio && (certificate = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL)); count++)
        X509_free(certificate);
    snprintf(what, sizeof what, "certificate %zu in it", count + 1);
    if (bio && count > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) { /* the end of the text */
        ERR_clear_error();
        good = true;
    } else {
        refuse(why, what);
    }
    BIO_free(bio);
    return good;
}

static EVP_PKEY *read_key(const char *text, size_t length) {
    BIO *bio = open_text(text, length);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    return key;
}

bool hfi_pem_decode_key(const char *text, size_t length, char why[HFI_PEM_FAULT_MAX]) {
    EVP_PKEY *key = read_key(text, length);
    bool good = key ? true : refuse(why, "the key in it");
    EVP_PKEY_free(key);
    ERR_clear_error(); /* of the kinds it was not */
    return good;
}

bool hfi_pem_decode_pair(const char *certificate, size_t certificate_length, const char *key, size_t key_length) {
    BIO *bio = open_text(certificate, certificate_length);
    X509 *x509 = bio ? PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL) : NULL;
    EVP_PKEY *pkey = read_key(key, key_length);
    bool fits = x509 && pkey && X509_check_private_key(x509, pkey) == 1;
    EVP_PKEY_free(pkey);
    X509_free(x509);
    BIO_free(bio);
    ERR_clear_error();
    return fits;
}
