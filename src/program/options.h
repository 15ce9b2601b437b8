/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_OPTIONS_H
#define HFI_PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/memory.h"

/* What a flag takes. TEXT, LIST and CHOICE are valid UTF-8; BYTES is not looked at. */
enum hfi_flag_kind {
    HFI_FLAG_SWITCH,
    HFI_FLAG_TEXT,
    HFI_FLAG_BYTES,
    HFI_FLAG_OPTIONAL, /* a text that may be left out */
    HFI_FLAG_LIST,     /* a text, may be given more than once */
    HFI_FLAG_NUMBER,   /* min … max */
    HFI_FLAG_DURATION, /* ms */
    HFI_FLAG_TIME,     /* µs UTC */
    HFI_FLAG_CHOICE    /* `value` lists them: "no|maybe|yes"; the number is the index */
};
struct hfi_flag {
    const char *name;  /* without the dashes; NULL ends a table */
    enum hfi_flag_kind kind;
    const char *value; /* how help names the value */
    const char *help;
    int64_t min, max;  /* NUMBER: inclusive; DURATION: min only, ms */
    bool required;
    bool hidden;       /* not in help */
};

struct hfi_options;
/* One command: all there is to know about it. The table of them is in commands/commands.c. */
struct hfi_command {
    const char *name;      /* "job list" */
    const char *arguments; /* "TYPE [PAYLOAD | -]" */
    const char *summary;   /* one line, no full stop */
    const char *about;     /* what to know before using it */
    const char *example;   /* lines of a shell */
    const struct hfi_flag *flags; /* NULL: none of its own */
    size_t min_arguments, max_arguments;
    bool prints_json; /* knows --json */
    bool hidden;      /* not in the lists of commands */
    int (*run)(const struct hfi_options *options); /* the exit code */
};

struct hfi_value {
    bool given;
    const char *text; /* as typed; NULL for a switch or an OPTIONAL without one */
    int64_t number;
    const char **list;
    size_t count;
};
struct hfi_options {
    const struct hfi_command *command;
    const char *config, *store; /* --config, --store; NULL: not given */
    bool help, version;
    struct hfi_value *values; /* as the command's flags */
    const char **arguments;
    size_t argument_count;
    struct hfi_arena arena;
};

/* The flags every command knows. */
extern const struct hfi_flag hfi_global_flags[];

/*
 * Reads the arguments behind the program's name: global flags anywhere, then a command of `commands` and what it takes.
 * Sets the manner of output as soon as it is known. 0, or the exit code after a complaint. hfi_options_free in any case.
 */
int hfi_options_read(struct hfi_options *options, const struct hfi_command *const *commands, int argc, char **argv);
void hfi_options_free(struct hfi_options *options);

/* The value of one of the command's flags. Asking for a flag that the command does not have ends the process. */
const struct hfi_value *hfi_flag(const struct hfi_options *options, const char *name);
const char *hfi_flag_text(const struct hfi_options *options, const char *name, const char *missing);
int64_t hfi_flag_number(const struct hfi_options *options, const char *name, int64_t missing);

/* A job or dead letter id: digits, 1 or more. 0, or an exit code after a complaint. */
int hfi_id_read(const char *text, const char *what, int64_t *id);

#endif
