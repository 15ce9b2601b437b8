/* SPDX-License-Identifier: MIT */
/*
 * Runners as a program has them: a loop on real time, the SQLite store, a server on loopback, handlers on threads. What
 * has to be waited for says so itself; nothing here depends on speed.
 */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/holdfast.h"
#include "peer.h"

static int fresh; /* number of the store */

static struct hf_store *open_store(bool create) {
    char url[600], name[32];
    struct hf_store_options options;
    struct hf_store *store = NULL;
    struct hf_error error;
    hf_error_init(&error);
    hf_store_options_init(&options);
    if (create)
        fresh++;
    snprintf(name, sizeof name, "jobs-%d.db", fresh);
    snprintf(url, sizeof url, "sqlite:%s", hf_test_path(name));
    if (hf_store_open(url, &options, &store, &error) != 0) {
        char text[900];
        hf_error_print(&error, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return store;
}

static struct hf_runner *new_runner(struct hf_store *store, const struct hf_runner_options *options) {
    struct hf_runner *runner = NULL;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_runner_new(store, options, &runner, &error) != 0) {
        char text[900];
        hf_error_print(&error, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return runner;
}

static int64_t put(struct hf_store *store, const char *type, const char *queue) {
    struct hf_job_spec spec = hf_job_of(type, "payload");
    int64_t id = 0;
    spec.queue = queue;
    assert_int_equal(hf_enqueue(store, &spec, &id, NULL, NULL), 0);
    return id;
}

static void put_many(struct hf_store *store, const char *type, size_t count) {
    struct hf_job_spec specs[100];
    int64_t ids[100];
    for (size_t i = 0; i < 100; i++)
        specs[i] = hf_job_of(type, "payload");
    for (size_t i = 0; i < count; i += 100)
        assert_int_equal(hf_enqueue_many(store, specs, 100, ids, NULL, NULL), 0);
}

static struct hf_job_counts count_jobs(struct hf_store *store) {
    struct hf_job_counts counts = {.size = sizeof counts};
    assert_int_equal(hf_store_count_jobs(store, &counts, NULL), 0);
    return counts;
}

static struct hf_runner_counts look(struct hf_runner *runner) {
    struct hf_runner_counts counts;
    hf_runner_counts_init(&counts);
    hf_runner_look(runner, &counts);
    return counts;
}

static void noop_jobs_run_and_the_runner_ends(void **state) {
    (void)state;
    struct hf_store *store = open_store(true);
    struct hf_runner_options options;
    struct hf_type_options type;
    assert_non_null(store);
    hf_type_options_init(&type);
    type.kind = HF_KIND_NOOP;
    type.name = "tick";
    hf_runner_options_init(&options);
    options.types = &type;
    options.type_count = 1;
    options.until_idle = true;
    put_many(store, "tick", 3000);
    struct hf_runner *runner = new_runner(store, &options);
    assert_non_null(runner);
    assert_int_equal(hf_runner_run(runner, NULL), 0);
    assert_int_equal(hf_runner_run(runner, NULL), HF_ESTATE);
    assert_int_equal(look(runner).succeeded, 3000);
    assert_int_equal(look(runner).running, 0);
    assert_int_equal(count_jobs(store).succeeded, 3000);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* Requests seen by the server == attempts reported. */
static void http_jobs_reach_the_server_once_each(void **state) {
    (void)state;
    static const struct peer_step ok = {.answer = PEER_OK};
    struct peer *peer = peer_new(&ok, 1);
    struct hf_store *store = open_store(true);
    struct hf_runner_options options;
    struct hf_type_options type;
    struct hf_downstream_options downstream;
    char url[64], last[4096];
    assert_non_null(peer);
    assert_non_null(store);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    downstream = hf_downstream_at("shop", url);
    hf_type_options_init(&type);
    type.kind = HF_KIND_HTTP;
    type.name = "order";
    type.downstream = "shop";
    type.path = "/orders";
    hf_runner_options_init(&options);
    options.types = &type;
    options.type_count = 1;
    options.downstreams = &downstream;
    options.downstream_count = 1;
    options.until_idle = true;
    put_many(store, "order", 300);
    struct hf_runner *runner = new_runner(store, &options);
    assert_non_null(runner);
    assert_int_equal(hf_runner_run(runner, NULL), 0);
    assert_int_equal(count_jobs(store).succeeded, 300);
    assert_int_equal(peer_requests(peer), 300);
    assert_int_equal(look(runner).attempts, 300);
    peer_last(peer, last, sizeof last);
    assert_non_null(strstr(last, "POST /orders HTTP/1.1"));
    assert_non_null(strstr(last, "Idempotency-Key: "));
    assert_non_null(strstr(last, "Holdfast-Job: "));
    hf_runner_free(runner);
    hf_store_close(store);
    peer_free(peer);
}

/* ------------------------------------------------------------------ handlers on threads */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open;
    unsigned inside, done, peak;
};
#define GATE {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER}

static enum hf_result wait_at_gate(struct hf_work *work, void *user) {
    struct gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    gate->inside++;
    pthread_cond_broadcast(&gate->moved);
    while (!gate->open)
        pthread_cond_wait(&gate->moved, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return hf_work_ok(work, NULL, 0);
}

static enum hf_result pass(struct hf_work *work, void *user) {
    struct gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    gate->done++;
    pthread_cond_broadcast(&gate->moved);
    pthread_mutex_unlock(&gate->lock);
    return hf_work_ok(work, NULL, 0);
}

static void wait_inside(struct gate *gate, unsigned count) {
    pthread_mutex_lock(&gate->lock);
    while (gate->inside < count)
        pthread_cond_wait(&gate->moved, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void wait_done(struct gate *gate, unsigned count) {
    pthread_mutex_lock(&gate->lock);
    while (gate->done < count)
        pthread_cond_wait(&gate->moved, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void open_gate(struct gate *gate) {
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->moved);
    pthread_mutex_unlock(&gate->lock);
}

/* S3.3, S3.15: every worker hangs in one queue; jobs of another run nevertheless, enqueued by the same process. */
static void hanging_handlers_take_no_other_queue_hostage(void **state) {
    (void)state;
    struct gate gate = GATE;
    struct hf_store *store = open_store(true);
    struct hf_runner_options options;
    struct hf_type_options report = hf_type_native("report"), reset = hf_type_native("reset");
    assert_non_null(store);
    hf_runner_options_init(&options);
    options.workers = 4;
    struct hf_runner *runner = new_runner(store, &options);
    assert_non_null(runner);
    assert_int_equal(hf_runner_register(runner, &report, wait_at_gate, &gate, NULL), 0);
    assert_int_equal(hf_runner_register(runner, &reset, pass, &gate, NULL), 0);
    assert_int_equal(hf_runner_register(runner, &reset, pass, &gate, NULL), HF_EEXIST); /* S0.8 */
    for (int i = 0; i < 50; i++)
        put(store, "report", "reports");
    assert_int_equal(hf_runner_start(runner, NULL), 0);
    wait_inside(&gate, 4);
    for (unsigned i = 1; i <= 20; i++) {
        put(store, "reset", "critical");
        wait_done(&gate, i); /* would wait for ever */
    }
    open_gate(&gate);
    assert_int_equal(hf_runner_drain(runner), 0);
    assert_int_equal(look(runner).running, 0);
    hf_runner_free(runner);
    hf_store_close(store);
}

static struct hf_runner *signalled;

static void on_signal(int number) {
    (void)number;
    hf_runner_stop(signalled);
}

static enum hf_result signal_and_go_on(struct hf_work *work, void *user) {
    (void)user;
    kill(getpid(), SIGUSR1); /* hf_runner_stop is async-signal-safe */
    return hf_work_ok(work, NULL, 0);
}

static void a_signal_handler_may_stop_it(void **state) {
    (void)state;
    struct hf_store *store = open_store(true);
    struct hf_runner_options options;
    struct hf_type_options type = hf_type_native("stop");
    struct sigaction action = {.sa_handler = on_signal}, before;
    assert_non_null(store);
    hf_runner_options_init(&options);
    signalled = new_runner(store, &options);
    assert_non_null(signalled);
    assert_int_equal(hf_runner_register(signalled, &type, signal_and_go_on, NULL, NULL), 0);
    put(store, "stop", NULL);
    sigaction(SIGUSR1, &action, &before);
    assert_int_equal(hf_runner_run(signalled, NULL), 0);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(count_jobs(store).succeeded, 1);
    hf_runner_free(signalled);
    hf_store_close(store);
}

/* S0.1, S0.12: what a handler says, and what it does not say. */
static enum hf_result say_nothing(struct hf_work *work, void *user) {
    (void)work;
    (void)user;
    return (enum hf_result)42;
}

static enum hf_result say_never(struct hf_work *work, void *user) {
    (void)user;
    return hf_work_permanent(work, "order.invalid", "no such article");
}

static void handlers_that_fail_are_never_successes(void **state) {
    (void)state;
    struct hf_store *store = open_store(true);
    struct hf_runner_options options;
    struct hf_type_options nothing = hf_type_native("nothing"), never = hf_type_native("never");
    assert_non_null(store);
    hf_runner_options_init(&options);
    options.until_idle = true;
    struct hf_runner *runner = new_runner(store, &options);
    assert_non_null(runner);
    assert_int_equal(hf_runner_register(runner, &nothing, say_nothing, NULL, NULL), 0);
    assert_int_equal(hf_runner_register(runner, &never, say_never, NULL, NULL), 0);
    int64_t a = put(store, "nothing", NULL), b = put(store, "never", NULL);
    hf_log_set(HF_LOG_ERROR + 1, NULL, NULL);
    assert_int_equal(hf_runner_run(runner, NULL), 0);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    assert_int_equal(look(runner).succeeded, 0);
    assert_int_equal(look(runner).retried, 1);
    assert_int_equal(look(runner).died, 1);
    struct hf_job *job;
    assert_int_equal(hf_store_get_job(store, a, &job, NULL), 0);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_PENDING);
    assert_string_equal(hf_job_look(job)->error_type, "handler.unknown_result");
    hf_job_free(job);
    assert_int_equal(hf_store_get_job(store, b, &job, NULL), 0);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_DEAD);
    assert_string_equal(hf_job_look(job)->error_type, "order.invalid");
    hf_job_free(job);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* Two runners on one file, each with a store of its own: every job once. */
static void two_runners_share_a_file(void **state) {
    (void)state;
    struct hf_store *stores[2];
    struct hf_runner *runners[2];
    struct hf_runner_options options;
    struct hf_type_options type;
    hf_type_options_init(&type);
    type.kind = HF_KIND_NOOP;
    type.name = "tick";
    hf_runner_options_init(&options);
    options.types = &type;
    options.type_count = 1;
    options.until_idle = true;
    for (int i = 0; i < 2; i++) {
        stores[i] = open_store(i == 0);
        assert_non_null(stores[i]);
    }
    put_many(stores[0], "tick", 2000);
    for (int i = 0; i < 2; i++) {
        runners[i] = new_runner(stores[i], &options);
        assert_non_null(runners[i]);
        assert_int_equal(hf_runner_start(runners[i], NULL), 0);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++) { /* ends by itself: nothing is due for either */
        while (look(runners[0]).succeeded + look(runners[1]).succeeded < 2000)
            sched_yield();
        assert_int_equal(hf_runner_drain(runners[i]), 0);
        sum += look(runners[i]).succeeded;
        assert_int_equal(look(runners[i]).lost, 0);
    }
    assert_int_equal(sum, 2000);
    assert_int_equal(count_jobs(stores[0]).succeeded, 2000);
    for (int i = 0; i < 2; i++) {
        hf_runner_free(runners[i]);
        hf_store_close(stores[i]);
    }
}

/* ------------------------------------------------------------------ other processes */

static int told; /* a handler of the child writes a byte here when it runs */

static enum hf_result tell_and_hang(struct hf_work *work, void *user) {
    (void)user;
    while (write(told, "x", 1) != 1) {
    }
    while (true)
        pause();
    return hf_work_ok(work, NULL, 0);
}

/* In the child: which job was left, and of what type. */
static void tell_left(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)level;
    (void)user;
    if (strcmp(event, "job.left") == 0 && write(told, fields, strlen(fields)) < 0)
        _exit(98);
}

static pid_t run_in_child(int *ready, int64_t drain_timeout_ms) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        told = pipes[1];
        hf_log_set(HF_LOG_ERROR, tell_left, NULL);
        struct hf_store *store = open_store(false);
        struct hf_runner_options options;
        struct hf_type_options type = hf_type_native("hang");
        hf_runner_options_init(&options);
        options.drain_timeout_ms = drain_timeout_ms;
        signalled = store == NULL ? NULL : new_runner(store, &options);
        if (signalled == NULL || hf_runner_register(signalled, &type, tell_and_hang, NULL, NULL) != 0)
            _exit(99);
        signal(SIGTERM, on_signal);
        _exit(hf_runner_run(signalled, NULL));
    }
    close(pipes[1]);
    *ready = pipes[0];
    return child;
}

/* S3.2, S3.5, 3.5: kill -9: another run on the host takes the job up at once, as a crash. */
static void a_killed_runner_loses_no_job(void **state) {
    (void)state;
    struct gate gate = GATE;
    struct hf_store *store = open_store(true);
    int ready, status;
    char byte;
    assert_non_null(store);
    static const int64_t curve[] = {0};
    struct hf_job_spec spec = hf_job_of("hang", "x");
    spec.curve_ms = curve;
    spec.curve_length = 1;
    spec.max_executions = 3;
    int64_t id;
    assert_int_equal(hf_enqueue(store, &spec, &id, NULL, NULL), 0);
    hf_store_close(store); /* no thread of it may be copied by the fork */
    pid_t child = run_in_child(&ready, 25000);
    assert_int_equal(read(ready, &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(ready);
    assert_true(WIFSIGNALED(status));
    store = open_store(false);
    assert_non_null(store);
    assert_int_equal(count_jobs(store).running, 1);
    struct hf_runner_options options;
    struct hf_type_options type = hf_type_native("hang");
    hf_runner_options_init(&options);
    options.until_idle = true; /* does not end before it has looked after the dead */
    struct hf_runner *runner = new_runner(store, &options);
    assert_non_null(runner);
    assert_int_equal(hf_runner_register(runner, &type, pass, &gate, NULL), 0);
    hf_log_set(HF_LOG_ERROR + 1, NULL, NULL);
    assert_int_equal(hf_runner_run(runner, NULL), 0);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    assert_int_equal(gate.done, 1);
    assert_int_equal(look(runner).lapsed, 1);
    struct hf_job *job;
    assert_int_equal(hf_store_get_job(store, id, &job, NULL), 0);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(hf_job_look(job)->executions, 2);
    assert_int_equal(hf_job_look(job)->crashes, 1);
    hf_job_free(job);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* S3.4, I26: a handler that never returns cannot hold the process: it exits with 1 and names it; the job is left to its lease. */
static void what_never_returns_is_left_behind(void **state) {
    (void)state;
    struct hf_store *store = open_store(true);
    int ready, status;
    char byte;
    assert_non_null(store);
    put(store, "hang", NULL);
    hf_store_close(store);
    pid_t child = run_in_child(&ready, 50);
    assert_int_equal(read(ready, &byte, 1), 1);
    kill(child, SIGTERM);
    char left[600] = "";
    size_t length = 0;
    for (ssize_t got; length + 1 < sizeof left && (got = read(ready, left + length, sizeof left - 1 - length)) > 0;)
        length += (size_t)got;
    waitpid(child, &status, 0);
    close(ready);
    assert_non_null(strstr(left, "\"job\":1"));
    assert_non_null(strstr(left, "\"type\":\"hang\""));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    store = open_store(false);
    assert_non_null(store);
    assert_int_equal(count_jobs(store).running, 1); /* until somebody takes it up */
    hf_store_close(store);
}

static void bad_options_are_refused(void **state) {
    (void)state;
    struct hf_store *store = open_store(true);
    struct hf_runner_options options;
    struct hf_runner *runner;
    struct hf_error error;
    assert_non_null(store);
    hf_runner_options_init(&options);
    options.lease_ms = 30000; /* < 3 heartbeats */
    hf_error_init(&error);
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), HF_ECONFIG);
    assert_non_null(strstr(error.why, "30s"));
    hf_runner_options_init(&options);
    options.workers = 0;
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), HF_ECONFIG);
    assert_int_equal(hf_runner_new(NULL, &options, &runner, &error), HF_EINVAL);
    struct hf_sink_options hook;
    hf_sink_options_init(&hook);
    hook.collapse_ms = 0;
    hook.name = "ops";
    hook.url = "ftp://secret.example/key";
    hf_runner_options_init(&options);
    options.sinks = &hook;
    options.sink_count = 1;
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), HF_ECONFIG);
    assert_null(strstr(error.why, "secret"));
    hf_runner_free(NULL);
    hf_store_close(store);
}

/* The ladder is proven at every start, for a program that never saw a configuration file too (2.7, V12). */
static void a_broken_ladder_is_refused(void **state) {
    (void)state;
    struct hf_store *store = open_store(true);
    struct hf_downstream_options downstream = hf_downstream_at("d", "http://127.0.0.1:1");
    struct hf_runner_options options = hf_runner_calling(&downstream, 1);
    struct hf_type_options type;
    struct hf_runner *runner = NULL;
    struct hf_error error = hf_error_none();
    assert_non_null(store);
    hf_type_options_init(&type);
    type.kind = HF_KIND_HTTP;
    type.name = "push";
    type.downstream = "d";
    type.execution_timeout_ms = 90000; /* the total */
    options.types = &type;
    options.type_count = 1;
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), HF_ECONFIG);
    assert_null(runner);
    assert_string_equal(error.what, "job type push: execution_timeout");
    assert_non_null(strstr(error.why, "90s"));
    type.execution_timeout_ms = 91000;
    options.max_calls_per_job = 23; /* 6 executions of 4 attempts */
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), HF_ECONFIG);
    assert_string_equal(error.what, "job type push: max_calls_per_job");
    options.max_calls_per_job = 24;
    downstream.redirects_max = 1; /* each hop is a call */
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), HF_ECONFIG);
    downstream.redirects_max = 0;
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), 0);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* V15, 2.7: a reload is proven as a start is; what breaks the ladder is refused, and the old one goes on. */
static void v15_a_reload_is_proven_too(void **state) {
    (void)state;
    struct hf_store *store = open_store(true);
    struct hf_downstream_options downstream = hf_downstream_at("d", "http://127.0.0.1:1");
    struct hf_runner_options options = hf_runner_calling(&downstream, 1);
    struct hf_policy_options policy;
    struct hf_type_options type;
    struct hf_error error = hf_error_none();
    assert_non_null(store);
    hf_type_options_init(&type);
    type.kind = HF_KIND_HTTP;
    type.name = "push";
    type.downstream = "d";
    type.execution_timeout_ms = 91000;
    options.types = &type;
    options.type_count = 1;
    options.max_calls_per_job = 24; /* 6 executions of 4 attempts */
    struct hf_runner *runner = new_runner(store, &options);
    assert_non_null(runner);
    hf_policy_options_init(&policy);
    policy.bulkhead_max = 1;
    downstream.policy = &policy;
    policy.total_timeout_ms = 91000; /* the execution would be cut before the call ends */
    assert_int_equal(hf_runner_reload(runner, &downstream, 1, &error), HF_ECONFIG);
    assert_string_equal(error.what, "job type push: execution_timeout");
    policy.total_timeout_ms = 90999;
    policy.hedge_max = 1;
    assert_int_equal(hf_runner_reload(runner, &downstream, 1, &error), HF_ECONFIG);
    assert_string_equal(error.what, "job type push: max_calls_per_job");
    policy.hedge_max = 0;
    downstream.redirects_max = 1; /* V12: each hop is a call */
    assert_int_equal(hf_runner_reload(runner, &downstream, 1, &error), HF_ECONFIG);
    assert_string_equal(error.what, "job type push: max_calls_per_job");
    struct hf_downstream *d = hf_runner_downstream(runner, "d");
    struct hf_permit permits[2];
    for (int i = 0; i < 2; i++) /* the old bulkhead holds more than one */
        assert_int_equal(hf_guard_enter(d, &permits[i], NULL), 0);
    downstream.redirects_max = 0;
    assert_int_equal(hf_runner_reload(runner, &downstream, 1, &error), 0);
    struct hf_permit third;
    assert_int_equal(hf_guard_enter(d, &third, NULL), HF_EREJECTED);
    for (int i = 0; i < 2; i++)
        hf_guard_leave(d, &permits[i], HF_VERDICT_NEUTRAL);
    hf_downstream_unref(d);
    hf_runner_free(runner);
    hf_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(a_broken_ladder_is_refused),
        cmocka_unit_test(v15_a_reload_is_proven_too),
        cmocka_unit_test(noop_jobs_run_and_the_runner_ends),
        cmocka_unit_test(http_jobs_reach_the_server_once_each),
        cmocka_unit_test(hanging_handlers_take_no_other_queue_hostage),
        cmocka_unit_test(a_signal_handler_may_stop_it),
        cmocka_unit_test(handlers_that_fail_are_never_successes),
        cmocka_unit_test(two_runners_share_a_file),
        cmocka_unit_test(a_killed_runner_loses_no_job),
        cmocka_unit_test(what_never_returns_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
