/* SPDX-License-Identifier: MIT */
/*
 * Deaths and the webhooks that hear of them: once per death and sink, independent of each other, retried until sent.
 */
#include "alert_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "jobs/deaths/patience.h"
#include "jobs/deaths/storm.h"
#include "seed.h"

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
    world.options.sink_count = 1;
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

static void keep_quiet(struct world *world) {
    world->options.sink_count = 1;
    world->options.poll_ms = 1800 * SECOND;
    world->options.heartbeat_ms = 1800 * SECOND;
    world->options.lease_ms = 3 * 3600 * SECOND;
}

/* 3.8: seven days of trying, whatever the wall clock says: it leaps by eight after the first try, and back again. */
static void a_clock_that_leaps_gives_nothing_up(void **state) {
    (void)state;
    static const int64_t days = INT64_C(24) * 3600 * SECOND;
    static struct world world;
    open_world(&world);
    keep_quiet(&world);
    world.a = hfi_script_status(20, 500);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 2 * SECOND);
    assert_int_equal(world.count, 1);
    for (int leap = 0; leap < 5; leap++) {
        hfi_virtual_step_wall(world.stage.scheduler, 8 * days * 1000);
        stage_advance(&world.stage, 2 * 3600 * SECOND);
    }
    assert_true(world.count > 8);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 0);
    stage_advance(&world.stage, 6 * days);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 0);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 1);
    stage_advance(&world.stage, days);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 1);
    assert_int_equal(stage_counts(&world.stage, 0).alerts_undelivered, 1);
    stage_close(&world.stage);
}

/* 3.8, S0.26: renamed: the alerts of the old name are missed for seven days of nodes that live, then end aloud. */
static void alerts_of_a_sink_that_is_no_more_end_after_seven_days(void **state) {
    (void)state;
    static const int64_t days = INT64_C(24) * 3600 * SECOND;
    static struct world world;
    open_world(&world);
    keep_quiet(&world);
    world.a = hfi_script_hang(true);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue_many(&world.stage, "order", NULL, 3);
    stage_advance(&world.stage, 2 * SECOND);
    stage_drain(&world.stage, 0);
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 20 * days); /* nobody is there to miss it */
    assert_true(stage_over(&world.stage, 0));
    world.webhooks[0].name = "renamed";
    stage_begin(&world.stage, 1, &world.options);
    stage_advance(&world.stage, SECOND);
    hfi_virtual_step_wall(world.stage.scheduler, 30 * days * 1000);
    stage_advance(&world.stage, 6 * days + 20 * 3600 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 0);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 3);
    stage_advance(&world.stage, 6 * 3600 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 1); /* one line, with their number */
    const char *line = stage_last(&world.stage, "alert.undelivered");
    assert_non_null(strstr(line, "\"sink\":\"a\""));
    assert_non_null(strstr(line, "\"alerts\":3"));
    assert_non_null(strstr(line, "local.no_sink"));
    assert_int_equal(stage_counts(&world.stage, 1).alerts_undelivered, 3);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    stage_close(&world.stage);
}

/* S0.32a: the node goes between death and alert: another one sends it. */
static void an_alert_outlives_its_node(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.options.sink_count = 1;
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

/* S0.26: what counts is how long it was tried, not how long ago the death was: all nodes were away for nine days. */
static void an_old_death_is_not_given_up_at_its_first_try(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.options.sink_count = 1;
    world.a = hfi_script_hang(true);
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, 2000);
    stage_drain(&world.stage, 0);
    stage_drain(&world.stage, 0);
    stage_advance(&world.stage, 9 * 24 * 3600 * SECOND);
    assert_true(stage_over(&world.stage, 0));
    world.a = hfi_script_status(20, 500);
    stage_begin(&world.stage, 1, &world.options);
    stage_advance(&world.stage, 20 * SECOND);
    assert_true(stage_logged(&world.stage, "alert.failed") >= 1);
    assert_int_equal(stage_logged(&world.stage, "alert.undelivered"), 0);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 1);
    world.a = hfi_script_status(20, 200);
    stage_advance(&world.stage, 120 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    stage_close(&world.stage);
}

/* A text of one's own does not hide how many died [S0.27]. */
static void a_summary_keeps_its_count(void **state) {
    (void)state;
    static struct world world;
    open_world(&world);
    world.webhooks[0].collapse_ms = world.webhooks[1].collapse_ms = 60 * SECOND;
    world.webhooks[0].text = "a {type} died";
    char longer[3000] = "{deaths} of {type} ";
    memset(longer + 19, 'x', sizeof longer - 20);
    world.webhooks[1].text = longer;
    stage_begin(&world.stage, 0, &world.options);
    stage_enqueue_many(&world.stage, "order", NULL, 5);
    stage_advance(&world.stage, 120 * SECOND);
    assert_int_equal(world.count, 4);
    for (size_t i = 0; i < world.count; i++) {
        const struct post *post = &world.posts[i];
        bool summary = strstr(post->body, "\"kind\":\"summary\"") != NULL;
        const char *text = post->to_b ? summary ? "\"text\":\"4 of order xxx" : "\"text\":\"1 of order xxx"
                           : summary  ? "\"text\":\"holdfast: 4 more jobs (order) died"
                                      : "\"text\":\"a order died\"";
        if (!strstr(post->body, text))
            fail_msg("no %s in %s", text, post->body);
        const char *content = strstr(post->body, "\"content\":\"");
        assert_non_null(content);
        assert_in_range(strlen(content), 1, 1900 + 14);
    }
    stage_close(&world.stage);
}

/* ------------------------------------------------------------------ storms */

static void collapse(struct world *world) {
    open_world(world);
    world->webhooks[0].collapse_ms = world->webhooks[1].collapse_ms = 600000;
}

/* 3.8, R7: a storm of one cause is two messages per sink, and every death has its row, its letter and its Error line. */
static void ten_thousand_deaths_of_one_cause_are_two_messages(void **state) {
    (void)state;
    static struct world world;
    collapse(&world);
    stage_enqueue_many(&world.stage, "order", NULL, 10000);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 10000);
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, 10000);
    assert_int_equal(world.count, 2); /* the first, at once, to each */
    stage_advance(&world.stage, 600 * SECOND);
    assert_int_equal(world.count, 4);
    for (size_t i = 2; i < 4; i++) {
        assert_non_null(strstr(world.posts[i].body, "\"deaths\":9999"));
        assert_non_null(strstr(world.posts[i].body, "holdfast: 9999 more jobs (order) died: http.404"));
    }
    stage_advance(&world.stage, 3600 * SECOND);
    assert_int_equal(world.count, 4);
    struct hf_alert_filter filter;
    struct hf_alert_list *list;
    hf_alert_filter_init(&filter);
    filter.limit = 1;
    assert_int_equal(world.stage.port->ops->list_alerts(world.stage.port, &filter, &list, NULL), 0);
    assert_int_equal(hf_alert_list_at(list, 0)->id, 20000); /* one row per death and sink */
    assert_int_equal(hf_alert_list_at(list, 0)->message_state, HF_ALERT_SENT);
    hf_alert_list_free(list);
    stage_close(&world.stage);
}

/* The storm goes on: one summary a window while they come, and then the next death is told at once again. */
static void a_storm_that_goes_on_is_summed_up_each_window(void **state) {
    (void)state;
    static struct world world;
    collapse(&world);
    world.options.sink_count = 1;
    stage_begin(&world.stage, 0, &world.options);
    for (int minute = 0; minute < 25; minute++) {
        stage_enqueue_many(&world.stage, "order", NULL, 2);
        stage_advance(&world.stage, 60 * SECOND);
    }
    assert_int_equal(world.count, 3); /* the first, and two windows */
    stage_advance(&world.stage, 1200 * SECOND);
    assert_int_equal(world.count, 4);
    uint64_t told = 0;
    for (size_t i = 0; i < world.count; i++)
        told += strtoull(strstr(world.posts[i].body, "\"deaths\":") + 9, NULL, 10);
    assert_int_equal(told, 50);
    stage_enqueue(&world.stage, "order", NULL); /* a window has passed in silence */
    stage_advance(&world.stage, SECOND);
    assert_int_equal(world.count, 5);
    assert_non_null(strstr(world.posts[4].body, "\"kind\":\"one\""));
    stage_close(&world.stage);
}

/* 3.8: of 100 causes 20 are told in the first minute, then one digest names all the others. */
static void a_hundred_causes_are_twenty_messages_and_a_digest(void **state) {
    (void)state;
    static struct world world;
    static struct hf_type_options types[100];
    static char names[100][16];
    collapse(&world);
    world.options.sink_count = 1;
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "kind-%02d", i);
        types[i] = stage_http(names[i], "shop");
        types[i].path = "/orders";
        stage_enqueue_many(&world.stage, names[i], NULL, 2);
    }
    world.options.types = types;
    world.options.type_count = 100;
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 59 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 200);
    assert_int_equal(world.count, 20);
    stage_advance(&world.stage, 10 * SECOND);
    assert_int_equal(world.count, 21);
    const char *digest = world.digest;
    assert_non_null(strstr(digest, "\"kind\":\"digest\",\"deaths\":80"));
    for (int i = 0; i < 100; i++) {
        char named[2048];
        bool told = false;
        snprintf(named, sizeof named, "\"type\":\"%s\"", names[i]);
        for (size_t post = 0; post < 20; post++)
            told = told || strstr(world.posts[post].body, named) != NULL;
        assert_true(told != (strstr(digest, named) != NULL)); /* each of them exactly once */
        snprintf(named, sizeof named, "- 1 x %s: http.404", names[i]);
        assert_true(told != (strstr(digest, named) != NULL));
    }
    stage_advance(&world.stage, 700 * SECOND); /* the second death of each cause: summaries, at the same pace */
    stage_advance(&world.stage, 120 * SECOND);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    stage_close(&world.stage);
}

/* I41: redriven and dead again is an arrival like any other: it is counted in the storm, or told at once. */
static void a_second_death_arrives_like_any_other(void **state) {
    (void)state;
    static struct world world;
    collapse(&world);
    world.options.sink_count = 1;
    stage_begin(&world.stage, 0, &world.options);
    int64_t id = stage_enqueue(&world.stage, "order", NULL);
    stage_advance(&world.stage, SECOND);
    for (int time = 1; time <= 2; time++) {
        struct hfi_op_requeue requeue = {.id = id, .actor = "ann",
                                         .now = world.stage.scheduler->ops->wall(world.stage.scheduler)};
        assert_int_equal(stage_do(&world.stage, &requeue.op, HFI_OP_REQUEUE), 0);
        stage_advance(&world.stage, SECOND);
        assert_int_equal(stage_logged(&world.stage, "job.dead"), 1 + time);
        if (time == 1)
            stage_advance(&world.stage, 600 * SECOND); /* its summary, and the next window */
    }
    assert_int_equal(world.count, 2);
    assert_non_null(strstr(world.posts[1].body, "\"death_no\":2"));
    stage_advance(&world.stage, 600 * SECOND);
    assert_int_equal(world.count, 3);
    assert_non_null(strstr(world.posts[2].body, "\"death_no\":3"));
    stage_close(&world.stage);
}

/* Arrivals, seals and clocks by the pure rule. */
static void the_rule_loses_no_death_to_a_clock(void **state) {
    (void)state;
    const int64_t window = 600 * INT64_C(1000000), t = INT64_C(1780000000000000);
    struct hfi_storm storm = {0};
    assert_int_equal(hfi_storm_arrives(&storm, t, window), HFI_STORM_FIRST);
    assert_int_equal(hfi_storm_arrives(&storm, t + window - 1, window), HFI_STORM_LEADS);
    storm.lead = 7;
    assert_int_equal(hfi_storm_arrives(&storm, t + window - 1, window), HFI_STORM_JOINS);
    assert_int_equal(hfi_storm_arrives(&storm, t + 5 * window, window), HFI_STORM_JOINS); /* nobody took it yet */
    hfi_storm_seal(&storm, t + 5 * window, window);
    assert_int_equal(storm.lead, 0);
    assert_int_equal(hfi_storm_arrives(&storm, t + 6 * window - 1, window), HFI_STORM_LEADS);
    assert_int_equal(hfi_storm_arrives(&storm, t + 6 * window, window), HFI_STORM_FIRST);
    assert_int_equal(hfi_storm_arrives(&storm, t, window), HFI_STORM_FIRST); /* the clock went back: not in hours */
    assert_int_equal(storm.until_us, t + window);
}

static void no_minute_has_more_than_twenty(void **state) {
    (void)state;
    struct hfi_storm_pace pace = {0};
    int64_t now = INT64_C(1780000000000000), sent[400];
    size_t count = 0;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("pace"));
    while (count < 400) {
        now += (int64_t)hfi_random_below(&random, 4000000);
        if (hfi_storm_room(&pace, now) == 0) {
            assert_true(hfi_storm_room_at(&pace, now) > now);
            now = hfi_storm_room_at(&pace, now);
        }
        assert_true(hfi_storm_room(&pace, now) > 0);
        hfi_storm_spend(&pace, now);
        sent[count++] = now;
        if (count > HFI_STORM_PER_MINUTE)
            assert_true(now - sent[count - 1 - HFI_STORM_PER_MINUTE] >= 60000000);
    }
    assert_true(hfi_storm_room(&pace, now - INT64_C(7200000000)) > 0); /* the clock went back two hours */
    bool held = hfi_storm_digests(&pace, now, true);
    assert_false(held);
}

static void the_waits_are_the_table(void **state) {
    (void)state;
    static const int64_t waits[] = {5000, 5000, 30000, 120000, 600000, 3600000, 3600000};
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(hfi_alerts_wait_ms(i), waits[i]);
    assert_int_equal(hfi_alerts_wait_ms(UINT32_MAX), 3600000);
    assert_false(hfi_alerts_give_up(HFI_ALERT_GIVE_UP_US - 1));
    assert_true(hfi_alerts_give_up(HFI_ALERT_GIVE_UP_US));
}

/* A piece is what it was by the wall clock, and never longer than the wait and the time that a try may take. */
static void a_leap_of_the_clock_is_one_wait(void **state) {
    (void)state;
    const int64_t t = INT64_C(1780000000000000), second = 1000000, lease = 30000;
    assert_int_equal(hfi_alerts_piece_us(1, t, t + 6 * second, lease), 6 * second);
    assert_int_equal(hfi_alerts_piece_us(1, t, t + HFI_ALERT_GIVE_UP_US, lease), 35 * second);
    assert_int_equal(hfi_alerts_piece_us(9, t, t + HFI_ALERT_GIVE_UP_US, lease), 3630 * second);
    assert_int_equal(hfi_alerts_piece_us(9, t, t - HFI_ALERT_GIVE_UP_US, lease), 0);
    assert_int_equal(hfi_alerts_piece_us(9, INT64_MIN, INT64_MAX, lease), 3630 * second);
    struct hfi_absence absence = {0};
    assert_true(hfi_absence_look(&absence, t));
    assert_false(hfi_absence_look(&absence, t + 20 * second)); /* another node */
    assert_true(hfi_absence_look(&absence, t + 60 * second));
    assert_int_equal(absence.absent_us, 60 * second);
    assert_true(hfi_absence_look(&absence, t + HFI_ALERT_GIVE_UP_US));
    assert_int_equal(absence.absent_us, 3660 * second);
    assert_true(hfi_absence_look(&absence, t)); /* the clock went back: from there on */
    assert_int_equal(absence.absent_us, 3660 * second);
    assert_false(hfi_absence_over(&absence));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_death_alerts_each_sink_once),
        cmocka_unit_test(a_hanging_sink_keeps_no_other_waiting),
        cmocka_unit_test(an_alert_is_retried_and_after_seven_days_given_up_aloud),
        cmocka_unit_test(a_clock_that_leaps_gives_nothing_up),
        cmocka_unit_test(alerts_of_a_sink_that_is_no_more_end_after_seven_days),
        cmocka_unit_test(a_leap_of_the_clock_is_one_wait),
        cmocka_unit_test(an_alert_outlives_its_node),
        cmocka_unit_test(an_old_death_is_not_given_up_at_its_first_try),
        cmocka_unit_test(a_summary_keeps_its_count),
        cmocka_unit_test(ten_thousand_deaths_of_one_cause_are_two_messages),
        cmocka_unit_test(a_storm_that_goes_on_is_summed_up_each_window),
        cmocka_unit_test(a_hundred_causes_are_twenty_messages_and_a_digest),
        cmocka_unit_test(a_second_death_arrives_like_any_other),
        cmocka_unit_test(the_rule_loses_no_death_to_a_clock),
        cmocka_unit_test(no_minute_has_more_than_twenty),
        cmocka_unit_test(the_waits_are_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
