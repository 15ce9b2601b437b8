/* SPDX-License-Identifier: MIT */
/*
 * The built-in tables as one list that can be walked: for `holdfast classify`, the documentation and the tests. Decides
 * nothing: every row comes out of the very data its classifier reads. Pure, any thread.
 */
#include "resilience/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct hfi_table *const tables[] = {
    &hfi_table_http,  &hfi_table_curl,   &hfi_table_attempt,  &hfi_table_transport, &hfi_table_limit,
    &hfi_table_errno, &hfi_table_sqlite, &hfi_table_sqlstate, &hfi_table_mssql,     &hfi_table_mysql,
    &hfi_table_smtp,  &hfi_table_exit,   &hfi_table_signal,
};

void hfi_row_fill(struct hf_rule_row *row, enum hfi_effect effect, enum hf_stage stage, enum hf_sent sent,
                  const char *rule, const char *note, const char *match, ...) {
    struct hf_outcome outcome;
    va_list arguments;
    hfi_effect_apply(&outcome, effect, stage, sent, 0, "", rule);
    row->kind = outcome.kind;
    row->klass = outcome.klass;
    row->retry = outcome.retry;
    row->verdict = outcome.verdict;
    row->stage = stage;
    row->sent = sent;
    row->note = note != NULL ? note : "";
    snprintf(row->rule, sizeof row->rule, "%s", rule);
    va_start(arguments, match);
    vsnprintf(row->match, sizeof row->match, match, arguments);
    va_end(arguments);
}

void hfi_row_rest(struct hf_rule_row *row, const char *rule) {
    hfi_row_fill(row, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, rule, "what no rule knows is transient",
                 "anything else");
}

int hf_rule_table(size_t index, struct hf_rule_table *table) {
    struct hf_rule_table whole = {.size = sizeof whole};
    if (table == NULL || table->size < sizeof table->size)
        return HF_EINVAL;
    if (index >= sizeof tables / sizeof *tables)
        return HF_ENOENT;
    uint32_t size = table->size < sizeof whole ? table->size : (uint32_t)sizeof whole;
    whole.name = tables[index]->name;
    whole.about = tables[index]->about;
    whole.source = tables[index]->source;
    whole.ordered = tables[index]->ordered;
    whole.rows = tables[index]->rows;
    memcpy(table, &whole, size);
    table->size = size;
    return 0;
}

int hf_rule_row(const char *table, size_t index, struct hf_rule_row *row) {
    struct hf_rule_row whole = {.size = sizeof whole};
    if (table == NULL || row == NULL || row->size < sizeof row->size)
        return HF_EINVAL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (strcmp(tables[i]->name, table) != 0)
            continue;
        if (index >= tables[i]->rows)
            return HF_ENOENT;
        uint32_t size = row->size < sizeof whole ? row->size : (uint32_t)sizeof whole;
        whole.table = tables[i]->name;
        tables[i]->row(index, &whole);
        memcpy(row, &whole, size);
        row->size = size;
        return 0;
    }
    return HF_ENOENT;
}
