/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_TEXT_H
#define HFI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

/* Valid UTF-8 (no surrogates, no overlong forms) without NUL? */
bool hfi_text_valid(const char *bytes, size_t length);

/*
 * Copies text from outside into `to` of `room` bytes: NUL and invalid bytes become U+FFFD, cut on a code point,
 * NUL-terminated [I65, I66]. Returns the length written. `from` NULL gives "".
 */
size_t hfi_text_clean(char *to, size_t room, const char *from, size_t length);
size_t hfi_text_copy(char *to, size_t room, const char *from); /* the same from a C string */

bool hfi_text_equal_nocase(const char *a, const char *b);     /* ASCII */
bool hfi_text_dotted(const char *text); /* an error type or its prefix: words of letters, digits, - and _ joined by single dots */
bool hfi_dotted_prefix(const char *prefix, const char *text); /* `sql` ⊃ `sql.40P01`, not `sqlx` [S2.14] */

/*
 * Fills `error` (NULL is fine) and returns `code`. `what: why (fix)`; fix may be NULL. Texts are cleaned and cut. All
 * else in it is reset: set `native`, `file`, `line` and `column` afterwards.
 */
int hfi_fail(struct hf_error *error, int code, const char *what, const char *fix, const char *why, ...) HF_PRINTF(5, 6);

/* Durations `250ms 5s 2m 1h 7d`, whole numbers; 0, HF_EINVAL (no unit or not a number) or HF_ETOOBIG (overflow). */
int hfi_duration_parse(const char *text, int64_t *ms);
/* The shortest exact form of `ms` in those units into at least 24 bytes. */
char *hfi_duration_print(int64_t ms, char *text);

/* A growing byte string with a ceiling given at the start; data is always NUL-terminated. */
struct hfi_bytes {
    char *data;
    size_t length;
    size_t room;
    size_t max;
    bool failed; /* out of memory or over max: everything after it is dropped */
};
void hfi_bytes_init(struct hfi_bytes *bytes, size_t max);
void hfi_bytes_free(struct hfi_bytes *bytes);
void hfi_bytes_add(struct hfi_bytes *bytes, const void *data, size_t length);
void hfi_bytes_text(struct hfi_bytes *bytes, const char *text);
void hfi_bytes_print(struct hfi_bytes *bytes, const char *format, ...) HF_PRINTF(2, 3);
/* A JSON string with quotes and escapes; invalid bytes become U+FFFD. NULL gives `null`. */
void hfi_bytes_json(struct hfi_bytes *bytes, const char *text);
void hfi_bytes_json_n(struct hfi_bytes *bytes, const char *text, size_t length); /* the same of `length` bytes */

#endif
