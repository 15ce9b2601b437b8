/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_RUNNER_H
#define HFI_JOBS_RUNNER_H

#include "base/scheduler.h"
#include "holdfast/runner.h"
#include "jobs/deaths/sink.h"
#include "jobs/rulebook.h"
#include "jobs/wards.h"
#include "jobs/writer.h"
#include "resilience/call.h"
#include "resilience/transport.h"

/*
 * A node: joins a store, claims due jobs, runs them, writes how they ended, watches over other nodes, sends alerts,
 * drains and leaves. All of it on one scheduler's thread; store work goes to the writer as operations and comes back
 * there. The public hf_runner (src/assembly/runner.c) is this with a loop, a client and a store around it.
 */
struct hfi_runner;

/* What it works with. Everything is borrowed and outlives the runner. */
struct hfi_runner_parts {
    struct hfi_scheduler *scheduler;
    struct hf_store *store;
    const struct hf_runner_options *options;
    struct hfi_rulebook *book;        /* complete before begin; a reference is taken */
    struct hfi_caller *caller;        /* NULL: no downstreams */
    struct hf_client *client;         /* for native handlers, or NULL */
    struct hfi_transport *transport;  /* of the webhooks; NULL: none are sent from here */
    hfi_sink_new_fn new_sink;         /* NULL: hfi_sink_new */
    uint64_t seed;                    /* of its jitter; 0: the kernel's */
    bool (*busy)(void *user);         /* any work outside the store that will come into it? NULL: no; for `until_idle` */
    void *busy_user;
    struct hfi_wards *wards;          /* the roll of its loops, for a watchdog; NULL: none */
    void (*quiet)(void *user);        /* asked for by hfi_runner_quiet: hfi_runner_renew may be called in here */
    void (*ended)(int code, void *user); /* 0, 1 = jobs were left to their leases, or HF_E… when it could not join */
    void *user;
};
int hfi_runner_new(const struct hfi_runner_parts *parts, struct hfi_runner **runner, struct hf_error *error);
void hfi_runner_free(struct hfi_runner *runner); /* after `ended`, or before begin; NULL is fine */

/* Loop thread. `ended` runs once, never inside these. */
void hfi_runner_begin(struct hfi_runner *runner);
void hfi_runner_drain(struct hfi_runner *runner); /* a second call hurries */
void hfi_runner_relayed(struct hfi_runner *runner); /* outboxes: messages died, or they are empty now */
void hfi_runner_reload(struct hfi_runner *runner); /* the caller has other downstreams */
/* Has `quiet` called, at once or when what is out with the store has come back. */
void hfi_runner_quiet(struct hfi_runner *runner);
/*
 * Other types and rules (one reference, taken over) and other queues and limits, which are borrowed until the next call or
 * the end; and the caller may have other downstreams. What runs goes on as it began. Within `quiet`, or before begin.
 */
void hfi_runner_renew(struct hfi_runner *runner, const struct hf_runner_options *options, struct hfi_rulebook *book);

bool hfi_runner_abandoned(const struct hfi_runner *runner); /* after `ended`: a handler never returned, nothing can be freed */

/* Before begin. HF_ENOMEM; HF_EEXIST. */
int hfi_runner_observe(struct hfi_runner *runner, hf_transition_fn observer, void *user);
int hfi_runner_on_retry(struct hfi_runner *runner, hf_retry_fn hook, void *user);

/* Any thread. */
void hfi_runner_counts(struct hfi_runner *runner, struct hf_runner_counts *counts);

#endif
