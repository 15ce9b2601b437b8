/* SPDX-License-Identifier: MIT */
/* A stage with one http type and one downstream that answers what `step` says, URLs with "other" in them what `other` says. */
#ifndef HFI_TEST_CALLS_WORLD_H
#define HFI_TEST_CALLS_WORLD_H

#include <stdio.h>
#include <string.h>

#include "runner_stage.h"

#define SECOND INT64_C(1000)

struct world {
    struct stage stage;
    struct hf_runner_options options;
    struct hf_policy_options policy;
    struct hf_downstream_options downstream;
    struct hf_type_options type;
    struct hfi_script_step step;  /* the answer now */
    struct hfi_script_step other; /* of URLs with `other` */
    char key[400];                /* of the newest start */
    int keys_changed;
};

static inline struct hfi_script_step decide(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    struct world *world = user;
    const char *key = "";
    (void)number;
    for (size_t i = 0; i < spec->header_count; i++)
        if (strcmp(spec->headers[i].name, "Idempotency-Key") == 0)
            key = spec->headers[i].value;
    if (strcmp(key, world->key) != 0)
        world->keys_changed++;
    snprintf(world->key, sizeof world->key, "%s", key);
    return strstr(spec->url, "other") != NULL ? world->other : world->step;
}

static inline void open_world(struct world *world) {
    memset(world, 0, sizeof *world);
    world->step = world->other = hfi_script_status(10, 200);
    stage_open(&world->stage, decide, world);
    hf_policy_options_init(&world->policy);
    world->policy.retry_max = 0;
    hf_downstream_options_init(&world->downstream);
    world->downstream.name = "shop";
    world->downstream.url = "http://shop.example";
    world->downstream.policy = &world->policy;
    world->type = stage_http("order", "shop");
    stage_options(&world->options);
    world->options.types = &world->type;
    world->options.type_count = 1;
    world->options.downstreams = &world->downstream;
    world->options.downstream_count = 1;
}

#endif
