/* SPDX-License-Identifier: MIT */
/*
 * What a node does for the others, about once a second: watches their beats, takes the jobs of those that are gone, puts
 * jobs of unknown types aside, tidies up (tidy.c). Must never take a job of a node that may
 * live: a death on this host is proven by its lock, any other by a lease that ran out under our eyes. Loop thread.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/leftovers.h"
#include "jobs/runner/runner_state.h"

#define ROUND_MS 1000
#define PAGE 256
#define LOOKS_MAX 10 /* for processes that do not go away */

static int64_t round_ms(const struct hfi_runner *runner) {
    int64_t fraction = runner->options->lease_ms / 8;
    return fraction < 1 ? 1 : fraction < ROUND_MS ? fraction : ROUND_MS;
}

static bool active(const struct hfi_runner *runner) {
    return runner->life == HFI_LIFE_RUNNING && !runner->lost;
}

static void failed(const struct hfi_op *op, const char *what) {
    hfi_log(HF_LOG_WARNING, "upkeep.failed", HFI_S("what", what), HFI_S("why", hf_strerror(op->code)), NULL);
}

static void came_back(struct hfi_runner *runner) {
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

/* ------------------------------------------------------------------ other nodes */

static struct hfi_peer *find_peer(struct hfi_runner *runner, int64_t node) {
    for (size_t i = 0; i < runner->peer_count; i++) {
        if (runner->peers[i].watch.node == node)
            return &runner->peers[i];
    }
    return NULL;
}

static struct hfi_peer *add_peer(struct hfi_runner *runner, const struct hfi_node_row *row) {
    void *grown = hfi_realloc(runner->peers, (runner->peer_count + 1) * sizeof *runner->peers);
    if (grown == NULL)
        return NULL;
    runner->peers = grown;
    struct hfi_peer *peer = &runner->peers[runner->peer_count++];
    memset(peer, 0, sizeof *peer);
    hfi_lease_first(&peer->watch, row->node, row->beat, hfi_runner_mono(runner));
    memcpy(peer->name, row->name, sizeof peer->name);
    return peer;
}

/* It is heard of again, or we did not hear of anybody for a while: its lease runs anew, and what it left is its own. */
static void lives_after_all(struct hfi_peer *peer) {
    hfi_log(HF_LOG_INFO, "node.watched_again", HFI_I("node", peer->watch.node), HFI_S("name", peer->name), NULL);
    peer->gone = peer->crashed = peer->cleaned = peer->begun = false;
    peer->looks = 0;
}

static void look_at(struct hfi_runner *runner, const struct hfi_node_row *row) {
    struct hfi_peer *peer = find_peer(runner, row->node);
    bool lapsed = false, gone;
    if (peer == NULL)
        peer = add_peer(runner, row);
    else
        lapsed = hfi_lease_look(&peer->watch, row->beat, hfi_runner_mono(runner), runner->options->lease_ms,
                                4 * round_ms(runner));
    if (peer == NULL)
        return; /* no memory: it is looked at again in the next round */
    peer->present = true;
    gone = lapsed || row->dead_on_host || row->gone || (peer->gone && peer->crashed);
    if (!peer->gone && gone) {
        hfi_log(HF_LOG_WARNING, "node.gone", HFI_I("node", row->node), HFI_S("name", row->name),
                HFI_S("proof", row->dead_on_host ? "its lock is free" : row->gone ? "it left jobs behind" : "its lease ran out"),
                NULL);
        peer->crashed = row->dead_on_host;
    }
    if (peer->gone && !gone)
        lives_after_all(peer);
    peer->gone = gone;
}

static void forget_absent(struct hfi_runner *runner) {
    size_t kept = 0;
    for (size_t i = 0; i < runner->peer_count; i++) {
        if (runner->peers[i].present)
            runner->peers[kept++] = runner->peers[i];
    }
    runner->peer_count = kept;
}

/*
 * What its exec jobs left running on this host is killed before they run again; only just after a look at the nodes, so
 * that nothing is killed of one that beats by now.
 */
static void clean(struct hfi_runner *runner, struct hfi_peer *peer) {
    if (!peer->gone || peer->cleaned)
        return;
    size_t killed = hfi_leftovers_kill(runner->parts.store->port->uuid, peer->watch.node);
    peer->cleaned = killed == 0 || ++peer->looks >= LOOKS_MAX;
    if (killed > 0)
        hfi_log(HF_LOG_WARNING, "node.leftovers", HFI_I("node", peer->watch.node), HFI_I("killed", killed), NULL);
}

static void sweep_next(struct hfi_runner *runner);

static void nodes_done(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    runner->out--;
    runner->nodes_out = false;
    hfi_pulse_beat(&runner->sweep_pulse);
    if (op->code == 0 && active(runner)) {
        for (size_t i = 0; i < runner->peer_count; i++)
            runner->peers[i].present = false;
        for (size_t i = 0; i < runner->nodes_op.count; i++) {
            if (runner->nodes_op.rows[i].node != runner->node)
                look_at(runner, &runner->nodes_op.rows[i]);
        }
        forget_absent(runner);
        for (size_t i = 0; i < runner->peer_count; i++)
            clean(runner, &runner->peers[i]);
        bool first = !runner->looked;
        runner->looked = true;
        sweep_next(runner);
        if (first)
            hfi_claim_stale(runner);
    } else if (op->code != 0) {
        failed(op, "nodes");
    }
    if (op->code == 0)
        hfi_free(runner->nodes_op.rows);
    runner->nodes_op.rows = NULL;
    came_back(runner);
}

bool hfi_upkeep_alone(const struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->peer_count; i++) {
        if (!runner->peers[i].gone)
            return false;
    }
    return runner->looked;
}

static void swept(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    struct hfi_op_sweep *sweep = &runner->sweep_op;
    runner->out--;
    runner->sweep_out = false;
    hfi_pulse_beat(&runner->sweep_pulse);
    hfi_rulebook_free(runner->sweep_book);
    hfi_tidy_left(runner, op);
    if (op->code == 0) {
        pthread_mutex_lock(&runner->lock);
        runner->counts.lapsed += sweep->lapsed;
        runner->counts.orphaned += sweep->note_count;
        pthread_mutex_unlock(&runner->lock);
        if (sweep->lapsed > 0)
            hfi_log(HF_LOG_WARNING, "node.swept", HFI_I("node", sweep->owner), HFI_I("jobs", sweep->lapsed),
                    HFI_I("died", sweep->note_count), NULL);
        hfi_deaths_told(runner, sweep->notes, sweep->note_count);
        struct hfi_peer *peer = find_peer(runner, sweep->owner);
        if (sweep->finished && peer != NULL)
            *peer = runner->peers[--runner->peer_count];
        if (sweep->lives && peer != NULL)
            lives_after_all(peer);
        if (sweep->finished)
            sweep->owner = 0;
        if (active(runner)) {
            sweep_next(runner);
            hfi_claim_stale(runner);
        }
    } else {
        failed(op, "sweep"); /* the next round goes on where it was */
    }
    came_back(runner);
}

/* Does nobody of its executions run on, as far as we can see to that? */
static bool may_sweep(const struct hfi_peer *peer) {
    return peer != NULL && peer->gone && peer->cleaned;
}

/* The next page of a node that is gone (I6). */
static void sweep_next(struct hfi_runner *runner) {
    struct hfi_op_sweep *op = &runner->sweep_op;
    if (runner->sweep_out)
        return;
    struct hfi_peer *peer = find_peer(runner, op->owner);
    for (size_t i = 0; i < runner->peer_count && !may_sweep(peer); i++)
        peer = &runner->peers[i];
    if (!may_sweep(peer))
        return; /* what is left is on its way out: the next round looks again */
    if (peer->watch.node != op->owner || !peer->begun)
        op->after_id = 0;
    op->owner = peer->watch.node;
    peer->begun = true;
    op->book = runner->sweep_book = hfi_rulebook_hold(runner->book);
    op->by = runner->node;
    op->beat = peer->watch.beat;
    op->crash = peer->crashed;
    op->now = hfi_runner_wall(runner);
    op->limit = PAGE;
    op->lapsed = 0;
    op->finished = false;
    op->notes = NULL;
    op->note_count = 0;
    runner->sweep_out = true;
    hfi_runner_submit(runner, &op->op, HFI_OP_SWEEP, swept, runner);
}

/* ------------------------------------------------------------------ unknown types */

static void quarantined(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    struct hfi_op_quarantine *quarantine = &runner->quarantine_op;
    runner->out--;
    runner->quarantine_out = false;
    hfi_rulebook_free(runner->quarantine_book);
    hfi_tidy_left(runner, op);
    if (op->code != 0) {
        failed(op, "quarantine");
    } else {
        HFI_COUNT(runner, quarantined, quarantine->ended);
        hfi_deaths_told(runner, quarantine->notes, quarantine->note_count);
        struct hfi_lane *lane = hfi_lanes_find(&runner->lanes, quarantine->lane);
        if (lane != NULL && quarantine->ended < quarantine->limit)
            lane->due = false; /* until the store says otherwise */
        if (active(runner) && quarantine->ended > 0)
            hfi_claim_stale(runner);
    }
    came_back(runner);
}

/* A type that this node lacks: at once when it is alone, else when nobody took the lane for the whole grace. */
static bool given_up(struct hfi_runner *runner, struct hfi_lane *lane) {
    int64_t now = hfi_runner_mono(runner).us;
    if (lane->unknown_since_us == 0)
        lane->unknown_since_us = now == 0 ? 1 : now;
    if (!runner->looked)
        return false;
    return hfi_upkeep_alone(runner) ||
           hfi_sub(now, lane->unknown_since_us) >= hfi_ms_to_us(runner->options->unknown_type_grace_ms);
}

void hfi_upkeep_unknown(struct hfi_runner *runner) {
    struct hfi_op_quarantine *op = &runner->quarantine_op;
    if (!active(runner) || runner->retelling)
        return;
    for (size_t i = 0; i < runner->lanes.count; i++) {
        struct hfi_lane *lane = runner->lanes.lanes[i];
        if (lane->type != NULL || !lane->queue->wanted)
            continue;
        if (!lane->due || lane->paused) {
            lane->unknown_since_us = 0;
            continue;
        }
        if (!given_up(runner, lane) || runner->quarantine_out)
            continue;
        op->book = runner->quarantine_book = hfi_rulebook_hold(runner->book);
        op->lane = lane->id;
        op->node = runner->node;
        op->now = hfi_runner_wall(runner);
        op->error_type = "unknown_type";
        op->message = "no node has a handler for this type";
        op->limit = PAGE;
        op->ended = 0;
        op->notes = NULL;
        op->note_count = 0;
        runner->quarantine_out = true;
        hfi_runner_submit(runner, &op->op, HFI_OP_QUARANTINE, quarantined, runner);
    }
}

/* ------------------------------------------------------------------ the round */

static void round_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_runner *runner = user;
    if (runner->life != HFI_LIFE_RUNNING)
        return;
    hfi_runner_arm(runner, &runner->upkeep_timer, round_ms(runner));
    if (runner->lost) {
        hfi_pulse_beat(&runner->sweep_pulse);
        return; /* who cannot store a beat takes nobody's jobs */
    }
    if (!runner->nodes_out) {
        runner->nodes_op.self = runner->node;
        runner->nodes_op.rows = NULL;
        runner->nodes_op.count = 0;
        runner->nodes_out = true;
        hfi_runner_submit(runner, &runner->nodes_op.op, HFI_OP_NODES, nodes_done, runner);
    }
    hfi_tidy_round(runner);
    hfi_readmit_round(runner);
    hfi_redriver_round(runner);
    hfi_measurer_round(runner);
}

/* The rounds have come to an end without being stopped: a timer for which there was no memory. Nothing of a round is half
 * done between two turns of the loop, so it begins with the next one; what is out with the writer comes back as ever. */
static void sweep_again(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_runner *runner = user;
    atomic_store(&runner->sweep_posted, false);
    if (runner->life == HFI_LIFE_RUNNING && !hfi_timer_armed(&runner->upkeep_timer))
        round_fired(&runner->upkeep_timer, runner);
}

static enum hfi_restart restart_sweep(struct hfi_ward *ward) {
    struct hfi_runner *runner = ward->user;
    if (!atomic_exchange(&runner->sweep_posted, true))
        runner->scheduler->ops->post(runner->scheduler, &runner->sweep_task);
    return HFI_RESTART_AGAIN;
}

static void be_looked_after(struct hfi_runner *runner) {
    struct hfi_ward *ward = &runner->sweep_ward;
    runner->sweep_task.run = sweep_again;
    runner->sweep_task.user = runner;
    snprintf(ward->name, sizeof ward->name, "sweep");
    ward->pulse = &runner->sweep_pulse;
    ward->restart = restart_sweep;
    ward->user = runner;
    ward->period_ms = round_ms(runner);
    hfi_pulse_beat(&runner->sweep_pulse);
    hfi_wards_add(runner->parts.wards, ward);
}

void hfi_upkeep_begin(struct hfi_runner *runner) {
    hfi_timer_init(&runner->upkeep_timer, round_fired, runner);
    be_looked_after(runner);
    hfi_tidy_begin(runner);
    hfi_readmit_begin(runner);
    hfi_redriver_begin(runner);
    round_fired(&runner->upkeep_timer, runner);
}

void hfi_upkeep_end(struct hfi_runner *runner) {
    hfi_wards_remove(runner->parts.wards, &runner->sweep_ward); /* what it posted by now runs before the runner ends */
}

void hfi_upkeep_stop(struct hfi_runner *runner) {
    hfi_upkeep_end(runner);
    hfi_runner_disarm(runner, &runner->upkeep_timer);
    hfi_tidy_stop(runner);
    hfi_redriver_stop(runner);
}

bool hfi_upkeep_idle(struct hfi_runner *runner) {
    if (!runner->looked || runner->sweep_out || runner->quarantine_out || runner->lost_out > 0 ||
        !hfi_tidy_idle(runner) || !hfi_redriver_idle(runner) || !hfi_readmit_idle(runner))
        return false;
    for (size_t i = 0; i < runner->peer_count; i++) {
        if (runner->peers[i].gone)
            return false;
    }
    return true;
}
