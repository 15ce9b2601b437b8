/* SPDX-License-Identifier: MIT */
/*
 * Which limit names the jobs carry that are not over yet. As read.c does it. Must never count a lane
 * without a bound. Any thread but loop and writer.
 */
#include "base/text.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

/* Per lane, through its index, so far; what runs, from the index of running jobs alone. */
static const char limits_sql[] =
    "WITH running AS MATERIALIZED (SELECT lane, count(*) AS jobs FROM jobs WHERE state = 2 AND owner > 0 GROUP BY lane), "
    "busy AS (SELECT l.limit_key AS key, (SELECT count(*) FROM (SELECT 1 FROM jobs j WHERE j.state = 0 AND j.lane = l.id "
    "LIMIT ?1)) AS pending, "
    "ifnull((SELECT jobs FROM running r WHERE r.lane = l.id), 0) AS running FROM lanes l WHERE l.limit_key <> '') "
    "SELECT substr(key, 1, instr(key, ':') - 1) AS name, count(DISTINCT key), sum(pending), sum(running) FROM busy "
    "WHERE pending > 0 OR running > 0 GROUP BY name ORDER BY name LIMIT ?2";

static int gather(sqlite3_stmt *statement, struct hf_limit_list *list) {
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hf_limit_view view = {
            .name = hfi_column_text(statement, 0),
            .keys = (uint64_t)sqlite3_column_int64(statement, 1),
            .pending = (uint64_t)sqlite3_column_int64(statement, 2),
            .running = (uint64_t)sqlite3_column_int64(statement, 3),
        };
        if (hfi_limit_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_list_limits(struct hfi_store *self, struct hf_limit_list **list, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    sqlite3_stmt *statement = NULL;
    struct hf_limit_list *made;
    *list = NULL;
    if (hfi_limit_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "limits", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, limits_sql, -1, &statement, NULL);
        sqlite3_bind_int64(statement, 1, HFI_LIMIT_PENDING_MAX);
        sqlite3_bind_int64(statement, 2, HFI_LIMIT_NAMES_MAX);
        if (native == SQLITE_OK)
            native = gather(statement, made);
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "limits", error);
    }
    if (code == 0)
        *list = made;
    else
        hf_limit_list_free(made);
    return code;
}
