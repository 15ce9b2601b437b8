/* SPDX-License-Identifier: MIT */
/*
 * Five nodes and one downstream in virtual time [3.14]: together they probe no more than one would, and their ramp lets no
 * more through than one's.
 */
#include "runner_stage.h"

#include <string.h>

#include "seed.h"

#define SECOND INT64_C(1000)
#define NODES 5
#define PROBES 3
#define CAP 20
#define RAMP (10 * SECOND)

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type;
    struct hfi_script_step step;
    bool parked;   /* from now on whatever starts is a probe */
    size_t most;   /* open at once since then */
    struct hfi_random random;
};
static struct world world;

static struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)number;
    (void)user;
    size_t open = hfi_scripted_open(world.stage.scripted) + 1;
    if (world.parked && open > world.most)
        world.most = open;
    struct hfi_script_step step = world.step;
    if (step.delay_ms != HFI_SCRIPT_NEVER)
        step.delay_ms += (int64_t)hfi_random_below(&world.random, 20);
    return step;
}

static void open_world(const char *name, const char *probe_path) {
    memset(&world, 0, sizeof world);
    hfi_random_seed(&world.random, test_seed(name));
    stage_open(&world.stage, decide, NULL);
    hf_policy_options_init(&world.policy);
    world.policy.retry_max = 0;
    world.policy.breaker_min_calls = 10;
    world.policy.breaker_probes = PROBES;
    world.policy.breaker_ramp_ms = RAMP;
    world.policy.bulkhead_max = CAP;
    hf_downstream_options_init(&world.downstream);
    world.downstream.name = "shop";
    world.downstream.url = "http://shop.example";
    world.downstream.probe_path = probe_path;
    world.downstream.policy = &world.policy;
    world.type = stage_http("order", "shop");
    stage_options(&world.options);
    world.options.types = &world.type;
    world.options.type_count = 1;
    world.options.downstreams = &world.downstream;
    world.options.downstream_count = 1;
    for (size_t i = 0; i < NODES; i++)
        stage_begin(&world.stage, i, &world.options);
    stage_advance(&world.stage, 500);
}

static void put_many(int count) {
    static const int64_t curve[] = {3000};
    for (int i = 0; i < count; i++) {
        struct hf_job_spec spec = hf_job_of("order", "x");
        spec.curve_ms = curve;
        spec.curve_length = 1;
        spec.max_executions = 90;
        stage_put(&world.stage, &spec);
    }
}

static uint64_t starts(void) {
    return hfi_scripted_started(world.stage.scripted);
}

static int64_t now_us(void) {
    return world.stage.scheduler->ops->mono(world.stage.scheduler).us;
}

/* All of them know that it is down. */
static void break_it(void) {
    world.step = hfi_script_code(30, 7, HF_SENT_NO);
    put_many(2000);
    stage_advance(&world.stage, 3 * SECOND);
    world.parked = true;
}

static size_t in_state(enum hf_breaker_state state) {
    size_t count = 0;
    for (size_t i = 0; i < NODES; i++) {
        struct hfi_breaker_look look;
        hfi_breaker_look(&stage_downstream(&world.stage, i, "shop")->breaker, world.stage.scheduler->ops->mono(world.stage.scheduler), &look);
        count += look.state == state;
    }
    return count;
}

static void five_nodes_probe_like_one(void **state) {
    (void)state;
    open_world("five_nodes_probe_like_one", NULL);
    break_it();
    uint64_t before = starts();
    stage_advance(&world.stage, 300 * SECOND); /* breaks of 5, 10, 20, 40, 60 s … */
    assert_in_range(world.most, 1, PROBES);
    assert_in_range(starts() - before, 4, 10 * PROBES); /* and not five times that */
    stage_close(&world.stage);
}

static void probe_requests_are_one_nodes_too(void **state) {
    (void)state;
    open_world("probe_requests_are_one_nodes_too", "/healthz");
    break_it();
    uint64_t before = starts();
    stage_advance(&world.stage, 300 * SECOND);
    assert_int_equal(world.most, 1);
    assert_in_range(starts() - before, 4, 12);
    stage_close(&world.stage);
}

/* It is well again: one node finds out, all are on its ramp within a poll, and share what it allows. */
static void all_are_on_one_ramp(void **state) {
    (void)state;
    open_world("all_are_on_one_ramp", NULL);
    break_it();
    world.step = hfi_script_status(80, 200);
    for (int i = 0; i < 100000 && in_state(HF_BREAKER_RAMP) == 0; i++)
        stage_advance(&world.stage, 1);
    int64_t began = now_us();
    uint64_t first = starts();
    stage_advance(&world.stage, 300);
    assert_int_equal(in_state(HF_BREAKER_RAMP), NODES);
    assert_in_range(world.most, PROBES, PROBES);
    stage_advance(&world.stage, RAMP - 300);
    uint64_t last = starts(), others = 0;
    for (uint64_t i = first; i < last; i++) {
        if (hfi_scripted_record(world.stage.scripted, i)->started.us >= began + RAMP * 1000 - 10000)
            break; /* it is over on one or the other */
        const struct hfi_script_record *record = hfi_scripted_record(world.stage.scripted, i);
        int64_t at = record->started.us, within = 0, open = 0;
        int64_t allowed = (CAP * (RAMP * 1000 + 9 * (at - began)) + 10 * RAMP * 1000 - 1) / (10 * RAMP * 1000);
        for (uint64_t j = first; j <= i; j++) {
            const struct hfi_script_record *earlier = hfi_scripted_record(world.stage.scripted, j);
            within += earlier->started.us > at - 100000;
            open += earlier->end == HFI_SCRIPT_OPEN || earlier->ended.us > at;
        }
        if (within > allowed || open > allowed)
            fail_msg("%ld ms into the ramp: %ld started in 100 ms, %ld open, %ld allowed", (long)((at - began) / 1000),
                     (long)within, (long)open, (long)allowed);
    }
    assert_true(last - first > 300); /* it is used, too: half of it, on the average, would be about 700 */
    for (size_t i = 0; i < NODES; i++)
        others += stage_counts(&world.stage, i).succeeded > 0;
    assert_true(others >= 4); /* by all of them */
    world.parked = false;
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(in_state(HF_BREAKER_CLOSED), NODES);
    stage_advance(&world.stage, 600 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 2000);
    stage_close(&world.stage);
}

/* The one that has the probes can do nothing more: another one has them when its lease is over, not before. */
static void a_dead_nodes_probes_are_free_at_its_lease(void **state) {
    (void)state;
    open_world("a_dead_nodes_probes_are_free_at_its_lease", NULL);
    world.step = hfi_script_code(30, 7, HF_SENT_NO);
    put_many(400);
    stage_advance(&world.stage, 3 * SECOND);
    world.step = hfi_script_hang(true);
    for (int i = 0; i < 100 && in_state(HF_BREAKER_HALF_OPEN) == 0; i++)
        stage_advance(&world.stage, 100);
    size_t prober = 0;
    while (hfi_word_state(hfi_breaker_word(&stage_downstream(&world.stage, prober, "shop")->breaker)) != HF_BREAKER_HALF_OPEN)
        prober++;
    uint64_t before = starts();
    world.stage.nodes[prober].door.refuse = HF_EIO;
    world.step = hfi_script_status(20, 200);
    stage_advance(&world.stage, 40 * SECOND);
    assert_int_equal(starts(), before);
    stage_advance(&world.stage, 120 * SECOND);
    assert_true(starts() > before);
    assert_int_equal(stage_jobs(&world.stage).running, 0);
    world.stage.nodes[prober].door.refuse = 0;
    stage_close(&world.stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_nodes_probe_like_one),
        cmocka_unit_test(probe_requests_are_one_nodes_too),
        cmocka_unit_test(all_are_on_one_ramp),
        cmocka_unit_test(a_dead_nodes_probes_are_free_at_its_lease),
    };
    return cmocka_run_group_tests_name("runner_shared", tests, NULL, NULL) ? 1 : 0;
}
