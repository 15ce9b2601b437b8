/* SPDX-License-Identifier: MIT */
#ifndef HF_TESTS_MODEL_LIMITED_H
#define HF_TESTS_MODEL_LIMITED_H

/*
 * Nodes that share limits by key and bounds of queues: two types, three queues, a limit of places and one of a rate. What is
 * measured is the calls themselves.
 */
#include "runner_stage.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "seed.h"

#define SECOND INT64_C(1000)
#define KEYS 8
#define STARTS HFI_SCRIPT_RECORDS

struct limited {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options types[2];
    struct hf_queue_options queues[3];
    struct hf_limit_options limits[2];
    struct hfi_random random;
    int64_t longest_ms; /* of an answer */
    bool fails;         /* now and then an answer is a 503 */
    bool first_fails;
    int keys[STARTS];   /* of each attempt; -1 none */
    char queue[STARTS]; /* first letter */
    int serial[STARTS]; /* which of those put */
    int put;            /* so many */
    uint32_t hang_one_in; /* calls; 0: none */
};

/* The payload says whose job it is: key, queue, serial number. */
static inline struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    struct limited *world = user;
    const char *body = spec->body;
    assert_true(number < STARTS && spec->body_length == 2 + 6);
    world->keys[number] = body[0] == '-' ? -1 : body[0] - '0';
    world->queue[number] = body[1];
    for (size_t i = 2; i < spec->body_length; i++)
        world->serial[number] = 10 * world->serial[number] + body[i] - '0';
    if (world->hang_one_in > 0 && hfi_random_below(&world->random, world->hang_one_in) == 0)
        return hfi_script_hang(true);
    int64_t took = 1 + (int64_t)hfi_random_below(&world->random, (uint64_t)world->longest_ms);
    if (number == 0 && world->first_fails)
        return hfi_script_status(1, 503);
    return hfi_script_status(took, world->fails && hfi_random_below(&world->random, 10) == 0 ? 503 : 200);
}

static inline void set_world(struct limited *world) {
    world->longest_ms = 50;
    hf_policy_options_init(&world->policy);
    world->policy.retry_max = 0;
    world->policy.breaker_min_calls = 1000000; /* not what this is about */
    hf_downstream_options_init(&world->downstream);
    world->downstream.name = "shop";
    world->downstream.url = "http://shop.example";
    world->downstream.policy = &world->policy;
    world->types[0] = stage_http("order", "shop");
    world->types[1] = stage_http("parcel", "shop");
    for (size_t i = 0; i < 3; i++)
        hf_queue_options_init(&world->queues[i]);
    world->queues[0].name = "default";
    world->queues[1].name = "reports";
    world->queues[2].name = "critical";
    for (size_t i = 0; i < 2; i++)
        hf_limit_options_init(&world->limits[i]);
    world->limits[0].name = "tenant";
    world->limits[0].concurrency = 2;
    world->limits[1].name = "api";
    world->limits[1].rate_per_s = 10;
    stage_options(&world->options);
    world->options.types = world->types;
    world->options.type_count = 2;
    world->options.downstreams = &world->downstream;
    world->options.downstream_count = 1;
    world->options.queue_options = world->queues;
    world->options.queue_count = 3;
    world->options.limits = world->limits;
    world->options.limit_count = 2;
}

static inline void open_world(struct limited *world, const char *name) {
    memset(world, 0, sizeof *world);
    hfi_random_seed(&world->random, test_seed(name));
    stage_open(&world->stage, decide, world);
    set_world(world);
}

static inline int64_t put(struct limited *world, const char *type, const char *queue, const char *limit, int key) {
    char payload[16], text[2] = {(char)('0' + key), '\0'};
    snprintf(payload, sizeof payload, "-%c%06d", queue[0], world->put++ % 1000000);
    if (limit != NULL)
        payload[0] = text[0];
    struct hf_job_spec spec = hf_job_of(type, payload);
    spec.queue = queue;
    spec.limit_name = limit;
    spec.limit_key = limit == NULL ? NULL : text;
    return stage_put(&world->stage, &spec);
}

/* The most attempts of that key (-1: any) and queue (0: any) that were out at once. */
static inline uint32_t most_at_once(const struct limited *world, int key, char queue) {
    uint64_t count = hfi_scripted_started(world->stage.scripted);
    uint32_t most = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct hfi_script_record *one = hfi_scripted_record(world->stage.scripted, i);
        uint32_t at_once = 0;
        if ((key >= 0 && world->keys[i] != key) || (queue != 0 && world->queue[i] != queue))
            continue;
        for (uint64_t j = 0; j <= i; j++) { /* those out when this one started */
            const struct hfi_script_record *other = hfi_scripted_record(world->stage.scripted, j);
            bool same = (key < 0 || world->keys[j] == key) && (queue == 0 || world->queue[j] == queue);
            at_once += same && (j == i || other->end == HFI_SCRIPT_OPEN || other->ended.us > one->started.us);
        }
        most = at_once > most ? at_once : most;
    }
    return most;
}

static inline int64_t wall(const struct limited *world) {
    return world->stage.scheduler->ops->wall(world->stage.scheduler).us;
}

#endif
