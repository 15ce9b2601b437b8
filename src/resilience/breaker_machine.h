/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BREAKER_MACHINE_H
#define HFI_RESILIENCE_BREAKER_MACHINE_H

#include "resilience/breaker.h"

/* What the files of the breaker share; nobody else includes it. Names with _locked want the lock held. */

static inline const struct hfi_breaker_rules *hfi_breaker_rules(const struct hfi_breaker *breaker) {
    return atomic_load_explicit(&breaker->rules, memory_order_acquire);
}

#define HFI_RAMP_SLICE_US 10000

/* The one way to another state; `until` for open and isolated. `code` is a constant, `text` begins with it, except for
   isolated and restored breaks, where it is what a person wrote. */
void hfi_breaker_move_locked(struct hfi_breaker *breaker, struct hf_mono now, enum hf_breaker_state to,
                             int64_t until_us, const char *code, const char *text);
/* A new break: counts the trip, works out its length, moves to open. */
void hfi_breaker_trip_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *code, const char *text);
/* Does what time alone brings about. */
void hfi_breaker_tick_locked(struct hfi_breaker *breaker, struct hf_mono now);
/* Enough probes came back? Then to the ramp (or open, for `code` and the cause of the last failure). */
void hfi_breaker_judge_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *code, enum hf_cause cause);
int hfi_breaker_windows_init(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules);
void hfi_breaker_windows_end(struct hfi_breaker *breaker);
/* One completed attempt of this generation, while closed or ramping: counts it, and trips when that is enough. */
void hfi_breaker_sample_locked(struct hfi_breaker *breaker, struct hf_mono now, bool failure, bool slow,
                               enum hf_cause cause);
/* A report that is no sample of the window: of a probe, or of an older generation. */
void hfi_breaker_stray_locked(struct hfi_breaker *breaker, bool failure);
/* Closed or in its ramp for so long that the next break is a first one again? */
bool hfi_breaker_is_healthy(const struct hfi_breaker *breaker, struct hf_mono now);
/* Lets the windows catch up; what they hold as of `at`; forgets it. */
void hfi_breaker_turn_locked(struct hfi_breaker *breaker, struct hf_mono now);
void hfi_breaker_sum_locked(const struct hfi_breaker *breaker, struct hf_mono at, struct hfi_window_sum *sum,
                            struct hf_causes *causes);
void hfi_breaker_forget_locked(struct hfi_breaker *breaker);
/* What only a failing peer needs; NULL without memory for it. */
struct hfi_breaker_more *hfi_breaker_more_locked(struct hfi_breaker *breaker);
/* The code that keep_reason kept; "" when it is neither open nor isolated. */
const char *hfi_breaker_why(const struct hfi_breaker *breaker);
/* Gives up the lock, then tells the observer what happened. */
void hfi_breaker_unlock(struct hfi_breaker *breaker);

struct hfi_breaker_probe *hfi_breaker_probe_at(struct hfi_breaker *breaker, uint32_t slot);
uint32_t hfi_breaker_slots(const struct hfi_breaker *breaker); /* 16, or 1 without memory */
uint32_t hfi_breaker_probes_in_flight(const struct hfi_breaker *breaker);
uint32_t hfi_breaker_ramp_limit(const struct hfi_breaker *breaker, struct hf_mono now);
uint32_t hfi_breaker_ramp_starts(const struct hfi_breaker *breaker, struct hf_mono now); /* of the last 100 ms */
int64_t hfi_breaker_ramp_slice(const struct hfi_breaker *breaker, struct hf_mono now); /* with room for `more` only */
/* So many failures in a row would trip it (W12). */
uint64_t hfi_breaker_failures_to_trip(const struct hfi_breaker *breaker, struct hf_mono now);

#endif
