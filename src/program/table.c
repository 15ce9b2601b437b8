/* SPDX-License-Identifier: MIT */
/*
 * Tables for people: columns as wide as their widest cell, counted in code points. Must never print control bytes of a
 * cell. The main thread's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "program/memory.h"
#include "program/output.h"

#define COLUMNS_MAX 16

struct hfi_table {
    struct hfi_arena arena;
    size_t columns, count, room;
    bool right[COLUMNS_MAX];
    const char **cells; /* headings first */
};

static void add(struct hfi_table *table, const char *text) {
    if (table->count == table->room) {
        table->room = table->room ? table->room * 2 : 256;
        table->cells = hfi_grow(table->cells, table->room * sizeof *table->cells);
    }
    table->cells[table->count++] = text;
}

struct hfi_table *hfi_table_new(const char *headings) {
    struct hfi_table *table = hfi_grow(NULL, sizeof *table);
    memset(table, 0, sizeof *table);
    for (const char *at = headings; *at && table->columns < COLUMNS_MAX;) {
        size_t length = strcspn(at, "|");
        table->right[table->columns] = *at == '>';
        add(table, hfi_arena_copy(&table->arena, at + (*at == '>'), length - (*at == '>')));
        table->columns++;
        at += length + (at[length] == '|');
    }
    return table;
}

void hfi_table_cell(struct hfi_table *table, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = hfi_arena_vprint(&table->arena, format, arguments);
    va_end(arguments);
    size_t room = 6 * strlen(text) + 1;
    char *clean = hfi_printable(hfi_arena_alloc(&table->arena, room), room, text);
    add(table, *clean ? clean : "-");
}

static size_t width(const char *text) {
    size_t points = 0;
    for (; *text; text++)
        points += ((unsigned char)*text & 0xc0) != 0x80;
    return points;
}

static void print_cell(const struct hfi_table *table, size_t index, size_t wide) {
    const char *text = table->cells[index];
    size_t column = index % table->columns, pad = wide - width(text);
    bool last = column + 1 == table->columns;
    if (table->right[column])
        printf("%*s", (int)pad, "");
    fputs(text, stdout);
    if (!table->right[column] && !last)
        printf("%*s", (int)pad, "");
    fputs(last ? "\n" : "  ", stdout);
}

void hfi_table_free(struct hfi_table *table) {
    if (!table)
        return;
    hfi_arena_free(&table->arena);
    hfi_release(table->cells);
    hfi_release(table);
}

void hfi_table_print(struct hfi_table *table) {
    size_t wide[COLUMNS_MAX] = {0};
    for (size_t i = 0; i < table->count; i++)
        if (width(table->cells[i]) > wide[i % table->columns])
            wide[i % table->columns] = width(table->cells[i]);
    if (!hfi_manner()->quiet && !hfi_manner()->json)
        for (size_t i = 0; i < table->count; i++)
            print_cell(table, i, wide[i % table->columns]);
    hfi_table_free(table);
}
