/* SPDX-License-Identifier: MIT */
/*
 * Sinks as they are given to the library: copied for a runner, looked at, tried once. Must never show a secret. Any
 * thread; a trial has a loop of its own.
 */
#include "assembly/sinks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "jobs/deaths/sink.h"
#include "loop/loop.h"
#include "resilience/http/http.h"

static const char *text(struct hfi_keep *keep, const char *given, bool *whole) {
    const char *copy = hfi_keep_text(keep, given);
    *whole = *whole && (copy || !given);
    return copy;
}

static const char *const *texts(struct hfi_keep *keep, const char *const *given, size_t count, bool *whole) {
    const char *const *copy = hfi_keep_texts(keep, given, count);
    *whole = *whole && (copy || count == 0);
    return copy;
}

static void shorter(struct hf_sink_options *to, const struct hf_sink_options *from) {
    hf_sink_options_init(to);
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    to->size = (uint32_t)sizeof *to;
}

static bool copy(struct hfi_keep *keep, struct hf_sink_options *to) {
    bool whole = true;
    to->name = text(keep, to->name, &whole);
    to->text = text(keep, to->text, &whole);
    to->url = text(keep, to->url, &whole);
    to->signing_secrets = texts(keep, to->signing_secrets, to->signing_secret_count, &whole);
    to->server = text(keep, to->server, &whole);
    to->from = text(keep, to->from, &whole);
    to->to = texts(keep, to->to, to->to_count, &whole);
    to->user = text(keep, to->user, &whole);
    to->password = text(keep, to->password, &whole);
    to->subject = text(keep, to->subject, &whole);
    to->ca_file = text(keep, to->ca_file, &whole);
    to->command = texts(keep, to->command, to->command_length, &whole);
    return whole;
}

int hfi_sinks_copy(struct hfi_keep *keep, const struct hf_runner_options *given, struct hf_runner_options *to) {
    size_t count = given->sink_count;
    struct hf_sink_options *sinks = hfi_keep_alloc(keep, (count + 1) * sizeof *sinks);
    if (!sinks)
        return HF_ENOMEM;
    const char *from = (const char *)given->sinks;
    for (size_t i = 0; i < count; i++, from += given->sinks->size) {
        shorter(&sinks[i], (const struct hf_sink_options *)(const void *)from);
        if (!copy(keep, &sinks[i]))
            return HF_ENOMEM;
    }
    to->sinks = sinks;
    return 0;
}

int hf_sink_check(const struct hf_sink_options *options, struct hf_error *error) {
    struct hf_sink_options whole;
    shorter(&whole, options);
    return hfi_sink_check(&whole, error);
}

/* ------------------------------------------------------------------ a trial */

struct trial {
    struct hfi_scheduler *loop;
    bool over;
    char error_type[64];
};

static void tried(const char *error_type, const char *had, void *user) {
    struct trial *trial = user;
    (void)had;
    trial->over = true;
    hfi_text_copy(trial->error_type, sizeof trial->error_type, error_type ? error_type : "");
    trial->loop->ops->stop(trial->loop);
}

static void fill(struct hfi_alert *alert, const struct hf_sink_options *options, struct hf_wall now) {
    memset(alert, 0, sizeof *alert);
    alert->deaths = 1;
    alert->death_class = HF_DEATH_PERMANENT;
    alert->dead_at_us = now.us;
    hfi_text_copy(alert->sink, sizeof alert->sink, options->name);
    hfi_text_copy(alert->type, sizeof alert->type, "test");
    hfi_text_copy(alert->queue, sizeof alert->queue, "test");
    hfi_text_copy(alert->error_type, sizeof alert->error_type, "test.alert");
    hfi_text_copy(alert->message, sizeof alert->message, "This is a test: `holdfast alert test` was run, nothing died.");
}

static int run(struct hfi_scheduler *loop, struct hfi_transport *transport, const struct hf_sink_options *options,
               struct hf_error *error) {
    struct trial trial = {.loop = loop};
    struct hfi_alert alert;
    struct hfi_sink *sink;
    struct hfi_sink_try *try;
    int code = hfi_sink_new(loop, transport, options, &sink, error);
    if (code != 0)
        return code;
    fill(&alert, options, loop->ops->wall(loop));
    code = sink->ops->send(sink, &alert, tried, &trial, &try);
    if (code == 0)
        loop->ops->run(loop);
    sink->ops->close(sink);
    if (code != 0)
        return hfi_fail(error, code, options->name, NULL, "the alert could not be sent: %s", hf_strerror(code));
    if (trial.error_type[0])
        return hfi_fail(error, HF_EIO, options->name, "look at its settings and at whoever takes its alerts",
                        "the test alert was not delivered: %s", trial.error_type);
    return 0;
}

int hf_sink_test(const struct hf_sink_options *given, struct hf_error *error) {
    struct hf_sink_options options;
    struct hfi_scheduler *loop;
    struct hfi_transport *transport = NULL;
    shorter(&options, given);
    int code = hfi_loop_new(&loop);
    if (code != 0)
        return hfi_fail(error, code, "loop", NULL, "%s", hf_strerror(code));
    if (options.kind == HF_SINK_WEBHOOK)
        code = hfi_curl_transport_new(loop, &transport, error);
    if (code == 0)
        code = run(loop, transport, &options, error);
    if (transport)
        transport->ops->close(transport);
    loop->ops->close(loop);
    return code;
}
