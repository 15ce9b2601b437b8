/* SPDX-License-Identifier: MIT */
/*
 * Prepares child processes and what they hold: no SIGCHLD, no shell. Must never leak a descriptor
 * into a child or out of a failure, nor leave a child behind when it reports one. The payload is handed over as a
 * memory file on stdin: any bytes, no writing, and no SIGPIPE from a child that does not read it. Loop thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "jobs/forward.h"
#include "jobs/kinds/exec.h"
#include "jobs/kinds/isolated.h"
#include "jobs/leftovers.h"

#define RETRY_MS 1000 /* processes and descriptors come back within seconds */

int hfi_lift(int fd) {
    if (fd < 0 || fd > 2)
        return fd;
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int saved = errno;
    close(fd);
    errno = saved;
    return lifted;
}

static void drop(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool hfi_write_all(int fd, const char *data, size_t left) {
    while (left > 0) {
        ssize_t written = write(fd, data, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            return false;
        data += written;
        left -= (size_t)written;
    }
    return true;
}

/* For a handler in a process of its own more stands before the payload. */
static bool write_input(int fd, const struct hf_work *work) {
    struct hfi_bytes head;
    bool written = true;
    if (work->type->options.isolate == HF_ISOLATE_PROCESS) {
        bool packed = hfi_isolated_pack(work, &head);
        written = packed && hfi_write_all(fd, head.data, head.length);
        hfi_bytes_free(&head);
        if (!packed)
            errno = ENOMEM;
    }
    return written && hfi_write_all(fd, work->job->payload, work->job->payload_length);
}

static int payload_file(const struct hf_work *work) {
    int fd = hfi_lift(memfd_create("holdfast-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd >= 0 && !write_input(fd, work)) {
        int saved = errno;
        drop(&fd);
        errno = saved;
    }
    if (fd >= 0 && (lseek(fd, 0, SEEK_SET) != 0 ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0))
        drop(&fd);
    return fd;
}

/* The same both ways, for an isolated handler. */
static int talk_pipe(int *ours, int *theirs) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    *ours = ends[0];
    *theirs = hfi_lift(ends[1]);
    return *theirs < 0 || fcntl(*ours, F_SETFL, O_NONBLOCK) != 0 ? -1 : 0;
}

/* `ours` does not block, `theirs` does. */
static int output_pipe(int *ours, int *theirs) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    *ours = ends[0];
    *theirs = hfi_lift(ends[1]);
    return *theirs < 0 || fcntl(*ours, F_SETFL, O_NONBLOCK) != 0 ? -1 : 0;
}

/* ------------------------------------------------------------------ environment */

static bool variable(struct hfi_bytes *block, size_t *count, const char *name, const char *value) {
    hfi_bytes_text(block, name);
    hfi_bytes_text(block, "=");
    hfi_bytes_text(block, value);
    hfi_bytes_add(block, "", 1);
    ++*count;
    return !block->failed;
}

/* NAME=value texts one after the other, each with its NUL. */
static bool fill_block(const struct hf_work *work, struct hfi_bytes *block, size_t *count) {
    const struct hf_type_options *type = &work->type->options;
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, work->job->id);
    bool fits = variable(block, count, "HOLDFAST_JOB", number);
    snprintf(number, sizeof number, "%" PRIu32, work->job->executions);
    fits = variable(block, count, "HOLDFAST_EXECUTION", number) && fits;
    fits = variable(block, count, "HOLDFAST_TYPE", work->job->type) && fits;
    fits = variable(block, count, "HOLDFAST_KEY", work->key) && fits;
    char mark[HFI_MARK_ROOM];
    fits = variable(block, count, HFI_MARK_NAME, hfi_leftovers_mark(mark, work->store_uuid, work->job->owner)) && fits;
    int64_t letter = hfi_forward_letter(work->job);
    snprintf(number, sizeof number, "%" PRId64, letter);
    if (letter != 0)
        fits = variable(block, count, "HOLDFAST_DEAD_LETTER", number) &&
               variable(block, count, "HOLDFAST_ERROR_TYPE", hfi_forward_error_type(work->job)) && fits;
    char run[HFI_RUN_MARK_ROOM];
    hfi_leftovers_run(run, work->store_uuid, work->job->id, work->job->epoch);
    hfi_bytes_add(block, run, strlen(run) + 1);
    ++*count;
    fits = !block->failed && fits;
    if (work->job->trace_context[0])
        fits = variable(block, count, "TRACEPARENT", work->job->trace_context) && fits;
    for (size_t i = 0; i < type->environment_length && fits; i++) {
        const char *entry = type->environment[i];
        if (strchr(entry, '=')) {
            hfi_bytes_add(block, entry, strlen(entry) + 1);
            ++*count;
        } else if (getenv(entry)) {
            variable(block, count, entry, getenv(entry));
        }
        fits = !block->failed;
    }
    return fits;
}

static char **environment(const struct hf_work *work, struct hfi_bytes *block) {
    size_t count = 0;
    hfi_bytes_init(block, (size_t)1 << 20);
    if (!fill_block(work, block, &count))
        return NULL;
    char **list = hfi_alloc_array(count + 1, sizeof *list);
    char *at = block->data;
    for (size_t i = 0; list && i < count; i++) {
        list[i] = at;
        at += strlen(at) + 1;
    }
    return list;
}

/* ------------------------------------------------------------------ spawn */

/* 0 or an errno. */
static int make(const struct hf_work *work, pid_t *pid, int in, int out, int err) {
    const struct hf_type_options *type = &work->type->options;
    struct hfi_bytes block;
    struct hfi_spawn spawn = {.directory = type->directory ? type->directory : "/", .in = in, .out = out, .err = err};
    spawn.variables = environment(work, &block);
    spawn.command = hfi_alloc_array(type->command_length + 1, sizeof *spawn.command);
    int code = spawn.variables && spawn.command ? 0 : ENOMEM;
    if (code == 0) {
        memcpy(spawn.command, type->command, type->command_length * sizeof *spawn.command);
        code = hfi_spawn(&spawn, type, pid);
    }
    hfi_free(spawn.variables);
    hfi_free(spawn.command);
    hfi_bytes_free(&block);
    return code;
}

/* ------------------------------------------------------------------ failures */

static bool shortage(int number) {
    return number == EAGAIN || number == ENOMEM || number == EMFILE || number == ENFILE || number == ENOSPC ||
           number == EINTR || number == EBUSY || number == ETXTBSY;
}

/* Nothing ran. A shortage of this machine is no failure of the job; the rest will be the same next time. */
static void explain(const struct hf_work *work, int number, struct hf_outcome *outcome) {
    const struct hf_type_options *type = &work->type->options;
    const char *directory = type->directory ? type->directory : "/";
    struct stat about;
    hfi_outcome_init(outcome);
    if (shortage(number)) {
        hfi_outcome_rejected(outcome, "local.processes", RETRY_MS);
        hfi_outcome_message(outcome, "no process could be made: %s", strerror(number));
    } else {
        bool no_folder = number == ENOENT && stat(directory, &about) != 0;
        const char *error_type = no_folder          ? "exec.no_directory"
                                 : number == ENOENT ? "exec.not_found"
                                 : number == EACCES || number == EPERM ? "exec.not_permitted"
                                                                       : "exec.not_started";
        hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_PERMANENT, error_type,
                        "exec.start");
        hfi_outcome_message(outcome, "%s: %s", no_folder ? directory : type->command[0], strerror(number));
    }
    outcome->native = number;
    outcome->stage = HF_STAGE_LOCAL;
    outcome->sent = HF_SENT_NO;
}

/* It runs, but cannot be watched: ends it before anybody is told. */
static void undo(pid_t pid) {
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void hfi_child_status_lost(struct hf_outcome *outcome) {
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_LATER, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT,
                    "exec.status_lost", "exec.status_lost");
    hfi_outcome_message(outcome, "its exit status was lost: this process ignores SIGCHLD, or waits for any child");
}

int hfi_child_make(const struct hf_work *work, struct hfi_child *child, struct hf_outcome *outcome) {
    int in = -1, out = -1, err = -1, number = 0;
    *child = (struct hfi_child){.pid = -1, .pidfd = -1, .out = -1, .err = -1};
    in = payload_file(work);
    bool isolated = work->type->options.isolate == HF_ISOLATE_PROCESS;
    if (in < 0 || (isolated ? talk_pipe : output_pipe)(&child->out, &out) != 0 || output_pipe(&child->err, &err) != 0)
        number = errno;
    if (number == 0)
        number = make(work, &child->pid, in, out, err);
    drop(&in);
    drop(&out);
    drop(&err);
    if (number == 0) {
        child->pidfd = pidfd_open(child->pid, 0);
        if (child->pidfd >= 0)
            return 0;
        number = errno;
        if (number != ESRCH)
            undo(child->pid);
    }
    drop(&child->out);
    drop(&child->err);
    if (child->pid >= 0 && number == ESRCH)
        hfi_child_status_lost(outcome); /* over already, and reaped */
    else
        explain(work, number, outcome);
    if (child->pid >= 0)
        outcome->sent = HF_SENT_MAYBE; /* it ran for a moment */
    return HF_EIO;
}
