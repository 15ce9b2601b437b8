/* SPDX-License-Identifier: MIT */
/*
 * The demo's story, played against a real store, a real runner and a real server on loopback. It only uses what any
 * program could use. The caller's thread enqueues and samples; the runner has a thread of its own.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "program/commands/demo_story.h"

#define TICK_MS 100
#define JOBS_PER_TICK 12
#define DRAIN_LIMIT_MS 60000

struct play {
    unsigned seconds;
    struct hfi_misbehaving *server;
    struct hf_store *store;
    struct hf_runner *runner;
    struct hf_downstream *shop;
    struct hfi_demo_result *result;
    _Atomic uint64_t error_lines, trips;
    uint64_t turn;
    int64_t started_ms;
};

/* The acts, in percent of the story's time. */
static const struct act {
    unsigned until_percent;
    enum hfi_misbehaving_mood mood;
    const char *name;
} acts[] = {
    {25, MOOD_FLAKY, "all is well, one answer in eight is a 503"},
    {35, MOOD_HUNG, "the downstream hangs"},
    {60, MOOD_DEAD, "the downstream is down"},
    {100, MOOD_WELL, "the downstream is back"},
};

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void count_line(enum hf_log_level level, const char *event, const char *fields, void *user) {
    struct play *play = user;
    if (level == HF_LOG_ERROR && strcmp(event, "job.dead") == 0) {
        atomic_fetch_add(&play->error_lines, 1);
    }
    if (strcmp(event, "downstream.state") == 0 && strstr(fields, "\"to\":\"open\"") != NULL) {
        atomic_fetch_add(&play->trips, 1);
    }
}

static const struct act *act_at(const struct play *play, int64_t at_ms) {
    size_t i = 0;
    while (i + 1 < sizeof acts / sizeof acts[0] && at_ms * 100 >= (int64_t)acts[i].until_percent * play->seconds * 1000) {
        i++;
    }
    return &acts[i];
}

/* Twelve jobs: mostly good ones, now and then one the downstream will refuse for ever, or one nobody can run. */
static int enqueue_some(struct play *play, struct hf_error *error) {
    struct hf_job_spec specs[JOBS_PER_TICK];
    char payloads[JOBS_PER_TICK][48];
    int64_t ids[JOBS_PER_TICK];
    for (size_t i = 0; i < JOBS_PER_TICK; i++) {
        uint64_t turn = play->turn++;
        int length = snprintf(payloads[i], sizeof payloads[i], "{\"order\":%llu}", (unsigned long long)turn);
        hf_job_spec_init(&specs[i]);
        specs[i].type = turn % 97 == 50 ? "closed-account" : turn % 197 == 60 ? "removed-last-year" : "deliver";
        specs[i].payload = payloads[i];
        specs[i].payload_length = (size_t)length;
        specs[i].content_type = "application/json";
    }
    int code = hf_enqueue_many(play->store, specs, JOBS_PER_TICK, ids, NULL, error);
    if (code == 0) {
        play->result->accepted += JOBS_PER_TICK;
    }
    return code;
}

static void sample(struct play *play, struct hfi_demo_sample *now) {
    struct hfi_misbehaving_counts server;
    hfi_misbehaving_look(play->server, &server);
    struct hf_runner_counts runner = {.size = sizeof runner};
    hf_runner_look(play->runner, &runner);
    struct hf_downstream_view shop = {.size = sizeof shop};
    hf_downstream_look(play->shop, &shop);
    *now = (struct hfi_demo_sample){.at_ms = now_ms() - play->started_ms,
                                .ok = server.ok,
                                .failed = server.failed,
                                .unanswered = server.hung + server.dropped,
                                .gone = server.gone,
                                .parked = runner.parked,
                                .running = runner.running,
                                .pending = play->result->accepted - runner.succeeded - runner.died - runner.quarantined,
                                .breaker = shop.state};
    struct hfi_demo_result *result = play->result;
    result->peak_parked = now->parked > result->peak_parked ? now->parked : result->peak_parked;
    if (result->sample_count < DEMO_SAMPLES_MAX) {
        result->samples[result->sample_count++] = *now;
    }
}

static bool all_ended(struct play *play) {
    struct hf_job_counts jobs = {.size = sizeof jobs};
    struct hf_error error;
    hf_error_init(&error);
    return hf_store_count_jobs(play->store, &jobs, &error) == 0 && jobs.pending + jobs.waiting + jobs.running == 0 &&
           jobs.alerts_unsent == 0;
}

static int perform(struct play *play, hfi_demo_progress_fn progress, struct hf_error *error, void *user) {
    int64_t total_ms = (int64_t)play->seconds * 1000;
    play->started_ms = now_ms();
    for (;;) {
        struct hfi_demo_sample now;
        sample(play, &now);
        const struct act *act = act_at(play, now.at_ms);
        hfi_misbehaving_set_mood(play->server, act->mood);
        progress(&now, act->name, total_ms, user);
        if (now.at_ms < total_ms * 8 / 10) {
            int code = enqueue_some(play, error);
            if (code != 0) {
                return code;
            }
        } else if (now.at_ms >= total_ms && all_ended(play)) {
            play->result->drained = true;
            return 0;
        } else if (now.at_ms >= total_ms + DRAIN_LIMIT_MS) {
            return 0;
        }
        struct timespec tick = {0, TICK_MS * 1000000L};
        nanosleep(&tick, NULL);
    }
}

/* Short limits, so that a whole outage fits into the demo; the ladder is checked as always. */
static void fill_policy(struct hf_policy_options *policy) {
    hf_policy_options_init(policy);
    policy->connect_timeout_ms = 200;
    policy->attempt_timeout_ms = 400;
    policy->total_timeout_ms = 2000;
    policy->retry_max = 2;
    policy->retry_base_ms = 50;
    policy->retry_cap_ms = 200;
    policy->breaker_window_ms = 2000;
    policy->breaker_break_ms = 500;
    policy->breaker_max_break_ms = 1500;
    policy->breaker_ramp_ms = 3000;
    policy->bulkhead_max = 32;
}

static void fill_types(struct hf_type_options types[2]) {
    hf_type_options_init(&types[0]);
    types[0].kind = HF_KIND_HTTP;
    types[0].name = "deliver";
    types[0].downstream = "shop";
    types[0].path = "/ok";
    types[1] = types[0];
    types[1].name = "closed-account";
    types[1].path = "/gone";
}

static int open_runner(struct play *play, struct hf_error *error) {
    char url[64];
    char hook[80];
    snprintf(url, sizeof url, "http://127.0.0.1:%u", hfi_misbehaving_port(play->server));
    snprintf(hook, sizeof hook, "%s/hook", url);
    struct hf_policy_options policy;
    fill_policy(&policy);
    struct hf_downstream_options shop;
    hf_downstream_options_init(&shop);
    shop.name = "shop";
    shop.url = url;
    shop.policy = &policy;
    struct hf_sink_options pager;
    hf_sink_options_init(&pager);
    pager.collapse_ms = 0; /* one alert for each death: every count has to add up */
    pager.name = "pager";
    pager.url = hook;
    struct hf_curve_options curve;
    hf_curve_options_init(&curve);
    curve.max_executions = 20;
    curve.curve_length = 2;
    curve.curve_ms[0] = 500;
    curve.curve_ms[1] = 1000;
    struct hf_type_options types[2];
    fill_types(types);
    struct hf_runner_options options;
    hf_runner_options_init(&options);
    options.downstreams = &shop;
    options.downstream_count = 1;
    options.types = types;
    options.type_count = 2;
    options.sinks = &pager;
    options.sink_count = 1;
    options.curve = &curve;
    options.execution_timeout_ms = 10000;
    int code = hf_runner_new(play->store, &options, &play->runner, error);
    if (code == 0) {
        play->shop = hf_runner_downstream(play->runner, "shop");
        code = hf_runner_start(play->runner, error);
    }
    return code;
}

static void collect(struct play *play) {
    struct hfi_demo_result *result = play->result;
    struct hf_error error;
    hf_error_init(&error);
    result->jobs.size = sizeof result->jobs;
    result->runner.size = sizeof result->runner;
    hf_store_count_jobs(play->store, &result->jobs, &error);
    hf_runner_look(play->runner, &result->runner);
    hfi_misbehaving_look(play->server, &result->server);
    result->error_lines = atomic_load(&play->error_lines);
    result->trips = atomic_load(&play->trips);
}

int hfi_demo_play(const char *store_url, unsigned seconds, hfi_demo_progress_fn progress, struct hfi_demo_result *result,
              struct hf_error *error, void *user) {
    struct play play = {.seconds = seconds, .result = result};
    memset(result, 0, sizeof *result);
    hf_log_set(HF_LOG_INFO, count_line, &play);
    play.server = hfi_misbehaving_start();
    struct hf_store_options options;
    hf_store_options_init(&options);
    int code = play.server != NULL ? hf_store_open(store_url, &options, &play.store, error) : HF_EIO;
    if (code == 0) {
        code = open_runner(&play, error);
    }
    if (code == 0) {
        code = perform(&play, progress, error, user);
        hf_runner_drain(play.runner);
        collect(&play);
    }
    hf_downstream_unref(play.shop);
    hf_runner_free(play.runner);
    hf_store_close(play.store);
    hfi_misbehaving_stop(play.server);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    return code;
}
