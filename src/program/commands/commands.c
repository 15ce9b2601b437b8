/* SPDX-License-Identifier: MIT */
/* The list of commands, in the order in which help shows them. */
#include "program/commands/commands.h"

#include <stddef.h>

const struct hfi_command *const hfi_commands[] = {
    &hfi_command_check,
    &hfi_command_retry_after,
    &hfi_command_help,
    NULL,
};
