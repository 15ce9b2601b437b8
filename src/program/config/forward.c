/* SPDX-License-Identifier: MIT */
/*
 * The forwarders of the configuration: that each has a name of its own and leads somewhere [S2.27], and the library's
 * options of them. Pure.
 */
#include <string.h>

#include "program/config/bind.h"
#include "program/config/config.h"
#include "program/nearest.h"

/* What it is called: as it says, else by what it takes. */
static const char *name_of(const struct hfi_forward_setting *forward) {
    const char *name = forward->name ? forward->name : forward->source ? forward->source : forward->queue;
    return name ? name : forward->type ? forward->type : "all";
}

static void fill(const struct hfi_forward_setting *from, struct hf_forward_options *to) {
    hf_forward_options_init(to);
    to->name = name_of(from);
    to->source = from->source;
    to->queue = from->queue;
    to->type = from->type;
    to->death_class = from->death_class;
    to->of = (enum hf_forward_of)from->of; /* in the schema's order */
    to->to_queue = from->to_queue;
    to->to_type = from->to_type;
    to->downstream = from->downstream;
    to->method = from->method;
    to->path = from->path;
    to->command = from->command.items;
    to->command_length = from->command.count;
    to->error_header = from->error_header;
    to->curve = from->curve.given || from->curve.executions > 0 ? &from->curve.options : NULL;
}

static const struct hfi_node *at(const struct hfi_forward_setting *forward, const char *path) {
    return hfi_tree_nearest(forward->item.node, path);
}

/* A name of something that is to be there. */
static void check_there(struct hfi_binding *binding, const struct hfi_node *node, const char *what, const char *name,
                        const struct hfi_items *items, size_t size) {
    struct hfi_nearest nearest;
    if (hfi_items_find(items, size, name, &nearest))
        return;
    hfi_bind_error(binding, "config.reference", node,
                   nearest.best ? hfi_arena_print(binding->arena, "did you mean `%s`?", nearest.best)
                                : hfi_arena_print(binding->arena, "add it to %s", what),
                   "there is no `%.120s` in %s", name, what);
}

static void check(struct hfi_binding *binding, const struct hfi_settings *settings, const struct hfi_forward_setting *forward) {
    struct hf_forward_options options;
    struct hf_error error;
    hf_error_init(&error);
    fill(forward, &options);
    if (hf_forward_check(&options, &error) != 0)
        hfi_bind_error(binding, "config.forward", forward->item.node, hfi_arena_text(binding->arena, error.fix), "%s", error.why);
    if (forward->downstream)
        check_there(binding, at(forward, "to.downstream"), "downstreams", forward->downstream, &settings->downstreams,
                    sizeof(struct hfi_downstream_setting));
    if (forward->to_queue && strcmp(forward->to_queue, "default") != 0)
        check_there(binding, at(forward, "to.queue"), "queues", forward->to_queue, &settings->queues,
                    sizeof(struct hfi_queue_setting));
    if (forward->to_type)
        check_there(binding, at(forward, "to.type"), "jobs", forward->to_type, &settings->jobs, sizeof(struct hfi_job_setting));
}

void hfi_config_verify_forwards(struct hfi_config *config, struct hfi_binding *binding) {
    const struct hfi_settings *settings = &config->settings;
    const struct hfi_forward_setting *forwards = settings->forwards.items;
    for (size_t i = 0; i < settings->forwards.count; i++) {
        check(binding, settings, &forwards[i]);
        for (size_t j = 0; j < i; j++)
            if (strcmp(name_of(&forwards[j]), name_of(&forwards[i])) == 0)
                hfi_bind_error(binding, "config.name", at(&forwards[i], "name"), "give each a name",
                               "another forwarder is called `%.100s`", name_of(&forwards[i]));
    }
}

void hfi_config_build_forwards(struct hfi_config *config) {
    const struct hfi_forward_setting *from = config->settings.forwards.items;
    size_t count = config->settings.forwards.count;
    struct hf_forward_options *to = hfi_arena_array(&config->arena, count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++)
        fill(&from[i], &to[i]);
    config->runner.forwards = to;
    config->runner.forward_count = count;
}
