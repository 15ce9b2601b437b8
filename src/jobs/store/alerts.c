/* SPDX-License-Identifier: MIT */
/*
 * Messages to sinks: alert rows that go out by themselves, taken for a while under an epoch, at the pace of their sink,
 * and ended under it. Must never lose one unsent. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/deaths/patience.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"

static void read_alert(sqlite3_stmt *statement, const struct hfi_op_alerts *op, struct hfi_alert *alert) {
    uint32_t tries = (uint32_t)sqlite3_column_int64(statement, 5);
    *alert = (struct hfi_alert){
        .id = sqlite3_column_int64(statement, 0),
        .dead_id = sqlite3_column_int64(statement, 1),
        .job_id = sqlite3_column_int64(statement, 2),
        .epoch = sqlite3_column_int64(statement, 3) + 1,
        .dead_at_us = sqlite3_column_int64(statement, 4),
        .tries = tries + 1,
        .death_class = (enum hf_death_class)sqlite3_column_int(statement, 6),
        .executions = (uint32_t)sqlite3_column_int64(statement, 7),
        .death_no = (uint32_t)sqlite3_column_int64(statement, 8),
        .quarantined = sqlite3_column_int(statement, 9) != 0,
        .deaths = (uint64_t)sqlite3_column_int64(statement, 18) + 1,
        .tried_us = sqlite3_column_int64(statement, 21),
    };
    if (tries > 0)
        alert->tried_us = hfi_add(alert->tried_us, hfi_alerts_piece_us(tries, sqlite3_column_int64(statement, 20),
                                                                       op->now.us, op->lease_ms));
    alert->kind = hfi_alert_kind_of(alert->id, sqlite3_column_int64(statement, 16), sqlite3_column_int64(statement, 17));
    hfi_text_copy(alert->sink, sizeof alert->sink, hfi_column_text(statement, 10));
    hfi_text_copy(alert->type, sizeof alert->type, hfi_column_text(statement, 11));
    hfi_text_copy(alert->queue, sizeof alert->queue, hfi_column_text(statement, 12));
    hfi_text_copy(alert->downstream, sizeof alert->downstream, hfi_column_text(statement, 13));
    hfi_text_copy(alert->error_type, sizeof alert->error_type, hfi_column_text(statement, 14));
    hfi_text_copy(alert->correlation_id, sizeof alert->correlation_id, hfi_column_text(statement, 15));
    hfi_text_copy(alert->message, sizeof alert->message, hfi_column_text(statement, 19));
    hfi_text_copy(alert->had, sizeof alert->had, hfi_column_text(statement, 22));
}

/* What a digest names: its rows' letters, which stay as long as it is unsent. */
static int read_causes(struct hfi_sqlite *store, struct hfi_op_alerts *op, struct hfi_alert *alert) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DIGEST_CAUSES);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, alert->id);
    alert->first_cause = op->cause_count;
    alert->deaths = 0;
    while (hfi_sql_row(store, statement)) {
        struct hfi_alert_cause *causes = hfi_realloc(op->causes, (op->cause_count + 1) * sizeof *causes);
        if (!causes) {
            hfi_sqlite_no_memory(store);
            break;
        }
        struct hfi_alert_cause *cause = &causes[op->cause_count++];
        op->causes = causes;
        memset(cause, 0, sizeof *cause);
        cause->deaths = (uint64_t)sqlite3_column_int64(statement, 0);
        cause->dead_id = sqlite3_column_int64(statement, 1);
        hfi_text_copy(cause->type, sizeof cause->type, hfi_column_text(statement, 2));
        hfi_text_copy(cause->error_type, sizeof cause->error_type, hfi_column_text(statement, 3));
        hfi_text_copy(cause->downstream, sizeof cause->downstream, hfi_column_text(statement, 4));
        alert->deaths += cause->deaths;
    }
    hfi_sql_done(statement);
    alert->cause_count = op->cause_count - alert->first_cause;
    return store->fault;
}

/* Adds due rows of one sink; taking comes after, so that rows do not change while they are read. */
static int look(struct hfi_sqlite *store, struct hfi_op_alerts *op, const char *sink, size_t room) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ALERTS_DUE);
    if (!statement)
        return store->fault;
    size_t most = room < op->limit - op->count ? op->count + room : op->limit;
    sqlite3_bind_text(statement, 1, sink, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, op->now.us);
    sqlite3_bind_int64(statement, 3, (int64_t)(most - op->count));
    while (op->count < most && hfi_sql_row(store, statement))
        read_alert(statement, op, &op->rows[op->count++]);
    hfi_sql_done(statement);
    return store->fault;
}

static int take(struct hfi_sqlite *store, struct hfi_op_alerts *op, struct hfi_alert *alert, int64_t collapse_us) {
    if (alert->kind == HF_ALERT_SUMMARY && alert->tries == 1 &&
        hfi_sqlite_storm_seal(store, alert->id, op->now, collapse_us) != 0)
        return store->fault;
    if (alert->kind == HF_ALERT_DIGEST && read_causes(store, op, alert) != 0)
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ALERT_TAKE);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, alert->id);
    hfi_bind_number(statement, 2, op->node);
    sqlite3_bind_int64(statement, 3, hfi_add(op->now.us, hfi_ms_to_us(op->lease_ms)));
    sqlite3_bind_int64(statement, 4, op->now.us);
    sqlite3_bind_int64(statement, 5, alert->tried_us);
    return hfi_sql_run(store, statement);
}

static int64_t number_of(struct hfi_sqlite *store, enum hfi_sql which, const char *sink, int64_t otherwise) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return otherwise;
    sqlite3_bind_text(statement, 1, sink, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        otherwise = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return otherwise;
}

static int take_of(struct hfi_sqlite *store, struct hfi_op_alerts *op, const char *sink) {
    struct hfi_sqlite_pace pace = {.sink = sink};
    size_t first = op->count, room = op->limit;
    if (hfi_sqlite_pace_read(store, &pace) != 0)
        return store->fault;
    if (pace.collapse_us > 0) {
        hfi_sqlite_pace_look(store, &pace, op->now);
        room = hfi_storm_room(&pace.pace, op->now.us);
    }
    look(store, op, sink, room);
    for (size_t i = first; i < op->count && store->fault == 0; i++) {
        take(store, op, &op->rows[i], pace.collapse_us);
        hfi_storm_spend(&pace.pace, op->now.us);
    }
    if (pace.collapse_us > 0 && op->count > first && store->fault == 0)
        hfi_sqlite_pace_write(store, &pace);
    int64_t next = number_of(store, HFI_SQL_ALERTS_NEXT, sink, INT64_MAX);
    if (pace.collapse_us > 0 && next != INT64_MAX) {
        int64_t from = hfi_storm_room_at(&pace.pace, op->now.us);
        next = next < from ? from : next;
    }
    op->next_due_us = next < op->next_due_us ? next : op->next_due_us;
    return store->fault;
}

int hfi_sqlite_op_alerts(struct hfi_sqlite *store, struct hfi_op_alerts *op) {
    op->count = op->cause_count = 0;
    op->causes = NULL;
    op->next_due_us = INT64_MAX;
    op->rows = op->limit > 0 ? hfi_alloc_array(op->limit, sizeof *op->rows) : NULL;
    if (op->limit > 0 && !op->rows)
        return hfi_sqlite_no_memory(store);
    for (size_t i = 0; i < op->sink_count && store->fault == 0; i++)
        take_of(store, op, op->sinks[i]);
    if (op->count == 0) {
        hfi_free(op->rows);
        op->rows = NULL;
    }
    return store->fault;
}

int hfi_sqlite_op_alert_end(struct hfi_sqlite *store, struct hfi_op_alert_end *op) {
    bool over = op->sent || op->undelivered;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ALERT_END);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->id);
    sqlite3_bind_int64(statement, 2, op->epoch);
    sqlite3_bind_int(statement, 3, op->sent ? 1 : op->undelivered ? 2 : 0);
    sqlite3_bind_int64(statement, 4, over ? op->now.us : op->next_at_us);
    hfi_bind_number(statement, 5, over ? op->now.us : 0);
    hfi_bind_text(statement, 6, op->error_type);
    hfi_bind_text(statement, 7, op->had);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    if (sqlite3_changes(store->db) > 0)
        return 0;
    return hfi_fail(op->op.error, HF_ESTALE, "alert", NULL, "%lld was taken by somebody else", (long long)op->id);
}
