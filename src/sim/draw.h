/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_DRAW_H
#define HFI_SIM_DRAW_H

#include "base/random.h"
#include "holdfast/simulate.h"

/* Random times of the simulator. Pure: the generator is handed in, the same one gives the same numbers. */

#define HFI_DELAY_MAX_US (INT64_C(3600) * 1000000) /* what is drawn is cut there */

double hfi_draw_share(struct hfi_random *random);      /* [0, 1) */
double hfi_draw_normal(struct hfi_random *random);     /* mean 0, deviation 1 */
double hfi_draw_wait(struct hfi_random *random);       /* exponential, mean 1 */

/* A delay, ready to be drawn from. */
struct hfi_delay {
    const struct hf_delay *shape;
    double mu, sigma, tail_mu, tail_sigma; /* of the logarithms; sigma 0: constant */
    uint64_t *sums;                        /* of the steps, running; NULL without any */
};
int hfi_delay_init(struct hfi_delay *delay, const struct hf_delay *shape); /* a checked one. HF_ENOMEM */
void hfi_delay_end(struct hfi_delay *delay);
int64_t hfi_delay_draw(const struct hfi_delay *delay, struct hfi_random *random); /* µs, 0 to HFI_DELAY_MAX_US */

#endif
