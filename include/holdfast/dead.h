/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_DEAD_H
#define HOLDFAST_DEAD_H

#include <string.h>

#include "job.h"
#include "store.h"

HF_BEGIN

struct hf_dead_filter {
    uint32_t size;
    int32_t status;      /* -1 = any; default 0 = dead */
    int32_t death_class; /* -1 = any */
    const char *type, *queue, *error_type, *fingerprint; /* NULL = any; error_type by dotted prefix */
    int64_t since_us;
    int64_t after_id;    /* keyset cursor: ids below it (newest first); 0 = from the newest */
    uint32_t limit;      /* 100, at most 1000 */
};
static inline void hf_dead_filter_init(struct hf_dead_filter *filter) {
    memset(filter, 0, sizeof *filter);
    filter->size = (uint32_t)sizeof *filter;
    filter->death_class = -1;
    filter->limit = 100;
}
struct hf_dead_list;
HF_API int hf_dead_list_open(struct hf_store *store, const struct hf_dead_filter *filter, struct hf_dead_list **list,
                             struct hf_error *error);
HF_API size_t hf_dead_list_count(const struct hf_dead_list *list);
HF_API const struct hf_dead_view *hf_dead_list_at(const struct hf_dead_list *list, size_t index);
HF_API int64_t hf_dead_list_next(const struct hf_dead_list *list);
HF_API void hf_dead_list_free(struct hf_dead_list *list);

struct hf_dead;
HF_API int hf_dead_get(struct hf_store *store, int64_t id, struct hf_dead **dead, struct hf_error *error);
HF_API const struct hf_dead_view *hf_dead_look(const struct hf_dead *dead); /* with payload and detail */
HF_API void hf_dead_free(struct hf_dead *dead);

/* What a person decides about a dead letter, on the record. `actor` is required. */
struct hf_dead_action {
    uint32_t size;
    const char *actor;
    const char *reason;       /* NULL */
    const void *payload;      /* redrive only: a corrected one; needs new_key. NULL = the snapshot */
    size_t payload_length;
    bool new_key;             /* redrive only: a new idempotency key */
};
static inline void hf_dead_action_init(struct hf_dead_action *action) {
    memset(action, 0, sizeof *action);
    action->size = (uint32_t)sizeof *action;
}

/*
 * Redrive: a new job from the snapshot, the row marked in the same transaction. HF_ENOENT: no such dead letter;
 * HF_ESTATE: settled already (`error` names how and the new job), or its payload is cut and `action` brings none.
 * `new_job` gets the id. Since 0.1.
 */
HF_API int hf_dead_redrive(struct hf_store *store, int64_t id, const struct hf_dead_action *action, int64_t *new_job,
                           struct hf_error *error);
HF_API int hf_dead_resolve(struct hf_store *store, int64_t id, const struct hf_dead_action *action, struct hf_error *error);
HF_API int hf_dead_discard(struct hf_store *store, int64_t id, const struct hf_dead_action *action, struct hf_error *error);

HF_END

#endif
