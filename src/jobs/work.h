/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_WORK_H
#define HFI_JOBS_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scheduler.h"
#include "holdfast/runner.h"
#include "jobs/record.h"
#include "jobs/rulebook.h"
#include "resilience/call.h"
#include "resilience/outcome.h"

/*
 * One execution in progress: made by the runner after the start was committed, run by a kind, ended exactly once through
 * `ended` on the loop thread. Loop thread only, but for the fields marked atomic and, while a sync native handler runs,
 * the ending, which is that handler's thread's until it returned.
 */
enum hfi_stop { HFI_STOP_NONE, HFI_STOP_TIMEOUT, HFI_STOP_CANCEL, HFI_STOP_DRAIN, HFI_STOP_LOST }; /* LOST: the lease; nothing may be written */

/* How it ended, as the kind or handler says. */
struct hfi_ending {
    enum hf_result result;      /* 0 = nobody said: a failure [S0.1] */
    struct hf_outcome outcome;  /* FAILED, PERMANENT; also REJECTED through FAILED with that kind */
    int64_t delay_ms;           /* SNOOZE */
    char text[512];             /* CANCEL: the reason */
    void *data;                 /* OK: result; hfi_alloc, the work's */
    size_t length;
    char *detail;               /* NULL or full text for the dead letter; hfi_alloc, the work's */
};

struct hf_work {
    struct hfi_job *job;          /* the work's own */
    const struct hfi_type *type;
    struct hfi_scheduler *scheduler;
    struct hfi_caller *caller;    /* calls of the http kind */
    struct hf_client *client;     /* for native handlers */
    struct hf_mono deadline;      /* of the execution; HFI_FOREVER_US without a timeout */
    uint32_t max_executions;
    char key[HFI_KEY_MAX + 1];    /* idempotency key in force: hfi_idempotency_key, filled by the runner */
    _Atomic int stop;             /* enum hfi_stop: why it should end */
    _Atomic uint32_t attempts;    /* requests its calls put on the wire */
    _Atomic bool may_have_sent;   /* some attempt may have reached a peer */
    struct hfi_ending ending;
    void (*ended)(struct hf_work *work, void *user); /* the runner's: takes the work back */
    void *user;
    /* the kind's: */
    void *kind_state;
    struct hfi_task task;
    /* the runner's: */
    struct hf_work *previous, *next;
    struct hfi_timer timer;
    void *runner_state;
};

/* Fill the ending; also behind the public hf_work_…. */
void hfi_ending_free(struct hfi_ending *ending);
enum hf_result hfi_work_outcome(struct hf_work *work, const struct hf_outcome *outcome);

/*
 * A kind of job. One object per runner. `start` begins (0) and later, never inside start, calls work->ended once on the
 * loop thread; on an error nothing began and the ending says why. `stop` asks a running one to end soon, as work->stop
 * says; it still ends through `ended`. `hurry`: at once.
 */
struct hfi_kind;
struct hfi_kind_ops {
    const char *name;
    bool uses_worker; /* true: takes one of the node's worker slots */
    int (*start)(struct hfi_kind *self, struct hf_work *work);
    void (*stop)(struct hfi_kind *self, struct hf_work *work, bool hurry);
    void (*close)(struct hfi_kind *self); /* nothing runs any more */
};
struct hfi_kind {
    const struct hfi_kind_ops *ops;
};
int hfi_kind_http_new(struct hfi_scheduler *scheduler, struct hfi_caller *caller, struct hfi_kind **kind);
int hfi_kind_exec_new(struct hfi_scheduler *scheduler, struct hfi_kind **kind);
int hfi_kind_native_new(struct hfi_scheduler *scheduler, uint32_t threads, struct hfi_kind **kind); /* threads made on demand */
int hfi_kind_noop_new(struct hfi_scheduler *scheduler, struct hfi_kind **kind);

#endif
