/* SPDX-License-Identifier: MIT */
/*
 * Contract of the store: the order of a claim over all its lanes, and the budgets that they share, beside the reference
 * that looks at every job for every job; what is past its time is passed over within bounds; what LANES promises.
 */
#include "store_world.h"

#include "base/alloc.h"
#include "jobs/hands.h"
#include "order_reference.h"
#include "seed.h"

#define ROOM 256

static const char *const types[] = {"a", "b", "c"};

static int64_t put(const char *type, const char *key, int32_t priority, int64_t run_at_us, int64_t expires_at_us) {
    struct hf_job_spec spec = world_spec(type, NULL);
    spec.limit_name = key == NULL ? NULL : "tenant";
    spec.limit_key = key;
    spec.priority = priority;
    spec.run_at_us = run_at_us;
    spec.expires_at_us = expires_at_us;
    return world_put(&spec);
}

static struct hfi_admitted ask(const char *type, const char *key, uint32_t max) {
    return (struct hfi_admitted){.lane = world_lane_row(type, key).lane, .max = max, .policy = &world.curve};
}

/* The ids of what is claimed, in order. */
static size_t claim(struct hfi_op_claim *op, int64_t *ids) {
    struct hfi_job *jobs[ROOM];
    op->op = (struct hfi_op){.kind = HFI_OP_CLAIM};
    op->node = world.node;
    op->now = world.now;
    op->start = true;
    op->jobs = jobs;
    assert_int_equal(world_do(&op->op), 0);
    for (size_t i = 0; i < op->count; i++) {
        ids[i] = jobs[i]->id;
        hfi_free(jobs[i]);
    }
    return op->count;
}

/* 3.4: over the types and limit keys of a queue by priority, then due time, then id. */
static void the_order_is_one_over_all_lanes(void **state) {
    (void)state;
    int64_t ids[ROOM];
    int64_t low = put("a", NULL, 1, T0 - 900, 0), tie_2 = put("b", NULL, 5, T0 - 100, 0);
    int64_t tie_3 = put("a", NULL, 5, T0 - 100, 0), tie_4 = put("a", "k", 5, T0 - 100, 0);
    int64_t late = put("b", NULL, 5, T0 - 50, 0), early = put("a", "k", 5, T0 - 200, 0);
    int64_t top = put("b", NULL, 9, T0, 0), last = put("a", "k", 1, T0 - 800, 0);
    put("b", NULL, 9, T0 + HOUR, 0);
    struct hfi_admitted lanes[3] = {ask("a", NULL, 10), ask("b", NULL, 10), ask("a", "k", 10)};
    struct hfi_op_claim op = {.lanes = lanes, .lane_count = 3, .max = 20};
    const int64_t expected[] = {top, early, tie_2, tie_3, tie_4, late, low, last};
    assert_int_equal(claim(&op, ids), 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(ids[i], expected[i]);
    for (size_t i = 0; i < 3; i++)
        assert_false(lanes[i].more);
}

/* A budget that two lanes share goes to who is first in order; a lane without one gives nothing. */
static void lanes_share_budgets(void **state) {
    (void)state;
    int64_t ids[ROOM], expected[3];
    for (int i = 0; i < 3; i++) {
        put("a", NULL, 0, T0 - 100, 0);
        expected[i] = put("b", NULL, i == 1 ? 7 : 3, T0 - 10 + i, 0);
        put("c", NULL, 9, T0 - 1, 0);
    }
    const struct hfi_merge_budget budgets[] = {{0}, {.left = 3}, {.left = 0}};
    struct hfi_admitted lanes[3] = {ask("a", NULL, 10), ask("b", NULL, 10), ask("c", NULL, 10)};
    lanes[0].draws[0] = lanes[1].draws[2] = 1;
    lanes[2].draws[1] = 2;
    struct hfi_op_claim op = {.lanes = lanes, .lane_count = 3, .max = 20, .budgets = budgets, .budget_count = 3};
    assert_int_equal(claim(&op, ids), 3);
    assert_int_equal(ids[0], expected[1]);
    assert_int_equal(ids[1], expected[0]);
    assert_int_equal(ids[2], expected[2]);
    assert_true(lanes[0].more);
    assert_false(lanes[1].more);
    assert_true(lanes[2].more);
}

/* Queues of one order share 3 to 1, over any number of claims; one behind them has what they leave. */
static void queues_share_by_weight_over_claims(void **state) {
    (void)state;
    int64_t ids[ROOM];
    uint32_t had[3] = {0};
    struct hfi_merge_queue queues[3] = {{.order = 1, .weight = 3}, {.order = 1, .weight = 1}, {.order = 2, .weight = 9}};
    for (int i = 0; i < 30; i++)
        for (size_t type = 0; type < 3; type++)
            put(types[type], NULL, 0, T0 - 100, 0);
    struct hfi_admitted lanes[3] = {ask("a", NULL, 100), ask("b", NULL, 100), ask("c", NULL, 100)};
    for (uint16_t i = 0; i < 3; i++)
        lanes[i].queue = i;
    struct hfi_op_claim op = {.lanes = lanes, .lane_count = 3, .max = 3, .queues = queues, .queue_count = 3};
    for (int round = 0; round < 12; round++) {
        assert_int_equal(claim(&op, ids), 3);
        for (size_t i = 0; i < 3; i++) {
            had[i] += lanes[i].claimed;
            queues[i].current = queues[i].after;
        }
    }
    assert_int_equal(had[0], 27);
    assert_int_equal(had[1], 9);
    assert_int_equal(had[2], 0);
    op.max = 30;
    claim(&op, ids);
    assert_int_equal(lanes[0].claimed, 3);
    assert_int_equal(lanes[1].claimed, 21);
    assert_int_equal(lanes[2].claimed, 6);
}

/* Jobs past their time are passed over, a bounded number of each priority; what stands behind waits for EXPIRE. */
static void what_is_past_its_time_is_passed_over_within_bounds(void **state) {
    (void)state;
    int64_t ids[ROOM];
    for (int i = 0; i < HFI_EXPIRED_LOOK; i++)
        put("a", NULL, 5, T0 - 100, T0 + 1);
    int64_t behind = put("a", NULL, 5, T0 - 50, 0), lower = put("a", NULL, 3, T0 - 500, 0);
    world.now.us = T0 + 1;
    struct hfi_admitted lane = ask("a", NULL, 1);
    struct hfi_op_claim op = {.lanes = &lane, .lane_count = 1, .max = 1};
    assert_int_equal(claim(&op, ids), 1);
    assert_int_equal(ids[0], behind);
    behind = put("a", NULL, 5, T0 - 50, 0);
    world.now.us = T0;
    put("a", NULL, 5, T0 - 99, T0 + 1);
    world.now.us = T0 + 1;
    assert_int_equal(claim(&op, ids), 1); /* one too many: not found, and it is not said that nothing is there */
    assert_int_equal(ids[0], lower);
    assert_true(lane.more);
    assert_int_equal(claim(&op, ids), 0);
    assert_true(lane.more);
    struct hfi_op_expire expire = {.op = {.kind = HFI_OP_EXPIRE}, .now = world.now, .limit = 1000};
    assert_int_equal(world_do(&expire.op), 0);
    assert_int_equal(claim(&op, ids), 1);
    assert_int_equal(ids[0], behind);
    assert_false(lane.more);
}

/* What LANES promises of a lane is never less than what is pending, and the truth after a claim. */
static void lanes_promise_their_highest_priority(void **state) {
    (void)state;
    int64_t ids[ROOM];
    put("a", NULL, 2, T0 - 5, 0);
    put("a", NULL, 6, T0 - 5, 0);
    put("b", NULL, 1, T0 - 5, 0);
    assert_int_equal(world_lane_row("a", NULL).top_priority, 6);
    assert_int_equal(world_lane_row("b", NULL).top_priority, 1);
    struct hfi_admitted lane = ask("a", NULL, 1);
    struct hfi_op_claim op = {.lanes = &lane, .lane_count = 1, .max = 1};
    assert_int_equal(claim(&op, ids), 1);
    assert_int_equal(world_lane_row("a", NULL).top_priority, 2);
    put("a", NULL, 8, T0 + HOUR, 0); /* may be due at any time */
    assert_int_equal(world_lane_row("a", NULL).top_priority, 8);
    assert_int_equal(claim(&op, ids), 1);
    assert_false(lane.more);
    assert_int_equal(world_lane_row("a", NULL).top_priority, 8);
    world.now.us = T0 + HOUR;
    assert_int_equal(claim(&op, ids), 1);
    assert_int_equal(world_lane_row("a", NULL).top_priority, 0);
}

static void put_random(struct reference *ref, struct hfi_random *random, int count) {
    char key[8];
    for (int i = 0; i < count && ref->job_count < REF_JOBS; i++) {
        ref_random_job(ref, random, 0, T0);
        struct ref_job *job = &ref->jobs[ref->job_count - 1];
        snprintf(key, sizeof key, "k%u", (unsigned)job->lane);
        job->id = put(types[job->lane % 3], key, job->priority, job->run_at_us, 0);
        if (job->run_at_us <= T0 && hfi_random_below(random, 8) == 0) /* and one that only stands in the way */
            put(types[job->lane % 3], key, job->priority, job->run_at_us - 1, T0);
    }
}

/* Of the reference's lane; 0: nothing was ever put there. */
static int64_t lane_of(unsigned index) {
    struct hfi_op_lanes look = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    char key[32];
    int64_t lane = 0;
    snprintf(key, sizeof key, "tenant:k%u", index);
    assert_int_equal(world_do(&look.op), 0);
    for (size_t i = 0; i < look.count; i++)
        lane = strcmp(look.rows[i].limit_key, key) == 0 ? look.rows[i].lane : lane;
    hfi_free(look.rows);
    return lane;
}

/* 3.4: random lanes, queues and budgets, claim after claim, jobs coming in between: exactly what the reference takes. */
static void the_order_is_that_of_the_reference(void **state) {
    (void)state;
    static struct reference ref, fresh;
    struct hfi_random random;
    int64_t ids[ROOM];
    hfi_random_seed(&random, test_seed("order"));
    world.now.us = T0 - HOUR;
    for (int round = 0; round < 6; round++) {
        struct hfi_admitted lanes[REF_LANES];
        struct hfi_merge_budget budgets[REF_BUDGETS];
        ref_random(&fresh, &random, REF_LANES);
        memcpy(fresh.jobs, ref.jobs, sizeof ref.jobs);
        fresh.job_count = ref.job_count;
        ref = fresh;
        ref.now_us = T0;
        put_random(&ref, &random, 40);
        world.now.us = T0;
        for (uint16_t i = 0; i < REF_LANES; i++) {
            lanes[i] = (struct hfi_admitted){.lane = lane_of(i), .max = ref.lanes[i].max, .policy = &world.curve,
                                             .aging_us = ref.aging_us, .queue = (uint16_t)ref.lanes[i].queue};
            memcpy(lanes[i].draws, ref.lanes[i].draws, sizeof ref.lanes[i].draws);
        }
        memcpy(budgets, ref.budgets, sizeof budgets);
        struct hfi_merge_queue queues[REF_QUEUES];
        memcpy(queues, ref.queues, sizeof queues);
        struct hfi_op_claim op = {.lanes = lanes, .lane_count = REF_LANES, .max = ref.max, .queues = queues,
                                  .queue_count = ref.queue_count, .budgets = budgets, .budget_count = ref.budget_count};
        size_t count = claim(&op, ids);
        for (size_t i = 0; i < count; i++) {
            const struct ref_job *next = ref_next(&ref);
            if (next == NULL || next->id != ids[i])
                fail_msg("round %d, job %zu: %lld, not %lld", round, i, (long long)ids[i], next == NULL ? 0LL : (long long)next->id);
        }
        assert_null(ref_next(&ref));
        for (size_t i = 0; i < ref.queue_count; i++)
            assert_true(queues[i].after == ref.queues[i].current);
        world.now.us = T0 - HOUR;
    }
}

WORLD_MAIN(WORLD_TEST(the_order_is_one_over_all_lanes), WORLD_TEST(lanes_share_budgets),
           WORLD_TEST(queues_share_by_weight_over_claims), WORLD_TEST(what_is_past_its_time_is_passed_over_within_bounds),
           WORLD_TEST(lanes_promise_their_highest_priority), WORLD_TEST(the_order_is_that_of_the_reference))
