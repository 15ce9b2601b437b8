/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_CLOCK_H
#define HFI_BASE_CLOCK_H

#include <stdint.h>

/*
 * Two clocks, two types, so that nobody subtracts one from the other. Monotonic time decides (deadlines, windows,
 * leases); wall time is stored and shown. Both in µs. Only schedulers and src/base/clock.c read a clock: every other
 * function is handed `now`.
 */
struct hf_mono {
    int64_t us;
};
struct hf_wall {
    int64_t us; /* µs UTC since 1970 */
};

#define HFI_FOREVER_US INT64_MAX

struct hf_mono hfi_mono_now(void);        /* CLOCK_MONOTONIC */
struct hf_mono hfi_mono_now_coarse(void); /* CLOCK_MONOTONIC_COARSE: a few ms behind, a quarter of the price */
int64_t hfi_mono_coarse_step_us(void);    /* how far it is behind at most */
/* CLOCK_MONOTONIC worked out from the processor's counter where that is sound (checked at the first call), at half the
   price: within a few µs of it, for differences. Decisions that must not be early read the clock itself. */
struct hf_mono hfi_mono_now_quick(void);
struct hf_wall hfi_wall_now(void);        /* CLOCK_REALTIME */

/* Saturating: int64 maths that clamps instead of overflowing. */
static inline int64_t hfi_add(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}
static inline int64_t hfi_sub(int64_t a, int64_t b) {
    int64_t difference;
    if (__builtin_sub_overflow(a, b, &difference))
        return b < 0 ? INT64_MAX : INT64_MIN;
    return difference;
}
static inline int64_t hfi_mul(int64_t a, int64_t b) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product;
}
static inline int64_t hfi_ms_to_us(int64_t ms) {
    return hfi_mul(ms, 1000);
}
/* rounded up: never early */
static inline int64_t hfi_us_to_ms_up(int64_t us) {
    return us / 1000 + (us % 1000 > 0 ? 1 : 0);
}

static inline struct hf_mono hfi_mono_after_ms(struct hf_mono now, int64_t ms) {
    struct hf_mono at = {hfi_add(now.us, hfi_ms_to_us(ms))};
    return at;
}

#define HFI_RFC3339_LENGTH 28
/* `2026-11-30T10:05:00.123456Z` into at least HFI_RFC3339_LENGTH bytes. 0 gives "". Clamped to the years 0000…9999. */
char *hfi_rfc3339(int64_t wall_us, char *text);
/* Parses RFC 3339 with zone or offset (required), cut to µs; HF_EINVAL on anything else, never guesses. */
int hfi_rfc3339_parse(const char *text, int64_t *wall_us);
/* Days since 1970-01-01 of a proleptic Gregorian date. */
int64_t hfi_days_from_civil(int64_t year, int month, int day);

#endif
