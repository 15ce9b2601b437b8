/* SPDX-License-Identifier: MIT */
/*
 * Works curves out into tables and reads the wait from a table. Must never overflow, for any number of failures (I68),
 * and must have no second way to a wait (I34). Pure. Any thread.
 */
#include "jobs/curve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "holdfast/runner.h"

#define DEFAULT_EXECUTIONS 6

/* a × permille / 1000 rounded to nearest, saturating; both not negative. */
static int64_t scale(int64_t a, uint32_t permille) {
    int64_t whole = hfi_mul(a / 1000, (int64_t)permille);
    int64_t rest = (a % 1000 * (int64_t)permille + 500) / 1000;
    return hfi_add(whole, rest);
}

static void begin(struct hfi_curve *curve, uint32_t max_executions) {
    memset(curve, 0, sizeof *curve);
    curve->max_executions = max_executions > 0 ? max_executions : 1;
}

void hfi_curve_default(struct hfi_curve *curve) {
    static const int64_t waits_ms[] = {60000, 300000, 1800000, 7200000};
    begin(curve, DEFAULT_EXECUTIONS);
    curve->length = sizeof waits_ms / sizeof *waits_ms;
    memcpy(curve->waits_ms, waits_ms, sizeof waits_ms);
}

/* Fills `waits` with base·factor^(n−1) until a value repeats, the cap or the table's end is reached; the length. */
static uint32_t exponential(int64_t *waits, int64_t base_ms, uint32_t factor_permille, int64_t cap_ms) {
    int64_t cap = cap_ms > 0 ? cap_ms : INT64_MAX;
    int64_t wait = base_ms < 0 ? 0 : base_ms < cap ? base_ms : cap;
    uint32_t length = 0;
    while (length < HF_CURVE_MAX) {
        waits[length++] = wait;
        int64_t next = scale(wait, factor_permille < 1000 ? 1000 : factor_permille);
        if (wait >= cap || next == wait)
            break;
        wait = next < cap ? next : cap;
    }
    return length;
}

void hfi_curve_exponential(struct hfi_curve *curve, uint32_t max_executions, int64_t base_ms, uint32_t factor_permille,
                           int64_t cap_ms) {
    begin(curve, max_executions);
    curve->length = exponential(curve->waits_ms, base_ms, factor_permille, cap_ms);
    curve->cap_ms = cap_ms > 0 ? cap_ms : 0;
}

static uint32_t polynomial(int64_t *waits, uint32_t power, int64_t plus_ms) {
    for (int64_t n = 1; n <= HF_CURVE_MAX; n++) {
        int64_t seconds = 1;
        for (uint32_t i = 0; i < power && seconds < INT64_MAX; i++) {
            if (n == 1)
                break;
            seconds = hfi_mul(seconds, n);
        }
        int64_t wait = hfi_add(hfi_mul(seconds, 1000), plus_ms);
        waits[n - 1] = wait > 0 ? wait : 0;
    }
    return HF_CURVE_MAX;
}

void hfi_curve_polynomial(struct hfi_curve *curve, uint32_t max_executions, uint32_t power, int64_t plus_ms) {
    begin(curve, max_executions);
    curve->length = polynomial(curve->waits_ms, power, plus_ms);
}

int64_t hfi_curve_wait_ms(const struct hfi_curve *curve, uint64_t failures, uint64_t random) {
    if (curve->length == 0)
        return 0;
    uint64_t index = failures > 0 ? failures - 1 : 0;
    int64_t wait = curve->waits_ms[index < curve->length ? index : curve->length - 1];
    if (curve->jitter_permille > 0) {
        int64_t swing = scale(wait, curve->jitter_permille < 1000 ? curve->jitter_permille : 1000);
        uint64_t extra = random % (2 * (uint64_t)swing + 1);
        wait = hfi_add(wait - swing, extra < INT64_MAX ? (int64_t)extra : INT64_MAX);
    }
    return curve->cap_ms > 0 && wait > curve->cap_ms ? curve->cap_ms : wait;
}

int64_t hfi_curve_last_ms(const struct hfi_curve *curve) {
    int64_t last = curve->length > 0 ? curve->waits_ms[curve->length - 1] : -1;
    return curve->cap_ms > 0 && last > curve->cap_ms ? curve->cap_ms : last;
}

size_t hfi_curve_size(const struct hfi_curve *curve) {
    return offsetof(struct hfi_curve, waits_ms) + curve->length * sizeof *curve->waits_ms;
}

void hfi_curve_copy(struct hfi_curve *copy, const struct hfi_curve *curve) {
    memset(copy, 0, sizeof *copy);
    memcpy(copy, curve, hfi_curve_size(curve));
}

bool hfi_curve_equal(const struct hfi_curve *a, const struct hfi_curve *b) {
    return a->max_executions == b->max_executions && a->length == b->length &&
           a->jitter_permille == b->jitter_permille && a->cap_ms == b->cap_ms &&
           memcmp(a->waits_ms, b->waits_ms, a->length * sizeof *a->waits_ms) == 0;
}

int64_t hfi_curve_time_to_death_ms(const struct hfi_curve *curve, uint32_t max_executions) {
    uint32_t waits = max_executions > 0 ? max_executions - 1 : 0;
    int64_t total = 0;
    for (uint32_t i = 0; i < waits && i < curve->length; i++)
        total = hfi_add(total, curve->waits_ms[i]);
    if (waits > curve->length && curve->length > 0)
        total = hfi_add(total, hfi_mul(curve->waits_ms[curve->length - 1], (int64_t)(waits - curve->length)));
    return total;
}

int hfi_curve_parse(const char *text, struct hfi_curve *curve) {
    struct hfi_curve parsed;
    begin(&parsed, 1);
    for (const char *at = text; at;) {
        const char *end = strchr(at, ',');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        char piece[32];
        while (length > 0 && *at == ' ') {
            at++;
            length--;
        }
        while (length > 0 && at[length - 1] == ' ')
            length--;
        if (length >= sizeof piece)
            return HF_EINVAL;
        memcpy(piece, at, length);
        piece[length] = '\0';
        int64_t wait;
        int code = hfi_duration_parse(piece, &wait);
        if (code == 0 && parsed.length == HF_CURVE_MAX)
            code = HF_ETOOBIG;
        if (code != 0)
            return code;
        parsed.waits_ms[parsed.length++] = wait;
        at = end ? end + 1 : NULL;
    }
    if (parsed.length == 0)
        return HF_EINVAL;
    parsed.max_executions = parsed.length + 1;
    *curve = parsed;
    return 0;
}

/* Stays inside what the caller's struct has room for: older ones are shorter. */
static bool has_room(const struct hf_curve_options *options, size_t end) {
    return options && options->size >= end;
}
#define END(member) (offsetof(struct hf_curve_options, member) + sizeof((struct hf_curve_options *)0)->member)

static void mark_formula(struct hf_curve_options *options) {
    if (has_room(options, END(formula)))
        options->formula = true;
}

int hf_curve_exponential(struct hf_curve_options *options, int64_t base_ms, double factor, int64_t cap_ms) {
    if (!has_room(options, END(curve_ms)) || base_ms < 1 || !(factor >= 1 && factor <= 1000) || cap_ms < 0 ||
        (cap_ms > 0 && cap_ms < base_ms))
        return HF_EINVAL;
    options->curve_length = exponential(options->curve_ms, base_ms, (uint32_t)lround(factor * 1000), cap_ms);
    if (has_room(options, END(cap_ms)))
        options->cap_ms = cap_ms;
    mark_formula(options);
    return 0;
}

int hf_curve_polynomial(struct hf_curve_options *options, uint32_t power, int64_t plus_ms, double jitter) {
    if (!has_room(options, END(jitter)) || power == 0 || power > 8 || plus_ms < 0 || !(jitter >= 0 && jitter <= 1))
        return HF_EINVAL;
    options->curve_length = polynomial(options->curve_ms, power, plus_ms);
    options->jitter = jitter;
    mark_formula(options);
    return 0;
}

int hf_curve_from(struct hf_curve_options *options, hf_curve_fn wait, void *user) {
    int64_t waits[HF_CURVE_MAX];
    if (!has_room(options, END(curve_ms)) || !wait)
        return HF_EINVAL;
    for (uint32_t n = 1; n <= HF_CURVE_MAX; n++) {
        waits[n - 1] = wait(n, user);
        if (waits[n - 1] < 0)
            return HF_EINVAL;
    }
    uint32_t length = HF_CURVE_MAX;
    while (length > 1 && waits[length - 1] == waits[length - 2])
        length--; /* the last one is used again and again */
    memcpy(options->curve_ms, waits, sizeof waits);
    options->curve_length = length;
    mark_formula(options);
    return 0;
}

char *hfi_curve_waits_print(const struct hfi_curve *curve, char *text) {
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < curve->length && i < HF_CURVE_MAX; i++)
        length += (size_t)snprintf(text + length, HFI_CURVE_WAITS_ROOM - length, "%s%" PRId64, i > 0 ? "," : "", curve->waits_ms[i]);
    return text;
}

bool hfi_curve_waits_parse(struct hfi_curve *curve, const char *text) {
    curve->length = 0;
    while (*text) {
        char *end;
        if (curve->length == HF_CURVE_MAX || *text < '0' || *text > '9')
            return false;
        curve->waits_ms[curve->length++] = strtoll(text, &end, 10);
        if (*end == ',' && end[1] != '\0')
            end++;
        else if (*end != '\0')
            return false;
        text = end;
    }
    return true;
}
