/* SPDX-License-Identifier: MIT */
/*
 * `holdfast run`: a node. Reads the configuration, proves its ladder, opens the store and runs jobs until it is told to
 * stop. SIGTERM and SIGINT drain, a second one hurries; SIGHUP reloads (reload.c). Must never start on a configuration that has errors. The main
 * thread becomes the loop.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/log.h"
#include "holdfast/runner.h"
#include "program/commands/commands.h"
#include "program/commands/reload.h"
#include "program/notify.h"
#include "program/output.h"
#include "program/session.h"

static const struct hfi_flag flags[] = {
    {.name = "queues", .kind = HFI_FLAG_TEXT, .value = "A,B", .help = "only jobs of these queues (default: all)"},
    {.name = "workers", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "jobs at once of queues without a concurrency of their own", .min = 1, .max = 1024},
    {.name = "until-idle", .kind = HFI_FLAG_SWITCH, .help = "end when nothing is pending or running but what is scheduled for later"},
    {.name = "node", .kind = HFI_FLAG_TEXT, .value = "NAME", .help = "name of this node (default: the configuration's, else the host's)"},
    {0},
};

static _Atomic(struct hf_runner *) running; /* for the signal handler */
static volatile sig_atomic_t stops_before;  /* signals that came while there was none */

/* The main thread's: all others block signals. While there is no runner a second one ends the process as it would by
 * default: nothing is claimed yet, or all is given back. */
static void stop(int number) {
    struct hf_runner *runner = atomic_load(&running);
    if (runner) {
        hf_runner_stop(runner); /* async-signal-safe; the second call hurries */
    } else if (stops_before++ > 0) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

/* Before anything is opened: a signal of the first moments is kept for the runner. SIGHUP waits for the reload's thread. */
static void watch_signals(void) {
    struct sigaction action;
    sigset_t reload;
    memset(&action, 0, sizeof action);
    action.sa_handler = stop;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGINT);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigemptyset(&reload);
    sigaddset(&reload, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &reload, NULL);
}

static void hand_signals_to(struct hf_runner *runner) {
    atomic_store(&running, runner); /* from here on the handler stops it itself */
    if (stops_before > 0)
        hf_runner_stop(runner);
    stops_before = 0;
}

static void tell_phase(enum hf_runner_phase phase, void *user) {
    (void)user;
    hfi_notify(phase == HF_RUNNER_READY ? "READY=1\nSTATUS=runs jobs" : "STOPPING=1\nSTATUS=drains");
}

/* A thread of C cannot be ended with what it holds: the supervisor starts a new process, leases bring the jobs back. */
static void hung(const char *loop, void *user) {
    char text[200];
    int length = snprintf(text, sizeof text, "holdfast: run: the loop `%s` makes no progress (a supervisor has to start it again)\n", loop);
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    (void)user;
    if (poll(&out, 1, 0) == 1 && out.revents & POLLOUT) { /* else that may be what hangs */
        ssize_t written = write(STDERR_FILENO, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
        (void)written;
    }
    _exit(HFI_EXIT_FAILED);
}

/* "a,b" into an array of names. */
static int split_queues(struct hfi_session *session, const char *text, struct hf_runner_options *runner) {
    struct hfi_arena *arena = &session->config.arena;
    const char **names = hfi_arena_array(arena, strlen(text) + 1, sizeof *names);
    size_t count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (length == 0)
            return hfi_usage("queues", "write a,b", "a name is empty");
        names[count++] = hfi_arena_copy(arena, at, length);
        at += length;
        if (!*at)
            break;
    }
    runner->queues = names;
    runner->queue_filter_count = count;
    return 0;
}

static int apply_flags(struct hfi_session *session, const struct hfi_options *options, struct hf_runner_options *runner) {
    const char *queues = hfi_flag_text(options, "queues", NULL);
    *runner = session->config.runner;
    runner->workers = (uint32_t)hfi_flag_number(options, "workers", runner->workers);
    runner->node = hfi_flag_text(options, "node", runner->node);
    runner->hung = hung;
    runner->stack_signal = SIGRTMIN + 7;
    runner->phase = tell_phase;
    runner->until_idle = hfi_flag(options, "until-idle")->given;
    if (runner->node && !*runner->node)
        return hfi_usage("node", NULL, "the name is empty");
    return queues ? split_queues(session, queues, runner) : 0;
}

static void print_counts(struct hf_runner *runner) {
    struct hf_runner_counts counts;
    hf_runner_counts_init(&counts);
    hf_runner_look(runner, &counts);
    if (!hfi_manner()->json) {
        hfi_say("%llu executions: %llu succeeded, %llu to be retried, %llu dead, %llu given back, %llu kept back; %llu quarantined; %llu "
                "attempts",
                (unsigned long long)counts.started, (unsigned long long)counts.succeeded, (unsigned long long)counts.retried,
                (unsigned long long)counts.died, (unsigned long long)counts.given_back, (unsigned long long)counts.rejected,
                (unsigned long long)counts.quarantined, (unsigned long long)counts.attempts);
        return;
    }
    json_t *object = json_object();
    hfi_json_number(object, "claimed", (int64_t)counts.claimed);
    hfi_json_number(object, "started", (int64_t)counts.started);
    hfi_json_number(object, "succeeded", (int64_t)counts.succeeded);
    hfi_json_number(object, "retried", (int64_t)counts.retried);
    hfi_json_number(object, "died", (int64_t)counts.died);
    hfi_json_number(object, "snoozed", (int64_t)counts.snoozed);
    hfi_json_number(object, "cancelled", (int64_t)counts.cancelled);
    hfi_json_number(object, "given_back", (int64_t)counts.given_back);
    hfi_json_number(object, "rejected", (int64_t)counts.rejected);
    hfi_json_number(object, "lost", (int64_t)counts.lost);
    hfi_json_number(object, "quarantined", (int64_t)counts.quarantined);
    hfi_json_number(object, "lapsed", (int64_t)counts.lapsed);
    hfi_json_number(object, "orphaned", (int64_t)counts.orphaned);
    hfi_json_number(object, "expired", (int64_t)counts.expired);
    hfi_json_number(object, "overdue", (int64_t)counts.overdue);
    hfi_json_number(object, "attempts", (int64_t)counts.attempts);
    hfi_json_number(object, "relayed", (int64_t)counts.relayed);
    hfi_json_number(object, "poisoned", (int64_t)counts.poisoned);
    hfi_json_number(object, "outbox_oldest_ms", counts.outbox_oldest_ms);
    hfi_json_number(object, "missed_beats", (int64_t)counts.missed_beats);
    hfi_json_number(object, "restarted_loops", (int64_t)counts.restarted_loops);
    hfi_json_number(object, "alerts_sent", (int64_t)counts.alerts_sent);
    hfi_json_number(object, "alerts_failed", (int64_t)counts.alerts_failed);
    hfi_json_number(object, "alerts_summaries", (int64_t)counts.alerts_summaries);
    hfi_json_number(object, "alerts_digests", (int64_t)counts.alerts_digests);
    hfi_json_number(object, "alerts_undelivered", (int64_t)counts.alerts_undelivered);
    hfi_print_json(object);
}

static int run_node(struct hfi_session *session, const struct hf_runner_options *options, const char *path) {
    struct hfi_reload reload;
    struct hfi_pacemaker pacemaker;
    struct hf_runner *runner = NULL;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_runner_new(session->store, options, &runner, &error) != 0)
        return hfi_complain(&error);
    hand_signals_to(runner);
    hfi_reload_start(&reload, runner, &session->config, path);
    hfi_pacemaker_start(&pacemaker, runner);
    int result = hf_runner_run(runner, &error);
    hfi_pacemaker_end(&pacemaker);
    hfi_reload_end(&reload);
    atomic_store(&running, NULL);
    int code = result < 0 ? hfi_complain(&error) : result > 0 ? HFI_EXIT_FAILED : HFI_EXIT_OK;
    if (result > 0)
        hfi_usage("run", "they are taken up elsewhere when their lease is over", "the drain ended with jobs still running");
    print_counts(runner);
    hf_runner_free(runner);
    return code;
}

static int run(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_runner_options runner;
    watch_signals();
    if (!hfi_manner()->quiet)
        hf_log_set(hfi_manner()->verbose ? HF_LOG_DEBUG : HF_LOG_INFO, NULL, NULL);
    int code = hfi_session_open(&session, options, HFI_SESSION_SECRETS | HFI_SESSION_CREATE | HFI_SESSION_CHECK);
    if (code == 0)
        code = apply_flags(&session, options, &runner);
    if (code == 0)
        code = run_node(&session, &runner, options->config);
    hfi_session_close(&session);
    return code;
}

const struct hfi_command hfi_command_run = {
    .name = "run",
    .arguments = "",
    .summary = "Runs jobs until it is told to stop",
    .about = "Checks the configuration first; errors stop it (exit 2). SIGTERM or SIGINT drains: no more jobs are started, running\n"
             "ones may end within node.drain_timeout, the rest is given back. A second signal hurries. Logs JSON lines to stderr.\n"
             "A loop of the node that makes no progress (node.watchdog) is logged with its stack and begun again where that is safe; else\n"
             "the process ends with exit 1, for its supervisor. Tells systemd\n"
             "READY, RELOADING, STOPPING and WATCHDOG where NOTIFY_SOCKET is set.\n"
             "Several nodes may run on one store. SIGHUP reads the configuration again: if it has no errors its job types, downstreams,\n"
             "queues, limits, defaults, retention, and of node the keys but name, workers, lease, heartbeat and watchdog, take effect\n"
             "for what begins from then on; what runs goes on as it began, breakers keep their state, a job type that is gone is\n"
             "claimed no more. `config.reloaded` names the sections that need a restart; with an error all of the old one stays\n"
             "(`config.reload_refused`).",
    .example = "holdfast run --queues critical,default --workers 16\nholdfast run --until-idle --json",
    .flags = flags,
    .prints_json = true,
    .run = run,
};
