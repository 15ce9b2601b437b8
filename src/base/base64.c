/* SPDX-License-Identifier: MIT */
/* Base64 with the standard alphabet and padding. Pure, any thread. */
#include "base/base64.h"

#include <stdint.h>

char *hfi_base64(const void *bytes, size_t length, char *text) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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
