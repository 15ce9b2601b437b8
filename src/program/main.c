/* SPDX-License-Identifier: MIT */
/* The holdfast program: finds the command and runs it. Decides nothing else. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/log.h"
#include "holdfast/plugin.h"
#include "holdfast/version.h"
#include "program/commands/commands.h"
#include "program/config/settings.h"
#include "program/help.h"
#include "program/options.h"
#include "program/output.h"

static bool is_group(const char *word) {
    size_t length = strlen(word);
    for (size_t i = 0; hfi_commands[i]; i++)
        if (strncmp(hfi_commands[i]->name, word, length) == 0 && hfi_commands[i]->name[length] == ' ')
            return true;
    return false;
}

static void help(const struct hfi_options *options) {
    const char *group = options->argument_count > 0 && is_group(options->arguments[0]) ? options->arguments[0] : NULL;
    if (options->command)
        hfi_help_one(options->command);
    else
        hfi_help_all(hfi_commands, group);
}

/* The library's log on stderr: commands speak for themselves, `run` raises the level. */
static void set_log(void) {
    const struct hfi_manner *manner = hfi_manner();
    hf_log_set(manner->verbose ? HF_LOG_DEBUG : manner->quiet ? HF_LOG_ERROR : HF_LOG_WARNING, NULL, NULL);
}

/*
 * Started with one of 0, 1, 2 closed, the next socket or file would get its number, and what is printed would go there.
 * What fills the gap fails as a closed descriptor does.
 */
static void fill_standard_streams(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv) {
    struct hfi_options options;
    fill_standard_streams();
    if (argc == 3 && strcmp(argv[1], HFI_ISOLATED_PLUGIN) == 0) /* a node's execution: no command of people */
        return hf_isolated_plugin(argv[2]);
    int code = hfi_options_read(&options, hfi_commands, argc, argv);
    set_log();
    if (code == 0 && options.version)
        printf("holdfast %s\n", hf_version());
    else if (code == 0 && options.help)
        help(&options);
    else if (code == 0)
        code = options.command->run(&options);
    hfi_options_free(&options);
    return hfi_finish(code);
}
