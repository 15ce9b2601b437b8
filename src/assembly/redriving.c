/* SPDX-License-Identifier: MIT */
/*
 * Redrive tasks and groups of dead letters for people. Must never begin a task without an actor. Any thread but the loop's
 * and the writer's.
 */
#include <inttypes.h>

#include "assembly/store_calls.h"
#include "base/text.h"
#include "holdfast/dead.h"
#include "jobs/views.h"

static int group(struct hf_store *store, const struct hf_dead_filter *given, struct hf_dead_group_list **list,
                 struct hf_error *error) {
    struct hf_dead_filter filter;
    hf_dead_filter_init(&filter);
    int code = hfi_given_options("dead letter filter", &filter, (uint32_t)sizeof filter, given, error);
    return code != 0 ? code : store->port->ops->group_dead(store->port, &filter, list, error);
}

int hf_dead_group_list_open(struct hf_store *store, const struct hf_dead_filter *filter, struct hf_dead_group_list **list,
                            struct hf_error *error) {
    *list = NULL;
    int code = hfi_store_may_block(store, "hf_dead_group_list_open", error);
    return code != 0 ? code : group(store, filter, list, error);
}

/* How many there are, and the newest of them: the task's bounds. */
static int measure(struct hf_store *store, struct hfi_redrive_task *task, struct hf_error *error) {
    struct hf_dead_filter filter;
    struct hf_dead_group_list *list;
    hfi_redrive_filter(task, &filter);
    int code = group(store, &filter, &list, error);
    if (code != 0)
        return code;
    task->total = hf_dead_group_list_total(list);
    task->upper_id = hfi_dead_group_list_newest(list);
    hf_dead_group_list_free(list);
    return 0;
}

static int check(const struct hf_redrive_options *given, struct hfi_redrive_task *task, int64_t *expect, struct hf_error *error) {
    struct hf_redrive_options options;
    struct hf_dead_filter filter;
    hf_redrive_options_init(&options);
    hf_dead_filter_init(&filter);
    int code = hfi_given_options("redrive options", &options, (uint32_t)sizeof options, given, error);
    if (code == 0 && options.filter)
        code = hfi_given_options("dead letter filter", &filter, (uint32_t)sizeof filter, options.filter, error);
    if (code == 0)
        code = hfi_given_text("actor", &options.actor, HFI_ACTOR_MAX, true, error);
    if (code == 0)
        code = hfi_given_text("reason", &options.reason, HFI_REASON_MAX, false, error);
    options.filter = &filter;
    *expect = options.expect;
    return code != 0 ? code : hfi_redrive_begin(task, &options, options.actor, options.reason, error);
}

int hf_redrive_start(struct hf_store *store, const struct hf_redrive_options *options, int64_t *id, struct hf_error *error) {
    struct hfi_redrive_task task;
    int64_t expect = -1;
    *id = 0;
    int code = hfi_store_may_block(store, "hf_redrive_start", error);
    if (code == 0)
        code = check(options, &task, &expect, error);
    if (code == 0)
        code = measure(store, &task, error);
    if (code == 0 && expect >= 0 && task.total != (uint64_t)expect) /* [I85] */
        code = hfi_fail(error, HF_ESTATE, "redrive", "look at them again, and expect so many", "there are %" PRIu64 " dead letters, not %" PRId64,
                        task.total, expect);
    if (code != 0)
        return code;
    struct hfi_op_redrive_task op = {.op = {.kind = HFI_OP_REDRIVE_TASK}, .task = &task, .now = hfi_store_now(store)};
    code = hfi_store_do(store, &op.op, "redrive", error);
    if (code == 0)
        *id = op.id;
    return code;
}

static int refuse_missing(int64_t id, struct hf_error *error) {
    return hfi_fail(error, HF_ENOENT, "redrive task", "`holdfast dead task list` shows what is there", "%" PRId64 " does not exist",
                    id);
}

int hf_redrive_step(struct hf_store *store, int64_t id, int64_t *wait_ms, struct hf_error *error) {
    struct hf_wall now = hfi_store_now(store);
    struct hfi_op_redrive_step op = {.op = {.kind = HFI_OP_REDRIVE_STEP}, .id = id, .now = now};
    *wait_ms = -1;
    int code = id > 0 ? hfi_store_do(store, &op.op, "redrive", error) : HF_ENOENT;
    if (code == HF_ENOENT)
        return refuse_missing(id, error);
    if (code != 0)
        return code;
    int64_t wait_us = hfi_sub(op.task.next_at_us, now.us);
    if (op.task.state == HF_REDRIVE_RUNNING)
        *wait_ms = wait_us > 0 ? hfi_us_to_ms_up(wait_us) : 0;
    return 0;
}

int hf_redrive_cancel(struct hf_store *store, int64_t id, const char *actor, const char *reason, struct hf_error *error) {
    int code = hfi_given_text("actor", &actor, HFI_ACTOR_MAX, true, error);
    if (code == 0)
        code = hfi_given_text("reason", &reason, HFI_REASON_MAX, false, error);
    if (code != 0)
        return code;
    struct hfi_op_redrive_cancel op = {
        .op = {.kind = HFI_OP_REDRIVE_CANCEL}, .id = id, .actor = actor, .reason = reason, .now = hfi_store_now(store)};
    code = hfi_store_do(store, &op.op, "cancel", error);
    if (code == HF_ENOENT)
        return refuse_missing(id, error);
    if (code == HF_ESTATE)
        return hfi_fail(error, HF_ESTATE, "redrive task", NULL, "%" PRId64 " is already %s", id, hf_redrive_state_name(op.was));
    return code;
}

int hf_redrive_list_open(struct hf_store *store, const struct hf_redrive_filter *given, struct hf_redrive_list **list,
                         struct hf_error *error) {
    struct hf_redrive_filter filter;
    *list = NULL;
    hf_redrive_filter_init(&filter);
    int code = hfi_store_may_block(store, "hf_redrive_list_open", error);
    if (code == 0)
        code = hfi_given_options("redrive filter", &filter, (uint32_t)sizeof filter, given, error);
    return code != 0 ? code : store->port->ops->list_redrives(store->port, &filter, list, error);
}
