/* SPDX-License-Identifier: MIT */
/*
 * Decides which lanes have a part in the next claim, and makes its budgets out of the books. Must never offer a slot that
 * is in use, nor leave a due lane without its turn for ever. No clock, no I/O; the runner's loop thread.
 */
#include <string.h>

#include "base/clock.h"
#include "jobs/runner/lane.h"
#include "jobs/runner/lane_limits.h"

/* Budgets that every round has. */
enum { NOTHING, THREADS, POOL_WORKER, POOL_ASYNC, SUSPECT, LENT, AHEAD, FIXED_BUDGETS };

static const uint16_t pool_budget[HFI_POOL_COUNT] = {[HFI_POOL_WORKER] = POOL_WORKER, [HFI_POOL_ASYNC] = POOL_ASYNC};

static uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

/* ------------------------------------------------------------------ slots */

/* Slots of a pool that one queue may hold. */
static uint32_t share(const struct hfi_lanes *lanes, const struct hfi_lane_queue *queue, enum hfi_pool pool) {
    uint32_t max = lanes->pool_max[pool], others = 0;
    for (size_t i = 0; i < lanes->queue_count; i++) {
        const struct hfi_lane_queue *other = lanes->queues[i];
        if (other != queue && other->concurrency == 0 && other->wanted && other->known[pool])
            others++;
    }
    uint32_t kept = others < max / 2 ? others : max / 2;
    return max - kept;
}

/* Queues that may start their first one though the pool is full. */
static uint32_t firsts(const struct hfi_lanes *lanes, enum hfi_pool pool) {
    uint64_t max = 2 * (uint64_t)lanes->pool_max[pool];
    return max > lanes->pool_used[pool] ? (uint32_t)(max - lanes->pool_used[pool]) : 0;
}

static struct hfi_merge_budget of_pool(const struct hfi_lanes *lanes, enum hfi_pool pool) {
    return (struct hfi_merge_budget){.left = less(lanes->pool_max[pool], lanes->pool_used[pool]),
                                     .of = pool == HFI_POOL_WORKER ? THREADS : NOTHING};
}

static struct hfi_merge_budget of_queue(const struct hfi_lanes *lanes, const struct hfi_lane_queue *queue, enum hfi_pool pool,
                                        uint32_t left_firsts) {
    if (queue->concurrency > 0)
        return (struct hfi_merge_budget){
            .left = less(queue->concurrency, queue->used[HFI_POOL_WORKER] + queue->used[HFI_POOL_ASYNC])};
    uint32_t part = share(lanes, queue, pool);
    bool first = queue->used[pool] == 0;
    return (struct hfi_merge_budget){.left = first && part == 0 ? 1 : less(part, queue->used[pool]),
                                     .free = first && left_firsts > 0, .of = pool_budget[pool]};
}

bool hfi_lane_has_slot(const struct hfi_lanes *lanes, const struct hfi_lane *lane) {
    struct hfi_merge_budget own = of_queue(lanes, lane->queue, lane->pool, firsts(lanes, lane->pool));
    if (own.left == 0 || own.of == NOTHING || own.free > 0)
        return own.left > 0;
    bool thread = lane->pool != HFI_POOL_WORKER || lanes->threads_used < lanes->threads_max;
    return thread && of_pool(lanes, lane->pool).left > 0;
}

/* ------------------------------------------------------------------ who may take part */

static bool may_take(struct hfi_lanes *lanes, struct hfi_lane *lane, struct hf_wall wall) {
    if (!hfi_alone_lets(&lanes->alone, lane) || !hfi_lane_has_place(lanes, lane, wall))
        return false;
    if (lane->site != NULL && lane->site->free == 0) {
        lane->site->blocked = true;
        return false;
    }
    return hfi_lane_has_slot(lanes, lane);
}

static void open_lanes(struct hfi_lanes *lanes, struct hfi_lane_queue *queue, int64_t now_us, struct hf_wall wall) {
    queue->open_count = queue->places = 0;
    queue->enters = false;
    memset(queue->budgets, 0, sizeof queue->budgets);
    if (queue->turn >= queue->count)
        queue->turn = 0;
    for (size_t i = 0; i < queue->count && queue->wanted; i++) {
        size_t place = queue->turn + i < queue->count ? queue->turn + i : queue->turn + i - queue->count;
        struct hfi_lane *lane = queue->lanes[place];
        if (!hfi_lane_open(lane, now_us))
            continue;
        if (lanes->round.ahead > 0 ? hfi_lane_reservable(lanes, lane) : may_take(lanes, lane, wall))
            queue->open[queue->open_count++] = lane;
    }
}

/* What a round says of sites, rates and suspects; jobs ahead are reserved after one, and leave it as it is. */
static void begin_sites(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall) {
    lanes->ready_at_us = INT64_MAX;
    for (size_t i = 0; i < lanes->count; i++) {
        if (lanes->lanes[i]->site != NULL) {
            lanes->lanes[i]->site->blocked = false;
            lanes->lanes[i]->site->asked = 0;
            lanes->lanes[i]->site->budget = NOTHING;
        }
    }
    hfi_alone_round(lanes, now_us, wall);
}

static void begin(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall, uint32_t ahead) {
    struct hfi_round *round = &lanes->round;
    round->count = round->queue_count = 0;
    round->ahead = ahead;
    lanes->round_number++;
    if (ahead == 0)
        begin_sites(lanes, now_us, wall);
    for (size_t i = 0; i < lanes->queue_count; i++)
        open_lanes(lanes, lanes->queues[i], now_us, wall);
    memset(round->budgets, 0, FIXED_BUDGETS * sizeof *round->budgets);
    round->budget_count = FIXED_BUDGETS;
    round->budgets[THREADS].left = less(lanes->threads_max, lanes->threads_used);
    for (enum hfi_pool pool = 0; pool < HFI_POOL_COUNT; pool++) {
        round->budgets[pool_budget[pool]] = of_pool(lanes, pool);
        round->firsts[pool] = firsts(lanes, pool);
    }
    round->budgets[SUSPECT].left = 1;
    round->budgets[AHEAD].left = ahead;
    round->budgets[LENT] = (struct hfi_merge_budget){UINT32_MAX, UINT32_MAX, THREADS}; /* they have theirs in any case */
}

/* ------------------------------------------------------------------ what goes into the claim */

static uint16_t new_budget(struct hfi_round *round, struct hfi_merge_budget budget) {
    round->budgets[round->budget_count] = budget;
    return (uint16_t)round->budget_count++;
}

static uint16_t budget_of_queue(struct hfi_lanes *lanes, struct hfi_lane_queue *queue, enum hfi_pool pool) {
    struct hfi_round *round = &lanes->round;
    if (queue->budgets[pool] != NOTHING)
        return queue->budgets[pool];
    struct hfi_merge_budget budget = of_queue(lanes, queue, pool, round->firsts[pool]);
    round->firsts[pool] -= budget.free;
    queue->budgets[pool] = new_budget(round, budget);
    if (queue->concurrency > 0) /* whatever the kind */
        queue->budgets[HFI_POOL_WORKER] = queue->budgets[HFI_POOL_ASYNC] = queue->budgets[pool];
    return queue->budgets[pool];
}

static uint16_t budget_of_site(struct hfi_round *round, struct hfi_lane_site *site) {
    if (site->budget == NOTHING) {
        site->budget = new_budget(round, (struct hfi_merge_budget){.left = site->free});
        site->asked = site->free;
    }
    return site->budget;
}

/* Those with a part in the round, by order whoever had the first places. */
static void enter_queues(struct hfi_lanes *lanes) {
    struct hfi_round *round = &lanes->round;
    for (size_t i = 0; i < lanes->queue_count; i++) {
        struct hfi_lane_queue *queue = lanes->queues[i];
        if (!queue->enters)
            continue;
        round->queues[round->queue_count] = (struct hfi_merge_queue){queue->order, queue->weight, queue->current, queue->current};
        round->queue_of[round->queue_count] = queue;
        queue->index = (uint16_t)round->queue_count++;
    }
    for (size_t i = 0; i < round->count; i++)
        round->admitted[i].queue = round->lanes[i]->queue->index;
}

/* Are its jobs probes that one may choose among? */
static bool is_probe(const struct hfi_lane *lane) {
    return lane->site != NULL && lane->site->probing && lane->type->options.repeatable;
}

static void enter(struct hfi_lanes *lanes, struct hfi_lane *lane, uint32_t max) {
    struct hfi_round *round = &lanes->round;
    struct hfi_lane_queue *queue = lane->queue;
    lane->round = lanes->round_number;
    queue->enters = true;
    round->lanes[round->count] = lane;
    struct hfi_admitted *admitted = &round->admitted[round->count++];
    *admitted = (struct hfi_admitted){.lane = lane->id, .max = max, .probe = is_probe(lane), .runs_code = lane->runs_code,
                                      .alone = hfi_alone_is(&lanes->alone, lane),
                                      .limit = lane->limit == NULL ? NULL : &lane->limit->limit,
                                      .queue_max = queue->global_concurrency, .aging_us = queue->aging_us};
    if (round->ahead > 0) {
        admitted->draws[0] = AHEAD;
        return;
    }
    admitted->draws[0] = budget_of_queue(lanes, queue, lane->pool);
    admitted->draws[1] = queue->concurrency > 0 && lane->pool == HFI_POOL_WORKER ? LENT : NOTHING;
    admitted->draws[2] = lane->site == NULL ? NOTHING : budget_of_site(round, lane->site);
    admitted->draws[3] = hfi_alone_suspects(lane) ? SUSPECT : NOTHING; /* two of them are never begun together */
}

/* ------------------------------------------------------------------ whose place it is */

static bool has_place(const struct hfi_lanes *lanes, const struct hfi_lane *lane) {
    return lane->round == lanes->round_number;
}

static bool promises_more(const struct hfi_lane *one, const struct hfi_lane *other, int64_t wall_us) {
    struct hfi_merge_head heads[2];
    const struct hfi_lane *lanes[2] = {one, other};
    for (int i = 0; i < 2; i++)
        heads[i] = (struct hfi_merge_head){
            hfi_aged_priority(lanes[i]->top_priority, lanes[i]->next_due_us, wall_us, lanes[i]->queue->aging_us),
            lanes[i]->next_due_us, lanes[i]->id, lanes[i]->top_priority};
    return hfi_merge_before(&heads[0], &heads[1]);
}

/* The worst of them is on top of a heap. */
static void sift_down(struct hfi_lane **heap, size_t count, int64_t wall_us) {
    struct hfi_lane *moved = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && promises_more(heap[child], heap[child + 1], wall_us))
            child++;
        if (!promises_more(moved, heap[child], wall_us))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void sift_up(struct hfi_lane **heap, size_t at, int64_t wall_us) {
    struct hfi_lane *moved = heap[at];
    for (; at > 0 && promises_more(heap[(at - 1) / 2], moved, wall_us); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moved;
}

static void enter_best(struct hfi_lanes *lanes, const struct hfi_lane_queue *queue, size_t places, uint32_t max,
                       int64_t wall_us) {
    struct hfi_lane *best[HFI_ADMIT_MAX];
    size_t count = 0;
    for (size_t i = 0; i < queue->open_count && places > 0; i++) {
        struct hfi_lane *lane = queue->open[i];
        if (has_place(lanes, lane))
            continue;
        if (count < places) {
            best[count] = lane;
            sift_up(best, count++, wall_us);
        } else if (promises_more(lane, best[0], wall_us)) {
            best[0] = lane;
            sift_down(best, count, wall_us);
        }
    }
    for (size_t i = 0; i < count; i++)
        enter(lanes, best[i], max);
}

/* All that are open, or half of the places to the best and half by turns; an odd one now here, now there. */
static void enter_lanes(struct hfi_lanes *lanes, struct hfi_lane_queue *queue, uint32_t max, int64_t wall_us) {
    size_t places = queue->places;
    if (places < queue->open_count) {
        size_t best = (places + (lanes->round_number & 1)) / 2;
        enter_best(lanes, queue, best, max, wall_us);
        places -= best;
    }
    size_t passed = 0;
    for (; passed < queue->open_count && places > 0; passed++) {
        if (has_place(lanes, queue->open[passed]))
            continue;
        enter(lanes, queue->open[passed], max);
        places--;
    }
    if (passed < queue->open_count)
        for (queue->turn = 0; queue->lanes[queue->turn] != queue->open[passed];)
            queue->turn++;
}

/* Divides what is left of the round among the queues of one order: as much as each may use, else even parts. */
static void divide(struct hfi_lanes *lanes, size_t from, size_t to) {
    size_t left = HFI_ADMIT_MAX - lanes->round.count, count = to - from;
    for (size_t wanting = 1, each; left > 0 && wanting > 0;) {
        wanting = 0;
        for (size_t i = from; i < to; i++)
            wanting += lanes->queues[i]->places < lanes->queues[i]->open_count;
        each = wanting == 0 ? 0 : left / wanting;
        for (size_t n = 0; n < count && left > 0 && wanting > 0; n++) {
            struct hfi_lane_queue *queue = lanes->queues[from + (lanes->queue_turn + n) % count];
            size_t more = queue->open_count - queue->places;
            more = more < each ? more : each == 0 && more > 0 ? 1 : each;
            queue->places += more;
            left -= more;
            if (left == 0 && each == 0)
                lanes->queue_turn = (lanes->queue_turn + n + 1) % count;
        }
    }
}

static void enter_probes(struct hfi_lanes *lanes, uint32_t max) {
    for (size_t i = 0; i < lanes->queue_count; i++) {
        struct hfi_lane_queue *queue = lanes->queues[i];
        size_t others = 0;
        for (size_t at = 0; at < queue->open_count; at++) {
            struct hfi_lane *lane = queue->open[at];
            if (!is_probe(lane) || lanes->round.count == HFI_ADMIT_MAX) {
                queue->open[others++] = lane;
                continue;
            }
            enter(lanes, lane, max);
        }
        queue->open_count = others;
    }
}

/* Lanes that are open, and may have places. */
static size_t enter_all(struct hfi_lanes *lanes, struct hf_wall wall, uint32_t max) {
    for (size_t from = 0, to; from < lanes->queue_count; from = to) {
        for (to = from + 1; to < lanes->queue_count && lanes->queues[to]->order == lanes->queues[from]->order;)
            to++;
        divide(lanes, from, to);
        for (size_t i = from; i < to; i++)
            enter_lanes(lanes, lanes->queues[i], max, wall.us);
    }
    enter_queues(lanes);
    return lanes->round.count;
}

size_t hfi_lanes_admit(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall, uint32_t max) {
    begin(lanes, now_us, wall, 0);
    enter_probes(lanes, max);
    return enter_all(lanes, wall, max);
}

size_t hfi_lanes_admit_ahead(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall, uint32_t count) {
    begin(lanes, now_us, wall, count);
    return enter_all(lanes, wall, count);
}

void hfi_lanes_rank(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall) {
    for (size_t i = 0; i < lanes->queue_count; i++)
        lanes->queues[i]->best = NULL;
    for (size_t i = 0; i < lanes->count; i++) {
        struct hfi_lane *lane = lanes->lanes[i];
        if (!lane->queue->wanted || !hfi_lane_open(lane, now_us) || !may_take(lanes, lane, wall))
            continue;
        if (lane->queue->best == NULL || promises_more(lane, lane->queue->best, wall.us))
            lane->queue->best = lane;
    }
}

void hfi_lanes_claimed(struct hfi_lanes *lanes, int64_t now_us, int64_t hold_us) {
    struct hfi_round *round = &lanes->round;
    uint64_t claimed = 0;
    for (size_t i = 0; i < round->count; i++)
        claimed += round->admitted[i].claimed;
    for (size_t i = 0; i < round->count; i++) {
        const struct hfi_admitted *admitted = &round->admitted[i];
        struct hfi_lane *lane = round->lanes[i];
        lane->ahead += round->ahead > 0 ? admitted->claimed : 0;
        for (uint32_t n = 0; n < admitted->claimed && round->ahead == 0; n++)
            hfi_lane_take(lanes, lane);
        hfi_lane_claimed(lane, admitted);
        lane->due = admitted->more;
        if (lane->site != NULL)
            lane->site->asked = 0;
        if (admitted->claimed > 0 || (admitted->more && claimed > 0)) /* else it only had no turn */
            lane->empty = 0;
        else if (++lane->empty >= 2)
            lane->hold_until_us = hfi_add(now_us, hold_us);
    }
    for (size_t i = 0; i < round->queue_count; i++)
        round->queue_of[i]->current = round->queues[i].after;
    round->count = round->queue_count = 0;
}
