/* SPDX-License-Identifier: MIT */
/*
 * The life of a call: total ⊃ retry ⊃ budget ⊃ breaker ⊃ bulkhead ⊃ attempt. It owns the timers, asks hfi_decide what
 * comes next and does it. Must never decide by itself whether to retry, sample what was refused here, run past the
 * total, or tell `done` inside begin or cancel. On the scheduler's thread.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/call_internal.h"
#include "resilience/classify.h"

static void try_attempt(struct hfi_call *call);

/* Writes what all attempts together say into the outcome. */
static void sum_up(struct hfi_call *call) {
    struct hf_outcome *outcome = &call->response->outcome;
    outcome->attempts = call->attempts;
    outcome->retries = call->again.retries;
    outcome->sent = call->sent; /* NO only if no attempt sent anything */
}

/* Tells `done`; the call is gone, and its caller may be. */
static void deliver(struct hfi_call *call) {
    struct hfi_caller *caller = call->caller;
    struct hf_response *response = call->response;
    hf_call_fn done = call->done;
    void *user = call->user;
    caller->scheduler->ops->disarm(caller->scheduler, &call->timer);
    TAILQ_REMOVE(&caller->calls, call, entry);
    hfi_target_unref(call->target);
    hfi_free(call);
    done(response, user);
}

void hfi_call_finish(struct hfi_call *call) {
    hfi_call_move(call, HFI_CALL_ENDED, call->response->outcome.error_type);
    deliver(call);
}

/* Gives slots that came free to those who wait. None of them is told anything here. */
static void serve_queue(struct hfi_target *target) {
    uint32_t before = UINT32_MAX;
    while (target->queued > 0 && target->queued < before) {
        before = target->queued;
        try_attempt(TAILQ_FIRST(&target->queue));
    }
    hfi_target_watch(target);
}

void hfi_target_poll(struct hfi_timer *timer, void *user) {
    (void)timer;
    serve_queue(user);
}

/* `timeout.total`, wherever it was. What the attempts before saw stands in the message. */
static void time_out(struct hfi_call *call, enum hf_stage stage, struct hf_outcome *outcome) {
    char last[HFI_ERROR_TYPE_MAX] = "";
    if (call->tries > 0)
        hfi_text_copy(last, sizeof last, call->response->outcome.error_type);
    hfi_classify_timeout("timeout.total", call->sent, stage, outcome);
    if (last[0])
        hfi_outcome_message(outcome, "the total limit of %lld ms passed in stage %s; the last attempt before: %s",
                            (long long)call->total_ms, hf_stage_name(stage), last);
}

/* Not let through. After real attempts the failure they saw stays what it is, to be tried again when it may. */
static void refuse(struct hfi_call *call, const struct hf_outcome *rejection) {
    struct hf_outcome *outcome = &call->response->outcome;
    if (call->attempts == 0) {
        *outcome = *rejection;
    } else {
        outcome->retry = HF_RETRY_LATER;
        if (rejection->retry_after_ms > outcome->retry_after_ms)
            outcome->retry_after_ms = rejection->retry_after_ms;
    }
    sum_up(call);
    hfi_call_move(call, HFI_CALL_ENDING, rejection->error_type);
}

/* Gives the permit back. What was refused here, without touching the wire, is no sample (2.1). */
static void leave_downstream(struct hfi_call *call, struct hf_mono now, const struct hf_outcome *outcome) {
    struct hf_downstream *downstream = call->target->downstream;
    if (outcome->stage == HF_STAGE_LOCAL && outcome->sent == HF_SENT_NO && outcome->verdict == HF_VERDICT_NEUTRAL) {
        hfi_downstream_give_back(downstream, now, &call->permit);
        return;
    }
    if (call->limit_gated && outcome->gate_limit) { /* its owner gates the limit key, not we the downstream */
        struct hf_outcome without = *outcome;
        without.gate_limit = false;
        hfi_downstream_leave(downstream, now, &call->permit, &without);
        return;
    }
    hfi_downstream_leave(downstream, now, &call->permit, outcome);
}

/* Return, or try again? True: the next try is scheduled. */
static bool retry(struct hfi_call *call, struct hf_mono now) {
    struct hf_outcome *outcome = &call->response->outcome;
    bool repeatable = hf_may_repeat(call->method, call->has_key, outcome->sent);
    if (!hfi_again(&call->again, outcome, repeatable, now, hfi_random_next(&call->caller->random)))
        return false;
    call->wakes = hfi_mono_after_ms(now, call->again.last_wait_ms);
    return true;
}

/* Takes in how an attempt ended. True: the next one is scheduled; false: the response is the end. */
static bool take_in(struct hfi_call *call, const struct hf_outcome *outcome, const struct hfi_attempt_facts *facts) {
    struct hf_mono now = hfi_call_now(call);
    if (outcome->sent > call->sent)
        call->sent = outcome->sent;
    call->response->outcome = *outcome;
    leave_downstream(call, now, outcome);
    if (retry(call, now))
        return true;
    sum_up(call);
    if (facts)
        hfi_call_keep_answer(call, facts);
    return false;
}

/* The attempt on the wire is over, by its facts or cut by a limit. */
static void attempt_over(struct hfi_call *call, const struct hf_outcome *outcome,
                         const struct hfi_attempt_facts *facts) {
    struct hfi_target *target = call->target;
    if (take_in(call, outcome, facts)) {
        hfi_call_move(call, HFI_CALL_BACKOFF, outcome->error_type);
        serve_queue(target);
        return;
    }
    hfi_call_move(call, HFI_CALL_ENDED, outcome->error_type);
    serve_queue(target);
    deliver(call);
}

/* What the tables say of an attempt, or the rules of the call and the downstream before them. Told once (F8). */
static void overrule(const struct hfi_call *call, const struct hfi_attempt_facts *facts, struct hf_outcome *outcome) {
    hfi_rules_judge(&call->rules, &call->target->rules, call->method, facts, outcome);
}

static void on_facts(const struct hfi_attempt_facts *facts, void *user) {
    struct hfi_call *call = user;
    struct hfi_scheduler *scheduler = call->caller->scheduler;
    const struct hf_policy_options *policy = &call->target->downstream->policy->options;
    struct hf_outcome outcome;
    hfi_classify_attempt(facts, scheduler->ops->wall(scheduler), policy->breaker_429_failure,
                         policy->retry_after_cap_ms, &outcome);
    overrule(call, facts, &outcome);
    if (outcome.kind == HF_OUTCOME_REJECTED)
        call->attempts--; /* the transport had no room: it reached nothing */
    attempt_over(call, &outcome, facts);
}

/* Our own shortage, not the peer's failure. */
static void fall_short(int rc, struct hf_outcome *outcome) {
    struct hfi_attempt_facts facts = {.error_type = rc == HF_EINVAL ? "local.url" : "local.memory",
                                      .message = hf_strerror(rc),
                                      .stage = HF_STAGE_LOCAL,
                                      .sent = HF_SENT_NO,
                                      .phases = {-1, -1, -1, -1, -1}};
    hfi_classify_attempt(&facts, (struct hf_wall){0}, false, 0, outcome);
}

/* The transport took nothing. */
static void not_started(struct hfi_call *call, int rc) {
    struct hf_outcome outcome;
    fall_short(rc, &outcome);
    hfi_call_move(call, take_in(call, &outcome, NULL) ? HFI_CALL_BACKOFF : HFI_CALL_ENDING, outcome.error_type);
    hfi_target_watch(call->target);
}

static void start_attempt(struct hfi_call *call, struct hf_mono now) {
    const struct hfi_target *target = call->target;
    const struct hf_policy *policy = target->downstream->policy;
    int64_t left_ms = (call->deadline.us - now.us) / 1000;
    call->connect_deadline = hfi_mono_after_ms(now, policy->options.connect_timeout_ms);
    call->attempt_deadline = hfi_earlier(hfi_mono_after_ms(now, policy->options.attempt_timeout_ms), call->deadline);
    if (target->send_remaining_time)
        snprintf(call->remaining, sizeof call->remaining, "%lld", (long long)left_ms);
    struct hfi_attempt_spec spec = {
        .url = call->url,
        .method = call->method,
        .headers = call->headers,
        .header_count = call->header_count,
        .body = call->body,
        .body_length = call->body_length,
        .ca_file = target->ca_file,
        .connect_timeout_ms = policy->options.connect_timeout_ms,
        .backstop_ms = policy->backstop_ms,
        .response_limit = target->response_limit,
        .header_limit = target->header_limit,
        .compressed = target->compressed,
        .deny_private = target->deny_private,
        .signing = target->signing,
        .message_id = call->message_id,
        .repeatable = false, /* trying again is counted and decided here, never below */
        .fresh_connection = call->again.fresh,
    };
    if (call->tries++ == 0)
        hfi_budget_call(&target->downstream->budget, now);
    struct hfi_transport *transport = call->caller->transport;
    int rc = transport->ops->start(transport, &spec, on_facts, call, &call->attempt);
    if (rc) {
        not_started(call, rc);
        return;
    }
    call->attempts++;
    hfi_call_move(call, HFI_CALL_ATTEMPT, "admitted");
}

/* No slot: waits if the queue has room, its own place if it waits already. */
static void wait_for_slot(struct hfi_call *call, const struct hf_outcome *rejection) {
    if (call->state == HFI_CALL_QUEUED)
        return;
    if (call->target->queued < call->target->downstream->policy->options.bulkhead_queue)
        hfi_call_move(call, HFI_CALL_QUEUED, rejection->error_type);
    else
        refuse(call, rejection);
}

static void try_attempt(struct hfi_call *call) {
    struct hfi_target *target = call->target;
    struct hf_mono now = hfi_call_now(call);
    struct hf_outcome rejection;
    if (target->queued > 0 && call->state != HFI_CALL_QUEUED) { /* nobody overtakes */
        hfi_outcome_init(&rejection);
        hfi_outcome_rejected(&rejection, "bulkhead.full", HFI_SLOT_POLL_MS);
        wait_for_slot(call, &rejection);
        return;
    }
    if (hfi_downstream_enter(target->downstream, now, &call->permit, &rejection) == 0)
        start_attempt(call, now);
    else if (strcmp(rejection.error_type, "bulkhead.full") == 0)
        wait_for_slot(call, &rejection);
    else
        refuse(call, &rejection);
}

/* Ends the attempt on the wire; the permit is still held. */
static enum hf_stage cut(struct hfi_call *call, struct hfi_phases *phases, enum hf_sent *sent) {
    struct hfi_transport *transport = call->caller->transport;
    enum hf_stage stage;
    *sent = transport->ops->cancel(transport, call->attempt, &stage, phases);
    if (*sent > call->sent)
        call->sent = *sent;
    return stage;
}

/* The first limit that is over, the outermost first; NULL: none. */
static const char *limit_over(struct hfi_call *call, struct hf_mono now) {
    struct hfi_transport *transport = call->caller->transport;
    if (now.us >= call->deadline.us)
        return "timeout.total";
    if (now.us >= call->connect_deadline.us && transport->ops->stage(transport, call->attempt) < HF_STAGE_SEND)
        return "timeout.connect";
    return now.us >= call->attempt_deadline.us ? "timeout.attempt" : NULL;
}

static void check_limits(struct hfi_call *call, struct hf_mono now) {
    const char *which = limit_over(call, now);
    struct hf_outcome outcome;
    struct hfi_phases phases;
    enum hf_sent sent;
    if (!which) { /* connected in time */
        hfi_call_wake_at(call, call->attempt_deadline);
        return;
    }
    enum hf_stage stage = cut(call, &phases, &sent);
    if (strcmp(which, "timeout.total") == 0)
        time_out(call, stage, &outcome);
    else
        hfi_classify_timeout(which, sent, stage, &outcome);
    outcome.phases = phases;
    overrule(call, NULL, &outcome);
    attempt_over(call, &outcome, NULL);
}

static void on_timer(struct hfi_timer *timer, void *user) {
    struct hfi_call *call = user;
    struct hf_mono now = hfi_call_now(call);
    (void)timer;
    hfi_call_wake_at(call, call->deadline); /* keeps its place */
    switch (call->state) {
    case HFI_CALL_ATTEMPT:
        check_limits(call, now);
        return;
    case HFI_CALL_BACKOFF:
        if (now.us < call->deadline.us) {
            try_attempt(call);
            return;
        }
        break;
    case HFI_CALL_ENDING:
        hfi_call_finish(call);
        return;
    default:
        break;
    }
    struct hf_outcome outcome;
    time_out(call, HF_STAGE_LOCAL, &outcome);
    call->response->outcome = outcome;
    sum_up(call);
    hfi_call_finish(call);
}

int hfi_call_begin(struct hfi_call *call) {
    struct hfi_scheduler *scheduler = call->caller->scheduler;
    struct hf_downstream *downstream = call->target->downstream;
    call->deadline = hfi_mono_after_ms(hfi_call_now(call), call->total_ms);
    hfi_again_init(&call->again, downstream, call->deadline,
                   call->no_retry ? 0 : downstream->policy->options.retry_max);
    hfi_timer_init(&call->timer, on_timer, call);
    if (scheduler->ops->arm(scheduler, &call->timer, call->deadline))
        return HF_ENOMEM;
    TAILQ_INSERT_TAIL(&call->caller->calls, call, entry);
    try_attempt(call);
    return 0;
}

void hfi_call_give_up(struct hfi_call *call) {
    struct hf_response *response = call->response;
    hf_call_fn done = call->done;
    void *user = call->user;
    fall_short(HF_ENOMEM, &response->outcome);
    hfi_target_unref(call->target);
    hfi_free(call);
    done(response, user);
}

int hfi_call_start(struct hfi_caller *caller, const struct hf_request *request, hf_call_fn done, void *user,
                   struct hfi_call **out) {
    struct hfi_call *call;
    int rc = hfi_call_new(caller, request, done, user, &call, NULL);
    if (rc)
        return rc;
    rc = hfi_call_begin(call);
    if (rc) {
        hfi_call_discard(call);
        return rc;
    }
    if (out)
        *out = call;
    return 0;
}

void hfi_call_cancel(struct hfi_call *call) {
    struct hf_outcome *outcome = &call->response->outcome;
    enum hf_stage stage = HF_STAGE_LOCAL;
    enum hf_sent sent;
    if (call->state == HFI_CALL_ENDING || call->state == HFI_CALL_ENDED)
        return;
    bool on_wire = call->state == HFI_CALL_ATTEMPT;
    struct hfi_phases phases = outcome->phases;
    if (on_wire)
        stage = cut(call, &phases, &sent);
    hfi_classify_cancelled(call->sent, stage, outcome);
    outcome->phases = phases;
    if (on_wire)
        leave_downstream(call, hfi_call_now(call), outcome);
    sum_up(call);
    hfi_call_move(call, HFI_CALL_ENDING, outcome->error_type);
    if (on_wire)
        serve_queue(call->target);
}

uint32_t hfi_call_attempts(const struct hfi_call *call) {
    return call->attempts;
}

void hfi_call_limit_gated(struct hfi_call *call) {
    call->limit_gated = true;
}
