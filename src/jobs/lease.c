/* SPDX-License-Identifier: MIT */
/*
 * Decides when a lease has lapsed and when its holder must stop by itself. Must never see a wall clock: only the
 * watcher's own monotonic time between two looks counts. Pure. Any thread.
 */
#include "jobs/lease.h"

void hfi_lease_first(struct hfi_lease_watch *watch, int64_t node, int64_t beat, struct hf_mono now) {
    watch->node = node;
    watch->beat = beat;
    watch->since = now;
    watch->seen = now;
}

bool hfi_lease_look(struct hfi_lease_watch *watch, int64_t beat, struct hf_mono now, int64_t lease_ms,
                    int64_t max_gap_ms) {
    /* In a gap (a suspend, a store that did not answer) the owner may have been unable to beat as well. */
    bool gap = hfi_sub(now.us, watch->seen.us) > hfi_ms_to_us(max_gap_ms) || now.us < watch->seen.us;
    if (gap || beat != watch->beat) {
        hfi_lease_first(watch, watch->node, beat, now);
        return false;
    }
    watch->seen = now;
    return hfi_sub(now.us, watch->since.us) >= hfi_ms_to_us(lease_ms);
}

struct hf_mono hfi_lease_self_stop(struct hf_mono last_commit, int64_t lease_ms, int64_t grace_ms) {
    int64_t left = hfi_sub(lease_ms, grace_ms > 0 ? grace_ms : 0);
    return hfi_mono_after_ms(last_commit, left > 0 ? left : 0);
}
