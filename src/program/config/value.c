/* SPDX-License-Identifier: MIT */
/*
 * Reads one scalar as its key wants it. Must never guess: a number without a unit, `yes`, 1e3 or a text where a number
 * belongs are refused with what to write. Pure.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/config/bind.h"
#include "program/words.h"

static bool refuse(struct hfi_refusal *refusal, const char *rule, const char *fix, const char *why, ...) HF_PRINTF(4, 5);
static bool refuse(struct hfi_refusal *refusal, const char *rule, const char *fix, const char *why, ...) {
    va_list arguments;
    refusal->rule = rule;
    snprintf(refusal->fix, sizeof refusal->fix, "%s", fix);
    va_start(arguments, why);
    vsnprintf(refusal->why, sizeof refusal->why, why, arguments);
    va_end(arguments);
    return false;
}

static bool only_digits(const char *text) {
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static bool in_range(const struct hfi_key *key, double value) {
    return (key->min == 0 && key->max == 0) || (value >= key->min && value <= key->max);
}

static bool read_duration(const struct hfi_key *key, const char *text, int64_t *to, struct hfi_refusal *refusal) {
    char low[HF_DURATION_LENGTH], high[HF_DURATION_LENGTH], fix[64];
    int64_t ms = 0;
    if (key->traits & HFI_KEY_NONE && strcmp(text, "none") == 0) {
        *to = 0;
        return true;
    }
    int word = key->choices ? hfi_word_choice(key->choices, text) : -1;
    if (word >= 0) {
        *to = -1 - word;
        return true;
    }
    int code = hf_duration_parse(text, &ms);
    if (code == HF_ETOOBIG)
        return refuse(refusal, "config.overflow", "write a smaller one", "`%.60s` overflows", text);
    if (code != 0 && only_digits(text) && strlen(text) < 16) {
        snprintf(fix, sizeof fix, "write %ss or %sms", text, text);
        return refuse(refusal, "config.missing_unit", fix, "`%s` has no unit", text);
    }
    if (code != 0)
        return refuse(refusal, "config.type", "write 250ms, 5s, 2m, 1h or 7d", "`%.60s` is not a duration", text);
    if (!in_range(key, (double)ms))
        return refuse(refusal, "config.range", "stay inside", "%s is not within %s and %s", text,
                      hf_duration_print((int64_t)key->min, low), hf_duration_print((int64_t)key->max, high));
    *to = ms;
    return true;
}

static bool read_size(const struct hfi_key *key, const char *text, int64_t *to, struct hfi_refusal *refusal) {
    static const struct {
        const char *unit;
        int64_t bytes;
    } units[] = {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
    size_t digits = strspn(text, "0123456789");
    int64_t number = 0;
    char part[24];
    snprintf(part, sizeof part, "%.*s", (int)digits, text);
    if (digits > 0 && text[digits] == '\0')
        return refuse(refusal, "config.missing_unit", "write 64KiB, 1MiB or 512B", "`%.60s` has no unit", text);
    for (size_t i = 0; digits > 0 && i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + digits, units[i].unit) != 0)
            continue;
        if (digits > 18 || !hfi_word_number(part, &number) || __builtin_mul_overflow(number, units[i].bytes, to))
            return refuse(refusal, "config.overflow", "write a smaller one", "`%.60s` overflows", text);
        if (!in_range(key, (double)*to))
            return refuse(refusal, "config.range", "stay inside", "%s is not within %.0f and %.0f bytes", text, key->min, key->max);
        return true;
    }
    return refuse(refusal, "config.type", "write 64KiB, 1MiB or 512B", "`%.60s` is not a size", text);
}

static bool read_whole(const struct hfi_key *key, const char *text, void *to, struct hfi_refusal *refusal) {
    size_t sign = text[0] == '-';
    int64_t number = 0;
    if (!only_digits(text + sign))
        return refuse(refusal, "config.type", "write plain digits", "`%.60s` is not a whole number", text);
    if (!hfi_word_number(text, &number))
        return refuse(refusal, "config.overflow", "write a smaller one", "`%.60s` overflows", text);
    if ((double)number < key->min || (double)number > key->max)
        return refuse(refusal, "config.range", "stay inside", "%s is not within %.0f and %.0f", text, key->min, key->max);
    if (key->type == HFI_KEY_COUNT)
        *(uint32_t *)to = (uint32_t)number;
    else
        *(int32_t *)to = (int32_t)number;
    return true;
}

static bool read_status(const char *text, int32_t *to) {
    int64_t number = 0;
    bool digits = strlen(text) == 3 && only_digits(text) && hfi_word_number(text, &number);
    *to = (int32_t)number;
    return digits && number >= 100;
}

/* "404" or "500-599". */
static bool read_statuses(const char *text, struct hfi_statuses *to, struct hfi_refusal *refusal) {
    struct hfi_statuses read;
    const char *dash = strchr(text, '-');
    char low[8];
    snprintf(low, sizeof low, "%.*s", dash ? (int)(dash - text) : 7, text);
    if (!read_status(low, &read.low) || !read_status(dash ? dash + 1 : low, &read.high))
        return refuse(refusal, "config.status", "write 404 or 500-599", "`%.60s` is no status from 100 to 999", text);
    if (read.high < read.low)
        return refuse(refusal, "config.status", "write the lower one first", "the range `%s` is upside down", text);
    *to = read;
    return true;
}

static bool read_number(const struct hfi_key *key, const char *text, double *to, struct hfi_refusal *refusal) {
    double number = 0;
    if (!hfi_word_real(text, &number))
        return refuse(refusal, "config.type", "write a plain number such as 0.5", "`%.60s` is not a number", text);
    if (!in_range(key, number))
        return refuse(refusal, "config.range", "stay inside", "%s is not within %.10g and %.10g", text, key->min, key->max);
    *to = number;
    return true;
}

static bool read_rate(const struct hfi_key *key, const char *text, double *to, struct hfi_refusal *refusal) {
    double number = 0;
    if (hfi_word_real(text, &number))
        return refuse(refusal, "config.missing_unit", "write 10/s, 600/m or 36000/h", "`%.60s` has no unit", text);
    if (!hfi_word_rate(text, &number))
        return refuse(refusal, "config.type", "write 10/s, 600/m or 36000/h", "`%.60s` is not a rate", text);
    if (!in_range(key, number))
        return refuse(refusal, "config.range", "stay inside", "%s is not within %.10g/s and %.10g/s", text, key->min, key->max);
    *to = number;
    return true;
}

static bool read_choice(const struct hfi_key *key, const char *text, int *to, struct hfi_refusal *refusal) {
    struct hfi_nearest nearest;
    char fix[100];
    int index = hfi_word_choice(key->choices, text);
    if (index >= 0) {
        *to = index;
        return true;
    }
    hfi_nearest_init(&nearest, text);
    hfi_word_offer(key->choices, &nearest);
    snprintf(fix, sizeof fix, nearest.best ? "did you mean `%s`?" : "write one of them", nearest.best);
    return refuse(refusal, "config.choice", fix, "`%.60s` is none of %s", text, key->choices);
}

static bool read_switch(const char *text, bool *to, struct hfi_refusal *refusal) {
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0)
        return refuse(refusal, "config.type", "write true or false", "`%.60s` is neither true nor false", text);
    *to = yes;
    return true;
}

bool hfi_value_read(const struct hfi_key *key, const char *text, void *to, struct hfi_refusal *refusal) {
    switch (key->type) {
    case HFI_KEY_DURATION:
        return read_duration(key, text, to, refusal);
    case HFI_KEY_SIZE:
        return read_size(key, text, to, refusal);
    case HFI_KEY_COUNT:
    case HFI_KEY_INTEGER:
        return read_whole(key, text, to, refusal);
    case HFI_KEY_NUMBER:
        return read_number(key, text, to, refusal);
    case HFI_KEY_RATE:
        return read_rate(key, text, to, refusal);
    case HFI_KEY_SWITCH:
        return read_switch(text, to, refusal);
    case HFI_KEY_CHOICE:
        return read_choice(key, text, to, refusal);
    case HFI_KEY_STATUSES:
        return read_statuses(text, to, refusal);
    case HFI_KEY_TEXT:
        if (hfi_secret_is_reference(text))
            return refuse(refusal, "config.secret", "write the value out; headers, webhook urls and the store may refer",
                          "${ENV} and file: are for secrets only");
        *(const char **)to = text;
        return true;
    default:
        return refuse(refusal, "config.type", "", "it cannot be a single value");
    }
}
