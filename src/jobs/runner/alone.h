/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_ALONE_H
#define HFI_JOBS_ALONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * A job that has crashed twice beside others is started alone: nothing that runs code begins beside it, and if it can be
 * had nothing runs already. While one is due the others are kept back until those that run have ended, for a minute at
 * most: then it is started beside what still runs, which is not called alone, or has to try again later if it finds no
 * slot. After that the others have their turn for as long as they were kept back. One that does not end keeps them back
 * for ten minutes and no longer; other suspects wait until it has ended. Isolated jobs are not concerned: they run no
 * code in the node. Part of hfi_lanes; no clock, no I/O; the runner's loop thread.
 */
#define HFI_ALONE_WAIT_MS 60000
#define HFI_ALONE_RUN_MS 600000

struct hfi_alone {
    uint32_t used;         /* jobs that run code, reserved or running, and abandoned ones that still do */
    uint32_t suspects;     /* of these: of a lane of suspects */
    int64_t since_us;      /* the others have been kept back since; 0: they are not */
    int64_t runs_since_us; /* a suspect has run since, as the rounds saw it; 0: none does */
    int64_t rest_until_us; /* the turn of the others */
    bool started;          /* a suspect was, since then */
    bool tried;            /* the wait was over, and one might have been started */
    bool keeps;            /* in this round: the others get nothing */
    bool admits;           /* in this round: one suspect may be had */
};

struct hfi_lane;
struct hfi_lanes;
bool hfi_alone_suspects(const struct hfi_lane *lane); /* is it of jobs that are started alone? */
void hfi_alone_round(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall); /* before each round; now_us monotonic */
/* May the lane have a job as far as this goes? */
bool hfi_alone_lets(const struct hfi_alone *alone, const struct hfi_lane *lane);
/* It would be the only one that runs code. */
bool hfi_alone_is(const struct hfi_alone *alone, const struct hfi_lane *lane);
void hfi_alone_take(struct hfi_alone *alone, const struct hfi_lane *lane);
void hfi_alone_give(struct hfi_alone *alone, const struct hfi_lane *lane);

#endif
