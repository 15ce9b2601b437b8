/* SPDX-License-Identifier: MIT */
/* The sliding window: W1, W2, W5, W6, W9, W10, F3, S0.29. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "holdfast/error.h"
#include "resilience/window.h"
#include "seed.h"

#define S INT64_C(1000000)
#define SLICE (5 * S) /* of 60 s */

/* What an owner does: counts in totals of its own. */
enum { CALLS, FAILURES, SLOW, WIDTH };
static struct hfi_window w;
static int64_t turn_us;
static uint64_t totals[WIDTH];
struct sum {
    uint64_t calls, failures, slow;
};

static struct hf_mono at(int64_t us) {
    return (struct hf_mono){us};
}

static void begin(int64_t window_ms, uint32_t slices) {
    hfi_free(w.memory);
    w = (struct hfi_window){hfi_window_slice_us(window_ms, slices), slices, WIDTH, hfi_window_memory(slices, WIDTH)};
    assert_non_null(w.memory);
    turn_us = 0;
    memset(totals, 0, sizeof totals);
}

static void turn(int64_t us) {
    int64_t before = turn_us;
    turn_us = hfi_window_turn(&w, turn_us, at(us), totals);
    assert_true(turn_us >= before && (turn_us > us || us < before));
}

static void add(int64_t us, bool failure, bool slow) {
    turn(us);
    totals[CALLS]++;
    totals[FAILURES] += failure;
    totals[SLOW] += slow;
}

static struct sum peek(int64_t us) {
    uint64_t sums[WIDTH];
    hfi_window_peek(&w, turn_us, at(us), totals, sums);
    return (struct sum){sums[CALLS], sums[FAILURES], sums[SLOW]};
}

static struct sum read_at(int64_t us) {
    turn(us);
    return peek(us);
}

static void w1_an_hour_idle_forgets_all(void **state) {
    (void)state;
    begin(60000, HFI_WINDOW_SLICES);
    for (int i = 0; i < 30; i++)
        add(1000 * S, true, true);
    assert_int_equal(read_at(1000 * S).failures, 30);
    add(4600 * S, true, false);
    struct sum sum = read_at(4600 * S);
    assert_int_equal(sum.calls, 1);
    assert_int_equal(sum.failures, 1);
    assert_int_equal(sum.slow, 0);
}

static void w10_reading_expires_too(void **state) {
    (void)state;
    begin(60000, HFI_WINDOW_SLICES);
    add(1000 * S, true, false);
    assert_int_equal(read_at(1059 * S).calls, 1);
    assert_int_equal(read_at(1060 * S).calls, 0);
    assert_int_equal(read_at(1060 * S).failures, 0);
}

static void w2_backward_time_is_clamped(void **state) {
    (void)state;
    begin(60000, HFI_WINDOW_SLICES);
    for (int i = 0; i < 100; i++)
        add(1000 * S + i * S / 2, false, false);
    for (int i = 0; i < 10; i++)
        add(1045 * S, true, false); /* five seconds back */
    assert_int_equal(read_at(1044 * S).calls, 110);
    assert_int_equal(read_at(0).calls, 110);
    assert_int_equal(read_at(-5).calls, 110);
}

/* GOB#21: at the edge of a tumbling window one failure of ten looks like nine of ten. Ours slides. */
static void w9_no_spike_at_an_edge(void **state) {
    (void)state;
    begin(60000, HFI_WINDOW_SLICES);
    int64_t now = 6000 * S;
    for (int i = 0; i < 600; i++, now += S / 10)
        add(now, i % 11 == 0, false);
    for (int i = 0; i < 600; i++, now += S / 10) {
        add(now, i % 11 == 0, false);
        struct sum sum = read_at(now);
        assert_true(sum.calls >= 540); /* eleven whole slices at least */
        assert_true(sum.failures * 100 <= sum.calls * 12);
    }
}

static void peek_changes_nothing(void **state) {
    (void)state;
    uint32_t memory[HFI_WINDOW_WORDS(HFI_WINDOW_SLICES, WIDTH)];
    begin(60000, HFI_WINDOW_SLICES);
    add(1000 * S, true, true);
    memcpy(memory, w.memory, sizeof memory);
    assert_int_equal(peek(1030 * S).failures, 1);
    assert_int_equal(peek(1060 * S).failures, 0);
    assert_int_equal(peek(9999 * S).calls, 0);
    assert_memory_equal(w.memory, memory, sizeof memory);
}

static void clear_empties(void **state) {
    (void)state;
    begin(60000, HFI_WINDOW_SLICES);
    for (int64_t s = 1000; s < 1100; s++)
        add(s * S, true, true);
    hfi_window_clear(&w, totals);
    struct sum sum = read_at(1099 * S);
    assert_int_equal(sum.calls + sum.failures + sum.slow, 0);
    add(1099 * S, true, true);
    assert_int_equal(read_at(1099 * S).slow, 1);
}

/* A place in the ring comes round: what is that old must not look fresh. */
static void old_slices_never_come_back(void **state) {
    (void)state;
    for (int64_t turns = 1; turns <= 3; turns++) {
        for (int64_t off = 0; off <= 13; off++) {
            begin(60000, HFI_WINDOW_SLICES);
            add(1000 * SLICE, true, false);
            int64_t later = (1000 + turns * 12 + off) * SLICE;
            assert_int_equal(peek(later).calls, 0);
            assert_int_equal(read_at(later).calls, 0);
        }
    }
    /* Used once in every twelve slices, so that one slice is never written and its neighbours stay. */
    begin(60000, HFI_WINDOW_SLICES);
    for (int64_t tick = 1001; tick < 1012; tick++)
        add(tick * SLICE, true, false);
    for (int64_t tick = 1200; tick < 1200 + 66000; tick += 12)
        add(tick * SLICE, false, false);
    assert_int_equal(read_at((1200 + 66000) * SLICE).failures, 0);
}

static void a_full_window_keeps_its_ratio(void **state) {
    (void)state;
    begin(60000, HFI_WINDOW_SLICES);
    for (int64_t tick = 0; tick < 30; tick++) {
        turn(tick * SLICE);
        totals[CALLS] += 2000000000; /* more than 32 bits hold, from the third slice on */
        totals[FAILURES] += 500000000;
        struct sum sum = peek(tick * SLICE);
        assert_true(sum.calls >= 2000000000 && sum.calls <= (uint64_t)(tick + 1) * 2000000000);
        assert_in_range(sum.failures * 1000 / sum.calls, 249, 250);
    }
    assert_int_equal(read_at(100 * SLICE).calls, 0);
}

/* W5: a slice keeps twelve bits of a count; what they leave out is counted all the same, one slice later. */
static void w5_large_counts_lose_nothing(void **state) {
    (void)state;
    struct hfi_random random;
    uint64_t counts[100];
    hfi_random_seed(&random, test_seed("large counts"));
    for (int round = 0; round < 200; round++) {
        begin(60000, HFI_WINDOW_SLICES);
        uint64_t most = UINT64_C(1) << hfi_random_below(&random, 31);
        for (int tick = 0; tick < 100; tick++) {
            turn(tick * SLICE);
            counts[tick] = hfi_random_below(&random, most + 1);
            totals[CALLS] += counts[tick];
            totals[FAILURES] += counts[tick];
            totals[SLOW] += counts[tick] / 2;
            uint64_t exact = 0, late = tick >= 12 ? most / 2048 + 1 : 0; /* of the slice that left last */
            for (int i = tick; i >= 0 && i > tick - 12; i--)
                exact += counts[i];
            struct sum sum = peek(tick * SLICE);
            assert_in_range(sum.calls, exact, exact + late);
            assert_int_equal(sum.failures, sum.calls);
            assert_in_range(sum.slow * 2, exact > 24 ? exact - 24 : 0, exact + 2 * late); /* halves are cut 12 times */
        }
    }
}

/* F3: a window of 300 s in 10 slices: each leaves after 300 s, and a read touches no more than the slices there are. */
static void f3_slices_are_chosen(void **state) {
    (void)state;
    begin(300000, 10);
    assert_int_equal(w.slice_us, 30 * S);
    for (int64_t s = 0; s < 300; s++)
        add((3000 + s) * S, s % 2 == 0, false);
    assert_int_equal(read_at(3299 * S).calls, 300);
    assert_int_equal(peek(3300 * S).calls, 270);
    assert_int_equal(peek(3300 * S).failures, 135);
    assert_int_equal(read_at(3569 * S).calls, 30);
    assert_int_equal(read_at(3570 * S).calls, 0);
}

static void no_memory_is_told(void **state) {
    (void)state;
    hfi_alloc_fail(1, 0);
    assert_null(hfi_window_memory(12, 2));
    hfi_alloc_fail(0, 0);
}

/* Against a plain list of samples, for 1 to 64 slices and windows of 1 ms to 64 s: total = Σ slices, nothing negative (W5, W6). */
static void agrees_with_a_list_of_samples(void **state) {
    (void)state;
    enum { SAMPLES = 2000 };
    static struct {
        int64_t tick;
        bool failure, slow;
    } list[SAMPLES];
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("window"));
    for (int round = 0; round < 128; round++) {
        uint32_t slices = 1 + (uint32_t)round % 64;
        int64_t window_ms = 1 + (int64_t)hfi_random_below(&random, round % 2 ? 64 : 64000);
        begin(window_ms, slices);
        int64_t now = (int64_t)hfi_random_below(&random, INT64_C(1) << 40), newest = 0;
        for (int i = 0; i < SAMPLES; i++) {
            now += (int64_t)hfi_random_below(&random, (uint64_t)(w.slice_us * (hfi_random_below(&random, 50) ? 1 : 40)));
            int64_t jitter = (int64_t)hfi_random_below(&random, 20) == 0 ? -w.slice_us * 3 : 0;
            int64_t tick = (now + jitter > 0 ? now + jitter : 0) / w.slice_us;
            newest = tick > newest ? tick : newest;
            list[i].tick = newest;
            list[i].failure = hfi_random_below(&random, 2) != 0;
            list[i].slow = hfi_random_below(&random, 2) != 0;
            add(now + jitter, list[i].failure, list[i].slow);
            struct sum expected = {0, 0, 0};
            int64_t seen = now / w.slice_us > newest ? now / w.slice_us : newest;
            for (int k = i; k >= 0 && list[k].tick > seen - slices; k--) {
                expected.calls++;
                expected.failures += list[k].failure;
                expected.slow += list[k].slow;
            }
            struct sum sum = peek(now);
            assert_int_equal(sum.calls, expected.calls);
            assert_int_equal(sum.failures, expected.failures);
            assert_int_equal(sum.slow, expected.slow);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w1_an_hour_idle_forgets_all),
        cmocka_unit_test(w10_reading_expires_too),
        cmocka_unit_test(w2_backward_time_is_clamped),
        cmocka_unit_test(w9_no_spike_at_an_edge),
        cmocka_unit_test(peek_changes_nothing),
        cmocka_unit_test(clear_empties),
        cmocka_unit_test(old_slices_never_come_back),
        cmocka_unit_test(a_full_window_keeps_its_ratio),
        cmocka_unit_test(w5_large_counts_lose_nothing),
        cmocka_unit_test(f3_slices_are_chosen),
        cmocka_unit_test(no_memory_is_told),
        cmocka_unit_test(agrees_with_a_list_of_samples),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hfi_free(w.memory);
    return failed ? 1 : 0;
}
