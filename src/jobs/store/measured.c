/* SPDX-License-Identifier: MIT */
/*
 * Measured attempts: one row for each downstream and hour, read, added to and written again about once a minute. Must
 * never refuse what is new because what is stored is damaged. The operation: writer thread; the look: any thread but loop
 * and writer.
 */
#include "jobs/measuring.h"

#include "base/alloc.h"
#include "jobs/store/internal.h"

static int store_row(struct hfi_sqlite *store, const struct hfi_op_measure *op, int64_t hour, const void *bytes,
                     size_t length) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_MEASURED_SET);
    if (!statement)
        return store->fault;
    hfi_bind_text(statement, 1, op->key);
    sqlite3_bind_int64(statement, 2, hour);
    hfi_bind_bytes(statement, 3, bytes, length);
    return hfi_sql_run(store, statement);
}

static int add(struct hfi_sqlite *store, const struct hfi_op_measure *op, int64_t hour) {
    unsigned char *sum = NULL;
    size_t length = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_MEASURED_GET);
    if (!statement)
        return store->fault;
    hfi_bind_text(statement, 1, op->key);
    sqlite3_bind_int64(statement, 2, hour);
    bool there = hfi_sql_row(store, statement);
    const void *stored = there ? sqlite3_column_blob(statement, 0) : NULL;
    size_t stored_length = there ? (size_t)sqlite3_column_bytes(statement, 0) : 0;
    int code = store->fault != 0 ? store->fault
                                 : hfi_measured_merge(stored, stored_length, op->bytes, op->length, &sum, &length);
    hfi_sql_done(statement);
    if (code == HF_ENOMEM)
        code = hfi_sqlite_no_memory(store);
    if (code == 0)
        code = store_row(store, op, hour, sum, length);
    hfi_free(sum);
    return code;
}

static int forget(struct hfi_sqlite *store, struct hfi_op_measure *op, int64_t hour) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_MEASURED_FORGET);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, hour - HFI_MEASURED_HOURS);
    sqlite3_bind_int64(statement, 2, HFI_MEASURED_FORGET);
    if (hfi_sql_run(store, statement) == 0)
        op->more = sqlite3_changes(store->db) == HFI_MEASURED_FORGET;
    return store->fault;
}

int hfi_sqlite_op_measure(struct hfi_sqlite *store, struct hfi_op_measure *op) {
    int64_t hour = hfi_measured_hour(op->now.us);
    op->more = false;
    int code = add(store, op, hour);
    return code != 0 ? code : forget(store, op, hour);
}

int hfi_sqlite_look_measured(struct hfi_store *self, const char *key, int64_t from_hour, hfi_measured_fn each, void *user,
                             struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    sqlite3_stmt *statement = NULL;
    bool goes_on = true;
    int code = hfi_sqlite_read_begin(store, error);
    if (code != 0)
        return code;
    int native = sqlite3_prepare_v2(store->reader,
                                    "SELECT hour, spreads FROM measured WHERE downstream = ?1 AND hour >= ?2 ORDER BY hour", -1,
                                    &statement, NULL);
    if (native == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, from_hour);
        while (goes_on && (native = sqlite3_step(statement)) == SQLITE_ROW)
            goes_on = each(sqlite3_column_int64(statement, 0), sqlite3_column_blob(statement, 1),
                           (size_t)sqlite3_column_bytes(statement, 1), user);
    }
    sqlite3_finalize(statement);
    return hfi_sqlite_read_end(store, goes_on ? native : SQLITE_NOMEM, "measured", error);
}
