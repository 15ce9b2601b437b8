/* SPDX-License-Identifier: MIT */
/*
 * Progress and checkpoints of handlers on their way to the store: several of progress in a row become one write, the last
 * one goes before the end of its execution; and what became of checkpoints. Must never write for an execution whose end went before it. Loop thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "jobs/runner/runner_state.h"

#define SPACING_MS 200 /* between two writes of one execution */

struct note {
    struct hfi_op_note op; /* first */
    struct hfi_execution *execution;
    char text[HF_PROGRESS_TEXT_MAX + 1];
};

static void written(struct hfi_op *op, void *user) {
    struct note *note = user;
    struct hfi_execution *execution = note->execution;
    execution->runner->out--;
    execution->notes_out--;
    if (op->code == HF_ESTALE)
        hfi_log(HF_LOG_WARNING, "job.stale", HFI_I("job", note->op.id), HFI_I("epoch", note->op.epoch),
                HFI_S("why", "progress"), NULL);
    else if (op->code != 0)
        hfi_log(HF_LOG_WARNING, "job.progress_lost", HFI_I("job", note->op.id), HFI_S("why", hf_strerror(op->code)), NULL);
    hfi_free(note);
    if (execution->over)
        hfi_execute_over(execution);
}

static void space(struct hfi_execution *execution) {
    execution->note_waits = true;
    hfi_runner_arm(execution->runner, &execution->note_timer, SPACING_MS);
}

static void put(struct hfi_execution *execution) {
    struct hf_work *work = &execution->work;
    struct hfi_runner *runner = execution->runner;
    struct note *note = hfi_alloc(sizeof *note);
    if (note == NULL) {
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "progress"), HFI_I("job", work->job->id), NULL);
        space(execution); /* again then: it is still new */
        return;
    }
    if (!hfi_work_take_progress(work, &note->op.progress, note->text)) {
        hfi_free(note);
        return;
    }
    note->execution = execution;
    note->op.id = work->job->id;
    note->op.epoch = work->job->epoch;
    note->op.set = HFI_NOTE_PROGRESS;
    note->op.text = note->text;
    execution->notes_out++;
    hfi_runner_submit(runner, &note->op.op, HFI_OP_NOTE, written, note);
    space(execution);
}

static void spaced(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_execution *execution = user;
    execution->note_waits = false;
    put(execution);
}

static void said(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_execution *execution = user;
    hfi_work_progress_came(&execution->work);
    if (execution->abandoned || execution->note_waits)
        return; /* the timer takes it */
    put(execution);
}

/* ------------------------------------------------------------------ checkpoints that nobody waits for */

static void kept(struct hfi_op *op, void *user) {
    struct hfi_checkpoint *checkpoint = user;
    struct hfi_execution *execution = checkpoint->work->runner_state;
    struct hfi_runner *runner = execution->runner;
    if (op->code == HF_ESTALE)
        hfi_log(HF_LOG_WARNING, "job.stale", HFI_I("job", checkpoint->op.id), HFI_I("epoch", checkpoint->op.epoch),
                HFI_S("why", "checkpoint"), NULL);
    hfi_work_checkpoint_came(checkpoint);
    if (execution->over)
        hfi_execute_over(execution);
    hfi_runner_kept(runner);
}

void hfi_notes_init(struct hfi_execution *execution) {
    struct hf_work *work = &execution->work;
    work->desk = &execution->runner->desk;
    work->progress_task.run = said;
    work->progress_task.user = execution;
    work->kept = kept;
    hfi_timer_init(&execution->note_timer, spaced, execution);
}

void hfi_notes_flush(struct hfi_execution *execution) {
    if (execution->note_waits)
        hfi_runner_disarm(execution->runner, &execution->note_timer);
    execution->note_waits = false;
    if (!execution->work.progress_new)
        return; /* read without the lock: its handler has ended, or is not listened to any more */
    put(execution);
    hfi_runner_disarm(execution->runner, &execution->note_timer);
    execution->note_waits = false;
}
