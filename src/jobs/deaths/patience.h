/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_PATIENCE_H
#define HFI_JOBS_DEATHS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How long a message is tried, and how long one waits for a sink that no live node has. Both are measured on the wall
 * clock, which all nodes share, but piece by piece: from one try, or one look, to the next, and a piece counts for no more
 * than it can have lasted while somebody was at work. So neither a clock that leaps nor a pause of all nodes gives up.
 * Pure; wall µs.
 */
#define HFI_ALERT_GIVE_UP_US (INT64_C(7) * 24 * 3600 * 1000000)

/* The wait after `tries` failed tries: 5 s, 30 s, 2 m, 10 m, 1 h, the last one again and again. */
int64_t hfi_alerts_wait_ms(uint32_t tries);
/* What the time from a try, the `tries`th, to the next one counts for; lease_ms: how long each may have been out. */
int64_t hfi_alerts_piece_us(uint32_t tries, int64_t from_us, int64_t to_us, int64_t lease_ms);
bool hfi_alerts_give_up(int64_t tried_us); /* the sum of the pieces */

/* A sink that no live node has, and that has alerts: nodes look for such once a minute. */
struct hfi_absence {
    int64_t absent_us; /* while somebody looked */
    int64_t looked_us; /* when it was missed last; 0: never yet */
};
/* Missed again. False: another node has just looked, nothing changes. */
bool hfi_absence_look(struct hfi_absence *absence, int64_t now_us);
#define HFI_ALERT_NO_SINK "local.no_sink" /* why those ended */
bool hfi_absence_over(const struct hfi_absence *absence); /* its alerts end undelivered */

#endif
