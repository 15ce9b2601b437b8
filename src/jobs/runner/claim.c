/* SPDX-License-Identifier: MIT */
/*
 * The rounds: which lanes are due, what may be claimed of them, a claim, and what is due after it, in one commit with
 * the outcomes that freed the slots. Decides when to look again: at once while something can be claimed, else at the
 * next due time, when a site admits again, or after the poll interval, whichever comes first (I32, I45). Must never
 * have two rounds out, and never claim beyond the slots that are free. Loop thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "jobs/runner/lane_limits.h"
#include "jobs/runner/runner_state.h"

#define HOLD_US 50000        /* of a lane that was due twice and had nothing */
#define COUNT_EVERY_US 1000000 /* parked jobs */
#define MANY_DUE 512           /* lanes: then the store is asked what is due no more often than */
#define LOOK_EVERY_US 50000    /* this */
#define ECHO_US 1000           /* news that may well be of our own commit wait so long */

static void begin_round(struct hfi_runner *runner);

static void sleep_until_due(struct hfi_runner *runner) {
    int64_t poll = runner->options->poll_ms;
    if (runner->store_refused_ms > poll)
        poll = runner->store_refused_ms;
    int64_t wait_us = hfi_ms_to_us(poll);
    if (runner->store_refused_ms == 0) {
        int64_t due_in = hfi_sub(runner->next_due_us, hfi_runner_wall(runner).us);
        int64_t ready_in = hfi_sub(hfi_park_ready_at_us(runner), hfi_runner_mono(runner).us);
        int64_t rate_in = hfi_sub(runner->lanes.ready_at_us, hfi_runner_wall(runner).us);
        wait_us = due_in < wait_us ? due_in : wait_us;
        wait_us = ready_in < wait_us ? ready_in : wait_us;
        wait_us = rate_in < wait_us ? rate_in : wait_us;
        if (!runner->fresh) {
            int64_t look_in = hfi_sub(hfi_add(runner->lanes_at.us, LOOK_EVERY_US), hfi_runner_mono(runner).us);
            wait_us = look_in < wait_us ? look_in : wait_us;
        }
        if (runner->heed && wait_us > ECHO_US)
            wait_us = ECHO_US;
    }
    hfi_runner_arm(runner, &runner->poll_timer, hfi_us_to_ms_up(wait_us < 0 ? 0 : wait_us));
}

static struct hfi_lane_site *site_of(struct hfi_runner *runner, const struct hfi_type *type, const char *breaker_key) {
    const char *name = breaker_key;
    if (name[0] == '\0' && type != NULL && type->options.downstream != NULL)
        name = type->options.downstream;
    struct hfi_site *site = name[0] == '\0' ? NULL : hfi_park_site(runner, name);
    return site == NULL ? NULL : &site->slots;
}

/* A lane that this node sees for the first time, or under another book. NULL: no memory, it will be told again. */
static struct hfi_lane *meet(struct hfi_runner *runner, const struct hfi_lane_row *row) {
    const struct hfi_type *type = hfi_rulebook_type(runner->book, row->type);
    struct hfi_lane_site *site = site_of(runner, type, row->breaker_key);
    struct hfi_lane *lane = NULL;
    bool unknown = false;
    if (hfi_lanes_add(&runner->lanes, row->lane, row->queue, type, site, &lane) != 0 ||
        hfi_park_host(runner, lane, row->breaker_key) != 0 || hfi_lanes_limit(&runner->lanes, lane, row->limit_key, &unknown) != 0) {
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "a lane"), NULL);
        return NULL;
    }
    hfi_renew_lane(runner, lane, type, lane->host != NULL ? lane->site : site);
    if (unknown)
        hfi_log(HF_LOG_WARNING, "limit.unknown", HFI_S("limit_key", row->limit_key),
                HFI_S("why", "the configuration of this node has no limit of that name: it does not limit"), NULL);
    return lane;
}

static void take_lanes(struct hfi_runner *runner) {
    struct hfi_op_lanes *op = &runner->lanes_op;
    size_t due = 0;
    hfi_lanes_forget_due(&runner->lanes);
    for (size_t i = 0; i < op->count; i++) {
        const struct hfi_lane_row *row = &op->rows[i];
        struct hfi_lane *lane = NULL;
        if (row->lane > op->known) {
            lane = meet(runner, row);
            if (lane == NULL) {
                runner->lanes_known = op->known;
                return;
            }
            lane->alone = row->alone;
            if (row->lane > runner->lanes_known)
                runner->lanes_known = row->lane;
        } else {
            lane = hfi_lanes_find(&runner->lanes, row->lane);
        }
        if (lane == NULL)
            continue;
        due += row->next_due_us <= op->now.us;
        if (op->running)
            hfi_lane_others(lane, row->limit_running, row->queue_running);
        lane->due = row->next_due_us <= op->now.us;
        if (lane->due && lane->host != NULL)
            hfi_park_settle(runner, lane);
        lane->next_due_us = row->next_due_us;
        lane->top_priority = row->top_priority;
        lane->paused = row->paused;
    }
    runner->retelling = runner->retelling && op->known > 0;
    runner->many_due = due > MANY_DUE;
    runner->next_due_us = op->next_due_us;
    if (op->unhealthy_version != runner->unhealthy_version) {
        runner->unhealthy_version = op->unhealthy_version;
        hfi_ahead_return(runner); /* a queue was paused, or a downstream is not well: lanes with nothing due are not told of */
        hfi_park_reread(runner);
    }
}

static void claim_failed(struct hfi_runner *runner, int code) {
    if (runner->store_refused_ms == 0)
        hfi_log(HF_LOG_WARNING, "store.refuses", HFI_S("what", "claim"), HFI_S("why", hf_strerror(code)), NULL);
    int64_t wait = runner->store_refused_ms * 2;
    runner->store_refused_ms = wait < HFI_REFUSED_MIN_MS ? HFI_REFUSED_MIN_MS : wait > HFI_REFUSED_MAX_MS ? HFI_REFUSED_MAX_MS : wait;
}

static void take_claim(struct hfi_runner *runner) {
    struct hfi_op_claim *op = &runner->claim_op;
    runner->claims_back++;
    if (op->op.code != 0)
        op->count = 0;
    for (size_t i = 0; i < op->lane_count; i++) {
        if (op->op.code != 0) {
            op->lanes[i].claimed = 0;
            op->lanes[i].limit = NULL; /* it said nothing about the rate */
        }
    }
    hfi_lanes_claimed(&runner->lanes, hfi_runner_mono(runner).us, HOLD_US);
    if (!op->start) {
        hfi_ahead_take(runner, op->jobs, op->count);
        return;
    }
    HFI_COUNT(runner, claimed, op->count);
    HFI_COUNT(runner, started, op->count);
    HFI_COUNT(runner, running, op->count);
    size_t count = op->count; /* the arrays are free for the next round from here on */
    for (size_t i = 0; i < count; i++)
        hfi_execute(runner, op->jobs[i]);
}

/* Which parked lanes to count along, once a second at most: a count reads the rows that a claim leaves alone. */
static void choose_kept(struct hfi_runner *runner, struct hfi_op_lanes *op) {
    struct hf_mono now = hfi_runner_mono(runner);
    runner->kept_count = 0;
    for (size_t i = 0; i < runner->lanes.count && runner->kept_count < HFI_ADMIT_MAX; i++) {
        if (hfi_park_keeps(runner->lanes.lanes[i]))
            runner->kept[runner->kept_count++] = runner->lanes.lanes[i]->id;
    }
    bool stands = runner->kept_count > 0 && runner->kept_at.us != 0 && hfi_sub(now.us, runner->kept_at.us) < COUNT_EVERY_US;
    op->kept = stands ? NULL : runner->kept; /* NULL: the last count stands for now */
    op->kept_count = stands ? 0 : runner->kept_count;
    op->kept_due = 0;
    if (!stands)
        runner->kept_at = runner->kept_count > 0 ? now : (struct hf_mono){0};
}

static void count_parked(struct hfi_runner *runner) {
    if (runner->lanes_op.kept == NULL)
        return;
    pthread_mutex_lock(&runner->lock);
    runner->counts.parked = runner->lanes_op.kept_due;
    pthread_mutex_unlock(&runner->lock);
}

static void round_came_back(struct hfi_runner *runner) {
    runner->round_out = false;
    bool claimed = runner->claiming, looked = runner->looking;
    runner->claiming = runner->looking = false;
    int code = claimed ? runner->claim_op.op.code : 0;
    if (claimed)
        take_claim(runner);
    if (looked && runner->lanes_op.op.code == 0) {
        hfi_tidy_left(runner, &runner->lanes_op.op);
        take_lanes(runner);
        count_parked(runner);
    } else if (looked) {
        code = runner->lanes_op.op.code;
    }
    hfi_free(runner->lanes_op.rows);
    runner->lanes_op.rows = NULL;
    if (code != 0) {
        claim_failed(runner, code);
    } else {
        if (runner->store_refused_ms != 0)
            hfi_log(HF_LOG_INFO, "store.accepts", NULL);
        runner->store_refused_ms = 0;
        if (looked)
            runner->fresh = !runner->again;
    }
    hfi_renew_look(runner);
    if (runner->life != HFI_LIFE_RUNNING) {
        hfi_drain_check(runner);
        return;
    }
    if (code != 0) {
        sleep_until_due(runner);
        return;
    }
    hfi_upkeep_unknown(runner);
    begin_round(runner);
}

static void part_done(struct hfi_op *op, void *user) {
    (void)op;
    struct hfi_runner *runner = user;
    runner->out--;
    if (--runner->round_parts > 0)
        return;
    runner->back_at = hfi_runner_mono(runner);
    round_came_back(runner);
}

static size_t admit(struct hfi_runner *runner) {
    if (runner->lost || runner->node == 0)
        return 0;
    /* Outcomes that wait for the store hold memory and, by and by, the claims. */
    if (runner->running + runner->writing >= 4 * HFI_CLAIM_MAX)
        return 0;
    hfi_park_look(runner);
    hfi_ahead_round(runner);
    return hfi_lanes_admit(&runner->lanes, hfi_runner_mono(runner).us, hfi_runner_wall(runner), HFI_CLAIM_MAX);
}

static void submit_claim(struct hfi_runner *runner) {
    struct hfi_op_claim *op = &runner->claim_op;
    struct hfi_round *round = &runner->lanes.round;
    for (size_t i = 0; i < round->count; i++) {
        const struct hfi_lane *lane = round->lanes[i];
        round->admitted[i].policy = hfi_rulebook_policy(runner->book, lane->type->options.name, lane->queue->name);
        round->admitted[i].not_repeatable = !lane->type->options.repeatable;
    }
    op->node = runner->node;
    op->now = hfi_runner_wall(runner);
    op->start = round->ahead == 0;
    op->lanes = round->admitted;
    op->lane_count = round->count;
    op->queues = round->queues;
    op->queue_count = round->queue_count;
    op->budgets = round->budgets;
    op->budget_count = round->budget_count;
    op->max = HFI_CLAIM_MAX;
    op->jobs = runner->claimed;
    op->count = 0;
    runner->claiming = true;
    runner->round_parts++;
    hfi_runner_submit(runner, &op->op, HFI_OP_CLAIM, part_done, runner);
}

static void submit_lanes(struct hfi_runner *runner) {
    struct hfi_op_lanes *op = &runner->lanes_op;
    op->known = runner->lanes_known;
    op->now = hfi_runner_wall(runner);
    op->rows = NULL;
    op->count = 0;
    op->next_due_us = INT64_MAX;
    op->running = runner->lanes.bounded;
    runner->lanes_at = hfi_runner_mono(runner);
    runner->heed = false;
    choose_kept(runner, op);
    runner->looking = true;
    runner->round_parts++;
    hfi_runner_submit(runner, &op->op, HFI_OP_LANES, part_done, runner);
}

/*
 * Is the store asked what is due? After each claim, and whenever it is not known. A list of very many due lanes stands for
 * a moment while claims go on: what was due is due still, and their answers say what is not.
 */
static bool looks_again(struct hfi_runner *runner, bool claims) {
    bool stands = runner->many_due &&
                  hfi_sub(hfi_runner_mono(runner).us, runner->lanes_at.us) < LOOK_EVERY_US;
    if (stands && claims)
        runner->fresh = false; /* it grows old */
    return !stands && (claims || !runner->fresh);
}

/* Claims what may be claimed, asks what is due; sleeps when both are known to be nothing. */
static void begin_round(struct hfi_runner *runner) {
    if (runner->round_out || runner->life != HFI_LIFE_RUNNING)
        return;
    size_t count = admit(runner);
    hfi_share_round(runner);
    hfi_probe_look(runner);
    if (count == 0)
        count = hfi_ahead_admit(runner);
    runner->round_parts = 1; /* until both are out */
    runner->again = false;
    if (count > 0)
        submit_claim(runner);
    if (looks_again(runner, count > 0))
        submit_lanes(runner);
    if (--runner->round_parts > 0) {
        runner->round_out = true;
        hfi_runner_disarm(runner, &runner->poll_timer);
        return;
    }
    sleep_until_due(runner);
    hfi_execute_idle(runner);
    if (runner->fresh)
        hfi_drain_idle(runner);
}

static void poked(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_runner *runner = user;
    runner->poked = false;
    if (runner->store_refused_ms != 0 && hfi_timer_armed(&runner->poll_timer))
        return; /* it asks again when the wait is over */
    begin_round(runner);
}

void hfi_claim_poke(struct hfi_runner *runner) {
    if (runner->life != HFI_LIFE_RUNNING || runner->poked)
        return;
    runner->poked = true;
    runner->scheduler->ops->post(runner->scheduler, &runner->poke_task);
}

void hfi_claim_stale(struct hfi_runner *runner) {
    runner->fresh = false;
    runner->again = true;
    hfi_claim_poke(runner);
}

static void poll_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_runner *runner = user;
    runner->fresh = false;
    begin_round(runner);
}

static void heard(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_runner *runner = user;
    atomic_store(&runner->heard, false);
    hfi_claim_stale(runner);
}

/* The writer's thread: somebody enqueued here. */
static void hear(void *user) {
    struct hfi_runner *runner = user;
    if (!atomic_exchange(&runner->heard, true))
        runner->scheduler->ops->post(runner->scheduler, &runner->heard_task);
}

/*
 * Another process may have written; or we have, which is told page by page. While something of ours is with the writer, or
 * came back just now, the next look is soon enough: every claim brings one, and a look alone would keep the claim waiting
 * that goes with the outcomes.
 */
static void woken(struct hfi_watch *watch, unsigned events, void *user) {
    (void)watch;
    (void)events;
    struct hfi_runner *runner = user;
    struct hfi_store *port = runner->parts.store->port;
    port->ops->wake_drain(port);
    struct hf_mono now = hfi_runner_mono(runner);
    if (runner->out == 0 && hfi_sub(now.us, runner->back_at.us) > ECHO_US) {
        hfi_claim_stale(runner);
        return;
    }
    if (runner->heed || runner->life != HFI_LIFE_RUNNING)
        return;
    runner->heed = true;
    struct hf_mono at = {hfi_add(now.us, ECHO_US)};
    if (!hfi_timer_armed(&runner->poll_timer) || runner->poll_timer.at.us > at.us)
        hfi_runner_arm(runner, &runner->poll_timer, hfi_us_to_ms_up(ECHO_US));
}

void hfi_claim_init(struct hfi_runner *runner) {
    hfi_timer_init(&runner->poll_timer, poll_fired, runner);
    runner->poke_task.run = poked;
    runner->poke_task.user = runner;
    runner->heard_task.run = heard;
    runner->heard_task.user = runner;
    runner->ear.heard = hear;
    runner->ear.user = runner;
    runner->next_due_us = INT64_MAX;
}

void hfi_claim_begin(struct hfi_runner *runner) {
    struct hfi_store *port = runner->parts.store->port;
    int fd = port->ops->wake_fd == NULL ? -1 : port->ops->wake_fd(port);
    /* A second runner on one store may not get it: it polls. */
    if (fd >= 0 && runner->scheduler->ops->watch(runner->scheduler, fd, HFI_READABLE, woken, runner,
                                                 &runner->wake_watch) != 0)
        runner->wake_watch = NULL;
    hfi_writer_listen(runner->writer, &runner->ear);
    hfi_claim_stale(runner);
}

void hfi_claim_stop(struct hfi_runner *runner) {
    hfi_share_stop(runner);
    hfi_runner_disarm(runner, &runner->poll_timer);
    hfi_writer_unlisten(runner->writer, &runner->ear);
    runner->scheduler->ops->unwatch(runner->scheduler, runner->wake_watch);
    runner->wake_watch = NULL;
}
