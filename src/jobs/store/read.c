/* SPDX-License-Identifier: MIT */
/*
 * Reads of jobs: rows as views, one job with its history and relatives, counts. On a handle of their own that cannot write, under its mutex,
 * each in one short transaction so that no reader keeps the log from being emptied. Any thread but loop and writer.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

/* After HFI_JOB_COLUMNS, in the order of HFI_VIEW_COLUMNS. */
enum {
    QUEUE = HFI_JOB_COLUMN_COUNT, TYPE, DOWNSTREAM, BREAKER_KEY, LIMIT_KEY, POLICY_MAX, OWNER_NAME, FORCED, FORCED_UNTIL,
    PHASE, GATE_UNTIL, CHECKPOINT
};

static int open_reader(struct hfi_sqlite *store, struct hf_error *error) {
    int code = hfi_sqlite_connect(store->path, true, &store->reader, error);
    if (code == 0)
        hfi_deadline_watch(&store->read_deadline, store->reader);
    return code;
}

int hfi_sqlite_read_begin(struct hfi_sqlite *store, struct hf_error *error) {
    pthread_mutex_lock(&store->reading);
    hfi_deadline_start(&store->read_deadline, 0);
    int code = store->reader ? 0 : open_reader(store, error);
    if (code == 0 && sqlite3_exec(store->reader, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        code = hfi_sqlite_fail(error, store->reader, sqlite3_extended_errcode(store->reader), store->path);
    if (code != 0)
        pthread_mutex_unlock(&store->reading);
    return code;
}

/* `native` OK, ROW or DONE: 0. */
int hfi_sqlite_read_end(struct hfi_sqlite *store, int native, const char *what, struct hf_error *error) {
    int code = 0;
    if (hfi_deadline_ended(&store->read_deadline, native))
        code = hfi_fail(error, HF_EBUSY, what, "ask for less, or again when the disk is quieter",
                        HFI_DEADLINE_TEXT " to read");
    else if (native != SQLITE_OK && native != SQLITE_ROW && native != SQLITE_DONE)
        code = hfi_sqlite_fail(error, store->reader, native, what);
    hfi_deadline_stop(&store->read_deadline);
    sqlite3_exec(store->reader, "COMMIT", NULL, NULL, NULL);
    pthread_mutex_unlock(&store->reading);
    return code;
}

static bool is_kept(sqlite3_stmt *statement, struct hf_wall now) {
    struct hfi_downstream_state row = {
        .forced = sqlite3_column_int(statement, FORCED),
        .forced_until_us = sqlite3_column_int64(statement, FORCED_UNTIL),
        .phase = sqlite3_column_int(statement, PHASE),
        .gate_until_us = sqlite3_column_int64(statement, GATE_UNTIL),
    };
    return hfi_downstream_keeps(&row, now);
}

bool hfi_sqlite_read_view(struct hfi_sqlite *store, sqlite3_stmt *statement, const struct hf_job_filter *filter,
                          struct hf_job_view *view, struct hfi_view_room *room) {
    struct hfi_job job;
    struct hfi_curve policy = {0};
    int64_t policy_id;
    struct hf_wall now = hfi_sqlite_read_now();
    hfi_sqlite_read_row(statement, &job, &policy_id);
    job.queue = hfi_column_text(statement, QUEUE);
    job.type = hfi_column_text(statement, TYPE);
    job.downstream = hfi_column_text(statement, DOWNSTREAM);
    job.breaker_key = hfi_column_text(statement, BREAKER_KEY);
    job.limit_key = hfi_column_text(statement, LIMIT_KEY);
    if (*job.unique_key)
        hfi_sqlite_unscope(&job);
    bool kept = is_kept(statement, now);
    if (filter && !hfi_job_fits(&job, filter, kept, now))
        return false;
    policy.max_executions = (uint32_t)sqlite3_column_int64(statement, POLICY_MAX);
    job.policy = policy_id != 0 ? &policy : NULL;
    hfi_text_copy(room->owner, sizeof room->owner, hfi_column_text(statement, OWNER_NAME));
    if (!*room->owner && job.owner != 0)
        snprintf(room->owner, sizeof room->owner, "%lld", (long long)job.owner);
    hfi_job_view_fill(view, &job, room->owner, store->base.uuid, room->key);
    view->shown = hfi_job_shown_text(&job, kept, now);
    return true;
}

static int64_t phase_at(sqlite3_stmt *statement, int at) {
    return sqlite3_column_type(statement, at) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, at);
}

static void fill_history(sqlite3_stmt *statement, struct hf_history_view *view) {
    struct hfi_history history = {
        .execution = (uint32_t)sqlite3_column_int64(statement, 0),
        .started_at_us = sqlite3_column_int64(statement, 1),
        .ended_at_us = sqlite3_column_int64(statement, 2),
        .event = sqlite3_column_int(statement, 3),
        .attempts = (uint32_t)sqlite3_column_int64(statement, 5),
        .retries = (uint32_t)sqlite3_column_int64(statement, 6),
        .next_run_at_us = sqlite3_column_int64(statement, 7),
        .error_class = hfi_column_text(statement, 8),
        .breaker = sqlite3_column_int(statement, 12),
        .state = sqlite3_column_int(statement, 13),
        .resolve_us = phase_at(statement, 14),
        .connect_us = phase_at(statement, 15),
        .tls_us = phase_at(statement, 16),
        .first_byte_us = phase_at(statement, 17),
        .total_us = phase_at(statement, 18),
    };
    hfi_text_copy(history.error_type, sizeof history.error_type, hfi_column_text(statement, 9));
    hfi_history_view_fill(view, &history, hfi_column_text(statement, 4));
    view->error_type = hfi_column_text(statement, 9); /* not those of `history`, which go */
    view->error_message = hfi_column_text(statement, 10);
    view->rule = hfi_column_text(statement, 11);
}

static int add_history(struct hfi_sqlite *store, int64_t id, struct hf_job *job) {
    sqlite3_stmt *statement;
    struct hf_history_view view;
    int native = sqlite3_prepare_v2(
        store->reader,
        "SELECT h.execution, h.started_at_us, h.ended_at_us, h.event, n.name, h.attempts, h.retries, h.next_run_at_us, "
        "e.error_class, e.error_type, e.message, e.rule, h.breaker, h.state, h.resolve_us, h.connect_us, h.tls_us, "
        "h.first_byte_us, h.total_us FROM history h LEFT JOIN history_errors e ON e.job_id = h.job_id "
        "AND e.epoch = h.epoch AND e.ended_at_us = h.ended_at_us AND e.event = h.event LEFT JOIN nodes n ON n.id = h.node "
        "WHERE h.job_id = ?1 ORDER BY h.epoch, h.ended_at_us",
        -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_int64(statement, 1, id);
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        fill_history(statement, &view);
        if (hfi_job_add_history(job, &view) != 0) {
            native = SQLITE_NOMEM;
            break;
        }
    }
    sqlite3_finalize(statement);
    return native;
}

/* Whom it waits for, or who waits for it; all are stepped through, so that they are counted. */
static int add_links(struct hfi_sqlite *store, int64_t id, struct hf_job *job, bool parents) {
    sqlite3_stmt *statement;
    int native = sqlite3_prepare_v2(
        store->reader,
        parents ? "SELECT d.parent, d.on_end, j.state, l.type FROM deps d LEFT JOIN jobs j ON j.id = d.parent "
                  "LEFT JOIN lanes l ON l.id = j.lane WHERE d.child = ?1 ORDER BY d.parent"
                : "SELECT d.child, d.on_end, j.state, l.type FROM deps d LEFT JOIN jobs j ON j.id = d.child "
                  "LEFT JOIN lanes l ON l.id = j.lane WHERE d.parent = ?1 ORDER BY d.child LIMIT 100000",
        -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_int64(statement, 1, id);
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        bool gone = sqlite3_column_type(statement, 2) == SQLITE_NULL;
        struct hf_link_view view = {.id = sqlite3_column_int64(statement, 0), .is_parent = parents,
                                    .on_end = sqlite3_column_int(statement, 1) != 0,
                                    .state = gone ? -1 : sqlite3_column_int(statement, 2),
                                    .type = hfi_column_text(statement, 3)};
        if (hfi_job_add_link(job, &view) != 0) {
            native = SQLITE_NOMEM;
            break;
        }
    }
    sqlite3_finalize(statement);
    return native;
}

/* What belongs to the job. */
static int add_all(struct hfi_sqlite *store, int64_t id, struct hf_job *job) {
    int native = add_history(store, id, job);
    if (native == SQLITE_DONE)
        native = add_links(store, id, job, true);
    return native == SQLITE_DONE ? add_links(store, id, job, false) : native;
}

/* The job and its history; `*job` NULL: no such id. SQLite's code. */
static int get(struct hfi_sqlite *store, int64_t id, struct hf_job **job) {
    sqlite3_stmt *statement;
    struct hfi_view_room room;
    struct hf_job_view view;
    int native = sqlite3_prepare_v2(store->reader,
                                    "SELECT " HFI_JOB_COLUMNS HFI_VIEW_COLUMNS
                                    ", (SELECT bytes FROM checkpoints WHERE job_id = j.id) FROM jobs j" HFI_VIEW_JOINS
                                    "WHERE j.id = ?1",
                                    -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_int64(statement, 1, id);
    native = sqlite3_step(statement);
    if (native == SQLITE_ROW) {
        hfi_sqlite_read_view(store, statement, NULL, &view, &room);
        view.checkpoint = sqlite3_column_blob(statement, CHECKPOINT);
        view.checkpoint_length = (size_t)sqlite3_column_bytes(statement, CHECKPOINT);
        native = hfi_job_new(&view, job) == 0 ? add_all(store, id, *job) : SQLITE_NOMEM;
    }
    sqlite3_finalize(statement);
    return native;
}

int hfi_sqlite_get_job(struct hfi_store *self, int64_t id, struct hf_job **job, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    struct hf_job *made = NULL;
    *job = NULL;
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0)
        code = hfi_sqlite_read_end(store, get(store, id, &made), "job", error);
    if (code == 0 && !made)
        return hfi_fail(error, HF_ENOENT, "job", NULL, "%lld does not exist", (long long)id);
    if (code == 0)
        *job = made;
    else
        hf_job_free(made);
    return code;
}

static int count_states(sqlite3 *db, struct hf_job_counts *counts) {
    uint64_t *places[] = {&counts->pending, &counts->waiting,     &counts->running,   &counts->succeeded,
                          &counts->dead,    &counts->quarantined, &counts->cancelled, &counts->other};
    sqlite3_stmt *statement;
    int native = sqlite3_prepare_v2(db, "SELECT state, jobs FROM counts", -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        int state = sqlite3_column_int(statement, 0);
        int64_t jobs = sqlite3_column_int64(statement, 1);
        if (state >= 0 && state < HFI_COUNTED_STATES && jobs > 0)
            *places[state] = (uint64_t)jobs;
    }
    sqlite3_finalize(statement);
    return native;
}

int hfi_sqlite_count_jobs(struct hfi_store *self, struct hf_job_counts *counts, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    int64_t letters = 0, alerts = 0;
    struct hf_job_counts made = {.size = counts->size};
    int code = hfi_sqlite_read_begin(store, error);
    if (code != 0)
        return code;
    int native = count_states(store->reader, &made);
    if (native == SQLITE_DONE)
        native = hfi_sqlite_number(store->reader, "SELECT count(*) FROM dead_letters WHERE status = 0", &letters);
    if (native == SQLITE_OK)
        native = hfi_sqlite_number(store->reader, "SELECT count(*) FROM alerts WHERE state = 0", &alerts);
    made.dead_letters_open = (uint64_t)letters;
    made.alerts_unsent = (uint64_t)alerts;
    code = hfi_sqlite_read_end(store, native, "counts", error);
    if (code == 0)
        *counts = made;
    return code;
}
