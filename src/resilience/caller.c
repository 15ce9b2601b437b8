/* SPDX-License-Identifier: MIT */
/*
 * Who can be called: the targets by name, fixed at the start. Finding one is for any thread, all else for the
 * scheduler's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/call_internal.h"

static int by_name(const void *a, const void *b) {
    const struct hfi_target *const *left = a, *const *right = b;
    return strcmp((*left)->downstream->name, (*right)->downstream->name);
}

/* Sorts the targets by name; two of one name would share nothing and confuse everybody. */
static int sort(struct hfi_caller *caller, struct hf_error *error) {
    for (size_t i = 0; i < caller->count; i++)
        caller->by_name[i] = &caller->targets[i];
    if (caller->count > 0)
        qsort(caller->by_name, caller->count, sizeof *caller->by_name, by_name);
    for (size_t i = 1; i < caller->count; i++)
        if (by_name(&caller->by_name[i - 1], &caller->by_name[i]) == 0)
            return hfi_fail(error, HF_EINVAL, caller->by_name[i]->downstream->name, "give each its own name",
                            "two downstreams have this name");
    return 0;
}

static int add_targets(struct hfi_caller *caller, const struct hf_downstream_options *options, size_t count,
                       struct hf_error *error) {
    const char *at = (const char *)options;
    for (size_t i = 0; i < count; i++) {
        struct hf_downstream_options one;
        hf_downstream_options_init(&one);
        uint32_t size = one.size < options->size ? one.size : options->size; /* an older caller knows fewer fields */
        memcpy(&one, at + i * options->size, size);
        struct hfi_target *target = &caller->targets[i];
        int rc = hfi_target_init(target, &one, error);
        if (rc)
            return rc;
        caller->count++;
        target->caller = caller;
        hfi_timer_init(&target->poll, hfi_target_poll, target);
    }
    return sort(caller, error);
}

int hfi_caller_new(const struct hfi_caller_options *options, const struct hf_downstream_options *downstreams,
                   size_t count, struct hfi_caller **out, struct hf_error *error) {
    if (count > 0 && (!downstreams || downstreams->size == 0))
        return hfi_fail(error, HF_EINVAL, "downstreams", "use hf_downstream_options_init", "not initialised");
    struct hfi_caller *caller = hfi_alloc(sizeof *caller);
    if (!caller)
        return hfi_fail(error, HF_ENOMEM, "downstreams", NULL, "out of memory");
    caller->scheduler = options->scheduler;
    caller->transport = options->transport;
    hfi_random_seed(&caller->random, options->seed);
    TAILQ_INIT(&caller->calls);
    caller->targets = hfi_alloc_array(count, sizeof *caller->targets);
    caller->by_name = hfi_alloc_array(count, sizeof(struct hfi_target *));
    int rc = 0;
    if (!caller->targets || !caller->by_name)
        rc = hfi_fail(error, HF_ENOMEM, "downstreams", NULL, "out of memory");
    else
        rc = add_targets(caller, downstreams, count, error);
    if (rc) {
        hfi_caller_free(caller);
        return rc;
    }
    *out = caller;
    return 0;
}

void hfi_caller_end(struct hfi_caller *caller) {
    struct hfi_call *call;
    while ((call = TAILQ_FIRST(&caller->calls))) {
        hfi_call_cancel(call);
        hfi_call_finish(call);
    }
}

void hfi_caller_free(struct hfi_caller *caller) {
    if (!caller)
        return;
    for (size_t i = 0; i < caller->count; i++) {
        caller->scheduler->ops->disarm(caller->scheduler, &caller->targets[i].poll);
        hfi_target_end(&caller->targets[i]);
    }
    hfi_free(caller->targets);
    hfi_free(caller->by_name);
    hfi_free(caller);
}

struct hfi_target *hfi_caller_target(struct hfi_caller *caller, const char *name) {
    size_t low = 0, high = caller->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, caller->by_name[middle]->downstream->name);
        if (order == 0)
            return caller->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

struct hf_downstream *hfi_caller_downstream(struct hfi_caller *caller, const char *name) {
    struct hfi_target *target = hfi_caller_target(caller, name);
    return target ? target->downstream : NULL;
}

size_t hfi_caller_count(const struct hfi_caller *caller) {
    return caller->count;
}

struct hf_downstream *hfi_caller_at(struct hfi_caller *caller, size_t index) {
    return index < caller->count ? caller->targets[index].downstream : NULL;
}

const char *hfi_caller_probe_path(const struct hfi_caller *caller, size_t index) {
    return index < caller->count ? caller->targets[index].probe_path : NULL;
}
