/* SPDX-License-Identifier: MIT */
/*
 * Claims: whose turn it is over all admitted lanes is merge.h's to say, what a limit key and a bounded queue have left is
 * measured here. A lane whose budgets have nothing left is not read at all (I42). Must never give more than is left, and
 * never leave a lane's next due time later than the truth. Writer thread.
 */
#include "jobs/store/claim.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* The budget of a gauge in this claim, shared by all lanes that draw from it; made at the first. */
static void draw_from(struct hfi_claim *claim, size_t at, struct hfi_gauge_part *part, uint32_t left) {
    if (part->budget == HFI_MERGE_NOTHING)
        part->budget = hfi_merge_budget(&claim->merge, left);
    hfi_merge_draw(&claim->merge, at, part->budget);
}

/* What its limit key has left, in the whole store: places, and starts of its rate. 0 or a fault. */
static int draw_from_key(struct hfi_claim *claim, size_t at) {
    struct hfi_claim_lane *lane = &claim->lanes[at];
    const struct hfi_limit *limit = lane->admitted->limit;
    struct hfi_gauge_part *part = hfi_sqlite_gauge_part(claim->store, lane->place->limit);
    uint32_t left = hfi_limit_room(limit->concurrency, hfi_sqlite_gauge_running(lane->place->limit));
    if (part->budget == HFI_MERGE_NOTHING && limit->interval_us > 0) {
        if (hfi_sqlite_rate_get(claim->store, lane->place->texts.limit_key, &part->full_at_us) != 0)
            return claim->store->fault;
        uint32_t tokens = hfi_limit_tokens(limit, part->full_at_us, claim->op->now.us, NULL);
        left = tokens < left ? tokens : left;
    }
    draw_from(claim, at, part, left);
    return 0;
}

/* A lane before the claim: what it may draw from. 0 or a fault. */
static int open_lane(struct hfi_claim *claim, size_t at) {
    struct hfi_sqlite *store = claim->store;
    struct hfi_claim_lane *lane = &claim->lanes[at];
    struct hfi_admitted *admitted = &claim->op->lanes[at];
    lane->admitted = admitted;
    lane->below = HFI_PRIORITIES;
    lane->passed_us = INT64_MAX;
    lane->passed_top = -1;
    for (int i = 0; i < HFI_PRIORITIES; i++)
        lane->next[i].run_at_us = INT64_MAX;
    lane->place = hfi_sqlite_lane_place(store, admitted->lane);
    if (lane->place && hfi_sqlite_gauge_paused(store, lane->place->queue))
        lane->place = NULL;
    hfi_merge_lane(&claim->merge, at, admitted->queue, lane->place ? admitted->max : 0);
    if (!lane->place)
        return store->fault;
    for (int i = 0; i < HFI_ADMITTED_DRAWS; i++)
        hfi_merge_draw(&claim->merge, at, admitted->draws[i]);
    if (admitted->queue_max > 0)
        draw_from(claim, at, hfi_sqlite_gauge_part(store, lane->place->queue),
                  hfi_limit_room(admitted->queue_max, hfi_sqlite_gauge_running(lane->place->queue)));
    if (admitted->limit && lane->place->limit)
        draw_from_key(claim, at);
    if (admitted->policy && claim->op->start && store->fault == 0 && hfi_merge_room(&claim->merge, at) > 0)
        hfi_sqlite_policy(store, admitted->policy, &lane->policy);
    return store->fault;
}

/* Probes are out of all order. */
static int take_probes(struct hfi_claim *claim) {
    for (size_t i = 0; i < claim->op->lane_count && claim->store->fault == 0; i++) {
        uint32_t room = claim->op->lanes[i].probe ? hfi_merge_room(&claim->merge, i) : 0;
        if (room > 0 && hfi_claim_probes(claim, &claim->lanes[i], room) == 0)
            hfi_merge_apart(&claim->merge, i, claim->op->lanes[i].claimed);
    }
    return claim->store->fault;
}

static int take_turns(struct hfi_claim *claim) {
    struct hfi_merge_turn turn;
    while (claim->store->fault == 0 && hfi_merge_next(&claim->merge, &turn)) {
        struct hfi_claim_lane *lane = &claim->lanes[turn.lane];
        uint32_t before = lane->admitted->claimed;
        if (turn.look && hfi_claim_look(claim, lane) == 0)
            hfi_merge_found(&claim->merge, turn.lane, hfi_claim_head(claim, lane));
        else if (!turn.look && hfi_claim_run(claim, lane, turn.count, turn.until) == 0)
            hfi_merge_took(&claim->merge, turn.lane, lane->admitted->claimed - before, hfi_claim_head(claim, lane));
    }
    return claim->store->fault;
}

/* The rate of its key is used up by what was taken of all lanes of it. */
static int use_rate(struct hfi_claim *claim, struct hfi_claim_lane *lane, bool last) {
    struct hfi_admitted *admitted = lane->admitted;
    if (!lane->place || !admitted->limit || !lane->place->limit || admitted->limit->interval_us == 0)
        return 0;
    struct hfi_gauge_part *part = hfi_sqlite_gauge_part(claim->store, lane->place->limit);
    if (last) {
        admitted->full_at_us = part->full_at_us;
        return 0;
    }
    if (admitted->claimed == 0)
        return 0;
    part->full_at_us = hfi_limit_take(admitted->limit, part->full_at_us, claim->op->now.us, admitted->claimed);
    return hfi_sqlite_rate_set(claim->store, lane->place->texts.limit_key, part->full_at_us);
}

/* What is left of a lane, for its row and for the claimer. 0 or a fault. */
static int close_lane(struct hfi_claim *claim, size_t at) {
    struct hfi_claim_lane *lane = &claim->lanes[at];
    int64_t due_us = lane->passed_us;
    int top = lane->passed_top;
    if (!lane->looked) {
        lane->admitted->more = lane->place != NULL; /* it was due, as far as anybody knows */
        return 0;
    }
    for (int priority = HFI_PRIORITIES - 1; priority >= 0; priority--) {
        if (lane->next[priority].run_at_us == INT64_MAX)
            continue;
        top = priority > top ? priority : top;
        due_us = lane->next[priority].run_at_us < due_us ? lane->next[priority].run_at_us : due_us;
    }
    lane->admitted->more = lane->cut || hfi_claim_head(claim, lane);
    return lane->admitted->more ? hfi_sqlite_lane_top(claim->store, lane->admitted->lane, top)
                                : hfi_sqlite_lane_exact(claim->store, lane->admitted->lane, due_us, top);
}

static int claim_all(struct hfi_claim *claim) {
    struct hfi_op_claim *op = claim->op;
    for (size_t i = 0; i < op->lane_count; i++)
        if (open_lane(claim, i) != 0)
            return claim->store->fault;
    hfi_merge_sort(&claim->merge);
    if (take_probes(claim) != 0 || take_turns(claim) != 0)
        return claim->store->fault;
    for (size_t i = 0; i < op->lane_count; i++)
        if (use_rate(claim, &claim->lanes[i], false) != 0 || close_lane(claim, i) != 0)
            return claim->store->fault;
    for (size_t i = 0; i < op->lane_count; i++)
        use_rate(claim, &claim->lanes[i], true);
    hfi_merge_turns(&claim->merge, op->queues, op->queue_count);
    return claim->store->fault;
}

/* What runs is looked at only for those who ask. */
static int look_around(struct hfi_sqlite *store, const struct hfi_op_claim *op) {
    bool bounded = false;
    for (size_t i = 0; i < op->lane_count; i++) {
        const struct hfi_admitted *lane = &op->lanes[i];
        bounded = bounded || lane->queue_max > 0 || (lane->limit && lane->limit->concurrency > 0);
    }
    if (hfi_sqlite_pauses_read(store, op->now) != 0)
        return store->fault;
    return bounded ? hfi_sqlite_gauges_read(store) : 0;
}

static void clear(struct hfi_op_claim *op) {
    op->count = 0;
    for (size_t i = 0; i < op->lane_count; i++) {
        op->lanes[i].claimed = 0;
        op->lanes[i].more = false;
        op->lanes[i].full_at_us = 0;
    }
}

int hfi_sqlite_op_claim(struct hfi_sqlite *store, struct hfi_op_claim *op) {
    struct hfi_claim claim = {.store = store, .op = op};
    clear(op);
    if (store->full)
        return hfi_fail(op->op.error, HF_ENOSPC, store->path, "free space; it is taken up again by itself",
                        "the disk is full, nothing new is started");
    if (!hfi_sqlite_node_lives(store, op->node)) /* taken for dead: what it claimed now would be nobody's */
        return store->fault != 0 ? store->fault : hfi_fail(op->op.error, HF_ESTALE, "node", NULL, "%lld is gone", (long long)op->node);
    if (look_around(store, op) != 0)
        return store->fault;
    hfi_hand_claim(&claim.reserve, op->node, op->now);
    claim.lanes = hfi_alloc_array(op->lane_count + 1, sizeof *claim.lanes);
    if (hfi_merge_begin(&claim.merge, op->lane_count, op->max, op->queues, op->queue_count, op->budgets, op->budget_count,
                        2 * op->lane_count) != 0 ||
        !claim.lanes)
        hfi_sqlite_no_memory(store);
    else
        claim_all(&claim);
    hfi_merge_end(&claim.merge);
    hfi_free(claim.lanes);
    return store->fault;
}
