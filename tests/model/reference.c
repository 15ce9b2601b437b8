/* SPDX-License-Identifier: MIT */
/* The plain model of a breaker. See reference.h. */
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS INT64_C(1000)
#define HOUR (3600 * 1000 * MS)

bool reference_legal(enum hf_breaker_state from, enum hf_breaker_state to) {
    switch (from) {
    case HF_BREAKER_CLOSED:
        return to == HF_BREAKER_OPEN || to == HF_BREAKER_ISOLATED;
    case HF_BREAKER_OPEN: /* never again to open */
        return to == HF_BREAKER_HALF_OPEN || to == HF_BREAKER_ISOLATED || to == HF_BREAKER_CLOSED;
    case HF_BREAKER_HALF_OPEN:
    case HF_BREAKER_RAMP:
        return to != from && !(from == HF_BREAKER_RAMP && to == HF_BREAKER_HALF_OPEN);
    case HF_BREAKER_ISOLATED:
        return to != HF_BREAKER_ISOLATED && to != HF_BREAKER_RAMP;
    }
    return false;
}

void reference_init(struct reference *r, const struct hfi_breaker_rules *rules) {
    memset(r, 0, sizeof *r);
    r->rules = *rules;
    r->state = HF_BREAKER_CLOSED;
    r->generation = 1;
    r->latest_us = INT64_MIN;
}

static void seen(struct reference *r, int64_t now_us) {
    r->latest_us = now_us > r->latest_us ? now_us : r->latest_us;
}

static void go(struct reference *r, int64_t now_us, enum hf_breaker_state to) {
    assert_true(reference_legal(r->state, to));
    bool ramp_over = r->state == HF_BREAKER_RAMP && to == HF_BREAKER_CLOSED &&
                     now_us - r->ramp_us >= r->rules.ramp_ms * MS;
    bool anew = to == HF_BREAKER_RAMP || (to == HF_BREAKER_CLOSED && r->state != HF_BREAKER_RAMP);
    r->generation += ramp_over ? 0 : 1; /* the attempts of a ramp are those of the closed state that follows */
    r->state = to;
    r->until_us = r->shortest_us = r->longest_us = 0;
    r->passed = r->failed = r->life = 0;
    r->moves++;
    seen(r, now_us);
    if (anew) { /* nothing of before counts any more (B24) */
        r->sample_count = r->run = 0;
        r->healthy_us = now_us;
    }
    if (to == HF_BREAKER_RAMP) {
        r->ramp_us = now_us;
        r->start_count = 0;
        r->newest_us = 0;
    }
}

static void open_up(struct reference *r, int64_t now_us) {
    bool closed = r->state == HF_BREAKER_CLOSED || r->state == HF_BREAKER_RAMP;
    bool healthy = closed && now_us - r->healthy_us >= r->rules.window_ms * MS;
    r->trips = healthy ? 1 : r->trips + 1;
    double max_ms = (double)r->rules.max_break_ms, spread = (double)r->rules.break_jitter_permille / 1000;
    double ms = (double)r->rules.break_ms * pow((double)r->rules.break_factor_permille / 1000, r->trips - 1);
    ms = ms < max_ms ? ms : max_ms;
    double least = ms * (1 - spread) - 1, most = ms * (1 + spread) + 1;
    go(r, now_us, HF_BREAKER_OPEN);
    r->shortest_us = now_us + (int64_t)((least > 1 ? least : 1) * (double)MS);
    r->longest_us = now_us + (int64_t)((most < max_ms ? most : max_ms) * (double)MS);
}

static void judge(struct reference *r, int64_t now_us) {
    if (r->failed > r->rules.tolerated)
        open_up(r, now_us);
    else if (r->passed + r->failed >= r->rules.probes || r->life >= 10 * r->rules.probes)
        go(r, now_us, r->rules.ramp_ms > 0 ? HF_BREAKER_RAMP : HF_BREAKER_CLOSED);
}

static uint32_t out(const struct reference *r, enum reference_kind kind) {
    uint32_t count = 0;
    for (int i = 0; i < REFERENCE_PERMITS; i++) {
        const struct reference_permit *p = &r->permits[i];
        count += p->in_use && p->kind == kind && p->generation == r->generation;
    }
    return count;
}

uint32_t reference_probes_out(const struct reference *r) {
    return out(r, PROBE_PERMIT);
}

static void lapse(struct reference *r, int64_t now_us) {
    uint32_t lost = 0;
    for (int i = 0; i < REFERENCE_PERMITS; i++) {
        struct reference_permit *p = &r->permits[i];
        if (p->in_use && p->kind == PROBE_PERMIT && p->generation == r->generation && now_us > p->lease_us) {
            p->in_use = false;
            lost++;
        }
    }
    if (lost == 0)
        return;
    r->failed += lost; /* a lost probe is a failed one (B3) */
    r->life = 0;
    judge(r, now_us);
}

void reference_tick(struct reference *r, int64_t now_us) {
    bool forever = r->until_us == HFI_FOREVER_US;
    if (r->state == HF_BREAKER_OPEN && now_us >= r->until_us)
        go(r, now_us, HF_BREAKER_HALF_OPEN);
    else if (r->state == HF_BREAKER_ISOLATED && !forever && now_us >= r->until_us)
        go(r, now_us, HF_BREAKER_HALF_OPEN);
    else if (r->state == HF_BREAKER_RAMP && now_us - r->ramp_us >= r->rules.ramp_ms * MS)
        go(r, now_us, HF_BREAKER_CLOSED);
    else if (r->state == HF_BREAKER_HALF_OPEN)
        lapse(r, now_us);
}

/* ------------------------------------------------------------------ the window */

static int64_t slice_us(const struct reference *r) {
    return r->rules.window_ms * MS / r->rules.slices;
}

static bool in_window(const struct reference *r, int64_t now_us, const struct reference_sample *sample) {
    int64_t at_us = now_us > r->latest_us ? now_us : r->latest_us;
    return sample->at_us / slice_us(r) > at_us / slice_us(r) - r->rules.slices;
}

static void sum_up(const struct reference *r, int64_t now_us, struct hfi_window_sum *sum, struct hf_causes *causes) {
    memset(sum, 0, sizeof *sum);
    memset(causes, 0, sizeof *causes);
    for (int i = 0; i < r->sample_count; i++) {
        const struct reference_sample *sample = &r->samples[i];
        if (!in_window(r, now_us, sample))
            continue;
        sum->calls++;
        sum->failures += sample->failure;
        sum->slow += sample->slow;
        if (sample->failure || sample->slow)
            causes->counts[sample->failure ? sample->cause : HF_CAUSE_SLOW]++;
    }
}

static void forget_old(struct reference *r) {
    int kept = 0;
    for (int i = 0; i < r->sample_count; i++)
        if (in_window(r, r->latest_us, &r->samples[i]))
            r->samples[kept++] = r->samples[i];
    r->sample_count = kept;
}

static bool run_is_broken(const struct reference *r, int64_t now_us) {
    int64_t gap_us = r->rules.window_ms * MS * 10 > HOUR ? r->rules.window_ms * MS * 10 : HOUR;
    return r->run == 0 || now_us - r->run_us > gap_us; /* W7, W8 */
}

static void sample(struct reference *r, int64_t now_us, bool failure, bool slow, enum hf_cause cause) {
    const struct hfi_breaker_rules *rules = &r->rules;
    struct hfi_window_sum sum;
    struct hf_causes causes;
    seen(r, now_us);
    if (r->sample_count == REFERENCE_SAMPLES)
        forget_old(r);
    assert_true(r->sample_count < REFERENCE_SAMPLES);
    r->samples[r->sample_count++] = (struct reference_sample){r->latest_us, failure, slow, cause};
    if (!failure)
        r->run = 0;
    if (failure && rules->consecutive > 0) {
        r->run = run_is_broken(r, now_us) ? 1 : r->run + 1;
        r->run_us = now_us;
    }
    sum_up(r, now_us, &sum, &causes);
    bool enough = sum.calls >= rules->min_calls;
    bool by_ratio = failure && enough && sum.failures * 1000 >= rules->ratio_permille * sum.calls;
    bool by_pace = slow && enough && sum.slow * 1000 >= rules->slow_permille * sum.calls;
    bool by_run = failure && rules->consecutive > 0 && r->run >= rules->consecutive;
    if (by_ratio || by_pace || by_run)
        open_up(r, now_us);
}

/* ------------------------------------------------------------------ the ramp */

/* ceil(cap × (0.1 + 0.9 t/ramp)) */
static uint32_t ramp_limit(const struct reference *r, int64_t now_us) {
    double cap = r->rules.ramp_cap > 0 ? r->rules.ramp_cap : 1;
    if (r->rules.ramp_ms == 0)
        return (uint32_t)cap; /* a reload took the ramp away */
    double t = now_us > r->ramp_us ? (double)((now_us - r->ramp_us) / 1000) : 0; /* whole ms */
    double limit = ceil(cap * (0.1 + 0.9 * t / (double)r->rules.ramp_ms) - 1e-9);
    return (uint32_t)(limit < cap ? limit : cap);
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* When a start at `now_us` counts as: that of a clock that is behind as of the newest. */
static int64_t start_at(const struct reference *r, int64_t now_us) {
    return later(now_us, later(r->newest_us, r->ramp_us));
}

/* Starts of the last `span_us`. */
static uint32_t starts_in(const struct reference *r, int64_t now_us, int64_t span_us) {
    uint32_t count = 0;
    int64_t at_us = start_at(r, now_us);
    for (int i = 0; i < r->start_count; i++)
        count += r->starts[i] > at_us - span_us;
    return count;
}

static void check_ramp(struct reference *r, int64_t now_us, bool admitted) {
    uint32_t limit = ramp_limit(r, now_us), in_flight = out(r, RAMP_PERMIT);
    if (admitted) {
        assert_in_range(in_flight + 1, 1, limit);
        assert_in_range(starts_in(r, now_us, 100 * MS) + 1, 1, limit);
        assert_true(r->start_count < REFERENCE_STARTS);
        int64_t at_us = start_at(r, now_us);
        r->starts[r->start_count++] = r->newest_us = at_us;
    } else if (!r->peak_unknown) { /* it counts in steps of 10 ms, and is never stricter than that */
        assert_true(in_flight >= limit || starts_in(r, now_us, 110 * MS) >= limit);
    }
}

/* ------------------------------------------------------------------ permits */

int reference_free(const struct reference *r, uint64_t from) {
    for (int tries = 0; tries < REFERENCE_PERMITS; tries++) {
        int i = (int)((from + (uint64_t)tries) % REFERENCE_PERMITS);
        const struct reference_permit *p = &r->permits[i];
        if (!p->held && (!p->in_use || p->generation != r->generation))
            return i;
    }
    return -1;
}

static void check_wait(int64_t now_us, int64_t until_us, int64_t wait_ms) {
    assert_true(wait_ms >= 1);
    assert_true(wait_ms == 1 || now_us + (wait_ms - 1) * MS < until_us); /* to the ms, and */
    assert_true(now_us + wait_ms * MS >= until_us);                      /* never early */
}

/* What it has to say now. In the ramp both are right here; see check_ramp. */
static enum hfi_admission expected(const struct reference *r, int64_t now_us, enum hfi_admission got) {
    switch (r->state) {
    case HF_BREAKER_OPEN:
        return HFI_REFUSED_OPEN;
    case HF_BREAKER_ISOLATED:
        return HFI_REFUSED_ISOLATED;
    default:
        break;
    }
    if (now_us < r->gate_us)
        return HFI_REFUSED_GATE;
    if (r->state == HF_BREAKER_HALF_OPEN) /* exactly N at once and counted (B7) */
        return reference_probes_out(r) + r->passed + r->failed < r->rules.probes ? HFI_ADMITTED : HFI_REFUSED_HALF_OPEN;
    return r->state == HF_BREAKER_RAMP && got == HFI_REFUSED_RAMP ? got : HFI_ADMITTED;
}

void reference_enter(struct reference *r, int64_t now_us, int i, enum hfi_admission got, int64_t wait_ms,
                     uint32_t allowance) {
    if (r->state != HF_BREAKER_CLOSED)
        reference_tick(r, now_us);
    assert_int_equal(got, expected(r, now_us, got));
    assert_int_equal(allowance > 0, got == HFI_ADMITTED); /* B26 */
    if (r->state == HF_BREAKER_RAMP && got != HFI_REFUSED_GATE)
        check_ramp(r, now_us, got == HFI_ADMITTED);
    if (got == HFI_REFUSED_OPEN && r->longest_us == 0)
        check_wait(now_us, later(r->until_us, r->gate_us), wait_ms);
    else if (got == HFI_REFUSED_GATE)
        check_wait(now_us, r->gate_us, wait_ms);
    else if (got == HFI_REFUSED_ISOLATED && r->until_us != HFI_FOREVER_US)
        check_wait(now_us, r->until_us, wait_ms);
    else if (got != HFI_ADMITTED)
        assert_true(wait_ms >= 1);
    if (got != HFI_ADMITTED)
        return;
    enum reference_kind kind = r->state == HF_BREAKER_HALF_OPEN ? PROBE_PERMIT
                               : r->state == HF_BREAKER_RAMP    ? RAMP_PERMIT
                                                                : PLAIN_PERMIT;
    r->permits[i] = (struct reference_permit){.held = true,
                                              .in_use = kind != PLAIN_PERMIT,
                                              .kind = kind,
                                              .generation = r->generation,
                                              .started_us = now_us,
                                              .start_us = r->newest_us,
                                              .lease_us = now_us + r->rules.lease_ms * MS};
}

void reference_lose(struct reference *r, int i) {
    r->permits[i].held = false; /* a probe's slot until it lapses, a place in the ramp until that is over */
}

void reference_unstart(struct reference *r, int i) {
    const struct reference_permit *p = &r->permits[i];
    if (p->kind != RAMP_PERMIT || p->generation != r->generation)
        return;
    r->peak_unknown |= p->start_us != p->started_us; /* of a clock behind: the ramp may be stricter for a while */
    for (int k = r->start_count - 1; k >= 0; k--) {
        if (r->starts[k] != p->start_us)
            continue;
        memmove(&r->starts[k], &r->starts[k + 1], (size_t)(--r->start_count - k) * sizeof r->starts[0]);
        return;
    }
}

void reference_leave(struct reference *r, int64_t now_us, int i, enum hf_verdict verdict, enum hf_cause cause, bool life) {
    struct reference_permit *p = &r->permits[i];
    bool slow = r->rules.slow_permille > 0 && now_us - p->started_us > r->rules.slow_after_ms * MS;
    bool failure = verdict == HF_VERDICT_FAILURE;
    if (p->kind != PLAIN_PERMIT)
        reference_tick(r, now_us);
    bool counts = p->generation == r->generation && (p->in_use || p->kind != PROBE_PERMIT);
    p->held = p->in_use = false;
    if (!counts)
        return; /* of an older generation, or lapsed (B6, B8) */
    if (p->kind != PROBE_PERMIT) {
        if (verdict != HF_VERDICT_NEUTRAL) /* that is no sample (B9, B19, B28) */
            sample(r, now_us, failure, slow, cause);
        return;
    }
    if (verdict == HF_VERDICT_NEUTRAL) {
        r->life += life;
    } else if (failure || slow) {
        r->failed++;
        r->life = 0;
    } else {
        r->passed++;
    }
    judge(r, now_us);
}

/* ------------------------------------------------------------------ from outside */

void reference_isolate(struct reference *r, int64_t now_us, int64_t until_us) {
    if (r->state != HF_BREAKER_ISOLATED)
        go(r, now_us, HF_BREAKER_ISOLATED);
    r->until_us = until_us;
}

void reference_close(struct reference *r, int64_t now_us) {
    if (r->state != HF_BREAKER_CLOSED)
        go(r, now_us, HF_BREAKER_CLOSED);
    r->trips = 0;
    r->gate_us = 0;
    r->sample_count = r->run = 0;
    r->healthy_us = now_us;
}

void reference_gate(struct reference *r, int64_t until_us) {
    r->gate_us = later(r->gate_us, until_us);
}

void reference_reload(struct reference *r, int64_t now_us, const struct hfi_breaker_rules *rules) {
    reference_tick(r, now_us);
    if (rules->window_ms != r->rules.window_ms || rules->slices != r->rules.slices) {
        r->sample_count = 0;
        r->latest_us = now_us;
    }
    seen(r, now_us);
    r->rules = *rules;
    if (r->state == HF_BREAKER_HALF_OPEN)
        judge(r, now_us);
}

void reference_restore(struct reference *r, int64_t now_us, const struct hfi_breaker_saved *saved) {
    int64_t latest_us = now_us + r->rules.max_break_ms * MS;
    uint32_t trips = saved->trips > 0 ? saved->trips : 1;
    if (saved->state == HF_BREAKER_ISOLATED) {
        reference_isolate(r, now_us, saved->until_us);
    } else if (saved->state == HF_BREAKER_OPEN) {
        r->trips = trips > r->trips ? trips : r->trips;
        if (r->state == HF_BREAKER_OPEN)
            return; /* keeps its own break */
        go(r, now_us, HF_BREAKER_OPEN);
        r->until_us = saved->until_us < latest_us ? saved->until_us : latest_us;
    } else if (r->state != HF_BREAKER_CLOSED) {
        reference_close(r, now_us);
    }
}

/* ------------------------------------------------------------------ comparing */

/* So many failures would open it, and not one less. */
static void check_failures_to_trip(const struct reference *r, int64_t now_us, const struct hfi_window_sum *sum, uint64_t n) {
    uint64_t run = run_is_broken(r, now_us) ? 0 : r->run;
    bool never = r->rules.ratio_permille >= 1000 && sum->calls > sum->failures && r->rules.consecutive == 0;
    assert_int_equal(n == UINT64_MAX, never); /* W12 */
    for (uint64_t more = n; !never && n > 0 && more + 1 >= n && more > 0; more--) {
        bool enough = sum->calls + more >= r->rules.min_calls;
        bool by_ratio = enough && (sum->failures + more) * 1000 >= r->rules.ratio_permille * (sum->calls + more);
        bool by_run = r->rules.consecutive > 0 && run + more >= r->rules.consecutive;
        assert_int_equal(by_ratio || by_run, more == n);
    }
    assert_true(n >= 1);
}

static void compare_window(struct reference *r, int64_t now_us, const struct hfi_breaker_look *look) {
    struct hfi_window_sum sum;
    struct hf_causes causes;
    sum_up(r, now_us, &sum, &causes);
    assert_int_equal(look->window.calls, sum.calls);
    assert_int_equal(look->window.failures, sum.failures);
    assert_int_equal(look->window.slow, sum.slow);
    assert_memory_equal(look->causes.counts, causes.counts, sizeof causes.counts);
    if (r->state == HF_BREAKER_CLOSED || r->state == HF_BREAKER_RAMP)
        check_failures_to_trip(r, now_us, &sum, look->failures_to_trip);
}

void reference_compare(struct reference *r, int64_t now_us, const struct hfi_breaker_look *look) {
    bool closed = r->state == HF_BREAKER_CLOSED || r->state == HF_BREAKER_RAMP;
    bool healthy = closed && now_us - r->healthy_us >= r->rules.window_ms * MS;
    assert_int_equal(look->state, r->state);
    assert_int_equal(look->generation, r->generation);
    assert_int_equal(look->gate_us, r->gate_us);
    assert_int_equal(look->trips, healthy ? 0 : r->trips);
    if (r->state == HF_BREAKER_OPEN && r->longest_us != 0) {
        assert_in_range(look->until_us, r->shortest_us, r->longest_us);
        r->until_us = look->until_us;
        r->longest_us = 0;
    }
    if (r->state == HF_BREAKER_OPEN || r->state == HF_BREAKER_ISOLATED)
        assert_int_equal(look->until_us, r->until_us);
    assert_int_equal(look->probes_in_flight, r->state == HF_BREAKER_HALF_OPEN ? reference_probes_out(r) : 0);
    compare_window(r, now_us, look);
}
