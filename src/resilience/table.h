/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_TABLE_H
#define HFI_RESILIENCE_TABLE_H

#include "holdfast/classify.h"
#include "resilience/effect.h"

/* A built-in table as its walkers see it: each classifier turns its own typed rows into these. */
struct hfi_table {
    const char *name, *about, *source;
    bool ordered; /* the first row that matches decides; else every input has one row */
    size_t rows;
    void (*row)(size_t index, struct hf_rule_row *row); /* all but size and table; `index` < rows */
};
extern const struct hfi_table hfi_table_http, hfi_table_curl, hfi_table_attempt, hfi_table_transport, hfi_table_limit,
    hfi_table_errno, hfi_table_sqlite, hfi_table_sqlstate, hfi_table_mssql, hfi_table_mysql, hfi_table_smtp,
    hfi_table_exit, hfi_table_signal;

/* The verdicts of `effect` and the texts; what the row matches is printed. */
void hfi_row_fill(struct hf_rule_row *row, enum hfi_effect effect, enum hf_stage stage, enum hf_sent sent,
                  const char *rule, const char *note, const char *match, ...) HF_PRINTF(7, 8);
/* The last row of most tables: what no row knows is transient [S0.3]. */
void hfi_row_rest(struct hf_rule_row *row, const char *rule);

#endif
