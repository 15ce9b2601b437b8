/* SPDX-License-Identifier: MIT */
/*
 * Other numbers for the queues of a node that runs. Decides nothing; must never lose count of a slot in use: one that was
 * taken from a pool by a queue that has slots of its own now is the queue's, and the other way round. Loop thread.
 */
#include <string.h>

#include "base/clock.h"
#include "jobs/lane.h"

static void find_options(const struct hf_runner_options *options, const char *name, struct hf_queue_options *found) {
    const char *at = (const char *)options->queue_options;
    hf_queue_options_init(found);
    for (size_t i = 0; i < options->queue_count; i++, at += options->queue_options->size) {
        const struct hf_queue_options *queue = (const struct hf_queue_options *)(const void *)at;
        if (strcmp(queue->name, name) == 0)
            memcpy(found, queue, queue->size < sizeof *found ? queue->size : sizeof *found);
    }
}

static void tune(struct hfi_lane_queue *queue, const struct hf_runner_options *options) {
    struct hf_queue_options given;
    find_options(options, queue->name, &given);
    queue->order = given.order;
    queue->weight = given.weight == 0 ? 1 : given.weight;
    queue->concurrency = given.concurrency;
    queue->global_concurrency = given.global_concurrency;
    queue->aging_us = hfi_ms_to_us(given.aging_ms);
    queue->current = 0;
}

void hfi_lanes_tune(struct hfi_lanes *lanes, const struct hf_runner_options *options) {
    memset(lanes->pool_used, 0, sizeof lanes->pool_used);
    for (size_t i = 0; i < lanes->queue_count; i++) {
        struct hfi_lane_queue *queue = lanes->queues[i];
        size_t at = i;
        tune(queue, options);
        for (; at > 0 && lanes->queues[at - 1]->order > queue->order; at--)
            lanes->queues[at] = lanes->queues[at - 1];
        lanes->queues[at] = queue;
        for (int pool = 0; queue->concurrency == 0 && pool < HFI_POOL_COUNT; pool++)
            lanes->pool_used[pool] += queue->used[pool];
    }
    hfi_lanes_size(lanes, options->workers);
}
