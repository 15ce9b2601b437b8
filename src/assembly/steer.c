/* SPDX-License-Identifier: MIT */
/*
 * What people do to jobs, queues and downstreams through the store: cancel, requeue, pause, isolate. Must never act
 * without an actor where one is kept. Any thread but the loop's and the writer's.
 */
#include <inttypes.h>
#include <stdio.h>

#include "assembly/store_calls.h"
#include "base/text.h"
#include "holdfast/guard.h"

static int check_people(const char **actor, const char **reason, struct hf_error *error) {
    int code = hfi_given_text("actor", actor, HFI_ACTOR_MAX, true, error);
    return code != 0 ? code : hfi_given_text("reason", reason, HFI_REASON_MAX, false, error);
}

static int refuse_missing(int64_t id, struct hf_error *error) {
    return hfi_fail(error, HF_ENOENT, "job", "`holdfast job list` shows what is there", "%" PRId64 " does not exist",
                    id);
}

int hf_store_cancel_job(struct hf_store *store, int64_t id, const char *actor, const char *reason,
                        struct hf_error *error) {
    int code = check_people(&actor, &reason, error);
    if (code != 0)
        return code;
    struct hfi_op_cancel op = {
        .op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = actor, .reason = reason, .now = hfi_store_now(store)};
    code = hfi_store_do(store, &op.op, "cancel", error);
    if (code == HF_ENOENT)
        return refuse_missing(id, error);
    if (code != HF_ESTATE)
        return code;
    struct hf_job *job = NULL; /* only to name how it ended */
    const char *state = "has ended";
    if (hf_store_get_job(store, id, &job, NULL) == 0)
        state = hf_job_state_name(hf_job_look(job)->state);
    hf_job_free(job);
    return hfi_fail(error, HF_ESTATE, "job", "only jobs that have not ended can be cancelled", "%" PRId64 " is %s", id,
                    state);
}

static int refuse_requeue(const struct hfi_op_requeue *op, struct hf_error *error) {
    if (op->op.code == HF_ENOENT)
        return refuse_missing(op->id, error);
    if (op->op.code == HF_EEXIST)
        return hfi_fail(error, HF_EEXIST, "unique key", "wait for that job to end, or cancel it",
                        "job %" PRId64 " holds it", op->other_job);
    if (op->op.code != HF_ESTATE)
        return op->op.code;
    if (op->status == HF_DEAD_REDRIVEN)
        return hfi_fail(error, HF_ESTATE, "job", "look at that job",
                        "the dead letter of %" PRId64 " is already redriven as job %" PRId64, op->id, op->other_job);
    if (op->status != HF_DEAD_DEAD)
        return hfi_fail(error, HF_ESTATE, "job", NULL, "the dead letter of %" PRId64 " is already %s", op->id,
                        hf_dead_status_name(op->status));
    if (op->other_job != 0)
        return hfi_forwarded_already(error, "job", op->id, op->other_job);
    return hfi_fail(error, HF_ESTATE, "job", "only dead and quarantined jobs can be requeued", "%" PRId64 " is %s",
                    op->id, hf_job_state_name(op->was));
}

int hf_store_requeue_job(struct hf_store *store, int64_t id, const char *actor, const char *reason, unsigned flags,
                         struct hf_error *error) {
    int code = check_people(&actor, &reason, error);
    if (code != 0)
        return code;
    struct hfi_op_requeue op = {.op = {.kind = HFI_OP_REQUEUE},
                                .id = id,
                                .actor = actor,
                                .reason = reason,
                                .new_key = flags & HF_REQUEUE_NEW_KEY,
                                .force = flags & HF_REQUEUE_FORCE,
                                .now = hfi_store_now(store)};
    code = hfi_store_do(store, &op.op, "requeue", error);
    return code == 0 || code == HF_EDEADLK ? code : refuse_requeue(&op, error);
}

static int pause(struct hf_store *store, const char *queue, bool is_pause, int64_t until_us, const char *actor,
                 struct hf_error *error) {
    int code = hfi_name_check("queue", queue, HFI_NAME_MAX, error);
    if (code == 0)
        code = hfi_given_text("actor", &actor, HFI_ACTOR_MAX, true, error);
    if (code != 0)
        return code;
    struct hf_wall now = hfi_store_now(store);
    if (is_pause && until_us != 0 && until_us <= now.us)
        return hfi_fail(error, HF_EINVAL, "until", "give a time to come, or none", "that time has passed");
    struct hfi_op_pause op = {.op = {.kind = HFI_OP_PAUSE},
                              .queue = queue,
                              .actor = actor,
                              .pause = is_pause,
                              .until_us = until_us,
                              .now = now};
    code = hfi_store_do(store, &op.op, "pause", error);
    if (code == HF_ENOENT)
        return hfi_fail(error, code, "queue", "`holdfast queue list` shows what is paused", "\"%s\" is not paused",
                        queue);
    return code;
}

int hf_store_pause_queue(struct hf_store *store, const char *queue, int64_t until_us, const char *actor,
                         struct hf_error *error) {
    return pause(store, queue, true, until_us, actor, error);
}

int hf_store_resume_queue(struct hf_store *store, const char *queue, const char *actor, struct hf_error *error) {
    return pause(store, queue, false, 0, actor, error);
}

static int force(struct hf_store *store, const char *key, bool isolate, int64_t for_ms, const char *reason,
                 struct hf_error *error) {
    struct hfi_op_downstream op = {.op = {.kind = HFI_OP_DOWNSTREAM}, .key = key, .set = HFI_DOWNSTREAM_FORCED};
    int code = hfi_name_check("downstream", key, HFI_NAME_MAX, error);
    if (code != 0)
        return code;
    op.now = hfi_store_now(store);
    op.state.version = -1;
    op.state.forced = isolate;
    if (!isolate) { /* closed means closed, also when it was the breaker that opened */
        op.set |= HFI_DOWNSTREAM_PHASE;
        op.state.phase = HF_BREAKER_CLOSED;
    }
    if (for_ms > 0)
        op.state.forced_until_us = hfi_add(op.now.us, hfi_ms_to_us(for_ms));
    hfi_text_copy(op.state.reason, sizeof op.state.reason, reason);
    return hfi_store_do(store, &op.op, "downstream", error);
}

int hf_store_isolate_downstream(struct hf_store *store, const char *key, int64_t for_ms, const char *reason,
                                struct hf_error *error) {
    size_t room = sizeof((struct hfi_downstream_state *)NULL)->reason - 1;
    int code = hfi_given_text("reason", &reason, room, true, error);
    if (code == 0 && for_ms < 0)
        code = hfi_fail(error, HF_EINVAL, "for_ms", "0 = until it is closed", "negative");
    return code != 0 ? code : force(store, key, true, for_ms, reason, error);
}

int hf_store_close_downstream(struct hf_store *store, const char *key, struct hf_error *error) {
    return force(store, key, false, 0, "", error);
}
