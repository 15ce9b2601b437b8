/* SPDX-License-Identifier: MIT */
/*
 * The other half of an isolated execution: in a process of its own, reads what it is about, runs the handler and says how
 * it ended. Must never let the handler's own output into what it says, nor say an end that the handler did not give.
 * The process's first thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "holdfast/plugin.h"
#include "jobs/kinds/isolated_wire.h"
#include "jobs/kinds/plugin.h"

#define INPUT_MAX ((size_t)1 << 30)

struct execution {
    struct hf_work work;
    struct hfi_job job;
    struct hfi_type type;
    struct hfi_scheduler clock;
    struct hfi_bytes input;
    int out; /* to the node */
};

/* ------------------------------------------------------------------ told to stop */

static struct hf_work *_Atomic told;

static void on_term(int number) {
    struct hf_work *work = atomic_load(&told);
    int none = HFI_STOP_NONE;
    (void)number;
    if (work)
        atomic_compare_exchange_strong(&work->stop, &none, HFI_STOP_CANCEL);
}

static struct hf_mono mono(struct hfi_scheduler *self) {
    (void)self;
    return hfi_mono_now();
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

static bool unpack(struct execution *execution) {
    struct hfi_isolated_job wire;
    struct hfi_job *job = &execution->job;
    struct hf_work *work = &execution->work;
    size_t at = sizeof wire;
    if (execution->input.length < sizeof wire)
        return false;
    memcpy(&wire, execution->input.data, sizeof wire);
    if (strncmp(wire.magic, HFI_ISOLATED_MAGIC, sizeof wire.magic) != 0)
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
    work->max_executions = wire.max_executions;
    work->deadline.us = wire.left_ms == INT64_MAX ? HFI_FOREVER_US : hfi_mono_after_ms(hfi_mono_now(), wire.left_ms).us;
    return true;
}

/* ------------------------------------------------------------------ what it says */

static bool write_all(int fd, const void *data, size_t length) {
    const char *at = data;
    while (length > 0) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        length -= (size_t)written;
    }
    return true;
}

static bool say(int fd, uint32_t kind, const void *body, uint32_t length) {
    struct hfi_isolated_record record = {kind, length};
    char whole[sizeof record + sizeof(struct hfi_isolated_end)]; /* in one write, so that threads do not mix theirs */
    memcpy(whole, &record, sizeof record);
    memcpy(whole + sizeof record, body, length);
    return write_all(fd, whole, sizeof record + length);
}

static int progress(struct hf_work *work, int64_t n, const char *text) {
    struct execution *execution = work->user;
    struct hfi_isolated_progress wire;
    memset(&wire, 0, sizeof wire);
    wire.n = n;
    hfi_text_copy(wire.text, sizeof wire.text, text);
    return say(execution->out, HFI_ISOLATED_PROGRESS, &wire, sizeof wire) ? 0 : HF_ESTALE;
}

static bool say_end(struct execution *execution) {
    const struct hfi_ending *ending = &execution->work.ending;
    const struct hf_outcome *outcome = &ending->outcome;
    struct hfi_isolated_end wire;
    memset(&wire, 0, sizeof wire);
    memcpy(wire.magic, HFI_ISOLATED_MAGIC, sizeof HFI_ISOLATED_MAGIC);
    wire.result = (uint32_t)ending->result;
    wire.touched = outcome->touched;
    wire.kind = (uint32_t)outcome->kind;
    wire.retry = (uint32_t)outcome->retry;
    wire.verdict = (uint32_t)outcome->verdict;
    wire.klass = (uint32_t)outcome->klass;
    wire.sent = (uint32_t)outcome->sent;
    wire.attempts = outcome->attempts;
    wire.native = outcome->native;
    wire.retry_after_ms = outcome->retry_after_ms;
    wire.causes = ending->causes;
    wire.delay_ms = ending->delay_ms;
    wire.until_us = ending->until_us;
    wire.result_length = ending->length;
    wire.detail_length = ending->detail ? strlen(ending->detail) : 0;
    memcpy(wire.error_type, outcome->error_type, sizeof wire.error_type);
    memcpy(wire.rule, outcome->rule, sizeof wire.rule);
    memcpy(wire.message, outcome->message, sizeof wire.message);
    memcpy(wire.cause, ending->cause, sizeof wire.cause);
    memcpy(wire.text, ending->text, sizeof wire.text);
    return say(execution->out, HFI_ISOLATED_END, &wire, sizeof wire) &&
           write_all(execution->out, ending->data, ending->length) &&
           write_all(execution->out, ending->detail, wire.detail_length);
}

/* ------------------------------------------------------------------ the whole of it */

static const struct hfi_scheduler_ops clock_ops = {.version = HFI_SCHEDULER_VERSION, .mono = mono};

static int begin(struct execution *execution) {
    struct hf_work *work = &execution->work;
    struct sigaction action;
    if (!read_all(&execution->input) || !unpack(execution)) {
        fprintf(stderr, "holdfast: standard input is no execution of a node of version %s\n", hf_version());
        return EX_CONFIG;
    }
    execution->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (execution->out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return EX_OSERR;
    execution->clock.ops = &clock_ops;
    work->job = &execution->job;
    work->type = &execution->type;
    work->scheduler = &execution->clock;
    work->user = execution;
    work->say = progress;
    hfi_outcome_init(&work->ending.outcome);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_term; /* without SA_RESTART: whoever sleeps wakes and looks */
    sigemptyset(&action.sa_mask);
    atomic_store(&told, work);
    return sigaction(SIGTERM, &action, NULL) == 0 ? 0 : EX_OSERR;
}

static void let_go(struct execution *execution) {
    atomic_store(&told, NULL);
    if (execution->out >= 0)
        close(execution->out);
    hfi_ending_free(&execution->work.ending);
    hfi_bytes_free(&execution->input);
    hfi_free(execution);
}

int hf_isolated_run(hf_handler_fn handler, void *user) {
    struct execution *execution = hfi_alloc(sizeof *execution);
    if (!execution)
        return EX_OSERR;
    execution->out = -1;
    int code = begin(execution);
    if (code == 0) {
        hfi_work_judge(&execution->work, handler(&execution->work, user));
        code = say_end(execution) ? 0 : EX_IOERR;
    }
    let_go(execution);
    return code;
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
