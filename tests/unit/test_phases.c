/* SPDX-License-Identifier: MIT */
/* The latencies of the phases of attempts (2.8): what is a sample, and what it costs those who have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/alloc.h"
#include "holdfast/classify.h"
#include "resilience/classify.h"
#include "resilience/downstream.h"

#define T0 INT64_C(1000000000)

static struct hf_downstream *d;

static int set_up(void **state) {
    (void)state;
    return hf_downstream_new("d", NULL, &d, NULL);
}

static int tear_down(void **state) {
    (void)state;
    hf_downstream_unref(d);
    return 0;
}

/* An attempt that ended so; what leaving said. */
static int attempt(struct hf_downstream *downstream, int status, struct hfi_phases phases) {
    struct hf_mono now = {T0};
    struct hf_permit permit;
    struct hf_outcome outcome;
    if (hfi_downstream_enter(downstream, now, &permit, &outcome) != 0)
        return HF_EREJECTED;
    hf_classify_http(status, NULL, 0, &outcome);
    outcome.phases = phases;
    now.us += phases.total_us;
    return hfi_downstream_leave(downstream, now, &permit, &outcome);
}

static struct hf_downstream_view look(struct hf_downstream *downstream) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(downstream, (struct hf_mono){T0}, &view);
    return view;
}

/* Within a bucket of the histogram: never less than was measured. */
static void is_all(struct hf_latency_view latency, uint64_t count, int64_t us) {
    assert_int_equal(latency.count, count);
    assert_in_range(latency.p50_us, us, us + us / 16);
    assert_int_equal(latency.p95_us, latency.p50_us);
    assert_int_equal(latency.p99_us, latency.p50_us);
}

static void is_empty(struct hf_latency_view latency) {
    assert_int_equal(latency.count, 0);
    assert_int_equal(latency.p50_us, -1);
    assert_int_equal(latency.p95_us, -1);
    assert_int_equal(latency.p99_us, -1);
}

static void is_without_phases(struct hf_downstream *downstream) {
    struct hf_downstream_view view = look(downstream);
    const struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    assert_true(extra == NULL || atomic_load(&extra->phases) == NULL);
    is_empty(view.resolve);
    is_empty(view.connect);
    is_empty(view.tls);
    is_empty(view.first_byte);
}

/* The times of an outcome are from the attempt's start; a sample is the phase alone. */
static void each_phase_by_itself(void **state) {
    (void)state;
    is_without_phases(d);
    for (int i = 0; i < 3; i++)
        assert_int_equal(attempt(d, 200, (struct hfi_phases){100, 3100, 13100, 63100, 90000}), 0);
    struct hf_downstream_view view = look(d);
    is_all(view.resolve, 3, 100);
    is_all(view.connect, 3, 3000);
    is_all(view.tls, 3, 10000);
    is_all(view.first_byte, 3, 50000);
    assert_in_range(view.p50_us, 90000, 96000);
}

static void quantiles_differ(void **state) {
    (void)state;
    for (int i = 1; i <= 100; i++)
        assert_int_equal(attempt(d, 200, (struct hfi_phases){-1, i > 97 ? 900000 : i > 90 ? 50000 : 1000, -1, -1, 1}), 0);
    struct hf_latency_view connect = look(d).connect;
    assert_int_equal(connect.count, 100);
    assert_in_range(connect.p50_us, 1000, 1062);
    assert_in_range(connect.p95_us, 50000, 53125);
    assert_in_range(connect.p99_us, 900000, 956250);
}

static void what_was_not_reached_is_no_sample(void **state) {
    (void)state;
    assert_int_equal(attempt(d, 200, (struct hfi_phases){-1, -1, -1, 7000, 8000}), 0); /* a reused connection */
    struct hf_downstream_view view = look(d);
    is_empty(view.resolve);
    is_empty(view.connect);
    is_empty(view.tls);
    is_all(view.first_byte, 1, 7000);
    assert_int_equal(attempt(d, 503, (struct hfi_phases){-1, 2000, -1, 9000, 9000}), 0); /* without TLS, and failed */
    assert_int_equal(attempt(d, 503, (struct hfi_phases){400, -1, -1, -1, 9000}), 0); /* never connected */
    view = look(d);
    is_all(view.resolve, 1, 400);
    is_all(view.connect, 1, 2000);
    is_empty(view.tls);
    is_all(view.first_byte, 2, 7000); /* 7000 twice */
    assert_int_equal(attempt(d, 200, (struct hfi_phases){500, 300, 200, 100, 1}), 0); /* never below nothing */
    view = look(d);
    assert_int_equal(view.tls.p99_us, 0);
    assert_int_equal(view.tls.count, 1);
}

/* A permit counts once, its phases too. */
static void what_is_not_taken_back_is_no_sample(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hf_outcome outcome;
    assert_int_equal(hfi_downstream_enter(d, (struct hf_mono){T0}, &permit, NULL), 0);
    hf_classify_http(200, NULL, 0, &outcome);
    outcome.phases.first_byte_us = 5;
    assert_int_equal(hfi_downstream_leave(d, (struct hf_mono){T0}, &permit, &outcome), 0);
    assert_int_equal(hfi_downstream_leave(d, (struct hf_mono){T0}, &permit, &outcome), HF_ESTATE);
    assert_int_equal(look(d).first_byte.count, 1);
}

static void without_memory_nothing_fails(void **state) {
    (void)state;
    struct hfi_phases phases = {100, 3100, 13100, 63100, 90000};
    assert_int_equal(attempt(d, 200, (struct hfi_phases){-1, -1, -1, -1, 1}), 0);
    for (int i = 0; i < 2; i++) {
        hfi_alloc_fail(1, 1);
        assert_int_equal(attempt(d, 200, phases), 0);
        assert_int_equal(hfi_alloc_count(), 1); /* it was asked for */
        hfi_alloc_fail(0, 0);
        is_without_phases(d);
    }
    assert_int_equal(look(d).attempts, 3);
    hfi_alloc_fail(0, 0);
    assert_int_equal(attempt(d, 200, phases), 0);
    assert_int_equal(hfi_alloc_count(), 2); /* the block, and the one that few downstreams need */
    for (int i = 0; i < 100; i++)
        assert_int_equal(attempt(d, i % 2 ? 200 : 404, phases), 0);
    assert_int_equal(hfi_alloc_count(), 2);
    is_all(look(d).tls, 101, 10000);
}

static void work(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    (void)deadline_us;
    (void)user;
    hf_classify_http(200, NULL, 0, outcome);
}

/* A guard has no phases, and no memory for them: its downstream is as small as it was. */
static void guards_pay_nothing(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hf_outcome outcome;
    hfi_alloc_fail(0, 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(hf_guard_enter(d, &permit, NULL), 0);
        assert_int_equal(hf_guard_leave(d, &permit, HF_VERDICT_SUCCESS), 0);
        assert_int_equal(hf_guard_run(d, work, &outcome, NULL), 0);
    }
    assert_int_equal(hfi_alloc_count(), 0);
    is_without_phases(d);
    assert_int_equal(look(d).attempts, 200);
    size_t machines = sizeof d->breaker + sizeof d->budget + sizeof d->bulkhead + sizeof d->histogram;
    assert_true(sizeof *d - machines <= 512);
}

static void each_host_has_its_own(void **state) {
    (void)state;
    struct hf_downstream *host;
    assert_int_equal(hfi_downstream_of_host(d, "http://a.test", &host), 0);
    assert_int_equal(attempt(host, 200, (struct hfi_phases){-1, 2000, -1, 9000, 9000}), 0);
    is_all(look(host).connect, 1, 2000);
    is_without_phases(d);
    hf_downstream_unref(host);
}

/* ------------------------------------------------------------------ recorded for the ladder */

static void answered(struct hf_downstream *downstream, int status, struct hfi_phases phases) {
    struct hf_outcome outcome;
    hf_classify_http(status, NULL, 0, &outcome);
    outcome.phases = phases;
    hfi_downstream_record(downstream, &outcome);
}

/* By that limit, or, NULL, by a hedge that was faster. */
static void cut(const char *limit, enum hf_stage stage, struct hfi_phases phases) {
    struct hf_outcome outcome;
    if (limit != NULL)
        hfi_classify_timeout(limit, HF_SENT_MAYBE, stage, &outcome);
    else
        hfi_classify_cancelled(HF_SENT_MAYBE, stage, &outcome);
    outcome.phases = phases;
    hfi_downstream_record(d, &outcome);
}

/* `phase fate count@from` of each bucket that there is, in the order of the numbers. */
static const char *recorded(struct hf_downstream *downstream) {
    static char text[2000];
    struct hf_measured *measured;
    size_t used = 0;
    text[0] = '\0';
    assert_int_equal(hf_downstream_measured(downstream, &measured, NULL), 0);
    for (int i = 0; i < HF_PHASES * HF_FATES; i++) {
        enum hf_phase phase = (enum hf_phase)(i / HF_FATES);
        enum hf_fate fate = (enum hf_fate)(i % HF_FATES);
        uint32_t cursor = 0;
        uint64_t count;
        int64_t from_us, to_us;
        while (hf_measured_next(measured, phase, fate, &cursor, &from_us, &to_us, &count))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %llu@%lld\n", hf_phase_name(phase),
                                     hf_fate_name(fate), (unsigned long long)count, (long long)from_us);
    }
    hf_measured_free(measured);
    return text;
}

static void every_attempt_is_recorded_by_what_ended_it(void **state) {
    (void)state;
    assert_string_equal(recorded(d), "");
    answered(d, 200, (struct hfi_phases){10, 30, 60, 100, 110});
    answered(d, 503, (struct hfi_phases){-1, -1, -1, 100, 120}); /* the first try of a short retry */
    answered(d, 404, (struct hfi_phases){-1, -1, -1, 100, 130}); /* an answer in good time */
    answered(d, 200, (struct hfi_phases){-1, -1, -1, -1, -1});   /* nobody knows how long it took */
    assert_string_equal(recorded(d), "resolve ended 1@10\nconnect ended 1@20\ntls ended 1@30\nsetup ended 1@60\n"
                                     "first_byte ended 1@40\nfirst_byte ended 2@100\n"
                                     "attempt ended 1@110\nattempt ended 1@130\nattempt failed 1@120\n");
}

static void cut_where_it_was(void **state) {
    (void)state;
    cut("timeout.connect", HF_STAGE_CONNECT, (struct hfi_phases){10, -1, -1, -1, 110});
    cut("timeout.attempt", HF_STAGE_WAIT, (struct hfi_phases){10, 30, -1, -1, 120});
    cut("timeout.total", HF_STAGE_RECEIVE, (struct hfi_phases){-1, -1, -1, 50, 127});
    cut(NULL, HF_STAGE_RESOLVE, (struct hfi_phases){-1, -1, -1, -1, 99});
    assert_string_equal(recorded(d), "resolve ended 2@10\nresolve cancelled 1@99\nconnect ended 1@20\n"
                                     "connect cut_connect 1@100\nsetup ended 1@30\nsetup cut_connect 1@110\n"
                                     "setup cancelled 1@99\nfirst_byte ended 1@50\nfirst_byte cut_attempt 1@90\n"
                                     "attempt cut_connect 1@110\nattempt cut_attempt 1@120\nattempt cut_total 1@127\n"
                                     "attempt cancelled 1@99\n");
}

/* What was taken away is gone from it, and can be given back as it was. */
static void taken_and_given_back(void **state) {
    (void)state;
    struct hfi_packed packed;
    const char *all = "first_byte ended 3@4980736\nattempt ended 3@5996544\n";
    for (int i = 0; i < 3; i++)
        answered(d, 200, (struct hfi_phases){-1, -1, -1, 5000000, 6000000});
    struct hfi_recorder *recorder = hfi_downstream_recorder(d);
    hfi_recorder_take(recorder, &packed);
    assert_string_equal(recorded(d), "");
    assert_int_equal(hfi_recorder_put_back(recorder, packed.bytes, packed.length), 0);
    assert_string_equal(recorded(d), all);
    hfi_free(packed.bytes);
    hfi_alloc_fail(1, 1); /* without memory all of it stays */
    hfi_recorder_take(recorder, &packed);
    hfi_alloc_fail(0, 0);
    assert_true(packed.failed);
    hfi_free(packed.bytes);
    assert_string_equal(recorded(d), all);
}

static void without_memory_nothing_is_recorded(void **state) {
    (void)state;
    for (long nth = 1; nth < 6; nth++) {
        hfi_alloc_fail(nth, 1);
        answered(d, 200, (struct hfi_phases){-1, -1, -1, 50, 60});
        hfi_alloc_fail(0, 0);
    }
    assert_string_equal(recorded(d), "first_byte ended 2@50\nattempt ended 2@60\n"); /* what there is memory for is kept */
    answered(d, 200, (struct hfi_phases){-1, -1, -1, 50, 60});
    assert_string_equal(recorded(d), "first_byte ended 3@50\nattempt ended 3@60\n");
}

static void hosts_are_recorded_as_one(void **state) {
    (void)state;
    struct hf_downstream *host;
    assert_int_equal(hfi_downstream_of_host(d, "https://a.example", &host), 0);
    answered(host, 200, (struct hfi_phases){-1, -1, -1, 50, 60});
    answered(d, 200, (struct hfi_phases){-1, -1, -1, 50, 60});
    assert_string_equal(recorded(d), "first_byte ended 2@50\nattempt ended 2@60\n");
    assert_ptr_equal(hfi_downstream_recorder(host), hfi_downstream_recorder(d));
    hf_downstream_unref(host);
}

#define THREADS 4
#define EACH 2000
static pthread_barrier_t together;

static void *hammer(void *unused) {
    (void)unused;
    size_t bad = 0;
    pthread_barrier_wait(&together);
    for (int i = 0; i < EACH; i++)
        bad += attempt(d, 200, (struct hfi_phases){-1, 2000, -1, 9000, 9000}) != 0;
    for (int i = 0; i < EACH; i++)
        answered(d, 200, (struct hfi_phases){-1, -1, -1, -1, 9000});
    return (void *)bad;
}

/* Each of them may be the first; nobody's sample is lost. */
static void threads_share_one(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    pthread_barrier_destroy(&together);
    is_all(look(d).connect, THREADS * EACH, 2000);
    is_all(look(d).first_byte, THREADS * EACH, 7000);
    assert_string_equal(recorded(d), "attempt ended 8000@8960\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_phase_by_itself),
        TEST(quantiles_differ),
        TEST(what_was_not_reached_is_no_sample),
        TEST(what_is_not_taken_back_is_no_sample),
        TEST(without_memory_nothing_fails),
        TEST(guards_pay_nothing),
        TEST(each_host_has_its_own),
        TEST(every_attempt_is_recorded_by_what_ended_it),
        TEST(cut_where_it_was),
        TEST(taken_and_given_back),
        TEST(without_memory_nothing_is_recorded),
        TEST(hosts_are_recorded_as_one),
        TEST(threads_share_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
