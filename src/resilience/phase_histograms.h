/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_PHASE_HISTOGRAMS_H
#define HFI_RESILIENCE_PHASE_HISTOGRAMS_H

#include <stdatomic.h>

#include "holdfast/guard.h"
#include "resilience/histogram.h"
#include "resilience/outcome.h"
#include "resilience/spread.h"

/* How long each phase of the attempts took by itself, µs. Made when the first attempt with phases ends. */
struct hfi_phase_histograms {
    struct hfi_histogram resolve, connect, tls, first_byte;
};

/* Of one count, for who adds alone; zeros are empty. */
struct hfi_phase_tally {
    struct hfi_phase_histograms phases;
    struct hfi_histogram total;
};
void hfi_phases_tally(const struct hfi_phases *phases, void *tally); /* a struct hfi_phase_tally */
/* The same of what a store keeps of all attempts. */
struct hf_latency_view hfi_latency_of(const struct hfi_spread *spread);
struct hf_latency_view hfi_latency_look(const struct hfi_histogram *histogram);

/* Was any phase reached? Attempts of guarded functions know none. */
static inline bool hfi_phases_any(const struct hfi_phases *phases) {
    return phases->resolve_us >= 0 || phases->connect_us >= 0 || phases->tls_us >= 0 || phases->first_byte_us >= 0;
}
/* Adds the phases that were reached. `place` holds NULL before the first; without memory it goes on doing so and nothing is
   kept. Any thread. */
void hfi_phases_add(struct hfi_phase_histograms *_Atomic *place, const struct hfi_phases *phases);
/* `histograms` NULL: none was ever made. */
void hfi_phases_look(const struct hfi_phase_histograms *histograms, struct hf_downstream_view *view);

#endif
