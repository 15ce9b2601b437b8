/* SPDX-License-Identifier: MIT */
/*
 * Alerts of sinks that no live node has, in the memory store. Must never end one of a sink that some node may send to.
 * Under the store's lock.
 */
#include <string.h>

#include "base/text.h"
#include "sim/memory_state.h"

static bool some_node_has(const struct hfi_memory *store, const char *sink) {
    for (size_t i = 0; i < store->nodes.count; i++) {
        const struct hfi_memory_node *node = store->nodes.items[i];
        for (size_t at = 0; at < node->sink_count && !node->gone; at++)
            if (strcmp(node->sinks[at], sink) == 0)
                return true;
    }
    return false;
}

/* The next sink by name with unsent alerts; NULL: there is none. */
static const char *next_sink(const struct hfi_memory *store, const char *after) {
    const char *next = NULL;
    for (size_t i = 0; i < store->alerts.count; i++) {
        const struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->state == HF_ALERT_UNSENT && strcmp(alert->sink, after) > 0 && (!next || strcmp(alert->sink, next) < 0))
            next = alert->sink;
    }
    return next;
}

/* The one that is due first. */
static struct hfi_memory_alert *first_of(const struct hfi_memory *store, const char *sink) {
    struct hfi_memory_alert *first = NULL;
    for (size_t i = 0; i < store->alerts.count; i++) {
        struct hfi_memory_alert *alert = store->alerts.items[i];
        if (alert->state == HF_ALERT_UNSENT && strcmp(alert->sink, sink) == 0 &&
            (!first || alert->next_at_us < first->next_at_us))
            first = alert;
    }
    return first;
}

/* A storm that it leads is over with it: the next death of that cause is told at once, if anybody can be. */
static void end_row(struct hfi_memory *store, struct hfi_memory_alert *alert, struct hf_wall now) {
    for (size_t i = 0; i < store->storms.count; i++) {
        struct hfi_memory_storm *storm = store->storms.items[i];
        if (storm->storm.lead == alert->id)
            hfi_storm_seal(&storm->storm, now.us, 0);
    }
    alert->state = HF_ALERT_UNDELIVERED;
    alert->ended_at_us = now.us;
    hfi_text_copy(alert->last_error, sizeof alert->last_error, HFI_ALERT_NO_SINK);
}

static void end_of(struct hfi_memory *store, struct hfi_op_absent *op, const char *sink, uint32_t *left) {
    struct hfi_absent_sink *ended = &op->ended[op->ended_count];
    struct hfi_memory_alert *alert;
    memset(ended, 0, sizeof *ended);
    hfi_text_copy(ended->name, sizeof ended->name, sink);
    for (; *left > 0 && (alert = first_of(store, sink)) != NULL; --*left) {
        ended->dead_id = ended->count++ == 0 ? alert->dead_id : ended->dead_id;
        end_row(store, alert, op->now);
    }
    op->ended_count += ended->count > 0;
    op->more = *left == 0 || op->ended_count == HFI_ABSENT_SINKS;
}

int hfi_memory_absent(struct hfi_memory *store, struct hfi_op_absent *op) {
    uint32_t left = op->limit;
    op->ended_count = 0;
    op->more = false;
    for (const char *sink = ""; !op->more && (sink = next_sink(store, sink)) != NULL;) {
        if (some_node_has(store, sink))
            continue;
        struct hfi_memory_sink *missed = hfi_memory_sink(store, sink);
        if (!missed)
            return op->ended_count > 0 ? 0 : HF_ENOMEM; /* the others another time */
        hfi_absence_look(&missed->absence, op->now.us);
        if (hfi_absence_over(&missed->absence))
            end_of(store, op, missed->name, &left);
    }
    return 0;
}
