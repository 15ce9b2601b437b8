/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_STORE_H
#define HOLDFAST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "error.h"
#include "guard.h"
#include "job.h"

HF_BEGIN

/* The durable store of jobs. All functions here block on the disk: any thread but the loop's and the writer's (HF_EDEADLK). */
struct hf_store;

struct hf_store_options {
    uint32_t size;
    bool create;              /* true: make a missing store; false: HF_ENOENT */
    bool normal_sync;         /* false = synchronous FULL; true: power loss may undo the last acknowledged commits */
    bool no_error_detail;     /* false; true keeps the full text of errors out of the store */
    uint32_t payload_max;     /* bytes: 64 KiB */
};
static inline void hf_store_options_init(struct hf_store_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->create = true;
    options->payload_max = HF_PAYLOAD_MAX_DEFAULT;
}

/*
 * Opens `url`: `sqlite:PATH` or `memory:`. Refuses foreign files (HF_EFOREIGN), files whose min_writer is newer
 * (HF_EVERSION), network file systems (HF_ENOTSUP) and unwritable folders (HF_EIO), and changes nothing then.
 * A new file gets the schema at once; an older one is brought up to date, each version in one transaction. Since 0.1.
 */
HF_API int hf_store_open(const char *url, const struct hf_store_options *options, struct hf_store **store,
                         struct hf_error *error);
/* Flushes, joins the writer. NULL is fine. */
HF_API void hf_store_close(struct hf_store *store);

struct hf_store_info {
    uint32_t size;
    uint32_t schema, min_reader, min_writer;
    bool migrated; /* this open changed the schema */
    char kind[16]; /* "sqlite", "memory" */
    char uuid[40];
    char path[1024];
};
static inline void hf_store_info_init(struct hf_store_info *info) {
    memset(info, 0, sizeof *info);
    info->size = (uint32_t)sizeof *info;
}
/* Fills as much as `info->size` has room for. HF_EINVAL: it is not set. Threads as below. Since 0.1. */
HF_API int hf_store_look(struct hf_store *store, struct hf_store_info *info);

/*
 * From here on the functions read and write the store and wait for it: any thread but a loop's and the writer's
 * (HF_EDEADLK there). Errors of each, besides those it names: HF_ENOMEM, HF_EBUSY, HF_EIO, HF_ENOSPC for writes; `error` may be
 * NULL. Since 0.1.
 *
 * Lists are snapshots: the caller's to free (NULL is fine), count, then items by index below it; views and their texts live
 * as long as the list. `*list` is NULL after an error.
 */
struct hf_job_filter {
    uint32_t size;
    int32_t state;       /* -1 = any */
    const char *type, *queue; /* NULL = any */
    int64_t created_since_us;
    int64_t after_id;    /* keyset cursor: ids below it (newest first); 0 = from the newest */
    uint32_t limit;      /* 100, at most 1000 */
    int32_t shown;       /* -1 = any; enum hf_job_shown: pending jobs that are shown so */
    const char *tag, *correlation_id, *limit_key, *source_message_id; /* NULL = any; limit_key as `name:key` */
};
static inline void hf_job_filter_init(struct hf_job_filter *filter) {
    memset(filter, 0, sizeof *filter);
    filter->size = (uint32_t)sizeof *filter;
    filter->state = -1;
    filter->limit = 100;
    filter->shown = -1;
}
struct hf_job_list;
/*
 * A call looks at a bounded number of rows, so a page may hold fewer than `limit`, even none, and still have a next one:
 * go on until hf_job_list_next is 0. HF_EINVAL: a filter that contradicts itself, a negative cursor.
 */
HF_API int hf_store_list_jobs(struct hf_store *store, const struct hf_job_filter *filter, struct hf_job_list **list,
                              struct hf_error *error);
HF_API size_t hf_job_list_count(const struct hf_job_list *list);
HF_API const struct hf_job_view *hf_job_list_at(const struct hf_job_list *list, size_t index);
HF_API int64_t hf_job_list_next(const struct hf_job_list *list); /* cursor of the next page, 0 = none */
HF_API void hf_job_list_free(struct hf_job_list *list);

/* One job with payload and history. HF_ENOENT: no such id. */
struct hf_job;
HF_API int hf_store_get_job(struct hf_store *store, int64_t id, struct hf_job **job, struct hf_error *error);
HF_API const struct hf_job_view *hf_job_look(const struct hf_job *job);
HF_API size_t hf_job_history_count(const struct hf_job *job);
HF_API const struct hf_history_view *hf_job_history_at(const struct hf_job *job, size_t index);
/* Parents, then children by id; of those the first HF_CHILDREN_MAX, and how many there are. */
#define HF_CHILDREN_MAX 100
HF_API size_t hf_job_link_count(const struct hf_job *job);
HF_API const struct hf_link_view *hf_job_link_at(const struct hf_job *job, size_t index);
HF_API uint64_t hf_job_children(const struct hf_job *job);
HF_API void hf_job_free(struct hf_job *job);

/* Cancels: a pending job ends at once, a running one is told within a heartbeat. HF_ESTATE when it has ended. `actor` is required. */
HF_API int hf_store_cancel_job(struct hf_store *store, int64_t id, const char *actor, const char *reason, struct hf_error *error);
/* Same id, full budget, history kept; only dead or quarantined ones (HF_ESTATE; `error` names how and why) [S1.19, S1.20].
 * Jobs that were cancelled because they waited for it wait again.
 * HF_EEXIST: another job holds its unique key; HF_ESTATE also when its death was forwarded, and that has not failed, without
 * HF_REQUEUE_FORCE [S2.32]. `actor` is required. `flags`: of the two. */
#define HF_REQUEUE_NEW_KEY 1u
#define HF_REQUEUE_FORCE 2u
HF_API int hf_store_requeue_job(struct hf_store *store, int64_t id, const char *actor, const char *reason, unsigned flags,
                                struct hf_error *error);

/* Counts by state; unknown states are in `other`. */
struct hf_job_counts {
    uint32_t size;
    uint64_t pending, waiting, running, succeeded, dead, quarantined, cancelled, other;
    uint64_t dead_letters_open; /* status dead */
    uint64_t alerts_unsent;
};
static inline void hf_job_counts_init(struct hf_job_counts *counts) {
    memset(counts, 0, sizeof *counts);
    counts->size = (uint32_t)sizeof *counts;
}
/* Kept counts, not counted anew: cheap at any size. */
HF_API int hf_store_count_jobs(struct hf_store *store, struct hf_job_counts *counts, struct hf_error *error);

/* Queues known to the store with their depth and pause. */
struct hf_queue_view {
    uint32_t size;
    const char *name;
    bool paused;
    int64_t paused_until_us; /* 0: until resumed */
    uint64_t due, scheduled, running;
    int64_t oldest_due_at_us; /* 0: none */
};
struct hf_queue_list;
HF_API int hf_store_list_queues(struct hf_store *store, struct hf_queue_list **list, struct hf_error *error);
HF_API size_t hf_queue_list_count(const struct hf_queue_list *list);
HF_API const struct hf_queue_view *hf_queue_list_at(const struct hf_queue_list *list, size_t index);
HF_API void hf_queue_list_free(struct hf_queue_list *list);

/* Limit names that jobs carry which are pending or running: what a runner's hf_limit_options should name. The
 * first 1,000 by name. */
struct hf_limit_view {
    uint32_t size;
    const char *name;
    uint64_t keys;             /* different ones among these jobs */
    uint64_t pending;          /* jobs; of a file, each lane (a key of one type and queue) counts 10,000 at most */
    uint64_t running;          /* jobs */
};
struct hf_limit_list;
HF_API int hf_store_list_limits(struct hf_store *store, struct hf_limit_list **list, struct hf_error *error);
HF_API size_t hf_limit_list_count(const struct hf_limit_list *list);
HF_API const struct hf_limit_view *hf_limit_list_at(const struct hf_limit_list *list, size_t index);
HF_API void hf_limit_list_free(struct hf_limit_list *list);

/*
 * No node starts jobs of the queue until then: µs UTC, 0 until it is resumed; what runs goes on. Also of a queue that has no
 * jobs yet; once more replaces the time. `actor` is required. HF_EINVAL, HF_ETEXT, HF_ETOOBIG: the name, the actor,
 * a time that has passed.
 */
HF_API int hf_store_pause_queue(struct hf_store *store, const char *queue, int64_t until_us, const char *actor, struct hf_error *error);
HF_API int hf_store_resume_queue(struct hf_store *store, const char *queue, const char *actor, struct hf_error *error); /* HF_ENOENT: was not paused */

/* Stored control and phase of downstreams: what nodes share. */
struct hf_downstream_row {
    uint32_t size;
    const char *key;
    int32_t forced;            /* 0 no, 1 isolated */
    int64_t forced_until_us;   /* 0: until closed */
    const char *reason;
    int32_t phase;             /* enum hf_breaker_state, as last written by a node */
    int64_t open_until_us, gate_until_us, unhealthy_since_us;
    uint32_t trips;
    int64_t version;
    uint64_t parked;           /* due jobs kept back now */
};
struct hf_downstream_list;
HF_API int hf_store_list_downstreams(struct hf_store *store, struct hf_downstream_list **list, struct hf_error *error);
HF_API size_t hf_downstream_list_count(const struct hf_downstream_list *list);
HF_API const struct hf_downstream_row *hf_downstream_list_at(const struct hf_downstream_list *list, size_t index);
HF_API void hf_downstream_list_free(struct hf_downstream_list *list);
/* Writes control for every node; they adopt it within a poll. isolate needs a reason. for_ms 0 = until closed. */
HF_API int hf_store_isolate_downstream(struct hf_store *store, const char *key, int64_t for_ms, const char *reason, struct hf_error *error);
HF_API int hf_store_close_downstream(struct hf_store *store, const char *key, struct hf_error *error);

/*
 * How long the phases of a downstream's attempts took, each by itself (guard.h), and the attempts in whole, whichever node
 * made them and however they ended: of the last week (measured.h has more of them). Where nothing of that is
 * kept, as of one host of a `per_host` downstream: those that ended an execution of the newest jobs, up to 5,000
 * executions of any downstream. Since 0.1.
 */
struct hf_phases_view {
    uint32_t size;
    struct hf_latency_view resolve, connect, tls, first_byte, total;
};
static inline void hf_phases_view_init(struct hf_phases_view *view) {
    memset(view, 0, sizeof *view);
    view->size = (uint32_t)sizeof *view;
}
/* `key`: its name, or that of one of its hosts, as in struct hf_downstream_row; of an unknown one all are empty. */
HF_API int hf_store_look_phases(struct hf_store *store, const char *key, struct hf_phases_view *view, struct hf_error *error);

/* One line of the doctor's report. */
typedef void (*hf_doctor_fn)(bool is_error, const char *check, const char *text, const char *fix, void *user);
/* Looks for what should not be: rows outside every scan, owners without a node, integrity, undelivered alerts. Returns the number of errors. */
HF_API int hf_store_doctor(struct hf_store *store, hf_doctor_fn report, void *user, struct hf_error *error);

HF_END

#endif
