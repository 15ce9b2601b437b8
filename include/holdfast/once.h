/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_ONCE_H
#define HOLDFAST_ONCE_H

#include <stdbool.h>

#include "api.h"
#include "error.h"

struct sqlite3;

HF_BEGIN

/*
 * The once-ledger: an effect that is data in the handler's own SQLite database happens once, however often the job runs.
 * Inside the caller's transaction (HF_ESTATE without one), before the effect; `*first` says whether `key` was new. Commit both
 * together: a crash before the commit leaves neither. Use hf_work_key as the key: executions, a requeue, a redrive and
 * a second delivery share it [S0.35]. The table `holdfast_once(key, at_us)` is made on demand; delete rows older than
 * any redrive. `key`: 1 … 300 bytes. HF_EINVAL, HF_ESTATE, HF_EBUSY, HF_ENOSPC, HF_EIO: roll back. The caller's thread. Since 0.1.
 *
 *     BEGIN IMMEDIATE
 *     hf_once_in_sqlite(db, hf_work_key(work), &first, &error)
 *     if (first) UPDATE accounts SET balance = balance + …
 *     COMMIT
 */
HF_API int hf_once_in_sqlite(struct sqlite3 *db, const char *key, bool *first, struct hf_error *error);

HF_END

#endif
