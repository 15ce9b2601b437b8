/* SPDX-License-Identifier: MIT */
/*
 * The books of lanes, queues and slots in use: what a claim took, what was released. Must never lose count of a slot. No
 * clock, no I/O; the runner's loop thread.
 */
#include "jobs/runner/lane.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/runner/lane_limits.h"

static bool in_filter(const struct hfi_lanes *lanes, const char *queue) {
    if (lanes->filter == NULL || strcmp(queue, HFI_FORWARD_QUEUE) == 0) /* whoever ends a job tells of its death, too */
        return true;
    for (size_t i = 0; i < lanes->filter_count; i++) {
        if (strcmp(lanes->filter[i], queue) == 0)
            return true;
    }
    return false;
}

static struct hfi_lane_queue *find_queue(const struct hfi_lanes *lanes, const char *name) {
    for (size_t i = 0; i < lanes->queue_count; i++) {
        if (strcmp(lanes->queues[i]->name, name) == 0)
            return lanes->queues[i];
    }
    return NULL;
}

static struct hfi_lane_queue *add_queue(struct hfi_lanes *lanes, const struct hf_queue_options *options) {
    if (lanes->queue_count == lanes->queue_room) {
        size_t room = lanes->queue_room == 0 ? 8 : lanes->queue_room * 2;
        void *grown = hfi_realloc(lanes->queues, room * sizeof *lanes->queues);
        if (grown == NULL)
            return NULL;
        lanes->queues = grown;
        lanes->queue_room = room;
    }
    struct hfi_lane_queue *queue = hfi_alloc(sizeof *queue);
    if (queue == NULL)
        return NULL;
    hfi_text_copy(queue->name, sizeof queue->name, options->name);
    queue->order = options->order;
    queue->weight = options->weight == 0 ? 1 : options->weight;
    queue->concurrency = options->concurrency;
    queue->global_concurrency = options->global_concurrency;
    queue->aging_us = hfi_ms_to_us(options->aging_ms);
    lanes->bounded = lanes->bounded || queue->global_concurrency > 0;
    queue->wanted = in_filter(lanes, queue->name);
    size_t at = lanes->queue_count;
    for (; at > 0 && lanes->queues[at - 1]->order > queue->order; at--)
        lanes->queues[at] = lanes->queues[at - 1];
    lanes->queues[at] = queue;
    lanes->queue_count++;
    return queue;
}

int hfi_lanes_init(struct hfi_lanes *lanes, const struct hf_runner_options *options, uint32_t async_max) {
    memset(lanes, 0, sizeof *lanes);
    lanes->pool_max[HFI_POOL_ASYNC] = async_max;
    lanes->filter = options->queues;
    lanes->filter_count = options->queue_filter_count;
    lanes->options = options;
    lanes->ready_at_us = INT64_MAX;
    const char *at = (const char *)options->queue_options;
    for (size_t i = 0; i < options->queue_count; i++, at += options->queue_options->size) {
        struct hf_queue_options queue;
        hf_queue_options_init(&queue);
        uint32_t size = options->queue_options->size;
        memcpy(&queue, at, size < sizeof queue ? size : sizeof queue);
        if (add_queue(lanes, &queue) == NULL) {
            hfi_lanes_end(lanes);
            return HF_ENOMEM;
        }
    }
    hfi_lanes_size(lanes, options->workers);
    return 0;
}

void hfi_lane_free(struct hfi_lane *lane) {
    hfi_free(lane->host);
    hfi_free(lane);
}

void hfi_lanes_size(struct hfi_lanes *lanes, uint32_t workers) {
    uint64_t reserved = 0;
    for (size_t i = 0; i < lanes->queue_count; i++)
        reserved += lanes->queues[i]->wanted ? lanes->queues[i]->concurrency : 0;
    lanes->pool_max[HFI_POOL_WORKER] = workers == 0 ? 1 : workers;
    lanes->threads_max = reserved > UINT32_MAX ? UINT32_MAX : (uint32_t)reserved;
    if (lanes->threads_max < lanes->pool_max[HFI_POOL_WORKER])
        lanes->threads_max = lanes->pool_max[HFI_POOL_WORKER];
}

void hfi_lanes_end(struct hfi_lanes *lanes) {
    for (size_t i = 0; i < lanes->count; i++)
        hfi_lane_free(lanes->lanes[i]);
    for (size_t i = 0; i < lanes->queue_count; i++) {
        hfi_free(lanes->queues[i]->lanes);
        hfi_free(lanes->queues[i]->open);
        hfi_free(lanes->queues[i]);
    }
    hfi_lane_limits_end(lanes);
    hfi_free(lanes->lanes);
    hfi_free(lanes->queues);
    memset(lanes, 0, sizeof *lanes);
}

/* Index of the first lane whose id is not below. */
static size_t lower_bound(const struct hfi_lanes *lanes, int64_t id) {
    size_t low = 0, high = lanes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lanes->lanes[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct hfi_lane *hfi_lanes_find(const struct hfi_lanes *lanes, int64_t id) {
    size_t at = lower_bound(lanes, id);
    return at < lanes->count && lanes->lanes[at]->id == id ? lanes->lanes[at] : NULL;
}

enum hfi_pool hfi_lane_pool(const struct hfi_type *type) {
    if (type == NULL)
        return HFI_POOL_WORKER;
    if (type->async_handler)
        return HFI_POOL_ASYNC;
    return hfi_needs_worker(type) ? HFI_POOL_WORKER : HFI_POOL_ASYNC;
}

void hfi_queue_options_of(const struct hf_runner_options *options, const char *name, struct hf_queue_options *found) {
    const char *at = (const char *)options->queue_options;
    hf_queue_options_init(found);
    for (size_t i = 0; i < options->queue_count; i++, at += options->queue_options->size) {
        const struct hf_queue_options *queue = (const struct hf_queue_options *)(const void *)at;
        if (strcmp(queue->name, name) == 0)
            memcpy(found, queue, queue->size < sizeof *found ? queue->size : sizeof *found);
    }
}

struct hfi_lane_queue *hfi_lanes_queue(struct hfi_lanes *lanes, const char *name) {
    struct hfi_lane_queue *queue = find_queue(lanes, name);
    if (queue != NULL)
        return queue;
    struct hf_queue_options options;
    hfi_queue_options_of(lanes->options, name, &options);
    options.name = name;
    queue = add_queue(lanes, &options);
    if (queue != NULL)
        hfi_lanes_size(lanes, lanes->pool_max[HFI_POOL_WORKER]); /* it may have slots of its own */
    return queue;
}

static uint32_t left_of(const struct hfi_lanes *lanes, const struct hfi_type *type) {
    for (size_t i = 0; type != NULL && i < lanes->count; i++)
        if (lanes->lanes[i]->type == type)
            return lanes->lanes[i]->left; /* all lanes of a type have the same */
    return 0;
}

void hfi_lanes_left(struct hfi_lanes *lanes, const struct hfi_type *type, int by) {
    lanes->alone.used += hfi_runs_code(type) ? (uint32_t)by : 0; /* whoever is started beside it is not alone */
    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->lanes[i]->type != NULL && strcmp(lanes->lanes[i]->type->options.name, type->options.name) == 0)
            lanes->lanes[i]->left += (uint32_t)by; /* of that name: the run may be older than its type's options */
}

/* Room for one lane more; a lane that is not added after all leaves it for the next. */
static int reserve(struct hfi_lane_queue *queue) {
    if (queue->count < queue->room)
        return 0;
    size_t room = queue->room == 0 ? 8 : queue->room * 2;
    void *lanes = hfi_realloc(queue->lanes, room * sizeof *queue->lanes);
    if (lanes == NULL)
        return HF_ENOMEM;
    queue->lanes = lanes;
    void *open = hfi_realloc(queue->open, room * sizeof *queue->open);
    if (open == NULL)
        return HF_ENOMEM;
    queue->open = open;
    queue->room = room;
    return 0;
}

int hfi_lanes_add(struct hfi_lanes *lanes, int64_t id, const char *queue_name, const struct hfi_type *type,
                  struct hfi_lane_site *site, struct hfi_lane **out) {
    size_t at = lower_bound(lanes, id);
    if (at < lanes->count && lanes->lanes[at]->id == id) {
        *out = lanes->lanes[at];
        return 0;
    }
    if (lanes->count == lanes->room) {
        size_t room = lanes->room == 0 ? 16 : lanes->room * 2;
        void *grown = hfi_realloc(lanes->lanes, room * sizeof *lanes->lanes);
        if (grown == NULL)
            return HF_ENOMEM;
        lanes->lanes = grown;
        lanes->room = room;
    }
    struct hfi_lane_queue *queue = hfi_lanes_queue(lanes, queue_name);
    struct hfi_lane *lane = queue == NULL || reserve(queue) != 0 ? NULL : hfi_alloc(sizeof *lane);
    if (lane == NULL)
        return HF_ENOMEM;
    lane->id = id;
    lane->queue = queue;
    lane->type = type;
    lane->site = site;
    lane->pool = hfi_lane_pool(type);
    lane->runs_code = type != NULL && hfi_runs_code(type);
    lane->left = left_of(lanes, type);
    queue->known[lane->pool] = true;
    queue->lanes[queue->count++] = lane;
    memmove(lanes->lanes + at + 1, lanes->lanes + at, (lanes->count - at) * sizeof *lanes->lanes);
    lanes->lanes[at] = lane;
    lanes->count++;
    *out = lane;
    return 0;
}

void hfi_lanes_forget_due(struct hfi_lanes *lanes) {
    for (size_t i = 0; i < lanes->count; i++)
        lanes->lanes[i]->due = false;
}

void hfi_lane_take(struct hfi_lanes *lanes, struct hfi_lane *lane) {
    lane->used++;
    hfi_alone_take(&lanes->alone, lane);
    lane->queue->used[lane->pool]++;
    lanes->threads_used += lane->pool == HFI_POOL_WORKER;
    if (lane->queue->concurrency == 0)
        lanes->pool_used[lane->pool]++;
    if (lane->limit != NULL)
        lane->limit->used++;
    if (lane->site != NULL) {
        lane->site->used++;
        lane->site->waiting++;
    }
}

void hfi_lane_begun(struct hfi_lane *lane) {
    if (lane->site != NULL)
        lane->site->waiting--;
}

void hfi_lane_release(struct hfi_lanes *lanes, struct hfi_lane *lane, bool begun) {
    hfi_alone_give(&lanes->alone, lane);
    lane->used--;
    lane->queue->used[lane->pool]--;
    lanes->threads_used -= lane->pool == HFI_POOL_WORKER;
    if (lane->queue->concurrency == 0)
        lanes->pool_used[lane->pool]--;
    if (lane->limit != NULL)
        lane->limit->used--;
    if (lane->site != NULL)
        lane->site->used--;
    if (lane->site != NULL && !begun)
        lane->site->waiting--;
}

bool hfi_lanes_any_due(const struct hfi_lanes *lanes) {
    for (size_t i = 0; i < lanes->count; i++) {
        const struct hfi_lane *lane = lanes->lanes[i];
        if (lane->due && !lane->paused && lane->left == 0 && lane->type != NULL && lane->queue->wanted)
            return true;
    }
    return false;
}
