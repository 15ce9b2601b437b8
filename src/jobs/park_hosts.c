/* SPDX-License-Identifier: MIT */
/*
 * Sites of the hosts of per_host downstreams: the due jobs of a dead host are parked, those of the others go on. Decides
 * which hosts have a site: those with due jobs, half of what the registry of hosts holds at most, so that it can forget
 * others; the jobs of further ones stand under their downstream's, and are refused after the claim. Must never take a
 * lane from one site to another while jobs of it are counted there. Loop thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "jobs/runner_state.h"
#include "resilience/key.h"

#define HOSTS_MAX 512 /* looked at before each round */

static struct hfi_site *site_of(const struct hfi_lane *lane) {
    return (struct hfi_site *)(void *)lane->site;
}

int hfi_park_host(struct hfi_runner *runner, struct hfi_lane *lane, const char *breaker_key) {
    char host[HFI_KEY_LENGTH];
    if (lane->host != NULL || lane->used > 0 || (lane->site != NULL && site_of(lane)->parent == NULL))
        return 0; /* it has its place, also where a downstream is called like a host of another one */
    const char *name = hfi_host_key_split(breaker_key, host);
    struct hfi_site *parent = name == NULL ? NULL : hfi_park_site(runner, name);
    if (parent == NULL)
        return 0; /* of no host, or of a downstream that this node does not have */
    lane->host = hfi_strdup(breaker_key);
    if (lane->host == NULL)
        return HF_ENOMEM;
    lane->site = &parent->slots;
    return 0;
}

/* Nothing of it is under way, and its breaker has nothing to keep back. */
static bool is_idle(const struct hfi_site *site) {
    return site->state == HF_BREAKER_CLOSED && site->slots.used == 0 && !site->slots.blocked && !site->busy &&
           !site->share_busy && site->share_as == HFI_SHARED_NOTHING && !site->phase_pending && !site->forced &&
           site->unhealthy_since_us == 0;
}

/* The site stays, for another host: another thread may just be telling it something. Its lanes go back. */
static bool hand_over(struct hfi_runner *runner, struct hfi_site *site, const char *key, struct hf_downstream *downstream) {
    char *text = hfi_strdup(key);
    if (text == NULL)
        return false;
    for (size_t i = 0; i < runner->lanes.count; i++) {
        if (runner->lanes.lanes[i]->site == &site->slots)
            runner->lanes.lanes[i]->site = &site->parent->slots;
    }
    atomic_store(&site->downstream->watch, NULL);
    hf_downstream_unref(site->downstream);
    hfi_free(site->key);
    site->key = text;
    site->downstream = downstream;
    site->loaded = false;
    memset(&site->stored, 0, sizeof site->stored);
    return true;
}

/* A new site, or an idle one's place. Takes over the reference. NULL: there is none now. */
static struct hfi_site *make(struct hfi_runner *runner, struct hfi_site *parent, const char *key,
                             struct hf_downstream *downstream, uint32_t hosts_max) {
    struct hfi_site *idle = NULL;
    size_t most = hosts_max / 2 < HOSTS_MAX ? hosts_max / 2 : HOSTS_MAX, hosts = 0;
    for (size_t i = 0; i < runner->site_count; i++) {
        struct hfi_site *site = runner->sites[i];
        hosts += site->parent == parent;
        if (site->parent == parent && idle == NULL && is_idle(site))
            idle = site;
    }
    if (hosts < most) {
        struct hfi_site *made = hfi_park_add(runner, key, downstream);
        if (made != NULL) {
            made->parent = parent;
            made->parks = parent->parks;
        }
        return made;
    }
    if (idle != NULL && hand_over(runner, idle, key, downstream))
        return idle;
    hf_downstream_unref(downstream);
    return NULL;
}

void hfi_park_settle(struct hfi_runner *runner, struct hfi_lane *lane) {
    uint32_t hosts_max = 0;
    struct hfi_site *parent = site_of(lane);
    if (parent->parent != NULL || lane->used > 0)
        return;
    struct hfi_site *site = hfi_park_site(runner, lane->host);
    if (site == NULL) {
        struct hf_downstream *downstream = hfi_caller_host_of_key(runner->parts.caller, lane->host, &hosts_max);
        site = downstream == NULL ? NULL : make(runner, parent, lane->host, downstream, hosts_max);
        if (site != NULL)
            hfi_park_watch(site);
    }
    if (site != NULL)
        lane->site = &site->slots;
}
