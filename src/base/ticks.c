/* SPDX-License-Identifier: MIT */
/*
 * Monotonic time from the processor's time stamp counter: one instruction instead of a call into the kernel's page. Used
 * only where the counter runs at one rate through all sleep states, the kernel itself keeps time by it and lets programs
 * read it; its rate is measured against CLOCK_MONOTONIC, and taken anew every second. Anywhere else it is
 * CLOCK_MONOTONIC. Must never be far from it: a rate that looks odd is not used. Any thread, no lock.
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/prctl.h>
#include <x86intrin.h>

#define SHIFT 40
#define FIRST_US 10000  /* so long a measure makes the rate good to a few parts in 10^5 */
#define RENEW_US 1000000
#define ODD_PERMILLE 5

enum { UNKNOWN, UNUSABLE, MEASURING, READY };

/* us = from_us + (ticks - from) * rate >> SHIFT. Written between two odd numbers of `version`. */
static _Atomic int state;
static _Atomic uint32_t version;
static _Atomic uint64_t from, rate, renew; /* renew: so many ticks are one RENEW_US */
static _Atomic int64_t from_us;

static bool kernel_trusts_it(void) {
    char name[32] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file == NULL)
        return false;
    bool read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    return read && (strcmp(name, "tsc") == 0 || strcmp(name, "kvm-clock") == 0 ||
                    strcmp(name, "hyperv_clocksource_tsc_page") == 0);
}

static bool is_sound(void) {
    unsigned a, b, c, d;
    int allowed = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8) != 0 && prctl(PR_GET_TSC, &allowed) == 0 &&
           allowed == PR_TSC_ENABLE && kernel_trusts_it();
}

/* Both clocks at one moment; false when something came in between. */
static bool read_both(uint64_t *ticks, int64_t *us) {
    uint64_t before = __rdtsc();
    *us = hfi_mono_now().us;
    uint64_t after = __rdtsc();
    *ticks = before + (after - before) / 2;
    return after - before < 20000; /* a few µs */
}

static void publish(uint64_t ticks, int64_t us, uint64_t new_rate) {
    atomic_store_explicit(&from, ticks, memory_order_relaxed);
    atomic_store_explicit(&from_us, us, memory_order_relaxed);
    atomic_store_explicit(&rate, new_rate, memory_order_relaxed);
    atomic_store_explicit(&renew, new_rate > 0 ? ((uint64_t)RENEW_US << SHIFT) / new_rate : 0, memory_order_relaxed);
}

/* The rate since the last measure, when it is one; the old one otherwise. */
static uint64_t measured(uint64_t ticks, int64_t us) {
    uint64_t passed = ticks - atomic_load_explicit(&from, memory_order_relaxed);
    int64_t passed_us = us - atomic_load_explicit(&from_us, memory_order_relaxed);
    uint64_t old = atomic_load_explicit(&rate, memory_order_relaxed);
    if (passed == 0 || passed_us <= 0 || passed_us > 10 * (int64_t)RENEW_US)
        return old;
    uint64_t made = ((uint64_t)passed_us << SHIFT) / passed;
    bool odd = old != 0 && (made > old + old / 1000 * ODD_PERMILLE || made < old - old / 1000 * ODD_PERMILLE);
    return odd ? old : made;
}

/* One thread takes a new measure; the others go on by the old one, or by the clock. */
static void measure(int expected) {
    uint32_t seen = atomic_load_explicit(&version, memory_order_relaxed);
    uint64_t ticks;
    int64_t us;
    if ((seen & 1) || !atomic_compare_exchange_strong_explicit(&version, &seen, seen + 1, memory_order_acq_rel,
                                                               memory_order_relaxed))
        return;
    if (atomic_load_explicit(&state, memory_order_relaxed) == expected && read_both(&ticks, &us)) {
        if (expected == UNKNOWN) {
            publish(ticks, us, 0);
            atomic_store_explicit(&state, is_sound() ? MEASURING : UNUSABLE, memory_order_relaxed);
        } else if (expected == READY || us - atomic_load_explicit(&from_us, memory_order_relaxed) >= FIRST_US) {
            uint64_t made = measured(ticks, us);
            publish(ticks, us, made);
            atomic_store_explicit(&state, made != 0 ? READY : MEASURING, memory_order_relaxed);
        }
    }
    atomic_store_explicit(&version, seen + 2, memory_order_release);
}

struct hf_mono hfi_mono_now_quick(void) {
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (now == READY) {
        uint32_t before = atomic_load_explicit(&version, memory_order_acquire);
        uint64_t passed = __rdtsc() - atomic_load_explicit(&from, memory_order_relaxed);
        int64_t base_us = atomic_load_explicit(&from_us, memory_order_relaxed);
        uint64_t us = (passed * atomic_load_explicit(&rate, memory_order_relaxed)) >> SHIFT;
        bool fresh = passed < atomic_load_explicit(&renew, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (fresh && !(before & 1) && atomic_load_explicit(&version, memory_order_relaxed) == before)
            return (struct hf_mono){base_us + (int64_t)us};
    }
    if (now != UNUSABLE)
        measure(now);
    return hfi_mono_now();
}

#else

struct hf_mono hfi_mono_now_quick(void) {
    return hfi_mono_now();
}

#endif
