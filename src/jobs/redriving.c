/* SPDX-License-Identifier: MIT */
/*
 * The rules of redrive tasks: what may be redriven now, when a failure share ends it, what is said about it. Must never
 * let a letter be looked at twice: after_id only grows. Pure; any thread.
 */
#include "jobs/redriving.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "jobs/limit.h"

const char *hf_redrive_state_name(int state) {
    switch (state) {
#define NAME(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return text;
        HF_REDRIVE_STATE_MAP(NAME)
#undef NAME
    default:
        return "unknown";
    }
}

/* ------------------------------------------------------------------ what is wanted */

static int check_figures(const struct hf_redrive_options *options, struct hf_error *error) {
    double rate = options->rate_per_s, share = options->stop_at;
    if (!isfinite(rate) || rate < 0 || rate > HFI_LIMIT_RATE_MAX || (rate > 0 && rate < 1.0 / HFI_LIMIT_INTERVAL_MAX_S))
        return hfi_fail(error, HF_EINVAL, "rate", NULL, "%g/s: from one in 30 days up to %d/s", rate, HFI_LIMIT_RATE_MAX);
    if (!isfinite(share) || share > 1)
        return hfi_fail(error, HF_EINVAL, "stop-at", "a share of jobs, as 0.2 or 20%", "%g is none", share);
    return 0;
}

static int take_text(const char *what, char *to, size_t room, const char *from, struct hf_error *error) {
    if (from == NULL)
        return 0;
    size_t length = strlen(from);
    if (!hfi_text_valid(from, length))
        return hfi_fail(error, HF_ETEXT, what, NULL, "it is no valid UTF-8");
    if (length == 0 || length >= room)
        return hfi_fail(error, length == 0 ? HF_EINVAL : HF_ETOOBIG, what, "leave it out for any", "%zu bytes, 1 to %zu fit",
                        length, room - 1);
    memcpy(to, from, length + 1);
    return 0;
}

int hfi_redrive_begin(struct hfi_redrive_task *task, const struct hf_redrive_options *options, const char *actor,
                      const char *reason, struct hf_error *error) {
    struct hf_dead_filter any;
    const struct hf_dead_filter *filter = options->filter;
    memset(task, 0, sizeof *task);
    hf_dead_filter_init(&any);
    if (filter == NULL)
        filter = &any;
    int code = check_figures(options, error);
    if (code == 0)
        code = take_text("type", task->type, sizeof task->type, filter->type, error);
    if (code == 0)
        code = take_text("queue", task->queue, sizeof task->queue, filter->queue, error);
    if (code == 0)
        code = take_text("error type", task->error_type, sizeof task->error_type, filter->error_type, error);
    if (code == 0)
        code = take_text("fingerprint", task->fingerprint, sizeof task->fingerprint, filter->fingerprint, error);
    task->death_class = filter->death_class < 0 ? -1 : filter->death_class;
    task->since_us = filter->since_us;
    task->canary = options->canary;
    task->rate_per_s = options->rate_per_s;
    task->stop_permille = options->stop_at < 0 ? -1 : (int32_t)lround(options->stop_at * 1000);
    task->new_key = options->new_key;
    task->force = options->force;
    hfi_text_copy(task->actor, sizeof task->actor, actor);
    hfi_text_copy(task->reason, sizeof task->reason, reason);
    return code;
}

static const char *given(const char *text) {
    return *text != '\0' ? text : NULL;
}

void hfi_redrive_filter(const struct hfi_redrive_task *task, struct hf_dead_filter *filter) {
    hf_dead_filter_init(filter);
    filter->death_class = task->death_class;
    filter->type = given(task->type);
    filter->queue = given(task->queue);
    filter->error_type = given(task->error_type);
    filter->fingerprint = given(task->fingerprint);
    filter->since_us = task->since_us;
}

/* ------------------------------------------------------------------ how it goes on */

static uint64_t ended(const struct hfi_redrive_task *task) {
    return task->succeeded + task->failed + task->cancelled;
}

/* Its canary is out. */
static bool is_canary(const struct hfi_redrive_task *task) {
    return task->canary > 0 && task->redriven <= task->canary;
}

bool hfi_redrive_waits(const struct hfi_redrive_task *task) {
    return task->state == HF_REDRIVE_RUNNING && task->canary > 0 && task->redriven == task->canary && ended(task) < task->canary;
}

/* A canary without a limit of its own is one that must not fail. */
static bool fails_too_often(const struct hfi_redrive_task *task) {
    int32_t limit = task->stop_permille < 0 && is_canary(task) ? 0 : task->stop_permille;
    bool judged = limit == 0 || ended(task) >= HFI_REDRIVE_JUDGED || (is_canary(task) && ended(task) >= task->canary);
    return limit >= 0 && judged && task->failed * 1000 > (uint64_t)limit * ended(task);
}

static void end(struct hfi_redrive_task *task, struct hf_wall now, enum hf_redrive_state state) {
    task->state = (int32_t)state;
    task->ended_at_us = now.us;
}

static uint32_t paced(struct hfi_redrive_task *task, struct hf_wall now, uint32_t wish) {
    struct hf_limit_options options;
    struct hfi_limit limit;
    int64_t ready_at_us;
    if (!(task->rate_per_s > 0))
        return wish;
    hf_limit_options_init(&options);
    options.rate_per_s = task->rate_per_s;
    hfi_limit_from(&options, &limit);
    uint32_t tokens = hfi_limit_tokens(&limit, task->full_at_us, now.us, &ready_at_us);
    if (tokens == 0)
        task->next_at_us = ready_at_us;
    return tokens < wish ? tokens : wish;
}

uint32_t hfi_redrive_allowed(struct hfi_redrive_task *task, struct hf_wall now) {
    if (task->state != HF_REDRIVE_RUNNING)
        return 0;
    if (fails_too_often(task)) {
        end(task, now, HF_REDRIVE_STOPPED);
        snprintf(task->note, sizeof task->note, "%" PRIu64 " of %" PRIu64 " jobs that ended had failed%s", task->failed, ended(task),
                 is_canary(task) ? ", of its canary" : "");
        return 0;
    }
    if (hfi_redrive_waits(task)) {
        task->next_at_us = hfi_add(now.us, hfi_ms_to_us(HFI_REDRIVE_WAIT_MS));
        return 0;
    }
    uint32_t wish = HFI_REDRIVE_STEP;
    if (task->stop_permille >= 0) { /* no more at stake than has proved well, so that there is something left to stop */
        uint64_t out = task->redriven - ended(task), bound = ended(task) > HFI_REDRIVE_STEP ? ended(task) : HFI_REDRIVE_STEP;
        if (out >= bound) {
            task->next_at_us = hfi_add(now.us, hfi_ms_to_us(HFI_REDRIVE_WAIT_MS));
            return 0;
        }
        wish = bound - out < wish ? (uint32_t)(bound - out) : wish;
    }
    if (task->canary > task->redriven && task->canary - task->redriven < wish)
        wish = (uint32_t)(task->canary - task->redriven);
    return paced(task, now, wish);
}

void hfi_redrive_action(const struct hfi_redrive_task *task, struct hf_dead_action *action) {
    hf_dead_action_init(action);
    action->actor = task->actor;
    action->reason = task->reason;
    action->new_key = task->new_key;
    action->force = task->force;
}

void hfi_redrive_one(struct hfi_redrive_task *task, int64_t dead_id, int code, int64_t other) {
    task->after_id = dead_id;
    if (code == 0) {
        task->redriven++;
        return;
    }
    task->refused++;
    if (code == HF_EEXIST)
        snprintf(task->note, sizeof task->note, "dead letter %" PRId64 ": job %" PRId64 " holds its unique key", dead_id, other);
    else
        snprintf(task->note, sizeof task->note, "dead letter %" PRId64 ": %s", dead_id, hf_strerror(code));
}

void hfi_redrive_moved(struct hfi_redrive_task *task, struct hf_wall now, uint32_t redriven, bool finished) {
    struct hf_limit_options options;
    struct hfi_limit limit;
    hf_limit_options_init(&options);
    options.rate_per_s = task->rate_per_s;
    task->next_at_us = now.us;
    if (task->rate_per_s > 0) {
        hfi_limit_from(&options, &limit);
        task->full_at_us = hfi_limit_take(&limit, task->full_at_us, now.us, redriven);
        hfi_limit_tokens(&limit, task->full_at_us, now.us, &task->next_at_us);
    }
    if (finished)
        end(task, now, HF_REDRIVE_DONE);
    else if (hfi_redrive_waits(task))
        task->next_at_us = hfi_add(now.us, hfi_ms_to_us(HFI_REDRIVE_WAIT_MS));
}

void hfi_redrive_job_ended(struct hfi_redrive_task *task, int job_state) {
    task->succeeded += job_state == HF_JOB_SUCCEEDED;
    task->failed += job_state == HF_JOB_DEAD || job_state == HF_JOB_QUARANTINED;
    task->cancelled += job_state == HF_JOB_CANCELLED;
    if (task->canary > 0 || task->stop_permille >= 0)
        task->next_at_us = 0; /* there is something to judge */
}

int hfi_redrive_cancelled(struct hfi_redrive_task *task, struct hf_wall now, const char *actor, const char *reason) {
    if (task->state != HF_REDRIVE_RUNNING)
        return HF_ESTATE;
    end(task, now, HF_REDRIVE_CANCELLED);
    bool why = reason != NULL && *reason != '\0';
    char text[HFI_REDRIVE_NOTE_MAX + 1];
    snprintf(text, sizeof text, "by %.120s%s%.160s", actor, why ? ": " : "", why ? reason : "");
    hfi_text_copy(task->note, sizeof task->note, text);
    return 0;
}

void hfi_redrive_view_fill(struct hf_redrive_view *view, const struct hfi_redrive_task *task) {
    *view = (struct hf_redrive_view){
        .state = task->state,
        .id = task->id,
        .actor = task->actor,
        .reason = task->reason,
        .note = task->note,
        .death_class = task->death_class,
        .type = task->type,
        .queue = task->queue,
        .error_type = task->error_type,
        .fingerprint = task->fingerprint,
        .since_us = task->since_us,
        .after_id = task->after_id,
        .upper_id = task->upper_id,
        .total = task->total,
        .redriven = task->redriven,
        .refused = task->refused,
        .succeeded = task->succeeded,
        .failed = task->failed,
        .cancelled = task->cancelled,
        .canary = task->canary,
        .rate_per_s = task->rate_per_s,
        .stop_at = task->stop_permille < 0 ? -1 : task->stop_permille / 1000.0,
        .new_key = task->new_key,
        .force = task->force,
        .waits_for_canary = hfi_redrive_waits(task),
        .next_at_us = task->state == HF_REDRIVE_RUNNING ? task->next_at_us : 0,
        .created_at_us = task->created_at_us,
        .ended_at_us = task->ended_at_us,
    };
}
