/* SPDX-License-Identifier: MIT */
/* The configuration: the schema's defaults are the library's, and what is written arrives in the options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/config/bind.h"
#include "program/config/config.h"
#include "program/config/schema.h"

#define READ(config, text) hfi_config_read(config, "c.yaml", text, strlen(text), HFI_CONFIG_SECRETS | HFI_CONFIG_STORE)

/* The first problem has to be of this rule, at this place. */
static void expect(const char *text, const char *rule, int line, int column) {
    struct hfi_config config;
    assert_int_equal(READ(&config, text), HF_ECONFIG);
    assert_non_null(config.problems.first);
    assert_string_equal(config.problems.first->rule, rule);
    assert_int_equal(config.problems.first->line, line);
    assert_int_equal(config.problems.first->column, column);
    hfi_config_free(&config);
}

static void defaults_of_downstreams_are_the_librarys(void **state) {
    struct hfi_config config;
    struct hf_policy_options policy;
    struct hf_downstream_options plain;
    (void)state;
    hf_policy_options_init(&policy);
    hf_downstream_options_init(&plain);
    assert_int_equal(READ(&config, "downstreams: {d: {url: 'http://d'}}"), 0);
    assert_int_equal(config.runner.downstream_count, 1);
    const struct hf_downstream_options *made = config.runner.downstreams;
    assert_memory_equal(made->policy, &policy, sizeof policy);
    assert_int_equal(made->response_limit, plain.response_limit);
    assert_int_equal(made->send_remaining_time, plain.send_remaining_time);
    assert_int_equal(made->header_limit, plain.header_limit);
    assert_int_equal(made->accept_compressed, plain.accept_compressed);
    assert_int_equal(made->deny_private_networks, plain.deny_private_networks);
    assert_int_equal(made->signing_secret_count, 0);
    assert_null(made->probe_path);
    assert_null(made->ca_file);
    assert_int_equal(made->send_attempt, plain.send_attempt);
    hfi_config_free(&config);
}

static void defaults_of_node_and_store_are_the_librarys(void **state) {
    struct hfi_config config;
    struct hf_runner_options runner;
    struct hf_store_options store;
    (void)state;
    hf_runner_options_init(&runner);
    hf_store_options_init(&store);
    assert_int_equal(READ(&config, ""), 0);
    const struct hf_runner_options *made = &config.runner;
    assert_int_equal(made->workers, runner.workers);
    assert_int_equal(made->drain_timeout_ms, runner.drain_timeout_ms);
    assert_int_equal(made->lease_ms, runner.lease_ms);
    assert_int_equal(made->heartbeat_ms, runner.heartbeat_ms);
    assert_int_equal(made->poll_ms, runner.poll_ms);
    assert_int_equal(made->execution_timeout_ms, runner.execution_timeout_ms);
    assert_int_equal(made->prefetch, 0);
    assert_int_equal(made->prefetch, runner.prefetch);
    assert_int_equal(made->max_give_backs, runner.max_give_backs);
    assert_int_equal(made->max_crashes, runner.max_crashes);
    assert_int_equal(made->abandon_after_ms, runner.abandon_after_ms);
    assert_int_equal(made->max_abandoned, runner.max_abandoned);
    assert_int_equal(made->unknown_type_grace_ms, runner.unknown_type_grace_ms);
    assert_int_equal(made->watchdog_ms, runner.watchdog_ms);
    assert_int_equal(made->watchdog_grace_ms, runner.watchdog_grace_ms);
    assert_int_equal(made->keep_succeeded_ms, runner.keep_succeeded_ms);
    assert_int_equal(made->keep_cancelled_ms, runner.keep_cancelled_ms);
    assert_int_equal(made->keep_dead_ms, runner.keep_dead_ms);
    assert_int_equal(made->keep_quarantined_ms, runner.keep_quarantined_ms);
    assert_int_equal(made->keep_dead_letters_ms, runner.keep_dead_letters_ms);
    assert_int_equal(made->keep_inbox_ms, runner.keep_inbox_ms);
    assert_int_equal(made->keep_audit_ms, runner.keep_audit_ms);
    assert_null(made->curve);
    assert_null(config.store);
    assert_memory_equal(&config.store_options, &store, sizeof store);
    hfi_config_free(&config);
}

static void defaults_of_types_and_queues_are_the_librarys(void **state) {
    struct hfi_config config;
    struct hf_type_options type;
    struct hf_queue_options queue;
    struct hf_sink_options webhook;
    (void)state;
    hf_type_options_init(&type);
    hf_queue_options_init(&queue);
    hf_sink_options_init(&webhook);
    assert_int_equal(READ(&config, "jobs: {n: {kind: noop}}\nqueues: {default: {}}\nalerts: {a: {webhook: {url: 'http://h'}}}\noutboxes: {o: {file: /a}}"), 0);
    const struct hf_type_options *made = config.runner.types;
    assert_int_equal(made->kind, HF_KIND_NOOP);
    assert_string_equal(made->queue, type.queue);
    assert_string_equal(made->method, type.method);
    assert_string_equal(made->path, type.path);
    assert_int_equal(made->repeatable, type.repeatable);
    assert_int_equal(made->no_idempotency_key, type.no_idempotency_key);
    assert_int_equal(made->execution_timeout_ms, type.execution_timeout_ms);
    assert_int_equal(made->kill_grace_ms, type.kill_grace_ms);
    assert_string_equal(made->labels, type.labels);
    assert_int_equal(made->heartbeat_timeout_ms, type.heartbeat_timeout_ms);
    assert_int_equal(made->abandon_after_ms, type.abandon_after_ms);
    assert_int_equal(made->payload, type.payload);
    assert_null(made->curve);
    assert_int_equal(config.runner.queue_options->order, queue.order);
    assert_int_equal(config.runner.queue_options->weight, queue.weight);
    assert_int_equal(config.runner.queue_options->concurrency, queue.concurrency);
    assert_int_equal(config.runner.queue_options->global_concurrency, queue.global_concurrency);
    assert_int_equal(config.runner.queue_options->aging_ms, queue.aging_ms);
    assert_null(config.runner.queue_options->curve);
    assert_int_equal(config.runner.limit_count, 0);
    assert_int_equal(config.runner.sinks->timeout_ms, webhook.timeout_ms);
    struct hf_outbox_options outbox;
    hf_outbox_options_init(&outbox);
    assert_int_equal(config.runner.outbox_count, 1);
    assert_int_equal(config.runner.outboxes->poll_ms, outbox.poll_ms);
    assert_string_equal(config.runner.outboxes->file, "/a");
    assert_null(config.runner.outboxes->source);
    hfi_config_free(&config);
}

static void every_default_in_the_table_can_be_written(void **state) {
    (void)state;
    for (size_t i = 0; i < hfi_key_count; i++) {
        const struct hfi_key *key = &hfi_keys[i];
        union {
            int64_t whole;
            double number;
            const char *text;
        } to = {0};
        struct hfi_refusal refusal = {0};
        if (!key->preset || key->traits & HFI_KEY_COMPUTED || key->type == HFI_KEY_TEXTS)
            continue;
        if (!hfi_value_read(key, key->preset, &to, &refusal))
            fail_msg("%s: default %s: %s", key->path, key->preset, refusal.why);
    }
}

static void every_key_has_a_meaning_and_a_parent(void **state) {
    char parent[128];
    (void)state;
    for (size_t i = 0; i < hfi_key_count; i++) {
        assert_true(strlen(hfi_keys[i].doc) > 0);
        snprintf(parent, sizeof parent, "%s", hfi_keys[i].path);
        char *dot = strrchr(parent, '.');
        if (!dot)
            continue;
        *dot = '\0';
        size_t length = strlen(parent);
        if (length > 2 && strcmp(parent + length - 2, ".*") == 0)
            parent[length - 2] = '\0';
        bool found = strcmp(parent, "curve") == 0; /* the form of every `curve` */
        for (size_t j = 0; j < hfi_key_count; j++) /* the form of every item of a list */
            found |= hfi_keys[j].type == HFI_KEY_LIST && strcmp(hfi_keys[j].choices, parent) == 0;
        for (size_t j = 0; j < hfi_key_count; j++) {
            found |= strcmp(hfi_keys[j].path, parent) == 0;
            assert_true(i == j || strcmp(hfi_keys[i].path, hfi_keys[j].path) != 0);
        }
        if (!found)
            fail_msg("%s has no parent in the table", hfi_keys[i].path);
    }
}

static void what_is_written_arrives(void **state) {
    struct hfi_config config;
    (void)state;
    setenv("HF_TEST_SECRET", "s3cr$t", 1);
    assert_int_equal(READ(&config, "store: {url: 'sqlite:x.db', payload_limit: 1MiB, sync: normal, error_detail: false}\n"
                                   "downstreams:\n"
                                   "  d:\n"
                                   "    url: https://d.example:8443/base\n"
                                   "    retry: {max: 2, table: [100ms, 1s], jitter: equal}\n"
                                   "    retry_after: {scope: call}\n"
                                   "    breaker_429: failure\n"
                                   "    on_open: fail\n"
                                   "    breaker: {slices: 20}\n"
                                   "    latency: coarse\n"
                                   "    declared_rate: 120/m\n"
                                   "    hedge: {max: 2, delay: p95}\n"
                                   "    send_attempt: true\n"
                                   "    headers: {Authorization: 'Bearer ${HF_TEST_SECRET}', x: '$${plain}'}\n"
                                   "jobs:\n"
                                   "  e: {kind: exec, command: [/bin/echo, '${literal}'], environment: [A=b, PATH], directory: /tmp}\n"
                                   "  h: {kind: http, downstream: d, idempotency_key: false, execution_timeout: none}\n"),
                     0);
    assert_string_equal(config.store, "sqlite:x.db");
    assert_int_equal(config.store_options.payload_max, 1048576);
    assert_true(config.store_options.normal_sync && config.store_options.no_error_detail);
    const struct hf_downstream_options *d = config.runner.downstreams;
    assert_string_equal(d->url, "https://d.example:8443/base");
    assert_int_equal(d->policy->retry_backoff, HF_BACKOFF_TABLE);
    assert_int_equal(d->policy->retry_table_length, 2);
    assert_int_equal(d->policy->retry_table_ms[1], 1000);
    assert_int_equal(d->policy->retry_jitter, HF_JITTER_EQUAL);
    assert_int_equal(d->policy->gate_scope, HF_GATE_CALL);
    assert_true(d->policy->breaker_429_failure && d->policy->on_open == HF_ON_OPEN_FAIL);
    assert_true(d->policy->declared_rate == 2.0);
    assert_true(d->policy->hedge_max == 2 && d->policy->hedge_p95 && d->send_attempt);
    assert_int_equal(d->policy->hedge_delay_ms, 2000); /* until there is a p95 */
    assert_int_equal(d->policy->breaker_slices, 20);
    assert_int_equal(d->policy->latency, HF_LATENCY_COARSE);
    assert_int_equal(d->header_count, 2);
    assert_string_equal(d->headers[0].value, "Bearer s3cr$t");
    assert_string_equal(d->headers[1].value, "${plain}");
    const struct hf_type_options *types = config.runner.types;
    assert_int_equal(types[0].command_length, 2);
    assert_string_equal(types[0].command[1], "${literal}");
    assert_int_equal(types[0].environment_length, 2);
    assert_string_equal(types[0].directory, "/tmp");
    assert_true(types[1].no_idempotency_key);
    assert_int_equal(types[1].execution_timeout_ms, 0); /* C18 */
    hfi_config_free(&config);
}

/* S1.26, 3.6 */
static void labels_and_abandonment_arrive(void **state) {
    struct hfi_config config;
    (void)state;
    assert_int_equal(READ(&config, "node: {abandon_after: 90s, max_abandoned: 3}\n"
                                   "jobs: {n: {kind: noop, labels: 'team=a,tier=1'}}"), 0);
    assert_int_equal(config.runner.abandon_after_ms, 90000);
    assert_int_equal(config.runner.max_abandoned, 3);
    assert_string_equal(config.runner.types->labels, "team=a,tier=1");
    hfi_config_free(&config);
    assert_int_equal(READ(&config, "node: {abandon_after: none}"), 0);
    assert_int_equal(config.runner.abandon_after_ms, 0);
    hfi_config_free(&config);
    assert_int_equal(READ(&config, "jobs: {p: {kind: plugin, library: /p.so, heartbeat_timeout: 30s, abandon_after: none, payload: text}}"), 0);
    assert_int_equal(config.runner.types->heartbeat_timeout_ms, 30000);
    assert_int_equal(config.runner.types->abandon_after_ms, 0);
    assert_int_equal(config.runner.types->payload, HF_PAYLOAD_TEXT);
    hfi_config_free(&config);
}

/* S4.5: own rules of a downstream and of a job type, with everything that is not written left open. */
static void rules_arrive(void **state) {
    struct hfi_config config;
    (void)state;
    assert_int_equal(READ(&config, "downstreams:\n"
                                   "  d:\n"
                                   "    url: http://d\n"
                                   "    rules:\n"
                                   "      - {name: gone, status: 404, class: transient, retry: fresh, breaker: failure}\n"
                                   "      - name: soft\n"
                                   "        status: 200-299\n"
                                   "        method: POST\n"
                                   "        header: {name: X-E, value: 'q*'}\n"
                                   "        body: text\n"
                                   "        body_within: 4\n"
                                   "        class: poison\n"
                                   "jobs: {j: {kind: http, downstream: d, rules: [{name: n, error_type: curl, retry: none}]}}"),
                     0);
    const struct hf_downstream_options *d = config.runner.downstreams;
    const struct hf_type_options *type = config.runner.types;
    assert_int_equal(d->rule_count, 2);
    assert_string_equal(d->rules[0].name, "gone");
    assert_int_equal(d->rules[0].status_min, 404);
    assert_int_equal(d->rules[0].status_max, 404);
    assert_int_equal(d->rules[0].decides, HF_RULE_CLASS | HF_RULE_RETRY | HF_RULE_BREAKER);
    assert_int_equal(d->rules[0].klass, HF_CLASS_TRANSIENT);
    assert_int_equal(d->rules[0].retry, HF_RETRY_FRESH);
    assert_int_equal(d->rules[0].verdict, HF_VERDICT_FAILURE);
    assert_int_equal(d->rules[0].body_within, HF_RULE_BODY_MAX);
    assert_null(d->rules[0].method);
    assert_int_equal(d->rules[1].status_max, 299);
    assert_string_equal(d->rules[1].method, "POST");
    assert_string_equal(d->rules[1].header, "X-E");
    assert_string_equal(d->rules[1].header_value, "q*");
    assert_string_equal(d->rules[1].body, "text");
    assert_int_equal(d->rules[1].body_within, 4);
    assert_int_equal(d->rules[1].decides, HF_RULE_CLASS);
    assert_int_equal(d->rules[1].klass, HF_CLASS_POISON);
    assert_int_equal(type->rule_count, 1);
    assert_string_equal(type->rules[0].error_type, "curl");
    assert_int_equal(type->rules[0].decides, HF_RULE_RETRY);
    assert_int_equal(type->rules[0].status_max, 0);
    hfi_config_free(&config);
}

static void safety_of_a_downstream_arrives(void **state) {
    struct hfi_config config;
    (void)state;
    setenv("HF_TEST_SECRET", "sixteen bytes it is", 1);
    assert_int_equal(READ(&config, "downstreams:\n"
                                   "  d: {url: 'http://d', private_networks: deny, header_limit: 8KiB, accept_compressed: true,\n"
                                   "      signing: {secret: ['${HF_TEST_SECRET}', plain]}}\n"
                                   "  e: {url: 'http://e', signing: {secret: 'x${HF_TEST_SECRET}'}}\n"),
                     0);
    const struct hf_downstream_options *d = config.runner.downstreams;
    assert_true(d[0].deny_private_networks && d[0].accept_compressed);
    assert_int_equal(d[0].header_limit, 8192);
    assert_int_equal(d[0].signing_secret_count, 2);
    assert_string_equal(d[0].signing_secrets[0], "sixteen bytes it is");
    assert_string_equal(d[0].signing_secrets[1], "plain");
    assert_int_equal(d[1].signing_secret_count, 1);
    assert_string_equal(d[1].signing_secrets[0], "xsixteen bytes it is");
    hfi_config_free(&config);
}

static void curves_are_worked_out(void **state) {
    struct hfi_config config;
    (void)state;
    assert_int_equal(READ(&config, "jobs:\n"
                                   "  list: {kind: noop, curve: [5s, 5m, 5h], max_executions: 4}\n"       /* S4.1 */
                                   "  exponential: {kind: noop, curve: {base: 2s, factor: 2, cap: 5m}}\n" /* S1.5 */
                                   "  poly: {kind: noop, curve: {poly: 4, plus: 15s, jitter: 0.1}}\n"     /* S2.2 */
                                   "  none: {kind: noop, retries: 0}\n"),                                 /* C7 */
                     0);
    const struct hf_type_options *types = config.runner.types;
    assert_int_equal(types[0].curve->max_executions, 4);
    assert_int_equal(types[0].curve->curve_ms[2], 18000000);
    assert_int_equal(types[1].curve->curve_length, 9);
    assert_int_equal(types[1].curve->curve_ms[7], 256000);
    assert_int_equal(types[1].curve->curve_ms[8], 300000);
    assert_int_equal(types[2].curve->curve_ms[0], 16000);
    assert_int_equal(types[2].curve->curve_ms[3], 271000);
    assert_true(types[2].curve->jitter == 0.1);
    assert_int_equal(types[3].curve->max_executions, 1);
    assert_int_equal(types[3].curve->curve_length, 0);
    hfi_config_free(&config);
}

/* S3.9: how often to ask and how long a command may take are settings; the schema comes with the first open (test_sqlite_open). */
static void polls_and_limits_are_settings_S3_9(void **state) {
    struct hfi_config config;
    (void)state;
    assert_int_equal(READ(&config, "node: {poll: 500ms, prefetch: 32}\ndefaults: {execution_timeout: 5m}\n"), 0);
    assert_int_equal(config.runner.poll_ms, 500);
    assert_int_equal(config.runner.prefetch, 32);
    assert_int_equal(config.runner.execution_timeout_ms, 300000);
    hfi_config_free(&config);
}

static void the_closest_curve_replaces_and_executions_alone_keep_it(void **state) {
    struct hfi_config config;
    struct hf_curve_options policy;
    (void)state;
    assert_int_equal(READ(&config, "defaults: {curve: [1s, 2s], max_executions: 9}\n"
                                   "queues: {q: {curve: [3s]}}\n"
                                   "jobs:\n"
                                   "  a: {kind: noop}\n"
                                   "  b: {kind: noop, max_executions: 5}\n"
                                   "  c: {kind: noop, curve: [7s]}\n"),
                     0);
    hfi_config_policy(&config, hfi_config_job(&config, "a"), "default", &policy);
    assert_int_equal(policy.max_executions, 9);
    assert_int_equal(policy.curve_length, 2);
    hfi_config_policy(&config, hfi_config_job(&config, "b"), "default", &policy); /* C14 */
    assert_int_equal(policy.max_executions, 5);
    assert_int_equal(policy.curve_length, 2);
    hfi_config_policy(&config, hfi_config_job(&config, "b"), "q", &policy);
    assert_int_equal(policy.max_executions, 5);
    assert_int_equal(policy.curve_ms[0], 3000);
    hfi_config_policy(&config, hfi_config_job(&config, "a"), "q", &policy); /* S0.10: the whole policy */
    assert_int_equal(policy.max_executions, 0);
    assert_int_equal(policy.curve_length, 1);
    hfi_config_policy(&config, hfi_config_job(&config, "c"), "q", &policy);
    assert_int_equal(policy.curve_ms[0], 7000);
    hfi_config_free(&config);
}

/* F5: builtin < defaults.downstream < downstreams.X; the file's order does not matter. The call's own come in test_call_laws. */
static void f5_downstreams_start_with_the_defaults(void **state) {
    struct hfi_config config;
    struct hf_policy_options builtin;
    (void)state;
    hf_policy_options_init(&builtin);
    assert_int_equal(READ(&config, "downstreams:\n"
                                   "  none: {url: 'http://a'}\n"
                                   "  some: {url: 'http://b', connect_timeout: 1s, retry: {max: 0}, hedge: {delay: 3s}, rules: [{name: own, status: 418, class: ok}]}\n"
                                   "  wait: {url: 'http://c', retry: {backoff: constant}}\n"
                                   "  list: {url: 'http://d', retry: {table: [7ms]}}\n"
                                   "defaults:\n"
                                   "  downstream:\n"
                                   "    connect_timeout: 2s\n"
                                   "    attempt_timeout: 4s\n"
                                   "    retry: {max: 1, table: [100ms, 200ms]}\n"
                                   "    hedge: {max: 1, delay: p95}\n"
                                   "    breaker: {min_calls: 5}\n"
                                   "    bulkhead: {max: 9}\n"
                                   "    retry_after: {scope: call}\n"
                                   "    send_attempt: true\n"
                                   "    response_limit: 2MiB\n"
                                   "    rules: [{name: shared, status: 409, class: ok}, {name: more, status: 410, class: ok}]\n"),
                     0);
    const struct hf_downstream_options *made = config.runner.downstreams;
    for (int i = 0; i < 4; i++) { /* what only the defaults say, and what nobody says */
        assert_int_equal(made[i].policy->attempt_timeout_ms, 4000);
        assert_int_equal(made[i].policy->breaker_min_calls, 5);
        assert_int_equal(made[i].policy->bulkhead_max, 9);
        assert_int_equal(made[i].policy->gate_scope, HF_GATE_CALL);
        assert_int_equal(made[i].policy->total_timeout_ms, builtin.total_timeout_ms);
        assert_int_equal(made[i].policy->budget_floor, builtin.budget_floor);
        assert_true(made[i].send_attempt && made[i].response_limit == 2097152);
    }
    assert_true(made[0].policy->connect_timeout_ms == 2000 && made[0].policy->retry_max == 1);
    assert_true(made[1].policy->connect_timeout_ms == 1000 && made[1].policy->retry_max == 0);
    assert_true(made[0].policy->hedge_p95 && made[0].policy->hedge_max == 1);
    assert_true(!made[1].policy->hedge_p95 && made[1].policy->hedge_max == 1 && made[1].policy->hedge_delay_ms == 3000);
    assert_int_equal(made[0].rule_count, 2);
    assert_int_equal(made[1].rule_count, 1); /* a list replaces */
    assert_int_equal(made[0].policy->retry_table_length, 2);
    assert_int_equal(made[2].policy->retry_backoff, HF_BACKOFF_CONSTANT); /* its own way of waiting puts the table away */
    assert_int_equal(made[2].policy->retry_table_length, 0);
    assert_true(made[3].policy->retry_table_length == 1 && made[3].policy->retry_table_ms[0] == 7);
    hfi_config_free(&config);
    expect("defaults: {downstream: {retry: {maxx: 1}}}\n", "config.unknown_key", 1, 33);
    expect("defaults: {downstream: {retry: {backoff: linear, table: [1s]}}}\n", "config.table", 1, 57);
    expect("defaults: {downstream: [1]}\n", "config.type", 1, 24);
}

/* Every key that is a downstream's own is refused in the defaults, whatever its value, and the help names just these. */
static void own_keys_are_refused_and_named(void **state) {
    (void)state;
    const struct hfi_key *like = hfi_key_find("defaults", "downstream");
    char doc[HFI_KEY_DOC], text[200];
    size_t own = 0;
    hfi_key_doc(like, doc);
    const char *list = strstr(doc, "; not ");
    assert_non_null(list);
    for (size_t i = 0; i < hfi_key_count; i++) {
        if (!hfi_key_is_below(&hfi_keys[i], "downstreams.*"))
            continue;
        const char *name = hfi_key_name(&hfi_keys[i]), *at = strstr(list, name);
        bool is_own = (hfi_keys[i].traits & HFI_KEY_OWN) != 0;
        for (; at && (at[-1] != ' ' || (at[strlen(name)] && !strchr(", ", at[strlen(name)]))); at = strstr(at + 1, name))
            continue;
        assert_int_equal(at != NULL, is_own);
        own += is_own;
        snprintf(text, sizeof text, "defaults: {downstream: {%s: 'x'}}\n", name);
        if (is_own)
            expect(text, "config.own_key", 1, (int)(strlen("defaults: {downstream: { : ") + strlen(name)));
    }
    assert_int_equal(own, 8);
    assert_string_equal(list, "; not url, per_host, hosts_max, probe, headers, client_cert, client_key and signing");
}

static void places_are_exact(void **state) {
    (void)state;
    expect("a: 1\n", "config.unknown_key", 1, 1);
    expect("node:\n  lease: 5\n", "config.missing_unit", 2, 10);
    expect("node: {lease: 5s, lease: 6s}\n", "config.duplicate_key", 1, 19);
    expect("downstreams:\n  d:\n    url: http://d\n    ca_file: ${X}\n", "config.secret", 4, 14);
    expect("store: '${HF_TEST_NOT_SET}'\n", "config.secret", 1, 8); /* S3.22 */
    expect("store: ''\n", "config.secret", 1, 8);
    expect("jobs:\n  j: {kind: noop, curve: {factor: 2, base: 1s, cap: 500ms}}\n", "config.curve", 2, 26);
    expect("jobs:\n  j: {kind: noop, curve: {poly: 2, factor: 2}}\n", "config.curve", 2, 26); /* S2.4 */
    expect("jobs:\n  j: {kind: noop, curve: {factor: 2}}\n", "config.curve", 2, 26); /* S2.4: nothing to multiply */
    expect("jobs:\n  j: {kind: noop, curve: {cap: 5m, jitter: 0.1}}\n", "config.curve", 2, 26);
    expect("downstreams:\n  d: {url: http://d, hedge: {delay: p99}}\n", "config.type", 2, 37);
    expect("downstreams:\n  d: {url: http://d, hedge: {max: 5}}\n", "config.range", 2, 35);
    expect("jobs:\n  j: {kind: noop, max_executions: 0}\n", "config.range", 2, 35);          /* S2.12 */
    expect("defaults: {never_retry: [sql, '']}\n", "config.error_type", 1, 25);                /* S2.16 */
}

static void deep_and_large_documents_are_refused(void **state) {
    char deep[200] = "node: ";
    (void)state;
    memset(deep + 6, '[', 60);
    deep[66] = '\0';
    expect(deep, "config.size", 1, 22);
    size_t room = 20001 * 10, at = 0;
    char *large = malloc(room);
    assert_non_null(large);
    for (int i = 0; i < 20001; i++)
        at += (size_t)snprintf(large + at, room - at, "k%05d: 1\n", i);
    expect(large, "config.size", 20000, 9);
    free(large);
}

static void secrets_are_left_alone_when_nobody_needs_them(void **state) {
    struct hfi_config config;
    const char *text = "downstreams: {d: {url: 'http://d', headers: {a: '${HF_TEST_NOT_SET}'}}}";
    (void)state;
    assert_int_equal(hfi_config_read(&config, "c.yaml", text, strlen(text), 0), 0);
    hfi_config_free(&config);
}

static void rate_limits(void **state) {
    struct hfi_config config;
    (void)state;
    assert_int_equal(READ(&config, "downstreams: {d: {url: 'http://d', rate: {limit: 90/m, burst: 3}}}"), 0);
    assert_true(config.runner.downstreams->policy->rate_per_s == 1.5);
    assert_int_equal(config.runner.downstreams->policy->rate_burst, 3);
    hfi_config_free(&config);
    expect("downstreams: {d: {url: 'http://d', rate: {limit: 10}}}", "config.missing_unit", 1, 50);
    expect("downstreams: {d: {url: 'http://d', rate: {limit: -1/s}}}", "config.type", 1, 50);
    expect("downstreams: {d: {url: 'http://d', rate: {limit: 1000001/s}}}", "config.range", 1, 50);
    expect("downstreams: {d: {url: 'http://d', rate: {limit: 1/s, burst: 0}}}", "config.range", 1, 62);
}

static void faults_arrive(void **state) {
    struct hfi_config config;
    (void)state;
    assert_int_equal(READ(&config, "allow_fault_injection: true\n"
                                   "downstreams: {d: {url: 'http://d', faults: [{kind: status, status: 503, share: 0.2},\n"
                                   "  {kind: delay, delay: 2s, every: 60s, for: 10s}, {kind: drop}]}}"), 0);
    const struct hf_downstream_options *made = config.runner.downstreams;
    assert_true(made->policy->allow_fault_injection);
    assert_int_equal(made->fault_count, 3);
    assert_int_equal(made->faults[0].kind, HF_FAULT_STATUS);
    assert_int_equal(made->faults[0].status, 503);
    assert_true(made->faults[0].share == 0.2);
    assert_int_equal(made->faults[1].kind, HF_FAULT_DELAY);
    assert_int_equal(made->faults[1].delay_ms, 2000);
    assert_int_equal(made->faults[1].every_ms, 60000);
    assert_int_equal(made->faults[1].for_ms, 10000);
    assert_int_equal(made->faults[2].kind, HF_FAULT_DROP);
    assert_true(made->faults[2].share == 1);
    hfi_config_free(&config);
    expect("downstreams: {d: {url: 'http://d', faults: [{status: 503}]}}", "config.missing_key", 1, 45);
    expect("downstreams: {d: {url: 'http://d', faults: [{kind: rest}]}}", "config.choice", 1, 52);
    expect("downstreams: {d: {url: 'http://d', faults: {kind: drop}}}", "config.type", 1, 44);
}

static void limits_and_bounds_of_queues_arrive(void **state) {
    struct hfi_config config;
    struct hfi_check check = {0};
    (void)state;
    assert_int_equal(READ(&config, "queues: {q: {global_concurrency: 5, aging: 10m}, r: {aging: none}}\n"
                                   "limits: {tenant: {concurrency: 2, rate: 30/m, burst: 4}, api: {rate: 10/s}}"), 0);
    assert_int_equal(config.runner.queue_options[0].global_concurrency, 5);
    assert_int_equal(config.runner.queue_options[0].aging_ms, 600000);
    assert_int_equal(config.runner.queue_options[1].aging_ms, 0);
    assert_int_equal(config.runner.limit_count, 2);
    const struct hf_limit_options *limits = config.runner.limits;
    assert_string_equal(limits[0].name, "tenant");
    assert_int_equal(limits[0].concurrency, 2);
    assert_true(limits[0].rate_per_s == 0.5);
    assert_int_equal(limits[0].rate_burst, 4);
    assert_string_equal(limits[1].name, "api");
    assert_int_equal(limits[1].concurrency, 0);
    assert_true(limits[1].rate_per_s == 10);
    assert_int_equal(hfi_config_check(&config, &check), 0);
    hfi_config_free(&config);
    expect("limits: {tenant: {concurrency: 0}}", "config.range", 1, 32);
    expect("limits: {tenant: {rate: 10}}", "config.missing_unit", 1, 25);
    expect("limits: {tenant: {rate: 0/s}}", "config.range", 1, 25);
    expect("limits: {tenant: {rate: 10001/s}}", "config.range", 1, 25);
    expect("limits: {tenant: {speed: 1/s}}", "config.unknown_key", 1, 19);
    expect("queues: {q: {global_concurrency: 0}}", "config.range", 1, 34);
    expect("queues: {q: {aging: 0s}}", "config.range", 1, 21);
}

static void check_knows_limits_that_say_nothing(void **state) {
    struct hfi_config config;
    struct hfi_check check = {0};
    (void)state;
    assert_int_equal(READ(&config, "limits: {none: {}, lone: {concurrency: 1, burst: 3}, 'a:b': {concurrency: 1}}\n"
                                   "queues: {q: {concurrency: 4, global_concurrency: 3}}"), 0);
    assert_int_equal(hfi_config_check(&config, &check), 3);
    assert_int_equal(config.problems.warnings, 1);
    const char *const whys[] = {"it limits nothing", "a burst without a rate", "a colon ends the name of a limit"};
    const struct hfi_problem *problem = config.problems.first;
    for (size_t i = 0; i < 3; i++, problem = problem->next) {
        assert_string_equal(problem->rule, "config.limit");
        assert_string_equal(problem->why, whys[i]);
        assert_int_equal(problem->line, 1);
    }
    assert_string_equal(problem->rule, "queue.concurrency");
    hfi_config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_and_bounds_of_queues_arrive),
        cmocka_unit_test(check_knows_limits_that_say_nothing),
        cmocka_unit_test(defaults_of_downstreams_are_the_librarys),
        cmocka_unit_test(defaults_of_node_and_store_are_the_librarys),
        cmocka_unit_test(defaults_of_types_and_queues_are_the_librarys),
        cmocka_unit_test(every_default_in_the_table_can_be_written),
        cmocka_unit_test(every_key_has_a_meaning_and_a_parent),
        cmocka_unit_test(what_is_written_arrives),
        cmocka_unit_test(rules_arrive),
        cmocka_unit_test(labels_and_abandonment_arrive),
        cmocka_unit_test(safety_of_a_downstream_arrives),
        cmocka_unit_test(curves_are_worked_out),
        cmocka_unit_test(polls_and_limits_are_settings_S3_9),
        cmocka_unit_test(the_closest_curve_replaces_and_executions_alone_keep_it),
        cmocka_unit_test(f5_downstreams_start_with_the_defaults),
        cmocka_unit_test(own_keys_are_refused_and_named),
        cmocka_unit_test(places_are_exact),
        cmocka_unit_test(deep_and_large_documents_are_refused),
        cmocka_unit_test(secrets_are_left_alone_when_nobody_needs_them),
        cmocka_unit_test(rate_limits),
        cmocka_unit_test(faults_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
