/* SPDX-License-Identifier: MIT */
/*
 * What a death leaves for its sinks: one alert row each, which goes out by itself or with another one of its storm; and
 * the pace of a sink, by which many messages become one digest. The rules are deaths/storm.h's. Must never write a row
 * that no message will tell of. Writer thread.
 */
#include <string.h>

#include "base/text.h"
#include "jobs/deaths/storm.h"
#include "jobs/store/internal.h"

#define ATTACHED 3

struct arrival {
    const char *sink, *fingerprint;
    int64_t dead_id, collapse_us;
    struct hf_wall now;
    struct hfi_storm storm;
};

static int read_storm(struct hfi_sqlite *store, struct arrival *arrival) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_STORM_GET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, arrival->sink, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, arrival->fingerprint, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement)) {
        arrival->collapse_us = sqlite3_column_int64(statement, 0);
        arrival->storm.until_us = sqlite3_column_int64(statement, 1);
        arrival->storm.lead = sqlite3_column_int64(statement, 2);
    }
    hfi_sql_done(statement);
    return store->fault;
}

static int write_storm(struct hfi_sqlite *store, const struct arrival *arrival) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_STORM_SET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, arrival->sink, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, arrival->fingerprint, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, arrival->storm.until_us);
    hfi_bind_number(statement, 4, arrival->storm.lead);
    return hfi_sql_run(store, statement);
}

static int write_row(struct hfi_sqlite *store, const struct arrival *arrival, int state, int64_t due_us, int64_t lead) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ALERT_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, arrival->dead_id);
    sqlite3_bind_text(statement, 2, arrival->sink, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 3, state);
    sqlite3_bind_int64(statement, 4, due_us);
    hfi_bind_number(statement, 5, lead);
    return hfi_sql_run(store, statement);
}

static int run_on(struct hfi_sqlite *store, enum hfi_sql which, int64_t id) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    return hfi_sql_run(store, statement);
}

/* False: that summary is on its way, or gone. */
static bool join(struct hfi_sqlite *store, const struct arrival *arrival) {
    if (run_on(store, HFI_SQL_ALERT_JOINED, arrival->storm.lead) != 0 || sqlite3_changes(store->db) == 0)
        return false;
    write_row(store, arrival, ATTACHED, arrival->now.us, arrival->storm.lead);
    return true;
}

static int arrive(struct hfi_sqlite *store, struct arrival *arrival) {
    struct hfi_storm *storm = &arrival->storm;
    enum hfi_storm_place place = hfi_storm_arrives(storm, arrival->now.us, arrival->collapse_us);
    if (place == HFI_STORM_JOINS) {
        if (join(store, arrival) || store->fault != 0)
            return store->fault;
        storm->lead = 0;
        place = hfi_storm_arrives(storm, arrival->now.us, arrival->collapse_us);
    }
    if (write_row(store, arrival, 0, place == HFI_STORM_LEADS ? storm->until_us : arrival->now.us, 0) != 0)
        return store->fault;
    if (place == HFI_STORM_LEADS) {
        storm->lead = sqlite3_last_insert_rowid(store->db);
        run_on(store, HFI_SQL_ALERT_LEADS, storm->lead);
    }
    return store->fault != 0 ? store->fault : write_storm(store, arrival);
}

int hfi_sqlite_write_alerts(struct hfi_sqlite *store, int64_t dead_id, const char *fingerprint, struct hf_wall now,
                            const char *const *sinks, size_t count) {
    for (size_t i = 0; i < count && store->fault == 0; i++) {
        struct arrival arrival = {.sink = sinks[i], .fingerprint = fingerprint, .dead_id = dead_id, .now = now};
        if (read_storm(store, &arrival) != 0)
            break;
        if (arrival.collapse_us > 0)
            arrive(store, &arrival);
        else
            write_row(store, &arrival, 0, now.us, 0);
    }
    return store->fault;
}

int hfi_sqlite_sink_rules(struct hfi_sqlite *store, const struct hfi_sink_rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_SINK_RULE);
        if (!statement)
            return store->fault;
        sqlite3_bind_text(statement, 1, rules[i].name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, rules[i].collapse_us);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    return 0;
}

/* ------------------------------------------------------------------ the pace of a sink */

int hfi_sqlite_pace_read(struct hfi_sqlite *store, struct hfi_sqlite_pace *pace) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_SINK_GET);
    pace->collapse_us = 0;
    memset(&pace->pace, 0, sizeof pace->pace);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, pace->sink, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement)) {
        pace->collapse_us = sqlite3_column_int64(statement, 0);
        if (sqlite3_column_bytes(statement, 1) == (int)sizeof pace->pace.at_us)
            memcpy(pace->pace.at_us, sqlite3_column_blob(statement, 1), sizeof pace->pace.at_us);
        pace->pace.held = sqlite3_column_int(statement, 2) != 0;
    }
    hfi_sql_done(statement);
    return store->fault;
}

int hfi_sqlite_pace_write(struct hfi_sqlite *store, const struct hfi_sqlite_pace *pace) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_SINK_PACE);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, pace->sink, -1, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, pace->pace.at_us, (int)sizeof pace->pace.at_us, SQLITE_STATIC);
    sqlite3_bind_int(statement, 3, pace->pace.held);
    return hfi_sql_run(store, statement);
}

int hfi_sqlite_storm_seal(struct hfi_sqlite *store, int64_t lead, struct hf_wall now, int64_t collapse_us) {
    struct hfi_storm storm = {.lead = lead};
    hfi_storm_seal(&storm, now.us, collapse_us);
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_STORM_SEAL);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, lead);
    sqlite3_bind_int64(statement, 2, storm.until_us);
    return hfi_sql_run(store, statement);
}

/* Due messages that were never tried, the oldest first: at most `room`. */
static size_t fresh(struct hfi_sqlite *store, const struct hfi_sqlite_pace *pace, struct hf_wall now, int64_t *ids,
                    size_t room) {
    size_t found = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_ALERTS_FRESH);
    if (!statement)
        return 0;
    sqlite3_bind_text(statement, 1, pace->sink, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, now.us);
    sqlite3_bind_int64(statement, 3, (int64_t)room);
    while (found < room && hfi_sql_row(store, statement))
        ids[found++] = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return found;
}

static int digest(struct hfi_sqlite *store, const struct hfi_sqlite_pace *pace, struct hf_wall now) {
    int64_t ids[HFI_STORM_DIGEST_MAX];
    size_t count = fresh(store, pace, now, ids, HFI_STORM_DIGEST_MAX);
    if (count < 2) /* one that waited alone goes out as it is */
        return store->fault;
    run_on(store, HFI_SQL_DIGEST_MAKE, ids[0]);
    for (size_t i = 0; i < count && store->fault == 0; i++) {
        hfi_sqlite_storm_seal(store, ids[i], now, pace->collapse_us);
        sqlite3_stmt *statement = i == 0 ? NULL : hfi_sql(store, HFI_SQL_DIGEST_ADD);
        if (!statement)
            continue;
        sqlite3_bind_int64(statement, 1, ids[i]);
        sqlite3_bind_int64(statement, 2, ids[0]);
        hfi_sql_run(store, statement);
    }
    return store->fault;
}

int hfi_sqlite_pace_look(struct hfi_sqlite *store, struct hfi_sqlite_pace *pace, struct hf_wall now) {
    int64_t one;
    bool some = fresh(store, pace, now, &one, 1) > 0;
    bool held = pace->pace.held;
    if (hfi_storm_digests(&pace->pace, now.us, some))
        digest(store, pace, now);
    if (store->fault == 0 && held != pace->pace.held)
        hfi_sqlite_pace_write(store, pace);
    return store->fault;
}
