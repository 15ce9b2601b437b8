/* SPDX-License-Identifier: MIT */
/*
 * Lanes: (queue, type, downstream, breaker key, limit key) interned as one number, and when the next job of each is
 * due. Lane rows never change but for next_due_us and top_priority, so they are kept in memory and asked for by
 * value when another process may have added them. next_due_us must never be later than the truth, top_priority never
 * lower: a batch lowers and raises them in its own transaction, a claim that found the lane empty makes them true. A
 * cached lane is given to a job only when its row is known to stand (unused.c). Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/internal.h"

#define uthash_malloc(size) hfi_alloc(size)
#define uthash_free(memory, size) hfi_free(memory)
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) ((item)->id = 0)
#include <uthash.h>

struct hfi_lane {
    int64_t id;
    int64_t walk; /* its row says so, too; 0: not known */
    struct hfi_lane_place place;
    bool fresh; /* its row came in this transaction */
    bool is_touched, exact, exact_top;
    int64_t due_us; /* to be written; exact: whatever stands there */
    int top;        /* the same */
    int known_top;  /* as last seen or written here; -1 not known */
    struct hfi_lane *next_touched;
    UT_hash_handle by_key, by_id;
    size_t key_length;
    char key[]; /* the five texts, each with its NUL; then whether it is of those started alone */
};

static const char *const *text_list(const struct hfi_lane_texts *texts, const char *list[5]) {
    list[0] = texts->queue;
    list[1] = texts->type;
    list[2] = texts->downstream;
    list[3] = texts->breaker_key;
    list[4] = texts->limit_key;
    return list;
}

/* Adds a lane to the cache. NULL: no memory. */
static struct hfi_lane *remember(struct hfi_sqlite *store, int64_t id, const struct hfi_lane_texts *texts, bool fresh) {
    const char *list[5];
    size_t length = 0;
    text_list(texts, list);
    for (int i = 0; i < 5; i++)
        length += strlen(list[i]) + 1;
    struct hfi_lane *lane = hfi_alloc(sizeof *lane + length + 1);
    if (!lane)
        return NULL;
    char *end = lane->key;
    for (int i = 0; i < 5; i++) {
        size_t size = strlen(list[i]) + 1;
        memcpy(end, list[i], size);
        list[i] = end;
        end += size;
    }
    lane->id = id;
    lane->fresh = fresh;
    lane->known_top = -1;
    store->lanes_added = store->lanes_added || fresh;
    *end = texts->alone;
    lane->key_length = length + 1;
    lane->place.texts = (struct hfi_lane_texts){list[0], list[1], list[2], list[3], list[4], texts->alone};
    lane->place.queue = hfi_sqlite_gauge(&store->queue_gauges, list[0]);
    lane->place.limit = *list[4] ? hfi_sqlite_gauge(&store->limit_gauges, list[4]) : NULL;
    if (!lane->place.queue || (*list[4] && !lane->place.limit)) {
        hfi_free(lane);
        return NULL;
    }
    HASH_ADD_KEYPTR(by_key, store->lanes_by_key, lane->key, lane->key_length, lane);
    if (lane->id != 0) {
        HASH_ADD(by_id, store->lanes_by_id, id, sizeof lane->id, lane);
        if (lane->id != 0)
            return lane;
        HASH_DELETE(by_key, store->lanes_by_key, lane);
    }
    hfi_free(lane);
    return NULL;
}

static struct hfi_lane *by_texts(struct hfi_sqlite *store, const struct hfi_lane_texts *texts) {
    char key[HFI_NAME_MAX * 3 + HFI_TYPE_MAX + HFI_LIMIT_MAX + 6 + HFI_KEY_MAX];
    const char *list[5];
    size_t length = 0;
    struct hfi_lane *lane = NULL;
    text_list(texts, list);
    for (int i = 0; i < 5; i++) {
        size_t size = strlen(list[i]) + 1;
        if (length + size > sizeof key)
            return NULL; /* longer than any we intern: found in the table, each time */
        memcpy(key + length, list[i], size);
        length += size;
    }
    if (length + 1 > sizeof key)
        return NULL;
    key[length++] = texts->alone;
    HASH_FIND(by_key, store->lanes_by_key, key, length, lane);
    return lane;
}

static struct hfi_lane *by_number(struct hfi_sqlite *store, int64_t id) {
    struct hfi_lane *lane = NULL;
    HASH_FIND(by_id, store->lanes_by_id, &id, sizeof id, lane);
    return lane;
}

static void bind_texts(sqlite3_stmt *statement, const struct hfi_lane_texts *texts) {
    const char *list[5];
    text_list(texts, list);
    for (int i = 0; i < 5; i++)
        sqlite3_bind_text(statement, i + 1, list[i], -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 6, texts->alone);
}

/* In the table; `*id` 0: not there. */
static int find_row(struct hfi_sqlite *store, const struct hfi_lane_texts *texts, int64_t *id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANE_FIND);
    *id = 0;
    if (!statement)
        return store->fault;
    bind_texts(statement, texts);
    if (hfi_sql_row(store, statement))
        *id = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

static int add_row(struct hfi_sqlite *store, const struct hfi_lane_texts *texts, int64_t *id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANE_ADD);
    if (!statement)
        return store->fault;
    bind_texts(statement, texts);
    sqlite3_bind_int64(statement, 7, INT64_MAX);
    sqlite3_bind_int64(statement, 8, store->walk);
    if (hfi_sql_run(store, statement) == 0)
        *id = sqlite3_last_insert_rowid(store->db);
    return store->fault;
}

static void drop(struct hfi_sqlite *store, struct hfi_lane *lane) {
    struct hfi_lane **at = &store->touched;
    HASH_DELETE(by_key, store->lanes_by_key, lane);
    HASH_DELETE(by_id, store->lanes_by_id, lane);
    while (lane->is_touched && *at != lane)
        at = &(*at)->next_touched;
    if (lane->is_touched)
        *at = lane->next_touched;
    hfi_free(lane);
}

/* The row of the lane, cached or not, noted as in use; made if there is none, or no more. */
static int use_row(struct hfi_sqlite *store, const struct hfi_lane_texts *texts, struct hfi_lane *lane, int64_t *id,
                   bool *fresh) {
    bool stands = false;
    *id = lane ? lane->id : 0;
    if (lane && hfi_sqlite_used(store, HFI_SQL_LANE_USED, *id, store->walk, &stands) != 0)
        return store->fault;
    if (!stands && find_row(store, texts, id) != 0) /* another process may have made it again */
        return store->fault;
    if (!stands && *id != 0 && hfi_sqlite_used(store, HFI_SQL_LANE_USED, *id, store->walk, &stands) != 0)
        return store->fault;
    *fresh = !stands;
    return stands ? 0 : add_row(store, texts, id);
}

/* The number of a lane, made when it is new. 0 or a fault. */
int hfi_sqlite_lane(struct hfi_sqlite *store, const struct hfi_lane_texts *texts, int64_t *id) {
    struct hfi_lane *lane = by_texts(store, texts);
    int64_t walk;
    bool fresh = false;
    if (hfi_sqlite_walk(store, &walk) != 0)
        return store->fault;
    if (lane && lane->walk == walk) {
        *id = lane->id;
        return 0;
    }
    if (use_row(store, texts, lane, id, &fresh) != 0)
        return store->fault;
    if (lane && lane->id != *id)
        drop(store, lane); /* its row was removed */
    lane = by_number(store, *id);
    if (!lane && !(lane = remember(store, *id, texts, fresh)))
        return hfi_sqlite_no_memory(store);
    lane->walk = walk;
    return 0;
}

/* From the cache or the table; NULL: no such row, or a fault. */
static struct hfi_lane *look_up(struct hfi_sqlite *store, int64_t id) {
    struct hfi_lane *lane = by_number(store, id);
    sqlite3_stmt *statement = lane ? NULL : hfi_sql(store, HFI_SQL_LANE_GET);
    if (!statement)
        return lane;
    sqlite3_bind_int64(statement, 1, id);
    if (hfi_sql_row(store, statement)) {
        struct hfi_lane_texts texts = {hfi_column_text(statement, 0), hfi_column_text(statement, 1),
                                       hfi_column_text(statement, 2), hfi_column_text(statement, 3),
                                       hfi_column_text(statement, 4), sqlite3_column_int(statement, 5) != 0};
        lane = remember(store, id, &texts, false);
        if (!lane)
            hfi_sqlite_no_memory(store);
    }
    hfi_sql_done(statement);
    return lane;
}

const struct hfi_lane_texts *hfi_sqlite_lane_texts(struct hfi_sqlite *store, int64_t id) {
    struct hfi_lane *lane = look_up(store, id);
    return lane ? &lane->place.texts : NULL;
}

const struct hfi_lane_place *hfi_sqlite_lane_place(struct hfi_sqlite *store, int64_t id) {
    const struct hfi_lane *lane = look_up(store, id);
    return lane ? &lane->place : NULL;
}

void hfi_sqlite_lane_moved(struct hfi_sqlite *store, int64_t id, int by) {
    const struct hfi_lane *lane = look_up(store, id);
    if (!lane)
        return;
    hfi_sqlite_gauge_moved(lane->place.queue, by);
    hfi_sqlite_gauge_moved(lane->place.limit, by);
}

static void touch(struct hfi_sqlite *store, struct hfi_lane *lane) {
    if (lane->is_touched)
        return;
    lane->is_touched = true;
    lane->exact = lane->exact_top = false;
    lane->due_us = INT64_MAX;
    lane->top = 0;
    lane->next_touched = store->touched;
    store->touched = lane;
}

/* A job of it is due then. */
void hfi_sqlite_lane_due(struct hfi_sqlite *store, int64_t id, int64_t due_us, int priority) {
    struct hfi_lane *lane = look_up(store, id);
    if (!lane)
        return;
    touch(store, lane);
    if (due_us < lane->due_us)
        lane->due_us = due_us;
    if (priority > lane->top)
        lane->top = priority;
}

/* Nothing of it has a higher priority, which is the truth. */
int hfi_sqlite_lane_top(struct hfi_sqlite *store, int64_t id, int top) {
    struct hfi_lane *lane = look_up(store, id);
    if (!lane || (lane->known_top == top && !lane->is_touched))
        return store->fault;
    touch(store, lane);
    lane->exact_top = true;
    lane->top = top < 0 ? 0 : top;
    return 0;
}

/* Nor is anything of it due before. */
int hfi_sqlite_lane_exact(struct hfi_sqlite *store, int64_t id, int64_t due_us, int top) {
    struct hfi_lane *lane = look_up(store, id);
    if (!lane)
        return store->fault;
    touch(store, lane);
    lane->exact = lane->exact_top = true;
    lane->due_us = due_us;
    lane->top = top < 0 ? 0 : top;
    return 0;
}

/* No more due jobs were found: the truth, priority by priority, each by one seek. */
int hfi_sqlite_lane_exhausted(struct hfi_sqlite *store, int64_t id) {
    struct hfi_lane *lane = look_up(store, id);
    int64_t due_us = INT64_MAX;
    int priority = INT32_MAX, top = -1;
    for (bool more = lane != NULL; more && store->fault == 0;) {
        sqlite3_stmt *head = hfi_sql(store, HFI_SQL_CLAIM_HEAD);
        if (!head)
            break;
        sqlite3_bind_int64(head, 1, id);
        sqlite3_bind_int(head, 2, priority);
        sqlite3_bind_int64(head, 3, 0);
        more = hfi_sql_row(store, head);
        if (more) {
            priority = sqlite3_column_int(head, 0);
            top = priority > top ? priority : top;
            due_us = sqlite3_column_int64(head, 1) < due_us ? sqlite3_column_int64(head, 1) : due_us;
        }
        hfi_sql_done(head);
    }
    return lane && store->fault == 0 ? hfi_sqlite_lane_exact(store, id, due_us, top) : store->fault;
}

/* What its row says. Should it be less by now, a claim only finds that again. */
void hfi_sqlite_lane_seen(struct hfi_sqlite *store, int64_t id, int top) {
    struct hfi_lane *lane = by_number(store, id);
    if (lane)
        lane->known_top = top;
}

/* Before the commit. */
int hfi_sqlite_lanes_flush(struct hfi_sqlite *store) {
    for (struct hfi_lane *lane = store->touched; lane; lane = lane->next_touched) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANE_MARK);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, lane->id);
        sqlite3_bind_int64(statement, 2, lane->due_us);
        sqlite3_bind_int(statement, 3, lane->top);
        sqlite3_bind_int(statement, 4, lane->exact);
        sqlite3_bind_int(statement, 5, lane->exact_top);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
        if (lane->exact_top || lane->top > lane->known_top)
            lane->known_top = lane->top;
    }
    return 0;
}

static void drop_all(struct hfi_sqlite *store) {
    struct hfi_lane *lane, *next;
    HASH_ITER(by_key, store->lanes_by_key, lane, next)
        drop(store, lane);
    hfi_sqlite_gauges_free(store);
    store->gauges_stand = store->lanes_added = false;
}

/* After the transaction; with `undo` the lanes it made are forgotten: their rows are gone. Once for each walk all are,
 * so that the cache does not outgrow the table. */
void hfi_sqlite_lanes_forget(struct hfi_sqlite *store, bool undo) {
    while (store->touched) {
        store->touched->is_touched = false;
        store->touched = store->touched->next_touched;
    }
    struct hfi_lane *lane, *next;
    if (store->walk != 0 && store->walk != store->cached_at_walk) {
        drop_all(store);
        store->cached_at_walk = undo ? 0 : store->walk;
        return;
    }
    if (undo)
        store->gauges_stand = false;
    if (!store->lanes_added && !undo)
        return;
    HASH_ITER(by_key, store->lanes_by_key, lane, next) {
        if (lane->fresh && undo) {
            drop(store, lane);
            continue;
        }
        lane->fresh = false;
        lane->walk = undo ? 0 : lane->walk;
    }
    store->lanes_added = false;
}

void hfi_sqlite_lanes_free(struct hfi_sqlite *store) {
    drop_all(store);
}
