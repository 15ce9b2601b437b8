/* A job in steps: it shows how far it is, goes on behind the last checkpoint after a crash, and counts each step once. */
#include <holdfast/holdfast.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define STEPS 10

/* One step: its effect and its entry in the once-ledger are one transaction of our own database. */
static int take_step(sqlite3 *db, struct hf_work *work, int step) {
    struct hf_error error = hf_error_none();
    char key[400], sql[80];
    bool first = false;
    snprintf(key, sizeof key, "%.300s/%d", hf_work_key(work), step);
    snprintf(sql, sizeof sql, "INSERT INTO steps VALUES (%d)", step);
    if (sqlite3_exec(db, "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS steps(step)", NULL, NULL, NULL) == SQLITE_OK &&
        strlen(key) <= 300 && hf_once_in_sqlite(db, key, &first, &error) == 0 &&
        (!first || sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK) &&
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

static enum hf_result count(struct hf_work *work, void *user) {
    size_t length;
    int step = 0;
    const void *last = hf_work_last_checkpoint(work, &length); /* of the execution before, however it ended */
    if (length == sizeof step)
        memcpy(&step, last, sizeof step);
    for (; step < STEPS; step++) {
        if (hf_work_is_cancelled(work))
            return hf_work_failed(work, "stopped", "told to stop; the next execution goes on here");
        if (take_step(user, work, step) != 0)
            return hf_work_failed(work, "sql", sqlite3_errmsg(user));
        int next = step + 1;
        hf_work_progress(work, next, "steps");
        if (hf_work_checkpoint(work, &next, sizeof next) != 0) /* durable when it returns 0 */
            return hf_work_failed(work, "checkpoint", "not stored");
    }
    return hf_work_ok(work, "done", 4);
}

int main(void) {
    struct hf_runner_options options;
    struct hf_type_options type = hf_type_native("count");
    struct hf_job_spec job = hf_job_of("count", "");
    struct hf_error error = hf_error_none();
    struct hf_store *store = NULL;
    struct hf_runner *runner = NULL;
    sqlite3 *db = NULL;
    hf_runner_options_init(&options);
    options.until_idle = true;
    options.workers = 1; /* every job takes its steps in the one transaction of `db` */
    if (sqlite3_open("steps.db", &db) != SQLITE_OK || hf_store_open("sqlite:jobs.db", NULL, &store, &error) ||
        hf_runner_new(store, &options, &runner, &error) || hf_runner_register(runner, &type, count, db, &error) ||
        hf_enqueue(store, &job, NULL, NULL, &error) || hf_runner_run(runner, &error))
        fprintf(stderr, "steps: %s: %s (%s)\n", error.what, error.why, error.fix);
    hf_runner_free(runner);
    hf_store_close(store);
    sqlite3_close(db);
    return error.code != 0;
}
