/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_BREAKER_RIG_H
#define HF_TEST_BREAKER_RIG_H

/* One breaker under a clock of its own, with what its observer heard. For the suites of the breaker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "holdfast/error.h"
#include "resilience/breaker.h"

#define MS INT64_C(1000)
#define S (1000 * MS)
#define START (1000 * S)

static struct hfi_breaker b;
static int64_t clock_us;

static struct {
    int count;
    struct hfi_breaker_event list[64];
    char reasons[64][200];
} seen;

static inline void record(const struct hfi_breaker_event *event, void *user) {
    (void)user;
    if (seen.count < 64) {
        seen.list[seen.count] = *event;
        snprintf(seen.reasons[seen.count], sizeof seen.reasons[0], "%s", event->reason);
    }
    seen.count++;
}

static inline struct hf_mono now(void) {
    return (struct hf_mono){clock_us};
}

static inline struct hfi_breaker_rules defaults(void) {
    return (struct hfi_breaker_rules){.window_ms = 60000, .slices = 12,
                                      .break_ms = 5000,
                                      .max_break_ms = 60000,
                                      .ramp_ms = 10000,
                                      .lease_ms = 30000,
                                      .ratio_permille = 500,
                                      .break_factor_permille = 2000,
                                      .min_calls = 20,
                                      .probes = 3,
                                      .ramp_cap = 64};
}

static inline void start_with(const struct hfi_breaker_rules *rules) {
    static struct hfi_breaker_rules kept;
    static bool started;
    kept = *rules; /* they must live as long as the breaker */
    if (started)
        hfi_breaker_end(&b);
    started = true;
    assert_int_equal(hfi_breaker_init(&b, &kept, 1, record), 0);
    clock_us = START;
    memset(&seen, 0, sizeof seen);
}

static inline void start(void) {
    struct hfi_breaker_rules rules = defaults();
    start_with(&rules);
}

static inline enum hfi_admission enter(struct hf_permit *permit) {
    int64_t wait = 0;
    enum hfi_admission admission = hfi_breaker_enter(&b, now(), permit, &wait);
    if (admission != HFI_ADMITTED)
        assert_true(wait >= 1);
    return admission;
}

static inline void leave(struct hf_permit *permit, enum hf_verdict verdict) {
    assert_int_equal(hfi_breaker_leave(&b, now(), permit, verdict, HF_CAUSE_OTHER, false), 0);
}

static inline void call(enum hf_verdict verdict) {
    struct hf_permit permit;
    assert_int_equal(enter(&permit), HFI_ADMITTED);
    leave(&permit, verdict);
}

static inline struct hfi_breaker_look look(void) {
    struct hfi_breaker_look l;
    hfi_breaker_look(&b, now(), &l);
    return l;
}

static inline void calls(int count, enum hf_verdict verdict) {
    for (int i = 0; i < count; i++)
        call(verdict);
}

static inline void trip(void) {
    calls(20, HF_VERDICT_FAILURE);
    assert_int_equal(look().state, HF_BREAKER_OPEN);
}

static inline void pass_break(void) {
    clock_us = look().until_us;
}

static inline void recover(void) {
    pass_break();
    calls(3, HF_VERDICT_SUCCESS);
    assert_int_equal(look().state, HF_BREAKER_RAMP);
}

#endif
