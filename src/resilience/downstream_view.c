/* SPDX-License-Identifier: MIT */
/*
 * A downstream as it is seen: how many attempts it would admit, whether it could be forgotten, its counters and latencies
 * over all shards. Looking must never change anything. Any thread.
 */
#include "resilience/downstream.h"

#include <string.h>

static uint32_t in_flight(struct hf_downstream *downstream) {
    struct hfi_shards_sum sum;
    hfi_shards_sum(&downstream->breaker.shards, &sum);
    return sum.in_flight > 0 ? (uint32_t)sum.in_flight : 0;
}

uint32_t hfi_downstream_allowance(struct hf_downstream *downstream, struct hf_mono now, int64_t *retry_after_ms) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&downstream->breaker, now, &look);
    /* Who goes by this never enters without it: what time alone brings about has to be found out here, a lost probe and
       places that were never given back, or nobody asks ever again. */
    if (look.state == HF_BREAKER_HALF_OPEN) {
        hfi_breaker_tick(&downstream->breaker, now);
        hfi_breaker_look(&downstream->breaker, now, &look);
    }
    if (now.us >= atomic_load_explicit(&downstream->bulkhead.term_end_us, memory_order_relaxed))
        hfi_bulkhead_turn(&downstream->bulkhead, &downstream->breaker.shards, now,
                          hfi_downstream_policy(downstream)->breaker.lease_ms);
    uint32_t used = in_flight(downstream);
    uint32_t max = hfi_bulkhead_max(&downstream->bulkhead);
    uint32_t room = used < max ? max - used : 0;
    uint32_t allowance = look.allowance < room ? look.allowance : room;
    int64_t at_us = look.gate_us, token_us = 0;
    const struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    uint32_t tokens = extra != NULL ? hfi_rate_left(&extra->rate, now, &token_us) : UINT32_MAX;
    if ((look.state == HF_BREAKER_OPEN || look.state == HF_BREAKER_ISOLATED) && look.until_us > at_us)
        at_us = look.until_us;
    int64_t wait_ms = at_us == HFI_FOREVER_US ? INT64_MAX : hfi_us_to_ms_up(hfi_sub(at_us, now.us));
    if (retry_after_ms != NULL)
        *retry_after_ms = allowance > 0 ? hfi_us_to_ms_up(token_us) : wait_ms > 0 ? wait_ms : HFI_FULL_WAIT_MS;
    return allowance < tokens ? allowance : tokens;
}

/*
 * A break that ended a window and a longest break ago, without a call since, says nothing any more: else hosts that died
 * and were given up would fill a registry for ever.
 */
static bool is_stale(const struct hf_downstream *downstream, struct hf_mono now, const struct hfi_breaker_look *look) {
    const struct hf_policy_options *options = &hfi_downstream_policy(downstream)->options;
    int64_t age_us = hfi_add(hfi_ms_to_us(options->breaker_window_ms), hfi_ms_to_us(options->breaker_max_break_ms));
    return look->until_us != HFI_FOREVER_US && hfi_add(look->until_us, age_us) <= now.us;
}

bool hfi_downstream_forgettable(struct hf_downstream *downstream, struct hf_mono now) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&downstream->breaker, now, &look);
    if (look.gate_us > now.us || in_flight(downstream) > 0)
        return false;
    bool closed = look.state == HF_BREAKER_CLOSED || (look.state == HF_BREAKER_RAMP && look.allowance == UINT32_MAX);
    if (closed) /* a ramp that is over is closed with the next call */
        return look.trips == 0 && look.window.calls == 0;
    return look.state != HF_BREAKER_RAMP && is_stale(downstream, now, &look);
}

static int64_t ms_until(struct hf_mono now, int64_t at_us) {
    if (at_us == HFI_FOREVER_US)
        return INT64_MAX;
    return at_us > now.us ? hfi_us_to_ms_up(at_us - now.us) : 0;
}

/* The latencies of all shards together; attempts too short for a coarse clock count as its step. */
static void whole_histogram(struct hf_downstream *downstream, uint64_t attempts, struct hfi_histogram *whole) {
    struct hfi_shard_table *table = atomic_load_explicit(&downstream->breaker.shards.table, memory_order_acquire);
    memset(whole, 0, sizeof *whole);
    hfi_histogram_merge(whole, &downstream->histogram);
    for (int i = 0; table != NULL && i < HFI_THREADS; i++) {
        struct hfi_thread_shard *own = atomic_load_explicit(&table->of[i], memory_order_acquire);
        if (own != NULL)
            hfi_histogram_merge(whole, &own->histogram);
    }
    uint64_t total = hfi_histogram_total(whole);
    if (attempts > total)
        hfi_histogram_add_many(whole, hfi_mono_coarse_step_us(), attempts - total);
}

static void count_up(struct hf_downstream *downstream, struct hf_downstream_view *view) {
    struct hfi_breaker *breaker = &downstream->breaker;
    struct hfi_shards_sum sum;
    view->permits_expired = atomic_load_explicit(&downstream->bulkhead.expired, memory_order_relaxed);
    hfi_shards_sum(&breaker->shards, &sum);
    view->in_flight = sum.in_flight > 0 ? (uint32_t)sum.in_flight : 0;
    view->rejections = sum.rejections;
    view->calls = sum.entered + sum.rejections;
    view->successes = sum.successes;
    view->failures = hfi_breaker_failures(breaker);
    view->neutrals = sum.neutrals;
    view->permits_issued = sum.entered;
    view->permits_returned = sum.entered - view->in_flight - view->permits_expired;
    view->attempts = view->successes + view->failures + view->neutrals - view->permits_expired -
                     atomic_load_explicit(&downstream->given_back, memory_order_relaxed);
}

int64_t hfi_downstream_recent(struct hf_downstream *downstream, struct hf_mono now, uint32_t permille,
                              uint64_t at_least) {
    struct hf_downstream_view counts;
    struct hfi_histogram whole;
    int64_t window_ms = hfi_downstream_policy(downstream)->options.breaker_window_ms;
    struct hfi_downstream_extra *extra = hfi_downstream_need_extra(downstream);
    if (extra == NULL)
        return -1;
    int64_t known_us = hfi_recent_known(&extra->recent, now, window_ms, permille, at_least);
    if (known_us >= 0)
        return known_us; /* every hedged call asks */
    count_up(downstream, &counts);
    whole_histogram(downstream, counts.attempts, &whole);
    return hfi_recent_quantile(&extra->recent, &whole, now, window_ms, permille, at_least);
}

static void view_extra(const struct hfi_downstream_extra *extra, struct hf_downstream_view *view) {
    const struct hfi_faults *faults = extra != NULL ? atomic_load(&extra->faults) : NULL;
    view->faults = faults != NULL ? atomic_load_explicit(&faults->injected, memory_order_relaxed) : 0;
    view->rate_limited = extra != NULL ? atomic_load_explicit(&extra->rate_limited, memory_order_relaxed) : 0;
    hfi_phases_look(extra != NULL ? atomic_load_explicit(&extra->phases, memory_order_acquire) : NULL, view);
}

void hfi_downstream_view(struct hf_downstream *downstream, struct hf_mono now, struct hf_downstream_view *view) {
    struct hfi_breaker_look look;
    uint32_t size = view->size > 0 && view->size < sizeof *view ? view->size : sizeof *view;
    struct hf_downstream_view whole = {.size = sizeof whole};
    struct hfi_histogram latencies;
    hfi_breaker_look(&downstream->breaker, now, &look);
    whole.state = look.state;
    whole.trips = look.trips;
    whole.generation = look.generation;
    if (look.state == HF_BREAKER_OPEN || look.state == HF_BREAKER_ISOLATED)
        whole.open_for_ms = ms_until(now, look.until_us);
    whole.gate_for_ms = ms_until(now, look.gate_us);
    whole.window_calls = look.window.calls;
    whole.window_failures = look.window.failures;
    whole.window_slow = look.window.slow;
    whole.probes_in_flight = look.probes_in_flight;
    whole.retries = hfi_budget_counted(&downstream->budget, HFI_BUDGET_RETRIES);
    whole.retries_refused = hfi_budget_counted(&downstream->budget, HFI_BUDGET_REFUSED);
    whole.hedges = hfi_budget_counted(&downstream->budget, HFI_BUDGET_HEDGES);
    view_extra(hfi_downstream_extra(downstream), &whole);
    count_up(downstream, &whole);
    whole_histogram(downstream, whole.attempts, &latencies);
    whole.p50_us = hfi_histogram_quantile(&latencies, 500);
    whole.p95_us = hfi_histogram_quantile(&latencies, 950);
    whole.p99_us = hfi_histogram_quantile(&latencies, 990);
    memcpy(whole.reason, look.reason, sizeof whole.reason);
    whole.window_causes = look.causes;
    whole.failures_to_trip = look.failures_to_trip;
    memcpy(view, &whole, size);
    view->size = size;
}

bool hfi_downstream_adds_up(struct hf_downstream *downstream) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(downstream, (struct hf_mono){0}, &view);
    uint64_t ended = view.successes + view.failures + view.neutrals;
    return view.calls == ended + view.rejections + view.in_flight &&
           view.permits_issued == view.permits_returned + view.permits_expired + view.in_flight &&
           ended == view.permits_returned + view.permits_expired && view.in_flight <= view.permits_issued;
}
