/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_WAITING_H
#define HFI_RESILIENCE_WAITING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "holdfast/guard.h"

/*
 * How a thread waits inside a guard: for a time, for a place in a bulkhead (the line), and always for its cancel. It lives
 * on the thread's stack between init and end.
 */
struct hfi_waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool place, cancelled;          /* under the lock */
    bool in_line;                   /* under the line's lock */
    struct hf_guard_cancel *cancel; /* NULL: nobody cancels it */
    TAILQ_ENTRY(hfi_waiter) line_entry, cancel_entry;
};
TAILQ_HEAD(hfi_waiters, hfi_waiter);

enum hfi_woken { HFI_WOKEN_TIME, HFI_WOKEN_PLACE, HFI_WOKEN_CANCEL };
void hfi_waiter_init(struct hfi_waiter *waiter, struct hf_guard_cancel *cancel);
void hfi_waiter_end(struct hfi_waiter *waiter); /* it is in no line */
/* Sleeps until `at_us` (CLOCK_MONOTONIC), a place or the cancel, whichever was first; the cancel wins over all. */
enum hfi_woken hfi_waiter_sleep(struct hfi_waiter *waiter, int64_t at_us);
/* The same with nothing but a time and a cancel. True: cancelled. */
bool hfi_wait_until(int64_t at_us, struct hf_guard_cancel *cancel);

/*
 * Those who wait for a place in one bulkhead, the first one first. `waiting` is looked at by everybody who leaves, right
 * after the place is free; who waits joins first and asks for a place then. So one of both always sees the other.
 */
struct hfi_line {
    _Atomic uint32_t waiting;
    pthread_mutex_t lock;
    struct hfi_waiters waiters;
};
struct hfi_line *hfi_line_new(void); /* NULL: no memory */
void hfi_line_free(struct hfi_line *line);
void hfi_line_join(struct hfi_line *line, struct hfi_waiter *waiter);
/* Out of the line. True: a place was announced to it, and whoever takes none has to call hfi_line_announce for the next. */
bool hfi_line_quit(struct hfi_line *line, struct hfi_waiter *waiter);
void hfi_line_announce(struct hfi_line *line);     /* a place is free: wakes the first */
void hfi_line_announce_all(struct hfi_line *line); /* there may be room for any number */

#endif
