/* SPDX-License-Identifier: MIT */
/* Downstreams and the guard around any function: S0.1, S0.30, B19, B29, A1, F2, J4, R9, R14, R16, R21. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/blocking.h"
#include "holdfast/classify.h"
#include "holdfast/log.h"
#include "resilience/downstream.h"

#define S INT64_C(1000000)
#define T0 (1000 * S)

static struct hf_policy_options options;
static struct hf_guard_options repeatable;
static struct hf_downstream *d;
static struct {
    int count;
    char last[2048];
    enum hf_log_level level;
} logged;

static void take_line(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)user;
    assert_string_equal(event, "downstream.state");
    snprintf(logged.last, sizeof logged.last, "%s", fields);
    logged.level = level;
    logged.count++;
}

static int set_up(void **state) {
    (void)state;
    hf_policy_options_init(&options);
    hf_guard_options_init(&repeatable);
    repeatable.repeatable = true;
    options.retry_base_ms = options.retry_cap_ms = 1;
    options.breaker_break_jitter = 0;
    memset(&logged, 0, sizeof logged);
    hf_log_set(HF_LOG_INFO, take_line, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_downstream_unref(d);
    d = NULL;
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    return 0;
}

static void make(void) {
    struct hf_policy *policy;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_policy_new(&options, &policy, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    assert_int_equal(hf_downstream_new("payments", policy, &d, &error), 0);
    hf_policy_unref(policy); /* the downstream keeps its own reference */
}

static struct hf_mono at(int64_t us) {
    return (struct hf_mono){us};
}

static struct hf_downstream_view view_at(int64_t us) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(d, at(us), &view);
    return view;
}

static void call(int64_t us, const char *retry_after, int status) {
    struct hf_permit permit;
    struct hf_outcome outcome;
    assert_int_equal(hfi_downstream_enter(d, at(us), &permit, &outcome), 0);
    hf_classify_http(status, retry_after, 0, &outcome);
    assert_int_equal(hfi_downstream_leave(d, at(us + 1000), &permit, &outcome), 0);
}

static void names_are_checked(void **state) {
    (void)state;
    char text[122];
    struct hf_downstream *other;
    struct hf_error error;
    hf_error_init(&error);
    make();
    assert_string_equal(hf_downstream_name(d), "payments");
    memset(text, 'x', sizeof text);
    text[121] = '\0';
    assert_int_equal(hf_downstream_new(text, hfi_downstream_counted_policy(d), &other, &error), HF_EINVAL);
    text[120] = '\0';
    assert_int_equal(hf_downstream_new(text, hfi_downstream_counted_policy(d), &other, &error), 0);
    assert_ptr_equal(hf_downstream_ref(other), other);
    hf_downstream_unref(other);
    hf_downstream_unref(other);
    assert_int_equal(hf_downstream_new("", hfi_downstream_counted_policy(d), &other, &error), HF_EINVAL);
    assert_int_equal(hf_downstream_new("\xff", hfi_downstream_counted_policy(d), &other, &error), HF_ETEXT);
    assert_int_equal(hf_downstream_new("x", NULL, &other, &error), 0); /* with the default policy */
    struct hf_policy_options defaults;
    hf_policy_options_init(&defaults);
    assert_memory_equal(&hfi_downstream_policy(other)->options, &defaults, sizeof defaults);
    hf_downstream_unref(other);
    assert_int_equal(hf_downstream_new(NULL, NULL, &other, &error), HF_EINVAL);
    hfi_alloc_fail(1, 0);
    assert_int_equal(hf_downstream_new("x", hfi_downstream_counted_policy(d), &other, &error), HF_ENOMEM);
    hfi_alloc_fail(0, 0);
    hf_downstream_unref(NULL);
}

static void s0_30_open_refuses_and_logs(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hf_outcome outcome;
    make();
    for (int i = 0; i < 20; i++)
        call(T0 + i, NULL, 500);
    assert_int_equal(logged.count, 1);
    assert_int_equal(logged.level, HF_LOG_WARNING);
    assert_non_null(strstr(logged.last, "\"to\":\"open\""));
    assert_non_null(strstr(logged.last, "\"open_for_ms\":5000"));
    assert_non_null(strstr(logged.last, "\"downstream\":\"payments\""));
    hfi_alloc_fail(0, 0);
    assert_int_equal(hfi_downstream_enter(d, at(T0 + S), &permit, &outcome), HF_EREJECTED);
    assert_int_equal(hfi_alloc_count(), 0); /* F7: a plain return code, and no memory */
    assert_int_equal(outcome.kind, HF_OUTCOME_REJECTED);
    assert_string_equal(outcome.error_type, "breaker.open");
    assert_in_range(outcome.retry_after_ms, 4000, 4010);
    struct hf_downstream_view view = view_at(T0 + S);
    assert_int_equal(view.state, HF_BREAKER_OPEN);
    assert_int_equal(view.attempts, 20);
    assert_int_equal(view.rejections, 1);
    assert_string_equal(view.reason, "ratio: 20 of 20 failed (20 http 5xx)");
    int64_t wait;
    assert_int_equal(hfi_downstream_allowance(d, at(T0 + S), &wait), 0);
    assert_in_range(wait, 4000, 4010);
    assert_int_equal(hfi_downstream_allowance(d, at(T0 + 6 * S), &wait), 3);
    assert_int_equal(wait, 0);
}

static void b19_local_refusals_are_no_samples(void **state) {
    (void)state;
    static struct hf_permit permits[64];
    struct hf_permit extra;
    struct hf_outcome outcome;
    make();
    for (int i = 0; i < 64; i++)
        assert_int_equal(hfi_downstream_enter(d, at(T0), &permits[i], &outcome), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(hfi_downstream_enter(d, at(T0), &extra, &outcome), HF_EREJECTED);
        assert_string_equal(outcome.error_type, "bulkhead.full");
    }
    assert_int_equal(hfi_downstream_enter(d, at(T0), &extra, NULL), HF_EREJECTED);
    assert_int_equal(hfi_downstream_allowance(d, at(T0), NULL), 0);
    assert_int_equal(view_at(T0).window_calls, 0);
    assert_int_equal(view_at(T0).state, HF_BREAKER_CLOSED);
    assert_int_equal(view_at(T0).in_flight, 64);
    hf_classify_http(200, NULL, 0, &outcome);
    for (int i = 0; i < 64; i++) {
        if (i % 2)
            hfi_downstream_give_back(d, at(T0), &permits[i]); /* R21 */
        else
            assert_int_equal(hfi_downstream_leave(d, at(T0 + 5), &permits[i], &outcome), 0);
        assert_int_equal(hfi_downstream_leave(d, at(T0 + 5), &permits[i], &outcome), HF_ESTATE);
    }
    assert_int_equal(view_at(T0).in_flight, 0);
    assert_int_equal(view_at(T0).attempts, 32);
}

/* B19: what the rate limit refuses is no sample, holds no place and no probe, and says exactly when to come back. */
static void b19_the_rate_limit_refuses(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hf_outcome outcome;
    int64_t wait_ms;
    options.rate_per_s = 4;
    options.rate_burst = 2;
    make();
    call(T0, NULL, 200);
    call(T0, NULL, 200);
    assert_int_equal(hfi_downstream_allowance(d, at(T0), &wait_ms), 0);
    assert_int_equal(wait_ms, 250);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(hfi_downstream_enter(d, at(T0 + 100500), &permit, &outcome), HF_EREJECTED);
    assert_string_equal(outcome.error_type, "rate.limited");
    assert_int_equal(outcome.retry_after_ms, 150); /* 149.5 rounded up: never early */
    assert_int_equal(outcome.sent, HF_SENT_NO);
    assert_int_equal(view_at(T0).window_calls, 2);
    assert_int_equal(view_at(T0).window_failures, 0);
    assert_int_equal(view_at(T0).in_flight, 0);
    assert_int_equal(view_at(T0).rejections, 1000);
    assert_int_equal(view_at(T0).rate_limited, 1000);
    assert_int_equal(hfi_downstream_allowance(d, at(T0 + S), &wait_ms), 2);
    assert_int_equal(hfi_downstream_enter(d, at(T0 + 250000), &permit, NULL), 0);
    assert_int_equal(hfi_downstream_enter(d, at(T0 + 250000), &permit, NULL), HF_EREJECTED);
    assert_int_equal(view_at(T0).in_flight, 1);
    hf_downstream_unref(d);
    options.rate_per_s = 1;
    options.rate_burst = 25; /* half open: the refused probe gives its slot back */
    make();
    for (int i = 0; i < 20; i++)
        call(T0, NULL, 500);
    for (int i = 0; i < 11; i++) {
        assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &permit, &outcome), 0);
        hfi_downstream_leave_as(d, at(T0 + 6 * S), &permit, HF_VERDICT_NEUTRAL);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &permit, &outcome), HF_EREJECTED);
        assert_string_equal(outcome.error_type, "rate.limited"); /* and not that all probes are under way */
    }
    assert_int_equal(view_at(T0 + 6 * S).probes_in_flight, 0);
}

/* J4: who is refused by the rate limit or the bulkhead, or given back, uses up nothing of the ramp. */
static void j4_who_is_refused_is_no_start_of_the_ramp(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hf_outcome outcome;
    options.rate_per_s = 1;
    options.rate_burst = 60;
    make();
    for (int i = 0; i < 20; i++)
        call(T0, NULL, 500);
    for (int i = 0; i < 3; i++)
        call(T0 + 6 * S, NULL, 200);
    assert_int_equal(view_at(T0 + 6 * S).state, HF_BREAKER_RAMP);
    for (int i = 0; i < 20; i++) { /* seven may start at first */
        assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &permit, &outcome), 0);
        hfi_downstream_give_back(d, at(T0 + 6 * S), &permit);
    }
    while (hfi_rate_take(&hfi_downstream_extra(d)->rate, at(T0 + 6 * S), &(int64_t){0})) {
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &permit, &outcome), HF_EREJECTED);
        assert_string_equal(outcome.error_type, "rate.limited"); /* and not breaker.ramp */
    }
    options.rate_per_s = 0;
    options.rate_burst = 0;
    options.bulkhead_max = 1;
    struct hf_policy *narrow;
    assert_int_equal(hf_policy_new(&options, &narrow, NULL), 0);
    assert_int_equal(hfi_downstream_reload(d, at(T0 + 6 * S), narrow), 0);
    hf_policy_unref(narrow);
    uint32_t term;
    assert_true(hfi_bulkhead_enter(&d->bulkhead, &d->breaker.shards, hfi_shards_mine(&d->breaker.shards), &term));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &permit, &outcome), HF_EREJECTED);
        assert_string_equal(outcome.error_type, "bulkhead.full");
    }
    hfi_bulkhead_leave(hfi_shards_mine(&d->breaker.shards), term);
    assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &permit, &outcome), 0);
    hfi_downstream_leave_as(d, at(T0 + 6 * S), &permit, HF_VERDICT_SUCCESS);
}

static void b19_a_full_bulkhead_gives_the_probe_back(void **state) {
    (void)state;
    struct hf_permit held, permit;
    struct hf_outcome outcome;
    options.bulkhead_max = 1;
    make();
    for (int i = 0; i < 20; i++)
        call(T0, NULL, 500);
    assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &held, &outcome), 0);
    assert_int_equal(hfi_downstream_enter(d, at(T0 + 6 * S), &permit, &outcome), HF_EREJECTED);
    assert_string_equal(outcome.error_type, "bulkhead.full");
    assert_int_equal(view_at(T0 + 6 * S).probes_in_flight, 1);
}

static void retry_after_gates_everybody(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hf_outcome outcome;
    make();
    call(T0, "10", 503);
    assert_int_equal(hfi_downstream_enter(d, at(T0 + S), &permit, &outcome), HF_EREJECTED);
    assert_string_equal(outcome.error_type, "downstream.gate");
    assert_in_range(outcome.retry_after_ms, 9001, 9002);
    assert_in_range(view_at(T0 + S).gate_for_ms, 9001, 9002);
    call(T0 + 11 * S, "100000", 429); /* a 429 without a limit key, capped */
    assert_in_range(view_at(T0 + 11 * S).gate_for_ms, 60000, 60002);
    hf_downstream_unref(d);
    options.gate_scope = HF_GATE_CALL;
    make();
    call(T0, "10", 503);
    assert_int_equal(view_at(T0).gate_for_ms, 0);
}

static void isolate_and_close_by_hand(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hf_downstream_view view = {.size = sizeof view};
    make();
    assert_int_equal(hf_downstream_isolate(d, 0, NULL), HF_EINVAL);
    assert_int_equal(hf_downstream_isolate(d, 0, ""), HF_EINVAL);
    assert_int_equal(hf_downstream_isolate(d, -1, "x"), HF_EINVAL);
    assert_int_equal(hf_downstream_isolate(d, 0, "maintenance"), 0);
    assert_non_null(strstr(logged.last, "isolated: maintenance"));
    assert_int_equal(hf_guard_enter(d, &permit, NULL), HF_EREJECTED);
    hf_downstream_look(d, &view);
    assert_int_equal(view.state, HF_BREAKER_ISOLATED);
    assert_int_equal(view.open_for_ms, INT64_MAX);
    assert_string_equal(view.reason, "maintenance");
    assert_int_equal(hf_downstream_close(d), 0);
    assert_int_equal(hf_guard_enter(d, &permit, NULL), 0);
    assert_int_equal(hf_guard_leave(d, &permit, HF_VERDICT_SUCCESS), 0);
    assert_int_equal(hf_guard_leave(d, &permit, HF_VERDICT_SUCCESS), HF_ESTATE);
    assert_int_equal(hf_guard_enter(NULL, &permit, NULL), HF_EINVAL);
}

static void older_views_get_what_they_know(void **state) {
    (void)state;
    struct {
        struct hf_downstream_view view;
        char after[8];
    } small;
    make();
    memset(&small, 0x5a, sizeof small);
    small.view.size = offsetof(struct hf_downstream_view, window_calls);
    hfi_downstream_view(d, at(T0), &small.view);
    assert_int_equal(small.view.size, offsetof(struct hf_downstream_view, window_calls));
    assert_int_equal(small.view.state, HF_BREAKER_CLOSED);
    assert_int_equal(small.view.window_calls, UINT64_C(0x5a5a5a5a5a5a5a5a));
}

static struct {
    int runs, fail_first;
    int status;
    bool silent;
    int64_t first_deadline_us;
} work;

static void worker(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    assert_ptr_equal(user, &work);
    if (work.runs++ == 0)
        work.first_deadline_us = deadline_us;
    if (work.silent)
        return;
    hf_classify_http(work.runs <= work.fail_first ? work.status : 200, NULL, 0, outcome);
}

static struct hf_outcome run(int fail_first, int status) {
    struct hf_outcome outcome;
    memset(&work, 0, sizeof work);
    work.fail_first = fail_first;
    work.status = status;
    assert_int_equal(hf_guard_run_with(d, &repeatable, worker, &outcome, &work), 0);
    return outcome;
}

static void guard_run_retries_and_counts(void **state) {
    (void)state;
    make();
    struct hf_mono before = hfi_mono_now();
    struct hf_outcome outcome = run(2, 503);
    assert_int_equal(outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(outcome.attempts, 3);
    assert_int_equal(outcome.retries, 2);
    assert_true(work.first_deadline_us >= before.us + 20 * S);
    assert_true(outcome.phases.total_us >= 0);
    outcome = run(99, 404);
    assert_int_equal(outcome.attempts, 1);
    assert_int_equal(outcome.klass, HF_CLASS_PERMANENT);
    outcome = run(99, 500);
    assert_int_equal(outcome.attempts, 4);
    assert_int_equal(outcome.kind, HF_OUTCOME_FAILURE);
    assert_int_equal(work.runs, 4);
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    assert_int_equal(view.attempts, 8);
    assert_int_equal(view.retries, 5);
    assert_int_equal(view.window_failures, 6); /* B29: a sample per attempt; the 404 is none */
    assert_int_equal(view.window_calls, 7);
}

static void s0_1_an_untouched_outcome_is_a_failure(void **state) {
    (void)state;
    struct hf_outcome outcome;
    make();
    memset(&work, 0, sizeof work);
    work.silent = true;
    assert_int_equal(hf_guard_run_with(d, &repeatable, worker, &outcome, &work), 0);
    assert_int_equal(outcome.kind, HF_OUTCOME_FAILURE);
    assert_string_equal(outcome.error_type, "guard.no_outcome");
    assert_int_equal(outcome.klass, HF_CLASS_TRANSIENT);
    assert_int_equal(work.runs, 4);
}

static void r9_r14_the_budget_refuses_visibly(void **state) {
    (void)state;
    options.budget_floor = 2;
    options.budget_ratio = 0;
    options.breaker_min_calls = 1000;
    make();
    struct hf_outcome outcome = run(99, 500);
    assert_int_equal(outcome.attempts, 3);
    assert_true(outcome.retry_refused);
    assert_string_equal(outcome.error_type, "http.500"); /* the underlying failure stays */
    assert_true(outcome.retry_after_ms >= 1);
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    assert_int_equal(view.retries_refused, 1);
    assert_int_equal(view.window_calls, 3); /* no sample for what was refused */
}

static void s0_30_open_ends_the_call_at_once(void **state) {
    (void)state;
    options.breaker_min_calls = 5; /* opens inside the second call (B29) */
    make();
    run(99, 500);
    struct hf_outcome outcome = run(99, 500);
    assert_int_equal(work.runs, 1);
    assert_int_equal(outcome.kind, HF_OUTCOME_FAILURE); /* what it saw stays, for later */
    assert_string_equal(outcome.error_type, "http.500");
    assert_int_equal(outcome.retry, HF_RETRY_LATER);
    assert_true(outcome.retry_after_ms > 1000);
    assert_int_equal(outcome.attempts, 1);
    outcome = run(99, 500);
    assert_int_equal(work.runs, 0);
    assert_string_equal(outcome.error_type, "breaker.open");
    assert_int_equal(outcome.attempts, 0);
    assert_true(outcome.retry_after_ms >= 1);
}

static void a1_what_does_not_fit_returns_now(void **state) {
    (void)state;
    options.connect_timeout_ms = options.attempt_timeout_ms = 10;
    options.total_timeout_ms = 60;
    make();
    struct hf_permit permit;
    struct hf_outcome outcome;
    assert_int_equal(hf_guard_enter(d, &permit, &outcome), 0);
    hf_classify_http(503, "100", 0, &outcome);
    assert_int_equal(hfi_downstream_leave(d, hfi_mono_now(), &permit, &outcome), 0);
    outcome = run(0, 0);
    assert_string_equal(outcome.error_type, "downstream.gate");
    assert_int_equal(work.runs, 0);
}

static void blocking_is_refused_on_a_loop_thread(void **state) {
    (void)state;
    struct hf_outcome outcome;
    make();
    memset(&work, 0, sizeof work);
    hfi_thread_must_not_block(true);
    assert_int_equal(hf_guard_run(d, worker, &outcome, &work), HF_EDEADLK);
    hfi_thread_must_not_block(false);
    assert_int_equal(work.runs, 0);
    assert_int_equal(hf_guard_run(d, NULL, &outcome, NULL), HF_EINVAL);
}

static struct hf_policy *policy_now(void) {
    struct hf_policy *policy;
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    return policy;
}

/* A guard may still wait in the queue it began with: whoever leaves has to look for it (R21). */
static void a_queue_that_is_reloaded_away_is_still_served(void **state) {
    (void)state;
    make();
    assert_false(d->queues);
    for (uint32_t queue = 5;; queue = 0) {
        options.bulkhead_queue = queue;
        struct hf_policy *policy = policy_now();
        assert_int_equal(hfi_downstream_reload(d, at(T0), policy), 0);
        hf_policy_unref(policy);
        assert_true(d->queues);
        if (queue == 0)
            break;
    }
}

/* F2, R16, V15: limits, budget and breaker change at run time; the calls under way and the state go on. */
static void f2_r16_reload_at_run_time(void **state) {
    (void)state;
    struct hf_permit held[3], permit;
    make();
    for (int i = 0; i < 3; i++)
        assert_int_equal(hfi_downstream_enter(d, at(T0), &held[i], NULL), 0);
    for (int i = 0; i < 5; i++)
        call(T0, NULL, 500);
    const struct hf_policy *old = hfi_downstream_policy(d);
    options.bulkhead_max = 2;
    options.budget_floor = 1;
    options.budget_ratio = 0;
    options.breaker_min_calls = 10;
    struct hf_policy *policy = policy_now();
    assert_int_equal(hfi_downstream_reload(d, at(T0), policy), 0);
    assert_int_equal(hfi_downstream_reload(d, at(T0), policy), 0); /* the same again */
    hf_policy_unref(policy);
    assert_int_equal(old->options.bulkhead_max, 64); /* still there for who began with it */
    assert_int_equal(view_at(T0).window_failures, 5);
    assert_int_equal(hfi_downstream_enter(d, at(T0), &permit, NULL), HF_EREJECTED); /* three in flight, two allowed */
    for (int i = 0; i < 2; i++)
        assert_int_equal(hfi_downstream_leave_as(d, at(T0), &held[i], HF_VERDICT_SUCCESS), 0);
    assert_int_equal(hfi_downstream_enter(d, at(T0), &permit, NULL), 0);
    assert_int_equal(hfi_downstream_leave_as(d, at(T0), &permit, HF_VERDICT_SUCCESS), 0);
    assert_int_equal(hfi_downstream_leave_as(d, at(T0), &held[2], HF_VERDICT_SUCCESS), 0);
    assert_true(hfi_budget_take(&d->budget, at(T0)));
    assert_false(hfi_budget_take(&d->budget, at(T0))); /* R16: the new floor */
    options.budget_window_ms = 5000;
    options.breaker_window_ms = 120000;
    for (long nth = 1;; nth++) { /* all or nothing */
        policy = policy_now();
        hfi_alloc_fail(nth, 0);
        int code = hfi_downstream_reload(d, at(T0), policy);
        hfi_alloc_fail(0, 0);
        hf_policy_unref(policy);
        if (code == 0)
            break;
        assert_int_equal(code, HF_ENOMEM);
        assert_int_equal(hfi_downstream_policy(d)->options.breaker_window_ms, 60000);
        assert_int_equal(view_at(T0).window_failures, 5);
        assert_false(hfi_budget_take(&d->budget, at(T0)));
    }
    assert_int_equal(hfi_downstream_policy(d)->options.breaker_window_ms, 120000);
    assert_int_equal(view_at(T0).window_failures, 0);
    assert_true(hfi_budget_take(&d->budget, at(T0)));
    assert_int_equal(hf_downstream_reload(d, NULL), HF_EINVAL);
    assert_true(hfi_downstream_adds_up(d));
}

static int64_t recent_at(int64_t us) {
    return hfi_downstream_recent(d, at(us), 950, 1);
}

/* What every hedged call asks is worked out once in a sixteenth of the window, and follows all the same. */
static void a_recent_quantile_is_kept_for_a_moment(void **state) {
    (void)state;
    options.breaker_window_ms = 160000;
    make();
    assert_int_equal(recent_at(T0), -1); /* from here on they are counted */
    hfi_histogram_add_many(&d->histogram, 10000, 100);
    assert_in_range(recent_at(T0), 10000, 11000); /* that nothing is known is not kept */
    hfi_histogram_add_many(&d->histogram, 500000, 1000);
    assert_in_range(recent_at(T0), 10000, 11000);
    assert_in_range(recent_at(T0 + 10 * S - 1), 10000, 11000);
    assert_in_range(recent_at(T0 + 10 * S), 500000, 532000);
    assert_true(hfi_downstream_recent(d, at(T0 + 10 * S), 10, 1) <= 11000); /* another question */
    hfi_histogram_add_many(&d->histogram, 1000, 100);
    assert_int_equal(recent_at(T0 + 400 * S), -1); /* nobody asked for two windows */
}

static int heard;
static void hear(const struct hfi_breaker_event *event, void *user) {
    assert_ptr_equal(user, &heard);
    assert_int_equal(event->to, HF_BREAKER_OPEN);
    heard++;
}

static void one_observer_besides_the_log(void **state) {
    (void)state;
    make();
    heard = 0;
    struct hfi_watch watch = {hear, &heard};
    atomic_store(&d->watch, &watch);
    for (int i = 0; i < 20; i++)
        call(T0, NULL, 500);
    assert_int_equal(heard, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(names_are_checked),
        TEST(s0_30_open_refuses_and_logs),
        TEST(b19_local_refusals_are_no_samples),
        TEST(b19_the_rate_limit_refuses),
        TEST(b19_a_full_bulkhead_gives_the_probe_back),
        TEST(j4_who_is_refused_is_no_start_of_the_ramp),
        TEST(retry_after_gates_everybody),
        TEST(isolate_and_close_by_hand),
        TEST(older_views_get_what_they_know),
        TEST(guard_run_retries_and_counts),
        TEST(s0_1_an_untouched_outcome_is_a_failure),
        TEST(r9_r14_the_budget_refuses_visibly),
        TEST(s0_30_open_ends_the_call_at_once),
        TEST(a1_what_does_not_fit_returns_now),
        TEST(blocking_is_refused_on_a_loop_thread),
        TEST(a_queue_that_is_reloaded_away_is_still_served),
        TEST(f2_r16_reload_at_run_time),
        TEST(a_recent_quantile_is_kept_for_a_moment),
        TEST(one_observer_besides_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
