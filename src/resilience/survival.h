/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_SURVIVAL_H
#define HFI_RESILIENCE_SURVIVAL_H

#include <stdbool.h>

#include "resilience/spread.h"

/*
 * What durations would have been, of which some were cut short: the product limit (Kaplan and Meier) over the buckets of
 * `ended` (the end was seen) and `cut` (it was not: it comes later than that, if at all). docs/ladder.md has the formulae.
 * Pure; one thread.
 */
struct hfi_survival {
    const struct hfi_spread *ended, *cut; /* cut NULL: none */
};

#define HFI_SURVIVAL_DOUBT 0.05 /* of a bound: how often it may be wrong */

uint64_t hfi_survival_samples(const struct hfi_survival *survival);
/* So many samples are needed at least before a bound of that quantile can exist: ln(doubt) / ln(keep). */
uint64_t hfi_survival_needed(double keep);
/* The share that has ended by then, 0 to 1; -1 without samples. */
double hfi_survival_share(const struct hfi_survival *survival, int64_t us);
/* The smallest duration by which that share has ended; -1: what was seen does not tell, it was cut before. */
int64_t hfi_survival_quantile(const struct hfi_survival *survival, double keep);
/* One that is above it with 95 % confidence; -1: too few samples, or cut before. */
int64_t hfi_survival_bound(const struct hfi_survival *survival, double keep);

/* Of those still out at the limit: which share ends before `factor` times the limit? As between limit / factor and the
   limit, with the 95 % interval of Wilson. */
struct hfi_later {
    uint64_t reached; /* were still out at limit / factor */
    uint64_t ended;   /* of those, before the limit */
    double share, low, high;
};
#define HFI_LATER_LEAST 20 /* fewer that reached it say nothing */
/* False: too few; only the counts are set. */
bool hfi_survival_later(const struct hfi_survival *survival, int64_t limit_us, double factor, struct hfi_later *later);

/* P(X <= k) of a binomial X with n trials of p each: exact up to an expectation of 2,000, else by the normal one. */
double hfi_binomial_below(double n, double p, double k);

#endif
