/* SPDX-License-Identifier: MIT */
/*
 * Dead letters for people: read them, redrive, resolve or discard them, on the record. Must never settle without an
 * actor. Any thread but the loop's and the writer's.
 */
#include "holdfast/dead.h"

#include <inttypes.h>

#include "assembly/store_calls.h"
#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/letter.h"

int hf_dead_list_open(struct hf_store *store, const struct hf_dead_filter *given, struct hf_dead_list **list,
                      struct hf_error *error) {
    struct hf_dead_filter filter;
    *list = NULL;
    hf_dead_filter_init(&filter);
    int code = hfi_store_may_block(store, "hf_dead_list_open", error);
    if (code == 0)
        code = hfi_given_options("dead letter filter", &filter, (uint32_t)sizeof filter, given, error);
    return code != 0 ? code : store->port->ops->list_dead(store->port, &filter, list, error);
}

int hf_dead_get(struct hf_store *store, int64_t id, struct hf_dead **dead, struct hf_error *error) {
    *dead = NULL;
    int code = hfi_store_may_block(store, "hf_dead_get", error);
    return code != 0 ? code : store->port->ops->get_dead(store->port, id, dead, error);
}

static int check_action(const struct hf_dead_action *given, struct hf_dead_action *action, struct hf_error *error) {
    hf_dead_action_init(action);
    int code = hfi_given_options("action", action, (uint32_t)sizeof *action, given, error);
    if (code == 0)
        code = hfi_given_text("actor", &action->actor, HFI_ACTOR_MAX, true, error);
    if (code == 0)
        code = hfi_given_text("reason", &action->reason, HFI_REASON_MAX, false, error);
    if (code == 0 && !action->payload && action->payload_length > 0)
        code = hfi_fail(error, HF_EINVAL, "payload", NULL, "NULL, but payload_length is %zu", action->payload_length);
    return code;
}

static int refuse_missing(int64_t id, struct hf_error *error) {
    return hfi_fail(error, HF_ENOENT, "dead letter", "`holdfast dead list` shows what is there",
                    "%" PRId64 " does not exist", id);
}

static int refuse_settled(int64_t id, int32_t status, int64_t new_job, struct hf_error *error) {
    if (status == HF_DEAD_REDRIVEN)
        return hfi_fail(error, HF_ESTATE, "dead letter", "look at that job",
                        "%" PRId64 " is already redriven as job %" PRId64, id, new_job);
    return hfi_fail(error, HF_ESTATE, "dead letter", NULL, "%" PRId64 " is already %s", id,
                    hf_dead_status_name(status));
}

static int refuse_cut(int64_t id, struct hf_error *error) {
    return hfi_fail(error, HF_ESTATE, "dead letter", "bring the whole one, with --payload or --file and --new-key",
                    "%" PRId64 " holds the beginning of its payload alone, which was over the limit", id);
}

static int refuse_redrive(const struct hfi_op_redrive *op, const struct hf_store *store, struct hf_error *error) {
    switch (op->op.code) {
    case HF_ENOENT:
        return refuse_missing(op->dead_id, error);
    case HF_ESTATE:
        if (op->stray)
            return hfi_forward_stray(error, op->dead_id);
        if (op->status == HF_DEAD_DEAD && op->new_job != 0)
            return hfi_forwarded_already(error, "dead letter", op->dead_id, op->new_job);
        return op->status == HF_DEAD_DEAD ? refuse_cut(op->dead_id, error)
                                          : refuse_settled(op->dead_id, op->status, op->new_job, error);
    case HF_EEXIST:
        return hfi_fail(error, HF_EEXIST, "unique key", "wait for that job to end, or cancel it",
                        "job %" PRId64 " holds it", op->new_job);
    case HF_EINVAL:
        return hfi_fail(error, HF_EINVAL, "payload", "ask for a new key too",
                        "another payload under the old idempotency key would be taken for a repetition");
    case HF_ETOOBIG:
        return hfi_fail(error, HF_ETOOBIG, "payload", "store it elsewhere and pass its id",
                        "%zu bytes, at most %" PRIu32 " fit", op->action->payload_length,
                        store->port->options.payload_max);
    default:
        return op->op.code;
    }
}

int hf_dead_redrive(struct hf_store *store, int64_t id, const struct hf_dead_action *given, int64_t *new_job,
                    struct hf_error *error) {
    struct hf_dead_action action;
    int code = check_action(given, &action, error);
    if (code != 0)
        return code;
    struct hfi_op_redrive op = {
        .op = {.kind = HFI_OP_REDRIVE}, .dead_id = id, .action = &action, .now = hfi_store_now(store)};
    code = hfi_store_do(store, &op.op, "redrive", error);
    if (code == HF_EDEADLK)
        return code;
    if (code != 0)
        return refuse_redrive(&op, store, error);
    if (new_job)
        *new_job = op.new_job;
    return 0;
}

static int settle(struct hf_store *store, int64_t id, enum hf_dead_status status, const struct hf_dead_action *given,
                  struct hf_error *error) {
    struct hf_dead_action action;
    int code = check_action(given, &action, error);
    if (code != 0)
        return code;
    struct hfi_op_settle op = {
        .op = {.kind = HFI_OP_SETTLE}, .dead_id = id, .status = status, .action = &action, .now = hfi_store_now(store)};
    code = hfi_store_do(store, &op.op, hf_dead_status_name((int)status), error);
    if (code == HF_ENOENT)
        return refuse_missing(id, error);
    if (code != HF_ESTATE)
        return code;
    struct hf_dead *dead = NULL; /* only to name the job it was redriven to */
    int64_t new_job = 0;
    if (op.was == HF_DEAD_REDRIVEN && hf_dead_get(store, id, &dead, NULL) == 0)
        new_job = hf_dead_look(dead)->new_job_id;
    hf_dead_free(dead);
    return refuse_settled(id, op.was, new_job, error);
}

int hf_dead_resolve(struct hf_store *store, int64_t id, const struct hf_dead_action *action, struct hf_error *error) {
    return settle(store, id, HF_DEAD_RESOLVED, action, error);
}

int hf_dead_discard(struct hf_store *store, int64_t id, const struct hf_dead_action *action, struct hf_error *error) {
    return settle(store, id, HF_DEAD_DISCARDED, action, error);
}

int hf_dead_check(const struct hf_dead_view *letter, struct hf_error *error) {
    return hfi_letter_check(letter, error);
}

int hf_dead_import(struct hf_store *store, const struct hf_dead_view *letters, size_t count, const char *actor, int64_t *ids,
                   bool *existed, struct hf_error *error) {
    int code = hfi_given_text("actor", &actor, HFI_ACTOR_MAX, true, error);
    if (code == 0 && count > HF_DEAD_IMPORT_MAX)
        code = hfi_fail(error, HF_ETOOBIG, "dead letters", "bring them in parts", "%zu, at most %d fit", count, HF_DEAD_IMPORT_MAX);
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = hfi_letter_check(&letters[i], error);
        if (code != 0 && error)
            error->line = (int)i + 1;
    }
    if (code != 0 || count == 0)
        return code;
    struct hfi_op_import op = {.op = {.kind = HFI_OP_IMPORT},
                               .letters = letters,
                               .count = count,
                               .actor = actor,
                               .now = hfi_store_now(store),
                               .ids = ids,
                               .existed = existed};
    return hfi_store_do(store, &op.op, "import", error);
}
