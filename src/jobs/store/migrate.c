/* SPDX-License-Identifier: MIT */
/*
 * Makes a new file ours and brings an older one up to date, each version in one transaction with its number. Must never
 * touch a file that was not checked before. The opening thread.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "jobs/store/codes.h"
#include "jobs/store/internal.h"
#include "jobs/store/schema.h"

/* In this order: auto_vacuum after the log mode would silently be none, and the mark must be in the file itself. */
static int found_file(struct hfi_sqlite *store, struct hf_error *error) {
    char pragmas[160];
    snprintf(pragmas, sizeof pragmas, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = %d;", HFI_APPLICATION_ID);
    int native = sqlite3_exec(store->db, pragmas, NULL, NULL, NULL);
    return native == SQLITE_OK ? 0 : hfi_sqlite_fail(error, store->db, native, store->path);
}

static int set_log(struct hfi_sqlite *store, struct hf_error *error) {
    sqlite3_stmt *statement;
    int native = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (native != SQLITE_OK)
        return hfi_sqlite_fail(error, store->db, native, store->path);
    native = sqlite3_step(statement);
    bool log = native == SQLITE_ROW && sqlite3_stricmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    int finished = sqlite3_finalize(statement);
    if (!log && finished != SQLITE_OK)
        return hfi_sqlite_fail(error, store->db, finished, store->path);
    if (!log)
        return hfi_fail(error, HF_ENOTSUP, store->path, "use a local disk", "the write-ahead log is not possible here");
    native = sqlite3_exec(store->db, store->base.options.normal_sync ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL",
                          NULL, NULL, NULL);
    return native == SQLITE_OK ? 0 : hfi_sqlite_fail(error, store->db, native, store->path);
}

static int run_parts(sqlite3 *db, int to) {
    int native = SQLITE_OK;
    for (int part = 0; native == SQLITE_OK && hfi_schema_step(to, part); part++)
        native = sqlite3_exec(db, hfi_schema_step(to, part), NULL, NULL, NULL);
    return native;
}

static int finish_step(sqlite3 *db, int to) {
    char text[256], uuid[40];
    snprintf(text, sizeof text,
             "PRAGMA user_version = %d;"
             "UPDATE meta SET value = %d WHERE key = 'schema'; UPDATE meta SET value = %d WHERE key = 'min_reader';"
             "UPDATE meta SET value = %d WHERE key = 'min_writer';",
             to, to, HFI_SCHEMA_MIN_READER, HFI_SCHEMA_MIN_WRITER);
    int native = sqlite3_exec(db, text, NULL, NULL, NULL);
    if (native != SQLITE_OK || to != 1)
        return native;
    snprintf(text, sizeof text, "INSERT INTO meta VALUES ('store_uuid', '%s');", hfi_uuid(uuid));
    return sqlite3_exec(db, text, NULL, NULL, NULL);
}

/* One version up, unless another process was faster. SQLite's code. */
static int step(struct hfi_sqlite *store, int64_t *version) {
    sqlite3 *db = store->db;
    int native = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (native == SQLITE_OK)
        native = hfi_sqlite_number(db, "PRAGMA user_version", version);
    if (native == SQLITE_OK && *version < HFI_SCHEMA) {
        int to = (int)*version + 1;
        native = run_parts(db, to);
        if (native == SQLITE_OK)
            native = finish_step(db, to);
        if (native == SQLITE_OK)
            *version = to;
    }
    if (native == SQLITE_OK)
        native = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (native != SQLITE_OK && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return native;
}

int hfi_sqlite_migrate(struct hfi_sqlite *store, struct hf_error *error) {
    int64_t id = 0, version = 0;
    int native = hfi_sqlite_number(store->db, "PRAGMA application_id", &id);
    if (native == SQLITE_OK)
        native = hfi_sqlite_number(store->db, "PRAGMA user_version", &version);
    if (native != SQLITE_OK)
        return hfi_sqlite_fail(error, store->db, native, store->path);
    int code = id == 0 ? found_file(store, error) : 0;
    if (code == 0)
        code = set_log(store, error);
    if (code != 0)
        return code;
    int64_t before = version;
    bool shared = before > 0 && version < HFI_SCHEMA; /* others may be at work in it */
    if (shared && hfi_sqlite_gate_enter(store) != 0)
        return hfi_fail(error, HF_EIO, store->path, NULL, "%s", store->why);
    while (native == SQLITE_OK && version < HFI_SCHEMA)
        native = step(store, &version);
    if (shared)
        hfi_sqlite_gate_leave(store);
    if (native != SQLITE_OK)
        return hfi_sqlite_fail(error, store->db, native, store->path);
    store->migrated = before > 0 && version > before;
    return 0;
}
