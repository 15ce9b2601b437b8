/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_RANDOM_H
#define HFI_BASE_RANDOM_H

#include <stdint.h>

/* A small seedable generator for jitter; not for secrets. One thread at a time. Same seed, same numbers everywhere. */
struct hfi_random {
    uint64_t state[4];
};
void hfi_random_seed(struct hfi_random *random, uint64_t seed);
uint64_t hfi_random_next(struct hfi_random *random);
uint64_t hfi_random_below(struct hfi_random *random, uint64_t bound); /* unbiased, [0, bound); bound 0 gives 0 */

/* Bytes from the kernel, for ids and seeds. Never fails: aborts when the kernel has none. */
void hfi_entropy(void *bytes, unsigned length);
/* A random UUID (version 4) into at least 37 bytes. */
char *hfi_uuid(char *text);

#endif
