/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_HTTP_ENGINE_H
#define HFI_RESILIENCE_HTTP_ENGINE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/scheduler.h"
#include "base/text.h"
#include "resilience/transport.h"

/*
 * The inside of the libcurl transport, for its own files only: engine.c (the port: start, cancel, close), drive.c (the
 * multi handle's timer and results), sockets.c (descriptors and their watches), hosts.c (one lookup per host at a
 * time), easy.c (what is sent), redirect.c (what is sent next), answer.c (what came back), unpack.c (… compressed). All
 * on the scheduler's thread.
 */

/* Why an attempt ended where libcurl's own code would mislead. X(NAME, error type, message) */
#define HFI_REASON_MAP(X)                                                                                              \
    X(NONE, NULL, NULL)                                                                                                \
    X(BODY_TOO_LARGE, "http.body_too_large", "the response body is longer than the limit")                             \
    X(HEADERS_TOO_LARGE, "http.headers_too_large", "the response headers are longer than the limit")                   \
    X(TRUNCATED_HEADERS, "http.truncated_headers", "the connection closed inside the response headers")                \
    X(RESEND_STOPPED, "http.resend_stopped",                                                                           \
      "a reused connection closed before the answer; the request was not sent a second time")                          \
    X(PROXY_REFUSED, "proxy.refused", NULL)                                                                            \
    X(PROXY_FAILED, "proxy.failed", NULL)                                                                              \
    X(DESCRIPTORS, "local.descriptors", "no socket could be made here")                                                \
    X(PORTS, "local.ports", "no local address or port is free")                                                        \
    X(URL, "local.url", "libcurl cannot load the URL that the peer redirected to")                                      \
    X(LOOKUPS, "local.lookups", "too many name lookups are unanswered")                                                \
    X(PRIVATE_NETWORK, "local.private_network", "the address is in a private network, which is denied here")           \
    X(REDIRECT, "local.redirect", "too many name lookups are unanswered to follow the redirect")                       \
    X(MEMORY, "local.memory", "out of memory")                                                                         \
    X(ENGINE, "local.engine", "the HTTP engine failed and was rebuilt")
#define HFI_REASON_MEMBER(name, type, message) HFI_REASON_##name,
enum hfi_reason { HFI_REASON_MAP(HFI_REASON_MEMBER) };
#undef HFI_REASON_MEMBER

enum hfi_place {
    HFI_PLACE_NONE,    /* being made, ended or freed */
    HFI_PLACE_POOL,    /* idle, with a warm easy handle */
    HFI_PLACE_WAITING, /* another attempt looks the same host up */
    HFI_PLACE_RUNNING, /* added to the multi handle */
    HFI_PLACE_FAILING  /* lost with its host's lookup or with the engine; its turn to be told comes */
};
TAILQ_HEAD(hfi_attempts, hfi_attempt);

struct hfi_host;
struct hfi_unpack;
struct hfi_engine;

/* One descriptor that libcurl uses. Its watch lives as long as the descriptor: only the events change. */
struct hfi_socket {
    int fd;
    bool framed;       /* HTTP/2: bytes that come unasked are frames, no answer */
    bool foreign;      /* libcurl's own (the resolver's wake-up), closed without telling us */
    bool proven;       /* a request went over it: libcurl tells us when it closes it */
    uint64_t identity; /* of our own: tells it from another descriptor with the same number */
    unsigned wanted;   /* by libcurl now; 0: idle in its pool */
    unsigned watched;  /* by the scheduler */
    struct hfi_watch *watch;
    struct hfi_engine *engine;
};

struct hfi_header_at {
    size_t name, value; /* offsets into `head` */
};

/* What a pooled easy handle was told last: it is told again only what differs. Zero: nothing yet. */
struct hfi_loaded {
    char *url;     /* its copy; "" while it is unsure */
    CURLU *parsed; /* the same, so that libcurl neither parses nor rebuilds it for each request */
    size_t url_room;
    bool address; /* its host is no name: nothing is looked up */
    bool plain; /* GET without a body */
    bool usual; /* reached as most are: no certificates, proxy or HTTP/2 of its own */
    bool fresh;
    const struct curl_slist *lines;
    int64_t backstop_ms, connect_timeout_ms;
};

struct hfi_attempt {
    struct hfi_engine *engine;
    TAILQ_ENTRY(hfi_attempt) entry;
    enum hfi_place place;
    CURL *easy;
    struct hfi_loaded loaded;
    struct hfi_attempt_spec spec;
    hfi_attempt_fn done;
    void *user;
    struct hf_mono started, added;
    struct curl_slist *lines; /* request headers: nodes and texts in one block */
    size_t lines_room;

    struct hfi_host *host;
    bool leads;     /* looks its host up for all who wait */
    bool looked_up; /* a lookup of its own was made */
    int lookup;     /* slot of the unresolved lookup, -1 none */
    int wire;       /* the resolver's wake-up descriptor meanwhile, -1 none */
    int socket;     /* the last descriptor opened for it, -1 none */
    unsigned sends; /* how often the request was put on the wire */
    unsigned opened; /* sends + 1 when the last descriptor was opened, 0 none: was there one for this request? */
    enum hfi_reason reason;
    CURLcode code; /* FAILING: what it ends with */
    int failed_errno;

    struct hf_header *kept; /* headers for the next hop: the spec's are read at the start only. NULL: no redirects */
    char *url;              /* of the redirect being followed, NULL: the spec's own; ours */
    uint32_t hops;          /* redirects followed */
    bool left_host;         /* … to another scheme, host or port: our secrets stay here */
    bool as_get;            /* … and the method became GET: nothing of the body is sent */
    const char *unfollowed; /* why the last redirect was not, NULL */

    int status;
    size_t head_bytes; /* of all header lines, whatever they were */
    bool final; /* the whole header of a final answer was seen */
    struct hfi_bytes head, body;
    struct hfi_unpack *unpack; /* of a compressed body that has begun; NULL */
    struct hfi_header_at *at;
    struct hf_header *headers;
    size_t header_count, header_room;
    char error[CURL_ERROR_SIZE];
};

/* How its peer is reached. */
static inline const struct hfi_reach *hfi_reach_of(const struct hfi_attempt *attempt) {
    static const struct hfi_reach plain;
    return attempt->spec.reach ? attempt->spec.reach : &plain;
}

#define HFI_HOST_BUCKETS 128
#define HFI_ENGINE_POOL 512 /* making a handle for each request costs as much as the request */
struct hfi_engine {
    struct hfi_transport transport; /* first: the port */
    struct hfi_scheduler *scheduler;
    CURLM *multi; /* NULL: being rebuilt, or could not be yet */
    bool broken;  /* libcurl or a watch failed: all is given up and the handle rebuilt */
    struct hfi_timer timer;
    struct hfi_timer results; /* what the sockets' events of this turn brought is read at its end */
    struct hfi_socket **sockets; /* by descriptor */
    size_t socket_room;
    struct hfi_attempts running, failing, pool; /* those who wait hang on their host */
    size_t pool_count;
    struct hfi_host *hosts[HFI_HOST_BUCKETS];
    size_t host_count;
    struct hfi_host *settled; /* lookups that ended inside libcurl: who waits is let go afterwards */
    char *ca_bundle;          /* NULL: libcurl's default */
};

/* engine.c */
void hfi_engine_place(struct hfi_attempt *attempt, enum hfi_place place); /* the one state change */
void hfi_engine_run(struct hfi_attempt *attempt);                         /* waiting -> running, or failing */
void hfi_engine_finish(struct hfi_attempt *attempt, CURLcode code);       /* tells `done`; the attempt is gone */
void hfi_engine_rebuild(struct hfi_engine *engine);                       /* all running attempts are failing then */

/* drive.c */
int hfi_drive_timer(CURLM *multi, long timeout_ms, void *user);
void hfi_drive_fire(struct hfi_timer *timer, void *user);
void hfi_drive_results(struct hfi_timer *timer, void *user);
void hfi_drive_event(struct hfi_engine *engine, curl_socket_t fd, int flags); /* of a socket */

/* sockets.c */
int hfi_sockets_changed(CURL *easy, curl_socket_t fd, int what, void *user, void *assigned);
curl_socket_t hfi_sockets_open(void *user, curlsocktype purpose, struct curl_sockaddr *address);
int hfi_sockets_close(void *user, curl_socket_t fd);
bool hfi_sockets_connected(const struct hfi_engine *engine, int fd);
void hfi_sockets_framed(struct hfi_engine *engine, int fd); /* it speaks HTTP/2 */
void hfi_sockets_free(struct hfi_engine *engine);

/* hosts.c */
bool hfi_hosts_is_address(const char *url);
int hfi_hosts_enter(struct hfi_attempt *attempt); /* 0: run it, 1: it waits, HF_ENOMEM */
struct hfi_attempts *hfi_hosts_waiters(struct hfi_host *host);
int hfi_hosts_lookup(void *resolver, void *reserved, void *user); /* a real lookup starts: non-zero refuses it */
void hfi_hosts_resolved(struct hfi_attempt *attempt);
/* Before it leaves libcurl with `code`: its lookup may live on. */
void hfi_hosts_give_up(struct hfi_attempt *attempt, CURLcode code);
void hfi_hosts_leave(struct hfi_attempt *attempt, CURLcode code);
void hfi_hosts_settle(struct hfi_engine *engine);
void hfi_hosts_forget(struct hfi_engine *engine); /* no name is known any more */
void hfi_hosts_free(struct hfi_engine *engine);

/* easy.c */
CURL *hfi_easy_new(struct hfi_attempt *attempt);
int hfi_easy_load(struct hfi_attempt *attempt);
void hfi_easy_free(struct hfi_attempt *attempt); /* the handle and what it was told */

/* redirect.c */
int hfi_redirect_begin(struct hfi_attempt *attempt); /* HF_ENOMEM */
bool hfi_redirect_next(struct hfi_attempt *attempt, CURLcode code); /* true: the attempt is to go on with the next hop */
bool hfi_redirect_keeps(const struct hfi_attempt *attempt, const char *header); /* may this header go along? */
void hfi_redirect_reset(struct hfi_attempt *attempt);

/* answer.c */
const char *hfi_answer_get(const struct hfi_attempt *attempt, const char *name); /* its first value, NULL none */
size_t hfi_answer_header(char *data, size_t one, size_t length, void *user);
bool hfi_answer_keep(struct hfi_attempt *attempt, const char *data, size_t size); /* of the body; false: why is noted */
size_t hfi_answer_body(char *data, size_t one, size_t length, void *user);
int hfi_answer_send(void *user, char *remote, char *local, int remote_port, int local_port);
void hfi_answer_reset(struct hfi_attempt *attempt);
enum hf_stage hfi_answer_stage(struct hfi_attempt *attempt, CURLcode code);
enum hf_sent hfi_answer_sent(struct hfi_attempt *attempt);
struct hf_mono hfi_answer_phases(struct hfi_attempt *attempt, struct hfi_phases *phases); /* the time it was */
void hfi_answer_facts(struct hfi_attempt *attempt, CURLcode code, struct hfi_attempt_facts *facts);

#endif
