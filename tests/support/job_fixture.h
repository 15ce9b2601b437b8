/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_JOB_FIXTURE_H
#define HF_TEST_JOB_FIXTURE_H

/* One job on the default policy, and events upon it: for the tests of the transition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/transition.h"

#define T0 INT64_C(1780000000000000)
#define MS INT64_C(1000)
#define S (1000 * MS)
#define HOUR (3600 * S)

static struct hfi_curve curve;
static struct hfi_rules rules;
static struct hfi_change change;
static struct hfi_job job;
static struct hf_outcome outcome;

static int fresh(void **state) {
    (void)state;
    hfi_curve_default(&curve);
    rules = (struct hfi_rules){.policy = &curve, .repeatable = true, .max_crashes = 3, .max_give_backs = 20,
                               .retry_after_cap_ms = 3600000, .give_up_after_ms = 86400000};
    job = (struct hfi_job){.id = 17, .state = HF_JOB_PENDING, .run_at_us = T0, .created_at_us = T0, .type = "mail",
                           .queue = "default", .downstream = "smtp", .reason = "", .error_class = "", .error_type = "",
                           .error_message = "", .cancel_by = "", .cancel_reason = ""};
    hfi_outcome_init(&outcome);
    return 0;
}

/* Runs an event on `job`; the new record takes its place. Its texts stay in `change` until the next. */
static int run(struct hfi_event event, int64_t now_us) {
    static struct hfi_change changes[2];
    static int turn;
    struct hfi_change *next = &changes[turn ^= 1];
    event.now.us = now_us;
    int code = hfi_transition(&job, &event, &rules, next);
    if (code == 0) {
        job = next->job;
        memcpy(&change, next, sizeof change);
    }
    return code;
}
#define RUN(kind_, now, ...) run((struct hfi_event){.kind = HFI_EVENT_##kind_, .node = 5, __VA_ARGS__}, now)

static void start(int64_t now_us) {
    assert_int_equal(RUN(CLAIMED, now_us, .message = NULL), 0);
    assert_int_equal(RUN(STARTED, now_us, .message = NULL), 0);
}

static void set(enum hf_class klass, const char *type, enum hf_sent sent) {
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_FAILURE, klass, type, "test.rule");
    hfi_outcome_message(&outcome, "because");
    outcome.sent = sent;
}

static void fail_transient(int64_t now_us) {
    set(HF_CLASS_TRANSIENT, "http.503", HF_SENT_YES);
    assert_int_equal(RUN(FAILED, now_us, .outcome = &outcome), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

#endif
