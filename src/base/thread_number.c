/* SPDX-License-Identifier: MIT */
/*
 * Numbers for threads, given back when they end. Decides nothing. Must never give one number to two living threads. Any
 * thread; a lock at a thread's first call and at its end only.
 */
#include "base/thread_number.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NONE (-1)

_Thread_local int hfi_thread_number_kept;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static bool has_key;
static uint64_t taken[HFI_THREADS / 64];

/* A thread ends. What it does after this gets a number anew. */
static void give_back(void *value) {
    int number = (int)(intptr_t)value - 1;
    hfi_thread_number_kept = 0;
    pthread_mutex_lock(&lock);
    taken[number / 64] &= ~(UINT64_C(1) << number % 64);
    pthread_mutex_unlock(&lock);
}

static void set_up(void) {
    has_key = pthread_key_create(&key, give_back) == 0;
}

static int lowest_free(void) {
    for (int i = 0; i < HFI_THREADS / 64; i++)
        if (taken[i] != UINT64_MAX)
            return i * 64 + __builtin_ctzll(~taken[i]);
    return NONE;
}

int hfi_thread_number_take(void) {
    pthread_once(&once, set_up);
    if (!has_key)
        return NONE; /* nobody would tell that the thread has ended */
    pthread_mutex_lock(&lock);
    int number = lowest_free();
    if (number != NONE && pthread_setspecific(key, (void *)((intptr_t)number + 1)) == 0)
        taken[number / 64] |= UINT64_C(1) << number % 64;
    else
        number = NONE;
    pthread_mutex_unlock(&lock);
    if (number != NONE)
        hfi_thread_number_kept = number + 1; /* who has none asks again next time: another may have ended */
    return number;
}
