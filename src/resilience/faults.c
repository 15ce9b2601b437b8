/* SPDX-License-Identifier: MIT */
/*
 * Fault injection: which attempts of a downstream are struck, and by what. Carrying it out is for faulty.c (transport)
 * and guard.c (functions). Must never strike where no policy allows it, nor without counting it. Any thread; picking
 * is pure.
 */
#include "resilience/faults.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "resilience/downstream.h"
#include "resilience/finding.h"

const char *hf_fault_name(enum hf_fault_kind kind) {
    switch (kind) {
#define FAULT_CASE(name, text)                                                                                         \
    case HF_FAULT_##name:                                                                                              \
        return text;
        HF_FAULT_MAP(FAULT_CASE)
#undef FAULT_CASE
    }
    return "unknown";
}

/* A number in [0, 1) for each rule of the list, of one random number (splitmix64's mixer). */
static double dice(uint64_t random, size_t index) {
    uint64_t x = random + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static bool is_due(const struct hf_fault *fault, struct hf_mono since, struct hf_mono now) {
    if (fault->every_ms == 0)
        return true;
    int64_t age_us = hfi_sub(now.us, since.us);
    return age_us >= 0 && age_us % hfi_ms_to_us(fault->every_ms) < hfi_ms_to_us(fault->for_ms);
}

int hfi_fault_pick(const struct hf_fault *faults, size_t count, struct hf_mono since, struct hf_mono now,
                   uint64_t random) {
    for (size_t i = 0; i < count; i++)
        if (is_due(&faults[i], since, now) && dice(random, i) < faults[i].share)
            return (int)i;
    return -1;
}

/* ------------------------------------------------------------------ what is accepted */

static int check_times(const struct hf_fault *fault, size_t i, struct hf_error *error) {
    char what[32];
    const char *bad = NULL;
    int64_t ms = 0;
    if (fault->delay_ms < 0 || fault->delay_ms > HFI_DURATION_MAX_MS)
        bad = "delay", ms = fault->delay_ms;
    else if (fault->every_ms < 0 || fault->every_ms > HFI_DURATION_MAX_MS)
        bad = "every", ms = fault->every_ms;
    else if (fault->for_ms < 0 || fault->for_ms > HFI_DURATION_MAX_MS)
        bad = "for", ms = fault->for_ms;
    snprintf(what, sizeof what, "faults[%zu].%s", i, bad != NULL ? bad : "for");
    if (bad != NULL)
        return hfi_fail(error, HF_EINVAL, what, "give a duration below ten years", "it is %lld ms", (long long)ms);
    if ((fault->every_ms > 0) != (fault->for_ms > 0))
        return hfi_fail(error, HF_EINVAL, what, "give both, as in every: 60s, for: 10s",
                        "`every` and `for` belong together");
    if (fault->for_ms > fault->every_ms)
        return hfi_fail(error, HF_EINVAL, what, "at most `every`", "%lld ms of every %lld ms", (long long)fault->for_ms,
                        (long long)fault->every_ms);
    return 0;
}

static int check_one(const struct hf_fault *fault, size_t i, struct hf_error *error) {
    char what[32];
    if ((int)fault->kind < HF_FAULT_DELAY || fault->kind > HF_FAULT_DROP) {
        snprintf(what, sizeof what, "faults[%zu].kind", i);
        return hfi_fail(error, HF_EINVAL, what, "delay, status, reset or drop", "it is %d", (int)fault->kind);
    }
    bool answers = fault->kind == HF_FAULT_STATUS;
    snprintf(what, sizeof what, "faults[%zu].status", i);
    if (answers && (fault->status < 200 || fault->status > 599))
        return hfi_fail(error, HF_EINVAL, what, "give one from 200 to 599", "the status is %d", fault->status);
    if (!answers && fault->status != 0)
        return hfi_fail(error, HF_EINVAL, what, "leave it out, or say kind: status", "a %s has none",
                        hf_fault_name(fault->kind));
    snprintf(what, sizeof what, "faults[%zu].share", i);
    if (!(fault->share > 0 && fault->share <= 1))
        return hfi_fail(error, HF_EINVAL, what, "a number above 0, at most 1", "the share is %g", fault->share);
    snprintf(what, sizeof what, "faults[%zu].delay", i);
    if (fault->kind == HF_FAULT_DELAY && fault->delay_ms == 0)
        return hfi_fail(error, HF_EINVAL, what, "say how long", "a delay of nothing");
    return check_times(fault, i, error);
}

/* Of any age: what the caller's struct does not have gets its default. */
static struct hf_fault take(const struct hf_fault *given, size_t i) {
    struct hf_fault fault;
    const char *at = (const char *)given + i * given->size;
    hf_fault_init(&fault, HF_FAULT_DELAY);
    memcpy(&fault, at, given->size < sizeof fault ? given->size : sizeof fault);
    fault.size = (uint32_t)sizeof fault;
    return fault;
}

int hf_faults_check(const struct hf_fault *faults, size_t count, struct hf_error *error) {
    if (count > 0 && (faults == NULL || faults->size < sizeof faults->size))
        return hfi_fail(error, HF_EINVAL, "faults", "call hf_fault_init first", "they have no size");
    if (count > HF_FAULTS_MAX)
        return hfi_fail(error, HF_ETOOBIG, "faults", "keep fewer", "%zu are more than %d", count, HF_FAULTS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct hf_fault fault = take(faults, i);
        int code = check_one(&fault, i, error);
        if (code != 0)
            return code;
    }
    return 0;
}

/* ------------------------------------------------------------------ the faults of a downstream */

struct hfi_faults *hfi_faults_new(void) {
    struct hfi_faults *faults = hfi_alloc(sizeof *faults);
    if (faults != NULL)
        pthread_mutex_init(&faults->lock, NULL);
    return faults;
}

void hfi_faults_free(struct hfi_faults *faults) {
    if (faults == NULL)
        return;
    pthread_mutex_destroy(&faults->lock);
    hfi_free(faults);
}

void hfi_faults_set(struct hfi_faults *faults, const struct hf_fault *given, size_t count) {
    pthread_mutex_lock(&faults->lock);
    for (size_t i = 0; i < count; i++)
        faults->items[i] = take(given, i);
    faults->begun = false;
    atomic_store_explicit(&faults->count, (uint32_t)count, memory_order_relaxed);
    pthread_mutex_unlock(&faults->lock);
}

bool hfi_faults_strike(struct hfi_faults *faults, const char *name, struct hf_mono now, uint64_t random,
                       struct hf_fault *fault) {
    if (faults == NULL || atomic_load_explicit(&faults->count, memory_order_relaxed) == 0)
        return false;
    pthread_mutex_lock(&faults->lock);
    if (!faults->begun)
        faults->since = now;
    faults->begun = true;
    int index = hfi_fault_pick(faults->items, atomic_load_explicit(&faults->count, memory_order_relaxed), faults->since,
                               now, random);
    if (index >= 0)
        *fault = faults->items[index];
    pthread_mutex_unlock(&faults->lock);
    if (index < 0)
        return false;
    atomic_fetch_add_explicit(&faults->injected, 1, memory_order_relaxed);
    hfi_log(HF_LOG_INFO, "downstream.fault", HFI_S("downstream", name), HFI_S("kind", hf_fault_name(fault->kind)),
            HFI_I("status", fault->status), HFI_I("delay_ms", fault->delay_ms), NULL);
    return true;
}

/* Made when they are not there. NULL: no memory. */
static struct hfi_faults *faults_of(struct hf_downstream *downstream) {
    struct hfi_downstream_extra *extra = hfi_downstream_need_extra(downstream);
    struct hfi_faults *made = extra != NULL ? hfi_faults_new() : NULL, *there = NULL;
    if (made == NULL || atomic_compare_exchange_strong(&extra->faults, &there, made))
        return made;
    hfi_faults_free(made); /* another thread was faster */
    return there;
}

int hf_downstream_inject(struct hf_downstream *downstream, const struct hf_fault *given, size_t count,
                         struct hf_error *error) {
    if (downstream == NULL)
        return hfi_fail(error, HF_EINVAL, "downstream", "give one", "it is NULL");
    int code = hf_faults_check(given, count, error);
    if (code != 0)
        return code;
    struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    struct hfi_faults *faults = extra != NULL ? atomic_load(&extra->faults) : NULL;
    if (count > 0 && !hfi_downstream_policy(downstream)->options.allow_fault_injection)
        return hfi_fail(error, HF_EPERM, downstream->name,
                        "say allow_fault_injection: true, never in production by mistake",
                        "faults are given, but its policy does not allow them");
    if (count == 0 && faults == NULL)
        return 0;
    if (faults == NULL && (faults = faults_of(downstream)) == NULL)
        return hfi_fail(error, HF_ENOMEM, "faults", NULL, "out of memory");
    hfi_faults_set(faults, given, count);
    hfi_log(count > 0 ? HF_LOG_WARNING : HF_LOG_INFO, "downstream.faults", HFI_S("downstream", downstream->name),
            HFI_I("count", count), HFI_S("first", count > 0 ? hf_fault_name(take(given, 0).kind) : ""), NULL);
    return 0;
}
