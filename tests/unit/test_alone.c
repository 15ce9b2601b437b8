/* SPDX-License-Identifier: MIT */
/*
 * Jobs that crashed twice beside others [3.5, I13]: started alone, others wait, and nobody waits for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "claim_sim.h"
#include "jobs/runner/lane.h"
#include "seed.h"

#define SECOND INT64_C(1000000)
#define WAIT (HFI_ALONE_WAIT_MS * INT64_C(1000))
#define RUN (HFI_ALONE_RUN_MS * INT64_C(1000))
enum { ORDINARY = 1, SUSPECT, ASYNC };

struct stage {
    struct hf_runner_options options;
    struct hfi_type native, noop;
    struct hfi_lanes lanes;
    struct hfi_lane *lane[4];
    struct claim_sim sim;
    int64_t now_us;
};

static void begin(struct stage *stage) {
    memset(stage, 0, sizeof *stage);
    stage->options.size = sizeof stage->options;
    stage->options.workers = 8;
    stage->native.options.kind = HF_KIND_NATIVE;
    stage->noop.options.kind = HF_KIND_NOOP;
    stage->now_us = 5 * SECOND;
    claim_sim_init(&stage->sim);
    assert_int_equal(hfi_lanes_init(&stage->lanes, &stage->options, 100), 0);
    for (int64_t id = ORDINARY; id <= ASYNC; id++) {
        assert_int_equal(hfi_lanes_add(&stage->lanes, id, "default", id == ASYNC ? &stage->noop : &stage->native, NULL,
                                       &stage->lane[id]), 0);
        stage->lane[id]->alone = id == SUSPECT;
    }
}

/* A round of three jobs; every lane that is due has more. */
static void admit(struct stage *stage) {
    claim_sim_round(&stage->sim, &stage->lanes, stage->now_us, (struct hf_wall){0}, 3, 0);
}

static const struct hfi_admitted *of(const struct stage *stage, int64_t lane) {
    for (size_t i = 0; i < stage->sim.count; i++)
        if (stage->sim.claimed[i].lane == lane)
            return &stage->sim.claimed[i];
    return NULL;
}

static void end(struct stage *stage, int64_t lane, uint32_t count) {
    while (count-- > 0)
        hfi_lane_release(&stage->lanes, stage->lane[lane], true);
}

static void a_suspect_waits_for_the_others_and_they_for_it(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage);
    stage.lane[ORDINARY]->due = true;
    admit(&stage);
    assert_int_equal(of(&stage, ORDINARY)->max, 3);
    assert_true(of(&stage, ORDINARY)->runs_code);
    assert_false(of(&stage, ORDINARY)->alone);
    stage.lane[SUSPECT]->due = stage.lane[ASYNC]->due = true;
    for (uint32_t left = 3; left > 0; left--) { /* nothing that runs code begins while some runs */
        stage.now_us += SECOND;
        admit(&stage);
        assert_int_equal(stage.sim.count, 1);
        assert_int_equal(of(&stage, ASYNC)->max, 3); /* others are not concerned */
        assert_false(of(&stage, ASYNC)->runs_code);
        end(&stage, ORDINARY, 1);
    }
    stage.lane[ASYNC]->due = false;
    admit(&stage);
    assert_int_equal(stage.sim.count, 1);
    assert_int_equal(of(&stage, SUSPECT)->max, 1);
    assert_true(of(&stage, SUSPECT)->alone);
    for (int i = 0; i < 500; i++) { /* for minutes, neither another suspect nor anybody */
        stage.now_us += SECOND;
        admit(&stage);
        assert_int_equal(stage.sim.count, 0);
    }
    end(&stage, SUSPECT, 1);
    admit(&stage);
    assert_int_equal(of(&stage, ORDINARY)->max, 3);
    hfi_lanes_end(&stage.lanes);
}

/* One without a time limit, which does not end: after ten minutes the others go on, and no second suspect comes. */
static void a_suspect_that_does_not_end_keeps_nobody_back_for_ever(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage);
    stage.lane[ORDINARY]->due = stage.lane[SUSPECT]->due = true;
    admit(&stage);
    assert_true(of(&stage, SUSPECT)->alone);
    admit(&stage);
    for (int64_t from = stage.now_us; stage.now_us - from < RUN; stage.now_us += SECOND) {
        admit(&stage);
        assert_int_equal(stage.sim.count, 0);
    }
    for (int i = 0; i < 2000; i++, stage.now_us += SECOND) {
        admit(&stage);
        assert_int_equal(of(&stage, ORDINARY)->max, 3);
        assert_null(of(&stage, SUSPECT));
        end(&stage, ORDINARY, 3);
    }
    end(&stage, SUSPECT, 1);
    admit(&stage);
    assert_true(of(&stage, SUSPECT)->alone); /* their turn is over, too */
    hfi_lanes_end(&stage.lanes);
}

/* 3.5: "isolated, or with no other native job beside it": a process of its own keeps its crash to itself. */
static void isolated_jobs_wait_for_nobody_and_nobody_for_them(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane *isolated;
    begin(&stage);
    struct hfi_type type = stage.native;
    type.options.isolate = HF_ISOLATE_PROCESS;
    assert_int_equal(hfi_lanes_add(&stage.lanes, 4, "default", &type, NULL, &isolated), 0);
    assert_int_equal(isolated->pool, HFI_POOL_WORKER); /* a slot it needs all the same */
    isolated->alone = isolated->due = true;
    admit(&stage);
    assert_int_equal(of(&stage, 4)->max, 3);
    assert_false(of(&stage, 4)->runs_code);
    assert_false(of(&stage, 4)->alone);
    stage.lane[SUSPECT]->due = true;
    isolated->due = false;
    admit(&stage);
    assert_true(of(&stage, SUSPECT)->alone); /* beside three that are isolated */
    isolated->due = true;
    admit(&stage);
    assert_int_equal(of(&stage, 4)->max, 3);
    hfi_lanes_end(&stage.lanes);
}

/* An abandoned handler still runs in the node. */
static void beside_an_abandoned_handler_a_suspect_is_not_alone(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage);
    struct hfi_type hanging = stage.native;
    stage.native.options.name = "native";
    stage.noop.options.name = "noop";
    hanging.options.name = "hanging";
    stage.lane[SUSPECT]->due = true;
    hfi_lanes_left(&stage.lanes, &hanging, 1);
    for (int64_t from = stage.now_us; stage.now_us - from < WAIT; stage.now_us += SECOND) {
        admit(&stage);
        assert_int_equal(stage.sim.count, 0);
    }
    admit(&stage);
    assert_false(of(&stage, SUSPECT)->alone);
    end(&stage, SUSPECT, 1);
    hfi_lanes_left(&stage.lanes, &hanging, -1);
    admit(&stage); /* the turn of the others */
    assert_int_equal(stage.sim.count, 0);
    stage.now_us += WAIT;
    admit(&stage);
    assert_true(of(&stage, SUSPECT)->alone);
    hfi_lanes_end(&stage.lanes);
}

static void suspects_take_turns_until_the_others_have_theirs(void **state) {
    (void)state;
    struct stage stage;
    int ran = 0;
    begin(&stage);
    stage.lane[ORDINARY]->due = stage.lane[SUSPECT]->due = true;
    int64_t began = stage.now_us;
    for (admit(&stage); of(&stage, SUSPECT) != NULL; admit(&stage)) {
        assert_true(of(&stage, SUSPECT)->alone);
        assert_null(of(&stage, ORDINARY));
        stage.now_us += 7 * SECOND;
        end(&stage, SUSPECT, 1);
        ran++;
    }
    assert_int_equal(ran, 9); /* the first end after the minute */
    int64_t rest = stage.now_us, kept = rest - began;
    assert_int_equal(of(&stage, ORDINARY)->max, 3);
    while (stage.now_us - rest < kept) { /* as long as they were kept back */
        end(&stage, ORDINARY, 3);
        stage.now_us += SECOND;
        admit(&stage);
        if (stage.now_us - rest < kept)
            assert_int_equal(of(&stage, ORDINARY)->max, 3);
    }
    assert_null(of(&stage, ORDINARY));
    assert_true(of(&stage, SUSPECT)->alone);
    hfi_lanes_end(&stage.lanes);
}

static void beside_a_job_that_does_not_end_it_is_started_and_not_blamed(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage);
    stage.lane[ORDINARY]->due = true;
    admit(&stage);
    end(&stage, ORDINARY, 2); /* the third goes on and on */
    stage.lane[SUSPECT]->due = true;
    for (int64_t from = stage.now_us; stage.now_us - from < WAIT; stage.now_us += SECOND) {
        admit(&stage);
        assert_int_equal(stage.sim.count, 0);
    }
    admit(&stage);
    assert_int_equal(of(&stage, SUSPECT)->max, 1);
    assert_false(of(&stage, SUSPECT)->alone);
    end(&stage, SUSPECT, 1);
    admit(&stage);
    assert_int_equal(of(&stage, ORDINARY)->max, 3);
    hfi_lanes_end(&stage.lanes);
}

/* Another node took it, its queue is paused, its downstream admits nobody: nobody is kept back for it. */
static void a_suspect_that_cannot_be_had_keeps_nobody_back(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane_site site = {0};
    begin(&stage);
    stage.lane[ORDINARY]->due = stage.lane[SUSPECT]->due = true;
    stage.lane[SUSPECT]->paused = true;
    admit(&stage);
    assert_int_equal(of(&stage, ORDINARY)->max, 3);
    stage.lane[SUSPECT]->paused = false;
    stage.lane[SUSPECT]->site = &site;
    admit(&stage);
    assert_int_equal(of(&stage, ORDINARY)->max, 3);
    site.free = 1;
    admit(&stage);
    assert_int_equal(stage.sim.count, 0);
    stage.lane[SUSPECT]->due = false;
    admit(&stage);
    assert_true(of(&stage, ORDINARY)->max > 0);
    hfi_lanes_end(&stage.lanes);
}

/* Jobs that run no code hold all slots of its queue, for hours: nobody waits for that. */
static void a_suspect_without_a_slot_keeps_nobody_back(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane *elsewhere;
    begin(&stage);
    assert_int_equal(hfi_lanes_add(&stage.lanes, 4, "other", &stage.native, NULL, &elsewhere), 0);
    stage.lane[SUSPECT]->queue->concurrency = 3;
    stage.lane[ASYNC]->due = true;
    admit(&stage);
    assert_int_equal(of(&stage, ASYNC)->max, 3);
    stage.lane[SUSPECT]->due = elsewhere->due = true;
    admit(&stage);
    assert_int_equal(of(&stage, 4)->max, 3);
    for (int i = 0; i < 3; i++)
        hfi_lane_release(&stage.lanes, elsewhere, true);
    stage.lane[ASYNC]->due = false;
    end(&stage, ASYNC, 1);
    admit(&stage);
    assert_int_equal(stage.sim.count, 1);
    assert_true(of(&stage, SUSPECT)->alone);
    hfi_lanes_end(&stage.lanes);
}

/* They take its slot while the others wait for it: these wait no longer than for any suspect. */
static void a_suspect_whose_slot_went_keeps_nobody_back_for_ever(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane *elsewhere;
    begin(&stage);
    assert_int_equal(hfi_lanes_add(&stage.lanes, 4, "other", &stage.native, NULL, &elsewhere), 0);
    stage.lane[SUSPECT]->queue->concurrency = 3;
    elsewhere->due = true;
    admit(&stage); /* it is not alone yet */
    assert_int_equal(of(&stage, 4)->max, 3);
    stage.lane[SUSPECT]->due = stage.lane[ASYNC]->due = true;
    for (int64_t from = stage.now_us; stage.now_us - from <= WAIT; stage.now_us += SECOND) {
        admit(&stage);
        assert_null(of(&stage, 4));
        assert_null(of(&stage, SUSPECT));
    }
    admit(&stage);
    assert_int_equal(of(&stage, 4)->max, 3);
    hfi_lanes_end(&stage.lanes);
}

/* Property: whatever comes and ends when, nothing begins beside one that is called alone, nobody starves. */
static void alone_is_alone_and_nobody_starves(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_random random;
    uint32_t runs[4] = {0}, started[4] = {0};
    int64_t seen_us[4] = {0};
    bool alone = false;
    hfi_random_seed(&random, test_seed("alone"));
    begin(&stage);
    for (int step = 0; step < 200000; step++) {
        uint64_t draw = hfi_random_next(&random);
        stage.now_us += (int64_t)(draw % 3) * SECOND;
        for (int64_t id = ORDINARY; id <= SUSPECT; id++)
            if ((draw >> (24 + 8 * id) & 0xff) < 4) /* another node took them, or new ones came */
                stage.lane[id]->due = !stage.lane[id]->due;
        for (int64_t id = ORDINARY; id <= SUSPECT; id++)
            if (runs[id] > 0 && (draw >> (16 + id)) % 4 == 0) {
                end(&stage, id, 1);
                runs[id]--;
            }
        alone = alone && runs[SUSPECT] > 0;
        admit(&stage);
        for (size_t i = 0; i < stage.sim.count; i++) {
            int64_t id = stage.sim.claimed[i].lane;
            assert_false(alone); /* whoever it is */
            runs[id] += stage.sim.claimed[i].max;
            started[id] += stage.sim.claimed[i].max;
            seen_us[id] = stage.now_us;
            if (!stage.sim.claimed[i].alone)
                continue;
            alone = true;
        }
        assert_true(runs[SUSPECT] <= 1);
        assert_true(!alone || runs[ORDINARY] == 0);
        for (int64_t id = ORDINARY; id <= SUSPECT; id++)
            if (runs[id] > 0 || !stage.lane[id]->due)
                seen_us[id] = stage.now_us;
        assert_true(stage.now_us - seen_us[ORDINARY] < 4 * WAIT);
        assert_true(stage.now_us - seen_us[SUSPECT] < 6 * WAIT);
    }
    assert_true(started[ORDINARY] > 1000);
    assert_true(started[SUSPECT] > 1000);
    hfi_lanes_end(&stage.lanes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspect_waits_for_the_others_and_they_for_it),
        cmocka_unit_test(a_suspect_that_does_not_end_keeps_nobody_back_for_ever),
        cmocka_unit_test(isolated_jobs_wait_for_nobody_and_nobody_for_them),
        cmocka_unit_test(beside_an_abandoned_handler_a_suspect_is_not_alone),
        cmocka_unit_test(suspects_take_turns_until_the_others_have_theirs),
        cmocka_unit_test(beside_a_job_that_does_not_end_it_is_started_and_not_blamed),
        cmocka_unit_test(a_suspect_that_cannot_be_had_keeps_nobody_back),
        cmocka_unit_test(a_suspect_without_a_slot_keeps_nobody_back),
        cmocka_unit_test(a_suspect_whose_slot_went_keeps_nobody_back_for_ever),
        cmocka_unit_test(alone_is_alone_and_nobody_starves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
