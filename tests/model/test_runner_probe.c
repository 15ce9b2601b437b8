/* SPDX-License-Identifier: MIT */
/* Probe requests in virtual time: no job is risked on a downstream that names a path to ask at (3.4). */
#include "runner_stage.h"

#include <string.h>

#define SECOND INT64_C(1000)
#define JOBS 50

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type;
    struct hfi_script_step job, probe; /* the answers now */
};

static struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    const struct world *world = user;
    (void)number;
    return strstr(spec->url, "/healthz") != NULL ? world->probe : world->job;
}

/* A node whose downstream refuses everything; the breaker has opened. Returns the jobs' attempts so far. */
static uint64_t open_world(struct world *world) {
    static const int64_t curve[] = {5000};
    memset(world, 0, sizeof *world);
    world->job = world->probe = hfi_script_code(5, 7, HF_SENT_NO);
    stage_open(&world->stage, decide, world);
    hf_policy_options_init(&world->policy);
    world->policy.retry_max = 0;
    world->policy.breaker_min_calls = 10;
    hf_downstream_options_init(&world->downstream);
    world->downstream.name = "shop";
    world->downstream.url = "http://shop.example/base";
    world->downstream.probe_path = "/healthz";
    world->downstream.policy = &world->policy;
    world->type = stage_http("order", "shop");
    stage_options(&world->options);
    world->options.types = &world->type;
    world->options.type_count = 1;
    world->options.downstreams = &world->downstream;
    world->options.downstream_count = 1;
    stage_begin(&world->stage, 0, &world->options);
    stage_advance(&world->stage, 500);
    for (int i = 0; i < JOBS; i++) {
        struct hf_job_spec spec = hf_job_of("order", "x");
        spec.curve_ms = curve;
        spec.curve_length = 1;
        spec.max_executions = 9;
        stage_put(&world->stage, &spec);
    }
    stage_advance(&world->stage, 1 * SECOND);
    return hfi_scripted_started(world->stage.scripted);
}

/* Every start from `from` on is a probe, at least `apart_ms` from the one before. */
static void only_probes(const struct world *world, uint64_t from, int64_t apart_ms) {
    const struct hfi_scripted *scripted = world->stage.scripted;
    for (uint64_t i = from; i < hfi_scripted_started(scripted); i++) {
        const struct hfi_script_record *record = hfi_scripted_record(scripted, i);
        assert_string_equal(record->url, "http://shop.example/base/healthz");
        assert_string_equal(record->method, "GET");
        assert_int_equal(record->body_length, 0);
        if (i > from)
            assert_true(record->started.us >= hfi_scripted_record(scripted, i - 1)->started.us + apart_ms * 1000);
    }
}

static void a_probe_request_is_asked_instead_of_a_job(void **state) {
    (void)state;
    static struct world world;
    uint64_t first = open_world(&world);
    assert_in_range(first, 10, JOBS);
    stage_advance(&world.stage, 300 * SECOND); /* it stays down: breaks of 5 to 60 s, each ended by one request */
    uint64_t down = hfi_scripted_started(world.stage.scripted);
    assert_in_range(down - first, 5, 40);
    only_probes(&world, first, 4 * SECOND);
    world.probe = hfi_script_status(5, 404); /* it answers, but that says nothing about its health */
    for (int i = 0; i < 70 && hfi_scripted_started(world.stage.scripted) == down; i++)
        stage_advance(&world.stage, 1 * SECOND); /* the rest of the break */
    stage_advance(&world.stage, 10 * SECOND);
    uint64_t strange = hfi_scripted_started(world.stage.scripted);
    assert_in_range(strange - down, 5, 12);
    only_probes(&world, down, 1 * SECOND);
    struct hf_runner_counts counts = stage_counts(&world.stage, 0);
    assert_int_equal(counts.started, first); /* no execution was spent on it, none was even begun */
    assert_int_equal(counts.rejected, 0);
    assert_int_equal(counts.parked, JOBS);
    world.job = world.probe = hfi_script_status(5, 200);
    stage_advance(&world.stage, 30 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, JOBS);
    counts = stage_counts(&world.stage, 0);
    assert_int_equal(counts.started, first + JOBS);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), strange + 3 + JOBS); /* three probes close it */
    assert_int_equal(counts.attempts, hfi_scripted_started(world.stage.scripted));
    uint64_t healthy = hfi_scripted_started(world.stage.scripted);
    stage_advance(&world.stage, 600 * SECOND);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), healthy);
    stage_close(&world.stage);
}

/* Nobody waits: nobody is asked. */
static void without_due_jobs_nothing_is_asked(void **state) {
    (void)state;
    static struct world world;
    uint64_t first = open_world(&world);
    struct hfi_op_pause pause = {.queue = "default", .pause = true, .actor = "test",
                                 .now = world.stage.scheduler->ops->wall(world.stage.scheduler)};
    assert_int_equal(stage_do(&world.stage, &pause.op, HFI_OP_PAUSE), 0);
    stage_advance(&world.stage, 1 * SECOND);
    uint64_t before = hfi_scripted_started(world.stage.scripted);
    stage_advance(&world.stage, 300 * SECOND);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), before);
    assert_true(before >= first);
    stage_close(&world.stage);
}

static void a_drain_does_not_wait_for_a_probe_that_hangs(void **state) {
    (void)state;
    static struct world world;
    uint64_t first = open_world(&world);
    world.probe = hfi_script_hang(true);
    stage_advance(&world.stage, 10 * SECOND);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), first + 1);
    assert_int_equal(hfi_scripted_open(world.stage.scripted), 1);
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 100);
    assert_true(stage_over(&world.stage, 0));
    assert_int_equal(hfi_scripted_open(world.stage.scripted), 0);
    stage_close(&world.stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_request_is_asked_instead_of_a_job),
        cmocka_unit_test(without_due_jobs_nothing_is_asked),
        cmocka_unit_test(a_drain_does_not_wait_for_a_probe_that_hangs),
    };
    return cmocka_run_group_tests_name("runner_probe", tests, NULL, NULL) ? 1 : 0;
}
