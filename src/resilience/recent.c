/* SPDX-License-Identifier: MIT */
/*
 * Takes from a growing histogram what is older than the last one to two windows. Turns over when it is asked, for
 * nothing else needs it; who was not asked for two windows knows nothing recent. Must never count what came before the
 * first question. Any thread, one short lock.
 */
#include "resilience/recent.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

struct hfi_recent {
    pthread_mutex_t lock;
    struct hf_mono began; /* this window */
    struct hf_mono answered;
    int64_t answer; /* -1 none */
    uint32_t permille; /* what was asked */
    uint64_t at_least;
    uint64_t last[HFI_HISTOGRAM_BUCKETS], now[HFI_HISTOGRAM_BUCKETS]; /* when the last window and this one began */
};

static void copy(uint64_t *to, const struct hfi_histogram *from) {
    for (unsigned i = 0; i < HFI_HISTOGRAM_BUCKETS; i++)
        to[i] = atomic_load_explicit(&from->counts[i], memory_order_relaxed);
}

/* NULL: no memory, the next question asks again. */
static struct hfi_recent *made(struct hfi_recent *_Atomic *place, const struct hfi_histogram *whole,
                               struct hf_mono now) {
    struct hfi_recent *there = atomic_load_explicit(place, memory_order_acquire);
    if (there != NULL)
        return there;
    struct hfi_recent *fresh = hfi_alloc(sizeof *fresh);
    if (fresh == NULL)
        return NULL;
    pthread_mutex_init(&fresh->lock, NULL);
    fresh->began = now;
    fresh->answer = -1;
    copy(fresh->now, whole);
    memcpy(fresh->last, fresh->now, sizeof fresh->last);
    if (atomic_compare_exchange_strong_explicit(place, &there, fresh, memory_order_acq_rel, memory_order_acquire))
        return fresh;
    hfi_recent_free(fresh); /* another thread was first */
    return there;
}

static void turn_over(struct hfi_recent *recent, const struct hfi_histogram *whole, struct hf_mono now,
                      int64_t window_ms) {
    int64_t passed_us = hfi_sub(now.us, recent->began.us), window_us = hfi_ms_to_us(window_ms);
    if (passed_us < window_us)
        return;
    if (passed_us >= hfi_mul(window_us, 2))
        copy(recent->now, whole); /* how old the rest is nobody knows */
    memcpy(recent->last, recent->now, sizeof recent->last);
    copy(recent->now, whole);
    recent->began = now;
}

int64_t hfi_recent_quantile(struct hfi_recent *_Atomic *place, const struct hfi_histogram *whole, struct hf_mono now,
                            int64_t window_ms, uint32_t permille, uint64_t at_least) {
    struct hfi_histogram within;
    struct hfi_recent *recent = made(place, whole, now);
    if (recent == NULL)
        return -1;
    pthread_mutex_lock(&recent->lock);
    turn_over(recent, whole, now, window_ms);
    for (unsigned i = 0; i < HFI_HISTOGRAM_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&whole->counts[i], memory_order_relaxed);
        atomic_init(&within.counts[i], count > recent->last[i] ? count - recent->last[i] : 0);
    }
    int64_t answer = hfi_histogram_total(&within) < at_least ? -1 : hfi_histogram_quantile(&within, permille);
    recent->answer = answer;
    recent->answered = now;
    recent->permille = permille;
    recent->at_least = at_least;
    pthread_mutex_unlock(&recent->lock);
    return answer;
}

int64_t hfi_recent_known(struct hfi_recent *_Atomic *place, struct hf_mono now, int64_t window_ms, uint32_t permille,
                         uint64_t at_least) {
    struct hfi_recent *recent = atomic_load_explicit(place, memory_order_acquire);
    if (recent == NULL)
        return -1;
    pthread_mutex_lock(&recent->lock);
    int64_t age_us = hfi_sub(now.us, recent->answered.us);
    bool known = recent->permille == permille && recent->at_least == at_least && age_us < hfi_ms_to_us(window_ms) / 16;
    int64_t answer = known ? recent->answer : -1;
    pthread_mutex_unlock(&recent->lock);
    return answer;
}

void hfi_recent_free(struct hfi_recent *recent) {
    if (recent == NULL)
        return;
    pthread_mutex_destroy(&recent->lock);
    hfi_free(recent);
}
