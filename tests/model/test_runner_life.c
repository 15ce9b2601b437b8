/* SPDX-License-Identifier: MIT */
/*
 * The life of a node in virtual time: claims, ends, idleness, polls and wake-ups, drain, a store that refuses.
 */
#include "runner_stage.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "jobs/runner/runner_state.h"
#include "seed.h"

/* Everything is run once, the counts add up, and it ends by itself when nothing is due any more. */
static void until_idle_runs_what_is_due_and_ends(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    options.until_idle = true;
    stage_enqueue_many(&stage, "tick", NULL, 3000);
    struct hf_job_spec later = hf_job_of("tick", "");
    later.run_at_us = stage.scheduler->ops->wall(stage.scheduler).us + 3600 * INT64_C(1000000);
    int64_t scheduled = stage_put(&stage, &later);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 5000);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage.nodes[0].code, 0);
    struct hf_runner_counts counts = stage_counts(&stage, 0);
    assert_int_equal(counts.succeeded, 3000);
    assert_int_equal(counts.running, 0);
    assert_int_equal(stage_jobs(&stage).succeeded, 3000);
    assert_int_equal(stage_state(&stage, scheduled), HF_JOB_PENDING);
    stage_close(&stage);
}

/* I45: a job that becomes due while the node sleeps starts at its time, not a poll later. */
static void a_due_time_wakes_the_node(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 10000);
    struct hf_job_spec later = hf_job_of("tick", "");
    int64_t due = later.run_at_us = stage.scheduler->ops->wall(stage.scheduler).us + 777000;
    int64_t id = stage_put(&stage, &later);
    stage_advance(&stage, 5000);
    struct hf_job *job = stage_job(&stage, id);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
    assert_in_range(hf_job_look(job)->started_at_us - due, 0, 2000);
    hf_job_free(job);
    stage_close(&stage);
}

/* I32: nobody tells it: found within a poll. Told by its own writer: at once. */
static void an_enqueue_is_found_within_a_poll_and_heard_at_once(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 10050);
    int64_t now = stage.scheduler->ops->wall(stage.scheduler).us;
    int64_t silent = stage_enqueue(&stage, "tick", NULL); /* through another writer */
    stage_advance(&stage, 260);
    struct hf_job *job = stage_job(&stage, silent);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
    assert_in_range(hf_job_look(job)->started_at_us - now, 0, 251000);
    hf_job_free(job);
    struct hfi_writer *own = stage.writer;
    stage.writer = stage.nodes[0].store.writer;
    now = stage.scheduler->ops->wall(stage.scheduler).us;
    int64_t heard = stage_enqueue(&stage, "tick", NULL);
    stage.writer = own;
    stage_advance(&stage, 5);
    job = stage_job(&stage, heard);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_SUCCEEDED);
    assert_in_range(hf_job_look(job)->started_at_us - now, 0, 2000);
    hf_job_free(job);
    stage_close(&stage);
}

/* Idle it asks the store a few times a second and nothing more. */
static void an_idle_node_asks_no_more_than_it_polls(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 60000);
    const uint64_t *seen = stage.nodes[0].door.seen;
    assert_in_range(seen[HFI_OP_LANES], 230, 250);
    assert_int_equal(seen[HFI_OP_CLAIM], 0);
    assert_in_range(seen[HFI_OP_BEAT], 4, 4);
    assert_in_range(seen[HFI_OP_NODES], 59, 62);
    stage_close(&stage);
}

/* 3.4: outcomes, and the claim of the slots that they leave, are one commit; only the first claim and the last outcomes are
   alone. */
static void outcomes_and_the_next_claim_are_one_commit(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    stage_enqueue_many(&stage, "tick", NULL, 20000);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 60000);
    assert_int_equal(stage_jobs(&stage).succeeded, 20000);
    const struct stage_door *door = &stage.nodes[0].door;
    assert_true(door->seen[HFI_OP_CLAIM] >= 10);
    assert_in_range(door->worked, door->seen[HFI_OP_CLAIM], door->seen[HFI_OP_CLAIM] + 2);
    stage_close(&stage);
}

/* I4, I67: a store that refuses for now loses nothing, and the node goes on when it is back. */
static void a_store_that_refuses_for_now_loses_nothing(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    stage_enqueue_many(&stage, "tick", NULL, 200);
    stage.nodes[0].door.refuse = HF_EIO;
    stage.nodes[0].door.refuse_kinds = UINT64_C(1) << HFI_OP_APPLY;
    stage_advance(&stage, 10000);
    assert_true(stage_jobs(&stage).running > 0);
    assert_int_equal(stage_jobs(&stage).succeeded, 0);
    stage.nodes[0].door.refuse_kinds = 0;
    stage_advance(&stage, 10000);
    stage.nodes[0].door.refuse = 0;
    stage_advance(&stage, 6000);
    assert_int_equal(stage_jobs(&stage).succeeded, 200);
    assert_int_equal(stage_counts(&stage, 0).succeeded, 200);
    assert_int_equal(stage_logged(&stage, "job.dead"), 0);
    stage_close(&stage);
}

static void a_drain_of_an_idle_node_is_quick_and_leaves(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    stage_drain(&stage, 0);
    stage_advance(&stage, 10);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage.nodes[0].code, 0);
    assert_int_equal(stage.nodes[0].door.seen[HFI_OP_LEAVE], 1);
    stage_close(&stage);
}

/* A store that is away at the start is waited for; a stop meanwhile is obeyed (I26). */
static void joining_waits_for_the_store_and_can_be_stopped(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    stage_begin(&stage, 0, &options);
    stage.nodes[0].door.refuse = HF_EIO;
    stage_advance(&stage, 5000);
    assert_int_equal(stage.nodes[0].door.seen[HFI_OP_LANES], 0);
    stage.nodes[0].door.refuse = 0;
    stage_enqueue(&stage, "tick", NULL);
    stage_advance(&stage, 2000);
    assert_int_equal(stage_jobs(&stage).succeeded, 1);
    stage_begin(&stage, 1, &options);
    stage.nodes[1].door.refuse = HF_EIO;
    stage_advance(&stage, 3000);
    stage_drain(&stage, 1);
    stage_advance(&stage, 2000);
    assert_true(stage_over(&stage, 1));
    stage_close(&stage);
}

/* How long, in ms, until 300 jobs of a known type are done beside so many of one that nobody has. */
static int64_t done_beside(size_t gone) {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    int64_t ms = 0;
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    options.until_idle = true;
    for (size_t i = 0; i < (gone > 300 ? gone : 300); i++) {
        if (i < gone)
            stage_enqueue(&stage, "gone", NULL);
        if (i < 300)
            stage_enqueue(&stage, "tick", NULL);
    }
    stage_begin(&stage, 0, &options);
    for (; stage_jobs(&stage).succeeded < 300; ms += 10)
        stage_advance(&stage, 10);
    stage_advance(&stage, 5000);
    assert_true(stage_over(&stage, 0));
    assert_int_equal(stage_jobs(&stage).quarantined, gone);
    assert_int_equal(stage_jobs(&stage).dead_letters_open, gone);
    assert_int_equal(stage_jobs(&stage).succeeded, 300);
    assert_int_equal(stage_counts(&stage, 0).started, 300); /* none of the others had a handler called */
    assert_int_equal(stage_counts(&stage, 0).quarantined, gone);
    assert_int_equal(stage_logged(&stage, "job.dead"), gone); /* S0.23 */
    stage_close(&stage);
    return ms;
}

/* S1.15, S1.28, I21, I33: a thousand jobs of a type nobody has are put aside one by one; the others run, undelayed. */
static void unknown_types_are_quarantined_and_only_they(void **state) {
    (void)state;
    int64_t alone = done_beside(0), beside = done_beside(1000);
    assert_true(beside <= alone + 20);
}

static void unknown_types_wait_for_the_grace_while_others_live(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options, others;
    struct hf_type_options tick = stage_noop("tick"), tock = stage_noop("tock");
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &tick;
    options.type_count = 1;
    others = options;
    others.types = &tock;
    stage_begin(&stage, 0, &options);
    stage_begin(&stage, 1, &others);
    stage_advance(&stage, 3000);
    stage_enqueue(&stage, "tick", NULL);
    stage_enqueue(&stage, "tock", NULL);
    int64_t nobodys = stage_enqueue(&stage, "neither", NULL);
    stage_advance(&stage, 590000);
    assert_int_equal(stage_jobs(&stage).succeeded, 2);
    assert_int_equal(stage_state(&stage, nobodys), HF_JOB_PENDING);
    stage_advance(&stage, 20000);
    assert_int_equal(stage_state(&stage, nobodys), HF_JOB_QUARANTINED);
    stage_close(&stage);
}

static void a_paused_queue_waits_and_goes_on(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    struct hfi_op_pause pause = {.queue = "slow", .actor = "me", .pause = true};
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    pause.now = stage.scheduler->ops->wall(stage.scheduler);
    assert_int_equal(stage_do(&stage, &pause.op, HFI_OP_PAUSE), 0);
    stage_begin(&stage, 0, &options);
    int64_t held = stage_enqueue(&stage, "tick", "slow"), other = stage_enqueue(&stage, "tick", "fast");
    stage_advance(&stage, 5000);
    assert_int_equal(stage_state(&stage, held), HF_JOB_PENDING);
    assert_int_equal(stage_state(&stage, other), HF_JOB_SUCCEEDED);
    assert_true(stage.nodes[0].door.seen[HFI_OP_CLAIM] < 10); /* and no hot loop about it */
    pause.pause = false;
    assert_int_equal(stage_do(&stage, &pause.op, HFI_OP_PAUSE), 0);
    stage_advance(&stage, 300);
    assert_int_equal(stage_state(&stage, held), HF_JOB_SUCCEEDED);
    stage_close(&stage);
}

/* ------------------------------------------------------------------ other options while it runs */

struct setting {
    struct hf_downstream_options downstreams[2];
    struct hf_type_options types[6];
    struct hf_curve_options curve;
    struct hf_runner_options options;
};

static void set(struct setting *setting, int64_t wait_ms) {
    memset(setting, 0, sizeof *setting);
    stage_options(&setting->options);
    setting->downstreams[0] = hf_downstream_at("d", "http://d");
    setting->downstreams[1] = hf_downstream_at("e", "http://e");
    hf_curve_options_init(&setting->curve);
    setting->curve.max_executions = 9;
    setting->curve.curve_length = 1;
    setting->curve.curve_ms[0] = wait_ms;
    setting->options.curve = &setting->curve;
    setting->options.downstreams = setting->downstreams;
    setting->options.downstream_count = 2;
    setting->options.types = setting->types;
}

static void add_type(struct setting *setting, struct hf_type_options type) {
    setting->types[setting->options.type_count++] = type;
}

static struct hfi_script_step after_a_second(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)number;
    return hfi_script_status(1000, *(int *)user);
}

/* Nobody holds a place any more. */
static void assert_nothing_held(const struct stage *stage) {
    const struct hfi_runner *runner = stage->nodes[0].runner;
    const struct hfi_lanes *lanes = &runner->lanes;
    assert_int_equal(lanes->pool_used[0] + lanes->pool_used[1] + lanes->alone.used + lanes->alone.suspects, 0);
    for (size_t i = 0; i < lanes->queue_count; i++)
        assert_int_equal(lanes->queues[i]->used[0] + lanes->queues[i]->used[1] + lanes->queues[i]->stored, 0);
    for (size_t i = 0; i < runner->site_count; i++)
        assert_int_equal(runner->sites[i]->slots.used + runner->sites[i]->slots.waiting, 0);
}

/* A running execution ends by the options that it began with, the next one runs by the new ones [S2.14]. */
static void what_runs_goes_on_by_the_options_it_began_with(void **state) {
    (void)state;
    static const char *const never[] = {"http"};
    struct stage stage;
    struct setting before, after;
    int status = 503;
    stage_open(&stage, after_a_second, &status);
    set(&before, 3600000);
    add_type(&before, stage_http("push", "d"));
    before.types[0].repeatable = true;
    set(&after, 60000);
    add_type(&after, stage_http("push", "d"));
    after.options.never_retry = never;
    after.options.never_retry_count = 1;
    int64_t old = stage_enqueue(&stage, "push", NULL);
    stage_begin(&stage, 0, &before.options);
    stage_advance(&stage, 300);
    assert_int_equal(stage_state(&stage, old), HF_JOB_RUNNING);
    stage_renew(&stage, 0, &after.options);
    stage_advance(&stage, 120000);
    struct hf_job *job = stage_job(&stage, old); /* it is to be retried, and its own hour stays [S1.6] */
    assert_int_equal(hf_job_look(job)->state, HF_JOB_PENDING);
    assert_int_equal(hf_job_look(job)->executions, 1);
    hf_job_free(job);
    int64_t fresh = stage_enqueue(&stage, "push", NULL);
    stage_advance(&stage, 120000);
    assert_int_equal(stage_state(&stage, fresh), HF_JOB_DEAD);
    stage_advance(&stage, 3600000); /* its second execution is one of the new options */
    job = stage_job(&stage, old);
    assert_int_equal(hf_job_look(job)->state, HF_JOB_DEAD);
    assert_int_equal(hf_job_look(job)->executions, 2);
    hf_job_free(job);
    assert_nothing_held(&stage);
    stage_close(&stage);
}

/* S1.15, C17: a type that is gone is claimed no more, and what runs of it is finished; one that is new is claimed at once;
 * one that changed its kind, or what it calls, keeps no place. Another node lives, so unknown jobs wait. */
static void types_come_go_and_change(void **state) {
    (void)state;
    struct stage stage;
    struct setting before, after, other;
    int status = 200;
    stage_open(&stage, after_a_second, &status);
    set(&other, 1000);
    add_type(&other, stage_noop("elsewhere"));
    set(&before, 1000);
    add_type(&before, stage_http("gone", "e"));
    add_type(&before, stage_http("moves", "e"));
    add_type(&before, stage_http("becomes", "d"));
    set(&after, 1000);
    after.options.downstream_count = 1; /* e goes with the types that call it */
    add_type(&after, stage_noop("new"));
    add_type(&after, stage_http("moves", "d"));
    add_type(&after, stage_noop("becomes"));
    stage_begin(&stage, 1, &other.options);
    stage_begin(&stage, 0, &before.options);
    int64_t runs[3], waits;
    static const char *const names[] = {"gone", "moves", "becomes"};
    for (int i = 0; i < 3; i++)
        runs[i] = stage_enqueue(&stage, names[i], NULL);
    waits = stage_enqueue(&stage, "new", NULL);
    stage_advance(&stage, 600);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stage_state(&stage, runs[i]), HF_JOB_RUNNING);
    assert_int_equal(stage_state(&stage, waits), HF_JOB_PENDING);
    stage_renew(&stage, 0, &after.options);
    stage_advance(&stage, 20);
    assert_int_equal(stage_state(&stage, waits), HF_JOB_SUCCEEDED); /* at once, not a poll later */
    int64_t left = stage_enqueue(&stage, "gone", NULL), noop = stage_enqueue(&stage, "becomes", NULL),
            moved = stage_enqueue(&stage, "moves", NULL);
    stage_advance(&stage, 300);
    assert_int_equal(stage_state(&stage, noop), HF_JOB_SUCCEEDED); /* it calls nobody any more */
    stage_advance(&stage, 5000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stage_state(&stage, runs[i]), HF_JOB_SUCCEEDED);
    assert_int_equal(stage_state(&stage, moved), HF_JOB_SUCCEEDED);
    assert_int_equal(stage_state(&stage, left), HF_JOB_PENDING);
    assert_nothing_held(&stage);
    stage_renew(&stage, 0, &before.options); /* and back again */
    stage_advance(&stage, 5000);
    assert_int_equal(stage_state(&stage, left), HF_JOB_SUCCEEDED);
    assert_nothing_held(&stage);
    stage_close(&stage);
}

/* R9, S1.14: what could not be run before a reload is let in after it; a page that the writer has goes by the types it began
 * with, which live as long, and those it passed are looked at again by the new ones. */
static void a_reload_lets_quarantined_jobs_in(void **state) {
    (void)state;
    struct stage stage;
    struct setting settings[3];
    stage_open(&stage, NULL, NULL);
    stage.own_writers = true;
    for (int s = 0; s < 3; s++) {
        set(&settings[s], 1000);
        settings[s].options.poll_ms = 60000;
        settings[s].options.heartbeat_ms = 200;
        add_type(&settings[s], stage_noop("known"));
        for (int t = 0; t < s; t++) {
            add_type(&settings[s], stage_noop(t == 0 ? "late" : "later"));
            settings[s].types[t + 1].release_quarantined = true;
        }
    }
    stage_enqueue_many(&stage, "later", NULL, 3);
    stage_enqueue_many(&stage, "late", NULL, 150);
    stage_begin(&stage, 0, &settings[0].options);
    stage_advance(&stage, 5000);
    assert_int_equal(stage_jobs(&stage).quarantined, 153);
    struct stage_node *node = &stage.nodes[0];
    stage_renew(&stage, 0, &settings[1].options);
    for (int i = 0; i < 2000 && node->door.seen[HFI_OP_READMIT] == 0; i++)
        stage_advance(&stage, 1);
    stage_advance(&stage, 500);
    assert_int_equal(stage_counts(&stage, 0).readmitted, 97); /* the first page */
    node->writer_hangs = true;
    stage_advance(&stage, 1000);
    assert_true(node->runner->readmit_out);
    stage_renew(&stage, 0, &settings[2].options);
    assert_null(node->next); /* taken up while the writer has a page */
    node->writer_hangs = false;
    stage_advance(&stage, 5000);
    assert_int_equal(stage_counts(&stage, 0).readmitted, 153);
    assert_int_equal(stage_jobs(&stage).succeeded, 153);
    stage_close(&stage);
}

/* I14, I83: under load, with options that change at any moment, no place is lost, no job is, and none runs twice. */
static void options_that_change_all_the_time_lose_nothing(void **state) {
    (void)state;
    struct stage stage;
    struct setting settings[4];
    struct hfi_random random;
    int status = 200, puts = 0;
    static const char *const names[] = {"a", "b", "c", "d"};
    hfi_random_seed(&random, test_seed("options_that_change_all_the_time_lose_nothing"));
    stage_open(&stage, after_a_second, &status);
    for (int s = 0; s < 4; s++) { /* each type is http here and noop there, and is missing in one of them */
        set(&settings[s], 1000);
        settings[s].options.unknown_type_grace_ms = 3600000;
        settings[s].options.workers = 4;
        for (int t = 0; t < 4; t++)
            if (s != t)
                add_type(&settings[s], (s + t) % 2 ? stage_http(names[t], s % 3 ? "d" : "e") : stage_noop(names[t]));
    }
    struct setting other;
    set(&other, 1000);
    add_type(&other, stage_noop("elsewhere"));
    stage_begin(&stage, 1, &other.options);
    stage_begin(&stage, 0, &settings[0].options);
    for (int i = 0; i < 400; i++) {
        for (uint64_t n = hfi_random_below(&random, 4); n > 0; n--, puts++)
            stage_enqueue(&stage, names[hfi_random_below(&random, 4)], hfi_random_below(&random, 2) ? "q" : NULL);
        stage_advance(&stage, (int64_t)hfi_random_below(&random, 700));
        if (hfi_random_below(&random, 3) == 0)
            stage_renew(&stage, 0, &settings[hfi_random_below(&random, 4)].options);
    }
    for (int s = 0; s < 4; s++) {
        stage_renew(&stage, 0, &settings[s].options);
        stage_advance(&stage, 60000);
    }
    assert_nothing_held(&stage);
    struct hf_runner_counts counts = stage_counts(&stage, 0);
    assert_int_equal(stage_jobs(&stage).succeeded, puts);
    assert_int_equal(counts.succeeded, puts);
    assert_int_equal(counts.started, puts + (int)counts.rejected);
    stage_close(&stage);
}

/* ------------------------------------------------------------------ its watchdog */

static const struct hfi_watchdog_limits watch = {.deadline_ms = 60000, .grace_ms = 300000};

/* Rounds of the watchdog for `ms`; how often `word` was said of anything. */
static int watched(struct stage *stage, int64_t ms, enum hfi_watchdog_word word) {
    struct hfi_ward_word words[HFI_WARD_WORDS];
    int said = 0;
    for (int64_t gone = 0; gone < ms; gone += hfi_watchdog_round_ms(&watch)) {
        stage_advance(stage, hfi_watchdog_round_ms(&watch));
        size_t count = hfi_wards_look(stage->wards, &watch, stage->scheduler->ops->mono(stage->scheduler), words);
        for (size_t i = 0; i < count; i++) {
            said += words[i].word == word;
            assert_string_equal(words[i].name, "sweep");
        }
    }
    return said;
}

/* S4.7, S4.8: the sweep beats while all is well and while the store refuses; one that has come to a halt is told after its
 * deadline and begun again: it asks for the nodes as before. */
static void a_sweep_that_stands_still_is_begun_again_S4_7(void **state) {
    (void)state;
    struct stage stage;
    struct hf_runner_options options;
    struct hf_type_options type = stage_noop("tick");
    struct hfi_wards_counts counts;
    stage_open(&stage, NULL, NULL);
    stage_options(&options);
    options.types = &type;
    options.type_count = 1;
    assert_int_equal(hfi_wards_new(&stage.wards), 0);
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    assert_int_equal(watched(&stage, 3600000, HFI_WATCHDOG_LATE), 0);
    stage.nodes[0].door.refuse = HF_EBUSY;
    stage.nodes[0].door.refuse_kinds = UINT64_C(1) << HFI_OP_NODES;
    assert_int_equal(watched(&stage, 600000, HFI_WATCHDOG_LATE), 0);
    stage.nodes[0].door.refuse = 0;
    struct hfi_runner *runner = stage.nodes[0].runner;
    stage_advance(&stage, 1);
    stage.scheduler->ops->disarm(stage.scheduler, &runner->upkeep_timer);
    assert_int_equal(watched(&stage, 60000, HFI_WATCHDOG_RESTARTED), 0);
    uint64_t seen = stage.nodes[0].door.seen[HFI_OP_NODES];
    assert_int_equal(watched(&stage, 60000, HFI_WATCHDOG_RESTARTED), 1);
    assert_true(stage.nodes[0].door.seen[HFI_OP_NODES] > seen);
    assert_int_equal(watched(&stage, 3600000, HFI_WATCHDOG_LATE), 0);
    hfi_wards_count(stage.wards, &counts);
    assert_int_equal(counts.missed, 1);
    assert_int_equal(counts.restarted, 1);
    assert_int_equal(counts.late, 0);
    stage_end(&stage, 0);
    assert_int_equal(watched(&stage, 3600000, HFI_WATCHDOG_LATE), 0); /* nothing of it is on the roll any more */
    struct hfi_wards *wards = stage.wards;
    stage_close(&stage);
    hfi_wards_free(wards);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(until_idle_runs_what_is_due_and_ends),
        cmocka_unit_test(a_due_time_wakes_the_node),
        cmocka_unit_test(an_enqueue_is_found_within_a_poll_and_heard_at_once),
        cmocka_unit_test(an_idle_node_asks_no_more_than_it_polls),
        cmocka_unit_test(outcomes_and_the_next_claim_are_one_commit),
        cmocka_unit_test(a_store_that_refuses_for_now_loses_nothing),
        cmocka_unit_test(a_drain_of_an_idle_node_is_quick_and_leaves),
        cmocka_unit_test(joining_waits_for_the_store_and_can_be_stopped),
        cmocka_unit_test(unknown_types_are_quarantined_and_only_they),
        cmocka_unit_test(unknown_types_wait_for_the_grace_while_others_live),
        cmocka_unit_test(a_paused_queue_waits_and_goes_on),
        cmocka_unit_test(what_runs_goes_on_by_the_options_it_began_with),
        cmocka_unit_test(types_come_go_and_change),
        cmocka_unit_test(a_reload_lets_quarantined_jobs_in),
        cmocka_unit_test(options_that_change_all_the_time_lose_nothing),
        cmocka_unit_test(a_sweep_that_stands_still_is_begun_again_S4_7),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
