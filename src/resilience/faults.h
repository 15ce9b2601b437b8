/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_FAULTS_H
#define HFI_RESILIENCE_FAULTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "holdfast/faults.h"

/* Which of `faults` strikes an attempt at `now`: its index, -1 none. Schedules count from `since`. Pure. */
int hfi_fault_pick(const struct hf_fault *faults, size_t count, struct hf_mono since, struct hf_mono now,
                   uint64_t random);

/* The faults of one downstream. Made with the first injection and kept until the downstream goes. Any thread. */
struct hfi_faults {
    _Atomic uint32_t count;    /* 0: none, and nothing else is looked at */
    _Atomic uint64_t injected; /* attempts struck */
    pthread_mutex_t lock;      /* of the rest */
    struct hf_mono since;      /* the first attempt after the injection */
    bool begun;
    struct hf_fault items[HF_FAULTS_MAX];
};
struct hfi_faults *hfi_faults_new(void); /* NULL: no memory */
void hfi_faults_free(struct hfi_faults *faults);
/* Takes checked `given` in place of what was there. */
void hfi_faults_set(struct hfi_faults *faults, const struct hf_fault *given, size_t count);

/* Does one strike this attempt of `name`? Fills `fault`, counts and logs it. NULL `faults`: never. */
bool hfi_faults_strike(struct hfi_faults *faults, const char *name, struct hf_mono now, uint64_t random,
                       struct hf_fault *fault);

#endif
