/* SPDX-License-Identifier: MIT */
/*
 * The breaker from outside: looking at it, forcing it, gating it, and taking up a saved state. Looking must never
 * change anything (B26). Any thread.
 */
#include "resilience/breaker_machine.h"

#include "base/text.h"

void hfi_breaker_gate(struct hfi_breaker *breaker, struct hf_mono until) {
    int64_t seen = atomic_load_explicit(&breaker->gate_us, memory_order_relaxed);
    while (seen < until.us && !atomic_compare_exchange_weak_explicit(&breaker->gate_us, &seen, until.us,
                                                                     memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void isolate_locked(struct hfi_breaker *breaker, struct hf_mono now, int64_t until_us, const char *reason) {
    if (hfi_word_state(hfi_breaker_word(breaker)) != HF_BREAKER_ISOLATED) {
        hfi_breaker_move_locked(breaker, now, HF_BREAKER_ISOLATED, until_us, "isolated", reason);
        return;
    }
    if (hfi_breaker_more_locked(breaker) != NULL)
        hfi_text_copy(breaker->more->reason, sizeof breaker->more->reason, reason);
    atomic_store_explicit(&breaker->until_us, until_us, memory_order_relaxed);
}

static void close_locked(struct hfi_breaker *breaker, struct hf_mono now) {
    breaker->trips = 0;
    atomic_store_explicit(&breaker->gate_us, 0, memory_order_relaxed);
    if (hfi_word_state(hfi_breaker_word(breaker)) != HF_BREAKER_CLOSED)
        hfi_breaker_move_locked(breaker, now, HF_BREAKER_CLOSED, 0, "closed", "closed");
    hfi_breaker_forget_locked(breaker);
    if (breaker->more != NULL)
        breaker->more->healthy_since_us = now.us;
}

void hfi_breaker_isolate(struct hfi_breaker *breaker, struct hf_mono now, int64_t for_ms, const char *reason) {
    hfi_lock(&breaker->lock);
    isolate_locked(breaker, now, for_ms > 0 ? hfi_mono_after_ms(now, for_ms).us : HFI_FOREVER_US, reason);
    hfi_breaker_unlock(breaker);
}

void hfi_breaker_close(struct hfi_breaker *breaker, struct hf_mono now) {
    hfi_lock(&breaker->lock);
    close_locked(breaker, now);
    hfi_breaker_unlock(breaker);
}

static void reopen_locked(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_saved *saved) {
    int64_t latest_us = hfi_mono_after_ms(now, hfi_breaker_rules(breaker)->max_break_ms).us;
    uint32_t trips = saved->trips > 0 ? saved->trips : 1;
    breaker->trips = trips > breaker->trips ? trips : breaker->trips;
    if (hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_OPEN)
        return;
    hfi_breaker_move_locked(breaker, now, HF_BREAKER_OPEN, saved->until_us < latest_us ? saved->until_us : latest_us,
                            "restored", saved->reason);
}

void hfi_breaker_restore(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_saved *saved) {
    hfi_lock(&breaker->lock);
    if (saved->state == HF_BREAKER_ISOLATED)
        isolate_locked(breaker, now, saved->until_us, saved->reason);
    else if (saved->state == HF_BREAKER_OPEN)
        reopen_locked(breaker, now, saved);
    else if (hfi_word_state(hfi_breaker_word(breaker)) != HF_BREAKER_CLOSED)
        close_locked(breaker, now);
    hfi_breaker_unlock(breaker);
}

static void ramp_locked(struct hfi_breaker *breaker, struct hf_mono now, struct hf_mono from) {
    int64_t ramp_ms = hfi_breaker_rules(breaker)->ramp_ms;
    enum hf_breaker_state state = hfi_word_state(hfi_breaker_word(breaker));
    if (state == HF_BREAKER_OPEN)
        hfi_breaker_move_locked(breaker, now, HF_BREAKER_HALF_OPEN, now.us, "break_over", "break_over");
    else if (state != HF_BREAKER_HALF_OPEN)
        return;
    bool over = hfi_sub(now.us, from.us) >= hfi_ms_to_us(ramp_ms);
    hfi_breaker_move_locked(breaker, now, over ? HF_BREAKER_CLOSED : HF_BREAKER_RAMP, 0, "probes_passed",
                            "probes_passed");
    if (!over && from.us < now.us)
        breaker->since_us = from.us;
}

void hfi_breaker_ramp(struct hfi_breaker *breaker, struct hf_mono now, struct hf_mono from) {
    hfi_lock(&breaker->lock);
    ramp_locked(breaker, now, from);
    hfi_breaker_unlock(breaker);
}

static uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

/* How many enters a half-open breaker has left. An enter counts the lost probes first, and so does this: they may open it
   again, or be the last that the ramp waits for. */
static uint32_t probes_left(struct hfi_breaker *breaker, struct hf_mono now) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    uint32_t lost = 0;
    for (uint32_t i = 0; i < hfi_breaker_slots(breaker); i++) {
        int64_t lease_us = hfi_breaker_probe_at(breaker, i)->lease_us;
        lost += lease_us != 0 && now.us > lease_us;
    }
    uint32_t counted = breaker->probes_passed + breaker->probes_failed;
    if (breaker->probes_failed + lost > rules->tolerated)
        return 0;
    if (lost > 0 && counted + lost >= rules->probes)
        return rules->ramp_ms > 0 ? hfi_breaker_ramp_limit(breaker, (struct hf_mono){breaker->since_us}) : UINT32_MAX;
    return less(rules->probes, hfi_breaker_probes_in_flight(breaker) + counted);
}

static uint32_t allowance(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_look *look) {
    if (now.us < look->gate_us)
        return 0;
    switch (look->state) {
    case HF_BREAKER_CLOSED:
        return UINT32_MAX;
    case HF_BREAKER_OPEN:
    case HF_BREAKER_ISOLATED:
        return look->until_us != HFI_FOREVER_US && now.us >= look->until_us ? hfi_breaker_rules(breaker)->probes : 0;
    case HF_BREAKER_HALF_OPEN:
        return probes_left(breaker, now);
    case HF_BREAKER_RAMP: {
        if (hfi_sub(now.us, breaker->since_us) >= hfi_ms_to_us(hfi_breaker_rules(breaker)->ramp_ms))
            return UINT32_MAX;
        uint32_t limit = hfi_breaker_ramp_limit(breaker, now);
        uint32_t by_flight = less(limit, breaker->ramp_in_flight);
        uint32_t by_starts = less(limit, hfi_breaker_ramp_starts(breaker, now));
        return by_flight < by_starts ? by_flight : by_starts;
    }
    }
    return 0;
}

void hfi_breaker_look(struct hfi_breaker *breaker, struct hf_mono now, struct hfi_breaker_look *look) {
    hfi_lock(&breaker->lock);
    uint64_t word = hfi_breaker_word(breaker);
    look->state = hfi_word_state(word);
    look->generation = hfi_word_generation(word);
    look->until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
    look->gate_us = atomic_load_explicit(&breaker->gate_us, memory_order_relaxed);
    bool closed = look->state == HF_BREAKER_CLOSED || look->state == HF_BREAKER_RAMP;
    look->trips = closed && hfi_breaker_is_healthy(breaker, now) ? 0 : breaker->trips;
    look->probes_in_flight = look->state == HF_BREAKER_HALF_OPEN ? hfi_breaker_probes_in_flight(breaker) : 0;
    hfi_breaker_sum_locked(breaker, now, &look->window, &look->causes);
    look->failures_to_trip = closed ? hfi_breaker_failures_to_trip(breaker, now) : 0;
    bool told = breaker->more != NULL && breaker->more->reason[0] != '\0';
    hfi_text_copy(look->reason, sizeof look->reason,
                  told ? breaker->more->reason : hfi_breaker_why(breaker));
    look->allowance = allowance(breaker, now, look);
    look->probe_ready = look->allowance > 0 && !closed;
    bool ramps = look->state == HF_BREAKER_RAMP;
    look->ramp_from_us = ramps ? breaker->since_us : 0;
    look->ramp_limit = ramps ? hfi_breaker_ramp_limit(breaker, now) : 0;
    hfi_unlock(&breaker->lock);
}
