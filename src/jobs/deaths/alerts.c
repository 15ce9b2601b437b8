/* SPDX-License-Identifier: MIT */
/*
 * Takes due alert rows, one pump per sink, sends them and writes back what came of it. Must never give up an alert
 * unsent but after seven days and with an Error line, never let one sink wait for another, and never write an alert
 * about an alert. Loop thread.
 */
#include "jobs/deaths/alerts.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/deaths/patience.h"

#define AT_ONCE HFI_SINK_AT_ONCE
#define LOOK_EVERY_MS 5000 /* rows that others left: a node that went away between death and alert */
#define LEASE_MARGIN_MS 20000
#define END_RETRY_MS 1000

struct pump;

/* One alert on its way: the try, then the write of how it ended. */
struct slot {
    struct pump *pump;
    bool used;
    struct hfi_alert alert;
    struct hfi_sink_try *try;
    struct hfi_op_alert_end end;
    char error_type[64], had[HFI_ALERT_HAD_MAX + 1];
    struct hfi_timer retry;
    bool writing;
    struct hf_mono taken_until; /* our claim of the row */
};

struct pump {
    struct hfi_alerts *alerts;
    struct hfi_sink *sink;
    struct hfi_timer timer;
    struct hfi_op_alerts op;
    const char *name;
    bool out, again, looked;
    int64_t next_due_us; /* wall; INT64_MAX none */
    struct hf_mono asked;
    struct slot slots[AT_ONCE];
    size_t used;
};

struct hfi_alerts {
    struct hfi_alerts_options options;
    struct pump *pumps;
    size_t count;
    int64_t node; /* 0: not begun */
    bool stopped;
};

static void look(struct pump *pump);

static struct hfi_scheduler *scheduler_of(const struct pump *pump) {
    return pump->alerts->options.scheduler;
}

static void arm(struct pump *pump, struct hfi_timer *timer, int64_t after_ms) {
    struct hfi_scheduler *scheduler = scheduler_of(pump);
    struct hf_mono at = hfi_mono_after_ms(scheduler->ops->mono(scheduler), after_ms);
    if (scheduler->ops->arm(scheduler, timer, at) != 0)
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "an alert"), NULL);
}

static const struct hfi_alerts_done nothing;

static void changed(struct hfi_alerts *alerts, const struct hfi_alerts_done *more) {
    alerts->options.changed(more, alerts->options.user);
}

static void release(struct slot *slot) {
    struct pump *pump = slot->pump;
    slot->used = false;
    slot->writing = false;
    pump->used--;
    if (!pump->alerts->stopped)
        look(pump);
}

/* ------------------------------------------------------------------ what came of it */

static void write_end(struct slot *slot);

static void end_written(struct hfi_op *op, void *user) {
    struct slot *slot = user;
    struct pump *pump = slot->pump;
    struct hfi_alerts *alerts = pump->alerts;
    const struct hfi_alert *alert = &slot->alert;
    struct hf_mono now = scheduler_of(pump)->ops->mono(scheduler_of(pump));
    if (op->code != 0 && op->code != HF_ESTALE && op->code != HF_ENOENT && now.us < slot->taken_until.us &&
        !alerts->stopped) {
        arm(pump, &slot->retry, END_RETRY_MS);
        return;
    }
    bool sent = slot->end.sent;
    struct hfi_alerts_done more = {
        .sent = sent,
        .failed = !sent,
        .summaries = sent && alert->kind == HF_ALERT_SUMMARY,
        .digests = sent && alert->kind == HF_ALERT_DIGEST,
        .undelivered = op->code == 0 && slot->end.undelivered,
    };
    if (op->code != 0)
        hfi_log(HF_LOG_WARNING, "alert.unwritten", HFI_I("alert", alert->id), HFI_S("sink", pump->name),
                HFI_S("why", hf_strerror(op->code)), NULL);
    else if (slot->end.undelivered)
        hfi_log(HF_LOG_ERROR, "alert.undelivered", HFI_I("alert", alert->id), HFI_I("dead_letter", alert->dead_id),
                HFI_I("job", alert->job_id), HFI_S("sink", pump->name), HFI_S("error_type", slot->error_type),
                HFI_I("tries", alert->tries), NULL);
    release(slot);
    changed(alerts, &more);
}

static void retry_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    write_end(user);
}

static void write_end(struct slot *slot) {
    struct pump *pump = slot->pump;
    struct hfi_op *op = &slot->end.op;
    slot->writing = true;
    op->kind = HFI_OP_ALERT_END;
    op->home = scheduler_of(pump);
    op->done = end_written;
    op->user = slot;
    hfi_writer_submit(pump->alerts->options.writer, op);
}

static void tried(const char *error_type, const char *had, void *user) {
    struct slot *slot = user;
    struct pump *pump = slot->pump;
    struct hf_wall now = scheduler_of(pump)->ops->wall(scheduler_of(pump));
    struct hfi_op_alert_end *end = &slot->end;
    slot->try = NULL;
    memset(end, 0, sizeof *end);
    hfi_text_copy(slot->error_type, sizeof slot->error_type, error_type == NULL ? "" : error_type);
    end->id = slot->alert.id;
    end->epoch = slot->alert.epoch;
    end->now = now;
    end->error_type = slot->error_type;
    if (had)
        hfi_text_copy(slot->had, sizeof slot->had, had);
    end->had = had ? slot->had : NULL;
    end->sent = error_type == NULL;
    if (!end->sent) {
        int64_t wait = hfi_alerts_wait_ms(slot->alert.tries);
        end->next_at_us = hfi_add(now.us, hfi_ms_to_us(wait));
        end->undelivered = hfi_alerts_give_up(slot->alert.tried_us);
        hfi_log(HF_LOG_WARNING, "alert.failed", HFI_I("alert", slot->alert.id), HFI_I("job", slot->alert.job_id),
                HFI_S("sink", pump->name), HFI_S("error_type", error_type), HFI_I("tries", slot->alert.tries),
                HFI_I("again_in_ms", end->undelivered ? -1 : wait), NULL);
    }
    write_end(slot);
}

/* ------------------------------------------------------------------ taking due rows */

static void send(struct pump *pump, const struct hfi_alert *alert, struct hf_mono until) {
    struct slot *slot = pump->slots;
    while (slot->used)
        slot++;
    slot->pump = pump;
    slot->used = true;
    slot->alert = *alert;
    if (alert->cause_count > 0)
        slot->alert.causes = pump->op.causes + alert->first_cause;
    slot->taken_until = until;
    hfi_timer_init(&slot->retry, retry_fired, slot);
    pump->used++;
    if (pump->sink->ops->send(pump->sink, &slot->alert, tried, slot, &slot->try) != 0)
        tried("local.alert", NULL, slot);
    slot->alert.causes = NULL; /* they go with the look */
}

static int64_t lease_ms(const struct pump *pump) {
    return hfi_add(pump->sink->budget_ms, LEASE_MARGIN_MS);
}

static void sleep_until_due(struct pump *pump) {
    struct hf_wall now = scheduler_of(pump)->ops->wall(scheduler_of(pump));
    int64_t in = pump->next_due_us == INT64_MAX ? LOOK_EVERY_MS : hfi_us_to_ms_up(hfi_sub(pump->next_due_us, now.us));
    arm(pump, &pump->timer, in < 1 ? 1 : in < LOOK_EVERY_MS ? in : LOOK_EVERY_MS);
}

static void looked(struct hfi_op *op, void *user) {
    struct pump *pump = user;
    struct hfi_alerts *alerts = pump->alerts;
    pump->out = false;
    if (op->code != 0) {
        hfi_log(HF_LOG_WARNING, "alert.unread", HFI_S("sink", pump->name), HFI_S("why", hf_strerror(op->code)), NULL);
        if (!alerts->stopped)
            arm(pump, &pump->timer, LOOK_EVERY_MS);
        changed(alerts, &nothing);
        return;
    }
    struct hf_mono until = hfi_mono_after_ms(pump->asked, lease_ms(pump));
    size_t count = pump->op.count;
    pump->looked = true;
    pump->next_due_us = pump->op.next_due_us;
    for (size_t i = 0; i < count && !alerts->stopped; i++) /* once stopped they are left to their lease */
        send(pump, &pump->op.rows[i], until);
    hfi_free(pump->op.rows);
    hfi_free(pump->op.causes);
    pump->op.rows = NULL;
    pump->op.causes = NULL;
    if (!alerts->stopped) {
        bool again = pump->again || count == pump->op.limit;
        pump->again = false;
        if (again && pump->used < pump->sink->at_once)
            look(pump);
        else
            sleep_until_due(pump);
    }
    changed(alerts, &nothing);
}

static void look(struct pump *pump) {
    struct hfi_alerts *alerts = pump->alerts;
    struct hfi_op_alerts *op = &pump->op;
    if (pump->out) {
        pump->again = true;
        return;
    }
    if (pump->used >= pump->sink->at_once || alerts->stopped || alerts->node == 0)
        return; /* the next free slot looks */
    memset(op, 0, sizeof *op);
    op->sinks = &pump->name;
    op->sink_count = 1;
    op->node = alerts->node;
    op->lease_ms = lease_ms(pump);
    op->now = scheduler_of(pump)->ops->wall(scheduler_of(pump));
    op->limit = (uint32_t)(pump->sink->at_once - pump->used);
    op->next_due_us = INT64_MAX;
    op->op.kind = HFI_OP_ALERTS;
    op->op.home = scheduler_of(pump);
    op->op.done = looked;
    op->op.user = pump;
    pump->out = true;
    pump->asked = scheduler_of(pump)->ops->mono(scheduler_of(pump));
    hfi_writer_submit(alerts->options.writer, &op->op);
}

static void timer_fired(struct hfi_timer *timer, void *user) {
    (void)timer;
    look(user);
}

/* ------------------------------------------------------------------ its life */

int hfi_alerts_new(const struct hfi_alerts_options *options, struct hfi_alerts **out) {
    struct hfi_alerts *alerts = hfi_alloc(sizeof *alerts);
    struct pump *pumps = alerts == NULL ? NULL : hfi_alloc_array(options->sink_count, sizeof *pumps);
    if (pumps == NULL) {
        hfi_free(alerts);
        return HF_ENOMEM;
    }
    alerts->options = *options;
    alerts->pumps = pumps;
    alerts->count = options->sink_count;
    for (size_t i = 0; i < alerts->count; i++) {
        pumps[i].alerts = alerts;
        pumps[i].sink = options->sinks[i];
        pumps[i].name = options->sinks[i]->name;
        pumps[i].next_due_us = INT64_MAX;
        hfi_timer_init(&pumps[i].timer, timer_fired, &pumps[i]);
    }
    *out = alerts;
    return 0;
}

void hfi_alerts_begin(struct hfi_alerts *alerts, int64_t node) {
    alerts->node = node;
    hfi_alerts_wake(alerts);
}

void hfi_alerts_wake(struct hfi_alerts *alerts) {
    for (size_t i = 0; i < alerts->count; i++) {
        alerts->pumps[i].looked = false;
        look(&alerts->pumps[i]);
    }
}

bool hfi_alerts_idle(const struct hfi_alerts *alerts) {
    for (size_t i = 0; i < alerts->count; i++) {
        const struct pump *pump = &alerts->pumps[i];
        struct hf_wall now = scheduler_of(pump)->ops->wall(scheduler_of(pump));
        if (pump->out || pump->used > 0 || !pump->looked || pump->next_due_us <= now.us)
            return false;
    }
    return true;
}

static void cancel_tries(struct pump *pump) {
    for (size_t i = 0; i < AT_ONCE; i++) {
        struct slot *slot = &pump->slots[i];
        if (!slot->used)
            continue;
        if (slot->try != NULL) {
            pump->sink->ops->cancel(pump->sink, slot->try);
            slot->try = NULL;
            release(slot); /* the row stays, unsent, and is taken again when our claim of it is over */
        } else if (hfi_timer_armed(&slot->retry)) {
            scheduler_of(pump)->ops->disarm(scheduler_of(pump), &slot->retry);
            release(slot);
        }
    }
}

void hfi_alerts_stop(struct hfi_alerts *alerts, bool hurry) {
    alerts->stopped = true;
    for (size_t i = 0; i < alerts->count; i++) {
        struct pump *pump = &alerts->pumps[i];
        scheduler_of(pump)->ops->disarm(scheduler_of(pump), &pump->timer);
        if (hurry)
            cancel_tries(pump);
    }
}

bool hfi_alerts_stopped(const struct hfi_alerts *alerts) {
    if (!alerts->stopped)
        return false;
    for (size_t i = 0; i < alerts->count; i++) {
        if (alerts->pumps[i].out || alerts->pumps[i].used > 0)
            return false;
    }
    return true;
}

void hfi_alerts_free(struct hfi_alerts *alerts) {
    if (alerts == NULL)
        return;
    for (size_t i = 0; i < alerts->count; i++)
        alerts->pumps[i].sink->ops->close(alerts->pumps[i].sink);
    hfi_free(alerts->pumps);
    hfi_free(alerts);
}
