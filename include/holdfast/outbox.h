/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_OUTBOX_H
#define HOLDFAST_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "error.h"

/*
 * The transactional outbox: a table in the application's own SQLite file. A row that the application inserts in its own
 * transaction becomes a job if and only if that transaction commits [S4.12]: a node's relay reads the rows in order,
 * makes one job of each (source, message id), commits, and only then deletes them [S2.33]. Written from any language
 * with a plain INSERT (docs/outbox.md), from C with hf_enqueue_in_sqlite (queue.h).
 */
struct sqlite3;

#define HF_OUTBOX_TABLE "holdfast_outbox"

HF_BEGIN

/* The statement that makes the table, as in docs/outbox.md; nothing happens where it is there already. Since 0.1. */
HF_API const char *hf_outbox_ddl(void);

/*
 * Runs it on the application's handle, inside its transaction if there is one. Call it once, with the application's own
 * schema. Errors: HF_EINVAL, and what SQLite says (HF_EBUSY, HF_EIO …). The handle's thread. Since 0.1.
 */
HF_API int hf_outbox_create_in_sqlite(struct sqlite3 *db, struct hf_error *error);

/* An outbox whose rows a node turns into jobs. Everything is copied. */
struct hf_outbox_options {
    uint32_t size;
    const char *name;   /* 1…120 bytes, for logs and lists */
    const char *file;   /* the application's file: a path, or sqlite:PATH. It may be missing, or lack the table: tried again */
    const char *source; /* NULL: the name. Of rows that name none; all nodes that relay one file have to say the same */
    int64_t poll_ms;    /* 250: longest sleep before the file is looked at again; it is woken earlier by writes */
};
static inline void hf_outbox_options_init(struct hf_outbox_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->poll_ms = 250;
}

/* What waits in an outbox, whether a relay runs or not [S0.34]. */
struct hf_outbox_view {
    uint32_t size;
    uint64_t rows;
    int64_t oldest_at_us; /* µs UTC, when the first row was written; 0: none, or its created_at does not tell */
};
static inline void hf_outbox_view_init(struct hf_outbox_view *view) {
    memset(view, 0, sizeof *view);
    view->size = (uint32_t)sizeof *view;
}
/* Errors: HF_EINVAL, HF_ENOENT (no such file, or no outbox in it), HF_EBUSY, HF_EIO. Blocks on the disk. Since 0.1. */
HF_API int hf_outbox_look(const char *file, struct hf_outbox_view *view, struct hf_error *error);

/*
 * Do both name one file, each a path or sqlite:PATH, by whatever links? A file that is not there yet is known by its folder
 * and its name. A node refuses two outboxes on one file, and one on its store's: HF_EEXIST. Any thread; looks at the disk.
 * Since 0.1.
 */
HF_API bool hf_outbox_same_file(const char *one, const char *other);

HF_END

#endif
