/* SPDX-License-Identifier: MIT */
/*
 * Sites of the hosts of per_host downstreams: the due jobs of a dead host are parked, those of the others go on. Decides
 * which hosts have a site: those with due jobs, half of what the registry of hosts holds at most, so that it can forget
 * others; the jobs of further ones stand under their downstream's, and are refused after the claim. Must never take a
 * lane from one site to another while jobs of it are counted there. Loop thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "jobs/runner/runner_state.h"
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

/*
 * Well, or with a break that is over: who comes first after that is its probe, from here or, by the stored row, which
 * keeps the phase, from a site to come. Without jobs no probe ever closes it.
 */
static bool is_at_rest(const struct hfi_site *site, struct hf_mono now) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&site->downstream->breaker, now, &look);
    if (look.state == HF_BREAKER_CLOSED)
        return site->unhealthy_since_us == 0;
    return look.probes_in_flight == 0 &&
           (look.state == HF_BREAKER_HALF_OPEN || (look.state == HF_BREAKER_OPEN && look.probe_ready));
}

/* Nothing of it is under way or due, and its breaker has nothing to keep back now. */
static bool is_idle(const struct hfi_site *site, struct hf_mono now) {
    return !site->wanted && site->slots.used == 0 && !site->slots.blocked && !site->busy && !site->share_busy &&
           site->share_as == HFI_SHARED_NOTHING && !site->phase_pending && !site->read_pending && !site->forced &&
           site->probe == NULL && is_at_rest(site, now);
}

static void mark_wanted(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++)
        runner->sites[i]->wanted = false;
    for (size_t i = 0; i < runner->lanes.count; i++) {
        const struct hfi_lane *lane = runner->lanes.lanes[i];
        if (lane->site != NULL && lane->due)
            site_of(lane)->wanted = true;
    }
}

static struct hfi_site *find_idle(struct hfi_runner *runner, const struct hfi_site *parent) {
    struct hf_mono now = hfi_runner_mono(runner);
    mark_wanted(runner);
    for (size_t i = 0; i < runner->site_count; i++) {
        if (runner->sites[i]->parent == parent && is_idle(runner->sites[i], now))
            return runner->sites[i];
    }
    return NULL;
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
    site->loaded = site->keeps = site->break_waits = false;
    site->state = HF_BREAKER_CLOSED;
    site->unhealthy_since_us = site->give_up_at_us = site->ready_at_us = 0;
    memset(&site->stored, 0, sizeof site->stored);
    return true;
}

/* A new site, or an idle one's place. Takes over the reference. NULL: there is none now. */
static struct hfi_site *make(struct hfi_runner *runner, struct hfi_site *parent, const char *key,
                             struct hf_downstream *downstream, uint32_t hosts_max) {
    size_t most = hosts_max / 2 < HOSTS_MAX ? hosts_max / 2 : HOSTS_MAX, hosts = 0;
    for (size_t i = 0; i < runner->site_count; i++)
        hosts += runner->sites[i]->parent == parent;
    if (hosts < most) {
        struct hfi_site *made = hfi_park_add(runner, key, downstream);
        if (made != NULL) {
            made->parent = parent;
            made->parks = parent->parks;
        }
        return made;
    }
    struct hfi_site *idle = find_idle(runner, parent);
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
