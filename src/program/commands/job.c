/* SPDX-License-Identifier: MIT */
/* `holdfast job list|show|cancel|requeue`. Must never load more than one page of jobs. The main thread's. */
#include <string.h>

#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/commands/views.h"
#include "program/output.h"
#include "program/session.h"

#define STATES "pending|waiting|running|succeeded|dead|quarantined|cancelled"

static const struct hfi_flag list_flags[] = {
    {.name = "state", .kind = HFI_FLAG_CHOICE, .value = STATES, .help = "only of this state"},
    {.name = "type", .kind = HFI_FLAG_TEXT, .value = "T", .help = "only of this type"},
    {.name = "queue", .kind = HFI_FLAG_TEXT, .value = "Q", .help = "only of this queue"},
    {.name = "since", .kind = HFI_FLAG_DURATION, .value = "D", .help = "only jobs made in the last D"},
    {.name = "limit", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "at most N (default: 100)", .min = 1, .max = 1000},
    {.name = "after", .kind = HFI_FLAG_NUMBER, .value = "CURSOR", .help = "go on behind an earlier page", .min = 1, .max = INT64_MAX},
    {0},
};

static void print_jobs(const struct hf_job_list *list) {
    char at[HF_TIME_LENGTH];
    struct hfi_table *table = hfi_table_new(">ID|STATE|TYPE|QUEUE|>EXECUTIONS|RUN AT|ERROR");
    for (size_t i = 0; i < hf_job_list_count(list); i++) {
        const struct hf_job_view *job = hf_job_list_at(list, i);
        hfi_table_cell(table, "%lld", (long long)job->id);
        hfi_table_cell(table, "%s", hf_job_state_name(job->state));
        hfi_table_cell(table, "%s", job->type);
        hfi_table_cell(table, "%s", job->queue);
        hfi_table_cell(table, "%u", job->executions);
        hfi_table_cell(table, "%s", hfi_show_time(job->run_at_us, at));
        hfi_table_cell(table, "%s", job->error_type);
    }
    hfi_table_print(table);
    if (hf_job_list_next(list) > 0)
        hfi_say("more: --after %lld", (long long)hf_job_list_next(list));
}

static void list_filter(const struct hfi_options *options, struct hf_job_filter *filter) {
    hf_job_filter_init(filter);
    filter->state = (int32_t)hfi_flag_number(options, "state", -1);
    filter->type = hfi_flag_text(options, "type", NULL);
    filter->queue = hfi_flag_text(options, "queue", NULL);
    if (hfi_flag(options, "since")->given)
        filter->created_since_us = hfi_ago_us(hfi_flag(options, "since")->number);
    filter->limit = (uint32_t)hfi_flag_number(options, "limit", 100);
    filter->after_id = hfi_flag_number(options, "after", 0);
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_job_filter filter;
    struct hf_job_list *list = NULL;
    struct hf_error error;
    hf_error_init(&error);
    list_filter(options, &filter);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_list_jobs(session.store, &filter, &list, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json) {
        json_t *items = json_array();
        for (size_t i = 0; i < hf_job_list_count(list); i++)
            json_array_append_new(items, hfi_job_json(hf_job_list_at(list, i), false));
        hfi_print_list(items, hf_job_list_next(list));
    } else if (code == 0) {
        print_jobs(list);
    }
    hf_job_list_free(list);
    hfi_session_close(&session);
    return code;
}

static json_t *history_json(const struct hf_history_view *entry) {
    json_t *object = json_object();
    hfi_json_number(object, "execution", entry->execution);
    hfi_json_text(object, "event", entry->event);
    hfi_json_time(object, "started_at", entry->started_at_us);
    hfi_json_time(object, "ended_at", entry->ended_at_us);
    hfi_json_text(object, "node", entry->node);
    hfi_json_text(object, "error_class", entry->error_class);
    hfi_json_text(object, "error_type", entry->error_type);
    hfi_json_text(object, "error_message", entry->error_message);
    hfi_json_text(object, "rule", entry->rule);
    hfi_json_number(object, "attempts", entry->attempts);
    hfi_json_number(object, "retries", entry->retries);
    hfi_json_time(object, "next_run_at", entry->next_run_at_us);
    return object;
}

static void print_history(const struct hf_job *job) {
    char at[HF_TIME_LENGTH], next[HF_TIME_LENGTH];
    if (hf_job_history_count(job) == 0)
        return;
    hfi_say("%s", "");
    struct hfi_table *table = hfi_table_new(">EXECUTION|EVENT|STARTED AT|ERROR|>ATTEMPTS|NEXT RUN AT|NODE");
    for (size_t i = 0; i < hf_job_history_count(job); i++) {
        const struct hf_history_view *entry = hf_job_history_at(job, i);
        hfi_table_cell(table, "%u", entry->execution);
        hfi_table_cell(table, "%s", entry->event);
        hfi_table_cell(table, "%s", hfi_show_time(entry->started_at_us, at));
        hfi_table_cell(table, "%s", entry->error_type);
        hfi_table_cell(table, "%u", entry->attempts);
        hfi_table_cell(table, "%s", hfi_show_time(entry->next_run_at_us, next));
        hfi_table_cell(table, "%s", entry->node);
    }
    hfi_table_print(table);
}

static void print_job(const struct hf_job *job) {
    const struct hf_job_view *view = hf_job_look(job);
    hfi_show_job(view);
    print_history(job);
}

static int run_show(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_job *job = NULL;
    struct hf_error error;
    int64_t id = 0;
    hf_error_init(&error);
    int code = hfi_id_read(options->arguments[0], "job", &id);
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_get_job(session.store, id, &job, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json) {
        json_t *object = hfi_job_json(hf_job_look(job), true), *history = json_array();
        for (size_t i = 0; i < hf_job_history_count(job); i++)
            json_array_append_new(history, history_json(hf_job_history_at(job, i)));
        json_object_set_new(object, "history", history);
        hfi_print_json(object);
    } else if (code == 0) {
        print_job(job);
    }
    hf_job_free(job);
    hfi_session_close(&session);
    return code;
}

static const struct hfi_flag cancel_flags[] = {
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it (default: the login name)"},
    {.name = "reason", .kind = HFI_FLAG_TEXT, .value = "R", .help = "why, for the record"},
    {0},
};

static void print_changed(int64_t id, const char *word) {
    json_t *object = NULL;
    if (!hfi_manner()->json) {
        hfi_say("job %lld %s", (long long)id, word);
        return;
    }
    object = json_object();
    hfi_json_number(object, "id", id);
    hfi_json_text(object, "done", word);
    hfi_print_json(object);
}

static int run_cancel(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_error error;
    int64_t id = 0;
    hf_error_init(&error);
    int code = hfi_id_read(options->arguments[0], "job", &id);
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_cancel_job(session.store, id, hfi_actor(options), hfi_flag_text(options, "reason", NULL), &error) != 0)
        code = hfi_complain(&error);
    if (code == 0)
        print_changed(id, "cancelled");
    hfi_session_close(&session);
    return code;
}

static const struct hfi_flag requeue_flags[] = {
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it", .required = true},
    {.name = "reason", .kind = HFI_FLAG_TEXT, .value = "R", .help = "why, for the record"},
    {.name = "new-key", .kind = HFI_FLAG_SWITCH, .help = "a new idempotency key: the downstream may do it twice"},
    {0},
};

static int run_requeue(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_error error;
    int64_t id = 0;
    hf_error_init(&error);
    int code = hfi_id_read(options->arguments[0], "job", &id);
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_requeue_job(session.store, id, hfi_actor(options), hfi_flag_text(options, "reason", NULL),
                                          hfi_flag(options, "new-key")->given, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0)
        print_changed(id, "requeued");
    hfi_session_close(&session);
    return code;
}

const struct hfi_command hfi_command_job_list = {
    .name = "job list",
    .arguments = "",
    .summary = "Lists jobs, newest first",
    .example = "holdfast job list --state dead --queue reports --since 7d",
    .flags = list_flags,
    .prints_json = true,
    .run = run_list,
};
const struct hfi_command hfi_command_job_show = {
    .name = "job show",
    .arguments = "ID",
    .summary = "Shows a job with its payload and the history of its executions",
    .example = "holdfast job show 17",
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_show,
};
const struct hfi_command hfi_command_job_cancel = {
    .name = "job cancel",
    .arguments = "ID",
    .summary = "Cancels a job",
    .about = "One that waits ends at once; a running one is told within a heartbeat. One that has ended is refused (exit 4).",
    .example = "holdfast job cancel 17 --reason 'ordered twice'",
    .flags = cancel_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_cancel,
};
const struct hfi_command hfi_command_job_requeue = {
    .name = "job requeue",
    .arguments = "ID",
    .summary = "Starts a dead or quarantined job over: same id, full budget, history kept",
    .example = "holdfast job requeue 17 --actor ada --reason 'address corrected'",
    .flags = requeue_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_requeue,
};
