/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_HELP_H
#define HFI_PROGRAM_HELP_H

#include "program/options.h"

/* Help on stdout: of the program, of a group ("job") or of one command. `group` NULL: of the program. */
void hfi_help_all(const struct hfi_command *const *commands, const char *group);
void hfi_help_one(const struct hfi_command *command);

/* The man page holdfast(1), made from the tables of the commands. */
void hfi_help_man(const struct hfi_command *const *commands);

#endif
