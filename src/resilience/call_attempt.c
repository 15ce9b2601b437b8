/* SPDX-License-Identifier: MIT */
/*
 * What a call has on the wire: starts attempts, watches their own limits, takes them off again, and gives back what
 * they held. Must never decide what comes after an attempt, nor leave a permit or a place behind. On the scheduler's
 * thread.
 */
#include <stdio.h>
#include <string.h>

#include "resilience/call_internal.h"
#include "resilience/classify.h"

#define TIMED_OUT 28 /* libcurl's own limit passed */

/* The limit that an attempt has reached, NULL: none. */
static const char *limit_of(const struct hfi_call_attempt *attempt, bool connected, struct hf_mono now) {
    if (!connected && now.us >= attempt->connect_deadline.us)
        return "timeout.connect";
    if (now.us >= attempt->deadline.us)
        return now.us >= attempt->call->deadline.us ? "timeout.total" : "timeout.attempt";
    return NULL;
}

/* On a busy machine libcurl's limit, which comes later, may be noticed before ours: it is ours that has passed. */
static const char *passed_unnoticed(const struct hfi_call_attempt *attempt, const struct hfi_attempt_facts *facts) {
    if (facts->native != TIMED_OUT || facts->error_type)
        return NULL;
    bool connected = attempt->connected || facts->hops > 0 || facts->stage >= HF_STAGE_SEND;
    return limit_of(attempt, connected, hfi_call_now(attempt->call));
}

static void end_by_limit(struct hfi_call_attempt *attempt, const char *which, enum hf_sent sent, enum hf_stage stage,
                         const struct hfi_phases *phases) {
    struct hfi_call *call = attempt->call;
    struct hf_outcome outcome;
    hfi_classify_timeout(which, sent, stage, &outcome);
    outcome.phases = *phases;
    hfi_rules_judge(&call->rules, &call->target->rules, call->method, NULL, &outcome);
    hfi_call_over(attempt, &outcome, NULL);
}

void hfi_call_expire(struct hfi_call_attempt *attempt, const char *which) {
    struct hfi_phases phases;
    enum hf_sent sent;
    enum hf_stage stage = hfi_call_cut(attempt, &phases, &sent);
    end_by_limit(attempt, which, sent, stage, &phases);
}

static void on_facts(const struct hfi_attempt_facts *facts, void *user) {
    struct hfi_call_attempt *attempt = user;
    struct hfi_call *call = attempt->call;
    struct hfi_scheduler *scheduler = call->caller->scheduler;
    const struct hf_policy_options *policy = &call->policy->options;
    struct hf_outcome outcome;
    call->attempts += facts->hops; /* each redirect followed was a request more */
    const char *which = passed_unnoticed(attempt, facts);
    if (which) {
        end_by_limit(attempt, which, facts->sent, facts->stage, &facts->phases);
        return;
    }
    struct hf_wall wall = {0}; /* is looked at for the date of a Retry-After only */
    if (facts->retry_after)
        wall = scheduler->ops->wall(scheduler);
    hfi_classify_attempt(facts, wall, policy->breaker_429_failure, &outcome);
    hfi_rules_judge(&call->rules, &call->target->rules, call->method, facts, &outcome); /* told once (F8) */
    if (outcome.kind == HF_OUTCOME_REJECTED) { /* the transport had no room: it reached nothing */
        call->attempts--;
        call->hedges -= attempt->hedge;
    }
    hfi_call_over(attempt, &outcome, facts);
}

void hfi_call_short(int rc, struct hf_outcome *outcome) {
    struct hfi_attempt_facts facts = {.error_type = rc == HF_EINVAL ? "local.url" : "local.memory",
                                      .message = hf_strerror(rc),
                                      .stage = HF_STAGE_LOCAL,
                                      .sent = HF_SENT_NO,
                                      .phases = {-1, -1, -1, -1, -1}};
    hfi_classify_attempt(&facts, (struct hf_wall){0}, false, outcome);
}

static struct hfi_call_attempt *free_slot(struct hfi_call *call) {
    struct hfi_call_attempt *attempt = call->slots;
    while (attempt->wire)
        attempt++; /* there are as many as a try may have */
    return attempt;
}

int hfi_call_send(struct hfi_call *call, const struct hf_permit *permit, bool hedge, struct hf_mono now) {
    const struct hfi_target *target = call->target;
    const struct hf_policy *policy = call->policy;
    struct hfi_transport *transport = call->caller->transport;
    struct hfi_call_attempt *attempt = free_slot(call);
    *attempt = (struct hfi_call_attempt){.call = call, .permit = *permit, .hedge = hedge};
    attempt->connect_deadline = hfi_mono_after_ms(now, policy->options.connect_timeout_ms);
    attempt->deadline = hfi_earlier(hfi_mono_after_ms(now, call->attempt_ms), call->deadline);
    if (target->send_remaining_time)
        snprintf(call->remaining, sizeof call->remaining, "%lld", (long long)(call->deadline.us - now.us) / 1000);
    if (target->send_attempt)
        snprintf(call->number, sizeof call->number, "%u", call->attempts + 1);
    struct hfi_attempt_spec spec = {
        .now = now,
        .url = call->url,
        .method = call->method,
        .headers = call->headers,
        .header_count = call->header_count,
        .body = call->body,
        .body_length = call->body_length,
        .reach = &target->reach,
        .connect_timeout_ms = policy->options.connect_timeout_ms,
        .backstop_ms = policy->backstop_ms,
        .response_limit = target->response_limit,
        .header_limit = target->header_limit,
        .compressed = target->compressed,
        .deny_private = target->deny_private,
        .signing = target->signing,
        .message_id = call->message_id,
        .repeatable = false, /* trying again is counted and decided here, never below */
        .fresh_connection = call->again.fresh && !hedge,
        .faults = hfi_downstream_faults(target->downstream),
        .downstream = target->downstream->name,
        .per_host = target->per_host,
    };
    int rc = transport->ops->start(transport, &spec, on_facts, attempt, &attempt->wire);
    if (rc) {
        attempt->wire = NULL;
        return rc;
    }
    call->attempts++;
    call->hedges += hedge;
    call->live++;
    return 0;
}

void hfi_call_release(struct hfi_call_attempt *attempt, const struct hf_outcome *outcome, struct hf_mono now) {
    struct hfi_call *call = attempt->call;
    struct hf_downstream *downstream = call->target->downstream;
    attempt->wire = NULL;
    call->live--;
    if (outcome->sent > call->sent)
        call->sent = outcome->sent;
    /* What was refused here, without touching the wire, is no sample (2.1). */
    if (outcome->stage == HF_STAGE_LOCAL && outcome->sent == HF_SENT_NO && outcome->verdict == HF_VERDICT_NEUTRAL) {
        hfi_downstream_give_back(downstream, now, &attempt->permit);
        return;
    }
    hfi_downstream_record(downstream, outcome);
    if (call->own_limit && outcome->gate_limit) { /* who made the request keeps away, not everybody */
        struct hf_outcome without = *outcome;
        without.gate_limit = false;
        hfi_downstream_leave(downstream, now, &attempt->permit, &without);
    } else {
        hfi_downstream_leave(downstream, now, &attempt->permit, outcome);
    }
}

enum hf_stage hfi_call_cut(struct hfi_call_attempt *attempt, struct hfi_phases *phases, enum hf_sent *sent) {
    struct hfi_call *call = attempt->call;
    struct hfi_transport *transport = call->caller->transport;
    enum hf_stage stage;
    call->attempts += transport->ops->hops(transport, attempt->wire);
    *sent = transport->ops->cancel(transport, attempt->wire, &stage, phases);
    if (*sent > call->sent)
        call->sent = *sent;
    return stage;
}

void hfi_call_cut_all(struct hfi_call *call, struct hf_outcome *outcome, struct hf_mono now) {
    bool first = true;
    for (uint32_t i = 0; i < call->slot_count; i++) {
        struct hfi_call_attempt *attempt = &call->slots[i];
        struct hf_outcome one = *outcome;
        if (!attempt->wire)
            continue;
        one.stage = hfi_call_cut(attempt, &one.phases, &one.sent);
        hfi_call_release(attempt, &one, now);
        if (first) {
            outcome->stage = one.stage;
            outcome->phases = one.phases;
        }
        first = false;
    }
}

const char *hfi_call_limit(struct hfi_call_attempt *attempt, struct hf_mono now) {
    struct hfi_transport *transport = attempt->call->caller->transport;
    if (!attempt->connected && now.us >= attempt->connect_deadline.us)
        attempt->connected = transport->ops->stage(transport, attempt->wire) >= HF_STAGE_SEND;
    return limit_of(attempt, attempt->connected, now);
}

struct hf_mono hfi_call_next_look(const struct hfi_call *call) {
    struct hf_mono at = call->deadline;
    for (uint32_t i = 0; i < call->slot_count; i++) {
        const struct hfi_call_attempt *attempt = &call->slots[i];
        if (!attempt->wire)
            continue;
        at = hfi_earlier(at, attempt->deadline);
        if (!attempt->connected)
            at = hfi_earlier(at, attempt->connect_deadline);
    }
    return call->hedges_left > 0 ? hfi_earlier(at, call->hedge_at) : at;
}
