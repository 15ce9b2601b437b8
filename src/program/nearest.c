/* SPDX-License-Identifier: MIT */
/*
 * Finds what somebody probably meant: edit distance with swapped neighbours as one slip. Must never suggest something
 * far away. Pure.
 */
#include "program/nearest.h"

#include <stdint.h>
#include <string.h>

#define LONGEST 63

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Restricted Damerau-Levenshtein distance; names longer than LONGEST are far from everything. */
static size_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    size_t rows[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t cost = a[i - 1] != b[j - 1];
            now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

void hfi_nearest_init(struct hfi_nearest *nearest, const char *typed) {
    nearest->typed = typed;
    nearest->best = NULL;
    nearest->distance = SIZE_MAX;
}

void hfi_nearest_offer(struct hfi_nearest *nearest, const char *known) {
    size_t far = distance(nearest->typed, known);
    size_t longer = strlen(known) > strlen(nearest->typed) ? strlen(known) : strlen(nearest->typed);
    if (far < nearest->distance && far <= (longer + 2) / 3) {
        nearest->distance = far;
        nearest->best = known;
    }
}
