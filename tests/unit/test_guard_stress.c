/* SPDX-License-Identifier: MIT */
/*
 * 64 threads on one downstream, everything at once: attempts of all ends, permits that never come back, isolation, closing,
 * reloads and lookers. Whoever looks must see sums that can be true; when all is over they come out exactly, and every place is
 * free again. B3, B6, R21, F2, F10. Also run under ThreadSanitizer. HF_FULL=1: for ten seconds.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/error.h"
#include "holdfast/log.h"
#include "resilience/downstream.h"
#include "seed.h"

#define HOUR_US (3600 * INT64_C(1000000))
enum { CROWD = 64, TURNS = 400, PLACES = 24, FEWER = 7, PROBES = 3, LOST_MAX = 8 };

static struct hf_downstream *d;
static struct hf_policy *policies[2];
static pthread_barrier_t gate;
static uint64_t seed;
static int64_t end_us; /* 0: after so many turns */

/* What the threads did. `asked` is counted before an enter, `answered` after it. */
static _Atomic uint64_t asked, answered, admitted, refused, ended[3], lost, late;
static _Atomic int64_t holding, most_held; /* between enter and leave, as the threads see it */
/* What must never happen. */
static _Atomic uint64_t reported_twice, too_many_probes, bad_window, bad_calls, bad_ends, bad_permits, backward;

static void hold(void) {
    int64_t held = atomic_fetch_add(&holding, 1) + 1, most = atomic_load(&most_held);
    while (held > most && !atomic_compare_exchange_weak(&most_held, &most, held)) {
    }
}

/* The peer is well for most of the time, else there would be little but refusals. */
static enum hf_verdict verdict_of(struct hfi_random *random, int turn) {
    uint64_t kind = hfi_random_below(random, 20);
    uint64_t failures = turn / 64 % 5 == 4 ? 14 : 2;
    return kind < failures ? HF_VERDICT_FAILURE : kind < 17 ? HF_VERDICT_SUCCESS : HF_VERDICT_NEUTRAL;
}

static void one_attempt(struct hfi_random *random, int turn) {
    struct hf_permit permit;
    enum hf_verdict verdict = verdict_of(random, turn);
    atomic_fetch_add(&asked, 1);
    int code = hf_guard_enter(d, &permit, NULL);
    atomic_fetch_add(code == 0 ? &admitted : &refused, 1);
    atomic_fetch_add(&answered, 1);
    if (code != 0)
        return;
    hold();
    if (hfi_random_below(random, 4) == 0)
        sched_yield();
    atomic_fetch_sub(&holding, 1);
    if (hfi_random_below(random, 200) == 0) {
        if (atomic_fetch_add(&lost, 1) < LOST_MAX)
            return;
        atomic_fetch_sub(&lost, 1);
    }
    /* Its lease is short: it may have lapsed by now, and then it was counted as neutral already. */
    code = hf_guard_leave(d, &permit, verdict);
    atomic_fetch_add(code == 0 ? &ended[verdict] : &late, 1);
    if (hf_guard_leave(d, &permit, HF_VERDICT_FAILURE) != HF_ESTATE)
        atomic_fetch_add(&reported_twice, 1);
}

/* The counters are read one after the other while all goes on: what they show must lie between what was known before and
   what is known after. */
static void look(uint64_t *calls) {
    struct hf_downstream_view view = {.size = sizeof view};
    uint64_t before = atomic_load(&answered);
    hf_downstream_look(d, &view);
    uint64_t after = atomic_load(&asked);
    atomic_fetch_add(&too_many_probes, view.probes_in_flight > PROBES);
    atomic_fetch_add(&bad_window, view.window_failures > view.window_calls || view.window_calls > after);
    atomic_fetch_add(&bad_calls, view.calls < before || view.calls > after || view.rejections > after);
    atomic_fetch_add(&bad_ends, view.successes + view.failures + view.neutrals + view.rejections > after);
    atomic_fetch_add(&bad_permits, view.permits_issued > after || view.permits_returned > view.permits_issued ||
                                       view.permits_expired > view.permits_issued || view.attempts > after);
    atomic_fetch_add(&backward, view.calls < *calls);
    *calls = view.calls;
}

static void *quarrel(void *user) {
    struct hfi_random random;
    uint64_t calls = 0;
    hfi_random_seed(&random, seed + (uint64_t)(uintptr_t)user);
    pthread_barrier_wait(&gate);
    for (int turn = 0; end_us != 0 ? hfi_mono_now().us < end_us : turn < TURNS; turn++) {
        switch (hfi_random_below(&random, 250)) {
        case 0:
            hf_downstream_isolate(d, 1, "stress");
            break;
        case 1:
        case 2:
            hf_downstream_close(d);
            break;
        case 3:
            if (hfi_random_below(&random, 20) == 0) /* each keeps a policy for good */
                hf_downstream_reload(d, policies[hfi_random_below(&random, 2)]);
            break;
        case 4:
        case 5:
        case 6:
            look(&calls);
            break;
        default:
            one_attempt(&random, turn);
        }
    }
    return NULL;
}

static struct hf_policy *policy_of(uint32_t places, int64_t window_ms) {
    struct hf_policy_options options;
    struct hf_policy *policy;
    hf_policy_options_init(&options);
    options.allow_truncated = true;
    options.connect_timeout_ms = options.attempt_timeout_ms = 20;
    options.total_timeout_ms = 6000;
    options.breaker_window_ms = window_ms;
    options.breaker_min_calls = 5;
    options.breaker_ratio = 0.6;
    options.breaker_break_ms = 1;
    options.breaker_max_break_ms = 4;
    options.breaker_probes = PROBES;
    options.breaker_tolerated = 1;
    options.breaker_ramp_ms = 10;
    options.breaker_lease_ms = 2000;
    options.bulkhead_max = places;
    assert_int_equal(hf_policy_new(&options, &policy, NULL), 0);
    return policy;
}

static void check_while_running(void) {
    assert_int_equal(atomic_load(&reported_twice), 0);
    assert_in_range(atomic_load(&most_held), 2, PLACES + atomic_load(&late)); /* one that lapsed holds no place */
    assert_int_equal(atomic_load(&too_many_probes), 0);
    assert_int_equal(atomic_load(&bad_window), 0);
    assert_int_equal(atomic_load(&bad_calls), 0);
    assert_int_equal(atomic_load(&bad_ends), 0);
    assert_int_equal(atomic_load(&bad_permits), 0);
    assert_int_equal(atomic_load(&backward), 0);
}

static void check_sums(void) {
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    assert_true(hfi_downstream_adds_up(d));
    assert_int_equal(view.calls, atomic_load(&asked));
    assert_int_equal(view.rejections, atomic_load(&refused));
    assert_int_equal(view.permits_issued, atomic_load(&admitted));
    assert_int_equal(view.successes, atomic_load(&ended[HF_VERDICT_SUCCESS]));
    assert_int_equal(view.failures, atomic_load(&ended[HF_VERDICT_FAILURE]));
    assert_int_equal(view.neutrals, atomic_load(&ended[HF_VERDICT_NEUTRAL]) + view.permits_expired);
    assert_int_equal(view.in_flight + view.permits_expired, atomic_load(&lost) + atomic_load(&late));
    assert_true(view.permits_expired >= atomic_load(&late));
}

/* Long after: what was lost has lapsed, and exactly all places are there. */
static void check_places(void) {
    struct hf_permit permits[PLACES], more;
    struct hf_outcome rejection;
    struct hf_downstream_view view = {.size = sizeof view};
    struct hf_mono later = {hfi_mono_now().us + HOUR_US};
    assert_int_equal(hf_downstream_reload(d, policies[0]), 0);
    assert_int_equal(hf_downstream_close(d), 0);
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(hfi_downstream_enter(d, later, &permits[i], NULL), 0);
    assert_int_equal(hfi_downstream_enter(d, later, &more, &rejection), HF_EREJECTED);
    assert_string_equal(rejection.error_type, "bulkhead.full");
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(hfi_downstream_leave_as(d, later, &permits[i], HF_VERDICT_SUCCESS), 0);
    hf_downstream_look(d, &view);
    assert_int_equal(view.in_flight, 0);
    assert_int_equal(view.permits_expired, atomic_load(&lost) + atomic_load(&late));
    assert_true(hfi_downstream_adds_up(d));
}

static void r21_sixty_four_threads_quarrel(void **state) {
    pthread_t threads[CROWD];
    (void)state;
    seed = test_seed("guard stress");
    policies[0] = policy_of(PLACES, 300);
    policies[1] = policy_of(FEWER, 200);
    assert_int_equal(hf_downstream_new("peer", policies[0], &d, NULL), 0);
    end_us = getenv("HF_FULL") != NULL ? hfi_mono_now().us + 10 * INT64_C(1000000) : 0;
    pthread_barrier_init(&gate, NULL, CROWD);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, quarrel, (void *)(uintptr_t)i), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
    printf("guard stress: %llu asked, %llu admitted, %llu lost, %llu late, %lld at once\n", (unsigned long long)asked,
           (unsigned long long)admitted, (unsigned long long)lost, (unsigned long long)late,
           (long long)most_held);
    check_while_running();
    check_sums();
    check_places();
    hf_downstream_unref(d);
    hf_policy_unref(policies[0]);
    hf_policy_unref(policies[1]);
}

/* Permits of another thread, which has a shard of its own: it gives `back` some and then takes up to `wanted`. */
static struct {
    struct hf_permit permits[PLACES];
    int held, back, wanted;
} other;

static void *on_another_thread(void *user) {
    (void)user;
    while (other.back-- > 0)
        hf_guard_leave(d, &other.permits[--other.held], HF_VERDICT_SUCCESS);
    while (other.wanted-- > 0 && hf_guard_enter(d, &other.permits[other.held], NULL) == 0)
        other.held++;
    return NULL;
}

static void on_other(int back, int wanted) {
    pthread_t thread;
    other.back = back;
    other.wanted = wanted;
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, NULL), 0);
    pthread_join(thread, NULL);
}

/* F2, R21: whichever shards the places in use belong to, a lower maximum lets nobody start before enough have come back;
   and that it was lower for a while leaves no more places than there are. */
static void f2_a_lower_maximum_holds_for_all_shards(void **state) {
    struct hf_permit mine[PLACES], more;
    (void)state;
    policies[0] = policy_of(PLACES, 300);
    policies[1] = policy_of(FEWER, 300);
    assert_int_equal(hf_downstream_new("peer", policies[0], &d, NULL), 0);
    memset(&other, 0, sizeof other);
    for (int i = 0; i < PLACES / 2; i++)
        assert_int_equal(hf_guard_enter(d, &mine[i], NULL), 0);
    on_other(0, PLACES / 2);
    assert_int_equal(other.held, PLACES / 2);
    assert_int_equal(hf_downstream_reload(d, policies[1]), 0);
    assert_int_equal(hf_guard_enter(d, &more, NULL), HF_EREJECTED);
    on_other(PLACES / 2 - 1, 1); /* 13 in flight, 7 allowed */
    assert_int_equal(other.held, 1);
    assert_int_equal(hf_downstream_reload(d, policies[0]), 0);
    on_other(0, PLACES);
    assert_int_equal(other.held, PLACES / 2); /* and not one more */
    assert_int_equal(hf_guard_enter(d, &more, NULL), HF_EREJECTED);
    assert_int_equal(hf_downstream_reload(d, policies[1]), 0);
    for (int i = 0; i < PLACES / 2; i++)
        assert_int_equal(hf_guard_leave(d, &mine[i], HF_VERDICT_SUCCESS), 0);
    on_other(PLACES / 2, PLACES);
    assert_int_equal(other.held, FEWER);
    on_other(FEWER, 0);
    assert_true(hfi_downstream_adds_up(d));
    hf_downstream_unref(d);
    hf_policy_unref(policies[0]);
    hf_policy_unref(policies[1]);
}

static void quiet(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)level;
    (void)event;
    (void)fields;
    (void)user;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f2_a_lower_maximum_holds_for_all_shards),
        cmocka_unit_test(r21_sixty_four_threads_quarrel),
    };
    hf_log_set(HF_LOG_INFO, quiet, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
