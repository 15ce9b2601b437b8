/* SPDX-License-Identifier: MIT */
/* Contract of the store: crashes and whom they are put down to, lanes of suspects, what nodes share. */
#include "store_world.h"

static int64_t join(const char *name) {
    struct hfi_op_join op = {.op = {.kind = HFI_OP_JOIN}, .name = name, .host = "there", .boot = name, .pid = 2,
                             .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    return op.node;
}

/* The lane of type "a" with something due; 0 none. */
static int64_t due_lane(bool alone) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    int64_t lane = 0;
    assert_int_equal(world_do(&op.op), 0);
    for (size_t i = 0; i < op.count; i++)
        if (op.rows[i].alone == alone && op.rows[i].next_due_us <= world.now.us)
            lane = op.rows[i].lane;
    hfi_free(op.rows);
    return lane;
}

static struct hfi_job *last; /* what the last claim gave last; the world's */

static size_t claim(int64_t lane, bool runs_code, bool alone, uint32_t max) {
    struct hfi_admitted admitted = {.lane = lane, .max = max, .policy = &world.curve, .runs_code = runs_code, .alone = alone};
    struct hfi_job *jobs[8];
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = world.node, .now = world.now, .start = true,
                              .lanes = &admitted, .lane_count = 1, .max = max, .jobs = jobs};
    assert_int_equal(world_do(&op.op), 0);
    for (size_t i = 0; i < op.count; i++) {
        assert_int_equal(jobs[i]->runs_code, runs_code);
        assert_int_equal(jobs[i]->alone, alone);
        world.owned[world.owned_count++] = last = jobs[i];
    }
    return op.count;
}

/* The node dies; a new one joins in its place. */
static void crash(void) {
    struct hfi_op_sweep op = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = world.node, .by = 1000,
                              .crash = true, .now = world.now, .limit = 100};
    assert_int_equal(world_do(&op.op), 0);
    hfi_free(op.notes);
    assert_true(op.finished);
    world.node = join("again");
    world.now.us += 3 * HOUR; /* beyond every wait of the curve */
}

static int64_t put(uint32_t max_executions) {
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.max_executions = max_executions;
    return world_put(&spec);
}

/* I13, I15, I27: two crashes of whoever ran at the time, then each alone, and the one that goes on crashing is poison. */
static void the_one_that_crashes_alone_is_poison(void **state) {
    (void)state;
    int64_t bad = put(20), good = put(20);
    for (uint32_t n = 1; n <= 2; n++) {
        assert_int_equal(due_lane(true), 0);
        assert_int_equal(claim(due_lane(false), true, false, 8), 2);
        crash();
        assert_int_equal(world_job(good)->crashes, n);
        assert_int_equal(world_job(good)->failures, n); /* the same curve as any failure */
        assert_int_equal(world_job(good)->state, HF_JOB_PENDING);
    }
    assert_int_equal(due_lane(false), 0); /* they wait apart */
    int64_t lane = due_lane(true);
    assert_true(lane > 0);
    for (uint32_t n = 3; n <= 4; n++) {
        assert_int_equal(claim(lane, true, true, 1), 1);
        assert_int_equal(last->id, bad);
        crash();
        assert_int_equal(world_job(bad)->crashes, n);
        if (n == 3) {
            assert_int_equal(claim(lane, true, true, 1), 1);
            assert_int_equal(last->id, good);
            assert_int_equal(APPLY(&last, SUCCEEDED, .result = NULL), 0);
        }
    }
    assert_int_equal(world_job(bad)->state, HF_JOB_DEAD);
    assert_int_equal(world_dead(1)->death_class, HF_DEATH_POISON);
    assert_int_equal(world_dead(1)->job_id, bad);
    assert_int_equal(world_job(good)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(world_job(good)->crashes, 2);
}

/* 3.5: what runs no code of its own never took a node down: the rows say so, whoever sweeps. */
static void crashes_of_other_kinds_do_not_count(void **state) {
    (void)state;
    int64_t id = put(20);
    for (uint32_t n = 1; n <= 6; n++) {
        assert_int_equal(claim(due_lane(false), false, false, 8), 1);
        crash();
        assert_int_equal(world_job(id)->crashes, 0);
        assert_int_equal(world_job(id)->failures, n);
    }
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
}

/* I25, S1.19: requeued it is nobody's suspect, and waits among the others. */
static void a_requeue_takes_it_back_among_the_others(void **state) {
    (void)state;
    int64_t id = put(2);
    for (int n = 0; n < 2; n++) {
        assert_int_equal(claim(due_lane(false), true, false, 1), 1);
        crash();
    }
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    assert_string_equal(world_dead(1)->cause, "orphaned");
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&requeue.op), 0);
    assert_int_equal(due_lane(true), 0);
    assert_int_equal(claim(due_lane(false), true, false, 1), 1);
    assert_int_equal(world_job(id)->crashes, 0);
}

/* I47, I5: who was taken for dead claims nothing any more: its jobs would be in nobody's sight. */
static void a_node_that_is_gone_claims_nothing(void **state) {
    (void)state;
    int64_t id = put(20), was = world.node;
    struct hfi_job *job = NULL;
    int64_t lane = due_lane(false);
    crash();
    struct hfi_admitted admitted = {.lane = lane, .max = 1, .policy = &world.curve};
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = was, .now = world.now, .start = true,
                              .lanes = &admitted, .lane_count = 1, .max = 1, .jobs = &job};
    assert_int_equal(world_do(&op.op), HF_ESTALE);
    assert_int_equal(op.count, 0);
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
    assert_int_equal(claim(lane, false, false, 1), 1);
}

/* I1: a requeue voids the old claim: neither the old owner's word nor its lapse reaches the job again. */
static void a_requeue_voids_the_old_claim(void **state) {
    (void)state;
    int64_t id = put(1), old = world.node;
    assert_int_equal(claim(due_lane(false), false, false, 1), 1);
    struct hfi_job *stale = last;
    struct hfi_op_sweep sweep = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = old, .by = 1000,
                                 .now = world.now, .limit = 100};
    assert_int_equal(world_do(&sweep.op), 0);
    hfi_free(sweep.notes);
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&requeue.op), 0);
    world.node = join("next");
    assert_int_equal(claim(due_lane(false), false, false, 8), 1); /* once */
    sweep.after_id = 0;
    world.now.us += HOUR;
    assert_int_equal(world_do(&sweep.op), 0);
    hfi_free(sweep.notes);
    assert_int_equal(sweep.lapsed, 0);
    assert_int_equal(APPLY(&stale, SUCCEEDED, .result = NULL), HF_ESTALE);
    assert_int_equal(world_job(id)->state, HF_JOB_RUNNING);
    assert_int_equal(APPLY(&last, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_job(id)->state, HF_JOB_SUCCEEDED);
}

/* ------------------------------------------------------------------ shares */

static uint32_t share(int64_t node, uint32_t want, uint32_t keep, uint32_t max, bool whole) {
    struct hfi_op_share op = {.op = {.kind = HFI_OP_SHARE}, .key = "shop", .node = node, .want = want, .keep = keep,
                              .max = max, .whole = whole, .held = 77};
    assert_int_equal(world_do(&op.op), 0);
    return op.held;
}

/* 3.14: probes are one node's at a time; it gives them back, or its death does. */
static void probes_are_one_nodes(void **state) {
    (void)state;
    int64_t a = join("a"), b = join("b"), c = join("c");
    assert_int_equal(share(a, 3, 0, 3, true), 3);
    assert_int_equal(share(b, 3, 0, 3, true), 0);
    assert_int_equal(share(a, 3, 0, 3, true), 3); /* asked again it is the same */
    assert_int_equal(share(a, 0, 2, 3, true), 2); /* two are still out */
    assert_int_equal(share(b, 3, 0, 3, true), 0);
    assert_int_equal(share(a, 0, 0, 3, true), 0);
    assert_int_equal(share(b, 3, 0, 3, true), 3);
    struct hfi_op_sweep sweep = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = b, .by = c, .now = world.now,
                                 .limit = 10};
    assert_int_equal(share(c, 3, 0, 3, true), 0);
    assert_int_equal(world_do(&sweep.op), 0);
    hfi_free(sweep.notes);
    assert_int_equal(share(c, 3, 0, 3, true), 3);
    assert_int_equal(share(b, 3, 0, 3, true), 0); /* it is gone and gets nothing, whatever is free */
    struct hfi_op_leave leave = {.op = {.kind = HFI_OP_LEAVE}, .node = c};
    assert_int_equal(world_do(&leave.op), 0);
    assert_int_equal(share(b, 3, 0, 3, true), 0);
    assert_int_equal(share(a, 3, 0, 3, true), 3);
}

/* The ramp's allowance: never more than there is, each its part as soon as others have let go of theirs. */
static void an_allowance_is_divided(void **state) {
    (void)state;
    int64_t a = join("a"), b = join("b"), c = join("c");
    assert_int_equal(share(a, 9, 0, 9, false), 9);
    assert_int_equal(share(b, 9, 0, 9, false), 0);
    assert_int_equal(share(a, 9, 7, 9, false), 7); /* what runs stays */
    assert_int_equal(share(b, 9, 0, 9, false), 2);
    assert_int_equal(share(a, 9, 1, 9, false), 5);
    assert_int_equal(share(c, 2, 0, 9, false), 2);
    assert_int_equal(share(b, 9, 0, 9, false), 2);
    assert_int_equal(share(a, 9, 0, 9, false), 3);
    assert_int_equal(share(b, 9, 0, 9, false), 3);
    assert_int_equal(share(a, 9, 0, 1, false), 0); /* less than the others hold */
}

WORLD_MAIN(WORLD_TEST(the_one_that_crashes_alone_is_poison), WORLD_TEST(crashes_of_other_kinds_do_not_count),
           WORLD_TEST(a_requeue_takes_it_back_among_the_others), WORLD_TEST(a_node_that_is_gone_claims_nothing),
           WORLD_TEST(a_requeue_voids_the_old_claim), WORLD_TEST(probes_are_one_nodes),
           WORLD_TEST(an_allowance_is_divided))
