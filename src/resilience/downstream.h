/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_DOWNSTREAM_H
#define HFI_RESILIENCE_DOWNSTREAM_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "holdfast/event.h"
#include "resilience/breaker.h"
#include "resilience/budget.h"
#include "resilience/bulkhead.h"
#include "resilience/faults.h"
#include "resilience/histogram.h"
#include "resilience/outcome.h"
#include "resilience/phase_histograms.h"
#include "resilience/policy.h"
#include "resilience/rate.h"
#include "resilience/recent.h"
#include "resilience/recorder.h"
#include "resilience/waiting.h"

/* A policy that a reload has replaced. */
struct hfi_retired {
    struct hfi_retired *next;
    struct hf_policy *policy;
};

#define HFI_DOWNSTREAM_NAME_MAX 120

/* Somebody besides the log and the observers who is told of changes: the runner. The memory is theirs. */
struct hfi_watch {
    hfi_breaker_fn fn;
    void *user;
};

/* What few downstreams need, made with the first of it and kept until the end. */
struct hfi_downstream_extra {
    struct hfi_line *_Atomic line;             /* guards that wait for a place; NULL until one does */
    struct hfi_faults *_Atomic faults;         /* NULL until some are injected */
    struct hfi_observer *_Atomic observers;    /* of the public kind: observers.c */
    struct hfi_phase_histograms *_Atomic phases; /* NULL until an attempt with phases has ended */
    struct hfi_recent *_Atomic recent;         /* NULL until a hedge asks for the p95 */
    struct hfi_recorder *_Atomic recorder;     /* NULL until an attempt over HTTP has ended; of hosts: the parent's */
    struct hfi_retired *retired;               /* under a lock of downstream.c */
    struct hf_downstream *parent;              /* of one host: the per_host downstream, one reference; else NULL */
    char *host;                                /* of one host: its key; else NULL */
    struct hfi_rate rate;
    _Atomic uint64_t rate_limited;
};

/*
 * All that is shared by the calls to one downstream. Reference counted; any thread. An ordinary one takes 512 bytes besides
 * the histogram (a test asserts it): what not every one needs goes to `extra`. Begins a line of memory, for the
 * breaker's sake.
 */
struct hf_downstream {
    struct hfi_breaker breaker; /* first: what its on_change is given */
    struct hfi_bulkhead bulkhead;
    _Atomic bool coarse;  /* hf_guard_* read the coarse clock */
    _Atomic bool queues;  /* guards may wait for a place: who leaves has to look for them */
    _Atomic bool special; /* has a rate limit or a parent: an enter has more to ask than breaker and places */
    _Atomic uint32_t references;
    struct hfi_downstream_extra *_Atomic extra; /* hfi_downstream_extra */
    struct hfi_watch *_Atomic watch;            /* NULL: nobody */
    struct hfi_budget budget;
    _Atomic uint64_t given_back;  /* permits whose attempt never started */
    struct hfi_histogram histogram;
    char name[]; /* 120 bytes at most */
};

/* For who counts references to it; nothing else in a policy ever changes. */
static inline struct hf_policy *hfi_downstream_counted_policy(const struct hf_downstream *downstream) {
    const struct hfi_breaker_rules *rules = atomic_load_explicit(&downstream->breaker.rules, memory_order_acquire);
    return (struct hf_policy *)((uintptr_t)rules - offsetof(struct hf_policy, breaker));
}
/* The policy of now. It may change from one call to the next: read it once for what must fit together. It stays valid: all
   that were in use are kept until the end. */
static inline const struct hf_policy *hfi_downstream_policy(const struct hf_downstream *downstream) {
    return hfi_downstream_counted_policy(downstream);
}

/* NULL: none of it was needed yet. */
static inline struct hfi_downstream_extra *hfi_downstream_extra(const struct hf_downstream *downstream) {
    return atomic_load_explicit(&downstream->extra, memory_order_acquire);
}
/* Makes it when it is not there. NULL: no memory. */
struct hfi_downstream_extra *hfi_downstream_need_extra(struct hf_downstream *downstream);
static inline struct hf_downstream *hfi_downstream_parent(const struct hf_downstream *downstream) {
    const struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    return extra != NULL ? extra->parent : NULL;
}

/* The same as hf_downstream_new for one host of a `per_host` downstream: its name, its policy, its observers. HF_ENOMEM. */
int hfi_downstream_of_host(struct hf_downstream *parent, const char *host, struct hf_downstream **downstream);
/* Nothing would be lost with it: nothing in flight, no gate, and closed with an empty window and a first break before it, or
   a break that was over long ago. */
bool hfi_downstream_forgettable(struct hf_downstream *downstream, struct hf_mono now);

/* Those of a per_host downstream strike all of its hosts. NULL: none. */
static inline struct hfi_faults *hfi_downstream_faults(const struct hf_downstream *downstream) {
    const struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    if (extra != NULL && extra->parent != NULL)
        extra = hfi_downstream_extra(extra->parent);
    return extra != NULL ? atomic_load_explicit(&extra->faults, memory_order_acquire) : NULL;
}

#define HFI_FULL_WAIT_MS 100 /* a bulkhead frees a place when an attempt ends: soon */

/* The pair every attempt goes through, with the clock handed in: breaker, bulkhead, rate limit. 0 or HF_EREJECTED (`rejection`
   filled, may be NULL). A refusal counts as a rejected call. */
int hfi_downstream_enter(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         struct hf_outcome *rejection);
/* The same for who may wait and ask again, or do without: a refusal counts nothing. Who is refused for good says so, once
   (R23). */
int hfi_downstream_ask(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                       struct hf_outcome *rejection);
void hfi_downstream_refused(struct hf_downstream *downstream, const struct hf_outcome *rejection);
int hfi_downstream_leave(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         const struct hf_outcome *outcome);
/* An attempt over HTTP, for the ladder (recorder.h): what was on the wire, whatever ended it. Any thread. */
void hfi_downstream_record(struct hf_downstream *downstream, const struct hf_outcome *outcome);
/* The same for who knows a verdict only: the cause is OTHER. */
int hfi_downstream_leave_as(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                            enum hf_verdict verdict);
/* An attempt that was entered and never started: neutral, no latency. */
void hfi_downstream_give_back(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit);
/* Of the latencies of the attempts within the last one to two windows of the breaker, in µs: never less than was seen; -1
   when there are fewer than `at_least` (1 or more). They are counted from the first question on: recent.h. */
int64_t hfi_downstream_recent(struct hf_downstream *downstream, struct hf_mono now, uint32_t permille,
                              uint64_t at_least);
/* hf_downstream_reload with the clock handed in. */
int hfi_downstream_reload(struct hf_downstream *downstream, struct hf_mono now, struct hf_policy *policy);
/* Do the sums of the counters come out? Exact while no call is on its way through enter or leave. For tests. */
bool hfi_downstream_adds_up(struct hf_downstream *downstream);
/* hf_downstream_look with the clock handed in. */
void hfi_downstream_view(struct hf_downstream *downstream, struct hf_mono now, struct hf_downstream_view *view);
/* How many attempts it would admit now: min of breaker allowance and free bulkhead slots; 0 while gated. `retry_after_ms` when 0. */
uint32_t hfi_downstream_allowance(struct hf_downstream *downstream, struct hf_mono now, int64_t *retry_after_ms);

/* What its attempts took, or those of all its hosts; NULL: nothing was recorded. Lives as long as the downstream. */
static inline struct hfi_recorder *hfi_downstream_recorder(const struct hf_downstream *downstream) {
    const struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    if (extra != NULL && extra->parent != NULL)
        extra = hfi_downstream_extra(extra->parent);
    return extra != NULL ? atomic_load_explicit(&extra->recorder, memory_order_acquire) : NULL;
}

/* saved.c: hf_downstream_save and hf_downstream_restore with the clocks handed in. */
void hfi_downstream_save(struct hf_downstream *downstream, struct hf_mono now, struct hf_wall wall,
                         struct hf_downstream_saved *saved);
int hfi_downstream_restore(struct hf_downstream *downstream, struct hf_mono now, struct hf_wall wall,
                           const struct hf_downstream_saved *saved);

/* observers.c */
void hfi_observers_tell(struct hf_downstream *downstream, const struct hfi_breaker_event *event);
void hfi_observers_free(struct hfi_downstream_extra *extra);

#endif
