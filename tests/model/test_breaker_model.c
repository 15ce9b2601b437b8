/* SPDX-License-Identifier: MIT */
/*
 * The breaker against a plain model (reference.h) under chance: attempts of all ends, cancels, permits that nobody ever
 * reports, clocks of threads that are behind, jumps, reloads, hands and restarts. After every step all that can be seen
 * must agree. HF_SEED repeats a run; HF_FULL=1 makes the runs whole. B3, B6, B7, B8, B10, B11, B15, B18, B24, B26, B28,
 * W1, W2, W6, W7, W12.
 */
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/error.h"
#include "seed.h"

#define MS INT64_C(1000)
#define HOUR (3600 * 1000 * MS)

static struct hfi_breaker b;
static struct hfi_breaker_rules rules[2]; /* those of now and the next ones */
static int current;
static struct reference r;
static struct hf_permit permits[REFERENCE_PERMITS];
static struct hfi_random dice;
static int64_t clock_us;

static struct {
    uint64_t count;
    enum hf_breaker_state last;
    uint64_t generation;
    bool broken;
} heard;

/* How often each thing happened: a run in which one never does proves little. */
static struct {
    uint64_t admitted, refused[HFI_REFUSED_GATE + 1], states[HF_BREAKER_ISOLATED + 1], lost, late, slow, reloads, behind;
} tally;

static uint64_t below(uint64_t bound) {
    return hfi_random_below(&dice, bound);
}

static int64_t between(int64_t least, int64_t most) {
    return least + (int64_t)below((uint64_t)(most - least) + 1);
}

static void hear(const struct hfi_breaker_event *event, void *user) {
    (void)user;
    heard.broken |= event->from != heard.last || !reference_legal(event->from, event->to);
    heard.broken |= event->generation < heard.generation || event->reason[0] == '\0';
    heard.last = event->to;
    heard.generation = event->generation;
    heard.count++;
}

static struct hfi_breaker_rules any_rules(void) {
    struct hfi_breaker_rules made = {.window_ms = between(500, 3000),
                                     .slow_after_ms = between(5, 40),
                                     .break_ms = between(20, 100),
                                     .ramp_ms = below(3) ? between(50, below(2) ? 500 : 3000) : 0,
                                     .lease_ms = between(20, 200),
                                     .slices = (uint32_t)between(HFI_WINDOW_SLICES_MIN, HFI_WINDOW_SLICES_MAX),
                                     .ratio_permille = below(4) ? (uint32_t)between(200, 1000) : 1000,
                                     .slow_permille = below(2) ? (uint32_t)between(300, 1000) : 0,
                                     .break_jitter_permille = below(2) ? (uint32_t)below(500) : 0,
                                     .break_factor_permille = (uint32_t)between(1000, 3000),
                                     .min_calls = (uint32_t)between(1, 12),
                                     .consecutive = below(2) ? (uint32_t)between(2, 8) : 0,
                                     .probes = (uint32_t)between(1, HFI_BREAKER_PROBES_MAX),
                                     .ramp_cap = (uint32_t)between(1, 40)};
    made.max_break_ms = made.break_ms * between(1, 16);
    made.tolerated = (uint32_t)below(made.probes);
    return made;
}

/* The clock of the thread that comes now: most are right, some are behind. */
static int64_t now_us(void) {
    uint64_t kind = below(50);
    int64_t behind_us = kind == 0 ? between(0, 2000 * MS) : kind < 5 ? between(0, 20 * MS) : 0;
    tally.behind += behind_us > 0;
    return clock_us - behind_us;
}

static void compare(int64_t at_us) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&b, (struct hf_mono){at_us}, &look);
    reference_compare(&r, at_us, &look);
    assert_int_equal(heard.count, r.moves);
    assert_int_equal(heard.last, r.state);
    assert_false(heard.broken);
    tally.states[look.state]++;
}

static uint32_t allowance(int64_t at_us) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&b, (struct hf_mono){at_us}, &look);
    assert_int_equal(look.probe_ready, look.allowance > 0 && look.state != HF_BREAKER_CLOSED && look.state != HF_BREAKER_RAMP);
    return look.allowance;
}

static bool enter(int64_t at_us) {
    int64_t wait_ms = 0;
    int i = reference_free(&r, below(REFERENCE_PERMITS));
    if (i < 0)
        return false;
    uint32_t claimed = allowance(at_us);
    enum hfi_admission got = hfi_breaker_enter(&b, (struct hf_mono){at_us}, &permits[i], &wait_ms);
    reference_enter(&r, at_us, i, got, wait_ms, claimed);
    tally.admitted += got == HFI_ADMITTED;
    tally.refused[got]++;
    compare(at_us);
    return got == HFI_ADMITTED;
}

/* As many as it claims to admit now, and one more: exactly so many pass. */
static void crowd(int64_t at_us) {
    uint32_t claimed = allowance(at_us), passed = 0;
    int room = 0;
    for (int i = 0; i < REFERENCE_PERMITS; i++)
        room += !r.permits[i].held && !r.permits[i].in_use;
    if (claimed >= (uint32_t)room)
        return;
    while (passed <= claimed && enter(at_us))
        passed++;
    assert_int_equal(passed, claimed);
}

/* One that is held; -1: none found. */
static int any_held(void) {
    for (int tries = 0; tries < 8; tries++) {
        int i = (int)below(REFERENCE_PERMITS);
        if (r.permits[i].held)
            return i;
    }
    return -1;
}

static void leave(int64_t at_us) {
    int i = any_held();
    static uint64_t bias; /* of the peer: from all is well to all is lost */
    if (below(400) == 0)
        bias = below(11);
    if (i < 0)
        return;
    enum hf_verdict verdict = below(8) == 0       ? HF_VERDICT_NEUTRAL
                              : below(10) < bias ? HF_VERDICT_FAILURE
                                                 : HF_VERDICT_SUCCESS;
    enum hf_cause cause = (enum hf_cause)below(HF_CAUSES);
    bool life = below(2) != 0;
    struct hf_mono at = {at_us};
    tally.late += r.permits[i].generation != r.generation;
    tally.slow += at_us - r.permits[i].started_us > rules[current].slow_after_ms * MS;
    if (below(20) == 0) {
        verdict = HF_VERDICT_NEUTRAL;
        life = false;
        hfi_breaker_drop(&b, at, &permits[i]);
        reference_unstart(&r, i);
    } else {
        assert_int_equal(hfi_breaker_leave(&b, at, &permits[i], verdict, cause, life), 0);
    }
    reference_leave(&r, at_us, i, verdict, cause, life);
    compare(at_us);
    assert_int_equal(hfi_breaker_leave(&b, at, &permits[i], HF_VERDICT_FAILURE, cause, life), HF_ESTATE); /* B6 */
}

static void lose(void) {
    int i = any_held();
    if (i < 0)
        return;
    reference_lose(&r, i);
    tally.lost++;
}

static void reload(int64_t at_us) {
    struct hfi_breaker_rules *next = &rules[1 - current];
    *next = any_rules();
    if (below(2)) { /* of the same shape */
        next->window_ms = rules[current].window_ms;
        next->slices = rules[current].slices;
    }
    assert_int_equal(hfi_breaker_reload(&b, (struct hf_mono){at_us}, next), 0);
    hfi_breaker_tell(&b);
    reference_reload(&r, at_us, next);
    current = 1 - current;
    tally.reloads++;
}

static struct hfi_breaker_saved save(int64_t at_us) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&b, (struct hf_mono){at_us}, &look);
    struct hfi_breaker_saved saved = {.state = look.state, .until_us = look.until_us, .trips = look.trips};
    snprintf(saved.reason, sizeof saved.reason, "%s", look.reason[0] ? look.reason : "saved");
    return saved;
}

/* Another process takes up what this one knew: the permits of this one are gone with it. */
static void restart(int64_t at_us) {
    struct hfi_breaker_saved saved = save(at_us);
    if (saved.state == HF_BREAKER_HALF_OPEN || saved.state == HF_BREAKER_RAMP)
        saved.state = HF_BREAKER_CLOSED;
    hfi_breaker_end(&b);
    memset(&heard, 0, sizeof heard);
    assert_int_equal(hfi_breaker_init(&b, &rules[current], (uint32_t)hfi_random_next(&dice), hear), 0);
    reference_init(&r, &rules[current]);
    hfi_breaker_restore(&b, (struct hf_mono){at_us}, &saved);
    reference_restore(&r, at_us, &saved);
}

/* What another node knew comes in while this one works. */
static void hear_of_another(int64_t at_us) {
    static const enum hf_breaker_state states[] = {HF_BREAKER_CLOSED, HF_BREAKER_OPEN, HF_BREAKER_ISOLATED};
    struct hfi_breaker_saved saved = {.state = states[below(3)],
                                      .until_us = at_us + between(-100 * MS, 3000 * MS),
                                      .trips = (uint32_t)below(6),
                                      .reason = "another node"};
    hfi_breaker_restore(&b, (struct hf_mono){at_us}, &saved);
    reference_restore(&r, at_us, &saved);
}

static void isolate(int64_t at_us) {
    int64_t length_ms = below(3) ? between(1, 700) : 0;
    hfi_breaker_isolate(&b, (struct hf_mono){at_us}, length_ms, "by hand");
    reference_isolate(&r, at_us, length_ms > 0 ? at_us + length_ms * MS : HFI_FOREVER_US);
}

static void by_hand(int64_t at_us) {
    int64_t length_ms = between(0, 50);
    switch (below(7)) {
    case 0:
        isolate(at_us);
        break;
    case 1:
        hfi_breaker_close(&b, (struct hf_mono){at_us});
        reference_close(&r, at_us);
        break;
    case 2:
    case 3:
        hfi_breaker_gate(&b, (struct hf_mono){at_us + length_ms * MS});
        reference_gate(&r, at_us + length_ms * MS);
        break;
    case 4:
        reload(at_us);
        break;
    case 5:
        hear_of_another(at_us);
        break;
    default:
        if (below(4) == 0)
            restart(at_us);
    }
}

static void pass_time(void) {
    uint64_t kind = below(1000);
    clock_us += kind == 0 ? between(0, 3 * HOUR) : kind < 30 ? between(0, 4000 * MS) : between(0, 6000);
    if (below(8) == 0)
        clock_us += clock_us % MS == 0 ? 0 : MS - clock_us % MS; /* whole numbers have edges of their own */
}

static void step(void) {
    uint64_t kind = below(1000);
    if (kind < 200) {
        pass_time();
        if (r.state == HF_BREAKER_OPEN && below(6) == 0)
            clock_us = r.until_us + (int64_t)below(3) - 1; /* the very end of the break */
    }
    int64_t at_us = now_us();
    if (kind < 200)
        ;
    else if (kind < 560)
        (void)enter(at_us);
    else if (kind < 570)
        crowd(at_us);
    else if (kind < 950)
        leave(at_us);
    else if (kind < 965)
        lose();
    else if (kind < 990) {
        hfi_breaker_tick(&b, (struct hf_mono){at_us});
        reference_tick(&r, at_us);
    } else
        by_hand(at_us);
    compare(at_us);
    if (below(16) == 0)
        compare(at_us + between(0, 5000 * MS)); /* looking ahead changes nothing */
}

static void run(int steps) {
    memset(&heard, 0, sizeof heard);
    memset(permits, 0, sizeof permits);
    current = 0;
    rules[0] = any_rules();
    clock_us = 1000000 * MS;
    assert_int_equal(hfi_breaker_init(&b, &rules[0], (uint32_t)hfi_random_next(&dice), hear), 0);
    reference_init(&r, &rules[0]);
    for (int i = 0; i < steps; i++)
        step();
    hfi_breaker_end(&b);
}

/* All runs together met everything there is. */
static void everything_was_met(void) {
    for (int i = HFI_REFUSED_OPEN; i <= HFI_REFUSED_GATE; i++)
        assert_true(tally.refused[i] > 0);
    for (int i = HF_BREAKER_CLOSED; i <= HF_BREAKER_ISOLATED; i++)
        assert_true(tally.states[i] > 0);
    assert_true(tally.admitted > 0 && tally.lost > 0 && tally.late > 0 && tally.slow > 0 && tally.reloads > 0);
    assert_true(tally.behind > 0);
}

static void agrees_with_the_model(void **state) {
    (void)state;
    bool full = getenv("HF_FULL") != NULL;
    hfi_random_seed(&dice, test_seed("breaker model"));
    memset(&tally, 0, sizeof tally);
    for (int round = 0; round < (full ? 40 : 5); round++)
        run(full ? 100000 : 20000);
    everything_was_met();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
