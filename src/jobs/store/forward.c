/* SPDX-License-Identifier: MIT */
/*
 * What a death sets off: the jobs of its handlers and forwarders, where each went, and what became of it. Must never put
 * one of them twice for one dead letter, nor lose one that its death was committed with. Writer thread; the list any.
 */
#include "jobs/forward.h"

#include <string.h>

#include "base/text.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

/* Is it there already? A death that is found again sets nothing off again. */
static bool is_put(struct hfi_sqlite *store, int64_t dead_id, const char *name) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_FORWARD_FIND);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, dead_id);
    sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC);
    bool found = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return found;
}

static int count(struct hfi_sqlite *store, const char *name, int taken, int forwarded, int failed) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_FORWARD_COUNT);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, taken);
    sqlite3_bind_int(statement, 3, forwarded);
    sqlite3_bind_int(statement, 4, failed);
    return hfi_sql_run(store, statement);
}

static int put(struct hfi_sqlite *store, const struct hfi_forward *forward, const struct hfi_change *change, int64_t dead_id) {
    struct hfi_forward_room room;
    struct hfi_job job;
    struct hf_wall now = {change->job.finished_at_us};
    hfi_forward_job(forward, &change->job, &change->death, dead_id, store->base.uuid, now, &room, &job);
    struct hfi_lane_texts lane = {job.queue, job.type, "", "", "", false};
    if (hfi_sqlite_lane(store, &lane, &job.lane) != 0 || hfi_sqlite_next_id(store, &job.id) != 0)
        return store->fault;
    if (job.root_id == 0)
        job.root_id = job.id;
    if (hfi_sqlite_insert_row(store, &job) != 0)
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_FORWARD_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, dead_id);
    sqlite3_bind_text(statement, 2, forward->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, job.id);
    return hfi_sql_run(store, statement) == 0 ? count(store, forward->name, 1, 0, 0) : store->fault;
}

int hfi_sqlite_forward(struct hfi_sqlite *store, const struct hfi_change *change, const struct hfi_forwards *forwards,
                       int64_t dead_id) {
    for (size_t i = 0; forwards && i < forwards->count && store->fault == 0; i++) {
        const struct hfi_forward *forward = &forwards->items[i];
        if (hfi_forward_takes(forward, &change->job, &change->death) && !is_put(store, dead_id, forward->name) &&
            store->fault == 0)
            put(store, forward, change, dead_id);
    }
    return store->fault;
}

int hfi_sqlite_forward_ended(struct hfi_sqlite *store, const struct hfi_job *job) {
    char name[HFI_FORWARD_NAME_MAX + 1] = "";
    bool well = job->state == HF_JOB_SUCCEEDED;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_FORWARD_ENDED);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, job->id);
    sqlite3_bind_text(statement, 2, hf_job_state_name(job->state), -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        hfi_text_copy(name, sizeof name, hfi_column_text(statement, 0));
    hfi_sql_done(statement);
    return name[0] != '\0' && store->fault == 0 ? count(store, name, 0, well, !well) : store->fault;
}

int hfi_sqlite_forward_again(struct hfi_sqlite *store, int64_t from_job, int64_t to_job) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_FORWARD_AGAIN);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, from_job);
    sqlite3_bind_int64(statement, 2, to_job);
    return hfi_sql_run(store, statement);
}

/* Where did its copy go, if it has not failed? The job, 0: nowhere, or a handler only. */
int hfi_sqlite_forwarded(struct hfi_sqlite *store, int64_t dead_id, int64_t *job) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_FORWARDED);
    *job = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, dead_id);
    if (hfi_sql_row(store, statement))
        *job = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

int hfi_sqlite_dead_forwards(sqlite3 *db, int64_t dead_id, struct hf_dead *dead) {
    sqlite3_stmt *statement;
    int native = sqlite3_prepare_v2(db, "SELECT name, job_id, outcome FROM forwards WHERE dead_id = ?1 ORDER BY job_id", -1,
                                    &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_int64(statement, 1, dead_id);
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hf_dead_forward row = {.name = hfi_column_text(statement, 0),
                                      .job_id = sqlite3_column_int64(statement, 1),
                                      .outcome = hfi_column_text(statement, 2)};
        if (hfi_dead_add_forward(dead, &row) != 0) {
            native = SQLITE_NOMEM;
            break;
        }
    }
    sqlite3_finalize(statement);
    return native;
}

static int gather(sqlite3_stmt *statement, struct hf_forward_list *list) {
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hf_forward_view view = {
            .name = hfi_column_text(statement, 0),
            .taken = (uint64_t)sqlite3_column_int64(statement, 1),
            .forwarded = (uint64_t)sqlite3_column_int64(statement, 2),
            .failed = (uint64_t)sqlite3_column_int64(statement, 3),
        };
        if (hfi_forward_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_list_forwards(struct hfi_store *self, struct hf_forward_list **list, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    sqlite3_stmt *statement = NULL;
    struct hf_forward_list *made;
    *list = NULL;
    if (hfi_forward_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "forwarders", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, "SELECT name, taken, forwarded, failed FROM forward_counts ORDER BY name",
                                        -1, &statement, NULL);
        if (native == SQLITE_OK)
            native = gather(statement, made);
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "forwarders", error);
    }
    if (code == 0)
        *list = made;
    else
        hf_forward_list_free(made);
    return code;
}
