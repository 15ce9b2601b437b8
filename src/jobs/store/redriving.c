/* SPDX-License-Identifier: MIT */
/*
 * Redrive tasks in SQLite: begun, moved on, cancelled. A step redrives letters and moves its task in one transaction, so
 * a crash neither loses nor doubles one. Must never look at a letter behind the task's upper_id, nor at many in a step.
 * Writer thread.
 */
#include <string.h>

#include "base/text.h"
#include "jobs/store/internal.h"

void hfi_sqlite_read_redrive(sqlite3_stmt *statement, struct hfi_redrive_task *task) {
    memset(task, 0, sizeof *task);
    task->id = sqlite3_column_int64(statement, 0);
    task->state = sqlite3_column_int(statement, 1);
    task->next_at_us = sqlite3_column_int64(statement, 2);
    task->after_id = sqlite3_column_int64(statement, 3);
    task->redriven = (uint64_t)sqlite3_column_int64(statement, 4);
    task->refused = (uint64_t)sqlite3_column_int64(statement, 5);
    task->full_at_us = sqlite3_column_int64(statement, 6);
    task->ended_at_us = sqlite3_column_int64(statement, 7);
    hfi_text_copy(task->note, sizeof task->note, hfi_column_text(statement, 8));
    task->succeeded = (uint64_t)sqlite3_column_int64(statement, 9);
    task->failed = (uint64_t)sqlite3_column_int64(statement, 10);
    task->cancelled = (uint64_t)sqlite3_column_int64(statement, 11);
    task->upper_id = sqlite3_column_int64(statement, 12);
    task->total = (uint64_t)sqlite3_column_int64(statement, 13);
    task->canary = (uint32_t)sqlite3_column_int64(statement, 14);
    task->stop_permille = sqlite3_column_int(statement, 15);
    task->rate_per_s = sqlite3_column_double(statement, 16);
    task->new_key = sqlite3_column_int(statement, 17) != 0;
    task->death_class = sqlite3_column_int(statement, 18);
    task->since_us = sqlite3_column_int64(statement, 19);
    hfi_text_copy(task->type, sizeof task->type, hfi_column_text(statement, 20));
    hfi_text_copy(task->queue, sizeof task->queue, hfi_column_text(statement, 21));
    hfi_text_copy(task->error_type, sizeof task->error_type, hfi_column_text(statement, 22));
    hfi_text_copy(task->fingerprint, sizeof task->fingerprint, hfi_column_text(statement, 23));
    hfi_text_copy(task->actor, sizeof task->actor, hfi_column_text(statement, 24));
    hfi_text_copy(task->reason, sizeof task->reason, hfi_column_text(statement, 25));
    task->created_at_us = sqlite3_column_int64(statement, 26);
    task->force = sqlite3_column_int(statement, 27) != 0;
}

/* The task of that id, or the one that is due first at that time. */
static bool load(struct hfi_sqlite *store, enum hfi_sql which, int64_t value, struct hfi_redrive_task *task) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, value);
    bool found = hfi_sql_row(store, statement);
    if (found)
        hfi_sqlite_read_redrive(statement, task);
    hfi_sql_done(statement);
    return found;
}

static int save(struct hfi_sqlite *store, const struct hfi_redrive_task *task) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_REDRIVE_SET);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, task->id);
    sqlite3_bind_int(statement, 2, task->state);
    sqlite3_bind_int64(statement, 3, task->next_at_us);
    sqlite3_bind_int64(statement, 4, task->after_id);
    sqlite3_bind_int64(statement, 5, (int64_t)task->redriven);
    sqlite3_bind_int64(statement, 6, (int64_t)task->refused);
    sqlite3_bind_int64(statement, 7, task->full_at_us);
    hfi_bind_number(statement, 8, task->ended_at_us);
    hfi_bind_text(statement, 9, task->note);
    sqlite3_bind_int64(statement, 10, (int64_t)task->succeeded);
    sqlite3_bind_int64(statement, 11, (int64_t)task->failed);
    sqlite3_bind_int64(statement, 12, (int64_t)task->cancelled);
    return hfi_sql_run(store, statement);
}

int hfi_sqlite_redrive_job_ended(struct hfi_sqlite *store, int64_t id, int job_state) {
    struct hfi_redrive_task task;
    if (!load(store, HFI_SQL_REDRIVE_GET, id, &task))
        return store->fault;
    hfi_redrive_job_ended(&task, job_state);
    return save(store, &task);
}

int hfi_sqlite_op_redrive_task(struct hfi_sqlite *store, struct hfi_op_redrive_task *op) {
    const struct hfi_redrive_task *task = op->task;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_REDRIVE_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->now.us);
    sqlite3_bind_int64(statement, 2, task->upper_id);
    sqlite3_bind_int64(statement, 3, (int64_t)task->total);
    sqlite3_bind_int64(statement, 4, task->canary);
    sqlite3_bind_int(statement, 5, task->stop_permille);
    sqlite3_bind_double(statement, 6, task->rate_per_s);
    sqlite3_bind_int(statement, 7, task->new_key);
    sqlite3_bind_int(statement, 8, task->death_class);
    sqlite3_bind_int64(statement, 9, task->since_us);
    hfi_bind_text(statement, 10, task->type);
    hfi_bind_text(statement, 11, task->queue);
    hfi_bind_text(statement, 12, task->error_type);
    hfi_bind_text(statement, 13, task->fingerprint);
    sqlite3_bind_text(statement, 14, task->actor, -1, SQLITE_STATIC);
    hfi_bind_text(statement, 15, task->reason);
    sqlite3_bind_int(statement, 16, task->force);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    op->id = sqlite3_last_insert_rowid(store->db);
    return hfi_sqlite_audit(store, op->now, task->actor, "redrive.start", "redrive", op->id, task->reason, NULL);
}

/* The next letters that the filter takes. `*last`: looked at up to this one; `*finished`: there are no more. */
static size_t find_letters(struct hfi_sqlite *store, const struct hfi_redrive_task *task, int64_t *ids, size_t room,
                           int64_t *last, bool *finished) {
    struct hf_dead_filter filter;
    size_t found = 0;
    int64_t looked = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEAD_OPEN);
    if (!statement)
        return 0;
    hfi_redrive_filter(task, &filter);
    sqlite3_bind_int64(statement, 1, task->after_id);
    sqlite3_bind_int64(statement, 2, task->upper_id);
    sqlite3_bind_int64(statement, 3, HFI_REDRIVE_LOOK);
    while (found < room && hfi_sql_row(store, statement)) {
        struct hf_dead_view view = {
            .id = sqlite3_column_int64(statement, 0),
            .type = hfi_column_text(statement, 1),
            .queue = hfi_column_text(statement, 2),
            .death_class = sqlite3_column_int(statement, 3),
            .error_type = hfi_column_text(statement, 4),
            .fingerprint = hfi_column_text(statement, 5),
            .dead_at_us = sqlite3_column_int64(statement, 6),
        };
        looked++;
        *last = view.id;
        if (hfi_dead_fits(&view, &filter))
            ids[found++] = view.id;
    }
    hfi_sql_done(statement);
    *finished = store->fault == 0 && found < room && looked < HFI_REDRIVE_LOOK;
    return found;
}

/* HF_ENOSPC: the disk is full, and the rest has its turn again. */
static int redrive_all(struct hfi_sqlite *store, struct hfi_op_redrive_step *op, const int64_t *ids, size_t count) {
    struct hfi_redrive_task *task = &op->task;
    struct hf_dead_action action;
    hfi_redrive_action(task, &action);
    for (size_t i = 0; i < count; i++) {
        struct hfi_op_redrive one = {
            .op = {.kind = HFI_OP_REDRIVE}, .dead_id = ids[i], .action = &action, .task = task->id, .now = op->now};
        int code = hfi_sqlite_op_redrive(store, &one);
        if (store->fault != 0 || code == HF_ENOSPC)
            return code;
        op->redriven += code == 0;
        hfi_redrive_one(task, ids[i], code, one.new_job);
    }
    return 0;
}

static int step(struct hfi_sqlite *store, struct hfi_op_redrive_step *op) {
    struct hfi_redrive_task *task = &op->task;
    int64_t ids[HFI_REDRIVE_STEP], last = task->after_id;
    bool finished = false;
    uint32_t allowed = hfi_redrive_allowed(task, op->now);
    if (allowed == 0)
        return save(store, task);
    size_t count = find_letters(store, task, ids, allowed, &last, &finished);
    int code = store->fault != 0 ? store->fault : redrive_all(store, op, ids, count);
    if (store->fault != 0)
        return store->fault;
    if (code == 0)
        task->after_id = last;
    hfi_redrive_moved(task, op->now, op->redriven, finished && code == 0);
    if (code != 0)
        task->next_at_us = hfi_add(op->now.us, hfi_ms_to_us(HFI_REDRIVE_FULL_MS));
    return save(store, task);
}

static int next_due(struct hfi_sqlite *store, struct hfi_op_redrive_step *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_REDRIVE_NEXT);
    if (!statement)
        return store->fault;
    if (hfi_sql_row(store, statement))
        op->next_due_us = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

int hfi_sqlite_op_redrive_step(struct hfi_sqlite *store, struct hfi_op_redrive_step *op) {
    op->redriven = 0;
    op->next_due_us = INT64_MAX;
    op->found = false;
    if (op->look)
        return next_due(store, op);
    op->found = op->id != 0 ? load(store, HFI_SQL_REDRIVE_GET, op->id, &op->task)
                            : load(store, HFI_SQL_REDRIVE_DUE, op->now.us, &op->task);
    if (store->fault != 0)
        return store->fault;
    if (!op->found && op->id != 0)
        return hfi_fail(op->op.error, HF_ENOENT, "redrive task", NULL, "%lld does not exist", (long long)op->id);
    if (op->found && op->task.state == HF_REDRIVE_RUNNING && step(store, op) != 0)
        return store->fault;
    return next_due(store, op);
}

int hfi_sqlite_op_redrive_cancel(struct hfi_sqlite *store, struct hfi_op_redrive_cancel *op) {
    struct hfi_redrive_task task;
    op->was = 0;
    if (!load(store, HFI_SQL_REDRIVE_GET, op->id, &task))
        return store->fault != 0 ? store->fault
                                 : hfi_fail(op->op.error, HF_ENOENT, "redrive task", NULL, "%lld does not exist", (long long)op->id);
    op->was = task.state;
    int code = hfi_redrive_cancelled(&task, op->now, op->actor, op->reason);
    if (code != 0)
        return hfi_fail(op->op.error, code, "redrive task", NULL, "%lld is %s already", (long long)op->id,
                        hf_redrive_state_name(task.state));
    if (save(store, &task) != 0)
        return store->fault;
    return hfi_sqlite_audit(store, op->now, op->actor, "redrive.cancel", "redrive", op->id, op->reason, NULL);
}
