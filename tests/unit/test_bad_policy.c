/* SPDX-License-Identifier: MIT */
/*
 * Every option that a caller may fill, at and beyond its limits: zero, negative, overflowing, NaN and infinite. Each bad
 * value is refused by an error that names the option, the reason and a fix. tests/tree/options.py
 * sees to it that no field of the struct lacks its row here.
 */
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/guard.h"
#include "holdfast/policy.h"
#include "resilience/finding.h"

/*
 * SPAN: ms from 1, or from 0. SHARE, NUMBER: a double from `low` to `high`. COUNT: from `low` to `high`. CHOICE: an enum
 * up to `high`. SWITCH: a bool, never wrong. OTHER: has a test of its own below.
 */
enum kind { SPAN, SPAN_OR_ZERO, NUMBER, COUNT, CHOICE, SWITCH, OTHER };
struct row {
    const char *field, *key;
    size_t offset, size;
    enum kind kind;
    double low, high;
};
#define F(field) #field
#define ROW(field, key, ...) {F(field), key, offsetof(struct hf_policy_options, field), sizeof(((struct hf_policy_options *)0)->field), __VA_ARGS__}

static const struct row rows[] = {
    ROW(size, "", OTHER, 0, 0),
    ROW(allow_truncated, "allow_truncated", SWITCH, 0, 0),
    ROW(connect_timeout_ms, "connect_timeout", SPAN, 0, 0),
    ROW(attempt_timeout_ms, "attempt_timeout", SPAN, 0, 0),
    ROW(total_timeout_ms, "total_timeout", SPAN, 0, 0),
    ROW(retry_max, "retry.max", COUNT, 0, 100),
    ROW(retry_backoff, "retry.backoff", CHOICE, 0, HF_BACKOFF_TABLE),
    ROW(retry_jitter, "retry.jitter", CHOICE, 0, HF_JITTER_DECORRELATED),
    ROW(retry_jitter_factor, "retry.jitter", NUMBER, 0, 1),
    ROW(retry_factor, "retry.factor", NUMBER, 1, 1000),
    ROW(retry_base_ms, "retry.base", SPAN_OR_ZERO, 0, 0),
    ROW(retry_cap_ms, "retry.cap", SPAN_OR_ZERO, 0, 0),
    ROW(retry_table_length, "retry.table", COUNT, 0, HF_BACKOFF_TABLE_MAX),
    ROW(retry_table_ms, "retry.table", OTHER, 0, 0),
    ROW(hedge_max, "hedge.max", COUNT, 0, HF_HEDGE_MAX),
    ROW(hedge_delay_ms, "hedge.delay", SPAN, 0, 0),
    ROW(hedge_p95, "hedge.delay", SWITCH, 0, 0),
    ROW(budget_ratio, "budget.ratio", NUMBER, 0, 1),
    ROW(budget_floor, "budget.floor", COUNT, 0, 1000000),
    ROW(budget_window_ms, "budget.window", SPAN, 0, 0),
    ROW(retry_after_cap_ms, "retry_after.cap", SPAN_OR_ZERO, 0, 0),
    ROW(gate_cap_ms, "retry_after.gate_cap", SPAN_OR_ZERO, 0, 0),
    ROW(gate_scope, "retry_after.scope", CHOICE, 0, HF_GATE_CALL),
    ROW(breaker_429_failure, "breaker_429", SWITCH, 0, 0),
    ROW(breaker_window_ms, "breaker.window", SPAN, 0, 0),
    ROW(breaker_slices, "breaker.slices", COUNT, 10, 60),
    ROW(breaker_ratio, "breaker.ratio", NUMBER, 1e-9, 1),
    ROW(breaker_min_calls, "breaker.min_calls", COUNT, 1, UINT32_MAX),
    ROW(breaker_consecutive, "breaker.consecutive", COUNT, 0, UINT32_MAX),
    ROW(breaker_slow_ratio, "breaker.slow_ratio", NUMBER, 0, 1),
    ROW(breaker_slow_after_ms, "breaker.slow_after", SPAN_OR_ZERO, 0, 0),
    ROW(breaker_break_ms, "breaker.break", SPAN, 0, 0),
    ROW(breaker_max_break_ms, "breaker.max_break", SPAN, 0, 0),
    ROW(breaker_break_factor, "breaker.break_factor", NUMBER, 1, 1000),
    ROW(breaker_break_jitter, "breaker.break_jitter", NUMBER, 0, 1),
    ROW(breaker_probes, "breaker.probes", COUNT, 1, 16),
    ROW(breaker_tolerated, "breaker.tolerated", COUNT, 0, 2),
    ROW(breaker_ramp_ms, "breaker.ramp", SPAN_OR_ZERO, 0, 0),
    ROW(breaker_lease_ms, "breaker.lease", SPAN_OR_ZERO, 0, 0),
    ROW(bulkhead_max, "bulkhead.max", COUNT, 1, 100000),
    ROW(bulkhead_queue, "bulkhead.queue", COUNT, 0, 1000000),
    ROW(rate_per_s, "rate.limit", NUMBER, 0, 1000000),
    ROW(rate_burst, "rate.burst", COUNT, 0, 0), /* without a limit; with one it has a test of its own below */
    ROW(allow_fault_injection, "allow_fault_injection", SWITCH, 0, 0),
    ROW(latency, "latency", CHOICE, 0, HF_LATENCY_COARSE),
    ROW(on_open, "on_open", CHOICE, 0, HF_ON_OPEN_FAIL),
    ROW(give_up_after_ms, "give_up_after", SPAN, 0, 0),
    ROW(declared_rate, "declared_rate", NUMBER, 0, 10000000),
};

struct heard {
    const char *key; /* wanted */
    bool named;
    int count;
};

static void hear(const struct hf_finding *finding, void *user) {
    struct heard *heard = user;
    if (!finding->is_error)
        return;
    heard->count++;
    heard->named = heard->named || strcmp(finding->key, heard->key) == 0;
    assert_true(finding->rule[0] && finding->why[0] && finding->fix && finding->fix[0]);
}

static void refuse(const struct row *row, const struct hf_policy_options *options, const char *value) {
    struct heard heard = {.key = row->key};
    struct hf_policy *policy = NULL;
    struct hf_error error;
    int errors = hf_policy_check(options, hear, &heard);
    if (errors <= 0 || errors != heard.count || !heard.named)
        fail_msg("%s = %s: %d errors, %s is %s", row->field, value, errors, row->key, heard.named ? "named" : "not named");
    hf_error_init(&error);
    assert_int_equal(hf_policy_new(options, &policy, &error), HF_ECONFIG);
    assert_null(policy);
    assert_int_equal(error.code, HF_ECONFIG);
    assert_true(error.what[0] && error.why[0] && error.fix[0]);
}

static struct hf_policy_options with(const struct row *row, const void *value) {
    struct hf_policy_options options;
    hf_policy_options_init(&options);
    memcpy((char *)&options + row->offset, value, row->size);
    return options;
}

static void try_span(const struct row *row) {
    const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, HFI_DURATION_MAX_MS + 1, INT64_MIN + 1, -1000, 0};
    size_t count = sizeof bad / sizeof *bad - (row->kind == SPAN_OR_ZERO);
    char text[32];
    assert_int_equal(row->size, sizeof(int64_t));
    for (size_t i = 0; i < count; i++) {
        struct hf_policy_options options = with(row, &bad[i]);
        snprintf(text, sizeof text, "%lld", (long long)bad[i]);
        refuse(row, &options, text);
    }
}

static void try_number(const struct row *row) {
    const double bad[] = {NAN, -NAN, INFINITY, -INFINITY, -1, row->low - 0.001, row->high + 0.001, 1e308, -1e308};
    char text[32];
    assert_int_equal(row->size, sizeof(double));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_policy_options options = with(row, &bad[i]);
        snprintf(text, sizeof text, "%g", bad[i]);
        refuse(row, &options, text);
    }
}

static void try_count(const struct row *row) {
    uint32_t low = (uint32_t)row->low, high = (uint32_t)row->high;
    const uint32_t bad[] = {low - 1, high + 1, UINT32_MAX, (uint32_t)INT32_MAX + 1};
    char text[32];
    assert_int_equal(row->size, sizeof(uint32_t));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (bad[i] >= low && bad[i] <= high)
            continue;
        struct hf_policy_options options = with(row, &bad[i]);
        snprintf(text, sizeof text, "%u", bad[i]);
        refuse(row, &options, text);
    }
}

static void try_choice(const struct row *row) {
    const int bad[] = {-1, (int)row->high + 1, 1000, INT32_MAX, INT32_MIN};
    char text[32];
    assert_int_equal(row->size, sizeof(int));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_policy_options options = with(row, &bad[i]);
        snprintf(text, sizeof text, "%d", bad[i]);
        refuse(row, &options, text);
    }
}

static void test_policy(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        switch (rows[i].kind) {
        case SPAN:
        case SPAN_OR_ZERO:
            try_span(&rows[i]);
            break;
        case NUMBER:
            try_number(&rows[i]);
            break;
        case COUNT:
            try_count(&rows[i]);
            break;
        case CHOICE:
            try_choice(&rows[i]);
            break;
        case SWITCH:
            assert_int_equal(rows[i].size, sizeof(bool));
            break;
        case OTHER:
            break;
        }
}

static void test_policy_size(void **state) {
    (void)state;
    struct hf_policy_options options;
    struct hf_policy *policy = NULL;
    hf_policy_options_init(&options);
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    hf_policy_unref(policy);
    policy = NULL;
    for (uint32_t size = 0; size < 4; size++) {
        struct hf_error error;
        hf_error_init(&error);
        options.size = size;
        assert_int_equal(hf_policy_new(&options, &policy, &error), HF_EINVAL);
        assert_true(error.what[0] && error.why[0]);
        assert_int_equal(hf_policy_check(&options, NULL, NULL), HF_EINVAL);
    }
    assert_int_equal(hf_policy_new(NULL, &policy, NULL), HF_EINVAL);
    assert_null(policy);
}

static void test_policy_table(void **state) {
    (void)state;
    static const struct row row = {"retry_table_ms", "retry.table", 0, 0, OTHER, 0, 0};
    const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, 5001};
    struct hf_policy_options options;
    hf_policy_options_init(&options);
    options.retry_backoff = HF_BACKOFF_TABLE;
    refuse(&row, &options, "an empty table");
    for (uint32_t at = 0; at < HF_BACKOFF_TABLE_MAX; at++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            memset(options.retry_table_ms, 0, sizeof options.retry_table_ms);
            options.retry_table_length = HF_BACKOFF_TABLE_MAX;
            options.retry_table_ms[at] = bad[i];
            refuse(&row, &options, "a wait");
        }
}

/* What is refused is never corrected, and the sums of the largest values that are allowed do not overflow. */
static void test_policy_extremes(void **state) {
    (void)state;
    struct hf_policy_options options, before;
    struct heard heard = {.key = "total_timeout"};
    hf_policy_options_init(&options);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == SPAN || rows[i].kind == SPAN_OR_ZERO)
            memcpy((char *)&options + rows[i].offset, &(int64_t){HFI_DURATION_MAX_MS}, sizeof(int64_t));
    options.retry_max = UINT32_MAX;
    options.retry_factor = 1e308;
    before = options;
    assert_true(hf_policy_check(&options, hear, &heard) > 0);
    assert_memory_equal(&options, &before, sizeof options);
}

static void test_guard(void **state) {
    (void)state;
    static const char *const bad_names[] = {NULL, "", "a\nb", "a\tb", "\xff", "\xc3"};
    struct hf_policy_options options;
    struct hf_policy *policy = NULL;
    struct hf_downstream *d = NULL;
    char name[122];
    hf_policy_options_init(&options);
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        struct hf_error error;
        hf_error_init(&error);
        int rc = hf_downstream_new(bad_names[i], policy, &d, &error);
        if (rc != HF_EINVAL && rc != HF_ETEXT)
            fail_msg("name %zu gave %d", i, rc);
        assert_true(error.what[0] && error.why[0]);
    }
    memset(name, 'n', sizeof name);
    name[121] = '\0';
    assert_int_equal(hf_downstream_new(name, policy, &d, NULL), HF_EINVAL);
    assert_int_equal(hf_downstream_new(NULL, policy, &d, NULL), HF_EINVAL);
    assert_null(d);
    name[120] = '\0';
    assert_int_equal(hf_downstream_new(name, policy, &d, NULL), 0);
    assert_int_equal(hf_downstream_isolate(d, -1, "why"), HF_EINVAL);
    assert_int_equal(hf_downstream_isolate(d, INT64_MIN, "why"), HF_EINVAL);
    assert_int_equal(hf_downstream_isolate(d, 0, NULL), HF_EINVAL);
    assert_int_equal(hf_downstream_isolate(d, 0, ""), HF_EINVAL);
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    assert_int_equal(view.state, HF_BREAKER_CLOSED);
    assert_int_equal(hf_downstream_isolate(d, INT64_MAX, "far in the future"), 0);
    hf_downstream_look(d, &view);
    assert_int_equal(view.state, HF_BREAKER_ISOLATED);
    hf_downstream_unref(d);
    hf_policy_unref(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_policy), cmocka_unit_test(test_policy_size),
                                       cmocka_unit_test(test_policy_table), cmocka_unit_test(test_policy_extremes),
                                       cmocka_unit_test(test_guard)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
