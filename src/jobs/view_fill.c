/* SPDX-License-Identifier: MIT */
/*
 * How a stored record is shown: the words of states, what holds when nothing was given, the bounds of a page. Pure; any
 * thread.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
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
        .parent_id = job->parent_id,
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
    };
}

uint32_t hfi_page_limit(uint32_t limit) {
    return limit == 0 ? 100 : limit > 1000 ? 1000 : limit;
}

char *hfi_fingerprint_print(uint64_t fingerprint, char *text) {
    snprintf(text, 17, "%016" PRIx64, fingerprint);
    return text;
}
