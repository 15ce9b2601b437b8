/* SPDX-License-Identifier: MIT */
/* Contract of the store: lanes, the order of claims, reservations and starts, owner writes and their fence. */
#include "store_world.h"

#include "jobs/hands.h"

static int64_t put_at(const char *type, int32_t priority, int64_t run_at_us) {
    struct hf_job_spec spec = world_spec(type, NULL);
    spec.priority = priority;
    spec.run_at_us = run_at_us;
    return world_put(&spec);
}

static void the_order_in_a_lane_is_priority_then_due_time_then_id(void **state) {
    (void)state;
    int64_t late = put_at("a", 5, T0 - 1 * SECOND);
    int64_t early = put_at("a", 5, T0 - 9 * SECOND);
    int64_t low = put_at("a", 0, T0 - 90 * SECOND);
    int64_t high = put_at("a", 9, T0 - 1);
    int64_t same = put_at("a", 5, T0 - 9 * SECOND);
    put_at("a", 9, T0 + 1); /* not due */
    struct hfi_job *jobs[8];
    assert_int_equal(world_claim(world_lane("default", "a"), 8, true, jobs), 5);
    const int64_t expected[] = {high, early, same, late, low};
    for (int i = 0; i < 5; i++)
        assert_int_equal(jobs[i]->id, expected[i]);
}

static void lanes_give_up_to_their_maximum_and_that_of_all(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        world_put_type("a");
        world_put_type("b");
    }
    struct hfi_admitted lanes[2] = {{.lane = world_lane("default", "b"), .max = 3, .policy = &world.curve},
                                    {.lane = world_lane("default", "a"), .max = 10, .policy = &world.curve}};
    struct hfi_job *jobs[7];
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = world.node, .now = world.now, .start = true,
                              .lanes = lanes, .lane_count = 2, .max = 7, .jobs = jobs};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, 7);
    assert_int_equal(lanes[0].claimed, 3);
    assert_true(lanes[0].more);
    assert_int_equal(lanes[1].claimed, 4);
    assert_true(lanes[1].more);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(jobs[i]->type, i % 2 == 0 ? "a" : "b"); /* as they came, whichever lane is named first */
        hfi_free(jobs[i]);
    }
    op.max = 7;
    lanes[1].max = 1;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, 3); /* two of b are left, one of a is asked for */
    assert_false(lanes[0].more);
    assert_false(lanes[1].more);
    for (size_t i = 0; i < op.count; i++)
        hfi_free(jobs[i]);
}

static int64_t put_with(int32_t priority, uint32_t max_executions, int64_t expires_at_us) {
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.priority = priority;
    spec.max_executions = max_executions;
    spec.expires_at_us = expires_at_us;
    return world_put(&spec);
}

/* One claim of lane a as probes: how many, and whether more are due. */
static uint32_t probe(uint32_t max, bool not_repeatable, bool *more, int64_t *ids) {
    struct hfi_admitted lane = {.lane = world_lane("default", "a"), .max = max, .policy = &world.curve,
                                .not_repeatable = not_repeatable, .probe = true};
    struct hfi_job *jobs[8];
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = world.node, .now = world.now, .start = true,
                              .lanes = &lane, .lane_count = 1, .max = max, .jobs = jobs};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, lane.claimed);
    for (size_t i = 0; i < op.count; i++) {
        assert_int_equal(jobs[i]->executions, 1);
        ids[i] = jobs[i]->id;
        hfi_free(jobs[i]);
    }
    *more = lane.more;
    return lane.claimed;
}

static void probes_pass_over_jobs_with_nothing_to_spare(void **state) { /* 3.4 */
    (void)state;
    bool more;
    int64_t ids[8], last = put_with(9, 1, 0);
    put_with(9, 1, T0 + 1);
    int64_t poor = put_with(5, 1, 0), two = put_with(5, 2, 0), plain = put_with(5, 0, 0), low = put_with(0, 0, 0);
    world.now.us += 1;
    assert_int_equal(probe(1, false, &more, ids), 1);
    assert_int_equal(ids[0], two);
    assert_true(more);
    assert_int_equal(world_job(last)->executions, 0);
    assert_int_equal(probe(3, false, &more, ids), 2); /* the two that suit: the rest waits for their answers */
    assert_int_equal(ids[0], plain);
    assert_int_equal(ids[1], low);
    assert_true(more);
    assert_int_equal(probe(1, false, &more, ids), 1); /* none suits: the first is better than no probe */
    assert_int_equal(ids[0], last);
    assert_true(more);
    assert_int_equal(probe(3, false, &more, ids), 1);
    assert_int_equal(ids[0], poor);
    assert_false(more);
    assert_int_equal(probe(1, false, &more, ids), 0);
    assert_false(more);
}

static void a_probe_of_what_cannot_be_repeated_is_the_first(void **state) { /* 3.4 */
    (void)state;
    bool more;
    int64_t ids[8], first = put_with(5, 1, 0);
    put_with(5, 0, 0);
    assert_int_equal(probe(1, true, &more, ids), 1);
    assert_int_equal(ids[0], first);
    assert_true(more);
}

static void a_probe_is_looked_for_among_a_bounded_number(void **state) {
    (void)state;
    bool more;
    int64_t ids[8], first = put_with(5, 1, 0);
    for (int i = 1; i < HFI_PROBE_LOOK; i++)
        put_with(5, 1, 0);
    put_with(5, 0, 0);
    assert_int_equal(probe(1, false, &more, ids), 1);
    assert_int_equal(ids[0], first);
    int64_t next = put_with(3, 0, 0); /* another priority, looked at for itself */
    assert_int_equal(probe(1, false, &more, ids), 1);
    assert_true(ids[0] == next - 1); /* and now the last of those above is near enough */
    assert_int_equal(probe(1, false, &more, ids), 1);
    assert_int_equal(ids[0], next);
}

static void an_empty_or_unknown_lane_gives_nothing(void **state) {
    (void)state;
    struct hfi_job *jobs[1];
    assert_int_equal(world_claim(12345, 1, true, jobs), 0);
    world_put_type("a");
    assert_non_null(world_start_type("a"));
    assert_int_equal(world_claim(1, 1, true, jobs), 0);
}

static void a_reservation_counts_nothing_until_it_starts(void **state) { /* 3.4, C16 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = NULL;
    assert_int_equal(world_claim(world_lane("default", "a"), 1, false, &job), 1);
    assert_int_equal(job->state, HF_JOB_RUNNING);
    assert_int_equal(job->epoch, 1);
    assert_int_equal(job->owner, world.node);
    assert_int_equal(job->executions, 0);
    assert_null(job->policy); /* fixed at the first start, not at a reservation */
    assert_int_equal(world_job(id)->executions, 0);
    assert_int_equal(world_job(id)->started_at_us, 0);
    assert_string_equal(world_job(id)->owner, "node-a");
    world.now.us += SECOND;
    assert_int_equal(APPLY(&job, STARTED, .result = NULL), 0);
    assert_int_equal(world_job(id)->executions, 1);
    assert_int_equal(world_job(id)->started_at_us, T0 + SECOND);
    assert_int_equal(world_job(id)->max_executions, 6); /* the rules' policy stuck */
    assert_int_equal(APPLY(&job, STARTED, .result = NULL), HF_ESTATE); /* once */
    assert_int_equal(world_job(id)->executions, 1);
}

static void what_is_reserved_is_not_started_while_its_queue_is_paused(void **state) { /* 3.4 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = NULL;
    assert_int_equal(world_claim(world_lane("default", "a"), 1, false, &job), 1);
    struct hfi_op_pause pause = {.op = {.kind = HFI_OP_PAUSE}, .queue = "default", .actor = "ann", .pause = true,
                                 .until_us = T0 + SECOND, .now = world.now};
    assert_int_equal(world_do(&pause.op), 0);
    assert_int_equal(APPLY(&job, STARTED, .result = NULL), HF_ESTATE);
    assert_int_equal(world_job(id)->executions, 0);
    assert_int_equal(world_job(id)->state, HF_JOB_RUNNING);
    world.now.us = T0 + SECOND; /* it is over */
    assert_int_equal(APPLY(&job, STARTED, .result = NULL), 0);
    assert_int_equal(world_job(id)->executions, 1);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
}

static void a_policy_is_fixed_at_the_first_start(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    assert_int_equal(world_job(id)->max_executions, 0);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(job->executions, 1);
    assert_int_equal(job->policy->max_executions, 6);
    assert_true(job->policy->id > 0);
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(id)->run_at_us, T0 + MINUTE); /* S0.6 */
    world.curve.max_executions = 2;
    world.curve.waits_ms[1] = 1;
    world.now.us += MINUTE;
    job = world_start_type("a"); /* the configuration changed meanwhile */
    assert_int_equal(job->policy->max_executions, 6);
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(id)->run_at_us, world.now.us + 5 * MINUTE);
    assert_int_equal(world_job(id)->max_executions, 6);
}

static void the_whole_curve_then_death(void **state) { /* S0.6, S0.15: six executions, one row, at the end */
    (void)state;
    int64_t id = world_put_type("a"), waits[] = {60, 300, 1800, 7200, 7200};
    for (int i = 0; i < 6; i++) {
        struct hfi_job *job = world_start_type("a");
        assert_int_equal(job->executions, i + 1);
        assert_int_equal(world_dead_count(-1), 0);
        assert_int_equal(world_fail(&job, false), 0);
        if (i < 5) {
            assert_int_equal(world_job(id)->run_at_us, world.now.us + waits[i] * SECOND);
            world.now.us += waits[i] * SECOND;
        }
    }
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    assert_int_equal(world.now.us - T0, 16560 * SECOND);
    assert_int_equal(world_dead_count(0), 1);
    assert_int_equal(world_history(id), 6);
}

static void nothing_past_its_expiry_is_claimed(void **state) { /* 3.4 */
    (void)state;
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.expires_at_us = T0 + SECOND;
    int64_t dated = world_put(&spec);
    spec.expires_at_us = 0;
    int64_t plain = world_put(&spec);
    world.now.us = T0 + SECOND;
    struct hfi_job *jobs[4];
    assert_int_equal(world_claim(world_lane("default", "a"), 4, true, jobs), 1);
    assert_int_equal(jobs[0]->id, plain);
    struct hfi_op_expire op = {.op = {.kind = HFI_OP_EXPIRE}, .now = world.now, .limit = 10};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 1);
    assert_int_equal(world_job(dated)->state, HF_JOB_CANCELLED);
    assert_string_equal(world_job(dated)->cancel_reason, "expired");
    assert_int_equal(world_job(dated)->executions, 0);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 0);
}

static void expiry_respects_its_limit(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.expires_at_us = T0 + 1;
    for (int i = 0; i < 5; i++)
        world_put(&spec);
    world.now.us += 1;
    struct hfi_op_expire op = {.op = {.kind = HFI_OP_EXPIRE}, .now = world.now, .limit = 3};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 3);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.ended, 2);
}

static void lanes_tell_what_is_new_and_what_is_due(void **state) {
    (void)state;
    put_at("a", 0, T0);
    put_at("b", 0, T0 + HOUR);
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, 2);
    int64_t highest = 0;
    for (size_t i = 0; i < op.count; i++) {
        assert_string_equal(op.rows[i].queue, "default");
        assert_string_equal(op.rows[i].breaker_key, "shop");
        assert_false(op.rows[i].paused);
        highest = op.rows[i].lane > highest ? op.rows[i].lane : highest;
    }
    assert_int_equal(op.next_due_us, T0 + HOUR);
    hfi_free(op.rows);
    op.known = highest;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, 1); /* only the due one, and its texts are known */
    assert_string_equal(op.rows[0].type, "");
    assert_true(op.rows[0].next_due_us <= T0);
    hfi_free(op.rows);
    assert_non_null(world_start_type("a"));
    struct hfi_job *none;
    assert_int_equal(world_claim(world_lane("default", "a"), 1, true, &none), 0);
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, 0); /* an empty claim raised the bound: no hot loop */
    assert_int_equal(op.next_due_us, T0 + HOUR);
    hfi_free(op.rows);
    op.now.us = T0 + HOUR;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.count, 1);
    hfi_free(op.rows);
}

static void due_jobs_of_kept_lanes_are_counted(void **state) {
    (void)state;
    for (int i = 0; i < 7; i++)
        put_at("a", i, T0 - i);
    put_at("a", 0, T0 + 1);
    put_at("b", 0, T0);
    int64_t kept[] = {world_lane("default", "a")};
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now, .kept = kept, .kept_count = 1};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.kept_due, 7);
    hfi_free(op.rows);
}

static void success_is_recorded_once(void **state) { /* S1.1, I50 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a"), *twice = job;
    world.now.us += SECOND;
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = "done", .result_length = 4), 0);
    const struct hf_job_view *view = world_job(id);
    assert_int_equal(view->state, HF_JOB_SUCCEEDED);
    assert_memory_equal(view->result, "done", 4);
    assert_int_equal(view->finished_at_us, world.now.us);
    assert_string_equal(view->owner, "");
    assert_int_equal(world_history(id), 1);
    assert_string_equal(world_past(id, 0)->event, "succeeded");
    assert_string_equal(world_past(id, 0)->node, "node-a");
    assert_int_equal(world_past(id, 0)->execution, 1);
    assert_int_equal(world_past(id, 0)->started_at_us, T0);
    assert_int_equal(world_past(id, 0)->ended_at_us, world.now.us);
    assert_int_equal(APPLY(&twice, SUCCEEDED, .result = "again", .result_length = 5), HF_ESTALE);
    assert_int_equal(world_fail(&twice, true), HF_ESTALE);
    assert_memory_equal(world_job(id)->result, "done", 4);
    assert_int_equal(world_history(id), 1);
    assert_int_equal(world_dead_count(-1), 0);
}

static void a_stale_owner_changes_nothing(void **state) { /* I46, S1.16: claim, lapse, re-claim by the same node, old ack */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *old = world_start_type("a");
    struct hfi_op_sweep sweep = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = world.node, .by = 99,
                                 .now = world.now, .limit = 10};
    assert_int_equal(world_do(&sweep.op), 0);
    assert_int_equal(sweep.lapsed, 1);
    hfi_free(sweep.notes);
    world.now.us += HOUR;
    struct hfi_job *new = world_start_type("a");
    assert_true(new->epoch > old->epoch + 1);
    assert_int_equal(APPLY(&old, SUCCEEDED, .result = "old", .result_length = 3), HF_ESTALE);
    assert_int_equal(world_fail(&old, false), HF_ESTALE);
    assert_int_equal(APPLY(&old, SNOOZED, .delay_ms = 5), HF_ESTALE);
    assert_int_equal(APPLY(&old, GIVEN_BACK, .delay_ms = 0), HF_ESTALE);
    assert_int_equal(world_job(id)->state, HF_JOB_RUNNING);
    assert_int_equal(world_job(id)->epoch, new->epoch);
    assert_int_equal(world_history(id), 1);
    assert_int_equal(APPLY(&new, SUCCEEDED, .result = "new", .result_length = 3), 0);
    assert_memory_equal(world_job(id)->result, "new", 3);
}

static void a_job_that_is_gone_is_stale(void **state) { /* I8 */
    (void)state;
    struct hfi_job ghost = {.id = 424242, .state = HF_JOB_RUNNING, .epoch = 1, .owner = world.node, .started_at_us = T0,
                            .executions = 1, .type = "a", .queue = "default", .downstream = "", .breaker_key = "",
                            .limit_key = "", .unique_key = "", .idempotency_key = "", .source = "",
                            .source_message_id = "", .correlation_id = "", .trace_context = "", .tags = "",
                            .content_type = "", .reason = "", .error_class = "", .error_type = "",
                            .error_message = "", .cancel_by = "", .cancel_reason = ""};
    struct hfi_job *job = &ghost;
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), HF_ESTALE);
}

static void giving_back_and_snoozing_cost_no_failure(void **state) { /* S2.10, I37 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(APPLY(&job, GIVEN_BACK, .delay_ms = 0), 0);
    assert_int_equal(world_job(id)->executions, 0);
    assert_int_equal(world_job(id)->give_backs, 1);
    job = world_start_type("a");
    assert_int_equal(APPLY(&job, SNOOZED, .delay_ms = 2000), 0);
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
    assert_int_equal(world_job(id)->failures, 0);
    assert_int_equal(world_job(id)->run_at_us, T0 + 2 * SECOND);
    assert_string_equal(world_job(id)->not_before_reason, "snooze");
    assert_int_equal(world_history(id), 2);
}

static void a_rejection_takes_its_execution_back(void **state) { /* 3.3 */
    (void)state;
    struct hf_outcome outcome;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    hfi_outcome_init(&outcome);
    hfi_outcome_rejected(&outcome, "breaker.open", 5000);
    assert_int_equal(APPLY(&job, REJECTED, .outcome = &outcome, .delay_ms = 250), 0);
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
    assert_int_equal(world_job(id)->executions, 0);
    assert_int_equal(world_job(id)->run_at_us, T0 + 5 * SECOND);
    assert_string_equal(world_job(id)->not_before_reason, "breaker.open");
}

/* The lane of that breaker key, 0 none; `due`: has it due jobs? */
static int64_t lane_of_breaker(const char *key, bool *due) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    int64_t found = 0;
    assert_int_equal(world_do(&op.op), 0);
    for (size_t i = 0; i < op.count; i++) {
        if (strcmp(op.rows[i].breaker_key, key) != 0)
            continue;
        found = op.rows[i].lane;
        *due = op.rows[i].next_due_us <= world.now.us;
    }
    hfi_free(op.rows);
    return found;
}

static void a_job_waits_with_its_host_once_that_is_known(void **state) { /* 3.4 */
    (void)state;
    static const char dead[] = "http://dead.example#shop";
    struct hf_outcome outcome;
    bool due = false;
    world_put_type("a");
    world_put_type("a");
    int64_t all = world_lane("default", "a");
    struct hfi_job *job = world_start(all), *again, *none;
    int64_t id = job->id;
    hfi_outcome_init(&outcome);
    hfi_outcome_rejected(&outcome, "breaker.open", 5000);
    assert_int_equal(lane_of_breaker(dead, &due), 0);
    assert_int_equal(APPLY(&job, REJECTED, .outcome = &outcome, .breaker_key = dead), 0);
    world.now.us += 5 * SECOND;
    int64_t lane = lane_of_breaker(dead, &due);
    assert_true(lane > 0 && lane != all);
    assert_true(due);
    job = world_start(all); /* the other one stayed */
    assert_non_null(job);
    assert_int_not_equal(job->id, id);
    assert_int_equal(world_claim(all, 1, true, &none), 0);
    assert_int_equal(APPLY(&job, SUCCEEDED, .breaker_key = dead), 0); /* no lane is asked for what has ended */
    assert_int_equal(world_claim(lane, 5, true, &again), 1);
    assert_int_equal(again->id, id);
    assert_string_equal(again->breaker_key, dead);
    assert_int_equal(again->lane, lane);
    assert_int_equal(APPLY(&again, SNOOZED, .delay_ms = 0), 0); /* and there it stays */
    assert_int_equal(world_claim(lane, 5, true, &again), 1);
    assert_int_equal(again->id, id);
}

WORLD_MAIN(WORLD_TEST(the_order_in_a_lane_is_priority_then_due_time_then_id),
           WORLD_TEST(lanes_give_up_to_their_maximum_and_that_of_all),
           WORLD_TEST(probes_pass_over_jobs_with_nothing_to_spare),
           WORLD_TEST(a_probe_of_what_cannot_be_repeated_is_the_first),
           WORLD_TEST(a_probe_is_looked_for_among_a_bounded_number),
           WORLD_TEST(an_empty_or_unknown_lane_gives_nothing),
           WORLD_TEST(a_reservation_counts_nothing_until_it_starts), WORLD_TEST(a_policy_is_fixed_at_the_first_start),
           WORLD_TEST(what_is_reserved_is_not_started_while_its_queue_is_paused),
           WORLD_TEST(the_whole_curve_then_death), WORLD_TEST(nothing_past_its_expiry_is_claimed),
           WORLD_TEST(expiry_respects_its_limit), WORLD_TEST(lanes_tell_what_is_new_and_what_is_due),
           WORLD_TEST(due_jobs_of_kept_lanes_are_counted), WORLD_TEST(success_is_recorded_once),
           WORLD_TEST(a_stale_owner_changes_nothing), WORLD_TEST(a_job_that_is_gone_is_stale),
           WORLD_TEST(giving_back_and_snoozing_cost_no_failure), WORLD_TEST(a_rejection_takes_its_execution_back),
           WORLD_TEST(a_job_waits_with_its_host_once_that_is_known))
