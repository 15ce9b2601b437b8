/* SPDX-License-Identifier: MIT */
/*
 * Deaths and what they set off, in virtual time: one row and one line each whatever the store does, copies that are jobs of
 * their own, isolated from each other, and never a circle.
 */
#include "runner_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000)
#define HOUR (3600 * SECOND)

struct copy {
    char error[64], letter[24], key[128], type[64], body[64];
    size_t body_length;
};

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_downstream_options downstreams[2];
    struct hf_type_options types[2];
    struct hf_forward_options forwards[4];
    struct hf_queue_options queue;
    int shop, audit; /* the status they answer with */
    struct hf_policy_options policy;
    struct hf_sink_options sinks[2];
    size_t told[2]; /* messages to each sink */
    struct copy copies[512];
    size_t count;
};
static struct world world;

static void take(char *to, size_t room, const struct hfi_attempt_spec *spec, const char *name) {
    to[0] = '\0';
    for (size_t i = 0; i < spec->header_count; i++)
        if (strcmp(spec->headers[i].name, name) == 0)
            snprintf(to, room, "%s", spec->headers[i].value);
}

static struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)number;
    (void)user;
    if (strstr(spec->url, "alerts.example") != NULL) {
        world.told[strstr(spec->url, "hook-b") != NULL]++;
        return hfi_script_status(1, 204);
    }
    if (strstr(spec->url, "audit") == NULL)
        return world.shop == 0 ? hfi_script_hang(true) : hfi_script_status(1, world.shop);
    if (world.count < 512) {
        struct copy *copy = &world.copies[world.count++];
        take(copy->error, sizeof copy->error, spec, "Holdfast-Error");
        take(copy->letter, sizeof copy->letter, spec, "Holdfast-Dead-Letter");
        take(copy->key, sizeof copy->key, spec, "Idempotency-Key");
        take(copy->type, sizeof copy->type, spec, "Content-Type");
        copy->body_length = spec->body_length;
        memcpy(copy->body, spec->body, spec->body_length < sizeof copy->body ? spec->body_length : sizeof copy->body);
    }
    return hfi_script_status(1, world.audit);
}

static int open_world(void **state) {
    (void)state;
    memset(&world, 0, sizeof world);
    world.shop = 404;
    world.audit = 204;
    stage_open(&world.stage, decide, NULL);
    for (int i = 0; i < 2; i++)
        hf_downstream_options_init(&world.downstreams[i]);
    world.downstreams[0].name = "shop";
    world.downstreams[0].url = "http://shop.example";
    world.downstreams[1].name = "audit";
    world.downstreams[1].url = "http://audit.example";
    world.types[0] = stage_http("order", "shop");
    world.types[1] = stage_noop("fix");
    hf_queue_options_init(&world.queue);
    world.queue.name = "fixes";
    for (int i = 0; i < 4; i++)
        hf_forward_options_init(&world.forwards[i]);
    world.forwards[0].name = "audit";
    world.forwards[0].source = "shop";
    world.forwards[0].downstream = "audit";
    world.forwards[0].path = "/dead";
    world.forwards[0].error_header = true;
    world.forwards[1].name = "fixing";
    world.forwards[1].source = "shop";
    world.forwards[1].to_queue = "fixes";
    world.forwards[1].to_type = "fix";
    stage_options(&world.options);
    world.options.types = world.types;
    world.options.type_count = 2;
    world.options.downstreams = world.downstreams;
    world.options.downstream_count = 2;
    world.options.queue_options = &world.queue;
    world.options.queue_count = 1;
    world.options.forwards = world.forwards;
    world.options.forward_count = 2;
    return 0;
}

static int close_world(void **state) {
    (void)state;
    stage_close(&world.stage);
    return 0;
}

static int64_t put_order(const char *source, int number) {
    static const unsigned char payload[] = {'{', 0, 0xff, '}'};
    struct hf_job_spec spec = {0};
    char id[24];
    hf_job_spec_init(&spec);
    snprintf(id, sizeof id, "m-%d", number);
    spec.type = "order";
    spec.payload = payload;
    spec.payload_length = sizeof payload;
    spec.content_type = "text/odd";
    spec.source = source;
    spec.source_message_id = source == NULL ? NULL : id;
    return stage_put(&world.stage, &spec);
}

/* S0.23: one Error line for each death and a Warning for each retry, by the node's own count and by the log. */
static void check_lines(size_t node) {
    struct hf_runner_counts counts = stage_counts(&world.stage, node);
    assert_int_equal(counts.death_lines, counts.died + counts.orphaned + counts.quarantined);
    assert_int_equal(counts.death_lines, stage_logged(&world.stage, "job.dead"));
    assert_int_equal(counts.retry_lines, stage_logged(&world.stage, "job.retry"));
}

/* S2.24, S2.25, S2.26, S2.28, S2.32 */
static void every_death_goes_where_the_rules_say(void **state) {
    (void)state;
    world.options.until_idle = true;
    for (int i = 0; i < 20; i++)
        put_order("shop", i);
    int64_t by_hand = put_order(NULL, 0);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 60 * SECOND);
    assert_true(stage_over(&world.stage, 0));
    struct hf_job_counts jobs = stage_jobs(&world.stage);
    assert_int_equal(jobs.dead, 21); /* the originals stay */
    assert_int_equal(jobs.succeeded, 40);
    assert_int_equal(jobs.dead_letters_open, 21);
    assert_int_equal(stage_counts(&world.stage, 0).forwarded, 40);
    assert_int_equal(stage_counts(&world.stage, 0).forward_failed, 0);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 21);
    check_lines(0);
    assert_int_equal(world.count, 20);
    for (size_t i = 0; i < world.count; i++) {
        const struct copy *copy = &world.copies[i];
        assert_string_equal(copy->error, "http.404");
        assert_string_equal(copy->type, "text/odd");
        assert_int_equal(copy->body_length, 4);
        assert_memory_equal(copy->body, "{\0\xff}", 4);
        struct hf_dead *dead;
        assert_int_equal(world.stage.port->ops->get_dead(world.stage.port, atoll(copy->letter), &dead, NULL), 0);
        struct hf_job *job = stage_job(&world.stage, hf_dead_look(dead)->job_id);
        assert_string_equal(copy->key, hf_job_look(job)->idempotency_key);
        assert_string_equal(hf_dead_forward_at(dead, 0)->outcome, "succeeded");
        hf_job_free(job);
        hf_dead_free(dead);
    }
    assert_int_equal(stage_state(&world.stage, by_hand), HF_JOB_DEAD);
}

/* S2.25, S2.28, C11: one that fails keeps no other, is retried by its curve, and its own death is told as any, once. */
static void a_forwarder_that_fails_fails_alone(void **state) {
    (void)state;
    struct hf_curve_options curve;
    hf_curve_options_init(&curve);
    curve.curve_length = 1;
    curve.curve_ms[0] = 60 * SECOND;
    curve.max_executions = 3;
    world.audit = 500;
    world.forwards[0].curve = &curve;
    put_order("shop", 1);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 30 * SECOND);
    struct hf_job_counts jobs = stage_jobs(&world.stage);
    assert_int_equal(jobs.succeeded, 1); /* the other one */
    assert_int_equal(jobs.dead, 1);
    assert_int_equal(jobs.pending, 1);
    stage_advance(&world.stage, 10 * 60 * SECOND);
    jobs = stage_jobs(&world.stage);
    assert_int_equal(jobs.dead, 2);
    assert_int_equal(jobs.dead_letters_open, 2);
    assert_int_equal(jobs.pending + jobs.running, 0); /* nothing came of that */
    assert_int_equal(stage_counts(&world.stage, 0).forward_failed, 1);
    assert_int_equal(stage_counts(&world.stage, 0).forwarded, 1);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 2);
    assert_int_equal(stage_logged(&world.stage, "job.retry"), 2);
    check_lines(0);
}

/* Rules that take everything, and lead back to where the job came from: each death makes its copies once. */
static void rules_in_a_circle_make_none(void **state) { /* S2.24 */
    (void)state;
    world.types[1] = stage_http("fix", "shop"); /* it dies too */
    world.forwards[0] = world.forwards[1];
    world.forwards[0].name = "there";
    world.forwards[0].source = NULL;
    world.forwards[1].name = "back";
    world.forwards[1].source = NULL;
    world.forwards[1].to_queue = "default";
    world.forwards[1].to_type = "order";
    for (int i = 0; i < 5; i++)
        put_order("shop", i);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 24 * HOUR);
    struct hf_job_counts jobs = stage_jobs(&world.stage);
    assert_int_equal(jobs.dead, 15);
    assert_int_equal(jobs.pending + jobs.running, 0);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 15);
    check_lines(0);
}

/* S0.18, C8: refused for now, the job stays running under its lease and the write is repeated: one row, one line, one copy. */
static void a_store_that_refuses_a_death_gets_it_later(void **state) {
    (void)state;
    int64_t id = put_order("shop", 1);
    stage_begin(&world.stage, 0, &world.options);
    world.stage.nodes[0].door.refuse_kinds = 1u << HFI_OP_APPLY;
    world.stage.nodes[0].door.refuse = HF_EBUSY;
    stage_advance(&world.stage, 600 * SECOND); /* beats get through: it is its own */
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_RUNNING);
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, 0);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 0);
    assert_int_equal(stage_logged(&world.stage, "job.unwritten"), 1);
    assert_true(world.stage.nodes[0].door.seen[HFI_OP_APPLY] > 10);
    world.stage.nodes[0].door.refuse = 0;
    stage_advance(&world.stage, 30 * SECOND);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_DEAD);
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, 1);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 2);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 1);
    check_lines(0);
}

/* Stands in for a crash: what was committed is there, the node knows nothing of it. */
static void forget(struct hfi_op *op, void *user) {
    struct stage_door *door = user;
    if (op->kind == HFI_OP_APPLY && door->refuse == 0) {
        struct hfi_op *one = op;
        door->inner->ops->commit(door->inner, &one, 1);
        door->refuse_kinds = 1u << HFI_OP_APPLY;
        door->refuse = HF_EBUSY;
    } else if (op->kind == HFI_OP_APPLY) {
        door->refuse = 0;
        door->hook = NULL;
    }
}

/* S0.19, S0.23, I46: a write that was made and not answered is repeated, and finds itself done: nothing twice. */
static void a_death_that_was_written_unheard_is_one(void **state) {
    (void)state;
    int64_t id = put_order("shop", 1);
    stage_begin(&world.stage, 0, &world.options);
    world.stage.nodes[0].door.hook = forget;
    world.stage.nodes[0].door.hook_user = &world.stage.nodes[0].door;
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(stage_state(&world.stage, id), HF_JOB_DEAD);
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, 1);
    assert_int_equal(stage_jobs(&world.stage).succeeded, 2);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 1);
    assert_int_equal(stage_logged(&world.stage, "job.stale"), 0);
    assert_int_equal(stage_counts(&world.stage, 0).died, 1);
    check_lines(0);
}

/* S2.20, S2.21: found dead by another node: the same, and once. */
static void a_node_that_dies_leaves_its_deaths_to_another(void **state) {
    (void)state;
    struct hf_curve_options once;
    hf_curve_options_init(&once);
    once.max_executions = 1;
    world.options.curve = &once;
    world.shop = 0; /* no answer */
    put_order("shop", 1);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, SECOND);
    world.stage.nodes[0].door.refuse = HF_EIO; /* it is not heard of any more */
    stage_begin(&world.stage, 1, &world.options);
    stage_advance(&world.stage, 300 * SECOND);
    struct hf_job_counts jobs = stage_jobs(&world.stage);
    assert_int_equal(jobs.dead, 1);
    assert_int_equal(jobs.succeeded, 2);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 1);
    struct hf_runner_counts counts = stage_counts(&world.stage, 1);
    assert_int_equal(counts.orphaned, 1);
    assert_int_equal(counts.death_lines, 1);
    world.stage.nodes[0].door.refuse = 0;
}

/* ------------------------------------------------------------------ every way to die */

static struct hf_work *held[STAGE_NODES]; /* until long after their nodes have fallen silent */
static size_t held_count;

static void hold(struct hf_work *work, void *user) {
    (void)user;
    assert_true(held_count < STAGE_NODES);
    held[held_count++] = work;
}

static void let_go(void) {
    while (held_count > 0) {
        struct hf_work *work = held[--held_count];
        hf_work_finish(work, hf_work_ok(work, NULL, 0));
    }
}

static void add_native(struct stage_node *node) {
    struct hf_type_options type = hf_type_native("code");
    struct hf_error error;
    hf_error_init(&error);
    type.execution_timeout_ms = 0;
    assert_int_equal(hfi_rulebook_add_async(node->book, &type, hold, NULL, &error), 0);
}

static void begin(size_t node) {
    stage_begin(&world.stage, node, &world.options);
    stage_advance(&world.stage, SECOND);
}

static void begin_with(const char *type) {
    begin(0);
    stage_enqueue(&world.stage, type, NULL);
    stage_advance(&world.stage, SECOND);
}

/* That node is not heard of any more; the next one finds out. */
static void lose(size_t node) {
    world.stage.nodes[node].door.refuse = HF_EIO;
    stage_advance(&world.stage, 300 * SECOND);
}

static void exhausted(void) {
    world.shop = 503;
    begin_with("order");
    stage_advance(&world.stage, 10 * 3600 * SECOND);
}

static void permanent(void) {
    begin_with("order");
}

static void timed_out(void) {
    world.shop = 0;
    world.types[0].execution_timeout_ms = 5 * SECOND;
    begin_with("order");
    stage_advance(&world.stage, 10 * 3600 * SECOND);
}

static void orphaned(void) {
    static struct hf_curve_options once;
    hf_curve_options_init(&once);
    once.max_executions = 1;
    world.options.curve = &once;
    world.shop = 0;
    begin_with("order");
    begin(1);
    lose(0);
}

/* On this stage a node only falls silent: this one's process is gone as well. */
static void crashed(struct hfi_op *op, void *user) {
    (void)user;
    if (op->kind == HFI_OP_SWEEP)
        ((struct hfi_op_sweep *)(void *)op)->crash = true;
}

static void crash_ceiling(void) {
    static struct hf_curve_options soon;
    hf_curve_options_init(&soon);
    soon.max_executions = 10;
    soon.curve_length = 1;
    soon.curve_ms[0] = SECOND;
    world.options.curve = &soon;
    world.options.max_crashes = 1;
    world.stage.prepare = add_native;
    begin_with("code");
    for (size_t node = 1; node < STAGE_NODES; node++) {
        begin(node);
        world.stage.nodes[node].door.hook = crashed;
        lose(node - 1);
    }
}

static void unknown_outcome(void) {
    world.types[0].repeatable = false;
    world.shop = 0;
    begin_with("order");
    begin(1);
    lose(0);
}

static void given_up(void) {
    hf_policy_options_init(&world.policy);
    world.policy.give_up_after_ms = HOUR;
    world.downstreams[0].policy = &world.policy;
    begin(0);
    hf_downstream_isolate(stage_downstream(&world.stage, 0, "shop"), 0, "gone");
    stage_advance(&world.stage, 100);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, HOUR + 200 * SECOND);
}

static void unknown_type(void) {
    begin_with("nobodys");
    stage_advance(&world.stage, HOUR);
}

static void wrong_payload(void) {
    world.types[0].payload = HF_PAYLOAD_JSON;
    begin(0);
    put_order(NULL, 1);
    stage_advance(&world.stage, SECOND);
}

static void rescued_unknown(void) {
    world.shop = 0;
    begin_with("order");
    world.types[0] = world.types[1]; /* the others of that version do not know it */
    world.options.type_count = 1;
    begin(1);
    lose(0);
    stage_advance(&world.stage, HOUR);
}

static void copy_fails(void) { /* the copy is on its own a job that dies; nothing comes of that but its letter */
    world.types[1] = stage_http("fix", "shop");
    begin_with("order");
    stage_advance(&world.stage, SECOND);
}

static void expired(void) {
    struct hf_job_spec spec = hf_job_of("order", "x");
    spec.run_at_us = world.stage.scheduler->ops->wall(world.stage.scheduler).us + 600 * 1000000;
    spec.expires_at_us = spec.run_at_us + 1;
    begin(0);
    hf_downstream_isolate(stage_downstream(&world.stage, 0, "shop"), 0, "gone");
    stage_put(&world.stage, &spec);
    stage_advance(&world.stage, 2 * HOUR);
}

static void cancelled(void) {
    world.shop = 0;
    begin_with("order");
    struct hfi_op_cancel op = {.id = 1, .actor = "ann", .reason = "", .now = world.stage.scheduler->ops->wall(world.stage.scheduler)};
    assert_int_equal(stage_do(&world.stage, &op.op, HFI_OP_CANCEL), 0);
    stage_advance(&world.stage, 60 * SECOND);
}

static const struct {
    const char *name;
    void (*go)(void);
    const char *cause; /* NULL: it does not die */
    enum hf_death_class death_class;
    bool quarantined;
    size_t letters;
} routes[] = {
    {"exhausted", exhausted, "exhausted", HF_DEATH_TRANSIENT_EXHAUSTED, false, 1},
    {"permanent", permanent, "permanent", HF_DEATH_PERMANENT, false, 1},
    {"timed out", timed_out, "exhausted", HF_DEATH_TRANSIENT_EXHAUSTED, false, 1},
    {"orphaned", orphaned, "orphaned", HF_DEATH_TRANSIENT_EXHAUSTED, false, 1},
    {"crash ceiling", crash_ceiling, "poison", HF_DEATH_POISON, false, 1},
    {"outcome unknown", unknown_outcome, "outcome.unknown", HF_DEATH_PERMANENT, false, 1},
    {"given up", given_up, "give_up", HF_DEATH_TRANSIENT_EXHAUSTED, false, 1},
    {"unknown type", unknown_type, "unknown_type", HF_DEATH_POISON, true, 1},
    {"wrong payload", wrong_payload, "payload", HF_DEATH_POISON, true, 1},
    {"unknown type at the rescue", rescued_unknown, "unknown_type", HF_DEATH_POISON, true, 1},
    {"its copy fails", copy_fails, "permanent", HF_DEATH_PERMANENT, false, 2},
    {"expired", expired, NULL, HF_DEATH_PERMANENT, false, 0},
    {"cancelled", cancelled, NULL, HF_DEATH_PERMANENT, false, 0},
};

static void tell_sinks(void) {
    for (int i = 0; i < 2; i++) {
        hf_sink_options_init(&world.sinks[i]);
        world.sinks[i].collapse_ms = 0;
        world.sinks[i].name = i == 0 ? "a" : "b";
        world.sinks[i].url = i == 0 ? "https://alerts.example/hook-a" : "https://alerts.example/hook-b";
    }
    world.options.sinks = world.sinks;
    world.options.sink_count = 2;
    world.forwards[0] = world.forwards[1]; /* whatever dies is copied once */
    world.forwards[0].source = NULL;
    world.options.forward_count = 1;
}

static void check_route(size_t route) {
    size_t letters = routes[route].letters;
    struct hf_dead *dead = NULL;
    for (int64_t id = 1; id <= (int64_t)letters; id++) {
        assert_int_equal(world.stage.port->ops->get_dead(world.stage.port, id, &dead, NULL), 0);
        if (id == 1) {
            assert_int_equal(hf_dead_look(dead)->job_id, 1);
            assert_int_equal(hf_dead_look(dead)->death_no, 1);
            assert_string_equal(hf_dead_look(dead)->cause, routes[route].cause);
            assert_int_equal(hf_dead_look(dead)->death_class, routes[route].death_class);
            assert_int_equal(hf_dead_look(dead)->quarantined, routes[route].quarantined);
            assert_int_equal(hf_dead_forward_count(dead), routes[route].quarantined ? 0 : 1);
        }
        hf_dead_free(dead);
    }
    assert_int_equal(world.stage.port->ops->get_dead(world.stage.port, (int64_t)letters + 1, &dead, NULL), HF_ENOENT);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), letters);
    assert_int_equal(world.told[0], letters);
    assert_int_equal(world.told[1], letters);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    uint64_t lines = 0;
    for (size_t node = 0; node < STAGE_NODES; node++)
        lines += world.stage.nodes[node].runner != NULL ? stage_counts(&world.stage, node).death_lines : 0;
    assert_int_equal(lines, letters);
}

/* I79: whatever it dies of: one letter, one Error line, one message to each sink, one copy; what is no death has none. */
static void every_way_to_die_is_told_once(void **state) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        print_message("- %s\n", routes[i].name);
        tell_sinks();
        routes[i].go();
        stage_advance(&world.stage, 10 * SECOND);
        check_route(i);
        for (size_t node = 0; node < STAGE_NODES; node++)
            world.stage.nodes[node].door.refuse = 0;
        let_go();
        if (i + 1 < sizeof routes / sizeof *routes) {
            close_world(state);
            open_world(state);
        }
    }
}

/* What would only be found out at the first death is refused at the start [S2.27]. */
static void a_target_that_is_not_there_is_refused(void **state) {
    (void)state;
    struct hfi_rulebook *book = NULL;
    struct hf_error error;
    hf_error_init(&error);
    world.forwards[0].downstream = "nowhere";
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), HF_ECONFIG);
    world.forwards[0].downstream = "audit";
    world.forwards[1].to_queue = "nowhere";
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), HF_ECONFIG);
    world.forwards[1].to_queue = "fixes";
    world.forwards[1].name = "audit";
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), HF_EEXIST);
    world.forwards[1].name = "handler";
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), HF_EINVAL);
    world.forwards[1].name = "fixing";
    world.forwards[1].to_type = "nothing";
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), 0); /* it may still be registered */
    assert_int_equal(hfi_rulebook_prove_forwards(book, &error), HF_ECONFIG);
    hfi_rulebook_free(book);
    world.forwards[1].to_type = "fix";
    world.forwards[1].downstream = "audit"; /* two targets */
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), HF_EINVAL);
    world.forwards[1].downstream = NULL;
    world.forwards[1].to_queue = world.forwards[1].to_type = NULL; /* none */
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), HF_EINVAL);
    world.types[1] = stage_noop("holdfast.death.order"); /* ours */
    world.options.forward_count = 0;
    assert_int_equal(hfi_rulebook_new(&world.options, &book, &error), HF_EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_death_goes_where_the_rules_say),
        TEST(a_forwarder_that_fails_fails_alone),
        TEST(rules_in_a_circle_make_none),
        TEST(a_store_that_refuses_a_death_gets_it_later),
        TEST(a_death_that_was_written_unheard_is_one),
        TEST(a_node_that_dies_leaves_its_deaths_to_another),
        TEST(every_way_to_die_is_told_once),
        TEST(a_target_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
