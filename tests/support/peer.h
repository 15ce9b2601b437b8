/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_PEER_H
#define TESTS_SUPPORT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A server on 127.0.0.1 that does exactly what it is told, byte by byte, in a thread of its own. Each request takes
 * the next step; the last step is repeated. It counts what it saw: the truth that reports are compared with.
 */
enum peer_then { PEER_KEEP, PEER_CLOSE, PEER_RESET, PEER_HANG };
struct peer_step {
    const char *answer;  /* exact bytes, NULL none */
    size_t length;       /* 0: strlen(answer) */
    int delay_ms;        /* before the answer */
    int drip_ms;         /* > 0: one byte, then this pause, and so on */
    enum peer_then then; /* after the answer */
};

struct peer;
struct peer *peer_new(const struct peer_step *steps, size_t count); /* NULL: no memory or no descriptors */
void peer_free(struct peer *peer);
int peer_port(const struct peer *peer);
unsigned peer_requests(struct peer *peer);                  /* whole requests read */
unsigned peer_connections(struct peer *peer);               /* accepted so far */
unsigned peer_open(struct peer *peer);                      /* still open now */
void peer_last(struct peer *peer, char *text, size_t room); /* the newest request, headers and body */
/* Sends `bytes` on every idle connection, unasked; `close` closes them afterwards. Returns when it is done. */
void peer_poke(struct peer *peer, const char *bytes, bool close);

#define PEER_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

#endif
