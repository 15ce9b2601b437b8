/* SPDX-License-Identifier: MIT */
/* Contract of the store: alerts are leased, fenced and kept until they were sent. */
#include "store_world.h"

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
    assert_int_equal(op.unsent, 1);
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
    assert_int_equal(op.unsent, 0);
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
    assert_int_equal(op.unsent, 10);
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

WORLD_MAIN(WORLD_TEST(alerts_are_leased_fenced_and_tried_again), WORLD_TEST(alerts_come_in_parts),
           WORLD_TEST(settled_and_alerted_dead_letters_go_in_time))
