/* SPDX-License-Identifier: MIT */
/* Seeds, allocation sweeps and folders for tests. Main thread only. */
#include "support/support.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "holdfast/error.h"

uint64_t hf_test_seed(void) {
    static uint64_t seed;
    static int known;
    if (!known) {
        const char *given = getenv("HF_SEED");
        if (given && *given)
            seed = strtoull(given, NULL, 0);
        else
            hfi_entropy(&seed, sizeof seed);
        known = 1;
        printf("HF_SEED=%" PRIu64 "\n", seed);
        fflush(stdout);
    }
    return seed;
}

static long sweep(int (*attempt)(void *user), void *user, int forever) {
    for (long nth = 1;; nth++) {
        hfi_alloc_fail(nth, forever);
        int code = attempt(user);
        long count = hfi_alloc_count();
        hfi_alloc_fail(0, 0);
        if (count < nth) { /* the whole attempt went by without a failure */
            assert_int_equal(code, 0);
            return count;
        }
        if (code != 0 && code != HF_ENOMEM)
            fail_msg("allocation %ld failed (%s after it) and the attempt returned %d", nth, forever ? "all" : "none",
                     code);
        assert_true(nth < 1000000);
    }
}

long hf_test_alloc_sweep(int (*attempt)(void *user), void *user) {
    long count = sweep(attempt, user, 0);
    sweep(attempt, user, 1);
    return count;
}

static char folder[256];

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *hf_test_dir(void) {
    if (folder[0])
        return folder;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/holdfast-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        abort();
    }
    atexit(remove_folder);
    return folder;
}

const char *hf_test_path(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", hf_test_dir(), name);
    return path;
}
