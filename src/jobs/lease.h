/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_LEASE_H
#define HFI_JOBS_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Leases by node beat, decided on the observer's own monotonic clock: an owner lapses when its beat was seen unchanged
 * for a whole lease while the store answered; any gap in watching (suspend, store error) starts the count again. No
 * wall clock decides a lapse. Pure.
 */
struct hfi_lease_watch {
    int64_t node;
    int64_t beat;           /* last seen */
    struct hf_mono since;   /* when this beat was first seen, after the last gap */
    struct hf_mono seen;    /* last look */
};
void hfi_lease_first(struct hfi_lease_watch *watch, int64_t node, int64_t beat, struct hf_mono now);
/* A look at the node's beat; true: the lease has lapsed. `max_gap_ms`: a longer pause between looks is a gap. */
bool hfi_lease_look(struct hfi_lease_watch *watch, int64_t beat, struct hf_mono now, int64_t lease_ms, int64_t max_gap_ms);
/* When an owner must stop its handlers itself: lease − kill grace after the last committed beat (I2). */
struct hf_mono hfi_lease_self_stop(struct hf_mono last_commit, int64_t lease_ms, int64_t grace_ms);

#endif
