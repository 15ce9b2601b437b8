/* SPDX-License-Identifier: MIT */
/*
 * Looks for what should not be: a damaged file, rows that no scan reaches, owners without a node, dead jobs without a
 * letter, counts that are off, alerts that did not get out, a disk without space. Only reads. Any thread but loop and writer.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/store/internal.h"

struct check {
    const char *name;
    bool is_error;
    const char *sql; /* how many are wrong */
    const char *text;
    const char *fix;
};

static const struct check checks[] = {
    {"unreachable", true, "SELECT count(*) FROM jobs WHERE state > 6", "jobs in states this program does not know (I47)",
     "run the holdfast that wrote them"},
    {"owner", true,
     "SELECT count(*) FROM jobs j WHERE j.state = 2 AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = j.owner AND n.gone = 0)",
     "running jobs whose node is gone: no sweep reaches them (I3)", "report it with the file"},
    {"lane", true, "SELECT count(*) FROM jobs j WHERE j.state = 0 AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.id = j.lane)",
     "pending jobs without a lane: no claim reaches them", "report it with the file"},
    {"next_due", true,
     "SELECT count(*) FROM lanes l WHERE l.next_due_us > (SELECT min(j.run_at_us) FROM jobs j WHERE j.state = 0 "
     "AND j.lane = l.id)",
     "lanes that believe their next job to be due later than it is", "report it with the file"},
    {"waiting", true,
     "SELECT count(*) FROM jobs c WHERE c.state = 1 AND NOT EXISTS (SELECT 1 FROM deps d JOIN jobs p ON p.id = d.parent "
     "WHERE d.child = c.id AND (p.state < 3 OR p.state > 6)) AND NOT EXISTS (SELECT 1 FROM deps d JOIN releases r "
     "ON r.parent = d.parent WHERE d.child = c.id)",
     "waiting jobs whose parents have all ended (I47)", "run a node: once a minute it looks at all that wait"},
    {"letters", true,
     "SELECT count(*) FROM jobs j WHERE (j.state = 4 OR j.state = 5) AND NOT EXISTS (SELECT 1 FROM dead_letters d "
     "WHERE d.job_id = j.id AND d.death_no = j.deaths)",
     "dead jobs without a dead letter", "settled ones may have been pruned before their job; else report it with the file"},
    {"specs", true, "SELECT count(*) FROM job_specs p WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = p.id)",
     "payloads without a job", "report it with the file"},
    {"counts", true,
     "SELECT count(*) FROM (SELECT state, count(*) AS jobs FROM jobs GROUP BY state) j LEFT JOIN counts c ON c.state = j.state "
     "WHERE ifnull(c.jobs, 0) <> j.jobs AND j.state < 7",
     "states whose kept count is off", "report it with the file"},
    {"undelivered", false, "SELECT count(*) FROM alerts WHERE state = 2", "alerts that could not be delivered",
     "mend the sink; `holdfast alert list --state undelivered` shows them"},
    {"unsent", false, "SELECT count(*) FROM alerts WHERE state = 0 AND tries > 3", "alerts that keep failing",
     "mend the sink; `holdfast alert list --state unsent` shows them, `holdfast alert test NAME` tries it"},
    {"running", false, "SELECT count(*) FROM jobs WHERE state = 2 AND started_at_us IS NULL", "reserved jobs not yet started",
     "none needed while a node runs"},
};

struct visit {
    struct hfi_sqlite *store;
    hf_doctor_fn report;
    void *user;
    int errors;
};

static void tell(struct visit *visit, bool is_error, const char *check, const char *text, const char *fix) {
    visit->errors += is_error;
    if (visit->report)
        visit->report(is_error, check, text, fix, visit->user);
}

static int run_checks(struct visit *visit) {
    char text[256];
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        int64_t count = 0;
        int native = hfi_sqlite_number(visit->store->reader, checks[i].sql, &count);
        if (native != SQLITE_OK)
            return native;
        snprintf(text, sizeof text, "%lld %s", (long long)count, checks[i].text);
        if (count > 0)
            tell(visit, checks[i].is_error, checks[i].name, text, checks[i].fix);
    }
    return SQLITE_OK;
}

/* Nobody sends them: a sink that was renamed or removed has nobody, whatever else is well. By sink, the first ten. */
static int check_overdue(struct visit *visit) {
    sqlite3_stmt *statement;
    char text[256];
    int native = sqlite3_prepare_v2(visit->store->reader,
                                    "SELECT a.sink, count(*) FROM alerts a JOIN dead_letters d ON d.id = a.dead_id WHERE a.state = 0 "
                                    "AND max(a.next_at_us, d.dead_at_us) < (unixepoch() - 3600) * 1000000 GROUP BY a.sink LIMIT 10",
                                    -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        snprintf(text, sizeof text, "%lld alerts of sink %.64s are overdue for more than an hour: nobody sends them",
                 (long long)sqlite3_column_int64(statement, 1), hfi_column_text(statement, 0));
        tell(visit, false, "overdue", text,
             "run a node that has this sink; if it was renamed or removed, configure it again until they are sent: else they "
             "end as undelivered after seven days in which nodes ran without it");
    }
    sqlite3_finalize(statement);
    return native == SQLITE_DONE ? SQLITE_OK : native;
}

/* SQLite's own look at the file; the first few findings. */
static int check_integrity(struct visit *visit) {
    sqlite3_stmt *statement;
    int native = sqlite3_prepare_v2(visit->store->reader, "PRAGMA quick_check(5)", -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = hfi_column_text(statement, 0);
        if (strcmp(text, "ok") != 0)
            tell(visit, true, "integrity", text, "restore a backup, or dump what can be read with the sqlite3 shell");
    }
    sqlite3_finalize(statement);
    return native == SQLITE_DONE ? SQLITE_OK : native;
}

/* The race of a checkpoint with a commit that starts the log anew; mended in 3.51.3, 3.50.7 and 3.44.6. */
static bool has_wal_reset_fix(int version) {
    return version >= 3051003 || (version >= 3050007 && version < 3051000) || (version >= 3044006 && version < 3045000);
}

static void check_library(struct visit *visit) {
    char text[200];
    if (has_wal_reset_fix(sqlite3_libversion_number()))
        return;
    snprintf(text, sizeof text,
             "SQLite %s lacks the fix of the log-reset race; holdfast keeps its own processes apart with the lock file .ckpt",
             sqlite3_libversion());
    tell(visit, false, "sqlite", text, "let no other program write to or checkpoint the file");
}

/* SQLite reads from a full disk as if nothing were wrong. */
static void check_space(struct visit *visit) {
    char text[200];
    struct hfi_space space;
    hfi_sqlite_space_look(visit->store, &space);
    unsigned long long mib = (unsigned long long)(space.free_bytes >> 20);
    if (space.is_full) {
        snprintf(text, sizeof text, "the disk is full, %llu MiB are left: nothing new is taken in%s", mib,
                 space.ballast ? "" : ", and the ballast is spent");
        tell(visit, true, "space", text, "free space; it is taken up again by itself");
    } else if (space.is_short) {
        snprintf(text, sizeof text, "%llu MiB are left on the disk, too few for the ballast: what runs could not end on a full one",
                 mib);
        tell(visit, false, "space", text, "free space; a node lays the ballast by itself");
    }
}

int hfi_sqlite_doctor(struct hfi_store *self, hf_doctor_fn report, void *user, struct hf_error *error) {
    struct visit visit = {hfi_sqlite_of(self), report, user, 0};
    int code = hfi_sqlite_read_begin(visit.store, error);
    if (code != 0)
        return code;
    hfi_deadline_stop(&visit.store->read_deadline); /* it looks at everything: that may take its time */
    check_library(&visit);
    check_space(&visit);
    int native = check_integrity(&visit);
    if (native == SQLITE_OK)
        native = run_checks(&visit);
    if (native == SQLITE_OK)
        native = check_overdue(&visit);
    code = hfi_sqlite_read_end(visit.store, native, "doctor", error);
    return code != 0 ? code : visit.errors;
}
