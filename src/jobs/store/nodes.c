/* SPDX-License-Identifier: MIT */
/*
 * Nodes: rows with beats, and beside them a file per node whose lock its process holds for life, so that others on the
 * host know at once when it died. Must never take a live node for dead: only a lock that can be had says so. Writer
 * thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/internal.h"

struct hfi_node_lock {
    struct hfi_node_lock *next;
    int64_t node;
    int file;              /* -1: another process's, only to be removed */
    bool joining, leaving; /* in this transaction */
};

#define LOCK_PATH_MAX (HFI_PATH_MAX + 32)
static const char *lock_path(const struct hfi_sqlite *store, int64_t node, char *path) {
    snprintf(path, LOCK_PATH_MAX, "%s.node-%lld", store->path, (long long)node);
    return path;
}

static struct hfi_node_lock *add_lock(struct hfi_sqlite *store, int64_t node, int file) {
    struct hfi_node_lock *lock = hfi_alloc(sizeof *lock);
    if (!lock)
        return NULL;
    lock->node = node;
    lock->file = file;
    lock->next = store->locks;
    store->locks = lock;
    return lock;
}

/* Takes the new node's lock, before anybody can see its row. */
static int lock_new(struct hfi_sqlite *store, struct hfi_op_join *op) {
    char path[LOCK_PATH_MAX];
    int file = open(lock_path(store, op->node, path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) {
        int failed = errno;
        if (file >= 0)
            close(file);
        snprintf(store->why, sizeof store->why, "the node's lock file: %s", strerror(failed));
        return store->fault = failed == ENOSPC ? HF_ENOSPC : HF_EIO;
    }
    struct hfi_node_lock *lock = add_lock(store, op->node, file);
    if (!lock) {
        close(file);
        unlink(path);
        return hfi_sqlite_no_memory(store);
    }
    lock->joining = true;
    return 0;
}

static int add_types(struct hfi_sqlite *store, int64_t node, const char *const *types, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODE_TYPE_ADD);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, node);
        sqlite3_bind_text(statement, 2, types[i], -1, SQLITE_STATIC);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    return 0;
}

static int add_sinks(struct hfi_sqlite *store, int64_t node, const struct hfi_sink_rule *sinks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODE_SINK_ADD);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, node);
        sqlite3_bind_text(statement, 2, sinks[i].name, -1, SQLITE_STATIC);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    return hfi_sqlite_sink_rules(store, sinks, count);
}

int hfi_sqlite_op_join(struct hfi_sqlite *store, struct hfi_op_join *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODE_ADD);
    op->node = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_text(statement, 1, op->name ? op->name : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, op->host ? op->host : "", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, op->boot ? op->boot : "", -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 4, op->pid);
    sqlite3_bind_int64(statement, 5, op->now.us);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    op->node = sqlite3_last_insert_rowid(store->db);
    if (lock_new(store, op) != 0 || add_types(store, op->node, op->types, op->type_count) != 0)
        return store->fault;
    return add_sinks(store, op->node, op->sinks, op->sink_count);
}

/* What the node has by the rows, for it to compare. */
static int find_owned(struct hfi_sqlite *store, struct hfi_op_beat *op) {
    size_t room = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_OWNED);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->node);
    sqlite3_bind_int64(statement, 2, HFI_OWNED_MAX);
    while (hfi_sql_row(store, statement)) {
        if (op->owned_count == room) {
            room = room > 0 ? room * 2 : 16;
            struct hfi_owned *grown = hfi_realloc(op->owned, room * sizeof *grown);
            if (!grown) {
                hfi_sqlite_no_memory(store);
                break;
            }
            op->owned = grown;
        }
        op->owned[op->owned_count++] = (struct hfi_owned){.id = sqlite3_column_int64(statement, 0),
                                                          .epoch = sqlite3_column_int64(statement, 1),
                                                          .cancel = sqlite3_column_int(statement, 2) != 0};
    }
    hfi_sql_done(statement);
    return store->fault;
}

static int run_for(struct hfi_sqlite *store, enum hfi_sql which, int64_t node) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, node);
    return hfi_sql_run(store, statement);
}

static int change_types(struct hfi_sqlite *store, const struct hfi_op_beat *op) {
    if (!op->types)
        return 0;
    if (run_for(store, HFI_SQL_NODE_TYPES_GONE, op->node) != 0)
        return store->fault;
    return add_types(store, op->node, op->types, op->type_count);
}

int hfi_sqlite_op_beat(struct hfi_sqlite *store, struct hfi_op_beat *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODE_BEAT);
    op->owned = NULL;
    op->owned_count = 0;
    op->known = false;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->node);
    sqlite3_bind_int64(statement, 2, op->beat);
    sqlite3_bind_int64(statement, 3, op->now.us);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    op->known = sqlite3_changes(store->db) > 0;
    if (!op->known || change_types(store, op) != 0)
        return store->fault;
    return find_owned(store, op);
}

int hfi_sqlite_lock_goes(struct hfi_sqlite *store, int64_t node) {
    struct hfi_node_lock *lock = store->locks;
    while (lock && lock->node != node)
        lock = lock->next;
    if (!lock && !(lock = add_lock(store, node, -1)))
        return hfi_sqlite_no_memory(store);
    lock->leaving = true;
    return 0;
}

/* The node is gone for good; its lock file goes after the commit. */
int hfi_sqlite_node_gone(struct hfi_sqlite *store, int64_t node) {
    if (run_for(store, HFI_SQL_NODE_GONE, node) != 0)
        return store->fault;
    if (sqlite3_changes(store->db) == 0)
        return 0;
    if (hfi_sqlite_lock_goes(store, node) != 0)
        return store->fault;
    static const enum hfi_sql of_it[] = {HFI_SQL_SHARES_GONE, HFI_SQL_NODE_TYPES_GONE, HFI_SQL_NODE_SINKS_GONE};
    for (size_t i = 0; i < sizeof of_it / sizeof *of_it; i++)
        if (run_for(store, of_it[i], node) != 0)
            return store->fault;
    return 0;
}

int hfi_sqlite_op_leave(struct hfi_sqlite *store, struct hfi_op_leave *op) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODE_OWNS);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->node);
    bool owns = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    if (store->fault != 0 || owns) /* those are left to its lease */
        return store->fault;
    return hfi_sqlite_node_gone(store, op->node);
}

/* Can the lock be had? Then its holder is no more. A missing file proves nothing. */
static bool died_here(const struct hfi_sqlite *store, int64_t node) {
    char path[LOCK_PATH_MAX];
    int file = open(lock_path(store, node, path), O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    bool dead = flock(file, LOCK_EX | LOCK_NB) == 0;
    close(file);
    return dead;
}

static struct hfi_node_row *add_row(struct hfi_sqlite *store, struct hfi_op_nodes *op, size_t *room) {
    if (op->count == *room) {
        size_t more = *room > 0 ? *room * 2 : 8;
        struct hfi_node_row *grown = hfi_realloc(op->rows, more * sizeof *grown);
        if (!grown) {
            hfi_sqlite_no_memory(store);
            return NULL;
        }
        op->rows = grown;
        *room = more;
    }
    struct hfi_node_row *row = &op->rows[op->count++];
    memset(row, 0, sizeof *row);
    return row;
}

static int add_live(struct hfi_sqlite *store, struct hfi_op_nodes *op, size_t *room) {
    struct hfi_node_row *row;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODES_LIVE);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->self);
    while (hfi_sql_row(store, statement) && (row = add_row(store, op, room)) != NULL) {
        row->node = sqlite3_column_int64(statement, 0);
        row->beat = sqlite3_column_int64(statement, 1);
        row->dead_on_host = died_here(store, row->node);
        hfi_text_copy(row->name, sizeof row->name, hfi_column_text(statement, 2));
    }
    hfi_sql_done(statement);
    return store->fault;
}

static bool is_listed(const struct hfi_op_nodes *op, size_t live, int64_t node) {
    for (size_t i = 0; i < live; i++)
        if (op->rows[i].node == node)
            return true;
    return node == op->self;
}

/* Owners of running jobs, one seek each; who has no live row is gone. */
static int add_orphaning(struct hfi_sqlite *store, struct hfi_op_nodes *op, size_t *room) {
    size_t live = op->count;
    for (int64_t owner = INT64_MIN;;) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_OWNER_NEXT);
        if (!statement)
            return store->fault;
        sqlite3_bind_int64(statement, 1, owner);
        bool more = hfi_sql_row(store, statement);
        if (more)
            owner = sqlite3_column_int64(statement, 0);
        hfi_sql_done(statement);
        if (!more)
            return store->fault;
        struct hfi_node_row *row = is_listed(op, live, owner) ? NULL : add_row(store, op, room);
        if (row != NULL) {
            row->node = owner;
            row->gone = true;
        }
        if (store->fault != 0)
            return store->fault;
    }
}

int hfi_sqlite_op_nodes(struct hfi_sqlite *store, struct hfi_op_nodes *op) {
    size_t room = 0;
    op->rows = NULL;
    op->count = 0;
    return add_live(store, op, &room) != 0 ? store->fault : add_orphaning(store, op, &room);
}

bool hfi_sqlite_node_lives(struct hfi_sqlite *store, int64_t node) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_NODE_LIVE);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, node);
    bool lives = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return lives;
}

/* After the transaction: files of nodes that are gone go, those of a join that was rolled back too. */
void hfi_sqlite_locks_settle(struct hfi_sqlite *store, bool committed) {
    char path[LOCK_PATH_MAX];
    struct hfi_node_lock **at = &store->locks;
    while (*at) {
        struct hfi_node_lock *lock = *at;
        bool over = committed ? lock->leaving : lock->joining || lock->file < 0;
        if (!over) {
            lock->joining = lock->leaving = false;
            at = &lock->next;
            continue;
        }
        if (committed || lock->joining)
            unlink(lock_path(store, lock->node, path));
        if (lock->file >= 0)
            close(lock->file);
        *at = lock->next;
        hfi_free(lock);
    }
}

/* At the end the locks are let go, as if the process had died: rows that are left say so. */
void hfi_sqlite_locks_free(struct hfi_sqlite *store) {
    while (store->locks) {
        struct hfi_node_lock *lock = store->locks;
        store->locks = lock->next;
        if (lock->file >= 0)
            close(lock->file);
        hfi_free(lock);
    }
}
