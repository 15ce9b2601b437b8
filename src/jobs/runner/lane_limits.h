/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_LANE_LIMITS_H
#define HFI_JOBS_LANE_LIMITS_H

#include <uthash.h>

#include "jobs/runner/lane.h"

/* All keys by the limits that the options of the lanes have now. Out: does any bound what runs in the whole store? */
bool hfi_lane_limits_tune(struct hfi_lanes *lanes);

/* A limit key. */
struct hfi_lane_limit {
    struct hfi_limit limit;  /* all 0: its name is not in the configuration */
    bool known;
    uint32_t used;           /* claimed or running here */
    uint32_t stored, others; /* as of a queue */
    size_t lanes;            /* that have it */
    int64_t full_at_us;      /* of its rate, as of the last claim; wall */
    UT_hash_handle hh;
    char key[];
};

/* What the files of the books ask of each other. */

void hfi_lane_free(struct hfi_lane *lane); /* no books have it any more */
/* Has its limit key a place and a start left, and its queue a place? Notes when a rate allows the next one. */
bool hfi_lane_has_place(struct hfi_lanes *lanes, const struct hfi_lane *lane, struct hf_wall wall);
void hfi_lane_claimed(struct hfi_lane *lane, const struct hfi_admitted *admitted);
void hfi_lane_limit_left(struct hfi_lanes *lanes, struct hfi_lane_limit *limit); /* by a lane that goes; NULL is fine */
void hfi_lane_limits_end(struct hfi_lanes *lanes);

#endif
