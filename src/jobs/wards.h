/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_WARDS_H
#define HFI_JOBS_WARDS_H

#include <stddef.h>

#include "jobs/watchdog.h"

/*
 * The loops that the watchdog of a node looks after. They come and go by themselves, on any thread. Which of them can be
 * begun again is the loop's own word: only one of whose state nothing is shared half-changed may say so. Counted
 * references: a thread that nobody waits for may leave last.
 */
struct hfi_wards;
struct hfi_ward;

enum hfi_restart {
    HFI_RESTART_NO,      /* it cannot be, or not now: the process has to end */
    HFI_RESTART_AGAIN,   /* it goes on from where it stands */
    HFI_RESTART_REPLACED /* another took its place: this one is looked after no more */
};
/* The watchdog's thread, with the lock of the wards held: may wait for nothing, and may not log. */
typedef enum hfi_restart (*hfi_restart_fn)(struct hfi_ward *ward);

/* Embedded in its owner, who fills the first part before it is added, and removes it before it goes. */
struct hfi_ward {
    char name[136];
    const struct hfi_pulse *pulse;
    hfi_restart_fn restart; /* NULL: never */
    void *user;
    int64_t period_ms; /* so long it may be silent by its own plan, besides the deadline */
    /* the wards': */
    struct hfi_watched state;
    bool begun;
    struct hfi_ward *next;
};

int hfi_wards_new(struct hfi_wards **wards);
struct hfi_wards *hfi_wards_hold(struct hfi_wards *wards);
void hfi_wards_free(struct hfi_wards *wards); /* one reference. NULL is fine, here and below */
void hfi_wards_add(struct hfi_wards *wards, struct hfi_ward *ward);
void hfi_wards_remove(struct hfi_wards *wards, struct hfi_ward *ward); /* one that is not there: a no-op */

/* What is to be said of one. */
struct hfi_ward_word {
    enum hfi_watchdog_word word;
    char name[136];
    int thread;
    int64_t silent_ms;
};
#define HFI_WARD_WORDS 32 /* of one look; what is not looked at any more is so in the next one */
/* One round: judges each, begins those again that hang and can be, once until they beat again. How many words there are. */
size_t hfi_wards_look(struct hfi_wards *wards, const struct hfi_watchdog_limits *limits, struct hf_mono now,
                      struct hfi_ward_word *words);

struct hfi_wards_counts {
    uint64_t late, missed, restarted; /* now; words that said so; begun again */
};
void hfi_wards_count(const struct hfi_wards *wards, struct hfi_wards_counts *counts);

#endif
