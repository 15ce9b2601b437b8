/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_ORDER_REFERENCE_H
#define HF_TEST_ORDER_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "jobs/limit.h"
#include "jobs/merge.h"

/* The order of claims in its plainest form: one job after the other, each looked for among all that there are. */
#define REF_JOBS 512
#define REF_LANES 12
#define REF_QUEUES 4
#define REF_BUDGETS 12
#define REF_DRAWS 3

struct ref_job {
    int64_t id, run_at_us;
    int32_t priority;
    uint32_t lane;
    bool gone;
};
struct ref_lane {
    uint32_t queue, max;
    uint16_t draws[REF_DRAWS];
};
struct reference {
    struct ref_job jobs[REF_JOBS];
    struct ref_lane lanes[REF_LANES];
    struct hfi_merge_queue queues[REF_QUEUES];
    struct hfi_merge_budget budgets[REF_BUDGETS];
    size_t job_count, lane_count, queue_count, budget_count;
    uint32_t max;
    int64_t now_us, aging_us;
};

static inline bool ref_allows(const struct reference *ref, uint16_t budget) {
    const struct hfi_merge_budget *at = &ref->budgets[budget];
    return budget == 0 || (at->left > 0 && (at->free > 0 || ref_allows(ref, at->of)));
}

static inline void ref_pay(struct reference *ref, uint16_t budget) {
    struct hfi_merge_budget *at = &ref->budgets[budget];
    if (budget == 0)
        return;
    at->left -= at->left > 0;
    at->free -= at->free > 0;
    ref_pay(ref, at->of);
}

static inline bool ref_goes_before(const struct reference *ref, const struct ref_job *one, const struct ref_job *other) {
    int64_t a = one->priority, b = other->priority;
    if (ref->aging_us > 0) {
        a += (ref->now_us - one->run_at_us) / ref->aging_us;
        b += (ref->now_us - other->run_at_us) / ref->aging_us;
    }
    if (a != b)
        return a > b;
    if (one->run_at_us != other->run_at_us)
        return one->run_at_us < other->run_at_us;
    if (one->priority != other->priority)
        return one->priority > other->priority;
    return one->id < other->id;
}

/* The best job of the queue that may be taken; NULL none. */
static inline struct ref_job *ref_best(struct reference *ref, size_t queue) {
    struct ref_job *best = NULL;
    for (size_t i = 0; i < ref->job_count; i++) {
        struct ref_job *job = &ref->jobs[i];
        const struct ref_lane *lane = &ref->lanes[job->lane];
        bool may = !job->gone && job->run_at_us <= ref->now_us && lane->queue == queue && lane->max > 0;
        for (int draw = 0; draw < REF_DRAWS && may; draw++)
            may = ref_allows(ref, lane->draws[draw]);
        if (may && (best == NULL || ref_goes_before(ref, job, best)))
            best = job;
    }
    return best;
}

/* The job that is next, taken; NULL: the claim is over. */
static inline struct ref_job *ref_next(struct reference *ref) {
    struct ref_job *bests[REF_QUEUES];
    int32_t order = INT32_MAX;
    size_t turn = REF_QUEUES;
    int64_t sum = 0;
    if (ref->max == 0)
        return NULL;
    for (size_t i = 0; i < ref->queue_count; i++) {
        bests[i] = ref_best(ref, i);
        if (bests[i] != NULL && ref->queues[i].order < order)
            order = ref->queues[i].order;
    }
    for (size_t i = 0; i < ref->queue_count; i++) {
        struct hfi_merge_queue *queue = &ref->queues[i];
        if (bests[i] == NULL || queue->order != order)
            continue;
        queue->current += queue->weight;
        sum += queue->weight;
        if (turn == REF_QUEUES || queue->current > ref->queues[turn].current)
            turn = i;
    }
    if (turn == REF_QUEUES)
        return NULL;
    ref->queues[turn].current -= sum;
    struct ref_lane *lane = &ref->lanes[bests[turn]->lane];
    for (int draw = 0; draw < REF_DRAWS; draw++)
        ref_pay(ref, lane->draws[draw]);
    lane->max--;
    ref->max--;
    bests[turn]->gone = true;
    return bests[turn];
}

/* Queues, budgets and lanes by chance; `lane_count` lanes. */
static inline void ref_random(struct reference *ref, struct hfi_random *random, size_t lane_count) {
    memset(ref, 0, sizeof *ref);
    ref->queue_count = 1 + (size_t)hfi_random_below(random, REF_QUEUES);
    for (size_t i = 0; i < ref->queue_count; i++) {
        ref->queues[i].weight = 1 + (uint32_t)hfi_random_below(random, 6);
        ref->queues[i].order = i == 0 ? 1 : ref->queues[i - 1].order + (int32_t)hfi_random_below(random, 2);
    }
    ref->budget_count = 1 + (size_t)hfi_random_below(random, REF_BUDGETS);
    for (size_t i = 1; i < ref->budget_count; i++)
        ref->budgets[i] = (struct hfi_merge_budget){(uint32_t)hfi_random_below(random, 25), hfi_random_below(random, 3) ? 0 : (uint32_t)hfi_random_below(random, 4),
                                                    hfi_random_below(random, 2) ? 0 : (uint16_t)hfi_random_below(random, i)};
    ref->lane_count = lane_count;
    for (size_t i = 0; i < lane_count; i++) {
        ref->lanes[i].queue = (uint32_t)hfi_random_below(random, ref->queue_count);
        ref->lanes[i].max = hfi_random_below(random, 3) ? 1000 : (uint32_t)hfi_random_below(random, 6);
        unsigned seen = 0;
        for (int draw = 0; draw < REF_DRAWS; draw++) {
            uint16_t budget = hfi_random_below(random, 2) ? 0 : (uint16_t)hfi_random_below(random, ref->budget_count);
            unsigned path = 0;
            for (uint16_t at = budget; at != 0; at = ref->budgets[at].of)
                path |= 1u << at;
            ref->lanes[i].draws[draw] = (path & seen) != 0 ? 0 : budget; /* nothing is paid twice for one job */
            seen |= (path & seen) != 0 ? 0 : path;
        }
    }
    ref->max = 1 + (uint32_t)hfi_random_below(random, 150);
    ref->aging_us = hfi_random_below(random, 3) ? 0 : 1 + (int64_t)hfi_random_below(random, 40);
}

/* Priorities mostly alike and due times that meet: ties are the rule. */
static inline void ref_random_job(struct reference *ref, struct hfi_random *random, int64_t id, int64_t now_us) {
    struct ref_job *job = &ref->jobs[ref->job_count++];
    *job = (struct ref_job){.id = id, .lane = (uint32_t)hfi_random_below(random, ref->lane_count),
                            .priority = hfi_random_below(random, 4) ? (int32_t)hfi_random_below(random, 3) : (int32_t)hfi_random_below(random, 10),
                            .run_at_us = now_us + 5 - (int64_t)hfi_random_below(random, 100)};
}

#endif
