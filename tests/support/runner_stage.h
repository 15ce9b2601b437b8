/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_RUNNER_STAGE_H
#define HF_TEST_RUNNER_STAGE_H

#include "support.h"

#include "jobs/runner/runner.h"
#include "sim/memory_store.h"
#include "sim/scripted.h"
#include "sim/virtual.h"

/*
 * Nodes on one store in virtual time, their calls answered by a script. Each node reaches the store through a
 * door of its own that a test can shut. Everything that was logged is counted by event.
 */
#define STAGE_NODES 5
#define STAGE_EVENTS 64

/* A node's way to the store: shut, every operation answers `refuse`. */
struct stage_door {
    struct hfi_store store;
    struct hfi_store *inner;
    int refuse;         /* 0 = open */
    uint64_t refuse_kinds; /* only these (bits by enum hfi_op_kind); 0 = all */
    uint64_t seen[HFI_OP_COUNT];
    uint64_t worked;    /* commits with a claim or an outcome in them */
    void (*hook)(struct hfi_op *op, void *user); /* before each operation */
    void *hook_user;
};

struct stage_node {
    struct stage_door door;
    struct hf_store store;
    struct hfi_rulebook *book;
    const struct hf_runner_options *next; /* by stage_renew, until they are taken up */
    struct hfi_caller *caller;
    struct hfi_runner *runner;
    struct hfi_scheduler *writer_clock; /* with `own_writers`: the writer's thread, so to say */
    bool writer_hangs;                  /* it is in a commit that does not return */
    int ended; /* how often; must be 1 in the end */
    int code;
};

struct stage {
    struct hfi_scheduler *scheduler;
    struct hfi_store *port;
    char path[600]; /* of a SQLite store; "" else */
    struct hfi_writer *writer; /* the test's own */
    struct hfi_scripted *scripted;
    struct stage_node nodes[STAGE_NODES];
    hfi_script_fn decide;
    void *user;
    hfi_sink_new_fn new_sink; /* of its nodes; NULL: the real ones */
    bool own_writers; /* before a node begins: its writer has a clock of its own, that can stand still */
    struct hfi_wards *wards; /* before a node begins: the roll of its loops; NULL none */
    void (*prepare)(struct stage_node *node); /* before a node begins: handlers, observers; NULL none */
    struct {
        char event[48];
        int level, count;
        char last[1024];
    } logged[STAGE_EVENTS];
    size_t logged_count;
};

/* `decide` answers the calls; NULL: 200 after 10 ms. */
void stage_open(struct stage *stage, hfi_script_fn decide, void *user);
/* On a SQLite store, in memory where the system has a place for that: it is about order, not about the disk. */
void stage_open_sqlite(struct stage *stage, hfi_script_fn decide, void *user);
void stage_close(struct stage *stage); /* ends what still runs, checks that nothing is left */

/* Options with everything small enough for a test; `types` http, noop as wanted. */
void stage_options(struct hf_runner_options *options);
struct hf_type_options stage_http(const char *name, const char *downstream);
struct hf_type_options stage_noop(const char *name);

void stage_begin(struct stage *stage, size_t node, const struct hf_runner_options *options);
/* Other options for a node that runs: its downstreams at once, the rest when it is ready for that. */
void stage_renew(struct stage *stage, size_t node, const struct hf_runner_options *options);
void stage_drain(struct stage *stage, size_t node);
void stage_end(struct stage *stage, size_t node); /* drains it, and waits for that; its place is free again */
bool stage_over(const struct stage *stage, size_t node);
struct hf_runner_counts stage_counts(struct stage *stage, size_t node); /* checks that they add up */
struct hf_downstream *stage_downstream(struct stage *stage, size_t node, const char *name);

int64_t stage_put(struct stage *stage, const struct hf_job_spec *spec);
int64_t stage_enqueue(struct stage *stage, const char *type, const char *queue);
void stage_enqueue_many(struct stage *stage, const char *type, const char *queue, size_t count);
void stage_advance(struct stage *stage, int64_t ms);
struct hf_job_counts stage_jobs(struct stage *stage);
struct hf_job *stage_job(struct stage *stage, int64_t id); /* hf_job_free */
int32_t stage_state(struct stage *stage, int64_t id);
int stage_do(struct stage *stage, struct hfi_op *op, enum hfi_op_kind kind); /* as another process would */
int stage_logged(const struct stage *stage, const char *event); /* how often */
const char *stage_last(const struct stage *stage, const char *event); /* fields of the last, "" if none */

#endif
