/* SPDX-License-Identifier: MIT */
/*
 * Looks at a PEM file before TLS does, so that a missing, empty, binary, broken or encrypted one, or a key of another
 * certificate, is told at the start with its name and not by the first call. Its form is judged here, in words of our
 * own; pem_decode.c then decodes it. Must never keep or show what stands in the file. Any thread.
 */
#include "resilience/pem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "resilience/pem_decode.h"

#define FILE_MAX (16 << 20) /* the system's bundle has 0.2 MiB */
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \t\r\n"

static bool refuse(char *why, const char *text) {
    snprintf(why, HFI_PEM_FAULT_MAX, "%s", text);
    return false;
}

/* The whole regular file and a NUL; NULL with `why`. */
static char *read_whole(const char *path, char *why, size_t *length) {
    struct stat status;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold us up */
    if (fd < 0 || fstat(fd, &status) != 0) {
        snprintf(why, HFI_PEM_FAULT_MAX, "it cannot be read: %s", strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        refuse(why, "it is not a file");
    } else if (status.st_size > FILE_MAX) {
        refuse(why, "it is larger than 16 MiB");
    } else if (!(text = hfi_alloc((size_t)status.st_size + 1))) {
        refuse(why, "out of memory");
    } else {
        size_t got = 0;
        ssize_t part;
        while (got < (size_t)status.st_size && (part = read(fd, text + got, (size_t)status.st_size - got)) > 0)
            got += (size_t)part;
        *length = got;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

/* One block from its BEGIN on: does it end, and is it Base64 up to there? Where it ends; NULL with `why`. */
static const char *skip_block(const char *begin, const char *label, char *why) {
    char mark[64];
    snprintf(mark, sizeof mark, "-----END %s-----", label);
    const char *body = begin + sizeof "-----BEGIN -----" - 1 + strlen(label);
    const char *end = strstr(body, mark), *next = strstr(body, "-----BEGIN ");
    if (!end || (next && next < end)) {
        snprintf(why, HFI_PEM_FAULT_MAX, "a BEGIN %s has no END", label);
        return NULL;
    }
    size_t plain = strspn(body, BASE64);
    bool headers = memchr(body, ':', (size_t)(end - body)) != NULL; /* of an old encrypted key */
    if (headers) {
        refuse(why, "the key has a passphrase");
        return NULL;
    }
    if (body + plain < end || body + strspn(body, " \t\r\n") == end) {
        snprintf(why, HFI_PEM_FAULT_MAX, "its %s is not Base64", label);
        return NULL;
    }
    return end + strlen(mark);
}

/* The first block of that label at or behind `text`, NULL none. */
static const char *find(const char *text, const char *label) {
    char mark[64];
    snprintf(mark, sizeof mark, "-----BEGIN %s-----", label);
    return strstr(text, mark);
}

static bool check_certificates(const char *text, char *why) {
    static const char *const labels[] = {"CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"};
    bool any = false;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        for (const char *at = text; (at = find(at, labels[i])) != NULL; any = true)
            if (!(at = skip_block(at, labels[i], why)))
                return false;
    return any || refuse(why, "there is no certificate in it");
}

static bool check_key(const char *text, char *why) {
    static const char *const labels[] = {"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY"};
    if (find(text, "ENCRYPTED PRIVATE KEY"))
        return refuse(why, "the key has a passphrase");
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        const char *at = find(text, labels[i]);
        if (at)
            return skip_block(at, labels[i], why) != NULL;
    }
    return refuse(why, "there is no private key in it");
}

static void forget(char *text, size_t length) {
    if (text)
        explicit_bzero(text, length);
    hfi_free(text);
}

bool hfi_pem_check(const char *path, enum hfi_pem kind, char why[HFI_PEM_FAULT_MAX]) {
    size_t length = 0;
    char *text = read_whole(path, why, &length);
    if (!text)
        return false;
    bool good = kind == HFI_PEM_KEY ? check_key(text, why) && hfi_pem_decode_key(text, length, why)
                                    : check_certificates(text, why) && hfi_pem_decode_certificates(text, length, why);
    forget(text, length);
    return good;
}

bool hfi_pem_check_pair(const char *certificate_path, const char *key_path, char why[HFI_PEM_FAULT_MAX]) {
    size_t certificate_length = 0, key_length = 0;
    char *certificate = read_whole(certificate_path, why, &certificate_length);
    char *key = certificate ? read_whole(key_path, why, &key_length) : NULL;
    bool fits = key && hfi_pem_decode_pair(certificate, certificate_length, key, key_length);
    if (key && !fits)
        refuse(why, "it is not the key of the first certificate there");
    forget(certificate, certificate_length);
    forget(key, key_length);
    return fits;
}
