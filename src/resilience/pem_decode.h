/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_PEM_DECODE_H
#define HFI_RESILIENCE_PEM_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "resilience/pem.h"

/* What TLS makes of a PEM text. True, or `why` tells what is wrong. Any thread. */
bool hfi_pem_decode_certificates(const char *text, size_t length, char why[HFI_PEM_FAULT_MAX]);
bool hfi_pem_decode_key(const char *text, size_t length, char why[HFI_PEM_FAULT_MAX]);
/* Is the first key in `key` that of the first certificate in `certificate`? Both can be decoded. False without memory. */
bool hfi_pem_decode_pair(const char *certificate, size_t certificate_length, const char *key, size_t key_length);

#endif
