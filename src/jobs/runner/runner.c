/* SPDX-License-Identifier: MIT */
/*
 * The life of a node: made, joins the store, runs, leaves. Decides nothing about jobs. Must never end while an operation
 * or a task of its own is on its way. Loop thread, but for the counts.
 */
#include "jobs/runner/runner.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/runner/runner_state.h"

static const char *life_text(enum hfi_life life) {
    static const char *const texts[] = {
#define LIFE_TEXT(name, text) text,
        HFI_LIFE_MAP(LIFE_TEXT)
#undef LIFE_TEXT
    };
    return texts[life];
}

void hfi_runner_move(struct hfi_runner *runner, enum hfi_life life) {
    hfi_log(HF_LOG_DEBUG, "runner.life", HFI_S("from", life_text(runner->life)), HFI_S("to", life_text(life)), NULL);
    runner->life = life;
    bool stops = life == HFI_LIFE_DRAINING || life == HFI_LIFE_LEAVING;
    if (runner->options->phase == NULL || (life != HFI_LIFE_RUNNING && (!stops || runner->stop_told)))
        return;
    runner->stop_told = stops;
    runner->options->phase(stops ? HF_RUNNER_STOPPING : HF_RUNNER_READY, runner->options->life_user);
}

struct hf_mono hfi_runner_mono(const struct hfi_runner *runner) {
    return runner->scheduler->ops->mono(runner->scheduler);
}

struct hf_wall hfi_runner_wall(const struct hfi_runner *runner) {
    return runner->scheduler->ops->wall(runner->scheduler);
}

void hfi_runner_arm(struct hfi_runner *runner, struct hfi_timer *timer, int64_t after_ms) {
    struct hf_mono at = hfi_mono_after_ms(hfi_runner_mono(runner), after_ms < 0 ? 0 : after_ms);
    if (runner->scheduler->ops->arm(runner->scheduler, timer, at) != 0)
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "a timer"), NULL);
}

void hfi_runner_disarm(struct hfi_runner *runner, struct hfi_timer *timer) {
    runner->scheduler->ops->disarm(runner->scheduler, timer);
}

void hfi_runner_submit(struct hfi_runner *runner, struct hfi_op *op, enum hfi_op_kind kind,
                       void (*done)(struct hfi_op *op, void *user), void *user) {
    op->kind = kind;
    op->home = runner->scheduler;
    op->done = done;
    op->user = user;
    op->code = 0;
    op->next = NULL;
    runner->out++;
    if (runner->unsent_last != NULL)
        runner->unsent_last->next = op;
    else
        runner->unsent = op;
    runner->unsent_last = op;
    if (runner->unsent == op)
        runner->scheduler->ops->post(runner->scheduler, &runner->send_task);
}

/*
 * At the end of a turn: what belongs together, outcomes and the claim that takes their slots, comes into one commit. The
 * outcomes that freed slots poked for that claim after they posted this, so it waits until that has been heard.
 */
static void send_all(struct hfi_task *task, void *user) {
    struct hfi_runner *runner = user;
    if (runner->poked) {
        runner->scheduler->ops->post(runner->scheduler, task);
        return;
    }
    struct hfi_op *first = runner->unsent;
    runner->unsent = runner->unsent_last = NULL;
    hfi_writer_submit_all(runner->writer, first);
}

bool hfi_refused_for_now(int code) {
    switch (code) {
    case HF_EIO:
    case HF_EBUSY:
    case HF_ENOSPC:
    case HF_ENOMEM:
    case HF_ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

int64_t hfi_refused_wait_ms(uint32_t tries) {
    int64_t wait = HFI_REFUSED_MIN_MS;
    for (; tries > 1 && wait < HFI_REFUSED_MAX_MS; tries--)
        wait *= 2;
    return wait < HFI_REFUSED_MAX_MS ? wait : HFI_REFUSED_MAX_MS;
}

/* ------------------------------------------------------------------ joining */

static void run_last(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_runner *runner = user;
    hfi_runner_move(runner, HFI_LIFE_ENDED);
    runner->parts.ended(runner->code, runner->parts.user);
}

/*
 * Everything is over, but for checkpoints that were said until now: whoever said them is told. Tasks posted before the last
 * one have run when it does.
 */
static void end(struct hfi_runner *runner) {
    hfi_desk_close(&runner->desk);
    runner->ending = hfi_desk_keeps(&runner->desk);
    if (runner->ending)
        return;
    hfi_upkeep_end(runner);
    hfi_park_end(runner);
    hfi_execute_end(runner);
    if (runner->left != NULL)
        runner->abandoned = true; /* handlers still have their works, and a thread each */
    runner->last_task.run = run_last;
    runner->last_task.user = runner;
    runner->scheduler->ops->post(runner->scheduler, &runner->last_task);
}

void hfi_runner_kept(struct hfi_runner *runner) {
    if (runner->ending)
        end(runner);
    else
        hfi_drain_check(runner);
}

static void left(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    runner->out--;
    if (op->code != 0)
        hfi_log(HF_LOG_WARNING, "node.leave_failed", HFI_I("node", runner->node), HFI_S("why", hf_strerror(op->code)), NULL);
    else
        hfi_log(HF_LOG_INFO, "node.left", HFI_I("node", runner->node), NULL);
    end(runner);
}

void hfi_runner_leave(struct hfi_runner *runner) {
    hfi_runner_move(runner, HFI_LIFE_LEAVING);
    if (runner->node == 0 || runner->jobs_left) { /* its row stays, so that others find the jobs it leaves behind */
        end(runner);
        return;
    }
    runner->leave.node = runner->node;
    hfi_runner_submit(runner, &runner->leave.op, HFI_OP_LEAVE, left, runner);
}

static void work_begins(struct hfi_runner *runner) {
    hfi_runner_move(runner, HFI_LIFE_RUNNING);
    hfi_park_begin(runner);
    hfi_upkeep_begin(runner);
    hfi_claim_begin(runner);
}

static void joined(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    runner->out--;
    runner->names_out--;
    if (op->code == 0) {
        runner->node = runner->join.node;
        runner->lost = false;
        hfi_share_forget(runner);
        hfi_log(HF_LOG_INFO, "node.joined", HFI_I("node", runner->node), HFI_S("name", runner->join.name), NULL);
        hfi_beat_begin(runner);
        if (runner->alerts != NULL)
            hfi_alerts_begin(runner->alerts, runner->node);
        if (runner->life == HFI_LIFE_JOINING) {
            work_begins(runner);
            if (runner->stop_asked)
                hfi_drain_begin(runner);
        } else {
            hfi_claim_stale(runner);
        }
        hfi_renew_look(runner);
    } else if (hfi_refused_for_now(op->code) && runner->life <= HFI_LIFE_RUNNING && !runner->stop_asked) {
        hfi_log(HF_LOG_WARNING, "node.join_failed", HFI_S("why", hf_strerror(op->code)), NULL);
        hfi_runner_arm(runner, &runner->life_timer, HFI_REFUSED_MAX_MS / 5);
        hfi_renew_look(runner);
        return;
    } else if (runner->life == HFI_LIFE_JOINING) {
        runner->code = op->code;
        hfi_runner_move(runner, HFI_LIFE_LEAVING);
        end(runner);
    }
}

void hfi_runner_join(struct hfi_runner *runner) {
    struct hfi_op_join *join = &runner->join;
    hfi_uuid(runner->boot);
    join->boot = runner->boot;
    join->pid = (int32_t)getpid();
    join->now = hfi_runner_wall(runner);
    join->types = hfi_rulebook_names(runner->book);
    join->type_count = hfi_rulebook_type_count(runner->book);
    join->sinks = hfi_rulebook_sink_rules(runner->book);
    const char *const *names;
    join->sink_count = hfi_rulebook_sinks(runner->book, &names);
    join->op.urgent = true;
    runner->names_out++;
    runner->names_untold = false;
    hfi_runner_submit(runner, &join->op, HFI_OP_JOIN, joined, runner);
}

/* The timer of joining again; once the drain began the same timer is the drain's. */
static void life_timer_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_runner *runner = user;
    if (runner->life == HFI_LIFE_JOINING || runner->life == HFI_LIFE_RUNNING) {
        if (runner->stop_asked && runner->life == HFI_LIFE_JOINING) {
            hfi_runner_move(runner, HFI_LIFE_LEAVING);
            end(runner);
            return;
        }
        hfi_runner_join(runner);
        return;
    }
    hfi_drain_step(runner);
}

/* ------------------------------------------------------------------ made and freed */

static int make_kind(struct hfi_runner *runner, enum hf_kind kind) {
    switch (kind) {
    case HF_KIND_HTTP:
        return hfi_kind_http_new(runner->scheduler, runner->parts.caller, &runner->kinds[kind]);
    case HF_KIND_EXEC:
        return hfi_kind_exec_new(runner->scheduler, &runner->kinds[kind]);
    case HF_KIND_NATIVE:
        return hfi_kind_native_new(runner->scheduler, UINT32_MAX / 2, runner->parts.wards, /* claims bound it: lane.h */
                                   &runner->kinds[kind]);
    case HF_KIND_NOOP:
        return hfi_kind_noop_new(runner->scheduler, &runner->kinds[kind]);
    case HF_KIND_PLUGIN:
        return 0; /* runs as another kind */
    }
    return HF_EINVAL;
}

/* All of them: a type of any kind may come later. */
static int make_kinds(struct hfi_runner *runner) {
    int code = 0;
    for (int kind = HF_KIND_HTTP; kind <= HF_KIND_NOOP && code == 0; kind++)
        code = make_kind(runner, (enum hf_kind)kind);
    return code;
}

static void alerts_changed(const struct hfi_alerts_done *more, void *user) {
    struct hfi_runner *runner = user;
    pthread_mutex_lock(&runner->lock);
    runner->counts.alerts_sent += more->sent;
    runner->counts.alerts_failed += more->failed;
    runner->counts.alerts_summaries += more->summaries;
    runner->counts.alerts_digests += more->digests;
    runner->counts.alerts_undelivered += more->undelivered;
    pthread_mutex_unlock(&runner->lock);
    if (runner->life == HFI_LIFE_RUNNING)
        hfi_drain_idle(runner);
    else
        hfi_drain_check(runner);
}

static int make_alerts(struct hfi_runner *runner, struct hf_error *error) {
    size_t count = runner->options->sink_count;
    if (count == 0 || runner->parts.transport == NULL)
        return 0;
    struct hfi_sink **sinks = hfi_alloc_array(count, sizeof *sinks);
    if (sinks == NULL)
        return HF_ENOMEM;
    int code = 0;
    size_t made = 0;
    hfi_sink_new_fn make = runner->parts.new_sink != NULL ? runner->parts.new_sink : hfi_sink_new;
    const char *at = (const char *)runner->options->sinks;
    for (; made < count && code == 0; at += runner->options->sinks->size) {
        code = make(runner->scheduler, runner->parts.transport, (const struct hf_sink_options *)(const void *)at, &sinks[made],
                    error);
        made += code == 0;
    }
    struct hfi_alerts_options options = {.scheduler = runner->scheduler, .writer = runner->writer, .sinks = sinks,
                                         .sink_count = made, .changed = alerts_changed, .user = runner};
    if (code == 0)
        code = hfi_alerts_new(&options, &runner->alerts);
    if (code != 0) {
        for (size_t i = 0; i < made; i++)
            sinks[i]->ops->close(sinks[i]);
    }
    hfi_free(sinks);
    return code;
}

int hfi_runner_new(const struct hfi_runner_parts *parts, struct hfi_runner **out, struct hf_error *error) {
    struct hfi_runner *runner = hfi_alloc(sizeof *runner);
    if (runner == NULL)
        return hfi_fail(error, HF_ENOMEM, "runner", NULL, "no memory");
    runner->parts = *parts;
    runner->scheduler = parts->scheduler;
    runner->writer = parts->store->writer;
    runner->book = hfi_rulebook_hold(parts->book);
    runner->options = parts->options;
    runner->join.name = parts->options->node;
    uint64_t seed = parts->seed;
    if (seed == 0)
        hfi_entropy(&seed, sizeof seed);
    hfi_random_seed(&runner->random, seed);
    pthread_mutex_init(&runner->lock, NULL);
    hf_runner_counts_init(&runner->counts);
    hfi_timer_init(&runner->life_timer, life_timer_fired, runner);
    runner->send_task.run = send_all;
    runner->send_task.user = runner;
    hfi_claim_init(runner);
    hfi_ahead_init(runner);
    int code = hfi_desk_init(&runner->desk, runner->scheduler, runner->writer);
    if (code == 0)
        code = hfi_lanes_init(&runner->lanes, parts->options, HFI_ASYNC_MAX);
    if (code == 0)
        code = hfi_park_init(runner);
    if (code == 0)
        code = make_alerts(runner, error);
    if (code != 0) {
        hfi_runner_free(runner);
        return error != NULL && error->code == code ? code : hfi_fail(error, code, "runner", NULL, "%s", hf_strerror(code));
    }
    *out = runner;
    return 0;
}

void hfi_runner_free(struct hfi_runner *runner) {
    if (runner == NULL || runner->abandoned)
        return;
    for (size_t i = 0; i < sizeof runner->kinds / sizeof *runner->kinds; i++) {
        if (runner->kinds[i] != NULL)
            runner->kinds[i]->ops->close(runner->kinds[i]);
    }
    hfi_alerts_free(runner->alerts);
    hfi_lanes_end(&runner->lanes);
    hfi_park_free(runner);
    hfi_onlookers_free(runner);
    hfi_desk_end(&runner->desk);
    hfi_free(runner->peers);
    hfi_free(runner->strays);
    hfi_rulebook_free(runner->book);
    pthread_mutex_destroy(&runner->lock);
    hfi_free(runner);
}

void hfi_runner_begin(struct hfi_runner *runner) {
    hfi_runner_move(runner, HFI_LIFE_JOINING);
    int code = make_kinds(runner);
    if (code != 0) {
        runner->code = code;
        hfi_runner_move(runner, HFI_LIFE_LEAVING);
        end(runner);
        return;
    }
    hfi_runner_join(runner);
}

void hfi_runner_drain(struct hfi_runner *runner) {
    bool again = runner->stop_asked;
    runner->stop_asked = true;
    if (runner->life == HFI_LIFE_RUNNING || (again && runner->life > HFI_LIFE_RUNNING))
        hfi_drain_begin(runner);
}

bool hfi_runner_abandoned(const struct hfi_runner *runner) {
    return runner->abandoned;
}

void hfi_runner_reload(struct hfi_runner *runner) {
    hfi_park_reload(runner);
    hfi_ahead_return(runner);
    if (runner->life == HFI_LIFE_RUNNING)
        hfi_claim_stale(runner);
}

void hfi_runner_relayed(struct hfi_runner *runner) {
    if (runner->alerts != NULL && runner->life == HFI_LIFE_RUNNING)
        hfi_alerts_wake(runner->alerts);
    hfi_drain_idle(runner);
}

void hfi_runner_counts(struct hfi_runner *runner, struct hf_runner_counts *counts) {
    uint32_t size = counts->size;
    struct hf_runner_counts now;
    pthread_mutex_lock(&runner->lock);
    now = runner->counts;
    pthread_mutex_unlock(&runner->lock);
    now.size = size;
    memcpy(counts, &now, size < sizeof now ? size : sizeof now);
}
