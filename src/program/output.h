/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_OUTPUT_H
#define HFI_PROGRAM_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

/* The exit codes of the program, the same for every command. */
enum hfi_exit { HFI_EXIT_OK = 0, HFI_EXIT_FAILED = 1, HFI_EXIT_USAGE = 2, HFI_EXIT_NOT_FOUND = 3, HFI_EXIT_REFUSED = 4 };

enum hfi_color { HFI_COLOR_AUTO, HFI_COLOR_ALWAYS, HFI_COLOR_NEVER };

/* How everything below speaks; set once, before a command runs. */
struct hfi_manner {
    bool json, quiet, verbose;
    enum hfi_color color;
};
void hfi_manner_set(const struct hfi_manner *manner);
const struct hfi_manner *hfi_manner(void);

/* Errors: `holdfast: what: why (fix)` on stderr. Both return the exit code that goes with it. */
int hfi_complain(const struct hf_error *error);
int hfi_usage(const char *what, const char *fix, const char *why, ...) HF_PRINTF(3, 4);
enum hfi_exit hfi_exit_of(int code); /* of an HF_E… */

/* What a command tells people: nothing with --quiet or --json. */
void hfi_say(const char *format, ...) HF_PRINTF(1, 2);
/* Asides on stderr, with --verbose only. */
void hfi_note(const char *format, ...) HF_PRINTF(1, 2);
/* Text from outside on a terminal: control characters are shown, not sent. Into `to`; returns `to`. */
char *hfi_printable(char *to, size_t room, const char *from);

/* SGR codes when colour is wanted on stdout, else "". */
const char *hfi_paint(const char *sgr); /* "31" */
const char *hfi_unpaint(void);

/* One JSON object or list on stdout; takes the reference. */
void hfi_print_json(json_t *value);
/* `{"items": […], "next": cursor or null}`; takes the reference of items. `next` 0 = null. */
void hfi_print_list(json_t *items, int64_t next);
/* Setters for objects. Absent ("" or NULL text, 0 time) is null. Invalid bytes become U+FFFD. */
void hfi_json_text(json_t *object, const char *key, const char *text);
void hfi_json_number(json_t *object, const char *key, int64_t number);
void hfi_json_real(json_t *object, const char *key, double number);
void hfi_json_flag(json_t *object, const char *key, bool flag);
void hfi_json_time(json_t *object, const char *key, int64_t wall_us);
/* `key` as text when the bytes are valid text, else `key`_base64. */
void hfi_json_bytes(json_t *object, const char *key, const void *data, size_t length);

/* A table for people: columns as wide as their cells. Cells are cleaned as hfi_printable does. */
struct hfi_table;
struct hfi_table *hfi_table_new(const char *headings); /* "ID|TYPE|STATE"; a leading > aligns right: ">ID|TYPE" */
void hfi_table_cell(struct hfi_table *table, const char *format, ...) HF_PRINTF(2, 3); /* next cell, row by row */
void hfi_table_free(struct hfi_table *table);  /* NULL is fine */
void hfi_table_print(struct hfi_table *table); /* and free; nothing with --quiet or --json */

/* `label: value` lines of a `show`; skipped when the value is "". */
void hfi_field(const char *label, const char *format, ...) HF_PRINTF(2, 3);
#define HFI_SPAN_LENGTH 64
char *hfi_show_span(int64_t ms, char *text); /* "4h36m", two units at most; HFI_SPAN_LENGTH bytes */
char *hfi_show_time(int64_t wall_us, char *text); /* "-" for 0; HF_TIME_LENGTH bytes */

/* Flushes stdout; HFI_EXIT_FAILED with a complaint when what was printed did not get out, else `code`. */
int hfi_finish(int code);

#endif
