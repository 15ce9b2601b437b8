/* SPDX-License-Identifier: MIT */
/*
 * Second chances: a new job from a dead letter's snapshot, or the same job again. The letter's status and the job change
 * in one transaction, so of two redrives one wins. Must never change the snapshot. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/hands.h"
#include "jobs/letter.h"
#include "jobs/store/internal.h"

/* The columns of DEAD_LOAD. */
enum {
    STATUS, NEW_JOB, JOB, TYPE, QUEUE, DOWNSTREAM, BREAKER_KEY, LIMIT_KEY, PRIORITY, CONTENT_TYPE, POLICY, MAX_EXECUTIONS,
    TIMEOUT, ROOT, KEY, UNIQUE_KEY, CORRELATION, TRACE, TAGS, PAYLOAD, CUT, SOURCE, MESSAGE_ID, ORIGIN
};

static void read_snapshot(struct hfi_sqlite *store, sqlite3_stmt *statement, struct hfi_job *job) {
    *job = (struct hfi_job){
        .id = sqlite3_column_int64(statement, JOB),
        .priority = sqlite3_column_int(statement, PRIORITY),
        .max_executions = (uint32_t)sqlite3_column_int64(statement, MAX_EXECUTIONS),
        .execution_timeout_ms = -1,
        .root_id = sqlite3_column_int64(statement, ROOT),
        .type = hfi_column_text(statement, TYPE),
        .queue = hfi_column_text(statement, QUEUE),
        .downstream = hfi_column_text(statement, DOWNSTREAM),
        .breaker_key = hfi_column_text(statement, BREAKER_KEY),
        .limit_key = hfi_column_text(statement, LIMIT_KEY),
        .unique_key = hfi_column_text(statement, UNIQUE_KEY),
        .idempotency_key = hfi_column_text(statement, KEY),
        .source = hfi_column_text(statement, SOURCE),
        .source_message_id = hfi_column_text(statement, MESSAGE_ID),
        .correlation_id = hfi_column_text(statement, CORRELATION),
        .trace_context = hfi_column_text(statement, TRACE),
        .tags = hfi_column_text(statement, TAGS),
        .content_type = hfi_column_text(statement, CONTENT_TYPE),
        .payload = sqlite3_column_blob(statement, PAYLOAD),
        .payload_length = (size_t)sqlite3_column_bytes(statement, PAYLOAD),
    };
    if (sqlite3_column_type(statement, TIMEOUT) != SQLITE_NULL)
        job->execution_timeout_ms = sqlite3_column_int64(statement, TIMEOUT);
    if (!*job->queue)
        job->queue = "default";
    if (sqlite3_column_type(statement, POLICY) != SQLITE_NULL)
        hfi_sqlite_policy_by_id(store, sqlite3_column_int64(statement, POLICY), &job->policy);
}

/* An imported letter's copy tells of one that has another number here, if it is here. */
static int retell(struct hfi_sqlite *store, struct hfi_op_redrive *op, const char *origin, struct hfi_forward_room *room,
                  struct hfi_job *job) {
    char told[HFI_ORIGIN_ROOM];
    int64_t id = 0;
    if (!*origin || !hfi_forward_is(job))
        return 0;
    hfi_letter_told(origin, hfi_forward_letter(job), told);
    if (hfi_sqlite_find_origin(store, told, &id) != 0)
        return store->fault;
    op->stray = id == 0;
    if (op->stray)
        return hfi_forward_stray(op->op.error, op->dead_id);
    job->source_message_id = hfi_forward_retell(job, id, room);
    return 0;
}

/* The new job into the tables; its texts are the snapshot's, which stays read until then. */
static int make(struct hfi_sqlite *store, struct hfi_op_redrive *op, const struct hfi_job *snapshot, bool cut, const char *origin) {
    struct hfi_job job;
    struct hfi_forward_room room;
    char key[HFI_KEY_MAX + 1];
    int code = hfi_redrive_job(op, snapshot, cut, store->base.options.payload_max, &job);
    if (code == 0)
        code = retell(store, op, origin, &room, &job);
    if (code != 0)
        return code; /* whoever asked says it */
    if (hfi_sqlite_unique_holder(store, &job, &op->new_job) != 0)
        return store->fault;
    if (op->new_job != 0)
        return hfi_fail(op->op.error, HF_EEXIST, "unique key", "wait until that one has ended", "job %lld holds it",
                        (long long)op->new_job);
    struct hfi_lane_texts lane = {job.queue, job.type, job.downstream, job.breaker_key, job.limit_key, false};
    if (hfi_sqlite_next_id(store, &job.id) != 0 || hfi_sqlite_lane(store, &lane, &job.lane) != 0)
        return store->fault;
    if (job.policy && hfi_sqlite_policy(store, job.policy, &job.policy) != 0)
        return store->fault;
    if (job.root_id == 0)
        job.root_id = job.id;
    if (op->action->new_key)
        job.idempotency_key = hfi_fresh_key(key, store->base.uuid, job.id, 0);
    op->new_job = job.id;
    if (hfi_forward_is(&job) && hfi_sqlite_forward_again(store, snapshot->id, job.id) != 0)
        return store->fault;
    return hfi_sqlite_insert_row(store, &job);
}

static int refuse_settled(struct hfi_op_redrive *op) {
    if (op->status == HF_DEAD_REDRIVEN)
        return hfi_fail(op->op.error, HF_ESTATE, "dead letter", NULL, "%lld is redriven already, as job %lld",
                        (long long)op->dead_id, (long long)op->new_job);
    return hfi_fail(op->op.error, HF_ESTATE, "dead letter", NULL, "%lld is %s already", (long long)op->dead_id,
                    hf_dead_status_name(op->status));
}

static int redrive(struct hfi_sqlite *store, struct hfi_op_redrive *op, sqlite3_stmt *statement) {
    struct hfi_job snapshot;
    const struct hf_dead_action *action = op->action;
    op->status = sqlite3_column_int(statement, STATUS);
    op->new_job = sqlite3_column_int64(statement, NEW_JOB);
    if (op->status != HF_DEAD_DEAD)
        return refuse_settled(op);
    if (!action->force && hfi_sqlite_forwarded(store, op->dead_id, &op->new_job) == 0 && op->new_job != 0)
        return hfi_forwarded_already(op->op.error, "dead letter", op->dead_id, op->new_job);
    if (store->fault != 0)
        return store->fault;
    op->new_job = 0;
    read_snapshot(store, statement, &snapshot);
    int code = store->fault != 0 ? store->fault
                                 : make(store, op, &snapshot, sqlite3_column_int(statement, CUT) != 0, hfi_column_text(statement, ORIGIN));
    if (code != 0)
        return code;
    code = hfi_sqlite_settle(store, op->dead_id, HF_DEAD_REDRIVEN, op->now, action->actor, action->reason, op->new_job, op->task);
    if (code != 0)
        return store->fault != 0 ? store->fault : hfi_sqlite_fault(store, SQLITE_CORRUPT); /* it was open a moment ago */
    return hfi_sqlite_audit(store, op->now, action->actor, "dead.redrive", "dead", op->dead_id, action->reason,
                            action->payload ? "payload replaced" : action->new_key ? "new key" : NULL);
}

int hfi_sqlite_op_redrive(struct hfi_sqlite *store, struct hfi_op_redrive *op) {
    op->new_job = 0;
    op->status = 0;
    op->stray = false;
    if (store->full)
        return hfi_fail(op->op.error, HF_ENOSPC, store->path, "free space; it is taken up again by itself",
                        "the disk is full, nothing new is taken in");
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_LOAD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->dead_id);
    int code = hfi_sql_row(store, statement) ? redrive(store, op, statement)
               : store->fault != 0 ? store->fault
                                   : hfi_fail(op->op.error, HF_ENOENT, "dead letter", NULL, "%lld does not exist",
                                              (long long)op->dead_id);
    hfi_sql_done(statement);
    return store->fault != 0 ? store->fault : code;
}

/* The open letter of the job's last death; 0 when there is none any more. 0, HF_ESTATE (it is settled) or a fault. */
static int find_letter(struct hfi_sqlite *store, struct hfi_op_requeue *op, const struct hfi_job *job,
                       int64_t *dead_id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_OF_JOB);
    *dead_id = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, job->id);
    sqlite3_bind_int64(statement, 2, job->deaths);
    if (hfi_sql_row(store, statement)) {
        *dead_id = sqlite3_column_int64(statement, 0);
        op->status = sqlite3_column_int(statement, 1);
        op->other_job = sqlite3_column_int64(statement, 2);
    }
    hfi_sql_done(statement);
    if (store->fault == 0 && *dead_id != 0 && op->status == HF_DEAD_DEAD && !op->force &&
        hfi_sqlite_forwarded(store, *dead_id, &op->other_job) == 0 && op->other_job != 0)
        return hfi_forwarded_already(op->op.error, "job", op->id, op->other_job);
    if (store->fault == 0 && *dead_id != 0 && op->status != HF_DEAD_DEAD)
        return hfi_fail(op->op.error, HF_ESTATE, "job", NULL, "%lld: its dead letter is %s already", (long long)op->id,
                        hf_dead_status_name(op->status));
    return store->fault;
}

static int run_once(struct hfi_sqlite *store, enum hfi_sql which, int64_t id, const char *text) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    if (text)
        sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
    return hfi_sql_run(store, statement);
}

static int requeue(struct hfi_sqlite *store, struct hfi_op_requeue *op, const struct hfi_job *job) {
    struct hfi_hand hand;
    struct hfi_change change;
    int64_t letter, dead_id;
    char key[HFI_KEY_MAX + 1];
    op->was = job->state;
    if (job->state != HF_JOB_DEAD && job->state != HF_JOB_QUARANTINED)
        return hfi_fail(op->op.error, HF_ESTATE, "job", NULL, "%lld is %s, only dead or quarantined ones are requeued",
                        (long long)op->id, hf_job_state_name(job->state));
    int code = find_letter(store, op, job, &letter);
    if (code != 0)
        return code;
    if (hfi_sqlite_unique_holder(store, job, &op->other_job) != 0)
        return store->fault;
    if (op->other_job != 0)
        return hfi_fail(op->op.error, HF_EEXIST, "unique key", "wait until that one has ended", "job %lld holds it",
                        (long long)op->other_job);
    if (letter != 0)
        code = hfi_sqlite_settle(store, letter, HF_DEAD_REDRIVEN, op->now, op->actor, op->reason, job->id, 0);
    if (code != 0)
        return store->fault != 0 ? store->fault : hfi_sqlite_fault(store, SQLITE_CORRUPT); /* it was open a moment ago */
    hfi_hand_requeue(&hand, op);
    code = hfi_sqlite_change(store, job, &hand.event, &hand.rules, NULL, 0, &change, &dead_id);
    if (code != 0)
        return store->fault != 0 ? store->fault : hfi_sqlite_fault(store, SQLITE_CORRUPT); /* the letter is changed */
    if (hfi_forward_is(job) && hfi_sqlite_forward_again(store, job->id, job->id) != 0)
        return store->fault; /* what it tells of is on its way again */
    if (run_once(store, HFI_SQL_JOB_NO_PROGRESS, job->id, NULL) != 0 ||
        run_once(store, HFI_SQL_CHECKPOINT_DROP, job->id, NULL) != 0)
        return store->fault;
    if (op->new_key && (run_once(store, HFI_SQL_SPEC_KEY, job->id,
                                 hfi_fresh_key(key, store->base.uuid, job->id, change.job.epoch)) != 0 ||
                        run_once(store, HFI_SQL_JOB_HAS_SPEC, job->id, NULL) != 0))
        return store->fault;
    return hfi_sqlite_audit(store, op->now, op->actor, "job.requeue", "job", job->id, op->reason,
                            op->new_key ? "new key" : NULL);
}

int hfi_sqlite_op_requeue(struct hfi_sqlite *store, struct hfi_op_requeue *op) {
    struct hfi_job *job;
    op->was = op->status = 0;
    op->other_job = 0;
    int code = hfi_sqlite_load(store, op->id, &job);
    if (code == HF_ENOENT)
        return hfi_fail(op->op.error, code, "job", NULL, "%lld does not exist", (long long)op->id);
    if (code == 0)
        code = requeue(store, op, job);
    hfi_free(job);
    return code;
}
