/* SPDX-License-Identifier: MIT */
/* How `ladder show` tells what was measured: tables, histograms, JSON. Only prints. The main thread's. */
#include "program/commands/ladder_print.h"

#include <stdio.h>

#include "program/commands/ladder_plot.h"
#include "program/output.h"

#define US(us) hfi_show_us(us, (char[HFI_US_ROOM]){0})
#define SPAN(ms) hfi_show_span(ms, (char[HFI_SPAN_LENGTH]){0})

static uint64_t count_of(const struct hf_measured *measured, enum hf_phase phase, bool cut) {
    uint64_t count = 0;
    for (int fate = 0; fate < HF_FATES; fate++)
        if (hfi_fate_is_cut((enum hf_fate)fate) == cut)
            count += hf_measured_count(measured, phase, (enum hf_fate)fate);
    return count;
}

static int64_t limit_of(const struct hf_policy_options *policy, enum hf_phase phase) {
    if (policy == NULL)
        return 0;
    return phase == HF_PHASE_SETUP ? policy->connect_timeout_ms : phase == HF_PHASE_ATTEMPT ? policy->attempt_timeout_ms : 0;
}

static const char *limit_name(enum hf_phase phase) {
    return phase == HF_PHASE_SETUP ? "connect_timeout" : "attempt_timeout";
}

static void print_phases(const struct hf_measured *measured) {
    struct hfi_table *table = hfi_table_new("PHASE|>ENDED|>CUT|>P50|>P95|>P99|>P99.9");
    for (int i = 0; i < HF_PHASES; i++) {
        enum hf_phase phase = (enum hf_phase)i;
        hfi_table_cell(table, "%s", hf_phase_name(phase));
        hfi_table_cell(table, "%llu", (unsigned long long)hf_measured_count(measured, phase, HF_FATE_ENDED));
        hfi_table_cell(table, "%llu", (unsigned long long)count_of(measured, phase, true));
        hfi_table_cell(table, "%s", US(hf_measured_quantile(measured, phase, 0.5)));
        hfi_table_cell(table, "%s", US(hf_measured_quantile(measured, phase, 0.95)));
        hfi_table_cell(table, "%s", US(hf_measured_quantile(measured, phase, 0.99)));
        hfi_table_cell(table, "%s", US(hf_measured_quantile(measured, phase, 0.999)));
    }
    hfi_table_print(table);
}

static const struct {
    enum hf_fate fate;
    const char *limit;
} limits[] = {{HF_FATE_CUT_CONNECT, "connect_timeout"}, {HF_FATE_CUT_ATTEMPT, "attempt_timeout"}, {HF_FATE_CUT_TOTAL, "total_timeout"}};
#define LIMITS (sizeof limits / sizeof *limits)

static int64_t limit_ms(const struct hf_policy_options *policy, enum hf_fate fate) {
    if (policy == NULL)
        return -1;
    return fate == HF_FATE_CUT_CONNECT   ? policy->connect_timeout_ms
           : fate == HF_FATE_CUT_ATTEMPT ? policy->attempt_timeout_ms
                                         : policy->total_timeout_ms;
}

static void later_text(const struct hf_cut *cut, enum hf_fate fate, char *text, size_t room) {
    if (cut->cut == 0 || fate == HF_FATE_CUT_TOTAL)
        snprintf(text, room, "-");
    else if (cut->later < 0)
        snprintf(text, room, "unknown: %llu came near the limit, 20 are needed", (unsigned long long)cut->reached);
    else
        snprintf(text, room, "%.1f %% of them (%.1f to %.1f)", cut->later * 100, cut->low * 100, cut->high * 100);
}

static void print_cuts(const struct hf_measured *measured, const struct hf_policy_options *policy) {
    char text[100];
    struct hfi_table *table = hfi_table_new("LIMIT|>NOW|>CUT|>OF ALL|A LITTLE LATER (1.5 x) HAD ANSWERED");
    for (size_t i = 0; i < LIMITS; i++) {
        struct hf_cut cut;
        hf_cut_init(&cut);
        if (hf_ladder_cut(measured, policy, limits[i].fate, &cut) != 0)
            continue;
        later_text(&cut, limits[i].fate, text, sizeof text);
        hfi_table_cell(table, "%s", limits[i].limit);
        hfi_table_cell(table, "%s", policy ? SPAN(limit_ms(policy, limits[i].fate)) : "-");
        hfi_table_cell(table, "%llu", (unsigned long long)cut.cut);
        hfi_table_cell(table, "%.3g %%", cut.attempts > 0 ? (double)cut.cut / (double)cut.attempts * 100 : 0.0);
        hfi_table_cell(table, "%s", text);
    }
    hfi_say("%s", "");
    hfi_table_print(table);
}

void hfi_ladder_print(const struct hf_measured *measured, const struct hf_policy_options *policy, const char *name,
                      const char *window) {
    hfi_field("downstream", "%s", name);
    hfi_field("window", "the last %s, %llu hour%s of it with attempts", window, (unsigned long long)hf_measured_hours(measured),
              hf_measured_hours(measured) == 1 ? "" : "s");
    hfi_field("attempts", "%llu answered, %llu failed by themselves, %llu cut",
              (unsigned long long)hf_measured_count(measured, HF_PHASE_ATTEMPT, HF_FATE_ENDED),
              (unsigned long long)hf_measured_count(measured, HF_PHASE_ATTEMPT, HF_FATE_FAILED),
              (unsigned long long)count_of(measured, HF_PHASE_ATTEMPT, true));
    hfi_say("%s", "");
    print_phases(measured);
    for (int i = 0; i < HF_PHASES; i++)
        hfi_ladder_plot(measured, (enum hf_phase)i, limit_name((enum hf_phase)i), limit_of(policy, (enum hf_phase)i));
    print_cuts(measured, policy);
}

/* ------------------------------------------------------------------ JSON */

static void us_json(json_t *object, const char *key, int64_t us) {
    json_object_set_new(object, key, us < 0 ? json_null() : json_integer(us));
}

static void share_json(json_t *object, const char *key, double share) {
    json_object_set_new(object, key, share < 0 ? json_null() : json_real(share));
}

static json_t *phase_json(const struct hf_measured *measured, enum hf_phase phase) {
    json_t *object = json_object(), *buckets = json_array();
    hfi_json_text(object, "phase", hf_phase_name(phase));
    us_json(object, "p50_us", hf_measured_quantile(measured, phase, 0.5));
    us_json(object, "p95_us", hf_measured_quantile(measured, phase, 0.95));
    us_json(object, "p99_us", hf_measured_quantile(measured, phase, 0.99));
    us_json(object, "p999_us", hf_measured_quantile(measured, phase, 0.999));
    for (int i = 0; i < HF_FATES; i++) {
        enum hf_fate fate = (enum hf_fate)i;
        uint32_t cursor = 0;
        int64_t from_us, to_us;
        uint64_t count;
        hfi_json_number(object, hf_fate_name(fate), (int64_t)hf_measured_count(measured, phase, fate));
        while (hf_measured_next(measured, phase, fate, &cursor, &from_us, &to_us, &count)) {
            json_t *bucket = json_object();
            hfi_json_text(bucket, "fate", hf_fate_name(fate));
            hfi_json_number(bucket, "from_us", from_us);
            hfi_json_number(bucket, "to_us", to_us);
            hfi_json_number(bucket, "count", (int64_t)count);
            json_array_append_new(buckets, bucket);
        }
    }
    json_object_set_new(object, "buckets", buckets);
    return object;
}

void hfi_ladder_json(const struct hf_measured *measured, const struct hf_policy_options *policy, const char *name,
                     const char *window) {
    json_t *object = json_object(), *phases = json_array(), *cuts = json_array();
    hfi_json_text(object, "downstream", name);
    hfi_json_text(object, "window", window);
    hfi_json_number(object, "hours", (int64_t)hf_measured_hours(measured));
    for (int i = 0; i < HF_PHASES; i++)
        json_array_append_new(phases, phase_json(measured, (enum hf_phase)i));
    for (size_t i = 0; i < LIMITS; i++) {
        struct hf_cut cut;
        json_t *item = json_object();
        hf_cut_init(&cut);
        hf_ladder_cut(measured, policy, limits[i].fate, &cut);
        hfi_json_text(item, "limit", limits[i].limit);
        us_json(item, "limit_ms", limit_ms(policy, limits[i].fate));
        hfi_json_number(item, "attempts", (int64_t)cut.attempts);
        hfi_json_number(item, "cut", (int64_t)cut.cut);
        hfi_json_number(item, "came_near", (int64_t)cut.reached);
        share_json(item, "later_share", cut.later);
        share_json(item, "later_low", cut.low);
        share_json(item, "later_high", cut.high);
        json_array_append_new(cuts, item);
    }
    json_object_set_new(object, "phases", phases);
    json_object_set_new(object, "cuts", cuts);
    hfi_print_json(object);
}
