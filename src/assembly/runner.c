/* SPDX-License-Identifier: MIT */
/*
 * The public runner: a loop, a client and the options around the node of src/jobs/runner. Brings starts and stops from
 * any thread to the loop. Must never do more in hf_runner_stop than a signal handler may. The caller's thread, which
 * becomes the loop thread in hf_runner_run.
 */
#include "holdfast/runner.h"
#include "holdfast/units.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "assembly/client.h"
#include "assembly/ladder.h"
#include "assembly/runner_state.h"
#include "assembly/sinks.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/stack.h"
#include "base/text.h"
#include "jobs/record.h"
#include "jobs/runner/runner.h"
#include "loop/loop.h"

/* ------------------------------------------------------------------ its options, copied */

const void *hfi_option_at(const void *array, uint32_t step, size_t index) {
    return (const char *)array + index * step;
}

int hfi_options_copy_queues(struct hfi_keep *keep, const struct hf_runner_options *given, struct hf_runner_options *options) {
    size_t count = given->queue_count;
    struct hf_queue_options *queues = hfi_keep_alloc(keep, (count + 1) * sizeof *queues);
    if (queues == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct hf_queue_options *from = hfi_option_at(given->queue_options, given->queue_options->size, i);
        hf_queue_options_init(&queues[i]);
        memcpy(&queues[i], from, from->size < sizeof *queues ? from->size : sizeof *queues);
        queues[i].size = (uint32_t)sizeof *queues;
        queues[i].name = hfi_keep_text(keep, from->name);
        queues[i].curve = NULL; /* the rulebook has it */
        if (queues[i].name == NULL)
            return HF_ENOMEM;
    }
    options->queue_options = queues;
    options->queue_count = count;
    return 0;
}

int hfi_options_copy_limits(struct hfi_keep *keep, const struct hf_runner_options *given, struct hf_runner_options *options) {
    size_t count = options->limit_count;
    struct hf_limit_options *limits = hfi_keep_alloc(keep, (count + 1) * sizeof *limits);
    if (limits == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct hf_limit_options *from = hfi_option_at(given->limits, given->limits->size, i);
        hf_limit_options_init(&limits[i]);
        memcpy(&limits[i], from, from->size < sizeof *limits ? from->size : sizeof *limits);
        limits[i].size = (uint32_t)sizeof *limits;
        limits[i].name = hfi_keep_text(keep, from->name);
        if (from->name != NULL && limits[i].name == NULL)
            return HF_ENOMEM;
    }
    options->limits = limits;
    return 0;
}

static int copy_options(struct hf_runner *runner, const struct hf_runner_options *given) {
    struct hf_runner_options *options = &runner->options;
    char host[256] = "";
    hf_runner_options_init(options);
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    options->size = (uint32_t)sizeof *options;
    if (gethostname(host, sizeof host - 1) != 0)
        memcpy(host, "localhost", sizeof "localhost");
    options->node = hfi_keep_text(&runner->keep, given->node != NULL ? given->node : host);
    if (options->node == NULL)
        return HF_ENOMEM;
    if (given->queues != NULL) {
        options->queues = hfi_keep_texts(&runner->keep, given->queues, given->queue_filter_count);
        if (options->queues == NULL && given->queue_filter_count > 0)
            return HF_ENOMEM;
    }
    int code = hfi_options_copy_queues(&runner->keep, given, options);
    if (code == 0)
        code = hfi_options_copy_limits(&runner->keep, given, options);
    return code != 0 ? code : hfi_sinks_copy(&runner->keep, given, options);
}

static int check(const struct hf_runner_options *options, struct hf_error *error) {
    char lease[HF_DURATION_LENGTH], beat[HF_DURATION_LENGTH];
    int code = hfi_name_check("node.name", options->node, HFI_NAME_MAX, error);
    if (code != 0)
        return code;
    if (options->workers < 1 || options->workers > 4096)
        return hfi_fail(error, HF_ECONFIG, "node.workers", "use 1 to 4096", "%u workers", options->workers);
    if (options->poll_ms < 1 || options->heartbeat_ms < 1 || options->drain_timeout_ms < 0)
        return hfi_fail(error, HF_ECONFIG, "node", NULL, "poll and heartbeat have to be at least 1ms, drain_timeout 0");
    if (options->prefetch > 1024)
        return hfi_fail(error, HF_ECONFIG, "node.prefetch", "use 0 to 1024", "%u jobs", options->prefetch);
    if (options->watchdog_ms < 0 || options->watchdog_grace_ms < 0)
        return hfi_fail(error, HF_ECONFIG, "node.watchdog", "0 switches it off", "a negative limit");
    if (options->lease_ms / 3 < options->heartbeat_ms)
        return hfi_fail(error, HF_ECONFIG, "node.lease", "raise it or beat more often",
                        "a lease of %s is less than three heartbeats of %s",
                        hf_duration_print(options->lease_ms, lease), hf_duration_print(options->heartbeat_ms, beat));
    return 0;
}

/* ------------------------------------------------------------------ made */

static void ended(int code, void *user) {
    struct hf_runner *runner = user;
    runner->result = code;
    runner->loop->ops->unwatch(runner->loop, runner->stop_watch);
    runner->stop_watch = NULL;
    runner->loop->ops->stop(runner->loop);
}

static int make_watchdog(struct hf_runner *runner, struct hf_error *error) {
    int asks = runner->options.stack_signal;
    int code = asks > 0 && runner->options.watchdog_ms > 0 ? hfi_stack_enable(asks) : 0;
    if (code != 0 && code != HF_ENOTSUP)
        return hfi_fail(error, code, "stack_signal", "give one that the program does not use, or 0", "signal %d %s", asks,
                        code == HF_EEXIST ? "has a handler, or another one asks for stacks already" : "cannot be had");
    code = hfi_watchdog_new(&runner->options, runner->loop, &runner->watchdog);
    if (code == 0)
        code = hfi_watchdog_add(runner->watchdog, "writer", hfi_writer_pulse(runner->store->writer));
    if (code == 0)
        code = hfi_outboxes_watch(runner->outboxes, runner->watchdog);
    return code == 0 ? 0 : hfi_fail(error, code, "watchdog", NULL, "no memory");
}

static int make_parts(struct hf_runner *runner, const struct hf_runner_options *given, struct hf_error *error) {
    int code = hfi_rulebook_new(given, &runner->book, error);
    if (code == 0 && (code = hfi_loop_new(&runner->loop)) != 0)
        hfi_fail(error, code, "runner", NULL, "no loop: %s", hf_strerror(code));
    if (code == 0)
        code = hfi_ladder_prove(runner->book, given->downstreams, given->downstream_count,
                                runner->options.max_calls_per_job, error);
    if (code == 0)
        code = hfi_client_borrow(runner->loop, given->downstreams, given->downstream_count, &runner->client, error);
    if (code != 0)
        return code;
    runner->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (runner->stop_fd < 0)
        return hfi_fail(error, HF_EIO, "runner", NULL, "no event descriptor: %s", strerror(errno));
    code = hfi_outboxes_new(given, runner->store, runner->book, &runner->outboxes, error);
    if (code != 0)
        return code;
    code = make_watchdog(runner, error);
    if (code != 0)
        return code;
    struct hfi_runner_parts parts = {.scheduler = runner->loop,
                                     .store = runner->store,
                                     .options = &runner->options,
                                     .book = runner->book,
                                     .caller = hfi_client_caller(runner->client),
                                     .client = runner->client,
                                     .transport = hfi_client_transport(runner->client),
                                     .busy = hfi_outboxes_busy,
                                     .busy_user = runner->outboxes,
                                     .quiet = hfi_next_take,
                                     .wards = hfi_watchdog_wards(runner->watchdog),
                                     .ended = ended,
                                     .user = runner};
    return hfi_runner_new(&parts, &runner->node, error);
}

static void free_parts(struct hf_runner *runner) {
    hfi_outboxes_free(runner->outboxes);
    hfi_runner_free(runner->node);
    hf_client_close(runner->client);
    if (runner->loop != NULL)
        runner->loop->ops->close(runner->loop);
    hfi_watchdog_free(runner->watchdog);
    hfi_rulebook_free(runner->book);
    if (runner->stop_fd >= 0)
        close(runner->stop_fd);
    hfi_next_free(atomic_load(&runner->change));
    hfi_next_free(runner->taken);
    pthread_mutex_destroy(&runner->changing);
    hfi_keep_free(&runner->keep);
    pthread_cond_destroy(&runner->over);
    pthread_mutex_destroy(&runner->lock);
    hfi_free(runner);
}

int hf_runner_new(struct hf_store *store, const struct hf_runner_options *options, struct hf_runner **out,
                  struct hf_error *error) {
    if (store == NULL || options == NULL || out == NULL || options->size < sizeof options->size)
        return hfi_fail(error, HF_EINVAL, "runner", "call hf_runner_options_init first", "no store or no options");
    *out = NULL;
    struct hf_runner *runner = hfi_alloc(sizeof *runner);
    if (runner == NULL)
        return hfi_fail(error, HF_ENOMEM, "runner", NULL, "no memory");
    runner->store = store;
    runner->stop_fd = -1;
    pthread_mutex_init(&runner->lock, NULL);
    pthread_mutex_init(&runner->changing, NULL);
    pthread_cond_init(&runner->over, NULL);
    int code = copy_options(runner, options);
    if (code != 0)
        hfi_fail(error, code, "runner", NULL, "no memory");
    if (code == 0)
        code = check(&runner->options, error);
    if (code == 0)
        code = make_parts(runner, options, error);
    if (code != 0) {
        free_parts(runner);
        return code;
    }
    *out = runner;
    return 0;
}

static bool has_begun(struct hf_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    bool begun = runner->stage != HFI_STAGE_MADE;
    pthread_mutex_unlock(&runner->lock);
    return begun;
}

static int may_register(struct hf_runner *runner, const struct hf_type_options *type, bool handler,
                        struct hf_error *error) {
    if (runner == NULL || type == NULL || !handler)
        return hfi_fail(error, HF_EINVAL, "runner", NULL, "no runner, type or handler");
    if (has_begun(runner))
        return hfi_fail(error, HF_ESTATE, type->name == NULL ? "type" : type->name, "register before the run",
                        "the runner runs already");
    return 0;
}

int hf_runner_register(struct hf_runner *runner, const struct hf_type_options *type, hf_handler_fn handler, void *user,
                       struct hf_error *error) {
    int code = may_register(runner, type, handler != NULL, error);
    return code != 0 ? code : hfi_rulebook_add(runner->book, type, handler, user, error);
}

int hf_runner_register_async(struct hf_runner *runner, const struct hf_type_options *type, hf_async_handler_fn handler,
                             void *user, struct hf_error *error) {
    int code = may_register(runner, type, handler != NULL, error);
    return code != 0 ? code : hfi_rulebook_add_async(runner->book, type, handler, user, error);
}

int hf_runner_on_death(struct hf_runner *runner, const struct hf_type_options *type, hf_handler_fn handler, void *user,
                       struct hf_error *error) {
    int code = may_register(runner, type, handler != NULL, error);
    return code != 0 ? code : hfi_rulebook_on_death(runner->book, type, handler, user, error);
}

int hf_runner_observe(struct hf_runner *runner, hf_transition_fn observer, void *user) {
    if (runner == NULL || observer == NULL)
        return HF_EINVAL;
    return has_begun(runner) ? HF_ESTATE : hfi_runner_observe(runner->node, observer, user);
}

int hf_runner_on_retry(struct hf_runner *runner, hf_retry_fn hook, void *user) {
    if (runner == NULL || hook == NULL)
        return HF_EINVAL;
    return has_begun(runner) ? HF_ESTATE : hfi_runner_on_retry(runner->node, hook, user);
}

/* ------------------------------------------------------------------ run */

static void take_stops(struct hf_runner *runner) {
    unsigned asked = atomic_load(&runner->stops);
    if (asked > 0)
        hfi_outboxes_stop(runner->outboxes);
    for (; runner->stops_seen != asked && runner->stops_seen < 2; runner->stops_seen++)
        hfi_runner_drain(runner->node);
}

static void stop_asked(struct hfi_watch *watch, unsigned events, void *user) {
    (void)watch;
    (void)events;
    struct hf_runner *runner = user;
    uint64_t count;
    while (read(runner->stop_fd, &count, sizeof count) > 0) {
    }
    take_stops(runner);
}

static void begin(struct hfi_task *task, void *user) {
    (void)task;
    struct hf_runner *runner = user;
    hfi_runner_begin(runner->node);
    hfi_outboxes_start(runner->outboxes, runner->loop, runner->node);
    take_stops(runner);
}

static int claim_run(struct hf_runner *runner, struct hf_error *error) {
    int code = hfi_rulebook_prove_forwards(runner->book, error); /* now all types are known */
    if (code != 0)
        return code;
    pthread_mutex_lock(&runner->lock);
    bool free_to_run = runner->stage == HFI_STAGE_MADE;
    if (free_to_run)
        runner->stage = HFI_STAGE_RUNNING;
    pthread_mutex_unlock(&runner->lock);
    return free_to_run ? 0 : hfi_fail(error, HF_ESTATE, "runner", "make a new one", "it has run already");
}

/* The loop thread, for as long as the node lives. */
static int run(struct hf_runner *runner) {
    bool may_block = hfi_may_block();
    hfi_thread_must_not_block(true);
    int code = runner->loop->ops->watch(runner->loop, runner->stop_fd, HFI_READABLE, stop_asked, runner,
                                        &runner->stop_watch);
    if (code == 0) {
        runner->begin.run = begin;
        runner->begin.user = runner;
        runner->loop->ops->post(runner->loop, &runner->begin);
        if (hfi_watchdog_start(runner->watchdog) != 0)
            hfi_log(HF_LOG_ERROR, "watchdog.no_thread", HFI_S("why", hf_strerror(HF_ENOMEM)), NULL);
        runner->loop->ops->run(runner->loop);
        hfi_watchdog_stop(runner->watchdog);
        hfi_outboxes_join(runner->outboxes); /* nothing is posted any more */
        code = runner->result;
    }
    hfi_thread_must_not_block(!may_block);
    pthread_mutex_lock(&runner->lock);
    runner->result = code;
    runner->stage = HFI_STAGE_OVER;
    pthread_cond_broadcast(&runner->over);
    pthread_mutex_unlock(&runner->lock);
    return code;
}

int hf_runner_run(struct hf_runner *runner, struct hf_error *error) {
    if (runner == NULL)
        return hfi_fail(error, HF_EINVAL, "runner", NULL, "none given");
    if (!hfi_may_block())
        return hfi_fail(error, HF_EDEADLK, "runner", "use hf_runner_start", "this thread must not block");
    int code = claim_run(runner, error);
    if (code != 0)
        return code;
    code = run(runner);
    return code < 0 ? hfi_fail(error, code, "runner", NULL, "it could not join the store: %s", hf_strerror(code)) : code;
}

static void *run_on_thread(void *user) {
    run(user);
    return NULL;
}

int hf_runner_start(struct hf_runner *runner, struct hf_error *error) {
    if (runner == NULL)
        return hfi_fail(error, HF_EINVAL, "runner", NULL, "none given");
    int code = claim_run(runner, error);
    if (code != 0)
        return code;
    sigset_t all, before;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&runner->thread, NULL, run_on_thread, runner);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&runner->lock);
    runner->threaded = !failed;
    runner->stage = failed ? HFI_STAGE_MADE : runner->stage;
    pthread_mutex_unlock(&runner->lock);
    if (failed)
        return hfi_fail(error, HF_ENOMEM, "runner", NULL, "no thread: %s", strerror(failed));
    pthread_setname_np(runner->thread, "hf-runner");
    return 0;
}

/* ------------------------------------------------------------------ stop and look */

void hf_runner_stop(struct hf_runner *runner) {
    if (runner == NULL)
        return;
    int before = errno; /* a signal handler leaves it as it was */
    uint64_t one = 1;
    atomic_fetch_add(&runner->stops, 1);
    ssize_t written = write(runner->stop_fd, &one, sizeof one);
    (void)written; /* full means that it is readable, which is all we want */
    errno = before;
}

static int wait_over(struct hf_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    while (runner->stage == HFI_STAGE_RUNNING)
        pthread_cond_wait(&runner->over, &runner->lock);
    bool join = runner->threaded && !runner->joined;
    runner->joined = runner->joined || join;
    int result = runner->stage == HFI_STAGE_OVER ? runner->result : 0;
    pthread_mutex_unlock(&runner->lock);
    if (join)
        pthread_join(runner->thread, NULL);
    return result;
}

int hf_runner_drain(struct hf_runner *runner) {
    if (runner == NULL)
        return HF_EINVAL;
    if (runner->loop->ops->on_thread(runner->loop))
        return HF_EDEADLK;
    if (atomic_load(&runner->stops) == 0)
        hf_runner_stop(runner);
    return wait_over(runner);
}

void hf_runner_free(struct hf_runner *runner) {
    if (runner == NULL)
        return;
    hf_runner_drain(runner);
    if (hfi_runner_abandoned(runner->node))
        return; /* a handler that never returned still uses all of it */
    free_parts(runner);
}

struct hf_client *hf_runner_client(struct hf_runner *runner) {
    return runner == NULL ? NULL : runner->client;
}

void hf_runner_look(struct hf_runner *runner, struct hf_runner_counts *counts) {
    struct hf_runner_counts whole;
    if (runner == NULL || counts == NULL)
        return;
    hf_runner_counts_init(&whole);
    hfi_runner_counts(runner->node, &whole);
    hfi_outboxes_count(runner->outboxes, hfi_writer_wall(runner->store->writer).us, &whole);
    hfi_watchdog_count(runner->watchdog, &whole);
    whole.size = counts->size;
    memcpy(counts, &whole, counts->size < sizeof whole ? counts->size : sizeof whole);
}

bool hf_runner_healthy(const struct hf_runner *runner) {
    return runner == NULL || hfi_watchdog_healthy(runner->watchdog);
}

struct hf_downstream *hf_runner_downstream(struct hf_runner *runner, const char *name) {
    return runner == NULL || name == NULL ? NULL : hf_client_downstream(runner->client, name);
}
