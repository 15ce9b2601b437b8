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
    json_t *object = json_object(), *items = json_array(), *types = json_array();
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
    hfi_json_text(object, "file", config->file);
    hfi_json_number(object, "errors", (int64_t)config->problems.errors);
    hfi_json_number(object, "warnings", (int64_t)config->problems.warnings);
    json_object_set_new(object, "types", types);
    json_object_set_new(object, "items", items);
    json_object_set_new(object, "next", json_null());
    hfi_print_json(object);
}

static void print_all(const struct hfi_config *config, const struct hfi_check *check) {
    for (const struct hfi_problem *problem = config->problems.first; problem; problem = problem->next)
        print_problem(config, problem);
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
    .about = "Prints errors (E, they stop `holdfast run`) and warnings (W) with file:line:column, the numbers and a fix, and for\n"
             "each job type the worst-case number of real calls and the longest time until a failing job is dead.",
    .example = "holdfast check --config holdfast.yaml",
    .flags = flags,
    .prints_json = true,
    .run = run,
};
