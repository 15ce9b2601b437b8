/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_NEAREST_H
#define HFI_PROGRAM_NEAREST_H

#include <stddef.h>

/*
 * The known name nearest to what somebody typed, for error texts. Offer each known name; `best` is NULL when none is
 * near enough to be a plausible slip (a third of its letters).
 */
struct hfi_nearest {
    const char *typed;
    const char *best;
    size_t distance;
};
void hfi_nearest_init(struct hfi_nearest *nearest, const char *typed);
void hfi_nearest_offer(struct hfi_nearest *nearest, const char *known);

#endif
