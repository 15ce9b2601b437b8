/* SPDX-License-Identifier: MIT */
/* Contract of the store: alerts are leased, fenced and kept until they were sent. */
#include "store_world.h"

#include <stdio.h>

#include "jobs/deaths/patience.h"

static size_t take_alerts(const char *const *sinks, size_t count, uint32_t limit, struct hfi_op_alerts *op) {
    *op = (struct hfi_op_alerts){.op = {.kind = HFI_OP_ALERTS}, .sinks = sinks, .sink_count = count,
                                 .node = world.node, .lease_ms = 60000, .now = world.now, .limit = limit};
    assert_int_equal(world_do(&op->op), 0);
    return op->count;
}

static const char *const both[] = {"ops", "pager"};

static void alerts_are_leased_fenced_and_tried_again(void **state) { /* S0.24, S0.26 */
    (void)state;
    struct hfi_op_alerts op, late;
    world_die("a", NULL);
    assert_int_equal(take_alerts(both, 1, 10, &op), 1); /* only of the sinks asked for */
    assert_string_equal(op.rows[0].sink, "ops");
    assert_int_equal(op.rows[0].tries, 1);
    assert_int_equal(op.rows[0].epoch, 1);
    assert_int_equal(op.next_due_us, world.now.us + 60 * SECOND);
    assert_int_equal(take_alerts(both, 1, 10, &late), 0); /* leased */
    hfi_free(late.rows);
    world.now.us += MINUTE; /* the sender died: somebody else takes it */
    assert_int_equal(take_alerts(both, 1, 10, &late), 1);
    assert_int_equal(late.rows[0].id, op.rows[0].id); /* the same alert id */
    assert_int_equal(late.rows[0].epoch, 2);
    assert_int_equal(late.rows[0].tries, 2);
    struct hfi_op_alert_end end = {.op = {.kind = HFI_OP_ALERT_END}, .id = op.rows[0].id, .epoch = 1, .sent = true,
                                   .error_type = "", .now = world.now};
    assert_int_equal(world_do(&end.op), HF_ESTALE);
    end.epoch = 2;
    end.sent = false;
    end.error_type = "http.503";
    end.next_at_us = world.now.us + 5 * SECOND;
    assert_int_equal(world_do(&end.op), 0); /* another try */
    hfi_free(op.rows);
    hfi_free(late.rows);
    assert_int_equal(take_alerts(both, 1, 10, &op), 0);
    assert_int_equal(op.next_due_us, world.now.us + 5 * SECOND);
    hfi_free(op.rows);
    world.now.us += 5 * SECOND;
    assert_int_equal(take_alerts(both, 1, 10, &op), 1);
    end.epoch = op.rows[0].epoch;
    end.sent = true;
    assert_int_equal(world_do(&end.op), 0);
    hfi_free(op.rows);
    world.now.us += DAY;
    assert_int_equal(take_alerts(both, 1, 10, &op), 0);
    assert_int_equal(op.next_due_us, INT64_MAX);
    hfi_free(op.rows);
    assert_int_equal(world_counts().alerts_unsent, 1); /* pager's */
    assert_int_equal(take_alerts(both + 1, 1, 10, &op), 1);
    end = (struct hfi_op_alert_end){.op = {.kind = HFI_OP_ALERT_END}, .id = op.rows[0].id,
                                    .epoch = op.rows[0].epoch, .undelivered = true, .error_type = "http.410",
                                    .now = world.now};
    hfi_free(op.rows);
    assert_int_equal(world_do(&end.op), 0);
    assert_int_equal(world_counts().alerts_unsent, 0);
    assert_int_equal(world_do(&end.op), HF_ESTALE); /* ended is ended */
}

static void alerts_come_in_parts(void **state) {
    (void)state;
    struct hfi_op_alerts op;
    for (int i = 0; i < 5; i++)
        world_die("a", NULL);
    assert_int_equal(take_alerts(both, 2, 4, &op), 4);
    assert_true(op.next_due_us <= world.now.us); /* more is due at once */
    for (size_t i = 1; i < op.count; i++)
        assert_true(op.rows[i].id > op.rows[i - 1].id);
    hfi_free(op.rows);
    assert_int_equal(take_alerts(both, 2, 100, &op), 6);
    hfi_free(op.rows);
}

static void settled_and_alerted_dead_letters_go_in_time(void **state) { /* C3 */
    (void)state;
    int64_t dead_id = world_die("a", NULL);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_settle settle = {.op = {.kind = HFI_OP_SETTLE}, .dead_id = dead_id, .status = HF_DEAD_RESOLVED,
                                   .action = &action, .now = world.now};
    assert_int_equal(world_do(&settle.op), 0);
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .dead_letters_before = world.now.us + 1, .limit = 100};
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 0); /* nobody was alerted yet */
    struct hfi_op_alerts op;
    assert_int_equal(take_alerts(both, 2, 10, &op), 2);
    for (size_t i = 0; i < 2; i++) {
        struct hfi_op_alert_end end = {.op = {.kind = HFI_OP_ALERT_END}, .id = op.rows[i].id,
                                       .epoch = op.rows[i].epoch, .sent = true, .error_type = "", .now = world.now};
        assert_int_equal(world_do(&end.op), 0);
    }
    hfi_free(op.rows);
    prune.dead_letters_before = world.now.us;
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 0); /* not yet */
    prune.dead_letters_before = world.now.us + 1;
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 1);
    assert_null(world_dead(dead_id));
}

/* ------------------------------------------------------------------ storms */

static const struct hfi_sink_rule rules[] = {{"ops", 10 * MINUTE}, {"pager", 0}};

static void name_sinks(void) {
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "other", .now = world.now, .sinks = rules,
                               .sink_count = 2};
    assert_int_equal(world_do(&join.op), 0);
}

static void end_well(const struct hfi_alert *alert) {
    struct hfi_op_alert_end end = {.op = {.kind = HFI_OP_ALERT_END}, .id = alert->id, .epoch = alert->epoch,
                                   .sent = true, .error_type = "", .now = world.now};
    assert_int_equal(world_do(&end.op), 0);
}

static struct hf_alert_list *list_of(int32_t state, const char *sink, int64_t dead_id, int64_t after, uint32_t limit) {
    struct hf_alert_filter filter;
    struct hf_alert_list *list;
    hf_alert_filter_init(&filter);
    filter.state = state;
    filter.sink = sink;
    filter.dead_id = dead_id;
    filter.after_id = after;
    filter.limit = limit;
    assert_int_equal(world.store->ops->list_alerts(world.store, &filter, &list, NULL), 0);
    return list;
}

static size_t rows_of(int32_t state, const char *sink) {
    struct hf_alert_list *list = list_of(state, sink, 0, 0, 1000);
    size_t count = hf_alert_list_count(list);
    hf_alert_list_free(list);
    return count;
}

static void a_storm_is_one_message_and_a_summary(void **state) { /* R7, S0.24 */
    (void)state;
    struct hfi_op_alerts op;
    name_sinks();
    int64_t first = world_die("a", NULL);
    for (int i = 0; i < 5; i++) {
        world.now.us += SECOND;
        world_die("a", NULL);
    }
    world_die("b", NULL); /* another cause */
    assert_int_equal(take_alerts(both, 1, 10, &op), 2);
    assert_int_equal(op.rows[0].dead_id, first);
    assert_int_equal(op.rows[0].kind, HF_ALERT_ONE);
    assert_int_equal(op.rows[0].deaths, 1);
    assert_string_equal(op.rows[1].type, "b");
    end_well(&op.rows[0]);
    end_well(&op.rows[1]);
    hfi_free(op.rows);
    assert_int_equal(take_alerts(both + 1, 1, 10, &op), 7); /* that sink collapses nothing */
    for (size_t i = 0; i < op.count; i++)
        assert_int_equal(op.rows[i].kind, HF_ALERT_ONE);
    hfi_free(op.rows);
    assert_int_equal(rows_of(-1, "ops"), 7); /* one row per death, all the same */
    assert_int_equal(rows_of(HF_ALERT_ATTACHED, "ops"), 4);
    world.now.us += 10 * MINUTE - 5 * SECOND - 1;
    assert_int_equal(take_alerts(both, 1, 10, &op), 0);
    assert_int_equal(op.next_due_us, world.now.us + 1);
    hfi_free(op.rows);
    world.now.us += 1;
    assert_int_equal(take_alerts(both, 1, 10, &op), 1);
    assert_int_equal(op.rows[0].kind, HF_ALERT_SUMMARY);
    assert_int_equal(op.rows[0].deaths, 5);
    struct hfi_alert summary = op.rows[0];
    hfi_free(op.rows);
    int64_t late = world_die("a", NULL); /* while it is on its way: the next window's */
    struct hf_alert_list *list = list_of(-1, "ops", late, 0, 10);
    assert_int_equal(hf_alert_list_count(list), 1);
    assert_int_equal(hf_alert_list_at(list, 0)->kind, HF_ALERT_SUMMARY);
    assert_int_equal(hf_alert_list_at(list, 0)->next_at_us, world.now.us + 10 * MINUTE);
    hf_alert_list_free(list);
    world.now.us += MINUTE; /* its sender died */
    assert_int_equal(take_alerts(both, 1, 10, &op), 1);
    assert_int_equal(op.rows[0].id, summary.id);
    assert_int_equal(op.rows[0].deaths, 5); /* the same words at every try */
    list = list_of(HF_ALERT_ATTACHED, "ops", 0, 0, 10);
    assert_int_equal(hf_alert_list_at(list, 0)->message_id, summary.id);
    assert_int_equal(hf_alert_list_at(list, 0)->message_state, HF_ALERT_UNSENT);
    hf_alert_list_free(list);
    end_well(&op.rows[0]);
    hfi_free(op.rows);
    list = list_of(HF_ALERT_ATTACHED, "ops", 0, 0, 10);
    assert_int_equal(hf_alert_list_at(list, 0)->message_state, HF_ALERT_SENT);
    hf_alert_list_free(list);
}

static void after_a_quiet_window_a_death_is_told_at_once(void **state) {
    (void)state;
    struct hfi_op_alerts op;
    name_sinks();
    for (int i = 0; i < 3; i++) {
        world_die("a", NULL);
        assert_int_equal(take_alerts(both, 1, 10, &op), 1);
        assert_int_equal(op.rows[0].kind, HF_ALERT_ONE);
        end_well(&op.rows[0]);
        hfi_free(op.rows);
        world.now.us += 10 * MINUTE;
    }
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .now = world.now, .limit = 100};
    assert_int_equal(world_do(&prune.op), 0); /* what it knows of the storm goes */
    world_die("a", NULL);
    assert_int_equal(take_alerts(both, 1, 10, &op), 1);
    hfi_free(op.rows);
}

/* Nobody got the digest yet: the letters it names stay, though they are settled; the others go. */
static void prune_around(const int64_t *letters, size_t count, const struct hfi_alert *digest) {
    struct hf_dead_action action = world_action("ann");
    for (size_t i = 0; i < count; i++) {
        struct hfi_op_settle settle = {.op = {.kind = HFI_OP_SETTLE}, .dead_id = letters[i],
                                       .status = HF_DEAD_RESOLVED, .action = &action, .now = world.now};
        assert_int_equal(world_do(&settle.op), 0);
    }
    struct hfi_op_alerts pager;
    assert_int_equal(take_alerts(both + 1, 1, 100, &pager), 31);
    for (size_t i = 0; i < pager.count; i++)
        end_well(&pager.rows[i]);
    hfi_free(pager.rows);
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .dead_letters_before = world.now.us + 1, .limit = 100};
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 20);
    end_well(digest);
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 10);
}

static void many_causes_keep_the_pace_and_end_in_a_digest(void **state) { /* R7 */
    (void)state;
    struct hfi_op_alerts op;
    char type[16];
    int64_t letters[30];
    size_t taken = 0;
    name_sinks();
    for (int i = 0; i < 30; i++) {
        snprintf(type, sizeof type, "t%02d", i);
        letters[i] = world_die(type, NULL);
    }
    while (take_alerts(both, 1, 8, &op) > 0) {
        for (size_t i = 0; i < op.count; i++, taken++)
            end_well(&op.rows[i]);
        hfi_free(op.rows);
    }
    assert_int_equal(taken, 20);
    assert_int_equal(op.next_due_us, world.now.us + MINUTE);
    hfi_free(op.rows);
    world.now.us += MINUTE - 1;
    assert_int_equal(take_alerts(both, 1, 8, &op), 0);
    hfi_free(op.rows);
    world_die("t25", NULL); /* its storm has a lead, which the digest takes along */
    world.now.us += 1;
    assert_int_equal(take_alerts(both, 1, 8, &op), 1);
    assert_int_equal(op.rows[0].kind, HF_ALERT_DIGEST);
    assert_int_equal(op.rows[0].cause_count, 10);
    assert_int_equal(op.rows[0].deaths, 10);
    for (size_t i = 0; i < 10; i++) {
        snprintf(type, sizeof type, "t%02zu", 20 + i);
        assert_string_equal(op.causes[op.rows[0].first_cause + i].type, type);
        assert_int_equal(op.causes[op.rows[0].first_cause + i].dead_id, letters[20 + i]);
    }
    int64_t digest = op.rows[0].id;
    struct hfi_op_alert_end end = {.op = {.kind = HFI_OP_ALERT_END}, .id = digest, .epoch = op.rows[0].epoch,
                                   .next_at_us = world.now.us + 5 * SECOND, .error_type = "http.503", .now = world.now};
    assert_int_equal(world_do(&end.op), 0);
    hfi_free(op.rows);
    hfi_free(op.causes);
    world.now.us += 5 * SECOND;
    assert_int_equal(take_alerts(both, 1, 8, &op), 1);
    assert_int_equal(op.rows[0].id, digest);
    assert_int_equal(op.rows[0].cause_count, 10); /* the same at every try */
    prune_around(letters, 30, &op.rows[0]);
    hfi_free(op.rows);
    hfi_free(op.causes);
}

static struct hfi_op_absent look_for_absent(uint32_t limit) {
    struct hfi_op_absent op = {.op = {.kind = HFI_OP_ABSENT}, .now = world.now, .limit = limit};
    assert_int_equal(world_do(&op.op), 0);
    return op;
}

/* Hourly looks; true: it ended something at the last one, and not before. */
static bool miss_for(int hours) {
    bool ended = false;
    for (int hour = 0; hour < hours; hour++) {
        assert_false(ended);
        world.now.us += 60 * MINUTE;
        ended = look_for_absent(100).ended_count > 0;
    }
    return ended;
}

static void nothing_is_told_of_and_all_may_go(int64_t letter) {
    struct hfi_op_alerts op;
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .dead_letters_before = world.now.us + 1, .limit = 100};
    struct hfi_op_settle settle = {.op = {.kind = HFI_OP_SETTLE}, .dead_id = letter, .status = HF_DEAD_RESOLVED,
                                   .action = &action, .now = world.now};
    assert_int_equal(take_alerts(both, 2, 10, &op), 0);
    hfi_free(op.rows);
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 0); /* nobody has settled it */
    assert_int_equal(world_do(&settle.op), 0);
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 1);
    assert_null(world_dead(letter));
}

static void alerts_of_a_sink_that_no_node_has_end(void **state) { /* S0.26, 3.8: of a sink that was renamed */
    (void)state;
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "other", .now = world.now, .sinks = rules,
                               .sink_count = 2};
    assert_int_equal(world_do(&join.op), 0);
    int64_t letter = world_die("a", NULL);
    world_die("a", NULL);
    assert_false(miss_for(200)); /* some node has them: nobody is missed */
    struct hfi_op_leave leave = {.op = {.kind = HFI_OP_LEAVE}, .node = join.node};
    assert_int_equal(world_do(&leave.op), 0);
    assert_false(miss_for(100));
    join.sinks = rules + 1; /* pager comes back, and goes again: it begins anew */
    join.sink_count = 1;
    assert_int_equal(world_do(&join.op), 0);
    leave.node = join.node;
    assert_int_equal(world_do(&leave.op), 0);
    world.now.us += 30 * DAY; /* a clock that leaps is an hour */
    assert_int_equal(look_for_absent(100).ended_count, 0);
    assert_false(miss_for(67));
    struct hfi_op_absent op;
    world.now.us += 60 * MINUTE;
    op = look_for_absent(1); /* by pages */
    assert_int_equal(op.ended_count, 1);
    assert_string_equal(op.ended[0].name, "ops");
    assert_int_equal(op.ended[0].count, 1);
    assert_int_equal(op.ended[0].dead_id, letter);
    assert_true(op.more);
    op = look_for_absent(100);
    assert_int_equal(op.ended[0].count, 1);
    assert_false(op.more);
    assert_int_equal(look_for_absent(100).ended_count, 0);
    assert_int_equal(rows_of(HF_ALERT_UNDELIVERED, "ops"), 2);
    assert_int_equal(rows_of(HF_ALERT_UNSENT, "pager"), 2);
    assert_true(miss_for(100));
    struct hf_alert_list *list = list_of(HF_ALERT_UNDELIVERED, "pager", 0, 0, 10);
    assert_int_equal(hf_alert_list_count(list), 2);
    assert_string_equal(hf_alert_list_at(list, 0)->last_error, HFI_ALERT_NO_SINK);
    assert_int_equal(hf_alert_list_at(list, 0)->ended_at_us, world.now.us);
    hf_alert_list_free(list);
    nothing_is_told_of_and_all_may_go(letter);
}

/* What a try leaves for the next one, and the time that they took together. */
static void tries_add_up_and_leave_word(void **state) {
    (void)state;
    struct hfi_op_alerts op;
    world_die("a", NULL);
    int64_t spent = 0;
    for (int try = 1; try <= 4; try++) {
        assert_int_equal(take_alerts(both, 1, 1, &op), 1);
        assert_int_equal(op.rows[0].tried_us, spent);
        assert_string_equal(op.rows[0].had, try > 2 ? "one" : "");
        struct hfi_op_alert_end end = {.op = {.kind = HFI_OP_ALERT_END}, .id = op.rows[0].id, .epoch = op.rows[0].epoch,
                                       .next_at_us = world.now.us + SECOND, .error_type = "smtp.451",
                                       .had = try == 2 ? "one" : NULL, .now = world.now};
        assert_int_equal(world_do(&end.op), 0);
        hfi_free(op.rows);
        world.now.us += try == 1 ? 10 * DAY : try == 3 ? 9 * DAY : 7 * SECOND;
        spent += try == 1 ? 65 * SECOND : try == 3 ? 180 * SECOND : 7 * SECOND; /* at most the wait and the lease */
    }
}

static void alerts_are_listed_by_pages_and_filters(void **state) { /* I74 */
    (void)state;
    name_sinks();
    int64_t last = 0;
    for (int i = 0; i < 5; i++)
        last = world_die("a", NULL);
    struct hf_alert_list *list = list_of(-1, NULL, 0, 0, 4);
    assert_int_equal(hf_alert_list_count(list), 4);
    int64_t cursor = hf_alert_list_next(list);
    assert_int_equal(cursor, hf_alert_list_at(list, 3)->id);
    assert_true(hf_alert_list_at(list, 0)->id > hf_alert_list_at(list, 3)->id);
    hf_alert_list_free(list);
    list = list_of(-1, NULL, 0, cursor, 100);
    assert_int_equal(hf_alert_list_count(list), 6);
    assert_int_equal(hf_alert_list_next(list), 0);
    hf_alert_list_free(list);
    list = list_of(-1, NULL, last, 0, 100);
    assert_int_equal(hf_alert_list_count(list), 2);
    assert_string_equal(hf_alert_list_at(list, 0)->type, "a");
    assert_string_equal(hf_alert_list_at(list, 0)->error_type, "http.404");
    hf_alert_list_free(list);
    assert_int_equal(rows_of(HF_ALERT_UNSENT, "pager"), 5);
    assert_int_equal(rows_of(HF_ALERT_UNSENT, "ops"), 2);
    assert_int_equal(rows_of(HF_ALERT_ATTACHED, NULL), 3);
    assert_int_equal(rows_of(HF_ALERT_SENT, NULL), 0);
}

WORLD_MAIN(WORLD_TEST(alerts_are_leased_fenced_and_tried_again), WORLD_TEST(alerts_come_in_parts),
           WORLD_TEST(settled_and_alerted_dead_letters_go_in_time),
           WORLD_TEST(a_storm_is_one_message_and_a_summary),
           WORLD_TEST(after_a_quiet_window_a_death_is_told_at_once),
           WORLD_TEST(many_causes_keep_the_pace_and_end_in_a_digest),
           WORLD_TEST(alerts_of_a_sink_that_no_node_has_end), WORLD_TEST(tries_add_up_and_leave_word),
           WORLD_TEST(alerts_are_listed_by_pages_and_filters))
