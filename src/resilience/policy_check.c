/* SPDX-License-Identifier: MIT */
/*
 * The ladder check of one downstream (design 2.7): every rule that its options can break, each finding with the
 * numbers and a fix, always in the same order. It only looks; must never change an option. Pure, any thread.
 */
#include "resilience/policy.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "resilience/finding.h"
#include "resilience/rate.h"

#define SHORT_CAP_MS 5000 /* longer waits belong to the jobs' curve [S0.11] */
#define RETRY_MAX 100     /* the same, for the number of tries */
#define FLOOR_MAX 1000000
#define RATE_MAX 1e7
#define IN_FLIGHT_MAX 100000
#define QUEUE_MAX 1000000

void hfi_find(struct hfi_findings *findings, bool is_error, const char *rule, const char *key, const char *fix,
              const char *format, ...) {
    char why[512];
    va_list args;
    findings->errors += is_error ? 1 : 0;
    if (findings->report == NULL)
        return;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    struct hf_finding finding = {
        .size = sizeof finding, .is_error = is_error, .rule = rule, .key = key, .why = why, .fix = fix};
    findings->report(&finding, findings->user);
}

#define ERROR(rule, key, fix, ...) hfi_find(f, true, rule, key, fix, __VA_ARGS__)
#define WARNING(rule, key, fix, ...) hfi_find(f, false, rule, key, fix, __VA_ARGS__)
#define TEXT(ms) hfi_duration_print(ms, (char[HFI_DURATION_ROOM]){0})

typedef void (*check_fn)(const struct hf_policy_options *o, struct hfi_findings *f);

/* Every duration within what can be added up; zero only where it means something. */
static bool check_ranges(const struct hf_policy_options *o, struct hfi_findings *f) {
    const struct {
        const char *key;
        int64_t ms;
        bool zero;
    } rows[] = {
        {"connect_timeout", o->connect_timeout_ms, false},
        {"attempt_timeout", o->attempt_timeout_ms, false},
        {"total_timeout", o->total_timeout_ms, false},
        {"retry.base", o->retry_base_ms, true},
        {"retry.cap", o->retry_cap_ms, true},
        {"budget.window", o->budget_window_ms, false},
        {"hedge.delay", o->hedge_delay_ms, false},
        {"retry_after.cap", o->retry_after_cap_ms, true},
        {"retry_after.gate_cap", o->gate_cap_ms, true},
        {"breaker.window", o->breaker_window_ms, false},
        {"breaker.slow_after", o->breaker_slow_after_ms, true},
        {"breaker.break", o->breaker_break_ms, false},
        {"breaker.max_break", o->breaker_max_break_ms, false},
        {"breaker.ramp", o->breaker_ramp_ms, true},
        {"breaker.lease", o->breaker_lease_ms, true},
        {"give_up_after", o->give_up_after_ms, false},
    };
    int before = f->errors;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].ms < 0 || (rows[i].ms == 0 && !rows[i].zero))
            ERROR("ladder.range", rows[i].key, "give a duration above zero", "it is %lld ms", (long long)rows[i].ms);
        else if (rows[i].ms > HFI_DURATION_MAX_MS)
            ERROR("ladder.range", rows[i].key, "stay below ten years", "it is %lld ms", (long long)rows[i].ms);
    }
    return f->errors == before;
}

static void check_order(const struct hf_policy_options *o, struct hfi_findings *f) {
    if (o->connect_timeout_ms > o->attempt_timeout_ms)
        ERROR("ladder.order", "connect_timeout", "connect ≤ attempt ≤ total",
              "connecting may take %s, but the whole attempt only %s", TEXT(o->connect_timeout_ms),
              TEXT(o->attempt_timeout_ms));
    if (o->attempt_timeout_ms > o->total_timeout_ms)
        ERROR("ladder.order", "attempt_timeout", "connect ≤ attempt ≤ total",
              "one attempt may take %s, but the whole call only %s", TEXT(o->attempt_timeout_ms),
              TEXT(o->total_timeout_ms));
}

static bool between(double value, double low, double high) {
    return value >= low && value <= high; /* false for NaN */
}

static void check_retry(const struct hf_policy_options *o, struct hfi_findings *f) {
    if ((int)o->retry_backoff < HF_BACKOFF_CONSTANT || o->retry_backoff > HF_BACKOFF_TABLE)
        ERROR("retry.backoff", "retry.backoff", "constant, linear, exponential or table", "it is %d",
              (int)o->retry_backoff);
    if ((int)o->retry_jitter < HF_JITTER_NONE || o->retry_jitter > HF_JITTER_DECORRELATED)
        ERROR("retry.jitter", "retry.jitter", "none, factor, full, equal or decorrelated", "it is %d",
              (int)o->retry_jitter);
    if (o->retry_max > RETRY_MAX)
        ERROR("retry.max", "retry.max", "two or three short retries; the long curve belongs to the jobs",
              "%u retries in one call, more than %d", o->retry_max, RETRY_MAX);
    if (o->retry_base_ms > o->retry_cap_ms)
        ERROR("retry.base", "retry.base", "base ≤ cap", "the first wait of %s is above the cap of %s",
              TEXT(o->retry_base_ms), TEXT(o->retry_cap_ms));
    if (o->retry_cap_ms > SHORT_CAP_MS)
        ERROR("retry.cap", "retry.cap", "at most 5s; longer waits belong to the curve of the jobs",
              "short waits up to %s", TEXT(o->retry_cap_ms));
    if (o->retry_max > 0 && o->retry_cap_ms >= o->total_timeout_ms)
        ERROR("retry.cap", "retry.cap", "cap < total_timeout", "one wait of up to %s would use up the total of %s",
              TEXT(o->retry_cap_ms), TEXT(o->total_timeout_ms));
    if (!between(o->retry_factor, 1, 1000))
        ERROR("retry.factor", "retry.factor", "a number from 1 to 1000", "it is %g", o->retry_factor);
    if (!between(o->retry_jitter_factor, 0, 1))
        ERROR("retry.jitter", "retry.jitter", "a number from 0 to 1", "it is %g", o->retry_jitter_factor);
}

static void check_table(const struct hf_policy_options *o, struct hfi_findings *f) {
    bool used = o->retry_backoff == HF_BACKOFF_TABLE;
    if (o->retry_table_length > HF_BACKOFF_TABLE_MAX || (used && o->retry_table_length == 0)) {
        ERROR("retry.table", "retry.table", "give one to sixteen waits", "it has %u", o->retry_table_length);
        return;
    }
    for (uint32_t i = 0; used && i < o->retry_table_length; i++)
        if (o->retry_table_ms[i] < 0 || o->retry_table_ms[i] > o->retry_cap_ms)
            ERROR("retry.table", "retry.table", "each wait between 0 and retry.cap", "wait %u is %lld ms, the cap %s",
                  i + 1, (long long)o->retry_table_ms[i], TEXT(o->retry_cap_ms));
}

/* tries × their longest + Σ longest waits ≤ total, else which try can never run to its end (V2, R6). */
static void check_fit(const struct hf_policy_options *o, struct hfi_findings *f) {
    struct hf_policy_figures fit;
    if (o->retry_max > RETRY_MAX || o->attempt_timeout_ms > o->total_timeout_ms)
        return; /* said already */
    hfi_policy_fit(o, &fit);
    if (fit.cut_try == 0)
        return;
    hfi_find(
        f, !o->allow_truncated, "ladder.truncated", "total_timeout",
        o->allow_truncated ? "raise total_timeout, or lower attempt_timeout or retry.max, if every try is to have its time"
                           : "raise total_timeout, lower attempt_timeout or retry.max, or say allow_truncated: true",
        "%u attempts of %s%s and their longest waits need %s, the total is %s: try %u of %u would begin at %s and %s",
        fit.tries, TEXT(fit.try_ms), o->hedge_max > 0 ? " with their hedges" : "", TEXT(fit.need_ms),
        TEXT(o->total_timeout_ms), fit.cut_try, fit.tries, TEXT(fit.cut_at_ms),
        fit.cut_at_ms >= o->total_timeout_ms ? "never run" : "never run its whole time");
}

static void check_budget(const struct hf_policy_options *o, struct hfi_findings *f) {
    if (!between(o->budget_ratio, 0, 1))
        ERROR("budget.ratio", "budget.ratio", "a number from 0 to 1", "it is %g", o->budget_ratio);
    if (o->budget_floor > FLOOR_MAX)
        ERROR("budget.floor", "budget.floor", "a million at most", "it is %u", o->budget_floor);
    if (o->retry_max > 0 && o->budget_floor == 0 && o->budget_ratio == 0)
        ERROR("budget.empty", "budget.floor", "raise budget.floor or budget.ratio, or set retry.max to 0",
              "%u retries are allowed, but the budget never has one", o->retry_max);
}

static void check_hedge(const struct hf_policy_options *o, struct hfi_findings *f) {
    if (o->hedge_max > HF_HEDGE_MAX)
        ERROR("hedge.max", "hedge.max", "one is nearly always enough; 4 at most", "%u hedges for one try", o->hedge_max);
    else if (o->hedge_max > 0 && hfi_mul(o->hedge_max, o->hedge_delay_ms) > o->total_timeout_ms) /* V11 */
        ERROR("hedge.delay", "hedge.delay", "hedge.max × delay ≤ total_timeout",
              "hedge %u would start after %s, the whole call may take %s", o->hedge_max,
              TEXT(hfi_mul(o->hedge_max, o->hedge_delay_ms)), TEXT(o->total_timeout_ms));
    if (o->hedge_max > 0 && o->budget_floor == 0 && o->budget_ratio == 0)
        WARNING("hedge.budget", "hedge.max", "raise budget.floor or budget.ratio, or set hedge.max to 0",
                "hedges are paid from the retry budget, which never has one: none is ever sent");
}

static void check_window(const struct hf_policy_options *o, struct hfi_findings *f) {
    if (o->breaker_window_ms < hfi_mul(2, o->attempt_timeout_ms)) /* [S0.29] */
        ERROR("breaker.window", "breaker.window", "at least twice attempt_timeout",
              "the window of %s does not hold two attempts of %s", TEXT(o->breaker_window_ms),
              TEXT(o->attempt_timeout_ms));
    if (o->breaker_slices < HFI_WINDOW_SLICES_MIN || o->breaker_slices > HFI_WINDOW_SLICES_MAX)
        ERROR("breaker.slices", "breaker.slices", "from 10 to 60", "it is %u", o->breaker_slices);
    if (o->breaker_lease_ms > 0 && o->breaker_lease_ms < o->attempt_timeout_ms)
        ERROR("breaker.lease", "breaker.lease", "at least attempt_timeout",
              "permits lapse after %s, while an attempt may take %s", TEXT(o->breaker_lease_ms),
              TEXT(o->attempt_timeout_ms));
    if (!(o->breaker_ratio > 0) || !between(o->breaker_ratio, 0, 1))
        ERROR("breaker.ratio", "breaker.ratio", "a number above 0, at most 1", "it is %g", o->breaker_ratio);
    if (o->breaker_min_calls < 1)
        ERROR("breaker.min_calls", "breaker.min_calls", "at least 1", "it is 0");
    double expected = o->declared_rate * (double)o->breaker_window_ms / 1000;
    if (o->declared_rate > 0 && expected < o->breaker_min_calls)
        WARNING("breaker.min_calls", "breaker.min_calls", "lower min_calls, widen the window or use consecutive",
                "%g calls a second make %.1f in the window of %s: %u are never reached", o->declared_rate, expected,
                TEXT(o->breaker_window_ms), o->breaker_min_calls);
    if (!between(o->declared_rate, 0, RATE_MAX))
        ERROR("breaker.rate", "declared_rate", "calls per second, 0 when unknown", "it is %g", o->declared_rate);
    if (!between(o->breaker_slow_ratio, 0, 1))
        ERROR("breaker.slow_ratio", "breaker.slow_ratio", "a number from 0 to 1", "it is %g", o->breaker_slow_ratio);
    if (o->breaker_slow_ratio > 0 && o->breaker_slow_after_ms == 0)
        ERROR("breaker.slow_after", "breaker.slow_after", "say when a call is slow",
              "slow_ratio is %g, but no time is given", o->breaker_slow_ratio);
    if (o->breaker_slow_ratio > 0 && o->breaker_slow_after_ms >= o->attempt_timeout_ms)
        WARNING("breaker.slow_after", "breaker.slow_after", "below attempt_timeout",
                "slow is above %s, but attempts end after %s: none is ever slow", TEXT(o->breaker_slow_after_ms),
                TEXT(o->attempt_timeout_ms));
}

static void check_break(const struct hf_policy_options *o, struct hfi_findings *f) {
    if (o->breaker_probes < 1 || o->breaker_probes > HFI_BREAKER_PROBES_MAX)
        ERROR("breaker.probes", "breaker.probes", "from 1 to 16", "it is %u", o->breaker_probes);
    if (o->breaker_tolerated >= o->breaker_probes)
        ERROR("breaker.tolerated", "breaker.tolerated", "fewer than breaker.probes",
              "%u of %u probes may fail: none has to pass", o->breaker_tolerated, o->breaker_probes);
    if (o->breaker_break_ms > o->breaker_max_break_ms)
        ERROR("breaker.break", "breaker.break", "break ≤ max_break", "the first break of %s is above the longest of %s",
              TEXT(o->breaker_break_ms), TEXT(o->breaker_max_break_ms));
    if (!between(o->breaker_break_factor, 1, 1000))
        ERROR("breaker.break_factor", "breaker.break_factor", "a number from 1 to 1000", "it is %g",
              o->breaker_break_factor);
    if (!between(o->breaker_break_jitter, 0, 1))
        ERROR("breaker.break_jitter", "breaker.break_jitter", "a number from 0 to 1", "it is %g",
              o->breaker_break_jitter);
    if (o->breaker_max_break_ms >= o->give_up_after_ms)
        ERROR("breaker.horizon", "give_up_after", "above breaker.max_break",
              "a break may last %s, jobs give up after %s: they could die without one try",
              TEXT(o->breaker_max_break_ms), TEXT(o->give_up_after_ms));
}

static void check_rate(const struct hf_policy_options *o, struct hfi_findings *f) {
    if (!between(o->rate_per_s, 0, HFI_RATE_MAX)) {
        ERROR("rate.limit", "rate.limit", "up to 1000000/s; 0/s switches it off", "it is %g/s", o->rate_per_s);
        return;
    }
    double burst = o->rate_burst > 0 ? o->rate_burst : hfi_rate_burst(o->rate_per_s);
    if (o->rate_per_s == 0 && o->rate_burst > 0)
        ERROR("rate.burst", "rate.burst", "give rate.limit too", "a burst of %u, but no limit", o->rate_burst);
    else if (o->rate_per_s > 0 && burst / o->rate_per_s > HFI_RATE_FILL_MAX_S)
        ERROR("rate.burst", "rate.burst", "lower the burst or raise the limit",
              "a burst of %.0f at %g/s takes longer than a year to fill", burst, o->rate_per_s);
    else if (o->rate_per_s > 0 && o->declared_rate > o->rate_per_s)
        WARNING("rate.declared", "rate.limit", "raise the limit, or expect `rate.limited`",
                "%g calls a second are declared, the limit is %g", o->declared_rate, o->rate_per_s);
}

static void check_rest(const struct hf_policy_options *o, struct hfi_findings *f) {
    if (o->bulkhead_max < 1)
        ERROR("bulkhead.max", "bulkhead.max", "at least 1", "0 in flight means that nothing ever runs");
    if (o->bulkhead_max > IN_FLIGHT_MAX)
        ERROR("bulkhead.max", "bulkhead.max", "a hundred thousand at most", "it is %u", o->bulkhead_max);
    if (o->bulkhead_queue > QUEUE_MAX)
        ERROR("bulkhead.queue", "bulkhead.queue", "a million at most", "it is %u", o->bulkhead_queue);
    if ((int)o->gate_scope < HF_GATE_DOWNSTREAM || o->gate_scope > HF_GATE_CALL)
        ERROR("retry_after.scope", "retry_after.scope", "downstream or call", "it is %d", (int)o->gate_scope);
    if ((int)o->latency < HF_LATENCY_EXACT || o->latency > HF_LATENCY_COARSE)
        ERROR("latency", "latency", "exact or coarse", "it is %d", (int)o->latency);
    if ((int)o->on_open < HF_ON_OPEN_PARK || o->on_open > HF_ON_OPEN_FAIL)
        ERROR("on_open", "on_open", "park or fail", "it is %d", (int)o->on_open);
}

int hf_policy_check(const struct hf_policy_options *options, hf_finding_fn report, void *user) {
    static const check_fn checks[] = {check_order,  check_retry,  check_table, check_fit,
                                      check_budget, check_hedge,  check_window, check_break, check_rate, check_rest};
    struct hf_policy_options whole;
    struct hfi_findings findings = {report, user, 0};
    if (hfi_policy_take(options, &whole) != 0)
        return HF_EINVAL;
    if (!check_ranges(&whole, &findings))
        return findings.errors; /* the sums below need durations that mean something */
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](&whole, &findings);
    return findings.errors;
}
