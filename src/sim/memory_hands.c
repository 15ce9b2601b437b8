/* SPDX-License-Identifier: MIT */
/*
 * Writes of owners, fenced, and what other hands do to jobs in the memory store: lapse, expire, quarantine, cancel.
 * Must never let a write pass whose epoch is not the row's. Under the store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "jobs/hands.h"
#include "sim/memory_state.h"

/* The fence missed [I8, I46, I50]; a death that this write made before is answered once more. */
static int miss(struct hfi_memory *store, struct hfi_op_apply *op, const struct hfi_memory_job *row) {
    int code = hfi_transition(op->job, &op->event, &op->rules, &op->change);
    if (code != 0)
        return code == HF_ESTATE ? HF_ESTATE : HF_ESTALE;
    if (!row || op->job->state != HF_JOB_RUNNING || !hfi_death_was_made(&op->change, row->job))
        return HF_ESTALE;
    const struct hfi_memory_dead *dead = hfi_memory_last_death(store, row->job);
    op->dead_id = dead ? dead->id : 0;
    op->existed = false;
    return dead ? 0 : HF_ESTALE;
}

int hfi_memory_apply(struct hfi_memory *store, struct hfi_op_apply *op) {
    struct hfi_memory_job *row = hfi_memory_find(store, op->job->id);
    struct hfi_staged staged;
    if (!row || row->job->state != HF_JOB_RUNNING || row->job->epoch != op->job->epoch ||
        op->job->state != HF_JOB_RUNNING)
        return miss(store, op, row);
    if (op->event.kind == HFI_EVENT_STARTED && hfi_memory_pause_of(store, row->lane->queue, op->event.now))
        return HF_ESTATE;
    struct hfi_job job = *op->job;
    const char *asked_by = row->job->cancel_by, *asked_why = row->job->cancel_reason;
    job.cancel_requested_at_us = row->job->cancel_requested_at_us; /* others write these while it runs */
    job.cancel_by = asked_by;
    job.cancel_reason = asked_why;
    job.progress = row->job->progress; /* NOTE writes these */
    job.progress_text = row->job->progress_text;
    job.checkpoint = row->job->checkpoint;
    job.checkpoint_length = row->job->checkpoint_length;
    int code = hfi_memory_stage(store, row, &job, &op->event, &op->rules, &op->change, &staged);
    if (code == 0)
        code = hfi_memory_stage_alerts(store, &op->change, op->sinks, op->sink_count, &staged);
    if (code == 0)
        code = hfi_memory_stage_forwards(store, &op->change, op->rules.forwards, &staged);
    if (code != 0)
        return code;
    if (op->change.job.cancel_by == asked_by)
        op->change.job.cancel_by = op->change.job.cancel_reason = ""; /* go with the old record */
    op->change.job.progress_text = "";
    op->change.job.checkpoint = NULL;
    op->change.job.checkpoint_length = 0;
    op->existed = staged.dead && hfi_memory_same_death(store, staged.dead);
    op->dead_id = hfi_memory_link(store, &staged);
    return 0;
}

int hfi_memory_note(struct hfi_memory *store, struct hfi_op_note *op) {
    struct hfi_memory_job *row = hfi_memory_find(store, op->id);
    if (!row || row->job->state != HF_JOB_RUNNING || row->job->epoch != op->epoch)
        return HF_ESTALE;
    struct hfi_job noted = *row->job;
    if (op->set & HFI_NOTE_PROGRESS) {
        noted.progress = op->progress;
        noted.progress_text = op->text;
    }
    if (op->set & HFI_NOTE_CHECKPOINT) {
        noted.checkpoint = op->checkpoint;
        noted.checkpoint_length = op->length;
    }
    struct hfi_job *next = hfi_job_copy(&noted);
    if (!next)
        return HF_ENOMEM;
    hfi_memory_replace(store, row, next);
    return 0;
}

/* One job changed by another hand; `note` is filled when it died. */
static int change_row(struct hfi_memory *store, struct hfi_memory_job *row, const struct hfi_hand *hand,
                      const struct hfi_rulebook *book, struct hfi_dead_note *note, bool *died) {
    struct hfi_change change;
    struct hfi_staged staged;
    const char *const *sinks = NULL;
    size_t sink_count = book ? hfi_rulebook_sinks(book, &sinks) : 0;
    int code = hfi_memory_stage(store, row, row->job, &hand->event, &hand->rules, &change, &staged);
    if (code == 0)
        code = hfi_memory_stage_alerts(store, &change, sinks, sink_count, &staged);
    if (code == 0)
        code = hfi_memory_stage_forwards(store, &change, hand->rules.forwards, &staged);
    if (code != 0)
        return code;
    *died = change.has_death && !hfi_memory_same_death(store, staged.dead);
    if (*died && note)
        hfi_dead_note_fill(note, 0, &change);
    int64_t dead_id = hfi_memory_link(store, &staged);
    if (*died && note)
        note->dead_id = dead_id;
    return 0;
}

static int no_notes(struct hfi_dead_note **notes, size_t *count, uint32_t limit) {
    *count = 0;
    *notes = hfi_alloc_array(limit, sizeof **notes);
    return *notes ? 0 : HF_ENOMEM;
}

int hfi_memory_sweep(struct hfi_memory *store, struct hfi_op_sweep *op) {
    struct hfi_memory_node *node = hfi_memory_node(store, op->owner);
    op->lapsed = 0;
    op->finished = false;
    op->notes = NULL;
    op->note_count = 0;
    op->lives = op->only == 0 && node && !node->gone && node->beat != op->beat;
    if (op->lives)
        return 0;
    int code = no_notes(&op->notes, &op->note_count, op->limit);
    for (size_t i = 0; i < store->jobs.count && code == 0 && op->lapsed < op->limit; i++) {
        struct hfi_memory_job *row = store->jobs.items[i];
        struct hfi_hand hand;
        bool died = false;
        if (row->job->id <= op->after_id || row->job->state != HF_JOB_RUNNING || row->job->owner != op->owner)
            continue;
        if (op->only != 0 && (row->job->id != op->only || row->job->epoch != op->epoch))
            continue;
        hfi_hand_lapse(&hand, op);
        hfi_hand_rules(&hand, op->book, row->job);
        code = change_row(store, row, &hand, op->book, &op->notes[op->note_count], &died);
        if (code != 0)
            break;
        op->after_id = row->job->id;
        op->lapsed++;
        op->note_count += died;
    }
    if (code != 0 && op->lapsed == 0) {
        hfi_free(op->notes);
        op->notes = NULL;
        return code;
    }
    op->finished = code == 0 && op->only == 0 && !hfi_memory_owns_some(store, op->owner);
    if (op->finished && node && !node->gone)
        hfi_memory_node_gone(store, node);
    return 0; /* what was lapsed stays lapsed: after_id says where to go on */
}

int hfi_memory_expire(struct hfi_memory *store, struct hfi_op_expire *op) {
    int code = 0;
    op->ended = 0;
    for (size_t i = 0; store->expiring > 0 && i < store->jobs.count && code == 0 && op->ended < op->limit; i++) {
        struct hfi_memory_job *row = store->jobs.items[i];
        struct hfi_hand hand;
        bool died = false;
        bool waits = row->job->state == HF_JOB_PENDING || row->job->state == HF_JOB_WAITING;
        if (!waits || row->job->expires_at_us == 0 || row->job->expires_at_us > op->now.us)
            continue;
        hfi_hand_expire(&hand, op);
        code = change_row(store, row, &hand, NULL, NULL, &died);
        op->ended += code == 0;
    }
    return op->ended > 0 ? 0 : code;
}

static bool type_is_had(struct hfi_memory *store, const char *type, int64_t but_by) {
    for (size_t i = 0; i < store->nodes.count; i++) {
        const struct hfi_memory_node *node = store->nodes.items[i];
        for (size_t t = 0; !node->gone && node->id != but_by && t < node->type_count; t++)
            if (strcmp(node->types[t], type) == 0)
                return true;
    }
    return false;
}

int hfi_memory_quarantine(struct hfi_memory *store, struct hfi_op_quarantine *op) {
    bool known = op->lane > 0 && (size_t)op->lane <= store->lanes.count;
    struct hfi_memory_lane *lane = known ? store->lanes.items[op->lane - 1] : NULL;
    int code = no_notes(&op->notes, &op->note_count, op->limit);
    op->ended = 0;
    if (code != 0 || !lane || type_is_had(store, lane->type, op->node))
        return code;
    while (code == 0 && op->ended < op->limit) {
        struct hfi_memory_job *row = hfi_memory_next_due(lane, op->now.us);
        struct hfi_hand hand;
        bool died = false;
        if (!row)
            break;
        hfi_hand_quarantine(&hand, op);
        hfi_hand_rules(&hand, op->book, row->job);
        code = change_row(store, row, &hand, op->book, &op->notes[op->note_count], &died);
        op->ended += code == 0;
        op->note_count += code == 0 && died;
    }
    if (code == 0 || op->ended > 0)
        return 0;
    hfi_free(op->notes);
    op->notes = NULL;
    return code;
}

int hfi_memory_cancel(struct hfi_memory *store, struct hfi_op_cancel *op) {
    struct hfi_memory_job *row = hfi_memory_find(store, op->id);
    struct hfi_hand hand;
    bool died = false;
    op->requested = false;
    if (!row)
        return HF_ENOENT;
    hfi_hand_cancel(&hand, op, row->job);
    op->requested = hand.event.kind == HFI_EVENT_CANCEL_ASKED; /* its node hears of it at its next beat */
    return change_row(store, row, &hand, NULL, NULL, &died);
}
