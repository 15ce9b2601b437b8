/* SPDX-License-Identifier: MIT */
/*
 * Judges and cleans text from outside, and reads and writes durations. Must never depend on the locale: bytes are UTF-8
 * here, letters are ASCII where case matters. Any thread, no allocation.
 */
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the valid sequence at `at` (RFC 3629: no surrogates, nothing overlong, nothing above U+10FFFF), else 0. */
static size_t sequence(const unsigned char *at, size_t left) {
    if (at[0] < 0x80)
        return 1;
    size_t length = at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    /* The second byte's range is what rules out overlong forms, surrogates and numbers that are too high. */
    unsigned char low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

bool hfi_text_valid(const char *bytes, size_t length) {
    const unsigned char *at = (const unsigned char *)bytes;
    while (length > 0) {
        size_t step = at[0] == 0 ? 0 : sequence(at, length);
        if (step == 0)
            return false;
        at += step;
        length -= step;
    }
    return true;
}

/* How many of the bytes are ASCII, from the first one on, and no NUL: eight at a time. */
static size_t plain_bytes(const char *from, size_t length) {
    const uint64_t high = 0x8080808080808080u, ones = 0x0101010101010101u;
    size_t count = 0;
    for (uint64_t word; length - count >= sizeof word; count += sizeof word) {
        memcpy(&word, from + count, sizeof word);
        if ((word | (word - ones)) & high)
            break;
    }
    while (count < length && from[count] > 0 && (unsigned char)from[count] < 0x80)
        count++;
    return count;
}

size_t hfi_text_clean(char *to, size_t room, const char *from, size_t length) {
    if (room == 0)
        return 0;
    if (!from) {
        from = "";
        length = 0;
    }
    size_t written = plain_bytes(from, length < room ? length : room - 1);
    memcpy(to, from, written);
    const unsigned char *at = (const unsigned char *)from + written;
    length -= written;
    while (length > 0) {
        size_t step = at[0] == 0 ? 0 : sequence(at, length);
        const void *piece = step > 0 ? (const void *)at : REPLACEMENT;
        size_t size = step > 0 ? step : sizeof REPLACEMENT - 1;
        if (size >= room - written)
            break;
        memcpy(to + written, piece, size);
        written += size;
        at += step > 0 ? step : 1;
        length -= step > 0 ? step : 1;
    }
    to[written] = '\0';
    return written;
}

size_t hfi_text_copy(char *to, size_t room, const char *from) {
    return hfi_text_clean(to, room, from, from ? strlen(from) : 0);
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool hfi_text_equal_nocase(const char *a, const char *b) {
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

bool hfi_text_dotted(const char *text) {
    char last = '.';
    for (const char *at = text; *at != '\0'; last = *at++) {
        bool word = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                    *at == '_' || *at == '-';
        if (!word && (*at != '.' || last == '.'))
            return false;
    }
    return last != '.';
}

bool hfi_dotted_prefix(const char *prefix, const char *text) {
    size_t length = strlen(prefix);
    return length > 0 && strncmp(prefix, text, length) == 0 && (text[length] == '\0' || text[length] == '.');
}

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
#define UNITS (sizeof units / sizeof *units)

int hfi_duration_parse(const char *text, int64_t *ms) {
    const char *at = text;
    int64_t number = 0;
    bool overflow = false;
    if (!text || *at < '0' || *at > '9')
        return HF_EINVAL;
    for (; *at >= '0' && *at <= '9'; at++)
        overflow |= __builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *at - '0', &number);
    for (size_t i = 0; i < UNITS; i++) {
        if (strcmp(at, units[i].name) != 0)
            continue;
        overflow |= __builtin_mul_overflow(number, units[i].ms, &number);
        if (overflow)
            return HF_ETOOBIG;
        *ms = number;
        return 0;
    }
    return HF_EINVAL;
}

char *hfi_duration_print(int64_t ms, char *text) {
    size_t unit = ms == 0 ? 3 : 0; /* "0s" */
    while (ms % units[unit].ms != 0)
        unit++;
    snprintf(text, 24, "%" PRId64 "%s", ms / units[unit].ms, units[unit].name);
    return text;
}
