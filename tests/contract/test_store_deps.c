/* SPDX-License-Identifier: MIT */
/*
 * Contract of the store: jobs that wait for others. The parent's end frees or ends its children in the same transaction,
 * whoever ended it, and a requeue of it revives them (3.10). I47, I51.
 */
#include "store_world.h"

#include <stdlib.h>

#include "jobs/deps.h"

static int64_t child_of(const char *type, const int64_t *parents, uint32_t count, bool on_end) {
    struct hf_job_spec spec = world_spec(type, NULL);
    spec.after_jobs = parents;
    spec.after_count = count;
    spec.after_on_end = on_end;
    return world_put(&spec);
}

static int64_t after(int64_t parent) {
    return child_of("child", &parent, 1, false);
}

static int state_of(int64_t id) {
    const struct hf_job_view *view = world_job(id);
    return view ? view->state : -1;
}

static void is_cancelled_by_parent(int64_t id) {
    const struct hf_job_view *view = world_job(id);
    assert_int_equal(view->state, HF_JOB_CANCELLED);
    assert_string_equal(view->cancel_by, "holdfast");
    assert_string_equal(view->cancel_reason, "parent.dead");
    assert_true(view->finished_at_us > 0);
}

static struct hfi_job *start_parent(int64_t id) {
    struct hfi_job *job = world_start_type("parent");
    assert_non_null(job);
    assert_int_equal(job->id, id);
    return job;
}

static void requeue(int64_t id) {
    struct hfi_op_requeue op = {.op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
}

static int cancel(int64_t id) {
    struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "no", .now = world.now};
    return world_do(&op.op);
}

static void a_child_waits_and_starts_when_its_parent_succeeded(void **state) { /* I51 */
    (void)state;
    int64_t parent = world_put_type("parent"), child = after(parent);
    struct hf_job_spec late = world_spec("child", NULL);
    late.after_jobs = &parent;
    late.after_count = 1;
    late.run_at_us = T0 + HOUR;
    int64_t later = world_put(&late);
    assert_int_equal(state_of(child), HF_JOB_WAITING);
    assert_int_equal(world_counts().waiting, 2);
    assert_null(world_start_type("child")); /* not claimed while it waits */
    struct hfi_job *job = start_parent(parent);
    struct hfi_op_apply *op = malloc(sizeof *op);
    assert_int_equal(world_apply_full(&job, (struct hfi_event){.kind = HFI_EVENT_SUCCEEDED}, op), 0);
    assert_int_equal(op->released, 2);
    free(op);
    assert_int_equal(world_counts().pending, 2);
    assert_int_equal(world_counts().waiting, 0);
    assert_int_equal(world_job(later)->run_at_us, T0 + HOUR); /* its time is kept */
    assert_string_equal(world_past(child, 0)->event, "released");
    struct hfi_job *started = world_start_type("child");
    assert_non_null(started);
    assert_int_equal(started->id, child);
}

static void a_stale_completer_releases_nothing_the_real_one_once(void **state) { /* I51 */
    (void)state;
    int64_t parent = world_put_type("parent"), child = after(parent);
    struct hfi_job *old = start_parent(parent);
    struct hfi_op_sweep sweep = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = world.node, .by = 77,
                                 .now = world.now, .limit = 10};
    assert_int_equal(world_do(&sweep.op), 0);
    hfi_free(sweep.notes);
    assert_int_equal(APPLY(&old, SUCCEEDED, .result = NULL), HF_ESTALE);
    assert_int_equal(state_of(child), HF_JOB_WAITING);
    world.now.us += HOUR;
    struct hfi_job *job = start_parent(parent);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(state_of(child), HF_JOB_PENDING);
    assert_int_equal(world_history(child), 1);
    assert_int_equal(APPLY(&old, SUCCEEDED, .result = NULL), HF_ESTALE);
    assert_int_equal(world_history(child), 1);
}

static void all_parents_must_have_succeeded(void **state) {
    (void)state;
    int64_t parents[3];
    for (int i = 0; i < 3; i++)
        parents[i] = world_put_type("parent");
    int64_t twice[4] = {parents[2], parents[0], parents[1], parents[0]}, child = child_of("child", twice, 4, false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(state_of(child), HF_JOB_WAITING);
        struct hfi_job *job = start_parent(parents[i]);
        assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    }
    assert_int_equal(state_of(child), HF_JOB_PENDING);
}

/* Each way a job can end, with what its child becomes when it needs success, and when any end will do. */
enum way { SUCCEED, DIE, QUARANTINE, CANCEL_PENDING, CANCEL_RUNNING, EXPIRE, LAPSE, WAYS };

static void end_by(enum way way, int64_t parent) {
    struct hfi_job *job = NULL;
    if (way == SUCCEED || way == DIE || way == CANCEL_RUNNING || way == LAPSE || way == QUARANTINE)
        job = start_parent(parent);
    switch (way) {
    case SUCCEED:
        assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
        break;
    case DIE:
        assert_int_equal(world_fail(&job, true), 0);
        break;
    case QUARANTINE:
        assert_int_equal(APPLY(&job, QUARANTINED, .error_type = "payload.bad", .message = "x"), 0);
        break;
    case CANCEL_PENDING:
        assert_int_equal(cancel(parent), 0);
        break;
    case CANCEL_RUNNING:
        assert_int_equal(cancel(parent), 0); /* asked for; its owner obeys */
        assert_int_equal(APPLY(&job, CANCELLED, .actor = NULL), 0);
        break;
    case EXPIRE: {
        struct hfi_op_expire op = {.op = {.kind = HFI_OP_EXPIRE}, .now = {world.now.us + 2 * HOUR}, .limit = 100};
        assert_int_equal(world_do(&op.op), 0);
        assert_int_equal(op.ended, 1);
        break;
    }
    default: { /* at its last execution: the sweep makes it an orphan */
        struct hfi_op_sweep op = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = world.node, .by = 77,
                                  .crash = true, .now = world.now, .limit = 10};
        assert_int_equal(world_do(&op.op), 0);
        assert_int_equal(op.note_count, 1);
        hfi_free(op.notes);
    }
    }
}

static void every_way_to_end_reaches_the_children(void **state) { /* I51, I79 */
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct hf_job_spec spec = world_spec("parent", NULL);
        spec.max_executions = 1;
        spec.expires_at_us = way == EXPIRE ? world.now.us + HOUR : 0;
        int64_t parent = world_put(&spec), needs = after(parent), any = child_of("any", &parent, 1, true),
                grandchild = after(needs);
        size_t dead = world_dead_count(-1);
        end_by((enum way)way, parent);
        assert_int_equal(world_dead_count(-1) - dead, way == DIE || way == QUARANTINE || way == LAPSE); /* one each */
        assert_true(hfi_state_ended(state_of(parent)));
        assert_int_equal(state_of(any), HF_JOB_PENDING);
        if (way == SUCCEED) {
            assert_int_equal(state_of(needs), HF_JOB_PENDING);
            assert_int_equal(state_of(grandchild), HF_JOB_WAITING);
            assert_int_equal(cancel(needs), 0);
        }
        if (way != SUCCEED)
            is_cancelled_by_parent(needs);
        is_cancelled_by_parent(grandchild);
        /* one that comes too late counts the parent as what it ended as */
        int64_t late = after(parent), late_any = child_of("any", &parent, 1, true);
        assert_int_equal(state_of(late), way == SUCCEED ? HF_JOB_PENDING : HF_JOB_CANCELLED);
        assert_int_equal(state_of(late_any), HF_JOB_PENDING);
        assert_int_equal(cancel(any) | cancel(late_any) | (way == SUCCEED ? cancel(late) : 0), 0);
        if (way == LAPSE) { /* that node is gone */
            struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "n", .host = "h", .boot = "b", .now = world.now};
            assert_int_equal(world_do(&join.op), 0);
            world.node = join.node;
        }
    }
    assert_int_equal(world_counts().waiting, 0);
}

static void a_requeue_of_the_parent_revives_its_children(void **state) {
    (void)state;
    int64_t parents[2] = {world_put_type("parent"), world_put_type("parent")};
    int64_t child = child_of("child", parents, 2, false), grandchild = after(child);
    struct hfi_job *job = start_parent(parents[0]);
    assert_int_equal(world_fail(&job, true), 0);
    is_cancelled_by_parent(child);
    is_cancelled_by_parent(grandchild);
    job = start_parent(parents[1]);
    assert_int_equal(world_fail(&job, true), 0);
    world.now.us += MINUTE;
    requeue(parents[0]);
    is_cancelled_by_parent(child); /* the other one is still dead */
    requeue(parents[1]);
    assert_int_equal(state_of(child), HF_JOB_WAITING);
    assert_int_equal(state_of(grandchild), HF_JOB_WAITING);
    assert_string_equal(world_past(child, 1)->event, "revived");
    assert_int_equal(world_job(child)->finished_at_us, 0);
    for (int i = 0; i < 2; i++) {
        job = start_parent(parents[i]);
        assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    }
    assert_int_equal(state_of(child), HF_JOB_PENDING);
    assert_int_equal(state_of(grandchild), HF_JOB_WAITING);
}

static void a_redrive_of_the_parent_frees_nobody(void **state) {
    (void)state;
    int64_t parent = world_put_type("parent"), child = after(parent);
    struct hfi_job *job = start_parent(parent);
    assert_int_equal(world_fail(&job, true), 0);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    job = start_parent(op.new_job);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    is_cancelled_by_parent(child);
}

static void whom_a_person_cancelled_stays_cancelled(void **state) {
    (void)state;
    int64_t parent = world_put_type("parent"), child = after(parent);
    assert_int_equal(cancel(child), 0);
    struct hfi_job *job = start_parent(parent);
    assert_int_equal(world_fail(&job, true), 0);
    requeue(parent);
    assert_string_equal(world_job(child)->cancel_by, "ann");
    assert_int_equal(state_of(child), HF_JOB_CANCELLED);
    assert_int_equal(cancel(child), HF_ESTATE);
}

static void an_unknown_parent_is_refused_by_name(void **state) {
    (void)state;
    int64_t known = world_put_type("parent"), next = known + 1, unknown[2] = {known, 4711};
    struct hf_job_spec spec = world_spec("child", NULL);
    struct hfi_put puts[2] = {{.id = 0}, {.id = 0}};
    struct hfi_spec_room room;
    struct hf_error error;
    hf_error_init(&error);
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT, .error = &error}, .items = puts, .count = 2};
    for (int i = 0; i < 2; i++)
        assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &puts[i].job, &room, NULL), 0);
    puts[1].after = unknown;
    puts[1].after_count = 2;
    puts[1].job.state = HF_JOB_WAITING;
    assert_int_equal(world_do(&op.op), HF_ENOENT);
    assert_non_null(strstr(error.why, "4711"));
    assert_int_equal(error.line, 2);
    assert_int_equal(world_counts().pending, 1); /* all or none */
    /* its own id, that it does not have yet, and so no cycle: a child is newer than all its parents */
    puts[1].after = &next;
    puts[1].after_count = 1;
    assert_int_equal(world_do(&op.op), HF_ENOENT);
    assert_int_equal(world_counts().pending, 1);
}

static void bad_lists_of_parents_are_refused(void **state) {
    (void)state;
    int64_t ids[17];
    struct hf_job_spec spec = world_spec("child", NULL);
    struct hfi_job job;
    struct hfi_spec_room room;
    for (int i = 0; i < 17; i++)
        ids[i] = i + 1;
    spec.after_jobs = ids;
    spec.after_count = 17;
    assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &job, &room, NULL), HF_ETOOBIG);
    spec.after_count = 16;
    assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &job, &room, NULL), 0);
    ids[3] = 0;
    assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &job, &room, NULL), HF_EINVAL);
    spec.after_jobs = NULL;
    assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &job, &room, NULL), HF_EINVAL);
}

static void a_waiting_child_binds_its_unique_key(void **state) {
    (void)state;
    int64_t parent = world_put_type("parent"), id;
    bool existed;
    struct hf_job_spec spec = world_spec("child", NULL);
    spec.unique_key = "k";
    spec.after_jobs = &parent;
    spec.after_count = 1;
    int64_t child = world_put(&spec);
    assert_int_equal(world_put_existing(&spec, &id, &existed), 0);
    assert_true(existed);
    assert_int_equal(id, child);
    struct hfi_job *job = start_parent(parent);
    assert_int_equal(world_fail(&job, true), 0);
    is_cancelled_by_parent(child);
    spec.after_count = 0;
    int64_t other = world_put(&spec); /* free again */
    requeue(parent);
    is_cancelled_by_parent(child); /* its key has another holder: not revived */
    assert_int_equal(state_of(other), HF_JOB_PENDING);
}

static void a_waiting_child_expires(void **state) { /* I47 */
    (void)state;
    int64_t parent = world_put_type("parent");
    struct hf_job_spec spec = world_spec("child", NULL);
    spec.after_jobs = &parent;
    spec.after_count = 1;
    spec.expires_at_us = T0 + MINUTE;
    int64_t child = world_put(&spec);
    struct hfi_op_expire op = {.op = {.kind = HFI_OP_EXPIRE}, .now = {T0 + MINUTE - 1}, .limit = 10};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 0);
    op.now.us++;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 1);
    assert_string_equal(world_job(child)->cancel_reason, "expired");
    struct hfi_job *job = start_parent(parent);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(state_of(child), HF_JOB_CANCELLED);
}

/* More children than one transaction looks at: it ends some, RELEASE the rest, and the parent is not pruned before. */
static void many_children_are_released_in_parts(void **state) {
    (void)state;
    enum { MANY = HFI_SETTLE_MAX + 300 };
    int64_t parent = world_put_type("parent"), first = 0;
    for (int i = 0; i < MANY; i++) {
        int64_t child = after(parent);
        first = first ? first : child;
    }
    int64_t grandchild = after(first + MANY - 1);
    struct hfi_job *job = start_parent(parent);
    struct hfi_op_apply *apply = malloc(sizeof *apply);
    assert_int_equal(world_apply_full(&job, (struct hfi_event){.kind = HFI_EVENT_CANCELLED, .actor = "x", .message = ""}, apply), 0);
    assert_int_equal(apply->ended, HFI_SETTLE_MAX);
    free(apply);
    assert_int_equal(world_counts().waiting, 301);
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .cancelled_before = T0 + 1, .limit = 1};
    for (int i = 0; i < 3; i++)
        assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(state_of(parent), HF_JOB_CANCELLED); /* still needed */
    struct hfi_op_release op = {.op = {.kind = HFI_OP_RELEASE}, .now = world.now, .limit = 100};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 301);
    assert_false(op.more);
    assert_int_equal(world_counts().waiting, 0);
    is_cancelled_by_parent(grandchild);
    prune.limit = 2000;
    for (int i = 0; i < 4; i++)
        assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(world_counts().cancelled, 0);
}

/* Two ends in one commit share what it may look at: the one whose children are left says so, and then each look does. */
static void what_is_left_over_is_said(void **state) {
    (void)state;
    enum { EACH = 300 };
    int64_t parents[2] = {world_put_type("parent"), world_put_type("parent")};
    struct hfi_op_apply *ends = calloc(2, sizeof *ends);
    for (int i = 0; i < 2 * EACH; i++)
        after(parents[i / EACH]);
    for (int i = 0; i < 2; i++) {
        struct hfi_job *job = start_parent(parents[i]);
        ends[i] = (struct hfi_op_apply){.op = {.kind = HFI_OP_APPLY}, .job = job, .rules = world_rules(),
                                        .event = {.kind = HFI_EVENT_SUCCEEDED, .now = world.now, .node = world.node}};
    }
    struct hfi_op *both[] = {&ends[0].op, &ends[1].op};
    world.store->ops->commit(world.store, both, 2);
    assert_int_equal(ends[0].op.code, 0);
    assert_int_equal(ends[1].op.code, 0);
    assert_int_equal(ends[0].released, EACH);
    assert_false(ends[0].op.left_over);
    assert_int_equal(ends[1].released, HFI_SETTLE_MAX - EACH);
    assert_true(ends[1].op.left_over);
    struct hfi_op_lanes look = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    assert_int_equal(world_do(&look.op), 0);
    assert_true(look.op.left_over);
    hfi_free(look.rows);
    struct hfi_op_release op = {.op = {.kind = HFI_OP_RELEASE}, .now = world.now, .limit = 100};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.released, 2 * EACH - HFI_SETTLE_MAX);
    assert_int_equal(world_do(&look.op), 0);
    assert_false(look.op.left_over);
    hfi_free(look.rows);
    free(ends);
}

static void a_chain_longer_than_a_transaction_ends_whole(void **state) {
    (void)state;
    int64_t parent = world_put_type("parent"), last = parent;
    for (int i = 0; i < HFI_SETTLE_MAX + 100; i++)
        last = after(last);
    struct hfi_job *job = start_parent(parent);
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(world_counts().waiting, 100);
    struct hfi_op_release op = {.op = {.kind = HFI_OP_RELEASE}, .now = world.now, .limit = 100};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world_counts().waiting, 0);
    is_cancelled_by_parent(last);
}

static void a_parent_that_is_pruned_keeps_what_it_meant(void **state) {
    (void)state;
    int64_t parents[2] = {world_put_type("parent"), world_put_type("parent")}, both = child_of("child", parents, 2, false);
    struct hfi_job *job = start_parent(parents[0]);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = T0 + 1, .dead_before = T0 + 1, .limit = 100};
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(state_of(parents[0]), -1);
    struct hf_job_spec spec = world_spec("child", NULL);
    spec.after_jobs = parents;
    spec.after_count = 1;
    struct hfi_put put = {.id = 0};
    struct hfi_spec_room room;
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = &put, .count = 1};
    assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &put.job, &room, NULL), 0);
    put.after = room.after;
    put.after_count = 1;
    assert_int_equal(world_do(&op.op), HF_ENOENT); /* nobody knows how it ended */
    job = start_parent(parents[1]);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(state_of(both), HF_JOB_PENDING);
    /* one that died stays a reason not to start, also when it is gone */
    int64_t pair[2] = {world_put_type("parent"), world_put_type("parent")}, child = child_of("third", pair, 2, false);
    for (int i = 0; i < 2; i++) {
        job = start_parent(pair[i]);
        world.now.us += i == 1 ? HOUR : 0;
        assert_int_equal(world_fail(&job, true), 0);
    }
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(state_of(pair[0]), -1);
    requeue(pair[1]);
    is_cancelled_by_parent(child);
}

static void relatives_are_shown(void **state) {
    (void)state;
    struct hf_job *job = NULL;
    int64_t parents[2] = {world_put_type("parent"), world_put_type("parent")}, child = child_of("child", parents, 2, true);
    assert_int_equal(world.store->ops->get_job(world.store, child, &job, NULL), 0);
    assert_int_equal(hf_job_link_count(job), 2);
    assert_int_equal(hf_job_children(job), 0);
    for (size_t i = 0; i < 2; i++) {
        const struct hf_link_view *link = hf_job_link_at(job, i);
        assert_int_equal(link->id, parents[i]);
        assert_true(link->is_parent && link->on_end);
        assert_int_equal(link->state, HF_JOB_PENDING);
        assert_string_equal(link->type, "parent");
    }
    hf_job_free(job);
    assert_int_equal(world.store->ops->get_job(world.store, parents[1], &job, NULL), 0);
    assert_int_equal(hf_job_link_count(job), 1);
    assert_int_equal(hf_job_children(job), 1);
    assert_int_equal(hf_job_link_at(job, 0)->id, child);
    assert_false(hf_job_link_at(job, 0)->is_parent);
    assert_int_equal(hf_job_link_at(job, 0)->state, HF_JOB_WAITING);
    hf_job_free(job);
    assert_string_equal(world_job(child)->shown, "waiting");
    assert_string_equal(world_job(child)->not_before_reason, "parents");
}

/* The scan of all that wait comes round and stays within its limit. */
static void the_scan_goes_round(void **state) { /* I47 */
    (void)state;
    int64_t parent = world_put_type("parent");
    for (int i = 0; i < 7; i++)
        after(parent);
    struct hfi_op_release op = {.op = {.kind = HFI_OP_RELEASE}, .now = world.now, .scan = true, .limit = 3};
    int64_t last = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_do(&op.op), 0);
        assert_true(op.after_id > last);
        last = op.after_id;
    }
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.after_id, 0);
    assert_int_equal(op.released + op.ended, 0);
    assert_int_equal(world_counts().waiting, 7);
}

WORLD_MAIN(WORLD_TEST(a_child_waits_and_starts_when_its_parent_succeeded),
           WORLD_TEST(a_stale_completer_releases_nothing_the_real_one_once), WORLD_TEST(all_parents_must_have_succeeded),
           WORLD_TEST(every_way_to_end_reaches_the_children), WORLD_TEST(a_requeue_of_the_parent_revives_its_children),
           WORLD_TEST(a_redrive_of_the_parent_frees_nobody), WORLD_TEST(whom_a_person_cancelled_stays_cancelled),
           WORLD_TEST(an_unknown_parent_is_refused_by_name), WORLD_TEST(bad_lists_of_parents_are_refused),
           WORLD_TEST(a_waiting_child_binds_its_unique_key), WORLD_TEST(a_waiting_child_expires),
           WORLD_TEST(many_children_are_released_in_parts), WORLD_TEST(what_is_left_over_is_said),
           WORLD_TEST(a_chain_longer_than_a_transaction_ends_whole),
           WORLD_TEST(a_parent_that_is_pruned_keeps_what_it_meant), WORLD_TEST(relatives_are_shown),
           WORLD_TEST(the_scan_goes_round))
