/* SPDX-License-Identifier: MIT */
/*
 * Retention: rows whose time is over, in small chunks. Jobs are found by walking the table by id, a bounded stretch per
 * call, so that no index has to be kept for it; settled letters by their own index, and their alerts go with them. Must
 * never remove an open dead letter or an alert that nobody got, nor look at more rows in a call than is said here, nor
 * change more of them than HFI_PRUNE_ROWS. Writer thread.
 */
#include "base/alloc.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"

#define LOOKED_AT 20000    /* jobs of one call */
#define LETTERS_LOOKED_AT 1000
#define NODES_AT_ONCE 100  /* each may have a file */
#define ROWS_OF_ONE 800    /* with a job or letter, at most: below a bound it is taken whole */
#define EPOCHS_OF_ONE 50   /* a job of more has its history taken in pieces */
#define ROWS_OF_TURN 2     /* that say whose turn it is */

struct doomed {
    int64_t id, epoch;
    int state;
    bool has_spec;
};

/* Rows that this call has changed since `op->rows` was set to where it began. */
static uint32_t rows_of(const struct hfi_sqlite *store, const struct hfi_op_prune *op) {
    return (uint32_t)sqlite3_total_changes(store->db) - op->rows;
}

static uint32_t rows_left(const struct hfi_sqlite *store, const struct hfi_op_prune *op) {
    uint32_t rows = rows_of(store, op) + ROWS_OF_TURN;
    return rows < HFI_PRUNE_ROWS ? HFI_PRUNE_ROWS - rows : 0;
}

static bool has_room(const struct hfi_sqlite *store, const struct hfi_op_prune *op) {
    return rows_left(store, op) >= ROWS_OF_ONE;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Walks on from where the last call ended; at most once around. */
static size_t find_jobs(struct hfi_sqlite *store, const struct hfi_op_prune *op, struct doomed *doomed, size_t room) {
    size_t found = 0;
    int64_t looked = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_PRUNE_LOOK);
    if (!statement)
        return 0;
    sqlite3_bind_int64(statement, 1, store->prune_cursor);
    sqlite3_bind_int64(statement, 2, LOOKED_AT);
    while (found < room && hfi_sql_row(store, statement)) {
        int state = sqlite3_column_int(statement, 1);
        looked++;
        store->prune_cursor = sqlite3_column_int64(statement, 0);
        if (sqlite3_column_int64(statement, 2) < hfi_kept_since(op, state))
            doomed[found++] = (struct doomed){.id = store->prune_cursor, .state = state,
                                              .has_spec = sqlite3_column_int(statement, 3) != 0,
                                              .epoch = sqlite3_column_int64(statement, 4)};
    }
    hfi_sql_done(statement);
    if (found < room && looked < LOOKED_AT)
        store->prune_cursor = 0;
    return found;
}

static int run_for(struct hfi_sqlite *store, enum hfi_sql which, int64_t id) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    return hfi_sql_run(store, statement);
}

/* What there may be thousands of; true: nothing of it is left. */
static bool remove_some(struct hfi_sqlite *store, const struct hfi_op_prune *op, enum hfi_sql which,
                        const struct doomed *doomed) {
    uint32_t room = rows_left(store, op);
    bool children = which == HFI_SQL_PRUNE_PARENT;
    sqlite3_stmt *statement = room == 0 ? NULL : hfi_sql(store, which);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, doomed->id);
    if (children)
        sqlite3_bind_int(statement, 2, doomed->state == HF_JOB_SUCCEEDED);
    sqlite3_bind_int64(statement, children ? 3 : 2, room);
    return hfi_sql_run(store, statement) == 0 && (uint32_t)sqlite3_changes(store->db) < room;
}

static bool remove_past(struct hfi_sqlite *store, const struct hfi_op_prune *op, const struct doomed *doomed) {
    if (doomed->epoch > EPOCHS_OF_ONE)
        return remove_some(store, op, HFI_SQL_PRUNE_SOME_HISTORY, doomed) &&
               remove_some(store, op, HFI_SQL_PRUNE_SOME_ERRORS, doomed) && has_room(store, op);
    return run_for(store, HFI_SQL_PRUNE_HISTORY, doomed->id) == 0 && run_for(store, HFI_SQL_PRUNE_ERRORS, doomed->id) == 0;
}

/* The job and all that is its own. False: it was too much, or a fault: what is left of it is found again. */
static bool remove_job(struct hfi_sqlite *store, const struct hfi_op_prune *op, const struct doomed *doomed) {
    bool deps = hfi_sqlite_deps_any(store);
    if (hfi_sqlite_deps_pending(store, doomed->id))
        return store->fault == 0; /* the next round finds it */
    if (deps && !(remove_some(store, op, HFI_SQL_PRUNE_PARENT, doomed) && has_room(store, op)))
        return false;
    if (!remove_past(store, op, doomed) || (doomed->has_spec && hfi_sqlite_tags_drop(store, doomed->id) != 0))
        return false;
    if (run_for(store, HFI_SQL_PRUNE_JOB, doomed->id) != 0 || run_for(store, HFI_SQL_CHECKPOINT_DROP, doomed->id) != 0 ||
        (doomed->has_spec && run_for(store, HFI_SQL_PRUNE_SPEC, doomed->id) != 0) ||
        (deps && run_for(store, HFI_SQL_PRUNE_DEPS, doomed->id) != 0))
        return false;
    hfi_sqlite_count(store, doomed->state, -1);
    return true;
}

static void prune_stretch(struct hfi_sqlite *store, struct hfi_op_prune *op, struct doomed *doomed) {
    size_t found = find_jobs(store, op, doomed, op->limit - op->pruned), done = 0;
    while (done < found && has_room(store, op) && remove_job(store, op, &doomed[done]))
        done++;
    if (done < found && store->fault == 0)
        store->prune_cursor = doomed[done].id - 1; /* with this one it goes on */
    op->pruned += (uint32_t)done;
}

static int prune_jobs(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    if (op->succeeded_before == 0 && op->cancelled_before == 0 && op->dead_before == 0 && op->quarantined_before == 0)
        return 0;
    struct doomed *doomed = hfi_alloc_array(op->limit, sizeof *doomed);
    if (!doomed)
        return hfi_sqlite_no_memory(store);
    bool from_middle = store->prune_cursor != 0;
    prune_stretch(store, op, doomed);
    if (from_middle && store->prune_cursor == 0 && op->pruned < op->limit && has_room(store, op) && store->fault == 0)
        prune_stretch(store, op, doomed); /* the end came first: from the start again */
    else if (store->prune_cursor != 0)
        op->more = true;
    hfi_free(doomed);
    return store->fault;
}

/* ------------------------------------------------------------------ dead letters */

static int remove_letter(struct hfi_sqlite *store, int64_t id) {
    static const enum hfi_sql steps[] = {HFI_SQL_PRUNE_ALERTS, HFI_SQL_PRUNE_FORWARDS, HFI_SQL_PRUNE_DEAD};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (run_for(store, steps[i], id) != 0)
            break;
    return store->fault;
}

/* As find_jobs, in the order in which they were settled: such as an alert holds back are passed over. */
static size_t find_letters(struct hfi_sqlite *store, const struct hfi_op_prune *op, int64_t *doomed, size_t room) {
    size_t found = 0, looked = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_PRUNE_DEAD_LOOK);
    if (!statement)
        return 0;
    sqlite3_bind_int64(statement, 1, store->letters_settled_us);
    sqlite3_bind_int64(statement, 2, store->letters_id);
    sqlite3_bind_int64(statement, 3, op->dead_letters_before);
    sqlite3_bind_int64(statement, 4, LETTERS_LOOKED_AT);
    while (found < room && hfi_sql_row(store, statement)) {
        looked++;
        store->letters_settled_us = sqlite3_column_int64(statement, 0);
        store->letters_id = sqlite3_column_int64(statement, 1);
        if (sqlite3_column_int(statement, 2) == 0)
            doomed[found++] = store->letters_id;
    }
    hfi_sql_done(statement);
    if (found < room && looked < LETTERS_LOOKED_AT)
        store->letters_settled_us = store->letters_id = 0;
    return found;
}

static void letters_stretch(struct hfi_sqlite *store, struct hfi_op_prune *op, int64_t *doomed) {
    size_t found = find_letters(store, op, doomed, op->limit - op->pruned), done = 0;
    while (done < found && has_room(store, op) && remove_letter(store, doomed[done]) == 0)
        done++;
    if (done < found) { /* the others are looked at anew, from the first on */
        store->letters_settled_us = store->letters_id = 0;
        op->more = true;
    }
    op->pruned += (uint32_t)done;
}

static int prune_letters(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    if (op->dead_letters_before == 0 || op->pruned >= op->limit)
        return 0;
    int64_t *doomed = hfi_alloc_array(op->limit - op->pruned, sizeof *doomed);
    if (!doomed)
        return hfi_sqlite_no_memory(store);
    bool from_middle = store->letters_id != 0;
    letters_stretch(store, op, doomed);
    if (from_middle && store->letters_id == 0 && op->pruned < op->limit && has_room(store, op) && store->fault == 0)
        letters_stretch(store, op, doomed); /* the end came first: from the start again */
    else if (store->letters_id != 0)
        op->more = true;
    hfi_free(doomed);
    return store->fault;
}

/* ------------------------------------------------------------------ what has nothing of its own */

static uint32_t room_for(const struct hfi_sqlite *store, const struct hfi_op_prune *op) {
    return least(op->limit - least(op->pruned, op->limit), rows_left(store, op));
}

/* `before` 0 keeps them. */
static int prune_by_time(struct hfi_sqlite *store, struct hfi_op_prune *op, enum hfi_sql which, int64_t before) {
    uint32_t room = room_for(store, op);
    if (before == 0 || room == 0 || store->fault != 0)
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, before);
    sqlite3_bind_int64(statement, 2, room);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    uint32_t went = (uint32_t)sqlite3_changes(store->db);
    op->pruned += went;
    op->more = op->more || went == room;
    return 0;
}

/* Every node reads them anew then: what it knew of their versions is the past. */
static int prune_downstreams(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    uint32_t before = op->pruned;
    prune_by_time(store, op, HFI_SQL_PRUNE_DOWNSTREAMS, op->downstreams_before);
    store->control_changed = store->control_changed || op->pruned > before;
    return store->fault;
}

/* Also the lock file of one that died between its last commit and the end of its leaving. */
static int prune_nodes(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    int64_t nodes[NODES_AT_ONCE];
    size_t found = 0;
    uint32_t room = least(room_for(store, op), NODES_AT_ONCE);
    sqlite3_stmt *statement = op->nodes_before == 0 || room == 0 ? NULL : hfi_sql(store, HFI_SQL_PRUNE_NODES_LOOK);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->nodes_before);
    sqlite3_bind_int64(statement, 2, room);
    while (found < room && hfi_sql_row(store, statement))
        nodes[found++] = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    for (size_t i = 0; i < found; i++)
        if (run_for(store, HFI_SQL_PRUNE_NODE, nodes[i]) != 0 || hfi_sqlite_lock_goes(store, nodes[i]) != 0)
            return store->fault;
    op->pruned += (uint32_t)found;
    op->more = op->more || found == room;
    return store->fault;
}

/* Full rates, storms that are over: what means nothing any more, and is not counted as pruned. */
static void prune_past(struct hfi_sqlite *store, const struct hfi_op_prune *op, enum hfi_sql which) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return;
    sqlite3_bind_int64(statement, 1, op->now.us);
    sqlite3_bind_int64(statement, 2, least(op->limit, rows_left(store, op)));
    hfi_sql_run(store, statement);
}

static int read_turn(struct hfi_sqlite *store, struct hfi_prune_turn *turn) {
    if (hfi_sqlite_meta_get(store, "pruner_until", &turn->until_us) == 0)
        hfi_sqlite_meta_get(store, "pruner", &turn->node);
    return store->fault;
}

static int pass_turn(struct hfi_sqlite *store, const struct hfi_prune_turn *turn, const struct hfi_op_prune *op) {
    struct hfi_prune_turn next = hfi_prune_turn_after(op);
    if (next.until_us == turn->until_us && next.node == turn->node)
        return 0; /* most often nobody has it and nobody needs it: nothing is written then */
    if (hfi_sqlite_meta_set(store, "pruner_until", next.until_us) == 0)
        hfi_sqlite_meta_set(store, "pruner", next.node);
    return store->fault;
}

int hfi_sqlite_op_prune(struct hfi_sqlite *store, struct hfi_op_prune *op) {
    struct hfi_prune_turn turn = {0};
    op->pruned = op->rows = 0;
    op->more = op->others = false;
    if (op->limit == 0 || read_turn(store, &turn) != 0)
        return store->fault;
    op->others = hfi_prune_is_others(&turn, op);
    if (op->others)
        return 0;
    op->rows = (uint32_t)sqlite3_total_changes(store->db);
    if (prune_jobs(store, op) == 0 && prune_letters(store, op) == 0 &&
        prune_by_time(store, op, HFI_SQL_PRUNE_INBOX, op->inbox_before) == 0 &&
        prune_by_time(store, op, HFI_SQL_PRUNE_AUDIT, op->audit_before) == 0 && prune_nodes(store, op) == 0 &&
        prune_downstreams(store, op) == 0 && prune_by_time(store, op, HFI_SQL_PRUNE_REDRIVES, op->dead_letters_before) == 0)
        prune_past(store, op, HFI_SQL_RATES_PRUNE);
    if (store->fault == 0)
        prune_past(store, op, HFI_SQL_STORMS_PRUNE);
    op->more = op->more || op->pruned >= op->limit || !has_room(store, op);
    if (store->fault == 0)
        pass_turn(store, &turn, op);
    op->rows = rows_of(store, op);
    return store->fault;
}
