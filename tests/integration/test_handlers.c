/* SPDX-License-Identifier: MIT */
/*
 * Handlers on real threads and a SQLite file: the money job that credits once whatever happens, checkpoints that survive
 * a kill -9, works finished from other threads, handlers that never return.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "support.h"

#include "holdfast/holdfast.h"

static struct hf_error error;
static char bank_path[512], url[520];

static void must(int code) {
    if (code != 0)
        fail_msg("%s: %s (%s)", error.what, error.why, hf_strerror(code));
}

static struct hf_store *open_store(const char *name) {
    struct hf_store *store = NULL;
    hf_error_init(&error);
    snprintf(url, sizeof url, "sqlite:%s", hf_test_path(name));
    must(hf_store_open(url, NULL, &store, &error));
    return store;
}

static struct hf_runner *new_runner(struct hf_store *store, const struct hf_curve_options *curve) {
    struct hf_runner_options options;
    struct hf_runner *runner = NULL;
    hf_runner_options_init(&options);
    options.until_idle = true;
    options.workers = 4;
    options.curve = curve;
    must(hf_runner_new(store, &options, &runner, &error));
    return runner;
}

/* ------------------------------------------------------------------ the money job */

static sqlite3 *open_bank(void) {
    sqlite3 *bank = NULL;
    if (sqlite3_open(bank_path, &bank) != SQLITE_OK || sqlite3_busy_timeout(bank, 5000) != SQLITE_OK)
        abort();
    return bank;
}

static int64_t ask(const char *sql) {
    sqlite3 *bank = open_bank();
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(bank, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(bank);
    return value;
}

static bool run_sql(sqlite3 *bank, const char *sql) {
    return sqlite3_exec(bank, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Where the process dies; NULL: nowhere. */
static const char *dies_at;
static void may_die(const char *at) {
    if (dies_at != NULL && strcmp(dies_at, at) == 0)
        raise(SIGKILL);
}

static enum hf_result credit(struct hf_work *work, void *user) {
    sqlite3 *bank = open_bank();
    bool first = false;
    struct hf_error why = hf_error_none();
    (void)user;
    bool done = run_sql(bank, "BEGIN IMMEDIATE") && hf_once_in_sqlite(bank, hf_work_key(work), &first, &why) == 0;
    if (done && first)
        done = run_sql(bank, "UPDATE account SET balance = balance + 100");
    may_die("before the commit");
    done = done && run_sql(bank, "COMMIT");
    may_die("after the commit");
    sqlite3_close(bank); /* rolls back what was not committed */
    return done ? hf_work_ok(work, NULL, 0) : hf_work_failed(work, "bank", "it did not take it");
}

/* A process of its own runs the job, and may be killed at `at`. */
static void run_process(const char *store_name, const char *at) {
    static const struct hf_curve_options once = {.size = sizeof once, .max_executions = 1};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct hf_type_options type = hf_type_native("credit");
        struct hf_store *store = NULL;
        struct hf_runner *runner = NULL;
        struct hf_runner_options options;
        dies_at = at;
        snprintf(url, sizeof url, "sqlite:%s", store_name);
        hf_runner_options_init(&options);
        options.until_idle = true;
        options.curve = &once; /* the money job: one execution [S0.10] */
        if (hf_store_open(url, NULL, &store, NULL) != 0 || hf_runner_new(store, &options, &runner, NULL) != 0 ||
            hf_runner_register(runner, &type, credit, NULL, NULL) != 0 || hf_runner_run(runner, NULL) != 0)
            _exit(9);
        hf_runner_free(runner);
        hf_store_close(store);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (at != NULL)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void in_store(const char *path, struct hf_store **store) {
    hf_error_init(&error);
    snprintf(url, sizeof url, "sqlite:%s", path);
    must(hf_store_open(url, NULL, store, &error));
}

/* A second delivery of the same message makes no second job. */
static void deliver(const char *path) {
    struct hf_store *store;
    struct hf_job_spec spec = hf_job_of("credit", "{\"amount\": 100}");
    spec.source = "orders";
    spec.source_message_id = "order-7";
    in_store(path, &store);
    must(hf_enqueue(store, &spec, NULL, NULL, &error));
    hf_store_close(store);
}

static void redrive(const char *path, int64_t dead_id) {
    struct hf_store *store;
    struct hf_dead_action action;
    int64_t job = 0;
    hf_dead_action_init(&action);
    action.actor = "ann";
    in_store(path, &store);
    must(hf_dead_redrive(store, dead_id, &action, &job, &error));
    hf_store_close(store);
}

/* S0.35: one execution, a crash on either side of the commit, a redrive and a second delivery: credited once. */
static void the_money_job_credits_once(void **state) {
    static const char *const places[] = {"before the commit", "after the commit"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char path[512], name[32];
        snprintf(name, sizeof name, "money-%zu.db", i);
        snprintf(path, sizeof path, "%s", hf_test_path(name));
        snprintf(name, sizeof name, "bank-%zu.db", i);
        snprintf(bank_path, sizeof bank_path, "%s", hf_test_path(name));
        sqlite3 *bank = open_bank();
        assert_true(run_sql(bank, "CREATE TABLE account(balance INTEGER); INSERT INTO account VALUES (0)"));
        sqlite3_close(bank);
        deliver(path);
        run_process(path, places[i]);
        assert_int_equal(ask("SELECT balance FROM account"), i == 0 ? 0 : 100);
        deliver(path); /* again */
        run_process(path, NULL); /* finds its predecessor dead: the one execution is used up */
        assert_int_equal(ask("SELECT balance FROM account"), i == 0 ? 0 : 100);
        redrive(path, 1);
        run_process(path, NULL);
        assert_int_equal(ask("SELECT balance FROM account"), 100);
        assert_int_equal(ask("SELECT count(*) FROM holdfast_once"), 1);
    }
}

static void the_ledger_refuses_what_would_not_hold(void **state) {
    (void)state;
    bool first = true;
    snprintf(bank_path, sizeof bank_path, "%s", hf_test_path("ledger.db"));
    sqlite3 *bank = open_bank();
    hf_error_init(&error);
    assert_int_equal(hf_once_in_sqlite(bank, "k", &first, &error), HF_ESTATE); /* no transaction */
    assert_false(first);
    assert_true(run_sql(bank, "BEGIN"));
    assert_int_equal(hf_once_in_sqlite(bank, "", &first, &error), HF_EINVAL);
    assert_int_equal(hf_once_in_sqlite(bank, NULL, &first, &error), HF_EINVAL);
    assert_int_equal(hf_once_in_sqlite(NULL, "k", &first, &error), HF_EINVAL);
    assert_int_equal(hf_once_in_sqlite(bank, "k", &first, &error), 0);
    assert_true(first);
    assert_int_equal(hf_once_in_sqlite(bank, "k", &first, &error), 0);
    assert_false(first);
    assert_true(run_sql(bank, "ROLLBACK; BEGIN"));
    assert_int_equal(hf_once_in_sqlite(bank, "k", &first, &error), 0);
    assert_true(first); /* what was rolled back was not done */
    assert_true(run_sql(bank, "COMMIT; BEGIN"));
    assert_int_equal(hf_once_in_sqlite(bank, "k", &first, &error), 0);
    assert_false(first);
    assert_int_equal(hf_once_in_sqlite(bank, "j", &first, &error), 0);
    assert_true(first);
    sqlite3_close(bank);
}

/* ------------------------------------------------------------------ on real threads */

static enum hf_result counts_up(struct hf_work *work, void *user) {
    size_t length;
    int *steps = user;
    const char *last = hf_work_last_checkpoint(work, &length);
    char at = last == NULL ? 0 : *last;
    for (; at < 5; at++) {
        char next = (char)(at + 1);
        if (hf_work_execution(work) == 1 && at == 3)
            return hf_work_failed(work, "broke", "in the middle");
        steps[(int)at]++;
        hf_work_progress(work, next, "counting");
        if (hf_work_checkpoint(work, &next, 1) != 0)
            return hf_work_failed(work, "store", "no checkpoint");
    }
    return hf_work_ok(work, NULL, 0);
}

/* S2.31 */
static void a_sync_handler_resumes_at_its_last_step(void **state) {
    struct hf_curve_options curve;
    int steps[5] = {0};
    struct hf_job *job = NULL;
    (void)state;
    hf_curve_options_init(&curve);
    curve.max_executions = 2;
    curve.curve_length = 1;
    curve.curve_ms[0] = 1;
    struct hf_store *store = open_store("steps.db");
    struct hf_runner *runner = new_runner(store, &curve);
    struct hf_type_options type = hf_type_native("count");
    struct hf_job_spec spec = hf_job_of("count", "");
    must(hf_runner_register(runner, &type, counts_up, steps, &error));
    must(hf_enqueue(store, &spec, NULL, NULL, &error));
    /* A quick node finds the second execution, a millisecond later, not due yet, and is idle: the next one runs it. */
    for (int node = 0; node < 50; node++) {
        must(hf_runner_run(runner, &error));
        must(hf_store_get_job(store, 1, &job, &error));
        if (hf_job_look(job)->state != HF_JOB_PENDING)
            break;
        hf_job_free(job);
        hf_runner_free(runner);
        runner = new_runner(store, &curve);
        must(hf_runner_register(runner, &type, counts_up, steps, &error));
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(steps[i], 1);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(hf_job_look(job)->executions, 2);
    assert_int_equal(hf_job_look(job)->progress, 5);
    assert_string_equal(hf_job_look(job)->progress_text, "counting");
    assert_int_equal(hf_job_look(job)->checkpoint_length, 1);
    hf_job_free(job);
    hf_runner_free(runner);
    hf_store_close(store);
}

#define FINISHERS 4
#define ASYNC_JOBS 400
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct hf_work *works[ASYNC_JOBS];
    size_t first, last;
    int seconds; /* a second finish that was not refused */
    bool over;
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void hand_over(struct hf_work *work, void *user) {
    (void)user;
    pthread_mutex_lock(&desk.lock);
    desk.works[desk.last++ % ASYNC_JOBS] = work;
    pthread_cond_signal(&desk.more);
    pthread_mutex_unlock(&desk.lock);
}

static void *finish_some(void *user) {
    (void)user;
    for (;;) {
        pthread_mutex_lock(&desk.lock);
        while (desk.first == desk.last && !desk.over)
            pthread_cond_wait(&desk.more, &desk.lock);
        struct hf_work *work = desk.first == desk.last ? NULL : desk.works[desk.first++ % ASYNC_JOBS];
        pthread_mutex_unlock(&desk.lock);
        if (work == NULL)
            return NULL;
        hf_work_progress(work, 1, "with a finisher");
        hf_work_heartbeat(work);
        hf_work_finish(work, hf_work_ok(work, "r", 1));
        int again = hf_work_finish(work, HF_RESULT_OK);
        pthread_mutex_lock(&desk.lock);
        desk.seconds += again != HF_ESTATE;
        pthread_mutex_unlock(&desk.lock);
    }
}

static void works_are_finished_from_other_threads(void **state) {
    pthread_t threads[FINISHERS];
    (void)state;
    struct hf_store *store = open_store("async.db");
    struct hf_runner *runner = new_runner(store, NULL);
    struct hf_type_options type = hf_type_native("async");
    struct hf_job_spec spec = hf_job_of("async", "");
    must(hf_runner_register_async(runner, &type, hand_over, NULL, &error));
    for (int i = 0; i < ASYNC_JOBS; i++)
        must(hf_enqueue(store, &spec, NULL, NULL, &error));
    for (size_t i = 0; i < FINISHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, finish_some, NULL), 0);
    must(hf_runner_run(runner, &error));
    pthread_mutex_lock(&desk.lock);
    desk.over = true;
    pthread_cond_broadcast(&desk.more);
    pthread_mutex_unlock(&desk.lock);
    for (size_t i = 0; i < FINISHERS; i++)
        pthread_join(threads[i], NULL);
    struct hf_job_counts counts = {.size = sizeof counts};
    must(hf_store_count_jobs(store, &counts, &error));
    assert_int_equal(counts.succeeded, ASYNC_JOBS);
    assert_int_equal(desk.seconds, 0);
    hf_runner_free(runner);
    hf_store_close(store);
}

static sem_t go_on, stuck_began;
static int stuck_word;
static enum hf_result sticks(struct hf_work *work, void *user) {
    (void)user;
    sem_post(&stuck_began);
    while (sem_wait(&go_on) != 0)
        continue;
    stuck_word = hf_work_checkpoint(work, "x", 1); /* nobody listens any more */
    return hf_work_ok(work, NULL, 0);
}

static enum hf_result is_quick(struct hf_work *work, void *user) {
    sem_post(user);
    return hf_work_ok(work, NULL, 0);
}

/* S2.8, 3.6: the one worker hangs past abandon_after: another thread takes its place, and the job goes on by its curve. */
static void a_stuck_handler_loses_its_slot_to_a_fresh_thread(void **state) {
    struct hf_runner_options options;
    struct hf_runner *runner = NULL;
    struct hf_job *job = NULL;
    struct hf_runner_counts counts;
    sem_t quick_ran;
    (void)state;
    sem_init(&go_on, 0, 0);
    sem_init(&stuck_began, 0, 0);
    sem_init(&quick_ran, 0, 0);
    struct hf_store *store = open_store("stuck.db");
    hf_runner_options_init(&options);
    options.workers = 1;
    options.abandon_after_ms = 100;
    options.max_abandoned = 5;
    must(hf_runner_new(store, &options, &runner, &error));
    struct hf_type_options stuck = hf_type_native("stuck"), quick = hf_type_native("quick");
    stuck.execution_timeout_ms = 100;
    must(hf_runner_register(runner, &stuck, sticks, NULL, &error));
    must(hf_runner_register(runner, &quick, is_quick, &quick_ran, &error));
    struct hf_job_spec spec = hf_job_of("stuck", "");
    must(hf_enqueue(store, &spec, NULL, NULL, &error));
    must(hf_runner_start(runner, &error));
    while (sem_wait(&stuck_began) != 0)
        continue;
    spec.type = "quick";
    must(hf_enqueue(store, &spec, NULL, NULL, &error));
    while (sem_wait(&quick_ran) != 0)
        continue;
    hf_runner_counts_init(&counts);
    do
        hf_runner_look(runner, &counts);
    while (counts.abandoned == 0 || counts.lost == 0); /* the harness ends a test that waits for ever */
    assert_int_equal(counts.abandoned_live, 1);
    must(hf_store_get_job(store, 1, &job, &error));
    assert_int_equal(hf_job_look(job)->state, HF_JOB_PENDING);
    assert_string_equal(hf_job_look(job)->error_type, "lease.lapsed");
    hf_job_free(job);
    sem_post(&go_on);
    do
        hf_runner_look(runner, &counts);
    while (counts.abandoned_live > 0);
    assert_int_equal(stuck_word, HF_ESTALE);
    assert_int_equal(hf_runner_drain(runner), 0);
    hf_runner_free(runner);
    hf_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_money_job_credits_once), /* first: it forks, so before any thread */
        cmocka_unit_test(the_ledger_refuses_what_would_not_hold),
        cmocka_unit_test(a_sync_handler_resumes_at_its_last_step),
        cmocka_unit_test(works_are_finished_from_other_threads),
        cmocka_unit_test(a_stuck_handler_loses_its_slot_to_a_fresh_thread),
    };
    hf_log_set(HF_LOG_ERROR + 1, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
