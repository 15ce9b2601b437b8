/* SPDX-License-Identifier: MIT */
/*
 * One name lookup per host at a time: who needs a host that is being looked up waits for that answer instead of
 * starting another resolver thread, and shares its failure. A lookup that was given up stays counted (lookups.c) and
 * the next in line tries again, until the limits of lookups.h refuse it. Must never call libcurl from its callbacks.
 * On the scheduler's thread.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "base/alloc.h"
#include "resilience/http/engine.h"
#include "resilience/http/lookups.h"

/* libcurl keeps a resolved name for 60 s (easy.c); within this time we know that it needs no lookup. */
#define FRESH_MS 50000
#define KNOWN_MS 1000
#define HOSTS_KEPT 1024

struct hfi_host {
    struct hfi_host *next, *next_settled;
    bool settled;
    size_t users; /* attempts that have it as theirs, wherever they are: it must not go before them */
    uint64_t hash;
    struct hf_mono fresh;       /* until then no lookup is needed */
    struct hfi_attempt *leader; /* who looks it up, or might */
    struct hfi_attempts waiters;
    char name[]; /* host:port as in the URL, lower case */
};

/* The authority of a URL without userinfo. */
static const char *authority(const char *url, size_t *length) {
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    size_t size = strcspn(start, "/?#");
    for (const char *at; (at = memchr(start, '@', size));) {
        size -= (size_t)(at + 1 - start);
        start = at + 1;
    }
    *length = size;
    return start;
}

/* Addresses need no lookup: `[::1]:80`, `127.0.0.1`. */
static bool is_address(const char *name, size_t length) {
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    if (length && name[0] == '[')
        return true;
    const char *colon = memchr(name, ':', length);
    if (colon)
        length = (size_t)(colon - name);
    if (length >= sizeof text)
        return false;
    memcpy(text, name, length);
    text[length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1;
}

bool hfi_hosts_is_address(const char *url) {
    size_t length;
    const char *name = authority(url, &length);
    return is_address(name, length);
}

static uint64_t hash_of(const char *name, size_t length) {
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint64_t)tolower((unsigned char)name[i])) * 1099511628211u;
    return hash;
}

static bool is_idle(const struct hfi_host *host, struct hf_mono now) {
    return host->users == 0 && !host->settled && now.us >= host->fresh.us;
}

/* Forgets hosts that nothing is known about any more. */
static void sweep(struct hfi_engine *engine, struct hf_mono now) {
    for (size_t i = 0; i < HFI_HOST_BUCKETS; i++) {
        struct hfi_host **link = &engine->hosts[i];
        while (*link) {
            struct hfi_host *host = *link;
            if (!is_idle(host, now)) {
                link = &host->next;
                continue;
            }
            *link = host->next;
            hfi_free(host);
            engine->host_count--;
        }
    }
}

static struct hfi_host *host_of(struct hfi_engine *engine, const char *name, size_t length) {
    uint64_t hash = hash_of(name, length);
    struct hfi_host **bucket = &engine->hosts[hash % HFI_HOST_BUCKETS];
    for (struct hfi_host *host = *bucket; host; host = host->next)
        if (host->hash == hash && strlen(host->name) == length && strncasecmp(host->name, name, length) == 0)
            return host;
    if (engine->host_count >= HOSTS_KEPT)
        sweep(engine, hfi_now(engine->scheduler));
    struct hfi_host *host = hfi_alloc(sizeof *host + length + 1);
    if (!host)
        return NULL;
    host->hash = hash;
    host->fresh.us = INT64_MIN;
    TAILQ_INIT(&host->waiters);
    memcpy(host->name, name, length);
    host->next = *bucket;
    *bucket = host;
    engine->host_count++;
    return host;
}

int hfi_hosts_enter(struct hfi_attempt *attempt) {
    size_t length;
    const char *proxy = hfi_reach_of(attempt)->proxy; /* then its name is the one that is looked up */
    if (!proxy && attempt->loaded.address)
        return 0;
    const char *name = authority(proxy ? proxy : attempt->spec.url, &length);
    if (is_address(name, length))
        return 0;
    struct hfi_host *host = host_of(attempt->engine, name, length);
    if (!host)
        return HF_ENOMEM;
    attempt->host = host;
    host->users++;
    if (host->leader)
        return 1;
    if (hfi_now(attempt->engine->scheduler).us >= host->fresh.us) {
        host->leader = attempt;
        attempt->leads = true;
    }
    return 0;
}

struct hfi_attempts *hfi_hosts_waiters(struct hfi_host *host) {
    return &host->waiters;
}

static struct hfi_lookup_owner owner_of(const struct hfi_attempt *attempt) {
    const char *name = attempt->spec.downstream;
    uint64_t downstream = name ? hash_of(name, strlen(name)) : 0;
    if (name && !attempt->spec.per_host)
        return (struct hfi_lookup_owner){.downstream = downstream};
    return (struct hfi_lookup_owner){.downstream = attempt->host->hash, .group = downstream};
}

int hfi_hosts_lookup(void *resolver, void *reserved, void *user) {
    struct hfi_attempt *attempt = user;
    (void)resolver;
    (void)reserved;
    if (!attempt->host) /* an address: no thread is started */
        return 0;
    attempt->lookup = hfi_lookup_begin(owner_of(attempt), hfi_now(attempt->engine->scheduler));
    if (attempt->lookup < 0) {
        attempt->reason = attempt->hops > 0 ? HFI_REASON_REDIRECT : HFI_REASON_LOOKUPS;
        return 1;
    }
    attempt->looked_up = true;
    return 0;
}

static bool is_lookup_failed(CURLcode code) {
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY;
}

/* The name is known, or was not needed. Runs inside libcurl: who waits is let go later. */
void hfi_hosts_resolved(struct hfi_attempt *attempt) {
    struct hfi_host *host = attempt->host;
    struct hfi_engine *engine = attempt->engine;
    hfi_lookup_end(attempt->lookup);
    attempt->lookup = -1;
    attempt->wire = -1;
    if (!host)
        return;
    if (attempt->looked_up)
        host->fresh = hfi_mono_after_ms(hfi_now(engine->scheduler), FRESH_MS);
    if (!attempt->leads)
        return;
    if (!attempt->looked_up && attempt->socket < 0 &&
        attempt->sends == 0) /* libcurl knew it: for how long, we do not */
        host->fresh = hfi_mono_after_ms(hfi_now(engine->scheduler), KNOWN_MS);
    attempt->leads = false;
    host->leader = NULL;
    if (!host->settled) {
        host->settled = true;
        host->next_settled = engine->settled;
        engine->settled = host;
    }
}

/* All may run when the name is known, else the first of them becomes the one who asks. */
static void let_go(struct hfi_host *host, struct hf_mono now) {
    struct hfi_attempt *attempt;
    while (!host->leader && (attempt = TAILQ_FIRST(&host->waiters))) {
        if (now.us >= host->fresh.us) {
            host->leader = attempt;
            attempt->leads = true;
        }
        hfi_engine_run(attempt);
    }
}

void hfi_hosts_settle(struct hfi_engine *engine) {
    struct hfi_host *host;
    while ((host = engine->settled)) {
        engine->settled = host->next_settled;
        host->settled = false;
        let_go(host, hfi_now(engine->scheduler));
    }
}

/*
 * The attempt is about to be taken from libcurl. A lookup still unresolved goes on in a detached thread: its wake-up
 * descriptor is kept, because the thread closes the other end when it is over.
 */
void hfi_hosts_give_up(struct hfi_attempt *attempt, CURLcode code) {
    if (attempt->lookup < 0)
        return;
    if (is_lookup_failed(code)) { /* it failed, so its thread has ended */
        hfi_lookup_end(attempt->lookup);
        attempt->lookup = -1;
        attempt->wire = -1;
        return;
    }
    int wire = attempt->wire >= 0 ? fcntl(attempt->wire, F_DUPFD_CLOEXEC, 0) : -1;
    hfi_lookup_abandon(attempt->lookup, wire, hfi_now(attempt->engine->scheduler));
    attempt->lookup = -1;
    attempt->wire = -1;
}

/* It ended. If it still led, those who waited share a failed lookup; otherwise the next one asks. */
void hfi_hosts_leave(struct hfi_attempt *attempt, CURLcode code) {
    struct hfi_host *host = attempt->host;
    bool led = attempt->leads;
    attempt->host = NULL;
    attempt->leads = false;
    if (host)
        host->users--;
    if (!led)
        return;
    host->leader = NULL;
    if (is_lookup_failed(code)) {
        struct hfi_attempt *waiter;
        while ((waiter = TAILQ_FIRST(&host->waiters))) {
            hfi_engine_place(waiter, HFI_PLACE_FAILING);
            waiter->code = code;
            waiter->reason = attempt->reason;
            memcpy(waiter->error, attempt->error, sizeof waiter->error);
        }
        return;
    }
    let_go(host, hfi_now(attempt->engine->scheduler));
}

void hfi_hosts_forget(struct hfi_engine *engine) {
    for (size_t i = 0; i < HFI_HOST_BUCKETS; i++)
        for (struct hfi_host *host = engine->hosts[i]; host; host = host->next)
            host->fresh.us = INT64_MIN;
}

void hfi_hosts_free(struct hfi_engine *engine) {
    for (size_t i = 0; i < HFI_HOST_BUCKETS; i++) {
        struct hfi_host *host = engine->hosts[i], *next;
        for (; host; host = next) {
            next = host->next;
            hfi_free(host);
        }
        engine->hosts[i] = NULL;
    }
}
