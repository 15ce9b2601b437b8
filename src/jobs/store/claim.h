/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_CLAIM_H
#define HFI_JOBS_STORE_CLAIM_H

#include "jobs/hands.h"
#include "jobs/merge.h"
#include "jobs/store/internal.h"

#define HFI_PRIORITIES 10

/* A lane in a claim: of each priority that was looked at, the first row that was not claimed. */
struct hfi_claim_lane {
    struct hfi_admitted *admitted;
    const struct hfi_lane_place *place; /* NULL: it has no part in the claim */
    const struct hfi_curve *policy;     /* stored; NULL: none to fix */
    struct {
        int64_t run_at_us, id; /* INT64_MAX: there is none */
        bool due;              /* and it may be claimed */
    } next[HFI_PRIORITIES];
    int below;                 /* lower priorities were not looked at */
    int64_t passed_us;         /* the earliest of those passed over; INT64_MAX none */
    int passed_top;            /* the highest priority among them; -1 */
    bool looked, cut;          /* cut: more of them than are passed over */
    struct hfi_merge_head head;
};

struct hfi_claim {
    struct hfi_sqlite *store;
    struct hfi_op_claim *op;
    struct hfi_claim_lane *lanes;
    struct hfi_merge merge;
    struct hfi_hand reserve, begin;
    struct hfi_change reserved, begun;
};

/* claim_rows.c: rows of one lane. Each 0 or the fault. */
/* Finds its head; looks no further than it must. */
int hfi_claim_look(struct hfi_claim *claim, struct hfi_claim_lane *lane);
/* The head as last found; NULL: there is none. */
const struct hfi_merge_head *hfi_claim_head(const struct hfi_claim *claim, struct hfi_claim_lane *lane);
/* Takes up to `count` in order, as long as each is before `until` (NULL: all are), and finds the next head. */
int hfi_claim_run(struct hfi_claim *claim, struct hfi_claim_lane *lane, uint32_t count, const struct hfi_merge_head *until);
/* Takes up to `count` that suit as probes, or when there are none the first ones. */
int hfi_claim_probes(struct hfi_claim *claim, struct hfi_claim_lane *lane, uint32_t count);

#endif
