/* SPDX-License-Identifier: MIT */
/*
 * The public face of our durations, times and text rules, so that programs read and write what holdfast does. Decides
 * nothing: text.c and clock.c do. Any thread.
 */
#include "holdfast/units.h"

#include "base/clock.h"
#include "base/text.h"

_Static_assert(HF_TIME_LENGTH == HFI_RFC3339_LENGTH, "one length of a printed time");

int hf_duration_parse(const char *text, int64_t *ms) {
    return text && ms ? hfi_duration_parse(text, ms) : HF_EINVAL;
}

char *hf_duration_print(int64_t ms, char *text) {
    return hfi_duration_print(ms, text);
}

int hf_time_parse(const char *text, int64_t *wall_us) {
    return text && wall_us ? hfi_rfc3339_parse(text, wall_us) : HF_EINVAL;
}

int64_t hf_time_now(void) {
    return hfi_wall_now().us;
}

char *hf_time_print(int64_t wall_us, char *text) {
    return hfi_rfc3339(wall_us, text);
}

size_t hf_text_steers(const char *text, size_t length, unsigned *code) {
    const unsigned char *at = (const unsigned char *)text;
    unsigned found = 0;
    size_t bytes = 0;
    if (length > 0 && (at[0] < 0x20 || at[0] == 0x7f)) {
        found = at[0];
        bytes = 1;
    } else if (length > 1 && at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f) {
        found = at[1];
        bytes = 2;
    } else if (length > 2 && at[0] == 0xe2 && (at[1] == 0x80 || at[1] == 0x81)) {
        found = 0x2000u | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
        bytes = (found >= 0x202a && found <= 0x202e) || (found >= 0x2066 && found <= 0x2069) ? 3 : 0;
    }
    if (code)
        *code = found;
    return bytes;
}

bool hf_text_valid(const char *bytes, size_t length) {
    return length == 0 || (bytes && hfi_text_valid(bytes, length));
}
