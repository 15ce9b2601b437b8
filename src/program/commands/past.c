/* SPDX-License-Identifier: MIT */
/*
 * What happened to a job, step by step, and whom it waits for: as JSON, and as a timeline for people. Must never show
 * text from outside as it is: tables and JSON clean it. The main thread's.
 */
#include "program/commands/past.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/output.h"

#define LINE 1200

static const char *state_of(const struct hf_link_view *link) {
    return link->state < 0 ? "gone" : hf_job_state_name(link->state);
}

/* ------------------------------------------------------------------ JSON */

/* Microseconds as the milliseconds of the output. */
static void phase_json(json_t *object, const char *key, int64_t us) {
    if (us >= 0)
        hfi_json_real(object, key, (double)us / 1000);
    else
        json_object_set_new(object, key, json_null());
}

static json_t *step_json(const struct hf_history_view *entry) {
    json_t *object = json_object();
    hfi_json_number(object, "execution", entry->execution);
    hfi_json_text(object, "event", entry->event);
    hfi_json_text(object, "shown", entry->shown);
    hfi_json_time(object, "started_at", entry->started_at_us);
    hfi_json_time(object, "ended_at", entry->ended_at_us);
    hfi_json_text(object, "node", entry->node);
    hfi_json_text(object, "breaker", entry->breaker);
    hfi_json_text(object, "error_class", entry->error_class);
    hfi_json_text(object, "error_type", entry->error_type);
    hfi_json_text(object, "error_message", entry->error_message);
    hfi_json_text(object, "rule", entry->rule);
    hfi_json_number(object, "attempts", entry->attempts);
    hfi_json_number(object, "retries", entry->retries);
    phase_json(object, "resolve_ms", entry->resolve_us);
    phase_json(object, "connect_ms", entry->connect_us);
    phase_json(object, "tls_ms", entry->tls_us);
    phase_json(object, "first_byte_ms", entry->first_byte_us);
    phase_json(object, "total_ms", entry->total_us);
    hfi_json_time(object, "next_run_at", entry->next_run_at_us);
    return object;
}

static json_t *link_json(const struct hf_link_view *link) {
    json_t *object = json_object();
    hfi_json_number(object, "id", link->id);
    hfi_json_text(object, "state", state_of(link));
    hfi_json_text(object, "type", link->type);
    hfi_json_text(object, "on", link->on_end ? "ended" : "succeeded");
    return object;
}

void hfi_past_json(json_t *object, const struct hf_job *job) {
    json_t *parents = json_array(), *children = json_array(), *history = json_array();
    for (size_t i = 0; i < hf_job_link_count(job); i++) {
        const struct hf_link_view *link = hf_job_link_at(job, i);
        json_array_append_new(link->is_parent ? parents : children, link_json(link));
    }
    for (size_t i = 0; i < hf_job_history_count(job); i++)
        json_array_append_new(history, step_json(hf_job_history_at(job, i)));
    json_object_set_new(object, "parents", parents);
    json_object_set_new(object, "children", children);
    hfi_json_number(object, "child_count", (int64_t)hf_job_children(job));
    json_object_set_new(object, "history", history);
}

/* ------------------------------------------------------------------ for people */

/* Adds to the line what there is room for. */
static void say(char *line, const char *format, ...) HF_PRINTF(2, 3);
static void say(char *line, const char *format, ...) {
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, LINE - used, format, arguments);
    va_end(arguments);
}

static void say_phase(char *line, const char *name, int64_t us) {
    if (us >= 0)
        say(line, "%s%s %.1f ms", strstr(line, " ms") ? ", " : "; ", name, (double)us / 1000);
}

static void say_step(char *line, const struct hf_history_view *entry) {
    char next[HF_TIME_LENGTH];
    say(line, "%s", entry->event);
    if (*entry->error_type)
        say(line, " %s", entry->error_type);
    if (*entry->error_class || *entry->rule)
        say(line, " (%s%s%s%s)", entry->error_class, *entry->error_class && *entry->rule ? ", " : "",
            *entry->rule ? "rule " : "", entry->rule);
    if (*entry->error_message)
        say(line, ": %s", entry->error_message);
    if (entry->attempts > 0)
        say(line, "; %u %s, %u short %s", entry->attempts, entry->attempts == 1 ? "attempt" : "attempts", entry->retries,
            entry->retries == 1 ? "retry" : "retries");
    say_phase(line, "resolved", entry->resolve_us);
    say_phase(line, "connected", entry->connect_us);
    say_phase(line, "tls", entry->tls_us);
    say_phase(line, "first byte", entry->first_byte_us);
    say_phase(line, "total", entry->total_us);
    if (entry->next_run_at_us > entry->ended_at_us)
        say(line, "; next %s", hf_time_print(entry->next_run_at_us, next));
}

static void line_of(struct hfi_table *table, int64_t at_us, const char *state, const char *what) {
    char at[HF_TIME_LENGTH];
    hfi_table_cell(table, "%s", hfi_show_time(at_us, at));
    hfi_table_cell(table, "%s", state);
    hfi_table_cell(table, "%s", what);
}

static void show_timeline(const struct hf_job *job) {
    const struct hf_job_view *view = hf_job_look(job);
    char line[LINE];
    struct hfi_table *table = hfi_table_new("AT|STATE|WHAT HAPPENED");
    line_of(table, view->created_at_us, "enqueued", "");
    for (size_t i = 0; i < hf_job_history_count(job); i++) {
        const struct hf_history_view *entry = hf_job_history_at(job, i);
        bool ended_one = entry->started_at_us > 0 && strcmp(entry->event, "cancel_requested") != 0;
        if (ended_one) {
            line[0] = '\0';
            say(line, "execution %u", entry->execution);
            if (*entry->node)
                say(line, " on %s", entry->node);
            if (*entry->breaker)
                say(line, ", breaker %s", entry->breaker);
            line_of(table, entry->started_at_us, "running", line);
        }
        line[0] = '\0';
        say_step(line, entry);
        line_of(table, entry->ended_at_us, entry->shown, line);
    }
    hfi_say("%s", "");
    hfi_table_print(table);
}

static void show_links(const struct hf_job *job) {
    uint64_t children = hf_job_children(job);
    if (hf_job_link_count(job) == 0)
        return;
    hfi_say("%s", "");
    struct hfi_table *table = hfi_table_new("RELATIVE|>ID|TYPE|STATE|ON");
    for (size_t i = 0; i < hf_job_link_count(job); i++) {
        const struct hf_link_view *link = hf_job_link_at(job, i);
        hfi_table_cell(table, "%s", link->is_parent ? "waits for" : "waited for by");
        hfi_table_cell(table, "%lld", (long long)link->id);
        hfi_table_cell(table, "%s", link->type);
        hfi_table_cell(table, "%s", state_of(link));
        hfi_table_cell(table, "%s", link->on_end ? "ended" : "succeeded");
    }
    hfi_table_print(table);
    if (children > HF_CHILDREN_MAX)
        hfi_say("%llu jobs wait or waited for it, the first %d are shown", (unsigned long long)children, HF_CHILDREN_MAX);
}

void hfi_show_past(const struct hf_job *job) {
    show_links(job);
    if (hf_job_history_count(job) > 0)
        show_timeline(job);
}
