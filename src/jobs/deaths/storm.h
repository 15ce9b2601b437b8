/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_STORM_H
#define HFI_JOBS_DEATHS_STORM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How many deaths become few messages, per sink. The first death of a cause (a fingerprint) is told at once and opens a
 * window; the next one in it leads a summary that is due at the window's end, and the others attach to that one. Once the
 * summary is taken to be sent it is sealed, and the next window begins. Besides, no more than HFI_STORM_PER_MINUTE tries
 * go out in any minute: what had to wait goes out in one digest. Pure; wall µs.
 */
struct hfi_storm {
    int64_t until_us; /* the window's end; 0: there was none */
    int64_t lead;     /* alert that leads the open summary; 0 none */
};
enum hfi_storm_place {
    HFI_STORM_FIRST, /* a message of its own, now */
    HFI_STORM_LEADS, /* the summary, due at until_us: storm->lead is the caller's to set */
    HFI_STORM_JOINS  /* goes with storm->lead */
};
enum hfi_storm_place hfi_storm_arrives(struct hfi_storm *storm, int64_t now_us, int64_t window_us);
void hfi_storm_seal(struct hfi_storm *storm, int64_t now_us, int64_t window_us); /* its summary goes out */

#define HFI_STORM_PER_MINUTE 20
#define HFI_STORM_DIGEST_MAX 1000 /* messages that one digest takes in; more make another digest */
struct hfi_storm_pace {
    int64_t at_us[HFI_STORM_PER_MINUTE]; /* of the last tries; 0 none */
    bool held;                           /* something new had to wait */
};
uint32_t hfi_storm_room(const struct hfi_storm_pace *pace, int64_t now_us); /* tries that may begin now */
int64_t hfi_storm_room_at(const struct hfi_storm_pace *pace, int64_t now_us); /* when there is room; now if there is */
void hfi_storm_spend(struct hfi_storm_pace *pace, int64_t now_us);
/* A look at due messages, of which `fresh` say that some were never tried. True: make a digest of those first. */
bool hfi_storm_digests(struct hfi_storm_pace *pace, int64_t now_us, bool fresh);

#endif
