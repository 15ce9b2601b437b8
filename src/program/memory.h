/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_MEMORY_H
#define HFI_PROGRAM_MEMORY_H

#include <stdarg.h>
#include <stddef.h>

#include "holdfast/api.h"

/*
 * Memory of the program: pieces of an arena live until the whole arena is freed. A program that cannot get a few KiB
 * for its arguments has nothing better to do than to say so: these end the process with 1 instead of returning NULL.
 */
struct hfi_piece;
struct hfi_arena {
    struct hfi_piece *pieces;
};

void *hfi_arena_alloc(struct hfi_arena *arena, size_t size);  /* zeroed */
void *hfi_arena_array(struct hfi_arena *arena, size_t count, size_t size);
char *hfi_arena_copy(struct hfi_arena *arena, const char *text, size_t length); /* NUL-terminated */
char *hfi_arena_text(struct hfi_arena *arena, const char *text);
char *hfi_arena_print(struct hfi_arena *arena, const char *format, ...) HF_PRINTF(2, 3);
char *hfi_arena_vprint(struct hfi_arena *arena, const char *format, va_list arguments) HF_PRINTF(2, 0);
void hfi_arena_free(struct hfi_arena *arena); /* empty afterwards and usable again */

/* For buffers that grow: `memory` from here or NULL; freed with hfi_release. */
void *hfi_grow(void *memory, size_t size);
void hfi_release(void *memory);

#endif
