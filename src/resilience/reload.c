/* SPDX-License-Identifier: MIT */
/*
 * Puts other downstreams in the place of those that a caller has, while calls run. Everything is checked and made before
 * anything changes; what both have by name goes on with its breaker (V15). Must never touch a call under way: it keeps
 * its target. Any thread, one at a time.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/call_internal.h"
#include "resilience/registry.h"

/* A downstream that goes on, or one of its hosts, under another policy. */
struct change {
    struct hf_downstream *downstream; /* one reference */
    struct hf_policy *from, *to;      /* of its target before and after, which outlive the change */
};
struct changes {
    struct change *items;
    size_t count;
};

static size_t hosts_of(const struct hfi_target *target) {
    return target->registry ? hfi_registry_count(target->registry) : 0;
}

/* The same policy needs no reload; each would keep memory for those who are reading the old one. */
static bool is_changed(const struct hfi_target *before, const struct hfi_target *after) {
    return memcmp(&before->policy->options, &after->policy->options, sizeof before->policy->options) != 0;
}

/* Under the lock. HF_ENOMEM: empty. */
static int collect(const struct hfi_roster *old, const struct hfi_roster *next, struct changes *changes) {
    size_t room = 0;
    for (size_t i = 0; i < old->count; i++)
        room += 1 + hosts_of(old->given[i]);
    struct hf_downstream **hosts = hfi_alloc_array(room + 1, sizeof(struct hf_downstream *));
    changes->items = hfi_alloc_array(room + 1, sizeof *changes->items);
    for (size_t i = 0; hosts && changes->items && i < next->count; i++) {
        const struct hfi_target *after = next->given[i], *before = hfi_roster_find(old, after->downstream->name);
        if (!before || !is_changed(before, after))
            continue;
        size_t count = before->registry ? hfi_registry_list(before->registry, hosts, room) : 0;
        hosts[count++] = hf_downstream_ref(before->downstream);
        for (size_t j = 0; j < count; j++)
            changes->items[changes->count++] = (struct change){hosts[j], before->policy, after->policy};
    }
    int rc = hosts && changes->items ? 0 : HF_ENOMEM;
    hfi_free(hosts);
    return rc;
}

/* All of them, or none. */
static int apply(struct changes *changes, struct hf_mono now) {
    size_t done = 0;
    int rc = 0;
    for (; rc == 0 && done < changes->count; done += rc == 0)
        rc = hfi_downstream_reload(changes->items[done].downstream, now, changes->items[done].to);
    while (rc && done-- > 0)
        hfi_downstream_reload(changes->items[done].downstream, now, changes->items[done].from);
    return rc;
}

static void take_back(struct changes *changes, struct hf_mono now) {
    for (size_t i = 0; i < changes->count; i++)
        hfi_downstream_reload(changes->items[i].downstream, now, changes->items[i].from);
}

/* Puts `next` in its place, with the hosts, and gives out what stood there. */
static int swap(struct hfi_caller *caller, struct hfi_roster **next) {
    struct hfi_roster *old = caller->roster;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < (*next)->count; i++) {
        struct hfi_target *after = (*next)->given[i];
        const struct hfi_target *before = hfi_roster_find(old, after->downstream->name);
        if (before && after->registry)
            rc = hfi_registry_adopt(after->registry, after, before->registry);
    }
    if (rc == 0) {
        caller->roster = *next;
        *next = old;
    }
    return rc;
}

/* The faults of the options for those that go on; checked before, so only memory can be missing. */
static int inject(const struct hfi_caller *caller, const struct hf_downstream_options *downstreams, size_t count,
                  struct hf_error *error) {
    const char *at = (const char *)downstreams;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct hf_downstream_options one;
        hfi_downstream_options_take(&one, (const void *)(at + i * downstreams->size), downstreams->size);
        rc = hf_downstream_inject(caller->roster->given[i]->downstream, one.faults, one.fault_count, NULL);
    }
    return rc ? hfi_fail(error, rc, "reload", "reload again", "the downstreams are new, but no memory for all faults") : 0;
}

int hfi_caller_reload(struct hfi_caller *caller, const struct hf_downstream_options *downstreams, size_t count,
                      struct hf_error *error) {
    struct hf_mono now = caller->scheduler->ops->mono(caller->scheduler);
    struct changes changes = {0};
    struct hfi_roster *next = NULL;
    pthread_mutex_lock(&caller->reloading);
    int rc = hfi_roster_new(caller, downstreams, count, caller->roster, &next, error);
    if (rc == 0) {
        pthread_mutex_lock(&caller->lock);
        rc = collect(caller->roster, next, &changes);
        pthread_mutex_unlock(&caller->lock);
        if (rc == 0)
            rc = apply(&changes, now); /* may call observers: not under the lock */
        if (rc == 0) {
            pthread_mutex_lock(&caller->lock);
            rc = swap(caller, &next);
            pthread_mutex_unlock(&caller->lock);
            if (rc)
                take_back(&changes, now);
        }
        rc = rc ? hfi_fail(error, rc, "reload", "the old downstreams stay", "out of memory")
                : inject(caller, downstreams, count, error);
    }
    hfi_roster_free(next); /* the old one, or what came of the new one */
    pthread_mutex_unlock(&caller->reloading);
    for (size_t i = 0; i < changes.count; i++)
        hf_downstream_unref(changes.items[i].downstream);
    hfi_free(changes.items);
    return rc;
}
