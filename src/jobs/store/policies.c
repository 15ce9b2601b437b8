/* SPDX-License-Identifier: MIT */
/*
 * Policies: curves interned by value, immutable. Some are kept in memory, by number and by value; what is handed out is
 * good until the transaction ends, and jobs that live longer have a copy of their own. Must never free one in the middle
 * of a transaction, nor give one to a job that is not known to stand (unused.c). Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "jobs/store/internal.h"

#define uthash_malloc(size) hfi_alloc(size)
#define uthash_free(memory, size) hfi_free(memory)
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) ((item)->id = 0)
#include <uthash.h>

#define VALUE_HEAD 4

/* What makes two curves one. */
struct value {
    int64_t words[VALUE_HEAD + HF_CURVE_MAX];
    size_t size;
};

struct hfi_policy {
    int64_t id;
    int64_t walk; /* its row says so, too; 0: not known */
    bool fresh;   /* its row came in this transaction */
    bool kept;    /* until the store is closed */
    struct hfi_policy *next_dropped;
    UT_hash_handle by_id, by_value;
    struct value value;
    struct hfi_curve curve;
};

static void value_of(const struct hfi_curve *curve, struct value *value) {
    value->words[0] = curve->max_executions;
    value->words[1] = curve->length;
    value->words[2] = curve->jitter_permille;
    value->words[3] = curve->cap_ms;
    memcpy(value->words + VALUE_HEAD, curve->waits_ms, curve->length * sizeof *curve->waits_ms);
    value->size = (VALUE_HEAD + curve->length) * sizeof *value->words;
}

/* In both tables or in none. */
static bool add(struct hfi_sqlite *store, struct hfi_policy *policy) {
    HASH_ADD_KEYPTR(by_value, store->policies_by_value, policy->value.words, policy->value.size, policy);
    if (policy->id == 0)
        return false;
    HASH_ADD(by_id, store->policies_by_id, id, sizeof policy->id, policy);
    if (policy->id != 0)
        return true;
    HASH_DELETE(by_value, store->policies_by_value, policy);
    return false;
}

static struct hfi_policy *remember(struct hfi_sqlite *store, const struct hfi_curve *curve, int64_t id, bool fresh) {
    struct hfi_policy *policy = hfi_alloc(sizeof *policy);
    if (policy) {
        hfi_curve_copy(&policy->curve, curve);
        value_of(curve, &policy->value);
        policy->id = policy->curve.id = id;
        policy->fresh = fresh;
    }
    if (!policy || !add(store, policy)) {
        hfi_free(policy);
        hfi_sqlite_no_memory(store);
        return NULL;
    }
    store->policies_fresh = store->policies_fresh || fresh;
    store->policies_kept++;
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
    struct hfi_policy *policy = NULL;
    struct value value;
    value_of(curve, &value);
    HASH_FIND(by_value, store->policies_by_value, value.words, value.size, policy);
    return policy;
}

/* Nobody finds it any more; its memory stays until the end of the transaction. */
static void retire(struct hfi_sqlite *store, struct hfi_policy *policy) {
    HASH_DELETE(by_id, store->policies_by_id, policy);
    HASH_DELETE(by_value, store->policies_by_value, policy);
    store->policies_kept--;
    struct hfi_policy **list = policy->kept ? &store->kept_policies : &store->dropped_policies;
    policy->next_dropped = *list;
    *list = policy;
}

void hfi_sqlite_policy_keep(struct hfi_sqlite *store, int64_t id) {
    struct hfi_policy *policy = NULL;
    HASH_FIND(by_id, store->policies_by_id, &id, sizeof id, policy);
    if (policy)
        policy->kept = true;
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
    struct hfi_policy *known = NULL;
    HASH_FIND(by_id, store->policies_by_id, &id, sizeof id, known);
    if (known) {
        *stored = &known->curve;
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

static void free_list(struct hfi_policy **list) {
    while (*list) {
        struct hfi_policy *policy = *list;
        *list = policy->next_dropped;
        hfi_free(policy);
    }
}

/* Rows made in a transaction that was rolled back are gone. Of many, those go that were here first. */
void hfi_sqlite_policies_settle(struct hfi_sqlite *store, bool committed) {
    struct hfi_policy *policy, *next;
    if (!committed || store->policies_fresh) {
        HASH_ITER(by_id, store->policies_by_id, policy, next) {
            if (policy->fresh && !committed)
                retire(store, policy);
            policy->fresh = false;
            policy->walk = committed ? policy->walk : 0;
        }
    }
    store->policies_fresh = false;
    if (store->policies_kept > HFI_POLICIES_KEPT) {
        HASH_ITER(by_id, store->policies_by_id, policy, next) {
            if (!policy->kept && store->policies_kept > HFI_POLICIES_KEPT)
                retire(store, policy);
        }
    }
    free_list(&store->dropped_policies);
}

void hfi_sqlite_policies_free(struct hfi_sqlite *store) {
    while (store->policies_by_id)
        retire(store, store->policies_by_id);
    free_list(&store->dropped_policies);
    free_list(&store->kept_policies);
}
