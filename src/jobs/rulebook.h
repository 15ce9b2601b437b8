/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_RULEBOOK_H
#define HFI_JOBS_RULEBOOK_H

#include "holdfast/runner.h"
#include "jobs/forward.h"
#include "jobs/transition.h"

/*
 * A node's configuration of types, queues and defaults, worked out once and then immutable: any thread reads it, so the
 * writer can run transitions. A node that is configured anew gets another one; it is counted, so that executions and
 * operations go on by the one they began with. Precedence: enqueue > job type > queue > global; the closest replaces the whole policy
 * [S0.10]; max_executions alone keeps the curve (C14).
 */
struct hfi_rulebook;

/* A type as configured, texts owned by the rulebook. */
struct hfi_type {
    struct hf_type_options options;
    hf_handler_fn handler; /* native: one of the two */
    hf_async_handler_fn async_handler;
    void *user;
    bool error_header; /* of a forwarder: its calls tell the type of the error */
    struct hfi_plugin *plugin; /* of kind plugin; NULL if isolated: it is begun in its processes */
    struct hfi_curve policy; /* in force for its default queue */
    int64_t execution_timeout_ms; /* resolved; 0 = none */
    int64_t abandon_after_ms;     /* resolved; 0 = never */
};
int hfi_rulebook_new(const struct hf_runner_options *options, struct hfi_rulebook **book, struct hf_error *error);
/*
 * The one that follows `before` on a node: besides what the options say it has the handlers that were registered, plugins
 * as they were begun, and the alert sinks of before, whose senders are made at the start.
 */
int hfi_rulebook_next(const struct hf_runner_options *options, const struct hfi_rulebook *before,
                      struct hfi_rulebook **book, struct hf_error *error);
struct hfi_rulebook *hfi_rulebook_hold(struct hfi_rulebook *book); /* one reference more; any thread */
void hfi_rulebook_free(struct hfi_rulebook *book); /* one less, and none frees it; NULL is fine; any thread */
/* Before it is used by others. HF_EEXIST: a type of that name is there. */
int hfi_rulebook_add(struct hfi_rulebook *book, const struct hf_type_options *type, hf_handler_fn handler, void *user,
                     struct hf_error *error);
int hfi_rulebook_add_async(struct hfi_rulebook *book, const struct hf_type_options *type, hf_async_handler_fn handler,
                           void *user, struct hf_error *error);

/* A handler of deaths of the jobs whose type the options name. As hfi_rulebook_add. */
int hfi_rulebook_on_death(struct hfi_rulebook *book, const struct hf_type_options *type, hf_handler_fn handler, void *user,
                          struct hf_error *error);
/* HF_ECONFIG: a forwarder makes jobs of a type that is not there. Once all types are. */
int hfi_rulebook_prove_forwards(const struct hfi_rulebook *book, struct hf_error *error);
const struct hfi_forwards *hfi_rulebook_forwards(const struct hfi_rulebook *book);

const struct hfi_type *hfi_rulebook_type(const struct hfi_rulebook *book, const char *name); /* NULL unknown */
size_t hfi_rulebook_type_count(const struct hfi_rulebook *book);
const char *const *hfi_rulebook_names(const struct hfi_rulebook *book); /* of the types */
const struct hfi_type *hfi_rulebook_type_at(const struct hfi_rulebook *book, size_t index);
/* The policy for a job of this type in this queue, when the job brought none. Lives as long as the book. */
const struct hfi_curve *hfi_rulebook_policy(const struct hfi_rulebook *book, const char *type, const char *queue);
/* Do its jobs run code of others, for which a slot of the workers is taken? */
static inline bool hfi_needs_worker(const struct hfi_type *type) {
    return type->options.kind == HF_KIND_NATIVE || type->options.kind == HF_KIND_EXEC ||
           type->options.kind == HF_KIND_PLUGIN;
}
/* May that code take the node down? Not from a process of its own [3.5]. */
static inline bool hfi_runs_code(const struct hfi_type *type) {
    return hfi_needs_worker(type) && type->options.isolate != HF_ISOLATE_PROCESS;
}
/* The kind whose machinery runs it: a process when isolated, a thread for a plugin. */
static inline enum hf_kind hfi_runs_as(const struct hfi_type *type) {
    if (type->options.isolate == HF_ISOLATE_PROCESS)
        return HF_KIND_EXEC;
    return type->options.kind == HF_KIND_PLUGIN ? HF_KIND_NATIVE : type->options.kind;
}
/* The rules for a job; random is left 0, unhealthy_since_us 0. */
void hfi_rulebook_for(const struct hfi_rulebook *book, const struct hfi_job *job, struct hfi_rules *rules);
/* Alert sinks that hear of deaths. */
size_t hfi_rulebook_sinks(const struct hfi_rulebook *book, const char *const **names);
/* How they collapse storms, as many and in the same order. */
struct hfi_sink_rule {
    const char *name;
    int64_t collapse_us; /* 0: one alert per death, at once, without a pace. So it is for a sink that no node ever named. */
};
const struct hfi_sink_rule *hfi_rulebook_sink_rules(const struct hfi_rulebook *book);

#endif
