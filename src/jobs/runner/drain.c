/* SPDX-License-Identifier: MIT */
/*
 * The end of a node: no more claims, running jobs get their time, then the kinds are told to stop, then at once, then
 * what still runs is left to its lease and the exit says so [S3.4]. A job is given back only after its handler has
 * ended. Every step has a bound (I26); beats go on until the last job is stored (I16). Loop thread.
 */
#include "base/log.h"
#include "jobs/runner/runner_state.h"

#define STOP_MS 2000  /* for handlers that were told; a supervisor kills 5 s after the drain timeout */
#define HURRY_MS 2000

static void hurry(struct hfi_runner *runner) {
    hfi_runner_move(runner, HFI_LIFE_HURRYING);
    if (runner->alerts != NULL)
        hfi_alerts_stop(runner->alerts, true);
    hfi_runner_arm(runner, &runner->life_timer, HURRY_MS);
    hfi_execute_stop_all(runner, HFI_STOP_DRAIN, true);
}

void hfi_drain_begin(struct hfi_runner *runner) {
    runner->stop_asked = true;
    switch (runner->life) {
    case HFI_LIFE_RUNNING:
        hfi_runner_move(runner, HFI_LIFE_DRAINING);
        hfi_log(HF_LOG_INFO, "node.drain", HFI_I("node", runner->node), HFI_I("running", runner->running), NULL);
        hfi_claim_stop(runner);
        hfi_ahead_return(runner);
        hfi_probe_stop(runner);
        hfi_upkeep_stop(runner);
        hfi_runner_arm(runner, &runner->life_timer, runner->options->drain_timeout_ms);
        if (runner->alerts != NULL)
            hfi_alerts_stop(runner->alerts, false);
        break;
    case HFI_LIFE_DRAINING:
    case HFI_LIFE_STOPPING:
        hfi_log(HF_LOG_INFO, "node.hurry", HFI_I("node", runner->node), HFI_I("running", runner->running), NULL);
        hurry(runner);
        break;
    default:
        return;
    }
    hfi_drain_check(runner);
}

static void leave_to_lease(struct hfi_runner *runner) {
    for (struct hf_work *work = runner->first; work != NULL; work = work->next) {
        hfi_log(HF_LOG_ERROR, "job.left", HFI_I("job", work->job->id), HFI_S("type", work->job->type),
                HFI_S("why", "its handler did not return"), NULL);
        runner->abandoned = runner->jobs_left = true;
        runner->code = 1;
    }
    hfi_execute_let_go(runner);
    hfi_ahead_let_go(runner);
    runner->past_bound = true;
}

void hfi_drain_step(struct hfi_runner *runner) {
    switch (runner->life) {
    case HFI_LIFE_DRAINING:
        hfi_runner_move(runner, HFI_LIFE_STOPPING);
        if (runner->alerts != NULL)
            hfi_alerts_stop(runner->alerts, true);
        hfi_runner_arm(runner, &runner->life_timer, STOP_MS);
        hfi_execute_stop_all(runner, HFI_STOP_DRAIN, false);
        break;
    case HFI_LIFE_STOPPING:
        hurry(runner);
        break;
    case HFI_LIFE_HURRYING:
        leave_to_lease(runner);
        hfi_runner_arm(runner, &runner->life_timer, HURRY_MS); /* outcomes that the writer had come back refused */
        break;
    default:
        return;
    }
    hfi_drain_check(runner);
}

void hfi_drain_check(struct hfi_runner *runner) {
    if (runner->life < HFI_LIFE_DRAINING || runner->life > HFI_LIFE_HURRYING)
        return;
    if (!runner->past_bound && runner->running > 0)
        return;
    if (runner->writing > 0 || runner->ahead.count > 0)
        return;
    hfi_beat_stop(runner);
    hfi_measurer_last(runner);
    if (runner->out > 0 || runner->claiming || runner->round_out || hfi_desk_keeps(&runner->desk))
        return; /* the writer has something of ours */
    if (runner->alerts != NULL && !hfi_alerts_stopped(runner->alerts))
        return;
    hfi_runner_disarm(runner, &runner->life_timer);
    hfi_runner_leave(runner);
}

static bool unknown_waits(const struct hfi_runner *runner) {
    if (!hfi_upkeep_alone(runner))
        return false; /* it is for the nodes that know them */
    for (size_t i = 0; i < runner->lanes.count; i++) {
        const struct hfi_lane *lane = runner->lanes.lanes[i];
        if (lane->type == NULL && lane->due && !lane->paused && lane->queue->wanted)
            return true;
    }
    return false;
}

void hfi_drain_idle(struct hfi_runner *runner) {
    if (!runner->options->until_idle || runner->life != HFI_LIFE_RUNNING || !runner->fresh || runner->again)
        return;
    if (runner->running > 0 || runner->writing > 0 || runner->ahead.count > 0 || runner->round_out || runner->lost)
        return;
    if (runner->next_due_us <= hfi_runner_wall(runner).us || hfi_lanes_any_due(&runner->lanes) || unknown_waits(runner))
        return;
    if (runner->parts.busy != NULL && runner->parts.busy(runner->parts.busy_user))
        return;
    if (!hfi_upkeep_idle(runner) || (runner->alerts != NULL && !hfi_alerts_idle(runner->alerts)))
        return;
    hfi_drain_begin(runner);
}
