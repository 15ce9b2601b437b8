/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_LOCK_H
#define HFI_BASE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A mutex of four bytes, where the forty of a pthread_mutex_t are too many: in what exists once per peer. All zero: free.
 * Not recursive; there is nothing to end. Held shortly, and without calling out. Any thread.
 */
struct hfi_lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held and somebody may be asleep */
};
void hfi_lock_wait(struct hfi_lock *lock); /* takes it when it was not free */
void hfi_lock_wake(struct hfi_lock *lock);

static inline void hfi_lock(struct hfi_lock *lock) {
    uint32_t free = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, memory_order_acquire, memory_order_relaxed))
        hfi_lock_wait(lock);
}
static inline void hfi_unlock(struct hfi_lock *lock) {
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        hfi_lock_wake(lock);
}

#endif
