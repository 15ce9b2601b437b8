/* SPDX-License-Identifier: MIT */
/*
 * A living node and the rows that are its own: one that nothing in its memory has is lapsed, nothing else ever is.
 */
#include "runner_stage.h"

#include <sqlite3.h>

#include <string.h>

#include "base/alloc.h"
#include "jobs/runner/runner_state.h"
#include "seed.h"

#define SECOND INT64_C(1000)
#define TWO_BEATS (31 * SECOND)
#define APPLY_BIT (UINT64_C(1) << HFI_OP_APPLY)

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options types[2];
    struct hfi_script_step step;
    struct hfi_random random;
    bool random_steps;
};
static struct world world;

static struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)number;
    (void)user;
    if (world.random_steps)
        return hfi_script_status((int64_t)(hfi_random_next(&world.random) % 2000), 200);
    return world.step;
}

static void open_world(void) {
    memset(&world, 0, sizeof world);
    world.step = hfi_script_status(10, 200);
    stage_open(&world.stage, decide, NULL);
    hf_policy_options_init(&world.policy);
    world.policy.retry_max = 0;
    world.policy.attempt_timeout_ms = 1200 * SECOND;
    world.policy.total_timeout_ms = 1201 * SECOND;
    world.policy.breaker_window_ms = 2400 * SECOND;
    hf_downstream_options_init(&world.downstream);
    world.downstream.name = "shop";
    world.downstream.url = "http://shop.example";
    world.downstream.policy = &world.policy;
    world.types[0] = stage_noop("tick");
    world.types[1] = stage_http("order", "shop");
    world.types[1].execution_timeout_ms = 0;
    stage_options(&world.options);
    world.options.types = world.types;
    world.options.type_count = 2;
    world.options.downstreams = &world.downstream;
    world.options.downstream_count = 1;
}

/* A job whose end the store refuses for good, in every form. */
static int64_t lose_one(uint32_t max_executions) {
    struct stage_door *door = &world.stage.nodes[0].door;
    struct hf_job_spec spec = hf_job_of("tick", "payload");
    spec.max_executions = max_executions;
    door->refuse = HF_ETOOBIG;
    door->refuse_kinds = APPLY_BIT;
    int64_t id = stage_put(&world.stage, &spec);
    stage_advance(&world.stage, 500);
    door->refuse = 0;
    assert_int_equal(stage_logged(&world.stage, "job.lost_outcome"), 1);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_RUNNING);
    assert_int_equal(stage_counts(&world.stage, 0).lost, 1);
    return id;
}

/* 3.5, S0.18: it goes on by its curve under the living node, after two beats at most. */
static void an_outcome_refused_for_good_is_retried_on_the_curve(void **state) {
    (void)state;
    open_world();
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    int64_t id = lose_one(0);
    stage_advance(&world.stage, TWO_BEATS);
    struct hf_job *job = stage_job(&world.stage, id);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_PENDING);
    assert_int_equal(hf_job_look(job)->executions, 1);
    assert_int_equal(hf_job_look(job)->failures, 1);
    assert_int_equal(hf_job_look(job)->crashes, 0); /* nothing died */
    assert_string_equal(hf_job_look(job)->error_type, "lease.lapsed");
    hf_job_free(job);
    assert_int_equal(stage_logged(&world.stage, "job.reconciled"), 1);
    assert_int_equal(stage_counts(&world.stage, 0).lapsed, 1);
    stage_advance(&world.stage, 61 * SECOND);
    job = stage_job(&world.stage, id);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(hf_job_look(job)->executions, 2);
    hf_job_free(job);
    assert_int_equal(stage_logged(&world.stage, "job.reconciled"), 1);
    stage_close(&world.stage);
}

/* S2.20, S0.23: at the ceiling it dies, with one Error line. */
static void a_lost_last_execution_is_an_orphan(void **state) {
    (void)state;
    open_world();
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    int64_t id = lose_one(1);
    stage_advance(&world.stage, TWO_BEATS);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_DEAD);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 1);
    assert_non_null(strstr(stage_last(&world.stage, "job.dead"), "orphaned"));
    assert_int_equal(stage_counts(&world.stage, 0).orphaned, 1);
    stage_close(&world.stage);
}

/* A row that the store goes on to refuse keeps no other from its lapse, and is tried again. */
static void a_refused_lapse_is_tried_again(void **state) {
    (void)state;
    open_world();
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    int64_t id = lose_one(0);
    world.stage.nodes[0].door.refuse = HF_EIO;
    world.stage.nodes[0].door.refuse_kinds = UINT64_C(1) << HFI_OP_SWEEP;
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_RUNNING);
    assert_true(stage_logged(&world.stage, "upkeep.failed") >= 2);
    world.stage.nodes[0].door.refuse = 0;
    stage_advance(&world.stage, 16 * SECOND);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_PENDING);
    stage_close(&world.stage);
}

/* The commit of a claim whose answer never came: the jobs are ours by the rows alone. */
static void commit_but_say_no(struct hfi_op *op, void *user) {
    struct stage_door *door = user;
    door->refuse = 0;
    if (op->kind != HFI_OP_CLAIM)
        return;
    struct hfi_op_claim *claim = (struct hfi_op_claim *)(void *)op;
    door->inner->ops->commit(door->inner, &op, 1);
    for (size_t i = 0; i < claim->count; i++)
        hfi_free(claim->jobs[i]);
    claim->count = 0;
    door->refuse = HF_EIO;
    door->refuse_kinds = UINT64_C(1) << HFI_OP_CLAIM;
}

static void a_claim_that_was_stored_unheard_is_taken_back(void **state) {
    (void)state;
    open_world();
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    struct stage_door *door = &world.stage.nodes[0].door;
    door->hook = commit_but_say_no;
    door->hook_user = door;
    stage_enqueue_many(&world.stage, "tick", NULL, 5);
    stage_advance(&world.stage, 2 * SECOND);
    door->hook = NULL;
    door->refuse = 0;
    assert_int_equal(stage_jobs(&world.stage).running, 5);
    stage_advance(&world.stage, TWO_BEATS + 61 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 5);
    assert_int_equal(stage_logged(&world.stage, "job.reconciled"), 5);
    assert_int_equal(stage_counts(&world.stage, 0).lapsed, 5);
    stage_close(&world.stage);
}

/* While a claim is out it may be the one that made the row. */
static void a_claim_on_its_way_is_waited_for(void **state) {
    (void)state;
    open_world();
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    int64_t id = lose_one(0);
    struct hfi_runner *runner = world.stage.nodes[0].runner;
    assert_false(runner->round_out);
    runner->round_out = runner->claiming = true;
    stage_advance(&world.stage, 200 * SECOND);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_RUNNING);
    runner->round_out = runner->claiming = false;
    stage_advance(&world.stage, 16 * SECOND);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_PENDING);
    stage_close(&world.stage);
}

/* I7, I67: neither a long execution nor an end that waits for the store is lost, over any number of beats. */
static void what_runs_or_is_being_written_is_left_alone(void **state) {
    (void)state;
    open_world();
    world.step = hfi_script_status(1100 * SECOND, 200);
    stage_begin(&world.stage, 0, &world.options);
    int64_t runs = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 1000);
    world.stage.nodes[0].door.refuse = HF_EIO;
    world.stage.nodes[0].door.refuse_kinds = APPLY_BIT;
    int64_t waits = stage_enqueue(&world.stage, "tick", NULL);
    stage_advance(&world.stage, 600 * SECOND);
    assert_int_equal(stage_state(&world.stage, runs), HF_JOB_RUNNING);
    assert_int_equal(stage_state(&world.stage, waits), HF_JOB_RUNNING);
    assert_true(world.stage.nodes[0].door.seen[HFI_OP_BEAT] >= 40);
    world.stage.nodes[0].door.refuse = 0;
    stage_advance(&world.stage, 600 * SECOND);
    assert_int_equal(stage_state(&world.stage, runs), HF_JOB_SUCCEEDED);
    assert_int_equal(stage_state(&world.stage, waits), HF_JOB_SUCCEEDED);
    assert_int_equal(stage_counts(&world.stage, 0).lapsed, 0);
    assert_int_equal(stage_logged(&world.stage, "job.reconciled"), 0);
    stage_close(&world.stage);
}

/* Property: two busy nodes that beat all the time, on a store that refuses now and then, lapse nothing. */
static void nothing_in_flight_is_lapsed(void **state) {
    (void)state;
    open_world();
    hfi_random_seed(&world.random, test_seed("nothing_in_flight_is_lapsed"));
    world.random_steps = true;
    world.options.lease_ms = 60 * SECOND;
    world.options.heartbeat_ms = 20;
    stage_begin(&world.stage, 0, &world.options);
    stage_begin(&world.stage, 1, &world.options);
    for (int step = 0; step < 400; step++) {
        uint64_t draw = hfi_random_next(&world.random);
        struct stage_door *door = &world.stage.nodes[draw % 2].door;
        door->refuse = draw % 7 == 0 ? HF_EIO : 0;
        door->refuse_kinds = draw % 3 == 0 ? APPLY_BIT : 0;
        stage_enqueue_many(&world.stage, draw % 5 < 3 ? "order" : "tick", NULL, draw % 6);
        stage_advance(&world.stage, (int64_t)(draw >> 32) % 60);
    }
    world.stage.nodes[0].door.refuse = world.stage.nodes[1].door.refuse = 0;
    stage_advance(&world.stage, 60 * SECOND);
    struct hf_runner_counts first = stage_counts(&world.stage, 0), second = stage_counts(&world.stage, 1);
    struct hf_job_counts jobs = stage_jobs(&world.stage);
    assert_int_equal(jobs.running + jobs.pending, 0);
    assert_int_equal(first.succeeded + second.succeeded, jobs.succeeded);
    assert_true(jobs.succeeded > 300);
    assert_int_equal(first.started + second.started, jobs.succeeded); /* each of them ran once */
    assert_int_equal(first.lapsed + second.lapsed + first.lost + second.lost, 0);
    stage_close(&world.stage);
}

/* ------------------------------------------------------------------ a letter that the store refuses for good */

static const char *refused_detail(const struct hfi_op *op) {
    return op->kind == HFI_OP_APPLY ? ((const struct hfi_op_apply *)(const void *)op)->event.detail : NULL;
}

/* The memory store refuses nothing by itself: its door does, any end, or those that have a detail. */
static void refuse_some(struct hfi_op *op, void *user) {
    struct stage_door *door = &world.stage.nodes[0].door;
    const char *detail = refused_detail(op);
    bool whole = user != NULL, end = op->kind == HFI_OP_APPLY || op->kind == HFI_OP_SWEEP;
    door->refuse = end && (whole || (detail != NULL && *detail)) ? HF_ETOOBIG : 0;
}

static void change_file(const char *statement) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(world.stage.path, &db), SQLITE_OK);
    if (sqlite3_exec(db, statement, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", statement, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void refuse_letters(bool whole) {
    if (world.stage.path[0] == '\0') {
        world.stage.nodes[0].door.hook = refuse_some;
        world.stage.nodes[0].door.hook_user = whole ? &world : NULL;
        return;
    }
    change_file(whole ? "CREATE TRIGGER no BEFORE INSERT ON dead_letters BEGIN SELECT RAISE(ABORT, 'never'); END"
                      : "CREATE TRIGGER no BEFORE INSERT ON dead_letters WHEN ifnull(NEW.detail, '') <> '' BEGIN "
                        "SELECT RAISE(ABORT, 'too much'); END");
}

static void take_letters(void) {
    world.stage.nodes[0].door.hook = NULL;
    world.stage.nodes[0].door.refuse = 0;
    if (world.stage.path[0] != '\0')
        change_file("DROP TRIGGER no");
}

/* Dies with a message longer than a letter's: the whole of it is its detail. */
static void die_at_length(struct hf_work *work, void *user) {
    static char text[9000];
    (void)user;
    memset(text, 'x', sizeof text - 1);
    hf_work_finish(work, hf_work_permanent(work, "novel.long", text));
}

static void add_novel(struct stage_node *node) {
    struct hf_type_options type = hf_type_native("novel");
    assert_int_equal(hfi_rulebook_add_async(node->book, &type, die_at_length, NULL, NULL), 0);
}

/* One job that dies at once, with two sinks to tell. */
static int64_t kill_one(bool sqlite, bool whole, uint32_t max_executions) {
    static struct hf_sink_options sinks[2];
    open_world();
    if (sqlite) {
        stage_close(&world.stage);
        stage_open_sqlite(&world.stage, decide, NULL);
    }
    for (int i = 0; i < 2; i++) {
        hf_sink_options_init(&sinks[i]);
        sinks[i].collapse_ms = 0;
        sinks[i].name = i == 0 ? "a" : "b";
        sinks[i].url = "https://alerts.example/x";
    }
    world.options.sinks = sinks;
    world.options.sink_count = 2;
    world.stage.prepare = add_novel;
    world.step = hfi_script_status(10, 404);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    refuse_letters(whole);
    struct hf_job_spec spec = hf_job_of("novel", "payload");
    spec.max_executions = max_executions;
    int64_t id = stage_put(&world.stage, &spec);
    stage_advance(&world.stage, 500);
    return id;
}

static void check_letters(size_t count, const char *cause, const char *error_type) {
    struct hf_dead *dead = NULL;
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, count);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 2 * count); /* the peer says 404 to them, too */
    assert_int_equal(stage_logged(&world.stage, "job.dead"), count);
    if (count == 0)
        return;
    assert_int_equal(world.stage.port->ops->get_dead(world.stage.port, 1, &dead, NULL), 0);
    assert_string_equal(hf_dead_look(dead)->cause, cause);
    assert_string_equal(hf_dead_look(dead)->error_type, error_type);
    assert_string_equal(hf_dead_look(dead)->detail, "");
    hf_dead_free(dead);
}

/* S0.18, C8: what is too much for the store goes without its detail: a letter, a line and the alerts all the same. */
static void a_letter_that_is_too_much_goes_without_its_detail(void **state) {
    (void)state;
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        int64_t id = kill_one(sqlite, false, 0);
        assert_int_equal(stage_state(&world.stage, id), HF_JOB_DEAD);
        assert_int_equal(stage_logged(&world.stage, "job.refused"), sqlite ? 0 : 1); /* SQLite's drops it itself */
        assert_int_equal(stage_logged(&world.stage, "job.lost_outcome"), 0);
        check_letters(1, "permanent", "novel.long");
        take_letters();
        stage_close(&world.stage);
    }
}

/* S0.18, S0.32d, C8: refused in every form it is said aloud, whole; there is no letter and no alert that tells half of it. */
static void a_letter_that_is_refused_for_ever_is_said_aloud(void **state) {
    (void)state;
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        int64_t id = kill_one(sqlite, true, 1);
        assert_int_equal(stage_logged(&world.stage, "job.refused"), 1);
        assert_int_equal(stage_logged(&world.stage, "job.lost_outcome"), 1);
        const char *line = stage_last(&world.stage, "job.lost_outcome");
        assert_non_null(strstr(line, "novel.long"));
        assert_non_null(strstr(line, "xxxxxxxxxxxxxxxxxxxx"));
        stage_advance(&world.stage, 10 * TWO_BEATS);
        assert_int_equal(stage_state(&world.stage, id), HF_JOB_RUNNING); /* it is kept, and tried again */
        assert_int_equal(stage_logged(&world.stage, "job.lost_outcome"), 1);
        check_letters(0, NULL, NULL);
        take_letters();
        stage_advance(&world.stage, 2 * TWO_BEATS);
        assert_int_equal(stage_state(&world.stage, id), HF_JOB_DEAD); /* of its last execution nobody knows how it ended */
        check_letters(1, "orphaned", "orphaned");
        stage_close(&world.stage);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outcome_refused_for_good_is_retried_on_the_curve),
        cmocka_unit_test(a_lost_last_execution_is_an_orphan),
        cmocka_unit_test(a_refused_lapse_is_tried_again),
        cmocka_unit_test(a_claim_that_was_stored_unheard_is_taken_back),
        cmocka_unit_test(a_claim_on_its_way_is_waited_for),
        cmocka_unit_test(what_runs_or_is_being_written_is_left_alone),
        cmocka_unit_test(a_letter_that_is_too_much_goes_without_its_detail),
        cmocka_unit_test(a_letter_that_is_refused_for_ever_is_said_aloud),
        cmocka_unit_test(nothing_in_flight_is_lapsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
