/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_LADDER_PLOT_H
#define HFI_PROGRAM_LADDER_PLOT_H

#include "holdfast/measured.h"

/* "1.24 ms": a measured duration for people; -1 is "-". HFI_US_ROOM bytes. */
#define HFI_US_ROOM 24
char *hfi_show_us(int64_t us, char *text);
/* A histogram of one phase, two rows for each doubling, with the limit (0: none) drawn in where it is. */
void hfi_ladder_plot(const struct hf_measured *measured, enum hf_phase phase, const char *limit, int64_t limit_ms);
bool hfi_fate_is_cut(enum hf_fate fate); /* by a limit, or by something else */

#endif
