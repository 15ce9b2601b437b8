/* SPDX-License-Identifier: MIT */
/*
 * Nodes that share limits by key and bounds of queues, in virtual time: never more at once than allowed, measured on the
 * calls themselves, and nobody waits for longer than it must.
 */
#include "limited.h"

/* I14, I83: three nodes, two types, five keys: two at once of each key, wherever, and all of them done, once each. */
static void a_keys_places_hold_for_all_nodes(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "places");
    for (int i = 0; i < 300; i++)
        put(&world, i % 2 ? "order" : "parcel", "default", "tenant", i % 5);
    for (int i = 0; i < 20; i++)
        put(&world, "order", "default", NULL, 0);
    for (size_t i = 0; i < 3; i++)
        stage_begin(&world.stage, i, &world.options);
    stage_advance(&world.stage, 300 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 320);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), 320);
    for (int key = 0; key < 5; key++)
        assert_int_equal(most_at_once(&world, key, 0), 2); /* and they were used */
    stage_close(&world.stage);
}

/* I87: a burst of 1,000 into a queue of 20: never more than 20, and each place is taken again at once. */
static void a_burst_never_overfills_a_queue(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "burst");
    world.queues[1].concurrency = 20;
    world.longest_ms = 20;
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    for (int i = 0; i < 1000; i++)
        put(&world, "order", "reports", NULL, 0);
    stage_advance(&world.stage, 2000); /* 1,000 × 10.5 ms / 20 is half a second */
    assert_int_equal(stage_jobs(&world.stage).succeeded, 1000);
    assert_int_equal(most_at_once(&world, -1, 'r'), 20);
    stage_close(&world.stage);
}

static void a_queue_is_bounded_over_all_nodes(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "global");
    world.queues[1].global_concurrency = 4;
    world.queues[1].concurrency = 3; /* of each node */
    for (int i = 0; i < 200; i++) {
        put(&world, "order", "reports", NULL, 0);
        put(&world, "parcel", "default", NULL, 0);
    }
    for (size_t i = 0; i < 3; i++)
        stage_begin(&world.stage, i, &world.options);
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 400);
    assert_int_equal(most_at_once(&world, -1, 'r'), 4);
    assert_true(most_at_once(&world, -1, 'd') > 4);
    stage_close(&world.stage);
}

/* I92: one place, two nodes, enqueues that race its release: nobody waits for longer than a poll while it is free. */
static void no_job_waits_for_a_place_that_is_free(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "release");
    world.limits[0].concurrency = 1;
    for (size_t i = 0; i < 2; i++)
        stage_begin(&world.stage, i, &world.options);
    int64_t free_since = 0, ids[1500], put_at[1500];
    for (int i = 0; i < 1500; i++) {
        stage_advance(&world.stage, (int64_t)hfi_random_below(&world.random, 120));
        put_at[i] = wall(&world);
        ids[i] = put(&world, "order", "default", "tenant", 1);
    }
    stage_advance(&world.stage, 600 * SECOND);
    for (int i = 0; i < 1500; i++) { /* one at a time, in their order */
        struct hf_job *job = stage_job(&world.stage, ids[i]);
        const struct hf_job_view *view = hf_job_look(job);
        assert_int_equal(view->state, HF_JOB_SUCCEEDED);
        assert_int_equal(view->executions, 1);
        int64_t may_start = put_at[i] > free_since ? put_at[i] : free_since;
        assert_in_range(view->started_at_us - may_start, 0, 255000);
        free_since = view->finished_at_us;
        hf_job_free(job);
    }
    assert_int_equal(most_at_once(&world, 1, 0), 1);
    stage_close(&world.stage);
}

/* S4.3, I38: a key with one place is an ordered queue: its head fails for hours, the next one starts at once. */
static void a_failed_head_holds_nobody_up(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "head");
    world.limits[0].concurrency = 1;
    world.longest_ms = 1;
    world.first_fails = true;
    int64_t waits = 5 * 3600 * SECOND;
    char payload[] = "1d000000";
    struct hf_job_spec spec = hf_job_of("order", payload);
    spec.curve_ms = &waits;
    spec.curve_length = 1;
    spec.queue = "default";
    spec.limit_name = "tenant";
    spec.limit_key = "1";
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    int64_t head = stage_put(&world.stage, &spec), next = put(&world, "order", "default", "tenant", 1);
    stage_advance(&world.stage, 2000);
    struct hf_job *first = stage_job(&world.stage, head), *second = stage_job(&world.stage, next);
    assert_int_equal(hf_job_look(first)->state, HF_JOB_PENDING);
    assert_int_equal(hf_job_look(first)->failures, 1);
    assert_int_equal(hf_job_look(second)->state, HF_JOB_SUCCEEDED);
    assert_in_range(hf_job_look(second)->started_at_us, hf_job_look(first)->started_at_us,
                    hf_job_look(first)->started_at_us + 50000);
    hf_job_free(first);
    hf_job_free(second);
    stage_close(&world.stage);
}

/* A rate of 10 a second is one each 100 ms over all nodes, though the poll is 250 ms; another key has its own. */
static void a_rate_is_shared_and_used(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "rate");
    world.longest_ms = 5;
    for (int i = 0; i < 100; i++) {
        put(&world, "order", "default", "api", 1);
        put(&world, "parcel", "default", "api", 2);
    }
    for (size_t i = 0; i < 3; i++)
        stage_begin(&world.stage, i, &world.options);
    stage_advance(&world.stage, 10 * SECOND + 500);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 200);
    for (int key = 1; key <= 2; key++) {
        int64_t last = 0;
        for (uint64_t i = 0; i < 200; i++) {
            int64_t at = hfi_scripted_record(world.stage.scripted, i)->started.us;
            if (world.keys[i] != key)
                continue;
            assert_true(last == 0 || at - last >= 99000);
            last = at;
        }
    }
    stage_close(&world.stage);
}

/* A limit name that the node does not know: not limited, and said once. */
static void an_unknown_limit_is_told_once(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "unknown");
    for (int i = 0; i < 40; i++)
        put(&world, "order", "default", i % 2 ? "colour" : "tenant", i % KEYS);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 5 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 40);
    assert_int_equal(stage_logged(&world.stage, "limit.unknown"), 1);
    assert_non_null(strstr(stage_last(&world.stage, "limit.unknown"), "colour:"));
    stage_close(&world.stage);
}

static void a_pause_ends_at_its_time(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "pause");
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    struct hfi_op_pause pause = {.queue = "reports", .actor = "me", .pause = true, .until_us = wall(&world) + 3600000000,
                                 .now = {wall(&world)}};
    assert_int_equal(stage_do(&world.stage, &pause.op, HFI_OP_PAUSE), 0);
    int64_t paused = put(&world, "order", "reports", "tenant", 1), other = put(&world, "order", "default", NULL, 0);
    stage_advance(&world.stage, 3590 * SECOND);
    assert_int_equal(stage_state(&world.stage, paused), HF_JOB_PENDING);
    assert_int_equal(stage_state(&world.stage, other), HF_JOB_SUCCEEDED);
    stage_advance(&world.stage, 10 * SECOND + 400);
    assert_int_equal(stage_state(&world.stage, paused), HF_JOB_SUCCEEDED);
    struct hf_job *job = stage_job(&world.stage, paused);
    assert_in_range(hf_job_look(job)->started_at_us - pause.until_us, 0, 255000);
    hf_job_free(job);
    stage_close(&world.stage);
}

/* S1.23: 6 to 1 while both have work, from the first start on. */
static void weights_share_what_there_is(void **state) {
    (void)state;
    static struct limited world;
    open_world(&world, "weights");
    world.policy.bulkhead_max = 7;
    for (size_t i = 0; i < 3; i++)
        world.queues[i].order = 1;
    world.queues[0].weight = 6;
    for (int i = 0; i < 700; i++) {
        put(&world, "order", "default", NULL, 0);
        put(&world, "parcel", "reports", NULL, 0);
    }
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 1400);
    uint32_t light = 0;
    for (uint64_t i = 0; i < 700; i++)
        light += world.queue[i] == 'r';
    assert_in_range(light, 98, 102);
    stage_close(&world.stage);
}

/* 3.4: within a lane, what waited long enough goes before what came later with a higher priority. */
static void aging_lifts_an_old_job(void **state) {
    (void)state;
    for (int aging = 0; aging < 2; aging++) {
        static struct limited world;
        open_world(&world, "aging");
        world.queues[0].concurrency = 1;
        world.queues[0].aging_ms = aging ? 10 * SECOND : 0;
        world.longest_ms = 1;
        char payload[] = "-d000000";
        struct hf_job_spec spec = hf_job_of("order", payload);
        spec.queue = "default";
        int64_t old = stage_put(&world.stage, &spec);
        stage_advance(&world.stage, 25 * SECOND); /* worth two priorities */
        spec.priority = 1;
        for (int i = 0; i < 50; i++)
            stage_put(&world.stage, &spec);
        spec.priority = 5;
        int64_t urgent = stage_put(&world.stage, &spec);
        stage_begin(&world.stage, 0, &world.options);
        stage_advance(&world.stage, 5 * SECOND);
        uint32_t before = 0;
        struct hf_job *job = stage_job(&world.stage, old), *first = stage_job(&world.stage, urgent);
        for (int64_t id = old + 1; id <= urgent; id++) {
            struct hf_job *other = stage_job(&world.stage, id);
            before += hf_job_look(other)->started_at_us < hf_job_look(job)->started_at_us;
            hf_job_free(other);
        }
        assert_int_equal(before, aging ? 1 : 51);
        assert_true(hf_job_look(first)->started_at_us < hf_job_look(job)->started_at_us);
        hf_job_free(first);
        hf_job_free(job);
        stage_close(&world.stage);
    }
}

/* ------------------------------------------------------------------ the order */

#define ORDERED 240
#define AT_ONCE (5 * INT64_C(1000)) /* what came or ended so shortly before a start may not be known yet */

struct ordered {
    int64_t id, due_us, started_us, ended_us;
    int32_t priority, key, order;
};

static void put_ordered(struct limited *world, struct ordered *jobs, size_t index) {
    static const char *const queues[] = {"critical", "default"};
    struct ordered *job = &jobs[index];
    char payload[32], key[2] = {0};
    job->order = hfi_random_below(&world->random, 3) != 0;
    job->key = (int32_t)hfi_random_below(&world->random, 5) - 1;
    job->priority = (int32_t)hfi_random_below(&world->random, 10);
    job->due_us = wall(world) + (int64_t)hfi_random_below(&world->random, 3000) * 1000;
    snprintf(payload, sizeof payload, "%c%c%06zu", job->key < 0 ? '-' : (char)('0' + job->key), queues[job->order][0], index);
    struct hf_job_spec spec = hf_job_of(hfi_random_below(&world->random, 2) ? "order" : "parcel", payload);
    key[0] = payload[0];
    spec.queue = queues[job->order];
    spec.priority = job->priority;
    spec.run_at_us = job->due_us;
    spec.limit_name = job->key < 0 ? NULL : "tenant";
    spec.limit_key = job->key < 0 ? NULL : key;
    job->id = stage_put(&world->stage, &spec);
}

static bool goes_before(const struct ordered *one, const struct ordered *other) {
    if (one->order != other->order)
        return one->order < other->order;
    if (one->priority != other->priority)
        return one->priority > other->priority;
    return one->due_us != other->due_us ? one->due_us < other->due_us : one->id < other->id;
}

/* Had its key a place, beyond doubt, when another one started? */
static bool had_place(const struct ordered *jobs, const struct ordered *job, int64_t at_us, uint32_t places) {
    uint32_t running = 0;
    for (size_t i = 0; i < ORDERED && job->key >= 0; i++)
        running += jobs[i].key == job->key && jobs[i].started_us <= at_us && jobs[i].ended_us > at_us - AT_ONCE;
    return running < places;
}

/*
 * 3.4: whatever its type and limit key, the job that starts is the first in order of those that might: by strict queue,
 * priority, due time, id; below a higher queue only when that has nothing that may start; and all of them start.
 */
static void the_best_that_may_start_is_the_one_that_does(void **state) {
    (void)state;
    static struct limited world;
    static struct ordered jobs[ORDERED];
    open_world(&world, "order");
    memset(jobs, 0, sizeof jobs);
    world.policy.bulkhead_max = 3; /* these places are what all of them wait for */
    world.queues[2].order = 1;
    world.queues[0].order = 2;
    for (size_t i = 0; i < ORDERED; i++)
        put_ordered(&world, jobs, i);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 300 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, ORDERED);
    assert_int_equal(hfi_scripted_started(world.stage.scripted), ORDERED);
    for (uint64_t i = 0; i < ORDERED; i++) {
        const struct hfi_script_record *record = hfi_scripted_record(world.stage.scripted, i);
        jobs[world.serial[i]].started_us = record->started.us;
        jobs[world.serial[i]].ended_us = record->ended.us;
    }
    int64_t ahead_us = wall(&world) - world.stage.scheduler->ops->mono(world.stage.scheduler).us;
    for (size_t i = 0; i < ORDERED; i++)
        for (size_t other = 0; other < ORDERED; other++) {
            int64_t at_us = jobs[i].started_us;
            if (jobs[other].started_us > at_us && jobs[other].due_us <= at_us + ahead_us - AT_ONCE &&
                goes_before(&jobs[other], &jobs[i]) && had_place(jobs, &jobs[other], at_us, 2))
                fail_msg("job %zu (order %d, priority %d) started before job %zu (order %d, priority %d)", i, jobs[i].order,
                         jobs[i].priority, other, jobs[other].order, jobs[other].priority);
        }
    stage_close(&world.stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keys_places_hold_for_all_nodes),
        cmocka_unit_test(a_burst_never_overfills_a_queue),
        cmocka_unit_test(a_queue_is_bounded_over_all_nodes),
        cmocka_unit_test(no_job_waits_for_a_place_that_is_free),
        cmocka_unit_test(a_failed_head_holds_nobody_up),
        cmocka_unit_test(a_rate_is_shared_and_used),
        cmocka_unit_test(an_unknown_limit_is_told_once),
        cmocka_unit_test(a_pause_ends_at_its_time),
        cmocka_unit_test(weights_share_what_there_is),
        cmocka_unit_test(aging_lifts_an_old_job),
        cmocka_unit_test(the_best_that_may_start_is_the_one_that_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
