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

static int64_t wait_ms(struct hf_mono now, int64_t until_us) {
    int64_t ms = hfi_us_to_ms_up(hfi_sub(until_us, now.us));
    return ms > 0 ? ms : 1;
}

static void grant(const struct hfi_breaker *breaker, struct hf_mono now, uint64_t generation, uint32_t slot,
                  struct hf_permit *permit) {
    permit->generation = generation;
    permit->started_us = now.us;
    permit->lease_us = hfi_mono_after_ms(now, hfi_breaker_rules(breaker)->lease_ms).us;
    permit->slot = slot;
    permit->state = HFI_PERMIT_HELD;
}

/* Exactly `probes` in flight or counted: neither a crowd (B7) nor a neutral end makes it more. */
static bool take_probe(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    uint32_t used = hfi_breaker_probes_in_flight(breaker) + breaker->probes_passed + breaker->probes_failed;
    uint32_t slot = 0;
    while (slot < hfi_breaker_slots(breaker) && hfi_breaker_probe_at(breaker, slot)->lease_us != 0)
        slot++;
    if (used >= hfi_breaker_rules(breaker)->probes || slot == hfi_breaker_slots(breaker))
        return false;
    struct hfi_breaker_probe *probe = hfi_breaker_probe_at(breaker, slot);
    breaker->next_stamp = (breaker->next_stamp + 1) & 0xffffff;
    probe->stamp = breaker->next_stamp;
    grant(breaker, now, hfi_word_generation(hfi_breaker_word(breaker)), breaker->next_stamp << 8 | (slot + 1), permit);
    probe->lease_us = permit->lease_us;
    return true;
}

static void count_start(struct hfi_breaker *breaker, struct hf_mono now) {
    struct hfi_breaker_more *more = breaker->more;
    if (more == NULL)
        return;
    int64_t slice = hfi_breaker_ramp_slice(breaker, now);
    for (int64_t passed = more->ramp_slice + 1, steps = 0; passed <= slice && steps < HFI_BREAKER_RAMP_SLICES;
         passed++, steps++)
        more->ramp_starts[passed % HFI_BREAKER_RAMP_SLICES] = 0;
    more->ramp_slice = slice;
    more->ramp_starts[slice % HFI_BREAKER_RAMP_SLICES]++;
}

static bool take_ramp(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    uint32_t limit = hfi_breaker_ramp_limit(breaker, now);
    if (breaker->ramp_in_flight >= limit || hfi_breaker_ramp_starts(breaker, now) >= limit)
        return false;
    count_start(breaker, now);
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
    permit->state = 0;
    if (hfi_breaker_enter_closed(breaker, now, permit))
        return HFI_ADMITTED;
    if (hfi_breaker_is_open(breaker, now)) { /* refusing takes no lock and never moves `until` (B15) */
        int64_t until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
        int64_t gate_us = atomic_load_explicit(&breaker->gate_us, memory_order_relaxed);
        *retry_after_ms = wait_ms(now, until_us > gate_us ? until_us : gate_us);
        return HFI_REFUSED_OPEN;
    }
    hfi_lock(&breaker->lock);
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

/* The probe slot a permit still holds, or NULL. */
static struct hfi_breaker_probe *probe_locked(struct hfi_breaker *breaker, const struct hf_permit *permit) {
    uint32_t slot = permit->slot & 0xff;
    if (permit->slot == HFI_SLOT_NONE || permit->slot == HFI_SLOT_RAMP || slot > hfi_breaker_slots(breaker))
        return NULL;
    struct hfi_breaker_probe *probe = hfi_breaker_probe_at(breaker, slot - 1);
    return probe->lease_us != 0 && probe->stamp == permit->slot >> 8 ? probe : NULL;
}

static bool is_current(const struct hfi_breaker *breaker, const struct hf_permit *permit) {
    return hfi_word_generation(hfi_breaker_word(breaker)) == permit->generation;
}

static void leave_probe_locked(struct hfi_breaker *breaker, struct hf_mono now, const struct hf_permit *permit,
                               enum hf_verdict verdict, enum hf_cause cause, bool life) {
    struct hfi_breaker_probe *probe = probe_locked(breaker, permit);
    if (probe == NULL)
        return; /* lapsed: counted as lost already */
    bool slow = verdict == HF_VERDICT_SUCCESS && hfi_breaker_is_slow(breaker, now, permit);
    probe->lease_us = 0;
    if (verdict == HF_VERDICT_NEUTRAL) {
        breaker->neutral_run = (uint16_t)(breaker->neutral_run + (life ? 1 : 0));
    } else if (verdict == HF_VERDICT_FAILURE || slow) {
        breaker->probes_failed++;
        breaker->neutral_run = 0;
    } else {
        breaker->probes_passed++;
    }
    hfi_breaker_judge_locked(breaker, now, "probe_failed", slow ? HF_CAUSE_SLOW : cause);
}

/* A report that is no sample: of a probe, of an older generation, or neutral. */
static void count_stray_locked(struct hfi_breaker *breaker, enum hf_verdict verdict) {
    if (verdict == HF_VERDICT_NEUTRAL)
        HFI_SHARD_ADD(hfi_shards_mine(&breaker->shards), neutrals, 1);
    else
        hfi_breaker_stray_locked(breaker, verdict == HF_VERDICT_FAILURE);
}

static void leave_locked(struct hfi_breaker *breaker, struct hf_mono now, const struct hf_permit *permit,
                         enum hf_verdict verdict, enum hf_cause cause, bool life) {
    if (permit->slot != HFI_SLOT_NONE)
        hfi_breaker_tick_locked(breaker, now);
    bool current = is_current(breaker, permit); /* an older generation is telemetry only (B6, B8) */
    bool ramp = permit->slot == HFI_SLOT_RAMP;
    if (current && ramp && breaker->ramp_in_flight > 0)
        breaker->ramp_in_flight--;
    if (current && (permit->slot == HFI_SLOT_NONE || ramp) && verdict != HF_VERDICT_NEUTRAL) {
        bool slow = hfi_breaker_is_slow(breaker, now, permit);
        hfi_breaker_sample_locked(breaker, now, verdict == HF_VERDICT_FAILURE, slow, cause);
        return;
    }
    count_stray_locked(breaker, verdict);
    if (current && permit->slot != HFI_SLOT_NONE && !ramp)
        leave_probe_locked(breaker, now, permit, verdict, cause, life);
}

int hfi_breaker_leave(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit,
                      enum hf_verdict verdict, enum hf_cause cause, bool life) {
    if (permit->state != HFI_PERMIT_HELD)
        return HF_ESTATE;
    if (hfi_breaker_leave_closed(breaker, now, permit, verdict, hfi_shards_mine(&breaker->shards)))
        return 0;
    permit->state = HFI_PERMIT_REPORTED;
    hfi_lock(&breaker->lock);
    leave_locked(breaker, now, permit, verdict, cause, life);
    hfi_breaker_unlock(breaker);
    return 0;
}

/* A start of the ramp that was none: the next may have it, or those who are refused elsewhere use up the ramp. */
static void uncount_start(struct hfi_breaker *breaker, struct hf_mono started) {
    struct hfi_breaker_more *more = breaker->more;
    if (more == NULL)
        return;
    int64_t slice = hfi_sub(started.us, breaker->since_us) / HFI_RAMP_SLICE_US;
    slice = slice > 0 ? slice : 0;
    if (more->ramp_slice - slice >= HFI_BREAKER_RAMP_SLICES)
        return; /* no longer counted */
    while (slice < more->ramp_slice && more->ramp_starts[slice % HFI_BREAKER_RAMP_SLICES] == 0)
        slice++; /* its clock was behind: counted in a later one */
    more->ramp_starts[slice % HFI_BREAKER_RAMP_SLICES] -= more->ramp_starts[slice % HFI_BREAKER_RAMP_SLICES] > 0;
}

void hfi_breaker_drop(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    if (permit->state == HFI_PERMIT_HELD && permit->slot == HFI_SLOT_RAMP) {
        hfi_lock(&breaker->lock);
        if (is_current(breaker, permit))
            uncount_start(breaker, (struct hf_mono){permit->started_us});
        hfi_unlock(&breaker->lock);
    }
    (void)hfi_breaker_leave(breaker, now, permit, HF_VERDICT_NEUTRAL, HF_CAUSE_OTHER, false);
}

void hfi_breaker_forgo(struct hfi_breaker *breaker, struct hf_mono now, struct hf_permit *permit) {
    permit->state = 0;
    if (permit->slot == HFI_SLOT_NONE)
        return;
    hfi_lock(&breaker->lock);
    hfi_breaker_tick_locked(breaker, now);
    if (is_current(breaker, permit) && permit->slot == HFI_SLOT_RAMP) {
        breaker->ramp_in_flight -= breaker->ramp_in_flight > 0 ? 1 : 0;
        uncount_start(breaker, (struct hf_mono){permit->started_us});
    } else if (is_current(breaker, permit)) {
        leave_probe_locked(breaker, now, permit, HF_VERDICT_NEUTRAL, HF_CAUSE_OTHER, false);
    }
    hfi_breaker_unlock(breaker);
}

uint64_t hfi_breaker_failures(struct hfi_breaker *breaker) {
    hfi_lock(&breaker->lock);
    uint64_t failures = breaker->failures;
    hfi_unlock(&breaker->lock);
    return failures;
}
