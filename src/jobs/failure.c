/* SPDX-License-Identifier: MIT */
/*
 * Judges failures: one order of questions and one wait for errors, timeouts, crashes and lapses alike (I34). Must never
 * give a job that is not repeatable another execution without proof that nothing was sent, nor lose what the underlying
 * failure was. Pure. Any thread.
 */
#include "jobs/failure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define CRASH_WINDOW_US (INT64_C(72) * 3600 * 1000000) /* I13 */

static const char *class_text(enum hf_class klass) {
    return klass == HF_CLASS_PERMANENT ? "permanent" : klass == HF_CLASS_POISON ? "poison" : "transient";
}

/* What a failure is for the job: whatever is neither permanent nor poison is transient [S0.3]. */
static enum hf_class class_of(const struct hf_outcome *outcome) {
    if (outcome && (outcome->klass == HF_CLASS_PERMANENT || outcome->klass == HF_CLASS_POISON))
        return outcome->klass;
    return HF_CLASS_TRANSIENT;
}

void hfi_failure_note(const struct hfi_event *event, const char *type, struct hfi_change *change) {
    struct hfi_history *history = &change->history;
    const struct hf_outcome *outcome = event->outcome;
    const char *message = outcome && outcome->message[0] ? outcome->message : event->message;
    if (outcome && outcome->error_type[0])
        type = outcome->error_type;
    else if (event->error_type && event->error_type[0])
        type = event->error_type;
    history->error_class = class_text(class_of(outcome));
    hfi_text_copy(history->error_type, sizeof history->error_type, type);
    hfi_text_copy(history->message, sizeof history->message, message);
    if (history->rule[0] == '\0')
        snprintf(history->rule, sizeof history->rule, "unclassified");
}

static void dies(struct hfi_failure *failure, enum hf_death_class death_class, const char *cause) {
    failure->dies = true;
    failure->death_class = death_class;
    failure->cause = cause;
}

static void dies_unknown(struct hfi_failure *failure, const struct hfi_change *change) {
    dies(failure, HF_DEATH_PERMANENT, "outcome.unknown");
    failure->error_type = "outcome.unknown";
    snprintf(failure->rule, sizeof failure->rule, "job.not_repeatable");
    snprintf(failure->prefix, sizeof failure->prefix, "it may have been done: %s: ", change->history.error_type);
}

static const char *never_retried(const struct hfi_rules *rules, const char *error_type) {
    for (size_t i = 0; i < rules->never_retry_count; i++)
        if (hfi_dotted_prefix(rules->never_retry[i], error_type))
            return rules->never_retry[i];
    return NULL;
}

/* The longest wait that a peer may ask of this job: what is configured, and not longer than the curve's own last wait
   (V8). A refusal of ours is no such wish: to come back while the breaker is open would be for nothing. */
static int64_t longest_asked_ms(const struct hf_outcome *outcome, const struct hfi_curve *policy,
                                const struct hfi_rules *rules) {
    int64_t last = policy && outcome->kind != HF_OUTCOME_REJECTED ? hfi_curve_last_ms(policy) : -1;
    return last >= 0 && last < rules->retry_after_cap_ms ? last : rules->retry_after_cap_ms;
}

/* "…; its wait of 114h is cut to 30m", behind the message of what happened. */
static void tell_cut(int64_t asked_ms, int64_t cap_ms, struct hfi_history *history) {
    char asked[24], cap[24];
    size_t length = strlen(history->message);
    snprintf(history->message + length, sizeof history->message - length, "%sits wait of %s is cut to %s",
             length > 0 ? "; " : "", hfi_duration_print(asked_ms, asked), hfi_duration_print(cap_ms, cap));
}

int64_t hfi_failure_hook_cap_ms(const struct hfi_job *job, const struct hfi_rules *rules) {
    const struct hfi_curve *policy = job->policy ? job->policy : rules->policy;
    int64_t last = policy ? hfi_curve_last_ms(policy) : -1;
    return last > rules->retry_after_cap_ms ? last : rules->retry_after_cap_ms;
}

/* The one way to the next execution (I34): the curve by failures, or a longer wait that was asked for, within its cap. */
static void follow_curve(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change,
                         struct hfi_failure *failure) {
    const struct hfi_job *job = &change->job;
    const struct hf_outcome *outcome = event->outcome;
    const struct hfi_curve *policy = job->policy ? job->policy : rules->policy;
    int64_t wait = policy ? hfi_curve_wait_ms(policy, job->failures, rules->random) : 0;
    failure->reason = "curve";
    if (outcome && outcome->retry_after_ms > wait) {
        int64_t cap = longest_asked_ms(outcome, policy, rules);
        bool capped = outcome->retry_after_ms > cap;
        if (capped)
            tell_cut(outcome->retry_after_ms, cap > wait ? cap : wait, &change->history);
        failure->reason = outcome->kind == HF_OUTCOME_REJECTED ? change->history.error_type
                          : capped                             ? "retry_after.capped"
                                                               : "retry_after";
        int64_t asked = capped ? cap : outcome->retry_after_ms;
        wait = asked > wait ? asked : wait;
    }
    if (event->ruling && event->ruling->wait_ms >= 0) {
        int64_t cap = hfi_failure_hook_cap_ms(job, rules);
        wait = event->ruling->wait_ms < cap ? event->ruling->wait_ms : cap;
        failure->reason = "retry_hook";
    }
    failure->next_run_at_us = hfi_add(event->now.us, hfi_ms_to_us(wait));
}

/* May it run again? Executions that ended in a snooze are not held against it (I37). */
static bool used_up(const struct hfi_job *job, const struct hfi_rules *rules) {
    return hfi_executions_left(job, rules) == 0;
}

/* By the configuration of this node, or of the one that started it. */
static bool repeatable(const struct hfi_job *job, const struct hfi_rules *rules) {
    return rules->repeatable && !job->not_repeatable;
}

static void count_failure(struct hfi_job *job) {
    if (job->failures < UINT32_MAX)
        job->failures++;
}

/* What is left to ask once it is known that another execution would be allowed to happen at all. */
static void judge(const struct hfi_event *event, const struct hfi_rules *rules, const char *cause,
                  struct hfi_change *change, struct hfi_failure *failure) {
    const char *never = never_retried(rules, change->history.error_type);
    if (!never && event->cause)
        never = never_retried(rules, event->cause);
    if (never) {
        dies(failure, HF_DEATH_PERMANENT, "permanent");
        snprintf(failure->rule, sizeof failure->rule, "never_retry.%s", never);
        change->history.error_class = class_text(HF_CLASS_PERMANENT);
    } else if (used_up(&change->job, rules)) {
        dies(failure, HF_DEATH_TRANSIENT_EXHAUSTED, cause);
    } else if (event->ruling && event->ruling->permanent) {
        dies(failure, HF_DEATH_PERMANENT, "permanent");
        snprintf(failure->rule, sizeof failure->rule, "retry_hook");
        change->history.error_class = class_text(HF_CLASS_PERMANENT);
    } else {
        follow_curve(event, rules, change, failure);
    }
}

void hfi_failure_outcome(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change,
                         struct hfi_failure *failure) {
    const struct hf_outcome *outcome = event->outcome;
    enum hf_class klass = class_of(outcome);
    /* An outcome nobody filled proves nothing. */
    bool proof = outcome && outcome->touched && outcome->sent == HF_SENT_NO && !event->may_have_sent;
    memset(failure, 0, sizeof *failure);
    hfi_failure_note(event, "handler.unknown_result", change);
    count_failure(&change->job);
    if (klass == HF_CLASS_PERMANENT)
        dies(failure, HF_DEATH_PERMANENT, "permanent");
    else if (klass == HF_CLASS_POISON)
        dies(failure, HF_DEATH_POISON, "poison");
    else if (!repeatable(&change->job, rules) && !proof)
        dies_unknown(failure, change);
    else
        judge(event, rules, "exhausted", change, failure);
}

/*
 * More than the allowed crashes within the window, this one included, and nobody but the job to blame for it? Jobs that
 * run no code of their own in or beside the process (http, noop) never took it down.
 */
static bool crashes_too_often(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_job *job) {
    if (!event->crash || !job->runs_code)
        return false;
    if (job->crash_window_us == 0 || hfi_sub(event->now.us, job->crash_window_us) > CRASH_WINDOW_US) {
        job->crash_window_us = event->now.us;
        job->crashes = 0;
    }
    if (job->crashes < UINT32_MAX)
        job->crashes++;
    return job->crashes > rules->max_crashes && job->alone;
}

void hfi_failure_lapse(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change,
                       struct hfi_failure *failure) {
    struct hfi_job *job = &change->job;
    memset(failure, 0, sizeof *failure);
    snprintf(change->history.rule, sizeof change->history.rule, "job.lapsed");
    hfi_failure_note(event, "lease.lapsed", change);
    if (change->history.message[0] == '\0')
        snprintf(change->history.message, sizeof change->history.message,
                 "job %" PRId64 " lost its node in execution %" PRIu32 " of %" PRIu32, job->id, job->executions,
                 hfi_max_executions(job, rules)); /* [S2.20] */
    count_failure(job);
    bool crashing = crashes_too_often(event, rules, job);
    if (!repeatable(job, rules)) {
        dies_unknown(failure, change);
    } else if (crashing) {
        dies(failure, HF_DEATH_POISON, "poison");
        snprintf(failure->rule, sizeof failure->rule, "job.crash_ceiling");
        snprintf(failure->prefix, sizeof failure->prefix, "%" PRIu32 " crashes in 72 h: ", job->crashes);
    } else {
        judge(event, rules, "orphaned", change, failure);
        if (failure->dies && failure->death_class == HF_DEATH_TRANSIENT_EXHAUSTED)
            failure->error_type = "orphaned";
    }
}

void hfi_failure_quarantine(const struct hfi_event *event, struct hfi_change *change, struct hfi_failure *failure) {
    memset(failure, 0, sizeof *failure);
    snprintf(change->history.rule, sizeof change->history.rule, "job.quarantine");
    hfi_failure_note(event, "payload.undecodable", change);
    change->history.error_class = class_text(HF_CLASS_POISON);
    bool type = hfi_dotted_prefix("unknown_type", change->history.error_type);
    dies(failure, HF_DEATH_POISON, type ? "unknown_type" : "payload");
    failure->quarantined = true;
}

bool hfi_failure_gives_up(const struct hfi_event *event, const struct hfi_rules *rules, int64_t due_us,
                          struct hfi_change *change, struct hfi_failure *failure) {
    memset(failure, 0, sizeof *failure);
    if (rules->give_up_after_ms <= 0 || rules->unhealthy_since_us <= 0)
        return false;
    int64_t since = due_us > rules->unhealthy_since_us ? due_us : rules->unhealthy_since_us;
    if (hfi_sub(event->now.us, since) < hfi_ms_to_us(rules->give_up_after_ms))
        return false;
    char limit[24];
    dies(failure, HF_DEATH_TRANSIENT_EXHAUSTED, "give_up");
    snprintf(failure->rule, sizeof failure->rule, "job.give_up");
    snprintf(failure->prefix, sizeof failure->prefix, "its downstream was ill for %s: ",
             hfi_duration_print(rules->give_up_after_ms, limit));
    (void)change;
    return true;
}

bool hfi_failure_give_back_ends(const struct hfi_event *event, const struct hfi_rules *rules,
                                struct hfi_change *change, struct hfi_failure *failure) {
    struct hfi_job *job = &change->job;
    memset(failure, 0, sizeof *failure);
    if (!repeatable(job, rules) && event->may_have_sent) {
        count_failure(job);
        dies_unknown(failure, change);
        return true;
    }
    if (job->give_backs < rules->max_give_backs || !used_up(job, rules))
        return false;
    dies(failure, HF_DEATH_TRANSIENT_EXHAUSTED, "exhausted");
    snprintf(failure->rule, sizeof failure->rule, "job.give_backs");
    snprintf(failure->prefix, sizeof failure->prefix, "given back %" PRIu32 " times before: ", job->give_backs);
    return true;
}

/* FNV-1a over a text and a separator; equal deaths collapse in one alert, nothing else hangs on it. */
static uint64_t mix(uint64_t hash, const char *text) {
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (hash ^ 0x1f) * UINT64_C(1099511628211);
}

uint64_t hfi_fingerprint(const struct hfi_job *job, const struct hfi_death *death) {
    char digit[2] = {(char)('0' + death->death_class), '\0'};
    uint64_t hash = mix(mix(UINT64_C(14695981039346656037), job->type), job->downstream);
    return mix(mix(mix(hash, digit), death->error_type), death->rule);
}

void hfi_failure_death(const struct hfi_failure *failure, const struct hfi_event *event, struct hfi_change *change) {
    struct hfi_job *job = &change->job;
    struct hfi_history *history = &change->history;
    struct hfi_death *death = &change->death;
    /* The history's message is cut at 512 bytes; the death keeps what there is [S4.4]. */
    const char *full = event->outcome && event->outcome->message[0] ? event->outcome->message
                       : event->message && event->message[0]        ? event->message
                                                                    : history->message;
    if (job->deaths < UINT32_MAX)
        job->deaths++;
    change->has_death = true;
    death->death_class = failure->death_class;
    death->quarantined = failure->quarantined;
    death->death_no = job->deaths;
    death->cause = failure->cause;
    if (failure->rule[0])
        memcpy(history->rule, failure->rule, sizeof history->rule);
    memcpy(death->rule, history->rule, sizeof death->rule);
    hfi_text_copy(death->error_type, sizeof death->error_type,
                  failure->error_type ? failure->error_type : history->error_type);
    size_t length = hfi_text_copy(death->message, sizeof death->message, failure->prefix);
    hfi_text_copy(death->message + length, sizeof death->message - length, full);
    death->detail = event->detail;
    death->fingerprint = hfi_fingerprint(job, death);
}
