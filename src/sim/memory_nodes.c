/* SPDX-License-Identifier: MIT */
/*
 * What nodes share through the memory store: their beats, pauses of queues, control and phase of downstreams. Under the
 * store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/hands.h"
#include "sim/memory_state.h"

static void free_names(char **names, size_t count) {
    for (size_t i = 0; names && i < count; i++)
        hfi_free(names[i]);
    hfi_free(names);
}

void hfi_memory_node_free(struct hfi_memory_node *node) {
    if (!node)
        return;
    free_names(node->types, node->type_count);
    free_names(node->sinks, node->sink_count);
    hfi_free(node);
}

static int64_t node_id(const void *item) {
    return ((const struct hfi_memory_node *)item)->id;
}

struct hfi_memory_node *hfi_memory_node(struct hfi_memory *store, int64_t id) {
    size_t after = hfi_array_after(&store->nodes, id, node_id);
    struct hfi_memory_node *node = after > 0 ? store->nodes.items[after - 1] : NULL;
    return node && node->id == id ? node : NULL;
}

const char *hfi_memory_node_name(struct hfi_memory *store, int64_t id) {
    const struct hfi_memory_node *node = hfi_memory_node(store, id);
    return node ? node->name : "";
}

bool hfi_memory_owns_some(struct hfi_memory *store, int64_t node) {
    for (size_t i = 0; i < store->jobs.count; i++) {
        const struct hfi_memory_job *row = store->jobs.items[i];
        if (row->job->state == HF_JOB_RUNNING && row->job->owner == node)
            return true;
    }
    return false;
}

/* In the place of those it had; HF_ENOMEM: they stay. */
static int set_types(struct hfi_memory_node *node, const char *const *types, size_t count) {
    char **copies = hfi_alloc_array(count + 1, sizeof *copies);
    for (size_t i = 0; copies && i < count; i++)
        if (!(copies[i] = hfi_strdup(types[i]))) {
            free_names(copies, i);
            return HF_ENOMEM;
        }
    if (!copies)
        return HF_ENOMEM;
    free_names(node->types, node->type_count);
    node->types = copies;
    node->type_count = count;
    return 0;
}

static int set_sinks(struct hfi_memory_node *node, const struct hfi_sink_rule *sinks, size_t count) {
    node->sinks = hfi_alloc_array(count + 1, sizeof *node->sinks);
    for (; node->sinks && node->sink_count < count; node->sink_count++)
        if (!(node->sinks[node->sink_count] = hfi_strdup(sinks[node->sink_count].name)))
            return HF_ENOMEM;
    return node->sinks ? 0 : HF_ENOMEM;
}

int hfi_memory_join(struct hfi_memory *store, struct hfi_op_join *op) {
    struct hfi_memory_node *node = hfi_alloc(sizeof *node);
    if (!node || hfi_array_reserve(&store->nodes, 1) != 0 || set_types(node, op->types, op->type_count) != 0)
        goto failed;
    if (set_sinks(node, op->sinks, op->sink_count) != 0 ||
        hfi_memory_sink_rules(store, op->sinks, op->sink_count) != 0)
        goto failed;
    hfi_text_copy(node->name, sizeof node->name, op->name);
    hfi_array_append(&store->nodes, node);
    op->node = node->id = ++store->next_node;
    node->seen_at_us = op->now.us;
    return 0;
failed:
    hfi_memory_node_free(node);
    return HF_ENOMEM;
}

int hfi_memory_beat(struct hfi_memory *store, struct hfi_op_beat *op) {
    struct hfi_memory_node *node = hfi_memory_node(store, op->node);
    size_t running = 0;
    op->known = node && !node->gone;
    op->owned = NULL;
    op->owned_count = 0;
    if (!op->known)
        return 0;
    if (op->types && set_types(node, op->types, op->type_count) != 0)
        return HF_ENOMEM;
    for (size_t pass = 0; pass < 2; pass++) { /* count, then fill */
        for (size_t i = 0; i < store->jobs.count && op->owned_count < HFI_OWNED_MAX; i++) {
            const struct hfi_job *job = ((struct hfi_memory_job *)store->jobs.items[i])->job;
            if (job->state != HF_JOB_RUNNING || job->owner != op->node)
                continue;
            if (pass == 0)
                running++;
            else
                op->owned[op->owned_count++] = (struct hfi_owned){
                    .id = job->id, .epoch = job->epoch, .cancel = job->cancel_requested_at_us != 0};
        }
        if (pass == 0 && running > 0 && !(op->owned = hfi_alloc_array(running, sizeof *op->owned)))
            return HF_ENOMEM;
    }
    node->beat = op->beat;
    node->seen_at_us = op->now.us;
    return 0;
}

int hfi_memory_leave(struct hfi_memory *store, struct hfi_op_leave *op) {
    struct hfi_memory_node *node = hfi_memory_node(store, op->node);
    if (node && !hfi_memory_owns_some(store, op->node))
        hfi_memory_node_gone(store, node);
    return 0;
}

bool hfi_memory_node_lives(struct hfi_memory *store, int64_t id) {
    const struct hfi_memory_node *node = hfi_memory_node(store, id);
    return node != NULL && !node->gone;
}

int hfi_memory_nodes(struct hfi_memory *store, struct hfi_op_nodes *op) {
    op->count = 0;
    op->rows = hfi_alloc_array(store->nodes.count, sizeof *op->rows);
    if (!op->rows)
        return HF_ENOMEM;
    for (size_t i = 0; i < store->nodes.count; i++) {
        const struct hfi_memory_node *node = store->nodes.items[i];
        if (node->id == op->self || (node->gone && !hfi_memory_owns_some(store, node->id)))
            continue;
        struct hfi_node_row *row = &op->rows[op->count++];
        row->node = node->id;
        row->beat = node->beat;
        row->gone = node->gone;
        hfi_text_copy(row->name, sizeof row->name, node->name);
    }
    return 0;
}

struct hfi_memory_queue *hfi_memory_pause_of(struct hfi_memory *store, const char *queue, struct hf_wall now) {
    for (size_t i = 0; i < store->paused.count; i++) {
        struct hfi_memory_queue *paused = store->paused.items[i];
        if (strcmp(paused->name, queue) == 0)
            return paused->until_us == 0 || paused->until_us > now.us ? paused : NULL;
    }
    return NULL;
}

static void forget_pause(struct hfi_memory *store, const char *queue) {
    for (size_t i = 0; i < store->paused.count; i++) {
        struct hfi_memory_queue *paused = store->paused.items[i];
        if (strcmp(paused->name, queue) != 0)
            continue;
        hfi_array_remove(&store->paused, i);
        hfi_free(paused->name);
        hfi_free(paused);
        return;
    }
}

int hfi_memory_pause(struct hfi_memory *store, struct hfi_op_pause *op) {
    bool was = hfi_memory_pause_of(store, op->queue, op->now) != NULL;
    if (!op->pause && !was)
        return HF_ENOENT;
    if (op->pause) {
        struct hfi_memory_queue *queue = hfi_alloc(sizeof *queue);
        if (!queue || !(queue->name = hfi_strdup(op->queue)) || hfi_array_reserve(&store->paused, 1) != 0) {
            if (queue)
                hfi_free(queue->name);
            hfi_free(queue);
            return HF_ENOMEM;
        }
        queue->until_us = op->until_us;
        forget_pause(store, op->queue);
        hfi_array_append(&store->paused, queue);
    } else {
        forget_pause(store, op->queue);
    }
    store->unhealthy_version++;
    return 0;
}

static struct hfi_memory_downstream *downstream_of(struct hfi_memory *store, const char *key) {
    for (size_t i = 0; i < store->downstreams.count; i++) {
        struct hfi_memory_downstream *row = store->downstreams.items[i];
        if (strcmp(row->key, key) == 0)
            return row;
    }
    return NULL;
}

static struct hfi_memory_downstream *add_downstream(struct hfi_memory *store, const char *key) {
    struct hfi_memory_downstream *row = hfi_alloc(sizeof *row);
    if (!row || !(row->key = hfi_strdup(key)) || hfi_array_reserve(&store->downstreams, 1) != 0) {
        if (row)
            hfi_free(row->key);
        hfi_free(row);
        return NULL;
    }
    hfi_array_append(&store->downstreams, row);
    return row;
}

int hfi_memory_downstream(struct hfi_memory *store, struct hfi_op_downstream *op) {
    struct hfi_memory_downstream *row = downstream_of(store, op->key);
    bool writes = op->set & (HFI_DOWNSTREAM_FORCED | HFI_DOWNSTREAM_PHASE);
    int code = writes && row && !hfi_downstream_is_current(&row->state, &op->state) ? HF_ESTATE : 0;
    if (code == 0 && writes) {
        if (!row && !(row = add_downstream(store, op->key)))
            return HF_ENOMEM;
        hfi_downstream_merge(&row->state, &op->state, op->set);
        row->written_us = op->now.us;
        store->unhealthy_version++;
    }
    if (row)
        op->state = row->state;
    else
        memset(&op->state, 0, sizeof op->state);
    return code;
}

static void drop_share(struct hfi_memory *store, size_t at) {
    struct hfi_memory_share *share = store->shares.items[at];
    hfi_array_remove(&store->shares, at);
    hfi_free(share->key);
    hfi_free(share);
}

/* For good: what it had of shared things is the others'. */
void hfi_memory_node_gone(struct hfi_memory *store, struct hfi_memory_node *node) {
    node->gone = true;
    for (size_t i = store->shares.count; i > 0; i--)
        if (((struct hfi_memory_share *)store->shares.items[i - 1])->node == node->id)
            drop_share(store, i - 1);
}

static struct hfi_memory_share *add_share(struct hfi_memory *store, const struct hfi_op_share *op) {
    struct hfi_memory_share *share = hfi_alloc(sizeof *share);
    if (!share || !(share->key = hfi_strdup(op->key)) || hfi_array_reserve(&store->shares, 1) != 0) {
        if (share)
            hfi_free(share->key);
        hfi_free(share);
        return NULL;
    }
    share->node = op->node;
    hfi_array_append(&store->shares, share);
    return share;
}

int hfi_memory_share(struct hfi_memory *store, struct hfi_op_share *op) {
    const struct hfi_memory_node *node = hfi_memory_node(store, op->node);
    struct hfi_memory_share *own = NULL;
    uint64_t others = 0;
    uint32_t nodes = 1;
    size_t at = 0;
    const struct hfi_memory_downstream *row = downstream_of(store, op->key);
    op->held = 0;
    op->version = row ? row->state.version : 0;
    for (size_t i = 0; i < store->shares.count; i++) {
        struct hfi_memory_share *share = store->shares.items[i];
        if (strcmp(share->key, op->key) != 0)
            continue;
        if (share->node == op->node) {
            own = share;
            at = i;
        } else {
            others += share->held;
            nodes++;
        }
    }
    if (!node || node->gone)
        return 0;
    if (op->want == 0 && op->keep == 0) {
        if (own)
            drop_share(store, at);
        return 0;
    }
    if (!own && !(own = add_share(store, op)))
        return HF_ENOMEM;
    op->held = own->held = hfi_share_of(op, others, nodes);
    return 0;
}
