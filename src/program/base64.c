/* SPDX-License-Identifier: MIT */
/* Base64 of RFC 4648 section 4, strict when reading: what we accept has exactly one spelling. Pure. */
#include "program/base64.h"

#include <stdint.h>
#include <string.h>

#include "holdfast/error.h"
#include "program/memory.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *hfi_base64(const void *data, size_t length) {
    const unsigned char *at = data;
    char *text = hfi_grow(NULL, (length + 2) / 3 * 4 + 1), *to = text;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t group = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0);
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        *to++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *to++ = left > 2 ? alphabet[group & 63] : '=';
    }
    *to = '\0';
    return text;
}

static int value_of(char letter) {
    const char *at = letter ? strchr(alphabet, letter) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

int hfi_base64_parse(const char *text, size_t text_length, unsigned char **bytes, size_t *length) {
    size_t padding = 0, at = 0;
    if (text_length % 4 != 0)
        return HF_EINVAL;
    while (padding < 2 && padding < text_length && text[text_length - 1 - padding] == '=')
        padding++;
    unsigned char *data = hfi_grow(NULL, text_length / 4 * 3 + 1);
    for (size_t i = 0; i < text_length; i += 4) {
        uint32_t group = 0;
        size_t letters = i + 4 == text_length ? 4 - padding : 4;
        for (size_t j = 0; j < 4; j++) {
            int value = j < letters ? value_of(text[i + j]) : 0;
            if (value < 0)
                goto wrong;
            group = group << 6 | (uint32_t)value;
        }
        if ((letters == 2 && group & 0xffff) || (letters == 3 && group & 0xff))
            goto wrong; /* bits that say nothing must be 0 */
        for (size_t j = 0; j + 1 < letters; j++)
            data[at++] = (unsigned char)(group >> (16 - 8 * j));
    }
    *bytes = data;
    *length = at;
    return 0;
wrong:
    hfi_release(data);
    return HF_EINVAL;
}
