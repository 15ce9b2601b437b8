/* SPDX-License-Identifier: MIT */
/* Contract of the store: redrive of many as a task (I75, I89), and dead letters by fingerprint. */
#include "store_world.h"

#include <stdio.h>

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
    struct hfi_op_redrive_step look = {.op = {.kind = HFI_OP_REDRIVE_STEP}, .look = true, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world_do(&look.op), 0); /* the same, and nothing is moved by it */
    assert_true(!look.found && look.redriven == 0 && look.next_due_us == op.next_due_us);
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
    assert_int_equal(end_jobs("a", 1, true), 1); /* its canary ends, and with that it does */
    struct hfi_op_redrive_step op = step(0);
    assert_true(op.found);
    assert_int_equal(op.redriven, 0);
    assert_int_equal(op.task.state, HF_REDRIVE_DONE);
    assert_int_equal(look(running).succeeded, 1);
    assert_int_equal(look(running).ended_at_us, world.now.us);
}

WORLD_MAIN(WORLD_TEST(a_task_is_forgotten_with_its_letters), WORLD_TEST(each_letter_is_redriven_once),
           WORLD_TEST(what_is_refused_is_counted_and_passed), WORLD_TEST(a_canary_goes_first_and_is_waited_for),
           WORLD_TEST(a_canary_that_fails_stops_it), WORLD_TEST(a_share_of_failures_stops_it),
           WORLD_TEST(a_rate_is_kept_by_all_who_step), WORLD_TEST(a_cancelled_task_leaves_what_it_did),
           WORLD_TEST(tasks_are_listed_newest_first), WORLD_TEST(wrong_wishes_are_refused),
           WORLD_TEST(letters_are_counted_by_fingerprint))
