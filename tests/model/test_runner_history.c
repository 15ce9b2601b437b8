/* SPDX-License-Identifier: MIT */
/*
 * What a node leaves of its jobs, in virtual time: the steps of each in its history, jobs that wait for others started as
 * soon as those have ended, and rows that go when their time is over, in small pages with rests between them.
 */
#include "runner_stage.h"

#include <string.h>

#include "base/clock.h"
#include "jobs/deps.h"
#include "jobs/views.h"

#define SECOND INT64_C(1000)
#define HOUR (3600 * SECOND)

static int64_t put_after(struct stage *stage, const char *type, int64_t parent, bool on_end) {
    struct hf_job_spec spec = hf_job_of(type, "");
    spec.after_jobs = &parent;
    spec.after_count = 1;
    spec.after_on_end = on_end;
    return stage_put(stage, &spec);
}

static void open_noop(struct stage *stage, struct hf_runner_options *options, struct hf_type_options *type) {
    *type = stage_noop("tick");
    stage_open(stage, NULL, NULL);
    stage_options(options);
    options->types = type;
    options->type_count = 1;
}

/* S3.20: a long workflow, step by step; each step begins when the one before it ended, no poll between them. */
static void a_chain_runs_through_without_waiting_for_a_poll(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type;
    open_noop(&stage, &options, &type);
    options.poll_ms = 60 * SECOND;
    int64_t first = stage_enqueue(&stage, "tick", NULL), last = first;
    for (int i = 0; i < 40; i++)
        last = put_after(&stage, "tick", last, i % 2);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 500);
    assert_int_equal(stage_state(&stage, last), HF_JOB_SUCCEEDED);
    assert_int_equal(stage_jobs(&stage).succeeded, 41);
    stage_close(&stage);
}

/* More children than one transaction frees: the next rounds free the rest, and until_idle waits for them. */
static void many_children_are_all_run_before_the_node_ends(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type;
    open_noop(&stage, &options, &type);
    options.until_idle = true;
    int64_t first = stage_enqueue(&stage, "tick", NULL);
    for (int i = 0; i < 3 * HFI_SETTLE_MAX; i++)
        put_after(&stage, "tick", first, false);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 20 * SECOND);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage_jobs(&stage).succeeded, 3 * HFI_SETTLE_MAX + 1);
    assert_int_equal(stage_jobs(&stage).waiting, 0);
    stage_close(&stage);
}

/* Two parents whose ends share a commit: neither frees enough to show that some are left, and still nobody is forgotten. */
static void children_of_two_ends_in_one_commit_all_run(void **state) {
    (void)state;
    enum { EACH = HFI_SETTLE_MAX * 3 / 5 };
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type;
    open_noop(&stage, &options, &type);
    options.until_idle = true;
    int64_t parents[2] = {stage_enqueue(&stage, "tick", NULL), stage_enqueue(&stage, "tick", NULL)};
    for (int i = 0; i < 2 * EACH; i++)
        put_after(&stage, "tick", parents[i % 2], false);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 20 * SECOND);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage_jobs(&stage).waiting, 0);
    assert_int_equal(stage_jobs(&stage).succeeded, 2 * EACH + 2);
    stage_close(&stage);
}

/* Many jobs past their time end in pages that follow each other, not one a round. */
static void a_heap_of_expired_jobs_ends_soon(void **state) {
    (void)state;
    enum { EXPIRED = 5000 };
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type;
    open_noop(&stage, &options, &type);
    struct hf_job_spec spec = hf_job_of("tick", "");
    spec.expires_at_us = stage.scheduler->ops->wall(stage.scheduler).us + 1000000;
    for (int i = 0; i < EXPIRED; i++)
        stage_put(&stage, &spec);
    stage_advance(&stage, 2 * SECOND);
    int64_t live = stage_enqueue(&stage, "tick", NULL);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 3 * SECOND);
    assert_int_equal(stage_jobs(&stage).cancelled, EXPIRED);
    assert_int_equal(stage_state(&stage, live), HF_JOB_SUCCEEDED);
    stage_close(&stage);
}

static struct hfi_script_step answers(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)user;
    struct hfi_script_step step = hfi_script_status(10, number < 3 ? 503 : 200);
    step.connect_ms = 2;
    return step;
}

/* S3.13: what happened, in order: attempts, phases, rule, breaker, what it was afterwards. A success after failures is a
 * plain success: no dead letter, no alert (S1.9, I80). */
static void a_history_tells_each_execution(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type = stage_http("order", "shop");
    stage_open(&stage, answers, NULL);
    hf_policy_options_init(&policy);
    policy.retry_max = 0;
    hf_downstream_options_init(&downstream);
    downstream.name = "shop";
    downstream.url = "http://shop.example";
    downstream.policy = &policy;
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    options.downstreams = &downstream;
    options.downstream_count = 1;
    int64_t id = stage_enqueue(&stage, "order", NULL), cleanup = put_after(&stage, "order", id, false);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 3 * 3600 * SECOND);
    struct hf_job *job = stage_job(&stage, id);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(hf_job_history_count(job), 4);
    int64_t before = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const struct hf_history_view *step = hf_job_history_at(job, i);
        assert_int_equal(step->execution, i + 1);
        assert_string_equal(step->event, i < 3 ? "failed" : "succeeded");
        assert_string_equal(step->shown, i < 3 ? "retrying" : "succeeded");
        assert_string_equal(step->error_type, i < 3 ? "http.503" : "");
        assert_string_equal(step->breaker, "closed");
        assert_int_equal(step->attempts, 1);
        assert_int_equal(step->resolve_us, -1); /* there was none */
        assert_int_equal(step->connect_us, 2000);
        assert_in_range(step->total_us, 10000, 11000);
        assert_true(step->started_at_us > before && step->ended_at_us >= step->started_at_us);
        before = step->ended_at_us;
    }
    hf_job_free(job);
    assert_int_equal(stage_jobs(&stage).dead_letters_open + stage_jobs(&stage).alerts_unsent, 0);
    job = stage_job(&stage, cleanup);
    assert_int_equal(hf_job_history_count(job), 2);
    assert_string_equal(hf_job_history_at(job, 0)->event, "released");
    assert_string_equal(hf_job_history_at(job, 1)->event, "succeeded");
    hf_job_free(job);
    stage_close(&stage);
}

struct prunes {
    uint32_t most, least;
    int count, together; /* within 20 ms of each other */
    int64_t last_us;
    struct hfi_scheduler *scheduler;
};

static void watch_prunes(struct hfi_op *op, void *user) {
    struct prunes *prunes = user;
    if (op->kind != HFI_OP_PRUNE)
        return;
    const struct hfi_op_prune *prune = (const void *)op;
    int64_t now = prunes->scheduler->ops->mono(prunes->scheduler).us;
    prunes->most = prune->limit > prunes->most ? prune->limit : prunes->most;
    prunes->least = prune->limit < prunes->least ? prune->limit : prunes->least;
    prunes->together += prunes->count++ > 0 && now - prunes->last_us < 20 * SECOND;
    prunes->last_us = now;
}

/* S3.6, S1.22, I73: nothing goes before its time, all of it soon after, in pages of a few hundred with a rest after each. */
static void what_is_over_goes_in_small_pages(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type;
    open_noop(&stage, &options, &type);
    options.keep_succeeded_ms = 2 * HOUR;
    struct prunes prunes = {.least = UINT32_MAX, .scheduler = stage.scheduler};
    stage_enqueue_many(&stage, "tick", NULL, 9000);
    stage_begin(&stage, 0, &options);
    stage.nodes[0].door.hook = watch_prunes;
    stage.nodes[0].door.hook_user = &prunes;
    stage_advance(&stage, 2 * HOUR - 60 * SECOND);
    assert_int_equal(stage_jobs(&stage).succeeded, 9000);
    prunes.count = prunes.together = 0;
    stage_advance(&stage, 180 * SECOND);
    assert_int_equal(stage_jobs(&stage).succeeded, 0);
    assert_true(prunes.count > 9000 / 1000);
    assert_int_equal(prunes.together, 0);
    assert_in_range(prunes.most, 100, 1000);
    assert_true(prunes.least >= 100);
    stage_close(&stage);
}

static void nothing_goes_that_is_kept_for_ever(void **state) { /* S2.30 */
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type;
    open_noop(&stage, &options, &type);
    options.keep_succeeded_ms = 0;
    stage_enqueue_many(&stage, "tick", NULL, 50);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 3 * HOUR);
    assert_int_equal(stage_jobs(&stage).succeeded, 50);
    stage_close(&stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_runs_through_without_waiting_for_a_poll),
        cmocka_unit_test(many_children_are_all_run_before_the_node_ends),
        cmocka_unit_test(children_of_two_ends_in_one_commit_all_run),
        cmocka_unit_test(a_heap_of_expired_jobs_ends_soon),
        cmocka_unit_test(a_history_tells_each_execution),
        cmocka_unit_test(what_is_over_goes_in_small_pages),
        cmocka_unit_test(nothing_goes_that_is_kept_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
