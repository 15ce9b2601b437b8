/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_QUEUE_H
#define HOLDFAST_QUEUE_H

#include "job.h"
#include "store.h"

struct sqlite3;

HF_BEGIN

/*
 * Enqueues one job; returns only after the commit. `id` gets the id; with a unique key that is taken the existing
 * id and `*existed` = true (may be NULL). Errors: HF_EINVAL, HF_ETEXT, HF_ETOOBIG, HF_ENOSPC, HF_EIO, HF_EDEADLK. Since 0.1.
 */
HF_API int hf_enqueue(struct hf_store *store, const struct hf_job_spec *spec, int64_t *id, bool *existed,
                      struct hf_error *error);

/*
 * Enqueues `count` jobs (at most 10,000: HF_ETOOBIG) in one transaction: all or none. `ids` and
 * `existed` have room for count each, or are NULL; they are filled as by hf_enqueue. `error.line` is the index + 1 of the
 * job that was refused. Errors as hf_enqueue. Since 0.1.
 */
HF_API int hf_enqueue_many(struct hf_store *store, const struct hf_job_spec *specs, size_t count, int64_t *ids,
                           bool *existed, struct hf_error *error);

/* Runs iff start returned 0, exactly once, on the store's writer thread: it must not block. The spec is copied before
 * start returns; errors of start: HF_EINVAL, HF_ETEXT, HF_ETOOBIG, HF_ENOMEM. Any thread. Since 0.1. */
typedef void (*hf_enqueue_fn)(int code, int64_t id, bool existed, void *user);
HF_API int hf_enqueue_start(struct hf_store *store, const struct hf_job_spec *spec, hf_enqueue_fn done, void *user);

/*
 * Writes the job into the outbox of the application's own SQLite file (outbox.h), inside the caller's transaction: it
 * becomes a job if and only if that commits. Nothing is begun, committed, rolled back or created here; without a
 * transaction SQLite commits the one row. `row` (may be NULL) gets its rowid. What the spec leaves out is filled in by
 * the relay: run_at and the type's queue, downstream and curve; a message id is made up unless the spec brings its own. Errors:
 * HF_ENOENT (no such table: hf_outbox_create_in_sqlite once), HF_EINVAL, HF_ETEXT, HF_ETOOBIG, HF_EBUSY, HF_ENOSPC,
 * HF_EIO; see sqlite3_get_autocommit whether SQLite ended the transaction. The handle's thread. Since 0.1.
 */
HF_API int hf_enqueue_in_sqlite(struct sqlite3 *db, const struct hf_job_spec *spec, int64_t *row, struct hf_error *error);

HF_END

#endif
