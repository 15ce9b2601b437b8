/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_TARGET_H
#define HFI_RESILIENCE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/scheduler.h"
#include "holdfast/http.h"
#include "resilience/downstream.h"
#include "resilience/rules.h"
#include "resilience/signing.h"

/*
 * A downstream as the caller knows it: where it is, how it is spoken to, and who waits for a slot of its bulkhead.
 * The address part never changes after the start; the queue belongs to the scheduler's thread.
 */
struct hfi_caller;
struct hfi_call;
TAILQ_HEAD(hfi_calls, hfi_call);

struct hfi_target {
    struct hfi_caller *caller;
    struct hf_downstream *downstream;
    char *url;                 /* without userinfo */
    size_t url_length;         /* without the slashes at its end: a path brings its own */
    struct hf_header *headers; /* one block with their texts; a userinfo became an Authorization */
    size_t header_count;
    char *ca_file;
    char *probe_path;          /* NULL: none */
    struct hfi_rules rules;    /* own ones, in a block of their own */
    int64_t response_limit, header_limit;
    bool compressed, deny_private;
    struct hfi_signing *signing; /* NULL: unsigned */
    bool send_remaining_time;
    struct hfi_calls queue;
    uint32_t queued, in_flight; /* of our own calls */
    struct hfi_timer poll;      /* guards on other threads may hold the slots: then nobody tells us */
};

/* Fills `target` (zeroed before) from options. HF_EINVAL, HF_ETEXT, HF_ECONFIG, HF_ENOMEM; nothing is left then. */
int hfi_target_init(struct hfi_target *target, const struct hf_downstream_options *options, struct hf_error *error);
void hfi_target_end(struct hfi_target *target);

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
const struct hf_header *hfi_headers_find(const struct hf_header *headers, size_t count, const char *name);

#endif
