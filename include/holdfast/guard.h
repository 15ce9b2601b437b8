/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_GUARD_H
#define HOLDFAST_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "classify.h"
#include "outcome.h"
#include "policy.h"

#define HF_BREAKER_STATE_MAP(X) X(CLOSED, "closed") X(OPEN, "open") X(HALF_OPEN, "half_open") X(RAMP, "ramp") X(ISOLATED, "isolated")
#define HF_BREAKER_MEMBER(name, text) HF_BREAKER_##name,
enum hf_breaker_state { HF_BREAKER_STATE_MAP(HF_BREAKER_MEMBER) };
#undef HF_BREAKER_MEMBER

/*
 * What a downstream fails of, for a person who asks where to look. X(NAME, text). SLOW are the calls that succeeded, but
 * took longer than breaker.slow_after; all others are failures. RESET: the connection was reset or cut.
 */
#define HF_CAUSE_MAP(X)                                                                                        \
    X(RESOLVE, "resolve") X(CONNECT, "connect") X(TLS, "tls") X(TIMEOUT, "timeout") X(RESET, "reset")          \
        X(HTTP_5XX, "http 5xx") X(SLOW, "slow") X(OTHER, "other")
#define HF_CAUSE_MEMBER(name, text) HF_CAUSE_##name,
enum hf_cause { HF_CAUSE_MAP(HF_CAUSE_MEMBER) };
#undef HF_CAUSE_MEMBER
#define HF_CAUSES 8

HF_BEGIN

/*
 * A named thing we call: it owns breaker, retry budget, bulkhead and latency histogram. All functions here may be
 * used from any thread; the closed path takes no lock.
 */
struct hf_downstream;

/*
 * A downstream called `name` (1…120 bytes of text, copied) under `policy` (a reference is taken; NULL: all defaults). The caller owns
 * one reference. Errors: HF_EINVAL, HF_ETEXT, HF_ENOMEM. Since 0.1.
 */
HF_API int hf_downstream_new(const char *name, struct hf_policy *policy, struct hf_downstream **downstream,
                             struct hf_error *error);
/* One reference more, and one less; with the last one it goes. Any thread. Since 0.1. */
HF_API struct hf_downstream *hf_downstream_ref(struct hf_downstream *downstream);
HF_API void hf_downstream_unref(struct hf_downstream *downstream); /* NULL is fine */
/* Lives as long as the downstream. Since 0.1. */
HF_API const char *hf_downstream_name(const struct hf_downstream *downstream);
/* Which host of a `per_host` downstream it is: `https://host[:port]`; NULL for any other. Since 0.1. */
HF_API const char *hf_downstream_host(const struct hf_downstream *downstream);

/* Permission for one attempt; in memory of the caller, filled by hf_guard_enter. Its fields are the library's. */
struct hf_permit {
    uint64_t generation;
    int64_t started_us;
    int64_t lease_us;
    uint32_t slot;
    uint32_t state; /* 0 none, 1 held, 2 reported */
    uint32_t term;
    uint32_t reserved;
};

/*
 * Asks for one attempt. 0: run it and report with hf_guard_leave exactly once. HF_EREJECTED: not now; `rejection`
 * (may be NULL) says why, with retry_after_ms. Never waits for a place or for the peer. While the breaker is closed or
 * refuses, an enter allocates nothing but, once, what keeps threads apart; the one that ends a break, an isolation or a
 * ramp logs it and runs the observers. HF_EREJECTED only. Any thread. Since 0.1.
 *
 * A permit that is never reported keeps its place for one to two times breaker.lease (attempt_timeout + 10 s unless set);
 * then the place is free again and the call counts as neutral and as `permits_expired` of the view. If it was a probe, it
 * counts as a failed one when its lease is over.
 */
HF_API int hf_guard_enter(struct hf_downstream *downstream, struct hf_permit *permit, struct hf_outcome *rejection);

/*
 * Reports how the attempt ended. HF_VERDICT_NEUTRAL is for what says nothing of the peer: you cancelled it, the input was
 * wrong; it frees the place and is no sample. A second report of one permit returns HF_ESTATE and changes nothing; one of an
 * older generation of the breaker is telemetry only. The one that opens or closes the breaker logs it and runs the
 * observers. Errors: HF_ESTATE. Any thread, also another than entered. Since 0.1.
 */
HF_API int hf_guard_leave(struct hf_downstream *downstream, struct hf_permit *permit, enum hf_verdict verdict);

/* A function to guard: fills `outcome`, by a classifier, before `deadline_us` (CLOCK_MONOTONIC, µs). */
typedef void (*hf_guarded_fn)(int64_t deadline_us, struct hf_outcome *outcome, void *user);

/*
 * The whole pipeline around `run` on the caller's thread: total, short retries with budget, breaker, bulkhead, rate limit.
 * Its waits block the caller: between tries, and for a place or a token while at most bulkhead_queue callers do so.
 * `outcome` (from hf_outcome_new) gets the end; one that `run` left untouched counts as a failure. `run` is called again
 * only after an outcome that says sent == NO: hf_guard_run_with can say that it may always be repeated. It has to return
 * (no longjmp, no C++ exception), and may use guards itself, also of the same downstream.
 * Returns 0 when the call ended (how, says `outcome`); HF_EINVAL; HF_EDEADLK on a loop thread. Since 0.1.
 */
HF_API int hf_guard_run(struct hf_downstream *downstream, hf_guarded_fn run, struct hf_outcome *outcome, void *user);

/* Ends guards that wait, from any thread. One may serve many guards at once; fired once, it stays so. Since 0.1. */
struct hf_guard_cancel;
HF_API struct hf_guard_cancel *hf_guard_cancel_new(void);                        /* NULL when out of memory */
HF_API void hf_guard_cancel_free(struct hf_guard_cancel *cancel);                /* no guard uses it any more; NULL is fine */
HF_API void hf_guard_cancel_fire(struct hf_guard_cancel *cancel);                /* not in a signal handler; NULL is fine */
HF_API bool hf_guard_cancel_fired(const struct hf_guard_cancel *cancel);         /* for functions that run long; NULL: false */

struct hf_guard_options {
    uint32_t size;
    bool repeatable;          /* false: run again only when its outcome says sent == NO */
    bool no_retry;            /* exactly one attempt */
    int64_t total_timeout_ms; /* 0: the policy's; else the smaller of both */
    int64_t deadline_us;      /* 0: none; CLOCK_MONOTONIC, µs: cuts the total too. What an outer guard handed in fits */
    struct hf_guard_cancel *cancel; /* NULL; the end is `call.cancelled`, at once when it waits, after `run` otherwise */
    const struct hf_rule *rules; /* NULL; on what `run` reports, by error type. Checked by hf_rules_check before; alive during the run */
    size_t rule_count;
};
static inline void hf_guard_options_init(struct hf_guard_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
}
/* hf_guard_run with `options` (NULL: the defaults). HF_EINVAL also for negative times. Since 0.1. */
HF_API int hf_guard_run_with(struct hf_downstream *downstream, const struct hf_guard_options *options, hf_guarded_fn run,
                             struct hf_outcome *outcome, void *user);

struct hf_causes {
    uint64_t counts[HF_CAUSES]; /* by enum hf_cause */
};

/* How long one phase of the attempts took, since the start, in µs; a quantile is at most 6.25 % above what was measured.
 * Since 0.1. */
struct hf_latency_view {
    uint64_t count;                 /* attempts that went through it */
    int64_t p50_us, p95_us, p99_us; /* -1 without any */
};

/* A snapshot of one downstream. */
struct hf_downstream_view {
    uint32_t size;
    enum hf_breaker_state state;
    uint32_t trips;          /* repeated ones since the last healthy window: the growth of the break */
    uint64_t generation;
    int64_t open_for_ms;     /* until the next probe, 0 when not open */
    int64_t gate_for_ms;     /* until the not-before gate opens, 0 when open */
    uint64_t window_calls;
    uint64_t window_failures;
    uint64_t window_slow;
    uint32_t in_flight;
    uint32_t probes_in_flight;
    uint64_t attempts;       /* since the start */
    uint64_t rejections;
    uint64_t retries;
    uint64_t retries_refused;
    uint64_t hedges;         /* attempts beside a slow or failed one; each took a retry's place in the budget */
    int64_t p50_us, p95_us, p99_us; /* of attempts, -1 without any */
    char reason[160];        /* why it is open or isolated, with the numbers: `ratio: 14 of 20 failed (12 connect, 2 http 5xx)`;
                                "" otherwise */
    uint64_t rate_limited;   /* of the rejections: by the rate limit */
    uint64_t faults;         /* attempts struck by an injected fault */
    struct hf_causes window_causes; /* of the window's failures and slow calls */
    uint64_t failures_to_trip;      /* so many failures in a row from now on would open it: the earliest it can; 0 unless it is
                                       closed or in its ramp, UINT64_MAX when failures alone cannot */
    /* since the start: calls = successes + failures + neutrals + rejections + in_flight */
    uint64_t calls;
    uint64_t successes;
    uint64_t failures;
    uint64_t neutrals;
    /* permits_issued = permits_returned + permits_expired + in_flight; an expired one, never reported, is a neutral call */
    uint64_t permits_issued;
    uint64_t permits_returned;
    uint64_t permits_expired;
    /*
     * The phases of attempts over HTTP, each by itself, failed attempts too as far as they came: until the name was resolved,
     * the TCP connect, the TLS handshake (after it; a proxy's tunnel included), and from there to the first byte of the
     * answer. A reused connection has a first byte only. Guarded functions know no phases: all empty.
     */
    struct hf_latency_view resolve, connect, tls, first_byte;
};
/* Fills as much as `view->size`, which the caller sets, has room for (0: all of it). Any thread. Since 0.1. */
HF_API void hf_downstream_look(const struct hf_downstream *downstream, struct hf_downstream_view *view);

/*
 * Forces it shut for callers until `for_ms` have passed (0: until closed by hand); one that runs out goes on with probes.
 * Of a `per_host` downstream: for all of its hosts. Calls under way end as they do. Once more replaces length and reason.
 * Errors: HF_EINVAL (negative, or no `reason`). Any thread. Since 0.1.
 */
HF_API int hf_downstream_isolate(struct hf_downstream *downstream, int64_t for_ms, const char *reason);
/*
 * Goes on under another policy, while calls run: state, break, generation and counts stay; the window starts anew only
 * when its length or slices changed. Calls under way keep the limits they began with. Of a `per_host` downstream: what
 * hosts beyond hosts_max share, and hosts that are made from then on; those that exist keep theirs until they are
 * reloaded themselves (hf_client_each gives them) or by hf_client_reload. The next hf_client_reload puts the policy of its
 * options back. Any thread. Errors: HF_EINVAL, HF_ENOMEM (then nothing has changed). Since 0.1.
 */
HF_API int hf_downstream_reload(struct hf_downstream *downstream, struct hf_policy *policy);
/*
 * Back to closed with an empty window and a first break: ends an isolation, a break and the wait that a Retry-After asked
 * for (the gate). Of a `per_host` downstream: lifts what isolated all of its hosts; the breakers of the hosts stay as they
 * are, close them one by one. Errors: HF_EINVAL. Any thread. Since 0.1.
 */
HF_API int hf_downstream_close(struct hf_downstream *downstream);

/* What a breaker knows, to be kept beyond the process. Times in µs UTC. */
struct hf_downstream_saved {
    uint32_t size;
    enum hf_breaker_state state; /* closed, open or isolated: half-open and ramp are saved as a break that is over */
    uint32_t trips;
    int64_t until_us;      /* end of the break or isolation; 0: none, or an isolation until it is closed by hand */
    int64_t gate_until_us; /* not before; 0: none */
    char reason[160];
};
static inline void hf_downstream_saved_init(struct hf_downstream_saved *saved) {
    memset(saved, 0, sizeof *saved);
    saved->size = (uint32_t)sizeof *saved;
}
/* Fills `saved` (hf_downstream_saved_init before). Errors: HF_EINVAL. Since 0.1. */
HF_API int hf_downstream_save(struct hf_downstream *downstream, struct hf_downstream_saved *saved);
/*
 * Takes up what was saved, in this process or another: a break ends when it would have ended, not later than the policy's
 * longest break from now, whatever the wall clock did; one that is over goes on with probes. An open breaker keeps its own
 * break. Errors: HF_EINVAL (not saved by hf_downstream_save). Since 0.1.
 */
HF_API int hf_downstream_restore(struct hf_downstream *downstream, const struct hf_downstream_saved *saved);

/* Constant texts; "unknown" for any other number. Any thread. Since 0.1. */
HF_API const char *hf_cause_name(enum hf_cause cause);
HF_API const char *hf_breaker_state_name(enum hf_breaker_state state);

HF_END

#endif
