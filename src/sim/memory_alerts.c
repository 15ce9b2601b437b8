/* SPDX-License-Identifier: MIT */
/*
 * Alerts of the memory store: rows that deaths leave, by themselves or with another one of their storm; taken at their
 * sink's pace, ended under their epoch. Must never leave a row that no message tells of. Under the store's lock.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/views.h"
#include "sim/memory_state.h"

static int64_t alert_id(const void *item) {
    return ((const struct hfi_memory_alert *)item)->id;
}

static struct hfi_memory_alert *find_alert(const struct hfi_memory *store, int64_t id) {
    size_t at = hfi_array_after(&store->alerts, id - 1, alert_id);
    struct hfi_memory_alert *alert = at < store->alerts.count ? store->alerts.items[at] : NULL;
    return id != 0 && alert && alert->id == id ? alert : NULL;
}

static struct hfi_memory_sink *find_sink(const struct hfi_memory *store, const char *name) {
    for (size_t i = 0; i < store->sinks.count; i++) {
        struct hfi_memory_sink *sink = store->sinks.items[i];
        if (strcmp(sink->name, name) == 0)
            return sink;
    }
    return NULL;
}

struct hfi_memory_sink *hfi_memory_sink(struct hfi_memory *store, const char *name) {
    struct hfi_memory_sink *sink = find_sink(store, name);
    if (sink)
        return sink;
    if (!(sink = hfi_alloc(sizeof *sink)) || hfi_array_reserve(&store->sinks, 1) != 0) {
        hfi_free(sink);
        return NULL;
    }
    hfi_text_copy(sink->name, sizeof sink->name, name);
    hfi_array_append(&store->sinks, sink);
    return sink;
}

int hfi_memory_sink_rules(struct hfi_memory *store, const struct hfi_sink_rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct hfi_memory_sink *sink = hfi_memory_sink(store, rules[i].name);
        if (!sink)
            return HF_ENOMEM;
        sink->collapse_us = rules[i].collapse_us;
        memset(&sink->absence, 0, sizeof sink->absence);
    }
    return 0;
}

/* ------------------------------------------------------------------ deaths */

/* The storm of that cause, made if need be: one without a window changes nothing. */
static struct hfi_memory_storm *storm_of(struct hfi_memory *store, const struct hfi_memory_sink *sink,
                                         uint64_t fingerprint) {
    for (size_t i = 0; i < store->storms.count; i++) {
        struct hfi_memory_storm *storm = store->storms.items[i];
        if (storm->fingerprint == fingerprint && strcmp(storm->sink, sink->name) == 0)
            return storm;
    }
    struct hfi_memory_storm *storm = hfi_alloc(sizeof *storm);
    if (!storm || hfi_array_reserve(&store->storms, 1) != 0) {
        hfi_free(storm);
        return NULL;
    }
    hfi_text_copy(storm->sink, sizeof storm->sink, sink->name);
    storm->fingerprint = fingerprint;
    hfi_array_append(&store->storms, storm);
    return storm;
}

static struct hfi_memory_alert *stage_alert(struct hfi_memory *store, const struct hfi_change *change,
                                            const char *name) {
    struct hfi_memory_sink *sink = find_sink(store, name);
    struct hfi_memory_alert *alert = hfi_alloc(sizeof *alert);
    if (!alert)
        return NULL;
    if (sink && sink->collapse_us > 0) {
        alert->window_us = sink->collapse_us;
        alert->storm = storm_of(store, sink, change->death.fingerprint);
        if (!alert->storm) {
            hfi_free(alert);
            return NULL;
        }
    }
    hfi_text_copy(alert->sink, sizeof alert->sink, name);
    alert->next_at_us = change->job.finished_at_us;
    return alert;
}

int hfi_memory_stage_alerts(struct hfi_memory *store, const struct hfi_change *change, const char *const *sinks,
                            size_t count, struct hfi_staged *staged) {
    if (!staged->dead || count == 0)
        return 0;
    staged->alerts = hfi_alloc_array(count, sizeof *staged->alerts);
    if (!staged->alerts || hfi_array_reserve(&store->alerts, count) != 0)
        goto failed;
    for (; staged->alert_count < count; staged->alert_count++) {
        struct hfi_memory_alert *alert = stage_alert(store, change, sinks[staged->alert_count]);
        if (!alert)
            goto failed;
        staged->alerts[staged->alert_count] = alert;
    }
    return 0;
failed:
    hfi_memory_drop(staged);
    return HF_ENOMEM;
}

void hfi_memory_link_alert(struct hfi_memory *store, struct hfi_memory_alert *alert, int64_t dead_id) {
    struct hfi_storm *storm = alert->storm ? &alert->storm->storm : NULL;
    int64_t now_us = alert->next_at_us;
    alert->id = ++store->next_alert;
    alert->dead_id = dead_id;
    alert->storm = NULL; /* it may go before the row does */
    hfi_array_append(&store->alerts, alert);
    if (!storm)
        return;
    enum hfi_storm_place place = hfi_storm_arrives(storm, now_us, alert->window_us);
    struct hfi_memory_alert *lead = place == HFI_STORM_JOINS ? find_alert(store, storm->lead) : NULL;
    if (lead && lead->state == HF_ALERT_UNSENT && lead->tries == 0) {
        lead->others++;
        alert->state = HF_ALERT_ATTACHED;
        alert->lead = lead->id;
        return;
    }
    if (place == HFI_STORM_JOINS) {
        storm->lead = 0;
        place = hfi_storm_arrives(storm, now_us, alert->window_us);
    }
    if (place == HFI_STORM_LEADS) {
        storm->lead = alert->lead = alert->id;
        alert->next_at_us = storm->until_us;
    }
}

/* ------------------------------------------------------------------ messages */

static void seal(struct hfi_memory *store, int64_t lead, struct hf_wall now, int64_t collapse_us) {
    for (size_t i = 0; i < store->storms.count; i++) {
        struct hfi_memory_storm *storm = store->storms.items[i];
        if (storm->storm.lead == lead)
            hfi_storm_seal(&storm->storm, now.us, collapse_us);
    }
}

/* The row of `sink` that is due next, after the one given: earliest first, then by id. NULL: none is due. */
static struct hfi_memory_alert *next_due(const struct hfi_memory *store, const char *sink, struct hf_wall now, bool fresh) {
    struct hfi_memory_alert *best = NULL;
    for (size_t i = 0; i < store->alerts.count; i++) {
        struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->state != HF_ALERT_UNSENT || alert->next_at_us > now.us || strcmp(alert->sink, sink) != 0 ||
            (fresh && alert->tries > 0))
            continue;
        if (!best || alert->next_at_us < best->next_at_us)
            best = alert;
    }
    return best;
}

static void make_digest(struct hfi_memory *store, const struct hfi_memory_sink *sink, struct hf_wall now) {
    struct hfi_memory_alert *first = next_due(store, sink->name, now, true), *second;
    first->state = HF_ALERT_ATTACHED; /* while the others are looked for */
    second = next_due(store, sink->name, now, true);
    first->state = HF_ALERT_UNSENT;
    if (!second)
        return;
    seal(store, first->id, now, sink->collapse_us);
    first->digest = first->id;
    first->state = HF_ALERT_ATTACHED;
    for (size_t count = 1; count < HFI_STORM_DIGEST_MAX && second; count++) {
        seal(store, second->id, now, sink->collapse_us);
        second->digest = first->id;
        second->state = HF_ALERT_ATTACHED;
        second = next_due(store, sink->name, now, true);
    }
    first->state = HF_ALERT_UNSENT;
    first->next_at_us = 0;
}

static int add_cause(struct hfi_memory *store, struct hfi_op_alerts *op, const struct hfi_memory_alert *alert) {
    const struct hfi_memory_dead *dead = hfi_memory_find_dead(store, alert->dead_id);
    struct hfi_alert_cause *causes = hfi_realloc(op->causes, (op->cause_count + 1) * sizeof *causes);
    if (!causes)
        return HF_ENOMEM;
    op->causes = causes;
    struct hfi_alert_cause *cause = &causes[op->cause_count++];
    memset(cause, 0, sizeof *cause);
    cause->deaths = alert->others + 1;
    cause->dead_id = alert->dead_id;
    hfi_text_copy(cause->type, sizeof cause->type, dead->job->type);
    hfi_text_copy(cause->error_type, sizeof cause->error_type, dead->death.error_type);
    hfi_text_copy(cause->downstream, sizeof cause->downstream, dead->job->downstream);
    return 0;
}

static int show(struct hfi_memory *store, struct hfi_op_alerts *op, const struct hfi_memory_alert *row,
                struct hfi_alert *alert) {
    const struct hfi_memory_dead *dead = hfi_memory_find_dead(store, row->dead_id);
    int code = 0;
    hfi_alert_fill(alert, dead->job, &dead->death, (struct hf_wall){dead->dead_at_us});
    alert->id = row->id;
    alert->dead_id = row->dead_id;
    alert->epoch = row->epoch;
    alert->tries = row->tries;
    alert->tried_us = row->tried_us;
    hfi_text_copy(alert->had, sizeof alert->had, row->had);
    alert->kind = hfi_alert_kind_of(row->id, row->lead, row->digest);
    alert->deaths = row->others + 1;
    hfi_text_copy(alert->sink, sizeof alert->sink, row->sink);
    if (alert->kind != HF_ALERT_DIGEST)
        return 0;
    alert->deaths = 0;
    alert->first_cause = op->cause_count;
    for (size_t i = 0; i < store->alerts.count && code == 0; i++) {
        const struct hfi_memory_alert *other = store->alerts.items[i];
        if (other->digest != row->id)
            continue;
        alert->deaths += other->others + 1;
        code = add_cause(store, op, other);
    }
    alert->cause_count = op->cause_count - alert->first_cause;
    return code;
}

static int take(struct hfi_memory *store, struct hfi_op_alerts *op, struct hfi_memory_alert *row, int64_t collapse_us) {
    int code = 0;
    if (row->tries > 0)
        row->tried_us = hfi_add(row->tried_us, hfi_alerts_piece_us(row->tries, row->last_try_us, op->now.us, op->lease_ms));
    row->last_try_us = op->now.us;
    row->tries++;
    row->epoch++;
    if (hfi_alert_kind_of(row->id, row->lead, row->digest) == HF_ALERT_SUMMARY && row->tries == 1)
        seal(store, row->id, op->now, collapse_us);
    code = show(store, op, row, &op->rows[op->count]);
    row->next_at_us = hfi_add(op->now.us, hfi_ms_to_us(op->lease_ms));
    op->count += code == 0;
    return code;
}

static int take_of(struct hfi_memory *store, struct hfi_op_alerts *op, const char *name) {
    struct hfi_memory_sink *sink = find_sink(store, name);
    bool paced = sink && sink->collapse_us > 0;
    size_t room = op->limit;
    int code = 0;
    if (paced && hfi_storm_digests(&sink->pace, op->now.us, next_due(store, name, op->now, true) != NULL))
        make_digest(store, sink, op->now);
    if (paced)
        room = hfi_storm_room(&sink->pace, op->now.us);
    for (; room > 0 && op->count < op->limit && code == 0; room--) {
        struct hfi_memory_alert *row = next_due(store, name, op->now, false);
        if (!row)
            break;
        code = take(store, op, row, paced ? sink->collapse_us : 0);
        if (paced)
            hfi_storm_spend(&sink->pace, op->now.us);
    }
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < store->alerts.count; i++) {
        const struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->state != HF_ALERT_UNSENT || strcmp(alert->sink, name) != 0)
            continue;
        next = alert->next_at_us < next ? alert->next_at_us : next;
    }
    int64_t from = paced && next != INT64_MAX ? hfi_storm_room_at(&sink->pace, op->now.us) : next;
    next = next < from ? from : next;
    op->next_due_us = next < op->next_due_us ? next : op->next_due_us;
    return code;
}

int hfi_memory_alerts(struct hfi_memory *store, struct hfi_op_alerts *op) {
    int code = 0;
    op->count = op->cause_count = 0;
    op->causes = NULL;
    op->next_due_us = INT64_MAX;
    op->rows = hfi_alloc_array(op->limit, sizeof *op->rows);
    if (!op->rows)
        return HF_ENOMEM;
    for (size_t i = 0; i < op->sink_count && code == 0; i++)
        code = take_of(store, op, op->sinks[i]);
    if (code != 0) {
        hfi_free(op->rows);
        hfi_free(op->causes);
        op->rows = NULL;
        op->causes = NULL;
        op->count = op->cause_count = 0;
    }
    return code;
}

int hfi_memory_alert_end(struct hfi_memory *store, struct hfi_op_alert_end *op) {
    struct hfi_memory_alert *alert = find_alert(store, op->id);
    if (!alert || alert->epoch != op->epoch || alert->state != HF_ALERT_UNSENT)
        return HF_ESTALE;
    alert->state = op->sent ? HF_ALERT_SENT : op->undelivered ? HF_ALERT_UNDELIVERED : HF_ALERT_UNSENT;
    alert->next_at_us = op->next_at_us;
    alert->ended_at_us = alert->state != HF_ALERT_UNSENT ? op->now.us : 0;
    hfi_text_copy(alert->last_error, sizeof alert->last_error, op->error_type);
    if (op->had)
        hfi_text_copy(alert->had, sizeof alert->had, op->had);
    return 0;
}

/* ------------------------------------------------------------------ what became of a row */

/* The message that it goes out with. NULL: that is gone, so it has ended. */
static const struct hfi_memory_alert *message_of(const struct hfi_memory *store, const struct hfi_memory_alert *alert) {
    for (int i = 0; i < 2 && alert && alert->state == HF_ALERT_ATTACHED; i++)
        alert = find_alert(store, alert->digest != 0 ? alert->digest : alert->lead);
    return alert;
}

bool hfi_memory_alerted(const struct hfi_memory *store, int64_t dead_id) {
    for (size_t i = 0; i < store->alerts.count; i++) {
        const struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->dead_id != dead_id)
            continue;
        const struct hfi_memory_alert *message = message_of(store, alert);
        if (message && message->state == HF_ALERT_UNSENT)
            return false;
    }
    return true;
}

static bool fits(const struct hfi_memory_alert *alert, const struct hf_alert_filter *filter) {
    return (filter->after_id <= 0 || alert->id < filter->after_id) &&
           (filter->state < 0 || alert->state == filter->state) &&
           (!filter->sink || strcmp(alert->sink, filter->sink) == 0) &&
           (filter->dead_id == 0 || alert->dead_id == filter->dead_id);
}

static void fill(struct hfi_memory *store, const struct hfi_memory_alert *alert, struct hf_alert_view *view) {
    const struct hfi_memory_dead *dead = hfi_memory_find_dead(store, alert->dead_id);
    const struct hfi_memory_alert *message = message_of(store, alert);
    const struct hfi_memory_alert *lead = alert->digest == 0 ? find_alert(store, alert->lead) : NULL;
    *view = (struct hf_alert_view){
        .state = alert->state,
        .kind = (int32_t)hfi_alert_kind_of(alert->id, alert->lead, alert->digest),
        .message_state = message ? message->state : HF_ALERT_GONE,
        .id = alert->id,
        .dead_id = alert->dead_id,
        .job_id = dead->job->id,
        .message_id = alert->id,
        .deaths = alert->others + 1,
        .tries = alert->tries,
        .next_at_us = alert->state == HF_ALERT_UNSENT ? alert->next_at_us : 0,
        .ended_at_us = alert->ended_at_us,
        .dead_at_us = dead->dead_at_us,
        .sink = alert->sink,
        .type = dead->job->type,
        .error_type = dead->death.error_type,
        .last_error = alert->last_error,
    };
    if (alert->state == HF_ALERT_ATTACHED)
        view->message_id = alert->digest != 0 ? alert->digest : lead && lead->digest != 0 ? lead->digest : alert->lead;
}

int hfi_memory_list_alerts(struct hfi_store *self, const struct hf_alert_filter *filter, struct hf_alert_list **list,
                           struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    uint32_t limit = hfi_page_limit(filter->limit);
    int64_t last = 0;
    int code = hfi_alert_list_new(list);
    pthread_mutex_lock(&store->lock);
    for (size_t at = store->alerts.count; at > 0 && code == 0; at--) {
        const struct hfi_memory_alert *alert = store->alerts.items[at - 1];
        struct hf_alert_view view;
        if (!fits(alert, filter))
            continue;
        if (hf_alert_list_count(*list) == limit) {
            hfi_alert_list_set_next(*list, last);
            break;
        }
        fill(store, alert, &view);
        code = hfi_alert_list_add(*list, &view);
        last = alert->id;
    }
    pthread_mutex_unlock(&store->lock);
    if (code == 0)
        return 0;
    hf_alert_list_free(*list);
    *list = NULL;
    return hfi_fail(error, code, "list of alerts", NULL, NULL);
}
