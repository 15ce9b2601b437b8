/* SPDX-License-Identifier: MIT */
/*
 * Counts unresolved name lookups for the whole process. libcurl's resolver threads cannot be stopped: a lookup that
 * was given up runs on, detached. It must never be forgotten, or a dead name server would pile up threads without
 * end. It must never block. Any thread, one short lock.
 */
#include "resilience/http/lookups.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

struct lookup {
    bool used;
    bool abandoned;
    int wire; /* abandoned: hangs up when the thread is gone; -1 unknown */
    struct hfi_lookup_owner owner;
    struct hf_mono lapses; /* abandoned: not held longer, whatever the wire says */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lookup lookups[HFI_LOOKUPS_MAX];

static void release(struct lookup *lookup) {
    if (lookup->wire >= 0) {
        close(lookup->wire);
    }
    lookup->used = false;
    lookup->abandoned = false;
    lookup->wire = -1;
}

/* Lets go of the abandoned ones whose thread has ended. */
static void reap(struct hf_mono now) {
    for (size_t i = 0; i < HFI_LOOKUPS_MAX; i++) {
        struct lookup *lookup = &lookups[i];
        if (!lookup->used || !lookup->abandoned) {
            continue;
        }
        struct pollfd poller = {.fd = lookup->wire, .events = 0};
        bool over = lookup->wire >= 0 && poll(&poller, 1, 0) > 0 && (poller.revents & (POLLHUP | POLLERR | POLLNVAL));
        if (over || now.us >= lookup->lapses.us) {
            release(lookup);
        }
    }
}

/* May one more begin beside those that are out? */
static bool is_allowed(struct hfi_lookup_owner owner) {
    unsigned of_downstream = 0, of_group = 0, of_groups = 0;
    for (size_t i = 0; i < HFI_LOOKUPS_MAX; i++) {
        if (!lookups[i].used)
            continue;
        const struct hfi_lookup_owner *other = &lookups[i].owner;
        of_downstream += other->downstream == owner.downstream && other->group == owner.group;
        of_group += other->group == owner.group;
        of_groups += other->group != 0;
    }
    return of_downstream < HFI_LOOKUPS_PER_DOWNSTREAM &&
           (owner.group == 0 || (of_group < HFI_LOOKUPS_PER_GROUP && of_groups < HFI_LOOKUPS_OF_GROUPS));
}

int hfi_lookup_begin(struct hfi_lookup_owner owner, struct hf_mono now) {
    int slot = -1;
    pthread_mutex_lock(&lock);
    reap(now);
    for (int i = 0; i < HFI_LOOKUPS_MAX && slot < 0; i++)
        if (!lookups[i].used)
            slot = i;
    if (slot >= 0 && !is_allowed(owner))
        slot = -1;
    if (slot >= 0)
        lookups[slot] = (struct lookup){.used = true, .wire = -1, .owner = owner};
    pthread_mutex_unlock(&lock);
    return slot;
}

void hfi_lookup_end(int slot) {
    if (slot < 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    release(&lookups[slot]);
    pthread_mutex_unlock(&lock);
}

void hfi_lookup_abandon(int slot, int wire, struct hf_mono now) {
    if (slot < 0) {
        if (wire >= 0) {
            close(wire);
        }
        return;
    }
    pthread_mutex_lock(&lock);
    lookups[slot].abandoned = true;
    lookups[slot].wire = wire;
    lookups[slot].lapses = hfi_mono_after_ms(now, HFI_LOOKUP_LAPSE_MS);
    pthread_mutex_unlock(&lock);
}

unsigned hfi_lookup_count(struct hf_mono now) {
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    reap(now);
    for (size_t i = 0; i < HFI_LOOKUPS_MAX; i++) {
        count += lookups[i].used;
    }
    pthread_mutex_unlock(&lock);
    return count;
}
