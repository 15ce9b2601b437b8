/* SPDX-License-Identifier: MIT */
/* Contract of the store: what others do to jobs (lapse, quarantine, cancel), nodes, pauses, downstreams. */
#include "store_world.h"

#include <stdio.h>

static int64_t join(const char *name, const char *const *types, size_t count) {
    struct hfi_op_join op = {.op = {.kind = HFI_OP_JOIN}, .name = name, .host = "there", .boot = name, .pid = 2,
                             .now = world.now, .types = types, .type_count = count};
    assert_int_equal(world_do(&op.op), 0);
    return op.node;
}

static struct hfi_op_sweep sweep_of(int64_t owner, uint32_t limit) {
    return (struct hfi_op_sweep){.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = owner, .by = owner + 1000,
                                 .now = world.now, .limit = limit};
}

static void a_sweep_pages_by_key_until_nothing_is_left(void **state) { /* I5, I6 */
    (void)state;
    struct hfi_job *jobs[25];
    for (int i = 0; i < 25; i++)
        world_put_type("a");
    assert_int_equal(world_claim(world_lane("default", "a"), 25, true, jobs), 25);
    assert_int_equal(APPLY(&jobs[3], SUCCEEDED, .result = NULL), 0);
    struct hfi_op_sweep op = sweep_of(world.node, 10);
    uint32_t total = 0;
    for (int page = 0; page < 10 && !op.finished; page++) {
        int64_t before = op.after_id;
        assert_int_equal(world_do(&op.op), 0);
        assert_true(op.lapsed <= 10);
        assert_true(op.after_id >= before);
        total += op.lapsed;
        hfi_free(op.notes);
    }
    assert_true(op.finished);
    assert_int_equal(total, 24);
    assert_int_equal(world_counts().pending, 24);
    assert_int_equal(world_counts().running, 0);
    assert_int_equal(world_job(jobs[3]->id)->state, HF_JOB_SUCCEEDED); /* finished meanwhile, untouched */
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = world.node, .beat = 5, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    assert_false(beat.known); /* its row is gone: it must stop */
    hfi_free(beat.owned);
}

static void a_lapse_of_a_started_job_is_a_failure_on_the_same_curve(void **state) { /* S1.10, I34 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    world.now.us += MINUTE;
    struct hfi_op_sweep op = sweep_of(world.node, 10);
    assert_int_equal(world_do(&op.op), 0);
    hfi_free(op.notes);
    const struct hf_job_view *view = world_job(id);
    assert_int_equal(view->state, HF_JOB_PENDING);
    assert_int_equal(view->failures, 1);
    assert_int_equal(view->executions, 1);
    assert_int_equal(view->crashes, 0);
    assert_string_equal(view->error_type, "lease.lapsed");
    assert_int_equal(view->run_at_us, world.now.us + MINUTE);
    assert_true(view->epoch > job->epoch);
    assert_string_equal(world_past(id, 0)->event, "lapsed");
    assert_string_equal(world_past(id, 0)->node, "node-a"); /* whose it was */
}

static void a_lapsed_reservation_counts_nothing(void **state) { /* 3.4 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job;
    assert_int_equal(world_claim(world_lane("default", "a"), 1, false, &job), 1);
    struct hfi_op_sweep op = sweep_of(world.node, 10);
    assert_int_equal(world_do(&op.op), 0);
    hfi_free(op.notes);
    assert_int_equal(op.lapsed, 1);
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
    assert_int_equal(world_job(id)->executions, 0);
    assert_int_equal(world_job(id)->failures, 0);
    assert_true(world_job(id)->run_at_us <= world.now.us);
    assert_int_equal(world_history(id), 0);
}

static void the_last_lapse_is_a_death_with_note_and_alerts(void **state) { /* S2.20, I13 */
    (void)state;
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.max_executions = 1;
    spec.correlation_id = "c";
    int64_t id = world_put(&spec);
    assert_non_null(world_start_type("a"));
    struct hfi_op_sweep op = sweep_of(world.node, 10);
    op.crash = true;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.note_count, 1);
    assert_int_equal(op.notes[0].job_id, id);
    assert_int_equal(op.notes[0].dead_id, 1);
    assert_int_equal(op.notes[0].executions, 1);
    assert_string_equal(op.notes[0].type, "a");
    assert_string_equal(op.notes[0].correlation_id, "c");
    assert_string_equal(op.notes[0].error_type, world_dead(1)->error_type);
    hfi_free(op.notes);
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    assert_int_equal(world_job(id)->crashes, 0); /* its kind runs no code */
    assert_string_equal(world_dead(1)->cause, "orphaned");
    assert_int_equal(world_counts().alerts_unsent, 2); /* the sinks of the sweeper's configuration */
}

static void a_sweep_touches_only_that_owner(void **state) {
    (void)state;
    world_put_type("a");
    assert_non_null(world_start_type("a"));
    int64_t other = join("node-b", NULL, 0);
    struct hfi_op_sweep op = sweep_of(other, 10);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.lapsed, 0);
    assert_true(op.finished);
    hfi_free(op.notes);
    assert_int_equal(world_counts().running, 1);
    struct hfi_op_nodes nodes = {.op = {.kind = HFI_OP_NODES}};
    assert_int_equal(world_do(&nodes.op), 0);
    assert_int_equal(nodes.count, 1); /* node-a; the swept one is gone */
    assert_int_equal(nodes.rows[0].node, world.node);
    hfi_free(nodes.rows);
}

static void a_sweep_lapses_nothing_of_who_beat_since(void **state) { /* I2, I6 */
    (void)state;
    int64_t id = world_put_type("a");
    assert_non_null(world_start_type("a"));
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = world.node, .beat = 7, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    hfi_free(beat.owned);
    struct hfi_op_sweep op = sweep_of(world.node, 10);
    op.beat = 6;
    assert_int_equal(world_do(&op.op), 0);
    assert_true(op.lives);
    assert_false(op.finished);
    assert_int_equal(op.lapsed + op.note_count, 0);
    hfi_free(op.notes);
    assert_int_equal(world_job(id)->state, HF_JOB_RUNNING);
    beat.beat = 8;
    assert_int_equal(world_do(&beat.op), 0);
    assert_true(beat.known); /* it goes on */
    hfi_free(beat.owned);
    op.beat = 8;
    assert_int_equal(world_do(&op.op), 0);
    hfi_free(op.notes);
    assert_false(op.lives);
    assert_true(op.finished);
    assert_int_equal(op.lapsed, 1);
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
    op.beat = 3; /* a row that is gone says nothing: what it may have left is taken */
    assert_int_equal(world_do(&op.op), 0);
    hfi_free(op.notes);
    assert_false(op.lives);
    assert_true(op.finished);
}

static void nodes_join_beat_and_leave(void **state) {
    (void)state;
    int64_t other = join("node-b", NULL, 0);
    assert_true(other > world.node);
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = other, .beat = 41, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    assert_true(beat.known);
    assert_int_equal(beat.owned_count, 0);
    hfi_free(beat.owned);
    struct hfi_op_nodes nodes = {.op = {.kind = HFI_OP_NODES}, .self = world.node};
    assert_int_equal(world_do(&nodes.op), 0);
    assert_int_equal(nodes.count, 1);
    assert_int_equal(nodes.rows[0].beat, 41);
    assert_string_equal(nodes.rows[0].name, "node-b");
    hfi_free(nodes.rows);
    struct hfi_op_leave leave = {.op = {.kind = HFI_OP_LEAVE}, .node = other};
    assert_int_equal(world_do(&leave.op), 0);
    assert_int_equal(world_do(&nodes.op), 0);
    assert_int_equal(nodes.count, 0);
    hfi_free(nodes.rows);
    assert_int_equal(world_do(&beat.op), 0);
    assert_false(beat.known);
    hfi_free(beat.owned);
    assert_true(join("node-b", NULL, 0) > other); /* a new boot is a new node (I30) */
}

static void a_beat_brings_the_running_rows_of_its_node(void **state) { /* 3.5 */
    (void)state;
    struct hfi_job *jobs[4];
    int64_t other = join("node-b", NULL, 0), lane;
    for (int i = 0; i < 5; i++)
        world_put_type("a");
    lane = world_lane("default", "a");
    assert_int_equal(world_claim(lane, 4, true, jobs), 4);
    assert_int_equal(APPLY(&jobs[1], SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_fail(&jobs[2], false), 0); /* waits for its next execution */
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = world.node, .beat = 2, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    assert_int_equal(beat.owned_count, 2);
    assert_int_equal(beat.owned[0].id, jobs[0]->id);
    assert_int_equal(beat.owned[0].epoch, jobs[0]->epoch);
    assert_int_equal(beat.owned[1].id, jobs[3]->id); /* by id */
    assert_int_equal(beat.owned[1].epoch, jobs[3]->epoch);
    assert_false(beat.owned[0].known || beat.owned[1].known);
    hfi_free(beat.owned);
    beat.node = other;
    assert_int_equal(world_do(&beat.op), 0);
    assert_int_equal(beat.owned_count, 0);
    hfi_free(beat.owned);
}

static void a_living_node_lapses_one_lost_job_and_lives_on(void **state) { /* 3.5, I46 */
    (void)state;
    struct hfi_job *jobs[3];
    for (int i = 0; i < 3; i++)
        world_put_type("a");
    assert_int_equal(world_claim(world_lane("default", "a"), 3, true, jobs), 3);
    struct hfi_op_sweep op = sweep_of(world.node, 1);
    op.by = world.node;
    op.only = jobs[1]->id;
    op.epoch = jobs[1]->epoch - 1;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.lapsed, 0); /* not the ownership it means */
    assert_false(op.finished);
    hfi_free(op.notes);
    op.epoch = jobs[1]->epoch;
    op.after_id = 0;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.lapsed, 1);
    assert_false(op.finished);
    hfi_free(op.notes);
    const struct hf_job_view *view = world_job(jobs[1]->id);
    assert_int_equal(view->state, HF_JOB_PENDING);
    assert_int_equal(view->failures, 1);
    assert_int_equal(view->crashes, 0);
    assert_true(view->epoch > jobs[1]->epoch);
    assert_int_equal(APPLY(&jobs[1], SUCCEEDED, .result = NULL), HF_ESTALE); /* should it run after all */
    op.after_id = 0;
    assert_int_equal(world_do(&op.op), 0); /* again: there is nothing to take */
    assert_int_equal(op.lapsed, 0);
    hfi_free(op.notes);
    assert_int_equal(world_counts().running, 2);
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = world.node, .beat = 2, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    assert_true(beat.known);
    assert_int_equal(beat.owned_count, 2);
    hfi_free(beat.owned);
}

static void a_node_that_leaves_jobs_behind_stays_to_be_swept(void **state) { /* I47 */
    (void)state;
    world_put_type("a");
    assert_non_null(world_start_type("a"));
    struct hfi_op_leave leave = {.op = {.kind = HFI_OP_LEAVE}, .node = world.node};
    assert_int_equal(world_do(&leave.op), 0);
    struct hfi_op_nodes nodes = {.op = {.kind = HFI_OP_NODES}};
    assert_int_equal(world_do(&nodes.op), 0);
    assert_int_equal(nodes.count, 1);
    hfi_free(nodes.rows);
}

static void a_pending_job_is_cancelled_at_once(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "not needed",
                               .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_false(op.requested);
    assert_int_equal(world_job(id)->state, HF_JOB_CANCELLED);
    assert_string_equal(world_job(id)->cancel_reason, "not needed");
    assert_int_equal(world_job(id)->finished_at_us, world.now.us);
    assert_int_equal(world_history(id), 1);
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    op.id = 999;
    assert_int_equal(world_do(&op.op), HF_ENOENT);
}

static void a_running_job_hears_of_its_cancel_with_the_beat(void **state) { /* I12, S1.12 */
    (void)state;
    int64_t id = world_put_type("a"), other = world_put_type("a");
    struct hfi_job *jobs[2];
    assert_int_equal(world_claim(world_lane("default", "a"), 2, true, jobs), 2);
    struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "stop it",
                               .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_true(op.requested);
    assert_int_equal(world_job(id)->state, HF_JOB_RUNNING);
    assert_int_equal(world_job(id)->cancel_requested_at_us, world.now.us);
    struct hfi_op_cancel again = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "bob", .reason = "me too",
                                  .now = {world.now.us + SECOND}};
    assert_int_equal(world_do(&again.op), 0);
    assert_true(again.requested);
    assert_int_equal(world_job(id)->cancel_requested_at_us, world.now.us); /* the first one stays on the record */
    assert_string_equal(world_job(id)->cancel_reason, "stop it");
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = world.node, .beat = 2, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    assert_int_equal(beat.owned_count, 2);
    assert_int_equal(beat.owned[0].id, id);
    assert_true(beat.owned[0].cancel);
    assert_false(beat.owned[1].cancel);
    hfi_free(beat.owned);
    /* the request does not take the owner's fence away */
    struct hfi_job *job = jobs[0]->id == id ? jobs[0] : jobs[1];
    assert_int_equal(APPLY(&job, CANCELLED, .actor = "ann", .message = "stop it"), 0);
    assert_int_equal(world_job(id)->state, HF_JOB_CANCELLED);
    assert_string_equal(world_job(id)->cancel_reason, "stop it");
    assert_int_equal(world_job(other)->state, HF_JOB_RUNNING);
}

/* Nobody has to hear of it: what is only reserved has not begun, and its late start is stale. */
static void a_cancel_between_claim_and_start_is_immediate(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job;
    assert_int_equal(world_claim(world_lane("default", "a"), 1, false, &job), 1);
    struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "stop it",
                               .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_false(op.requested);
    assert_int_equal(world_job(id)->state, HF_JOB_CANCELLED);
    assert_int_equal(world_job(id)->executions, 0);
    assert_string_equal(world_job(id)->cancel_reason, "stop it");
    assert_int_equal(APPLY(&job, STARTED, .node = world.node), HF_ESTALE);
    assert_int_equal(APPLY(&job, GIVEN_BACK, .node = world.node), HF_ESTALE);
    assert_int_equal(world_job(id)->state, HF_JOB_CANCELLED);
    assert_string_equal(world_job(id)->cancel_reason, "stop it");
}

static void a_cancelled_job_that_fails_first_is_not_run_again(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "stop it",
                               .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    world.now.us++;
    assert_int_equal(world_fail(&job, false), 0); /* before it heard of it */
    assert_int_equal(world_job(id)->state, HF_JOB_CANCELLED);
    assert_string_equal(world_job(id)->cancel_reason, "stop it");
    assert_string_equal(world_past(id, 0)->event, "cancel_requested");
    assert_string_equal(world_past(id, 0)->error_message, "stop it");
    assert_string_equal(world_past(id, 1)->error_type, "http.503"); /* the failure stays on the record */
    assert_int_equal(world_dead_count(-1), 0);
}

static void a_cancelled_job_that_succeeds_first_has_succeeded(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_job(id)->state, HF_JOB_SUCCEEDED);
}

static struct hfi_op_quarantine quarantine_of(int64_t lane, uint32_t limit) {
    return (struct hfi_op_quarantine){.op = {.kind = HFI_OP_QUARANTINE}, .book = world.book, .lane = lane,
                                      .node = world.node, .now = world.now, .error_type = "unknown_type",
                                      .message = "no node has it", .limit = limit};
}

/* C17: a node that is configured anew says with a beat what it runs from then on. */
static void a_beat_changes_what_a_node_runs(void **state) {
    (void)state;
    static const char *const before[] = {"gone", "kept"}, *const after[] = {"kept", "new"};
    struct hfi_op_join other = {.op = {.kind = HFI_OP_JOIN}, .name = "other", .host = "h", .boot = "b2", .pid = 1,
                                .now = world.now, .types = before, .type_count = 2};
    assert_int_equal(world_do(&other.op), 0);
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = other.node, .beat = 1, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    hfi_free(beat.owned);
    static const struct {
        const char *type;
        uint32_t ended[2]; /* may its jobs be quarantined? before and after */
    } cases[] = {{"gone", {0, 1}}, {"kept", {0, 0}}, {"new", {1, 0}}};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 3; i++) {
            struct hf_job_spec spec = world_spec(cases[i].type, NULL);
            world_put(&spec);
            struct hfi_op_quarantine op = quarantine_of(world_lane("default", cases[i].type), 1);
            assert_int_equal(world_do(&op.op), 0);
            assert_int_equal(op.ended, cases[i].ended[round]);
            hfi_free(op.notes);
        }
        beat.beat++;
        beat.types = after;
        beat.type_count = 2;
        assert_int_equal(world_do(&beat.op), 0);
        assert_true(beat.known);
        hfi_free(beat.owned);
    }
    beat.type_count = 0; /* nothing any more */
    assert_int_equal(world_do(&beat.op), 0);
    hfi_free(beat.owned);
    struct hfi_op_quarantine op = quarantine_of(world_lane("default", "kept"), 1);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 1);
    hfi_free(op.notes);
}

static void only_due_jobs_of_the_unknown_type_are_quarantined(void **state) { /* I33, S1.28 */
    (void)state;
    struct hf_job_spec spec = world_spec("gone", NULL);
    int64_t due = world_put(&spec), healthy = world_put_type("fine");
    world_put(&spec);
    spec.run_at_us = T0 + HOUR;
    int64_t later = world_put(&spec);
    struct hfi_op_quarantine op = quarantine_of(world_lane("default", "gone"), 1);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 1);
    assert_int_equal(op.note_count, 1);
    assert_string_equal(op.notes[0].error_type, "unknown_type");
    hfi_free(op.notes);
    op.limit = 100;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 1);
    hfi_free(op.notes);
    assert_int_equal(world_job(due)->state, HF_JOB_QUARANTINED);
    assert_int_equal(world_job(due)->executions, 0);
    assert_int_equal(world_job(healthy)->state, HF_JOB_PENDING);
    assert_int_equal(world_job(later)->state, HF_JOB_PENDING);
    assert_int_equal(world_counts().quarantined, 2);
    assert_int_equal(world_counts().alerts_unsent, 4);
    assert_true(world_dead(1)->quarantined);
    assert_int_equal(world_dead(1)->death_class, HF_DEATH_POISON);
}

static void nothing_is_quarantined_while_a_node_has_the_type(void **state) { /* C17 */
    (void)state;
    static const char *const types[] = {"new", "gone"};
    int64_t id = world_put_type("gone");
    int64_t other = join("node-b", types, 2);
    struct hfi_op_quarantine op = quarantine_of(world_lane("default", "gone"), 10);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 0);
    hfi_free(op.notes);
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
    struct hfi_op_leave leave = {.op = {.kind = HFI_OP_LEAVE}, .node = other};
    assert_int_equal(world_do(&leave.op), 0);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 1);
    hfi_free(op.notes);
}

static int pause_queue(const char *queue, bool pause, int64_t until_us) {
    struct hfi_op_pause op = {.op = {.kind = HFI_OP_PAUSE}, .queue = queue, .actor = "ann", .pause = pause,
                              .until_us = until_us, .now = world.now};
    return world_do(&op.op);
}

static bool lane_paused(uint64_t *version) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, 1);
    bool paused = op.rows[0].paused;
    *version = op.unhealthy_version;
    hfi_free(op.rows);
    return paused;
}

static void a_paused_queue_gives_nothing_until_resumed(void **state) {
    (void)state;
    uint64_t before, after;
    world_put_type("a");
    int64_t lane = world_lane("default", "a");
    assert_false(lane_paused(&before));
    assert_int_equal(pause_queue("default", false, 0), HF_ENOENT);
    assert_int_equal(pause_queue("default", true, 0), 0);
    assert_true(lane_paused(&after));
    assert_true(after != before);
    assert_null(world_start(lane));
    assert_int_equal(pause_queue("default", true, world.now.us + SECOND), 0); /* again, with an end */
    assert_null(world_start(lane));
    world.now.us += SECOND;
    assert_false(lane_paused(&after));
    assert_non_null(world_start(lane));
    assert_int_equal(pause_queue("default", false, 0), HF_ENOENT); /* it has ended by itself */
    assert_int_equal(pause_queue("default", true, 0), 0);
    assert_int_equal(pause_queue("default", false, 0), 0);
    world_put_type("a");
    assert_non_null(world_start(lane));
}

static void a_downstream_is_written_by_compare_and_set(void **state) { /* 3.14 */
    (void)state;
    struct hfi_op_downstream op = {.op = {.kind = HFI_OP_DOWNSTREAM}, .key = "shop", .set = HFI_DOWNSTREAM_READ};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.state.version, 0);
    uint64_t before, after;
    world_put_type("a");
    lane_paused(&before);
    op.set = HFI_DOWNSTREAM_PHASE;
    op.state.phase = 1;
    op.state.open_until_us = T0 + 5 * SECOND;
    op.state.unhealthy_since_us = T0;
    op.state.trips = 1;
    snprintf(op.state.reason, sizeof op.state.reason, "%s", "ratio");
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.state.version, 1);
    assert_string_equal(op.state.reason, "ratio"); /* why it opened is kept with it */
    lane_paused(&after);
    assert_true(after != before);
    op.state.version = 0; /* another node read it before */
    op.state.phase = 2;
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.state.version, 1); /* and learns what is there */
    assert_int_equal(op.state.phase, 1);
    assert_int_equal(op.state.open_until_us, T0 + 5 * SECOND);
    op.set = HFI_DOWNSTREAM_FORCED;
    op.state.version = -1;
    op.state.forced = 1;
    op.state.forced_until_us = T0 + HOUR;
    op.state.phase = 0; /* not what this write is about */
    snprintf(op.state.reason, sizeof op.state.reason, "%s", "maintenance");
    assert_int_equal(world_do(&op.op), 0);
    op.set = HFI_DOWNSTREAM_READ;
    memset(&op.state, 0, sizeof op.state);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.state.version, 2);
    assert_int_equal(op.state.forced, 1);
    assert_int_equal(op.state.forced_until_us, T0 + HOUR);
    assert_string_equal(op.state.reason, "maintenance");
    assert_int_equal(op.state.phase, 1);
    assert_int_equal(op.state.trips, 1);
    op.set = HFI_DOWNSTREAM_PHASE;
    snprintf(op.state.reason, sizeof op.state.reason, "%s", "probe_failed");
    assert_int_equal(world_do(&op.op), 0);
    assert_string_equal(op.state.reason, "maintenance"); /* why a person forced it stands over that */
}

/* A write that was made and not heard of is answered once more, so that its death gets told; no other death is [S0.19, S0.23, I46]. */
static void a_death_that_was_not_heard_of_is_answered_again(void **state) {
    (void)state;
    struct hf_outcome outcome;
    struct hfi_op_apply op;
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_PERMANENT, "exit.1", "exit");
    struct hfi_event fails = {.kind = HFI_EVENT_FAILED, .outcome = &outcome},
                     lapses = {.kind = HFI_EVENT_LAPSED, .error_type = "lease.lapsed", .message = "it stopped itself"};
    for (int i = 0; i < 2; i++) {
        world.curve.max_executions = 1;
        world_put_type("a");
        struct hfi_job *mine = world_start_type("a"), *again = mine, *other = mine;
        assert_int_equal(world_apply_full(&mine, i == 0 ? fails : lapses, &op), 0);
        int64_t first = op.dead_id;
        assert_int_equal(world_apply_full(&again, i == 0 ? fails : lapses, &op), 0);
        assert_int_equal(op.dead_id, first);
        assert_false(op.existed);
        assert_true(op.change.has_death);
        assert_int_equal(world_dead_count(-1), i + 1);
        assert_int_equal(world_counts().alerts_unsent, 2 * (i + 1));
        lapses.message = "its node died"; /* another one's */
        assert_int_equal(world_apply_full(&other, i == 0 ? lapses : fails, &op), HF_ESTALE);
        assert_int_equal(world_apply_full(&other, lapses, &op), HF_ESTALE);
        lapses.message = "it stopped itself";
        struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = other->id, .actor = "ann", .reason = "", .now = world.now};
        assert_int_equal(world_do(&requeue.op), 0);
        assert_int_equal(world_apply_full(&other, i == 0 ? fails : lapses, &op), HF_ESTALE);
        mine = world_start_type("a"); /* out of the way of the next one */
        assert_int_equal(mine->id, other->id);
        assert_int_equal(APPLY(&mine, SUCCEEDED, .delay_ms = 0), 0);
    }
}

WORLD_MAIN(WORLD_TEST(a_death_that_was_not_heard_of_is_answered_again),
           WORLD_TEST(a_sweep_pages_by_key_until_nothing_is_left),
           WORLD_TEST(a_lapse_of_a_started_job_is_a_failure_on_the_same_curve),
           WORLD_TEST(a_lapsed_reservation_counts_nothing),
           WORLD_TEST(the_last_lapse_is_a_death_with_note_and_alerts), WORLD_TEST(a_sweep_touches_only_that_owner),
           WORLD_TEST(a_sweep_lapses_nothing_of_who_beat_since),
           WORLD_TEST(nodes_join_beat_and_leave),
           WORLD_TEST(a_beat_brings_the_running_rows_of_its_node),
           WORLD_TEST(a_living_node_lapses_one_lost_job_and_lives_on),
           WORLD_TEST(a_node_that_leaves_jobs_behind_stays_to_be_swept),
           WORLD_TEST(a_pending_job_is_cancelled_at_once), WORLD_TEST(a_running_job_hears_of_its_cancel_with_the_beat),
           WORLD_TEST(a_cancel_between_claim_and_start_is_immediate),
           WORLD_TEST(a_cancelled_job_that_fails_first_is_not_run_again),
           WORLD_TEST(a_cancelled_job_that_succeeds_first_has_succeeded),
           WORLD_TEST(a_beat_changes_what_a_node_runs),
           WORLD_TEST(only_due_jobs_of_the_unknown_type_are_quarantined),
           WORLD_TEST(nothing_is_quarantined_while_a_node_has_the_type),
           WORLD_TEST(a_paused_queue_gives_nothing_until_resumed),
           WORLD_TEST(a_downstream_is_written_by_compare_and_set))
