/* SPDX-License-Identifier: MIT */
/*
 * The order of a claim over its lanes, beside a reference that looks at every job for every job; and what budgets allow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "order_reference.h"
#include "seed.h"

#define NOW 1000

/* The jobs of a lane as a store reads them: by what they have aged to. */
static const struct ref_job *head_of(const struct reference *jobs, size_t lane) {
    const struct ref_job *head = NULL;
    for (size_t i = 0; i < jobs->job_count; i++) {
        const struct ref_job *job = &jobs->jobs[i];
        if (job->lane == lane && !job->gone && job->run_at_us <= jobs->now_us &&
            (head == NULL || ref_goes_before(jobs, job, head)))
            head = job;
    }
    return head;
}

static const struct hfi_merge_head *head(const struct reference *jobs, size_t lane, struct hfi_merge_head *out) {
    const struct ref_job *job = head_of(jobs, lane);
    if (job == NULL)
        return NULL;
    *out = (struct hfi_merge_head){hfi_aged_priority(job->priority, job->run_at_us, jobs->now_us, jobs->aging_us),
                                   job->run_at_us, job->id, job->priority};
    return out;
}

static void begin(struct hfi_merge *merge, const struct reference *ref) {
    assert_int_equal(hfi_merge_begin(merge, ref->lane_count, ref->max, ref->queues, ref->queue_count, ref->budgets,
                                     ref->budget_count, 0), 0);
    for (size_t i = 0; i < ref->lane_count; i++) {
        hfi_merge_lane(merge, i, ref->lanes[i].queue, ref->lanes[i].max);
        for (int draw = 0; draw < REF_DRAWS; draw++)
            hfi_merge_draw(merge, i, ref->lanes[i].draws[draw]);
    }
    hfi_merge_sort(merge);
}

/* Takes what the merge says, in runs as long as it allows; the ids in order. Looks at no lane that has no budget left. */
static size_t take_all(struct reference *jobs, struct hfi_merge *merge, int64_t *ids, size_t *runs) {
    struct hfi_merge_turn turn;
    size_t count = 0;
    while (hfi_merge_next(merge, &turn)) {
        struct hfi_merge_head one;
        assert_true(hfi_merge_room(merge, turn.lane) > 0);
        if (turn.look) {
            hfi_merge_found(merge, turn.lane, head(jobs, turn.lane, &one));
            continue;
        }
        uint32_t took = 0;
        struct hfi_merge_head until;
        if (turn.until != NULL)
            until = *turn.until;
        for (; took < turn.count && head(jobs, turn.lane, &one) != NULL; took++) {
            if (turn.until != NULL && !hfi_merge_before(&one, &until))
                break;
            struct ref_job *job = &jobs->jobs[head_of(jobs, turn.lane) - jobs->jobs];
            job->gone = true;
            ids[count++] = job->id;
        }
        assert_true(took > 0);
        ++*runs;
        hfi_merge_took(merge, turn.lane, took, head(jobs, turn.lane, &one));
    }
    return count;
}

/* 3.4: queues by order and weight, then priority, due time and id over all lanes, budgets shared in any way. */
static void the_order_is_that_of_the_reference(void **state) {
    (void)state;
    static struct reference ref, jobs;
    static int64_t ids[REF_JOBS];
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("merge"));
    for (int round = 0; round < 600; round++) {
        struct hfi_merge merge;
        size_t runs = 0, at = 0;
        ref_random(&ref, &random, 1 + (size_t)hfi_random_below(&random, REF_LANES));
        ref.now_us = NOW;
        for (int64_t id = 1; id <= 150; id++)
            ref_random_job(&ref, &random, id, NOW);
        for (int claim = 0; claim < 3; claim++) { /* the turns of the queues go on with the next one */
            jobs = ref;
            begin(&merge, &ref);
            size_t count = take_all(&jobs, &merge, ids, &runs);
            struct hfi_merge_queue turns[REF_QUEUES];
            memcpy(turns, ref.queues, sizeof turns);
            hfi_merge_turns(&merge, turns, ref.queue_count);
            uint32_t max = ref.max;
            for (at = 0; at < count; at++) {
                const struct ref_job *next = ref_next(&ref);
                if (next == NULL || next->id != ids[at])
                    fail_msg("round %d, job %zu: %lld, not %lld", round, at, (long long)ids[at],
                             next == NULL ? 0LL : (long long)next->id);
            }
            assert_null(ref_next(&ref));
            for (size_t i = 0; i < ref.queue_count; i++)
                assert_true(turns[i].after == ref.queues[i].current);
            hfi_merge_end(&merge);
            ref.max = max;
            for (size_t i = 1; i < ref.budget_count; i++)
                ref.budgets[i].left += (uint32_t)hfi_random_below(&random, 5);
        }
    }
}

/* One lane is asked once, and gives all it may. */
static void a_single_lane_is_one_run(void **state) {
    (void)state;
    static struct reference ref;
    static int64_t ids[REF_JOBS];
    struct hfi_merge merge;
    size_t runs = 0;
    memset(&ref, 0, sizeof ref);
    ref.lane_count = ref.queue_count = 1;
    ref.lanes[0].max = 1000;
    ref.queues[0].weight = 1;
    ref.max = 100;
    ref.now_us = NOW;
    for (int64_t id = 1; id <= 150; id++)
        ref.jobs[ref.job_count++] = (struct ref_job){.id = id, .run_at_us = 7, .priority = (int32_t)(id % 3)};
    begin(&merge, &ref);
    assert_int_equal(take_all(&ref, &merge, ids, &runs), 100);
    assert_int_equal(runs, 1);
    hfi_merge_end(&merge);
    begin(&merge, &ref);
    assert_int_equal(take_all(&ref, &merge, ids, &runs), 50); /* what was left waits for the next one */
    assert_int_equal(runs, 2);
    hfi_merge_end(&merge);
}

static void a_lane_without_a_budget_is_not_looked_at(void **state) {
    (void)state;
    static const struct hfi_merge_budget budgets[] = {{0}, {.left = 0}, {.left = 5, .of = 1}, {.left = 5, .free = 2, .of = 1}};
    struct hfi_merge merge;
    struct hfi_merge_turn turn;
    assert_int_equal(hfi_merge_begin(&merge, 4, 10, NULL, 0, budgets, 4, 1), 0);
    for (size_t i = 0; i < 4; i++)
        hfi_merge_lane(&merge, i, 0, 10);
    uint16_t own = hfi_merge_budget(&merge, 3);
    assert_int_equal(own, 4);
    assert_int_equal(hfi_merge_budget(&merge, 3), HFI_MERGE_NOTHING); /* no room */
    hfi_merge_draw(&merge, 0, 1);
    hfi_merge_draw(&merge, 1, 2);
    hfi_merge_draw(&merge, 2, 3);
    hfi_merge_draw(&merge, 3, own);
    hfi_merge_sort(&merge);
    assert_int_equal(hfi_merge_room(&merge, 2), 2); /* the other one need not have any */
    hfi_merge_apart(&merge, 2, 1);
    assert_int_equal(hfi_merge_room(&merge, 2), 1);
    assert_true(hfi_merge_next(&merge, &turn));
    assert_true(turn.look);
    assert_int_equal(turn.lane, 3);
    hfi_merge_found(&merge, 3, NULL);
    assert_false(hfi_merge_next(&merge, &turn));
    hfi_merge_end(&merge);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_the_reference),
        cmocka_unit_test(a_single_lane_is_one_run),
        cmocka_unit_test(a_lane_without_a_budget_is_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
