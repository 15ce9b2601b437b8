/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_NODE_H
#define HFI_SIM_NODE_H

#include "jobs/runner/runner.h"
#include "sim/scenario.h"

/*
 * A node of the simulation: a caller, and a runner when there are jobs, on the shared scheduler, transport and store. It
 * can be killed: nothing it does reaches the store any more, and its calls are gone. On the scheduler's thread.
 */
struct hfi_node;

struct hfi_node_parts {
    struct hfi_scheduler *scheduler;
    struct hfi_transport *transport;
    struct hfi_store *store; /* NULL: no runner */
    const struct hfi_cast *cast;
    uint64_t seed;
    hf_downstream_event_fn changed;
    hf_transition_fn moved;
    void *user;
};
int hfi_node_new(const struct hfi_node_parts *parts, struct hfi_node **node, struct hf_error *error);
struct hfi_caller *hfi_node_caller(struct hfi_node *node);
struct hf_downstream *hfi_node_downstream(struct hfi_node *node); /* borrowed */
void hfi_node_counts(struct hfi_node *node, struct hf_runner_counts *counts); /* zeroes without a runner */
void hfi_node_kill(struct hfi_node *node);
/* Lets go of what it runs; it may need time for that: false until it can be freed. Asked again and again. */
bool hfi_node_end(struct hfi_node *node);
void hfi_node_free(struct hfi_node *node); /* ended; NULL is fine */

#endif
