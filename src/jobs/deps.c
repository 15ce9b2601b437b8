/* SPDX-License-Identifier: MIT */
/*
 * Decides what the ends of its parents mean for a job that waits. Must never free a child while one of them may still
 * end otherwise, nor leave one waiting when none is left to wait for. Pure; any thread.
 */
#include "jobs/deps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool hfi_state_ended(int state) {
    return state >= HF_JOB_SUCCEEDED && state <= HF_JOB_CANCELLED;
}

/* It will not end as the child needs it. */
static bool has_failed(const struct hfi_parent *parent) {
    bool ended = hfi_state_ended(parent->state) || parent->state == HFI_PARENT_FORGOTTEN;
    return !parent->on_end && ended && parent->state != HF_JOB_SUCCEEDED;
}

/* States of a newer program are not known to have ended. */
static bool is_open(const struct hfi_parent *parent) {
    return !hfi_state_ended(parent->state) && parent->state != HFI_PARENT_FORGOTTEN;
}

static void word(struct hfi_hand *hand, enum hfi_event_kind kind, struct hf_wall now, const struct hfi_parent *failed) {
    memset(hand, 0, sizeof *hand);
    hand->event.kind = kind;
    hand->event.now = now;
    if (!failed)
        return;
    snprintf(hand->text, sizeof hand->text, "it waited for job %" PRId64 ", which is %s", failed->id,
             failed->state == HFI_PARENT_FORGOTTEN ? "gone" : hf_job_state_name(failed->state));
    hand->event.message = hand->text;
}

bool hfi_deps_judge(const struct hfi_job *child, const struct hfi_parent *parents, size_t count, struct hf_wall now,
                    struct hfi_hand *hand) {
    const struct hfi_parent *failed = NULL;
    bool open = false;
    for (size_t i = 0; i < count; i++) {
        if (!failed && has_failed(&parents[i]))
            failed = &parents[i];
        open = open || is_open(&parents[i]);
    }
    if (child->state == HF_JOB_WAITING && failed)
        word(hand, HFI_EVENT_PARENT_DEAD, now, failed);
    else if (child->state == HF_JOB_WAITING && !open)
        word(hand, HFI_EVENT_RELEASED, now, NULL);
    else if (hfi_cancelled_by_parent(child) && !failed)
        word(hand, HFI_EVENT_REVIVED, now, NULL);
    else
        return false;
    return true;
}
