/* SPDX-License-Identifier: MIT */
/*
 * The waits between short retries. Every kind and jitter ends in one clamp to [0, cap], the last step of all, so no
 * try number, factor or random number gives a negative, an early or an endless wait (R1, R2, R4). Pure, any thread.
 */
#include "resilience/backoff.h"

#include <math.h>

#include "base/clock.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* The whole part of `random` / 2^64 × (`most` + 1): 0 … most, and `most` itself for the largest random number. */
static int64_t scaled(uint64_t random, int64_t most) {
    if (most <= 0)
        return 0;
    uint64_t range = (uint64_t)most + 1;
    uint64_t high = random >> 32, low = random & UINT32_MAX;
    uint64_t range_high = range >> 32, range_low = range & UINT32_MAX;
    uint64_t middle = high * range_low + (low * range_low >> 32);
    uint64_t carry = (middle & UINT32_MAX) + low * range_high;
    return (int64_t)(high * range_high + (middle >> 32) + (carry >> 32));
}

/* base × factor^power, at most cap. In double on purpose: it cannot wrap, and what is not below the cap is the cap. */
static int64_t grown(int64_t base_ms, uint32_t factor_permille, uint64_t power, int64_t cap_ms) {
    if (base_ms <= 0)
        return 0;
    double factor = factor_permille > 1000 ? factor_permille / 1000.0 : 1.0;
    double value = (double)base_ms * pow(factor, (double)power);
    return value < (double)cap_ms ? (int64_t)llround(value) : cap_ms;
}

static int64_t plain(const struct hfi_backoff_rules *rules, uint64_t retry) {
    switch (rules->backoff) {
    case HF_BACKOFF_LINEAR:
        return hfi_mul(rules->base_ms, retry < INT64_MAX ? (int64_t)retry + 1 : INT64_MAX);
    case HF_BACKOFF_EXPONENTIAL:
        return grown(rules->base_ms, rules->factor_permille, retry, rules->cap_ms);
    case HF_BACKOFF_TABLE:
        if (rules->table_length > 0 && rules->table_length <= HF_BACKOFF_TABLE_MAX)
            return rules->table_ms[retry < rules->table_length ? retry : rules->table_length - 1];
        return rules->base_ms;
    case HF_BACKOFF_CONSTANT:
        break;
    }
    return rules->base_ms;
}

/* value × permille / 1000 without overflow. */
static int64_t share(int64_t value, uint32_t permille) {
    return hfi_add(hfi_mul(value / 1000, permille), value % 1000 * permille / 1000);
}

int64_t hfi_backoff_ms(const struct hfi_backoff_rules *rules, uint64_t retry, int64_t last_ms, uint64_t random) {
    int64_t cap = rules->cap_ms > 0 ? rules->cap_ms : 0;
    int64_t wait = clamp(plain(rules, retry), 0, cap);
    switch (rules->jitter) {
    case HF_JITTER_FACTOR: {
        int64_t spread = share(wait, rules->jitter_permille);
        wait = hfi_add(hfi_sub(wait, spread), scaled(random, hfi_mul(spread, 2)));
        break;
    }
    case HF_JITTER_FULL:
        wait = scaled(random, wait);
        break;
    case HF_JITTER_EQUAL:
        wait = wait / 2 + scaled(random, wait - wait / 2);
        break;
    case HF_JITTER_DECORRELATED: {
        /* Between base and 3 × the last wait; a range that collapses is the base, never 0 (R2). */
        int64_t most = hfi_mul(last_ms > rules->base_ms ? last_ms : rules->base_ms, 3);
        most = clamp(most, 0, cap);
        wait = most > rules->base_ms ? hfi_add(rules->base_ms, scaled(random, most - rules->base_ms)) : rules->base_ms;
        break;
    }
    case HF_JITTER_NONE:
        break;
    }
    return clamp(wait, 0, cap);
}

int64_t hfi_backoff_max_ms(const struct hfi_backoff_rules *rules, uint64_t retry) {
    if (rules->jitter == HF_JITTER_DECORRELATED) {
        int64_t cap = rules->cap_ms > 0 ? rules->cap_ms : 0;
        return clamp(grown(rules->base_ms, 3000, retry < UINT64_MAX ? retry + 1 : retry, cap), 0, cap);
    }
    return hfi_backoff_ms(rules, retry, 0, UINT64_MAX);
}
