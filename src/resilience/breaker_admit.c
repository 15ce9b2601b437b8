/* SPDX-License-Identifier: MIT */
/*
 * Who may pass the breaker, and what a report means. While closed it takes no lock: one atomic word is read, and a
 * sample goes to the window. Must never count a refusal, a neutral end or a report of an older generation as a sample.
 * Any thread.
 */
#include "resilience/breaker_machine.h"

#include "holdfast/error.h"

#define ASK_AGAIN_MS 100      /* a ramp's next place is never far */
#define ASK_PROBES_MS 1000    /* probes come back when the peer answers */
#define ASK_ISOLATED_MS 60000 /* a person has to end it */
#define RUN_GAP_MS 3600000    /* failures further apart are not "consecutive" (W7), yet one a minute is (W8) */

static int64_t wait_ms(struct hf_mono now, int64_t until_us) {
    int64_t ms = hfi_us_to_ms_up(hfi_sub(until_us, now.us));
    return ms > 0 ? ms : 1;
}

static void grant(const struct hfi_breaker *breaker, struct hf_mono now, uint64_t generation, uint32_t slot,
                  struct hf_permit *permit) {
    permit->generation = generation;
    permit->started_us = now.us;
    permit->lease_us = hfi_mono_after_ms(now, breaker->rules.lease_ms).us;
    permit->slot = slot;
    permit->state = HFI_PERMIT_HELD;
}

/* Exactly `probes` in flight or counted: neither a crowd (B7) nor a neutral end makes it more. */
static bool take_probe(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    uint32_t used = hfi_breaker_probes_in_flight(breaker) + breaker->probes_passed + breaker->probes_failed;
    if (used >= breaker->rules.probes)
        return false;
    uint32_t slot = 0;
    while (breaker->probe_lease_us[slot] != 0)
        slot++;
    breaker->next_stamp = (breaker->next_stamp + 1) & 0xffffff;
    breaker->probe_stamp[slot] = breaker->next_stamp;
    grant(breaker, now, hfi_word_generation(hfi_breaker_word(breaker)), breaker->next_stamp << 8 | (slot + 1), permit);
    breaker->probe_lease_us[slot] = permit->lease_us;
    return true;
}

static bool take_ramp(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    uint32_t limit = hfi_breaker_ramp_limit(breaker, now);
    if (breaker->ramp_in_flight >= limit || hfi_breaker_ramp_starts(breaker, now) >= limit)
        return false;
    int64_t slice = hfi_breaker_ramp_slice(breaker, now);
    for (int64_t passed = breaker->ramp_slice + 1, steps = 0; passed <= slice && steps < HFI_BREAKER_RAMP_SLICES;
         passed++, steps++)
        breaker->ramp_starts[passed % HFI_BREAKER_RAMP_SLICES] = 0;
    breaker->ramp_slice = slice;
    breaker->ramp_starts[slice % HFI_BREAKER_RAMP_SLICES]++;
    breaker->ramp_in_flight++;
    grant(breaker, now, hfi_word_generation(hfi_breaker_word(breaker)), HFI_SLOT_RAMP, permit);
    return true;
}

static enum hfi_admission enter_locked(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                                       int64_t *retry_after_ms) {
    hfi_breaker_tick_locked(breaker, now);
    int64_t until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
    int64_t gate_us = atomic_load_explicit(&breaker->gate_us, memory_order_relaxed);
    uint64_t word = hfi_breaker_word(breaker);
    enum hf_breaker_state state = hfi_word_state(word);
    if (state == HF_BREAKER_OPEN) {
        *retry_after_ms = wait_ms(now, until_us > gate_us ? until_us : gate_us);
        return HFI_REFUSED_OPEN;
    }
    if (state == HF_BREAKER_ISOLATED) {
        *retry_after_ms = until_us == HFI_FOREVER_US ? ASK_ISOLATED_MS : wait_ms(now, until_us);
        return HFI_REFUSED_ISOLATED;
    }
    if (now.us < gate_us) {
        *retry_after_ms = wait_ms(now, gate_us);
        return HFI_REFUSED_GATE;
    }
    if (state == HF_BREAKER_HALF_OPEN) {
        *retry_after_ms = ASK_PROBES_MS;
        return take_probe(breaker, now, permit) ? HFI_ADMITTED : HFI_REFUSED_HALF_OPEN;
    }
    if (state == HF_BREAKER_RAMP) {
        *retry_after_ms = ASK_AGAIN_MS;
        return take_ramp(breaker, now, permit) ? HFI_ADMITTED : HFI_REFUSED_RAMP;
    }
    grant(breaker, now, hfi_word_generation(word), HFI_SLOT_NONE, permit);
    return HFI_ADMITTED;
}

enum hfi_admission hfi_breaker_enter(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                                     int64_t *retry_after_ms) {
    uint64_t word = hfi_breaker_word(breaker);
    int64_t gate_us = atomic_load_explicit(&breaker->gate_us, memory_order_relaxed);
    permit->state = 0;
    if (hfi_word_state(word) == HF_BREAKER_CLOSED && now.us >= gate_us) {
        grant(breaker, now, hfi_word_generation(word), HFI_SLOT_NONE, permit);
        return HFI_ADMITTED;
    }
    if (hfi_word_state(word) == HF_BREAKER_OPEN) {
        int64_t until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
        if (now.us < until_us) { /* refusing takes no lock and never moves `until` (B15) */
            *retry_after_ms = wait_ms(now, until_us > gate_us ? until_us : gate_us);
            return HFI_REFUSED_OPEN;
        }
    }
    pthread_mutex_lock(&breaker->lock);
    enum hfi_admission admission = enter_locked(breaker, now, permit, retry_after_ms);
    hfi_breaker_unlock(breaker);
    return admission;
}

bool hfi_breaker_isolated(struct hfi_breaker *breaker, struct hf_mono now, int64_t *retry_after_ms) {
    if (hfi_word_state(hfi_breaker_word(breaker)) != HF_BREAKER_ISOLATED)
        return false;
    hfi_breaker_tick(breaker, now);
    int64_t until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
    *retry_after_ms = until_us == HFI_FOREVER_US ? ASK_ISOLATED_MS : wait_ms(now, until_us);
    return hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_ISOLATED;
}

/* The probe slot a permit still holds, or -1. */
static int slot_locked(const struct hfi_breaker *breaker, const struct hf_permit *permit) {
    uint32_t slot = permit->slot & 0xff;
    if (permit->slot == HFI_SLOT_NONE || permit->slot == HFI_SLOT_RAMP || slot > HFI_BREAKER_PROBES_MAX)
        return -1;
    slot--;
    bool held = breaker->probe_lease_us[slot] != 0 && breaker->probe_stamp[slot] == permit->slot >> 8;
    return held ? (int)slot : -1;
}

static bool is_current(const struct hfi_breaker *breaker, const struct hf_permit *permit) {
    return hfi_word_generation(hfi_breaker_word(breaker)) == permit->generation;
}

bool hfi_breaker_begin(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    if (permit->state != HFI_PERMIT_HELD || !is_current(breaker, permit) || now.us > permit->lease_us)
        return false;
    int64_t lease_us = hfi_mono_after_ms(now, breaker->rules.lease_ms).us;
    if (permit->slot != HFI_SLOT_NONE && permit->slot != HFI_SLOT_RAMP) {
        pthread_mutex_lock(&breaker->lock);
        int slot = is_current(breaker, permit) ? slot_locked(breaker, permit) : -1;
        if (slot >= 0)
            breaker->probe_lease_us[slot] = lease_us;
        hfi_breaker_unlock(breaker);
        if (slot < 0)
            return false;
    }
    permit->started_us = now.us;
    permit->lease_us = lease_us;
    return true;
}

/* The length of the unbroken run of failures that this one ends. */
static uint32_t run_length(struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t gap_ms = breaker->rules.window_ms > RUN_GAP_MS / 10 ? hfi_mul(breaker->rules.window_ms, 10) : RUN_GAP_MS;
    int64_t last_us = atomic_exchange_explicit(&breaker->run_us, now.us, memory_order_relaxed);
    if (hfi_sub(now.us, last_us) > hfi_ms_to_us(gap_ms)) {
        atomic_store_explicit(&breaker->run, 1, memory_order_relaxed);
        return 1;
    }
    return atomic_fetch_add_explicit(&breaker->run, 1, memory_order_relaxed) + 1;
}

static bool reaches(uint64_t part, uint32_t permille, uint64_t calls) {
    return part * 1000 >= (uint64_t)permille * calls;
}

/* One completed attempt while closed or ramping. The reason to trip, or NULL. */
static const char *sample(struct hfi_breaker *breaker, struct hf_mono now, bool failure, bool slow) {
    const struct hfi_breaker_rules *rules = &breaker->rules;
    hfi_window_add(&breaker->window, now, failure, slow);
    if (rules->consecutive > 0) {
        if (failure && run_length(breaker, now) >= rules->consecutive)
            return "consecutive";
        if (!failure && atomic_load_explicit(&breaker->run, memory_order_relaxed) != 0)
            atomic_store_explicit(&breaker->run, 0, memory_order_relaxed);
    }
    if (!failure && !slow)
        return NULL;
    struct hfi_window_sum sum = hfi_window_read(&breaker->window, now);
    if (sum.calls < rules->min_calls)
        return NULL;
    if (failure && reaches(sum.failures, rules->ratio_permille, sum.calls))
        return "ratio";
    return slow && reaches(sum.slow, rules->slow_permille, sum.calls) ? "slow" : NULL;
}

static bool is_slow(const struct hfi_breaker *breaker, struct hf_mono now, const struct hf_permit *permit) {
    return breaker->rules.slow_permille > 0 &&
           hfi_sub(now.us, permit->started_us) > hfi_ms_to_us(breaker->rules.slow_after_ms);
}

static void leave_probe_locked(struct hfi_breaker *breaker, struct hf_mono now, const struct hf_permit *permit,
                               enum hf_verdict verdict, bool life) {
    int slot = slot_locked(breaker, permit);
    if (slot < 0)
        return; /* lapsed: counted as lost already */
    breaker->probe_lease_us[slot] = 0;
    if (verdict == HF_VERDICT_NEUTRAL) {
        breaker->neutral_run += life ? 1 : 0;
    } else if (verdict == HF_VERDICT_FAILURE || is_slow(breaker, now, permit)) {
        breaker->probes_failed++;
        breaker->neutral_run = 0;
    } else {
        breaker->probes_passed++;
    }
    hfi_breaker_judge_locked(breaker, now, "probe_failed");
}

static void trip(struct hfi_breaker *breaker, struct hf_mono now, const struct hf_permit *permit, const char *reason) {
    pthread_mutex_lock(&breaker->lock);
    enum hf_breaker_state state = hfi_word_state(hfi_breaker_word(breaker));
    if (is_current(breaker, permit) && (state == HF_BREAKER_CLOSED || state == HF_BREAKER_RAMP))
        hfi_breaker_trip_locked(breaker, now, reason); /* the others that saw it too find it open (B10) */
    hfi_breaker_unlock(breaker);
}

int hfi_breaker_leave(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                      enum hf_verdict verdict, bool life) {
    if (permit->state != HFI_PERMIT_HELD)
        return HF_ESTATE;
    permit->state = HFI_PERMIT_REPORTED;
    if (permit->slot != HFI_SLOT_NONE) {
        pthread_mutex_lock(&breaker->lock);
        hfi_breaker_tick_locked(breaker, now);
        bool current = is_current(breaker, permit);
        bool probe = permit->slot != HFI_SLOT_RAMP;
        if (current && probe)
            leave_probe_locked(breaker, now, permit, verdict, life);
        else if (current && breaker->ramp_in_flight > 0)
            breaker->ramp_in_flight--;
        hfi_breaker_unlock(breaker);
        if (probe)
            return 0;
    }
    /* An older generation is telemetry only (B6, B8); neutral decides nothing (B9, B28). */
    if (verdict == HF_VERDICT_NEUTRAL || !is_current(breaker, permit))
        return 0;
    const char *reason = sample(breaker, now, verdict == HF_VERDICT_FAILURE, is_slow(breaker, now, permit));
    if (reason != NULL)
        trip(breaker, now, permit, reason);
    return 0;
}

void hfi_breaker_drop(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    (void)hfi_breaker_leave(breaker, now, permit, HF_VERDICT_NEUTRAL, false);
}
