/* SPDX-License-Identifier: MIT */
/*
 * The breaker against a plain model over random operations. The model keeps every permit in a list and knows only the
 * rules of the design; after each operation state, generation, end of the break, probes and counts must agree.
 * HF_SEED repeats a run. B3, B6, B8, B10, B11, B15, B18, B24.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/error.h"
#include "resilience/breaker.h"
#include "seed.h"

#define MS INT64_C(1000)

enum { PERMITS = 40, SAMPLES = 20000, STEPS = 4000, ROUNDS = 60 };

struct held {
    struct hf_permit permit;
    bool used;
    uint64_t generation;
    bool probe, lapsed;
    int64_t lease_us;
};

static struct model {
    struct hfi_breaker_rules rules;
    int64_t now_us, until_us, gate_us, healthy_us, ramp_us;
    enum hf_breaker_state state;
    uint64_t generation;
    uint32_t trips, passed, failed, life;
    struct held held[PERMITS];
    struct {
        int64_t tick;
        bool failure;
    } samples[SAMPLES];
    int sample_count;
} m;
static struct hfi_breaker b;

static struct hf_mono now(void) {
    return (struct hf_mono){m.now_us};
}

static void go(enum hf_breaker_state to, int64_t until_us) {
    m.state = to;
    m.until_us = until_us;
    m.generation++;
    m.passed = m.failed = m.life = 0;
}

static void to_open(void) {
    bool healthy = (m.state == HF_BREAKER_CLOSED || m.state == HF_BREAKER_RAMP) &&
                   m.now_us - m.healthy_us >= m.rules.window_ms * MS;
    m.trips = healthy ? 1 : m.trips + 1;
    int64_t length = m.rules.break_ms;
    for (uint32_t i = 1; i < m.trips && length < m.rules.max_break_ms; i++)
        length *= 2;
    if (length > m.rules.max_break_ms)
        length = m.rules.max_break_ms;
    go(HF_BREAKER_OPEN, m.now_us + length * MS);
}

static void to_ramp(void) {
    m.healthy_us = m.ramp_us = m.now_us;
    m.sample_count = 0;
    go(m.rules.ramp_ms > 0 ? HF_BREAKER_RAMP : HF_BREAKER_CLOSED, 0);
}

static void judge(void) {
    if (m.failed > m.rules.tolerated)
        to_open();
    else if (m.passed + m.failed >= m.rules.probes || m.life >= 10 * m.rules.probes)
        to_ramp();
}

static uint32_t probes_out(void) {
    uint32_t count = 0;
    for (int i = 0; i < PERMITS; i++)
        count += m.held[i].used && m.held[i].probe && !m.held[i].lapsed && m.held[i].generation == m.generation;
    return count;
}

static void tick(void) {
    if (m.state == HF_BREAKER_OPEN && m.now_us >= m.until_us) {
        go(HF_BREAKER_HALF_OPEN, 0);
    } else if (m.state == HF_BREAKER_ISOLATED && m.until_us != HFI_FOREVER_US && m.now_us >= m.until_us) {
        go(HF_BREAKER_HALF_OPEN, 0);
    } else if (m.state == HF_BREAKER_RAMP && m.now_us - m.ramp_us >= m.rules.ramp_ms * MS) {
        m.state = HF_BREAKER_CLOSED;
    } else if (m.state == HF_BREAKER_HALF_OPEN) {
        uint32_t lost = 0;
        for (int i = 0; i < PERMITS; i++) {
            struct held *h = &m.held[i];
            if (h->used && h->probe && !h->lapsed && h->generation == m.generation && m.now_us > h->lease_us) {
                h->lapsed = true;
                lost++;
            }
        }
        if (lost > 0) {
            m.failed += lost;
            m.life = 0;
            judge();
        }
    }
}

static void sum(uint64_t *calls, uint64_t *failures) {
    int64_t slice = m.rules.window_ms * MS / HFI_WINDOW_SLICES;
    *calls = *failures = 0;
    for (int i = 0; i < m.sample_count; i++) {
        if (m.samples[i].tick > m.now_us / slice - HFI_WINDOW_SLICES) {
            *calls += 1;
            *failures += m.samples[i].failure;
        }
    }
}

static void sample(bool failure) {
    uint64_t calls, failures;
    assert_true(m.sample_count < SAMPLES);
    m.samples[m.sample_count].tick = m.now_us / (m.rules.window_ms * MS / HFI_WINDOW_SLICES);
    m.samples[m.sample_count++].failure = failure;
    sum(&calls, &failures);
    if (failure && calls >= m.rules.min_calls && failures * 1000 >= m.rules.ratio_permille * calls)
        to_open();
}

static void enter(struct hfi_random *random) {
    struct held *h = &m.held[hfi_random_below(random, PERMITS)];
    struct hf_permit permit;
    int64_t wait = 0;
    if (h->used)
        return;
    if (m.state != HF_BREAKER_CLOSED)
        tick();
    enum hfi_admission got = hfi_breaker_enter(&b, now(), &permit, &wait);
    if (m.state == HF_BREAKER_OPEN) {
        assert_int_equal(got, HFI_REFUSED_OPEN);
    } else if (m.state == HF_BREAKER_ISOLATED) {
        assert_int_equal(got, HFI_REFUSED_ISOLATED);
    } else if (m.now_us < m.gate_us) {
        assert_int_equal(got, HFI_REFUSED_GATE);
    } else if (m.state == HF_BREAKER_HALF_OPEN) {
        bool room = probes_out() + m.passed + m.failed < m.rules.probes;
        assert_int_equal(got, room ? HFI_ADMITTED : HFI_REFUSED_HALF_OPEN);
    } else if (m.state == HF_BREAKER_RAMP) {
        assert_true(got == HFI_ADMITTED || got == HFI_REFUSED_RAMP); /* its numbers have tests of their own */
    } else {
        assert_int_equal(got, HFI_ADMITTED);
    }
    if (got != HFI_ADMITTED) {
        assert_true(wait >= 1);
        return;
    }
    *h = (struct held){.permit = permit,
                       .used = true,
                       .generation = m.generation,
                       .probe = m.state == HF_BREAKER_HALF_OPEN,
                       .lease_us = m.now_us + m.rules.lease_ms * MS};
}

static void leave(struct hfi_random *random) {
    struct held *h = &m.held[hfi_random_below(random, PERMITS)];
    if (!h->used)
        return;
    enum hf_verdict verdict = (enum hf_verdict)hfi_random_below(random, 3);
    bool life = hfi_random_below(random, 2) != 0;
    bool locked = h->permit.slot != 0; /* probes and ramp permits let time catch up first */
    if (locked && m.state != HF_BREAKER_CLOSED)
        tick();
    bool current = h->generation == m.generation && !h->lapsed;
    h->used = false;
    assert_int_equal(hfi_breaker_leave(&b, now(), &h->permit, verdict, HF_CAUSE_OTHER, life), 0);
    assert_int_equal(hfi_breaker_leave(&b, now(), &h->permit, verdict, HF_CAUSE_OTHER, life), HF_ESTATE);
    if (!current)
        return;
    if (h->probe) {
        m.passed += verdict == HF_VERDICT_SUCCESS;
        m.failed += verdict == HF_VERDICT_FAILURE;
        m.life = verdict == HF_VERDICT_FAILURE ? 0 : m.life + (verdict == HF_VERDICT_NEUTRAL && life);
        judge();
    } else if (verdict != HF_VERDICT_NEUTRAL) {
        sample(verdict == HF_VERDICT_FAILURE);
    }
}

static void by_hand(struct hfi_random *random) {
    int64_t length_ms;
    switch (hfi_random_below(random, 6)) {
    case 0:
        length_ms = (int64_t)hfi_random_below(random, 3) * 700;
        hfi_breaker_isolate(&b, now(), length_ms, "by hand");
        m.state == HF_BREAKER_ISOLATED ? (void)0 : go(HF_BREAKER_ISOLATED, 0);
        m.until_us = length_ms > 0 ? m.now_us + length_ms * MS : HFI_FOREVER_US;
        break;
    case 1:
        hfi_breaker_close(&b, now());
        bool by_time = m.state == HF_BREAKER_RAMP && m.now_us - m.ramp_us >= m.rules.ramp_ms * MS;
        if (m.state != HF_BREAKER_CLOSED && !by_time)
            go(HF_BREAKER_CLOSED, 0);
        m.state = HF_BREAKER_CLOSED;
        m.trips = 0;
        m.gate_us = 0;
        m.sample_count = 0;
        m.healthy_us = m.now_us;
        break;
    case 2:
        length_ms = (int64_t)hfi_random_below(random, 50);
        hfi_breaker_gate(&b, (struct hf_mono){m.now_us + length_ms * MS});
        if (m.gate_us < m.now_us + length_ms * MS)
            m.gate_us = m.now_us + length_ms * MS;
        break;
    default:
        hfi_breaker_tick(&b, now());
        tick();
    }
}

static void compare(void) {
    struct hfi_breaker_look look;
    uint64_t calls, failures;
    hfi_breaker_look(&b, now(), &look);
    sum(&calls, &failures);
    assert_int_equal(look.state, m.state);
    assert_int_equal(look.generation, m.generation);
    if (m.state == HF_BREAKER_OPEN || m.state == HF_BREAKER_ISOLATED)
        assert_int_equal(look.until_us, m.until_us);
    if (m.state == HF_BREAKER_HALF_OPEN)
        assert_int_equal(look.probes_in_flight, probes_out());
    if (m.state == HF_BREAKER_OPEN || m.state == HF_BREAKER_HALF_OPEN)
        assert_int_equal(look.trips, m.trips);
    if (m.state == HF_BREAKER_CLOSED || m.state == HF_BREAKER_RAMP) {
        assert_int_equal(look.window.calls, calls);
        assert_int_equal(look.window.failures, failures);
    }
}

static void run(struct hfi_random *random) {
    memset(&m, 0, sizeof m);
    m.rules = (struct hfi_breaker_rules){.window_ms = 1200, .slices = 12,
                                         .break_ms = 50,
                                         .max_break_ms = 1000,
                                         .ramp_ms = hfi_random_below(random, 3) ? 300 : 0,
                                         .lease_ms = 150,
                                         .ratio_permille = 500,
                                         .break_factor_permille = 2000,
                                         .min_calls = 1 + (uint32_t)hfi_random_below(random, 8),
                                         .probes = 1 + (uint32_t)hfi_random_below(random, 5),
                                         .ramp_cap = 8};
    m.rules.tolerated = (uint32_t)hfi_random_below(random, m.rules.probes);
    m.now_us = 1000000 * MS;
    m.state = HF_BREAKER_CLOSED;
    m.generation = 1;
    hfi_breaker_init(&b, &m.rules, hfi_random_next(random), NULL, NULL);
    for (int step = 0; step < STEPS; step++) {
        uint64_t kind = hfi_random_below(random, 100);
        if (kind < 20)
            m.now_us += (int64_t)hfi_random_below(random, 10) * MS;
        else if (kind < 23)
            m.now_us += (int64_t)hfi_random_below(random, 2000) * MS;
        else if (kind < 60)
            enter(random);
        else if (kind < 97)
            leave(random);
        else
            by_hand(random);
        compare();
    }
    hfi_breaker_end(&b);
}

static void agrees_with_the_model(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("breaker model"));
    for (int round = 0; round < ROUNDS; round++)
        run(&random);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
