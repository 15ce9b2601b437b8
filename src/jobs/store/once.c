/* SPDX-License-Identifier: MIT */
/*
 * The once-ledger in a database of the application: one row per effect, in the transaction of the effect. Must never
 * begin or end a transaction, nor touch a database of ours. The caller's thread.
 */
#include "holdfast/once.h"

#include <sqlite3.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "jobs/record.h"
#include "jobs/store/internal.h"

static const char table[] = "CREATE TABLE IF NOT EXISTS holdfast_once("
                            "key TEXT NOT NULL PRIMARY KEY, at_us INTEGER NOT NULL) WITHOUT ROWID";
static const char note[] = "INSERT INTO holdfast_once VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING";

static int insert(sqlite3 *db, const char *key) {
    sqlite3_stmt *statement = NULL;
    int native = sqlite3_prepare_v2(db, note, -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, hfi_wall_now().us);
    native = sqlite3_step(statement);
    int finished = sqlite3_finalize(statement);
    return native == SQLITE_DONE ? SQLITE_OK : finished;
}

int hf_once_in_sqlite(struct sqlite3 *db, const char *key, bool *first, struct hf_error *error) {
    if (!db || !first)
        return hfi_fail(error, HF_EINVAL, "once", NULL, "no database, or nowhere to put the answer");
    *first = false;
    size_t length = key ? strlen(key) : 0;
    if (length == 0 || length > HFI_KEY_MAX || !hfi_text_valid(key, length))
        return hfi_fail(error, HF_EINVAL, "once", "use hf_work_key", "the key has to be 1 to %d bytes of UTF-8", HFI_KEY_MAX);
    if (sqlite3_get_autocommit(db))
        return hfi_fail(error, HF_ESTATE, "once", "BEGIN IMMEDIATE first, and COMMIT it with the effect",
                        "no transaction is open");
    int native = sqlite3_exec(db, table, NULL, NULL, NULL);
    if (native == SQLITE_OK)
        native = insert(db, key);
    if (native != SQLITE_OK)
        return hfi_sqlite_fail(error, db, native, "once");
    *first = sqlite3_changes(db) > 0;
    return 0;
}
