/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_SQLITE_FIXTURE_H
#define HF_TEST_SQLITE_FIXTURE_H

/* One operation at a time on a SQLite store: codes come back, nothing asserts, so that children and sweeps may use it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "jobs/store/internal.h"
#include "jobs/store/sqlite.h"
#include "support/support.h"

#define T0 INT64_C(1780000000000000)
#define MS INT64_C(1000)
#define S (1000 * MS)

static const char *const one_sink[] = {"ops"};

static inline int open_store(const char *path, struct hfi_store **store, struct hf_error *error) {
    struct hf_store_options options;
    hf_store_options_init(&options);
    return hfi_sqlite_store_open(path, &options, store, error);
}

static inline int commit_one(struct hfi_store *store, struct hfi_op *op) {
    store->ops->commit(store, &op, 1);
    return op->code;
}
#define DO(store, whole) commit_one(store, &(whole)->op)

static inline struct hfi_job plain_job(const char *type, int64_t run_at_us) {
    return (struct hfi_job){.run_at_us = run_at_us, .created_at_us = T0, .execution_timeout_ms = -1, .type = type,
                            .queue = "default", .downstream = "", .breaker_key = "", .limit_key = "", .unique_key = "",
                            .idempotency_key = "", .source = "", .source_message_id = "", .correlation_id = "",
                            .trace_context = "", .tags = "", .content_type = "", .reason = "", .error_class = "",
                            .error_type = "", .error_message = "", .cancel_by = "", .cancel_reason = ""};
}

static inline int put_job(struct hfi_store *store, const struct hfi_job *job, int64_t *id) {
    struct hfi_put item = {.job = *job};
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = &item, .count = 1};
    int code = DO(store, &op);
    if (id)
        *id = item.id;
    return code;
}

static inline int put_many(struct hfi_store *store, const char *type, size_t count) {
    struct hfi_put *items = hfi_alloc_array(count, sizeof *items);
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = items, .count = count};
    if (!items)
        return HF_ENOMEM;
    for (size_t i = 0; i < count; i++)
        items[i].job = plain_job(type, T0 + (int64_t)i);
    int code = DO(store, &op);
    hfi_free(items);
    return code;
}

static inline int join_node(struct hfi_store *store, int64_t *node) {
    struct hfi_op_join op = {.op = {.kind = HFI_OP_JOIN}, .name = "here", .host = "h", .boot = "b", .pid = 1, .now = {T0}};
    int code = DO(store, &op);
    *node = op.node;
    return code;
}

/* Of lane 1, started. */
static inline int claim_jobs(struct hfi_store *store, int64_t node, int64_t now_us, uint32_t max, struct hfi_job **jobs,
                             size_t *count) {
    static struct hfi_curve curve;
    hfi_curve_default(&curve);
    struct hfi_admitted lane = {.lane = 1, .max = max, .policy = &curve};
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = node, .now = {now_us}, .start = true, .lanes = &lane,
                              .lane_count = 1, .max = max, .jobs = jobs};
    int code = DO(store, &op);
    *count = op.count;
    return code;
}

static inline struct hfi_op_apply end_of(const struct hfi_job *job, int64_t now_us, const struct hf_outcome *failure) {
    struct hfi_op_apply op = {.op = {.kind = HFI_OP_APPLY}, .job = job, .sinks = one_sink, .sink_count = 1};
    op.event = (struct hfi_event){.kind = failure ? HFI_EVENT_FAILED : HFI_EVENT_SUCCEEDED, .now = {now_us},
                                  .node = job->owner, .outcome = failure};
    op.rules = (struct hfi_rules){.repeatable = true, .max_crashes = 3, .max_give_backs = 20,
                                  .retry_after_cap_ms = 3600000, .give_up_after_ms = 86400000};
    return op;
}

static inline struct hf_outcome failure_of(enum hf_class klass) {
    struct hf_outcome outcome;
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_FAILURE, klass,
                    klass == HF_CLASS_PERMANENT ? "http.404" : "http.503", "test.rule");
    hfi_outcome_message(&outcome, "because");
    outcome.sent = HF_SENT_YES;
    return outcome;
}

/* One number by a handle of its own. */
static inline int64_t ask_number(const char *path, const char *sql) {
    sqlite3 *db;
    int64_t number = -1;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, 10000);
        if (hfi_sqlite_number(db, sql, &number) != SQLITE_OK)
            number = -2;
    }
    sqlite3_close(db);
    return number;
}

/* What must hold of every store file at any time; the first thing that does not is returned, else NULL. */
static inline const char *broken_invariant(const char *path) {
    static const char *const rules_of_file[][2] = {
        {"SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check <> 'ok'", "the file is damaged"},
        {"SELECT count(*) FROM jobs WHERE state NOT IN (0, 2, 3, 4, 5, 6)", "a state that no transition leads to"},
        {"SELECT count(*) FROM jobs WHERE state = 2 AND ifnull(owner, 0) = 0", "running without an owner"},
        {"SELECT count(*) FROM jobs WHERE state <> 2 AND ifnull(owner, 0) <> 0", "an owner of what does not run"},
        {"SELECT count(*) FROM jobs j WHERE j.state IN (4, 5) AND (SELECT count(*) FROM dead_letters d WHERE d.job_id = j.id) "
         "<> 1", "a dead job without exactly one letter"},
        {"SELECT count(*) FROM dead_letters d WHERE d.job_id > 0 AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = d.job_id AND j.state IN "
         "(4, 5))", "a letter of a job that is not dead"},
        {"SELECT count(*) FROM dead_letters d WHERE (SELECT count(*) FROM alerts a WHERE a.dead_id = d.id) <> 1",
         "a letter without exactly one alert per sink"},
        {"SELECT count(*) FROM jobs j WHERE j.state = 3 AND NOT EXISTS (SELECT 1 FROM history h WHERE h.job_id = j.id AND "
         "h.event = 2)", "a success without history"},
        {"SELECT count(*) FROM counts c WHERE c.jobs <> (SELECT count(*) FROM jobs j WHERE j.state = c.state)",
         "a count that is off"},
        {"SELECT count(*) FROM lanes l WHERE l.next_due_us > (SELECT min(run_at_us) FROM jobs j WHERE j.state = 0 AND "
         "j.lane = l.id)", "a lane that believes its next job to be later than it is"},
        {"SELECT count(*) FROM jobs j WHERE NOT EXISTS (SELECT 1 FROM lanes l WHERE l.id = j.lane)", "a job without its lane"},
        {"SELECT count(*) FROM jobs j WHERE j.policy_id > 0 AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.id = j.policy_id)",
         "a job without its policy"},
        {"SELECT count(*) FROM job_specs p WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = p.id)",
         "a payload without its job"},
        {"SELECT (SELECT value FROM meta WHERE key = 'next_job') <= ifnull((SELECT max(id) FROM jobs), 0)",
         "an id that will be used twice"},
    };
    sqlite3 *db;
    const char *broken = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        broken = "the file does not open";
    sqlite3_busy_timeout(db, 10000);
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL); /* others may be writing */
    for (size_t i = 0; i < sizeof rules_of_file / sizeof *rules_of_file && !broken; i++) {
        int64_t number = -1;
        if (hfi_sqlite_number(db, rules_of_file[i][0], &number) != SQLITE_OK || number != 0)
            broken = rules_of_file[i][1];
    }
    sqlite3_close(db);
    return broken;
}

#endif
