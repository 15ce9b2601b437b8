/* SPDX-License-Identifier: MIT */
/*
 * What people and nodes share as control: paused queues, and control and phase of downstreams with compare-and-set on
 * their version. Each change bumps the number that nodes watch. Writer thread.
 */
#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"

int hfi_sqlite_op_pause(struct hfi_sqlite *store, struct hfi_op_pause *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_QUEUE_GET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, op->queue, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, op->now.us);
    bool paused = hfi_sql_row(store, statement) && sqlite3_column_int(statement, 0) != 0;
    hfi_sql_done(statement);
    if (store->fault == 0 && !op->pause && !paused)
        return hfi_fail(op->op.error, HF_ENOENT, "queue", NULL, "%s is not paused", op->queue);
    statement = hfi_sql(store, HFI_SQL_QUEUE_SET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, op->queue, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, op->pause);
    sqlite3_bind_int64(statement, 3, op->pause ? op->until_us : 0);
    hfi_bind_text(statement, 4, op->actor);
    sqlite3_bind_int64(statement, 5, op->now.us);
    store->control_changed = true;
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    return hfi_sqlite_audit(store, op->now, op->actor, op->pause ? "queue.pause" : "queue.resume", "queue", 0, NULL,
                            op->queue);
}

/* As stored; all 0 without a row. */
static int read_state(struct hfi_sqlite *store, const char *key, struct hfi_downstream_state *state) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DOWNSTREAM_GET);
    *state = (struct hfi_downstream_state){0};
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement)) {
        state->forced = sqlite3_column_int(statement, 0);
        state->forced_until_us = sqlite3_column_int64(statement, 1);
        state->phase = sqlite3_column_int(statement, 2);
        state->open_until_us = sqlite3_column_int64(statement, 3);
        state->gate_until_us = sqlite3_column_int64(statement, 4);
        state->unhealthy_since_us = sqlite3_column_int64(statement, 5);
        state->trips = (uint32_t)sqlite3_column_int64(statement, 6);
        state->version = sqlite3_column_int64(statement, 7);
        hfi_text_copy(state->reason, sizeof state->reason, hfi_column_text(statement, 8));
        state->ramp_from_us = sqlite3_column_int64(statement, 9);
    }
    hfi_sql_done(statement);
    return store->fault;
}

static int write_state(struct hfi_sqlite *store, const char *key, const struct hfi_downstream_state *state, struct hf_wall now) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DOWNSTREAM_SET);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, state->forced);
    sqlite3_bind_int64(statement, 3, state->forced_until_us);
    sqlite3_bind_int(statement, 4, state->phase);
    sqlite3_bind_int64(statement, 5, state->open_until_us);
    sqlite3_bind_int64(statement, 6, state->gate_until_us);
    sqlite3_bind_int64(statement, 7, state->unhealthy_since_us);
    sqlite3_bind_int64(statement, 8, state->trips);
    sqlite3_bind_int64(statement, 9, state->version);
    hfi_bind_text(statement, 10, state->reason);
    sqlite3_bind_int64(statement, 11, state->ramp_from_us);
    sqlite3_bind_int64(statement, 12, now.us);
    store->control_changed = true;
    return hfi_sql_run(store, statement);
}

int hfi_sqlite_op_downstream(struct hfi_sqlite *store, struct hfi_op_downstream *op) {
    const struct hfi_downstream_state *wish = &op->state;
    struct hfi_downstream_state state;
    bool writes = (op->set & (HFI_DOWNSTREAM_FORCED | HFI_DOWNSTREAM_PHASE)) != 0;
    if (read_state(store, op->key, &state) != 0)
        return store->fault;
    bool current = hfi_downstream_is_current(&state, wish);
    if (writes && current) {
        hfi_downstream_merge(&state, wish, op->set);
        if (write_state(store, op->key, &state, op->now) != 0)
            return store->fault;
    }
    op->state = state;
    if (writes && !current)
        return hfi_fail(op->op.error, HF_ESTATE, op->key, NULL, "somebody else changed it meanwhile");
    return 0;
}

/* What the live others have of it, and how many they are. */
static int others_share(struct hfi_sqlite *store, const struct hfi_op_share *op, uint64_t *held, uint32_t *nodes) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_SHARES_OF_OTHERS);
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, op->key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, op->node);
    if (hfi_sql_row(store, statement)) {
        *held = (uint64_t)sqlite3_column_int64(statement, 0);
        *nodes = (uint32_t)sqlite3_column_int(statement, 1);
    }
    hfi_sql_done(statement);
    return store->fault;
}

static int read_version(struct hfi_sqlite *store, struct hfi_op_share *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DOWNSTREAM_VERSION);
    op->version = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, op->key, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        op->version = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

int hfi_sqlite_op_share(struct hfi_sqlite *store, struct hfi_op_share *op) {
    uint64_t others = 0;
    uint32_t nodes = 0;
    bool wants = op->want > 0 || op->keep > 0;
    op->held = 0;
    if (read_version(store, op) != 0 || (wants && others_share(store, op, &others, &nodes) != 0))
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, wants ? HFI_SQL_SHARE_SET : HFI_SQL_SHARE_GONE);
    if (!statement)
        return store->fault;
    uint32_t held = wants ? hfi_share_of(op, others, nodes + 1) : 0;
    sqlite3_bind_text(statement, 1, op->key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, op->node);
    if (wants)
        sqlite3_bind_int64(statement, 3, held);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    if (wants && sqlite3_changes(store->db) > 0)
        op->held = held;
    return 0;
}
