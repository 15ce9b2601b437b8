/* SPDX-License-Identifier: MIT */
/*
 * Checks the options of job types and copies them deeply. Must never keep a pointer of the caller, nor read past the
 * size a caller's struct says it has. Before the runner starts, on the caller's thread.
 */
#include "jobs/type_options.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/kinds/template.h"
#include "jobs/record.h"
#include "resilience/call.h"
#include "resilience/rules.h"

#define SCHEMA_MAX 63 /* what a dead letter has room for */

struct hfi_kept {
    struct hfi_kept *next;
    max_align_t data[];
};

void *hfi_keep_alloc(struct hfi_keep *keep, size_t size) {
    struct hfi_kept *kept = size < SIZE_MAX / 2 ? hfi_alloc(sizeof *kept + size) : NULL;
    if (!kept)
        return NULL;
    kept->next = keep->first;
    keep->first = kept;
    return kept->data;
}

const char *hfi_keep_text(struct hfi_keep *keep, const char *text) {
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = hfi_keep_alloc(keep, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void hfi_keep_free(struct hfi_keep *keep) {
    while (keep->first) {
        struct hfi_kept *kept = keep->first;
        keep->first = kept->next;
        hfi_free(kept);
    }
}

const char *const *hfi_keep_texts(struct hfi_keep *keep, const char *const *texts, size_t count) {
    if (count == 0 || count > SIZE_MAX / sizeof *texts)
        return NULL;
    const char **copy = hfi_keep_alloc(keep, count * sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = hfi_keep_text(keep, texts[i]);
        if (!copy[i])
            return NULL;
    }
    return copy;
}

static int no_memory(struct hf_error *error, const char *what) {
    return hfi_fail(error, HF_ENOMEM, what, NULL, NULL);
}

int hfi_curve_options_copy(struct hfi_keep *keep, const char *what, const struct hf_curve_options *given,
                           const struct hf_curve_options **options, struct hf_error *error) {
    struct hf_curve_options curve;
    *options = NULL;
    if (!given)
        return 0;
    if (given->size < sizeof given->size)
        return hfi_fail(error, HF_EINVAL, what, "call hf_curve_options_init first", "the size of its curve is not set");
    hf_curve_options_init(&curve);
    memcpy(&curve, given, given->size < sizeof curve ? given->size : sizeof curve);
    curve.size = (uint32_t)sizeof curve;
    if (curve.curve_length > HF_CURVE_MAX)
        return hfi_fail(error, HF_EINVAL, what, "the last wait is reused", "a curve of %" PRIu32 " waits, at most %d fit",
                        curve.curve_length, HF_CURVE_MAX);
    for (uint32_t i = 0; i < curve.curve_length; i++)
        if (curve.curve_ms[i] < 0)
            return hfi_fail(error, HF_EINVAL, what, "waits are milliseconds from 0", "wait %" PRIu32 " is %" PRId64 " ms",
                            i + 1, curve.curve_ms[i]);
    if (!(curve.jitter >= 0 && curve.jitter <= 1) || curve.cap_ms < 0)
        return hfi_fail(error, HF_EINVAL, what, "jitter is 0 to 1, cap_ms 0 or more", "jitter %g, cap %" PRId64 " ms",
                        curve.jitter, curve.cap_ms);
    struct hf_curve_options *copy = hfi_keep_alloc(keep, sizeof *copy);
    if (!copy)
        return no_memory(error, what);
    *copy = curve;
    *options = copy;
    return 0;
}

int hfi_never_retry_check(const char *const *list, size_t count, struct hf_error *error) {
    for (size_t i = 0; i < count; i++)
        if (!list[i] || !hfi_text_dotted(list[i]))
            return hfi_fail(error, HF_EINVAL, "never_retry", "list dotted error types, as `http.409` or `validation`",
                            "`%s` is not an error type", list[i] ? list[i] : "");
    return 0;
}

static int check_http(const struct hf_type_options *type, struct hf_error *error) {
    int code = hfi_name_check("downstream", type->downstream, HFI_NAME_MAX, error);
    if (code != 0)
        return code;
    if (type->url && ((type->path && type->path[0]) || type->query))
        return hfi_fail(error, HF_EINVAL, type->name, "put them into the url", "with a url there is no path or query");
    struct hf_request request = hf_request_to(type->downstream, type->method, type->path ? type->path : "");
    struct hf_error details;
    hf_error_init(&details);
    request.query = type->query;
    request.headers = type->headers;
    request.header_count = type->header_count;
    code = hfi_request_check(&request, &details); /* what no call could send must not wait for its first job */
    if (code == 0)
        code = hfi_templates_check(type, &details);
    if (code != 0)
        return hfi_fail(error, code, type->name, details.fix, "%s: %s", details.what, details.why);
    return hf_rules_check(type->rules, type->rule_count, error);
}

static int check_limits(const struct hf_type_options *type, struct hf_error *error) {
    if (type->max_memory < 0 || type->max_cpu_ms < 0)
        return hfi_fail(error, HF_EINVAL, type->name, "0 is none", "max_memory is %" PRId64 ", max_cpu_ms %" PRId64,
                        type->max_memory, type->max_cpu_ms);
    return 0;
}

/* Also of what is isolated: its command runs the handler. */
static int check_exec(const struct hf_type_options *type, struct hf_error *error) {
    if (type->command_length == 0 || !type->command)
        return hfi_fail(error, HF_EINVAL, type->name, "give the program and its arguments", "no command");
    for (size_t i = 0; i < type->command_length; i++)
        if (!type->command[i])
            return hfi_fail(error, HF_EINVAL, type->name, NULL, "argument %zu of its command is NULL", i);
    if (type->command[0][0] != '/')
        return hfi_fail(error, HF_EINVAL, type->name, "no PATH is searched", "command `%s` is not an absolute path",
                        type->command[0]);
    for (size_t i = 0; i < type->environment_length; i++)
        if (!type->environment || !type->environment[i] || !type->environment[i][0] || type->environment[i][0] == '=')
            return hfi_fail(error, HF_EINVAL, type->name, "write NAME or NAME=value", "variable %zu has no name", i + 1);
    if (type->directory && type->directory[0] != '/')
        return hfi_fail(error, HF_EINVAL, type->name, "begin it with /", "directory `%s` is not absolute",
                        type->directory);
    if (type->kill_grace_ms < 0)
        return hfi_fail(error, HF_EINVAL, type->name, "0 or more", "kill_grace_ms is %" PRId64, type->kill_grace_ms);
    return check_limits(type, error);
}

static int check_handler(const struct hf_type_options *type, struct hf_error *error) {
    if (type->isolate != HF_ISOLATE_NONE && type->isolate != HF_ISOLATE_PROCESS)
        return hfi_fail(error, HF_EINVAL, type->name, "HF_ISOLATE_NONE or _PROCESS", "isolate %d is unknown",
                        (int)type->isolate);
    if (type->kind == HF_KIND_PLUGIN && !type->library)
        return hfi_fail(error, HF_EINVAL, type->name, "name its shared object", "a plugin without a library");
    if (type->isolate == HF_ISOLATE_NONE)
        return 0;
    return check_exec(type, error);
}

static int check(const struct hf_type_options *type, bool has_handler, struct hf_error *error) {
    int code = hfi_name_check("job type", type->name, HFI_TYPE_MAX, error);
    if (code == 0)
        code = hfi_name_check("queue", type->queue, HFI_NAME_MAX, error);
    if (code == 0)
        code = hfi_never_retry_check(type->never_retry, type->never_retry_count, error);
    if (code != 0)
        return code;
    if (type->execution_timeout_ms < -1)
        return hfi_fail(error, HF_EINVAL, type->name, "0 is none, -1 the runner's", "execution_timeout_ms is %" PRId64,
                        type->execution_timeout_ms);
    if (type->abandon_after_ms < -1 || type->heartbeat_timeout_ms < 0)
        return hfi_fail(error, HF_EINVAL, type->name, "0 is off; abandon_after_ms -1 the runner's",
                        "heartbeat_timeout_ms is %" PRId64 ", abandon_after_ms %" PRId64, type->heartbeat_timeout_ms,
                        type->abandon_after_ms);
    bool handled = type->kind == HF_KIND_NATIVE || type->kind == HF_KIND_PLUGIN;
    if (type->heartbeat_timeout_ms > 0 && !handled)
        return hfi_fail(error, HF_EINVAL, type->name, "leave heartbeat_timeout out",
                        "only handlers can send heartbeats");
    if ((unsigned)type->payload > HF_PAYLOAD_JSON)
        return hfi_fail(error, HF_EINVAL, type->name, "HF_PAYLOAD_BYTES, _TEXT or _JSON", "payload %d is unknown",
                        (int)type->payload);
    if (type->labels && !hfi_text_valid(type->labels, strlen(type->labels)))
        return hfi_fail(error, HF_ETEXT, type->name, "write them as UTF-8", "its labels are not valid UTF-8");
    if (strlen(type->schema) > SCHEMA_MAX || !hfi_text_valid(type->schema, strlen(type->schema)))
        return hfi_fail(error, HF_EINVAL, type->name, "name it in a few characters", "its schema is no UTF-8 text of at most %d bytes",
                        SCHEMA_MAX);
    if (has_handler != (type->kind == HF_KIND_NATIVE))
        return hfi_fail(error, HF_EINVAL, type->name, "register native types with hf_runner_register",
                        has_handler ? "a handler, but its kind is not native" : "a native type without a handler");
    if (type->isolate != HF_ISOLATE_NONE && !handled)
        return hfi_fail(error, HF_EINVAL, type->name, "leave isolate out", "only native and plugin types can be isolated");
    if (type->kind != HF_KIND_HTTP && type->rule_count > 0)
        return hfi_fail(error, HF_EINVAL, type->name, "leave them out", "only types of kind HTTP have rules");
    switch (type->kind) {
    case HF_KIND_HTTP:
        return check_http(type, error);
    case HF_KIND_EXEC:
        return check_exec(type, error);
    case HF_KIND_NATIVE:
    case HF_KIND_PLUGIN:
        return check_handler(type, error);
    case HF_KIND_NOOP:
        return 0;
    }
    return hfi_fail(error, HF_EINVAL, type->name, "HF_KIND_HTTP, _EXEC, _NATIVE, _PLUGIN or _NOOP", "kind %d is unknown",
                    (int)type->kind);
}

/* Copies a text in place; false: out of memory. */
static bool keep_text(struct hfi_keep *keep, const char **text) {
    const char *copy = hfi_keep_text(keep, *text);
    bool kept = copy || !*text;
    *text = copy;
    return kept;
}

static bool keep_list(struct hfi_keep *keep, const char *const **texts, size_t count) {
    *texts = hfi_keep_texts(keep, *texts, count);
    return *texts || count == 0;
}

static bool keep_headers(struct hfi_keep *keep, struct hf_type_options *type) {
    struct hf_header *copy = NULL;
    if (type->header_count > 0) {
        copy = hfi_keep_alloc(keep, type->header_count * sizeof *copy);
        if (!copy)
            return false;
        memcpy(copy, type->headers, type->header_count * sizeof *copy);
        for (size_t i = 0; i < type->header_count; i++)
            if (!keep_text(keep, &copy[i].name) || !keep_text(keep, &copy[i].value))
                return false;
    }
    type->headers = copy;
    return true;
}

static bool keep_rules(struct hfi_keep *keep, struct hf_type_options *type) {
    struct hfi_rules rules = {NULL, 0};
    if (type->rule_count > 0) {
        char *block = hfi_keep_alloc(keep, hfi_rules_room(type->rules, type->rule_count));
        if (!block)
            return false;
        hfi_rules_put(&rules, type->rules, type->rule_count, block);
    }
    type->rules = rules.items;
    return true;
}

int hfi_type_options_copy(struct hfi_keep *keep, const struct hf_type_options *given, bool has_handler,
                          struct hf_type_options *options, struct hf_error *error) {
    if (!given || given->size < sizeof given->size)
        return hfi_fail(error, HF_EINVAL, "job type", "call hf_type_options_init first", "its size is not set");
    hf_type_options_init(options);
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    options->size = (uint32_t)sizeof *options;
    if (!options->queue || !options->queue[0])
        options->queue = "default";
    if (!options->labels)
        options->labels = "";
    if (!options->schema)
        options->schema = "";
    int code = check(options, has_handler, error);
    if (code == 0)
        code = hfi_curve_options_copy(keep, options->name, options->curve, &options->curve, error);
    if (code != 0)
        return code;
    if (!keep_text(keep, &options->name) || !keep_text(keep, &options->queue) ||
        !keep_text(keep, &options->downstream) || !keep_text(keep, &options->method) ||
        !keep_text(keep, &options->path) || !keep_text(keep, &options->query) || !keep_text(keep, &options->url) ||
        !keep_text(keep, &options->body_field) || !keep_text(keep, &options->library) ||
        !keep_text(keep, &options->directory) || !keep_text(keep, &options->labels) || !keep_text(keep, &options->schema) || !keep_headers(keep, options) || !keep_rules(keep, options) ||
        !keep_list(keep, &options->command, options->command_length) ||
        !keep_list(keep, &options->environment, options->environment_length) ||
        !keep_list(keep, &options->never_retry, options->never_retry_count))
        return no_memory(error, "job type");
    return 0;
}
