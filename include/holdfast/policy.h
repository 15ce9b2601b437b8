/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_POLICY_H
#define HOLDFAST_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "error.h"

#define HF_BACKOFF_MAP(X) X(CONSTANT, "constant") X(LINEAR, "linear") X(EXPONENTIAL, "exponential") X(TABLE, "table")
#define HF_JITTER_MAP(X) X(NONE, "none") X(FACTOR, "factor") X(FULL, "full") X(EQUAL, "equal") X(DECORRELATED, "decorrelated")
#define HF_BACKOFF_MEMBER(name, text) HF_BACKOFF_##name,
#define HF_JITTER_MEMBER(name, text) HF_JITTER_##name,
enum hf_backoff { HF_BACKOFF_MAP(HF_BACKOFF_MEMBER) };
enum hf_jitter { HF_JITTER_MAP(HF_JITTER_MEMBER) };
#undef HF_BACKOFF_MEMBER
#undef HF_JITTER_MEMBER
enum hf_on_open { HF_ON_OPEN_PARK, HF_ON_OPEN_FAIL };
enum hf_gate_scope { HF_GATE_DOWNSTREAM, HF_GATE_CALL };
/* How attempts are timed: to the µs, or at a quarter of the price to the few ms that a coarse clock has. */
enum hf_latency { HF_LATENCY_EXACT, HF_LATENCY_COARSE };

#define HF_BACKOFF_TABLE_MAX 16
#define HF_HEDGE_MAX 4

HF_BEGIN

/*
 * Everything that shapes calls to one downstream. hf_policy_options_init writes every default, shown behind the
 * fields; from then on 0 means zero. Durations in ms. `factor`, ratios and jitter are plain numbers.
 */
struct hf_policy_options {
    uint32_t size; /* set by the init */
    bool allow_truncated; /* false: all tries must fit the total; true: a warning only */
    int64_t connect_timeout_ms; /* 5 s */
    int64_t attempt_timeout_ms; /* 20 s */
    int64_t total_timeout_ms;   /* 90 s */
    /* short retries */
    uint32_t retry_max;         /* 3 retries = 4 attempts */
    enum hf_backoff retry_backoff; /* exponential */
    enum hf_jitter retry_jitter;   /* full */
    double retry_jitter_factor;    /* 0.1; used by HF_JITTER_FACTOR only */
    double retry_factor;           /* 2 */
    int64_t retry_base_ms;         /* 500 ms */
    int64_t retry_cap_ms;          /* 5 s */
    uint32_t retry_table_length;   /* 0; waits of HF_BACKOFF_TABLE, the last one reused */
    int64_t retry_table_ms[HF_BACKOFF_TABLE_MAX];
    /* retry budget: retries scheduled in the last window ≤ max(floor, ratio × calls of the window) */
    double budget_ratio;       /* 0.2 */
    uint32_t budget_floor;     /* 10 */
    int64_t budget_window_ms;  /* 10 s */
    /* hedging: further attempts of one try beside a slow one; only of calls that may be repeated */
    uint32_t hedge_max;      /* 0 = off; HF_HEDGE_MAX at most */
    int64_t hedge_delay_ms;  /* 2 s without an answer before the next one; a failure sends it at once */
    bool hedge_p95;          /* false; true: the delay is the downstream's p95 of the last one to two breaker windows,
                                64 attempts or more in them, else hedge_delay_ms; 10 ms at least */
    /* Retry-After */
    int64_t retry_after_cap_ms; /* 1 h; the longest wait a job takes over, its curve's last one at most */
    int64_t gate_cap_ms;        /* 60 s */
    enum hf_gate_scope gate_scope; /* downstream */
    bool breaker_429_failure;   /* false: a 429 is neutral for the breaker */
    /* breaker */
    int64_t breaker_window_ms;    /* 60 s */
    uint32_t breaker_slices;      /* 12: the window slides in so many steps, 10 to 60 */
    double breaker_ratio;         /* 0.5 */
    uint32_t breaker_min_calls;   /* 20 */
    uint32_t breaker_consecutive; /* 0 = off */
    double breaker_slow_ratio;    /* 0 = off */
    int64_t breaker_slow_after_ms; /* 0; used with slow_ratio only */
    int64_t breaker_break_ms;     /* 5 s */
    int64_t breaker_max_break_ms; /* 60 s */
    double breaker_break_factor;  /* 2 */
    double breaker_break_jitter;  /* 0.1 */
    uint32_t breaker_probes;      /* 3: at most at once, and counted */
    uint32_t breaker_tolerated;   /* 0 failed probes that still close it */
    int64_t breaker_ramp_ms;      /* 10 s; 0 = none */
    int64_t breaker_lease_ms;     /* 0 = attempt timeout + 10 s */
    /* bulkhead */
    uint32_t bulkhead_max;   /* 64 in flight */
    uint32_t bulkhead_queue; /* 0: calls and guards that may wait for a place, or for a token of the rate limit */
    /* rate limit: in any span t at most burst + rate × t attempts */
    double rate_per_s;   /* 0 = off; up to a million a second */
    uint32_t rate_burst; /* 0 = a tenth of a second's worth, at least 1 */
    bool allow_fault_injection; /* false: hf_downstream_inject is refused */
    /* jobs of this downstream */
    enum hf_on_open on_open;  /* park */
    int64_t give_up_after_ms; /* 24 h */
    double declared_rate;     /* 0 = unknown; calls per second, for the ladder check only */
    enum hf_latency latency;  /* exact; of hf_guard_*, whose calls read a clock of their own */
};

/* Writes the defaults that a struct of `size` bytes has room for; use hf_policy_options_init. Since 0.1. */
HF_API void hf_policy_options_init_sized(struct hf_policy_options *options, uint32_t size);
static inline void hf_policy_options_init(struct hf_policy_options *options) {
    hf_policy_options_init_sized(options, (uint32_t)sizeof *options);
}

/* A frozen, shared policy. Any thread. */
struct hf_policy;

/*
 * Checks and freezes `options`. On HF_ECONFIG `error` says which rule of the ladder is broken, with the numbers
 * and a fix. The caller owns one reference. Errors: HF_EINVAL, HF_ECONFIG, HF_ENOMEM. Since 0.1.
 */
HF_API int hf_policy_new(const struct hf_policy_options *options, struct hf_policy **policy, struct hf_error *error);
/* One reference more, and one less; with the last one it goes. Any thread. Since 0.1. */
HF_API struct hf_policy *hf_policy_ref(struct hf_policy *policy);
HF_API void hf_policy_unref(struct hf_policy *policy); /* NULL is fine */

/* One finding of the ladder check. Texts live during the call. */
struct hf_finding {
    uint32_t size;
    bool is_error;    /* E: stops a start; else W */
    const char *rule; /* stable id: `ladder.order`, `ladder.truncated`, `breaker.window` … */
    const char *key;  /* the option, as in the configuration and relative to the downstream: `breaker.window` */
    const char *why;  /* with the numbers */
    const char *fix;
};
typedef void (*hf_finding_fn)(const struct hf_finding *finding, void *user);

/*
 * The ladder check of one downstream; calls `report` on the caller's stack for each finding, in a fixed order.
 * Returns the number of errors found (0 = fine), or HF_EINVAL. Pure, any thread. Since 0.1.
 */
HF_API int hf_policy_check(const struct hf_policy_options *options, hf_finding_fn report, void *user);

/* What a policy amounts to, for people who have to choose its numbers. */
struct hf_policy_figures {
    uint32_t size;
    uint32_t tries;          /* of one call, at most: the first and its retries */
    uint32_t attempts;       /* the same with all their hedges */
    uint32_t cut_try;        /* the first try that cannot have its whole time, from 1; 0: all of them fit the total */
    uint32_t trip_attempts;  /* the fewest attempts, all of them failing, that open the breaker (its earliest trip) */
    int64_t try_ms;          /* the longest one try takes: an attempt, and its hedges one after the other */
    int64_t need_ms;         /* what all tries and their longest waits take, saturating */
    int64_t longest_call_ms; /* what a call takes at most: that, or the total */
    int64_t cut_at_ms;       /* when that try begins at the latest; -1 without one */
    int64_t trip_ms;         /* how long trip_attempts take at declared_rate; -1 when that is unknown */
};
static inline void hf_policy_figures_init(struct hf_policy_figures *figures) {
    memset(figures, 0, sizeof *figures);
    figures->size = (uint32_t)sizeof *figures;
}
/* Works them out. HF_EINVAL; HF_ECONFIG when the options are no policy (hf_policy_check says why). Pure, any thread. Since 0.1. */
HF_API int hf_policy_figures(const struct hf_policy_options *options, struct hf_policy_figures *figures);

/* What a job type makes of a downstream, for the check of both together. */
struct hf_ladder {
    uint32_t size;
    uint32_t max_executions;
    bool repeatable;
    int64_t execution_timeout_ms;   /* 0 = none */
    const int64_t *curve_ms;        /* waits between executions, last one reused; NULL with length 0 = no waits */
    uint32_t curve_length;
    uint64_t max_calls_per_job;     /* 100 */
    const struct hf_policy_options *policy; /* NULL: the type calls no downstream */
    uint32_t redirects;             /* 0; those that one attempt may follow, each a request of its own */
    /* written by hf_ladder_check */
    uint64_t worst_calls;           /* requests: executions × attempts × (1 + hedges) × (1 + redirects); 1 + redirects when not
                                       repeatable: more needs proof that nothing was sent */
    int64_t time_to_death_ms;       /* Σ waits + executions × min(total, execution timeout), saturating */
};
static inline void hf_ladder_init(struct hf_ladder *ladder) {
    memset(ladder, 0, sizeof *ladder);
    ladder->size = (uint32_t)sizeof *ladder;
    ladder->max_executions = 6;
    ladder->repeatable = true;
    ladder->execution_timeout_ms = 120000;
    ladder->max_calls_per_job = 100;
}
/* As hf_policy_check, for a job type and its downstream together: fills worst_calls and time_to_death_ms. HF_EINVAL. Pure,
   any thread. Since 0.1. */
HF_API int hf_ladder_check(struct hf_ladder *ladder, hf_finding_fn report, void *user);

HF_END

#endif
