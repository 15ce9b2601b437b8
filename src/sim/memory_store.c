/* SPDX-License-Identifier: MIT */
/*
 * The store port in memory: opened, closed, and operations handed to those who know them. Must never answer an
 * operation that is half done. Writer thread for commits; reads from any thread; one lock.
 */
#include "sim/memory_store.h"

#include "base/alloc.h"
#include "base/random.h"
#include "sim/memory_state.h"

#define RUN(name, type, function)                                                                                      \
    case HFI_OP_##name:                                                                                                \
        return function(store, (struct hfi_op_##type *)(void *)op);

static int run(struct hfi_memory *store, struct hfi_op *op) {
    switch (op->kind) {
        RUN(PUT, put, hfi_memory_put)
        RUN(JOIN, join, hfi_memory_join)
        RUN(BEAT, beat, hfi_memory_beat)
        RUN(LEAVE, leave, hfi_memory_leave)
        RUN(NODES, nodes, hfi_memory_nodes)
        RUN(LANES, lanes, hfi_memory_lanes)
        RUN(CLAIM, claim, hfi_memory_claim)
        RUN(APPLY, apply, hfi_memory_apply)
        RUN(SWEEP, sweep, hfi_memory_sweep)
        RUN(EXPIRE, expire, hfi_memory_expire)
        RUN(QUARANTINE, quarantine, hfi_memory_quarantine)
        RUN(CANCEL, cancel, hfi_memory_cancel)
        RUN(REQUEUE, requeue, hfi_memory_requeue)
        RUN(REDRIVE, redrive, hfi_memory_redrive)
        RUN(SETTLE, settle, hfi_memory_settle)
        RUN(PAUSE, pause, hfi_memory_pause)
        RUN(DOWNSTREAM, downstream, hfi_memory_downstream)
        RUN(SHARE, share, hfi_memory_share)
        RUN(ALERTS, alerts, hfi_memory_alerts)
        RUN(ALERT_END, alert_end, hfi_memory_alert_end)
        RUN(ABSENT, absent, hfi_memory_absent)
        RUN(POISON, poison, hfi_memory_poison)
        RUN(NOTE, note, hfi_memory_note)
        RUN(PRUNE, prune, hfi_memory_prune)
        RUN(UNUSED, unused, hfi_memory_unused)
        RUN(RELEASE, release, hfi_memory_release)
        RUN(READMIT, readmit, hfi_memory_readmit)
        RUN(REDRIVE_TASK, redrive_task, hfi_memory_redrive_task)
        RUN(REDRIVE_STEP, redrive_step, hfi_memory_redrive_step)
        RUN(REDRIVE_CANCEL, redrive_cancel, hfi_memory_redrive_cancel)
        RUN(IMPORT, import, hfi_memory_import)
        RUN(MEASURE, measure, hfi_memory_measure)
    default:
        return HF_EINVAL;
    }
}

/* With the operation come the jobs that waited for those it ended. */
static int run_whole(struct hfi_memory *store, struct hfi_op *op) {
    uint32_t released = store->released, ended_with = store->ended_with;
    store->left_some = false;
    int code = run(store, op);
    hfi_memory_deps_flush(store);
    op->left_over = store->left_some;
    if (op->kind == HFI_OP_APPLY) {
        struct hfi_op_apply *apply = (void *)op;
        apply->released = store->released - released;
        apply->ended = store->ended_with - ended_with;
    }
    return code;
}

static void commit(struct hfi_store *self, struct hfi_op **ops, size_t count) {
    struct hfi_memory *store = hfi_memory_of(self);
    pthread_mutex_lock(&store->lock);
    hfi_memory_deps_begin(store);
    for (size_t i = 0; i < count; i++)
        ops[i]->code = run_whole(store, ops[i]);
    pthread_mutex_unlock(&store->lock);
}

static int no_descriptor(struct hfi_store *self) {
    (void)self;
    return -1; /* nobody else writes here */
}

static void nothing_to_drain(struct hfi_store *self) {
    (void)self;
}

static void free_rows(struct hfi_memory *store) {
    for (size_t i = 0; i < store->jobs.count; i++)
        hfi_memory_job_free(store, store->jobs.items[i]);
    for (size_t i = 0; i < store->lanes.count; i++)
        if (store->lanes.items[i] != &store->no_lane)
            hfi_memory_lane_free(store->lanes.items[i]);
    for (size_t i = 0; i < store->deads.count; i++)
        hfi_memory_dead_free(store->deads.items[i]);
    for (size_t i = 0; i < store->alerts.count; i++)
        hfi_free(store->alerts.items[i]);
    for (size_t i = 0; i < store->redrives.count; i++)
        hfi_free(store->redrives.items[i]);
    for (size_t i = 0; i < store->sinks.count; i++)
        hfi_free(store->sinks.items[i]);
    for (size_t i = 0; i < store->storms.count; i++)
        hfi_free(store->storms.items[i]);
    for (size_t i = 0; i < store->measured.count; i++)
        hfi_memory_measured_free(store->measured.items[i]);
    for (size_t i = 0; i < store->nodes.count; i++)
        hfi_memory_node_free(store->nodes.items[i]);
    for (size_t i = 0; i < store->paused.count; i++) {
        struct hfi_memory_queue *queue = store->paused.items[i];
        hfi_free(queue->name);
        hfi_free(queue);
    }
    for (size_t i = 0; i < store->downstreams.count; i++) {
        struct hfi_memory_downstream *row = store->downstreams.items[i];
        hfi_free(row->key);
        hfi_free(row);
    }
    for (size_t i = 0; i < store->shares.count; i++) {
        struct hfi_memory_share *share = store->shares.items[i];
        hfi_free(share->key);
        hfi_free(share);
    }
    for (size_t i = 0; i < store->inbox.count; i++) {
        struct hfi_memory_message *message = store->inbox.items[i];
        hfi_free(message->key);
        hfi_free(message);
    }
    while (store->policies) {
        struct hfi_memory_policy *policy = store->policies;
        store->policies = policy->next;
        hfi_free(policy);
    }
}

static void free_gauges(struct hfi_index *index) {
    struct hfi_link *const *buckets = index->buckets ? index->buckets : index->first;
    size_t size = index->buckets ? index->size : HFI_INDEX_FIRST;
    for (size_t i = 0; i < size; i++)
        for (struct hfi_link *link = buckets[i], *next; link; link = next) {
            next = link->next;
            hfi_free(link->row);
        }
    hfi_index_clear(index);
}

static void close_store(struct hfi_store *self) {
    struct hfi_memory *store = hfi_memory_of(self);
    free_rows(store);
    hfi_free(store->jobs.items);
    hfi_free(store->lanes.items);
    hfi_free(store->deads.items);
    hfi_memory_forwards_free(store);
    hfi_free(store->alerts.items);
    hfi_free(store->redrives.items);
    hfi_free(store->sinks.items);
    hfi_free(store->storms.items);
    hfi_free(store->measured.items);
    hfi_free(store->nodes.items);
    hfi_free(store->paused.items);
    hfi_free(store->downstreams.items);
    hfi_free(store->shares.items);
    hfi_free(store->inbox.items);
    hfi_index_clear(&store->lanes_by_key);
    hfi_index_clear(&store->unique);
    hfi_index_clear(&store->messages);
    free_gauges(&store->queue_gauges);
    free_gauges(&store->limit_gauges);
    pthread_mutex_destroy(&store->lock);
    hfi_free(store);
}

static const struct hfi_store_ops memory_ops = {
    .version = HFI_STORE_VERSION,
    .kind = "memory",
    .commit = commit,
    .list_jobs = hfi_memory_list_jobs,
    .get_job = hfi_memory_get_job,
    .count_jobs = hfi_memory_count_jobs,
    .list_queues = hfi_memory_list_queues,
    .list_limits = hfi_memory_list_limits,
    .list_forwards = hfi_memory_list_forwards,
    .look_phases = hfi_memory_look_phases,
    .look_measured = hfi_memory_look_measured,
    .list_downstreams = hfi_memory_list_downstreams,
    .list_dead = hfi_memory_list_dead,
    .get_dead = hfi_memory_get_dead,
    .group_dead = hfi_memory_group_dead,
    .list_redrives = hfi_memory_list_redrives,
    .list_alerts = hfi_memory_list_alerts,
    .look = hfi_memory_look,
    .doctor = hfi_memory_doctor,
    .wake_fd = no_descriptor,
    .wake_drain = nothing_to_drain,
    .close = close_store,
};

int hfi_memory_store_new(const struct hf_store_options *options, struct hfi_store **store) {
    struct hfi_memory *made = hfi_alloc(sizeof *made);
    *store = NULL;
    if (!made)
        return HF_ENOMEM;
    made->base.ops = &memory_ops;
    made->base.options = *options;
    hfi_uuid(made->base.uuid);
    pthread_mutex_init(&made->lock, NULL);
    *store = &made->base;
    return 0;
}

void hfi_memory_store_clock(struct hfi_store *store, struct hfi_scheduler *scheduler) {
    hfi_memory_of(store)->clock = scheduler;
}
