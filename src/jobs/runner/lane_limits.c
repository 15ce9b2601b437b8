/* SPDX-License-Identifier: MIT */
/*
 * The runner's books of limit keys and of queues that are bounded in the whole store: what is held here, what others held
 * when the store was asked last. Only ever an upper bound of what a claim may get; must never be the reason why a free
 * place stays free for longer than until the next LANES answer (I92). No clock, no I/O; the runner's loop thread.
 */
#define uthash_malloc(size) hfi_alloc(size) /* before the header that brings uthash */
#define uthash_free(memory, size) hfi_free(memory)
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) ((item)->key[0] = '\0')
#include "jobs/runner/lane_limits.h"

#include <string.h>

#include "base/alloc.h"

/* The limit of that name; false: there is none. */
static bool configured(const struct hf_runner_options *options, const char *name, size_t length, struct hfi_limit *limit) {
    for (size_t i = 0; i < options->limit_count; i++) {
        const struct hf_limit_options *at = hfi_limits_at(options, i);
        if (strlen(at->name) != length || memcmp(at->name, name, length) != 0)
            continue;
        hfi_limit_from(at, limit);
        return true;
    }
    return false;
}

/* Is it the first key of its name? */
static bool is_first(const struct hfi_lanes *lanes, const char *key, size_t name_length) {
    for (const struct hfi_lane_limit *limit = lanes->limits; limit != NULL; limit = limit->hh.next) {
        if (strncmp(limit->key, key, name_length + 1) == 0)
            return false;
    }
    return true;
}

static struct hfi_lane_limit *add(struct hfi_lanes *lanes, const char *key, bool *unknown) {
    size_t length = strlen(key), name_length = strcspn(key, ":");
    struct hfi_lane_limit *limit = hfi_alloc(sizeof *limit + length + 1);
    if (limit == NULL)
        return NULL;
    memcpy(limit->key, key, length + 1);
    limit->known = configured(lanes->options, key, name_length, &limit->limit);
    *unknown = !limit->known && is_first(lanes, key, name_length);
    HASH_ADD_KEYPTR(hh, lanes->limits, limit->key, length, limit);
    if (limit->key[0] == '\0') {
        hfi_free(limit);
        return NULL;
    }
    lanes->bounded = lanes->bounded || limit->limit.concurrency > 0;
    return limit;
}

int hfi_lanes_limit(struct hfi_lanes *lanes, struct hfi_lane *lane, const char *limit_key, bool *unknown) {
    struct hfi_lane_limit *limit = NULL;
    *unknown = false;
    if (limit_key[0] == '\0' || lane->limit != NULL)
        return 0;
    HASH_FIND(hh, lanes->limits, limit_key, strlen(limit_key), limit);
    if (limit == NULL)
        limit = add(lanes, limit_key, unknown);
    if (limit == NULL)
        return HF_ENOMEM;
    limit->lanes++;
    lane->limit = limit;
    return 0;
}

void hfi_lane_limit_left(struct hfi_lanes *lanes, struct hfi_lane_limit *limit) {
    if (limit == NULL || --limit->lanes > 0)
        return;
    HASH_DEL(lanes->limits, limit);
    hfi_free(limit);
}

bool hfi_lane_limits_tune(struct hfi_lanes *lanes) {
    bool bounded = false;
    for (struct hfi_lane_limit *limit = lanes->limits; limit != NULL; limit = limit->hh.next) {
        memset(&limit->limit, 0, sizeof limit->limit);
        limit->known = configured(lanes->options, limit->key, strcspn(limit->key, ":"), &limit->limit);
        bounded = bounded || limit->limit.concurrency > 0;
    }
    return bounded;
}

void hfi_lane_limits_end(struct hfi_lanes *lanes) {
    struct hfi_lane_limit *limit, *next;
    HASH_ITER(hh, lanes->limits, limit, next) {
        HASH_DEL(lanes->limits, limit);
        hfi_free(limit);
    }
}

static uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

void hfi_lane_others(struct hfi_lane *lane, uint32_t limit_running, uint32_t queue_running) {
    lane->queue->others = less(queue_running, lane->queue->stored);
    if (lane->limit != NULL)
        lane->limit->others = less(limit_running, lane->limit->stored);
}

/* A start of its rate. */
static bool has_start(struct hfi_lanes *lanes, const struct hfi_lane_limit *limit, struct hf_wall wall) {
    int64_t ready_at_us;
    uint32_t tokens = hfi_limit_tokens(&limit->limit, limit->full_at_us, wall.us, &ready_at_us);
    if (tokens > 0)
        return true;
    if (ready_at_us < lanes->ready_at_us)
        lanes->ready_at_us = ready_at_us;
    return false;
}

bool hfi_lane_has_place(struct hfi_lanes *lanes, const struct hfi_lane *lane, struct hf_wall wall) {
    const struct hfi_lane_queue *queue = lane->queue;
    const struct hfi_lane_limit *limit = lane->limit;
    uint32_t used = queue->used[HFI_POOL_WORKER] + queue->used[HFI_POOL_ASYNC];
    if (hfi_limit_room(queue->global_concurrency, used + queue->others) == 0)
        return false;
    if (limit == NULL)
        return true;
    return hfi_limit_room(limit->limit.concurrency, limit->used + limit->others) > 0 && has_start(lanes, limit, wall);
}

void hfi_lane_claimed(struct hfi_lane *lane, const struct hfi_admitted *admitted) {
    lane->queue->stored += admitted->claimed;
    if (lane->limit == NULL)
        return;
    lane->limit->stored += admitted->claimed;
    if (admitted->limit != NULL)
        lane->limit->full_at_us = admitted->full_at_us;
}

void hfi_lane_settled(struct hfi_lane *lane) {
    lane->queue->stored--;
    if (lane->limit != NULL)
        lane->limit->stored--;
}
