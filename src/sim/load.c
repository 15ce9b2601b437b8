/* SPDX-License-Identifier: MIT */
/*
 * When a load calls: evenly, at random, along a ramp, in herds, as recorded. Must never give a time before the last one.
 * Pure.
 */
#include "sim/load.h"

#include <math.h>

#include "base/clock.h"
#include "sim/draw.h"

void hfi_load_init(struct hfi_load *load, const struct hf_load *options, int64_t duration_ms, uint64_t seed) {
    int64_t until_ms = options->until_ms > 0 && options->until_ms < duration_ms ? options->until_ms : duration_ms;
    *load = (struct hfi_load){.options = options, .from_us = hfi_ms_to_us(options->from_ms), .until_us = hfi_ms_to_us(until_ms)};
    hfi_random_seed(&load->random, seed);
    load->at_us = load->from_us;
    load->left = options->burst;
}

/*
 * The rate grows evenly from r0 to r1 over T, so r0 t + (r1 - r0) t² / 2T calls come within t. Number n comes when that
 * is n: t = 2n / (r0 + sqrt(r0² + 2n (r1 - r0) / T)), the form of the root that also holds for r0 = r1.
 */
static double ramp_at(const struct hfi_load *load) {
    double n = (double)load->number, low = load->options->rate, high = load->options->rate_to;
    double length = (double)(load->until_us - load->from_us) / 1e6;
    double under = low * low + 2 * n * (high - low) / length;
    if (n == 0)
        return 0;
    return under < 0 ? HUGE_VAL : 2 * n / (low + sqrt(under));
}

static int64_t next_of_herd(struct hfi_load *load) {
    const struct hf_load *options = load->options;
    if (load->left == 0) {
        if (options->every_ms == 0)
            return HFI_FOREVER_US;
        load->at_us = hfi_add(load->at_us, hfi_ms_to_us(options->every_ms));
        load->left = options->burst;
        load->spread = 0;
    }
    /* The least of `left` even numbers in what is left of the spread: so they come in order. */
    if (options->spread_ms > 0)
        load->spread += (1 - load->spread) * (1 - pow(1 - hfi_draw_share(&load->random), 1.0 / load->left));
    load->left--;
    return load->at_us + (int64_t)(load->spread * (double)hfi_ms_to_us(options->spread_ms));
}

static int64_t next(struct hfi_load *load) {
    const struct hf_load *options = load->options;
    double seconds;
    switch (options->kind) {
    case HF_LOAD_CONSTANT:
        seconds = (double)load->number++ / options->rate;
        break;
    case HF_LOAD_RAMP:
        seconds = ramp_at(load);
        load->number++;
        break;
    case HF_LOAD_POISSON:
        load->at_us += (int64_t)(hfi_draw_wait(&load->random) / options->rate * 1e6);
        return load->at_us;
    case HF_LOAD_HERD:
        return next_of_herd(load);
    case HF_LOAD_REPLAY:
        return load->number < options->arrival_count ? hfi_add(load->from_us, options->arrivals_us[load->number++]) : HFI_FOREVER_US;
    default:
        return HFI_FOREVER_US;
    }
    double us = (double)load->from_us + seconds * 1e6 + 0.5;
    return us < 9e18 ? (int64_t)us : HFI_FOREVER_US;
}

int64_t hfi_load_next(struct hfi_load *load) {
    int64_t at_us = next(load);
    return at_us < load->until_us ? at_us : HFI_FOREVER_US;
}
