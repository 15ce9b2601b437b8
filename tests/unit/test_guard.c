/* SPDX-License-Identifier: MIT */
/* hf_guard_run_with on one thread and its options: R8, R19, A1, B19, B28, S0.1, S0.30; injected faults. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "holdfast/classify.h"
#include "holdfast/log.h"
#include "resilience/downstream.h"

static struct hf_policy_options policy;
static struct hf_guard_options options;
static struct hf_downstream *d;

static int set_up(void **state) {
    (void)state;
    hf_policy_options_init(&policy);
    hf_guard_options_init(&options);
    policy.retry_base_ms = policy.retry_cap_ms = 1;
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_guard_cancel_free(options.cancel);
    hf_downstream_unref(d);
    d = NULL;
    return 0;
}

static void make(void) {
    struct hf_policy *frozen;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_policy_new(&policy, &frozen, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    assert_int_equal(hf_downstream_new("peer", frozen, &d, &error), 0);
    hf_policy_unref(frozen);
}

static struct hf_downstream_view look(void) {
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    return view;
}

/* What the guarded function does, once for each run. */
static struct work {
    int runs, fail_first, number; /* the first so many end with this errno, the others well */
    bool fires;                   /* it fires the cancel itself */
    struct hf_policy *reloads;    /* it puts this one in the place of the downstream's; NULL: none */
    int64_t deadline_us;
} work;

static void worker(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    struct work *w = user;
    w->runs++;
    w->deadline_us = deadline_us;
    if (w->fires)
        hf_guard_cancel_fire(options.cancel);
    if (w->reloads)
        assert_int_equal(hf_downstream_reload(d, w->reloads), 0);
    hf_classify_errno(w->runs <= w->fail_first ? w->number : 0, outcome);
}

static struct hf_outcome run(int fail_first, int number) {
    struct hf_outcome outcome;
    bool fires = work.fires;
    work = (struct work){.fail_first = fail_first, .number = number, .fires = fires};
    assert_int_equal(hf_guard_run_with(d, &options, worker, &outcome, &work), 0);
    work.fires = false;
    return outcome;
}

/* R19: without a word from the caller only proof of not sent lets a function run twice. */
static void r19_repeated_only_when_safe(void **state) {
    (void)state;
    make();
    struct hf_outcome outcome = run(1, ECONNRESET); /* maybe sent */
    assert_int_equal(work.runs, 1);
    assert_int_equal(outcome.kind, HF_OUTCOME_FAILURE);
    outcome = run(1, ECONNREFUSED); /* not sent */
    assert_int_equal(work.runs, 2);
    assert_int_equal(outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(outcome.retries, 1);
    options.repeatable = true;
    run(1, ECONNRESET);
    assert_int_equal(work.runs, 2);
    options.no_retry = true;
    run(1, ECONNREFUSED);
    assert_int_equal(work.runs, 1);
    struct hf_outcome plain;
    work = (struct work){.fail_first = 1, .number = ECONNRESET};
    assert_int_equal(hf_guard_run(d, worker, &plain, &work), 0);
    assert_int_equal(work.runs, 1);
}

static void options_are_checked(void **state) {
    (void)state;
    struct hf_outcome outcome;
    make();
    options.total_timeout_ms = -1;
    assert_int_equal(hf_guard_run_with(d, &options, worker, &outcome, &work), HF_EINVAL);
    options.total_timeout_ms = 0;
    options.deadline_us = -1;
    assert_int_equal(hf_guard_run_with(d, &options, worker, &outcome, &work), HF_EINVAL);
    options.deadline_us = 0;
    options.size = 0;
    assert_int_equal(hf_guard_run_with(d, &options, worker, &outcome, &work), HF_EINVAL);
    options.size = offsetof(struct hf_guard_options, no_retry); /* an older caller */
    options.no_retry = true;
    run(1, ECONNREFUSED);
    assert_int_equal(work.runs, 2);
}

/* A reload between two of its attempts: it waits and tries again by what it began with. */
static void a_guard_keeps_the_policy_it_began_with(void **state) {
    (void)state;
    struct hf_outcome outcome;
    make();
    policy.allow_truncated = true;
    policy.retry_max = 0;
    policy.retry_jitter = HF_JITTER_NONE;
    policy.retry_base_ms = policy.retry_cap_ms = 5000; /* too long for the total of the guard */
    options.total_timeout_ms = 4500;
    work = (struct work){.fail_first = 2, .number = ECONNREFUSED};
    assert_int_equal(hf_policy_new(&policy, &work.reloads, NULL), 0);
    assert_int_equal(hf_guard_run_with(d, &options, worker, &outcome, &work), 0);
    assert_int_equal(work.runs, 3);
    assert_int_equal(outcome.kind, HF_OUTCOME_SUCCESS);
    struct work after = {.fail_first = 2, .number = ECONNREFUSED};
    assert_int_equal(hf_guard_run_with(d, &options, worker, &outcome, &after), 0);
    assert_int_equal(outcome.attempts, 1);
    hf_policy_unref(work.reloads);
}

/* Of an older caller's struct nothing is read beyond its size. */
static void what_is_not_there_is_not_read(void **state) {
    (void)state;
    struct hf_outcome outcome;
    uint32_t *shortest = malloc(sizeof *shortest); /* to its byte, for AddressSanitizer */
    assert_non_null(shortest);
    make();
    *shortest = offsetof(struct hf_guard_options, repeatable);
    work = (struct work){0};
    assert_int_equal(hf_guard_run_with(d, (const struct hf_guard_options *)(void *)shortest, worker, &outcome, &work), 0);
    assert_int_equal(outcome.kind, HF_OUTCOME_SUCCESS);
    free(shortest);
    options.size = offsetof(struct hf_guard_options, repeatable);
    options.total_timeout_ms = options.deadline_us = -1; /* wrong, if they were its */
    run(0, 0);
    assert_int_equal(work.runs, 1);
    options.size = 1;
    assert_int_equal(hf_guard_run_with(d, &options, worker, &outcome, &work), HF_EINVAL);
}

static void the_deadline_is_the_nearest_limit(void **state) {
    (void)state;
    make();
    int64_t before_us = hfi_mono_now().us;
    run(0, 0);
    assert_in_range(work.deadline_us, before_us + 20000000, hfi_mono_now().us + 20000000);
    options.total_timeout_ms = 5000;
    before_us = hfi_mono_now().us;
    run(0, 0);
    assert_in_range(work.deadline_us, before_us + 5000000, hfi_mono_now().us + 5000000);
    options.deadline_us = before_us + 3000000;
    run(0, 0);
    assert_int_equal(work.deadline_us, before_us + 3000000);
    options.total_timeout_ms = INT64_MAX;
    options.deadline_us = INT64_MAX;
    before_us = hfi_mono_now().us;
    run(0, 0);
    assert_in_range(work.deadline_us, before_us + 20000000, hfi_mono_now().us + 20000000);
    options.deadline_us = 1; /* long over: nothing runs */
    struct hf_outcome outcome = run(0, 0);
    assert_int_equal(work.runs, 0);
    assert_string_equal(outcome.error_type, "timeout.total");
    assert_int_equal(outcome.sent, HF_SENT_NO);
    assert_int_equal(look().window_failures, 0);
}

/* An outer guard's deadline given on: no inner limit reaches beyond it. */
static int64_t inner_us;
static void inner(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    (void)user;
    inner_us = deadline_us;
    hf_classify_errno(0, outcome);
}
static void outer(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    struct hf_guard_options nested;
    (void)user;
    hf_guard_options_init(&nested);
    nested.deadline_us = deadline_us;
    if (hf_guard_run_with(d, &nested, inner, outcome, NULL) != 0)
        hf_classify_errno(EIO, outcome);
}
static void guards_nest(void **state) {
    (void)state;
    struct hf_outcome outcome;
    make();
    options.total_timeout_ms = 2000;
    int64_t before_us = hfi_mono_now().us;
    assert_int_equal(hf_guard_run_with(d, &options, outer, &outcome, NULL), 0);
    assert_int_equal(outcome.kind, HF_OUTCOME_SUCCESS);
    assert_in_range(inner_us, before_us + 2000000, hfi_mono_now().us + 2000000);
    assert_int_equal(look().in_flight, 0);
    assert_int_equal(look().attempts, 2);
}

static void own_rules_overrule(void **state) {
    (void)state;
    struct hf_rule rule;
    make();
    hf_rule_init(&rule);
    rule.name = "stale";
    rule.error_type = "errno.ESTALE";
    rule.decides = HF_RULE_CLASS;
    rule.klass = HF_CLASS_PERMANENT;
    options.rules = &rule;
    options.rule_count = 1;
    options.repeatable = true;
    assert_int_equal(hf_rules_check(&rule, 1, NULL), 0);
    struct hf_outcome outcome = run(9, ESTALE);
    assert_int_equal(outcome.klass, HF_CLASS_PERMANENT);
    assert_string_equal(outcome.rule, "rule.stale");
    assert_int_equal(work.runs, 1);
}

/* ------------------------------------------------------------------ cancel */

/* R8, B28: fired before it begins: nothing runs, and nothing is counted. */
static void r8_b28_cancelled_before_it_begins(void **state) {
    (void)state;
    make();
    options.cancel = hf_guard_cancel_new();
    assert_false(hf_guard_cancel_fired(options.cancel));
    assert_false(hf_guard_cancel_fired(NULL));
    hf_guard_cancel_fire(NULL);
    hf_guard_cancel_fire(options.cancel);
    hf_guard_cancel_fire(options.cancel); /* twice is once */
    assert_true(hf_guard_cancel_fired(options.cancel));
    struct hf_outcome outcome = run(0, 0);
    assert_int_equal(work.runs, 0);
    assert_string_equal(outcome.error_type, "call.cancelled");
    assert_int_equal(outcome.kind, HF_OUTCOME_NEUTRAL);
    assert_int_equal(outcome.sent, HF_SENT_NO);
    assert_int_equal(look().window_calls, 0);
}

/* Fired while the function runs: what it reports counts, but it is not run again, and no retry is paid for. */
static void b28_cancelled_while_it_runs(void **state) {
    (void)state;
    make();
    options.cancel = hf_guard_cancel_new();
    options.repeatable = true;
    work.fires = true;
    struct hf_outcome outcome = run(9, ECONNRESET);
    assert_int_equal(work.runs, 1);
    assert_string_equal(outcome.error_type, "call.cancelled");
    assert_non_null(strstr(outcome.message, "errno.ECONNRESET"));
    assert_int_equal(outcome.sent, HF_SENT_MAYBE);
    assert_int_equal(outcome.attempts, 1);
    assert_int_equal(outcome.retries, 0);
    assert_int_equal(look().retries, 0);
    assert_int_equal(look().in_flight, 0);
}

static void b28_a_success_stays_one(void **state) {
    (void)state;
    make();
    options.cancel = hf_guard_cancel_new();
    work.fires = true;
    struct hf_outcome outcome = run(0, 0);
    assert_int_equal(outcome.kind, HF_OUTCOME_SUCCESS);
}

/* ------------------------------------------------------------------ rate limit */

/* A1: a token that comes too late is not waited for; without a queue none is. */
static void b19_a1_the_rate_limit(void **state) {
    (void)state;
    policy.rate_per_s = 0.001;
    make();
    run(0, 0);
    struct hf_outcome outcome = run(0, 0);
    assert_int_equal(work.runs, 0);
    assert_string_equal(outcome.error_type, "rate.limited");
    assert_in_range(outcome.retry_after_ms, 900000, 1000000);
    hf_downstream_unref(d);
    policy.bulkhead_queue = 5;
    make();
    run(0, 0);
    outcome = run(0, 0); /* 1000 s do not fit into 90 */
    assert_int_equal(work.runs, 0);
    assert_string_equal(outcome.error_type, "rate.limited");
    assert_int_equal(look().window_calls, 1);
    hf_downstream_unref(d);
    policy.rate_per_s = 200;
    policy.rate_burst = 1;
    make();
    int64_t before_us = hfi_mono_now().us;
    for (int i = 0; i < 6; i++)
        assert_int_equal(run(0, 0).kind, HF_OUTCOME_SUCCESS); /* each waits for its token */
    assert_true(hfi_mono_now().us - before_us >= 25000);
}

/* ------------------------------------------------------------------ faults */

static void inject(enum hf_fault_kind kind, int status, int64_t delay_ms) {
    struct hf_fault fault;
    struct hf_error error;
    hf_error_init(&error);
    hf_fault_init(&fault, kind);
    fault.status = status;
    fault.delay_ms = delay_ms;
    if (hf_downstream_inject(d, &fault, 1, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
}

static void faults_look_like_the_real_thing(void **state) {
    (void)state;
    policy.allow_fault_injection = true;
    policy.connect_timeout_ms = policy.attempt_timeout_ms = 20;
    make();
    inject(HF_FAULT_STATUS, 503, 0);
    struct hf_outcome outcome = run(0, 0);
    assert_string_equal(outcome.error_type, "http.503");
    assert_string_equal(outcome.message, "injected fault: status");
    assert_int_equal(outcome.sent, HF_SENT_YES);
    inject(HF_FAULT_RESET, 0, 0);
    outcome = run(0, 0);
    assert_string_equal(outcome.error_type, "errno.ECONNRESET");
    assert_string_equal(outcome.message, "injected fault: reset");
    inject(HF_FAULT_DROP, 0, 0);
    outcome = run(0, 0);
    assert_string_equal(outcome.error_type, "timeout.attempt");
    assert_string_equal(outcome.message, "injected fault: drop");
    assert_true(outcome.phases.total_us >= 20000);
    assert_int_equal(work.runs, 0);
    assert_int_equal(look().faults, 3);
    assert_int_equal(look().window_failures, 3);
    inject(HF_FAULT_DELAY, 0, 5);
    outcome = run(0, 0);
    assert_int_equal(outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(work.runs, 1);
    assert_true(outcome.phases.total_us >= 5000);
    inject(HF_FAULT_DELAY, 0, 50);
    outcome = run(0, 0);
    assert_string_equal(outcome.error_type, "timeout.attempt"); /* longer than the limit: it never came to run */
    assert_int_equal(work.runs, 0);
    options.total_timeout_ms = 5;
    inject(HF_FAULT_DROP, 0, 0);
    assert_string_equal(run(0, 0).error_type, "timeout.total");
    options.total_timeout_ms = 0;
    assert_int_equal(hf_downstream_inject(d, NULL, 0, NULL), 0);
    assert_int_equal(run(0, 0).kind, HF_OUTCOME_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(r19_repeated_only_when_safe),
        TEST(options_are_checked),
        TEST(a_guard_keeps_the_policy_it_began_with),
        TEST(what_is_not_there_is_not_read),
        TEST(the_deadline_is_the_nearest_limit),
        TEST(guards_nest),
        TEST(own_rules_overrule),
        TEST(r8_b28_cancelled_before_it_begins),
        TEST(b28_cancelled_while_it_runs),
        TEST(b28_a_success_stays_one),
        TEST(b19_a1_the_rate_limit),
        TEST(faults_look_like_the_real_thing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
