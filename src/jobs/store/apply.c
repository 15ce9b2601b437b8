/* SPDX-License-Identifier: MIT */
/*
 * Outcomes: the transition on the owner's copy, its row under the fence, and in the same transaction all it means:
 * history, dead letter, alerts, what became of a redriven dead letter. Must never write a part of that. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/deps.h"
#include "jobs/forward.h"
#include "jobs/store/internal.h"

static void bind_phase(sqlite3_stmt *statement, int at, int64_t us) {
    if (us >= 0)
        sqlite3_bind_int64(statement, at, us);
    else
        sqlite3_bind_null(statement, at);
}

static void bind_history_key(sqlite3_stmt *statement, const struct hfi_history *history, int64_t epoch) {
    sqlite3_bind_int64(statement, 1, history->job_id);
    sqlite3_bind_int64(statement, 2, epoch);
    sqlite3_bind_int64(statement, 3, history->ended_at_us);
    sqlite3_bind_int(statement, 4, history->event);
}

static int write_history_texts(struct hfi_sqlite *store, const struct hfi_history *history, int64_t epoch) {
    bool rule = *history->rule && (*history->error_type || history->event != HFI_EVENT_SUCCEEDED);
    if (!*history->error_class && !*history->error_type && !*history->message && !rule)
        return 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_HISTORY_ERROR_ADD);
    if (!statement)
        return store->fault;
    bind_history_key(statement, history, epoch);
    hfi_bind_text(statement, 5, history->error_class);
    hfi_bind_text(statement, 6, history->error_type);
    hfi_bind_text(statement, 7, history->rule);
    hfi_bind_text(statement, 8, store->lean ? NULL : history->message);
    return hfi_sql_run(store, statement);
}

static int write_history(struct hfi_sqlite *store, const struct hfi_history *history, int64_t epoch) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_HISTORY_ADD);
    if (!statement)
        return store->fault;
    bind_history_key(statement, history, epoch);
    sqlite3_bind_int64(statement, 5, history->execution);
    hfi_bind_number(statement, 6, history->started_at_us);
    hfi_bind_number(statement, 7, history->next_run_at_us);
    hfi_bind_number(statement, 8, history->node);
    hfi_bind_number(statement, 9, history->attempts);
    hfi_bind_number(statement, 10, history->retries);
    bind_phase(statement, 11, history->resolve_us);
    bind_phase(statement, 12, history->connect_us);
    bind_phase(statement, 13, history->tls_us);
    bind_phase(statement, 14, history->first_byte_us);
    bind_phase(statement, 15, history->total_us);
    hfi_bind_number(statement, 16, history->breaker);
    hfi_bind_number(statement, 17, history->state);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    return write_history_texts(store, history, epoch);
}

int hfi_sqlite_consequences(struct hfi_sqlite *store, const struct hfi_job *before, const struct hfi_change *change,
                            const struct hfi_rules *rules, const char *const *sinks, size_t sink_count, int64_t *dead_id) {
    const struct hfi_job *job = &change->job;
    *dead_id = 0;
    if (change->has_history && write_history(store, &change->history, before->epoch) != 0)
        return store->fault;
    /* a successor's end goes to the letters it came from, before it may leave one of its own */
    if (hfi_state_ended(job->state) && (before->parent_id != 0 || before->deaths > 0) && hfi_sqlite_successor_ended(store, job) != 0)
        return store->fault;
    /* the one place that every end of a job comes through, whoever ended it */
    if (hfi_deps_matter(before->state, job->state) &&
        hfi_sqlite_deps_moved(store, job->id, (struct hf_wall){change->history.ended_at_us}) != 0)
        return store->fault;
    if (hfi_state_ended(job->state) && hfi_forward_is(job) && hfi_sqlite_forward_ended(store, job) != 0)
        return store->fault;
    if (!change->has_death)
        return 0;
    int code = hfi_sqlite_write_death(store, change, hfi_max_executions(job, rules), sinks, sink_count, dead_id);
    return code == 0 && rules ? hfi_sqlite_forward(store, change, rules->forwards, *dead_id) : code;
}

int hfi_sqlite_change(struct hfi_sqlite *store, const struct hfi_job *job, const struct hfi_event *event,
                      const struct hfi_rules *rules, const char *const *sinks, size_t sink_count,
                      struct hfi_change *change, int64_t *dead_id) {
    bool written;
    int code = hfi_transition(job, event, rules, change);
    *dead_id = 0;
    if (code != 0)
        return code;
    if (hfi_sqlite_store_row(store, job, &change->job, &written) != 0)
        return store->fault;
    if (!written)
        return HF_ESTALE;
    return hfi_sqlite_consequences(store, job, change, rules, sinks, sink_count, dead_id);
}

/* What is reserved is not started while its queue is paused; if it is another owner's by now, that is what is said. */
static bool is_kept(struct hfi_sqlite *store, const struct hfi_op_apply *op, const struct hfi_job *job) {
    struct hfi_job *row;
    if (op->event.kind != HFI_EVENT_STARTED || hfi_sqlite_pauses_read(store, op->event.now) != 0)
        return false;
    const struct hfi_lane_place *place = hfi_sqlite_lane_place(store, job->lane);
    if (!place || !hfi_sqlite_gauge_paused(store, place->queue) || hfi_sqlite_load(store, job->id, &row) != 0)
        return false;
    bool owned = row->state == HF_JOB_RUNNING && row->epoch == job->epoch;
    hfi_free(row);
    return owned;
}

static int change_owned(struct hfi_sqlite *store, struct hfi_op_apply *op, const struct hfi_job *job) {
    bool written;
    int code = is_kept(store, op, job) ? HF_ESTATE : hfi_transition(job, &op->event, &op->rules, &op->change);
    if (store->fault != 0)
        return store->fault;
    if (code != 0)
        return hfi_fail(op->op.error, code, "job", NULL, "%lld does not take %s", (long long)job->id,
                        hfi_event_name(op->event.kind));
    if (op->event.kind == HFI_EVENT_STARTED && !op->change.job.policy && op->rules.policy &&
        hfi_sqlite_policy(store, op->rules.policy, &op->change.job.policy) != 0)
        return store->fault;
    if (hfi_sqlite_store_row(store, job, &op->change.job, &written) != 0)
        return store->fault;
    if (!written)
        return HF_ESTALE;
    hfi_sqlite_consequences(store, job, &op->change, &op->rules, op->sinks, op->sink_count, &op->dead_id);
    if (!job->policy && op->change.job.policy)
        hfi_sqlite_policy_keep(store, op->change.job.policy->id); /* the job that began takes it over */
    return store->fault;
}

/* The letter of the death that this write made before. */
static int answer_again(struct hfi_sqlite *store, struct hfi_op_apply *op) {
    store->same_death = false;
    if (hfi_sqlite_find_death(store, &op->change, &op->dead_id) != 0)
        return store->fault;
    return op->dead_id != 0 ? 0 : HF_ESTALE;
}

/* The fence missed: this write was made before, the job has another owner, or somebody asked to cancel it meanwhile. */
static int look_again(struct hfi_sqlite *store, struct hfi_op_apply *op) {
    struct hfi_job *row;
    int code = hfi_sqlite_load(store, op->job->id, &row);
    if (store->fault != 0)
        return store->fault;
    if (code == 0 && row->state == HF_JOB_RUNNING && row->epoch == op->job->epoch &&
        row->cancel_requested_at_us != op->job->cancel_requested_at_us) {
        struct hfi_job merged = *op->job;
        merged.cancel_requested_at_us = row->cancel_requested_at_us;
        merged.cancel_by = row->cancel_by;
        merged.cancel_reason = row->cancel_reason;
        code = change_owned(store, op, &merged);
        /* The change must not point into a block that goes. Without who asked and why it must not know of the request
           either: its owner's next write would pass the fence and wipe both out. */
        if (op->change.job.cancel_by == row->cancel_by || op->change.job.cancel_reason == row->cancel_reason) {
            op->change.job.cancel_by = op->change.job.cancel_reason = "";
            op->change.job.cancel_requested_at_us = op->job->cancel_requested_at_us;
        }
    } else if (code == 0 && op->job->state == HF_JOB_RUNNING && hfi_death_was_made(&op->change, row)) {
        code = answer_again(store, op);
    } else {
        code = HF_ESTALE;
    }
    hfi_free(row);
    return code;
}

int hfi_sqlite_op_apply(struct hfi_sqlite *store, struct hfi_op_apply *op) {
    op->dead_id = 0;
    int code = op->job->state == HF_JOB_RUNNING ? change_owned(store, op, op->job) : HF_ESTALE;
    if (code == HF_ESTALE && store->fault == 0)
        code = look_again(store, op);
    op->existed = code == 0 && op->change.has_death && store->same_death;
    if (code == HF_ESTALE)
        return hfi_fail(op->op.error, code, "job", NULL, "%lld has another owner by now, or is gone",
                        (long long)op->job->id);
    return code;
}
