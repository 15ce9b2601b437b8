/* SPDX-License-Identifier: MIT */
/*
 * The rows of one lane in a claim, through the index (lane, priority DESC, run_at): its head by one seek, then so many
 * rows in a row as it may give. No sort (I44), and of each priority one row at most that is not claimed, but for those
 * past their time and a few where probes are chosen. Must never hand out a job whose row was not written. Writer thread.
 */
#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/claim.h"
#include "jobs/views.h"

/* Columns of HFI_JOB_COLUMNS that are looked at before the row is read. */
enum { ID = 0, RUN_AT = 4, EXPIRES = 16 };

/* The row as it will be, one block. NULL: it cannot be claimed (an unknown state of affairs), or a fault. */
static struct hfi_job *become(struct hfi_claim *claim, const struct hfi_claim_lane *lane, struct hfi_job *row) {
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
            next->policy = lane->policy;
    }
    if (!*next->idempotency_key)
        next->idempotency_key = hfi_idempotency_key(next, store->base.uuid, key);
    struct hfi_job *copy = hfi_job_copy(next);
    if (!copy)
        hfi_sqlite_no_memory(store);
    return copy;
}

/* Writes what was taken over rows that stood pending. */
static int write_back(struct hfi_claim *claim, size_t from) {
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

static void pass_over(struct hfi_claim_lane *lane, int priority, int64_t run_at_us) {
    if (run_at_us < lane->passed_us)
        lane->passed_us = run_at_us;
    if (priority > lane->passed_top)
        lane->passed_top = priority;
}

static void take_row(struct hfi_claim *claim, struct hfi_claim_lane *lane, int priority, sqlite3_stmt *due) {
    struct hfi_sqlite *store = claim->store;
    struct hfi_job row;
    if (hfi_sqlite_read_job(store, due, &row) != 0)
        return;
    sqlite3_stmt *point = row.epoch > 0 ? hfi_sqlite_checkpoint(store, &row) : NULL; /* it was claimed before */
    struct hfi_job *job = become(claim, lane, &row);
    if (point)
        hfi_sql_done(point);
    if (job)
        claim->op->jobs[claim->op->count++] = job;
    else
        pass_over(lane, priority, row.run_at_us);
}

/* ------------------------------------------------------------------ heads */

static bool is_aging(const struct hfi_claim_lane *lane) {
    return lane->admitted->aging_us > 0;
}

static struct hfi_merge_head head_at(const struct hfi_claim *claim, const struct hfi_claim_lane *lane, int priority,
                                     int64_t run_at_us, int64_t id) {
    int64_t aged = hfi_aged_priority(priority, run_at_us, claim->op->now.us, lane->admitted->aging_us);
    return (struct hfi_merge_head){aged, run_at_us, id, priority};
}

/* The best of the lane's priorities, but for `other`; -1: none. */
static int best_of(const struct hfi_claim *claim, const struct hfi_claim_lane *lane, int other, struct hfi_merge_head *head) {
    int best = -1;
    for (int priority = HFI_PRIORITIES - 1; priority >= 0; priority--) {
        if (!lane->next[priority].due || priority == other)
            continue;
        struct hfi_merge_head one = head_at(claim, lane, priority, lane->next[priority].run_at_us, lane->next[priority].id);
        if (best >= 0 && !hfi_merge_before(&one, head))
            continue;
        best = priority;
        *head = one;
        if (!is_aging(lane))
            break;
    }
    return best;
}

const struct hfi_merge_head *hfi_claim_head(const struct hfi_claim *claim, struct hfi_claim_lane *lane) {
    return best_of(claim, lane, -1, &lane->head) < 0 ? NULL : &lane->head;
}

/* The first row below a priority that may be claimed or is to come; that priority is looked at then. */
static int look_below(struct hfi_claim *claim, struct hfi_claim_lane *lane) {
    struct hfi_sqlite *store = claim->store;
    int64_t now_us = claim->op->now.us;
    int priority = -1;
    uint32_t expired = 0;
    sqlite3_stmt *head = hfi_sql(store, HFI_SQL_CLAIM_HEAD);
    if (!head)
        return store->fault;
    sqlite3_bind_int64(head, 1, lane->admitted->lane);
    sqlite3_bind_int(head, 2, lane->below);
    sqlite3_bind_int64(head, 3, now_us);
    lane->below = 0;
    while (hfi_sql_row(store, head)) {
        if (sqlite3_column_int(head, 0) != priority)
            expired = 0;
        priority = sqlite3_column_int(head, 0);
        if (priority < 0)
            break; /* none that anybody could have put there */
        int64_t run_at_us = sqlite3_column_int64(head, 1);
        bool is_due = run_at_us <= now_us;
        if (is_due && sqlite3_column_int(head, 3) != 0) {
            pass_over(lane, priority, run_at_us);
            if (expired++ < HFI_EXPIRED_LOOK)
                continue;
            lane->cut = true;
        } else {
            lane->next[priority].run_at_us = run_at_us;
            lane->next[priority].id = sqlite3_column_int64(head, 2);
            lane->next[priority].due = is_due;
        }
        lane->below = priority;
        break;
    }
    hfi_sql_done(head);
    return store->fault;
}

static int look(struct hfi_claim *claim, struct hfi_claim_lane *lane, bool all) {
    struct hfi_merge_head head;
    while (lane->below > 0 && (all || best_of(claim, lane, -1, &head) < 0))
        if (look_below(claim, lane) != 0)
            break;
    return claim->store->fault;
}

int hfi_claim_look(struct hfi_claim *claim, struct hfi_claim_lane *lane) {
    lane->looked = true;
    return look(claim, lane, is_aging(lane));
}

/* ------------------------------------------------------------------ runs */

struct run {
    uint32_t count, seen, expired;
    const struct hfi_merge_head *until;
    bool probes;
};

/* The first row that is not for the run; of probes the first that was not taken. */
static void stop_at(struct hfi_claim_lane *lane, int priority, sqlite3_stmt *due, bool is_due) {
    if (lane->next[priority].run_at_us != INT64_MAX)
        return;
    lane->next[priority].run_at_us = sqlite3_column_int64(due, RUN_AT);
    lane->next[priority].id = sqlite3_column_int64(due, ID);
    lane->next[priority].due = is_due;
}

static bool is_over(const struct hfi_claim *claim, const struct hfi_claim_lane *lane, int priority, const struct run *run,
                    sqlite3_stmt *due, size_t first) {
    if (claim->op->count - first == run->count || (run->probes && run->seen == HFI_PROBE_LOOK))
        return true;
    if (!run->until)
        return false;
    struct hfi_merge_head row = head_at(claim, lane, priority, sqlite3_column_int64(due, RUN_AT), sqlite3_column_int64(due, ID));
    return !hfi_merge_before(&row, run->until);
}

/* One row; false: it ends the run. */
static bool take_or_stop(struct hfi_claim *claim, struct hfi_claim_lane *lane, int priority, struct run *run,
                         sqlite3_stmt *due, size_t first) {
    int64_t run_at_us = sqlite3_column_int64(due, RUN_AT), expires_us = sqlite3_column_int64(due, EXPIRES);
    bool is_due = run_at_us <= claim->op->now.us;
    if (is_due && expires_us != 0 && expires_us <= claim->op->now.us) {
        pass_over(lane, priority, run_at_us);
        lane->cut = lane->cut || run->expired == HFI_EXPIRED_LOOK;
        return run->expired++ < HFI_EXPIRED_LOOK;
    }
    if (!is_due || is_over(claim, lane, priority, run, due, first)) {
        stop_at(lane, priority, due, is_due);
        return false;
    }
    run->seen++;
    if (run->probes) {
        struct hfi_job row;
        if (hfi_sqlite_read_job(claim->store, due, &row) != 0)
            return false;
        if (!hfi_probe_suits(&row, &claim->begin.rules)) {
            stop_at(lane, priority, due, true);
            return true;
        }
    }
    take_row(claim, lane, priority, due);
    return claim->store->fault == 0;
}

static int scan(struct hfi_claim *claim, struct hfi_claim_lane *lane, int priority, struct run *run) {
    struct hfi_sqlite *store = claim->store;
    size_t first = claim->op->count;
    sqlite3_stmt *due = hfi_sql(store, HFI_SQL_CLAIM_DUE);
    if (!due)
        return store->fault;
    hfi_hand_start(&claim->begin, claim->op->node, claim->op->now, lane->admitted);
    sqlite3_bind_int64(due, 1, lane->admitted->lane);
    sqlite3_bind_int(due, 2, priority);
    sqlite3_bind_int64(due, 3, lane->next[priority].run_at_us);
    lane->next[priority].run_at_us = INT64_MAX;
    lane->next[priority].due = false;
    while (hfi_sql_row(store, due) && take_or_stop(claim, lane, priority, run, due, first))
        continue;
    hfi_sql_done(due); /* before the rows under it change */
    lane->admitted->claimed += (uint32_t)(claim->op->count - first);
    return store->fault != 0 ? store->fault : write_back(claim, first);
}

/*
 * Each priority is in order by itself, so the one whose turn it is gives all its jobs up to where another lane, or with
 * aging another priority, takes over: the index' order, without a sort.
 */
int hfi_claim_run(struct hfi_claim *claim, struct hfi_claim_lane *lane, uint32_t count, const struct hfi_merge_head *until) {
    struct hfi_merge_head head, second;
    struct run run = {.count = count, .until = until};
    int priority = best_of(claim, lane, -1, &head);
    if (priority < 0)
        return 0;
    if (is_aging(lane) && best_of(claim, lane, priority, &second) >= 0 && (!until || hfi_merge_before(&second, until)))
        run.until = &second;
    return scan(claim, lane, priority, &run) != 0 ? claim->store->fault : hfi_claim_look(claim, lane);
}

int hfi_claim_probes(struct hfi_claim *claim, struct hfi_claim_lane *lane, uint32_t count) {
    lane->looked = true;
    if (look(claim, lane, true) != 0)
        return claim->store->fault;
    for (int priority = HFI_PRIORITIES - 1; priority >= 0 && lane->admitted->claimed < count; priority--) {
        struct run run = {.count = count - lane->admitted->claimed, .probes = true};
        if (lane->next[priority].due && scan(claim, lane, priority, &run) != 0)
            return claim->store->fault;
    }
    if (lane->admitted->claimed > 0)
        return 0; /* the rest waits for their answers */
    while (claim->store->fault == 0 && lane->admitted->claimed < count && hfi_claim_head(claim, lane))
        hfi_claim_run(claim, lane, count - lane->admitted->claimed, NULL);
    return claim->store->fault;
}
