/* SPDX-License-Identifier: MIT */
/*
 * The application's file: opened, read, rows deleted. It is the application's: nothing is created in it, no checkpoint
 * is made, and its write lock is held for one short deletion at a time. Must never delete a row that is not the one that
 * was read. The relay's thread; hf_outbox_look any.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "jobs/store/outbox/outbox.h"

#define BUSY_MS 250              /* longest wait for the application's own locks */
#define BATCH_BYTES (4u << 20)

const char *hfi_outbox_path(const char *file) {
    static const char scheme[] = "sqlite:";
    return strncmp(file, scheme, sizeof scheme - 1) == 0 ? file + sizeof scheme - 1 : file;
}

void hfi_outbox_close(struct hfi_outbox_file *file) {
    sqlite3_close(file->db);
    file->db = NULL;
}

/* Another file under the name: what is open is no longer the application's. */
static bool moved(const struct hfi_outbox_file *file, const struct stat *status) {
    return file->device != (uint64_t)status->st_dev || file->inode != (uint64_t)status->st_ino;
}

int hfi_outbox_open(struct hfi_outbox_file *file, struct hf_error *error) {
    struct stat status;
    if (stat(file->path, &status) != 0) {
        hfi_outbox_close(file);
        return hfi_fail(error, HF_ENOENT, file->path, "it is looked for again", "the file is not there");
    }
    if (file->db && !moved(file, &status))
        return 0;
    hfi_outbox_close(file);
    int native = sqlite3_open_v2(file->path, &file->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (native != SQLITE_OK) {
        int code = hfi_outbox_fail(error, file->db, native, file->path);
        hfi_outbox_close(file);
        return code;
    }
    file->device = (uint64_t)status.st_dev;
    file->inode = (uint64_t)status.st_ino;
    sqlite3_extended_result_codes(file->db, 1);
    sqlite3_busy_timeout(file->db, BUSY_MS);
    if (file->deadline.limit_us == 0)
        file->deadline.limit_us = hfi_ms_to_us(HFI_DEADLINE_MS);
    hfi_deadline_watch(&file->deadline, file->db);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_wal_autocheckpoint(file->db, 0);
    return 0;
}

/* The failure of a use, and its end. */
static int fail(struct hfi_outbox_file *file, int native, struct hf_error *error) {
    hfi_deadline_stop(&file->deadline);
    if (!hfi_deadline_ended(&file->deadline, native))
        return hfi_outbox_fail(error, file->db, native, file->path);
    return hfi_fail(error, HF_EBUSY, file->path, "look at the triggers and views of the table " HF_OUTBOX_TABLE,
                    "a statement " HFI_DEADLINE_TEXT);
}

/* Where the columns stand: the application may add, drop and reorder them at any time. */
static int find_columns(struct hfi_outbox_file *file, sqlite3_stmt *statement, int *at, struct hf_error *error) {
    for (int i = 0; i < HFI_OUTBOX_COLUMNS; i++) {
        at[i] = -1;
        for (int c = 1; c < sqlite3_column_count(statement); c++)
            if (hfi_text_equal_nocase(sqlite3_column_name(statement, c), hfi_outbox_columns[i]))
                at[i] = c;
        if (at[i] < 0 && (i == HFI_OUTBOX_MESSAGE_ID || i == HFI_OUTBOX_TYPE || i == HFI_OUTBOX_PAYLOAD))
            return hfi_fail(error, HF_EINVAL, file->path, "compare the table with docs/outbox.md",
                            "the table " HF_OUTBOX_TABLE " has no column %s", hfi_outbox_columns[i]);
    }
    return 0;
}

static int64_t created(sqlite3_stmt *statement, const int *at) {
    int column = at[HFI_OUTBOX_CREATED_AT];
    return column >= 0 && sqlite3_column_type(statement, column) == SQLITE_INTEGER ? sqlite3_column_int64(statement, column) : 0;
}

int hfi_outbox_count(struct hfi_outbox_file *file, struct hf_outbox_view *view, struct hf_error *error) {
    sqlite3_stmt *statement;
    int at[HFI_OUTBOX_COLUMNS], code = 0;
    hfi_deadline_start(&file->deadline, 0);
    /* no column by its name: created_at may be missing, as for the relay */
    int native = sqlite3_prepare_v2(file->db,
                                    "SELECT (SELECT count(*) FROM main." HF_OUTBOX_TABLE "), * FROM main." HF_OUTBOX_TABLE
                                    " ORDER BY rowid LIMIT 1",
                                    -1, &statement, NULL);
    if (native == SQLITE_OK)
        native = sqlite3_step(statement);
    if (native == SQLITE_ROW || native == SQLITE_DONE)
        code = find_columns(file, statement, at, error);
    else
        code = fail(file, native, error);
    if (code == 0 && native == SQLITE_ROW) {
        view->rows = (uint64_t)sqlite3_column_int64(statement, 0);
        view->oldest_at_us = created(statement, at);
    }
    hfi_deadline_stop(&file->deadline);
    sqlite3_finalize(statement);
    return code;
}

bool hf_outbox_same_file(const char *one, const char *other) {
    return one && other && hfi_path_same(hfi_outbox_path(one), hfi_outbox_path(other));
}

int hf_outbox_look(const char *path, struct hf_outbox_view *view, struct hf_error *error) {
    struct hf_outbox_view whole;
    if (!path || !*hfi_outbox_path(path) || !view || view->size < sizeof view->size)
        return hfi_fail(error, HF_EINVAL, "outbox", "call hf_outbox_view_init first", "no file, or no view");
    struct hfi_outbox_file file = {.path = hfi_outbox_path(path)};
    hf_outbox_view_init(&whole);
    int code = hfi_outbox_open(&file, error);
    if (code == 0)
        code = hfi_outbox_count(&file, &whole, error);
    hfi_outbox_close(&file);
    if (code != 0)
        return code;
    whole.size = view->size;
    memcpy(view, &whole, view->size < sizeof whole ? view->size : sizeof whole);
    return 0;
}

int hfi_outbox_read(struct hfi_outbox_file *file, const struct hfi_outbox_judge *judge, int64_t after,
                    struct hfi_outbox_row *rows, size_t room, size_t *count, int64_t *oldest_us, struct hf_error *error) {
    sqlite3_stmt *statement;
    int at[HFI_OUTBOX_COLUMNS], code = 0;
    size_t bytes = 0;
    *count = 0;
    hfi_deadline_start(&file->deadline, 0);
    int native = sqlite3_prepare_v2(file->db, "SELECT rowid, * FROM main." HF_OUTBOX_TABLE " WHERE rowid > ?1 ORDER BY rowid", -1,
                                    &statement, NULL);
    if (native != SQLITE_OK)
        return fail(file, native, error);
    sqlite3_bind_int64(statement, 1, after);
    while (code == 0 && *count < room && bytes < BATCH_BYTES && (native = sqlite3_step(statement)) == SQLITE_ROW) {
        if (*count == 0) /* after the first step: the schema cannot change under it any more */
            code = find_columns(file, statement, at, error);
        if (code != 0)
            break;
        if (*count == 0)
            *oldest_us = created(statement, at);
        code = hfi_outbox_judge(judge, statement, at, &rows[*count]);
        if (code != 0) {
            hfi_outbox_row_free(&rows[*count]);
            hfi_fail(error, code, file->path, NULL, "no memory for its rows");
            break;
        }
        bytes += rows[*count].bytes;
        ++*count;
    }
    if (code == 0 && native != SQLITE_ROW && native != SQLITE_DONE)
        code = fail(file, native, error);
    hfi_deadline_stop(&file->deadline);
    sqlite3_finalize(statement); /* and the read lock is gone */
    return code;
}

/* One short transaction with the same statement for each of the rows. */
static int change(struct hfi_outbox_file *file, const char *sql, const struct hfi_outbox_row *rows, size_t count,
                  bool nameless, struct hf_error *error) {
    sqlite3_stmt *statement = NULL;
    hfi_deadline_start(&file->deadline, 0);
    int native = sqlite3_exec(file->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (native == SQLITE_OK)
        native = sqlite3_prepare_v2(file->db, sql, -1, &statement, NULL);
    for (size_t i = 0; i < count && native == SQLITE_OK; i++) {
        if (nameless ? !rows[i].nameless : rows[i].stuck)
            continue;
        sqlite3_bind_int64(statement, 1, rows[i].rowid);
        sqlite3_bind_value(statement, 2, rows[i].raw_id);
        native = sqlite3_step(statement);
        native = native == SQLITE_DONE ? sqlite3_reset(statement) : sqlite3_extended_errcode(file->db);
    }
    hfi_deadline_stop(&file->deadline); /* a commit is never ended half-way */
    if (native == SQLITE_OK)
        native = sqlite3_exec(file->db, "COMMIT", NULL, NULL, NULL);
    int code = native == SQLITE_OK ? 0 : fail(file, native, error);
    sqlite3_finalize(statement);
    if (!sqlite3_get_autocommit(file->db))
        sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

int hfi_outbox_name(struct hfi_outbox_file *file, const struct hfi_outbox_row *rows, size_t count, struct hf_error *error) {
    return change(file, "UPDATE main." HF_OUTBOX_TABLE " SET message_id = lower(hex(randomblob(16))) "
                        "WHERE rowid = ?1 AND message_id IS ?2",
                  rows, count, true, error);
}

int hfi_outbox_delete(struct hfi_outbox_file *file, const struct hfi_outbox_row *rows, size_t count, struct hf_error *error) {
    return change(file, "DELETE FROM main." HF_OUTBOX_TABLE " WHERE rowid = ?1 AND message_id IS ?2", rows, count, false, error);
}
