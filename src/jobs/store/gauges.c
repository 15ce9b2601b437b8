/* SPDX-License-Identifier: MIT */
/*
 * What runs of each queue and of each limit key, in the whole store: counted from the running rows when another process
 * has written since, else kept along with each row that is written here. Nothing of it is stored, so nothing can leak
 * (I14). Also which queues are paused, and the rates of limit keys. Must never be trusted after a rollback. Writer
 * thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "jobs/store/gauges.h"
#include "jobs/store/internal.h"

#define uthash_malloc(size) hfi_alloc(size)
#define uthash_free(memory, size) hfi_free(memory)
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) ((item)->length = 0)
#include <uthash.h>

struct hfi_gauge {
    int64_t running;
    uint64_t paused_look; /* of a queue: it was paused at that look */
    struct hfi_gauge_part part;
    UT_hash_handle hh;
    size_t length; /* 0 only while it could not be added */
    char name[];
};

struct hfi_gauge *hfi_sqlite_gauge(struct hfi_gauge **gauges, const char *name) {
    struct hfi_gauge *gauge = NULL;
    size_t length = strlen(name) + 1;
    HASH_FIND(hh, *gauges, name, length, gauge);
    if (gauge)
        return gauge;
    gauge = hfi_alloc(sizeof *gauge + length);
    if (!gauge)
        return NULL;
    memcpy(gauge->name, name, length);
    gauge->length = length;
    HASH_ADD_KEYPTR(hh, *gauges, gauge->name, gauge->length, gauge);
    if (gauge->length != 0)
        return gauge;
    hfi_free(gauge);
    return NULL;
}

static void free_all(struct hfi_gauge **gauges) {
    struct hfi_gauge *gauge, *next;
    HASH_ITER(hh, *gauges, gauge, next) {
        HASH_DEL(*gauges, gauge);
        hfi_free(gauge);
    }
}

void hfi_sqlite_gauges_free(struct hfi_sqlite *store) {
    free_all(&store->queue_gauges);
    free_all(&store->limit_gauges);
}

void hfi_sqlite_gauge_moved(struct hfi_gauge *gauge, int by) {
    if (gauge)
        gauge->running += by;
}

uint32_t hfi_sqlite_gauge_running(const struct hfi_gauge *gauge) {
    return !gauge || gauge->running < 0 ? 0 : gauge->running < UINT32_MAX ? (uint32_t)gauge->running : UINT32_MAX;
}

/* Has another connection committed since the last look? */
static int look_at_version(struct hfi_sqlite *store) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DATA_VERSION);
    if (!statement)
        return store->fault;
    int64_t version = hfi_sql_row(store, statement) ? sqlite3_column_int64(statement, 0) : 0;
    hfi_sql_done(statement);
    if (version != store->data_version)
        store->gauges_stand = false;
    store->data_version = version;
    return store->fault;
}

static void zero(struct hfi_gauge *gauges) {
    for (struct hfi_gauge *gauge = gauges; gauge; gauge = gauge->hh.next)
        gauge->running = 0;
}

int hfi_sqlite_gauges_read(struct hfi_sqlite *store) {
    if (look_at_version(store) != 0 || store->gauges_stand)
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_RUNNING_LANES);
    if (!statement)
        return store->fault;
    zero(store->queue_gauges);
    zero(store->limit_gauges);
    while (hfi_sql_row(store, statement) && store->fault == 0)
        hfi_sqlite_lane_moved(store, sqlite3_column_int64(statement, 0), 1);
    hfi_sql_done(statement);
    store->gauges_stand = store->fault == 0;
    store->gauge_reads++;
    return store->fault;
}

int hfi_sqlite_pauses_read(struct hfi_sqlite *store, struct hf_wall now) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_QUEUES_PAUSED);
    store->look++;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, now.us);
    while (hfi_sql_row(store, statement)) {
        struct hfi_gauge *queue = hfi_sqlite_gauge(&store->queue_gauges, hfi_column_text(statement, 0));
        if (!queue) {
            hfi_sqlite_no_memory(store);
            break;
        }
        queue->paused_look = store->look;
    }
    hfi_sql_done(statement);
    return store->fault;
}

struct hfi_gauge_part *hfi_sqlite_gauge_part(const struct hfi_sqlite *store, struct hfi_gauge *gauge) {
    if (gauge->part.look != store->look)
        gauge->part = (struct hfi_gauge_part){.look = store->look};
    return &gauge->part;
}

bool hfi_sqlite_gauge_paused(const struct hfi_sqlite *store, const struct hfi_gauge *queue) {
    return queue->paused_look == store->look;
}

int hfi_sqlite_rate_get(struct hfi_sqlite *store, const char *limit_key, int64_t *full_at_us) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_RATE_GET);
    *full_at_us = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, limit_key, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        *full_at_us = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

int hfi_sqlite_rate_set(struct hfi_sqlite *store, const char *limit_key, int64_t full_at_us) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_RATE_SET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, limit_key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, full_at_us);
    return hfi_sql_run(store, statement);
}
