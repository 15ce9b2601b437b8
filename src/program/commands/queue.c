/* SPDX-License-Identifier: MIT */
/* `holdfast queue list|pause|resume`. The main thread's. */
#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/output.h"
#include "program/session.h"

static json_t *queue_json(const struct hf_queue_view *queue) {
    json_t *object = json_object();
    hfi_json_text(object, "name", queue->name);
    hfi_json_flag(object, "paused", queue->paused);
    hfi_json_time(object, "paused_until", queue->paused_until_us);
    hfi_json_number(object, "due", (int64_t)queue->due);
    hfi_json_number(object, "scheduled", (int64_t)queue->scheduled);
    hfi_json_number(object, "running", (int64_t)queue->running);
    hfi_json_time(object, "oldest_due_at", queue->oldest_due_at_us);
    return object;
}

static void print_queues(const struct hf_queue_list *list) {
    char oldest[HF_TIME_LENGTH], until[HF_TIME_LENGTH];
    struct hfi_table *table = hfi_table_new("QUEUE|>DUE|>SCHEDULED|>RUNNING|OLDEST DUE|PAUSED");
    for (size_t i = 0; i < hf_queue_list_count(list); i++) {
        const struct hf_queue_view *queue = hf_queue_list_at(list, i);
        hfi_table_cell(table, "%s", queue->name);
        hfi_table_cell(table, "%llu", (unsigned long long)queue->due);
        hfi_table_cell(table, "%llu", (unsigned long long)queue->scheduled);
        hfi_table_cell(table, "%llu", (unsigned long long)queue->running);
        hfi_table_cell(table, "%s", hfi_show_time(queue->oldest_due_at_us, oldest));
        hfi_table_cell(table, "%s%s", !queue->paused ? "no" : queue->paused_until_us > 0 ? "until " : "until resumed",
                       queue->paused ? hf_time_print(queue->paused_until_us, until) : "");
    }
    hfi_table_print(table);
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_queue_list *list = NULL;
    struct hf_error error;
    hf_error_init(&error);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_list_queues(session.store, &list, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json) {
        json_t *items = json_array();
        for (size_t i = 0; i < hf_queue_list_count(list); i++)
            json_array_append_new(items, queue_json(hf_queue_list_at(list, i)));
        hfi_print_list(items, 0);
    } else if (code == 0) {
        print_queues(list);
    }
    hf_queue_list_free(list);
    hfi_session_close(&session);
    return code;
}

static void print_changed(const char *queue, bool paused, int64_t until_us) {
    char until[HF_TIME_LENGTH];
    if (hfi_manner()->json) {
        json_t *object = json_object();
        hfi_json_text(object, "queue", queue);
        hfi_json_flag(object, "paused", paused);
        hfi_json_time(object, "paused_until", until_us);
        hfi_print_json(object);
    } else if (!paused) {
        hfi_say("queue %s resumed", queue);
    } else {
        hfi_say("queue %s paused%s%s", queue, until_us > 0 ? " until " : "", hf_time_print(until_us, until));
    }
}

static const struct hfi_flag pause_flags[] = {
    {.name = "until", .kind = HFI_FLAG_TIME, .value = "TIME", .help = "resume by itself then (default: stay paused)"},
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it (default: the login name)"},
    {0},
};

static int run_pause(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_error error;
    const char *queue = options->arguments[0];
    int64_t until = hfi_flag_number(options, "until", 0);
    hf_error_init(&error);
    if (hfi_flag(options, "until")->given && until <= hf_time_now())
        return hfi_usage("until", "name a time to come", "it is over");
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_pause_queue(session.store, queue, until, hfi_actor(options), &error) != 0)
        code = hfi_complain(&error);
    if (code == 0)
        print_changed(queue, true, until);
    hfi_session_close(&session);
    return code;
}

static const struct hfi_flag resume_flags[] = {
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it (default: the login name)"},
    {0},
};

static int run_resume(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_error error;
    const char *queue = options->arguments[0];
    hf_error_init(&error);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_resume_queue(session.store, queue, hfi_actor(options), &error) != 0)
        code = hfi_complain(&error);
    if (code == 0)
        print_changed(queue, false, 0);
    hfi_session_close(&session);
    return code;
}

const struct hfi_command hfi_command_queue_list = {
    .name = "queue list",
    .arguments = "",
    .summary = "Lists the queues with what waits in them",
    .example = "holdfast queue list",
    .prints_json = true,
    .run = run_list,
};
const struct hfi_command hfi_command_queue_pause = {
    .name = "queue pause",
    .arguments = "QUEUE",
    .summary = "Stops nodes from starting jobs of a queue; running ones go on",
    .example = "holdfast queue pause reports --until 2030-01-01T06:00:00Z",
    .flags = pause_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_pause,
};
const struct hfi_command hfi_command_queue_resume = {
    .name = "queue resume",
    .arguments = "QUEUE",
    .summary = "Lets a paused queue go on",
    .example = "holdfast queue resume reports",
    .flags = resume_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_resume,
};
