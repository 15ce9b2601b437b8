/* SPDX-License-Identifier: MIT */
/*
 * The phases of the attempts of one downstream. Decides what the duration of a phase is: an outcome tells when a phase was
 * over, counted from the attempt's start. Must never fail an attempt for want of memory. Any thread, no lock.
 */
#include "resilience/phase_histograms.h"

#include "base/alloc.h"

/* NULL: no memory, the next attempt asks again. */
static struct hfi_phase_histograms *made(struct hfi_phase_histograms *_Atomic *place) {
    struct hfi_phase_histograms *there = atomic_load_explicit(place, memory_order_acquire);
    if (there != NULL)
        return there;
    struct hfi_phase_histograms *fresh = hfi_alloc_lines(sizeof *fresh);
    if (fresh == NULL ||
        atomic_compare_exchange_strong_explicit(place, &there, fresh, memory_order_acq_rel, memory_order_acquire))
        return fresh;
    hfi_free(fresh); /* another thread was first */
    return there;
}

/* One that ended at `end_us`, after all before it had ended at `from_us`; gives when the next one begins. */
static int64_t add(struct hfi_histogram *histogram, int64_t from_us, int64_t end_us) {
    if (end_us < 0)
        return from_us;
    hfi_histogram_add(histogram, end_us > from_us ? end_us - from_us : 0);
    return end_us > from_us ? end_us : from_us;
}

static void add_all(struct hfi_phase_histograms *histograms, const struct hfi_phases *phases) {
    int64_t at_us = add(&histograms->resolve, 0, phases->resolve_us);
    at_us = add(&histograms->connect, at_us, phases->connect_us);
    at_us = add(&histograms->tls, at_us, phases->tls_us);
    add(&histograms->first_byte, at_us, phases->first_byte_us);
}

void hfi_phases_add(struct hfi_phase_histograms *_Atomic *place, const struct hfi_phases *phases) {
    struct hfi_phase_histograms *histograms = made(place);
    if (histograms != NULL)
        add_all(histograms, phases);
}

void hfi_phases_tally(const struct hfi_phases *phases, void *user) {
    struct hfi_phase_tally *tally = user;
    add_all(&tally->phases, phases);
    if (phases->total_us >= 0)
        hfi_histogram_add(&tally->total, phases->total_us);
}

struct hf_latency_view hfi_latency_look(const struct hfi_histogram *histogram) {
    return (struct hf_latency_view){hfi_histogram_total(histogram), hfi_histogram_quantile(histogram, 500),
                                    hfi_histogram_quantile(histogram, 950), hfi_histogram_quantile(histogram, 990)};
}

struct hf_latency_view hfi_latency_of(const struct hfi_spread *spread) {
    return (struct hf_latency_view){hfi_spread_total(spread), hfi_spread_quantile(spread, 0.5),
                                    hfi_spread_quantile(spread, 0.95), hfi_spread_quantile(spread, 0.99)};
}

void hfi_phases_look(const struct hfi_phase_histograms *histograms, struct hf_downstream_view *view) {
    const struct hf_latency_view none = {0, -1, -1, -1};
    view->resolve = histograms != NULL ? hfi_latency_look(&histograms->resolve) : none;
    view->connect = histograms != NULL ? hfi_latency_look(&histograms->connect) : none;
    view->tls = histograms != NULL ? hfi_latency_look(&histograms->tls) : none;
    view->first_byte = histograms != NULL ? hfi_latency_look(&histograms->first_byte) : none;
}
