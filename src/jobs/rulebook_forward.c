/* SPDX-License-Identifier: MIT */
/*
 * What of a rulebook is not said by types and queues: who is told of deaths, and what a book takes over from the one before
 * it. Must never let a copy go to a place that is not there. As rulebook.c.
 */
#include "base/alloc.h"
#include "jobs/forward_options.h"
#include "jobs/rulebook_state.h"

/* At the end of its kind. */
static int insert_forward(struct hfi_rulebook *book, const struct hfi_forward *forward, struct hf_error *error) {
    size_t count = book->told.count, at = forward->handler ? book->handler_count : count;
    struct hfi_forward *grown = hfi_realloc(book->forwards, (count + 1) * sizeof *grown);
    if (!grown)
        return hfi_fail(error, HF_ENOMEM, "forwarders", NULL, NULL);
    memmove(grown + at + 1, grown + at, (count - at) * sizeof *grown);
    grown[at] = *forward;
    book->handler_count += forward->handler;
    book->forwards = grown;
    book->told = (struct hfi_forwards){grown, count + 1};
    return 0;
}

static bool has_queue(const struct hf_runner_options *options, const char *name) {
    bool found = options->queue_count == 0 || strcmp(name, "default") == 0;
    for (size_t i = 0; i < options->queue_count && !found; i++)
        found = strcmp(((const struct hf_queue_options *)hfi_option_of(options->queue_options, i))->name, name) == 0;
    return found;
}

static bool has_downstream(const struct hf_runner_options *options, const char *name) {
    bool found = false;
    for (size_t i = 0; i < options->downstream_count && !found; i++)
        found = strcmp(((const struct hf_downstream_options *)hfi_option_of(options->downstreams, i))->name, name) == 0;
    return found;
}

/* Where a copy would go has to be there before the first death [S2.27]. */
static int check_forward(const struct hf_runner_options *options, const struct hfi_forward *forward,
                         const struct hf_type_options *type, struct hf_error *error) {
    if (!type->name && !has_queue(options, forward->to_queue))
        return hfi_fail(error, HF_ECONFIG, forward->name, "add it to the queues", "it forwards to the queue `%s`, which is not there",
                        forward->to_queue);
    if (type->downstream && !has_downstream(options, type->downstream))
        return hfi_fail(error, HF_ECONFIG, forward->name, "add it to the downstreams",
                        "it forwards to the downstream `%s`, which is not there", type->downstream);
    return 0;
}

int hfi_rulebook_add_forwards(struct hfi_rulebook *book, const struct hf_runner_options *options, struct hf_error *error) {
    int code = 0;
    for (size_t i = 0; i < options->forward_count && code == 0; i++) {
        const struct hf_forward_options *given = hfi_option_of(options->forwards, i);
        struct hfi_forward forward;
        struct hf_type_options type;
        struct hfi_type handlers = {.error_header = given && given->error_header};
        if (!given)
            return hfi_refuse_size("forwarder", error);
        code = hfi_forward_options_copy(&book->keep, given, &forward, &type, error);
        for (size_t j = 0; j < book->told.count && code == 0; j++)
            if (strcmp(book->forwards[j].name, forward.name) == 0)
                code = hfi_refuse_twice("forwarder", forward.name, error);
        if (code == 0)
            code = check_forward(options, &forward, &type, error);
        if (code == 0 && type.name)
            code = hfi_rulebook_insert(book, &type, &handlers, error);
        if (code == 0)
            code = insert_forward(book, &forward, error);
    }
    return code;
}

int hfi_rulebook_on_death(struct hfi_rulebook *book, const struct hf_type_options *given, hf_handler_fn handler, void *user,
                          struct hf_error *error) {
    struct hfi_forward forward;
    struct hf_type_options type;
    struct hfi_type handlers = {.handler = handler, .user = user};
    int code = hfi_death_options_copy(&book->keep, given, &forward, &type, error);
    if (code == 0)
        code = hfi_rulebook_insert(book, &type, &handlers, error);
    return code == 0 ? insert_forward(book, &forward, error) : code;
}

int hfi_rulebook_prove_forwards(const struct hfi_rulebook *book, struct hf_error *error) {
    for (size_t i = 0; i < book->told.count; i++) {
        const struct hfi_forward *forward = &book->forwards[i];
        if (forward->to_type && !hfi_rulebook_type(book, forward->to_type))
            return hfi_fail(error, HF_ECONFIG, forward->name, "add it to the job types",
                            "it forwards to the job type `%s`, which is not there", forward->to_type);
    }
    return 0;
}

static int carry_handler(struct hfi_rulebook *book, const struct hfi_forward *before, struct hf_error *error) {
    struct hfi_forward forward = *before; /* its name is a constant */
    forward.type = hfi_keep_text(&book->keep, before->type);
    forward.to_queue = hfi_keep_text(&book->keep, before->to_queue);
    forward.to_type = hfi_keep_text(&book->keep, before->to_type);
    if (!forward.type || !forward.to_queue || !forward.to_type)
        return hfi_fail(error, HF_ENOMEM, "death handlers", NULL, NULL);
    return insert_forward(book, &forward, error);
}

/* The handlers that were registered, and the sinks. */
int hfi_rulebook_carry_over(struct hfi_rulebook *book, const struct hfi_rulebook *before, struct hf_error *error) {
    for (size_t i = 0; i < before->type_count; i++) {
        const struct hfi_type *type = &before->types[i]->type;
        int code = type->options.kind == HF_KIND_NATIVE && (type->handler || type->async_handler)
                       ? hfi_rulebook_insert(book, &type->options, type, error)
                       : 0;
        if (code != 0)
            return code;
    }
    for (size_t i = 0; i < before->handler_count; i++) {
        int code = carry_handler(book, &before->forwards[i], error);
        if (code != 0)
            return code;
    }
    book->sink_count = before->sink_count;
    book->sinks = hfi_keep_alloc(&book->keep, (before->sink_count + 1) * sizeof *book->sinks);
    book->sink_rules = hfi_keep_alloc(&book->keep, (before->sink_count + 1) * sizeof *book->sink_rules);
    for (size_t i = 0; i < before->sink_count; i++) {
        if (!book->sinks || !book->sink_rules || !(book->sinks[i] = hfi_keep_text(&book->keep, before->sinks[i])))
            return hfi_fail(error, HF_ENOMEM, "alerts", NULL, NULL);
        book->sink_rules[i] = (struct hfi_sink_rule){book->sinks[i], before->sink_rules[i].collapse_us};
    }
    return 0;
}
