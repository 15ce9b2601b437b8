/* SPDX-License-Identifier: MIT */
/*
 * Claims: for each admitted lane, priority by priority, the earliest due jobs through the index (lane, priority DESC,
 * run_at): no sort, no row read that is not claimed, but for a few where probes are chosen. Must never hand out a job
 * whose row was not written. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

struct claim {
    struct hfi_sqlite *store;
    struct hfi_op_claim *op;
    struct hfi_admitted *lane;
    const struct hfi_curve *policy; /* stored; NULL: none to fix */
    struct hfi_hand reserve, begin;
    struct hfi_change reserved, begun;
};

/* The row as it will be, one block. NULL: it cannot be claimed (an unknown state of affairs), or a fault. */
static struct hfi_job *take(struct claim *claim, struct hfi_job *row) {
    struct hfi_sqlite *store = claim->store;
    char key[HFI_IDEMPOTENCY_ROOM];
    if (hfi_transition(row, &claim->reserve.event, &claim->reserve.rules, &claim->reserved) != 0)
        return NULL;
    struct hfi_job *next = &claim->reserved.job;
    if (claim->op->start) {
        if (hfi_transition(next, &claim->begin.event, &claim->begin.rules, &claim->begun) != 0)
            return NULL;
        next = &claim->begun.job;
        if (!next->policy)
            next->policy = claim->policy;
    }
    if (!*next->idempotency_key)
        next->idempotency_key = hfi_idempotency_key(next, store->base.uuid, key);
    struct hfi_job *copy = hfi_job_copy(next);
    if (!copy)
        hfi_sqlite_no_memory(store);
    return copy;
}

/* Writes what was taken over rows that stood pending. */
static int write_back(struct claim *claim, size_t from) {
    struct hfi_op_claim *op = claim->op;
    for (size_t i = from; i < op->count; i++) {
        struct hfi_job before = *op->jobs[i];
        bool written;
        before.state = HF_JOB_PENDING;
        before.epoch--;
        if (hfi_sqlite_store_row(claim->store, &before, op->jobs[i], &written) != 0)
            return claim->store->fault;
        if (!written)
            return hfi_sqlite_fault(claim->store, SQLITE_CORRUPT); /* read a moment ago, in this transaction */
    }
    return 0;
}

/* Due jobs of one priority, `room` at most; `probes`: only such as suit, among the first few. */
static int claim_priority(struct claim *claim, int priority, uint32_t room, bool probes) {
    struct hfi_sqlite *store = claim->store;
    struct hfi_op_claim *op = claim->op;
    size_t first = op->count;
    sqlite3_stmt *due = hfi_sql(store, HFI_SQL_CLAIM_DUE);
    if (!due)
        return store->fault;
    sqlite3_bind_int64(due, 1, claim->lane->lane);
    sqlite3_bind_int(due, 2, priority);
    sqlite3_bind_int64(due, 3, op->now.us);
    sqlite3_bind_int64(due, 4, probes ? HFI_PROBE_LOOK : (int64_t)room + 1); /* one more tells whether there are more */
    while (hfi_sql_row(store, due)) {
        struct hfi_job row;
        if (op->count - first == room) {
            claim->lane->more = true;
            break;
        }
        if (hfi_sqlite_read_job(store, due, &row) != 0)
            break;
        if (probes && !hfi_probe_suits(&row, &claim->begin.rules))
            continue;
        sqlite3_stmt *point = row.epoch > 0 ? hfi_sqlite_checkpoint(store, &row) : NULL; /* it was claimed before */
        struct hfi_job *job = take(claim, &row);
        if (point)
            hfi_sql_done(point);
        if (store->fault != 0)
            break;
        if (job)
            op->jobs[op->count++] = job;
    }
    hfi_sql_done(due); /* before the rows under it change */
    claim->lane->claimed += (uint32_t)(op->count - first);
    return store->fault != 0 ? store->fault : write_back(claim, first);
}

/* The next lower priority that has pending jobs. */
static bool next_priority(struct hfi_sqlite *store, int64_t lane, int *priority) {
    sqlite3_stmt *top = hfi_sql(store, HFI_SQL_CLAIM_TOP);
    if (!top)
        return false;
    sqlite3_bind_int64(top, 1, lane);
    sqlite3_bind_int(top, 2, *priority);
    bool found = hfi_sql_row(store, top);
    if (found)
        *priority = sqlite3_column_int(top, 0);
    hfi_sql_done(top);
    return found;
}

static int is_paused(struct hfi_sqlite *store, const char *queue, struct hf_wall now, bool *paused) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_QUEUE_GET);
    *paused = false;
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, queue, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, now.us);
    if (hfi_sql_row(store, statement))
        *paused = sqlite3_column_int(statement, 0) != 0;
    hfi_sql_done(statement);
    return store->fault;
}

static int claim_priorities(struct claim *claim, uint32_t room, bool probes) {
    struct hfi_admitted *lane = claim->lane;
    int priority = INT32_MAX;
    lane->more = false;
    while (!lane->more && next_priority(claim->store, lane->lane, &priority))
        if (claim_priority(claim, priority, room - lane->claimed, probes) != 0)
            break;
    return claim->store->fault;
}

static int claim_lane(struct claim *claim, uint32_t room) {
    struct hfi_sqlite *store = claim->store;
    struct hfi_admitted *lane = claim->lane;
    const struct hfi_lane_texts *texts = hfi_sqlite_lane_texts(store, lane->lane);
    bool paused;
    if (!texts || is_paused(store, texts->queue, claim->op->now, &paused) != 0 || paused)
        return store->fault;
    hfi_hand_start(&claim->begin, claim->op->node, claim->op->now, lane);
    claim->policy = NULL;
    if (lane->policy && claim->op->start && hfi_sqlite_policy(store, lane->policy, &claim->policy) != 0)
        return store->fault;
    if (room > lane->max)
        room = lane->max;
    if (lane->probe && claim_priorities(claim, room, true) != 0)
        return store->fault;
    if (lane->claimed > 0)
        room = lane->claimed; /* it is served: what remains is whether there are more */
    if (claim_priorities(claim, room, false) == 0 && !lane->more)
        hfi_sqlite_lane_exhausted(store, lane->lane);
    return store->fault;
}

int hfi_sqlite_op_claim(struct hfi_sqlite *store, struct hfi_op_claim *op) {
    struct claim claim = {.store = store, .op = op};
    op->count = 0;
    for (size_t i = 0; i < op->lane_count; i++) {
        op->lanes[i].claimed = 0;
        op->lanes[i].more = false;
    }
    if (store->full)
        return hfi_fail(op->op.error, HF_ENOSPC, store->path, "free space; it is taken up again by itself",
                        "the disk is full, nothing new is started");
    hfi_hand_claim(&claim.reserve, op->node, op->now);
    for (size_t i = 0; i < op->lane_count && store->fault == 0; i++) {
        claim.lane = &op->lanes[i];
        claim_lane(&claim, op->max - (uint32_t)op->count);
    }
    return store->fault;
}
