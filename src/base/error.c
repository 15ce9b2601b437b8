/* SPDX-License-Identifier: MIT */
/*
 * The names and texts of error codes, and how a struct hf_error is filled and printed. Must never fail or allocate: it
 * reports failures, running out of memory among them. Any thread.
 */
#include "holdfast/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "holdfast/version.h"

const char *hf_strerror(int code) {
    switch (code) {
    case 0:
        return "success";
#define TEXT(name, value, text)                                                                                        \
    case HF_##name:                                                                                                    \
        return text;
        HF_ERROR_MAP(TEXT)
#undef TEXT
    default:
        return "unknown error";
    }
}

const char *hf_error_name(int code) {
    switch (code) {
    case 0:
        return "HF_OK";
#define NAME(name, value, text)                                                                                        \
    case HF_##name:                                                                                                    \
        return "HF_" #name;
        HF_ERROR_MAP(NAME)
#undef NAME
    default:
        return "HF_EUNKNOWN";
    }
}

const char *hf_version(void) {
    return HF_VERSION_TEXT;
}

/* A caller built against an older header has a shorter struct, one against a newer a longer: only the common part. */
static size_t common_size(const struct hf_error *error) {
    return error->size < sizeof *error ? error->size : sizeof *error;
}

int hfi_fail(struct hf_error *error, int code, const char *what, const char *fix, const char *why, ...) {
    if (!error)
        return code;
    struct hf_error filled;
    hf_error_init(&filled);
    filled.size = error->size;
    filled.code = code;
    char text[sizeof filled.why * 2] = "";
    if (why) {
        va_list arguments;
        va_start(arguments, why);
        vsnprintf(text, sizeof text, why, arguments);
        va_end(arguments);
    }
    hfi_text_copy(filled.what, sizeof filled.what, what);
    hfi_text_copy(filled.why, sizeof filled.why, text);
    hfi_text_copy(filled.fix, sizeof filled.fix, fix);
    memcpy(error, &filled, common_size(error));
    return code;
}

/* Appends while there is room, counts always. */
static void append(char *text, size_t room, size_t *length, const char *piece) {
    size_t more = strlen(piece);
    if (*length < room)
        hfi_text_clean(text + *length, room - *length, piece, more);
    *length += more;
}

size_t hf_error_print(const struct hf_error *error, char *text, size_t length) {
    struct hf_error copy;
    size_t whole = 0;
    if (length > 0)
        text[0] = '\0';
    if (!error)
        return 0;
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, error, common_size(error));
    if (copy.file[0]) {
        char place[32];
        append(text, length, &whole, copy.file);
        if (copy.line > 0 && copy.column > 0)
            snprintf(place, sizeof place, ":%d:%d: ", copy.line, copy.column);
        else if (copy.line > 0)
            snprintf(place, sizeof place, ":%d: ", copy.line);
        else
            snprintf(place, sizeof place, ": ");
        append(text, length, &whole, place);
    }
    if (copy.what[0]) {
        append(text, length, &whole, copy.what);
        append(text, length, &whole, ": ");
    }
    append(text, length, &whole, copy.why[0] ? copy.why : hf_strerror(copy.code));
    if (copy.fix[0]) {
        append(text, length, &whole, " (");
        append(text, length, &whole, copy.fix);
        append(text, length, &whole, ")");
    }
    return whole;
}
