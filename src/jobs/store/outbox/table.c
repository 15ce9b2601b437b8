/* SPDX-License-Identifier: MIT */
/*
 * The outbox table in the application's own file: its DDL and the row that C code writes into it. Must never commit, roll
 * back or begin anything: the transaction is the caller's. The thread of the caller's handle.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "holdfast/queue.h"
#include "jobs/store/internal.h"
#include "jobs/store/outbox/outbox.h"
#include "jobs/store/codes.h"

#define PAYLOAD_CEILING (64u << 20) /* the node's own limit is not known here */
#define WAIT_LENGTH 25              /* of one wait in a curve, with its comma */

const char *const hfi_outbox_columns[HFI_OUTBOX_COLUMNS] = {
#define COLUMN_NAME(name, text) text,
    HFI_OUTBOX_MAP(COLUMN_NAME)
#undef COLUMN_NAME
};

/* No column but the key has a constraint: a row that is wrong must not undo the application's transaction, it becomes
 * a dead letter. Ids of messages are random, so that a restored copy of the file never uses one twice. */
const char *hf_outbox_ddl(void) {
    return "CREATE TABLE IF NOT EXISTS holdfast_outbox(\n"
           "  id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
           "  type TEXT,\n"
           "  payload BLOB,\n"
           "  message_id TEXT DEFAULT (lower(hex(randomblob(16)))),\n"
           "  queue TEXT,\n"
           "  priority INTEGER,\n"
           "  run_at,\n"
           "  expires_at,\n"
           "  max_executions INTEGER,\n"
           "  curve TEXT,\n"
           "  downstream TEXT,\n"
           "  limit_name TEXT,\n"
           "  limit_key TEXT,\n"
           "  unique_key TEXT,\n"
           "  on_conflict TEXT,\n"
           "  unique_window_ms INTEGER,\n"
           "  unique_states INTEGER,\n"
           "  idempotency_key TEXT,\n"
           "  correlation_id TEXT,\n"
           "  trace_context TEXT,\n"
           "  tags TEXT,\n"
           "  content_type TEXT,\n"
           "  source TEXT,\n"
           "  created_at INTEGER DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000)\n"
           ");\n";
}

int hfi_outbox_fail(struct hf_error *error, sqlite3 *db, int native, const char *what) {
    const char *why = db ? sqlite3_errmsg(db) : sqlite3_errstr(native);
    int code = hfi_sqlite_code(native);
    const char *fix = NULL;
    if ((native & 0xff) == SQLITE_ERROR && strncmp(why, "no such table", strlen("no such table")) == 0) {
        code = HF_ENOENT;
        fix = "create it with the statement of docs/outbox.md, or hf_outbox_create_in_sqlite";
    } else if ((native & 0xff) == SQLITE_ERROR) {
        code = HF_EINVAL;
        fix = "compare the table with docs/outbox.md";
    }
    hfi_fail(error, code, what, fix, "%s (SQLite %d)", why, native);
    if (error)
        error->native = native;
    return code;
}

int hf_outbox_create_in_sqlite(struct sqlite3 *db, struct hf_error *error) {
    if (!db)
        return hfi_fail(error, HF_EINVAL, "outbox", NULL, "no handle");
    int native = sqlite3_exec(db, hf_outbox_ddl(), NULL, NULL, NULL);
    return native == SQLITE_OK ? 0 : hfi_outbox_fail(error, db, native, HF_OUTBOX_TABLE);
}

/* What the spec says and the row can carry; the spec was checked. `curve` has room for it. */
static void bind(sqlite3_stmt *statement, const struct hf_job_spec *spec, const struct hfi_job *job, char *curve) {
    size_t at = 0;
    for (uint32_t i = 0; i < spec->curve_length; i++)
        at += (size_t)snprintf(curve + at, WAIT_LENGTH, "%s%" PRId64 "ms", i > 0 ? "," : "", spec->curve_ms[i]);
    hfi_bind_text(statement, HFI_OUTBOX_CURVE + 1, curve);
    hfi_bind_text(statement, HFI_OUTBOX_MESSAGE_ID + 1, spec->source_message_id);
    hfi_bind_text(statement, HFI_OUTBOX_TYPE + 1, spec->type);
    sqlite3_bind_blob64(statement, HFI_OUTBOX_PAYLOAD + 1, spec->payload_length > 0 ? spec->payload : "", spec->payload_length,
                        SQLITE_STATIC);
    hfi_bind_text(statement, HFI_OUTBOX_QUEUE + 1, spec->queue);
    hfi_bind_number(statement, HFI_OUTBOX_PRIORITY + 1, spec->priority);
    hfi_bind_number(statement, HFI_OUTBOX_RUN_AT + 1, spec->run_at_us);
    hfi_bind_number(statement, HFI_OUTBOX_EXPIRES_AT + 1, spec->expires_at_us);
    hfi_bind_number(statement, HFI_OUTBOX_MAX_EXECUTIONS + 1, spec->max_executions);
    hfi_bind_text(statement, HFI_OUTBOX_DOWNSTREAM + 1, spec->downstream);
    hfi_bind_text(statement, HFI_OUTBOX_LIMIT_NAME + 1, spec->limit_name);
    hfi_bind_text(statement, HFI_OUTBOX_LIMIT_KEY + 1, spec->limit_key);
    hfi_bind_text(statement, HFI_OUTBOX_UNIQUE_KEY + 1, job->unique_key);
    hfi_bind_text(statement, HFI_OUTBOX_ON_CONFLICT + 1, spec->on_conflict == HF_UNIQUE_REPLACE ? "replace" : NULL);
    hfi_bind_number(statement, HFI_OUTBOX_UNIQUE_WINDOW_MS + 1, spec->unique_window_ms);
    hfi_bind_number(statement, HFI_OUTBOX_UNIQUE_STATES + 1, spec->unique_states);
    hfi_bind_text(statement, HFI_OUTBOX_IDEMPOTENCY_KEY + 1, spec->idempotency_key);
    hfi_bind_text(statement, HFI_OUTBOX_CORRELATION_ID + 1, spec->correlation_id);
    hfi_bind_text(statement, HFI_OUTBOX_TRACE_CONTEXT + 1, spec->trace_context);
    hfi_bind_text(statement, HFI_OUTBOX_TAGS + 1, spec->tags);
    hfi_bind_text(statement, HFI_OUTBOX_CONTENT_TYPE + 1, spec->content_type);
    hfi_bind_text(statement, HFI_OUTBOX_SOURCE + 1, spec->source);
}

/* All columns but created_at, in the order of the map; a message id that nobody gave is made up. */
static void insert_sql(char *sql, size_t room) {
    size_t at = (size_t)snprintf(sql, room, "INSERT INTO main." HF_OUTBOX_TABLE "(");
    for (int i = 0; i < HFI_OUTBOX_CREATED_AT; i++)
        at += (size_t)snprintf(sql + at, room - at, "%s%s", i > 0 ? ", " : "", hfi_outbox_columns[i]);
    at += (size_t)snprintf(sql + at, room - at, ") VALUES (ifnull(?1, lower(hex(randomblob(16))))");
    for (int i = 1; i < HFI_OUTBOX_CREATED_AT; i++)
        at += (size_t)snprintf(sql + at, room - at, ", ?%d", i + 1);
    snprintf(sql + at, room - at, ")");
}

int hf_enqueue_in_sqlite(struct sqlite3 *db, const struct hf_job_spec *given, int64_t *row, struct hf_error *error) {
    struct hf_job_spec spec;
    struct hfi_job job;
    struct hfi_spec_room room;
    char sql[1000], curve[HF_CURVE_MAX * WAIT_LENGTH + 1] = "";
    sqlite3_stmt *statement;
    if (!db)
        return hfi_fail(error, HF_EINVAL, "outbox", NULL, "no handle");
    int code = hfi_spec_check(given, (struct hf_wall){0}, PAYLOAD_CEILING, &job, &room, error);
    if (code != 0)
        return code;
    hf_job_spec_init(&spec);
    memcpy(&spec, given, given->size < sizeof spec ? given->size : sizeof spec);
    if (spec.after_count > 0)
        return hfi_fail(error, HF_EINVAL, "after_jobs", "enqueue it in the store", "an outbox knows no ids of jobs");
    insert_sql(sql, sizeof sql);
    int native = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (native != SQLITE_OK)
        return hfi_outbox_fail(error, db, native, HF_OUTBOX_TABLE);
    bind(statement, &spec, &job, curve);
    native = sqlite3_step(statement);
    code = native == SQLITE_DONE ? 0 : hfi_outbox_fail(error, db, sqlite3_extended_errcode(db), HF_OUTBOX_TABLE);
    sqlite3_finalize(statement);
    if (code == 0 && row)
        *row = sqlite3_last_insert_rowid(db);
    return code;
}
