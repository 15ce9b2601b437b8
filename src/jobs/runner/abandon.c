/* SPDX-License-Identifier: MIT */
/*
 * Handlers that do not return, or are silent for longer than their type allows: the job is lapsed and goes on by its
 * curve, the slot is free for others, and the handler is waited for no longer. With too many of them alive the node ends,
 * for its supervisor to begin afresh. Must never free what such a handler still holds, nor lapse a job whose handler has
 * ended. Loop thread.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/text.h"
#include "jobs/runner/runner_state.h"

static void silence_fired(struct hfi_timer *timer, void *user) {
    struct hfi_execution *execution = user;
    struct hfi_runner *runner = execution->runner;
    struct hf_work *work = &execution->work;
    int64_t limit_ms = work->type->options.heartbeat_timeout_ms;
    struct hf_mono last = {atomic_load_explicit(&work->beat_us, memory_order_relaxed)};
    if (last.us == HFI_NO_BEAT)
        last = hfi_runner_mono(runner); /* it waits for a thread */
    struct hf_mono lapses = hfi_mono_after_ms(last, limit_ms);
    char text[24], message[80];
    if (lapses.us > hfi_runner_mono(runner).us) {
        if (runner->scheduler->ops->arm(runner->scheduler, timer, lapses) != 0)
            hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "a heartbeat"), NULL);
        return;
    }
    snprintf(message, sizeof message, "no heartbeat of its handler for %s", hfi_duration_print(limit_ms, text));
    if (runner->kinds[hfi_runs_as(work->type)]->ops->abandon == NULL) { /* a process: it is ended for real */
        execution->lapse_type = "heartbeat.lapsed";
        hfi_text_copy(execution->lapse_message, sizeof execution->lapse_message, message);
        HFI_COUNT(runner, silent, 1);
        hfi_execute_stop(work, HFI_STOP_LOST, true);
        return;
    }
    if (hfi_abandon(execution, "heartbeat.lapsed", message))
        HFI_COUNT(runner, silent, 1);
}

void hfi_abandon_watch(struct hfi_execution *execution) {
    hfi_timer_init(&execution->silence, silence_fired, execution);
    hfi_runner_arm(execution->runner, &execution->silence, execution->work.type->options.heartbeat_timeout_ms);
}

static void too_many(struct hfi_runner *runner) {
    uint32_t max = runner->options->max_abandoned > 0 ? runner->options->max_abandoned : runner->options->workers;
    if (runner->abandoned_live < max || runner->life != HFI_LIFE_RUNNING)
        return;
    hfi_log(HF_LOG_ERROR, "node.abandoned", HFI_I("node", runner->node), HFI_I("live", runner->abandoned_live),
            HFI_S("why", "too many handlers do not return; it drains and ends"), NULL);
    runner->code = 1;
    hfi_drain_begin(runner);
}

bool hfi_abandon(struct hfi_execution *execution, const char *type, const char *message) {
    struct hfi_runner *runner = execution->runner;
    struct hf_work *work = &execution->work;
    struct hfi_kind *kind = runner->kinds[hfi_runs_as(work->type)];
    if (!hfi_work_lapse(work))
        return false;
    execution->abandoned = true;
    hfi_log(HF_LOG_ERROR, "job.abandoned", HFI_I("job", work->job->id), HFI_S("type", work->job->type),
            HFI_I("execution", work->job->executions), HFI_S("why", message), NULL);
    execution->lapse_type = type;
    hfi_text_copy(execution->lapse_message, sizeof execution->lapse_message, message);
    hfi_execute_stop(work, HFI_STOP_LOST, true); /* should it listen after all */
    kind->ops->abandon(kind, work);
    runner->abandoned_live++;
    hfi_lanes_left(&runner->lanes, work->type, 1);
    pthread_mutex_lock(&runner->lock);
    runner->counts.abandoned++;
    runner->counts.abandoned_live++;
    pthread_mutex_unlock(&runner->lock);
    hfi_execute_ended(execution);
    if (hfi_work_lapse(work)) /* it did not end as it was told */
        too_many(runner);
    return true;
}

void hfi_abandon_returned(struct hfi_execution *execution) {
    struct hfi_runner *runner = execution->runner;
    struct hf_work *work = &execution->work;
    execution->returned = true;
    runner->abandoned_live--;
    hfi_lanes_left(&runner->lanes, work->type, -1);
    pthread_mutex_lock(&runner->lock);
    runner->counts.abandoned_live--;
    pthread_mutex_unlock(&runner->lock);
    hfi_log(HF_LOG_WARNING, "job.returned", HFI_I("job", work->job->id), HFI_S("type", work->job->type),
            HFI_S("why", "its handler ended after all; nobody waits for it"), NULL);
    if (execution->over) {
        hfi_execute_unlink(&runner->left, work);
        hfi_execute_over(execution);
    }
    if (runner->life == HFI_LIFE_RUNNING)
        hfi_claim_stale(runner); /* its type may be started again */
}
