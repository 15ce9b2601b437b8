/* SPDX-License-Identifier: MIT */
/*
 * Estimates from durations of which some were cut: product limit, quantiles and their bounds, what would have ended a
 * little later. Must never give a number for which there are too few samples. Pure; one thread.
 */
#include "resilience/survival.h"

#include <math.h>

#define EXACT_UP_TO 2000.0
#define Z_TWO_SIDED 1.9599639845400545

/* ln Γ(x) for x >= 1 by Stirling's series: no global state, as lgamma has. */
static double log_gamma(double x) {
    double shift = 0;
    while (x < 10) {
        shift += log(x);
        x += 1;
    }
    double square = 1 / (x * x);
    return (x - 0.5) * log(x) - x + 0.91893853320467274 + (1.0 / 12 - square * (1.0 / 360 - square / 1260)) / x - shift;
}

double hfi_binomial_below(double n, double p, double k) {
    if (k < 0)
        return 0;
    if (k >= n || p <= 0)
        return 1;
    if (p >= 1)
        return 0;
    double mean = n * p;
    if (mean > EXACT_UP_TO)
        return 0.5 * erfc((mean - k - 0.5) / sqrt(2 * mean * (1 - p)));
    double term = exp(log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
    double sum = 0;
    for (double i = k; i >= 0; i--) {
        sum += term;
        if (i < mean && term < sum * 1e-12)
            break;
        term *= i / (n - i + 1) * (1 - p) / p;
    }
    return sum < 1 ? sum : 1;
}

/* The walk through the buckets. After a step: `out` are still out, `after` is the estimated share of them. */
struct walk {
    const struct hfi_survival *survival;
    unsigned bucket;
    uint64_t at_risk;
    double after, trials; /* trials: what `after` is worth as a share of simple counts */
};

static struct walk begin(const struct hfi_survival *survival) {
    uint64_t samples = hfi_survival_samples(survival);
    return (struct walk){.survival = survival, .at_risk = samples, .after = 1, .trials = (double)samples};
}

/* What ends and is cut in one bucket: the ends come first, so that a cut at its limit counts as later. False: over. */
static bool step(struct walk *walk, unsigned *bucket) {
    const struct hfi_survival *survival = walk->survival;
    uint64_t ended = 0, cut = 0;
    while (walk->bucket < HFI_SPREAD_BUCKETS && ended + cut == 0) {
        ended = survival->ended->counts[walk->bucket];
        cut = survival->cut != NULL ? survival->cut->counts[walk->bucket] : 0;
        *bucket = walk->bucket++;
    }
    if (ended + cut == 0 || walk->at_risk == 0)
        return false;
    uint64_t left = walk->at_risk - ended;
    walk->after *= (double)left / (double)walk->at_risk;
    if (left > 0)
        walk->trials = (double)left / walk->after; /* Peto's: as if nobody had been cut */
    walk->at_risk = left - cut;
    return true;
}

uint64_t hfi_survival_samples(const struct hfi_survival *survival) {
    return hfi_spread_sum(hfi_spread_total(survival->ended), survival->cut != NULL ? hfi_spread_total(survival->cut) : 0);
}

uint64_t hfi_survival_needed(double keep) {
    if (!(keep > 0))
        return 1;
    double needed = keep < 1 ? ceil(log(HFI_SURVIVAL_DOUBT) / log(keep)) : INFINITY;
    return needed < 1e18 ? (uint64_t)needed : UINT64_MAX;
}

double hfi_survival_share(const struct hfi_survival *survival, int64_t us) {
    struct walk walk = begin(survival);
    unsigned bucket, last = hfi_spread_bucket(us);
    double share = walk.at_risk > 0 ? 0 : -1;
    while (step(&walk, &bucket) && bucket <= last)
        share = 1 - walk.after;
    return share;
}

int64_t hfi_survival_quantile(const struct hfi_survival *survival, double keep) {
    struct walk walk = begin(survival);
    unsigned bucket;
    while (step(&walk, &bucket))
        if (1 - walk.after >= keep)
            return hfi_spread_edge(bucket);
    return -1;
}

int64_t hfi_survival_bound(const struct hfi_survival *survival, double keep) {
    struct walk walk = begin(survival);
    unsigned bucket;
    while (step(&walk, &bucket)) {
        double beyond = 1 - keep;
        if (walk.after > beyond)
            continue;
        double trials = floor(walk.trials);
        if (hfi_binomial_below(trials, beyond, ceil(trials * walk.after - 1e-9)) <= HFI_SURVIVAL_DOUBT)
            return hfi_spread_edge(bucket);
    }
    return -1;
}

bool hfi_survival_later(const struct hfi_survival *survival, int64_t limit_us, double factor, struct hfi_later *later) {
    unsigned from = hfi_spread_bucket((int64_t)((double)limit_us / factor)), to = hfi_spread_bucket(limit_us);
    uint64_t out_of_it = 0; /* cut before the limit: their end was not waited for */
    *later = (struct hfi_later){0};
    for (unsigned i = from + 1; i < HFI_SPREAD_BUCKETS; i++) {
        uint64_t ended = survival->ended->counts[i], cut = survival->cut != NULL ? survival->cut->counts[i] : 0;
        later->reached = hfi_spread_sum(later->reached, hfi_spread_sum(ended, cut));
        if (i <= to)
            later->ended = hfi_spread_sum(later->ended, ended);
        if (i < to)
            out_of_it = hfi_spread_sum(out_of_it, cut);
    }
    double n = (double)later->reached - (double)out_of_it / 2;
    if (later->reached < HFI_LATER_LEAST || n < HFI_LATER_LEAST)
        return false;
    double p = (double)later->ended / n, z2 = Z_TWO_SIDED * Z_TWO_SIDED;
    p = p < 1 ? p : 1;
    double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
    double half = Z_TWO_SIDED / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    later->share = p;
    later->low = later->ended > 0 ? middle - half : 0;
    later->high = middle + half < 1 ? middle + half : 1;
    return true;
}
