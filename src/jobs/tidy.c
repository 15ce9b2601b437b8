/* SPDX-License-Identifier: MIT */
/*
 * What a node does with rows that nobody is at work on: ends jobs past their time, looks at the children of those that
 * ended, forgets what was kept long enough. Must never keep the writer from claims: pages of pruning grow and shrink with
 * the time they take, and each is followed by a longer rest. Loop thread.
 */
#include "base/log.h"
#include "jobs/runner_state.h"

#define PAGE 256
#define EVERY_US INT64_C(60000000)
#define EXPIRE_REST_LEAST_MS 5 /* it takes half of the writer's time at most */
#define PRUNE_FIRST 250
#define PRUNE_LEAST 100
#define PRUNE_MOST 700     /* with what belongs to them some 4,000 rows */
#define PRUNE_QUICK_US 15000
#define PRUNE_SLOW_US 40000
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

static void pruned(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    int64_t took = hfi_sub(hfi_runner_mono(runner).us, runner->pruned_at.us), rest = hfi_us_to_ms_up(took) * REST_FACTOR;
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
        hfi_runner_arm(runner, &runner->prune_timer, rest > REST_LEAST_MS ? rest : REST_LEAST_MS);
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

/* ------------------------------------------------------------------ the round */

void hfi_tidy_begin(struct hfi_runner *runner) {
    hfi_timer_init(&runner->expire_timer, expire_fired, runner);
    hfi_timer_init(&runner->prune_timer, prune_fired, runner);
    runner->release_wanted = true; /* whatever the last node left */
}

void hfi_tidy_round(struct hfi_runner *runner) {
    expire(runner);
    release(runner);
    if (is_time(runner, runner->pruned_at))
        prune(runner);
}

void hfi_tidy_stop(struct hfi_runner *runner) {
    hfi_runner_disarm(runner, &runner->expire_timer);
    hfi_runner_disarm(runner, &runner->prune_timer);
}
