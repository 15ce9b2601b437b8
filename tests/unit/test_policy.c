/* SPDX-License-Identifier: MIT */
/* Policies and the ladder check: S0.6, S0.11, S0.28, S0.29, S0.31, R6, W12 and the V lines by their numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "resilience/policy.h"

static struct {
    int count;
    char rule[16][64], key[16][64], why[16][512];
    bool is_error[16];
} found;

static void note(const struct hf_finding *finding, void *user) {
    assert_ptr_equal(user, &found);
    assert_true(finding->rule[0] && finding->key[0] && finding->why[0] && finding->fix[0]);
    if (found.count < 16) {
        snprintf(found.rule[found.count], 64, "%s", finding->rule);
        snprintf(found.key[found.count], 64, "%s", finding->key);
        snprintf(found.why[found.count], 512, "%s", finding->why);
        found.is_error[found.count] = finding->is_error;
    }
    found.count++;
}

static int check(const struct hf_policy_options *options) {
    memset(&found, 0, sizeof found);
    return hf_policy_check(options, note, &found);
}

static void s0_28_defaults_fit(void **state) {
    (void)state;
    struct hf_policy_options o;
    hf_policy_options_init(&o);
    assert_int_equal(o.attempt_timeout_ms, 20000);
    assert_int_equal(o.total_timeout_ms, 90000);
    assert_int_equal(o.retry_max, 3);
    assert_int_equal(o.retry_base_ms, 500);
    assert_int_equal(o.connect_timeout_ms, 5000);
    assert_int_equal(check(&o), 0);
    assert_int_equal(found.count, 0);
    /* R6, V2: 4 × 20 s + 0.5 + 1 + 2 s = 83.5 s is the edge; the waits count. */
    o.total_timeout_ms = 83500;
    assert_int_equal(check(&o), 0);
    o.total_timeout_ms = 83499;
    assert_int_equal(check(&o), 1);
    assert_string_equal(found.rule[0], "ladder.truncated");
    assert_non_null(strstr(found.why[0], "83500ms"));
    assert_non_null(strstr(found.why[0], "try 4 of 4"));
}

static void s0_31_the_truncated_profile(void **state) {
    (void)state;
    struct hf_policy_options o;
    hf_policy_options_init(&o);
    o.attempt_timeout_ms = 15000;
    o.total_timeout_ms = 50000;
    assert_int_equal(check(&o), 1);
    assert_string_equal(found.rule[0], "ladder.truncated");
    assert_string_equal(found.key[0], "total_timeout");
    o.allow_truncated = true;
    assert_int_equal(check(&o), 0);
    assert_int_equal(found.count, 1);
    assert_false(found.is_error[0]);
    o.total_timeout_ms = 40000; /* 3 × 15 + 1.5 s: the fourth is not even begun */
    check(&o);
    assert_non_null(strstr(found.why[0], "try 3 of 4"));
}

/* One option at a time off its range: exactly the rule that names it. */
#define BREAK(field, value, rule_id, key_name, errors)                                                                 \
    do {                                                                                                               \
        struct hf_policy_options o;                                                                                    \
        hf_policy_options_init(&o);                                                                                    \
        o.field = value;                                                                                               \
        int got = check(&o);                                                                                           \
        if (got != (errors) || found.count < 1 || strcmp(found.rule[0], rule_id) != 0 ||                               \
            strcmp(found.key[0], key_name) != 0)                                                                       \
            fail_msg("%s = %s: %d errors, %s at %s: %s", #field, #value, got, found.rule[0], found.key[0],             \
                     found.why[0]);                                                                                    \
    } while (0)

static void every_limit_has_its_rule(void **state) {
    (void)state;
    BREAK(connect_timeout_ms, 0, "ladder.range", "connect_timeout", 1);
    BREAK(connect_timeout_ms, 20001, "ladder.order", "connect_timeout", 1); /* V1 */
    BREAK(attempt_timeout_ms, -1, "ladder.range", "attempt_timeout", 1);
    BREAK(attempt_timeout_ms, INT64_MAX, "ladder.range", "attempt_timeout", 1);
    BREAK(total_timeout_ms, 19000, "ladder.order", "attempt_timeout", 1);
    BREAK(total_timeout_ms, INT64_MAX, "ladder.range", "total_timeout", 1);
    BREAK(retry_backoff, (enum hf_backoff)9, "retry.backoff", "retry.backoff", 1);
    BREAK(retry_backoff, HF_BACKOFF_TABLE, "retry.table", "retry.table", 1);
    BREAK(retry_jitter, (enum hf_jitter)9, "retry.jitter", "retry.jitter", 1);
    BREAK(retry_max, 101, "retry.max", "retry.max", 1);
    BREAK(retry_base_ms, 5001, "retry.base", "retry.base", 2); /* V7: and it makes the sum too long */
    BREAK(retry_cap_ms, 5001, "retry.cap", "retry.cap", 1); /* S0.11 */
    BREAK(retry_factor, 0.99, "retry.factor", "retry.factor", 1); /* V7 */
    BREAK(retry_factor, NAN, "retry.factor", "retry.factor", 1);
    BREAK(retry_jitter_factor, 1.1, "retry.jitter", "retry.jitter", 1);
    BREAK(retry_table_length, 17, "retry.table", "retry.table", 1);
    BREAK(budget_ratio, -0.1, "budget.ratio", "budget.ratio", 1); /* V10 */
    BREAK(budget_window_ms, 0, "ladder.range", "budget.window", 1);
    BREAK(hedge_delay_ms, 0, "ladder.range", "hedge.delay", 1);
    BREAK(breaker_window_ms, 39999, "breaker.window", "breaker.window", 1); /* V3:  S0.29 */
    BREAK(breaker_lease_ms, 19999, "breaker.lease", "breaker.lease", 1); /* V4 */
    BREAK(breaker_ratio, 0, "breaker.ratio", "breaker.ratio", 1); /* V5 */
    BREAK(breaker_ratio, 1.01, "breaker.ratio", "breaker.ratio", 1);
    BREAK(breaker_ratio, NAN, "breaker.ratio", "breaker.ratio", 1);
    BREAK(breaker_min_calls, 0, "breaker.min_calls", "breaker.min_calls", 1);
    BREAK(declared_rate, 0.3, "breaker.min_calls", "breaker.min_calls", 0); /* V6 */
    BREAK(declared_rate, -1, "breaker.rate", "declared_rate", 1);
    BREAK(breaker_slow_ratio, 0.5, "breaker.slow_after", "breaker.slow_after", 1);
    BREAK(breaker_slow_ratio, 1.5, "breaker.slow_ratio", "breaker.slow_ratio", 2);
    BREAK(breaker_slices, 9, "breaker.slices", "breaker.slices", 1); /* F3 */
    BREAK(breaker_slices, 61, "breaker.slices", "breaker.slices", 1);
    BREAK(latency, (enum hf_latency)2, "latency", "latency", 1);
    BREAK(breaker_probes, 0, "breaker.probes", "breaker.probes", 2);
    BREAK(breaker_probes, 17, "breaker.probes", "breaker.probes", 1);
    BREAK(breaker_tolerated, 3, "breaker.tolerated", "breaker.tolerated", 1);
    BREAK(breaker_break_ms, 60001, "breaker.break", "breaker.break", 1);
    BREAK(breaker_break_ms, 0, "ladder.range", "breaker.break", 1);
    BREAK(breaker_break_factor, 0.5, "breaker.break_factor", "breaker.break_factor", 1);
    BREAK(breaker_break_jitter, 2, "breaker.break_jitter", "breaker.break_jitter", 1);
    BREAK(give_up_after_ms, 60000, "breaker.horizon", "give_up_after", 1); /* V9 */
    BREAK(breaker_ramp_ms, -1, "ladder.range", "breaker.ramp", 1);
    BREAK(bulkhead_max, 0, "bulkhead.max", "bulkhead.max", 1);
    BREAK(rate_per_s, -1, "rate.limit", "rate.limit", 1);
    BREAK(rate_per_s, NAN, "rate.limit", "rate.limit", 1);
    BREAK(rate_per_s, INFINITY, "rate.limit", "rate.limit", 1);
    BREAK(rate_per_s, 1000000.5, "rate.limit", "rate.limit", 1);
    BREAK(rate_per_s, 1e-9, "rate.burst", "rate.burst", 1); /* not one a year */
    BREAK(rate_burst, 5, "rate.burst", "rate.burst", 1);    /* a burst without a limit */
    BREAK(on_open, (enum hf_on_open)5, "on_open", "on_open", 1);
    BREAK(gate_scope, (enum hf_gate_scope)5, "retry_after.scope", "retry_after.scope", 1);
}

/* V2, V11, R6: hedges take time within their try, and must be able to start within the total. */
static void hedges(void **state) {
    (void)state;
    struct hf_policy_options o;
    hf_policy_options_init(&o);
    o.hedge_max = 1;
    o.total_timeout_ms = 91500; /* 4 × (20 s + 2 s) + 0.5 s + 1 s + 2 s */
    assert_int_equal(check(&o), 0);
    assert_int_equal(found.count, 0);
    o.total_timeout_ms = 91499;
    assert_int_equal(check(&o), 1);
    assert_string_equal(found.rule[0], "ladder.truncated");
    assert_non_null(strstr(found.why[0], "4 attempts of 22s with their hedges"));
    o.total_timeout_ms = 90000 + 80000;
    o.hedge_p95 = true; /* may come to the attempt's limit */
    assert_int_equal(check(&o), 0);
    o.total_timeout_ms = 163499;
    assert_int_equal(check(&o), 1);
    o.hedge_p95 = false;
    o.retry_max = 0;
    o.hedge_max = 4;
    o.hedge_delay_ms = 25000;
    o.total_timeout_ms = 100000;
    assert_int_equal(check(&o), 0); /* 4 × 25 s; but at the latest when the one before has failed */
    o.hedge_delay_ms = 25001;
    assert_int_equal(check(&o), 1);
    assert_string_equal(found.rule[0], "hedge.delay");
    o.hedge_max = HF_HEDGE_MAX + 1;
    o.total_timeout_ms = 1000000;
    assert_int_equal(check(&o), 1);
    assert_string_equal(found.rule[0], "hedge.max");
    hf_policy_options_init(&o);
    o.hedge_max = 1;
    o.retry_max = 0;
    o.budget_floor = 0;
    o.budget_ratio = 0;
    assert_int_equal(check(&o), 0);
    assert_int_equal(found.count, 1); /* only a warning: R18 */
    assert_string_equal(found.rule[0], "hedge.budget");
}

static void combinations(void **state) {
    (void)state;
    struct hf_policy_options o;
    hf_policy_options_init(&o);
    o.budget_floor = 0; /* V10 */
    o.budget_ratio = 0;
    assert_int_equal(check(&o), 1);
    assert_string_equal(found.rule[0], "budget.empty");
    o.retry_max = 0; /* no retries, no need of a budget */
    assert_int_equal(check(&o), 0);

    hf_policy_options_init(&o);
    o.breaker_slow_ratio = 0.5; /* V14 */
    o.breaker_slow_after_ms = 20000;
    assert_int_equal(check(&o), 0);
    assert_string_equal(found.rule[0], "breaker.slow_after");

    hf_policy_options_init(&o);
    o.connect_timeout_ms = o.attempt_timeout_ms = 500;
    o.total_timeout_ms = 4000;
    assert_int_equal(check(&o), 2); /* cap 5 s ≥ total 4 s, and the sum of 2 + 3.5 s */
    assert_string_equal(found.rule[0], "retry.cap");
    assert_string_equal(found.rule[1], "ladder.truncated");
    o.retry_max = 0;
    assert_int_equal(check(&o), 0);

    hf_policy_options_init(&o);
    o.rate_per_s = 10;
    o.declared_rate = 20;
    assert_int_equal(check(&o), 0);
    assert_string_equal(found.rule[0], "rate.declared");
    assert_false(found.is_error[0]);
    o.rate_burst = UINT32_MAX;
    assert_int_equal(check(&o), 1); /* 4 billion at 10/s fill for 13 years */
    o.rate_per_s = 1000000;
    assert_int_equal(check(&o), 0);

    hf_policy_options_init(&o);
    o.retry_backoff = HF_BACKOFF_TABLE;
    o.retry_table_length = 2;
    o.retry_table_ms[0] = 100;
    o.retry_table_ms[1] = 5001;
    o.total_timeout_ms = 100000;
    assert_int_equal(check(&o), 1);
    assert_string_equal(found.rule[0], "retry.table");
}

static void policy_new_tells_the_first_error(void **state) {
    (void)state;
    struct hf_policy_options o;
    struct hf_policy *policy = NULL;
    struct hf_error error;
    hf_error_init(&error);
    hf_policy_options_init(&o);
    o.breaker_window_ms = 30000;
    o.bulkhead_max = 0;
    assert_int_equal(hf_policy_new(&o, &policy, &error), HF_ECONFIG);
    assert_null(policy);
    assert_string_equal(error.what, "breaker.window");
    assert_non_null(strstr(error.why, "30s"));
    assert_int_equal(hf_policy_new(&o, &policy, NULL), HF_ECONFIG);
    assert_int_equal(hf_policy_new(NULL, &policy, &error), HF_EINVAL);
    o.size = 0;
    assert_int_equal(hf_policy_new(&o, &policy, &error), HF_EINVAL);
    assert_int_equal(hf_policy_check(NULL, NULL, NULL), HF_EINVAL);
}

static void frozen_with_its_rules(void **state) {
    (void)state;
    struct hf_policy_options o;
    struct hf_policy *policy;
    struct hf_error error;
    hf_error_init(&error);
    hf_policy_options_init(&o);
    o.breaker_ratio = 0.0001; /* never so small that nothing reaches it */
    assert_int_equal(hf_policy_new(&o, &policy, &error), 0);
    o.retry_max = 77;
    assert_int_equal(policy->options.retry_max, 3);
    assert_int_equal(policy->backstop_ms, 120000); /* S0.28: the hard cap lies above the total */
    assert_int_equal(policy->breaker.lease_ms, 30000);
    assert_int_equal(policy->breaker.ratio_permille, 1);
    assert_int_equal(policy->breaker.ramp_cap, 64);
    assert_int_equal(policy->backoff.factor_permille, 2000);
    assert_int_equal(policy->budget_ratio_permille, 200);
    assert_ptr_equal(hf_policy_ref(policy), policy);
    hf_policy_unref(policy);
    hf_policy_unref(policy);
    hf_policy_unref(NULL);
    hf_policy_options_init(&o);
    hfi_alloc_fail(1, 0);
    assert_int_equal(hf_policy_new(&o, &policy, &error), HF_ENOMEM);
    hfi_alloc_fail(0, 0);
}

/* An older, shorter struct gets today's defaults for what it does not know; a newer, longer one is read as far as we know. */
static void size_first(void **state) {
    (void)state;
    union {
        struct hf_policy_options options;
        unsigned char bytes[sizeof(struct hf_policy_options) + 64];
    } o;
    struct hf_policy *policy;
    uint32_t old = offsetof(struct hf_policy_options, retry_factor);
    memset(&o, 0x5a, sizeof o);
    hf_policy_options_init_sized(&o.options, old);
    assert_int_equal(o.options.size, old);
    for (size_t i = old; i < sizeof o; i++)
        assert_int_equal(o.bytes[i], 0x5a); /* not written beyond what it has */
    o.options.retry_max = 1;
    assert_int_equal(hf_policy_new(&o.options, &policy, NULL), 0);
    assert_int_equal(policy->options.retry_max, 1);
    assert_int_equal(policy->options.retry_cap_ms, 5000);
    assert_int_equal(policy->options.size, sizeof(struct hf_policy_options));
    hf_policy_unref(policy);
    hf_policy_options_init_sized(&o.options, sizeof o);
    for (size_t i = sizeof o.options; i < sizeof o; i++)
        assert_int_equal(o.bytes[i], 0);
    assert_int_equal(hf_policy_new(&o.options, &policy, NULL), 0);
    hf_policy_unref(policy);
}

static const int64_t curve[] = {60000, 300000, 1800000, 7200000};

static struct hf_ladder job(const struct hf_policy_options *policy) {
    struct hf_ladder ladder;
    hf_ladder_init(&ladder);
    ladder.curve_ms = curve;
    ladder.curve_length = 4;
    ladder.policy = policy;
    return ladder;
}

static int check_job(struct hf_ladder *ladder) {
    memset(&found, 0, sizeof found);
    return hf_ladder_check(ladder, note, &found);
}

static void s0_11_the_product_and_the_time(void **state) {
    (void)state;
    struct hf_policy_options o;
    hf_policy_options_init(&o);
    struct hf_ladder ladder = job(&o);
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(found.count, 0);
    assert_int_equal(ladder.worst_calls, 24); /* 4 calls × 6 runs */
    assert_int_equal(ladder.time_to_death_ms, 16560000 + 6 * 90000); /* S0.6: 60+300+1800+7200+7200 s */
    ladder.max_calls_per_job = 23; /* V12 */
    assert_int_equal(check_job(&ladder), 1);
    assert_string_equal(found.rule[0], "ladder.calls");
    assert_non_null(strstr(found.why[0], "24"));
    o.hedge_max = 1; /* V12: executions × tries × (1 + hedges) */
    ladder.max_calls_per_job = 47;
    assert_int_equal(check_job(&ladder), 1);
    assert_int_equal(ladder.worst_calls, 48);
    ladder.repeatable = false;
    assert_int_equal(check_job(&ladder), 1);
    assert_string_equal(found.rule[0], "ladder.hedge"); /* V11: idempotent calls only */
    o.hedge_max = 0;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.worst_calls, 1);
    ladder.policy = NULL;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.worst_calls, 0);
    assert_int_equal(ladder.time_to_death_ms, 16560000 + 6 * 120000);
}

/* V12: each hop of a redirect is a request too, of a call that is not repeated as well. */
static void v12_redirects_are_calls(void **state) {
    (void)state;
    struct hf_policy_options o;
    hf_policy_options_init(&o);
    struct hf_ladder ladder = job(&o);
    ladder.redirects = 5;
    ladder.max_calls_per_job = 144;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.worst_calls, 144); /* 4 calls × 6 runs × (1 + 5) */
    ladder.max_calls_per_job = 143;
    assert_int_equal(check_job(&ladder), 1);
    assert_string_equal(found.rule[0], "ladder.calls");
    assert_non_null(strstr(found.why[0], "6 executions of 4 attempts, each of 6 requests with its redirects, make 144"));
    ladder.repeatable = false;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.worst_calls, 6);
    ladder.max_calls_per_job = 5;
    assert_int_equal(check_job(&ladder), 1);
    assert_non_null(strstr(found.why[0], "1 execution of 1 attempt, each of 6 requests with its redirects, make 6"));
    ladder.repeatable = true;
    ladder.max_executions = ladder.redirects = UINT32_MAX; /* saturates, never wraps */
    assert_int_equal(check_job(&ladder), 1);
    assert_true(ladder.worst_calls == UINT64_MAX);
    ladder.policy = NULL;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.worst_calls, 0);
}

static void the_execution_must_hold_the_call(void **state) {
    (void)state;
    struct hf_policy_options o;
    hf_policy_options_init(&o);
    struct hf_ladder ladder = job(&o);
    ladder.execution_timeout_ms = 90000;
    assert_int_equal(check_job(&ladder), 1);
    assert_string_equal(found.rule[0], "ladder.execution");
    ladder.execution_timeout_ms = 90001;
    assert_int_equal(check_job(&ladder), 0);
    ladder.execution_timeout_ms = 0;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.time_to_death_ms, 16560000 + 6 * 90000);
}

static void curves(void **state) {
    (void)state;
    struct hf_policy_options o;
    static const int64_t bad[] = {60000, -1}, far[] = {60000, INT64_C(400000000000)};
    hf_policy_options_init(&o);
    struct hf_ladder ladder = job(&o);
    ladder.curve_length = 1; /* V8: the last wait is one minute, Retry-After may ask for an hour */
    assert_int_equal(check_job(&ladder), 0);
    assert_string_equal(found.rule[0], "ladder.retry_after");
    assert_non_null(strstr(found.why[0], "by 1h, the curve's last wait is 1m: it is clamped to 1m"));
    assert_false(found.is_error[0]);
    assert_int_equal(ladder.time_to_death_ms, 5 * 60000 + 6 * 90000);
    ladder.curve_ms = bad;
    ladder.curve_length = 2;
    assert_int_equal(check_job(&ladder), 1);
    assert_string_equal(found.rule[0], "job.curve");
    ladder.curve_ms = far; /* twelve years: no matter where no execution comes after it, as in the table of a formula */
    assert_int_equal(check_job(&ladder), 1);
    ladder.max_executions = 2;
    assert_int_equal(check_job(&ladder), 0);
    ladder.max_executions = 6;
    ladder.curve_ms = NULL;
    assert_int_equal(check_job(&ladder), 1);
    ladder.curve_length = 0;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.time_to_death_ms, 6 * 90000);
    ladder.max_executions = 0;
    assert_int_equal(check_job(&ladder), 1);
    ladder.max_executions = UINT32_MAX; /* saturates or fits, never wraps */
    ladder.max_calls_per_job = UINT64_MAX;
    assert_int_equal(check_job(&ladder), 0);
    assert_int_equal(ladder.worst_calls, UINT64_C(4) * UINT32_MAX);
    assert_int_equal(ladder.time_to_death_ms, INT64_C(90000) * UINT32_MAX);
    ladder.size = 4;
    assert_int_equal(check_job(&ladder), HF_EINVAL);
}

/* W12: how soon it can open is told, and what a call can take. */
static void the_figures(void **state) {
    (void)state;
    struct hf_policy_options o;
    struct hf_policy_figures figures;
    hf_policy_options_init(&o);
    hf_policy_figures_init(&figures);
    assert_int_equal(hf_policy_figures(&o, &figures), 0);
    assert_int_equal(figures.attempts, 4);
    assert_int_equal(figures.need_ms, 83500);
    assert_int_equal(figures.longest_call_ms, 83500);
    assert_int_equal(figures.cut_try, 0);
    assert_int_equal(figures.cut_at_ms, -1);
    assert_int_equal(figures.trip_attempts, 20);
    assert_int_equal(figures.trip_ms, -1);
    o.declared_rate = 10;
    o.breaker_consecutive = 6;
    o.total_timeout_ms = 50000;
    o.allow_truncated = true;
    assert_int_equal(hf_policy_figures(&o, &figures), 0);
    assert_int_equal(figures.longest_call_ms, 50000);
    assert_int_equal(figures.cut_try, 3);
    assert_int_equal(figures.cut_at_ms, 41500);
    assert_int_equal(figures.trip_attempts, 6);
    assert_int_equal(figures.trip_ms, 500);
    o.breaker_consecutive = 21; /* the ratio is there first */
    assert_int_equal(hf_policy_figures(&o, &figures), 0);
    assert_int_equal(figures.trip_attempts, 20);
    o.bulkhead_max = 0;
    assert_int_equal(hf_policy_figures(&o, &figures), HF_ECONFIG);
    assert_int_equal(hf_policy_figures(NULL, &figures), HF_EINVAL);
    figures.size = 0;
    assert_int_equal(hf_policy_figures(&o, &figures), HF_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s0_28_defaults_fit),
        cmocka_unit_test(s0_31_the_truncated_profile),
        cmocka_unit_test(every_limit_has_its_rule),
        cmocka_unit_test(hedges),
        cmocka_unit_test(combinations),
        cmocka_unit_test(policy_new_tells_the_first_error),
        cmocka_unit_test(frozen_with_its_rules),
        cmocka_unit_test(size_first),
        cmocka_unit_test(s0_11_the_product_and_the_time),
        cmocka_unit_test(v12_redirects_are_calls),
        cmocka_unit_test(the_execution_must_hold_the_call),
        cmocka_unit_test(curves),
        cmocka_unit_test(the_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
