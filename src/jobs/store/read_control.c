/* SPDX-License-Identifier: MIT */
/*
 * Reads of queues, downstreams and the store itself. As read.c does it. Any thread but loop and writer.
 */
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

#define EACH_PRIORITY "priority IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"
/* Per lane, through its index; literals so that the partial indexes serve. */
#define DUE_OF_LANE "FROM jobs j WHERE j.state = 0 AND j.lane = l.id AND j." EACH_PRIORITY " AND j.run_at_us <= ?1"

/* Lists look at the clock themselves: who asks has no scheduler. */
struct hf_wall hfi_sqlite_read_now(void) {
    return hfi_wall_now();
}

static const char queues_sql[] =
    "WITH depths AS (SELECT l.queue AS name, (SELECT count(*) " DUE_OF_LANE ") AS due, "
    "(SELECT count(*) FROM jobs j WHERE j.state = 0 AND j.lane = l.id) AS pending, "
    "(SELECT min(j.run_at_us) " DUE_OF_LANE ") AS oldest, "
    "ifnull((SELECT jobs FROM running r WHERE r.lane = l.id), 0) AS running FROM lanes l), "
    "running AS MATERIALIZED (SELECT lane, count(*) AS jobs FROM jobs WHERE state = 2 GROUP BY lane) "
    "SELECT n.name, ifnull(q.paused AND (q.until_us = 0 OR q.until_us > ?1), 0), ifnull(q.until_us, 0), "
    "total(d.due), total(d.pending - d.due), total(d.running), min(d.oldest) "
    "FROM (SELECT queue AS name FROM lanes UNION SELECT name FROM queues WHERE paused) n "
    "LEFT JOIN queues q ON q.name = n.name LEFT JOIN depths d ON d.name = n.name GROUP BY n.name ORDER BY n.name";

static int gather_queues(sqlite3_stmt *statement, struct hf_queue_list *list) {
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        bool paused = sqlite3_column_int(statement, 1) != 0;
        struct hf_queue_view view = {
            .name = hfi_column_text(statement, 0),
            .paused = paused,
            .paused_until_us = paused ? sqlite3_column_int64(statement, 2) : 0,
            .due = (uint64_t)sqlite3_column_int64(statement, 3),
            .scheduled = (uint64_t)sqlite3_column_int64(statement, 4),
            .running = (uint64_t)sqlite3_column_int64(statement, 5),
            .oldest_due_at_us = sqlite3_column_int64(statement, 6),
        };
        if (hfi_queue_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_list_queues(struct hfi_store *self, struct hf_queue_list **list, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    sqlite3_stmt *statement = NULL;
    struct hf_queue_list *made;
    *list = NULL;
    if (hfi_queue_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "queues", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, queues_sql, -1, &statement, NULL);
        if (native == SQLITE_OK) {
            sqlite3_bind_int64(statement, 1, hfi_wall_now().us);
            native = gather_queues(statement, made);
        }
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "queues", error);
    }
    if (code == 0)
        *list = made;
    else
        hf_queue_list_free(made);
    return code;
}

/* Parked: due jobs of lanes whose breaker is open (phase 1) or forced. */
static const char downstreams_sql[] =
    "SELECT key, forced, forced_until_us, reason, phase, open_until_us, gate_until_us, unhealthy_since_us, trips, version, "
    "iif(forced OR phase = 1, (SELECT count(*) FROM lanes l JOIN jobs j ON j.state = 0 AND j.lane = l.id AND "
    "j." EACH_PRIORITY " AND j.run_at_us <= ?1 WHERE l.breaker_key = d.key), 0) FROM downstreams d ORDER BY key";

static int gather_downstreams(sqlite3_stmt *statement, struct hf_downstream_list *list) {
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hf_downstream_row row = {
            .key = hfi_column_text(statement, 0),
            .forced = sqlite3_column_int(statement, 1),
            .forced_until_us = sqlite3_column_int64(statement, 2),
            .reason = hfi_column_text(statement, 3),
            .phase = sqlite3_column_int(statement, 4),
            .open_until_us = sqlite3_column_int64(statement, 5),
            .gate_until_us = sqlite3_column_int64(statement, 6),
            .unhealthy_since_us = sqlite3_column_int64(statement, 7),
            .trips = (uint32_t)sqlite3_column_int64(statement, 8),
            .version = sqlite3_column_int64(statement, 9),
            .parked = (uint64_t)sqlite3_column_int64(statement, 10),
        };
        if (hfi_downstream_list_add(list, &row) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_list_downstreams(struct hfi_store *self, struct hf_downstream_list **list, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    sqlite3_stmt *statement = NULL;
    struct hf_downstream_list *made;
    *list = NULL;
    if (hfi_downstream_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "downstreams", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, downstreams_sql, -1, &statement, NULL);
        if (native == SQLITE_OK) {
            sqlite3_bind_int64(statement, 1, hfi_wall_now().us);
            native = gather_downstreams(statement, made);
        }
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "downstreams", error);
    }
    if (code == 0)
        *list = made;
    else
        hf_downstream_list_free(made);
    return code;
}

int hfi_sqlite_look(struct hfi_store *self, struct hf_store_info *info) {
    const struct hfi_sqlite *store = hfi_sqlite_of(self);
    info->schema = (uint32_t)store->schema;
    info->min_reader = (uint32_t)store->min_reader;
    info->min_writer = (uint32_t)store->min_writer;
    info->migrated = store->migrated;
    hfi_text_copy(info->kind, sizeof info->kind, "sqlite");
    hfi_text_copy(info->uuid, sizeof info->uuid, store->base.uuid);
    hfi_text_copy(info->path, sizeof info->path, store->path);
    return 0;
}
