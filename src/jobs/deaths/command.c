/* SPDX-License-Identifier: MIT */
/*
 * The command sink: one process per alert, the alert as JSON on stdin, exit 0 is delivered. Must never use a shell, leak
 * a descriptor, or leave a process of its group behind; the error's message only where the configuration says so. Loop
 * thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "holdfast/classify.h"
#include "jobs/deaths/render.h"
#include "jobs/deaths/sink.h"
#include "jobs/deaths/wording.h"
#include "jobs/kinds/exec.h"

#define BODY_MAX ((size_t)4 << 20)

struct command {
    struct hfi_sink sink;
    struct hfi_scheduler *scheduler;
    const struct hf_sink_options *options;
    struct hf_type_options unlimited; /* no limits of its own */
    struct hfi_sink_try *children;    /* all that run, also those nobody waits for */
};

struct hfi_sink_try {
    struct command *command;
    struct hfi_sink_try *next;
    pid_t pid;
    int pidfd;
    struct hfi_watch *watch;
    struct hfi_timer timer;
    hfi_sink_fn done; /* NULL: it was killed, and is only waited for */
    void *user;
};

/* ------------------------------------------------------------------ its end */

static void forget(struct hfi_sink_try *try) {
    struct command *command = try->command;
    struct hfi_sink_try **at = &command->children;
    while (*at != try)
        at = &(*at)->next;
    *at = try->next;
    command->scheduler->ops->disarm(command->scheduler, &try->timer);
    command->scheduler->ops->unwatch(command->scheduler, try->watch);
    close(try->pidfd);
    hfi_free(try);
}

static void on_end(struct hfi_watch *watch, unsigned events, void *user) {
    struct hfi_sink_try *try = user;
    siginfo_t status = {0};
    struct hf_outcome outcome;
    (void)watch;
    (void)events;
    int code = waitid(P_PIDFD, (id_t)try->pidfd, &status, WEXITED | WNOHANG | WNOWAIT);
    if (code == 0 && status.si_pid == 0)
        return;
    if (code == 0) {
        kill(-try->pid, SIGKILL); /* whoever it left behind */
        waitid(P_PIDFD, (id_t)try->pidfd, &status, WEXITED | WNOHANG);
    }
    hfi_outcome_init(&outcome);
    if (code != 0)
        hfi_child_status_lost(&outcome);
    else if (status.si_code == CLD_EXITED)
        hf_classify_exit(status.si_status, &outcome);
    else
        hf_classify_signal(status.si_status, &outcome);
    hfi_sink_fn done = try->done;
    user = try->user;
    forget(try);
    if (done)
        done(outcome.kind == HF_OUTCOME_SUCCESS ? NULL : outcome.error_type, NULL, user);
}

static void out_of_time(struct hfi_timer *timer, void *user) {
    struct hfi_sink_try *try = user;
    hfi_sink_fn done = try->done;
    (void)timer;
    try->done = NULL;
    kill(-try->pid, SIGKILL);
    done("timeout.alert", NULL, try->user);
}

static void cancel(struct hfi_sink *self, struct hfi_sink_try *try) {
    struct command *command = (struct command *)(void *)self;
    command->scheduler->ops->disarm(command->scheduler, &try->timer);
    try->done = NULL;
    kill(-try->pid, SIGKILL);
}

/* ------------------------------------------------------------------ its beginning */

static int input_file(const struct hfi_bytes *body) {
    int fd = hfi_lift(memfd_create("holdfast-alert", MFD_CLOEXEC));
    if (fd >= 0 && (!hfi_write_all(fd, body->data, body->length) || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void fill_body(const struct command *command, const struct hfi_alert *alert, struct hfi_bytes *body) {
    struct hfi_bytes text;
    hfi_bytes_init(&text, BODY_MAX);
    hfi_alert_summary(&text, alert, 0);
    hfi_alert_json(body, alert);
    hfi_alert_json_field(body, "text", text.data ? text.data : "");
    if (command->options->detail)
        hfi_alert_json_field(body, "message", alert->message);
    hfi_bytes_text(body, "}\n");
    body->failed = body->failed || text.failed;
    hfi_bytes_free(&text);
}

/* The arguments one after the other, each with its NUL, and the two variables that it gets. */
static bool fill_words(const struct command *command, const struct hfi_alert *alert, struct hfi_bytes *words) {
    const struct hf_sink_options *options = command->options;
    for (size_t i = 0; i < options->command_length; i++) {
        if (i == 0)
            hfi_bytes_text(words, options->command[i]);
        else
            hfi_render(words, options->command[i], alert, HFI_PLACE_ARGUMENT);
        hfi_bytes_add(words, "", 1);
    }
    const char *path = getenv("PATH");
    hfi_bytes_print(words, "PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin");
    hfi_bytes_add(words, "", 1);
    hfi_bytes_print(words, "HOLDFAST_ALERT=alert-%lld", (long long)alert->id);
    hfi_bytes_add(words, "", 1);
    return !words->failed;
}

static int make(const struct command *command, const struct hfi_alert *alert, int in, int out, pid_t *pid) {
    size_t count = command->options->command_length;
    struct hfi_bytes words;
    char **list = hfi_alloc_array(count + 4, sizeof *list);
    hfi_bytes_init(&words, (size_t)1 << 20);
    int code = list && fill_words(command, alert, &words) ? 0 : ENOMEM;
    if (code == 0) {
        char *at = words.data;
        for (size_t i = 0; i < count + 2; i++, at += strlen(at) + 1)
            list[i < count ? i : i + 1] = at; /* a NULL between arguments and variables */
        struct hfi_spawn spawn = {.command = list, .variables = list + count + 1, .directory = "/", .in = in,
                                  .out = out, .err = out};
        code = hfi_spawn(&spawn, &command->unlimited, pid);
    }
    hfi_free(list);
    hfi_bytes_free(&words);
    return code;
}

/* 0 or an errno: then nothing runs. */
static int start(const struct command *command, const struct hfi_alert *alert, struct hfi_sink_try *try) {
    struct hfi_bytes body;
    hfi_bytes_init(&body, BODY_MAX);
    fill_body(command, alert, &body);
    int in = body.failed ? -1 : input_file(&body);
    int out = hfi_lift(open("/dev/null", O_WRONLY | O_CLOEXEC));
    int code = in < 0 || out < 0 ? EMFILE : make(command, alert, in, out, &try->pid);
    hfi_bytes_free(&body);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    if (code != 0)
        return code;
    try->pidfd = pidfd_open(try->pid, 0);
    return try->pidfd >= 0 ? 0 : errno;
}

static int send(struct hfi_sink *self, const struct hfi_alert *alert, hfi_sink_fn done, void *user,
                struct hfi_sink_try **out) {
    struct command *command = (struct command *)(void *)self;
    struct hfi_scheduler *scheduler = command->scheduler;
    struct hfi_sink_try *try = hfi_alloc(sizeof *try);
    if (!try)
        return HF_ENOMEM;
    *try = (struct hfi_sink_try){.command = command, .pid = -1, .pidfd = -1, .done = done, .user = user};
    hfi_timer_init(&try->timer, out_of_time, try);
    struct hf_mono until = hfi_mono_after_ms(scheduler->ops->mono(scheduler), self->budget_ms);
    int code = scheduler->ops->arm(scheduler, &try->timer, until);
    if (code == 0 && start(command, alert, try) != 0)
        code = HF_EIO;
    if (code == 0)
        code = scheduler->ops->watch(scheduler, try->pidfd, HFI_READABLE, on_end, try, &try->watch);
    if (code != 0) {
        scheduler->ops->disarm(scheduler, &try->timer);
        if (try->pid > 0) {
            kill(-try->pid, SIGKILL);
            waitpid(try->pid, NULL, 0);
        }
        if (try->pidfd >= 0)
            close(try->pidfd);
        hfi_free(try);
        return code;
    }
    try->next = command->children;
    command->children = try;
    *out = try;
    return 0;
}

static void close_sink(struct hfi_sink *self) {
    struct command *command = (struct command *)(void *)self;
    while (command->children) {
        struct hfi_sink_try *try = command->children;
        kill(-try->pid, SIGKILL);
        while (waitid(P_PIDFD, (id_t)try->pidfd, &(siginfo_t){0}, WEXITED) != 0 && errno == EINTR)
            continue;
        forget(try);
    }
    hfi_free(command);
}

static const struct hfi_sink_ops command_ops = {send, cancel, close_sink};

int hfi_command_new(struct hfi_scheduler *scheduler, const struct hf_sink_options *options, struct hfi_sink **sink,
                    struct hf_error *error) {
    struct command *command = hfi_alloc(sizeof *command);
    if (!command)
        return hfi_fail(error, HF_ENOMEM, options->name, NULL, "no memory");
    command->sink.ops = &command_ops;
    command->sink.at_once = 4;
    command->scheduler = scheduler;
    command->options = options;
    hf_type_options_init(&command->unlimited);
    *sink = &command->sink;
    return 0;
}
