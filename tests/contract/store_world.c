/* SPDX-License-Identifier: MIT */
/* The words of store_world.h. Main thread only. */
#include "store_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "jobs/store/sqlite.h"
#include "sim/memory_store.h"
#include "support.h"

struct world world;

/* Snapshots that tests look at, until the end of their world. */
static struct hf_job *jobs_seen[8192];
static struct hf_dead *deads_seen[4096];
static size_t job_looks, dead_looks;

struct hfi_store *world_new_store(const char *kind, const struct hf_store_options *options) {
    struct hfi_store *store = NULL;
    if (strcmp(kind, "memory") == 0) {
        assert_int_equal(hfi_memory_store_new(options, &store), 0);
        return store;
    }
    static int number;
    char name[32];
    struct hf_error error;
    hf_error_init(&error);
    snprintf(name, sizeof name, "store-%d.db", number++);
    int code = hfi_sqlite_store_open(hf_test_path(name), options, &store, &error);
    if (code != 0)
        fail_msg("%s: %s", error.what, error.why);
    return store;
}

static void join(void) {
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "node-a", .host = "here", .boot = "boot-a",
                               .pid = 1, .now = world.now};
    assert_int_equal(world_do(&join.op), 0);
    world.node = join.node;
}

int world_open(void **state) {
    struct hf_store_options options;
    struct hf_runner_options runner;
    struct hf_sink_options sinks[2];
    (void)state;
    hf_store_options_init(&options);
    hf_runner_options_init(&runner);
    for (int i = 0; i < 2; i++) {
        hf_sink_options_init(&sinks[i]);
        sinks[i].name = i == 0 ? "ops" : "pager";
        sinks[i].url = "http://127.0.0.1:1/";
    }
    runner.sinks = sinks;
    runner.sink_count = 2;
    world.now.us = T0;
    world.forwards = NULL;
    world.store = world_new_store(world.kind, &options);
    hfi_curve_default(&world.curve);
    assert_int_equal(hfi_rulebook_new(&runner, &world.book, NULL), 0);
    join();
    return 0;
}

int world_close(void **state) {
    (void)state;
    while (world.owned_count > 0)
        hfi_free(world.owned[--world.owned_count]);
    while (job_looks > 0)
        hf_job_free(jobs_seen[--job_looks]);
    while (dead_looks > 0)
        hf_dead_free(deads_seen[--dead_looks]);
    hfi_rulebook_free(world.book);
    world.store->ops->close(world.store);
    return 0;
}

int world_run(int argc, char **argv, const struct CMUnitTest *tests, size_t count) {
    world.kind = argc > 1 ? argv[1] : "memory";
    printf("store: %s\n", world.kind);
    fflush(stdout);
    return _cmocka_run_group_tests("store", tests, count, NULL, NULL) ? 1 : 0;
}

int world_do(struct hfi_op *op) {
    struct hfi_op_claim *claim = op->kind == HFI_OP_CLAIM ? (struct hfi_op_claim *)(void *)op : NULL;
    op->code = 1;
    world.store->ops->commit(world.store, &op, 1);
    if (claim && op->code == HF_ESTALE && claim->node == world.node) { /* swept, or another store: it comes back */
        join();
        claim->node = world.node;
        op->code = 1;
        world.store->ops->commit(world.store, &op, 1);
    }
    assert_true(op->code <= 0);
    return op->code;
}

struct hf_job_spec world_spec(const char *type, const char *queue) {
    struct hf_job_spec spec;
    hf_job_spec_init(&spec);
    spec.type = type;
    spec.queue = queue;
    spec.downstream = "shop";
    return spec;
}

int world_put_existing(const struct hf_job_spec *spec, int64_t *id, bool *existed) {
    struct hfi_put put = {.id = 0};
    struct hfi_spec_room room;
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = &put, .count = 1};
    assert_int_equal(hfi_spec_check(spec, world.now, 1u << 20, &put.job, &room, NULL), 0);
    put.curve = room.curve.max_executions > 0 ? &room.curve : NULL;
    put.replace = room.replace;
    put.after = room.after;
    put.after_count = room.after_count;
    put.after_on_end = room.after_on_end;
    int code = world_do(&op.op);
    *id = put.id;
    *existed = put.existed;
    return code;
}

int64_t world_put(const struct hf_job_spec *spec) {
    int64_t id;
    bool existed;
    assert_int_equal(world_put_existing(spec, &id, &existed), 0);
    assert_false(existed);
    assert_true(id > 0);
    return id;
}

int64_t world_put_type(const char *type) {
    struct hf_job_spec spec = world_spec(type, NULL);
    return world_put(&spec);
}

int64_t world_lane(const char *queue, const char *type) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    int64_t lane = 0;
    assert_int_equal(world_do(&op.op), 0);
    for (size_t i = 0; i < op.count; i++)
        if (strcmp(op.rows[i].queue, queue) == 0 && strcmp(op.rows[i].type, type) == 0)
            lane = op.rows[i].lane;
    hfi_free(op.rows);
    assert_true(lane > 0);
    return lane;
}

struct hfi_lane_row world_lane_row(const char *type, const char *key) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now, .running = true};
    struct hfi_lane_row found = {0};
    char limit[64] = "";
    if (key)
        snprintf(limit, sizeof limit, "tenant:%s", key);
    assert_int_equal(world_do(&op.op), 0);
    for (size_t i = 0; i < op.count; i++)
        if (strcmp(op.rows[i].type, type) == 0 && strcmp(op.rows[i].limit_key, limit) == 0)
            found = op.rows[i];
    hfi_free(op.rows);
    assert_true(found.lane > 0);
    found.queue = found.type = found.breaker_key = found.limit_key = NULL;
    return found;
}

static struct hfi_job *own(struct hfi_job *job) {
    assert_true(world.owned_count < sizeof world.owned / sizeof *world.owned);
    world.owned[world.owned_count++] = job;
    return job;
}

size_t world_claim(int64_t lane, uint32_t max, bool start, struct hfi_job **jobs) {
    struct hfi_admitted admitted = {.lane = lane, .max = max, .policy = &world.curve};
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = world.node, .now = world.now, .start = start,
                              .lanes = &admitted, .lane_count = 1, .max = max, .jobs = jobs};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, admitted.claimed);
    for (size_t i = 0; i < op.count; i++)
        own(jobs[i]);
    return op.count;
}

struct hfi_job *world_start(int64_t lane) {
    struct hfi_job *job = NULL;
    return world_claim(lane, 1, true, &job) == 1 ? job : NULL;
}

struct hfi_job *world_start_type(const char *type) {
    return world_start(world_lane("default", type));
}

struct hfi_rules world_rules(void) {
    return (struct hfi_rules){.policy = &world.curve, .repeatable = true, .max_crashes = 3, .max_give_backs = 20,
                              .retry_after_cap_ms = 3600000, .give_up_after_ms = 86400000, .forwards = world.forwards};
}

int world_apply_full(struct hfi_job **job, struct hfi_event event, struct hfi_op_apply *op) {
    static const char *const sinks[] = {"ops", "pager"};
    memset(op, 0, sizeof *op);
    event.now = world.now;
    event.node = world.node;
    op->op.kind = HFI_OP_APPLY;
    op->job = *job;
    op->event = event;
    op->rules = world_rules();
    op->sinks = sinks;
    op->sink_count = 2;
    int code = world_do(&op->op);
    if (code == 0) {
        *job = own(hfi_job_copy(&op->change.job));
        assert_non_null(*job);
    }
    return code;
}

int world_apply(struct hfi_job **job, struct hfi_event event) {
    struct hfi_op_apply *op = malloc(sizeof *op);
    int code = world_apply_full(job, event, op);
    free(op);
    return code;
}

int world_fail(struct hfi_job **job, bool permanent) {
    struct hf_outcome outcome;
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL,
                    permanent ? HF_CLASS_PERMANENT : HF_CLASS_TRANSIENT, permanent ? "http.404" : "http.503",
                    permanent ? "http.4xx" : "http.5xx");
    outcome.sent = HF_SENT_YES;
    outcome.attempts = 2;
    outcome.retries = 1;
    hfi_outcome_message(&outcome, "the peer said no");
    return APPLY(job, FAILED, .outcome = &outcome, .detail = "the whole story");
}

int64_t world_die(const char *type, int64_t *job_id) {
    int64_t id = world_put_type(type);
    struct hfi_job *job = world_start_type(type);
    assert_non_null(job);
    assert_int_equal(job->id, id);
    assert_int_equal(world_fail(&job, true), 0);
    struct hf_dead_list *list = NULL;
    struct hf_dead_filter filter;
    hf_dead_filter_init(&filter);
    assert_int_equal(world.store->ops->list_dead(world.store, &filter, &list, NULL), 0);
    assert_true(hf_dead_list_count(list) > 0);
    assert_int_equal(hf_dead_list_at(list, 0)->job_id, id);
    int64_t dead_id = hf_dead_list_at(list, 0)->id;
    hf_dead_list_free(list);
    if (job_id)
        *job_id = id;
    return dead_id;
}

static struct hf_job *look(int64_t id) {
    struct hf_job *job = NULL;
    int code = world.store->ops->get_job(world.store, id, &job, NULL);
    if (code == HF_ENOENT)
        return NULL;
    assert_int_equal(code, 0);
    assert_true(job_looks < sizeof jobs_seen / sizeof *jobs_seen);
    return jobs_seen[job_looks++] = job;
}

const struct hf_job_view *world_job(int64_t id) {
    struct hf_job *job = look(id);
    return job ? hf_job_look(job) : NULL;
}

size_t world_history(int64_t id) {
    struct hf_job *job = look(id);
    assert_non_null(job);
    return hf_job_history_count(job);
}

const struct hf_history_view *world_past(int64_t id, size_t index) {
    struct hf_job *job = look(id);
    assert_non_null(job);
    assert_true(index < hf_job_history_count(job));
    return hf_job_history_at(job, index);
}

const struct hf_dead_view *world_dead(int64_t id) {
    struct hf_dead *dead = NULL;
    int code = world.store->ops->get_dead(world.store, id, &dead, NULL);
    if (code == HF_ENOENT)
        return NULL;
    assert_int_equal(code, 0);
    assert_true(dead_looks < sizeof deads_seen / sizeof *deads_seen);
    return hf_dead_look(deads_seen[dead_looks++] = dead);
}

size_t world_dead_count(int32_t status) {
    struct hf_dead_list *list = NULL;
    struct hf_dead_filter filter;
    hf_dead_filter_init(&filter);
    filter.status = status;
    filter.limit = 1000;
    assert_int_equal(world.store->ops->list_dead(world.store, &filter, &list, NULL), 0);
    size_t count = hf_dead_list_count(list);
    hf_dead_list_free(list);
    return count;
}

struct hf_job_counts world_counts(void) {
    struct hf_job_counts counts;
    hf_job_counts_init(&counts);
    assert_int_equal(world.store->ops->count_jobs(world.store, &counts, NULL), 0);
    return counts;
}

struct hf_dead_action world_action(const char *actor) {
    struct hf_dead_action action;
    hf_dead_action_init(&action);
    action.actor = actor;
    action.reason = "it is mended";
    return action;
}
