/* SPDX-License-Identifier: MIT */
/*
 * Random times: shares, normal and exponential numbers, and the delays of a downstream. Must never take randomness from
 * anywhere but the generator it is handed. Pure.
 */
#include "sim/draw.h"

#include <math.h>

#include "base/alloc.h"
#include "holdfast/error.h"

#define Z99 2.3263478740408408 /* 99 % of a normal distribution lie below so many deviations */

double hfi_draw_share(struct hfi_random *random) {
    return (double)(hfi_random_next(random) >> 11) * 0x1p-53;
}

/* Box and Muller; one of the pair is thrown away, so that the state is the generator's alone. */
double hfi_draw_normal(struct hfi_random *random) {
    double radius = sqrt(2 * hfi_draw_wait(random));
    return radius * cos(6.283185307179586 * hfi_draw_share(random));
}

double hfi_draw_wait(struct hfi_random *random) {
    return -log(1 - hfi_draw_share(random)); /* 1 - share is never 0 */
}

static void shape_of(int64_t median_us, int64_t p99_us, double *mu, double *sigma) {
    *mu = median_us > 0 ? log((double)median_us) : 0;
    *sigma = p99_us > median_us ? (log((double)p99_us) - *mu) / Z99 : 0;
}

int hfi_delay_init(struct hfi_delay *delay, const struct hf_delay *shape) {
    *delay = (struct hfi_delay){.shape = shape};
    shape_of(shape->median_us, shape->p99_us, &delay->mu, &delay->sigma);
    shape_of(shape->tail_median_us, shape->tail_p99_us, &delay->tail_mu, &delay->tail_sigma);
    if (shape->step_count == 0)
        return 0;
    delay->sums = hfi_alloc_array(shape->step_count, sizeof *delay->sums);
    if (delay->sums == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < shape->step_count; i++)
        delay->sums[i] = (i > 0 ? delay->sums[i - 1] : 0) + shape->steps[i].count;
    return 0;
}

void hfi_delay_end(struct hfi_delay *delay) {
    hfi_free(delay->sums);
    delay->sums = NULL;
}

static double draw_lognormal(double mu, double sigma, int64_t median_us, struct hfi_random *random) {
    return sigma > 0 ? exp(mu + sigma * hfi_draw_normal(random)) : (double)median_us;
}

static double draw_step(const struct hfi_delay *delay, struct hfi_random *random) {
    size_t low = 0, high = delay->shape->step_count - 1;
    uint64_t at = hfi_random_below(random, delay->sums[high]);
    while (low < high) { /* the first step whose sum is above it */
        size_t middle = (low + high) / 2;
        if (delay->sums[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    double from = low > 0 ? (double)delay->shape->steps[low - 1].upto_us : 0;
    return from + ((double)delay->shape->steps[low].upto_us - from) * hfi_draw_share(random);
}

int64_t hfi_delay_draw(const struct hfi_delay *delay, struct hfi_random *random) {
    const struct hf_delay *shape = delay->shape;
    double us;
    if (shape->tail_share > 0 && hfi_draw_share(random) < shape->tail_share)
        us = draw_lognormal(delay->tail_mu, delay->tail_sigma, shape->tail_median_us, random);
    else if (delay->sums != NULL)
        us = draw_step(delay, random);
    else
        us = draw_lognormal(delay->mu, delay->sigma, shape->median_us, random);
    return us < (double)HFI_DELAY_MAX_US ? (int64_t)us : HFI_DELAY_MAX_US;
}
