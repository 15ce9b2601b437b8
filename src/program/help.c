/* SPDX-License-Identifier: MIT */
/*
 * Help texts and holdfast(1), both from the tables that also read the command line, so that they cannot disagree. The
 * main thread's.
 */
#include "program/help.h"

#include <stdio.h>
#include <string.h>

#include "holdfast/version.h"

static void print_flag(const struct hfi_flag *flag) {
    char left[64];
    bool optional = flag->kind == HFI_FLAG_OPTIONAL;
    if (flag->hidden)
        return;
    snprintf(left, sizeof left, "--%s%s%s%s%s", flag->name, flag->value ? " " : "", optional ? "[" : "",
             flag->value ? flag->value : "", optional ? "]" : "");
    printf("  %-26s %s%s%s\n", left, flag->help, flag->required ? " (required)" : "",
           flag->kind == HFI_FLAG_LIST ? " (may be repeated)" : "");
}

static void print_flags(const char *title, const struct hfi_flag *flags) {
    if (!flags || !flags->name)
        return;
    printf("\n%s\n", title);
    for (; flags->name; flags++)
        print_flag(flags);
}

void hfi_help_one(const struct hfi_command *command) {
    printf("Usage: holdfast %s%s%s [flags]\n\n%s.\n", command->name, *command->arguments ? " " : "", command->arguments,
           command->summary);
    if (command->about)
        printf("%s\n", command->about);
    print_flags("Flags:", command->flags);
    print_flags("Flags of every command:", hfi_global_flags);
    printf("\nExample:\n");
    for (const char *at = command->example; *at;) {
        size_t length = strcspn(at, "\n");
        printf("  %.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

static bool in_group(const struct hfi_command *command, const char *group) {
    size_t length = group ? strlen(group) : 0;
    if (command->hidden)
        return false;
    return !group || (strncmp(command->name, group, length) == 0 && command->name[length] == ' ');
}

void hfi_help_all(const struct hfi_command *const *commands, const char *group) {
    if (group)
        printf("Usage: holdfast %s COMMAND\n\nCommands:\n", group);
    else
        printf("Usage: holdfast COMMAND [ARGUMENTS] [flags]\n\n"
               "Makes outbound calls fail well, and runs the jobs that make them.\n\nCommands:\n");
    for (; *commands; commands++)
        if (in_group(*commands, group))
            printf("  %-20s %s\n", (*commands)->name, (*commands)->summary);
    print_flags("Flags of every command:", hfi_global_flags);
    printf("\nExit codes: 0 ok, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused by the state.\n"
           "\nExample:\n  holdfast %s%s--help\n",
           group ? group : "enqueue", group ? " list " : " ");
}

/* Text in roff: backslashes and leading dots or quotes would be read as requests. */
static void roff(const char *text) {
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        start = *text == '\n';
    }
}

static void man_flags(const struct hfi_flag *flags) {
    for (; flags && flags->name; flags++) {
        if (flags->hidden)
            continue;
        fputs(".TP\n\\fB\\-\\-", stdout);
        roff(flags->name);
        fputs("\\fR", stdout);
        if (flags->value) {
            fputs(flags->kind == HFI_FLAG_OPTIONAL ? " [\\fI" : " \\fI", stdout);
            roff(flags->value);
            fputs(flags->kind == HFI_FLAG_OPTIONAL ? "\\fR]" : "\\fR", stdout);
        }
        putchar('\n');
        roff(flags->help);
        fputs(flags->required ? " (required)\n" : "\n", stdout);
    }
}

static void man_command(const struct hfi_command *command) {
    fputs(".SS holdfast ", stdout);
    roff(command->name);
    if (*command->arguments) {
        putchar(' ');
        roff(command->arguments);
    }
    putchar('\n');
    roff(command->summary);
    fputs(".\n", stdout);
    if (command->about) {
        roff(command->about);
        putchar('\n');
    }
    man_flags(command->flags);
    fputs(".PP\n.nf\n", stdout);
    roff(command->example);
    fputs("\n.fi\n", stdout);
}

void hfi_help_man(const struct hfi_command *const *commands) {
    fputs(".\\\" Made by `holdfast help --man` from the tables of the program; do not edit.\n"
          ".TH HOLDFAST 1 \"\" \"holdfast " HF_VERSION_TEXT "\" \"User Commands\"\n"
          ".SH NAME\nholdfast \\- outbound calls that fail well, and the jobs that make them\n"
          ".SH SYNOPSIS\n.B holdfast\n\\fICOMMAND\\fR [\\fIARGUMENTS\\fR] [\\fIflags\\fR]\n"
          ".SH DESCRIPTION\n"
          "Runs jobs from a durable store: HTTP calls and commands. Every call passes time limits, short retries with a\n"
          "budget and one circuit breaker per downstream; every job has a long retry curve, and one that fails for good\n"
          "becomes a dead letter and an alert. Durations are written 250ms, 5s, 2m, 1h, 7d; times in RFC 3339 with a\n"
          "zone. With \\fB\\-\\-json\\fR a command prints one object; lists are {\"items\": [...], \"next\": cursor or\n"
          "null}. Errors go to stderr as `holdfast: what: why (fix)'.\n"
          ".SH FLAGS OF EVERY COMMAND\n",
          stdout);
    man_flags(hfi_global_flags);
    fputs(".SH COMMANDS\n", stdout);
    for (; *commands; commands++)
        if (!(*commands)->hidden)
            man_command(*commands);
    fputs(".SH EXIT STATUS\n0 ok, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused by the state.\n"
          ".SH ENVIRONMENT\n.TP\n.B HOLDFAST_CONFIG\nConfiguration when there is no holdfast.yaml here.\n"
          ".TP\n.B NO_COLOR\nNo colours, unless \\-\\-color always.\n"
          ".SH SEE ALSO\n.BR holdfast.yaml (5)\n",
          stdout);
}
