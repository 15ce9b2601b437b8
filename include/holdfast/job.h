/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_JOB_H
#define HOLDFAST_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "error.h"
#include "outcome.h"

/* States of a job, as stored. An unknown number is shown as such and never claimed. X(NAME, value, text) */
#define HF_JOB_STATE_MAP(X)                                                                    \
    X(PENDING, 0, "pending") X(WAITING, 1, "waiting") X(RUNNING, 2, "running")                 \
    X(SUCCEEDED, 3, "succeeded") X(DEAD, 4, "dead") X(QUARANTINED, 5, "quarantined") X(CANCELLED, 6, "cancelled")
enum hf_job_state {
#define HF_JOB_STATE_MEMBER(name, value, text) HF_JOB_##name = (value),
    HF_JOB_STATE_MAP(HF_JOB_STATE_MEMBER)
#undef HF_JOB_STATE_MEMBER
};

/* Status of a dead letter [S0.14]. */
#define HF_DEAD_STATUS_MAP(X) X(DEAD, 0, "dead") X(REDRIVEN, 1, "redriven") X(RESOLVED, 2, "resolved") X(DISCARDED, 3, "discarded")
enum hf_dead_status {
#define HF_DEAD_STATUS_MEMBER(name, value, text) HF_DEAD_##name = (value),
    HF_DEAD_STATUS_MAP(HF_DEAD_STATUS_MEMBER)
#undef HF_DEAD_STATUS_MEMBER
};

/* Class of a death, as stored [S0.14]. */
#define HF_DEATH_CLASS_MAP(X) X(TRANSIENT_EXHAUSTED, 0, "transient_exhausted") X(PERMANENT, 1, "permanent") X(POISON, 2, "poison")
enum hf_death_class {
#define HF_DEATH_CLASS_MEMBER(name, value, text) HF_DEATH_##name = (value),
    HF_DEATH_CLASS_MAP(HF_DEATH_CLASS_MEMBER)
#undef HF_DEATH_CLASS_MEMBER
};

#define HF_PAYLOAD_MAX_DEFAULT 65536
#define HF_CURVE_MAX 64 /* waits of a stored curve */
#define HF_AFTER_MAX 16 /* jobs that one may wait for */
#define HF_RESULT_MAX 65536 /* bytes of a result */

/* What a pending job is shown as. X(NAME, text) */
#define HF_JOB_SHOWN_MAP(X)                                                 \
    X(SCHEDULED, "scheduled") /* not due yet */                             \
    X(RETRYING, "retrying")   /* not due yet, after a failure */            \
    X(PARKED, "parked")       /* its downstream's breaker is open */        \
    X(READY, "ready")         /* due */
enum hf_job_shown {
#define HF_JOB_SHOWN_MEMBER(name, text) HF_JOB_SHOWN_##name,
    HF_JOB_SHOWN_MAP(HF_JOB_SHOWN_MEMBER)
#undef HF_JOB_SHOWN_MEMBER
};

HF_BEGIN

/* What an enqueue does whose unique_key another job holds. */
enum hf_unique_conflict {
    HF_UNIQUE_KEEP,   /* nothing: it answers the holder's id, existed */
    HF_UNIQUE_REPLACE /* a pending or waiting holder becomes this job under its old id (existed), with a full budget; a running
                         one goes on without the key and this job succeeds it; one that has ended keeps it (existed) */
};

/* What is enqueued. Everything is copied. Texts: valid UTF-8 without NUL. 0 or NULL = not given, unless said. */
struct hf_job_spec {
    uint32_t size;
    uint32_t max_executions;     /* 0 = not set: type, then queue, then global decide */
    const char *type;            /* required, 1…300 bytes */
    const char *queue;           /* the type's, else "default" */
    const void *payload;         /* opaque bytes, any of 256 values */
    size_t payload_length;
    const char *content_type;    /* NULL */
    int32_t priority;            /* 0..9, higher first */
    uint32_t curve_length;       /* 0 = not set; replaces the whole policy */
    const int64_t *curve_ms;     /* waits between executions, last one reused; ≤ HF_CURVE_MAX */
    int64_t run_at_us;           /* µs UTC; 0 = now */
    int64_t expires_at_us;       /* not started after it; 0 = never */
    const char *downstream;      /* the type's */
    const char *limit_name;      /* with limit_key: `tenant`; which limit of the runners it falls under, see hf_limit_options */
    const char *limit_key;       /* `42`: whose slots and rate */
    const char *unique_key;
    const char *idempotency_key; /* default `<store uuid>-<root job id>` */
    const char *correlation_id;  /* ≤ 64 bytes */
    const char *trace_context;
    const char *tags;            /* comma separated */
    const char *source;          /* with source_message_id: the inbox of another system */
    const char *source_message_id;
    uint32_t on_conflict;        /* enum hf_unique_conflict; needs a unique_key */
    uint32_t unique_states;      /* bits 1 << enum hf_job_state in which a job holds its key; pending, waiting and running have
                                    to be among them, succeeded and cancelled may; 0: these three, with unique_window_ms succeeded too */
    int64_t unique_window_ms;    /* 0; else the key is unique within each such period, counted from 1970 UTC; by the time of enqueueing */
    /*
     * It waits until each of these jobs has succeeded; when one ends otherwise it is cancelled, cause `parent.dead`, until
     * that one is requeued. With after_on_end it waits until they have ended, whichever way. One that has ended already
     * counts as what it ended as; ids the store does not know are refused. A redrive is another job: it frees nobody.
     */
    const int64_t *after_jobs;
    uint32_t after_count;        /* ≤ HF_AFTER_MAX */
    bool after_on_end;
    /*
     * With a per_host downstream, which has to be named then: a URL at the host that the job calls, of which scheme, host
     * and port count; hf_type_host makes one. The job is parked with that host from the start. NULL: from the first
     * execution on that tells which it is. An outbox does not carry it: the relay works it out.
     */
    const char *host_url;
};
static inline void hf_job_spec_init(struct hf_job_spec *spec) {
    memset(spec, 0, sizeof *spec);
    spec->size = (uint32_t)sizeof *spec;
}

/* The same in one line: a job of `type` with a text as its payload. */
static inline struct hf_job_spec hf_job_of(const char *type, const char *payload) {
    struct hf_job_spec spec;
    hf_job_spec_init(&spec);
    spec.type = type;
    spec.payload = payload;
    spec.payload_length = strlen(payload);
    return spec;
}

/* A snapshot of a stored job. Texts belong to the view's owner (list or job); "" when absent. Times µs UTC, 0 = none. */
struct hf_job_view {
    uint32_t size;
    int32_t state; /* enum hf_job_state; others may come from a newer store */
    int64_t id;
    const char *type, *queue, *downstream, *limit_key, *unique_key, *idempotency_key, *correlation_id, *tags;
    const char *content_type, *owner, *not_before_reason, *error_class, *error_type, *error_message, *cancel_reason;
    const void *payload; /* NULL in lists */
    size_t payload_length;
    const void *result;
    size_t result_length;
    int32_t priority;
    uint32_t executions, failures, snoozes, crashes, give_backs, deaths;
    uint32_t max_executions;       /* in force; 0: its type's, worked out at the first start */
    bool max_executions_explicit;  /* given at enqueue */
    int64_t epoch, root_id, parent_id;
    int64_t run_at_us, expires_at_us, created_at_us, started_at_us, finished_at_us, cancel_requested_at_us;
    int64_t progress;          /* as its handler said last; 0 until it did */
    const char *progress_text; /* at most 200 bytes */
    const void *checkpoint;    /* what its next execution begins with; NULL in lists */
    size_t checkpoint_length;  /* 0 in lists */
    const char *shown;             /* the state's name, for a pending job that of enum hf_job_shown */
    const char *source, *source_message_id, *cancel_by;
};

/* One step in a job's history: an execution that ended, or what somebody did to it. */
struct hf_history_view {
    uint32_t size;
    uint32_t execution;
    int64_t started_at_us, ended_at_us;
    const char *node, *event, *error_class, *error_type, *error_message, *rule;
    uint32_t attempts, retries;
    int64_t next_run_at_us; /* 0: none followed */
    const char *shown;      /* what the job was afterwards, as in hf_job_view */
    const char *breaker;    /* state of its downstream's breaker when the execution began; "" unknown */
    int64_t resolve_us, connect_us, tls_us, first_byte_us, total_us; /* of the last attempt, each since its begin; -1 unknown */
};

/* A job that this one waits for or waited for, or one that waits for it. */
struct hf_link_view {
    uint32_t size;
    int32_t state;    /* enum hf_job_state; -1: pruned meanwhile */
    int64_t id;
    const char *type; /* "" when pruned */
    bool is_parent;
    bool on_end;      /* any end frees the child */
};

/* One dead letter: the evidence of a death. */
struct hf_dead_view {
    uint32_t size;
    int32_t status;      /* enum hf_dead_status */
    int32_t death_class; /* enum hf_death_class */
    int64_t id, job_id;  /* job_id 0: it died before a job existed */
    uint32_t death_no, executions, failures, max_executions;
    bool quarantined;
    bool payload_cut;    /* its message's was over the limit: only the beginning is kept, a redrive needs a whole one */
    const char *source, *source_message_id, *type, *queue, *downstream, *content_type, *error_type, *error_message, *detail;
    const char *rule, *correlation_id, *node, *fingerprint, *cause;
    const void *payload; /* NULL in lists */
    size_t payload_length;
    int64_t job_created_at_us, dead_at_us, settled_at_us;
    const char *settled_by, *settled_reason;
    int64_t new_job_id;
    const char *new_job_outcome; /* "" until the new job ended */
    int64_t task_id;             /* the redrive task that made the new job; 0 none */
    /* The rest of what a redrive needs, as the job had it. In lists absent: "" or 0. */
    const char *origin;          /* `<store uuid>-<id>` of where it died: of this store, or of the one it was imported from */
    const char *breaker_key, *limit_key, *unique_key, *trace_context, *tags, *error_class;
    const char *idempotency_key; /* in force */
    const char *curve_ms;        /* waits of its policy, "60000,300000"; "" none was fixed yet */
    uint32_t curve_executions, curve_jitter_permille; /* of that policy */
    uint32_t max_executions_given; /* at enqueue; 0 not */
    int32_t priority;
    int64_t execution_timeout_ms;  /* -1 not given */
    int64_t root_id;
};

HF_API const char *hf_job_state_name(int state);     /* "unknown" for others */
HF_API const char *hf_job_shown_name(int shown);
HF_API const char *hf_dead_status_name(int status);
HF_API const char *hf_death_class_name(int death_class);

HF_END

#endif
