/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_LINES_H
#define HFI_PROGRAM_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Lines of a file, one at a time, in memory that grows to the longest. */
#define HFI_LINE_MAX (16u * 1024 * 1024)
struct hfi_lines {
    FILE *file;
    char *line;    /* not NUL-terminated */
    size_t length, room;
    int number;    /* of this line, from 1 */
    uint64_t bytes; /* read so far */
};
/* False at the end, or after an error of the file. A line longer than HFI_LINE_MAX is given up to there. */
bool hfi_lines_next(struct hfi_lines *lines);
bool hfi_lines_blank(const struct hfi_lines *lines);
void hfi_lines_free(struct hfi_lines *lines); /* the file stays open */

#endif
