/* SPDX-License-Identifier: MIT */
/*
 * Lanes and policies that nothing refers to any more: finds them in a walk through all jobs and dead letters, and removes
 * them. Must never remove one that a job has, or that a process is about to give to one.
 *
 * How that is known. Each walk has a number, the last one's stands in `meta`. What the walk comes across in a job or a
 * letter gets the number into its row; so does whatever a process gives to a job from the moment on at which the number
 * is there to be read, which is in the same transaction. What still has a lower number when all was walked through is
 * unused. A process that keeps rows in memory may use one whose row has the number of the last walk, for that one cannot
 * be removed by it, nor by an earlier one; any other it looks up again. So many walks may go on at once, and one that is
 * given up harms nobody. Writer thread.
 */
#include "base/clock.h"
#include "jobs/store/internal.h"

#define LOOKED_AT 4000 /* rows of one call */

enum phase { PHASE_JOBS, PHASE_LETTERS, PHASE_LANES, PHASE_POLICIES, PHASE_END };

int hfi_sqlite_meta_get(struct hfi_sqlite *store, const char *key, int64_t *number) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_META_GET);
    *number = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        *number = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

int hfi_sqlite_meta_set(struct hfi_sqlite *store, const char *key, int64_t number) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_META_SET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, number);
    return hfi_sql_run(store, statement);
}

int hfi_sqlite_walk(struct hfi_sqlite *store, int64_t *walk) {
    if (store->walk == 0 && hfi_sqlite_meta_get(store, "walk", &store->walk) == 0 && store->walk <= 0)
        hfi_sqlite_fault(store, SQLITE_CORRUPT);
    *walk = store->walk;
    return store->fault;
}

int hfi_sqlite_used(struct hfi_sqlite *store, enum hfi_sql which, int64_t id, int64_t walk, bool *stands) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    *stands = false;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, walk);
    if (hfi_sql_run(store, statement) == 0)
        *stands = sqlite3_changes(store->db) > 0;
    return store->fault;
}

/* ------------------------------------------------------------------ what is in use */

struct marks {
    int64_t lane, policy; /* marked last: neighbours often have the same */
    uint32_t written;
};

static void mark(struct hfi_sqlite *store, struct marks *marks, enum hfi_sql which, int64_t id, int64_t walk) {
    int64_t *last = which == HFI_SQL_LANE_FOUND ? &marks->lane : &marks->policy;
    bool marked;
    if (id == 0 || id == *last || hfi_sqlite_used(store, which, id, walk, &marked) != 0)
        return;
    *last = id;
    marks->written += marked; /* else it was already */
}

/* A page of jobs or letters. True: that was the last one. */
static bool mark_page(struct hfi_sqlite *store, struct hfi_op_unused *op) {
    struct marks marks = {0};
    bool jobs = op->walk.phase == PHASE_JOBS;
    uint32_t looked = 0;
    sqlite3_stmt *statement = hfi_sql(store, jobs ? HFI_SQL_WALK_JOBS : HFI_SQL_WALK_LETTERS);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, op->walk.after_id);
    sqlite3_bind_int64(statement, 2, LOOKED_AT);
    while (marks.written + 2 <= op->limit && hfi_sql_row(store, statement)) {
        int64_t id = sqlite3_column_int64(statement, 0);
        if (jobs)
            mark(store, &marks, HFI_SQL_LANE_FOUND, sqlite3_column_int64(statement, 1), op->walk.number);
        mark(store, &marks, HFI_SQL_POLICY_FOUND, sqlite3_column_int64(statement, jobs ? 2 : 1), op->walk.number);
        op->walk.after_id = id;
        looked++;
    }
    hfi_sql_done(statement);
    return marks.written + 2 <= op->limit && looked < LOOKED_AT;
}

/* ------------------------------------------------------------------ what is not */

/* A page of lanes or policies. True: that was the last one. */
static bool remove_page(struct hfi_sqlite *store, struct hfi_op_unused *op) {
    bool lanes = op->walk.phase == PHASE_LANES;
    int64_t last = 0;
    sqlite3_stmt *statement = hfi_sql(store, lanes ? HFI_SQL_WALK_LANES : HFI_SQL_WALK_POLICIES);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, op->walk.after_id);
    sqlite3_bind_int64(statement, 2, op->limit);
    if (hfi_sql_row(store, statement))
        last = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    statement = last == 0 ? NULL : hfi_sql(store, lanes ? HFI_SQL_WALK_LANES_DROP : HFI_SQL_WALK_POLICIES_DROP);
    if (!statement)
        return last == 0;
    sqlite3_bind_int64(statement, 1, op->walk.after_id);
    sqlite3_bind_int64(statement, 2, last);
    sqlite3_bind_int64(statement, 3, op->walk.number);
    if (hfi_sql_run(store, statement) != 0)
        return false;
    *(lanes ? &op->lanes_removed : &op->policies_removed) += (uint32_t)sqlite3_changes(store->db);
    op->walk.after_id = last;
    return false;
}

/* Of the caller's lanes those that have no row, to the front. */
static int find_gone(struct hfi_sqlite *store, struct hfi_op_unused *op) {
    for (size_t i = 0; i < op->lane_count; i++) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANE_EXISTS);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, op->lanes[i]);
        bool stands = hfi_sql_row(store, statement);
        hfi_sql_done(statement);
        if (!stands && store->fault == 0)
            op->lanes[op->gone_count++] = op->lanes[i];
    }
    return store->fault;
}

/* True: it is time, and this is the walk. A clock that was set back begins one, too. */
static bool begin(struct hfi_sqlite *store, struct hfi_op_unused *op) {
    int64_t walk, last;
    if (hfi_sqlite_meta_get(store, "walked_at", &last) != 0 || hfi_sqlite_walk(store, &walk) != 0)
        return false;
    if (op->now.us >= last && hfi_sub(op->now.us, last) < op->every_us)
        return false;
    if (hfi_sqlite_meta_set(store, "walked_at", op->now.us) != 0 || hfi_sqlite_meta_set(store, "walk", walk + 1) != 0)
        return false;
    store->walk = walk + 1;
    op->walk = (struct hfi_walk){.number = walk + 1};
    return true;
}

int hfi_sqlite_op_unused(struct hfi_sqlite *store, struct hfi_op_unused *op) {
    op->gone_count = 0;
    op->lanes_removed = op->policies_removed = 0;
    op->more = false;
    int64_t last;
    if (hfi_sqlite_walk(store, &last) != 0)
        return store->fault;
    if (op->walk.number > last) /* of another file: an older copy was laid in its place */
        op->walk = (struct hfi_walk){0};
    if (find_gone(store, op) != 0 || (op->walk.number == 0 && !begin(store, op)))
        return store->fault;
    bool over = op->walk.phase < PHASE_LANES ? mark_page(store, op) : remove_page(store, op);
    if (store->fault != 0)
        return store->fault;
    if (over)
        op->walk = (struct hfi_walk){.number = op->walk.number, .phase = op->walk.phase + 1};
    op->more = op->walk.phase < PHASE_END;
    if (!op->more)
        op->walk = (struct hfi_walk){0};
    return 0;
}
