/* SPDX-License-Identifier: MIT */
/*
 * Enqueue: ids, lanes, unique keys, the inbox, rows. Must never use an id twice or let two live jobs hold one unique
 * key. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"

/* A number no job ever had. Taken from the table once per transaction and put back at its end. */
int hfi_sqlite_ids_load(struct hfi_sqlite *store) {
    if (store->next_job == 0) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_META_GET);
        if (!statement)
            return store->fault;
        sqlite3_bind_text(statement, 1, "next_job", -1, SQLITE_STATIC);
        if (hfi_sql_row(store, statement))
            store->next_job = sqlite3_column_int64(statement, 0);
        hfi_sql_done(statement);
        if (store->next_job <= 0 && store->fault == 0)
            return hfi_sqlite_fault(store, SQLITE_CORRUPT);
    }
    return store->fault;
}

int hfi_sqlite_next_id(struct hfi_sqlite *store, int64_t *id) {
    hfi_sqlite_ids_load(store);
    *id = store->next_job++;
    store->ids_taken = true;
    return store->fault;
}

int hfi_sqlite_ids_flush(struct hfi_sqlite *store) {
    if (!store->ids_taken)
        return 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_META_SET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, "next_job", -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, store->next_job);
    return hfi_sql_run(store, statement);
}

/* Which job holds this one's unique key now; 0 none. */
int hfi_sqlite_unique_holder(struct hfi_sqlite *store, const struct hfi_job *job, int64_t *holder) {
    char scope[HFI_UNIQUE_SCOPE_MAX + 1];
    *holder = 0;
    if (!*job->unique_key)
        return 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_JOB_UNIQUE);
    if (!statement)
        return store->fault;
    hfi_unique_scope(scope, sizeof scope, job);
    sqlite3_bind_text(statement, 1, scope, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        *holder = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

static bool from_elsewhere(const struct hfi_job *job) {
    return *job->source && *job->source_message_id;
}

/* Was this message seen? Then the job it made, 0 when that is pruned. */
static int inbox_find(struct hfi_sqlite *store, struct hfi_put *put) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_INBOX_FIND);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, put->job.source, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, put->job.source_message_id, -1, SQLITE_STATIC);
    put->existed = hfi_sql_row(store, statement);
    if (put->existed)
        put->id = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    statement = put->existed ? hfi_sql(store, HFI_SQL_JOB_EXISTS) : NULL;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, put->id);
    if (!hfi_sql_row(store, statement))
        put->id = 0;
    hfi_sql_done(statement);
    return store->fault;
}

static int inbox_add(struct hfi_sqlite *store, const struct hfi_put *put) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_INBOX_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, put->job.source, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, put->job.source_message_id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, put->id);
    sqlite3_bind_int64(statement, 4, put->job.created_at_us);
    return hfi_sql_run(store, statement);
}

/* Lane and policy. */
static int place(struct hfi_sqlite *store, struct hfi_put *put) {
    struct hfi_job *job = &put->job;
    struct hfi_lane_texts lane = {job->queue, job->type, job->downstream, job->breaker_key, job->limit_key, false};
    if (hfi_sqlite_lane(store, &lane, &job->lane) == 0 && put->curve)
        hfi_sqlite_policy(store, put->curve, &job->policy);
    return store->fault;
}

static int insert(struct hfi_sqlite *store, struct hfi_put *put) {
    struct hfi_job *job = &put->job;
    if (place(store, put) != 0 || hfi_sqlite_next_id(store, &job->id) != 0)
        return store->fault;
    if (job->root_id == 0)
        job->root_id = job->id;
    put->id = job->id;
    return hfi_sqlite_insert_row(store, job) == 0 ? hfi_sqlite_deps_add(store, put) : store->fault;
}

bool hfi_sqlite_put_known(struct hfi_sqlite *store, const struct hfi_put *put) {
    struct hfi_put known = *put;
    int64_t holder = 0;
    if (from_elsewhere(&put->job) && inbox_find(store, &known) == 0 && known.existed)
        return true;
    return hfi_sqlite_unique_holder(store, &put->job, &holder) == 0 && holder != 0;
}

static int become(struct hfi_sqlite *store, struct hfi_put *put, const struct hfi_job *holder) {
    char key[HFI_KEY_MAX + 1];
    struct hfi_job job;
    if (place(store, put) != 0)
        return store->fault;
    hfi_replace_job(holder, &put->job, store->base.uuid, key, &job);
    return hfi_sqlite_become_row(store, &job);
}

/* The key is taken by job put->id. */
static int replace(struct hfi_sqlite *store, struct hfi_put *put) {
    struct hfi_job *holder;
    int code = hfi_sqlite_load(store, put->id, &holder);
    if (code != 0)
        return store->fault != 0 ? store->fault : hfi_sqlite_fault(store, SQLITE_CORRUPT); /* its key was found a moment ago */
    enum hfi_replace how = hfi_replace_how(holder);
    if (how == HFI_REPLACE_BECOMES) {
        become(store, put, holder);
    } else if (how == HFI_REPLACE_YIELDS) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_JOB_YIELD);
        put->existed = false;
        if (statement) {
            sqlite3_bind_int64(statement, 1, holder->id);
            hfi_sql_run(store, statement);
        }
        if (store->fault == 0)
            insert(store, put);
    }
    hfi_free(holder);
    return store->fault;
}

static int put_one(struct hfi_sqlite *store, struct hfi_put *put) {
    bool message = from_elsewhere(&put->job);
    put->existed = false;
    put->id = put->job.id = put->job.root_id = 0;
    if (message && inbox_find(store, put) != 0)
        return store->fault;
    if (put->existed)
        return 0;
    if (hfi_sqlite_unique_holder(store, &put->job, &put->id) != 0)
        return store->fault;
    put->existed = put->id != 0;
    if (put->existed && put->replace)
        replace(store, put);
    else if (!put->existed)
        insert(store, put);
    if (store->fault != 0)
        return store->fault;
    return message ? inbox_add(store, put) : 0;
}

int hfi_sqlite_op_put(struct hfi_sqlite *store, struct hfi_op_put *op) {
    if (store->full)
        return hfi_fail(op->op.error, HF_ENOSPC, store->path, "free space; it is taken up again by itself",
                        "the disk is full, nothing new is taken in");
    int code = hfi_sqlite_deps_check(store, op);
    if (code != 0)
        return code;
    for (size_t i = 0; i < op->count; i++) {
        put_one(store, &op->items[i]);
        op->items[i].job.policy = NULL; /* the store's, and good in this transaction only */
        if (store->fault != 0)
            return store->fault;
    }
    return 0;
}
