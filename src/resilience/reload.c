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
    struct hf_downstream *downstream; /* one reference, which keeps `from` too */
    struct hf_policy *from, *to;      /* `to` is of a target that outlives the change */
};
struct changes {
    struct change *items;
    size_t count, done; /* the first `done` are made */
};
struct reload {
    struct hfi_caller *caller;
    struct hfi_roster *next;
    struct hf_mono now;
    struct changes given, hosts;
};

static struct hf_policy *policy_of(struct hf_downstream *downstream) {
    return hfi_downstream_counted_policy(downstream);
}

/* What it has already needs no reload: each would keep memory for those who are reading the old one. */
static bool differs(struct hf_downstream *downstream, const struct hf_policy *policy) {
    return memcmp(&policy_of(downstream)->options, &policy->options, sizeof policy->options) != 0;
}

/* Takes over the reference. */
static void add(struct changes *changes, struct hf_downstream *downstream, struct hf_policy *to) {
    changes->items[changes->count++] = (struct change){downstream, policy_of(downstream), to};
}

/* HF_ENOMEM: empty. */
static int collect_given(struct reload *reload) {
    const struct hfi_roster *next = reload->next;
    reload->given.items = hfi_alloc_array(next->count + 1, sizeof *reload->given.items);
    for (size_t i = 0; reload->given.items && i < next->count; i++) {
        const struct hfi_target *after = next->given[i];
        bool goes_on = hfi_roster_find(reload->caller->roster, after->downstream->name) != NULL;
        if (goes_on && differs(after->downstream, after->policy))
            add(&reload->given, hf_downstream_ref(after->downstream), after->policy);
    }
    return reload->given.items ? 0 : HF_ENOMEM;
}

/* Of the hosts of one downstream, those that have to follow it; `back`: those that follow it and must not. */
static void pick_hosts(struct changes *changes, struct hf_downstream **hosts, size_t count,
                       const struct hfi_target *after, bool back) {
    for (size_t i = 0; i < count; i++) {
        if (back ? policy_of(hosts[i]) == after->policy : differs(hosts[i], after->policy))
            add(changes, hosts[i], back ? policy_of(after->downstream) : after->policy);
        else
            hf_downstream_unref(hosts[i]);
    }
}

/* Under the lock, and when those given have their policy: a host that is made from then on takes it. HF_ENOMEM: empty. */
static int collect_hosts(const struct reload *reload, struct changes *changes, bool back) {
    const struct hfi_roster *old = reload->caller->roster, *next = reload->next;
    size_t room = 1;
    for (size_t i = 0; i < old->count; i++)
        room += old->given[i]->registry ? hfi_registry_count(old->given[i]->registry) : 0;
    struct hf_downstream **hosts = hfi_alloc_array(room, sizeof(struct hf_downstream *));
    changes->items = hfi_alloc_array(room, sizeof *changes->items);
    for (size_t i = 0; hosts && changes->items && i < next->count; i++) {
        const struct hfi_target *before = hfi_roster_find(old, next->given[i]->downstream->name);
        if (before && before->registry)
            pick_hosts(changes, hosts, hfi_registry_list(before->registry, hosts, room), next->given[i], back);
    }
    int rc = hosts && changes->items ? 0 : HF_ENOMEM;
    hfi_free(hosts);
    return rc;
}

static int collect_hosts_locked(const struct reload *reload, struct changes *changes, bool back) {
    pthread_mutex_lock(&reload->caller->lock);
    int rc = collect_hosts(reload, changes, back);
    pthread_mutex_unlock(&reload->caller->lock);
    return rc;
}

/* May call observers: not under the lock. */
static int apply(struct changes *changes, struct hf_mono now) {
    int rc = 0;
    while (rc == 0 && changes->done < changes->count) {
        const struct change *change = &changes->items[changes->done];
        rc = hfi_downstream_reload(change->downstream, now, change->to);
        changes->done += rc == 0;
    }
    return rc;
}

static void undo(struct changes *changes, struct hf_mono now) {
    while (changes->done > 0) {
        const struct change *change = &changes->items[--changes->done];
        hfi_downstream_reload(change->downstream, now, change->from);
    }
}

static void forget(struct changes *changes) {
    for (size_t i = 0; i < changes->count; i++)
        hf_downstream_unref(changes->items[i].downstream);
    hfi_free(changes->items);
}

/* Those given first: a host that is made meanwhile has the old policy and is collected, or has the new one. */
static int change_policies(struct reload *reload) {
    int rc = collect_given(reload);
    if (rc == 0)
        rc = apply(&reload->given, reload->now);
    if (rc == 0)
        rc = collect_hosts_locked(reload, &reload->hosts, false);
    return rc ? rc : apply(&reload->hosts, reload->now);
}

static void take_back(struct reload *reload) {
    struct changes made_meanwhile = {0};
    undo(&reload->given, reload->now);
    undo(&reload->hosts, reload->now);
    if (collect_hosts_locked(reload, &made_meanwhile, true) == 0)
        apply(&made_meanwhile, reload->now);
    forget(&made_meanwhile);
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
    struct reload reload = {.caller = caller, .now = caller->scheduler->ops->mono(caller->scheduler)};
    pthread_mutex_lock(&caller->reloading);
    int rc = hfi_roster_new(caller, downstreams, count, caller->roster, &reload.next, error);
    if (rc == 0) {
        rc = change_policies(&reload);
        if (rc == 0) {
            pthread_mutex_lock(&caller->lock);
            rc = swap(caller, &reload.next);
            pthread_mutex_unlock(&caller->lock);
        }
        if (rc)
            take_back(&reload);
        rc = rc ? hfi_fail(error, rc, "reload", "the old downstreams stay", "out of memory")
                : inject(caller, downstreams, count, error);
    }
    forget(&reload.given);
    forget(&reload.hosts);
    hfi_roster_free(reload.next); /* the old one, or what came of the new one */
    pthread_mutex_unlock(&caller->reloading);
    return rc;
}
