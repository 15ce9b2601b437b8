/* SPDX-License-Identifier: MIT */
/*
 * Takes secrets from the environment (${NAME}, anywhere in the text; $${ writes ${) or from a file (file:PATH, the whole
 * value). Must never put a secret into an error. The main thread's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/config/bind.h"

#define SECRET_MAX 65536

bool hfi_secret_is_reference(const char *text) {
    return strncmp(text, "file:", 5) == 0 || strstr(text, "${");
}

static const char *refuse(struct hfi_refusal *refusal, const char *fix, const char *why, const char *detail) {
    refusal->rule = "config.secret";
    snprintf(refusal->fix, sizeof refusal->fix, "%s", fix);
    snprintf(refusal->why, sizeof refusal->why, why, detail);
    return NULL;
}

/* One line of text; the line end that every editor adds is not part of it. */
static const char *check(struct hfi_arena *arena, const char *bytes, size_t length, struct hfi_refusal *refusal) {
    if (length > 0 && bytes[length - 1] == '\n')
        length--;
    if (length > 0 && bytes[length - 1] == '\r')
        length--;
    if (!hf_text_valid(bytes, length) || memchr(bytes, '\n', length) || memchr(bytes, '\r', length))
        return refuse(refusal, "store one line of UTF-8 text", "the secret is not one line of text%s", "");
    return hfi_arena_copy(arena, bytes, length);
}

const char *hfi_beside(struct hfi_arena *arena, const char *file, const char *path) {
    const char *folder = file ? strrchr(file, '/') : NULL;
    if (!path || *path == '/' || !folder)
        return path;
    return hfi_arena_print(arena, "%.*s/%s", (int)(folder - file), file, path);
}

static const char *read_file(struct hfi_binding *binding, const char *path, struct hfi_refusal *refusal) {
    char *bytes = NULL;
    FILE *file = fopen(hfi_beside(binding->arena, binding->problems->file, path), "re");
    if (!file)
        return refuse(refusal, "check its path and permissions", "the secret's file cannot be read: %s", strerror(errno));
    bytes = hfi_grow(NULL, SECRET_MAX + 1);
    size_t length = fread(bytes, 1, SECRET_MAX + 1, file);
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    const char *text = failed ? refuse(refusal, "check the file", "the secret's file cannot be read: %s", strerror(failed))
                       : length > SECRET_MAX ? refuse(refusal, "check its path", "the secret's file is larger than 64 KiB%s", "")
                                             : check(binding->arena, bytes, length, refusal);
    explicit_bzero(bytes, SECRET_MAX + 1);
    hfi_release(bytes);
    return text;
}

/* Length of the variable's name behind `${`, 0 if it is none. */
static size_t name_length(const char *text) {
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return text[length] == '}' && !(text[0] >= '0' && text[0] <= '9') ? length : 0;
}

static const char *expand(struct hfi_binding *binding, const char *text, struct hfi_refusal *refusal) {
    const char *made = "";
    while (*text) {
        const char *at = strstr(text, "${");
        size_t before = at ? (size_t)(at - text) : strlen(text);
        bool literal = at && before > 0 && text[before - 1] == '$';
        made = hfi_arena_print(binding->arena, "%s%.*s", made, (int)(before - literal), text);
        text += before;
        if (literal) {
            made = hfi_arena_print(binding->arena, "%s${", made);
            text += 2;
        } else if (at) {
            size_t length = name_length(at + 2);
            char *name = hfi_arena_copy(binding->arena, at + 2, length);
            const char *value = length > 0 ? getenv(name) : NULL;
            if (length == 0)
                return refuse(refusal, "write ${NAME}, or $${ for a plain ${", "a ${ does not begin a variable's name%s", "");
            if (!value)
                return refuse(refusal, "set it, or write the value out", "the environment variable %.100s is not set", name);
            made = hfi_arena_print(binding->arena, "%s%s", made, value);
            text = at + 2 + length + 1;
        }
    }
    return check(binding->arena, made, strlen(made), refusal);
}

const char *hfi_secret_read(struct hfi_binding *binding, const char *text, bool files, struct hfi_refusal *refusal) {
    if (files && strncmp(text, "file:", 5) == 0)
        return read_file(binding, text + 5, refusal);
    return expand(binding, text, refusal);
}
