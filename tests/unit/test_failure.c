/* SPDX-License-Identifier: MIT */
/*
 * How failures are judged: S0.1, S0.3, S0.6, S0.10, S0.12, S0.14, S0.15, S1.4, S1.10, S2.5, S2.14, S2.15, S2.20, S4.2,
 * I13, I34, I37, I68.
 */
#include "job_fixture.h"

/* S0.6, S0.9, S0.15, S1.4, S0.36: gaps to the second, one death at the end and none before. */
static void rides_the_curve_to_death(void **state) {
    (void)state;
    static const int64_t gaps[] = {60, 300, 1800, 7200, 7200};
    int64_t now = T0, first_failure = T0;
    for (uint32_t n = 1; n <= 6; n++) {
        start(now);
        assert_int_equal(job.executions, n);
        fail_transient(now);
        assert_int_equal(job.failures, n);
        if (n == 6)
            break;
        assert_int_equal(job.state, HF_JOB_PENDING);
        assert_false(change.has_death);
        assert_int_equal(job.deaths, 0);
        assert_string_equal(job.reason, "curve");
        assert_string_equal(job.error_class, "transient");
        assert_int_equal(job.run_at_us, now + gaps[n - 1] * S);
        assert_int_equal(change.history.next_run_at_us, job.run_at_us);
        now = job.run_at_us;
    }
    assert_int_equal(now - first_failure, 16560 * S);
    assert_int_equal(job.state, HF_JOB_DEAD);
    assert_true(change.has_death);
    assert_int_equal(change.death.death_class, HF_DEATH_TRANSIENT_EXHAUSTED);
    assert_string_equal(change.death.cause, "exhausted");
    assert_string_equal(change.death.error_type, "http.503");
    assert_string_equal(change.death.message, "because");
    assert_int_equal(change.death.death_no, 1);
    assert_int_equal(job.deaths, 1);
    assert_int_equal(job.executions, 6); /* S0.32c: both are kept */
    assert_int_equal(job.failures, 6);
}

/* S2.1: executions are counted, the first one included: 5 = 1 + 4. S2.5: 0 retries = 1 execution: the first failure dies. */
static void executions_include_the_first_S2_1(void **state) {
    (void)state;
    for (uint32_t max = 1; max <= 10; max++) {
        fresh(NULL);
        curve.max_executions = max;
        int64_t now = T0;
        uint32_t retries = 0;
        start(now);
        for (fail_transient(now); job.state == HF_JOB_PENDING; fail_transient(now)) {
            now = job.run_at_us;
            start(now);
            retries++;
        }
        assert_int_equal(job.state, HF_JOB_DEAD);
        assert_int_equal(retries, max - 1);
        assert_int_equal(job.executions, max);
    }
}

static void max_executions_closest_wins_S2_11(void **state) {
    (void)state;
    struct hfi_curve own = {.max_executions = 4, .length = 1, .waits_ms = {500}};
    assert_int_equal(hfi_max_executions(&job, &rules), 6);
    job.policy = &own;
    assert_int_equal(hfi_max_executions(&job, &rules), 4);
    job.max_executions = 1; /* S0.10, S2.5: the first failure dies; C14: it keeps the curve */
    assert_int_equal(hfi_max_executions(&job, &rules), 1);
    start(T0);
    fail_transient(T0);
    assert_int_equal(job.state, HF_JOB_DEAD);
    fresh(NULL);
    job.policy = &own;
    job.max_executions = 6; /* equal to a default, and honoured [S2.13] */
    start(T0);
    fail_transient(T0);
    assert_int_equal(job.run_at_us, T0 + 500 * MS);
    rules.policy = NULL;
    job.policy = NULL;
    job.max_executions = 0;
    assert_int_equal(hfi_max_executions(&job, &rules), 1);
}

static void permanent_and_poison_die_at_once_S0_12_S4_2(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        fresh(NULL);
        start(T0);
        set(i ? HF_CLASS_POISON : HF_CLASS_PERMANENT, "http.404", HF_SENT_YES);
        assert_int_equal(RUN(FAILED, T0 + 5, .outcome = &outcome, .detail = "everything"), 0);
        assert_int_equal(job.state, HF_JOB_DEAD);
        assert_int_equal(job.executions, 1);
        assert_int_equal(change.death.death_class, i ? HF_DEATH_POISON : HF_DEATH_PERMANENT);
        assert_string_equal(change.death.cause, i ? "poison" : "permanent");
        assert_string_equal(change.death.rule, "test.rule"); /* S4.15 */
        assert_string_equal(change.death.detail, "everything");
        assert_false(change.death.quarantined);
        assert_string_equal(job.error_class, i ? "poison" : "permanent");
    }
}

/* S0.1, S0.3: whatever an ending says, a failure stays one, and what nobody classified is transient. */
static void no_failure_becomes_success_S0_1(void **state) {
    (void)state;
    start(T0);
    assert_int_equal(RUN(FAILED, T0, .outcome = NULL), 0);
    assert_int_equal(job.state, HF_JOB_PENDING);
    assert_string_equal(job.error_type, "handler.unknown_result");
    assert_string_equal(change.history.rule, "unclassified");
    for (int kind = HF_OUTCOME_SUCCESS; kind <= HF_OUTCOME_REJECTED; kind++)
        for (int klass = HF_CLASS_OK; klass <= HF_CLASS_POISON; klass++) {
            fresh(NULL);
            start(T0);
            outcome.kind = (enum hf_outcome_kind)kind;
            outcome.klass = (enum hf_class)klass;
            assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
            assert_int_equal(job.failures, 1);
            assert_true(job.state == HF_JOB_PENDING || job.state == HF_JOB_DEAD);
        }
}

static void never_retry_by_dotted_prefix_S2_14(void **state) {
    (void)state;
    static const char *const list[] = {"validation", "sql.40P01"};
    static const struct {
        const char *type;
        bool dies;
    } cases[] = {{"sql.40P01", true},  {"sql", false},          {"sql.40P011", false},
                 {"validation", true}, {"validation.age", true}, {"validations", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fresh(NULL);
        rules.never_retry = list;
        rules.never_retry_count = 2;
        start(T0);
        set(HF_CLASS_TRANSIENT, cases[i].type, HF_SENT_NO);
        assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
        assert_int_equal(job.state, cases[i].dies ? HF_JOB_DEAD : HF_JOB_PENDING);
        assert_int_equal(job.executions, 1); /* counted [S2.15] */
        if (cases[i].dies) {
            assert_int_equal(change.death.death_class, HF_DEATH_PERMANENT);
            assert_int_equal(strncmp(change.death.rule, "never_retry.", 12), 0);
            assert_string_equal(change.history.rule, change.death.rule);
        }
    }
}

static void retry_after_waits_longer_within_its_cap_A1(void **state) {
    (void)state;
    static const struct {
        int64_t asked_ms, wait_ms;
        const char *reason;
    } cases[] = {{-1, 60000, "curve"},
                 {59000, 60000, "curve"},
                 {61000, 61000, "retry_after"},
                 {3600000, 3600000, "retry_after"},
                 {3600001, 3600000, "retry_after.capped"},
                 {INT64_MAX, 3600000, "retry_after.capped"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fresh(NULL);
        start(T0);
        set(HF_CLASS_TRANSIENT, "http.503", HF_SENT_YES);
        outcome.retry_after_ms = cases[i].asked_ms;
        assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
        assert_int_equal(job.run_at_us, T0 + cases[i].wait_ms * MS);
        assert_string_equal(job.reason, cases[i].reason);
    }
    fresh(NULL); /* told with numbers, behind what happened (A3) */
    start(T0);
    set(HF_CLASS_TRANSIENT, "http.503", HF_SENT_YES);
    outcome.retry_after_ms = 114 * HOUR / MS;
    assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
    assert_non_null(strstr(change.history.message, "its wait of 114h is cut to 1h"));
    fresh(NULL);
    start(T0); /* S0.30, on_open: fail: an open breaker is a counted failure on the curve */
    hfi_outcome_rejected(&outcome, "breaker.open", 90000);
    assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
    assert_int_equal(job.failures, 1);
    assert_int_equal(job.run_at_us, T0 + 90 * S);
    assert_string_equal(job.reason, "breaker.open");
}

/* One failure under `own` with a wish of `asked_ms`; the wait that follows. */
static int64_t asked_under(const struct hfi_curve *own, int64_t now, int64_t asked_ms) {
    rules.policy = own;
    start(now);
    set(HF_CLASS_TRANSIENT, "http.503", HF_SENT_YES);
    outcome.retry_after_ms = asked_ms;
    assert_int_equal(RUN(FAILED, now, .outcome = &outcome), 0);
    return (job.run_at_us - now) / MS;
}

/* V8: no peer moves a job further than its own curve ever would. */
static void retry_after_is_clamped_to_the_last_wait_of_the_curve_A1(void **state) {
    (void)state;
    struct hfi_curve own;
    static const struct {
        int64_t asked_ms, wait_ms;
        const char *reason;
    } cases[] = {{5000, 10000, "curve"},
                 {20000, 20000, "retry_after"},
                 {30000, 30000, "retry_after"},
                 {30001, 30000, "retry_after.capped"},
                 {3600000, 30000, "retry_after.capped"}};
    hfi_curve_parse("10s,30s", &own);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fresh(NULL);
        assert_int_equal(asked_under(&own, T0, cases[i].asked_ms), cases[i].wait_ms);
        assert_string_equal(job.reason, cases[i].reason);
    }
    /* The second failure: the curve itself waits as long, and the wish was cut all the same. */
    assert_int_equal(asked_under(&own, job.run_at_us, 3600000), 30000);
    assert_string_equal(job.reason, "retry_after.capped");
    assert_non_null(strstr(change.history.message, "because; its wait of 1h is cut to 30s"));
}

static void what_the_last_wait_of_a_curve_is_A1(void **state) {
    (void)state;
    struct hfi_curve own;
    hfi_curve_parse("10s,30s", &own);
    own.cap_ms = 20000;
    assert_int_equal(asked_under(&own, T0, 25000), 20000);
    fresh(NULL);
    own.length = 0; /* no waits at all: nothing to clamp to */
    assert_int_equal(asked_under(&own, T0, 25000), 25000);
    fresh(NULL);
    own.length = 2; /* a break is no wish of the peer: to come back while it lasts would be for nothing */
    rules.policy = &own;
    start(T0);
    hfi_outcome_rejected(&outcome, "breaker.open", 90000);
    assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
    assert_int_equal(job.run_at_us, T0 + 90 * S);
}

static void gives_up_after_24_h_of_illness(void **state) {
    (void)state;
    hfi_outcome_rejected(&outcome, "breaker.open", 60000);
    int64_t now = T0;
    rules.unhealthy_since_us = T0 + HOUR; /* later than due: that counts */
    while (job.state == HF_JOB_PENDING && now < T0 + 48 * HOUR) {
        start(now);
        assert_int_equal(RUN(REJECTED, now, .outcome = &outcome), 0);
        if (job.state == HF_JOB_PENDING)
            now = job.run_at_us;
    }
    assert_int_equal(now, T0 + 25 * HOUR);
    assert_int_equal(job.state, HF_JOB_DEAD);
    assert_string_equal(change.death.cause, "give_up");
    assert_int_equal(change.death.death_class, HF_DEATH_TRANSIENT_EXHAUSTED);
    assert_string_equal(change.death.error_type, "breaker.open");
    assert_int_equal(job.executions, 0);
    fresh(NULL);
    start(T0 + 48 * HOUR); /* healthy: a full bulkhead is no illness */
    hfi_outcome_rejected(&outcome, "bulkhead.full", 250);
    assert_int_equal(RUN(REJECTED, T0 + 48 * HOUR, .outcome = &outcome), 0);
    assert_int_equal(job.state, HF_JOB_PENDING);
}

/* S0.35: a payment gets another execution only with proof that nothing was sent. */
static void not_repeatable_needs_proof(void **state) {
    (void)state;
    for (int sent = HF_SENT_NO; sent <= HF_SENT_YES; sent++) {
        fresh(NULL);
        rules.repeatable = false;
        start(T0);
        set(HF_CLASS_TRANSIENT, "curl.recv_error", (enum hf_sent)sent);
        assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
        assert_int_equal(job.state, sent == HF_SENT_NO ? HF_JOB_PENDING : HF_JOB_DEAD);
        if (sent == HF_SENT_NO)
            continue;
        assert_string_equal(change.death.error_type, "outcome.unknown");
        assert_string_equal(change.death.cause, "outcome.unknown");
        assert_int_equal(change.death.death_class, HF_DEATH_PERMANENT);
        assert_non_null(strstr(change.death.message, "curl.recv_error"));
        assert_non_null(strstr(change.death.message, "because"));
        assert_string_equal(change.history.error_type, "curl.recv_error"); /* what it was */
        assert_string_equal(job.error_type, "outcome.unknown");
    }
    fresh(NULL); /* a refusal by the peer is known */
    rules.repeatable = false;
    start(T0);
    set(HF_CLASS_PERMANENT, "http.422", HF_SENT_YES);
    assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
    assert_string_equal(change.death.error_type, "http.422");
    fresh(NULL); /* an outcome that nobody filled proves nothing, whatever its zero says */
    rules.repeatable = false;
    start(T0);
    assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
    assert_string_equal(change.death.error_type, "outcome.unknown");
    fresh(NULL); /* a lapse, swept by a node that does not know the type */
    rules.repeatable = false;
    start(T0);
    rules.repeatable = true;
    assert_int_equal(RUN(LAPSED, T0, .message = NULL), 0);
    assert_string_equal(change.death.error_type, "outcome.unknown");
    for (int sent = 0; sent < 2; sent++) { /* drain */
        fresh(NULL);
        rules.repeatable = false;
        start(T0);
        assert_int_equal(RUN(GIVEN_BACK, T0, .may_have_sent = sent), 0);
        assert_int_equal(job.state, sent ? HF_JOB_DEAD : HF_JOB_PENDING);
        assert_int_equal(job.executions, sent);
    }
}

static void lapse_is_a_failure_on_the_same_curve_S1_10(void **state) {
    (void)state;
    job.max_executions = 2;
    start(T0);
    assert_int_equal(run((struct hfi_event){.kind = HFI_EVENT_LAPSED, .node = 9}, T0 + S), 0);
    assert_int_equal(job.state, HF_JOB_PENDING);
    assert_int_equal(job.run_at_us, T0 + S + 60 * S);
    assert_string_equal(job.error_type, "lease.lapsed");
    assert_int_equal(job.epoch, 2); /* somebody else's hand */
    assert_int_equal(job.crashes, 0);
    assert_int_equal(change.history.node, 5); /* the one that ran it */
    start(job.run_at_us);
    assert_int_equal(run((struct hfi_event){.kind = HFI_EVENT_LAPSED, .node = 5}, job.run_at_us), 0);
    assert_int_equal(job.epoch, 4); /* also by its own node */
    assert_int_equal(job.state, HF_JOB_DEAD);
    assert_string_equal(change.death.error_type, "orphaned");
    assert_string_equal(change.death.cause, "orphaned");
    assert_int_equal(change.death.death_class, HF_DEATH_TRANSIENT_EXHAUSTED);
    assert_non_null(strstr(change.death.message, "17"));     /* S2.20 */
    assert_non_null(strstr(change.death.message, "2 of 2"));
}

/* I13: more than three crashes within 72 h, the last one alone, are poison; neither suspends nor old crashes count. */
static void crash_loop_is_poison_I13(void **state) {
    (void)state;
    curve.max_executions = 100;
    rules.runs_code = true;
    int64_t now = T0;
    for (uint32_t n = 1; n <= 4; n++) {
        now += HOUR;
        assert_int_equal(hfi_wants_alone(&job), n > 2);
        rules.alone = n == 4;
        start(now);
        assert_int_equal(job.alone, n == 4);
        assert_int_equal(RUN(LAPSED, now, .crash = true), 0);
        assert_int_equal(job.crashes, n);
        assert_int_equal(job.state, n == 4 ? HF_JOB_DEAD : HF_JOB_PENDING);
    }
    assert_int_equal(change.death.death_class, HF_DEATH_POISON);
    assert_string_equal(change.death.cause, "poison");
    assert_string_equal(change.death.rule, "job.crash_ceiling");
    fresh(NULL);
    curve.max_executions = 100;
    rules.runs_code = rules.alone = true;
    for (int n = 0; n < 40; n++) {
        start(T0 + n * 25 * HOUR); /* at most three in any window */
        assert_int_equal(RUN(LAPSED, T0 + n * 25 * HOUR, .crash = true), 0);
        assert_int_equal(job.state, HF_JOB_PENDING);
        start(T0 + n * 25 * HOUR + 1);
        assert_int_equal(RUN(LAPSED, T0 + n * 25 * HOUR + 1, .crash = false), 0);
        assert_int_equal(job.state, HF_JOB_PENDING);
    }
}

/* I13: no execution beside others is blamed, however often; nor is a kind that runs no code. */
static void others_may_have_done_it_I13(void **state) {
    (void)state;
    curve.max_executions = 100;
    rules.runs_code = true;
    for (uint32_t n = 1; n <= 20; n++) {
        start(T0 + n);
        assert_int_equal(RUN(LAPSED, T0 + n, .crash = true), 0);
        assert_int_equal(job.state, HF_JOB_PENDING);
        assert_int_equal(job.crashes, n);
    }
    fresh(NULL);
    curve.max_executions = 100;
    rules.alone = true;
    for (uint32_t n = 1; n <= 20; n++) {
        start(T0 + n);
        rules.runs_code = true; /* what the sweeper's configuration says does not count */
        assert_int_equal(RUN(LAPSED, T0 + n, .crash = true), 0);
        rules.runs_code = false;
        assert_int_equal(job.state, HF_JOB_PENDING);
        assert_int_equal(job.crashes, 0);
        assert_int_equal(job.failures, n); /* on the curve like any other */
    }
}

/* I25: a requeue forgets the crashes: the next one is the first, and it runs among others again. */
static void a_requeue_forgets_the_crashes_I25(void **state) {
    (void)state;
    curve.max_executions = 100;
    rules.runs_code = rules.alone = true;
    for (uint32_t n = 1; n <= 4; n++) {
        start(T0 + n);
        assert_int_equal(RUN(LAPSED, T0 + n, .crash = true), 0);
    }
    assert_int_equal(job.state, HF_JOB_DEAD);
    assert_int_equal(RUN(REQUEUED, T0 + HOUR, .actor = "ann"), 0);
    assert_int_equal(job.crashes, 0);
    assert_false(hfi_wants_alone(&job));
    start(T0 + HOUR);
    assert_int_equal(RUN(LAPSED, T0 + HOUR, .crash = true), 0);
    assert_int_equal(job.state, HF_JOB_PENDING);
    assert_int_equal(job.crashes, 1);
}

static void snoozes_do_not_move_the_curve_I37(void **state) {
    (void)state;
    int64_t now = T0;
    for (uint32_t n = 1; n <= 50; n++) {
        start(now);
        assert_int_equal(RUN(SNOOZED, now, .delay_ms = 1000), 0);
        assert_int_equal(job.snoozes, n);
        assert_int_equal(job.run_at_us, now + S);
        assert_string_equal(job.reason, "snooze");
        now = job.run_at_us;
    }
    assert_int_equal(job.executions, 50); /* real starts */
    start(now);
    fail_transient(now);
    assert_int_equal(job.state, HF_JOB_PENDING);
    assert_int_equal(job.run_at_us, now + 60 * S);
    assert_int_equal(RUN(CLAIMED, now + 60 * S, .message = NULL), 0);
    assert_int_equal(RUN(STARTED, now + 60 * S, .message = NULL), 0);
    assert_int_equal(RUN(SNOOZED, now, .delay_ms = -5), 0);
    assert_int_equal(job.run_at_us, now);
}

/* I34: error, timeout, crash and lapse wait the same. */
static void all_failures_wait_the_same_I34(void **state) {
    (void)state;
    for (uint32_t before = 0; before < 5; before++) {
        int64_t expected = hfi_curve_wait_ms(&curve, before + 1, 0);
        for (int route = 0; route < 5; route++) {
            fresh(NULL);
            job.failures = job.executions = before;
            start(T0);
            set(HF_CLASS_TRANSIENT, route == 0 ? "http.503" : route == 1 ? "timeout.execution" : "signal.SIGSEGV",
                HF_SENT_MAYBE);
            if (route < 3)
                assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
            else
                assert_int_equal(RUN(LAPSED, T0, .crash = route == 4), 0);
            assert_int_equal(job.run_at_us - T0, expected * MS);
        }
    }
}

static uint64_t print_of(const char *type, const char *downstream, enum hf_class klass, const char *error_type) {
    fresh(NULL);
    job.type = type;
    job.downstream = downstream;
    job.max_executions = 1;
    start(T0);
    set(klass, error_type, HF_SENT_YES);
    hfi_outcome_message(&outcome, "%p", (const void *)type); /* never part of it */
    assert_int_equal(RUN(FAILED, T0, .outcome = &outcome), 0);
    return change.death.fingerprint;
}

static void fingerprint_groups_what_is_alike(void **state) {
    (void)state;
    uint64_t one = print_of("mail", "smtp", HF_CLASS_PERMANENT, "smtp.550");
    assert_true(one == print_of("mail", "smtp", HF_CLASS_PERMANENT, "smtp.550"));
    assert_true(one != print_of("mai", "lsmtp", HF_CLASS_PERMANENT, "smtp.550"));
    assert_true(one != print_of("mail", "smtp2", HF_CLASS_PERMANENT, "smtp.550"));
    assert_true(one != print_of("mail", "smtp", HF_CLASS_TRANSIENT, "smtp.550"));
    assert_true(one != print_of("mail", "smtp", HF_CLASS_PERMANENT, "smtp.551"));
}

static void far_times_saturate_I68(void **state) {
    (void)state;
    job.policy = &(struct hfi_curve){.max_executions = 9, .length = 1, .waits_ms = {INT64_MAX}};
    start(T0);
    fail_transient(T0);
    assert_int_equal(job.run_at_us, INT64_MAX);
    fresh(NULL);
    start(T0);
    assert_int_equal(RUN(SNOOZED, T0, .delay_ms = INT64_MAX), 0);
    assert_int_equal(job.run_at_us, INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rides_the_curve_to_death),
        TEST(executions_include_the_first_S2_1),
        TEST(max_executions_closest_wins_S2_11),
        TEST(permanent_and_poison_die_at_once_S0_12_S4_2),
        TEST(no_failure_becomes_success_S0_1),
        TEST(never_retry_by_dotted_prefix_S2_14),
        TEST(retry_after_waits_longer_within_its_cap_A1),
        TEST(retry_after_is_clamped_to_the_last_wait_of_the_curve_A1),
        TEST(what_the_last_wait_of_a_curve_is_A1),
        TEST(gives_up_after_24_h_of_illness),
        TEST(not_repeatable_needs_proof),
        TEST(lapse_is_a_failure_on_the_same_curve_S1_10),
        TEST(crash_loop_is_poison_I13),
        TEST(others_may_have_done_it_I13),
        TEST(a_requeue_forgets_the_crashes_I25),
        TEST(snoozes_do_not_move_the_curve_I37),
        TEST(all_failures_wait_the_same_I34),
        TEST(fingerprint_groups_what_is_alike),
        TEST(far_times_saturate_I68),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
