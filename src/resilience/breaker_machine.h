/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BREAKER_MACHINE_H
#define HFI_RESILIENCE_BREAKER_MACHINE_H

#include "resilience/breaker.h"

/* What the files of the breaker share; nobody else includes it. Names with _locked want the lock held. */

#define HFI_PERMIT_HELD 1u
#define HFI_PERMIT_REPORTED 2u
#define HFI_SLOT_NONE 0u          /* admitted while closed */
#define HFI_SLOT_RAMP UINT32_MAX  /* admitted by the ramp; any other: stamp << 8 | probe slot + 1 */

static inline uint64_t hfi_breaker_word(const struct hfi_breaker *breaker) {
    return atomic_load_explicit(&breaker->word, memory_order_acquire);
}
static inline enum hf_breaker_state hfi_word_state(uint64_t word) {
    return (enum hf_breaker_state)(word & 0xff);
}
static inline uint64_t hfi_word_generation(uint64_t word) {
    return word >> 8;
}

/* The one way to another state; `until` for open and isolated, `reason` NULL: breaker->reason as it stands. */
void hfi_breaker_move_locked(struct hfi_breaker *breaker, struct hf_mono now, enum hf_breaker_state to,
                             int64_t until_us, const char *reason);
/* A new break: counts the trip, works out its length, moves to open. */
void hfi_breaker_trip_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *reason);
/* Does what time alone brings about. */
void hfi_breaker_tick_locked(struct hfi_breaker *breaker, struct hf_mono now);
/* Enough probes came back? Then to the ramp (or open). */
void hfi_breaker_judge_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *failed_reason);
/* Gives up the lock, then tells the observer what happened. */
void hfi_breaker_unlock(struct hfi_breaker *breaker);

uint32_t hfi_breaker_probes_in_flight(const struct hfi_breaker *breaker);
uint32_t hfi_breaker_ramp_limit(const struct hfi_breaker *breaker, struct hf_mono now);
uint32_t hfi_breaker_ramp_starts(const struct hfi_breaker *breaker, struct hf_mono now); /* of the last 100 ms */
int64_t hfi_breaker_ramp_slice(const struct hfi_breaker *breaker, struct hf_mono now);

#endif
