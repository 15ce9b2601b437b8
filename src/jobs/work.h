/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_WORK_H
#define HFI_JOBS_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scheduler.h"
#include "holdfast/runner.h"
#include "jobs/record.h"
#include "jobs/rulebook.h"
#include "jobs/writer.h"
#include "resilience/call.h"
#include "resilience/outcome.h"

/*
 * One execution in progress: made by the runner after the start was committed, run by a kind, ended exactly once through
 * `ended` on the loop thread. Loop thread only, but for the fields marked atomic and, while a sync native handler runs,
 * the ending, which is that handler's thread's until it returned.
 */
enum hfi_stop { /* numbered as enum hf_stop */
    HFI_STOP_NONE,
    HFI_STOP_TIMEOUT = HF_STOP_TIMEOUT,
    HFI_STOP_CANCEL = HF_STOP_CANCEL,
    HFI_STOP_DRAIN = HF_STOP_DRAIN,
    HFI_STOP_LOST = HF_STOP_LOST /* the lease; nothing may be written */
};

#define HFI_NO_BEAT INT64_MIN

/* How it ended, as the kind or handler says. */
struct hfi_ending {
    enum hf_result result;      /* 0 = nobody said: a failure [S0.1] */
    struct hf_outcome outcome;  /* FAILED, PERMANENT, UNREADABLE; also REJECTED through FAILED with that kind */
    int64_t delay_ms;           /* SNOOZE */
    int64_t until_us;           /* SNOOZE: wall; 0 = delay_ms says it */
    uint32_t causes;            /* of a failure */
    char cause[HFI_ERROR_TYPE_MAX]; /* type of the first */
    char text[512];             /* CANCEL: the reason */
    void *data;                 /* OK: result; hfi_alloc, the work's */
    size_t length;
    char *detail;               /* NULL or full text for the dead letter; hfi_alloc, the work's */
};

/*
 * Where the threads of handlers meet the loop: one per runner. Under its lock a work is either still its handler's or
 * finished, so whatever a thread posts for a work comes to the loop before the work's end does.
 */
struct hfi_desk {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct hfi_scheduler *scheduler;
    struct hfi_writer *writer;
    bool open;                    /* false: the runner is over, nobody listens */
    uint32_t writing;             /* blocking writes that are with the writer */
    uint32_t keeping;             /* checkpoints that nobody waits for, until they were told */
    const struct hf_work *telling; /* its stop callback runs */
};
int hfi_desk_init(struct hfi_desk *desk, struct hfi_scheduler *scheduler, struct hfi_writer *writer);
void hfi_desk_close(struct hfi_desk *desk); /* waits for the blocking writes */
void hfi_desk_end(struct hfi_desk *desk);

/* Does a checkpoint wait for its answer? Once the desk is closed, there will be no more of them. */
bool hfi_desk_keeps(struct hfi_desk *desk);

/* A checkpoint that is with the writer; hfi_alloc. */
struct hfi_checkpoint {
    struct hfi_op_note op; /* first */
    struct hf_work *work;
    hf_checkpoint_fn done;
    void *user;
    unsigned char bytes[];
};

/* In a process of its own: how what a handler says leaves it. `checkpoint` as hf_work_checkpoint_start. */
struct hfi_work_wire {
    int (*progress)(struct hf_work *work, int64_t n, const char *text);
    void (*heartbeat)(struct hf_work *work);
    int (*checkpoint)(struct hf_work *work, const void *bytes, size_t length, hf_checkpoint_fn done, void *user);
};

struct hf_work {
    struct hfi_job *job;          /* the work's own */
    const struct hfi_type *type;
    struct hfi_scheduler *scheduler;
    struct hfi_caller *caller;    /* calls of the http kind */
    struct hf_client *client;     /* for native handlers */
    struct hf_mono deadline;      /* of the execution; HFI_FOREVER_US without a timeout */
    uint32_t max_executions;
    const char *store_uuid;       /* the runner's */
    struct hfi_store *store;      /* NULL: none to read from */
    char key[HFI_KEY_MAX + 1];    /* idempotency key in force: hfi_idempotency_key, filled by the runner */
    char execution_id[44];        /* `<job>.<epoch>` */
    _Atomic int stop;             /* enum hfi_stop: why it should end */
    _Atomic uint32_t attempts;    /* requests its calls put on the wire */
    _Atomic bool may_have_sent;   /* some attempt may have reached a peer */
    _Atomic int64_t beat_us;      /* monotonic; its last sign of life, HFI_NO_BEAT: no thread has it yet */
    struct hfi_desk *desk;        /* NULL: it can say nothing meanwhile */
    const struct hfi_work_wire *wire; /* NULL: it is in the node */
    void (*kept)(struct hfi_op *op, void *checkpoint); /* the runner's: it is stored, or is not; loop thread */
    /* under the desk's lock: */
    uint32_t keeping;             /* its part of the desk's */
    bool finished;                /* its handler has no more to say */
    bool lapsed;                  /* its job was given up meanwhile: nothing it says is written */
    bool told;                    /* of its stop */
    bool stop_posted, progress_posted, progress_new;
    hf_stop_fn on_stop;
    void *stop_user;
    int64_t progress;
    char progress_text[HF_PROGRESS_TEXT_MAX + 1];
    struct hfi_task stop_task, progress_task; /* progress_task: the runner's to run */
    struct hfi_ending ending;
    void (*ended)(struct hf_work *work, void *user); /* the runner's: takes the work back */
    void *user;
    /* the kind's: */
    char *breaker_key;            /* NULL, or of the host that it calls, which the job did not say; hfi_alloc, the runner frees it */
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
/* Its payload means nothing to who should run it, and nothing was done: see hf_work_unreadable. */
void hfi_work_unreadable(struct hf_work *work, const char *error_type, const char *rule, const char *message);
/* Is it one of those that a handler can say? */
bool hfi_result_known(enum hf_result result);
/* What the handler returned against what it recorded: whatever is not the same is a failure [S0.1]. */
void hfi_work_judge(struct hf_work *work, enum hf_result returned);
/* Is the payload what its type says? False: its ending is that it cannot be read. */
bool hfi_payload_reads(struct hf_work *work);
/* A failure of the machinery around a handler. */
void hfi_work_unknown(struct hf_work *work, const char *type, const char *message);
/* The handler's last word was spoken: waits for its stop callback, then nothing of it is posted any more. False: it was
 * spoken before. */
bool hfi_work_close(struct hf_work *work);
/* Tells the handler that `stop` was set. Loop thread. */
void hfi_work_tell_stop(struct hf_work *work);
/* Its job is not its own any more. False: its handler has ended before, and its end is on its way. Loop thread. */
bool hfi_work_lapse(struct hf_work *work);
/* A thread has it: from now on its handler can be silent. */
void hfi_work_begins(struct hf_work *work);
/* `progress_task` runs: it may be posted again. Nobody else may say so, or it would be queued twice. Loop thread. */
void hfi_work_progress_came(struct hf_work *work);
/* Its answer came: tells it and frees it. Loop thread. */
void hfi_work_checkpoint_came(struct hfi_checkpoint *checkpoint);
/* Does one of its checkpoints wait for an answer, with this work in it? */
bool hfi_work_keeps(struct hf_work *work);
/* Is there progress that was not taken yet? Copies it. `text` has HF_PROGRESS_TEXT_MAX + 1 bytes. Loop thread. */
bool hfi_work_take_progress(struct hf_work *work, int64_t *progress, char *text);

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
    /* It is waited for no longer: its place goes to others, and it ends through `ended` should it ever end. NULL: it
     * always ends soon after a stop. */
    void (*abandon)(struct hfi_kind *self, struct hf_work *work);
    void (*close)(struct hfi_kind *self); /* nothing runs any more */
};
struct hfi_kind {
    const struct hfi_kind_ops *ops;
};
int hfi_kind_http_new(struct hfi_scheduler *scheduler, struct hfi_caller *caller, struct hfi_kind **kind);
int hfi_kind_exec_new(struct hfi_scheduler *scheduler, struct hfi_kind **kind);
/* Threads made on demand, each on the roll of `wards` (NULL: none). */
struct hfi_wards;
int hfi_kind_native_new(struct hfi_scheduler *scheduler, uint32_t threads, struct hfi_wards *wards, struct hfi_kind **kind);
int hfi_kind_noop_new(struct hfi_scheduler *scheduler, struct hfi_kind **kind);

#endif
