/* SPDX-License-Identifier: MIT */
/*
 * The breaker under a crowd: exactly N of 64 threads pass from open to half-open on every seed (B7), transitions form
 * a legal chain (B12, B13), what observers hear joins up (B22). Also run under ThreadSanitizer. HF_ROUNDS sets how many
 * seeds, HF_FULL=1 makes them 10,000.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "resilience/breaker.h"
#include "seed.h"

#define S INT64_C(1000000)
enum { CROWD = 64 };

static struct hfi_breaker b;
static pthread_barrier_t gate;
static _Atomic uint32_t admitted;
static _Atomic int64_t time_us;
static struct hf_permit permits[CROWD];
static bool probing[CROWD];
static _Atomic int stop;

static struct {
    _Atomic int count, broken, busy;
    enum hf_breaker_state last;
    uint64_t generation;
} heard;

/* Runs outside the lock, but never twice at once and always in order: plain fields are enough. */
static void hear(const struct hfi_breaker_event *event, void *user) {
    (void)user;
    if (atomic_exchange(&heard.busy, 1) != 0)
        atomic_fetch_add(&heard.broken, 1);
    bool joins = event->from == heard.last && event->generation >= heard.generation;
    if (!joins && atomic_load(&heard.count) > 0)
        atomic_fetch_add(&heard.broken, 1);
    heard.last = event->to;
    heard.generation = event->generation;
    atomic_fetch_add(&heard.count, 1);
    atomic_store(&heard.busy, 0);
}

static struct hfi_breaker_rules rules_of(uint32_t probes) {
    return (struct hfi_breaker_rules){.window_ms = 60000, .slices = 12,
                                      .break_ms = 5000,
                                      .max_break_ms = 60000,
                                      .ramp_ms = 10000,
                                      .lease_ms = 30000,
                                      .ratio_permille = 500,
                                      .break_factor_permille = 2000,
                                      .min_calls = 20,
                                      .probes = probes,
                                      .ramp_cap = 64};
}

static void *storm(void *user) {
    size_t id = (size_t)(uintptr_t)user;
    for (;;) {
        int64_t wait;
        pthread_barrier_wait(&gate);
        if (atomic_load(&stop))
            return NULL;
        struct hf_mono now = {atomic_load(&time_us)};
        probing[id] = hfi_breaker_enter(&b, now, &permits[id], &wait) == HFI_ADMITTED;
        if (probing[id])
            atomic_fetch_add(&admitted, 1);
        pthread_barrier_wait(&gate);
        if (probing[id])
            hfi_breaker_leave(&b, now, &permits[id], HF_VERDICT_SUCCESS, HF_CAUSE_OTHER, false);
        pthread_barrier_wait(&gate);
    }
}

static void start_crowd(pthread_t *threads, size_t count, void *(*run)(void *)) {
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i) != 0)
            abort();
}

static void b7_exactly_n_of_a_crowd(void **state) {
    (void)state;
    pthread_t threads[CROWD];
    struct hfi_random random;
    const char *wanted = getenv("HF_ROUNDS");
    long rounds = wanted != NULL ? atol(wanted) : getenv("HF_FULL") != NULL ? 10000 : 300;
    long wrong = 0, not_ramping = 0;
    hfi_random_seed(&random, test_seed("breaker crowd"));
    atomic_store(&stop, 0);
    pthread_barrier_init(&gate, NULL, CROWD + 1);
    start_crowd(threads, CROWD, storm);
    for (long round = 0; round < rounds; round++) {
        uint32_t probes = 1 + (uint32_t)hfi_random_below(&random, HFI_BREAKER_PROBES_MAX);
        struct hfi_breaker_rules rules = rules_of(probes);
        struct hfi_breaker_look look;
        struct hf_mono now = {1000 * S};
        hfi_breaker_init(&b, &rules, (uint32_t)hfi_random_next(&random), NULL);
        for (int i = 0; i < 20; i++) {
            struct hf_permit permit;
            int64_t wait;
            hfi_breaker_enter(&b, now, &permit, &wait);
            hfi_breaker_leave(&b, now, &permit, HF_VERDICT_FAILURE, HF_CAUSE_OTHER, false);
        }
        hfi_breaker_look(&b, now, &look);
        atomic_store(&time_us, look.until_us);
        atomic_store(&admitted, 0);
        pthread_barrier_wait(&gate); /* go */
        pthread_barrier_wait(&gate); /* all have asked */
        wrong += atomic_load(&admitted) != probes;
        pthread_barrier_wait(&gate); /* all have reported */
        hfi_breaker_look(&b, (struct hf_mono){look.until_us}, &look);
        not_ramping += look.state != HF_BREAKER_RAMP;
        hfi_breaker_end(&b);
    }
    atomic_store(&stop, 1);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
    assert_int_equal(wrong, 0);
    assert_int_equal(not_ramping, 0);
}

enum { HAMMERS = 8, EACH = 20000 };
static void *hammer(void *user) {
    uint64_t id = (uint64_t)(uintptr_t)user;
    pthread_barrier_wait(&gate);
    for (uint64_t i = 0; i < EACH; i++) {
        struct hf_permit permit;
        int64_t wait;
        struct hf_mono now = {1000 * S + (int64_t)(i * (id + 1) % 50) * S}; /* back and forth over the slices */
        hfi_breaker_enter(&b, now, &permit, &wait);
        hfi_breaker_leave(&b, now, &permit, i % 2 == 0 ? HF_VERDICT_FAILURE : HF_VERDICT_SUCCESS, HF_CAUSE_RESET, false);
    }
    return NULL;
}

/* W11: counts of many threads come out exactly. */
static void w11_threads_lose_nothing(void **state) {
    (void)state;
    pthread_t threads[HAMMERS];
    struct hfi_breaker_rules rules = rules_of(3);
    struct hfi_breaker_look look;
    rules.ratio_permille = 501; /* half never reaches it, if nothing is lost */
    rules.min_calls = HAMMERS * EACH;
    hfi_breaker_init(&b, &rules, 1, NULL);
    pthread_barrier_init(&gate, NULL, HAMMERS);
    start_crowd(threads, HAMMERS, hammer);
    for (int i = 0; i < HAMMERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
    hfi_breaker_look(&b, (struct hf_mono){1050 * S}, &look);
    assert_int_equal(look.window.calls, HAMMERS * EACH);
    assert_int_equal(look.window.failures, HAMMERS * EACH / 2);
    assert_int_equal(look.causes.counts[HF_CAUSE_RESET], HAMMERS * EACH / 2);
    hfi_breaker_end(&b);
}

static _Atomic long over_probes;

/* Every thread on its own: failures, successes, cancels, lost permits, isolation and closing, time moving all along. */
static void *quarrel(void *user) {
    struct hfi_random random;
    uint64_t id = (uint64_t)(uintptr_t)user;
    hfi_random_seed(&random, atomic_load(&admitted) + id);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < 3000; i++) {
        struct hf_permit permit;
        struct hfi_breaker_look look;
        int64_t wait;
        struct hf_mono now = {atomic_fetch_add(&time_us, (int64_t)hfi_random_below(&random, 3000))};
        switch (hfi_random_below(&random, 200)) {
        case 0:
            hfi_breaker_isolate(&b, now, 100, "by hand");
            break;
        case 1:
            hfi_breaker_close(&b, now);
            break;
        case 2:
            hfi_breaker_gate(&b, (struct hf_mono){now.us + 1000});
            break;
        case 3:
            hfi_breaker_tick(&b, now);
            break;
        case 4:
            hfi_breaker_look(&b, now, &look);
            if (look.probes_in_flight > 3)
                atomic_fetch_add(&over_probes, 1);
            break;
        default:
            if (hfi_breaker_enter(&b, now, &permit, &wait) != HFI_ADMITTED)
                break;
            if (hfi_random_below(&random, 50) == 0)
                break; /* never reported */
            if (hfi_random_below(&random, 10) == 0)
                hfi_breaker_forgo(&b, now, &permit);
            hfi_breaker_leave(&b, now, &permit, (enum hf_verdict)hfi_random_below(&random, 3), HF_CAUSE_OTHER, i % 2 == 0);
        }
    }
    return NULL;
}

static void b12_b13_b22_transitions_join_up(void **state) {
    (void)state;
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    struct hfi_breaker_rules rules = rules_of(3);
    rules.break_ms = 20;
    rules.max_break_ms = 100;
    rules.lease_ms = 50;
    rules.ramp_ms = 200;
    rules.window_ms = 1000;
    memset(&heard, 0, sizeof heard);
    hfi_breaker_init(&b, &rules, 1, hear);
    atomic_store(&time_us, 1000 * S);
    atomic_store(&admitted, (uint32_t)test_seed("breaker quarrel"));
    pthread_barrier_init(&gate, NULL, THREADS);
    start_crowd(threads, THREADS, quarrel);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
    assert_true(atomic_load(&heard.count) > 10);
    assert_int_equal(atomic_load(&heard.broken), 0);
    assert_int_equal(atomic_load(&over_probes), 0);
    struct hfi_breaker_look look;
    hfi_breaker_look(&b, (struct hf_mono){atomic_load(&time_us)}, &look);
    assert_int_equal(look.state, heard.last); /* nothing was left untold */
    hfi_breaker_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b7_exactly_n_of_a_crowd),
        cmocka_unit_test(w11_threads_lose_nothing),
        cmocka_unit_test(b12_b13_b22_transitions_join_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
