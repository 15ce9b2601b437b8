/* SPDX-License-Identifier: MIT */
/*
 * Dead letters: the evidence of a death with all that a redrive needs, one alert row per sink beside it, and what people
 * decide about it later. Must never change the evidence, only its audit fields. Writer thread.
 */
#include "base/alloc.h"
#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

int hfi_sqlite_find_death(struct hfi_sqlite *store, const struct hfi_change *change, int64_t *dead_id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_OF_JOB);
    *dead_id = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, change->job.id);
    sqlite3_bind_int64(statement, 2, change->death.death_no);
    if (hfi_sql_row(store, statement))
        *dead_id = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

/* What the job itself says: enough to make it again. */
static void bind_snapshot(sqlite3_stmt *statement, const struct hfi_job *job) {
    hfi_bind_number(statement, 1, job->id); /* NULL: it died before there was a job */
    hfi_bind_text(statement, 5, job->source);
    hfi_bind_text(statement, 6, job->source_message_id);
    sqlite3_bind_text(statement, 7, job->type, -1, SQLITE_STATIC);
    hfi_bind_text(statement, 8, job->queue);
    hfi_bind_text(statement, 9, job->downstream);
    hfi_bind_text(statement, 10, job->breaker_key);
    hfi_bind_text(statement, 11, job->limit_key);
    sqlite3_bind_int(statement, 12, job->priority);
    hfi_bind_text(statement, 13, job->content_type);
    hfi_bind_number(statement, 14, job->policy ? job->policy->id : 0);
    hfi_bind_number(statement, 15, job->max_executions);
    if (job->execution_timeout_ms >= 0)
        sqlite3_bind_int64(statement, 16, job->execution_timeout_ms);
    else
        sqlite3_bind_null(statement, 16);
    sqlite3_bind_int64(statement, 17, job->executions);
    sqlite3_bind_int64(statement, 18, job->failures);
    hfi_bind_number(statement, 20, job->root_id);
    hfi_bind_text(statement, 21, job->idempotency_key);
    hfi_bind_text(statement, 22, job->unique_key);
    hfi_bind_text(statement, 23, job->correlation_id);
    hfi_bind_text(statement, 24, job->trace_context);
    hfi_bind_text(statement, 25, job->tags);
    hfi_bind_text(statement, 26, job->error_class);
    hfi_bind_number(statement, 34, job->created_at_us);
    sqlite3_bind_int64(statement, 35, job->finished_at_us);
    hfi_bind_bytes(statement, 36, job->payload, job->payload_length);
}

static void bind_death(struct hfi_sqlite *store, sqlite3_stmt *statement, const struct hfi_death *death,
                       const char *detail, uint32_t allowed, int64_t node, const char *fingerprint) {
    sqlite3_bind_int64(statement, 2, death->death_no);
    sqlite3_bind_int(statement, 3, (int)death->death_class);
    sqlite3_bind_int(statement, 4, death->quarantined);
    hfi_bind_number(statement, 19, allowed);
    hfi_bind_text(statement, 27, death->error_type);
    hfi_bind_text(statement, 28, store->lean ? NULL : death->message);
    hfi_bind_text(statement, 29, detail);
    hfi_bind_text(statement, 30, death->rule);
    hfi_bind_text(statement, 31, death->cause);
    sqlite3_bind_int64(statement, 32, node);
    sqlite3_bind_text(statement, 33, fingerprint, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 37, death->payload_cut);
    hfi_bind_text(statement, 38, death->schema);
    hfi_bind_text(statement, 39, death->origin);
}

int hfi_sqlite_write_death(struct hfi_sqlite *store, const struct hfi_change *change, uint32_t allowed,
                           const char *const *sinks, size_t sink_count, int64_t *dead_id) {
    char fingerprint[17];
    store->same_death = hfi_sqlite_find_death(store, change, dead_id) == 0 && *dead_id != 0;
    if (store->fault != 0 || store->same_death)
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_ADD);
    if (!statement)
        return store->fault;
    char *detail = hfi_detail_copy(change->death.detail, !store->lean && !store->base.options.no_error_detail);
    if (!detail)
        return hfi_sqlite_no_memory(store);
    hfi_fingerprint_print(change->death.fingerprint, fingerprint);
    bind_snapshot(statement, &change->job);
    bind_death(store, statement, &change->death, detail, allowed, change->history.node, fingerprint);
    int code = hfi_sql_run(store, statement);
    hfi_free(detail);
    if (code != 0)
        return code;
    *dead_id = sqlite3_last_insert_rowid(store->db);
    return hfi_sqlite_write_alerts(store, *dead_id, fingerprint, (struct hf_wall){change->job.finished_at_us}, sinks,
                                   sink_count);
}

int hfi_sqlite_op_poison(struct hfi_sqlite *store, struct hfi_op_poison *op) {
    struct hfi_change change = {.job = *op->job, .death = *op->death};
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_OF_MESSAGE);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, op->job->source, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, op->job->source_message_id, -1, SQLITE_STATIC);
    op->existed = hfi_sql_row(store, statement);
    op->dead_id = op->existed ? sqlite3_column_int64(statement, 0) : 0;
    hfi_sql_done(statement);
    if (store->fault != 0 || op->existed)
        return store->fault;
    change.job.id = 0;
    change.job.finished_at_us = op->now.us;
    int code = hfi_sqlite_write_death(store, &change, 0, op->sinks, op->sink_count, &op->dead_id);
    return code == 0 ? hfi_sqlite_forward(store, &change, op->forwards, op->dead_id) : code;
}

/* The letters this job was made of, or requeued for, learn how it ended, and the redrive task that made it. */
int hfi_sqlite_successor_ended(struct hfi_sqlite *store, const struct hfi_job *job) {
    int64_t task = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_SUCCESSOR);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, job->id);
    sqlite3_bind_text(statement, 2, hf_job_state_name(job->state), -1, SQLITE_STATIC);
    while (hfi_sql_row(store, statement))
        task = sqlite3_column_int64(statement, 0) > 0 ? sqlite3_column_int64(statement, 0) : task;
    hfi_sql_done(statement);
    return store->fault == 0 && task > 0 ? hfi_sqlite_redrive_job_ended(store, task, job->state) : store->fault;
}

int hfi_sqlite_settle(struct hfi_sqlite *store, int64_t dead_id, int status, struct hf_wall now, const char *actor,
                      const char *reason, int64_t new_job, int64_t task) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_SETTLE);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, dead_id);
    sqlite3_bind_int(statement, 2, status);
    sqlite3_bind_int64(statement, 3, now.us);
    hfi_bind_text(statement, 4, actor);
    hfi_bind_text(statement, 5, reason);
    hfi_bind_number(statement, 6, new_job);
    hfi_bind_number(statement, 7, task);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    return sqlite3_changes(store->db) > 0 ? 0 : HF_ESTATE;
}

static const char *const action_names[] = {"dead.reopen", "dead.redrive", "dead.resolve", "dead.discard"};

int hfi_sqlite_op_settle(struct hfi_sqlite *store, struct hfi_op_settle *op) {
    op->was = 0;
    if (op->status != HF_DEAD_RESOLVED && op->status != HF_DEAD_DISCARDED)
        return hfi_fail(op->op.error, HF_EINVAL, "dead letter", NULL, "%d is no way to settle one", (int)op->status);
    int code = hfi_sqlite_settle(store, op->dead_id, (int)op->status, op->now, op->action->actor, op->action->reason, 0, 0);
    if (store->fault != 0)
        return store->fault;
    if (code == 0)
        return hfi_sqlite_audit(store, op->now, op->action->actor, action_names[op->status], "dead", op->dead_id,
                                op->action->reason, NULL);
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_LOAD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->dead_id);
    bool found = hfi_sql_row(store, statement);
    if (found)
        op->was = sqlite3_column_int(statement, 0);
    hfi_sql_done(statement);
    if (store->fault != 0)
        return store->fault;
    if (!found)
        return hfi_fail(op->op.error, HF_ENOENT, "dead letter", NULL, "%lld does not exist", (long long)op->dead_id);
    return hfi_fail(op->op.error, HF_ESTATE, "dead letter", NULL, "%lld is %s already", (long long)op->dead_id,
                    hf_dead_status_name(op->was));
}
