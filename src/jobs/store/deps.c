/* SPDX-License-Identifier: MIT */
/*
 * Jobs that wait for others. Whoever ends a job, or lets it begin anew, comes through hfi_sqlite_consequences, which
 * notes it here; after the operation, in its transaction, the children are looked at. Must never look at more than
 * HFI_SETTLE_MAX of them in one transaction: the rest is noted in `releases`, in that same transaction. Writer thread.
 */
#include "jobs/deps.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/internal.h"

#define PAGE 64

/* A parent whose children with ids above `after` are to be looked at. */
struct hfi_unsettled {
    int64_t parent, after;
    struct hf_wall now;
};

void hfi_sqlite_deps_forget(struct hfi_sqlite *store) {
    store->unsettled_count = store->unsettled_done = 0;
    store->settle_left = HFI_SETTLE_MAX;
    store->deps_exist = HFI_DEPS_UNKNOWN;
    store->released = store->ended_with = 0;
}

void hfi_sqlite_deps_free(struct hfi_sqlite *store) {
    hfi_free(store->unsettled);
    store->unsettled = NULL;
    store->unsettled_room = 0;
}

/* Asked once per transaction: most stores have none, and then no end of a job costs anything. */
bool hfi_sqlite_deps_any(struct hfi_sqlite *store) {
    if (store->deps_exist == HFI_DEPS_UNKNOWN) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEPS_ANY);
        if (!statement)
            return false;
        store->deps_exist = hfi_sql_row(store, statement) ? HFI_DEPS_SOME : HFI_DEPS_NONE;
        hfi_sql_done(statement);
    }
    return store->deps_exist == HFI_DEPS_SOME;
}

static int note(struct hfi_sqlite *store, int64_t parent, int64_t after, struct hf_wall now) {
    if (store->unsettled_count == store->unsettled_room) {
        size_t room = store->unsettled_room > 0 ? store->unsettled_room * 2 : 64;
        struct hfi_unsettled *grown = hfi_realloc(store->unsettled, room * sizeof *grown);
        if (!grown)
            return hfi_sqlite_no_memory(store);
        store->unsettled = grown;
        store->unsettled_room = room;
    }
    store->unsettled[store->unsettled_count++] = (struct hfi_unsettled){parent, after, now};
    return 0;
}

int hfi_sqlite_deps_moved(struct hfi_sqlite *store, int64_t parent, struct hf_wall now) {
    return hfi_sqlite_deps_any(store) ? note(store, parent, 0, now) : store->fault;
}

/* All parents of a job; at most HF_AFTER_MAX can be put. */
static size_t read_parents(struct hfi_sqlite *store, int64_t child, struct hfi_parent *parents) {
    size_t count = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEPS_PARENTS);
    if (!statement)
        return 0;
    sqlite3_bind_int64(statement, 1, child);
    sqlite3_bind_int(statement, 2, HF_AFTER_MAX);
    while (count < HF_AFTER_MAX && hfi_sql_row(store, statement))
        parents[count++] = (struct hfi_parent){
            .id = sqlite3_column_int64(statement, 0),
            .state = sqlite3_column_type(statement, 1) == SQLITE_NULL ? HFI_PARENT_FORGOTTEN
                                                                      : sqlite3_column_int(statement, 1),
            .on_end = sqlite3_column_int(statement, 2) != 0,
        };
    hfi_sql_done(statement);
    return count;
}

/* A revived job would bind its unique key again: not while another one holds it. */
static bool key_is_taken(struct hfi_sqlite *store, const struct hfi_job *child) {
    int64_t holder = 0;
    return hfi_sqlite_unique_holder(store, child, &holder) == 0 && holder != 0;
}

static int step(struct hfi_sqlite *store, const struct hfi_job *child, const struct hfi_hand *hand) {
    struct hfi_change change;
    int64_t dead_id;
    if (hand->event.kind == HFI_EVENT_REVIVED && key_is_taken(store, child))
        return HF_EEXIST;
    int code = hfi_sqlite_change(store, child, &hand->event, &hand->rules, NULL, 0, &change, &dead_id);
    if (code == 0 && hand->event.kind == HFI_EVENT_RELEASED)
        store->released++;
    else if (code == 0 && hand->event.kind == HFI_EVENT_PARENT_DEAD)
        store->ended_with++;
    return code;
}

int hfi_sqlite_deps_settle(struct hfi_sqlite *store, int64_t child, struct hf_wall now) {
    struct hfi_parent parents[HF_AFTER_MAX];
    struct hfi_hand hand;
    struct hfi_job *job = NULL;
    size_t count = read_parents(store, child, parents);
    bool more = store->fault == 0;
    while (more && hfi_sqlite_load(store, child, &job) == 0) { /* twice at most: revived, then released or ended */
        more = hfi_deps_judge(job, parents, count, now, &hand) && step(store, job, &hand) == 0 &&
               hand.event.kind == HFI_EVENT_REVIVED;
        hfi_free(job);
        job = NULL;
    }
    return store->fault;
}

/* Some children of a parent, by id. */
static size_t read_children(struct hfi_sqlite *store, const struct hfi_unsettled *of, int64_t *children, size_t room) {
    size_t count = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEPS_CHILDREN);
    if (!statement)
        return 0;
    sqlite3_bind_int64(statement, 1, of->parent);
    sqlite3_bind_int64(statement, 2, of->after);
    sqlite3_bind_int64(statement, 3, (int64_t)room);
    while (count < room && hfi_sql_row(store, statement))
        children[count++] = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return count;
}

static int leave_for_later(struct hfi_sqlite *store, const struct hfi_unsettled *of) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_RELEASE_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, of->parent);
    sqlite3_bind_int64(statement, 2, of->after);
    store->left_over = true;
    return hfi_sql_run(store, statement);
}

/* The children of one parent, as far as this transaction goes. */
static int settle_children(struct hfi_sqlite *store, struct hfi_unsettled of) {
    int64_t children[PAGE];
    for (;;) {
        size_t room = store->settle_left < PAGE ? store->settle_left : PAGE;
        if (room == 0)
            return read_children(store, &of, children, 1) > 0 ? leave_for_later(store, &of) : store->fault;
        size_t count = read_children(store, &of, children, room);
        for (size_t i = 0; i < count && store->fault == 0; i++) {
            store->settle_left--;
            hfi_sqlite_deps_settle(store, children[i], of.now);
            of.after = children[i];
        }
        if (store->fault != 0 || count < room)
            return store->fault;
    }
}

/* Ends and beginnings that the operation led to; each may lead to others. */
int hfi_sqlite_deps_flush(struct hfi_sqlite *store) {
    while (store->fault == 0 && store->unsettled_done < store->unsettled_count)
        settle_children(store, store->unsettled[store->unsettled_done++]);
    store->unsettled_count = store->unsettled_done = 0;
    return store->fault;
}

/* ------------------------------------------------------------------ enqueue */

static bool exists(struct hfi_sqlite *store, int64_t id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_JOB_EXISTS);
    if (!statement)
        return true;
    sqlite3_bind_int64(statement, 1, id);
    bool found = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return found;
}

/* Before anything is written: a refusal leaves nothing behind. */
int hfi_sqlite_deps_check(struct hfi_sqlite *store, struct hfi_op_put *op) {
    for (size_t i = 0; i < op->count && store->fault == 0; i++) {
        const struct hfi_put *put = &op->items[i];
        for (uint32_t p = 0; p < put->after_count; p++) {
            if (exists(store, put->after[p]) || hfi_sqlite_put_known(store, put) || store->fault != 0)
                continue;
            int code = hfi_fail(op->op.error, HF_ENOENT, "after_jobs", "name jobs that the store still has",
                                "job %lld does not exist", (long long)put->after[p]);
            if (op->op.error)
                op->op.error->line = (int)i + 1;
            return code;
        }
    }
    return store->fault;
}

/* A job that was put as waiting; what it waits for may have ended already. */
int hfi_sqlite_deps_add(struct hfi_sqlite *store, const struct hfi_put *put) {
    for (uint32_t i = 0; i < put->after_count; i++) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_DEP_ADD);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, put->after[i]);
        sqlite3_bind_int64(statement, 2, put->job.id);
        sqlite3_bind_int(statement, 3, put->after_on_end);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    if (put->after_count == 0)
        return 0;
    store->deps_exist = HFI_DEPS_SOME;
    return hfi_sqlite_deps_settle(store, put->job.id, (struct hf_wall){put->job.created_at_us});
}

/* ------------------------------------------------------------------ what was left over */

/* The next parent in `releases`, taken out; false: none. */
static bool take_left_over(struct hfi_sqlite *store, struct hfi_unsettled *of) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_RELEASE_NEXT);
    if (!statement)
        return false;
    bool found = hfi_sql_row(store, statement);
    if (found) {
        of->parent = sqlite3_column_int64(statement, 0);
        of->after = sqlite3_column_int64(statement, 1);
    }
    hfi_sql_done(statement);
    statement = found ? hfi_sql(store, HFI_SQL_RELEASE_DONE) : NULL;
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, of->parent);
    return hfi_sql_run(store, statement) == 0;
}

bool hfi_sqlite_deps_left(struct hfi_sqlite *store) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_RELEASE_NEXT);
    if (!statement)
        return false;
    bool found = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return found;
}

/* Whatever waits is looked at once in a while, so that no row is out of every scan's reach (I47). */
static int scan(struct hfi_sqlite *store, struct hfi_op_release *op) {
    uint32_t room = op->limit < store->settle_left ? op->limit : store->settle_left;
    int64_t *ids = hfi_alloc_array((size_t)room + 1, sizeof *ids);
    uint32_t count = 0;
    sqlite3_stmt *statement = ids ? hfi_sql(store, HFI_SQL_WAITING_AFTER) : NULL;
    if (!ids)
        hfi_sqlite_no_memory(store);
    if (statement) {
        sqlite3_bind_int64(statement, 1, op->after_id);
        sqlite3_bind_int64(statement, 2, room);
        while (count < room && hfi_sql_row(store, statement))
            ids[count++] = sqlite3_column_int64(statement, 0);
        hfi_sql_done(statement);
    }
    for (uint32_t i = 0; i < count && store->fault == 0; i++) {
        store->settle_left--;
        hfi_sqlite_deps_settle(store, ids[i], op->now);
        op->after_id = ids[i];
    }
    if (count < room)
        op->after_id = 0;
    hfi_free(ids);
    return store->fault;
}

int hfi_sqlite_op_release(struct hfi_sqlite *store, struct hfi_op_release *op) {
    struct hfi_unsettled of = {.now = op->now};
    uint32_t released = store->released, ended_with = store->ended_with;
    while (store->settle_left > 0 && store->fault == 0 && take_left_over(store, &of))
        if (note(store, of.parent, of.after, op->now) == 0)
            hfi_sqlite_deps_flush(store);
    if (op->scan && store->fault == 0 && scan(store, op) == 0)
        hfi_sqlite_deps_flush(store);
    op->released = store->released - released;
    op->ended = store->ended_with - ended_with;
    op->more = hfi_sqlite_deps_left(store);
    return store->fault;
}

/* Children of it are still to be looked at: it may not be pruned yet. */
bool hfi_sqlite_deps_pending(struct hfi_sqlite *store, int64_t parent) {
    sqlite3_stmt *statement = hfi_sqlite_deps_any(store) ? hfi_sql(store, HFI_SQL_RELEASE_FIND) : NULL;
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, parent);
    bool found = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return found;
}
