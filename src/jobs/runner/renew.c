/* SPDX-License-Identifier: MIT */
/*
 * Other types, rules, queues and limits for a node that runs. What began goes on by the book it began with; a type that is
 * gone is claimed no more, one that is new or that changed is in force from the next claim on. Must never change anything
 * under a claim that is out, or under an operation that reads the book. Loop thread.
 */
#include <string.h>

#include "jobs/runner/runner_state.h"

void hfi_renew_look(struct hfi_runner *runner) {
    if (!runner->quiet_wanted || runner->round_out || runner->names_out > 0 || runner->ahead.starting > 0)
        return;
    runner->quiet_wanted = false;
    runner->parts.quiet(runner->parts.user);
}

void hfi_runner_quiet(struct hfi_runner *runner) {
    runner->quiet_wanted = true;
    hfi_renew_look(runner);
}

static uint32_t count_left(const struct hf_work *work, const char *type) {
    uint32_t count = 0;
    for (; work != NULL; work = work->next) {
        const struct hfi_execution *execution = work->runner_state;
        count += execution->abandoned && !execution->returned && strcmp(work->type->options.name, type) == 0;
    }
    return count;
}

/* What its running jobs hold. */
static void look_at(const struct hfi_runner *runner, const struct hfi_lane *lane, const struct hfi_type *type,
                    struct hfi_lane_held *held) {
    memset(held, 0, sizeof *held);
    for (const struct hf_work *work = runner->first; work != NULL; work = work->next) {
        const struct hfi_execution *execution = work->runner_state;
        if (execution->lane != lane)
            continue;
        held->running++;
        held->waiting += !execution->begun;
    }
    if (type == NULL || runner->abandoned_live == 0)
        return;
    held->left = count_left(runner->unwritten, type->options.name) + count_left(runner->left, type->options.name);
}

void hfi_renew_lane(struct hfi_runner *runner, struct hfi_lane *lane, const struct hfi_type *type,
                    struct hfi_lane_site *site) {
    struct hfi_lane_held held;
    if (lane->type == type && lane->site == site)
        return;
    look_at(runner, lane, type, &held);
    hfi_lanes_retype(&runner->lanes, lane, type, site, &held);
}

void hfi_runner_renew(struct hfi_runner *runner, const struct hf_runner_options *options, struct hfi_rulebook *book) {
    struct hfi_rulebook *before = runner->book;
    hfi_ahead_return(runner); /* by the book that they were reserved by */
    runner->book = book;
    hfi_park_reload(runner);
    for (size_t i = 0; i < runner->lanes.count; i++) {
        struct hfi_lane *lane = runner->lanes.lanes[i];
        if (lane->type != NULL)
            hfi_renew_lane(runner, lane, hfi_rulebook_type(book, lane->type->options.name), lane->site);
    }
    hfi_lanes_tune(&runner->lanes, options);
    runner->lanes_known = 0; /* the store tells the types of all lanes again: of those that had none, and their sites */
    runner->retelling = runner->lanes.count > 0;
    runner->many_due = false;
    runner->names_untold = true; /* to the other nodes, with the next beat */
    hfi_rulebook_free(before);
    hfi_readmit_begin(runner);
    if (runner->life == HFI_LIFE_RUNNING)
        hfi_claim_stale(runner);
}
