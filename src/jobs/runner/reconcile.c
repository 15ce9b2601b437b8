/* SPDX-License-Identifier: MIT */
/*
 * Compares the rows that are this node's with the executions in its memory, at each stored beat: executions hear of
 * cancel requests, and a row that nothing in memory has at two beats in a row is lapsed, so that its job goes on by its
 * curve under a living node. Must never lapse a job whose claim or whose end is on its way. Loop thread.
 */
#include "base/alloc.h"
#include "base/log.h"
#include "jobs/runner/runner_state.h"

#define PAGE 256 /* lapses of one beat */

static struct hfi_owned *find(struct hfi_owned *rows, size_t count, int64_t id) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && rows[low].id == id ? &rows[low] : NULL;
}

/* The epoch tells executions of one job apart: an older one whose end is still to be written is not this one. */
static struct hfi_owned *mark(struct hfi_owned *rows, size_t count, const struct hfi_job *job) {
    struct hfi_owned *row = find(rows, count, job->id);
    if (row == NULL || row->epoch != job->epoch)
        return NULL;
    row->known = true;
    return row;
}

struct owned_rows {
    struct hfi_owned *rows;
    size_t count;
};

static void mark_reserved(const struct hfi_job *job, void *user) {
    const struct owned_rows *owned = user;
    mark(owned->rows, owned->count, job);
}

static void mark_all(struct hfi_runner *runner, struct hfi_owned *rows, size_t count) {
    struct hf_work *next;
    for (struct hf_work *work = runner->first; work != NULL; work = next) {
        next = work->next;
        const struct hfi_owned *row = mark(rows, count, work->job);
        if (row != NULL && row->cancel)
            hfi_execute_stop(work, HFI_STOP_CANCEL, false);
    }
    for (const struct hf_work *work = runner->unwritten; work != NULL; work = work->next)
        mark(rows, count, work->job);
    hfi_ahead_mark(runner, mark_reserved, &(struct owned_rows){rows, count});
}

/* Leaves only the rows that nothing has; returns how many of them were so at the last beat too, those first marked. */
static size_t keep_strays(struct hfi_runner *runner, struct hfi_owned *rows, size_t *count) {
    size_t kept = 0, again = 0;
    for (size_t i = 0; i < *count; i++) {
        if (rows[i].known)
            continue;
        const struct hfi_owned *before = find(runner->strays, runner->stray_count, rows[i].id);
        rows[kept] = rows[i];
        rows[kept].known = before != NULL && before->epoch == rows[i].epoch; /* as a stray */
        again += rows[kept++].known;
    }
    *count = kept;
    return again;
}

static void lapsed(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    struct hfi_op_sweep *sweep = (struct hfi_op_sweep *)(void *)op;
    runner->out--;
    hfi_tidy_left(runner, op);
    if (op->code != 0) {
        hfi_log(HF_LOG_WARNING, "upkeep.failed", HFI_S("what", "reconcile"), HFI_I("job", sweep->only),
                HFI_S("why", hf_strerror(op->code)), NULL); /* it is still a stray at the next beat */
    } else {
        pthread_mutex_lock(&runner->lock);
        runner->counts.lapsed += sweep->lapsed;
        runner->counts.orphaned += sweep->note_count;
        pthread_mutex_unlock(&runner->lock);
        if (sweep->lapsed > 0)
            hfi_log(HF_LOG_WARNING, "job.reconciled", HFI_I("job", sweep->only), HFI_I("epoch", sweep->epoch),
                    HFI_I("node", sweep->owner), HFI_I("died", sweep->note_count), NULL);
        hfi_deaths_told(runner, sweep->notes, sweep->note_count);
    }
    if (--runner->lost_out == 0) {
        hfi_rulebook_free(runner->lost_book);
        hfi_free(runner->lost_ops);
        runner->lost_ops = NULL;
        hfi_claim_stale(runner); /* what was only reserved is due again */
    }
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

/* One operation each, in one commit: a row that the store refuses keeps no other from its lapse. */
static void lapse(struct hfi_runner *runner, size_t again) {
    size_t count = again < PAGE ? again : PAGE, made = 0;
    runner->lost_ops = hfi_alloc_array(count, sizeof *runner->lost_ops);
    if (runner->lost_ops == NULL) {
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "lost jobs"), NULL);
        return; /* at the next beat */
    }
    runner->lost_out = count;
    runner->lost_book = hfi_rulebook_hold(runner->book);
    for (const struct hfi_owned *row = runner->strays; made < count; row++) {
        if (!row->known)
            continue;
        struct hfi_op_sweep *op = &runner->lost_ops[made++];
        op->book = runner->lost_book;
        op->owner = op->by = runner->node;
        op->only = row->id;
        op->epoch = row->epoch;
        op->now = hfi_runner_wall(runner);
        op->limit = 1;
        hfi_runner_submit(runner, &op->op, HFI_OP_SWEEP, lapsed, runner);
    }
}

void hfi_reconcile(struct hfi_runner *runner, struct hfi_owned *owned, size_t count) {
    mark_all(runner, owned, count);
    size_t again = keep_strays(runner, owned, &count);
    /* The claim that made a stray's row was out before the last beat, so it has come back if none or another is out. */
    bool claims_known = !runner->claiming || runner->claims_back != runner->strays_claims;
    hfi_free(runner->strays);
    runner->strays = owned;
    runner->stray_count = count;
    runner->strays_claims = runner->claims_back;
    if (again > 0 && claims_known && runner->lost_out == 0 && runner->life == HFI_LIFE_RUNNING)
        lapse(runner, again);
}
