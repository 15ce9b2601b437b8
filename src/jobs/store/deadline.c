/* SPDX-License-Identifier: MIT */
/*
 * Ends statements that take too long (I10): SQLite asks here every so many steps of its machine, which costs nothing
 * for what is short. Must never be in force during COMMIT: a transaction that is on the disk could be called interrupted
 * then, and be done once more. What hangs in the kernel asks nobody and is not ended: the lease of the
 * node is the answer to that. Whichever thread uses the handle.
 */
#include "jobs/store/deadline.h"

#include <stddef.h>

#define STEPS 20000 /* under a millisecond of pure work */

static struct hf_mono now_of(const struct hfi_deadline *deadline, struct hf_mono (*clock)(void)) {
    return deadline->now != NULL ? deadline->now() : clock();
}

static int ask(void *user) {
    struct hfi_deadline *deadline = user;
    if (!deadline->on || now_of(deadline, hfi_mono_now).us < deadline->until.us)
        return 0;
    deadline->cut = true;
    return 1;
}

void hfi_deadline_watch(struct hfi_deadline *deadline, sqlite3 *db) {
    sqlite3_progress_handler(db, STEPS, ask, deadline);
}

void hfi_deadline_start(struct hfi_deadline *deadline, int64_t budget_us) {
    int64_t limit_us = budget_us > 0 && budget_us < deadline->limit_us ? budget_us : deadline->limit_us;
    deadline->until.us = hfi_add(now_of(deadline, hfi_mono_now_coarse).us, limit_us);
    hfi_deadline_go_on(deadline);
}

void hfi_deadline_go_on(struct hfi_deadline *deadline) {
    deadline->cut = false;
    deadline->on = true;
}

void hfi_deadline_stop(struct hfi_deadline *deadline) {
    deadline->on = false;
}

bool hfi_deadline_ended(const struct hfi_deadline *deadline, int native) {
    return deadline->cut && (native & 0xff) == SQLITE_INTERRUPT;
}
