/* SPDX-License-Identifier: MIT */
/*
 * Contract of the store: bounds of limit keys and queues as a predicate of the claim, rates, aging, and that giving back
 * leaves no trace in the counters. A plain reference beside each store; seeds are printed.
 */
#include "store_world.h"

#include "jobs/hands.h"
#include "jobs/limit.h"
#include "seed.h"

#define ROOM 64

static const struct hfi_limit two = {.concurrency = 2};

static int64_t put_in(const char *type, const char *queue, const char *key, int32_t priority, int64_t run_at_us) {
    struct hf_job_spec spec = world_spec(type, queue);
    spec.limit_name = key == NULL ? NULL : "tenant";
    spec.limit_key = key;
    spec.priority = priority;
    spec.run_at_us = run_at_us;
    return world_put(&spec);
}

static int64_t put(const char *type, const char *key) {
    return put_in(type, NULL, key, 0, 0);
}

static struct hfi_admitted ask(const char *type, const char *key, uint32_t max, const struct hfi_limit *limit) {
    return (struct hfi_admitted){.lane = world_lane_row(type, key).lane, .max = max, .policy = &world.curve, .limit = limit};
}

/* One claim of these lanes; the jobs are the world's to free. */
static size_t claim(struct hfi_admitted *lanes, size_t lane_count, uint32_t max, struct hfi_job **jobs) {
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = world.node, .now = world.now, .start = true,
                              .lanes = lanes, .lane_count = lane_count, .max = max, .jobs = jobs};
    assert_int_equal(world_do(&op.op), 0);
    for (size_t i = 0; i < op.count; i++) {
        assert_true(world.owned_count < sizeof world.owned / sizeof *world.owned);
        world.owned[world.owned_count++] = jobs[i];
    }
    return op.count;
}

static int64_t other_node(void) {
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "node-b", .host = "here", .boot = "boot-b",
                               .pid = 1, .now = world.now};
    assert_int_equal(world_do(&join.op), 0);
    return join.node;
}

/* I83, I38: without a place nothing is claimed and nothing counted; whatever ends, however it ends, makes room. */
static void a_key_has_its_places_over_all_lanes_and_nodes(void **state) {
    (void)state;
    struct hfi_job *jobs[ROOM], *more[ROOM];
    int64_t waiting = 0, first = world.node;
    for (int i = 0; i < 3; i++) {
        put("a", "acme");
        waiting = put("b", "acme");
        put("a", "other");
        put("a", NULL);
    }
    struct hfi_admitted lane = ask("a", "acme", 10, &two);
    assert_int_equal(claim(&lane, 1, 10, jobs), 2);
    assert_true(lane.more);
    world.node = other_node();
    lane = ask("b", "acme", 10, &two);
    assert_int_equal(claim(&lane, 1, 10, more), 0);
    assert_true(lane.more); /* it stays due */
    assert_int_equal(world_job(waiting)->executions, 0);
    assert_int_equal(world_job(waiting)->epoch, 0);
    assert_int_equal(world_lane_row("b", "acme").limit_running, 2);
    assert_int_equal(world_lane_row("a", "other").limit_running, 0);
    lane = ask("a", "other", 10, &two);
    assert_int_equal(claim(&lane, 1, 10, more), 2);
    lane = ask("a", NULL, 10, NULL);
    assert_int_equal(claim(&lane, 1, 10, more), 3);
    world.node = first;
    assert_int_equal(world_fail(&jobs[0], true), 0); /* the head of the key is exhausted: the next has its place */
    lane = ask("b", "acme", 10, &two);
    assert_int_equal(claim(&lane, 1, 10, more), 1);
    assert_int_equal(APPLY(&jobs[1], SNOOZED, .delay_ms = 1000), 0);
    assert_int_equal(APPLY(&more[0], SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_lane_row("b", "acme").limit_running, 0);
    lane = ask("b", "acme", 1, &two);
    assert_int_equal(claim(&lane, 1, 10, more), 1);
    assert_true(lane.more);
}

/* I42: 1,000 jobs of a full key come first, and one that is free: it is claimed at once. */
static void a_full_key_fills_no_claim(void **state) {
    (void)state;
    struct hfi_job *jobs[ROOM];
    for (int i = 0; i < 1000; i++)
        put_in("a", NULL, "full", 9, T0 - 1000);
    int64_t id = put("a", "free");
    struct hfi_admitted lanes[3] = {ask("a", "full", 2, &two)};
    assert_int_equal(claim(lanes, 1, 2, jobs), 2);
    lanes[0] = ask("a", "full", 32, &two);
    lanes[1] = ask("a", "free", 32, &two);
    lanes[2] = ask("a", "full", 32, &two);
    assert_int_equal(claim(lanes, 3, 1, jobs), 1);
    assert_int_equal(jobs[0]->id, id);
    assert_true(lanes[0].more);
    assert_false(lanes[1].more);
    /* and two lanes of one key in one claim share what it has */
    put("b", "free");
    put("b", "free");
    put("a", "free");
    lanes[0] = ask("a", "free", 32, &two);
    lanes[1] = ask("b", "free", 32, &two);
    assert_int_equal(claim(lanes, 2, 32, jobs), 1);
}

static const char *const keys[] = {"x", "y", "z"};

/* What the test knows to be held. */
struct holders {
    struct hfi_random random;
    int64_t nodes[2];
    struct hfi_job *jobs[256];
    bool stale[256];
    size_t count;
    uint32_t running[3];
};

static size_t key_of(const struct hfi_job *job) {
    return (size_t)(strchr("xyz", job->limit_key[7]) - "xyz");
}

static void claim_some(struct holders *held) {
    struct hfi_job *jobs[ROOM];
    size_t key = (size_t)hfi_random_below(&held->random, 3);
    struct hfi_admitted lane = ask(hfi_random_below(&held->random, 2) ? "a" : "b", keys[key],
                                   1 + (uint32_t)hfi_random_below(&held->random, 3), &two);
    size_t got = claim(&lane, 1, 8, jobs);
    assert_true(got <= hfi_limit_room(2, held->running[key]));
    for (size_t i = 0; i < got; i++) {
        held->stale[held->count] = false;
        held->jobs[held->count++] = jobs[i];
    }
    held->running[key] += (uint32_t)got;
}

/* Ends one, twice; the second word changes nothing. */
static void end_one(struct holders *held) {
    if (held->count == 0)
        return;
    size_t at = (size_t)hfi_random_below(&held->random, held->count);
    struct hfi_job *job = held->jobs[at], *twice = job;
    world.node = job->owner;
    int code = hfi_random_below(&held->random, 2) ? world_fail(&job, true) : APPLY(&job, SUCCEEDED, .result = NULL);
    assert_int_equal(code, held->stale[at] ? HF_ESTALE : 0);
    held->running[key_of(twice)] -= code == 0;
    assert_int_equal(APPLY(&twice, SUCCEEDED, .result = NULL), HF_ESTALE);
    held->jobs[at] = held->jobs[--held->count];
    held->stale[at] = held->stale[held->count];
}

/* A node's job lapses; the node may still speak. */
static void lapse_one(struct holders *held) {
    struct hfi_op_sweep sweep = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = world.node, .by = 99,
                                 .now = world.now, .limit = 1};
    assert_int_equal(world_do(&sweep.op), 0);
    for (size_t i = 0; i < held->count && sweep.lapsed > 0; i++)
        if (held->jobs[i]->id == sweep.after_id) {
            held->stale[i] = true;
            held->running[key_of(held->jobs[i])]--;
        }
    hfi_free(sweep.notes);
}

/*
 * I14: any order of claims, ends, double ends, lapses and late words by nodes that lost their jobs: what runs of a key is
 * what its rows say, never more than its places, and in the end none is taken.
 */
static void places_are_what_runs_whatever_happens(void **state) {
    (void)state;
    struct holders held = {.nodes = {world.node, other_node()}};
    hfi_random_seed(&held.random, test_seed("limits"));
    for (int i = 0; i < 400; i++)
        put(i % 2 ? "a" : "b", keys[hfi_random_below(&held.random, 3)]);
    for (int step = 0; step < 1000; step++) {
        world.node = held.nodes[hfi_random_below(&held.random, 2)];
        world.now.us += 10 * MS;
        uint64_t what = hfi_random_below(&held.random, 60);
        if (what < 20 && held.count < 200)
            claim_some(&held);
        else if (what < 40)
            end_one(&held);
        else if (what == 40)
            lapse_one(&held);
        for (size_t i = 0; i < 3; i++) {
            assert_true(held.running[i] <= 2);
            assert_int_equal(world_lane_row("a", keys[i]).limit_running, held.running[i]);
        }
    }
    while (held.count > 0)
        end_one(&held);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(world_lane_row("a", keys[i]).limit_running, 0);
}

static void a_queue_is_bounded_in_the_whole_store(void **state) {
    (void)state;
    struct hfi_job *jobs[ROOM];
    for (int i = 0; i < 5; i++) {
        put_in("a", "reports", NULL, 0, 0);
        put_in("b", "reports", "k", 0, 0);
        put_in("c", NULL, NULL, 0, 0);
    }
    struct hfi_admitted lanes[3] = {ask("a", NULL, 10, NULL), ask("b", "k", 10, &two), ask("c", NULL, 10, NULL)};
    lanes[0].queue_max = lanes[1].queue_max = 6;
    assert_int_equal(claim(lanes, 1, 4, jobs), 4);
    world.node = other_node();
    assert_int_equal(claim(lanes, 3, 20, jobs), 1 + 1 + 5);
    assert_int_equal(lanes[0].claimed, 0); /* what is left of it came last */
    assert_true(lanes[0].more);
    assert_int_equal(lanes[1].claimed, 2);
    assert_true(lanes[1].more);
    assert_int_equal(world_lane_row("a", NULL).queue_running, 6);
    assert_int_equal(world_lane_row("c", NULL).queue_running, 5);
    assert_int_equal(claim(lanes, 2, 20, jobs), 0);
}

static void nothing_of_a_paused_queue_is_claimed_until_its_time(void **state) {
    (void)state;
    struct hfi_job *jobs[ROOM];
    put_in("a", "reports", NULL, 0, 0);
    put_in("b", NULL, NULL, 0, 0);
    struct hfi_op_pause pause = {.op = {.kind = HFI_OP_PAUSE}, .queue = "reports", .actor = "me", .pause = true,
                                 .until_us = T0 + HOUR, .now = world.now};
    assert_int_equal(world_do(&pause.op), 0);
    struct hfi_admitted lanes[2] = {ask("a", NULL, 10, NULL), ask("b", NULL, 10, NULL)};
    assert_int_equal(claim(lanes, 2, 20, jobs), 1);
    assert_string_equal(jobs[0]->type, "b");
    assert_true(world_lane_row("a", NULL).paused);
    world.now.us = T0 + HOUR - 1;
    assert_int_equal(claim(lanes, 1, 20, jobs), 0);
    world.now.us = T0 + HOUR;
    assert_false(world_lane_row("a", NULL).paused);
    assert_int_equal(claim(lanes, 1, 20, jobs), 1);
}

static void limit_names_are_listed_with_what_is_not_over(void **state) {
    (void)state;
    struct hfi_job *jobs[ROOM];
    struct hf_limit_list *list = NULL;
    for (int i = 0; i < 4; i++)
        put(i % 2 ? "a" : "b", i < 2 ? "x" : "y");
    put("a", NULL);
    struct hf_job_spec spec = world_spec("c", NULL);
    spec.limit_name = "ten";
    spec.limit_key = "x:y";
    world_put(&spec);
    struct hfi_admitted lane = ask("a", "x", 1, &two);
    assert_int_equal(claim(&lane, 1, 1, jobs), 1);
    lane = ask("b", "y", 1, &two);
    assert_int_equal(claim(&lane, 1, 1, jobs), 1);
    assert_int_equal(APPLY(&jobs[0], SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world.store->ops->list_limits(world.store, &list, NULL), 0);
    assert_int_equal(hf_limit_list_count(list), 2);
    const struct hf_limit_view *ten = hf_limit_list_at(list, 0), *tenant = hf_limit_list_at(list, 1);
    assert_string_equal(ten->name, "ten");
    assert_int_equal(ten->keys, 1);
    assert_int_equal(ten->pending, 1);
    assert_string_equal(tenant->name, "tenant");
    assert_int_equal(tenant->keys, 2);
    assert_int_equal(tenant->pending, 2);
    assert_int_equal(tenant->running, 1);
    hf_limit_list_free(list);
}

/* ------------------------------------------------------------------ rates */

static const struct hfi_limit ten_a_second = {.interval_us = 100000, .burst = 3};

static size_t start(struct hfi_admitted *lane) {
    struct hfi_job *jobs[ROOM];
    return claim(lane, 1, 10, jobs);
}

static void a_rate_is_kept_over_lanes_and_nodes(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        put("a", "k");
        put("b", "k");
        put("a", "l");
    }
    struct hfi_admitted a = ask("a", "k", 10, &ten_a_second), b = ask("b", "k", 10, &ten_a_second);
    struct hfi_admitted l = ask("a", "l", 2, &ten_a_second);
    assert_int_equal(start(&a), 3);
    assert_int_equal(a.full_at_us, T0 + 300000);
    assert_true(a.more);
    assert_int_equal(start(&l), 2); /* another key has its own */
    world.node = other_node();
    assert_int_equal(start(&b), 0);
    assert_int_equal(b.full_at_us, T0 + 300000); /* so the node knows when to ask again */
    world.now.us = T0 + 99999;
    assert_int_equal(start(&b), 0);
    world.now.us = T0 + 100000;
    assert_int_equal(start(&b), 1);
    assert_int_equal(start(&a), 0);
    world.now.us = T0 + 10 * SECOND;
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .now = world.now, .limit = 100};
    assert_int_equal(world_do(&prune.op), 0); /* what is full again need not be remembered */
    assert_int_equal(start(&a), 3);
    prune.now = world.now;
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(start(&b), 0);
    world.now.us -= HOUR; /* a clock that was set back blocks nobody for an hour */
    assert_int_equal(start(&b), 0);
    world.now.us += 100000;
    assert_int_equal(start(&b), 0);
    world.now.us += 200000;
    assert_true(start(&b) <= 3);
}

/* Over any span at most burst + rate × span starts, and whoever waits long enough has one. */
static void a_rate_is_never_exceeded(void **state) {
    (void)state;
    struct hfi_random random;
    int64_t starts[2048];
    size_t count = 0;
    uint64_t seed = test_seed("rate");
    hfi_random_seed(&random, seed);
    for (int i = 0; i < 1500; i++)
        put("a", "k");
    struct hfi_admitted lane = ask("a", "k", 10, &ten_a_second);
    int64_t idle_since = 0;
    for (int step = 0; step < 1000; step++) {
        world.now.us += hfi_random_below(&random, 4) ? (int64_t)hfi_random_below(&random, 60) * MS : 400 * MS;
        lane.max = 1 + (uint32_t)hfi_random_below(&random, 5);
        size_t got = start(&lane);
        assert_true(got > 0 || world.now.us - idle_since < 100 * MS);
        for (size_t i = 0; i < got; i++)
            starts[count++] = world.now.us;
        if (got > 0)
            idle_since = world.now.us;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 3; j < count && j < i + 40; j++)
            assert_true(starts[j] - starts[i] >= (int64_t)(j - i - 2) * 100000);
}

/* ------------------------------------------------------------------ aging */

struct aged {
    int64_t id;
    struct {
        int priority;
        int64_t run_at_us;
    } job;
    bool gone;
};

static bool goes_before(const struct aged *one, const struct aged *other, int64_t now_us, int64_t aging_us) {
    int64_t first = hfi_aged_priority(one->job.priority, one->job.run_at_us, now_us, aging_us);
    int64_t second = hfi_aged_priority(other->job.priority, other->job.run_at_us, now_us, aging_us);
    return first != second ? first > second : one->job.run_at_us < other->job.run_at_us;
}

static size_t next_of(const struct aged *jobs, size_t count, int64_t now_us, int64_t aging_us) {
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].gone || jobs[i].job.run_at_us > now_us)
            continue;
        if (best == count || goes_before(&jobs[i], &jobs[best], now_us, aging_us))
            best = i;
    }
    return best;
}

/* 3.4: what waits longer counts for more; every claim takes exactly those whose turn it is, in their order. */
static void old_jobs_are_lifted(void **state) {
    (void)state;
    struct hfi_random random;
    static struct aged jobs[300];
    uint64_t seed = test_seed("aging");
    hfi_random_seed(&random, seed);
    for (size_t i = 0; i < 300; i++) {
        jobs[i].job.priority = (int)hfi_random_below(&random, 10);
        jobs[i].job.run_at_us = T0 - (int64_t)hfi_random_below(&random, 600) * SECOND - (int64_t)i; /* no two alike */
        jobs[i].id = put_in("a", NULL, NULL, jobs[i].job.priority, jobs[i].job.run_at_us);
        jobs[i].gone = false;
    }
    struct hf_job_spec dated = world_spec("a", NULL); /* past its time at the head: passed over */
    dated.priority = 9;
    dated.run_at_us = T0 - HOUR;
    dated.expires_at_us = T0 + 1;
    world_put(&dated);
    world.now.us = T0 + 2;
    struct hfi_admitted lane = ask("a", NULL, 10, NULL);
    lane.aging_us = 60 * SECOND;
    for (size_t left = 300; left > 0;) {
        struct hfi_job *got[ROOM];
        lane.max = 1 + (uint32_t)hfi_random_below(&random, 20);
        size_t count = claim(&lane, 1, lane.max, got);
        assert_int_equal(count, lane.max < left ? lane.max : left);
        for (size_t i = 0; i < count; i++) {
            size_t next = next_of(jobs, 300, world.now.us, lane.aging_us);
            assert_int_equal(got[i]->id, jobs[next].id);
            jobs[next].gone = true;
        }
        left -= count;
        assert_int_equal(lane.more, left > 0);
        world.now.us += (int64_t)hfi_random_below(&random, 100) * SECOND;
    }
}

/* Off, a priority is a priority: an old job of a lower one waits for all above it. */
static void without_aging_priority_decides(void **state) {
    (void)state;
    struct hfi_job *jobs[ROOM];
    int64_t old = put_in("a", NULL, NULL, 0, T0 - 90 * DAY), young = put_in("a", NULL, NULL, 1, T0);
    struct hfi_admitted lane = ask("a", NULL, 1, NULL);
    assert_int_equal(claim(&lane, 1, 1, jobs), 1);
    assert_int_equal(jobs[0]->id, young);
    young = put_in("a", NULL, NULL, 1, T0);
    lane.aging_us = DAY;
    assert_int_equal(claim(&lane, 1, 1, jobs), 1);
    assert_int_equal(jobs[0]->id, old);
}

/* ------------------------------------------------------------------ giving back */

/* I43, S2.10: reserved or started, given back any number of times: the counters are those before the claim. */
static void giving_back_restores_every_counter(void **state) {
    (void)state;
    struct hfi_random random;
    struct hf_outcome outcome;
    uint64_t seed = test_seed("give back");
    hfi_random_seed(&random, seed);
    int64_t id = put("a", "k");
    hfi_outcome_init(&outcome);
    hfi_outcome_rejected(&outcome, "breaker.open", 0);
    for (int round = 0; round < 12; round++) {
        const struct hf_job_view *before = world_job(id);
        struct hfi_job *job = NULL;
        bool start = hfi_random_below(&random, 2);
        assert_int_equal(world_claim(world_lane_row("a", "k").lane, 1, start, &job), 1);
        if (!start && hfi_random_below(&random, 2)) {
            assert_int_equal(APPLY(&job, STARTED, .result = NULL), 0);
            start = true;
        }
        assert_int_equal(world_job(id)->executions, before->executions + start);
        bool rejected = start && hfi_random_below(&random, 2);
        if (rejected)
            assert_int_equal(APPLY(&job, REJECTED, .outcome = &outcome, .delay_ms = 0), 0);
        else
            assert_int_equal(APPLY(&job, GIVEN_BACK, .delay_ms = 0), 0);
        const struct hf_job_view *after = world_job(id);
        assert_int_equal(after->state, HF_JOB_PENDING);
        assert_int_equal(after->executions, before->executions);
        assert_int_equal(after->failures, before->failures);
        assert_int_equal(after->crashes, before->crashes);
        assert_int_equal(after->snoozes, before->snoozes);
        assert_int_equal(after->deaths, before->deaths);
        assert_int_equal(after->priority, before->priority);
        assert_true(after->epoch > before->epoch);
        assert_int_equal(world_lane_row("a", "k").limit_running, 0);
        if (rejected) /* no hot loop: at least 250 ms; given back is due at once */
            assert_int_equal(after->run_at_us, world.now.us + 250 * MS);
        else
            assert_true(after->run_at_us <= world.now.us);
        world.now.us = after->run_at_us > world.now.us ? after->run_at_us : world.now.us + MS;
        if (round % 4 == 3) { /* a failure in between counts, and stays counted */
            job = world_start(world_lane_row("a", "k").lane);
            assert_int_equal(world_fail(&job, false), 0);
            world.now.us = world_job(id)->run_at_us;
        }
    }
    assert_int_equal(world_job(id)->executions, 3);
    assert_int_equal(world_job(id)->failures, 3);
}

WORLD_MAIN(WORLD_TEST(a_key_has_its_places_over_all_lanes_and_nodes), WORLD_TEST(a_full_key_fills_no_claim),
           WORLD_TEST(places_are_what_runs_whatever_happens), WORLD_TEST(a_queue_is_bounded_in_the_whole_store),
           WORLD_TEST(nothing_of_a_paused_queue_is_claimed_until_its_time),
           WORLD_TEST(limit_names_are_listed_with_what_is_not_over),
           WORLD_TEST(a_rate_is_kept_over_lanes_and_nodes), WORLD_TEST(a_rate_is_never_exceeded),
           WORLD_TEST(old_jobs_are_lifted), WORLD_TEST(without_aging_priority_decides),
           WORLD_TEST(giving_back_restores_every_counter))
