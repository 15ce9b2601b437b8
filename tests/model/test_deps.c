/* SPDX-License-Identifier: MIT */
/*
 * Random webs of jobs that wait for others, in random order ended, failed, cancelled, expired, lapsed, requeued, pruned,
 * with more children than a transaction looks at: whatever happens, when RELEASE has nothing left to do no job waits whose
 * parents have all ended, none runs that needed a success it did not get, and each child was freed at most once per
 * wait. The seed is printed; HF_SEED repeats it. I47, I51.
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
#include "jobs/deps.h"
#include "seed.h"
#include "sim/memory_store.h"

#define T0 INT64_C(1780000000000000)
#define SECOND INT64_C(1000000)
#define JOBS_MAX 4000
#define STEPS 1500

struct node {
    int64_t id, parents[HF_AFTER_MAX];
    uint32_t parent_count;
    bool on_end;
    struct hfi_job *owned; /* started by us */
};

static struct hfi_store *store;
static struct hfi_random chance;
static struct node nodes[JOBS_MAX];
static size_t node_count;
static struct hf_wall now;
static int64_t owner;

static uint64_t below(uint64_t bound) {
    return hfi_random_below(&chance, bound);
}

static int run(struct hfi_op *op) {
    store->ops->commit(store, &op, 1);
    return op->code;
}

static struct hf_job *look(int64_t id) {
    struct hf_job *job = NULL;
    return store->ops->get_job(store, id, &job, NULL) == 0 ? job : NULL;
}

static int state_of(int64_t id) {
    struct hf_job *job = look(id);
    int state = job ? hf_job_look(job)->state : HFI_PARENT_FORGOTTEN;
    hf_job_free(job);
    return state;
}

static void put(void) {
    struct node *node = &nodes[node_count];
    struct hf_job_spec spec = hf_job_of("t", "");
    struct hfi_put item = {.id = 0};
    struct hfi_spec_room room;
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = &item, .count = 1};
    if (node_count == JOBS_MAX)
        return;
    memset(node, 0, sizeof *node);
    size_t window = below(4) == 0 ? node_count : node_count < 30 ? node_count : 30;
    node->parent_count = node_count > 0 && below(5) != 0 ? 1 + (uint32_t)below(below(8) == 0 ? HF_AFTER_MAX : 3) : 0;
    for (uint32_t i = 0; i < node->parent_count; i++)
        node->parents[i] = nodes[node_count - 1 - below(window)].id;
    node->on_end = below(3) == 0;
    spec.after_jobs = node->parents;
    spec.after_count = node->parent_count;
    spec.after_on_end = node->on_end;
    spec.expires_at_us = below(6) ? 0 : now.us + (int64_t)(1 + below(100)) * SECOND;
    assert_int_equal(hfi_spec_check(&spec, now, 1000, &item.job, &room, NULL), 0);
    item.after = room.after;
    item.after_count = room.after_count;
    item.after_on_end = room.after_on_end;
    if (run(&op.op) == HF_ENOENT)
        return; /* one of them was pruned */
    assert_int_equal(op.op.code, 0);
    node->id = item.id;
    for (uint32_t i = 0; i < node->parent_count; i++)
        assert_true(node->parents[i] < node->id); /* no cycle can be made */
    node_count++;
}

/* A parent with more children than one transaction looks at. */
static void put_fan(void) {
    size_t parent = node_count > 0 ? node_count - 1 - below(node_count < 10 ? node_count : 10) : 0;
    for (int i = 0; i < HFI_SETTLE_MAX + 50 && node_count > 0 && node_count < JOBS_MAX; i++) {
        struct node *node = &nodes[node_count];
        struct hf_job_spec spec = hf_job_of("t", "");
        struct hfi_put item = {.id = 0};
        struct hfi_spec_room room;
        struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = &item, .count = 1};
        memset(node, 0, sizeof *node);
        node->parents[0] = nodes[parent].id;
        node->parent_count = 1;
        spec.after_jobs = node->parents;
        spec.after_count = 1;
        assert_int_equal(hfi_spec_check(&spec, now, 1000, &item.job, &room, NULL), 0);
        item.after = room.after;
        item.after_count = 1;
        if (run(&op.op) != 0)
            return;
        node->id = item.id;
        node_count++;
    }
}

static void start(void) {
    struct hfi_job *jobs[8];
    struct hfi_curve curve;
    hfi_curve_default(&curve);
    struct hfi_admitted lane = {.lane = 1, .max = 8, .policy = &curve};
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = owner, .now = now, .start = true, .lanes = &lane,
                              .lane_count = 1, .max = 8, .jobs = jobs};
    assert_int_equal(run(&op.op), 0);
    for (size_t i = 0; i < op.count; i++)
        for (size_t n = 0; n < node_count; n++)
            if (nodes[n].id == jobs[i]->id) {
                for (uint32_t p = 0; p < nodes[n].parent_count && !nodes[n].on_end; p++) {
                    int parent = state_of(nodes[n].parents[p]); /* it starts only after its parents succeeded */
                    assert_true(parent == HF_JOB_SUCCEEDED || parent == HFI_PARENT_FORGOTTEN);
                }
                hfi_free(nodes[n].owned);
                nodes[n].owned = jobs[i];
            }
}

static void end(struct node *node) {
    static struct hfi_op_apply op;
    struct hf_outcome outcome;
    uint64_t dice = below(10);
    if (!node->owned)
        return;
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_PERMANENT, "x", "x");
    op = (struct hfi_op_apply){.op = {.kind = HFI_OP_APPLY}, .job = node->owned};
    op.rules.repeatable = true;
    op.event.kind = dice < 6 ? HFI_EVENT_SUCCEEDED : dice < 9 ? HFI_EVENT_FAILED : HFI_EVENT_CANCELLED;
    op.event.outcome = op.event.kind == HFI_EVENT_FAILED ? &outcome : NULL;
    op.event.now = now;
    op.event.node = owner;
    int code = run(&op.op);
    assert_true(code == 0 || code == HF_ESTALE);
    if (code == HF_ESTALE)
        assert_int_equal(op.released + op.ended, 0); /* I51 */
    if (below(4)) { /* else it will try again, stale by then */
        hfi_free(node->owned);
        node->owned = NULL;
    }
}

static void disturb(const struct hfi_rulebook *book) {
    struct node *node = &nodes[below(node_count)];
    struct hfi_op_cancel cancel = {.op = {.kind = HFI_OP_CANCEL}, .id = node->id, .actor = "x", .now = now};
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = node->id, .actor = "x", .now = now};
    struct hfi_op_expire expire = {.op = {.kind = HFI_OP_EXPIRE}, .now = now, .limit = 50};
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = now.us - 200 * SECOND,
                                 .cancelled_before = now.us - 300 * SECOND, .dead_before = now.us - 300 * SECOND,
                                 .limit = 20};
    struct hfi_op_sweep sweep = {.op = {.kind = HFI_OP_SWEEP}, .book = book, .owner = owner, .by = 99, .now = now, .limit = 3};
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "n", .host = "h", .boot = "b", .now = now};
    switch (below(6)) {
    case 0:
        run(&cancel.op);
        break;
    case 1:
    case 2:
        run(&requeue.op);
        break;
    case 3:
        assert_int_equal(run(&expire.op), 0);
        break;
    case 4:
        assert_int_equal(run(&prune.op), 0);
        break;
    default: /* the node dies: another one takes its jobs, and goes on */
        if (below(10))
            break;
        for (sweep.finished = false; !sweep.finished;) {
            assert_int_equal(run(&sweep.op), 0);
            hfi_free(sweep.notes);
        }
        assert_int_equal(run(&join.op), 0);
        owner = join.node;
    }
}

/* With nothing left over, each job that waits has a parent that has not ended, and each that needs one that failed is not
 * there to be claimed. */
static void check(void) {
    struct hfi_op_release op = {.op = {.kind = HFI_OP_RELEASE}, .now = now, .limit = 100};
    do
        assert_int_equal(run(&op.op), 0);
    while (op.more);
    for (size_t n = 0; n < node_count; n++) {
        int state = state_of(nodes[n].id);
        bool open = false, failed = false;
        for (uint32_t p = 0; p < nodes[n].parent_count; p++) {
            int parent = state_of(nodes[n].parents[p]);
            open = open || (parent != HFI_PARENT_FORGOTTEN && !hfi_state_ended(parent));
            failed = failed || (hfi_state_ended(parent) && parent != HF_JOB_SUCCEEDED);
        }
        if (state == HF_JOB_WAITING && (!open || (failed && !nodes[n].on_end)))
            fail_msg("job %lld waits for nobody", (long long)nodes[n].id);
        if (state == HF_JOB_PENDING && open && !nodes[n].on_end)
            fail_msg("job %lld is free too early", (long long)nodes[n].id);
    }
}

/* Freed once per wait: two releases have a revival between them. */
static void check_histories(void) {
    for (size_t n = 0; n < node_count; n++) {
        struct hf_job *job = look(nodes[n].id);
        int freed = 0;
        for (size_t i = 0; job && i < hf_job_history_count(job); i++) {
            const char *event = hf_job_history_at(job, i)->event;
            freed += strcmp(event, "released") == 0;
            freed = strcmp(event, "revived") == 0 ? 0 : freed;
            assert_true(freed <= 1);
        }
        hf_job_free(job);
    }
}

static void webs(void **state) {
    (void)state;
    struct hf_store_options options;
    struct hf_runner_options runner;
    struct hfi_rulebook *book = NULL;
    hfi_random_seed(&chance, test_seed("deps"));
    hf_store_options_init(&options);
    hf_runner_options_init(&runner);
    assert_int_equal(hfi_rulebook_new(&runner, &book, NULL), 0);
    for (int world = 0; world < 6; world++) {
        assert_int_equal(hfi_memory_store_new(&options, &store), 0);
        node_count = 0;
        now.us = T0;
        struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "n", .host = "h", .boot = "b", .now = now};
        assert_int_equal(run(&join.op), 0);
        owner = join.node;
        put();
        for (int i = 0; i < STEPS; i++) {
            uint64_t dice = below(10);
            now.us += (int64_t)below(2 * SECOND);
            if (dice < 3)
                put();
            else if (dice < 5)
                start();
            else if (dice < 8)
                for (int k = 0; k < 4; k++)
                    end(&nodes[node_count - 1 - below(node_count < 100 ? node_count : 100)]);
            else
                disturb(book);
            if (below(700) == 0)
                put_fan();
            if (i % 100 == 99)
                check();
        }
        check();
        check_histories();
        for (size_t n = 0; n < node_count; n++)
            hfi_free(nodes[n].owned);
        store->ops->close(store);
    }
    hfi_rulebook_free(book);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(webs)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
