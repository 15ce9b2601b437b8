/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_TRANSITION_H
#define HFI_JOBS_TRANSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "jobs/record.h"
#include "resilience/outcome.h"

/*
 * The one function that changes a job's state: a table of states × events. Pure: no clock, no I/O, no allocation. Both
 * stores and the simulator run exactly this. X(NAME, text)
 */
#define HFI_EVENT_MAP(X)                                                                                  \
    X(CLAIMED, "claimed")         /* pending, not expired -> running: reserved; epoch + 1 */              \
    X(STARTED, "started")         /* running: executions + 1, before the handler runs */                  \
    X(SUCCEEDED, "succeeded")                                                                             \
    X(FAILED, "failed")           /* by outcome: curve, or death */                                       \
    X(REJECTED, "rejected")       /* nothing reached any wire: pending, execution taken back */           \
    X(SNOOZED, "snoozed")         /* pending; no failure counted */                                       \
    X(CANCELLED, "cancelled")     /* by handler or operator */                                            \
    X(QUARANTINED, "quarantined") /* never ran: unknown type or undecodable payload */                    \
    X(GIVEN_BACK, "given_back")   /* drain: pending, execution taken back */                              \
    X(LAPSED, "lapsed")           /* the owner is gone, or has lost it; epoch + 1 */                      \
    X(EXPIRED, "expired")         /* pending past expires_at: cancelled */                                \
    X(REQUEUED, "requeued")       /* dead or quarantined -> pending, full budget; epoch + 1 [S1.20] */      \
    X(RELEASED, "released")       /* waiting -> pending: what it waited for has ended; run_at kept */     \
    X(PARENT_DEAD, "parent_dead") /* waiting -> cancelled: it will not end as it should */                \
    X(REVIVED, "revived")         /* cancelled by that -> waiting: it was requeued; epoch + 1 */          \
    X(CANCEL_ASKED, "cancel_requested") /* running: its owner is to hear of it; the first one stands */

enum hfi_event_kind {
#define HFI_EVENT_MEMBER(name, text) HFI_EVENT_##name,
    HFI_EVENT_MAP(HFI_EVENT_MEMBER)
#undef HFI_EVENT_MEMBER
    HFI_EVENT_COUNT
};
const char *hfi_event_name(int kind);

struct hfi_event {
    enum hfi_event_kind kind;
    struct hf_wall now;
    int64_t node;                     /* who does it; owner for CLAIMED */
    const struct hf_outcome *outcome; /* FAILED, REJECTED; SUCCEEDED may carry one for the history */
    int64_t delay_ms;                 /* SNOOZED; REJECTED: floor of the wait, 250 at least */
    const char *breaker_key;          /* NULL, or where it waits from now on if it goes back to pending: the host it turned out to call */
    const char *error_type;           /* QUARANTINED, CANCELLED, LAPSED: `unknown_type`, `payload.undecodable`, `lease.lapsed` */
    const char *message;              /* CANCELLED, REQUEUED, CANCEL_ASKED: the reason; PARENT_DEAD: which parent */
    const char *detail;               /* NULL or full text (output of a process) for the dead letter; clean UTF-8 */
    const char *actor;                /* CANCELLED (NULL by the owner: as the record asks), REQUEUED, CANCEL_ASKED */
    bool crash;                       /* LAPSED: the process died under it (not a suspend or a store outage); counts if the job runs_code */
    int32_t breaker;                  /* enum hf_breaker_state + 1 when the execution began; 0 unknown */
    bool may_have_sent;               /* GIVEN_BACK of a job that is not repeatable: ends as outcome.unknown; a lapse always does */
    const void *result;               /* SUCCEEDED */
    size_t result_length;
    int64_t late_ms;                  /* SUCCEEDED: so long after its limit [S2.8]; 0 in time */
    const char *cause;                /* FAILED: the type of the one error inside its error; NULL: none, or several [S2.14] */
    const struct hfi_ruling *ruling;  /* FAILED: what the retry hook said; NULL: nothing */
};

/* What a retry hook made of a retry [S1.25]. */
struct hfi_ruling {
    bool permanent;
    int64_t wait_ms; /* instead of the planned one; -1: as planned */
};

struct hfi_forwards;
/* What the configuration says about a job; immutable, from hfi_rulebook_for. */
struct hfi_rules {
    const struct hfi_curve *policy;   /* used when the job has none of its own */
    bool repeatable;
    bool runs_code, alone;            /* STARTED: put on the job */
    uint32_t max_crashes;             /* 3 */
    uint32_t max_give_backs;          /* 20 */
    int64_t retry_after_cap_ms;       /* 1 h */
    int64_t give_up_after_ms;         /* 24 h; REJECTED: measured from max(run_at, unhealthy_since) */
    int64_t unhealthy_since_us;       /* 0 = healthy */
    const char *const *never_retry;   /* error types by dotted prefix */
    size_t never_retry_count;
    uint64_t random;                  /* for jitter */
    const char *schema;               /* of the type; NULL: none */
    const struct hfi_forwards *forwards; /* what a death sets off besides its alerts; NULL nothing */
};

/*
 * The whole consequence; the store writes it in one transaction. Texts are borrowed from the old job and the event, and
 * from the buffers below: job.error_…, .reason and .cancel_… point into this very struct, so never copy it by value.
 */
struct hfi_change {
    struct hfi_job job; /* the new record, same id */
    char actor[HFI_NAME_MAX + 1];
    bool has_history; /* its buffers are filled either way */
    struct hfi_history history;
    bool has_death;
    struct hfi_death death;
};

/* After so many crashes a job is started alone, in a lane of its own kind: whose fault it was shows then. */
#define HFI_ALONE_CRASHES 2
static inline bool hfi_wants_alone(const struct hfi_job *job) {
    return job->crashes >= HFI_ALONE_CRASHES;
}

/* Who cancelled a job whose parent did not succeed, and why; a requeue of that parent revives such jobs. */
#define HFI_BY_HOLDFAST "holdfast"
#define HFI_PARENT_DEAD "parent.dead"
bool hfi_cancelled_by_parent(const struct hfi_job *job);

/* Executions in force: explicit > policy of the job > rules; 1 at least. Snoozed executions do not count against it (I37). */
uint32_t hfi_max_executions(const struct hfi_job *job, const struct hfi_rules *rules);
uint32_t hfi_executions_left(const struct hfi_job *job, const struct hfi_rules *rules);

/*
 * 0, or HF_ESTATE when the state does not know the event (`change` is untouched then). A running job with started_at 0 is
 * reserved, not started. `rules` may be NULL for CLAIMED, STARTED, SUCCEEDED, CANCELLED, EXPIRED,
 * REQUEUED and the four after it; STARTED notes repeatable, runs_code and alone.
 */
int hfi_transition(const struct hfi_job *job, const struct hfi_event *event, const struct hfi_rules *rules,
                   struct hfi_change *change);
/*
 * Is `row` what this change of its owner's made of it: was the write made before, and not heard of? Only its owner ends a
 * job under the owner's epoch; a lapse may be somebody else's, and shows by its words.
 */
bool hfi_death_was_made(const struct hfi_change *change, const struct hfi_job *row);

#endif
