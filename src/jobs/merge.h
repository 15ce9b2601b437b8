/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_MERGE_H
#define HFI_JOBS_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The order of one claim over all its lanes: whose job is next. Pure: a store says what the head of a lane is and takes
 * what it is told to take.
 *
 * Queues go by `order`; those of one order share by weight (smooth weighted round robin), a turn a job. Within a queue
 * the head of all its lanes that goes first by hfi_merge_before has its turn: aged priority, due time, priority, id.
 *
 * Budgets say how many jobs may be taken: slots of a queue, a pool, the places of a downstream, of a limit key. A lane
 * draws from several, each of which may be shared with other lanes and may itself draw `of` another one. A job is taken
 * only while all of them have something left. A lane without is not asked for its head.
 */
struct hfi_merge_head {
    int64_t aged;      /* hfi_aged_priority */
    int64_t run_at_us;
    int64_t id;
    int32_t priority;
};
bool hfi_merge_before(const struct hfi_merge_head *first, const struct hfi_merge_head *second);

/* Ascending by `order`. */
struct hfi_merge_queue {
    int32_t order;
    uint32_t weight;
    int64_t current; /* in: of its turns, as the last claim left it */
    int64_t after;   /* out of hfi_merge_turns */
};

struct hfi_merge_budget {
    uint32_t left;
    uint32_t free; /* so many may be taken though `of` has nothing left; it pays what it has */
    uint16_t of;   /* index of one further up in the list; 0 none */
};

#define HFI_MERGE_DRAWS 6
#define HFI_MERGE_NOTHING 0 /* index of a budget: none; the first of a list is never looked at */

struct hfi_merge_lane;
struct hfi_merge_line;
struct hfi_merge {
    struct hfi_merge_lane *lanes;
    struct hfi_merge_line *lines; /* of queues */
    struct hfi_merge_budget *budgets;
    uint32_t *places;             /* lanes by queue; heaps of those with a head */
    size_t lane_count, line_count, budget_count, budget_room;
    size_t from, to;              /* the lines of the order that is being served */
    uint32_t left;
};

/*
 * Begins; `queue_count` 0: all lanes are of one. `max` jobs over all. Room for `more` budgets of the caller's own. The
 * lists are copied. HF_ENOMEM. To be ended in any case.
 */
int hfi_merge_begin(struct hfi_merge *merge, size_t lane_count, uint32_t max, const struct hfi_merge_queue *queues,
                    size_t queue_count, const struct hfi_merge_budget *budgets, size_t budget_count, size_t more);
void hfi_merge_end(struct hfi_merge *merge);
/* A lane, before anything is asked: its queue, at most `max` jobs of it. */
void hfi_merge_lane(struct hfi_merge *merge, size_t lane, size_t queue, uint32_t max);
/* One more budget of the caller's. Its index. */
uint16_t hfi_merge_budget(struct hfi_merge *merge, uint32_t left);
/* No two budgets of a lane may lead to the same one; NOTHING is fine. */
void hfi_merge_draw(struct hfi_merge *merge, size_t lane, uint16_t budget);
/* All lanes are told: from here on heads may be given. */
void hfi_merge_sort(struct hfi_merge *merge);

/* How many jobs of the lane its budgets allow now; 0: none in this claim any more. */
uint32_t hfi_merge_room(const struct hfi_merge *merge, size_t lane);
/* Out of turn: so many jobs were taken of a lane that has no other part in this claim. */
void hfi_merge_apart(struct hfi_merge *merge, size_t lane, uint32_t count);

struct hfi_merge_turn {
    size_t lane;
    bool look;      /* its head is not known yet: hfi_merge_found comes next */
    uint32_t count; /* else so many may be taken in a row, as long as each is before */
    const struct hfi_merge_head *until; /* this one; NULL: whatever they are. Valid until the next call */
};
/* False: nothing may be taken any more. */
bool hfi_merge_next(struct hfi_merge *merge, struct hfi_merge_turn *turn);
/* The head of the lane that was to be looked at; NULL: it has none. */
void hfi_merge_found(struct hfi_merge *merge, size_t lane, const struct hfi_merge_head *head);
/* What was taken of the lane that had the turn, and its next head; NULL: it has none. */
void hfi_merge_took(struct hfi_merge *merge, size_t lane, uint32_t count, const struct hfi_merge_head *head);

/* Where the turns of the queues stand. */
void hfi_merge_turns(const struct hfi_merge *merge, struct hfi_merge_queue *queues, size_t queue_count);

#endif
