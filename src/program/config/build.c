/* SPDX-License-Identifier: MIT */
/*
 * Makes the library's options of the settings. Everything they point to lives as long as the configuration. Decides
 * nothing: a setting that means "not given" stays so. Pure.
 */
#include <string.h>

#include "program/config/bind.h"
#include "program/config/config.h"
#include "program/config/tree.h"

static void build_policy(struct hfi_downstream_setting *from) {
    struct hf_policy_options *policy = &from->policy;
    policy->retry_backoff = (enum hf_backoff)from->backoff;
    policy->retry_jitter = (enum hf_jitter)from->jitter;
    policy->gate_scope = from->gate_scope == 0 ? HF_GATE_DOWNSTREAM : HF_GATE_CALL;
    policy->breaker_429_failure = from->breaker_429 == 1;
    policy->latency = from->latency == 0 ? HF_LATENCY_EXACT : HF_LATENCY_COARSE;
    policy->on_open = from->on_open == 0 ? HF_ON_OPEN_PARK : HF_ON_OPEN_FAIL;
    policy->hedge_p95 = from->hedge_delay < 0;
    if (!policy->hedge_p95)
        policy->hedge_delay_ms = from->hedge_delay; /* else the default, until there is a p95 */
    if (from->retry_table.count > 0) {
        policy->retry_backoff = HF_BACKOFF_TABLE;
        policy->retry_table_length = (uint32_t)from->retry_table.count;
        memcpy(policy->retry_table_ms, from->retry_table.items, from->retry_table.count * sizeof(int64_t));
    }
}

/* The choices of the schema stand in the order of the enums. */
static const struct hf_rule *build_rules(struct hfi_config *config, const struct hfi_items *items) {
    const struct hfi_rule_setting *from = items->items;
    struct hf_rule *to = hfi_arena_array(&config->arena, items->count + 1, sizeof *to);
    for (size_t i = 0; i < items->count; i++) {
        hf_rule_init(&to[i]);
        to[i].name = from[i].name;
        to[i].method = from[i].method;
        to[i].status_min = from[i].status.low;
        to[i].status_max = from[i].status.high;
        to[i].error_type = from[i].error_type;
        to[i].header = from[i].header_name;
        to[i].header_value = from[i].header_value;
        to[i].body = from[i].body;
        to[i].body_within = from[i].body_within;
        to[i].decides = (from[i].klass >= 0 ? HF_RULE_CLASS : 0u) | (from[i].retry >= 0 ? HF_RULE_RETRY : 0u) |
                        (from[i].breaker >= 0 ? HF_RULE_BREAKER : 0u);
        to[i].klass = from[i].klass >= 0 ? (enum hf_class)from[i].klass : HF_CLASS_TRANSIENT;
        to[i].retry = from[i].retry >= 0 ? (enum hf_retry)from[i].retry : HF_RETRY_NONE;
        to[i].verdict = from[i].breaker >= 0 ? (enum hf_verdict)from[i].breaker : HF_VERDICT_NEUTRAL;
    }
    return to;
}

static const struct hf_fault *build_faults(struct hfi_config *config, const struct hfi_items *items) {
    const struct hfi_fault_setting *from = items->items;
    struct hf_fault *to = hfi_arena_array(&config->arena, items->count + 1, sizeof *to);
    for (size_t i = 0; i < items->count; i++) {
        hf_fault_init(&to[i], (enum hf_fault_kind)from[i].kind);
        to[i].status = (int)from[i].status;
        to[i].share = from[i].share;
        to[i].delay_ms = from[i].delay_ms;
        to[i].every_ms = from[i].every_ms;
        to[i].for_ms = from[i].for_ms;
    }
    return to;
}

static const char *beside(struct hfi_config *config, const char *path) {
    return hfi_beside(&config->arena, config->problems.file, path);
}

static void build_reach(struct hfi_config *config, const struct hfi_downstream_setting *from,
                        struct hf_downstream_options *to) {
    to->ca_file = beside(config, from->ca_file);
    to->client_cert = beside(config, from->client_cert);
    to->client_key = beside(config, from->client_key);
    to->tls_min = from->tls_min == 0 ? HF_TLS_1_2 : HF_TLS_1_3;
    to->http2 = from->http2;
    to->proxy = from->proxy;
    to->redirects_max = from->redirects_max;
    to->redirects_other_hosts = from->redirects_other_hosts;
}

static void build_downstreams(struct hfi_config *config) {
    struct hfi_downstream_setting *from = config->settings.downstreams.items;
    size_t count = config->settings.downstreams.count;
    struct hf_downstream_options *to = hfi_arena_array(&config->arena, count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        build_policy(&from[i]);
        hf_downstream_options_init(&to[i]);
        to[i].name = from[i].item.name;
        to[i].url = from[i].url;
        to[i].per_host = from[i].per_host;
        to[i].hosts_max = from[i].hosts_max;
        to[i].headers = from[i].headers.items;
        to[i].header_count = from[i].headers.count;
        build_reach(config, &from[i], &to[i]);
        to[i].response_limit = from[i].response_limit;
        to[i].header_limit = from[i].header_limit;
        to[i].accept_compressed = from[i].accept_compressed;
        to[i].deny_private_networks = from[i].private_networks == 1;
        to[i].signing_secrets = from[i].signing_secrets.items;
        to[i].signing_secret_count = from[i].signing_secrets.count;
        to[i].send_remaining_time = from[i].send_remaining_time;
        to[i].send_attempt = from[i].send_attempt;
        to[i].probe_path = from[i].probe_path;
        to[i].policy = &from[i].policy;
        to[i].rules = build_rules(config, &from[i].rules);
        to[i].rule_count = from[i].rules.count;
        from[i].policy.allow_fault_injection = config->settings.allow_fault_injection;
        to[i].faults = build_faults(config, &from[i].faults);
        to[i].fault_count = from[i].faults.count;
    }
    config->runner.downstreams = to;
    config->runner.downstream_count = count;
}

static const struct hf_curve_options *curve_of(const struct hfi_curve_setting *setting) {
    return setting->given || setting->executions > 0 ? &setting->options : NULL;
}

static void build_queues(struct hfi_config *config) {
    const struct hfi_queue_setting *from = config->settings.queues.items;
    size_t count = config->settings.queues.count;
    struct hf_queue_options *to = hfi_arena_array(&config->arena, count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        hf_queue_options_init(&to[i]);
        to[i].name = from[i].item.name;
        to[i].order = from[i].order;
        to[i].weight = from[i].weight;
        to[i].concurrency = from[i].concurrency;
        to[i].global_concurrency = from[i].global_concurrency;
        to[i].aging_ms = from[i].aging_ms;
        to[i].curve = curve_of(&from[i].curve);
    }
    config->runner.queue_options = to;
    config->runner.queue_count = count;
}

static void build_limits(struct hfi_config *config) {
    const struct hfi_limit_setting *from = config->settings.limits.items;
    size_t count = config->settings.limits.count;
    struct hf_limit_options *to = hfi_arena_array(&config->arena, count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        hf_limit_options_init(&to[i]);
        to[i].name = from[i].item.name;
        to[i].concurrency = from[i].concurrency;
        to[i].rate_per_s = from[i].rate;
        to[i].rate_burst = from[i].burst;
    }
    config->runner.limits = to;
    config->runner.limit_count = count;
}

/* The process of an isolated plugin is this program once more: main.c. */
static void build_handler(struct hfi_config *config, const struct hfi_job_setting *from, struct hf_type_options *to) {
    to->library = from->library;
    to->max_memory = from->max_memory;
    to->max_cpu_ms = from->max_cpu_ms;
    to->max_files = from->max_files;
    to->max_processes = from->max_processes;
    if (from->isolate == 0)
        return;
    const char **command = hfi_arena_array(&config->arena, 3, sizeof *command);
    command[0] = "/proc/self/exe";
    command[1] = HFI_ISOLATED_PLUGIN;
    command[2] = from->library ? from->library : "";
    to->isolate = HF_ISOLATE_PROCESS;
    to->command = command;
    to->command_length = 3;
}

static void build_type(struct hfi_config *config, const struct hfi_job_setting *from, struct hf_type_options *to) {
    static const enum hf_kind kinds[] = {HF_KIND_HTTP, HF_KIND_EXEC, HF_KIND_NOOP, HF_KIND_PLUGIN};
    static const enum hf_payload payloads[] = {HF_PAYLOAD_BYTES, HF_PAYLOAD_TEXT, HF_PAYLOAD_JSON};
    hf_type_options_init(to);
    to->kind = kinds[from->kind];
    to->name = from->item.name;
    to->queue = from->queue;
    to->repeatable = from->repeatable;
    to->no_idempotency_key = !from->send_key;
    to->execution_timeout_ms = from->execution_timeout_ms;
    to->curve = curve_of(&from->curve);
    to->never_retry = from->never_retry.items;
    to->never_retry_count = from->never_retry.count;
    to->downstream = from->downstream;
    to->method = from->method;
    to->path = from->path;
    to->query = from->query;
    to->headers = from->headers.items;
    to->header_count = from->headers.count;
    to->rules = build_rules(config, &from->rules);
    to->rule_count = from->rules.count;
    to->command = from->command.items;
    to->command_length = from->command.count;
    to->environment = from->environment.items;
    to->environment_length = from->environment.count;
    to->directory = from->directory;
    to->kill_grace_ms = from->kill_grace_ms;
    to->heartbeat_timeout_ms = from->heartbeat_timeout_ms;
    to->abandon_after_ms = from->abandon_after_ms;
    to->payload = payloads[from->payload];
    to->labels = from->labels;
    to->schema = from->schema;
    to->release_quarantined = from->release_quarantined;
    to->url = from->url;
    to->body_field = from->body_field;
    build_handler(config, from, to);
}

static void build_types(struct hfi_config *config) {
    const struct hfi_job_setting *from = config->settings.jobs.items;
    size_t count = config->settings.jobs.count;
    struct hf_type_options *to = hfi_arena_array(&config->arena, count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++)
        build_type(config, &from[i], &to[i]);
    config->runner.types = to;
    config->runner.type_count = count;
}

void hfi_config_sink(const struct hfi_alert_setting *from, struct hf_sink_options *to) {
    hf_sink_options_init(to);
    to->name = from->item.name;
    to->collapse_ms = from->collapse_ms;
    if (from->server || from->from || from->to.count > 0) {
        to->kind = HF_SINK_MAIL;
        to->timeout_ms = from->mail_timeout_ms;
        to->text = from->mail_text;
    } else if (from->command.count > 0) {
        to->kind = HF_SINK_COMMAND;
        to->timeout_ms = from->command_timeout_ms;
    } else {
        to->timeout_ms = from->webhook_timeout_ms;
        to->text = from->webhook_text;
    }
    to->url = from->url;
    to->signing_secrets = from->signing_secrets.items;
    to->signing_secret_count = from->signing_secrets.count;
    to->deny_private_networks = from->private_networks == 1;
    to->server = from->server;
    to->from = from->from;
    to->to = from->to.items;
    to->to_count = from->to.count;
    to->user = from->user;
    to->password = from->password;
    to->subject = from->subject;
    to->ca_file = from->ca_file;
    to->tls = from->mail_tls;
    to->command = from->command.items;
    to->command_length = from->command.count;
    to->detail = from->detail;
}

static void build_sinks(struct hfi_config *config) {
    const struct hfi_alert_setting *from = config->settings.alerts.items;
    size_t count = config->settings.alerts.count;
    struct hf_sink_options *to = hfi_arena_array(&config->arena, count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        hfi_config_sink(&from[i], &to[i]);
        to[i].ca_file = from[i].ca_file ? beside(config, from[i].ca_file) : NULL;
    }
    config->runner.sinks = to;
    config->runner.sink_count = count;
}

static void build_outboxes(struct hfi_config *config) {
    const struct hfi_outbox_setting *from = config->settings.outboxes.items;
    size_t count = config->settings.outboxes.count;
    struct hf_outbox_options *to = hfi_arena_array(&config->arena, count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        bool url = from[i].file && strncmp(from[i].file, "sqlite:", 7) == 0;
        hf_outbox_options_init(&to[i]);
        to[i].name = from[i].item.name;
        to[i].file = beside(config, url ? from[i].file + 7 : from[i].file);
        to[i].source = from[i].source;
        to[i].poll_ms = from[i].poll_ms;
    }
    config->runner.outboxes = to;
    config->runner.outbox_count = count;
}

static void build_node(struct hfi_config *config) {
    const struct hfi_settings *from = &config->settings;
    struct hf_runner_options *to = &config->runner;
    if (from->workers > 0)
        to->workers = from->workers;
    if (from->node)
        to->node = from->node;
    to->drain_timeout_ms = from->drain_timeout_ms;
    to->lease_ms = from->lease_ms;
    to->heartbeat_ms = from->heartbeat_ms;
    to->poll_ms = from->poll_ms;
    to->execution_timeout_ms = from->execution_timeout_ms;
    to->watchdog_ms = from->watchdog_ms;
    to->watchdog_grace_ms = from->watchdog_grace_ms;
    to->unknown_type_grace_ms = from->unknown_type_grace_ms;
    to->prefetch = from->prefetch;
    to->max_give_backs = from->max_give_backs;
    to->max_crashes = from->max_crashes;
    to->abandon_after_ms = from->abandon_after_ms;
    to->max_abandoned = from->max_abandoned;
    to->max_calls_per_job = from->max_calls_per_job;
    to->never_retry = from->never_retry.items;
    to->never_retry_count = from->never_retry.count;
    to->curve = curve_of(&from->curve);
    to->keep_succeeded_ms = from->keep_succeeded_ms;
    to->keep_cancelled_ms = from->keep_cancelled_ms;
    to->keep_dead_ms = from->keep_dead_ms;
    to->keep_quarantined_ms = from->keep_quarantined_ms;
    to->keep_dead_letters_ms = from->keep_dead_letters_ms;
    to->keep_inbox_ms = from->keep_inbox_ms;
    to->keep_audit_ms = from->keep_audit_ms;
}

void hfi_config_build(struct hfi_config *config) {
    hf_runner_options_init(&config->runner);
    hf_store_options_init(&config->store_options);
    config->store = config->settings.store;
    config->store_options.payload_max = (uint32_t)config->settings.payload_limit;
    config->store_options.normal_sync = config->settings.sync == 1;
    config->store_options.no_error_detail = !config->settings.error_detail;
    build_node(config);
    build_downstreams(config);
    build_queues(config);
    build_limits(config);
    build_types(config);
    build_sinks(config);
    build_outboxes(config);
    hfi_config_build_forwards(config);
}
