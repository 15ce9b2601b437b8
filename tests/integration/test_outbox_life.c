/* SPDX-License-Identifier: MIT */
/*
 * The relay while the world around it misbehaves: killed at every step, several at once, an application that holds its
 * locks, files and tables that come and go, a store that refuses. Always one job of each message.
 */
#include "support/outbox_stage.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/store.h"

#define ROWS 300 /* more than one batch */

static char application[600], store_path[600];
static struct hf_error error;

static void paths(const char *name) {
    char file[80];
    snprintf(file, sizeof file, "%s-shop.db", name);
    snprintf(application, sizeof application, "%s", hf_test_path(file));
    snprintf(file, sizeof file, "%s-jobs.db", name);
    snprintf(store_path, sizeof store_path, "%s", hf_test_path(file));
    stage.at = NULL;
    hf_error_init(&error);
}

static int64_t count(const char *path, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        sqlite3_busy_timeout(db, 10000);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

static int fill(sqlite3 *db, int rows) {
    char sql[300];
    snprintf(sql, sizeof sql,
             "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO holdfast_outbox(type, payload) "
             "SELECT iif(i %% 10 = 0, NULL, 't'), 'row ' || i FROM n",
             rows);
    return stage_sql(db, sql);
}

static void exactly_one_of_each(int rows) {
    assert_int_equal(count(application, "SELECT count(*) FROM holdfast_outbox"), 0);
    assert_int_equal(count(store_path, "SELECT count(*) FROM jobs"), rows - rows / 10);
    assert_int_equal(count(store_path, "SELECT count(DISTINCT payload) FROM jobs"), rows - rows / 10);
    assert_int_equal(count(store_path, "SELECT count(*) FROM dead_letters"), rows / 10);
    assert_int_equal(count(store_path, "SELECT count(DISTINCT payload) FROM dead_letters"), rows / 10);
    assert_int_equal(count(store_path, "SELECT count(*) FROM (SELECT payload FROM jobs INTERSECT SELECT payload FROM dead_letters)"), 0);
}

/* ------------------------------------------------------------------ killed */

static enum hfi_relay_step kill_at;
static int kills_left;

static void die(enum hfi_relay_step step) {
    if (step == kill_at && --kills_left == 0)
        kill(getpid(), SIGKILL);
}

/* A process that is killed when its relay has come to `step` for the n-th time. Nothing of ours is open while it forks. */
static void killed_at(enum hfi_relay_step step, int nth) {
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        struct hf_store *store = stage_store(store_path);
        kill_at = step;
        kills_left = nth;
        stage.at = die;
        if (store)
            stage_relay_all(application, store, NULL);
        _exit(3); /* it should not have come here */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void killed_at_every_step_it_makes_one_job_of_each(void **state) { /* S2.33 S4.12 S3.2 S0.21 */
    (void)state;
    int rows = 0;
    paths("killed");
    for (int step = HFI_RELAY_READ; step <= HFI_RELAY_DELETED; step++) {
        for (int nth = 1; nth <= 2; nth++) {
            sqlite3 *db = stage_application(application);
            assert_non_null(db);
            char sql[400];
            snprintf(sql, sizeof sql, /* the last one has no message id yet */
                     "WITH n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO holdfast_outbox(type, payload) "
                     "SELECT iif(i %% 10 = 0, NULL, 't'), 'row ' || i FROM n; UPDATE holdfast_outbox SET message_id = NULL WHERE id = %d",
                     rows + 1, rows + ROWS, rows + ROWS);
            assert_int_equal(stage_sql(db, sql), 0);
            sqlite3_close(db);
            rows += ROWS;
            killed_at((enum hfi_relay_step)step, nth);
            if (nth == 1)
                killed_at((enum hfi_relay_step)step, 1); /* and what takes over dies in the same place */
        }
    }
    struct hf_store *store = stage_store(store_path);
    stage.at = NULL;
    stage_relay_all(application, store, NULL);
    hf_store_close(store);
    exactly_one_of_each(rows);
}

/* ------------------------------------------------------------------ at once */

static void several_relays_on_one_file_make_no_duplicates(void **state) { /* S4.11 */
    (void)state;
    struct hf_store *stores[2];
    struct hfi_relay *relays[4];
    paths("several");
    sqlite3 *db = stage_application(application);
    assert_int_equal(fill(db, 2 * ROWS), 0);
    for (int i = 0; i < 2; i++) /* two nodes, each with handles of its own */
        assert_non_null(stores[i] = stage_store(store_path));
    for (int i = 0; i < 4; i++)
        assert_non_null(relays[i] = stage_relay(application, stores[i % 2], NULL, 10));
    for (int i = 0; i < 4; i++)
        stage_await_idle(relays[i]);
    for (int i = 0; i < 4; i++)
        hfi_relay_free(relays[i]);
    for (int i = 0; i < 2; i++)
        hf_store_close(stores[i]);
    sqlite3_close(db);
    exactly_one_of_each(2 * ROWS);
}

struct writer {
    pthread_t thread;
    struct hf_store *store;
    int made, failed;
};

static void *deliver(void *user) {
    struct writer *writer = user;
    struct hf_job_spec spec = hf_job_of("order", "{}");
    spec.source = "shop";
    spec.source_message_id = "m-1";
    for (int i = 0; i < 125; i++) {
        bool existed = false;
        writer->failed += hf_enqueue(writer->store, &spec, NULL, &existed, NULL) != 0;
        writer->made += !existed;
    }
    return NULL;
}

static void one_message_a_thousand_times_from_eight_writers_is_one_job(void **state) { /* S4.11 */
    (void)state;
    struct writer writers[8];
    int made = 0, failed = 0;
    paths("delivered");
    struct hf_store *store = stage_store(store_path);
    for (int i = 0; i < 8; i++) {
        writers[i] = (struct writer){.store = store};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, deliver, &writers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(writers[i].thread, NULL);
        made += writers[i].made;
        failed += writers[i].failed;
    }
    assert_int_equal(failed, 0);
    assert_int_equal(made, 1);
    assert_int_equal(count(store_path, "SELECT count(*) FROM jobs"), 1);
    hf_store_close(store);
}

/* ------------------------------------------------------------------ locks, files, tables */

static void an_application_that_keeps_its_lock_delays_the_deletion_alone(void **state) { /* S2.33 */
    (void)state;
    paths("locked");
    sqlite3 *db = stage_application(application);
    struct hf_store *store = stage_store(store_path);
    assert_int_equal(fill(db, 20), 0);
    assert_int_equal(stage_sql(db, "BEGIN IMMEDIATE"), 0);
    unsigned buried = stage_seen(HFI_RELAY_BURIED), deleted = stage_seen(HFI_RELAY_DELETED);
    struct hfi_relay *relay = stage_relay(application, store, NULL, 10);
    stage_await(HFI_RELAY_BURIED, buried + 3); /* it comes to the lock again and again */
    assert_int_equal(stage_seen(HFI_RELAY_DELETED), deleted);
    assert_int_equal(count(application, "SELECT count(*) FROM holdfast_outbox"), 20);
    struct hfi_relay_view view;
    hfi_relay_look(relay, &view);
    assert_true(view.oldest_us > 0);
    assert_int_equal(stage_sql(db, "COMMIT"), 0);
    stage_await(HFI_RELAY_DELETED, deleted + 1);
    hfi_relay_free(relay);
    hf_store_close(store);
    sqlite3_close(db);
    exactly_one_of_each(20);
}

static void files_and_tables_may_come_late_and_change(void **state) {
    (void)state;
    paths("late");
    struct hf_store *store = stage_store(store_path);
    struct hfi_relay *relay = stage_relay(application, store, NULL, 10);
    stage_await_idle(relay); /* nothing there */
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(application, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000); /* as every application has one */
    unsigned deleted = stage_seen(HFI_RELAY_DELETED);
    /* Not our statement, but it has what is needed; the journal is the old kind. */
    assert_int_equal(stage_sql(db, "CREATE TABLE other(x); CREATE TABLE holdfast_outbox(message_id, PAYLOAD, mine, type);"
                                   "INSERT INTO holdfast_outbox VALUES ('1', 'row 1', 0, 't'), (x'ab01', 'row 2', 0, 't'), (NULL, 'row 3', 0, 't')"), 0);
    stage_await(HFI_RELAY_DELETED, deleted + 1);
    assert_int_equal(stage_sql(db, "ALTER TABLE holdfast_outbox ADD COLUMN priority; ALTER TABLE holdfast_outbox DROP COLUMN mine;"
                                   "INSERT INTO holdfast_outbox(type, payload, priority) VALUES ('t', 'row 4', 9)"), 0);
    stage_await(HFI_RELAY_DELETED, deleted + 2);
    assert_int_equal(stage_sql(db, "ALTER TABLE holdfast_outbox RENAME TO gone"), 0);
    assert_int_equal(hf_outbox_create_in_sqlite(db, &error), 0);
    assert_int_equal(stage_sql(db, "INSERT INTO holdfast_outbox(type, payload) VALUES ('t', 'row 5')"), 0);
    stage_await(HFI_RELAY_DELETED, deleted + 3);
    sqlite3_close(db);
    char aside[640];
    snprintf(aside, sizeof aside, "%s.old", application); /* another file under the same name */
    assert_int_equal(rename(application, aside), 0);
    db = stage_application(application);
    assert_int_equal(stage_sql(db, "INSERT INTO holdfast_outbox(type, payload) VALUES ('t', 'row 6')"), 0);
    stage_await(HFI_RELAY_DELETED, deleted + 4);
    sqlite3_close(db);
    hfi_relay_free(relay);
    hf_store_close(store);
    assert_int_equal(count(store_path, "SELECT count(*) FROM jobs"), 6);
    assert_int_equal(count(store_path, "SELECT count(*) FROM jobs WHERE priority = 9"), 1);
    assert_int_equal(count(store_path, "SELECT count(*) FROM inbox WHERE source = 'shop' AND message_id IN ('1', 'ab01')"), 2);
    assert_int_equal(count(store_path, "SELECT count(*) FROM dead_letters"), 0);
}

static void a_write_wakes_it_long_before_the_poll(void **state) {
    (void)state;
    paths("woken");
    sqlite3 *db = stage_application(application);
    struct hf_store *store = stage_store(store_path);
    struct hfi_relay *relay = stage_relay(application, store, NULL, 3600000); /* an hour: the harness would not wait for it */
    stage_await_idle(relay);
    for (unsigned i = 0; i < 5; i++) {
        unsigned deleted = stage_seen(HFI_RELAY_DELETED);
        assert_int_equal(stage_sql(db, "INSERT INTO holdfast_outbox(type, payload) VALUES ('t', '')"), 0);
        stage_await(HFI_RELAY_DELETED, deleted + 1);
    }
    hfi_relay_free(relay); /* nor does the end */
    hf_store_close(store);
    sqlite3_close(db);
    assert_int_equal(count(store_path, "SELECT count(*) FROM jobs"), 5);
}

/* The file is a link to another folder, so nothing tells of its writes; neighbours in the link's folder never rest. */
static void a_busy_folder_does_not_lengthen_the_poll(void **state) {
    (void)state;
    char link[640], folder[640], neighbour[640];
    paths("busy");
    snprintf(folder, sizeof folder, "%s", hf_test_path("busy-folder"));
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(link, sizeof link, "%.600s/link.db", folder);
    snprintf(neighbour, sizeof neighbour, "%.600s/neighbour", folder);
    assert_int_equal(symlink(application, link), 0);
    sqlite3 *db = stage_application(application);
    struct hf_store *store = stage_store(store_path);
    struct hfi_relay *relay = stage_relay(link, store, NULL, 1000);
    stage_await_idle(relay);
    unsigned deleted = stage_seen(HFI_RELAY_DELETED);
    assert_int_equal(stage_sql(db, "INSERT INTO holdfast_outbox(type, payload) VALUES ('t', '')"), 0);
    FILE *file = fopen(neighbour, "w");
    assert_non_null(file);
    while (stage_seen(HFI_RELAY_DELETED) == deleted) { /* for ever, if each event were a new sleep */
        assert_int_equal(fputc('x', file), 'x');
        assert_int_equal(fflush(file), 0);
    }
    fclose(file);
    hfi_relay_free(relay);
    hf_store_close(store);
    sqlite3_close(db);
    assert_int_equal(count(store_path, "SELECT count(*) FROM jobs"), 1);
}

static unsigned stuck_lines;

static void count_stuck(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)level;
    (void)fields;
    (void)user;
    if (strcmp(event, "outbox.stuck") == 0)
        __atomic_fetch_add(&stuck_lines, 1, __ATOMIC_SEQ_CST);
}

/* More than a batch of rows that the store does not even take as letters: what is behind them goes on, they are said once. */
static void rows_that_stay_keep_nobody(void **state) { /* I33 */
    (void)state;
    sqlite3 *jobs = NULL;
    paths("stuck");
    sqlite3 *db = stage_application(application);
    struct hf_store *store = stage_store(store_path);
    assert_int_equal(sqlite3_open(store_path, &jobs), SQLITE_OK);
    sqlite3_busy_timeout(jobs, 10000);
    assert_int_equal(stage_sql(jobs, "CREATE TRIGGER refuse BEFORE INSERT ON dead_letters WHEN NEW.type = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END"), 0);
    assert_int_equal(stage_sql(db, "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO "
                                   "holdfast_outbox(type, payload) SELECT 'bad', NULL FROM n;"
                                   "INSERT INTO holdfast_outbox(type, payload) VALUES ('t', 'fine'), ('poison', NULL)"), 0);
    stuck_lines = 0;
    hf_log_set(HF_LOG_ERROR, count_stuck, NULL);
    unsigned seen = stage_seen(HFI_RELAY_READ);
    struct hfi_relay *relay = stage_relay(application, store, NULL, 10);
    stage_await(HFI_RELAY_READ, seen + 8); /* four looks at least */
    struct hfi_relay_view view;
    hfi_relay_join(relay);
    hfi_relay_look(relay, &view);
    hfi_relay_free(relay);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    assert_int_equal(view.relayed, 1);
    assert_int_equal(view.poisoned, 1);
    assert_true(view.oldest_us > 0);
    assert_int_equal(__atomic_load_n(&stuck_lines, __ATOMIC_SEQ_CST), 300);
    assert_int_equal(count(application, "SELECT count(*) FROM holdfast_outbox"), 300);
    assert_int_equal(stage_sql(jobs, "DROP TRIGGER refuse"), 0); /* and they go as soon as they can */
    assert_int_equal(stage_relay_all(application, store, NULL).poisoned, 300);
    assert_int_equal(count(application, "SELECT count(*) FROM holdfast_outbox"), 0);
    sqlite3_close(jobs);
    hf_store_close(store);
    sqlite3_close(db);
}

/* ------------------------------------------------------------------ no thread */

static _Atomic unsigned refusals; /* how many threads cannot be made from now on */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user) {
    typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    create_fn create = (create_fn)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    if (refusals > 0) {
        refusals--;
        return EAGAIN;
    }
    return create(thread, attributes, run, user);
}

static void without_a_thread_it_is_not_busy(void **state) {
    (void)state;
    struct hf_outbox_options outbox;
    struct hfi_relay *relay = NULL;
    struct hfi_relay_view view;
    paths("threadless");
    struct hf_store *store = stage_store(store_path);
    sqlite3 *db = stage_application(application);
    hf_outbox_options_init(&outbox);
    outbox.name = "shop";
    outbox.file = application;
    struct hfi_relay_options options = {.outbox = &outbox, .writer = store->writer, .payload_max = 65536,
                                        .changed = stage_changed, .at = stage_step};
    assert_int_equal(hfi_relay_new(&options, &relay, &error), 0);
    refusals = 1;
    assert_int_equal(hfi_relay_start(relay), HF_ENOMEM);
    hfi_relay_look(relay, &view);
    assert_false(view.busy); /* --until-idle would wait for ever */
    assert_int_equal(hfi_relay_start(relay), 0);
    assert_int_equal(hfi_relay_start(relay), 0); /* once */
    stage_await_idle(relay);
    hfi_relay_free(relay);
    sqlite3_close(db);
    hf_store_close(store);
}

static void the_age_of_the_oldest_row_is_known_without_a_relay(void **state) { /* S0.34 */
    (void)state;
    struct hf_outbox_view view;
    char url[700];
    paths("age");
    hf_outbox_view_init(&view);
    assert_int_equal(hf_outbox_look(application, &view, &error), HF_ENOENT);
    sqlite3 *db = stage_application(application);
    assert_int_equal(hf_outbox_look(application, &view, &error), 0);
    assert_int_equal(view.rows, 0);
    assert_int_equal(view.oldest_at_us, 0);
    assert_int_equal(stage_sql(db, "INSERT INTO holdfast_outbox(type, payload, created_at) VALUES ('t', '', 1700000000000000), ('t', '', 1800000000000000)"), 0);
    snprintf(url, sizeof url, "sqlite:%s", application);
    assert_int_equal(hf_outbox_look(url, &view, &error), 0);
    assert_int_equal(view.rows, 2);
    assert_int_equal(view.oldest_at_us, INT64_C(1700000000000000)); /* stands still, so the age rises */
    struct hf_store *store = stage_store(store_path);
    assert_int_equal(stage_relay_all(application, store, NULL).oldest_us, 0);
    assert_int_equal(hf_outbox_look(application, &view, &error), 0);
    assert_int_equal(view.rows, 0);
    assert_int_equal(view.oldest_at_us, 0);
    assert_int_equal(stage_sql(db, "DROP TABLE holdfast_outbox"), 0);
    assert_int_equal(hf_outbox_look(application, &view, &error), HF_ENOENT);
    /* what the relay can do without, the look can do without too; and what it cannot is told before there are rows */
    assert_int_equal(stage_sql(db, "CREATE TABLE holdfast_outbox(message_id, type, payload);"
                                   "INSERT INTO holdfast_outbox VALUES ('m', 't', '')"), 0);
    assert_int_equal(hf_outbox_look(application, &view, &error), 0);
    assert_int_equal(view.rows, 1);
    assert_int_equal(view.oldest_at_us, 0);
    assert_int_equal(stage_sql(db, "DROP TABLE holdfast_outbox; CREATE TABLE holdfast_outbox(message_id, payload)"), 0);
    assert_int_equal(hf_outbox_look(application, &view, &error), HF_EINVAL);
    assert_non_null(strstr(error.why, "no column type"));
    assert_int_equal(hf_outbox_look("sqlite:", &view, &error), HF_EINVAL);
    assert_int_equal(hf_outbox_look(NULL, &view, &error), HF_EINVAL);
    hf_store_close(store);
    sqlite3_close(db);
}

/* ------------------------------------------------------------------ a node */

static void a_node_runs_what_its_outboxes_hold(void **state) { /* S4.12 S0.34 S3.23 */
    (void)state;
    struct hf_outbox_options outbox;
    struct hf_runner_options options;
    struct hf_type_options type;
    struct hf_runner *runner = NULL;
    struct hf_runner_counts counts;
    paths("node");
    sqlite3 *db = stage_application(application);
    assert_int_equal(fill(db, 50), 0);
    struct hf_store *store = stage_store(store_path);
    hf_runner_options_init(&options);
    hf_outbox_options_init(&outbox);
    hf_type_options_init(&type);
    outbox.name = "shop";
    outbox.file = application;
    type.name = "t";
    type.kind = HF_KIND_NOOP;
    options.until_idle = true;
    options.types = &type;
    options.type_count = 1;
    options.outboxes = &outbox;
    options.outbox_count = 1;
    outbox.name = "";
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), HF_EINVAL);
    outbox.name = "shop";
    assert_int_equal(hf_runner_new(store, &options, &runner, &error), 0);
    assert_int_equal(hf_runner_run(runner, &error), 0); /* idle is when the outbox is empty, too */
    hf_runner_counts_init(&counts);
    hf_runner_look(runner, &counts);
    assert_int_equal(counts.relayed, 45);
    assert_int_equal(counts.poisoned, 5);
    assert_int_equal(counts.succeeded, 45);
    assert_int_equal(counts.outbox_oldest_ms, 0);
    hf_runner_free(runner);
    hf_store_close(store);
    sqlite3_close(db);
    exactly_one_of_each(50);
}

/* A node of two outboxes, which runs until it is idle. */
static int run_two(struct hf_store *store, const char *one, const char *other, uint64_t *relayed) {
    struct hf_outbox_options outboxes[2];
    struct hf_runner_options options;
    struct hf_type_options type;
    struct hf_runner *runner = NULL;
    struct hf_runner_counts counts;
    hf_runner_options_init(&options);
    hf_type_options_init(&type);
    hf_runner_counts_init(&counts);
    type.name = "t";
    type.kind = HF_KIND_NOOP;
    options.until_idle = true;
    options.types = &type;
    options.type_count = 1;
    options.outboxes = outboxes;
    options.outbox_count = 2;
    for (int i = 0; i < 2; i++) {
        hf_outbox_options_init(&outboxes[i]);
        outboxes[i].name = i == 0 ? "one" : "two";
        outboxes[i].file = i == 0 ? one : other;
    }
    int code = hf_runner_new(store, &options, &runner, &error);
    if (code == 0)
        code = hf_runner_run(runner, &error);
    if (code == 0)
        hf_runner_look(runner, &counts);
    *relayed = counts.relayed;
    hf_runner_free(runner);
    return code;
}

static void one_file_has_one_outbox(void **state) {
    (void)state;
    char link[640], url[700];
    uint64_t relayed;
    paths("twice");
    struct hf_store *store = stage_store(store_path);
    snprintf(url, sizeof url, "sqlite:%s", application);
    snprintf(link, sizeof link, "%s.link", application);
    assert_int_equal(run_two(store, application, url, &relayed), HF_EEXIST); /* there is no such file yet */
    sqlite3 *db = stage_application(application);
    assert_int_equal(symlink(application, link), 0);
    assert_int_equal(run_two(store, application, link, &relayed), HF_EEXIST);
    assert_string_equal(error.what, "two");
    assert_int_equal(run_two(store, application, store_path, &relayed), HF_EEXIST);
    assert_int_equal(run_two(store, store_path, application, &relayed), HF_EEXIST);
    sqlite3_close(db);
    hf_store_close(store);
}

static void threads_that_cannot_be_made_are_made_later(void **state) {
    (void)state;
    char other[640];
    uint64_t relayed;
    paths("later");
    snprintf(other, sizeof other, "%s.other", application);
    struct hf_store *store = stage_store(store_path);
    sqlite3 *one = stage_application(application), *two = stage_application(other);
    assert_int_equal(fill(one, 9), 0);
    assert_int_equal(fill(two, 9), 0);
    refusals = 3; /* the watchdog's and both relays' */
    assert_int_equal(run_two(store, application, other, &relayed), 0);
    assert_int_equal(refusals, 0);
    assert_int_equal(relayed, 18);
    sqlite3_close(one);
    sqlite3_close(two);
    hf_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_step_it_makes_one_job_of_each),
        cmocka_unit_test(several_relays_on_one_file_make_no_duplicates),
        cmocka_unit_test(one_message_a_thousand_times_from_eight_writers_is_one_job),
        cmocka_unit_test(an_application_that_keeps_its_lock_delays_the_deletion_alone),
        cmocka_unit_test(files_and_tables_may_come_late_and_change),
        cmocka_unit_test(a_write_wakes_it_long_before_the_poll),
        cmocka_unit_test(a_busy_folder_does_not_lengthen_the_poll),
        cmocka_unit_test(rows_that_stay_keep_nobody),
        cmocka_unit_test(without_a_thread_it_is_not_busy),
        cmocka_unit_test(one_file_has_one_outbox),
        cmocka_unit_test(threads_that_cannot_be_made_are_made_later),
        cmocka_unit_test(the_age_of_the_oldest_row_is_known_without_a_relay),
        cmocka_unit_test(a_node_runs_what_its_outboxes_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
