/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_DEAD_H
#define HOLDFAST_DEAD_H

#include <string.h>

#include "job.h"
#include "store.h"

HF_BEGIN

struct hf_dead_filter {
    uint32_t size;
    int32_t status;      /* -1 = any; default 0 = dead */
    int32_t death_class; /* -1 = any */
    const char *type, *queue, *error_type, *fingerprint; /* NULL = any; error_type by dotted prefix */
    int64_t since_us;
    int64_t task_id;     /* 0 = any; redriven by this task */
    int64_t after_id;    /* keyset cursor: ids below it (newest first); 0 = from the newest */
    uint32_t limit;      /* 100, at most 1000 */
    bool oldest_first;   /* then the cursor means: ids above it */
};
static inline void hf_dead_filter_init(struct hf_dead_filter *filter) {
    memset(filter, 0, sizeof *filter);
    filter->size = (uint32_t)sizeof *filter;
    filter->death_class = -1;
    filter->limit = 100;
}
struct hf_dead_list;
HF_API int hf_dead_list_open(struct hf_store *store, const struct hf_dead_filter *filter, struct hf_dead_list **list,
                             struct hf_error *error);
HF_API size_t hf_dead_list_count(const struct hf_dead_list *list);
HF_API const struct hf_dead_view *hf_dead_list_at(const struct hf_dead_list *list, size_t index);
HF_API int64_t hf_dead_list_next(const struct hf_dead_list *list);
HF_API void hf_dead_list_free(struct hf_dead_list *list);

struct hf_dead;
HF_API int hf_dead_get(struct hf_store *store, int64_t id, struct hf_dead **dead, struct hf_error *error);
HF_API const struct hf_dead_view *hf_dead_look(const struct hf_dead *dead); /* with payload and detail */
HF_API void hf_dead_free(struct hf_dead *dead);

/* Where it went besides the alerts: its death handler and its forwarders, each a job of its own [S2.32]. */
struct hf_dead_forward {
    uint32_t size;
    const char *name;    /* the forwarder's; `handler` */
    int64_t job_id;      /* of the copy; the newest one, if that was redriven */
    const char *outcome; /* the state in which it ended; "" not yet */
};
HF_API size_t hf_dead_forward_count(const struct hf_dead *dead);
HF_API const struct hf_dead_forward *hf_dead_forward_at(const struct hf_dead *dead, size_t index); /* NULL beyond */

/* What a person decides about a dead letter, on the record. `actor` is required. */
struct hf_dead_action {
    uint32_t size;
    const char *actor;
    const char *reason;       /* NULL */
    const void *payload;      /* redrive only: a corrected one; needs new_key. NULL = the snapshot */
    size_t payload_length;
    bool new_key;             /* redrive only: a new idempotency key */
    bool force;               /* redrive only: also what a forwarder sent elsewhere, and that has not failed [S2.32] */
};
static inline void hf_dead_action_init(struct hf_dead_action *action) {
    memset(action, 0, sizeof *action);
    action->size = (uint32_t)sizeof *action;
}

/*
 * Redrive: a new job from the snapshot, the row marked in the same transaction. HF_ENOENT: no such dead letter;
 * HF_ESTATE: settled already (`error` names how and the new job), or its payload is cut and `action` brings none.
 * `new_job` gets the id. Since 0.1.
 */
HF_API int hf_dead_redrive(struct hf_store *store, int64_t id, const struct hf_dead_action *action, int64_t *new_job,
                           struct hf_error *error);
HF_API int hf_dead_resolve(struct hf_store *store, int64_t id, const struct hf_dead_action *action, struct hf_error *error);
HF_API int hf_dead_discard(struct hf_store *store, int64_t id, const struct hf_dead_action *action, struct hf_error *error);

/*
 * Takes in dead letters as hf_dead_get gave them, of this store or another one: all or none of them, in one transaction.
 * One that is there already, by its origin, stays as it is: `existed`, and its id. Of another store's letters the ids of
 * jobs are dropped, as they mean others here; the idempotency key stays. Nobody is alerted. HF_EINVAL, HF_ETEXT, HF_ETOOBIG:
 * a wrong one, error.line its index + 1. `actor` is required. At most HF_DEAD_IMPORT_MAX. Since 0.1.
 */
#define HF_DEAD_IMPORT_MAX 500
HF_API int hf_dead_import(struct hf_store *store, const struct hf_dead_view *letters, size_t count, const char *actor,
                          int64_t *ids, bool *existed, struct hf_error *error);
/* The check alone, which needs no store. */
HF_API int hf_dead_check(const struct hf_dead_view *letter, struct hf_error *error);

/*
 * Redrive of many as a durable task: the filter and the newest dead letter of that moment are kept, so that each letter is
 * looked at once, oldest first, whatever dies meanwhile. Any node works on it, and so does hf_redrive_step; what one step
 * redrives and how far the task is are one transaction: whoever is killed, nothing is lost or doubled.
 */
#define HF_REDRIVE_STATE_MAP(X) X(RUNNING, 0, "running") X(DONE, 1, "done") X(STOPPED, 2, "stopped") X(CANCELLED, 3, "cancelled")
enum hf_redrive_state {
#define HF_REDRIVE_STATE_MEMBER(name, value, text) HF_REDRIVE_##name = (value),
    HF_REDRIVE_STATE_MAP(HF_REDRIVE_STATE_MEMBER)
#undef HF_REDRIVE_STATE_MEMBER
};
HF_API const char *hf_redrive_state_name(int state); /* "unknown" for others */

struct hf_redrive_options {
    uint32_t size;
    uint32_t canary;                    /* 0; else so many first, the others when all of them have ended */
    const struct hf_dead_filter *filter; /* NULL = every open dead letter; status, cursor, limit and task are not looked at */
    const char *actor;                  /* required */
    const char *reason;                 /* NULL */
    double rate_per_s;                  /* 0 = as fast as it goes; from one in 30 days to 10,000 */
    double stop_at;                     /* share of failed jobs, 0…1, above which it stops; 0: at the first one; < 0 (default): never,
                                           but after a canary of which one failed. Judged when the canary or 10 jobs have ended; with it
                                           no more jobs are out than have ended, or 100 */
    bool new_key, force;                /* as in hf_dead_action */
    int64_t expect;                     /* -1 (default); else HF_ESTATE, and nothing begun, when it would not be so many */
};
static inline void hf_redrive_options_init(struct hf_redrive_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->expect = -1;
    options->stop_at = -1;
}

/* A redrive task. Texts belong to the list; "" when absent. */
struct hf_redrive_view {
    uint32_t size;
    int32_t state; /* enum hf_redrive_state */
    int64_t id;
    const char *actor, *reason;
    const char *note;        /* why it stopped, who cancelled it, or what was refused last */
    int32_t death_class;     /* the filter's; -1 any */
    const char *type, *queue, *error_type, *fingerprint; /* the filter's */
    int64_t since_us;
    int64_t after_id, upper_id; /* looked at up to after_id, out of all up to upper_id */
    uint64_t total;             /* open dead letters of the filter when it began */
    uint64_t redriven, refused; /* of those it looked at */
    uint64_t succeeded, failed, cancelled; /* how the new jobs ended; the others have not yet */
    uint32_t canary;
    double rate_per_s, stop_at;
    bool new_key, force;
    bool waits_for_canary;
    int64_t next_at_us; /* not before, while it runs */
    int64_t created_at_us, ended_at_us;
};

/* Begins one: its id. HF_EINVAL: a wrong option. Since 0.1. */
HF_API int hf_redrive_start(struct hf_store *store, const struct hf_redrive_options *options, int64_t *id, struct hf_error *error);
/* Does some of it at once, beside whatever nodes do. `wait_ms`: 0 go on, -1 it has ended, else nothing to do for so long. */
HF_API int hf_redrive_step(struct hf_store *store, int64_t id, int64_t *wait_ms, struct hf_error *error);
/* Stops it; what was redriven stays. HF_ENOENT; HF_ESTATE: it has ended. */
HF_API int hf_redrive_cancel(struct hf_store *store, int64_t id, const char *actor, const char *reason, struct hf_error *error);

struct hf_redrive_filter {
    uint32_t size;
    uint32_t limit;      /* 100, at most 1000 */
    int64_t id;          /* 0 = any; HF_ENOENT when there is no such one */
    int64_t after_id;    /* keyset cursor: ids below it (newest first); 0 = from the newest */
};
static inline void hf_redrive_filter_init(struct hf_redrive_filter *filter) {
    memset(filter, 0, sizeof *filter);
    filter->size = (uint32_t)sizeof *filter;
    filter->limit = 100;
}
struct hf_redrive_list;
HF_API int hf_redrive_list_open(struct hf_store *store, const struct hf_redrive_filter *filter, struct hf_redrive_list **list,
                                struct hf_error *error);
HF_API size_t hf_redrive_list_count(const struct hf_redrive_list *list);
HF_API const struct hf_redrive_view *hf_redrive_list_at(const struct hf_redrive_list *list, size_t index);
HF_API int64_t hf_redrive_list_next(const struct hf_redrive_list *list);
HF_API void hf_redrive_list_free(struct hf_redrive_list *list);

/* Open dead letters, or those of the filter's status, by fingerprint, the most frequent first. */
struct hf_dead_group_view {
    uint32_t size;
    int32_t death_class;
    const char *fingerprint, *type, *downstream, *error_type, *rule;
    const char *error_message; /* of the newest */
    uint64_t count;
    int64_t first_dead_at_us, last_dead_at_us;
    int64_t example_id;        /* the newest */
};
#define HF_DEAD_GROUPS_MAX 1000
struct hf_dead_group_list;
/* The filter's cursor and limit are not looked at. At most HF_DEAD_GROUPS_MAX groups. */
HF_API int hf_dead_group_list_open(struct hf_store *store, const struct hf_dead_filter *filter, struct hf_dead_group_list **list,
                                   struct hf_error *error);
HF_API size_t hf_dead_group_list_count(const struct hf_dead_group_list *list);
HF_API const struct hf_dead_group_view *hf_dead_group_list_at(const struct hf_dead_group_list *list, size_t index);
HF_API uint64_t hf_dead_group_list_total(const struct hf_dead_group_list *list); /* dead letters in all groups, also in those left out */
HF_API void hf_dead_group_list_free(struct hf_dead_group_list *list);

HF_END

#endif
