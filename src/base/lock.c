/* SPDX-License-Identifier: MIT */
/*
 * The part of the small mutex that meets others: sleeping on its word in the kernel, and waking one who does. Must never
 * touch errno: it runs inside error paths. Any thread.
 */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void hfi_lock_wait(struct hfi_lock *lock) {
    int kept = errno;
    /* Whoever slept takes it as "held and somebody may be asleep": at worst one wake too many. */
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = kept;
}

void hfi_lock_wake(struct hfi_lock *lock) {
    int kept = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = kept;
}
