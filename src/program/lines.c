/* SPDX-License-Identifier: MIT */
/* Lines of a file. Must never take any amount of memory for a file without line ends, as getline would. One thread. */
#include "program/lines.h"

#include <string.h>

#include "program/memory.h"

/* Some editors begin a file with a byte order mark. */
static void drop_mark(struct hfi_lines *lines) {
    if (lines->number != 1 || lines->length < 3 || memcmp(lines->line, "\xef\xbb\xbf", 3) != 0)
        return;
    lines->length -= 3;
    memmove(lines->line, lines->line + 3, lines->length);
}

bool hfi_lines_next(struct hfi_lines *lines) {
    lines->length = 0;
    for (int byte = getc_unlocked(lines->file); byte != EOF; byte = getc_unlocked(lines->file)) {
        if (lines->length + 1 >= lines->room) {
            lines->room = lines->room ? lines->room * 2 : 4096;
            lines->line = hfi_grow(lines->line, lines->room);
        }
        lines->line[lines->length++] = (char)byte;
        if (byte == '\n' || lines->length > HFI_LINE_MAX)
            break;
    }
    if (lines->length == 0)
        return false;
    lines->number++;
    lines->bytes += lines->length;
    drop_mark(lines);
    return true;
}

bool hfi_lines_blank(const struct hfi_lines *lines) {
    size_t length = lines->length;
    while (length > 0 && strchr(" \t\r\n", lines->line[length - 1]))
        length--;
    return length == 0;
}

void hfi_lines_free(struct hfi_lines *lines) {
    hfi_release(lines->line);
    lines->line = NULL;
    lines->room = 0;
}
