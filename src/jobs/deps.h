/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEPS_H
#define HFI_JOBS_DEPS_H

#include "jobs/hands.h"

/*
 * Jobs that wait for others. A child is judged by the present state of all its parents, so it does not matter how often
 * or in which order it is looked at: the same parents give the same answer, and a crash between loses nothing. Whenever
 * a job reaches or leaves a final state its children are looked at, in the same transaction, HFI_SETTLE_MAX of them at
 * most; RELEASE does the rest. Pure.
 */
#define HFI_SETTLE_MAX 500

struct hfi_parent {
    int64_t id;
    int32_t state; /* enum hf_job_state; HFI_PARENT_FORGOTTEN: pruned; those that succeeded are taken off their children then */
    bool on_end;
};
#define HFI_PARENT_FORGOTTEN (-1)

/* Succeeded, dead, quarantined or cancelled. */
bool hfi_state_ended(int state);
/* Must the children of a job be looked at after this change of its state? */
static inline bool hfi_deps_matter(int before, int after) {
    return hfi_state_ended(before) != hfi_state_ended(after);
}

/* What is to happen to the child now: RELEASED, PARENT_DEAD or REVIVED in `hand`; false: nothing. After REVIVED ask again. */
bool hfi_deps_judge(const struct hfi_job *child, const struct hfi_parent *parents, size_t count, struct hf_wall now,
                    struct hfi_hand *hand);

#endif
