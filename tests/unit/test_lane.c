/* SPDX-License-Identifier: MIT */
/*
 * Which lanes have a part in a claim, and what it may use up: order, weights, slots, sites, places of a round, and that
 * no slot is ever given twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "claim_sim.h"
#include "jobs/runner/lane.h"
#include "lane_stage.h"
#include "seed.h"

static void lower_orders_go_first(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 8);
    set_queue(&stage, 0, "reports", 3, 1, 0);
    set_queue(&stage, 1, "critical", 1, 1, 0);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    add(&stage, 1, "reports", &stage.noop, NULL);
    add(&stage, 2, "critical", &stage.noop, NULL);
    admit(&stage, 50);
    assert_int_equal(granted(&stage, 2), 50); /* S3.7 */
    assert_int_equal(granted(&stage, 1), 0);
    hfi_lanes_end(&stage.lanes);
}

/* More lanes than a round has room for, all of them always due: how often the one had a job that had the least, against
 * the one that had the most. */
static void more_lanes_than_room(size_t count, bool queues, bool weighted) {
    enum { ROUNDS = 100 };
    struct stage stage;
    uint32_t least = UINT32_MAX, most = 0;
    begin(&stage, 8);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100000), 0);
    for (size_t id = 1; id <= count; id++) {
        char name[16];
        snprintf(name, sizeof name, "q%zu", id);
        add(&stage, (int64_t)id, queues ? name : "default", &stage.noop, NULL);
    }
    for (size_t i = 0; weighted && i < stage.lanes.queue_count; i++)
        stage.lanes.queues[i]->weight = 3;
    for (int round = 0; round < ROUNDS; round++) {
        admit(&stage, HFI_ADMIT_MAX);
        for (size_t i = 0; i < stage.sim.count; i++)
            for (uint32_t job = 0; job < stage.sim.claimed[i].max; job++)
                hfi_lane_release(&stage.lanes, hfi_lanes_find(&stage.lanes, stage.sim.claimed[i].lane), false);
    }
    for (size_t id = 1; id <= count; id++) {
        least = stage.sim.had[id] < least ? stage.sim.had[id] : least;
        most = stage.sim.had[id] > most ? stage.sim.had[id] : most;
    }
    hfi_lanes_end(&stage.lanes);
    if (least < ROUNDS * HFI_ADMIT_MAX / count - 2 || most - least > 2)
        fail_msg("%zu lanes: one had %u, another %u", count, least, most);
}

/* S1.23: a lane, or a queue, that comes too late for a round is the first of the next one. */
static void who_finds_no_room_in_a_round_has_not_lost_its_turn(void **state) {
    (void)state;
    for (int queues = 0; queues <= 1; queues++) {
        more_lanes_than_room(257, queues, false);
        more_lanes_than_room(514, queues, false);
        more_lanes_than_room(300, queues, true);
    }
}

/* S1.23: 6 to 1, over any number of rounds. */
static void queues_of_one_order_share_by_weight(void **state) {
    (void)state;
    struct stage stage;
    uint32_t heavy = 0, light = 0;
    begin(&stage, 8);
    set_queue(&stage, 0, "heavy", 1, 6, 0);
    set_queue(&stage, 1, "light", 1, 1, 0);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 1000), 0);
    struct hfi_lane *a = add(&stage, 1, "heavy", &stage.noop, NULL);
    struct hfi_lane *b = add(&stage, 2, "light", &stage.noop, NULL);
    for (int round = 0; round < 70; round++) { /* 3 at a time: no round holds a whole turn */
        admit(&stage, 3);
            heavy += granted(&stage, 1);
        light += granted(&stage, 2);
        for (uint32_t i = granted(&stage, 1); i > 0; i--)
            hfi_lane_release(&stage.lanes, a, true);
        for (uint32_t i = granted(&stage, 2); i > 0; i--)
            hfi_lane_release(&stage.lanes, b, true);
    }
    assert_int_equal(heavy, 180);
    assert_int_equal(light, 30);
    hfi_lanes_end(&stage.lanes);
}

/* Other numbers while jobs run: the new order holds at once, and no slot in use is lost or counted twice. */
static void numbers_change_while_jobs_run(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 8);
    set_queue(&stage, 0, "a", 1, 1, 0);
    set_queue(&stage, 1, "b", 2, 1, 0);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    struct hfi_lane *a = add(&stage, 1, "a", &stage.noop, NULL);
    add(&stage, 2, "b", &stage.noop, NULL);
    admit(&stage, 4);
    assert_int_equal(granted(&stage, 1), 4);
    assert_int_equal(stage.lanes.pool_used[HFI_POOL_ASYNC], 4);
    set_queue(&stage, 0, "a", 9, 1, 2); /* last, with two slots of its own: it holds four */
    set_queue(&stage, 1, "b", 2, 1, 0);
    hfi_lanes_tune(&stage.lanes, &stage.options);
    assert_int_equal(stage.lanes.pool_used[HFI_POOL_ASYNC], 0);
    admit(&stage, 10);
    assert_int_equal(granted(&stage, 1), 0);
    assert_int_equal(granted(&stage, 2), 10);
    for (int i = 0; i < 3; i++)
        hfi_lane_release(&stage.lanes, a, false);
    assert_int_equal(stage.lanes.pool_used[HFI_POOL_ASYNC], 10);
    stage.options.queue_count = 0; /* both are as any queue now */
    hfi_lanes_tune(&stage.lanes, &stage.options);
    assert_int_equal(stage.lanes.pool_used[HFI_POOL_ASYNC], 11);
    hfi_lane_release(&stage.lanes, a, false);
    assert_int_equal(stage.lanes.pool_used[HFI_POOL_ASYNC], 10);
    assert_int_equal(hfi_lanes_find(&stage.lanes, 1)->queue->order, 100);
    hfi_lanes_end(&stage.lanes);
}

/* 3.4: a queue that a reload brings has its numbers when its first lane comes, whatever memory there was. */
static void a_queue_that_is_new_has_its_numbers_before_it_has_a_lane(void **state) {
    (void)state;
    for (int no_memory = 0; no_memory < 2; no_memory++) {
        struct stage stage;
        begin(&stage, 2);
        set_queue(&stage, 0, "a", 9, 1, 0);
        assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
        add(&stage, 1, "a", &stage.noop, NULL);
        set_queue(&stage, 1, "reports", 7, 3, 5);
        stage.queues[1].global_concurrency = 1;
        stage.queues[1].aging_ms = 4000;
        hfi_alloc_fail(no_memory, no_memory);
        hfi_lanes_tune(&stage.lanes, &stage.options);
        hfi_alloc_fail(0, 0);
        if (!no_memory) {
            assert_true(stage.lanes.bounded);
            assert_int_equal(stage.lanes.threads_max, 5);
        }
        const struct hfi_lane_queue *queue = add(&stage, 2, "reports", &stage.noop, NULL)->queue;
        assert_int_equal(stage.lanes.threads_max, 5);
        assert_true(stage.lanes.bounded);
        assert_int_equal(queue->order, 7);
        assert_int_equal(queue->weight, 3);
        assert_int_equal(queue->concurrency, 5);
        assert_int_equal(queue->global_concurrency, 1);
        assert_int_equal(queue->aging_us, 4000000);
        assert_ptr_equal(stage.lanes.queues[0], queue);
        assert_int_equal(stage.lanes.queue_count, 2);
        hfi_lanes_end(&stage.lanes);
    }
}

static void lanes_of_a_queue_take_turns(void **state) {
    (void)state;
    struct stage stage;
    uint32_t sum[4] = {0};
    begin(&stage, 1);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    struct hfi_lane *lanes[4];
    for (int i = 1; i <= 3; i++)
        lanes[i] = add(&stage, i, "default", &stage.native, NULL);
    for (int round = 0; round < 30; round++) { /* one slot: without turns lane 1 would have it for ever */
        admit(&stage, 10);
        assert_int_equal(stage.sim.total, 1);
        sum[stage.sim.claimed[0].lane]++;
        hfi_lane_release(&stage.lanes, lanes[stage.sim.claimed[0].lane], true);
    }
    assert_int_equal(sum[1], 10);
    assert_int_equal(sum[2], 10);
    assert_int_equal(sum[3], 10);
    hfi_lanes_end(&stage.lanes);
}

static void concurrency_is_a_queues_own(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 6);
    set_queue(&stage, 0, "reports", 1, 1, 2);
    set_queue(&stage, 1, "default", 2, 1, 0);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    add(&stage, 1, "reports", &stage.native, NULL);
    add(&stage, 2, "reports", &stage.noop, NULL);
    add(&stage, 3, "default", &stage.native, NULL);
    admit(&stage, 100);
    assert_int_equal(granted(&stage, 1) + granted(&stage, 2), 2); /* of both kinds together */
    assert_int_equal(granted(&stage, 3), 6 - granted(&stage, 1)); /* what is left of the pool */
    admit(&stage, 100);
    assert_int_equal(stage.sim.total, 0);
    hfi_lanes_end(&stage.lanes);
}

static void release(struct stage *stage, struct hfi_lane *lane, int count) {
    while (count-- > 0)
        hfi_lane_release(&stage->lanes, lane, false);
}

/* 3.4: a pool of max(workers, sum of concurrency); reserved slots may be lent, and their queue never waits for them. */
static void the_pool_is_what_is_reserved_or_the_workers(void **state) {
    (void)state;
    for (uint32_t workers = 2; workers <= 6; workers += 4) {
        struct stage stage;
        uint32_t pool = workers > 4 ? workers : 4;
        begin(&stage, workers);
        set_queue(&stage, 0, "critical", 1, 1, 4);
        assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
        struct hfi_lane *critical = add(&stage, 1, "critical", &stage.native, NULL);
        struct hfi_lane *plain = add(&stage, 2, "default", &stage.native, NULL);
        assert_int_equal(stage.lanes.threads_max, pool);
        critical->due = false;
        admit(&stage, 100);
        assert_int_equal(granted(&stage, 2), workers); /* lent */
        critical->due = true;
        admit(&stage, 100);
        assert_int_equal(granted(&stage, 1), 4);       /* at once all the same */
        assert_int_equal(granted(&stage, 2), 0);
        release(&stage, plain, (int)(workers - (pool - 4)));
        admit(&stage, 100);
        assert_int_equal(granted(&stage, 2), pool == 4); /* nothing is left for it but its first one */
        release(&stage, critical, 3);
        critical->due = false;
        admit(&stage, 100);
        assert_int_equal(stage.lanes.threads_used, 1 + (workers < pool - 1 ? workers : pool - 1));
        hfi_lanes_end(&stage.lanes);
    }
}

/* S3.3, S3.15: 500 hanging jobs hold what they may; another queue starts at once, whenever it comes. */
static void a_hanging_queue_never_keeps_another_from_starting(void **state) {
    (void)state;
    for (int async = 0; async < 2; async++) {
        struct stage stage;
        begin(&stage, 8);
        assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 8), 0);
        const struct hfi_type *type = async ? &stage.noop : &stage.native;
        struct hfi_lane *hanging = add(&stage, 1, "reports", type, NULL);
        admit(&stage, 500);
        assert_int_equal(granted(&stage, 1), 8); /* alone it may have everything */
            struct hfi_lane *reset = add(&stage, 2, "critical", type, NULL);
        admit(&stage, 500);
        assert_int_equal(granted(&stage, 2), 1); /* a first job always */
            for (int i = 0; i < 4; i++)
            hfi_lane_release(&stage.lanes, hanging, true);
        admit(&stage, 500);
        assert_true(granted(&stage, 2) >= 1); /* and from now on a slot is kept for it */
        assert_true(hanging->queue->used[hanging->pool] <= 7);
        hfi_lane_release(&stage.lanes, reset, true);
        hfi_lanes_end(&stage.lanes);
    }
}

static void paused_unknown_and_unwanted_lanes_get_nothing(void **state) {
    (void)state;
    struct stage stage;
    static const char *const filter[] = {"default"};
    begin(&stage, 4);
    stage.options.queues = filter;
    stage.options.queue_filter_count = 1;
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    add(&stage, 1, "default", &stage.noop, NULL)->paused = true;
    add(&stage, 2, "default", NULL, NULL);
    add(&stage, 3, "other", &stage.noop, NULL);
    admit(&stage, 100);
    assert_int_equal(stage.sim.total, 0);
    assert_false(hfi_lanes_any_due(&stage.lanes));
    hfi_lanes_find(&stage.lanes, 1)->paused = false;
    assert_true(hfi_lanes_any_due(&stage.lanes));
    admit(&stage, 100);
    assert_int_equal(granted(&stage, 1), 100);
    hfi_lanes_end(&stage.lanes);
}

/* 3.4: parked lanes are not claimed and hold no slot; what a site admits is shared by its lanes. */
static void a_site_admits_what_it_says(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane_site site = {.free = 0}, other = {.free = 100};
    begin(&stage, 4);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    struct hfi_lane *a = add(&stage, 1, "default", &stage.noop, &site);
    add(&stage, 2, "default", &stage.noop, &site);
    add(&stage, 3, "default", &stage.noop, &other);
    admit(&stage, 10);
    assert_int_equal(granted(&stage, 1) + granted(&stage, 2), 0);
    assert_int_equal(granted(&stage, 3), 10); /* I42: a blocked lane fills no limit */
    assert_true(site.blocked);
    site.free = 3; /* probes */
    admit(&stage, 10);
    assert_int_equal(granted(&stage, 1) + granted(&stage, 2), 3);
    assert_int_equal(site.used, 3);
    assert_int_equal(site.waiting, 3);
    hfi_lane_begun(a);
    assert_int_equal(site.waiting, 2);
    hfi_lanes_end(&stage.lanes);
}

static bool probes(const struct stage *stage, int64_t lane) {
    for (size_t i = 0; i < stage->sim.count; i++)
        if (stage->sim.claimed[i].lane == lane)
            return stage->sim.claimed[i].probe;
    return false;
}

/* 3.4: a probe goes to what may be repeated, whatever its queue's order; to the rest only where that has no slot. */
static void a_probing_site_asks_what_may_be_repeated_first(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane_site site = {.free = 3, .probing = true};
    begin(&stage, 1);
    set_queue(&stage, 0, "critical", 1, 1, 0);
    set_queue(&stage, 1, "reports", 2, 1, 2);
    struct hfi_type careful = stage.noop;
    stage.noop.options.repeatable = true;
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 10), 0);
    add(&stage, 1, "critical", &careful, &site);
    struct hfi_lane *lane = add(&stage, 2, "reports", &stage.noop, &site);
    add(&stage, 3, "critical", &stage.noop, NULL);
    admit(&stage, 4);
    assert_int_equal(granted(&stage, 2), 2); /* all that its queue may have */
    assert_int_equal(granted(&stage, 1), 1);
    assert_int_equal(granted(&stage, 3), 1);
    assert_true(probes(&stage, 2));
    assert_false(probes(&stage, 1)); /* nothing to choose among */
    assert_false(probes(&stage, 3));
    hfi_lane_release(&stage.lanes, lane, false);
    hfi_lane_release(&stage.lanes, lane, false);
    site.free = 1;
    admit(&stage, 4);
    assert_int_equal(granted(&stage, 2), 1);
    assert_int_equal(granted(&stage, 1), 0);
    hfi_lane_release(&stage.lanes, lane, false);
    site.free = 1;
    lane->due = false;
    admit(&stage, 4);
    assert_int_equal(granted(&stage, 1), 1);
    lane->due = true;
    site.free = 1;
    site.probing = false; /* closed again: the order of queues */
    admit(&stage, 4);
    assert_int_equal(granted(&stage, 1), 1);
    assert_int_equal(granted(&stage, 2), 0);
    hfi_lanes_end(&stage.lanes);
}

/* S1.23, S3.7: a probe goes first, and nothing else of its queue does; nor do queues of one order lose their shares. */
static void a_probe_does_not_pull_its_queue_along(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane_site site = {.free = 1, .probing = true};
    uint32_t heavy = 0, light = 0;
    begin(&stage, 8);
    set_queue(&stage, 0, "heavy", 1, 6, 0);
    set_queue(&stage, 1, "light", 1, 1, 0);
    set_queue(&stage, 2, "reports", 3, 1, 0);
    stage.noop.options.repeatable = true;
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 1000), 0);
    add(&stage, 1, "heavy", &stage.noop, NULL);
    add(&stage, 2, "light", &stage.noop, NULL);
    add(&stage, 3, "reports", &stage.noop, NULL);
    add(&stage, 4, "reports", &stage.noop, &site);
    add(&stage, 5, "light", &stage.noop, &site)->due = false;
    for (int round = 0; round < 140; round++) {
        int64_t prober = round % 2 ? 5 : 4; /* of the last queue, and of the second of one order */
        hfi_lanes_find(&stage.lanes, 4)->due = prober == 4;
        hfi_lanes_find(&stage.lanes, 5)->due = prober == 5;
        stage.sim.had[4] = stage.sim.had[5] = 0;
        site.free = 1;
        admit(&stage, 4);
        assert_int_equal(granted(&stage, prober), 1);
        assert_int_equal(granted(&stage, 3), 0);
        heavy += granted(&stage, 1);
        light += granted(&stage, 2);
        for (size_t i = 0; i < stage.sim.count; i++)
            for (uint32_t job = 0; job < stage.sim.claimed[i].max; job++)
                hfi_lane_release(&stage.lanes, hfi_lanes_find(&stage.lanes, stage.sim.claimed[i].lane), false);
    }
    assert_int_equal(heavy, 360);
    assert_int_equal(light, 60);
    assert_int_equal(stage.sim.inverted, 0);
    hfi_lanes_end(&stage.lanes);
}

/* The key of the host that its jobs call goes with it: a leak is the sanitizer's to find. */
static void a_lane_that_goes_takes_its_host_along(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 4);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    struct hfi_lane *lane = add(&stage, 1, "default", &stage.noop, NULL);
    struct hfi_lane *stays = add(&stage, 2, "default", &stage.noop, NULL);
    lane->host = hfi_strdup("hooks/one.example:443");
    stays->host = hfi_strdup("hooks/two.example:443");
    assert_true(lane->host != NULL && stays->host != NULL);
    hfi_lanes_remove(&stage.lanes, lane);
    assert_null(hfi_lanes_find(&stage.lanes, 1));
    assert_ptr_equal(hfi_lanes_find(&stage.lanes, 2), stays);
    assert_string_equal(stays->host, "hooks/two.example:443");
    admit(&stage, 4);
    assert_int_equal(granted(&stage, 2), 4);
    hfi_lanes_end(&stage.lanes);
}

static void only_what_was_claimed_is_booked(void **state) {
    (void)state;
    struct stage stage;
    struct hfi_lane_site site = {.free = 100};
    begin(&stage, 4);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    struct hfi_lane *lane = add(&stage, 1, "default", &stage.noop, &site);
    assert_int_equal(hfi_lanes_admit(&stage.lanes, 0, stage.wall, 20), 1);
    assert_int_equal(site.asked, 100); /* the round may use them: they are not given back meanwhile */
    stage.lanes.round.admitted[0].claimed = 5;
    hfi_lanes_claimed(&stage.lanes, 0, 0);
    assert_int_equal(site.asked, 0);
    assert_int_equal(site.used, 5);
    assert_int_equal(site.waiting, 5);
    assert_int_equal(stage.lanes.pool_used[HFI_POOL_ASYNC], 5);
    assert_false(lane->due);
    release(&stage, lane, 5);
    assert_int_equal(site.used + site.waiting + stage.lanes.pool_used[HFI_POOL_ASYNC], 0);
    hfi_lanes_end(&stage.lanes);
}

/* A lane that is said to be due and has nothing, again and again, rests; one that only had no turn does not. */
static void an_empty_lane_is_held(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 4);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100), 0);
    struct hfi_lane *empty = add(&stage, 1, "default", &stage.noop, NULL);
    struct hfi_lane *low = add(&stage, 2, "default", &stage.noop, NULL);
    add(&stage, 3, "default", &stage.noop, NULL)->top_priority = 5;
    stage.sim.has[1] = 0;
    for (int i = 0; i < 2; i++) {
        empty->due = true;
        claim_sim_round(&stage.sim, &stage.lanes, 1000, stage.wall, 10, 50000);
        assert_int_equal(granted(&stage, 3), 10);
    }
    assert_int_equal(empty->hold_until_us, 51000);
    assert_int_equal(low->hold_until_us, 0);
    empty->due = true;
    stage.sim.has[1] = 1;
    claim_sim_round(&stage.sim, &stage.lanes, 50999, stage.wall, 20, 50000);
    assert_int_equal(granted(&stage, 1), 0);
    stage.sim.has[3] = 0;
    claim_sim_round(&stage.sim, &stage.lanes, 51000, stage.wall, 20, 50000);
    assert_int_equal(granted(&stage, 1), 1);
    hfi_lanes_end(&stage.lanes);
}

/* Of 600 due lanes a few promise more: they are in every round, and the others have their turns all the same. */
static void the_best_lanes_are_in_every_round(void **state) {
    (void)state;
    struct stage stage;
    uint32_t rounds_of[601] = {0};
    begin(&stage, 4);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 100000), 0);
    for (int64_t id = 1; id <= 600; id++) {
        struct hfi_lane *lane = add(&stage, id, "default", &stage.noop, NULL);
        lane->top_priority = id % 50 == 0 ? 9 : 3;
        lane->next_due_us = 1000 - id;
    }
    for (int round = 0; round < 6; round++) {
        size_t count = hfi_lanes_admit(&stage.lanes, 0, stage.wall, 10);
        assert_int_equal(count, HFI_ADMIT_MAX);
        for (size_t i = 0; i < count; i++) {
            rounds_of[stage.lanes.round.admitted[i].lane]++;
            stage.lanes.round.admitted[i].more = true;
            stage.lanes.round.admitted[i].claimed = i == 0;
        }
        hfi_lanes_claimed(&stage.lanes, 0, 0);
    }
    for (int64_t id = 1; id <= 600; id++) {
        bool best = id % 50 == 0 || id > 600 - (128 - 12) - 3; /* 9 first, then who has waited longest */
        assert_true(best ? rounds_of[id] == 6 : rounds_of[id] >= 1 && rounds_of[id] <= 3);
    }
    hfi_lanes_end(&stage.lanes);
}

/* Any order of claims and ends: books never below zero, limits kept, all empty in the end. */
static void no_slot_is_granted_twice(void **state) {
    (void)state;
    struct hfi_random random;
    struct stage stage;
    struct hfi_lane_site sites[2] = {{0}, {0}};
    static struct hfi_lane *running[4096];
    size_t count = 0;
    uint64_t seed = test_seed("lane");
    hfi_random_seed(&random, seed);
    begin(&stage, 6);
    stage.native.options.repeatable = true;
    set_queue(&stage, 0, "own", 1, 1, 3);
    set_queue(&stage, 1, "a", 2, 2, 0);
    set_queue(&stage, 2, "b", 2, 1, 0);
    assert_int_equal(hfi_lanes_init(&stage.lanes, &stage.options, 10), 0);
    static const char *const names[] = {"own", "a", "b", "c"};
    for (int i = 1; i <= 12; i++)
        add(&stage, i, names[i % 4], i % 3 ? &stage.native : &stage.noop, i % 2 ? &sites[i % 4 / 2] : NULL);
    for (int step = 0; step < 20000; step++) {
        for (int i = 0; i < 2; i++)
            sites[i] = (struct hfi_lane_site){.free = (uint32_t)hfi_random_below(&random, 4),
                                              .used = sites[i].used, .waiting = sites[i].waiting,
                                              .probing = hfi_random_below(&random, 2) == 0};
        for (size_t i = 0; i < stage.lanes.count; i++)
            stage.lanes.lanes[i]->due = hfi_random_below(&random, 2);
        for (int i = 1; i <= 12; i++)
            stage.sim.has[i] = (uint32_t)hfi_random_below(&random, 8);
        admit(&stage, 1 + (uint32_t)hfi_random_below(&random, 20));
        for (size_t i = 0; i < stage.sim.count; i++) {
            struct hfi_lane *lane = hfi_lanes_find(&stage.lanes, stage.sim.claimed[i].lane);
            for (uint32_t j = 0; j < stage.sim.claimed[i].max; j++) {
                hfi_lane_begun(lane);
                running[count++] = lane;
            }
        }
        for (size_t i = 0; i < stage.lanes.queue_count; i++) {
            const struct hfi_lane_queue *queue = stage.lanes.queues[i];
            if (queue->concurrency > 0)
                assert_true(queue->used[0] + queue->used[1] <= queue->concurrency);
        }
        assert_true(stage.lanes.pool_used[HFI_POOL_WORKER] <= 12);
        assert_true(stage.lanes.pool_used[HFI_POOL_ASYNC] <= 20);
        while (count > 0 && hfi_random_below(&random, 3) > 0) {
            size_t at = (size_t)hfi_random_below(&random, count);
            hfi_lane_release(&stage.lanes, running[at], true);
            running[at] = running[--count];
        }
    }
    while (count > 0)
        hfi_lane_release(&stage.lanes, running[--count], true);
    assert_int_equal(stage.sim.inverted, 0); /* whoever probed */
    assert_int_equal(stage.lanes.pool_used[0] + stage.lanes.pool_used[1], 0);
    assert_int_equal(sites[0].used + sites[0].waiting + sites[1].used + sites[1].waiting, 0);
    hfi_lanes_end(&stage.lanes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_orders_go_first),
        cmocka_unit_test(queues_of_one_order_share_by_weight),
        cmocka_unit_test(numbers_change_while_jobs_run),
        cmocka_unit_test(who_finds_no_room_in_a_round_has_not_lost_its_turn),
        cmocka_unit_test(a_queue_that_is_new_has_its_numbers_before_it_has_a_lane),
        cmocka_unit_test(lanes_of_a_queue_take_turns),
        cmocka_unit_test(concurrency_is_a_queues_own),
        cmocka_unit_test(the_pool_is_what_is_reserved_or_the_workers),
        cmocka_unit_test(a_hanging_queue_never_keeps_another_from_starting),
        cmocka_unit_test(paused_unknown_and_unwanted_lanes_get_nothing),
        cmocka_unit_test(a_site_admits_what_it_says),
        cmocka_unit_test(a_probing_site_asks_what_may_be_repeated_first),
        cmocka_unit_test(a_probe_does_not_pull_its_queue_along),
        cmocka_unit_test(a_lane_that_goes_takes_its_host_along),
        cmocka_unit_test(only_what_was_claimed_is_booked),
        cmocka_unit_test(an_empty_lane_is_held),
        cmocka_unit_test(the_best_lanes_are_in_every_round),
        cmocka_unit_test(no_slot_is_granted_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
