/* SPDX-License-Identifier: MIT */
/*
 * The node's half of an isolated execution: what the process is told, and what it says. Must never take an end that is
 * not whole, or not of this version, nor a number or text as it comes: the process may have been about to crash. Loop
 * thread.
 */
#include "jobs/kinds/isolated.h"

#include <string.h>

#include "base/alloc.h"
#include "jobs/kinds/isolated_wire.h"

static void add_text(struct hfi_bytes *head, const char *text) {
    text = text ? text : "";
    hfi_bytes_add(head, text, strlen(text) + 1);
}

bool hfi_isolated_pack(const struct hf_work *work, struct hfi_bytes *head) {
    const struct hfi_job *job = work->job;
    struct hfi_isolated_job wire = {.magic = HFI_ISOLATED_MAGIC, .job = job->id, .execution = job->executions,
                                    .max_executions = work->max_executions, .left_ms = hf_work_remaining_ms(work),
                                    .checkpoint = job->checkpoint_length, .payload = job->payload_length};
    hfi_bytes_init(head, (size_t)1 << 20);
    hfi_bytes_add(head, &wire, sizeof wire);
    const char *const texts[HFI_ISOLATED_TEXTS] = {job->type, job->queue, work->type->options.labels, work->key,
                                                   work->execution_id, job->content_type, job->tags, job->correlation_id,
                                                   job->trace_context};
    for (size_t i = 0; i < HFI_ISOLATED_TEXTS; i++)
        add_text(head, texts[i]);
    hfi_bytes_add(head, job->checkpoint, job->checkpoint_length);
    return !head->failed;
}

void hfi_isolated_take(struct hf_work *work, struct hfi_bytes *said) {
    struct hfi_isolated_record record;
    struct hfi_isolated_progress progress;
    size_t at = 0;
    for (; said->length - at >= sizeof record + sizeof progress; at += sizeof record + sizeof progress) {
        memcpy(&record, said->data + at, sizeof record);
        if (record.kind != HFI_ISOLATED_PROGRESS || record.length != sizeof progress)
            break;
        memcpy(&progress, said->data + at + sizeof record, sizeof progress);
        progress.text[sizeof progress.text - 1] = '\0';
        hf_work_progress(work, progress.n, progress.text);
    }
    if (at == 0)
        return;
    memmove(said->data, said->data + at, said->length - at);
    said->length -= at;
}

/* The end and what follows it; false: not whole. */
static bool read_end(const struct hfi_bytes *said, struct hfi_isolated_end *end) {
    struct hfi_isolated_record record;
    if (said->failed || said->length < sizeof record + sizeof *end)
        return false;
    memcpy(&record, said->data, sizeof record);
    memcpy(end, said->data + sizeof record, sizeof *end);
    size_t rest = said->length - sizeof record - sizeof *end;
    return record.kind == HFI_ISOLATED_END && record.length == sizeof *end && strncmp(end->magic, HFI_ISOLATED_MAGIC, sizeof end->magic) == 0 &&
           end->result_length <= HFI_RESULT_MAX && end->detail_length <= HFI_DETAIL_MAX &&
           rest == end->result_length + end->detail_length;
}

static void clean(char *to, size_t room, const char *from, size_t size) {
    hfi_text_clean(to, room, from, strnlen(from, size));
}

/* As one of hf_work_failed … would have made it. */
static void fill_outcome(struct hf_outcome *outcome, const struct hfi_isolated_end *end) {
    hfi_outcome_init(outcome);
    outcome->touched = end->touched != 0;
    outcome->kind = end->kind <= HF_OUTCOME_REJECTED ? (enum hf_outcome_kind)end->kind : HF_OUTCOME_FAILURE;
    outcome->retry = end->retry <= HF_RETRY_LATER ? (enum hf_retry)end->retry : HF_RETRY_LATER;
    outcome->verdict = end->verdict <= HF_VERDICT_NEUTRAL ? (enum hf_verdict)end->verdict : HF_VERDICT_NEUTRAL;
    outcome->klass = end->klass <= HF_CLASS_POISON ? (enum hf_class)end->klass : HF_CLASS_TRANSIENT;
    outcome->stage = HF_STAGE_HANDLER;
    outcome->sent = end->sent <= HF_SENT_YES ? (enum hf_sent)end->sent : HF_SENT_MAYBE;
    outcome->native = end->native;
    outcome->attempts = end->attempts;
    outcome->retry_after_ms = end->retry_after_ms < 0 ? -1 : end->retry_after_ms;
    clean(outcome->error_type, sizeof outcome->error_type, end->error_type, sizeof end->error_type);
    clean(outcome->rule, sizeof outcome->rule, end->rule, sizeof end->rule);
    clean(outcome->message, sizeof outcome->message, end->message, sizeof end->message);
}

static bool known(uint32_t result) {
    return result == HF_RESULT_OK || result == HF_RESULT_FAILED || result == HF_RESULT_PERMANENT ||
           result == HF_RESULT_SNOOZE || result == HF_RESULT_CANCEL;
}

bool hfi_isolated_end(struct hf_work *work, const struct hfi_bytes *said) {
    struct hfi_ending *ending = &work->ending;
    struct hfi_isolated_end end;
    if (!read_end(said, &end) || !known(end.result))
        return false;
    const char *data = said->data + sizeof(struct hfi_isolated_record) + sizeof end;
    fill_outcome(&ending->outcome, &end);
    ending->result = (enum hf_result)end.result;
    ending->delay_ms = end.delay_ms;
    ending->until_us = end.until_us;
    ending->causes = end.causes;
    clean(ending->cause, sizeof ending->cause, end.cause, sizeof end.cause);
    clean(ending->text, sizeof ending->text, end.text, sizeof end.text);
    if (end.detail_length > 0 && (ending->detail = hfi_alloc(end.detail_length + 1)) != NULL)
        hfi_text_clean(ending->detail, end.detail_length + 1, data + end.result_length, end.detail_length);
    if (end.result_length > 0 && end.result == HF_RESULT_OK) {
        ending->data = hfi_memdup(data, end.result_length);
        if (ending->data == NULL) {
            hfi_work_unknown(work, "local.memory", "no memory for its result");
            return true;
        }
        ending->length = end.result_length;
    }
    return true;
}
