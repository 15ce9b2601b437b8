/* SPDX-License-Identifier: MIT */
/*
 * What a node does with rows that nobody is at work on: ends jobs past their time, and alerts that nobody can send, looks
 * at the children of jobs that ended, forgets what was kept long enough, and lanes that have no jobs any more. Must never
 * keep the writer from claims: pages of pruning grow and shrink with the time they take, and each is followed by a longer
 * rest. Loop thread.
 */
#include "base/log.h"
#include "jobs/deaths/patience.h"
#include "jobs/runner/runner_state.h"

#define PAGE 256
#define EVERY_US INT64_C(60000000)
#define EXPIRE_REST_LEAST_MS 5 /* it takes half of the writer's time at most */
#define PRUNE_FIRST 250
#define PRUNE_LEAST 100
#define PRUNE_MOST 700     /* with what belongs to them some 4,000 rows */
#define PRUNE_QUICK_US 15000
#define PRUNE_SLOW_US 40000
#define KEEP_DOWNSTREAMS_MS (INT64_C(7) * 24 * 3600 * 1000) /* of which there is nothing to say: one for each host, perhaps */
#define KEEP_NODES_MS (INT64_C(90) * 24 * 3600 * 1000) /* that are gone */
#define WALK_EVERY_US INT64_C(3600000000)
#define WALK_ROWS 1000
#define REST_FACTOR 4      /* pruning takes a fifth of the writer's time at most */
#define REST_LEAST_MS 20

static void failed(const struct hfi_op *op, const char *what) {
    hfi_log(HF_LOG_WARNING, "upkeep.failed", HFI_S("what", what), HFI_S("why", hf_strerror(op->code)), NULL);
}

static void came_back(struct hfi_runner *runner) {
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

/* Not since a minute. */
static bool is_time(const struct hfi_runner *runner, struct hf_mono last) {
    return last.us == 0 || hfi_sub(hfi_runner_mono(runner).us, last.us) >= EVERY_US;
}

/* ------------------------------------------------------------------ expiry */

/* A full page: there may be more, and claims do not look behind many of them. */
static void expire_on(struct hfi_runner *runner) {
    int64_t took = hfi_sub(hfi_runner_mono(runner).us, runner->expire_at.us), rest = hfi_us_to_ms_up(took);
    if (runner->life != HFI_LIFE_RUNNING || runner->lost || runner->expire_op.ended < PAGE)
        return;
    hfi_runner_arm(runner, &runner->expire_timer, rest > EXPIRE_REST_LEAST_MS ? rest : EXPIRE_REST_LEAST_MS);
    hfi_claim_stale(runner);
}

static void expired(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    runner->out--;
    runner->expire_out = false;
    if (op->code != 0) {
        failed(op, "expire");
    } else if (runner->expire_op.ended > 0) {
        HFI_COUNT(runner, expired, runner->expire_op.ended);
        hfi_log(HF_LOG_INFO, "job.expired", HFI_I("jobs", runner->expire_op.ended), NULL);
        expire_on(runner);
    }
    hfi_tidy_left(runner, op);
    came_back(runner);
}

static void expire(struct hfi_runner *runner) {
    if (runner->expire_out)
        return;
    runner->expire_at = hfi_runner_mono(runner);
    runner->expire_op.now = hfi_runner_wall(runner);
    runner->expire_op.limit = PAGE;
    runner->expire_op.ended = 0;
    runner->expire_out = true;
    hfi_runner_submit(runner, &runner->expire_op.op, HFI_OP_EXPIRE, expired, runner);
}

static void expire_fired(struct hfi_timer *timer, void *user) {
    struct hfi_runner *runner = user;
    (void)timer;
    if (runner->life == HFI_LIFE_RUNNING && !runner->lost)
        expire(runner);
}

/* ------------------------------------------------------------------ jobs that wait for others */

static void released(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    const struct hfi_op_release *release = &runner->release_op;
    runner->out--;
    runner->release_out = false;
    if (op->code != 0) {
        failed(op, "release");
    } else {
        runner->release_wanted = release->more;
        if (release->released + release->ended > 0)
            hfi_log(HF_LOG_INFO, "job.released", HFI_I("jobs", release->released), HFI_I("cancelled", release->ended), NULL);
        if (release->released > 0 && runner->life == HFI_LIFE_RUNNING && !runner->lost)
            hfi_claim_stale(runner);
    }
    came_back(runner);
}

static void release(struct hfi_runner *runner) {
    struct hfi_op_release *op = &runner->release_op;
    bool scan = op->after_id != 0 || is_time(runner, runner->released_at);
    if (runner->release_out || (!scan && !runner->release_wanted))
        return;
    if (scan && op->after_id == 0)
        runner->released_at = hfi_runner_mono(runner);
    op->now = hfi_runner_wall(runner);
    op->scan = scan;
    op->limit = PAGE;
    runner->release_out = true;
    hfi_runner_submit(runner, &op->op, HFI_OP_RELEASE, released, runner);
}

void hfi_tidy_left(struct hfi_runner *runner, const struct hfi_op *op) {
    if (op->code == 0 && op->left_over)
        runner->release_wanted = true;
}

void hfi_tidy_released(struct hfi_runner *runner, uint32_t released_now) {
    if (released_now > 0 && runner->life == HFI_LIFE_RUNNING)
        hfi_claim_stale(runner);
}

bool hfi_tidy_idle(const struct hfi_runner *runner) {
    return !runner->release_out && !runner->release_wanted;
}

/* ------------------------------------------------------------------ pruning */

/* So that a page of so long takes a small part of the writer's time. */
static int64_t rest_ms(int64_t took_us) {
    int64_t rest = hfi_us_to_ms_up(took_us) * REST_FACTOR;
    return rest > REST_LEAST_MS ? rest : REST_LEAST_MS;
}

static void pruned(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    int64_t took = hfi_sub(hfi_runner_mono(runner).us, runner->pruned_at.us);
    uint32_t *page = &runner->prune_page;
    runner->out--;
    runner->prune_out = false;
    if (op->code != 0)
        failed(op, "prune");
    if (took > PRUNE_SLOW_US && *page > PRUNE_LEAST)
        *page = *page / 2 > PRUNE_LEAST ? *page / 2 : PRUNE_LEAST;
    else if (took < PRUNE_QUICK_US && runner->prune_op.pruned >= *page && *page < PRUNE_MOST)
        *page = *page * 2 < PRUNE_MOST ? *page * 2 : PRUNE_MOST;
    if (op->code == 0 && runner->prune_op.more && runner->life == HFI_LIFE_RUNNING)
        hfi_runner_arm(runner, &runner->prune_timer, rest_ms(took));
    came_back(runner);
}

static int64_t before(struct hf_wall now, int64_t keep_ms) {
    return keep_ms <= 0 ? 0 : hfi_sub(now.us, hfi_ms_to_us(keep_ms));
}

static void prune(struct hfi_runner *runner) {
    const struct hf_runner_options *keep = runner->options;
    struct hfi_op_prune *op = &runner->prune_op;
    struct hf_wall now = hfi_runner_wall(runner);
    if (runner->prune_out)
        return;
    runner->pruned_at = hfi_runner_mono(runner);
    if (runner->pruned_at.us == 0)
        runner->pruned_at.us = 1;
    op->succeeded_before = before(now, keep->keep_succeeded_ms);
    op->cancelled_before = before(now, keep->keep_cancelled_ms);
    op->dead_before = before(now, keep->keep_dead_ms);
    op->quarantined_before = before(now, keep->keep_quarantined_ms);
    op->dead_letters_before = before(now, keep->keep_dead_letters_ms);
    op->inbox_before = before(now, keep->keep_inbox_ms);
    op->audit_before = before(now, keep->keep_audit_ms);
    op->nodes_before = before(now, KEEP_NODES_MS);
    op->downstreams_before = before(now, KEEP_DOWNSTREAMS_MS);
    op->node = runner->node;
    op->now = now;
    if (runner->prune_page == 0)
        runner->prune_page = PRUNE_FIRST;
    op->limit = runner->prune_page;
    op->pruned = 0;
    runner->prune_out = true;
    hfi_runner_submit(runner, &op->op, HFI_OP_PRUNE, pruned, runner);
}

static void prune_fired(struct hfi_timer *timer, void *user) {
    struct hfi_runner *runner = user;
    (void)timer;
    if (runner->life == HFI_LIFE_RUNNING && !runner->lost)
        prune(runner);
}

/* ------------------------------------------------------------------ lanes that have no jobs */

static bool is_used(const struct hf_work *work, const struct hfi_lane *lane) {
    for (; work != NULL; work = work->next)
        if (((const struct hfi_execution *)work->runner_state)->lane == lane)
            return true;
    return false;
}

/* Nothing of this node needs it: no round is out that may be about it, and no execution. */
static bool is_idle(const struct hfi_runner *runner, const struct hfi_lane *lane) {
    return !runner->round_out && !lane->due && lane->ahead == 0 && lane->used == 0 && !is_used(runner->first, lane) && !is_used(runner->unwritten, lane) &&
           !is_used(runner->left, lane);
}

/* The store has no such lane any more, and never will. */
static void forget_lanes(struct hfi_runner *runner, const struct hfi_op_unused *op) {
    for (size_t i = 0; i < op->gone_count; i++) {
        struct hfi_lane *lane = hfi_lanes_find(&runner->lanes, op->lanes[i]);
        if (lane != NULL && is_idle(runner, lane))
            hfi_lanes_remove(&runner->lanes, lane); /* else it is asked for again */
    }
}

/* Some of those that have nothing due, in turn. */
static size_t choose_idle(struct hfi_runner *runner) {
    const struct hfi_lanes *lanes = &runner->lanes;
    size_t count = 0, at = hfi_lanes_after(lanes, runner->idle_after);
    for (; at < lanes->count && count < HFI_IDLE_LANES; at++) {
        runner->idle_after = lanes->lanes[at]->id;
        if (!lanes->lanes[at]->due)
            runner->idle_lanes[count++] = lanes->lanes[at]->id;
    }
    if (at == lanes->count)
        runner->idle_after = 0;
    return count;
}

static void unused_found(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    const struct hfi_op_unused *unused = &runner->unused_op;
    int64_t took = hfi_sub(hfi_runner_mono(runner).us, runner->unused_at.us);
    runner->out--;
    runner->unused_out = false;
    if (op->code != 0) {
        failed(op, "unused");
    } else {
        forget_lanes(runner, unused);
        if (unused->lanes_removed + unused->policies_removed > 0)
            hfi_log(HF_LOG_INFO, "upkeep.unused", HFI_I("lanes", unused->lanes_removed),
                    HFI_I("policies", unused->policies_removed), NULL);
        if ((unused->more || runner->idle_after != 0) && runner->life == HFI_LIFE_RUNNING)
            hfi_runner_arm(runner, &runner->unused_timer, rest_ms(took));
    }
    came_back(runner);
}

static void find_unused(struct hfi_runner *runner) {
    struct hfi_op_unused *op = &runner->unused_op;
    if (runner->unused_out)
        return;
    runner->unused_at = hfi_runner_mono(runner);
    if (runner->unused_at.us == 0)
        runner->unused_at.us = 1;
    op->now = hfi_runner_wall(runner);
    op->every_us = WALK_EVERY_US;
    op->limit = WALK_ROWS;
    op->lanes = runner->idle_lanes;
    op->lane_count = choose_idle(runner);
    runner->unused_out = true;
    hfi_runner_submit(runner, &op->op, HFI_OP_UNUSED, unused_found, runner);
}

static void unused_fired(struct hfi_timer *timer, void *user) {
    struct hfi_runner *runner = user;
    (void)timer;
    if (runner->life == HFI_LIFE_RUNNING && !runner->lost)
        find_unused(runner);
}

/* ------------------------------------------------------------------ alerts of sinks that nobody has */

static void look_for_absent(struct hfi_runner *runner);

/* One Error line per sink and page, with the number: each of those deaths had its own when it happened. */
static void absent_found(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    const struct hfi_op_absent *absent = &runner->absent_op;
    runner->out--;
    runner->absent_out = false;
    if (op->code != 0)
        failed(op, "absent");
    for (size_t i = 0; i < absent->ended_count && op->code == 0; i++) {
        const struct hfi_absent_sink *sink = &absent->ended[i];
        HFI_COUNT(runner, alerts_undelivered, sink->count);
        hfi_log(HF_LOG_ERROR, "alert.undelivered", HFI_S("sink", sink->name), HFI_I("alerts", (int64_t)sink->count),
                HFI_I("dead_letter", sink->dead_id), HFI_S("error_type", HFI_ALERT_NO_SINK), NULL);
    }
    if (op->code == 0 && absent->more && runner->life == HFI_LIFE_RUNNING && !runner->lost)
        look_for_absent(runner);
    came_back(runner);
}

static void look_for_absent(struct hfi_runner *runner) {
    struct hfi_op_absent *op = &runner->absent_op;
    if (runner->absent_out)
        return;
    runner->absent_at = hfi_runner_mono(runner);
    if (runner->absent_at.us == 0)
        runner->absent_at.us = 1;
    op->now = hfi_runner_wall(runner);
    op->limit = PAGE;
    runner->absent_out = true;
    hfi_runner_submit(runner, &op->op, HFI_OP_ABSENT, absent_found, runner);
}

/* ------------------------------------------------------------------ the round */

void hfi_tidy_begin(struct hfi_runner *runner) {
    hfi_timer_init(&runner->expire_timer, expire_fired, runner);
    hfi_timer_init(&runner->prune_timer, prune_fired, runner);
    hfi_timer_init(&runner->unused_timer, unused_fired, runner);
    runner->release_wanted = true; /* whatever the last node left */
}

void hfi_tidy_round(struct hfi_runner *runner) {
    expire(runner);
    release(runner);
    if (is_time(runner, runner->pruned_at))
        prune(runner);
    if (is_time(runner, runner->unused_at))
        find_unused(runner);
    if (is_time(runner, runner->absent_at))
        look_for_absent(runner);
}

void hfi_tidy_stop(struct hfi_runner *runner) {
    hfi_runner_disarm(runner, &runner->expire_timer);
    hfi_runner_disarm(runner, &runner->prune_timer);
    hfi_runner_disarm(runner, &runner->unused_timer);
}
