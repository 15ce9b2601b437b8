/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_BASE64_H
#define HFI_PROGRAM_BASE64_H

#include <stddef.h>

/* RFC 4648 with padding. NUL-terminated; hfi_release. */
char *hfi_base64(const void *data, size_t length);

/* The bytes of strict RFC 4648 text (padding required, no blanks) into `bytes` (hfi_release), or HF_EINVAL. */
int hfi_base64_parse(const char *text, size_t text_length, unsigned char **bytes, size_t *length);

#endif
