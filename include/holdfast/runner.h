/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_RUNNER_H
#define HOLDFAST_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "alert.h"
#include "http.h"
#include "job.h"
#include "outbox.h"
#include "queue.h"
#include "store.h"

HF_BEGIN

/* How the executions of a job follow each other. curve_length 0 and max_executions 0 = not set: the next level decides. */
struct hf_curve_options {
    uint32_t size;
    uint32_t max_executions;
    uint32_t curve_length;
    int64_t curve_ms[HF_CURVE_MAX];
    double jitter;  /* 0; 0.1 = each wait ±10 % [C5] */
    int64_t cap_ms; /* 0 = none; no wait is longer, jitter included [S2.3] */
};
static inline void hf_curve_options_init(struct hf_curve_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
}

/* Fills the waits with base·factor^(n−1) up to `cap_ms` (0: none) [S1.5]. HF_EINVAL: base < 1 ms, factor not in 1…1000, cap < base. Since 0.1. */
HF_API int hf_curve_exponential(struct hf_curve_options *options, int64_t base_ms, double factor, int64_t cap_ms);
/* Fills the waits with n^power s + `plus_ms`, each ± `jitter` [S2.2]. HF_EINVAL: power 0 or > 8, plus < 0, jitter not in [0, 1]. Since 0.1. */
HF_API int hf_curve_polynomial(struct hf_curve_options *options, uint32_t power, int64_t plus_ms, double jitter);

struct hf_queue_options {
    uint32_t size;
    const char *name;
    int32_t order;        /* strict: lower first; queues with the same order share by weight */
    uint32_t weight;      /* 1 */
    uint32_t concurrency; /* per node; 0 = shares `workers` */
    const struct hf_curve_options *curve; /* NULL: the next level decides */
    uint32_t global_concurrency; /* jobs at once in the whole store, all nodes together; 0 = no bound */
    int64_t aging_ms;     /* 0 = off; a due job counts one priority higher for each so long that it has waited */
};
static inline void hf_queue_options_init(struct hf_queue_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->order = 100;
    options->weight = 1;
}

/*
 * A limit by key, for jobs enqueued with this limit_name: each of their keys has this many slots and this rate of its own,
 * in the whole store, all nodes together. A job whose key has none to spare waits unclaimed, nothing counted, and keeps
 * nobody else waiting. Give concurrency, a rate, or both. Every node of a store should say the same: each one keeps to
 * what itself was told, about the jobs of all. Since 0.1.
 */
struct hf_limit_options {
    uint32_t size;
    const char *name;     /* without a colon */
    uint32_t concurrency; /* jobs of one key at once; 0 = no bound */
    double rate_per_s;    /* starts of one key a second, at most 10,000; 0 = no bound; 0.5: one in two seconds */
    uint32_t rate_burst;  /* starts at once after a pause; 0: a tenth of a second's worth, at least one */
};
static inline void hf_limit_options_init(struct hf_limit_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
}
/* HF_EINVAL, HF_ETEXT with a reason: what hf_runner_new would refuse. Pure; any thread. Since 0.1. */
HF_API int hf_limit_check(const struct hf_limit_options *options, struct hf_error *error);

enum hf_kind { HF_KIND_HTTP, HF_KIND_EXEC, HF_KIND_NATIVE, HF_KIND_NOOP };

/* A job type: its wire name and what its jobs are. Everything is copied. */
struct hf_type_options {
    uint32_t size;
    enum hf_kind kind;
    const char *name;        /* wire name, 1…300 bytes */
    const char *queue;       /* "default" */
    bool repeatable;         /* true */
    bool no_idempotency_key; /* http: false; true keeps the job's key off the wire */
    int64_t execution_timeout_ms; /* 2 m; 0 = none; -1 = the runner's default */
    const struct hf_curve_options *curve; /* NULL: the next level decides */
    const char *downstream;  /* http: required */
    const char *method;      /* http: POST */
    const char *path;        /* http: ""; the payload is the body */
    const char *query;       /* http: NULL; without the ?; may be secret */
    const struct hf_header *headers;
    size_t header_count;
    const char *const *command;     /* exec: argv, command[0] absolute */
    size_t command_length;
    const char *const *environment; /* exec: NAME=value, or NAME to inherit */
    size_t environment_length;
    const char *directory;   /* exec: NULL = / */
    int64_t kill_grace_ms;   /* exec: 5 s between TERM and KILL */
    const char *const *never_retry; /* error types by dotted prefix, besides the runner's [S2.14] */
    size_t never_retry_count;
    const struct hf_rule *rules; /* http: NULL; on answers and failures, before those of the downstream: classify.h */
    size_t rule_count;
};
static inline void hf_type_options_init(struct hf_type_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->queue = "default";
    options->repeatable = true;
    options->execution_timeout_ms = -1;
    options->method = "POST";
    options->path = "";
    options->kill_grace_ms = 5000;
}

/* The same in one line, for a handler in C. */
static inline struct hf_type_options hf_type_native(const char *name) {
    struct hf_type_options options;
    hf_type_options_init(&options);
    options.kind = HF_KIND_NATIVE;
    options.name = name;
    return options;
}

struct hf_runner_options {
    uint32_t size;
    uint32_t workers;            /* max(2 × CPU, 8) [S3.8] */
    const char *node;            /* the host's name */
    int64_t drain_timeout_ms;    /* 25 s [S3.4] */
    int64_t lease_ms;            /* 60 s */
    int64_t heartbeat_ms;        /* 15 s */
    int64_t poll_ms;             /* 250 ms */
    int64_t execution_timeout_ms; /* 2 m; 0 = none */
    uint32_t max_give_backs;     /* 20 */
    uint32_t max_crashes;        /* 3 */
    int64_t unknown_type_grace_ms; /* 10 m; 0 while this is the only live node */
    bool until_idle;             /* false; true: end when nothing is pending or running but what is scheduled for later */
    uint32_t max_calls_per_job;  /* 100: a type that could call more often is refused; 0 = unlimited */
    const char *const *queues;   /* NULL = all */
    size_t queue_filter_count;
    const char *const *never_retry; /* error types by dotted prefix */
    size_t never_retry_count;
    const struct hf_curve_options *curve; /* NULL: 6 executions; 60 s, 5 m, 30 m, 2 h [S0.6] */
    const struct hf_downstream_options *downstreams;
    size_t downstream_count;
    const struct hf_queue_options *queue_options;
    size_t queue_count;
    const struct hf_type_options *types;
    size_t type_count;
    const struct hf_webhook_options *webhooks;
    size_t webhook_count;
    /* how long ended rows are kept; 0 = for ever */
    int64_t keep_succeeded_ms;    /* 7 d */
    int64_t keep_cancelled_ms;    /* 7 d */
    int64_t keep_dead_ms;         /* 30 d */
    int64_t keep_quarantined_ms;  /* 30 d */
    int64_t keep_dead_letters_ms; /* 90 d, settled ones only */
    int64_t keep_inbox_ms;        /* 30 d */
    /* A limit name that is not here does not limit: the first such job is told in the log, `doctor` lists them. */
    const struct hf_limit_options *limits;
    size_t limit_count;
    const struct hf_outbox_options *outboxes; /* of applications; this node relays them */
    size_t outbox_count;
};
HF_API void hf_runner_options_init_sized(struct hf_runner_options *options, uint32_t size);
static inline void hf_runner_options_init(struct hf_runner_options *options) {
    hf_runner_options_init_sized(options, (uint32_t)sizeof *options);
}

/* The same in one line, for a runner that calls these downstreams; the array is borrowed until hf_runner_new. */
static inline struct hf_runner_options hf_runner_calling(const struct hf_downstream_options *downstreams, size_t count) {
    struct hf_runner_options options;
    hf_runner_options_init(&options);
    options.downstreams = downstreams;
    options.downstream_count = count;
    return options;
}

/* A node: claims jobs of a store and runs them. */
struct hf_runner;

/* `store` must outlive the runner. Errors: HF_EINVAL, HF_ECONFIG, HF_EEXIST (two types of one name [S0.8]), HF_ENOMEM, HF_EIO. */
HF_API int hf_runner_new(struct hf_store *store, const struct hf_runner_options *options, struct hf_runner **runner,
                         struct hf_error *error);

/* One execution of a job, as its handler sees it. Lives until the handler ended it. */
struct hf_work;

/*
 * What a handler returns: only what one of the hf_work_ok … functions gave it. Anything else, 0 included, is a
 * failure of type `handler.unknown_result` [S0.1].
 */
enum hf_result {
    HF_RESULT_OK = 0x4801,
    HF_RESULT_FAILED = 0x4802,
    HF_RESULT_PERMANENT = 0x4803,
    HF_RESULT_SNOOZE = 0x4804,
    HF_RESULT_CANCEL = 0x4805
};

/*
 * Runs on a worker thread (sync) with all signals blocked, never twice at once for one execution. It must return: a
 * pthread_exit is a failure of type `handler.thread_exit`, and a C++ exception that leaves it ends the process through
 * std::terminate, so its jobs lapse as crashes; catch it and say hf_work_failed.
 */
typedef enum hf_result (*hf_handler_fn)(struct hf_work *work, void *user);

/* A native handler for `type`. HF_EEXIST: registered already. Before hf_runner_run or _start. */
HF_API int hf_runner_register(struct hf_runner *runner, const struct hf_type_options *type, hf_handler_fn handler,
                              void *user, struct hf_error *error);

/* Runs until stopped, or until idle with until_idle; blocks the caller, whose thread becomes the loop thread. 0, or 1 when a drain ended with jobs left to their leases. */
HF_API int hf_runner_run(struct hf_runner *runner, struct hf_error *error);
/* The same on a thread of its own. */
HF_API int hf_runner_start(struct hf_runner *runner, struct hf_error *error);
/* Asks for a drain: no more claims, reservations given back, running jobs get drain_timeout. A second call hurries. Any thread; async-signal-safe. */
HF_API void hf_runner_stop(struct hf_runner *runner);
/* Stops and waits for the end. Returns as hf_runner_run. Not on the loop thread. */
HF_API int hf_runner_drain(struct hf_runner *runner);
HF_API void hf_runner_free(struct hf_runner *runner); /* drains first; NULL is fine */
HF_API struct hf_client *hf_runner_client(struct hf_runner *runner);

/*
 * What a runner did since it was made. Every started execution ends in exactly one of these: started = succeeded +
 * retried + died + snoozed + cancelled + given_back + rejected + lost + running.
 */
struct hf_runner_counts {
    uint32_t size;
    uint64_t claimed, started, succeeded, retried, died, snoozed, cancelled, given_back, rejected;
    uint64_t lost;       /* executions whose end could not be recorded as theirs: the job had another owner by then */
    uint64_t running;    /* now, those included whose end is being written */
    uint64_t quarantined; /* jobs of unknown types; never started */
    uint64_t lapsed;     /* jobs taken from nodes that were gone, or that this one had lost track of */
    uint64_t orphaned;   /* of these: died with it */
    uint64_t expired;    /* ended unstarted, past expires_at */
    uint64_t overdue;    /* executions that still ran 10 s after their limit */
    uint64_t attempts;   /* requests put on the wire for jobs, probe requests included */
    uint64_t alerts_sent, alerts_failed;
    uint64_t parked;     /* due jobs kept back by a breaker, a ramp or a gate, now; at most 100,000 of a lane count */
    uint64_t relayed;    /* rows of outboxes that became jobs, or were known already */
    uint64_t poisoned;   /* rows of outboxes that became dead letters */
    int64_t outbox_oldest_ms; /* age of the oldest row that waits in any of them, now; 0: none does [S0.34] */
};
static inline void hf_runner_counts_init(struct hf_runner_counts *counts) {
    memset(counts, 0, sizeof *counts);
    counts->size = (uint32_t)sizeof *counts;
}
HF_API void hf_runner_look(struct hf_runner *runner, struct hf_runner_counts *counts); /* any thread */
/* Downstreams of the runner, to look at their breakers. NULL when there is none of that name. One reference. */
HF_API struct hf_downstream *hf_runner_downstream(struct hf_runner *runner, const char *name);

/*
 * hf_client_reload for the downstreams that this runner's jobs call: checked first, the old ones stay on any error. Job
 * types, queues, limits of the node and webhooks stay as they are, so a downstream that a job type calls may not vanish
 * (HF_ECONFIG), and the ladder is proven as at the start: every job type has to fit its downstream, max_calls_per_job as
 * well (HF_ECONFIG). What is parked is looked at again. Any thread, before, during and after the run. Since 0.1.
 */
HF_API int hf_runner_reload(struct hf_runner *runner, const struct hf_downstream_options *downstreams, size_t count,
                            struct hf_error *error);

/* For handlers; any thread while the work lives. Texts and bytes belong to the work. */
HF_API int64_t hf_work_job(const struct hf_work *work);
HF_API const char *hf_work_type(const struct hf_work *work);
HF_API const char *hf_work_key(const struct hf_work *work); /* stable over executions, requeue and redrive */
HF_API uint32_t hf_work_execution(const struct hf_work *work); /* 1 first [S1.7] */
HF_API uint32_t hf_work_max_executions(const struct hf_work *work);
HF_API const void *hf_work_payload(const struct hf_work *work, size_t *length);
HF_API int64_t hf_work_remaining_ms(const struct hf_work *work); /* of the execution timeout; INT64_MAX without one */
HF_API bool hf_work_is_cancelled(const struct hf_work *work);
HF_API struct hf_client *hf_work_client(const struct hf_work *work);

/* hf_call with the job's idempotency key and the total cut to what is left of the execution timeout. */
HF_API int hf_work_call(struct hf_work *work, const struct hf_request *request, struct hf_response **response,
                        struct hf_error *error);

/* One such call, whose outcome becomes that of the execution, as it is: what most handlers return. */
HF_API enum hf_result hf_work_forward(struct hf_work *work, const struct hf_request *request);

/* How it ended. Each returns what the handler has to return; the last one before that counts. */
/* `result` is copied, at most 64 KiB: more is a permanent failure `result.too_big`. */
HF_API enum hf_result hf_work_ok(struct hf_work *work, const void *result, size_t length);
HF_API enum hf_result hf_work_end_as(struct hf_work *work, const struct hf_outcome *outcome); /* success, failure, rejected: as it is */
HF_API enum hf_result hf_work_failed(struct hf_work *work, const char *error_type, const char *message);
HF_API enum hf_result hf_work_permanent(struct hf_work *work, const char *error_type, const char *message);
HF_API enum hf_result hf_work_snooze(struct hf_work *work, int64_t for_ms); /* no failure counted; 0 = now */
HF_API enum hf_result hf_work_cancel(struct hf_work *work, const char *reason);

HF_END

#endif
