/* SPDX-License-Identifier: MIT */
/* Contract of the store: a death and all it means in one transaction. */
#include "store_world.h"

static size_t take_alerts(const char *const *sinks, size_t count, uint32_t limit, struct hfi_op_alerts *op) {
    *op = (struct hfi_op_alerts){.op = {.kind = HFI_OP_ALERTS},
                                 .sinks = sinks,
                                 .sink_count = count,
                                 .node = world.node,
                                 .lease_ms = 60000,
                                 .now = world.now,
                                 .limit = limit};
    assert_int_equal(world_do(&op->op), 0);
    return op->count;
}

static const char *const both[] = {"ops", "pager"};

static void assert_dead_letter(int64_t id) {
    const struct hf_dead_view *dead = world_dead(1);
    assert_non_null(dead);
    assert_int_equal(dead->status, HF_DEAD_DEAD);
    assert_int_equal(dead->death_class, HF_DEATH_PERMANENT);
    assert_int_equal(dead->job_id, id);
    assert_int_equal(dead->death_no, 1);
    assert_int_equal(dead->executions, 1);
    assert_int_equal(dead->max_executions, 6);
    assert_false(dead->quarantined);
    assert_string_equal(dead->type, "charge");
    assert_string_equal(dead->queue, "money");
    assert_string_equal(dead->downstream, "shop");
    assert_string_equal(dead->content_type, "application/json");
    assert_string_equal(dead->source, "shop");
    assert_string_equal(dead->source_message_id, "m-9");
    assert_string_equal(dead->correlation_id, "c-1");
    assert_string_equal(dead->error_type, "http.404");
    assert_string_equal(dead->error_message, "the peer said no");
    assert_string_equal(dead->detail, "the whole story");
    assert_string_equal(dead->rule, "http.4xx");
    assert_string_equal(dead->cause, "permanent");
    assert_string_equal(dead->node, "node-a");
    assert_int_equal(strlen(dead->fingerprint), 16);
    assert_int_equal(dead->payload_length, 2);
    assert_int_equal(dead->job_created_at_us, T0);
    assert_int_equal(dead->dead_at_us, world.now.us);
    assert_int_equal(dead->settled_at_us, 0);
    assert_string_equal(dead->new_job_outcome, "");
}

static void assert_alerts(int64_t id) {
    struct hfi_op_alerts op;
    assert_int_equal(take_alerts(both, 2, 10, &op), 2);
    assert_string_equal(op.rows[0].sink, "ops");
    assert_string_equal(op.rows[1].sink, "pager");
    assert_int_equal(op.rows[0].dead_id, 1);
    assert_int_equal(op.rows[0].job_id, id);
    assert_int_equal(op.rows[0].executions, 1);
    assert_int_equal(op.rows[0].death_no, 1);
    assert_int_equal(op.rows[0].death_class, HF_DEATH_PERMANENT);
    assert_int_equal(op.rows[0].dead_at_us, world.now.us);
    assert_string_equal(op.rows[0].type, "charge");
    assert_string_equal(op.rows[0].queue, "money");
    assert_string_equal(op.rows[0].downstream, "shop");
    assert_string_equal(op.rows[0].error_type, "http.404");
    assert_string_equal(op.rows[0].correlation_id, "c-1");
    hfi_free(op.rows);
}

static void a_death_leaves_all_its_evidence_at_once(void **state) { /* S0.12, S0.13, S0.17, S0.32d, S2.22, S3.19 */
    (void)state;
    struct hf_job_spec spec = world_spec("charge", "money");
    spec.payload = "{}";
    spec.payload_length = 2;
    spec.content_type = "application/json";
    spec.correlation_id = "c-1";
    spec.source = "shop";
    spec.source_message_id = "m-9";
    int64_t id = world_put(&spec);
    world.now.us += MINUTE;
    struct hfi_job *job = world_start(world_lane("money", "charge"));
    world.now.us += MINUTE;
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(job->state, HF_JOB_DEAD);
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    assert_int_equal(world_job(id)->deaths, 1);
    assert_string_equal(world_job(id)->error_type, "http.404");
    assert_int_equal(world_history(id), 1);
    assert_string_equal(world_past(id, 0)->event, "failed");
    assert_string_equal(world_past(id, 0)->error_class, "permanent");
    assert_string_equal(world_past(id, 0)->error_type, "http.404");
    assert_string_equal(world_past(id, 0)->rule, "http.4xx"); /* S4.15 */
    assert_int_equal(world_past(id, 0)->attempts, 2);
    assert_int_equal(world_past(id, 0)->retries, 1);
    assert_dead_letter(id);
    assert_int_equal(world_counts().dead, 1);
    assert_int_equal(world_counts().dead_letters_open, 1);
    assert_int_equal(world_counts().alerts_unsent, 2);
    assert_alerts(id);
}

static void failures_before_the_last_leave_no_dead_letter_and_no_alert(void **state) { /* S0.15, S0.24 */
    (void)state;
    world_put_type("a");
    for (int i = 0; i < 5; i++) {
        struct hfi_job *job = world_start_type("a");
        assert_int_equal(world_fail(&job, false), 0);
        assert_int_equal(world_dead_count(-1), 0);
        assert_int_equal(world_counts().alerts_unsent, 0);
        world.now.us += 3 * HOUR;
    }
}

static void hostile_error_texts_are_cleaned_and_cut(void **state) { /* I65, I66, S0.13 */
    (void)state;
    struct hf_outcome outcome;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    char *long_text = hfi_alloc((1 << 20) + 1);
    for (size_t i = 0; i + 4 <= 1 << 20; i += 4)
        memcpy(long_text + i, "\xf0\x9f\x99\x82", 4); /* a cut must not split one */
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_PERMANENT, "exit.1",
                    "exit");
    hfi_outcome_message(&outcome, "bad \xff\xfe bytes");
    assert_int_equal(APPLY(&job, FAILED, .outcome = &outcome, .detail = long_text), 0);
    hfi_free(long_text);
    const struct hf_dead_view *dead = world_dead(1);
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    size_t length = strlen(dead->detail);
    assert_true(length <= HFI_DETAIL_MAX && length > HFI_DETAIL_MAX - 4);
    assert_int_equal(length % 4, 0);
    assert_non_null(strstr(dead->error_message, "\xef\xbf\xbd"));
}

static void the_full_text_can_be_kept_out(void **state) { /* S1.8 */
    (void)state;
    struct hf_store_options options;
    struct hfi_store *usual = world.store;
    hf_store_options_init(&options);
    options.no_error_detail = true;
    world.store = world_new_store(world.kind, &options);
    world_die("a", NULL);
    assert_string_equal(world_dead(1)->detail, "");
    assert_string_equal(world_dead(1)->error_type, "http.404");
    world.store->ops->close(world.store);
    world.store = usual;
}

static void a_quarantined_job_never_ran(void **state) { /* S1.14, S1.15, S0.16, S1.21 */
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = NULL;
    assert_int_equal(world_claim(world_lane("default", "a"), 1, false, &job), 1);
    assert_int_equal(APPLY(&job, QUARANTINED, .error_type = "payload.undecodable", .message = "not JSON"), 0);
    assert_int_equal(world_job(id)->state, HF_JOB_QUARANTINED);
    assert_int_equal(world_job(id)->executions, 0);
    const struct hf_dead_view *dead = world_dead(1);
    assert_int_equal(dead->death_class, HF_DEATH_POISON);
    assert_true(dead->quarantined);
    assert_int_equal(dead->executions, 0);
    assert_string_equal(dead->error_type, "payload.undecodable");
    assert_int_equal(world_counts().alerts_unsent, 2);
    struct hfi_op_requeue op = {
        .op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world_claim(world_lane("default", "a"), 1, false, &job), 1);
    assert_int_equal(APPLY(&job, QUARANTINED, .error_type = "payload.undecodable", .message = "not JSON"), 0);
    assert_int_equal(world_dead_count(-1), 2);
    assert_int_equal(world_dead(2)->death_no, 2);
}

static int bury(const struct hfi_job *job, const struct hfi_death *death, struct hfi_op_poison *op) {
    static const char *const sinks[] = {"ops", "pager"};
    *op = (struct hfi_op_poison){
        .op = {.kind = HFI_OP_POISON}, .job = job, .death = death, .sinks = sinks, .sink_count = 2, .now = world.now};
    return world_do(&op->op);
}

static void a_message_that_never_was_a_job_has_one_letter(void **state) { /* S0.13, S0.19, S0.21 */
    (void)state;
    struct hfi_job job;
    struct hfi_death death = {.death_class = HF_DEATH_POISON, .death_no = 1, .cause = "message", .error_type = "message.malformed",
                              .rule = "outbox.malformed", .message = "payload: it is NULL"};
    struct hfi_op_poison op;
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    hfi_job_blank(&job);
    job.type = "unknown";
    job.queue = "default";
    job.source = "shop";
    job.source_message_id = "m-1";
    job.payload = bytes;
    job.payload_length = sizeof bytes;
    assert_int_equal(bury(&job, &death, &op), 0);
    assert_false(op.existed);
    int64_t first = op.dead_id;
    const struct hf_dead_view *dead = world_dead(first);
    assert_int_equal(dead->job_id, 0);
    assert_int_equal(dead->death_no, 1);
    assert_int_equal(dead->death_class, HF_DEATH_POISON);
    assert_int_equal(dead->executions, 0);
    assert_string_equal(dead->type, "unknown");
    assert_string_equal(dead->source, "shop");
    assert_string_equal(dead->source_message_id, "m-1");
    assert_string_equal(dead->error_message, "payload: it is NULL");
    assert_int_equal(dead->dead_at_us, world.now.us);
    assert_int_equal(dead->payload_length, 256);
    assert_memory_equal(dead->payload, bytes, 256);
    assert_int_equal(world_counts().alerts_unsent, 2);
    for (int i = 0; i < 100; i++) { /* delivered again: nothing new, nobody is alerted */
        assert_int_equal(bury(&job, &death, &op), 0);
        assert_true(op.existed);
        assert_int_equal(op.dead_id, first);
    }
    assert_int_equal(world_dead_count(-1), 1);
    assert_int_equal(world_counts().alerts_unsent, 2);
    job.source_message_id = "m-2";
    assert_int_equal(bury(&job, &death, &op), 0);
    assert_false(op.existed);
    job.source = "other";
    assert_int_equal(bury(&job, &death, &op), 0);
    assert_false(op.existed);
    assert_int_equal(world_dead_count(HF_DEAD_DEAD), 3);
    assert_int_equal(world_counts().dead, 0); /* no job died */
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive redrive = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = first, .action = &action, .now = world.now};
    assert_int_equal(world_do(&redrive.op), 0); /* a person may make a job of it all the same */
    assert_int_equal(world_job(redrive.new_job)->payload_length, 256);
    assert_int_equal(world_job(redrive.new_job)->root_id, redrive.new_job);
}

/* ------------------------------------------------------------------ what a death sets off */

static const struct hfi_forward rules[] = {
    {.name = "handler", .type = "order", .death_class = -1, .of = 3, .to_queue = HFI_FORWARD_QUEUE,
     .to_type = "holdfast.death.order", .handler = true},
    {.name = "audit", .source = "shop", .death_class = -1, .of = 1, .to_queue = HFI_FORWARD_QUEUE,
     .to_type = "holdfast.forward.audit"},
    {.name = "fix", .queue = "money", .death_class = HF_DEATH_PERMANENT, .of = 1, .to_queue = "fixes"},
    {.name = "letters", .source = "shop", .death_class = -1, .of = 1 << HF_FORWARD_MESSAGES, .to_queue = "fixes",
     .to_type = "letter"},
};
static const struct hfi_forwards told = {rules, sizeof rules / sizeof *rules};

static int64_t die_forwarded(const void *payload, size_t length) {
    struct hf_job_spec spec = world_spec("order", "money");
    world.forwards = &told;
    spec.payload = payload;
    spec.payload_length = length;
    spec.content_type = "application/json";
    spec.correlation_id = "c-1";
    spec.tags = "t";
    spec.source = "shop";
    spec.source_message_id = "m-9";
    int64_t id = world_put(&spec);
    struct hfi_job *job = world_start(world_lane("money", "order"));
    assert_int_equal(job->id, id);
    assert_int_equal(world_fail(&job, true), 0);
    return id;
}

static struct hf_dead *whole(int64_t id) {
    struct hf_dead *dead;
    assert_int_equal(world.store->ops->get_dead(world.store, id, &dead, NULL), 0);
    return dead;
}

static struct hf_forward_view forwarded(const char *name) {
    struct hf_forward_list *list;
    struct hf_forward_view found = {0};
    assert_int_equal(world.store->ops->list_forwards(world.store, &list, NULL), 0);
    for (size_t i = 0; i < hf_forward_list_count(list); i++)
        if (strcmp(hf_forward_list_at(list, i)->name, name) == 0)
            found = *hf_forward_list_at(list, i);
    hf_forward_list_free(list);
    return found;
}

static void a_death_puts_what_it_sets_off(void **state) { /* S2.18, S2.24, S2.25, S2.26, S2.28, S2.32, I65 */
    (void)state;
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    int64_t id = die_forwarded(bytes, sizeof bytes);
    struct hf_dead *dead = whole(1);
    assert_int_equal(hf_dead_forward_count(dead), 3); /* the handler first, each its own job */
    assert_string_equal(hf_dead_forward_at(dead, 0)->name, "handler");
    assert_string_equal(hf_dead_forward_at(dead, 1)->name, "audit");
    assert_string_equal(hf_dead_forward_at(dead, 2)->name, "fix");
    assert_string_equal(hf_dead_forward_at(dead, 2)->outcome, "");
    assert_null(hf_dead_forward_at(dead, 3));
    const char *const types[] = {"holdfast.death.order", "holdfast.forward.audit", "order"};
    const char *const queues[] = {HFI_FORWARD_QUEUE, HFI_FORWARD_QUEUE, "fixes"};
    for (size_t i = 0; i < 3; i++) {
        const struct hf_job_view *copy = world_job(hf_dead_forward_at(dead, i)->job_id);
        assert_int_equal(copy->state, HF_JOB_PENDING);
        assert_string_equal(copy->type, types[i]);
        assert_string_equal(copy->queue, queues[i]);
        assert_int_equal(copy->run_at_us, world.now.us);
        assert_int_equal(copy->root_id, id);
        assert_int_equal(copy->payload_length, 256);
        assert_memory_equal(copy->payload, bytes, 256); /* verbatim */
        assert_string_equal(copy->content_type, "application/json");
        assert_string_equal(copy->correlation_id, "c-1");
        assert_string_equal(copy->tags, "t");
        assert_string_equal(copy->idempotency_key, world_job(id)->idempotency_key);
    }
    hf_dead_free(dead);
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD); /* the original stays */
    assert_int_equal(world_dead(1)->status, HF_DEAD_DEAD);
    assert_int_equal(forwarded("audit").taken, 1);
    assert_int_equal(forwarded("audit").forwarded, 0);
}

static void only_what_it_asks_for_is_forwarded(void **state) { /* S2.24, S2.29, S1.14 */
    (void)state;
    struct hfi_job message;
    struct hfi_death death = {.death_class = HF_DEATH_POISON, .death_no = 1, .cause = "message", .error_type = "message.malformed",
                              .rule = "outbox.malformed", .message = "payload: it is NULL"};
    struct hfi_op_poison op;
    world.forwards = &told;
    world_die("a", NULL); /* by hand: no source, another queue and type */
    assert_int_equal(world_counts().pending, 0);
    hfi_job_blank(&message);
    message.type = "unknown";
    message.queue = "default";
    message.source = "shop";
    message.source_message_id = "m-1";
    message.payload = "{";
    message.payload_length = 1;
    for (int i = 0; i < 2; i++) { /* the second time it is there already */
        op = (struct hfi_op_poison){.op = {.kind = HFI_OP_POISON}, .job = &message, .death = &death, .forwards = &told, .now = world.now};
        assert_int_equal(world_do(&op.op), 0);
        assert_int_equal(world_counts().pending, 1);
    }
    struct hf_dead *dead = whole(op.dead_id);
    assert_int_equal(hf_dead_forward_count(dead), 1); /* not where exhausted jobs go, and they not here */
    assert_string_equal(hf_dead_forward_at(dead, 0)->name, "letters");
    assert_string_equal(world_job(hf_dead_forward_at(dead, 0)->job_id)->type, "letter");
    hf_dead_free(dead);
    message.source_message_id = "m-2";
    death.payload_cut = true; /* half a message is another message */
    assert_int_equal(world_do(&op.op), 0);
    assert_false(op.existed);
    assert_int_equal(world_counts().pending, 1);
    die_forwarded("x", 1);
    assert_int_equal(forwarded("letters").taken, 1);
    assert_int_equal(forwarded("audit").taken, 1);
}

/* Starts the copy that waits in that queue. */
static struct hfi_job *start_copy(const char *queue, const char *type) {
    struct hfi_job *job = world_start(world_lane(queue, type));
    assert_non_null(job);
    return job;
}

static void a_copy_that_dies_goes_in_no_circle(void **state) { /* S2.25, S2.24, S2.21 */
    (void)state;
    static const struct hfi_forward all[] = {{.name = "all", .death_class = -1, .of = 3, .to_queue = "money"}};
    static const struct hfi_forwards circle = {all, 1};
    struct hf_dead_action action = world_action("ann");
    int64_t id = die_forwarded("x", 1); /* by the rules that take but some */
    struct hfi_job *job = start_copy("fixes", "order");
    world.forwards = &circle; /* and back again, if it could */
    size_t pending = world_counts().pending;
    int64_t copy = job->id;
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(world_counts().pending, pending); /* a dead letter as any, with alerts, and nothing else */
    assert_int_equal(world_dead_count(HF_DEAD_DEAD), 2);
    assert_int_equal(world_counts().alerts_unsent, 4);
    assert_int_equal(forwarded("fix").failed, 1);
    struct hf_dead *dead = whole(1);
    assert_string_equal(hf_dead_forward_at(dead, 2)->outcome, "dead");
    hf_dead_free(dead);
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 2, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    dead = whole(1);
    assert_int_equal(hf_dead_forward_at(dead, 2)->job_id, op.new_job); /* it is known where it is now */
    assert_string_equal(hf_dead_forward_at(dead, 2)->outcome, "");
    hf_dead_free(dead);
    job = start_copy("fixes", "order");
    assert_int_equal(job->id, op.new_job);
    assert_true(op.new_job > copy && id > 0);
    assert_int_equal(world_fail(&job, true), 0); /* still a copy */
    assert_int_equal(world_counts().pending, pending);
    assert_int_equal(forwarded("fix").failed, 2);
    assert_int_equal(forwarded("fix").taken, 1);
}

static void what_was_forwarded_is_not_done_here_as_well(void **state) { /* S2.32 */
    (void)state;
    struct hf_dead_action action = world_action("ann");
    int64_t id = die_forwarded("x", 1);
    struct hfi_op_redrive redrive = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = world.now};
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&redrive.op), HF_ESTATE);
    assert_int_equal(redrive.status, HF_DEAD_DEAD);
    assert_true(redrive.new_job > id); /* where it went */
    assert_int_equal(world_do(&requeue.op), HF_ESTATE);
    assert_true(requeue.other_job > id);
    assert_int_equal(world_dead(1)->status, HF_DEAD_DEAD);
    struct hfi_job *job = start_copy(HFI_FORWARD_QUEUE, "holdfast.forward.audit");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(forwarded("audit").forwarded, 1);
    assert_int_equal(world_do(&redrive.op), HF_ESTATE);
    requeue.force = true;
    assert_int_equal(world_do(&requeue.op), 0);
    assert_int_equal(world_dead(1)->status, HF_DEAD_REDRIVEN);
    job = start_copy("money", "order"); /* a second death sets off everything again */
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(forwarded("fix").taken, 2);
    int64_t second = (int64_t)world_dead_count(-1);
    assert_int_equal(world_dead(second)->death_no, 2);
    redrive.dead_id = second;
    action.force = true;
    assert_int_equal(world_do(&redrive.op), 0);
}

static void what_failed_elsewhere_is_done_here(void **state) { /* S2.32, S2.23 */
    (void)state;
    static const struct hfi_forwards one = {&rules[2], 1};
    struct hf_dead_action action = world_action("ann");
    die_forwarded("x", 1);
    world.forwards = &one;
    struct hf_job_spec spec = world_spec("bill", "money");
    world_put(&spec);
    struct hfi_job *job = world_start(world_lane("money", "bill"));
    assert_int_equal(world_fail(&job, true), 0);
    struct hfi_job *copy = start_copy("fixes", "bill");
    assert_int_equal(world_fail(&copy, true), 0);
    struct hfi_op_redrive redrive = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 2, .action = &action, .now = world.now};
    assert_int_equal(world_do(&redrive.op), 0);
}

static void a_copy_that_is_requeued_is_on_its_way_again(void **state) { /* S2.32, I75: not done here beside it */
    (void)state;
    static const struct hfi_forwards one = {&rules[2], 1};
    struct hf_dead_action action = world_action("ann");
    struct hf_job_spec spec = world_spec("bill", "money");
    world.forwards = &one;
    world_put(&spec);
    struct hfi_job *job = world_start(world_lane("money", "bill")), *copy;
    assert_int_equal(world_fail(&job, true), 0);
    copy = start_copy("fixes", "bill");
    int64_t id = copy->id;
    assert_int_equal(world_fail(&copy, true), 0);
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .reason = "", .now = world.now};
    struct hfi_op_redrive redrive = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = world.now};
    assert_int_equal(world_do(&requeue.op), 0);
    struct hf_dead *dead = whole(1);
    assert_int_equal(hf_dead_forward_at(dead, 0)->job_id, id);
    assert_string_equal(hf_dead_forward_at(dead, 0)->outcome, "");
    hf_dead_free(dead);
    assert_int_equal(world_do(&redrive.op), HF_ESTATE);
    assert_int_equal(redrive.new_job, id);
    copy = start_copy("fixes", "bill");
    assert_int_equal(APPLY(&copy, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_do(&redrive.op), HF_ESTATE);
    assert_int_equal(forwarded("fix").taken, 1);
    assert_int_equal(forwarded("fix").forwarded, 1);
}

/* ------------------------------------------------------------------ deaths that are there already */

static void a_death_that_is_there_already_is_not_told_again(void **state) { /* S0.19, S0.23 */
    (void)state;
    struct hf_outcome outcome;
    struct hfi_op_apply op;
    world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_PERMANENT, "exit.1", "exit");
    struct hfi_event event = {.kind = HFI_EVENT_FAILED, .outcome = &outcome};
    assert_int_equal(world_apply_full(&job, event, &op), 0);
    assert_false(op.existed);
    int64_t first = op.dead_id;
    struct hfi_op_requeue requeue = {.op = {.kind = HFI_OP_REQUEUE}, .id = job->id, .actor = "ann", .reason = "", .now = world.now};
    assert_int_equal(world_do(&requeue.op), 0);
    job = world_start_type("a");
    job->deaths = 0; /* a record that has lost count, as after a restore: it dies its first death once more */
    assert_int_equal(world_apply_full(&job, event, &op), 0);
    assert_true(op.existed);
    assert_int_equal(op.dead_id, first);
    assert_int_equal(world_dead_count(-1), 1);
    assert_int_equal(world_counts().alerts_unsent, 2); /* of the first time */
}

/* ------------------------------------------------------------------ quarantined jobs that can be run now */

static struct hfi_rulebook *readers(const char *schema, bool release) {
    struct hf_runner_options options;
    struct hf_type_options type;
    struct hfi_rulebook *book;
    hf_runner_options_init(&options);
    hf_type_options_init(&type);
    type.kind = HF_KIND_NOOP;
    type.name = "a";
    type.schema = schema;
    type.release_quarantined = release;
    options.types = &type;
    options.type_count = 1;
    assert_int_equal(hfi_rulebook_new(&options, &book, NULL), 0);
    return book;
}

static uint32_t readmit(const char *schema, bool release) {
    struct hfi_rulebook *book = readers(schema, release);
    struct hfi_op_readmit op = {.op = {.kind = HFI_OP_READMIT}, .book = book, .now = world.now, .limit = 2};
    uint32_t readmitted = 0, pages = 0;
    do {
        assert_int_equal(world_do(&op.op), 0);
        readmitted += op.readmitted;
        assert_true(++pages < 20);
    } while (op.more);
    assert_int_equal(op.after_id, 0);
    hfi_rulebook_free(book);
    return readmitted;
}

/* Quarantines all that is due of type a as a node with that schema would. */
static void quarantine(const char *type, const char *schema) {
    struct hfi_rulebook *book = readers(schema, false);
    struct hfi_job *jobs[16];
    size_t count = world_claim(world_lane("default", "a"), 16, false, jobs);
    for (size_t i = 0; i < count; i++) {
        struct hfi_op_apply op = {.op = {.kind = HFI_OP_APPLY}, .job = jobs[i],
                                  .event = {.kind = HFI_EVENT_QUARANTINED, .error_type = type, .now = world.now, .node = world.node}};
        hfi_rulebook_for(book, jobs[i], &op.rules);
        assert_int_equal(world_do(&op.op), 0);
    }
    hfi_rulebook_free(book);
}

static void quarantined_jobs_are_let_in_when_they_can_be_run(void **state) { /* R9, S1.14, S1.21 */
    (void)state;
    int64_t ids[5];
    for (int i = 0; i < 5; i++)
        ids[i] = world_put_type("a");
    quarantine("unknown_type", "");
    assert_int_equal(world_counts().quarantined, 5);
    assert_int_equal(world_counts().dead, 0);
    struct hfi_op_settle settle = {.op = {.kind = HFI_OP_SETTLE}, .dead_id = 1, .status = HF_DEAD_DISCARDED, .now = world.now};
    struct hf_dead_action action = world_action("ann");
    settle.action = &action;
    assert_int_equal(world_do(&settle.op), 0);
    assert_int_equal(readmit("", false), 0); /* by choice only */
    assert_int_equal(readmit("", true), 4);  /* not what a person has decided about */
    assert_int_equal(world_job(ids[0])->state, HF_JOB_QUARANTINED);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(world_job(ids[i])->state, HF_JOB_PENDING);
        assert_int_equal(world_dead(i + 1)->status, HF_DEAD_REDRIVEN);
        assert_string_equal(world_dead(i + 1)->settled_by, "holdfast");
        assert_int_equal(world_dead(i + 1)->new_job_id, ids[i]);
    }
    assert_int_equal(readmit("", true), 0);
    quarantine("payload.unreadable", "v1");
    assert_int_equal(world_counts().quarantined, 5);
    assert_int_equal(readmit("v1", true), 0); /* for the same reason it would be back at once */
    assert_int_equal(readmit("v2", true), 4);
    quarantine("payload.unreadable", "v2");
    assert_int_equal(readmit("v2", true), 0);
    assert_int_equal(world_dead(10)->death_no, 3);
}

WORLD_MAIN(WORLD_TEST(a_death_leaves_all_its_evidence_at_once),
           WORLD_TEST(failures_before_the_last_leave_no_dead_letter_and_no_alert),
           WORLD_TEST(hostile_error_texts_are_cleaned_and_cut), WORLD_TEST(the_full_text_can_be_kept_out),
           WORLD_TEST(a_quarantined_job_never_ran),
           WORLD_TEST(a_message_that_never_was_a_job_has_one_letter), WORLD_TEST(a_death_puts_what_it_sets_off),
           WORLD_TEST(only_what_it_asks_for_is_forwarded), WORLD_TEST(a_copy_that_dies_goes_in_no_circle),
           WORLD_TEST(what_was_forwarded_is_not_done_here_as_well), WORLD_TEST(what_failed_elsewhere_is_done_here),
           WORLD_TEST(a_copy_that_is_requeued_is_on_its_way_again),
           WORLD_TEST(a_death_that_is_there_already_is_not_told_again),
           WORLD_TEST(quarantined_jobs_are_let_in_when_they_can_be_run))
