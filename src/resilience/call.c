/* SPDX-License-Identifier: MIT */
/*
 * The life of a call: total ⊃ retry ⊃ budget ⊃ breaker ⊃ bulkhead ⊃ attempt. It owns the timers, asks hfi_decide what
 * comes next and does it. Must never decide by itself whether to retry, sample what was refused here, run past the
 * total, or tell `done` inside begin or cancel. On the scheduler's thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/call_internal.h"
#include "resilience/classify.h"
#include "resilience/decide.h"

static void try_attempt(struct hfi_call *call, struct hf_mono now);

/* Writes what all attempts together say into the outcome. */
static void sum_up(struct hfi_call *call) {
    struct hf_outcome *outcome = &call->response->outcome;
    outcome->attempts = call->attempts;
    outcome->hedges = call->hedges;
    outcome->retries = call->again.retries;
    outcome->sent = call->sent; /* NO only if none of them sent anything */
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
        try_attempt(TAILQ_FIRST(&target->queue), hfi_now(target->caller->scheduler));
    }
    hfi_target_watch(target);
}

/* Looking takes nothing; asking may take a probe or a token and give it back. So it asks when there may be room, and now and then. */
void hfi_target_poll(struct hfi_timer *timer, void *user) {
    struct hfi_target *target = user;
    struct hfi_scheduler *scheduler = target->caller->scheduler;
    struct hf_mono now = hfi_now(scheduler);
    (void)timer;
    if (target->token_at.us > 0 || now.us >= target->ask_at.us ||
        hfi_downstream_allowance(target->downstream, now, NULL) > 0)
        serve_queue(target);
    else
        hfi_target_watch(target);
}

/* The wait that failed attempts of this try were asked for outlives them: nobody comes early (A2). */
static void carry_wait(const struct hfi_call *call, struct hf_mono now, struct hf_outcome *outcome) {
    int64_t left_ms = call->not_before.us > now.us ? hfi_us_to_ms_up(call->not_before.us - now.us) : -1;
    if (left_ms > outcome->retry_after_ms)
        outcome->retry_after_ms = left_ms;
}

/* `timeout.total`, wherever it was. What the attempts before saw stands in the message. */
static void time_out(struct hfi_call *call, struct hf_mono now) {
    struct hf_outcome *outcome = &call->response->outcome, cut;
    char last[HFI_ERROR_TYPE_MAX] = "";
    if (outcome->touched)
        hfi_text_copy(last, sizeof last, outcome->error_type);
    hfi_classify_timeout("timeout.total", HF_SENT_MAYBE, HF_STAGE_LOCAL, &cut);
    hfi_call_cut_all(call, &cut, now);
    hfi_call_drop_answer(call);
    hfi_classify_timeout("timeout.total", call->sent, cut.stage, outcome);
    outcome->phases = cut.phases;
    carry_wait(call, now, outcome);
    if (last[0])
        hfi_outcome_message(outcome, "the total limit of %lld ms passed in stage %s; the last attempt before: %s",
                            (long long)call->total_ms, hf_stage_name(cut.stage), last);
    sum_up(call);
}

static void refuse(struct hfi_call *call, const struct hf_outcome *rejection) {
    hfi_again_refused(&call->response->outcome, call->attempts, rejection);
    hfi_downstream_refused(call->target->downstream, rejection); /* however often it asked: once (R23) */
    sum_up(call);
    hfi_call_move(call, HFI_CALL_ENDING, rejection->error_type);
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

/* With the newest failure in the response: is there one more try? The state follows. True: the call goes on. */
static bool go_on(struct hfi_call *call, struct hf_mono now) {
    carry_wait(call, now, &call->response->outcome);
    if (!retry(call, now))
        return false;
    hfi_call_drop_answer(call);
    hfi_call_move(call, HFI_CALL_BACKOFF, call->response->outcome.error_type);
    return true;
}

/* An attempt ended and did not settle it: others of this try may. False: there are none. */
static bool wait_for_rest(struct hfi_call *call, const struct hf_outcome *outcome, struct hf_mono now) {
    if (hfi_decide_hedge(outcome))
        hfi_call_hedge(call, now); /* at once, instead of its delay (R17) */
    if (call->live == 0)
        return false;
    hfi_call_wake_at(call, hfi_call_next_look(call));
    return true;
}

static void cancel_losers(struct hfi_call *call, struct hf_mono now) {
    struct hf_outcome lost;
    if (call->live == 0)
        return;
    hfi_classify_cancelled(HF_SENT_MAYBE, HF_STAGE_LOCAL, &lost);
    hfi_call_cut_all(call, &lost, now);
}

void hfi_call_over(struct hfi_call_attempt *attempt, struct hf_outcome *outcome, const struct hfi_attempt_facts *facts) {
    struct hfi_call *call = attempt->call;
    struct hfi_target *target = call->target;
    struct hf_mono now = facts && facts->now.us ? facts->now : hfi_call_now(call);
    bool news = !attempt->hedge || outcome->kind != HF_OUTCOME_REJECTED; /* a hedge without room was none (R18) */
    bool settled = hfi_decide_settles(outcome), goes_on = false;
    hfi_call_release(attempt, outcome, now);
    if (news) {
        struct hf_mono asked = hfi_mono_after_ms(now, outcome->retry_after_ms);
        hfi_outcome_copy(&call->response->outcome, outcome);
        if (!settled && asked.us > call->not_before.us)
            call->not_before = asked;
    }
    if (settled)
        cancel_losers(call, now);
    else
        goes_on = wait_for_rest(call, outcome, now) || go_on(call, now);
    if (facts && news && call->state == HFI_CALL_ATTEMPT)
        hfi_call_keep_answer(call, facts);
    if (!goes_on) {
        sum_up(call);
        hfi_call_move(call, HFI_CALL_ENDED, call->response->outcome.error_type);
    }
    serve_queue(target);
    if (!goes_on)
        deliver(call);
}

/* The transport took nothing. */
static void not_started(struct hfi_call *call, struct hf_permit *permit, int rc, struct hf_mono now) {
    hfi_downstream_give_back(call->target->downstream, now, permit);
    hfi_call_short(rc, &call->response->outcome);
    if (!go_on(call, now)) {
        sum_up(call);
        hfi_call_move(call, HFI_CALL_ENDING, call->response->outcome.error_type);
    }
    hfi_target_watch(call->target);
}

static void start_try(struct hfi_call *call, struct hf_permit *permit, struct hf_mono now) {
    if (!call->counted)
        hfi_budget_call(&call->target->downstream->budget, now);
    call->counted = true;
    hfi_call_hedge_plan(call, now);
    int rc = hfi_call_send(call, permit, false, now);
    if (rc)
        not_started(call, permit, rc, now);
    else
        hfi_call_move(call, HFI_CALL_ATTEMPT, "admitted");
}

/* No slot or token: waits if the queue has room, its own place if it waits already. Guards wait in the same queue. */
static void wait_for_slot(struct hfi_call *call, const struct hf_outcome *rejection) {
    if (call->state == HFI_CALL_QUEUED)
        return;
    struct hf_downstream *downstream = call->target->downstream;
    if (hfi_bulkhead_queue(&downstream->bulkhead, call->policy->options.bulkhead_queue))
        hfi_call_move(call, HFI_CALL_QUEUED, rejection->error_type);
    else
        refuse(call, rejection);
}

/* The rate limit has none: one that comes too late is not waited for (A1). */
static void wait_for_token(struct hfi_call *call, struct hf_mono now, const struct hf_outcome *rejection) {
    struct hf_mono at = hfi_mono_after_ms(now, rejection->retry_after_ms);
    call->target->token_at = at;
    if (at.us < call->deadline.us)
        wait_for_slot(call, rejection);
    else
        refuse(call, rejection);
}

/* The same answer as the first in the queue got, for those behind it. */
static void as_the_first(const struct hfi_target *target, struct hf_mono now, struct hf_outcome *rejection) {
    bool token = target->token_at.us > now.us;
    hfi_outcome_init(rejection);
    hfi_outcome_rejected(rejection, token ? "rate.limited" : "bulkhead.full",
                         token ? hfi_us_to_ms_up(hfi_sub(target->token_at.us, now.us)) : HFI_SLOT_POLL_MS);
}

static void try_attempt(struct hfi_call *call, struct hf_mono now) {
    struct hfi_target *target = call->target;
    struct hf_permit permit;
    struct hf_outcome rejection;
    if (target->queued > 0 && call->state != HFI_CALL_QUEUED) { /* nobody overtakes */
        as_the_first(target, now, &rejection);
        wait_for_slot(call, &rejection);
        return;
    }
    target->token_at = (struct hf_mono){0};
    target->ask_at = hfi_mono_after_ms(now, HFI_SLOT_ASK_MS);
    /* Those who come out of the queue ask the breaker anew: it may have opened while they waited. */
    if (hfi_downstream_ask(target->downstream, now, &permit, &rejection) == 0)
        start_try(call, &permit, now);
    else if (strcmp(rejection.error_type, "bulkhead.full") == 0)
        wait_for_slot(call, &rejection);
    else if (strcmp(rejection.error_type, "rate.limited") == 0)
        wait_for_token(call, now, &rejection);
    else
        refuse(call, &rejection);
}

/* The try on the wire has to be looked at. */
static void look(struct hfi_call *call, struct hf_mono now) {
    for (uint32_t i = 0; i < call->slot_count; i++) {
        struct hfi_call_attempt *attempt = &call->slots[i];
        const char *which = attempt->wire ? hfi_call_limit(attempt, now) : NULL;
        if (!which)
            continue;
        hfi_call_expire(attempt, which);
        return; /* the others are looked at in the next turn, if the call is still there */
    }
    if (call->hedges_left > 0 && now.us >= call->hedge_at.us)
        hfi_call_hedge(call, now);
    hfi_call_wake_at(call, hfi_call_next_look(call));
}

static void on_timer(struct hfi_timer *timer, void *user) {
    struct hfi_call *call = user;
    struct hf_mono now = hfi_call_now(call);
    (void)timer;
    hfi_call_wake_at(call, call->deadline); /* keeps its place */
    if (call->state == HFI_CALL_ENDING) {
        hfi_call_finish(call);
    } else if (now.us >= call->deadline.us) {
        struct hfi_target *target = call->target;
        time_out(call, now);
        hfi_call_move(call, HFI_CALL_ENDED, call->response->outcome.error_type);
        serve_queue(target);
        deliver(call);
    } else if (call->state == HFI_CALL_ATTEMPT) {
        look(call, now);
    } else if (call->state == HFI_CALL_BACKOFF) {
        try_attempt(call, now);
    }
}

int hfi_call_begin(struct hfi_call *call) {
    struct hfi_scheduler *scheduler = call->caller->scheduler;
    struct hf_mono now = hfi_call_now(call);
    call->deadline = hfi_mono_after_ms(now, call->total_ms);
    hfi_again_init(&call->again, call->target->downstream, call->policy, call->deadline, call->no_retry);
    hfi_timer_init(&call->timer, on_timer, call);
    if (scheduler->ops->arm(scheduler, &call->timer, call->deadline))
        return HF_ENOMEM;
    TAILQ_INSERT_TAIL(&call->caller->calls, call, entry);
    try_attempt(call, now);
    return 0;
}

void hfi_call_give_up(struct hfi_call *call) {
    struct hf_response *response = call->response;
    hf_call_fn done = call->done;
    void *user = call->user;
    hfi_call_short(HF_ENOMEM, &response->outcome);
    hfi_target_unref(call->target);
    hfi_free(call);
    done(response, user);
}

int hfi_call_start(struct hfi_caller *caller, const struct hf_request *request, hf_call_fn done, void *user,
                   struct hfi_call **out, struct hf_error *error) {
    struct hfi_call *call;
    int rc = hfi_call_new(caller, request, done, user, &call, error);
    if (rc)
        return rc;
    rc = hfi_call_begin(call);
    if (rc) {
        hfi_call_discard(call);
        return hfi_fail(error, rc, "call", NULL, "out of memory");
    }
    if (out)
        *out = call;
    return 0;
}

void hfi_call_cancel(struct hfi_call *call) {
    struct hf_outcome *outcome = &call->response->outcome;
    if (call->state == HFI_CALL_ENDING || call->state == HFI_CALL_ENDED)
        return;
    struct hf_outcome cut;
    struct hfi_phases phases = outcome->phases;
    bool on_wire = call->live > 0;
    hfi_classify_cancelled(HF_SENT_MAYBE, HF_STAGE_LOCAL, &cut);
    hfi_call_cut_all(call, &cut, hfi_call_now(call));
    hfi_call_drop_answer(call);
    hfi_classify_cancelled(call->sent, cut.stage, outcome);
    outcome->phases = on_wire ? cut.phases : phases;
    sum_up(call);
    hfi_call_move(call, HFI_CALL_ENDING, outcome->error_type);
    if (on_wire)
        serve_queue(call->target);
}
