/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_EVENT_H
#define HOLDFAST_EVENT_H

#include <stdint.h>

#include "guard.h"

HF_BEGIN

/* One change of a breaker's state. Everything in it lives during the call only. */
struct hf_downstream_event {
    uint32_t size; /* what the library fills */
    struct hf_downstream *downstream; /* whose: see hf_downstream_name and hf_downstream_host */
    enum hf_breaker_state from, to;
    uint64_t generation;  /* of `to` */
    int64_t for_ms;       /* of a break or an isolation: its length; INT64_MAX: until closed by hand; 0 otherwise */
    uint32_t trips;       /* repeated ones since the last healthy window */
    uint64_t window_calls, window_failures, window_slow; /* as they were when it decided */
    struct hf_causes causes; /* of the window's failures and slow calls, then */
    const char *reason;   /* `ratio: …`, `consecutive: …`, `slow: …`, `probe_failed`, `probe_lost`, `break_over`,
                             `probes_passed`, `ramp_over`, `isolated: …`, `isolation_over`, `closed`, or what was restored */
};

/*
 * Runs on the thread that made the change, which may be any that calls the downstream, after all locks: it may call
 * everything of holdfast, this downstream's functions included, but must not wait for another call of it, nor call
 * hf_client_reload or hf_runner_reload: a reload tells what it changed before it returns. The changes of one downstream
 * come one at a time and in their order; one that is made in here, or meanwhile by another thread, is told when this has
 * returned. While an observer is slower than the changes, the two newest become one (at most 4 wait).
 */
typedef void (*hf_downstream_event_fn)(const struct hf_downstream_event *event, void *user);

/*
 * Tells `fn` of every change from now on; any number of observers, in the order of their coming. That of a `per_host`
 * downstream hears of all its hosts too (those of different hosts may come at once). Any thread, also in an observer.
 * Errors: HF_EINVAL, HF_ENOMEM. Since 0.1.
 */
HF_API int hf_downstream_observe(struct hf_downstream *downstream, hf_downstream_event_fn fn, void *user);
/* No more calls of `fn` with `user` begin; one may be under way on another thread. Unknown ones are a no-op. Since 0.1. */
HF_API void hf_downstream_unobserve(struct hf_downstream *downstream, hf_downstream_event_fn fn, void *user);

HF_END

#endif
