/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_THREAD_NUMBER_H
#define HFI_BASE_THREAD_NUMBER_H

/*
 * A small number for the calling thread that no other living thread has: 0 … HFI_THREADS - 1, the lowest that is free at
 * its first call, free again when the thread ends. -1 when so many threads live already. What only the thread with a
 * number writes needs no atomic addition: a successor sees all that its predecessor wrote.
 */
#define HFI_THREADS 256

extern _Thread_local int hfi_thread_number_kept __attribute__((tls_model("initial-exec"), visibility("hidden")));
int hfi_thread_number_take(void);

static inline int hfi_thread_number(void) {
    int kept = hfi_thread_number_kept; /* number + 1; 0: not asked for yet */
    return kept != 0 ? kept - 1 : hfi_thread_number_take();
}

#endif
