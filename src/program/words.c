/* SPDX-License-Identifier: MIT */
/*
 * Numbers and choices as people type them, for the command line and the configuration alike. Must never accept what
 * strtol and strtod do beyond plain decimal: blanks, 0x10, 1e3, inf, a comma of the locale. Pure but for the words
 * hfi_word_offer keeps (main thread).
 */
#include "program/words.h"

#include <stdio.h>
#include <string.h>

bool hfi_word_number(const char *text, int64_t *number) {
    bool negative = *text == '-';
    int64_t value = 0;
    text += negative;
    if (!*text)
        return false;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            (negative ? __builtin_sub_overflow(value, *text - '0', &value) : __builtin_add_overflow(value, *text - '0', &value)))
            return false;
    *number = value;
    return true;
}

bool hfi_word_real(const char *text, double *number) {
    double value = 0, scale = 1;
    bool point = false, digit = false;
    if (strlen(text) > 30)
        return false;
    for (; *text; text++) {
        if (*text == '.' && !point && digit) {
            point = true;
            digit = false; /* one must follow */
            continue;
        }
        if (*text < '0' || *text > '9')
            return false;
        digit = true;
        value = value * 10 + (*text - '0');
        scale *= point ? 10 : 1;
    }
    *number = value / scale;
    return digit;
}

bool hfi_word_rate(const char *text, double *per_second) {
    size_t digits = strcspn(text, "/");
    char part[32];
    const char *unit = text + digits;
    double seconds = strcmp(unit, "/s") == 0 ? 1 : strcmp(unit, "/m") == 0 ? 60 : strcmp(unit, "/h") == 0 ? 3600 : 0;
    if (seconds == 0 || digits >= sizeof part)
        return false;
    memcpy(part, text, digits);
    part[digits] = '\0';
    if (!hfi_word_real(part, per_second))
        return false;
    *per_second /= seconds;
    return true;
}

int hfi_word_choice(const char *choices, const char *text) {
    size_t wanted = strlen(text);
    for (int index = 0; *choices; index++) {
        size_t length = strcspn(choices, "|");
        if (length == wanted && memcmp(choices, text, length) == 0)
            return index;
        choices += length + (choices[length] == '|');
    }
    return -1;
}

const char *hfi_word_of(const char *choices, int index, char *to, size_t room) {
    for (; index > 0 && *choices; index--) {
        choices += strcspn(choices, "|");
        choices += *choices == '|';
    }
    snprintf(to, room, "%.*s", (int)strcspn(choices, "|"), choices);
    return to;
}

void hfi_word_offer(const char *choices, struct hfi_nearest *nearest) {
    static char words[16][32];
    for (int i = 0; i < 16; i++)
        if (*hfi_word_of(choices, i, words[i], sizeof words[i]))
            hfi_nearest_offer(nearest, words[i]);
}
