/* SPDX-License-Identifier: MIT */
/*
 * The other half of an isolated execution: in a process of its own, reads what it is about, runs the handler and says how
 * it ended (isolated_talk.c). Must never let the handler's own output into what it says, nor say an end that the handler
 * did not give. The process's first thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "holdfast/plugin.h"
#include "jobs/kinds/isolated_child.h"
#include "jobs/kinds/isolated_wire.h"
#include "jobs/kinds/plugin.h"

#define INPUT_MAX ((size_t)1 << 30)
#define BEAT_SPACING_US 100000 /* at most; a quarter of the heartbeat_timeout if that is less */

/* ------------------------------------------------------------------ told to stop */

static struct hf_work *_Atomic told;

/* Comes with the node's word why, which may be behind it. */
static void on_term(int number) {
    struct hf_work *work = atomic_load(&told);
    int none = HFI_STOP_NONE;
    (void)number;
    if (work)
        atomic_compare_exchange_strong(&work->stop, &none, HFI_STOP_CANCEL);
}

/* ------------------------------------------------------------------ what it is about */

static bool read_all(struct hfi_bytes *input) {
    char piece[65536];
    ssize_t length;
    hfi_bytes_init(input, INPUT_MAX);
    while ((length = read(STDIN_FILENO, piece, sizeof piece)) != 0) {
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return false;
        hfi_bytes_add(input, piece, (size_t)length);
    }
    return !input->failed;
}

/* The next text of the input; NULL: it ends before that. */
static const char *next_text(const struct hfi_bytes *input, size_t *at) {
    const char *text = input->data + *at;
    const char *end = memchr(text, 0, input->length - *at);
    if (end)
        *at += (size_t)(end - text) + 1;
    return end ? text : NULL;
}

static void unpack_limits(struct hfi_child_execution *execution, const struct hfi_isolated_job *wire) {
    int64_t quarter_us = hfi_ms_to_us(wire->heartbeat_timeout_ms) / 4;
    execution->type.options.repeatable = wire->repeatable != 0;
    execution->type.options.no_idempotency_key = wire->no_idempotency_key != 0;
    execution->beat_spacing_us = wire->heartbeat_timeout_ms == 0 ? INT64_MAX
                                 : quarter_us < BEAT_SPACING_US  ? quarter_us
                                                                 : BEAT_SPACING_US;
    execution->work.max_executions = wire->max_executions;
    execution->work.deadline.us = wire->deadline_us;
}

static bool unpack(struct hfi_child_execution *execution) {
    struct hfi_isolated_job wire;
    struct hfi_job *job = &execution->job;
    struct hf_work *work = &execution->work;
    size_t at = sizeof wire;
    if (execution->input.length < sizeof wire)
        return false;
    memcpy(&wire, execution->input.data, sizeof wire);
    if (strncmp(wire.magic, HFI_ISOLATED_MAGIC, sizeof wire.magic) != 0 || wire.protocol != HFI_ISOLATED_PROTOCOL)
        return false;
    const char *texts[HFI_ISOLATED_TEXTS];
    for (size_t i = 0; i < HFI_ISOLATED_TEXTS; i++)
        if ((texts[i] = next_text(&execution->input, &at)) == NULL)
            return false;
    if (wire.checkpoint > execution->input.length - at || wire.payload != execution->input.length - at - wire.checkpoint)
        return false;
    *job = (struct hfi_job){.id = wire.job, .executions = wire.execution, .type = texts[0], .queue = texts[1],
                            .content_type = texts[5], .tags = texts[6], .correlation_id = texts[7],
                            .trace_context = texts[8], .checkpoint = execution->input.data + at,
                            .checkpoint_length = wire.checkpoint,
                            .payload = execution->input.data + at + wire.checkpoint, .payload_length = wire.payload};
    execution->type.options.name = texts[0];
    execution->type.options.labels = texts[2];
    hfi_text_copy(work->key, sizeof work->key, texts[3]);
    hfi_text_copy(work->execution_id, sizeof work->execution_id, texts[4]);
    unpack_limits(execution, &wire);
    return true;
}

/* ------------------------------------------------------------------ the whole of it */

/* The socket moves away from standard output, which becomes standard error: what the handler prints is evidence. */
static int take_socket(struct hfi_child_execution *execution) {
    int kind = 0;
    socklen_t size = sizeof kind;
    if (getsockopt(STDOUT_FILENO, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM) {
        fprintf(stderr, "holdfast: standard output is no socket of a node: this program is started by one\n");
        return EX_CONFIG;
    }
    execution->node = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (execution->node < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return EX_OSERR;
    return 0;
}

static int begin(struct hfi_child_execution *execution) {
    struct hf_work *work = &execution->work;
    struct sigaction action;
    if (!read_all(&execution->input) || !unpack(execution)) {
        fprintf(stderr, "holdfast: standard input is no execution of a node of version %s\n", hf_version());
        return EX_CONFIG;
    }
    int code = take_socket(execution);
    if (code != 0)
        return code;
    work->job = &execution->job;
    work->type = &execution->type;
    hfi_outcome_init(&work->ending.outcome);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_term; /* without SA_RESTART: whoever sleeps wakes and looks */
    sigemptyset(&action.sa_mask);
    atomic_store(&told, work);
    return sigaction(SIGTERM, &action, NULL) == 0 ? hfi_child_talk(execution) : EX_OSERR;
}

static void let_go(struct hfi_child_execution *execution) {
    hfi_child_hang_up(execution);
    atomic_store(&told, NULL);
    if (execution->node >= 0)
        close(execution->node);
    if (execution->wake >= 0)
        close(execution->wake);
    hfi_desk_end(&execution->desk);
    hfi_ending_free(&execution->work.ending);
    hfi_bytes_free(&execution->input);
    pthread_mutex_destroy(&execution->lock);
    hfi_free(execution);
}

int hf_isolated_run(hf_handler_fn handler, void *user) {
    struct hfi_child_execution *execution = hfi_alloc(sizeof *execution);
    if (!execution || pthread_mutex_init(&execution->lock, NULL) != 0) {
        hfi_free(execution);
        return EX_OSERR;
    }
    execution->node = execution->wake = -1;
    int code = begin(execution);
    if (code == 0) {
        hfi_work_judge(&execution->work, handler(&execution->work, user));
        hfi_work_close(&execution->work);
        code = hfi_child_say_end(execution) ? 0 : EX_IOERR;
    }
    let_go(execution);
    return code;
}

int hf_isolated_client(struct hf_work *work, struct hf_client *client) {
    if (!work || !hfi_child_is(work))
        return HF_EINVAL;
    work->client = client;
    return 0;
}

/* Begun for this one execution. */
static enum hf_result run_plugin(struct hf_work *work, void *from) {
    const struct hf_plugin *plugin = from;
    struct hf_error error;
    void *user = plugin->user;
    hf_error_init(&error);
    if (plugin->init && plugin->init(hf_work_type(work), &user, &error) != 0)
        return hf_work_failed(work, "plugin.init", error.why[0] ? error.why : "its init failed and does not say why");
    enum hf_result result = plugin->run(work, user);
    if (plugin->end)
        plugin->end(user);
    return result;
}

int hf_isolated_plugin(const char *library) {
    const struct hf_plugin *plugin;
    struct hf_error error;
    char text[900];
    hf_error_init(&error);
    if (hfi_plugin_load(library, &plugin, &error) != 0) {
        hf_error_print(&error, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return EX_CONFIG;
    }
    return hf_isolated_run(run_plugin, (void *)(uintptr_t)plugin);
}
