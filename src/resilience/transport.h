/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_TRANSPORT_H
#define HFI_RESILIENCE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "holdfast/http.h"
#include "resilience/outcome.h"
#include "resilience/signing.h"

/*
 * The transport port: one attempt on the wire, and the facts about it. It never retries, never classifies and never
 * waits in a queue of its own. Implementations: libcurl (src/resilience/http) and a scripted one (src/sim). All calls
 * and callbacks on the scheduler's thread; `done` never inside `start`.
 */
#define HFI_TRANSPORT_VERSION 1

/* How a peer is reached, the same for all attempts at a downstream. */
struct hfi_reach {
    char *ca_file, *client_cert, *client_key; /* paths, NULL: the system's, none, none */
    char *proxy;                              /* URL with its secrets, NULL: none */
    bool tls13;                               /* nothing older */
    bool http2;                               /* where the peer offers it */
    bool other_hosts;                         /* redirects may leave scheme, host and port */
    uint32_t redirects;                       /* that one attempt may follow */
};
struct hfi_faults;

/* What to send. Everything stays the caller's and alive until `done` ran or `cancel` returned, but the headers: they are
   read inside `start` only, for the next attempt's may differ. */
struct hfi_attempt_spec {
    struct hf_mono now; /* the start, by the caller's reading of the scheduler's clock; 0: it is to be read */
    const char *url;    /* whole, with query */
    const char *method;
    const struct hf_header *headers; /* checked by the caller: no CR, LF, NUL */
    size_t header_count;
    const void *body;
    size_t body_length;
    const struct hfi_reach *reach; /* NULL: all of it zero */
    int64_t connect_timeout_ms;
    int64_t backstop_ms;    /* far above the total; our own timers end attempts long before */
    int64_t response_limit; /* of the decoded body */
    int64_t header_limit;   /* of all lines of response headers together; 0: libcurl's own, about 300 KB */
    bool repeatable;        /* false: never put it on the wire twice, not even when a reused connection died */
    bool fresh_connection;  /* do not reuse one */
    bool deny_private;      /* connect to public addresses only: `local.private_network` else */
    bool compressed;        /* take gzip and deflate, and decode them */
    const struct hfi_signing *signing; /* NULL: unsigned; every attempt is signed anew */
    const char *message_id; /* with signing: the same for all attempts of a message */
    struct hfi_faults *faults; /* NULL; to be injected (faulty.h) into attempts of … */
    const char *downstream;    /* … this one, which also has its own share of name lookups; NULL: none */
    bool per_host;             /* … each host of it has one */
};

/* What happened. Owned by the transport, valid during `done` only. */
struct hfi_attempt_facts {
    int native;             /* 0 or a CURLcode */
    int native_errno;       /* errno behind it, 0 unknown */
    int status;             /* HTTP status of the final answer, 0 none */
    enum hf_stage stage;    /* how far it came */
    enum hf_sent sent;      /* by proof: NO only when nothing left */
    const char *error_type; /* NULL, or a reason of the transport's own: `http.body_too_large`, `http.headers_too_large`, `http.truncated_headers`, `http.resend_stopped` (a reused
                               one died before the answer), `local.descriptors`, `local.ports`, `local.lookups`, `local.private_network`, `local.memory`, `local.engine` */
    const char *message;    /* for people, without secrets */
    const char *retry_after; /* raw value or NULL */
    const struct hf_header *headers;
    size_t header_count;
    const char *header_texts; /* the one block that all of their texts lie in, NULL: they are anywhere */
    size_t header_texts_length;
    const void *body;
    size_t body_length;
    struct hf_mono now;     /* when it ended, by the reading that `phases` are from; 0: none */
    struct hfi_phases phases;
    bool reused;            /* on a connection that was open */
    uint32_t hops;          /* redirects followed: so many requests more than one */
};

struct hfi_attempt; /* of the transport */
typedef void (*hfi_attempt_fn)(const struct hfi_attempt_facts *facts, void *user);

struct hfi_transport;
struct hfi_transport_ops {
    uint32_t version;
    /* `done` runs once unless cancelled. Errors (nothing was sent, no callback): HF_ENOMEM, HF_EINVAL, HF_EBUSY. */
    int (*start)(struct hfi_transport *self, const struct hfi_attempt_spec *spec, hfi_attempt_fn done, void *user,
                 struct hfi_attempt **attempt);
    /* Ends it without `done`; the connection goes. Returns what may have been sent, with the phases so far. Never blocks. */
    enum hf_sent (*cancel)(struct hfi_transport *self, struct hfi_attempt *attempt, enum hf_stage *stage,
                           struct hfi_phases *phases);
    /* How far it has come, past a redirect never less than SEND; changes nothing. What the connect limit goes by. */
    enum hf_stage (*stage)(struct hfi_transport *self, struct hfi_attempt *attempt);
    uint32_t (*hops)(struct hfi_transport *self, struct hfi_attempt *attempt); /* redirects it has followed so far */
    void (*close)(struct hfi_transport *self); /* no attempt is left; not inside `done` */
};
struct hfi_transport {
    const struct hfi_transport_ops *ops;
};

#endif
