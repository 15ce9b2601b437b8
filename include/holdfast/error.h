/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_ERROR_H
#define HOLDFAST_ERROR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"

/*
 * Every function that can fail returns 0 or one of these, negative. They say that *our function* could not do
 * its work; how a call or a job ended is an outcome (outcome.h), never an error.
 * X(name, value, text)
 */
#define HF_ERROR_MAP(X)                                                                           \
    X(EINVAL, 1, "invalid argument")                                                              \
    X(ENOMEM, 2, "out of memory")                                                                 \
    X(ENOENT, 3, "no such thing")                                                                 \
    X(EEXIST, 4, "exists already")                                                                \
    X(ESTATE, 5, "refused by the state it is in")                                                 \
    X(EDEADLK, 6, "a blocking call on the loop or writer thread")                                 \
    X(ECANCELED, 7, "cancelled")                                                                  \
    X(ETIMEDOUT, 8, "timed out")                                                                  \
    X(EIO, 9, "input/output error")                                                               \
    X(EBUSY, 10, "busy")                                                                          \
    X(ENOSPC, 11, "no space left")                                                                \
    X(ECORRUPT, 12, "the store is damaged")                                                       \
    X(EFOREIGN, 13, "not a holdfast store")                                                       \
    X(EVERSION, 14, "written for another version of holdfast")                                    \
    X(ETOOBIG, 15, "too big")                                                                     \
    X(ETEXT, 16, "not valid UTF-8 text, or it holds a NUL")                                       \
    X(ECONFIG, 17, "wrong configuration")                                                         \
    X(ESTALE, 18, "the job belongs to another owner by now")                                      \
    X(EREJECTED, 19, "rejected before it reached the wire")                                       \
    X(ENOTSUP, 20, "not supported")                                                               \
    X(ECLOSED, 21, "closed")                                                                      \
    X(EPERM, 22, "not permitted")

enum hf_error_code {
#define HF_ERROR_MEMBER(name, value, text) HF_##name = -(value),
    HF_ERROR_MAP(HF_ERROR_MEMBER)
#undef HF_ERROR_MEMBER
};

HF_BEGIN

/*
 * Details of the last failure, in memory of the caller. Functions that take one accept NULL. Texts are valid
 * UTF-8, cut on a code point. Printed as `what: why (fix)`.
 */
struct hf_error {
    uint32_t size;   /* set by hf_error_init */
    int code;        /* HF_E…, 0 when nothing failed */
    int native;      /* errno, SQLite or CURL code behind it, 0 if none */
    int line;        /* of `file`, from 1; 0 when it is not about a file */
    int column;      /* from 1; 0 when unknown */
    char file[256];  /* configuration file, "" when it is not about a file */
    char what[160];  /* the thing that is wrong */
    char why[512];   /* the reason, with the numbers */
    char fix[256];   /* what to do about it, "" if unknown */
};

static inline void hf_error_init(struct hf_error *error) {
    memset(error, 0, sizeof *error);
    error->size = (uint32_t)sizeof *error;
}

/* The same in one line. */
static inline struct hf_error hf_error_none(void) {
    struct hf_error error;
    hf_error_init(&error);
    return error;
}

/* Constant English text of a code; "success" for 0, "unknown error" for any other number. Thread-safe. Since 0.1. */
HF_API const char *hf_strerror(int code);

/* Constant name ("HF_EINVAL"); "HF_OK" for 0, "HF_EUNKNOWN" for any other number. Thread-safe. Since 0.1. */
HF_API const char *hf_error_name(int code);

/*
 * Writes `[file:[line[:column]:] ]what: why (fix)` into `text` of `length` bytes, always NUL-terminated, cut on a
 * code point; without a `why` the text of the code stands in its place. Returns the length the whole text has. Thread-safe. Since 0.1.
 */
HF_API size_t hf_error_print(const struct hf_error *error, char *text, size_t length);

HF_END

#endif
