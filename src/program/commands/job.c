/* SPDX-License-Identifier: MIT */
/* `holdfast job list|show|cancel|requeue`. Must never load more than one page of jobs. The main thread's. */
#include <string.h>

#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/commands/past.h"
#include "program/commands/views.h"
#include "program/output.h"
#include "program/session.h"

/* First what a pending job is shown as, in the order of enum hf_job_shown, then the states in theirs. */
#define SHOWN_STATES 4
#define STATES "scheduled|retrying|parked|ready|pending|waiting|running|succeeded|dead|quarantined|cancelled"

static const struct hfi_flag list_flags[] = {
    {.name = "state", .kind = HFI_FLAG_CHOICE, .value = STATES, .help = "only of this state; pending ones are scheduled, retrying, parked or ready"},
    {.name = "type", .kind = HFI_FLAG_TEXT, .value = "T", .help = "only of this type"},
    {.name = "queue", .kind = HFI_FLAG_TEXT, .value = "Q", .help = "only of this queue"},
    {.name = "since", .kind = HFI_FLAG_DURATION, .value = "D", .help = "only jobs made in the last D"},
    {.name = "tag", .kind = HFI_FLAG_TEXT, .value = "WORD", .help = "only those with this word among their tags"},
    {.name = "correlation", .kind = HFI_FLAG_TEXT, .value = "ID", .help = "only those with this correlation id"},
    {.name = "limit-key", .kind = HFI_FLAG_TEXT, .value = "NAME:KEY", .help = "only those of this limit"},
    {.name = "message", .kind = HFI_FLAG_TEXT, .value = "ID", .help = "only those made of this message of another system"},
    {.name = "limit", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "at most N (default: 100)", .min = 1, .max = 1000},
    {.name = "after", .kind = HFI_FLAG_NUMBER, .value = "CURSOR", .help = "go on behind an earlier page", .min = 1, .max = INT64_MAX},
    {0},
};

/* Texts that no job can have would find nothing, and say so to nobody. */
static int check_filter(const struct hf_job_filter *filter) {
    const char *limit = filter->limit_key, *colon = limit ? strchr(limit, ':') : NULL;
    if (limit && (!colon || colon == limit || !colon[1]))
        return hfi_usage("limit-key", "write tenant:42, as in enqueue --limit", "`%s` is not NAME:KEY", limit);
    if (filter->tag && (!*filter->tag || strchr(filter->tag, ',')))
        return hfi_usage("tag", "give one word", "`%s` is no single tag", filter->tag);
    return 0;
}

static void list_filter(const struct hfi_options *options, struct hf_job_filter *filter) {
    int64_t state = hfi_flag_number(options, "state", -1);
    hf_job_filter_init(filter);
    filter->shown = state < SHOWN_STATES ? (int32_t)state : -1;
    filter->state = state < SHOWN_STATES ? -1 : (int32_t)state - SHOWN_STATES;
    filter->type = hfi_flag_text(options, "type", NULL);
    filter->queue = hfi_flag_text(options, "queue", NULL);
    filter->tag = hfi_flag_text(options, "tag", NULL);
    filter->correlation_id = hfi_flag_text(options, "correlation", NULL);
    filter->limit_key = hfi_flag_text(options, "limit-key", NULL);
    filter->source_message_id = hfi_flag_text(options, "message", NULL);
    if (hfi_flag(options, "since")->given)
        filter->created_since_us = hfi_ago_us(hfi_flag(options, "since")->number);
    filter->limit = (uint32_t)hfi_flag_number(options, "limit", 100);
    filter->after_id = hfi_flag_number(options, "after", 0);
}

/* What is printed, while its pages come: one call of the store may stop short of the limit. */
struct listing {
    json_t *items;
    struct hfi_table *table;
};

static void add_job(struct listing *listing, const struct hf_job_view *job) {
    char at[HF_TIME_LENGTH];
    if (listing->items) {
        json_array_append_new(listing->items, hfi_job_json(job, false));
        return;
    }
    hfi_table_cell(listing->table, "%lld", (long long)job->id);
    hfi_table_cell(listing->table, "%s", job->shown);
    hfi_table_cell(listing->table, "%s", job->type);
    hfi_table_cell(listing->table, "%s", job->queue);
    hfi_table_cell(listing->table, "%u", job->executions);
    hfi_table_cell(listing->table, "%s", hfi_show_time(job->run_at_us, at));
    hfi_table_cell(listing->table, "%s", job->error_type);
}

/* 0 or an exit code after a complaint. The filter's cursor moves on, to 0 at the end. */
static int gather_jobs(struct hf_store *store, struct hf_job_filter *filter, struct listing *listing) {
    struct hf_error error;
    uint32_t left = filter->limit;
    hf_error_init(&error);
    do {
        struct hf_job_list *list = NULL;
        filter->limit = left;
        if (hf_store_list_jobs(store, filter, &list, &error) != 0)
            return hfi_complain(&error);
        for (size_t i = 0; i < hf_job_list_count(list); i++)
            add_job(listing, hf_job_list_at(list, i));
        left -= (uint32_t)hf_job_list_count(list);
        filter->after_id = hf_job_list_next(list);
        hf_job_list_free(list);
    } while (filter->after_id != 0 && left > 0);
    return 0;
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_job_filter filter;
    list_filter(options, &filter);
    int code = check_filter(&filter);
    if (code != 0)
        return code;
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    struct listing listing = {NULL, NULL};
    if (hfi_manner()->json)
        listing.items = json_array();
    else
        listing.table = hfi_table_new(">ID|STATE|TYPE|QUEUE|>EXECUTIONS|RUN AT|ERROR");
    if (code == 0)
        code = gather_jobs(session.store, &filter, &listing);
    if (code == 0 && listing.items) {
        hfi_print_list(listing.items, filter.after_id);
        listing.items = NULL;
    }
    json_decref(listing.items);
    if (code == 0 && listing.table)
        hfi_table_print(listing.table);
    else
        hfi_table_free(listing.table);
    if (code == 0 && filter.after_id > 0)
        hfi_say("more: --after %lld", (long long)filter.after_id);
    hfi_session_close(&session);
    return code;
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
        json_t *object = hfi_job_json(hf_job_look(job), true);
        hfi_past_json(object, job);
        hfi_print_json(object);
    } else if (code == 0) {
        hfi_show_job(hf_job_look(job));
        hfi_show_past(job);
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
    {.name = "force", .kind = HFI_FLAG_SWITCH, .help = "also when its death was forwarded: it may be done twice then"},
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
    unsigned flags = (hfi_flag(options, "new-key")->given ? HF_REQUEUE_NEW_KEY : 0) |
                     (hfi_flag(options, "force")->given ? HF_REQUEUE_FORCE : 0);
    code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0 && hf_store_requeue_job(session.store, id, hfi_actor(options), hfi_flag_text(options, "reason", NULL),
                                          flags, &error) != 0)
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
    .summary = "Shows a job with its payload, whom it waits for, and what happened to it",
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
    .about = "One that waits ends at once, and with it the jobs that wait for it; a running one is told within a heartbeat. One that has ended is refused (exit 4).",
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
    .about = "Jobs that were cancelled because they waited for it wait again. One whose death was forwarded, and that has not failed, is refused without --force (exit 4).",
    .example = "holdfast job requeue 17 --actor ada --reason 'address corrected'",
    .flags = requeue_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_requeue,
};
