/* SPDX-License-Identifier: MIT */
/*
 * Statements: prepared once, stepped, reset; and how our values stand in SQL: absent texts, bytes and zeros are NULL.
 * Every failure becomes the transaction's fault. Must never leave a statement unreset. Writer thread, but for the
 * helpers of columns and bindings, which know no store.
 */
#include "jobs/store/sql.h"

#include <stdio.h>

#include "jobs/store/codes.h"
#include "jobs/store/internal.h"

const char *const hfi_sql_texts[HFI_SQL_COUNT] = {
#define TEXT(name, text) text,
    HFI_SQL_MAP(TEXT)
#undef TEXT
};

int hfi_sqlite_fault(struct hfi_sqlite *store, int native) {
    if (store->fault == 0) { /* the first one is the cause (I18) */
        bool late = hfi_deadline_ended(&store->deadline, native);
        store->fault = late ? HF_EBUSY : hfi_sqlite_code(native); /* for now: nothing of it was written */
        store->native = native;
        snprintf(store->why, sizeof store->why, "%s (SQLite %d)",
                 late ? "a statement of its transaction " HFI_DEADLINE_TEXT : sqlite3_errmsg(store->db), native);
    }
    return store->fault;
}

int hfi_sqlite_no_memory(struct hfi_sqlite *store) {
    if (store->fault == 0) {
        store->fault = HF_ENOMEM;
        store->native = SQLITE_NOMEM;
        snprintf(store->why, sizeof store->why, "out of memory");
    }
    return store->fault;
}

sqlite3_stmt *hfi_sql(struct hfi_sqlite *store, enum hfi_sql which) {
    if (store->fault != 0)
        return NULL;
    if (!store->statements[which]) {
        int native = sqlite3_prepare_v3(store->db, hfi_sql_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                        &store->statements[which], NULL);
        if (native != SQLITE_OK) {
            hfi_sqlite_fault(store, native);
            return NULL;
        }
    }
    return store->statements[which];
}

void hfi_sql_done(sqlite3_stmt *statement) {
    sqlite3_reset(statement);
}

bool hfi_sql_row(struct hfi_sqlite *store, sqlite3_stmt *statement) {
    if (store->fault != 0) /* SQLite may have rolled back already: nothing may follow outside a transaction */
        return false;
    int native = sqlite3_step(statement);
    store->rows_read += native == SQLITE_ROW;
    if (native == SQLITE_ROW)
        return true;
    if (native != SQLITE_DONE)
        hfi_sqlite_fault(store, native);
    return false;
}

int hfi_sql_run(struct hfi_sqlite *store, sqlite3_stmt *statement) {
    int native = store->fault != 0 ? SQLITE_DONE : sqlite3_step(statement); /* as for rows */
    if (native != SQLITE_DONE && native != SQLITE_ROW)
        hfi_sqlite_fault(store, native);
    hfi_sql_done(statement);
    return store->fault;
}

void hfi_bind_text(sqlite3_stmt *statement, int at, const char *text) {
    if (text && *text)
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, at);
}

void hfi_bind_number(sqlite3_stmt *statement, int at, int64_t number) {
    if (number != 0)
        sqlite3_bind_int64(statement, at, number);
    else
        sqlite3_bind_null(statement, at);
}

void hfi_bind_bytes(sqlite3_stmt *statement, int at, const void *bytes, size_t length) {
    if (bytes && length > 0)
        sqlite3_bind_blob64(statement, at, bytes, length, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, at);
}

const char *hfi_column_text(sqlite3_stmt *statement, int at) {
    const char *text = (const char *)sqlite3_column_text(statement, at);
    return text ? text : "";
}

int hfi_sqlite_audit(struct hfi_sqlite *store, struct hf_wall now, const char *actor, const char *action,
                     const char *subject, int64_t id, const char *reason, const char *detail) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_AUDIT_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, now.us);
    sqlite3_bind_text(statement, 2, actor ? actor : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, action, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, subject, -1, SQLITE_STATIC);
    hfi_bind_number(statement, 5, id);
    hfi_bind_text(statement, 6, reason);
    hfi_bind_text(statement, 7, detail);
    return hfi_sql_run(store, statement);
}
