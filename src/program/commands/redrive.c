/* SPDX-License-Identifier: MIT */
/*
 * `holdfast dead redrive`: new jobs from dead letters, by id, or by filter as a task (redrive_task.c). Must never redrive everything because somebody
 * left the filter out, nor stop at one that was settled meanwhile. The main thread's.
 */
#include <stdio.h>
#include <string.h>

#include "program/commands/commands.h"
#include "program/commands/dead_filter.h"
#include "program/commands/redrive_task.h"
#include "program/output.h"
#include "program/session.h"

static const struct hfi_flag flags[] = {
    {.name = "actor", .kind = HFI_FLAG_TEXT, .value = "A", .help = "who does it", .required = true},
    {.name = "reason", .kind = HFI_FLAG_TEXT, .value = "R", .help = "why, for the record"},
    HFI_DEAD_FILTER_FLAGS,
    {.name = "all", .kind = HFI_FLAG_SWITCH, .help = "every dead letter, without a filter; needs --expect"},
    {.name = "payload", .kind = HFI_FLAG_BYTES, .value = "P", .help = "a corrected payload; the original stays on the row; needs --new-key"},
    {.name = "file", .kind = HFI_FLAG_TEXT, .value = "F", .help = "the corrected payload from a file, or - for stdin"},
    {.name = "new-key", .kind = HFI_FLAG_SWITCH, .help = "a new idempotency key: the downstream may do it twice"},
    {.name = "force", .kind = HFI_FLAG_SWITCH, .help = "also what was forwarded, and has not failed there: it may be done twice then"},
    HFI_REDRIVE_TASK_FLAGS,
    {.name = "dry-run", .kind = HFI_FLAG_SWITCH, .help = "print what would be redriven, change nothing"},
    {0},
};

struct redrive {
    struct hfi_session session;
    struct hf_dead_action action;
    bool dry;
    int code; /* the worst so far */
    uint64_t done, refused;
    json_t *items; /* NULL unless --json */
};

static void tell(struct redrive *redrive, int64_t id, int64_t new_job) {
    if (redrive->items) {
        json_t *item = json_object();
        hfi_json_number(item, "id", id);
        if (new_job > 0)
            hfi_json_number(item, "new_job_id", new_job);
        else
            json_object_set_new(item, "new_job_id", json_null());
        json_array_append_new(redrive->items, item);
    } else if (redrive->dry) {
        hfi_say("dead letter %lld would be redriven", (long long)id);
    } else {
        hfi_say("dead letter %lld redriven as job %lld", (long long)id, (long long)new_job);
    }
}

/* Would it be redriven, as far as one can see? Says why not. */
static bool may_redrive(const struct redrive *redrive, const struct hf_dead_view *dead) {
    if (dead->status != HF_DEAD_DEAD)
        hfi_say("dead letter %lld is settled already", (long long)dead->id);
    else if (dead->payload_cut && !redrive->action.payload)
        hfi_say("dead letter %lld needs a whole payload: its own is cut", (long long)dead->id);
    else
        return true;
    return false;
}

/* One dead letter. False when going on makes no sense. */
static bool redrive_one(struct redrive *redrive, int64_t id) {
    struct hf_error error;
    int64_t new_job = 0;
    hf_error_init(&error);
    int code = redrive->dry ? 0 : hf_dead_redrive(redrive->session.store, id, &redrive->action, &new_job, &error);
    if (code == 0) {
        redrive->done++;
        tell(redrive, id, new_job);
        return true;
    }
    redrive->refused++;
    int exit_code = hfi_complain(&error);
    if (redrive->code == 0 || exit_code == HFI_EXIT_FAILED)
        redrive->code = exit_code;
    return code == HF_ESTATE || code == HF_ENOENT || code == HF_EEXIST;
}

static void by_ids(struct redrive *redrive, const struct hfi_options *options, const int64_t *ids) {
    for (size_t i = 0; i < options->argument_count; i++) {
        struct hf_dead *dead = NULL;
        struct hf_error error;
        hf_error_init(&error);
        int code = redrive->dry ? hf_dead_get(redrive->session.store, ids[i], &dead, &error) : 0;
        bool open = code == 0 && (!dead || may_redrive(redrive, hf_dead_look(dead)));
        hf_dead_free(dead);
        if (code != 0) {
            redrive->code = hfi_complain(&error);
        } else if (!open) {
            redrive->refused++;
            redrive->code = HFI_EXIT_REFUSED;
        } else if (!redrive_one(redrive, ids[i])) {
            return;
        }
    }
}

/* What a task with this filter would redrive, newest first. */
static void try_filter(struct redrive *redrive, struct hf_dead_filter *filter) {
    struct hf_dead_list *list = NULL;
    struct hf_error error;
    filter->limit = 500;
    do {
        hf_error_init(&error);
        if (hf_dead_list_open(redrive->session.store, filter, &list, &error) != 0) {
            redrive->code = hfi_complain(&error);
            return;
        }
        for (size_t i = 0; i < hf_dead_list_count(list); i++) {
            const struct hf_dead_view *dead = hf_dead_list_at(list, i);
            if (may_redrive(redrive, dead)) {
                redrive_one(redrive, dead->id);
            } else {
                redrive->refused++;
                redrive->code = HFI_EXIT_REFUSED;
            }
        }
        filter->after_id = hf_dead_list_next(list);
        hf_dead_list_free(list);
    } while (filter->after_id > 0);
}

/* Everything at once is never done without its number: it was looked at, then [I85]. */
static int refuse_uncounted(const struct redrive *redrive, const struct hf_dead_filter *filter) {
    struct hf_dead_group_list *list = NULL;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_dead_group_list_open(redrive->session.store, filter, &list, &error) != 0)
        return hfi_complain(&error);
    unsigned long long count = hf_dead_group_list_total(list);
    hf_dead_group_list_free(list);
    error.code = HF_ESTATE;
    snprintf(error.what, sizeof error.what, "redrive");
    snprintf(error.why, sizeof error.why, "--all would take %llu dead letter%s", count, count == 1 ? "" : "s");
    snprintf(error.fix, sizeof error.fix, "look at them with --dry-run, then add --expect %llu", count);
    return hfi_complain(&error);
}

static int begin_task(struct redrive *redrive, const struct hfi_options *options, const struct hf_dead_filter *filter,
                      struct hf_redrive_options *wish) {
    wish->filter = filter;
    wish->actor = redrive->action.actor;
    wish->reason = redrive->action.reason;
    wish->new_key = redrive->action.new_key;
    wish->force = redrive->action.force;
    if (hfi_flag(options, "all")->given && wish->expect < 0)
        return refuse_uncounted(redrive, filter);
    return hfi_redrive_many(&redrive->session, wish, hfi_flag(options, "detach")->given);
}

static int read_action(struct redrive *redrive, const struct hfi_options *options) {
    struct hfi_payload payload = {0};
    const char *text = hfi_flag_text(options, "payload", NULL), *file = hfi_flag_text(options, "file", NULL);
    int code = file ? hfi_payload_file(&redrive->session, file, &payload) : 0;
    hf_dead_action_init(&redrive->action);
    redrive->action.actor = hfi_actor(options);
    redrive->action.reason = hfi_flag_text(options, "reason", NULL);
    redrive->action.payload = text ? text : payload.data;
    redrive->action.payload_length = text ? strlen(text) : payload.length;
    redrive->action.new_key = hfi_flag(options, "new-key")->given;
    redrive->action.force = hfi_flag(options, "force")->given;
    return code;
}

static int check_choice(const struct hfi_options *options, bool filtered) {
    static const char *const of_many[] = {"rate", "canary", "stop-at", "detach", "expect"};
    const char *text = hfi_flag_text(options, "payload", NULL), *file = hfi_flag_text(options, "file", NULL);
    bool ids = options->argument_count > 0, all = hfi_flag(options, "all")->given;
    if (!*hfi_flag_text(options, "actor", ""))
        return hfi_usage("actor", NULL, "it is empty");
    if (!ids && !filtered && !all)
        return hfi_usage("dead redrive", "name ids, a filter, or --all", "nothing says which ones");
    if (ids + filtered + all > 1)
        return hfi_usage("dead redrive", "give one of them", "ids, filters and --all exclude each other");
    if (text && file)
        return hfi_usage("dead redrive", "give one of them", "--payload and --file are both given");
    if ((text || file) && !hfi_flag(options, "new-key")->given)
        return hfi_usage("dead redrive", "add --new-key", "another payload is another request: the old key would get the old answer");
    if ((text || file) && options->argument_count != 1)
        return hfi_usage("dead redrive", "name one id", "a corrected payload fits one dead letter");
    for (size_t i = 0; ids && i < sizeof of_many / sizeof *of_many; i++)
        if (hfi_flag(options, of_many[i])->given)
            return hfi_usage(of_many[i], "give a filter, or --all", "it is for a redrive of many, by a filter");
    return 0;
}

static void print_end(struct redrive *redrive) {
    if (redrive->items) {
        json_t *object = json_object();
        hfi_json_number(object, redrive->dry ? "would_redrive" : "redriven", (int64_t)redrive->done);
        hfi_json_number(object, "refused", (int64_t)redrive->refused);
        json_object_set_new(object, "items", redrive->items);
        json_object_set_new(object, "next", json_null());
        hfi_print_json(object);
    } else if (redrive->dry) {
        hfi_say("%llu %s, %llu refused", (unsigned long long)redrive->done, redrive->dry ? "would be redriven" : "redriven",
                (unsigned long long)redrive->refused);
    }
}

static int run(const struct hfi_options *options) {
    struct redrive redrive = {.dry = hfi_flag(options, "dry-run")->given};
    struct hf_dead_filter filter;
    struct hf_redrive_options wish;
    int64_t ids[256];
    hf_redrive_options_init(&wish);
    int code = check_choice(options, hfi_dead_filter_read(options, &filter));
    for (size_t i = 0; code == 0 && i < options->argument_count; i++)
        code = hfi_id_read(options->arguments[i], "dead letter", &ids[i]);
    if (code == 0)
        code = hfi_redrive_flags(options, &wish);
    if (code != 0)
        return code;
    code = hfi_session_open(&redrive.session, options, HFI_SESSION_STORE);
    if (code == 0)
        code = read_action(&redrive, options);
    if (code == 0 && options->argument_count == 0 && !redrive.dry) {
        code = begin_task(&redrive, options, &filter, &wish);
    } else if (code == 0) {
        redrive.items = hfi_manner()->json ? json_array() : NULL;
        if (options->argument_count > 0)
            by_ids(&redrive, options, ids);
        else
            try_filter(&redrive, &filter);
        print_end(&redrive);
        code = redrive.code;
        if (code == 0 && wish.expect >= 0 && redrive.done != (uint64_t)wish.expect) {
            hfi_note("there are %llu dead letters, not %lld", (unsigned long long)redrive.done, (long long)wish.expect);
            code = HFI_EXIT_REFUSED;
        }
    }
    hfi_session_close(&redrive.session);
    return code;
}

const struct hfi_command hfi_command_dead_redrive = {
    .name = "dead redrive",
    .arguments = "[ID...]",
    .summary = "Makes new jobs from dead letters and marks those as redriven",
    .about = "By ids, by filters, or --all; many are a task of the store, oldest first: when this command is interrupted, nodes go on\n"
             "with it, and `dead task cancel` ends it. How many there are is said first, on stderr; --all is refused without --expect N, the\n"
             "number that you saw. The new job has the same idempotency key, so that work that was done after all is not done twice. A\n"
             "settled dead letter is refused, and one whose payload is cut without a whole one (exit 4).",
    .example = "holdfast dead redrive --error-type http.503 --actor ada --reason 'payments is back' --dry-run\n"
               "holdfast dead redrive --type charge --actor ada --canary 5 --rate 10/s --stop-at 20%\n"
               "holdfast dead redrive 3 --actor ada --payload '{\"amount\":7}' --new-key",
    .flags = flags,
    .max_arguments = 256,
    .prints_json = true,
    .run = run,
};
