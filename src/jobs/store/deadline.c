/* SPDX-License-Identifier: MIT */
/*
 * Ends statements that take too long (I10): SQLite asks here every so many steps of its machine, which costs nothing
 * for what is short. Must never be in force during COMMIT: a transaction that is on the disk could be called interrupted
 * then, and be done once more. What hangs in the kernel asks nobody and is not ended: the lease of the
 * node is the answer to that. Whichever thread uses the handle.
 */
#include "jobs/store/deadline.h"

#define STEPS 20000 /* under a millisecond of pure work */

static int ask(void *user) {
    struct hfi_deadline *deadline = user;
    if (deadline->until.us == 0 || hfi_mono_now().us < deadline->until.us)
        return 0;
    deadline->cut = true;
    return 1;
}

void hfi_deadline_watch(struct hfi_deadline *deadline, sqlite3 *db) {
    sqlite3_progress_handler(db, STEPS, ask, deadline);
}

void hfi_deadline_start(struct hfi_deadline *deadline) {
    deadline->cut = false;
    deadline->until.us = hfi_add(hfi_mono_now_coarse().us, deadline->limit_us);
}

void hfi_deadline_stop(struct hfi_deadline *deadline) {
    deadline->until.us = 0;
}

bool hfi_deadline_ended(const struct hfi_deadline *deadline, int native) {
    return deadline->cut && (native & 0xff) == SQLITE_INTERRUPT;
}
