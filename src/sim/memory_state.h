/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_MEMORY_STATE_H
#define HFI_SIM_MEMORY_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/deaths/patience.h"
#include "jobs/deaths/storm.h"
#include "jobs/store.h"
#include "sim/memory_index.h"

/*
 * What the files of the memory store share. Whoever calls these holds the store's lock. What can fail is done before
 * anything is changed: rows are made first (stage), then linked in, which cannot fail.
 */
#define HFI_PRIORITIES 10

struct hfi_memory_lane;

struct hfi_memory_past {
    struct hfi_memory_past *next;
    struct hfi_history history;
};

/* A job that another one waits for; `row` NULL: pruned, and it had not succeeded. */
struct hfi_memory_parent {
    int64_t id;
    struct hfi_memory_job *row;
    bool on_end;
};

struct hfi_memory_job {
    struct hfi_job *job;
    struct hfi_memory_lane *lane;
    struct hfi_heap_item due; /* in its lane while pending */
    struct hfi_memory_past *first, *last;
    char *scope; /* of its unique key; NULL none */
    struct hfi_link unique;
    bool bound;   /* in the index of unique keys */
    bool awaited; /* a dead letter wants to know how it ends */
    struct hfi_memory_parent *parents; /* by id */
    size_t parent_count;
    struct hfi_array children; /* by id */
    bool unsettled;            /* in a line: its children with ids above settle_after are to be looked at */
    struct hfi_memory_job *next_unsettled;
    int64_t settle_after;
    struct hf_wall settle_now;
};

/* What runs of one queue, or of one limit key. */
struct hfi_memory_gauge {
    struct hfi_link link;
    size_t running;
    size_t lanes;           /* that have it */
    uint16_t budget;        /* in the claim in the making; hfi_merge_budget */
    int64_t full_at_us;     /* of a limit key's rate */
    uint64_t look;          /* the last list that counted it */
    char name[];
};

struct hfi_memory_lane {
    int64_t id;
    char *queue, *type, *breaker_key, *limit_key;
    bool alone;
    struct hfi_memory_gauge *of_queue, *of_limit; /* of_limit: NULL without a limit key */
    struct hfi_heap due[HFI_PRIORITIES];
    size_t members[HFI_PRIORITIES]; /* rows that may ever wait there: the heaps have room for all */
    struct hfi_link link;
    char *key; /* all four texts */
};

struct hfi_memory_policy {
    struct hfi_memory_policy *next;
    struct hfi_curve curve;
};

struct hfi_memory_dead {
    int64_t id, node, dead_at_us;
    struct hfi_job *job; /* as it was when it died */
    struct hfi_death death;
    char *detail;
    uint32_t max_executions;
    int32_t status;
    int64_t settled_at_us, new_job_id, task_id;
    char *settled_by, *settled_reason;
    const char *new_job_outcome;
    char *origin, *cause, *node_name; /* of an imported one; else NULL */
};

struct hfi_memory_storm {
    char sink[64];
    uint64_t fingerprint;
    struct hfi_storm storm;
};

struct hfi_memory_sink { /* as nodes named it */
    char name[64];
    int64_t collapse_us;
    struct hfi_storm_pace pace;
    struct hfi_absence absence;
};

struct hfi_memory_alert {
    int64_t id, dead_id, epoch, next_at_us, ended_at_us, last_try_us, tried_us;
    int64_t lead, digest; /* as the columns of the SQLite store */
    uint64_t others;
    uint32_t tries;
    int state; /* hf_alert_state */
    char sink[64], last_error[64], had[HFI_ALERT_HAD_MAX + 1];
    struct hfi_memory_storm *storm; /* staged only */
    int64_t window_us;
};

/* Where a death went besides its alerts. */
struct hfi_memory_forward {
    int64_t dead_id, job_id;
    const char *outcome; /* "" not yet */
    char name[HFI_FORWARD_NAME_MAX + 1];
};
struct hfi_memory_forward_counts {
    struct hf_forward_view view;
    char name[HFI_FORWARD_NAME_MAX + 1];
};

struct hfi_memory_node {
    int64_t id, beat, seen_at_us;
    bool gone;
    char name[HFI_NAME_MAX + 1];
    char **types, **sinks;
    size_t type_count, sink_count;
};

struct hfi_memory_queue {
    char *name;
    int64_t until_us;
};

struct hfi_memory_downstream {
    char *key;
    struct hfi_downstream_state state;
    int64_t written_us;
};

struct hfi_memory_share {
    char *key;
    int64_t node;
    uint32_t held;
};

struct hfi_memory_message { /* of another system, seen */
    struct hfi_link link;
    char *key;
    int64_t job_id, at_us;
};

/* Parents whose children are to be looked at. */
struct hfi_memory_line {
    struct hfi_memory_job *first, *last;
};

struct hfi_memory {
    struct hfi_store base;
    pthread_mutex_t lock;
    struct hfi_scheduler *clock; /* NULL: the system's */
    struct hfi_array jobs;       /* by id */
    struct hfi_array lanes;      /* by id, which is the index + 1; those that are no more are `no_lane` */
    struct hfi_memory_lane no_lane; /* has id 0 and never a job */
    struct hfi_array deads;      /* by id */
    struct hfi_array alerts;     /* by id */
    struct hfi_array redrives;   /* tasks, by id, the index + 1 */
    struct hfi_array forwards, forward_counts; /* in order of their jobs; by name */
    struct hfi_array sinks, storms;
    struct hfi_array measured; /* in the order of their hours */
    struct hfi_array nodes;      /* by id; the gone stay a while, for their names */
    struct hfi_array paused;     /* queues */
    struct hfi_array downstreams;
    struct hfi_array shares;
    struct hfi_array inbox; /* in order of arrival */
    struct hfi_index lanes_by_key, unique, messages, queue_gauges, limit_gauges;
    struct hfi_memory_policy *policies;
    int64_t next_job, next_dead, next_alert, next_policy, next_node, walked_at_us;
    struct hfi_prune_turn prune_turn;
    uint64_t limit_look;
    uint64_t unhealthy_version;
    size_t expiring; /* rows with expires_at */
    struct hfi_memory_line unsettled, left_over; /* of this operation; of earlier ones, for RELEASE */
    uint32_t settle_left;          /* children that this transaction may still look at */
    bool left_some;                /* this operation left children to RELEASE */
    uint32_t released, ended_with; /* what became of them */
};
static inline struct hfi_memory *hfi_memory_of(struct hfi_store *store) {
    return (struct hfi_memory *)(void *)store;
}

/* A change that is ready to be linked in: everything it needs is there. */
struct hfi_staged {
    struct hfi_memory_job *row;
    struct hfi_job *next;
    struct hfi_memory_lane *lane; /* another one; NULL: it stays */
    struct hfi_memory_past *past;
    struct hfi_memory_dead *dead;
    struct hfi_memory_alert **alerts;
    size_t alert_count;
    struct hf_wall now;
};

/* memory_change.c */
struct hfi_memory_job *hfi_memory_find(struct hfi_memory *store, int64_t id);
const struct hfi_curve *hfi_memory_policy(struct hfi_memory *store,
                                          const struct hfi_curve *curve); /* NULL: no memory */
/* Transition of `job` (the row's, or its owner's copy of it) and all it means. 0, HF_ESTATE or HF_ENOMEM. */
int hfi_memory_stage(struct hfi_memory *store, struct hfi_memory_job *row, const struct hfi_job *job,
                     const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change,
                     struct hfi_staged *staged);
/* Alert rows for a staged death; after hfi_memory_stage, before linking. */
int hfi_memory_stage_alerts(struct hfi_memory *store, const struct hfi_change *change, const char *const *sinks,
                            size_t count, struct hfi_staged *staged);
int64_t hfi_memory_link(struct hfi_memory *store, struct hfi_staged *staged); /* the dead letter's id, or 0 */
/* A dead letter without a job, for hfi_memory_link_death. HF_ENOMEM, `staged` to be dropped. */
int hfi_memory_stage_death(struct hfi_memory *store, const struct hfi_change *change, const struct hfi_rules *rules,
                           struct hfi_staged *staged);
struct hfi_memory_dead *hfi_memory_same_death(struct hfi_memory *store, const struct hfi_memory_dead *dead);
int64_t hfi_memory_link_death(struct hfi_memory *store, struct hfi_staged *staged); /* its id, or that of the same death */
void hfi_memory_drop(struct hfi_staged *staged);
/* Puts `next` in the place of the row's record: heap, unique key, whoever waits for its end. */
void hfi_memory_replace(struct hfi_memory *store, struct hfi_memory_job *row, struct hfi_job *next);
/* The job that holds this one's unique key now, but for `row` itself; 0 none. */
int64_t hfi_memory_holder(struct hfi_memory *store, const char *scope, const struct hfi_memory_job *row);
void hfi_memory_dead_free(struct hfi_memory_dead *dead);

/* memory_put.c */
int hfi_memory_insert(struct hfi_memory *store, const struct hfi_job *job,
                      struct hfi_memory_job **row);                             /* id: job's or next */
void hfi_memory_job_free(struct hfi_memory *store, struct hfi_memory_job *row); /* not from the array */
bool hfi_memory_put_known(struct hfi_memory *store, const struct hfi_put *item); /* nothing will be put */
int hfi_memory_put(struct hfi_memory *store, struct hfi_op_put *op);
/* What runs of a queue or a limit key. Made when it is new; NULL: no memory. */
struct hfi_memory_gauge *hfi_memory_gauge(struct hfi_index *index, const char *name);
int hfi_memory_lane_of(struct hfi_memory *store, const struct hfi_job *job, struct hfi_memory_lane **lane);
void hfi_memory_lane_free(struct hfi_memory_lane *lane);

/* Takes back what was put since there were so many: the last rows and messages. */
void hfi_memory_take_back(struct hfi_memory *store, size_t jobs, size_t messages);

/* memory_forward.c: what a death sets off besides its alerts */
/* The last step before a staged death is linked, which must follow. HF_ENOMEM: nothing is left, `staged` is dropped. */
int hfi_memory_stage_forwards(struct hfi_memory *store, const struct hfi_change *change, const struct hfi_forwards *forwards,
                              struct hfi_staged *staged);
void hfi_memory_forward_ended(struct hfi_memory *store, const struct hfi_job *job);
void hfi_memory_forward_again(struct hfi_memory *store, int64_t from_job, int64_t to_job);
int64_t hfi_memory_forwarded(struct hfi_memory *store, int64_t dead_id); /* job of a copy that has not failed; 0 none */
int hfi_memory_dead_forwards(struct hfi_memory *store, int64_t dead_id, struct hf_dead *dead);
void hfi_memory_forwards_drop(struct hfi_memory *store, int64_t dead_id);
void hfi_memory_forwards_free(struct hfi_memory *store);
int hfi_memory_list_forwards(struct hfi_store *self, struct hf_forward_list **list, struct hf_error *error);

/* memory_deps.c */
void hfi_memory_deps_begin(struct hfi_memory *store); /* before a transaction */
void hfi_memory_deps_moved(struct hfi_memory *store, struct hfi_memory_job *row, struct hf_wall now);
void hfi_memory_deps_flush(struct hfi_memory *store); /* after each operation */
int hfi_memory_deps_check(struct hfi_memory *store, struct hfi_op_put *op);
int hfi_memory_deps_add(struct hfi_memory *store, struct hfi_memory_job *row, const struct hfi_put *put);
void hfi_memory_deps_drop(struct hfi_memory_job *row); /* before it goes */
int hfi_memory_release(struct hfi_memory *store, struct hfi_op_release *op);

/* memory_lanes.c, memory_claim.c */
int hfi_memory_lanes(struct hfi_memory *store, struct hfi_op_lanes *op);
int hfi_memory_claim(struct hfi_memory *store, struct hfi_op_claim *op);
/* The due row whose turn it is, by priority; NULL none. */
struct hfi_memory_job *hfi_memory_next_due(struct hfi_memory_lane *lane, int64_t now_us);

/* memory_hands.c */
int hfi_memory_apply(struct hfi_memory *store, struct hfi_op_apply *op);
int hfi_memory_note(struct hfi_memory *store, struct hfi_op_note *op);
int hfi_memory_sweep(struct hfi_memory *store, struct hfi_op_sweep *op);
int hfi_memory_expire(struct hfi_memory *store, struct hfi_op_expire *op);
int hfi_memory_quarantine(struct hfi_memory *store, struct hfi_op_quarantine *op);
int hfi_memory_cancel(struct hfi_memory *store, struct hfi_op_cancel *op);

/* memory_dead.c */
struct hfi_memory_dead *hfi_memory_find_dead(struct hfi_memory *store, int64_t id);
int hfi_memory_requeue(struct hfi_memory *store, struct hfi_op_requeue *op);
int hfi_memory_readmit(struct hfi_memory *store, struct hfi_op_readmit *op); /* memory_readmit.c */
struct hfi_memory_dead *hfi_memory_last_death(struct hfi_memory *store, const struct hfi_job *job); /* NULL: none, or pruned */
int64_t hfi_memory_find_origin(const struct hfi_memory *store, const char *origin); /* the letter that died there; 0 none */
int hfi_memory_redrive(struct hfi_memory *store, struct hfi_op_redrive *op);
int hfi_memory_poison(struct hfi_memory *store, struct hfi_op_poison *op);
int hfi_memory_settle(struct hfi_memory *store, struct hfi_op_settle *op);
struct hfi_memory_sink *hfi_memory_sink(struct hfi_memory *store, const char *name); /* made if need be; NULL: no memory */
int hfi_memory_sink_rules(struct hfi_memory *store, const struct hfi_sink_rule *rules, size_t count);
void hfi_memory_link_alert(struct hfi_memory *store, struct hfi_memory_alert *alert, int64_t dead_id);
bool hfi_memory_alerted(const struct hfi_memory *store, int64_t dead_id); /* every message about it has ended */
int hfi_memory_list_alerts(struct hfi_store *self, const struct hf_alert_filter *filter, struct hf_alert_list **list,
                           struct hf_error *error);
int hfi_memory_alerts(struct hfi_memory *store, struct hfi_op_alerts *op);
int hfi_memory_alert_end(struct hfi_memory *store, struct hfi_op_alert_end *op);
int hfi_memory_absent(struct hfi_memory *store, struct hfi_op_absent *op); /* memory_absent.c */

/* memory_redriving.c */
void hfi_memory_redrive_job_ended(struct hfi_memory *store, int64_t task, int job_state);
int hfi_memory_redrive_task(struct hfi_memory *store, struct hfi_op_redrive_task *op);
int hfi_memory_redrive_step(struct hfi_memory *store, struct hfi_op_redrive_step *op);
int hfi_memory_import(struct hfi_memory *store, struct hfi_op_import *op);
int hfi_memory_redrive_cancel(struct hfi_memory *store, struct hfi_op_redrive_cancel *op);
int hfi_memory_list_redrives(struct hfi_store *self, const struct hf_redrive_filter *filter, struct hf_redrive_list **list,
                             struct hf_error *error); /* takes the lock itself */

/* memory_nodes.c */
struct hfi_memory_node *hfi_memory_node(struct hfi_memory *store, int64_t id); /* NULL: none */
const char *hfi_memory_node_name(struct hfi_memory *store, int64_t node);
int hfi_memory_join(struct hfi_memory *store, struct hfi_op_join *op);
int hfi_memory_beat(struct hfi_memory *store, struct hfi_op_beat *op);
int hfi_memory_leave(struct hfi_memory *store, struct hfi_op_leave *op);
int hfi_memory_nodes(struct hfi_memory *store, struct hfi_op_nodes *op);
void hfi_memory_node_free(struct hfi_memory_node *node);
bool hfi_memory_node_lives(struct hfi_memory *store, int64_t node);
bool hfi_memory_owns_some(struct hfi_memory *store, int64_t node);
struct hfi_memory_queue *hfi_memory_pause_of(struct hfi_memory *store, const char *queue, struct hf_wall now);
int hfi_memory_pause(struct hfi_memory *store, struct hfi_op_pause *op);
int hfi_memory_downstream(struct hfi_memory *store, struct hfi_op_downstream *op);
int hfi_memory_share(struct hfi_memory *store, struct hfi_op_share *op);
void hfi_memory_node_gone(struct hfi_memory *store, struct hfi_memory_node *node);

/* memory_measured.c */
void hfi_memory_measured_free(void *row);
int hfi_memory_measure(struct hfi_memory *store, struct hfi_op_measure *op);
int hfi_memory_look_measured(struct hfi_store *self, const char *key, int64_t from_hour, hfi_measured_fn each, void *user,
                             struct hf_error *error); /* takes the lock itself */

/* memory_prune.c */
int hfi_memory_prune(struct hfi_memory *store, struct hfi_op_prune *op);
int hfi_memory_unused(struct hfi_memory *store, struct hfi_op_unused *op);

/* memory_read.c, memory_look.c: take the lock themselves */
int hfi_memory_list_jobs(struct hfi_store *self, const struct hf_job_filter *filter, struct hf_job_list **list,
                         struct hf_error *error);
int hfi_memory_get_job(struct hfi_store *self, int64_t id, struct hf_job **job, struct hf_error *error);
int hfi_memory_list_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_list **list,
                         struct hf_error *error);
int hfi_memory_get_dead(struct hfi_store *self, int64_t id, struct hf_dead **dead, struct hf_error *error);
int hfi_memory_group_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_group_list **list,
                          struct hf_error *error);
/* `fingerprint` has 17 bytes. */
void hfi_memory_dead_view(struct hfi_memory *store, const struct hfi_memory_dead *dead, struct hf_dead_view *view,
                          char *fingerprint);
int hfi_memory_count_jobs(struct hfi_store *self, struct hf_job_counts *counts, struct hf_error *error);
int hfi_memory_list_queues(struct hfi_store *self, struct hf_queue_list **list, struct hf_error *error);
int hfi_memory_look_phases(struct hfi_store *self, const char *key, hfi_phases_fn each, void *user, struct hf_error *error);
int hfi_memory_list_limits(struct hfi_store *self, struct hf_limit_list **list, struct hf_error *error);
int hfi_memory_list_downstreams(struct hfi_store *self, struct hf_downstream_list **list, struct hf_error *error);
struct hf_wall hfi_memory_now(const struct hfi_memory *store);
int hfi_memory_look(struct hfi_store *self, struct hf_store_info *info);
int hfi_memory_doctor(struct hfi_store *self, hf_doctor_fn report, void *user, struct hf_error *error);

#endif
