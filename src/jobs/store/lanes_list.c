/* SPDX-License-Identifier: MIT */
/*
 * What a claimer looks at: lanes it does not know yet, lanes with something due, and when the next one will be. Only
 * reads. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/internal.h"

#define TEXTS 4
#define TEXTS_MAX ((size_t)1 << 30)

/* Rows with their texts as offsets, until both are complete. */
struct gather {
    struct hfi_lane_row *rows;
    size_t count, room;
    struct hfi_bytes texts;
};

static int add(struct hfi_sqlite *store, struct gather *gather, sqlite3_stmt *statement, const struct hfi_op_lanes *op) {
    const struct hfi_lane_place *place = hfi_sqlite_lane_place(store, sqlite3_column_int64(statement, 0));
    if (!place)
        return store->fault;
    if (gather->count == gather->room) {
        size_t room = gather->room > 0 ? gather->room * 2 : 64;
        struct hfi_lane_row *rows = hfi_realloc(gather->rows, room * sizeof *rows);
        if (!rows)
            return hfi_sqlite_no_memory(store);
        gather->rows = rows;
        gather->room = room;
    }
    struct hfi_lane_row *row = &gather->rows[gather->count++];
    *row = (struct hfi_lane_row){.lane = sqlite3_column_int64(statement, 0),
                                 .next_due_us = sqlite3_column_int64(statement, 1),
                                 .top_priority = sqlite3_column_int(statement, 6),
                                 .paused = hfi_sqlite_gauge_paused(store, place->queue),
                                 .alone = place->texts.alone};
    hfi_sqlite_lane_seen(store, row->lane, row->top_priority);
    if (op->running) {
        row->limit_running = hfi_sqlite_gauge_running(place->limit);
        row->queue_running = hfi_sqlite_gauge_running(place->queue);
    }
    for (int i = 0; i < TEXTS && row->lane > op->known; i++) {
        const char *text = hfi_column_text(statement, 2 + i);
        hfi_bytes_add(&gather->texts, text, strlen(text) + 1);
    }
    return gather->texts.failed ? hfi_sqlite_no_memory(store) : 0;
}

/* One block: rows, then texts. */
static int join_up(struct hfi_sqlite *store, struct gather *gather, struct hfi_op_lanes *op) {
    size_t size = gather->count * sizeof *op->rows;
    if (gather->count == 0)
        return 0;
    struct hfi_lane_row *rows = hfi_alloc(size + gather->texts.length);
    if (!rows)
        return hfi_sqlite_no_memory(store);
    memcpy(rows, gather->rows, size);
    char *text = (char *)(rows + gather->count);
    if (gather->texts.length > 0)
        memcpy(text, gather->texts.data, gather->texts.length);
    for (size_t i = 0; i < gather->count; i++) {
        const char **texts[TEXTS] = {&rows[i].queue, &rows[i].type, &rows[i].breaker_key, &rows[i].limit_key};
        for (int at = 0; at < TEXTS; at++) {
            *texts[at] = "";
            if (rows[i].lane > op->known) {
                *texts[at] = text;
                text += strlen(text) + 1;
            }
        }
    }
    op->rows = rows;
    op->count = gather->count;
    return 0;
}

static int next_due(struct hfi_sqlite *store, struct hfi_op_lanes *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANES_NEXT);
    op->next_due_us = INT64_MAX;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->now.us);
    if (hfi_sql_row(store, statement))
        op->next_due_us = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

static int control_version(struct hfi_sqlite *store, struct hfi_op_lanes *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_META_GET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, "control", -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        op->unhealthy_version = (uint64_t)sqlite3_column_int64(statement, 0) + (store->control_changed ? 1 : 0);
    hfi_sql_done(statement);
    return store->fault;
}

static int count_kept(struct hfi_sqlite *store, struct hfi_op_lanes *op) {
    op->kept_due = 0;
    for (size_t i = 0; i < op->kept_count && op->kept_due < HFI_KEPT_MAX; i++) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANE_KEPT);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, op->kept[i]);
        sqlite3_bind_int64(statement, 2, op->now.us);
        sqlite3_bind_int64(statement, 3, (int64_t)(HFI_KEPT_MAX - op->kept_due));
        if (hfi_sql_row(store, statement))
            op->kept_due += (uint64_t)sqlite3_column_int64(statement, 0);
        hfi_sql_done(statement);
    }
    return store->fault;
}

int hfi_sqlite_op_lanes(struct hfi_sqlite *store, struct hfi_op_lanes *op) {
    struct gather gather = {0};
    op->rows = NULL;
    op->count = 0;
    if (hfi_sqlite_lanes_flush(store) != 0 || /* what this batch did before is seen */
        hfi_sqlite_pauses_read(store, op->now) != 0 || (op->running && hfi_sqlite_gauges_read(store) != 0))
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANES_LIST);
    if (!statement)
        return store->fault;
    hfi_bytes_init(&gather.texts, TEXTS_MAX);
    sqlite3_bind_int64(statement, 1, op->known);
    sqlite3_bind_int64(statement, 2, op->now.us);
    while (hfi_sql_row(store, statement) && add(store, &gather, statement, op) == 0)
        ;
    hfi_sql_done(statement);
    if (store->fault == 0 && join_up(store, &gather, op) == 0 && next_due(store, op) == 0 &&
        count_kept(store, op) == 0 &&
        control_version(store, op) == 0)
        store->left_over = hfi_sqlite_deps_left(store);
    hfi_free(gather.rows);
    hfi_bytes_free(&gather.texts);
    return store->fault;
}
