/* SPDX-License-Identifier: MIT */
/*
 * The growing byte string. Must never grow past its ceiling, nor half-add a piece: after a failure everything is
 * dropped and `failed` says so once at the end. One thread at a time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "holdfast/units.h"

void hfi_bytes_init(struct hfi_bytes *bytes, size_t max) {
    static char empty[1]; /* never written: room is 0 */
    memset(bytes, 0, sizeof *bytes);
    bytes->data = empty;
    bytes->max = max;
}

void hfi_bytes_free(struct hfi_bytes *bytes) {
    if (bytes->room > 0)
        hfi_free(bytes->data);
    hfi_bytes_init(bytes, bytes->max);
}

/* Makes room for `more` bytes and the NUL. */
static bool reserve(struct hfi_bytes *bytes, size_t more) {
    if (bytes->failed)
        return false;
    if (more > bytes->max || bytes->length > bytes->max - more) {
        bytes->failed = true;
        return false;
    }
    size_t needed = bytes->length + more + 1;
    if (needed <= bytes->room)
        return true;
    size_t room = bytes->room < 64 ? 64 : bytes->room;
    while (room < needed)
        room = room > SIZE_MAX / 2 ? needed : room * 2;
    char *data = bytes->room > 0 ? hfi_realloc(bytes->data, room) : hfi_alloc(room);
    if (!data) {
        bytes->failed = true;
        return false;
    }
    bytes->data = data;
    bytes->room = room;
    return true;
}

void hfi_bytes_add(struct hfi_bytes *bytes, const void *data, size_t length) {
    if (length == 0 || !reserve(bytes, length))
        return;
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    bytes->data[bytes->length] = '\0';
}

void hfi_bytes_text(struct hfi_bytes *bytes, const char *text) {
    hfi_bytes_add(bytes, text, strlen(text));
}

void hfi_bytes_print(struct hfi_bytes *bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        bytes->failed = true;
    if (length <= 0 || !reserve(bytes, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(bytes->data + bytes->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    bytes->length += (size_t)length;
}

void hfi_bytes_json(struct hfi_bytes *bytes, const char *text) {
    hfi_bytes_json_n(bytes, text, text ? strlen(text) : 0);
}

/* The escape of a byte below 0x80 (RFC 8259 section 7), NULL when it stands for itself. DEL is escaped for terminals.
 */
static const char *escape(char c, char *room) {
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        if ((unsigned char)c >= 0x20 && c != 0x7f)
            return NULL;
        snprintf(room, 8, "\\u%04x", (unsigned)(unsigned char)c);
        return room;
    }
}

void hfi_bytes_json_n(struct hfi_bytes *bytes, const char *text, size_t length) {
    if (!text) {
        hfi_bytes_text(bytes, "null");
        return;
    }
    hfi_bytes_text(bytes, "\"");
    while (length > 0) {
        /* Whole pieces are cleaned into a small buffer, so a piece must not end inside a code point. */
        char clean[256 * 3 + 1];
        size_t piece = length < 256 ? length : 256;
        if (piece < length)
            for (int back = 0; back < 3 && piece > 1 && ((unsigned char)text[piece] & 0xc0) == 0x80; back++)
                piece--;
        size_t cleaned = hfi_text_clean(clean, sizeof clean, text, piece);
        size_t plain = 0; /* from here on nothing was added yet */
        for (size_t i = 0; i < cleaned; i++) {
            char room[8];
            unsigned code;
            size_t steers = hf_text_steers(clean + i, cleaned - i, &code);
            const char *escaped = escape(clean[i], room);
            if (steers > 1) { /* C1, overrides of direction: for terminals, as DEL is */
                snprintf(room, sizeof room, "\\u%04x", code & 0xffff);
                escaped = room;
            }
            if (!escaped)
                continue;
            hfi_bytes_add(bytes, clean + plain, i - plain);
            hfi_bytes_text(bytes, escaped);
            i += steers > 1 ? steers - 1 : 0;
            plain = i + 1;
        }
        hfi_bytes_add(bytes, clean + plain, cleaned - plain);
        text += piece;
        length -= piece;
    }
    hfi_bytes_text(bytes, "\"");
}
