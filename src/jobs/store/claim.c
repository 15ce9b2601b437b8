/* SPDX-License-Identifier: MIT */
/*
 * Claims: for each admitted lane, priority by priority, the earliest due jobs through the index (lane, priority DESC,
 * run_at): no sort (I44), and of each priority one row at most that is not claimed, but for a few where probes are
 * chosen. A lane whose limit key or queue has no place left is not read at all (I42). Must never hand out a job whose row
 * was not written. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

#define PRIORITIES 10
#define EXPIRED_LOOK 64 /* rows past their time that a claim passes over, of a priority: EXPIRE ends them */

struct claim {
    struct hfi_sqlite *store;
    struct hfi_op_claim *op;
    struct hfi_admitted *lane;
    int64_t next_due_us;            /* of the lane's jobs that were passed over */
    bool cut;                       /* of the lane: more of them than are passed over */
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

static void pass_over(struct claim *claim, int64_t run_at_us) {
    if (run_at_us < claim->next_due_us)
        claim->next_due_us = run_at_us;
}

static void take_row(struct claim *claim, struct hfi_job *row) {
    struct hfi_sqlite *store = claim->store;
    sqlite3_stmt *point = row->epoch > 0 ? hfi_sqlite_checkpoint(store, row) : NULL; /* it was claimed before */
    struct hfi_job *job = take(claim, row);
    if (point)
        hfi_sql_done(point);
    if (job)
        claim->op->jobs[claim->op->count++] = job;
    else
        pass_over(claim, row->run_at_us);
}

/*
 * Jobs of one priority due until then, `room` at most; `probes`: only such as suit, among the first few. Reads up to the
 * first row that is not for it, which tells whether there are more and when the next one is due; no further than a few
 * rows past their time.
 */
static int claim_priority(struct claim *claim, int priority, int64_t until_us, uint32_t room, bool probes) {
    struct hfi_sqlite *store = claim->store;
    struct hfi_op_claim *op = claim->op;
    size_t first = op->count;
    uint32_t seen = 0, expired_seen = 0;
    struct hfi_job row;
    sqlite3_stmt *due = hfi_sql(store, HFI_SQL_CLAIM_DUE);
    if (!due)
        return store->fault;
    sqlite3_bind_int64(due, 1, claim->lane->lane);
    sqlite3_bind_int(due, 2, priority);
    while (hfi_sql_row(store, due) && hfi_sqlite_read_job(store, due, &row) == 0 && store->fault == 0) {
        bool expired = row.expires_at_us != 0 && row.expires_at_us <= op->now.us;
        bool full = op->count - first == room, is_due = row.run_at_us <= until_us;
        claim->lane->more = claim->lane->more || (full && is_due && !expired);
        bool cut = is_due && expired && expired_seen++ == EXPIRED_LOOK;
        claim->cut = claim->cut || cut;
        if (!is_due || (full && !expired) || cut || (probes && seen == HFI_PROBE_LOOK)) {
            pass_over(claim, row.run_at_us);
            break;
        }
        seen += !expired;
        if (expired || (probes && !hfi_probe_suits(&row, &claim->begin.rules)))
            pass_over(claim, row.run_at_us);
        else
            take_row(claim, &row);
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

static int claim_priorities(struct claim *claim, uint32_t room, bool probes) {
    struct hfi_admitted *lane = claim->lane;
    int priority = INT32_MAX;
    lane->more = claim->cut = false;
    claim->next_due_us = INT64_MAX;
    while (!lane->more && next_priority(claim->store, lane->lane, &priority))
        if (claim_priority(claim, priority, claim->op->now.us, room - lane->claimed, probes) != 0)
            break;
    lane->more = lane->more || claim->cut;
    return claim->store->fault;
}

/* ------------------------------------------------------------------ aging */

/* When the first job of a priority that may be claimed was due; none: INT64_MAX. */
static int64_t head_of(struct claim *claim, int priority) {
    int64_t run_at_us = INT64_MAX;
    sqlite3_stmt *head = hfi_sql(claim->store, HFI_SQL_CLAIM_HEAD);
    if (!head)
        return run_at_us;
    sqlite3_bind_int64(head, 1, claim->lane->lane);
    sqlite3_bind_int(head, 2, priority);
    sqlite3_bind_int64(head, 3, claim->op->now.us);
    for (uint32_t seen = 0; run_at_us == INT64_MAX && hfi_sql_row(claim->store, head);) {
        if (sqlite3_column_int(head, 1) == 0) {
            run_at_us = sqlite3_column_int64(head, 0);
        } else if (seen++ == EXPIRED_LOOK) {
            claim->cut = true;
            break;
        }
    }
    hfi_sql_done(head);
    return run_at_us;
}

/* Whose turn it is among the heads, but for `other`; -1: nobody's. */
static int first_of(const struct claim *claim, const int64_t *heads, int other) {
    int best = -1;
    for (int priority = PRIORITIES - 1; priority >= 0; priority--) {
        if (priority == other || heads[priority] == INT64_MAX)
            continue;
        struct hfi_aged one = {priority, heads[priority]}, first = {best, best < 0 ? 0 : heads[best]};
        if (best < 0 || hfi_aged_before(one, first, claim->op->now.us, claim->lane->aging_us))
            best = priority;
    }
    return best;
}

/*
 * A merge of the priorities by what they have aged to. Each is in order by itself, so the one whose turn it is gives all
 * its jobs up to the due time at which the next one takes over: still the index' order, without a sort.
 */
static int claim_aged(struct claim *claim, uint32_t room) {
    struct hfi_admitted *lane = claim->lane;
    int64_t heads[PRIORITIES], now = claim->op->now.us;
    int turn;
    claim->cut = false;
    for (int priority = 0; priority < PRIORITIES; priority++)
        heads[priority] = head_of(claim, priority);
    while (claim->store->fault == 0 && lane->claimed < room && (turn = first_of(claim, heads, -1)) >= 0) {
        int next = first_of(claim, heads, turn);
        struct hfi_aged second = {next, next < 0 ? 0 : heads[next]};
        int64_t until = next < 0 ? now : hfi_aged_until(turn, second, now, lane->aging_us);
        uint32_t before = lane->claimed;
        if (claim_priority(claim, turn, until < now ? until : now, room - before, false) != 0)
            break;
        heads[turn] = lane->claimed > before ? head_of(claim, turn) : INT64_MAX; /* none: what is there cannot be had */
    }
    lane->more = claim->cut || first_of(claim, heads, -1) >= 0;
    return claim->store->fault;
}

/* ------------------------------------------------------------------ one lane */

/* Places that its limit key and its queue have left, in the whole store. 0 or a fault. */
static int look_at_limits(struct claim *claim, const struct hfi_lane_place *place, uint32_t *room) {
    struct hfi_admitted *lane = claim->lane;
    uint32_t left = hfi_limit_room(lane->queue_max, hfi_sqlite_gauge_running(place->queue));
    if (lane->limit && place->limit) {
        uint32_t of_key = hfi_limit_room(lane->limit->concurrency, hfi_sqlite_gauge_running(place->limit));
        left = of_key < left ? of_key : left;
        if (lane->limit->interval_us > 0 &&
            hfi_sqlite_rate_get(claim->store, place->texts.limit_key, &lane->full_at_us) != 0)
            return claim->store->fault;
        uint32_t tokens = hfi_limit_tokens(lane->limit, lane->full_at_us, claim->op->now.us, NULL);
        left = tokens < left ? tokens : left;
    }
    *room = left < *room ? left : *room;
    return 0;
}

static int use_rate(struct claim *claim, const struct hfi_lane_place *place) {
    struct hfi_admitted *lane = claim->lane;
    if (!lane->limit || !place->limit || lane->limit->interval_us == 0 || lane->claimed == 0)
        return 0;
    lane->full_at_us = hfi_limit_take(lane->limit, lane->full_at_us, claim->op->now.us, lane->claimed);
    return hfi_sqlite_rate_set(claim->store, place->texts.limit_key, lane->full_at_us);
}

static int claim_plain(struct claim *claim, uint32_t room) {
    struct hfi_admitted *lane = claim->lane;
    if (lane->probe && claim_priorities(claim, room, true) != 0)
        return claim->store->fault;
    if (lane->claimed > 0)
        room = lane->claimed; /* it is served: what remains is whether there are more */
    return claim_priorities(claim, room, false);
}

static int claim_lane(struct claim *claim, uint32_t room) {
    struct hfi_sqlite *store = claim->store;
    struct hfi_admitted *lane = claim->lane;
    const struct hfi_lane_place *place = hfi_sqlite_lane_place(store, lane->lane);
    if (!place || hfi_sqlite_gauge_paused(store, place->queue))
        return store->fault;
    room = room < lane->max ? room : lane->max;
    if (look_at_limits(claim, place, &room) != 0)
        return store->fault;
    lane->more = room == 0;
    if (room == 0)
        return 0;
    hfi_hand_start(&claim->begin, claim->op->node, claim->op->now, lane);
    claim->policy = NULL;
    if (lane->policy && claim->op->start && hfi_sqlite_policy(store, lane->policy, &claim->policy) != 0)
        return store->fault;
    bool aged = lane->aging_us > 0 && !lane->probe;
    int code = aged ? claim_aged(claim, room) : claim_plain(claim, room);
    if (code == 0 && !lane->more)
        code = aged ? hfi_sqlite_lane_exhausted(store, lane->lane)
                    : hfi_sqlite_lane_exact(store, lane->lane, claim->next_due_us);
    return code == 0 ? use_rate(claim, place) : code;
}

/* What runs is looked at only for those who ask. */
static int look_around(struct hfi_sqlite *store, const struct hfi_op_claim *op) {
    bool bounded = false;
    for (size_t i = 0; i < op->lane_count; i++) {
        const struct hfi_admitted *lane = &op->lanes[i];
        bounded = bounded || lane->queue_max > 0 || (lane->limit && lane->limit->concurrency > 0);
    }
    if (hfi_sqlite_pauses_read(store, op->now) != 0)
        return store->fault;
    return bounded ? hfi_sqlite_gauges_read(store) : 0;
}

int hfi_sqlite_op_claim(struct hfi_sqlite *store, struct hfi_op_claim *op) {
    struct claim claim = {.store = store, .op = op};
    op->count = 0;
    for (size_t i = 0; i < op->lane_count; i++) {
        op->lanes[i].claimed = 0;
        op->lanes[i].more = false;
        op->lanes[i].full_at_us = 0;
    }
    if (store->full)
        return hfi_fail(op->op.error, HF_ENOSPC, store->path, "free space; it is taken up again by itself",
                        "the disk is full, nothing new is started");
    if (!hfi_sqlite_node_lives(store, op->node)) /* taken for dead: what it claimed now would be nobody's */
        return store->fault != 0 ? store->fault : hfi_fail(op->op.error, HF_ESTALE, "node", NULL, "%lld is gone", (long long)op->node);
    if (look_around(store, op) != 0)
        return store->fault;
    hfi_hand_claim(&claim.reserve, op->node, op->now);
    for (size_t i = 0; i < op->lane_count && store->fault == 0; i++) {
        claim.lane = &op->lanes[i];
        claim_lane(&claim, op->max - (uint32_t)op->count);
    }
    return store->fault;
}
