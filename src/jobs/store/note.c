/* SPDX-License-Identifier: MIT */
/*
 * What a handler leaves on its running job: progress in the row, the checkpoint in a table of its own. Must never write
 * for anybody but the owner of that epoch. Writer thread.
 */
#include "base/text.h"
#include "jobs/store/internal.h"

sqlite3_stmt *hfi_sqlite_checkpoint(struct hfi_sqlite *store, struct hfi_job *job) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_CHECKPOINT_GET);
    if (!statement)
        return NULL;
    sqlite3_bind_int64(statement, 1, job->id);
    if (!hfi_sql_row(store, statement)) {
        hfi_sql_done(statement);
        return NULL;
    }
    job->checkpoint = sqlite3_column_blob(statement, 0);
    job->checkpoint_length = (size_t)sqlite3_column_bytes(statement, 0);
    return statement;
}

static sqlite3_stmt *owned(struct hfi_sqlite *store, enum hfi_sql which, const struct hfi_op_note *op) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (statement) {
        sqlite3_bind_int64(statement, 1, op->id);
        sqlite3_bind_int64(statement, 2, op->epoch);
    }
    return statement;
}

static int write_progress(struct hfi_sqlite *store, const struct hfi_op_note *op, bool *written) {
    sqlite3_stmt *statement = owned(store, HFI_SQL_NOTE_PROGRESS, op);
    if (!statement)
        return store->fault;
    hfi_bind_number(statement, 3, op->progress);
    hfi_bind_text(statement, 4, op->text);
    if (hfi_sql_run(store, statement) == 0)
        *written = sqlite3_changes(store->db) > 0;
    return store->fault;
}

static int write_checkpoint(struct hfi_sqlite *store, const struct hfi_op_note *op, bool *written) {
    sqlite3_stmt *statement = owned(store, HFI_SQL_NOTE_ALLOWED, op);
    if (!statement)
        return store->fault;
    *written = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    if (!*written || store->fault != 0)
        return store->fault;
    statement = hfi_sql(store, op->length > 0 ? HFI_SQL_CHECKPOINT_SET : HFI_SQL_CHECKPOINT_DROP);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->id);
    if (op->length > 0)
        hfi_bind_bytes(statement, 2, op->checkpoint, op->length);
    return hfi_sql_run(store, statement);
}

int hfi_sqlite_op_note(struct hfi_sqlite *store, struct hfi_op_note *op) {
    bool written = true;
    if (op->set & HFI_NOTE_PROGRESS && write_progress(store, op, &written) != 0)
        return store->fault;
    if (written && op->set & HFI_NOTE_CHECKPOINT && write_checkpoint(store, op, &written) != 0)
        return store->fault;
    return written ? 0
                   : hfi_fail(op->op.error, HF_ESTALE, "job", NULL, "%lld has another owner by now, or is gone",
                              (long long)op->id);
}
