/* SPDX-License-Identifier: MIT */
/*
 * Lists and single views of jobs and dead letters of the memory store. Must never hand out a pointer into the store:
 * the snapshots copy. Any thread; takes the lock.
 */
#include <string.h>

#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/letter.h"
#include "jobs/views.h"
#include "sim/memory_state.h"

static const char *word(const char *text) {
    return text ? text : "";
}

/* Is its downstream's breaker open, or the like? */
static bool is_kept(struct hfi_memory *store, const struct hfi_job *job, struct hf_wall now) {
    for (size_t i = 0; i < store->downstreams.count; i++) {
        const struct hfi_memory_downstream *row = store->downstreams.items[i];
        if (strcmp(row->key, job->breaker_key) == 0)
            return hfi_downstream_keeps(&row->state, now);
    }
    return false;
}

static void fill_job(struct hfi_memory *store, const struct hfi_job *job, struct hf_job_view *view, char *key) {
    struct hf_wall now = hfi_memory_now(store);
    hfi_job_view_fill(view, job, hfi_memory_node_name(store, job->owner), store->base.uuid, key);
    view->shown = hfi_job_shown_text(job, is_kept(store, job, now), now);
}

static int64_t job_id(const void *item) {
    return ((const struct hfi_memory_job *)item)->job->id;
}

int hfi_memory_list_jobs(struct hfi_store *self, const struct hf_job_filter *filter, struct hf_job_list **list,
                         struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    uint32_t limit = hfi_page_limit(filter->limit);
    char key[HFI_IDEMPOTENCY_ROOM];
    struct hf_wall now = hfi_memory_now(store);
    int code = hfi_job_list_new(list);
    pthread_mutex_lock(&store->lock);
    size_t at = filter->after_id > 0 ? hfi_array_after(&store->jobs, filter->after_id - 1, job_id) : store->jobs.count;
    int64_t last = 0;
    for (; at > 0 && code == 0; at--) {
        const struct hfi_job *job = ((struct hfi_memory_job *)store->jobs.items[at - 1])->job;
        struct hf_job_view view;
        if (!hfi_job_fits(job, filter, is_kept(store, job, now), now))
            continue;
        if (hf_job_list_count(*list) == limit) {
            hfi_job_list_set_next(*list, last);
            break;
        }
        fill_job(store, job, &view, key);
        view.checkpoint_length = 0;
        code = hfi_job_list_add(*list, &view);
        last = job->id;
    }
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_job_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "list of jobs", NULL, NULL);
}

static int add_history(struct hfi_memory *store, const struct hfi_memory_job *row, struct hf_job *job) {
    int code = 0;
    for (const struct hfi_memory_past *past = row->first; past && code == 0; past = past->next) {
        struct hf_history_view view;
        hfi_history_view_fill(&view, &past->history, hfi_memory_node_name(store, past->history.node));
        code = hfi_job_add_history(job, &view);
    }
    return code;
}

static int add_links(const struct hfi_memory_job *row, struct hf_job *job) {
    int code = 0;
    for (size_t i = 0; i < row->parent_count && code == 0; i++) {
        const struct hfi_memory_parent *parent = &row->parents[i];
        struct hf_link_view view = {.id = parent->id, .is_parent = true, .on_end = parent->on_end,
                                    .state = parent->row ? parent->row->job->state : -1,
                                    .type = parent->row ? parent->row->job->type : ""};
        code = hfi_job_add_link(job, &view);
    }
    for (size_t i = 0; i < row->children.count && code == 0; i++) {
        const struct hfi_memory_job *child = row->children.items[i];
        struct hf_link_view view = {.id = child->job->id, .state = child->job->state, .type = child->job->type,
                                    .on_end = child->parents[0].on_end};
        code = hfi_job_add_link(job, &view);
    }
    return code;
}

int hfi_memory_get_job(struct hfi_store *self, int64_t id, struct hf_job **job, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    char key[HFI_IDEMPOTENCY_ROOM];
    int code = HF_ENOENT;
    *job = NULL;
    pthread_mutex_lock(&store->lock);
    const struct hfi_memory_job *row = hfi_memory_find(store, id);
    if (row) {
        struct hf_job_view view;
        fill_job(store, row->job, &view, key);
        code = hfi_job_new(&view, job);
        if (code == 0)
            code = add_history(store, row, *job);
        if (code == 0)
            code = add_links(row, *job);
    }
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_job_free(*job);
    *job = NULL;
    return hfi_fail(error, code, "job", NULL, code == HF_ENOENT ? "%lld does not exist" : "%lld", (long long)id);
}

void hfi_memory_dead_view(struct hfi_memory *store, const struct hfi_memory_dead *dead, struct hf_dead_view *view,
                          char *fingerprint) {
    const struct hfi_job *job = dead->job;
    const struct hfi_death *death = &dead->death;
    *view = (struct hf_dead_view){
        .status = dead->status,
        .death_class = (int32_t)death->death_class,
        .id = dead->id,
        .job_id = job->id,
        .death_no = death->death_no,
        .executions = job->executions,
        .failures = job->failures,
        .max_executions = dead->max_executions,
        .quarantined = death->quarantined,
        .payload_cut = death->payload_cut,
        .source = job->source,
        .source_message_id = job->source_message_id,
        .type = job->type,
        .queue = job->queue,
        .downstream = job->downstream,
        .content_type = job->content_type,
        .error_type = death->error_type,
        .error_message = death->message,
        .detail = dead->detail,
        .rule = death->rule,
        .correlation_id = job->correlation_id,
        .node = dead->node_name ? dead->node_name : hfi_memory_node_name(store, dead->node),
        .fingerprint = hfi_fingerprint_print(death->fingerprint, fingerprint),
        .cause = death->cause,
        .payload = job->payload,
        .payload_length = job->payload_length,
        .job_created_at_us = job->created_at_us,
        .dead_at_us = dead->dead_at_us,
        .settled_at_us = dead->settled_at_us,
        .settled_by = word(dead->settled_by),
        .settled_reason = word(dead->settled_reason),
        .new_job_id = dead->new_job_id,
        .new_job_outcome = dead->new_job_outcome,
        .task_id = dead->task_id,
    };
}

struct whole_room {
    char key[HFI_IDEMPOTENCY_ROOM], origin[HFI_ORIGIN_ROOM], waits[HFI_CURVE_WAITS_ROOM];
};

/* What lists leave out; its texts are the row's and the room's. */
static void fill_whole(const struct hfi_memory *store, const struct hfi_memory_dead *dead, struct hf_dead_view *view,
                       struct whole_room *room) {
    const struct hfi_job *job = dead->job;
    view->origin = dead->origin ? dead->origin : hfi_letter_origin(store->base.uuid, dead->id, room->origin);
    view->breaker_key = job->breaker_key;
    view->limit_key = job->limit_key;
    view->unique_key = job->unique_key;
    view->trace_context = job->trace_context;
    view->tags = job->tags;
    view->error_class = job->error_class;
    view->idempotency_key = job->root_id != 0 ? hfi_idempotency_key(job, store->base.uuid, room->key) : job->idempotency_key;
    view->curve_ms = job->policy ? hfi_curve_waits_print(job->policy, room->waits) : "";
    view->curve_executions = job->policy ? job->policy->max_executions : 0;
    view->curve_jitter_permille = job->policy ? job->policy->jitter_permille : 0;
    view->max_executions_given = job->max_executions;
    view->priority = job->priority;
    view->execution_timeout_ms = job->execution_timeout_ms;
    view->root_id = job->root_id;
}

int hfi_memory_list_dead(struct hfi_store *self, const struct hf_dead_filter *filter, struct hf_dead_list **list,
                         struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    uint32_t limit = hfi_page_limit(filter->limit);
    char fingerprint[17];
    int64_t last = 0;
    int code = hfi_dead_list_new(list);
    pthread_mutex_lock(&store->lock);
    for (size_t at = 0, count = store->deads.count; at < count && code == 0; at++) {
        const struct hfi_memory_dead *dead = store->deads.items[filter->oldest_first ? at : count - 1 - at];
        struct hf_dead_view view;
        if (filter->after_id > 0 && (filter->oldest_first ? dead->id <= filter->after_id : dead->id >= filter->after_id))
            continue;
        hfi_memory_dead_view(store, dead, &view, fingerprint);
        if (!hfi_dead_fits(&view, filter))
            continue;
        if (hf_dead_list_count(*list) == limit) {
            hfi_dead_list_set_next(*list, last);
            break;
        }
        code = hfi_dead_list_add(*list, &view);
        last = dead->id;
    }
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_dead_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "list of dead letters", NULL, NULL);
}

int hfi_memory_get_dead(struct hfi_store *self, int64_t id, struct hf_dead **dead, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    char fingerprint[17];
    struct whole_room room;
    int code = HF_ENOENT;
    *dead = NULL;
    pthread_mutex_lock(&store->lock);
    const struct hfi_memory_dead *row = hfi_memory_find_dead(store, id);
    if (row) {
        struct hf_dead_view view;
        hfi_memory_dead_view(store, row, &view, fingerprint);
        fill_whole(store, row, &view, &room);
        code = hfi_dead_new(&view, dead);
        if (code == 0)
            code = hfi_memory_dead_forwards(store, id, *dead);
    }
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_dead_free(*dead);
    *dead = NULL;
    return hfi_fail(error, code, "dead letter", NULL, code == HF_ENOENT ? "%lld does not exist" : "%lld",
                    (long long)id);
}
