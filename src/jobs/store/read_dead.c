/* SPDX-License-Identifier: MIT */
/*
 * Reads of dead letters: pages, newest first, groups, and one with payload and detail. As read.c does it. Any thread but loop
 * and writer.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/letter.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

/* Lists carry no payload and no detail: only the lengths are read. */
#define COLUMNS                                                                                                        \
    "d.id, job_id, status, death_class, death_no, executions, failures, executions_allowed, quarantined, source, "       \
    "source_message_id, type, queue, downstream, content_type, error_type, error_message, rule, correlation_id, node, " \
    "fingerprint, cause, job_created_at_us, dead_at_us, settled_at_us, settled_by, settled_reason, new_job_id, "       \
    "new_job_outcome, ifnull(length(payload), 0), payload_cut, task_id"
#define FIRST_WHOLE 32
#define WHOLE_COLUMNS                                                                                                  \
    ", detail, payload, origin, breaker_key, limit_key, unique_key, trace_context, tags, error_class, "                \
    "idempotency_key, p.waits_ms, p.max_executions, p.jitter_permille, d.max_executions, priority, "                   \
    "execution_timeout_ms, root_id"

static void fill(sqlite3_stmt *statement, struct hf_dead_view *view) {
    *view = (struct hf_dead_view){
        .id = sqlite3_column_int64(statement, 0),
        .job_id = sqlite3_column_int64(statement, 1),
        .status = sqlite3_column_int(statement, 2),
        .death_class = sqlite3_column_int(statement, 3),
        .death_no = (uint32_t)sqlite3_column_int64(statement, 4),
        .executions = (uint32_t)sqlite3_column_int64(statement, 5),
        .failures = (uint32_t)sqlite3_column_int64(statement, 6),
        .max_executions = (uint32_t)sqlite3_column_int64(statement, 7),
        .quarantined = sqlite3_column_int(statement, 8) != 0,
        .source = hfi_column_text(statement, 9),
        .source_message_id = hfi_column_text(statement, 10),
        .type = hfi_column_text(statement, 11),
        .queue = hfi_column_text(statement, 12),
        .downstream = hfi_column_text(statement, 13),
        .content_type = hfi_column_text(statement, 14),
        .error_type = hfi_column_text(statement, 15),
        .error_message = hfi_column_text(statement, 16),
        .rule = hfi_column_text(statement, 17),
        .correlation_id = hfi_column_text(statement, 18),
        .node = hfi_column_text(statement, 19),
        .fingerprint = hfi_column_text(statement, 20),
        .cause = hfi_column_text(statement, 21),
        .job_created_at_us = sqlite3_column_int64(statement, 22),
        .dead_at_us = sqlite3_column_int64(statement, 23),
        .settled_at_us = sqlite3_column_int64(statement, 24),
        .settled_by = hfi_column_text(statement, 25),
        .settled_reason = hfi_column_text(statement, 26),
        .new_job_id = sqlite3_column_int64(statement, 27),
        .new_job_outcome = hfi_column_text(statement, 28),
        .payload_length = (size_t)sqlite3_column_int64(statement, 29),
        .payload_cut = sqlite3_column_int(statement, 30) != 0,
        .task_id = sqlite3_column_int64(statement, 31),
    };
}

struct whole_room {
    char key[HFI_IDEMPOTENCY_ROOM], origin[HFI_ORIGIN_ROOM];
};

/* What lists leave out; texts are the statement's and the room's. */
static void fill_whole(const char *uuid, sqlite3_stmt *statement, struct hf_dead_view *view, struct whole_room *room) {
    struct hfi_job job = {.idempotency_key = hfi_column_text(statement, FIRST_WHOLE + 9),
                          .root_id = sqlite3_column_int64(statement, FIRST_WHOLE + 16)};
    view->detail = hfi_column_text(statement, FIRST_WHOLE);
    view->payload = sqlite3_column_blob(statement, FIRST_WHOLE + 1);
    view->origin = hfi_column_text(statement, FIRST_WHOLE + 2);
    view->breaker_key = hfi_column_text(statement, FIRST_WHOLE + 3);
    view->limit_key = hfi_column_text(statement, FIRST_WHOLE + 4);
    view->unique_key = hfi_column_text(statement, FIRST_WHOLE + 5);
    view->trace_context = hfi_column_text(statement, FIRST_WHOLE + 6);
    view->tags = hfi_column_text(statement, FIRST_WHOLE + 7);
    view->error_class = hfi_column_text(statement, FIRST_WHOLE + 8);
    view->curve_ms = hfi_column_text(statement, FIRST_WHOLE + 10);
    view->curve_executions = (uint32_t)sqlite3_column_int64(statement, FIRST_WHOLE + 11);
    view->curve_jitter_permille = (uint32_t)sqlite3_column_int64(statement, FIRST_WHOLE + 12);
    view->max_executions_given = (uint32_t)sqlite3_column_int64(statement, FIRST_WHOLE + 13);
    view->priority = sqlite3_column_int(statement, FIRST_WHOLE + 14);
    view->execution_timeout_ms =
        sqlite3_column_type(statement, FIRST_WHOLE + 15) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, FIRST_WHOLE + 15);
    view->root_id = job.root_id;
    view->idempotency_key = job.root_id != 0 ? hfi_idempotency_key(&job, uuid, room->key) : job.idempotency_key;
    if (!*view->origin)
        view->origin = hfi_letter_origin(uuid, view->id, room->origin);
}

/* The conditions of a filter, each with a " AND " before it, into FILTER_MAX bytes; bind_filter gives ?3 to ?10. */
#define FILTER_MAX 600
static const char *filter_sql(char *sql, const struct hf_dead_filter *filter) {
    snprintf(sql, FILTER_MAX, "%s%s%s%s%s%s%s%s",
             filter->status == HF_DEAD_DEAD ? " AND status = 0" : filter->status >= 0 ? " AND status = ?3" : "",
             filter->death_class >= 0 ? " AND death_class = ?4" : "", filter->type ? " AND type = ?5" : "",
             filter->queue ? " AND queue = ?6" : "",
             filter->error_type ? " AND (error_type = ?7 OR substr(error_type, 1, length(?7) + 1) = ?7 || '.')" : "",
             filter->fingerprint ? " AND fingerprint = ?8" : "", filter->since_us > 0 ? " AND dead_at_us >= ?9" : "",
             filter->task_id != 0 ? " AND task_id = ?10" : "");
    return sql;
}

static void bind_given(sqlite3_stmt *statement, int at, const char *text) {
    if (text)
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

static void bind_filter(sqlite3_stmt *statement, const struct hf_dead_filter *filter) {
    if (filter->status > 0)
        sqlite3_bind_int(statement, 3, filter->status);
    if (filter->death_class >= 0)
        sqlite3_bind_int(statement, 4, filter->death_class);
    bind_given(statement, 5, filter->type);
    bind_given(statement, 6, filter->queue);
    bind_given(statement, 7, filter->error_type);
    bind_given(statement, 8, filter->fingerprint);
    if (filter->since_us > 0)
        sqlite3_bind_int64(statement, 9, filter->since_us);
    if (filter->task_id != 0)
        sqlite3_bind_int64(statement, 10, filter->task_id);
}

static int gather(sqlite3_stmt *statement, uint32_t limit, struct hf_dead_list *list) {
    struct hf_dead_view view;
    uint32_t count = 0;
    int64_t last = 0;
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        if (count++ == limit) {
            hfi_dead_list_set_next(list, last);
            return SQLITE_OK;
        }
        fill(statement, &view);
        last = view.id;
        if (hfi_dead_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_list_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_list **list,
                         struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    char sql[1400], where[FILTER_MAX];
    sqlite3_stmt *statement = NULL;
    uint32_t limit = hfi_page_limit(filter->limit);
    struct hf_dead_list *made;
    *list = NULL;
    if (hfi_dead_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "dead letters", NULL, "out of memory");
    snprintf(sql, sizeof sql, "SELECT " COLUMNS " FROM dead_letters d WHERE d.id %s ?1%s ORDER BY d.id%s LIMIT ?2",
             filter->oldest_first ? ">" : "<", filter_sql(where, filter), filter->oldest_first ? "" : " DESC");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, sql, -1, &statement, NULL);
        if (native == SQLITE_OK) {
            sqlite3_bind_int64(statement, 1, filter->after_id > 0 || filter->oldest_first ? filter->after_id : INT64_MAX);
            sqlite3_bind_int64(statement, 2, (int64_t)limit + 1);
            bind_filter(statement, filter);
            native = gather(statement, limit, made);
        }
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "dead letters", error);
    }
    if (code == 0)
        *list = made;
    else
        hf_dead_list_free(made);
    return code;
}

/*
 * The newest of each fingerprint, beside the counts. Open ones without other filters come from dead_fingerprint alone.
 * All groups come, so that the total is known; only the first ones are kept.
 */
static const char groups_sql[] =
    "WITH g AS MATERIALIZED (SELECT fingerprint, count(*) AS letters, min(dead_at_us) AS first, max(dead_at_us) AS last, "
    "max(id) AS newest FROM dead_letters WHERE 1%s GROUP BY fingerprint) "
    "SELECT g.fingerprint, letters, first, last, newest, d.type, d.downstream, d.error_type, d.rule, d.error_message, "
    "d.death_class FROM g JOIN dead_letters d ON d.id = newest ORDER BY letters DESC, newest DESC";

static int gather_groups(sqlite3_stmt *statement, struct hf_dead_group_list *list) {
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hf_dead_group_view view = {
            .fingerprint = hfi_column_text(statement, 0),
            .count = (uint64_t)sqlite3_column_int64(statement, 1),
            .first_dead_at_us = sqlite3_column_int64(statement, 2),
            .last_dead_at_us = sqlite3_column_int64(statement, 3),
            .example_id = sqlite3_column_int64(statement, 4),
            .type = hfi_column_text(statement, 5),
            .downstream = hfi_column_text(statement, 6),
            .error_type = hfi_column_text(statement, 7),
            .rule = hfi_column_text(statement, 8),
            .error_message = hfi_column_text(statement, 9),
            .death_class = sqlite3_column_int(statement, 10),
        };
        if (hfi_dead_group_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_group_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_group_list **list,
                          struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    char sql[1400], where[FILTER_MAX];
    sqlite3_stmt *statement = NULL;
    struct hf_dead_group_list *made;
    *list = NULL;
    if (hfi_dead_group_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "dead letters", NULL, "out of memory");
    snprintf(sql, sizeof sql, groups_sql, filter_sql(where, filter));
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, sql, -1, &statement, NULL);
        if (native == SQLITE_OK) {
            bind_filter(statement, filter);
            native = gather_groups(statement, made);
        }
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "dead letters", error);
    }
    if (code == 0)
        *list = made;
    else
        hf_dead_group_list_free(made);
    return code;
}

/* `*dead` NULL: no such id. SQLite's code. */
static int get(sqlite3 *db, const char *uuid, int64_t id, struct hf_dead **dead) {
    sqlite3_stmt *statement;
    struct hf_dead_view view;
    struct whole_room room;
    int native = sqlite3_prepare_v2(db, "SELECT " COLUMNS WHOLE_COLUMNS " FROM dead_letters d LEFT JOIN policies p "
                                    "ON p.id = d.policy_id WHERE d.id = ?1", -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_int64(statement, 1, id);
    native = sqlite3_step(statement);
    if (native == SQLITE_ROW) {
        fill(statement, &view);
        fill_whole(uuid, statement, &view, &room);
        if (hfi_dead_new(&view, dead) != 0)
            native = SQLITE_NOMEM;
    }
    sqlite3_finalize(statement);
    return native == SQLITE_ROW ? hfi_sqlite_dead_forwards(db, id, *dead) : native;
}

int hfi_sqlite_get_dead(struct hfi_store *self, int64_t id, struct hf_dead **dead, struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    struct hf_dead *made = NULL;
    *dead = NULL;
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0)
        code = hfi_sqlite_read_end(store, get(store->reader, self->uuid, id, &made), "dead letter", error);
    if (code == 0 && !made)
        return hfi_fail(error, HF_ENOENT, "dead letter", NULL, "%lld does not exist", (long long)id);
    if (code == 0)
        *dead = made;
    else
        hf_dead_free(made);
    return code;
}
