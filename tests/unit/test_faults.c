/* SPDX-License-Identifier: MIT */
/* Injected faults: what is accepted, what strikes when, and what calls over a transport see of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "holdfast/log.h"
#include "resilience/faults.h"
#include "resilience/faulty.h"
#include "seed.h"
#include "support/call_world.h"

#define S INT64_C(1000000)

static struct hf_fault fault(enum hf_fault_kind kind) {
    struct hf_fault made;
    hf_fault_init(&made, kind);
    made.status = kind == HF_FAULT_STATUS ? 503 : 0;
    made.delay_ms = kind == HF_FAULT_DELAY ? 2000 : 0;
    return made;
}

/* ------------------------------------------------------------------ what is accepted */

#define REFUSED(field, value, of_kind, key)                                                                            \
    do {                                                                                                               \
        struct hf_fault two[2] = {fault(HF_FAULT_RESET), fault(of_kind)};                                              \
        struct hf_error error;                                                                                         \
        hf_error_init(&error);                                                                                         \
        assert_int_equal(hf_faults_check(two, 2, NULL), 0);                                                            \
        two[1].field = value;                                                                                          \
        assert_int_equal(hf_faults_check(two, 2, &error), HF_EINVAL);                                                  \
        assert_string_equal(error.what, "faults[1]." key);                                                             \
        assert_true(error.fix[0] != '\0');                                                                             \
    } while (0)

static void bad_faults_are_refused(void **state) {
    (void)state;
    REFUSED(kind, (enum hf_fault_kind)9, HF_FAULT_RESET, "kind");
    REFUSED(status, 199, HF_FAULT_STATUS, "status");
    REFUSED(status, 600, HF_FAULT_STATUS, "status");
    REFUSED(status, 503, HF_FAULT_DROP, "status");
    REFUSED(share, 0, HF_FAULT_RESET, "share");
    REFUSED(share, 1.01, HF_FAULT_RESET, "share");
    REFUSED(share, NAN, HF_FAULT_RESET, "share");
    REFUSED(delay_ms, 0, HF_FAULT_DELAY, "delay");
    REFUSED(delay_ms, -1, HF_FAULT_RESET, "delay");
    REFUSED(delay_ms, INT64_MAX, HF_FAULT_RESET, "delay");
    REFUSED(every_ms, 5, HF_FAULT_RESET, "for");
    REFUSED(for_ms, 5, HF_FAULT_RESET, "for");
    REFUSED(every_ms, -5, HF_FAULT_RESET, "every");
    struct hf_fault one = fault(HF_FAULT_DROP), many[HF_FAULTS_MAX + 1];
    one.every_ms = 10;
    one.for_ms = 11;
    assert_int_equal(hf_faults_check(&one, 1, NULL), HF_EINVAL);
    one.for_ms = 10;
    assert_int_equal(hf_faults_check(&one, 1, NULL), 0);
    for (size_t i = 0; i <= HF_FAULTS_MAX; i++)
        many[i] = fault(HF_FAULT_DROP);
    assert_int_equal(hf_faults_check(many, HF_FAULTS_MAX, NULL), 0);
    assert_int_equal(hf_faults_check(many, HF_FAULTS_MAX + 1, NULL), HF_ETOOBIG);
    assert_int_equal(hf_faults_check(NULL, 1, NULL), HF_EINVAL);
    assert_int_equal(hf_faults_check(NULL, 0, NULL), 0);
    assert_string_equal(hf_fault_name(HF_FAULT_DELAY), "delay");
    assert_string_equal(hf_fault_name((enum hf_fault_kind)9), "unknown");
}

/* ------------------------------------------------------------------ what strikes when */

static void shares_and_order(void **state) {
    (void)state;
    struct hfi_random random;
    struct hf_fault two[2] = {fault(HF_FAULT_RESET), fault(HF_FAULT_DROP)};
    int hits[3] = {0}; /* none, first, second */
    two[0].share = 0.2;
    two[1].share = 0.5;
    hfi_random_seed(&random, test_seed("faults"));
    for (int i = 0; i < 100000; i++)
        hits[1 + hfi_fault_pick(two, 2, (struct hf_mono){0}, (struct hf_mono){i}, hfi_random_next(&random))]++;
    assert_in_range(hits[1], 19000, 21000);
    assert_in_range(hits[2], 38500, 41500); /* half of those that the first let through */
    two[0].share = 1;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(hfi_fault_pick(two, 2, (struct hf_mono){0}, (struct hf_mono){i}, hfi_random_next(&random)), 0);
    assert_int_equal(hfi_fault_pick(two, 0, (struct hf_mono){0}, (struct hf_mono){0}, 7), -1);
}

static void schedules(void **state) {
    (void)state;
    struct hf_fault one = fault(HF_FAULT_RESET);
    struct hf_mono since = {500 * S};
    one.every_ms = 60000;
    one.for_ms = 10000;
    for (int64_t age_s = 0; age_s < 300; age_s++)
        assert_int_equal(hfi_fault_pick(&one, 1, since, (struct hf_mono){since.us + age_s * S}, 1),
                         age_s % 60 < 10 ? 0 : -1);
    assert_int_equal(hfi_fault_pick(&one, 1, since, (struct hf_mono){since.us - S}, 1),
                     -1); /* a reading that steps back */
    assert_int_equal(hfi_fault_pick(&one, 1, (struct hf_mono){INT64_MIN}, (struct hf_mono){INT64_MAX}, 1),
                     INT64_MAX % (60 * S) < 10 * S ? 0 : -1);
}

/* ------------------------------------------------------------------ over a transport */

static struct hfi_transport *faulty;
static struct { int warnings, strikes; } logged;

static void take_line(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)user;
    logged.warnings +=
        level == HF_LOG_WARNING && strcmp(event, "downstream.faults") == 0 && strstr(fields, "\"d\"") != NULL;
    logged.strikes += strcmp(event, "downstream.fault") == 0;
}

static int set_up(void **state) {
    memset(&logged, 0, sizeof logged);
    hf_log_set(HF_LOG_INFO, take_line, NULL);
    int code = call_world_set_up(state);
    world->policy.allow_fault_injection = true;
    world->policy.retry_max = 0;
    return code;
}

static int tear_down(void **state) {
    hfi_caller_free(world->caller);
    world->caller = NULL;
    if (faulty != NULL) {
        faulty->ops->close(faulty);
        world->script = NULL;
    }
    faulty = NULL;
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    return call_world_tear_down(state);
}

/* A caller over the script, with the faults between them. */
static void open_world(void) {
    struct hfi_script_step step = hfi_script_status(10, 200);
    struct hf_error error;
    hf_error_init(&error);
    assert_int_equal(hfi_scripted_new(world->s, &step, 1, &world->script), 0);
    assert_int_equal(hfi_faulty_new(world->s, hfi_scripted_transport(world->script), 7, &faulty), 0);
    struct hfi_caller_options options = {world->s, faulty, 7};
    if (hfi_caller_new(&options, &world->options, 1, &world->caller, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    world->d = call_downstream_of(world->caller, 0);
}

static struct call_end call_with(enum hf_fault_kind kind) {
    struct hf_fault one = fault(kind);
    struct hf_header header = {"X-Ask", "again"};
    struct hf_request request = call_get();
    request.headers = &header;
    request.header_count = 1;
    assert_int_equal(hf_downstream_inject(world->d, &one, 1, NULL), 0);
    return call_once(&request);
}

static void calls_see_them_as_real(void **state) {
    (void)state;
    open_world();
    struct call_end end = call_with(HF_FAULT_STATUS);
    assert_int_equal(end.status, 503);
    assert_string_equal(end.outcome.error_type, "http.503");
    assert_string_equal(end.outcome.message, "injected fault: status 503");
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(end.outcome.verdict, HF_VERDICT_FAILURE);
    end = call_with(HF_FAULT_RESET);
    assert_string_equal(end.outcome.error_type, "curl.recv_error");
    assert_non_null(strstr(end.outcome.message, "injected fault"));
    assert_int_equal(end.outcome.sent, HF_SENT_MAYBE);
    int64_t before_ms = call_now_ms();
    end = call_with(HF_FAULT_DROP);
    assert_string_equal(end.outcome.error_type, "timeout.attempt");
    assert_int_equal(end.at_ms - before_ms, 20000);
    assert_int_equal(hfi_scripted_started(world->script), 0); /* none of it was ever sent */
    before_ms = call_now_ms();
    end = call_with(HF_FAULT_DELAY);
    assert_int_equal(end.outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(end.at_ms - before_ms, 2010);
    assert_string_equal(hfi_scripted_header(world->script, "X-Ask"), "again"); /* sent late, and whole */
    assert_int_equal(hfi_scripted_started(world->script), 1);
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(world->d, &view);
    assert_int_equal(view.faults, 4);
    assert_int_equal(logged.strikes, 4);
    assert_int_equal(logged.warnings, 4);
    assert_int_equal(hf_downstream_inject(world->d, NULL, 0, NULL), 0);
    struct hf_request request = call_get();
    assert_int_equal(call_once(&request).outcome.kind, HF_OUTCOME_SUCCESS);
}

/* Cut and cancelled in the delay and after it: `done` once, no timer left, the real attempt ended. */
static void limits_and_cancel_reach_struck_attempts(void **state) {
    (void)state;
    struct call_end end;
    struct hf_request request = call_get();
    struct hf_fault one = fault(HF_FAULT_DELAY);
    open_world();
    one.delay_ms = 25000; /* longer than the attempt may take */
    assert_int_equal(hf_downstream_inject(world->d, &one, 1, NULL), 0);
    end = call_once(&request);
    assert_string_equal(end.outcome.error_type, "timeout.attempt");
    assert_int_equal(hfi_scripted_started(world->script), 0);
    one.delay_ms = 5;
    assert_int_equal(hf_downstream_inject(world->d, &one, 1, NULL), 0);
    request.total_timeout_ms = 10; /* the real one is cut in its fifth millisecond */
    end = call_once(&request);
    assert_string_equal(end.outcome.error_type, "timeout.total");
    assert_int_equal(hfi_scripted_record(world->script, 0)->end, HFI_SCRIPT_CANCELLED);
    request.total_timeout_ms = 0;
    one.kind = HF_FAULT_DROP;
    assert_int_equal(hf_downstream_inject(world->d, &one, 1, NULL), 0);
    assert_int_equal(call_start(&end, &request), 0);
    call_cancel(&end);
    call_run();
    assert_int_equal(end.count, 1);
    assert_string_equal(end.outcome.error_type, "call.cancelled");
    assert_int_equal(hfi_scripted_open(world->script), 0);
}

/* Without permission nothing is injected, and the error says how to give it. */
static void refused_unless_allowed(void **state) {
    (void)state;
    struct hf_fault one = fault(HF_FAULT_DROP);
    struct hf_error error;
    hf_error_init(&error);
    world->policy.allow_fault_injection = false;
    open_world();
    assert_int_equal(hf_downstream_inject(world->d, &one, 1, &error), HF_EPERM);
    assert_non_null(strstr(error.fix, "allow_fault_injection"));
    assert_int_equal(hf_downstream_inject(world->d, NULL, 0, &error), 0);
    assert_int_equal(hf_downstream_inject(NULL, &one, 1, &error), HF_EINVAL);
    struct hf_request request = call_get();
    assert_int_equal(call_once(&request).outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(logged.warnings, 0);
}

/* Each try is struck anew, and each is a sample. */
static void retries_count_them(void **state) {
    (void)state;
    world->policy.retry_max = 2;
    world->policy.retry_base_ms = world->policy.retry_cap_ms = 1;
    open_world();
    struct call_end end = call_with(HF_FAULT_RESET);
    assert_int_equal(end.outcome.attempts, 3);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.faults, 3);
    assert_int_equal(view.window_failures, 3);
}

#define WORLD(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_faults_are_refused),
        cmocka_unit_test(shares_and_order),
        cmocka_unit_test(schedules),
        WORLD(calls_see_them_as_real),
        WORLD(limits_and_cancel_reach_struck_attempts),
        WORLD(refused_unless_allowed),
        WORLD(retries_count_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
