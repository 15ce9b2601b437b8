/* SPDX-License-Identifier: MIT */
/*
 * The words and numbers of operations by other hands, the same for every store. Must never change a state itself: that
 * is hfi_transition's. Pure; any thread.
 */
#include "jobs/hands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "holdfast/guard.h"
#include "jobs/forward.h"

static void begin(struct hfi_hand *hand, enum hfi_event_kind kind, int64_t node, struct hf_wall now) {
    memset(hand, 0, sizeof *hand);
    hand->event.kind = kind;
    hand->event.node = node;
    hand->event.now = now;
}

uint64_t hfi_hand_random(const struct hfi_job *job) {
    uint64_t x = (uint64_t)job->id * 0x9e3779b97f4a7c15u + (uint64_t)job->epoch;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void hfi_hand_claim(struct hfi_hand *hand, int64_t node, struct hf_wall now) {
    begin(hand, HFI_EVENT_CLAIMED, node, now);
}

void hfi_hand_start(struct hfi_hand *hand, int64_t node, struct hf_wall now, const struct hfi_admitted *lane) {
    begin(hand, HFI_EVENT_STARTED, node, now);
    hand->rules.policy = lane ? lane->policy : NULL;
    hand->rules.repeatable = !lane || !lane->not_repeatable;
    hand->rules.runs_code = lane && lane->runs_code;
    hand->rules.alone = lane && lane->alone;
}

bool hfi_probe_suits(const struct hfi_job *job, const struct hfi_rules *rules) {
    return rules->repeatable && hfi_executions_left(job, rules) >= 2;
}

void hfi_hand_lapse(struct hfi_hand *hand, const struct hfi_op_sweep *op) {
    begin(hand, HFI_EVENT_LAPSED, op->by, op->now);
    hand->event.error_type = "lease.lapsed";
    hand->event.message = op->only != 0 ? "its node knows nothing of it"
                          : op->crash   ? "its node died"
                                        : "its node was not heard of for a whole lease";
    hand->event.crash = op->crash;
    hand->event.may_have_sent = true; /* nobody is left to prove the contrary */
}

void hfi_hand_expire(struct hfi_hand *hand, const struct hfi_op_expire *op) {
    begin(hand, HFI_EVENT_EXPIRED, 0, op->now);
}

void hfi_hand_quarantine(struct hfi_hand *hand, const struct hfi_op_quarantine *op) {
    begin(hand, HFI_EVENT_QUARANTINED, op->node, op->now);
    hand->event.error_type = op->error_type;
    hand->event.message = op->message;
}

void hfi_hand_cancel(struct hfi_hand *hand, const struct hfi_op_cancel *op, const struct hfi_job *job) {
    bool runs = job->state == HF_JOB_RUNNING && job->started_at_us != 0; /* else it is only reserved: nobody has to hear of it */
    begin(hand, runs ? HFI_EVENT_CANCEL_ASKED : HFI_EVENT_CANCELLED, 0, op->now);
    hand->event.actor = op->actor;
    hand->event.message = op->reason;
}

void hfi_hand_requeue(struct hfi_hand *hand, const struct hfi_op_requeue *op) {
    begin(hand, HFI_EVENT_REQUEUED, 0, op->now);
    hand->event.actor = op->actor;
    hand->event.message = op->reason;
}

char *hfi_fresh_key(char *key, const char *uuid, int64_t id, int64_t epoch) {
    snprintf(key, HFI_KEY_MAX + 1, "%s-%" PRId64 ".%" PRId64, uuid, id, epoch);
    return key;
}

int hfi_redrive_job(const struct hfi_op_redrive *op, const struct hfi_job *snapshot, bool cut, uint32_t payload_max,
                    struct hfi_job *job) {
    const struct hf_dead_action *action = op->action;
    if (action->payload && !action->new_key)
        return HF_EINVAL; /* the peer would take it for a repetition of the old one */
    if (action->payload && action->payload_length > payload_max)
        return HF_ETOOBIG;
    if (cut && !action->payload)
        return HF_ESTATE; /* half a message is another message */
    *job = (struct hfi_job){
        .state = HF_JOB_PENDING,
        .priority = snapshot->priority,
        .run_at_us = op->now.us,
        .created_at_us = op->now.us,
        .max_executions = snapshot->max_executions,
        .execution_timeout_ms = snapshot->execution_timeout_ms,
        .policy = snapshot->policy,
        .root_id = snapshot->root_id,
        .parent_id = snapshot->id != 0 ? snapshot->id : -op->dead_id, /* so that the letter hears of its end */
        .type = snapshot->type,
        .queue = snapshot->queue,
        .downstream = snapshot->downstream,
        .breaker_key = action->payload ? snapshot->downstream : snapshot->breaker_key, /* it may call another host now */
        .limit_key = snapshot->limit_key,
        .unique_key = snapshot->unique_key,
        .idempotency_key = snapshot->idempotency_key,
        .source = hfi_forward_is(snapshot) ? snapshot->source : "", /* or its death would be forwarded */
        .source_message_id = hfi_forward_is(snapshot) ? snapshot->source_message_id : "",
        .correlation_id = snapshot->correlation_id,
        .trace_context = snapshot->trace_context,
        .tags = snapshot->tags,
        .content_type = snapshot->content_type,
        .reason = "redrive",
        .error_class = "",
        .error_type = "",
        .error_message = "",
        .cancel_by = "",
        .cancel_reason = "",
        .payload = action->payload ? action->payload : snapshot->payload,
        .payload_length = action->payload ? action->payload_length : snapshot->payload_length,
    };
    return 0;
}

enum hfi_replace hfi_replace_how(const struct hfi_job *holder) {
    if (holder->state == HF_JOB_PENDING || holder->state == HF_JOB_WAITING)
        return HFI_REPLACE_BECOMES;
    return holder->state == HF_JOB_RUNNING ? HFI_REPLACE_YIELDS : HFI_REPLACE_KEEPS;
}

void hfi_replace_job(const struct hfi_job *holder, const struct hfi_job *wish, const char *uuid, char *key,
                     struct hfi_job *job) {
    *job = *wish;
    job->id = holder->id;
    job->state = holder->state;
    if (holder->state == HF_JOB_WAITING)
        job->reason = holder->reason; /* for the jobs it waited for before */
    job->epoch = holder->epoch;
    job->root_id = holder->root_id;
    job->parent_id = holder->parent_id;
    job->deaths = holder->deaths;
    job->created_at_us = holder->created_at_us;
    if (*wish->idempotency_key)
        return;
    job->idempotency_key = holder->idempotency_key;
    if (holder->executions > 0)
        job->idempotency_key = hfi_fresh_key(key, uuid, holder->id, holder->epoch);
}

char *hfi_detail_copy(const char *detail, bool keep) {
    size_t length = keep && detail ? strlen(detail) : 0;
    size_t room = (length < HFI_DETAIL_MAX ? length : HFI_DETAIL_MAX) + 1;
    char *copy = hfi_alloc(room);
    if (copy)
        hfi_text_clean(copy, room, detail, length);
    return copy;
}

void hfi_dead_note_fill(struct hfi_dead_note *note, int64_t dead_id, const struct hfi_change *change) {
    memset(note, 0, sizeof *note);
    note->dead_id = dead_id;
    note->job_id = change->job.id;
    note->executions = change->job.executions;
    note->death_class = change->death.death_class;
    hfi_text_copy(note->type, sizeof note->type, change->job.type);
    hfi_text_copy(note->error_type, sizeof note->error_type, change->death.error_type);
    hfi_text_copy(note->correlation_id, sizeof note->correlation_id, change->job.correlation_id);
}

enum hf_alert_kind hfi_alert_kind_of(int64_t id, int64_t lead, int64_t digest) {
    return digest == id ? HF_ALERT_DIGEST : lead == id ? HF_ALERT_SUMMARY : HF_ALERT_ONE;
}

void hfi_alert_fill(struct hfi_alert *alert, const struct hfi_job *job, const struct hfi_death *death,
                    struct hf_wall now) {
    memset(alert, 0, sizeof *alert);
    alert->job_id = job->id;
    alert->dead_at_us = now.us;
    alert->death_class = death->death_class;
    alert->deaths = 1;
    alert->executions = job->executions;
    alert->death_no = death->death_no;
    alert->quarantined = death->quarantined;
    hfi_text_copy(alert->type, sizeof alert->type, job->type);
    hfi_text_copy(alert->queue, sizeof alert->queue, job->queue);
    hfi_text_copy(alert->downstream, sizeof alert->downstream, job->downstream);
    hfi_text_copy(alert->error_type, sizeof alert->error_type, death->error_type);
    hfi_text_copy(alert->correlation_id, sizeof alert->correlation_id, job->correlation_id);
    hfi_text_copy(alert->message, sizeof alert->message, death->message);
}

uint32_t hfi_share_of(const struct hfi_op_share *op, uint64_t others, uint32_t nodes) {
    uint64_t free = others < op->max ? op->max - others : 0;
    uint64_t fair = op->whole ? op->max : (op->max + (uint64_t)nodes - 1) / nodes;
    uint64_t held = free < fair ? free : fair;
    if (op->whole && others > 0)
        held = 0;
    held = held < op->want ? held : op->want;
    return held > op->keep ? (uint32_t)held : op->keep;
}

bool hfi_downstream_is_current(const struct hfi_downstream_state *row, const struct hfi_downstream_state *wish) {
    return wish->version == -1 || wish->version == row->version || row->version == 0;
}

bool hfi_downstream_is_idle(const struct hfi_downstream_state *row, int64_t written_us, int64_t before_us) {
    bool forced = row->forced != 0 && (row->forced_until_us == 0 || row->forced_until_us >= before_us);
    return row->phase == HF_BREAKER_CLOSED && !forced && row->gate_until_us < before_us && written_us < before_us;
}

void hfi_downstream_merge(struct hfi_downstream_state *row, const struct hfi_downstream_state *wish, unsigned set) {
    if (set & HFI_DOWNSTREAM_FORCED) {
        row->forced = wish->forced;
        row->forced_until_us = wish->forced_until_us;
    }
    if (set & HFI_DOWNSTREAM_PHASE) {
        row->phase = wish->phase;
        row->open_until_us = wish->open_until_us;
        row->gate_until_us = wish->gate_until_us;
        row->unhealthy_since_us = wish->unhealthy_since_us;
        row->trips = wish->trips;
        row->ramp_from_us = wish->ramp_from_us;
    }
    if (set & HFI_DOWNSTREAM_FORCED || row->forced == 0) /* why a person forced it stands over why the breaker opened */
        hfi_text_copy(row->reason, sizeof row->reason, wish->reason);
    row->version = (wish->version > row->version ? wish->version : row->version) + 1;
}

bool hfi_downstream_keeps(const struct hfi_downstream_state *row, struct hf_wall now) {
    bool forced = row->forced != 0 && (row->forced_until_us == 0 || row->forced_until_us > now.us);
    return forced || row->phase == HF_BREAKER_OPEN || row->phase == HF_BREAKER_HALF_OPEN || row->gate_until_us > now.us;
}

int64_t hfi_kept_since(const struct hfi_op_prune *op, int state) {
    switch (state) {
    case HF_JOB_SUCCEEDED:
        return op->succeeded_before;
    case HF_JOB_CANCELLED:
        return op->cancelled_before;
    case HF_JOB_DEAD:
        return op->dead_before;
    case HF_JOB_QUARANTINED:
        return op->quarantined_before;
    default:
        return 0;
    }
}

bool hfi_prune_is_others(const struct hfi_prune_turn *turn, const struct hfi_op_prune *op) {
    return turn->node != op->node && turn->until_us > op->now.us && hfi_sub(turn->until_us, op->now.us) <= HFI_PRUNE_TURN_US;
}

struct hfi_prune_turn hfi_prune_turn_after(const struct hfi_op_prune *op) {
    if (!op->more)
        return (struct hfi_prune_turn){0};
    return (struct hfi_prune_turn){.node = op->node, .until_us = hfi_add(op->now.us, HFI_PRUNE_TURN_US)};
}
