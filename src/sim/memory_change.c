/* SPDX-License-Identifier: MIT */
/*
 * How the memory store changes a job: the transition and everything it means are made first, then linked in at once.
 * Must never leave half a change behind. Under the store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/deps.h"
#include "jobs/forward.h"
#include "jobs/hands.h"
#include "sim/memory_state.h"

static int64_t job_id(const void *item) {
    return ((const struct hfi_memory_job *)item)->job->id;
}

struct hfi_memory_job *hfi_memory_find(struct hfi_memory *store, int64_t id) {
    size_t at = hfi_array_after(&store->jobs, id - 1, job_id);
    struct hfi_memory_job *row = at < store->jobs.count ? store->jobs.items[at] : NULL;
    return row && row->job->id == id ? row : NULL;
}

const struct hfi_curve *hfi_memory_policy(struct hfi_memory *store, const struct hfi_curve *curve) {
    for (struct hfi_memory_policy *known = store->policies; known; known = known->next)
        if (hfi_curve_equal(&known->curve, curve))
            return &known->curve;
    struct hfi_memory_policy *policy = hfi_alloc(sizeof *policy);
    if (!policy)
        return NULL;
    hfi_curve_copy(&policy->curve, curve);
    policy->curve.id = ++store->next_policy;
    policy->next = store->policies;
    store->policies = policy;
    return &policy->curve;
}

int64_t hfi_memory_holder(struct hfi_memory *store, const char *scope, const struct hfi_memory_job *row) {
    const struct hfi_memory_job *holder = scope ? hfi_index_find(&store->unique, scope) : NULL;
    return holder && holder != row ? holder->job->id : 0;
}

static void wait_in_lane(struct hfi_memory_job *row) {
    struct hfi_heap *heap = &row->lane->due[row->job->priority];
    hfi_heap_remove(heap, &row->due);
    if (row->job->state != HF_JOB_PENDING)
        return;
    row->due.at_us = row->job->run_at_us;
    row->due.id = row->job->id;
    row->due.row = row;
    hfi_heap_push(heap, &row->due);
}

static void bind_unique(struct hfi_memory *store, struct hfi_memory_job *row) {
    int state = row->job->state;
    bool binds = row->scope && state >= 0 && state < 31 && ((row->job->unique_states != 0 ? row->job->unique_states : HFI_UNIQUE_STATES) >> state) & 1;
    if (binds && !row->bound)
        hfi_index_add(&store->unique, &row->unique, row->scope, row);
    else if (!binds && row->bound)
        hfi_index_remove(&store->unique, &row->unique);
    row->bound = binds;
}

/* Dead letters redriven or requeued to this job learn how it ended. */
static void tell_outcome(struct hfi_memory *store, struct hfi_memory_job *row) {
    if (!row->awaited || row->job->finished_at_us == 0)
        return;
    row->awaited = false;
    for (size_t i = 0; i < store->deads.count; i++) {
        struct hfi_memory_dead *dead = store->deads.items[i];
        if (dead->new_job_id != row->job->id || dead->new_job_outcome[0])
            continue;
        dead->new_job_outcome = hf_job_state_name(row->job->state);
        hfi_memory_redrive_job_ended(store, dead->task_id, row->job->state);
    }
}

static void count_running(const struct hfi_memory_job *row, int from, int to) {
    size_t more = to == HF_JOB_RUNNING, less = from == HF_JOB_RUNNING;
    row->lane->of_queue->running += more - less;
    if (row->lane->of_limit)
        row->lane->of_limit->running += more - less;
}

void hfi_memory_replace(struct hfi_memory *store, struct hfi_memory_job *row, struct hfi_job *next) {
    struct hfi_job *before = row->job;
    count_running(row, before->state, next->state);
    row->job = next;
    if (!row->scope)
        next->unique_key = ""; /* its owner may not know yet that it lost the key */
    wait_in_lane(row);
    bind_unique(store, row);
    tell_outcome(store, row);
    if (before != next)
        hfi_free(before);
}

void hfi_memory_dead_free(struct hfi_memory_dead *dead) {
    if (!dead)
        return;
    hfi_free(dead->job);
    hfi_free(dead->detail);
    hfi_free(dead->settled_by);
    hfi_free(dead->settled_reason);
    hfi_free(dead->origin);
    hfi_free(dead->cause);
    hfi_free(dead->node_name);
    hfi_free(dead);
}

void hfi_memory_drop(struct hfi_staged *staged) {
    hfi_free(staged->next);
    hfi_free(staged->past);
    hfi_memory_dead_free(staged->dead);
    for (size_t i = 0; i < staged->alert_count; i++)
        hfi_free(staged->alerts[i]);
    hfi_free(staged->alerts);
    memset(staged, 0, sizeof *staged);
}

int hfi_memory_stage_death(struct hfi_memory *store, const struct hfi_change *change, const struct hfi_rules *rules,
                           struct hfi_staged *staged) {
    struct hfi_memory_dead *dead = hfi_alloc(sizeof *dead);
    staged->dead = dead;
    if (!dead || hfi_array_reserve(&store->deads, 1) != 0)
        return HF_ENOMEM;
    dead->job = hfi_job_copy(&change->job);
    dead->detail = hfi_detail_copy(change->death.detail, !store->base.options.no_error_detail);
    if (!dead->job || !dead->detail)
        return HF_ENOMEM;
    dead->death = change->death;
    dead->death.detail = NULL;
    dead->node = change->history.node;
    dead->dead_at_us = change->job.finished_at_us;
    dead->max_executions = hfi_max_executions(&change->job, rules);
    dead->new_job_outcome = "";
    return 0;
}

static int make_parts(struct hfi_memory *store, const struct hfi_rules *rules, struct hfi_change *change,
                      struct hfi_staged *staged) {
    if (change->job.policy && !(change->job.policy = hfi_memory_policy(store, change->job.policy)))
        return HF_ENOMEM;
    if (hfi_wants_alone(&change->job) != staged->row->lane->alone ||
        strcmp(change->job.breaker_key, staged->row->lane->breaker_key) != 0) {
        int32_t priority = change->job.priority;
        if (hfi_memory_lane_of(store, &change->job, &staged->lane) != 0 ||
            hfi_heap_reserve(&staged->lane->due[priority], staged->lane->members[priority] + 1) != 0)
            return HF_ENOMEM;
        change->job.lane = staged->lane->id;
    }
    if (!(staged->next = hfi_job_copy(&change->job)))
        return HF_ENOMEM;
    if (change->has_history) {
        if (!(staged->past = hfi_alloc(sizeof *staged->past)))
            return HF_ENOMEM;
        staged->past->history = change->history;
    }
    return change->has_death ? hfi_memory_stage_death(store, change, rules, staged) : 0;
}

int hfi_memory_stage(struct hfi_memory *store, struct hfi_memory_job *row, const struct hfi_job *job,
                     const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change,
                     struct hfi_staged *staged) {
    memset(staged, 0, sizeof *staged);
    int code = hfi_transition(job, event, rules, change);
    if (code != 0)
        return code;
    if (event->kind == HFI_EVENT_STARTED && !change->job.policy && rules)
        change->job.policy = rules->policy; /* fixed at the first start */
    staged->row = row;
    staged->now = event->now;
    code = make_parts(store, rules, change, staged);
    if (code != 0)
        hfi_memory_drop(staged);
    return code;
}

/* One dead letter per (job, death_no) [S0.19]: the one that is there stays, and nobody is alerted again. */
struct hfi_memory_dead *hfi_memory_same_death(struct hfi_memory *store, const struct hfi_memory_dead *dead) {
    for (size_t i = store->deads.count; i > 0; i--) {
        struct hfi_memory_dead *known = store->deads.items[i - 1];
        if (dead->job->id != 0 && known->job->id == dead->job->id && known->death.death_no == dead->death.death_no)
            return known;
    }
    return NULL;
}

int64_t hfi_memory_link_death(struct hfi_memory *store, struct hfi_staged *staged) {
    struct hfi_memory_dead *known = hfi_memory_same_death(store, staged->dead);
    if (known)
        return known->id;
    int64_t id = staged->dead->id = ++store->next_dead;
    hfi_array_append(&store->deads, staged->dead);
    staged->dead = NULL;
    for (size_t i = 0; i < staged->alert_count; i++)
        hfi_memory_link_alert(store, staged->alerts[i], id);
    staged->alert_count = 0;
    return id;
}

static void move_to(struct hfi_memory_job *row, struct hfi_memory_lane *lane) {
    int32_t priority = row->job->priority;
    hfi_heap_remove(&row->lane->due[priority], &row->due);
    row->lane->members[priority]--;
    row->lane = lane;
    lane->members[priority]++;
}

int64_t hfi_memory_link(struct hfi_memory *store, struct hfi_staged *staged) {
    struct hfi_memory_job *row = staged->row;
    if (staged->lane)
        move_to(row, staged->lane);
    if (staged->past) {
        if (row->last)
            row->last->next = staged->past;
        else
            row->first = staged->past;
        row->last = staged->past;
        staged->past = NULL;
    }
    int64_t dead_id = staged->dead ? hfi_memory_link_death(store, staged) : 0;
    struct hfi_job *next = staged->next;
    int before = row->job->state;
    staged->next = NULL;
    hfi_memory_replace(store, row, next);
    if (before != row->job->state && hfi_state_ended(row->job->state) && hfi_forward_is(row->job))
        hfi_memory_forward_ended(store, row->job);
    /* the one place that every end of a job comes through, whoever ended it */
    if (hfi_deps_matter(before, row->job->state))
        hfi_memory_deps_moved(store, row, staged->now);
    hfi_memory_drop(staged); /* what was not needed after all */
    return dead_id;
}
