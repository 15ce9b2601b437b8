/* SPDX-License-Identifier: MIT */
/*
 * Which jobs may be reserved ahead of their slots, and whether one that is has its turn. Must never let a node sit on a
 * place that another one could use, nor start a reserved job before one that goes first. No clock, no I/O; the runner's
 * loop thread.
 */
#include "jobs/merge.h"
#include "jobs/runner/lane_limits.h"

static bool shares_places(const struct hfi_lane *lane) {
    const struct hfi_lane_limit *limit = lane->limit;
    return lane->queue->global_concurrency > 0 ||
           (limit != NULL && (limit->limit.concurrency > 0 || limit->limit.interval_us > 0));
}

/* It is of those whose jobs may wait here. */
static bool suits(const struct hfi_lanes *lanes, const struct hfi_lane *lane) {
    if (shares_places(lane) || lane->queue->aging_us > 0 || hfi_alone_suspects(lane) || lane->host != NULL)
        return false;
    if (lane->runs_code && (lanes->alone.suspects > 0 || lanes->alone.keeps))
        return false;
    return lane->site == NULL || (lane->site->sound && lane->site->free > 0);
}

bool hfi_lane_reservable(const struct hfi_lanes *lanes, const struct hfi_lane *lane) {
    return suits(lanes, lane) && !hfi_lane_has_slot(lanes, lane);
}

bool hfi_lane_startable(const struct hfi_lanes *lanes, const struct hfi_lane *lane) {
    return lane->type != NULL && !lane->paused && lane->left == 0 && suits(lanes, lane) && hfi_lane_has_slot(lanes, lane);
}

/* Queues with slots of their own take nobody's. */
static bool goes_first(const struct hfi_lane_queue *queue, const struct hfi_lane_queue *other) {
    return queue->order < other->order && queue->concurrency == 0 && other->concurrency == 0;
}

bool hfi_lanes_outrank(const struct hfi_lanes *lanes, const struct hfi_lane *lane, const struct hfi_job *job) {
    for (size_t i = 0; i < lanes->queue_count; i++) {
        if (lanes->queues[i]->best != NULL && goes_first(lanes->queues[i], lane->queue))
            return true;
    }
    const struct hfi_lane *best = lane->queue->best;
    if (best == NULL)
        return false;
    struct hfi_merge_head pending = {best->top_priority, best->next_due_us, INT64_MAX, best->top_priority};
    struct hfi_merge_head reserved = {job->priority, job->run_at_us, job->id, job->priority};
    return hfi_merge_before(&pending, &reserved);
}
