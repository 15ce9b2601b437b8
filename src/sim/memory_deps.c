/* SPDX-License-Identifier: MIT */
/*
 * Jobs that wait for others, in the memory store: who waits for whom, and what follows when a job reaches its end or
 * leaves it. Must never lose a parent whose children were not looked at: it stays in line until they were. Under the
 * store's lock.
 */
#include "jobs/deps.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "sim/memory_state.h"

void hfi_memory_deps_begin(struct hfi_memory *store) {
    store->settle_left = HFI_SETTLE_MAX;
    store->released = store->ended_with = 0;
}

static void append(struct hfi_memory_line *line, struct hfi_memory_job *row) {
    row->next_unsettled = NULL;
    if (line->last)
        line->last->next_unsettled = row;
    else
        line->first = row;
    line->last = row;
}

static struct hfi_memory_job *take(struct hfi_memory_line *line) {
    struct hfi_memory_job *row = line->first;
    line->first = row->next_unsettled;
    if (!line->first)
        line->last = NULL;
    return row;
}

void hfi_memory_deps_moved(struct hfi_memory *store, struct hfi_memory_job *row, struct hf_wall now) {
    row->settle_after = 0;
    row->settle_now = now;
    if (row->unsettled || row->children.count == 0)
        return;
    row->unsettled = true;
    append(&store->unsettled, row);
}

static int step(struct hfi_memory *store, struct hfi_memory_job *row, const struct hfi_hand *hand) {
    struct hfi_change change;
    struct hfi_staged staged;
    if (hand->event.kind == HFI_EVENT_REVIVED && hfi_memory_holder(store, row->scope, row) != 0)
        return HF_EEXIST; /* another job holds its unique key by now */
    int code = hfi_memory_stage(store, row, row->job, &hand->event, &hand->rules, &change, &staged);
    if (code != 0)
        return code;
    hfi_memory_link(store, &staged);
    store->released += hand->event.kind == HFI_EVENT_RELEASED;
    store->ended_with += hand->event.kind == HFI_EVENT_PARENT_DEAD;
    return 0;
}

/* Looks at one child. 0 or HF_ENOMEM. */
static int settle(struct hfi_memory *store, struct hfi_memory_job *row, struct hf_wall now) {
    struct hfi_parent parents[HF_AFTER_MAX];
    struct hfi_hand hand;
    int code = 0;
    for (size_t i = 0; i < row->parent_count; i++)
        parents[i] = (struct hfi_parent){
            .id = row->parents[i].id,
            .state = row->parents[i].row ? row->parents[i].row->job->state : HFI_PARENT_FORGOTTEN,
            .on_end = row->parents[i].on_end,
        };
    for (bool more = true; more && hfi_deps_judge(row->job, parents, row->parent_count, now, &hand);) {
        code = step(store, row, &hand);
        more = code == 0 && hand.event.kind == HFI_EVENT_REVIVED;
    }
    return code == HF_ENOMEM ? code : 0;
}

/* The children of one parent. False: this transaction may not go on. */
static bool settle_children(struct hfi_memory *store, struct hfi_memory_job *parent) {
    for (size_t i = 0; i < parent->children.count; i++) {
        struct hfi_memory_job *child = parent->children.items[i];
        if (child->job->id <= parent->settle_after)
            continue;
        if (store->settle_left == 0 || settle(store, child, parent->settle_now) != 0)
            return false;
        store->settle_left--;
        parent->settle_after = child->job->id;
    }
    return true;
}

void hfi_memory_deps_flush(struct hfi_memory *store) {
    while (store->unsettled.first) {
        struct hfi_memory_job *parent = take(&store->unsettled);
        parent->unsettled = !settle_children(store, parent);
        if (!parent->unsettled)
            continue;
        append(&store->left_over, parent);
        store->left_some = true;
    }
}

int hfi_memory_release(struct hfi_memory *store, struct hfi_op_release *op) {
    uint32_t released = store->released, ended_with = store->ended_with, looked = 0;
    store->unsettled = store->left_over;
    store->left_over = (struct hfi_memory_line){NULL, NULL};
    hfi_memory_deps_flush(store);
    size_t i = 0;
    for (; op->scan && i < store->jobs.count && looked < op->limit && store->settle_left > 0; i++) {
        struct hfi_memory_job *row = store->jobs.items[i];
        if (row->job->state != HF_JOB_WAITING || row->job->id <= op->after_id)
            continue;
        looked++;
        store->settle_left--;
        op->after_id = row->job->id;
        if (settle(store, row, op->now) != 0)
            break;
    }
    if (i == store->jobs.count)
        op->after_id = 0;
    hfi_memory_deps_flush(store);
    op->released = store->released - released;
    op->ended = store->ended_with - ended_with;
    op->more = store->left_over.first != NULL;
    return 0;
}

/* ------------------------------------------------------------------ who waits for whom */

int hfi_memory_deps_check(struct hfi_memory *store, struct hfi_op_put *op) {
    for (size_t i = 0; i < op->count; i++) {
        for (uint32_t p = 0; p < op->items[i].after_count; p++) {
            if (hfi_memory_find(store, op->items[i].after[p]) || hfi_memory_put_known(store, &op->items[i]))
                continue;
            int code = hfi_fail(op->op.error, HF_ENOENT, "after_jobs", "name jobs that the store still has",
                                "job %lld does not exist", (long long)op->items[i].after[p]);
            if (op->op.error)
                op->op.error->line = (int)i + 1;
            return code;
        }
    }
    return 0;
}

static bool waits_for(const struct hfi_memory_job *row, int64_t parent) {
    for (size_t i = 0; i < row->parent_count; i++)
        if (row->parents[i].id == parent)
            return true;
    return false;
}

static int by_id(const void *a, const void *b) {
    const struct hfi_memory_parent *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

int hfi_memory_deps_add(struct hfi_memory *store, struct hfi_memory_job *row, const struct hfi_put *put) {
    if (put->after_count == 0)
        return 0;
    row->parents = hfi_alloc_array(put->after_count, sizeof *row->parents);
    if (!row->parents)
        return HF_ENOMEM;
    for (uint32_t i = 0; i < put->after_count; i++) {
        struct hfi_memory_job *parent = hfi_memory_find(store, put->after[i]);
        if (waits_for(row, put->after[i]))
            continue;
        if (hfi_array_reserve(&parent->children, 1) != 0)
            return HF_ENOMEM;
        hfi_array_append(&parent->children, row);
        row->parents[row->parent_count++] = (struct hfi_memory_parent){put->after[i], parent, put->after_on_end};
    }
    qsort(row->parents, row->parent_count, sizeof *row->parents, by_id);
    return settle(store, row, (struct hf_wall){put->job.created_at_us});
}

static void remove_child(struct hfi_memory_job *parent, const struct hfi_memory_job *child) {
    for (size_t i = 0; i < parent->children.count; i++) {
        if (parent->children.items[i] == child) {
            hfi_array_remove(&parent->children, i);
            return;
        }
    }
}

/* A parent that goes is taken off a child that it kept from nothing; else the child remembers that it is gone. */
static void remove_parent(struct hfi_memory_job *child, const struct hfi_memory_job *parent) {
    for (size_t i = 0; i < child->parent_count; i++) {
        struct hfi_memory_parent *link = &child->parents[i];
        if (link->row != parent)
            continue;
        link->row = NULL;
        if (link->on_end || parent->job->state == HF_JOB_SUCCEEDED) {
            child->parent_count--;
            memmove(link, link + 1, (child->parent_count - i) * sizeof *link);
        }
        return;
    }
}

void hfi_memory_deps_drop(struct hfi_memory_job *row) {
    for (size_t i = 0; i < row->parent_count; i++)
        if (row->parents[i].row)
            remove_child(row->parents[i].row, row);
    for (size_t i = 0; i < row->children.count; i++)
        remove_parent(row->children.items[i], row);
    hfi_free(row->parents);
    hfi_free(row->children.items);
}
