/* SPDX-License-Identifier: MIT */
/*
 * Deaths and the webhooks that hear of them: once per death and sink, independent of each other, retried until sent.
 */
#include "runner_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "jobs/deaths/alerts.h"

#define SECOND INT64_C(1000)

struct post {
    bool to_b;
    int64_t at_us;
    char body[2048];
};

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type;
    struct hf_webhook_options webhooks[2];
    struct hfi_script_step a, b; /* the answers of the sinks */
    struct post posts[64];
    size_t count;
};

static struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    struct world *world = user;
    (void)number;
    if (strstr(spec->url, "hook") == NULL)
        return hfi_script_status(1, 404);
    if (world->count < 64) {
        struct post *post = &world->posts[world->count++];
        post->to_b = strstr(spec->url, "hook-b") != NULL;
        post->at_us = world->stage.scheduler->ops->mono(world->stage.scheduler).us;
        snprintf(post->body, sizeof post->body, "%.*s", (int)spec->body_length, (const char *)spec->body);
    }
    return strstr(spec->url, "hook-b") != NULL ? world->b : world->a;
}

static void open_world(struct world *world) {
    memset(world, 0, sizeof *world);
    world->a = world->b = hfi_script_status(20, 204);
    stage_open(&world->stage, decide, world);
    hf_policy_options_init(&world->policy);
    hf_downstream_options_init(&world->downstream);
    world->downstream.name = "shop";
    world->downstream.url = "http://shop.example";
    world->downstream.policy = &world->policy;
    world->type = stage_http("order", "shop");
    world->type.path = "/orders";
    for (int i = 0; i < 2; i++)
        hf_webhook_options_init(&world->webhooks[i]);
    world->webhooks[0].name = "a";
    world->webhooks[0].url = "https://alerts.example/hook-a?token=secret";
    world->webhooks[1].name = "b";
    world->webhooks[1].url = "https://alerts.example/hook-b";
    stage_options(&world->options);
    world->options.types = &world->type;
    world->options.type_count = 1;
    world->options.downstreams = &world->downstream;
    world->options.downstream_count = 1;
    world->options.webhooks = world->webhooks;
    world->options.webhook_count = 2;
}

static size_t posts_to(const struct world *world, bool b) {
    size_t count = 0;
    for (size_t i = 0; i < world->count; i++)
        count += world->posts[i].to_b == b;
    return count;
}

/* S0.24, S0.25: one POST per death and sink, both `text` and `content`, the error type and never its message. */
static void each_death_alerts_each_sink_once(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.options.until_idle = true;
    stage_enqueue_many(&world.stage, "order", NULL, 12);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 30 * SECOND);
    assert_true(stage_over(&world.stage, 0)); /* not before the alerts were sent */
    assert_int_equal(posts_to(&world, false), 12);
    assert_int_equal(posts_to(&world, true), 12);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 12);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    assert_int_equal(stage_counts(&world.stage, 0).alerts_sent, 24);
    const char *body = world.posts[0].body;
    assert_non_null(strstr(body, "\"text\":\"holdfast: job"));
    assert_non_null(strstr(body, "\"content\":\"holdfast: job"));
    assert_non_null(strstr(body, "\"error_type\":\"http.404\""));
    assert_non_null(strstr(body, "\"id\":\"alert-"));
    static const char *const fields[] = {"\"event\":\"job.dead\"", "\"type\":\"order\"", "\"queue\":\"default\"",
                                         "\"class\":\"permanent\"", "\"executions\":1", "\"death_no\":1",
                                         "\"correlation_id\":\"\"", "\"dead_at\":\"2026-"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!strstr(body, fields[i]))
            fail_msg("no %s in %s", fields[i], body);
    assert_null(strstr(body, "payload"));
    assert_null(strstr(body, "message"));
    stage_close(&world.stage);
}

/* S0.26: A hangs: B gets its POST within 1 s, A is abandoned at 10 s with one Warning, and tried again 5 s later. */
static void a_hanging_sink_keeps_no_other_waiting(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.a = hfi_script_hang(true);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 1000);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 1000);
    assert_int_equal(posts_to(&world, true), 1);
    stage_advance(&world.stage, 8 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "alert.failed"), 0);
    stage_advance(&world.stage, 1500);
    assert_int_equal(stage_logged(&world.stage, "alert.failed"), 1);
    assert_non_null(strstr(stage_last(&world.stage, "alert.failed"), "timeout.alert"));
    assert_null(strstr(stage_last(&world.stage, "alert.failed"), "secret"));
    world.a = hfi_script_status(20, 200);
    stage_advance(&world.stage, 6 * SECOND);
    assert_int_equal(posts_to(&world, false), 2);
    char id[32];
    const char *first = strstr(world.posts[0].to_b ? world.posts[1].body : world.posts[0].body, "alert-");
    assert_non_null(first);
    snprintf(id, sizeof id, "%.*s", (int)strcspn(first, "\""), first);
    assert_non_null(strstr(world.posts[world.count - 1].body, id)); /* the same id at the second try */
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 1); /* a failing sink makes no deaths (J3) */
    stage_close(&world.stage);
}

/* 3.8: waits of 5 s, 30 s, 2 m, 10 m, 1 h, and for ever; after seven days one Error line. */
static void an_alert_is_retried_and_after_seven_days_given_up_aloud(void **state) {
    (void)state;
    static const int64_t waits[] = {5, 30, 120, 600, 3600, 3600};
    static struct world world;
    open_world(&world);
    world.a = hfi_script_status(20, 500);
    world.options.webhook_count = 1;
    world.options.poll_ms = 3600 * SECOND;
    world.options.heartbeat_ms = 3600 * SECOND;
    world.options.lease_ms = 5 * 3600 * SECOND;
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 3 * 3600 * SECOND);
    for (size_t i = 0; i < 6 && i + 1 < world.count; i++)
        assert_in_range(world.posts[i + 1].at_us - world.posts[i].at_us - waits[i] * 1000000, 0, 6000000);
    assert_int_equal(world.count, 7);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 0);
    stage_advance(&world.stage, 7 * 24 * 3600 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 1);
    stage_advance(&world.stage, 24 * 3600 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 1);
    stage_close(&world.stage);
}

/* S0.32a: the node goes between death and alert: another one sends it. */
static void an_alert_outlives_its_node(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.options.webhook_count = 1;
    world.a = hfi_script_hang(true);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 2000);
    assert_int_equal(world.count, 1);
    stage_drain(&world.stage, 0);
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 1000);
    assert_true(stage_over(&world.stage, 0));
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 1);
    world.a = hfi_script_status(20, 200);
    stage_begin(&world.stage, 1, &world.options);
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(world.count, 2);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    stage_close(&world.stage);
}

static void the_waits_are_the_table(void **state) {
    (void)state;
    static const int64_t waits[] = {5000, 5000, 30000, 120000, 600000, 3600000, 3600000};
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(hfi_alerts_wait_ms(i), waits[i]);
    assert_int_equal(hfi_alerts_wait_ms(UINT32_MAX), 3600000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_death_alerts_each_sink_once),
        cmocka_unit_test(a_hanging_sink_keeps_no_other_waiting),
        cmocka_unit_test(an_alert_is_retried_and_after_seven_days_given_up_aloud),
        cmocka_unit_test(an_alert_outlives_its_node),
        cmocka_unit_test(the_waits_are_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
