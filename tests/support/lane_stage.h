/* SPDX-License-Identifier: MIT */
/*
 * The books of lanes with queues and job types of a test's own, and rounds of claims on them without a store. cmocka.h
 * comes first.
 */
#ifndef HF_TEST_LANE_STAGE_H
#define HF_TEST_LANE_STAGE_H

#include <string.h>

#include "claim_sim.h"
#include "jobs/runner/lane.h"

struct stage {
    struct hf_runner_options options;
    struct hf_queue_options queues[8];
    struct hfi_type native, noop;
    struct hfi_lanes lanes;
    struct hf_wall wall;
    struct claim_sim sim;
};

static inline void set_queue(struct stage *stage, size_t at, const char *name, int32_t order, uint32_t weight,
                      uint32_t concurrency) {
    hf_queue_options_init(&stage->queues[at]);
    stage->queues[at].name = name;
    stage->queues[at].order = order;
    stage->queues[at].weight = weight;
    stage->queues[at].concurrency = concurrency;
    stage->options.queue_options = stage->queues;
    stage->options.queue_count = at + 1;
}

static inline void begin(struct stage *stage, uint32_t workers) {
    memset(stage, 0, sizeof *stage);
    stage->options.size = sizeof stage->options;
    stage->options.workers = workers;
    claim_sim_init(&stage->sim);
    stage->native.options.kind = HF_KIND_NATIVE;
    stage->native.options.name = "native";
    stage->noop.options.kind = HF_KIND_NOOP;
    stage->noop.options.name = "noop";
}

static inline struct hfi_lane *add(struct stage *stage, int64_t id, const char *queue, const struct hfi_type *type,
                            struct hfi_lane_site *site) {
    struct hfi_lane *lane;
    assert_int_equal(hfi_lanes_add(&stage->lanes, id, queue, type, site, &lane), 0);
    lane->due = true;
    return lane;
}

/* A round; what it claims is booked. Each lane has more. */
static inline void admit(struct stage *stage, uint32_t max) {
    claim_sim_round(&stage->sim, &stage->lanes, 0, stage->wall, max, 0);
}

static inline uint32_t granted(const struct stage *stage, int64_t lane) {
    for (size_t i = 0; i < stage->sim.count; i++)
        if (stage->sim.claimed[i].lane == lane)
            return stage->sim.claimed[i].max;
    return 0;
}

#endif
