/* SPDX-License-Identifier: MIT */
/*
 * What deaths set off in the memory store: the jobs of handlers and forwarders, where each went, what became of it. Must
 * never put one without its death, nor twice for one. Under the store's lock; the list takes it.
 */
#include "jobs/forward.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/views.h"
#include "sim/memory_state.h"

static struct hf_forward_view *counts_of(struct hfi_memory *store, const char *name) {
    for (size_t i = 0; i < store->forward_counts.count; i++) {
        struct hfi_memory_forward_counts *counts = store->forward_counts.items[i];
        if (strcmp(counts->name, name) == 0)
            return &counts->view;
    }
    return NULL;
}

static int need_counts(struct hfi_memory *store, const char *name) {
    if (counts_of(store, name))
        return 0;
    struct hfi_memory_forward_counts *made = hfi_alloc(sizeof *made);
    if (!made || hfi_array_reserve(&store->forward_counts, 1) != 0) {
        hfi_free(made);
        return HF_ENOMEM;
    }
    hfi_text_copy(made->name, sizeof made->name, name);
    made->view.name = made->name;
    hfi_array_append(&store->forward_counts, made);
    struct hfi_array *all = &store->forward_counts; /* by name, as lists show them */
    for (size_t i = all->count - 1; i > 0; i--) {
        struct hfi_memory_forward_counts *before = all->items[i - 1];
        if (strcmp(before->name, made->name) < 0)
            break;
        all->items[i] = before;
        all->items[i - 1] = made;
    }
    return 0;
}

/* Its job, and where it is noted. */
static int put(struct hfi_memory *store, const struct hfi_forward *forward, const struct hfi_change *change, int64_t dead_id) {
    struct hfi_forward_room room;
    struct hfi_job job;
    struct hfi_memory_job *row;
    struct hf_wall now = {change->job.finished_at_us};
    struct hfi_memory_forward *noted = hfi_alloc(sizeof *noted);
    if (!noted)
        return HF_ENOMEM;
    hfi_forward_job(forward, &change->job, &change->death, dead_id, store->base.uuid, now, &room, &job);
    int code = hfi_array_reserve(&store->forwards, 1);
    if (code == 0)
        code = need_counts(store, forward->name);
    if (code == 0)
        code = hfi_memory_insert(store, &job, &row);
    if (code != 0) {
        hfi_free(noted);
        return code;
    }
    noted->dead_id = dead_id;
    noted->job_id = row->job->id;
    noted->outcome = "";
    hfi_text_copy(noted->name, sizeof noted->name, forward->name);
    hfi_array_append(&store->forwards, noted);
    return 0;
}

int hfi_memory_stage_forwards(struct hfi_memory *store, const struct hfi_change *change, const struct hfi_forwards *forwards,
                              struct hfi_staged *staged) {
    size_t jobs = store->jobs.count, before = store->forwards.count;
    int code = 0;
    if (!staged->dead || !forwards || hfi_memory_same_death(store, staged->dead))
        return 0;
    for (size_t i = 0; i < forwards->count && code == 0; i++)
        if (hfi_forward_takes(&forwards->items[i], &change->job, &change->death))
            code = put(store, &forwards->items[i], change, store->next_dead + 1);
    if (code == 0) {
        for (size_t i = before; i < store->forwards.count; i++)
            counts_of(store, ((struct hfi_memory_forward *)store->forwards.items[i])->name)->taken++;
        return 0;
    }
    while (store->forwards.count > before)
        hfi_free(store->forwards.items[--store->forwards.count]);
    hfi_memory_take_back(store, jobs, store->inbox.count);
    hfi_memory_drop(staged);
    return code;
}

void hfi_memory_forward_ended(struct hfi_memory *store, const struct hfi_job *job) {
    for (size_t i = 0; i < store->forwards.count; i++) {
        struct hfi_memory_forward *forward = store->forwards.items[i];
        if (forward->job_id != job->id)
            continue;
        struct hf_forward_view *counts = counts_of(store, forward->name);
        forward->outcome = hf_job_state_name(job->state);
        counts->forwarded += job->state == HF_JOB_SUCCEEDED;
        counts->failed += job->state != HF_JOB_SUCCEEDED;
    }
}

void hfi_memory_forward_again(struct hfi_memory *store, int64_t from_job, int64_t to_job) {
    for (size_t i = 0; i < store->forwards.count; i++) {
        struct hfi_memory_forward *forward = store->forwards.items[i];
        if (forward->job_id != from_job)
            continue;
        forward->job_id = to_job;
        forward->outcome = "";
    }
}

int64_t hfi_memory_forwarded(struct hfi_memory *store, int64_t dead_id) {
    for (size_t i = 0; i < store->forwards.count; i++) {
        const struct hfi_memory_forward *forward = store->forwards.items[i];
        if (forward->dead_id == dead_id && strcmp(forward->name, HFI_DEATH_HANDLER) != 0 &&
            (!forward->outcome[0] || strcmp(forward->outcome, hf_job_state_name(HF_JOB_SUCCEEDED)) == 0))
            return forward->job_id;
    }
    return 0;
}

int hfi_memory_dead_forwards(struct hfi_memory *store, int64_t dead_id, struct hf_dead *dead) {
    int code = 0;
    for (size_t i = 0; i < store->forwards.count && code == 0; i++) {
        const struct hfi_memory_forward *forward = store->forwards.items[i];
        struct hf_dead_forward row = {.name = forward->name, .job_id = forward->job_id, .outcome = forward->outcome};
        if (forward->dead_id == dead_id)
            code = hfi_dead_add_forward(dead, &row);
    }
    return code;
}

void hfi_memory_forwards_drop(struct hfi_memory *store, int64_t dead_id) {
    size_t kept = 0;
    for (size_t i = 0; i < store->forwards.count; i++) {
        struct hfi_memory_forward *forward = store->forwards.items[i];
        if (forward->dead_id == dead_id)
            hfi_free(forward);
        else
            store->forwards.items[kept++] = forward;
    }
    store->forwards.count = kept;
}

void hfi_memory_forwards_free(struct hfi_memory *store) {
    while (store->forwards.count > 0)
        hfi_free(store->forwards.items[--store->forwards.count]);
    while (store->forward_counts.count > 0)
        hfi_free(store->forward_counts.items[--store->forward_counts.count]);
    hfi_free(store->forwards.items);
    hfi_free(store->forward_counts.items);
}

int hfi_memory_list_forwards(struct hfi_store *self, struct hf_forward_list **list, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    int code = hfi_forward_list_new(list);
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->forward_counts.count && code == 0; i++)
        code = hfi_forward_list_add(*list, &((struct hfi_memory_forward_counts *)store->forward_counts.items[i])->view);
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_forward_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "forwarders", NULL, NULL);
}
