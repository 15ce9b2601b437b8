/* SPDX-License-Identifier: MIT */
/*
 * The rate limit of a downstream. One number says it all: how far ahead of now the bucket will be full again. Each
 * start moves it on by one interval; a start that would move it further than the burst allows is refused. Must never
 * admit more when a clock reading comes late, is older than the one before or jumps. Any thread, no lock.
 */
#include "resilience/rate.h"

#include <math.h>

#define TICK_BITS 16 /* of a µs: an error of 1.5e-5 at the highest rate, 1.5e-10 at 10/s */
/* Ticks wrap after nine years. So far ahead cannot be taken, it is a bucket that nobody used for years. */
#define LONG_AGO (INT64_C(1) << 62)

static uint64_t ticks(struct hf_mono now) {
    return (uint64_t)now.us << TICK_BITS;
}

static int64_t to_us_up(uint64_t tick_count) {
    return (int64_t)((tick_count + (1u << TICK_BITS) - 1) >> TICK_BITS); /* never early */
}

uint32_t hfi_rate_burst(double per_s) {
    return per_s > 10 ? (uint32_t)ceil(per_s / 10) : 1;
}

void hfi_rate_set(struct hfi_rate *rate, double per_s, uint32_t burst) {
    /* Rounded up: never faster than asked for. The ladder check has bounded both. */
    uint64_t interval = per_s > 0 ? (uint64_t)ceil((double)(UINT64_C(1000000) << TICK_BITS) / per_s) : 0;
    burst = burst > 0 ? burst : hfi_rate_burst(per_s);
    atomic_store_explicit(&rate->slack, (burst - 1) * interval, memory_order_relaxed);
    atomic_store_explicit(&rate->interval, interval, memory_order_relaxed);
}

/* How far ahead of now the bucket will be full, 0 when it is. */
static uint64_t ahead_of(uint64_t full_at, uint64_t now) {
    int64_t ahead = (int64_t)(full_at - now);
    return full_at == 0 || ahead < 0 || ahead > LONG_AGO ? 0 : (uint64_t)ahead;
}

bool hfi_rate_take(struct hfi_rate *rate, struct hf_mono now, int64_t *wait_us) {
    uint64_t interval = atomic_load_explicit(&rate->interval, memory_order_relaxed);
    uint64_t slack = atomic_load_explicit(&rate->slack, memory_order_relaxed);
    uint64_t full_at = atomic_load_explicit(&rate->full_at, memory_order_relaxed), next;
    do {
        uint64_t ahead = ahead_of(full_at, ticks(now));
        if (ahead > slack) {
            *wait_us = to_us_up(ahead - slack);
            return false;
        }
        next = ticks(now) + ahead + interval;
        next = next != 0 ? next : 1;
    } while (!atomic_compare_exchange_weak_explicit(&rate->full_at, &full_at, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void hfi_rate_give_back(struct hfi_rate *rate) {
    uint64_t interval = atomic_load_explicit(&rate->interval, memory_order_relaxed);
    if (interval != 0)
        atomic_fetch_sub_explicit(&rate->full_at, interval, memory_order_relaxed);
}

uint32_t hfi_rate_left(const struct hfi_rate *rate, struct hf_mono now, int64_t *wait_us) {
    uint64_t interval = atomic_load_explicit(&rate->interval, memory_order_relaxed);
    uint64_t slack = atomic_load_explicit(&rate->slack, memory_order_relaxed);
    uint64_t full_at = atomic_load_explicit(&rate->full_at, memory_order_relaxed);
    *wait_us = 0;
    if (interval == 0)
        return UINT32_MAX;
    uint64_t ahead = ahead_of(full_at, ticks(now));
    if (ahead > slack) {
        *wait_us = to_us_up(ahead - slack);
        return 0;
    }
    uint64_t left = (slack - ahead) / interval + 1;
    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX - 1;
}
