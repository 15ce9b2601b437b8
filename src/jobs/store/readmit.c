/* SPDX-License-Identifier: MIT */
/*
 * A page of quarantined jobs, by id: those that can be run now are requeued, their dead letters settled, on the record.
 * Must never look at more than its limit in one transaction. Writer thread.
 */
#include "jobs/readmit.h"

#include "base/text.h"
#include "jobs/store/internal.h"

#define READMIT_MAX 256

/* 0, or a fault: one that cannot be requeued stays where it is. */
static int requeue(struct hfi_sqlite *store, struct hfi_op_readmit *op, int64_t id, const char *type, const char *cause) {
    struct hfi_readmit_room room;
    struct hfi_op_requeue one;
    hfi_readmit_requeue(op, id, type, cause, &room, &one);
    op->readmitted += hfi_sqlite_op_requeue(store, &one) == 0;
    return store->fault;
}

static int look(struct hfi_sqlite *store, struct hfi_op_readmit *op, int64_t id) {
    char type[HFI_TYPE_MAX + 1] = "", cause[64] = "", schema[64] = "";
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_QUARANTINED_WHY);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    bool open = hfi_sql_row(store, statement);
    if (open) {
        hfi_text_copy(type, sizeof type, hfi_column_text(statement, 0));
        hfi_text_copy(cause, sizeof cause, hfi_column_text(statement, 1));
        hfi_text_copy(schema, sizeof schema, hfi_column_text(statement, 2));
    }
    hfi_sql_done(statement);
    if (!open || store->fault != 0 || !hfi_readmits(op->book, type, cause, schema))
        return store->fault;
    return requeue(store, op, id, type, cause);
}

int hfi_sqlite_op_readmit(struct hfi_sqlite *store, struct hfi_op_readmit *op) {
    int64_t ids[READMIT_MAX];
    uint32_t count = 0, limit = op->limit < READMIT_MAX ? op->limit : READMIT_MAX;
    op->readmitted = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_QUARANTINED_AFTER);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->after_id);
    sqlite3_bind_int64(statement, 2, limit);
    while (count < limit && hfi_sql_row(store, statement))
        ids[count++] = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    for (uint32_t i = 0; i < count && store->fault == 0; i++)
        look(store, op, ids[i]);
    if (store->fault != 0)
        return store->fault;
    op->more = count == limit;
    op->after_id = op->more ? ids[count - 1] : 0;
    return 0;
}
