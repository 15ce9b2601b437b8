/* SPDX-License-Identifier: MIT */
/*
 * How a process ended: its exit status (sysexits(3), and what a shell makes of 126 up) or the signal that killed it
 * (signal(7)). Only the codes that sysexits calls the caller's fault are permanent; a crash, a kill and every other
 * status is transient [S0.3]. Pure, any thread.
 */
#include "resilience/table.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* First match wins. */
static const struct row {
    int from, to;
    enum hfi_effect effect;
    const char *rule, *note;
} table[] = {
    {0, 0, HFI_EFFECT_OK, "exit.0", ""},
    {75, 75, HFI_EFFECT_DOWN, "exit.75", "EX_TEMPFAIL: try again"},
    {65, 65, HFI_EFFECT_REFUSED, "exit.65", "EX_DATAERR; an exec job whose type says what payloads are is quarantined: it cannot read this one"},
    {64, 78, HFI_EFFECT_REFUSED, "exit.sysexits", "usage, data, configuration: the next time ends the same way"},
    {126, 126, HFI_EFFECT_DOWN_LATER, "exit.126", "found, but not executable; a deployment may mend it"},
    {127, 127, HFI_EFFECT_DOWN_LATER, "exit.127", "not found; a deployment may mend it"},
    {129, 192, HFI_EFFECT_DOWN, "exit.signal", "a shell's word for a child killed by signal status - 128"},
    {1, 255, HFI_EFFECT_DOWN, "exit.other", "no failure is permanent unless it says so"},
};
#define ROWS (sizeof table / sizeof *table)

void hf_classify_exit(int status, struct hf_outcome *outcome) {
    char type[32] = "";
    const struct row *row = table;
    if (status != 0) /* a success has no type */
        snprintf(type, sizeof type, "exit.%d", status);
    while (row < table + ROWS && (status < row->from || status > row->to))
        row++;
    if (row == table + ROWS)
        hfi_effect_guess(outcome, status, type, "exit.unknown");
    else
        hfi_effect_apply(outcome, row->effect, HF_STAGE_HANDLER, status == 0 ? HF_SENT_YES : HF_SENT_MAYBE, status,
                         type, row->rule);
    outcome->stage = HF_STAGE_HANDLER;
    if (outcome->kind != HF_OUTCOME_SUCCESS)
        hfi_outcome_message(outcome, "the process ended with status %d", status);
}

static void show_exit(size_t index, struct hf_rule_row *row) {
    if (index == ROWS) {
        hfi_row_rest(row, "exit.unknown");
        row->stage = HF_STAGE_HANDLER;
        return;
    }
    const struct row *from = &table[index];
    enum hf_sent sent = index == 0 ? HF_SENT_YES : HF_SENT_MAYBE;
    if (from->from == from->to)
        hfi_row_fill(row, from->effect, HF_STAGE_HANDLER, sent, from->rule, from->note, "%d", from->from);
    else
        hfi_row_fill(row, from->effect, HF_STAGE_HANDLER, sent, from->rule, from->note, "%d-%d", from->from, from->to);
}

const struct hfi_table hfi_table_exit = {
    "exit", "Exit statuses of commands.", "sysexits(3), POSIX shell 2.8.2", true, ROWS + 1, show_exit};

/* clang-format off */
#define SIGNAL_MAP(X) \
    X(SIGHUP) X(SIGINT) X(SIGQUIT) X(SIGILL) X(SIGTRAP) X(SIGABRT) X(SIGBUS) X(SIGFPE) X(SIGKILL) X(SIGUSR1) \
    X(SIGSEGV) X(SIGUSR2) X(SIGPIPE) X(SIGALRM) X(SIGTERM) X(SIGSTKFLT) X(SIGCHLD) X(SIGCONT) X(SIGSTOP) X(SIGTSTP) \
    X(SIGTTIN) X(SIGTTOU) X(SIGURG) X(SIGXCPU) X(SIGXFSZ) X(SIGVTALRM) X(SIGPROF) X(SIGWINCH) X(SIGIO) X(SIGPWR) \
    X(SIGSYS)
/* clang-format on */

static const struct {
    const char *name;
    int number;
} signals[] = {
#define ROW(name) {#name, name},
    SIGNAL_MAP(ROW)
#undef ROW
};
#define SIGNALS (sizeof signals / sizeof *signals)

void hf_classify_signal(int number, struct hf_outcome *outcome) {
    char type[32];
    snprintf(type, sizeof type, "signal.%d", number);
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == number)
            snprintf(type, sizeof type, "signal.%s", signals[i].name);
    hfi_effect_apply(outcome, HFI_EFFECT_DOWN, HF_STAGE_HANDLER, HF_SENT_MAYBE, number, type, "signal");
    hfi_outcome_message(outcome, "the process was killed by signal %d (%s)", number, type + sizeof "signal." - 1);
}

static void show_signal(size_t index, struct hf_rule_row *row) {
    char names[512] = "";
    size_t at = 0;
    (void)index;
    for (size_t i = 0; i < SIGNALS; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s, ", signals[i].name);
    hfi_row_fill(row, HFI_EFFECT_DOWN, HF_STAGE_HANDLER, HF_SENT_MAYBE, "signal",
                 "a crash or a kill says nothing of the job's input", "%sand any other by its number", names);
}

const struct hfi_table hfi_table_signal = {"signal", "Signals that end a command.", "signal(7)", false, 1, show_signal};

int hf_signal_number(const char *name) {
    if (name == NULL)
        return -1;
    int number = hfi_digits(name);
    if (number >= 0)
        return number;
    for (size_t i = 0; i < SIGNALS; i++)
        if (strcasecmp(name, signals[i].name) == 0 || strcasecmp(name, signals[i].name + 3) == 0)
            return signals[i].number;
    return -1;
}
