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

/* The last word counts: forgets the one before. */
static void begin(struct hf_work *work) {
    hfi_ending_free(&work->ending);
    work->ending.result = (enum hf_result)0;
    work->ending.delay_ms = 0;
    work->ending.text[0] = '\0';
    hfi_outcome_init(&work->ending.outcome);
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

struct hf_client *hf_work_client(const struct hf_work *work) {
    return work->client;
}

/* ------------------------------------------------------------------ endings */

/* The handler's own word about a failure. What it did before nobody knows, so it proves nothing about what was sent. */
static enum hf_result end_failed(struct hf_work *work, enum hf_class klass, const char *error_type, const char *message) {
    struct hfi_ending *ending = &work->ending;
    begin(work);
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
    return ending->result = klass == HF_CLASS_PERMANENT ? HF_RESULT_PERMANENT : HF_RESULT_FAILED;
}

enum hf_result hf_work_ok(struct hf_work *work, const void *result, size_t length) {
    begin(work);
    if (!result)
        length = 0;
    if (length > HFI_RESULT_MAX)
        return end_failed(work, HF_CLASS_PERMANENT, "result.too_big", "the result is longer than 64 KiB");
    if (length > 0) {
        work->ending.data = hfi_memdup(result, length);
        if (!work->ending.data)
            return end_failed(work, HF_CLASS_TRANSIENT, "local.memory", "no memory for the result");
        work->ending.length = length;
    }
    return work->ending.result = HF_RESULT_OK;
}

enum hf_result hf_work_end_as(struct hf_work *work, const struct hf_outcome *outcome) {
    if (!outcome)
        return end_failed(work, HF_CLASS_TRANSIENT, "handler.unknown_result", "the handler ended with no outcome");
    struct hf_outcome copy = *outcome; /* it may be the one that is about to be reset */
    begin(work);
    return hfi_work_outcome(work, &copy);
}

enum hf_result hf_work_failed(struct hf_work *work, const char *error_type, const char *message) {
    return end_failed(work, HF_CLASS_TRANSIENT, error_type, message);
}

enum hf_result hf_work_permanent(struct hf_work *work, const char *error_type, const char *message) {
    return end_failed(work, HF_CLASS_PERMANENT, error_type, message);
}

enum hf_result hf_work_snooze(struct hf_work *work, int64_t for_ms) {
    begin(work);
    work->ending.delay_ms = for_ms > 0 ? for_ms : 0;
    return work->ending.result = HF_RESULT_SNOOZE;
}

enum hf_result hf_work_cancel(struct hf_work *work, const char *reason) {
    begin(work);
    hfi_text_copy(work->ending.text, sizeof work->ending.text, reason);
    return work->ending.result = HF_RESULT_CANCEL;
}
