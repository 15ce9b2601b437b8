/* SPDX-License-Identifier: MIT */
/*
 * Who can be called: the targets by name, and the hosts of those that have many. Must never call out under its lock.
 * Finding is for any thread, all else for the scheduler's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "resilience/call_internal.h"
#include "resilience/key.h"
#include "resilience/registry.h"

static int by_name(const void *a, const void *b) {
    const struct hfi_target *const *left = a, *const *right = b;
    return strcmp((*left)->downstream->name, (*right)->downstream->name);
}

/* Sorts the targets by name; two of one name would share nothing and confuse everybody. */
static int sort(struct hfi_roster *roster, struct hf_error *error) {
    memcpy(roster->by_name, roster->given, roster->count * sizeof(struct hfi_target *));
    qsort(roster->by_name, roster->count, sizeof *roster->by_name, by_name);
    for (size_t i = 1; i < roster->count; i++)
        if (by_name(&roster->by_name[i - 1], &roster->by_name[i]) == 0)
            return hfi_fail(error, HF_EINVAL, roster->by_name[i]->downstream->name, "give each its own name",
                            "two downstreams have this name");
    return 0;
}

/* The next target of the roster; one of the same name in `old` hands its downstream on. */
static int add_target(struct hfi_caller *caller, struct hfi_roster *roster, const struct hf_downstream_options *options,
                      const struct hfi_roster *old, struct hf_error *error) {
    const struct hfi_target *before = old && options->name ? hfi_roster_find(old, options->name) : NULL;
    struct hfi_target *target;
    int rc = hfi_target_new(caller, options, before ? before->downstream : NULL, &target, error);
    if (rc)
        return rc;
    roster->given[roster->count++] = target;
    return 0;
}

void hfi_downstream_options_take(struct hf_downstream_options *to, const struct hf_downstream_options *from, uint32_t size) {
    hf_downstream_options_init(to);
    memcpy(to, from, to->size < size ? to->size : size); /* an older caller knows fewer fields */
}

static int fill(struct hfi_caller *caller, struct hfi_roster *roster, const struct hf_downstream_options *options,
                size_t count, const struct hfi_roster *old, struct hf_error *error) {
    const char *at = (const char *)options;
    for (size_t i = 0; i < count; i++) {
        struct hf_downstream_options one;
        hfi_downstream_options_take(&one, (const void *)(at + i * options->size), options->size);
        int rc = add_target(caller, roster, &one, old, error);
        if (rc)
            return rc;
    }
    return count > 0 ? sort(roster, error) : 0;
}

int hfi_roster_new(struct hfi_caller *caller, const struct hf_downstream_options *downstreams, size_t count,
                   const struct hfi_roster *old, struct hfi_roster **out, struct hf_error *error) {
    if (count > 0 && (!downstreams || downstreams->size == 0))
        return hfi_fail(error, HF_EINVAL, "downstreams", "use hf_downstream_options_init", "not initialised");
    struct hfi_roster *roster = hfi_alloc(sizeof *roster);
    if (roster) {
        roster->given = hfi_alloc_array(count, sizeof(struct hfi_target *));
        roster->by_name = hfi_alloc_array(count, sizeof(struct hfi_target *));
    }
    int rc = roster && roster->given && roster->by_name
                 ? fill(caller, roster, downstreams, count, old, error)
                 : hfi_fail(error, HF_ENOMEM, "downstreams", NULL, "out of memory");
    if (rc) {
        hfi_roster_free(roster);
        return rc;
    }
    *out = roster;
    return 0;
}

void hfi_roster_free(struct hfi_roster *roster) {
    if (!roster)
        return;
    for (size_t i = 0; i < roster->count; i++) {
        hfi_target_retire(roster->given[i]);
        hfi_target_unref(roster->given[i]);
    }
    hfi_free(roster->given);
    hfi_free(roster->by_name);
    hfi_free(roster);
}

struct hfi_target *hfi_roster_find(const struct hfi_roster *roster, const char *name) {
    size_t low = 0, high = roster->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, roster->by_name[middle]->downstream->name);
        if (order == 0)
            return roster->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

int hfi_caller_new(const struct hfi_caller_options *options, const struct hf_downstream_options *downstreams,
                   size_t count, struct hfi_caller **out, struct hf_error *error) {
    struct hfi_caller *caller = hfi_alloc(sizeof *caller);
    if (!caller)
        return hfi_fail(error, HF_ENOMEM, "downstreams", NULL, "out of memory");
    caller->scheduler = options->scheduler;
    caller->transport = options->transport;
    hfi_random_seed(&caller->random, options->seed);
    TAILQ_INIT(&caller->calls);
    pthread_mutex_init(&caller->lock, NULL);
    pthread_mutex_init(&caller->reloading, NULL);
    int rc = hfi_roster_new(caller, downstreams, count, NULL, &caller->roster, error);
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
    hfi_roster_free(caller->roster);
    pthread_mutex_destroy(&caller->lock);
    pthread_mutex_destroy(&caller->reloading);
    hfi_free(caller);
}

struct hfi_target *hfi_caller_target(struct hfi_caller *caller, const char *name) {
    pthread_mutex_lock(&caller->lock);
    struct hfi_target *target = hfi_roster_find(caller->roster, name);
    if (target)
        hfi_target_ref(target);
    pthread_mutex_unlock(&caller->lock);
    return target;
}

/* A host without room. Said the 1st, 2nd, 4th, 8th … time. */
static void note_overflow(const char *name, uint64_t overflows, size_t hosts) {
    if ((overflows & (overflows - 1)) == 0)
        hfi_log(HF_LOG_WARNING, "downstream.hosts_full", HFI_S("downstream", name), HFI_I("hosts", hosts),
                HFI_I("calls", overflows), HFI_S("why", "no host is idle: further ones share one breaker"), NULL);
}

int hfi_caller_host_target(struct hfi_caller *caller, const char *name, const char *key, struct hfi_target **target) {
    struct hf_mono now = caller->scheduler->ops->mono(caller->scheduler);
    uint64_t overflows = 0;
    size_t hosts = 0;
    int rc = HF_ENOENT;
    pthread_mutex_lock(&caller->lock);
    struct hfi_target *origin = hfi_roster_find(caller->roster, name);
    if (origin && origin->registry) {
        rc = hfi_registry_take(origin->registry, origin, key, now, target);
        overflows = hfi_registry_overflows(origin->registry);
        hosts = hfi_registry_count(origin->registry);
    }
    pthread_mutex_unlock(&caller->lock);
    if (rc == 0 && *target == origin) /* compared only: it is ours by the reference */
        note_overflow(name, overflows, hosts);
    return rc;
}

struct hf_downstream *hfi_caller_downstream(struct hfi_caller *caller, const char *name) {
    struct hfi_target *target = hfi_caller_target(caller, name);
    struct hf_downstream *downstream = target ? hf_downstream_ref(target->downstream) : NULL;
    hfi_target_unref(target);
    return downstream;
}

struct hf_downstream *hfi_caller_host_of_key(struct hfi_caller *caller, const char *key, uint32_t *hosts_max) {
    char host[HFI_KEY_LENGTH];
    const char *name = hfi_host_key_split(key, host);
    struct hfi_target *target = NULL;
    if (!name || hfi_caller_host_target(caller, name, host, &target) != 0)
        return NULL;
    struct hf_downstream *downstream = target->origin ? hf_downstream_ref(target->downstream) : NULL;
    *hosts_max = target->hosts_max;
    hfi_target_unref(target);
    return downstream;
}

int hfi_caller_host(struct hfi_caller *caller, const char *name, const char *url, struct hf_downstream **downstream,
                    struct hf_error *error) {
    char key[HFI_KEY_LENGTH];
    struct hfi_url parts;
    struct hfi_target *target = hfi_caller_target(caller, name);
    if (!target)
        return hfi_fail(error, HF_ENOENT, name, NULL, "there is no such downstream");
    bool per_host = target->per_host;
    hfi_target_unref(target);
    if (!per_host)
        return hfi_fail(error, HF_EINVAL, name, "set per_host", "it has one address, not hosts");
    int rc = hfi_request_url_check(url, &parts, error);
    if (rc)
        return rc;
    hfi_key_print(&parts, key);
    rc = hfi_caller_host_target(caller, name, key, &target);
    if (rc)
        return hfi_fail(error, rc, name, NULL, "%s", hf_strerror(rc));
    if (target->origin)
        *downstream = hf_downstream_ref(target->downstream);
    else
        rc = hfi_fail(error, HF_EBUSY, name, "raise hosts_max", "it has its %u hosts, and none of them is idle",
                      target->hosts_max);
    hfi_target_unref(target);
    return rc;
}

/* All downstreams with their hosts, one reference each; NULL: no memory. Under the lock. */
static struct hf_downstream **list(const struct hfi_roster *roster, size_t *count) {
    size_t room = roster->count;
    for (size_t i = 0; i < roster->count; i++)
        room += roster->by_name[i]->registry ? hfi_registry_count(roster->by_name[i]->registry) : 0;
    struct hf_downstream **all = hfi_alloc_array(room + 1, sizeof(struct hf_downstream *));
    *count = 0;
    for (size_t i = 0; all && i < roster->count; i++) {
        all[(*count)++] = hf_downstream_ref(roster->by_name[i]->downstream);
        if (roster->by_name[i]->registry)
            *count += hfi_registry_list(roster->by_name[i]->registry, all + *count, room - *count);
    }
    return all;
}

int hfi_caller_each(struct hfi_caller *caller, hf_downstream_fn each, void *user) {
    size_t count;
    pthread_mutex_lock(&caller->lock);
    struct hf_downstream **all = list(caller->roster, &count);
    pthread_mutex_unlock(&caller->lock);
    if (!all)
        return HF_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        each(all[i], user);
        hf_downstream_unref(all[i]);
    }
    hfi_free(all);
    return 0;
}

int hfi_caller_list(struct hfi_caller *caller, struct hfi_listed **list, size_t *count) {
    size_t room = 1;
    pthread_mutex_lock(&caller->lock);
    const struct hfi_roster *roster = caller->roster;
    for (size_t i = 0; i < roster->count; i++)
        room += sizeof **list + (roster->given[i]->probe_path ? strlen(roster->given[i]->probe_path) + 1 : 0);
    struct hfi_listed *made = hfi_alloc(room);
    char *text = made ? (char *)(made + roster->count) : NULL;
    for (size_t i = 0; made && i < roster->count; i++) {
        const struct hfi_target *target = roster->given[i];
        made[i].downstream = hf_downstream_ref(target->downstream);
        made[i].probe_path = target->probe_path ? text : NULL;
        text = target->probe_path ? stpcpy(text, target->probe_path) + 1 : text;
    }
    *count = roster->count;
    pthread_mutex_unlock(&caller->lock);
    *list = made;
    return made ? 0 : HF_ENOMEM;
}
