/* SPDX-License-Identifier: MIT */
/*
 * Retention: rows whose time is over, in small chunks. Jobs are found by walking the table by id, a bounded stretch per
 * call, so that no index has to be kept for it; settled letters by their own index, and their alerts go with them. Must
 * never remove an open dead letter or an alert that nobody got, nor look at more rows in a call than is said here. Writer
 * thread.
 */
#include "base/alloc.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"

#define LOOKED_AT 20000    /* jobs of one call */
#define LETTERS_LOOKED_AT 1000

struct doomed {
    int64_t id;
    int state;
    bool has_spec;
};

/* Walks on from where the last call ended; at most once around. */
static size_t find_jobs(struct hfi_sqlite *store, const struct hfi_op_prune *op, struct doomed *doomed, size_t room) {
    size_t found = 0;
    int64_t looked = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_PRUNE_LOOK);
    if (!statement)
        return 0;
    sqlite3_bind_int64(statement, 1, store->prune_cursor);
    sqlite3_bind_int64(statement, 2, LOOKED_AT);
    while (found < room && hfi_sql_row(store, statement)) {
        int state = sqlite3_column_int(statement, 1);
        looked++;
        store->prune_cursor = sqlite3_column_int64(statement, 0);
        if (sqlite3_column_int64(statement, 2) < hfi_kept_since(op, state))
            doomed[found++] = (struct doomed){store->prune_cursor, state, sqlite3_column_int(statement, 3) != 0};
    }
    hfi_sql_done(statement);
    if (found < room && looked < LOOKED_AT)
        store->prune_cursor = 0;
    return found;
}

static int remove_job(struct hfi_sqlite *store, const struct doomed *doomed) {
    static const enum hfi_sql steps[] = {HFI_SQL_PRUNE_HISTORY, HFI_SQL_PRUNE_ERRORS, HFI_SQL_PRUNE_JOB, HFI_SQL_PRUNE_SPEC,
                                         HFI_SQL_CHECKPOINT_DROP, HFI_SQL_PRUNE_DEPS, HFI_SQL_PRUNE_PARENT};
    bool deps = hfi_sqlite_deps_any(store);
    if (hfi_sqlite_deps_pending(store, doomed->id))
        return store->fault; /* the next round finds it */
    if (doomed->has_spec && hfi_sqlite_tags_drop(store, doomed->id) != 0)
        return store->fault;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        bool no_rows = (steps[i] == HFI_SQL_PRUNE_SPEC && !doomed->has_spec) ||
                       ((steps[i] == HFI_SQL_PRUNE_DEPS || steps[i] == HFI_SQL_PRUNE_PARENT) && !deps);
        if (no_rows)
            continue;
        sqlite3_stmt *statement = hfi_sql(store, steps[i]);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, doomed->id);
        if (steps[i] == HFI_SQL_PRUNE_PARENT)
            sqlite3_bind_int(statement, 2, doomed->state == HF_JOB_SUCCEEDED);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    hfi_sqlite_count(store, doomed->state, -1);
    return 0;
}

static void prune_stretch(struct hfi_sqlite *store, struct hfi_op_prune *op, struct doomed *doomed) {
    size_t found = find_jobs(store, op, doomed, op->limit - op->pruned);
    for (size_t i = 0; i < found && store->fault == 0; i++)
        remove_job(store, &doomed[i]);
    op->pruned += (uint32_t)found;
}

static int prune_jobs(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    if (op->succeeded_before == 0 && op->cancelled_before == 0 && op->dead_before == 0 && op->quarantined_before == 0)
        return 0;
    struct doomed *doomed = hfi_alloc_array(op->limit, sizeof *doomed);
    if (!doomed)
        return hfi_sqlite_no_memory(store);
    bool from_middle = store->prune_cursor != 0;
    prune_stretch(store, op, doomed);
    if (from_middle && store->prune_cursor == 0 && op->pruned < op->limit && store->fault == 0)
        prune_stretch(store, op, doomed); /* the end came first: from the start again */
    else if (store->prune_cursor != 0)
        op->more = true;
    hfi_free(doomed);
    return store->fault;
}

/* ------------------------------------------------------------------ dead letters */

static int remove_letter(struct hfi_sqlite *store, int64_t id) {
    static const enum hfi_sql steps[] = {HFI_SQL_PRUNE_ALERTS, HFI_SQL_PRUNE_DEAD};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sqlite3_stmt *statement = hfi_sql(store, steps[i]);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, id);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    return 0;
}

/* As find_jobs, in the order in which they were settled: such as an alert holds back are passed over. */
static size_t find_letters(struct hfi_sqlite *store, const struct hfi_op_prune *op, int64_t *doomed, size_t room) {
    size_t found = 0, looked = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_PRUNE_DEAD_LOOK);
    if (!statement)
        return 0;
    sqlite3_bind_int64(statement, 1, store->letters_settled_us);
    sqlite3_bind_int64(statement, 2, store->letters_id);
    sqlite3_bind_int64(statement, 3, op->dead_letters_before);
    sqlite3_bind_int64(statement, 4, LETTERS_LOOKED_AT);
    while (found < room && hfi_sql_row(store, statement)) {
        looked++;
        store->letters_settled_us = sqlite3_column_int64(statement, 0);
        store->letters_id = sqlite3_column_int64(statement, 1);
        if (sqlite3_column_int(statement, 2) == 0)
            doomed[found++] = store->letters_id;
    }
    hfi_sql_done(statement);
    if (found < room && looked < LETTERS_LOOKED_AT)
        store->letters_settled_us = store->letters_id = 0;
    return found;
}

static void letters_stretch(struct hfi_sqlite *store, struct hfi_op_prune *op, int64_t *doomed) {
    size_t found = find_letters(store, op, doomed, op->limit - op->pruned);
    for (size_t i = 0; i < found && store->fault == 0; i++)
        remove_letter(store, doomed[i]);
    op->pruned += (uint32_t)found;
}

static int prune_letters(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    if (op->dead_letters_before == 0 || op->pruned >= op->limit)
        return 0;
    int64_t *doomed = hfi_alloc_array(op->limit - op->pruned, sizeof *doomed);
    if (!doomed)
        return hfi_sqlite_no_memory(store);
    bool from_middle = store->letters_id != 0;
    letters_stretch(store, op, doomed);
    if (from_middle && store->letters_id == 0 && op->pruned < op->limit && store->fault == 0)
        letters_stretch(store, op, doomed); /* the end came first: from the start again */
    else if (store->letters_id != 0)
        op->more = true;
    hfi_free(doomed);
    return store->fault;
}

/* Messages; `inbox_before` 0 keeps them. */
static int prune_messages(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    if (op->inbox_before == 0 || op->pruned >= op->limit)
        return 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_PRUNE_INBOX);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->inbox_before);
    sqlite3_bind_int64(statement, 2, op->limit - op->pruned);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    op->pruned += (uint32_t)sqlite3_changes(store->db);
    return 0;
}

int hfi_sqlite_op_prune(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    op->pruned = 0;
    op->more = false;
    if (op->limit == 0)
        return 0;
    if (prune_jobs(store, op) == 0 && prune_letters(store, op) == 0)
        prune_messages(store, op);
    op->more = op->more || op->pruned >= op->limit;
    if (store->fault == 0)
        hfi_sqlite_rates_prune(store, op->now, op->limit);
    return store->fault;
}
