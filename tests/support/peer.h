/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_PEER_H
#define TESTS_SUPPORT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A server on 127.0.0.1 that does exactly what it is told, byte by byte, in a thread of its own. Each request takes
 * the next step; the last step is repeated. It counts what it saw: the truth that reports are compared with.
 *
 * A request is *seen* when the server has read at least one byte of it: what it may have acted upon. Only the bytes of
 * one request are read at a time, so what is still in the kernel was not seen.
 */

/* When a step acts. ACCEPT and ARRIVED read nothing of the request: it is not seen. */
enum peer_at {
    PEER_WHOLE,   /* the whole request was read */
    PEER_ACCEPT,  /* the connection is there; on one that is open, as ARRIVED */
    PEER_ARRIVED, /* the request is in the kernel, unread */
    PEER_HEADERS, /* its headers were read, nothing of the body */
    PEER_HALF     /* its headers and half of its body were read */
};
/* After the answer. CLOSE closes (with unread bytes the kernel makes a reset of it), FIN ends our side only and goes
   on reading and counting until the other side ends too. */
enum peer_then { PEER_KEEP, PEER_CLOSE, PEER_RESET, PEER_HANG, PEER_FIN };
struct peer_step {
    const char *answer;  /* exact bytes, NULL none */
    size_t length;       /* 0: strlen(answer) */
    int delay_ms;        /* before the answer */
    int drip_ms;         /* > 0: one byte, then this pause, and so on */
    enum peer_then then; /* after the answer */
    enum peer_at at;
};

struct peer;
struct peer *peer_new(const struct peer_step *steps, size_t count); /* NULL: no memory or no descriptors */
void peer_free(struct peer *peer);
int peer_port(const struct peer *peer);
unsigned peer_requests(struct peer *peer);                  /* whole requests read */
unsigned peer_seen(struct peer *peer);                      /* requests of which any byte was read */
unsigned peer_seen_of(struct peer *peer, unsigned call);    /* those whose headers say `X-Call: call`, below 4096 */
unsigned peer_connections(struct peer *peer);               /* accepted so far */
unsigned peer_open(struct peer *peer);                      /* still open now */
uint64_t peer_bytes(struct peer *peer);                     /* of requests, read so far */
void peer_last(struct peer *peer, char *text, size_t room); /* the newest whole request, headers and body */
/* Sends `bytes` on every idle connection, unasked; `close` closes them afterwards. Returns when it is done. */
void peer_poke(struct peer *peer, const char *bytes, bool close);

/* Returns when it has read all that had come, and noticed every end. */
void peer_settle(struct peer *peer);

#define PEER_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

#endif
