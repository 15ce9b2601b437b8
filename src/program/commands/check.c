/* SPDX-License-Identifier: MIT */
/* `holdfast check`: the configuration and the proof of its ladder. Must never start or change anything. */
#include <stdio.h>

#include "program/commands/commands.h"
#include "program/config/config.h"
#include "program/output.h"

static const struct hfi_flag flags[] = {
    {.name = "explain", .kind = HFI_FLAG_SWITCH, .help = "print every key with its type, range, default and meaning"},
    {.name = "man", .kind = HFI_FLAG_SWITCH, .help = "print the man page holdfast.yaml(5)", .hidden = true},
    {0},
};

static const char *file_of(const struct hfi_config *config) {
    return config->file ? config->file : "(no configuration file: all defaults)";
}

static void print_problem(const struct hfi_config *config, const struct hfi_problem *problem) {
    struct hf_error error;
    char text[1600], clean[2400];
    hfi_problem_error(&config->problems, problem, &error);
    hf_error_print(&error, text, sizeof text);
    hfi_say("%s%s%s %s [%s]", hfi_paint(problem->is_error ? "31" : "33"), problem->is_error ? "E" : "W", hfi_unpaint(),
            hfi_printable(clean, sizeof clean, text), problem->rule);
}

static void print_types(const struct hfi_check *check) {
    char death[HFI_SPAN_LENGTH];
    struct hfi_table *table = hfi_table_new("JOB TYPE|QUEUE|DOWNSTREAM|>EXECUTIONS|>ATTEMPTS EACH|>WORST-CASE CALLS|>TIME TO DEATH");
    for (size_t i = 0; i < check->count; i++) {
        const struct hfi_type_worst *type = &check->types[i];
        hfi_table_cell(table, "%s", type->name);
        hfi_table_cell(table, "%s", type->queue);
        hfi_table_cell(table, "%s", type->downstream ? type->downstream : "");
        hfi_table_cell(table, "%u", type->executions);
        hfi_table_cell(table, "%u", type->attempts);
        hfi_table_cell(table, "%llu", (unsigned long long)type->calls);
        hfi_table_cell(table, "%s", hfi_show_span(type->to_death_ms, death));
    }
    hfi_table_print(table);
}

/* "20 failures, 1900ms at 10/s": the least that opens the breaker (W12). */
static void earliest_trip(const struct hfi_downstream_worst *downstream, char *text, size_t room) {
    char span[HFI_SPAN_LENGTH];
    const struct hf_policy_figures *figures = &downstream->figures;
    int length = snprintf(text, room, "%u failure%s", figures->trip_attempts, figures->trip_attempts == 1 ? "" : "s");
    if (figures->trip_ms >= 0)
        snprintf(text + length, room - (size_t)length, ", %s at %g/s", hfi_show_span(figures->trip_ms, span),
                 downstream->policy->declared_rate);
}

static void print_downstreams(const struct hfi_check *check) {
    size_t sound = 0;
    char span[HFI_SPAN_LENGTH], longest[HFI_SPAN_LENGTH], trip[80];
    for (size_t i = 0; i < check->downstream_count; i++)
        sound += check->downstreams[i].figures.attempts > 0;
    if (sound == 0)
        return;
    struct hfi_table *table = hfi_table_new("DOWNSTREAM|>ATTEMPTS|>LONGEST CALL|>FIRST CUT TRY|OPENS AFTER|BREAKS");
    for (size_t i = 0; i < check->downstream_count; i++) {
        const struct hfi_downstream_worst *downstream = &check->downstreams[i];
        if (downstream->figures.attempts == 0)
            continue; /* its policy is wrong: said already */
        earliest_trip(downstream, trip, sizeof trip);
        hfi_table_cell(table, "%s", downstream->name);
        hfi_table_cell(table, "%u", downstream->figures.attempts);
        hfi_table_cell(table, "%s", hfi_show_span(downstream->figures.longest_call_ms, longest));
        if (downstream->figures.cut_try > 0)
            hfi_table_cell(table, "%u", downstream->figures.cut_try);
        else
            hfi_table_cell(table, "none");
        hfi_table_cell(table, "%s", trip);
        hfi_table_cell(table, "%s to %s", hfi_show_span(downstream->policy->breaker_break_ms, span),
                       hfi_show_span(downstream->policy->breaker_max_break_ms, longest));
    }
    hfi_table_print(table);
}

static json_t *downstream_json(const struct hfi_downstream_worst *downstream) {
    const struct hf_policy_figures *figures = &downstream->figures;
    json_t *item = json_object();
    hfi_json_text(item, "downstream", downstream->name);
    hfi_json_number(item, "attempts_per_call", figures->attempts);
    hfi_json_number(item, "longest_call_ms", figures->longest_call_ms);
    hfi_json_number(item, "all_tries_ms", figures->need_ms);
    hfi_json_number(item, "first_cut_try", figures->cut_try);
    hfi_json_number(item, "earliest_trip_failures", figures->trip_attempts);
    json_object_set_new(item, "earliest_trip_ms", figures->trip_ms < 0 ? json_null() : json_integer(figures->trip_ms));
    hfi_json_number(item, "break_ms", downstream->policy->breaker_break_ms);
    hfi_json_number(item, "max_break_ms", downstream->policy->breaker_max_break_ms);
    return item;
}

static json_t *problem_json(const struct hfi_config *config, const struct hfi_problem *problem) {
    json_t *item = json_object();
    hfi_json_text(item, "severity", problem->is_error ? "error" : "warning");
    hfi_json_text(item, "rule", problem->rule);
    hfi_json_text(item, "file", config->file);
    hfi_json_number(item, "line", problem->line);
    hfi_json_number(item, "column", problem->column);
    hfi_json_text(item, "what", problem->what);
    hfi_json_text(item, "why", problem->why);
    hfi_json_text(item, "fix", problem->fix);
    return item;
}

static void print_all_json(const struct hfi_config *config, const struct hfi_check *check) {
    json_t *object = json_object(), *items = json_array(), *types = json_array(), *downstreams = json_array();
    for (const struct hfi_problem *problem = config->problems.first; problem; problem = problem->next)
        json_array_append_new(items, problem_json(config, problem));
    for (size_t i = 0; i < check->count; i++) {
        json_t *type = json_object();
        hfi_json_text(type, "type", check->types[i].name);
        hfi_json_text(type, "queue", check->types[i].queue);
        hfi_json_text(type, "downstream", check->types[i].downstream);
        hfi_json_number(type, "max_executions", check->types[i].executions);
        hfi_json_number(type, "attempts_per_execution", check->types[i].attempts);
        hfi_json_number(type, "worst_case_calls", (int64_t)check->types[i].calls);
        hfi_json_number(type, "time_to_death_ms", check->types[i].to_death_ms);
        json_array_append_new(types, type);
    }
    for (size_t i = 0; i < check->downstream_count; i++)
        if (check->downstreams[i].figures.attempts > 0)
            json_array_append_new(downstreams, downstream_json(&check->downstreams[i]));
    hfi_json_text(object, "file", config->file);
    hfi_json_number(object, "errors", (int64_t)config->problems.errors);
    hfi_json_number(object, "warnings", (int64_t)config->problems.warnings);
    json_object_set_new(object, "downstreams", downstreams);
    json_object_set_new(object, "types", types);
    json_object_set_new(object, "items", items);
    json_object_set_new(object, "next", json_null());
    hfi_print_json(object);
}

static void print_all(const struct hfi_config *config, const struct hfi_check *check) {
    for (const struct hfi_problem *problem = config->problems.first; problem; problem = problem->next)
        print_problem(config, problem);
    print_downstreams(check);
    if (check->count > 0)
        print_types(check);
    hfi_say("%s: %zu error%s, %zu warning%s", file_of(config), config->problems.errors, config->problems.errors == 1 ? "" : "s",
            config->problems.warnings, config->problems.warnings == 1 ? "" : "s");
}

static int run(const struct hfi_options *options) {
    struct hfi_config config;
    struct hfi_check check = {0};
    if (hfi_flag(options, "explain")->given || hfi_flag(options, "man")->given) {
        hfi_flag(options, "man")->given ? hfi_config_man(stdout) : hfi_config_explain(stdout);
        return HFI_EXIT_OK;
    }
    if (hfi_config_load(&config, options->config, HFI_CONFIG_SECRETS | HFI_CONFIG_STORE) == 0)
        hfi_config_check(&config, &check);
    int code = config.problems.errors > 0 ? HFI_EXIT_USAGE : HFI_EXIT_OK;
    if (hfi_manner()->json)
        print_all_json(&config, &check);
    else
        print_all(&config, &check);
    if (hfi_manner()->quiet)
        hfi_config_complain(&config);
    hfi_config_free(&config);
    return code;
}

const struct hfi_command hfi_command_check = {
    .name = "check",
    .arguments = "",
    .summary = "Checks the configuration and proves its ladder of limits",
    .about = "Prints errors (E, they stop `holdfast run`) and warnings (W) with file:line:column, the numbers and a fix; for each\n"
             "downstream how long a call can take, the first try that has not its whole time, and how soon its breaker can open;\n"
             "for each job type the worst-case number of real calls and the longest time until a failing job is dead.",
    .example = "holdfast check --config holdfast.yaml",
    .flags = flags,
    .prints_json = true,
    .run = run,
};
