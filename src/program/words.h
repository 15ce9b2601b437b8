/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_WORDS_H
#define HFI_PROGRAM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/nearest.h"

/* Plain decimal, whole, with a minus at most; false on anything else and on overflow. */
bool hfi_word_number(const char *text, int64_t *number);

/* Plain decimal with a point and no exponent ("0.5", "10"), ≥ 0, independent of the locale; false on anything else. */
bool hfi_word_real(const char *text, double *number);

/* "10/s", "600/m" or "36000/h", by the second; false on anything else. */
bool hfi_word_rate(const char *text, double *per_second);

/* Index of `text` in "auto|always|never"; -1 if it is none of them. */
int hfi_word_choice(const char *choices, const char *text);
/* Word `index` of the choices into `to`; "" behind the last one. */
const char *hfi_word_of(const char *choices, int index, char *to, size_t room);
/* Offers every choice to `nearest`, which keeps pointers into a static table of words: up to 32 letters each. */
void hfi_word_offer(const char *choices, struct hfi_nearest *nearest);

#endif
