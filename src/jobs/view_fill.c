/* SPDX-License-Identifier: MIT */
/*
 * How a stored record is shown: the words of states, what holds when nothing was given, the bounds of a page. Pure; any
 * thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "holdfast/guard.h"
#include "jobs/transition.h"
#include "jobs/views.h"

const char *hf_job_state_name(int state) {
    switch (state) {
#define NAME(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return text;
        HF_JOB_STATE_MAP(NAME)
    default:
        return "unknown";
    }
}

const char *hf_dead_status_name(int status) {
    switch (status) {
        HF_DEAD_STATUS_MAP(NAME)
    default:
        return "unknown";
    }
}

const char *hf_death_class_name(int death_class) {
    switch (death_class) {
        HF_DEATH_CLASS_MAP(NAME)
#undef NAME
    default:
        return "unknown";
    }
}

const char *hf_alert_kind_name(int kind) {
    static const char *const names[] = {"one", "summary", "digest"};
    return kind >= 0 && kind <= HF_ALERT_DIGEST ? names[kind] : "unknown";
}

const char *hf_alert_state_name(int state) {
    static const char *const names[] = {"unsent", "sent", "undelivered", "attached", "gone"};
    return state >= 0 && state <= HF_ALERT_GONE ? names[state] : "unknown";
}

char *hfi_idempotency_key(const struct hfi_job *job, const char *uuid, char *key) {
    if (job->idempotency_key && job->idempotency_key[0])
        hfi_text_copy(key, HFI_IDEMPOTENCY_ROOM, job->idempotency_key);
    else
        snprintf(key, HFI_IDEMPOTENCY_ROOM, "%s-%" PRId64, uuid, job->root_id);
    return key;
}

void hfi_job_view_fill(struct hf_job_view *view, const struct hfi_job *job, const char *owner, const char *uuid,
                       char *key) {
    bool explicit = job->max_executions > 0;
    uint32_t policy = job->policy ? job->policy->max_executions : 0;
    *view = (struct hf_job_view){
        .size = (uint32_t)sizeof *view,
        .state = job->state,
        .id = job->id,
        .type = job->type,
        .queue = job->queue,
        .downstream = job->downstream,
        .limit_key = job->limit_key,
        .unique_key = job->unique_key,
        .idempotency_key = hfi_idempotency_key(job, uuid, key),
        .correlation_id = job->correlation_id,
        .tags = job->tags,
        .content_type = job->content_type,
        .owner = owner,
        .not_before_reason = job->reason,
        .error_class = job->error_class,
        .error_type = job->error_type,
        .error_message = job->error_message,
        .cancel_reason = job->cancel_reason,
        .payload = job->payload,
        .payload_length = job->payload_length,
        .result = job->result,
        .result_length = job->result_length,
        .priority = job->priority,
        .executions = job->executions,
        .failures = job->failures,
        .snoozes = job->snoozes,
        .crashes = job->crashes,
        .give_backs = job->give_backs,
        .deaths = job->deaths,
        .max_executions = explicit ? job->max_executions : policy,
        .max_executions_explicit = explicit,
        .epoch = job->epoch,
        .root_id = job->root_id,
        .parent_id = job->parent_id > 0 ? job->parent_id : 0,
        .run_at_us = job->run_at_us,
        .expires_at_us = job->expires_at_us,
        .created_at_us = job->created_at_us,
        .started_at_us = job->started_at_us,
        .finished_at_us = job->finished_at_us,
        .cancel_requested_at_us = job->cancel_requested_at_us,
        .progress = job->progress,
        .progress_text = job->progress_text,
        .checkpoint = job->checkpoint,
        .checkpoint_length = job->checkpoint_length,
        .shown = hf_job_state_name(job->state),
        .source = job->source,
        .source_message_id = job->source_message_id,
        .cancel_by = job->cancel_by,
    };
}

const char *hf_job_shown_name(int shown) {
    static const char *const names[] = {
#define TEXT(name, text) text,
        HF_JOB_SHOWN_MAP(TEXT)
#undef TEXT
    };
    return shown >= 0 && (size_t)shown < sizeof names / sizeof *names ? names[shown] : "unknown";
}

/* Somebody wanted it to run then; a failure had no part in it. */
static bool is_planned(const char *reason) {
    static const char *const plans[] = {"", "scheduled", "snooze", "requeue", "redrive", "parents"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(plans[i], reason) == 0)
            return true;
    return false;
}

int hfi_job_shown(const struct hfi_job *job, bool kept, struct hf_wall now) {
    if (job->state != HF_JOB_PENDING)
        return -1;
    if (job->run_at_us <= now.us)
        return kept ? HF_JOB_SHOWN_PARKED : HF_JOB_SHOWN_READY;
    if (hfi_dotted_prefix("breaker", job->reason) && job->waiting_since_us != 0)
        return HF_JOB_SHOWN_PARKED;
    return job->failures > 0 && !is_planned(job->reason) ? HF_JOB_SHOWN_RETRYING : HF_JOB_SHOWN_SCHEDULED;
}

const char *hfi_job_shown_text(const struct hfi_job *job, bool kept, struct hf_wall now) {
    int shown = hfi_job_shown(job, kept, now);
    return shown >= 0 ? hf_job_shown_name(shown) : hf_job_state_name(job->state);
}

const char *hfi_history_shown(const struct hfi_history *history) {
    bool later = history->next_run_at_us > history->ended_at_us;
    if (history->state != HF_JOB_PENDING)
        return hf_job_state_name(history->state);
    if (history->event == HFI_EVENT_FAILED || history->event == HFI_EVENT_LAPSED)
        return hf_job_shown_name(HF_JOB_SHOWN_RETRYING);
    if (history->event == HFI_EVENT_REJECTED && hfi_dotted_prefix("breaker", history->error_type))
        return hf_job_shown_name(HF_JOB_SHOWN_PARKED);
    return hf_job_shown_name(later ? HF_JOB_SHOWN_SCHEDULED : HF_JOB_SHOWN_READY);
}

static bool is_text(const char *wanted, const char *text) {
    return !wanted || strcmp(wanted, text) == 0;
}

bool hfi_job_fits(const struct hfi_job *job, const struct hf_job_filter *filter, bool kept, struct hf_wall now) {
    return (filter->state < 0 || job->state == filter->state) && is_text(filter->type, job->type) &&
           is_text(filter->queue, job->queue) && job->created_at_us >= filter->created_since_us &&
           (filter->shown < 0 || hfi_job_shown(job, kept, now) == filter->shown) &&
           (!filter->tag || hfi_tag_has(job->tags, filter->tag)) &&
           is_text(filter->correlation_id, job->correlation_id) && is_text(filter->limit_key, job->limit_key) &&
           is_text(filter->source_message_id, job->source_message_id);
}

void hfi_history_view_fill(struct hf_history_view *view, const struct hfi_history *history, const char *node) {
    bool known = history->breaker > 0;
    *view = (struct hf_history_view){
        .execution = history->execution,
        .started_at_us = history->started_at_us,
        .ended_at_us = history->ended_at_us,
        .node = node,
        .event = hfi_event_name(history->event),
        .error_class = history->error_class,
        .error_type = history->error_type,
        .error_message = history->message,
        .rule = history->rule,
        .attempts = history->attempts,
        .retries = history->retries,
        .next_run_at_us = history->next_run_at_us,
        .shown = hfi_history_shown(history),
        .breaker = known ? hf_breaker_state_name((enum hf_breaker_state)(history->breaker - 1)) : "",
        .resolve_us = history->resolve_us,
        .connect_us = history->connect_us,
        .tls_us = history->tls_us,
        .first_byte_us = history->first_byte_us,
        .total_us = history->total_us,
    };
}

uint32_t hfi_page_limit(uint32_t limit) {
    return limit == 0 ? 100 : limit > 1000 ? 1000 : limit;
}

char *hfi_fingerprint_print(uint64_t fingerprint, char *text) {
    snprintf(text, 17, "%016" PRIx64, fingerprint);
    return text;
}

bool hfi_dead_fits(const struct hf_dead_view *view, const struct hf_dead_filter *filter) {
    return (filter->status < 0 || view->status == filter->status) &&
           (filter->death_class < 0 || view->death_class == filter->death_class) &&
           (!filter->type || strcmp(view->type, filter->type) == 0) &&
           (!filter->queue || strcmp(view->queue, filter->queue) == 0) &&
           (!filter->error_type || hfi_dotted_prefix(filter->error_type, view->error_type)) &&
           (!filter->fingerprint || strcmp(view->fingerprint, filter->fingerprint) == 0) &&
           view->dead_at_us >= filter->since_us && (filter->task_id == 0 || view->task_id == filter->task_id);
}
