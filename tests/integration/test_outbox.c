/* SPDX-License-Identifier: MIT */
/*
 * The outbox: what an application writes into its own file becomes jobs exactly when its transaction commits, whatever
 * is wrong with single rows, with the file, or with who else is at work on it.
 */
#include "support/outbox_stage.h"

#include <unistd.h>

#include "jobs/store/outbox/outbox.h"

static struct hf_error error;

static int64_t count(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    int64_t number = -1;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    if (sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static uint64_t pending(struct hf_store *store) {
    struct hf_job_counts counts;
    hf_job_counts_init(&counts);
    assert_int_equal(hf_store_count_jobs(store, &counts, NULL), 0);
    return counts.pending;
}

static size_t letters(struct hf_store *store) {
    struct hf_dead_list *list = NULL;
    struct hf_dead_filter filter;
    hf_dead_filter_init(&filter);
    filter.limit = 1000;
    assert_int_equal(hf_dead_list_open(store, &filter, &list, NULL), 0);
    size_t found = hf_dead_list_count(list);
    hf_dead_list_free(list);
    return found;
}

static _Atomic size_t death_lines;
static void count_deaths(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)fields;
    (void)user;
    death_lines += level == HF_LOG_ERROR && strcmp(event, "job.dead") == 0;
}

/* Each test has files of its own. */
static struct {
    char application[600], store[600];
    sqlite3 *db;
    struct hf_store *jobs;
} here;

static int open_all(void **state) {
    static int number;
    char name[40];
    (void)state;
    snprintf(name, sizeof name, "shop-%d.db", ++number);
    snprintf(here.application, sizeof here.application, "%s", hf_test_path(name));
    snprintf(name, sizeof name, "jobs-%d.db", number);
    snprintf(here.store, sizeof here.store, "%s", hf_test_path(name));
    hf_error_init(&error);
    stage.at = NULL;
    here.db = stage_application(here.application);
    here.jobs = stage_store(here.store);
    return here.db && here.jobs ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    hf_store_close(here.jobs);
    return sqlite3_close(here.db) == SQLITE_OK ? 0 : -1;
}

static void a_job_is_there_if_and_only_if_the_transaction_commits(void **state) { /* S4.12 S2.33 */
    (void)state;
    struct hf_job_spec spec = hf_job_of("charge", "{\"order\":17}");
    int64_t row = 0;
    assert_int_equal(stage_sql(here.db, "CREATE TABLE orders(id INTEGER PRIMARY KEY); BEGIN; INSERT INTO orders VALUES (17)"), 0);
    assert_int_equal(hf_enqueue_in_sqlite(here.db, &spec, &row, &error), 0);
    assert_int_equal(row, 1);
    assert_false(sqlite3_get_autocommit(here.db)); /* the transaction is still the caller's */
    assert_int_equal(stage_relay_all(here.application, here.jobs, NULL).relayed, 0); /* nobody else sees it yet */
    assert_int_equal(stage_sql(here.db, "ROLLBACK"), 0);
    stage_relay_all(here.application, here.jobs, NULL);
    assert_int_equal(pending(here.jobs), 0);
    assert_int_equal(stage_sql(here.db, "BEGIN; INSERT INTO orders VALUES (18)"), 0);
    assert_int_equal(hf_enqueue_in_sqlite(here.db, &spec, NULL, &error), 0);
    assert_int_equal(stage_sql(here.db, "COMMIT"), 0);
    assert_int_equal(stage_relay_all(here.application, here.jobs, NULL).relayed, 1);
    assert_int_equal(pending(here.jobs), 1);
    assert_int_equal(count(here.db, "SELECT count(*) FROM holdfast_outbox"), 0);
    assert_int_equal(count(here.db, "SELECT count(*) FROM orders"), 1);
}

static void without_the_table_nothing_is_made(void **state) {
    (void)state;
    struct hf_job_spec spec = hf_job_of("charge", "");
    assert_int_equal(stage_sql(here.db, "DROP TABLE holdfast_outbox; BEGIN"), 0);
    assert_int_equal(hf_enqueue_in_sqlite(here.db, &spec, NULL, &error), HF_ENOENT);
    assert_int_equal(count(here.db, "SELECT count(*) FROM sqlite_schema WHERE name = 'holdfast_outbox'"), 0);
    assert_int_equal(hf_outbox_create_in_sqlite(here.db, &error), 0);
    assert_int_equal(hf_outbox_create_in_sqlite(here.db, &error), 0); /* twice is once */
    assert_int_equal(hf_enqueue_in_sqlite(here.db, &spec, NULL, &error), 0);
    assert_int_equal(stage_sql(here.db, "ROLLBACK"), 0); /* and the table was part of it */
    assert_int_equal(count(here.db, "SELECT count(*) FROM sqlite_schema WHERE name = 'holdfast_outbox'"), 0);
    int64_t parent = 1;
    spec.after_jobs = &parent;
    spec.after_count = 1;
    assert_int_equal(hf_enqueue_in_sqlite(here.db, &spec, NULL, &error), HF_EINVAL);
    spec.after_count = 0;
    spec.priority = 10;
    assert_int_equal(hf_enqueue_in_sqlite(here.db, &spec, NULL, &error), HF_EINVAL); /* as every enqueue */
    assert_int_equal(hf_enqueue_in_sqlite(NULL, &spec, NULL, &error), HF_EINVAL);
    assert_int_equal(hf_outbox_create_in_sqlite(NULL, &error), HF_EINVAL);
}

static void everything_of_a_spec_gets_through(void **state) { /* S2.11 I65 */
    (void)state;
    unsigned char bytes[256];
    const int64_t waits[] = {1000, 90000};
    struct hf_job_spec spec;
    struct hf_job *job = NULL;
    hf_job_spec_init(&spec);
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    spec.type = "t\xc3\xbcr";
    spec.queue = "q";
    spec.payload = bytes;
    spec.payload_length = sizeof bytes;
    spec.content_type = "x/y";
    spec.priority = 9;
    spec.max_executions = 4;
    spec.curve_ms = waits;
    spec.curve_length = 2;
    spec.run_at_us = INT64_C(4102444800000001);
    spec.expires_at_us = spec.run_at_us + 5;
    spec.downstream = "d";
    spec.limit_name = "tenant";
    spec.limit_key = "7";
    spec.unique_key = "u";
    spec.on_conflict = HF_UNIQUE_REPLACE;
    spec.idempotency_key = "i";
    spec.correlation_id = "c";
    spec.trace_context = "00-1";
    spec.tags = "a,b";
    spec.source = "erp";
    spec.source_message_id = "17";
    assert_int_equal(hf_enqueue_in_sqlite(here.db, &spec, NULL, &error), 0);
    stage_relay_all(here.application, here.jobs, NULL);
    assert_int_equal(hf_store_get_job(here.jobs, 1, &job, &error), 0);
    const struct hf_job_view *view = hf_job_look(job);
    assert_string_equal(view->type, spec.type);
    assert_string_equal(view->queue, "q");
    assert_int_equal(view->payload_length, 256);
    assert_memory_equal(view->payload, bytes, 256);
    assert_string_equal(view->content_type, "x/y");
    assert_int_equal(view->priority, 9);
    assert_int_equal(view->max_executions, 4);
    assert_true(view->max_executions_explicit);
    assert_int_equal(view->run_at_us, spec.run_at_us);
    assert_int_equal(view->expires_at_us, spec.expires_at_us);
    assert_string_equal(view->downstream, "d");
    assert_string_equal(view->limit_key, "tenant:7");
    assert_string_equal(view->unique_key, "u");
    assert_string_equal(view->idempotency_key, "i");
    assert_string_equal(view->correlation_id, "c");
    assert_string_equal(view->tags, "a,b");
    hf_job_free(job);
    bool existed = false; /* its message id is the spec's own */
    assert_int_equal(hf_enqueue(here.jobs, &spec, NULL, &existed, &error), 0);
    assert_true(existed);
}

/* Each is wrong in its own way; what stands after the # is expected in the letter's message. */
static const char *const malformed[] = {
    "(type, payload) VALUES (NULL, 'x') # type: ",
    "(type, payload) VALUES ('', 'x') # type: ",
    "(type, payload) VALUES (x'00ff', 'x') # type: it is a blob",
    "(type, payload) VALUES ('t', NULL) # payload: it is NULL",
    "(type, payload) VALUES ('t', 7) # payload: it is a whole number",
    "(type, payload) VALUES ('t', 1.5) # payload: it is a number",
    "(type, payload) VALUES ('t', zeroblob(65537)) # payload: 65537 bytes",
    "(type, payload) VALUES ('t', hex(zeroblob(5242880))) # payload: 10485760 bytes",
    "(type, payload) VALUES (hex(zeroblob(5242880)), 'x') # type: 10485760 bytes",
    "(type, payload, queue) VALUES ('t', 'x', hex(zeroblob(100))) # queue: 200 bytes",
    "(type, payload, queue) VALUES ('t', 'x', 'a' || char(10) || 'b') # queue: holds the control character",
    "(type, payload, queue) VALUES ('t', 'x', CAST(x'6180' AS TEXT)) # queue: it is not valid UTF-8",
    "(type, payload, tags) VALUES ('t', 'x', 'a' || char(0) || 'b') # tags: it is not valid UTF-8",
    "(type, payload, priority) VALUES ('t', 'x', 10) # priority: 10 is not from 0 to 9",
    "(type, payload, priority) VALUES ('t', 'x', -1) # priority: -1 is not from 0 to 9",
    "(type, payload, priority) VALUES ('t', 'x', 9223372036854775807) # priority: 9223372036854775807 is not",
    "(type, payload, priority) VALUES ('t', 'x', 'high') # priority: it is a text",
    "(type, payload, priority) VALUES ('t', 'x', 1.5) # priority: it is a number",
    "(type, payload, run_at) VALUES ('t', 'x', '2025-10-26T02:30:00') # run_at: `2025-10-26T02:30:00` is not",
    "(type, payload, run_at) VALUES ('t', 'x', '2025-10-26T02:30 Europe/Berlin') # run_at: ",
    "(type, payload, run_at) VALUES ('t', 'x', 'tomorrow') # run_at: ",
    "(type, payload, run_at) VALUES ('t', 'x', -5) # run_at: -5 is not",
    "(type, payload, run_at) VALUES ('t', 'x', x'01') # run_at: it is a blob",
    "(type, payload, expires_at) VALUES ('t', 'x', 1.5) # expires_at: it is a number",
    "(type, payload, max_executions) VALUES ('t', 'x', 0) # max_executions: 0 is not from 1", /* S2.12 */
    "(type, payload, curve) VALUES ('t', 'x', '60') # curve: ",
    "(type, payload, curve) VALUES ('t', 'x', ' ,') # curve: ",
    "(type, payload, on_conflict, unique_key) VALUES ('t', 'x', 'maybe', 'k') # on_conflict: ",
    "(type, payload, on_conflict) VALUES ('t', 'x', 'replace') # unique_key: ",
    "(type, payload, limit_key) VALUES ('t', 'x', '7') # limit_key: ",
    "(type, payload, source) VALUES ('t', 'x', 'a' || char(9)) # source: ",
    "(type, payload, message_id) VALUES ('t', 'x', hex(zeroblob(200))) # message_id: 400 bytes",
    "(type, payload, message_id) VALUES ('t', 'x', CAST(x'ff' AS TEXT)) # message_id: ",
};
#define MALFORMED (sizeof malformed / sizeof *malformed)

static void insert(const char *columns, size_t length) {
    char sql[400];
    snprintf(sql, sizeof sql, "INSERT INTO holdfast_outbox%.*s", (int)length, columns);
    assert_int_equal(stage_sql(here.db, sql), 0);
}

static void check_letter(struct hf_store *store, int64_t id, const char *message) {
    struct hf_dead *dead = NULL;
    assert_int_equal(hf_dead_get(store, id, &dead, &error), 0);
    const struct hf_dead_view *view = hf_dead_look(dead);
    if (strncmp(view->error_message, message, strlen(message)) != 0)
        fail_msg("letter %lld: `%s` instead of `%s`", (long long)id, view->error_message, message);
    assert_int_equal(view->job_id, 0);
    assert_int_equal(view->death_class, HF_DEATH_POISON);
    assert_int_equal(view->executions, 0);
    assert_string_equal(view->source, "shop");
    assert_true(strlen(view->source_message_id) > 0 && strlen(view->source_message_id) <= 300);
    assert_true(strlen(view->type) > 0 && strlen(view->type) <= 300); /* S0.13 */
    assert_true(view->job_created_at_us > 0);
    hf_dead_free(dead);
}

static void rows_that_cannot_be_jobs_die_once_and_keep_nobody(void **state) { /* S0.13 S0.21 S2.29 I33 I69 I77 I90 */
    (void)state;
    struct hf_runner_options options;
    struct hf_sink_options hook;
    struct hfi_rulebook *book;
    hf_runner_options_init(&options);
    hf_sink_options_init(&hook);
    hook.collapse_ms = 0;
    hook.name = "ops";
    hook.url = "http://127.0.0.1:1/";
    options.sinks = &hook;
    options.sink_count = 1;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    for (size_t i = 0; i < MALFORMED; i++) {
        const char *text = malformed[i], *mark = strstr(text, " # ");
        insert(text, (size_t)(mark - text));
        insert("(type, payload) VALUES ('fine', 'x')", strlen("(type, payload) VALUES ('fine', 'x')"));
    }
    assert_int_equal(stage_sql(here.db, "CREATE TABLE again AS SELECT * FROM holdfast_outbox"), 0);
    death_lines = 0;
    hf_log_set(HF_LOG_ERROR, count_deaths, NULL);
    struct hfi_relay_view view = stage_relay_all(here.application, here.jobs, book);
    assert_int_equal(view.relayed, MALFORMED);
    assert_int_equal(view.poisoned, MALFORMED);
    assert_int_equal(death_lines, MALFORMED); /* I79, S0.23: the way to die that no job has */
    assert_int_equal(pending(here.jobs), MALFORMED);
    assert_int_equal(letters(here.jobs), MALFORMED);
    for (size_t i = 0; i < MALFORMED; i++)
        check_letter(here.jobs, (int64_t)i + 1, strstr(malformed[i], " # ") + 3);
    struct hf_job_counts counts;
    hf_job_counts_init(&counts);
    assert_int_equal(hf_store_count_jobs(here.jobs, &counts, NULL), 0);
    assert_int_equal(counts.alerts_unsent, MALFORMED); /* like any death */
    /* Delivered again, as after a crash or from a restored file: nothing new. */
    assert_int_equal(stage_sql(here.db, "INSERT INTO holdfast_outbox SELECT * FROM again"), 0);
    stage_relay_all(here.application, here.jobs, book);
    hf_log_set(HF_LOG_WARNING, NULL, NULL);
    assert_int_equal(death_lines, MALFORMED);
    assert_int_equal(count(here.db, "SELECT count(*) FROM holdfast_outbox"), 0);
    assert_int_equal(pending(here.jobs), MALFORMED);
    assert_int_equal(letters(here.jobs), MALFORMED);
    hfi_rulebook_free(book);
}

static void times_are_microseconds_or_name_their_zone(void **state) { /* I63 I90 */
    (void)state;
    static const char *const good[] = {"'2040-01-01T01:00:00+01:00'", "2208988800000000", "'2040-01-01T00:00:00Z'"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "(type, payload, run_at) VALUES ('t', '', %s)", good[i]);
        insert(sql, strlen(sql));
    }
    stage_relay_all(here.application, here.jobs, NULL);
    for (int64_t id = 1; id <= 3; id++) {
        struct hf_job *job = NULL;
        assert_int_equal(hf_store_get_job(here.jobs, id, &job, &error), 0);
        assert_int_equal(hf_job_look(job)->run_at_us, INT64_C(2208988800000000));
        hf_job_free(job);
    }
}

static void what_a_type_says_is_fixed_by_the_relay(void **state) { /* S1.26 */
    (void)state;
    struct hf_runner_options options;
    struct hf_type_options type;
    struct hf_curve_options curve;
    struct hfi_rulebook *book;
    struct hf_job *job = NULL;
    hf_runner_options_init(&options);
    hf_type_options_init(&type);
    hf_curve_options_init(&curve);
    curve.curve_length = 1;
    curve.max_executions = 2;
    type.name = "t";
    type.kind = HF_KIND_NOOP;
    type.queue = "quick";
    type.curve = &curve;
    options.types = &type;
    options.type_count = 1;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    insert("(type, payload) VALUES ('t', ''), ('other', '')", strlen("(type, payload) VALUES ('t', ''), ('other', '')"));
    stage_relay_all(here.application, here.jobs, book);
    assert_int_equal(hf_store_get_job(here.jobs, 1, &job, &error), 0);
    assert_string_equal(hf_job_look(job)->queue, "quick");
    assert_int_equal(hf_job_look(job)->max_executions, 2);
    assert_false(hf_job_look(job)->max_executions_explicit);
    hf_job_free(job);
    assert_int_equal(hf_store_get_job(here.jobs, 2, &job, &error), 0);
    assert_string_equal(hf_job_look(job)->queue, "default");
    assert_int_equal(hf_job_look(job)->max_executions, 0); /* whoever has the type decides, at the first start */
    hf_job_free(job);
    hfi_rulebook_free(book);
}

/* What is kept of a batch is bounded, whichever column is long. */
static void long_message_ids_do_not_pile_up(void **state) {
    (void)state;
    struct hfi_outbox_row rows[64];
    struct hfi_outbox_file file = {.path = here.application};
    const struct hfi_outbox_judge judge = {.source = "shop", .payload_max = 65536};
    size_t found = 0;
    int64_t oldest = 0;
    assert_int_equal(stage_sql(here.db, "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16) INSERT INTO "
                                        "holdfast_outbox(type, payload, message_id) SELECT 't', 'x', hex(zeroblob(500000 + i)) FROM n"), 0);
    assert_int_equal(hfi_outbox_open(&file, &error), 0);
    assert_int_equal(hfi_outbox_read(&file, &judge, INT64_MIN, rows, 64, &found, &oldest, &error), 0);
    for (size_t i = 0; i < found; i++)
        hfi_outbox_row_free(&rows[i]);
    hfi_outbox_close(&file);
    assert_int_equal(found, 5); /* over 4 MiB with the fifth */
    assert_int_equal(stage_relay_all(here.application, here.jobs, NULL).poisoned, 16);
    assert_int_equal(count(here.db, "SELECT count(*) FROM holdfast_outbox"), 0);
}

/* I10: what the application's triggers and views never end is ended here; nothing of it stays, and the handle goes on. */
static void i10_statements_of_an_outbox_have_an_end(void **state) {
    (void)state;
    struct hfi_outbox_row rows[4];
    struct hfi_outbox_file file = {.path = here.application, .deadline = {.limit_us = 1}}; /* the first look is the last */
    const struct hfi_outbox_judge judge = {.source = "shop", .payload_max = 65536};
    size_t found = 0;
    int64_t oldest = 0;
    insert("(type, payload, message_id) VALUES ('t', 'x', 'm')", strlen("(type, payload, message_id) VALUES ('t', 'x', 'm')"));
    assert_int_equal(stage_sql(here.db, "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                                        "SELECT i FROM n; CREATE TRIGGER stall BEFORE DELETE ON holdfast_outbox BEGIN "
                                        "SELECT count(*) FROM endless; END"), 0);
    assert_int_equal(hfi_outbox_open(&file, &error), 0);
    assert_int_equal(hfi_outbox_read(&file, &judge, INT64_MIN, rows, 4, &found, &oldest, &error), 0);
    assert_int_equal(found, 1);
    assert_int_equal(hfi_outbox_delete(&file, rows, found, &error), HF_EBUSY);
    assert_non_null(strstr(error.why, "took longer than 10 s"));
    assert_int_equal(count(here.db, "SELECT count(*) FROM holdfast_outbox"), 1);
    assert_int_equal(stage_sql(here.db, "DROP TRIGGER stall"), 0);
    assert_int_equal(hfi_outbox_delete(&file, rows, found, &error), 0);
    assert_int_equal(count(here.db, "SELECT count(*) FROM holdfast_outbox"), 0);
    hfi_outbox_row_free(&rows[0]);
    hfi_outbox_close(&file);
    struct hfi_outbox_file usual = {.path = here.application};
    assert_int_equal(hfi_outbox_open(&usual, &error), 0);
    assert_int_equal(usual.deadline.limit_us, 10000000);
    hfi_outbox_close(&usual);
}

static void a_cut_payload_is_not_redriven(void **state) { /* S0.20 S0.22 */
    (void)state;
    struct hf_dead *dead = NULL;
    struct hf_dead_action action;
    int64_t job = 0;
    hf_dead_action_init(&action);
    action.actor = "ann";
    insert("(type, payload) VALUES ('t', zeroblob(65537))", strlen("(type, payload) VALUES ('t', zeroblob(65537))"));
    insert("(type, payload, priority) VALUES ('t', zeroblob(65536), 10)", strlen("(type, payload, priority) VALUES ('t', zeroblob(65536), 10)"));
    stage_relay_all(here.application, here.jobs, NULL);
    assert_int_equal(hf_dead_get(here.jobs, 1, &dead, &error), 0);
    assert_true(hf_dead_look(dead)->payload_cut);
    hf_dead_free(dead);
    assert_int_equal(hf_dead_get(here.jobs, 2, &dead, &error), 0);
    assert_false(hf_dead_look(dead)->payload_cut);
    hf_dead_free(dead);
    assert_int_equal(hf_dead_redrive(here.jobs, 1, &action, &job, &error), HF_ESTATE);
    assert_non_null(strstr(error.fix, "--payload"));
    assert_int_equal(pending(here.jobs), 0);
    assert_int_equal(hf_dead_redrive(here.jobs, 2, &action, &job, &error), 0);
    action.payload = "whole";
    action.payload_length = 5;
    action.new_key = true;
    assert_int_equal(hf_dead_redrive(here.jobs, 1, &action, &job, &error), 0);
    assert_int_equal(pending(here.jobs), 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_there_if_and_only_if_the_transaction_commits),
        TEST(without_the_table_nothing_is_made),
        TEST(everything_of_a_spec_gets_through),
        TEST(rows_that_cannot_be_jobs_die_once_and_keep_nobody),
        TEST(long_message_ids_do_not_pile_up),
        TEST(i10_statements_of_an_outbox_have_an_end),
        TEST(a_cut_payload_is_not_redriven),
        TEST(times_are_microseconds_or_name_their_zone),
        TEST(what_a_type_says_is_fixed_by_the_relay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
