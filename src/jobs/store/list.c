/* SPDX-License-Identifier: MIT */
/*
 * Pages of jobs, newest first, by any filter. The narrowest index there is leads; what it cannot say is asked of each
 * row. Must never look at more than a bounded number of rows for one page, whatever the filter and however many rows
 * there are: a page that comes to that bound ends there, with a cursor. Any thread but loop and writer.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

#define WALKED 100000 /* index entries or rows passed over in the database */
#define LOOKED_AT 20000 /* rows read whole */

/* The parameters of both statements. */
enum { BELOW = 1, FLOOR, LIMIT, KEY, TYPE, QUEUE, LIMIT_KEY, SINCE, NOW };

/* Where the ids come from, in descending order. */
struct source {
    const char *from, *id, *where;
    const char *key; /* bound to KEY; NULL none */
};

#define ODD(number) {"jobs j INDEXED BY jobs_odd", "j.id", "j.state = " #number " AND (j.state = 1 OR j.state > 3)", NULL}
static const struct source all = {"jobs j", "j.id", "1", NULL},
                           running = {"(SELECT id FROM jobs INDEXED BY jobs_running WHERE state = 2 ORDER BY id DESC) q "
                                      "CROSS JOIN jobs j ON j.id = q.id",
                                      "q.id", "1", NULL};
static const struct source odd[] = {
    [HF_JOB_WAITING] = ODD(1), [HF_JOB_DEAD] = ODD(4), [HF_JOB_QUARANTINED] = ODD(5), [HF_JOB_CANCELLED] = ODD(6)};
#undef ODD

static struct source choose(const struct hf_job_filter *filter) {
    if (filter->source_message_id)
        return (struct source){"job_specs q INDEXED BY specs_message CROSS JOIN jobs j ON j.id = q.id", "q.id",
                               "q.source_message_id = ?4", filter->source_message_id};
    if (filter->correlation_id)
        return (struct source){"job_specs q INDEXED BY specs_correlation CROSS JOIN jobs j ON j.id = q.id", "q.id",
                               "q.correlation_id = ?4", filter->correlation_id};
    if (filter->tag)
        return (struct source){"job_tags q CROSS JOIN jobs j ON j.id = q.job_id", "q.job_id", "q.tag = ?4", filter->tag};
    if (filter->state == HF_JOB_RUNNING)
        return running;
    if (filter->state >= 0 && (size_t)filter->state < sizeof odd / sizeof *odd && odd[filter->state].from)
        return odd[filter->state];
    return all;
}

/* What the row itself can tell cheaply; the plus keeps the planner from leading with another index. */
static void more_where(char *text, size_t room, const struct hf_job_filter *filter) {
    bool later = filter->shown == HF_JOB_SHOWN_SCHEDULED || filter->shown == HF_JOB_SHOWN_RETRYING;
    char state[48] = "";
    if (filter->state >= 0 || filter->shown >= 0)
        snprintf(state, sizeof state, " AND +j.state = %d", filter->shown >= 0 ? HF_JOB_PENDING : filter->state);
    snprintf(text, room, "%s%s%s%s%s%s", state,
             filter->type ? " AND +j.lane IN (SELECT id FROM lanes WHERE type = ?5)" : "",
             filter->queue ? " AND +j.lane IN (SELECT id FROM lanes WHERE queue = ?6)" : "",
             filter->limit_key ? " AND +j.lane IN (SELECT id FROM lanes WHERE limit_key = ?7)" : "",
             filter->created_since_us > 0 ? " AND j.created_at_us >= ?8" : "",
             later                                   ? " AND +j.run_at_us > ?9"
             : filter->shown == HF_JOB_SHOWN_READY ? " AND +j.run_at_us <= ?9"
                                                     : "");
}

void hfi_sqlite_list_sql(const struct hf_job_filter *filter, char *floor, char *page) {
    struct source source = choose(filter);
    char more[512];
    more_where(more, sizeof more, filter);
    snprintf(floor, HFI_LIST_SQL_MAX, "SELECT %s FROM %s WHERE %s AND %s < ?1 ORDER BY %s DESC LIMIT 1 OFFSET ?3", source.id,
             source.from, source.where, source.id, source.id);
    snprintf(page, HFI_LIST_SQL_MAX,
             "SELECT " HFI_JOB_COLUMNS HFI_VIEW_COLUMNS "FROM %s" HFI_VIEW_JOINS
             "WHERE %s AND %s < ?1 AND %s >= ?2%s ORDER BY %s DESC LIMIT ?3",
             source.from, source.where, source.id, source.id, more, source.id);
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text) {
    if (text)
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC); /* out of range where the statement has no use for it */
}

static void bind(sqlite3_stmt *statement, const struct hf_job_filter *filter, int64_t floor, int64_t limit) {
    sqlite3_bind_int64(statement, BELOW, filter->after_id > 0 ? filter->after_id : INT64_MAX);
    sqlite3_bind_int64(statement, FLOOR, floor);
    sqlite3_bind_int64(statement, LIMIT, limit);
    bind_text(statement, KEY, choose(filter).key);
    bind_text(statement, TYPE, filter->type);
    bind_text(statement, QUEUE, filter->queue);
    bind_text(statement, LIMIT_KEY, filter->limit_key);
    if (filter->created_since_us > 0)
        sqlite3_bind_int64(statement, SINCE, filter->created_since_us);
    if (filter->shown >= 0)
        sqlite3_bind_int64(statement, NOW, hfi_sqlite_read_now().us);
}

/* How far down this page may go: 0 to the end. SQLite's code. */
static int find_floor(struct hfi_sqlite *store, const char *sql, const struct hf_job_filter *filter, int64_t *floor) {
    sqlite3_stmt *statement;
    *floor = 0;
    int native = sqlite3_prepare_v2(store->reader, sql, -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    bind(statement, filter, 0, WALKED - 1);
    native = sqlite3_step(statement);
    if (native == SQLITE_ROW)
        *floor = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return native;
}

/* Steps through a page. SQLite's code. */
static int gather(struct hfi_sqlite *store, sqlite3_stmt *statement, const struct hf_job_filter *filter, int64_t floor,
                  struct hf_job_list *list) {
    struct hfi_view_room room;
    struct hf_job_view view;
    uint32_t limit = hfi_page_limit(filter->limit), looked = 0;
    int64_t last = 0; /* the last one that is on the page */
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        if (looked++ == LOOKED_AT) {
            hfi_job_list_set_next(list, sqlite3_column_int64(statement, 0) + 1);
            return SQLITE_OK;
        }
        if (!hfi_sqlite_read_view(store, statement, filter, &view, &room))
            continue;
        if (hf_job_list_count(list) == limit) {
            hfi_job_list_set_next(list, last);
            return SQLITE_OK;
        }
        last = view.id;
        if (hfi_job_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    if (native == SQLITE_DONE && floor > 0)
        hfi_job_list_set_next(list, floor);
    return native;
}

static int read_page(struct hfi_sqlite *store, const struct hf_job_filter *filter, struct hf_job_list *list) {
    char floor_sql[HFI_LIST_SQL_MAX], page_sql[HFI_LIST_SQL_MAX];
    sqlite3_stmt *statement = NULL;
    int64_t floor;
    hfi_sqlite_list_sql(filter, floor_sql, page_sql);
    int native = find_floor(store, floor_sql, filter, &floor);
    if (native != SQLITE_ROW && native != SQLITE_DONE)
        return native;
    native = sqlite3_prepare_v2(store->reader, page_sql, -1, &statement, NULL);
    if (native == SQLITE_OK) {
        bind(statement, filter, floor, -1); /* gather stops it */
        native = gather(store, statement, filter, floor, list);
    }
    sqlite3_finalize(statement);
    return native;
}

int hfi_sqlite_list_jobs(struct hfi_store *self, const struct hf_job_filter *filter, struct hf_job_list **list,
                         struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    struct hf_job_list *made;
    *list = NULL;
    if (hfi_job_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "jobs", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0)
        code = hfi_sqlite_read_end(store, read_page(store, filter, made), "jobs", error);
    if (code == 0)
        *list = made;
    else
        hf_job_list_free(made);
    return code;
}
