/* SPDX-License-Identifier: MIT */
/*
 * Takes lanes that the store has no more out of the books, with limit keys that nobody else has. Must never be asked to
 * between the admission of a round and its answer, nor about a lane that an execution points to. No clock, no I/O; the
 * runner's loop thread.
 */
#include <string.h>

#include "jobs/runner/lane_limits.h"

size_t hfi_lanes_after(const struct hfi_lanes *lanes, int64_t id) {
    size_t low = 0, high = lanes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lanes->lanes[middle]->id <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Its neighbours move up, so whose turn it is stays the same. */
static void leave_queue(struct hfi_lane_queue *queue, const struct hfi_lane *lane) {
    size_t at = 0;
    while (at < queue->count && queue->lanes[at] != lane)
        at++;
    if (at == queue->count)
        return;
    queue->count--;
    memmove(queue->lanes + at, queue->lanes + at + 1, (queue->count - at) * sizeof *queue->lanes);
    queue->turn -= queue->turn > at;
    queue->open_count = 0;
}

void hfi_lanes_remove(struct hfi_lanes *lanes, struct hfi_lane *lane) {
    size_t after = hfi_lanes_after(lanes, lane->id);
    leave_queue(lane->queue, lane);
    hfi_lane_limit_left(lanes, lane->limit);
    memmove(lanes->lanes + after - 1, lanes->lanes + after, (lanes->count - after) * sizeof *lanes->lanes);
    lanes->count--;
    hfi_lane_free(lane);
}
