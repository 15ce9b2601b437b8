/* SPDX-License-Identifier: MIT */
/*
 * Alerts of sinks that no live node has, because they were renamed or removed: nobody would ever send them, nor end them.
 * Must never end one of a sink that some node may send to. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/deaths/patience.h"
#include "jobs/store/internal.h"

#define SINKS_MOST 1000 /* whatever stands in the file */

/* The next sink with unsent alerts; "": there is none. */
static int next_sink(struct hfi_sqlite *store, char *name, size_t room) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ABSENT_NEXT);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
    bool found = hfi_sql_row(store, statement);
    hfi_text_copy(name, room, found ? hfi_column_text(statement, 0) : "");
    hfi_sql_done(statement);
    return store->fault;
}

static bool some_node_has(struct hfi_sqlite *store, const char *sink) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODE_SINK_HAD);
    if (!statement)
        return true;
    sqlite3_bind_text(statement, 1, sink, -1, SQLITE_STATIC);
    bool has = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return has || store->fault != 0;
}

static int miss(struct hfi_sqlite *store, const char *sink, struct hf_wall now, struct hfi_absence *absence) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ABSENCE_GET);
    memset(absence, 0, sizeof *absence);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, sink, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement)) {
        absence->absent_us = sqlite3_column_int64(statement, 0);
        absence->looked_us = sqlite3_column_int64(statement, 1);
    }
    hfi_sql_done(statement);
    if (store->fault != 0 || !hfi_absence_look(absence, now.us) || !(statement = hfi_sql(store, HFI_SQL_ABSENCE_SET)))
        return store->fault;
    sqlite3_bind_text(statement, 1, sink, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, absence->absent_us);
    sqlite3_bind_int64(statement, 3, absence->looked_us);
    return hfi_sql_run(store, statement);
}

struct doomed {
    int64_t id, dead_id;
};

static size_t find_rows(struct hfi_sqlite *store, const char *sink, struct doomed *doomed, size_t room) {
    size_t found = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ABSENT_ROWS);
    if (!statement)
        return 0;
    sqlite3_bind_text(statement, 1, sink, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (int64_t)room);
    while (found < room && hfi_sql_row(store, statement)) {
        doomed[found].id = sqlite3_column_int64(statement, 0);
        doomed[found++].dead_id = sqlite3_column_int64(statement, 1);
    }
    hfi_sql_done(statement);
    return found;
}

/* A storm that it leads is over with it: the next death of that cause is told at once, if anybody can be. */
static int end_row(struct hfi_sqlite *store, int64_t id, struct hf_wall now) {
    sqlite3_stmt *statement = hfi_sqlite_storm_seal(store, id, now, 0) != 0 ? NULL : hfi_sql(store, HFI_SQL_ABSENT_END);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, now.us);
    sqlite3_bind_text(statement, 3, HFI_ALERT_NO_SINK, -1, SQLITE_STATIC);
    return hfi_sql_run(store, statement);
}

static int end_of(struct hfi_sqlite *store, struct hfi_op_absent *op, const char *sink, struct doomed *doomed, size_t *left) {
    size_t found = find_rows(store, sink, doomed, *left);
    for (size_t i = 0; i < found && store->fault == 0; i++)
        end_row(store, doomed[i].id, op->now);
    if (found == 0)
        return store->fault;
    struct hfi_absent_sink *ended = &op->ended[op->ended_count++];
    hfi_text_copy(ended->name, sizeof ended->name, sink);
    ended->count = found;
    ended->dead_id = doomed[0].dead_id;
    *left -= found;
    op->more = *left == 0 || op->ended_count == HFI_ABSENT_SINKS;
    return store->fault;
}

int hfi_sqlite_op_absent(struct hfi_sqlite *store, struct hfi_op_absent *op) {
    char sink[64] = "";
    struct hfi_absence absence;
    size_t left = op->limit;
    struct doomed *doomed = hfi_alloc_array(op->limit, sizeof *doomed);
    op->ended_count = 0;
    op->more = false;
    if (!doomed)
        return hfi_sqlite_no_memory(store);
    for (int i = 0; i < SINKS_MOST && !op->more && next_sink(store, sink, sizeof sink) == 0 && sink[0]; i++) {
        if (some_node_has(store, sink) || miss(store, sink, op->now, &absence) != 0 || !hfi_absence_over(&absence))
            continue;
        end_of(store, op, sink, doomed, &left);
    }
    hfi_free(doomed);
    return store->fault;
}
