/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_LOAD_H
#define HFI_SIM_LOAD_H

#include "base/random.h"
#include "holdfast/simulate.h"

/* The times at which one load calls, one after the other. Pure. */
struct hfi_load {
    const struct hf_load *options; /* checked */
    struct hfi_random random;
    int64_t from_us, until_us;
    uint64_t number; /* of the next arrival, of those of a rate or a recording */
    int64_t at_us;   /* POISSON: the last arrival; HERD: the start of this one */
    uint32_t left;   /* of this herd */
    double spread;   /* of this herd, the share that is behind us */
};
void hfi_load_init(struct hfi_load *load, const struct hf_load *options, int64_t duration_ms, uint64_t seed);
/* µs from the start of the scenario, never less than the one before; HFI_FOREVER_US: none comes any more. */
int64_t hfi_load_next(struct hfi_load *load);

#endif
