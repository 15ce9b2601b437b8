/* SPDX-License-Identifier: MIT */
/*
 * Dead letters from an export, into SQLite. Must never take one in twice, alert anybody, or mix up the ids of two stores.
 * Writer thread.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/letter.h"
#include "jobs/store/internal.h"

static int find_by(struct hfi_sqlite *store, sqlite3_stmt *statement, int64_t *id) {
    *id = hfi_sql_row(store, statement) ? sqlite3_column_int64(statement, 0) : 0;
    hfi_sql_done(statement);
    return store->fault;
}

static int find_number(struct hfi_sqlite *store, enum hfi_sql which, int64_t first, int64_t second, int64_t *id) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, first);
    if (which == HFI_SQL_DEAD_OF_JOB)
        sqlite3_bind_int64(statement, 2, second);
    return find_by(store, statement, id);
}

static int find_text(struct hfi_sqlite *store, enum hfi_sql which, const char *first, const char *second, int64_t *id) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, first, -1, SQLITE_STATIC);
    if (second)
        sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC);
    return find_by(store, statement, id);
}

int hfi_sqlite_find_origin(struct hfi_sqlite *store, const char *origin, int64_t *id) {
    struct hf_dead_view letter = {.origin = origin};
    int64_t own = hfi_letter_own(&letter, store->base.uuid);
    *id = 0;
    if (own != 0 && (find_number(store, HFI_SQL_DEAD_LOAD_ID, own, 0, id) != 0 || *id != 0))
        return store->fault;
    return find_text(store, HFI_SQL_DEAD_OF_ORIGIN, origin, NULL, id);
}

/* The letter that is there already, as itself, as an import, as the same death or the same message; 0 none. */
static int find_known(struct hfi_sqlite *store, const struct hf_dead_view *letter, const struct hfi_job *job, int64_t *id) {
    if (hfi_sqlite_find_origin(store, letter->origin, id) != 0 || *id != 0)
        return store->fault;
    if (job->id != 0)
        return find_number(store, HFI_SQL_DEAD_OF_JOB, job->id, letter->death_no, id);
    if (letter->job_id == 0 && *job->source_message_id)
        return find_text(store, HFI_SQL_DEAD_OF_MESSAGE, job->source, job->source_message_id, id);
    return store->fault;
}

static int write_rest(struct hfi_sqlite *store, const struct hf_dead_view *letter, bool own, int64_t id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_IMPORTED);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    hfi_bind_text(statement, 2, letter->node);
    sqlite3_bind_int(statement, 3, letter->status);
    hfi_bind_number(statement, 4, letter->settled_at_us);
    hfi_bind_text(statement, 5, letter->settled_by);
    hfi_bind_text(statement, 6, letter->settled_reason);
    hfi_bind_number(statement, 7, own ? letter->new_job_id : 0);
    hfi_bind_text(statement, 8, letter->new_job_outcome);
    return hfi_sql_run(store, statement);
}

static int take(struct hfi_sqlite *store, const struct hf_dead_view *letter, int64_t *id, bool *existed) {
    struct hfi_change change = {.has_death = true};
    struct hfi_curve curve;
    bool own = hfi_letter_own(letter, store->base.uuid) != 0;
    hfi_letter_take(letter, own, &curve, &change.job, &change.death);
    if (find_known(store, letter, &change.job, id) != 0)
        return store->fault;
    *existed = *id != 0;
    if (*existed)
        return 0;
    if (change.job.policy && hfi_sqlite_policy(store, &curve, &change.job.policy) != 0)
        return store->fault;
    if (hfi_sqlite_write_death(store, &change, letter->max_executions, NULL, 0, id) != 0)
        return store->fault;
    return write_rest(store, letter, own, *id);
}

/* Does it go with what its job knows, where it is this store's? 0, HF_EINVAL or a fault. */
static int check_home(struct hfi_sqlite *store, const struct hf_dead_view *letter, struct hf_error *error) {
    struct hfi_job *job = NULL, taken;
    struct hfi_death death;
    struct hfi_curve curve;
    int64_t known, deaths = -1;
    if (letter->job_id == 0 || hfi_letter_own(letter, store->base.uuid) == 0)
        return 0;
    hfi_letter_take(letter, true, &curve, &taken, &death);
    if (find_known(store, letter, &taken, &known) != 0 || known != 0 || hfi_sqlite_ids_load(store) != 0)
        return store->fault;
    if (hfi_sqlite_load(store, letter->job_id, &job) == 0)
        deaths = job->deaths;
    hfi_free(job);
    return store->fault != 0 ? store->fault : hfi_letter_home(letter, deaths, store->next_job, error);
}

int hfi_sqlite_op_import(struct hfi_sqlite *store, struct hfi_op_import *op) {
    size_t fresh = 0;
    char detail[64];
    if (store->full)
        return hfi_fail(op->op.error, HF_ENOSPC, store->path, "free space; it is taken up again by itself",
                        "the disk is full, nothing new is taken in");
    for (size_t i = 0; i < op->count; i++) { /* all of them before the first is taken in */
        int code = check_home(store, &op->letters[i], op->op.error);
        if (code != 0 && store->fault == 0 && op->op.error)
            op->op.error->line = (int)i + 1;
        if (code != 0)
            return code;
    }
    for (size_t i = 0; i < op->count; i++) {
        if (take(store, &op->letters[i], &op->ids[i], &op->existed[i]) != 0)
            return store->fault;
        fresh += !op->existed[i];
    }
    if (fresh == 0)
        return 0;
    snprintf(detail, sizeof detail, "%zu imported", fresh);
    return hfi_sqlite_audit(store, op->now, op->actor, "dead.import", "dead", 0, NULL, detail);
}
