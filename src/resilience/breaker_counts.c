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

static struct hfi_window *new_window(const struct hfi_breaker_rules *rules, uint32_t width) {
    struct hfi_window *made = hfi_alloc(sizeof *made);
    if (made != NULL && hfi_window_init(made, rules->window_ms, rules->slices, width) != 0) {
        hfi_free(made);
        made = NULL;
    }
    return made;
}

static void end_window(struct hfi_window *window) {
    if (window != NULL)
        hfi_window_end(window);
    hfi_free(window);
}

int hfi_breaker_windows_init(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules) {
    if (hfi_window_init(&breaker->window, rules->window_ms, rules->slices, HFI_COLUMNS) != 0)
        return HF_ENOMEM;
    breaker->slow_window = rules->slow_permille > 0 ? new_window(rules, 1) : NULL;
    if (rules->slow_permille == 0 || breaker->slow_window != NULL)
        return 0;
    hfi_window_end(&breaker->window);
    return HF_ENOMEM;
}

void hfi_breaker_windows_end(struct hfi_breaker *breaker) {
    hfi_window_end(&breaker->window);
    end_window(breaker->slow_window);
    if (breaker->more != NULL)
        hfi_window_end(&breaker->more->causes_window);
}

struct hfi_breaker_more *hfi_breaker_more_locked(struct hfi_breaker *breaker) {
    const struct hfi_breaker_rules *rules = hfi_breaker_rules(breaker);
    if (breaker->more != NULL)
        return breaker->more;
    struct hfi_breaker_more *more = hfi_alloc(sizeof *more);
    if (more != NULL && hfi_window_init(&more->causes_window, rules->window_ms, rules->slices, HF_CAUSES) != 0) {
        hfi_free(more);
        more = NULL;
    }
    breaker->more = more;
    return more;
}

static void totals_of(const struct hfi_breaker *breaker, uint64_t *totals) {
    totals[HFI_COLUMN_CALLS] = hfi_shards_successes(&breaker->shards) + breaker->failures;
    totals[HFI_COLUMN_FAILURES] = breaker->failures;
}

/* At a new slice: what the shards had in flight at most goes to the peak of this window (2.5: the cap of a ramp). */
static void watch_peak(struct hfi_breaker *breaker, struct hf_mono now) {
    uint32_t peak = hfi_shards_peak(&breaker->shards);
    hfi_shards_slice(&breaker->shards);
    if (hfi_word_state(hfi_breaker_word(breaker)) != HF_BREAKER_CLOSED)
        return;
    breaker->peak = peak > breaker->peak ? peak : breaker->peak;
    if (breaker->peak_from_us == 0)
        breaker->peak_from_us = now.us;
    if (hfi_sub(now.us, breaker->peak_from_us) < hfi_ms_to_us(hfi_breaker_rules(breaker)->window_ms))
        return;
    breaker->healthy_peak = breaker->peak;
    breaker->peak = 0;
    breaker->peak_from_us = now.us;
}

void hfi_breaker_turn_locked(struct hfi_breaker *breaker, struct hf_mono now) {
    uint64_t totals[HFI_COLUMNS];
    if (now.us >= atomic_load_explicit(&breaker->turn_us, memory_order_relaxed))
        watch_peak(breaker, now);
    totals_of(breaker, totals);
    hfi_window_turn(&breaker->window, now, totals);
    /* Those made later keep step with it, though the clock of the thread that made them was behind. */
    int64_t newest_us = hfi_window_turn_us(&breaker->window) - breaker->window.slice_us;
    now.us = now.us > newest_us ? now.us : newest_us;
    if (breaker->slow_window != NULL)
        hfi_window_turn(breaker->slow_window, now, &breaker->slow);
    if (breaker->more != NULL)
        hfi_window_turn(&breaker->more->causes_window, now, breaker->more->causes);
    atomic_store_explicit(&breaker->turn_us, hfi_window_turn_us(&breaker->window), memory_order_relaxed);
}

void hfi_breaker_sum_locked(const struct hfi_breaker *breaker, struct hf_mono at, struct hfi_window_sum *sum,
                            struct hf_causes *causes) {
    uint64_t totals[HFI_COLUMNS], sums[HFI_COLUMNS];
    totals_of(breaker, totals);
    hfi_window_peek(&breaker->window, at, totals, sums);
    *sum = (struct hfi_window_sum){sums[HFI_COLUMN_CALLS], sums[HFI_COLUMN_FAILURES], 0};
    if (breaker->slow_window != NULL)
        hfi_window_peek(breaker->slow_window, at, &breaker->slow, &sum->slow);
    memset(causes, 0, sizeof *causes);
    if (breaker->more != NULL)
        hfi_window_peek(&breaker->more->causes_window, at, breaker->more->causes, causes->counts);
}

void hfi_breaker_forget_locked(struct hfi_breaker *breaker) {
    uint64_t totals[HFI_COLUMNS];
    totals_of(breaker, totals);
    hfi_window_clear(&breaker->window, totals);
    if (breaker->slow_window != NULL)
        hfi_window_clear(breaker->slow_window, &breaker->slow);
    if (breaker->more != NULL)
        hfi_window_clear(&breaker->more->causes_window, breaker->more->causes);
    atomic_store_explicit(&breaker->run, 0, memory_order_relaxed);
}

/* ------------------------------------------------------------------ new rules */

void hfi_breaker_take_rules(struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules) {
    int64_t slow_us = rules->slow_permille > 0 ? hfi_ms_to_us(rules->slow_after_ms) : INT64_MAX;
    atomic_store_explicit(&breaker->slow_us, slow_us, memory_order_relaxed);
    atomic_store_explicit(&breaker->lease_us, hfi_ms_to_us(rules->lease_ms), memory_order_relaxed);
    atomic_store_explicit(&breaker->rules, rules, memory_order_release);
}

/* Makes what `rules` need beside what is there: windows of another shape, or one for slow calls. 0 or HF_ENOMEM. */
static int new_windows(const struct hfi_breaker *breaker, const struct hfi_breaker_rules *rules, bool same_shape,
                       struct hfi_window **made) {
    bool causes = !same_shape && breaker->more != NULL;
    bool slow = rules->slow_permille > 0 && (!same_shape || breaker->slow_window == NULL);
    made[0] = !same_shape ? new_window(rules, HFI_COLUMNS) : NULL;
    made[1] = slow ? new_window(rules, 1) : NULL;
    made[2] = causes ? new_window(rules, HF_CAUSES) : NULL;
    if ((same_shape || made[0] != NULL) && (!slow || made[1] != NULL) && (!causes || made[2] != NULL))
        return 0;
    for (int i = 0; i < 3; i++)
        end_window(made[i]);
    return HF_ENOMEM;
}

/* Puts `made` in the place of `window`, and takes the shell away. */
static void replace(struct hfi_window *window, struct hfi_window *made) {
    if (made == NULL)
        return;
    hfi_window_end(window);
    *window = *made;
    hfi_free(made);
}

int hfi_breaker_reload(struct hfi_breaker *breaker, struct hf_mono now, const struct hfi_breaker_rules *rules) {
    struct hfi_window *made[3];
    pthread_mutex_lock(&breaker->lock);
    const struct hfi_breaker_rules *old = hfi_breaker_rules(breaker);
    bool same_shape = old->window_ms == rules->window_ms && old->slices == rules->slices;
    hfi_breaker_tick_locked(breaker, now); /* what time has brought about by the old rules */
    int code = new_windows(breaker, rules, same_shape, made);
    if (code == 0) {
        replace(&breaker->window, made[0]);
        if (breaker->more != NULL)
            replace(&breaker->more->causes_window, made[2]);
        if (made[1] != NULL || !same_shape) {
            end_window(breaker->slow_window);
            breaker->slow_window = made[1];
        }
        hfi_breaker_take_rules(breaker, rules);
        hfi_breaker_turn_locked(breaker, now);
        if (hfi_word_state(hfi_breaker_word(breaker)) == HF_BREAKER_HALF_OPEN)
            hfi_breaker_judge_locked(breaker, now, "probe_failed", HF_CAUSE_OTHER);
    }
    pthread_mutex_unlock(&breaker->lock);
    return code;
}

void hfi_breaker_tell(struct hfi_breaker *breaker) {
    pthread_mutex_lock(&breaker->lock);
    hfi_breaker_unlock(breaker);
}

/* ------------------------------------------------------------------ a sample */

/* The run of failures that one at `now` would go on with: 0 when the last was too long ago. */
static uint32_t run_until(const struct hfi_breaker *breaker, struct hf_mono now) {
    int64_t window_ms = hfi_breaker_rules(breaker)->window_ms;
    int64_t gap_ms = window_ms > RUN_GAP_MS / 10 ? hfi_mul(window_ms, 10) : RUN_GAP_MS;
    bool goes_on = hfi_sub(now.us, breaker->run_us) <= hfi_ms_to_us(gap_ms);
    return goes_on ? atomic_load_explicit(&breaker->run, memory_order_relaxed) : 0;
}

/* The length of the unbroken run of failures that this one ends. */
static uint32_t run_length(struct hfi_breaker *breaker, struct hf_mono now) {
    uint32_t run = run_until(breaker, now);
    run += run < UINT32_MAX ? 1 : 0;
    breaker->run_us = now.us;
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
    char list[HFI_CAUSES_ROOM], text[HFI_REASON_MAX];
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
    breaker->slow += slow ? 1 : 0;
    if (!failure && !slow)
        return;
    if (hfi_breaker_more_locked(breaker) != NULL) {
        hfi_breaker_turn_locked(breaker, now); /* it may be new */
        breaker->more->causes[failure ? cause : HF_CAUSE_SLOW]++;
    }
    weigh(breaker, now, failure, slow);
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
