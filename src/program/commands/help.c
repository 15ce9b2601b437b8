/* SPDX-License-Identifier: MIT */
/* `holdfast help`: what --help prints, and the man page holdfast(1) for the build. */
#include "program/help.h"

#include <string.h>

#include "program/commands/commands.h"
#include "program/output.h"

static const struct hfi_flag flags[] = {
    {.name = "man", .kind = HFI_FLAG_SWITCH, .help = "print the man page holdfast(1)", .hidden = true},
    {0},
};

static int run(const struct hfi_options *options) {
    char name[64] = "";
    if (hfi_flag(options, "man")->given) {
        hfi_help_man(hfi_commands);
        return HFI_EXIT_OK;
    }
    for (size_t i = 0; i < options->argument_count; i++) {
        strncat(name, i > 0 ? " " : "", sizeof name - strlen(name) - 1);
        strncat(name, options->arguments[i], sizeof name - strlen(name) - 1);
    }
    for (size_t i = 0; hfi_commands[i]; i++)
        if (strcmp(hfi_commands[i]->name, name) == 0) {
            hfi_help_one(hfi_commands[i]);
            return HFI_EXIT_OK;
        }
    for (size_t i = 0; hfi_commands[i] && *name; i++)
        if (strncmp(hfi_commands[i]->name, name, strlen(name)) == 0 && hfi_commands[i]->name[strlen(name)] == ' ') {
            hfi_help_all(hfi_commands, name);
            return HFI_EXIT_OK;
        }
    if (*name)
        return hfi_usage(name, "see holdfast --help", "unknown command");
    hfi_help_all(hfi_commands, NULL);
    return HFI_EXIT_OK;
}

const struct hfi_command hfi_command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "Prints help on a command",
    .example = "holdfast help job list",
    .flags = flags,
    .max_arguments = 2,
    .run = run,
};
