/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_H
#define HFI_JOBS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scheduler.h"
#include "holdfast/alert.h"
#include "holdfast/dead.h"
#include "holdfast/forward.h"
#include "holdfast/store.h"
#include "jobs/forward.h"
#include "jobs/limit.h"
#include "jobs/merge.h"
#include "jobs/record.h"
#include "jobs/redriving.h"
#include "jobs/rulebook.h"
#include "jobs/transition.h"

/*
 * The store port. Writes are operations: the writer (jobs/writer.h) hands a batch to `commit`, which runs all of them
 * in ONE transaction and sets each op's code; reads are blocking functions on handles of their own. Implementations:
 * memory (src/sim/memory_store), SQLite (src/jobs/store). One contract suite runs on all. Every state change goes
 * through hfi_transition; every owner write is fenced by id, epoch and state.
 */
#define HFI_STORE_VERSION 1

#define HFI_OP_MAP(X)                                                                                        \
    X(PUT) X(JOIN) X(BEAT) X(LEAVE) X(NODES) X(LANES) X(CLAIM) X(APPLY) X(SWEEP) X(EXPIRE) X(QUARANTINE)     \
        X(CANCEL) X(REQUEUE) X(REDRIVE) X(SETTLE) X(PAUSE) X(DOWNSTREAM) X(SHARE) X(ALERTS) X(ALERT_END) X(ABSENT) X(POISON) \
        X(NOTE) X(PRUNE) X(UNUSED) X(RELEASE) X(READMIT) X(REDRIVE_TASK) X(REDRIVE_STEP) X(REDRIVE_CANCEL) X(IMPORT) X(MEASURE)
enum hfi_op_kind {
#define HFI_OP_MEMBER(name) HFI_OP_##name,
    HFI_OP_MAP(HFI_OP_MEMBER)
#undef HFI_OP_MEMBER
        HFI_OP_COUNT
};

/* Head of every operation. In memory of the submitter until it is done. */
struct hfi_op {
    enum hfi_op_kind kind;
    int code;               /* 0 or HF_E…; set when done */
    struct hf_error *error; /* details or NULL */
    bool urgent;            /* beats: ahead of everything that waits */
    bool left_over;         /* out: children of jobs that it ended or began anew are left to RELEASE; LANES: of any */
    /* the writer's: */
    struct hfi_op *next;
    struct hfi_task task;                                /* completion, on `home` */
    struct hfi_scheduler *home;                          /* NULL: `done` runs on the writer thread */
    void (*done)(struct hfi_op *op, void *user);
    void *user;
};

/* Enqueue: all or none. HF_EINVAL etc. are found before, by hfi_spec_check. */
struct hfi_put {
    struct hfi_job job;            /* borrowed texts; id, lane, policy are the store's */
    const struct hfi_curve *curve; /* NULL = not given */
    bool replace;                  /* a unique key that is taken: hfi_replace_how */
    const int64_t *after;          /* jobs it waits for; one the store does not know: HF_ENOENT, error.line its index + 1 */
    uint32_t after_count;
    bool after_on_end;
    int64_t id;                    /* out */
    bool existed;                  /* out: unique key, or source message known: id is the existing one (0 if purged) */
    /* A source message is remembered also when the unique key was taken: redelivered later it still makes nothing. */
};
struct hfi_op_put {
    struct hfi_op op;
    struct hfi_put *items;
    size_t count;
};

/* A node begins: gets its id; its lock file is held until leave or death. */
struct hfi_op_join {
    struct hfi_op op;
    const char *name, *host, *boot; /* boot: random per start (I30) */
    int32_t pid;
    struct hf_wall now;
    const char *const *types;       /* what it can run */
    size_t type_count;
    const struct hfi_sink_rule *sinks; /* what it can send to; and how those collapse storms, from now on for every writer of the store */
    size_t sink_count;
    int64_t node;                   /* out */
};
/* A running row of a node. */
struct hfi_owned {
    int64_t id, epoch;
    bool cancel; /* somebody asked to */
    bool known;  /* the runner's own mark: an execution in its memory has it */
};
#define HFI_OWNED_MAX 10000 /* more than a node has in memory */
struct hfi_op_beat {
    struct hfi_op op;
    int64_t node, beat;
    struct hf_wall now;
    const char *const *types; /* NULL: it runs what it ran; else what it can run from now on */
    size_t type_count;
    struct hfi_owned *owned; /* out, hfi_free: own running jobs by id, the first HFI_OWNED_MAX */
    size_t owned_count;
    bool known; /* out: false: the row is gone (others lapsed it): stop */
};
/* The row stays while jobs are its own: those are left to its lease. */
struct hfi_op_leave {
    struct hfi_op op;
    int64_t node;
};
/* All nodes but `self` with their beats, for lease watching, and whoever else owns running jobs. */
struct hfi_node_row {
    int64_t node, beat;
    bool dead_on_host; /* its lock is free: it died on this host, needs no lease to lapse */
    bool gone;         /* it has no live row, and jobs all the same (I47): nobody needs to watch it */
    char name[64];
};
struct hfi_op_nodes {
    struct hfi_op op;
    int64_t self;
    struct hfi_node_row *rows; /* out, hfi_free */
    size_t count;
};

/* Lanes: interned (queue, type, breaker key, limit key), apart for jobs that are started alone. */
struct hfi_lane_row {
    int64_t lane;
    int64_t next_due_us; /* lower bound of the earliest pending run_at; INT64_MAX = none pending */
    int32_t top_priority; /* upper bound of what is pending; exact after a claim */
    bool paused;         /* its queue is */
    uint32_t limit_running, queue_running; /* with `running`: jobs of its limit key, of its queue, reserved or started by anybody */
    bool alone;          /* of jobs that are started alone: hfi_wants_alone */
    const char *queue, *type, *breaker_key, *limit_key; /* empty texts for lanes below `known` */
};
#define HFI_KEPT_MAX 10000 /* over all lanes: they are counted in the transaction of everybody's writes */
struct hfi_op_lanes {
    struct hfi_op op;
    int64_t known;             /* texts only of lanes above it */
    struct hf_wall now;
    bool running;              /* somebody asks for limit_running and queue_running */
    const int64_t *kept;       /* lanes that are kept back: their due jobs are counted; NULL none */
    size_t kept_count;
    uint64_t kept_due;         /* out: due jobs of `kept`, at most HFI_KEPT_MAX are counted */
    struct hfi_lane_row *rows; /* out, one block to hfi_free: new lanes, and every lane with next_due ≤ now */
    size_t count;
    int64_t next_due_us;       /* out: earliest next_due after now; INT64_MAX none */
    uint64_t unhealthy_version; /* out: bumped when a row of `downstreams` or a pause changed */
};

/*
 * Claims: reserves, and with `start` starts, jobs of the admitted lanes in the order of merge.h: queues by order and
 * weight, and within a queue the highest priority, the earliest due, the lowest id of all its lanes; with `aging_us` the
 * priority is what it has aged to (limit.h). Never more than the budgets have left, and lanes without any are not read.
 * Never of a paused queue, never a job past its expires_at (EXPIRE ends those), never more than the limit of the lane's
 * key and the bound of its queue leave free: those are measured on the running rows of the whole store, in this very
 * transaction, so there is no count that could go wrong. Lanes of probes go before all others, in the order given.
 */
#define HFI_ADMITTED_DRAWS 4
struct hfi_admitted {
    int64_t lane;
    uint32_t max;
    const struct hfi_curve *policy; /* with `start`: fixed on jobs that have none */
    bool not_repeatable;            /* with `start`: noted on them, as the next two */
    bool runs_code, alone;
    const struct hfi_limit *limit;  /* of the lane's limit key; NULL: none */
    uint32_t queue_max;             /* jobs of the lane's queue at once in the whole store; 0 no bound */
    int64_t aging_us;               /* 0 off */
    bool probe;                     /* its jobs are probes of a broken downstream: hfi_probe_suits goes before the order */
    uint16_t queue;                 /* index in the claim's queues */
    uint16_t draws[HFI_ADMITTED_DRAWS]; /* indices in its budgets, of all that it draws from; 0 none */
    uint32_t claimed;               /* out */
    bool more;                      /* out: it has more due jobs, which a limit may keep back, or which stand behind many
                                     * past their expires_at: a claim need not look behind those */
    int64_t full_at_us;             /* out: with a rate: when the key's bucket is full again, after this claim; wall */
};
/* HF_ESTALE: the node is gone, and what it claimed would be nobody's. */
struct hfi_op_claim {
    struct hfi_op op;
    int64_t node;
    struct hf_wall now;
    bool start;
    struct hfi_admitted *lanes;
    size_t lane_count;
    struct hfi_merge_queue *queues; /* by order; none: all lanes are of one */
    size_t queue_count;
    const struct hfi_merge_budget *budgets; /* of this node; the first one is not used */
    size_t budget_count;
    uint32_t max;               /* over all lanes */
    struct hfi_job **jobs;      /* out: room for max; each one block, the submitter's, with payload */
    size_t count;
};

/*
 * A fenced owner write: hfi_transition on the owner's copy (with the stored cancel request), written iff id, epoch and
 * running still hold, else HF_ESTALE (HF_ESTATE when that copy does not know the event, and for STARTED while its queue is paused). STARTED fixes rules.policy on a job that has none. When a job ends, dead letters
 * redriven or requeued to it whose new_job_outcome is empty get the name of its state. A death that this very write made
 * before, though nobody heard the answer, is answered as it was then, and nothing is written.
 */
struct hfi_op_apply {
    struct hfi_op op;
    const struct hfi_job *job;
    struct hfi_event event;
    struct hfi_rules rules;
    const char *const *sinks; /* one alert row each when it dies */
    size_t sink_count;
    struct hfi_change change; /* out: what was written; its death is what gets logged */
    int64_t dead_id;          /* out: 0 none */
    bool existed;             /* out: that dead letter was there already, of another death, which was told [S0.19] */
    uint32_t released, ended; /* out: jobs that waited and are pending now, or cancelled with it */
};

/*
 * What a handler leaves on its running job between start and end: how far it is, and what the next execution begins
 * with. No state changes. Written iff id, epoch and running still hold, else HF_ESTALE (I8, I50). A requeue forgets both.
 */
#define HFI_NOTE_PROGRESS 1u
#define HFI_NOTE_CHECKPOINT 2u
struct hfi_op_note {
    struct hfi_op op;
    int64_t id, epoch;
    unsigned set;           /* HFI_NOTE_… */
    int64_t progress;
    const char *text;       /* clean, at most HFI_PROGRESS_MAX bytes; "" none */
    const void *checkpoint; /* at most HFI_CHECKPOINT_MAX bytes; empty: none any more */
    size_t length;
};

/* What other hands do to jobs; each runs hfi_transition on the stored row. `book` gives the rules. */
struct hfi_op_sweep { /* lapses jobs of a dead owner, a page at a time (I6), or one that a living owner lost */
    struct hfi_op op;
    const struct hfi_rulebook *book;
    int64_t owner, by;
    int64_t beat;        /* of the owner when it was judged: with another one in a live row it lives after all */
    int64_t only, epoch; /* 0, or: this job alone, while that is its epoch; the node lives on */
    bool crash;
    struct hf_wall now;
    int64_t after_id;  /* in, out: keyset */
    uint32_t limit;
    uint32_t lapsed;   /* out */
    bool finished;     /* out: nothing left of that owner; its node row is gone */
    bool lives;        /* out: its beat is another one; nothing was lapsed */
    struct hfi_dead_note *notes; /* out: deaths, for the log; hfi_free */
    size_t note_count;
};
struct hfi_dead_note {
    int64_t dead_id, job_id;
    uint32_t executions;
    enum hf_death_class death_class;
    char type[HFI_TYPE_MAX + 1], error_type[64], correlation_id[HFI_CORRELATION_MAX + 1];
};
struct hfi_op_expire { /* ends pending and waiting jobs past expires_at */
    struct hfi_op op;
    struct hf_wall now;
    uint32_t limit, ended;
};
struct hfi_op_quarantine { /* pending due jobs of a lane, in the order of claims whose type no node has: nothing is done while another node's row names the type */
    struct hfi_op op;
    const struct hfi_rulebook *book;
    int64_t lane, node;
    struct hf_wall now;
    const char *error_type, *message;
    uint32_t limit, ended;
    struct hfi_dead_note *notes; /* out, hfi_free */
    size_t note_count;
};
struct hfi_op_cancel {
    struct hfi_op op;
    int64_t id;
    const char *actor, *reason;
    struct hf_wall now;
    bool requested; /* out: it runs; its node will hear of it */
};
/*
 * Marks the dead letter of the job's last death as redriven to the job itself; HF_ESTATE when that is settled already.
 * HF_EEXIST: another job holds its unique key.
 */
struct hfi_op_requeue {
    struct hfi_op op;
    int64_t id;
    const char *actor, *reason;
    bool new_key, force; /* force: also when it was forwarded [S2.32] */
    struct hf_wall now;
    int32_t was;       /* out on HF_ESTATE: state of the job */
    int32_t status;    /* out on HF_ESTATE: status of its dead letter, 0 when that is not why */
    int64_t other_job; /* out: on HF_ESTATE the job it was redriven to, on HF_EEXIST the holder; or 0 */
};
struct hfi_op_redrive { /* HF_EEXIST: another job (new_job) holds its unique key */
    struct hfi_op op;
    int64_t dead_id;
    const struct hf_dead_action *action;
    int64_t task; /* the redrive task it is done for; 0 none */
    struct hf_wall now;
    int64_t new_job; /* out; on HF_ESTATE the job it was redriven to before, or 0 */
    int32_t status;  /* out on HF_ESTATE */
    bool stray;      /* out on HF_ESTATE: it tells of a dead letter that is not here */
};
/* Begins a redrive task as hfi_redrive_begin made it, with total and upper_id; running, due at once. */
struct hfi_op_redrive_task {
    struct hfi_op op;
    const struct hfi_redrive_task *task;
    struct hf_wall now;
    int64_t id; /* out */
};
/* Some of the due task that waits longest, or of this one; HF_ENOENT: no such one. A full disk makes it wait. */
struct hfi_op_redrive_step {
    struct hfi_op op;
    int64_t id; /* 0: any */
    bool look;  /* only when the next is due: nothing is found, nothing written */
    struct hf_wall now;
    bool found;                   /* out: there was one; else nothing is due */
    uint32_t redriven;            /* out: jobs that it made */
    struct hfi_redrive_task task; /* out: as it is now */
    int64_t next_due_us;          /* out: of all that run; INT64_MAX none */
};
struct hfi_op_redrive_cancel { /* HF_ENOENT, HF_ESTATE: it has ended */
    struct hfi_op op;
    int64_t id;
    const char *actor, *reason;
    struct hf_wall now;
    int32_t was; /* out on HF_ESTATE */
};
/* Dead letters from an export; each was checked (letter.h). One that is there already stays as it is. HF_EINVAL: one of
 * this store does not go with its job, nothing was taken in. */
struct hfi_op_import {
    struct hfi_op op;
    const struct hf_dead_view *letters;
    size_t count;
    const char *actor;
    struct hf_wall now;
    int64_t *ids;  /* out */
    bool *existed; /* out */
};
struct hfi_op_settle { /* resolve, discard */
    struct hfi_op op;
    int64_t dead_id;
    enum hf_dead_status status;
    const struct hf_dead_action *action;
    struct hf_wall now;
    int32_t was; /* out on HF_ESTATE */
};
struct hfi_op_pause {
    struct hfi_op op;
    const char *queue, *actor;
    bool pause;
    int64_t until_us;
    struct hf_wall now;
};
/* Control and phase of one downstream. `set` bits say what is written; compare-and-set on version unless it is -1:
 * HF_ESTATE and the row as it is. FORCED: forced, forced_until, reason; PHASE: the other fields. */
#define HFI_DOWNSTREAM_FORCED 1u
#define HFI_DOWNSTREAM_PHASE 2u
#define HFI_DOWNSTREAM_READ 4u /* only fills `row` */
struct hfi_downstream_state {
    int32_t forced;
    int64_t forced_until_us;
    int32_t phase;
    int64_t open_until_us, gate_until_us, unhealthy_since_us;
    int64_t ramp_from_us; /* of phase ramp: all nodes are on the same */
    uint32_t trips;
    int64_t version; /* 0: no row yet */
    char reason[160];
};
struct hfi_op_downstream {
    struct hfi_op op;
    const char *key;
    unsigned set;
    struct hf_wall now;                /* of a write */
    struct hfi_downstream_state state; /* in; out: as stored now */
};
/*
 * Places that all nodes share: probes of a downstream, starts of its ramp. A node's row is its lease on them, and goes
 * with the node. Wants nothing and keeps nothing: the row goes. A node that is gone gets none.
 */
struct hfi_op_share {
    struct hfi_op op;
    const char *key;
    int64_t node;
    uint32_t want, keep; /* keep: in use, and stays its own */
    uint32_t max;        /* of all nodes together */
    bool whole;          /* one node at a time */
    uint32_t held;       /* out */
    int64_t version;     /* out: of the row in `downstreams` with that key: who shares what it says may have to read it first */
};
/*
 * Alerts: one durable row per (death, sink), written with the death (owner, epoch). By the rules of deaths/storm.h it is
 * a message of its own, or goes out with another row's: attached to the summary that leads its storm, taken into a digest.
 */
struct hfi_alert_cause { /* one line of a digest */
    uint64_t deaths;
    int64_t dead_id; /* the first of them */
    char type[HFI_TYPE_MAX + 1], error_type[64], downstream[HFI_NAME_MAX + 1];
};
#define HFI_ALERT_HAD_MAX 63
struct hfi_alert {
    int64_t id, dead_id, job_id, epoch, dead_at_us;
    int64_t tried_us;     /* so far: the pieces of deaths/patience.h */
    uint32_t tries;
    char had[HFI_ALERT_HAD_MAX + 1]; /* what an earlier try left */
    enum hf_death_class death_class;
    enum hf_alert_kind kind;
    uint64_t deaths; /* that it tells of, this one among them; of a digest: of all its causes */
    uint32_t executions, death_no;
    bool quarantined;
    char sink[64], type[HFI_TYPE_MAX + 1], queue[HFI_NAME_MAX + 1], downstream[HFI_NAME_MAX + 1], error_type[64], correlation_id[HFI_CORRELATION_MAX + 1];
    char message[HFI_ERROR_MESSAGE_MAX + 1]; /* of the error: not for every sink */
    size_t first_cause, cause_count;         /* of a digest: in op.causes */
    const struct hfi_alert_cause *causes;    /* the sender's to set, while it is sent */
};
struct hfi_op_alerts { /* takes due rows of the given sinks until now + lease_ms: epoch + 1, tries + 1 */
    struct hfi_op op;
    const char *const *sinks;
    size_t sink_count;
    int64_t node, lease_ms;
    struct hf_wall now;
    uint32_t limit;
    struct hfi_alert *rows; /* out, hfi_free */
    size_t count;
    struct hfi_alert_cause *causes; /* out, hfi_free: of all digests among the rows; NULL none */
    size_t cause_count;
    int64_t next_due_us;    /* out: INT64_MAX none; later than the rows' own while the pace keeps them back */
};
struct hfi_op_alert_end { /* fenced by id and epoch: HF_ESTALE */
    struct hfi_op op;
    int64_t id, epoch;
    bool sent, undelivered; /* neither: another try at next_at_us */
    int64_t next_at_us;
    const char *error_type;
    const char *had; /* for the next try; NULL: as it was */
    struct hf_wall now;
};
/*
 * Alerts of sinks that no live node has: nobody sends them. Notes since when, and ends those of a sink that was missed for
 * seven days as undelivered, a page at a time (deaths/patience.h). One that a node has again begins anew.
 */
#define HFI_ABSENT_SINKS 16
struct hfi_absent_sink {
    char name[64];
    uint64_t count;  /* of its alerts that ended now */
    int64_t dead_id; /* the first of them */
};
struct hfi_op_absent {
    struct hfi_op op;
    struct hf_wall now;
    uint32_t limit;
    struct hfi_absent_sink ended[HFI_ABSENT_SINKS]; /* out */
    size_t ended_count;
    bool more; /* out: go on */
};
/* A message that never became a job: a dead letter of its own, with its alerts, once per source and message id [S0.21]. */
struct hfi_op_poison {
    struct hfi_op op;
    const struct hfi_job *job; /* what could be read of it; source and source_message_id are required, id is 0 */
    const struct hfi_death *death;
    const char *const *sinks;
    size_t sink_count;
    const struct hfi_forwards *forwards;
    struct hf_wall now;
    int64_t dead_id; /* out */
    bool existed;    /* out: it was there already: nobody is alerted [S0.19] */
};
/*
 * One node of a store prunes at a time (I73): who finds more than a page has the turn until it found no more, or did not
 * come for so long; anybody else is answered `others` and nothing is pruned. So pages take the share of the time that one
 * node gives them, however many there are.
 */
#define HFI_PRUNE_TURN_US INT64_C(60000000)
struct hfi_prune_turn {
    int64_t node, until_us; /* 0: nobody's */
};
/*
 * Small chunks: `limit` jobs, letters and so on, and with all that belongs to them never more than HFI_PRUNE_ROWS rows.
 * µs before which rows of a kind go, 0 = keep; dead letters only settled ones whose alerts have ended; of nodes only those that are
 * gone: a history of theirs that is still kept has no name then.
 */
#define HFI_PRUNE_ROWS 4500 /* of the 5,000 that a transaction may take; others may be in it */
struct hfi_op_prune {
    struct hfi_op op;
    int64_t succeeded_before, cancelled_before, dead_before, quarantined_before, dead_letters_before, inbox_before;
    int64_t audit_before, nodes_before;
    int64_t downstreams_before; /* that are closed, not isolated, behind no gate, and not written since */
    int64_t node;       /* who asks */
    struct hf_wall now; /* rates of limit keys that are full again are forgotten; uncounted */
    uint32_t limit, pruned;
    bool others;   /* out: it is another node's turn */
    uint32_t rows; /* out: of all tables */
    bool more;     /* out: go on, not all was looked at */
};
/*
 * A walk through the store that removes lanes and policies nothing refers to, a page at each call; `walk` all zero begins
 * one, unless somebody's began less than every_us ago, and is all zero again at the end. A lane that is used meanwhile, by
 * any process, stays; so does one whose page was not reached when the walk was given up. Also tells which of the lanes
 * that the caller knows are no more.
 */
struct hfi_walk {
    int64_t number;   /* 0: none */
    int64_t after_id; /* keyset of the phase */
    int32_t phase;
};
struct hfi_op_unused {
    struct hfi_op op;
    struct hfi_walk walk; /* in, out */
    struct hf_wall now;
    int64_t every_us;
    uint32_t limit;       /* rows written */
    int64_t *lanes;       /* in; out: those that are gone, first */
    size_t lane_count, gone_count;
    uint32_t lanes_removed, policies_removed; /* out */
    bool more;            /* out: go on */
};
/*
 * A page of quarantined jobs, by id: those that can be run now, and whose type wants it, are requeued, their dead letters
 * settled as redriven to them by `holdfast`; such as are settled already, or whose unique key another job holds, stay (R9).
 */
struct hfi_op_readmit {
    struct hfi_op op;
    const struct hfi_rulebook *book;
    struct hf_wall now;
    int64_t after_id; /* in, out: keyset; 0 when it came to the end */
    uint32_t limit;
    uint32_t readmitted; /* out */
    bool more;           /* out: not all were looked at */
};

/*
 * Jobs that wait for others: what a transaction left over when a job with many children ended (HFI_SETTLE_MAX), and,
 * with `scan`, a page of all that wait, by id, whatever led to it.
 */
struct hfi_op_release {
    struct hfi_op op;
    struct hf_wall now;
    bool scan;
    int64_t after_id;         /* in, out: keyset of the scan; 0 when it came to the end */
    uint32_t limit;           /* of the scan */
    uint32_t released, ended; /* out */
    bool more;                /* out: something is left over */
};

/*
 * What a node measured of a downstream since it last said so (resilience/recorder.h), added to what is known of this hour;
 * what is older than a week is forgotten, of any downstream. HF_EINVAL: not the recorder's bytes.
 */
struct hfi_op_measure {
    struct hfi_op op;
    const char *key; /* the downstream's name: hosts are measured as one */
    struct hf_wall now;
    const void *bytes;
    size_t length;
    bool more; /* out: not all that is old was removed */
};

struct hfi_store;
#define HFI_PHASE_ROWS 5000
typedef void (*hfi_phases_fn)(const struct hfi_phases *phases, void *user); /* under the lock of a reader */
/* Under the lock of a reader. False: stop, with HF_ENOMEM. */
typedef bool (*hfi_measured_fn)(int64_t hour, const void *bytes, size_t length, void *user);
struct hfi_store_ops {
    uint32_t version;
    const char *kind;
    /* One transaction for all; per-op codes. When the commit itself fails every op gets its code, and HF_EBUSY on all of
     * them makes the writer try again: an op that failed has changed none of its in-out fields and left no output to
     * free. Writer thread only. */
    void (*commit)(struct hfi_store *self, struct hfi_op **ops, size_t count);
    /* Between batches on the writer thread: checkpoints, ballast. `idle`: nothing is waiting,
     * perhaps only for a moment. May be NULL. Returns ms until it wants to be called again, or -1. */
    int64_t (*housekeep)(struct hfi_store *self, bool idle);
    /* Reads: any thread but loop and writer. */
    int (*list_jobs)(struct hfi_store *self, const struct hf_job_filter *filter, struct hf_job_list **list, struct hf_error *error);
    int (*get_job)(struct hfi_store *self, int64_t id, struct hf_job **job, struct hf_error *error);
    int (*count_jobs)(struct hfi_store *self, struct hf_job_counts *counts, struct hf_error *error);
    int (*list_queues)(struct hfi_store *self, struct hf_queue_list **list, struct hf_error *error);
    int (*list_limits)(struct hfi_store *self, struct hf_limit_list **list, struct hf_error *error);
    int (*list_downstreams)(struct hfi_store *self, struct hf_downstream_list **list, struct hf_error *error);
    int (*list_forwards)(struct hfi_store *self, struct hf_forward_list **list, struct hf_error *error);
    /* Tells the phases of what jobs of that downstream, or host of one, did: of the newest HFI_PHASE_ROWS executions. */
    int (*look_phases)(struct hfi_store *self, const char *key, hfi_phases_fn each, void *user, struct hf_error *error);
    /* Tells what was measured of that downstream, from that hour on (measuring.h), the oldest first. */
    int (*look_measured)(struct hfi_store *self, const char *key, int64_t from_hour, hfi_measured_fn each, void *user,
                         struct hf_error *error);
    int (*list_dead)(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_list **list, struct hf_error *error);
    int (*group_dead)(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_group_list **list, struct hf_error *error);
    int (*list_redrives)(struct hfi_store *self, const struct hf_redrive_filter *filter, struct hf_redrive_list **list, struct hf_error *error);
    int (*get_dead)(struct hfi_store *self, int64_t id, struct hf_dead **dead, struct hf_error *error);
    int (*list_alerts)(struct hfi_store *self, const struct hf_alert_filter *filter, struct hf_alert_list **list, struct hf_error *error);
    int (*look)(struct hfi_store *self, struct hf_store_info *info);
    int (*doctor)(struct hfi_store *self, hf_doctor_fn report, void *user, struct hf_error *error);
    /* A descriptor that becomes readable when another process may have written; -1 none. wake_drain empties it. Loop thread. */
    int (*wake_fd)(struct hfi_store *self);
    void (*wake_drain)(struct hfi_store *self);
    void (*close)(struct hfi_store *self);
};
struct hfi_store {
    const struct hfi_store_ops *ops;
    struct hf_store_options options;
    char uuid[40];
    int64_t budget_us; /* the writer's word before a commit: who waits for it wants an answer by then; 0 whenever */
};

#endif
