/* SPDX-License-Identifier: MIT */
/*
 * SIGHUP of `holdfast run`: reads the configuration again, proves it whole, and hands to the node what it can change. Must
 * never change anything when the file has an error, nor keep quiet about a change that needs a restart. Its own thread.
 */
#include "program/commands/reload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "holdfast/log.h"
#include "program/notify.h"
#include "program/output.h"

static void say(enum hf_log_level level, const char *event, json_t *fields) {
    char *text = json_dumps(fields, JSON_COMPACT | JSON_ENSURE_ASCII);
    hf_log_write(level, event, text ? text : "{}");
    free(text);
    json_decref(fields);
}

static void refused(const char *file, const struct hf_error *error) {
    json_t *fields = json_object();
    hfi_json_text(fields, "file", file ? file : "");
    if (error->line > 0)
        hfi_json_number(fields, "line", error->line);
    hfi_json_text(fields, "what", error->what);
    hfi_json_text(fields, "why", error->why);
    hfi_json_text(fields, "fix", error->fix);
    say(HF_LOG_ERROR, "config.reload_refused", fields);
}

/* One line for each error: that is what has to be mended. */
static void refuse_problems(const struct hfi_config *config) {
    struct hf_error error;
    for (const struct hfi_problem *problem = config->problems.first; problem; problem = problem->next) {
        if (!problem->is_error)
            continue;
        hfi_problem_error(&config->problems, problem, &error);
        refused(config->file, &error);
    }
}

static bool same(const struct hfi_node *a, const struct hfi_node *b) {
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || strcmp(a->text ? a->text : "", b->text ? b->text : "") != 0 ||
        strcmp(a->key ? a->key : "", b->key ? b->key : "") != 0)
        return false;
    const struct hfi_node *left = a->children, *right = b->children;
    for (; left && right; left = left->next, right = right->next)
        if (!same(left, right))
            return false;
    return !left && !right;
}

static bool one_of(const char *key, const char *const *keys) {
    for (; *keys; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

/* What a running node takes over: whole sections, or these keys of `node`. */
static const char *const sections[] = {"downstreams", "queues", "jobs", "limits", "defaults", "retention", "forward", "allow_fault_injection", NULL};
static const char *const node_keys[] = {"drain_timeout", "kill_timeout", "poll", "unknown_type_grace", "max_give_backs",
                                        "max_crashes", "abandon_after", "max_abandoned", NULL};

/* Has it a key that the other one lacks or has otherwise, of those that are not taken over? Both may be NULL. */
static bool node_differs(const struct hfi_node *one, const struct hfi_node *other) {
    for (const struct hfi_node *child = one ? one->children : NULL; child; child = child->next)
        if (!one_of(child->key, node_keys) && !same(child, other ? hfi_tree_child(other, child->key) : NULL))
            return true;
    return false;
}

static bool differs(const char *section, const struct hfi_node *one, const struct hfi_node *other) {
    if (one_of(section, sections))
        return false;
    if (strcmp(section, "node") == 0)
        return node_differs(one, other) || node_differs(other, one);
    return !same(one, other);
}

/* The sections of which the node takes up all only at its next start. */
static json_t *need_restart(const struct hfi_node *before, const struct hfi_node *after) {
    json_t *names = json_array();
    for (const struct hfi_node *node = before->children; node; node = node->next)
        if (differs(node->key, node, hfi_tree_child(after, node->key)))
            json_array_append_new(names, json_string(node->key));
    for (const struct hfi_node *node = after->children; node; node = node->next)
        if (!hfi_tree_child(before, node->key) && differs(node->key, NULL, node))
            json_array_append_new(names, json_string(node->key));
    return names;
}

static void apply(const struct hfi_reload *reload, const struct hfi_config *config) {
    struct hf_error error;
    hf_error_init(&error);
    if (hf_runner_tune(reload->runner, &config->runner, &error) != 0) {
        refused(config->file, &error);
        return;
    }
    json_t *fields = json_object(), *names = need_restart(reload->config->root, config->root);
    bool all = json_array_size(names) == 0;
    hfi_json_text(fields, "file", config->file ? config->file : "");
    hfi_json_number(fields, "downstreams", (int64_t)config->runner.downstream_count);
    hfi_json_number(fields, "jobs", (int64_t)config->runner.type_count);
    json_object_set_new(fields, "needs_restart", names);
    say(all ? HF_LOG_INFO : HF_LOG_WARNING, "config.reloaded", fields);
}

/* A pipe was read at the start and is empty now; opening it would wait for a writer, and the end of the node with it. An
   empty file is one that somebody is about to write, or a disk that was full: nobody means all the defaults by it. */
static bool can_be_read_again(const char *path) {
    struct hf_error error;
    struct stat status;
    if (!path || stat(path, &status) != 0 || (S_ISREG(status.st_mode) && status.st_size > 0))
        return true; /* if it is not there, loading says so */
    hf_error_init(&error);
    snprintf(error.what, sizeof error.what, "configuration");
    if (S_ISREG(status.st_mode)) {
        snprintf(error.why, sizeof error.why, "the file is empty");
        snprintf(error.fix, sizeof error.fix, "write it whole, or restart the node to run by the defaults");
    } else {
        snprintf(error.why, sizeof error.why, "it is no regular file and cannot be read again");
        snprintf(error.fix, sizeof error.fix, "keep it in a regular file, or restart the node");
    }
    refused(path, &error);
    return false;
}

static void reload_once(const struct hfi_reload *reload) {
    struct hfi_config config;
    struct hfi_check check;
    if (!can_be_read_again(reload->path))
        return;
    /* Errors of the store's URL count too: the file has to be one that `holdfast run` would start with. */
    if (hfi_config_load(&config, reload->path, HFI_CONFIG_SECRETS | HFI_CONFIG_STORE) == 0)
        hfi_config_check(&config, &check);
    if (config.problems.errors > 0)
        refuse_problems(&config);
    else
        apply(reload, &config);
    hfi_config_free(&config);
}

static void *wait_for_signals(void *user) {
    struct hfi_reload *reload = user;
    sigset_t wanted;
    int number;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGHUP);
    while (sigwait(&wanted, &number) == 0 && !atomic_load(&reload->over)) {
        hfi_notify("RELOADING=1");
        reload_once(reload);
        hfi_notify("READY=1");
    }
    return NULL;
}

void hfi_reload_start(struct hfi_reload *reload, struct hf_runner *runner, const struct hfi_config *config, const char *path) {
    sigset_t all, before;
    /* The file of the start, never another one: that it is gone must not pass for an empty configuration. */
    *reload = (struct hfi_reload){.runner = runner, .config = config, .path = path ? path : config->file};
    sigfillset(&all); /* SIGTERM and SIGINT are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    reload->started = pthread_create(&reload->thread, NULL, wait_for_signals, reload) == 0;
    sigaddset(&before, SIGHUP);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!reload->started)
        say(HF_LOG_WARNING, "config.no_reload", json_pack("{s:s}", "why", "no thread could be started: SIGHUP does nothing"));
}

void hfi_reload_end(struct hfi_reload *reload) {
    if (!reload->started)
        return;
    atomic_store(&reload->over, true);
    pthread_kill(reload->thread, SIGHUP);
    pthread_join(reload->thread, NULL);
}
