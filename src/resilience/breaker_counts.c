/* SPDX-License-Identifier: MIT */
/*
 * What the breaker has counted: its windows, whether a sample trips it and with what words, and how far it is from that.
 * Must never count what is no completed attempt of this generation. Any thread, under the breaker's lock.
 */
#include "resilience/breaker_machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "holdfast/error.h"
#include "resilience/cause.h"

#define RUN_GAP_MS 3600000 /* failures further apart are not "consecutive" (W7), yet one a minute is (W8) */

/* ------------------------------------------------------------------ the windows */

/* Views of the windows, of their memory's shape. */
static struct hfi_window window_over(const struct hfi_breaker_rules *rules, uint32_t width, uint32_t *memory) {
    return (struct hfi_window){hfi_window_slice_us(rules->window_ms, rules->slices), rules->slices, width, memory};
}

static struct hfi_window main_window(const struct hfi_breaker *breaker) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    /* Cast: its owner holds the lock, and a look at it takes a view as well. */
    uint32_t *few = (uint32_t *)(uintptr_t)breaker->window.few;
    return window_over(rules, HFI_COLUMNS, rules->slices > HFI_WINDOW_SLICES ? breaker->window.many : few);
}

static struct hfi_window causes_window(const struct hfi_breaker *breaker) {
    return window_over(hfi_breaker_rules(breaker), HF_CAUSES, breaker->more->causes_memory);
}

static struct hfi_window slow_window(const struct hfi_breaker *breaker) {
    return window_over(hfi_breaker_rules(breaker), 1, breaker->more->slow_memory);
}

static bool counts_slow(const struct hfi_breaker *breaker) {
    return breaker->more != NULL && breaker->more->slow_memory != NULL;
}

static int64_t turn_of(const struct hfi_breaker *breaker) {
    return atomic_load_explicit(&breaker->turn_us, memory_order_relaxed);
}

static struct hfi_breaker_more *new_more(const struct hfi_breaker_rules *rules) {
    struct hfi_breaker_more *more = hfi_alloc(sizeof *more);
    if (more == NULL)
        return NULL;
    more->causes_memory = hfi_window_memory(rules->slices, HF_CAUSES);
    more->healthy_since_us = more->run_us = INT64_MAX;
    if (more->causes_memory == NULL) {
        hfi_free(more);
        more = NULL;
    }
    return more;
}

static void free_more(struct hfi_breaker_more *more) {
    if (more != NULL) {
        hfi_free(more->causes_memory);
        hfi_free(more->slow_memory);
    }
    hfi_free(more);
}

struct hfi_breaker_more *hfi_breaker_more_locked(struct hfi_breaker *breaker) {
    if (breaker->more == NULL) /* in step with the window: nothing was counted in it until now */
        breaker->more = new_more(hfi_breaker_rules(breaker));
    return breaker->more;
}

int hfi_breaker_windows_init(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules) {
    bool many = rules->slices > HFI_WINDOW_SLICES;
    if (many)
        breaker->window.many = hfi_window_memory(rules->slices, HFI_COLUMNS);
    if (rules->slow_permille > 0 && (breaker->more = new_more(rules)) != NULL)
        breaker->more->slow_memory = hfi_window_memory(rules->slices, 1);
    if ((!many || breaker->window.many != NULL) && (rules->slow_permille == 0 || counts_slow(breaker)))
        return 0;
    hfi_breaker_windows_end(breaker);
    return HF_ENOMEM;
}

void hfi_breaker_windows_end(struct hfi_breaker *breaker) {
    if (hfi_breaker_rules(breaker)->slices > HFI_WINDOW_SLICES)
        hfi_free(breaker->window.many);
    free_more(breaker->more);
}

static void totals_of(const struct hfi_breaker *breaker, uint64_t *totals) {
    totals[HFI_COLUMN_SUCCESSES] = hfi_shards_successes(&breaker->shards);
    totals[HFI_COLUMN_FAILURES] = breaker->failures;
}

/* At a new slice: what the shards had in flight at most goes to the peak of this window (2.5: the cap of a ramp). */
static void watch_peak(struct hfi_breaker *breaker, struct hf_mono now) {
    uint32_t peak = hfi_shards_peak(&breaker->shards);
    hfi_shards_slice(&breaker->shards);
    if (hfi_word_state(hfi_breaker_word(breaker)) != HF_BREAKER_CLOSED)
        return;
    breaker->peak = peak > breaker->peak ? peak : breaker->peak;
    if (breaker->since_us == 0)
        breaker->since_us = now.us;
    if (hfi_sub(now.us, breaker->since_us) < hfi_ms_to_us(hfi_breaker_rules(breaker)->window_ms))
        return;
    breaker->healthy_peak = breaker->peak;
    breaker->peak = 0;
    breaker->since_us = now.us;
}

void hfi_breaker_turn_locked(struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t turn_us = turn_of(breaker);
    uint64_t totals[HFI_COLUMNS];
    if (now.us < turn_us)
        return;
    watch_peak(breaker, now);
    if (counts_slow(breaker)) {
        struct hfi_window slow = slow_window(breaker);
        hfi_window_turn(&slow, turn_us, now, &breaker->more->slow);
    }
    if (breaker->more != NULL) {
        struct hfi_window causes = causes_window(breaker);
        hfi_window_turn(&causes, turn_us, now, breaker->more->causes);
    }
    struct hfi_window window = main_window(breaker);
    totals_of(breaker, totals);
    turn_us = hfi_window_turn(&window, turn_us, now, totals);
    atomic_store_explicit(&breaker->turn_us, turn_us, memory_order_relaxed);
}

void hfi_breaker_sum_locked(const struct hfi_breaker *breaker, struct hf_mono at, struct hfi_window_sum *sum,
                            struct hf_causes *causes) {
    int64_t turn_us = turn_of(breaker);
    uint64_t totals[HFI_COLUMNS], sums[HFI_COLUMNS];
    struct hfi_window window = main_window(breaker);
    totals_of(breaker, totals);
    hfi_window_peek(&window, turn_us, at, totals, sums);
    uint64_t calls = sums[HFI_COLUMN_SUCCESSES] + sums[HFI_COLUMN_FAILURES];
    *sum = (struct hfi_window_sum){calls, sums[HFI_COLUMN_FAILURES], 0};
    if (counts_slow(breaker)) {
        window = slow_window(breaker);
        hfi_window_peek(&window, turn_us, at, &breaker->more->slow, &sum->slow);
    }
    memset(causes, 0, sizeof *causes);
    if (breaker->more != NULL) {
        window = causes_window(breaker);
        hfi_window_peek(&window, turn_us, at, breaker->more->causes, causes->counts);
    }
}

void hfi_breaker_forget_locked(struct hfi_breaker *breaker) {
    uint64_t totals[HFI_COLUMNS];
    struct hfi_window window = main_window(breaker);
    totals_of(breaker, totals);
    hfi_window_clear(&window, totals);
    if (counts_slow(breaker)) {
        window = slow_window(breaker);
        hfi_window_clear(&window, &breaker->more->slow);
    }
    if (breaker->more != NULL) {
        window = causes_window(breaker);
        hfi_window_clear(&window, breaker->more->causes);
    }
    atomic_store_explicit(&breaker->run, 0, memory_order_relaxed);
}

/* ------------------------------------------------------------------ new rules */

/* The memory that other rules need beside what is there. */
struct memory {
    struct hfi_breaker_more *more;
    uint32_t *window, *causes, *slow;
};

/* For windows of another shape, or one for slow calls. 0 or HF_ENOMEM, and then there is none. */
static int prepare(const struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules, bool same_shape,
                   struct memory *memory) {
    bool window = !same_shape && rules->slices > HFI_WINDOW_SLICES;
    bool causes = !same_shape && breaker->more != NULL;
    bool slow = rules->slow_permille > 0 && (!same_shape || !counts_slow(breaker));
    bool more = slow && breaker->more == NULL;
    memory->window = window ? hfi_window_memory(rules->slices, HFI_COLUMNS) : NULL;
    memory->causes = causes ? hfi_window_memory(rules->slices, HF_CAUSES) : NULL;
    memory->slow = slow ? hfi_window_memory(rules->slices, 1) : NULL;
    memory->more = more ? new_more(rules) : NULL;
    if (window == (memory->window != NULL) && causes == (memory->causes != NULL) && slow == (memory->slow != NULL) &&
        more == (memory->more != NULL))
        return 0;
    hfi_free(memory->window);
    hfi_free(memory->causes);
    hfi_free(memory->slow);
    free_more(memory->more);
    return HF_ENOMEM;
}

/* Takes them over with the rules. Windows of another shape are emptied by their first turn. */
static void take(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules, bool same_shape,
                 const struct memory *memory) {
    bool many = hfi_breaker_rules(breaker)->slices > HFI_WINDOW_SLICES;
    atomic_store_explicit(&breaker->rules, rules, memory_order_release);
    if (memory->more != NULL)
        breaker->more = memory->more;
    struct hfi_breaker_more *more = breaker->more;
    if (same_shape && memory->slow != NULL) {
        more->slow_memory = memory->slow;
        struct hfi_window slow = slow_window(breaker);
        hfi_window_clear(&slow, &more->slow);
    }
    if (same_shape)
        return;
    if (many)
        hfi_free(breaker->window.many);
    if (memory->window != NULL)
        breaker->window.many = memory->window;
    if (memory->causes != NULL) {
        hfi_free(more->causes_memory);
        more->causes_memory = memory->causes;
    }
    if (more != NULL) {
        hfi_free(more->slow_memory);
        more->slow_memory = memory->slow;
    }
    atomic_store_explicit(&breaker->turn_us, 0, memory_order_relaxed);
}

int hfi_breaker_reload(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_rules *rules) {
    struct memory memory;
    hfi_lock(&breaker->lock);
    const struct hfi_breaker_rules *old = hfi_breaker_rules(breaker);
    bool same_shape = old->window_ms == rules->window_ms && old->slices == rules->slices;
    hfi_breaker_tick_locked(breaker, now); /* what time has brought about by the old rules */
    int code = prepare(breaker, rules, same_shape, &memory);
    if (code == 0) {
        take(breaker, rules, same_shape, &memory);
        hfi_breaker_turn_locked(breaker, now);
        if (hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_HALF_OPEN)
            hfi_breaker_judge_locked(breaker, now, "probe_failed", HF_CAUSE_OTHER);
    }
    hfi_unlock(&breaker->lock);
    return code;
}

void hfi_breaker_tell(struct hfi_breaker *breaker) {
    hfi_lock(&breaker->lock);
    hfi_breaker_unlock(breaker);
}

/* ------------------------------------------------------------------ a sample */

/* The run of failures that one at `now` would go on with: 0 when the last was too long ago. */
static uint32_t run_until(const struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t window_ms = hfi_breaker_rules(breaker)->window_ms;
    int64_t gap_ms = window_ms > RUN_GAP_MS / 10 ? hfi_mul(window_ms, 10) : RUN_GAP_MS;
    bool goes_on = breaker->more == NULL || hfi_sub(now.us, breaker->more->run_us) <= hfi_ms_to_us(gap_ms);
    return goes_on ? atomic_load_explicit(&breaker->run, memory_order_relaxed) : 0;
}

/* The length of the unbroken run of failures that this one ends. */
static uint32_t run_length(struct hfi_breaker *breaker, struct hf_mono now) {
    uint32_t run = run_until(breaker, now);
    run += run < UINT32_MAX ? 1 : 0;
    if (breaker->more != NULL)
        breaker->more->run_us = now.us;
    atomic_store_explicit(&breaker->run, run, memory_order_relaxed);
    return run;
}

static bool reaches(uint64_t part, uint32_t permille, uint64_t calls) {
    return part * 1000 >= (uint64_t)permille * calls;
}

/* Trips for `code`, and says why in numbers. */
static void trip(struct hfi_breaker *breaker, struct hf_mono now, const char *code, uint64_t bad, uint64_t calls,
                 const char *what) {
    struct hfi_window_sum sum;
    struct hf_causes causes;
    char list[HFI_CAUSES_ROOM], text[HFI_REASON_MAX + HFI_CAUSES_ROOM]; /* kept as far as there is room */
    hfi_breaker_sum_locked(breaker, now, &sum, &causes);
    bool named = hfi_causes_named(&causes);
    hfi_causes_print(&causes, list);
    snprintf(text, sizeof text, "%s: %" PRIu64 " of %" PRIu64 " %s%s%s%s", code, bad, calls, what, named ? " (" : "",
             named ? list : "", named ? ")" : "");
    hfi_breaker_trip_locked(breaker, now, code, text);
}

/* Does the window or the run say that it is enough? */
static void weigh(struct hfi_breaker *breaker, struct hf_mono now, bool failure, bool slow) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    struct hfi_window_sum sum;
    struct hf_causes causes;
    uint32_t run = failure && rules->consecutive > 0 ? run_length(breaker, now) : 0;
    if (run > 0 && run >= rules->consecutive) {
        trip(breaker, now, "consecutive", run, run, "failed in a row");
        return;
    }
    hfi_breaker_sum_locked(breaker, now, &sum, &causes);
    if (sum.calls < rules->min_calls)
        return;
    if (failure && reaches(sum.failures, rules->ratio_permille, sum.calls))
        trip(breaker, now, "ratio", sum.failures, sum.calls, "failed");
    else if (slow && reaches(sum.slow, rules->slow_permille, sum.calls))
        trip(breaker, now, "slow", sum.slow, sum.calls, "were slow");
}

void hfi_breaker_sample_locked(struct hfi_breaker *breaker, struct hf_mono now, bool failure, bool slow,
                               enum hf_cause cause) {
    hfi_breaker_turn_locked(breaker, now);
    if (!failure) {
        HFI_SHARD_ADD(hfi_shards_mine(&breaker->shards), successes, 1);
        atomic_store_explicit(&breaker->run, 0, memory_order_relaxed);
    }
    breaker->failures += failure ? 1 : 0;
    if (!failure && !slow)
        return;
    struct hfi_breaker_more *more = hfi_breaker_more_locked(breaker);
    if (more != NULL) {
        more->slow += slow ? 1 : 0;
        more->causes[failure ? cause : HF_CAUSE_SLOW]++;
    }
    weigh(breaker, now, failure, slow);
}

void hfi_breaker_stray_locked(struct hfi_breaker *breaker, bool failure) {
    struct hfi_window window = main_window(breaker);
    if (failure)
        breaker->failures++;
    else
        HFI_SHARD_ADD(hfi_shards_mine(&breaker->shards), successes, 1);
    hfi_window_ignore(&window, failure ? HFI_COLUMN_FAILURES : HFI_COLUMN_SUCCESSES);
}

/* ------------------------------------------------------------------ how far it is from a trip */

uint64_t hfi_breaker_failures_to_trip(const struct hfi_breaker *breaker, struct hf_mono now) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    struct hfi_window_sum sum;
    struct hf_causes causes;
    uint64_t ratio = rules->ratio_permille, by_ratio = UINT64_MAX, by_run = UINT64_MAX;
    hfi_breaker_sum_locked(breaker, now, &sum, &causes);
    uint64_t passed = sum.calls - sum.failures;
    if (ratio < 1000 || passed == 0) { /* failures × (1000 - ratio) ≥ ratio × passed */
        uint64_t needed = ratio < 1000 ? (ratio * passed + (999 - ratio)) / (1000 - ratio) : 0;
        uint64_t more = needed > sum.failures ? needed - sum.failures : 0;
        uint64_t calls = sum.calls < rules->min_calls ? rules->min_calls - sum.calls : 0;
        by_ratio = more > calls ? more : calls;
    }
    if (rules->consecutive > 0) {
        uint32_t run = run_until(breaker, now);
        by_run = run < rules->consecutive ? rules->consecutive - run : 0;
    }
    uint64_t least = by_ratio < by_run ? by_ratio : by_run;
    return least > 0 ? least : 1; /* it takes a failure to decide */
}
