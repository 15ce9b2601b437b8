/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_CALL_H
#define HFI_RESILIENCE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/scheduler.h"
#include "holdfast/http.h"
#include "resilience/downstream.h"
#include "resilience/transport.h"

/*
 * The one actor of the resilience half: runs a logical request through total ⊃ retry ⊃ budget ⊃ breaker ⊃ bulkhead ⊃
 * attempt on a scheduler and a transport. Everything here on the scheduler's thread.
 */
struct hfi_caller; /* knows the downstreams by name */
struct hfi_call;

struct hfi_caller_options {
    struct hfi_scheduler *scheduler; /* borrowed, outlives the caller */
    struct hfi_transport *transport; /* borrowed */
    uint64_t seed;                   /* of the jitter */
};
int hfi_caller_new(const struct hfi_caller_options *options, const struct hf_downstream_options *downstreams,
                   size_t count, struct hfi_caller **caller, struct hf_error *error);
void hfi_caller_end(struct hfi_caller *caller);  /* cancels every call; their `done` runs before it returns */
void hfi_caller_free(struct hfi_caller *caller); /* no call is left; NULL is fine */
/* Any thread; one reference for the caller. NULL: unknown. */
struct hf_downstream *hfi_caller_downstream(struct hfi_caller *caller, const char *name);
/*
 * The host of that key (key.h) of a per_host downstream, with one reference, if it has a place in its registry or gets
 * one. NULL: none, or no memory. `hosts_max`: how many that registry holds. Any thread.
 */
struct hf_downstream *hfi_caller_host_of_key(struct hfi_caller *caller, const char *key, uint32_t *hosts_max);
/* As hf_client_host, hf_client_each and hf_client_check. */
int hfi_caller_host(struct hfi_caller *caller, const char *name, const char *url, struct hf_downstream **downstream,
                    struct hf_error *error);
int hfi_caller_each(struct hfi_caller *caller, hf_downstream_fn each, void *user);
int hfi_caller_check(struct hfi_caller *caller, const struct hf_request *request, struct hf_error *error);
/*
 * As hf_client_reload. Any thread.
 */
int hfi_caller_reload(struct hfi_caller *caller, const struct hf_downstream_options *downstreams, size_t count,
                      struct hf_error *error);
/* The whole list at once, without hosts, for who must not be surprised by a reload: as given, one reference each. */
struct hfi_listed {
    struct hf_downstream *downstream;
    const char *probe_path; /* behind the list; NULL: none */
};
int hfi_caller_list(struct hfi_caller *caller, struct hfi_listed **list, size_t *count); /* hfi_free it. HF_ENOMEM */

/*
 * Starts a call; `done` runs once, never inside start, and owns the response. `request` is copied. `call` is valid
 * until `done` ran. Errors as hf_call_start; nothing runs then. The same in two steps: new on any thread (a call that
 * will not begin is discarded), begin on the scheduler's; when that fails the call is still there to be discarded.
 */
int hfi_call_start(struct hfi_caller *caller, const struct hf_request *request, hf_call_fn done, void *user,
                   struct hfi_call **call, struct hf_error *error);
int hfi_call_new(struct hfi_caller *caller, const struct hf_request *request, hf_call_fn done, void *user,
                 struct hfi_call **call, struct hf_error *error);
int hfi_call_begin(struct hfi_call *call);
void hfi_call_discard(struct hfi_call *call); /* not begun: no `done` */
void hfi_call_give_up(struct hfi_call *call); /* not begun and cannot be: `done` runs now, with `local.memory` */
/* Ends it as `call.cancelled`; `done` runs within one loop turn. No-op on one that is ending. */
void hfi_call_cancel(struct hfi_call *call);

/* The answer behind the public accessors. */
struct hf_response {
    int status;
    void *answer; /* one block with the headers, their texts and the body; NULL: none of them */
    const void *body;
    size_t body_length;
    const struct hf_header *headers;
    size_t header_count;
    struct hf_outcome outcome;
};

/* Method and header names: RFC 9110 tokens; values without control characters; path and query: visible ASCII, the path
   starting with /. 0 or HF_EINVAL/HF_ETEXT. */
int hfi_request_check(const struct hf_request *request, struct hf_error *error);
/* A URL of a request, taken apart: one that hfi_url_split takes, without userinfo. 0 or HF_EINVAL. */
struct hfi_url;
int hfi_request_url_check(const char *text, struct hfi_url *url, struct hf_error *error);

#endif
