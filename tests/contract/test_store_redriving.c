/* SPDX-License-Identifier: MIT */
/* Contract of the store: redrive of many as a task (I75, I89), dead letters by fingerprint, and from outside. */
#include "store_world.h"

#include <stdio.h>

#include "jobs/forward.h"
#include "jobs/letter.h"
#include "jobs/redriving.h"

static struct hf_redrive_options wish(void) {
    struct hf_redrive_options options;
    hf_redrive_options_init(&options);
    return options;
}

static int64_t begin(const struct hf_redrive_options *options) {
    struct hfi_redrive_task task;
    struct hf_dead_group_list *groups;
    struct hf_dead_filter any;
    hf_dead_filter_init(&any);
    assert_int_equal(hfi_redrive_begin(&task, options, "ann", "it is mended", NULL), 0);
    assert_int_equal(world.store->ops->group_dead(world.store, options->filter ? options->filter : &any, &groups, NULL), 0);
    task.total = hf_dead_group_list_total(groups);
    task.upper_id = hfi_dead_group_list_newest(groups);
    hf_dead_group_list_free(groups);
    struct hfi_op_redrive_task op = {.op = {.kind = HFI_OP_REDRIVE_TASK}, .task = &task, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_true(op.id > 0);
    return op.id;
}

static struct hfi_op_redrive_step step(int64_t id) {
    struct hfi_op_redrive_step op = {.op = {.kind = HFI_OP_REDRIVE_STEP}, .id = id, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    return op;
}

/* The list's view, a copy whose texts are gone. */
static struct hf_redrive_view look(int64_t id) {
    struct hf_redrive_filter filter;
    struct hf_redrive_list *list;
    hf_redrive_filter_init(&filter);
    filter.id = id;
    assert_int_equal(world.store->ops->list_redrives(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_redrive_list_count(list), 1);
    struct hf_redrive_view view = *hf_redrive_list_at(list, 0);
    assert_string_equal(view.actor, "ann");
    assert_string_equal(view.reason, "it is mended");
    hf_redrive_list_free(list);
    return view;
}

/* `count` dead letters of that type, all at the same moment. */
static void kill_many(const char *type, size_t count) {
    for (size_t i = 0; i < count; i++)
        world_die(type, NULL);
}

/* Ends up to `count` jobs that a task made. */
static size_t end_jobs(const char *type, size_t count, bool well) {
    size_t done = 0;
    struct hfi_job *job;
    while (done < count && (job = world_start_type(type)) != NULL) {
        if (well)
            assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
        else
            assert_int_equal(world_fail(&job, true), 0);
        done++;
    }
    return done;
}

static void each_letter_is_redriven_once(void **state) { /* I75, I89: 250 of one moment, in pages of 100 */
    (void)state;
    kill_many("a", 250);
    kill_many("b", 3);
    struct hf_dead_filter filter;
    struct hf_redrive_options options = wish();
    hf_dead_filter_init(&filter);
    filter.type = "a";
    options.filter = &filter;
    int64_t id = begin(&options);
    assert_int_equal(look(id).total, 250);
    kill_many("a", 2); /* after it began: not its own */
    assert_int_equal(step(0).redriven, 100);
    struct hf_dead_action action = world_action("bob");
    struct hfi_op_redrive by_hand = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 150, .action = &action, .now = world.now};
    assert_int_equal(world_do(&by_hand.op), 0); /* meanwhile somebody takes one out of its way */
    assert_int_equal(step(id).redriven, 100);
    struct hfi_op_redrive_step last = step(0);
    assert_int_equal(last.redriven, 49);
    assert_int_equal(last.task.state, HF_REDRIVE_DONE);
    assert_int_equal(last.next_due_us, INT64_MAX);
    assert_false(step(0).found);
    assert_int_equal(step(id).redriven, 0);
    struct hf_redrive_view view = look(id);
    assert_int_equal(view.state, HF_REDRIVE_DONE);
    assert_int_equal(view.redriven, 249);
    assert_int_equal(view.refused, 0);
    assert_int_equal(view.ended_at_us, world.now.us);
    assert_int_equal(world_counts().pending, 250);
    assert_int_equal(world_counts().dead_letters_open, 5);
    assert_int_equal(world_dead(1)->task_id, id);
    assert_string_equal(world_dead(1)->settled_by, "ann"); /* audit on the row [S0.22] */
    assert_string_equal(world_dead(1)->settled_reason, "it is mended");
    assert_int_equal(world_job(world_dead(1)->new_job_id)->root_id, world_dead(1)->job_id);
    assert_int_equal(world_dead(150)->task_id, 0);
    assert_string_equal(world_dead(150)->settled_by, "bob");
}

static void what_is_refused_is_counted_and_passed(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("a", NULL);
    spec.unique_key = "k";
    world_put(&spec);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_fail(&job, true), 0);
    kill_many("a", 1);
    int64_t holder = world_put(&spec);
    struct hf_redrive_options options = wish();
    struct hfi_op_redrive_step op = step(begin(&options));
    assert_int_equal(op.redriven, 1);
    assert_int_equal(op.task.refused, 1);
    assert_int_equal(op.task.state, HF_REDRIVE_DONE);
    char note[100];
    snprintf(note, sizeof note, "dead letter 1: job %lld holds its unique key", (long long)holder);
    assert_string_equal(op.task.note, note);
    assert_int_equal(world_dead(1)->status, HF_DEAD_DEAD);
}

static void a_canary_goes_first_and_is_waited_for(void **state) {
    (void)state;
    kill_many("a", 20);
    struct hf_redrive_options options = wish();
    options.canary = 3;
    int64_t id = begin(&options);
    assert_int_equal(step(id).redriven, 3);
    assert_true(look(id).waits_for_canary);
    struct hfi_op_redrive_step op = step(id);
    assert_int_equal(op.redriven, 0);
    assert_true(op.next_due_us > world.now.us);
    assert_false(step(0).found);
    assert_int_equal(end_jobs("a", 2, true), 2);
    assert_int_equal(step(id).redriven, 0);
    assert_int_equal(end_jobs("a", 1, true), 1);
    assert_false(look(id).waits_for_canary);
    assert_int_equal(step(0).redriven, 17); /* due at once: its job ended */
    struct hf_redrive_view view = look(id);
    assert_int_equal(view.state, HF_REDRIVE_DONE);
    assert_int_equal(view.succeeded, 3);
    assert_int_equal(end_jobs("a", 17, true), 17);
    assert_int_equal(look(id).succeeded, 20); /* it learns how all of them ended */
}

static void a_canary_that_fails_stops_it(void **state) {
    (void)state;
    kill_many("a", 10);
    struct hf_redrive_options options = wish();
    options.canary = 2;
    int64_t id = begin(&options);
    assert_int_equal(step(id).redriven, 2);
    assert_int_equal(end_jobs("a", 1, false), 1);
    struct hfi_op_redrive_step op = step(id);
    assert_int_equal(op.redriven, 0);
    assert_int_equal(op.task.state, HF_REDRIVE_STOPPED);
    assert_string_equal(op.task.note, "1 of 1 jobs that ended had failed, of its canary");
    assert_int_equal(world_counts().dead_letters_open, 9); /* eight untouched, one that died again (I41) */
}

static void a_share_of_failures_stops_it(void **state) {
    (void)state;
    kill_many("a", 250);
    struct hf_redrive_options options = wish();
    options.stop_at = 0.2;
    int64_t id = begin(&options);
    assert_int_equal(step(id).redriven, 100);
    assert_int_equal(step(id).redriven, 0); /* no more at stake than has proved well */
    assert_int_equal(end_jobs("a", 8, true), 8);
    assert_int_equal(end_jobs("a", 2, false), 2);
    assert_int_equal(step(id).redriven, 10); /* 20 % is not above 20 % */
    assert_int_equal(end_jobs("a", 1, false), 1);
    struct hfi_op_redrive_step op = step(id);
    assert_int_equal(op.task.state, HF_REDRIVE_STOPPED);
    assert_int_equal(op.redriven, 0);
    assert_string_equal(op.task.note, "3 of 11 jobs that ended had failed");
    assert_int_equal(op.task.redriven, 110);
    assert_int_equal(world_counts().dead_letters_open, 140 + 3);
}

static void a_rate_is_kept_by_all_who_step(void **state) {
    (void)state;
    kill_many("a", 20);
    struct hf_redrive_options options = wish();
    options.rate_per_s = 2;
    int64_t id = begin(&options);
    assert_int_equal(step(id).redriven, 1);
    struct hfi_op_redrive_step op = step(0);
    assert_false(op.found);
    assert_int_equal(op.next_due_us, world.now.us + SECOND / 2);
    assert_int_equal(step(id).redriven, 0); /* asked for by name as well */
    world.now.us += SECOND / 2;
    assert_int_equal(step(0).redriven, 1);
    uint32_t redriven = 2;
    for (int i = 0; i < 200 && look(id).state == HF_REDRIVE_RUNNING; i++) {
        world.now.us += SECOND / 10;
        redriven += step(0).redriven;
    }
    assert_int_equal(redriven, 20);
    assert_true(world.now.us >= T0 + 9 * SECOND && world.now.us <= T0 + 10 * SECOND);
}

static void a_cancelled_task_leaves_what_it_did(void **state) { /* I89: the counts add up, nothing twice */
    (void)state;
    kill_many("a", 200);
    struct hf_redrive_options options = wish();
    int64_t id = begin(&options);
    assert_int_equal(step(id).redriven, 100);
    struct hfi_op_redrive_cancel op = {
        .op = {.kind = HFI_OP_REDRIVE_CANCEL}, .id = id, .actor = "bob", .reason = "enough", .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(step(id).redriven, 0);
    assert_false(step(0).found);
    assert_int_equal(look(id).state, HF_REDRIVE_CANCELLED);
    assert_string_equal(step(id).task.note, "by bob: enough");
    assert_int_equal(world_counts().pending, 100);
    assert_int_equal(world_counts().dead_letters_open, 100);
    assert_int_equal(world_do(&op.op), HF_ESTATE);
    assert_int_equal(op.was, HF_REDRIVE_CANCELLED);
    op.id = 77;
    assert_int_equal(world_do(&op.op), HF_ENOENT);
    struct hfi_op_redrive_step none = {.op = {.kind = HFI_OP_REDRIVE_STEP}, .id = 77, .now = world.now};
    assert_int_equal(world_do(&none.op), HF_ENOENT);
    assert_int_equal(step(begin(&options)).redriven, 100); /* another one takes the rest */
    assert_int_equal(world_counts().pending, 200);
}

static void tasks_are_listed_newest_first(void **state) {
    (void)state;
    struct hf_redrive_options options = wish();
    struct hf_redrive_filter filter;
    struct hf_redrive_list *list;
    for (int i = 0; i < 5; i++)
        begin(&options);
    hf_redrive_filter_init(&filter);
    filter.limit = 2;
    for (int64_t id = 5; id > 0; filter.after_id = hf_redrive_list_next(list), hf_redrive_list_free(list)) {
        assert_int_equal(world.store->ops->list_redrives(world.store, &filter, &list, NULL), 0);
        assert_int_equal(hf_redrive_list_count(list), id > 1 ? 2 : 1);
        for (size_t i = 0; i < hf_redrive_list_count(list); i++)
            assert_int_equal(hf_redrive_list_at(list, i)->id, id--);
    }
    assert_int_equal(filter.after_id, 0);
    filter.id = 9;
    assert_int_equal(world.store->ops->list_redrives(world.store, &filter, &list, NULL), HF_ENOENT);
}

static void wrong_wishes_are_refused(void **state) {
    (void)state;
    struct hfi_redrive_task task;
    struct hf_dead_filter filter;
    struct hf_redrive_options options = wish();
    options.rate_per_s = -1;
    assert_int_equal(hfi_redrive_begin(&task, &options, "a", "", NULL), HF_EINVAL);
    options.rate_per_s = 10001;
    assert_int_equal(hfi_redrive_begin(&task, &options, "a", "", NULL), HF_EINVAL);
    options = wish();
    options.stop_at = 1.01;
    assert_int_equal(hfi_redrive_begin(&task, &options, "a", "", NULL), HF_EINVAL);
    options = wish();
    hf_dead_filter_init(&filter);
    options.filter = &filter;
    filter.type = "";
    assert_int_equal(hfi_redrive_begin(&task, &options, "a", "", NULL), HF_EINVAL);
    filter.type = "\xff";
    assert_int_equal(hfi_redrive_begin(&task, &options, "a", "", NULL), HF_ETEXT);
    filter.type = NULL;
    filter.fingerprint = "0123456789abcdef0";
    assert_int_equal(hfi_redrive_begin(&task, &options, "a", "", NULL), HF_ETOOBIG);
}

static void letters_are_counted_by_fingerprint(void **state) { /* R7 */
    (void)state;
    struct hf_dead_filter filter;
    struct hf_dead_group_list *list;
    kill_many("a", 2);
    world.now.us += MINUTE;
    kill_many("b", 1);
    kill_many("a", 1);
    hf_dead_filter_init(&filter);
    assert_int_equal(world.store->ops->group_dead(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_dead_group_list_count(list), 2);
    assert_int_equal(hf_dead_group_list_total(list), 4);
    const struct hf_dead_group_view *most = hf_dead_group_list_at(list, 0), *least = hf_dead_group_list_at(list, 1);
    assert_int_equal(most->count, 3);
    assert_string_equal(most->type, "a");
    assert_string_equal(most->downstream, "shop");
    assert_string_equal(most->error_type, "http.404");
    assert_string_equal(most->rule, "http.4xx");
    assert_string_equal(most->error_message, "the peer said no");
    assert_int_equal(most->death_class, HF_DEATH_PERMANENT);
    assert_int_equal(most->first_dead_at_us, T0);
    assert_int_equal(most->last_dead_at_us, T0 + MINUTE);
    assert_int_equal(most->example_id, 4);
    assert_string_equal(most->fingerprint, world_dead(1)->fingerprint);
    assert_int_equal(least->count, 1);
    hf_dead_group_list_free(list);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_settle settle = {
        .op = {.kind = HFI_OP_SETTLE}, .dead_id = 4, .status = HF_DEAD_RESOLVED, .action = &action, .now = world.now};
    assert_int_equal(world_do(&settle.op), 0);
    filter.type = "a"; /* settled ones do not count, nor others */
    assert_int_equal(world.store->ops->group_dead(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_dead_group_list_count(list), 1);
    assert_int_equal(hf_dead_group_list_at(list, 0)->count, 2);
    assert_int_equal(hf_dead_group_list_at(list, 0)->example_id, 2);
    hf_dead_group_list_free(list);
    filter.type = "c";
    assert_int_equal(world.store->ops->group_dead(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_dead_group_list_count(list) + hf_dead_group_list_total(list), 0);
    hf_dead_group_list_free(list);
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

static void a_task_is_forgotten_with_its_letters(void **state) {
    (void)state;
    struct hf_redrive_options options = wish();
    struct hf_redrive_filter filter;
    struct hf_redrive_list *list;
    int64_t none = begin(&options), running;
    assert_int_equal(step(none).task.state, HF_REDRIVE_DONE);
    world.now.us += DAY;
    kill_many("a", 1);
    options.canary = 1;
    running = begin(&options);
    assert_int_equal(step(running).redriven, 1);
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .dead_letters_before = world.now.us - DAY, .limit = 100, .now = world.now};
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 0);
    prune.dead_letters_before++;
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 1);
    hf_redrive_filter_init(&filter);
    assert_int_equal(world.store->ops->list_redrives(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_redrive_list_count(list), 1);
    assert_int_equal(hf_redrive_list_at(list, 0)->id, running);
    hf_redrive_list_free(list);
    filter.id = none;
    assert_int_equal(world.store->ops->list_redrives(world.store, &filter, &list, NULL), HF_ENOENT);
    prune.dead_letters_before = INT64_MAX;
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(look(running).state, HF_REDRIVE_RUNNING);
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
    bad.queue = "holdfast.deaths";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad.source = HFI_FORWARD_SOURCE;
    bad.source_message_id = "x";
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
    bad.source_message_id = "7 http.404";
    assert_int_equal(hfi_letter_check(&bad, &error), 0);
    bad = good;
    bad.max_executions_given = HFI_EXECUTIONS_MAX + 1;
    assert_int_equal(hfi_letter_check(&bad, &error), HF_EINVAL);
}

WORLD_MAIN(WORLD_TEST(a_letter_goes_to_another_store_byte_by_byte), WORLD_TEST(a_letter_comes_home_once),
           WORLD_TEST(a_death_that_never_was_does_not_come_home),
           WORLD_TEST(an_imported_copy_tells_of_its_own_letter), WORLD_TEST(a_task_is_forgotten_with_its_letters),
           WORLD_TEST(wrong_letters_are_refused), WORLD_TEST(each_letter_is_redriven_once), WORLD_TEST(what_is_refused_is_counted_and_passed),
           WORLD_TEST(a_canary_goes_first_and_is_waited_for), WORLD_TEST(a_canary_that_fails_stops_it),
           WORLD_TEST(a_share_of_failures_stops_it), WORLD_TEST(a_rate_is_kept_by_all_who_step),
           WORLD_TEST(a_cancelled_task_leaves_what_it_did), WORLD_TEST(tasks_are_listed_newest_first),
           WORLD_TEST(wrong_wishes_are_refused), WORLD_TEST(letters_are_counted_by_fingerprint))
