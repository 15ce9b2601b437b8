/* SPDX-License-Identifier: MIT */
/*
 * SQLSTATE as PostgreSQL uses it (appendix A), and two of ODBC: whole codes first, then classes, then transient [S0.3].
 * A lost connection has no code at all. Pure, any thread.
 */
#include "resilience/table.h"

#include <stdio.h>
#include <string.h>

#define CODE_LENGTH 5

/* Of a statement whose table changed under it: the message, and the name that no translation touches. */
static const char *const stale_plan[] = {"cached plan must not change result type", "RevalidateCachedQuery", NULL};

/* The first row that matches: whole codes stand before their class, and a code with a text before the code alone. */
static const struct row {
    const char *code;
    enum hfi_effect effect;
    enum hf_stage stage;
    enum hf_sent sent;
    const char *note;
    const char *const *texts; /* NULL, or: one of these has to stand in the text, up to a NULL */
} table[] = {
#define ROW(code, effect, stage, sent, note)                                                                           \
    { code, HFI_EFFECT_##effect, HF_STAGE_##stage, HF_SENT_##sent, note, NULL }
    ROW("00", OK, WAIT, YES, "success"),
    ROW("01", OK, WAIT, YES, "warning"),
    ROW("02", OK, WAIT, YES, "no data"),
    ROW("03", REFUSED, WAIT, YES, "statement not yet complete"),
    ROW("08001", DOWN, CONNECT, NO, "never connected"),
    ROW("08004", DOWN, CONNECT, NO, "connection refused by the server"),
    ROW("08", DOWN, WAIT, MAYBE, "connection, protocol; 08007: nobody knows how the transaction ended"),
    ROW("09", REFUSED, WAIT, YES, "triggered action"),
    {"0A000", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES, "prepare the statement again", stale_plan},
    ROW("0A", REFUSED, WAIT, YES, "feature not supported"),
    ROW("0B", REFUSED, WAIT, YES, "invalid transaction initiation"),
    ROW("0F", REFUSED, WAIT, YES, "locator"),
    ROW("0L", REFUSED, WAIT, YES, "invalid grantor"),
    ROW("0P", REFUSED, WAIT, YES, "invalid role"),
    ROW("0Z", REFUSED, WAIT, YES, "diagnostics"),
    ROW("10", REFUSED, WAIT, YES, "XQuery"),
    ROW("20", REFUSED, WAIT, YES, "case not found"),
    ROW("21", REFUSED, WAIT, YES, "cardinality"),
    ROW("22", REFUSED, WAIT, YES, "data"),
    ROW("23", REFUSED, WAIT, YES, "integrity; 23505: a duplicate key"),
    ROW("24", REFUSED, WAIT, YES, "invalid cursor state"),
    ROW("25006", DOWN, WAIT, YES, "read-only: failed over to a standby"),
    ROW("25P02", BUSY, WAIT, YES, "in a failed transaction"),
    ROW("25P03", BUSY, WAIT, YES, "idle in the transaction for too long: rolled back"),
    ROW("25P04", DOWN, WAIT, YES, "transaction timeout: rolled back"),
    ROW("25", REFUSED, WAIT, YES, "invalid transaction state"),
    ROW("26", BUSY, WAIT, YES, "prepared statement gone: prepare again"),
    ROW("27", REFUSED, WAIT, YES, "triggered data change"),
    ROW("28", REFUSED, CONNECT, NO, "login refused"),
    ROW("2B", REFUSED, WAIT, YES, "privileges depend on it"),
    ROW("2D", REFUSED, WAIT, YES, "invalid transaction termination"),
    ROW("2F", REFUSED, WAIT, YES, "SQL routine"),
    ROW("34", REFUSED, WAIT, YES, "invalid cursor name"),
    ROW("38", REFUSED, WAIT, YES, "external routine"),
    ROW("39", REFUSED, WAIT, YES, "external routine invocation"),
    ROW("3B", REFUSED, WAIT, YES, "savepoint"),
    ROW("3D", REFUSED, CONNECT, NO, "no such database"),
    ROW("3F", REFUSED, WAIT, YES, "no such schema"),
    ROW("40003", BUSY, WAIT, MAYBE, "nobody knows whether it was completed"),
    ROW("40001", BUSY, WAIT, YES, "serialization"),
    ROW("40P01", BUSY, WAIT, YES, "deadlock"),
    ROW("40", BUSY, WAIT, YES, "rolled back"),
    ROW("42", REFUSED, WAIT, YES, "syntax or access rule"),
    ROW("44", REFUSED, WAIT, YES, "check option of a view"),
    ROW("53300", DOWN, CONNECT, NO, "too many connections"),
    ROW("53400", DOWN, WAIT, YES, "configured limit exceeded"),
    ROW("53", DOWN_LATER, WAIT, YES, "disk full, out of memory"),
    ROW("54", REFUSED, WAIT, YES, "program limit exceeded"),
    ROW("55006", BUSY, WAIT, YES, "object in use"),
    ROW("55P03", BUSY, WAIT, YES, "lock not available"),
    ROW("55", BUSY, WAIT, YES, "object not in the state it needs"),
    ROW("57P03", DOWN, CONNECT, NO, "starting up or shutting down"),
    ROW("57P05", BUSY, WAIT, MAYBE, "the session was idle for too long"),
    ROW("57P", DOWN, WAIT, MAYBE, "shut down by the operator or crashed; 57P04: the database was dropped"),
    ROW("57014", BUSY, WAIT, YES, "cancelled by who asked, or by a limit of the statement"),
    ROW("57", DOWN, WAIT, YES, "operator intervention"),
    ROW("58", DOWN_LATER, WAIT, MAYBE, "the server's system"),
    ROW("72", BUSY, WAIT, YES, "snapshot too old"),
    ROW("F0", BROKEN, CONNECT, NO, "the server's configuration file"),
    ROW("HV00N", DOWN, WAIT, YES, "the foreign server cannot be reached"),
    ROW("HV001", DOWN_LATER, WAIT, YES, "a foreign data wrapper is out of memory"),
    ROW("HV", REFUSED, WAIT, YES, "foreign data wrapper"),
    ROW("HYT", DOWN, WAIT, MAYBE, "ODBC: timeout expired"),
    ROW("P0", REFUSED, WAIT, YES, "PL/pgSQL; P0001: raised on purpose"),
    ROW("XX001", BROKEN, WAIT, YES, "corrupted data"),
    ROW("XX002", BROKEN, WAIT, YES, "corrupted index"),
    ROW("XX", DOWN, WAIT, YES, "internal error"),
#undef ROW
};
#define ROWS (sizeof table / sizeof *table)

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

static bool matches(const struct row *row, const char *code, const char *text) {
    if (strncmp(code, row->code, strlen(row->code)) != 0)
        return false;
    for (size_t i = 0; row->texts != NULL && text != NULL && row->texts[i] != NULL; i++)
        if (strstr(text, row->texts[i]) != NULL)
            return true;
    return row->texts == NULL;
}

static void rule_of(const struct row *row, char *rule, size_t room) {
    snprintf(rule, room, "sql.%s%s", row->code, row->texts != NULL ? ".plan" : "");
}

void hf_classify_sqlstate_text(const char *sqlstate, const char *text, struct hf_outcome *outcome) {
    char code[CODE_LENGTH + 1], type[16], rule[24];
    if (sqlstate == NULL || sqlstate[0] == '\0') {
        hfi_effect_apply(outcome, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, 0, "sql.connection", "sql.connection");
        hfi_outcome_message(outcome, "the connection was lost without an SQLSTATE");
        return;
    }
    if (!tidy(sqlstate, code)) {
        hfi_effect_guess(outcome, 0, "sql.unknown", "sql.unknown");
        hfi_outcome_message(outcome, "not an SQLSTATE: \"%s\"", sqlstate);
        return;
    }
    snprintf(type, sizeof type, "sql.%s", code);
    const struct row *row = table;
    while (row < table + ROWS && !matches(row, code, text))
        row++;
    if (row < table + ROWS) {
        rule_of(row, rule, sizeof rule);
        hfi_effect_apply(outcome, row->effect, row->stage, row->sent, 0, type, rule);
    } else {
        hfi_effect_guess(outcome, 0, type, "sql.unclassified");
    }
    if (outcome->kind != HF_OUTCOME_SUCCESS)
        hfi_outcome_message(outcome, "SQLSTATE %s", code);
}

void hf_classify_sqlstate(const char *sqlstate, struct hf_outcome *outcome) {
    hf_classify_sqlstate_text(sqlstate, NULL, outcome);
}

void hf_classify_sqlstates(const char *const *sqlstates, size_t count, struct hf_outcome *outcome) {
    struct hf_outcome one;
    hfi_outcome_init(outcome);
    for (size_t i = 0; i < count; i++) {
        hf_classify_sqlstate(sqlstates[i], &one);
        hf_classify_join(outcome, &one);
    }
    if (count == 0)
        hfi_effect_guess(outcome, 0, "sql.unknown", "sql.unknown");
}

static void show(size_t index, struct hf_rule_row *row) {
    char rule[24];
    if (index == ROWS) {
        hfi_row_fill(row, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, "sql.connection", "",
                     "no SQLSTATE at all: the connection was lost");
    } else if (index == ROWS + 1) {
        hfi_row_rest(row, "sql.unclassified");
    } else if (index == ROWS + 2) {
        hfi_row_fill(row, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, "sql.unknown", "", "what is no SQLSTATE");
    } else {
        const struct row *from = &table[index];
        rule_of(from, rule, sizeof rule);
        hfi_row_fill(row, from->effect, from->stage, from->sent, rule, from->note, "%s%s%s", from->code,
                     strlen(from->code) < CODE_LENGTH ? "…" : "",
                     from->texts != NULL ? " with \"cached plan must not change result type\"" : "");
    }
}

const struct hfi_table hfi_table_sqlstate = {"sqlstate",
                                             "SQLSTATE as PostgreSQL uses it, by code or by its beginning.",
                                             "PostgreSQL appendix A, ODBC appendix A",
                                             true,
                                             ROWS + 3,
                                             show};
