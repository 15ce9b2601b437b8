/* SPDX-License-Identifier: MIT */
/* Dead letters from an export, into the memory store: all or none. Must never take one in twice. Under the store's lock. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/letter.h"
#include "sim/memory_state.h"

static bool is_same(const struct hfi_memory *store, const struct hfi_memory_dead *dead, const struct hf_dead_view *letter,
                    const struct hfi_job *job) {
    const struct hfi_job *known = dead->job;
    if (dead->id == hfi_letter_own(letter, store->base.uuid) || (dead->origin && strcmp(dead->origin, letter->origin) == 0))
        return true;
    if (job->id != 0)
        return known->id == job->id && dead->death.death_no == letter->death_no;
    return letter->job_id == 0 && *job->source_message_id && known->id == 0 && !dead->origin &&
           strcmp(known->source, job->source) == 0 && strcmp(known->source_message_id, job->source_message_id) == 0;
}

static int64_t find_known(const struct hfi_memory *store, const struct hf_dead_view *letter, const struct hfi_job *job) {
    for (size_t i = 0; i < store->deads.count; i++) {
        const struct hfi_memory_dead *dead = store->deads.items[i];
        if (is_same(store, dead, letter, job))
            return dead->id;
    }
    return 0;
}

int64_t hfi_memory_find_origin(const struct hfi_memory *store, const char *origin) {
    struct hf_dead_view letter = {.origin = origin};
    int64_t own = hfi_letter_own(&letter, store->base.uuid);
    for (size_t i = 0; i < store->deads.count; i++) {
        const struct hfi_memory_dead *dead = store->deads.items[i];
        if (dead->id == own || (dead->origin && strcmp(dead->origin, origin) == 0))
            return dead->id;
    }
    return 0;
}

/* A name that lives as long as the program. */
static const char *outcome_of(const char *text) {
    for (int state = 0; text && state <= HF_JOB_CANCELLED; state++)
        if (strcmp(text, hf_job_state_name(state)) == 0)
            return hf_job_state_name(state);
    return "";
}

static int fill(struct hfi_memory_dead *dead, const struct hf_dead_view *letter, bool own) {
    dead->status = letter->status;
    dead->settled_at_us = letter->settled_at_us;
    dead->new_job_id = own ? letter->new_job_id : 0;
    dead->new_job_outcome = outcome_of(letter->new_job_outcome);
    dead->max_executions = letter->max_executions;
    dead->settled_by = hfi_strdup(letter->settled_by ? letter->settled_by : "");
    dead->settled_reason = hfi_strdup(letter->settled_reason ? letter->settled_reason : "");
    dead->origin = hfi_strdup(letter->origin);
    dead->cause = hfi_strdup(letter->cause ? letter->cause : "");
    dead->node_name = hfi_strdup(letter->node ? letter->node : "");
    dead->death.cause = dead->cause;
    dead->death.origin = NULL;
    return dead->settled_by && dead->settled_reason && dead->origin && dead->cause && dead->node_name ? 0 : HF_ENOMEM;
}

static int take(struct hfi_memory *store, const struct hf_dead_view *letter, int64_t *id, bool *existed, struct hf_error *error) {
    struct hfi_change change = {.has_death = true};
    struct hfi_staged staged = {0};
    struct hfi_curve curve;
    bool own = hfi_letter_own(letter, store->base.uuid) != 0;
    hfi_letter_take(letter, own, &curve, &change.job, &change.death);
    *id = find_known(store, letter, &change.job);
    *existed = *id != 0;
    if (*existed)
        return 0;
    const struct hfi_memory_job *row = own && letter->job_id != 0 ? hfi_memory_find(store, letter->job_id) : NULL;
    if (own && letter->job_id != 0 && hfi_letter_home(letter, row ? (int64_t)row->job->deaths : -1, store->next_job + 1, error) != 0)
        return HF_EINVAL;
    if (change.job.policy && !(change.job.policy = hfi_memory_policy(store, &curve)))
        return HF_ENOMEM;
    int code = hfi_memory_stage_death(store, &change, NULL, &staged);
    if (code == 0)
        code = fill(staged.dead, letter, own);
    if (code == 0)
        *id = hfi_memory_link_death(store, &staged);
    hfi_memory_drop(&staged);
    return code;
}

int hfi_memory_import(struct hfi_memory *store, struct hfi_op_import *op) {
    size_t before = store->deads.count;
    int64_t next = store->next_dead;
    for (size_t i = 0; i < op->count; i++) {
        int code = take(store, &op->letters[i], &op->ids[i], &op->existed[i], op->op.error);
        if (code == 0)
            continue;
        if (code == HF_EINVAL && op->op.error)
            op->op.error->line = (int)i + 1;
        while (store->deads.count > before)
            hfi_memory_dead_free(store->deads.items[--store->deads.count]);
        store->next_dead = next;
        return code;
    }
    return 0;
}
