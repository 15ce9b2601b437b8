/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_PEM_H
#define HFI_RESILIENCE_PEM_H

#include <stdbool.h>

/* Is a file what TLS will want of it? Looks at its form (RFC 7468), and whether all in it can be decoded. */
enum hfi_pem { HFI_PEM_CERTIFICATE, HFI_PEM_KEY };
#define HFI_PEM_FAULT_MAX 160

/* True, or `why` tells what is wrong. Reads the file, at the start only: it may block. Any thread. */
bool hfi_pem_check(const char *path, enum hfi_pem kind, char why[HFI_PEM_FAULT_MAX]);
/* … and does the key belong to the first certificate, which is the one that is shown? Both files were checked. */
bool hfi_pem_check_pair(const char *certificate_path, const char *key_path, char why[HFI_PEM_FAULT_MAX]);

#endif
