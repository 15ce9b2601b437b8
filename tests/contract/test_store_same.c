/* SPDX-License-Identifier: MIT */
/*
 * Two stores, one history: random operations on the memory store and on SQLite answer alike and leave the same jobs,
 * histories, dead letters and counts. The seed is printed; HF_SEED repeats it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "seed.h"
#include "store_world.h"

#define STEPS 700
#define OWNED_MAX 4096

/* A pair is one thing in both stores; [0] is the reference. */
struct owned {
    struct hfi_job *copy[2];
};
static struct hfi_store *stores[2];
static struct owned owned[OWNED_MAX];
static size_t owned_count;
static struct hfi_random chance;
static int step;
static int64_t highest_job, highest_dead;

static uint64_t below(uint64_t bound) {
    return hfi_random_below(&chance, bound);
}

static void same(const char *what, int64_t a, int64_t b) {
    if (a != b)
        fail_msg("step %d: %s is %lld in memory, %lld in SQLite", step, what, (long long)a, (long long)b);
}

static const char *without_uuid(const char *text, int which) {
    size_t length = strlen(stores[which]->uuid);
    return strncmp(text, stores[which]->uuid, length) == 0 ? text + length : text;
}

static void same_text(const char *what, const char *a, const char *b) {
    if (strcmp(without_uuid(a, 0), without_uuid(b, 1)) != 0)
        fail_msg("step %d: %s is \"%s\" in memory, \"%s\" in SQLite", step, what, a, b);
}

/* Runs the operation of each store and compares the codes. */
static int both(struct hfi_op *a, struct hfi_op *b, const char *what) {
    struct hfi_op *ops[2] = {a, b};
    for (int i = 0; i < 2; i++)
        stores[i]->ops->commit(stores[i], &ops[i], 1);
    same(what, a->code, b->code);
    return a->code;
}

static void own(struct hfi_job *a, struct hfi_job *b) {
    same("id of an owned job", a->id, b->id);
    same("epoch of an owned job", a->epoch, b->epoch);
    same("executions of an owned job", a->executions, b->executions);
    same("payload length", (int64_t)a->payload_length, (int64_t)b->payload_length);
    assert_memory_equal(a->payload, b->payload, a->payload_length);
    same_text("key of an owned job", a->idempotency_key, b->idempotency_key);
    assert_true(owned_count < OWNED_MAX);
    owned[owned_count++] = (struct owned){{a, b}};
}

static const char *pick(const char *const *from, size_t count) {
    return from[below(count)];
}
static const char *const queues[] = {"one", "two"}, *const types[] = {"a", "b", "c"},
                         *const uniques[] = {NULL, NULL, "k1", "k2"}, *const messages[] = {NULL, NULL, NULL, "m1", "m2"};

static void do_put(void) {
    static const int64_t waits[] = {1000, 7000};
    struct hf_job_spec spec = world_spec(pick(types, 3), pick(queues, 2));
    struct hfi_put puts[2][3];
    struct hfi_spec_room rooms[3];
    size_t count = 1 + below(3);
    memset(puts, 0, sizeof puts);
    for (size_t i = 0; i < count; i++) {
        spec.priority = (int32_t)below(10);
        spec.unique_key = pick(uniques, 4);
        spec.source = "s";
        spec.source_message_id = pick(messages, 5);
        spec.run_at_us = below(3) ? 0 : world.now.us + (int64_t)below(200) * SECOND;
        spec.expires_at_us = below(5) ? 0 : world.now.us + (int64_t)(300 + below(300)) * SECOND;
        spec.max_executions = below(3) ? 0 : (uint32_t)(1 + below(3));
        spec.curve_length = below(4) ? 0 : 2;
        spec.curve_ms = waits;
        spec.payload = "0123456789";
        spec.payload_length = below(11);
        assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &puts[0][i].job, &rooms[i], NULL), 0);
        puts[0][i].curve = rooms[i].curve.max_executions > 0 ? &rooms[i].curve : NULL;
        puts[1][i] = puts[0][i];
    }
    struct hfi_op_put a = {.op = {.kind = HFI_OP_PUT}, .items = puts[0], .count = count}, b = a;
    b.items = puts[1];
    both(&a.op, &b.op, "put");
    for (size_t i = 0; i < count; i++) {
        same("id put", puts[0][i].id, puts[1][i].id);
        same("existed", puts[0][i].existed, puts[1][i].existed);
        highest_job = puts[0][i].id > highest_job ? puts[0][i].id : highest_job;
    }
}

static int64_t lane_in(int which, const char *queue, const char *type, bool alone) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .now = world.now};
    struct hfi_op *ops[] = {&op.op};
    int64_t lane = 0;
    stores[which]->ops->commit(stores[which], ops, 1);
    assert_int_equal(op.op.code, 0);
    for (size_t i = 0; i < op.count; i++)
        if (strcmp(op.rows[i].queue, queue) == 0 && strcmp(op.rows[i].type, type) == 0 && op.rows[i].alone == alone)
            lane = op.rows[i].lane;
    hfi_free(op.rows);
    return lane;
}

static void do_claim(void) {
    const char *queue = pick(queues, 2), *type = pick(types, 3);
    struct hfi_admitted lanes[2] = {{.max = (uint32_t)(1 + below(3)), .policy = &world.curve,
                                      .not_repeatable = below(8) == 0, .probe = below(4) == 0,
                                      .runs_code = below(3) != 0, .alone = below(3) == 0}};
    struct hfi_job *jobs[2][4];
    struct hfi_op_claim ops[2];
    bool start = below(3) != 0, alone = below(4) == 0;
    lanes[1] = lanes[0];
    for (int i = 0; i < 2; i++) {
        lanes[i].lane = lane_in(i, queue, type, alone);
        ops[i] = (struct hfi_op_claim){.op = {.kind = HFI_OP_CLAIM}, .node = world.node, .now = world.now,
                                       .start = start, .lanes = &lanes[i], .lane_count = 1, .max = 4,
                                       .jobs = jobs[i]};
    }
    both(&ops[0].op, &ops[1].op, "claim");
    same("jobs claimed", (int64_t)ops[0].count, (int64_t)ops[1].count);
    same("more", lanes[0].more, lanes[1].more);
    for (size_t i = 0; i < ops[0].count; i++)
        own(jobs[0][i], jobs[1][i]);
}

static struct hfi_event random_event(struct hf_outcome *outcome) {
    static const enum hfi_event_kind kinds[] = {
        HFI_EVENT_STARTED, HFI_EVENT_STARTED, HFI_EVENT_SUCCEEDED, HFI_EVENT_SUCCEEDED, HFI_EVENT_FAILED,
        HFI_EVENT_FAILED,  HFI_EVENT_FAILED,  HFI_EVENT_FAILED,    HFI_EVENT_SNOOZED,   HFI_EVENT_GIVEN_BACK,
        HFI_EVENT_REJECTED, HFI_EVENT_CANCELLED, HFI_EVENT_QUARANTINED};
    struct hfi_event event = {.kind = kinds[below(sizeof kinds / sizeof *kinds)], .now = world.now,
                              .node = world.node, .actor = "ann", .message = "a word", .error_type = "payload.bad",
                              .detail = "detail", .delay_ms = (int64_t)below(100000), .result = "xyz",
                              .result_length = below(4)};
    bool permanent = below(4) == 0;
    hfi_outcome_init(outcome);
    if (event.kind == HFI_EVENT_REJECTED)
        hfi_outcome_rejected(outcome, "breaker.open", (int64_t)below(20000));
    else
        hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_LATER, HF_VERDICT_FAILURE,
                        permanent ? HF_CLASS_PERMANENT : HF_CLASS_TRANSIENT, permanent ? "http.404" : "http.503",
                        "rule");
    event.outcome = event.kind == HFI_EVENT_FAILED || event.kind == HFI_EVENT_REJECTED ? outcome : NULL;
    return event;
}

static void do_apply(void) {
    static const char *const sinks[] = {"ops", "pager"};
    static struct hfi_op_apply ops[2];
    struct hf_outcome outcome;
    if (owned_count == 0)
        return;
    struct owned *pair = &owned[owned_count - 1 - below(owned_count < 12 ? owned_count : 12)]; /* some are stale */
    struct hfi_event event = random_event(&outcome);
    for (int i = 0; i < 2; i++)
        ops[i] = (struct hfi_op_apply){.op = {.kind = HFI_OP_APPLY}, .job = pair->copy[i], .event = event,
                                       .rules = world_rules(), .sinks = sinks, .sink_count = below(1) + 2};
    if (both(&ops[0].op, &ops[1].op, hfi_event_name((int)event.kind)) != 0)
        return;
    same("dead letter", ops[0].dead_id, ops[1].dead_id);
    highest_dead = ops[0].dead_id > highest_dead ? ops[0].dead_id : highest_dead;
    if (ops[0].change.job.state == HF_JOB_RUNNING)
        own(hfi_job_copy(&ops[0].change.job), hfi_job_copy(&ops[1].change.job));
}

static void same_notes(struct hfi_dead_note *a, struct hfi_dead_note *b, size_t count_a, size_t count_b) {
    same("notes", (int64_t)count_a, (int64_t)count_b);
    for (size_t i = 0; i < count_a; i++) {
        same("dead letter of a note", a[i].dead_id, b[i].dead_id);
        same("job of a note", a[i].job_id, b[i].job_id);
        same_text("error of a note", a[i].error_type, b[i].error_type);
        highest_dead = a[i].dead_id > highest_dead ? a[i].dead_id : highest_dead;
    }
    hfi_free(a);
    hfi_free(b);
}

static void do_sweep(void) {
    struct hfi_op_sweep a = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = world.node, .by = 77,
                             .crash = below(2), .now = world.now, .limit = (uint32_t)(1 + below(5))};
    for (bool finished = false; !finished;) { /* one may need a last, empty page to know that it is the end */
        struct hfi_op_sweep b = a;
        both(&a.op, &b.op, "sweep");
        same("lapsed", a.lapsed, b.lapsed);
        same("cursor", a.after_id, b.after_id);
        same_notes(a.notes, b.notes, a.note_count, b.note_count);
        finished = a.finished && b.finished;
    }
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "again", .host = "h", .boot = "b", .pid = 1,
                               .now = world.now}, other = join;
    both(&join.op, &other.op, "join");
    same("node", join.node, other.node);
    world.node = join.node;
}

static void do_quarantine(void) {
    struct hfi_op_quarantine ops[2];
    const char *queue = pick(queues, 2);
    for (int i = 0; i < 2; i++)
        ops[i] = (struct hfi_op_quarantine){.op = {.kind = HFI_OP_QUARANTINE}, .book = world.book,
                                            .lane = lane_in(i, queue, "c", false), .node = world.node, .now = world.now,
                                            .error_type = "unknown_type", .message = "nobody has it", .limit = 1000};
    both(&ops[0].op, &ops[1].op, "quarantine");
    same("quarantined", ops[0].ended, ops[1].ended);
    same_notes(ops[0].notes, ops[1].notes, ops[0].note_count, ops[1].note_count);
}

static void do_expire(void) {
    struct hfi_op_expire a = {.op = {.kind = HFI_OP_EXPIRE}, .now = world.now, .limit = 1000}, b = a;
    both(&a.op, &b.op, "expire");
    same("expired", a.ended, b.ended);
}

static void do_cancel(void) {
    struct hfi_op_cancel a = {.op = {.kind = HFI_OP_CANCEL}, .id = (int64_t)below((uint64_t)highest_job + 2),
                              .actor = "ann", .reason = "because", .now = world.now}, b = a;
    both(&a.op, &b.op, "cancel");
    same("requested", a.requested, b.requested);
}

static void do_requeue(void) {
    struct hfi_op_requeue a = {.op = {.kind = HFI_OP_REQUEUE}, .id = (int64_t)below((uint64_t)highest_job + 2),
                               .actor = "ann", .reason = "why", .new_key = below(2), .now = world.now}, b = a;
    if (both(&a.op, &b.op, "requeue") == HF_ESTATE) {
        same("state that refused", a.was, b.was);
        same("status that refused", a.status, b.status);
    }
    same("other job", a.other_job, b.other_job);
}

static void do_redrive(void) {
    struct hf_dead_action action = world_action("ann");
    action.new_key = below(2);
    action.payload = below(3) ? NULL : "other";
    action.payload_length = action.payload ? 5 : 0;
    struct hfi_op_redrive a = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = (int64_t)below((uint64_t)highest_dead + 2),
                               .action = &action, .now = world.now}, b = a;
    both(&a.op, &b.op, "redrive");
    same("new job", a.new_job, b.new_job);
    if (a.op.code == HF_ESTATE)
        same("status that refused", a.status, b.status);
    if (a.op.code == 0)
        highest_job = a.new_job;
}

static void do_settle(void) {
    struct hf_dead_action action = world_action("bob");
    struct hfi_op_settle a = {.op = {.kind = HFI_OP_SETTLE}, .dead_id = (int64_t)below((uint64_t)highest_dead + 2),
                              .status = below(2) ? HF_DEAD_RESOLVED : HF_DEAD_DISCARDED, .action = &action,
                              .now = world.now}, b = a;
    if (both(&a.op, &b.op, "settle") == HF_ESTATE)
        same("status that refused", a.was, b.was);
}

static void do_pause(void) {
    struct hfi_op_pause a = {.op = {.kind = HFI_OP_PAUSE}, .queue = pick(queues, 2), .actor = "ann",
                             .pause = below(3) == 0, .until_us = below(2) ? 0 : world.now.us + 50 * SECOND,
                             .now = world.now}, b = a;
    both(&a.op, &b.op, "pause");
}

static void do_downstream(void) {
    struct hfi_op_downstream a = {.op = {.kind = HFI_OP_DOWNSTREAM}, .key = below(2) ? "shop" : "bank",
                                  .set = (unsigned)(1 + below(7))}, b;
    a.state.version = (int64_t)below(4) - 1;
    a.state.phase = (int32_t)below(3);
    a.state.trips = (uint32_t)below(9);
    a.state.forced = (int32_t)below(2);
    b = a;
    both(&a.op, &b.op, "downstream");
    same("version", a.state.version, b.state.version);
    same("phase", a.state.phase, b.state.phase);
    same("forced", a.state.forced, b.state.forced);
    same("trips", a.state.trips, b.state.trips);
}

static void do_share(void) {
    struct hfi_op_share a = {.op = {.kind = HFI_OP_SHARE}, .key = below(2) ? "shop" : "bank", .max = (uint32_t)below(9),
                             .node = world.node - (int64_t)below(3), .want = (uint32_t)below(6), .whole = below(2)}, b;
    a.keep = a.want > 0 ? (uint32_t)below(a.want) : 0;
    b = a;
    both(&a.op, &b.op, "share");
    same("held", a.held, b.held);
}

static void end_alert(const struct hfi_alert *alert) {
    struct hfi_op_alert_end a = {.op = {.kind = HFI_OP_ALERT_END}, .id = alert->id,
                                 .epoch = alert->epoch - (below(4) == 0), .sent = below(2),
                                 .next_at_us = world.now.us + (int64_t)below(100) * SECOND, .error_type = "x",
                                 .now = world.now}, b;
    a.undelivered = !a.sent && below(3) == 0;
    b = a;
    both(&a.op, &b.op, "end of an alert");
}

static int by_id(const void *a, const void *b) {
    const struct hfi_alert *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static void do_alerts(void) {
    static const char *const sinks[] = {"ops", "pager", "none"};
    struct hfi_op_alerts a = {.op = {.kind = HFI_OP_ALERTS}, .sinks = sinks, .sink_count = 1 + below(3),
                              .node = world.node, .lease_ms = 30000, .now = world.now, .limit = 500}, b = a;
    both(&a.op, &b.op, "alerts");
    same("alerts taken", (int64_t)a.count, (int64_t)b.count);
    same("next alert", a.next_due_us, b.next_due_us);
    if (a.count > 0) {
        qsort(a.rows, a.count, sizeof *a.rows, by_id);
        qsort(b.rows, b.count, sizeof *b.rows, by_id);
    }
    for (size_t i = 0; i < a.count; i++) {
        same("alert", a.rows[i].id, b.rows[i].id);
        same("epoch of an alert", a.rows[i].epoch, b.rows[i].epoch);
        same("tries", a.rows[i].tries, b.rows[i].tries);
        same("executions", a.rows[i].executions, b.rows[i].executions);
        same_text("sink", a.rows[i].sink, b.rows[i].sink);
        same_text("error", a.rows[i].error_type, b.rows[i].error_type);
        end_alert(&a.rows[i]);
    }
    hfi_free(a.rows);
    hfi_free(b.rows);
}

static void do_prune(void) {
    int64_t before = world.now.us - (int64_t)below(2000) * SECOND;
    struct hfi_op_prune a = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = below(2) ? before : 0,
                             .cancelled_before = below(2) ? before : 0, .dead_before = below(2) ? before : 0,
                             .dead_letters_before = below(2) ? before : 0, .inbox_before = below(2) ? before : 0,
                             .limit = 100000};
    for (;;) { /* how much goes at once is the store's own choice */
        struct hfi_op_prune b = a;
        both(&a.op, &b.op, "prune");
        if (a.pruned == 0 && b.pruned == 0)
            break;
    }
}

static void same_job(const struct hf_job_view *a, const struct hf_job_view *b) {
    same("state", a->state, b->state);
    same("executions", a->executions, b->executions);
    same("failures", a->failures, b->failures);
    same("snoozes", a->snoozes, b->snoozes);
    same("crashes", a->crashes, b->crashes);
    same("give_backs", a->give_backs, b->give_backs);
    same("deaths", a->deaths, b->deaths);
    same("max_executions", a->max_executions, b->max_executions);
    same("epoch", a->epoch, b->epoch);
    same("root", a->root_id, b->root_id);
    same("parent", a->parent_id, b->parent_id);
    same("priority", a->priority, b->priority);
    same("run_at", a->run_at_us, b->run_at_us);
    same("expires_at", a->expires_at_us, b->expires_at_us);
    same("started_at", a->started_at_us, b->started_at_us);
    same("finished_at", a->finished_at_us, b->finished_at_us);
    same("cancel_requested", a->cancel_requested_at_us, b->cancel_requested_at_us);
    same("payload", (int64_t)a->payload_length, (int64_t)b->payload_length);
    same("result", (int64_t)a->result_length, (int64_t)b->result_length);
    same_text("queue", a->queue, b->queue);
    same_text("unique key", a->unique_key, b->unique_key);
    same_text("idempotency key", a->idempotency_key, b->idempotency_key);
    same_text("reason", a->not_before_reason, b->not_before_reason);
    same_text("error type", a->error_type, b->error_type);
    same_text("error class", a->error_class, b->error_class);
    same_text("error message", a->error_message, b->error_message);
    same_text("cancel reason", a->cancel_reason, b->cancel_reason);
    same_text("owner", a->owner, b->owner);
}

/* The `i`th entry by end, then by event: of two that ended in the same microsecond a store may give either first. */
static const struct hf_history_view *past_at(const struct hf_job *job, size_t i) {
    const struct hf_history_view *found = NULL;
    for (size_t at = 0; at < hf_job_history_count(job) && !found; at++) {
        const struct hf_history_view *entry = hf_job_history_at(job, at);
        size_t before = 0;
        for (size_t other = 0; other < hf_job_history_count(job); other++) {
            const struct hf_history_view *one = hf_job_history_at(job, other);
            int order = one->ended_at_us < entry->ended_at_us   ? -1
                        : one->ended_at_us > entry->ended_at_us ? 1
                                                                : strcmp(one->event, entry->event);
            before += order < 0 || (order == 0 && other < at);
        }
        found = before == i ? entry : NULL;
    }
    assert_non_null(found);
    return found;
}

static void same_history(const struct hf_job *a, const struct hf_job *b) {
    same("length of the history", (int64_t)hf_job_history_count(a), (int64_t)hf_job_history_count(b));
    for (size_t i = 0; i < hf_job_history_count(a); i++) {
        const struct hf_history_view *x = past_at(a, i), *y = past_at(b, i);
        if (i > 0)
            assert_true(hf_job_history_at(b, i - 1)->ended_at_us <= hf_job_history_at(b, i)->ended_at_us);
        same_text("event", x->event, y->event);
        same_text("error of the past", x->error_type, y->error_type);
        same_text("message of the past", x->error_message, y->error_message);
        same_text("node of the past", x->node, y->node);
        same("execution", x->execution, y->execution);
        same("begin", x->started_at_us, y->started_at_us);
        same("end", x->ended_at_us, y->ended_at_us);
        same("next", x->next_run_at_us, y->next_run_at_us);
    }
}

static void same_dead(const struct hf_dead_view *a, const struct hf_dead_view *b) {
    same("status", a->status, b->status);
    same("class", a->death_class, b->death_class);
    same("job of a dead letter", a->job_id, b->job_id);
    same("death_no", a->death_no, b->death_no);
    same("executions of a dead letter", a->executions, b->executions);
    same("max_executions of a dead letter", a->max_executions, b->max_executions);
    same("new job", a->new_job_id, b->new_job_id);
    same("settled at", a->settled_at_us, b->settled_at_us);
    same("dead at", a->dead_at_us, b->dead_at_us);
    same_text("outcome", a->new_job_outcome, b->new_job_outcome);
    same_text("cause", a->cause, b->cause);
    same_text("fingerprint", a->fingerprint, b->fingerprint);
    same_text("error of a dead letter", a->error_type, b->error_type);
    same_text("message of a dead letter", a->error_message, b->error_message);
    same_text("detail", a->detail, b->detail);
    same_text("settled by", a->settled_by, b->settled_by);
    same_text("node", a->node, b->node);
}

static void same_everything(void) {
    for (int64_t id = 1; id <= highest_job; id++) {
        struct hf_job *jobs[2];
        int codes[2];
        for (int i = 0; i < 2; i++)
            codes[i] = stores[i]->ops->get_job(stores[i], id, &jobs[i], NULL);
        same("presence of a job", codes[0], codes[1]);
        if (codes[0] != 0)
            continue;
        same_job(hf_job_look(jobs[0]), hf_job_look(jobs[1]));
        same_history(jobs[0], jobs[1]);
        hf_job_free(jobs[0]);
        hf_job_free(jobs[1]);
    }
    for (int64_t id = 1; id <= highest_dead; id++) {
        struct hf_dead *deads[2];
        int codes[2];
        for (int i = 0; i < 2; i++)
            codes[i] = stores[i]->ops->get_dead(stores[i], id, &deads[i], NULL);
        same("presence of a dead letter", codes[0], codes[1]);
        if (codes[0] != 0)
            continue;
        same_dead(hf_dead_look(deads[0]), hf_dead_look(deads[1]));
        hf_dead_free(deads[0]);
        hf_dead_free(deads[1]);
    }
    struct hf_job_counts counts[2];
    for (int i = 0; i < 2; i++) {
        hf_job_counts_init(&counts[i]);
        assert_int_equal(stores[i]->ops->count_jobs(stores[i], &counts[i], NULL), 0);
    }
    same("pending", (int64_t)counts[0].pending, (int64_t)counts[1].pending);
    same("running", (int64_t)counts[0].running, (int64_t)counts[1].running);
    same("succeeded", (int64_t)counts[0].succeeded, (int64_t)counts[1].succeeded);
    same("dead", (int64_t)counts[0].dead, (int64_t)counts[1].dead);
    same("quarantined", (int64_t)counts[0].quarantined, (int64_t)counts[1].quarantined);
    same("cancelled", (int64_t)counts[0].cancelled, (int64_t)counts[1].cancelled);
    same("open dead letters", (int64_t)counts[0].dead_letters_open, (int64_t)counts[1].dead_letters_open);
    same("unsent alerts", (int64_t)counts[0].alerts_unsent, (int64_t)counts[1].alerts_unsent);
}

static void random_operations_leave_both_stores_alike(void **state) {
    static void (*const acts[])(void) = {
        do_put,     do_put,     do_put,    do_claim,   do_claim,  do_claim, do_claim, do_apply,      do_apply,
        do_apply,   do_apply,   do_apply,  do_apply,   do_sweep,  do_expire, do_cancel, do_quarantine, do_requeue,
        do_requeue, do_redrive, do_redrive, do_settle, do_pause, do_downstream, do_share, do_alerts, do_prune};
    (void)state;
    stores[0] = world.store;
    struct hf_store_options options;
    hf_store_options_init(&options);
    options.normal_sync = true;
    stores[1] = world_new_store("sqlite", &options);
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "node-a", .host = "here", .boot = "boot-a",
                               .pid = 1, .now = world.now};
    struct hfi_op *ops[] = {&join.op};
    stores[1]->ops->commit(stores[1], ops, 1);
    same("node", world.node, join.node);
    hfi_random_seed(&chance, test_seed("same"));
    for (step = 0; step < STEPS; step++) {
        acts[below(sizeof acts / sizeof *acts)]();
        if (below(3) == 0)
            world.now.us += (int64_t)below(below(10) ? 90 : 4000) * SECOND;
        if (step % 20 == 0)
            same_everything();
    }
    same_everything();
    while (owned_count-- > 0) {
        hfi_free(owned[owned_count].copy[0]);
        hfi_free(owned[owned_count].copy[1]);
    }
    stores[1]->ops->close(stores[1]);
}

WORLD_MAIN(WORLD_TEST(random_operations_leave_both_stores_alike))
