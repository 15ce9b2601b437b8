/* SPDX-License-Identifier: MIT */
/*
 * How the program speaks: people or --json on stdout, errors on stderr, one exit code for each kind of failure. Must
 * never send bytes from outside to a terminal as they are. The main thread's, but for hfi_complain and hfi_note.
 */
#include "program/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/units.h"
#include "program/memory.h"

static struct hfi_manner manner;

void hfi_manner_set(const struct hfi_manner *wanted) {
    manner = *wanted;
}

const struct hfi_manner *hfi_manner(void) {
    return &manner;
}

enum hfi_exit hfi_exit_of(int code) {
    switch (code) {
    case 0:
        return HFI_EXIT_OK;
    case HF_EINVAL:
    case HF_ECONFIG:
    case HF_ETEXT:
    case HF_ETOOBIG:
        return HFI_EXIT_USAGE;
    case HF_ENOENT:
        return HFI_EXIT_NOT_FOUND;
    case HF_ESTATE:
    case HF_EEXIST:
        return HFI_EXIT_REFUSED;
    default:
        return HFI_EXIT_FAILED;
    }
}

/* Without the beginning of a code point at its end: here, or before it came here, it was cut to some room. */
static size_t whole(const char *text, size_t length) {
    size_t lead = length;
    while (lead > 0 && length - lead < 3 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    unsigned char first = lead > 0 ? (unsigned char)text[lead - 1] : 0;
    size_t wants = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return length - lead + 1 < wants ? lead - 1 : length;
}

char *hfi_printable(char *to, size_t room, const char *from) {
    size_t at = 0;
    for (; *from && room > 0; from++) {
        unsigned code;
        size_t bytes = hf_text_steers(from, strnlen(from, 3), &code);
        if (bytes == 0) {
            if (at + 1 >= room)
                break;
            to[at++] = *from;
            continue;
        }
        if (at + 7 >= room)
            break;
        at += (size_t)snprintf(to + at, room - at, "\\u%04x", code);
        from += bytes - 1;
    }
    at = whole(to, at);
    if (room > 0)
        to[at] = '\0';
    return to;
}

int hfi_complain(const struct hf_error *error) {
    char text[1600], clean[2400];
    hf_error_print(error, text, sizeof text);
    fprintf(stderr, "holdfast: %s\n", hfi_printable(clean, sizeof clean, text));
    return hfi_exit_of(error->code ? error->code : HF_EIO);
}

int hfi_usage(const char *what, const char *fix, const char *why, ...) {
    struct hf_error error;
    va_list arguments;
    hf_error_init(&error);
    error.code = HF_EINVAL;
    snprintf(error.what, sizeof error.what, "%s", what);
    snprintf(error.fix, sizeof error.fix, "%s", fix ? fix : "");
    va_start(arguments, why);
    vsnprintf(error.why, sizeof error.why, why, arguments);
    va_end(arguments);
    return hfi_complain(&error);
}

void hfi_say(const char *format, ...) {
    va_list arguments;
    if (manner.quiet || manner.json)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

void hfi_note(const char *format, ...) {
    va_list arguments;
    if (!manner.verbose)
        return;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static bool colorful(void) {
    const char *term = getenv("TERM");
    if (manner.color != HFI_COLOR_AUTO)
        return manner.color == HFI_COLOR_ALWAYS;
    return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && !(term && strcmp(term, "dumb") == 0);
}

const char *hfi_paint(const char *sgr) {
    static const struct {
        const char *sgr, *sequence;
    } known[] = {{"31", "\033[31m"}, {"32", "\033[32m"}, {"33", "\033[33m"}, {"36", "\033[36m"}, {"1", "\033[1m"}};
    if (colorful())
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strcmp(known[i].sgr, sgr) == 0)
                return known[i].sequence;
    return "";
}

const char *hfi_unpaint(void) {
    return colorful() ? "\033[0m" : "";
}

void hfi_field(const char *label, const char *format, ...) {
    char text[4096], clean[6144];
    va_list arguments;
    if (manner.quiet || manner.json)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (*text)
        printf("%-18s %s\n", label, hfi_printable(clean, sizeof clean, text));
}

char *hfi_show_time(int64_t wall_us, char *text) {
    hf_time_print(wall_us, text);
    if (!*text)
        memcpy(text, "-", 2);
    return text;
}

char *hfi_show_span(int64_t ms, char *text) {
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t at = 0, big = 0;
    while (big < 4 && ms < units[big].ms)
        big++;
    /* Of two units: below a second only the milliseconds are left. */
    for (size_t i = big; i < big + 2 && i < 5; i++) {
        int64_t count = ms / units[i].ms;
        if (count > 0 || i == big)
            at += (size_t)snprintf(text + at, HFI_SPAN_LENGTH - at, "%lld%s", (long long)count, units[i].name);
        ms %= units[i].ms;
    }
    return text;
}

int hfi_finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "holdfast: output: %s (free some space, or read all of it)\n", strerror(errno));
    return HFI_EXIT_FAILED;
}
