/* SPDX-License-Identifier: MIT */
/*
 * Counts, queues, downstreams and the doctor of the memory store. Any thread; takes the lock.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/views.h"
#include "sim/memory_state.h"

struct hf_wall hfi_memory_now(const struct hfi_memory *store) {
    return store->clock ? store->clock->ops->wall(store->clock) : hfi_wall_now();
}

static void count_job(struct hf_job_counts *counts, int state) {
    switch (state) {
    case HF_JOB_PENDING:
        counts->pending++;
        break;
    case HF_JOB_WAITING:
        counts->waiting++;
        break;
    case HF_JOB_RUNNING:
        counts->running++;
        break;
    case HF_JOB_SUCCEEDED:
        counts->succeeded++;
        break;
    case HF_JOB_DEAD:
        counts->dead++;
        break;
    case HF_JOB_QUARANTINED:
        counts->quarantined++;
        break;
    case HF_JOB_CANCELLED:
        counts->cancelled++;
        break;
    default:
        counts->other++;
        break;
    }
}

int hfi_memory_count_jobs(struct hfi_store *self, struct hf_job_counts *counts, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    (void)error;
    memset(counts, 0, sizeof *counts);
    counts->size = (uint32_t)sizeof *counts;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->jobs.count; i++)
        count_job(counts, ((struct hfi_memory_job *)store->jobs.items[i])->job->state);
    for (size_t i = 0; i < store->deads.count; i++)
        counts->dead_letters_open += ((struct hfi_memory_dead *)store->deads.items[i])->status == HF_DEAD_DEAD;
    for (size_t i = 0; i < store->alerts.count; i++) {
        const struct hfi_memory_alert *alert = store->alerts.items[i];
        counts->alerts_unsent += alert->state == HF_ALERT_UNSENT;
    }
    pthread_mutex_unlock(&store->lock);
    return 0;
}

/* Names of queues, each once, in order. */
static size_t gather_queues(struct hfi_memory *store, const char **names) {
    size_t count = 0;
    for (size_t i = 0; i < store->lanes.count + store->paused.count; i++) {
        const char *name = i < store->lanes.count
                               ? ((struct hfi_memory_lane *)store->lanes.items[i])->queue
                               : ((struct hfi_memory_queue *)store->paused.items[i - store->lanes.count])->name;
        size_t at = 0;
        if (*name == '\0')
            continue; /* of a lane that is no more */
        while (at < count && strcmp(names[at], name) < 0)
            at++;
        if (at < count && strcmp(names[at], name) == 0)
            continue;
        memmove(names + at + 1, names + at, (count - at) * sizeof *names);
        names[at] = name;
        count++;
    }
    return count;
}

static void fill_queue(struct hfi_memory *store, const char *name, struct hf_wall now, struct hf_queue_view *view) {
    const struct hfi_memory_queue *paused = hfi_memory_pause_of(store, name, now);
    *view = (struct hf_queue_view){
        .name = name, .paused = paused != NULL, .paused_until_us = paused ? paused->until_us : 0};
    for (size_t i = 0; i < store->jobs.count; i++) {
        const struct hfi_job *job = ((struct hfi_memory_job *)store->jobs.items[i])->job;
        if (strcmp(job->queue, name) != 0)
            continue;
        view->running += job->state == HF_JOB_RUNNING;
        if (job->state != HF_JOB_PENDING)
            continue;
        bool due = job->run_at_us <= now.us;
        view->due += due;
        view->scheduled += !due;
        if (due && (view->oldest_due_at_us == 0 || job->run_at_us < view->oldest_due_at_us))
            view->oldest_due_at_us = job->run_at_us;
    }
}

int hfi_memory_list_queues(struct hfi_store *self, struct hf_queue_list **list, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    struct hf_wall now = hfi_memory_now(store);
    int code = hfi_queue_list_new(list);
    pthread_mutex_lock(&store->lock);
    const char **names = hfi_alloc_array(store->lanes.count + store->paused.count, sizeof *names);
    size_t count = names ? gather_queues(store, names) : 0;
    if (!names)
        code = HF_ENOMEM;
    for (size_t i = 0; i < count && code == 0; i++) {
        struct hf_queue_view view;
        fill_queue(store, names[i], now, &view);
        code = hfi_queue_list_add(*list, &view);
    }
    hfi_free(names);
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_queue_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "list of queues", NULL, NULL);
}

/* Adds a job that is not over to the row of its limit's name; `views` are in order of names, room for one more. */
static size_t count_limit(struct hfi_memory *store, const struct hfi_memory_job *row, struct hf_limit_view *views,
                          size_t count) {
    struct hfi_memory_gauge *key = row->lane->of_limit;
    size_t length = strcspn(key->name, ":"), at = 0;
    while (at < count && (strncmp(views[at].name, key->name, length) < 0 ||
                          (strncmp(views[at].name, key->name, length) == 0 && strcspn(views[at].name, ":") < length)))
        at++;
    if (at == count || strncmp(views[at].name, key->name, length + 1) != 0) {
        memmove(views + at + 1, views + at, (count - at) * sizeof *views);
        views[at] = (struct hf_limit_view){.name = key->name};
        count++;
    }
    views[at].keys += key->look != store->limit_look;
    views[at].pending += row->job->state == HF_JOB_PENDING;
    views[at].running += row->job->state == HF_JOB_RUNNING;
    key->look = store->limit_look;
    return count;
}

/* With its name alone: a view has the whole key until here. */
static int add_limit(struct hf_limit_list *list, struct hf_limit_view *view) {
    char name[HFI_NAME_MAX + 1];
    size_t length = strcspn(view->name, ":");
    hfi_text_copy(name, length + 1 < sizeof name ? length + 1 : sizeof name, view->name);
    view->name = name;
    return hfi_limit_list_add(list, view);
}

int hfi_memory_look_phases(struct hfi_store *self, const char *key, hfi_phases_fn each, void *user, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    size_t seen = 0;
    (void)error;
    pthread_mutex_lock(&store->lock);
    for (size_t at = store->jobs.count; at > 0 && seen < HFI_PHASE_ROWS; at--) {
        const struct hfi_memory_job *row = store->jobs.items[at - 1];
        bool fits = strcmp(row->job->downstream, key) == 0 || strcmp(row->job->breaker_key, key) == 0;
        for (const struct hfi_memory_past *past = row->first; past; past = past->next, seen++) {
            const struct hfi_history *history = &past->history;
            struct hfi_phases phases = {history->resolve_us, history->connect_us, history->tls_us, history->first_byte_us,
                                        history->total_us};
            if (fits && history->total_us >= 0)
                each(&phases, user);
        }
    }
    pthread_mutex_unlock(&store->lock);
    return 0;
}

int hfi_memory_list_limits(struct hfi_store *self, struct hf_limit_list **list, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    int code = hfi_limit_list_new(list);
    pthread_mutex_lock(&store->lock);
    struct hf_limit_view *views = hfi_alloc_array(store->limit_gauges.count + 1, sizeof *views);
    size_t count = 0;
    if (!views)
        code = HF_ENOMEM;
    store->limit_look++;
    for (size_t i = 0; i < store->jobs.count && code == 0; i++) {
        const struct hfi_memory_job *row = store->jobs.items[i];
        if (row->lane->of_limit && (row->job->state == HF_JOB_PENDING || row->job->state == HF_JOB_RUNNING))
            count = count_limit(store, row, views, count);
    }
    for (size_t i = 0; i < count && i < HFI_LIMIT_NAMES_MAX && code == 0; i++)
        code = add_limit(*list, &views[i]);
    hfi_free(views);
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_limit_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "list of limits", NULL, NULL);
}

static bool keeps_back(const struct hfi_downstream_state *state, struct hf_wall now) {
    bool forced = state->forced != 0 && (state->forced_until_us == 0 || state->forced_until_us > now.us);
    return forced || state->phase != 0 || state->gate_until_us > now.us;
}

static uint64_t count_parked(struct hfi_memory *store, const struct hfi_memory_downstream *row, struct hf_wall now) {
    uint64_t parked = 0;
    for (size_t i = 0; keeps_back(&row->state, now) && i < store->jobs.count; i++) {
        const struct hfi_job *job = ((struct hfi_memory_job *)store->jobs.items[i])->job;
        parked += job->state == HF_JOB_PENDING && job->run_at_us <= now.us && strcmp(job->breaker_key, row->key) == 0;
    }
    return parked;
}

static int add_downstream(struct hfi_memory *store, const struct hfi_memory_downstream *row, struct hf_wall now,
                          struct hf_downstream_list *list) {
    const struct hfi_downstream_state *state = &row->state;
    struct hf_downstream_row view = {
        .key = row->key,
        .forced = state->forced,
        .forced_until_us = state->forced_until_us,
        .reason = state->reason,
        .phase = state->phase,
        .open_until_us = state->open_until_us,
        .gate_until_us = state->gate_until_us,
        .unhealthy_since_us = state->unhealthy_since_us,
        .trips = state->trips,
        .version = state->version,
        .parked = count_parked(store, row, now),
    };
    return hfi_downstream_list_add(list, &view);
}

/* The row whose key comes next after `key`; NULL none. */
static const struct hfi_memory_downstream *next_downstream(const struct hfi_memory *store, const char *key) {
    const struct hfi_memory_downstream *next = NULL;
    for (size_t i = 0; i < store->downstreams.count; i++) {
        const struct hfi_memory_downstream *row = store->downstreams.items[i];
        if ((!key || strcmp(row->key, key) > 0) && (!next || strcmp(row->key, next->key) < 0))
            next = row;
    }
    return next;
}

int hfi_memory_list_downstreams(struct hfi_store *self, struct hf_downstream_list **list, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    struct hf_wall now = hfi_memory_now(store);
    const struct hfi_memory_downstream *row = NULL;
    int code = hfi_downstream_list_new(list);
    pthread_mutex_lock(&store->lock);
    while (code == 0 && (row = next_downstream(store, row ? row->key : NULL)) != NULL)
        code = add_downstream(store, row, now, *list);
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_downstream_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "list of downstreams", NULL, NULL);
}

int hfi_memory_look(struct hfi_store *self, struct hf_store_info *info) {
    memset(info, 0, sizeof *info);
    info->size = (uint32_t)sizeof *info;
    info->schema = info->min_reader = info->min_writer = 1;
    snprintf(info->kind, sizeof info->kind, "%s", self->ops->kind);
    snprintf(info->uuid, sizeof info->uuid, "%s", self->uuid);
    return 0;
}

/* What one job has that should not be; NULL nothing. */
static const char *complaint(struct hfi_memory *store, const struct hfi_memory_job *row) {
    const struct hfi_job *job = row->job;
    bool owned = job->owner > 0 && (size_t)job->owner <= store->nodes.count &&
                 !((struct hfi_memory_node *)store->nodes.items[job->owner - 1])->gone;
    if (job->state == HF_JOB_RUNNING && !owned)
        return "is running, but its owner is gone";
    if (job->state == HF_JOB_PENDING && row->due.place == 0)
        return "is pending, but in no lane";
    if (strcmp(hf_job_state_name(job->state), "unknown") == 0)
        return "is in a state that this version does not know";
    return NULL;
}

int hfi_memory_doctor(struct hfi_store *self, hf_doctor_fn report, void *user, struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    int errors = 0;
    char text[160];
    (void)error;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->jobs.count; i++) {
        const struct hfi_memory_job *row = store->jobs.items[i];
        const char *wrong = complaint(store, row);
        if (!wrong)
            continue;
        errors++;
        snprintf(text, sizeof text, "job %lld %s", (long long)row->job->id, wrong);
        report(true, "jobs", text, "report it: it must not happen", user);
    }
    size_t undelivered = 0;
    for (size_t i = 0; i < store->alerts.count; i++)
        undelivered += ((struct hfi_memory_alert *)store->alerts.items[i])->state == HF_ALERT_UNDELIVERED;
    if (undelivered > 0) {
        snprintf(text, sizeof text, "%zu alerts could not be delivered", undelivered);
        report(false, "alerts", text, "mend the sink; `holdfast alert list --state undelivered` shows them", user);
    }
    pthread_mutex_unlock(&store->lock);
    if (errors == 0)
        report(false, "store", "nothing in it that should not be", "", user);
    return errors;
}
