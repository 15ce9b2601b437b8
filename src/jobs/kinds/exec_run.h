/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_EXEC_RUN_H
#define HFI_JOBS_KINDS_EXEC_RUN_H

#include <signal.h>

#include "jobs/kinds/exec.h"
#include "jobs/kinds/isolated.h"

/* One process as an execution, as the files of the exec kind share it. Loop thread. */
#define HFI_READ_SIZE 65536

struct hfi_exec {
    struct hfi_kind kind;
    struct hfi_scheduler *scheduler;
    char buffer[HFI_READ_SIZE]; /* one read at a time, all on one thread */
    struct hfi_run *sweeping;   /* whose leftovers are killed in the next turn */
    struct hfi_task sweep;
    bool sweep_posted;
};

struct hfi_pipe_end {
    int fd; /* -1 closed */
    struct hfi_watch *watch;
    struct hfi_capture kept;
    bool with_tail;
    struct hfi_run *run;
};

struct hfi_run {
    struct hfi_exec *exec;
    struct hf_work *work;
    struct hfi_child child;
    struct hfi_watch *exit_watch;
    struct hfi_pipe_end out, err; /* out: of an isolated handler the socket */
    struct hfi_isolated isolated;
    struct hfi_timer timer; /* TERM to KILL; then the grace for the pipes */
    bool told;              /* to stop: TERM or KILL went out while it ran */
    bool exited, lost;      /* lost: somebody else took its exit status */
    bool in_sweep, swept;   /* what forked away from it is killed in the next turn, was killed */
    siginfo_t status;
    struct hfi_run *next_swept;
};

/* It runs a handler, which says how it ended. */
static inline bool hfi_run_is_isolated(const struct hfi_run *run) {
    return run->work->type->options.isolate == HF_ISOLATE_PROCESS;
}

/* exec_ending.c: from how the process ended, and what it said, to how the execution did. */
void hfi_run_judge(struct hfi_run *run);
void hfi_run_failure(struct hf_outcome *outcome, const char *error_type, const char *message);

/* exec_sweep.c: kills whatever carries the execution's mark in the next turn, then calls hfi_run_swept (exec.c). */
void hfi_run_sweep(struct hfi_run *run);
void hfi_run_swept(struct hfi_run *run);

#endif
