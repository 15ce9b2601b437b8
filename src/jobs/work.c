/* SPDX-License-Identifier: MIT */
/*
 * What a handler can see of its execution and how it says that it ended. Must never make a success of an outcome that is
 * none, nor of an ending that could not be kept. The thread that has the work; readers any.
 */
#include "jobs/work.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

void hfi_ending_free(struct hfi_ending *ending) {
    hfi_free(ending->data);
    hfi_free(ending->detail);
    ending->data = NULL;
    ending->length = 0;
    ending->detail = NULL;
}

enum hf_result hfi_work_outcome(struct hf_work *work, const struct hf_outcome *outcome) {
    struct hfi_ending *ending = &work->ending;
    ending->outcome = *outcome;
    if (outcome->touched && outcome->kind == HF_OUTCOME_SUCCESS)
        return ending->result = HF_RESULT_OK;
    return ending->result = outcome->klass == HF_CLASS_PERMANENT || outcome->klass == HF_CLASS_POISON
                                ? HF_RESULT_PERMANENT
                                : HF_RESULT_FAILED;
}

void hfi_work_unreadable(struct hf_work *work, const char *error_type, const char *rule, const char *message) {
    struct hf_outcome *outcome = &work->ending.outcome;
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_POISON, error_type, rule);
    hfi_text_copy(outcome->message, sizeof outcome->message, message);
    outcome->stage = HF_STAGE_LOCAL;
    outcome->sent = HF_SENT_NO;
    work->ending.result = HF_RESULT_UNREADABLE;
}

/* ------------------------------------------------------------------ readers */

int64_t hf_work_job(const struct hf_work *work) {
    return work->job->id;
}

const char *hf_work_type(const struct hf_work *work) {
    return work->job->type;
}

const char *hf_work_key(const struct hf_work *work) {
    return work->key;
}

uint32_t hf_work_execution(const struct hf_work *work) {
    return work->job->executions;
}

uint32_t hf_work_max_executions(const struct hf_work *work) {
    return work->max_executions;
}

const void *hf_work_payload(const struct hf_work *work, size_t *length) {
    if (length)
        *length = work->job->payload_length;
    return work->job->payload;
}

int64_t hf_work_remaining_ms(const struct hf_work *work) {
    if (work->deadline.us == HFI_FOREVER_US)
        return INT64_MAX;
    int64_t left = hfi_sub(work->deadline.us, work->scheduler->ops->mono(work->scheduler).us);
    return left > 0 ? left / 1000 : 0;
}

bool hf_work_is_cancelled(const struct hf_work *work) {
    return atomic_load(&work->stop) != HFI_STOP_NONE;
}

int64_t hf_work_deadline_ms(const struct hf_work *work) {
    return work->deadline.us == HFI_FOREVER_US ? INT64_MAX : work->deadline.us / 1000;
}

const char *hf_work_queue(const struct hf_work *work) {
    return work->job->queue;
}

const char *hf_work_labels(const struct hf_work *work) {
    return work->type->options.labels;
}

const char *hf_work_execution_id(const struct hf_work *work) {
    return work->execution_id;
}

const char *hf_work_content_type(const struct hf_work *work) {
    return work->job->content_type;
}

const char *hf_work_tags(const struct hf_work *work) {
    return work->job->tags;
}

const char *hf_work_correlation_id(const struct hf_work *work) {
    return work->job->correlation_id;
}

const char *hf_work_trace_context(const struct hf_work *work) {
    return work->job->trace_context;
}

const void *hf_work_last_checkpoint(const struct hf_work *work, size_t *length) {
    if (length)
        *length = work->job->checkpoint_length;
    return work->job->checkpoint_length > 0 ? work->job->checkpoint : NULL;
}

struct hf_client *hf_work_client(const struct hf_work *work) {
    return work->client;
}

/* ------------------------------------------------------------------ endings */

/* False: the work of an asynchronous handler was finished by another thread, and what it said is being written. */
static bool enter(struct hf_work *work) {
    bool shared = work->type->async_handler && work->desk;
    if (shared)
        pthread_mutex_lock(&work->desk->lock);
    if (shared && work->finished) {
        pthread_mutex_unlock(&work->desk->lock);
        return false;
    }
    return true;
}

/* The last word counts: forgets the one before. */
static bool begin(struct hf_work *work) {
    if (!enter(work))
        return false;
    hfi_ending_free(&work->ending);
    work->ending.result = (enum hf_result)0;
    work->ending.delay_ms = work->ending.until_us = 0;
    work->ending.text[0] = '\0';
    work->ending.causes = 0;
    hfi_outcome_init(&work->ending.outcome);
    return true;
}

static enum hf_result end(struct hf_work *work, enum hf_result result) {
    work->ending.result = result;
    if (work->type->async_handler && work->desk)
        pthread_mutex_unlock(&work->desk->lock);
    return result;
}

#define UNSAID ((enum hf_result)0)

/* The handler's own word about a failure. What it did before nobody knows, so it proves nothing about what was sent. */
static enum hf_result fill_failed(struct hf_work *work, enum hf_class klass, const char *error_type, const char *message) {
    struct hfi_ending *ending = &work->ending;
    hfi_outcome_set(&ending->outcome, HF_OUTCOME_FAILURE, klass == HF_CLASS_PERMANENT ? HF_RETRY_NONE : HF_RETRY_LATER,
                    HF_VERDICT_NEUTRAL, klass, error_type && error_type[0] ? error_type : "handler.failed",
                    klass == HF_CLASS_PERMANENT ? "handler.permanent" : "handler.failed");
    ending->outcome.stage = HF_STAGE_HANDLER;
    ending->outcome.sent = HF_SENT_MAYBE;
    hfi_text_copy(ending->outcome.message, sizeof ending->outcome.message, message);
    size_t length = message ? strlen(message) : 0;
    if (length >= sizeof ending->outcome.message) { /* the whole of it is kept for the dead letter [S1.8] */
        size_t room = length < HFI_DETAIL_MAX / 3 ? length * 3 + 1 : HFI_DETAIL_MAX + 1;
        ending->detail = hfi_alloc(room);
        if (ending->detail)
            hfi_text_clean(ending->detail, room, message, length);
    }
    return klass == HF_CLASS_PERMANENT ? HF_RESULT_PERMANENT : HF_RESULT_FAILED;
}

static enum hf_result end_failed(struct hf_work *work, enum hf_class klass, const char *error_type, const char *message) {
    return begin(work) ? end(work, fill_failed(work, klass, error_type, message)) : UNSAID;
}

static enum hf_result fill_ok(struct hf_work *work, const void *result, size_t length) {
    if (!result)
        length = 0;
    if (length > HFI_RESULT_MAX)
        return fill_failed(work, HF_CLASS_PERMANENT, "result.too_big", "the result is longer than 64 KiB");
    if (length > 0) {
        work->ending.data = hfi_memdup(result, length);
        if (!work->ending.data)
            return fill_failed(work, HF_CLASS_TRANSIENT, "local.memory", "no memory for the result");
        work->ending.length = length;
    }
    return HF_RESULT_OK;
}

enum hf_result hf_work_ok(struct hf_work *work, const void *result, size_t length) {
    return begin(work) ? end(work, fill_ok(work, result, length)) : UNSAID;
}

enum hf_result hf_work_end_as(struct hf_work *work, const struct hf_outcome *outcome) {
    if (!outcome)
        return end_failed(work, HF_CLASS_TRANSIENT, "handler.unknown_result", "the handler ended with no outcome");
    struct hf_outcome copy = *outcome; /* it may be the one that is about to be reset */
    return begin(work) ? end(work, hfi_work_outcome(work, &copy)) : UNSAID;
}

enum hf_result hf_work_failed(struct hf_work *work, const char *error_type, const char *message) {
    return end_failed(work, HF_CLASS_TRANSIENT, error_type, message);
}

enum hf_result hf_work_permanent(struct hf_work *work, const char *error_type, const char *message) {
    return end_failed(work, HF_CLASS_PERMANENT, error_type, message);
}

enum hf_result hf_work_unreadable(struct hf_work *work, const char *message) {
    if (!begin(work))
        return UNSAID;
    hfi_work_unreadable(work, "payload.unreadable", "handler.unreadable",
                        message && message[0] ? message : "its handler cannot read the payload");
    return end(work, HF_RESULT_UNREADABLE);
}

enum hf_result hf_work_cause(struct hf_work *work, const char *error_type) {
    struct hfi_ending *ending = &work->ending;
    if (!enter(work))
        return UNSAID;
    if (ending->causes++ == 0)
        hfi_text_copy(ending->cause, sizeof ending->cause, error_type);
    return end(work, ending->result);
}

enum hf_result hf_work_snooze(struct hf_work *work, int64_t for_ms) {
    if (!begin(work))
        return UNSAID;
    work->ending.delay_ms = for_ms > 0 ? for_ms : 0;
    return end(work, HF_RESULT_SNOOZE);
}

enum hf_result hf_work_snooze_until(struct hf_work *work, int64_t at_us) {
    if (!begin(work))
        return UNSAID;
    work->ending.until_us = at_us > 0 ? at_us : 1;
    return end(work, HF_RESULT_SNOOZE);
}

enum hf_result hf_work_cancel(struct hf_work *work, const char *reason) {
    if (!begin(work))
        return UNSAID;
    hfi_text_copy(work->ending.text, sizeof work->ending.text, reason);
    return end(work, HF_RESULT_CANCEL);
}

/* ------------------------------------------------------------------ the last word */

void hfi_work_unknown(struct hf_work *work, const char *type, const char *message) {
    hfi_ending_free(&work->ending);
    hfi_outcome_init(&work->ending.outcome);
    work->ending.result = fill_failed(work, HF_CLASS_TRANSIENT, type, message);
    hfi_text_copy(work->ending.outcome.rule, sizeof work->ending.outcome.rule, type);
}

bool hfi_result_known(enum hf_result result) {
    return result == HF_RESULT_OK || result == HF_RESULT_FAILED || result == HF_RESULT_PERMANENT ||
           result == HF_RESULT_SNOOZE || result == HF_RESULT_CANCEL || result == HF_RESULT_UNREADABLE;
}

void hfi_work_judge(struct hf_work *work, enum hf_result returned) {
    enum hf_result recorded = work->ending.result;
    bool known = hfi_result_known(recorded);
    if (known && returned == recorded)
        return;
    hfi_work_unknown(work, "handler.unknown_result",
                     known ? "the handler returned something else than it was given"
                           : "the handler returned without saying how it ended");
}
