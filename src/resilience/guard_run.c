/* SPDX-License-Identifier: MIT */
/*
 * The pipeline around any function, on the caller's own thread: total, short retries with budget, breaker, bulkhead
 * with its line, rate limit, injected faults. Reads the clock, because its callers have no scheduler. Must never hold a
 * lock or a place of the line while the function runs, nor run on a thread that turns a loop. Any other thread.
 */
#include "holdfast/guard.h"

#include <errno.h>
#include <string.h>

#include "base/blocking.h"
#include "base/random.h"
#include "base/text.h"
#include "resilience/again.h"
#include "resilience/classify.h"
#include "resilience/faults.h"
#include "resilience/waiting.h"

/* One run from its start to its end. */
struct run {
    struct hf_downstream *downstream;
    const struct hf_policy *policy;
    struct hf_guard_options options;
    hf_guarded_fn function;
    void *user;
    struct hfi_again again;
    struct hfi_random random; /* seeded when it is needed: chance */
    bool seeded;
    struct hf_outcome *outcome;
    uint32_t attempts;
    enum hf_sent sent; /* the most that any attempt may have sent */
    struct hf_mono now; /* the last look at the clock: nothing that takes time has happened since */
};

static bool is_cancelled(const struct run *run) {
    return hf_guard_cancel_fired(run->options.cancel);
}

static uint64_t chance(struct run *run) {
    if (!run->seeded) /* any two runs differ: their time, their place on the stack. Jitter needs no more */
        hfi_random_seed(&run->random,
                        (uint64_t)run->now.us ^ (uint64_t)(uintptr_t)run ^ (uint64_t)(uintptr_t)run->downstream);
    run->seeded = true;
    return hfi_random_next(&run->random);
}

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ------------------------------------------------------------------ one attempt */

/* What an injected fault makes of the attempt. False: it only delayed it, and the function is still to run. */
static bool strike(struct run *run, const struct hf_fault *fault, int64_t started_us, int64_t limit_us) {
    struct hf_outcome *outcome = run->outcome;
    bool drops = fault->kind == HF_FAULT_DROP;
    int64_t at_us =
        drops ? limit_us : earlier(hfi_mono_after_ms((struct hf_mono){started_us}, fault->delay_ms).us, limit_us);
    if ((drops || fault->delay_ms > 0) && hfi_wait_until(at_us, run->options.cancel)) {
        hfi_classify_cancelled(HF_SENT_MAYBE, HF_STAGE_WAIT, outcome);
        return true;
    }
    if (at_us >= limit_us) {
        const char *which = limit_us >= run->again.deadline.us ? "timeout.total" : "timeout.attempt";
        hfi_classify_timeout(which, HF_SENT_MAYBE, HF_STAGE_WAIT, outcome);
    } else if (fault->kind == HF_FAULT_DELAY) {
        return false;
    } else if (fault->kind == HF_FAULT_STATUS) {
        hf_classify_http(fault->status, NULL, 0, outcome);
        outcome->sent = HF_SENT_YES;
        outcome->stage = HF_STAGE_RECEIVE;
    } else {
        hf_classify_errno(ECONNRESET, outcome);
    }
    hfi_outcome_message(outcome, "injected fault: %s", hf_fault_name(fault->kind));
    return true;
}

static void call(struct run *run, int64_t started_us, int64_t limit_us) {
    struct hf_outcome *outcome = run->outcome;
    struct hf_fault fault;
    hfi_outcome_init(outcome);
    struct hfi_faults *faults = hfi_downstream_faults(run->downstream);
    if (faults != NULL &&
        hfi_faults_strike(faults, run->downstream->name, (struct hf_mono){started_us}, chance(run), &fault) &&
        strike(run, &fault, started_us, limit_us))
        return;
    run->function(limit_us, outcome, run->user);
    if (outcome->touched) {
        hf_rules_apply(run->options.rules, run->options.rule_count, NULL, outcome);
        return;
    }
    /* who says nothing has failed [S0.1] */
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_NOW, HF_VERDICT_FAILURE, HF_CLASS_TRANSIENT,
                    "guard.no_outcome", "guard.no_outcome");
    hfi_outcome_message(outcome, "the guarded function returned without an outcome");
    outcome->stage = HF_STAGE_HANDLER;
}

static void attempt(struct run *run, struct hf_permit *permit) {
    struct hf_mono start = run->now; /* it was asked for just now */
    int64_t limit_us = hfi_mono_after_ms(start, run->policy->options.attempt_timeout_ms).us;
    call(run, start.us, earlier(limit_us, run->again.deadline.us));
    struct hf_mono end = hfi_mono_now_quick();
    end.us = end.us > start.us ? end.us : start.us; /* two clocks, a few µs apart at most */
    run->now = end;
    run->attempts++;
    run->outcome->phases.total_us = hfi_sub(end.us, start.us);
    if (run->outcome->sent > run->sent)
        run->sent = run->outcome->sent;
    hfi_downstream_leave(run->downstream, end, permit, run->outcome);
}

/* ------------------------------------------------------------------ how it may begin */

/* Waiting can help with these two, and with nothing else. */
static bool can_wait(const struct hf_outcome *rejection) {
    return strcmp(rejection->error_type, "bulkhead.full") == 0 || strcmp(rejection->error_type, "rate.limited") == 0;
}

/* The line of the downstream, made when somebody waits for the first time. NULL: no memory. */
static struct hfi_line *line_of(struct hf_downstream *downstream) {
    struct hfi_downstream_extra *extra = hfi_downstream_need_extra(downstream);
    struct hfi_line *line = extra != NULL ? atomic_load(&extra->line) : NULL;
    if (extra == NULL || line != NULL)
        return line;
    struct hfi_line *made = hfi_line_new();
    if (made != NULL && atomic_compare_exchange_strong(&extra->line, &line, made))
        return made;
    hfi_line_free(made); /* another thread was faster, or there is no memory */
    return line;
}

static int ask(struct run *run, struct hf_permit *permit, struct hf_outcome *rejection) {
    run->now = hfi_mono_now();
    return hfi_downstream_ask(run->downstream, run->now, permit, rejection);
}

static bool is_full(int code, const struct hf_outcome *rejection) {
    return code == HF_EREJECTED && strcmp(rejection->error_type, "bulkhead.full") == 0;
}

/* Waits until a place was announced, and asks for it. As enter. */
static int wait_for_place(struct run *run, struct hfi_line *line, struct hfi_waiter *waiter, struct hf_permit *permit,
                          struct hf_outcome *rejection) {
    hfi_line_join(line, waiter);
    /* Joined before this look at the places; who leaves frees one before the look at who waits. */
    atomic_thread_fence(memory_order_seq_cst);
    int code = ask(run, permit, rejection);
    if (!is_full(code, rejection)) {
        if (hfi_line_quit(line, waiter))
            hfi_line_announce(line); /* meant for one more than this one */
        return code;
    }
    enum hfi_woken woken = hfi_waiter_sleep(waiter, run->again.deadline.us);
    bool announced = hfi_line_quit(line, waiter);
    bool asks = woken != HFI_WOKEN_CANCEL && hfi_mono_now().us < run->again.deadline.us;
    if (asks)
        code = ask(run, permit, rejection);
    if (announced && code != 0 && !(asks && is_full(code, rejection)))
        hfi_line_announce(line); /* it takes none: the next may (R21) */
    return code;
}

/* Nothing more to wait for: the reason, as an outcome and a code. 0: go on waiting. */
static int give_up(const struct run *run, struct hf_outcome *rejection) {
    enum hf_sent sent = run->attempts > 0 ? run->sent : HF_SENT_NO;
    if (is_cancelled(run)) {
        hfi_classify_cancelled(sent, HF_STAGE_LOCAL, rejection);
        return HF_ECANCELED;
    }
    if (hfi_mono_now().us < run->again.deadline.us)
        return 0;
    hfi_classify_timeout("timeout.total", sent, HF_STAGE_LOCAL, rejection);
    return HF_ETIMEDOUT;
}

/* In turns for a place and for a token; only those who need a place stand in the line. As enter. */
static int wait_in_line(struct run *run, struct hfi_line *line, struct hf_permit *permit,
                        struct hf_outcome *rejection) {
    struct hfi_waiter waiter;
    int code = HF_EREJECTED;
    hfi_waiter_init(&waiter, run->options.cancel);
    while (code == HF_EREJECTED && can_wait(rejection)) {
        int over = give_up(run, rejection);
        if (over != 0) {
            code = over;
        } else if (is_full(code, rejection)) {
            code = wait_for_place(run, line, &waiter, permit, rejection);
        } else {
            int64_t at_us = hfi_mono_after_ms(hfi_mono_now(), rejection->retry_after_ms).us;
            if (at_us >= run->again.deadline.us)
                break; /* a token that comes too late: told now (A1) */
            if (hfi_waiter_sleep(&waiter, at_us) != HFI_WOKEN_CANCEL)
                code = ask(run, permit, rejection);
        }
    }
    hfi_waiter_end(&waiter);
    return code;
}

/* Permission for an attempt, at once or after a wait. Else HF_EREJECTED, HF_ECANCELED or HF_ETIMEDOUT with `rejection`.
 */
static int enter(struct run *run, struct hf_permit *permit, struct hf_outcome *rejection) {
    struct hfi_bulkhead *bulkhead = &run->downstream->bulkhead;
    int code = hfi_downstream_ask(run->downstream, run->now, permit, rejection);
    if (code == 0 || !can_wait(rejection) || !hfi_bulkhead_queue(bulkhead, run->policy->options.bulkhead_queue))
        return code;
    struct hfi_line *line = line_of(run->downstream);
    if (line != NULL)
        code = wait_in_line(run, line, permit, rejection);
    hfi_bulkhead_unqueue(bulkhead);
    return code;
}

/* ------------------------------------------------------------------ the whole */

/* Not let through, or given up while it waited. */
static void refused(struct run *run, int code, const struct hf_outcome *rejection) {
    struct hf_outcome *outcome = run->outcome;
    char last[HFI_ERROR_TYPE_MAX] = "";
    if (run->attempts == 0 || code == HF_EREJECTED) {
        hfi_again_refused(outcome, run->attempts, rejection);
        return;
    }
    hfi_text_copy(last, sizeof last, outcome->error_type);
    hfi_outcome_copy(outcome, rejection);
    hfi_outcome_message(outcome, "%s; the last attempt before: %s", rejection->message, last);
}

/* After an attempt: another one, once its wait is over? */
static bool again(struct run *run) {
    struct hf_outcome *outcome = run->outcome;
    struct hf_outcome rejection;
    struct hf_mono now = run->now;
    bool repeatable = run->options.repeatable || run->sent == HF_SENT_NO;
    bool wants =
        outcome->kind == HF_OUTCOME_FAILURE && (outcome->retry == HF_RETRY_NOW || outcome->retry == HF_RETRY_FRESH);
    if (!wants || !is_cancelled(run)) { /* a cancelled one takes no token of the budget */
        if (!hfi_again(&run->again, outcome, repeatable, now, wants ? chance(run) : 0))
            return false;
        if (!hfi_wait_until(hfi_mono_after_ms(now, run->again.last_wait_ms).us, run->options.cancel)) {
            run->now = hfi_mono_now();
            return true;
        }
    }
    hfi_classify_cancelled(run->sent, HF_STAGE_LOCAL, &rejection);
    refused(run, HF_ECANCELED, &rejection);
    return false;
}

static void run_all(struct run *run) {
    struct hf_outcome rejection;
    struct hf_permit permit;
    bool begins = !is_cancelled(run) && run->now.us < run->again.deadline.us;
    int code = begins ? 0 : give_up(run, &rejection);
    if (code == 0)
        hfi_budget_call(&run->downstream->budget, run->now);
    while (code == 0) {
        code = enter(run, &permit, &rejection);
        if (code != 0)
            break;
        attempt(run, &permit);
        if (!again(run))
            break;
    }
    if (code == HF_EREJECTED)
        hfi_downstream_refused(run->downstream, &rejection); /* however often it asked: once (R23) */
    if (code != 0)
        refused(run, code, &rejection);
    run->outcome->attempts = run->attempts;
    run->outcome->retries = run->again.retries;
    if (run->attempts > 0)
        run->outcome->sent = run->sent; /* NO only if no attempt sent anything */
}

int hf_guard_run_with(struct hf_downstream *downstream, const struct hf_guard_options *options, hf_guarded_fn function,
                      struct hf_outcome *outcome, void *user) {
    if (downstream == NULL || function == NULL || outcome == NULL || (options != NULL && options->size < sizeof options->size))
        return HF_EINVAL;
    if (!hfi_may_block())
        return HF_EDEADLK;
    struct hf_mono start = hfi_mono_now();
    struct run run = {.downstream = downstream,
                      .policy = hfi_downstream_policy(downstream),
                      .function = function,
                      .user = user,
                      .outcome = outcome,
                      .sent = HF_SENT_NO,
                      .now = start};
    hf_guard_options_init(&run.options);
    if (options != NULL)
        memcpy(&run.options, options, options->size < sizeof run.options ? options->size : sizeof run.options);
    if (run.options.total_timeout_ms < 0 || run.options.deadline_us < 0)
        return HF_EINVAL;
    int64_t total_ms = run.policy->options.total_timeout_ms;
    if (run.options.total_timeout_ms > 0)
        total_ms = earlier(total_ms, run.options.total_timeout_ms);
    struct hf_mono deadline = hfi_mono_after_ms(start, total_ms);
    if (run.options.deadline_us > 0)
        deadline.us = earlier(deadline.us, run.options.deadline_us);
    hfi_again_init(&run.again, downstream, run.policy, deadline, run.options.no_retry);
    run_all(&run);
    return 0;
}

int hf_guard_run(struct hf_downstream *downstream, hf_guarded_fn function, struct hf_outcome *outcome, void *user) {
    return hf_guard_run_with(downstream, NULL, function, outcome, user);
}
