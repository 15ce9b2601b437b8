/* SPDX-License-Identifier: MIT */
/*
 * Redrive tasks and groups of dead letters in the memory store. Must never redrive a letter without moving its task on.
 * Operations: under the store's lock; lists take it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/views.h"
#include "sim/memory_state.h"

static struct hfi_redrive_task *find(struct hfi_memory *store, int64_t id) {
    return id >= 1 && (uint64_t)id <= store->redrives.count ? store->redrives.items[id - 1] : NULL;
}

void hfi_memory_redrive_job_ended(struct hfi_memory *store, int64_t task, int job_state) {
    struct hfi_redrive_task *found = find(store, task);
    if (found)
        hfi_redrive_job_ended(found, job_state);
}

int hfi_memory_redrive_task(struct hfi_memory *store, struct hfi_op_redrive_task *op) {
    struct hfi_redrive_task *task = hfi_alloc(sizeof *task);
    if (!task || hfi_array_reserve(&store->redrives, 1) != 0) {
        hfi_free(task);
        return HF_ENOMEM;
    }
    *task = *op->task;
    task->id = op->id = (int64_t)store->redrives.count + 1;
    task->created_at_us = task->next_at_us = op->now.us;
    hfi_array_append(&store->redrives, task);
    return 0;
}

static int64_t dead_id(const void *item) {
    return ((const struct hfi_memory_dead *)item)->id;
}

/* As of the SQLite store: looked at up to `*last`, and no more letters are left when it is finished. */
static size_t find_letters(struct hfi_memory *store, const struct hfi_redrive_task *task, int64_t *ids, size_t room,
                           int64_t *last, bool *finished) {
    struct hf_dead_filter filter;
    char fingerprint[17];
    size_t found = 0, looked = 0, at = hfi_array_after(&store->deads, task->after_id, dead_id);
    hfi_redrive_filter(task, &filter);
    for (; at < store->deads.count && found < room && looked < HFI_REDRIVE_LOOK; at++) {
        const struct hfi_memory_dead *dead = store->deads.items[at];
        struct hf_dead_view view;
        if (dead->id > task->upper_id)
            break;
        if (dead->status != HF_DEAD_DEAD)
            continue;
        looked++;
        *last = dead->id;
        hfi_memory_dead_view(store, dead, &view, fingerprint);
        if (hfi_dead_fits(&view, &filter))
            ids[found++] = dead->id;
    }
    *finished = found < room && looked < HFI_REDRIVE_LOOK;
    return found;
}

static int redrive_all(struct hfi_memory *store, struct hfi_op_redrive_step *op, struct hfi_redrive_task *task,
                       const int64_t *ids, size_t count) {
    struct hf_dead_action action;
    hfi_redrive_action(task, &action);
    for (size_t i = 0; i < count; i++) {
        struct hfi_op_redrive one = {
            .op = {.kind = HFI_OP_REDRIVE}, .dead_id = ids[i], .action = &action, .task = task->id, .now = op->now};
        int code = hfi_memory_redrive(store, &one);
        if (code == HF_ENOMEM)
            return code;
        op->redriven += code == 0;
        hfi_redrive_one(task, ids[i], code, one.new_job);
    }
    return 0;
}

static void step(struct hfi_memory *store, struct hfi_op_redrive_step *op, struct hfi_redrive_task *task) {
    int64_t ids[HFI_REDRIVE_STEP], last = task->after_id;
    bool finished = false;
    uint32_t allowed = hfi_redrive_allowed(task, op->now);
    if (allowed == 0)
        return;
    size_t count = find_letters(store, task, ids, allowed, &last, &finished);
    int code = redrive_all(store, op, task, ids, count);
    if (code == 0)
        task->after_id = last;
    hfi_redrive_moved(task, op->now, op->redriven, finished && code == 0);
    if (code != 0)
        task->next_at_us = hfi_add(op->now.us, hfi_ms_to_us(HFI_REDRIVE_FULL_MS));
}

/* The running one that is due first, by `now_us`; NULL none. */
static struct hfi_redrive_task *first_due(struct hfi_memory *store, int64_t now_us) {
    struct hfi_redrive_task *first = NULL;
    for (size_t i = 0; i < store->redrives.count; i++) {
        struct hfi_redrive_task *task = store->redrives.items[i];
        if (task && task->state == HF_REDRIVE_RUNNING && task->next_at_us <= now_us && (!first || task->next_at_us < first->next_at_us))
            first = task;
    }
    return first;
}

int hfi_memory_redrive_step(struct hfi_memory *store, struct hfi_op_redrive_step *op) {
    struct hfi_redrive_task *task = op->id != 0 ? find(store, op->id) : first_due(store, op->look ? INT64_MIN : op->now.us);
    op->redriven = 0;
    op->found = task != NULL;
    op->next_due_us = INT64_MAX;
    if (!task && op->id != 0)
        return HF_ENOENT;
    if (task)
        step(store, op, task);
    if (task)
        op->task = *task;
    const struct hfi_redrive_task *next = first_due(store, INT64_MAX);
    if (next)
        op->next_due_us = next->next_at_us;
    return 0;
}

int hfi_memory_redrive_cancel(struct hfi_memory *store, struct hfi_op_redrive_cancel *op) {
    struct hfi_redrive_task *task = find(store, op->id);
    if (!task)
        return HF_ENOENT;
    op->was = task->state;
    return hfi_redrive_cancelled(task, op->now, op->actor, op->reason);
}

int hfi_memory_list_redrives(struct hfi_store *self, const struct hf_redrive_filter *filter, struct hf_redrive_list **list,
                             struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    uint32_t limit = hfi_page_limit(filter->limit);
    struct hf_redrive_view view;
    int code = hfi_redrive_list_new(list);
    if (code != 0)
        return hfi_fail(error, code, "redrive tasks", NULL, "out of memory");
    pthread_mutex_lock(&store->lock);
    int64_t id = (int64_t)store->redrives.count;
    if (filter->after_id > 0 && filter->after_id <= id)
        id = filter->after_id - 1;
    for (; id > 0 && code == 0; id--) {
        const struct hfi_redrive_task *task = find(store, id);
        if (!task || (filter->id != 0 && task->id != filter->id))
            continue;
        if (hf_redrive_list_count(*list) == limit) {
            hfi_redrive_list_set_next(*list, id + 1);
            break;
        }
        hfi_redrive_view_fill(&view, task);
        code = hfi_redrive_list_add(*list, &view);
    }
    pthread_mutex_unlock(&store->lock);
    if (code == 0 && filter->id != 0 && hf_redrive_list_count(*list) == 0)
        code = HF_ENOENT;
    if (code == 0)
        return 0;
    hf_redrive_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "redrive task", code == HF_ENOENT ? "`holdfast dead task list` shows what is there" : NULL,
                    code == HF_ENOENT ? "%lld does not exist" : "%lld", (long long)filter->id);
}

/* ------------------------------------------------------------------ groups */

struct group {
    uint64_t count;
    int64_t first_us, last_us;
    const struct hfi_memory_dead *newest;
};

static int by_count(const void *left, const void *right) {
    const struct group *a = left, *b = right;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : a->newest->id < b->newest->id ? 1 : -1;
}

/* The groups of the letters that the filter takes, newest letter first. */
static size_t gather(struct hfi_memory *store, const struct hf_dead_filter *filter, struct group *groups) {
    size_t count = 0;
    char fingerprint[17];
    for (size_t at = store->deads.count; at > 0; at--) {
        const struct hfi_memory_dead *dead = store->deads.items[at - 1];
        struct hf_dead_view view;
        hfi_memory_dead_view(store, dead, &view, fingerprint);
        if (!hfi_dead_fits(&view, filter))
            continue;
        struct group *group = groups;
        while (group < groups + count && group->newest->death.fingerprint != dead->death.fingerprint)
            group++;
        if (group == groups + count) {
            *group = (struct group){.first_us = dead->dead_at_us, .last_us = dead->dead_at_us, .newest = dead};
            count++;
        }
        group->count++;
        group->first_us = dead->dead_at_us < group->first_us ? dead->dead_at_us : group->first_us;
        group->last_us = dead->dead_at_us > group->last_us ? dead->dead_at_us : group->last_us;
    }
    qsort(groups, count, sizeof *groups, by_count);
    return count;
}

static int add_all(const struct group *groups, size_t count, struct hf_dead_group_list *list) {
    char fingerprint[17];
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        const struct hfi_memory_dead *newest = groups[i].newest;
        struct hf_dead_group_view view = {
            .fingerprint = hfi_fingerprint_print(newest->death.fingerprint, fingerprint),
            .count = groups[i].count,
            .first_dead_at_us = groups[i].first_us,
            .last_dead_at_us = groups[i].last_us,
            .example_id = newest->id,
            .type = newest->job->type,
            .downstream = newest->job->downstream,
            .error_type = newest->death.error_type,
            .rule = newest->death.rule,
            .error_message = newest->death.message,
            .death_class = (int32_t)newest->death.death_class,
        };
        code = hfi_dead_group_list_add(list, &view);
    }
    return code;
}

int hfi_memory_group_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_group_list **list,
                          struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    int code = hfi_dead_group_list_new(list);
    pthread_mutex_lock(&store->lock);
    struct group *groups = code == 0 ? hfi_alloc_array(store->deads.count + 1, sizeof *groups) : NULL;
    if (!groups)
        code = HF_ENOMEM;
    else
        code = add_all(groups, gather(store, filter, groups), *list);
    hfi_free(groups);
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_dead_group_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "dead letters", NULL, "out of memory");
}
