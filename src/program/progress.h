/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_PROGRESS_H
#define HFI_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How far long work has come, on stderr: a bar on a terminal, a plain line every few seconds otherwise, nothing with
 * --quiet. `total` 0 = unknown.
 */
struct hfi_progress {
    const char *what; /* "enqueued" */
    uint64_t total, done;
    int64_t started_us, shown_us;
    bool terminal, shown;
};
void hfi_progress_start(struct hfi_progress *progress, const char *what, uint64_t total);
void hfi_progress_move(struct hfi_progress *progress, uint64_t done);
void hfi_progress_end(struct hfi_progress *progress); /* clears the bar */

#endif
