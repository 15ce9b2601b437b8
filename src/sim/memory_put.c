/* SPDX-License-Identifier: MIT */
/*
 * Enqueueing into the memory store: lanes, unique keys, seen messages; all jobs of an operation or none. Must never
 * give an id twice. Under the store's lock.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "jobs/views.h"
#include "sim/memory_state.h"

#define SEPARATOR "\x1f"
#define LANE_KEY_MAX (HFI_NAME_MAX * 2 + HFI_TYPE_MAX + HFI_LIMIT_MAX + 4)

void hfi_memory_lane_free(struct hfi_memory_lane *lane) {
    if (!lane)
        return;
    for (size_t i = 0; i < HFI_PRIORITIES; i++)
        hfi_free(lane->due[i].items);
    hfi_free(lane->queue);
    hfi_free(lane->type);
    hfi_free(lane->breaker_key);
    hfi_free(lane->limit_key);
    hfi_free(lane->key);
    hfi_free(lane);
}

int hfi_memory_lane_of(struct hfi_memory *store, const struct hfi_job *job, struct hfi_memory_lane **lane) {
    char key[LANE_KEY_MAX];
    snprintf(key, sizeof key, "%s" SEPARATOR "%s" SEPARATOR "%s" SEPARATOR "%s", job->queue, job->type,
             job->breaker_key, job->limit_key);
    *lane = hfi_index_find(&store->lanes_by_key, key);
    if (*lane)
        return 0;
    struct hfi_memory_lane *made = hfi_alloc(sizeof *made);
    if (!made || hfi_array_reserve(&store->lanes, 1) != 0) {
        hfi_free(made);
        return HF_ENOMEM;
    }
    made->queue = hfi_strdup(job->queue);
    made->type = hfi_strdup(job->type);
    made->breaker_key = hfi_strdup(job->breaker_key);
    made->limit_key = hfi_strdup(job->limit_key);
    made->key = hfi_strdup(key);
    if (!made->queue || !made->type || !made->breaker_key || !made->limit_key || !made->key) {
        hfi_memory_lane_free(made);
        return HF_ENOMEM;
    }
    hfi_array_append(&store->lanes, made);
    made->id = (int64_t)store->lanes.count;
    hfi_index_add(&store->lanes_by_key, &made->link, made->key, made);
    *lane = made;
    return 0;
}

/* Also of a row that was never linked in. */
void hfi_memory_job_free(struct hfi_memory *store, struct hfi_memory_job *row) {
    if (row->bound)
        hfi_index_remove(&store->unique, &row->unique);
    if (row->lane) {
        hfi_heap_remove(&row->lane->due[row->job->priority], &row->due);
        row->lane->members[row->job->priority]--;
    }
    while (row->first) {
        struct hfi_memory_past *past = row->first;
        row->first = past->next;
        hfi_free(past);
    }
    hfi_free(row->scope);
    hfi_free(row->job);
    hfi_free(row);
}

static int copy_record(struct hfi_memory *store, const struct hfi_job *job, struct hfi_memory_lane *lane,
                       struct hfi_job **copy) {
    char key[HFI_IDEMPOTENCY_ROOM];
    struct hfi_job record = *job;
    record.id = store->next_job + 1;
    record.lane = lane->id;
    if (record.root_id == 0)
        record.root_id = record.id;
    record.idempotency_key = hfi_idempotency_key(&record, store->base.uuid, key);
    if (record.policy && !(record.policy = hfi_memory_policy(store, record.policy)))
        return HF_ENOMEM;
    *copy = hfi_job_copy(&record);
    return *copy ? 0 : HF_ENOMEM;
}

static int make_row(struct hfi_memory *store, const struct hfi_job *job, struct hfi_memory_lane *lane,
                    struct hfi_memory_job *row) {
    char scope[HFI_UNIQUE_SCOPE_MAX + 1];
    if (hfi_unique_scope(scope, sizeof scope, job->queue, job->type, job->unique_key) > 0 &&
        !(row->scope = hfi_strdup(scope)))
        return HF_ENOMEM;
    int code = copy_record(store, job, lane, &row->job);
    if (code == 0)
        code = hfi_array_reserve(&store->jobs, 1);
    if (code == 0)
        code = hfi_heap_reserve(&lane->due[job->priority], lane->members[job->priority] + 1);
    return code;
}

int hfi_memory_insert(struct hfi_memory *store, const struct hfi_job *job, struct hfi_memory_job **inserted) {
    struct hfi_memory_lane *lane = NULL;
    if (job->priority < 0 || job->priority >= HFI_PRIORITIES)
        return HF_EINVAL;
    struct hfi_memory_job *row = hfi_alloc(sizeof *row);
    int code = row ? hfi_memory_lane_of(store, job, &lane) : HF_ENOMEM;
    if (code == 0)
        code = make_row(store, job, lane, row);
    if (code != 0) {
        if (row)
            hfi_memory_job_free(store, row);
        return code;
    }
    row->lane = lane;
    lane->members[job->priority]++;
    store->next_job++;
    hfi_array_append(&store->jobs, row);
    store->expiring += row->job->expires_at_us != 0;
    hfi_memory_replace(store, row, row->job);
    *inserted = row;
    return 0;
}

static const char *message_key(const struct hfi_job *job, char *key, size_t room) {
    if (!job->source_message_id || !job->source_message_id[0])
        return NULL;
    snprintf(key, room, "%s" SEPARATOR "%s", job->source, job->source_message_id);
    return key;
}

static int remember(struct hfi_memory *store, const char *key, int64_t job_id, int64_t at_us) {
    struct hfi_memory_message *message = hfi_alloc(sizeof *message);
    if (!message || !(message->key = hfi_strdup(key)) || hfi_array_reserve(&store->inbox, 1) != 0) {
        if (message)
            hfi_free(message->key);
        hfi_free(message);
        return HF_ENOMEM;
    }
    message->job_id = job_id;
    message->at_us = at_us;
    hfi_index_add(&store->messages, &message->link, message->key, message);
    hfi_array_append(&store->inbox, message);
    return 0;
}

static int put_one(struct hfi_memory *store, struct hfi_put *item) {
    char scope[HFI_UNIQUE_SCOPE_MAX + 1], text[HFI_NAME_MAX + HFI_KEY_MAX + 2];
    const struct hfi_job *job = &item->job;
    const char *key = message_key(job, text, sizeof text);
    const struct hfi_memory_message *seen = key ? hfi_index_find(&store->messages, key) : NULL;
    struct hfi_memory_job *row = NULL;
    item->existed = true;
    if (seen) {
        item->id = hfi_memory_find(store, seen->job_id) ? seen->job_id : 0;
        return 0;
    }
    bool named = hfi_unique_scope(scope, sizeof scope, job->queue, job->type, job->unique_key) > 0;
    item->id = named ? hfi_memory_holder(store, scope, NULL) : 0;
    if (item->id == 0) {
        struct hfi_job record = *job;
        if (item->curve)
            record.policy = item->curve;
        int code = hfi_memory_insert(store, &record, &row);
        if (code != 0)
            return code;
        item->id = row->job->id;
        item->existed = false;
    }
    return key ? remember(store, key, item->id, job->created_at_us) : 0;
}

/* Takes back what this operation has put so far: the last rows and messages. */
static void take_back(struct hfi_memory *store, size_t jobs, size_t messages) {
    while (store->jobs.count > jobs) {
        struct hfi_memory_job *row = store->jobs.items[--store->jobs.count];
        store->expiring -= row->job->expires_at_us != 0;
        store->next_job--;
        hfi_memory_job_free(store, row);
    }
    while (store->inbox.count > messages) {
        struct hfi_memory_message *message = store->inbox.items[--store->inbox.count];
        hfi_index_remove(&store->messages, &message->link);
        hfi_free(message->key);
        hfi_free(message);
    }
}

int hfi_memory_put(struct hfi_memory *store, struct hfi_op_put *op) {
    size_t jobs = store->jobs.count, messages = store->inbox.count;
    int code = 0;
    for (size_t i = 0; i < op->count && code == 0; i++)
        code = put_one(store, &op->items[i]);
    if (code != 0)
        take_back(store, jobs, messages);
    for (size_t i = 0; i < op->count && code != 0; i++) {
        op->items[i].id = 0;
        op->items[i].existed = false;
    }
    return code;
}
