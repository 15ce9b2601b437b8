/* SPDX-License-Identifier: MIT */
/*
 * Hosts by key, the last used first. Must never forget a host whose breaker knows something, grow beyond its bound or
 * look at more than a few hosts to find room. Pure; its owner locks.
 */
#include "resilience/registry.h"

#include <string.h>

#include "base/alloc.h"

#define LOOKS 8 /* hosts looked at for one that can go; they are not looked at again before all others were */

#define uthash_malloc(size) hfi_alloc(size)
#define uthash_free(memory, size) hfi_free(memory)
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(host) ((host)->homeless = true)
#include <uthash.h>

struct host {
    struct hfi_target *target;
    TAILQ_ENTRY(host) entry; /* by use */
    UT_hash_handle hh;
    bool homeless; /* no memory for its place in the table */
    char key[];
};

struct hfi_registry {
    struct host *by_key;
    TAILQ_HEAD(hosts_head, host) hosts; /* the last used first */
    size_t count, max;
    uint64_t overflows;
};

int hfi_registry_new(uint32_t max, struct hfi_registry **out) {
    struct hfi_registry *registry = hfi_alloc(sizeof *registry);
    if (!registry)
        return HF_ENOMEM;
    registry->max = max;
    TAILQ_INIT(&registry->hosts);
    *out = registry;
    return 0;
}

static void forget(struct hfi_registry *registry, struct host *host) {
    HASH_DEL(registry->by_key, host);
    TAILQ_REMOVE(&registry->hosts, host, entry);
    registry->count--;
    hfi_target_unref(host->target);
    hfi_free(host);
}

void hfi_registry_free(struct hfi_registry *registry) {
    struct host *host;
    if (!registry)
        return;
    while ((host = TAILQ_FIRST(&registry->hosts)))
        forget(registry, host);
    hfi_free(registry);
}

/* Adds `target` under `key` and takes it over; as the last used one or the first. On HF_ENOMEM it stays the caller's.
 */
static int add(struct hfi_registry *registry, const char *key, struct hfi_target *target, bool last_used) {
    size_t length = strlen(key);
    struct host *host = hfi_alloc(sizeof *host + length + 1);
    if (!host)
        return HF_ENOMEM;
    memcpy(host->key, key, length + 1);
    HASH_ADD_STR(registry->by_key, key, host);
    if (host->homeless) {
        hfi_free(host);
        return HF_ENOMEM;
    }
    host->target = target;
    if (last_used)
        TAILQ_INSERT_HEAD(&registry->hosts, host, entry);
    else
        TAILQ_INSERT_TAIL(&registry->hosts, host, entry);
    registry->count++;
    return 0;
}

/* Nobody holds it, so nobody can get hold of it while the owner's lock is held; and its breaker knows nothing. */
static bool is_idle(const struct host *host, struct hf_mono now) {
    return hfi_target_held_once(host->target) && hfi_downstream_forgettable(host->target->downstream, now);
}

/* Makes room for one; the longest unused first, a few at a time. Those that cannot go are not in the way next time. */
static bool make_room(struct hfi_registry *registry, struct hf_mono now) {
    for (int looks = 0; registry->count >= registry->max && looks < LOOKS; looks++) {
        struct host *host = TAILQ_LAST(&registry->hosts, hosts_head);
        if (is_idle(host, now)) {
            forget(registry, host);
            continue;
        }
        TAILQ_REMOVE(&registry->hosts, host, entry);
        TAILQ_INSERT_HEAD(&registry->hosts, host, entry);
    }
    return registry->count < registry->max;
}

int hfi_registry_take(struct hfi_registry *registry, struct hfi_target *origin, const char *key, struct hf_mono now,
                      struct hfi_target **target) {
    struct host *host;
    HASH_FIND_STR(registry->by_key, key, host);
    if (host) {
        TAILQ_REMOVE(&registry->hosts, host, entry);
        TAILQ_INSERT_HEAD(&registry->hosts, host, entry);
        *target = hfi_target_ref(host->target);
        return 0;
    }
    if (!make_room(registry, now)) {
        registry->overflows++;
        *target = hfi_target_ref(origin);
        return 0;
    }
    struct hfi_target *made;
    int rc = hfi_target_of_host(origin, key, NULL, &made);
    if (rc)
        return rc;
    rc = add(registry, key, made, true);
    if (rc)
        hfi_target_unref(made);
    else
        *target = hfi_target_ref(made);
    return rc;
}

int hfi_registry_adopt(struct hfi_registry *registry, struct hfi_target *origin, const struct hfi_registry *old) {
    struct host *host;
    int rc = 0;
    if (!old)
        return 0;
    TAILQ_FOREACH(host, &old->hosts, entry) {
        struct hfi_target *made = NULL;
        rc = hfi_target_of_host(origin, host->key, host->target->downstream, &made);
        if (rc == 0)
            rc = add(registry, host->key, made, false);
        if (rc) {
            hfi_target_unref(made);
            break;
        }
    }
    while (rc && (host = TAILQ_FIRST(&registry->hosts)))
        forget(registry, host);
    return rc;
}

size_t hfi_registry_count(const struct hfi_registry *registry) {
    return registry->count;
}

uint64_t hfi_registry_overflows(const struct hfi_registry *registry) {
    return registry->overflows;
}

size_t hfi_registry_list(const struct hfi_registry *registry, struct hf_downstream **list, size_t room) {
    const struct host *host;
    size_t count = 0;
    TAILQ_FOREACH(host, &registry->hosts, entry) {
        if (count == room)
            break;
        list[count++] = hf_downstream_ref(host->target->downstream);
    }
    return count;
}
