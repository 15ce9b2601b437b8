/* SPDX-License-Identifier: MIT */
/*
 * Jobs reserved ahead of their slots (`prefetch`): claimed while every slot was taken, started in the commit that frees
 * one. Nothing of them is counted before that start is stored, and no handler begins before it. Held for a second at
 * most, then given back, as at once when something goes before them, their queue is paused, their downstream is not well,
 * the node drains, is reconfigured or has lost its lease. Must never start one whose start the store did not take. Loop
 * thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "jobs/hands.h"
#include "jobs/runner/runner_state.h"

#define HOLD_US INT64_C(1000000) /* nobody else can have it meanwhile */
#define REST_US INT64_C(1000000) /* of all, after one was given back */
#define RATE_US INT64_C(1000000) /* no more are reserved than end in so long */

struct hfi_reserved {
    struct hfi_job *job;
    struct hfi_lane *lane;
    struct hfi_rulebook *book; /* that of its operation; a reference while that is out */
    struct hfi_runner *runner;
    struct hf_mono until;
    struct hfi_op_apply apply;
    struct hfi_timer retry; /* of giving it back */
    uint32_t tries;
    struct hfi_reserved *next, *previous;
};

/* ------------------------------------------------------------------ the lists */

static void unlink_from(struct hfi_reserved **list, struct hfi_reserved *reserved) {
    if (reserved->previous != NULL)
        reserved->previous->next = reserved->next;
    else
        *list = reserved->next;
    if (reserved->next != NULL)
        reserved->next->previous = reserved->previous;
    reserved->next = reserved->previous = NULL;
}

static void link_after(struct hfi_reserved **list, struct hfi_reserved *before, struct hfi_reserved *reserved) {
    reserved->previous = before;
    reserved->next = before != NULL ? before->next : *list;
    if (reserved->next != NULL)
        reserved->next->previous = reserved;
    if (before != NULL)
        before->next = reserved;
    else
        *list = reserved;
}

static bool goes_before(const struct hfi_reserved *one, const struct hfi_reserved *other) {
    const struct hfi_lane_queue *queue = one->lane->queue, *behind = other->lane->queue;
    if (queue != behind)
        return queue->order < behind->order; /* queues of one order: as they were claimed */
    struct hfi_merge_head heads[2] = {{one->job->priority, one->job->run_at_us, one->job->id, one->job->priority},
                                      {other->job->priority, other->job->run_at_us, other->job->id, other->job->priority}};
    return hfi_merge_before(&heads[0], &heads[1]);
}

static void keep(struct hfi_runner *runner, struct hfi_reserved *reserved) {
    struct hfi_ahead *ahead = &runner->ahead;
    struct hfi_reserved *before = ahead->last;
    while (before != NULL && goes_before(reserved, before))
        before = before->previous;
    link_after(&ahead->first, before, reserved);
    if (reserved->next == NULL)
        ahead->last = reserved;
    ahead->count++;
}

static void send(struct hfi_runner *runner, struct hfi_reserved *reserved) {
    struct hfi_ahead *ahead = &runner->ahead;
    if (ahead->last == reserved)
        ahead->last = reserved->previous;
    unlink_from(&ahead->first, reserved);
    link_after(&ahead->away, NULL, reserved);
}

/* It is not this node's any more, or runs: out of the books but for the lane's. */
static void drop(struct hfi_reserved *reserved) {
    struct hfi_runner *runner = reserved->runner;
    unlink_from(&runner->ahead.away, reserved);
    runner->ahead.count--;
    hfi_rulebook_free(reserved->book);
    hfi_free(reserved->job);
    hfi_free(reserved);
}

static void drop_lost(struct hfi_reserved *reserved, int code) {
    hfi_log(HF_LOG_DEBUG, "job.stale", HFI_I("job", reserved->job->id), HFI_I("epoch", reserved->job->epoch),
            HFI_S("why", hf_strerror(code)), NULL);
    reserved->lane->ahead--;
    hfi_lane_settled(reserved->lane);
    drop(reserved);
}

static void look_on(struct hfi_runner *runner, bool stale) {
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
    else if (stale)
        hfi_claim_stale(runner);
    else
        hfi_claim_poke(runner);
}

static void rest(struct hfi_runner *runner) {
    runner->ahead.rest_until.us = hfi_add(hfi_runner_mono(runner).us, REST_US);
}

/* ------------------------------------------------------------------ given back */

static void given_back(struct hfi_op *op, void *user) {
    struct hfi_reserved *reserved = user;
    struct hfi_runner *runner = reserved->runner;
    runner->out--;
    if (hfi_refused_for_now(op->code)) {
        hfi_runner_arm(runner, &reserved->retry, hfi_refused_wait_ms(++reserved->tries));
        return;
    }
    hfi_tidy_left(runner, op);
    drop_lost(reserved, op->code); /* its row, if it is ours still, is found by the reconciliation */
    look_on(runner, true);
}

static void submit_back(struct hfi_reserved *reserved) {
    struct hfi_runner *runner = reserved->runner;
    struct hfi_op_apply *op = &reserved->apply;
    op->job = reserved->job;
    memset(&op->event, 0, sizeof op->event);
    op->event.kind = HFI_EVENT_GIVEN_BACK;
    op->event.now = hfi_runner_wall(runner);
    op->event.node = reserved->job->owner;
    if (reserved->book == NULL)
        reserved->book = hfi_rulebook_hold(runner->book);
    hfi_rulebook_for(reserved->book, reserved->job, &op->rules);
    op->sink_count = hfi_rulebook_sinks(reserved->book, &op->sinks);
    hfi_runner_submit(runner, &op->op, HFI_OP_APPLY, given_back, reserved);
}

static void retry_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    submit_back(user);
}

/* In the claim that may follow in the same commit it has its old place again. */
static void give_back(struct hfi_reserved *reserved) {
    reserved->lane->due = true;
    rest(reserved->runner);
    submit_back(reserved);
}

void hfi_ahead_return(struct hfi_runner *runner) {
    struct hfi_reserved *reserved;
    hfi_runner_disarm(runner, &runner->ahead.timer);
    while ((reserved = runner->ahead.first) != NULL) {
        send(runner, reserved);
        give_back(reserved);
    }
}

void hfi_ahead_let_go(struct hfi_runner *runner) {
    struct hfi_reserved *next;
    for (struct hfi_reserved *reserved = runner->ahead.away; reserved != NULL; reserved = next) {
        next = reserved->next;
        if (!hfi_timer_armed(&reserved->retry))
            continue; /* the writer has it */
        hfi_runner_disarm(runner, &reserved->retry);
        drop_lost(reserved, HF_ETIMEDOUT);
    }
}

/* ------------------------------------------------------------------ started */

/* The job as the store has it now. */
static struct hfi_job *take_started(struct hfi_reserved *reserved) {
    struct hfi_job *job = reserved->job;
    const struct hfi_job *now = &reserved->apply.change.job;
    job->executions = now->executions;
    job->started_at_us = now->started_at_us;
    job->not_repeatable = now->not_repeatable;
    job->runs_code = now->runs_code;
    job->alone = now->alone;
    job->policy = now->policy;
    reserved->job = NULL;
    return job;
}

static void start_refused(struct hfi_reserved *reserved, int code) {
    struct hfi_runner *runner = reserved->runner;
    reserved->lane->ahead++;
    hfi_lane_release(&runner->lanes, reserved->lane, false);
    if (code == HF_ESTALE || code == HF_ENOENT) /* cancelled, or another node's */
        drop_lost(reserved, code);
    else
        give_back(reserved);
    look_on(runner, true);
}

static void started(struct hfi_op *op, void *user) {
    struct hfi_reserved *reserved = user;
    struct hfi_runner *runner = reserved->runner;
    runner->out--;
    runner->ahead.starting--;
    if (op->code != 0) {
        start_refused(reserved, op->code);
    } else {
        struct hfi_job *job = take_started(reserved);
        drop(reserved);
        pthread_mutex_lock(&runner->lock);
        runner->counts.claimed++;
        runner->counts.started++;
        runner->counts.running++;
        pthread_mutex_unlock(&runner->lock);
        hfi_execute(runner, job);
        look_on(runner, false);
    }
    hfi_renew_look(runner);
}

static void start(struct hfi_reserved *reserved) {
    struct hfi_runner *runner = reserved->runner;
    struct hfi_lane *lane = reserved->lane;
    struct hfi_op_apply *op = &reserved->apply;
    const struct hfi_admitted how = {
        .policy = hfi_rulebook_policy(runner->book, lane->type->options.name, lane->queue->name),
        .not_repeatable = !lane->type->options.repeatable,
        .runs_code = lane->runs_code};
    struct hfi_hand hand;
    hfi_hand_start(&hand, reserved->job->owner, hfi_runner_wall(runner), &how);
    reserved->book = hfi_rulebook_hold(runner->book);
    op->job = reserved->job;
    op->event = hand.event;
    op->rules = hand.rules;
    send(runner, reserved);
    lane->ahead--;
    hfi_lane_take(&runner->lanes, lane);
    if (lane->site != NULL)
        lane->site->free--;
    runner->ahead.starting++;
    hfi_runner_submit(runner, &op->op, HFI_OP_APPLY, started, reserved);
}

/* ------------------------------------------------------------------ its turn */

static bool is_over(struct hfi_runner *runner, const struct hfi_reserved *reserved) {
    const struct hfi_job *job = reserved->job;
    const struct hfi_lane *lane = reserved->lane;
    return lane->type == NULL || lane->paused || (lane->site != NULL && !lane->site->sound) ||
           (job->expires_at_us != 0 && job->expires_at_us <= hfi_runner_wall(runner).us);
}

void hfi_ahead_round(struct hfi_runner *runner) {
    struct hfi_ahead *ahead = &runner->ahead;
    struct hfi_reserved *next;
    if (ahead->first == NULL)
        return;
    if (runner->lost || hfi_beat_is_late(runner)) {
        hfi_ahead_return(runner);
        return;
    }
    hfi_lanes_rank(&runner->lanes, hfi_runner_mono(runner).us, hfi_runner_wall(runner));
    for (struct hfi_reserved *reserved = ahead->first; reserved != NULL; reserved = next) {
        next = reserved->next;
        if (is_over(runner, reserved)) {
            send(runner, reserved);
            give_back(reserved);
            continue;
        }
        bool startable = hfi_lane_startable(&runner->lanes, reserved->lane);
        /* What has come meanwhile and is not known yet may go first, too: the claim of this round finds out. */
        if (hfi_lanes_outrank(&runner->lanes, reserved->lane, reserved->job) || (startable && !runner->fresh)) {
            hfi_ahead_return(runner);
            return;
        }
        if (startable)
            start(reserved);
    }
}

/* ------------------------------------------------------------------ reserved */

static void arm_timer(struct hfi_runner *runner) {
    struct hf_mono first = {INT64_MAX};
    for (const struct hfi_reserved *reserved = runner->ahead.first; reserved != NULL; reserved = reserved->next)
        first = reserved->until.us < first.us ? reserved->until : first;
    if (first.us != INT64_MAX)
        hfi_runner_arm(runner, &runner->ahead.timer, hfi_us_to_ms_up(hfi_sub(first.us, hfi_runner_mono(runner).us)));
}

static void held_long(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_runner *runner = user;
    struct hf_mono now = hfi_runner_mono(runner);
    struct hfi_reserved *next;
    for (struct hfi_reserved *reserved = runner->ahead.first; reserved != NULL; reserved = next) {
        next = reserved->next;
        if (reserved->until.us > now.us)
            continue;
        send(runner, reserved);
        give_back(reserved);
    }
    arm_timer(runner);
}

static void count_end(struct hfi_ahead *ahead, struct hf_mono now, uint32_t more) {
    int64_t passed = hfi_sub(now.us, ahead->since.us);
    if (passed >= RATE_US) {
        ahead->ended_before = passed < 2 * RATE_US ? ahead->ended : 0;
        ahead->ended = 0;
        ahead->since = now;
    }
    ahead->ended += more;
}

void hfi_ahead_ended(struct hfi_runner *runner) {
    if (runner->options->prefetch > 0)
        count_end(&runner->ahead, hfi_runner_mono(runner), 1);
}

static uint32_t wanted(struct hfi_runner *runner, struct hf_mono now) {
    struct hfi_ahead *ahead = &runner->ahead;
    if (runner->options->prefetch == 0 || now.us < ahead->rest_until.us || runner->lost || runner->node == 0)
        return 0;
    count_end(ahead, now, 0);
    uint32_t most = ahead->ended > ahead->ended_before ? ahead->ended : ahead->ended_before;
    if (most > runner->options->prefetch)
        most = runner->options->prefetch;
    return most > ahead->count ? most - (uint32_t)ahead->count : 0;
}

size_t hfi_ahead_admit(struct hfi_runner *runner) {
    struct hf_mono now = hfi_runner_mono(runner);
    uint32_t count = wanted(runner, now);
    if (count == 0 || runner->running + runner->writing >= 4 * HFI_CLAIM_MAX)
        return 0;
    return hfi_lanes_admit_ahead(&runner->lanes, now.us, hfi_runner_wall(runner), count);
}

static void take(struct hfi_runner *runner, struct hfi_job *job, struct hf_mono until) {
    struct hfi_lane *lane = hfi_lanes_find(&runner->lanes, job->lane);
    struct hfi_reserved *reserved = lane == NULL ? NULL : hfi_alloc(sizeof *reserved);
    if (reserved == NULL) {
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "a reserved job"), HFI_I("job", job->id), NULL);
        if (lane != NULL) {
            lane->ahead--;
            hfi_lane_settled(lane);
        }
        hfi_free(job); /* its row is ours: reconciled after two beats */
        return;
    }
    reserved->job = job;
    reserved->lane = lane;
    reserved->runner = runner;
    reserved->until = until;
    hfi_timer_init(&reserved->retry, retry_fired, reserved);
    keep(runner, reserved);
}

void hfi_ahead_take(struct hfi_runner *runner, struct hfi_job **jobs, size_t count) {
    struct hf_mono now = hfi_runner_mono(runner);
    for (size_t i = 0; i < count; i++) {
        int64_t left_us = jobs[i]->expires_at_us == 0 ? HOLD_US : hfi_sub(jobs[i]->expires_at_us, hfi_runner_wall(runner).us);
        take(runner, jobs[i], (struct hf_mono){hfi_add(now.us, left_us < HOLD_US ? left_us : HOLD_US)});
    }
    if (runner->life != HFI_LIFE_RUNNING || runner->lost)
        hfi_ahead_return(runner);
    arm_timer(runner);
}

void hfi_ahead_mark(const struct hfi_runner *runner, void (*mark)(const struct hfi_job *job, void *user), void *user) {
    for (const struct hfi_reserved *reserved = runner->ahead.first; reserved != NULL; reserved = reserved->next)
        mark(reserved->job, user);
    for (const struct hfi_reserved *reserved = runner->ahead.away; reserved != NULL; reserved = reserved->next)
        mark(reserved->job, user);
}

void hfi_ahead_init(struct hfi_runner *runner) {
    hfi_timer_init(&runner->ahead.timer, held_long, runner);
}
