/* SPDX-License-Identifier: MIT */
/*
 * Works a node's configuration out into rules: what is known about a type, and which policy is in force for a type in a
 * queue. Must never change once others read it; must never mix two levels of a policy but for max_executions (C14).
 * Built on the caller's thread, read by any.
 */
#include "jobs/rulebook_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/kinds/plugin.h"
#include "jobs/limit.h"

#define SINK_NAME_MAX 63 /* what an alert's row has room for */
#define RETRY_AFTER_CAP_MS (INT64_C(3600) * 1000)
#define GIVE_UP_AFTER_MS (INT64_C(24) * 3600 * 1000)

/*
 * Lays a closer level over `policy`: a list of waits replaces the whole of it, max_executions alone keeps the waits (C14),
 * and a formula alone, whose table is as long as we made it, keeps the number of executions.
 */
static void lay(struct hfi_curve *policy, const struct hf_curve_options *level) {
    if (!level)
        return;
    if (level->curve_length > 0) {
        uint32_t executions = level->formula ? policy->max_executions : level->curve_length + 1;
        memset(policy, 0, sizeof *policy);
        policy->length = level->curve_length;
        memcpy(policy->waits_ms, level->curve_ms, level->curve_length * sizeof *level->curve_ms);
        policy->jitter_permille = (uint32_t)lround(level->jitter * 1000);
        policy->cap_ms = level->cap_ms;
        policy->max_executions = executions;
    }
    if (level->max_executions > 0)
        policy->max_executions = level->max_executions;
}

static int add_queues(struct hfi_rulebook *book, const struct hf_runner_options *options, struct hf_error *error) {
    if (options->queue_count == 0)
        return 0;
    book->queues = hfi_keep_alloc(&book->keep, options->queue_count * sizeof *book->queues);
    if (!book->queues)
        return hfi_fail(error, HF_ENOMEM, "queues", NULL, NULL);
    for (size_t i = 0; i < options->queue_count; i++) {
        struct hf_queue_options given;
        const struct hf_curve_options *curve;
        const struct hf_queue_options *from = hfi_option_of(options->queue_options, i);
        if (!from)
            return hfi_refuse_size("queue", error);
        hf_queue_options_init(&given);
        memcpy(&given, from, from->size < sizeof given ? from->size : sizeof given);
        int code = hfi_name_check("queue", given.name, HFI_NAME_MAX, error);
        for (size_t j = 0; j < book->queue_count && code == 0; j++)
            if (strcmp(book->queues[j].name, given.name) == 0)
                code = hfi_refuse_twice("queue", given.name, error);
        if (code == 0 && given.aging_ms < 0)
            code = hfi_fail(error, HF_EINVAL, given.name, "0 is none", "a negative aging_ms");
        if (code == 0)
            code = hfi_curve_options_copy(&book->keep, given.name, given.curve, &curve, error);
        if (code != 0)
            return code;
        struct hfi_book_queue *queue = &book->queues[book->queue_count++];
        queue->policy = book->global;
        lay(&queue->policy, curve);
        queue->name = hfi_keep_text(&book->keep, given.name);
        if (!queue->name)
            return hfi_fail(error, HF_ENOMEM, "queues", NULL, NULL);
    }
    return 0;
}

#define POLICY_END(member)                                                                                             \
    (offsetof(struct hf_policy_options, member) + sizeof((struct hf_policy_options *)0)->member)

/* Only two of its numbers concern the rules; the caller checks the rest when it builds the downstream. */
static int add_targets(struct hfi_rulebook *book, const struct hf_runner_options *options, struct hf_error *error) {
    if (options->downstream_count == 0)
        return 0;
    book->targets = hfi_keep_alloc(&book->keep, options->downstream_count * sizeof *book->targets);
    if (!book->targets)
        return hfi_fail(error, HF_ENOMEM, "downstreams", NULL, NULL);
    for (size_t i = 0; i < options->downstream_count; i++) {
        struct hf_downstream_options given;
        const struct hf_downstream_options *from = hfi_option_of(options->downstreams, i);
        if (!from)
            return hfi_refuse_size("downstream", error);
        hf_downstream_options_init(&given);
        memcpy(&given, from, from->size < sizeof given ? from->size : sizeof given);
        int code = hfi_name_check("downstream", given.name, HFI_NAME_MAX, error);
        if (code != 0)
            return code;
        struct hfi_target_rules *target = &book->targets[book->target_count++];
        const struct hf_policy_options *policy = given.policy;
        bool has_cap = policy && policy->size >= POLICY_END(retry_after_cap_ms);
        bool has_limit = policy && policy->size >= POLICY_END(give_up_after_ms);
        target->retry_after_cap_ms = has_cap ? policy->retry_after_cap_ms : RETRY_AFTER_CAP_MS;
        target->give_up_after_ms = has_limit ? policy->give_up_after_ms : GIVE_UP_AFTER_MS;
        target->name = hfi_keep_text(&book->keep, given.name);
        if (!target->name)
            return hfi_fail(error, HF_ENOMEM, "downstreams", NULL, NULL);
    }
    return 0;
}

static int add_sinks(struct hfi_rulebook *book, const struct hf_runner_options *options, struct hf_error *error) {
    if (options->sink_count == 0)
        return 0;
    book->sinks = hfi_keep_alloc(&book->keep, options->sink_count * sizeof *book->sinks);
    book->sink_rules = hfi_keep_alloc(&book->keep, options->sink_count * sizeof *book->sink_rules);
    if (!book->sinks || !book->sink_rules)
        return hfi_fail(error, HF_ENOMEM, "sinks", NULL, NULL);
    for (size_t i = 0; i < options->sink_count; i++) {
        struct hf_sink_options given;
        const struct hf_sink_options *from = hfi_option_of(options->sinks, i);
        if (!from)
            return hfi_refuse_size("sink", error);
        hf_sink_options_init(&given);
        memcpy(&given, from, from->size < sizeof given ? from->size : sizeof given);
        int code = hfi_name_check("sink", given.name, SINK_NAME_MAX, error);
        for (size_t j = 0; j < book->sink_count && code == 0; j++)
            if (strcmp(book->sinks[j], given.name) == 0)
                code = hfi_refuse_twice("sink", given.name, error);
        if (code != 0)
            return code;
        book->sinks[book->sink_count] = hfi_keep_text(&book->keep, given.name);
        book->sink_rules[book->sink_count] = (struct hfi_sink_rule){book->sinks[book->sink_count], hfi_ms_to_us(given.collapse_ms)};
        if (!book->sinks[book->sink_count++])
            return hfi_fail(error, HF_ENOMEM, "sinks", NULL, NULL);
    }
    return 0;
}

static int refuse_reserved(const struct hf_type_options *type, struct hf_error *error) {
    return hfi_fail(error, HF_EINVAL, type->name, "choose another name", "names that begin with %s are reserved", HFI_RESERVED);
}

static bool is_reserved(const struct hf_type_options *type) {
    return type && type->size >= sizeof type->size && hfi_forward_reserved(type->name);
}

static int add_types(struct hfi_rulebook *book, const struct hf_runner_options *options, struct hf_error *error) {
    for (size_t i = 0; i < options->type_count; i++) {
        const struct hf_type_options *type = hfi_option_of(options->types, i);
        int code = type ? hfi_rulebook_add(book, type, NULL, NULL, error) : hfi_refuse_size("job type", error);
        if (code != 0)
            return code;
    }
    return 0;
}

static int fill(struct hfi_rulebook *book, const struct hf_runner_options *options, struct hf_error *error) {
    const struct hf_curve_options *curve;
    book->max_crashes = options->max_crashes;
    book->max_give_backs = options->max_give_backs;
    book->execution_timeout_ms = options->execution_timeout_ms;
    book->abandon_after_ms = options->abandon_after_ms;
    if (book->abandon_after_ms < 0)
        return hfi_fail(error, HF_EINVAL, "abandon_after_ms", "0 is never", "negative");
    if (book->execution_timeout_ms < 0)
        return hfi_fail(error, HF_EINVAL, "execution_timeout_ms", "0 is none", "negative");
    int code = hfi_never_retry_check(options->never_retry, options->never_retry_count, error);
    if (code == 0)
        code = hfi_curve_options_copy(&book->keep, "curve", options->curve, &curve, error);
    if (code != 0)
        return code;
    hfi_curve_default(&book->global);
    lay(&book->global, curve);
    book->never_retry = hfi_keep_texts(&book->keep, options->never_retry, options->never_retry_count);
    book->never_retry_count = options->never_retry_count;
    if (!book->never_retry && book->never_retry_count > 0)
        return hfi_fail(error, HF_ENOMEM, "never_retry", NULL, NULL);
    code = hfi_limits_check(options, error);
    if (code == 0)
        code = add_queues(book, options, error);
    if (code == 0)
        code = add_targets(book, options, error);
    if (code == 0)
        code = add_sinks(book, options, error);
    if (code == 0)
        code = add_types(book, options, error);
    if (code == 0)
        code = hfi_rulebook_add_forwards(book, options, error);
    return code;
}

static int make(const struct hf_runner_options *given, const struct hfi_rulebook *before, struct hfi_rulebook **book,
                struct hf_error *error) {
    struct hf_runner_options options;
    *book = NULL;
    if (!given || given->size < sizeof given->size)
        return hfi_refuse_size("runner options", error);
    hf_runner_options_init(&options);
    memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    struct hfi_rulebook *made = hfi_alloc(sizeof *made);
    if (!made)
        return hfi_fail(error, HF_ENOMEM, "runner options", NULL, NULL);
    made->users = 1;
    made->before = before;
    int code = fill(made, &options, error);
    if (code == 0 && before)
        code = hfi_rulebook_carry_over(made, before, error);
    made->before = NULL;
    if (code != 0) {
        hfi_rulebook_free(made);
        return code;
    }
    *book = made;
    return 0;
}

int hfi_rulebook_new(const struct hf_runner_options *options, struct hfi_rulebook **book, struct hf_error *error) {
    return make(options, NULL, book, error);
}

int hfi_rulebook_next(const struct hf_runner_options *options, const struct hfi_rulebook *before,
                      struct hfi_rulebook **book, struct hf_error *error) {
    return make(options, before, book, error);
}

struct hfi_rulebook *hfi_rulebook_hold(struct hfi_rulebook *book) {
    atomic_fetch_add(&book->users, 1);
    return book;
}

void hfi_rulebook_free(struct hfi_rulebook *book) {
    if (!book || atomic_fetch_sub(&book->users, 1) > 1)
        return;
    for (size_t i = 0; i < book->type_count; i++)
        hfi_plugin_leave(&book->types[i]->type);
    hfi_keep_free(&book->keep);
    hfi_free(book->types);
    hfi_free(book->forwards);
    hfi_free(book->names);
    hfi_free(book);
}

/* Where the type is, or would be put. */
static bool locate(const struct hfi_rulebook *book, const char *name, size_t *at) {
    size_t low = 0, high = book->type_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(book->types[middle]->type.options.name, name);
        if (order == 0) {
            *at = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return false;
}

static const struct hfi_book_queue *queue_of(const struct hfi_rulebook *book, const char *name) {
    for (size_t i = 0; i < book->queue_count; i++)
        if (strcmp(book->queues[i].name, name) == 0)
            return &book->queues[i];
    return NULL;
}

/* The policies the type has of its own. */
static bool add_policies(struct hfi_rulebook *book, struct hfi_entry *entry) {
    const struct hf_curve_options *curve = entry->type.options.curve;
    entry->own = book->global;
    lay(&entry->own, curve);
    if (!curve || curve->curve_length > 0 || book->queue_count == 0)
        return true;
    struct hfi_curve *queues = hfi_keep_alloc(&book->keep, book->queue_count * sizeof *queues);
    for (size_t i = 0; queues && i < book->queue_count; i++) {
        queues[i] = book->queues[i].policy;
        lay(&queues[i], curve);
    }
    entry->queues = queues;
    return queues != NULL;
}

static bool add_never_retry(struct hfi_rulebook *book, struct hfi_entry *entry) {
    const struct hf_type_options *type = &entry->type.options;
    entry->never_retry = book->never_retry;
    entry->never_retry_count = book->never_retry_count;
    if (type->never_retry_count == 0)
        return true;
    size_t count = book->never_retry_count + type->never_retry_count;
    const char **both = hfi_keep_alloc(&book->keep, count * sizeof *both);
    if (!both)
        return false;
    for (size_t i = 0; i < count; i++)
        both[i] = i < book->never_retry_count ? book->never_retry[i] : type->never_retry[i - book->never_retry_count];
    entry->never_retry = both;
    entry->never_retry_count = count;
    return true;
}

static bool insert(struct hfi_rulebook *book, struct hfi_entry *entry, size_t at) {
    if (book->type_count == book->type_room) {
        size_t room = book->type_room > 0 ? book->type_room * 2 : 16;
        struct hfi_entry **types = hfi_realloc(book->types, room * sizeof *types);
        if (!types)
            return false;
        book->types = types;
        const char **names = hfi_realloc(book->names, room * sizeof *names);
        if (!names)
            return false;
        book->names = names;
        book->type_room = room;
    }
    memmove(book->types + at + 1, book->types + at, (book->type_count - at) * sizeof(struct hfi_entry *));
    memmove(book->names + at + 1, book->names + at, (book->type_count - at) * sizeof *book->names);
    book->types[at] = entry;
    book->names[at] = entry->type.options.name;
    book->type_count++;
    return true;
}

static const struct hfi_curve *policy_of(const struct hfi_rulebook *book, const struct hfi_entry *entry,
                                         const char *queue_name) {
    const struct hfi_book_queue *queue = queue_of(book, queue_name);
    if (!entry || !entry->type.options.curve)
        return queue ? &queue->policy : &book->global;
    return queue && entry->queues ? &entry->queues[queue - book->queues] : &entry->own;
}

static int use_plugin(struct hfi_rulebook *book, struct hfi_type *type, struct hf_error *error) {
    if (type->options.kind != HF_KIND_PLUGIN ||
        (book->before && hfi_plugin_share(type, hfi_rulebook_type(book->before, type->options.name))))
        return 0;
    return hfi_plugin_use(type, error);
}

int hfi_rulebook_insert(struct hfi_rulebook *book, const struct hf_type_options *type, const struct hfi_type *handlers,
                        struct hf_error *error) {
    size_t at;
    struct hfi_entry *entry = hfi_keep_alloc(&book->keep, sizeof *entry);
    if (!entry)
        return hfi_fail(error, HF_ENOMEM, "job type", NULL, NULL);
    int code = hfi_type_options_copy(&book->keep, type, handlers->handler || handlers->async_handler, &entry->type.options, error);
    if (code != 0)
        return code;
    if (locate(book, entry->type.options.name, &at))
        return hfi_refuse_twice("job type", entry->type.options.name, error); /* [S0.8] */
    entry->type.handler = handlers->handler;
    entry->type.async_handler = handlers->async_handler;
    entry->type.user = handlers->user;
    entry->type.error_header = handlers->error_header;
    if ((code = use_plugin(book, &entry->type, error)) != 0)
        return code;
    entry->type.abandon_after_ms = entry->type.options.abandon_after_ms >= 0 ? entry->type.options.abandon_after_ms
                                                                             : book->abandon_after_ms;
    entry->type.execution_timeout_ms = entry->type.options.execution_timeout_ms >= 0
                                           ? entry->type.options.execution_timeout_ms
                                           : book->execution_timeout_ms;
    int64_t silence = entry->type.options.heartbeat_timeout_ms, limit = entry->type.execution_timeout_ms;
    if (silence > 0 && limit > 0 && silence >= limit)
        code = hfi_fail(error, HF_EINVAL, type->name, "make it shorter, or the execution timeout longer",
                        "heartbeat_timeout_ms %" PRId64 " can never be over within execution_timeout_ms %" PRId64, silence,
                        limit);
    if (code == 0 && (!add_policies(book, entry) || !add_never_retry(book, entry) || !insert(book, entry, at)))
        code = hfi_fail(error, HF_ENOMEM, "job type", NULL, NULL);
    if (code != 0) {
        hfi_plugin_leave(&entry->type);
        return code;
    }
    entry->type.policy = *policy_of(book, entry, entry->type.options.queue);
    return 0;
}

int hfi_rulebook_add(struct hfi_rulebook *book, const struct hf_type_options *type, hf_handler_fn handler, void *user,
                     struct hf_error *error) {
    struct hfi_type handlers = {.handler = handler, .user = user};
    return is_reserved(type) ? refuse_reserved(type, error) : hfi_rulebook_insert(book, type, &handlers, error);
}

int hfi_rulebook_add_async(struct hfi_rulebook *book, const struct hf_type_options *type, hf_async_handler_fn handler,
                           void *user, struct hf_error *error) {
    struct hfi_type handlers = {.async_handler = handler, .user = user};
    return is_reserved(type) ? refuse_reserved(type, error) : hfi_rulebook_insert(book, type, &handlers, error);
}

static const struct hfi_entry *entry_of(const struct hfi_rulebook *book, const char *name) {
    size_t at;
    return locate(book, name, &at) ? book->types[at] : NULL;
}

const struct hfi_type *hfi_rulebook_type(const struct hfi_rulebook *book, const char *name) {
    const struct hfi_entry *entry = entry_of(book, name);
    return entry ? &entry->type : NULL;
}

size_t hfi_rulebook_type_count(const struct hfi_rulebook *book) {
    return book->type_count;
}

const char *const *hfi_rulebook_names(const struct hfi_rulebook *book) {
    static const char *const none[] = {NULL};
    return book->names ? book->names : none;
}

const struct hfi_type *hfi_rulebook_type_at(const struct hfi_rulebook *book, size_t index) {
    return index < book->type_count ? &book->types[index]->type : NULL;
}

const struct hfi_curve *hfi_rulebook_policy(const struct hfi_rulebook *book, const char *type, const char *queue) {
    return policy_of(book, entry_of(book, type), queue);
}

void hfi_rulebook_for(const struct hfi_rulebook *book, const struct hfi_job *job, struct hfi_rules *rules) {
    const struct hfi_entry *entry = entry_of(book, job->type);
    const char *downstream = job->downstream;
    if (entry && (!downstream || !downstream[0]))
        downstream = entry->type.options.downstream;
    memset(rules, 0, sizeof *rules);
    rules->policy = policy_of(book, entry, job->queue);
    rules->repeatable = !entry || entry->type.options.repeatable; /* of another node's type the record knows */
    rules->runs_code = entry && hfi_runs_code(&entry->type);
    rules->max_crashes = book->max_crashes;
    rules->max_give_backs = book->max_give_backs;
    rules->retry_after_cap_ms = RETRY_AFTER_CAP_MS;
    rules->give_up_after_ms = GIVE_UP_AFTER_MS;
    for (size_t i = 0; downstream && i < book->target_count; i++)
        if (strcmp(book->targets[i].name, downstream) == 0) {
            rules->retry_after_cap_ms = book->targets[i].retry_after_cap_ms;
            rules->give_up_after_ms = book->targets[i].give_up_after_ms;
        }
    rules->forwards = &book->told;
    rules->schema = entry ? entry->type.options.schema : NULL;
    rules->never_retry = entry ? entry->never_retry : book->never_retry;
    rules->never_retry_count = entry ? entry->never_retry_count : book->never_retry_count;
}

size_t hfi_rulebook_sinks(const struct hfi_rulebook *book, const char *const **names) {
    *names = book->sinks;
    return book->sink_count;
}

const struct hfi_forwards *hfi_rulebook_forwards(const struct hfi_rulebook *book) {
    return &book->told;
}

const struct hfi_sink_rule *hfi_rulebook_sink_rules(const struct hfi_rulebook *book) {
    return book->sink_rules;
}
