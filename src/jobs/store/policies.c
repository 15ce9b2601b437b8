/* SPDX-License-Identifier: MIT */
/*
 * Policies: curves interned by value, immutable. Jobs point to them for as long as the store is open, so one that was
 * handed out is never freed before, not even when its row was rolled back, or removed. One that is given to a job is
 * known to stand (unused.c). Writer thread.
 */
#include "base/alloc.h"
#include "jobs/store/internal.h"

struct hfi_policy {
    struct hfi_curve curve;
    int64_t walk; /* its row says so, too; 0: not known */
    bool fresh; /* its row came in this transaction */
    struct hfi_policy *next;
};

static struct hfi_policy *remember(struct hfi_sqlite *store, const struct hfi_curve *curve, int64_t id, bool fresh) {
    struct hfi_policy *policy = hfi_alloc(sizeof *policy);
    if (!policy) {
        hfi_sqlite_no_memory(store);
        return NULL;
    }
    policy->curve = *curve;
    policy->curve.id = id;
    policy->fresh = fresh;
    policy->next = store->policies;
    store->policies = policy;
    return policy;
}

static int bind_and_find(struct hfi_sqlite *store, const struct hfi_curve *curve, const char *waits, int64_t *id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_POLICY_FIND);
    *id = 0;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, curve->max_executions);
    sqlite3_bind_int64(statement, 2, curve->jitter_permille);
    sqlite3_bind_text(statement, 3, waits, -1, SQLITE_STATIC);
    if (hfi_sql_row(store, statement))
        *id = sqlite3_column_int64(statement, 0);
    hfi_sql_done(statement);
    return store->fault;
}

static int add_row(struct hfi_sqlite *store, const struct hfi_curve *curve, const char *waits, int64_t *id) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_POLICY_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, curve->max_executions);
    sqlite3_bind_int64(statement, 2, curve->jitter_permille);
    sqlite3_bind_text(statement, 3, waits, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 4, store->walk);
    if (hfi_sql_run(store, statement) == 0)
        *id = sqlite3_last_insert_rowid(store->db);
    return store->fault;
}

static struct hfi_policy *find(struct hfi_sqlite *store, const struct hfi_curve *curve) {
    struct hfi_policy *policy = store->policies;
    while (policy && &policy->curve != curve && !hfi_curve_equal(&policy->curve, curve))
        policy = policy->next;
    return policy;
}

/* Its row is no more: jobs may still point to it, nobody new does. */
static void retire(struct hfi_sqlite *store, struct hfi_policy *policy) {
    struct hfi_policy **at = &store->policies;
    while (*at != policy)
        at = &(*at)->next;
    *at = policy->next;
    policy->next = store->dropped_policies;
    store->dropped_policies = policy;
}

static int intern(struct hfi_sqlite *store, const struct hfi_curve *curve, struct hfi_policy **policy) {
    char waits[HFI_CURVE_WAITS_ROOM];
    int64_t id;
    bool stands = false;
    hfi_curve_waits_print(curve, waits);
    if (bind_and_find(store, curve, waits, &id) != 0 ||
        (id != 0 && hfi_sqlite_used(store, HFI_SQL_POLICY_USED, id, store->walk, &stands) != 0) ||
        (!stands && add_row(store, curve, waits, &id) != 0))
        return store->fault;
    *policy = remember(store, curve, id, !stands);
    return store->fault;
}

/* The stored policy of these waits, made when it is new. 0 or a fault. */
int hfi_sqlite_policy(struct hfi_sqlite *store, const struct hfi_curve *curve, const struct hfi_curve **stored) {
    struct hfi_policy *policy = find(store, curve);
    int64_t walk;
    bool stands = true;
    if (hfi_sqlite_walk(store, &walk) != 0)
        return store->fault;
    if (policy && policy->walk != walk &&
        hfi_sqlite_used(store, HFI_SQL_POLICY_USED, policy->curve.id, walk, &stands) != 0)
        return store->fault;
    if (policy && !stands) {
        retire(store, policy);
        policy = NULL;
    }
    if (!policy && intern(store, curve, &policy) != 0)
        return store->fault;
    policy->walk = walk;
    *stored = &policy->curve;
    return 0;
}

/* `*stored` stays as it is when there is no such row. */
int hfi_sqlite_policy_by_id(struct hfi_sqlite *store, int64_t id, const struct hfi_curve **stored) {
    for (struct hfi_policy *policy = store->policies; policy; policy = policy->next)
        if (policy->curve.id == id) {
            *stored = &policy->curve;
            return 0;
        }
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_POLICY_GET);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    if (hfi_sql_row(store, statement)) {
        struct hfi_curve curve = {.max_executions = (uint32_t)sqlite3_column_int64(statement, 0),
                                  .jitter_permille = (uint32_t)sqlite3_column_int64(statement, 1)};
        hfi_curve_waits_parse(&curve, hfi_column_text(statement, 2));
        struct hfi_policy *policy = remember(store, &curve, id, false);
        if (policy)
            *stored = &policy->curve;
    }
    hfi_sql_done(statement);
    return store->fault;
}

/* After a rollback: rows made in it are gone; their memory stays. */
void hfi_sqlite_policies_settle(struct hfi_sqlite *store, bool committed) {
    struct hfi_policy **at = &store->policies;
    while (*at) {
        struct hfi_policy *policy = *at;
        if (policy->fresh && !committed) {
            *at = policy->next;
            policy->next = store->dropped_policies;
            store->dropped_policies = policy;
            continue;
        }
        policy->fresh = false;
        policy->walk = committed ? policy->walk : 0;
        at = &policy->next;
    }
}

static void free_all(struct hfi_policy *policy) {
    while (policy) {
        struct hfi_policy *next = policy->next;
        hfi_free(policy);
        policy = next;
    }
}

void hfi_sqlite_policies_free(struct hfi_sqlite *store) {
    free_all(store->policies);
    free_all(store->dropped_policies);
}
