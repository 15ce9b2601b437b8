/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_WATCHDOG_H
#define HFI_JOBS_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Whose code a loop's thread is in. */
enum hfi_doing {
    HFI_DOING_ITS_OWN,
    HFI_DOING_NOTHING, /* it sleeps until somebody wakes it: no beat is due */
    HFI_DOING_OTHERS   /* a handler's: that has limits of its own (timeouts, abandon_after), and is no hang of the loop */
};
/* Of one loop: the loop writes, on its thread; the watchdog reads, on another. */
struct hfi_pulse {
    _Atomic uint64_t beats;
    _Atomic int doing;  /* enum hfi_doing */
    _Atomic int thread; /* the kernel's number of its thread; 0 = not begun */
    int heard;          /* the loop's own: of hfi_stack_listen */
};
void hfi_pulse_beat(struct hfi_pulse *pulse); /* it does something, and got on with it */
void hfi_pulse_rest(struct hfi_pulse *pulse); /* it has nothing to do from here on, until its next beat */
void hfi_pulse_lend(struct hfi_pulse *pulse); /* its thread is a handler's from here on, until its next beat */

/*
 * Judges whether loops still go round (S4.7, S4.8). Time is passed in. Time in which nobody looked (a stopped process, a
 * starved machine) counts as two rounds at most, against nobody.
 */
struct hfi_watchdog_limits {
    int64_t deadline_ms; /* without a beat; ≥ 1 */
    int64_t grace_ms;    /* until the first one; never less than the deadline */
};
/* How often to look: a quarter of the deadline, 15 s at most. */
int64_t hfi_watchdog_round_ms(const struct hfi_watchdog_limits *limits);

struct hfi_watched {
    uint64_t beats; /* as last seen */
    struct hf_mono looked;
    int64_t silent_us, told_us; /* silent_us when it was told */
    bool late;      /* past its limit */
    bool hung;      /* and still so a round later: acted on */
    bool restarted; /* since its last beat */
};
void hfi_watched_begin(struct hfi_watched *watched, struct hf_mono now);

enum hfi_watchdog_word {
    HFI_WATCHDOG_FINE,
    HFI_WATCHDOG_BACK, /* it was late, and goes round again */
    HFI_WATCHDOG_LATE, /* from now on: a beat was missed, say so */
    HFI_WATCHDOG_AGAIN, /* another minute of it: say so again */
    HFI_WATCHDOG_HUNG, /* act; said once */
    HFI_WATCHDOG_RESTARTED, /* never of a look: what came of acting */
    HFI_WATCHDOG_STILL /* late, and told already */
};
void hfi_watched_again(struct hfi_watched *watched); /* it was begun again: still late, it has a deadline more for a beat */
enum hfi_watchdog_word hfi_watched_look(struct hfi_watched *watched, const struct hfi_watchdog_limits *limits,
                                        const struct hfi_pulse *pulse, struct hf_mono now);

#endif
