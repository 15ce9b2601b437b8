/* SPDX-License-Identifier: MIT */
#ifndef HF_TESTS_SUPPORT_H
#define HF_TESTS_SUPPORT_H

/* What cmocka.h wants before it, in the order it wants it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The seed of this run: HF_SEED, else from the kernel. Printed at the first call, so that a failure can be repeated. */
uint64_t hf_test_seed(void);

/*
 * Runs `attempt` again and again with the 1st, 2nd, 3rd … allocation failing (once alone, once with all after it),
 * until it needs no more. It must return 0 or HF_ENOMEM, leave nothing behind either way, and 0 at the end. Returns how
 * many allocations the whole attempt makes. `attempt` must not assert.
 */
long hf_test_alloc_sweep(int (*attempt)(void *user), void *user);

/* A fresh empty folder, removed with all in it when the process exits. Static text, one per process. */
const char *hf_test_dir(void);

/* `name` inside that folder. Static text, valid until the next call. */
const char *hf_test_path(const char *name);

#endif
