/* SPDX-License-Identifier: MIT */
/*
 * Pages of alert rows, newest first, each with the message that it goes out with. Any thread but loop and writer.
 */
#include <stdio.h>

#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"
#include "jobs/views.h"

#define COLUMNS                                                                                                        \
    "a.id, a.dead_id, d.job_id, a.state, " HFI_ALERT_STATE ", a.lead, a.digest, a.others, a.tries, a.next_at_us, "     \
    "a.ended_at_us, a.error_type, a.sink, d.type, d.error_type, d.dead_at_us, l.digest"

static void fill(sqlite3_stmt *statement, struct hf_alert_view *view) {
    int64_t lead = sqlite3_column_int64(statement, 5), digest = sqlite3_column_int64(statement, 6);
    int64_t of_lead = sqlite3_column_int64(statement, 16);
    *view = (struct hf_alert_view){
        .id = sqlite3_column_int64(statement, 0),
        .dead_id = sqlite3_column_int64(statement, 1),
        .job_id = sqlite3_column_int64(statement, 2),
        .state = sqlite3_column_int(statement, 3),
        .message_state = sqlite3_column_int(statement, 4),
        .deaths = (uint64_t)sqlite3_column_int64(statement, 7) + 1,
        .tries = (uint32_t)sqlite3_column_int64(statement, 8),
        .next_at_us = sqlite3_column_int(statement, 3) == HF_ALERT_UNSENT ? sqlite3_column_int64(statement, 9) : 0,
        .ended_at_us = sqlite3_column_int64(statement, 10),
        .last_error = hfi_column_text(statement, 11),
        .sink = hfi_column_text(statement, 12),
        .type = hfi_column_text(statement, 13),
        .error_type = hfi_column_text(statement, 14),
        .dead_at_us = sqlite3_column_int64(statement, 15),
    };
    view->kind = (int32_t)hfi_alert_kind_of(view->id, lead, digest);
    view->message_id = view->id;
    if (view->state == HF_ALERT_ATTACHED)
        view->message_id = digest != 0 ? digest : of_lead != 0 ? of_lead : lead;
}

static int gather(sqlite3_stmt *statement, uint32_t limit, struct hf_alert_list *list) {
    struct hf_alert_view view;
    uint32_t count = 0;
    int64_t last = 0;
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        if (count++ == limit) {
            hfi_alert_list_set_next(list, last);
            return SQLITE_OK;
        }
        fill(statement, &view);
        last = view.id;
        if (hfi_alert_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

/* By id, so that no filter needs a sort; a rare state is found by walking down from the newest. */
static int page(sqlite3 *db, const struct hf_alert_filter *filter, struct hf_alert_list *list) {
    char sql[1400];
    sqlite3_stmt *statement;
    uint32_t limit = hfi_page_limit(filter->limit);
    snprintf(sql, sizeof sql,
             "SELECT " COLUMNS " FROM alerts a JOIN dead_letters d ON d.id = a.dead_id " HFI_ALERT_WITH
             "WHERE a.id < ?1%s%s%s ORDER BY a.id DESC LIMIT ?2",
             filter->state >= 0 ? " AND a.state = ?3" : "", filter->sink ? " AND a.sink = ?4" : "",
             filter->dead_id != 0 ? " AND a.dead_id = ?5" : "");
    int native = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (native != SQLITE_OK)
        return native;
    sqlite3_bind_int64(statement, 1, filter->after_id > 0 ? filter->after_id : INT64_MAX);
    sqlite3_bind_int64(statement, 2, (int64_t)limit + 1);
    if (filter->state >= 0)
        sqlite3_bind_int(statement, 3, filter->state);
    if (filter->sink)
        sqlite3_bind_text(statement, 4, filter->sink, -1, SQLITE_STATIC);
    if (filter->dead_id != 0)
        sqlite3_bind_int64(statement, 5, filter->dead_id);
    native = gather(statement, limit, list);
    sqlite3_finalize(statement);
    return native;
}

int hfi_sqlite_list_alerts(struct hfi_store *self, const struct hf_alert_filter *filter, struct hf_alert_list **list,
                           struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    struct hf_alert_list *made;
    *list = NULL;
    if (hfi_alert_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "alerts", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0)
        code = hfi_sqlite_read_end(store, page(store->reader, filter, made), "alerts", error);
    if (code == 0)
        *list = made;
    else
        hf_alert_list_free(made);
    return code;
}
