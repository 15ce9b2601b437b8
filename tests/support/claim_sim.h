/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_CLAIM_SIM_H
#define HF_TEST_CLAIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "jobs/runner/lane.h"
#include "jobs/runner/lane_limits.h"

/*
 * Rounds as a store answers them, without jobs: each lane has as many as `has` says, of its top priority, and of all
 * lanes the one that has had least so far has waited longest. `claimed` has the lanes that had some; `max` how many.
 */
#define CLAIM_SIM_LANES 1024

struct claim_sim {
    uint32_t has[CLAIM_SIM_LANES], had[CLAIM_SIM_LANES]; /* by lane id; begin with all UINT32_MAX, all 0 */
    struct hfi_admitted claimed[HFI_ADMIT_MAX];
    size_t count;
    uint32_t total;
    uint32_t inverted; /* jobs beyond the probes that went after one of a queue of a higher order, over all rounds */
};

static inline void claim_sim_init(struct claim_sim *sim) {
    memset(sim, 0, sizeof *sim);
    memset(sim->has, 0xff, sizeof sim->has);
}

static inline const struct hfi_merge_head *claim_sim_head(const struct claim_sim *sim, const struct hfi_round *round, size_t at,
                                                          struct hfi_merge_head *head) {
    const struct hfi_admitted *lane = &round->admitted[at];
    *head = (struct hfi_merge_head){round->lanes[at]->top_priority, sim->had[lane->lane], lane->lane,
                                    round->lanes[at]->top_priority};
    return lane->claimed < sim->has[lane->lane] ? head : NULL;
}

/* Admits a round, answers it and has it booked. */
static inline void claim_sim_round(struct claim_sim *sim, struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall,
                                   uint32_t max, int64_t hold_us) {
    struct hfi_round *round = &lanes->round;
    struct hfi_merge merge;
    struct hfi_merge_turn turn;
    struct hfi_merge_head head;
    sim->count = sim->total = 0;
    size_t count = hfi_lanes_admit(lanes, now_us, wall, max);
    if (hfi_merge_begin(&merge, count, max, round->queues, round->queue_count, round->budgets, round->budget_count, 0) != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        hfi_merge_lane(&merge, i, round->admitted[i].queue, round->admitted[i].max);
        for (int draw = 0; draw < HFI_ADMITTED_DRAWS; draw++)
            hfi_merge_draw(&merge, i, round->admitted[i].draws[draw]);
    }
    hfi_merge_sort(&merge);
    for (size_t i = 0; i < count; i++) {
        struct hfi_admitted *lane = &round->admitted[i];
        uint32_t room = lane->probe ? hfi_merge_room(&merge, i) : 0;
        if (room == 0)
            continue;
        lane->claimed = room < sim->has[lane->lane] ? room : sim->has[lane->lane];
        sim->had[lane->lane] += lane->claimed;
        hfi_merge_apart(&merge, i, lane->claimed);
    }
    int32_t reached = INT32_MIN;
    while (hfi_merge_next(&merge, &turn)) {
        if (turn.look) {
            hfi_merge_found(&merge, turn.lane, claim_sim_head(sim, round, turn.lane, &head));
            continue;
        }
        sim->inverted += round->lanes[turn.lane]->queue->order < reached;
        reached = round->lanes[turn.lane]->queue->order;
        round->admitted[turn.lane].claimed++;
        sim->had[round->admitted[turn.lane].lane]++;
        hfi_merge_took(&merge, turn.lane, 1, claim_sim_head(sim, round, turn.lane, &head));
    }
    hfi_merge_turns(&merge, round->queues, round->queue_count);
    hfi_merge_end(&merge);
    for (size_t i = 0; i < count; i++) {
        struct hfi_admitted *lane = &round->admitted[i];
        lane->more = lane->claimed < sim->has[lane->lane];
        round->lanes[i]->next_due_us = sim->had[lane->lane];
        sim->total += lane->claimed;
        if (lane->claimed == 0)
            continue;
        sim->claimed[sim->count] = *lane;
        sim->claimed[sim->count++].max = lane->claimed;
    }
    hfi_lanes_claimed(lanes, now_us, hold_us);
}

#endif
