/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_DEADLINE_H
#define HFI_JOBS_STORE_DEADLINE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/clock.h"

/*
 * How long one use of a handle may take: a read, or the statements before the commit of all transactions that the answer
 * to one group takes. A statement that goes beyond it ends with SQLITE_INTERRUPT. One per handle, on the thread that uses
 * the handle.
 */
#define HFI_DEADLINE_MS 10000
#define HFI_DEADLINE_TEXT "took longer than 10 s"

struct hfi_deadline {
    int64_t limit_us;     /* HFI_DEADLINE_MS; tests set less */
    struct hf_mono until;
    bool on;              /* it is asked for */
    bool cut;             /* it ended a statement since it was started or went on */
    struct hf_mono (*now)(void); /* NULL: the system's; tests have their own */
};

void hfi_deadline_watch(struct hfi_deadline *deadline, sqlite3 *db); /* `deadline` lives as long as the handle */
/* `budget_us`: a limit of the moment, should it be less than its own; 0 none. */
void hfi_deadline_start(struct hfi_deadline *deadline, int64_t budget_us);
void hfi_deadline_go_on(struct hfi_deadline *deadline); /* after a stop: towards the same end */
void hfi_deadline_stop(struct hfi_deadline *deadline); /* `cut` stays, for whoever has to tell the reason */
bool hfi_deadline_ended(const struct hfi_deadline *deadline, int native); /* was it the deadline? */

#endif
