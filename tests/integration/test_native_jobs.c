/* SPDX-License-Identifier: MIT */
/*
 * Native handlers end to end, through the public library on a SQLite file: handlers that hang do not keep another queue
 * from starting, an unknown result is a failure, and a drain gives back what it interrupts.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

#include "holdfast/holdfast.h"

#define HANGING 500
#define QUICK 60
#define LIMIT_US 2000000

static struct hf_error error;

/* What the handlers and the test's thread tell each other. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned hanging, quick;
    int64_t started_us[QUICK + 1];
} stage = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static int64_t wall_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void tell(unsigned *counter) {
    pthread_mutex_lock(&stage.lock);
    (*counter)++;
    pthread_cond_broadcast(&stage.moved);
    pthread_mutex_unlock(&stage.lock);
}

/* Waits until the counter has reached `count`; the harness ends a test that waits for ever. */
static void await(const unsigned *counter, unsigned count) {
    pthread_mutex_lock(&stage.lock);
    while (*counter < count)
        pthread_cond_wait(&stage.moved, &stage.lock);
    pthread_mutex_unlock(&stage.lock);
}

/* Hangs until it is told to stop: what a handler that waits for a dead downstream does. */
static enum hf_result hang(struct hf_work *work, void *user) {
    struct timespec moment = {0, 2000000};
    (void)user;
    tell(&stage.hanging);
    while (!hf_work_is_cancelled(work)) {
        pthread_mutex_lock(&stage.lock);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += moment.tv_nsec;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&stage.moved, &stage.lock, &until);
        pthread_mutex_unlock(&stage.lock);
    }
    return hf_work_failed(work, "hang.stopped", "told to stop");
}

static enum hf_result quick(struct hf_work *work, void *user) {
    (void)user;
    pthread_mutex_lock(&stage.lock);
    stage.started_us[stage.quick] = wall_us();
    pthread_mutex_unlock(&stage.lock);
    tell(&stage.quick);
    return hf_work_ok(work, NULL, 0);
}

static enum hf_result says_nothing(struct hf_work *work, void *user) {
    (void)work;
    (void)user;
    return (enum hf_result)0;
}

static enum hf_result lies(struct hf_work *work, void *user) {
    (void)work;
    (void)user;
    return HF_RESULT_OK; /* never said so through hf_work_ok */
}

static enum hf_result contradicts(struct hf_work *work, void *user) {
    (void)user;
    hf_work_failed(work, "real.failure", "it failed");
    return HF_RESULT_OK;
}

static struct hf_store *open_store(const char *name) {
    struct hf_store *store = NULL;
    char url[512];
    hf_error_init(&error);
    snprintf(url, sizeof url, "sqlite:%s", hf_test_path(name));
    if (hf_store_open(url, NULL, &store, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    return store;
}

static struct hf_runner *new_runner(struct hf_store *store, bool until_idle) {
    static const struct hf_curve_options once = {.size = sizeof once, .max_executions = 1};
    struct hf_runner_options options;
    struct hf_runner *runner = NULL;
    hf_runner_options_init(&options);
    options.until_idle = until_idle;
    options.workers = 8;
    options.curve = &once;
    if (hf_runner_new(store, &options, &runner, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    return runner;
}

static void add(struct hf_runner *runner, const char *name, const char *queue, hf_handler_fn handler) {
    struct hf_type_options type = hf_type_native(name);
    type.queue = queue;
    if (hf_runner_register(runner, &type, handler, NULL, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
}

static void enqueue(struct hf_store *store, const char *type, const char *queue) {
    struct hf_job_spec spec = hf_job_of(type, "{}");
    spec.queue = queue;
    if (hf_enqueue(store, &spec, NULL, NULL, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
}

static int by_size(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* S3.3, S3.15: 500 handlers that hang, then quick ones of another queue. */
static void hanging_handlers_take_no_hostages(void **state) {
    int64_t waits[QUICK];
    (void)state;
    stage.hanging = stage.quick = 0;
    struct hf_store *store = open_store("hostage.db");
    struct hf_runner *runner = new_runner(store, false);
    add(runner, "hang", "slow", hang);
    add(runner, "quick", "quick", quick);
    for (int i = 0; i < HANGING; i++)
        enqueue(store, "hang", "slow");
    assert_int_equal(hf_runner_start(runner, &error), 0);
    await(&stage.hanging, 7); /* of 8 workers one is kept for other queues */
    for (unsigned i = 0; i < QUICK; i++) {
        int64_t at = wall_us();
        enqueue(store, "quick", "quick");
        await(&stage.quick, i + 1);
        waits[i] = stage.started_us[i] - at;
    }
    assert_int_equal(hf_runner_drain(runner), 0);
    qsort(waits, QUICK, sizeof waits[0], by_size);
    print_message("p50 %lld us, p95 %lld us from enqueue to start\n", (long long)waits[QUICK / 2],
                  (long long)waits[QUICK * 95 / 100]);
    assert_true(waits[QUICK * 95 / 100] < LIMIT_US);
    struct hf_job_counts counts = {.size = sizeof counts};
    assert_int_equal(hf_store_count_jobs(store, &counts, &error), 0);
    assert_int_equal(counts.succeeded, QUICK);
    assert_int_equal(counts.running, 0);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* S0.1: whatever a handler returns without having said so is a stored failure. */
static void no_failure_looks_like_success(void **state) {
    static const struct {
        const char *name;
        hf_handler_fn handler;
        const char *error_type;
    } cases[] = {{"says-nothing", says_nothing, "handler.unknown_result"},
                 {"lies", lies, "handler.unknown_result"},
                 {"contradicts", contradicts, "handler.unknown_result"}};
    (void)state;
    struct hf_store *store = open_store("unknown.db");
    struct hf_runner *runner = new_runner(store, true);
    for (size_t i = 0; i < 3; i++) {
        add(runner, cases[i].name, "default", cases[i].handler);
        enqueue(store, cases[i].name, "default");
    }
    assert_int_equal(hf_runner_run(runner, &error), 0);
    struct hf_job_counts counts = {.size = sizeof counts};
    assert_int_equal(hf_store_count_jobs(store, &counts, &error), 0);
    assert_int_equal(counts.succeeded, 0);
    assert_int_equal(counts.dead, 3);
    struct hf_dead_filter filter;
    struct hf_dead_list *list = NULL;
    hf_dead_filter_init(&filter);
    assert_int_equal(hf_dead_list_open(store, &filter, &list, &error), 0);
    assert_int_equal(hf_dead_list_count(list), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(hf_dead_list_at(list, i)->error_type, cases[i].error_type);
    hf_dead_list_free(list);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* I11, S2.10: a drain interrupts handlers and gives their jobs back, not counted. */
static void a_drain_gives_back_uncounted(void **state) {
    (void)state;
    stage.hanging = 0;
    struct hf_store *store = open_store("drain.db");
    struct hf_runner *runner = new_runner(store, false);
    add(runner, "hang", "slow", hang);
    for (int i = 0; i < 3; i++)
        enqueue(store, "hang", "slow");
    assert_int_equal(hf_runner_start(runner, &error), 0);
    await(&stage.hanging, 3);
    hf_runner_stop(runner);
    hf_runner_stop(runner); /* the second hurries */
    assert_int_equal(hf_runner_drain(runner), 0);
    struct hf_job_filter filter;
    struct hf_job_list *list = NULL;
    hf_job_filter_init(&filter);
    assert_int_equal(hf_store_list_jobs(store, &filter, &list, &error), 0);
    assert_int_equal(hf_job_list_count(list), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct hf_job_view *job = hf_job_list_at(list, i);
        assert_int_equal(job->state, HF_JOB_PENDING);
        assert_int_equal(job->executions, 0);
        assert_int_equal(job->give_backs, 1);
    }
    hf_job_list_free(list);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* A rejection by a downstream of the handler's own, with or without a call before it that reached the wire. */
static struct hf_downstream *shut;

static enum hf_result is_refused(struct hf_work *work, void *user) {
    const bool *calls = user;
    struct hf_permit permit;
    struct hf_outcome *refusal = hf_outcome_new();
    if (*calls) {
        struct hf_request request = hf_request_to("nobody", "GET", "/");
        struct hf_response *response = NULL;
        request.no_retry = true;
        if (hf_work_call(work, &request, &response, NULL) == 0)
            hf_response_free(response);
    }
    int code = hf_guard_enter(shut, &permit, refusal);
    enum hf_result result = code == HF_EREJECTED ? hf_work_end_as(work, refusal) : hf_work_ok(work, NULL, 0);
    hf_outcome_free(refusal);
    return result;
}

/* 3.3: only what reached no wire is uncounted. */
static void a_rejection_after_a_call_is_counted(void **state) {
    static bool calls[] = {false, true};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct hf_policy_options policy_options;
        struct hf_policy *policy = NULL;
        struct hf_runner *runner = NULL;
        struct hf_job *job = NULL;
        struct hf_downstream_options nobody = hf_downstream_at("nobody", "http://127.0.0.1:1");
        struct hf_runner_options options;
        struct hf_type_options type = hf_type_native("refused");
        struct hf_runner_counts counts;
        struct hf_store *store = open_store(i == 0 ? "refused.db" : "called.db");
        hf_policy_options_init(&policy_options);
        assert_int_equal(hf_policy_new(&policy_options, &policy, &error), 0);
        assert_int_equal(hf_downstream_new("shut", policy, &shut, &error), 0);
        assert_int_equal(hf_downstream_isolate(shut, 3600000, "a test"), 0);
        hf_runner_options_init(&options);
        options.until_idle = true;
        options.downstreams = &nobody;
        options.downstream_count = 1;
        assert_int_equal(hf_runner_new(store, &options, &runner, &error), 0);
        assert_int_equal(hf_runner_register(runner, &type, is_refused, &calls[i], &error), 0);
        enqueue(store, "refused", NULL);
        assert_int_equal(hf_runner_run(runner, &error), 0);
        hf_runner_counts_init(&counts);
        hf_runner_look(runner, &counts);
        assert_int_equal(counts.started, 1);
        assert_int_equal(counts.rejected, calls[i] ? 0 : 1);
        assert_int_equal(counts.retried, calls[i] ? 1 : 0);
        assert_int_equal(hf_store_get_job(store, 1, &job, &error), 0);
        assert_int_equal(hf_job_look(job)->state, HF_JOB_PENDING);
        assert_int_equal(hf_job_look(job)->executions, calls[i] ? 1 : 0);
        assert_int_equal(hf_job_look(job)->failures, calls[i] ? 1 : 0);
        hf_job_free(job);
        hf_runner_free(runner);
        hf_store_close(store);
        hf_downstream_unref(shut);
        hf_policy_unref(policy);
    }
}

/* ------------------------------------------------------------------ death handlers */

static struct {
    unsigned told, failed;
    struct hf_dead_view seen;
    char message[64], tags[16], payload[8];
    size_t length;
} death;

static enum hf_result dies(struct hf_work *work, void *user) {
    (void)user;
    return hf_work_permanent(work, "order.bad", "no such \xff article");
}

/* S2.19: it is given the whole record. */
static enum hf_result hears(struct hf_work *work, void *user) {
    struct hf_dead *dead = NULL;
    (void)user;
    if (hf_work_death(work, &dead, NULL) != 0)
        return hf_work_failed(work, "no.letter", "it was not given");
    death.seen = *hf_dead_look(dead);
    death.length = death.seen.payload_length;
    snprintf(death.message, sizeof death.message, "%s", death.seen.error_message);
    snprintf(death.tags, sizeof death.tags, "%s", hf_work_tags(work));
    bool same = death.length == 0;
    if (!same) {
        size_t length;
        const void *bytes = hf_work_payload(work, &length);
        same = length == death.length && memcmp(bytes, death.seen.payload, length) == 0;
    }
    hf_dead_free(dead);
    death.told++;
    return same ? hf_work_ok(work, NULL, 0) : hf_work_permanent(work, "other.bytes", "not verbatim");
}

static enum hf_result breaks(struct hf_work *work, void *user) {
    (void)user;
    death.failed++;
    return hf_work_failed(work, "handler.broken", "it always does");
}

/* Two workers: neither of the deaths need be the first, and the handler's own may come between them. */
static int64_t letter_of(struct hf_store *store, int64_t job) {
    struct hf_dead_filter filter;
    struct hf_dead_list *list = NULL;
    int64_t id = 0;
    hf_dead_filter_init(&filter);
    assert_int_equal(hf_dead_list_open(store, &filter, &list, &error), 0);
    for (size_t i = 0; i < hf_dead_list_count(list); i++)
        id = hf_dead_list_at(list, i)->job_id == job ? hf_dead_list_at(list, i)->id : id;
    hf_dead_list_free(list);
    return id;
}

/* S2.18, S2.19, S2.21, S2.36, I79, S1.24: run once for its death, isolated; its failure changes nothing about the job. */
static void death_handlers_hear_of_their_deaths(void **state) {
    static const struct hf_curve_options once = {.size = sizeof once, .max_executions = 1};
    struct hf_store *store = open_store("deaths.db");
    struct hf_type_options order = hf_type_native("order"), mail = hf_type_native("mail"), on_mail = mail;
    struct hf_runner_options options;
    struct hf_runner *runner = NULL;
    struct hf_runner_counts counts;
    struct hf_dead *dead = NULL;
    (void)state;
    hf_runner_options_init(&options);
    options.until_idle = true;
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), 0);
    assert_int_equal(hf_runner_register(runner, &order, dies, NULL, &error), 0);
    assert_int_equal(hf_runner_register(runner, &mail, dies, NULL, &error), 0);
    assert_int_equal(hf_runner_on_death(runner, &order, hears, NULL, &error), 0);
    assert_int_equal(hf_runner_on_death(runner, &order, hears, NULL, &error), HF_EEXIST);
    on_mail.curve = &once;
    assert_int_equal(hf_runner_on_death(runner, &on_mail, breaks, NULL, &error), 0);
    struct hf_job_spec spec = hf_job_of("order", "");
    spec.tags = "vip";
    assert_int_equal(hf_enqueue(store, &spec, NULL, NULL, &error), 0); /* 1: an empty payload */
    enqueue(store, "mail", NULL);                                      /* 2 */
    assert_int_equal(hf_runner_run(runner, &error), 0);
    hf_runner_counts_init(&counts);
    hf_runner_look(runner, &counts);
    assert_int_equal(death.told, 1);
    assert_int_equal(death.failed, 1);
    assert_int_equal(counts.died, 3); /* two jobs, and the handler that broke */
    assert_int_equal(counts.death_lines, 3);
    assert_int_equal(counts.forwarded, 1);
    assert_int_equal(counts.forward_failed, 1);
    assert_int_equal(death.seen.job_id, 1);
    assert_int_equal(death.seen.executions, 1);
    assert_int_equal(death.seen.max_executions, 6);
    assert_int_equal(death.length, 0);
    assert_string_equal(death.tags, "vip");
    assert_string_equal(death.message, "no such \xef\xbf\xbd article");
    assert_int_equal(hf_dead_get(store, letter_of(store, 2), &dead, &error), 0);
    assert_int_equal(hf_dead_look(dead)->status, HF_DEAD_DEAD);
    assert_int_equal(hf_dead_forward_count(dead), 1);
    hf_dead_free(dead);
    struct hf_forward_list *list = NULL;
    assert_int_equal(hf_forward_list_open(store, &list, &error), 0);
    assert_int_equal(hf_forward_list_count(list), 1);
    assert_string_equal(hf_forward_list_at(list, 0)->name, "handler");
    assert_int_equal(hf_forward_list_at(list, 0)->taken, 2);
    assert_int_equal(hf_forward_list_at(list, 0)->failed, 1);
    hf_forward_list_free(list);
    hf_runner_free(runner);
    hf_store_close(store);
}

static enum hf_result count_one(struct hf_work *work, void *user) {
    (void)user;
    tell(&stage.quick);
    return hf_work_ok(work, NULL, 0);
}

static int32_t state_of(struct hf_store *store, int64_t id) {
    struct hf_job *job = NULL;
    assert_int_equal(hf_store_get_job(store, id, &job, &error), 0);
    int32_t state = hf_job_look(job)->state;
    hf_job_free(job);
    return state;
}

/* V15, S0.8: all or nothing. A type of a name that was registered is refused, and with it the downstream that came along. */
static void refuse_halves(struct hf_runner *runner, const struct hf_runner_options *good) {
    struct hf_runner_options bad = *good;
    struct hf_policy_options policy;
    struct hf_downstream_options narrow = *good->downstreams;
    struct hf_type_options twice = hf_type_native("counted");
    struct hf_permit permits[2];
    hf_policy_options_init(&policy);
    policy.bulkhead_max = 1;
    narrow.policy = &policy;
    twice.kind = HF_KIND_NOOP;
    bad.downstreams = &narrow;
    bad.types = &twice;
    bad.type_count = 1;
    assert_int_equal(hf_runner_tune(runner, &bad, &error), HF_EEXIST);
    bad.types = NULL;
    bad.type_count = 0;
    bad.poll_ms = 0;
    assert_int_equal(hf_runner_tune(runner, &bad, &error), HF_ECONFIG);
    assert_string_equal(error.what, "node.poll");
    bad.poll_ms = 250;
    bad.prefetch = 1025;
    assert_int_equal(hf_runner_tune(runner, &bad, &error), HF_ECONFIG);
    assert_string_equal(error.what, "node.prefetch");
    assert_int_equal(hf_runner_tune(runner, NULL, &error), HF_EINVAL);
    struct hf_downstream *d = hf_runner_downstream(runner, "d");
    for (int i = 0; i < 2; i++) /* the old one holds more than one */
        assert_int_equal(hf_guard_enter(d, &permits[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        hf_guard_leave(d, &permits[i], HF_VERDICT_NEUTRAL);
    hf_downstream_unref(d);
}

/* Options that change from another thread while handlers run on theirs: registered handlers stay through all of it. */
static void options_change_while_handlers_run(void **state) {
    (void)state;
    enum { ROUNDS = 60 };
    struct hf_store *store = open_store("tuned.db");
    struct hf_downstream_options downstream = hf_downstream_at("d", "http://127.0.0.1:1");
    struct hf_runner_options options = hf_runner_calling(&downstream, 1);
    struct hf_type_options native = hf_type_native("counted"), types[2];
    struct hf_curve_options curve;
    struct hf_runner *runner = NULL;
    int64_t last = 0, noop = 0;
    stage.quick = 0;
    for (int i = 0; i < 2; i++) {
        hf_type_options_init(&types[i]);
        types[i].kind = HF_KIND_NOOP;
        types[i].name = i == 0 ? "first" : "second";
    }
    hf_curve_options_init(&curve);
    options.curve = &curve;
    options.until_idle = false;
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), 0);
    options.types = &types[0];
    options.type_count = 1;
    assert_int_equal(hf_runner_tune(runner, &options, &error), 0); /* before the run, and before it is registered */
    assert_int_equal(hf_runner_register(runner, &native, count_one, NULL, &error), 0);
    assert_int_equal(hf_runner_start(runner, &error), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct hf_job_spec spec = hf_job_of("counted", "");
        assert_int_equal(hf_enqueue(store, &spec, &last, NULL, &error), 0);
        options.types = &types[i % 2];
        curve.max_executions = (uint32_t)i + 1;
        assert_int_equal(hf_runner_tune(runner, &options, &error), 0);
        if (i % 8 == 0)
            refuse_halves(runner, &options);
        await(&stage.quick, (unsigned)(i > 4 ? i - 4 : 0));
    }
    await(&stage.quick, ROUNDS);
    struct hf_job_spec spec = hf_job_of("second", "");
    assert_int_equal(hf_enqueue(store, &spec, &noop, NULL, &error), 0);
    while (state_of(store, noop) != HF_JOB_SUCCEEDED)
        sched_yield();
    assert_int_equal(hf_runner_drain(runner), 0);
    assert_int_equal(state_of(store, last), HF_JOB_SUCCEEDED);
    assert_int_equal(hf_runner_tune(runner, &options, &error), 0); /* it is over: nobody minds */
    hf_runner_free(runner);
    hf_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hanging_handlers_take_no_hostages),
        cmocka_unit_test(no_failure_looks_like_success),
        cmocka_unit_test(a_drain_gives_back_uncounted),
        cmocka_unit_test(a_rejection_after_a_call_is_counted),
        cmocka_unit_test(death_handlers_hear_of_their_deaths),
        cmocka_unit_test(options_change_while_handlers_run),
    };
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
