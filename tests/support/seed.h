/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_SEED_H
#define HF_TEST_SEED_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"

/* The seed of a property test: HF_SEED, or a new one. Printed, so that a failure can be run again. */
static inline uint64_t test_seed(const char *test) {
    const char *given = getenv("HF_SEED");
    uint64_t seed = 0;
    if (given != NULL)
        seed = strtoull(given, NULL, 0);
    else
        hfi_entropy(&seed, sizeof seed);
    printf("%s: HF_SEED=0x%016" PRIx64 "\n", test, seed);
    fflush(stdout);
    return seed;
}

#endif
