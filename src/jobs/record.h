/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_RECORD_H
#define HFI_JOBS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "holdfast/job.h"
#include "jobs/curve.h"
#include "resilience/key.h"

/*
 * The job record of 3.1, as every store keeps it. Times µs UTC, 0 = none. Texts are never NULL ("" = absent), except in
 * specs. executions is the one meaning of a count of starts; epoch = number of ownership changes, never reset.
 * A job from a store is one block: free it with hfi_free.
 */
#define HFI_TYPE_MAX 300
#define HFI_NAME_MAX 120
#define HFI_KEY_MAX 300
#define HFI_EXECUTIONS_MAX 10000 /* as everywhere where they are asked for */
#define HFI_LIMIT_MAX (HFI_NAME_MAX + 1 + HFI_KEY_MAX) /* `name:key` */
#define HFI_CORRELATION_MAX 64
#define HFI_TRACE_MAX 512
#define HFI_TAGS_MAX 1000
#define HFI_ERROR_MESSAGE_MAX 4000
#define HFI_DETAIL_MAX 65536
#define HFI_RESULT_MAX HF_RESULT_MAX
#define HFI_CHECKPOINT_MAX 65536
#define HFI_PROGRESS_MAX 200 /* bytes of its text */

struct hfi_job {
    int64_t id;
    int32_t state; /* enum hf_job_state */
    int32_t priority;
    int64_t lane;
    int64_t run_at_us, expires_at_us, created_at_us, started_at_us, finished_at_us;
    int64_t epoch;
    int64_t owner; /* node id, 0 none */
    uint32_t executions, failures, snoozes, crashes, give_backs, deaths;
    uint32_t max_executions;            /* given at enqueue; 0 = not set */
    /* Put at the start by the node that has the type: whoever sweeps may not know it. */
    bool not_repeatable;
    bool runs_code;                     /* native, plugin, exec, not isolated: it may take its node down, and lapses by a crash count */
    bool alone;                         /* nothing of that kind ran beside this execution on its node */
    int64_t execution_timeout_ms;       /* -1 = not set */
    const struct hfi_curve *policy;     /* fixed at enqueue or at the first start; NULL = not yet. Its own in a copy */
    int64_t root_id, parent_id; /* parent: the job it was redriven from; of a letter without one, minus that letter's id */
    int64_t cancel_requested_at_us;
    int64_t crash_window_us;            /* when the first of `crashes` came */
    int64_t waiting_since_us;           /* due since, while rejections move run_at; 0 = run_at says it. give_up counts from it */
    int64_t progress;
    const char *type, *queue, *downstream, *breaker_key;
    const char *limit_key;       /* `name:key` */
    const char *unique_key;      /* as given; hfi_unique_scope makes what is unique */
    int64_t unique_period;       /* 0, or the number of the period within which it is, from 1 */
    uint32_t unique_states;      /* bits in which it binds; 0: HFI_UNIQUE_STATES */
    const char *idempotency_key; /* as given, else `<store uuid>-<root id>`: the store puts it */
    const char *source, *source_message_id, *correlation_id, *trace_context, *tags, *content_type;
    const char *reason; /* why run_at is what it is: `curve`, `retry_after`, `breaker.open`, `snooze` … */
    const char *error_class, *error_type, *error_message, *cancel_by, *cancel_reason;
    const void *payload;
    size_t payload_length;
    const void *result;
    size_t result_length;
    const char *progress_text;
    const void *checkpoint; /* NOTE writes it; claims and single reads give it, other reads of the SQLite store do not */
    size_t checkpoint_length;
};

/* Nothing said: no text, no limit of its own. */
void hfi_job_blank(struct hfi_job *job);

/* A copy in one block (payload, result and checkpoint too); NULL when out of memory. */
struct hfi_job *hfi_job_copy(const struct hfi_job *job);

/* `queue␟type␟period␟key`, the scope of the job's unique key (I40), into `text`; "" without a key. Names hold no
 * control characters, so no two scopes look alike. Returns the length of the whole. */
#define HFI_UNIQUE_SCOPE_MAX (HFI_NAME_MAX + 1 + HFI_TYPE_MAX + 1 + 20 + 1 + HFI_KEY_MAX)
size_t hfi_unique_scope(char *text, size_t room, const struct hfi_job *job);
/* Back from a scope: sets the period, returns the key. `queue` and `type` are the job's already. */
const char *hfi_unique_unscope(const char *scope, struct hfi_job *job);
/* A unique key binds while the job is pending, waiting or running, and by choice when it has succeeded or was cancelled.
 * Never in fewer states: a job could not go back to pending then, with another one under its key. */
#define HFI_UNIQUE_STATES ((1 << HF_JOB_PENDING) | (1 << HF_JOB_WAITING) | (1 << HF_JOB_RUNNING))

/* What a checked spec cannot borrow from it. Lives as long as the job that hfi_spec_check filled. */
struct hfi_spec_room {
    struct hfi_curve curve; /* given with the job; max_executions 0: none was */
    char limit_key[HFI_LIMIT_MAX + 1];
    char breaker_key[HFI_HOST_KEY_LENGTH]; /* with a host_url */
    bool replace;          /* HF_UNIQUE_REPLACE */
    int64_t after[HF_AFTER_MAX]; /* what it waits for */
    uint32_t after_count;
    bool after_on_end;
};
/* Checks a spec and fills `job` with borrowed texts and defaults; `max_payload` in bytes. 0, HF_EINVAL, HF_ETEXT, HF_ETOOBIG. */
int hfi_spec_check(const struct hf_job_spec *spec, struct hf_wall now, uint32_t max_payload, struct hfi_job *job,
                   struct hfi_spec_room *room, struct hf_error *error);
/* The next of the comma separated words at `*at`, spaces around it cut off, into HFI_TAGS_MAX + 1 bytes; false: none is left. */
bool hfi_tag_next(const char **at, char *tag);
bool hfi_tag_has(const char *tags, const char *tag);

/* A name as types, queues and sinks have them: 1…`max` bytes of text without control characters. 0, HF_EINVAL, HF_ETEXT, HF_ETOOBIG. */
int hfi_name_check(const char *what, const char *name, size_t max, struct hf_error *error);

/* One execution, for the history. Texts borrowed. */
struct hfi_history {
    int64_t job_id;
    uint32_t execution;
    int64_t started_at_us, ended_at_us, next_run_at_us;
    int64_t node;
    int32_t event; /* enum hfi_event_kind */
    int32_t state; /* of the job afterwards */
    int32_t breaker; /* enum hf_breaker_state + 1 when the execution began; 0 unknown */
    uint32_t attempts, retries;
    int64_t resolve_us, connect_us, tls_us, first_byte_us, total_us; /* of the last attempt; -1 */
    const char *error_class; /* "" on success, as the texts below */
    char error_type[64];
    char rule[48];
    char message[512];
};

/* The evidence of a death, but for what the job itself says. */
struct hfi_death {
    enum hf_death_class death_class;
    bool quarantined;
    bool payload_cut; /* the letter holds the beginning of the payload alone */
    uint32_t death_no;
    const char *cause; /* `exhausted`, `permanent`, `poison`, `orphaned`, `outcome.unknown`, `give_up`, `unknown_type`, `payload` */
    char error_type[64];
    char rule[48];
    char schema[64]; /* quarantined: what its type had then; "" none */
    char message[HFI_ERROR_MESSAGE_MAX + 1];
    const char *origin; /* NULL; of an imported letter: where it died */
    const char *detail; /* NULL or more text, borrowed from the event, clean already */
    uint64_t fingerprint; /* of job type, downstream, class, error type, rule */
};

#endif
