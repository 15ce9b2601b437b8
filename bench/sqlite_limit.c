/* SPDX-License-Identifier: MIT */
/*
 * The limit of the disk and of SQLite for a job queue: a minimal table, a batch's completions and the next claim in one
 * durable (WAL, synchronous FULL) transaction. What `bench/noop` is held against, in the same run.
 * usage: sqlite_limit FILE JOBS BATCH     prints one JSON line
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void must(int code, sqlite3 *db) {
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) {
        fprintf(stderr, "sqlite_limit: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static void execute(sqlite3 *db, const char *sql) {
    must(sqlite3_exec(db, sql, NULL, NULL, NULL), db);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement = NULL;
    must(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), db);
    return statement;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fill(sqlite3 *db, int jobs) {
    execute(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
                "CREATE TABLE jobs(id INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload BLOB);"
                "CREATE INDEX ready ON jobs(id) WHERE state = 0; BEGIN");
    sqlite3_stmt *insert = prepare(db, "INSERT INTO jobs(state, payload) VALUES (0, x'7b7d')");
    for (int i = 0; i < jobs; i++) {
        must(sqlite3_step(insert), db);
        must(sqlite3_reset(insert), db);
    }
    sqlite3_finalize(insert);
    execute(db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
}

static void set_states(sqlite3 *db, sqlite3_stmt *update, const sqlite3_int64 *ids, int count) {
    for (int i = 0; i < count; i++) {
        must(sqlite3_bind_int64(update, 1, ids[i]), db);
        must(sqlite3_step(update), db);
        must(sqlite3_reset(update), db);
    }
}

static int drain(sqlite3 *db, int batch) {
    sqlite3_stmt *claim = prepare(db, "SELECT id FROM jobs WHERE state = 0 ORDER BY id LIMIT ?");
    sqlite3_stmt *start = prepare(db, "UPDATE jobs SET state = 2 WHERE id = ?");
    sqlite3_stmt *finish = prepare(db, "UPDATE jobs SET state = 3 WHERE id = ?");
    sqlite3_int64 *ids = calloc((size_t)batch, sizeof *ids);
    int held = 0;
    int done = 0;
    do {
        execute(db, "BEGIN IMMEDIATE");
        set_states(db, finish, ids, held);
        done += held;
        held = 0;
        must(sqlite3_bind_int(claim, 1, batch), db);
        while (sqlite3_step(claim) == SQLITE_ROW) {
            ids[held++] = sqlite3_column_int64(claim, 0);
        }
        must(sqlite3_reset(claim), db);
        set_states(db, start, ids, held);
        execute(db, "COMMIT");
    } while (held > 0);
    free(ids);
    sqlite3_finalize(claim);
    sqlite3_finalize(start);
    sqlite3_finalize(finish);
    return done;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: sqlite_limit FILE JOBS BATCH\n");
        return 2;
    }
    sqlite3 *db = NULL;
    must(sqlite3_open(argv[1], &db), db);
    int jobs = atoi(argv[2]);
    int batch = atoi(argv[3]);
    fill(db, jobs);
    double start = seconds();
    int done = drain(db, batch);
    double took = seconds() - start;
    printf("{\"bench\":\"sqlite_limit\",\"jobs\":%d,\"batch\":%d,\"seconds\":%.3f,\"per_second\":%.0f}\n", done, batch, took,
           (double)done / took);
    sqlite3_close(db);
    return 0;
}
