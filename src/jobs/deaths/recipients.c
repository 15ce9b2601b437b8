/* SPDX-License-Identifier: MIT */
/*
 * Remembers who has a mail already. Must never take anybody for settled whom another list of addresses meant. Pure, any
 * thread.
 */
#include "jobs/deaths/recipients.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MARK 16 /* hexadecimal digits, then a colon and a digit for each four addresses */
_Static_assert(MARK + 1 + HFI_RECIPIENTS_MAX / 4 <= HFI_ALERT_HAD_MAX, "all bits fit");

/* FNV-1a over all addresses, each with its end: order and spelling count. */
static void mark(const char *const *to, size_t count, char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < count; i++)
        for (const char *at = to[i];; at++) {
            hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
            if (*at == '\0')
                break;
        }
    snprintf(text, MARK + 2, "%016" PRIx64 ":", hash);
}

static int digit(char byte) {
    static const char digits[] = "0123456789abcdef";
    const char *at = byte ? strchr(digits, byte) : NULL;
    return at ? (int)(at - digits) : -1;
}

void hfi_recipients_read(struct hfi_recipients *recipients, const char *const *to, size_t count, const char *had) {
    char expected[MARK + 2];
    size_t settled = 0;
    memset(recipients, 0, sizeof *recipients);
    mark(to, count, expected);
    if (count > HFI_RECIPIENTS_MAX || strncmp(had, expected, MARK + 1) != 0 || strlen(had) != MARK + 1 + (count + 3) / 4)
        return;
    for (size_t i = 0; i < count; i++) {
        int bits = digit(had[MARK + 1 + i / 4]);
        recipients->settled[i] = bits >= 0 && (bits >> (i % 4) & 1) != 0;
        settled += recipients->settled[i];
    }
    if (settled == count) /* then there would be no further try */
        memset(recipients, 0, sizeof *recipients);
}

void hfi_recipients_print(const struct hfi_recipients *recipients, const char *const *to, size_t count,
                          char had[HFI_ALERT_HAD_MAX + 1]) {
    size_t length = MARK + 1;
    mark(to, count, had);
    for (size_t first = 0; first < count; first += 4) {
        unsigned bits = 0;
        for (size_t i = first; i < first + 4 && i < count; i++)
            bits |= (unsigned)recipients->settled[i] << (i - first);
        had[length++] = "0123456789abcdef"[bits];
    }
    had[length] = '\0';
}
