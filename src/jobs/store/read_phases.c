/* SPDX-License-Identifier: MIT */
/*
 * How long the phases of a downstream's attempts took, by the history. As read.c does it. Must never read more than
 * a bounded number of rows. Any thread but loop and writer.
 */
#include "jobs/store/internal.h"

static const char phases_sql[] =
    "SELECT h.resolve_us, h.connect_us, h.tls_us, h.first_byte_us, h.total_us FROM (SELECT job_id, resolve_us, connect_us, "
    "tls_us, first_byte_us, total_us FROM history ORDER BY job_id DESC, epoch DESC, ended_at_us DESC, event DESC LIMIT ?2) h "
    "JOIN jobs j ON j.id = h.job_id JOIN lanes l ON l.id = j.lane "
    "WHERE h.total_us IS NOT NULL AND (l.downstream = ?1 OR l.breaker_key = ?1)";

static int64_t phase(sqlite3_stmt *statement, int column) {
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, column);
}

int hfi_sqlite_look_phases(struct hfi_store *self, const char *key, hfi_phases_fn each, void *user, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    sqlite3_stmt *statement = NULL;
    int code = hfi_sqlite_read_begin(store, error);
    if (code != 0)
        return code;
    int native = sqlite3_prepare_v2(store->reader, phases_sql, -1, &statement, NULL);
    if (native == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, HFI_PHASE_ROWS);
        while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
            struct hfi_phases phases = {phase(statement, 0), phase(statement, 1), phase(statement, 2), phase(statement, 3),
                                        phase(statement, 4)};
            each(&phases, user);
        }
    }
    sqlite3_finalize(statement);
    return hfi_sqlite_read_end(store, native, "phases", error);
}
