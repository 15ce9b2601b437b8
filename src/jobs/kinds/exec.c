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
#include <sysexits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "holdfast/classify.h"
#include "jobs/kinds/exec.h"
#include "jobs/kinds/isolated.h"

#define EOF_GRACE_MS 250 /* for a process outside the group that still holds a pipe */
#define READ_SIZE 65536
#define FINAL_READS 32   /* what the pipes can hold at most, many times over */

struct exec {
    struct hfi_kind kind;
    struct hfi_scheduler *scheduler;
    char buffer[READ_SIZE]; /* one read at a time, all on one thread */
};

struct pipe_end {
    int fd; /* -1 closed */
    struct hfi_watch *watch;
    struct hfi_capture kept;
    bool with_tail;
    struct run *run;
};

struct run {
    struct exec *exec;
    struct hf_work *work;
    struct hfi_child child;
    struct hfi_watch *exit_watch;
    struct pipe_end out, err;
    struct hfi_timer timer; /* TERM to KILL; then the grace for the pipes */
    bool told;              /* to stop: TERM or KILL went out while it ran */
    bool exited, lost;      /* lost: somebody else took its exit status */
    siginfo_t status;
};

/* ------------------------------------------------------------------ its end */

static void close_pipe(struct run *run, struct pipe_end *end) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    if (end->fd < 0)
        return;
    scheduler->ops->unwatch(scheduler, end->watch);
    end->watch = NULL;
    close(end->fd);
    end->fd = -1;
}

/* It runs a handler, which says how it ended. */
static bool is_isolated(const struct run *run) {
    return run->work->type->options.isolate == HF_ISOLATE_PROCESS;
}

/* One read; false: nothing more now, or ever (then it is closed). */
static bool read_some(struct run *run, struct pipe_end *end) {
    ssize_t length;
    do
        length = read(end->fd, run->exec->buffer, READ_SIZE);
    while (length < 0 && errno == EINTR);
    if (length > 0) {
        hfi_capture_add(&end->kept, run->exec->buffer, (size_t)length, end->with_tail);
        if (end == &run->out && is_isolated(run))
            hfi_isolated_take(run->work, &end->kept.head);
        return true;
    }
    if (length == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        close_pipe(run, end);
    return false;
}

static void failure(struct hf_outcome *outcome, const char *error_type, const char *message) {
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_LATER, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT, error_type,
                    error_type);
    hfi_outcome_message(outcome, "%s", message);
}

static void classify(const struct run *run, struct hf_outcome *outcome) {
    hfi_outcome_init(outcome);
    if (run->lost)
        hfi_child_status_lost(outcome);
    else if (run->status.si_code != CLD_EXITED)
        hf_classify_signal(run->status.si_status, outcome);
    else if (run->told && run->status.si_status == 0)
        failure(outcome, "exec.stopped", "it was told to stop and exited with 0: it may not have finished");
    else
        hf_classify_exit(run->status.si_status, outcome);
}

/* Says why in one line, with the last thing it said itself. */
static void say_why(const struct run *run, struct hf_outcome *outcome) {
    char line[256];
    const struct pipe_end *end = run->err.kept.total > 0 || is_isolated(run) ? &run->err : &run->out;
    hfi_capture_last_line(&end->kept, line, sizeof line);
    outcome->stage = HF_STAGE_HANDLER;
    outcome->sent = HF_SENT_MAYBE;
    if (line[0] && !run->lost) {
        char said[sizeof outcome->message];
        hfi_text_copy(said, sizeof said, outcome->message[0] ? outcome->message : outcome->error_type);
        hfi_outcome_message(outcome, "%s: %s", said, line);
    }
}

/* The handler's word, if its process lived to say it. False: it is judged by how the process ended. */
static bool take_word(struct run *run) {
    struct hfi_ending *ending = &run->work->ending;
    if (!is_isolated(run) || run->lost || run->status.si_code != CLD_EXITED || run->status.si_status != 0 ||
        !hfi_isolated_end(run->work, &run->out.kept.head))
        return false;
    if (ending->result != HF_RESULT_OK && !ending->detail)
        ending->detail = hfi_capture_text(&run->err.kept);
    return true;
}

static void fill_ending(struct run *run) {
    struct hf_work *work = run->work;
    struct hfi_ending *ending = &work->ending;
    struct hf_outcome outcome;
    if (take_word(run))
        return;
    classify(run, &outcome);
    if (is_isolated(run) && outcome.kind == HF_OUTCOME_SUCCESS)
        failure(&outcome, "isolated.no_end", "its process exited with 0, and did not say how the execution ended");
    bool well = outcome.touched && outcome.kind == HF_OUTCOME_SUCCESS;
    if (well && run->out.kept.head.failed) {
        failure(&outcome, "local.memory", "no memory for its output");
        well = false;
    }
    if (well) {
        ending->length = run->out.kept.head.length;
        ending->data = hfi_memdup(run->out.kept.head.data, ending->length);
        if (!ending->data && ending->length > 0) {
            failure(&outcome, "local.memory", "no memory for its output");
            ending->length = 0;
            well = false;
        }
    }
    if (!well) {
        say_why(run, &outcome);
        bool silent = run->err.kept.total == 0 && !is_isolated(run);
        ending->detail = hfi_capture_text(silent ? &run->out.kept : &run->err.kept);
    }
    if (work->type->options.payload != HF_PAYLOAD_BYTES && !run->lost && !run->told && run->status.si_code == CLD_EXITED && run->status.si_status == EX_DATAERR)
        hfi_work_unreadable(work, "payload.unreadable", "exec.unreadable", outcome.message);
    else
        hfi_work_outcome(work, &outcome);
}

static void finish(struct run *run) {
    struct hf_work *work = run->work;
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    for (int i = 0; i < FINAL_READS && run->out.fd >= 0 && read_some(run, &run->out); i++)
        continue;
    for (int i = 0; i < FINAL_READS && run->err.fd >= 0 && read_some(run, &run->err); i++)
        continue;
    close_pipe(run, &run->out);
    close_pipe(run, &run->err);
    scheduler->ops->disarm(scheduler, &run->timer);
    fill_ending(run);
    hfi_capture_free(&run->out.kept);
    hfi_capture_free(&run->err.kept);
    work->kind_state = NULL;
    hfi_free(run);
    work->ended(work, work->user);
}

/* ------------------------------------------------------------------ signals and timers */

static void signal_group(struct run *run, int number) {
    if (!run->exited) /* not reaped: its id, and so its group, cannot be anybody else's */
        kill(-run->child.pid, number);
}

static void timer_fired(struct hfi_timer *timer, void *user) {
    struct run *run = user;
    (void)timer;
    if (run->exited)
        finish(run);
    else
        signal_group(run, SIGKILL);
}

/* No memory for a timer means: now. */
static void arm(struct run *run, int64_t ms) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    struct hf_mono at = hfi_mono_after_ms(scheduler->ops->mono(scheduler), ms);
    if (scheduler->ops->arm(scheduler, &run->timer, at) != 0)
        signal_group(run, SIGKILL);
}

static bool pipes_open(const struct run *run) {
    return run->out.fd >= 0 || run->err.fd >= 0;
}

/* Its leader has ended, and is still a zombie: the group is ours for the last time. */
static void on_exit(struct hfi_watch *watch, unsigned events, void *user) {
    struct run *run = user;
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
    if (!pipes_open(run)) {
        finish(run);
        return;
    }
    struct hf_mono at = hfi_mono_after_ms(scheduler->ops->mono(scheduler), EOF_GRACE_MS);
    if (scheduler->ops->arm(scheduler, &run->timer, at) != 0)
        finish(run);
}

static void on_output(struct hfi_watch *watch, unsigned events, void *user) {
    struct pipe_end *end = user;
    struct run *run = end->run;
    (void)watch;
    (void)events;
    read_some(run, end); /* one piece a turn: a flood must not keep the loop from others */
    if (run->exited && !pipes_open(run))
        finish(run);
}

/* ------------------------------------------------------------------ its beginning */

static int watch_pipe(struct run *run, struct pipe_end *end, int fd, bool with_tail) {
    struct hfi_scheduler *scheduler = run->exec->scheduler;
    end->run = run;
    end->fd = fd;
    end->with_tail = with_tail;
    hfi_capture_init(&end->kept, with_tail            ? HFI_CAPTURE_HALF
                                 : is_isolated(run) ? HFI_ISOLATED_MAX
                                                    : HFI_RESULT_MAX);
    return scheduler->ops->watch(scheduler, fd, HFI_READABLE, on_output, end, &end->watch);
}

/* It runs, and we cannot follow it. */
static void give_up(struct run *run) {
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
    struct exec *exec = (struct exec *)self;
    struct hf_outcome *outcome = &work->ending.outcome;
    struct run *run = hfi_alloc(sizeof *run);
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
        code = watch_pipe(run, &run->out, run->child.out, false);
        int second = watch_pipe(run, &run->err, run->child.err, true);
        if (code == 0)
            code = second;
        if (code == 0)
            code = exec->scheduler->ops->watch(exec->scheduler, run->child.pidfd, HFI_READABLE, on_exit, run,
                                               &run->exit_watch);
        if (code != 0) {
            give_up(run);
            failure(outcome, "local.memory", "the process could not be watched and was killed");
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
    atomic_store(&work->may_have_sent, true); /* what a process does nobody knows */
    work->kind_state = run;
    return 0;
}

static void stop(struct hfi_kind *self, struct hf_work *work, bool hurry) {
    struct run *run = work->kind_state;
    (void)self;
    if (!run)
        return;
    if (run->exited) { /* only the grace for its pipes is left: end it in the next turn */
        arm(run, 0);
        return;
    }
    int64_t grace = work->type->options.kill_grace_ms;
    bool first = !run->told;
    run->told = true;
    if (hurry || grace == 0) {
        signal_group(run, SIGKILL);
    } else if (first) {
        signal_group(run, SIGTERM);
        arm(run, grace);
    }
}

static void close_kind(struct hfi_kind *self) {
    hfi_free(self);
}

static const struct hfi_kind_ops exec_ops = {"exec", true, start, stop, NULL, close_kind};

int hfi_kind_exec_new(struct hfi_scheduler *scheduler, struct hfi_kind **kind) {
    struct exec *exec = hfi_alloc(sizeof *exec);
    if (!exec)
        return HF_ENOMEM;
    exec->kind.ops = &exec_ops;
    exec->scheduler = scheduler;
    *kind = &exec->kind;
    return 0;
}
