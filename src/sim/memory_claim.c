/* SPDX-License-Identifier: MIT */
/*
 * Claims of the memory store: jobs of all admitted lanes in the order of merge.h. Must never hand out a job of a paused
 * queue or one past its expires_at, nor look further behind those than HFI_EXPIRED_LOOK. Under the store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "jobs/hands.h"
#include "jobs/limit.h"
#include "jobs/merge.h"
#include "sim/memory_state.h"

/* A lane in the making. */
struct part {
    struct hfi_memory_lane *lane; /* NULL: it has no part in the claim */
    struct hfi_memory_job *first; /* whose turn it is in the lane; in its heap. NULL: none, or not looked at */
    uint32_t expired[HFI_PRIORITIES];
    bool looked, cut;             /* cut: of a priority there are more than may be passed over */
};

/* A claim in the making: rows are out of their heaps until it is linked in or dropped. */
struct claim {
    struct hfi_op_claim *op;
    struct part *parts;
    struct hfi_merge merge;
    struct hfi_staged *staged;
    size_t count;
    struct hfi_memory_job **skipped; /* due, but past their expiry or unfit */
    size_t skipped_count;
    size_t skipped_room;
};

static bool has_expired(const struct hfi_memory_job *row, int64_t now_us) {
    return row->job->expires_at_us != 0 && row->job->expires_at_us <= now_us;
}

static struct hfi_merge_head head_of(const struct hfi_memory_job *row, int64_t now_us, int64_t aging_us) {
    const struct hfi_job *job = row->job;
    int64_t aged = hfi_aged_priority(job->priority, job->run_at_us, now_us, aging_us);
    return (struct hfi_merge_head){aged, job->run_at_us, job->id, job->priority};
}

/* The due row of a priority; NULL: none. */
static struct hfi_memory_job *due_of(const struct hfi_memory_lane *lane, size_t priority, int64_t now_us) {
    struct hfi_heap_item *first = hfi_heap_first(&lane->due[priority]);
    return first && first->at_us <= now_us ? first->row : NULL;
}

struct hfi_memory_job *hfi_memory_next_due(struct hfi_memory_lane *lane, int64_t now_us) {
    struct hfi_memory_job *row = NULL;
    for (size_t i = HFI_PRIORITIES; i > 0 && !row; i--)
        row = due_of(lane, i - 1, now_us);
    return row;
}

static void take_out(struct hfi_memory_job *row) {
    hfi_heap_remove(&row->lane->due[row->job->priority], &row->due);
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

/* A row out of its heap: staged, or set aside when it cannot be claimed. */
static int take(struct hfi_memory *store, struct claim *claim, struct hfi_admitted *admitted, struct hfi_memory_job *row) {
    take_out(row);
    int code = stage_claim(store, claim, admitted, row);
    if (code == HF_ESTATE)
        return skip(claim, row); /* only this job, never the rest (I33) */
    if (code != 0)
        put_back(row);
    else
        admitted->claimed++;
    return code;
}

/* Finds the row of the lane whose turn it is; those past their time are set aside, a bounded number of each priority. */
static int look(struct claim *claim, struct hfi_admitted *admitted, struct part *part) {
    int64_t now_us = claim->op->now.us;
    struct hfi_merge_head best;
    part->looked = true;
    part->first = NULL;
    for (size_t i = HFI_PRIORITIES; i > 0 && (!part->first || admitted->aging_us > 0); i--) {
        struct hfi_memory_job *row;
        uint32_t *seen = &part->expired[i - 1];
        while ((row = due_of(part->lane, i - 1, now_us)) && has_expired(row, now_us) && *seen < HFI_EXPIRED_LOOK) {
            ++*seen;
            take_out(row);
            if (skip(claim, row) != 0)
                return HF_ENOMEM;
        }
        if (!row)
            continue;
        if (has_expired(row, now_us)) {
            part->cut = true;
            continue;
        }
        struct hfi_merge_head head = head_of(row, now_us, admitted->aging_us);
        if (part->first && !hfi_merge_before(&head, &best))
            continue;
        part->first = row;
        best = head;
    }
    return 0;
}

/* Jobs that suit as probes, among the first few due of each priority; those passed over go back to their places. */
static int take_suited(struct hfi_memory *store, struct claim *claim, struct hfi_admitted *admitted, struct part *part,
                       uint32_t room) {
    int64_t now_us = claim->op->now.us;
    size_t mark = claim->skipped_count;
    struct hfi_hand hand;
    int code = 0;
    hfi_hand_start(&hand, claim->op->node, claim->op->now, admitted);
    for (size_t i = HFI_PRIORITIES; i > 0; i--) {
        struct hfi_memory_job *row;
        uint32_t expired = 0;
        for (uint32_t seen = 0; code == 0 && seen < HFI_PROBE_LOOK && admitted->claimed < room &&
                                (row = due_of(part->lane, i - 1, now_us)) != NULL;) {
            bool over = has_expired(row, now_us);
            if (over && expired++ == HFI_EXPIRED_LOOK)
                break;
            seen += !over;
            if (!over && hfi_probe_suits(row->job, &hand.rules)) {
                code = take(store, claim, admitted, row);
                continue;
            }
            take_out(row);
            code = skip(claim, row);
        }
    }
    while (claim->skipped_count > mark)
        put_back(claim->skipped[--claim->skipped_count]);
    return code;
}

/* Probes are out of all order: such as suit, or when there are none the first ones. */
static int take_probes(struct hfi_memory *store, struct claim *claim) {
    int code = 0;
    for (size_t i = 0; i < claim->op->lane_count && code == 0; i++) {
        struct hfi_admitted *admitted = &claim->op->lanes[i];
        struct part *part = &claim->parts[i];
        uint32_t room = admitted->probe ? hfi_merge_room(&claim->merge, i) : 0;
        if (room == 0)
            continue;
        code = take_suited(store, claim, admitted, part, room);
        bool served = admitted->claimed > 0;
        while (code == 0 && (code = look(claim, admitted, part)) == 0 && part->first && !served && admitted->claimed < room)
            code = take(store, claim, admitted, part->first);
        hfi_merge_apart(&claim->merge, i, admitted->claimed);
    }
    return code;
}

static int take_turns(struct hfi_memory *store, struct claim *claim) {
    struct hfi_merge_turn turn;
    struct hfi_merge_head head;
    while (hfi_merge_next(&claim->merge, &turn)) {
        struct hfi_admitted *admitted = &claim->op->lanes[turn.lane];
        struct part *part = &claim->parts[turn.lane];
        uint32_t before = admitted->claimed;
        int code = turn.look ? 0 : take(store, claim, admitted, part->first);
        if (code == 0)
            code = look(claim, admitted, part);
        if (code != 0)
            return code;
        if (part->first)
            head = head_of(part->first, claim->op->now.us, admitted->aging_us);
        if (turn.look)
            hfi_merge_found(&claim->merge, turn.lane, part->first ? &head : NULL);
        else
            hfi_merge_took(&claim->merge, turn.lane, admitted->claimed - before, part->first ? &head : NULL);
    }
    return 0;
}

/* The budget of a gauge, shared by all lanes that draw from it; made at the first. */
static void draw_from(struct claim *claim, size_t at, struct hfi_memory_gauge *gauge, uint32_t left) {
    if (gauge->budget == HFI_MERGE_NOTHING)
        gauge->budget = hfi_merge_budget(&claim->merge, left);
    hfi_merge_draw(&claim->merge, at, gauge->budget);
}

static void open_lane(struct hfi_memory *store, struct claim *claim, size_t at) {
    struct hfi_admitted *admitted = &claim->op->lanes[at];
    struct part *part = &claim->parts[at];
    admitted->claimed = 0;
    admitted->more = false;
    admitted->full_at_us = 0;
    if (admitted->lane >= 1 && (size_t)admitted->lane <= store->lanes.count)
        part->lane = store->lanes.items[admitted->lane - 1];
    if (part->lane && hfi_memory_pause_of(store, part->lane->queue, claim->op->now))
        part->lane = NULL;
    hfi_merge_lane(&claim->merge, at, admitted->queue, part->lane ? admitted->max : 0);
    if (!part->lane)
        return;
    for (int i = 0; i < HFI_ADMITTED_DRAWS; i++)
        hfi_merge_draw(&claim->merge, at, admitted->draws[i]);
    struct hfi_memory_gauge *queue = part->lane->of_queue, *key = part->lane->of_limit;
    if (admitted->queue_max > 0)
        draw_from(claim, at, queue, hfi_limit_room(admitted->queue_max, (uint32_t)queue->running));
    if (!admitted->limit || !key)
        return;
    uint32_t left = hfi_limit_room(admitted->limit->concurrency, (uint32_t)key->running);
    uint32_t tokens = hfi_limit_tokens(admitted->limit, key->full_at_us, claim->op->now.us, NULL);
    draw_from(claim, at, key, left < tokens ? left : tokens);
}

/* A rate is used up by what is linked now; what a lane has left is told. */
static void close_lanes(struct claim *claim, int code) {
    struct hfi_op_claim *op = claim->op;
    for (size_t i = 0; i < op->lane_count; i++) {
        struct hfi_admitted *admitted = &op->lanes[i];
        struct part *part = &claim->parts[i];
        if (!part->lane)
            continue;
        struct hfi_memory_gauge *key = part->lane->of_limit;
        part->lane->of_queue->budget = HFI_MERGE_NOTHING;
        admitted->claimed = code == 0 ? admitted->claimed : 0;
        admitted->more = code == 0 && (!part->looked || part->first || part->cut);
        if (!key)
            continue;
        key->budget = HFI_MERGE_NOTHING;
        if (admitted->limit && admitted->limit->interval_us > 0 && admitted->claimed > 0)
            key->full_at_us = hfi_limit_take(admitted->limit, key->full_at_us, op->now.us, admitted->claimed);
    }
    for (size_t i = 0; i < op->lane_count; i++)
        if (claim->parts[i].lane && claim->parts[i].lane->of_limit)
            op->lanes[i].full_at_us = claim->parts[i].lane->of_limit->full_at_us;
}

static void finish_claim(struct hfi_memory *store, struct claim *claim, int code) {
    struct hfi_op_claim *op = claim->op;
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
    op->count = code == 0 ? claim->count : 0;
}

int hfi_memory_claim(struct hfi_memory *store, struct hfi_op_claim *op) {
    struct claim claim = {.op = op, .staged = hfi_alloc_array(op->max + 1, sizeof *claim.staged),
                          .parts = hfi_alloc_array(op->lane_count + 1, sizeof *claim.parts)};
    int code = hfi_merge_begin(&claim.merge, op->lane_count, op->max, op->queues, op->queue_count, op->budgets,
                               op->budget_count, 2 * op->lane_count);
    op->count = 0;
    if (!claim.staged || !claim.parts)
        code = HF_ENOMEM;
    else if (code == 0 && !hfi_memory_node_lives(store, op->node))
        code = HF_ESTALE;
    for (size_t i = 0; i < op->lane_count && code == 0; i++)
        open_lane(store, &claim, i);
    if (code == 0) {
        hfi_merge_sort(&claim.merge);
        code = take_probes(store, &claim);
        code = code == 0 ? take_turns(store, &claim) : code;
        hfi_merge_turns(&claim.merge, op->queues, op->queue_count);
        close_lanes(&claim, code);
        finish_claim(store, &claim, code);
    }
    hfi_merge_end(&claim.merge);
    hfi_free(claim.staged);
    hfi_free(claim.parts);
    hfi_free(claim.skipped);
    return code;
}
