/* SPDX-License-Identifier: MIT */
/*
 * Enqueueing into the memory store: lanes, unique keys, seen messages; all jobs of an operation or none. Must never
 * give an id twice. Under the store's lock.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "jobs/hands.h"
#include "jobs/views.h"
#include "sim/memory_state.h"

#define SEPARATOR "\x1f"
#define LANE_KEY_MAX (HFI_NAME_MAX * 2 + HFI_TYPE_MAX + HFI_LIMIT_MAX + 5)

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

struct hfi_memory_gauge *hfi_memory_gauge(struct hfi_index *index, const char *name) {
    struct hfi_memory_gauge *gauge = hfi_index_find(index, name);
    if (gauge)
        return gauge;
    size_t size = strlen(name) + 1;
    gauge = hfi_alloc(sizeof *gauge + size);
    if (!gauge)
        return NULL;
    memcpy(gauge->name, name, size);
    hfi_index_add(index, &gauge->link, gauge->name, gauge);
    return gauge;
}

int hfi_memory_lane_of(struct hfi_memory *store, const struct hfi_job *job, struct hfi_memory_lane **lane) {
    char key[LANE_KEY_MAX];
    snprintf(key, sizeof key, "%s" SEPARATOR "%s" SEPARATOR "%s" SEPARATOR "%s%s", job->queue, job->type,
             job->breaker_key, job->limit_key, hfi_wants_alone(job) ? SEPARATOR : "");
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
    made->alone = hfi_wants_alone(job);
    made->of_queue = hfi_memory_gauge(&store->queue_gauges, job->queue);
    made->of_limit = job->limit_key[0] ? hfi_memory_gauge(&store->limit_gauges, job->limit_key) : NULL;
    if (!made->queue || !made->type || !made->breaker_key || !made->limit_key || !made->key || !made->of_queue ||
        (job->limit_key[0] && !made->of_limit)) {
        hfi_memory_lane_free(made);
        return HF_ENOMEM;
    }
    made->of_queue->lanes++;
    if (made->of_limit)
        made->of_limit->lanes++;
    hfi_array_append(&store->lanes, made);
    made->id = (int64_t)store->lanes.count;
    hfi_index_add(&store->lanes_by_key, &made->link, made->key, made);
    *lane = made;
    return 0;
}

/* Also of a row that was never linked in. */
void hfi_memory_job_free(struct hfi_memory *store, struct hfi_memory_job *row) {
    hfi_memory_deps_drop(row);
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
    if (hfi_unique_scope(scope, sizeof scope, job) > 0 &&
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

/* A row that this operation changed, as it was. */
struct changed {
    struct hfi_memory_job *row;
    struct hfi_memory_lane *lane;
    struct hfi_job *job; /* NULL: it only lost its key */
    char *scope;
    const char *unique_key;
};

/* Another record for the row, in another lane perhaps, which has room for it. The old one is the caller's. */
static void swap_record(struct hfi_memory *store, struct hfi_memory_job *row, struct hfi_memory_lane *lane,
                        struct hfi_job *job) {
    hfi_heap_remove(&row->lane->due[row->job->priority], &row->due);
    row->lane->members[row->job->priority]--;
    store->expiring -= row->job->expires_at_us != 0;
    row->job = job;
    row->lane = lane;
    lane->members[job->priority]++;
    store->expiring += job->expires_at_us != 0;
    hfi_memory_replace(store, row, job);
}

static void set_key(struct hfi_memory *store, struct hfi_memory_job *row, char *scope, const char *unique_key) {
    if (!scope && row->bound) {
        hfi_index_remove(&store->unique, &row->unique);
        row->bound = false;
    }
    row->scope = scope;
    row->job->unique_key = unique_key;
    hfi_memory_replace(store, row, row->job);
}

static int become(struct hfi_memory *store, struct hfi_memory_job *row, const struct hfi_job *wish,
                  struct changed *change) {
    char key[HFI_KEY_MAX + 1];
    struct hfi_memory_lane *lane;
    struct hfi_job record, *next;
    hfi_replace_job(row->job, wish, store->base.uuid, key, &record);
    int code = hfi_memory_lane_of(store, &record, &lane);
    if (code == 0 && record.policy && !(record.policy = hfi_memory_policy(store, record.policy)))
        code = HF_ENOMEM;
    if (code == 0)
        code = hfi_heap_reserve(&lane->due[record.priority], lane->members[record.priority] + 1);
    if (code != 0 || !(next = hfi_job_copy(&record)))
        return code != 0 ? code : HF_ENOMEM;
    next->lane = lane->id;
    *change = (struct changed){.row = row, .lane = row->lane, .job = row->job};
    swap_record(store, row, lane, next);
    return 0;
}

/* The key is taken by row item->id: does the new job still have to be made? */
static int replace(struct hfi_memory *store, struct hfi_put *item, const struct hfi_job *wish,
                   struct hfi_array *changes, bool *insert) {
    struct hfi_memory_job *row = hfi_memory_find(store, item->id);
    enum hfi_replace how = hfi_replace_how(row->job);
    *insert = how == HFI_REPLACE_YIELDS;
    if (how == HFI_REPLACE_KEEPS)
        return 0;
    struct changed *change = hfi_alloc(sizeof *change);
    int code = change ? hfi_array_reserve(changes, 1) : HF_ENOMEM;
    if (code == 0 && how == HFI_REPLACE_BECOMES)
        code = become(store, row, wish, change);
    if (code != 0) {
        hfi_free(change);
        return code;
    }
    if (how == HFI_REPLACE_YIELDS) {
        *change = (struct changed){.row = row, .scope = row->scope, .unique_key = row->job->unique_key};
        set_key(store, row, NULL, "");
    }
    hfi_array_append(changes, change);
    return 0;
}

bool hfi_memory_put_known(struct hfi_memory *store, const struct hfi_put *item) {
    char scope[HFI_UNIQUE_SCOPE_MAX + 1], text[HFI_NAME_MAX + HFI_KEY_MAX + 2];
    const struct hfi_job *job = &item->job;
    const char *key = message_key(job, text, sizeof text);
    return (key && hfi_index_find(&store->messages, key)) ||
           (hfi_unique_scope(scope, sizeof scope, job) > 0 &&
            hfi_memory_holder(store, scope, NULL) != 0);
}

static int put_one(struct hfi_memory *store, struct hfi_put *item, struct hfi_array *changes) {
    char scope[HFI_UNIQUE_SCOPE_MAX + 1], text[HFI_NAME_MAX + HFI_KEY_MAX + 2];
    const struct hfi_job *job = &item->job;
    const char *key = message_key(job, text, sizeof text);
    const struct hfi_memory_message *seen = key ? hfi_index_find(&store->messages, key) : NULL;
    item->existed = true;
    if (seen) {
        item->id = hfi_memory_find(store, seen->job_id) ? seen->job_id : 0;
        return 0;
    }
    bool named = hfi_unique_scope(scope, sizeof scope, job) > 0;
    struct hfi_job record = *job;
    item->id = named ? hfi_memory_holder(store, scope, NULL) : 0;
    bool insert = item->id == 0;
    int code = 0;
    if (item->curve)
        record.policy = item->curve;
    if (!insert && item->replace)
        code = replace(store, item, &record, changes, &insert);
    if (code == 0 && insert) {
        struct hfi_memory_job *row = NULL;
        code = hfi_memory_insert(store, &record, &row);
        item->id = code == 0 ? row->job->id : 0;
        item->existed = false;
        if (code == 0)
            code = hfi_memory_deps_add(store, row, item);
    }
    return code == 0 && key ? remember(store, key, item->id, job->created_at_us) : code;
}

/* Ends the changes of rows, the last one first when they are undone. */
static void settle(struct hfi_memory *store, struct hfi_array *changes, bool undo) {
    while (changes->count > 0) {
        struct changed *change = changes->items[--changes->count];
        if (undo && change->job) {
            struct hfi_job *next = change->row->job;
            swap_record(store, change->row, change->lane, change->job);
            change->job = next;
        } else if (undo) {
            set_key(store, change->row, change->scope, change->unique_key);
            change->scope = NULL;
        }
        hfi_free(change->job);
        hfi_free(change->scope);
        hfi_free(change);
    }
    hfi_free(changes->items);
}

void hfi_memory_take_back(struct hfi_memory *store, size_t jobs, size_t messages) {
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
    struct hfi_array changes = {0};
    int code = hfi_memory_deps_check(store, op);
    for (size_t i = 0; i < op->count && code == 0; i++)
        code = put_one(store, &op->items[i], &changes);
    settle(store, &changes, code != 0); /* of rows that are taken back, too */
    if (code != 0)
        hfi_memory_take_back(store, jobs, messages);
    for (size_t i = 0; i < op->count && code != 0; i++) {
        op->items[i].id = 0;
        op->items[i].existed = false;
    }
    return code;
}
