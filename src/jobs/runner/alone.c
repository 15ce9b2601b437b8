/* SPDX-License-Identifier: MIT */
/*
 * When a suspect may be started, and who has to wait for it. Must never let two suspects run at once, nor keep anybody
 * back for longer than the wait without a turn of as long. The runner's loop thread.
 */
#include "jobs/runner/alone.h"

#include "base/clock.h"
#include "jobs/runner/lane_limits.h"

bool hfi_alone_suspects(const struct hfi_lane *lane) {
    return lane->alone && lane->runs_code;
}

/* Is one due that could be had here and now if nothing that runs code ran? Others may hold the slots of its queue for as
 * long as they like: nobody begins to wait for that. Slots that go later, while the others wait, change nothing. */
static bool any_due(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall) {
    for (size_t i = 0; i < lanes->count; i++) {
        const struct hfi_lane *lane = lanes->lanes[i];
        if (hfi_alone_suspects(lane) && lane->queue->wanted && hfi_lane_open(lane, now_us) &&
            (lanes->alone.since_us != 0 || hfi_lane_has_slot(lanes, lane)) &&
            (lane->site == NULL || lane->site->free > 0) && hfi_lane_has_place(lanes, lane, wall))
            return true;
    }
    return false;
}

/* The others go on, and cannot be kept back again before they had as long. */
static void let_go(struct hfi_alone *alone, int64_t now_us) {
    if (alone->since_us != 0)
        alone->rest_until_us = hfi_add(now_us, hfi_sub(now_us, alone->since_us));
    alone->since_us = 0;
    alone->started = alone->tried = false;
}

/* While a suspect runs the others wait for its end, but not for ever. */
static bool keeps_beside(struct hfi_alone *alone, int64_t now_us) {
    if (alone->suspects == 0) {
        alone->runs_since_us = 0;
        return false;
    }
    if (alone->runs_since_us == 0)
        alone->runs_since_us = now_us > 0 ? now_us : 1;
    if (hfi_sub(now_us, alone->runs_since_us) < hfi_ms_to_us(HFI_ALONE_RUN_MS))
        return true;
    let_go(alone, now_us);
    return false;
}

void hfi_alone_round(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall) {
    struct hfi_alone *alone = &lanes->alone;
    alone->admits = false;
    alone->keeps = keeps_beside(alone, now_us);
    if (alone->suspects > 0)
        return;
    if (!any_due(lanes, now_us, wall)) {
        let_go(alone, now_us);
        return;
    }
    if (now_us < alone->rest_until_us)
        return;
    if (alone->since_us == 0)
        alone->since_us = now_us > 0 ? now_us : 1;
    bool waited = hfi_sub(now_us, alone->since_us) >= hfi_ms_to_us(HFI_ALONE_WAIT_MS);
    if (waited && (alone->started || alone->tried)) { /* one after the other, or none to be had, but not for ever */
        let_go(alone, now_us);
        return;
    }
    alone->keeps = true;
    alone->admits = waited || alone->used == 0;
    alone->tried = waited;
}

bool hfi_alone_lets(const struct hfi_alone *alone, const struct hfi_lane *lane) {
    if (!lane->runs_code)
        return true;
    return hfi_alone_suspects(lane) ? alone->admits && alone->suspects == 0 : !alone->keeps;
}

bool hfi_alone_is(const struct hfi_alone *alone, const struct hfi_lane *lane) {
    return hfi_alone_suspects(lane) && alone->used == 0;
}

void hfi_alone_take(struct hfi_alone *alone, const struct hfi_lane *lane) {
    alone->used += lane->runs_code;
    if (!hfi_alone_suspects(lane))
        return;
    alone->suspects++;
    alone->started = true;
}

void hfi_alone_give(struct hfi_alone *alone, const struct hfi_lane *lane) {
    alone->used -= lane->runs_code;
    alone->suspects -= hfi_alone_suspects(lane);
}
