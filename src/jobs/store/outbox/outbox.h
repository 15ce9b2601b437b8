/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_OUTBOX_H
#define HFI_JOBS_OUTBOX_H

#include <sqlite3.h>

#include "holdfast/outbox.h"
#include "jobs/rulebook.h"
#include "jobs/store/deadline.h"
#include "jobs/store.h"

/*
 * What the files of the outbox share: the columns of its table, a row as it was read and judged, the handle on the
 * application's file.
 */

/* X(NAME, column). Only message_id, type and payload have to exist; a row may leave all but type and payload NULL. */
#define HFI_OUTBOX_MAP(X)                                                                                      \
    X(MESSAGE_ID, "message_id") X(TYPE, "type") X(PAYLOAD, "payload") X(QUEUE, "queue")                        \
        X(PRIORITY, "priority") X(RUN_AT, "run_at") X(EXPIRES_AT, "expires_at")                                \
        X(MAX_EXECUTIONS, "max_executions") X(CURVE, "curve") X(DOWNSTREAM, "downstream")                      \
        X(LIMIT_NAME, "limit_name") X(LIMIT_KEY, "limit_key") X(UNIQUE_KEY, "unique_key")                      \
        X(ON_CONFLICT, "on_conflict") X(UNIQUE_WINDOW_MS, "unique_window_ms")                                  \
        X(UNIQUE_STATES, "unique_states") X(IDEMPOTENCY_KEY, "idempotency_key")                                \
        X(CORRELATION_ID, "correlation_id") X(TRACE_CONTEXT, "trace_context") X(TAGS, "tags")                  \
        X(CONTENT_TYPE, "content_type") X(SOURCE, "source") X(CREATED_AT, "created_at")
enum hfi_outbox_column {
#define HFI_OUTBOX_MEMBER(name, text) HFI_OUTBOX_##name,
    HFI_OUTBOX_MAP(HFI_OUTBOX_MEMBER)
#undef HFI_OUTBOX_MEMBER
        HFI_OUTBOX_COLUMNS
};
extern const char *const hfi_outbox_columns[HFI_OUTBOX_COLUMNS];

/* Why a row can never be a job, and what could be read of it. */
struct hfi_outbox_poison {
    struct hfi_death death;
    char type[HFI_TYPE_MAX + 1], queue[HFI_NAME_MAX + 1], downstream[HFI_NAME_MAX + 1];
    char content_type[HFI_NAME_MAX + 1], correlation_id[HFI_CORRELATION_MAX + 1];
};

struct hfi_outbox_row {
    int64_t rowid;
    sqlite3_value *raw_id;             /* message_id as it stands there, for the deletion */
    bool stuck;                        /* not even its letter is taken: it stays */
    bool nameless;                     /* it stands for nothing: to be given one first */
    struct hfi_outbox_poison *poison;  /* NULL: put.job is to be put; else put.job is what its letter holds */
    struct hfi_put put;
    struct hfi_spec_room room;
    int64_t waits[HF_CURVE_MAX];
    char host[HF_HOST_LENGTH];         /* of its spec */
    char *block;                       /* of its texts and payload */
    size_t bytes;                      /* of all that is kept of it */
};
void hfi_outbox_row_free(struct hfi_outbox_row *row);
/* Makes poison of a row that the store refused for good. HF_ENOMEM. */
int hfi_outbox_condemn(struct hfi_outbox_row *row, const struct hf_error *why);

/* How rows are judged. */
struct hfi_outbox_judge {
    const struct hfi_rulebook *book; /* queue, downstream and policy of types that say nothing; NULL none */
    const char *source;
    uint32_t payload_max;
    struct hf_wall now;
};
/* The row under the statement. at[]: where its columns are, -1 = it has none. HF_ENOMEM. */
int hfi_outbox_judge(const struct hfi_outbox_judge *judge, sqlite3_stmt *statement, const int *at,
                     struct hfi_outbox_row *row);

/* The application's file. */
struct hfi_outbox_file {
    const char *path;
    sqlite3 *db; /* NULL: not open */
    uint64_t device, inode;
    struct hfi_deadline deadline; /* of each use; limit_us 0 becomes HFI_DEADLINE_MS at the open (I10) */
};
/* `sqlite:PATH` or a path. */
const char *hfi_outbox_path(const char *file);
int hfi_outbox_open(struct hfi_outbox_file *file, struct hf_error *error); /* also again, when another file lies there */
void hfi_outbox_close(struct hfi_outbox_file *file);
int hfi_outbox_count(struct hfi_outbox_file *file, struct hf_outbox_view *view, struct hf_error *error);
/* Up to `room` rows above `after`, by rowid, until more than some MiB of them are kept. */
int hfi_outbox_read(struct hfi_outbox_file *file, const struct hfi_outbox_judge *judge, int64_t after,
                    struct hfi_outbox_row *rows, size_t room, size_t *count, int64_t *oldest_us, struct hf_error *error);
/* Gives the nameless ones a message id of their own, for good. */
int hfi_outbox_name(struct hfi_outbox_file *file, const struct hfi_outbox_row *rows, size_t count, struct hf_error *error);
/* Deletes rows that are what they were. */
int hfi_outbox_delete(struct hfi_outbox_file *file, const struct hfi_outbox_row *rows, size_t count, struct hf_error *error);

/* SQLite's last error on `db` as ours; "no such table" is HF_ENOENT. */
int hfi_outbox_fail(struct hf_error *error, sqlite3 *db, int native, const char *what);

#endif
