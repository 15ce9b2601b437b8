/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_BASE64_H
#define HFI_BASE_BASE64_H

#include <stddef.h>

#define HFI_BASE64_LENGTH(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* RFC 4648 4 with padding into `text` of HFI_BASE64_LENGTH(length) bytes; returns the end of the text (its NUL). */
char *hfi_base64(const void *bytes, size_t length, char *text);

/* How many bytes strict base64 (padding required, no blanks) stands for, written to `bytes` unless that is NULL; -1: it is none. */
long hfi_base64_decode(const char *text, unsigned char *bytes);

#endif
