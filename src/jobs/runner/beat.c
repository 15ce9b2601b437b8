/* SPDX-License-Identifier: MIT */
/*
 * Beats: tells the other nodes that this one lives, hears what is its own by the rows, and stops the node's own executions in
 * good time when no beat gets stored (I2), before another node may take them. Goes on until the last job of a drain has
 * ended (I16). Loop thread.
 */
#include "base/log.h"
#include "jobs/runner/runner_state.h"

#define KILL_GRACE_MS 5000

static int64_t grace_ms(const struct hfi_runner *runner) {
    int64_t sixth = runner->options->lease_ms / 6;
    return sixth < KILL_GRACE_MS ? sixth : KILL_GRACE_MS;
}

static struct hf_mono self_stop_at(const struct hfi_runner *runner) {
    return hfi_lease_self_stop(runner->beat_stored, runner->options->lease_ms, grace_ms(runner));
}

bool hfi_beat_is_late(const struct hfi_runner *runner) {
    return hfi_runner_mono(runner).us >= self_stop_at(runner).us;
}

static void arm_self_stop(struct hfi_runner *runner) {
    struct hf_mono at = self_stop_at(runner);
    if (runner->scheduler->ops->arm(runner->scheduler, &runner->self_stop_timer, at) != 0)
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "the self-stop"), NULL);
}

static void self_stop(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_runner *runner = user;
    bool hurry = runner->lost; /* the second time: half the grace is over */
    if (!hurry)
        hfi_log(HF_LOG_ERROR, "node.lease_lost", HFI_I("node", runner->node), HFI_I("running", runner->running), NULL);
    runner->lost = true;
    hfi_ahead_return(runner);
    hfi_execute_stop_all(runner, HFI_STOP_LOST, hurry);
    if (!hurry)
        hfi_runner_arm(runner, &runner->self_stop_timer, grace_ms(runner) / 2);
}

/* Others took our jobs: what still runs must not go on, and we begin again under a new id. */
static void row_gone(struct hfi_runner *runner) {
    hfi_log(HF_LOG_ERROR, "node.taken_for_dead", HFI_I("node", runner->node), HFI_I("running", runner->running), NULL);
    runner->lost = true;
    hfi_ahead_return(runner);
    hfi_execute_stop_all(runner, HFI_STOP_LOST, true);
    hfi_beat_stop(runner);
    hfi_runner_join(runner);
}

static void beat_done(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    struct hfi_op_beat *beat = &runner->beat_op;
    runner->out--;
    runner->beat_out = false;
    runner->names_out -= beat->types != NULL;
    if (op->code != 0) {
        runner->names_untold = runner->names_untold || beat->types != NULL;
        hfi_log(HF_LOG_WARNING, "node.beat_failed", HFI_I("node", runner->node), HFI_S("why", hf_strerror(op->code)),
                NULL);
        if (runner->beating) { /* sooner than the next regular one */
            int64_t soon = runner->options->heartbeat_ms < 1000 ? runner->options->heartbeat_ms : 1000;
            hfi_runner_arm(runner, &runner->beat_timer, soon);
        }
    } else if (!beat->known && runner->beating) {
        row_gone(runner);
    } else {
        runner->beat_stored = runner->beat_sent;
        if (runner->lost)
            hfi_log(HF_LOG_INFO, "node.lease_back", HFI_I("node", runner->node), NULL);
        runner->lost = false;
        if (runner->beating)
            arm_self_stop(runner);
        hfi_reconcile(runner, beat->owned, beat->owned_count);
    }
    hfi_renew_look(runner);
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

/* After a change of the book the row gets its types. */
static void tell_names(struct hfi_runner *runner, struct hfi_op_beat *op) {
    op->types = runner->names_untold ? hfi_rulebook_names(runner->book) : NULL;
    op->type_count = hfi_rulebook_type_count(runner->book);
    runner->names_out += op->types != NULL;
    runner->names_untold = false;
}

static void beat_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_runner *runner = user;
    hfi_runner_arm(runner, &runner->beat_timer, runner->options->heartbeat_ms);
    if (runner->beat_out)
        return; /* the writer has not answered the last one */
    struct hfi_op_beat *op = &runner->beat_op;
    op->node = runner->node;
    op->beat = ++runner->beat;
    op->now = hfi_runner_wall(runner);
    op->owned = NULL;
    op->owned_count = 0;
    op->known = false;
    tell_names(runner, op);
    op->op.urgent = true;
    runner->beat_out = true;
    runner->beat_sent = hfi_runner_mono(runner);
    hfi_runner_submit(runner, &op->op, HFI_OP_BEAT, beat_done, runner);
}

void hfi_beat_begin(struct hfi_runner *runner) {
    hfi_timer_init(&runner->beat_timer, beat_fired, runner);
    hfi_timer_init(&runner->self_stop_timer, self_stop, runner);
    runner->beating = true;
    runner->beat_stored = hfi_runner_mono(runner); /* others count from when they first see us: later than this */
    arm_self_stop(runner);
    hfi_runner_arm(runner, &runner->beat_timer, runner->options->heartbeat_ms);
}

void hfi_beat_stop(struct hfi_runner *runner) {
    if (!runner->beating)
        return;
    runner->beating = false;
    hfi_runner_disarm(runner, &runner->beat_timer);
    hfi_runner_disarm(runner, &runner->self_stop_timer);
}
