/* SPDX-License-Identifier: MIT */
/*
 * What somebody says about a forwarder or a death handler, checked and kept, and the job type it means. Must never keep
 * a pointer of the caller in the forwarder. Before the runner starts, on the caller's thread.
 */
#include "jobs/forward_options.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/record.h"

static int check_names(const struct hf_forward_options *options, struct hf_error *error) {
    const struct {
        const char *what, *name;
        size_t max;
    } names[] = {{"source", options->source, HFI_NAME_MAX}, {"queue", options->queue, HFI_NAME_MAX},
                 {"type", options->type, HFI_TYPE_MAX},     {"to queue", options->to_queue, HFI_NAME_MAX},
                 {"to type", options->to_type, HFI_TYPE_MAX}};
    int code = hfi_name_check("forwarder", options->name, HFI_FORWARD_NAME_MAX, error);
    if (code == 0 && strcmp(options->name, HFI_DEATH_HANDLER) == 0)
        code = hfi_fail(error, HF_EINVAL, "forwarder", "choose another name", "`%s` stands for the death handlers",
                        HFI_DEATH_HANDLER);
    for (size_t i = 0; i < sizeof names / sizeof *names && code == 0; i++)
        if (names[i].name)
            code = hfi_name_check(names[i].what, names[i].name, names[i].max, error);
    if (code == 0 && (hfi_forward_reserved(options->to_queue) || hfi_forward_reserved(options->to_type)))
        code = hfi_fail(error, HF_EINVAL, options->name, "choose another name", "names that begin with %s are reserved",
                        HFI_RESERVED);
    return code;
}

static int check_target(const struct hf_forward_options *options, struct hf_error *error) {
    int targets = (options->to_queue != NULL) + (options->downstream != NULL) + (options->command_length > 0);
    if (targets != 1)
        return hfi_fail(error, HF_EINVAL, options->name, "give a queue, a downstream or a command",
                        targets == 0 ? "it forwards to nowhere" : "it has more than one target");
    if (options->to_type && !options->to_queue)
        return hfi_fail(error, HF_EINVAL, options->name, "leave it out", "only jobs in a queue have a type");
    if (options->error_header && !options->downstream)
        return hfi_fail(error, HF_EINVAL, options->name, "leave it out", "only calls of a downstream have headers");
    if (options->curve && options->to_queue)
        return hfi_fail(error, HF_EINVAL, options->name, "give it to the queue or the type", "jobs in a queue have their own curve");
    return 0;
}

static int check(const struct hf_forward_options *options, struct hf_error *error) {
    int code = check_names(options, error);
    if (code == 0 && (options->death_class < -1 || options->death_class > HF_DEATH_POISON))
        code = hfi_fail(error, HF_EINVAL, options->name, "-1 is any", "class %d is unknown", (int)options->death_class);
    if (code == 0 && options->of > HF_FORWARD_MESSAGES)
        code = hfi_fail(error, HF_EINVAL, options->name, "see enum hf_forward_of", "deaths of kind %d are unknown",
                        (int)options->of);
    if (code == 0 && options->of == HF_FORWARD_MESSAGES && options->to_queue && !options->to_type)
        code = hfi_fail(error, HF_EINVAL, options->name, "name the type of the job", "a message has no type to keep");
    return code != 0 ? code : check_target(options, error);
}

static int no_memory(struct hf_error *error) {
    return hfi_fail(error, HF_ENOMEM, "forwarder", NULL, NULL);
}

/* A text that may be NULL. False: no memory. */
static bool keep_text(struct hfi_keep *keep, const char **to, const char *text) {
    *to = hfi_keep_text(keep, text);
    return *to || !text;
}

static bool keep_joined(struct hfi_keep *keep, const char **to, const char *prefix, const char *name) {
    size_t room = strlen(prefix) + strlen(name) + 1;
    char *text = hfi_keep_alloc(keep, room);
    *to = text;
    if (text)
        snprintf(text, room, "%s%s", prefix, name);
    return text;
}

int hfi_forward_options_copy(struct hfi_keep *keep, const struct hf_forward_options *given, struct hfi_forward *forward,
                             struct hf_type_options *type, struct hf_error *error) {
    struct hf_forward_options options;
    if (!given || given->size < sizeof given->size)
        return hfi_fail(error, HF_EINVAL, "forwarder", "call hf_forward_options_init first", "its size is not set");
    hf_forward_options_init(&options);
    memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    memset(forward, 0, sizeof *forward);
    hf_type_options_init(type);
    int code = check(&options, error);
    if (code != 0)
        return code;
    forward->death_class = options.death_class;
    forward->of = 1u << options.of;
    if (!keep_text(keep, &forward->name, options.name) || !keep_text(keep, &forward->source, options.source) ||
        !keep_text(keep, &forward->queue, options.queue) || !keep_text(keep, &forward->type, options.type) ||
        !keep_text(keep, &forward->to_queue, options.to_queue ? options.to_queue : HFI_FORWARD_QUEUE) ||
        !keep_text(keep, &forward->to_type, options.to_type))
        return no_memory(error);
    if (options.to_queue)
        return 0;
    if (!keep_joined(keep, &forward->to_type, HFI_FORWARD_TYPE, forward->name))
        return no_memory(error);
    type->name = forward->to_type;
    type->queue = forward->to_queue;
    type->curve = options.curve;
    type->kind = options.downstream ? HF_KIND_HTTP : HF_KIND_EXEC;
    type->downstream = options.downstream;
    type->method = options.method;
    type->path = options.path;
    type->command = options.command;
    type->command_length = options.command_length;
    return 0;
}

int hfi_death_options_copy(struct hfi_keep *keep, const struct hf_type_options *given, struct hfi_forward *forward,
                           struct hf_type_options *type, struct hf_error *error) {
    memset(forward, 0, sizeof *forward);
    if (!given || given->size < sizeof given->size)
        return hfi_fail(error, HF_EINVAL, "death handler", "call hf_type_options_init first", "its size is not set");
    hf_type_options_init(type);
    memcpy(type, given, given->size < sizeof *type ? given->size : sizeof *type);
    int code = hfi_name_check("job type", type->name, HFI_TYPE_MAX - sizeof HFI_DEATH_TYPE + 1, error);
    if (code == 0 && hfi_forward_reserved(type->name))
        code = hfi_fail(error, HF_EINVAL, type->name, "handle the death of the job that died first",
                        "jobs that a death made set off no others");
    if (code != 0)
        return code;
    bool own_queue = type->queue && type->queue[0] && strcmp(type->queue, "default") != 0;
    forward->name = HFI_DEATH_HANDLER;
    forward->handler = true;
    forward->death_class = -1;
    forward->of = 1u << HF_FORWARD_DEAD | 1u << HF_FORWARD_QUARANTINED;
    if (!keep_text(keep, &forward->type, type->name) ||
        !keep_text(keep, &forward->to_queue, own_queue ? type->queue : HFI_FORWARD_QUEUE) ||
        !keep_joined(keep, &forward->to_type, HFI_DEATH_TYPE, type->name))
        return no_memory(error);
    type->name = forward->to_type;
    type->queue = forward->to_queue;
    return 0;
}

int hf_forward_check(const struct hf_forward_options *options, struct hf_error *error) {
    struct hfi_keep keep = {NULL};
    struct hfi_forward forward;
    struct hf_type_options type, copy;
    int code = hfi_forward_options_copy(&keep, options, &forward, &type, error);
    if (code == 0 && type.name)
        code = hfi_type_options_copy(&keep, &type, false, &copy, error);
    hfi_keep_free(&keep);
    return code;
}
