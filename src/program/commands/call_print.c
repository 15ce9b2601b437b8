/* SPDX-License-Identifier: MIT */
/* Prints how calls ended: one in full, many as counts by outcome with the spread of their times. The main thread's. */
#include "program/commands/call_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/memory.h"
#include "program/output.h"

void hfi_call_record_fill(struct hfi_call_record *record, const struct hf_response *response, int64_t now_us) {
    const struct hf_outcome *outcome = hf_response_outcome(response);
    record->took_us = now_us > record->started_us ? now_us - record->started_us : 0;
    record->kind = hf_outcome_get_kind(outcome);
    record->class_of = hf_outcome_get_class(outcome);
    record->verdict = hf_outcome_get_verdict(outcome);
    record->status = hf_response_status(response);
    record->attempts = hf_outcome_get_attempts(outcome);
    record->retries = hf_outcome_get_retries(outcome);
    record->retry_refused = hf_outcome_get_retry_refused(outcome);
    snprintf(record->error_type, sizeof record->error_type, "%s", hf_outcome_get_error_type(outcome));
    snprintf(record->message, sizeof record->message, "%s", hf_outcome_get_message(outcome));
    snprintf(record->rule, sizeof record->rule, "%s", hf_outcome_get_rule(outcome));
    record->resolve_us = hf_outcome_get_resolve_us(outcome);
    record->connect_us = hf_outcome_get_connect_us(outcome);
    record->tls_us = hf_outcome_get_tls_us(outcome);
    record->first_byte_us = hf_outcome_get_first_byte_us(outcome);
    record->total_us = hf_outcome_get_total_us(outcome);
    record->retry_after_ms = hf_outcome_get_retry_after_ms(outcome);
}

int hfi_call_exit(const struct hfi_call_record *records, size_t count) {
    size_t good = 0;
    for (size_t i = 0; i < count; i++)
        good += records[i].kind == HF_OUTCOME_SUCCESS;
    return good == count ? HFI_EXIT_OK : HFI_EXIT_FAILED;
}

static void phase(const char *label, int64_t us) {
    if (us >= 0)
        hfi_field(label, "%.3f ms", (double)us / 1000);
}

static void print_one(const struct hfi_call_record *record) {
    hfi_field("outcome", "%s", hf_outcome_kind_name(record->kind));
    if (record->status > 0)
        hfi_field("status", "%d", record->status);
    hfi_field("class", "%s", hf_class_name(record->class_of));
    hfi_field("error", "%s", record->error_type);
    hfi_field("message", "%s", record->message);
    hfi_field("rule", "%s", record->rule);
    hfi_field("attempts", "%u (%u retries%s)", record->attempts, record->retries, record->retry_refused ? ", one more refused by the budget" : "");
    if (record->retry_after_ms >= 0)
        hfi_field("retry after", "%lld ms", (long long)record->retry_after_ms);
    phase("took", record->took_us);
    phase("resolved", record->resolve_us);
    phase("connected", record->connect_us);
    phase("TLS done", record->tls_us);
    phase("first byte", record->first_byte_us);
    phase("last attempt", record->total_us);
}

static void phase_json(json_t *object, const char *key, int64_t us) {
    if (us >= 0)
        hfi_json_real(object, key, (double)us / 1000);
    else
        json_object_set_new(object, key, json_null());
}

static json_t *record_json(const struct hfi_call_record *record) {
    json_t *object = json_object(), *phases = json_object();
    hfi_json_text(object, "outcome", hf_outcome_kind_name(record->kind));
    hfi_json_number(object, "status", record->status);
    hfi_json_text(object, "class", hf_class_name(record->class_of));
    hfi_json_text(object, "breaker", hf_verdict_name(record->verdict));
    hfi_json_text(object, "error_type", record->error_type);
    hfi_json_text(object, "message", record->message);
    hfi_json_text(object, "rule", record->rule);
    hfi_json_number(object, "attempts", record->attempts);
    hfi_json_number(object, "retries", record->retries);
    hfi_json_flag(object, "retry_refused", record->retry_refused);
    if (record->retry_after_ms >= 0)
        hfi_json_number(object, "retry_after_ms", record->retry_after_ms);
    else
        json_object_set_new(object, "retry_after_ms", json_null());
    phase_json(object, "took_ms", record->took_us);
    phase_json(phases, "resolve_ms", record->resolve_us);
    phase_json(phases, "connect_ms", record->connect_us);
    phase_json(phases, "tls_ms", record->tls_us);
    phase_json(phases, "first_byte_ms", record->first_byte_us);
    phase_json(phases, "total_ms", record->total_us);
    json_object_set_new(object, "phases", phases);
    return object;
}

/* Calls that ended alike. */
struct sort_of {
    const struct hfi_call_record *first;
    size_t count, attempts;
};

static size_t sort(const struct hfi_call_record *records, size_t count, struct sort_of *sorts, size_t most) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < found && (sorts[j].first->kind != records[i].kind || sorts[j].first->status != records[i].status ||
                             strcmp(sorts[j].first->error_type, records[i].error_type) != 0))
            j++;
        if (j == most)
            continue;
        if (j == found)
            sorts[found++].first = &records[i];
        sorts[j].count++;
        sorts[j].attempts += records[i].attempts;
    }
    return found;
}

static int by_time(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* The phases of the attempts and, at the end, the whole of them, with the names they have in JSON. */
#define LATENCIES 5
struct latency {
    const char *name, *key;
    struct hf_latency_view of;
};

static void latencies(const struct hf_downstream_view *seen, struct latency rows[LATENCIES]) {
    rows[0] = (struct latency){"resolve", "resolve", seen->resolve};
    rows[1] = (struct latency){"connect", "connect", seen->connect};
    rows[2] = (struct latency){"TLS", "tls", seen->tls};
    rows[3] = (struct latency){"first byte", "first_byte", seen->first_byte};
    rows[4] = (struct latency){"whole attempt", "total", {seen->attempts, seen->p50_us, seen->p95_us, seen->p99_us}};
}

static void print_latencies(const struct hf_downstream_view *seen) {
    struct latency rows[LATENCIES];
    struct hfi_table *table = hfi_table_new("PHASE|>ATTEMPTS|>P50 MS|>P95 MS|>P99 MS");
    latencies(seen, rows);
    for (size_t i = 0; i < LATENCIES; i++) {
        if (rows[i].of.count == 0)
            continue;
        hfi_table_cell(table, "%s", rows[i].name);
        hfi_table_cell(table, "%llu", (unsigned long long)rows[i].of.count);
        hfi_table_cell(table, "%.3f", (double)rows[i].of.p50_us / 1000);
        hfi_table_cell(table, "%.3f", (double)rows[i].of.p95_us / 1000);
        hfi_table_cell(table, "%.3f", (double)rows[i].of.p99_us / 1000);
    }
    hfi_table_print(table);
}

static json_t *latencies_json(const struct hf_downstream_view *seen) {
    struct latency rows[LATENCIES];
    json_t *object = json_object();
    latencies(seen, rows);
    for (size_t i = 0; i < LATENCIES; i++) {
        json_t *one = json_object();
        hfi_json_number(one, "attempts", (int64_t)rows[i].of.count);
        phase_json(one, "p50_ms", rows[i].of.p50_us);
        phase_json(one, "p95_ms", rows[i].of.p95_us);
        phase_json(one, "p99_ms", rows[i].of.p99_us);
        json_object_set_new(object, rows[i].key, one);
    }
    return object;
}

static void print_many(const struct hfi_call_record *records, size_t count, const struct hf_downstream_view *seen) {
    struct sort_of sorts[32] = {{0}};
    size_t found = sort(records, count, sorts, 32);
    int64_t *times = hfi_grow(NULL, count * sizeof *times);
    struct hfi_table *table = hfi_table_new("OUTCOME|>STATUS|ERROR|>CALLS|>ATTEMPTS");
    for (size_t i = 0; i < found; i++) {
        hfi_table_cell(table, "%s", hf_outcome_kind_name(sorts[i].first->kind));
        hfi_table_cell(table, "%d", sorts[i].first->status);
        hfi_table_cell(table, "%s", sorts[i].first->error_type);
        hfi_table_cell(table, "%zu", sorts[i].count);
        hfi_table_cell(table, "%zu", sorts[i].attempts);
    }
    hfi_table_print(table);
    for (size_t i = 0; i < count; i++)
        times[i] = records[i].took_us;
    qsort(times, count, sizeof *times, by_time);
    hfi_say("took p50 %.3f ms, p95 %.3f ms, p99 %.3f ms, longest %.3f ms", (double)times[count / 2] / 1000,
            (double)times[count * 95 / 100] / 1000, (double)times[count * 99 / 100] / 1000, (double)times[count - 1] / 1000);
    hfi_release(times);
    print_latencies(seen);
}

static void print_many_json(const struct hfi_call_record *records, size_t count, const struct hf_downstream_view *seen) {
    json_t *object = json_object(), *items = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(items, record_json(&records[i]));
    json_object_set_new(object, "items", items);
    json_object_set_new(object, "next", json_null());
    json_object_set_new(object, "latency", latencies_json(seen));
    hfi_print_json(object);
}

int hfi_call_print(const struct hfi_call_record *records, size_t count, const struct hf_downstream_view *seen) {
    if (hfi_manner()->json && count == 1) {
        hfi_print_json(record_json(records));
    } else if (hfi_manner()->json) {
        print_many_json(records, count, seen);
    } else if (count == 1) {
        print_one(records);
    } else {
        print_many(records, count, seen);
    }
    return hfi_call_exit(records, count);
}
