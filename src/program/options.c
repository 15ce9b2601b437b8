/* SPDX-License-Identifier: MIT */
/*
 * Reads the command line by the tables of the commands. Must never guess: what is not in a table is refused with the
 * nearest name that is. The main thread's.
 */
#include "program/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/nearest.h"
#include "program/output.h"
#include "program/words.h"

const struct hfi_flag hfi_global_flags[] = {
    {"config", HFI_FLAG_TEXT, "FILE", "configuration (default: holdfast.yaml here, else $HOLDFAST_CONFIG)", 0, 0, 0, 0},
    {"store", HFI_FLAG_TEXT, "URL", "store of jobs (default: the configuration's, else sqlite:holdfast.db)", 0, 0, 0, 0},
    {"json", HFI_FLAG_SWITCH, NULL, "print one JSON object", 0, 0, 0, 0},
    {"quiet", HFI_FLAG_SWITCH, NULL, "print nothing but errors", 0, 0, 0, 0},
    {"verbose", HFI_FLAG_SWITCH, NULL, "say more on stderr", 0, 0, 0, 0},
    {"color", HFI_FLAG_CHOICE, "auto|always|never", "colours (default: auto, on a terminal)", 0, 0, 0, 0},
    {"version", HFI_FLAG_SWITCH, NULL, "print the version", 0, 0, 0, 0},
    {"help", HFI_FLAG_SWITCH, NULL, "print help, of a command too", 0, 0, 0, 0},
    {0},
};
enum { GLOBAL_CONFIG, GLOBAL_STORE, GLOBAL_JSON, GLOBAL_QUIET, GLOBAL_VERBOSE, GLOBAL_COLOR, GLOBAL_VERSION, GLOBAL_HELP };
#define GLOBALS (GLOBAL_HELP + 1)

struct reader {
    struct hfi_options *options;
    const struct hfi_command *const *commands;
    struct hfi_value globals[GLOBALS];
    char **words; /* not flags, in order */
    size_t word_count;
    int at, argc;
    char **argv;
};

static size_t find(const struct hfi_flag *flags, const char *name, size_t length) {
    size_t i = 0;
    while (flags && flags[i].name && (strncmp(flags[i].name, name, length) != 0 || flags[i].name[length]))
        i++;
    return flags && flags[i].name ? i : SIZE_MAX;
}

/* Are the words the name of `command`, "run" or "job list"? */
static bool matches(const struct hfi_command *command, char **words, size_t count) {
    const char *at = command->name;
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(at, " ");
        if (strncmp(at, words[i], length) != 0 || words[i][length])
            return false;
        at += length;
        if (!*at)
            return i + 1 == count;
        at++;
    }
    return false;
}

static const struct hfi_command *find_command(const struct reader *reader) {
    size_t i = 0;
    while (reader->commands[i] && !matches(reader->commands[i], reader->words, reader->word_count))
        i++;
    return reader->commands[i];
}

static int read_number(const struct hfi_flag *flag, struct hfi_value *value) {
    if (!hfi_word_number(value->text, &value->number) || value->number < flag->min || value->number > flag->max)
        return hfi_usage(flag->name, NULL, "`%s` is not a whole number from %lld to %lld", value->text, (long long)flag->min,
                         (long long)flag->max);
    return 0;
}

static int read_choice(const struct hfi_flag *flag, struct hfi_value *value) {
    struct hfi_nearest nearest;
    char fix[160];
    int index = hfi_word_choice(flag->value, value->text);
    if (index >= 0) {
        value->number = index;
        return 0;
    }
    hfi_nearest_init(&nearest, value->text);
    hfi_word_offer(flag->value, &nearest);
    snprintf(fix, sizeof fix, "did you mean `%s`?", nearest.best ? nearest.best : "");
    return hfi_usage(flag->name, nearest.best ? fix : NULL, "`%s` is none of %s", value->text, flag->value);
}

/*
 * Reads value->text as the flag wants it. An empty one is most likely a variable that is not set, and must not widen
 * what the command does: `dead redrive --type "$TYPE"` would redrive everything [S3.22].
 */
static int read_value(const struct hfi_flag *flag, struct hfi_value *value) {
    int code = 0;
    if (value->text && flag->kind != HFI_FLAG_BYTES && !hf_text_valid(value->text, strlen(value->text)))
        return hfi_usage(flag->name, NULL, "the value is not valid UTF-8 text");
    if (value->text && !*value->text && flag->kind != HFI_FLAG_BYTES)
        return hfi_usage(flag->name, "set the variable it comes from, or leave the flag out", "its value is empty");
    switch (flag->kind) {
    case HFI_FLAG_NUMBER:
        return read_number(flag, value);
    case HFI_FLAG_CHOICE:
        return read_choice(flag, value);
    case HFI_FLAG_DURATION:
        code = hf_duration_parse(value->text, &value->number);
        if (code == HF_ETOOBIG)
            return hfi_usage(flag->name, NULL, "`%s` does not fit into 292 million years", value->text);
        if (code != 0)
            return hfi_usage(flag->name, "write 250ms, 5s, 2m, 1h or 7d", "`%s` is not a duration with a unit", value->text);
        return value->number < flag->min ? hfi_usage(flag->name, "leave it out for none", "`%s` is no time at all", value->text) : 0;
    case HFI_FLAG_TIME:
        code = hf_time_parse(value->text, &value->number);
        return code ? hfi_usage(flag->name, "write 2026-11-30T10:05:00Z or 2026-11-30T11:05:00+01:00",
                                "`%s` is not a time of RFC 3339 with a zone", value->text)
                    : 0;
    default:
        return 0;
    }
}

static void keep(struct hfi_options *options, struct hfi_value *value) {
    const char **longer = hfi_arena_array(&options->arena, value->count + 1, sizeof *longer);
    for (size_t i = 0; i < value->count; i++)
        longer[i] = value->list[i];
    longer[value->count++] = value->text;
    value->list = longer;
}

static int take(struct reader *reader, const struct hfi_flag *flag, struct hfi_value *value, const char *inlined) {
    bool takes = flag->kind != HFI_FLAG_SWITCH;
    if (!takes && inlined)
        return hfi_usage(flag->name, NULL, "it takes no value, but `%s` was given", inlined);
    if (value->given && flag->kind != HFI_FLAG_LIST)
        return hfi_usage(flag->name, "give it once", "it is given twice");
    value->given = true;
    if (!takes)
        return 0;
    if (inlined) {
        value->text = inlined;
    } else if (reader->at < reader->argc) {
        const char *next = reader->argv[reader->at];
        /* An optional value does not begin with a dash, but for `-` itself. */
        if (flag->kind != HFI_FLAG_OPTIONAL || next[0] != '-' || next[1] == '\0') {
            value->text = next;
            reader->at++;
        }
    }
    if (!value->text && flag->kind != HFI_FLAG_OPTIONAL)
        return hfi_usage(flag->name, NULL, "it needs a value: --%s %s", flag->name, flag->value);
    if (flag->kind == HFI_FLAG_LIST)
        keep(reader->options, value);
    return read_value(flag, value);
}

static int unknown_flag(const struct reader *reader, const char *word) {
    const struct hfi_command *command = reader->options->command;
    struct hfi_nearest nearest;
    char name[64], fix[128] = "";
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    hfi_nearest_init(&nearest, name + 2 * (strncmp(name, "--", 2) == 0));
    for (size_t i = 0; hfi_global_flags[i].name; i++)
        hfi_nearest_offer(&nearest, hfi_global_flags[i].name);
    for (size_t i = 0; command && command->flags && command->flags[i].name; i++)
        if (!command->flags[i].hidden)
            hfi_nearest_offer(&nearest, command->flags[i].name);
    if (nearest.best)
        snprintf(fix, sizeof fix, "did you mean `--%s`?", nearest.best);
    else
        snprintf(fix, sizeof fix, "see holdfast %s%s--help", command ? command->name : "", command ? " " : "");
    return hfi_usage(name, fix, "unknown flag");
}

static int read_flag(struct reader *reader, const char *word) {
    struct hfi_options *options = reader->options;
    const struct hfi_flag *own = options->command ? options->command->flags : NULL;
    if (strcmp(word, "-h") == 0)
        word = "--help";
    if (strncmp(word, "--", 2) != 0)
        return unknown_flag(reader, word);
    size_t length = strcspn(word + 2, "=");
    const char *inlined = word[2 + length] == '=' ? word + 2 + length + 1 : NULL;
    size_t index = find(own, word + 2, length);
    if (index != SIZE_MAX)
        return take(reader, &own[index], &options->values[index], inlined);
    index = find(hfi_global_flags, word + 2, length);
    if (index != SIZE_MAX)
        return take(reader, &hfi_global_flags[index], &reader->globals[index], inlined);
    return unknown_flag(reader, word);
}

static void adopt(struct reader *reader, const struct hfi_command *command) {
    size_t count = 0;
    while (command->flags && command->flags[count].name)
        count++;
    reader->options->command = command;
    reader->options->values = hfi_arena_array(&reader->options->arena, count + 1, sizeof(struct hfi_value));
    reader->word_count = 0; /* the command's own words are done with */
}

/* Words name a command as soon as they can; what follows are its arguments. */
static void read_word(struct reader *reader, char *word) {
    reader->words[reader->word_count++] = word;
    if (reader->options->command)
        return;
    const struct hfi_command *command = find_command(reader);
    if (command)
        adopt(reader, command);
}

static int unknown_command(const struct reader *reader) {
    struct hfi_nearest nearest;
    struct hfi_arena *arena = &reader->options->arena;
    const char *typed = reader->words[0], *list = "";
    char fix[160] = "see holdfast --help";
    for (size_t i = 0; reader->commands[i]; i++) { /* a group's name alone, or with a wrong second word */
        const char *name = reader->commands[i]->name;
        size_t length = strlen(typed);
        if (!reader->commands[i]->hidden && strncmp(name, typed, length) == 0 && name[length] == ' ')
            list = hfi_arena_print(arena, "%s%s%s", list, *list ? ", " : "", name + length + 1);
    }
    if (*list && reader->word_count < 2)
        return hfi_usage(typed, hfi_arena_print(arena, "one of: %s", list), "it needs to be told what to do");
    if (*list)
        typed = hfi_arena_print(arena, "%s %s", typed, reader->words[1]);
    hfi_nearest_init(&nearest, typed);
    for (size_t i = 0; reader->commands[i]; i++) {
        const char *name = reader->commands[i]->name;
        if (!reader->commands[i]->hidden)
            hfi_nearest_offer(&nearest, *list ? name : hfi_arena_copy(arena, name, strcspn(name, " ")));
    }
    if (nearest.best)
        snprintf(fix, sizeof fix, "did you mean `%s`?", nearest.best);
    else if (*list)
        snprintf(fix, sizeof fix, "one of: %s", list);
    return hfi_usage(typed, fix, "unknown command");
}

static void set_manner(const struct reader *reader) {
    struct hfi_manner manner = {reader->globals[GLOBAL_JSON].given, reader->globals[GLOBAL_QUIET].given,
                                reader->globals[GLOBAL_VERBOSE].given, (enum hfi_color)reader->globals[GLOBAL_COLOR].number};
    hfi_manner_set(&manner);
}

static int check_arguments(const struct reader *reader) {
    const struct hfi_options *options = reader->options;
    const struct hfi_command *command = options->command;
    char fix[256];
    snprintf(fix, sizeof fix, "holdfast %s%s%s", command->name, *command->arguments ? " " : "", command->arguments);
    if (options->argument_count < command->min_arguments)
        return hfi_usage(command->name, fix, "it needs %zu argument%s, %zu given", command->min_arguments,
                         command->min_arguments == 1 ? "" : "s", options->argument_count);
    if (options->argument_count > command->max_arguments)
        return hfi_usage(command->name, fix, "`%s` is one argument too many", options->arguments[command->max_arguments]);
    for (size_t i = 0; command->flags && command->flags[i].name; i++)
        if (command->flags[i].required && !options->values[i].given)
            return hfi_usage(command->name, NULL, "--%s %s is required", command->flags[i].name, command->flags[i].value);
    if (reader->globals[GLOBAL_JSON].given && !command->prints_json)
        return hfi_usage(command->name, "leave --json out", "it has nothing to print as JSON");
    return 0;
}

static int end(struct reader *reader) {
    struct hfi_options *options = reader->options;
    set_manner(reader);
    options->config = reader->globals[GLOBAL_CONFIG].text;
    options->store = reader->globals[GLOBAL_STORE].text;
    options->help = reader->globals[GLOBAL_HELP].given;
    options->version = reader->globals[GLOBAL_VERSION].given;
    options->arguments = hfi_arena_array(&options->arena, reader->word_count + 1, sizeof *options->arguments);
    for (size_t i = 0; i < reader->word_count; i++)
        options->arguments[i] = reader->words[i];
    options->argument_count = reader->word_count;
    if (options->help || options->version)
        return 0;
    if (!options->command && reader->word_count > 0)
        return unknown_command(reader);
    if (!options->command)
        return hfi_usage("command", "see holdfast --help", "none given");
    return check_arguments(reader);
}

int hfi_options_read(struct hfi_options *options, const struct hfi_command *const *commands, int argc, char **argv) {
    struct reader reader = {.options = options, .commands = commands, .argc = argc, .argv = argv, .at = 1};
    bool only_words = false;
    int code = 0;
    memset(options, 0, sizeof *options);
    reader.words = hfi_arena_array(&options->arena, (size_t)argc + 1, sizeof *reader.words);
    while (reader.at < argc) {
        char *word = argv[reader.at++];
        if (!only_words && strcmp(word, "--") == 0)
            only_words = true;
        else if (only_words || word[0] != '-' || word[1] == '\0' || (word[1] >= '0' && word[1] <= '9'))
            read_word(&reader, word);
        else if ((code = read_flag(&reader, word)) != 0)
            return code;
    }
    return end(&reader);
}

void hfi_options_free(struct hfi_options *options) {
    hfi_arena_free(&options->arena);
}

const struct hfi_value *hfi_flag(const struct hfi_options *options, const char *name) {
    size_t index = find(options->command->flags, name, strlen(name));
    if (index == SIZE_MAX)
        abort(); /* a command asks for a flag it does not have */
    return &options->values[index];
}

const char *hfi_flag_text(const struct hfi_options *options, const char *name, const char *missing) {
    const struct hfi_value *value = hfi_flag(options, name);
    return value->text ? value->text : missing;
}

int64_t hfi_flag_number(const struct hfi_options *options, const char *name, int64_t missing) {
    const struct hfi_value *value = hfi_flag(options, name);
    return value->given ? value->number : missing;
}

int hfi_id_read(const char *text, const char *what, int64_t *id) {
    if (hfi_word_number(text, id) && *id > 0)
        return 0;
    return hfi_usage(what, "an id is a number from 1", "`%s` is not an id", text);
}
