/* SPDX-License-Identifier: MIT */
/*
 * Cuts a value out of JSON text byte for byte. Exists because decoding and encoding again would change numbers such as
 * 0.1 or 2^64. Must only be given text that a real parser has accepted. Pure.
 */
#include "program/compact.h"

#include <stdbool.h>
#include <string.h>

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

/* Behind the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

/* Behind the value that begins at `at`; its bytes but for blanks go to `to` unless that is NULL. */
static const char *take_value(const char *at, const char *end, char *to, size_t *length) {
    int depth = 0;
    while (at < end) {
        const char *next = *at == '"' ? skip_string(at, end) : at + 1;
        if (depth == 0 && (*at == ',' || *at == '}'))
            return at;
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        if (skip_blanks(at, end) == at) {
            if (to)
                memcpy(to + *length, at, (size_t)(next - at));
            *length += (size_t)(next - at);
        }
        at = next;
    }
    return end;
}

char *hfi_json_compact(struct hfi_arena *arena, const char *text, size_t text_length, const char *key, size_t *length) {
    const char *end = text + text_length, *at = skip_blanks(text, end);
    size_t wanted = strlen(key);
    at += at < end; /* { */
    while ((at = skip_blanks(at, end)) < end && *at == '"') {
        const char *name = at + 1, *behind = skip_string(at, end);
        bool found = (size_t)(behind - name) == wanted + 1 && memcmp(name, key, wanted) == 0;
        at = skip_blanks(behind, end);
        at = skip_blanks(at + (at < end), end); /* : */
        *length = 0;
        const char *after = take_value(at, end, NULL, length);
        if (found) {
            char *value = hfi_arena_alloc(arena, *length + 1);
            *length = 0;
            take_value(at, end, value, length);
            return value;
        }
        at = after + (after < end); /* , */
    }
    return NULL;
}
