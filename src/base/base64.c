/* SPDX-License-Identifier: MIT */
/* Base64 with the standard alphabet and padding. Pure, any thread. */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *hfi_base64(const void *bytes, size_t length, char *text) {
    const unsigned char *from = bytes;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t group = (uint32_t)from[i] << 16;
        group |= left > 1 ? (uint32_t)from[i + 1] << 8 : 0;
        group |= left > 2 ? from[i + 2] : 0;
        *text++ = alphabet[group >> 18];
        *text++ = alphabet[group >> 12 & 63];
        *text++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *text++ = left > 2 ? alphabet[group & 63] : '=';
    }
    *text = '\0';
    return text;
}

long hfi_base64_decode(const char *text, unsigned char *bytes) {
    size_t length = strlen(text), padding = 0;
    long made = 0;
    uint32_t group = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    if (length % 4 != 0)
        return -1;
    for (size_t i = 0; i < length; i++) {
        const char *at = i < length - padding ? strchr(alphabet, text[i]) : alphabet;
        if (!at)
            return -1;
        group = group << 6 | (uint32_t)(at - alphabet);
        for (int byte = 0; i % 4 == 3 && byte < (i == length - 1 ? 3 - (int)padding : 3); byte++, made++)
            if (bytes)
                bytes[made] = (unsigned char)(group >> (16 - 8 * byte));
    }
    return made;
}
