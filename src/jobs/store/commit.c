/* SPDX-License-Identifier: MIT */
/*
 * One transaction for a batch of operations: begins, runs each, commits, answers. Decides what a failure means: a
 * logical refusal is one operation's own; anything else rolls everything back, and each operation is then tried in a
 * transaction of its own, so one bad operation never takes its batch along. A transaction that the deadline of the whole
 * ended is busy for now: the writer brings all of it again, if there is time for it. Must never leave a transaction open or
 * answer success for what was not committed. Writer thread.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/store/codes.h"
#include "jobs/store/internal.h"
#include "jobs/store/undo.h"

static int run(struct hfi_sqlite *store, struct hfi_op *op) {
    void *whole = op;
    switch (op->kind) {
#define RUN(name, lower)                                                                                               \
    case HFI_OP_##name:                                                                                                \
        return hfi_sqlite_op_##lower(store, whole);
        RUN(PUT, put)
        RUN(JOIN, join)
        RUN(BEAT, beat)
        RUN(LEAVE, leave)
        RUN(NODES, nodes)
        RUN(LANES, lanes)
        RUN(CLAIM, claim)
        RUN(APPLY, apply)
        RUN(SWEEP, sweep)
        RUN(EXPIRE, expire)
        RUN(QUARANTINE, quarantine)
        RUN(CANCEL, cancel)
        RUN(REQUEUE, requeue)
        RUN(REDRIVE, redrive)
        RUN(SETTLE, settle)
        RUN(PAUSE, pause)
        RUN(DOWNSTREAM, downstream)
        RUN(SHARE, share)
        RUN(ALERTS, alerts)
        RUN(ALERT_END, alert_end)
        RUN(ABSENT, absent)
        RUN(POISON, poison)
        RUN(NOTE, note)
        RUN(PRUNE, prune)
        RUN(UNUSED, unused)
        RUN(RELEASE, release)
        RUN(READMIT, readmit)
        RUN(REDRIVE_TASK, redrive_task)
        RUN(REDRIVE_STEP, redrive_step)
        RUN(REDRIVE_CANCEL, redrive_cancel)
        RUN(IMPORT, import)
        RUN(MEASURE, measure)
#undef RUN
    case HFI_OP_COUNT:
        break;
    }
    return hfi_fail(op->error, HF_ENOTSUP, "operation", NULL, "kind %d is unknown to this store", (int)op->kind);
}

/* With the operation come the jobs that waited for those it ended. */
static int run_whole(struct hfi_sqlite *store, struct hfi_op *op) {
    uint32_t released = store->released, ended_with = store->ended_with;
    store->left_over = false;
    int code = run(store, op);
    if (store->fault == 0)
        hfi_sqlite_deps_flush(store);
    op->left_over = store->left_over;
    if (op->kind == HFI_OP_APPLY) {
        struct hfi_op_apply *apply = (void *)op;
        apply->released = store->released - released;
        apply->ended = store->ended_with - ended_with;
    }
    return code;
}

static void forget(struct hfi_sqlite *store) {
    store->fault = store->native = 0;
    store->why[0] = '\0';
    store->next_job = store->walk = 0;
    store->ids_taken = store->control_changed = store->counted = false;
    memset(store->delta, 0, sizeof store->delta);
    hfi_sqlite_deps_forget(store);
}

/* Nothing is written by any of them: no lock is taken that a writer waits for, nor is one waited for [S3.10]. */
static bool only_reads(struct hfi_op *const *ops, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ops[i]->kind != HFI_OP_LANES && ops[i]->kind != HFI_OP_NODES &&
            !(ops[i]->kind == HFI_OP_REDRIVE_STEP && ((const struct hfi_op_redrive_step *)(const void *)ops[i])->look))
            return false;
    return true;
}

static int begin(struct hfi_sqlite *store, bool reads) {
    forget(store);
    hfi_deadline_go_on(&store->deadline);
    if (store->moved) {
        snprintf(store->why, sizeof store->why, "the file was replaced or removed while it was open");
        return store->fault = HF_EIO;
    }
    if (!reads)
        hfi_sqlite_turn_take(store);
    store->fault = hfi_sqlite_gate_enter(store);
    sqlite3_stmt *statement = store->fault == 0 ? hfi_sql(store, reads ? HFI_SQL_BEGIN_READ : HFI_SQL_BEGIN) : NULL;
    if (statement)
        hfi_sql_run(store, statement);
    hfi_sqlite_turn_give(store);
    return store->fault;
}

static int flush_counts(struct hfi_sqlite *store) {
    for (int state = 0; state < HFI_COUNTED_STATES && store->counted; state++) {
        if (store->delta[state] == 0)
            continue;
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_COUNT_ADD);
        if (!statement)
            return store->fault;
        sqlite3_bind_int(statement, 1, state);
        sqlite3_bind_int64(statement, 2, store->delta[state]);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    return 0;
}

static int flush_control(struct hfi_sqlite *store) {
    if (!store->control_changed)
        return 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_META_BUMP);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, "control", -1, SQLITE_STATIC);
    return hfi_sql_run(store, statement);
}

static int end(struct hfi_sqlite *store) {
    if (hfi_sqlite_lanes_flush(store) != 0 || hfi_sqlite_ids_flush(store) != 0 || flush_counts(store) != 0 ||
        flush_control(store) != 0)
        return store->fault;
    hfi_deadline_stop(&store->deadline); /* a commit is never ended half-way */
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_COMMIT);
    return statement ? hfi_sql_run(store, statement) : store->fault;
}

static void roll_back(struct hfi_sqlite *store) {
    if (!sqlite3_get_autocommit(store->db)) /* SQLite may have done it already */
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

/* One transaction for all of them. 0, or the HF_E… that all of them got. */
static int attempt(struct hfi_sqlite *store, struct hfi_op **ops, size_t count) {
    struct hfi_undo undo = {0};
    size_t done = 0;
    begin(store, only_reads(ops, count));
    for (; done < count && store->fault == 0; done++) {
        if (hfi_undo_note(&undo, ops[done]) != 0)
            hfi_sqlite_no_memory(store);
        else
            ops[done]->code = run_whole(store, ops[done]);
    }
    if (store->fault == 0)
        end(store);
    int code = store->fault;
    hfi_deadline_stop(&store->deadline);
    if (code != 0)
        roll_back(store);
    hfi_sqlite_gate_leave(store);
    hfi_sqlite_lanes_forget(store, code != 0);
    hfi_sqlite_locks_settle(store, code == 0);
    hfi_sqlite_policies_settle(store, code == 0);
    if (code != 0) {
        hfi_undo_all(&undo);
        for (size_t i = 0; i < count; i++) {
            ops[i]->code = hfi_fail(ops[i]->error, code, store->path, NULL, "%s", store->why);
            if (ops[i]->error)
                ops[i]->error->native = store->native;
        }
    }
    hfi_undo_free(&undo);
    return code;
}

/* A disk that is full: what runs may still end, on the space that was kept for it. */
static int attempt_with_ballast(struct hfi_sqlite *store, struct hfi_op **ops, size_t count) {
    int code = attempt(store, ops, count);
    if (code == HF_ENOSPC && store->native != 0) {
        store->full = true;
        if (hfi_sqlite_ballast_drop(store))
            code = attempt(store, ops, count);
    }
    return code;
}

/* A death that the store refuses for good is written without its texts: they go to the log instead (S0.18). */
static void attempt_alone(struct hfi_sqlite *store, struct hfi_op *op) {
    int code = attempt_with_ballast(store, &op, 1);
    if ((op->kind != HFI_OP_APPLY && op->kind != HFI_OP_POISON) || (code != HF_ETOOBIG && code != HF_EEXIST))
        return;
    store->lean = true;
    attempt_with_ballast(store, &op, 1);
    store->lean = false;
}

void hfi_sqlite_commit(struct hfi_store *self, struct hfi_op **ops, size_t count) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    hfi_deadline_start(&store->deadline, self->budget_us);
    int code = attempt_with_ballast(store, ops, count);
    if (code == HF_EBUSY && hfi_deadline_ended(&store->deadline, store->native))
        hfi_log(HF_LOG_WARNING, "store.slow", HFI_S("path", store->path), HFI_S("why", store->why),
                HFI_I("operations", count), NULL);
    if (code == 0 || code == HF_EBUSY)
        return;
    hfi_log(HF_LOG_WARNING, "store.rollback", HFI_S("path", store->path), HFI_S("error", hf_error_name(code)),
            HFI_S("why", store->why), HFI_I("native", store->native), HFI_I("operations", count), NULL);
    if (count == 1 && code != HF_ETOOBIG && code != HF_EEXIST)
        return;
    for (size_t i = 0; i < count; i++)
        attempt_alone(store, ops[i]);
}
