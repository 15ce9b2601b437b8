/* SPDX-License-Identifier: MIT */
/* `holdfast alert list|test`. The main thread's. */
#include <stdio.h>
#include <string.h>

#include "holdfast/alert.h"
#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/output.h"
#include "program/session.h"

static const struct hfi_flag list_flags[] = {
    {.name = "sink", .kind = HFI_FLAG_TEXT, .value = "NAME", .help = "only of this sink"},
    {.name = "state", .kind = HFI_FLAG_CHOICE, .value = "unsent|sent|undelivered|attached|all", .help = "only in this state (default: all)"},
    {.name = "dead", .kind = HFI_FLAG_NUMBER, .value = "ID", .help = "only about this dead letter", .min = 1, .max = INT64_MAX},
    {.name = "limit", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "at most N (default: 100)", .min = 1, .max = 1000},
    {.name = "after", .kind = HFI_FLAG_NUMBER, .value = "CURSOR", .help = "go on behind an earlier page", .min = 1, .max = INT64_MAX},
    {0},
};

static void print_alerts(const struct hf_alert_list *list) {
    char at[HF_TIME_LENGTH];
    struct hfi_table *table = hfi_table_new(">ID|SINK|STATE|KIND|>DEATHS|>DEAD LETTER|TYPE|ERROR|>TRIES|LAST ERROR|NEXT");
    for (size_t i = 0; i < hf_alert_list_count(list); i++) {
        const struct hf_alert_view *alert = hf_alert_list_at(list, i);
        bool attached = alert->state == HF_ALERT_ATTACHED;
        hfi_table_cell(table, "%lld", (long long)alert->id);
        hfi_table_cell(table, "%s", alert->sink);
        if (attached)
            hfi_table_cell(table, "with %lld, %s", (long long)alert->message_id,
                           hf_alert_state_name(alert->message_state));
        else
            hfi_table_cell(table, "%s", hf_alert_state_name(alert->state));
        hfi_table_cell(table, "%s", attached ? "-" : hf_alert_kind_name(alert->kind));
        hfi_table_cell(table, "%llu", (unsigned long long)alert->deaths);
        hfi_table_cell(table, "%lld", (long long)alert->dead_id);
        hfi_table_cell(table, "%s", alert->type);
        hfi_table_cell(table, "%s", alert->error_type);
        hfi_table_cell(table, "%u", alert->tries);
        hfi_table_cell(table, "%s", alert->last_error[0] ? alert->last_error : "-");
        hfi_table_cell(table, "%s", alert->next_at_us > 0 ? hfi_show_time(alert->next_at_us, at) : "-");
    }
    hfi_table_print(table);
    if (hf_alert_list_next(list) > 0)
        hfi_say("more: --after %lld", (long long)hf_alert_list_next(list));
}

static json_t *alert_json(const struct hf_alert_view *alert) {
    json_t *object = json_object();
    hfi_json_number(object, "id", alert->id);
    hfi_json_text(object, "sink", alert->sink);
    hfi_json_text(object, "state", hf_alert_state_name(alert->state));
    hfi_json_text(object, "kind", hf_alert_kind_name(alert->kind));
    hfi_json_number(object, "message", alert->message_id);
    hfi_json_text(object, "message_state", hf_alert_state_name(alert->message_state));
    hfi_json_number(object, "deaths", (int64_t)alert->deaths);
    hfi_json_number(object, "dead_letter", alert->dead_id);
    hfi_json_number(object, "job", alert->job_id);
    hfi_json_text(object, "type", alert->type);
    hfi_json_text(object, "error_type", alert->error_type);
    hfi_json_time(object, "dead_at", alert->dead_at_us);
    hfi_json_number(object, "tries", alert->tries);
    hfi_json_text(object, "last_error", alert->last_error);
    hfi_json_time(object, "next_at", alert->next_at_us);
    hfi_json_time(object, "ended_at", alert->ended_at_us);
    return object;
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_alert_filter filter;
    struct hf_alert_list *list = NULL;
    struct hf_error error;
    hf_error_init(&error);
    hf_alert_filter_init(&filter);
    filter.sink = hfi_flag_text(options, "sink", NULL);
    filter.state = (int32_t)hfi_flag_number(options, "state", -1);
    if (filter.state > HF_ALERT_ATTACHED)
        filter.state = -1;
    filter.dead_id = hfi_flag_number(options, "dead", 0);
    filter.limit = (uint32_t)hfi_flag_number(options, "limit", 100);
    filter.after_id = hfi_flag_number(options, "after", 0);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_alert_list_open(session.store, &filter, &list, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json) {
        json_t *items = json_array();
        for (size_t i = 0; i < hf_alert_list_count(list); i++)
            json_array_append_new(items, alert_json(hf_alert_list_at(list, i)));
        hfi_print_list(items, hf_alert_list_next(list));
    } else if (code == 0) {
        print_alerts(list);
    }
    hf_alert_list_free(list);
    hfi_session_close(&session);
    return code;
}

static const struct hf_sink_options *find_sink(const struct hfi_session *session, const char *name) {
    for (size_t i = 0; i < session->config.runner.sink_count; i++)
        if (strcmp(session->config.runner.sinks[i].name, name) == 0)
            return &session->config.runner.sinks[i];
    return NULL;
}

static int try_sink(const struct hfi_session *session, const char *name) {
    struct hf_error error;
    hf_error_init(&error);
    const struct hf_sink_options *sink = find_sink(session, name);
    if (!sink) {
        error.code = HF_ENOENT;
        snprintf(error.what, sizeof error.what, "%s", name);
        snprintf(error.why, sizeof error.why, "the configuration has no sink of that name");
        snprintf(error.fix, sizeof error.fix, "name one below `alerts:`");
        return hfi_complain(&error);
    }
    if (hf_sink_test(sink, &error) != 0)
        return hfi_complain(&error);
    if (hfi_manner()->json) {
        json_t *object = json_object();
        hfi_json_text(object, "sink", name);
        hfi_json_text(object, "kind", hf_sink_kind_name(sink->kind));
        hfi_json_flag(object, "delivered", true);
        hfi_print_json(object);
    } else {
        hfi_say("%s (%s) took the test alert", name, hf_sink_kind_name(sink->kind));
    }
    return HFI_EXIT_OK;
}

static int run_test(const struct hfi_options *options) {
    struct hfi_session session;
    int code = hfi_session_open(&session, options, HFI_SESSION_SECRETS);
    if (code == 0)
        code = try_sink(&session, options->arguments[0]);
    hfi_session_close(&session);
    return code;
}

const struct hfi_command hfi_command_alert_list = {
    .name = "alert list",
    .arguments = "",
    .summary = "Lists alerts and how they stand, newest first: one row for each death and sink",
    .about = "Deaths of one cause collapse: their rows are attached to the summary that tells of them, and messages that\n"
             "had to wait for the pace of a sink to a digest.\n",
    .example = "holdfast alert list --state undelivered",
    .flags = list_flags,
    .prints_json = true,
    .run = run_list,
};
const struct hfi_command hfi_command_alert_test = {
    .name = "alert test",
    .arguments = "NAME",
    .summary = "Sends a sink one alert that says it is a test, and tells what came of it",
    .about = "Once, with the sink's own time limit, without a store. Exits 0 if it was delivered, 1 if not.\n",
    .example = "holdfast alert test pager",
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_test,
};
