/* SPDX-License-Identifier: MIT */
/*
 * Handles: how one is opened and what is set on each. Must never let a handle checkpoint by itself, parse a path as a
 * URI, or take a double-quoted word for a string. Any thread.
 */
#include <stdio.h>

#include "base/text.h"
#include "jobs/store/codes.h"
#include "jobs/store/internal.h"

int hfi_sqlite_fail(struct hf_error *error, sqlite3 *db, int native, const char *what) {
    int code = hfi_sqlite_code(native);
    const char *fix = code == HF_ENOSPC ? "free some space on its disk" : NULL;
    hfi_fail(error, code, what, fix, code == HF_ENOSPC ? "no space left: %s (SQLite %d)" : "%s (SQLite %d)", db ? sqlite3_errmsg(db) : sqlite3_errstr(native), native);
    if (error)
        error->native = native;
    return code;
}

/* The one number a statement gives; SQLite's code. */
int hfi_sqlite_number(sqlite3 *db, const char *sql, int64_t *value) {
    sqlite3_stmt *statement;
    int native = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    native = sqlite3_step(statement);
    if (native == SQLITE_ROW)
        *value = sqlite3_column_int64(statement, 0);
    int finished = sqlite3_finalize(statement);
    return native == SQLITE_ROW ? SQLITE_OK : native == SQLITE_DONE ? SQLITE_NOTFOUND : finished;
}

static void configure(sqlite3 *db) {
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, HFI_BUSY_TIMEOUT_MS);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_wal_autocheckpoint(db, 0);
}

/* Pragmas that write nothing to the file. */
static int set(sqlite3 *db, bool reader) {
    const char *pragmas = reader ? "PRAGMA query_only = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
                                   "PRAGMA cell_size_check = ON;"
                                 : "PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
                                   "PRAGMA cell_size_check = ON; PRAGMA secure_delete = FAST;"
                                   "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;";
    return sqlite3_exec(db, pragmas, NULL, NULL, NULL);
}

int hfi_sqlite_connect(const char *path, bool reader, sqlite3 **db, struct hf_error *error) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (reader ? 0 : SQLITE_OPEN_CREATE);
    *db = NULL;
    int native = sqlite3_open_v2(path, db, flags, NULL);
    if (native == SQLITE_OK) {
        configure(*db);
        native = set(*db, reader);
    }
    if (native == SQLITE_OK)
        return 0;
    int code = hfi_sqlite_fail(error, *db, native, path);
    sqlite3_close(*db);
    *db = NULL;
    return code;
}
