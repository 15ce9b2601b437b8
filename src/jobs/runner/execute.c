/* SPDX-License-Identifier: MIT */
/*
 * One execution from its claim to its stored end: begins it in its kind, watches its limit, writes what came of it.
 * Must never lose an outcome while the store may still take it, and never write one after the lease went. Loop thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "jobs/runner/runner_state.h"
#include "jobs/views.h"

#define SPARE_MAX 1024 /* while it is busy */
#define SPARE_IDLE 16
#define OVERDUE_MS 10000 /* one warning for a handler that ignores its limit [S2.8] */

void hfi_execute_link(struct hf_work **list, struct hf_work *work) {
    work->previous = NULL;
    work->next = *list;
    if (work->next != NULL)
        work->next->previous = work;
    *list = work;
}

void hfi_execute_unlink(struct hf_work **list, struct hf_work *work) {
    if (work->previous != NULL)
        work->previous->next = work->next;
    else
        *list = work->next;
    if (work->next != NULL)
        work->next->previous = work->previous;
}

static struct hfi_execution *take_spare(struct hfi_runner *runner) {
    struct hfi_execution *execution = runner->spare;
    if (execution == NULL)
        return hfi_alloc(sizeof *execution);
    runner->spare = execution->free_next;
    runner->spare_count--;
    /* All but the change, which is some kilobytes and the store's to fill. */
    size_t change = offsetof(struct hfi_execution, apply.change), rest = change + sizeof execution->apply.change;
    memset(execution, 0, change);
    memset((char *)execution + rest, 0, sizeof *execution - rest);
    return execution;
}

static void forget(struct hfi_execution *execution) {
    if (execution != NULL)
        hfi_rulebook_free(execution->book);
    hfi_free(execution);
}

/* A second finish of an asynchronous work has to find it finished: it is kept until many others are. */
static void keep_finished(struct hfi_runner *runner, struct hfi_execution *execution) {
    struct hfi_execution **place = &runner->finished[runner->finished_next];
    runner->finished_next = (runner->finished_next + 1) % HFI_FINISHED_KEPT;
    forget(*place);
    *place = execution;
}

void hfi_execute_over(struct hfi_execution *execution) {
    struct hfi_runner *runner = execution->runner;
    execution->over = true;
    if (execution->notes_out > 0 || hfi_work_keeps(&execution->work) || (execution->abandoned && !execution->returned))
        return;
    hfi_free(execution->work.job);
    execution->work.job = NULL;
    hfi_ending_free(&execution->work.ending);
    hfi_free(execution->work.breaker_key);
    execution->work.breaker_key = NULL;
    if (execution->work.type->async_handler != NULL) {
        keep_finished(runner, execution);
        return;
    }
    if (runner->spare_count >= SPARE_MAX || runner->life >= HFI_LIFE_LEAVING) {
        forget(execution);
        return;
    }
    hfi_rulebook_free(execution->book); /* nothing of its type is needed any more */
    execution->book = NULL;
    execution->free_next = runner->spare;
    runner->spare = execution;
    runner->spare_count++;
}

static void count_lost(struct hfi_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->counts.lost++;
    runner->counts.running--;
    pthread_mutex_unlock(&runner->lock);
}

/* Its end is stored, or given up. */
static void leave_unwritten(struct hfi_execution *execution) {
    struct hfi_runner *runner = execution->runner;
    hfi_lane_settled(execution->lane);
    hfi_execute_unlink(&runner->unwritten, &execution->work);
    runner->writing--;
    if (execution->abandoned && !execution->returned)
        hfi_execute_link(&runner->left, &execution->work);
    hfi_execute_over(execution);
}

void hfi_execute_let_go(struct hfi_runner *runner) {
    struct hf_work *next;
    for (struct hf_work *work = runner->unwritten; work != NULL; work = next) {
        struct hfi_execution *execution = work->runner_state;
        next = work->next;
        if (!hfi_timer_armed(&execution->retry))
            continue; /* the writer has it */
        hfi_runner_disarm(runner, &execution->retry);
        hfi_log(HF_LOG_WARNING, "job.left", HFI_I("job", work->job->id), HFI_S("type", work->job->type),
                HFI_S("why", "the store did not take its outcome"), NULL);
        runner->code = 1;
        count_lost(runner);
        leave_unwritten(execution);
    }
}

static void trim(struct hfi_runner *runner, size_t keep) {
    while (runner->spare_count > keep) {
        struct hfi_execution *next = runner->spare->free_next;
        hfi_free(runner->spare);
        runner->spare = next;
        runner->spare_count--;
    }
}

void hfi_execute_idle(struct hfi_runner *runner) {
    if (runner->running == 0 && runner->writing == 0)
        trim(runner, SPARE_IDLE);
}

void hfi_execute_end(struct hfi_runner *runner) {
    hfi_execute_let_go(runner);
    trim(runner, 0);
    for (size_t i = 0; i < HFI_FINISHED_KEPT && runner->left == NULL; i++) {
        forget(runner->finished[i]);
        runner->finished[i] = NULL;
    }
}

/* ------------------------------------------------------------------ the stored end */

static void apply(struct hfi_execution *execution);

static void over(struct hfi_execution *execution) {
    struct hfi_runner *runner = execution->runner;
    leave_unwritten(execution);
    if (runner->life == HFI_LIFE_RUNNING)
        hfi_claim_poke(runner);
    else
        hfi_drain_check(runner);
}

static void lost(struct hfi_execution *execution, const char *why) {
    count_lost(execution->runner);
    hfi_log(HF_LOG_WARNING, "job.stale", HFI_I("job", execution->work.job->id),
            HFI_I("epoch", execution->work.job->epoch), HFI_S("why", why), NULL);
}

/* The store will not have it as it is: once more without what may be too much for it, then let go of the job [S0.18]. */
static void refused_for_good(struct hfi_execution *execution, int code) {
    const struct hfi_op_apply *op = &execution->apply;
    const struct hf_outcome *outcome = op->event.outcome;
    if (execution->dropped++ == 0) {
        hfi_log(HF_LOG_WARNING, "job.refused", HFI_I("job", op->job->id), HFI_S("why", hf_strerror(code)), NULL);
        apply(execution);
        return;
    }
    if (execution->dropped == 2) {
        hfi_log(HF_LOG_ERROR, "job.lost_outcome", HFI_I("job", op->job->id), HFI_S("type", op->job->type),
                HFI_S("event", hfi_event_name((int)op->event.kind)),
                HFI_S("error_type", outcome == NULL ? "" : outcome->error_type),
                HFI_S("message", outcome == NULL ? op->event.message : outcome->message),
                HFI_S("detail", execution->work.ending.detail), HFI_S("why", hf_strerror(code)), NULL);
        apply(execution); /* as a lapse: the job goes on by its curve */
        return;
    }
    count_lost(execution->runner); /* its row stays ours until the reconciliation finds it */
    over(execution);
}

static void applied(struct hfi_op *op, void *user) {
    struct hfi_execution *execution = user;
    struct hfi_runner *runner = execution->runner;
    runner->out--;
    if (op->code == 0) {
        hfi_ending_told(runner, execution);
        over(execution);
    } else if (op->code == HF_ESTALE || op->code == HF_ENOENT) {
        lost(execution, hf_strerror(op->code));
        over(execution);
    } else if (hfi_refused_for_now(op->code)) {
        if (execution->tries++ == 0)
            hfi_log(HF_LOG_WARNING, "job.unwritten", HFI_I("job", execution->work.job->id),
                    HFI_S("why", hf_strerror(op->code)), NULL);
        hfi_runner_arm(runner, &execution->retry, hfi_refused_wait_ms(execution->tries));
    } else {
        refused_for_good(execution, op->code);
    }
}

static void apply(struct hfi_execution *execution) {
    struct hfi_runner *runner = execution->runner;
    struct hfi_op_apply *op = &execution->apply;
    op->job = execution->work.job;
    hfi_ending_event(runner, execution, &op->event);
    hfi_rulebook_for(execution->book, op->job, &op->rules);
    hfi_park_rules(execution->lane, &op->rules);
    op->rules.random = hfi_random_next(&runner->random);
    op->rules.unhealthy_since_us = hfi_park_unhealthy_since(execution->lane);
    op->sink_count = hfi_rulebook_sinks(execution->book, &op->sinks);
    if (runner->retry_hook != NULL)
        hfi_retry_ask(runner, execution);
    hfi_runner_submit(runner, &op->op, HFI_OP_APPLY, applied, execution);
}

static void retry_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    apply(user);
}

void hfi_execute_ended(struct hfi_execution *execution) {
    struct hfi_runner *runner = execution->runner;
    struct hf_work *work = &execution->work;
    hfi_runner_disarm(runner, &work->timer);
    hfi_runner_disarm(runner, &execution->silence);
    hfi_notes_flush(execution);
    hfi_execute_unlink(&runner->first, work);
    hfi_execute_link(&runner->unwritten, work);
    runner->running--;
    runner->writing++;
    hfi_lane_release(&runner->lanes, execution->lane, execution->begun);
    HFI_COUNT(runner, attempts, atomic_load(&work->attempts));
    apply(execution);
    hfi_claim_poke(runner); /* the claim goes into the same commit */
}

/* The kind gives the work back. */
static void ended(struct hf_work *work, void *user) {
    struct hfi_execution *execution = user;
    (void)work;
    if (execution->abandoned)
        hfi_abandon_returned(execution);
    else
        hfi_execute_ended(execution);
}

/* ------------------------------------------------------------------ its time limit */

static int64_t abandon_after_ms(const struct hfi_execution *execution) {
    const struct hf_work *work = &execution->work;
    bool can_hang = execution->runner->kinds[hfi_runs_as(work->type)]->ops->abandon != NULL;
    return can_hang ? work->type->abandon_after_ms : 0;
}

static void warn_overdue(struct hfi_execution *execution) {
    execution->overdue = true;
    HFI_COUNT(execution->runner, overdue, 1);
    hfi_log(HF_LOG_WARNING, "job.overdue", HFI_I("job", execution->work.job->id),
            HFI_S("type", execution->work.job->type), HFI_I("over_ms", OVERDUE_MS), NULL);
}

/* Told at its limit, warned about once, given up in the end [S2.8]. */
static void limit_fired(struct hfi_timer *timer, void *user) {
    struct hfi_execution *execution = user;
    struct hfi_runner *runner = execution->runner;
    struct hf_work *work = &execution->work;
    int64_t past_ms = hfi_sub(hfi_runner_mono(runner).us, work->deadline.us) / 1000;
    int64_t give_up_ms = abandon_after_ms(execution), next_ms = give_up_ms;
    if (!execution->timed_out) {
        execution->timed_out = true;
        hfi_execute_stop(work, HFI_STOP_TIMEOUT, false);
    }
    if (!execution->overdue && past_ms >= OVERDUE_MS)
        warn_overdue(execution);
    if (give_up_ms > 0 && past_ms >= give_up_ms) {
        hfi_abandon(execution, "lease.lapsed", "its handler did not return after its execution timeout");
        return;
    }
    if (!execution->overdue && (give_up_ms == 0 || give_up_ms > OVERDUE_MS))
        next_ms = OVERDUE_MS;
    if (next_ms == 0)
        return;
    struct hf_mono at = hfi_mono_after_ms(work->deadline, next_ms);
    if (runner->scheduler->ops->arm(runner->scheduler, timer, at) != 0)
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "an execution timeout"), NULL);
}

static void set_deadline(struct hfi_runner *runner, struct hf_work *work) {
    int64_t timeout = work->job->execution_timeout_ms >= 0 ? work->job->execution_timeout_ms
                                                           : work->type->execution_timeout_ms;
    work->deadline.us = HFI_FOREVER_US;
    if (timeout <= 0)
        return;
    work->deadline = hfi_mono_after_ms(hfi_runner_mono(runner), timeout);
    if (runner->scheduler->ops->arm(runner->scheduler, &work->timer, work->deadline) != 0)
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "an execution timeout"), NULL);
}

/* ------------------------------------------------------------------ its beginning */

/* It cannot begin: the ending says why, or the drain does. */
static void not_begun(struct hfi_execution *execution, enum hfi_stop why) {
    if (why != HFI_STOP_NONE)
        atomic_store(&execution->work.stop, why);
    ended(&execution->work, execution);
}

/* Also when the process stood still between the claim and now: others may have the job already, before any timer says so. */
static bool must_give_back(struct hfi_runner *runner) {
    return runner->life != HFI_LIFE_RUNNING || runner->lost || hfi_beat_is_late(runner);
}

void hfi_execute(struct hfi_runner *runner, struct hfi_job *job) {
    struct hfi_execution *execution = take_spare(runner);
    struct hfi_lane *lane = hfi_lanes_find(&runner->lanes, job->lane);
    if (execution == NULL || lane == NULL) {
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "an execution"), HFI_I("job", job->id), NULL);
        count_lost(runner);
        if (lane != NULL) {
            hfi_lane_release(&runner->lanes, lane, false);
            hfi_lane_settled(lane); /* from now on it counts as another's */
        }
        hfi_free(execution);
        hfi_free(job); /* its row is ours: reconciled after two beats */
        return;
    }
    struct hf_work *work = &execution->work;
    execution->book = hfi_rulebook_hold(runner->book);
    execution->runner = runner;
    execution->lane = lane;
    execution->breaker = hfi_park_state(lane);
    hfi_timer_init(&execution->retry, retry_fired, execution);
    hfi_timer_init(&work->timer, limit_fired, execution);
    work->job = job;
    work->type = lane->type;
    work->scheduler = runner->scheduler;
    work->caller = runner->parts.caller;
    work->client = runner->parts.client;
    work->ended = ended;
    work->user = execution;
    work->runner_state = execution;
    hfi_notes_init(execution);
    work->store_uuid = runner->parts.store->port->uuid;
    work->store = runner->parts.store->port;
    hfi_outcome_init(&work->ending.outcome);
    hfi_idempotency_key(job, runner->parts.store->port->uuid, work->key);
    if (work->type->options.kind == HF_KIND_NATIVE || work->type->options.kind == HF_KIND_PLUGIN) {
        snprintf(work->execution_id, sizeof work->execution_id, "%" PRId64 ".%" PRId64, job->id, job->epoch);
        atomic_init(&work->beat_us, work->type->async_handler ? hfi_runner_mono(runner).us : HFI_NO_BEAT);
    }
    struct hfi_rules rules;
    hfi_rulebook_for(runner->book, job, &rules);
    work->max_executions = hfi_max_executions(job, &rules);
    set_deadline(runner, work);
    hfi_execute_link(&runner->first, work);
    runner->running++;
    if (must_give_back(runner)) {
        not_begun(execution, HFI_STOP_DRAIN);
        return;
    }
    struct hfi_kind *kind = runner->kinds[hfi_runs_as(work->type)];
    hfi_log(HF_LOG_DEBUG, "job.start", HFI_I("job", job->id), HFI_S("type", job->type),
            HFI_I("execution", job->executions), NULL);
    if (!hfi_payload_reads(work) || kind->ops->start(kind, work) != 0) {
        not_begun(execution, HFI_STOP_NONE);
        return;
    }
    execution->begun = true;
    hfi_lane_begun(lane);
    if (work->type->options.heartbeat_timeout_ms > 0)
        hfi_abandon_watch(execution);
}

void hfi_execute_stop(struct hf_work *work, enum hfi_stop why, bool hurry) {
    struct hfi_execution *execution = work->runner_state;
    struct hfi_kind *kind = execution->runner->kinds[hfi_runs_as(work->type)];
    int reason = HFI_STOP_NONE; /* the first one stands, but for a lost lease */
    bool first = atomic_compare_exchange_strong(&work->stop, &reason, (int)why);
    if (!first && why == HFI_STOP_LOST && reason != HFI_STOP_LOST) {
        atomic_store(&work->stop, (int)why);
        first = true;
    }
    if (first || hurry)
        kind->ops->stop(kind, work, hurry);
    if (first)
        hfi_work_tell_stop(work);
}

void hfi_execute_stop_all(struct hfi_runner *runner, enum hfi_stop why, bool hurry) {
    struct hf_work *next;
    for (struct hf_work *work = runner->first; work != NULL; work = next) {
        next = work->next; /* a stop never ends it here, but keep to what we hold */
        hfi_execute_stop(work, why, hurry);
    }
}
