/* SPDX-License-Identifier: MIT */
/* `holdfast queue list|pause|resume`. The main thread's. */
#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/output.h"
#include "program/session.h"

static void json_bound(json_t *object, const char *key, uint32_t bound) {
    json_object_set_new(object, key, bound > 0 ? json_integer(bound) : json_null());
}

/* Bounds are those of the configuration here: other nodes may have others. */
static json_t *queue_json(const struct hf_queue_view *queue, const struct hfi_queue_setting *setting) {
    json_t *object = json_object();
    hfi_json_text(object, "name", queue->name);
    hfi_json_flag(object, "paused", queue->paused);
    hfi_json_time(object, "paused_until", queue->paused_until_us);
    hfi_json_number(object, "due", (int64_t)queue->due);
    hfi_json_number(object, "scheduled", (int64_t)queue->scheduled);
    hfi_json_number(object, "running", (int64_t)queue->running);
    hfi_json_time(object, "oldest_due_at", queue->oldest_due_at_us);
    json_bound(object, "concurrency", setting ? setting->concurrency : 0);
    json_bound(object, "global_concurrency", setting ? setting->global_concurrency : 0);
    return object;
}

static json_t *limit_json(const struct hf_limit_view *limit, const struct hfi_limit_setting *setting) {
    json_t *object = json_object();
    hfi_json_text(object, "name", limit->name);
    hfi_json_number(object, "keys", (int64_t)limit->keys);
    hfi_json_number(object, "pending", (int64_t)limit->pending);
    hfi_json_number(object, "running", (int64_t)limit->running);
    hfi_json_flag(object, "known", setting != NULL);
    json_bound(object, "concurrency", setting ? setting->concurrency : 0);
    json_object_set_new(object, "rate_per_second", setting && setting->rate > 0 ? json_real(setting->rate) : json_null());
    return object;
}

static void cell_bound(struct hfi_table *table, uint32_t bound) {
    if (bound > 0)
        hfi_table_cell(table, "%u", bound);
    else
        hfi_table_cell(table, "-");
}

static void print_limits(const struct hfi_config *config, const struct hf_limit_list *list) {
    struct hfi_table *table = hfi_table_new("LIMIT|>KEYS|>PENDING|>RUNNING|>OF A KEY AT ONCE|RATE OF A KEY");
    for (size_t i = 0; i < hf_limit_list_count(list); i++) {
        const struct hf_limit_view *limit = hf_limit_list_at(list, i);
        const struct hfi_limit_setting *setting = hfi_config_limit(config, limit->name);
        hfi_table_cell(table, "%s", limit->name);
        hfi_table_cell(table, "%llu", (unsigned long long)limit->keys);
        hfi_table_cell(table, "%llu", (unsigned long long)limit->pending);
        hfi_table_cell(table, "%llu", (unsigned long long)limit->running);
        cell_bound(table, setting ? setting->concurrency : 0);
        if (!setting)
            hfi_table_cell(table, "not in the configuration: not limited");
        else if (setting->rate > 0)
            hfi_table_cell(table, "%g/s", setting->rate);
        else
            hfi_table_cell(table, "-");
    }
    hfi_table_print(table);
}

static void print_queues(const struct hfi_config *config, const struct hf_queue_list *list) {
    char oldest[HF_TIME_LENGTH], until[HF_TIME_LENGTH];
    struct hfi_table *table = hfi_table_new("QUEUE|>DUE|>SCHEDULED|>RUNNING|>OF A NODE|>OF ALL|OLDEST DUE|PAUSED");
    for (size_t i = 0; i < hf_queue_list_count(list); i++) {
        const struct hf_queue_view *queue = hf_queue_list_at(list, i);
        hfi_table_cell(table, "%s", queue->name);
        hfi_table_cell(table, "%llu", (unsigned long long)queue->due);
        hfi_table_cell(table, "%llu", (unsigned long long)queue->scheduled);
        hfi_table_cell(table, "%llu", (unsigned long long)queue->running);
        const struct hfi_queue_setting *setting = hfi_config_queue(config, queue->name);
        cell_bound(table, setting ? setting->concurrency : 0);
        cell_bound(table, setting ? setting->global_concurrency : 0);
        hfi_table_cell(table, "%s", hfi_show_time(queue->oldest_due_at_us, oldest));
        hfi_table_cell(table, "%s%s", !queue->paused ? "no" : queue->paused_until_us > 0 ? "until " : "until resumed",
                       queue->paused ? hf_time_print(queue->paused_until_us, until) : "");
    }
    hfi_table_print(table);
}

static void print_all_json(const struct hfi_config *config, const struct hf_queue_list *list,
                           const struct hf_limit_list *limits) {
    json_t *object = json_object(), *items = json_array(), *keyed = json_array();
    for (size_t i = 0; i < hf_queue_list_count(list); i++) {
        const struct hf_queue_view *queue = hf_queue_list_at(list, i);
        json_array_append_new(items, queue_json(queue, hfi_config_queue(config, queue->name)));
    }
    for (size_t i = 0; i < hf_limit_list_count(limits); i++) {
        const struct hf_limit_view *limit = hf_limit_list_at(limits, i);
        json_array_append_new(keyed, limit_json(limit, hfi_config_limit(config, limit->name)));
    }
    json_object_set_new(object, "items", items);
    json_object_set_new(object, "limits", keyed);
    json_object_set_new(object, "next", json_null());
    hfi_print_json(object);
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_queue_list *list = NULL;
    struct hf_limit_list *limits = NULL;
    struct hf_error error;
    hf_error_init(&error);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && (hf_store_list_queues(session.store, &list, &error) != 0 ||
                      hf_store_list_limits(session.store, &limits, &error) != 0))
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json) {
        print_all_json(&session.config, list, limits);
    } else if (code == 0) {
        print_queues(&session.config, list);
        if (hf_limit_list_count(limits) > 0)
            print_limits(&session.config, limits);
    }
    hf_limit_list_free(limits);
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
    .summary = "Lists the queues with what waits in them, and the limits by key of these jobs",
    .about = "OF A NODE and OF ALL are the configuration's concurrency and global_concurrency; other nodes may have others.",
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
