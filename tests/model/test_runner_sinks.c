/* SPDX-License-Identifier: MIT */
/* Storms and digests as mail, webhook and command hear of them, all at once [R7, S0.27]. */
#include "alert_world.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "jobs/deaths/letter.h"
#include "jobs/deaths/sink.h"
#include "jobs/deaths/wording.h"

/* A mail or a command that is only written down: its dialogue needs no virtual time. */
struct spy {
    struct hfi_sink sink;
    struct hfi_scheduler *scheduler;
    const struct hf_sink_options *options;
};
struct hfi_sink_try {
    struct hfi_timer timer;
    hfi_sink_fn done;
    void *user;
};
static struct {
    size_t count;
    uint64_t deaths[64];
    enum hf_alert_kind kinds[64];
    char *texts[64];
} spied[2]; /* mail, command */

static void spy_answers(struct hfi_timer *timer, void *user) {
    struct hfi_sink_try *try = user;
    hfi_sink_fn done = try->done;
    user = try->user;
    (void)timer;
    hfi_free(try);
    done(NULL, NULL, user);
}

static int spy_send(struct hfi_sink *self, const struct hfi_alert *alert, hfi_sink_fn done, void *user, struct hfi_sink_try **out) {
    struct spy *spy = (struct spy *)(void *)self;
    size_t which = spy->options->kind == HF_SINK_COMMAND, at = spied[which].count++;
    struct hfi_sink_try *try = hfi_alloc(sizeof *try);
    struct hfi_bytes text;
    if (at < 64) {
        hfi_bytes_init(&text, 1 << 20);
        if (which == 0)
            hfi_letter(&text, spy->options, alert, spy->scheduler->ops->wall(spy->scheduler));
        else
            hfi_alert_json(&text, alert);
        spied[which].texts[at] = hfi_strdup(text.data);
        spied[which].deaths[at] = alert->deaths;
        spied[which].kinds[at] = alert->kind;
        hfi_bytes_free(&text);
    }
    try->done = done;
    try->user = user;
    hfi_timer_init(&try->timer, spy_answers, try);
    *out = try;
    return spy->scheduler->ops->arm(spy->scheduler, &try->timer, hfi_mono_after_ms(spy->scheduler->ops->mono(spy->scheduler), 20));
}

static void spy_cancel(struct hfi_sink *self, struct hfi_sink_try *try) {
    struct spy *spy = (struct spy *)(void *)self;
    spy->scheduler->ops->disarm(spy->scheduler, &try->timer);
    hfi_free(try);
}

static void spy_close(struct hfi_sink *self) {
    hfi_free(self);
}

static const struct hfi_sink_ops spy_ops = {spy_send, spy_cancel, spy_close};

static int new_spy(struct hfi_scheduler *scheduler, struct hfi_transport *transport, const struct hf_sink_options *options,
                   struct hfi_sink **sink, struct hf_error *error) {
    int code = hfi_sink_check(options, error);
    if (code != 0 || options->kind == HF_SINK_WEBHOOK)
        return code != 0 ? code : hfi_sink_new(scheduler, transport, options, sink, error);
    struct spy *spy = hfi_alloc(sizeof *spy);
    spy->sink = (struct hfi_sink){.ops = &spy_ops, .budget_ms = options->timeout_ms, .at_once = 1};
    snprintf(spy->sink.name, sizeof spy->sink.name, "%s", options->name);
    spy->scheduler = scheduler;
    spy->options = options;
    *sink = &spy->sink;
    return 0;
}

static struct hf_sink_options three[3];

static void open_three(struct world *world) {
    static const char *const to[] = {"ops@example.org"}, *const run[] = {"/bin/true"};
    open_world(world);
    memset(spied, 0, sizeof spied);
    for (int i = 0; i < 3; i++)
        hf_sink_options_init(&three[i]);
    three[0] = world->webhooks[0];
    three[0].collapse_ms = 600000;
    three[1].name = "mail";
    three[1].kind = HF_SINK_MAIL;
    three[1].server = "smtp://mail.example";
    three[1].from = "holdfast@example.org";
    three[1].to = to;
    three[1].to_count = 1;
    three[2].name = "page";
    three[2].kind = HF_SINK_COMMAND;
    three[2].command = run;
    three[2].command_length = 1;
    world->stage.new_sink = new_spy;
    world->options.sinks = three;
    world->options.sink_count = 3;
}

static void close_three(struct world *world) {
    stage_close(&world->stage);
    for (size_t i = 0; i < 64; i++) {
        hfi_free(spied[0].texts[i]);
        hfi_free(spied[1].texts[i]);
    }
}

/* R7, 3.8: webhook, mail and command at once: each hears of the first one and of a summary of 9,999, and of nothing else. */
static void each_kind_of_sink_hears_of_a_storm_twice(void **state) {
    (void)state;
    static struct world world;
    open_three(&world);
    stage_enqueue_many(&world.stage, "order", NULL, 10000);
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 60 * SECOND);
    assert_int_equal(stage_logged(&world.stage, "job.dead"), 10000);
    assert_int_equal(stage_jobs(&world.stage).dead_letters_open, 10000);
    assert_int_equal(world.count + spied[0].count + spied[1].count, 3);
    stage_advance(&world.stage, 3600 * SECOND);
    assert_int_equal(world.count, 2);
    assert_non_null(strstr(world.posts[1].body, "\"deaths\":9999"));
    for (size_t which = 0; which < 2; which++) {
        assert_int_equal(spied[which].count, 2);
        assert_int_equal(spied[which].kinds[0], HF_ALERT_ONE);
        assert_int_equal(spied[which].kinds[1], HF_ALERT_SUMMARY);
        assert_int_equal(spied[which].deaths[1], 9999);
    }
    assert_non_null(strstr(spied[0].texts[1], "holdfast: 9999 more jobs (order) died: http.404"));
    assert_non_null(strstr(spied[1].texts[1], "\"deaths\":9999"));
    struct hf_runner_counts counts = stage_counts(&world.stage, 0);
    assert_int_equal(counts.alerts_sent, 6);
    assert_int_equal(counts.alerts_summaries, 3);
    assert_int_equal(counts.alerts_digests, 0);
    assert_int_equal(stage_jobs(&world.stage).alerts_unsent, 0);
    close_three(&world);
}

/* 3.8: of 100 causes each sink tells 20 in the first minute, and the other 80 in one digest that names them all. */
static void each_kind_of_sink_gets_its_digest(void **state) {
    (void)state;
    static struct world world;
    static struct hf_type_options types[100];
    static char names[100][16];
    open_three(&world);
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "kind-%02d", i);
        types[i] = stage_http(names[i], "shop");
        types[i].path = "/orders";
        stage_enqueue(&world.stage, names[i], NULL);
    }
    world.options.types = types;
    world.options.type_count = 100;
    stage_begin(&world.stage, 0, &world.options);
    stage_advance(&world.stage, 59 * SECOND);
    assert_int_equal(world.count, 20);
    assert_int_equal(spied[0].count, 20);
    assert_int_equal(spied[1].count, 20);
    stage_advance(&world.stage, 1800 * SECOND);
    assert_int_equal(world.count, 21);
    for (size_t which = 0; which < 2; which++) {
        assert_int_equal(spied[which].count, 21);
        assert_int_equal(spied[which].kinds[20], HF_ALERT_DIGEST);
        assert_int_equal(spied[which].deaths[20], 80);
        for (int i = 0; i < 100; i++) {
            bool told = false;
            for (size_t at = 0; at < 20; at++)
                told = told || strstr(spied[which].texts[at], names[i]) != NULL;
            assert_true(told != (strstr(spied[which].texts[20], names[i]) != NULL)); /* each of them exactly once */
        }
    }
    assert_int_equal(stage_counts(&world.stage, 0).alerts_digests, 3);
    close_three(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_sink_hears_of_a_storm_twice),
        cmocka_unit_test(each_kind_of_sink_gets_its_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
