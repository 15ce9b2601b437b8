/* SPDX-License-Identifier: MIT */
/*
 * Contract of the store: what is kept how long, and what goes with it. A job ends with all that belongs to it, evidence
 * outlives it (C3), and nothing that is open ever goes. S0.20, S1.22, S3.6, S4.9, I62, I81, I82.
 */
#include "store_world.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t prune(struct hfi_op_prune op) {
    uint32_t total = 0;
    op.op.kind = HFI_OP_PRUNE;
    op.limit = op.limit ? op.limit : 100;
    for (int i = 0; i < 200; i++) {
        assert_int_equal(world_do(&op.op), 0);
        assert_true(op.pruned <= op.limit);
        total += op.pruned;
        if (!op.more)
            return total;
    }
    fail_msg("it never comes to an end");
    return 0;
}

static int64_t ended(enum hf_job_state state) {
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(job->id, id);
    if (state == HF_JOB_SUCCEEDED)
        assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    else if (state == HF_JOB_CANCELLED)
        assert_int_equal(APPLY(&job, CANCELLED, .actor = "x", .message = ""), 0);
    else if (state == HF_JOB_DEAD)
        assert_int_equal(world_fail(&job, true), 0);
    else
        assert_int_equal(APPLY(&job, QUARANTINED, .error_type = "payload.bad", .message = "x"), 0);
    assert_int_equal(world_job(id)->state, state);
    return id;
}

/* A job that ended exactly so long ago stays; a microsecond longer, and it goes (I62). 0 keeps it for ever. */
static void each_state_has_its_own_time_to_the_microsecond(void **state) { /* S1.22, S3.6, S4.9 */
    (void)state;
    static const enum hf_job_state states[] = {HF_JOB_SUCCEEDED, HF_JOB_CANCELLED, HF_JOB_DEAD, HF_JOB_QUARANTINED};
    for (int i = 0; i < 4; i++) {
        int64_t id = ended(states[i]), day = 14 * DAY;
        struct hfi_op_prune none = {.succeeded_before = i == 0 ? 0 : INT64_MAX, .cancelled_before = i == 1 ? 0 : INT64_MAX,
                                    .dead_before = i == 2 ? 0 : INT64_MAX, .quarantined_before = i == 3 ? 0 : INT64_MAX};
        assert_int_equal(prune(none), 0);
        struct hfi_op_prune op = {.limit = 10};
        int64_t *mine = i == 0 ? &op.succeeded_before : i == 1 ? &op.cancelled_before : i == 2 ? &op.dead_before
                                                                                          : &op.quarantined_before;
        *mine = world.now.us + day - day - 1;
        assert_int_equal(prune(op), 0);
        *mine = world.now.us; /* it ended now: kept exactly long enough */
        assert_int_equal(prune(op), 0);
        assert_non_null(world_job(id));
        *mine = world.now.us + 1;
        assert_int_equal(prune(op), 1);
        assert_null(world_job(id));
    }
}

static void what_has_not_ended_never_goes(void **state) {
    (void)state;
    int64_t pending = world_put_type("b"), running = world_put_type("a");
    struct hf_job_spec spec = world_spec("c", NULL);
    spec.after_jobs = &pending;
    spec.after_count = 1;
    int64_t waiting = world_put(&spec);
    assert_non_null(world_start_type("a"));
    struct hfi_op_prune all = {.succeeded_before = INT64_MAX, .cancelled_before = INT64_MAX, .dead_before = INT64_MAX,
                               .quarantined_before = INT64_MAX, .dead_letters_before = INT64_MAX, .inbox_before = INT64_MAX};
    assert_int_equal(prune(all), 0);
    assert_non_null(world_job(pending));
    assert_non_null(world_job(running));
    assert_non_null(world_job(waiting));
}

/* Purge the job a week later: the redriven payload has every one of the 256 values in its place. */
static void a_dead_letter_outlives_its_job_byte_for_byte(void **state) { /* S0.20, C3 */
    (void)state;
    unsigned char payload[512];
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)i;
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.payload = payload;
    spec.payload_length = sizeof payload;
    spec.tags = "x,y";
    int64_t id = world_put(&spec);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_fail(&job, true), 0);
    world.now.us += 7 * DAY;
    struct hfi_op_prune op = {.dead_before = world.now.us, .dead_letters_before = world.now.us};
    assert_int_equal(prune(op), 1);
    assert_null(world_job(id));
    assert_int_equal(world_dead_count(-1), 1);
    assert_memory_equal(world_dead(1)->payload, payload, sizeof payload);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive redrive = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = world.now};
    assert_int_equal(world_do(&redrive.op), 0);
    assert_int_equal(world_job(redrive.new_job)->payload_length, sizeof payload);
    assert_memory_equal(world_job(redrive.new_job)->payload, payload, sizeof payload);
    assert_string_equal(world_job(redrive.new_job)->tags, "x,y");
}

static void only_settled_letters_go_and_only_when_their_time_is_over(void **state) { /* C3 */
    (void)state;
    int64_t open = world_die("a", NULL), settled = world_die("a", NULL);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_settle settle = {.op = {.kind = HFI_OP_SETTLE}, .dead_id = settled, .status = HF_DEAD_RESOLVED,
                                   .action = &action, .now = world.now};
    static const char *const sinks[] = {"ops", "pager"};
    struct hfi_op_alerts alerts = {.op = {.kind = HFI_OP_ALERTS}, .sinks = sinks, .sink_count = 2, .node = world.node,
                                   .lease_ms = 1000, .now = world.now, .limit = 10};
    assert_int_equal(world_do(&settle.op), 0);
    struct hfi_op_prune op = {.dead_letters_before = world.now.us + 1};
    assert_int_equal(prune(op), 0); /* its alerts are still to be sent */
    assert_int_equal(world_do(&alerts.op), 0);
    for (size_t i = 0; i < alerts.count; i++) {
        struct hfi_op_alert_end end = {.op = {.kind = HFI_OP_ALERT_END}, .id = alerts.rows[i].id,
                                       .epoch = alerts.rows[i].epoch, .sent = true, .now = world.now};
        assert_int_equal(world_do(&end.op), 0);
    }
    hfi_free(alerts.rows);
    op.dead_letters_before = world.now.us;
    assert_int_equal(prune(op), 0); /* I62 */
    op.dead_letters_before++;
    assert_int_equal(prune(op), 1);
    assert_null(world_dead(settled));
    assert_non_null(world_dead(open)); /* for ever, until somebody settles it */
}

static void a_message_is_known_until_its_own_time_is_over(void **state) { /* S4.11 */
    (void)state;
    struct hf_job_spec spec = world_spec("a", NULL);
    int64_t id, again;
    bool existed;
    spec.source = "shop";
    spec.source_message_id = "m-1";
    id = world_put(&spec);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    struct hfi_op_prune op = {.succeeded_before = world.now.us + 1, .inbox_before = world.now.us};
    assert_int_equal(prune(op), 1);
    assert_null(world_job(id));
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, 0); /* it was there, and is gone */
    op.inbox_before = world.now.us + 1;
    assert_int_equal(prune(op), 1);
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_false(existed);
    assert_true(again > id); /* no id twice */
}

/* No list of the dead is ever cut to some length: 10,001 deaths are 10,001 rows. */
static void ten_thousand_and_one_deaths_leave_as_many_rows(void **state) { /* I81 */
    (void)state;
    enum { DEATHS = 10001, PART = 3000 };
    struct hf_job_spec spec = world_spec("z", NULL);
    struct hfi_put *puts = calloc(PART, sizeof *puts);
    struct hfi_spec_room room;
    for (size_t left = DEATHS; left > 0;) {
        size_t count = left < PART ? left : PART;
        struct hfi_op_put put = {.op = {.kind = HFI_OP_PUT}, .items = puts, .count = count};
        for (size_t i = 0; i < count; i++)
            assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &puts[i].job, &room, NULL), 0);
        assert_int_equal(world_do(&put.op), 0);
        struct hfi_op_quarantine op = {.op = {.kind = HFI_OP_QUARANTINE}, .book = world.book, .lane = world_lane("default", "z"),
                                       .node = world.node, .now = world.now, .error_type = "unknown_type",
                                       .message = "nobody has it", .limit = PART};
        assert_int_equal(world_do(&op.op), 0);
        assert_int_equal(op.ended, count);
        hfi_free(op.notes);
        left -= count;
    }
    free(puts);
    struct hfi_op_prune all = {.dead_letters_before = INT64_MAX, .inbox_before = INT64_MAX};
    assert_int_equal(prune(all), 0);
    assert_int_equal(world_counts().quarantined, DEATHS);
    assert_int_equal(world_counts().dead_letters_open, DEATHS);
}

/* A job keeps the curve it was enqueued, or first started, with; the next one gets the new one. */
static void a_changed_curve_is_for_new_jobs(void **state) { /* I82 */
    (void)state;
    static const int64_t old_waits[] = {1000, 2000}, new_waits[] = {9000};
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.curve_ms = old_waits;
    spec.curve_length = 2;
    int64_t old_job = world_put(&spec);
    int64_t plain = world_put_type("b");
    struct hfi_job *job = world_start_type("b"); /* fixes the curve of then */
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(plain)->run_at_us, world.now.us + 60 * SECOND);
    spec.curve_ms = new_waits;
    spec.curve_length = 1;
    int64_t new_job = world_put(&spec);
    memset(&world.curve.waits_ms, 0, sizeof world.curve.waits_ms); /* the configuration is another one now */
    world.curve.waits_ms[0] = 5000;
    world.curve.length = 1;
    world.curve.max_executions = 2;
    job = world_start_type("a");
    assert_int_equal(job->id, old_job);
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(old_job)->run_at_us, world.now.us + 1 * SECOND);
    assert_int_equal(world_job(old_job)->max_executions, 3);
    job = world_start_type("a");
    assert_int_equal(job->id, new_job);
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(new_job)->run_at_us, world.now.us + 9 * SECOND);
    world.now.us += HOUR;
    job = world_start_type("b");
    assert_int_equal(job->id, plain);
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(plain)->run_at_us, world.now.us + 300 * SECOND); /* its second wait, of the old curve */
    assert_int_equal(world_job(plain)->max_executions, 6);
}

/* ------------------------------------------------------------------ lanes and nodes */

static struct hf_job_spec keyed(const char *key) {
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.limit_name = "tenant";
    spec.limit_key = key;
    return spec;
}

static int64_t put_keyed(const char *key) {
    struct hf_job_spec spec = keyed(key);
    return world_put(&spec);
}

/* The lane of that key, 0 if there is none; `known` lanes are not told of again. */
static int64_t lane_of_key(const char *key, int64_t *highest) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    int64_t lane = 0;
    char limit[64];
    snprintf(limit, sizeof limit, "tenant:%s", key);
    assert_int_equal(world_do(&op.op), 0);
    for (size_t i = 0; i < op.count; i++) {
        if (strcmp(op.rows[i].limit_key, limit) == 0)
            lane = op.rows[i].lane;
        if (highest && op.rows[i].lane > *highest)
            *highest = op.rows[i].lane;
    }
    hfi_free(op.rows);
    return lane;
}

static void run_keyed(const char *key) {
    int64_t id = put_keyed(key);
    struct hfi_job *job = world_start(lane_of_key(key, NULL));
    assert_int_equal(job->id, id);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
}

/* A whole walk, `between` after each of its steps. */
static struct hfi_op_unused walk(void (*between)(void)) {
    struct hfi_op_unused op = {.op = {.kind = HFI_OP_UNUSED}, .now = world.now, .limit = 3}, sum = {.limit = 3};
    for (int i = 0; i < 500; i++) {
        assert_int_equal(world_do(&op.op), 0);
        sum.lanes_removed += op.lanes_removed;
        sum.policies_removed += op.policies_removed;
        if (!op.more)
            return sum;
        if (between)
            between();
    }
    fail_msg("it never comes to an end");
    return sum;
}

static uint32_t prune_succeeded(void) {
    return prune((struct hfi_op_prune){.succeeded_before = world.now.us + 1});
}

static void a_lane_goes_with_its_last_job(void **state) {
    (void)state;
    char key[16];
    int64_t highest = 0, after = 0;
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "%d", i);
        run_keyed(key);
    }
    put_keyed("pending");
    put_keyed("running");
    assert_non_null(world_start(lane_of_key("running", NULL)));
    put_keyed("dead");
    struct hfi_job *job = world_start(lane_of_key("dead", NULL));
    assert_int_equal(world_fail(&job, true), 0);
    struct hf_job_spec spec = keyed("waiting");
    int64_t parent = put_keyed("pending");
    spec.after_jobs = &parent;
    spec.after_count = 1;
    world_put(&spec);
    run_keyed("succeeded last");
    int64_t gone = lane_of_key("17", &highest);
    assert_int_equal(walk(NULL).lanes_removed, 0);
    world.now.us += DAY;
    assert_int_equal(prune_succeeded(), 41);
    assert_int_equal(walk(NULL).lanes_removed, 41);
    static const char *const kept[] = {"pending", "running", "dead", "waiting"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_true(lane_of_key(kept[i], NULL) > 0);
    assert_int_equal(lane_of_key("17", &after), 0);
    run_keyed("17"); /* comes again, as another one: runners and caches may know the old number */
    assert_true(lane_of_key("17", NULL) > highest && lane_of_key("17", NULL) != gone);
    struct hfi_job *none;
    assert_int_equal(world_claim(gone, 1, true, &none), 0);
    int64_t asked[] = {gone, lane_of_key("17", NULL), lane_of_key("pending", NULL), 999999};
    struct hfi_op_unused op = {.op = {.kind = HFI_OP_UNUSED}, .now = world.now, .every_us = DAY, .limit = 3, .lanes = asked, .lane_count = 4};
    assert_int_equal(world_do(&op.op), 0);
    assert_false(op.more); /* it is not time */
    assert_int_equal(op.gone_count, 2);
    assert_int_equal(asked[0], gone);
    assert_int_equal(asked[1], 999999);
}

static int used_until, puts_made;

static void use_all_again(void) {
    char key[16];
    for (int i = 0; i < 12 && puts_made < used_until; i++, puts_made++) {
        snprintf(key, sizeof key, "%d", i);
        put_keyed(key);
    }
}

/* Wherever the walk is: what is given a job meanwhile can be claimed afterwards. */
static void a_lane_that_is_used_during_the_walk_stays(void **state) {
    (void)state;
    char key[16];
    for (used_until = 1; used_until < 60; used_until += 7) {
        for (int i = 0; i < 12; i++) {
            snprintf(key, sizeof key, "%d", i);
            run_keyed(key);
        }
        world.now.us += DAY;
        prune_succeeded();
        puts_made = 0;
        walk(use_all_again);
        uint64_t pending = world_counts().pending;
        assert_int_equal(pending, puts_made);
        for (int i = 0; i < 12; i++) {
            snprintf(key, sizeof key, "%d", i);
            struct hfi_job *job;
            while ((job = world_start(lane_of_key(key, NULL))) != NULL) {
                assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
                pending--;
            }
        }
        assert_int_equal(pending, 0);
    }
}

/* An hour of walks apart; a clock that was set back does not put the next one off for ever. */
static void a_walk_waits_for_its_time(void **state) {
    (void)state;
    struct hfi_op_unused op = {.op = {.kind = HFI_OP_UNUSED}, .now = world.now, .every_us = HOUR, .limit = 100};
    walk(NULL);
    run_keyed("a");
    prune_succeeded();
    op.now.us = world.now.us + HOUR - 1;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.lanes_removed, 0);
    assert_false(op.more);
    op.now.us = world.now.us - 1000 * DAY;
    do
        assert_int_equal(world_do(&op.op), 0);
    while (op.more);
    assert_int_equal(lane_of_key("a", NULL), 0);
}

static int64_t join_as(const char *name) {
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = name, .host = "here", .boot = name, .pid = 1, .now = world.now};
    assert_int_equal(world_do(&join.op), 0);
    return join.node;
}

static void leave(int64_t node) {
    struct hfi_op_leave op = {.op = {.kind = HFI_OP_LEAVE}, .node = node};
    assert_int_equal(world_do(&op.op), 0);
}

static struct hfi_downstream_state write_row(const char *key, unsigned set, struct hfi_downstream_state state) {
    struct hfi_op_downstream op = {.op = {.kind = HFI_OP_DOWNSTREAM}, .key = key, .set = set, .now = world.now, .state = state};
    assert_int_equal(world_do(&op.op), 0);
    return op.state;
}

static int64_t version_of(const char *key) {
    return write_row(key, HFI_DOWNSTREAM_READ, (struct hfi_downstream_state){0}).version;
}

static uint64_t control_now(void) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    hfi_free(op.rows);
    return op.unhealthy_version;
}

/* A row for each host that was ever called would stay for ever: what says nothing goes, in pages; what says something stays. */
static void downstreams_with_nothing_to_say_are_forgotten(void **state) {
    (void)state;
    char key[32];
    for (int i = 0; i < 25; i++) {
        snprintf(key, sizeof key, "host-%d", i);
        write_row(key, HFI_DOWNSTREAM_PHASE, (struct hfi_downstream_state){0});
    }
    write_row("open", HFI_DOWNSTREAM_PHASE, (struct hfi_downstream_state){.phase = 1, .open_until_us = 1, .unhealthy_since_us = 1});
    write_row("ramp", HFI_DOWNSTREAM_PHASE, (struct hfi_downstream_state){.phase = 3, .ramp_from_us = 1});
    write_row("gate", HFI_DOWNSTREAM_PHASE, (struct hfi_downstream_state){.gate_until_us = world.now.us + DAY});
    write_row("forced", HFI_DOWNSTREAM_FORCED, (struct hfi_downstream_state){.forced = 1});
    write_row("was-forced", HFI_DOWNSTREAM_FORCED, (struct hfi_downstream_state){.forced = 1, .forced_until_us = world.now.us});
    int64_t written = world.now.us;
    uint64_t control = control_now();
    struct hfi_op_prune op = {.downstreams_before = written, .limit = 10};
    assert_int_equal(prune(op), 0);
    assert_true(control_now() == control);
    world.now.us++;
    write_row("host-3", HFI_DOWNSTREAM_PHASE, (struct hfi_downstream_state){.version = 1});
    control = control_now();
    op.downstreams_before = written + 1;
    assert_int_equal(prune(op), 25);
    assert_true(control_now() != control); /* whoever knows a version of them reads again */
    assert_int_equal(version_of("host-3"), 2);
    assert_int_equal(version_of("host-4"), 0);
    assert_int_equal(version_of("was-forced"), 0);
    assert_int_equal(version_of("open") + version_of("ramp") + version_of("gate") + version_of("forced"), 4);
    op.downstreams_before = written + DAY + 1;
    assert_int_equal(prune(op), 2); /* the one that was written again, and the gate */
}

/* Who has not heard of that yet is not refused, and what it writes is newer than all that was seen. */
static void a_write_over_a_forgotten_downstream_counts(void **state) {
    (void)state;
    struct hfi_downstream_state row = {0};
    for (int i = 0; i < 3; i++)
        row = write_row("host", HFI_DOWNSTREAM_PHASE, row);
    assert_int_equal(row.version, 3);
    struct hfi_op_prune op = {.downstreams_before = world.now.us + 1};
    assert_int_equal(prune(op), 1);
    row.phase = 1;
    row = write_row("host", HFI_DOWNSTREAM_PHASE, row);
    assert_int_equal(row.version, 4);
    assert_int_equal(row.phase, 1);
}

static struct hfi_op_prune page_of(int64_t node, uint32_t limit) {
    struct hfi_op_prune op = {.op = {.kind = HFI_OP_PRUNE}, .cancelled_before = INT64_MAX, .node = node, .now = world.now, .limit = limit};
    assert_int_equal(world_do(&op.op), 0);
    return op;
}

static void cancel_some(int count) {
    for (int i = 0; i < count; i++) {
        struct hfi_op_cancel cancel = {.op = {.kind = HFI_OP_CANCEL}, .id = world_put_type("a"), .actor = "x", .now = world.now};
        assert_int_equal(world_do(&cancel.op), 0);
    }
}

/* I73: who finds more than a page prunes alone until all is gone; others change nothing meanwhile. */
static void one_node_prunes_at_a_time(void **state) {
    (void)state;
    cancel_some(7);
    struct hfi_op_prune first = page_of(1, 3), other = page_of(2, 3);
    assert_true(first.pruned == 3 && first.more && !first.others);
    assert_true(other.others && other.pruned == 0 && other.rows == 0 && !other.more);
    first = page_of(1, 3);
    assert_true(first.pruned == 3 && !first.others);
    assert_true(page_of(3, 3).others);
    while (first.more)
        first = page_of(1, 3);
    other = page_of(2, 3); /* it found no more: anybody's turn */
    assert_true(!other.others && other.pruned == 0);
    cancel_some(1);
    assert_int_equal(page_of(2, 3).pruned, 1);
}

/* I73: a pruner that died, or a clock that was set back: the others go on after a minute, or at once. */
static void nobody_keeps_the_turn_to_prune(void **state) {
    (void)state;
    cancel_some(12);
    assert_true(page_of(1, 3).more);
    world.now.us += HFI_PRUNE_TURN_US - 1;
    assert_true(page_of(2, 3).others);
    world.now.us++;
    struct hfi_op_prune next = page_of(2, 3);
    assert_true(!next.others && next.pruned == 3 && next.more);
    assert_true(page_of(1, 3).others); /* back from wherever it was */
    world.now.us -= 1;
    assert_false(page_of(1, 3).others); /* no clock of now has said that */
}

/* Their names stay for a while; a number is never given again, and one that is gone cannot come back. */
static void nodes_that_are_gone_are_forgotten_in_time(void **state) {
    (void)state;
    int64_t early = join_as("early"), quiet = join_as("quiet");
    leave(early);
    int64_t gone_at = world.now.us;
    world.now.us += DAY;
    int64_t late = join_as("late");
    leave(late);
    struct hfi_op_prune op = {.nodes_before = gone_at};
    assert_int_equal(prune(op), 0);
    op.nodes_before++;
    assert_int_equal(prune(op), 1);
    op.nodes_before = world.now.us + DAY;
    assert_int_equal(prune(op), 1); /* the late one; those that live are nobody's to forget */
    assert_int_equal(prune(op), 0);
    struct hfi_op_beat beat = {.op = {.kind = HFI_OP_BEAT}, .node = early, .beat = 5, .now = world.now};
    assert_int_equal(world_do(&beat.op), 0);
    assert_false(beat.known);
    beat.node = quiet;
    assert_int_equal(world_do(&beat.op), 0);
    assert_true(beat.known);
    assert_true(join_as("next") > late);
}

WORLD_MAIN(WORLD_TEST(each_state_has_its_own_time_to_the_microsecond), WORLD_TEST(what_has_not_ended_never_goes),
           WORLD_TEST(a_dead_letter_outlives_its_job_byte_for_byte),
           WORLD_TEST(only_settled_letters_go_and_only_when_their_time_is_over),
           WORLD_TEST(a_message_is_known_until_its_own_time_is_over),
           WORLD_TEST(ten_thousand_and_one_deaths_leave_as_many_rows), WORLD_TEST(a_changed_curve_is_for_new_jobs), WORLD_TEST(a_lane_goes_with_its_last_job),
           WORLD_TEST(a_lane_that_is_used_during_the_walk_stays), WORLD_TEST(a_walk_waits_for_its_time),
           WORLD_TEST(nodes_that_are_gone_are_forgotten_in_time),
           WORLD_TEST(downstreams_with_nothing_to_say_are_forgotten),
           WORLD_TEST(a_write_over_a_forgotten_downstream_counts), WORLD_TEST(one_node_prunes_at_a_time), WORLD_TEST(nobody_keeps_the_turn_to_prune))
