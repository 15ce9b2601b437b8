/* SPDX-License-Identifier: MIT */
/* Reads of redrive tasks, newest first. As read.c does it. Any thread but loop and writer. */
#include "base/text.h"
#include "jobs/store/internal.h"

static const char one_sql[] = "SELECT " HFI_REDRIVE_COLUMNS "FROM redrives WHERE id = ?1";
static const char page_sql[] = "SELECT " HFI_REDRIVE_COLUMNS "FROM redrives WHERE id < ?1 ORDER BY id DESC LIMIT ?2";

static int gather(sqlite3_stmt *statement, uint32_t limit, struct hf_redrive_list *list) {
    struct hfi_redrive_task task;
    int64_t last = 0;
    int native;
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hf_redrive_view view;
        if (hf_redrive_list_count(list) == limit) {
            hfi_redrive_list_set_next(list, last);
            return SQLITE_OK;
        }
        hfi_sqlite_read_redrive(statement, &task);
        hfi_redrive_view_fill(&view, &task);
        last = task.id;
        if (hfi_redrive_list_add(list, &view) != 0)
            return SQLITE_NOMEM;
    }
    return native;
}

int hfi_sqlite_list_redrives(struct hfi_store *self, const struct hf_redrive_filter *filter, struct hf_redrive_list **list,
                             struct hf_error *error) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    sqlite3_stmt *statement = NULL;
    struct hf_redrive_list *made;
    uint32_t limit = hfi_page_limit(filter->limit);
    *list = NULL;
    if (hfi_redrive_list_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "redrive tasks", NULL, "out of memory");
    int code = hfi_sqlite_read_begin(store, error);
    if (code == 0) {
        int native = sqlite3_prepare_v2(store->reader, filter->id != 0 ? one_sql : page_sql, -1, &statement, NULL);
        if (native == SQLITE_OK) {
            sqlite3_bind_int64(statement, 1, filter->id != 0 ? filter->id : filter->after_id > 0 ? filter->after_id : INT64_MAX);
            if (filter->id == 0)
                sqlite3_bind_int64(statement, 2, (int64_t)limit + 1);
            native = gather(statement, limit, made);
        }
        sqlite3_finalize(statement);
        code = hfi_sqlite_read_end(store, native, "redrive tasks", error);
    }
    if (code == 0 && filter->id != 0 && hf_redrive_list_count(made) == 0)
        code = hfi_fail(error, HF_ENOENT, "redrive task", "`holdfast dead task list` shows what is there", "%lld does not exist",
                        (long long)filter->id);
    if (code == 0)
        *list = made;
    else
        hf_redrive_list_free(made);
    return code;
}
