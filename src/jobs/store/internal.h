/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_INTERNAL_H
#define HFI_JOBS_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "jobs/deaths/storm.h"
#include "jobs/store.h"
#include "jobs/store/deadline.h"
#include "jobs/store/gauges.h"
#include "jobs/store/sql.h"
#include "jobs/views.h"

/*
 * What the files of the SQLite store share. All of it belongs to the writer thread but `reader`, which its own mutex
 * guards, and `wake_fd`, the loop's.
 *
 * Handlers of operations return 0 or a logical HF_E… with NOTHING written, or report a fault (hfi_sqlite_fault): the
 * whole transaction is rolled back then and every operation tried alone, so no operation needs a savepoint.
 */
#define HFI_PATH_MAX 1000 /* leaves room for what stands beside it */
#define HFI_BUSY_TIMEOUT_MS 5000
#define HFI_COUNTED_STATES 8 /* the last one: all others */

struct hfi_lane;
struct hfi_policy;
struct hfi_node_lock;
struct hfi_unsettled;
/* turn.c: whose turn it is to write, among the processes of a file */
struct hfi_turn {
    bool held;
    bool stuck;        /* somebody keeps it and does not use it */
    int64_t waited_us; /* for SQLite's lock, at the least */
    struct hfi_random random;
    void (*waits)(void *user); /* NULL; before each pause of waiting for SQLite's lock, for tests */
    void *user;
};
enum hfi_deps_exist { HFI_DEPS_UNKNOWN, HFI_DEPS_NONE, HFI_DEPS_SOME };

struct hfi_sqlite {
    struct hfi_store base;
    char path[HFI_PATH_MAX];
    sqlite3 *db; /* all writes and all checkpoints */
    sqlite3_stmt *statements[HFI_SQL_COUNT];
    int schema, min_reader, min_writer;
    bool migrated;
    uint64_t device, inode; /* of the file when it was opened */
    bool moved;             /* it is another file by now */

    /* this transaction */
    struct hfi_deadline deadline;
    int fault; /* HF_E… that ends it */
    int native;
    char why[200];
    int64_t next_job; /* 0: not read yet */
    bool ids_taken, control_changed, lean; /* lean: a death without its texts, after they were refused */
    bool same_death; /* the last death that was to be written had its letter already (S0.19) */
    int64_t delta[HFI_COUNTED_STATES];
    bool counted;
    enum hfi_deps_exist deps_exist;
    struct hfi_unsettled *unsettled; /* parents that ended or began anew in this operation */
    size_t unsettled_count, unsettled_done, unsettled_room;
    uint32_t settle_left;            /* children that may still be looked at */
    uint32_t released, ended_with;   /* what became of them */
    bool left_over;                  /* this operation left some to RELEASE */

    /* caches of immutable rows; lanes also gather this transaction's due times. What they know to stand in the table is
     * said in unused.c. */
    int64_t walk;           /* as far as this transaction has looked; 0: not yet */
    int64_t cached_at_walk; /* the caches were begun in it */
    struct hfi_lane *lanes_by_key, *lanes_by_id, *touched;
    struct hfi_policy *policies_by_id, *policies_by_value, *dropped_policies, *kept_policies;
    uint32_t policies_kept;
    bool policies_fresh; /* some came in this transaction */
    bool lanes_added; /* in this transaction */
    struct hfi_gauge *queue_gauges, *limit_gauges;
    bool gauges_stand;     /* they count what runs; until another process writes, or a rollback */
    int64_t data_version;  /* SQLite's, when they were looked at last */
    uint64_t look;         /* at the pauses */
    uint64_t gauge_reads;  /* how often they were counted anew */
    uint64_t rows_read;    /* by any statement: what a claim costs is measured, not believed */
    struct hfi_node_lock *locks;

    /* checkpoint.c */
    int gate;           /* <db>.ckpt, -1 before */
    struct hfi_turn turn;
    int wal_frames;     /* after the last commit */
    int wal_wanted;     /* the next checkpoint is tried at so many frames */
    int quiet;          /* calls of housekeep since something was written */
    bool wrote;
    bool full;          /* the disk is: the ballast is gone */

    pthread_mutex_t reading;
    struct hfi_deadline read_deadline;
    sqlite3 *reader; /* lists and looks; query_only; opened at the first */
    int64_t prune_cursor;
    int64_t letters_settled_us, letters_id; /* the same for settled letters */
    int wake_fd;
};
static inline struct hfi_sqlite *hfi_sqlite_of(struct hfi_store *store) {
    return (struct hfi_sqlite *)(void *)store;
}

/* open.c */
int hfi_sqlite_fail(struct hf_error *error, sqlite3 *db, int native, const char *what);
/* connect.c: a handle with everything set that a handle needs. */
int hfi_sqlite_connect(const char *path, bool reader, sqlite3 **db, struct hf_error *error);
int hfi_sqlite_create(const struct hfi_sqlite *store, struct hf_error *error);
int hfi_sqlite_migrate(struct hfi_sqlite *store, struct hf_error *error);
int hfi_sqlite_number(sqlite3 *db, const char *sql, int64_t *value);

/* commit.c */
void hfi_sqlite_commit(struct hfi_store *self, struct hfi_op **ops, size_t count);
/* Notes why this transaction cannot go on; returns the HF_E…. */
int hfi_sqlite_fault(struct hfi_sqlite *store, int native);
int hfi_sqlite_no_memory(struct hfi_sqlite *store);
/* A statement, prepared once, reset; NULL: faulted. */
sqlite3_stmt *hfi_sql(struct hfi_sqlite *store, enum hfi_sql which);
/* Steps to a row (true). False: no more rows, or a fault. Always reset with hfi_sql_done. */
bool hfi_sql_row(struct hfi_sqlite *store, sqlite3_stmt *statement);
void hfi_sql_done(sqlite3_stmt *statement);
/* Steps a write to its end and resets it; returns 0 or the fault. */
int hfi_sql_run(struct hfi_sqlite *store, sqlite3_stmt *statement);
void hfi_bind_text(sqlite3_stmt *statement, int at, const char *text); /* NULL and "" as NULL */
void hfi_bind_number(sqlite3_stmt *statement, int at, int64_t number); /* 0 as NULL */
void hfi_bind_bytes(sqlite3_stmt *statement, int at, const void *bytes, size_t length); /* empty as NULL */
const char *hfi_column_text(sqlite3_stmt *statement, int at); /* NULL as "" */
/* An audit row. */
int hfi_sqlite_audit(struct hfi_sqlite *store, struct hf_wall now, const char *actor, const char *action,
                     const char *subject, int64_t id, const char *reason, const char *detail);

/* row.c */
void hfi_sqlite_read_row(sqlite3_stmt *statement, struct hfi_job *job, int64_t *policy_id);
void hfi_sqlite_unscope(struct hfi_job *job); /* unique_key: from the scope to what was given */
int hfi_sqlite_read_job(struct hfi_sqlite *store, sqlite3_stmt *statement, struct hfi_job *job);
/* The stored row as one block. 0, HF_ENOENT or a fault. */
int hfi_sqlite_load(struct hfi_sqlite *store, int64_t id, struct hfi_job **job);
/* Writes `to` over `from`, iff id, epoch, state and cancel request are still those of `from`; `*written` says. */
int hfi_sqlite_store_row(struct hfi_sqlite *store, const struct hfi_job *from, const struct hfi_job *to, bool *written);
int hfi_sqlite_become_row(struct hfi_sqlite *store, struct hfi_job *job); /* hfi_replace_job made it; lane, policy set */
int hfi_sqlite_tags_drop(struct hfi_sqlite *store, int64_t id);
int hfi_sqlite_insert_row(struct hfi_sqlite *store, struct hfi_job *job);
void hfi_sqlite_count(struct hfi_sqlite *store, int from, int to); /* states; -1 = none */

/* lanes.c */
struct hfi_lane_texts {
    const char *queue, *type, *downstream, *breaker_key, *limit_key;
    bool alone;
};
struct hfi_lane_place {
    struct hfi_lane_texts texts;
    struct hfi_gauge *queue, *limit; /* limit: NULL without a limit key */
};
int hfi_sqlite_lane(struct hfi_sqlite *store, const struct hfi_lane_texts *texts, int64_t *lane);
const struct hfi_lane_texts *hfi_sqlite_lane_texts(struct hfi_sqlite *store, int64_t lane); /* NULL: unknown, or a fault */
const struct hfi_lane_place *hfi_sqlite_lane_place(struct hfi_sqlite *store, int64_t lane); /* the same, with its gauges */
void hfi_sqlite_lane_moved(struct hfi_sqlite *store, int64_t lane, int by); /* so many more jobs of it run */
void hfi_sqlite_lane_due(struct hfi_sqlite *store, int64_t lane, int64_t due_us, int priority); /* a job of it is */
int hfi_sqlite_lane_exhausted(struct hfi_sqlite *store, int64_t lane); /* makes both true, which it looks up */
int hfi_sqlite_lane_exact(struct hfi_sqlite *store, int64_t lane, int64_t due_us, int top); /* which the caller has found */
int hfi_sqlite_lane_top(struct hfi_sqlite *store, int64_t lane, int top); /* this one alone */
void hfi_sqlite_lane_seen(struct hfi_sqlite *store, int64_t lane, int top); /* in its row */
int hfi_sqlite_lanes_flush(struct hfi_sqlite *store);
void hfi_sqlite_lanes_forget(struct hfi_sqlite *store, bool undo);
void hfi_sqlite_lanes_free(struct hfi_sqlite *store);
int hfi_sqlite_op_lanes(struct hfi_sqlite *store, struct hfi_op_lanes *op);

/* unused.c: lanes and policies that nothing refers to */
int hfi_sqlite_meta_get(struct hfi_sqlite *store, const char *key, int64_t *number); /* 0 without one */
int hfi_sqlite_meta_set(struct hfi_sqlite *store, const char *key, int64_t number);  /* of one that is there */
/* The number of the walk that is under way, or of the last one. 0 or a fault. */
int hfi_sqlite_walk(struct hfi_sqlite *store, int64_t *walk);
/* Says in its row that this walk finds it in use; `*stands`: there is such a row. 0 or a fault. */
int hfi_sqlite_used(struct hfi_sqlite *store, enum hfi_sql which, int64_t id, int64_t walk, bool *stands);
int hfi_sqlite_op_unused(struct hfi_sqlite *store, struct hfi_op_unused *op);

/* policies.c */
#define HFI_POLICIES_KEPT 256 /* between transactions; `*stored` is good until the end of this one */
int hfi_sqlite_policy(struct hfi_sqlite *store, const struct hfi_curve *curve, const struct hfi_curve **stored);
void hfi_sqlite_policy_keep(struct hfi_sqlite *store, int64_t id); /* good until the store is closed: configured ones, few */
int hfi_sqlite_policy_by_id(struct hfi_sqlite *store, int64_t id, const struct hfi_curve **stored);
void hfi_sqlite_policies_settle(struct hfi_sqlite *store, bool committed);
void hfi_sqlite_policies_free(struct hfi_sqlite *store);

/* note.c: what handlers leave on their running jobs */
int hfi_sqlite_op_note(struct hfi_sqlite *store, struct hfi_op_note *op);
/* The job's checkpoint, in the memory of the statement it gives back (hfi_sql_done); NULL: none, or a fault. */
sqlite3_stmt *hfi_sqlite_checkpoint(struct hfi_sqlite *store, struct hfi_job *job);
/* deps.c */
void hfi_sqlite_deps_forget(struct hfi_sqlite *store); /* before a transaction */
void hfi_sqlite_deps_free(struct hfi_sqlite *store);
int hfi_sqlite_deps_check(struct hfi_sqlite *store, struct hfi_op_put *op);
int hfi_sqlite_deps_add(struct hfi_sqlite *store, const struct hfi_put *put);
/* A job ended, or is no longer at its end. */
int hfi_sqlite_deps_moved(struct hfi_sqlite *store, int64_t parent, struct hf_wall now);
int hfi_sqlite_deps_settle(struct hfi_sqlite *store, int64_t child, struct hf_wall now); /* looks at one child */
int hfi_sqlite_deps_flush(struct hfi_sqlite *store); /* after each operation */
bool hfi_sqlite_deps_left(struct hfi_sqlite *store); /* children that wait for RELEASE */
bool hfi_sqlite_deps_any(struct hfi_sqlite *store); /* does any job wait, or did one? */
bool hfi_sqlite_put_known(struct hfi_sqlite *store, const struct hfi_put *put); /* nothing will be put */
bool hfi_sqlite_deps_pending(struct hfi_sqlite *store, int64_t parent);
int hfi_sqlite_op_release(struct hfi_sqlite *store, struct hfi_op_release *op);

/* put.c, claim.c, apply.c */
int hfi_sqlite_ids_load(struct hfi_sqlite *store); /* store->next_job, of this transaction */
int hfi_sqlite_next_id(struct hfi_sqlite *store, int64_t *id);
int hfi_sqlite_ids_flush(struct hfi_sqlite *store);
int hfi_sqlite_op_put(struct hfi_sqlite *store, struct hfi_op_put *op);
int hfi_sqlite_unique_holder(struct hfi_sqlite *store, const struct hfi_job *job, int64_t *holder);
int hfi_sqlite_op_claim(struct hfi_sqlite *store, struct hfi_op_claim *op);
int hfi_sqlite_op_apply(struct hfi_sqlite *store, struct hfi_op_apply *op);
/* Everything a change means but its row: history, death, alerts, what became of a redriven one. */
int hfi_sqlite_consequences(struct hfi_sqlite *store, const struct hfi_job *before, const struct hfi_change *change,
                            const struct hfi_rules *rules, const char *const *sinks, size_t sink_count, int64_t *dead_id);
/* Transition and all it means on a row read in this transaction. 0, HF_ESTATE, HF_ESTALE or a fault. */
int hfi_sqlite_change(struct hfi_sqlite *store, const struct hfi_job *job, const struct hfi_event *event,
                      const struct hfi_rules *rules, const char *const *sinks, size_t sink_count,
                      struct hfi_change *change, int64_t *dead_id);

/* sweep.c, people.c */
int hfi_sqlite_op_sweep(struct hfi_sqlite *store, struct hfi_op_sweep *op);
int hfi_sqlite_op_expire(struct hfi_sqlite *store, struct hfi_op_expire *op);
int hfi_sqlite_op_quarantine(struct hfi_sqlite *store, struct hfi_op_quarantine *op);
int hfi_sqlite_op_cancel(struct hfi_sqlite *store, struct hfi_op_cancel *op);
int hfi_sqlite_op_requeue(struct hfi_sqlite *store, struct hfi_op_requeue *op);

/* dead.c, redrive.c */
/* The letter of this job and death number that is there already (S0.19); 0 none. */
int hfi_sqlite_find_death(struct hfi_sqlite *store, const struct hfi_change *change, int64_t *dead_id);
int hfi_sqlite_write_death(struct hfi_sqlite *store, const struct hfi_change *change, uint32_t allowed,
                           const char *const *sinks, size_t sink_count, int64_t *dead_id);
int hfi_sqlite_successor_ended(struct hfi_sqlite *store, const struct hfi_job *job);
/* A settlement by a person, iff nothing settled it before: HF_ESTATE. */
int hfi_sqlite_settle(struct hfi_sqlite *store, int64_t dead_id, int status, struct hf_wall now, const char *actor,
                      const char *reason, int64_t new_job, int64_t task);
int hfi_sqlite_op_redrive(struct hfi_sqlite *store, struct hfi_op_redrive *op);
int hfi_sqlite_op_settle(struct hfi_sqlite *store, struct hfi_op_settle *op);
int hfi_sqlite_op_import(struct hfi_sqlite *store, struct hfi_op_import *op);
int hfi_sqlite_op_measure(struct hfi_sqlite *store, struct hfi_op_measure *op);
int hfi_sqlite_op_poison(struct hfi_sqlite *store, struct hfi_op_poison *op);

/* redriving.c: redrive tasks */
void hfi_sqlite_read_redrive(sqlite3_stmt *statement, struct hfi_redrive_task *task); /* HFI_REDRIVE_COLUMNS */
int hfi_sqlite_redrive_job_ended(struct hfi_sqlite *store, int64_t task, int job_state);
int hfi_sqlite_op_redrive_task(struct hfi_sqlite *store, struct hfi_op_redrive_task *op);
int hfi_sqlite_op_redrive_step(struct hfi_sqlite *store, struct hfi_op_redrive_step *op);
int hfi_sqlite_op_redrive_cancel(struct hfi_sqlite *store, struct hfi_op_redrive_cancel *op);
/* storms.c: what a death leaves for its sinks, and their pace */
int hfi_sqlite_write_alerts(struct hfi_sqlite *store, int64_t dead_id, const char *fingerprint, struct hf_wall now,
                            const char *const *sinks, size_t count);
int hfi_sqlite_sink_rules(struct hfi_sqlite *store, const struct hfi_sink_rule *rules, size_t count);
struct hfi_sqlite_pace {
    const char *sink;
    int64_t collapse_us; /* 0: it has none */
    struct hfi_storm_pace pace;
};
int hfi_sqlite_pace_read(struct hfi_sqlite *store, struct hfi_sqlite_pace *pace);
int hfi_sqlite_pace_write(struct hfi_sqlite *store, const struct hfi_sqlite_pace *pace);
int hfi_sqlite_pace_look(struct hfi_sqlite *store, struct hfi_sqlite_pace *pace, struct hf_wall now); /* may make a digest */
int hfi_sqlite_storm_seal(struct hfi_sqlite *store, int64_t lead, struct hf_wall now, int64_t collapse_us);

int hfi_sqlite_op_readmit(struct hfi_sqlite *store, struct hfi_op_readmit *op); /* readmit.c */

/* forward.c: what a death sets off besides its alerts */
int hfi_sqlite_forward(struct hfi_sqlite *store, const struct hfi_change *change, const struct hfi_forwards *forwards,
                       int64_t dead_id);
/* The letter that died there, here; 0 none. 0 or a fault. */
int hfi_sqlite_find_origin(struct hfi_sqlite *store, const char *origin, int64_t *id);
int hfi_sqlite_forward_ended(struct hfi_sqlite *store, const struct hfi_job *job); /* one of those jobs */
int hfi_sqlite_forward_again(struct hfi_sqlite *store, int64_t from_job, int64_t to_job); /* it was redriven */
int hfi_sqlite_forwarded(struct hfi_sqlite *store, int64_t dead_id, int64_t *job);
int hfi_sqlite_dead_forwards(sqlite3 *db, int64_t dead_id, struct hf_dead *dead); /* SQLite's code */
int hfi_sqlite_list_forwards(struct hfi_store *self, struct hf_forward_list **list, struct hf_error *error);

/* alerts.c, nodes.c, control.c, prune.c */
int hfi_sqlite_op_alerts(struct hfi_sqlite *store, struct hfi_op_alerts *op);
int hfi_sqlite_op_alert_end(struct hfi_sqlite *store, struct hfi_op_alert_end *op);
int hfi_sqlite_op_absent(struct hfi_sqlite *store, struct hfi_op_absent *op); /* absent.c */
int hfi_sqlite_op_join(struct hfi_sqlite *store, struct hfi_op_join *op);
int hfi_sqlite_op_beat(struct hfi_sqlite *store, struct hfi_op_beat *op);
int hfi_sqlite_op_leave(struct hfi_sqlite *store, struct hfi_op_leave *op);
int hfi_sqlite_op_nodes(struct hfi_sqlite *store, struct hfi_op_nodes *op);
bool hfi_sqlite_node_lives(struct hfi_sqlite *store, int64_t node);
int hfi_sqlite_node_gone(struct hfi_sqlite *store, int64_t node);
int hfi_sqlite_lock_goes(struct hfi_sqlite *store, int64_t node); /* its file, after the commit */
void hfi_sqlite_locks_settle(struct hfi_sqlite *store, bool committed);
void hfi_sqlite_locks_free(struct hfi_sqlite *store);
int hfi_sqlite_op_pause(struct hfi_sqlite *store, struct hfi_op_pause *op);
int hfi_sqlite_op_downstream(struct hfi_sqlite *store, struct hfi_op_downstream *op);
int hfi_sqlite_op_share(struct hfi_sqlite *store, struct hfi_op_share *op);
int hfi_sqlite_op_prune(struct hfi_sqlite *store, struct hfi_op_prune *op);

/* checkpoint.c, ballast.c */
int64_t hfi_sqlite_housekeep(struct hfi_store *self, bool idle);
void hfi_sqlite_gate_open(struct hfi_sqlite *store); /* the file, if it is not; `gate` stays -1 and errno says why */
int hfi_sqlite_gate_enter(struct hfi_sqlite *store);
void hfi_sqlite_gate_leave(struct hfi_sqlite *store);
int hfi_sqlite_wal_hook(void *user, sqlite3 *db, const char *name, int frames);
void hfi_sqlite_ballast_lay(struct hfi_sqlite *store);
bool hfi_sqlite_ballast_drop(struct hfi_sqlite *store); /* true: there was some */
/* turn.c: taken before the gate, given up with SQLite's lock in hand, whether that came or not */
void hfi_sqlite_turn_begin(struct hfi_sqlite *store); /* after the handle was opened */
void hfi_sqlite_turn_waits(struct hfi_sqlite *store); /* how its handle waits for SQLite's lock, after another way */
void hfi_sqlite_turn_take(struct hfi_sqlite *store);
void hfi_sqlite_turn_give(struct hfi_sqlite *store);
struct hfi_space {
    uint64_t free_bytes; /* for this user; UINT64_MAX: the disk does not say */
    bool ballast;
    bool is_full;  /* nothing new is taken in */
    bool is_short; /* … and what runs could not end if it were */
};
void hfi_sqlite_space_look(const struct hfi_sqlite *store, struct hfi_space *space); /* any thread */

/* read.c, read_dead.c, doctor.c, wake.c: other threads */
int hfi_sqlite_read_begin(struct hfi_sqlite *store, struct hf_error *error); /* takes the mutex on 0 */
int hfi_sqlite_read_end(struct hfi_sqlite *store, int native, const char *what, struct hf_error *error);
/* The row of HFI_JOB_COLUMNS HFI_VIEW_COLUMNS as a view; its texts are the statement's and the room's. False: the filter,
 * if any, does not take it. */
struct hfi_view_room {
    char key[HFI_IDEMPOTENCY_ROOM], owner[HFI_NAME_MAX + 1];
};
bool hfi_sqlite_read_view(struct hfi_sqlite *store, sqlite3_stmt *statement, const struct hf_job_filter *filter,
                          struct hf_job_view *view, struct hfi_view_room *room);
struct hf_wall hfi_sqlite_read_now(void); /* read_control.c */
/* list.c: the statements of a page, each into HFI_LIST_SQL_MAX bytes */
#define HFI_LIST_SQL_MAX 4096
void hfi_sqlite_list_sql(const struct hf_job_filter *filter, char *floor, char *page);
int hfi_sqlite_list_jobs(struct hfi_store *self, const struct hf_job_filter *filter, struct hf_job_list **list,
                         struct hf_error *error);
int hfi_sqlite_get_job(struct hfi_store *self, int64_t id, struct hf_job **job, struct hf_error *error);
int hfi_sqlite_count_jobs(struct hfi_store *self, struct hf_job_counts *counts, struct hf_error *error);
int hfi_sqlite_list_queues(struct hfi_store *self, struct hf_queue_list **list, struct hf_error *error);
int hfi_sqlite_look_phases(struct hfi_store *self, const char *key, hfi_phases_fn each, void *user, struct hf_error *error);
int hfi_sqlite_look_measured(struct hfi_store *self, const char *key, int64_t from_hour, hfi_measured_fn each, void *user,
                             struct hf_error *error);
int hfi_sqlite_list_limits(struct hfi_store *self, struct hf_limit_list **list, struct hf_error *error);
int hfi_sqlite_list_downstreams(struct hfi_store *self, struct hf_downstream_list **list, struct hf_error *error);
int hfi_sqlite_list_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_list **list,
                         struct hf_error *error);
int hfi_sqlite_group_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_group_list **list,
                          struct hf_error *error);
int hfi_sqlite_list_redrives(struct hfi_store *self, const struct hf_redrive_filter *filter, struct hf_redrive_list **list,
                             struct hf_error *error);
int hfi_sqlite_get_dead(struct hfi_store *self, int64_t id, struct hf_dead **dead, struct hf_error *error);
int hfi_sqlite_list_alerts(struct hfi_store *self, const struct hf_alert_filter *filter, struct hf_alert_list **list,
                           struct hf_error *error);
int hfi_sqlite_look(struct hfi_store *self, struct hf_store_info *info);
int hfi_sqlite_doctor(struct hfi_store *self, hf_doctor_fn report, void *user, struct hf_error *error);
int hfi_sqlite_wake_fd(struct hfi_store *self);
void hfi_sqlite_wake_drain(struct hfi_store *self);

#endif
