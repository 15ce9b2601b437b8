/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_TARGET_H
#define HFI_RESILIENCE_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/scheduler.h"
#include "holdfast/http.h"
#include "resilience/downstream.h"
#include "resilience/rules.h"
#include "resilience/signing.h"
#include "resilience/transport.h"

/*
 * A downstream, or one host of a `per_host` one, as the caller knows it: where it is, how it is spoken to, and who
 * waits for a slot of its bulkhead. Reference counted: the caller's table has one, every call has one, so that a call
 * goes on as it began when its downstream is reloaded. The queue belongs to the scheduler's thread.
 */
struct hfi_caller;
struct hfi_registry;
struct hfi_call;
TAILQ_HEAD(hfi_calls, hfi_call);

struct hfi_target {
    _Atomic uint32_t references;
    struct hfi_caller *caller;
    struct hf_downstream *downstream;
    struct hf_policy *policy;      /* of its options; NULL of a host */
    struct hfi_target *origin; /* of a host: the per_host target it was made of; else NULL */
    struct hfi_registry *registry; /* of a per_host target in use: its hosts, under the caller's lock */
    /* From `url` to `queue`: how it is spoken to. Never changes; a host has its origin's. */
    char *url;                 /* without userinfo; "" of a per_host one */
    size_t url_length;         /* without the slashes at its end: a path brings its own */
    struct hf_header *headers; /* one block with their texts; a userinfo became an Authorization */
    size_t header_count;
    struct hfi_reach reach;    /* its texts are its own */
    char *probe_path;          /* NULL: none */
    struct hfi_rules rules;    /* own ones, in a block of their own */
    int64_t response_limit, header_limit;
    bool compressed, deny_private;
    struct hfi_signing *signing; /* NULL: unsigned */
    bool send_remaining_time, send_attempt;
    bool per_host;
    uint32_t hosts_max;
    struct hfi_calls queue;
    uint32_t queued;         /* of our own calls */
    struct hfi_timer poll;   /* armed while any waits: of slots that come free elsewhere nobody tells us; and for tokens */
    struct hf_mono token_at; /* when the rate limit has one for the first in the queue; 0: it waits for a slot */
    struct hf_mono ask_at;   /* then the first in the queue asks even without room */
};

/*
 * A target of these options with one reference; `downstream` NULL: with a new one under their policy, else it is that
 * one, as it is: the policy waits for a reload. HF_EINVAL, HF_ETEXT, HF_ECONFIG, HF_ENOMEM.
 */
int hfi_target_new(struct hfi_caller *caller, const struct hf_downstream_options *options,
                   struct hf_downstream *downstream, struct hfi_target **target, struct hf_error *error);
/* The target of one host of `origin`; `downstream` as above. HF_ENOMEM. */
int hfi_target_of_host(struct hfi_target *origin, const char *key, struct hf_downstream *downstream,
                       struct hfi_target **target);
struct hfi_target *hfi_target_ref(struct hfi_target *target);
void hfi_target_unref(struct hfi_target *target); /* any thread; NULL is fine */
/* Out of use: no new host is made of it. Its hosts go when their last call has ended. Its owner unlocks first. */
void hfi_target_retire(struct hfi_target *target);
bool hfi_target_held_once(const struct hfi_target *target); /* one reference, and one to its downstream */

#define HFI_URL_MAX 8192 /* bytes of a downstream's URL, of a path and of a query: servers refuse longer ones */
#define HFI_URL_LONG "it is longer than 8192 bytes"

/* RFC 9110 5.6.2: a token, what methods and header names are. */
bool hfi_is_token(const char *text);
/* A header value: no CR, LF or other control characters but tabs (RFC 9110 5.5). */
bool hfi_is_field_value(const char *text);
/* Characters that may stand in a URL as they are: visible ASCII. */
bool hfi_is_url_text(const char *text);
/* Headers that shape the message itself are ours alone. */
int hfi_headers_check(const struct hf_header *headers, size_t count, struct hf_error *error);
/* The headers that a signature stands in. NULL: none of them is there, else the name of one that is. */
const char *hfi_headers_signed(const struct hf_header *headers, size_t count);
/* A copy in one block with its texts; NULL: no memory. */
struct hf_header *hfi_headers_copy(const struct hf_header *headers, size_t count);
const struct hf_header *hfi_headers_find(const struct hf_header *headers, size_t count, const char *name);

#endif
