/* SPDX-License-Identifier: MIT */
/*
 * Finds and reads the configuration: file, tree, settings, cross checks, options. Must never fall back to defaults when
 * a file was named. The main thread's.
 */
#include "program/config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/config/bind.h"
#include "program/nearest.h"
#include "program/output.h"

#define FILE_MAX 1048576

static void start(struct hfi_config *config, const char *file) {
    memset(config, 0, sizeof *config);
    config->file = file ? hfi_arena_text(&config->arena, file) : NULL;
    config->problems.arena = &config->arena;
    config->problems.file = config->file ? config->file : "";
}

/* Settings from the tree of `text`; no text gives all defaults. */
static int finish(struct hfi_config *config, const char *text, size_t length, unsigned flags) {
    struct hfi_binding binding = {.arena = &config->arena,
                                  .problems = &config->problems,
                                  .secrets = flags & HFI_CONFIG_SECRETS,
                                  .store = flags & HFI_CONFIG_STORE};
    config->root = hfi_tree_read(&config->arena, text, length, &config->problems);
    if (!config->root)
        return HF_ECONFIG;
    hfi_bind(&binding, config->root, &config->settings);
    hfi_config_verify(config, &binding);
    if (config->problems.errors > 0)
        return HF_ECONFIG;
    hfi_config_build(config);
    return 0;
}

int hfi_config_read(struct hfi_config *config, const char *file, const char *text, size_t length, unsigned flags) {
    start(config, file);
    return finish(config, text, length, flags);
}

static int unreadable(struct hfi_config *config, const char *why, const char *fix) {
    hfi_problem_add(&config->problems, true, "config.file", 0, 0, "configuration", fix, "%s", why);
    return HF_ECONFIG;
}

/* The whole file into the arena; NULL after a problem. */
static char *read_file(struct hfi_config *config, size_t *length) {
    char *text = NULL;
    FILE *file = fopen(config->file, "re");
    if (!file) {
        unreadable(config, strerror(errno), "check the path of --config or $HOLDFAST_CONFIG");
        return NULL;
    }
    text = hfi_arena_alloc(&config->arena, FILE_MAX + 1);
    *length = fread(text, 1, FILE_MAX + 1, file);
    if (ferror(file))
        unreadable(config, strerror(errno), "name a readable file");
    else if (*length > FILE_MAX)
        unreadable(config, "it is larger than 1 MiB", "name a configuration");
    fclose(file);
    return config->problems.errors > 0 ? NULL : text;
}

int hfi_config_load(struct hfi_config *config, const char *path, unsigned flags) {
    const char *named = getenv("HOLDFAST_CONFIG");
    size_t length = 0;
    if (!path) {
        FILE *here = fopen("holdfast.yaml", "re");
        path = here || errno != ENOENT ? "holdfast.yaml" : named && *named ? named : NULL;
        if (here)
            fclose(here);
    }
    start(config, path);
    if (!path)
        return finish(config, "", 0, flags);
    char *text = read_file(config, &length);
    return text ? finish(config, text, length, flags) : HF_ECONFIG;
}

void hfi_config_free(struct hfi_config *config) {
    hfi_arena_free(&config->arena);
}

int hfi_config_complain(const struct hfi_config *config) {
    struct hf_error error;
    for (const struct hfi_problem *problem = config->problems.first; problem; problem = problem->next)
        if (problem->is_error) {
            hfi_problem_error(&config->problems, problem, &error);
            hfi_complain(&error);
        }
    return HFI_EXIT_USAGE;
}

const void *hfi_items_find(const struct hfi_items *items, size_t size, const char *name, struct hfi_nearest *nearest) {
    const char *at = items->items;
    if (nearest)
        hfi_nearest_init(nearest, name);
    for (size_t i = 0; name && i < items->count; i++, at += size) {
        const struct hfi_item *item = (const void *)at;
        if (strcmp(item->name, name) == 0)
            return at;
        if (nearest)
            hfi_nearest_offer(nearest, item->name);
    }
    return NULL;
}

const struct hfi_downstream_setting *hfi_config_downstream(const struct hfi_config *config, const char *name) {
    return hfi_items_find(&config->settings.downstreams, sizeof(struct hfi_downstream_setting), name, NULL);
}

const struct hfi_queue_setting *hfi_config_queue(const struct hfi_config *config, const char *name) {
    return hfi_items_find(&config->settings.queues, sizeof(struct hfi_queue_setting), name, NULL);
}

const struct hfi_job_setting *hfi_config_job(const struct hfi_config *config, const char *name) {
    return hfi_items_find(&config->settings.jobs, sizeof(struct hfi_job_setting), name, NULL);
}

const struct hfi_limit_setting *hfi_config_limit(const struct hfi_config *config, const char *name) {
    return hfi_items_find(&config->settings.limits, sizeof(struct hfi_limit_setting), name, NULL);
}

/* One level of precedence under the closer ones that are in `policy` already. */
static void add_level(const struct hfi_curve_setting *level, struct hf_curve_options *policy) {
    if (policy->curve_length > 0) { /* a closer curve replaces the whole policy, but a formula has no number of executions */
        const struct hf_curve_options *behind = &level->options;
        if (policy->formula && policy->max_executions == 0)
            policy->max_executions = behind->max_executions > 0                     ? behind->max_executions
                                     : behind->curve_length > 0 && !behind->formula ? behind->curve_length + 1
                                                                                    : 0;
        return;
    }
    uint32_t executions = policy->max_executions;
    if (level->given || executions == 0)
        *policy = level->options;
    if (executions > 0)
        policy->max_executions = executions;
}

void hfi_config_policy(const struct hfi_config *config, const struct hfi_job_setting *job, const char *queue,
                       struct hf_curve_options *policy) {
    const struct hfi_queue_setting *of_queue = hfi_config_queue(config, queue);
    hf_curve_options_init(policy);
    if (job)
        add_level(&job->curve, policy);
    if (of_queue)
        add_level(&of_queue->curve, policy);
    add_level(&config->settings.curve, policy);
    if (policy->formula && policy->max_executions == 0)
        policy->max_executions = HFI_DEFAULT_EXECUTIONS;
}
