/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_RUNNER_H
#define HOLDFAST_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "alert.h"
#include "forward.h"
#include "http.h"
#include "job.h"
#include "outbox.h"
#include "plugin.h"
#include "queue.h"
#include "store.h"
#include "work.h"

HF_BEGIN

/*
 * How the executions of a job follow each other. curve_length 0 and max_executions 0 = not set: the next level decides. A
 * list of waits is a whole policy: without max_executions they are the waits + 1. A formula says nothing about their
 * number: without max_executions it keeps that of the levels behind it, 6 when none has one.
 */
struct hf_curve_options {
    uint32_t size;
    uint32_t max_executions;
    uint32_t curve_length;
    int64_t curve_ms[HF_CURVE_MAX];
    double jitter;  /* 0; 0.1 = each wait ±10 % [C5] */
    int64_t cap_ms; /* 0 = none; no wait is longer, jitter included [S2.3] */
    bool formula;   /* false; set by the functions below: curve_length says nothing about the number of executions */
};
static inline void hf_curve_options_init(struct hf_curve_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
}

/* Fills the waits with base·factor^(n−1) up to `cap_ms` (0: none) [S1.5]. HF_EINVAL: base < 1 ms, factor not in 1…1000, cap < base. Since 0.1. */
HF_API int hf_curve_exponential(struct hf_curve_options *options, int64_t base_ms, double factor, int64_t cap_ms);
/* Fills the waits with n^power s + `plus_ms`, each ± `jitter` [S2.2]. HF_EINVAL: power 0 or > 8, plus < 0, jitter not in [0, 1]. Since 0.1. */
HF_API int hf_curve_polynomial(struct hf_curve_options *options, uint32_t power, int64_t plus_ms, double jitter);

/* The wait in ms after that many failures (1 first). Must always say the same for the same number: chance belongs to `jitter` (C15). */
typedef int64_t (*hf_curve_fn)(uint32_t failures, void *user);
/*
 * Fills the waits with what `wait` says, asked once each, here and never again: the table is stored with the job, so every
 * failure, a lapse found by another process too, waits the same [S1.6, S2.17]. The last one stays. Takes effect as a curve
 * does, and is a formula: without max_executions the levels behind it decide how many. HF_EINVAL: a
 * negative wait; the options are as before. Since 0.1.
 */
HF_API int hf_curve_from(struct hf_curve_options *options, hf_curve_fn wait, void *user);

struct hf_queue_options {
    uint32_t size;
    const char *name;
    int32_t order;        /* strict: lower first; queues with the same order share by weight */
    uint32_t weight;      /* 1 */
    uint32_t concurrency; /* per node, its own in any case; 0 = shares `workers` */
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

enum hf_kind { HF_KIND_HTTP, HF_KIND_EXEC, HF_KIND_NATIVE, HF_KIND_NOOP, HF_KIND_PLUGIN };
/* Where a handler runs: on a thread of the node, or in a process of its own for each execution (plugin.h). */
enum hf_isolate { HF_ISOLATE_NONE, HF_ISOLATE_PROCESS };
/*
 * What a type's payloads are. One that is not is quarantined at its first start, type `payload.text` or `payload.json`. With
 * anything but BYTES a command that exits with 65 (EX_DATAERR) says so as well: `payload.unreadable`.
 */
enum hf_payload {
    HF_PAYLOAD_BYTES, /* anything */
    HF_PAYLOAD_TEXT,  /* UTF-8 without NUL */
    HF_PAYLOAD_JSON   /* one value of any kind, no name twice in an object */
};

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
    /*
     * http: in path, query, url and the values of headers a `{name}` stands for the top-level field of that name of the
     * payload, a JSON object then: text, whole number, true or false. It is percent-encoded, but for headers and a url
     * that is nothing else. What is missing, no such value, or would be a path segment . or .. ends the job for good
     * with type `payload.field`, in quarantine. Elsewhere the payload is any bytes.
     */
    const char *path;        /* http: ""; the payload is the body */
    const char *query;       /* http: NULL; without the ?; may be secret */
    const struct hf_header *headers;
    size_t header_count;
    const char *const *command;     /* exec, isolated: argv, command[0] absolute */
    size_t command_length;
    const char *const *environment; /* exec, isolated: NAME=value, or NAME to inherit */
    size_t environment_length;
    const char *directory;   /* exec, isolated: NULL = / */
    int64_t kill_grace_ms;   /* exec, isolated: 5 s between TERM and KILL */
    const char *const *never_retry; /* error types by dotted prefix, besides the runner's [S2.14] */
    size_t never_retry_count;
    const struct hf_rule *rules; /* http: NULL; on answers and failures, before those of the downstream: classify.h */
    size_t rule_count;
    int64_t heartbeat_timeout_ms; /* native, plugin: 0 = off; silent for that long is lapsed, isolated: killed [C10]; below execution_timeout */
    int64_t abandon_after_ms;     /* native, plugin on a thread: -1 = the runner's; 0 = never */
    /*
     * Which form of payload the handler reads: any text of up to 63 bytes. With release_quarantined a node that starts,
     * or is configured anew, lets quarantined jobs of the type in again, by themselves: those that no node had known the type of, and those that
     * nobody could read under another schema than this one.
     */
    const char *schema;           /* "" */
    bool release_quarantined;     /* false */
    const char *labels;           /* "": comma separated, for handlers and observers to read [S1.26] */
    const char *url;         /* http: NULL; for a per_host downstream, which needs it, as `{url}`; path and query stay empty */
    const char *body_field;  /* http: NULL = the payload is the body; else this field of it: a text as it is, others as JSON */
    /* exec and isolated: limits of each process, as setrlimit has them; 0 = those of this one, which none exceeds */
    int64_t max_memory;      /* bytes of address space */
    int64_t max_cpu_ms;      /* of processor time, rounded up to seconds: SIGXCPU, a second later SIGKILL */
    uint32_t max_files;      /* open descriptors */
    uint32_t max_processes;  /* of its user in all; root is not bound by it */
    const char *library;     /* plugin: absolute path of the shared object */
    enum hf_isolate isolate; /* native, plugin: HF_ISOLATE_NONE; needs `command`, the program that runs it: plugin.h */
    enum hf_payload payload; /* HF_PAYLOAD_BYTES */
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
    options->abandon_after_ms = -1;
    options->labels = "";
    options->schema = "";
}

/*
 * HF_EINVAL, HF_ETEXT, HF_ECONFIG with a reason: what a runner would refuse about it, whatever its downstream. Loads the
 * library of a plugin, runs nothing of it but its entry. Native types count as having a handler. Any thread. Since 0.1.
 */
HF_API int hf_type_check(const struct hf_type_options *options, struct hf_error *error);
/*
 * Which host a job of that http type would call with that payload: the type's `url` with the payload's fields, scheme, host
 * and port alone, for host_url of struct hf_job_spec. `text` has HF_HOST_LENGTH bytes. HF_ENOENT: the type has no url.
 * HF_EINVAL: the payload gives none. HF_ENOMEM. Pure; any thread. Since 0.1.
 */
#define HF_HOST_LENGTH 280
HF_API int hf_type_host(const struct hf_type_options *options, const void *payload, size_t length, char *text);

/* The same in one line, for a handler in C. */
static inline struct hf_type_options hf_type_native(const char *name) {
    struct hf_type_options options;
    hf_type_options_init(&options);
    options.kind = HF_KIND_NATIVE;
    options.name = name;
    return options;
}

/*
 * One of the runner's loops makes no progress any more and cannot be begun again: `runner`, `writer`, the name of an outbox,
 * which hold connections and transactions; `sweep` or `worker N` when that was tried in vain. Nobody can end a thread of C
 * that hangs, so leave with _exit and let a supervisor begin again; leases bring the jobs back. Runs on the watchdog's
 * thread, while locks may be held for ever: async-signal-safe functions only are safe to call.
 */
typedef void (*hf_hung_fn)(const char *loop, void *user);

enum hf_runner_phase {
    HF_RUNNER_READY,   /* it has joined the store, and claims */
    HF_RUNNER_STOPPING /* it drains; also told when it ends without */
};
typedef void (*hf_phase_fn)(enum hf_runner_phase phase, void *user); /* the loop thread; must not block */

struct hf_runner_options {
    uint32_t size;
    uint32_t workers;            /* max(2 × CPU, 8) [S3.8]; pool of threads: this, or the sum of concurrency if more */
    const char *node;            /* the host's name */
    int64_t drain_timeout_ms;    /* 25 s [S3.4] */
    int64_t lease_ms;            /* 60 s */
    int64_t heartbeat_ms;        /* 15 s */
    int64_t poll_ms;             /* 250 ms */
    int64_t execution_timeout_ms; /* 2 m; 0 = none */
    uint32_t max_give_backs;     /* 20 */
    uint32_t prefetch;           /* 0, off; at most 1024: jobs reserved while all slots are taken, held for a second at most */
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
    const struct hf_sink_options *sinks;
    size_t sink_count;
    /* how long ended rows are kept; 0 = for ever */
    int64_t keep_succeeded_ms;    /* 7 d */
    int64_t keep_cancelled_ms;    /* 7 d */
    int64_t keep_dead_ms;         /* 30 d */
    int64_t keep_quarantined_ms;  /* 30 d */
    int64_t keep_dead_letters_ms; /* 90 d, settled ones only */
    int64_t keep_inbox_ms;        /* 30 d */
    int64_t keep_audit_ms;        /* 365 d: who did what to jobs, dead letters, queues, downstreams, and why */
    /* A limit name that is not here does not limit: the first such job is told in the log, `doctor` lists them. */
    const struct hf_limit_options *limits;
    size_t limit_count;
    const struct hf_outbox_options *outboxes; /* of applications; this node relays them */
    size_t outbox_count;
    /*
     * A native handler that still runs so long after its limit loses its slot to a fresh thread and its job is lapsed;
     * while it lives this node starts no other job of its type. 5 m; 0 = never.
     */
    int64_t abandon_after_ms;
    uint32_t max_abandoned;       /* 0 = `workers`; with so many alive the node drains and ends with 1 */
    /*
     * The watchdog: a loop that makes no progress for so long is told in the log (`loop.late`, once a minute), makes
     * hf_runner_healthy false and, a round later (a quarter of that, 15 s at most), is begun again where that is safe
     * (`loop.restarted`: a worker outside of handlers, the sweep), once until its next sign of life, or given to `hung`.
     * A handler that runs for long is no hang of its worker: execution_timeout and abandon_after_ms are for it.
     */
    int64_t watchdog_ms;       /* 60 s; 0 = off */
    int64_t watchdog_grace_ms; /* 5 m: the same for the first sign of life */
    hf_hung_fn hung;           /* NULL: nothing but the log and the health. `holdfast run` exits */
    /*
     * A signal by which a thread that is late is made to write its stack into the log (field `stack` of `loop.late`); its
     * handler is installed for the whole process, and the runner's threads let it through. One that the program does not
     * use; HF_EEXIST: it has a handler. 0 = none: then only what the kernel tells of the thread is logged.
     */
    int stack_signal;
    hf_phase_fn phase;         /* NULL */
    void *life_user;           /* of both */
    const struct hf_forward_options *forwards; /* what of deaths goes where: forward.h */
    size_t forward_count;
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

/* A native handler for `type`. HF_EEXIST: registered already. Before hf_runner_run or _start. */
HF_API int hf_runner_register(struct hf_runner *runner, const struct hf_type_options *type, hf_handler_fn handler,
                              void *user, struct hf_error *error);
/* An asynchronous one, on the loop thread: see hf_async_handler_fn. Takes no worker slot. Else as hf_runner_register. Since 0.1. */
HF_API int hf_runner_register_async(struct hf_runner *runner, const struct hf_type_options *type,
                                    hf_async_handler_fn handler, void *user, struct hf_error *error);

/*
 * A handler of deaths: it is run once for each death or quarantine of a job of the type that the options name, as a job
 * of its own (type `holdfast.death.` and that name) that is put in the transaction of the death: it has the dead job's
 * payload, content type, tags, correlation id and idempotency key, is retried by the curve of these options (max_executions
 * 1: never), and survives a crash. hf_work_death gives it the record. What it ends with changes nothing about the dead
 * job [S2.18]; its own death is told as any, and handled by nobody. Put for deaths that this node ends or finds, so let
 * every node register it. Queue: `holdfast.deaths` unless the options name another one. As hf_runner_register; HF_EEXIST:
 * there is one for that type. Since 0.1.
 */
HF_API int hf_runner_on_death(struct hf_runner *runner, const struct hf_type_options *type, hf_handler_fn handler, void *user,
                              struct hf_error *error);

/* What became of a job in one transition that this node made, as committed. Texts live during the call; "" when absent. */
struct hf_transition_view {
    uint32_t size;
    int32_t state;         /* enum hf_job_state, from now on */
    int64_t job;
    const char *type, *queue, *correlation_id;
    const char *event;     /* `succeeded`, `failed`, `snoozed`, `lapsed` … as in a job's history */
    uint32_t execution;
    bool terminal;         /* it will not run again by itself */
    bool late;             /* succeeded, but past its execution timeout [S2.8] */
    const char *error_class, *error_type, *message, *rule;
    int64_t at_us, run_at_us; /* run_at_us: of the next execution; 0 none */
    int64_t dead_letter;   /* 0: none was made */
};
typedef void (*hf_transition_fn)(const struct hf_transition_view *transition, void *user);
/*
 * Hears of the ends of this node's executions, and of deaths and quarantines that this node found, each after its
 * commit: nothing can be vetoed or changed any more [S1.24]. On the loop thread: be quick, and no blocking function. An
 * observer that has to hear of every end, also after a crash, enqueues a continuation instead. Any number; before the
 * run. HF_ESTATE: it runs; HF_ENOMEM. Since 0.1.
 */
HF_API int hf_runner_observe(struct hf_runner *runner, hf_transition_fn observer, void *user);

/* A failure that is about to be retried. */
struct hf_retry_view {
    uint32_t size;
    uint32_t execution, failures, max_executions; /* failures: this one included */
    int64_t job;
    const char *type, *queue;
    const struct hf_outcome *outcome;
    int64_t delay_ms; /* as planned, jitter included */
    int64_t cap_ms;   /* the longest that a hook may ask for: the longest wait of the curve, or of Retry-After */
};
struct hf_retry_ruling {
    uint32_t size;
    bool permanent;   /* no retry: the job dies now, class permanent, rule `retry_hook` */
    int64_t delay_ms; /* as planned; another one is cut to 0 … cap_ms, reason `retry_hook` */
};
typedef void (*hf_retry_fn)(const struct hf_retry_view *retry, struct hf_retry_ruling *ruling, void *user);
/*
 * The retry hook [S1.25]: asked once for each execution of this node that failed or timed out and would be retried,
 * before that is written; `ruling` comes as planned. It only decides: loop thread, no blocking function, no effects (the
 * write may still be lost). Not asked for jobs taken over from nodes that died. One per runner, before the run.
 * HF_EEXIST: there is one; HF_ESTATE: it runs. Since 0.1.
 */
HF_API int hf_runner_on_retry(struct hf_runner *runner, hf_retry_fn hook, void *user);

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
 * retried + died + unreadable + snoozed + cancelled + given_back + rejected + lost + running.
 */
struct hf_runner_counts {
    uint32_t size;
    uint64_t claimed, started, succeeded, retried, died, snoozed, cancelled, given_back, rejected;
    uint64_t lost;       /* executions whose end could not be recorded as theirs: the job had another owner by then */
    uint64_t running;    /* now, those included whose end is being written */
    uint64_t quarantined; /* jobs of unknown types, never started, and `unreadable` ones */
    uint64_t lapsed;     /* jobs taken from nodes that were gone, or that this one had lost track of */
    uint64_t orphaned;   /* of these: died with it */
    uint64_t expired;    /* ended unstarted, past expires_at */
    uint64_t overdue;    /* executions that still ran 10 s after their limit */
    uint64_t attempts;   /* requests put on the wire for jobs, probe requests included */
    uint64_t alerts_sent, alerts_failed; /* tries */
    uint64_t alerts_summaries, alerts_digests; /* of those sent: what told of several deaths */
    uint64_t alerts_undelivered; /* given up; each was told in the log, those of a sink that is no more by their number */
    uint64_t parked;     /* due jobs kept back by a breaker, a ramp or a gate, now; at most 10,000 in all are counted */
    uint64_t relayed;    /* rows of outboxes that became jobs, or were known already */
    uint64_t poisoned;   /* rows of outboxes that became dead letters */
    int64_t outbox_oldest_ms; /* age of the oldest row that waits in any of them, now; 0: none does [S0.34] */
    uint64_t late;       /* of succeeded: past their limit */
    uint64_t silent;     /* executions that were lapsed because no heartbeat came */
    uint64_t abandoned;  /* executions that were lapsed because their handler did not return; `silent` ones included */
    uint64_t abandoned_live; /* of these: handlers that have not returned, now */
    uint64_t late_loops;   /* loops without a sign of life for longer than watchdog_ms, now */
    uint64_t missed_beats; /* how often that was said */
    uint64_t restarted_loops; /* how often one was begun again */
    uint64_t unreadable;   /* jobs whose handler could not read the payload: quarantined, as if never started */
    /*
     * How often a death, and a retry, was told in the log: a check of itself. death_lines = died + orphaned + quarantined,
     * but for deaths whose dead letter was there already [S0.19, S0.23].
     */
    uint64_t death_lines, retry_lines;
    uint64_t readmitted;     /* quarantined jobs that were let in again by themselves */
    uint64_t forwarded;      /* of succeeded: runs of death handlers and copies of forwarders */
    uint64_t forward_failed; /* of died: the same */
};
static inline void hf_runner_counts_init(struct hf_runner_counts *counts) {
    memset(counts, 0, sizeof *counts);
    counts->size = (uint32_t)sizeof *counts;
}
HF_API void hf_runner_look(struct hf_runner *runner, struct hf_runner_counts *counts); /* any thread */
/* No loop of it is late by the watchdog; true while that is off. What a health check asks. Any thread. Since 0.1. */
HF_API bool hf_runner_healthy(const struct hf_runner *runner);
/* Downstreams of the runner, to look at their breakers. NULL when there is none of that name. One reference. */
HF_API struct hf_downstream *hf_runner_downstream(struct hf_runner *runner, const char *name);

/*
 * hf_client_reload for the downstreams that this runner's jobs call: checked first, the old ones stay on any error. All else
 * stays as it is, so a downstream that a job type calls may not vanish (HF_ECONFIG), and the ladder is proven as at the
 * start: every job type has to fit its downstream, max_calls_per_job as well (HF_ECONFIG). What is parked is looked at
 * again. Any thread, before, during and after the run. Since 0.1.
 */
HF_API int hf_runner_reload(struct hf_runner *runner, const struct hf_downstream_options *downstreams, size_t count,
                            struct hf_error *error);
/*
 * Other options for a running node, all of them or, on any error, none. It takes over
 * - downstreams, as hf_runner_reload does;
 * - forwarders;
 * - types: a new one is claimed from now on; a changed one runs as it says now from the next execution on; one that is gone
 *   is claimed no more, and its jobs are those of an unknown type. Handlers that were registered stay, whatever the options
 *   say, and get the new defaults. A plugin of the same library goes on as it was begun;
 * - curves, max_executions, never_retry, execution_timeout_ms, abandon_after_ms, max_crashes and max_give_backs of the
 *   runner, the queues and the types. A job keeps the policy it got when it was enqueued, or at its first start;
 * - queues: order, weight, concurrency, global_concurrency, aging_ms (one that is not there any more has the defaults);
 *   limits; drain_timeout_ms, poll_ms, prefetch, unknown_type_grace_ms, max_abandoned, max_calls_per_job and all keep_…_ms.
 * What runs keeps its slot and goes on by the options it began with, to its stored end. Everything else has to be what a
 * start would take, and stays as it was: store, node, workers, queues (the filter), lease, heartbeat, watchdog, until_idle,
 * sinks, outboxes. No more threads are made for native handlers than the options of the start had slots.
 * The downstreams are in force when it returns, the rest as soon as no claim is out: a job of a type and its downstream that
 * go together, and that begins in between, is put back, uncounted. Any thread, before, during and after the run. HF_EINVAL,
 * HF_ETEXT, HF_ETOOBIG, HF_ECONFIG, HF_EEXIST, HF_ENOMEM: nothing is changed. Since 0.1.
 */
HF_API int hf_runner_tune(struct hf_runner *runner, const struct hf_runner_options *options, struct hf_error *error);

HF_END

#endif
