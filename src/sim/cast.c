/* SPDX-License-Identifier: MIT */
/*
 * Picks from a node's options what plays a part in a scenario: one downstream and the job types that are enqueued. Must
 * never change a policy, a curve or a limit: they are what is looked at. Pure.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "sim/scenario.h"

#define URL "http://downstream.simulated"

/* Arrays step by the size of their first item: they may be of an older caller. */
static const void *item(const void *items, uint32_t size, size_t index) {
    return (const char *)items + index * size;
}

static int pick_downstream(struct hfi_cast *cast, const struct hf_scenario *scenario, struct hf_error *error) {
    const struct hf_runner_options *node = scenario->node;
    for (size_t i = 0; i < node->downstream_count; i++) {
        const struct hf_downstream_options *from = item(node->downstreams, node->downstreams->size, i);
        if (from->name == NULL || strcmp(from->name, scenario->downstream) != 0)
            continue;
        hf_downstream_options_init(&cast->downstream);
        cast->downstream.name = from->name;
        cast->downstream.url = URL; /* of a per_host one: this is the only host */
        cast->downstream.policy = from->policy;
        cast->downstream.rules = from->rules;
        cast->downstream.rule_count = from->rule_count;
        cast->downstream.probe_path = from->probe_path;
        return 0;
    }
    return hfi_fail(error, HF_ECONFIG, "downstream", "name one of downstreams", "there is no downstream `%s`", scenario->downstream);
}

static const struct hf_type_options *find_type(const struct hf_type_options *types, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        const struct hf_type_options *type = item(types, types->size, i);
        if (type->name != NULL && strcmp(type->name, name) == 0)
            return type;
    }
    return NULL;
}

static int pick_type(struct hfi_cast *cast, const struct hf_scenario *scenario, const char *name, struct hf_error *error) {
    const struct hf_runner_options *node = scenario->node;
    if (find_type(cast->types, cast->options.type_count, name) != NULL)
        return 0;
    const struct hf_type_options *from = find_type(node->types, node->type_count, name);
    if (from == NULL)
        return hfi_fail(error, HF_ECONFIG, "loads", "name one of jobs", "there is no job type `%s`", name);
    if (from->kind != HF_KIND_HTTP || from->downstream == NULL || strcmp(from->downstream, scenario->downstream) != 0)
        return hfi_fail(error, HF_ECONFIG, "loads", "enqueue http jobs of the scenario's downstream",
                        "jobs of type `%s` do not call `%s`", name, scenario->downstream);
    struct hf_type_options *to = &cast->types[cast->options.type_count++];
    hf_type_options_init(to);
    to->kind = HF_KIND_HTTP;
    to->name = from->name;
    to->queue = from->queue;
    to->repeatable = from->repeatable;
    to->no_idempotency_key = from->no_idempotency_key;
    to->execution_timeout_ms = from->execution_timeout_ms;
    to->curve = from->curve;
    to->downstream = from->downstream;
    to->method = from->method;
    to->never_retry = from->never_retry;
    to->never_retry_count = from->never_retry_count;
    to->rules = from->rules;
    to->rule_count = from->rule_count;
    return 0;
}

int hfi_cast_init(struct hfi_cast *cast, const struct hf_scenario *scenario, struct hf_error *error) {
    memset(cast, 0, sizeof *cast);
    hf_runner_options_init(&cast->options);
    uint32_t size = scenario->node->size < sizeof cast->options ? scenario->node->size : (uint32_t)sizeof cast->options;
    memcpy(&cast->options, scenario->node, size);
    cast->options.size = (uint32_t)sizeof cast->options;
    cast->types = hfi_alloc_array(scenario->load_count, sizeof *cast->types);
    if (cast->types == NULL)
        return hfi_fail(error, HF_ENOMEM, "simulation", NULL, "no memory");
    int code = pick_downstream(cast, scenario, error);
    cast->options.type_count = 0;
    for (size_t i = 0; i < scenario->load_count && code == 0; i++)
        if (scenario->loads[i].job != NULL)
            code = pick_type(cast, scenario, scenario->loads[i].job, error);
    cast->options.node = "simulated";
    cast->options.until_idle = false;
    cast->options.downstreams = &cast->downstream;
    cast->options.downstream_count = 1;
    cast->options.types = cast->types;
    cast->options.queues = NULL;
    cast->options.queue_filter_count = cast->options.sink_count = cast->options.outbox_count = cast->options.forward_count = 0;
    cast->options.keep_succeeded_ms = cast->options.keep_cancelled_ms = 0; /* all of them are counted in the end */
    cast->options.keep_dead_ms = cast->options.keep_quarantined_ms = cast->options.keep_dead_letters_ms = 0;
    cast->options.watchdog_ms = 0;
    cast->options.hung = NULL;
    cast->options.phase = NULL;
    cast->jobs = cast->options.type_count > 0;
    if (code != 0)
        hfi_cast_end(cast);
    return code;
}

void hfi_cast_end(struct hfi_cast *cast) {
    hfi_free(cast->types);
    cast->types = NULL;
}
