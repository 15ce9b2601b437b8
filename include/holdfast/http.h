/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_HTTP_H
#define HOLDFAST_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "classify.h"
#include "error.h"
#include "faults.h"
#include "guard.h"
#include "outcome.h"
#include "policy.h"

HF_BEGIN

struct hf_header {
    const char *name;
    const char *value;
};

/* The oldest TLS that is spoken. */
enum hf_tls { HF_TLS_1_2, HF_TLS_1_3 };

/* Where one downstream is and how it is spoken to. Everything is copied. */
struct hf_downstream_options {
    uint32_t size;
    const char *name; /* required */
    const char *url;  /* required, unless per_host: http or https, no query or fragment; userinfo becomes a header, never a
                         stored text */
    const struct hf_header *headers; /* sent with every call; values may be secret: they never reach logs or errors */
    size_t header_count;
    const char *ca_file;       /* PEM, certificates to trust; NULL: the system's. Certificate and name are always checked */
    const char *client_cert;   /* PEM, our certificate and its chain, shown to a peer that asks; NULL: none */
    const char *client_key;    /* PEM, its key without a passphrase; both or neither */
    enum hf_tls tls_min;       /* HF_TLS_1_2 */
    bool http2;                /* false; true: HTTP/2 where an https peer offers it (ALPN) */
    const char *proxy;         /* NULL: none, whatever the environment says; http://[user:password@]host:port, a secret */
    uint32_t redirects_max;    /* 0: a 3xx is an outcome; else so many are followed, 5 at most */
    bool redirects_other_hosts; /* false: only to the same scheme, host and port; true: others too, without our secrets */
    int64_t response_limit;    /* bytes of a body after decoding: 1 MiB */
    int64_t header_limit;      /* bytes of all response header lines of an attempt together: 64 KiB, 256 KiB at most */
    bool accept_compressed;    /* false; asks for gzip or deflate and decodes them */
    bool deny_private_networks; /* false; true: connects to public addresses only, whatever a name resolves to; anything
                                   else ends as `local.private_network`, permanent. For URLs that strangers chose */
    const char *const *signing_secrets; /* signs as Standard Webhooks do; `whsec_` and base64, or plain text of 16 to 512
                                           bytes; several while one is exchanged for another: all of them sign */
    size_t signing_secret_count;        /* 0: unsigned; 8 at most */
    bool send_remaining_time;  /* false; sends Holdfast-Timeout-Ms: what is left of the total */
    bool send_attempt;         /* false; sends Holdfast-Attempt: which attempt of its call this is, from 1 */
    const char *probe_path;    /* NULL: jobs are the probes; else a GET of it, one at a time, while due jobs are parked */
    const struct hf_policy_options *policy; /* NULL: the defaults */
    const struct hf_rule *rules; /* NULL; own rules on answers and failures, before the built-in tables: classify.h */
    size_t rule_count;
    /*
     * false; true: each request brings its own `url` (webhooks of customers), and every host it names (scheme, host and
     * port) gets breaker, budget and bulkhead of its own under this policy, so that a dead one hurts no other. `headers`
     * are sent to every host: put no secret there that not all of them may see.
     */
    bool per_host;
    uint32_t hosts_max; /* 1000; with more than these, new hosts share one breaker until another one is idle */
    const struct hf_fault *faults; /* NULL; injected from the start, if the policy allows it: faults.h */
    size_t fault_count;
};
static inline void hf_downstream_options_init(struct hf_downstream_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->response_limit = 1048576;
    options->header_limit = 65536;
    options->hosts_max = 1000;
}

/* The same in one line. */
static inline struct hf_downstream_options hf_downstream_at(const char *name, const char *url) {
    struct hf_downstream_options options;
    hf_downstream_options_init(&options);
    options.name = name;
    options.url = url;
    return options;
}

/* One logical request to a downstream. Everything is copied at the start. */
struct hf_request {
    uint32_t size;
    const char *downstream; /* required */
    const char *method;     /* GET */
    const char *path;       /* "": appended to the downstream's URL; starts with / */
    const char *query;      /* NULL; without the ? */
    const struct hf_header *headers;
    size_t header_count;
    const void *body;       /* NULL */
    size_t body_length;
    const char *idempotency_key; /* NULL; sent as Idempotency-Key with every attempt, makes any method repeatable */
    int64_t total_timeout_ms;    /* 0: the policy's; else the smaller of both */
    bool no_retry;               /* exactly one attempt */
    int64_t attempt_timeout_ms;  /* 0: the policy's; else the smaller of both */
    bool no_hedge;               /* no second attempt beside a slow one */
    bool own_limit;              /* a 429 with Retry-After keeps back the caller alone, who heeds it: everybody else goes on */
    const struct hf_rule *rules; /* NULL; for this call alone, before those of the downstream */
    size_t rule_count;
    const char *url; /* NULL; for a per_host downstream, which needs it: absolute http or https URL, without userinfo and
                        fragment; path and query stay empty then */
};
static inline void hf_request_init(struct hf_request *request) {
    memset(request, 0, sizeof *request);
    request->size = (uint32_t)sizeof *request;
    request->method = "GET";
    request->path = "";
}

/* The same in one line: `method` and `path` at `downstream`. */
static inline struct hf_request hf_request_to(const char *downstream, const char *method, const char *path) {
    struct hf_request request;
    hf_request_init(&request);
    request.downstream = downstream;
    request.method = method;
    request.path = path;
    return request;
}

/* The end of a call: its outcome, and the answer if there was one. What these return belongs to the response. Since 0.1. */
struct hf_response;
HF_API const struct hf_outcome *hf_response_outcome(const struct hf_response *response);
HF_API int hf_response_status(const struct hf_response *response); /* 0: no answer */
HF_API const void *hf_response_body(const struct hf_response *response, size_t *length);
HF_API const char *hf_response_header(const struct hf_response *response, const char *name); /* first one, NULL if absent */
HF_API void hf_response_free(struct hf_response *response); /* NULL is fine */

/*
 * Would a client or a runner take these options? Looks at all but the policy, for which there is hf_policy_check. Reads
 * the certificate files they name; asks nothing of the network. HF_EINVAL or HF_ETEXT with details in `error`. Since 0.1.
 */
HF_API int hf_downstream_check(const struct hf_downstream_options *options, struct hf_error *error);

/*
 * What of a URL may be shown or stored, into `text` of `room` bytes (cut, NUL-terminated): without user and password,
 * with the values of its query and its fragment as ***. Takes any text, also one that is no URL, and rather loses a part
 * of it. Returns the length the whole has. Pure, any thread. Since 0.1.
 */
HF_API size_t hf_url_redact(const char *url, char *text, size_t room);

/* Calls downstreams; owns one loop thread, connections and breakers. Any thread. */
struct hf_client;

/*
 * `downstreams` are copied (an array steps by the `size` of its first item, here and everywhere); each must pass hf_policy_check. Errors: HF_EINVAL, HF_ECONFIG (details in `error`),
 * HF_EPERM (faults that the policy does not allow), HF_ENOTSUP (a libcurl without asynchronous name resolving), HF_ENOMEM, HF_EIO. Since 0.1.
 */
HF_API int hf_client_new(const struct hf_downstream_options *downstreams, size_t count, struct hf_client **client,
                         struct hf_error *error);
/* Cancels what is in flight (callbacks run, type `call.cancelled`), joins the thread. Not on the loop thread. NULL is
   fine. Since 0.1. */
HF_API void hf_client_close(struct hf_client *client);

/* Runs iff start returned 0; exactly once; on the loop thread; never before start returned to that thread. Owns `response`. */
typedef void (*hf_call_fn)(struct hf_response *response, void *user);

/*
 * Starts a call. `id` (may be NULL) is for hf_call_cancel; `error` (may be NULL) says what cannot be sent and why. From another thread the callback may run before this
 * returns. Errors: HF_EINVAL, HF_ENOENT (no such downstream), HF_ETEXT (CR, LF or NUL in a header), HF_ECLOSED, HF_ENOMEM.
 * Any thread. Since 0.1.
 */
HF_API int hf_call_start(struct hf_client *client, const struct hf_request *request, uint64_t *id, hf_call_fn done,
                         void *user, struct hf_error *error);
/*
 * Would this client take the request? The same checks as a start makes, with details in `error`; nothing is called and no
 * host is made. Errors as hf_call_start. Any thread. Since 0.1.
 */
HF_API int hf_client_check(struct hf_client *client, const struct hf_request *request, struct hf_error *error);
/* Ends the call within one loop turn as `call.cancelled`; unknown or ended ids are a no-op. Any thread. Since 0.1. */
HF_API void hf_call_cancel(struct hf_client *client, uint64_t id);

/*
 * The same, blocking. On 0 `response` is the caller's, also after failures of the call. HF_EDEADLK on the loop or
 * writer thread. Since 0.1.
 */
HF_API int hf_call(struct hf_client *client, const struct hf_request *request, struct hf_response **response,
                   struct hf_error *error);

/* The downstream of that name with its breaker, one reference for the caller, or NULL. That of a `per_host` one is what
 * hosts beyond hosts_max share; isolating it isolates all of its hosts. Any thread. Since 0.1. */
HF_API struct hf_downstream *hf_client_downstream(struct hf_client *client, const char *name);

/*
 * The host that `url` names at a `per_host` downstream, made if it is new: to look at it, to isolate or restore it. One
 * reference for the caller, which keeps it from being forgotten. Errors: HF_EINVAL (no such URL; not per_host), HF_ENOENT,
 * HF_EBUSY (hosts_max, and none is idle), HF_ENOMEM. Any thread. Since 0.1.
 */
HF_API int hf_client_host(struct hf_client *client, const char *name, const char *url,
                          struct hf_downstream **downstream, struct hf_error *error);

/*
 * Other downstreams in the place of those the client has, while calls run. Everything is checked first; on any error the
 * old ones stay and nothing has changed. What both have by name goes on: its breaker keeps state, `until` and counts (see
 * hf_downstream_reload for the policy), and so do the hosts of a `per_host` one; url, headers and limits are those of the
 * next call. New ones appear, vanished ones take no new calls (HF_ENOENT). Calls under way end as they began. Any thread,
 * but not in an observer of one of these downstreams. Errors: as hf_client_new. Not for the client of a runner: see
 * hf_runner_reload. Since 0.1.
 */
HF_API int hf_client_reload(struct hf_client *client, const struct hf_downstream_options *downstreams, size_t count,
                            struct hf_error *error);

/*
 * Calls `each` with every downstream, by name, and after a `per_host` one with its hosts, the last used first; on the
 * caller's stack, without locks, so it may call everything. Each is borrowed: take a reference to keep it. Errors:
 * HF_EINVAL, HF_ENOMEM. Any thread. Since 0.1.
 */
typedef void (*hf_downstream_fn)(struct hf_downstream *downstream, void *user);
HF_API int hf_client_each(struct hf_client *client, hf_downstream_fn each, void *user);

HF_END

#endif
