/* SPDX-License-Identifier: MIT */
/*
 * The one function that changes a job's state: what each event does in each state. Must never lower an epoch, lose the
 * count of a real start, or end a job by a failure without a death. Failures are judged in failure.c. Pure. Any thread.
 */
#include "jobs/transition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/failure.h"

#define REJECTED_FLOOR_MS 250 /* no hot loop after a rejection */

static const char *const event_names[] = {
#define NAME(name, text) text,
    HFI_EVENT_MAP(NAME)
#undef NAME
};

const char *hfi_event_name(int kind) {
    return kind >= 0 && kind < HFI_EVENT_COUNT ? event_names[kind] : "unknown";
}

uint32_t hfi_max_executions(const struct hfi_job *job, const struct hfi_rules *rules) {
    uint32_t max = job->max_executions;
    if (max == 0 && job->policy)
        max = job->policy->max_executions;
    if (max == 0 && rules && rules->policy)
        max = rules->policy->max_executions;
    return max > 0 ? max : 1;
}

uint32_t hfi_executions_left(const struct hfi_job *job, const struct hfi_rules *rules) {
    uint32_t used = job->executions > job->snoozes ? job->executions - job->snoozes : 0;
    uint32_t max = hfi_max_executions(job, rules);
    return used < max ? max - used : 0;
}

bool hfi_death_was_made(const struct hfi_change *change, const struct hfi_job *row) {
    const struct hfi_job *job = &change->job;
    if (!change->has_death || row->state != job->state || row->epoch != job->epoch || row->deaths != job->deaths)
        return false;
    return change->history.event != (int32_t)HFI_EVENT_LAPSED || (strcmp(row->error_type, job->error_type) == 0 &&
                                                                  strcmp(row->error_message, job->error_message) == 0);
}

bool hfi_cancelled_by_parent(const struct hfi_job *job) {
    return job->state == HF_JOB_CANCELLED && strcmp(job->cancel_by, HFI_BY_HOLDFAST) == 0 &&
           strcmp(job->cancel_reason, HFI_PARENT_DEAD) == 0;
}

static bool started(const struct hfi_job *job) {
    return job->started_at_us != 0;
}

/* Out of `running`: nobody owns it any more, and if somebody else took it the old owner's writes must miss [3.1]. */
static void release(struct hfi_job *job, const struct hfi_event *event) {
    if (job->state == HF_JOB_RUNNING && event->node != job->owner)
        job->epoch++;
    job->owner = 0;
}

static void to_pending(const struct hfi_event *event, struct hfi_change *change, int64_t run_at_us) {
    release(&change->job, event);
    change->job.state = HF_JOB_PENDING;
    change->job.run_at_us = run_at_us;
    change->history.next_run_at_us = run_at_us;
    if (event->breaker_key != NULL)
        change->job.breaker_key = event->breaker_key;
}

static void to_end(const struct hfi_event *event, struct hfi_change *change, enum hf_job_state state) {
    release(&change->job, event);
    change->job.state = (int32_t)state;
    change->job.reason = "";
    change->job.waiting_since_us = 0;
    change->job.finished_at_us = event->now.us;
}

/* Takes back the execution that has begun, as if it had never been [S2.10, I43]. */
static void take_back(struct hfi_job *job) {
    if (started(job) && job->executions > 0)
        job->executions--;
    job->started_at_us = 0;
}

static void claimed(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    job->state = HF_JOB_RUNNING;
    job->epoch++;
    job->owner = event->node;
    job->started_at_us = 0;
}

static void begun(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    if (rules) {
        job->not_repeatable = !rules->repeatable;
        job->runs_code = rules->runs_code;
        job->alone = rules->alone;
    }
    if (job->executions < UINT32_MAX)
        job->executions++;
    job->started_at_us = event->now.us > 0 ? event->now.us : 1;
}

static void succeeded(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    to_end(event, change, HF_JOB_SUCCEEDED);
    job->result = event->result;
    job->result_length = event->result ? event->result_length : 0;
    if (event->late_ms > 0) {
        snprintf(change->history.rule, sizeof change->history.rule, "job.late");
        snprintf(change->history.message, sizeof change->history.message, "%" PRId64 " ms after its execution timeout",
                 event->late_ms);
    }
    job->error_class = job->error_type = job->error_message = ""; /* plain success [S1.9]; the history keeps them */
    change->has_history = true;
}

/* A failure that was judged: the next execution, or the death. */
static void conclude(const struct hfi_event *event, const struct hfi_failure *failure, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    change->has_history = true;
    job->error_class = change->history.error_class;
    job->error_type = change->history.error_type;
    if (failure->dies) {
        to_end(event, change, failure->quarantined ? HF_JOB_QUARANTINED : HF_JOB_DEAD);
        hfi_failure_death(failure, event, change);
        job->error_type = change->death.error_type;
        job->error_message = change->death.message;
        return;
    }
    job->waiting_since_us = 0;
    job->reason = failure->reason;
    job->error_message = change->history.message;
    to_pending(event, change, failure->next_run_at_us);
}

static void failed(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_failure failure;
    hfi_failure_outcome(event, rules, change, &failure);
    conclude(event, &failure, change);
}

static void rejected(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    const struct hf_outcome *outcome = event->outcome;
    struct hfi_failure failure;
    bool ran = started(job);
    int64_t due = job->waiting_since_us != 0 ? job->waiting_since_us : job->run_at_us;
    take_back(job);
    hfi_failure_note(event, "rejected", change);
    if (hfi_failure_gives_up(event, rules, due, change, &failure)) {
        conclude(event, &failure, change);
        return;
    }
    int64_t wait = event->delay_ms > REJECTED_FLOOR_MS ? event->delay_ms : REJECTED_FLOOR_MS;
    if (outcome && outcome->retry_after_ms > wait)
        wait = outcome->retry_after_ms;
    to_pending(event, change, hfi_add(event->now.us, hfi_ms_to_us(wait)));
    job->waiting_since_us = due;
    job->reason = change->history.error_type;
    change->has_history = ran;
}

static void snoozed(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    int64_t delay = event->delay_ms > 0 ? event->delay_ms : 0;
    to_pending(event, change, hfi_add(event->now.us, hfi_ms_to_us(delay)));
    if (job->snoozes < UINT32_MAX)
        job->snoozes++;
    job->waiting_since_us = 0;
    job->reason = "snooze";
    change->has_history = true;
}

static void cancelled(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    to_end(event, change, HF_JOB_CANCELLED);
    change->has_history = true;
    if (!event->actor && job->cancel_requested_at_us != 0) { /* the owner obeys: who asked stands in the record */
        hfi_text_copy(change->history.message, sizeof change->history.message, job->cancel_reason);
        return;
    }
    hfi_text_copy(change->actor, sizeof change->actor, event->actor);
    hfi_text_copy(change->history.message, sizeof change->history.message, event->message);
    job->cancel_by = change->actor;
    job->cancel_reason = change->history.message;
}

static void quarantined(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_failure failure;
    if (change->job.state == HF_JOB_RUNNING)
        take_back(&change->job); /* it never ran */
    hfi_failure_quarantine(event, change, &failure);
    conclude(event, &failure, change);
    hfi_text_copy(change->death.schema, sizeof change->death.schema, rules && rules->schema ? rules->schema : "");
}

/* Due at once, in its old place: what was claimed was due. */
static void due_again(const struct hfi_event *event, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    to_pending(event, change, job->run_at_us < event->now.us ? job->run_at_us : event->now.us);
}

static void given_back(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    struct hfi_failure failure;
    if (!started(job)) {
        due_again(event, change);
        return;
    }
    hfi_failure_note(event, "given_back", change);
    if (hfi_failure_give_back_ends(event, rules, change, &failure)) {
        conclude(event, &failure, change);
        return;
    }
    if (job->give_backs < rules->max_give_backs) {
        take_back(job);
        job->give_backs++;
    }
    due_again(event, change);
    change->has_history = true;
}

static void lapsed(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    struct hfi_failure failure;
    change->history.node = job->owner;
    job->owner = 0;
    job->epoch++; /* whoever does it, even the owner's own reconciliation: the execution may still be going on */
    struct hfi_event by_nobody = *event;
    by_nobody.node = 0;
    if (!started(job)) {
        due_again(&by_nobody, change);
        return;
    }
    hfi_failure_lapse(event, rules, change, &failure);
    conclude(&by_nobody, &failure, change);
}

static void expired(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    to_end(event, change, HF_JOB_CANCELLED);
    job->cancel_by = HFI_BY_HOLDFAST;
    job->cancel_reason = "expired";
    snprintf(change->history.message, sizeof change->history.message, "expired");
    change->has_history = true;
}

static void requeued(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    struct hfi_history *history = &change->history;
    (void)rules;
    job->epoch++;
    job->state = HF_JOB_PENDING;
    job->run_at_us = event->now.us;
    job->reason = "requeue";
    job->executions = job->failures = job->snoozes = job->crashes = job->give_backs = 0;
    job->crash_window_us = job->waiting_since_us = 0;
    job->started_at_us = job->finished_at_us = job->cancel_requested_at_us = 0;
    job->cancel_by = job->cancel_reason = "";
    job->progress = 0; /* from the top [S1.19] */
    job->progress_text = "";
    job->checkpoint = NULL;
    job->checkpoint_length = 0;
    if (job->expires_at_us <= event->now.us)
        job->expires_at_us = 0; /* a person wants it to run */
    hfi_text_copy(change->actor, sizeof change->actor, event->actor);
    char message[sizeof history->message * 2];
    snprintf(message, sizeof message, "%s%s%s", change->actor, event->message && event->message[0] ? ": " : "",
             event->message ? event->message : "");
    hfi_text_copy(history->message, sizeof history->message, message);
    history->next_run_at_us = job->run_at_us;
    change->has_history = true;
}

static void released(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    job->state = HF_JOB_PENDING;
    job->reason = job->run_at_us > event->now.us ? "scheduled" : "";
    change->history.next_run_at_us = job->run_at_us;
    change->has_history = true;
}

static void parent_dead(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    to_end(event, change, HF_JOB_CANCELLED);
    job->cancel_by = HFI_BY_HOLDFAST;
    job->cancel_reason = HFI_PARENT_DEAD;
    hfi_text_copy(change->history.error_type, sizeof change->history.error_type, HFI_PARENT_DEAD);
    hfi_text_copy(change->history.message, sizeof change->history.message, event->message);
    change->has_history = true;
}

static void revived(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    (void)rules;
    job->epoch++;
    job->state = HF_JOB_WAITING;
    job->reason = "parents";
    job->finished_at_us = 0;
    job->cancel_by = job->cancel_reason = "";
    if (job->expires_at_us <= event->now.us)
        job->expires_at_us = 0; /* a person wants it to run */
    change->has_history = true;
}

/* Its owner hears of it at its next beat. */
static void cancel_asked(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    struct hfi_history *history = &change->history;
    (void)rules;
    if (job->cancel_requested_at_us != 0)
        return; /* the first one stays on the record */
    hfi_text_copy(change->actor, sizeof change->actor, event->actor);
    hfi_text_copy(history->message, sizeof history->message, event->message);
    job->cancel_requested_at_us = event->now.us > 0 ? event->now.us : 1;
    job->cancel_by = change->actor;
    job->cancel_reason = history->message;
    change->has_history = true;
}

typedef void (*step_fn)(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change);

/* What must hold besides the state. */
#define RAN 1u      /* the handler was started */
#define NOT_RAN 2u  /* only reserved */
#define IN_TIME 4u  /* expires_at has not come */
#define OVERDUE 8u  /* it has */
#define BY_PARENT 16u /* cancelled because a parent did not succeed */
struct step {
    step_fn run;
    unsigned when;
};

/* The whole machine. What is not here is HF_ESTATE. */
#define STATES (HF_JOB_CANCELLED + 1)
static const struct step steps[STATES][HFI_EVENT_COUNT] = {
    [HF_JOB_PENDING] = {[HFI_EVENT_CLAIMED] = {claimed, IN_TIME},
                        [HFI_EVENT_CANCELLED] = {cancelled, 0},
                        [HFI_EVENT_QUARANTINED] = {quarantined, 0},
                        [HFI_EVENT_EXPIRED] = {expired, OVERDUE}},
    [HF_JOB_WAITING] = {[HFI_EVENT_CANCELLED] = {cancelled, 0},
                        [HFI_EVENT_EXPIRED] = {expired, OVERDUE},
                        [HFI_EVENT_RELEASED] = {released, 0},
                        [HFI_EVENT_PARENT_DEAD] = {parent_dead, 0}},
    [HF_JOB_RUNNING] = {[HFI_EVENT_STARTED] = {begun, NOT_RAN | IN_TIME},
                        [HFI_EVENT_SUCCEEDED] = {succeeded, RAN},
                        [HFI_EVENT_FAILED] = {failed, RAN},
                        [HFI_EVENT_REJECTED] = {rejected, 0},
                        [HFI_EVENT_SNOOZED] = {snoozed, RAN},
                        [HFI_EVENT_CANCELLED] = {cancelled, 0},
                        [HFI_EVENT_QUARANTINED] = {quarantined, 0},
                        [HFI_EVENT_GIVEN_BACK] = {given_back, 0},
                        [HFI_EVENT_LAPSED] = {lapsed, 0},
                        [HFI_EVENT_EXPIRED] = {expired, NOT_RAN | OVERDUE},
                        [HFI_EVENT_CANCEL_ASKED] = {cancel_asked, 0}},
    [HF_JOB_DEAD] = {[HFI_EVENT_REQUEUED] = {requeued, 0}},
    [HF_JOB_QUARANTINED] = {[HFI_EVENT_REQUEUED] = {requeued, 0}},
    [HF_JOB_CANCELLED] = {[HFI_EVENT_REVIVED] = {revived, BY_PARENT}},
};

/* Whoever asked for a cancel is not made to wait for a next execution; what happened to this one stays on the record. */
static void honour_cancel(const struct hfi_event *event, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    if (job->state != HF_JOB_PENDING || job->cancel_requested_at_us == 0)
        return;
    to_end(event, change, HF_JOB_CANCELLED);
    change->history.next_run_at_us = 0;
    change->has_history = true;
}

static bool holds(unsigned when, const struct hfi_job *job, struct hf_wall now) {
    bool overdue = job->expires_at_us != 0 && job->expires_at_us <= now.us;
    return !((when & RAN && !started(job)) || (when & NOT_RAN && started(job)) || (when & IN_TIME && overdue) ||
             (when & OVERDUE && !overdue) || (when & BY_PARENT && !hfi_cancelled_by_parent(job)));
}

/* What every history row says, before the event adds its own. */
static void begin(const struct hfi_job *job, const struct hfi_event *event, struct hfi_change *change) {
    const struct hf_outcome *outcome = event->outcome;
    struct hfi_history *history = &change->history;
    change->job = *job;
    change->actor[0] = '\0';
    change->has_history = change->has_death = false;
    memset(&change->death, 0, offsetof(struct hfi_death, message) + 1);
    change->death.detail = change->death.origin = NULL;
    change->death.fingerprint = 0;
    memset(history, 0, offsetof(struct hfi_history, message) + 1);
    history->job_id = job->id;
    history->execution = job->executions;
    history->started_at_us = job->state == HF_JOB_RUNNING ? job->started_at_us : 0;
    history->ended_at_us = event->now.us;
    history->node = event->node;
    history->event = (int32_t)event->kind;
    history->breaker = event->breaker;
    history->error_class = "";
    history->resolve_us = history->connect_us = history->tls_us = history->first_byte_us = history->total_us = -1;
    if (!outcome)
        return;
    history->attempts = outcome->attempts;
    history->retries = outcome->retries;
    history->resolve_us = outcome->phases.resolve_us;
    history->connect_us = outcome->phases.connect_us;
    history->tls_us = outcome->phases.tls_us;
    history->first_byte_us = outcome->phases.first_byte_us;
    history->total_us = outcome->phases.total_us;
    hfi_text_copy(history->rule, sizeof history->rule, outcome->rule);
}

int hfi_transition(const struct hfi_job *job, const struct hfi_event *event, const struct hfi_rules *rules,
                   struct hfi_change *change) {
    if (job->state < 0 || job->state >= STATES || (int)event->kind < 0 || event->kind >= HFI_EVENT_COUNT)
        return HF_ESTATE;
    const struct step *step = &steps[job->state][event->kind];
    if (!step->run || !holds(step->when, job, event->now))
        return HF_ESTATE;
    begin(job, event, change);
    step->run(event, rules, change);
    honour_cancel(event, change);
    change->history.state = change->job.state;
    return 0;
}
