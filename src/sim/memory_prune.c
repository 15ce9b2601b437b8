/* SPDX-License-Identifier: MIT */
/*
 * What the memory store forgets with time. Must never forget a dead letter that is not settled, or an alert that nobody
 * got. Under the store's lock.
 */
#include "base/alloc.h"
#include "jobs/hands.h"
#include "sim/memory_state.h"

/* Keeps the rows that `goes` does not take, in order. */
static void prune_rows(struct hfi_memory *store, struct hfi_op_prune *op, struct hfi_array *array,
                       bool (*goes)(struct hfi_memory *store, const struct hfi_op_prune *op, void *row)) {
    size_t kept = 0;
    for (size_t i = 0; i < array->count; i++) {
        void *row = array->items[i];
        if (op->pruned < op->limit && goes(store, op, row))
            op->pruned++;
        else
            array->items[kept++] = row;
    }
    array->count = kept;
}

static bool job_goes(struct hfi_memory *store, const struct hfi_op_prune *op, void *item) {
    struct hfi_memory_job *row = item;
    if (row->job->finished_at_us >= hfi_kept_since(op, row->job->state) || row->unsettled)
        return false;
    store->expiring -= row->job->expires_at_us != 0;
    hfi_memory_job_free(store, row);
    return true;
}

static bool alerts_done(const struct hfi_memory *store, int64_t dead_id) {
    for (size_t i = 0; i < store->alerts.count; i++) {
        const struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->alert.dead_id == dead_id && !alert->sent)
            return false;
    }
    return true;
}

static void forget_alerts(struct hfi_memory *store, int64_t dead_id) {
    size_t kept = 0;
    for (size_t i = 0; i < store->alerts.count; i++) {
        struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->alert.dead_id == dead_id)
            hfi_free(alert);
        else
            store->alerts.items[kept++] = alert;
    }
    store->alerts.count = kept;
}

static bool dead_goes(struct hfi_memory *store, const struct hfi_op_prune *op, void *item) {
    struct hfi_memory_dead *dead = item;
    if (dead->status == HF_DEAD_DEAD || dead->settled_at_us >= op->dead_letters_before || !alerts_done(store, dead->id))
        return false;
    forget_alerts(store, dead->id);
    hfi_memory_dead_free(dead);
    return true;
}

static bool message_goes(struct hfi_memory *store, const struct hfi_op_prune *op, void *item) {
    struct hfi_memory_message *message = item;
    if (message->at_us >= op->inbox_before)
        return false;
    hfi_index_remove(&store->messages, &message->link);
    hfi_free(message->key);
    hfi_free(message);
    return true;
}

int hfi_memory_prune(struct hfi_memory *store, struct hfi_op_prune *op) {
    op->pruned = 0;
    prune_rows(store, op, &store->jobs, job_goes);
    if (op->dead_letters_before > 0)
        prune_rows(store, op, &store->deads, dead_goes);
    if (op->inbox_before > 0)
        prune_rows(store, op, &store->inbox, message_goes);
    op->more = op->pruned >= op->limit;
    return 0;
}
