/* SPDX-License-Identifier: MIT */
/*
 * What is written about an ended execution: its ending and why it was stopped become one event, and after the commit
 * one count and one log line. Must never make a success of anything but a handler's own OK [S0.1]. Loop thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/runner/runner_state.h"
#include "resilience/classify.h"

/* Nobody said how it ended, or with something that does not exist. */
static void unknown_result(struct hf_outcome *outcome) {
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT,
                    "handler.unknown_result", "handler.unknown_result");
    hfi_outcome_message(outcome, "the handler ended without saying how");
    outcome->stage = HF_STAGE_HANDLER;
}

static bool called(const struct hf_work *work) {
    return atomic_load(&work->attempts) > 0 || work->ending.outcome.attempts > 0;
}

static bool reached_a_wire(const struct hf_work *work) {
    return called(work) || atomic_load(&work->may_have_sent);
}

/* on_open: fail gives the plain behaviour: an open breaker is a failure, and the long curve waits it out [S0.30]. */
static bool fails_plainly(const struct hfi_execution *execution) {
    const struct hf_outcome *outcome = &execution->work.ending.outcome;
    if (execution->lane->site == NULL || hfi_park_parks(execution->lane))
        return false;
    return hfi_dotted_prefix("breaker", outcome->error_type) && strcmp(outcome->error_type, "breaker.ramp") != 0;
}

static void by_outcome(struct hfi_execution *execution, struct hfi_event *event) {
    struct hf_outcome *outcome = &execution->work.ending.outcome;
    if (!outcome->touched)
        unknown_result(outcome);
    if (atomic_load(&execution->work.may_have_sent) && outcome->sent == HF_SENT_NO)
        outcome->sent = HF_SENT_MAYBE;
    event->outcome = outcome;
    event->kind = HFI_EVENT_FAILED;
    if (execution->work.ending.causes == 1)
        event->cause = execution->work.ending.cause;
    if (outcome->kind != HF_OUTCOME_REJECTED || reached_a_wire(&execution->work))
        return;
    if (fails_plainly(execution)) {
        outcome->retry_after_ms = -1; /* the curve, not the break, says when */
        return;
    }
    event->kind = HFI_EVENT_REJECTED;
    event->delay_ms = outcome->retry_after_ms;
}

/* Nobody could read its payload, so it never ran [S1.14]; one whose call went out before that did. */
static void unreadable(struct hfi_execution *execution, struct hfi_event *event) {
    by_outcome(execution, event);
    if (called(&execution->work))
        return;
    event->kind = HFI_EVENT_QUARANTINED;
    event->error_type = event->outcome->error_type;
    event->message = event->outcome->message;
}

static void timed_out(struct hfi_execution *execution, struct hfi_event *event) {
    struct hf_outcome *outcome = &execution->work.ending.outcome;
    enum hf_sent sent = atomic_load(&execution->work.may_have_sent) ? HF_SENT_MAYBE : outcome->sent;
    uint32_t attempts = outcome->attempts, retries = outcome->retries;
    enum hf_stage stage = outcome->touched ? outcome->stage : HF_STAGE_HANDLER;
    hfi_outcome_init(outcome);
    hfi_classify_timeout("timeout.execution", sent, stage, outcome);
    outcome->attempts = attempts;
    outcome->retries = retries;
    event->kind = HFI_EVENT_FAILED;
    event->outcome = outcome;
}

/* A success past its limit counts, and is shown as what it is [S2.8]. */
static int64_t late_ms(const struct hfi_execution *execution) {
    if (!execution->timed_out)
        return 0;
    int64_t past = hfi_sub(hfi_runner_mono(execution->runner).us, execution->work.deadline.us) / 1000;
    return past > 0 ? past : 1;
}

static void by_result(struct hfi_execution *execution, struct hfi_event *event) {
    struct hfi_ending *ending = &execution->work.ending;
    switch (ending->result) {
    case HF_RESULT_OK:
        event->kind = HFI_EVENT_SUCCEEDED;
        event->outcome = ending->outcome.touched ? &ending->outcome : NULL;
        event->result = ending->data;
        event->result_length = ending->length;
        event->late_ms = late_ms(execution);
        return;
    case HF_RESULT_SNOOZE:
        event->kind = HFI_EVENT_SNOOZED;
        event->delay_ms = ending->delay_ms;
        if (ending->until_us != 0)
            event->delay_ms = hfi_sub(ending->until_us, event->now.us) / 1000;
        return;
    case HF_RESULT_CANCEL:
        event->kind = HFI_EVENT_CANCELLED;
        event->actor = "handler";
        event->message = ending->text;
        return;
    case HF_RESULT_FAILED:
    case HF_RESULT_PERMANENT:
        by_outcome(execution, event);
        return;
    case HF_RESULT_UNREADABLE:
        unreadable(execution, event);
        return;
    default:
        unknown_result(&ending->outcome);
        by_outcome(execution, event);
    }
}

static bool proves_nothing_sent(const struct hf_outcome *outcome) {
    return outcome->touched && outcome->sent == HF_SENT_NO;
}

/* Stopped for a reason, and the handler did not end with a word of its own that still counts. */
static bool by_stop(struct hfi_execution *execution, struct hfi_event *event) {
    const struct hf_work *work = &execution->work;
    enum hf_result result = work->ending.result;
    bool said = result == HF_RESULT_OK || result == HF_RESULT_SNOOZE || result == HF_RESULT_CANCEL ||
                result == HF_RESULT_UNREADABLE;
    switch ((enum hfi_stop)atomic_load(&work->stop)) {
    case HFI_STOP_LOST: /* written nevertheless: by its epoch the store knows whether somebody else has the job by now */
        if (result == HF_RESULT_OK)
            return false;
        event->kind = HFI_EVENT_LAPSED;
        event->error_type = execution->lapse_type ? execution->lapse_type : "lease.lapsed";
        event->message = execution->lapse_type ? execution->lapse_message
                                               : "the node could not renew its lease and stopped the execution";
        return true;
    case HFI_STOP_CANCEL:
        if (said)
            return false;
        event->kind = HFI_EVENT_CANCELLED; /* who asked stands in the row */
        return true;
    case HFI_STOP_DRAIN:
        if (said || result == HF_RESULT_PERMANENT)
            return false;
        event->kind = HFI_EVENT_GIVEN_BACK;
        if (execution->begun && (hfi_runs_as(work->type) == HF_KIND_NATIVE || work->type->options.isolate != HF_ISOLATE_NONE) &&
            !proves_nothing_sent(&work->ending.outcome))
            event->may_have_sent = true; /* what its own code did nobody knows: one that must not be repeated is not */
        return true;
    case HFI_STOP_TIMEOUT:
        if (said)
            return false;
        timed_out(execution, event);
        return true;
    case HFI_STOP_NONE:
        break;
    }
    return false;
}

void hfi_ending_event(const struct hfi_runner *runner, struct hfi_execution *execution, struct hfi_event *event) {
    const struct hf_work *work = &execution->work;
    memset(event, 0, sizeof *event);
    event->now = hfi_runner_wall(runner);
    event->node = work->job->owner;
    event->breaker = execution->breaker;
    event->may_have_sent = atomic_load(&work->may_have_sent);
    event->breaker_key = work->breaker_key;
    if (execution->abandoned) { /* what its handler says is its own thread's, and comes too late */
        event->kind = HFI_EVENT_LAPSED;
        event->error_type = execution->lapse_type;
        event->message = execution->lapse_message;
        event->may_have_sent = true;
        return;
    }
    if (execution->dropped >= 2) { /* what it said cannot be stored */
        event->kind = HFI_EVENT_LAPSED;
        event->error_type = "lease.lapsed";
        event->message = "the store refused the outcome";
        return;
    }
    if (!by_stop(execution, event))
        by_result(execution, event);
    if (execution->dropped == 0) {
        event->detail = work->ending.detail;
    } else {
        event->result = NULL;
        event->result_length = 0;
    }
}

/* ------------------------------------------------------------------ after the commit */

static void log_death(struct hfi_runner *runner, const struct hfi_execution *execution) {
    const struct hfi_op_apply *op = &execution->apply;
    const struct hfi_death *death = &op->change.death;
    HFI_COUNT(runner, death_lines, 1);
    hfi_log(HF_LOG_ERROR, "job.dead", HFI_I("job", op->job->id), HFI_I("dead_letter", op->dead_id),
            HFI_S("type", op->job->type), HFI_S("queue", op->job->queue),
            HFI_S("class", hf_death_class_name((int)death->death_class)), HFI_S("error_type", death->error_type),
            HFI_S("cause", death->cause), HFI_S("rule", death->rule), HFI_S("message", death->message),
            HFI_I("executions", op->change.job.executions), HFI_I("death_no", death->death_no),
            HFI_S("correlation_id", op->job->correlation_id), HFI_I("node", runner->node), NULL);
}

static void log_retry(const struct hfi_execution *execution) {
    const struct hfi_op_apply *op = &execution->apply;
    char next[HFI_RFC3339_LENGTH];
    HFI_COUNT(execution->runner, retry_lines, 1);
    hfi_log(HF_LOG_WARNING, "job.retry", HFI_I("job", op->job->id), HFI_S("type", op->job->type),
            HFI_S("error_type", op->change.history.error_type), HFI_S("message", op->change.history.message),
            HFI_S("rule", op->change.history.rule), HFI_I("execution", op->job->executions),
            HFI_S("next", hfi_rfc3339(op->change.job.run_at_us, next)), HFI_S("reason", op->change.job.reason),
            HFI_S("correlation_id", op->job->correlation_id), NULL);
}

static uint64_t *counter(struct hfi_runner *runner, const struct hfi_op_apply *op) {
    struct hf_runner_counts *counts = &runner->counts;
    if (op->event.kind == HFI_EVENT_QUARANTINED)
        return &counts->unreadable;
    if (op->change.has_death)
        return op->existed ? &counts->lost : &counts->died;
    switch (op->event.kind) {
    case HFI_EVENT_SUCCEEDED:
        return &counts->succeeded;
    case HFI_EVENT_FAILED:
        return &counts->retried;
    case HFI_EVENT_REJECTED:
        return &counts->rejected;
    case HFI_EVENT_SNOOZED:
        return &counts->snoozed;
    case HFI_EVENT_CANCELLED:
        return &counts->cancelled;
    case HFI_EVENT_GIVEN_BACK:
        return &counts->given_back;
    default:
        return &counts->lost;
    }
}

/* Handlers and forwarders may have been put: they are due at once. */
static void look_for_copies(struct hfi_runner *runner) {
    if (hfi_rulebook_forwards(runner->book)->count > 0 && runner->life == HFI_LIFE_RUNNING)
        hfi_claim_stale(runner);
}

void hfi_ending_told(struct hfi_runner *runner, struct hfi_execution *execution) {
    const struct hfi_op_apply *op = &execution->apply;
    pthread_mutex_lock(&runner->lock);
    ++*counter(runner, op);
    runner->counts.quarantined += op->event.kind == HFI_EVENT_QUARANTINED;
    if (hfi_forward_is(op->job)) {
        runner->counts.forwarded += op->event.kind == HFI_EVENT_SUCCEEDED;
        runner->counts.forward_failed += op->change.has_death && !op->existed;
    }
    runner->counts.late += op->event.kind == HFI_EVENT_SUCCEEDED && op->event.late_ms > 0;
    runner->counts.running--;
    pthread_mutex_unlock(&runner->lock);
    hfi_ahead_ended(runner);
    if (runner->onlookers != NULL)
        hfi_observe_end(runner, execution);
    if (op->change.job.state == HF_JOB_PENDING && op->change.job.run_at_us <= op->event.now.us)
        hfi_claim_stale(runner); /* it is due at once: a snooze of 0, a retry without a wait (I36) */
    hfi_tidy_left(runner, &op->op);
    hfi_tidy_released(runner, op->released);
    if (op->change.has_death) {
        look_for_copies(runner);
        if (!op->existed) /* else another death had that number, and was told [S0.19, S0.23] */
            log_death(runner, execution);
        if (runner->alerts != NULL)
            hfi_alerts_wake(runner->alerts);
        return;
    }
    if (op->event.kind == HFI_EVENT_FAILED || op->event.kind == HFI_EVENT_LAPSED) {
        log_retry(execution);
        return;
    }
    hfi_log(HF_LOG_DEBUG, "job.end", HFI_I("job", op->job->id), HFI_S("type", op->job->type),
            HFI_S("event", hfi_event_name((int)op->event.kind)), HFI_I("execution", op->job->executions), NULL);
}

static void log_note(struct hfi_runner *runner, const struct hfi_dead_note *note) {
    HFI_COUNT(runner, death_lines, 1);
    hfi_log(HF_LOG_ERROR, "job.dead", HFI_I("job", note->job_id), HFI_I("dead_letter", note->dead_id),
            HFI_S("type", note->type), HFI_S("class", hf_death_class_name((int)note->death_class)),
            HFI_S("error_type", note->error_type), HFI_I("executions", note->executions),
            HFI_S("correlation_id", note->correlation_id), HFI_I("node", runner->node), NULL);
}

void hfi_deaths_told(struct hfi_runner *runner, struct hfi_dead_note *notes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        log_note(runner, &notes[i]);
        if (runner->onlookers != NULL)
            hfi_observe_death(runner, &notes[i]);
    }
    hfi_free(notes);
    if (count > 0)
        look_for_copies(runner);
    if (count > 0 && runner->alerts != NULL)
        hfi_alerts_wake(runner->alerts);
}
