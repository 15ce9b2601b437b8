/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_COMPACT_H
#define HFI_PROGRAM_COMPACT_H

#include <stddef.h>

#include "program/memory.h"

/*
 * The value of `key` in the JSON object `text`, which has to be valid JSON, as written but without blanks between tokens:
 * numbers, escapes and the order of keys stay. NULL: the object has no such key (or writes it with escapes).
 */
char *hfi_json_compact(struct hfi_arena *arena, const char *text, size_t text_length, const char *key, size_t *length);

#endif
