/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_SIMULATE_H
#define HOLDFAST_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "guard.h"
#include "http.h"
#include "runner.h"

HF_BEGIN

/*
 * The simulator: calls and jobs against one scripted downstream in virtual time, by the very functions that run in
 * production: the client's whole pipeline, and a runner on a store in memory. Nothing leaves the process. The same
 * scenario and seed give the same result, to the bit.
 */

/* How long the downstream works on a request, in µs of virtual time. */
struct hf_delay_step {
    int64_t upto_us; /* upper edge; the lower one is that of the step before, 0 at the first */
    uint64_t count;  /* how many were that long; evenly spread within the step */
};
struct hf_delay {
    int64_t median_us;      /* 1 or more, unless there are steps */
    int64_t p99_us;         /* 0: always the median; else lognormal with both, at least the median */
    double tail_share;      /* 0; so many are drawn from the tail instead */
    int64_t tail_median_us, tail_p99_us; /* of the tail, as above */
    const struct hf_delay_step *steps;   /* NULL; a measured histogram, instead of median and p99; edges ascend */
    size_t step_count;
};

/* What may happen to a request instead of its answer. X(NAME, text) */
#define HF_FAILING_MAP(X)                                                                                     \
    X(STATUS, "status")           /* answered with a status, after the usual work */                         \
    X(RESET, "reset")             /* the connection is reset when the work is done */                        \
    X(REFUSED, "refused")         /* no connection: told at once, nothing was sent */                        \
    X(UNREACHABLE, "unreachable") /* no connection, and nobody says so */                                    \
    X(HANG, "hang")               /* taken, and then nothing until the downstream's own limit, `hang_us` */  \
    X(DRIP, "drip")               /* answered in time, but the body takes until `hang_us` */
#define HF_FAILING_MEMBER(name, text) HF_FAILING_##name,
enum hf_failing { HF_FAILING_MAP(HF_FAILING_MEMBER) HF_FAILINGS };
#undef HF_FAILING_MEMBER

/* How the downstream behaves from `at_ms` on, until the next phase. */
struct hf_script_phase {
    uint32_t size;
    const char *name;            /* "": for people */
    int64_t at_ms;               /* the first one at 0, each later than the one before */
    int64_t connect_us;          /* 1 ms */
    struct hf_delay latency;     /* median 20 ms */
    double grows_to;             /* 1; the latency is multiplied by what goes evenly from 1 to this over the phase */
    double share[HF_FAILINGS];   /* 0 each; 1 at most together */
    int status;                  /* 503: of HF_FAILING_STATUS; 400 to 599 */
    int64_t retry_after_s;       /* -1: none; sent with that status */
    int64_t hang_us;             /* 60 s */
    uint32_t capacity;           /* 0: the downstream's; requests worked on at once */
    int64_t flap_ms;             /* 0; else it takes turns with the phase before it, each so long, and begins */
    int outage;                  /* 1: what opening and closing are measured by; 0: no; -1: by the shares, from a half on */
};
static inline void hf_script_phase_init(struct hf_script_phase *phase) {
    memset(phase, 0, sizeof *phase);
    phase->size = (uint32_t)sizeof *phase;
    phase->name = "";
    phase->connect_us = 1000;
    phase->latency.median_us = 20000;
    phase->grows_to = 1;
    phase->status = 503;
    phase->retry_after_s = -1;
    phase->hang_us = 60000000;
    phase->outage = -1;
}

/* Who calls, and when. */
#define HF_LOAD_MAP(X)                                                                                        \
    X(CONSTANT, "constant") /* one every 1/rate */                                                           \
    X(POISSON, "poisson")   /* at random, `rate` on average */                                               \
    X(RAMP, "ramp")         /* from rate to rate_to, evenly over its time */                                 \
    X(HERD, "herd")         /* `burst` of them every `every_ms`, as cron does; spread over `spread_ms` */    \
    X(REPLAY, "replay")     /* at recorded times */
#define HF_LOAD_MEMBER(name, text) HF_LOAD_##name,
enum hf_load_kind { HF_LOAD_MAP(HF_LOAD_MEMBER) };
#undef HF_LOAD_MEMBER
struct hf_load {
    uint32_t size;
    enum hf_load_kind kind;
    const char *job;         /* NULL: direct calls; else a job of this type is enqueued */
    double rate, rate_to;    /* a second */
    int64_t from_ms;         /* 0 */
    int64_t until_ms;        /* 0: to the end */
    uint32_t burst;
    int64_t every_ms;        /* 0: a single herd, at from_ms */
    int64_t spread_ms;
    const int64_t *arrivals_us; /* REPLAY: since from_ms, ascending */
    size_t arrival_count;
};
static inline void hf_load_init(struct hf_load *load, enum hf_load_kind of) {
    memset(load, 0, sizeof *load);
    load->size = (uint32_t)sizeof *load;
    load->kind = of;
}

struct hf_clock_step {
    int64_t at_ms, by_ms; /* wall time jumps by so much, either way */
};
struct hf_crash {
    int64_t at_ms, down_ms; /* the node that calls dies, as by kill -9, and another one starts so much later */
};

/* Everything in it is borrowed until the result is freed. */
struct hf_scenario {
    uint32_t size;
    uint64_t seed;                        /* 1 */
    int64_t duration_ms;                  /* 10 m; a week at most */
    const struct hf_runner_options *node; /* required: downstreams, types, queues, limits, defaults. Sinks, forwarders, outboxes
                                             and what is not called are left out */
    const char *downstream;               /* required: the one that the script is about. Only the policy and the rules
                                             of its options matter, and the probe's path */
    const char *method;                   /* GET: of direct calls */
    const struct hf_load *loads;
    size_t load_count;
    const struct hf_script_phase *phases;        /* at least one */
    size_t phase_count;
    uint32_t capacity;       /* 0: no limit; requests that the downstream works on at once. What its caller has given up on is
                                worked on to the end */
    uint32_t queue;          /* 1000: further requests wait, in order; more are answered with 503 at once */
    uint32_t collapse_above; /* 0: never; with more in work and waiting it falls over: all of them are reset … */
    int64_t collapse_for_ms; /* 5 s: … and it refuses connections for so long */
    const struct hf_clock_step *clock_steps;
    size_t clock_step_count;
    const struct hf_crash *crashes;
    size_t crash_count;
    bool (*progress)(int64_t done_ms, void *user); /* NULL; once per simulated second. False: end with HF_ECANCELED */
    void *progress_user;
};
static inline void hf_scenario_init(struct hf_scenario *scenario) {
    memset(scenario, 0, sizeof *scenario);
    scenario->size = (uint32_t)sizeof *scenario;
    scenario->seed = 1;
    scenario->duration_ms = 600000;
    scenario->method = "GET";
    scenario->queue = 1000;
    scenario->collapse_for_ms = 5000;
}

/* The whole of it in numbers. -1: it did not happen, or nothing was there to measure. */
struct hf_simulation_summary {
    uint32_t size;
    int64_t duration_ms;
    uint64_t calls;             /* direct ones that began */
    uint64_t succeeded, failed; /* of them */
    uint64_t rejected;          /* by the breaker, the ramp, the bulkhead or the rate limit, without an attempt */
    uint64_t open;              /* not ended at the end */
    uint64_t never_made;        /* while the node was down */
    uint64_t attempts;          /* requests at the downstream, for calls, jobs and probes */
    uint64_t attempts_succeeded, attempts_failed;
    uint64_t attempts_abandoned;   /* cut by a limit of the caller */
    uint64_t wasted;               /* of them: worked on to the end for nobody */
    uint64_t retries, retries_refused; /* short ones of all calls, and those the budget refused */
    double amplification;       /* attempts ÷ (calls + jobs) */
    double success_share;       /* succeeded ÷ ended direct calls; -1 without any */
    double busy_ms;             /* work done at the downstream, summed over its requests */
    uint32_t peak_in_flight;    /* at the downstream, in work and waiting, abandoned ones included */
    uint32_t peak_waiting;
    uint64_t turned_away;       /* by its full queue */
    uint64_t collapses;
    int64_t p50_us, p95_us, p99_us, longest_us;      /* from the start of a direct call to its end, rejections included */
    int64_t ok_p50_us, ok_p95_us, ok_p99_us;         /* of those that succeeded */
    uint64_t opens;             /* times the breaker opened */
    int64_t open_ms;            /* time it was open or half-open */
    int64_t to_open_ms;         /* from the start of the first outage until it opened */
    int64_t to_close_ms;        /* from the end of the last outage until it was closed again, ramp included */
    double before_per_s;        /* attempts a second before the first outage */
    double peak_after_per_s;    /* most of them in one second after the last one */
    double overshoot;           /* peak_after ÷ before */
    uint64_t jobs, executions, jobs_succeeded, jobs_open; /* jobs_open: not ended at the end */
    uint64_t deaths, quarantined;
    uint64_t long_retries;      /* executions that the curve put off */
    uint64_t peak_parked;       /* as a runner counts them: at most 10,000 */
    uint64_t peak_due;          /* due, parked ones included, and not running */
    int64_t to_drain_ms;        /* from the end of the last outage until no more jobs are open than at the start of the first */
    int64_t outage_from_ms, outage_until_ms; /* start of the first and end of the last; until -1: it lasts to the end */
};

/* One second of it: [second, second + 1). Counts are of that second, the rest as it was at its end. */
struct hf_simulation_second {
    uint32_t calls, succeeded, failed, rejected;
    uint32_t attempts, attempts_succeeded, attempts_failed, attempts_abandoned;
    uint32_t retries, retries_refused;
    uint32_t in_flight_peak, waiting_peak; /* at the downstream */
    uint32_t in_flight;                    /* of the breaker's permits */
    enum hf_breaker_state state;
    uint32_t open_ms;                      /* of it open or half-open */
    int64_t p50_us, p99_us, longest_us;    /* of direct calls that ended with an answer in it; -1 without any */
    int64_t attempt_p50_us, attempt_p99_us; /* of answered attempts; -1 without any */
    uint32_t executions, jobs_succeeded, deaths;
    uint64_t jobs_open, jobs_due, jobs_parked, jobs_running, jobs_scheduled;
    double budget_left;                    /* share of the retry budget that is unused; 1: all of it */
    uint32_t phase;                        /* index of the phase at its end */
};

/* A change of the breaker. */
struct hf_simulation_change {
    int64_t at_us;
    enum hf_breaker_state from, to;
    char reason[96];
};

struct hf_simulation;

/*
 * Would this scenario run? HF_EINVAL, HF_ECONFIG (a policy, a type), HF_ETOOBIG with details in `error`: key, reason, fix.
 * Pure, any thread. Since 0.1.
 */
HF_API int hf_scenario_check(const struct hf_scenario *scenario, struct hf_error *error);
/*
 * Runs it on the caller's thread, to its end. What holdfast logs meanwhile (deaths, breakers) goes where all log lines
 * go: switch it off with hf_log_set if nobody wants it. Errors: as hf_scenario_check, HF_ECANCELED, HF_ENOMEM. The
 * result is the caller's: hf_simulation_free. Since 0.1.
 */
HF_API int hf_simulate(const struct hf_scenario *scenario, struct hf_simulation **simulation, struct hf_error *error);
HF_API void hf_simulation_free(struct hf_simulation *simulation); /* NULL is fine */
/* What these return belongs to the simulation. NULL behind the last one. Any thread. Since 0.1. */
HF_API const struct hf_simulation_summary *hf_simulation_summary(const struct hf_simulation *simulation);
HF_API const struct hf_simulation_second *hf_simulation_second_at(const struct hf_simulation *simulation, size_t second);
HF_API const struct hf_simulation_change *hf_simulation_change_at(const struct hf_simulation *simulation, size_t index);
HF_API size_t hf_simulation_seconds(const struct hf_simulation *simulation);
HF_API size_t hf_simulation_changes(const struct hf_simulation *simulation);
HF_API const char *hf_failing_name(enum hf_failing failing); /* constant texts; "unknown" for any other number */
HF_API const char *hf_load_name(enum hf_load_kind kind);

HF_END

#endif
