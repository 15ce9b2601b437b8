/* SPDX-License-Identifier: MIT */
/*
 * Decides the order of a claim over its lanes: queues by order and weight, lanes by what their heads are, and nobody
 * beyond the budgets. Each queue has a heap of its lanes by head. Must never let a job be taken that one of its budgets
 * has no place for. Pure but for one allocation; any thread.
 */
#include "jobs/merge.h"

#include <string.h>

#include "base/alloc.h"
#include "holdfast/error.h"

enum state { UNSEEN, WAITS, OUT };

struct hfi_merge_lane {
    struct hfi_merge_head head;
    uint32_t left;
    uint32_t line;
    uint16_t draws[HFI_MERGE_DRAWS];
    uint8_t draw_count, state;
};

struct hfi_merge_line {
    int32_t order;
    uint32_t weight;
    int64_t current;
    uint32_t *places; /* of its lanes: first the heap, from `looked` on those not looked at yet */
    size_t lanes, looked, heap;
    bool plays;       /* in the turn that was given last */
};

bool hfi_merge_before(const struct hfi_merge_head *first, const struct hfi_merge_head *second) {
    if (first->aged != second->aged)
        return first->aged > second->aged;
    if (first->run_at_us != second->run_at_us)
        return first->run_at_us < second->run_at_us;
    if (first->priority != second->priority)
        return first->priority > second->priority;
    return first->id < second->id;
}

/* ------------------------------------------------------------------ begin and end */

int hfi_merge_begin(struct hfi_merge *merge, size_t lane_count, uint32_t max, const struct hfi_merge_queue *queues,
                    size_t queue_count, const struct hfi_merge_budget *budgets, size_t budget_count, size_t more) {
    static const struct hfi_merge_queue one = {.weight = 1};
    memset(merge, 0, sizeof *merge);
    if (queue_count == 0) {
        queues = &one;
        queue_count = 1;
    }
    budget_count = budget_count == 0 ? 1 : budget_count;
    merge->lanes = hfi_alloc_array(lane_count + 1, sizeof *merge->lanes);
    merge->lines = hfi_alloc_array(queue_count, sizeof *merge->lines);
    merge->budgets = hfi_alloc_array(budget_count + more, sizeof *merge->budgets);
    merge->places = hfi_alloc_array(lane_count + 1, sizeof *merge->places);
    if (merge->lanes == NULL || merge->lines == NULL || merge->budgets == NULL || merge->places == NULL)
        return HF_ENOMEM;
    merge->lane_count = lane_count;
    merge->line_count = queue_count;
    merge->budget_count = budget_count;
    merge->budget_room = budget_count + more;
    merge->left = max;
    if (budgets != NULL)
        memcpy(merge->budgets, budgets, budget_count * sizeof *budgets);
    for (size_t i = 0; i < queue_count; i++)
        merge->lines[i] = (struct hfi_merge_line){.order = queues[i].order,
                                                  .weight = queues[i].weight == 0 ? 1 : queues[i].weight,
                                                  .current = queues[i].current};
    return 0;
}

void hfi_merge_end(struct hfi_merge *merge) {
    hfi_free(merge->lanes);
    hfi_free(merge->lines);
    hfi_free(merge->budgets);
    hfi_free(merge->places);
    memset(merge, 0, sizeof *merge);
}

void hfi_merge_lane(struct hfi_merge *merge, size_t lane, size_t queue, uint32_t max) {
    merge->lanes[lane].line = (uint32_t)queue;
    merge->lanes[lane].left = max;
}

uint16_t hfi_merge_budget(struct hfi_merge *merge, uint32_t left) {
    if (merge->budget_count == merge->budget_room || merge->budget_count > UINT16_MAX)
        return HFI_MERGE_NOTHING;
    merge->budgets[merge->budget_count].left = left;
    return (uint16_t)merge->budget_count++;
}

void hfi_merge_draw(struct hfi_merge *merge, size_t at, uint16_t budget) {
    struct hfi_merge_lane *lane = &merge->lanes[at];
    if (budget != HFI_MERGE_NOTHING && lane->draw_count < HFI_MERGE_DRAWS)
        lane->draws[lane->draw_count++] = budget;
}

void hfi_merge_sort(struct hfi_merge *merge) {
    uint32_t *places = merge->places;
    for (size_t i = 0; i < merge->lane_count; i++)
        merge->lines[merge->lanes[i].line].lanes++;
    for (size_t i = 0; i < merge->line_count; i++) {
        merge->lines[i].places = places;
        places += merge->lines[i].lanes;
        merge->lines[i].lanes = 0;
    }
    for (size_t i = 0; i < merge->lane_count; i++) {
        struct hfi_merge_line *line = &merge->lines[merge->lanes[i].line];
        line->places[line->lanes++] = (uint32_t)i;
    }
}

/* ------------------------------------------------------------------ budgets */

static uint32_t left_of(const struct hfi_merge *merge, uint16_t budget) {
    const struct hfi_merge_budget *at = &merge->budgets[budget];
    if (budget == HFI_MERGE_NOTHING)
        return UINT32_MAX;
    uint32_t further = left_of(merge, at->of);
    further = further < at->free ? at->free : further;
    return at->left < further ? at->left : further;
}

static void pay(struct hfi_merge *merge, uint16_t budget, uint32_t count) {
    for (; budget != HFI_MERGE_NOTHING; budget = merge->budgets[budget].of) {
        struct hfi_merge_budget *at = &merge->budgets[budget];
        at->left -= count < at->left ? count : at->left;
        at->free -= count < at->free ? count : at->free;
    }
}

uint32_t hfi_merge_room(const struct hfi_merge *merge, size_t at) {
    const struct hfi_merge_lane *lane = &merge->lanes[at];
    uint32_t room = lane->left < merge->left ? lane->left : merge->left;
    for (uint8_t i = 0; i < lane->draw_count && room > 0; i++) {
        uint32_t left = left_of(merge, lane->draws[i]);
        room = left < room ? left : room;
    }
    return room;
}

static void spend(struct hfi_merge *merge, struct hfi_merge_lane *lane, uint32_t count) {
    merge->left -= count;
    lane->left -= count;
    for (uint8_t i = 0; i < lane->draw_count; i++)
        pay(merge, lane->draws[i], count);
}

void hfi_merge_apart(struct hfi_merge *merge, size_t lane, uint32_t count) {
    spend(merge, &merge->lanes[lane], count);
    merge->lanes[lane].state = OUT;
}

/* ------------------------------------------------------------------ heaps */

static bool goes_before(const struct hfi_merge *merge, uint32_t first, uint32_t second) {
    return hfi_merge_before(&merge->lanes[first].head, &merge->lanes[second].head);
}

static void sift_up(const struct hfi_merge *merge, uint32_t *heap, size_t at) {
    uint32_t moved = heap[at];
    while (at > 0 && goes_before(merge, moved, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = moved;
}

static void sift_down(const struct hfi_merge *merge, uint32_t *heap, size_t count) {
    uint32_t moved = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && goes_before(merge, heap[child + 1], heap[child]))
            child++;
        if (!goes_before(merge, heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void drop_first(const struct hfi_merge *merge, struct hfi_merge_line *line) {
    line->places[0] = line->places[--line->heap];
    if (line->heap > 1)
        sift_down(merge, line->places, line->heap);
}

/* Budgets never grow: who has none left is out. */
static bool has_turn(const struct hfi_merge *merge, struct hfi_merge_line *line) {
    while (line->heap > 0 && hfi_merge_room(merge, line->places[0]) == 0)
        drop_first(merge, line);
    return line->heap > 0;
}

/* The best head of the queue behind the first one. Of a lane that is out by now: then only the run is shorter. */
static const struct hfi_merge_head *second_of(const struct hfi_merge *merge, const struct hfi_merge_line *line) {
    if (line->heap < 2)
        return NULL;
    size_t at = line->heap > 2 && goes_before(merge, line->places[2], line->places[1]) ? 2 : 1;
    return &merge->lanes[line->places[at]].head;
}

/* ------------------------------------------------------------------ turns */

/* A lane of the queue whose head is wanted and not known. */
static bool to_look_at(const struct hfi_merge *merge, struct hfi_merge_line *line, size_t *lane) {
    for (; line->looked < line->lanes; line->looked++) {
        *lane = line->places[line->looked];
        if (merge->lanes[*lane].state == UNSEEN && hfi_merge_room(merge, *lane) > 0)
            return true;
    }
    return false;
}

/* Whose turn it is among the queues of the order; NULL: none of them may have one any more. There are as many as the
   configuration names in one order: a handful, which needs no heap. */
static struct hfi_merge_line *whose_turn(const struct hfi_merge *merge, size_t *players) {
    struct hfi_merge_line *best = NULL;
    *players = 0;
    for (size_t i = merge->from; i < merge->to; i++) {
        struct hfi_merge_line *line = &merge->lines[i];
        line->plays = has_turn(merge, line);
        *players += line->plays;
        if (line->plays && (best == NULL || line->current + line->weight > best->current + best->weight))
            best = line;
    }
    return best;
}

bool hfi_merge_next(struct hfi_merge *merge, struct hfi_merge_turn *turn) {
    while (merge->left > 0) {
        size_t players;
        for (size_t i = merge->from; i < merge->to; i++) {
            if (to_look_at(merge, &merge->lines[i], &turn->lane)) {
                turn->look = true;
                return true;
            }
        }
        struct hfi_merge_line *line = whose_turn(merge, &players);
        if (line != NULL) {
            turn->look = false;
            turn->lane = line->places[0];
            turn->count = players > 1 ? 1 : hfi_merge_room(merge, turn->lane);
            turn->until = second_of(merge, line);
            return true;
        }
        if (merge->to == merge->line_count)
            return false;
        merge->from = merge->to++;
        while (merge->to < merge->line_count && merge->lines[merge->to].order == merge->lines[merge->from].order)
            merge->to++;
    }
    return false;
}

void hfi_merge_found(struct hfi_merge *merge, size_t lane, const struct hfi_merge_head *head) {
    struct hfi_merge_line *line = &merge->lines[merge->lanes[lane].line];
    line->looked++;
    merge->lanes[lane].state = head == NULL ? OUT : WAITS;
    if (head == NULL)
        return;
    merge->lanes[lane].head = *head;
    line->places[line->heap++] = (uint32_t)lane;
    sift_up(merge, line->places, line->heap - 1);
}

void hfi_merge_took(struct hfi_merge *merge, size_t at, uint32_t count, const struct hfi_merge_head *head) {
    struct hfi_merge_lane *lane = &merge->lanes[at];
    struct hfi_merge_line *taker = &merge->lines[lane->line];
    spend(merge, lane, count);
    for (size_t i = merge->from; i < merge->to && count > 0; i++) {
        if (!merge->lines[i].plays)
            continue;
        merge->lines[i].current += (int64_t)merge->lines[i].weight * count;
        taker->current -= (int64_t)merge->lines[i].weight * count;
    }
    if (head == NULL) {
        lane->state = OUT;
        drop_first(merge, taker);
        return;
    }
    lane->head = *head;
    sift_down(merge, taker->places, taker->heap);
}

void hfi_merge_turns(const struct hfi_merge *merge, struct hfi_merge_queue *queues, size_t queue_count) {
    for (size_t i = 0; i < queue_count; i++)
        queues[i].after = merge->lines[i].current;
}
