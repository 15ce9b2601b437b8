/* SPDX-License-Identifier: MIT */
/*
 * Who is told of a breaker's changes, besides the log and the runner. A list that only grows at its end, so that
 * telling needs no lock and may add or end observers itself. Must never call one while a lock is held (B22). Any
 * thread.
 */
#include "holdfast/event.h"

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/downstream.h"

struct hfi_observer {
    hf_downstream_event_fn fn;
    void *user;
    _Atomic bool ended; /* stays in the list until the downstream goes: somebody may be reading it */
    struct hfi_observer *_Atomic next;
};

static struct hfi_observer *first(const struct hf_downstream *downstream) {
    const struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    return extra != NULL ? atomic_load(&extra->observers) : NULL;
}

int hf_downstream_observe(struct hf_downstream *downstream, hf_downstream_event_fn fn, void *user) {
    if (downstream == NULL || fn == NULL)
        return HF_EINVAL;
    struct hfi_downstream_extra *extra = hfi_downstream_need_extra(downstream);
    struct hfi_observer *made = extra != NULL ? hfi_alloc(sizeof *made) : NULL;
    if (made == NULL)
        return HF_ENOMEM;
    made->fn = fn;
    made->user = user;
    struct hfi_observer *_Atomic *end = &extra->observers;
    struct hfi_observer *seen = NULL;
    while (!atomic_compare_exchange_strong(end, &seen, made)) {
        end = &seen->next;
        seen = NULL;
    }
    return 0;
}

void hf_downstream_unobserve(struct hf_downstream *downstream, hf_downstream_event_fn fn, void *user) {
    struct hfi_observer *observer = downstream == NULL ? NULL : first(downstream);
    for (; observer != NULL; observer = atomic_load(&observer->next)) {
        if (observer->fn == fn && observer->user == user)
            atomic_store(&observer->ended, true);
    }
}

static void tell_all(struct hfi_observer *observer, const struct hf_downstream_event *event) {
    for (; observer != NULL; observer = atomic_load(&observer->next)) {
        if (!atomic_load(&observer->ended))
            observer->fn(event, observer->user);
    }
}

void hfi_observers_tell(struct hf_downstream *downstream, const struct hfi_breaker_event *event) {
    bool bad = event->to == HF_BREAKER_OPEN || event->to == HF_BREAKER_ISOLATED;
    struct hf_downstream_event told = {
        .size = sizeof told,
        .downstream = downstream,
        .from = event->from,
        .to = event->to,
        .generation = event->generation,
        .for_ms = !bad                                ? 0
                  : event->until_us == HFI_FOREVER_US ? INT64_MAX
                                                      : hfi_us_to_ms_up(hfi_sub(event->until_us, event->at_us)),
        .trips = event->trips,
        .window_calls = event->window.calls,
        .window_failures = event->window.failures,
        .window_slow = event->window.slow,
        .causes = event->causes,
        .reason = event->reason,
    };
    const struct hf_downstream *parent = hfi_downstream_parent(downstream);
    tell_all(first(downstream), &told);
    if (parent != NULL)
        tell_all(first(parent), &told);
}

void hfi_observers_free(struct hfi_downstream_extra *extra) {
    struct hfi_observer *next, *observer = atomic_load(&extra->observers);
    for (; observer != NULL; observer = next) {
        next = atomic_load(&observer->next);
        hfi_free(observer);
    }
}
