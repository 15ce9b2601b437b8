/* SPDX-License-Identifier: MIT */
/*
 * Sinks by their kind: what is wrong with their options, and how they are made. Must never show a secret in a complaint.
 * Loop thread; checks on any.
 */
#include "jobs/deaths/sink.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "jobs/deaths/letter.h"
#include "jobs/deaths/recipients.h"
#include "jobs/deaths/render.h"

const char *hf_sink_kind_name(int kind) {
    static const char *const names[] = {"webhook", "mail", "command"};
    return kind >= 0 && kind <= HF_SINK_COMMAND ? names[kind] : "unknown";
}

static bool begins(const char *text, const char *with) {
    return text && strncmp(text, with, strlen(with)) == 0;
}

static int check_webhook(const struct hf_sink_options *options, struct hf_error *error) {
    if (!begins(options->url, "https://") && !begins(options->url, "http://"))
        return hfi_fail(error, HF_ECONFIG, options->name, "use an http or https address", "its address is not one");
    if (options->signing_secret_count > 0 && hfi_signing_new(options->signing_secrets, options->signing_secret_count,
                                                             options->name, NULL, error) != 0)
        return HF_ECONFIG;
    return hfi_render_check("text", options->text, false, error);
}

static bool is_server(const char *server) {
    const char *host = begins(server, "smtps://") ? server + 8 : begins(server, "smtp://") ? server + 7 : "";
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_";
    return host[0] && strlen(host) <= 255 && strspn(host, allowed) == strlen(host);
}

static int check_addresses(const struct hf_sink_options *options, struct hf_error *error) {
    if (!hfi_is_address(options->from))
        return hfi_fail(error, HF_ECONFIG, options->name, "write one plain address, as holdfast@example.org",
                        options->from ? "from is no address" : "from is missing");
    if (!options->to || options->to_count == 0 || options->to_count > HFI_RECIPIENTS_MAX)
        return hfi_fail(error, HF_ECONFIG, options->name, "write to: [ops@example.org]", "to has %zu addresses, not 1 to %d",
                        options->to_count, HFI_RECIPIENTS_MAX);
    for (size_t i = 0; i < options->to_count; i++)
        if (!hfi_is_address(options->to[i]))
            return hfi_fail(error, HF_ECONFIG, options->name, "write plain addresses, as ops@example.org",
                            "address %zu of to is none", i + 1);
    return 0;
}

static int check_mail(const struct hf_sink_options *options, struct hf_error *error) {
    bool wrapped = begins(options->server, "smtps://");
    if (!is_server(options->server))
        return hfi_fail(error, HF_ECONFIG, options->name, "write smtp://host:587 or smtps://host",
                        options->server ? "server is no smtp or smtps address of a host" : "server is missing");
    if (options->tls < HF_MAIL_TLS_REQUIRED || options->tls > HF_MAIL_TLS_NONE)
        return hfi_fail(error, HF_ECONFIG, options->name, NULL, "tls is %d", (int)options->tls);
    if ((options->user == NULL) != (options->password == NULL))
        return hfi_fail(error, HF_ECONFIG, options->name, "give both or none", "user and password belong together");
    if (options->password && !wrapped && options->tls != HF_MAIL_TLS_REQUIRED)
        return hfi_fail(error, HF_ECONFIG, options->name, "use tls: required, or smtps://",
                        "its password could go out in plain text");
    int code = check_addresses(options, error);
    if (code == 0)
        code = hfi_render_check("subject", options->subject, true, error);
    return code != 0 ? code : hfi_render_check("text", options->text, true, error);
}

static int check_command(const struct hf_sink_options *options, struct hf_error *error) {
    struct stat about;
    if (!options->command || options->command_length == 0 || !begins(options->command[0], "/"))
        return hfi_fail(error, HF_ECONFIG, options->name, "write its absolute path, and arguments",
                        "the command has no absolute path");
    if (stat(options->command[0], &about) != 0 || !S_ISREG(about.st_mode) || access(options->command[0], X_OK) != 0)
        return hfi_fail(error, HF_ECONFIG, options->name, "name a program that may be executed", "%s is none",
                        options->command[0]);
    for (size_t i = 1; i < options->command_length; i++) {
        int code = hfi_render_check("command", options->command[i], options->detail, error);
        if (code != 0)
            return code;
    }
    return 0;
}

int hfi_sink_check(const struct hf_sink_options *options, struct hf_error *error) {
    int code = hfi_name_check("sink", options->name, 63, error);
    if (code != 0)
        return code;
    if (options->timeout_ms < 1 || options->timeout_ms > 3600000)
        return hfi_fail(error, HF_ECONFIG, options->name, "use 10s", "its time limit has to be 1ms to 1h");
    if (options->collapse_ms < 0)
        return hfi_fail(error, HF_ECONFIG, options->name, "use 10m, or 0 for one alert per death",
                        "collapse is less than nothing");
    switch (options->kind) {
    case HF_SINK_WEBHOOK:
        return check_webhook(options, error);
    case HF_SINK_MAIL:
        return check_mail(options, error);
    case HF_SINK_COMMAND:
        return check_command(options, error);
    default:
        return hfi_fail(error, HF_ECONFIG, options->name, NULL, "there is no sink of kind %d", (int)options->kind);
    }
}

int hfi_sink_new(struct hfi_scheduler *scheduler, struct hfi_transport *transport, const struct hf_sink_options *options,
                 struct hfi_sink **sink, struct hf_error *error) {
    int code = hfi_sink_check(options, error);
    if (code == 0 && options->kind == HF_SINK_WEBHOOK)
        code = hfi_webhook_new(scheduler, transport, options, sink, error);
    else if (code == 0 && options->kind == HF_SINK_MAIL)
        code = hfi_mail_new(scheduler, options, sink, error);
    else if (code == 0)
        code = hfi_command_new(scheduler, options, sink, error);
    if (code != 0)
        return code;
    (*sink)->budget_ms = options->timeout_ms;
    hfi_text_copy((*sink)->name, sizeof (*sink)->name, options->name);
    return 0;
}
