/* SPDX-License-Identifier: MIT */
/*
 * A downstream with a breaker per host, in virtual time: a dead host keeps back its own jobs and nobody else's.
 */
#include "calls_world.h"

#define HOSTS 10
#define ROUNDS 30

static void put_for_hosts(struct world *world, bool named) {
    char payload[80], text[HF_HOST_LENGTH];
    for (int host = 0; host < HOSTS; host++) {
        const char *name = host == 0 ? "other" : "shop";
        snprintf(payload, sizeof payload, "{\"url\": \"http://%s%d.example/in\"}", name, host);
        struct hf_job_spec spec = hf_job_of("hook", payload);
        spec.max_executions = 100;
        spec.downstream = "hooks";
        assert_int_equal(hf_type_host(&world->type, payload, strlen(payload), text), 0);
        spec.host_url = named ? text : NULL;
        stage_put(&world->stage, &spec);
    }
}

/* 3.4: one of ten hosts is dead, and its jobs are parked; those of the others pass them by. Jobs that did not say whom
   they call are refused once before. */
static void a_dead_host_keeps_back_its_own(bool named, uint32_t rejected) {
    static struct world world;
    open_world(&world);
    world.downstream.name = "hooks";
    world.downstream.url = NULL;
    world.downstream.per_host = true;
    world.policy.breaker_min_calls = 5;
    world.type = stage_http("hook", "hooks");
    world.type.path = "";
    world.type.url = "{url}";
    world.other = hfi_script_code(5, 7, HF_SENT_NO);
    stage_begin(&world.stage, 0, &world.options);
    for (int round = 0; round < ROUNDS; round++) {
        put_for_hosts(&world, named);
        stage_advance(&world.stage, 20 * SECOND);
        assert_int_equal(stage_jobs(&world.stage).succeeded, (round + 1) * (HOSTS - 1));
    }
    struct hf_runner_counts counts = stage_counts(&world.stage, 0);
    uint64_t dead = hfi_scripted_started(world.stage.scripted) - ROUNDS * (HOSTS - 1);
    assert_in_range(dead, 5, 3 * ROUNDS); /* until it opens, then probes */
    assert_in_range(counts.rejected, 0, rejected);
    assert_int_equal(counts.claimed, ROUNDS * (HOSTS - 1) + dead + counts.rejected);
    assert_in_range(counts.parked, ROUNDS / 2, ROUNDS);
    assert_int_equal(counts.died, 0);
    world.other = hfi_script_status(10, 200);
    stage_advance(&world.stage, 7200 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, ROUNDS * HOSTS);
    stage_close(&world.stage);
}

static void a_dead_host_parks_its_own_jobs(void **state) {
    (void)state;
    a_dead_host_keeps_back_its_own(true, 5); /* in flight while it opened */
}

static void jobs_of_no_named_host_are_parked_after_one_refusal(void **state) {
    (void)state;
    a_dead_host_keeps_back_its_own(false, ROUNDS);
}

static void put_for_dead(struct world *world, int host, int jobs) {
    char payload[80], text[HF_HOST_LENGTH];
    snprintf(payload, sizeof payload, "{\"url\": \"http://other%d.example/in\"}", host);
    for (int i = 0; i < jobs; i++) {
        struct hf_job_spec spec = hf_job_of("hook", payload);
        spec.max_executions = 1;
        spec.downstream = "hooks";
        assert_int_equal(hf_type_host(&world->type, payload, strlen(payload), text), 0);
        spec.host_url = text;
        stage_put(&world->stage, &spec);
    }
}

/* 3.4: hosts whose jobs are gone leave their places though their breakers never closed: the next dead one is parked. */
static void a_dead_host_without_jobs_leaves_its_place(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.downstream.name = "hooks";
    world.downstream.url = NULL;
    world.downstream.per_host = true;
    world.downstream.hosts_max = 4; /* two sites */
    world.policy.breaker_min_calls = 5;
    world.type = stage_http("hook", "hooks");
    world.type.path = "";
    world.type.url = "{url}";
    world.other = hfi_script_code(5, 7, HF_SENT_NO);
    stage_begin(&world.stage, 0, &world.options);
    for (int host = 0; host < 2; host++) {
        put_for_dead(&world, host, 8);
        stage_advance(&world.stage, 3600 * SECOND);
    }
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, 16);
    uint64_t before = stage_counts(&world.stage, 0).rejected, parked = stage_counts(&world.stage, 0).parked;
    put_for_dead(&world, 2, 40);
    stage_advance(&world.stage, 10 * SECOND);
    put_for_dead(&world, 2, 40);
    stage_advance(&world.stage, 600 * SECOND);
    assert_in_range(stage_counts(&world.stage, 0).rejected - before, 0, 35); /* in flight while it opened */
    assert_true(stage_counts(&world.stage, 0).parked > parked);
    stage_close(&world.stage);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_host_parks_its_own_jobs),
        cmocka_unit_test(jobs_of_no_named_host_are_parked_after_one_refusal),
        cmocka_unit_test(a_dead_host_without_jobs_leaves_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
