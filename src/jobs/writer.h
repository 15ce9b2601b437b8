/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_WRITER_H
#define HFI_JOBS_WRITER_H

#include "base/blocking.h"
#include "jobs/store.h"
#include "jobs/watchdog.h"

/*
 * The one writer thread of a store: takes whatever waits (urgent first, then in order), commits it as one group, answers.
 * A batch is bounded, and small when idle: an op never waits for company.
 */
struct hfi_writer;

#define HFI_WRITER_BATCH_OPS 1280 /* of one group: the outcomes of a whole claim, and the next claim */
#define HFI_WRITER_PATIENCE_MS 10000 /* a store that answers HF_EBUSY is tried again for so long */

/* The public store: a port and its writer. */
struct hf_store {
    struct hfi_store *port;
    struct hfi_writer *writer;
};

int hfi_writer_new(struct hfi_store *store, struct hfi_writer **writer); /* a thread of its own */
/* For virtual time: commits on `scheduler`'s thread, one turn after the first submit; used on that thread only. There
 * hfi_writer_do commits at once, on the caller's stack. */
int hfi_writer_new_on(struct hfi_store *store, struct hfi_scheduler *scheduler, struct hfi_writer **writer);
void hfi_writer_close(struct hfi_writer *writer); /* runs what waits, joins; NULL is fine */

/* Any thread. The op is the writer's until done ran (on op->home's thread, else on the writer's). Never fails. */
void hfi_writer_submit(struct hfi_writer *writer, struct hfi_op *op);
/* The same for a list of them (by `next`), in its order and as one: no group begins in the middle of its arrival. */
void hfi_writer_submit_all(struct hfi_writer *writer, struct hfi_op *first);
/* Blocking; returns op->code. HF_EDEADLK on the writer thread, or on the loop thread of a scheduler that registered it. */
int hfi_writer_do(struct hfi_writer *writer, struct hfi_op *op);
/*
 * Somebody who wants to know when the work of others was committed here: an enqueue, a cancel, a requeue, a redrive, a
 * pause, a forced state. `heard` runs on the writer's thread with its lock held: it may only post a task.
 */
struct hfi_writer_ear {
    void (*heard)(void *user);
    void *user;
    struct hfi_writer_ear *next;
};
void hfi_writer_listen(struct hfi_writer *writer, struct hfi_writer_ear *ear);
void hfi_writer_unlisten(struct hfi_writer *writer, struct hfi_writer_ear *ear); /* nothing is heard after it */
bool hfi_writer_on_thread(const struct hfi_writer *writer);

/* The wall clock an operation of this writer is stamped with: its scheduler's, else the system's. */
struct hf_wall hfi_writer_wall(const struct hfi_writer *writer);

/* The life of its thread, for a watchdog. */
const struct hfi_pulse *hfi_writer_pulse(const struct hfi_writer *writer);

struct hfi_writer_counts {
    uint64_t commits, ops, longest_us;
};
void hfi_writer_look(struct hfi_writer *writer, struct hfi_writer_counts *counts);

#endif
