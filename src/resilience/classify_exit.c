/* SPDX-License-Identifier: MIT */
/*
 * How a process ended: its exit status (sysexits(3)) or the signal that killed it (signal(7)). Only the codes that
 * sysexits calls the caller's fault are permanent; a crash, a kill and every other status is transient [S0.3]. Pure,
 * any thread.
 */
#include "holdfast/classify.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "resilience/effect.h"

#define EXIT_USAGE 64
#define EXIT_TEMPFAIL 75
#define EXIT_CONFIG 78

void hf_classify_exit(int status, struct hf_outcome *outcome) {
    char type[32];
    enum hfi_effect effect = HFI_EFFECT_DOWN;
    const char *rule = "exit.other";
    if (status == 0) {
        hfi_effect_apply(outcome, HFI_EFFECT_OK, HF_STAGE_HANDLER, HF_SENT_YES, 0, "", "exit.0");
        return;
    }
    if (status == EXIT_TEMPFAIL) {
        rule = "exit.75";
    } else if (status >= EXIT_USAGE && status <= EXIT_CONFIG) {
        effect = HFI_EFFECT_REFUSED;
        rule = "exit.sysexits";
    }
    snprintf(type, sizeof type, "exit.%d", status);
    hfi_effect_apply(outcome, effect, HF_STAGE_HANDLER, HF_SENT_MAYBE, status, type, rule);
    hfi_outcome_message(outcome, "the process ended with status %d", status);
}

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

void hf_classify_signal(int number, struct hf_outcome *outcome) {
    char type[32];
    snprintf(type, sizeof type, "signal.%d", number);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signals[i].number == number)
            snprintf(type, sizeof type, "signal.%s", signals[i].name);
    hfi_effect_apply(outcome, HFI_EFFECT_DOWN, HF_STAGE_HANDLER, HF_SENT_MAYBE, number, type, "signal");
    hfi_outcome_message(outcome, "the process was killed by signal %d (%s)", number, type + sizeof "signal." - 1);
}

int hf_signal_number(const char *name) {
    if (name == NULL)
        return -1;
    int number = hfi_digits(name);
    if (number >= 0)
        return number;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcasecmp(name, signals[i].name) == 0 || strcasecmp(name, signals[i].name + 3) == 0)
            return signals[i].number;
    return -1;
}
