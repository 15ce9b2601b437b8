/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BREAKER_H
#define HFI_RESILIENCE_BREAKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/random.h"
#include "holdfast/error.h"
#include "holdfast/guard.h"
#include "resilience/shards.h"
#include "resilience/window.h"

/*
 * The circuit breaker. Pure in that time and randomness are handed in; shared, so its closed and open paths read one
 * atomic word {state, generation} and everything else happens under its lock. States: closed -> open -> half_open ->
 * ramp -> closed, and isolated by hand (an isolation that runs out goes on to half_open). One function changes the
 * state (breaker.c: hfi_breaker_move_locked). The generation grows with every change but the end of a ramp.
 *
 * A success while closed costs one addition and takes no lock but once a slice; failures, slow calls and everything while
 * not closed take it. What only a failing peer needs (struct hfi_breaker_more) is allocated at the first failure; without
 * memory for it the breaker works on with one probe at a time, no causes and only the newest change told.
 */
struct hfi_breaker_rules {
    int64_t window_ms, slow_after_ms, break_ms, max_break_ms, ramp_ms, lease_ms;
    uint32_t slices; /* of the window */
    uint32_t ratio_permille, slow_permille, break_jitter_permille, break_factor_permille;
    uint32_t min_calls, consecutive, probes, tolerated;
    uint32_t ramp_cap; /* in flight at the end of the ramp, unless the last healthy window had fewer: the bulkhead's max */
};

enum hfi_admission {
    HFI_ADMITTED = 0,
    HFI_REFUSED_OPEN,      /* breaker.open */
    HFI_REFUSED_HALF_OPEN, /* breaker.half_open: all probe slots taken */
    HFI_REFUSED_RAMP,      /* breaker.ramp */
    HFI_REFUSED_ISOLATED,  /* breaker.isolated */
    HFI_REFUSED_GATE,      /* downstream.gate: not-before of a Retry-After */
    HFI_REFUSED_FULL,      /* bulkhead.full: never the breaker's own, as the next */
    HFI_REFUSED_RATE       /* rate.limited */
};

struct hfi_window_sum {
    uint64_t calls, failures, slow; /* of completed attempts */
};

#define HFI_REASON_MAX 160

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
    struct hf_causes causes;      /* of the failures in it */
    /* One of "ratio", "consecutive", "slow", "probe_failed", "probe_lost", "break_over", "probes_passed", "ramp_over",
       "isolated", "isolation_over", "closed", or what was restored; the trips and "isolated" go on with ": " and
       the numbers or the text given. */
    const char *reason;
};
typedef void (*hfi_breaker_fn)(const struct hfi_breaker_event *event, void *user); /* of a breaker: itself */

#define HFI_BREAKER_PROBES_MAX 16
#define HFI_BREAKER_PENDING 4      /* events waiting for a slow observer; beyond it the newest two become one */
#define HFI_BREAKER_RAMP_SLICES 11 /* of 10 ms: more than any 100 ms */

struct hfi_breaker_probe {
    int64_t lease_us; /* 0 = free; held until reported or lapsed */
    uint32_t stamp;   /* whose it is: a lapsed probe must not free its successor's */
};

struct hfi_breaker_more {
    struct hfi_breaker_probe probes[HFI_BREAKER_PROBES_MAX - 1]; /* all but the first */
    int64_t healthy_since_us; /* the newest closed or ramp began; INT64_MAX: unknown, and never healthy */
    int64_t run_us;           /* when the last of `run` came; INT64_MAX: unknown, and just now */
    int64_t ramp_slice;       /* newest slice started in */
    uint32_t ramp_starts[HFI_BREAKER_RAMP_SLICES];
    uint64_t causes[HF_CAUSES]; /* since the start */
    uint64_t slow;
    uint32_t *causes_memory;    /* of windows beside the breaker's; */
    uint32_t *slow_memory;      /* NULL until slow_permille was given */
    char reason[HFI_REASON_MAX]; /* while open or isolated */
    uint32_t pending_count;
    struct {
        struct hfi_breaker_event event;
        char reason[HFI_REASON_MAX];
    } pending[HFI_BREAKER_PENDING];
};

/* The columns of its window. */
enum { HFI_COLUMN_SUCCESSES, HFI_COLUMN_FAILURES, HFI_COLUMNS };

/* The first line of memory is what every call reads and few write; then comes what one thread writes for each call. */
struct hfi_breaker {
    _Atomic uint64_t word;    /* state in the low byte, generation above */
    _Atomic int64_t until_us; /* open, half-open: the break's end; isolated: HFI_FOREVER_US or its expiry */
    _Atomic int64_t gate_us;  /* not before; 0 = none */
    _Atomic int64_t turn_us;  /* from then on the windows have to be turned before a sample */
    const struct hfi_breaker_rules *_Atomic rules;
    _Atomic uint32_t run;     /* consecutive failures */
    struct hfi_lock lock;     /* guards what follows the shards */
    struct hfi_shards shards; /* samples that passed, neutral ends; the bulkhead's permits */
    uint64_t failures;
    int64_t since_us;         /* the last change; while closed: the begin of the window that `peak` is of */
    struct hfi_breaker_more *more;
    hfi_breaker_fn on_change;
    union {
        uint32_t few[HFI_WINDOW_WORDS(HFI_WINDOW_SLICES, HFI_COLUMNS)]; /* of up to so many slices */
        uint32_t *many;
    } window;
    uint32_t trips;
    uint32_t peak, healthy_peak; /* in flight at once: so far, and in the last whole window while closed; 0: unknown */
    uint32_t ramp_in_flight;
    uint32_t next_stamp;
    uint32_t seed;                  /* of the jitter */
    struct hfi_breaker_probe probe; /* the first slot */
    uint8_t probes_passed, probes_failed; /* HFI_BREAKER_PROBES_MAX at most */
    uint16_t neutral_run;
    uint8_t why;    /* of the break, when there is no room for a text: hfi_breaker_why */
    bool telling;   /* a thread is in on_change */
    uint8_t untold; /* a state + 1: a change away from it found no room in `pending` */
};

/* The rules stay the caller's and must live as long as the breaker, or until a reload and what it says. 0 or HF_ENOMEM:
   then nothing is there to be ended. */
int hfi_breaker_init(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules, uint32_t seed,
                     hfi_breaker_fn on_change);
void hfi_breaker_end(struct hfi_breaker *breaker);

/*
 * Goes on by other rules: state, `until`, generation, trips and what was counted stay; the window starts anew only when
 * its length or slices changed. A half-open breaker is judged by the new numbers at once: it may close with what has
 * passed, or open with what has failed. Other threads may read the old rules until they are out of the breaker: keep
 * them. HF_ENOMEM: nothing has changed (V15, F2).
 */
int hfi_breaker_reload(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_rules *rules);
/* Tells what a reload has changed, which does not tell itself: its caller lets go of locks of its own before (B22). */
void hfi_breaker_tell(struct hfi_breaker *breaker);

/* One attempt, please, that begins at once: who waits in a queue holds no permit and enters when it leaves it. On refusal
   `retry_after_ms` says how long (≥ 1). */
enum hfi_admission hfi_breaker_enter(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                                     int64_t *retry_after_ms);
/* Is it isolated now? Ends an isolation that is over. One that nobody enters is asked so: that of all hosts together. */
bool hfi_breaker_isolated(struct hfi_breaker *breaker, struct hf_mono now, int64_t *retry_after_ms);
/* Reports the end. HF_ESTATE: reported before. `cause` of a failure; `life`: a neutral answer that proves the peer
   answers. */
int hfi_breaker_leave(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                      enum hf_verdict verdict, enum hf_cause cause, bool life);
/* It never came to an attempt after all, and is no end either: only its slot, or its start in the ramp, is free again. */
void hfi_breaker_forgo(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit);
void hfi_breaker_drop(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit); /* the same, but a neutral end */
uint64_t hfi_breaker_failures(struct hfi_breaker *breaker); /* all that were reported since the start, samples or not */
/* Takes back lapsed probe leases and ends breaks and ramps that are over; also done inside enter. */
void hfi_breaker_tick(struct hfi_breaker *breaker, struct hf_mono now);

#define HFI_PERMIT_HELD 1u
#define HFI_PERMIT_REPORTED 2u
#define HFI_SLOT_NONE 0u         /* admitted while closed */
#define HFI_SLOT_RAMP UINT32_MAX /* admitted by the ramp; any other: stamp << 8 | probe slot + 1 */

static inline uint64_t hfi_breaker_word(const struct hfi_breaker *breaker) {
    return atomic_load_explicit(&breaker->word, memory_order_acquire);
}
static inline enum hf_breaker_state hfi_word_state(uint64_t word) {
    return (enum hf_breaker_state)(word & 0xff);
}
static inline uint64_t hfi_word_generation(uint64_t word) {
    return word >> 8;
}

/* Closed, with no gate ever set or lifted by time: the price of an enter is a glance. */
static inline bool hfi_breaker_is_closed(const struct hfi_breaker *breaker) {
    return hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_CLOSED &&
           atomic_load_explicit(&breaker->gate_us, memory_order_relaxed) == 0;
}

/* In a break that is not over: an enter is refused, and needs no lock for it. */
static inline bool hfi_breaker_is_open(const struct hfi_breaker *breaker, struct hf_mono now) {
    return hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_OPEN &&
           now.us < atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
}

/* The common cases of enter and leave, for who has looked up its shard already: closed, and a plain success that needs no
   lock. False: nothing has happened, take the long way. */
static inline bool hfi_breaker_enter_closed(const struct hfi_breaker *breaker, struct hf_mono now,
                                            struct hf_permit *permit) {
    uint64_t word = hfi_breaker_word(breaker);
    if (hfi_word_state(word) != HF_BREAKER_CLOSED ||
        now.us < atomic_load_explicit(&breaker->gate_us, memory_order_relaxed))
        return false;
    permit->generation = hfi_word_generation(word);
    permit->started_us = now.us;
    permit->lease_us = 0; /* only a probe's runs here: the bulkhead knows of all others */
    permit->slot = HFI_SLOT_NONE;
    permit->state = HFI_PERMIT_HELD;
    return true;
}
static inline bool hfi_breaker_is_slow(const struct hfi_breaker *breaker, struct hf_mono now,
                                       const struct hf_permit *permit) {
    const struct hfi_breaker_rules *rules = atomic_load_explicit(&breaker->rules, memory_order_acquire);
    return rules->slow_permille > 0 && hfi_sub(now.us, permit->started_us) > hfi_ms_to_us(rules->slow_after_ms);
}
static inline bool hfi_breaker_leave_closed(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                                            enum hf_verdict verdict, struct hfi_shard_use use) {
    if (permit->slot != HFI_SLOT_NONE || verdict == HF_VERDICT_FAILURE)
        return false;
    if (verdict == HF_VERDICT_NEUTRAL) { /* decides nothing, whatever the generation (B9, B28) */
        permit->state = HFI_PERMIT_REPORTED;
        HFI_SHARD_ADD(use, neutrals, 1);
        return true;
    }
    if (hfi_word_generation(hfi_breaker_word(breaker)) != permit->generation ||
        now.us >= atomic_load_explicit(&breaker->turn_us, memory_order_relaxed) ||
        atomic_load_explicit(&breaker->run, memory_order_relaxed) != 0 ||
        hfi_breaker_is_slow(breaker, now, permit))
        return false;
    permit->state = HFI_PERMIT_REPORTED;
    HFI_SHARD_ADD(use, successes, 1);
    return true;
}

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
    struct hf_causes causes;
    uint64_t failures_to_trip; /* as in struct hf_downstream_view (W12) */
    char reason[HFI_REASON_MAX];
    int64_t ramp_from_us; /* while ramping: when it began, */
    uint32_t ramp_limit;  /* and what may be in flight now */
};
void hfi_breaker_look(struct hfi_breaker *breaker, struct hf_mono now, struct hfi_breaker_look *look);

/* Another node's probes have passed: from open or half-open on to the ramp, which began at `from`, or to closed when it
   is over by now. Anything else stays as it is. */
void hfi_breaker_ramp(struct hfi_breaker *breaker, struct hf_mono now, struct hf_mono from);

/* Saved with the store and taken up after a restart or from another node; until_us in this process's clock (B27). */
struct hfi_breaker_saved {
    enum hf_breaker_state state; /* open or isolated; anything else restores to closed */
    int64_t until_us;
    uint32_t trips;
    char reason[HFI_REASON_MAX];
};
/* Open to open keeps its own `until` (B10); isolated to isolated takes the new expiry and reason. */
void hfi_breaker_restore(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_saved *saved);

#endif
