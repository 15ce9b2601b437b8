/* SPDX-License-Identifier: MIT */
/*
 * Those who watch: observers hear of a transition after its commit, the retry hook is asked before a retry is written.
 * Must never let an observer change what happened, nor ask the hook twice for one execution. Loop thread.
 */
#include "base/alloc.h"
#include "jobs/failure.h"
#include "jobs/runner/runner_state.h"

static void tell(const struct hfi_runner *runner, const struct hf_transition_view *view) {
    for (const struct hfi_onlooker *one = runner->onlookers; one != NULL; one = one->next)
        one->observer(view, one->user);
}

static bool is_terminal(int32_t state) {
    return state >= HF_JOB_SUCCEEDED && state <= HF_JOB_CANCELLED;
}

void hfi_observe_end(const struct hfi_runner *runner, const struct hfi_execution *execution) {
    const struct hfi_op_apply *op = &execution->apply;
    const struct hfi_change *change = &op->change;
    struct hf_transition_view view = {
        .size = (uint32_t)sizeof view,
        .state = change->job.state,
        .job = op->job->id,
        .type = op->job->type,
        .queue = op->job->queue,
        .correlation_id = op->job->correlation_id,
        .event = hfi_event_name((int)op->event.kind),
        .execution = op->job->executions,
        .terminal = is_terminal(change->job.state),
        .late = op->event.late_ms > 0,
        .error_class = change->history.error_class,
        .error_type = change->has_death ? change->death.error_type : change->history.error_type,
        .message = change->has_death ? change->death.message : change->history.message,
        .rule = change->history.rule,
        .at_us = op->event.now.us,
        .run_at_us = change->history.next_run_at_us,
        .dead_letter = op->dead_id,
    };
    tell(runner, &view);
}

void hfi_observe_death(const struct hfi_runner *runner, const struct hfi_dead_note *note) {
    bool ran = note->executions > 0;
    struct hf_transition_view view = {
        .size = (uint32_t)sizeof view,
        .state = ran ? HF_JOB_DEAD : HF_JOB_QUARANTINED,
        .job = note->job_id,
        .type = note->type,
        .queue = "",
        .correlation_id = note->correlation_id,
        .event = hfi_event_name(ran ? HFI_EVENT_LAPSED : HFI_EVENT_QUARANTINED),
        .execution = note->executions,
        .terminal = true,
        .error_class = "",
        .error_type = note->error_type,
        .message = "",
        .rule = "",
        .at_us = hfi_runner_wall(runner).us,
        .dead_letter = note->dead_id,
    };
    tell(runner, &view);
}

int hfi_runner_observe(struct hfi_runner *runner, hf_transition_fn observer, void *user) {
    struct hfi_onlooker **end = &runner->onlookers, *one = hfi_alloc(sizeof *one);
    if (one == NULL)
        return HF_ENOMEM;
    one->observer = observer;
    one->user = user;
    while (*end != NULL)
        end = &(*end)->next;
    *end = one;
    return 0;
}

void hfi_onlookers_free(struct hfi_runner *runner) {
    while (runner->onlookers != NULL) {
        struct hfi_onlooker *one = runner->onlookers;
        runner->onlookers = one->next;
        hfi_free(one);
    }
}

int hfi_runner_on_retry(struct hfi_runner *runner, hf_retry_fn hook, void *user) {
    if (runner->retry_hook != NULL)
        return HF_EEXIST;
    runner->retry_hook = hook;
    runner->retry_user = user;
    return 0;
}

/* The transition is pure, so what it would do is asked of it; the store's own run fills the change again. */
static void ask(struct hfi_runner *runner, struct hfi_execution *execution) {
    struct hfi_op_apply *op = &execution->apply;
    struct hfi_change *change = &op->change;
    execution->ruling.wait_ms = -1;
    if (op->job->state != HF_JOB_RUNNING || hfi_transition(op->job, &op->event, &op->rules, change) != 0 ||
        change->has_death || change->job.state != HF_JOB_PENDING)
        return;
    struct hf_retry_view view = {
        .size = (uint32_t)sizeof view,
        .execution = op->job->executions,
        .failures = change->job.failures,
        .max_executions = hfi_max_executions(op->job, &op->rules),
        .job = op->job->id,
        .type = op->job->type,
        .queue = op->job->queue,
        .outcome = op->event.outcome,
        .delay_ms = hfi_sub(change->job.run_at_us, op->event.now.us) / 1000,
        .cap_ms = hfi_failure_hook_cap_ms(op->job, &op->rules),
    };
    struct hf_retry_ruling ruling = {.size = (uint32_t)sizeof ruling, .delay_ms = view.delay_ms};
    runner->retry_hook(&view, &ruling, runner->retry_user);
    execution->ruling.permanent = ruling.permanent;
    if (ruling.delay_ms != view.delay_ms)
        execution->ruling.wait_ms = ruling.delay_ms > 0 ? ruling.delay_ms : 0;
}

void hfi_retry_ask(struct hfi_runner *runner, struct hfi_execution *execution) {
    struct hfi_event *event = &execution->apply.event;
    if (event->kind != HFI_EVENT_FAILED)
        return;
    if (!execution->ruled) {
        execution->ruled = true;
        ask(runner, execution);
    }
    event->ruling = &execution->ruling;
}
