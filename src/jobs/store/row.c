/* SPDX-License-Identifier: MIT */
/*
 * The job record and its rows: jobs and job_specs to struct hfi_job and back. Must never write over a row that is not
 * what the caller has seen: id, epoch, state and cancel request are the fence. Writer thread; hfi_sqlite_read_row any.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/internal.h"

#define INLINE_PAYLOAD 256 /* bytes that stay in `jobs`; longer ones are not worth rewriting at each step */

/* The columns of HFI_JOB_COLUMNS, in their order. */
enum {
    ID, STATE, PRIORITY, LANE, RUN_AT, EPOCH, OWNER, EXECUTIONS, FAILURES, STARTED, FINISHED, SNOOZES, CRASHES, GIVE_BACKS,
    DEATHS, CREATED, EXPIRES, MAX_EXECUTIONS, TIMEOUT, POLICY, ROOT, PARENT, CANCEL_AT, CRASH_WINDOW, WAITING, PROGRESS,
    UNIQUE_SCOPE, REASON, ERROR_CLASS, ERROR_TYPE, ERROR_MESSAGE, CANCEL_BY, CANCEL_REASON, PAYLOAD, RESULT, HAS_SPEC, KEY,
    SOURCE, MESSAGE_ID, CORRELATION, TRACE, TAGS, CONTENT_TYPE, LONG_PAYLOAD,
    MARKS, PROGRESS_TEXT
};

/* What a start puts on the job, in one column: NULL when there is nothing. */
#define MARK_NOT_REPEATABLE 1
#define MARK_RUNS_CODE 2
#define MARK_ALONE 4

static uint32_t count_at(sqlite3_stmt *statement, int at) {
    int64_t count = sqlite3_column_int64(statement, at);
    return count < 0 ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static void read_spec(sqlite3_stmt *statement, struct hfi_job *job) {
    job->idempotency_key = hfi_column_text(statement, KEY);
    job->source = hfi_column_text(statement, SOURCE);
    job->source_message_id = hfi_column_text(statement, MESSAGE_ID);
    job->correlation_id = hfi_column_text(statement, CORRELATION);
    job->trace_context = hfi_column_text(statement, TRACE);
    job->tags = hfi_column_text(statement, TAGS);
    job->content_type = hfi_column_text(statement, CONTENT_TYPE);
    if (sqlite3_column_type(statement, LONG_PAYLOAD) != SQLITE_NULL) {
        job->payload = sqlite3_column_blob(statement, LONG_PAYLOAD);
        job->payload_length = (size_t)sqlite3_column_bytes(statement, LONG_PAYLOAD);
    }
}

static void read_counts(sqlite3_stmt *statement, struct hfi_job *job) {
    job->executions = count_at(statement, EXECUTIONS);
    job->failures = count_at(statement, FAILURES);
    job->snoozes = count_at(statement, SNOOZES);
    job->crashes = count_at(statement, CRASHES);
    job->give_backs = count_at(statement, GIVE_BACKS);
    job->deaths = count_at(statement, DEATHS);
    job->max_executions = count_at(statement, MAX_EXECUTIONS);
}

/* Everything but what the lane and the policy say. Texts are SQLite's, until the next step. */
void hfi_sqlite_read_row(sqlite3_stmt *statement, struct hfi_job *job, int64_t *policy_id) {
    *job = (struct hfi_job){
        .id = sqlite3_column_int64(statement, ID),
        .state = sqlite3_column_int(statement, STATE),
        .priority = sqlite3_column_int(statement, PRIORITY),
        .lane = sqlite3_column_int64(statement, LANE),
        .run_at_us = sqlite3_column_int64(statement, RUN_AT),
        .expires_at_us = sqlite3_column_int64(statement, EXPIRES),
        .created_at_us = sqlite3_column_int64(statement, CREATED),
        .started_at_us = sqlite3_column_int64(statement, STARTED),
        .finished_at_us = sqlite3_column_int64(statement, FINISHED),
        .epoch = sqlite3_column_int64(statement, EPOCH),
        .owner = sqlite3_column_int64(statement, OWNER),
        .not_repeatable = sqlite3_column_int(statement, MARKS) & MARK_NOT_REPEATABLE,
        .runs_code = sqlite3_column_int(statement, MARKS) & MARK_RUNS_CODE,
        .alone = sqlite3_column_int(statement, MARKS) & MARK_ALONE,
        .execution_timeout_ms = -1,
        .root_id = sqlite3_column_int64(statement, ROOT),
        .parent_id = sqlite3_column_int64(statement, PARENT),
        .cancel_requested_at_us = sqlite3_column_int64(statement, CANCEL_AT),
        .crash_window_us = sqlite3_column_int64(statement, CRASH_WINDOW),
        .waiting_since_us = sqlite3_column_int64(statement, WAITING),
        .progress = sqlite3_column_int64(statement, PROGRESS),
        .type = "", .queue = "", .downstream = "", .breaker_key = "", .limit_key = "", .idempotency_key = "",
        .source = "", .source_message_id = "", .correlation_id = "", .trace_context = "", .tags = "", .content_type = "",
        .unique_key = hfi_column_text(statement, UNIQUE_SCOPE),
        .reason = hfi_column_text(statement, REASON),
        .error_class = hfi_column_text(statement, ERROR_CLASS),
        .error_type = hfi_column_text(statement, ERROR_TYPE),
        .error_message = hfi_column_text(statement, ERROR_MESSAGE),
        .cancel_by = hfi_column_text(statement, CANCEL_BY),
        .cancel_reason = hfi_column_text(statement, CANCEL_REASON),
        .payload = sqlite3_column_blob(statement, PAYLOAD),
        .payload_length = (size_t)sqlite3_column_bytes(statement, PAYLOAD),
        .result = sqlite3_column_blob(statement, RESULT),
        .result_length = (size_t)sqlite3_column_bytes(statement, RESULT),
        .progress_text = hfi_column_text(statement, PROGRESS_TEXT),
    };
    read_counts(statement, job);
    if (job->root_id == 0)
        job->root_id = job->id;
    if (sqlite3_column_type(statement, TIMEOUT) != SQLITE_NULL)
        job->execution_timeout_ms = sqlite3_column_int64(statement, TIMEOUT);
    if (sqlite3_column_int(statement, HAS_SPEC))
        read_spec(statement, job);
    *policy_id = sqlite3_column_int64(statement, POLICY);
}

void hfi_sqlite_unscope(struct hfi_job *job) {
    job->unique_key = hfi_unique_unscope(job->unique_key, job);
}

/* The whole record. 0 or a fault. */
int hfi_sqlite_read_job(struct hfi_sqlite *store, sqlite3_stmt *statement, struct hfi_job *job) {
    int64_t policy_id;
    hfi_sqlite_read_row(statement, job, &policy_id);
    const struct hfi_lane_texts *lane = hfi_sqlite_lane_texts(store, job->lane);
    if (lane) {
        job->queue = lane->queue;
        job->type = lane->type;
        job->downstream = lane->downstream;
        job->breaker_key = lane->breaker_key;
        job->limit_key = lane->limit_key;
    }
    if (*job->unique_key)
        hfi_sqlite_unscope(job);
    if (policy_id != 0 && store->fault == 0)
        hfi_sqlite_policy_by_id(store, policy_id, &job->policy);
    return store->fault;
}

int hfi_sqlite_load(struct hfi_sqlite *store, int64_t id, struct hfi_job **job) {
    struct hfi_job row;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_JOB_LOAD);
    *job = NULL;
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    bool found = hfi_sql_row(store, statement);
    if (found && hfi_sqlite_read_job(store, statement, &row) == 0 && !(*job = hfi_job_copy(&row)))
        hfi_sqlite_no_memory(store);
    hfi_sql_done(statement);
    return store->fault != 0 ? store->fault : found ? 0 : HF_ENOENT;
}

void hfi_sqlite_count(struct hfi_sqlite *store, int from, int to) {
    int last = HFI_COUNTED_STATES - 1;
    store->counted = true;
    if (from >= 0)
        store->delta[from < last ? from : last]--;
    if (to >= 0)
        store->delta[to < last ? to : last]++;
}

static bool same_text(const char *a, const char *b) {
    return a == b || strcmp(a, b) == 0;
}

/* Is the difference only in what HFI_JOB_HOT writes? */
static bool only_hot(const struct hfi_job *from, const struct hfi_job *to) {
    return from->lane == to->lane && from->snoozes == to->snoozes && from->crashes == to->crashes && from->give_backs == to->give_backs &&
           from->deaths == to->deaths && from->expires_at_us == to->expires_at_us &&
           from->cancel_requested_at_us == to->cancel_requested_at_us && from->crash_window_us == to->crash_window_us &&
           from->waiting_since_us == to->waiting_since_us &&
           from->result_length == 0 && to->result_length == 0 && same_text(from->reason, to->reason) &&
           same_text(from->error_class, to->error_class) && same_text(from->error_type, to->error_type) &&
           same_text(from->error_message, to->error_message) && same_text(from->cancel_by, to->cancel_by) &&
           same_text(from->cancel_reason, to->cancel_reason);
}

static void bind_fence(sqlite3_stmt *statement, const struct hfi_job *from) {
    sqlite3_bind_int64(statement, 1, from->id);
    sqlite3_bind_int64(statement, 2, from->epoch);
    sqlite3_bind_int(statement, 3, from->state);
    sqlite3_bind_int64(statement, 4, from->cancel_requested_at_us);
}

static void bind_hot(sqlite3_stmt *statement, const struct hfi_job *to) {
    sqlite3_bind_int(statement, 5, to->state);
    sqlite3_bind_int64(statement, 6, to->run_at_us);
    sqlite3_bind_int64(statement, 7, to->epoch);
    hfi_bind_number(statement, 8, to->owner);
    sqlite3_bind_int64(statement, 9, to->executions);
    sqlite3_bind_int64(statement, 10, to->failures);
    hfi_bind_number(statement, 11, to->started_at_us);
    hfi_bind_number(statement, 12, to->finished_at_us);
    hfi_bind_number(statement, 13, to->policy ? to->policy->id : 0);
    hfi_bind_number(statement, 30, (to->not_repeatable ? MARK_NOT_REPEATABLE : 0) | (to->runs_code ? MARK_RUNS_CODE : 0) |
                                       (to->alone ? MARK_ALONE : 0));
}

static void bind_cold(struct hfi_sqlite *store, sqlite3_stmt *statement, const struct hfi_job *to) {
    hfi_bind_number(statement, 14, to->snoozes);
    hfi_bind_number(statement, 15, to->crashes);
    hfi_bind_number(statement, 16, to->give_backs);
    hfi_bind_number(statement, 17, to->deaths);
    hfi_bind_number(statement, 18, to->expires_at_us);
    hfi_bind_number(statement, 19, to->cancel_requested_at_us);
    hfi_bind_number(statement, 20, to->crash_window_us);
    hfi_bind_number(statement, 21, to->waiting_since_us);
    hfi_bind_text(statement, 23, to->reason);
    hfi_bind_text(statement, 24, to->error_class);
    hfi_bind_text(statement, 25, to->error_type);
    hfi_bind_text(statement, 26, store->lean ? NULL : to->error_message);
    hfi_bind_text(statement, 27, to->cancel_by);
    hfi_bind_text(statement, 28, to->cancel_reason);
    hfi_bind_bytes(statement, 29, to->result, to->result_length);
    sqlite3_bind_int64(statement, 31, to->lane);
}

/* Suspects wait in lanes of their own, and so do the jobs of each breaker: nobody reads past them. */
static bool other_lane(const struct hfi_job *from, const struct hfi_job *to) {
    return hfi_wants_alone(from) != hfi_wants_alone(to) || !same_text(from->breaker_key, to->breaker_key);
}

static int change_lane(struct hfi_sqlite *store, struct hfi_job *job) {
    struct hfi_lane_texts lane = {.queue = job->queue, .type = job->type, .downstream = job->downstream,
                                  .breaker_key = job->breaker_key, .limit_key = job->limit_key,
                                  .alone = hfi_wants_alone(job)};
    return hfi_sqlite_lane(store, &lane, &job->lane);
}

int hfi_sqlite_store_row(struct hfi_sqlite *store, const struct hfi_job *from, const struct hfi_job *to, bool *written) {
    struct hfi_job moved;
    if (other_lane(from, to)) {
        moved = *to;
        to = &moved;
        if (change_lane(store, &moved) != 0)
            return store->fault;
    }
    bool hot = only_hot(from, to);
    sqlite3_stmt *statement = hfi_sql(store, hot ? HFI_SQL_JOB_HOT : HFI_SQL_JOB_ALL);
    *written = false;
    if (!statement)
        return store->fault;
    bind_fence(statement, from);
    bind_hot(statement, to);
    if (!hot)
        bind_cold(store, statement, to);
    if (hfi_sql_run(store, statement) != 0)
        return store->fault;
    *written = sqlite3_changes(store->db) > 0;
    if (!*written)
        return 0;
    if (from->state != to->state) {
        hfi_sqlite_count(store, from->state, to->state);
        if (store->gauges_stand)
            hfi_sqlite_lane_moved(store, to->lane, (to->state == HF_JOB_RUNNING) - (from->state == HF_JOB_RUNNING));
    }
    if (to->state == HF_JOB_PENDING)
        hfi_sqlite_lane_due(store, to->lane, to->run_at_us, to->priority);
    return 0;
}

static uint32_t unique_states(const struct hfi_job *job) {
    return job->unique_states != 0 ? job->unique_states : HFI_UNIQUE_STATES;
}

static bool needs_spec(const struct hfi_job *job) {
    return *job->idempotency_key || *job->source || *job->source_message_id || *job->correlation_id ||
           *job->trace_context || *job->tags || *job->content_type || job->payload_length > INLINE_PAYLOAD;
}

static int insert_spec(struct hfi_sqlite *store, const struct hfi_job *job) {
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_SPEC_ADD);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, job->id);
    hfi_bind_text(statement, 2, job->idempotency_key);
    hfi_bind_text(statement, 3, job->source);
    hfi_bind_text(statement, 4, job->source_message_id);
    hfi_bind_text(statement, 5, job->correlation_id);
    hfi_bind_text(statement, 6, job->trace_context);
    hfi_bind_text(statement, 7, job->tags);
    hfi_bind_text(statement, 8, job->content_type);
    hfi_bind_bytes(statement, 9, job->payload, job->payload_length > INLINE_PAYLOAD ? job->payload_length : 0);
    return hfi_sql_run(store, statement);
}

/* Before its spec goes. */
int hfi_sqlite_tags_drop(struct hfi_sqlite *store, int64_t id) {
    char tags[HFI_TAGS_MAX + 1] = "", tag[HFI_TAGS_MAX + 1];
    const char *at = tags;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_SPEC_TAGS);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    if (hfi_sql_row(store, statement))
        hfi_text_copy(tags, sizeof tags, hfi_column_text(statement, 0));
    hfi_sql_done(statement);
    while (store->fault == 0 && hfi_tag_next(&at, tag)) {
        if (!(statement = hfi_sql(store, HFI_SQL_TAG_DROP)))
            return store->fault;
        sqlite3_bind_text(statement, 1, tag, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, id);
        hfi_sql_run(store, statement);
    }
    return store->fault;
}

/* Each word of its tags, so that lists find it by one. */
static int insert_tags(struct hfi_sqlite *store, const struct hfi_job *job) {
    char tag[HFI_TAGS_MAX + 1];
    for (const char *at = job->tags; hfi_tag_next(&at, tag);) {
        sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_TAG_ADD);
        if (!statement)
            return store->fault;
        sqlite3_bind_text(statement, 1, tag, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, job->id);
        if (hfi_sql_run(store, statement) != 0)
            return store->fault;
    }
    return 0;
}

/* A new job; id, lane and policy are set. 0 or a fault. */
int hfi_sqlite_insert_row(struct hfi_sqlite *store, struct hfi_job *job) {
    char scope[HFI_UNIQUE_SCOPE_MAX + 1];
    bool spec = needs_spec(job);
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_JOB_ADD);
    if (!statement)
        return store->fault;
    hfi_unique_scope(scope, sizeof scope, job);
    sqlite3_bind_int64(statement, 1, job->id);
    sqlite3_bind_int(statement, 2, job->state);
    sqlite3_bind_int(statement, 3, job->priority);
    sqlite3_bind_int64(statement, 4, job->lane);
    sqlite3_bind_int64(statement, 5, job->run_at_us);
    sqlite3_bind_int64(statement, 6, job->created_at_us);
    hfi_bind_number(statement, 7, job->expires_at_us);
    hfi_bind_number(statement, 8, job->max_executions);
    if (job->execution_timeout_ms >= 0)
        sqlite3_bind_int64(statement, 9, job->execution_timeout_ms);
    else
        sqlite3_bind_null(statement, 9);
    hfi_bind_number(statement, 10, job->policy ? job->policy->id : 0);
    hfi_bind_number(statement, 11, job->root_id == job->id ? 0 : job->root_id);
    hfi_bind_number(statement, 12, job->parent_id);
    hfi_bind_number(statement, 13, *scope ? unique_states(job) : 0);
    hfi_bind_text(statement, 14, scope);
    hfi_bind_text(statement, 15, job->reason);
    sqlite3_bind_int(statement, 16, spec);
    hfi_bind_bytes(statement, 17, job->payload, job->payload_length > INLINE_PAYLOAD ? 0 : job->payload_length);
    if (hfi_sql_run(store, statement) != 0 || (spec && (insert_spec(store, job) != 0 || insert_tags(store, job) != 0)))
        return store->fault;
    hfi_sqlite_count(store, -1, job->state);
    if (job->state == HF_JOB_PENDING)
        hfi_sqlite_lane_due(store, job->lane, job->run_at_us, job->priority);
    return 0;
}

static int drop(struct hfi_sqlite *store, enum hfi_sql which, int64_t id) {
    sqlite3_stmt *statement = hfi_sql(store, which);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, id);
    return hfi_sql_run(store, statement);
}

int hfi_sqlite_become_row(struct hfi_sqlite *store, struct hfi_job *job) {
    bool spec = needs_spec(job);
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_JOB_BECOME);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, job->id);
    sqlite3_bind_int(statement, 2, job->priority);
    sqlite3_bind_int64(statement, 3, job->lane);
    sqlite3_bind_int64(statement, 4, job->run_at_us);
    hfi_bind_number(statement, 5, job->expires_at_us);
    hfi_bind_number(statement, 6, job->max_executions);
    if (job->execution_timeout_ms >= 0)
        sqlite3_bind_int64(statement, 7, job->execution_timeout_ms);
    else
        sqlite3_bind_null(statement, 7);
    hfi_bind_number(statement, 8, job->policy ? job->policy->id : 0);
    hfi_bind_number(statement, 9, unique_states(job));
    hfi_bind_text(statement, 10, job->reason);
    sqlite3_bind_int(statement, 11, spec);
    hfi_bind_bytes(statement, 12, job->payload, job->payload_length > INLINE_PAYLOAD ? 0 : job->payload_length);
    if (hfi_sql_run(store, statement) != 0 || hfi_sqlite_tags_drop(store, job->id) != 0 ||
        drop(store, HFI_SQL_PRUNE_SPEC, job->id) != 0 || drop(store, HFI_SQL_CHECKPOINT_DROP, job->id) != 0 ||
        (spec && (insert_spec(store, job) != 0 || insert_tags(store, job) != 0)))
        return store->fault;
    if (job->state == HF_JOB_PENDING)
        hfi_sqlite_lane_due(store, job->lane, job->run_at_us, job->priority);
    return 0;
}
