/* SPDX-License-Identifier: MIT */
/* `holdfast dead task list|show|cancel`: redrives of many, which `dead redrive` begins. The main thread's. */
#include "holdfast/dead.h"
#include "program/commands/commands.h"
#include "program/commands/redrive_task.h"
#include "program/output.h"
#include "program/session.h"

static const struct hfi_flag list_flags[] = {
    {.name = "limit", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "at most N (default: 100)", .min = 1, .max = 1000},
    {.name = "after", .kind = HFI_FLAG_NUMBER, .value = "CURSOR", .help = "go on behind an earlier page", .min = 1, .max = INT64_MAX},
    {0},
};

static void print_tasks(const struct hf_redrive_list *list) {
    struct hfi_table *table = hfi_table_new(">ID|STATE|>OF|>REDRIVEN|>REFUSED|>SUCCEEDED|>FAILED|BY|NOTE");
    for (size_t i = 0; i < hf_redrive_list_count(list); i++) {
        const struct hf_redrive_view *task = hf_redrive_list_at(list, i);
        hfi_table_cell(table, "%lld", (long long)task->id);
        hfi_table_cell(table, "%s%s", hf_redrive_state_name(task->state), task->waits_for_canary ? ", canary" : "");
        hfi_table_cell(table, "%llu", (unsigned long long)task->total);
        hfi_table_cell(table, "%llu", (unsigned long long)task->redriven);
        hfi_table_cell(table, "%llu", (unsigned long long)task->refused);
        hfi_table_cell(table, "%llu", (unsigned long long)task->succeeded);
        hfi_table_cell(table, "%llu", (unsigned long long)task->failed);
        hfi_table_cell(table, "%s", task->actor);
        hfi_table_cell(table, "%s", *task->note ? task->note : "-");
    }
    hfi_table_print(table);
    if (hf_redrive_list_next(list) > 0)
        hfi_say("more: --after %lld", (long long)hf_redrive_list_next(list));
}

/* Opens the list that the filter gives and prints it: one task, or a page. */
static int list(const struct hfi_options *options, const struct hf_redrive_filter *filter) {
    struct hfi_session session;
    struct hf_redrive_list *found = NULL;
    struct hf_error error;
    hf_error_init(&error);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_redrive_list_open(session.store, filter, &found, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && filter->id > 0) {
        if (hfi_manner()->json)
            hfi_print_json(hfi_redrive_json(hf_redrive_list_at(found, 0)));
        else
            hfi_show_redrive(hf_redrive_list_at(found, 0));
    } else if (code == 0 && hfi_manner()->json) {
        json_t *items = json_array();
        for (size_t i = 0; i < hf_redrive_list_count(found); i++)
            json_array_append_new(items, hfi_redrive_json(hf_redrive_list_at(found, i)));
        hfi_print_list(items, hf_redrive_list_next(found));
    } else if (code == 0) {
        print_tasks(found);
    }
    hf_redrive_list_free(found);
    hfi_session_close(&session);
    return code;
}

static int run_list(const struct hfi_options *options) {
    struct hf_redrive_filter filter;
    hf_redrive_filter_init(&filter);
    filter.limit = (uint32_t)hfi_flag_number(options, "limit", 100);
    filter.after_id = hfi_flag_number(options, "after", 0);
    return list(options, &filter);
}

static int run_show(const struct hfi_options *options) {
    struct hf_redrive_filter filter;
    hf_redrive_filter_init(&filter);
    int code = hfi_id_read(options->arguments[0], "task", &filter.id);
    return code != 0 ? code : list(options, &filter);
}

static const struct hfi_flag cancel_flags[] = {
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it (default: the login name)"},
    {.name = "reason", .kind = HFI_FLAG_TEXT, .value = "R", .help = "why, for the record"},
    {0},
};

static int run_cancel(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_error error;
    int64_t id = 0;
    hf_error_init(&error);
    int code = hfi_id_read(options->arguments[0], "task", &id);
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 &&
        hf_redrive_cancel(session.store, id, hfi_actor(options), hfi_flag_text(options, "reason", NULL), &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json) {
        json_t *object = json_object();
        hfi_json_number(object, "id", id);
        hfi_json_text(object, "state", "cancelled");
        hfi_print_json(object);
    } else if (code == 0) {
        hfi_say("task %lld cancelled; what it redrove stays redriven", (long long)id);
    }
    hfi_session_close(&session);
    return code;
}

const struct hfi_command hfi_command_dead_task_list = {
    .name = "dead task list",
    .arguments = "",
    .summary = "Lists redrives of many, newest first",
    .example = "holdfast dead task list",
    .flags = list_flags,
    .prints_json = true,
    .run = run_list,
};
const struct hfi_command hfi_command_dead_task_show = {
    .name = "dead task show",
    .arguments = "ID",
    .summary = "Shows how far a redrive of many is, and how its jobs ended",
    .example = "holdfast dead task show 1",
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_show,
};
const struct hfi_command hfi_command_dead_task_cancel = {
    .name = "dead task cancel",
    .arguments = "ID",
    .summary = "Stops a redrive of many; what it redrove stays redriven",
    .example = "holdfast dead task cancel 1 --reason 'wrong filter'",
    .flags = cancel_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_cancel,
};
