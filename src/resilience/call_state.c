/* SPDX-License-Identifier: MIT */
/*
 * The states of a call: which may follow which, and what entering and leaving one does (timers, the queue, counts).
 * hfi_call_move is the one place that changes the state. Must never decide where to go. On the scheduler's thread.
 */
#include <assert.h>

#include "base/log.h"
#include "resilience/call_internal.h"

static const char *const state_names[] = {
#define STATE_NAME(name, text) text,
    HFI_CALL_STATE_MAP(STATE_NAME)
#undef STATE_NAME
};

/* Never fails from begin to end: the timer keeps its place in the scheduler. */
void hfi_call_wake_at(struct hfi_call *call, struct hf_mono at) {
    struct hfi_scheduler *scheduler = call->caller->scheduler;
    int rc = scheduler->ops->arm(scheduler, &call->timer, at);
    assert(rc == 0);
    (void)rc;
}

/*
 * Only of our own attempts somebody tells us that a slot came free: not of guards on other threads, of calls made since a
 * reload, nor of a wider bulkhead; and tokens come with time alone. On failure the total still ends them.
 */
void hfi_target_watch(struct hfi_target *target) {
    struct hfi_scheduler *scheduler = target->caller->scheduler;
    if (target->queued == 0 || hfi_timer_armed(&target->poll))
        return;
    struct hf_mono now = hfi_now(scheduler);
    if (target->token_at.us > now.us)
        scheduler->ops->arm(scheduler, &target->poll, target->token_at);
    else
        scheduler->ops->arm(scheduler, &target->poll, hfi_mono_after_ms(now, HFI_SLOT_POLL_MS));
}

static void enter_queued(struct hfi_call *call) {
    struct hfi_target *target = call->target;
    TAILQ_INSERT_TAIL(&target->queue, call, waiting);
    target->queued++;
    hfi_call_wake_at(call, call->deadline);
    hfi_target_watch(target);
}

static void leave_queued(struct hfi_call *call) {
    TAILQ_REMOVE(&call->target->queue, call, waiting);
    hfi_bulkhead_unqueue(&call->target->downstream->bulkhead);
    if (--call->target->queued == 0) /* an armed timer means that somebody waits, who holds the target */
        call->caller->scheduler->ops->disarm(call->caller->scheduler, &call->target->poll);
}

static void enter_attempt(struct hfi_call *call) {
    hfi_call_wake_at(call, hfi_call_next_look(call));
}

static void leave_attempt(struct hfi_call *call) {
    assert(call->live == 0); /* or a permit would be lost */
    (void)call;
}

static void enter_backoff(struct hfi_call *call) {
    hfi_call_wake_at(call, hfi_earlier(call->wakes, call->deadline));
}

static void enter_ending(struct hfi_call *call) {
    hfi_call_wake_at(call, hfi_call_now(call));
}

#define CAN(name) (1u << HFI_CALL_##name)
static const struct {
    unsigned next;
    void (*enter)(struct hfi_call *call);
    void (*leave)(struct hfi_call *call);
} states[HFI_CALL_STATES] = {
    [HFI_CALL_READY] = {CAN(QUEUED) | CAN(ATTEMPT) | CAN(BACKOFF) | CAN(ENDING), NULL, NULL},
    [HFI_CALL_QUEUED] = {CAN(ATTEMPT) | CAN(BACKOFF) | CAN(ENDING) | CAN(ENDED), enter_queued, leave_queued},
    [HFI_CALL_ATTEMPT] = {CAN(BACKOFF) | CAN(ENDING) | CAN(ENDED), enter_attempt, leave_attempt},
    [HFI_CALL_BACKOFF] = {CAN(QUEUED) | CAN(ATTEMPT) | CAN(BACKOFF) | CAN(ENDING) | CAN(ENDED), enter_backoff, NULL},
    [HFI_CALL_ENDING] = {CAN(ENDED), enter_ending, NULL},
    [HFI_CALL_ENDED] = {0, NULL, NULL},
};
#undef CAN

void hfi_call_move(struct hfi_call *call, enum hfi_call_state to, const char *why) {
    enum hfi_call_state from = call->state;
    assert(states[from].next & 1u << to);
    if (hfi_log_wants(HF_LOG_DEBUG))
        hfi_log(HF_LOG_DEBUG, "call.state", HFI_S("downstream", call->target->downstream->name),
                HFI_S("from", state_names[from]), HFI_S("to", state_names[to]), HFI_S("why", why),
                HFI_I("attempts", call->attempts), NULL);
    if (states[from].leave)
        states[from].leave(call);
    call->state = to;
    if (states[to].enter)
        states[to].enter(call);
}
