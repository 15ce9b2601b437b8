/* SPDX-License-Identifier: MIT */
/* `holdfast dead list|show|resolve|discard`; redrive stands in redrive.c. The main thread's. */
#include <string.h>

#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/commands/dead_filter.h"
#include "program/commands/views.h"
#include "program/output.h"
#include "program/session.h"

static const struct hfi_flag list_flags[] = {
    HFI_DEAD_FILTER_FLAGS,
    {.name = "status", .kind = HFI_FLAG_CHOICE, .value = "dead|redriven|resolved|discarded|all", .help = "only of this status (default: dead)"},
    {.name = "limit", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "at most N (default: 100)", .min = 1, .max = 1000},
    {.name = "after", .kind = HFI_FLAG_NUMBER, .value = "CURSOR", .help = "go on behind an earlier page", .min = 1, .max = INT64_MAX},
    {.name = "group", .kind = HFI_FLAG_SWITCH, .help = "one line for each fingerprint, with its count"},
    {0},
};

static void print_dead(const struct hf_dead_list *list) {
    char at[HF_TIME_LENGTH];
    struct hfi_table *table = hfi_table_new(">ID|STATUS|>JOB|TYPE|CLASS|ERROR|>EXECUTIONS|DEAD AT");
    for (size_t i = 0; i < hf_dead_list_count(list); i++) {
        const struct hf_dead_view *dead = hf_dead_list_at(list, i);
        hfi_table_cell(table, "%lld", (long long)dead->id);
        hfi_table_cell(table, "%s", hf_dead_status_name(dead->status));
        if (dead->job_id > 0)
            hfi_table_cell(table, "%lld", (long long)dead->job_id);
        else
            hfi_table_cell(table, "-");
        hfi_table_cell(table, "%s", dead->type);
        hfi_table_cell(table, "%s%s", hf_death_class_name(dead->death_class), dead->quarantined ? ", quarantined" : "");
        hfi_table_cell(table, "%s", dead->error_type);
        hfi_table_cell(table, "%u", dead->executions);
        hfi_table_cell(table, "%s", hfi_show_time(dead->dead_at_us, at));
    }
    hfi_table_print(table);
    if (hf_dead_list_next(list) > 0)
        hfi_say("more: --after %lld", (long long)hf_dead_list_next(list));
}

static int list_page(struct hfi_session *session, const struct hf_dead_filter *filter) {
    struct hf_dead_list *list = NULL;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_dead_list_open(session->store, filter, &list, &error) != 0)
        return hfi_complain(&error);
    if (hfi_manner()->json) {
        json_t *items = json_array();
        for (size_t i = 0; i < hf_dead_list_count(list); i++)
            json_array_append_new(items, hfi_dead_json(hf_dead_list_at(list, i), false));
        hfi_print_list(items, hf_dead_list_next(list));
    } else {
        print_dead(list);
    }
    hf_dead_list_free(list);
    return HFI_EXIT_OK;
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_dead_filter filter;
    hfi_dead_filter_read(options, &filter);
    filter.status = (int32_t)hfi_flag_number(options, "status", HF_DEAD_DEAD);
    if (filter.status > HF_DEAD_DISCARDED)
        filter.status = -1;
    filter.limit = (uint32_t)hfi_flag_number(options, "limit", 100);
    filter.after_id = hfi_flag_number(options, "after", 0);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0)
        code = hfi_flag(options, "group")->given ? hfi_dead_groups(&session, &filter) : list_page(&session, &filter);
    hfi_session_close(&session);
    return code;
}

/* Where it went besides the alerts [S2.32]. */
static void show_forwards(const struct hf_dead *dead, json_t *object) {
    json_t *items = object ? json_array() : NULL;
    for (size_t i = 0; i < hf_dead_forward_count(dead); i++) {
        const struct hf_dead_forward *forward = hf_dead_forward_at(dead, i);
        bool handled = strcmp(forward->name, "handler") == 0;
        if (!object) {
            hfi_field(handled ? "handled" : "forwarded", "by %s as job %lld: %s", forward->name, (long long)forward->job_id,
                      forward->outcome[0] ? forward->outcome : "not yet done");
            continue;
        }
        json_t *item = json_object();
        hfi_json_text(item, "name", forward->name);
        hfi_json_number(item, "job_id", forward->job_id);
        hfi_json_text(item, "outcome", forward->outcome);
        json_array_append_new(items, item);
    }
    if (object)
        json_object_set_new(object, "forwards", items);
}

static void print_whole(const struct hf_dead *dead) {
    json_t *object = hfi_manner()->json ? hfi_dead_json(hf_dead_look(dead), true) : NULL;
    if (!object)
        hfi_show_dead(hf_dead_look(dead));
    show_forwards(dead, object);
    if (object)
        hfi_print_json(object);
}

static int run_show(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_dead *dead = NULL;
    struct hf_error error;
    int64_t id = 0;
    hf_error_init(&error);
    int code = hfi_id_read(options->arguments[0], "dead letter", &id);
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_dead_get(session.store, id, &dead, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0)
        print_whole(dead);
    hf_dead_free(dead);
    hfi_session_close(&session);
    return code;
}

static const struct hfi_flag settle_flags[] = {
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it (default: the login name)"},
    {.name = "reason", .kind = HFI_FLAG_TEXT, .value = "R", .help = "why, for the record"},
    {0},
};

typedef int (*settle_fn)(struct hf_store *store, int64_t id, const struct hf_dead_action *action, struct hf_error *error);

static int settle(const struct hfi_options *options, settle_fn act, const char *word) {
    struct hfi_session session;
    struct hf_dead_action action;
    struct hf_error error;
    int64_t id = 0;
    hf_error_init(&error);
    hf_dead_action_init(&action);
    action.actor = hfi_actor(options);
    action.reason = hfi_flag_text(options, "reason", NULL);
    int code = hfi_id_read(options->arguments[0], "dead letter", &id);
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && act(session.store, id, &action, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json) {
        json_t *object = json_object();
        hfi_json_number(object, "id", id);
        hfi_json_text(object, "status", word);
        hfi_print_json(object);
    } else if (code == 0) {
        hfi_say("dead letter %lld %s", (long long)id, word);
    }
    hfi_session_close(&session);
    return code;
}

static int run_resolve(const struct hfi_options *options) {
    return settle(options, hf_dead_resolve, "resolved");
}

static int run_discard(const struct hfi_options *options) {
    return settle(options, hf_dead_discard, "discarded");
}

const struct hfi_command hfi_command_dead_list = {
    .name = "dead list",
    .arguments = "",
    .summary = "Lists dead letters, newest first",
    .example = "holdfast dead list --error-type http.404 --since 24h",
    .flags = list_flags,
    .prints_json = true,
    .run = run_list,
};
const struct hfi_command hfi_command_dead_show = {
    .name = "dead show",
    .arguments = "ID",
    .summary = "Shows a dead letter: the evidence, the payload, what became of it",
    .example = "holdfast dead show 3",
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_show,
};
const struct hfi_command hfi_command_dead_resolve = {
    .name = "dead resolve",
    .arguments = "ID",
    .summary = "Marks a dead letter as settled by other means",
    .example = "holdfast dead resolve 3 --reason 'refunded by hand'",
    .flags = settle_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_resolve,
};
const struct hfi_command hfi_command_dead_discard = {
    .name = "dead discard",
    .arguments = "ID",
    .summary = "Marks a dead letter as not worth doing",
    .example = "holdfast dead discard 3 --reason 'test order'",
    .flags = settle_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_discard,
};
