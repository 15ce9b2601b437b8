/* SPDX-License-Identifier: MIT */
/*
 * SQLSTATE as PostgreSQL uses it (appendix A), and two of ODBC: whole codes first, then classes, then transient [S0.3].
 * A lost connection has no code at all. Pure, any thread.
 */
#include "holdfast/classify.h"

#include <stdio.h>
#include <string.h>

#include "resilience/effect.h"

#define CODE_LENGTH 5

/* The first row whose text begins the code: whole codes stand before their class. */
static const struct row {
    const char *code;
    enum hfi_effect effect;
    enum hf_stage stage;
    enum hf_sent sent;
} table[] = {
    {"00", HFI_EFFECT_OK, HF_STAGE_WAIT, HF_SENT_YES},
    {"01", HFI_EFFECT_OK, HF_STAGE_WAIT, HF_SENT_YES},        /* warning */
    {"02", HFI_EFFECT_OK, HF_STAGE_WAIT, HF_SENT_YES},        /* no data */
    {"08001", HFI_EFFECT_DOWN, HF_STAGE_CONNECT, HF_SENT_NO}, /* never connected */
    {"08004", HFI_EFFECT_DOWN, HF_STAGE_CONNECT, HF_SENT_NO},
    {"08P01", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_MAYBE}, /* protocol violation */
    {"08", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE},       /* 08007: outcome unknown */
    {"0A", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES},
    {"21", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES},
    {"22", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES},
    {"23", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES}, /* 23505: a duplicate key */
    {"25006", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_YES}, /* read-only: failed over to a standby */
    {"25P02", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES}, /* in a failed transaction */
    {"26000", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES}, /* prepared statement gone: prepare again */
    {"28", HFI_EFFECT_REFUSED, HF_STAGE_CONNECT, HF_SENT_NO},
    {"3D", HFI_EFFECT_REFUSED, HF_STAGE_CONNECT, HF_SENT_NO},
    {"3F", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES},
    {"40003", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_MAYBE}, /* completion unknown */
    {"40001", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES},   /* serialization */
    {"40P01", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES},   /* deadlock */
    {"40", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES},
    {"42", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES},
    {"44", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES},
    {"53300", HFI_EFFECT_DOWN, HF_STAGE_CONNECT, HF_SENT_NO}, /* too many connections */
    {"53400", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_YES},
    {"53", HFI_EFFECT_DOWN_LATER, HF_STAGE_WAIT, HF_SENT_YES}, /* disk full, out of memory */
    {"54", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES},
    {"55006", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES},
    {"55P03", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES},   /* lock not available */
    {"57P03", HFI_EFFECT_DOWN, HF_STAGE_CONNECT, HF_SENT_NO}, /* starting up or shutting down */
    {"57P", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE},
    {"57", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_YES}, /* 57014: statement_timeout */
    {"58", HFI_EFFECT_DOWN_LATER, HF_STAGE_WAIT, HF_SENT_MAYBE},
    {"HYT", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE},   /* ODBC: timeout expired */
    {"XX001", HFI_EFFECT_BROKEN, HF_STAGE_WAIT, HF_SENT_YES}, /* corrupted data, index */
    {"XX002", HFI_EFFECT_BROKEN, HF_STAGE_WAIT, HF_SENT_YES},
    {"XX", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_YES},
};

/* Five digits or letters, as capitals. */
static bool tidy(const char *given, char *code) {
    if (strlen(given) != CODE_LENGTH)
        return false;
    for (int i = 0; i < CODE_LENGTH; i++) {
        char c = given[i];
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')))
            return false;
        code[i] = c;
    }
    code[CODE_LENGTH] = '\0';
    return true;
}

void hf_classify_sqlstate(const char *sqlstate, struct hf_outcome *outcome) {
    char code[CODE_LENGTH + 1], type[16], rule[24] = "sql.unclassified";
    if (sqlstate == NULL || sqlstate[0] == '\0') {
        hfi_effect_apply(outcome, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, 0, "sql.connection", "sql.connection");
        hfi_outcome_message(outcome, "the connection was lost without an SQLSTATE");
        return;
    }
    if (!tidy(sqlstate, code)) {
        hfi_effect_apply(outcome, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, 0, "sql.unknown", "sql.unknown");
        hfi_outcome_message(outcome, "not an SQLSTATE: \"%s\"", sqlstate);
        return;
    }
    snprintf(type, sizeof type, "sql.%s", code);
    static const struct row unclassified = {"unclassified", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE};
    const struct row *row = &unclassified;
    for (size_t i = 0; i < sizeof table / sizeof *table && row == &unclassified; i++)
        if (strncmp(code, table[i].code, strlen(table[i].code)) == 0)
            row = &table[i];
    if (row != &unclassified)
        snprintf(rule, sizeof rule, "sql.%s", row->code);
    hfi_effect_apply(outcome, row->effect, row->stage, row->sent, 0, type, rule);
    if (outcome->kind != HF_OUTCOME_SUCCESS)
        hfi_outcome_message(outcome, "SQLSTATE %s", code);
}
