/* SPDX-License-Identifier: MIT */
/*
 * Other types for the lanes and other numbers for the queues and limits of a node that runs. Decides nothing; must never lose count of a slot in use: one that was
 * taken from a pool by a queue that has slots of its own now is the queue's, and the other way round. Loop thread.
 */
#include <string.h>

#include "base/clock.h"
#include "jobs/runner/lane_limits.h"

static void tune(struct hfi_lane_queue *queue, const struct hf_runner_options *options) {
    struct hf_queue_options given;
    hfi_queue_options_of(options, queue->name, &given);
    queue->order = given.order;
    queue->weight = given.weight == 0 ? 1 : given.weight;
    queue->concurrency = given.concurrency;
    queue->global_concurrency = given.global_concurrency;
    queue->aging_us = hfi_ms_to_us(given.aging_ms);
    queue->current = 0;
}

/* Places that running jobs have: from now on they are of the other pool, site and manner of running. */
static void move_places(struct hfi_lanes *lanes, struct hfi_lane *lane, const struct hfi_lane *next, uint32_t held,
                        uint32_t waiting) {
    bool pooled = lane->queue->concurrency == 0;
    lane->queue->used[lane->pool] -= held;
    lane->queue->used[next->pool] += held;
    lanes->pool_used[lane->pool] -= pooled ? held : 0;
    lanes->pool_used[next->pool] += pooled ? held : 0;
    if (lane->site != NULL) {
        lane->site->used -= held;
        lane->site->waiting -= waiting;
    }
    if (next->site != NULL) {
        next->site->used += held;
        next->site->waiting += waiting;
    }
    for (uint32_t i = 0; i < held && lane->runs_code != next->runs_code; i++) {
        hfi_alone_give(&lanes->alone, lane);
        hfi_alone_take(&lanes->alone, next);
    }
}

void hfi_lanes_retype(struct hfi_lanes *lanes, struct hfi_lane *lane, const struct hfi_type *type,
                      struct hfi_lane_site *site, const struct hfi_lane_held *held) {
    struct hfi_lane next = *lane;
    next.type = type;
    next.site = site;
    next.left = held->left;
    if (type != NULL) { /* of a type that is gone the last jobs go on as they are counted */
        next.pool = hfi_lane_pool(type);
        next.runs_code = hfi_runs_code(type);
        next.unknown_since_us = 0;
    }
    move_places(lanes, lane, &next, held->running, held->waiting);
    next.queue->known[next.pool] = true;
    *lane = next;
}

void hfi_lanes_tune(struct hfi_lanes *lanes, const struct hf_runner_options *options) {
    lanes->options = options;
    const char *at = (const char *)options->queue_options;
    for (size_t i = 0; i < options->queue_count; i++, at += options->queue_options->size)
        hfi_lanes_queue(lanes, ((const struct hf_queue_options *)(const void *)at)->name); /* no memory: its first lane makes it */
    lanes->bounded = hfi_lane_limits_tune(lanes);
    memset(lanes->pool_used, 0, sizeof lanes->pool_used);
    for (size_t i = 0; i < lanes->queue_count; i++) {
        struct hfi_lane_queue *queue = lanes->queues[i];
        size_t place = i;
        tune(queue, options);
        lanes->bounded = lanes->bounded || queue->global_concurrency > 0;
        for (; place > 0 && lanes->queues[place - 1]->order > queue->order; place--)
            lanes->queues[place] = lanes->queues[place - 1];
        lanes->queues[place] = queue;
        for (int pool = 0; queue->concurrency == 0 && pool < HFI_POOL_COUNT; pool++)
            lanes->pool_used[pool] += queue->used[pool];
    }
    hfi_lanes_size(lanes, options->workers);
}
