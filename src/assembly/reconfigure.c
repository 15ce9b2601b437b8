/* SPDX-License-Identifier: MIT */
/*
 * Other options for a runner that runs: all of them are checked, copied and proven on the caller's thread, then the loop
 * takes them up between two claims. Must never change anything when a part of them is refused. Any thread, one after the
 * other.
 */
#include <string.h>

#include "assembly/client.h"
#include "assembly/ladder.h"
#include "assembly/runner_state.h"
#include "base/alloc.h"
#include "base/text.h"
#include "jobs/runner/runner.h"

void hfi_next_free(struct hfi_next_options *change) {
    if (change == NULL)
        return;
    hfi_rulebook_free(change->book);
    hfi_keep_free(&change->keep);
    hfi_free(change);
}

/* These fields are the loop thread's alone, and read where they are used. */
static void take_numbers(struct hf_runner_options *options, const struct hf_runner_options *given) {
    options->drain_timeout_ms = given->drain_timeout_ms;
    options->poll_ms = given->poll_ms;
    options->prefetch = given->prefetch;
    options->unknown_type_grace_ms = given->unknown_type_grace_ms;
    options->max_abandoned = given->max_abandoned;
    options->keep_succeeded_ms = given->keep_succeeded_ms;
    options->keep_cancelled_ms = given->keep_cancelled_ms;
    options->keep_dead_ms = given->keep_dead_ms;
    options->keep_quarantined_ms = given->keep_quarantined_ms;
    options->keep_dead_letters_ms = given->keep_dead_letters_ms;
    options->keep_inbox_ms = given->keep_inbox_ms;
    options->keep_audit_ms = given->keep_audit_ms;
    options->queue_options = given->queue_options;
    options->queue_count = given->queue_count;
    options->limits = given->limits;
    options->limit_count = given->limit_count;
}

void hfi_next_take(void *user) {
    struct hf_runner *runner = user;
    struct hfi_next_options *change = atomic_exchange(&runner->change, NULL);
    if (change == NULL)
        return;
    take_numbers(&runner->options, &change->options);
    hfi_outboxes_renew(runner->outboxes, change->book);
    hfi_runner_renew(runner->node, &runner->options, change->book);
    change->book = NULL; /* it is the node's */
    hfi_next_free(runner->taken);
    runner->taken = change;
}

static void reloaded(struct hfi_task *task, void *user) {
    (void)task;
    struct hf_runner *runner = user;
    atomic_store(&runner->reload_posted, false);
    if (atomic_load(&runner->change) != NULL)
        hfi_runner_quiet(runner->node);
    hfi_runner_reload(runner->node);
}

static void post_reload(struct hf_runner *runner) {
    if (atomic_exchange(&runner->reload_posted, true))
        return;
    runner->reload.run = reloaded;
    runner->reload.user = runner;
    runner->loop->ops->post(runner->loop, &runner->reload);
}

/* Before the run there is no loop to take it up, and types may be registered after it. */
static void hand_over(struct hf_runner *runner, struct hfi_next_options *change) {
    hfi_rulebook_free(runner->book);
    runner->book = hfi_rulebook_hold(change->book);
    runner->options.max_calls_per_job = change->options.max_calls_per_job;
    hfi_next_free(atomic_exchange(&runner->change, change)); /* one that nobody took up */
    pthread_mutex_lock(&runner->lock);
    bool begun = runner->stage != HFI_STAGE_MADE;
    if (!begun)
        hfi_next_take(runner);
    pthread_mutex_unlock(&runner->lock);
    if (begun)
        post_reload(runner);
}

static int check_numbers(const struct hf_runner_options *options, struct hf_error *error) {
    if (options->drain_timeout_ms < 0)
        return hfi_fail(error, HF_ECONFIG, "node.drain_timeout", "0 or more", "negative");
    if (options->prefetch > 1024)
        return hfi_fail(error, HF_ECONFIG, "node.prefetch", "use 0 to 1024", "%u jobs", options->prefetch);
    return options->poll_ms < 1 ? hfi_fail(error, HF_ECONFIG, "node.poll", "1ms or more", "less than that") : 0;
}

static bool has_begun(struct hf_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    bool begun = runner->stage != HFI_STAGE_MADE;
    pthread_mutex_unlock(&runner->lock);
    return begun;
}

static int copy(struct hf_runner *runner, const struct hf_runner_options *given, struct hfi_next_options *change,
                struct hf_error *error) {
    struct hf_runner_options *options = &change->options;
    int code = hfi_rulebook_next(given, runner->book, &change->book, error); /* what a start would refuse is refused */
    if (code != 0)
        return code;
    hf_runner_options_init(options);
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    options->size = (uint32_t)sizeof *options;
    code = check_numbers(options, error);
    if (code == 0 && has_begun(runner)) /* else types may yet be registered */
        code = hfi_rulebook_prove_forwards(change->book, error);
    if (code != 0)
        return code;
    code = hfi_options_copy_queues(&change->keep, given, options);
    if (code == 0)
        code = hfi_options_copy_limits(&change->keep, given, options);
    return code == 0 ? 0 : hfi_fail(error, code, "runner", NULL, "no memory");
}

static bool names(const struct hf_downstream_options *downstreams, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        const struct hf_downstream_options *options = hfi_option_at(downstreams, downstreams->size, i);
        if (options->name != NULL && strcmp(options->name, name) == 0)
            return true;
    }
    return false;
}

/* What the types call has to be there, or their jobs would die; and a reload can break what the start has proven (V15). */
static int prove(const struct hfi_rulebook *book, const struct hf_downstream_options *downstreams, size_t count,
                 uint32_t max_calls, struct hf_error *error) {
    if (count > 0 && (downstreams == NULL || downstreams->size == 0))
        return hfi_fail(error, HF_EINVAL, "reload", "use hf_downstream_options_init", "not initialised");
    for (size_t i = 0; i < hfi_rulebook_type_count(book); i++) {
        const struct hf_type_options *type = &hfi_rulebook_type_at(book, i)->options;
        if (type->kind == HF_KIND_HTTP && type->downstream != NULL && !names(downstreams, count, type->downstream))
            return hfi_fail(error, HF_ECONFIG, type->downstream, "keep it, or leave out the job type too",
                            "the job type `%s` calls it", type->name);
    }
    return hfi_ladder_prove(book, downstreams, count, max_calls, error);
}

/* The downstreams come last: they change at once, and by nothing that could fail half-way. */
static int tune(struct hf_runner *runner, const struct hf_runner_options *given, struct hf_error *error) {
    struct hfi_next_options *change = hfi_alloc(sizeof *change);
    if (change == NULL)
        return hfi_fail(error, HF_ENOMEM, "runner", NULL, "no memory");
    int code = copy(runner, given, change, error);
    const struct hf_runner_options *options = &change->options;
    if (code == 0)
        code = prove(change->book, options->downstreams, options->downstream_count, options->max_calls_per_job, error);
    if (code == 0)
        code = hf_client_reload(runner->client, options->downstreams, options->downstream_count, error);
    if (code != 0)
        hfi_next_free(change);
    else
        hand_over(runner, change);
    return code;
}

int hf_runner_tune(struct hf_runner *runner, const struct hf_runner_options *given, struct hf_error *error) {
    if (runner == NULL || given == NULL)
        return hfi_fail(error, HF_EINVAL, "runner", NULL, "no runner or no options");
    pthread_mutex_lock(&runner->changing);
    int code = tune(runner, given, error);
    pthread_mutex_unlock(&runner->changing);
    return code;
}

int hf_runner_reload(struct hf_runner *runner, const struct hf_downstream_options *downstreams, size_t count,
                     struct hf_error *error) {
    if (runner == NULL)
        return hfi_fail(error, HF_EINVAL, "reload", NULL, "no runner");
    pthread_mutex_lock(&runner->changing);
    int code = prove(runner->book, downstreams, count, runner->options.max_calls_per_job, error);
    if (code == 0)
        code = hf_client_reload(runner->client, downstreams, count, error);
    if (code == 0)
        post_reload(runner);
    pthread_mutex_unlock(&runner->changing);
    return code;
}
