/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_REFERENCE_H
#define HF_TEST_REFERENCE_H

#include "resilience/breaker.h"

/*
 * What a breaker has to do, told again from the design (2.5) in the plainest way: every permit and every sample is kept in
 * a list with its time, nothing is counted in advance. Slow, without threads, and with nothing of the machine in it. It is
 * told what the machine did and asserts that it may; break lengths, which are jittered, must lie in their range and are
 * then taken over, to see that they never move (B10, B15).
 */
enum { REFERENCE_PERMITS = 96, REFERENCE_SAMPLES = 20000, REFERENCE_STARTS = 4000 };

enum reference_kind { PLAIN_PERMIT, PROBE_PERMIT, RAMP_PERMIT };

struct reference_permit {
    bool held;   /* somebody will report it */
    bool in_use; /* the breaker waits for it: a probe until it is reported or lapsed, one of the ramp until reported */
    enum reference_kind kind;
    uint64_t generation;
    int64_t started_us, lease_us;
    int64_t start_us; /* when it counts as started in the ramp */
};

struct reference_sample {
    int64_t at_us;
    bool failure, slow;
    enum hf_cause cause;
};

struct reference {
    struct hfi_breaker_rules rules;
    enum hf_breaker_state state;
    uint64_t generation, moves;
    int64_t until_us, gate_us, healthy_us, ramp_us;
    int64_t shortest_us, longest_us; /* until when the break may last that has just begun; 0: it is known */
    int64_t latest_us;               /* samples of a clock that is behind count as of then (W2) */
    int64_t run_us;                  /* the last failure of the run */
    uint32_t trips, passed, failed, life, run;
    bool peak_unknown; /* the ramp may have a lower cap than the rules say: only its upper bound holds */
    struct reference_permit permits[REFERENCE_PERMITS];
    int sample_count, start_count;
    struct reference_sample samples[REFERENCE_SAMPLES];
    int64_t starts[REFERENCE_STARTS]; /* of this ramp */
    int64_t newest_us;                /* the newest of them, also one that was taken back */
};

void reference_init(struct reference *r, const struct hfi_breaker_rules *rules);
void reference_tick(struct reference *r, int64_t now_us);
/* The machine said `got`, `wait_ms` for a refusal; `allowance` is what it claimed right before. `i` holds it then. */
void reference_enter(struct reference *r, int64_t now_us, int i, enum hfi_admission got, int64_t wait_ms,
                     uint32_t allowance);
/* It never started: what it took of the ramp is there again. Then it leaves. */
void reference_unstart(struct reference *r, int i);
void reference_leave(struct reference *r, int64_t now_us, int i, enum hf_verdict verdict, enum hf_cause cause, bool life);
/* Nobody will ever report it. */
void reference_lose(struct reference *r, int i);
void reference_isolate(struct reference *r, int64_t now_us, int64_t until_us);
void reference_close(struct reference *r, int64_t now_us);
void reference_gate(struct reference *r, int64_t until_us);
void reference_reload(struct reference *r, int64_t now_us, const struct hfi_breaker_rules *rules);
void reference_restore(struct reference *r, int64_t now_us, const struct hfi_breaker_saved *saved);
/* A permit that a new attempt may use: -1 without one. */
int reference_free(const struct reference *r, uint64_t from);
uint32_t reference_probes_out(const struct reference *r);
/* Must be what `look` at `now_us` shows. */
void reference_compare(struct reference *r, int64_t now_us, const struct hfi_breaker_look *look);
/* May the state change so? (2.5) */
bool reference_legal(enum hf_breaker_state from, enum hf_breaker_state to);

#endif
