/* SPDX-License-Identifier: MIT */
/*
 * The kind of job that is a process: payload to stdin, stdout is the result, stderr the evidence, exit code and signal
 * are classified. Must never end an execution while a process of its group may still run, never let one outlive its
 * limit by holding our pipes, and never take the exit of a process that was told to stop for success. Loop thread.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "jobs/kinds/exec_run.h"

#define EOF_GRACE_MS 250 /* for a process outside the group that still holds a pipe; then it is killed */
#define FINAL_READS 32   /* what the pipes can hold at most, many times over */

/* ------------------------------------------------------------------ its end */

static void close_pipe(struct hfi_run *run, struct hfi_pipe_end *end) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    if (end->fd < 0)
        return;
    scheduler->ops->unwatch(scheduler, end->watch);
    end->watch = NULL;
    close(end->fd);
    end->fd = -1;
}

static void signal_group(struct hfi_run *run, int number) {
    if (!run->exited) /* not reaped: its id, and so its group, cannot be anybody else's */
        kill(-run->child.pid, number);
}

/* One read; false: nothing more now, or ever (then it is closed). */
static bool read_some(struct hfi_run *run, struct hfi_pipe_end *end) {
    ssize_t length;
    do
        length = read(end->fd, run->exec->buffer, HFI_READ_SIZE);
    while (length < 0 && errno == EINTR);
    if (length > 0) {
        if (end != &run->out || !hfi_run_is_isolated(run))
            hfi_capture_add(&end->kept, run->exec->buffer, (size_t)length, end->with_tail);
        else if (!hfi_isolated_feed(&run->isolated, run->exec->buffer, (size_t)length))
            signal_group(run, SIGKILL); /* what lies is not waited for */
        return true;
    }
    if (length == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        close_pipe(run, end);
    return false;
}

static void finish(struct hfi_run *run) {
    struct hf_work *work = run->work;
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    for (int i = 0; i < FINAL_READS && run->out.fd >= 0 && read_some(run, &run->out); i++)
        continue;
    for (int i = 0; i < FINAL_READS && run->err.fd >= 0 && read_some(run, &run->err); i++)
        continue;
    close_pipe(run, &run->out);
    close_pipe(run, &run->err);
    scheduler->ops->disarm(scheduler, &run->timer);
    hfi_run_judge(run);
    hfi_isolated_free(&run->isolated);
    hfi_capture_free(&run->out.kept);
    hfi_capture_free(&run->err.kept);
    work->kind_state = NULL;
    hfi_free(run);
    work->ended(work, work->user);
}

/* ------------------------------------------------------------------ signals and timers */

static void timer_fired(struct hfi_timer *timer, void *user) {
    struct hfi_run *run = user;
    (void)timer;
    if (!run->exited)
        signal_group(run, SIGKILL);
    else if (run->swept)
        finish(run);
    else
        hfi_run_sweep(run); /* somebody holds its pipes, who is not of its group */
}

/* No memory for a timer means: now. */
static void arm(struct hfi_run *run, int64_t ms) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    struct hf_mono at = hfi_mono_after_ms(scheduler->ops->mono(scheduler), ms);
    if (scheduler->ops->arm(scheduler, &run->timer, at) != 0)
        signal_group(run, SIGKILL);
}

static bool pipes_open(const struct hfi_run *run) {
    return run->out.fd >= 0 || run->err.fd >= 0;
}

static void await_pipes(struct hfi_run *run) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    struct hf_mono at = hfi_mono_after_ms(scheduler->ops->mono(scheduler), EOF_GRACE_MS);
    if (!pipes_open(run) || scheduler->ops->arm(scheduler, &run->timer, at) != 0)
        finish(run);
}

/* Its leader has ended, and is still a zombie: the group is ours for the last time. */
static void on_exit(struct hfi_watch *watch, unsigned events, void *user) {
    struct hfi_run *run = user;
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    siginfo_t status = {0};
    (void)watch;
    (void)events;
    int code = waitid(P_PIDFD, (id_t)run->child.pidfd, &status, WEXITED | WNOHANG | WNOWAIT);
    if (code == 0 && status.si_pid == 0)
        return; /* not yet */
    if (code == 0) {
        kill(-run->child.pid, SIGKILL); /* whoever it left behind */
        code = waitid(P_PIDFD, (id_t)run->child.pidfd, &run->status, WEXITED | WNOHANG);
    }
    run->lost = code != 0; /* ECHILD: SIGCHLD is ignored by the host, or it waits for any child */
    run->exited = true;
    scheduler->ops->unwatch(scheduler, run->exit_watch);
    run->exit_watch = NULL;
    close(run->child.pidfd);
    scheduler->ops->disarm(scheduler, &run->timer);
    if (run->told || run->isolated.fault)
        hfi_run_sweep(run); /* it did not end by itself, so nothing of it may go on */
    else
        await_pipes(run);
}

void hfi_run_swept(struct hfi_run *run) {
    await_pipes(run);
}

static void on_output(struct hfi_watch *watch, unsigned events, void *user) {
    struct hfi_pipe_end *end = user;
    struct hfi_run *run = end->run;
    (void)watch;
    (void)events;
    read_some(run, end); /* one piece a turn: a flood must not keep the loop from others */
    if (run->exited && !pipes_open(run) && !run->in_sweep)
        finish(run);
}

/* ------------------------------------------------------------------ its beginning */

static int watch_pipe(struct hfi_run *run, struct hfi_pipe_end *end, int fd, bool with_tail) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    end->run = run;
    end->fd = fd;
    end->with_tail = with_tail;
    hfi_capture_init(&end->kept, with_tail ? HFI_CAPTURE_HALF : HFI_RESULT_MAX);
    return scheduler->ops->watch(scheduler, fd, HFI_READABLE, on_output, end, &end->watch);
}

/* It runs, and we cannot follow it. */
static void give_up(struct hfi_run *run) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    kill(-run->child.pid, SIGKILL);
    while (waitid(P_PIDFD, (id_t)run->child.pidfd, &run->status, WEXITED) != 0 && (errno == EINTR || errno == EAGAIN))
        continue;
    if (run->exit_watch)
        scheduler->ops->unwatch(scheduler, run->exit_watch);
    close(run->child.pidfd);
    close_pipe(run, &run->out);
    close_pipe(run, &run->err);
}

static int start(struct hfi_kind *self, struct hf_work *work) {
    struct hfi_exec *exec = (struct hfi_exec *)self;
    struct hf_outcome *outcome = &work->ending.outcome;
    struct hfi_run *run = hfi_alloc(sizeof *run);
    if (!run) {
        hfi_outcome_init(outcome);
        hfi_outcome_rejected(outcome, "local.memory", 1000);
        work->ending.result = HF_RESULT_FAILED;
        return HF_ENOMEM;
    }
    run->exec = exec;
    run->work = work;
    hfi_timer_init(&run->timer, timer_fired, run);
    int code = hfi_child_make(work, &run->child, outcome);
    if (code == 0) {
        hfi_isolated_begin(&run->isolated, work, run->child.out);
        code = watch_pipe(run, &run->out, run->child.out, false);
        int second = watch_pipe(run, &run->err, run->child.err, true);
        if (code == 0)
            code = second;
        if (code == 0)
            code = exec->scheduler->ops->watch(exec->scheduler, run->child.pidfd, HFI_READABLE, on_exit, run,
                                               &run->exit_watch);
        if (code != 0) {
            give_up(run);
            hfi_run_failure(outcome, "local.memory", "the process could not be watched and was killed");
            outcome->sent = HF_SENT_MAYBE;
        }
    }
    if (code != 0) {
        if (outcome->sent != HF_SENT_NO)
            atomic_store(&work->may_have_sent, true);
        hfi_work_outcome(work, outcome);
        hfi_free(run);
        return code;
    }
    if (hfi_run_is_isolated(run))
        hfi_work_begins(work);
    atomic_store(&work->may_have_sent, true); /* what a process does nobody knows */
    work->kind_state = run;
    return 0;
}

static void stop(struct hfi_kind *self, struct hf_work *work, bool hurry) {
    struct hfi_run *run = work->kind_state;
    (void)self;
    if (!run)
        return;
    if (run->exited) { /* only the grace for its pipes is left, or its leftovers: it ends in the next turns */
        if (!run->in_sweep)
            arm(run, 0);
        return;
    }
    int64_t grace = work->type->options.kill_grace_ms;
    bool first = !run->told;
    run->told = true;
    if (hurry || grace == 0) {
        signal_group(run, SIGKILL);
    } else if (first) {
        hfi_isolated_stop(&run->isolated);
        signal_group(run, SIGTERM);
        arm(run, grace);
    }
}

static void close_kind(struct hfi_kind *self) {
    hfi_free(self);
}

static const struct hfi_kind_ops exec_ops = {"exec", true, start, stop, NULL, close_kind};

int hfi_kind_exec_new(struct hfi_scheduler *scheduler, struct hfi_kind **kind) {
    struct hfi_exec *exec = hfi_alloc(sizeof *exec);
    if (!exec)
        return HF_ENOMEM;
    exec->kind.ops = &exec_ops;
    exec->scheduler = scheduler;
    *kind = &exec->kind;
    return 0;
}
