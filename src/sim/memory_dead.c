/* SPDX-License-Identifier: MIT */
/*
 * What people decide about dead letters in the memory store (requeue, redrive, resolve, discard), and the alerts that
 * deaths left. Must never change the evidence, nor settle a dead letter twice. Under the store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/hands.h"
#include "jobs/letter.h"
#include "sim/memory_state.h"

static int64_t dead_id(const void *item) {
    return ((const struct hfi_memory_dead *)item)->id;
}

struct hfi_memory_dead *hfi_memory_find_dead(struct hfi_memory *store, int64_t id) {
    size_t at = hfi_array_after(&store->deads, id - 1, dead_id);
    struct hfi_memory_dead *dead = at < store->deads.count ? store->deads.items[at] : NULL;
    return dead && dead->id == id ? dead : NULL;
}

/* How it was settled; the texts are made before anything changes. */
struct verdict {
    char *by, *reason;
};

static int make_verdict(struct verdict *verdict, const char *by, const char *reason) {
    verdict->by = hfi_strdup(by ? by : "");
    verdict->reason = hfi_strdup(reason ? reason : "");
    return verdict->by && verdict->reason ? 0 : HF_ENOMEM;
}

static void drop_verdict(struct verdict *verdict) {
    hfi_free(verdict->by);
    hfi_free(verdict->reason);
}

static void settle(struct hfi_memory_dead *dead, struct verdict *verdict, int32_t status, struct hf_wall now,
                   int64_t new_job, int64_t task) {
    dead->status = status;
    dead->settled_at_us = now.us;
    hfi_free(dead->settled_by); /* of an imported letter */
    hfi_free(dead->settled_reason);
    dead->settled_by = verdict->by;
    dead->settled_reason = verdict->reason;
    dead->new_job_id = new_job;
    dead->task_id = task;
}

struct hfi_memory_dead *hfi_memory_last_death(struct hfi_memory *store, const struct hfi_job *job) {
    for (size_t i = store->deads.count; i > 0; i--) {
        struct hfi_memory_dead *dead = store->deads.items[i - 1];
        if (dead->job->id == job->id && dead->death.death_no == job->deaths)
            return dead;
    }
    return NULL;
}

static int check_requeue(struct hfi_memory *store, struct hfi_op_requeue *op, const struct hfi_memory_job *row,
                         const struct hfi_memory_dead *dead) {
    op->was = row->job->state;
    op->status = HF_DEAD_DEAD;
    op->other_job = 0;
    if (dead && dead->status != HF_DEAD_DEAD &&
        (row->job->state == HF_JOB_DEAD || row->job->state == HF_JOB_QUARANTINED)) {
        op->status = dead->status;
        op->other_job = dead->new_job_id;
        return HF_ESTATE;
    }
    if (dead && dead->status == HF_DEAD_DEAD && !op->force && (op->other_job = hfi_memory_forwarded(store, dead->id)) != 0)
        return hfi_forwarded_already(op->op.error, "job", op->id, op->other_job);
    return 0;
}

int hfi_memory_requeue(struct hfi_memory *store, struct hfi_op_requeue *op) {
    struct hfi_memory_job *row = hfi_memory_find(store, op->id);
    struct hfi_memory_dead *dead = row ? hfi_memory_last_death(store, row->job) : NULL;
    struct hfi_hand hand;
    struct hfi_change change;
    struct hfi_staged staged;
    struct verdict verdict = {NULL, NULL};
    char key[HFI_KEY_MAX + 1];
    int code = row ? check_requeue(store, op, row, dead) : HF_ENOENT;
    if (code != 0)
        return code;
    struct hfi_job job = *row->job;
    if (op->new_key)
        job.idempotency_key = hfi_fresh_key(key, store->base.uuid, job.id, job.epoch + 1); /* the one it gets */
    hfi_hand_requeue(&hand, op);
    code = hfi_memory_stage(store, row, &job, &hand.event, &hand.rules, &change, &staged);
    if (code != 0)
        return code;
    op->other_job = hfi_memory_holder(store, row->scope, row);
    code = op->other_job != 0 ? HF_EEXIST : make_verdict(&verdict, op->actor, op->reason);
    if (code != 0) {
        drop_verdict(&verdict);
        hfi_memory_drop(&staged);
        return code;
    }
    if (dead)
        settle(dead, &verdict, HF_DEAD_REDRIVEN, op->now, op->id, 0);
    else
        drop_verdict(&verdict);
    row->awaited |= dead != NULL;
    hfi_memory_link(store, &staged);
    if (hfi_forward_is(row->job))
        hfi_memory_forward_again(store, op->id, op->id); /* what it tells of is on its way again */
    return 0;
}

static int make_redriven(struct hfi_memory *store, struct hfi_op_redrive *op, const struct hfi_memory_dead *dead,
                         struct hfi_memory_job **row) {
    struct hfi_job job;
    struct hfi_forward_room room;
    char key[HFI_KEY_MAX + 1], told[HFI_ORIGIN_ROOM], scope[HFI_UNIQUE_SCOPE_MAX + 1];
    int code = hfi_redrive_job(op, dead->job, dead->death.payload_cut, store->base.options.payload_max, &job);
    if (code != 0)
        return code;
    if (dead->origin && hfi_forward_is(&job)) { /* it tells of one that has another number here, if it is here */
        int64_t id = hfi_memory_find_origin(store, hfi_letter_told(dead->origin, hfi_forward_letter(&job), told));
        op->stray = id == 0;
        if (op->stray)
            return hfi_forward_stray(op->op.error, op->dead_id);
        job.source_message_id = hfi_forward_retell(&job, id, &room);
    }
    if (hfi_unique_scope(scope, sizeof scope, &job) > 0 &&
        (op->new_job = hfi_memory_holder(store, scope, NULL)) != 0)
        return HF_EEXIST;
    if (op->action->new_key)
        job.idempotency_key = hfi_fresh_key(key, store->base.uuid, store->next_job + 1, 0);
    return hfi_memory_insert(store, &job, row);
}

int hfi_memory_redrive(struct hfi_memory *store, struct hfi_op_redrive *op) {
    struct hfi_memory_dead *dead = hfi_memory_find_dead(store, op->dead_id);
    struct hfi_memory_job *row = NULL;
    struct verdict verdict;
    op->new_job = 0;
    op->status = HF_DEAD_DEAD;
    op->stray = false;
    if (!dead)
        return HF_ENOENT;
    if (dead->status != HF_DEAD_DEAD) {
        op->status = dead->status;
        op->new_job = dead->new_job_id;
        return HF_ESTATE;
    }
    if (!op->action->force && (op->new_job = hfi_memory_forwarded(store, dead->id)) != 0)
        return hfi_forwarded_already(op->op.error, "dead letter", op->dead_id, op->new_job);
    int code = make_verdict(&verdict, op->action->actor, op->action->reason);
    if (code == 0)
        code = make_redriven(store, op, dead, &row);
    if (code != 0) {
        drop_verdict(&verdict);
        return code;
    }
    op->new_job = row->job->id;
    row->awaited = true;
    if (hfi_forward_is(row->job))
        hfi_memory_forward_again(store, dead->job->id, op->new_job);
    settle(dead, &verdict, HF_DEAD_REDRIVEN, op->now, op->new_job, op->task);
    return 0;
}

static int64_t letter_of(struct hfi_memory *store, const struct hfi_job *message) {
    for (size_t i = 0; i < store->deads.count; i++) {
        const struct hfi_memory_dead *dead = store->deads.items[i];
        if (dead->job->id == 0 && strcmp(dead->job->source, message->source) == 0 &&
            strcmp(dead->job->source_message_id, message->source_message_id) == 0)
            return dead->id;
    }
    return 0;
}

int hfi_memory_poison(struct hfi_memory *store, struct hfi_op_poison *op) {
    struct hfi_change change = {.job = *op->job, .death = *op->death, .has_death = true};
    struct hfi_staged staged = {0};
    op->dead_id = letter_of(store, op->job);
    op->existed = op->dead_id != 0;
    if (op->existed)
        return 0;
    change.job.id = 0;
    change.job.finished_at_us = op->now.us;
    int code = hfi_memory_stage_death(store, &change, NULL, &staged);
    if (code == 0) {
        staged.dead->max_executions = 0; /* it never had any */
        code = hfi_memory_stage_alerts(store, &change, op->sinks, op->sink_count, &staged);
    }
    if (code == 0)
        code = hfi_memory_stage_forwards(store, &change, op->forwards, &staged);
    if (code == 0)
        op->dead_id = hfi_memory_link_death(store, &staged);
    hfi_memory_drop(&staged);
    return code;
}

int hfi_memory_settle(struct hfi_memory *store, struct hfi_op_settle *op) {
    struct hfi_memory_dead *dead = hfi_memory_find_dead(store, op->dead_id);
    struct verdict verdict;
    if (!dead)
        return HF_ENOENT;
    op->was = dead->status;
    if (dead->status != HF_DEAD_DEAD)
        return HF_ESTATE;
    int code = make_verdict(&verdict, op->action->actor, op->action->reason);
    if (code == 0)
        settle(dead, &verdict, (int32_t)op->status, op->now, 0, 0);
    else
        drop_verdict(&verdict);
    return code;
}
