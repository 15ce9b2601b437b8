/* SPDX-License-Identifier: MIT */
/* The plans of all statements: claims seek their index without a sort (S4.6, I44), nothing scans a table that grows. */
#include <stdlib.h>

#include "support/sqlite_fixture.h"

static const char *const names[] = {
#define NAME(name, text) #name,
    HFI_SQL_MAP(NAME)
#undef NAME
};

static struct hfi_sqlite *store;

static int open_one(void **state) {
    (void)state;
    struct hfi_store *made = NULL;
    int code = open_store(hf_test_path("plans.db"), &made, NULL);
    store = made ? hfi_sqlite_of(made) : NULL;
    return code;
}

static int close_it(void **state) {
    (void)state;
    store->base.ops->close(&store->base);
    return 0;
}

static void plan_of(const char *sql, char *plan, size_t room) {
    char whole[4096];
    sqlite3_stmt *statement;
    plan[0] = '\0';
    snprintf(whole, sizeof whole, "EXPLAIN QUERY PLAN %s", sql);
    assert_int_equal(sqlite3_prepare_v2(store->db, whole, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        size_t length = strlen(plan);
        snprintf(plan + length, room - length, "%s\n", (const char *)sqlite3_column_text(statement, 3));
    }
    sqlite3_finalize(statement);
}

/* Tables that may grow for ever, as the plans name them. */
static const char *const great[] = {"SCAN jobs", "SCAN j\n", "SCAN j ", "SCAN history", "SCAN job_specs", "SCAN alerts",
                                    "SCAN a\n", "SCAN a ", "SCAN dead_letters", "SCAN d\n", "SCAN d ", "SCAN limit_rates",
                                    "dead_status (status>?)"};

static void nothing_scans_what_grows_or_sorts(void **state) {
    (void)state;
    char plan[2048];
    for (int i = 0; i < HFI_SQL_COUNT; i++) {
        if (i == HFI_SQL_BEGIN || i == HFI_SQL_COMMIT)
            continue;
        plan_of(hfi_sql_texts[i], plan, sizeof plan);
        for (size_t table = 0; table < sizeof great / sizeof *great; table++)
            if (strstr(plan, great[table]))
                fail_msg("%s scans: %s", names[i], plan);
        if (strstr(plan, "TEMP B-TREE"))
            fail_msg("%s sorts: %s", names[i], plan);
    }
}

static void expect(enum hfi_sql which, const char *index) {
    char plan[2048];
    plan_of(hfi_sql_texts[which], plan, sizeof plan);
    if (!strstr(plan, index))
        fail_msg("%s does not use %s: %s", names[which], index, plan);
}

static void the_partial_indexes_are_used(void **state) {
    (void)state;
    expect(HFI_SQL_CLAIM_DUE, "jobs_due (lane=? AND priority=? AND run_at_us>?)");
    expect(HFI_SQL_CLAIM_HEAD, "jobs_due (lane=? AND priority<?)");
    expect(HFI_SQL_RUNNING_LANES, "jobs_running (owner>?)");
    expect(HFI_SQL_LANE_KEPT, "jobs_due (lane=? AND priority=? AND run_at_us<?)");
    expect(HFI_SQL_RUNNING_OF, "jobs_running (owner=? AND id>?)");
    expect(HFI_SQL_OWNED, "jobs_running (owner=?)");
    expect(HFI_SQL_EXPIRED, "jobs_expires (expires_at_us>? AND expires_at_us<?)");
    expect(HFI_SQL_JOB_UNIQUE, "jobs_unique (unique_scope=?)");
    expect(HFI_SQL_LANES_NEXT, "lanes_due (next_due_us>?)");
    expect(HFI_SQL_ALERTS_DUE, "alerts_due (sink=? AND next_at_us<?)");
    expect(HFI_SQL_DEAD_OF_JOB, "dead_once (job_id=? AND death_no=?)");
    expect(HFI_SQL_PRUNE_DEAD_LOOK, "dead_settled (settled_at_us>? AND settled_at_us<?)");
    expect(HFI_SQL_PRUNE_ALERTS, "(dead_id=?)");
    expect(HFI_SQL_RATES_PRUNE, "rates_full (full_at_us<?)");
    expect(HFI_SQL_DEPS_CHILDREN, "PRIMARY KEY (parent=? AND child>?)");
    expect(HFI_SQL_DEPS_PARENTS, "deps_child (child=?)");
    expect(HFI_SQL_WAITING_AFTER, "jobs_odd (state=? AND rowid>?)");
}

/* A list by any filter: `index` leads, no sort but of the ids of running jobs, no whole table. */
static void expect_list(struct hf_job_filter filter, const char *index, bool sorts) {
    char floor[HFI_LIST_SQL_MAX], page[HFI_LIST_SQL_MAX], plan[4096];
    filter.after_id = 1000;
    hfi_sqlite_list_sql(&filter, floor, page);
    for (int i = 0; i < 2; i++) {
        plan_of(i == 0 ? floor : page, plan, sizeof plan);
        if (!strstr(plan, index))
            fail_msg("%s does not lead: %s", index, plan);
        if (!sorts && strstr(plan, "TEMP B-TREE"))
            fail_msg("it sorts: %s", plan);
        if (strstr(plan, "SCAN j\n") || strstr(plan, "SCAN jobs\n") || strstr(plan, "SCAN p\n") || strstr(plan, "AUTOMATIC"))
            fail_msg("it scans: %s", plan);
    }
}

static void lists_seek_whatever_the_filter(void **state) { /* I74 */
    (void)state;
    struct hf_job_filter filter;
    for (int32_t shown = -1; shown <= HF_JOB_SHOWN_READY; shown++) {
        hf_job_filter_init(&filter);
        filter.shown = shown;
        expect_list(filter, "SEARCH j USING INTEGER PRIMARY KEY (rowid", false);
    }
    for (int32_t number = HF_JOB_PENDING; number <= HF_JOB_CANCELLED; number++) {
        bool odd = number == HF_JOB_WAITING || number > HF_JOB_SUCCEEDED;
        hf_job_filter_init(&filter);
        filter.state = number;
        expect_list(filter, odd ? "jobs_odd (state=? AND rowid" : number == HF_JOB_RUNNING ? "jobs_running" : "SEARCH j USING INTEGER PRIMARY KEY",
                    number == HF_JOB_RUNNING);
        filter.type = "t";
        filter.queue = "q";
        filter.limit_key = "l:k";
        filter.created_since_us = 5;
        if (number != HF_JOB_RUNNING)
            expect_list(filter, odd ? "jobs_odd (state=? AND rowid" : "SEARCH j USING INTEGER PRIMARY KEY", false);
    }
    hf_job_filter_init(&filter);
    filter.tag = "x";
    expect_list(filter, "SEARCH q USING PRIMARY KEY (tag=? AND job_id", false);
    filter.correlation_id = "x";
    expect_list(filter, "specs_correlation (correlation_id=? AND rowid", false);
    filter.source_message_id = "x";
    expect_list(filter, "specs_message (source_message_id=? AND rowid", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_scans_what_grows_or_sorts),
        cmocka_unit_test(the_partial_indexes_are_used),
        cmocka_unit_test(lists_seek_whatever_the_filter),
    };
    return cmocka_run_group_tests(tests, open_one, close_it) ? 1 : 0;
}
