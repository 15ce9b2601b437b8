/* SPDX-License-Identifier: MIT */
/*
 * The reply that ended an SMTP transaction (RFC 5321 4.2): 4yz says "not now", 5yz "never". Only 421 and a full disk
 * speak of the server; greylisting and mailboxes do not. Pure, any thread.
 */
#include "resilience/table.h"

#include <stdio.h>

static const struct row {
    int from, to;
    enum hfi_effect effect;
    enum hf_sent sent;
    const char *rule, *note;
} table[] = {
    {200, 299, HFI_EFFECT_OK, HF_SENT_YES, "smtp.2yz", ""},
    {300, 399, HFI_EFFECT_DOWN, HF_SENT_MAYBE, "smtp.3yz", "it waits for more: the transaction never ended"},
    {421, 421, HFI_EFFECT_DOWN, HF_SENT_MAYBE, "smtp.421", "the service closes the connection"},
    {452, 452, HFI_EFFECT_DOWN_LATER, HF_SENT_YES, "smtp.452", "no room on the server"},
    {454, 454, HFI_EFFECT_DOWN_LATER, HF_SENT_YES, "smtp.454", "TLS or authentication is out of order for now"},
    {400, 499, HFI_EFFECT_BUSY_LATER, HF_SENT_YES, "smtp.4yz", "greylisted, mailbox busy: minutes, not seconds"},
    {500, 599, HFI_EFFECT_REFUSED, HF_SENT_YES, "smtp.5yz", "refused for good"},
};
#define ROWS (sizeof table / sizeof *table)

void hf_classify_smtp(int code, struct hf_outcome *outcome) {
    char type[24];
    snprintf(type, sizeof type, "smtp.%d", code);
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &table[i];
        if (code < row->from || code > row->to)
            continue;
        hfi_effect_apply(outcome, row->effect, HF_STAGE_WAIT, row->sent, code, type, row->rule);
        if (outcome->kind != HF_OUTCOME_SUCCESS)
            hfi_outcome_message(outcome, "the mail server answered %d", code);
        return;
    }
    hfi_effect_guess(outcome, code, type, "smtp.unknown");
    hfi_outcome_message(outcome, "the mail server answered %d, which is no reply of SMTP", code);
}

static void show(size_t index, struct hf_rule_row *row) {
    if (index == ROWS) {
        hfi_row_rest(row, "smtp.unknown");
        return;
    }
    const struct row *from = &table[index];
    if (from->from == from->to)
        hfi_row_fill(row, from->effect, HF_STAGE_WAIT, from->sent, from->rule, from->note, "%d", from->from);
    else
        hfi_row_fill(row, from->effect, HF_STAGE_WAIT, from->sent, from->rule, from->note, "%d-%d", from->from,
                     from->to);
}

const struct hfi_table hfi_table_smtp = {
    "smtp", "The reply that ended an SMTP transaction.", "RFC 5321 4.2", true, ROWS + 1, show};
