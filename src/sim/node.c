/* SPDX-License-Identifier: MIT */
/*
 * One node of the simulation, put together as the public runner is, but on virtual time. A killed one loses its way to the
 * store, as a process does. On the scheduler's thread.
 */
#include "sim/node.h"

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/downstream.h"

struct hfi_node {
    struct hfi_store door; /* first: the node's way to the store; its options and uuid are the store's */
    struct hfi_store *inner;
    bool shut;
    struct hf_store store;
    struct hfi_caller *caller;
    struct hf_downstream *downstream;
    struct hfi_rulebook *book;
    struct hfi_runner *runner;
    struct hfi_node_parts parts;
    bool begun, ended;
    int hurried;
};

static void door_commit(struct hfi_store *self, struct hfi_op **ops, size_t count) {
    struct hfi_node *node = (struct hfi_node *)(void *)self;
    if (!node->shut) {
        node->inner->ops->commit(node->inner, ops, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        ops[i]->code = HF_EIO;
}

static int no_descriptor(struct hfi_store *self) {
    (void)self;
    return -1;
}

static const struct hfi_store_ops door_ops = {.version = HFI_STORE_VERSION, .kind = "simulated", .commit = door_commit,
                                              .wake_fd = no_descriptor};

static void ended(int code, void *user) {
    (void)code;
    ((struct hfi_node *)user)->ended = true;
}

static int make_runner(struct hfi_node *node, struct hf_error *error) {
    const struct hf_runner_options *options = &node->parts.cast->options;
    node->inner = node->parts.store;
    node->door = *node->inner;
    node->door.ops = &door_ops;
    node->store.port = &node->door;
    int code = hfi_writer_new_on(&node->door, node->parts.scheduler, &node->store.writer);
    if (code != 0)
        return hfi_fail(error, code, "simulation", NULL, "no memory");
    code = hfi_rulebook_new(options, &node->book, error);
    struct hfi_runner_parts parts = {.scheduler = node->parts.scheduler, .store = &node->store, .options = options,
                                     .book = node->book, .caller = node->caller, .seed = node->parts.seed, .ended = ended,
                                     .user = node};
    if (code == 0)
        code = hfi_runner_new(&parts, &node->runner, error);
    if (code == 0)
        code = hfi_runner_observe(node->runner, node->parts.moved, node->parts.user);
    if (code != 0)
        return code;
    node->begun = true;
    hfi_runner_begin(node->runner);
    return 0;
}

int hfi_node_new(const struct hfi_node_parts *parts, struct hfi_node **out, struct hf_error *error) {
    struct hfi_node *node = hfi_alloc(sizeof *node);
    struct hfi_caller_options options = {.scheduler = parts->scheduler, .transport = parts->transport, .seed = parts->seed};
    if (node == NULL)
        return hfi_fail(error, HF_ENOMEM, "simulation", NULL, "no memory");
    node->parts = *parts;
    int code = hfi_caller_new(&options, &parts->cast->downstream, 1, &node->caller, error);
    if (code == 0) {
        node->downstream = hfi_caller_downstream(node->caller, parts->cast->downstream.name);
        node->downstream->breaker.seed = (uint32_t)(parts->seed * UINT64_C(0x9e3779b97f4a7c15) >> 32);
        code = hf_downstream_observe(node->downstream, parts->changed, parts->user);
    }
    if (code == 0 && parts->store != NULL)
        code = make_runner(node, error);
    if (code != 0)
        hfi_node_free(node);
    else
        *out = node;
    return code;
}

struct hfi_caller *hfi_node_caller(struct hfi_node *node) {
    return node->caller;
}

struct hf_downstream *hfi_node_downstream(struct hfi_node *node) {
    return node->downstream;
}

void hfi_node_counts(struct hfi_node *node, struct hf_runner_counts *counts) {
    hf_runner_counts_init(counts);
    if (node->runner != NULL)
        hfi_runner_counts(node->runner, counts);
}

static void hurry(struct hfi_node *node) {
    for (; node->begun && !node->ended && node->hurried < 2; node->hurried++)
        hfi_runner_drain(node->runner);
    hfi_caller_end(node->caller); /* what was begun since, too */
}

void hfi_node_kill(struct hfi_node *node) {
    node->shut = true;
    hf_downstream_unobserve(node->downstream, node->parts.changed, node->parts.user);
    hurry(node);
}

bool hfi_node_end(struct hfi_node *node) {
    node->shut = false; /* nobody looks any more, and it cannot go without */
    hurry(node);
    return !node->begun || node->ended;
}

void hfi_node_free(struct hfi_node *node) {
    if (node == NULL)
        return;
    hfi_runner_free(node->runner);
    if (node->downstream != NULL)
        hf_downstream_unobserve(node->downstream, node->parts.changed, node->parts.user);
    hf_downstream_unref(node->downstream);
    hfi_caller_free(node->caller);
    hfi_rulebook_free(node->book);
    hfi_writer_close(node->store.writer);
    hfi_free(node);
}
