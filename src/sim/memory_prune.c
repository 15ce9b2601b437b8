/* SPDX-License-Identifier: MIT */
/*
 * What the memory store forgets with time. Must never forget a dead letter that is not settled, or an alert that nobody
 * got. Of a lane that is no more its place stays, empty. Under the store's lock.
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

static void forget_alerts(struct hfi_memory *store, int64_t dead_id) {
    size_t kept = 0;
    for (size_t i = 0; i < store->alerts.count; i++) {
        struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->dead_id == dead_id)
            hfi_free(alert);
        else
            store->alerts.items[kept++] = alert;
    }
    store->alerts.count = kept;
}

static bool dead_goes(struct hfi_memory *store, const struct hfi_op_prune *op, void *item) {
    struct hfi_memory_dead *dead = item;
    if (dead->status == HF_DEAD_DEAD || dead->settled_at_us >= op->dead_letters_before || !hfi_memory_alerted(store, dead->id))
        return false;
    forget_alerts(store, dead->id);
    hfi_memory_forwards_drop(store, dead->id);
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

static bool node_goes(struct hfi_memory *store, const struct hfi_op_prune *op, void *item) {
    struct hfi_memory_node *node = item;
    if (!node->gone || node->seen_at_us >= op->nodes_before || hfi_memory_owns_some(store, node->id))
        return false;
    hfi_memory_node_free(node);
    return true;
}

static bool downstream_goes(struct hfi_memory *store, const struct hfi_op_prune *op, void *item) {
    struct hfi_memory_downstream *row = item;
    if (!hfi_downstream_is_idle(&row->state, row->written_us, op->downstreams_before))
        return false;
    store->unhealthy_version++;
    hfi_free(row->key);
    hfi_free(row);
    return true;
}

/* Ids are places: that of one that is forgotten stays, empty. */
static void forget_tasks(struct hfi_memory *store, struct hfi_op_prune *op) {
    for (size_t i = 0; i < store->redrives.count && op->pruned < op->limit && op->dead_letters_before > 0; i++) {
        struct hfi_redrive_task *task = store->redrives.items[i];
        if (!task || task->state == HF_REDRIVE_RUNNING || task->ended_at_us >= op->dead_letters_before)
            continue;
        store->redrives.items[i] = NULL;
        hfi_free(task);
        op->pruned++;
    }
}

static void forget_storms(struct hfi_memory *store, struct hf_wall now) {
    size_t kept = 0;
    for (size_t i = 0; i < store->storms.count; i++) {
        struct hfi_memory_storm *storm = store->storms.items[i];
        if (storm->storm.lead == 0 && storm->storm.until_us <= now.us)
            hfi_free(storm);
        else
            store->storms.items[kept++] = storm;
    }
    store->storms.count = kept;
}

int hfi_memory_prune(struct hfi_memory *store, struct hfi_op_prune *op) {
    op->pruned = op->rows = 0;
    op->more = false;
    op->others = op->limit > 0 && hfi_prune_is_others(&store->prune_turn, op);
    if (op->limit == 0 || op->others)
        return 0;
    prune_rows(store, op, &store->jobs, job_goes);
    if (op->dead_letters_before > 0)
        prune_rows(store, op, &store->deads, dead_goes);
    if (op->inbox_before > 0)
        prune_rows(store, op, &store->inbox, message_goes);
    if (op->nodes_before > 0)
        prune_rows(store, op, &store->nodes, node_goes);
    if (op->downstreams_before > 0)
        prune_rows(store, op, &store->downstreams, downstream_goes);
    forget_tasks(store, op);
    forget_storms(store, op->now);
    op->rows = op->pruned;
    op->more = op->pruned >= op->limit;
    store->prune_turn = hfi_prune_turn_after(op);
    return 0;
}

/* ------------------------------------------------------------------ lanes without jobs */

static bool has_jobs(const struct hfi_memory_lane *lane) {
    for (size_t i = 0; i < HFI_PRIORITIES; i++)
        if (lane->members[i] > 0)
            return true;
    return false;
}

/* Not while its rate still says something. */
static void leave_gauge(struct hfi_index *index, struct hfi_memory_gauge *gauge, struct hf_wall now) {
    if (!gauge || --gauge->lanes > 0 || gauge->full_at_us > now.us)
        return;
    hfi_index_remove(index, &gauge->link);
    hfi_free(gauge);
}

static void remove_lane(struct hfi_memory *store, size_t at, struct hf_wall now) {
    struct hfi_memory_lane *lane = store->lanes.items[at];
    leave_gauge(&store->queue_gauges, lane->of_queue, now);
    leave_gauge(&store->limit_gauges, lane->of_limit, now);
    hfi_index_remove(&store->lanes_by_key, &lane->link);
    hfi_memory_lane_free(lane);
    store->lanes.items[at] = &store->no_lane;
}

/* All of it at once: which lanes have jobs is known. Policies stay: they are few here, and jobs point to them. */
int hfi_memory_unused(struct hfi_memory *store, struct hfi_op_unused *op) {
    static char nothing[] = "";
    bool is_time = store->walked_at_us == 0 || op->now.us < store->walked_at_us ||
                   op->now.us - store->walked_at_us >= op->every_us;
    op->gone_count = 0;
    op->lanes_removed = op->policies_removed = 0;
    op->more = false;
    store->no_lane.queue = store->no_lane.type = store->no_lane.breaker_key = store->no_lane.limit_key = nothing;
    if (!store->no_lane.of_queue && !(store->no_lane.of_queue = hfi_memory_gauge(&store->queue_gauges, "")))
        return HF_ENOMEM;
    for (size_t i = 0; i < store->lanes.count && is_time; i++) {
        const struct hfi_memory_lane *lane = store->lanes.items[i];
        if (lane == &store->no_lane || has_jobs(lane))
            continue;
        remove_lane(store, i, op->now);
        op->lanes_removed++;
    }
    store->walked_at_us = is_time ? op->now.us : store->walked_at_us;
    for (size_t i = 0; i < op->lane_count; i++) {
        int64_t id = op->lanes[i];
        if (id < 1 || (size_t)id > store->lanes.count || store->lanes.items[id - 1] == &store->no_lane)
            op->lanes[op->gone_count++] = id;
    }
    return 0;
}
