/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_BASE64_H
#define HFI_BASE_BASE64_H

#include <stddef.h>

#define HFI_BASE64_LENGTH(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* RFC 4648 4 with padding into `text` of HFI_BASE64_LENGTH(length) bytes; returns the end of the text (its NUL). */
char *hfi_base64(const void *bytes, size_t length, char *text);

#endif
