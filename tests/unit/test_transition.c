/* SPDX-License-Identifier: MIT */
/* The table of states and events, and what those that are no failures do: S1.9, S1.14, S1.19, S1.20, S2.10, I43. */
#include "job_fixture.h"

/* Rows: states, running twice (reserved, started). Columns: events in their order. */
static void table_of_states_and_events(void **state) {
    (void)state;
    static const struct {
        int state;
        bool started;
        const char *legal;
    } rows[] = {
        /*                            CLAIMED STARTED SUCCEEDED FAILED REJECTED SNOOZED CANCELLED QUARANT. GIVEN LAPSED EXPIRED REQUEUED RELEASED PARENT_DEAD REVIVED CANCEL_ASKED */
        {HF_JOB_PENDING, false, "x.....xx..e....."},
        {HF_JOB_PENDING, true, "x.....xx..e....."}, /* it ran before */
        {HF_JOB_WAITING, false, "......x...e.xx.."},
        {HF_JOB_RUNNING, false, ".x..x.xxxxe....x"},
        {HF_JOB_RUNNING, true, "..xxxxxxxx.....x"},
        {HF_JOB_SUCCEEDED, true, "................"},
        {HF_JOB_DEAD, true, "...........x...."},
        {HF_JOB_QUARANTINED, false, "...........x...."},
        {HF_JOB_CANCELLED, false, "................"}, /* [S1.20] */
        {7, true, "................"},               /* from a newer store: never touched */
        {31, true, "................"},
        {-1, true, "................"},
    };
    set(HF_CLASS_TRANSIENT, "http.503", HF_SENT_YES);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int kind = 0; kind < HFI_EVENT_COUNT; kind++) {
            fresh(NULL);
            set(HF_CLASS_TRANSIENT, "http.503", HF_SENT_YES);
            job.state = rows[r].state;
            job.owner = job.state == HF_JOB_RUNNING ? 5 : 0;
            job.started_at_us = rows[r].started ? T0 - S : 0;
            job.executions = rows[r].started ? 1 : 0;
            struct hfi_event event = {.kind = (enum hfi_event_kind)kind, .now = {T0}, .node = 5, .outcome = &outcome};
            char legal = rows[r].legal[kind];
            struct hfi_job before = job;
            static struct hfi_change untouched;
            memset(&untouched, 0x5a, sizeof untouched);
            int code = hfi_transition(&job, &event, &rules, &untouched);
            if (code != (legal == 'x' ? 0 : HF_ESTATE))
                fail_msg("state %d started %d event %s: %d", rows[r].state, rows[r].started, hfi_event_name(kind), code);
            if (code != 0)
                for (size_t i = 0; i < sizeof untouched; i++)
                    assert_int_equal(((unsigned char *)&untouched)[i], 0x5a);
            /* past its expiry nothing begins, and only then it can expire */
            job.expires_at_us = T0;
            code = hfi_transition(&job, &event, &rules, &untouched);
            bool begins = kind == HFI_EVENT_CLAIMED || kind == HFI_EVENT_STARTED;
            assert_int_equal(code, (legal == 'x' && !begins) || legal == 'e' ? 0 : HF_ESTATE);
            job.expires_at_us = 0;
            assert_memory_equal(&job, &before, sizeof job); /* the old record is only read */
        }
    assert_string_equal(hfi_event_name(HFI_EVENT_GIVEN_BACK), "given_back");
    assert_string_equal(hfi_event_name(99), "unknown");
}

static void claim_reserves_and_start_counts(void **state) {
    (void)state;
    assert_int_equal(RUN(CLAIMED, T0, .message = NULL), 0);
    assert_int_equal(job.state, HF_JOB_RUNNING);
    assert_int_equal(job.epoch, 1);
    assert_int_equal(job.owner, 5);
    assert_int_equal(job.executions, 0);
    assert_false(change.has_history);
    assert_int_equal(RUN(STARTED, T0 + 7, .message = NULL), 0);
    assert_int_equal(job.executions, 1);
    assert_int_equal(job.epoch, 1);
    assert_int_equal(job.started_at_us, T0 + 7);
    assert_int_equal(RUN(SUCCEEDED, T0 + 9, .result = "ok", .result_length = 2), 0);
    assert_int_equal(job.state, HF_JOB_SUCCEEDED);
    assert_int_equal(job.epoch, 1); /* its owner ended it */
    assert_int_equal(job.owner, 0);
    assert_int_equal(job.finished_at_us, T0 + 9);
    assert_int_equal(job.result_length, 2);
    assert_true(change.has_history && !change.has_death);
    assert_int_equal(change.history.execution, 1);
    assert_int_equal(change.history.started_at_us, T0 + 7);
    assert_int_equal(change.history.next_run_at_us, 0);
    assert_string_equal(change.history.error_class, "");
}

static void rejection_takes_the_execution_back(void **state) {
    (void)state;
    for (int reserved = 0; reserved < 2; reserved++) {
        static const int64_t asked[] = {-1, 100, 250, 4000};
        for (size_t i = 0; i < 4; i++) {
            fresh(NULL);
            start(T0);
            fail_transient(T0); /* an earlier failure stays counted */
            int64_t due = job.run_at_us;
            assert_int_equal(RUN(CLAIMED, due, .message = NULL), 0);
            if (!reserved)
                assert_int_equal(RUN(STARTED, due, .message = NULL), 0);
            hfi_outcome_rejected(&outcome, "breaker.open", asked[i]);
            assert_int_equal(RUN(REJECTED, due + 10, .outcome = &outcome), 0);
            assert_int_equal(job.state, HF_JOB_PENDING);
            assert_int_equal(job.executions, 1);
            assert_int_equal(job.failures, 1);
            assert_int_equal(job.started_at_us, 0);
            assert_int_equal(job.epoch, 2);
            assert_string_equal(job.reason, "breaker.open");
            assert_int_equal(job.run_at_us, due + 10 + (asked[i] > 250 ? asked[i] : 250) * MS);
            assert_int_equal(change.has_history, !reserved); /* kept, but for what never began */
            assert_int_equal(job.waiting_since_us, due);
        }
    }
}

static void reservation_that_lapses_counts_nothing(void **state) {
    (void)state;
    assert_int_equal(RUN(CLAIMED, T0 + 5, .message = NULL), 0);
    assert_int_equal(run((struct hfi_event){.kind = HFI_EVENT_LAPSED, .node = 9, .crash = true}, T0 + S), 0);
    assert_int_equal(job.state, HF_JOB_PENDING);
    assert_int_equal(job.run_at_us, T0); /* due, in its old place */
    assert_int_equal(job.executions + job.failures + job.crashes, 0);
    assert_int_equal(job.epoch, 2);
    assert_false(change.has_history);
}

/* I43, S2.10: given back is as if it had never been claimed, twenty times. */
static void give_back_restores_the_counters_I43(void **state) {
    (void)state;
    start(T0);
    fail_transient(T0);
    int64_t due = job.run_at_us;
    for (uint32_t n = 1; n <= 20; n++) {
        start(due + n);
        assert_int_equal(RUN(GIVEN_BACK, due + n, .message = NULL), 0);
        assert_int_equal(job.state, HF_JOB_PENDING);
        assert_int_equal(job.executions, 1);
        assert_int_equal(job.failures, 1);
        assert_int_equal(job.crashes, 0);
        assert_int_equal(job.give_backs, n);
        assert_int_equal(job.run_at_us, due);
    }
    for (uint32_t n = 2; n <= 6; n++) {
        start(due + 100);
        assert_int_equal(RUN(GIVEN_BACK, due + 100, .message = NULL), 0);
        assert_int_equal(job.executions, n); /* from here on it counts */
        assert_int_equal(job.state, n == 6 ? HF_JOB_DEAD : HF_JOB_PENDING);
    }
    assert_string_equal(change.death.cause, "exhausted");
    fresh(NULL);
    assert_int_equal(RUN(CLAIMED, T0, .message = NULL), 0); /* a reservation costs not even that */
    assert_int_equal(RUN(GIVEN_BACK, T0, .message = NULL), 0);
    assert_int_equal(job.give_backs, 0);
    assert_int_equal(job.executions, 0);
    assert_int_equal(job.epoch, 1);
}

static void quarantine_never_ran_S1_14(void **state) {
    (void)state;
    for (int from = 0; from < 3; from++) {
        fresh(NULL);
        if (from > 0)
            assert_int_equal(RUN(CLAIMED, T0, .message = NULL), 0);
        if (from > 1)
            assert_int_equal(RUN(STARTED, T0, .message = NULL), 0);
        assert_int_equal(RUN(QUARANTINED, T0, .error_type = from ? "payload.undecodable" : "unknown_type",
                             .message = "no handler"), 0);
        assert_int_equal(job.state, HF_JOB_QUARANTINED);
        assert_int_equal(job.executions, 0);
        assert_true(change.has_death && change.death.quarantined);
        assert_int_equal(change.death.death_class, HF_DEATH_POISON);
        assert_string_equal(change.death.cause, from ? "payload" : "unknown_type");
        assert_string_equal(change.death.message, "no handler");
        assert_string_equal(job.error_class, "poison");
    }
}

static void requeue_gives_the_full_budget_S1_19(void **state) {
    (void)state;
    job.max_executions = 1;
    start(T0);
    fail_transient(T0);
    int64_t epoch = job.epoch;
    assert_int_equal(RUN(REQUEUED, T0 + HOUR, .actor = "ann", .message = "fixed"), 0);
    assert_int_equal(job.state, HF_JOB_PENDING);
    assert_int_equal(job.run_at_us, T0 + HOUR);
    assert_int_equal(job.executions + job.failures + job.crashes + job.snoozes + job.give_backs, 0);
    assert_int_equal(job.deaths, 1); /* S0.32b */
    assert_int_equal(job.epoch, epoch + 1);
    assert_string_equal(change.history.message, "ann: fixed");
    assert_int_equal(job.finished_at_us, 0);
    start(T0 + HOUR);
    fail_transient(T0 + HOUR);
    assert_int_equal(change.death.death_no, 2);
    assert_int_equal(RUN(REQUEUED, T0 + HOUR, .actor = "ann"), 0);
    assert_string_equal(change.history.message, "ann");
    assert_int_equal(RUN(REQUEUED, T0 + HOUR, .actor = "ann"), HF_ESTATE); /* S1.20 */
}

static void cancel_by_others_moves_the_epoch(void **state) {
    (void)state;
    start(T0);
    assert_int_equal(RUN(CANCELLED, T0, .actor = "handler", .message = "no longer needed"), 0);
    assert_int_equal(job.state, HF_JOB_CANCELLED);
    assert_int_equal(job.epoch, 1);
    assert_string_equal(job.cancel_by, "handler");
    assert_string_equal(job.cancel_reason, "no longer needed");
    assert_false(change.has_death);
    fresh(NULL);
    start(T0);
    assert_int_equal(run((struct hfi_event){.kind = HFI_EVENT_CANCELLED, .node = 0, .actor = "bob"}, T0), 0);
    assert_int_equal(job.epoch, 2); /* the owner's own write must miss now */
    fresh(NULL);
    job.expires_at_us = T0;
    assert_int_equal(RUN(EXPIRED, T0, .message = NULL), 0);
    assert_string_equal(job.cancel_reason, "expired");
    assert_int_equal(job.state, HF_JOB_CANCELLED);
}

static void recovery_is_plain_success_S1_9(void **state) {
    (void)state;
    start(T0);
    fail_transient(T0);
    assert_string_equal(job.error_type, "http.503");
    start(job.run_at_us);
    assert_int_equal(RUN(SUCCEEDED, job.run_at_us, .message = NULL), 0);
    assert_string_equal(job.error_type, "");
    assert_string_equal(job.error_message, "");
    assert_int_equal(job.executions, 2);
}

/* S0.13, S4.4: stored texts are clean and cut on a code point; a death keeps more than a retry. */
static void texts_are_cleaned_and_cut(void **state) {
    (void)state;
    static char message[6000];
    for (size_t i = 0; i + 2 < sizeof message; i += 2)
        memcpy(message + i, "\xc3\xa9", 2);
    start(T0);
    assert_int_equal(RUN(FAILED, T0, .error_type = "a\xff", .message = message), 0);
    assert_string_equal(job.error_type, "a\xef\xbf\xbd");
    assert_int_equal(strlen(change.history.message), 510);
    job.max_executions = 2;
    start(job.run_at_us);
    assert_int_equal(RUN(FAILED, job.run_at_us, .message = message), 0);
    assert_int_equal(strlen(change.death.message), 4000);
    assert_int_equal(strlen(job.error_message), 4000);
    fresh(NULL);
    start(T0);
    assert_int_equal(RUN(CANCELLED, T0, .actor = message, .message = "\x80"), 0);
    assert_int_equal(strlen(job.cancel_by), 120);
    assert_string_equal(job.cancel_reason, "\xef\xbf\xbd");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(table_of_states_and_events),
        TEST(claim_reserves_and_start_counts),
        TEST(rejection_takes_the_execution_back),
        TEST(reservation_that_lapses_counts_nothing),
        TEST(give_back_restores_the_counters_I43),
        TEST(quarantine_never_ran_S1_14),
        TEST(requeue_gives_the_full_budget_S1_19),
        TEST(cancel_by_others_moves_the_epoch),
        TEST(recovery_is_plain_success_S1_9),
        TEST(texts_are_cleaned_and_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
