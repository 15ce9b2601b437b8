/* SPDX-License-Identifier: MIT */
/* How `ladder suggest` tells its proposal, the YAML to paste, and the proof of it. Only prints. The main thread's. */
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/commands/ladder_plot.h"
#include "program/commands/ladder_print.h"
#include "program/output.h"

#define SPAN(ms) hfi_show_span(ms, (char[HFI_SPAN_LENGTH]){0})
#define US(us) hfi_show_us(us, (char[HFI_US_ROOM]){0})
#define DURATION(ms) hf_duration_print(ms, (char[64]){0})

struct line {
    const char *key;
    const struct hf_proposal *proposal;
};
enum { LINES = 5 };

static void lines_of(const struct hf_suggestion *s, struct line *lines) {
    const struct line all[LINES] = {{"connect_timeout", &s->connect}, {"attempt_timeout", &s->attempt},
                                    {"total_timeout", &s->total},     {"breaker.window", &s->window},
                                    {"breaker.slow_after", &s->slow_after}};
    memcpy(lines, all, sizeof all);
}

static void why_of(const struct hf_proposal *proposal, char *text, size_t room) {
    switch (proposal->basis) {
    case HF_BASIS_TOO_FEW:
        snprintf(text, room, "kept: %llu samples, %llu are needed", (unsigned long long)proposal->samples,
                 (unsigned long long)proposal->needed);
        break;
    case HF_BASIS_MEASURED:
        snprintf(text, room, "measured: %s, at most %s with 95 %% confidence (%llu samples)", US(proposal->quantile_us),
                 US(proposal->bound_us), (unsigned long long)proposal->samples);
        break;
    case HF_BASIS_CUT:
        if (proposal->value_ms == proposal->now_ms)
            snprintf(text, room, "kept: what was measured leaves no room below the limit");
        else
            snprintf(text, room, "today's limit keeps %.2f %% only, what is beyond was never seen: try this, and measure again",
                     proposal->kept_now * 100);
        break;
    default:
        snprintf(text, room, "so that the others fit");
    }
}

static void print_yaml(const struct hf_suggestion *s, const char *name) {
    hfi_say("downstreams:");
    hfi_say("  %s:", name);
    hfi_say("    connect_timeout: %s", DURATION(s->policy.connect_timeout_ms));
    hfi_say("    attempt_timeout: %s", DURATION(s->policy.attempt_timeout_ms));
    hfi_say("    total_timeout: %s", DURATION(s->policy.total_timeout_ms));
    if (s->slow_ratio > 0)
        hfi_say("    breaker: {window: %s, slow_after: %s, slow_ratio: %g}", DURATION(s->policy.breaker_window_ms),
                DURATION(s->policy.breaker_slow_after_ms), s->slow_ratio);
    else
        hfi_say("    breaker: {window: %s}", DURATION(s->policy.breaker_window_ms));
}

static void print_proof(const struct hfi_proof *proof) {
    hfi_say("%s", "");
    for (const struct hfi_problem *problem = proof->first; problem; problem = problem->next)
        hfi_say("%s %s: %s%s%s%s [%s]", problem->is_error ? "E" : "W", problem->what, problem->why, *problem->fix ? " (" : "",
                problem->fix, *problem->fix ? ")" : "", problem->rule);
    hfi_say("checked by the rules of `holdfast check`: %zu error%s", proof->errors, proof->errors == 1 ? "" : "s");
}

void hfi_suggestion_print(const struct hf_suggestion *s, const char *name, const char *keep,
                          const struct hfi_proof *proof) {
    struct line lines[LINES];
    char why[200];
    lines_of(s, lines);
    struct hfi_table *table = hfi_table_new("LIMIT|>NOW|>PROPOSED|WHY");
    for (int i = 0; i < LINES; i++) {
        why_of(lines[i].proposal, why, sizeof why);
        hfi_table_cell(table, "%s", lines[i].key);
        hfi_table_cell(table, "%s", SPAN(lines[i].proposal->now_ms));
        hfi_table_cell(table, "%s", SPAN(lines[i].proposal->value_ms));
        hfi_table_cell(table, "%s", why);
    }
    hfi_say("to keep %s %% of what would answer, at %.3g attempts a second:", keep, s->rate_per_s);
    hfi_table_print(table);
    hfi_say("%s", "");
    print_yaml(s, name);
    if (proof)
        print_proof(proof);
}

static json_t *line_json(const struct line *line) {
    const struct hf_proposal *proposal = line->proposal;
    json_t *item = json_object();
    hfi_json_text(item, "limit", line->key);
    hfi_json_text(item, "basis", hf_basis_name(proposal->basis));
    hfi_json_number(item, "now_ms", proposal->now_ms);
    hfi_json_number(item, "proposed_ms", proposal->value_ms);
    hfi_json_number(item, "samples", (int64_t)proposal->samples);
    hfi_json_number(item, "needed", (int64_t)proposal->needed);
    json_object_set_new(item, "quantile_us", proposal->quantile_us < 0 ? json_null() : json_integer(proposal->quantile_us));
    json_object_set_new(item, "bound_us", proposal->bound_us < 0 ? json_null() : json_integer(proposal->bound_us));
    json_object_set_new(item, "kept_now", proposal->kept_now < 0 ? json_null() : json_real(proposal->kept_now));
    return item;
}

void hfi_suggestion_json(const struct hf_suggestion *s, const char *name, const char *keep,
                         const struct hfi_proof *proof) {
    struct line lines[LINES];
    json_t *object = json_object(), *items = json_array(), *findings = json_array();
    lines_of(s, lines);
    hfi_json_text(object, "downstream", name);
    hfi_json_text(object, "keep_percent", keep);
    hfi_json_real(object, "rate_per_s", s->rate_per_s);
    hfi_json_real(object, "slow_ratio", s->slow_ratio);
    for (int i = 0; i < LINES; i++)
        json_array_append_new(items, line_json(&lines[i]));
    for (const struct hfi_problem *problem = proof ? proof->first : NULL; problem; problem = problem->next) {
        json_t *item = json_object();
        hfi_json_text(item, "severity", problem->is_error ? "error" : "warning");
        hfi_json_text(item, "rule", problem->rule);
        hfi_json_text(item, "what", problem->what);
        hfi_json_text(item, "why", problem->why);
        hfi_json_text(item, "fix", problem->fix);
        json_array_append_new(findings, item);
    }
    json_object_set_new(object, "limits", items);
    hfi_json_flag(object, "checked", proof != NULL);
    json_object_set_new(object, "findings", findings);
    hfi_print_json(object);
}
