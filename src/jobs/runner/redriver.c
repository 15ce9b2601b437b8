/* SPDX-License-Identifier: MIT */
/*
 * A node's share in redrive tasks: a step of whichever is due, each round and between rounds while there is more. Needs no
 * lease: a step is one transaction. Must never keep the writer from claims: each step is followed by a rest as long.
 * Loop thread.
 */
#include "base/log.h"
#include "jobs/runner/runner_state.h"

#define REST_LEAST_MS 5
#define ROUND_US INT64_C(1000000) /* what is due later is left to a round of upkeep */

static bool active(const struct hfi_runner *runner) {
    return runner->life == HFI_LIFE_RUNNING && !runner->lost;
}

static void tell(const struct hfi_redrive_task *task, uint32_t redriven) {
    if (redriven > 0)
        hfi_log(HF_LOG_DEBUG, "redrive.step", HFI_I("task", task->id), HFI_I("jobs", redriven), NULL);
    if (task->state == HF_REDRIVE_RUNNING)
        return;
    hfi_log(task->state == HF_REDRIVE_STOPPED ? HF_LOG_WARNING : HF_LOG_INFO, "redrive.ended", HFI_I("task", task->id),
            HFI_S("state", hf_redrive_state_name(task->state)), HFI_I("redriven", task->redriven),
            HFI_I("refused", task->refused), HFI_S("why", task->note), NULL);
}

static void go_on(struct hfi_runner *runner, int64_t took_us) {
    int64_t in_us = hfi_sub(runner->redrive_op.next_due_us, hfi_runner_wall(runner).us), rest = hfi_us_to_ms_up(took_us);
    runner->redrive_wanted = in_us <= 0;
    runner->redrive_open = runner->redrive_op.next_due_us != INT64_MAX;
    if (in_us >= ROUND_US || !active(runner))
        return;
    rest = rest > REST_LEAST_MS ? rest : REST_LEAST_MS;
    hfi_runner_arm(runner, &runner->redrive_timer, hfi_us_to_ms_up(in_us) > rest ? hfi_us_to_ms_up(in_us) : rest);
}

/* Jobs that ended here. */
static uint64_t ends(struct hfi_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    uint64_t ended = runner->counts.succeeded + runner->counts.died + runner->counts.cancelled + runner->counts.quarantined;
    pthread_mutex_unlock(&runner->lock);
    return ended;
}

static void stepped(struct hfi_op *op, void *user);

/* A store in which no task was open is looked at first: an idle node writes nothing. */
static void ask(struct hfi_runner *runner, bool look) {
    struct hfi_op_redrive_step *op = &runner->redrive_op;
    op->id = 0;
    op->look = look;
    op->now = hfi_runner_wall(runner);
    runner->redrive_at = hfi_runner_mono(runner);
    runner->redrive_out = true;
    runner->redrive_ends = ends(runner);
    hfi_runner_submit(runner, &op->op, HFI_OP_REDRIVE_STEP, stepped, runner);
}

static void stepped(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    const struct hfi_op_redrive_step *step = &runner->redrive_op;
    runner->out--;
    runner->redrive_out = false;
    if (op->code == 0 && step->look && step->next_due_us <= hfi_runner_wall(runner).us && active(runner)) {
        ask(runner, false);
        return;
    }
    if (op->code != 0) { /* the next round asks again */
        runner->redrive_wanted = false;
        hfi_log(HF_LOG_WARNING, "upkeep.failed", HFI_S("what", "redrive"), HFI_S("why", hf_strerror(op->code)), NULL);
    } else {
        if (step->found)
            tell(&step->task, step->redriven);
        if (step->redriven > 0 && active(runner))
            hfi_claim_stale(runner);
        go_on(runner, hfi_sub(hfi_runner_mono(runner).us, runner->redrive_at.us));
    }
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

void hfi_redriver_round(struct hfi_runner *runner) {
    if (!runner->redrive_out)
        ask(runner, !runner->redrive_open);
}

static void timer_fired(struct hfi_timer *timer, void *user) {
    struct hfi_runner *runner = user;
    (void)timer;
    if (active(runner))
        hfi_redriver_round(runner);
}

void hfi_redriver_begin(struct hfi_runner *runner) {
    hfi_timer_init(&runner->redrive_timer, timer_fired, runner);
    runner->redrive_wanted = true; /* whatever was begun before */
}

void hfi_redriver_stop(struct hfi_runner *runner) {
    hfi_runner_disarm(runner, &runner->redrive_timer);
}

bool hfi_redriver_idle(struct hfi_runner *runner) {
    if (!runner->redrive_out && runner->redrive_open && runner->redrive_ends != ends(runner))
        hfi_redriver_round(runner); /* a task may have waited for those */
    return !runner->redrive_out && !runner->redrive_wanted;
}
