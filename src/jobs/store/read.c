/* SPDX-License-Identifier: MIT */
/*
 * Reads of jobs: lists, one job with its history, counts. On a handle of their own that cannot write, under its mutex,
 * each in one short transaction so that no reader keeps the log from being emptied. Any thread but loop and writer.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

/* After HFI_JOB_COLUMNS: what the writer has in its caches. */
#define MORE_COLUMNS ", l.queue, l.type, l.downstream, l.breaker_key, l.limit_key, o.max_executions, n.name "
#define MORE_FROM                                                                                                      \
    " LEFT JOIN lanes l ON l.id = j.lane LEFT JOIN policies o ON o.id = j.policy_id LEFT JOIN nodes n ON n.id = j.owner "
enum { QUEUE = HFI_JOB_COLUMN_COUNT, TYPE, DOWNSTREAM, BREAKER_KEY, LIMIT_KEY, POLICY_MAX, OWNER_NAME, CHECKPOINT };

int hfi_sqlite_read_begin(struct hfi_sqlite *store, struct hf_error *error) {
    pthread_mutex_lock(&store->reading);
    int code = store->reader ? 0 : hfi_sqlite_connect(store->path, true, &store->reader, error);
    if (code == 0 && sqlite3_exec(store->reader, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        code = hfi_sqlite_fail(error, store->reader, sqlite3_extended_errcode(store->reader), store->path);
    if (code != 0)
        pthread_mutex_unlock(&store->reading);
    return code;
}

/* `native` OK, ROW or DONE: 0. */
int hfi_sqlite_read_end(struct hfi_sqlite *store, int native, const char *what, struct hf_error *error) {
    int code = native == SQLITE_OK || native == SQLITE_ROW || native == SQLITE_DONE
                   ? 0
                   : hfi_sqlite_fail(error, store->reader, native, what);
    sqlite3_exec(store->reader, "COMMIT", NULL, NULL, NULL);
    pthread_mutex_unlock(&store->reading);
    return code;
}

/* The row under the statement as a view; its texts are the statement's, `key` and `owner`. */
static void fill(struct hfi_sqlite *store, sqlite3_stmt *statement, struct hf_job_view *view, char *key, char *owner) {
    struct hfi_job job;
    struct hfi_curve policy = {0};
    int64_t policy_id;
    hfi_sqlite_read_row(statement, &job, &policy_id);
    job.queue = hfi_column_text(statement, QUEUE);
    job.type = hfi_column_text(statement, TYPE);
    job.downstream = hfi_column_text(statement, DOWNSTREAM);
    job.breaker_key = hfi_column_text(statement, BREAKER_KEY);
    job.limit_key = hfi_column_text(statement, LIMIT_KEY);
    if (*job.unique_key)
        hfi_sqlite_unscope(&job);
    policy.max_executions = (uint32_t)sqlite3_column_int64(statement, POLICY_MAX);
    job.policy = policy_id != 0 ? &policy : NULL;
    hfi_text_copy(owner, HFI_NAME_MAX + 1, hfi_column_text(statement, OWNER_NAME));
    if (!*owner && job.owner != 0)
        snprintf(owner, HFI_NAME_MAX + 1, "%lld", (long long)job.owner);
    hfi_job_view_fill(view, &job, owner, store->base.uuid, key);
}

static void list_sql(char *sql, size_t room, const struct hf_job_filter *filter) {
    /* the literal lets the partial indexes be used; newest first, so the key runs down */
    char state[64] = "";
    if (filter->state >= 0)
        snprintf(state, sizeof state, " AND j.state = %d", filter->state);
    snprintf(sql, room,
             "SELECT " HFI_JOB_COLUMNS MORE_COLUMNS HFI_JOB_FROM MORE_FROM "WHERE j.id < ?1%s%s%s%s ORDER BY j.id DESC LIMIT ?2",
             state, filter->type ? " AND l.type = ?3" : "", filter->queue ? " AND l.queue = ?4" : "",
             filter->created_since_us > 0 ? " AND j.created_at_us >= ?5" : "");
}

static void bind_filter(sqlite3_stmt *statement, const struct hf_job_filter *filter, uint32_t limit) {
    sqlite3_bind_int64(statement, 1, filter->after_id > 0 ? filter->after_id : INT64_MAX);
    sqlite3_bind_int64(statement, 2, (int64_t)limit + 1);
    if (filter->type)
        sqlite3_bind_text(statement, 3, filter->type, -1, SQLITE_STATIC);
    if (filter->queue)
        sqlite3_bind_text(statement, 4, filter->queue, -1, SQLITE_STATIC);
    if (filter->created_since_us > 0)
        sqlite3_bind_int64(statement, 5, filter->created_since_us);
}

/* Steps through a page; SQLite's code, or SQLITE_NOMEM. */
static int gather(struct hfi_sqlite *store, sqlite3_stmt *statement, uint32_t limit, struct hf_job_list *list) {
    char key[HFI_IDEMPOTENCY_ROOM], owner[HFI_NAME_MAX + 1];
    uint32_t count = 0;
    int64_t last = 0;
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hf_job_view view;
        if (count++ == limit) {
            hfi_job_list_set_next(list, last);
            return SQLITE_OK;
        }
        fill(store, statement, &view, key, owner);
        last = view.id;
        if (hfi_job_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_list_jobs(struct hfi_store *self, const struct hf_job_filter *filter, struct hf_job_list **list,
                         struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    char sql[2048];
    sqlite3_stmt *statement = NULL;
    uint32_t limit = hfi_page_limit(filter->limit);
    *list = NULL;
    list_sql(sql, sizeof sql, filter);
    struct hf_job_list *made;
    if (hfi_job_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "jobs", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, sql, -1, &statement, NULL);
        if (native == SQLITE_OK) {
            bind_filter(statement, filter, limit);
            native = gather(store, statement, limit, made);
        }
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "jobs", error);
    }
    if (code == 0)
        *list = made;
    else
        hf_job_list_free(made);
    return code;
}

static void fill_history(sqlite3_stmt *statement, struct hf_history_view *view) {
    *view = (struct hf_history_view){
        .execution = (uint32_t)sqlite3_column_int64(statement, 0),
        .started_at_us = sqlite3_column_int64(statement, 1),
        .ended_at_us = sqlite3_column_int64(statement, 2),
        .event = hfi_event_name(sqlite3_column_int(statement, 3)),
        .node = hfi_column_text(statement, 4),
        .attempts = (uint32_t)sqlite3_column_int64(statement, 5),
        .retries = (uint32_t)sqlite3_column_int64(statement, 6),
        .next_run_at_us = sqlite3_column_int64(statement, 7),
        .error_class = hfi_column_text(statement, 8),
        .error_type = hfi_column_text(statement, 9),
        .error_message = hfi_column_text(statement, 10),
        .rule = hfi_column_text(statement, 11),
    };
}

static int add_history(struct hfi_sqlite *store, int64_t id, struct hf_job *job) {
    sqlite3_stmt *statement;
    struct hf_history_view view;
    int native = sqlite3_prepare_v2(
        store->reader,
        "SELECT h.execution, h.started_at_us, h.ended_at_us, h.event, n.name, h.attempts, h.retries, h.next_run_at_us, "
        "e.error_class, e.error_type, e.message, e.rule FROM history h LEFT JOIN history_errors e ON e.job_id = h.job_id "
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

/* The job and its history; `*job` NULL: no such id. SQLite's code. */
static int get(struct hfi_sqlite *store, int64_t id, struct hf_job **job) {
    sqlite3_stmt *statement;
    char key[HFI_IDEMPOTENCY_ROOM], owner[HFI_NAME_MAX + 1];
    struct hf_job_view view;
    int native = sqlite3_prepare_v2(store->reader,
                                    "SELECT " HFI_JOB_COLUMNS MORE_COLUMNS
                                    ", (SELECT bytes FROM checkpoints WHERE job_id = j.id)" HFI_JOB_FROM MORE_FROM
                                    "WHERE j.id = ?1",
                                    -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_int64(statement, 1, id);
    native = sqlite3_step(statement);
    if (native == SQLITE_ROW) {
        fill(store, statement, &view, key, owner);
        view.checkpoint = sqlite3_column_blob(statement, CHECKPOINT);
        view.checkpoint_length = (size_t)sqlite3_column_bytes(statement, CHECKPOINT);
        native = hfi_job_new(&view, job) == 0 ? add_history(store, id, *job) : SQLITE_NOMEM;
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
