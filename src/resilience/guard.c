/* SPDX-License-Identifier: MIT */
/*
 * The pair around one attempt of any function, and the controls of a downstream, with the clock read for callers that
 * have no scheduler. Must never wait: the pipeline that does is guard_run.c. Any thread.
 */
#include "holdfast/guard.h"

#include "resilience/downstream.h"

/* The clock that the policy asks for. It may lag by a little, which makes no break end early; nor does the quick
   one, for whoever is not plainly admitted is judged by the clock itself. */
static struct hf_mono now_for(struct hf_downstream *downstream) {
    bool coarse = atomic_load_explicit(&downstream->coarse, memory_order_relaxed);
    if (coarse || !hfi_breaker_is_closed(&downstream->breaker))
        return hfi_mono_now_coarse();
    return hfi_mono_now_quick();
}

int hf_guard_enter(struct hf_downstream *downstream, struct hf_permit *permit, struct hf_outcome *rejection) {
    if (downstream == NULL || permit == NULL)
        return HF_EINVAL;
    return hfi_downstream_enter(downstream, now_for(downstream), permit, rejection);
}

int hf_guard_leave(struct hf_downstream *downstream, struct hf_permit *permit, enum hf_verdict verdict) {
    if (downstream == NULL || permit == NULL)
        return HF_EINVAL;
    bool coarse = atomic_load_explicit(&downstream->coarse, memory_order_relaxed);
    return hfi_downstream_leave_as(downstream, coarse ? hfi_mono_now_coarse() : hfi_mono_now_quick(), permit, verdict);
}

void hf_downstream_look(const struct hf_downstream *downstream, struct hf_downstream_view *view) {
    /* The lock inside is taken and given back: to the caller nothing changes. */
    hfi_downstream_view((struct hf_downstream *)(uintptr_t)downstream, hfi_mono_now(), view);
}

int hf_downstream_reload(struct hf_downstream *downstream, struct hf_policy *policy) {
    if (downstream == NULL || policy == NULL)
        return HF_EINVAL;
    return hfi_downstream_reload(downstream, hfi_mono_now(), policy);
}

int hf_downstream_isolate(struct hf_downstream *downstream, int64_t for_ms, const char *reason) {
    if (downstream == NULL || for_ms < 0 || reason == NULL || reason[0] == '\0')
        return HF_EINVAL;
    hfi_breaker_isolate(&downstream->breaker, hfi_mono_now(), for_ms, reason);
    return 0;
}

int hf_downstream_close(struct hf_downstream *downstream) {
    if (downstream == NULL)
        return HF_EINVAL;
    hfi_breaker_close(&downstream->breaker, hfi_mono_now());
    return 0;
}
