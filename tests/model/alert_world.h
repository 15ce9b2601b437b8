/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_ALERT_WORLD_H
#define HF_TEST_ALERT_WORLD_H

/* A node whose jobs die at a downstream, and two webhooks that hear of it, in virtual time. */
#include "runner_stage.h"

#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000)

struct post {
    bool to_b;
    int64_t at_us;
    char body[8192];
};

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type;
    struct hf_sink_options webhooks[2];
    struct hfi_script_step a, b; /* the answers of the sinks */
    struct post posts[64];
    char digest[65536];
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
        if (strstr(post->body, "\"digest\"") != NULL)
            snprintf(world->digest, sizeof world->digest, "%.*s", (int)spec->body_length, (const char *)spec->body);
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
    for (int i = 0; i < 2; i++) {
        hf_sink_options_init(&world->webhooks[i]);
        world->webhooks[i].collapse_ms = 0;
    }
    world->webhooks[0].name = "a";
    world->webhooks[0].url = "https://alerts.example/hook-a?token=secret";
    world->webhooks[1].name = "b";
    world->webhooks[1].url = "https://alerts.example/hook-b";
    stage_options(&world->options);
    world->options.types = &world->type;
    world->options.type_count = 1;
    world->options.downstreams = &world->downstream;
    world->options.downstream_count = 1;
    world->options.sinks = world->webhooks;
    world->options.sink_count = 2;
}

#endif
