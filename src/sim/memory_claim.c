/* SPDX-License-Identifier: MIT */
/*
 * What the memory store has for claims: lanes with something due, and the jobs taken of them in order. Must never hand
 * out a job of a paused queue or one past its expires_at. Under the store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "jobs/hands.h"
#include "jobs/limit.h"
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

/* A claim in the making: rows are out of their heaps until it is linked in or dropped. */
struct claim {
    struct hfi_op_claim *op;
    struct hfi_staged *staged;
    size_t count;
    struct hfi_memory_job **skipped; /* due, but past their expiry or unfit */
    size_t skipped_count;
    size_t skipped_room;
};

struct hfi_memory_job *hfi_memory_next_due(struct hfi_memory_lane *lane, int64_t now_us, int64_t aging_us) {
    struct hfi_memory_job *best = NULL;
    for (size_t i = HFI_PRIORITIES; i > 0; i--) {
        struct hfi_heap_item *first = hfi_heap_first(&lane->due[i - 1]);
        if (!first || first->at_us > now_us)
            continue;
        struct hfi_memory_job *row = first->row;
        if (aging_us <= 0)
            return row;
        struct hfi_aged one = {row->job->priority, row->job->run_at_us};
        if (!best || hfi_aged_before(one, (struct hfi_aged){best->job->priority, best->job->run_at_us}, now_us, aging_us))
            best = row;
    }
    return best;
}

static struct hfi_memory_job *take_due(struct hfi_memory_lane *lane, int64_t now_us, int64_t aging_us) {
    struct hfi_memory_job *row = hfi_memory_next_due(lane, now_us, aging_us);
    if (row)
        hfi_heap_remove(&lane->due[row->job->priority], &row->due);
    return row;
}

static void put_back(struct hfi_memory_job *row) {
    hfi_heap_push(&row->lane->due[row->job->priority], &row->due);
}

static int skip(struct claim *claim, struct hfi_memory_job *row) {
    if (claim->skipped_count == claim->skipped_room) {
        size_t room = claim->skipped_room > 0 ? claim->skipped_room * 2 : 16;
        struct hfi_memory_job **grown = hfi_realloc(claim->skipped, room * sizeof *grown);
        if (!grown) {
            put_back(row);
            return HF_ENOMEM;
        }
        claim->skipped = grown;
        claim->skipped_room = room;
    }
    claim->skipped[claim->skipped_count++] = row;
    return 0;
}

/* Reserves, and starts, on one record; the second transition works on what the first made. */
static int stage_claim(struct hfi_memory *store, struct claim *claim, const struct hfi_admitted *admitted,
                       struct hfi_memory_job *row) {
    struct hfi_hand hand;
    struct hfi_change reserved, begun;
    struct hfi_op_claim *op = claim->op;
    struct hfi_staged *staged = &claim->staged[claim->count];
    hfi_hand_claim(&hand, op->node, op->now);
    int code = hfi_transition(row->job, &hand.event, &hand.rules, &reserved);
    if (code == 0 && op->start) {
        hfi_hand_start(&hand, op->node, op->now, admitted);
        code = hfi_memory_stage(store, row, &reserved.job, &hand.event, &hand.rules, &begun, staged);
    } else if (code == 0) {
        code = hfi_memory_stage(store, row, row->job, &hand.event, &hand.rules, &begun, staged);
    }
    if (code != 0)
        return code;
    op->jobs[claim->count] = hfi_job_copy(staged->next);
    if (!op->jobs[claim->count]) {
        hfi_memory_drop(staged);
        return HF_ENOMEM;
    }
    claim->count++;
    return 0;
}

static void count_claimed(struct hfi_memory_lane *lane, struct hfi_admitted *admitted) {
    admitted->claimed++;
    lane->of_queue->staged++;
    if (lane->of_limit)
        lane->of_limit->staged++;
}

/* A row out of its heap: staged, or set aside when it cannot be claimed. */
static int take(struct hfi_memory *store, struct claim *claim, struct hfi_admitted *admitted,
                struct hfi_memory_job *row) {
    int code = stage_claim(store, claim, admitted, row);
    if (code == HF_ESTATE)
        return skip(claim, row); /* only this job, never the rest (I33) */
    if (code != 0)
        put_back(row);
    else
        count_claimed(row->lane, admitted);
    return code;
}

static bool is_full(const struct claim *claim, const struct hfi_memory_lane *lane, const struct hfi_admitted *admitted) {
    const struct hfi_limit *limit = admitted->limit;
    const struct hfi_memory_gauge *queue = lane->of_queue, *key = lane->of_limit;
    if (admitted->claimed == admitted->max || claim->count == claim->op->max ||
        hfi_limit_room(admitted->queue_max, (uint32_t)(queue->running + queue->staged)) == 0)
        return true;
    return limit && key &&
           (hfi_limit_room(limit->concurrency, (uint32_t)(key->running + key->staged)) == 0 ||
            hfi_limit_tokens(limit, key->full_at_us, claim->op->now.us, NULL) <= key->staged);
}

static bool has_expired(const struct hfi_memory_job *row, int64_t now_us) {
    return row->job->expires_at_us != 0 && row->job->expires_at_us <= now_us;
}

/* Jobs that suit as probes, among the first few due of each priority; those passed over go back to their places. */
static int claim_probes(struct hfi_memory *store, struct claim *claim, struct hfi_admitted *admitted,
                        struct hfi_memory_lane *lane) {
    int64_t now_us = claim->op->now.us;
    size_t mark = claim->skipped_count;
    struct hfi_hand hand;
    int code = 0;
    hfi_hand_start(&hand, claim->op->node, claim->op->now, admitted);
    for (size_t i = HFI_PRIORITIES; i > 0; i--) {
        const struct hfi_heap_item *first;
        for (uint32_t seen = 0; code == 0 && seen < HFI_PROBE_LOOK && !is_full(claim, lane, admitted);) {
            first = hfi_heap_first(&lane->due[i - 1]);
            if (!first || first->at_us > now_us)
                break;
            struct hfi_memory_job *row = first->row;
            bool expired = has_expired(row, now_us);
            seen += !expired;
            hfi_heap_remove(&lane->due[i - 1], &row->due);
            code = expired || !hfi_probe_suits(row->job, &hand.rules) ? skip(claim, row)
                                                                      : take(store, claim, admitted, row);
        }
    }
    while (claim->skipped_count > mark)
        put_back(claim->skipped[--claim->skipped_count]);
    return code;
}

static int claim_lane(struct hfi_memory *store, struct claim *claim, struct hfi_admitted *admitted) {
    struct hfi_op_claim *op = claim->op;
    struct hfi_memory_job *row;
    admitted->claimed = 0;
    admitted->more = false;
    admitted->full_at_us = 0;
    if (admitted->lane < 1 || (size_t)admitted->lane > store->lanes.count)
        return 0;
    struct hfi_memory_lane *lane = store->lanes.items[admitted->lane - 1];
    if (hfi_memory_pause_of(store, lane->queue, op->now))
        return 0;
    int code = admitted->probe ? claim_probes(store, claim, admitted, lane) : 0;
    bool served = admitted->claimed > 0; /* then what remains is whether there are more */
    while (code == 0 && !admitted->more && (row = take_due(lane, op->now.us, admitted->aging_us)) != NULL) {
        if (served || is_full(claim, lane, admitted)) {
            admitted->more = !has_expired(row, op->now.us);
            code = skip(claim, row);
        } else {
            code = take(store, claim, admitted, row);
        }
    }
    return code;
}

/* What was staged counts as running once it is linked; a rate is used up with it. */
static void settle_gauges(struct hfi_memory *store, struct hfi_op_claim *op, int code) {
    for (size_t i = 0; i < op->lane_count; i++) {
        struct hfi_admitted *admitted = &op->lanes[i];
        if (admitted->lane < 1 || (size_t)admitted->lane > store->lanes.count)
            continue;
        const struct hfi_memory_lane *lane = store->lanes.items[admitted->lane - 1];
        struct hfi_memory_gauge *key = lane->of_limit;
        lane->of_queue->staged = 0;
        if (!key)
            continue;
        if (code == 0 && admitted->limit && admitted->limit->interval_us > 0 && key->staged > 0)
            key->full_at_us = hfi_limit_take(admitted->limit, key->full_at_us, op->now.us, (uint32_t)key->staged);
        admitted->full_at_us = key->full_at_us;
        key->staged = 0;
    }
}

static void finish_claim(struct hfi_memory *store, struct claim *claim, int code) {
    struct hfi_op_claim *op = claim->op;
    settle_gauges(store, op, code);
    for (size_t i = 0; i < claim->skipped_count; i++)
        put_back(claim->skipped[i]);
    for (size_t i = 0; i < claim->count; i++) {
        if (code == 0) {
            hfi_memory_link(store, &claim->staged[i]);
            continue;
        }
        put_back(claim->staged[i].row);
        hfi_memory_drop(&claim->staged[i]);
        hfi_free(op->jobs[i]);
        op->jobs[i] = NULL;
    }
    for (size_t i = 0; i < op->lane_count && code != 0; i++) {
        op->lanes[i].claimed = 0;
        op->lanes[i].more = false;
    }
    op->count = code == 0 ? claim->count : 0;
    hfi_free(claim->staged);
    hfi_free(claim->skipped);
}

int hfi_memory_claim(struct hfi_memory *store, struct hfi_op_claim *op) {
    struct claim claim = {.op = op, .staged = hfi_alloc_array(op->max, sizeof *claim.staged)};
    int code = !claim.staged ? HF_ENOMEM : hfi_memory_node_lives(store, op->node) ? 0 : HF_ESTALE;
    for (size_t i = 0; i < op->lane_count && code == 0; i++)
        code = claim_lane(store, &claim, &op->lanes[i]);
    finish_claim(store, &claim, code);
    return code;
}
