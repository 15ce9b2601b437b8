/* SPDX-License-Identifier: MIT */
/* Contract of the store: what people decide about deaths: redrive, requeue, resolve, discard; and letters from outside. */
#include "store_world.h"

#include <stdio.h>

#include "jobs/forward.h"
#include "jobs/letter.h"

static void redrive_makes_a_new_job_of_the_snapshot(void **state) { /* S0.22 */
    (void)state;
    int64_t id, dead_id = world_die("a", &id);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {
        .op = {.kind = HFI_OP_REDRIVE}, .dead_id = dead_id, .action = &action, .now = {T0 + HOUR}};
    assert_int_equal(world_do(&op.op), 0);
    assert_true(op.new_job > id);
    const struct hf_job_view *made = world_job(op.new_job), *old = world_job(id);
    assert_int_equal(made->state, HF_JOB_PENDING);
    assert_string_equal(made->type, "a");
    assert_string_equal(made->downstream, "shop");
    assert_int_equal(made->root_id, id);
    assert_int_equal(made->parent_id, id);
    assert_int_equal(made->executions, 0);
    assert_int_equal(made->run_at_us, T0 + HOUR);
    assert_string_equal(made->idempotency_key, old->idempotency_key); /* stable over redrive [3.3] */
    assert_int_equal(old->state, HF_JOB_DEAD);                        /* the original never changes */
    const struct hf_dead_view *dead = world_dead(dead_id);
    assert_int_equal(dead->status, HF_DEAD_REDRIVEN);
    assert_string_equal(dead->settled_by, "ann");
    assert_string_equal(dead->settled_reason, "it is mended");
    assert_int_equal(dead->settled_at_us, T0 + HOUR);
    assert_int_equal(dead->new_job_id, op.new_job);
    assert_string_equal(dead->new_job_outcome, "");
    int64_t made_id = op.new_job;
    op.new_job = 0;
    assert_int_equal(world_do(&op.op), HF_ESTATE); /* twice is refused, naming the first */
    assert_int_equal(op.new_job, made_id);
    assert_int_equal(op.status, HF_DEAD_REDRIVEN);
    assert_int_equal(world_counts().pending, 1);
    world.now.us = T0 + HOUR;
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(job->id, made_id);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_string_equal(world_dead(dead_id)->new_job_outcome, "succeeded"); /* it learns how that ended */
}

static void a_redriven_job_outlives_the_purge_byte_by_byte(void **state) { /* S0.20, S4.9, C3 */
    (void)state;
    unsigned char all[256];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)i;
    struct hf_job_spec spec = world_spec("bytes", "q");
    spec.payload = all;
    spec.payload_length = sizeof all;
    spec.priority = 4;
    spec.tags = "t";
    spec.trace_context = "00-trace";
    spec.correlation_id = "corr";
    spec.limit_name = "tenant";
    spec.limit_key = "x";
    spec.idempotency_key = "mine";
    int64_t id = world_put(&spec);
    struct hfi_job *job = world_start(world_lane("q", "bytes"));
    assert_int_equal(world_fail(&job, true), 0);
    world.now.us += 31 * DAY;
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE},
                                 .dead_before = world.now.us - 30 * DAY,
                                 .dead_letters_before = world.now.us,
                                 .limit = 100};
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 1); /* the job; an open dead letter never goes */
    assert_null(world_job(id));
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    job = world_start(world_lane("q", "bytes"));
    assert_int_equal(job->id, op.new_job);
    assert_int_equal(job->payload_length, sizeof all);
    assert_memory_equal(job->payload, all, sizeof all);
    assert_int_equal(job->priority, 4);
    assert_int_equal(job->root_id, id);
    assert_string_equal(job->tags, "t");
    assert_string_equal(job->trace_context, "00-trace");
    assert_string_equal(job->correlation_id, "corr");
    assert_string_equal(job->limit_key, "tenant:x");
    assert_string_equal(job->idempotency_key, "mine");
}

static void a_corrected_payload_needs_a_new_key(void **state) { /* S4.14 */
    (void)state;
    int64_t dead_id = world_die("a", NULL);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {
        .op = {.kind = HFI_OP_REDRIVE}, .dead_id = dead_id, .action = &action, .now = world.now};
    action.payload = "fixed";
    action.payload_length = 5;
    assert_int_equal(world_do(&op.op), HF_EINVAL);
    assert_int_equal(world_dead(dead_id)->status, HF_DEAD_DEAD);
    assert_int_equal(world_counts().pending, 0);
    action.new_key = true;
    action.payload_length = HF_PAYLOAD_MAX_DEFAULT + 1;
    assert_int_equal(world_do(&op.op), HF_ETOOBIG);
    action.payload_length = 5;
    assert_int_equal(world_do(&op.op), 0);
    assert_memory_equal(world_job(op.new_job)->payload, "fixed", 5);
    assert_string_not_equal(world_job(op.new_job)->idempotency_key, world_job(1)->idempotency_key);
    assert_int_equal(world_dead(dead_id)->payload_length, 0); /* the original stays */
}

static void a_cut_payload_needs_a_whole_one(void **state) { /* S0.20 */
    (void)state;
    struct hfi_job job;
    struct hfi_death death = {.death_class = HF_DEATH_POISON, .death_no = 1, .payload_cut = true, .cause = "message",
                              .error_type = "message.malformed", .rule = "outbox.malformed", .message = "too long"};
    hfi_job_blank(&job);
    job.type = "a";
    job.queue = "default";
    job.source = "shop";
    job.source_message_id = "m-1";
    job.payload = "the beg";
    job.payload_length = 7;
    struct hfi_op_poison letter = {.op = {.kind = HFI_OP_POISON}, .job = &job, .death = &death, .now = world.now};
    assert_int_equal(world_do(&letter.op), 0);
    assert_true(world_dead(letter.dead_id)->payload_cut);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {
        .op = {.kind = HFI_OP_REDRIVE}, .dead_id = letter.dead_id, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.status, HF_DEAD_DEAD);
    assert_int_equal(world_dead(letter.dead_id)->status, HF_DEAD_DEAD);
    assert_int_equal(world_counts().pending, 0);
    action.new_key = true; /* a key alone makes it no longer */
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    action.payload = "the whole";
    action.payload_length = 9;
    assert_int_equal(world_do(&op.op), 0);
    assert_memory_equal(world_job(op.new_job)->payload, "the whole", 9);
}

static void redrive_into_a_taken_unique_key_is_refused(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.unique_key = "k";
    world_put(&spec);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_fail(&job, true), 0);
    int64_t holder = world_put(&spec);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), HF_EEXIST);
    assert_int_equal(op.new_job, holder);
    assert_int_equal(world_dead(1)->status, HF_DEAD_DEAD);
    struct hfi_op_requeue requeue = {
        .op = {.kind = HFI_OP_REQUEUE}, .id = 1, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&requeue.op), HF_EEXIST);
    assert_int_equal(requeue.other_job, holder);
    assert_int_equal(world_job(1)->state, HF_JOB_DEAD);
    assert_int_equal(world_dead(1)->status, HF_DEAD_DEAD);
}

static void unknown_dead_letters_and_jobs_are_enoent(void **state) {
    (void)state;
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive redrive = {
        .op = {.kind = HFI_OP_REDRIVE}, .dead_id = 77, .action = &action, .now = world.now};
    struct hfi_op_settle settle = {
        .op = {.kind = HFI_OP_SETTLE}, .dead_id = 77, .status = HF_DEAD_RESOLVED, .action = &action, .now = world.now};
    struct hfi_op_requeue requeue = {
        .op = {.kind = HFI_OP_REQUEUE}, .id = 77, .actor = "a", .reason = "", .now = world.now};
    assert_int_equal(world_do(&redrive.op), HF_ENOENT);
    assert_int_equal(world_do(&settle.op), HF_ENOENT);
    assert_int_equal(world_do(&requeue.op), HF_ENOENT);
    assert_null(world_dead(77));
    assert_null(world_job(77));
    assert_null(world_job(-1));
}

static void requeue_runs_the_same_job_from_the_top(void **state) { /* S1.19, C1, S0.32b */
    (void)state;
    int64_t id, dead_id = world_die("a", &id);
    int64_t epoch = world_job(id)->epoch;
    world.now.us += HOUR;
    struct hfi_op_requeue op = {
        .op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "mended", .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    const struct hf_job_view *view = world_job(id);
    assert_int_equal(view->state, HF_JOB_PENDING);
    assert_int_equal(view->executions, 0);
    assert_int_equal(view->failures, 0);
    assert_int_equal(view->deaths, 1);
    assert_true(view->epoch > epoch);
    assert_int_equal(view->run_at_us, world.now.us);
    assert_int_equal(world_history(id), 2); /* kept, and who asked for it */
    assert_non_null(strstr(world_past(id, 1)->error_message, "ann"));
    assert_int_equal(world_dead(dead_id)->status, HF_DEAD_REDRIVEN);
    assert_int_equal(world_dead(dead_id)->new_job_id, id);
    assert_string_equal(world_dead(dead_id)->settled_by, "ann");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_fail(&job, true), 0); /* the second death is one of its own */
    assert_int_equal(world_dead_count(-1), 2);
    assert_int_equal(world_dead(dead_id + 1)->death_no, 2);
    assert_int_equal(world_dead(dead_id + 1)->status, HF_DEAD_DEAD);
    assert_string_equal(world_dead(dead_id)->new_job_outcome, "dead");
    assert_int_equal(world_counts().alerts_unsent, 4);
}

static void a_redriven_job_dies_as_any_other(void **state) { /* I41 */
    (void)state;
    struct hf_dead_action action = world_action("ann");
    int64_t id, dead_id = world_die("a", &id);
    uint64_t alerts = world_counts().alerts_unsent;
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = dead_id, .action = &action, .now = world.now};
    assert_true(alerts > 0);
    assert_int_equal(world_do(&op.op), 0);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(job->id, op.new_job);
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(world_dead_count(-1), 2);
    assert_int_equal(world_dead(dead_id)->new_job_id, op.new_job);
    assert_string_equal(world_dead(dead_id)->new_job_outcome, "dead");
    assert_int_equal(world_dead(dead_id + 1)->job_id, op.new_job);
    assert_int_equal(world_dead(dead_id + 1)->status, HF_DEAD_DEAD);
    assert_int_equal(world_counts().alerts_unsent, 2 * alerts);
}

static void requeue_keeps_or_changes_the_key(void **state) {
    (void)state;
    char before[HFI_KEY_MAX + 1];
    int64_t id;
    world_die("a", &id);
    snprintf(before, sizeof before, "%s", world_job(id)->idempotency_key);
    struct hfi_op_requeue op = {
        .op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_string_equal(world_job(id)->idempotency_key, before);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_fail(&job, true), 0);
    op.new_key = true;
    assert_int_equal(world_do(&op.op), 0);
    assert_string_not_equal(world_job(id)->idempotency_key, before);
    job = world_start_type("a");
    assert_string_equal(job->idempotency_key, world_job(id)->idempotency_key);
}

static void requeue_in_any_other_state_changes_nothing(void **state) { /* S1.20 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_op_requeue op = {
        .op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.was, HF_JOB_PENDING);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.was, HF_JOB_RUNNING);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.was, HF_JOB_SUCCEEDED);
    assert_int_equal(world_job(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(world_history(id), 1);
}

static void a_redriven_death_cannot_be_requeued_too(void **state) {
    (void)state;
    int64_t id, dead_id = world_die("a", &id);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive redrive = {
        .op = {.kind = HFI_OP_REDRIVE}, .dead_id = dead_id, .action = &action, .now = world.now};
    assert_int_equal(world_do(&redrive.op), 0);
    struct hfi_op_requeue op = {
        .op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "bob", .reason = "", .now = world.now};
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.status, HF_DEAD_REDRIVEN);
    assert_int_equal(op.other_job, redrive.new_job);
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    assert_string_equal(world_dead(dead_id)->settled_by, "ann");
}

static void a_dead_letter_is_settled_once(void **state) { /* S0.14, S0.17 */
    (void)state;
    int64_t resolved = world_die("a", NULL), discarded = world_die("a", NULL);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_settle op = {.op = {.kind = HFI_OP_SETTLE},
                               .dead_id = resolved,
                               .status = HF_DEAD_RESOLVED,
                               .action = &action,
                               .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world_dead(resolved)->status, HF_DEAD_RESOLVED);
    assert_int_equal(world_dead(resolved)->new_job_id, 0);
    op.status = HF_DEAD_DISCARDED;
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.was, HF_DEAD_RESOLVED);
    op.dead_id = discarded;
    assert_int_equal(world_do(&op.op), 0);
    struct hfi_op_redrive redrive = {
        .op = {.kind = HFI_OP_REDRIVE}, .dead_id = resolved, .action = &action, .now = world.now};
    assert_int_equal(world_do(&redrive.op), HF_ESTATE);
    assert_int_equal(redrive.status, HF_DEAD_RESOLVED);
    assert_int_equal(redrive.new_job, 0);
    assert_int_equal(world_counts().dead_letters_open, 0);
    assert_int_equal(world_counts().dead, 2); /* the jobs stay as they are */
}

/* ------------------------------------------------------------------ letters that come from outside */

static int import(const struct hf_dead_view *letter, int64_t *id, bool *existed) {
    struct hfi_op_import op = {
        .op = {.kind = HFI_OP_IMPORT}, .letters = letter, .count = 1, .actor = "ann", .now = world.now, .ids = id, .existed = existed};
    assert_int_equal(hfi_letter_check(letter, NULL), 0);
    return world_do(&op.op);
}

/* One with everything that a letter can have. */
static const struct hf_dead_view *full_letter(unsigned char *payload, size_t length) {
    struct hf_job_spec spec = world_spec("bytes", "q");
    for (size_t i = 0; i < length; i++)
        payload[i] = (unsigned char)i;
    spec.payload = payload;
    spec.payload_length = length;
    spec.priority = 4;
    spec.tags = "t";
    spec.correlation_id = "corr";
    spec.limit_name = "tenant";
    spec.limit_key = "x";
    world_put(&spec);
    struct hfi_job *job = world_start(world_lane("q", "bytes"));
    assert_int_equal(world_fail(&job, true), 0);
    return world_dead(1);
}

static void a_letter_goes_to_another_store_byte_by_byte(void **state) { /* S0.20, S0.22 */
    (void)state;
    unsigned char payload[256];
    struct hf_store_options options;
    const struct hf_dead_view *letter = full_letter(payload, sizeof payload);
    char key[HFI_KEY_MAX + 1];
    snprintf(key, sizeof key, "%s", letter->idempotency_key);
    hf_store_options_init(&options);
    struct hfi_store *home = world.store;
    world.store = world_new_store(world.kind, &options);
    int64_t id, again, local;
    bool existed;
    world_die("a", &local); /* a job 1 of its own, which the foreign one is not */
    assert_int_equal(import(letter, &id, &existed), 0);
    assert_false(existed);
    const struct hf_dead_view *copy = world_dead(id);
    assert_int_equal(copy->job_id, 0);
    assert_string_equal(copy->origin, letter->origin);
    assert_string_equal(copy->node, letter->node);
    assert_string_equal(copy->error_message, letter->error_message);
    assert_string_equal(copy->detail, letter->detail);
    assert_string_equal(copy->cause, letter->cause);
    assert_string_equal(copy->fingerprint, letter->fingerprint);
    assert_string_equal(copy->curve_ms, "60000,300000,1800000,7200000");
    assert_int_equal(copy->max_executions, letter->max_executions);
    assert_int_equal(copy->dead_at_us, letter->dead_at_us);
    assert_int_equal(import(letter, &again, &existed), 0); /* the same one twice is known */
    assert_true(existed);
    assert_int_equal(again, id);
    assert_int_equal(world_counts().alerts_unsent, 2); /* of the local death alone */
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = id, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    struct hfi_job *job = world_start(world_lane("q", "bytes"));
    assert_int_equal(job->payload_length, sizeof payload);
    assert_memory_equal(job->payload, payload, sizeof payload);
    assert_string_equal(job->idempotency_key, key); /* what was done there is not done again */
    assert_string_equal(job->limit_key, "tenant:x");
    assert_int_equal(job->priority, 4);
    assert_int_equal(job->root_id, job->id);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_string_equal(world_dead(id)->new_job_outcome, "succeeded"); /* without a job to come from, it learns it too */
    world.store->ops->close(world.store);
    world.store = home;
}

static void a_letter_comes_home_once(void **state) {
    (void)state;
    unsigned char payload[4];
    struct hf_dead_view letter = *full_letter(payload, sizeof payload);
    int64_t id;
    bool existed;
    assert_int_equal(import(&letter, &id, &existed), 0);
    assert_true(existed); /* it is here */
    assert_int_equal(id, 1);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_settle settle = {
        .op = {.kind = HFI_OP_SETTLE}, .dead_id = 1, .status = HF_DEAD_DISCARDED, .action = &action, .now = world.now};
    assert_int_equal(world_do(&settle.op), 0);
    world.now.us += 31 * DAY;
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .dead_letters_before = world.now.us, .limit = 100, .now = world.now};
    struct hfi_op_alerts alerts = {.op = {.kind = HFI_OP_ALERTS}, .sinks = (const char *const[]){"ops", "pager"}, .sink_count = 2,
                                   .node = world.node, .lease_ms = 1000, .now = world.now, .limit = 10};
    assert_int_equal(world_do(&alerts.op), 0);
    for (size_t i = 0; i < alerts.count; i++) {
        struct hfi_op_alert_end sent = {.op = {.kind = HFI_OP_ALERT_END}, .id = alerts.rows[i].id, .epoch = alerts.rows[i].epoch,
                                        .sent = true, .now = world.now};
        assert_int_equal(world_do(&sent.op), 0);
    }
    hfi_free(alerts.rows);
    assert_int_equal(world_do(&prune.op), 0);
    assert_null(world_dead(1));
    assert_int_equal(import(&letter, &id, &existed), 0); /* forgotten, and brought back as it was exported: open */
    assert_false(existed);
    assert_int_equal(world_dead(id)->job_id, letter.job_id);
    assert_int_equal(world_dead(id)->status, HF_DEAD_DEAD);
    int64_t again;
    assert_int_equal(import(&letter, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, id);
}

/* A death that never was would hide the one that comes: it is there already, by its job and number. */
static void a_death_that_never_was_does_not_come_home(void **state) {
    (void)state;
    struct hf_dead_view letter = *world_dead(world_die("a", NULL));
    const char *dash = strrchr(letter.origin, '-');
    char origin[HFI_ORIGIN_ROOM];
    struct hf_error error;
    int64_t ids[2];
    bool existed[2];
    snprintf(origin, sizeof origin, "%.*s-900", (int)(dash - letter.origin), letter.origin);
    struct hf_dead_view letters[2] = {letter, letter};
    letters[1].origin = origin;
    letters[1].death_no = 2;
    struct hfi_op_import op = {.op = {.kind = HFI_OP_IMPORT, .error = &error}, .letters = letters, .count = 2, .actor = "ann",
                               .now = world.now, .ids = ids, .existed = existed};
    hf_error_init(&error);
    assert_int_equal(world_do(&op.op), HF_EINVAL);
    assert_string_equal(error.what, "death_no");
    assert_string_equal(error.why, "job 1 has died 1 times here, not 2");
    assert_int_equal(error.line, 2);
    letters[1].job_id = 2; /* no job yet, and its first death will be one */
    letters[1].death_no = 1;
    assert_int_equal(world_do(&op.op), HF_EINVAL);
    assert_string_equal(error.what, "job_id");
    letters[0].origin = "elsewhere-7";
    letters[0].job_id = 0;
    assert_int_equal(world_do(&op.op), HF_EINVAL); /* all or none */
    assert_int_equal(world_dead_count(-1), 1);
    int64_t next;
    const struct hf_dead_view *first = world_dead(world_die("a", &next)); /* the deaths that it would have hidden */
    assert_int_equal(next, 2);
    assert_int_equal(first->job_id, 2);
    assert_int_equal(first->death_no, 1);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = 1, .actor = action.actor, .now = world.now};
    assert_int_equal(world_do(&requeue.op), 0);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(job->id, 1);
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(world_dead_count(-1), 3);
    assert_int_equal(world_dead(3)->job_id, 1);
    assert_int_equal(world_dead(3)->death_no, 2);
    assert_int_equal(world_counts().alerts_unsent, 6); /* three deaths, two sinks each */
}

static const struct hfi_forward audit[] = {{.name = "audit", .type = "order", .death_class = -1, .of = 3, .to_queue = "elsewhere",
                                            .to_type = "holdfast.forward.audit"}};
static const struct hfi_forwards told = {audit, 1};

/* The letter of a copy that died, and the one it tells of, as `holdfast dead export` gives them; both of the store's. */
static void export_copy(struct hf_dead **original, struct hf_dead **copy) {
    world.forwards = &told;
    for (int i = 0; i < 3; i++)
        world_die("x", NULL); /* their numbers are not those of another store */
    world_die("order", NULL);
    struct hfi_job *job = world_start(world_lane("elsewhere", "holdfast.forward.audit"));
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(world.store->ops->get_dead(world.store, 4, original, NULL), 0);
    assert_int_equal(world.store->ops->get_dead(world.store, 5, copy, NULL), 0);
}

static void an_imported_copy_tells_of_its_own_letter(void **state) { /* S2.26, S0.20: never of a stranger with its number */
    (void)state;
    struct hf_store_options options;
    struct hf_dead *original, *copy;
    struct hf_error error;
    int64_t of, id;
    bool existed;
    export_copy(&original, &copy);
    hf_store_options_init(&options);
    struct hfi_store *home = world.store;
    world.store = world_new_store(world.kind, &options);
    for (int i = 0; i < 5; i++)
        world_die("x", NULL); /* also one that is number 4 */
    assert_int_equal(import(hf_dead_look(copy), &id, &existed), 0);
    assert_string_equal(world_dead(id)->source_message_id, "4 http.404");
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE, .error = &error}, .dead_id = id, .action = &action, .now = world.now};
    hf_error_init(&error);
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_true(op.stray);
    assert_non_null(strstr(error.why, "that dead letter is not here"));
    assert_int_equal(world_dead(id)->status, HF_DEAD_DEAD);
    assert_int_equal(import(hf_dead_look(original), &of, &existed), 0);
    assert_true(of != 4);
    assert_int_equal(world_do(&op.op), 0);
    struct hfi_job *job = world_start(world_lane("elsewhere", "holdfast.forward.audit"));
    assert_int_equal(job->id, op.new_job);
    assert_int_equal(hfi_forward_letter(job), of);
    assert_string_equal(hfi_forward_error_type(job), "http.404");
    assert_int_equal(world_fail(&job, true), 0);
    world.store->ops->close(world.store);
    world.store = home;
    hf_dead_free(original);
    hf_dead_free(copy);
}

static void wrong_letters_are_refused(void **state) {
    (void)state;
    struct hf_error error;
    const struct hf_dead_view good = *world_dead(world_die("a", NULL));
    struct hf_dead_view bad = good;
    hf_error_init(&error);
    assert_int_equal(hfi_letter_check(&good, &error), 0);
    bad.type = "";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    assert_string_equal(error.what, "type");
    bad = good;
    bad.origin = "nowhere";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad = good;
    bad.error_message = "\xf0\x9f";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_ETEXT);
    bad = good;
    bad.fingerprint = "0123456789ABCDEF";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad = good;
    bad.status = 4;
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad = good;
    bad.status = HF_DEAD_REDRIVEN; /* never settled, says its time */
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad = good;
    bad.curve_ms = "1,,2";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad = good;
    bad.priority = 10;
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad = good;
    bad.queue = "a\nb"; /* as enqueue says it */
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad = good;
    bad.source = "holdfast.other"; /* reserved, and none that deaths write */
    bad.source_message_id = "7 http.404";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    assert_string_equal(error.what, "source");
    bad = good;
    bad.queue = "holdfast.deaths";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    assert_string_equal(error.what, "queue");
    bad.source = HFI_FORWARD_SOURCE;
    bad.source_message_id = "x";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad.source_message_id = "7 http.404";
    assert_int_equal(hfi_letter_check(&bad, &error), 0);
    bad = good;
    bad.max_executions_given = bad.curve_executions = 10000;
    assert_int_equal(hfi_letter_check(&bad, &error), 0);
    bad.max_executions_given = 10001;
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    assert_string_equal(error.what, "max_executions_given");
    bad.max_executions_given = 10000;
    bad.curve_executions = 10001;
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    assert_string_equal(error.what, "curve_executions");
}

static void the_most_executions_are_taken_in_and_die_as_any(void **state) {
    (void)state;
    struct hf_dead_view letter = *world_dead(world_die("a", NULL));
    letter.origin = "elsewhere-7";
    letter.job_id = 0;
    letter.max_executions_given = letter.max_executions = 10000;
    int64_t id;
    bool existed;
    assert_int_equal(import(&letter, &id, &existed), 0);
    assert_int_equal(world_dead(id)->max_executions_given, 10000);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = id, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world_job(op.new_job)->max_executions, 10000);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(job->id, op.new_job);
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(world_dead(id + 1)->max_executions, 10000);
}

WORLD_MAIN(WORLD_TEST(redrive_makes_a_new_job_of_the_snapshot),
           WORLD_TEST(a_redriven_job_outlives_the_purge_byte_by_byte), WORLD_TEST(a_corrected_payload_needs_a_new_key),
           WORLD_TEST(a_cut_payload_needs_a_whole_one), WORLD_TEST(redrive_into_a_taken_unique_key_is_refused),
           WORLD_TEST(unknown_dead_letters_and_jobs_are_enoent), WORLD_TEST(requeue_runs_the_same_job_from_the_top),
           WORLD_TEST(a_redriven_job_dies_as_any_other), WORLD_TEST(requeue_keeps_or_changes_the_key),
           WORLD_TEST(requeue_in_any_other_state_changes_nothing), WORLD_TEST(a_redriven_death_cannot_be_requeued_too),
           WORLD_TEST(a_dead_letter_is_settled_once), WORLD_TEST(a_letter_goes_to_another_store_byte_by_byte),
           WORLD_TEST(a_letter_comes_home_once), WORLD_TEST(a_death_that_never_was_does_not_come_home),
           WORLD_TEST(an_imported_copy_tells_of_its_own_letter), WORLD_TEST(wrong_letters_are_refused),
           WORLD_TEST(the_most_executions_are_taken_in_and_die_as_any))
