/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_UNITS_H
#define HOLDFAST_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "error.h"

HF_BEGIN

/*
 * How holdfast writes durations, times and text in its configuration, on its command line and in its output, for
 * programs that want to read and write the same. Pure, any thread, independent of the locale. Since 0.1.
 */

/* Durations `250ms 5s 2m 1h 7d`, whole numbers. 0, HF_EINVAL (no unit, or not a number) or HF_ETOOBIG (overflow). */
HF_API int hf_duration_parse(const char *text, int64_t *ms);

#define HF_DURATION_LENGTH 24
/* The shortest exact form of `ms` in those units into at least HF_DURATION_LENGTH bytes; returns `text`. */
HF_API char *hf_duration_print(int64_t ms, char *text);

/* RFC 3339 with zone or offset (required), cut to µs UTC; HF_EINVAL on anything else, never guesses. */
HF_API int hf_time_parse(const char *text, int64_t *wall_us);

/* The wall clock, µs UTC since 1970. */
HF_API int64_t hf_time_now(void);

#define HF_TIME_LENGTH 28
/* `2026-11-30T10:05:00.123456Z` into at least HF_TIME_LENGTH bytes; 0 gives "". Returns `text`. */
HF_API char *hf_time_print(int64_t wall_us, char *text);

/* Valid UTF-8 (no surrogates, nothing overlong) without NUL, as every text that holdfast stores has to be? */
HF_API bool hf_text_valid(const char *bytes, size_t length);
/*
 * Does a character begin at `text` that steers what shows it: C0, DEL, C1, an override or isolate of direction? Its bytes,
 * at most 3 of `length`, and if asked its code; 0: none does. Any thread. Since 0.1.
 */
HF_API size_t hf_text_steers(const char *text, size_t length, unsigned *code);

HF_END

#endif
