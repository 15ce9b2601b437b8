/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BREAKER_H
#define HFI_RESILIENCE_BREAKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/random.h"
#include "holdfast/guard.h"
#include "resilience/window.h"

/*
 * The circuit breaker. Pure in that time and randomness are handed in; shared, so its closed and open paths read one
 * atomic word {state, generation} and everything else happens under its lock. States: closed -> open -> half_open ->
 * ramp -> closed, and isolated by hand (an isolation that runs out goes on to half_open). One function changes the
 * state (breaker.c: hfi_breaker_move). The generation grows with every change but the end of a ramp.
 */
struct hfi_breaker_rules {
    int64_t window_ms, slow_after_ms, break_ms, max_break_ms, ramp_ms, lease_ms;
    uint32_t ratio_permille, slow_permille, break_jitter_permille, break_factor_permille;
    uint32_t min_calls, consecutive, probes, tolerated;
    uint32_t ramp_cap; /* in flight at the end of the ramp: the bulkhead's max */
};

enum hfi_admission {
    HFI_ADMITTED = 0,
    HFI_REFUSED_OPEN,      /* breaker.open */
    HFI_REFUSED_HALF_OPEN, /* breaker.half_open: all probe slots taken */
    HFI_REFUSED_RAMP,      /* breaker.ramp */
    HFI_REFUSED_ISOLATED,  /* breaker.isolated */
    HFI_REFUSED_GATE       /* downstream.gate: not-before of a Retry-After */
};

/*
 * Called after the locks, strictly in the order of the changes, by a thread that is in the breaker anyway: the one
 * that made the change unless another is still telling of an earlier one (B22). It may call everything here. Texts
 * live during the call.
 */
struct hfi_breaker_event {
    enum hf_breaker_state from, to;
    uint64_t generation;
    int64_t at_us;    /* monotonic */
    int64_t until_us; /* monotonic, of a break or isolation */
    uint32_t trips;
    struct hfi_window_sum window; /* as it was when it decided */
    /* "ratio", "consecutive", "slow", "probe_failed", "probe_lost", "break_over", "probes_passed", "ramp_over",
       "isolated: …", "isolation_over", "closed", or what was restored */
    const char *reason;
};
typedef void (*hfi_breaker_fn)(const struct hfi_breaker_event *event, void *user);

#define HFI_BREAKER_PROBES_MAX 16
#define HFI_BREAKER_PENDING 4      /* events waiting for a slow observer; beyond it the newest two become one */
#define HFI_BREAKER_RAMP_SLICES 11 /* of 10 ms: more than any 100 ms */
struct hfi_breaker {
    _Atomic uint64_t word;    /* state in the low byte, generation above */
    _Atomic int64_t until_us; /* open, half-open: the break's end; isolated: HFI_FOREVER_US or its expiry */
    _Atomic int64_t gate_us;  /* not before; 0 = none */
    _Atomic uint32_t run;     /* consecutive failures */
    _Atomic int64_t run_us;   /* when the last of them came */
    struct hfi_window window;
    struct hfi_breaker_rules rules;
    pthread_mutex_t lock; /* guards what follows */
    uint32_t trips;
    int64_t healthy_since_us;
    int64_t probe_lease_us[HFI_BREAKER_PROBES_MAX]; /* 0 = free slot; held until reported or lapsed */
    uint32_t probe_stamp[HFI_BREAKER_PROBES_MAX];   /* whose it is: a lapsed probe must not free its successor's */
    uint32_t next_stamp;
    uint32_t probes_passed, probes_failed, neutral_run;
    int64_t ramp_from_us;
    int64_t ramp_slice; /* newest slice started in */
    uint32_t ramp_in_flight;
    uint32_t ramp_starts[HFI_BREAKER_RAMP_SLICES];
    struct hfi_random random;
    char reason[160];
    hfi_breaker_fn on_change;
    void *user;
    bool telling; /* a thread is in on_change */
    uint32_t pending_count;
    struct hfi_breaker_event pending[HFI_BREAKER_PENDING];
};

void hfi_breaker_init(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules, uint64_t seed,
                      hfi_breaker_fn on_change, void *user);
void hfi_breaker_end(struct hfi_breaker *breaker);

/* One attempt, please. On refusal `retry_after_ms` says how long (≥ 1). */
enum hfi_admission hfi_breaker_enter(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                                     int64_t *retry_after_ms);
/* Is it isolated now? Ends an isolation that is over. One that nobody enters is asked so: that of all hosts together. */
bool hfi_breaker_isolated(struct hfi_breaker *breaker, struct hf_mono now, int64_t *retry_after_ms);
/* The lease runs from the attempt's start: call it when the permit leaves a queue. False: the permit is of an older
   generation or lapsed; give it back with hfi_breaker_drop and ask again. */
bool hfi_breaker_begin(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit);
/* Reports the end. HF_ESTATE: reported before. `life`: a neutral answer that proves the peer answers. */
int hfi_breaker_leave(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                      enum hf_verdict verdict, bool life);
void hfi_breaker_drop(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit); /* never started: neutral */
/* Takes back lapsed probe leases and ends breaks and ramps that are over; also done inside enter. */
void hfi_breaker_tick(struct hfi_breaker *breaker, struct hf_mono now);

void hfi_breaker_gate(struct hfi_breaker *breaker, struct hf_mono until); /* only ever later */
void hfi_breaker_isolate(struct hfi_breaker *breaker, struct hf_mono now, int64_t for_ms, const char *reason);
void hfi_breaker_close(struct hfi_breaker *breaker, struct hf_mono now); /* lifts the gate as well */

/* Looking never changes anything: `probe_ready` says that an enter now would become a probe (B26). */
struct hfi_breaker_look {
    enum hf_breaker_state state;
    uint64_t generation;
    int64_t until_us, gate_us;
    uint32_t trips, probes_in_flight;
    bool probe_ready;
    uint32_t allowance; /* how many enters would be admitted now: UINT32_MAX when closed; what claims go by */
    struct hfi_window_sum window;
    char reason[160];
};
void hfi_breaker_look(struct hfi_breaker *breaker, struct hf_mono now, struct hfi_breaker_look *look);

/* Saved with the store and taken up after a restart or from another node; until_us in this process's clock (B27). */
struct hfi_breaker_saved {
    enum hf_breaker_state state; /* open or isolated; anything else restores to closed */
    int64_t until_us;
    uint32_t trips;
    char reason[160];
};
/* Open to open keeps its own `until` (B10); isolated to isolated takes the new expiry and reason. */
void hfi_breaker_restore(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_saved *saved);

#endif
