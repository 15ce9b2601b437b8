/* SPDX-License-Identifier: MIT */
/*
 * What a claimer looks at in the memory store: lanes it does not know yet, lanes with something due, and when the next one
 * will be. Only reads. Under the store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "sim/memory_state.h"

static int64_t lane_due(const struct hfi_memory_lane *lane) {
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < HFI_PRIORITIES; i++) {
        const struct hfi_heap_item *first = hfi_heap_first(&lane->due[i]);
        if (first && first->at_us < due)
            due = first->at_us;
    }
    return due;
}

static int32_t top_of(const struct hfi_memory_lane *lane) {
    int32_t top = HFI_PRIORITIES - 1;
    while (top > 0 && !hfi_heap_first(&lane->due[top]))
        top--;
    return top;
}

static uint64_t count_due(const struct hfi_memory_lane *lane, int64_t now_us, uint64_t room) {
    uint64_t due = 0;
    for (size_t i = 0; i < HFI_PRIORITIES; i++)
        for (size_t at = 0; at < lane->due[i].count && due < room; at++)
            due += lane->due[i].items[at]->at_us <= now_us;
    return due;
}

/* Texts are copied behind the rows: the block outlives the lock. */
static const char *text_behind(char **end, const char *text) {
    size_t size = strlen(text) + 1;
    char *place = memcpy(*end, text, size);
    *end += size;
    return place;
}

static size_t texts_size(const struct hfi_memory_lane *lane) {
    return strlen(lane->queue) + strlen(lane->type) + strlen(lane->breaker_key) + strlen(lane->limit_key) + 4;
}

int hfi_memory_lanes(struct hfi_memory *store, struct hfi_op_lanes *op) {
    size_t rows = 0, texts = 0;
    op->next_due_us = INT64_MAX;
    for (size_t i = 0; i < store->lanes.count; i++) {
        const struct hfi_memory_lane *lane = store->lanes.items[i];
        int64_t due = lane_due(lane);
        rows += lane->id > op->known || due <= op->now.us;
        texts += lane->id > op->known ? texts_size(lane) : 0;
        if (due > op->now.us && due < op->next_due_us)
            op->next_due_us = due;
    }
    op->count = 0;
    op->rows = hfi_alloc(rows * sizeof *op->rows + texts);
    if (!op->rows)
        return HF_ENOMEM;
    char *end = (char *)(op->rows + rows);
    for (size_t i = 0; i < store->lanes.count; i++) {
        const struct hfi_memory_lane *lane = store->lanes.items[i];
        int64_t due = lane_due(lane);
        bool is_new = lane->id > op->known;
        if (!is_new && due > op->now.us)
            continue;
        op->rows[op->count++] = (struct hfi_lane_row){
            .lane = lane->id,
            .next_due_us = due,
            .top_priority = top_of(lane),
            .paused = hfi_memory_pause_of(store, lane->queue, op->now) != NULL,
            .alone = lane->alone,
            .limit_running = op->running && lane->of_limit ? (uint32_t)lane->of_limit->running : 0,
            .queue_running = op->running ? (uint32_t)lane->of_queue->running : 0,
            .queue = is_new ? text_behind(&end, lane->queue) : "",
            .type = is_new ? text_behind(&end, lane->type) : "",
            .breaker_key = is_new ? text_behind(&end, lane->breaker_key) : "",
            .limit_key = is_new ? text_behind(&end, lane->limit_key) : "",
        };
    }
    op->kept_due = 0;
    for (size_t i = 0; i < op->kept_count; i++)
        if (op->kept[i] > 0 && (size_t)op->kept[i] <= store->lanes.count)
            op->kept_due += count_due(store->lanes.items[op->kept[i] - 1], op->now.us, HFI_KEPT_MAX - op->kept_due);
    op->unhealthy_version = store->unhealthy_version;
    store->left_some = store->left_over.first != NULL;
    return 0;
}
