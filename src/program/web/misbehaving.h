/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_WEB_MISBEHAVING_H
#define PROGRAM_WEB_MISBEHAVING_H

#include <stdint.h>

/*
 * A loopback HTTP server that behaves as badly as it is told: what the demo calls. Paths: /ok answers by the mood of the
 * day, /gone always 410, /hook takes alerts and is always well. Own threads; everything here from any thread.
 */
enum misbehaving_mood { MOOD_WELL, MOOD_FLAKY, MOOD_DEAD, MOOD_HUNG };

struct misbehaving_counts {
    uint64_t seen;    /* requests to /ok and /gone, whatever became of them */
    uint64_t ok;      /* answered 200 */
    uint64_t failed;  /* answered 503 */
    uint64_t gone;    /* answered 410 */
    uint64_t hung;    /* taken and never answered */
    uint64_t dropped; /* connection closed without an answer */
    uint64_t hooks;   /* alerts taken */
};

struct misbehaving;

/* Listens on 127.0.0.1, a free port. NULL when it cannot. */
struct misbehaving *misbehaving_start(void);
unsigned misbehaving_port(const struct misbehaving *server);
void misbehaving_set_mood(struct misbehaving *server, enum misbehaving_mood mood);
void misbehaving_look(struct misbehaving *server, struct misbehaving_counts *counts);
void misbehaving_stop(struct misbehaving *server); /* lets go of hung requests; NULL is fine */

#endif
