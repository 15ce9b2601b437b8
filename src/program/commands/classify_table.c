/* SPDX-License-Identifier: MIT */
/*
 * The library's classification tables as a page and as a reason. docs/classification.md is what this prints. Must never
 * know a rule by itself: every word about one comes from the library. The main thread's.
 */
#include "program/commands/classify_table.h"

#include <stdio.h>
#include <string.h>

#include "program/nearest.h"
#include "program/output.h"

static bool next_table(size_t index, struct hf_rule_table *table) {
    *table = (struct hf_rule_table){.size = sizeof *table};
    return hf_rule_table(index, table) == 0;
}

static bool next_row(const struct hf_rule_table *table, size_t index, struct hf_rule_row *row) {
    *row = (struct hf_rule_row){.size = sizeof *row};
    return hf_rule_row(table->name, index, row) == 0;
}

static void head(void) {
    hfi_say("# Classification\n\n"
            "<!-- Made by `holdfast classify --table`; do not edit. -->\n\n"
            "How holdfast judges an attempt: three separate verdicts, and the facts. `class` is for the job "
            "(transient: executed\n"
            "again; permanent: dead at once), `retry` for the call (now, once on a fresh connection, later, none), "
            "`breaker` for\n"
            "the downstream's health. What may have been sent twice is decided apart from all this: by method, "
            "idempotency key\n"
            "and `sent`, where `no` is proof.\n\n"
            "An attempt is judged by the rules of the call, then those of the downstream (`rules` in holdfast.yaml), "
            "then by the\n"
            "first of these tables that knows it: transport, attempt, curl, http. The rule that decided stands in the "
            "outcome,\n"
            "and `holdfast classify ... --explain` shows its row.");
}

static void print_rows(const struct hf_rule_table *table) {
    struct hf_rule_row row;
    hfi_say("## %s\n\n%s %s.\nSource: %s.\n", table->name, table->about,
            table->ordered ? "The first row that matches decides" : "Each has a row of its own", table->source);
    hfi_say("| match | class | retry | breaker | stage | sent | rule | why |\n|---|---|---|---|---|---|---|---|");
    for (size_t i = 0; next_row(table, i, &row); i++)
        hfi_say("| %s | %s | %s | %s | %s | %s | `%s` | %s |", row.match, hf_class_name(row.klass),
                hf_retry_name(row.retry), hf_verdict_name(row.verdict), hf_stage_name(row.stage),
                hf_sent_name(row.sent), row.rule, row.note);
}

static void add_rows(json_t *items, const struct hf_rule_table *table) {
    struct hf_rule_row row;
    for (size_t i = 0; next_row(table, i, &row); i++) {
        json_t *item = json_object();
        hfi_json_text(item, "table", row.table);
        hfi_json_text(item, "match", row.match);
        hfi_json_text(item, "outcome", hf_outcome_kind_name(row.kind));
        hfi_json_text(item, "class", hf_class_name(row.klass));
        hfi_json_text(item, "retry", hf_retry_name(row.retry));
        hfi_json_text(item, "breaker", hf_verdict_name(row.verdict));
        hfi_json_text(item, "stage", hf_stage_name(row.stage));
        hfi_json_text(item, "sent", hf_sent_name(row.sent));
        hfi_json_text(item, "rule", row.rule);
        hfi_json_text(item, "note", row.note);
        hfi_json_text(item, "source", table->source);
        json_array_append_new(items, item);
    }
}

static int unknown(const char *name) {
    struct hf_rule_table table;
    struct hfi_nearest nearest;
    char fix[200] = "one of", offer[64];
    hfi_nearest_init(&nearest, name);
    for (size_t i = 0; next_table(i, &table); i++) {
        hfi_nearest_offer(&nearest, table.name);
        snprintf(offer, sizeof offer, "%s %s", i > 0 ? "," : "", table.name);
        strncat(fix, offer, sizeof fix - strlen(fix) - 1);
    }
    if (nearest.best)
        snprintf(fix, sizeof fix, "did you mean `%s`?", nearest.best);
    return hfi_usage("classify", fix, "`%s` is no table", name);
}

int hfi_classify_tables(const char *name) {
    struct hf_rule_table table;
    json_t *items = json_array();
    bool found = false;
    if (!name)
        head();
    for (size_t i = 0; next_table(i, &table); i++) {
        if (name && strcmp(name, table.name) != 0)
            continue;
        found = true;
        if (!name)
            hfi_say("%s", "");
        print_rows(&table);
        add_rows(items, &table);
    }
    if (!found) {
        json_decref(items);
        return unknown(name);
    }
    if (hfi_manner()->json)
        hfi_print_list(items, 0);
    else
        json_decref(items);
    return HFI_EXIT_OK;
}

void hfi_classify_reason(const char *name, const char *subject, const struct hf_outcome *outcome) {
    struct hf_rule_table table;
    struct hf_rule_row row;
    size_t i = 0;
    while (next_table(i, &table) && strcmp(table.name, name) != 0)
        i++;
    hfi_field("table", "%s: %s Source: %s", table.name, table.about, table.source);
    for (i = 0; next_row(&table, i, &row) && strcmp(row.rule, hf_outcome_get_rule(outcome)) != 0; i++) {
        char label[24];
        snprintf(label, sizeof label, "row %zu", i + 1);
        if (table.ordered)
            hfi_field(label, "no: %s is not %s [%s]", subject, row.match, row.rule);
    }
    char label[24];
    snprintf(label, sizeof label, "row %zu", i + 1);
    hfi_field(label, "yes: %s [%s]%s%s", row.match, row.rule, row.note[0] ? ": " : "", row.note);
    if (!table.ordered)
        hfi_field("other rows", "%s", "not asked: each has its own");
}
