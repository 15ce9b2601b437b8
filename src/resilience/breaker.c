/* SPDX-License-Identifier: MIT */
/*
 * The breaker's machine: the one function that changes its state, what time alone brings about, and the telling of it.
 * Must never call out while it holds the lock, never read a clock, never recurse (B14). Any thread.
 */
#include "resilience/breaker_machine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define RAMP_SLICE_US 10000
#define NEUTRAL_FACTOR 10 /* so many complete neutral answers per probe are evidence of life */

#define BIT(state) (1u << HF_BREAKER_##state)
/* From the state of the row to those named. Open never goes to open: a running break is never moved (B10, B15). */
static const unsigned legal[] = {
    [HF_BREAKER_CLOSED] = BIT(OPEN) | BIT(ISOLATED),
    [HF_BREAKER_OPEN] = BIT(HALF_OPEN) | BIT(ISOLATED) | BIT(CLOSED),
    [HF_BREAKER_HALF_OPEN] = BIT(OPEN) | BIT(RAMP) | BIT(CLOSED) | BIT(ISOLATED),
    [HF_BREAKER_RAMP] = BIT(CLOSED) | BIT(OPEN) | BIT(ISOLATED),
    [HF_BREAKER_ISOLATED] = BIT(HALF_OPEN) | BIT(CLOSED) | BIT(OPEN),
};

const char *hf_breaker_state_name(enum hf_breaker_state state) {
    switch (state) {
#define NAME_CASE(name, text)                                                                                          \
    case HF_BREAKER_##name:                                                                                            \
        return text;
        HF_BREAKER_STATE_MAP(NAME_CASE)
#undef NAME_CASE
    }
    return "unknown";
}

void hfi_breaker_init(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules, uint64_t seed,
                      hfi_breaker_fn on_change, void *user) {
    memset(breaker, 0, sizeof *breaker);
    atomic_init(&breaker->word, (uint64_t)1 << 8 | HF_BREAKER_CLOSED);
    breaker->rules = *rules;
    if (breaker->rules.probes > HFI_BREAKER_PROBES_MAX)
        breaker->rules.probes = HFI_BREAKER_PROBES_MAX;
    hfi_window_init(&breaker->window, rules->window_ms);
    hfi_random_seed(&breaker->random, seed);
    pthread_mutex_init(&breaker->lock, NULL);
    breaker->on_change = on_change;
    breaker->user = user;
}

void hfi_breaker_end(struct hfi_breaker *breaker) {
    pthread_mutex_destroy(&breaker->lock);
}

static void remember(struct hfi_breaker *breaker, const struct hfi_breaker_event *event) {
    if (breaker->on_change == NULL)
        return;
    if (breaker->pending_count == HFI_BREAKER_PENDING) {
        /* The observer is too slow: the last two changes become one, so that what it hears still joins up. */
        struct hfi_breaker_event *last = &breaker->pending[HFI_BREAKER_PENDING - 1];
        enum hf_breaker_state from = last->from;
        *last = *event;
        last->from = from;
        return;
    }
    breaker->pending[breaker->pending_count++] = *event;
}

static void forget_counts(struct hfi_breaker *breaker) {
    hfi_window_clear(&breaker->window);
    atomic_store_explicit(&breaker->run, 0, memory_order_relaxed);
}

/* What a state starts with. */
static void prepare(struct hfi_breaker *breaker, struct hf_mono now, enum hf_breaker_state from,
                    enum hf_breaker_state to) {
    switch (to) {
    case HF_BREAKER_HALF_OPEN:
        memset(breaker->probe_lease_us, 0, sizeof breaker->probe_lease_us);
        breaker->probes_passed = breaker->probes_failed = breaker->neutral_run = 0;
        break;
    case HF_BREAKER_RAMP:
        forget_counts(breaker); /* B24 */
        breaker->healthy_since_us = now.us;
        breaker->ramp_from_us = now.us;
        breaker->ramp_slice = 0;
        breaker->ramp_in_flight = 0;
        memset(breaker->ramp_starts, 0, sizeof breaker->ramp_starts);
        break;
    case HF_BREAKER_CLOSED:
        if (from == HF_BREAKER_RAMP)
            break; /* its counts go on */
        forget_counts(breaker);
        breaker->healthy_since_us = now.us;
        break;
    case HF_BREAKER_OPEN:
    case HF_BREAKER_ISOLATED:
        break;
    }
}

void hfi_breaker_move_locked(struct hfi_breaker *breaker, struct hf_mono now, enum hf_breaker_state to,
                             int64_t until_us, const char *reason) {
    uint64_t word = atomic_load_explicit(&breaker->word, memory_order_relaxed);
    enum hf_breaker_state from = hfi_word_state(word);
    assert(legal[from] & 1u << to);
    if (!(legal[from] & 1u << to))
        return;
    bool ramp_over = hfi_sub(now.us, breaker->ramp_from_us) >= hfi_ms_to_us(breaker->rules.ramp_ms);
    bool same_work =
        from == HF_BREAKER_RAMP && to == HF_BREAKER_CLOSED && ramp_over; /* closed all the time, only slower */
    uint64_t generation = hfi_word_generation(word) + (same_work ? 0 : 1);
    struct hfi_breaker_event event = {.from = from,
                                      .to = to,
                                      .generation = generation,
                                      .at_us = now.us,
                                      .until_us = until_us,
                                      .trips = breaker->trips,
                                      .window = hfi_window_read(&breaker->window, now),
                                      .reason = reason};
    prepare(breaker, now, from, to);
    if (reason != NULL && to == HF_BREAKER_OPEN)
        hfi_text_copy(breaker->reason, sizeof breaker->reason, reason);
    if (to == HF_BREAKER_CLOSED || to == HF_BREAKER_RAMP)
        breaker->reason[0] = '\0';
    /* `until` first: who sees the new state must not read the old end of a break (B13). */
    atomic_store_explicit(&breaker->until_us, until_us, memory_order_relaxed);
    atomic_store_explicit(&breaker->word, generation << 8 | (uint64_t)to, memory_order_release);
    remember(breaker, &event);
}

/* base × factor^(trips - 1), at most `max`, spread by the jitter, and at most `max` again (B18). */
static int64_t break_length_us(struct hfi_breaker *breaker) {
    const struct hfi_breaker_rules *rules = &breaker->rules;
    int64_t max_us = hfi_ms_to_us(rules->max_break_ms);
    int64_t length_us = hfi_ms_to_us(rules->break_ms);
    for (uint32_t i = 1; i < breaker->trips && length_us < max_us && rules->break_factor_permille > 1000; i++)
        length_us = hfi_add(hfi_mul(length_us / 1000, rules->break_factor_permille),
                            length_us % 1000 * rules->break_factor_permille / 1000);
    length_us = length_us < max_us ? length_us : max_us;
    int64_t spread_us = hfi_mul(length_us / 1000, rules->break_jitter_permille);
    if (spread_us > 0)
        length_us = length_us - spread_us + (int64_t)hfi_random_below(&breaker->random, 2 * (uint64_t)spread_us + 1);
    length_us = length_us < max_us ? length_us : max_us;
    return length_us > 1000 ? length_us : 1000;
}

void hfi_breaker_trip_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *reason) {
    enum hf_breaker_state from = hfi_word_state(hfi_breaker_word(breaker));
    bool was_closed = from == HF_BREAKER_CLOSED || from == HF_BREAKER_RAMP;
    bool was_healthy =
        was_closed && hfi_sub(now.us, breaker->healthy_since_us) >= hfi_ms_to_us(breaker->rules.window_ms);
    if (was_healthy)
        breaker->trips = 0;
    if (breaker->trips < UINT32_MAX)
        breaker->trips++;
    hfi_breaker_move_locked(breaker, now, HF_BREAKER_OPEN, hfi_add(now.us, break_length_us(breaker)), reason);
}

void hfi_breaker_judge_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *failed_reason) {
    const struct hfi_breaker_rules *rules = &breaker->rules;
    bool alive = breaker->neutral_run >= NEUTRAL_FACTOR * rules->probes;
    if (breaker->probes_failed > rules->tolerated)
        hfi_breaker_trip_locked(breaker, now, failed_reason); /* min_calls says nothing here (B11) */
    else if (breaker->probes_passed + breaker->probes_failed >= rules->probes || alive)
        hfi_breaker_move_locked(breaker, now, rules->ramp_ms > 0 ? HF_BREAKER_RAMP : HF_BREAKER_CLOSED, 0,
                                "probes_passed");
}

static void lapse_probes(struct hfi_breaker *breaker, struct hf_mono now) {
    uint32_t lost = 0;
    for (uint32_t i = 0; i < HFI_BREAKER_PROBES_MAX; i++) {
        if (breaker->probe_lease_us[i] != 0 && now.us > breaker->probe_lease_us[i]) {
            breaker->probe_lease_us[i] = 0;
            lost++;
        }
    }
    if (lost == 0)
        return;
    breaker->probes_failed += lost;
    breaker->neutral_run = 0;
    hfi_breaker_judge_locked(breaker, now, "probe_lost");
}

void hfi_breaker_tick_locked(struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
    switch (hfi_word_state(hfi_breaker_word(breaker))) {
    case HF_BREAKER_OPEN:
        if (now.us >= until_us)
            hfi_breaker_move_locked(breaker, now, HF_BREAKER_HALF_OPEN, now.us, "break_over");
        break;
    case HF_BREAKER_ISOLATED:
        /* Nobody knows how the peer is by now: ask with probes, not with everybody at once. */
        if (until_us != HFI_FOREVER_US && now.us >= until_us)
            hfi_breaker_move_locked(breaker, now, HF_BREAKER_HALF_OPEN, now.us, "isolation_over");
        break;
    case HF_BREAKER_HALF_OPEN:
        lapse_probes(breaker, now);
        break;
    case HF_BREAKER_RAMP:
        if (hfi_sub(now.us, breaker->ramp_from_us) >= hfi_ms_to_us(breaker->rules.ramp_ms))
            hfi_breaker_move_locked(breaker, now, HF_BREAKER_CLOSED, 0, "ramp_over");
        break;
    case HF_BREAKER_CLOSED:
        break;
    }
}

void hfi_breaker_tick(struct hfi_breaker *breaker, struct hf_mono now) {
    if (hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_CLOSED)
        return;
    pthread_mutex_lock(&breaker->lock);
    hfi_breaker_tick_locked(breaker, now);
    hfi_breaker_unlock(breaker);
}

/* The text of an event whose own is not a constant. */
static void fill_reason(const struct hfi_breaker *breaker, struct hfi_breaker_event *event, char *text, size_t room) {
    if (event->reason == NULL) {
        snprintf(text, room, "%s%s", event->to == HF_BREAKER_ISOLATED ? "isolated: " : "", breaker->reason);
        event->reason = text;
    }
}

void hfi_breaker_unlock(struct hfi_breaker *breaker) {
    /* Whoever tells goes on until nothing is left, so changes made meanwhile, even inside on_change, keep their order.
     */
    while (!breaker->telling && breaker->pending_count > 0) {
        char text[sizeof breaker->reason + 16];
        struct hfi_breaker_event event = breaker->pending[0];
        breaker->pending_count--;
        memmove(&breaker->pending[0], &breaker->pending[1], breaker->pending_count * sizeof event);
        fill_reason(breaker, &event, text, sizeof text);
        breaker->telling = true;
        pthread_mutex_unlock(&breaker->lock);
        breaker->on_change(&event, breaker->user);
        pthread_mutex_lock(&breaker->lock);
        breaker->telling = false;
    }
    pthread_mutex_unlock(&breaker->lock);
}

uint32_t hfi_breaker_probes_in_flight(const struct hfi_breaker *breaker) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < HFI_BREAKER_PROBES_MAX; i++)
        count += breaker->probe_lease_us[i] != 0;
    return count;
}

uint32_t hfi_breaker_ramp_limit(const struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t ramp_ms = breaker->rules.ramp_ms;
    int64_t cap = breaker->rules.ramp_cap > 0 ? breaker->rules.ramp_cap : 1;
    int64_t t_ms = hfi_sub(now.us, breaker->ramp_from_us) / 1000;
    if (t_ms >= ramp_ms)
        return (uint32_t)cap;
    int64_t tenths = hfi_mul(cap, hfi_add(ramp_ms, hfi_mul(9, t_ms > 0 ? t_ms : 0)));
    int64_t whole = hfi_mul(10, ramp_ms);
    int64_t limit = tenths / whole + (tenths % whole != 0 ? 1 : 0);
    return (uint32_t)(limit < cap ? limit : cap);
}

int64_t hfi_breaker_ramp_slice(const struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t slice = hfi_sub(now.us, breaker->ramp_from_us) / RAMP_SLICE_US;
    return slice > breaker->ramp_slice ? slice : breaker->ramp_slice;
}

uint32_t hfi_breaker_ramp_starts(const struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t passed = hfi_breaker_ramp_slice(breaker, now) - breaker->ramp_slice;
    uint32_t starts = 0;
    for (int64_t age = passed; age < HFI_BREAKER_RAMP_SLICES; age++) {
        int64_t slice = breaker->ramp_slice - (age - passed);
        if (slice >= 0)
            starts += breaker->ramp_starts[slice % HFI_BREAKER_RAMP_SLICES];
    }
    return starts;
}
