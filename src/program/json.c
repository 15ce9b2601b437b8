/* SPDX-License-Identifier: MIT */
/*
 * The JSON the program prints: one object a command, times as RFC 3339, bytes as text or base64. Must never print
 * invalid JSON, whatever the bytes. The main thread's.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/base64.h"
#include "program/memory.h"
#include "program/output.h"

/* jansson gives NULL when it is out of memory or the text is not UTF-8; neither may be dropped in silence. */
static void put(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value ? value : json_null()) != 0)
        hfi_grow(NULL, (size_t)-1); /* says so and ends */
}

/* Bytes of valid text at `text`; the rest of the string when all of it is. */
static size_t valid_length(const char *text, size_t length) {
    size_t good = 0;
    for (size_t step = 1; good + step <= length;) {
        if (hf_text_valid(text + good, step)) {
            good += step;
            step = 1;
        } else if (++step > 4) {
            break;
        }
    }
    return good;
}

static json_t *cleaned(const char *text) {
    size_t length = strlen(text), at = 0;
    char *clean = hfi_grow(NULL, 3 * length + 1);
    while (length > 0) {
        size_t good = valid_length(text, length);
        memcpy(clean + at, text, good);
        at += good;
        if (good < length) {
            memcpy(clean + at, "\xef\xbf\xbd", 3);
            at += 3;
            good++;
        }
        text += good;
        length -= good;
    }
    json_t *value = json_stringn(clean, at);
    hfi_release(clean);
    return value;
}

void hfi_json_text(json_t *object, const char *key, const char *text) {
    if (!text || !*text)
        put(object, key, json_null());
    else
        put(object, key, hf_text_valid(text, strlen(text)) ? json_string(text) : cleaned(text));
}

void hfi_json_number(json_t *object, const char *key, int64_t number) {
    put(object, key, json_integer(number));
}

void hfi_json_real(json_t *object, const char *key, double number) {
    put(object, key, json_real(number));
}

void hfi_json_flag(json_t *object, const char *key, bool flag) {
    put(object, key, json_boolean(flag));
}

void hfi_json_time(json_t *object, const char *key, int64_t wall_us) {
    char text[HF_TIME_LENGTH];
    hfi_json_text(object, key, hf_time_print(wall_us, text));
}

void hfi_json_bytes(json_t *object, const char *key, const void *data, size_t length) {
    char name[64];
    if (hf_text_valid(data, length)) {
        put(object, key, json_stringn(length > 0 ? data : "", length));
        return;
    }
    char *text = hfi_base64(data, length);
    snprintf(name, sizeof name, "%s_base64", key);
    put(object, name, json_string(text));
    hfi_release(text);
}

/* What JSON may hold as it is, and what steers a terminal all the same (hf_text_steers). Only in strings: escaped. */
static int write_json(const char *text, size_t length, void *user) {
    size_t from = 0;
    (void)user;
    for (size_t at = 0; at < length; at++) {
        unsigned code;
        size_t bytes = hf_text_steers(text + at, length - at, &code);
        if (bytes == 0)
            continue;
        fwrite(text + from, 1, at - from, stdout);
        printf("\\u%04x", code);
        at += bytes - 1;
        from = at + 1;
    }
    fwrite(text + from, 1, length - from, stdout);
    return ferror(stdout) ? -1 : 0;
}

void hfi_print_json(json_t *value) {
    if (json_dump_callback(value, write_json, NULL, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)) != 0 && !ferror(stdout))
        hfi_grow(NULL, (size_t)-1);
    putchar('\n');
    json_decref(value);
}

void hfi_print_list(json_t *items, int64_t next) {
    json_t *list = json_object();
    put(list, "items", items);
    put(list, "next", next > 0 ? json_integer(next) : json_null());
    hfi_print_json(list);
}
