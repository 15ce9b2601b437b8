/* SPDX-License-Identifier: MIT */
/*
 * The simulator: its loads and delays by themselves, what a scenario may not be, and whole runs against what the formulae
 * of retries, budget, window and ramp say.
 */
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "holdfast/log.h"
#include "holdfast/simulate.h"
#include "sim/draw.h"
#include "sim/load.h"

struct stage {
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type;
    struct hf_runner_options node;
    struct hf_load loads[2];
    struct hf_script_phase phases[3];
    struct hf_scenario scenario;
};

/* 50 calls a second for 10 minutes; 20 ms each, without jitter of any kind. */
static void set(struct stage *stage) {
    memset(stage, 0, sizeof *stage);
    hf_policy_options_init(&stage->policy);
    stage->downstream = hf_downstream_at("shop", "http://shop.example");
    stage->downstream.policy = &stage->policy;
    hf_type_options_init(&stage->type);
    stage->type.kind = HF_KIND_HTTP;
    stage->type.name = "order";
    stage->type.downstream = "shop";
    stage->node = hf_runner_calling(&stage->downstream, 1);
    stage->node.types = &stage->type;
    stage->node.type_count = 1;
    hf_load_init(&stage->loads[0], HF_LOAD_CONSTANT);
    stage->loads[0].rate = 50;
    stage->loads[1] = stage->loads[0];
    for (int i = 0; i < 3; i++)
        hf_script_phase_init(&stage->phases[i]);
    hf_scenario_init(&stage->scenario);
    stage->scenario.node = &stage->node;
    stage->scenario.downstream = "shop";
    stage->scenario.loads = stage->loads;
    stage->scenario.load_count = 1;
    stage->scenario.phases = stage->phases;
    stage->scenario.phase_count = 1;
    stage->scenario.seed = 7;
}

/* All of it fails between `from` and `until`, by status 503. */
static void set_outage(struct stage *stage, int64_t from_ms, int64_t until_ms) {
    stage->phases[1].at_ms = from_ms;
    stage->phases[1].share[HF_FAILING_STATUS] = 1;
    stage->phases[2].at_ms = until_ms;
    stage->scenario.phase_count = 3;
}

static struct hf_simulation *run(struct stage *stage) {
    struct hf_simulation *simulation = NULL;
    struct hf_error error = hf_error_none();
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    if (hf_simulate(&stage->scenario, &simulation, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    return simulation;
}

static uint64_t count(const struct hf_load *options, int64_t duration_ms, int64_t *last_us) {
    struct hfi_load load;
    uint64_t number = 0;
    hfi_load_init(&load, options, duration_ms, 3);
    for (int64_t at = 0, before = 0; (at = hfi_load_next(&load)) != HFI_FOREVER_US; before = at, number++) {
        assert_true(at >= before);
        *last_us = at;
    }
    return number;
}

static void loads_come_as_often_as_they_say(void **state) {
    (void)state;
    static const int64_t recorded[] = {0, 10, 10, 5000000, 70000000};
    struct hf_load load;
    int64_t last;
    hf_load_init(&load, HF_LOAD_CONSTANT);
    load.rate = 3;
    assert_int_equal(count(&load, 60000, &last), 180);
    load.from_ms = 30000;
    load.until_ms = 50000;
    assert_int_equal(count(&load, 60000, &last), 60);
    load.kind = HF_LOAD_POISSON;
    load.rate = 1000;
    assert_in_range(count(&load, 60000, &last), 20000 - 600, 20000 + 600); /* four deviations */
    load.kind = HF_LOAD_RAMP;
    load.rate_to = 0;
    assert_in_range(count(&load, 60000, &last), 10000, 10001); /* the area under it */
    load.rate = 0;
    load.rate_to = 1000;
    assert_in_range(count(&load, 60000, &last), 10000, 10001);
    load.kind = HF_LOAD_HERD;
    load.burst = 100;
    load.every_ms = 5000;
    load.spread_ms = 1000;
    assert_int_equal(count(&load, 60000, &last), 400);
    assert_in_range(last, 45000000, 46000000);
    load.kind = HF_LOAD_REPLAY;
    load.from_ms = load.until_ms = 0;
    load.arrivals_us = recorded;
    load.arrival_count = 5;
    assert_int_equal(count(&load, 60000, &last), 4);
    assert_int_equal(last, 5000000);
}

static int ascending(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

#define DRAWN 40000
static void draw(const struct hf_delay *shape, int64_t *drawn) {
    struct hfi_random random;
    struct hfi_delay delay;
    hfi_random_seed(&random, 5);
    assert_int_equal(hfi_delay_init(&delay, shape), 0);
    for (int i = 0; i < DRAWN; i++)
        drawn[i] = hfi_delay_draw(&delay, &random);
    hfi_delay_end(&delay);
    qsort(drawn, DRAWN, sizeof *drawn, ascending);
}

static void delays_have_the_shape_they_are_given(void **state) {
    (void)state;
    static int64_t drawn[DRAWN];
    static const struct hf_delay_step steps[] = {{1000, 10}, {2000, 0}, {4000, 30}};
    struct hf_delay shape = {.median_us = 40000};
    draw(&shape, drawn);
    assert_int_equal(drawn[0], 40000);
    assert_int_equal(drawn[DRAWN - 1], 40000);
    shape.p99_us = 400000;
    draw(&shape, drawn);
    assert_in_range(drawn[DRAWN / 2], 39000, 41000);
    assert_in_range(drawn[DRAWN / 100 * 99], 370000, 430000);
    shape = (struct hf_delay){.steps = steps, .step_count = 3};
    draw(&shape, drawn);
    assert_in_range(drawn[DRAWN / 4 - 400], 900, 1000);
    assert_in_range(drawn[DRAWN / 4 + 400], 2000, 2100);
    assert_in_range(drawn[DRAWN - 1], 3990, 4000);
    shape.tail_share = 0.1;
    shape.tail_median_us = 9000000;
    draw(&shape, drawn);
    assert_in_range(drawn[DRAWN / 100 * 88], 0, 4000);
    assert_int_equal(drawn[DRAWN / 100 * 92], 9000000);
}

/* A constant share of failures p, the breaker out of the way, n tries: (1 - p^n) / (1 - p) attempts a call. */
static void attempts_per_call_are_those_of_the_formula(void **state) {
    (void)state;
    static struct stage stage;
    set(&stage);
    stage.policy.breaker_ratio = 1;
    stage.policy.budget_ratio = 1;
    stage.policy.budget_floor = 100000;
    stage.loads[0].rate = 100;
    stage.phases[0].share[HF_FAILING_STATUS] = 0.3;
    struct hf_simulation *simulation = run(&stage);
    const struct hf_simulation_summary *summary = hf_simulation_summary(simulation);
    double expected = (1 - pow(0.3, 4)) / (1 - 0.3);
    assert_int_equal(summary->calls, 60000);
    assert_true(fabs(summary->amplification - expected) < 0.01);
    assert_true(fabs(summary->success_share - (1 - pow(0.3, 4))) < 0.002);
    assert_int_equal(summary->calls, summary->succeeded + summary->failed + summary->rejected + summary->open);
    hf_simulation_free(simulation);
}

/* Retries of a window are 20 % of its calls, once more of them are wanted. */
static void the_budget_settles_at_its_ratio(void **state) {
    (void)state;
    static struct stage stage;
    set(&stage);
    stage.policy.breaker_min_calls = 1000000;
    stage.loads[0].rate = 200;
    stage.phases[0].share[HF_FAILING_STATUS] = 1;
    struct hf_simulation *simulation = run(&stage);
    const struct hf_simulation_summary *summary = hf_simulation_summary(simulation);
    assert_true(fabs((double)summary->retries / (double)summary->calls - 0.2) < 0.01);
    assert_true(fabs(summary->amplification - 1.2) < 0.01);
    assert_true(summary->retries_refused > summary->calls / 2);
    hf_simulation_free(simulation);
}

/* At 50 calls a second all that fail have filled half of a window of 60 s, 3,000 calls, when 1,500 have; retries fill it sooner. */
static void the_window_trips_when_half_of_it_has_failed(void **state) {
    (void)state;
    static struct stage stage;
    set(&stage);
    stage.policy.retry_max = 0;
    set_outage(&stage, 120000, 240000);
    struct hf_simulation *simulation = run(&stage);
    const struct hf_simulation_summary *summary = hf_simulation_summary(simulation);
    assert_in_range(summary->to_open_ms, 27500, 32600); /* the window moves in steps of 5 s */
    assert_true(summary->to_close_ms >= stage.policy.breaker_ramp_ms);
    assert_true(summary->to_close_ms < 66000 + stage.policy.breaker_ramp_ms + 2000);
    assert_int_equal(hf_simulation_second_at(simulation, 200)->state, HF_BREAKER_OPEN);
    assert_int_equal(hf_simulation_second_at(simulation, 599)->state, HF_BREAKER_CLOSED);
    assert_int_equal(hf_simulation_change_at(simulation, 0)->to, HF_BREAKER_OPEN);
    hf_simulation_free(simulation);
}

/* 2.5: in a ramp of 10 s at most ceil(cap (0.1 + 0.9 t / 10 s)) begin in any 100 ms. */
static void the_ramp_holds_its_formula(void **state) {
    (void)state;
    static struct stage stage;
    set(&stage);
    stage.policy.retry_max = 0;
    stage.policy.bulkhead_max = 10;
    stage.loads[0].rate = 500;
    stage.phases[0].latency.median_us = stage.phases[2].latency.median_us = 1000;
    set_outage(&stage, 120000, 180000);
    struct hf_simulation *simulation = run(&stage);
    int64_t ramp_us = -1;
    for (size_t i = 0; i < hf_simulation_changes(simulation); i++)
        if (hf_simulation_change_at(simulation, i)->to == HF_BREAKER_RAMP)
            ramp_us = hf_simulation_change_at(simulation, i)->at_us;
    assert_true(ramp_us > 180000000);
    size_t first = (size_t)(ramp_us / 1000000) + 1;
    for (size_t i = first; i < first + 9; i++) {
        double end_s = (double)(i + 1) - (double)ramp_us / 1e6;
        assert_true(hf_simulation_second_at(simulation, i)->attempts <= 11 * ceil(10 * (0.1 + 0.9 * fmin(1, end_s / 10))));
    }
    assert_true(hf_simulation_second_at(simulation, first)->rejected > 250); /* it does hold back */
    hf_simulation_free(simulation);
}

static uint64_t digest(const void *data, size_t length, uint64_t sum) {
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return sum;
}

static uint64_t print_of(struct stage *stage) {
    struct hf_simulation *simulation = run(stage);
    uint64_t sum = digest(hf_simulation_summary(simulation), sizeof(struct hf_simulation_summary), 14695981039346656037u);
    for (size_t i = 0; i < hf_simulation_seconds(simulation); i++)
        sum = digest(hf_simulation_second_at(simulation, i), sizeof(struct hf_simulation_second), sum);
    for (size_t i = 0; i < hf_simulation_changes(simulation); i++)
        sum = digest(hf_simulation_change_at(simulation, i), sizeof(struct hf_simulation_change), sum);
    hf_simulation_free(simulation);
    return sum;
}

/* Calls and jobs, an outage, a crash, a step of the clock. */
static void set_all(struct stage *stage, struct hf_crash *crash, struct hf_clock_step *step) {
    set(stage);
    set_outage(stage, 120000, 240000);
    stage->phases[0].latency.p99_us = stage->phases[2].latency.p99_us = 300000;
    stage->loads[0].kind = HF_LOAD_POISSON;
    stage->loads[1].job = "order";
    stage->loads[1].rate = 5;
    stage->scenario.load_count = 2;
    stage->scenario.duration_ms = 900000;
    stage->scenario.crashes = crash;
    stage->scenario.crash_count = 1;
    stage->scenario.clock_steps = step;
    stage->scenario.clock_step_count = 1;
}

static void one_seed_gives_one_result(void **state) {
    (void)state;
    static struct stage stage;
    struct hf_crash crash = {300000, 20000};
    struct hf_clock_step step = {60000, -30000};
    set_all(&stage, &crash, &step);
    uint64_t first = print_of(&stage);
    assert_true(print_of(&stage) == first);
    stage.scenario.seed = 8;
    assert_true(print_of(&stage) != first);
}

static void jobs_are_parked_and_drain(void **state) {
    (void)state;
    static struct stage stage;
    struct hf_crash crash = {600000, 20000};
    struct hf_clock_step step = {60000, 1000};
    set_all(&stage, &crash, &step);
    stage.scenario.duration_ms = 1800000;
    struct hf_simulation *simulation = run(&stage);
    const struct hf_simulation_summary *summary = hf_simulation_summary(simulation);
    assert_int_equal(summary->jobs, 9000);
    assert_int_equal(summary->jobs, summary->jobs_succeeded + summary->deaths + summary->quarantined + summary->jobs_open);
    assert_true(summary->peak_parked > 200);
    assert_true(summary->peak_due + 20 >= summary->peak_parked); /* that is as old as a poll */
    assert_true(summary->to_drain_ms > 0);
    assert_true(summary->jobs_open < 20);
    assert_int_equal(summary->deaths, 0);
    assert_true(summary->never_made > 800 && summary->never_made < 1200);
    hf_simulation_free(simulation);
}

/* Ten places of 100 ms serve 100 calls a second. Of 200 the limits of the callers cut most, and the work is done for nobody. */
static void an_overloaded_downstream_works_for_nobody(void **state) {
    (void)state;
    static struct stage stage;
    set(&stage);
    stage.policy.attempt_timeout_ms = 1000;
    stage.policy.connect_timeout_ms = 500;
    stage.policy.bulkhead_max = 1000;
    stage.policy.breaker_min_calls = 1000000;
    stage.phases[0].latency.median_us = 100000;
    stage.scenario.capacity = 10;
    stage.scenario.queue = 10000;
    stage.loads[0].rate = 90;
    struct hf_simulation *simulation = run(&stage);
    assert_int_equal(hf_simulation_summary(simulation)->wasted, 0);
    hf_simulation_free(simulation);
    stage.loads[0].rate = 200;
    simulation = run(&stage);
    assert_true(hf_simulation_summary(simulation)->wasted > 50000);
    assert_true(hf_simulation_summary(simulation)->success_share < 0.1);
    assert_true(hf_simulation_summary(simulation)->busy_ms <= 6000100 && hf_simulation_summary(simulation)->busy_ms > 5900000);
    hf_simulation_free(simulation);
}

static void refused(struct stage *stage, const char *what) {
    struct hf_error error = hf_error_none();
    struct hf_simulation *simulation = NULL;
    assert_true(hf_scenario_check(&stage->scenario, &error) != 0);
    assert_string_equal(error.what, what);
    assert_true(error.why[0] != '\0' && error.fix[0] != '\0');
    assert_true(hf_simulate(&stage->scenario, &simulation, &error) != 0);
    assert_null(simulation);
}

static void impossible_scenarios_are_refused(void **state) {
    (void)state;
    static struct stage stage;
#define REFUSED(change, what)                                                                                          \
    do {                                                                                                               \
        set(&stage);                                                                                                   \
        change;                                                                                                        \
        refused(&stage, what);                                                                                         \
    } while (0)
    REFUSED(stage.scenario.duration_ms = 0, "duration");
    REFUSED(stage.scenario.duration_ms = INT64_MAX, "duration");
    REFUSED(stage.scenario.load_count = 0, "loads");
    REFUSED(stage.loads[0].rate = 0, "loads[0].rate");
    REFUSED(stage.loads[0].rate = NAN, "loads[0].rate");
    REFUSED((stage.loads[0].rate = 1e6, stage.scenario.duration_ms = 86400000), "loads");
    REFUSED(stage.loads[0].kind = HF_LOAD_REPLAY, "loads[0].arrivals");
    REFUSED(stage.loads[0].kind = HF_LOAD_HERD, "loads[0].burst");
    REFUSED(stage.loads[0].until_ms = stage.loads[0].from_ms = 5, "loads[0].until");
    REFUSED(stage.loads[0].job = "nobody", "loads");
    REFUSED(stage.scenario.downstream = "nobody", "downstream");
    REFUSED(stage.scenario.phase_count = 0, "phases");
    REFUSED(stage.phases[0].at_ms = 1, "phases[0].at");
    REFUSED(stage.scenario.phase_count = 2, "phases[1].at");
    REFUSED(stage.phases[0].share[HF_FAILING_HANG] = 1.5, "phases[0].errors.hang");
    REFUSED(stage.phases[0].share[HF_FAILING_HANG] = stage.phases[0].share[HF_FAILING_RESET] = 0.6, "phases[0].errors");
    REFUSED(stage.phases[0].status = 200, "phases[0].status");
    REFUSED(stage.phases[0].latency.median_us = 0, "phases[0].latency");
    REFUSED(stage.phases[0].latency.p99_us = 1, "phases[0].latency");
    REFUSED(stage.phases[0].flap_ms = 1000, "phases[0].flap");
    REFUSED(stage.scenario.capacity = 2000000, "capacity");
    struct hf_crash crash = {700000, 1};
    REFUSED((stage.scenario.crashes = &crash, stage.scenario.crash_count = 1), "crashes[0].at");
}

static bool stop_soon(int64_t done_ms, void *user) {
    *(int64_t *)user = done_ms;
    return done_ms < 5000;
}

static void a_run_can_be_ended(void **state) {
    (void)state;
    static struct stage stage;
    struct hf_simulation *simulation;
    int64_t seen = 0;
    set(&stage);
    stage.scenario.progress = stop_soon;
    stage.scenario.progress_user = &seen;
    assert_int_equal(hf_simulate(&stage.scenario, &simulation, NULL), HF_ECANCELED);
    assert_int_equal(seen, 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_come_as_often_as_they_say),
        cmocka_unit_test(delays_have_the_shape_they_are_given),
        cmocka_unit_test(attempts_per_call_are_those_of_the_formula),
        cmocka_unit_test(the_budget_settles_at_its_ratio),
        cmocka_unit_test(the_window_trips_when_half_of_it_has_failed),
        cmocka_unit_test(the_ramp_holds_its_formula),
        cmocka_unit_test(one_seed_gives_one_result),
        cmocka_unit_test(jobs_are_parked_and_drain),
        cmocka_unit_test(an_overloaded_downstream_works_for_nobody),
        cmocka_unit_test(impossible_scenarios_are_refused),
        cmocka_unit_test(a_run_can_be_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
