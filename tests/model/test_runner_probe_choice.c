/* SPDX-License-Identifier: MIT */
/* Which job is spent as the probe of a broken downstream, in virtual time. */
#include "runner_stage.h"

#include <string.h>

#include "resilience/downstream.h"

#define SECOND INT64_C(1000)

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options types[2];
};

static struct hfi_script_step refuse(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)number;
    (void)user;
    return hfi_script_status(10, 503);
}

/* A node whose downstream fails and lies isolated for ten seconds; then one probe is let through. */
static void open_world(struct world *world) {
    memset(world, 0, sizeof *world);
    stage_open(&world->stage, refuse, world);
    hf_policy_options_init(&world->policy);
    world->policy.retry_max = 0;
    world->policy.breaker_probes = 1;
    world->policy.breaker_break_ms = 3600 * SECOND; /* after the first */
    world->policy.breaker_max_break_ms = 3600 * SECOND;
    hf_downstream_options_init(&world->downstream);
    world->downstream.name = "shop";
    world->downstream.url = "http://shop.example";
    world->downstream.policy = &world->policy;
    world->types[0] = stage_http("order", "shop");
    world->types[1] = stage_http("charge", "shop");
    world->types[1].repeatable = false;
    stage_options(&world->options);
    world->options.types = world->types;
    world->options.type_count = 2;
    world->options.downstreams = &world->downstream;
    world->options.downstream_count = 1;
    stage_begin(&world->stage, 0, &world->options);
    stage_advance(&world->stage, 100);
    hfi_breaker_isolate(&stage_downstream(&world->stage, 0, "shop")->breaker,
                        world->stage.scheduler->ops->mono(world->stage.scheduler), 10 * SECOND, "test");
    stage_advance(&world->stage, 100);
}

static int64_t put(struct world *world, const char *type, uint32_t max_executions) {
    struct hf_job_spec spec = hf_job_of(type, "x");
    spec.max_executions = max_executions;
    return stage_put(&world->stage, &spec);
}

static void probe_once(struct world *world) {
    stage_advance(&world->stage, 5 * SECOND);
    assert_int_equal(hfi_scripted_started(world->stage.scripted), 0);
    stage_advance(&world->stage, 15 * SECOND);
    assert_int_equal(hfi_scripted_started(world->stage.scripted), 1);
}

static uint32_t executions(struct world *world, int64_t id) {
    struct hf_job *job = stage_job(&world->stage, id);
    uint32_t count = hf_job_look(job)->executions;
    hf_job_free(job);
    return count;
}

/* 3.4: it would die of the failed probe, the fresh one behind it only waits. */
static void a_last_execution_is_not_spent_as_a_probe(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    int64_t last = put(&world, "order", 1), fresh = put(&world, "order", 5);
    probe_once(&world);
    assert_int_equal(executions(&world, last), 0);
    assert_int_equal(executions(&world, fresh), 1);
    assert_int_equal(stage_jobs(&world.stage).dead, 0);
    stage_close(&world.stage);
}

/* 3.4: nor what cannot be repeated. */
static void what_cannot_be_repeated_is_not_spent_as_a_probe(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    int64_t money = put(&world, "charge", 5), fresh = put(&world, "order", 5);
    probe_once(&world);
    assert_int_equal(executions(&world, money), 0);
    assert_int_equal(executions(&world, fresh), 1);
    assert_int_equal(stage_jobs(&world.stage).dead, 0);
    stage_close(&world.stage);
}

/* 3.4: with nothing better the first is the probe: a downstream is never left unasked. */
static void without_a_better_one_the_first_is_the_probe(void **state) {
    (void)state;
    static const char *const types[] = {"order", "charge"};
    for (int i = 0; i < 2; i++) {
        static struct world world;
        open_world(&world);
        int64_t first = put(&world, types[i], 1), second = put(&world, types[i], 1);
        probe_once(&world);
        assert_int_equal(stage_state(&world.stage, first), HF_JOB_DEAD);
        assert_int_equal(executions(&world, second), 0);
        stage_close(&world.stage);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_last_execution_is_not_spent_as_a_probe),
        cmocka_unit_test(what_cannot_be_repeated_is_not_spent_as_a_probe),
        cmocka_unit_test(without_a_better_one_the_first_is_the_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
