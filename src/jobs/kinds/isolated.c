/* SPDX-License-Identifier: MIT */
/*
 * The node's half of an isolated execution: what the process is told, and what it says. Must never take an end that is
 * not whole, or not of this version, nor a number or text as it comes, nor wait for the process: it may have been about to
 * crash, or mean no good. Loop thread.
 */
#include "jobs/kinds/isolated.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "jobs/kinds/isolated_wire.h"

#define WAITS_MAX 64 /* checkpoints of one execution with the store; each is at most HF_CHECKPOINT_MAX */

/* A checkpoint that the store has. It outlives the process, and then nobody hears the answer. */
struct hfi_isolated_wait {
    struct hfi_isolated *isolated; /* NULL: gone */
    uint64_t number;
    struct hfi_isolated_wait *next;
};

static void add_text(struct hfi_bytes *head, const char *text) {
    text = text ? text : "";
    hfi_bytes_add(head, text, strlen(text) + 1);
}

bool hfi_isolated_pack(const struct hf_work *work, struct hfi_bytes *head) {
    const struct hfi_job *job = work->job;
    const struct hf_type_options *type = &work->type->options;
    struct hfi_isolated_job wire;
    memset(&wire, 0, sizeof wire);
    memcpy(wire.magic, HFI_ISOLATED_MAGIC, sizeof HFI_ISOLATED_MAGIC);
    wire.protocol = HFI_ISOLATED_PROTOCOL;
    wire.execution = job->executions;
    wire.max_executions = work->max_executions;
    wire.repeatable = type->repeatable;
    wire.no_idempotency_key = type->no_idempotency_key;
    wire.job = job->id;
    wire.deadline_us = work->deadline.us;
    wire.heartbeat_timeout_ms = type->heartbeat_timeout_ms;
    wire.checkpoint = job->checkpoint_length;
    wire.payload = job->payload_length;
    hfi_bytes_init(head, (size_t)1 << 20);
    hfi_bytes_add(head, &wire, sizeof wire);
    const char *const texts[HFI_ISOLATED_TEXTS] = {job->type, job->queue, type->labels, work->key,
                                                   work->execution_id, job->content_type, job->tags, job->correlation_id,
                                                   job->trace_context};
    for (size_t i = 0; i < HFI_ISOLATED_TEXTS; i++)
        add_text(head, texts[i]);
    hfi_bytes_add(head, job->checkpoint, job->checkpoint_length);
    return !head->failed;
}

void hfi_isolated_begin(struct hfi_isolated *isolated, struct hf_work *work, int fd) {
    memset(isolated, 0, sizeof *isolated);
    isolated->work = work;
    isolated->fd = fd;
    hfi_bytes_init(&isolated->said, sizeof(struct hfi_frame_head) + HFI_FRAME_MAX);
    hfi_bytes_init(&isolated->end, HFI_FRAME_MAX);
}

void hfi_isolated_free(struct hfi_isolated *isolated) {
    for (struct hfi_isolated_wait *wait = isolated->waiting; wait; wait = wait->next)
        wait->isolated = NULL;
    isolated->waiting = NULL;
    hfi_bytes_free(&isolated->said);
    hfi_bytes_free(&isolated->end);
}

/* ------------------------------------------------------------------ to the process */

/* False: it does not read what it is told, and no answer may wait for that. One that is dying is no such. */
static bool tell(struct hfi_isolated *isolated, uint32_t kind, const void *body, uint32_t length) {
    char whole[sizeof(struct hfi_frame_head) + sizeof(struct hfi_frame_stored)];
    struct hfi_frame_head head = {kind, length};
    memcpy(whole, &head, sizeof head);
    memcpy(whole + sizeof head, body, length);
    ssize_t sent;
    do
        sent = send(isolated->fd, whole, sizeof head + length, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)(sizeof head + length) || (sent < 0 && (errno == EPIPE || errno == ECONNRESET));
}

static bool breaks(struct hfi_isolated *isolated, const char *why) {
    if (!isolated->fault)
        isolated->fault = why;
    return false;
}

void hfi_isolated_stop(struct hfi_isolated *isolated) {
    uint32_t why = (uint32_t)atomic_load(&isolated->work->stop);
    if (isolated->greeted && !isolated->ended)
        tell(isolated, HFI_FRAME_STOP, &why, sizeof why);
}

/* ------------------------------------------------------------------ checkpoints */

static bool answer(struct hfi_isolated *isolated, uint64_t number, int code) {
    struct hfi_frame_stored stored = {.number = number, .code = code};
    return tell(isolated, HFI_FRAME_STORED, &stored, sizeof stored) || breaks(isolated, "it reads no answers");
}

static void stored(int code, void *user) {
    struct hfi_isolated_wait *wait = user;
    struct hfi_isolated *isolated = wait->isolated;
    if (isolated) {
        struct hfi_isolated_wait **at = &isolated->waiting;
        while (*at != wait)
            at = &(*at)->next;
        *at = wait->next;
        isolated->waits--;
        answer(isolated, wait->number, code);
    }
    hfi_free(wait);
}

static bool checkpoint(struct hfi_isolated *isolated, const char *body, size_t length) {
    uint64_t number;
    memcpy(&number, body, sizeof number);
    if (isolated->waits >= WAITS_MAX)
        return answer(isolated, number, HF_EBUSY);
    struct hfi_isolated_wait *wait = hfi_alloc(sizeof *wait);
    if (!wait)
        return answer(isolated, number, HF_ENOMEM);
    *wait = (struct hfi_isolated_wait){.isolated = isolated, .number = number, .next = isolated->waiting};
    int code = hf_work_checkpoint_start(isolated->work, body + sizeof number, length - sizeof number, stored, wait);
    if (code != 0) {
        hfi_free(wait);
        return answer(isolated, number, code);
    }
    isolated->waiting = wait;
    isolated->waits++;
    return true;
}

/* ------------------------------------------------------------------ frames */

static bool progress(struct hfi_isolated *isolated, const char *body) {
    struct hfi_frame_progress wire;
    memcpy(&wire, body, sizeof wire);
    wire.text[sizeof wire.text - 1] = '\0';
    hf_work_progress(isolated->work, wire.n, wire.text);
    return true;
}

static bool greet(struct hfi_isolated *isolated, const char *body) {
    struct hfi_frame_hello hello;
    memcpy(&hello, body, sizeof hello);
    if (strncmp(hello.magic, HFI_ISOLATED_MAGIC, sizeof hello.magic) != 0 || hello.protocol != HFI_ISOLATED_PROTOCOL)
        return breaks(isolated, "it is of another version of holdfast");
    isolated->greeted = true;
    if (atomic_load(&isolated->work->stop) != HFI_STOP_NONE)
        hfi_isolated_stop(isolated); /* told before it could listen */
    return true;
}

/* Could a frame of this kind have this length? */
static bool fits(const struct hfi_frame_head *head) {
    switch (head->kind) {
    case HFI_FRAME_HELLO:
        return head->length == sizeof(struct hfi_frame_hello);
    case HFI_FRAME_PROGRESS:
        return head->length == sizeof(struct hfi_frame_progress);
    case HFI_FRAME_HEARTBEAT:
        return head->length == 0;
    case HFI_FRAME_CHECKPOINT:
        return head->length >= sizeof(uint64_t) && head->length <= sizeof(uint64_t) + HF_CHECKPOINT_MAX;
    case HFI_FRAME_END:
        return head->length >= sizeof(struct hfi_frame_end) && head->length <= HFI_FRAME_MAX;
    default:
        return false;
    }
}

static bool take(struct hfi_isolated *isolated, const struct hfi_frame_head *head, const char *body) {
    if (head->kind != HFI_FRAME_HELLO)
        hf_work_heartbeat(isolated->work); /* whatever it says, it lives */
    switch (head->kind) {
    case HFI_FRAME_HELLO:
        return greet(isolated, body);
    case HFI_FRAME_PROGRESS:
        return progress(isolated, body);
    case HFI_FRAME_CHECKPOINT:
        return checkpoint(isolated, body, head->length);
    case HFI_FRAME_END:
        isolated->ended = true;
        hfi_bytes_add(&isolated->end, body, head->length);
        return true;
    default:
        return true;
    }
}

/* The frame at `data`, of `length` bytes: how long it is; 0: it is not whole; SIZE_MAX: it is none, or must not stand here. */
static size_t next(struct hfi_isolated *isolated, const char *data, size_t length) {
    struct hfi_frame_head head;
    if (isolated->ended && length > 0) {
        breaks(isolated, "it spoke after its end");
        return SIZE_MAX;
    }
    if (length < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    if (!fits(&head) || isolated->greeted != (head.kind != HFI_FRAME_HELLO)) {
        breaks(isolated, "it wrote something else than a handler says");
        return SIZE_MAX;
    }
    if (length - sizeof head < head.length)
        return 0;
    return take(isolated, &head, data + sizeof head) ? sizeof head + head.length : SIZE_MAX;
}

bool hfi_isolated_feed(struct hfi_isolated *isolated, const char *data, size_t length) {
    struct hfi_bytes *said = &isolated->said;
    while (length > 0 && !isolated->fault) {
        size_t room = said->max - said->length, piece = length < room ? length : room, at = 0, size = 0;
        hfi_bytes_add(said, data, piece);
        if (said->failed)
            return breaks(isolated, "no memory for what it says");
        data += piece;
        length -= piece;
        while (!isolated->fault && (size = next(isolated, said->data + at, said->length - at)) != 0 && size != SIZE_MAX)
            at += size;
        memmove(said->data, said->data + at, said->length - at);
        said->length -= at;
    }
    return !isolated->fault;
}

/* ------------------------------------------------------------------ its end */

static void clean(char *to, size_t room, const char *from, size_t size) {
    hfi_text_clean(to, room, from, strnlen(from, size));
}

/* As one of hf_work_failed … would have made it. */
static void fill_outcome(struct hf_outcome *outcome, const struct hfi_frame_end *end) {
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

bool hfi_isolated_end(struct hfi_isolated *isolated) {
    struct hf_work *work = isolated->work;
    struct hfi_ending *ending = &work->ending;
    struct hfi_frame_end end;
    if (!isolated->ended || isolated->fault || isolated->end.failed)
        return false;
    memcpy(&end, isolated->end.data, sizeof end);
    const char *data = isolated->end.data + sizeof end;
    size_t rest = isolated->end.length - sizeof end;
    if (!hfi_result_known((enum hf_result)end.result) || end.result_length > HFI_RESULT_MAX ||
        end.detail_length > HFI_DETAIL_MAX || rest != end.result_length + end.detail_length)
        return breaks(isolated, "its end is none that a handler can say");
    fill_outcome(&ending->outcome, &end);
    ending->result = (enum hf_result)end.result;
    ending->delay_ms = end.delay_ms;
    ending->until_us = end.until_us;
    ending->causes = end.causes;
    clean(ending->cause, sizeof ending->cause, end.cause, sizeof end.cause);
    clean(ending->text, sizeof ending->text, end.text, sizeof end.text);
    atomic_store(&work->attempts, end.calls);
    atomic_store(&work->may_have_sent, end.may_have_sent != 0);
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
