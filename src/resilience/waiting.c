/* SPDX-License-Identifier: MIT */
/*
 * The waits of guards: sleeping threads, the line before a bulkhead, and the cancel that any thread may fire. A wake
 * that was given to a thread must never be lost: who cannot use it hands it on. Any thread; only those who wait take
 * locks.
 */
#include "resilience/waiting.h"

#include <time.h>

#include "base/alloc.h"

struct hf_guard_cancel {
    _Atomic bool fired;
    pthread_mutex_t lock;
    struct hfi_waiters waiters;
};

/* ------------------------------------------------------------------ one thread */

void hfi_waiter_init(struct hfi_waiter *waiter, struct hf_guard_cancel *cancel) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&waiter->lock, NULL);
    waiter->place = waiter->cancelled = waiter->in_line = false;
    waiter->cancel = cancel;
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->lock);
    TAILQ_INSERT_TAIL(&cancel->waiters, waiter, cancel_entry);
    waiter->cancelled = atomic_load(&cancel->fired);
    pthread_mutex_unlock(&cancel->lock);
}

void hfi_waiter_end(struct hfi_waiter *waiter) {
    if (waiter->cancel != NULL) {
        pthread_mutex_lock(&waiter->cancel->lock);
        TAILQ_REMOVE(&waiter->cancel->waiters, waiter, cancel_entry);
        pthread_mutex_unlock(&waiter->cancel->lock);
    }
    pthread_cond_destroy(&waiter->changed);
    pthread_mutex_destroy(&waiter->lock);
}

static void wake(struct hfi_waiter *waiter, bool *what) {
    pthread_mutex_lock(&waiter->lock);
    *what = true;
    pthread_cond_signal(&waiter->changed);
    pthread_mutex_unlock(&waiter->lock);
}

enum hfi_woken hfi_waiter_sleep(struct hfi_waiter *waiter, int64_t at_us) {
    struct timespec at = {.tv_sec = (time_t)(at_us / 1000000), .tv_nsec = (long)(at_us % 1000000) * 1000};
    int code = 0;
    pthread_mutex_lock(&waiter->lock);
    while (code == 0 && !waiter->place && !waiter->cancelled)
        code = pthread_cond_timedwait(&waiter->changed, &waiter->lock, &at);
    enum hfi_woken woken = waiter->cancelled ? HFI_WOKEN_CANCEL : waiter->place ? HFI_WOKEN_PLACE : HFI_WOKEN_TIME;
    pthread_mutex_unlock(&waiter->lock);
    return woken;
}

bool hfi_wait_until(int64_t at_us, struct hf_guard_cancel *cancel) {
    struct hfi_waiter waiter;
    hfi_waiter_init(&waiter, cancel);
    enum hfi_woken woken = hfi_waiter_sleep(&waiter, at_us);
    hfi_waiter_end(&waiter);
    return woken == HFI_WOKEN_CANCEL;
}

/* ------------------------------------------------------------------ the line */

struct hfi_line *hfi_line_new(void) {
    struct hfi_line *line = hfi_alloc(sizeof *line);
    if (line == NULL)
        return NULL;
    pthread_mutex_init(&line->lock, NULL);
    TAILQ_INIT(&line->waiters);
    return line;
}

void hfi_line_free(struct hfi_line *line) {
    if (line == NULL)
        return;
    pthread_mutex_destroy(&line->lock);
    hfi_free(line);
}

void hfi_line_join(struct hfi_line *line, struct hfi_waiter *waiter) {
    pthread_mutex_lock(&line->lock);
    TAILQ_INSERT_TAIL(&line->waiters, waiter, line_entry);
    waiter->in_line = true;
    atomic_fetch_add(&line->waiting, 1); /* sequentially consistent, as the leaver's look at it */
    pthread_mutex_unlock(&line->lock);
}

/* Under the line's lock. */
static void take_out(struct hfi_line *line, struct hfi_waiter *waiter) {
    TAILQ_REMOVE(&line->waiters, waiter, line_entry);
    waiter->in_line = false;
    atomic_fetch_sub(&line->waiting, 1);
}

bool hfi_line_quit(struct hfi_line *line, struct hfi_waiter *waiter) {
    pthread_mutex_lock(&line->lock);
    bool announced = !waiter->in_line;
    if (!announced)
        take_out(line, waiter);
    pthread_mutex_unlock(&line->lock);
    pthread_mutex_lock(&waiter->lock);
    waiter->place = false;
    pthread_mutex_unlock(&waiter->lock);
    return announced;
}

/* Under the line's lock: the waiter cannot leave its stack meanwhile. */
static void announce_to(struct hfi_line *line, struct hfi_waiter *waiter) {
    take_out(line, waiter);
    wake(waiter, &waiter->place);
}

void hfi_line_announce(struct hfi_line *line) {
    pthread_mutex_lock(&line->lock);
    if (!TAILQ_EMPTY(&line->waiters))
        announce_to(line, TAILQ_FIRST(&line->waiters));
    pthread_mutex_unlock(&line->lock);
}

void hfi_line_announce_all(struct hfi_line *line) {
    pthread_mutex_lock(&line->lock);
    while (!TAILQ_EMPTY(&line->waiters))
        announce_to(line, TAILQ_FIRST(&line->waiters));
    pthread_mutex_unlock(&line->lock);
}

/* ------------------------------------------------------------------ the cancel */

struct hf_guard_cancel *hf_guard_cancel_new(void) {
    struct hf_guard_cancel *cancel = hfi_alloc(sizeof *cancel);
    if (cancel == NULL)
        return NULL;
    pthread_mutex_init(&cancel->lock, NULL);
    TAILQ_INIT(&cancel->waiters);
    return cancel;
}

void hf_guard_cancel_free(struct hf_guard_cancel *cancel) {
    if (cancel == NULL)
        return;
    pthread_mutex_destroy(&cancel->lock);
    hfi_free(cancel);
}

void hf_guard_cancel_fire(struct hf_guard_cancel *cancel) {
    struct hfi_waiter *waiter;
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->lock);
    atomic_store(&cancel->fired, true);
    TAILQ_FOREACH(waiter, &cancel->waiters, cancel_entry)
    wake(waiter, &waiter->cancelled);
    pthread_mutex_unlock(&cancel->lock);
}

bool hf_guard_cancel_fired(const struct hf_guard_cancel *cancel) {
    return cancel != NULL && atomic_load(&cancel->fired);
}
