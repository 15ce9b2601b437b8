/* SPDX-License-Identifier: MIT */
#ifndef HFI_CONFIG_SETTINGS_H
#define HFI_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/http.h"
#include "holdfast/policy.h"
#include "holdfast/runner.h"
#include "holdfast/store.h"
#include "program/config/tree.h"

#define HFI_ISOLATED_PLUGIN "--isolated-plugin" /* LIBRARY: how `run` starts itself for an isolated execution */

/* What the keys of the schema are written into; build.c makes the library's options of it. */
struct hfi_texts {
    const char *const *items;
    size_t count;
};
struct hfi_waits {
    const int64_t *items;
    size_t count;
};
struct hfi_headers {
    const struct hf_header *items;
    size_t count;
};
/* One status has low = high; 0, 0: not given. */
struct hfi_statuses {
    int32_t low, high;
};
/* The keys `curve`, `max_executions` and `retries` of one level; nothing given: the next level decides. */
struct hfi_curve_setting {
    struct hf_curve_options options;
    bool given;          /* `curve` */
    uint32_t executions; /* `max_executions`, 0 = not given */
    int32_t retries;     /* -1 = not given; executions = retries + 1 (C7) */
};
/* A curve written as a map. */
struct hfi_curve_form {
    int64_t base_ms, cap_ms, plus_ms;
    double factor, jitter;
    uint32_t power;
};

/* The start of every item: its name in the file (NULL in a list) and its node. */
struct hfi_item {
    const char *name;
    const struct hfi_node *node;
};
struct hfi_items {
    void *items; /* array of structs that begin with struct hfi_item */
    size_t count;
};

/* One of a list of own rules; -1: not given. */
struct hfi_rule_setting {
    struct hfi_item item;
    const char *name, *method, *error_type, *header_name, *header_value, *body;
    struct hfi_statuses status;
    uint32_t body_within;
    int klass, retry, breaker;
};
/* One of a list of injected faults. */
struct hfi_fault_setting {
    struct hfi_item item;
    int kind; /* the enum's order */
    uint32_t status;
    double share;
    int64_t delay_ms, every_ms, for_ms;
};
struct hfi_downstream_setting {
    struct hfi_item item;
    struct hf_policy_options policy;
    int latency;
    const char *url, *ca_file, *client_cert, *client_key, *proxy, *probe_path;
    struct hfi_headers headers;
    struct hfi_waits retry_table;
    struct hfi_items rules, faults;
    struct hfi_texts signing_secrets;
    int64_t response_limit, header_limit, hedge_delay; /* hedge_delay: -1 = p95 */
    int backoff, jitter, breaker_429, gate_scope, on_open, private_networks, tls_min;
    uint32_t hosts_max, redirects_max;
    bool send_remaining_time, send_attempt, accept_compressed, per_host, http2, redirects_other_hosts;
};
struct hfi_queue_setting {
    struct hfi_item item;
    int32_t order;
    uint32_t weight, concurrency, global_concurrency;
    int64_t aging_ms;
    struct hfi_curve_setting curve;
};
struct hfi_limit_setting {
    struct hfi_item item;
    uint32_t concurrency, burst;
    double rate;
};
enum hfi_job_kind { HFI_JOB_HTTP, HFI_JOB_EXEC, HFI_JOB_NOOP, HFI_JOB_PLUGIN };
struct hfi_job_setting {
    struct hfi_item item;
    int kind;
    const char *queue, *downstream, *method, *path, *query, *directory, *labels, *schema, *url, *body_field, *library;
    int isolate, payload;
    int64_t max_memory, max_cpu_ms;
    uint32_t max_files, max_processes;
    struct hfi_headers headers;
    struct hfi_texts command, environment, never_retry;
    struct hfi_items rules;
    struct hfi_curve_setting curve;
    int64_t execution_timeout_ms, kill_grace_ms, heartbeat_timeout_ms, abandon_after_ms;
    bool release_quarantined;
    bool repeatable, send_key;
};
struct hfi_outbox_setting {
    struct hfi_item item;
    const char *file, *source;
    int64_t poll_ms;
};
struct hfi_forward_setting {
    struct hfi_item item;
    const char *name, *source, *queue, *type, *to_queue, *to_type, *downstream, *method, *path;
    int death_class, of; /* death_class: -1 any */
    struct hfi_texts command;
    struct hfi_curve_setting curve;
    bool error_header;
};
struct hfi_alert_setting {
    struct hfi_item item;
    int64_t collapse_ms;
    const char *url, *webhook_text;
    struct hfi_texts signing_secrets;
    int private_networks;
    int64_t webhook_timeout_ms;
    const char *server, *from, *user, *password, *subject, *mail_text, *ca_file;
    struct hfi_texts to;
    int mail_tls;
    int64_t mail_timeout_ms;
    struct hfi_texts command;
    bool detail;
    int64_t command_timeout_ms;
};

struct hfi_settings {
    const char *store;
    struct hfi_downstream_setting downstream; /* what each of them starts with */
    int64_t payload_limit;
    int sync;
    bool error_detail, allow_fault_injection;
    const char *node;
    uint32_t workers, prefetch, max_give_backs, max_crashes, max_abandoned;
    int64_t drain_timeout_ms, kill_timeout_ms, lease_ms, heartbeat_ms, poll_ms, unknown_type_grace_ms, abandon_after_ms;
    int64_t watchdog_ms, watchdog_grace_ms;
    struct hfi_curve_setting curve;
    int64_t execution_timeout_ms;
    struct hfi_texts never_retry;
    uint32_t max_calls_per_job;
    int64_t keep_succeeded_ms, keep_cancelled_ms, keep_dead_ms, keep_quarantined_ms, keep_dead_letters_ms, keep_inbox_ms, keep_audit_ms;
    struct hfi_items downstreams, queues, jobs, alerts, limits, outboxes, forwards;
};

#endif
