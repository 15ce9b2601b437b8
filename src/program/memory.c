/* SPDX-License-Identifier: MIT */
/*
 * The program's memory. It stands on malloc because the program sees the public headers only. Must never return NULL.
 * An arena belongs to one thread at a time.
 */
#include "program/memory.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hfi_piece {
    struct hfi_piece *next;
    alignas(max_align_t) char data[];
};

static void *must(void *memory) {
    if (!memory) {
        fputs("holdfast: memory: out of memory (free some, or raise the limit)\n", stderr);
        exit(1);
    }
    return memory;
}

void *hfi_arena_alloc(struct hfi_arena *arena, size_t size) {
    if (size > SIZE_MAX - sizeof(struct hfi_piece))
        must(NULL);
    struct hfi_piece *piece = must(calloc(1, sizeof *piece + size));
    piece->next = arena->pieces;
    arena->pieces = piece;
    return piece->data;
}

void *hfi_arena_array(struct hfi_arena *arena, size_t count, size_t size) {
    size_t total = 0;
    if (__builtin_mul_overflow(count, size, &total))
        must(NULL);
    return hfi_arena_alloc(arena, total);
}

char *hfi_arena_copy(struct hfi_arena *arena, const char *text, size_t length) {
    char *copy = hfi_arena_alloc(arena, length + 1);
    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

char *hfi_arena_text(struct hfi_arena *arena, const char *text) {
    return hfi_arena_copy(arena, text, strlen(text));
}

char *hfi_arena_vprint(struct hfi_arena *arena, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = hfi_arena_alloc(arena, (size_t)(length < 0 ? 0 : length) + 1);
    if (length > 0)
        vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

char *hfi_arena_print(struct hfi_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = hfi_arena_vprint(arena, format, arguments);
    va_end(arguments);
    return text;
}

void hfi_arena_free(struct hfi_arena *arena) {
    while (arena->pieces) {
        struct hfi_piece *piece = arena->pieces;
        arena->pieces = piece->next;
        free(piece);
    }
}

void *hfi_grow(void *memory, size_t size) {
    return must(realloc(memory, size > 0 ? size : 1));
}

void hfi_release(void *memory) {
    free(memory);
}
