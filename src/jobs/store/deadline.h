/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_DEADLINE_H
#define HFI_JOBS_STORE_DEADLINE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/clock.h"

/*
 * How long one use of a handle may take: a read, or the statements of a write transaction before its commit. A statement
 * that goes beyond it ends with SQLITE_INTERRUPT. One per handle, on the thread that uses the handle.
 */
#define HFI_DEADLINE_MS 10000
#define HFI_DEADLINE_TEXT "took longer than 10 s"

struct hfi_deadline {
    int64_t limit_us;     /* HFI_DEADLINE_MS; tests set less */
    struct hf_mono until; /* 0: none now */
    bool cut;             /* it ended a statement since it was started */
};

void hfi_deadline_watch(struct hfi_deadline *deadline, sqlite3 *db); /* `deadline` lives as long as the handle */
void hfi_deadline_start(struct hfi_deadline *deadline);
void hfi_deadline_stop(struct hfi_deadline *deadline); /* `cut` stays, for whoever has to tell the reason */
bool hfi_deadline_ended(const struct hfi_deadline *deadline, int native); /* was it the deadline? */

#endif
