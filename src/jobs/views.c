/* SPDX-License-Identifier: MIT */
/*
 * The snapshots behind hf_job_list, hf_job, hf_dead_list, hf_dead, hf_dead_group_list, hf_redrive_list, hf_alert_list,
 * hf_queue_list, hf_limit_list and hf_downstream_list:
 * rows with the texts they point to, all in one owner. Must never point into a store: a snapshot outlives what it was
 * taken of. One thread at a time.
 */
#include "jobs/views.h"

#include "base/alloc.h"

/* Memory that goes all at once; what it gave never moves. */
#define CHUNK_BYTES 4096
struct chunk {
    struct chunk *next;
    size_t used, room;
    char data[];
};

/* A snapshot: rows of one kind and the chunks their pointers lead to. */
struct snapshot {
    struct chunk *chunks;
    char *rows;
    size_t count, room, row_size;
    int64_t next;
};

/* Where a kind of row keeps pointers to texts, and to bytes that only single views carry. */
struct shape {
    size_t row_size;
    const size_t *texts;
    size_t text_count;
    const size_t *bytes; /* pairs: pointer, length */
    size_t byte_count;
};

static char *chunk_take(struct snapshot *snapshot, size_t size) {
    struct chunk *chunk = snapshot->chunks;
    if (!chunk || chunk->room - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = hfi_alloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        chunk->room = room;
        chunk->next = snapshot->chunks;
        snapshot->chunks = chunk;
    }
    char *taken = chunk->data + chunk->used;
    chunk->used += size;
    return taken;
}

static bool copy_text(struct snapshot *snapshot, const char **text) {
    if (!*text || !**text) {
        *text = "";
        return true;
    }
    size_t size = strlen(*text) + 1;
    char *copy = chunk_take(snapshot, size);
    if (!copy)
        return false;
    memcpy(copy, *text, size);
    *text = copy;
    return true;
}

static bool copy_bytes(struct snapshot *snapshot, const void **bytes, size_t length, bool whole) {
    if (!whole || !*bytes || length == 0) {
        *bytes = NULL;
        return true;
    }
    char *copy = chunk_take(snapshot, length);
    if (!copy)
        return false;
    memcpy(copy, *bytes, length);
    *bytes = copy;
    return true;
}

static void *row_room(struct snapshot *snapshot, size_t row_size) {
    if (snapshot->count == snapshot->room) {
        size_t room = snapshot->room > 0 ? snapshot->room * 2 : 16;
        char *rows = hfi_realloc(snapshot->rows, room * row_size);
        if (!rows)
            return NULL;
        snapshot->rows = rows;
        snapshot->room = room;
        snapshot->row_size = row_size;
    }
    return snapshot->rows + snapshot->count * row_size;
}

/* `whole`: with payload, result and the like. */
static int add(struct snapshot *snapshot, const struct shape *shape, const void *row, bool whole) {
    char *copy = row_room(snapshot, shape->row_size);
    if (!copy)
        return HF_ENOMEM;
    memcpy(copy, row, shape->row_size);
    uint32_t size = (uint32_t)shape->row_size;
    memcpy(copy, &size, sizeof size); /* every view begins with its size */
    bool copied = true;
    for (size_t i = 0; i < shape->text_count; i++)
        copied = copied && copy_text(snapshot, (const char **)(void *)(copy + shape->texts[i]));
    for (size_t i = 0; i < shape->byte_count; i++) {
        size_t length = *(size_t *)(void *)(copy + shape->bytes[2 * i + 1]);
        copied = copied && copy_bytes(snapshot, (const void **)(void *)(copy + shape->bytes[2 * i]), length, whole);
    }
    if (!copied)
        return HF_ENOMEM;
    snapshot->count++;
    return 0;
}

static const void *at(const struct snapshot *snapshot, size_t index) {
    return index < snapshot->count ? snapshot->rows + index * snapshot->row_size : NULL;
}

static void clear(struct snapshot *snapshot) {
    while (snapshot->chunks) {
        struct chunk *chunk = snapshot->chunks;
        snapshot->chunks = chunk->next;
        hfi_free(chunk);
    }
    hfi_free(snapshot->rows);
}

#define FIELD(type, name) offsetof(struct type, name)
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const size_t job_texts[] = {
    FIELD(hf_job_view, type),
    FIELD(hf_job_view, queue),
    FIELD(hf_job_view, downstream),
    FIELD(hf_job_view, limit_key),
    FIELD(hf_job_view, unique_key),
    FIELD(hf_job_view, idempotency_key),
    FIELD(hf_job_view, correlation_id),
    FIELD(hf_job_view, tags),
    FIELD(hf_job_view, content_type),
    FIELD(hf_job_view, owner),
    FIELD(hf_job_view, not_before_reason),
    FIELD(hf_job_view, error_class),
    FIELD(hf_job_view, error_type),
    FIELD(hf_job_view, error_message),
    FIELD(hf_job_view, cancel_reason),
    FIELD(hf_job_view, progress_text),
    FIELD(hf_job_view, shown),
    FIELD(hf_job_view, source),
    FIELD(hf_job_view, source_message_id),
    FIELD(hf_job_view, cancel_by),
};
static const size_t job_bytes[] = {
    FIELD(hf_job_view, payload),
    FIELD(hf_job_view, payload_length),
    FIELD(hf_job_view, result),
    FIELD(hf_job_view, result_length),
    FIELD(hf_job_view, checkpoint),
    FIELD(hf_job_view, checkpoint_length),
};
static const struct shape job_shape = {sizeof(struct hf_job_view), job_texts, COUNT(job_texts), job_bytes,
                                       COUNT(job_bytes) / 2};

static const size_t history_texts[] = {
    FIELD(hf_history_view, node),       FIELD(hf_history_view, event),         FIELD(hf_history_view, error_class),
    FIELD(hf_history_view, error_type), FIELD(hf_history_view, error_message), FIELD(hf_history_view, rule),
    FIELD(hf_history_view, shown),      FIELD(hf_history_view, breaker),
};
static const struct shape history_shape = {sizeof(struct hf_history_view), history_texts, COUNT(history_texts), NULL,
                                           0};

static const size_t link_texts[] = {FIELD(hf_link_view, type)};
static const struct shape link_shape = {sizeof(struct hf_link_view), link_texts, 1, NULL, 0};

/* `detail` is a text, but one that only the single view carries. */
static const size_t dead_texts[] = {
    FIELD(hf_dead_view, source),
    FIELD(hf_dead_view, source_message_id),
    FIELD(hf_dead_view, type),
    FIELD(hf_dead_view, queue),
    FIELD(hf_dead_view, downstream),
    FIELD(hf_dead_view, content_type),
    FIELD(hf_dead_view, error_type),
    FIELD(hf_dead_view, error_message),
    FIELD(hf_dead_view, detail),
    FIELD(hf_dead_view, rule),
    FIELD(hf_dead_view, correlation_id),
    FIELD(hf_dead_view, node),
    FIELD(hf_dead_view, fingerprint),
    FIELD(hf_dead_view, cause),
    FIELD(hf_dead_view, settled_by),
    FIELD(hf_dead_view, settled_reason),
    FIELD(hf_dead_view, new_job_outcome),
    FIELD(hf_dead_view, origin),
    FIELD(hf_dead_view, breaker_key),
    FIELD(hf_dead_view, limit_key),
    FIELD(hf_dead_view, unique_key),
    FIELD(hf_dead_view, trace_context),
    FIELD(hf_dead_view, tags),
    FIELD(hf_dead_view, error_class),
    FIELD(hf_dead_view, idempotency_key),
    FIELD(hf_dead_view, curve_ms),
};
static const size_t dead_bytes[] = {FIELD(hf_dead_view, payload), FIELD(hf_dead_view, payload_length)};
static const struct shape dead_shape = {sizeof(struct hf_dead_view), dead_texts, COUNT(dead_texts), dead_bytes, 1};

static const size_t group_texts[] = {
    FIELD(hf_dead_group_view, fingerprint), FIELD(hf_dead_group_view, type),          FIELD(hf_dead_group_view, downstream),
    FIELD(hf_dead_group_view, error_type),  FIELD(hf_dead_group_view, error_message), FIELD(hf_dead_group_view, rule),
};
static const struct shape group_shape = {sizeof(struct hf_dead_group_view), group_texts, COUNT(group_texts), NULL, 0};

static const size_t redrive_texts[] = {
    FIELD(hf_redrive_view, actor), FIELD(hf_redrive_view, reason),     FIELD(hf_redrive_view, note),        FIELD(hf_redrive_view, type),
    FIELD(hf_redrive_view, queue), FIELD(hf_redrive_view, error_type), FIELD(hf_redrive_view, fingerprint),
};
static const struct shape redrive_shape = {sizeof(struct hf_redrive_view), redrive_texts, COUNT(redrive_texts), NULL, 0};

static const size_t forwarded_texts[] = {FIELD(hf_dead_forward, name), FIELD(hf_dead_forward, outcome)};
static const struct shape forwarded_shape = {sizeof(struct hf_dead_forward), forwarded_texts, 2, NULL, 0};

static const size_t forward_texts[] = {FIELD(hf_forward_view, name)};
static const struct shape forward_shape = {sizeof(struct hf_forward_view), forward_texts, 1, NULL, 0};

static const size_t queue_texts[] = {FIELD(hf_queue_view, name)};
static const struct shape queue_shape = {sizeof(struct hf_queue_view), queue_texts, 1, NULL, 0};

static const size_t limit_texts[] = {FIELD(hf_limit_view, name)};
static const struct shape limit_shape = {sizeof(struct hf_limit_view), limit_texts, 1, NULL, 0};

static const size_t downstream_texts[] = {FIELD(hf_downstream_row, key), FIELD(hf_downstream_row, reason)};
static const struct shape downstream_shape = {sizeof(struct hf_downstream_row), downstream_texts, 2, NULL, 0};

static const size_t alert_texts[] = {FIELD(hf_alert_view, sink), FIELD(hf_alert_view, type),
                                     FIELD(hf_alert_view, error_type), FIELD(hf_alert_view, last_error)};
static const struct shape alert_shape = {sizeof(struct hf_alert_view), alert_texts, 4, NULL, 0};

struct hf_job_list {
    struct snapshot snapshot;
};
struct hf_dead_list {
    struct snapshot snapshot;
};
struct hf_forward_list {
    struct snapshot snapshot;
};
struct hf_dead_group_list {
    struct snapshot snapshot;
    uint64_t total;
    int64_t newest;
};
struct hf_redrive_list {
    struct snapshot snapshot;
};
struct hf_alert_list {
    struct snapshot snapshot;
};
struct hf_queue_list {
    struct snapshot snapshot;
};
struct hf_limit_list {
    struct snapshot snapshot;
};
struct hf_downstream_list {
    struct snapshot snapshot;
};
struct hf_job {
    struct snapshot snapshot; /* one row */
    struct snapshot history, links;
    uint64_t children;
};
struct hf_dead {
    struct snapshot snapshot; /* one row */
    struct snapshot forwards;
};

/* What every list has: made, counted, read by index, freed. */
#define LIST(list_name, view)                                                                                          \
    int hfi_##list_name##_new(struct hf_##list_name **list) {                                                          \
        *list = hfi_alloc(sizeof **list);                                                                              \
        return *list ? 0 : HF_ENOMEM;                                                                                  \
    }                                                                                                                  \
    size_t hf_##list_name##_count(const struct hf_##list_name *list) {                                                 \
        return list->snapshot.count;                                                                                   \
    }                                                                                                                  \
    const struct view *hf_##list_name##_at(const struct hf_##list_name *list, size_t index) {                          \
        return at(&list->snapshot, index);                                                                             \
    }                                                                                                                  \
    void hf_##list_name##_free(struct hf_##list_name *list) {                                                          \
        if (list)                                                                                                      \
            clear(&list->snapshot);                                                                                    \
        hfi_free(list);                                                                                                \
    }
LIST(job_list, hf_job_view)
LIST(dead_list, hf_dead_view)
LIST(dead_group_list, hf_dead_group_view)
LIST(redrive_list, hf_redrive_view)
LIST(forward_list, hf_forward_view)
LIST(alert_list, hf_alert_view)
LIST(queue_list, hf_queue_view)
LIST(limit_list, hf_limit_view)
LIST(downstream_list, hf_downstream_row)
#undef LIST

int hfi_job_list_add(struct hf_job_list *list, const struct hf_job_view *row) {
    return add(&list->snapshot, &job_shape, row, false);
}

void hfi_job_list_set_next(struct hf_job_list *list, int64_t cursor) {
    list->snapshot.next = cursor;
}

int64_t hf_job_list_next(const struct hf_job_list *list) {
    return list->snapshot.next;
}

int hfi_dead_list_add(struct hf_dead_list *list, const struct hf_dead_view *row) {
    struct hf_dead_view lean = *row;
    lean.detail = "";
    return add(&list->snapshot, &dead_shape, &lean, false);
}

void hfi_dead_list_set_next(struct hf_dead_list *list, int64_t cursor) {
    list->snapshot.next = cursor;
}

int64_t hf_dead_list_next(const struct hf_dead_list *list) {
    return list->snapshot.next;
}

int hfi_dead_group_list_add(struct hf_dead_group_list *list, const struct hf_dead_group_view *row) {
    list->total += row->count;
    list->newest = row->example_id > list->newest ? row->example_id : list->newest;
    return list->snapshot.count < HF_DEAD_GROUPS_MAX ? add(&list->snapshot, &group_shape, row, false) : 0;
}

int64_t hfi_dead_group_list_newest(const struct hf_dead_group_list *list) {
    return list->newest;
}

uint64_t hf_dead_group_list_total(const struct hf_dead_group_list *list) {
    return list->total;
}

int hfi_redrive_list_add(struct hf_redrive_list *list, const struct hf_redrive_view *row) {
    return add(&list->snapshot, &redrive_shape, row, false);
}

void hfi_redrive_list_set_next(struct hf_redrive_list *list, int64_t cursor) {
    list->snapshot.next = cursor;
}

int64_t hf_redrive_list_next(const struct hf_redrive_list *list) {
    return list->snapshot.next;
}

int hfi_alert_list_add(struct hf_alert_list *list, const struct hf_alert_view *row) {
    return add(&list->snapshot, &alert_shape, row, false);
}

void hfi_alert_list_set_next(struct hf_alert_list *list, int64_t cursor) {
    list->snapshot.next = cursor;
}

int64_t hf_alert_list_next(const struct hf_alert_list *list) {
    return list->snapshot.next;
}

int hfi_queue_list_add(struct hf_queue_list *list, const struct hf_queue_view *row) {
    return add(&list->snapshot, &queue_shape, row, false);
}

int hfi_limit_list_add(struct hf_limit_list *list, const struct hf_limit_view *row) {
    return add(&list->snapshot, &limit_shape, row, false);
}

int hfi_downstream_list_add(struct hf_downstream_list *list, const struct hf_downstream_row *row) {
    return add(&list->snapshot, &downstream_shape, row, false);
}

int hfi_job_new(const struct hf_job_view *row, struct hf_job **job) {
    struct hf_job *made = hfi_alloc(sizeof *made);
    *job = NULL;
    if (!made)
        return HF_ENOMEM;
    if (add(&made->snapshot, &job_shape, row, true) != 0) {
        hf_job_free(made);
        return HF_ENOMEM;
    }
    *job = made;
    return 0;
}

int hfi_job_add_history(struct hf_job *job, const struct hf_history_view *row) {
    return add(&job->history, &history_shape, row, false);
}

int hfi_job_add_link(struct hf_job *job, const struct hf_link_view *row) {
    if (!row->is_parent && job->children++ >= HF_CHILDREN_MAX)
        return 0;
    return add(&job->links, &link_shape, row, false);
}

size_t hf_job_link_count(const struct hf_job *job) {
    return job->links.count;
}

const struct hf_link_view *hf_job_link_at(const struct hf_job *job, size_t index) {
    return at(&job->links, index);
}

uint64_t hf_job_children(const struct hf_job *job) {
    return job->children;
}

const struct hf_job_view *hf_job_look(const struct hf_job *job) {
    return at(&job->snapshot, 0);
}

size_t hf_job_history_count(const struct hf_job *job) {
    return job->history.count;
}

const struct hf_history_view *hf_job_history_at(const struct hf_job *job, size_t index) {
    return at(&job->history, index);
}

void hf_job_free(struct hf_job *job) {
    if (!job)
        return;
    clear(&job->snapshot);
    clear(&job->history);
    clear(&job->links);
    hfi_free(job);
}

int hfi_dead_new(const struct hf_dead_view *row, struct hf_dead **dead) {
    struct hf_dead *made = hfi_alloc(sizeof *made);
    *dead = NULL;
    if (!made)
        return HF_ENOMEM;
    if (add(&made->snapshot, &dead_shape, row, true) != 0) {
        hf_dead_free(made);
        return HF_ENOMEM;
    }
    *dead = made;
    return 0;
}

int hfi_dead_add_forward(struct hf_dead *dead, const struct hf_dead_forward *row) {
    return add(&dead->forwards, &forwarded_shape, row, false);
}

size_t hf_dead_forward_count(const struct hf_dead *dead) {
    return dead->forwards.count;
}

const struct hf_dead_forward *hf_dead_forward_at(const struct hf_dead *dead, size_t index) {
    return at(&dead->forwards, index);
}

int hfi_forward_list_add(struct hf_forward_list *list, const struct hf_forward_view *row) {
    return add(&list->snapshot, &forward_shape, row, false);
}

const struct hf_dead_view *hf_dead_look(const struct hf_dead *dead) {
    return at(&dead->snapshot, 0);
}

void hf_dead_free(struct hf_dead *dead) {
    if (!dead)
        return;
    clear(&dead->snapshot);
    clear(&dead->forwards);
    hfi_free(dead);
}
