/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_WEB_MISBEHAVING_H
#define HFI_PROGRAM_WEB_MISBEHAVING_H

#include <stdint.h>

/*
 * A loopback HTTP server that behaves as badly as it is told: what the demo calls. Paths: /ok answers by the mood of the
 * day, /gone always 410, /hook takes alerts and is always well. Own threads; everything here from any thread.
 */
enum hfi_misbehaving_mood { MOOD_WELL, MOOD_FLAKY, MOOD_DEAD, MOOD_HUNG };

struct hfi_misbehaving_counts {
    uint64_t seen;    /* requests to /ok and /gone, whatever became of them */
    uint64_t ok;      /* answered 200 */
    uint64_t failed;  /* answered 503 */
    uint64_t gone;    /* answered 410 */
    uint64_t hung;    /* taken and never answered */
    uint64_t dropped; /* connection closed without an answer */
    uint64_t hooks;   /* alerts taken */
};

struct hfi_misbehaving;

/* Listens on 127.0.0.1, a free port. NULL when it cannot. */
struct hfi_misbehaving *hfi_misbehaving_start(void);
unsigned hfi_misbehaving_port(const struct hfi_misbehaving *server);
void hfi_misbehaving_set_mood(struct hfi_misbehaving *server, enum hfi_misbehaving_mood mood);
void hfi_misbehaving_look(struct hfi_misbehaving *server, struct hfi_misbehaving_counts *counts);
void hfi_misbehaving_stop(struct hfi_misbehaving *server); /* lets go of hung requests; NULL is fine */

#endif
