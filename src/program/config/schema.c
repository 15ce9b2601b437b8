/* SPDX-License-Identifier: MIT */
/*
 * The table of the configuration's keys. Adding a key is adding a row: parsing, help, the man page and the comparing
 * tests follow. Decides nothing. Pure.
 */
#include "program/config/schema.h"

#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/config/settings.h"

#define S(field) offsetof(struct hfi_settings, field)
#define D(field) offsetof(struct hfi_downstream_setting, field)
#define P(field) offsetof(struct hfi_downstream_setting, policy.field)
#define Q(field) offsetof(struct hfi_queue_setting, field)
#define J(field) offsetof(struct hfi_job_setting, field)
#define A(field) offsetof(struct hfi_alert_setting, field)
#define L(field) offsetof(struct hfi_limit_setting, field)
#define O(field) offsetof(struct hfi_outbox_setting, field)
#define W(field) offsetof(struct hfi_forward_setting, field)
#define R(field) offsetof(struct hfi_rule_setting, field)
#define C(field) offsetof(struct hfi_curve_form, field)
#define F(field) offsetof(struct hfi_fault_setting, field)
#define HOUR 3600000.0
#define DAY (24 * HOUR)
#define COUNT_MAX 4294967295.0
#define LONG (36500 * DAY) /* a century in ms: long, and far from overflow */

/* path, type, traits, offset, item size, min, max, default, choices, what it is */
const struct hfi_key hfi_keys[] = {
    {"store", HFI_KEY_MAP, HFI_KEY_SHORT, 0, 0, 0, 0, NULL, NULL, "where jobs are kept; a text is its url"},
    {"store.url", HFI_KEY_URL, HFI_KEY_COMPUTED, S(store), 0, 0, 0, "sqlite:holdfast.db", NULL, "sqlite:PATH or memory:; ${ENV} is replaced, a variable that is not set is an error"},
    {"store.payload_limit", HFI_KEY_SIZE, 0, S(payload_limit), 0, 1, 1073741824, "64KiB", NULL, "largest payload of a job"},
    {"store.sync", HFI_KEY_CHOICE, 0, S(sync), 0, 0, 0, "full", "full|normal", "full: a commit survives power loss; normal: the last ones may not"},
    {"store.error_detail", HFI_KEY_SWITCH, 0, S(error_detail), 0, 0, 0, "true", NULL, "keep the full text of errors in the store"},
    {"node", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "this process, when it runs jobs"},
    {"node.name", HFI_KEY_TEXT, HFI_KEY_COMPUTED, S(node), 0, 0, 0, "the host's name", NULL, "how the node is called in the store and the log"},
    {"node.workers", HFI_KEY_COUNT, HFI_KEY_COMPUTED, S(workers), 0, 1, 1024, "max(2 x CPUs, 8)", NULL, "jobs at once of queues without a concurrency of their own, as far as those that have one leave room: the node's pool is workers, or the sum of all concurrency if that is more"},
    {"node.drain_timeout", HFI_KEY_DURATION, 0, S(drain_timeout_ms), 0, 0, DAY, "25s", NULL, "how long running jobs may go on after SIGTERM; less than what the supervisor waits before it kills"},
    {"node.kill_timeout", HFI_KEY_DURATION, HFI_KEY_NONE, S(kill_timeout_ms), 0, 1, DAY, "none", NULL, "when the supervisor kills after its SIGTERM, as systemd's TimeoutStopSec; none = unknown. For `check` only"},
    {"node.lease", HFI_KEY_DURATION, 0, S(lease_ms), 0, 1000, DAY, "60s", NULL, "a node unheard of for so long has lost its jobs; at least 3 x heartbeat"},
    {"node.heartbeat", HFI_KEY_DURATION, 0, S(heartbeat_ms), 0, 100, 8 * HOUR, "15s", NULL, "how often the node is heard of"},
    {"node.poll", HFI_KEY_DURATION, 0, S(poll_ms), 0, 10, HOUR, "250ms", NULL, "longest sleep before the store is asked again"},
    {"node.unknown_type_grace", HFI_KEY_DURATION, 0, S(unknown_type_grace_ms), 0, 0, 30 * DAY, "10m", NULL, "how long jobs of a type no live node knows wait before they are quarantined"},
    {"node.prefetch", HFI_KEY_COUNT, 0, S(prefetch), 0, 0, 1024, "0", NULL, "jobs that are reserved at most while all slots are taken, never more than ended in the last second; each is started in the commit that frees a slot, or given back after a second; 0 = off"},
    {"node.max_give_backs", HFI_KEY_COUNT, 0, S(max_give_backs), 0, 1, 10000, "20", NULL, "uncounted returns of one job by draining nodes"},
    {"node.max_crashes", HFI_KEY_COUNT, 0, S(max_crashes), 0, 1, 1000, "3", NULL, "crashes under one job before it is poison"},
    {"node.abandon_after", HFI_KEY_DURATION, HFI_KEY_NONE, S(abandon_after_ms), 0, 1, LONG, "5m", NULL, "a native handler that still runs so long past its execution_timeout loses its place and its job; none = never"},
    {"node.max_abandoned", HFI_KEY_COUNT, HFI_KEY_COMPUTED, S(max_abandoned), 0, 1, 10000, "workers", NULL, "with so many of those alive the node drains and exits with 1"},
    {"node.watchdog", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "looks after the node's own loops: one that makes no progress is logged with its name and stack, and is begun again where that is safe (a worker outside of handlers, the sweep); else the process exits with 1 for its supervisor"},
    {"node.watchdog.deadline", HFI_KEY_DURATION, HFI_KEY_NONE, S(watchdog_ms), 0, 1000, DAY, "60s", NULL, "a loop without a sign of life for so long is late; none switches the watchdog off"},
    {"node.watchdog.grace", HFI_KEY_DURATION, 0, S(watchdog_grace_ms), 0, 1000, DAY, "5m", NULL, "the same for the first sign of life after the start"},
    {"defaults", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "for every job whose type and queue say nothing else"},
    {"defaults.max_executions", HFI_KEY_COUNT, HFI_KEY_COMPUTED, S(curve.executions), 0, 1, 10000, "6", NULL, "executions before a job is dead; alone it keeps the curve. A list of waits without it: their number + 1; a formula: as many as without the formula"},
    {"defaults.retries", HFI_KEY_INTEGER, HFI_KEY_COMPUTED, S(curve.retries), 0, 0, 9999, "5", NULL, "the same as max_executions - 1; give one of the two"},
    {"defaults.curve", HFI_KEY_CURVE, HFI_KEY_COMPUTED, S(curve), 0, 0, 0, "[60s, 5m, 30m, 2h]", NULL, "waits between executions, the last one again and again; or a formula, the keys of `curve`"},
    {"defaults.execution_timeout", HFI_KEY_DURATION, HFI_KEY_NONE, S(execution_timeout_ms), 0, 1, LONG, "2m", NULL, "limit of one execution; none switches it off"},
    {"defaults.never_retry", HFI_KEY_TEXTS, 0, S(never_retry), 0, 0, 0, "[]", NULL, "error types, by dotted prefix, that end a job at once"},
    {"defaults.max_calls_per_job", HFI_KEY_COUNT, 0, S(max_calls_per_job), 0, 1, COUNT_MAX, "100", NULL, "`check` refuses a job type that could call more often than this"},
    {"defaults.downstream", HFI_KEY_LIKE, 0, S(downstream), 0, 0, 0, NULL, "downstreams", "for every downstream that says nothing else"},
    {"curve.base", HFI_KEY_DURATION, 0, C(base_ms), 0, 1, LONG, NULL, NULL, "first wait of base x factor^(n-1)"},
    {"curve.factor", HFI_KEY_NUMBER, 0, C(factor), 0, 1, 1000, "2", NULL, "growth from wait to wait; needs base"},
    {"curve.cap", HFI_KEY_DURATION, HFI_KEY_NONE, C(cap_ms), 0, 1, LONG, "none", NULL, "longest wait; needs base"},
    {"curve.poly", HFI_KEY_COUNT, 0, C(power), 0, 1, 8, NULL, NULL, "the waits are n^poly seconds + plus, instead of base"},
    {"curve.plus", HFI_KEY_DURATION, 0, C(plus_ms), 0, 0, LONG, "0s", NULL, "added to each wait; needs poly"},
    {"curve.jitter", HFI_KEY_NUMBER, 0, C(jitter), 0, 0, 1, "0", NULL, "each wait is changed by up to this share"},
    {"allow_fault_injection", HFI_KEY_SWITCH, 0, S(allow_fault_injection), 0, 0, 0, "false", NULL, "downstreams may have faults: never in production by mistake"},
    {"downstreams", HFI_KEY_ITEMS, 0, S(downstreams), sizeof(struct hfi_downstream_setting), 0, 0, NULL, NULL, "what is called: each has limits, retries and a breaker of its own"},
    {"downstreams.*.url", HFI_KEY_SECRET, HFI_KEY_OWN, D(url), 0, 0, 0, NULL, NULL, "http or https, without query; required, unless per_host; a user and password become a header; may be ${ENV} or file:PATH, and is shown without them"},
    {"downstreams.*.per_host", HFI_KEY_SWITCH, HFI_KEY_OWN, D(per_host), 0, 0, 0, "false", NULL, "each call brings a URL of its own, and every host it names has its own breaker, budget and bulkhead; headers go to every host"},
    {"downstreams.*.hosts_max", HFI_KEY_COUNT, HFI_KEY_OWN, D(hosts_max), 0, 1, 1000000, "1000", NULL, "hosts kept apart, with per_host; further ones share one breaker until another is idle"},
    {"downstreams.*.connect_timeout", HFI_KEY_DURATION, 0, P(connect_timeout_ms), 0, 1, DAY, "5s", NULL, "limit of resolving, connecting and TLS"},
    {"downstreams.*.attempt_timeout", HFI_KEY_DURATION, 0, P(attempt_timeout_ms), 0, 1, DAY, "20s", NULL, "limit of one attempt, connecting included"},
    {"downstreams.*.total_timeout", HFI_KEY_DURATION, 0, P(total_timeout_ms), 0, 1, DAY, "90s", NULL, "limit of a call: waits and all attempts"},
    {"downstreams.*.allow_truncated", HFI_KEY_SWITCH, 0, P(allow_truncated), 0, 0, 0, "false", NULL, "the last tries may not fit into the total: a warning instead of an error"},
    {"downstreams.*.retry", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "short retries within one call"},
    {"downstreams.*.retry.max", HFI_KEY_COUNT, 0, P(retry_max), 0, 0, 100, "3", NULL, "retries; attempts are one more"},
    {"downstreams.*.retry.backoff", HFI_KEY_CHOICE, 0, D(backoff), 0, 0, 0, "exponential", "constant|linear|exponential|table", "how the waits grow; table when `table` is given"},
    {"downstreams.*.retry.base", HFI_KEY_DURATION, 0, P(retry_base_ms), 0, 0, DAY, "500ms", NULL, "first wait"},
    {"downstreams.*.retry.factor", HFI_KEY_NUMBER, 0, P(retry_factor), 0, 1, 1000, "2", NULL, "growth of an exponential backoff"},
    {"downstreams.*.retry.cap", HFI_KEY_DURATION, 0, P(retry_cap_ms), 0, 0, DAY, "5s", NULL, "longest wait; 5s at most, long waits belong to the jobs"},
    {"downstreams.*.retry.table", HFI_KEY_WAITS, HFI_KEY_COMPUTED, D(retry_table), 0, 0, DAY, NULL, NULL, "the waits themselves, the last one again and again; 16 at most"},
    {"downstreams.*.retry.jitter", HFI_KEY_CHOICE, 0, D(jitter), 0, 0, 0, "full", "none|factor|full|equal|decorrelated", "how waits are spread"},
    {"downstreams.*.retry.jitter_factor", HFI_KEY_NUMBER, 0, P(retry_jitter_factor), 0, 0, 1, "0.1", NULL, "share of a wait that `jitter: factor` may change"},
    {"downstreams.*.budget", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "bounds the retries of all calls together"},
    {"downstreams.*.budget.ratio", HFI_KEY_NUMBER, 0, P(budget_ratio), 0, 0, 1, "0.2", NULL, "retries for each call of the window"},
    {"downstreams.*.budget.floor", HFI_KEY_COUNT, 0, P(budget_floor), 0, 0, 1000000, "10", NULL, "retries of a window that are always allowed"},
    {"downstreams.*.budget.window", HFI_KEY_DURATION, 0, P(budget_window_ms), 0, 100, HOUR, "10s", NULL, "how far back it counts"},
    {"downstreams.*.hedge", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "further attempts beside a slow one, of calls that may be repeated; each is paid from the budget"},
    {"downstreams.*.hedge.max", HFI_KEY_COUNT, 0, P(hedge_max), 0, 0, HF_HEDGE_MAX, "0", NULL, "further attempts of one try; 0 = off"},
    {"downstreams.*.hedge.delay", HFI_KEY_DURATION, 0, D(hedge_delay), 0, 1, DAY, "2s", "p95", "time without an answer before the next one; p95: that of the downstream in the last one to two breaker windows, 2s until 64 attempts are known"},
    {"downstreams.*.retry_after", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "what a Retry-After of the downstream may do"},
    {"downstreams.*.retry_after.cap", HFI_KEY_DURATION, 0, P(retry_after_cap_ms), 0, 0, 30 * DAY, "1h", NULL, "longest wait a job takes over from it; never more than the last wait of the job's curve"},
    {"downstreams.*.retry_after.gate_cap", HFI_KEY_DURATION, 0, P(gate_cap_ms), 0, 0, DAY, "60s", NULL, "longest time it may keep everybody away from the downstream"},
    {"downstreams.*.retry_after.scope", HFI_KEY_CHOICE, 0, D(gate_scope), 0, 0, 0, "downstream", "downstream|call", "whom it keeps away: everybody, or the call that got it"},
    {"downstreams.*.breaker_429", HFI_KEY_CHOICE, 0, D(breaker_429), 0, 0, 0, "neutral", "neutral|failure", "what a 429 is for the breaker"},
    {"downstreams.*.breaker", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "stops calls to a downstream that fails"},
    {"downstreams.*.breaker.window", HFI_KEY_DURATION, 0, P(breaker_window_ms), 0, 10, DAY, "60s", NULL, "how far back it looks; at least 2 x attempt_timeout"},
    {"downstreams.*.breaker.slices", HFI_KEY_COUNT, 0, P(breaker_slices), 0, 10, 60, "12", NULL, "steps in which the window slides"},
    {"downstreams.*.breaker.ratio", HFI_KEY_NUMBER, 0, P(breaker_ratio), 0, 0, 1, "0.5", NULL, "share of failures that opens it, above 0"},
    {"downstreams.*.breaker.min_calls", HFI_KEY_COUNT, 0, P(breaker_min_calls), 0, 1, COUNT_MAX, "20", NULL, "calls in the window below which the ratio says nothing"},
    {"downstreams.*.breaker.consecutive", HFI_KEY_COUNT, 0, P(breaker_consecutive), 0, 0, COUNT_MAX, "0", NULL, "failures in a row that open it; 0 = off"},
    {"downstreams.*.breaker.slow_ratio", HFI_KEY_NUMBER, 0, P(breaker_slow_ratio), 0, 0, 1, "0", NULL, "share of slow calls that opens it; 0 = off"},
    {"downstreams.*.breaker.slow_after", HFI_KEY_DURATION, 0, P(breaker_slow_after_ms), 0, 0, DAY, "0s", NULL, "what slow means; with slow_ratio only"},
    {"downstreams.*.breaker.break", HFI_KEY_DURATION, 0, P(breaker_break_ms), 0, 1, 30 * DAY, "5s", NULL, "first break"},
    {"downstreams.*.breaker.max_break", HFI_KEY_DURATION, 0, P(breaker_max_break_ms), 0, 1, 30 * DAY, "60s", NULL, "longest break"},
    {"downstreams.*.breaker.break_factor", HFI_KEY_NUMBER, 0, P(breaker_break_factor), 0, 1, 1000, "2", NULL, "growth from break to break"},
    {"downstreams.*.breaker.break_jitter", HFI_KEY_NUMBER, 0, P(breaker_break_jitter), 0, 0, 1, "0.1", NULL, "share of a break that is spread"},
    {"downstreams.*.breaker.probes", HFI_KEY_COUNT, 0, P(breaker_probes), 0, 1, 16, "3", NULL, "attempts that test a downstream after a break, at most at once"},
    {"downstreams.*.breaker.tolerated", HFI_KEY_COUNT, 0, P(breaker_tolerated), 0, 0, 15, "0", NULL, "failed probes that still close it"},
    {"downstreams.*.breaker.ramp", HFI_KEY_DURATION, 0, P(breaker_ramp_ms), 0, 0, DAY, "10s", NULL, "time in which traffic comes back after it closed; 0s = none"},
    {"downstreams.*.breaker.lease", HFI_KEY_DURATION, HFI_KEY_COMPUTED, P(breaker_lease_ms), 0, 1, DAY, "attempt_timeout + 10s", NULL, "a permit unreported for so long is a lost probe"},
    {"downstreams.*.bulkhead", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "bounds the attempts at once"},
    {"downstreams.*.bulkhead.max", HFI_KEY_COUNT, 0, P(bulkhead_max), 0, 1, 100000, "64", NULL, "attempts in flight"},
    {"downstreams.*.bulkhead.queue", HFI_KEY_COUNT, 0, P(bulkhead_queue), 0, 0, 1000000, "0", NULL, "calls that may wait for a place; the wait counts against the total"},
    {"downstreams.*.rate", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "bounds the attempts of a span t to burst + limit x t"},
    {"downstreams.*.rate.limit", HFI_KEY_RATE, 0, P(rate_per_s), 0, 0, 1000000, "0/s", NULL, "attempts; 0/s = off. Above it calls are refused as rate.limited, or wait in bulkhead.queue"},
    {"downstreams.*.rate.burst", HFI_KEY_COUNT, HFI_KEY_COMPUTED, P(rate_burst), 0, 1, 100000000, "a tenth of a second's worth, at least 1", NULL, "attempts that may start at once after a pause"},
    {"downstreams.*.on_open", HFI_KEY_CHOICE, 0, D(on_open), 0, 0, 0, "park", "park|fail", "jobs while the breaker is open: keep them, or fail them along their curve"},
    {"downstreams.*.give_up_after", HFI_KEY_DURATION, 0, P(give_up_after_ms), 0, 1, 3650 * DAY, "24h", NULL, "a job kept back so long is dead"},
    {"downstreams.*.declared_rate", HFI_KEY_RATE, 0, P(declared_rate), 0, 0, 10000000, "0/s", NULL, "calls you expect, for `check` only; 0/s = unknown"},
    {"downstreams.*.latency", HFI_KEY_CHOICE, 0, D(latency), 0, 0, 0, "exact", "exact|coarse", "timing of guarded functions: to the microsecond, or cheaper to a few ms"},
    {"downstreams.*.probe", HFI_KEY_MAP, HFI_KEY_OWN, 0, 0, 0, 0, NULL, NULL, "a cheap request that tests the downstream after a break, while jobs are parked; without it jobs do"},
    {"downstreams.*.probe.path", HFI_KEY_TEXT, HFI_KEY_REQUIRED, D(probe_path), 0, 0, 0, NULL, NULL, "path of a GET below the url"},
    {"downstreams.*.headers", HFI_KEY_HEADERS, HFI_KEY_OWN, D(headers), 0, 0, 0, NULL, NULL, "sent with every call; values may be ${ENV} or file:PATH and are never shown"},
    {"downstreams.*.ca_file", HFI_KEY_TEXT, HFI_KEY_COMPUTED, D(ca_file), 0, 0, 0, "the system's", NULL, "certificates to trust, PEM, beside this file if not absolute; certificate and name are always checked"},
    {"downstreams.*.client_cert", HFI_KEY_TEXT, HFI_KEY_COMPUTED | HFI_KEY_OWN, D(client_cert), 0, 0, 0, "none", NULL, "PEM file of our certificate and its chain, for a downstream that asks for one"},
    {"downstreams.*.client_key", HFI_KEY_TEXT, HFI_KEY_COMPUTED | HFI_KEY_OWN, D(client_key), 0, 0, 0, "none", NULL, "PEM file of its key, without a passphrase; may be the same file"},
    {"downstreams.*.tls_min", HFI_KEY_CHOICE, 0, D(tls_min), 0, 0, 0, "1.2", "1.2|1.3", "oldest TLS that is spoken"},
    {"downstreams.*.http2", HFI_KEY_SWITCH, 0, D(http2), 0, 0, 0, "false", NULL, "HTTP/2 where an https downstream offers it"},
    {"downstreams.*.proxy", HFI_KEY_SECRET, HFI_KEY_COMPUTED, D(proxy), 0, 0, 0, "none", NULL, "http://[user:password@]host:port; may be ${ENV} or file:PATH and is never shown; the environment's is never used"},
    {"downstreams.*.redirects", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "without it a 3xx is an outcome"},
    {"downstreams.*.redirects.max", HFI_KEY_COUNT, 0, D(redirects_max), 0, 0, 5, "0", NULL, "redirects one attempt follows, each a request that counts; 301 and 302 for GET and HEAD only"},
    {"downstreams.*.redirects.other_hosts", HFI_KEY_SWITCH, 0, D(redirects_other_hosts), 0, 0, 0, "false", NULL, "follow to another scheme, host or port too, without our headers and certificate; never from https to http"},
    {"downstreams.*.response_limit", HFI_KEY_SIZE, 0, D(response_limit), 0, 1, 1073741824, "1MiB", NULL, "largest answer, after decoding"},
    {"downstreams.*.rules", HFI_KEY_LIST, 0, D(rules), sizeof(struct hfi_rule_setting), 0, 0, NULL, "rule", "own rules on answers and failures, before the built-in tables; the first that matches decides"},
    {"downstreams.*.header_limit", HFI_KEY_SIZE, 0, D(header_limit), 0, 1, 262144, "64KiB", NULL, "largest headers of an answer, all lines together"},
    {"downstreams.*.accept_compressed", HFI_KEY_SWITCH, 0, D(accept_compressed), 0, 0, 0, "false", NULL, "ask for gzip or deflate and decode it; response_limit counts what comes out"},
    {"downstreams.*.private_networks", HFI_KEY_CHOICE, 0, D(private_networks), 0, 0, 0, "allow", "allow|deny", "deny: connect to public addresses only, whatever a name resolves to; for urls that strangers chose"},
    {"downstreams.*.signing", HFI_KEY_MAP, HFI_KEY_OWN, 0, 0, 0, 0, NULL, NULL, "sign every request as Standard Webhooks do: webhook-id, webhook-timestamp, webhook-signature"},
    {"downstreams.*.signing.secret", HFI_KEY_SECRETS, HFI_KEY_REQUIRED, D(signing_secrets), 0, 0, 0, NULL, NULL, "whsec_ and base64, or plain text of 16 to 512 bytes; a list signs with each while one is exchanged; may be ${ENV} or file:PATH and is never shown"},
    {"downstreams.*.send_attempt", HFI_KEY_SWITCH, 0, D(send_attempt), 0, 0, 0, "false", NULL, "send Holdfast-Attempt: which attempt of its call this is, from 1"},
    {"downstreams.*.send_remaining_time", HFI_KEY_SWITCH, 0, D(send_remaining_time), 0, 0, 0, "false", NULL, "send Holdfast-Timeout-Ms: what is left of the total"},
    {"rule.name", HFI_KEY_TEXT, HFI_KEY_REQUIRED, R(name), 0, 0, 0, NULL, NULL, "letters, digits, - and _; outcomes that it decides show it as rule.NAME"},
    {"rule.status", HFI_KEY_STATUSES, 0, R(status), 0, 0, 0, NULL, NULL, "matches answers with this status; all that a rule names has to match"},
    {"rule.error_type", HFI_KEY_TEXT, 0, R(error_type), 0, 0, 0, NULL, NULL, "matches failures of this type, by dotted prefix: http.503, curl, timeout"},
    {"rule.method", HFI_KEY_TEXT, 0, R(method), 0, 0, 0, NULL, NULL, "matches requests of this method"},
    {"rule.header", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "matches answers with this header"},
    {"rule.header.name", HFI_KEY_TEXT, HFI_KEY_REQUIRED, R(header_name), 0, 0, 0, NULL, NULL, "its name"},
    {"rule.header.value", HFI_KEY_TEXT, 0, R(header_value), 0, 0, 0, NULL, NULL, "its whole value, or the beginning of it with a * behind; any value without this key"},
    {"rule.body", HFI_KEY_TEXT, 0, R(body), 0, 0, 0, NULL, NULL, "matches answers with this text in the first bytes of their body"},
    {"rule.body_within", HFI_KEY_COUNT, 0, R(body_within), 0, 1, HF_RULE_BODY_MAX, "4096", NULL, "how many bytes of the body are looked at; the length of the text itself: the body begins with it"},
    {"rule.class", HFI_KEY_CHOICE, 0, R(klass), 0, 0, 0, NULL, "ok|transient|permanent|poison", "what it is for the job; without this key as the tables say"},
    {"rule.retry", HFI_KEY_CHOICE, 0, R(retry), 0, 0, 0, NULL, "none|now|fresh|later", "may the call try again; all but none need class transient"},
    {"rule.breaker", HFI_KEY_CHOICE, 0, R(breaker), 0, 0, 0, NULL, "success|failure|neutral", "what it is for the breaker"},
    {"downstreams.*.faults", HFI_KEY_LIST, 0, D(faults), sizeof(struct hfi_fault_setting), 0, 0, NULL, "fault", "faults to inject into attempts, for tests and game days; the first that strikes is the only one. Needs allow_fault_injection"},
    {"fault.kind", HFI_KEY_CHOICE, HFI_KEY_REQUIRED, F(kind), 0, 0, 0, NULL, "delay|status|reset|drop", "delay: it starts later; status: an answer without asking; reset: the connection; drop: no answer until a limit"},
    {"fault.status", HFI_KEY_COUNT, 0, F(status), 0, 200, 599, NULL, NULL, "of kind status"},
    {"fault.delay", HFI_KEY_DURATION, 0, F(delay_ms), 0, 1, DAY, NULL, NULL, "of kind delay: how long; of the others: they strike so late"},
    {"fault.share", HFI_KEY_NUMBER, 0, F(share), 0, 0, 1, "1", NULL, "of the attempts, above 0"},
    {"fault.every", HFI_KEY_DURATION, 0, F(every_ms), 0, 1, 30 * DAY, NULL, NULL, "only in the first `for` of each so long, counted from the first attempt"},
    {"fault.for", HFI_KEY_DURATION, 0, F(for_ms), 0, 1, 30 * DAY, NULL, NULL, "with every"},
    {"queues", HFI_KEY_ITEMS, 0, S(queues), sizeof(struct hfi_queue_setting), 0, 0, NULL, NULL, "where jobs wait; one that is not here has the defaults"},
    {"queues.*.order", HFI_KEY_INTEGER, 0, Q(order), 0, -1000000, 1000000, "100", NULL, "lower ones first, strictly"},
    {"queues.*.weight", HFI_KEY_COUNT, 0, Q(weight), 0, 1, 10000, "1", NULL, "share among queues of the same order"},
    {"queues.*.concurrency", HFI_KEY_COUNT, HFI_KEY_COMPUTED, Q(concurrency), 0, 1, 100000, "shares node.workers", NULL, "jobs at once, reserved on each node"},
    {"queues.*.global_concurrency", HFI_KEY_COUNT, HFI_KEY_COMPUTED, Q(global_concurrency), 0, 1, 1000000, "no bound", NULL, "jobs at once in the whole store, all nodes together (jobs: a process that escapes from its job is not counted); say the same on every node"},
    {"queues.*.aging", HFI_KEY_DURATION, HFI_KEY_NONE, Q(aging_ms), 0, 1, LONG, "none", NULL, "a due job counts one priority higher for each so long that it has waited; among jobs of one type and limit key"},
    {"queues.*.max_executions", HFI_KEY_COUNT, HFI_KEY_COMPUTED, Q(curve.executions), 0, 1, 10000, "the defaults'", NULL, "as defaults.max_executions"},
    {"queues.*.retries", HFI_KEY_INTEGER, HFI_KEY_COMPUTED, Q(curve.retries), 0, 0, 9999, NULL, NULL, "as defaults.retries"},
    {"queues.*.curve", HFI_KEY_CURVE, HFI_KEY_COMPUTED, Q(curve), 0, 0, 0, "the defaults'", NULL, "as defaults.curve; replaces the whole policy"},
    {"limits", HFI_KEY_ITEMS, 0, S(limits), sizeof(struct hfi_limit_setting), 0, 0, NULL, NULL, "limits by key, for jobs enqueued with --limit NAME:KEY: each key has these of its own, in the whole store; say the same on every node"},
    {"limits.*.concurrency", HFI_KEY_COUNT, HFI_KEY_COMPUTED, L(concurrency), 0, 1, 1000000, "no bound", NULL, "jobs of one key at once, on all nodes together"},
    {"limits.*.rate", HFI_KEY_RATE, HFI_KEY_COMPUTED, L(rate), 0, 1.0 / 2592000, 10000, "no bound", NULL, "starts of jobs of one key"},
    {"limits.*.burst", HFI_KEY_COUNT, HFI_KEY_COMPUTED, L(burst), 0, 1, 100000000, "a tenth of a second's worth, at least 1", NULL, "starts at once after a pause; needs rate"},
    {"jobs", HFI_KEY_ITEMS, 0, S(jobs), sizeof(struct hfi_job_setting), 0, 0, NULL, NULL, "job types by name"},
    {"jobs.*.kind", HFI_KEY_CHOICE, HFI_KEY_REQUIRED, J(kind), 0, 0, 0, NULL, "http|exec|noop|plugin", "http: a call of a downstream with the payload as its body; exec: a command with the payload on stdin; plugin: a handler in a shared object; noop: nothing, for benchmarks"},
    {"jobs.*.queue", HFI_KEY_TEXT, 0, J(queue), 0, 0, 0, "default", NULL, "queue of jobs that name none"},
    {"jobs.*.schema", HFI_KEY_TEXT, 0, J(schema), 0, 0, 0, "", NULL, "which form of payload its handler reads, in a few characters; kept with jobs that are quarantined"},
    {"jobs.*.release_quarantined", HFI_KEY_SWITCH, 0, J(release_quarantined), 0, 0, 0, "false", NULL, "a node that starts, or is told to reload, lets quarantined jobs in again by itself: of a type that nobody had known, or that nobody could read under another schema"},
    {"jobs.*.labels", HFI_KEY_TEXT, 0, J(labels), 0, 0, 0, "", NULL, "comma separated, of the type; for those who watch"},
    {"jobs.*.repeatable", HFI_KEY_SWITCH, 0, J(repeatable), 0, 0, 0, "true", NULL, "false: never executed again unless nothing was sent"},
    {"jobs.*.execution_timeout", HFI_KEY_DURATION, HFI_KEY_NONE | HFI_KEY_COMPUTED, J(execution_timeout_ms), 0, 1, LONG, "the defaults'", NULL, "limit of one execution; none switches it off"},
    {"jobs.*.heartbeat_timeout", HFI_KEY_DURATION, HFI_KEY_NONE | HFI_KEY_COMPUTED, J(heartbeat_timeout_ms), 0, 10, LONG, "none", NULL, "plugin: a handler that says nothing for so long has lost its job; shorter than execution_timeout"},
    {"jobs.*.abandon_after", HFI_KEY_DURATION, HFI_KEY_NONE | HFI_KEY_COMPUTED, J(abandon_after_ms), 0, 1, LONG, "the node's", NULL, "plugin, not isolated: as node.abandon_after"},
    {"jobs.*.payload", HFI_KEY_CHOICE, 0, J(payload), 0, 0, 0, "bytes", "bytes|text|json", "what payloads are: text is UTF-8 without NUL, json has each name of an object once; others are quarantined instead of started"},
    {"jobs.*.max_executions", HFI_KEY_COUNT, HFI_KEY_COMPUTED, J(curve.executions), 0, 1, 10000, "the queue's", NULL, "as defaults.max_executions"},
    {"jobs.*.retries", HFI_KEY_INTEGER, HFI_KEY_COMPUTED, J(curve.retries), 0, 0, 9999, NULL, NULL, "as defaults.retries"},
    {"jobs.*.curve", HFI_KEY_CURVE, HFI_KEY_COMPUTED, J(curve), 0, 0, 0, "the queue's", NULL, "as defaults.curve; replaces the whole policy"},
    {"jobs.*.never_retry", HFI_KEY_TEXTS, 0, J(never_retry), 0, 0, 0, "[]", NULL, "as defaults.never_retry, besides those"},
    {"jobs.*.downstream", HFI_KEY_TEXT, 0, J(downstream), 0, 0, 0, NULL, NULL, "http: what is called; required there"},
    {"jobs.*.method", HFI_KEY_TEXT, 0, J(method), 0, 0, 0, "POST", NULL, "http: the method"},
    {"jobs.*.path", HFI_KEY_TEXT, 0, J(path), 0, 0, 0, "", NULL, "http: appended to the downstream's url, starts with /; {name} is a top-level field of the payload, percent-encoded, also in query and, as it is, in headers"},
    {"jobs.*.query", HFI_KEY_SECRET, 0, J(query), 0, 0, 0, NULL, NULL, "http: behind the path, without the ?; may be ${ENV} or file:PATH and is never shown"},
    {"jobs.*.url", HFI_KEY_TEXT, 0, J(url), 0, 0, 0, NULL, NULL, "http at a per_host downstream, and needed there: usually \"{url}\", a field of the payload; in place of path and query"},
    {"jobs.*.body_field", HFI_KEY_TEXT, 0, J(body_field), 0, 0, 0, NULL, NULL, "http: the field of the payload that is the body: a text as it is, others as JSON; without this key the payload is, as it is"},
    {"jobs.*.headers", HFI_KEY_HEADERS, 0, J(headers), 0, 0, 0, NULL, NULL, "http: sent besides the downstream's"},
    {"jobs.*.rules", HFI_KEY_LIST, 0, J(rules), sizeof(struct hfi_rule_setting), 0, 0, NULL, "rule", "http: own rules for these jobs, before those of the downstream"},
    {"jobs.*.idempotency_key", HFI_KEY_SWITCH, 0, J(send_key), 0, 0, 0, "true", NULL, "http: send the job's key as Idempotency-Key"},
    {"jobs.*.command", HFI_KEY_TEXTS, 0, J(command), 0, 0, 0, NULL, NULL, "exec: absolute path and arguments, no shell; required there"},
    {"jobs.*.environment", HFI_KEY_TEXTS, 0, J(environment), 0, 0, 0, "[]", NULL, "exec, isolated plugin: NAME=value, or NAME to hand it on; nothing else is there"},
    {"jobs.*.directory", HFI_KEY_TEXT, HFI_KEY_COMPUTED, J(directory), 0, 0, 0, "/", NULL, "exec, isolated plugin: where it runs, absolute"},
    {"jobs.*.kill_grace", HFI_KEY_DURATION, 0, J(kill_grace_ms), 0, 0, HOUR, "5s", NULL, "exec, isolated plugin: between TERM and KILL"},
    {"jobs.*.rlimits", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "exec, isolated plugin: limits of each process, as setrlimit(2) has them; never above the node's own"},
    {"jobs.*.rlimits.memory", HFI_KEY_SIZE, HFI_KEY_COMPUTED, J(max_memory), 0, 1048576, 1.0e15, "the node's", NULL, "address space"},
    {"jobs.*.rlimits.cpu", HFI_KEY_DURATION, HFI_KEY_COMPUTED, J(max_cpu_ms), 0, 1, LONG, "the node's", NULL, "processor time, rounded up to seconds: SIGXCPU, a second later SIGKILL"},
    {"jobs.*.rlimits.files", HFI_KEY_COUNT, HFI_KEY_COMPUTED, J(max_files), 0, 8, 1000000, "the node's", NULL, "open descriptors"},
    {"jobs.*.rlimits.processes", HFI_KEY_COUNT, HFI_KEY_COMPUTED, J(max_processes), 0, 1, 1000000, "the node's", NULL, "processes of its user in all; root is not bound by it"},
    {"jobs.*.library", HFI_KEY_TEXT, 0, J(library), 0, 0, 0, NULL, NULL, "plugin: absolute path of the shared object, see holdfast/plugin.h; required there"},
    {"jobs.*.isolate", HFI_KEY_CHOICE, 0, J(isolate), 0, 0, 0, "none", "none|process", "plugin: process: each execution in a process of its own, which is killed at its limit and may crash"},
    {"outboxes", HFI_KEY_ITEMS, 0, S(outboxes), sizeof(struct hfi_outbox_setting), 0, 0, NULL, NULL, "tables holdfast_outbox in SQLite files of applications, whose rows become jobs here"},
    {"outboxes.*.file", HFI_KEY_TEXT, HFI_KEY_REQUIRED, O(file), 0, 0, 0, NULL, NULL, "the application's file, beside this file if not absolute; or sqlite:PATH. Looked for again while it is not there"},
    {"outboxes.*.source", HFI_KEY_TEXT, HFI_KEY_COMPUTED, O(source), 0, 0, 0, "the outbox's name", NULL, "source of rows that name none; the same on every node that relays the file, or rows run twice"},
    {"outboxes.*.poll", HFI_KEY_DURATION, 0, O(poll_ms), 0, 10, HOUR, "250ms", NULL, "longest sleep before the file is looked at again; writes wake it earlier where the system tells of them"},
    {"retention", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "how long what has ended is kept; a node prunes once a minute, so shorter times wait for that"},
    {"retention.succeeded", HFI_KEY_DURATION, HFI_KEY_NONE, S(keep_succeeded_ms), 0, 0, LONG, "7d", NULL, "succeeded jobs; none = for ever, here and below"},
    {"retention.cancelled", HFI_KEY_DURATION, HFI_KEY_NONE, S(keep_cancelled_ms), 0, 0, LONG, "7d", NULL, "cancelled jobs"},
    {"retention.dead", HFI_KEY_DURATION, HFI_KEY_NONE, S(keep_dead_ms), 0, 0, LONG, "30d", NULL, "dead jobs; their dead letters stay"},
    {"retention.quarantined", HFI_KEY_DURATION, HFI_KEY_NONE, S(keep_quarantined_ms), 0, 0, LONG, "30d", NULL, "quarantined jobs; their dead letters stay"},
    {"retention.dead_letters", HFI_KEY_DURATION, HFI_KEY_NONE, S(keep_dead_letters_ms), 0, 0, LONG, "90d", NULL, "dead letters that are redriven, resolved or discarded; others are never pruned"},
    {"retention.inbox", HFI_KEY_DURATION, HFI_KEY_NONE, S(keep_inbox_ms), 0, 0, LONG, "30d", NULL, "ids of messages of other systems, against second deliveries"},
    {"retention.audit", HFI_KEY_DURATION, HFI_KEY_NONE, S(keep_audit_ms), 0, 0, LONG, "365d", NULL, "who cancelled, requeued, redrove, settled, paused or isolated what, and why"},
    {"forward", HFI_KEY_LIST, 0, S(forwards), sizeof(struct hfi_forward_setting), 0, 0, NULL, "forwarder", "copies of deaths that go elsewhere, each a job of its own; the dead letter stays, and says where it went. A copy that dies is never forwarded; all that match make one"},
    {"forwarder.name", HFI_KEY_TEXT, HFI_KEY_COMPUTED, W(name), 0, 0, 0, "from, else queue, else type", NULL, "what its copies and counters are called: job type holdfast.forward.NAME, but for those to a queue"},
    {"forwarder.from", HFI_KEY_TEXT, HFI_KEY_COMPUTED, W(source), 0, 0, 0, "any", NULL, "takes deaths of this source: an outbox's, or as enqueued. Jobs enqueued by hand have none"},
    {"forwarder.queue", HFI_KEY_TEXT, HFI_KEY_COMPUTED, W(queue), 0, 0, 0, "any", NULL, "takes deaths in this queue"},
    {"forwarder.type", HFI_KEY_TEXT, HFI_KEY_COMPUTED, W(type), 0, 0, 0, "any", NULL, "takes deaths of this job type"},
    {"forwarder.class", HFI_KEY_CHOICE, HFI_KEY_COMPUTED, W(death_class), 0, 0, 0, "any", "transient_exhausted|permanent|poison", "takes deaths of this class"},
    {"forwarder.of", HFI_KEY_CHOICE, 0, W(of), 0, 0, 0, "dead", "dead|quarantined|messages", "dead: jobs that ran; quarantined: jobs that never did; messages: rows of an outbox that could not become a job"},
    {"forwarder.to", HFI_KEY_MAP, HFI_KEY_REQUIRED, 0, 0, 0, 0, NULL, NULL, "where the copy goes: a queue, a downstream or a command"},
    {"forwarder.to.queue", HFI_KEY_TEXT, 0, W(to_queue), 0, 0, 0, NULL, NULL, "a job in this queue, one of queues"},
    {"forwarder.to.type", HFI_KEY_TEXT, HFI_KEY_COMPUTED, W(to_type), 0, 0, 0, "the dead job's", NULL, "with queue: its job type, one of jobs"},
    {"forwarder.to.downstream", HFI_KEY_TEXT, 0, W(downstream), 0, 0, 0, NULL, NULL, "a call of this downstream, the payload as its body"},
    {"forwarder.to.method", HFI_KEY_TEXT, 0, W(method), 0, 0, 0, "POST", NULL, "with downstream"},
    {"forwarder.to.path", HFI_KEY_TEXT, 0, W(path), 0, 0, 0, "", NULL, "with downstream: appended to its url, starts with /"},
    {"forwarder.to.command", HFI_KEY_TEXTS, 0, W(command), 0, 0, 0, NULL, NULL, "a process: absolute path and arguments; the payload on stdin, HOLDFAST_DEAD_LETTER and HOLDFAST_ERROR_TYPE in its environment"},
    {"forwarder.error_header", HFI_KEY_SWITCH, 0, W(error_header), 0, 0, 0, "false", NULL, "to a downstream: send Holdfast-Error, the error's type alone, and Holdfast-Dead-Letter, its id"},
    {"forwarder.max_executions", HFI_KEY_COUNT, HFI_KEY_COMPUTED, W(curve.executions), 0, 1, 10000, "the defaults'", NULL, "as defaults.max_executions, of the copy; not to a queue"},
    {"forwarder.retries", HFI_KEY_INTEGER, HFI_KEY_COMPUTED, W(curve.retries), 0, 0, 9999, NULL, NULL, "as defaults.retries"},
    {"forwarder.curve", HFI_KEY_CURVE, HFI_KEY_COMPUTED, W(curve), 0, 0, 0, "the defaults'", NULL, "as defaults.curve"},
    {"alerts", HFI_KEY_ITEMS, 0, S(alerts), sizeof(struct hfi_alert_setting), 0, 0, NULL, NULL, "who hears of every death; each has one of webhook, mail, command"},
    {"alerts.*.collapse", HFI_KEY_DURATION, HFI_KEY_NONE, A(collapse_ms), 0, 0, DAY, "10m", NULL, "deaths of one cause within it are one alert at once and one summary at its end; besides at most 20 alerts a minute, then a digest. none or 0s: an alert per death"},
    {"alerts.*.webhook", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "one POST of JSON with `text` and `content`; the error type, never its message"},
    {"alerts.*.webhook.url", HFI_KEY_SECRET, HFI_KEY_REQUIRED, A(url), 0, 0, 0, NULL, NULL, "http or https; may be ${ENV} or file:PATH and is never shown"},
    {"alerts.*.webhook.text", HFI_KEY_TEXT, 0, A(webhook_text), 0, 0, 0, NULL, NULL, "in place of the built-in text; {type} {queue} {downstream} {error_type} {class} {job} {dead_letter} {death_no} {executions} {correlation_id} {dead_at} {sink} {id} {deaths} and {summary}, which is the built-in text"},
    {"alerts.*.webhook.signing", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "sign each request as Standard Webhooks do"},
    {"alerts.*.webhook.signing.secret", HFI_KEY_SECRETS, HFI_KEY_REQUIRED, A(signing_secrets), 0, 0, 0, NULL, NULL, "as downstreams.*.signing.secret"},
    {"alerts.*.webhook.private_networks", HFI_KEY_CHOICE, 0, A(private_networks), 0, 0, 0, "allow", "allow|deny", "deny: connect to public addresses only"},
    {"alerts.*.webhook.timeout", HFI_KEY_DURATION, 0, A(webhook_timeout_ms), 0, 1, HOUR, "10s", NULL, "limit of one try"},
    {"alerts.*.mail", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "one mail, with the error's message"},
    {"alerts.*.mail.server", HFI_KEY_TEXT, HFI_KEY_REQUIRED, A(server), 0, 0, 0, NULL, NULL, "smtp://host:587 (STARTTLS) or smtps://host"},
    {"alerts.*.mail.from", HFI_KEY_TEXT, HFI_KEY_REQUIRED, A(from), 0, 0, 0, NULL, NULL, "one plain address"},
    {"alerts.*.mail.to", HFI_KEY_TEXTS, HFI_KEY_REQUIRED, A(to), 0, 0, 0, NULL, NULL, "plain addresses, up to 100"},
    {"alerts.*.mail.user", HFI_KEY_TEXT, 0, A(user), 0, 0, 0, NULL, NULL, "for AUTH; needs password"},
    {"alerts.*.mail.password", HFI_KEY_SECRET, 0, A(password), 0, 0, 0, NULL, NULL, "for AUTH; may be ${ENV} or file:PATH, is never shown and never sent in plain text"},
    {"alerts.*.mail.tls", HFI_KEY_CHOICE, 0, A(mail_tls), 0, 0, 0, "required", "required|opportunistic|none", "STARTTLS on smtp://"},
    {"alerts.*.mail.ca_file", HFI_KEY_TEXT, HFI_KEY_COMPUTED, A(ca_file), 0, 0, 0, "the system's", NULL, "PEM file of the authorities that the server's certificate may come from"},
    {"alerts.*.mail.subject", HFI_KEY_TEXT, 0, A(subject), 0, 0, 0, NULL, NULL, "in place of the built-in subject; fields as webhook.text, and {message}"},
    {"alerts.*.mail.text", HFI_KEY_TEXT, 0, A(mail_text), 0, 0, 0, NULL, NULL, "in place of the built-in text; fields as webhook.text, and {message}"},
    {"alerts.*.mail.timeout", HFI_KEY_DURATION, 0, A(mail_timeout_ms), 0, 1, HOUR, "10s", NULL, "limit of one try"},
    {"alerts.*.command", HFI_KEY_MAP, 0, 0, 0, 0, 0, NULL, NULL, "a process with the alert as JSON on stdin; exit 0 is delivered"},
    {"alerts.*.command.run", HFI_KEY_TEXTS, HFI_KEY_REQUIRED, A(command), 0, 0, 0, NULL, NULL, "absolute path and arguments, no shell; fields in arguments as webhook.text"},
    {"alerts.*.command.detail", HFI_KEY_SWITCH, 0, A(detail), 0, 0, 0, "false", NULL, "hand over the error's message as well, as `message` and {message}"},
    {"alerts.*.command.timeout", HFI_KEY_DURATION, 0, A(command_timeout_ms), 0, 1, HOUR, "10s", NULL, "limit of one try; then it is killed"},
};
const size_t hfi_key_count = sizeof hfi_keys / sizeof *hfi_keys;

const char *hfi_key_name(const struct hfi_key *key) {
    const char *dot = strrchr(key->path, '.');
    return dot ? dot + 1 : key->path;
}

bool hfi_key_is_below(const struct hfi_key *key, const char *prefix) {
    size_t length = strlen(prefix);
    if (length == 0)
        return !strchr(key->path, '.');
    return strncmp(key->path, prefix, length) == 0 && key->path[length] == '.' && !strchr(key->path + length + 1, '.');
}

const struct hfi_key *hfi_key_find(const char *prefix, const char *name) {
    for (size_t i = 0; i < hfi_key_count; i++)
        if (hfi_key_is_below(&hfi_keys[i], prefix) && strcmp(hfi_key_name(&hfi_keys[i]), name) == 0)
            return &hfi_keys[i];
    return NULL;
}

static const char *type_name(enum hfi_key_type type) {
    static const char *const names[] = {"map", "map of names", "text", "secret text", "URL", "duration", "size", "whole number",
                                        "whole number", "number", "rate", "true or false", "", "list of texts",
                                        "list of durations", "map of texts", "list of durations or map", "map of the keys of",
                                        "list of maps with the keys of ", "HTTP status or range such as 500-599",
                                        "secret text or list of them"};
    return names[type];
}

char *hfi_key_describe(const struct hfi_key *key, char *text) {
    char low[HF_DURATION_LENGTH], high[HF_DURATION_LENGTH];
    int at = snprintf(text, 160, "%s", type_name(key->type));
    if (key->type == HFI_KEY_LIKE)
        at += snprintf(text + at, (size_t)(160 - at), " %s.*", key->choices);
    if (key->type == HFI_KEY_LIST)
        snprintf(text + at, (size_t)(160 - at), "`%s`", key->choices);
    for (const char *from = key->type == HFI_KEY_CHOICE ? key->choices : ""; *from && at < 150; from++)
        at += *from == '|' ? snprintf(text + at, (size_t)(160 - at), ", ") : snprintf(text + at, (size_t)(160 - at), "%c", *from);
    if (key->type == HFI_KEY_DURATION)
        at += snprintf(text + at, (size_t)(160 - at), " %s to %s", hf_duration_print((int64_t)key->min, low),
                       hf_duration_print((int64_t)key->max, high));
    else if (key->type == HFI_KEY_NUMBER || key->type == HFI_KEY_INTEGER || key->type == HFI_KEY_COUNT)
        at += snprintf(text + at, (size_t)(160 - at), " %.10g to %.10g", key->min, key->max);
    if (key->traits & HFI_KEY_NONE)
        at += snprintf(text + at, (size_t)(160 - at), " or none");
    if (key->type == HFI_KEY_DURATION && key->choices)
        at += snprintf(text + at, (size_t)(160 - at), " or %s", key->choices);
    return text;
}

char *hfi_key_doc(const struct hfi_key *key, char *text) {
    size_t at = (size_t)snprintf(text, HFI_KEY_DOC, "%s", key->doc), left = 0, seen = 0;
    char prefix[64];
    if (key->type != HFI_KEY_LIKE)
        return text;
    snprintf(prefix, sizeof prefix, "%s.*", key->choices);
    for (size_t i = 0; i < hfi_key_count; i++)
        left += hfi_keys[i].traits & HFI_KEY_OWN && hfi_key_is_below(&hfi_keys[i], prefix);
    for (size_t i = 0; i < hfi_key_count && at < HFI_KEY_DOC; i++)
        if (hfi_keys[i].traits & HFI_KEY_OWN && hfi_key_is_below(&hfi_keys[i], prefix))
            at += (size_t)snprintf(text + at, HFI_KEY_DOC - at, "%s%s", seen++ == 0 ? "; not " : --left == 1 ? " and " : ", ",
                                   hfi_key_name(&hfi_keys[i]));
    return text;
}
