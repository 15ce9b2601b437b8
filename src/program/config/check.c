/* SPDX-License-Identifier: MIT */
/*
 * The proof of the ladder for a whole configuration (2.7): each downstream, each job type with its downstream, the node
 * itself. Findings get the line of the key they speak of. The rules are the library's; this only asks them. Pure.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "holdfast/units.h"
#include "program/config/config.h"
#include "program/config/bind.h"

#define AFTER_DRAIN_MS 6000 /* told handlers end, then children are killed */
static const int64_t default_waits_ms[] = {60000, 300000, 1800000, 7200000}; /* [S0.6] */

struct finder {
    struct hfi_config *config;
    const struct hfi_item *item;
    const struct hfi_item *other; /* of a job: its downstream, for keys that are not the job's */
};

/* The item whose section has the key, so that `breaker.window` of a job's check points into its downstream. NULL: it is
   one of `defaults`. */
static const struct hfi_item *owner(const struct finder *finder, const char *key) {
    char first[64];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(key, "."), key);
    if (!finder->other)
        return finder->item;
    return hfi_key_find("jobs.*", first) ? finder->item : hfi_key_find("downstreams.*", first) ? finder->other : NULL;
}

/* What a downstream does not say may stand in `defaults.downstream`. */
static const struct hfi_node *shared(const struct hfi_config *config, const char *key, const struct hfi_node *otherwise) {
    const struct hfi_node *start = config->settings.downstream.item.node;
    const struct hfi_node *node = start ? hfi_tree_nearest(start, key) : NULL;
    return node && node != start ? node : otherwise;
}

static void report(const struct hf_finding *finding, void *user) {
    const struct finder *finder = user;
    struct hfi_problems *problems = &finder->config->problems;
    const struct hfi_item *item = owner(finder, finding->key);
    const struct hfi_node *section = item ? item->node : hfi_tree_child(finder->config->root, "defaults");
    const struct hfi_node *node = hfi_tree_nearest(section ? section : finder->item->node, finding->key);
    if (item && node == item->node && strcmp(hfi_node_path(&finder->config->arena, item->node->parent), "downstreams") == 0)
        node = shared(finder->config, finding->key, node);
    bool whole = node == section || !section; /* the key is not written down: its default speaks */
    const char *what = hfi_arena_print(&finder->config->arena, "%s.%s",
                                       item ? hfi_node_path(&finder->config->arena, item->node) : "defaults", finding->key);
    if (item != finder->item)
        what = hfi_arena_print(&finder->config->arena, "%s, job %s", what, finder->item->name);
    hfi_problem_add(problems, finding->is_error, hfi_arena_text(&finder->config->arena, finding->rule),
                    whole ? node->key_line : node->line, whole ? node->key_column : node->column, what, finding->fix, "%s",
                    finding->why);
}

static void check_job(struct hfi_config *config, const struct hfi_job_setting *job, struct hfi_type_worst *worst) {
    const struct hfi_downstream_setting *downstream = hfi_config_downstream(config, job->downstream);
    struct finder finder = {config, &job->item, downstream ? &downstream->item : NULL};
    struct hf_curve_options policy;
    struct hf_ladder ladder;
    hf_ladder_init(&ladder);
    hfi_config_policy(config, job, job->queue, &policy);
    bool given = policy.curve_length > 0;
    ladder.curve_ms = given ? policy.curve_ms : default_waits_ms;
    ladder.curve_length = given ? policy.curve_length : sizeof default_waits_ms / sizeof *default_waits_ms;
    ladder.max_executions = policy.max_executions > 0 ? policy.max_executions
                            : given                   ? policy.curve_length + 1
                                                      : HFI_DEFAULT_EXECUTIONS;
    ladder.repeatable = job->repeatable;
    ladder.execution_timeout_ms = job->execution_timeout_ms >= 0 ? job->execution_timeout_ms : config->settings.execution_timeout_ms;
    ladder.max_calls_per_job = config->settings.max_calls_per_job;
    ladder.policy = downstream ? &downstream->policy : NULL;
    ladder.redirects = downstream ? downstream->redirects_max : 0;
    hf_ladder_check(&ladder, report, &finder);
    worst->name = job->item.name;
    worst->queue = job->queue;
    worst->downstream = job->downstream;
    worst->executions = ladder.max_executions;
    worst->attempts = downstream ? (uint32_t)(ladder.worst_calls / (job->repeatable ? ladder.max_executions : 1) /
                                              (ladder.redirects + 1))
                                 : 0;
    worst->calls = ladder.worst_calls;
    worst->to_death_ms = ladder.time_to_death_ms;
}

/* `why` without the key it begins with, when that is where `path`, which is shown before it, ends. */
static const char *behind_key(const char *why, const char *key, const char *path) {
    size_t length = strlen(key), whole = strlen(path);
    bool told = whole > length && path[whole - length - 1] == '.' && strcmp(path + whole - length, key) == 0;
    if (!told || strncmp(why, key, length) != 0 || (why[length] != ':' && why[length] != ' '))
        return why;
    return why + length + (why[length] == ':') + 1;
}

/* What a runner would refuse when it starts, with the place of its cause. */
static void check_options(struct hfi_config *config, const struct hfi_item *item, const char *key,
                          const struct hf_downstream_options *options) {
    struct hf_error error;
    char named[64];
    hf_error_init(&error);
    if (hf_downstream_check(options, &error) == 0)
        return;
    if (!key) { /* the complaint begins with it */
        snprintf(named, sizeof named, "%.*s", (int)strcspn(error.why, ": "), error.why);
        key = named;
    }
    const struct hfi_node *node = hfi_tree_nearest(item->node, key);
    const char *path = hfi_node_path(&config->arena, node);
    hfi_problem_add(&config->problems, true, "config.downstream", node->line, node->column, path,
                    hfi_arena_text(&config->arena, error.fix), "%s%s%s",
                    strcmp(error.what, item->name) == 0 ? "" : error.what,
                    strcmp(error.what, item->name) == 0 ? "" : ": ", behind_key(error.why, key, path));
}

/* One complaint for each cause: the URL, the probe, the headers, then how it is reached, each without the others. */
static void check_downstream(struct hfi_config *config, const struct hfi_downstream_setting *setting,
                             const struct hf_downstream_options *options) {
    struct hf_downstream_options one = hf_downstream_at(options->name, options->url);
    one.per_host = options->per_host;
    one.hosts_max = options->hosts_max;
    check_options(config, &setting->item, "url", &one);
    one = hf_downstream_at(options->name, "http://localhost");
    one.probe_path = options->probe_path;
    check_options(config, &setting->item, "probe.path", &one);
    one = hf_downstream_at(options->name, "http://localhost");
    one.headers = options->headers;
    one.header_count = options->header_count;
    check_options(config, &setting->item, "headers", &one);
    one.header_count = 0;
    one.signing_secrets = options->signing_secrets;
    one.signing_secret_count = options->signing_secret_count;
    check_options(config, &setting->item, "signing.secret", &one);
    one = *options;
    one.per_host = false;
    one.url = options->url && strncasecmp(options->url, "http:", 5) == 0 ? "http://localhost" : "https://localhost";
    one.header_count = 0;
    one.rule_count = one.signing_secret_count = one.fault_count = 0;
    one.probe_path = NULL;
    if (one.proxy && hfi_secret_is_reference(one.proxy)) /* said already */
        one.proxy = NULL;
    check_options(config, &setting->item, NULL, &one);
}

/* Each rule by itself, then all of them together; the place is that of the key the library complains about. */
static void check_rule(struct hfi_config *config, const struct hfi_node *node, const struct hf_rule *rules, size_t count) {
    struct hf_error error;
    hf_error_init(&error);
    if (hf_rules_check(rules, count, &error) == 0)
        return;
    const char *dot = strrchr(error.what, '.');
    node = hfi_tree_nearest(node, dot ? dot + 1 : "");
    hfi_problem_add(&config->problems, true, "config.rule", node->line, node->column, hfi_node_path(&config->arena, node),
                    hfi_arena_text(&config->arena, error.fix), "%s", error.why);
}

static void check_rules(struct hfi_config *config, const struct hfi_item *owner, const struct hfi_items *items,
                        const struct hf_rule *rules) {
    const struct hfi_rule_setting *settings = items->items;
    size_t errors = config->problems.errors;
    for (size_t i = 0; i < items->count; i++)
        check_rule(config, settings[i].item.node, &rules[i], 1);
    if (config->problems.errors == errors)
        check_rule(config, hfi_tree_child(owner->node, "rules"), rules, items->count);
}

/* That they are allowed, and then each by itself; the place is that of the key the library complains about. */
static void check_faults(struct hfi_config *config, const struct hfi_downstream_setting *downstream,
                         const struct hf_downstream_options *options) {
    const struct hfi_fault_setting *settings = downstream->faults.items;
    struct hfi_problems *problems = &config->problems;
    const struct hfi_node *node = hfi_tree_nearest(downstream->item.node, "faults");
    struct hf_error error;
    hf_error_init(&error);
    if (options->fault_count > 0 && !options->policy->allow_fault_injection)
        hfi_problem_add(problems, true, "config.faults", node->line, node->column, hfi_node_path(&config->arena, node),
                        "say allow_fault_injection: true at the top, or take them out", "faults are refused here");
    if (options->fault_count > HF_FAULTS_MAX)
        hfi_problem_add(problems, true, "config.faults", node->line, node->column, hfi_node_path(&config->arena, node),
                        "keep fewer", "%zu are more than %d", options->fault_count, HF_FAULTS_MAX);
    for (size_t i = 0; i < options->fault_count; i++) {
        if (hf_faults_check(&options->faults[i], 1, &error) == 0)
            continue;
        const char *dot = strrchr(error.what, '.');
        node = hfi_tree_nearest(settings[i].item.node, dot ? dot + 1 : "");
        hfi_problem_add(problems, true, "config.faults", node->line, node->column, hfi_node_path(&config->arena, node),
                        hfi_arena_text(&config->arena, error.fix), "%s", error.why);
    }
}

/* What the library refuses about a type, but for its headers and rules, which have their own checks. */
static void check_type(struct hfi_config *config, const struct hfi_item *item, const struct hf_type_options *options) {
    struct hf_type_options bare = *options;
    struct hf_error error;
    hf_error_init(&error);
    bare.header_count = bare.rule_count = 0;
    if (config->problems.errors > 0 || hf_type_check(&bare, &error) == 0)
        return;
    const struct hfi_node *node = options->library ? hfi_tree_nearest(item->node, "library") : item->node;
    if (node == item->node)
        hfi_problem_add(&config->problems, true, "config.job", node->key_line, node->key_column,
                        hfi_node_path(&config->arena, node), hfi_arena_text(&config->arena, error.fix), "%s", error.why);
    else
        hfi_problem_add(&config->problems, true, "config.plugin", node->line, node->column,
                        hfi_node_path(&config->arena, node), hfi_arena_text(&config->arena, error.fix), "%s", error.why);
}

static void check_downstreams(struct hfi_config *config) {
    const struct hfi_downstream_setting *downstreams = config->settings.downstreams.items;
    const struct hfi_job_setting *jobs = config->settings.jobs.items;
    for (size_t i = 0; i < config->settings.downstreams.count; i++) {
        const struct hf_downstream_options *options = &config->runner.downstreams[i];
        size_t before = config->problems.errors;
        check_downstream(config, &downstreams[i], options);
        check_faults(config, &downstreams[i], options);
        check_rules(config, &downstreams[i].item, &downstreams[i].rules, options->rules);
        if (config->problems.errors == before) /* what is wrong only with both */
            check_options(config, &downstreams[i].item, "url", options);
    }
    for (size_t i = 0; i < config->settings.jobs.count; i++) {
        check_type(config, &jobs[i].item, &config->runner.types[i]);
        struct hf_downstream_options options = hf_downstream_at(jobs[i].item.name, "http://localhost");
        options.headers = jobs[i].headers.items;
        options.header_count = jobs[i].headers.count;
        check_options(config, &jobs[i].item, "headers", &options);
        check_rules(config, &jobs[i].item, &jobs[i].rules, config->runner.types[i].rules);
    }
}

/* The library's own rules, so that a runner does not refuse what was found good here. */
static void check_limits(struct hfi_config *config) {
    const struct hfi_limit_setting *limits = config->settings.limits.items;
    struct hf_error error;
    for (size_t i = 0; i < config->settings.limits.count; i++) {
        hf_error_init(&error);
        if (hf_limit_check(&config->runner.limits[i], &error) == 0)
            continue;
        const struct hfi_node *node = limits[i].item.node;
        hfi_problem_add(&config->problems, true, "config.limit", node->key_line, node->key_column,
                        hfi_node_path(&config->arena, node), hfi_arena_text(&config->arena, error.fix), "%s", error.why);
    }
}

/* A bound of the whole store below what one node reserves leaves some of its slots idle for ever. */
static void check_queues(struct hfi_config *config) {
    const struct hfi_queue_setting *queues = config->settings.queues.items;
    for (size_t i = 0; i < config->settings.queues.count; i++) {
        const struct hfi_node *node = hfi_tree_nearest(queues[i].item.node, "global_concurrency");
        if (queues[i].global_concurrency > 0 && queues[i].concurrency > queues[i].global_concurrency)
            hfi_problem_add(&config->problems, false, "queue.concurrency", node->line, node->column,
                            hfi_node_path(&config->arena, node), "lower concurrency, or raise global_concurrency",
                            "a node reserves %u slots, but %u jobs run at once in the whole store", queues[i].concurrency,
                            queues[i].global_concurrency);
    }
}

static void node_problem(struct hfi_config *config, bool is_error, const char *rule, const char *path, const char *fix,
                         const char *why) {
    const struct hfi_node *node = hfi_tree_nearest(config->root, path);
    hfi_problem_add(&config->problems, is_error, rule, node->line, node->column, path, fix, "%s", why);
}

/* The supervisor must not kill in the middle of a drain: jobs would be left to their leases [S3.4]. */
static void check_drain(struct hfi_config *config) {
    const struct hfi_settings *settings = &config->settings;
    char drain[HF_DURATION_LENGTH], kill[HF_DURATION_LENGTH], need[HF_DURATION_LENGTH];
    hf_duration_print(settings->drain_timeout_ms, drain);
    hf_duration_print(settings->kill_timeout_ms, kill);
    hf_duration_print(settings->drain_timeout_ms + AFTER_DRAIN_MS, need);
    if (settings->kill_timeout_ms <= 0)
        return;
    if (settings->drain_timeout_ms >= settings->kill_timeout_ms)
        node_problem(config, true, "node.drain", "node.drain_timeout", "lower drain_timeout, or raise the supervisor's limit",
                     hfi_arena_print(&config->arena, "a drain of %s, but the supervisor kills after %s", drain, kill));
    else if (settings->drain_timeout_ms + AFTER_DRAIN_MS > settings->kill_timeout_ms)
        node_problem(config, false, "node.drain", "node.drain_timeout", "lower drain_timeout, or raise the supervisor's limit",
                     hfi_arena_print(&config->arena,
                                     "a drain of %s and the 6s that told handlers have make %s, but the supervisor kills after %s",
                                     drain, need, kill));
}

static void check_node(struct hfi_config *config) {
    const struct hfi_settings *settings = &config->settings;
    char lease[HF_DURATION_LENGTH], beat[HF_DURATION_LENGTH], three[HF_DURATION_LENGTH];
    hf_duration_print(settings->lease_ms, lease);
    hf_duration_print(settings->heartbeat_ms, beat);
    hf_duration_print(3 * settings->heartbeat_ms, three);
    if (settings->lease_ms < 3 * settings->heartbeat_ms)
        node_problem(config, true, "node.lease", hfi_tree_child(hfi_tree_child(config->root, "node"), "lease") ? "node.lease" : "node.heartbeat",
                   hfi_arena_print(&config->arena, "raise lease to %s, or lower heartbeat", three),
                   hfi_arena_print(&config->arena, "lease %s < 3 x heartbeat %s = %s: two late beats would lose every job", lease,
                                   beat, three));
    check_drain(config);
}

size_t hfi_config_check(struct hfi_config *config, struct hfi_check *check) {
    struct hfi_downstream_setting *downstreams = config->settings.downstreams.items;
    const struct hfi_job_setting *jobs = config->settings.jobs.items;
    check->downstream_count = config->settings.downstreams.count;
    check->downstreams = hfi_arena_array(&config->arena, check->downstream_count + 1, sizeof *check->downstreams);
    for (size_t i = 0; i < check->downstream_count; i++) {
        struct finder finder = {config, &downstreams[i].item, NULL};
        struct hfi_downstream_worst *worst = &check->downstreams[i];
        hf_policy_check(&downstreams[i].policy, report, &finder);
        worst->name = downstreams[i].item.name;
        worst->policy = &downstreams[i].policy;
        hf_policy_figures_init(&worst->figures);
        hf_policy_figures(worst->policy, &worst->figures);
    }
    check_downstreams(config);
    check->count = config->settings.jobs.count;
    check->types = hfi_arena_array(&config->arena, check->count + 1, sizeof *check->types);
    for (size_t i = 0; i < check->count; i++)
        check_job(config, &jobs[i], &check->types[i]);
    check_limits(config);
    check_queues(config);
    check_node(config);
    return config->problems.errors;
}
