/* SPDX-License-Identifier: MIT */
/*
 * The breaker's machine: the one function that changes its state, what time alone brings about, and the telling of it.
 * Must never call out while it holds the lock, never read a clock, never recurse (B14). Any thread.
 */
#include "resilience/breaker_machine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

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

int hfi_breaker_init(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules, uint32_t seed,
                     hfi_breaker_fn on_change) {
    memset(breaker, 0, sizeof *breaker);
    atomic_init(&breaker->word, (uint64_t)1 << 8 | HF_BREAKER_CLOSED);
    atomic_init(&breaker->rules, rules);
    int code = hfi_breaker_windows_init(breaker, rules);
    if (code != 0)
        return code;
    breaker->seed = seed;
    breaker->on_change = on_change;
    return 0;
}

void hfi_breaker_end(struct hfi_breaker *breaker) {
    hfi_breaker_windows_end(breaker);
    hfi_shards_end(&breaker->shards);
}

static void remember(struct hfi_breaker *breaker, struct hfi_breaker_event *event) {
    struct hfi_breaker_more *more = breaker->more;
    if (breaker->on_change == NULL)
        return;
    if (breaker->untold != 0)
        event->from = (enum hf_breaker_state)(breaker->untold - 1);
    breaker->untold = 0;
    if (more == NULL) {
        breaker->untold = (uint8_t)(event->from + 1);
        return;
    }
    if (more->pending_count == HFI_BREAKER_PENDING) {
        /* The observer is too slow: the last two changes become one, so that what it hears still joins up. */
        more->pending_count--;
        event->from = more->pending[more->pending_count].event.from;
    }
    more->pending[more->pending_count].event = *event;
    hfi_text_copy(more->pending[more->pending_count].reason, sizeof more->pending[0].reason, event->reason);
    more->pending_count++;
}

/* What a state starts with. */
static void prepare(struct hfi_breaker *breaker, struct hf_mono now, enum hf_breaker_state from,
                    enum hf_breaker_state to) {
    struct hfi_breaker_more *more = hfi_breaker_more_locked(breaker);
    switch (to) {
    case HF_BREAKER_HALF_OPEN:
        breaker->probe.lease_us = 0;
        if (more != NULL)
            memset(more->probes, 0, sizeof more->probes);
        breaker->probes_passed = breaker->probes_failed = breaker->neutral_run = 0;
        break;
    case HF_BREAKER_RAMP:
        hfi_breaker_forget_locked(breaker); /* B24 */
        breaker->ramp_in_flight = 0;
        if (more != NULL) {
            more->healthy_since_us = now.us;
            more->ramp_slice = 0;
            memset(more->ramp_starts, 0, sizeof more->ramp_starts);
        }
        break;
    case HF_BREAKER_CLOSED:
        if (from == HF_BREAKER_RAMP)
            break; /* its counts go on */
        hfi_breaker_forget_locked(breaker);
        if (more != NULL)
            more->healthy_since_us = now.us;
        break;
    case HF_BREAKER_OPEN:
    case HF_BREAKER_ISOLATED:
        break;
    }
}

/* What a break or an isolation may be for. The first is none of them. */
static const char *const codes[] = {"",           "ratio",          "consecutive", "slow",
                                    "probe_failed", "probe_lost", "isolated",    "restored"};

const char *hfi_breaker_why(const struct hfi_breaker *breaker) {
    return codes[breaker->why];
}

static uint8_t number_of(const char *code) {
    uint8_t number = sizeof codes / sizeof *codes - 1;
    while (number > 0 && strcmp(codes[number], code) != 0)
        number--;
    return number;
}

static void keep_reason(struct hfi_breaker *breaker, enum hf_breaker_state to, const char *code, const char *text) {
    bool bad = to == HF_BREAKER_OPEN || to == HF_BREAKER_ISOLATED;
    if (to == HF_BREAKER_HALF_OPEN)
        return; /* why it was open still tells most */
    breaker->why = bad ? number_of(code) : 0;
    if (breaker->more != NULL)
        hfi_text_copy(breaker->more->reason, sizeof breaker->more->reason, bad ? text : "");
}

void hfi_breaker_move_locked(struct hfi_breaker *breaker, struct hf_mono now, enum hf_breaker_state to,
                             int64_t until_us, const char *code, const char *text) {
    uint64_t word = atomic_load_explicit(&breaker->word, memory_order_relaxed);
    enum hf_breaker_state from = hfi_word_state(word);
    char isolated[HFI_REASON_MAX];
    assert(legal[from] & 1u << to);
    if (!(legal[from] & 1u << to))
        return;
    bool ramp_over =
        hfi_sub(now.us, breaker->since_us) >= hfi_ms_to_us(hfi_breaker_rules(breaker)->ramp_ms);
    bool same_work =
        from == HF_BREAKER_RAMP && to == HF_BREAKER_CLOSED && ramp_over; /* closed all the time, only slower */
    uint64_t generation = hfi_word_generation(word) + (same_work ? 0 : 1);
    struct hfi_breaker_event event = {.from = from,
                                      .to = to,
                                      .generation = generation,
                                      .at_us = now.us,
                                      .until_us = until_us,
                                      .trips = breaker->trips,
                                      .reason = text};
    hfi_breaker_turn_locked(breaker, now);
    hfi_breaker_sum_locked(breaker, now, &event.window, &event.causes);
    prepare(breaker, now, from, to);
    breaker->since_us = now.us;
    breaker->peak = 0; /* a healthy window is one without a change */
    keep_reason(breaker, to, code, text);
    if (to == HF_BREAKER_ISOLATED) {
        snprintf(isolated, sizeof isolated, "isolated: %s", text);
        event.reason = isolated;
    }
    /* `until` first: who sees the new state must not read the old end of a break (B13). */
    atomic_store_explicit(&breaker->until_us, until_us, memory_order_relaxed);
    atomic_store_explicit(&breaker->word, generation << 8 | (uint64_t)to, memory_order_release);
    remember(breaker, &event);
}

/* base × factor^(trips - 1), at most `max`, spread by the jitter, and at most `max` again (B18). */
static int64_t break_length_us(struct hfi_breaker *breaker) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    int64_t max_us = hfi_ms_to_us(rules->max_break_ms);
    int64_t length_us = hfi_ms_to_us(rules->break_ms);
    for (uint32_t i = 1; i < breaker->trips && length_us < max_us && rules->break_factor_permille > 1000; i++)
        length_us = hfi_add(hfi_mul(length_us / 1000, rules->break_factor_permille),
                            length_us % 1000 * rules->break_factor_permille / 1000);
    length_us = length_us < max_us ? length_us : max_us;
    int64_t spread_us = hfi_mul(length_us / 1000, rules->break_jitter_permille);
    if (spread_us > 0) {
        struct hfi_random random;
        hfi_random_seed(&random, breaker->seed);
        length_us = length_us - spread_us + (int64_t)hfi_random_below(&random, 2 * (uint64_t)spread_us + 1);
        breaker->seed = (uint32_t)hfi_random_next(&random);
    }
    length_us = length_us < max_us ? length_us : max_us;
    return length_us > 1000 ? length_us : 1000;
}

bool hfi_breaker_is_healthy(const struct hfi_breaker *breaker, struct hf_mono now) {
    const struct hfi_breaker_more *more = breaker->more; /* none: it has never failed, or there is no memory to know */
    return more != NULL &&
           hfi_sub(now.us, more->healthy_since_us) >= hfi_ms_to_us(hfi_breaker_rules(breaker)->window_ms);
}

void hfi_breaker_trip_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *code, const char *text) {
    enum hf_breaker_state from = hfi_word_state(hfi_breaker_word(breaker));
    bool was_closed = from == HF_BREAKER_CLOSED || from == HF_BREAKER_RAMP;
    if (was_closed && hfi_breaker_is_healthy(breaker, now))
        breaker->trips = 0;
    if (breaker->trips < UINT32_MAX)
        breaker->trips++;
    hfi_breaker_move_locked(breaker, now, HF_BREAKER_OPEN, hfi_add(now.us, break_length_us(breaker)), code, text);
}

void hfi_breaker_judge_locked(struct hfi_breaker *breaker, struct hf_mono now, const char *code, enum hf_cause cause) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    bool alive = breaker->neutral_run >= NEUTRAL_FACTOR * rules->probes;
    char text[HFI_REASON_MAX];
    snprintf(text, sizeof text, "%s%s%s", code, cause != HF_CAUSE_OTHER ? ": " : "",
             cause != HF_CAUSE_OTHER ? hf_cause_name(cause) : "");
    if (breaker->probes_failed > rules->tolerated)
        hfi_breaker_trip_locked(breaker, now, code, text); /* min_calls says nothing here (B11) */
    else if (breaker->probes_passed + breaker->probes_failed >= rules->probes || alive)
        hfi_breaker_move_locked(breaker, now, rules->ramp_ms > 0 ? HF_BREAKER_RAMP : HF_BREAKER_CLOSED, 0,
                                "probes_passed", "probes_passed");
}

static void lapse_probes(struct hfi_breaker *breaker, struct hf_mono now) {
    uint32_t lost = 0;
    for (uint32_t i = 0; i < hfi_breaker_slots(breaker); i++) {
        struct hfi_breaker_probe *probe = hfi_breaker_probe_at(breaker, i);
        if (probe->lease_us != 0 && now.us > probe->lease_us) {
            probe->lease_us = 0;
            lost++;
        }
    }
    if (lost == 0)
        return;
    breaker->probes_failed = (uint8_t)(breaker->probes_failed + lost);
    breaker->neutral_run = 0;
    hfi_breaker_judge_locked(breaker, now, "probe_lost", HF_CAUSE_OTHER);
}

void hfi_breaker_tick_locked(struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed);
    switch (hfi_word_state(hfi_breaker_word(breaker))) {
    case HF_BREAKER_OPEN:
        if (now.us >= until_us)
            hfi_breaker_move_locked(breaker, now, HF_BREAKER_HALF_OPEN, now.us, "break_over", "break_over");
        break;
    case HF_BREAKER_ISOLATED:
        /* Nobody knows how the peer is by now: ask with probes, not with everybody at once. */
        if (until_us != HFI_FOREVER_US && now.us >= until_us)
            hfi_breaker_move_locked(breaker, now, HF_BREAKER_HALF_OPEN, now.us, "isolation_over", "isolation_over");
        break;
    case HF_BREAKER_HALF_OPEN:
        lapse_probes(breaker, now);
        break;
    case HF_BREAKER_RAMP:
        if (hfi_sub(now.us, breaker->since_us) >= hfi_ms_to_us(hfi_breaker_rules(breaker)->ramp_ms))
            hfi_breaker_move_locked(breaker, now, HF_BREAKER_CLOSED, 0, "ramp_over", "ramp_over");
        break;
    case HF_BREAKER_CLOSED:
        break;
    }
}

void hfi_breaker_tick(struct hfi_breaker *breaker, struct hf_mono now) {
    if (hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_CLOSED)
        return;
    hfi_lock(&breaker->lock);
    hfi_breaker_tick_locked(breaker, now);
    hfi_breaker_unlock(breaker);
}

/* The next change to tell of, with its text; false when all was told. */
static bool next_event(struct hfi_breaker *breaker, struct hfi_breaker_event *event, char *text) {
    struct hfi_breaker_more *more = breaker->more;
    if (more != NULL && more->pending_count > 0) {
        *event = more->pending[0].event;
        memcpy(text, more->pending[0].reason, sizeof more->pending[0].reason);
        more->pending_count--;
        memmove(&more->pending[0], &more->pending[1], more->pending_count * sizeof more->pending[0]);
        event->reason = text;
        return true;
    }
    if (breaker->untold == 0)
        return false;
    uint64_t word = hfi_breaker_word(breaker);
    *event = (struct hfi_breaker_event){.from = (enum hf_breaker_state)(breaker->untold - 1),
                                        .to = hfi_word_state(word),
                                        .generation = hfi_word_generation(word),
                                        .until_us = atomic_load_explicit(&breaker->until_us, memory_order_relaxed),
                                        .trips = breaker->trips,
                                        .reason = hfi_breaker_why(breaker)};
    event->at_us = breaker->since_us;
    breaker->untold = 0;
    return true;
}

void hfi_breaker_unlock(struct hfi_breaker *breaker) {
    struct hfi_breaker_event event;
    char text[HFI_REASON_MAX];
    /* Whoever tells goes on until nothing is left, so changes made meanwhile, even inside on_change, keep their order.
     */
    while (!breaker->telling && next_event(breaker, &event, text)) {
        breaker->telling = true;
        hfi_unlock(&breaker->lock);
        breaker->on_change(&event, breaker);
        hfi_lock(&breaker->lock);
        breaker->telling = false;
    }
    hfi_unlock(&breaker->lock);
}

struct hfi_breaker_probe *hfi_breaker_probe_at(struct hfi_breaker *breaker, uint32_t slot) {
    return slot == 0 ? &breaker->probe : &breaker->more->probes[slot - 1];
}

uint32_t hfi_breaker_slots(const struct hfi_breaker *breaker) {
    return breaker->more != NULL ? HFI_BREAKER_PROBES_MAX : 1;
}

uint32_t hfi_breaker_probes_in_flight(const struct hfi_breaker *breaker) {
    uint32_t count = breaker->probe.lease_us != 0;
    for (uint32_t i = 0; breaker->more != NULL && i < HFI_BREAKER_PROBES_MAX - 1; i++)
        count += breaker->more->probes[i].lease_us != 0;
    return count;
}

uint32_t hfi_breaker_ramp_limit(const struct hfi_breaker *breaker, struct hf_mono now) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    int64_t ramp_ms = rules->ramp_ms;
    uint32_t peak = breaker->healthy_peak;
    int64_t cap = rules->ramp_cap > 0 ? rules->ramp_cap : 1;
    cap = peak > 0 && peak < cap ? peak : cap;
    int64_t t_ms = hfi_sub(now.us, breaker->since_us) / 1000;
    t_ms = t_ms > 0 ? t_ms : 0; /* the clock of another thread may be behind */
    if (t_ms >= ramp_ms)
        return (uint32_t)cap; /* also when a reload took the ramp away */
    int64_t tenths = hfi_mul(cap, hfi_add(ramp_ms, hfi_mul(9, t_ms)));
    int64_t whole = hfi_mul(10, ramp_ms);
    int64_t limit = tenths / whole + (tenths % whole != 0 ? 1 : 0);
    return (uint32_t)(limit < cap ? limit : cap);
}

int64_t hfi_breaker_ramp_slice(const struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t slice = hfi_sub(now.us, breaker->since_us) / HFI_RAMP_SLICE_US;
    return slice > breaker->more->ramp_slice ? slice : breaker->more->ramp_slice;
}

uint32_t hfi_breaker_ramp_starts(const struct hfi_breaker *breaker, struct hf_mono now) {
    const struct hfi_breaker_more *more = breaker->more;
    uint32_t starts = 0;
    if (more == NULL)
        return 0; /* nowhere to count them: what is in flight must do */
    int64_t passed = hfi_breaker_ramp_slice(breaker, now) - more->ramp_slice;
    for (int64_t age = passed; age < HFI_BREAKER_RAMP_SLICES; age++) {
        int64_t slice = more->ramp_slice - (age - passed);
        if (slice >= 0)
            starts += more->ramp_starts[slice % HFI_BREAKER_RAMP_SLICES];
    }
    return starts;
}
